//! Closed forms of RFC 9332 and of the kernel's arithmetic.

use super::{CERTAIN, Control, DualPi2, updated};
use crate::QdiscSpec;
use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc};
use crate::disciplines::{Discipline, Streams};
use crate::testing::Log;
use dragstrip_units::{Duration, Instant};

fn dualpi2(words: &str) -> DualPi2 {
    let spec = QdiscSpec::parse(&format!("dualpi2 {words}")).unwrap();
    let Discipline::Dualpi2(dualpi2) = spec.build(&Streams::of_link(1, "test")) else {
        panic!("dualpi2")
    };
    *dualpi2
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn frame(id: u32, ecn: Ecn) -> Item {
    Item { packet: PacketId(id), len: 1514, ecn, ..Item::default() }
}

fn probabilities(delays_ms: &[u64]) -> Vec<u64> {
    let control = Control { target: Duration::from_millis(15), alpha: 41, beta: 819 };
    let (mut p, mut before) = (0, Duration::ZERO);
    let mut next = |&ms: &u64| {
        let delay = Duration::from_millis(ms);
        p = updated(p, &control, delay, before);
        before = delay;
        p
    };
    delays_ms.iter().map(&mut next).collect()
}

#[test]
fn the_controller_moves_as_the_kernels_integers_do() {
    let standing = [422_343_750, 432_656_250, 442_968_750, 453_281_250, 463_593_750];
    assert_eq!(probabilities(&[30; 5]), standing);
    let passing = [61_796_875, 199_140_625, 199_140_625, 127_031_250];
    assert_eq!(probabilities(&[5, 15, 15, 10]), passing);
    assert_eq!(probabilities(&[30, 0, 0])[1..], [0, 0]);
    assert_eq!(probabilities(&[4_000, 4_000])[1], CERTAIN);
}

/// A queue that stands still under a packet that waits: the timer's firings are made up for one by one.
#[test]
fn updates_see_how_long_the_head_has_waited() {
    let (mut dualpi2, mut log) = (dualpi2(""), Log::default());
    for id in 0..4 {
        let _ = dualpi2.enqueue(frame(id, Ecn::NotEct), at(2_000), &mut log);
    }
    let _ = dualpi2.dequeue(at(50_000), &mut log);
    // 16, 32 and 48 ms find 14, 30 and 46 ms.
    assert_eq!(dualpi2.p, probabilities(&[14, 30, 46])[2]);
}

/// Ten percent of C, from the first packet on.
#[test]
fn l_sends_nine_packets_and_c_one() {
    let order = |words: &str| {
        let (mut dualpi2, mut log) = (dualpi2(words), Log::default());
        for id in 0..100 {
            let _ = dualpi2.enqueue(frame(id, Ecn::Ect1), at(0), &mut log);
            let _ = dualpi2.enqueue(frame(1_000 + id, Ecn::Ect0), at(0), &mut log);
        }
        let mut next = || match dualpi2.dequeue(at(0), &mut log) {
            Dequeue::Packet(item) => {
                if item.packet.0 < 1_000 {
                    'L'
                } else {
                    'C'
                }
            }
            Dequeue::Wait(_) | Dequeue::Empty => panic!("empty"),
        };
        (0..20).map(|_| next()).collect::<String>()
    };
    assert_eq!(order(""), "LLLLLLLLLCLLLLLLLLLC");
    assert_eq!(order("classic_protection 50"), "LCLCLCLCLCLCLCLCLCLC");
    // With ECT(0) in L too there is one queue, in the order of arrival.
    assert_eq!(order("any_ect classic_protection 50"), "LC".repeat(10));
}

#[test]
fn l_is_marked_from_the_step_on() {
    let marked = |words: &str, leaves_us: u64| {
        let (mut dualpi2, mut log) = (dualpi2(words), Log::default());
        for id in 0..6 {
            let _ = dualpi2.enqueue(frame(id, Ecn::Ect1), at(0), &mut log);
            let _ = dualpi2.enqueue(frame(10 + id, Ecn::Ect0), at(0), &mut log);
        }
        for _ in 0..12 {
            let _ = dualpi2.dequeue(at(leaves_us), &mut log);
        }
        assert!(log.drops.is_empty());
        log.marks.iter().map(|packet| packet.0).collect::<Vec<_>>()
    };
    assert_eq!(marked("", 1_000), [0_u32; 0]);
    assert_eq!(marked("", 1_001), [0, 1, 2, 3, 4, 5]);
    assert_eq!(marked("min_qlen_step 2", 1_001), [2, 3, 4, 5]);
    // Packets left behind: 5, 4, 3, 2, ...
    assert_eq!(marked("step_thresh 3p", 9_000), [0, 1]);
}

/// Returns the shares of packets of one kind that are marked and dropped at a fixed p'.
fn signalled(words: &str, p: f64, ecn: Ecn) -> (f64, f64) {
    const PACKETS: u32 = 40_000;
    let (mut dualpi2, mut log) =
        (dualpi2(&format!("{words} limit 100000 tupdate 1000s")), Log::default());
    for id in 0..PACKETS + 2 {
        let _ = dualpi2.enqueue(frame(id, ecn), at(0), &mut log);
    }
    dualpi2.p = (p * CERTAIN as f64) as u64;
    while dualpi2.backlog().packets > 2 {
        let _ = dualpi2.dequeue(at(0), &mut log);
    }
    let share = |count: usize| count as f64 / f64::from(PACKETS);
    assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Aqm));
    (share(log.marks.len()), share(log.drops.len()))
}

