//! The bytes of packets on their way, those that have arrived, and what happened to all of them.

use super::lateness::Lateness;
use super::packet::set_class;
use dragstrip_packet::TrafficClass;
use dragstrip_qdisc::{DropReason, PacketId};
use dragstrip_sim::{Event, Kinds, Loss, Observer, Sighting, Vantage, Way};
use dragstrip_units::Instant;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Totals of a direction; bytes are those of IP packets.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// By reason.
    pub drops: BTreeMap<&'static str, u64>,
    pub marks: u64,
    pub copies: u64,
    /// Packets that the far end's device did not take.
    pub refused: u64,
}

/// A packet that has arrived and is to be written.
#[derive(Debug)]
pub struct Arrival {
    pub due: Instant,
    pub way: Way,
    pub bytes: Vec<u8>,
}

/// A packet in the network.
#[derive(Debug, Default)]
struct Carried {
    bytes: Vec<u8>,
    way: Way,
    class: TrafficClass,
}

/// The forwarder's observer.
#[derive(Debug)]
pub struct Ledger {
    /// Bytes in front of a packet's IP header.
    header_bytes: usize,
    /// By number.
    carried: Vec<Carried>,
    pub arrivals: VecDeque<Arrival>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    /// By way.
    pub totals: Vec<Totals>,
    pub lateness: Vec<Lateness>,
}

impl Ledger {
    /// A ledger of this number of ways, for packets with so many bytes in front of their IP headers.
    pub fn new(ways: usize, header_bytes: usize) -> Self {
        Self {
            header_bytes,
            carried: Vec::new(),
            arrivals: VecDeque::new(),
            spare: Vec::new(),
            totals: (0..ways).map(|_| Totals::default()).collect(),
            lateness: (0..ways).map(|_| Lateness::default()).collect(),
        }
    }

    /// A packet enters under this number.
    pub fn keep(&mut self, id: PacketId, way: Way, class: TrafficClass, bytes: &[u8]) {
        let totals = &mut self.totals[way.0];
        totals.packets_in += 1;
        totals.bytes_in += bytes.len() as u64;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.put(id, Carried { bytes: buffer, way, class });
    }

    fn put(&mut self, id: PacketId, carried: Carried) {
        let index = id.0 as usize;
        if self.carried.len() <= index {
            self.carried.resize_with(index + 1, Carried::default);
        }
        self.carried[index] = carried;
    }

    /// An arrival has been written, so much later than due, or refused.
    pub fn written(&mut self, arrival: Arrival, late_ns: Option<u64>) {
        let way = arrival.way.0;
        let totals = &mut self.totals[way];
        if let Some(late_ns) = late_ns {
            totals.packets_out += 1;
            totals.bytes_out += arrival.bytes.len() as u64;
            self.lateness[way].add(late_ns);
        } else {
            totals.refused += 1;
        }
        self.spare.push(arrival.bytes);
    }

    /// Packets of a direction that are neither written, refused nor dropped yet.
    pub fn on_their_way(&self, way: Way) -> u64 {
        let totals = &self.totals[way.0];
        let drops: u64 = totals.drops.values().sum();
        (totals.packets_in + totals.copies)
            .saturating_sub(totals.packets_out + totals.refused + drops)
    }
}

/// A reason in a word.
const fn word(loss: Loss) -> &'static str {
    match loss {
        Loss::Queue(DropReason::Overlimit) => "full",
        Loss::Queue(DropReason::Aqm) => "aqm",
        Loss::Queue(DropReason::Loss) => "loss",
        Loss::Queue(DropReason::Corrupt) => "corrupt",
        Loss::Queue(DropReason::Unclassified) => "unclassified",
        Loss::Queue(DropReason::Down) => "down",
        Loss::Queue(DropReason::AckFilter) => "ack_filter",
        Loss::Medium => "medium",
    }
}

impl Observer for Ledger {
    fn kinds(&self, vantage: Vantage) -> Kinds {
        match vantage {
            Vantage::Node { .. } => Kinds::RECEIVED,
            Vantage::Link { .. } => Kinds::DROPPED.with(Kinds::MARKED).with(Kinds::DUPLICATED),
        }
    }

    fn saw(&mut self, sighting: &Sighting<'_>) {
        let index = sighting.packet.0 as usize;
        match sighting.event {
            Event::Received => {
                let Carried { mut bytes, way, class } = std::mem::take(&mut self.carried[index]);
                if class != sighting.class {
                    set_class(&mut bytes[self.header_bytes..], sighting.class);
                }
                self.arrivals.push_back(Arrival { due: sighting.at, way, bytes });
            }
            Event::Dropped(loss) => {
                let dropped = std::mem::take(&mut self.carried[index]);
                *self.totals[dropped.way.0].drops.entry(word(loss)).or_default() += 1;
                self.spare.push(dropped.bytes);
            }
            Event::Marked => self.totals[self.carried[index].way.0].marks += 1,
            Event::Duplicated { of } => {
                let Carried { bytes, way, class } = &self.carried[of.0 as usize];
                let copy = Carried { bytes: bytes.clone(), way: *way, class: *class };
                self.totals[copy.way.0].copies += 1;
                self.put(sighting.packet, copy);
            }
            Event::Sent { .. } | Event::Enqueued | Event::Dequeued | Event::Arrived => {}
        }
    }
}
