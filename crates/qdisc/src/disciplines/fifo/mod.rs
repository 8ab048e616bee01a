//! Tail-drop FIFOs: bfifo, pfifo (`sch_fifo.c`) and the queue without a limit.
//!
//! The arriving packet is dropped when it does not fit: bfifo takes it while `backlog + len <=
//! limit`, pfifo while fewer than `limit` packets wait. The packet a shaper is transmitting has
//! left the queue, so a path stores one packet more than the limit.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use dragstrip_units::Instant;
pub use spec::{BfifoSpec, NoqueueSpec, PfifoSpec};
use std::collections::VecDeque;

/// Capacity of a tail-drop queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything.
    None,
    /// bfifo: bytes of `len`.
    Bytes(u64),
    /// pfifo: packets.
    Packets(u32),
    /// Nothing: the queue of a device that is down (`noop_qdisc`).
    Down,
}

impl Limit {
    /// True when a packet of `len` may join `backlog`.
    #[inline]
    #[must_use]
    pub const fn admits(self, len: u32, backlog: Backlog) -> bool {
        match self {
            Self::None => true,
            Self::Bytes(limit) => backlog.bytes + len as u64 <= limit,
            Self::Packets(limit) => backlog.packets < limit,
            Self::Down => false,
        }
    }
}

/// A tail-drop FIFO.
#[derive(Clone, Debug)]
pub struct Fifo {
    limit: Limit,
    queue: VecDeque<Item>,
    bytes: u64,
}

impl Fifo {
    /// A FIFO with any limit.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit, queue: VecDeque::new(), bytes: 0 }
    }

    /// bfifo.
    #[must_use]
    pub fn bytes(limit: u64) -> Self {
        Self::new(Limit::Bytes(limit))
    }

    /// pfifo.
    #[must_use]
    pub fn packets(limit: u32) -> Self {
        Self::new(Limit::Packets(limit))
    }

    /// The limit it was made with.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limit
    }
}

impl Qdisc for Fifo {
    fn enqueue<S: Sink>(&mut self, item: Item, _now: Instant, sink: &mut S) -> Verdict {
        if self.limit.admits(item.len, self.backlog()) {
            self.bytes += u64::from(item.len);
            self.queue.push_back(item);
            Verdict::Queued
        } else {
            let down = self.limit == Limit::Down;
            let reason = if down { DropReason::Down } else { DropReason::Overlimit };
            sink.dropped(item, reason);
            Verdict::Dropped(reason)
        }
    }

    fn dequeue<S: Sink>(&mut self, _now: Instant, _sink: &mut S) -> Dequeue {
        self.queue.pop_front().map_or(Dequeue::Empty, |item| {
            self.bytes -= u64::from(item.len);
            Dequeue::Packet(item)
        })
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.queue.len() as u32 }
    }

    #[inline]
    fn head(&self) -> Option<Item> {
        self.queue.front().copied()
    }

    fn change<S: Sink>(&mut self, change: Change, _now: Instant, _sink: &mut S) {
        // `fifo_init`: what waits stays, even above the limit.
        match (change, self.limit) {
            (Change::LimitBytes(limit), Limit::Bytes(_)) => self.limit = Limit::Bytes(limit),
            (Change::LimitPackets(limit), Limit::Packets(_)) => self.limit = Limit::Packets(limit),
            (
                Change::RateBps(_)
                | Change::LimitBytes(_)
                | Change::LimitPackets(_)
                | Change::DelayNs(_)
                | Change::Loss(_),
                Limit::None | Limit::Bytes(_) | Limit::Packets(_) | Limit::Down,
            ) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fifo;
    use crate::contract::{DropReason, Item, PacketId, Qdisc};
    use crate::testing::Log;
    use dragstrip_units::Instant;

    fn dropped(mut fifo: Fifo, lens: &[u32]) -> Vec<u32> {
        let mut log = Log::default();
        for (id, &len) in lens.iter().enumerate() {
            let item = Item { packet: PacketId(id as u32), len, ..Item::default() };
            let _ = fifo.enqueue(item, Instant::ZERO, &mut log);
        }
        assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
        log.drops.iter().map(|&(packet, _)| packet.0).collect()
    }

    #[test]
    fn bfifo_takes_what_fits_exactly_and_later_a_smaller_one() {
        assert_eq!(dropped(Fifo::bytes(3028), &[1514, 1514, 66]), [2]);
        assert_eq!(dropped(Fifo::bytes(3027), &[1514, 1514, 66]), [1]);
    }

    #[test]
    fn pfifo_counts_packets_of_any_size() {
        assert_eq!(dropped(Fifo::packets(2), &[66, 9000, 66, 66]), [2, 3]);
        assert_eq!(dropped(Fifo::packets(0), &[66]), [0]);
    }
}
