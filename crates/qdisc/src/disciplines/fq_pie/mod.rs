//! Flow queueing with PIE (`sch_fq_pie.c`): FQ-CoDel's queues (RFC 8290), each under PIE (RFC 8033).
//!
//! Packets are hashed by flow into queues, and deficit round robin serves them, those that have just become active first. Each
//! queue has a probability of its own, judged by its own delay and backlog, so that the rule which spares two frames holds for
//! each.
//!
//! As Linux 6.1 does it:
//! - a queue is visited while its deficit is above zero; **at** zero it moves to the end of the old list with one more quantum;
//! - with `ecn` a packet that may be marked is, while its queue's probability is at most `ecn_prob` percent (pie: 10);
//! - one timer moves the probabilities of all queues, empty ones too, 2048 at a time; each further 2048 take a tick of 250 Hz,
//!   and so the period of more queues is longer;
//! - `memory_limit` is counted and never enforced.
//!
//! Departures: as pie's, and the further 2048 queues have their updates at the same instants as the first.

pub mod spec;

use crate::arena::{Arena, Queue};
use crate::change::drain;
use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::pie::{Controller, Params, Ticks, timer_period};
use crate::flow_hash::FlowHash;
use crate::periodic::Periodic;
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::FqPieSpec;
use std::collections::VecDeque;

/// An fq_pie as `tc qdisc add ... fq_pie` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait.
    pub limit: u32,
    /// Number of queues; at least one.
    pub flows: u32,
    /// Bytes a queue may send in turn; at least one.
    pub quantum: u32,
    /// Mark up to this probability, in percent.
    pub ecn_prob: u32,
    /// The controllers' parameters.
    pub params: Params,
    /// Time between updates as asked for.
    pub tupdate: Duration,
}

/// Queues that one firing of the timer updates.
const UPDATES: u32 = 2_048;
/// A tick of 250 Hz.
const TICK: Duration = Duration::from_millis(4);

/// Time between two updates of one queue.
pub(crate) fn update_period(tupdate: Duration, flows: u32) -> Duration {
    let period = timer_period(tupdate);
    if period == Duration::ZERO {
        return period;
    }
    let more = u64::from(flows.saturating_sub(1) / UPDATES);
    period + Duration::from_nanos(more * TICK.as_nanos())
}

#[derive(Clone, Debug)]
struct Flow {
    queue: Queue,
    deficit: i64,
    controller: Controller,
    /// Firings of the timer that its controller has seen.
    updates: u64,
    active: bool,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct FqPie {
    config: Config,
    hash: FlowHash,
    timer: Periodic,
    /// Firings so far.
    updates: u64,
    arena: Arena<Ticks>,
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    backlog: Backlog,
    stream: Stream,
}

impl FqPie {
    /// Empty queues; which flows share one, and which packets are dropped, follows from `stream`.
    ///
    /// # Panics
    /// Without a queue or a quantum.
    #[must_use]
    pub fn new(config: Config, mut stream: Stream) -> Self {
        assert!(config.flows > 0 && config.quantum > 0);
        let flow = Flow {
            queue: Queue::EMPTY,
            deficit: 0,
            controller: Controller::new(),
            updates: 0,
            active: false,
        };
        Self {
            config,
            hash: FlowHash::new(&mut stream),
            timer: Periodic::every(update_period(config.tupdate, config.flows)),
            updates: 0,
            arena: Arena::new(),
            flows: vec![flow; config.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            stream,
        }
    }

    /// Makes up for the updates of one queue, whose backlog has not changed since.
    fn catch_up(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let missed = self.updates - flow.updates;
        flow.controller.update_times(missed, &self.config.params, flow.queue.bytes);
        flow.updates = self.updates;
    }
}

impl Qdisc for FqPie {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.updates += self.timer.due(now);
        let index = self.hash.bucket(item.flow, self.config.flows);
        self.catch_up(index);
        let Config { limit, quantum, ecn_prob, params, .. } = self.config;
        let (flow, stream) = (&mut self.flows[index as usize], &mut self.stream);
        let mut verdict = Verdict::Queued;
        let mut reason = (self.backlog.packets >= limit).then_some(DropReason::Overlimit);
        let bytes = flow.queue.bytes;
        if reason.is_none()
            && flow.controller.condemns(&params, bytes, item.len, || stream.next_u64())
        {
            if flow.controller.may_mark_up_to(&params, ecn_prob) && item.mark(sink) {
                verdict = Verdict::Marked;
            } else {
                reason = Some(DropReason::Aqm);
            }
        }
        if let Some(reason) = reason {
            flow.controller.has_dropped();
            sink.dropped(item, reason);
            return Verdict::Dropped(reason);
        }
        self.arena.push_back(&mut flow.queue, item, Ticks::of(now));
        self.backlog.bytes += u64::from(item.len);
        self.backlog.packets += 1;
        if !flow.active {
            flow.active = true;
            flow.deficit = i64::from(quantum);
            self.new.push_back(index);
        }
        verdict
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, _sink: &mut S) -> Dequeue {
        self.updates += self.timer.due(now);
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&index) = list.front() else { return Dequeue::Empty };
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if flow.queue.packets == 0 {
                list.pop_front();
                // RFC 8290 §4.2: nobody stays new by sending one packet at a time.
                if from_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.active = false;
                }
                continue;
            }
            self.catch_up(index);
            let flow = &mut self.flows[index as usize];
            let Some((item, arrived)) = self.arena.pop_front(&mut flow.queue) else { continue };
            flow.deficit -= i64::from(item.len);
            let (params, left) = (&self.config.params, flow.queue.bytes);
            flow.controller.has_left(params, item.len, arrived, Ticks::of(now), left);
            self.backlog.bytes -= u64::from(item.len);
            self.backlog.packets -= 1;
            return Dequeue::Packet(item);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        let Change::LimitPackets(limit) = change else { return };
        self.config.limit = limit;
        drain(self, limit, now, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::{FqPie, update_period};
    use crate::QdiscSpec;
    use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
    use crate::disciplines::{Discipline, Streams};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant};

