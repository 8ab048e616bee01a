//! The profile of Linux 2.2: `tcp_input.c` of 2.2.13, `tcp_output.c` of 2.2.10, `tcp_timer.c` and `tcp_ipv4.c` of 2.2.14. Ticks
//! of 10 ms; times are multiples of them unless a test is about what lies between.

use crate::harness::{Host, SACK, TIMESTAMPS, run};
use dragstrip_tcp::Settings;

fn old(change: impl FnOnce(&mut Settings)) -> Settings {
    // An application that writes whole segments.
    let mut settings = Settings { write_bytes: 45 * 1460, ..Settings::linux_2_2() };
    change(&mut settings);
    settings
}

/// A peer with these options; everything is written at 100 ms.
fn client(bits: i32, cc: &str, stack: &Settings) -> Host {
    let mut host = Host::client(cc, stack);
    host.window = 32_120;
    host.until(100);
    host.answer_syn(bits);
    host.write_endless();
    host
}

/// Ten segments out since 100 ms, the clock at 200 ms, a threshold nowhere.
fn ten_out(bits: i32) -> Host {
    let mut host = client(bits, "reno", &old(|settings| settings.initial_cwnd = 10));
    host.forget().until(200);
    host
}

/// `tcp_v4_init_sock`.
#[test]
fn the_window_begins_with_two_segments() {
    let mut host = client(0, "reno", &old(|_| {}));
    assert_eq!((host.cwnd(), host.sent()), (2, run(0, 2)));
}

/// `tcp_cong_avoid`: by one for each ACK, and nobody asks whether the window was used: the peer's 22 segments never fill it.
#[test]
fn the_window_grows_with_every_ack_used_or_not() {
    let mut host = client(0, "reno", &old(|settings| settings.initial_cwnd = 30));
    assert_eq!(host.sent(), run(0, 22));
    host.until(200).ack(2).ack(20);
    assert_eq!(host.cwnd(), 32);
}

/// `tcp_fast_retrans` without SACK: half of ten and three; every further duplicate adds one; the end takes back the threshold.
#[test]
fn the_third_duplicate_retransmits_and_further_ones_inflate_the_window() {
    let mut host = ten_out(0);
    host.ack(0).ack(0);
    assert_eq!((host.sent(), host.cwnd()), (vec![], 10), "no limited transmit");
    host.ack(0);
    assert_eq!((host.sent(), host.window(), host.state()), (vec![0], (8, 5), "recovery"));
    // Eleven are out with the retransmission.
    host.ack(0).ack(0).ack(0);
    assert_eq!((host.sent(), host.cwnd()), (vec![], 11));
    host.ack(0);
    assert_eq!((host.sent(), host.cwnd()), (vec![10], 12));
    host.ack(11);
    assert_eq!(
        (host.window(), host.state()),
        ((5, 5), "slow_start"),
        "which holds at the threshold"
    );
}

/// Segments that a fast retransmit repaired are not counted for growth: the ACK covers them.
#[test]
fn with_three_duplicates_exactly_the_window_stays_inflated() {
    let mut host = ten_out(0);
    host.ack(0).ack(0).ack(0).ack(10);
    assert_eq!((host.window(), host.state()), ((8, 5), "congestion_avoidance"));
}

/// A partial ACK sends the next hole, and the window neither grows nor shrinks.
#[test]
fn a_partial_ack_repairs_the_next_hole() {
    let mut host = ten_out(0);
    host.ack(0).ack(0).ack(0).forget();
    host.ack(3);
    assert_eq!((host.sent().first(), host.window()), (Some(&3), (8, 5)));
}

