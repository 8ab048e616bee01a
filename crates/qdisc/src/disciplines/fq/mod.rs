//! Fair queue (`sch_fq.c`): deficit round robin over flows, each of which may be paced.
//!
//! ```text
//!   idle ──packet──▶ new ──quantum used up, or emptied──▶ old ──emptied──▶ idle
//!                     │                                    │ ▲
//!                     └────────── not due yet ──▶ paced ◀──┘ │
//!                                                   └── due ─┘
//! ```
//!
//! As Linux 6.1 does it:
//! - a flow's first credit is `initial_quantum`; it sends while its credit is above zero, and **at** zero moves to the end of the
//!   old list with one more quantum. A flow that was idle for longer than `refill_delay` (whole ticks of 250 Hz) has at least a
//!   quantum again;
//! - a packet of a flow that has `flow_limit` packets waiting is dropped, whatever else is queued;
//! - with `maxrate` each packet moves its flow's next one by its length at that rate, at most a second, less what it was late itself
//!   (at most half): TCP's segments, which carry a departure time, are paced one by one;
//! - `ce_threshold` marks what leaves later than that after it was due.
//!
//! It is not TCP's pacer: a sender's stack computes departure times, and where fq stands behind another host's they have
//! come when a packet arrives. A departure time is the arrival here; no packet is beyond a horizon.
//!
//! Departures: packets without a departure time (UDP's) are paced like TCP's, and not by quanta; the timer fires on time, and not up
//! to `timer_slack` later. Forwarded packets have no socket: flows are told apart by `orphan_mask` + 1 values of a hash.

pub mod spec;

use crate::arena::{Arena, Queue};
use crate::change::drain;
use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::flow_hash::FlowHash;
use crate::periodic::{jiffies, jiffies_of};
use dragstrip_units::{Duration, Instant, Rate, Stream};
pub use spec::FqSpec;
use std::collections::{BTreeSet, VecDeque};

/// An fq as `tc qdisc add ... fq` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait.
    pub limit: u32,
    /// Packets of a flow that may wait.
    pub flow_limit: u32,
    /// Bytes that a flow may send in turn; at least one.
    pub quantum: u32,
    /// Bytes that a flow may send at its beginning.
    pub initial_quantum: u32,
    /// Rate of each flow; none: no pacing.
    pub maxrate: Option<Rate>,
    /// Flows that are told apart; at least one.
    pub flows: u32,
    /// Idle time after which a flow has a quantum again.
    pub refill_delay: Duration,
    /// Mark what leaves so late.
    pub ce_threshold: Option<Duration>,
}

/// List that a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    Listed,
    Paced,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: Queue,
    credit: i64,
    place: Place,
    /// Before this nothing leaves (`time_next_packet`).
    next: Instant,
    /// Time at which it became idle.
    idle_since: Instant,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Fq {
    config: Config,
    hash: FlowHash,
    arena: Arena<Instant>,
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Flows that are not due, by when they are; of equals who came first.
    paced: BTreeSet<(Instant, u64, u32)>,
    pacings: u64,
    backlog: Backlog,
}

/// A gap is cut to a second: the rate may have changed by then.
const GAP_MAX: Duration = Duration::from_secs(1);