    fn fq_pie(words: &str) -> Box<FqPie> {
        let spec = QdiscSpec::parse(&format!("fq_pie {words}")).unwrap();
        let discipline = spec.build(&Streams::of_link(1, "test"));
        let Discipline::FqPie(fq_pie) = discipline else { panic!("fq_pie") };
        fq_pie
    }

    fn frame(flow: u32, id: u32, ecn: Ecn) -> Item {
        Item { packet: PacketId(id), len: 1514, flow, ecn, ..Item::default() }
    }

    #[test]
    fn further_queues_lengthen_the_period() {
        let ms = |flows| update_period(Duration::from_millis(15), flows).as_nanos() / 1_000_000;
        assert_eq!([1024, 2048, 2049, 4096, 65_536].map(ms), [20, 20, 24, 24, 144]);
        assert_eq!(update_period(Duration::ZERO, 4096), Duration::ZERO);
    }

    /// Returns the verdicts on the packets of two flows in a minute on 10 Mbit/s, of which the first sends three times
    /// for two that leave and the second keeps to a tenth.
    fn minute(words: &str, ecn: Ecn) -> (Vec<Verdict>, Vec<Verdict>) {
        let (mut qdisc, mut log) = (fq_pie(words), Log::default());
        let (mut greedy, mut modest) = (Vec::new(), Vec::new());
        let mut next_left = 0;
        for id in 0..74_000_u32 {
            let us = u64::from(id) * 807;
            let now = Instant::ZERO + Duration::from_micros(us);
            while next_left <= us {
                let then = Instant::ZERO + Duration::from_micros(next_left);
                let _ = qdisc.dequeue(then, &mut log);
                next_left += 1_211;
            }
            greedy.push(qdisc.enqueue(frame(1, id, ecn), now, &mut log));
            if id % 15 == 0 {
                modest.push(qdisc.enqueue(frame(2, id, ecn), now, &mut log));
            }
        }
        (greedy, modest)
    }

    /// A flow that never has two frames queued loses nothing, however much the other one is dropped from.
    #[test]
    fn only_the_flow_that_queues_is_dropped_from() {
        let dropped = Verdict::Dropped(DropReason::Aqm);
        let (greedy, modest) = minute("", Ecn::NotEct);
        // It has nine tenths of the line for one and a half of it: 40 % too many.
        let late = &greedy[37_000..];
        let share = late.iter().filter(|&&one| one == dropped).count() as f64 / late.len() as f64;
        assert!((share - 0.4).abs() < 0.01, "{share}");
        assert!(modest.iter().all(|&one| one == Verdict::Queued));
    }

    #[test]
    fn ecn_marks_up_to_its_own_probability() {
        let first_drop = |percent: u32| {
            let (greedy, _) = minute(&format!("ecn ecn_prob {percent}"), Ecn::Ect1);
            let last = greedy.iter().rposition(|&one| one == Verdict::Marked).unwrap();
            let dropped = Verdict::Dropped(DropReason::Aqm);
            let first = greedy.iter().position(|&one| one == dropped).unwrap();
            assert!(last < first);
            first
        };
        assert!(first_drop(10) < first_drop(60));
        let (none, _) = minute("ecn", Ecn::NotEct);
        assert!(!none.contains(&Verdict::Marked));
    }

    #[test]
    fn a_full_frame_uses_up_a_quantum_and_the_flows_alternate() {
        let (mut qdisc, mut log) = (fq_pie("limit 6"), Log::default());
        for id in 0..3 {
            let _ = qdisc.enqueue(frame(1, id, Ecn::NotEct), Instant::ZERO, &mut log);
        }
        for id in 10..14 {
            let _ = qdisc.enqueue(frame(2, id, Ecn::NotEct), Instant::ZERO, &mut log);
        }
        assert_eq!(log.drops, [(PacketId(13), DropReason::Overlimit)]);
        let departed_ids: Vec<u32> =
            std::iter::from_fn(|| match qdisc.dequeue(Instant::ZERO, &mut log) {
                Dequeue::Packet(item) => Some(item.packet.0),
                Dequeue::Wait(_) | Dequeue::Empty => None,
            })
            .collect();
        assert_eq!(departed_ids, [0, 10, 1, 11, 2, 12]);
    }
}
