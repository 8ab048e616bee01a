//! The peer's window, the send buffer, and what is known of the delivery rate.

use crate::harness::{Host, run, settings, stock};
use dragstrip_tcp::{LimitedBy, Settings};

#[test]
fn the_peers_window_is_a_limit() {
    let mut host = Host::client("reno", &stock());
    host.window = 5 * 1448 + 700;
    host.until(100).answer_syn(7);
    host.write_endless();
    assert_eq!(host.sent(), run(0, 5), "no part of a segment goes");
    assert_eq!(host.snapshot().limit, LimitedBy::Rwnd);
    host.until(200).ack(5);
    assert_eq!(host.sent(), run(5, 10));
    assert_eq!(host.cwnd(), 10, "a window that is not used does not grow");
    host.window = 100 * 1448;
    host.until(300).ack(10);
    assert_eq!(host.sent(), run(10, 20));
    assert_eq!(host.snapshot().limit, LimitedBy::Cwnd);
}

fn small_buffer() -> Settings {
    settings(|s| s.wmem = [4_096, 16_384, 65_536])
}

/// `sk_stream_write_space`: a writer sleeps until a third of the buffer is free.
#[test]
fn a_full_send_buffer_is_refilled_when_a_third_is_free() {
    let mut host = Host::connected("reno", 100, &small_buffer());
    host.write_endless().until(200);
    let first = host.endpoint().bytes_written();
    // A segment takes 1448 + 1280 bytes: the 25th is the first for which there is nothing left.
    assert_eq!(first, 25 * 1448);
    let mut writes = Vec::new();
    for upto in 1..=160 {
        let before = host.endpoint().bytes_written();
        host.ack(upto);
        if host.endpoint().bytes_written() > before {
            writes.push(upto);
        }
    }
    // Two thirds of 64 KiB are sixteen segments.
    assert_eq!(writes[0], 9);
    assert!(writes.len() >= 2, "and again: {writes:?}");
}

#[test]
fn a_sender_without_data_in_its_full_buffer_is_limited_by_it() {
    let mut host = Host::connected("reno", 100, &small_buffer());
    host.write_endless().until(200).ack(10).until(300).ack(20).until(400).ack(30);
    let snapshot = host.snapshot();
    assert!(snapshot.bytes_in_flight < snapshot.cwnd_bytes);
    assert_eq!(snapshot.limit, LimitedBy::Sndbuf);
    // The application that has nothing more to say.
    let mut host = Host::connected("reno", 100, &stock());
    host.write(5);
    assert_eq!(host.snapshot().limit, LimitedBy::App);
}

#[test]
fn pacing_is_a_limit_and_not_the_window() {
    let mut host = Host::connected("bbr", 100, &stock());
    host.write_endless();
    for _ in 0..3 {
        host.wait(100).ack_all();
    }
    let snapshot = host.snapshot();
    assert!(snapshot.bytes_in_flight < snapshot.cwnd_bytes, "what is left waits for the pacer");
    assert_eq!(snapshot.limit, LimitedBy::Pacing);
    // Reno has no pacer, whatever its pacing rate is.
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    for _ in 0..3 {
        host.wait(100).ack_all();
    }
    assert_eq!(host.snapshot().limit, LimitedBy::Cwnd);
}

#[test]
fn without_a_connection_the_application_is_not_to_blame() {
    let mut host = Host::client("reno", &stock());
    host.until(100);
    assert_eq!(host.snapshot().limit, LimitedBy::Handshake);
    host.answer_syn(7);
    assert_eq!(host.snapshot().limit, LimitedBy::App);
}

