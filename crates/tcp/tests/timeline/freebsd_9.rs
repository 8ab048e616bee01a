//! The profile of FreeBSD 9, after FreeBSD 9.3's `tcp_input.c`, `tcp_output.c`, `tcp_sack.c` and `tcp_timer.c`.

use crate::harness::{Host, SACK, SCALING, TIMESTAMPS, run};
use dragstrip_tcp::Settings;
use dragstrip_units::Duration;

fn freebsd(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::freebsd_9();
    change(&mut settings);
    settings
}

/// Ten segments out since 100 ms, the clock at 200 ms.
fn ten_out(change: impl FnOnce(&mut Settings)) -> Host {
    let stack = freebsd(|settings| {
        settings.initial_cwnd = 10;
        change(settings);
    });
    let mut host = Host::connected("newreno-freebsd", 100, &stack);
    host.write_endless().forget().until(200);
    host
}

/// §15: RFC 3390 in bytes: 4380 of them are three segments.
#[test]
fn the_window_begins_with_three_segments() {
    let mut host = Host::connected("newreno-freebsd", 100, &freebsd(|_| {}));
    host.write_endless();
    assert_eq!((host.cwnd(), host.sent()), (3, run(0, 3)));
}

/// RFC 3465 §2.2: two segments per ACK at most.
#[test]
fn slow_start_counts_bytes_up_to_two_segments() {
    let mut host = ten_out(|_| {});
    host.ack(2);
    assert_eq!(host.cwnd(), 12);
    host.ack(10);
    assert_eq!(host.cwnd(), 14);
}

/// RFC 3042: the first two duplicate ACKs let one new segment out each, and the window stays.
#[test]
fn the_first_two_duplicates_let_new_segments_out() {
    let mut host = ten_out(|_| {});
    host.sack(0, &[(1, 2)]);
    assert_eq!(host.sent(), [10]);
    host.sack(0, &[(1, 3)]);
    assert_eq!((host.sent(), host.cwnd()), (vec![11], 10));
    let mut host = ten_out(|settings| settings.bsd.limited_transmit = false);
    host.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]);
    assert_eq!(host.sent(), [0_u64; 0]);
}

/// The third begins a recovery: one segment of window repairs the hole; after that one segment per duplicate ACK
/// while less than the threshold (5) is beyond the highest SACK or retransmitted.
#[test]
fn sack_recovery_begins_with_one_segment_and_grows_by_duplicates() {
    let mut host = ten_out(|settings| settings.bsd.limited_transmit = false);
    host.sack(0, &[(2, 3)]).sack(0, &[(2, 4)]).sack(0, &[(2, 5)]);
    assert_eq!((host.state(), host.window(), host.sent()), ("recovery", (1, 5), vec![0]));
    // 10 − 6 beyond the highest SACK and one retransmitted: not less than 5.
    host.sack(0, &[(2, 6)]);
    assert_eq!((host.cwnd(), host.sent()), (1, vec![]));
    host.sack(0, &[(2, 7)]);
    assert_eq!((host.cwnd(), host.sent()), (2, vec![1]), "3 and 1 are");
    host.sack(0, &[(2, 8)]).sack(0, &[(2, 9)]).sack(0, &[(2, 10)]);
    assert_eq!((host.cwnd(), host.sent()), (5, vec![10, 11, 12]));
}

/// A partial ACK: what is out again and new, and one segment, or two if the ACK covers two; a full one ends the recovery at the
/// threshold, or one beyond what is still out.
#[test]
fn a_partial_ack_repairs_the_next_hole() {
    let mut host = ten_out(|settings| settings.bsd.limited_transmit = false);
    host.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).sack(0, &[(1, 3), (4, 5)]).forget();
    host.sack(3, &[(4, 5)]);
    assert_eq!((host.sent(), host.cwnd()), (vec![3, 10], 2));
    host.ack(10);
    assert_eq!((host.state(), host.cwnd()), ("slow_start", 2));
}

/// RFC 6582 without SACK: the window is the threshold and the duplicates, and is deflated by a partial ACK, which retransmits the
/// next segment.
#[test]
fn without_sack_the_window_is_inflated_and_deflated() {
    let stack = freebsd(|settings| {
        settings.initial_cwnd = 10;
        settings.sack = false;
    });
    let mut host = Host::client("newreno-freebsd", &stack);
    host.until(100);
    host.answer_syn(TIMESTAMPS | SCALING);
    host.write_endless().forget().until(200);
    host.ack(1).ack(1).ack(1).forget();
    host.ack(1);
    assert_eq!((host.sent().first(), host.state()), (Some(&1), "recovery"));
    let inflated = host.cwnd();
    host.ack(1);
    assert_eq!(host.cwnd(), inflated + 1);
    host.forget().ack(3);
    assert_eq!((host.sent().first(), host.cwnd()), (Some(&3), inflated + 1 - 2 + 1));
}

