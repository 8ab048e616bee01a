//! Disciplines that are not registered: what the contract can say beyond today's, each in the fewest lines, driven by
//! the same model as the real ones.

use super::common::{arrivals, make};
use super::conservation::account;
use crate::arbitrary::Scope;
use crate::classes::{Classes, Filter, Filters, Match};
use crate::contract::{
    Backlog, Dequeue, DropReason, Dscp, Ecn, Item, PacketId, Qdisc, Sink, Verdict,
};
use crate::testing::Log;
use crate::{Discipline, Fifo, Peekable, QdiscSpec};
use dragstrip_units::Instant;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A FIFO whose oldest packet makes room for the newest (`pfifo_head_drop`).
#[derive(Debug, Default)]
struct HeadDrop {
    limit: usize,
    queue: VecDeque<Item>,
}

impl Qdisc for HeadDrop {
    fn enqueue<S: Sink>(&mut self, item: Item, _now: Instant, sink: &mut S) -> Verdict {
        if self.limit == 0 {
            sink.dropped(item, DropReason::Overlimit);
            return Verdict::Dropped(DropReason::Overlimit);
        }
        let oldest = (self.queue.len() == self.limit).then(|| self.queue.pop_front()).flatten();
        self.queue.push_back(item);
        oldest.map_or(Verdict::Queued, |oldest| {
            sink.dropped(oldest, DropReason::Overlimit);
            Verdict::DroppedOther(DropReason::Overlimit)
        })
    }

    fn dequeue<S: Sink>(&mut self, _now: Instant, _sink: &mut S) -> Dequeue {
        self.queue.pop_front().map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|item| u64::from(item.len)).sum();
        Backlog { bytes, packets: self.queue.len() as u32 }
    }
}

/// A FIFO that marks what finds more than `threshold` packets waiting (DCTCP's switch).
#[derive(Debug)]
struct Threshold {
    threshold: u32,
    queue: Fifo,
}

impl Qdisc for Threshold {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        let marked = self.queue.backlog().packets > self.threshold && item.mark(sink);
        match self.queue.enqueue(item, now, sink) {
            Verdict::Queued if marked => Verdict::Marked,
            verdict @ (Verdict::Queued
            | Verdict::Marked
            | Verdict::Dropped(_)
            | Verdict::DroppedOther(_)) => verdict,
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        self.queue.dequeue(now, sink)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

/// Strict priority: the first class that may send goes (`sch_prio.c`).
#[derive(Debug)]
struct Priority(Classes<Filters, Vec<Discipline>>);

impl Qdisc for Priority {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.0.enqueue(item, now, sink)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let mut earliest = None;
        for child in self.0.children_mut() {
            match child.dequeue(now, sink) {
                Dequeue::Packet(item) => return Dequeue::Packet(item),
                Dequeue::Wait(until) => {
                    earliest = Some(earliest.map_or(until, |known: Instant| known.min(until)));
                }
                Dequeue::Empty => {}
            }
        }
        earliest.map_or(Dequeue::Empty, Dequeue::Wait)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

/// Deficit round robin between classes, which looks at a packet before it takes it (`sch_drr.c`, without the list of active
/// classes).
#[derive(Debug)]
struct RoundRobin {
    classes: Classes<Filters, Vec<Peekable<Discipline>>>,
    quanta: Vec<u32>,
    deficits: Vec<u32>,
    turn: usize,
}

impl Qdisc for RoundRobin {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.classes.enqueue(item, now, sink)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        // So many rounds bring the largest packet's deficit to the smallest quantum's class.
        for _ in 0..self.quanta.len() * 100 {
            let (turn, next) = (self.turn, (self.turn + 1) % self.quanta.len());
            let child = self.classes.child_mut(turn);
            match child.peek(now, sink) {
                Dequeue::Packet(item) if item.len <= self.deficits[turn] => {
                    self.deficits[turn] -= item.len;
                    return child.dequeue(now, sink);
                }
                Dequeue::Packet(_) => {
                    self.deficits[next] += self.quanta[next];
                }
                Dequeue::Wait(_) | Dequeue::Empty => {
                    self.deficits[turn] = 0;
                    self.deficits[next] += self.quanta[next];
                }
            }
            self.turn = next;
        }
        Dequeue::Empty
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }
}

fn filters() -> Filters {
    let filter = |matches, class| Filter { matches, class };
    Filters {
        list: vec![filter(Match::dscp(Dscp::EF), 0), filter(Match::ecn(Ecn::Ect1), 1)],
        default: Some(2),
    }
}

fn frame(id: u32, dscp: Dscp) -> Item {
    Item { packet: PacketId(id), len: 1514, dscp, ..Item::default() }
}

fn served<Q: Qdisc>(qdisc: &mut Q, log: &mut Log) -> Vec<u32> {
    std::iter::from_fn(|| match qdisc.dequeue(Instant::ZERO, log) {
        Dequeue::Packet(item) => Some(item.packet.0),
        Dequeue::Wait(_) | Dequeue::Empty => None,
    })
    .collect()
}

#[test]
fn the_oldest_makes_room_and_the_answer_says_so() {
    let (mut log, mut queue) = (Log::default(), HeadDrop { limit: 2, ..HeadDrop::default() });
    let verdicts: Vec<Verdict> =
        (0..3).map(|id| queue.enqueue(frame(id, Dscp::DEFAULT), Instant::ZERO, &mut log)).collect();
    let verdict = Verdict::DroppedOther(DropReason::Overlimit);
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Queued, verdict]);
    assert_eq!(log.drops, [(PacketId(0), DropReason::Overlimit)]);
    assert_eq!(served(&mut queue, &mut log), [1, 2]);
}