/// `tcp_sndbuf_expand`: 2·cwnd·4352 bytes (BBR 3·), at most wmem[2].
#[test]
fn the_send_buffer_grows_with_the_window() {
    for (cc, initial) in [("reno", 87_040), ("bbr", 130_560)] {
        let mut host = Host::connected(cc, 100, &stock());
        host.write_endless();
        let bytes_written = host.endpoint().bytes_written();
        let segments = u64::div_ceil(initial, 1_448 + 1_280);
        assert_eq!(bytes_written, segments * 1_448, "{cc}");
    }
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    for _ in 0..6 {
        host.wait(100).ack_all();
    }
    let buffered_bytes = host.endpoint().bytes_written() - host.endpoint().bytes_acked();
    assert_eq!(host.cwnd(), 640);
    assert!(buffered_bytes > 1_000_000, "{buffered_bytes} bytes for a window of 640");
}

/// Without GSO every segment is an skb with its own overhead, and whatever is sent before the window is full lets the
/// buffer grow (`tcp_event_new_data_sent`, `tcp_check_space`). Positions as read off a socket of 6.1.192.
#[test]
fn without_bursts_every_segment_is_a_buffer_of_its_own() {
    let mut host = Host::connected("reno", 100, &settings(|s| s.gso = false));
    host.write_endless().until(200);
    let segments = |host: &Host| host.endpoint().bytes_written() / 1448;
    let mut writes = vec![(0, segments(&host))];
    for upto in 1..=25 {
        host.wait(12).ack(upto);
        if segments(&host) > writes[writes.len() - 1].1 {
            writes.push((upto, segments(&host)));
        }
    }
    assert_eq!(writes, [(0, 32), (4, 49), (9, 70), (16, 99), (25, 137)]);
}

// ---- delivery rate ----

const FLIGHT: u64 = 10 * 1448 * 8 * 10;

/// The delivery rate is `bps`, but for the tick that an ACK's clock is behind that of the segments it releases.
fn assert_delivered_at(host: &Host, bps: u64) {
    let measured = host.snapshot().delivery_bps.expect("a sample");
    assert!(measured.abs_diff(bps) <= bps / 50_000, "{measured}, not {bps}");
}

#[test]
fn the_delivery_rate_is_what_arrived_over_the_time_it_took() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless().until(200).ack(10);
    assert_delivered_at(&host, FLIGHT);
    // The next 20 left at 200 ms and are acknowledged 5 ms apart, two at a time: the last sample
    // holds 20 segments over 100 ms and the 45 ms that the ACKs took.
    for pair in 0..10 {
        host.until(300 + 5 * pair).ack(12 + 2 * pair);
    }
    assert_delivered_at(&host, 20 * 1448 * 8 * 1_000 / 145);
}

/// ACKs that arrive in one lump do not make the path faster: what was sent over 140 ms counts as that.
#[test]
fn compressed_acks_do_not_raise_the_delivery_rate() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless();
    for (at, upto) in [(200, 2), (210, 4), (220, 6), (230, 8), (240, 10)] {
        host.until(at).ack(upto);
    }
    assert_eq!(host.total(), 30);
    // Segment 29 left at 240 ms, when what had left at 100 ms was the last to have arrived.
    host.until(340).ack(30);
    assert_delivered_at(&host, 20 * 1448 * 8 * 1_000 / 140);
    // All 40 of the next flight left at once, 100 ms after segment 29.
    host.until(440).ack(70);
    assert_delivered_at(&host, 40 * 1448 * 8 * 10);
}

/// A sample shorter than the minimum RTT is not believed (`tcp_rate_gen`).
#[test]
fn a_sample_while_the_application_is_silent_never_lowers_the_rate() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write(10).until(200).ack(10);
    assert_delivered_at(&host, FLIGHT);
    // The application ran dry: two segments in 100 ms say nothing about the path.
    host.write(12).until(300).ack(12);
    assert_delivered_at(&host, FLIGHT);
    // More in the same time does, however little was asked for.
    host.write(24).until(400).ack(24);
    assert_delivered_at(&host, 12 * 1448 * 8 * 10);
    // Once the window is the limit again the rate counts, also downwards.
    let window = host.cwnd();
    host.write_endless().until(600).ack(24 + window);
    host.until(800).ack(24 + window + 10).until(1_000);
    let rate = host.snapshot().delivery_bps.unwrap();
    assert!(rate < window * 1448 * 8 * 10, "{rate}");
}
