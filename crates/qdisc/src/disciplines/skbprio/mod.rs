//! Strict priority with one limit (`sch_skbprio.c`): the packet that makes room is the newest of the lowest priority.
//!
//! A packet's priority is `skb->priority`; that of a forwarded packet comes from what used to be the TOS bits
//! (`rt_tos2priority`): 0 best effort, 2 bulk, 4 interactive bulk, 6 interactive. A higher number goes first, so that bulk
//! goes before best effort here, other than in `prio`.
//!
//! - **Enqueue**: takes a packet while fewer than `limit` wait. When the queue is full, an arriving packet of no higher priority
//!   than the lowest that waits is dropped; for any other the newest packet of that lowest priority is.
//! - **Dequeue**: the oldest packet of the highest priority.
//! - **Change**: a lower limit drops nothing (`skbprio_change`); what waits above it stays, one in for one out.
//! - **Departs from the kernel**: nowhere; priorities that a filter sets (`skbedit`) are not modelled. No run was held against a
//!   kernel yet.

pub mod spec;

use crate::contract::{Backlog, Change, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use dragstrip_units::Instant;
pub use spec::SkbprioSpec;
use std::collections::VecDeque;

/// `SKBPRIO_MAX_PRIORITY`: priorities from this on share the last queue.
const PRIORITIES: usize = 64;

/// The discipline.
#[derive(Clone, Debug)]
pub struct Skbprio {
    limit: u32,
    /// Queue of each priority, the oldest packet first.
    queues: Vec<VecDeque<Item>>,
    /// One bit for each queue that is not empty.
    occupied: u64,
    backlog: Backlog,
}

impl Skbprio {
    /// Empty queues.
    #[must_use]
    pub fn new(spec: &SkbprioSpec) -> Self {
        Self {
            limit: spec.limit_packets,
            queues: vec![VecDeque::new(); PRIORITIES],
            occupied: 0,
            backlog: Backlog::default(),
        }
    }

    fn push(&mut self, priority: usize, item: Item) {
        self.queues[priority].push_back(item);
        self.occupied |= 1 << priority;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(item.len);
    }

    /// Accounts for a packet that is no longer in the queue of this priority.
    fn remove(&mut self, priority: usize, item: Option<Item>) -> Option<Item> {
        let item = item?;
        if self.queues[priority].is_empty() {
            self.occupied &= !(1 << priority);
        }
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(item.len);
        Some(item)
    }

    /// The lowest priority that waits; none: the queue is empty.
    fn lowest(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }

    fn highest(&self) -> Option<usize> {
        self.occupied.checked_ilog2().map(|priority| priority as usize)
    }

    /// Takes the newest packet of the lowest priority, if that is below `priority`.
    fn pop_below(&mut self, priority: usize) -> Option<Item> {
        let lowest = self.lowest().filter(|lowest| *lowest < priority)?;
        let newest = self.queues[lowest].pop_back();
        self.remove(lowest, newest)
    }
}

impl Qdisc for Skbprio {
    fn enqueue<S: Sink>(&mut self, item: Item, _now: Instant, sink: &mut S) -> Verdict {
        let reason = DropReason::Overlimit;
        let priority = usize::from(item.priority()).min(PRIORITIES - 1);
        if self.backlog.packets < self.limit {
            self.push(priority, item);
            return Verdict::Queued;
        }
        let Some(newest) = self.pop_below(priority) else {
            sink.dropped(item, reason);
            return Verdict::Dropped(reason);
        };
        sink.dropped(newest, reason);
        self.push(priority, item);
        Verdict::DroppedOther(reason)
    }

    fn dequeue<S: Sink>(&mut self, _now: Instant, _sink: &mut S) -> Dequeue {
        let Some(highest) = self.highest() else { return Dequeue::Empty };
        let oldest = self.queues[highest].pop_front();
        self.remove(highest, oldest).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn change<S: Sink>(&mut self, change: Change, _now: Instant, _sink: &mut S) {
        if let Change::LimitPackets(limit) = change {
            self.limit = limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Dscp, PacketId};
    use crate::testing::Log;

    /// DSCPs whose packets have the priorities 0, 2, 4 and 6.
    const BEST_EFFORT: u8 = 0;
    const BULK: u8 = 2;
    const INTERACTIVE_BULK: u8 = 6;
    const INTERACTIVE: u8 = 4;

    fn item(id: u32, dscp: u8) -> Item {
        let dscp = Dscp::new(dscp).unwrap();
        Item { packet: PacketId(id), len: 1514, dscp, ..Item::default() }
    }

    /// Packets with these DSCPs come at once: who is dropped, and in which order the others leave, by number.
    fn pass(limit_packets: u32, dscps: &[u8]) -> (Vec<u32>, Vec<u32>) {
        let (mut log, mut queue) = (Log::default(), Skbprio::new(&SkbprioSpec { limit_packets }));
        for (id, &dscp) in (0..).zip(dscps) {
            let _ = queue.enqueue(item(id, dscp), Instant::ZERO, &mut log);
        }
        (log.drops.iter().map(|(packet, _)| packet.0).collect(), leaving(&mut queue))
    }

    fn leaving(queue: &mut Skbprio) -> Vec<u32> {
        std::iter::from_fn(|| match queue.dequeue(Instant::ZERO, &mut Log::default()) {
            Dequeue::Packet(item) => Some(item.packet.0),
            Dequeue::Wait(_) | Dequeue::Empty => None,
        })
        .collect()
    }

    #[test]
    fn the_highest_number_goes_first_and_the_oldest_of_it() {
        let dscps = [BEST_EFFORT, BULK, INTERACTIVE, INTERACTIVE_BULK, INTERACTIVE, BULK];
        assert_eq!(pass(64, &dscps), (vec![], vec![2, 4, 3, 1, 5, 0]));
    }

    #[test]
    fn the_newest_of_the_lowest_priority_makes_room() {
        // Two of best effort wait behind one of bulk: the interactive ones take their places, the newest first.
        let dscps = [BEST_EFFORT, BEST_EFFORT, BULK, INTERACTIVE, INTERACTIVE, INTERACTIVE];
        assert_eq!(pass(3, &dscps), (vec![1, 0, 2], vec![3, 4, 5]));
    }

    #[test]
    fn nobody_makes_room_for_an_equal_or_a_lower() {
        let dscps = [BULK, INTERACTIVE, BULK, BEST_EFFORT, INTERACTIVE, INTERACTIVE];
        assert_eq!(pass(2, &dscps), (vec![2, 3, 0, 5], vec![1, 4]));
        assert_eq!(pass(0, &[INTERACTIVE]), (vec![0], vec![]));
    }

    #[test]
    fn a_lower_limit_drops_nothing_by_itself() {
        let (mut log, mut queue) =
            (Log::default(), Skbprio::new(&SkbprioSpec { limit_packets: 64 }));
        for id in 0..4 {
            let _ = queue.enqueue(item(id, BEST_EFFORT), Instant::ZERO, &mut log);
        }
        queue.change(Change::LimitPackets(2), Instant::ZERO, &mut log);
        assert_eq!((queue.backlog().packets, log.drops.len()), (4, 0));
        let verdict = queue.enqueue(item(4, BULK), Instant::ZERO, &mut log);
        assert_eq!(verdict, Verdict::DroppedOther(DropReason::Overlimit));
        assert_eq!(log.drops, [(PacketId(3), DropReason::Overlimit)]);
        assert_eq!(leaving(&mut queue), [4, 0, 1, 2]);
    }
}
