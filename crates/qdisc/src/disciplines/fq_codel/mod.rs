//! Flow queueing with CoDel (RFC 8290; `sch_fq_codel.c`).
//!
//! Packets are hashed by flow into queues, each under CoDel. Deficit round robin serves them,
//! flows that have just become active first:
//!
//! ```text
//!   empty ──packet──▶ new ──quantum used up, or emptied──▶ old ──emptied──▶ empty
//!                                                  └─▶ (round robin) ─┘
//! ```
//!
//! As Linux does it:
//! - a queue is visited while its deficit is above zero; **at** zero it moves to the end of the old
//!   list with one more quantum, so a new flow sends one full frame per round;
//! - CoDel's "at most one MTU left" rule looks at the whole discipline's backlog, not at the queue's;
//! - over the limit (packets or memory) the queue with most bytes loses packets from its head, up to
//!   `drop_batch` or half its bytes, and its CoDel count grows by as many;
//! - the control law's state stays with the queue when it empties.
//!
//! Approximation: memory is charged as [`truesize`], which depends on the driver: 2304 bytes for a full frame. The default limits (10240 packets, 32 MiB) make packets the tighter bound then, as they
//! mostly do in Linux. The hash is not the kernel's siphash of the 5-tuple: like it, a new seed
//! gives new collisions.

pub mod spec;

use crate::arena::{Arena, Queue};
use crate::change::drain;
use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::codel::{Controller, Params, Source, Time};
use crate::flow_hash::FlowHash;
use crate::truesize::truesize;
use dragstrip_units::{Instant, Stream};
pub use spec::FqCodelSpec;

/// An fq_codel as `tc qdisc add ... fq_codel` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait.
    pub limit: u32,
    /// Bytes of `truesize` that may wait.
    pub memory_limit: u64,
    /// Number of queues; at least one.
    pub flows: u32,
    /// Bytes a queue may send in turn.
    pub quantum: u32,
    /// Most packets dropped at once on overflow; at least one.
    pub drop_batch: u32,
    /// The control law's parameters.
    pub params: Params,
}

