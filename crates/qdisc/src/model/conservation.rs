//! One model over every discipline: no packet is lost from the books, none leaves twice or early,
//! nobody waits for the past, and everything that goes in comes out.

use super::common::{Arrival, Book, arrivals, make};
use crate::QdiscSpec;
use crate::arbitrary::Scope;
use crate::contract::{Dequeue, Qdisc};
use dragstrip_units::{Duration, Instant};
use proptest::prelude::*;

/// Arrivals and requests at random times, some of them before the discipline is ready.
pub(crate) fn account<Q: Qdisc>(
    qdisc: &mut Q,
    keeps_order: bool,
    arrivals: &[Arrival],
    requests: &[u8],
) {
    let mut book = Book::default();
    let mut now = Instant::ZERO;
    for (arrival, &requests) in arrivals.iter().zip(requests.iter().cycle()) {
        now += arrival.gap;
        book.arrives(qdisc, arrival.item, now);
        for _ in 0..requests {
            book.asks(qdisc, now, keeps_order);
        }
    }
    // Each request of the rest takes a packet out, or is given a later time.
    while qdisc.backlog().packets > 0 {
        let before = qdisc.backlog().packets;
        match book.asks(qdisc, now, keeps_order) {
            Dequeue::Packet(_) | Dequeue::Empty => assert!(qdisc.backlog().packets < before),
            Dequeue::Wait(until) => now = until,
        }
    }
    assert_eq!(book.asks(qdisc, now, keeps_order), Dequeue::Empty);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_packet_is_accounted_for(
        spec in QdiscSpec::arbitrary(Scope::Anything),
        arrivals in arrivals(150),
        requests in prop::collection::vec(0_u8..4, 1..150),
        seed: u64,
    ) {
        account(&mut make(&spec, seed), !spec.facts().reorders, &arrivals, &requests);
    }

    /// At the instant a discipline asked to wait for, it does something: a packet leaves or is
    /// dropped. (Not a shaper or netem below a shaper, which only passes on its child's instant, nor netem's slots, of
    /// which a question may begin the next, nor a tree, which wakes for classes without packets too.)
    #[test]
    fn a_wait_is_worth_it(
        spec in QdiscSpec::arbitrary(Scope::Anything),
        arrivals in arrivals(60),
        seed: u64,
    ) {
        prop_assume!(!spec.classes().iter().any(|class| class.child.facts().shapes));
        prop_assume!(!matches!(&spec, QdiscSpec::Netem(netem) if netem.has_slots()));
        prop_assume!(!matches!(&spec, QdiscSpec::Tc(_)));
        let keeps_order = !spec.facts().reorders;
        let mut qdisc = make(&spec, seed);
        let mut book = Book::default();
        let mut now = Instant::ZERO;
        for arrival in arrivals {
            now += arrival.gap;
            book.arrives(&mut qdisc, arrival.item, now);
            while let Dequeue::Wait(until) = book.asks(&mut qdisc, now, keeps_order) {
                let before = qdisc.backlog().packets;
                // A nanosecond too early nothing has changed.
                let early = until - Duration::from_nanos(1);
                if early > now {
                    let answer = book.asks(&mut qdisc, early, keeps_order);
                    prop_assert_eq!(answer, Dequeue::Wait(until));
                }
                now = until;
                book.asks(&mut qdisc, now, keeps_order);
                prop_assert!(qdisc.backlog().packets < before);
            }
        }
    }

    /// The same seed gives the same run.
    #[test]
    fn a_discipline_is_deterministic(
        spec in QdiscSpec::arbitrary(Scope::Anything),
        arrivals in arrivals(60),
        seed: u64,
    ) {
        let run = || {
            let mut qdisc = make(&spec, seed);
            let mut book = Book::default();
            let mut now = Instant::ZERO;
            let mut answers = Vec::new();
            for arrival in &arrivals {
                now += arrival.gap;
                book.arrives(&mut qdisc, arrival.item, now);
                answers.push((book.asks(&mut qdisc, now, false), qdisc.backlog()));
            }
            answers
        };
        prop_assert_eq!(run(), run());
    }
}