/// RFC 9332 §2.1: p_C = p'², p_L = k p'. Five standard deviations of 40,000 draws are at most 1.25 %.
#[test]
fn the_probabilities_are_coupled_by_a_square() {
    let close = |seen: (f64, f64), expected: (f64, f64)| {
        let near =
            |seen: f64, p: f64| (seen - p).abs() <= 5.0 * (p * (1.0 - p) / 40_000.0).sqrt() + 1e-4;
        assert!(near(seen.0, expected.0) && near(seen.1, expected.1), "{seen:?} for {expected:?}");
    };
    for p in [0.1, 0.3, 0.45] {
        close(signalled("", p, Ecn::Ect1), (2.0 * p, 0.0));
        close(signalled("", p, Ecn::Ect0), (p * p, 0.0));
        close(signalled("", p, Ecn::NotEct), (0.0, p * p));
        close(signalled("any_ect", p, Ecn::Ect0), (2.0 * p, 0.0));
    }
    close(signalled("coupling_factor 4", 0.1, Ecn::Ect1), (0.4, 0.0));
    // Overload: both are dropped with p'², and what is left of L is marked.
    close(signalled("", 0.7, Ecn::Ect1), (0.51, 0.49));
    close(signalled("", 0.7, Ecn::Ect0), (0.0, 0.49));
    close(signalled("overflow", 0.5, Ecn::Ect1), (1.0, 0.0));
}

#[test]
fn two_frames_are_left_alone_and_the_limit_is_for_both_queues() {
    let (mut dualpi2, mut log) = (dualpi2("limit 4 tupdate 1000s"), Log::default());
    for (id, ecn) in
        [(0, Ecn::Ect1), (1, Ecn::NotEct), (2, Ecn::Ect1), (3, Ecn::NotEct), (4, Ecn::Ce)]
    {
        let _ = dualpi2.enqueue(frame(id, ecn), at(0), &mut log);
    }
    assert_eq!(log.drops, [(PacketId(4), DropReason::Overlimit)]);
    dualpi2.p = CERTAIN / 2;
    while dualpi2.backlog().packets > 0 {
        let _ = dualpi2.dequeue(at(0), &mut log);
    }
    // The two L packets leave first, with three and two frames behind them.
    assert_eq!(log.marks, [PacketId(0), PacketId(2)]);
    assert_eq!(log.drops.len(), 1);
}