#[test]
fn what_is_marked_on_arrival_leaves_as_congestion_experienced() {
    let (mut log, mut queue) =
        (Log::default(), Threshold { threshold: 0, queue: Fifo::packets(9) });
    for (id, ecn, verdict) in [
        (0, Ecn::Ect0, Verdict::Queued),
        (1, Ecn::Ect1, Verdict::Marked),
        (2, Ecn::NotEct, Verdict::Queued),
    ] {
        let item = Item { ecn, ..frame(id, Dscp::DEFAULT) };
        assert_eq!(queue.enqueue(item, Instant::ZERO, &mut log), verdict);
    }
    assert_eq!(log.marks, [PacketId(1)]);
    let _ = queue.dequeue(Instant::ZERO, &mut log);
    let Dequeue::Packet(marked) = queue.dequeue(Instant::ZERO, &mut log) else { panic!("empty") };
    assert_eq!(marked.ecn, Ecn::Ce);
}

#[test]
fn classes_are_served_by_priority_and_what_nobody_wants_is_dropped() {
    let children = (0..3).map(|_| make(&QdiscSpec::parse("pfifo").unwrap(), 0)).collect();
    let strict = Filters { default: None, ..filters() };
    let (mut log, mut queue) = (Log::default(), Priority(Classes::new(strict, children)));
    let ect1 = Item { ecn: Ecn::Ect1, ..frame(0, Dscp::DEFAULT) };
    assert_eq!(queue.enqueue(ect1, Instant::ZERO, &mut log), Verdict::Queued);
    assert_eq!(queue.enqueue(frame(1, Dscp::EF), Instant::ZERO, &mut log), Verdict::Queued);
    let nobody = queue.enqueue(frame(2, Dscp::LE), Instant::ZERO, &mut log);
    assert_eq!(nobody, Verdict::Dropped(DropReason::Unclassified));
    assert_eq!(served(&mut queue, &mut log), [1, 0]);
}

#[test]
fn a_double_quantum_gets_two_packets_in_turn() {
    let child = |text: &str| Peekable::new(make(&QdiscSpec::parse(text).unwrap(), 0));
    // One class whose head can be seen, one whose packets have to be parked.
    let classes = Classes::new(filters(), vec![child("pfifo"), child("pfifo"), child("codel")]);
    let quanta = vec![1514, 1514, 3028];
    let mut queue = RoundRobin { classes, quanta, deficits: vec![1514, 0, 0], turn: 0 };
    let mut log = Log::default();
    for id in 0..4 {
        let _ = queue.enqueue(frame(id, Dscp::EF), Instant::ZERO, &mut log);
        let _ = queue.enqueue(frame(10 + id, Dscp::DEFAULT), Instant::ZERO, &mut log);
    }
    assert_eq!(served(&mut queue, &mut log), [0, 10, 11, 1, 12, 13, 2, 3]);
    assert_eq!(queue.backlog(), Backlog::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_toy_keeps_the_books(
        limit in 0_usize..30,
        threshold in 0_u32..20,
        children in prop::collection::vec(QdiscSpec::arbitrary(Scope::Anything), 3),
        arrivals in arrivals(120),
        requests in prop::collection::vec(0_u8..4, 1..120),
        seed: u64,
    ) {
        account(&mut HeadDrop { limit, ..HeadDrop::default() }, true, &arrivals, &requests);
        let queue = Fifo::packets(limit as u32);
        account(&mut Threshold { threshold, queue }, true, &arrivals, &requests);
        // A flow's packets differ in class: they overtake each other.
        let children = children.iter().map(|spec| make(spec, seed)).collect();
        account(&mut Priority(Classes::new(filters(), children)), false, &arrivals, &requests);
        let fifos = (0..3).map(|_| Peekable::new(make(&QdiscSpec::NOQUEUE, seed))).collect();
        let mut robin = RoundRobin {
            classes: Classes::new(filters(), fifos),
            quanta: vec![500, 1514, 3000],
            deficits: vec![500, 0, 0],
            turn: 0,
        };
        account(&mut robin, false, &arrivals, &requests);
    }
}
