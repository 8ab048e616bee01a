//! Stochastic fairness queueing (McKenney 1990; `sch_sfq.c` since Linux 3.3).
//!
//! Packets are hashed by flow into a table of `divisor` buckets; every bucket in use holds one of
//! `flows` queues. Deficit round robin in plain bytes (Linux 6.18) serves them: a queue sends while its
//! allotment is above zero and then goes to the end with one more quantum. A queue that becomes active
//! joins at the end, so unlike FQ-CoDel new flows do not go first.
//!
//! Over the limit the **longest** queue, in packets, loses its newest packet; of equally long ones
//! the one that reached that length last, which often is the arriving packet's.
//!
//! Every `perturb` the hash is drawn anew and what is queued is hashed again, queue by queue, in
//! order; a packet that finds no queue then is dropped. Here this happens at the first call after the
//! timer, which makes no difference to what leaves.
//!
//! Left out: head drop, the per-flow RED, Linux 2.6's variant without re-hashing.

pub mod spec;

use crate::arena::{Arena, Queue};
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::flow_hash::FlowHash;
use crate::periodic::Periodic;
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::SfqSpec;

/// An sfq as `tc qdisc add ... sfq` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait, at most `flows × depth`.
    pub limit: u32,
    /// Number of queues; at least one.
    pub flows: u32,
    /// Number of hash buckets; at least one.
    pub divisor: u32,
    /// Packets that may wait in one queue; at least one.
    pub depth: u32,
    /// Bytes a queue may send in turn.
    pub quantum: u32,
    /// Time between changes of the hash; zero: never.
    pub perturb: Duration,
}

