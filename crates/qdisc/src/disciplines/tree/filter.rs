//! Filters: which class a packet goes to (`cls_u32.c`, `cls_fw.c`, `cls_flow.c`, `cls_basic.c`, `cls_matchall.c`).
//!
//! Filters of a place are asked by priority, those of one priority as they were added. The first that matches decides,
//! unless its policer finds that the packet exceeds and says `continue`.
//!
//! u32 compares words of a packet from the first octet of its IP header on. The packet has a header of 20 bytes without
//! options; `nexthdr` begins behind it.

use super::types::{Condition, Exceeds, Field, FilterSpec, FlowKey, Key, Matching, Operand};
use crate::contract::{Headers, Item, Sink};
use crate::disciplines::police::{Buckets, Config};
use crate::flow_hash::FlowHash;
use crate::token_rate::rate;
use dragstrip_packet::{Segment, TrafficClass};
use dragstrip_units::{Instant, Stream};

/// Length of IP's header and of Ethernet's.
const IP_BYTES: u16 = 20;
const ETHERNET_BYTES: u32 = 14;
/// Protocols of IP.
const TCP: u8 = 6;
/// `IP_DF`, which Linux sets in TCP and by default in UDP (`ip_no_pmtu_disc`).
const DONT_FRAGMENT: u32 = 0x4000;

/// Answer of the filters of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This class, major and minor number; a major of zero is what a filter without one has.
    Class(u16, u16),
    /// The packet is dropped.
    Drop,
    /// None of them matches.
    None,
}

/// The parts of a packet that filters look at.
struct Packet<'a> {
    item: &'a Item,
    headers: Headers,
    segment: Option<&'a Segment>,
}

impl Packet<'_> {
    /// Four octets of the packet; none: it is shorter.
    fn word(&self, offset: u16) -> Option<u32> {
        let Headers { protocol, source, destination, source_port, destination_port, .. } =
            self.headers;
        let octet = TrafficClass::new(self.item.dscp, self.item.ecn).octet();
        Some(match offset {
            0 => {
                let length = self.item.len.saturating_sub(ETHERNET_BYTES).min(0xffff);
                0x4500_0000 | u32::from(octet) << 16 | length
            }
            4 => DONT_FRAGMENT,
            8 => u32::from(protocol) << 16,
            12 => source,
            16 => destination,
            20 => u32::from(source_port) << 16 | u32::from(destination_port),
            32 if protocol == TCP => {
                let segment = self.segment?;
                let words = segment.header_len() / 4;
                words << 28 | u32::from(segment.flags.wire()) << 16
            }
            _ => return None,
        })
    }

    /// True if the packet fulfils a condition (`tcf_em_tree_match`). One of octets that it does not have does not hold.
    fn fulfils(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All { of } => of.iter().all(|part| self.fulfils(part)),
            Condition::Any { of } => of.iter().any(|part| self.fulfils(part)),
            Condition::Not { of } => !self.fulfils(of),
            &Condition::Compare { field, mask, operand, value } => {
                let Some(number) = self.field(field) else { return false };
                match operand {
                    Operand::Equal => number & mask == value,
                    Operand::Greater => number & mask > value,
                    Operand::Less => number & mask < value,
                }
            }
        }
    }

    fn field(&self, field: Field) -> Option<u32> {
        Some(match field {
            Field::Octets { offset, width } => {
                let (shift, bits) = within_word(offset, width)?;
                self.word(offset & !3)? >> shift & bits
            }
            Field::Mark {} => self.headers.mark,
            Field::Priority {} => u32::from(self.item.priority()),
            Field::Length {} => self.item.len,
        })
    }

    /// The number of a key of a flow filter.
    fn key(&self, key: FlowKey) -> u32 {
        match key {
            FlowKey::Src => self.headers.source,
            FlowKey::Dst => self.headers.destination,
            FlowKey::Proto => u32::from(self.headers.protocol),
            FlowKey::ProtoSrc => u32::from(self.headers.source_port),
            FlowKey::ProtoDst => u32::from(self.headers.destination_port),
            FlowKey::Mark => self.headers.mark,
            FlowKey::Priority => u32::from(self.item.priority()),
        }
    }
}

/// Header bits that a key may compare, by the offset of their word: what the simulation knows of a packet.
pub(super) fn comparable(offset: u16) -> Option<u32> {
    Some(match offset {
        0 | 12 | 16 | 20 => u32::MAX,
        4 => 0x0000_ffff,
        8 => 0x00ff_0000,
        32 => 0xffff_0000,
        _ => return None,
    })
}

/// Shift and bits of octets within their word; none: they are not within one.
fn within_word(offset: u16, width: u8) -> Option<(u32, u32)> {
    let end = u32::from(offset & 3) * 8 + u32::from(width);
    let bits = match width {
        8 => 0xff,
        16 => 0xffff,
        32 => u32::MAX,
        _ => return None,
    };
    Some((32_u32.checked_sub(end)?, bits))
}

