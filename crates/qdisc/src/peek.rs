//! Looking at the packet that leaves next.
//!
//! A parent that must know a packet's length before it lets it go (a token bucket, deficit round robin) looks first. A plain
//! queue shows its head. Of a discipline that decides at dequeue the packet is taken and parked
//! (`qdisc_peek_dequeued`): it still counts in the backlog, and the discipline has judged it when its *predecessor* left.

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use dragstrip_units::Instant;

/// A discipline that can be looked at.
#[derive(Clone, Debug)]
pub struct Peekable<Q> {
    inner: Q,
    parked: Option<Item>,
}

impl<Q> Peekable<Q> {
    /// `inner`, with nothing taken out yet.
    #[must_use]
    pub const fn new(inner: Q) -> Self {
        Self { inner, parked: None }
    }

    /// The discipline itself.
    #[must_use]
    pub const fn inner(&self) -> &Q {
        &self.inner
    }
}

impl<Q: Qdisc> Peekable<Q> {
    /// Returns the result that the next `dequeue` at `now` will have.
    #[inline]
    pub fn peek<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        if let Some(item) = self.parked.or_else(|| self.inner.head()) {
            return Dequeue::Packet(item);
        }
        let answer = self.inner.dequeue(now, sink);
        if let Dequeue::Packet(item) = answer {
            self.parked = Some(item);
        }
        answer
    }
}

impl<Q: Qdisc> Qdisc for Peekable<Q> {
    #[inline]
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.inner.enqueue(item, now, sink)
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        match self.parked.take() {
            Some(item) => Dequeue::Packet(item),
            None => self.inner.dequeue(now, sink),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let Backlog { mut bytes, mut packets } = self.inner.backlog();
        if let Some(item) = self.parked {
            bytes += u64::from(item.len);
            packets += 1;
        }
        Backlog { bytes, packets }
    }

    #[inline]
    fn head(&self) -> Option<Item> {
        self.parked.or_else(|| self.inner.head())
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        self.inner.change(change, now, sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::Fifo;
    use crate::contract::{Backlog, Dequeue, Item, PacketId, Qdisc, Sink, Verdict};
    use crate::disciplines::tbf::{Config, Tbf};
    use crate::testing::Log;
    use dragstrip_units::{Instant, Rate};
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A queue that notes when it judges each packet, as an AQM does at dequeue.
    #[derive(Debug)]
    struct Judge {
        queue: Fifo,
        judged_us: Rc<RefCell<Vec<u64>>>,
    }

    impl Qdisc for Judge {
        fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
            self.queue.enqueue(item, now, sink)
        }

        fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
            let answer = self.queue.dequeue(now, sink);
            if let Dequeue::Packet(_) = answer {
                self.judged_us.borrow_mut().push(now.as_micros_floor());
            }
            answer
        }

        fn backlog(&self) -> Backlog {
            self.queue.backlog()
        }
    }

    /// `sch_tbf.c` looks before it lets go: a frame takes 1.2112 ms at 10 Mbit/s, and the second is judged when the first
    /// leaves.
    #[test]
    fn below_a_token_bucket_a_packet_is_judged_when_its_predecessor_leaves() {
        let judged_us = Rc::new(RefCell::new(Vec::new()));
        let judge = Judge { queue: Fifo::packets(9), judged_us: Rc::clone(&judged_us) };
        let rate = Rate::from_bits_per_second(10_000_000).unwrap();
        let mut tbf = Tbf::with_child(Config { rate, burst: 1514, peak: None }, judge);
        let mut log = Log::default();
        for id in 0..4 {
            let item = Item { packet: PacketId(id), len: 1514, ..Item::default() };
            assert_eq!(tbf.enqueue(item, Instant::ZERO, &mut log), Verdict::Queued);
        }
        let (mut now, mut left_us) = (Instant::ZERO, Vec::new());
        loop {
            match tbf.dequeue(now, &mut log) {
                Dequeue::Packet(_) => left_us.push(now.as_micros_floor()),
                Dequeue::Wait(until) => {
                    // The parked packet counts.
                    assert_eq!(tbf.backlog().packets as usize, 4 - left_us.len());
                    now = until;
                }
                Dequeue::Empty => break,
            }
        }
        assert_eq!(left_us, [0, 1_211, 2_422, 3_633]);
        assert_eq!(*judged_us.borrow(), [0, 0, 1_211, 2_422]);
    }
}
