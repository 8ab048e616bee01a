//! Packets sorted by the time they are due (netem's tfifo).

use crate::contract::{Backlog, Item};
use dragstrip_units::Instant;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A packet in the delay line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delayed {
    pub(super) due: Instant,
    pub(super) item: Item,
    /// Damaged: dropped by its receiver, for whom it is taken out when due.
    pub(super) corrupt: bool,
}

/// A packet that was due before another which came earlier; ordered by (due, order of arrival).
#[derive(Clone, Copy, Debug)]
struct Overtaking {
    order: u64,
    delayed: Delayed,
}

impl Overtaking {
    fn key(&self) -> (Instant, u64) {
        (self.delayed.due, self.order)
    }
}

impl PartialEq for Overtaking {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Overtaking {}

impl PartialOrd for Overtaking {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Overtaking {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// A ring for the packets that are due in the order they came, which with a constant delay is all of
/// them, and a heap for the others (the kernel: a list and a red-black tree). Of packets due at
/// the same time the earlier arrival leaves first.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayLine {
    ring: VecDeque<Delayed>,
    heap: BinaryHeap<Reverse<Overtaking>>,
    pushed: u64,
    bytes: u64,
}

impl DelayLine {
    #[inline]
    pub(super) fn push(&mut self, delayed: Delayed) {
        self.bytes += u64::from(delayed.item.len);
        if self.ring.back().is_none_or(|last| delayed.due >= last.due) {
            self.ring.push_back(delayed);
        } else {
            self.heap.push(Reverse(Overtaking { order: self.pushed, delayed }));
            self.pushed += 1;
        }
    }

    /// Time at which the next packet is due.
    #[inline]
    pub(super) fn next_due(&self) -> Option<Instant> {
        let ring = self.ring.front().map(|delayed| delayed.due);
        let heap = self.heap.peek().map(|overtaking| overtaking.0.delayed.due);
        match (ring, heap) {
            (Some(ring), Some(heap)) => Some(ring.min(heap)),
            (Some(due), None) | (None, Some(due)) => Some(due),
            (None, None) => None,
        }
    }

    /// Time at which the last packet is due, if all are due in the order they came.
    #[inline]
    pub(super) fn last_due(&self) -> Option<Instant> {
        self.ring.back().map(|delayed| delayed.due)
    }

    /// The next packet, if it is due by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Delayed> {
        let due = self.next_due().filter(|&due| due <= now)?;
        // At equal times the ring's packet came earlier: the heap's was put there because a
        // later-due one stood at the ring's end already.
        let from_ring = self.ring.front().is_some_and(|delayed| delayed.due == due);
        let delayed = if from_ring { self.ring.pop_front()? } else { self.heap.pop()?.0.delayed };
        self.bytes -= u64::from(delayed.item.len);
        Some(delayed)
    }

    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: (self.ring.len() + self.heap.len()) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::{DelayLine, Delayed};
    use crate::contract::{Item, PacketId};
    use dragstrip_units::{Instant, Stream};

    fn pop(line: &mut DelayLine) -> Option<(u64, u32)> {
        let delayed = line.pop_due(Instant::NEVER)?;
        Some((delayed.due.as_nanos(), delayed.item.packet.0))
    }

    #[test]
    fn packets_leave_by_due_time_and_then_by_arrival() {
        let mut stream = Stream::named(4, "line");
        for _ in 0..200 {
            let mut line = DelayLine::default();
            let mut expected = Vec::new();
            for id in 0..50 {
                let due = u64::from(stream.below(12));
                expected.push((due, id));
                let item = Item { packet: PacketId(id), len: 1, ..Item::default() };
                line.push(Delayed { due: Instant::from_nanos(due), item, corrupt: false });
            }
            expected.sort_unstable();
            let popped: Vec<_> = std::iter::from_fn(|| pop(&mut line)).collect();
            assert_eq!(popped, expected);
            assert_eq!(line.backlog().bytes, 0);
        }
    }

    #[test]
    fn equal_delays_never_use_the_heap() {
        let mut line = DelayLine::default();
        for due in [1, 1, 2, 2, 5] {
            let due = Instant::from_nanos(due);
            line.push(Delayed { due, item: Item::default(), corrupt: false });
        }
        assert_eq!(line.heap.len(), 0);
    }
}