/// With SACK holes up to the highest one are retransmitted as far as the window goes, and what lies below it does not count as out.
#[test]
fn sacks_point_at_holes_and_make_room() {
    let mut host = ten_out(SACK);
    host.sack(0, &[(2, 3)]);
    // Ten are out less three: three more fit.
    assert_eq!((host.sent(), host.window()), (run(10, 13), (10, u64::MAX)));
    // The fourth is SACKed: more than three. Thirteen less four, and one retransmitted, fill the window of 5 + 3.
    host.sack(0, &[(2, 4)]);
    assert_eq!((host.sent(), host.window(), host.state()), (vec![0], (8, 5), "recovery"));
    host.sack(0, &[(2, 6)]);
    assert_eq!(host.sent(), [0_u64; 0], "the third duplicate looks for no hole");
    // Thirteen less eight, and two retransmitted: one more.
    host.sack(0, &[(2, 8)]);
    assert_eq!((host.sent(), host.cwnd()), (vec![1, 13], 8));
}

/// `tcp_recalc_ssthresh`: half of what the peer's window lets out, not of a window that has grown beyond it.
#[test]
fn the_threshold_is_half_of_what_was_usable() {
    let mut host = client(0, "reno", &old(|settings| settings.initial_cwnd = 100));
    host.until(200).ack(0).ack(0).ack(0);
    assert_eq!(host.window(), (14, 11), "22 segments fit into 32120 bytes");
}

/// Three seconds before the first sample, which the handshake does not give.
#[test]
fn the_handshake_gives_no_rtt() {
    let mut host = client(SACK | TIMESTAMPS, "reno", &old(|_| {}));
    host.forget().until(3_090);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(3_100);
    assert_eq!(host.sent(), [0]);
}

/// `tcp_set_rto`: 100 ms once give (100 + 4 · 100) · 1¼ ms and, for a window of eleven, 50 ticks by 2^10: 620 ms (62 ticks; the
/// quarter is cut), counted from when the head was sent.
#[test]
fn the_timeout_is_a_quarter_longer_and_counts_from_the_head() {
    let mut host = ten_out(0);
    host.ack(1).forget();
    // Segment 1 left at 100 ms.
    host.until(710);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(720);
    assert_eq!((host.sent(), host.window(), host.state()), (vec![1], (1, 5), "loss"));
}

/// After a timeout all that was out is retransmitted, as far as the window allows, and nothing new before all of it is acknowledged;
/// no RTT is taken, and the timeout stays doubled until a segment that went once is acknowledged.
#[test]
fn after_a_timeout_nothing_new_is_sent_until_all_is_acknowledged() {
    let mut host = ten_out(0);
    host.until(3_200).forget();
    assert_eq!(host.window(), (1, 5));
    host.ack(1);
    assert_eq!((host.sent(), host.cwnd()), (vec![1, 2], 2));
    host.ack(3);
    assert_eq!((host.sent(), host.cwnd()), (vec![3, 4, 5], 3));
    host.ack(9);
    assert_eq!((host.sent(), host.state()), (vec![9], "loss"));
    host.ack(10);
    assert_eq!((host.sent(), host.state()), (run(10, 15), "slow_start"));
    // 3 s, doubled once.
    host.until(9_190);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(9_200);
    assert_eq!(host.sent(), [10]);
}

/// Every timeout doubles; the threshold is reduced by the first alone.
#[test]
fn a_second_timeout_does_not_reduce_again() {
    let mut host = ten_out(0);
    host.until(3_100).until(9_100);
    assert_eq!((host.sent(), host.window()), (vec![0, 0], (1, 5)));
    assert_eq!(host.endpoint().rto_count(), 2);
}

/// With timestamps an RTT is taken even then, and doubled as often as timeouts came: 100 ms for the retransmission of 3100 ms.
#[test]
fn with_timestamps_the_timeout_is_measured_while_repairing() {
    let mut host = ten_out(SACK | TIMESTAMPS);
    host.until(3_200).ack(1).forget();
    // (10 + 40 ticks) · 1¼, and half of it for a window of two: 62 + 25 ticks, doubled.
    host.until(3_200 + 1_730);
    assert_eq!(host.sent(), [0_u64; 0]);
    host.until(3_200 + 1_740);
    assert_eq!(host.sent(), [1]);
}

