//! The profiles of Linux 2.6.27 and 2.6.38: what differs from 6.1, after their `net/ipv4/tcp_input.c`.

use crate::harness::{Host, run};
use dragstrip_tcp::{Metrics, Settings};
use dragstrip_units::Instant;

fn old(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings { hz: 1000, ..Settings::linux_2_6_27() };
    change(&mut settings);
    settings
}

/// Ten segments out since 100 ms, the clock at 200 ms.
fn ten_out(stack: &Settings) -> Host {
    let mut host = Host::connected("reno", 100, stack);
    host.write_endless().forget().until(200);
    host
}

fn ten(change: impl FnOnce(&mut Settings)) -> Settings {
    old(|settings| {
        settings.initial_cwnd = 10;
        // Room for more than ten: what is sent does not hang on the send buffer here.
        settings.wmem[1] = 65_536;
        change(settings);
    })
}

/// §1: RFC 3390 gives three segments of 1448 bytes.
#[test]
fn the_window_begins_with_three_segments() {
    let mut host = Host::connected("reno", 100, &old(|_| {}));
    host.write_endless();
    assert_eq!((host.cwnd(), host.sent()), (3, run(0, 3)));
}

/// `tcp_slow_start` of 2.6.27: an ACK counts once, however much it covers.
#[test]
fn slow_start_counts_acks() {
    let mut host = ten_out(&ten(|_| {}));
    host.ack(2);
    assert_eq!(host.cwnd(), 11);
    host.ack(10);
    assert_eq!(host.cwnd(), 12);
}

/// `tcp_time_to_recover`: FACK counts the holes below the highest SACK: one SACK four segments above the head begins recovery, and all
/// but the last `reordering` of them are lost.
#[test]
fn fack_takes_holes_for_losses() {
    let mut host = ten_out(&ten(|_| {}));
    host.sack(0, &[(4, 5)]);
    assert_eq!(host.state(), "recovery");
    assert_eq!(host.sent(), [0], "rate halving lets one more out than are in flight");
}

/// `tcp_fackets_out` without FACK: as many SACKed segments as `reordering`, and holes do not count.
#[test]
fn without_fack_sacked_segments_are_counted() {
    use dragstrip_tcp::{Profile, StackKind};
    let mut host = ten_out(&ten(|settings| {
        settings.profile =
            Profile { stack: StackKind::Linux26 { fack: false }, ..Profile::LINUX_2_6_27 };
    }));
    host.sack(0, &[(7, 9)]);
    assert_eq!(host.state(), "disorder");
    host.sack(0, &[(7, 10)]);
    assert_eq!(host.state(), "recovery");
}

/// `tcp_cwnd_down`: every second ACK takes one from the window, down to half the threshold (Reno's `min_cwnd`).
#[test]
fn the_rate_is_halved_by_every_second_ack() {
    let mut host = ten_out(&ten(|_| {}));
    host.sack(0, &[(1, 4)]);
    let mut windows = vec![host.cwnd()];
    for upto in 5..11 {
        host.sack(0, &[(1, upto)]);
        windows.push(host.cwnd());
    }
    // In flight plus one, then one less for every second.
    assert_eq!(windows, [7, 6, 6, 5, 5, 4, 4]);
    assert_eq!(host.window().1, 5);
}

/// Every segment is an skb: 1448 bytes, 160 for headers and 184 for itself. The tenth is begun with 16128 of 16384 bytes in use.
#[test]
fn the_send_buffer_holds_ten_segments_at_first() {
    let mut host = Host::connected("reno", 100, &old(|_| {}));
    host.write_endless();
    assert_eq!(host.endpoint().bytes_written(), 10 * 1448);
}

/// `tcp_new_space`: to twice the window of 1820 bytes each, but only when less is out than the window allows: seven are left of
/// ten, then three for a window of five (18200 bytes: eleven), six for one of six, five for one of seven (25480: fifteen).
#[test]
fn the_send_buffer_grows_when_the_window_cannot_be_filled() {
    let mut host = Host::connected("reno", 100, &old(|_| {}));
    host.write_endless();
    let mut held = Vec::new();
    for _ in 0..5 {
        host.wait(100).ack_all();
        let endpoint = host.endpoint();
        let bytes = endpoint.bytes_written() - endpoint.bytes_acked();
        held.push((host.cwnd(), bytes / 1448));
    }
    assert_eq!(held, [(4, 7), (5, 11), (6, 11), (7, 15), (8, 15)]);
}

/// `tcp_should_expand_sndbuf` counts all that is out: SACKs make room in the window and none in the buffer, which then holds
/// the sender back.
#[test]
fn what_is_sacked_keeps_the_send_buffer_small() {
    let mut host = ten_out(&ten(|settings| {
        settings.wmem[1] = 16_384;
        settings.reordering = 127;
    }));
    host.forget().sack(0, &[(1, 10)]);
    assert_eq!((host.state(), host.cwnd(), host.sent()), ("disorder", 10, vec![]));
    assert_eq!(host.endpoint().bytes_written(), 10 * 1448);
    // Once they are acknowledged it grows to twice the reordering, 128 segments.
    host.ack(10);
    assert!(host.endpoint().bytes_written() > 256 * 1448);
}

/// `tcp_sock.reordering` has 8 bits: the setting is cut to them.
#[test]
fn reordering_is_cut_to_eight_bits() {
    for (setting, initial) in [(3, 3), (100, 100), (100_000, 160), (276_447_232, 0)] {
        assert_eq!(old(|s| s.reordering = setting).initial_reordering(), initial);
    }
}