impl Default for Config {
    /// Defaults of Linux and tc on Ethernet: 10240 packets, 32 MiB, 1024 queues, quantum 1514, batches of
    /// 64, ECN on.
    fn default() -> Self {
        Self {
            limit: 10_240,
            memory_limit: 32 << 20,
            flows: 1024,
            quantum: 1514,
            drop_batch: 64,
            params: Params { ecn: true, ..Params::default() },
        }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Flow {
    queue: Queue,
    deficit: i64,
    controller: Controller,
    /// True when it is in one of the two lists ...
    active: bool,
    /// ... and who is next there.
    next: u32,
}

/// A list of flows, linked through [`Flow::next`].
#[derive(Clone, Copy, Debug)]
struct FlowList {
    head: u32,
    tail: u32,
}

impl FlowList {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    fn push_back(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            flows[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    fn pop_front(&mut self, flows: &[Flow]) -> Option<u32> {
        let index = self.head;
        self.head = flows.get(index as usize)?.next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(index)
    }
}

/// State shared by all flows.
#[derive(Clone, Debug)]
struct Pool {
    arena: Arena<Time>,
    backlog: Backlog,
    memory: u64,
}

impl Pool {
    fn pop(&mut self, queue: &mut Queue) -> Option<(Item, Time)> {
        let (item, enqueued) = self.arena.pop_front(queue)?;
        self.backlog.bytes -= u64::from(item.len);
        self.backlog.packets -= 1;
        self.memory -= truesize(item.len);
        Some((item, enqueued))
    }
}

/// One flow's queue as its CoDel sees it.
struct View<'a> {
    pool: &'a mut Pool,
    queue: &'a mut Queue,
}

impl Source for View<'_> {
    fn pop(&mut self) -> Option<(Item, Time)> {
        self.pool.pop(self.queue)
    }

    fn bytes(&self) -> u64 {
        self.pool.backlog.bytes
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct FqCodel {
    config: Config,
    hash: FlowHash,
    flows: Vec<Flow>,
    new: FlowList,
    old: FlowList,
    pool: Pool,
}

impl FqCodel {
    /// Empty queues; which flows share one follows from `stream`.
    ///
    /// # Panics
    /// Without a queue, without a quantum or with a batch of nothing.
    #[must_use]
    pub fn new(config: Config, stream: &mut Stream) -> Self {
        assert!(config.flows > 0 && config.quantum > 0 && config.drop_batch > 0);
        let flow = Flow {
            queue: Queue::EMPTY,
            deficit: 0,
            controller: Controller::new(),
            active: false,
            next: NONE,
        };
        Self {
            config,
            hash: FlowHash::new(stream),
            flows: vec![flow; config.flows as usize],
            new: FlowList::EMPTY,
            old: FlowList::EMPTY,
            pool: Pool { arena: Arena::new(), backlog: Backlog::default(), memory: 0 },
        }
    }

    /// The queue with most bytes (the first of equals) loses packets from its head; what that means for `newest`.
    fn drop_from_fattest<S: Sink>(&mut self, newest: Item, sink: &mut S) -> Verdict {
        let mut fattest = 0;
        for (index, flow) in self.flows.iter().enumerate() {
            if flow.queue.bytes > self.flows[fattest].queue.bytes {
                fattest = index;
            }
        }
        let flow = &mut self.flows[fattest];
        let half = flow.queue.bytes / 2;
        let mut bytes = 0;
        let mut dropped = 0;
        let mut verdict = Verdict::DroppedOther(DropReason::Overlimit);
        while let Some((item, _)) = self.pool.pop(&mut flow.queue) {
            sink.dropped(item, DropReason::Overlimit);
            if item.packet == newest.packet {
                verdict = Verdict::Dropped(DropReason::Overlimit);
            }
            bytes += u64::from(item.len);
            dropped += 1;
            if dropped >= self.config.drop_batch || bytes >= half {
                break;
            }
        }
        flow.controller.count = flow.controller.count.wrapping_add(dropped);
        verdict
    }
}

impl Qdisc for FqCodel {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        let index = self.hash.bucket(item.flow, self.config.flows);
        let flow = &mut self.flows[index as usize];
        self.pool.arena.push_back(&mut flow.queue, item, Time::of(now));
        self.pool.backlog.bytes += u64::from(item.len);
        self.pool.backlog.packets += 1;
        self.pool.memory += truesize(item.len);
        if !flow.active {
            flow.active = true;
            flow.deficit = i64::from(self.config.quantum);
            self.new.push_back(&mut self.flows, index);
        }
        if self.pool.backlog.packets > self.config.limit
            || self.pool.memory > self.config.memory_limit
        {
            return self.drop_from_fattest(item, sink);
        }
        Verdict::Queued
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        loop {
            let from_new = self.new.head != NONE;
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = list.head;
            let Some(flow) = self.flows.get_mut(index as usize) else {
                return Dequeue::Empty;
            };
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                list.pop_front(&self.flows);
                self.old.push_back(&mut self.flows, index);
                continue;
            }
            let mut view = View { pool: &mut self.pool, queue: &mut flow.queue };
            if let Some(item) = flow.controller.dequeue(&mut view, &self.config.params, now, sink) {
                flow.deficit -= i64::from(item.len);
                return Dequeue::Packet(item);
            }
            // RFC 8290 §4.2: a new queue that empties goes through the old list once, so that it
            // cannot stay ahead of the others by sending one packet at a time.
            list.pop_front(&self.flows);
            if from_new && self.old.head != NONE {
                self.old.push_back(&mut self.flows, index);
            } else {
                self.flows[index as usize].active = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.pool.backlog
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        let Change::LimitPackets(limit) = change else { return };
        self.config.limit = limit;
        drain(self, limit, now, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, FqCodel};
    use crate::contract::{Dequeue, DropReason, Item, PacketId, Qdisc};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant, Stream};

    fn frame(flow: u32, id: u32, len: u32) -> Item {
        Item { packet: PacketId(id), len, flow, ..Item::default() }
    }

    fn discipline(config: Config) -> FqCodel {
        FqCodel::new(config, &mut Stream::named(1, "fq_codel"))
    }

    fn served(qdisc: &mut FqCodel, now: Instant, log: &mut Log) -> Vec<u32> {
        std::iter::from_fn(|| match qdisc.dequeue(now, log) {
            Dequeue::Packet(item) => Some(item.packet.0),
            Dequeue::Wait(_) | Dequeue::Empty => None,
        })
        .collect()
    }

    #[test]
    fn a_full_frame_uses_up_a_new_flows_quantum_and_the_flows_then_alternate() {
        let mut qdisc = discipline(Config::default());
        let mut log = Log::default();
        for id in 0..3 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        for id in 10..13 {
            let _ = qdisc.enqueue(frame(2, id, 1514), Instant::ZERO, &mut log);
        }
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [0, 10, 1, 11, 2, 12]);
    }

    #[test]
    fn a_sparse_flow_goes_ahead_of_a_backlogged_one() {
        let mut qdisc = discipline(Config::default());
        let mut log = Log::default();
        for id in 0..4 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        assert_eq!(qdisc.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(frame(1, 0, 1514)));
        let _ = qdisc.enqueue(frame(2, 10, 66), Instant::ZERO, &mut log);
        assert_eq!(qdisc.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(frame(2, 10, 66)));
        // It has deficit left, but once emptied it must pass through the old list.
        assert_eq!(qdisc.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(frame(1, 1, 1514)));
        let _ = qdisc.enqueue(frame(2, 11, 66), Instant::ZERO, &mut log);
        assert_eq!(served(&mut qdisc, Instant::ZERO, &mut log), [11, 2, 3]);
    }

    #[test]
    fn an_emptied_new_flow_must_wait_for_the_old_ones() {
        let mut qdisc = discipline(Config { quantum: 2 * 1514, ..Config::default() });
        let mut log = Log::default();
        for id in 0..6 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        let _ = qdisc.enqueue(frame(2, 10, 66), Instant::ZERO, &mut log);
        let mut next = |qdisc: &mut FqCodel| match qdisc.dequeue(Instant::ZERO, &mut log) {
            Dequeue::Packet(item) => item.packet.0,
            Dequeue::Wait(_) | Dequeue::Empty => panic!("nothing left"),
        };
        let first: Vec<u32> = (0..4).map(|_| next(&mut qdisc)).collect();
        assert_eq!(first, [0, 1, 10, 2]);
        // Flow 2 is in the old list now; were it new again, 11 would go before 3.
        let _ = qdisc.enqueue(frame(2, 11, 66), Instant::ZERO, &mut Log::default());
        let rest: Vec<u32> = (0..4).map(|_| next(&mut qdisc)).collect();
        assert_eq!(rest, [3, 11, 4, 5]);
    }

    #[test]
    fn overflow_takes_up_to_a_batch_or_half_from_the_head_of_the_fattest() {
        let mut log = Log::default();
        let mut qdisc = discipline(Config { limit: 100, ..Config::default() });
        for id in 0..100 {
            let _ = qdisc.enqueue(frame(1, id, 1000), Instant::ZERO, &mut log);
        }
        let _ = qdisc.enqueue(frame(2, 1000, 1514), Instant::ZERO, &mut log);
        // Half of 100 packets, not 64.
        let dropped: Vec<u32> = log.drops.iter().map(|(packet, _)| packet.0).collect();
        assert_eq!(dropped, (0..50).collect::<Vec<_>>());
        assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
        // CoDel takes them for drops of its own.
        assert_eq!(qdisc.flows.iter().map(|flow| flow.controller.count).sum::<u32>(), 50);
        let mut log = Log::default();
        let mut qdisc = discipline(Config { limit: 100, drop_batch: 8, ..Config::default() });
        for id in 0..101 {
            let _ = qdisc.enqueue(frame(1, id, 1000), Instant::ZERO, &mut log);
        }
        assert_eq!(log.drops.len(), 8);
    }

    #[test]
    fn memory_is_a_limit_too() {
        let mut log = Log::default();
        let mut qdisc = discipline(Config { memory_limit: 10 * 2304, ..Config::default() });
        for id in 0..10 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        assert!(log.drops.is_empty());
        let _ = qdisc.enqueue(frame(1, 10, 1514), Instant::ZERO, &mut log);
        assert_eq!(log.drops.len(), 6);
    }

    #[test]
    fn a_short_queue_is_dropped_from_when_another_is_long() {
        // Flow 1 holds the whole backlog; flow 2 never holds more than one packet, but waits long.
        let mut qdisc = discipline(Config::default());
        let mut log = Log::default();
        for id in 0..5_000 {
            let _ = qdisc.enqueue(frame(1, id, 1514), Instant::ZERO, &mut log);
        }
        let mut now = Instant::ZERO;
        for round in 0..40 {
            let _ = qdisc.enqueue(frame(2, 10_000 + round, 1514), now, &mut log);
            now += Duration::from_millis(12);
            qdisc.dequeue(now, &mut log);
            qdisc.dequeue(now, &mut log);
        }
        assert!(log.drops.iter().any(|(packet, _)| packet.0 >= 10_000));
    }
}
