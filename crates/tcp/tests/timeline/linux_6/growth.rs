//! Growth of the window, and the cases without growth.

use crate::harness::{Host, run, settings, stock};

#[test]
fn the_first_flight_is_ten_segments() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    assert_eq!(host.sent_at(), run(0, 10).into_iter().map(|n| (100, n)).collect::<Vec<_>>());
    host.until(190);
    assert_eq!(host.sent(), [0_u64; 0], "nothing more before an ACK");
}

#[test]
fn slow_start_counts_packets_not_acks() {
    for stretch in [1, 2, 5, 10] {
        let mut host = Host::connected("reno", 100, &stock());
        host.write_endless().forget();
        host.until(200);
        for upto in (stretch..=10).step_by(stretch as usize) {
            host.ack(upto);
        }
        assert_eq!(host.cwnd(), 20, "ACKs of {stretch}");
        assert_eq!(host.sent(), run(10, 30), "ACKs of {stretch}");
    }
}

#[test]
fn congestion_avoidance_adds_one_segment_a_window() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    // One loss: the threshold becomes 5.
    host.until(200).sack(0, &[(1, 10)]).until(300).ack(10);
    assert_eq!((host.window(), host.state()), ((5, 5), "congestion_avoidance"));
    let mut acked = 10;
    for expected in 6..12 {
        host.wait(100);
        for _ in 0..expected / 2 {
            acked = (acked + 2).min(host.total());
            host.ack(acked);
        }
        assert_eq!(host.cwnd(), expected);
    }
}

/// `tcp_is_cwnd_limited`: in slow start the window may be twice what was used, not more.
#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(5).until(200).ack(5);
    assert_eq!(host.cwnd(), 10, "half of it was used");
    host.write(11).until(300).ack(11);
    assert_eq!(host.cwnd(), 16, "more than half of it was used: six packets delivered");
}

/// A send buffer that takes any of these writes at once.
const ROOMY: u64 = 1 << 20;

/// `tcp_cwnd_restart` (RFC 2861): halved for every timeout of silence, not below the initial window.
#[test]
fn an_idle_window_halves_for_every_timeout_of_silence() {
    let idle = |ms: u64, restart: bool| {
        let stack = settings(|s| (s.slow_start_after_idle, s.wmem[1]) = (restart, ROOMY));
        let mut host = Host::connected("reno", 100, &stack);
        host.write(10).until(200).ack(10);
        host.write(30).until(300).ack(30);
        host.write(70).until(400).ack(70);
        assert_eq!(host.cwnd(), 80);
        // RTO = 100 + 200 ms = 75 ticks; the last data left at 300 ms.
        host.until(300 + ms).write(71);
        host.cwnd()
    };
    assert_eq!(idle(296, true), 80);
    assert_eq!(idle(300, true), 80, "exactly one timeout");
    assert_eq!(idle(304, true), 40, "more than one timeout");
    assert_eq!(idle(600, true), 40);
    assert_eq!(idle(604, true), 20, "more than two");
    assert_eq!(idle(904, true), 10);
    assert_eq!(idle(5_000, true), 10, "never below the initial window");
    assert_eq!(idle(5_000, false), 80, "tcp_slow_start_after_idle = 0");
}

/// `tcp_cwnd_application_limited`: a window not used for a timeout shrinks halfway to what was used.
#[test]
fn a_window_that_is_not_used_decays_while_no_ack_comes() {
    let mut host = Host::connected("reno", 100, &settings(|s| s.wmem[1] = ROOMY));
    host.write(10).until(200).ack(10);
    host.write(30).until(300).ack(30);
    host.write(70).until(400).ack(70);
    assert_eq!(host.cwnd(), 80);
    let mut total = 70;
    for _ in 0..8 {
        total += 2;
        host.write(total).wait(100).ack(total);
        assert_eq!(
            host.cwnd(),
            80,
            "each ACK that may grow the window renews its stamp (tcp_cong_avoid)"
        );
    }
    // The last ACK came at 1200 ms; the timeout is 300 ms.
    host.until(1_400).write(total + 1).until(1_496).write(total + 2);
    assert_eq!(host.cwnd(), 80);
    host.until(1_504).write(total + 3);
    assert_eq!(host.cwnd(), 45, "halfway down to the initial window");
    assert_eq!(host.window().1, u64::MAX, "the threshold is not lowered by idling");
}
