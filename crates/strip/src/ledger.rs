//! The caller's datagrams in the network, and those that have arrived.

use crate::datagram::{Arrival, Datagram, End, Totals};
use dragstrip_sim::{Event, Kinds, Observer, Sighting, Vantage};
use std::collections::VecDeque;
use std::time::Duration;

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Carried {
    to: End,
    payload: Vec<u8>,
}

/// The observer of a strip.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By the network's number; none for a packet of a rival.
    carried: Vec<Option<Carried>>,
    pub arrivals: VecDeque<Arrival>,
    /// Counts of the datagrams to the server, and of those to the client.
    pub totals: [Totals; 2],
}

impl Ledger {
    pub fn keep(&mut self, packet: u32, to: End, payload: Vec<u8>) {
        self.totals[to as usize].sent += 1;
        self.put(packet, Carried { to, payload });
    }

    fn put(&mut self, packet: u32, carried: Carried) {
        let index = packet as usize;
        if self.carried.len() <= index {
            self.carried.resize(index + 1, None);
        }
        self.carried[index] = Some(carried);
    }

    fn get(&self, packet: u32) -> Option<&Carried> {
        self.carried.get(packet as usize)?.as_ref()
    }

    fn take(&mut self, packet: u32) -> Option<Carried> {
        self.carried.get_mut(packet as usize)?.take()
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
        let packet = sighting.packet.0;
        match sighting.event {
            Event::Received => {
                let Some(Carried { to, payload }) = self.take(packet) else { return };
                self.totals[to as usize].arrived += 1;
                let at = Duration::from_nanos(sighting.at.as_nanos());
                let datagram = Datagram { payload, ecn: sighting.class.ecn() };
                self.arrivals.push_back(Arrival { at, to, datagram });
            }
            Event::Dropped(_) => {
                if let Some(carried) = self.take(packet) {
                    self.totals[carried.to as usize].dropped += 1;
                }
            }
            Event::Marked => {
                if let Some(carried) = self.get(packet) {
                    self.totals[carried.to as usize].marked += 1;
                }
            }
            Event::Duplicated { of } => {
                if let Some(copy) = self.get(of.0).cloned() {
                    self.totals[copy.to as usize].copied += 1;
                    self.put(packet, copy);
                }
            }
            Event::Sent { .. } | Event::Enqueued | Event::Dequeued | Event::Arrived => {}
        }
    }
}
