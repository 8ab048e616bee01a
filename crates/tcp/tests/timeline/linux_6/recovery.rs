//! Losses found by SACK and by time, and the window while they are repaired.

use crate::harness::{Host, settings, stock};
use dragstrip_tcp::Settings;

/// Ten segments out since 100 ms, the clock at 200 ms.
fn ten_out(stack: &Settings) -> Host {
    let mut host = Host::connected("reno", 100, stack);
    host.write_endless().forget().until(200);
    host
}

/// `tcp_cwnd_reduction` (RFC 6937bis): a window of 10 becomes 5 over one round trip; one segment may leave
/// for every two that arrive, until in flight equals the threshold.
#[test]
fn the_window_follows_prr_step_by_step() {
    let mut host = ten_out(&stock());
    host.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).forget();
    // (ms, SACKed up to, window after it, sent because of it): in flight + ceil(5·delivered/10) − sent.
    let steps: [(u64, u64, u64, &[u64]); 9] = [
        (201, 4, 9, &[0]),
        (202, 5, 8, &[]),
        (203, 6, 8, &[12]),
        (204, 7, 7, &[]),
        (205, 8, 7, &[13]),
        (206, 9, 6, &[]),
        // In flight equals the threshold; from here on every arrival lets one out.
        (207, 10, 5, &[]),
        (300, 11, 5, &[14]),
        (300, 12, 5, &[15]),
    ];
    for (ms, upto, cwnd, sent) in steps {
        host.until(ms).sack(0, &[(1, upto)]);
        assert_eq!((host.cwnd(), host.sent().as_slice()), (cwnd, sent), "SACKed up to {upto}");
    }
    assert_eq!((host.window(), host.state()), ((5, 5), "recovery"));
}

/// RFC 8985: a lost retransmission shows when something sent after it arrives; 2.6 kernels wait for a timeout.
#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut host = ten_out(&stock());
    host.sack(0, &[(1, 4)]);
    assert_eq!(host.sent(), [0, 10], "new data behind the retransmission");
    host.until(204).sack(0, &[(1, 10)]).forget();
    host.until(300).sack(0, &[(1, 11)]);
    assert_eq!(host.sent()[0], 0, "once more");
    assert_eq!((host.endpoint().rto_count(), host.endpoint().reductions()), (0, 1));
    // Without RACK nobody notices.
    let mut host = ten_out(&settings(|s| s.rack = false));
    host.sack(0, &[(1, 4)]).until(204).sack(0, &[(1, 10)]).forget();
    host.until(300).sack(0, &[(1, 11)]);
    assert!(!host.sent().contains(&0));
}

/// `tcp_rack_reo_wnd`: once reordering was seen, a quarter of the minimum RTT is waited for.
#[test]
fn a_known_reordering_delays_the_verdict() {
    let reordered = || {
        let mut host = ten_out(&stock());
        // Segment 0 comes 1 ms after segment 1: reordering.
        host.sack(0, &[(1, 2)]).until(201).ack(2).until(202).ack(10);
        let head = host.until(300).total();
        host.ack(head).forget().until(400);
        (host, head)
    };
    let (mut host, head) = reordered();
    host.sack(head, &[(head + 1, head + 10)]);
    assert_eq!(host.state(), "disorder", "nine SACKed segments are no proof");
    // 20 ms later it arrives after all.
    host.until(420).ack(head + 10);
    assert_eq!((host.endpoint().retransmits(), host.endpoint().reductions()), (0, 0));

    let (mut host, head) = reordered();
    host.sack(head, &[(head + 1, head + 10)]).forget();
    // tcp_rack_mark_lost: 25 + 2 ms are 7 ticks; the wheel adds one: tick 108.
    host.until(431);
    assert!(!host.sent().contains(&head));
    host.until(432);
    assert_eq!(host.sent_at()[0], (432, head));
    assert_eq!(host.state(), "recovery");
}

/// With fewer than three SACKed and nothing more coming, RACK's timer finds the loss long before the timeout.
#[test]
fn two_sacked_segments_suffice_after_a_quarter_of_the_rtt() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(3).until(200).sack(0, &[(1, 3)]).forget();
    assert_eq!(host.state(), "disorder");
    // 25 + 2 ms: 7 ticks from tick 50, one more in the wheel.
    host.until(500);
    assert_eq!(host.sent_at(), [(232, 0)]);
    assert_eq!(host.endpoint().rto_count(), 0);
}

