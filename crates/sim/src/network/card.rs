//! Network cards of hosts: interrupts, and what their drivers hand on.
//!
//! A card that has interrupted its host is quiet for a while (the throttling timer of Intel's cards: `e1000_set_itr`, `ixgbe_set_itr`);
//! what arrives meanwhile waits in its ring, and one poll takes all of it (`net_rx_action`). With GRO, consecutive segments of a
//! connection in one poll become one packet (`tcp_gro_receive`), which goes on at the end of the poll at the latest (`napi_gro_flush`
//! without `gro_flush_timeout`, its default).
//!
//! Departures: a poll has no budget (64 packets in Linux); the gap does not adapt to the traffic.

use super::Network;
use crate::calendar::Source;
use crate::hops::{CARD, END};
use crate::observer::Observer;
use crate::packets::Packet;
use dragstrip_packet::{Body, Flags};
use dragstrip_qdisc::PacketId;
use dragstrip_scenario::{InterruptSpec, Scenario};
use dragstrip_units::{Duration, Instant, make_room};
use std::collections::VecDeque;

/// Payload of a merged packet: IP's length has 16 bits (`gro_max_size`), headers have up to 120 bytes.
const MERGED_MAX: u32 = u16::MAX as u32 - 120;

/// A card.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    gap: Duration,
    gro: bool,
    /// Time of the next interrupt at the earliest.
    ready: Instant,
    /// Packets in the ring, each with its hop.
    ring: VecDeque<(PacketId, u32)>,
    /// Packets of the poll in progress that are not processed yet.
    batch: usize,
    source: Source,
}

impl Card {
    /// Packets received that are not processed yet.
    pub fn packets(&self) -> u64 {
        self.ring.len() as u64
    }
}

/// The cards of a scenario's hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cards {
    all: Vec<Card>,
    /// Index in `all` of each node's card.
    of_node: Vec<Option<u32>>,
}

impl Cards {
    /// Creates the cards of the hosts of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let mut cards = Self::default();
        for node in &scenario.nodes {
            let spec = node.host().and_then(|host| host.interrupts.as_ref());
            cards.of_node.push(spec.map(|_| cards.all.len() as u32));
            let Some(InterruptSpec { gap_ns, gro }) = spec else { continue };
            cards.all.push(Card {
                gap: Duration::from_nanos(*gap_ns),
                gro: *gro,
                ready: Instant::ZERO,
                ring: VecDeque::new(),
                batch: 0,
                source: 0,
            });
        }
        cards
    }

    /// Number of cards.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Iterates over the cards.
    pub fn iter(&self) -> impl Iterator<Item = &Card> {
        self.all.iter()
    }

    /// The hop at which packets leave this node's card; none if it has none.
    pub fn hop(&self, node: usize) -> Option<u32> {
        self.of_node[node].map(|card| CARD | card)
    }

    /// Gives each its number in the calendar, from this one on.
    pub fn number(&mut self, first_source: Source) {
        for (index, card) in self.all.iter_mut().enumerate() {
            card.source = first_source + index as Source;
        }
    }
}

/// Appends the segment of `next` to `packet`, whose first segment had `full` bytes, if GRO would; true if so.
///
/// `tcp_gro_receive`: the same acknowledgement, window, options and flags, next in sequence, no longer than the first one. Nothing is
/// appended to a packet after a short segment or a pushed one.
fn merge(packet: &mut Packet, full: u16, next: &Packet) -> bool {
    let apart_from_push = |flags: Flags| flags.with_if(Flags::PSH, true);
    let (Body::Tcp(segment), Body::Tcp(other)) = (&mut packet.body, &next.body) else {
        return false;
    };
    let is_open = !segment.flags.has(Flags::PSH) && full > 0 && segment.len.is_multiple_of(full);
    let fits = u32::from(segment.len) + u32::from(other.len) <= MERGED_MAX;
    if !is_open
        || !fits
        || packet.class != next.class
        || !(1..=full).contains(&other.len)
        || other.seq != segment.end_seq()
        || apart_from_push(segment.flags) != apart_from_push(other.flags)
        || !segment.has_header_of(other)
    {
        return false;
    }
    segment.len += other.len;
    segment.flags = segment.flags.with_if(Flags::PSH, other.flags.has(Flags::PSH));
    true
}

/// Payload of a single segment; 0: no segment of TCP, or a burst that is one packet already.
fn single(packet: &Packet) -> u16 {
    match &packet.body {
        Body::Tcp(segment) if packet.frame() == segment.frame_len() => segment.len,
        Body::Tcp(_) | Body::Udp(_) | Body::Quic(_) | Body::Icmp(_) => 0,
    }
}

impl<O: Observer> Network<O> {
    /// A packet has reached the card of its host at `hop`.
    #[inline(never)]
    pub(super) fn receive_by_card(&mut self, id: PacketId, hop: u32, now: Instant) {
        let card = &mut self.cards.all[(self.hops[hop as usize] & !CARD) as usize];
        make_room(&mut card.ring);
        card.ring.push_back((id, hop));
        if card.ring.len() == 1 {
            self.calendar.set(card.source, card.ready.max(now));
        }
    }

    /// A poll begins, of all packets in the ring.
    pub fn interrupt(&mut self, card: usize, now: Instant) {
        let card = &mut self.cards.all[card];
        card.batch = card.ring.len();
        card.ready = now + card.gap;
        self.calendar.set(card.source, Instant::NEVER);
    }

    /// The next packet of the poll and its port. Observers see frames as they were on the wire.
    pub fn poll(&mut self, card: usize, now: Instant) -> Option<(PacketId, u32)> {
        let card = &mut self.cards.all[card];
        if card.batch == 0 {
            return None;
        }
        let (id, hop) = card.ring.pop_front()?;
        card.batch -= 1;
        let end = hop + 1;
        self.watch.received(end, id, &self.packets, now);
        let full = if card.gro { single(self.packets.get(id)) } else { 0 };
        let mut place = 0;
        while full > 0 && place < card.batch {
            let (next, next_hop) = card.ring[place];
            if next_hop != hop {
                place += 1;
                continue;
            }
            let other = self.packets.get(next).clone();
            if single(&other) == 0 || !merge(self.packets.get_mut(id), full, &other) {
                break;
            }
            self.packets.lengthen(id, other.frame());
            card.ring.remove(place);
            card.batch -= 1;
            self.watch.received(end, next, &self.packets, now);
            self.packets.remove(next);
            self.delivered += 1;
        }
        Some((id, self.hops[end as usize] & !END))
    }
}
