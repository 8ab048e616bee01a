//! The closed form of a tail-drop FIFO against the same discipline driven event by event.

use super::common::{Arrival, arrivals, make};
use crate::arbitrary::Scope;
use crate::contract::{Backlog, Dequeue, DropReason, Item, PacketId, Qdisc, Sink};
use crate::{
    BfifoSpec, ComputedFifo, Configuration as _, Discipline, HtbSpec, Limit, Line, NoqueueSpec,
    PfifoSpec, QdiscSpec, Server, TbfSpec,
};
use dragstrip_units::{Instant, Rate};
use proptest::prelude::*;

/// Each packet's departure, if it was not dropped, and the backlog it found on arrival.
type Outcome = Vec<(Option<Instant>, Backlog)>;

#[derive(Default)]
struct Drops(Vec<PacketId>);

impl Sink for Drops {
    fn dropped(&mut self, item: Item, _reason: DropReason) {
        self.0.push(item.packet);
    }

    fn marked(&mut self, _packet: PacketId) {
        unreachable!("a FIFO does not mark");
    }

    fn duplicated(&mut self, _item: Item) -> Item {
        unreachable!("a FIFO does not copy");
    }
}

/// An interface as an event-driven simulator would run it.
struct Evented {
    qdisc: Discipline,
    line: Option<Line>,
    departures: Vec<(PacketId, Instant)>,
    drops: Drops,
}

impl Evented {
    /// Takes out everything that can leave from `now` to `until`.
    fn run(&mut self, mut now: Instant, until: Instant) {
        loop {
            let free = self.line.as_ref().map_or(now, |line| line.free().max(now));
            if free > until {
                return;
            }
            match self.qdisc.dequeue(free, &mut self.drops) {
                Dequeue::Packet(item) => {
                    let end = self.line.as_mut().map_or(free, |line| line.send(item.len, free));
                    self.departures.push((item.packet, end));
                }
                Dequeue::Wait(ready) if ready <= until => now = ready,
                Dequeue::Wait(_) | Dequeue::Empty => return,
            }
        }
    }
}

fn evented(qdisc: Discipline, line: Option<(Rate, u32)>, arrivals: &[Arrival]) -> Outcome {
    let line = line.map(|(rate, overhead)| Line::new(rate, overhead));
    let mut link = Evented { qdisc, line, departures: Vec::new(), drops: Drops::default() };
    let mut found = Vec::new();
    let mut now = Instant::ZERO;
    for arrival in arrivals {
        let then = now;
        now += arrival.gap;
        link.run(then, now);
        found.push(link.qdisc.backlog());
        let _ = link.qdisc.enqueue(arrival.item, now, &mut link.drops);
        link.run(now, now);
    }
    link.run(now, Instant::NEVER);
    let mut outcome: Outcome = found.into_iter().map(|backlog| (None, backlog)).collect();
    for (packet, at) in &link.departures {
        outcome[packet.0 as usize].0 = Some(*at);
    }
    assert_eq!(link.departures.len() + link.drops.0.len(), arrivals.len());
    outcome
}

fn computed(mut queue: ComputedFifo, arrivals: &[Arrival]) -> Outcome {
    let mut now = Instant::ZERO;
    let mut one = |arrival: &Arrival| {
        now += arrival.gap;
        let backlog = queue.backlog(now);
        (queue.offer(arrival.item.len, now), backlog)
    };
    arrivals.iter().map(&mut one).collect()
}

/// A queue that only drops what does not fit.
fn fifo() -> impl Strategy<Value = QdiscSpec> {
    prop_oneof![
        Just(QdiscSpec::from(NoqueueSpec {})),
        BfifoSpec::arbitrary(Scope::Anything).prop_map(QdiscSpec::from),
        PfifoSpec::arbitrary(Scope::Anything).prop_map(QdiscSpec::from),
    ]
}

fn computable() -> impl Strategy<Value = QdiscSpec> {
    prop_oneof![
        fifo(),
        (HtbSpec::arbitrary(Scope::Anything), fifo()).prop_map(|(htb, leaf)| HtbSpec {
            leaf: Box::new(leaf),
            ..htb
        }
        .into()),
        TbfSpec::arbitrary(Scope::Anything).prop_map(QdiscSpec::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn departures_drops_and_backlogs_are_those_of_the_evented_discipline(
        spec in computable(),
        // At 100 Mbit/s some arrivals fall on a departure's very nanosecond.
        rate in prop::option::of(prop_oneof![Just(100_000_000), 1_000_u64..1_000_000_000]),
        overhead in 0_u32..30,
        arrivals in arrivals(200),
    ) {
        let line = rate.and_then(Rate::from_bits_per_second).map(|rate| (rate, overhead));
        let qdisc = make(&spec, 0);
        let closed = ComputedFifo::of(&qdisc, line, true).expect("these have a closed form");
        prop_assert_eq!(computed(closed, &arrivals), evented(qdisc, line, &arrivals));
    }

    /// A queue that nobody observes and that has no limit answers the same without its ring.
    #[test]
    fn an_unobserved_queue_departs_alike(rate in 1_000_u64..1_000_000_000, arrivals in arrivals(100)) {
        let Some(rate) = Rate::from_bits_per_second(rate) else { return Ok(()) };
        let server = || Server::Wire { rate, overhead: 24 };
        let mut unobserved = ComputedFifo::new(Limit::None, server(), false);
        let mut observed = ComputedFifo::new(Limit::None, server(), true);
        let mut now = Instant::ZERO;
        for arrival in arrivals {
            now += arrival.gap;
            let len = arrival.item.len;
            prop_assert_eq!(unobserved.offer(len, now), observed.offer(len, now));
        }
    }
}

#[test]
fn only_fifos_have_a_closed_form() {
    for text in ["codel", "htb rate 1mbit leaf codel", "netem", "fq_codel", "sfq"] {
        let qdisc = make(&QdiscSpec::parse(text).expect(text), 0);
        assert!(ComputedFifo::of(&qdisc, None, false).is_none(), "{text}");
    }
}
