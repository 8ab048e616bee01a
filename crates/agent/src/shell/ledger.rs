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
    class: TrafficClass,
}

/// The forwarder's observer.
#[derive(Debug)]
pub struct Ledger {
    /// Index of the second host's node.
    far: u32,
    /// Links of the way back.
    back: Vec<bool>,
    /// By number.
    carried: Vec<Carried>,
    pub arrivals: VecDeque<Arrival>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    pub totals: [Totals; 2],
    pub lateness: [Lateness; 2],
}

impl Ledger {
    /// `far`: the node at the end of the way there; `back`: for each link whether it is one of the way back.
    pub fn new(far: u32, back: Vec<bool>) -> Self {
        Self {
            far,
            back,
            carried: Vec::new(),
            arrivals: VecDeque::new(),
            spare: Vec::new(),
            totals: Default::default(),
            lateness: Default::default(),
        }
    }

    /// A packet enters under this number.
    pub fn keep(&mut self, id: PacketId, way: Way, class: TrafficClass, bytes: &[u8]) {
        let totals = &mut self.totals[way as usize];
        totals.packets_in += 1;
        totals.bytes_in += bytes.len() as u64;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.put(id, Carried { bytes: buffer, class });
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
        let way = arrival.way as usize;
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
        let totals = &self.totals[way as usize];
        let drops: u64 = totals.drops.values().sum();
        (totals.packets_in + totals.copies)
            .saturating_sub(totals.packets_out + totals.refused + drops)
    }

    fn way(&self, link: u32) -> usize {
        usize::from(self.back[link as usize])
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
        let id = sighting.packet;
        match (sighting.event, sighting.vantage) {
            (Event::Received, Vantage::Node { node }) => {
                let way = if node == self.far { Way::There } else { Way::Back };
                let Carried { mut bytes, class } = std::mem::take(&mut self.carried[id.0 as usize]);
                if class != sighting.class {
                    set_class(&mut bytes, sighting.class);
                }
                self.arrivals.push_back(Arrival { due: sighting.at, way, bytes });
            }
            (Event::Dropped(loss), Vantage::Link { link, .. }) => {
                let way = self.way(link);
                *self.totals[way].drops.entry(word(loss)).or_default() += 1;
                let dropped = std::mem::take(&mut self.carried[id.0 as usize]);
                self.spare.push(dropped.bytes);
            }
            (Event::Marked, Vantage::Link { link, .. }) => {
                let way = self.way(link);
                self.totals[way].marks += 1;
            }
            (Event::Duplicated { of }, Vantage::Link { link, .. }) => {
                let way = self.way(link);
                self.totals[way].copies += 1;
                let Carried { bytes, class } = &self.carried[of.0 as usize];
                let copy = Carried { bytes: bytes.clone(), class: *class };
                self.put(id, copy);
            }
            (
                Event::Sent { .. }
                | Event::Received
                | Event::Enqueued
                | Event::Dequeued
                | Event::Arrived
                | Event::Dropped(_)
                | Event::Marked
                | Event::Duplicated { .. },
                _,
            ) => {}
        }
    }
}
