//! Arrivals, and the recorded behaviour of a kernel 6.1.192 for each.

use super::{Adaptive, MAX_P_MIN, Red};
use crate::QdiscSpec;
use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
use crate::disciplines::{Discipline, Streams};
use crate::testing::Log;
use dragstrip_units::{Duration, Instant};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn red(words: &str) -> Red {
    let discipline =
        QdiscSpec::parse(&format!("red {words}")).unwrap().build(&Streams::of_link(1, "test"));
    let Discipline::Red(red) = discipline else { panic!("red") };
    *red
}

fn frame(id: u32, ecn: Ecn) -> Item {
    Item { packet: PacketId(id), len: 1514, ecn, ..Item::default() }
}

/// The verdicts on so many frames that come at once.
fn burst(red: &mut Red, now: Instant, count: u32, ecn: Ecn) -> Vec<Verdict> {
    let mut log = Log::default();
    (0..count).map(|id| red.enqueue(frame(id, ecn), now, &mut log)).collect()
}

const SHARP: &str = "limit 400000 min 30000 max 30001 avpkt 1000 burst 40";

/// Seen on the kernel: of 120 frames at once, of which two leave at once, the 37th and all later ones are marked.
#[test]
fn above_max_every_packet_is_signalled() {
    let run = |words: &str, ecn| {
        let mut red = red(&format!("{SHARP} {words}"));
        let mut log = Log::default();
        let mut verdicts = Vec::new();
        for id in 0..120 {
            verdicts.push(red.enqueue(frame(id, ecn), at(0), &mut log));
            if id < 2 {
                assert!(matches!(red.dequeue(at(0), &mut log), Dequeue::Packet(_)));
            }
        }
        let first = verdicts.iter().position(|&verdict| verdict != Verdict::Queued);
        (first, verdicts.last().copied().unwrap())
    };
    let dropped = Verdict::Dropped(DropReason::Aqm);
    assert_eq!(run("ecn", Ecn::Ect0), (Some(36), Verdict::Marked));
    assert_eq!(run("ecn", Ecn::NotEct), (Some(36), dropped));
    assert_eq!(run("ecn nodrop", Ecn::NotEct), (None, Verdict::Queued));
    assert_eq!(run("ecn harddrop", Ecn::Ect1), (Some(36), dropped));
    assert_eq!(run("ecn harddrop nodrop", Ecn::NotEct), (Some(36), dropped));
    assert_eq!(run("", Ecn::Ect0), (Some(36), dropped));
}

#[test]
fn what_is_marked_still_needs_room() {
    let mut red = red("limit 90000 min 30000 max 30001 avpkt 1000 burst 40 ecn");
    let verdicts = burst(&mut red, at(0), 120, Ecn::Ect0);
    assert_eq!(verdicts[58], Verdict::Marked);
    assert_eq!(verdicts[59], Verdict::Dropped(DropReason::Overlimit));
    assert_eq!(red.backlog().packets, 59);
}

/// A device asks once more and starts the clock; a parent that knows there is nothing does not ask, and lone packets are
/// signalled until they have worn the average down.
#[test]
fn only_who_asks_an_empty_queue_starts_the_idle_clock() {
    let lone = |asks_once_more: bool| {
        let mut red = red(&format!("{SHARP} ecn"));
        burst(&mut red, at(0), 120, Ecn::Ect0);
        let mut log = Log::default();
        while red.backlog().packets > 0 {
            let _ = red.dequeue(at(100), &mut log);
        }
        let mut marks = 0;
        for id in 0..60 {
            if asks_once_more {
                assert_eq!(red.dequeue(at(100), &mut log), Dequeue::Empty);
            }
            let now = at(20_000 + u64::from(id));
            let verdict = red.enqueue(frame(id, Ecn::Ect0), now, &mut log);
            marks += u32::from(verdict == Verdict::Marked);
            let _ = red.dequeue(now, &mut log);
        }
        marks
    };
    assert_eq!(lone(true), 0);
    assert!(lone(false) > 10);
}

/// Seen on the kernel, 512 ms apart, while the average is above the middle.
#[test]
fn the_adaptive_algorithm_raises_and_lowers_the_probability() {
    let mut red = red("limit 400000 avpkt 1000 adaptive");
    let adaptive = |red: &Red| red.adaptive.unwrap();
    let mut raised = adaptive(&red);
    let up: Vec<u32> = (0..6)
        .map(|_| {
            raised.fires(90_000);
            raised.max_p
        })
        .collect();
    let kernel_values =
        [107_374_181, 134_217_726, 167_772_157, 209_715_196, 252_664_869, 295_614_542];
    assert_eq!(up, kernel_values);
    for _ in 0..1_000 {
        raised.fires(90_000);
    }
    assert!((50 * MAX_P_MIN..51 * MAX_P_MIN + 1).contains(&(raised.max_p - 1)));
    // An empty queue lowers it, by the time its timer has fired: nine times in five seconds.
    assert_eq!(red.dequeue(at(511), &mut Log::default()), Dequeue::Empty);
    assert_eq!(adaptive(&red).max_p, 85_899_345);
    assert_eq!(red.dequeue(at(5_000), &mut Log::default()), Dequeue::Empty);
    // 0.02 · 0.9^n stops below 1 %, after seven.
    let mut lowered = Adaptive { max_p: 85_899_345, ..adaptive(&red) };
    for _ in 0..7 {
        lowered.fires(0);
    }
    assert_eq!(adaptive(&red).max_p, lowered.max_p);
    assert!(lowered.max_p < MAX_P_MIN && lowered.max_p > MAX_P_MIN / 10 * 9);
    // The middle fifth leaves it alone.
    lowered.fires(67_000);
    assert!(lowered.max_p < MAX_P_MIN);
    assert_eq!((lowered.low, lowered.high), (59_999, 73_332));
}
