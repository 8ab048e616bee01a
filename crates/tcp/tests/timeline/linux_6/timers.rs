//! Retransmission timeout, tail loss probe, F-RTO.
//!
//! A tick is 4 ms. The timer wheel fires on the tick after a near timer's expiry, and rounds one of 63 ticks or
//! more up to the next multiple of 8 (of 64 from 504 on).

use crate::harness::{Host, settings, stock};
use dragstrip_tcp::Settings;
use dragstrip_units::Instant;

fn no_probe() -> Settings {
    settings(|s| s.tail_loss_probe = false)
}

/// RTO = srtt + max(4·mdev, 200 ms): 300 ms on a 100 ms path; doubled every time; window 1.
#[test]
fn timeouts_double_and_leave_a_window_of_one() {
    let mut host = Host::connected("reno", 100, &no_probe());
    host.write_endless().forget();
    // 75 ticks from tick 25: tick 100 belongs to the bucket that goes off at 104. Then 150, 300, 600 ticks.
    host.until(10_000);
    assert_eq!(host.sent_at(), [(416, 0), (1_024, 0), (2_240, 0), (4_864, 0), (9_728, 0)]);
    assert_eq!(host.endpoint().rto_count(), 5);
    assert_eq!(host.window(), (1, 5));
    assert_eq!(host.endpoint().reductions(), 1, "one loss, one reduction");
}

#[test]
fn a_wheel_of_a_thousand_ticks_a_second_is_finer() {
    let stack = settings(|s| (s.tail_loss_probe, s.hz) = (false, 1_000));
    let mut host = Host::connected("reno", 100, &stack);
    host.write_endless().forget();
    // 300 ticks from tick 100: bucket 400..408.
    host.until(800);
    assert_eq!(host.sent_at(), [(408, 0)]);
}

/// `tcp_rtt_estimator`: the deviation is floored, not the sum; RFC 6298's lower bound is 1 s.
#[test]
fn the_timeout_is_the_rtt_plus_200_ms_on_short_paths() {
    let mut host = Host::connected("reno", 8, &no_probe());
    host.write_endless().forget();
    // 208 ms are 52 ticks; from tick 2, one more in the wheel.
    host.until(300);
    assert_eq!(host.sent_at(), [(220, 0)]);
}

#[test]
fn every_ack_that_advances_pushes_the_timeout_out() {
    let mut host = Host::connected("reno", 8, &no_probe());
    host.write(10).until(200).ack(5).forget();
    host.until(450);
    // The second sample was 192 ms: srtt = 8 + 184/8 = 31 ms; mdev = 16/4 + 184/4 - ... is below 200 ms.
    assert_eq!(host.sent_at(), [(436, 5)]);
}

/// `tcp_mstamp_refresh`: the clock is read when an ACK comes and again for the segments it releases. Behind a full queue, where one segment leaves
/// for each that arrives, RTTs are shorter than whole packet times by what the host worked; on an idle path nothing is missing.
#[test]
fn what_an_ack_lets_go_is_younger_than_the_ack() {
    let mut host = Host::connected("reno", 100, &stock());
    let ack = |host: &mut Host, at_us: u64, upto: u64| {
        host.until_instant(Instant::from_nanos(at_us * 1_000)).ack(upto);
        host.snapshot().rtt_ns.expect("a sample")
    };
    host.write_endless();
    // The harness has ACKs come a tick late.
    assert_eq!(ack(&mut host, 200_000, 10), 100_000_000);
    assert_eq!(ack(&mut host, 300_000, 30), 99_999_000);
}

/// ... but an ACK never comes before what it acknowledges was sent.
#[test]
fn a_path_without_delay_has_no_negative_rtt() {
    let mut host = Host::connected("reno", 0, &stock());
    host.write_endless();
    for upto in [2, 4, 6] {
        host.ack_at_once(upto);
        assert_eq!(host.snapshot().rtt_ns, Some(0));
    }
}

/// `FLAG_ACK_MAYBE_DELAYED`: the ACK of a lone short segment may have been sat on; it renews no minimum.
#[test]
fn a_lone_short_segment_says_nothing_about_the_minimum_rtt() {
    let minimum_after = |len: u64| {
        let mut host = Host::connected("reno", 100, &settings(|s| s.min_rtt_wlen_s = 1));
        host.write(10).until(200).ack(10).until(2_000).write_bytes(14_480 + len);
        host.until(2_140).ack_bytes(14_480 + len);
        host.snapshot().min_rtt_ns
    };
    assert_eq!(minimum_after(1_000), Some(99_999_000));
    assert_eq!(minimum_after(1_448), Some(140_000_000), "a full one does");
}

/// After a timeout slow start leads back to the threshold; only what was not acknowledged is retransmitted.
#[test]
fn after_a_timeout_slow_start_repairs_what_is_missing() {
    let mut host = Host::connected("reno", 100, &no_probe());
    host.write_endless().forget();
    host.until(416);
    assert_eq!((host.sent(), host.state()), (vec![0], "loss"));
    // Only 0 and 3 were lost: the ACK of 0 is cumulative up to 3.
    host.until(516).sack(3, &[(4, 10)]);
    assert_eq!(host.sent()[0], 3);
    host.until(616).ack(10);
    assert_eq!((host.state(), host.window().1), ("congestion_avoidance", 5));
    assert_eq!(host.endpoint().retransmits(), 2);
}