/// `tcp_check_sack_reneging`: the receiver gets half an RTT to explain itself, then all SACKs are void.
#[test]
fn a_receiver_that_reneges_is_believed_no_longer() {
    let mut host = ten_out(&settings(|s| s.tail_loss_probe = false));
    host.sack(0, &[(2, 10)]).forget();
    // Segments 0 and 1 are acknowledged, 2 is the next: it was SACKed, so it is gone there.
    host.until(300).ack(2).forget();
    // max(RTT/2, 10 ms): 50 ms = 13 ticks from tick 75, one more in the wheel.
    host.until(355);
    assert_eq!(host.endpoint().rto_count(), 0);
    host.until(356);
    assert_eq!(host.endpoint().rto_count(), 1);
    assert_eq!(host.sent_at(), [(356, 2)]);
    // The SACK marks are gone: segment 3 is retransmitted too.
    host.until(456).ack(3);
    assert!(host.sent().contains(&3));
}

// ---- without SACK ----

fn no_sack() -> Settings {
    settings(|s| s.sack = false)
}

/// RFC 6582: three duplicates, then one hole per round trip, on partial ACKs.
#[test]
fn newreno_repairs_one_hole_a_round_trip() {
    let mut host = ten_out(&no_sack());
    // The first ACK after the SYN-ACK sets the window and is no duplicate (tcp_may_update_window).
    host.ack(0).ack(0).ack(0);
    assert_eq!(host.sent(), [10, 11], "limited transmit");
    host.ack(0);
    assert_eq!((host.state(), host.sent()), ("recovery", vec![0]));
    // Segment 4 was lost too: of the twelve, ten arrive out of order.
    for _ in 0..7 {
        host.ack(0);
    }
    host.forget().until(300).ack(4);
    assert_eq!(host.sent()[0], 4);
    assert_eq!(host.state(), "recovery");
    host.until(400).ack(12);
    assert_eq!(host.endpoint().reductions(), 1);
    assert_eq!(host.cwnd(), 5);
}

/// `tcp_is_non_sack_preventing_reopen`: at exactly `high_seq` duplicates of the episode may still come.
#[test]
fn newreno_stays_in_recovery_until_it_is_passed() {
    let mut host = ten_out(&no_sack());
    host.ack(0).ack(0).ack(0).ack(0).forget();
    host.until(300).ack(12);
    assert_eq!(host.state(), "recovery", "acknowledged up to the end of the episode, not beyond");
    let beyond = host.total();
    host.until(400).ack(beyond);
    assert_eq!(host.state(), "congestion_avoidance");
    assert_eq!(host.endpoint().reductions(), 1);
}

/// `tcp_limit_reno_sacked`: a duplicate stands for a segment behind the hole; there are no more than that.
#[test]
fn newreno_believes_no_more_duplicates_than_there_are_segments() {
    let mut host = Host::connected("reno", 100, &no_sack());
    host.write(4).until(200);
    for _ in 0..20 {
        host.ack(0);
    }
    // Three were enough for recovery; with the fourth the network is known to copy or reorder.
    assert_eq!((host.state(), host.endpoint().reductions()), ("recovery", 1));
    assert_eq!(host.snapshot().bytes_in_flight, 1448, "the retransmission of the hole");
    host.until(300).ack(4);
    assert_eq!(host.snapshot().bytes_in_flight, 0);
}

/// `tcp_disordered_ack`: an ACK that another has overtaken is refused by its timestamp, SACKs and all; a duplicate ACK is
/// not, or the last SACKs of a burst would be lost wherever ACKs change places.
#[test]
fn of_outdated_acks_only_duplicates_are_taken() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless().until(200).ack(4);
    host.late(50).sack(2, &[(6, 8)]);
    assert_eq!(host.state(), "slow_start");
    host.sack(4, &[(6, 7)]);
    assert_eq!(host.state(), "disorder");
    // Older than a timeout: not even these.
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    for round in 2..=8 {
        host.until(100 * round).ack_all();
    }
    let next = host.snapshot().bytes_acked / 1448;
    host.late(500).sack(next, &[(next + 1, next + 2)]);
    assert_eq!(host.state(), "slow_start");
}
