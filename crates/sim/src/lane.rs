//! Lanes: packets on their way that arrive somewhere in the order in which they set out.

use crate::calendar::{END_OF_TIME, Source};
use dragstrip_qdisc::PacketId;
use dragstrip_units::{Instant, make_room};
use std::collections::VecDeque;

/// Bits of an entry that hold the hop; the other 44 hold the time.
const HOP_BITS: u32 = 20;

/// Most entries of the table of hops.
pub(crate) const MAX_HOPS: usize = 1 << HOP_BITS;

/// A packet in flight: its arrival time, and its next hop there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub at: Instant,
    pub id: PacketId,
    pub hop: u32,
}

/// The same in 12 bytes. What arrives after the end of time never does.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Entry {
    at_and_hop: u64,
    id: PacketId,
}

impl Entry {
    #[inline]
    fn new(Waiting { at, id, hop }: Waiting) -> Self {
        debug_assert!((hop as usize) < MAX_HOPS);
        let at = at.as_nanos().min(END_OF_TIME.as_nanos() + 1);
        Self { at_and_hop: at << HOP_BITS | u64::from(hop), id }
    }

    #[inline]
    fn at(self) -> Instant {
        Instant::from_nanos(self.at_and_hop >> HOP_BITS)
    }

    #[inline]
    fn hop(self) -> u32 {
        self.at_and_hop as u32 & ((1 << HOP_BITS) - 1)
    }
}

/// A FIFO of packets that arrive somewhere at known instants, never decreasing.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    under_way: VecDeque<Entry>,
    last: Instant,
    pub source: Source,
}

impl Lane {
    /// An empty lane that is `source` in the calendar.
    pub fn new(source: Source) -> Self {
        Self { under_way: VecDeque::new(), last: Instant::ZERO, source }
    }

    /// Packets in it.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Arrival time of the last packet that entered.
    #[inline]
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Arrival time of the next packet.
    #[inline]
    pub fn due(&self) -> Instant {
        self.under_way.front().map_or(Instant::NEVER, |head| head.at())
    }

    /// A packet that arrives no earlier than the others; whether it is the first to arrive.
    #[inline]
    pub fn push(&mut self, waiting: Waiting) -> bool {
        debug_assert!(self.last <= waiting.at, "a lane keeps its order");
        self.last = waiting.at;
        make_room(&mut self.under_way);
        self.under_way.push_back(Entry::new(waiting));
        self.under_way.len() == 1
    }

    /// Takes the packet that arrives first.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        let entry = self.under_way.pop_front()?;
        if self.under_way.is_empty() {
            self.under_way.clear(); // begins anew at its first cache line, and does not walk through all of them
        }
        Some(Waiting { at: entry.at(), id: entry.id, hop: entry.hop() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_packet_and_hop_come_out_as_they_went_in() {
        let mut lane = Lane::new(0);
        assert_eq!(std::mem::size_of::<Entry>(), 12);
        let in_order =
            [(0, 7, 0), (5, u32::MAX, MAX_HOPS as u32 - 1), (END_OF_TIME.as_nanos(), 0, 3)];
        for (index, (ns, id, hop)) in in_order.into_iter().enumerate() {
            let first = lane.push(Waiting { at: Instant::from_nanos(ns), id: PacketId(id), hop });
            assert_eq!(first, index == 0);
        }
        for (ns, id, hop) in in_order {
            assert_eq!(lane.due(), Instant::from_nanos(ns));
            let waiting = lane.pop().unwrap();
            assert_eq!((waiting.at.as_nanos(), waiting.id.0, waiting.hop), (ns, id, hop));
        }
        assert!(lane.pop().is_none());
    }

    #[test]
    fn arrivals_after_the_end_of_time_are_never_due() {
        let mut lane = Lane::new(0);
        lane.push(Waiting { at: Instant::from_nanos(1 << 60), id: PacketId(1), hop: 1 });
        assert!(lane.due() > END_OF_TIME);
    }
}
