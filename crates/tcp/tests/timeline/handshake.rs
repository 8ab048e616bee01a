//! Opening a connection.

use crate::harness::{Host, SACK, SCALING, TIMESTAMPS, settings, stock};
use dragstrip_tcp::{Flags, Phase};

fn syns(host: &mut Host) -> Vec<u64> {
    let syns = host.departures().into_iter().filter(|sent| sent.segment.flags.has(Flags::SYN));
    syns.map(|sent| sent.at.as_nanos() / 1_000_000).collect()
}

/// 1 s, then doubled; the wheel rounds 250 ticks up to a multiple of 8, 500 too, 1000 to one of 64.
#[test]
fn a_lost_syn_is_retransmitted_after_a_second() {
    let mut host = Host::client("reno", &stock());
    host.until(10_000);
    assert_eq!(syns(&mut host), [0, 1_024, 3_040, 7_168]);
}

#[test]
fn data_follow_the_acknowledged_syn_ack() {
    let mut host = Host::client("reno", &stock());
    host.write(3).until(100);
    assert_eq!(host.sent(), [0_u64; 0], "not before");
    host.answer_syn(SACK | TIMESTAMPS | SCALING);
    let departures = host.departures();
    assert_eq!(departures[0].segment.len, 0, "the third step of the handshake");
    assert_eq!(departures.len(), 4);
    assert_eq!(departures[1].segment.frame_len(), 1514);
}

/// Linux asks for two losses before it doubts the network (`tcp_init_transfer`; RFC 6298 §5.7).
#[test]
fn the_initial_window_is_one_after_two_lost_syns() {
    for (answered, window) in [(100, 10), (1_124, 10), (3_140, 1)] {
        let mut host = Host::client("reno", &stock());
        host.until(answered).answer_syn(SACK | TIMESTAMPS | SCALING);
        host.forget().write_endless();
        assert_eq!(host.sent().len(), window, "answered at {answered} ms");
    }
}

/// Karn forbids a sample from a SYN sent twice; the timestamp tells which one was answered.
#[test]
fn a_repeated_syn_gives_a_sample_by_its_timestamp_only() {
    let opened = |timestamps: bool| {
        let stack = settings(|s| (s.timestamps, s.tail_loss_probe) = (timestamps, false));
        let mut host = Host::client("reno", &stack);
        host.until(1_124).answer_syn(SACK | SCALING | if timestamps { TIMESTAMPS } else { 0 });
        host.forget().write(1).until(6_000);
        (host.snapshot().srtt_ns, host.sent_at()[1].0)
    };
    // RTO = 300 ms: 75 ticks from tick 281, bucket 360.
    assert_eq!(opened(true), (Some(100_000_000), 1_440));
    // RFC 6298 §5.7: without a sample the timeout becomes 3 s: 750 ticks from tick 281, bucket 1088.
    assert_eq!(opened(false), (None, 4_352));
}

#[test]
fn options_are_used_when_both_sides_have_them() {
    let mut host = Host::client("reno", &stock());
    host.until(100).answer_syn(SACK | SCALING);
    host.forget().write_endless();
    let departures = host.departures();
    assert_eq!(departures[0].segment.len, 1460, "no timestamps: twelve bytes more");
    assert_eq!(departures[0].segment.timestamps(), None);
    assert_eq!(departures[0].segment.frame_len(), 1514);

    let mut host = Host::client("reno", &settings(|s| s.timestamps = false));
    assert_eq!(host.departures()[0].segment.timestamps(), None);
}

/// The smaller MTU of the two sides governs.
#[test]
fn the_segment_size_follows_the_peers_announcement() {
    let mut host = Host::client("reno", &stock());
    host.window = 65_535;
    host.until(100).answer_syn_with_mss(SACK | TIMESTAMPS | SCALING, 536);
    host.forget().write_endless();
    assert_eq!(host.departures()[0].segment.len, 524);
}

#[test]
fn a_server_that_hears_the_syn_again_answers_again() {
    let mut host = Host::client("reno", &stock());
    host.until(100).answer_syn(SACK | TIMESTAMPS | SCALING);
    host.forget();
    assert_eq!(host.endpoint().phase(), Phase::Established);
    // Our ACK was lost: the SYN-ACK comes again.
    host.until(1_100).answer_syn(SACK | TIMESTAMPS | SCALING);
    let departures = host.departures();
    assert_eq!((departures.len(), departures[0].segment.len), (1, 0));
}

#[test]
fn without_window_scaling_64_kib_are_the_limit() {
    let mut host = Host::receiver(100, &settings(|s| s.window_scaling = false));
    for number in 0..400 {
        host.wait(1).echoing(50).data(number);
    }
    let offered = host.departures().iter().map(|sent| sent.segment.window).max();
    assert_eq!(offered, Some(65_535));
}

#[test]
fn a_reset_connection_is_silent() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless().forget();
    host.reset();
    host.until(60_000);
    assert_eq!(host.departures().len(), 0);
}