/// `tcp_timeout_mark_lost` (RFC 8985 §6.3): what was sent less than an RTT ago is not lost.
#[test]
fn a_timeout_leaves_young_segments_in_flight() {
    // 1 is out since 100 ms, the timer runs since 200 ms; three more follow at `later`.
    let timed_out = |later: u64| {
        let mut host = Host::connected("reno", 100, &no_probe());
        host.write(2).until(200).ack(1).until(later).write(5).forget();
        host.until(600);
        (host.sent_at(), host.cwnd())
    };
    assert_eq!(timed_out(480), (vec![(512, 1)], 4), "three in flight, and one");
    assert_eq!(
        timed_out(400),
        (vec![(512, 1)], 1),
        "112 ms ago is more than the RTT: all are lost"
    );
}

// ---- F-RTO (RFC 5682) ----

/// Without timestamps only F-RTO can tell. All ten were merely late.
#[test]
fn a_spurious_timeout_is_undone_when_data_not_retransmitted_arrive() {
    let stack = settings(|s| (s.tail_loss_probe, s.timestamps) = (false, false));
    let mut host = Host::connected("reno", 100, &stack);
    host.write_endless().forget();
    host.until(416).ack(1);
    assert_eq!(host.sent(), [0, 10, 11], "step 2b: new data rather than retransmissions");
    assert_eq!(host.state(), "loss");
    host.ack(2);
    assert_eq!(host.state(), "slow_start", "step 3b: segment 1 was never retransmitted");
    assert!(host.cwnd() >= 10, "the window is back: {}", host.cwnd());
    assert_eq!(host.window().1, u64::MAX, "and the threshold");
    assert_eq!(host.endpoint().retransmits(), 1);
}

#[test]
fn a_real_timeout_is_not_undone() {
    let stack = settings(|s| (s.tail_loss_probe, s.timestamps) = (false, false));
    let mut host = Host::connected("reno", 100, &stack);
    host.write_endless().forget();
    host.until(516).ack(1);
    assert_eq!(host.sent(), [0, 10, 11]);
    // Step 3a: the new data arrive, what was sent before the timeout does not.
    host.until(616).sack(1, &[(10, 11)]);
    assert_eq!(host.sent()[0], 1);
    assert_eq!((host.state(), host.window().1), ("loss", 5));
    // Without F-RTO lost segments go first.
    let stack = settings(|s| {
        (s.tail_loss_probe, s.timestamps, s.frto) = (false, false, false);
    });
    let mut host = Host::connected("reno", 100, &stack);
    host.write_endless().forget();
    host.until(516).ack(1);
    assert_eq!(host.sent(), [0, 1, 2]);
}

// ---- tail loss probe (RFC 8985 §7) ----

/// 2·srtt and 2 ms: 51 ticks from tick 25, one more in the wheel; new data if there is any.
#[test]
fn a_probe_goes_out_after_two_rtts_and_two_milliseconds() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless().forget();
    host.until(400);
    assert_eq!(host.sent_at(), [(308, 10)]);
    assert_eq!(host.cwnd(), 10, "one beyond the window");
    let mut host = Host::connected("reno", 100, &stock());
    host.write(10).forget();
    host.until(400);
    assert_eq!(host.sent_at(), [(308, 9)], "the last one again when there is nothing new");
    assert_eq!(host.endpoint().rto_count(), 0);
}

/// One segment out: the receiver may be delaying its ACK, so 200 ms more. On a 300 ms path
/// the first RTO is 900 ms; 2·300 + 200 = 200 ticks from tick 75 are bucket 280.
#[test]
fn a_probe_of_a_single_segment_waits_for_a_delayed_ack() {
    let mut host = Host::connected("reno", 300, &stock());
    host.write(1).forget();
    host.until(1_200);
    assert_eq!(host.sent_at(), [(1_120, 0)]);
    assert_eq!(host.endpoint().rto_count(), 0);
}

#[test]
fn a_probe_never_comes_after_the_timeout_would() {
    // 2·100 + 200 ms is more than RTO = 300 ms.
    let mut host = Host::connected("reno", 100, &stock());
    host.write(1).forget();
    host.until(500);
    assert_eq!((host.sent_at(), host.endpoint().rto_count()), (vec![(416, 0)], 0));
}

#[test]
fn one_probe_a_flight_then_the_timeout() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(10).forget();
    // The probe at 312 (tick 78) starts the timeout anew: 75 ticks, bucket 160.
    host.until(700);
    assert_eq!(host.sent_at(), [(308, 9), (640, 0)]);
    assert_eq!(host.endpoint().rto_count(), 1);
}

/// The tail was lost and the probe repaired it: congestion all the same, one reduction.
#[test]
fn a_loss_that_a_probe_repaired_costs_one_reduction() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(10).until(200).ack(9).forget();
    host.until(520);
    assert_eq!(host.sent_at(), [(512, 9)], "one out: as late as the timeout would be");
    host.ack(10);
    assert_eq!(
        host.endpoint().reductions(),
        0,
        "not known yet whether the original had arrived too"
    );
    let before = host.write(12).cwnd();
    host.wait(100).ack(12);
    assert_eq!(host.endpoint().reductions(), 1);
    assert_eq!((host.window().1, host.state()), (before / 2, "congestion_avoidance"));
    host.write(14).wait(100).ack(14);
    assert_eq!(host.endpoint().reductions(), 1);
}

#[test]
fn a_probe_brings_the_sack_that_repairs_the_tail() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(10).until(200).ack(7).forget();
    host.until(512);
    assert_eq!(host.sent_at(), [(408, 9)]);
    // 7 and 8 are still missing: both are lost, PRR lets one go for each arrival.
    host.sack(7, &[(9, 10)]);
    assert_eq!((host.sent(), host.state()), (vec![7], "recovery"));
    host.until(612).sack(8, &[(9, 10)]);
    assert_eq!(host.sent(), [8]);
    assert_eq!(host.endpoint().rto_count(), 0);
}