/// `tcp_xmit_timer` and `TCP_REXMTVAL` with `tcp_rexmit_slop`: 100 ms measured once give 100 + 4 · 50 ms, and 200 ms of slop: 500 ms after the segments left, all are retransmitted
/// one by one, as ACKs come; what is SACKed on the way is left out.
#[test]
fn after_a_timeout_everything_is_retransmitted() {
    let mut host = ten_out(|_| {});
    host.until(598);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(604);
    assert_eq!((host.sent(), host.window(), host.state()), (vec![0], (1, 5), "loss"));
    host.until(750).ack(1);
    assert_eq!((host.sent(), host.cwnd()), (vec![1, 2], 2));
    host.sack(2, &[(3, 5)]);
    assert_eq!((host.sent(), host.cwnd()), (vec![], 3), "the window ends at 5");
    host.ack(5);
    assert_eq!(host.sent(), run(5, 9), "3 and 4 had come");
}

/// The timeout doubles, the slop does not: 300 · 2 + 200 ms.
#[test]
fn the_slop_is_not_doubled() {
    let mut host = ten_out(|_| {});
    host.until(604).forget().until(1_395);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(1_410);
    assert_eq!(host.sent(), [0]);
}

/// `t_badrxtwin`: an ACK within half a round trip of the first timeout takes it back.
#[test]
fn a_timeout_that_was_wrong_is_taken_back() {
    let mut host = ten_out(|_| {});
    host.until(604);
    assert_eq!(host.window(), (1, 5));
    host.until(640).ack_of_original(1, &[]);
    assert_eq!((host.cwnd(), host.window().1), (11, u64::MAX), "and grows by the ACK");
}

/// `tcp_delacktime`: the first of two segments waits, at most 100 ms, whatever their size.
#[test]
fn every_second_segment_is_acknowledged() {
    let mut host = Host::receiver(100, &freebsd(|_| {}));
    host.until(200).data(0);
    assert_eq!(host.acks(), []);
    host.until(210).data(1);
    assert_eq!(host.acks(), [(210, 2, vec![])]);
    host.bytes(2 * 1448, 100).until(400);
    assert_eq!(host.acks(), [(310, 2, vec![])], "100 bytes of the third");
    let mut host =
        Host::receiver(100, &freebsd(|settings| settings.bsd.delayed_ack = Duration::ZERO));
    host.until(200).data(0);
    assert_eq!(host.acks(), [(200, 1, vec![])]);
}

/// Data out of order, and what fills a hole, are acknowledged at once; a duplicate is not reported.
#[test]
fn data_out_of_order_are_acknowledged_at_once() {
    let mut host = Host::receiver(100, &freebsd(|_| {}));
    host.until(200).data(1);
    assert_eq!(host.acks(), [(200, 0, vec![(1, 2)])]);
    host.data(0);
    assert_eq!(host.acks(), [(200, 2, vec![])]);
    host.data(0);
    assert_eq!(host.acks(), [(200, 2, vec![])]);
}

/// The clock of timestamps stands still between ticks.
#[test]
fn timestamps_advance_with_the_tick() {
    let mut host = Host::connected("newreno-freebsd", 104, &freebsd(|settings| settings.hz = 100));
    host.forget().write_endless();
    assert_eq!(host.departures()[0].stamps().val, 100);
}

/// sendspace is 32 KiB, in whole segments 23 of them: no more are out until the buffer has grown.
#[test]
fn the_send_buffer_grows_by_steps() {
    let stack = freebsd(|settings| settings.initial_cwnd = 100);
    let mut host = Host::connected("newreno-freebsd", 100, &stack);
    host.write_endless();
    // Each step of 8 KiB is taken as soon as the buffer is seven eighths full, and the window allows for it.
    assert_eq!(host.total(), 100);
    let stack = freebsd(|settings| {
        settings.initial_cwnd = 100;
        settings.bsd.send_step = 0;
    });
    let mut host = Host::connected("newreno-freebsd", 100, &stack);
    host.write_endless();
    assert_eq!(host.total(), 23);
}

/// recvspace is 64 KiB, in whole segments 46; when 7/8 of it came within a round trip, 16 KiB more are offered.
#[test]
fn the_receive_buffer_grows_by_steps() {
    let mut host = Host::receiver(100, &freebsd(|_| {}));
    let mut offered = Vec::new();
    host.until(200);
    for number in 0..100 {
        // The sender has seen what was sent 50 ms ago at the 60th segment.
        host.echoing(if number < 60 { 150 } else { 0 }).wait(u64::from(number == 60) * 50 + 1);
        host.data(number);
        offered.extend(host.departures().iter().map(|sent| sent.segment.window));
    }
    offered.dedup();
    assert_eq!(offered, [66_560, 82_944]);
}

/// Without timestamps one segment at a time is timed: two samples of 100 ms give 253 ms (RFC 6298 §2.3 in quarters of a tick),
/// and 200 of slop.
#[test]
fn without_timestamps_one_segment_is_timed() {
    let mut host = Host::client("newreno-freebsd", &freebsd(|_| {}));
    host.until(100);
    host.answer_syn(SACK);
    host.write_endless().until(200).ack(1).forget();
    host.until(652);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(654);
    assert_eq!(host.sent(), [1]);
}

/// `ENOBUFS`: a segment that the interface has no room for stays unsent, and the window is one segment; the threshold stays.
#[test]
fn a_full_interface_queue_sets_the_window_to_one_segment() {
    let mut host = ten_out(|_| {});
    host.queue_has_room(1).ack(2);
    assert_eq!((host.sent(), host.window()), (vec![10], (1, u64::MAX)));
    host.queue_has_room(100).ack(11);
    assert_eq!((host.sent(), host.cwnd()), (vec![11, 12, 13], 3));
}
