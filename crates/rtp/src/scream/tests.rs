//! The rules of the reference window, the target and the pacing rate, in numbers.

use super::*;

fn limits(is_l4s: bool) -> Limits {
    Limits { min_bps: 1e5, max_bps: 1e8, mss: 1000.0, frame_period: 1.0 / 30.0, is_l4s }
}

fn feedback(bytes: f64) -> Feedback {
    Feedback {
        bytes,
        marked_bytes: 0.0,
        packets: bytes / 1000.0,
        marked: 0.0,
        lost: false,
        rtt: 0.05,
        one_way: 0.025,
    }
}

/// A sender that has had a full window acknowledged in each of so many round trips of 50 ms.
fn after(rounds: u32, is_l4s: bool) -> (Scream, f64) {
    let mut scream = Scream::new(limits(is_l4s));
    let mut now = 0.0;
    for _ in 0..rounds {
        now += 0.05;
        scream.sent(scream.reference_window() * 2.0);
        scream.report(now, &feedback(scream.reference_window()));
    }
    (scream, now)
}

fn reduced(is_l4s: bool, change: impl Fn(&mut Feedback)) -> f64 {
    let (mut scream, now) = after(100, is_l4s);
    let before = scream.reference_window();
    let mut report = feedback(0.0);
    change(&mut report);
    scream.report(now + 0.05, &report);
    scream.reference_window() / before
}

#[test]
fn loss_takes_three_tenths_and_a_classic_mark_two() {
    let marked = |report: &mut Feedback| (report.packets, report.marked) = (10.0, 10.0);
    assert!((reduced(false, |report| report.lost = true) - 0.7).abs() < 1e-9);
    assert!((reduced(false, marked) - 0.8).abs() < 1e-9);
    // L4S: alpha is an eighth after one round of marks only; half of it, halved again as 50 ms is twice VIRTUAL_RTT.
    let l4s = reduced(true, marked);
    assert!((l4s - (1.0 - 1.0 / 8.0 / 2.0 / 2.0)).abs() < 1e-9, "{l4s}");
}

#[test]
fn one_round_trip_has_one_reduction() {
    let (mut scream, now) = after(100, false);
    let before = scream.reference_window();
    for step in 1..=3 {
        let report = Feedback { lost: true, ..feedback(0.0) };
        scream.report(now + 0.05 + 0.001 * f64::from(step), &report);
    }
    assert!((scream.reference_window() / before - 0.7).abs() < 1e-9);
    assert_eq!(scream.reductions(), 1);
}

#[test]
fn the_window_grows_by_a_packet_per_round_trip_at_first() {
    // With the window of 3000 bytes: 3000 bytes acknowledged × 1000/3000, and 6 % of the little post-congestion scale.
    let (scream, _) = after(1, false);
    let grown = scream.reference_window() - 3000.0;
    assert!((1000.0..1020.0).contains(&grown), "{grown}");
}

#[test]
fn growth_long_after_congestion_is_a_share_of_the_window() {
    let (scream, now) = after(150, false);
    let before = scream.reference_window();
    let mut later = scream;
    later.sent(before * 2.0);
    later.report(now + 0.05, &feedback(before));
    // A packet, and 2 % of the window per round trip.
    let grown = later.reference_window() - before;
    assert!((grown / (1000.0 + 0.02 * before) - 1.0).abs() < 1e-6, "{grown} of {before}");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut scream = Scream::new(limits(false));
    scream.sent(1000.0);
    scream.report(0.05, &feedback(3000.0));
    assert!((scream.reference_window() - 3000.0).abs() < 1e-9, "1000 + 1.5 × 1000 is less");
}

#[test]
fn delay_above_half_of_its_target_reduces_the_window() {
    let (mut scream, mut now) = after(100, false);
    let before = scream.reference_window();
    let mut least = before;
    for _ in 0..40 {
        now += 0.05;
        scream.report(now, &Feedback { one_way: 0.025 + 0.06, ..feedback(0.0) });
        least = least.min(scream.reference_window());
    }
    assert!(least < 0.8 * before, "{least} of {before}");
}

#[test]
fn the_target_is_window_over_round_trip_less_the_drafts_margins() {
    let (scream, _) = after(40, false);
    // A window of 10 packets or more is not scaled down; the encoder's queue has been empty.
    let window = scream.reference_window();
    assert!((10_000.0..400_000.0).contains(&window), "{window}");
    let expected = 8.0 * window / 0.05 * (1000.0 / 1020.0) / 1.2;
    assert!((scream.target_bps() / expected - 1.0).abs() < 1e-9);
}

#[test]
fn pacing_is_half_more_than_the_target_and_six_times_at_the_highest() {
    let mut scream = Scream::new(limits(false));
    assert!((scream.pacing_bps() - 1.5e5).abs() < 1e-6);
    scream.target_bps = 1e8;
    assert!((scream.pacing_bps() - 6e8).abs() < 1e-3);
    scream.target_bps = 9e7;
    assert!((scream.pacing_bps() - 9e7 * 1.5 / 0.5).abs() < 1.0);
}

#[test]
fn silence_reduces_down_to_the_least_window() {
    let (mut scream, now) = after(100, false);
    for step in 0..60 {
        scream.silence(now + f64::from(step));
    }
    assert!((scream.reference_window() - 3000.0).abs() < 1e-9);
}