/// `tcp_snd_test`: less than half a segment waits for everything that is out; more does not.
#[test]
fn a_short_segment_waits_only_if_it_is_less_than_half() {
    let mut host = client(0, "reno", &old(|_| {}));
    host.until(200).ack_all();
    let mut host = Host::client("reno", &old(|_| {}));
    host.until(100);
    host.answer_syn(0);
    host.write_bytes(1_460 + 729);
    assert_eq!(host.departures().iter().filter(|sent| sent.segment.len > 0).count(), 1);
    host.write_bytes(1_460 + 730);
    assert_eq!(host.departures().iter().filter(|sent| sent.segment.len > 0).count(), 1);
}

/// `SK_WMEM_MAX`: 65535 bytes, of which a segment takes 1460, 160 for headers and 184 for itself: the 37th is begun with 64944.
#[test]
fn the_send_buffer_is_64_kilobytes_and_refilled_segment_by_segment() {
    let mut host = client(0, "reno", &old(|settings| settings.initial_cwnd = 4));
    assert_eq!(host.endpoint().bytes_written(), 37 * 1_460);
    host.until(200).ack(1);
    assert_eq!(host.endpoint().bytes_written(), 38 * 1_460);
}

/// Half of 65535 bytes, in whole segments, from the start, whatever arrives.
#[test]
fn half_the_receive_buffer_is_offered_in_whole_segments() {
    let mut host = Host::receiver(100, &old(|settings| settings.timestamps = false));
    host.until(200).data(0).until(210).data(1).data(2);
    let windows: Vec<u32> = host.departures().iter().map(|sent| sent.segment.window).collect();
    assert_eq!(windows, [32_120, 32_120]);
}

/// `tcp_delack_estimator`: the first at once; then two full ones, or half the last delay and the time since the last segment: one
/// tick and half of one at first, later 3 and half of 2.
#[test]
fn acks_wait_for_the_data_s_spacing() {
    let mut host = Host::receiver(100, &old(|_| {}));
    host.until(200).data(0);
    assert_eq!(host.acks(), [(200, 1, vec![])]);
    host.until(220).data(1).until(300);
    assert_eq!(host.acks(), [(240, 2, vec![])], "0 + 2 ticks");
    host.data(2).until(310).data(3);
    assert_eq!(host.acks(), [(310, 4, vec![])], "two");
    host.until(340).data(4).until(500);
    // 8 ticks after the first, then 4 + 1, then 2 + 3.
    assert_eq!(host.acks(), [(390, 5, vec![])]);
}

/// Data out of order and duplicates are acknowledged at once; a duplicate is not reported.
#[test]
fn data_out_of_order_are_acknowledged_at_once() {
    let mut host = Host::receiver(100, &old(|_| {}));
    host.until(200).data(0).until(210).data(2);
    assert_eq!(host.acks()[1..], [(210, 1, vec![(2, 3)])]);
    host.data(1);
    assert_eq!(host.acks(), [(210, 3, vec![])]);
    host.data(1);
    assert_eq!(host.acks(), [(210, 3, vec![])]);
}

/// The patch of 1999 in slow start, with RTTs of 110 ms (a tick counts on top) and then 210: of the eight segments of the round
/// four fill the path, and one is added. Slow start does not come back.
#[test]
fn the_vegas_patch_leaves_slow_start_at_the_rate_of_the_path() {
    let mut host = client(0, "vegas", &old(|_| {}));
    host.until(200).ack(1).ack(2).until(300).ack(3).ack(4).ack(5).ack(6);
    assert_eq!(host.window(), (8, u64::MAX));
    host.until(500);
    for upto in 7..15 {
        host.ack(upto);
    }
    assert_eq!(host.window(), (16, u64::MAX), "the round before is judged, whose ACKs were fast");
    host.until(710).ack(15);
    assert_eq!(host.window(), (5, 2));
}