impl Default for Config {
    /// Linux on Ethernet: 127 packets, 128 queues of at most 127, 1024 buckets, quantum 1514, no perturbation.
    fn default() -> Self {
        Self {
            limit: 127,
            flows: 128,
            divisor: 1024,
            depth: 127,
            quantum: 1514,
            perturb: Duration::ZERO,
        }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Slot {
    queue: Queue,
    bucket: u32,
    allotment: i64,
    /// Next flow to be served (a ring).
    next: u32,
    /// Neighbours among the slots of equal length.
    peer_next: u32,
    peer_prev: u32,
}

/// The slots, by length: finds the longest and an unused one (length 0) without a search.
#[derive(Clone, Debug)]
struct Slots {
    all: Vec<Slot>,
    /// First slot of each length; a slot joins in front.
    first: Vec<u32>,
    longest: usize,
}

impl Slots {
    fn new(flows: u32, depth: u32) -> Self {
        let slot = Slot {
            queue: Queue::EMPTY,
            bucket: 0,
            allotment: 0,
            next: NONE,
            peer_next: NONE,
            peer_prev: NONE,
        };
        let mut slots = Self {
            all: vec![slot; flows as usize],
            first: vec![NONE; depth as usize + 1],
            longest: 0,
        };
        for index in 0..flows {
            slots.link(index);
        }
        slots
    }

    fn get(&mut self, index: u32) -> &mut Slot {
        &mut self.all[index as usize]
    }

    fn link(&mut self, index: u32) {
        let length = self.get(index).queue.packets as usize;
        let first = self.first[length];
        let slot = self.get(index);
        slot.peer_next = first;
        slot.peer_prev = NONE;
        if first != NONE {
            self.get(first).peer_prev = index;
        }
        self.first[length] = index;
        self.longest = self.longest.max(length);
    }

    fn unlink(&mut self, index: u32) {
        let &mut Slot { peer_next, peer_prev, ref queue, .. } = self.get(index);
        let length = queue.packets as usize;
        if peer_prev == NONE {
            self.first[length] = peer_next;
        } else {
            self.get(peer_prev).peer_next = peer_next;
        }
        if peer_next != NONE {
            self.get(peer_next).peer_prev = peer_prev;
        }
        if length == self.longest && self.first[length] == NONE {
            // The slot is about to be one longer or one shorter.
            self.longest = length.saturating_sub(1);
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfq {
    config: Config,
    stream: Stream,
    hash: FlowHash,
    perturb: Periodic,
    /// Slot of each bucket.
    table: Vec<u32>,
    slots: Slots,
    /// The slot served last: its `next` is served first.
    tail: u32,
    arena: Arena<()>,
    backlog: Backlog,
    /// Packets on their way to a new slot.
    rehashed: Vec<Item>,
}

impl Sfq {
    /// Empty queues; which flows share one follows from `stream`.
    ///
    /// # Panics
    /// Without a queue, bucket, quantum or place in a queue.
    #[must_use]
    pub fn new(mut config: Config, mut stream: Stream) -> Self {
        assert!(config.flows > 0 && config.divisor > 0 && config.quantum > 0 && config.depth > 0);
        config.limit = config.limit.min(config.flows.saturating_mul(config.depth));
        Self {
            config,
            hash: FlowHash::new(&mut stream),
            stream,
            perturb: Periodic::every(config.perturb),
            table: vec![NONE; config.divisor as usize],
            slots: Slots::new(config.flows, config.depth),
            tail: NONE,
            arena: Arena::new(),
            backlog: Backlog::default(),
            rehashed: Vec::new(),
        }
    }

    /// Appends `item` to its flow's queue; false when there is no room there.
    fn insert(&mut self, item: Item) -> bool {
        let bucket = self.hash.bucket(item.flow, self.config.divisor);
        let mut index = self.table[bucket as usize];
        if index == NONE {
            index = self.slots.first[0];
            if index == NONE {
                return false;
            }
            self.table[bucket as usize] = index;
            self.slots.get(index).bucket = bucket;
        } else if self.slots.get(index).queue.packets >= self.config.depth {
            return false;
        }
        self.slots.unlink(index);
        self.arena.push_back(&mut self.slots.get(index).queue, item, ());
        self.slots.link(index);
        self.backlog.bytes += u64::from(item.len);
        self.backlog.packets += 1;
        if self.slots.get(index).queue.packets == 1 {
            self.activate(index);
        }
        true
    }

    /// A queue that was empty joins the ring at the end.
    fn activate(&mut self, index: u32) {
        let after = if self.tail == NONE { index } else { self.slots.get(self.tail).next };
        let quantum = i64::from(self.config.quantum);
        let slot = self.slots.get(index);
        slot.next = after;
        slot.allotment = quantum;
        if self.tail != NONE {
            self.slots.get(self.tail).next = index;
        }
        self.tail = index;
    }

    /// The ring's first queue, now empty, leaves it and its bucket.
    fn retire_first(&mut self, index: u32) {
        let &mut Slot { bucket, next, .. } = self.slots.get(index);
        self.table[bucket as usize] = NONE;
        if next == index {
            self.tail = NONE;
        } else {
            self.slots.get(self.tail).next = next;
        }
    }

    fn take(&mut self, index: u32, newest: bool) -> Option<Item> {
        self.slots.unlink(index);
        let queue = &mut self.slots.all[index as usize].queue;
        let popped = if newest { self.arena.pop_back(queue) } else { self.arena.pop_front(queue) };
        self.slots.link(index);
        let (item, ()) = popped?;
        self.backlog.bytes -= u64::from(item.len);
        self.backlog.packets -= 1;
        Some(item)
    }

    fn drop_from_longest<S: Sink>(&mut self, sink: &mut S) -> Option<Item> {
        let index = if self.slots.longest > 1 {
            self.slots.first[self.slots.longest]
        } else {
            // Every queue holds one packet: the one whose turn it is goes.
            let first = self.slots.get(self.tail).next;
            self.retire_first(first);
            first
        };
        let item = self.take(index, true)?;
        sink.dropped(item, DropReason::Overlimit);
        Some(item)
    }

    /// Draws the hash anew, once however many periods have passed: nothing has looked at those in between.
    #[cold]
    fn rehash<S: Sink>(&mut self, sink: &mut S) {
        self.hash = FlowHash::new(&mut self.stream);
        let mut moved = std::mem::take(&mut self.rehashed);
        for index in 0..self.config.flows {
            if self.slots.get(index).queue.packets > 0 {
                let bucket = self.slots.get(index).bucket;
                self.table[bucket as usize] = NONE;
            }
            while let Some(item) = self.take(index, false) {
                moved.push(item);
            }
        }
        self.tail = NONE;
        for item in moved.drain(..) {
            if !self.insert(item) {
                sink.dropped(item, DropReason::Overlimit);
            }
        }
        self.rehashed = moved;
    }
}

impl Qdisc for Sfq {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        if self.perturb.due(now) > 0 {
            self.rehash(sink);
        }
        if !self.insert(item) {
            sink.dropped(item, DropReason::Overlimit);
            Verdict::Dropped(DropReason::Overlimit)
        } else if self.backlog.packets > self.config.limit {
            match self.drop_from_longest(sink) {
                Some(dropped) if dropped.packet == item.packet => {
                    Verdict::Dropped(DropReason::Overlimit)
                }
                Some(_) => Verdict::DroppedOther(DropReason::Overlimit),
                None => Verdict::Queued,
            }
        } else {
            Verdict::Queued
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        if self.perturb.due(now) > 0 {
            self.rehash(sink);
        }
        if self.tail == NONE {
            return Dequeue::Empty;
        }
        let quantum = i64::from(self.config.quantum);
        loop {
            let index = self.slots.get(self.tail).next;
            let slot = self.slots.get(index);
            if slot.allotment <= 0 {
                slot.allotment += quantum;
                self.tail = index;
                continue;
            }
            let Some(item) = self.take(index, false) else {
                unreachable!("a queue in the ring is never empty");
            };
            let slot = self.slots.get(index);
            if slot.queue.packets == 0 {
                self.retire_first(index);
            } else {
                slot.allotment -= i64::from(item.len);
            }
            return Dequeue::Packet(item);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Sfq};
    use crate::contract::{Dequeue, DropReason, Item, PacketId, Qdisc};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant, Stream};

    fn frame(flow: u32, id: u32, len: u32) -> Item {
        Item { packet: PacketId(id), len, flow, ..Item::default() }
    }

    fn discipline(config: Config) -> Sfq {
        Sfq::new(config, Stream::named(1, "sfq"))
    }

    fn served(qdisc: &mut Sfq, now: Instant, log: &mut Log) -> Vec<u32> {
        std::iter::from_fn(|| match qdisc.dequeue(now, log) {
            Dequeue::Packet(item) => Some(item.packet.0),
            Dequeue::Wait(_) | Dequeue::Empty => None,
        })
        .collect()
    }

    #[test]
    fn backlogged_flows_get_equal_bytes_whatever_their_packet_size() {
        let mut qdisc = discipline(Config { limit: 1000, ..Config::default() });
        let mut log = Log::default();
        for id in 0..100 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
            let _ = qdisc.enqueue(frame(2, 1000 + id, 757), Instant::ZERO, &mut log);
        }
        let mut bytes = [0_u32; 3];
        for _ in 0..90 {
            if let Dequeue::Packet(item) = qdisc.dequeue(Instant::ZERO, &mut log) {
                bytes[item.flow as usize] += item.len;
            }
        }
        assert_eq!(bytes[1], bytes[2]);
    }

    #[test]
    fn a_new_flow_waits_for_its_turn() {
        let mut qdisc = discipline(Config::default());
        let mut log = Log::default();
        for id in 0..3 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        let _ = qdisc.enqueue(frame(2, 10, 66), Instant::ZERO, &mut log);
        let _ = qdisc.enqueue(frame(2, 11, 66), Instant::ZERO, &mut log);
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [0, 10, 11, 1, 2]);
    }

    #[test]
    fn overflow_takes_the_newest_of_the_longest_queue() {
        let mut qdisc = discipline(Config { limit: 5, ..Config::default() });
        let mut log = Log::default();
        for id in 0..4 {
            let _ = qdisc.enqueue(frame(1, id, 1000), Instant::ZERO, &mut log);
        }
        for id in 10..13 {
            let _ = qdisc.enqueue(frame(2, id, 1000), Instant::ZERO, &mut log);
        }
        // The sixth packet finds flow 1 longest, with four; after that packet 12 makes both three
        // long, and flow 2 became so last.
        let dropped: Vec<u32> = log.drops.iter().map(|(packet, _)| packet.0).collect();
        assert_eq!(dropped, [3, 12]);
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [0, 1, 10, 11, 2]);
    }

    #[test]
    fn when_every_queue_holds_one_packet_the_first_in_turn_goes() {
        let mut qdisc = discipline(Config { limit: 2, divisor: 1 << 20, ..Config::default() });
        let mut log = Log::default();
        for flow in 0..3 {
            let _ = qdisc.enqueue(frame(flow, flow, 1000), Instant::ZERO, &mut log);
        }
        assert_eq!(log.drops, [(PacketId(0), DropReason::Overlimit)]);
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [1, 2]);
    }

    #[test]
    fn a_queue_is_no_deeper_than_its_depth() {
        let mut qdisc = discipline(Config { depth: 3, ..Config::default() });
        let mut log = Log::default();
        for id in 0..5 {
            let _ = qdisc.enqueue(frame(1, id, 1000), Instant::ZERO, &mut log);
        }
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [0, 1, 2]);
    }

    #[test]
    fn perturbation_separates_flows_that_shared_a_queue_and_keeps_their_order() {
        let config = Config { divisor: 2, perturb: Duration::from_secs(10), ..Config::default() };
        let mut log = Log::default();
        let mut seen = [false; 2];
        let mut qdisc = discipline(config);
        for round in 0..20 {
            let now = Instant::ZERO + Duration::from_secs(round * 10);
            for id in 0..3 {
                let _ = qdisc.enqueue(frame(1, id, 1514), now, &mut log);
                let _ = qdisc.enqueue(frame(2, 10 + id, 1514), now, &mut log);
            }
            // The hash changes while they wait.
            let order = served(&mut qdisc, now + Duration::from_secs(10), &mut log);
            let flow = |flow: u32| order.iter().copied().filter(move |id| id / 10 == flow);
            assert!(flow(0).eq(0..3) && flow(1).eq(10..13), "{order:?}");
            seen[usize::from(order == [0, 10, 1, 11, 2, 12])] = true;
        }
        assert_eq!(seen, [true, true]);
    }
}