/// With `reordering` 0 the window is cut to what is in flight, nothing at the end of an episode. The timer for closed windows
/// then sends a segment (`tcp_check_probe_timer`, `tcp_write_wakeup`). Its ACK ends the episode, which cuts the window once more; that
/// of the next one opens it.
#[test]
fn a_window_of_no_packets_is_probed() {
    let mut host = ten_out(&ten(|s| s.reordering = 0));
    host.sack(0, &[(1, 10)]);
    assert_eq!(host.state(), "recovery");
    host.forget().wait(100).ack(10);
    assert_eq!((host.cwnd(), host.sent()), (0, vec![]));
    host.wait(400);
    assert_eq!((host.sent(), host.state()), (vec![10], "disorder"), "after a timeout");
    host.forget().ack(11).wait(400);
    assert_eq!((host.sent(), host.state()), (vec![11], "slow_start"));
    host.ack(12);
    assert_eq!(host.cwnd(), 1);
}

/// `tcp_enter_frto`, `tcp_process_frto`: after a timeout nothing is lost yet; the first ACK lets two new segments out, and only
/// when the next is no SACK of theirs is the timeout taken for spurious.
#[test]
fn a_timeout_is_judged_before_anything_is_marked_lost() {
    let mut host = ten_out(&ten(|_| {}));
    host.forget().until(700);
    assert_eq!((host.sent(), host.state()), (vec![0], "disorder"));
    host.forget().ack(1);
    assert_eq!(host.sent(), [10, 11], "two new segments");
    host.forget().sack(1, &[(10, 11)]);
    assert_eq!((host.sent().first(), host.state()), (Some(&1), "loss"));
}

/// A segment that the host's own queue has no room for stays unsent, and the window is reduced without a loss
/// (`tcp_enter_cwr`): the next ACK sends it.
#[test]
fn a_full_queue_of_the_host_s_own_reduces_the_window() {
    let mut host = ten_out(&ten(|_| {}));
    host.queue_has_room(1).ack(2);
    assert_eq!((host.sent(), host.state()), (vec![10], "cwr"));
    // Half of 11 is the threshold, and never more than one beyond the nine in flight.
    assert_eq!(host.window(), (10, 5));
    host.queue_has_room(100).ack(4);
    assert_eq!(host.sent().first(), Some(&11), "it had not left");
    assert_eq!(host.endpoint().retransmits(), 0);
}

/// Alone it counts as sent, so that a timeout brings it back.
#[test]
fn a_lonely_segment_refused_comes_back_after_a_timeout() {
    let mut host = Host::connected("reno", 100, &old(|_| {}));
    host.queue_has_room(0).write(1).queue_has_room(10).forget().until(900);
    assert_eq!(host.sent(), [0]);
}

/// The next connection to the host begins with the threshold of the last, its reordering, without FACK, and at least its RTT:
/// 800 ms and 4 · 50 ms of deviation.
#[test]
fn a_connection_begins_with_what_the_last_one_has_learnt() {
    let metrics =
        Metrics { ssthresh: 7, reordering: 20, srtt_us_x8: 8 * 800_000, rttvar_us_x4: 4 * 50_000 };
    let mut host = Host::recalling("reno", 100, metrics, &ten(|_| {}));
    host.write_endless();
    assert_eq!(host.window(), (10, 7));
    host.forget().until(300).sack(0, &[(4, 5)]);
    assert_eq!(host.state(), "disorder", "20 packets may overtake, and holes are no losses");
    host.forget().until(1_095);
    assert_eq!(host.sent(), [0_u64; 0]);
    // Nothing was cumulatively acknowledged: the timeout of 1000 ms runs since 100 ms.
    host.until(1_105);
    assert_eq!(host.sent(), [0]);
}

/// 2.6.38: HyStart, whose train ends slow start after half the minimum RTT, in jiffies: 50 of 100 ms.
#[test]
fn from_2_6_29_hystart_ends_cubic_s_slow_start() {
    for (change, ends) in [(Settings::linux_2_6_38(), true), (Settings::linux_2_6_27(), false)] {
        let stack = Settings { hz: 1000, initial_cwnd: 100, ..change };
        let mut host = Host::connected("cubic", 100, &stack);
        host.write_endless().until(200);
        for number in 1..=60 {
            host.ack(number).wait(1);
        }
        assert_eq!(host.window().1 < u64::MAX, ends);
    }
}

/// 2.6.38 offers ten segments at first, 2.6.27 four.
#[test]
fn the_first_offer_is_a_few_segments() {
    for (change, segments) in [(Settings::linux_2_6_38(), 10), (Settings::linux_2_6_27(), 4)] {
        let mut host = Host::client("reno", &Settings { hz: 1000, ..change });
        assert_eq!(host.departures()[0].segment.window, segments * 1460);
    }
}

/// Vegas asks for RTTs in µs (`TCP_CONG_RTT_STAMP`), the others get jiffies.
#[test]
fn only_vegas_is_given_microseconds() {
    for (cc, rtt_us) in [("vegas", 100_400), ("reno", 100_000)] {
        let mut host = Host::connected(cc, 100, &Settings { hz: 1000, ..Settings::linux_2_6_38() });
        host.write_endless().until_instant(Instant::from_nanos(200_399_000)).ack(1);
        assert_eq!(host.snapshot().rtt_ns, Some(rtt_us * 1_000), "{cc}");
    }
}