/// Bits of some octets that a condition may compare; none: they are not modelled.
pub(super) fn octets(offset: u16, width: u8) -> Option<u32> {
    let (shift, bits) = within_word(offset, width)?;
    Some(comparable(offset & !3)? >> shift & bits)
}

/// Offset of the first octet behind IP's header.
pub(super) const NEXT_HEADER: u16 = IP_BYTES;
/// Fields of a packet that filters may compare, for a refusal of others.
pub(super) const MODELLED: &str = "the length, the traffic class, the protocol, addresses, ports, or TCP's header length and flags";
pub(super) const NOTHING_ELSE: &str = "nothing else of a packet is modelled";

#[derive(Clone, Debug)]
struct Policer {
    buckets: Buckets,
    exceeds: Exceeds,
}

#[derive(Clone, Debug)]
struct Filter {
    matching: Matching,
    class: Option<(u16, u16)>,
    drops: bool,
    policer: Option<Policer>,
}

/// The filters of one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    list: Vec<Filter>,
    hash: Option<FlowHash>,
    /// One of them looks at more than an item has.
    looks_at_headers: bool,
}

fn looks_at_headers(matching: &Matching) -> bool {
    match matching {
        Matching::Everything {} => false,
        Matching::U32 { keys } => keys.iter().any(|key| key.offset != 0),
        Matching::Basic { condition } => condition.compares(&|field| match *field {
            Field::Octets { offset, .. } => offset >= 4,
            Field::Mark {} => true,
            Field::Priority {} | Field::Length {} => false,
        }),
        Matching::Fw { .. } | Matching::Flow { .. } => true,
    }
}

impl Filters {
    /// In the order in which they are asked.
    pub(super) fn new<'a>(
        specs: impl Iterator<Item = &'a FilterSpec>,
        mut stream: impl FnMut() -> Stream,
    ) -> Self {
        let mut filters = Self::default();
        for spec in specs {
            filters.looks_at_headers |= looks_at_headers(&spec.matching);
            if matches!(spec.matching, Matching::Flow { .. }) && filters.hash.is_none() {
                filters.hash = Some(FlowHash::new(&mut stream()));
            }
            filters.list.push(Filter {
                matching: spec.matching.clone(),
                class: spec.class.map(|class| (class.major, class.minor)),
                drops: spec.drop,
                policer: spec.police.as_ref().map(|police| Policer {
                    buckets: Buckets::new(Config {
                        rate: rate(police.rate_bps),
                        burst: police.burst_bytes,
                        mtu: police.mtu_bytes,
                        peak: police.peakrate_bps.map(rate),
                    }),
                    exceeds: police.exceeds,
                }),
            });
        }
        filters
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The class of `item` in the discipline with this handle.
    pub(super) fn classify<S: Sink>(
        &mut self,
        item: &Item,
        handle: u16,
        now: Instant,
        sink: &S,
    ) -> Answer {
        let headers =
            if self.looks_at_headers { sink.headers(item.packet) } else { Headers::default() };
        let segment = if self.looks_at_headers { sink.segment(item.packet) } else { None };
        let packet = Packet { item, headers, segment };
        for filter in &mut self.list {
            let Some(class) = matched(filter, &packet, handle, self.hash.as_ref()) else {
                continue;
            };
            if let Some(policer) = &mut filter.policer
                && !policer.buckets.conforms(item.len, now)
            {
                match policer.exceeds {
                    Exceeds::Drop => return Answer::Drop,
                    Exceeds::Continue => continue,
                    Exceeds::Ok => {}
                }
            }
            if filter.drops {
                return Answer::Drop;
            }
            return Answer::Class(class.0, class.1);
        }
        Answer::None
    }
}

/// The class that a filter chooses, if it takes the packet.
fn matched(
    filter: &Filter,
    packet: &Packet<'_>,
    handle: u16,
    hash: Option<&FlowHash>,
) -> Option<(u16, u16)> {
    let own = filter.class.unwrap_or((0, 0));
    match &filter.matching {
        Matching::Everything {} => Some(own),
        Matching::U32 { keys } => {
            let holds = |&Key { offset, value, mask }: &Key| {
                packet.word(offset).is_some_and(|word| (word ^ value) & mask == 0)
            };
            keys.iter().all(holds).then_some(own)
        }
        Matching::Basic { condition } => packet.fulfils(condition).then_some(own),
        // Without a number the mark itself is the class (`fw_classify`).
        Matching::Fw { mark: None, .. } => {
            let id = packet.headers.mark;
            let (major, minor) = ((id >> 16) as u16, id as u16);
            (id != 0 && (major == 0 || major == handle)).then_some((handle, minor))
        }
        &Matching::Fw { mark: Some(mark), mask } => {
            (packet.headers.mark & mask == mark).then_some(own)
        }
        Matching::Flow { keys, divisor, base } => {
            let hash = hash?;
            let number = keys.iter().fold(0, |sum, &key| hash.of(sum ^ packet.key(key)));
            let number = if *divisor > 0 { number % divisor } else { number };
            Some((handle, base.wrapping_add(number as u16)))
        }
    }
}