impl Fq {
    /// Empty queues; which flows share one follows from `stream`.
    ///
    /// # Panics
    /// Without a flow or a quantum.
    #[must_use]
    pub fn new(config: Config, stream: &mut Stream) -> Self {
        assert!(config.flows > 0 && config.quantum > 0);
        let flow = Flow {
            queue: Queue::EMPTY,
            credit: i64::from(config.initial_quantum),
            place: Place::Idle,
            next: Instant::ZERO,
            idle_since: Instant::ZERO,
        };
        Self {
            config,
            hash: FlowHash::new(stream),
            arena: Arena::new(),
            flows: vec![flow; config.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            paced: BTreeSet::new(),
            pacings: 0,
            backlog: Backlog::default(),
        }
    }

    /// Flows that have become due join the old ones (`fq_check_throttled`).
    fn release_due(&mut self, now: Instant) {
        while let Some(&(due, _, index)) = self.paced.first() {
            if due > now {
                return;
            }
            self.paced.pop_first();
            self.flows[index as usize].place = Place::Listed;
            self.old.push_back(index);
        }
    }

    /// Sets the time at which the flow's next packet may follow one of `len` that was due at `due` and leaves now.
    fn pace(&mut self, index: u32, len: u32, now: Instant) {
        let Some(rate) = self.config.maxrate else { return };
        let flow = &mut self.flows[index as usize];
        let gap = rate.time_for_floor(u64::from(len), 0).0.min(GAP_MAX).as_nanos();
        let late = if flow.next == Instant::ZERO { 0 } else { now.since(flow.next).as_nanos() };
        flow.next = now + Duration::from_nanos(gap - late.min(gap / 2));
    }
}

impl Qdisc for Fq {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        let index = self.hash.bucket(item.flow, self.config.flows);
        let flow = &mut self.flows[index as usize];
        let full = self.backlog.packets >= self.config.limit;
        if full || flow.queue.packets >= self.config.flow_limit {
            sink.dropped(item, DropReason::Overlimit);
            return Verdict::Dropped(DropReason::Overlimit);
        }
        if flow.place == Place::Idle {
            flow.place = Place::Listed;
            self.new.push_back(index);
            let refill = jiffies_of(self.config.refill_delay);
            if jiffies(now) > jiffies(flow.idle_since) + refill {
                flow.credit = flow.credit.max(i64::from(self.config.quantum));
            }
        }
        self.arena.push_back(&mut flow.queue, item, now);
        self.backlog.bytes += u64::from(item.len);
        self.backlog.packets += 1;
        Verdict::Queued
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        if self.backlog.packets == 0 {
            return Dequeue::Empty;
        }
        self.release_due(now);
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&index) = list.front() else {
                return self.paced.first().map_or(Dequeue::Empty, |&(due, ..)| Dequeue::Wait(due));
            };
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let Some((_, arrived)) = self.arena.front(&flow.queue) else {
                list.pop_front();
                // A pass through the old list: nobody stays new by sending one packet at a time.
                if from_new && !self.old.is_empty() {
                    self.old.push_back(index);
                } else {
                    flow.place = Place::Idle;
                    flow.idle_since = now;
                }
                continue;
            };
            let due = arrived.max(flow.next);
            if due > now {
                list.pop_front();
                flow.next = due;
                flow.place = Place::Paced;
                self.paced.insert((due, self.pacings, index));
                self.pacings += 1;
                continue;
            }
            let Some((mut item, _)) = self.arena.pop_front(&mut flow.queue) else { continue };
            flow.credit -= i64::from(item.len);
            self.backlog.bytes -= u64::from(item.len);
            self.backlog.packets -= 1;
            if self.config.ce_threshold.is_some_and(|threshold| now.since(due) > threshold) {
                item.mark(sink);
            }
            self.pace(index, item.len, now);
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
    use super::Fq;
    use crate::QdiscSpec;
    use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
    use crate::disciplines::{Discipline, Streams};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant};

    fn fq(words: &str) -> Box<Fq> {
        let discipline =
            QdiscSpec::parse(&format!("fq {words}")).unwrap().build(&Streams::of_link(1, "test"));
        let Discipline::Fq(fq) = discipline else { panic!("fq") };
        fq
    }

    fn frame(flow: u32, id: u32) -> Item {
        Item { packet: PacketId(id), len: 1514, flow, ecn: Ecn::Ect0, ..Item::default() }
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// Packets and when they leave, in microseconds, asked for whenever something may leave.
    fn served(fq: &mut Fq, mut now: Instant, log: &mut Log) -> Vec<(u32, u64)> {
        let mut departures = Vec::new();
        loop {
            match fq.dequeue(now, log) {
                Dequeue::Packet(item) => departures.push((item.packet.0, now.as_micros_floor())),
                Dequeue::Wait(until) => now = until,
                Dequeue::Empty => return departures,
            }
        }
    }

    fn fill(fq: &mut Fq, flow: u32, ids: std::ops::Range<u32>, now: Instant, log: &mut Log) {
        for id in ids {
            let _ = fq.enqueue(frame(flow, id), now, log);
        }
    }

    /// Seen on the kernel with departure times: one every 1.2112 ms, and every 24.224 ms at 500 kbit/s.
    #[test]
    fn maxrate_paces_each_packet_of_a_flow_from_its_first_on() {
        for (words, gap) in [("maxrate 10mbit", 1_211.2), ("maxrate 500kbit", 24_224.0)] {
            let (mut fq, mut log) = (fq(words), Log::default());
            fill(&mut fq, 1, 0..24, at(0), &mut log);
            let departure_times: Vec<u64> =
                served(&mut fq, at(0), &mut log).iter().map(|one| one.1).collect();
            let expected: Vec<u64> = (0..24).map(|n| (f64::from(n) * gap) as u64).collect();
            assert_eq!(departure_times, expected);
        }
        let (mut fq, mut log) = (fq("maxrate 10mbit nopacing"), Log::default());
        fill(&mut fq, 1, 0..24, at(0), &mut log);
        assert!(served(&mut fq, at(0), &mut log).iter().all(|one| one.1 == 0));
    }

    /// A packet that leaves late does not make the next one late too, unless by more than half a gap.
    #[test]
    fn lateness_is_made_good() {
        let (mut fq, mut log) = (fq("maxrate 8mbit"), Log::default());
        fill(&mut fq, 1, 0..4, at(0), &mut log);
        // 1514 us each. The second is 300 us late, the third a whole second.
        assert!(matches!(fq.dequeue(at(0), &mut log), Dequeue::Packet(_)));
        assert!(matches!(fq.dequeue(at(1_814), &mut log), Dequeue::Packet(_)));
        assert_eq!(fq.dequeue(at(1_814), &mut log), Dequeue::Wait(at(3_028)));
        assert!(matches!(fq.dequeue(at(1_003_028), &mut log), Dequeue::Packet(_)));
        assert_eq!(fq.dequeue(at(1_003_028), &mut log), Dequeue::Wait(at(1_003_785)));
    }

    /// Ten frames are the initial quantum, then two (3028 bytes) in turn.
    #[test]
    fn a_flow_begins_with_its_initial_quantum() {
        let (mut fq, mut log) = (fq(""), Log::default());
        fill(&mut fq, 1, 0..16, at(0), &mut log);
        fill(&mut fq, 2, 100..116, at(0), &mut log);
        let departed_ids: Vec<u32> =
            served(&mut fq, at(0), &mut log).iter().map(|one| one.0).collect();
        let expected: Vec<u32> = (0..10).chain(100..110).chain([10, 11, 110, 111]).collect();
        assert_eq!(departed_ids[..24], expected);
    }

    /// 40 ms are ten ticks: more than ten must have passed.
    #[test]
    fn an_idle_flow_has_a_quantum_again_after_the_refill_delay() {
        let next = |idle_us: u64| {
            let (mut fq, mut log) = (fq("initial_quantum 1614 quantum 3028"), Log::default());
            // The second flow's packet lets the first one become idle, with 100 bytes of credit.
            fill(&mut fq, 1, 0..1, at(0), &mut log);
            fill(&mut fq, 2, 10..11, at(0), &mut log);
            served(&mut fq, at(0), &mut log);
            fill(&mut fq, 1, 1..4, at(idle_us), &mut log);
            fill(&mut fq, 3, 30..33, at(idle_us), &mut log);
            let departures = served(&mut fq, at(idle_us), &mut log);
            departures.iter().take(3).map(|one| one.0).collect::<Vec<_>>()
        };
        assert_eq!(next(43_999), [1, 30, 31]);
        assert_eq!(next(44_000), [1, 2, 30]);
    }

    #[test]
    fn a_flow_has_a_limit_of_its_own() {
        let (mut fq, mut log) = (fq("flow_limit 5 limit 8"), Log::default());
        fill(&mut fq, 1, 0..9, at(0), &mut log);
        fill(&mut fq, 2, 10..19, at(0), &mut log);
        let dropped: Vec<u32> = log.drops.iter().map(|(packet, _)| packet.0).collect();
        assert_eq!(dropped, [5, 6, 7, 8, 13, 14, 15, 16, 17, 18]);
        assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Overlimit));
        let over = Verdict::Dropped(DropReason::Overlimit);
        assert_eq!(fq.enqueue(frame(3, 20), at(0), &mut log), over);
    }

    #[test]
    fn what_leaves_later_than_the_threshold_is_marked() {
        let (mut fq, mut log) = (fq("ce_threshold 4ms"), Log::default());
        fill(&mut fq, 1, 0..3, at(0), &mut log);
        for us in [0, 4_000, 4_001] {
            assert!(matches!(fq.dequeue(at(us), &mut log), Dequeue::Packet(_)));
        }
        assert_eq!(log.marks, [PacketId(2)]);
        // A paced packet is not late while it is held back.
        let (mut fq, mut log) =
            (super::tests::fq("ce_threshold 4ms maxrate 500kbit"), Log::default());
        fill(&mut fq, 1, 0..9, at(0), &mut log);
        served(&mut fq, at(0), &mut log);
        assert!(log.marks.is_empty());
    }
}
