//! One model over every discipline: no packet is lost from the books, none leaves twice or early,
//! nobody waits for the past, and everything that goes in comes out.

use crate::common::{Book, Recipe, arrivals, recipe};
use dragstrip_qdisc::{Dequeue, Qdisc};
use dragstrip_units::{Duration, Instant};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    /// Arrivals and requests at random times, some of them before the discipline is ready.
    #[test]
    fn every_packet_is_accounted_for(
        recipe in recipe(),
        arrivals in arrivals(150),
        requests in prop::collection::vec(0_u8..4, 1..150),
        seed: u64,
    ) {
        let mut qdisc = recipe.make(seed);
        let keeps_order = recipe.keeps_order();
        let mut book = Book::default();
        let mut now = Instant::ZERO;
        for (arrival, requests) in arrivals.iter().zip(requests.into_iter().cycle()) {
            now += arrival.gap;
            book.arrives(&mut qdisc, arrival.item, now);
            for _ in 0..requests {
                book.asks(&mut qdisc, now, keeps_order);
            }
        }
        // Each request of the rest takes a packet out, or is told a later time.
        while qdisc.backlog().packets > 0 {
            let before = qdisc.backlog().packets;
            match book.asks(&mut qdisc, now, keeps_order) {
                Dequeue::Packet(_) | Dequeue::Empty => {
                    prop_assert!(qdisc.backlog().packets < before);
                }
                Dequeue::Wait(until) => now = until,
            }
        }
        prop_assert_eq!(book.asks(&mut qdisc, now, keeps_order), Dequeue::Empty);
    }

    /// At the instant a discipline asked to wait for, it does something: a packet leaves or is
    /// dropped. (Not netem below a shaper, which only passes on its child's instant.)
    #[test]
    fn a_wait_is_worth_it(recipe in recipe(), arrivals in arrivals(60), seed: u64) {
        let nested = matches!(&recipe, Recipe::Htb(_, leaf)
            if matches!(**leaf, Recipe::Netem(_) | Recipe::Tbf(..)));
        prop_assume!(!nested);
        let mut qdisc = recipe.make(seed);
        let mut book = Book::default();
        let mut now = Instant::ZERO;
        for arrival in arrivals {
            now += arrival.gap;
            book.arrives(&mut qdisc, arrival.item, now);
            while let Dequeue::Wait(until) = book.asks(&mut qdisc, now, recipe.keeps_order()) {
                let before = qdisc.backlog().packets;
                // A nanosecond too early nothing has changed.
                let early = until - Duration::from_nanos(1);
                if early > now {
                    let answer = book.asks(&mut qdisc, early, recipe.keeps_order());
                    prop_assert_eq!(answer, Dequeue::Wait(until));
                }
                now = until;
                book.asks(&mut qdisc, now, recipe.keeps_order());
                prop_assert!(qdisc.backlog().packets < before);
            }
        }
    }

    /// The same seed gives the same run.
    #[test]
    fn a_discipline_is_deterministic(recipe in recipe(), arrivals in arrivals(60), seed: u64) {
        let run = || {
            let mut qdisc = recipe.make(seed);
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
