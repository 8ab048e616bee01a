//! Departure of a segment that may leave: pacing, bursts, the host's own queue.

use crate::harness::{Host, run, settings, stock};
use dragstrip_tcp::{Flags, LimitedBy, Settings};
use dragstrip_units::Duration;

fn gaps_ns(host: &mut Host) -> Vec<u64> {
    let at: Vec<u64> = host.departures().iter().map(|sent| sent.at.as_nanos()).collect();
    at.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// `tcp_update_skb_after_send`: a connection's first ten segments are not paced.
#[test]
fn the_first_flight_of_a_paced_algorithm_leaves_at_once() {
    let mut host = Host::connected("bbr", 100, &stock());
    host.forget().write_endless().until(150);
    assert_eq!(host.sent_at(), run(0, 10).into_iter().map(|n| (100, n)).collect::<Vec<_>>());
}

#[test]
fn the_eleventh_segment_is_paced() {
    let mut host = Host::connected("bbr", 100, &settings(|s| s.initial_cwnd = 20));
    host.forget().write_endless().until(150);
    let gaps = gaps_ns(&mut host);
    assert_eq!(gaps[..9], [0; 9]);
    assert!(gaps[9..].iter().all(|gap| *gap > 1_000_000), "{gaps:?}");
}

#[test]
fn then_segments_are_spaced_by_the_pacing_rate() {
    let mut host = Host::connected("bbr", 100, &stock());
    host.write_endless().forget().until(200).ack(10);
    let bytes_per_second = host.snapshot().pacing_bps.expect("BBR paces") / 8;
    // 2885/1000 · 10 segments in 100 ms, 1 % below it (bbr_pacing_margin_percent).
    assert!((400_000..420_000).contains(&bytes_per_second), "{bytes_per_second}");
    host.until(260);
    let gaps = gaps_ns(&mut host);
    assert!(gaps.len() > 10, "{gaps:?}");
    let spacing = 1448 * 1_000_000_000 / bytes_per_second;
    // The first one is late already: credit for at most half a gap.
    assert!((spacing / 2..=spacing).contains(&gaps[0]), "{gaps:?}");
    for gap in &gaps[1..] {
        assert!(gap.abs_diff(spacing) <= 1, "{gaps:?}, not {spacing}");
    }
}

#[test]
fn loss_based_algorithms_are_not_paced() {
    let mut host = Host::connected("cubic", 100, &stock());
    host.write_endless().forget().until(200).ack(10);
    assert_eq!(gaps_ns(&mut host), vec![0; 19]);
    // The rate is computed all the same: twice cwnd/srtt in slow start, of an srtt of 99.999 ms and by bytes.
    assert_eq!(host.snapshot().pacing_bps, Some(2 * 20 * 1448 * 1_000_000 / 99_999 * 8));
}

/// `tcp_pacing_delay`: what waits for the pacer is not probed like what waits for a closed window. The tenth segment is paced
/// as one of ten in ten seconds, and its ACK leaves nothing out; the timeout is 300 ms.
#[test]
fn nothing_leaves_before_the_pacer_lets_it() {
    let stack = settings(|s| {
        s.paced = true;
        (s.pacing_ss_ratio, s.pacing_ca_ratio) = (1, 1);
    });
    let mut host = Host::connected("reno", 100, &stack);
    host.write_endless().forget().until(200).ack(10).until(2_000);
    assert_eq!(host.sent_at()[0], (1_100, 10));
}

// ---- bursts ----

fn offload() -> Settings {
    settings(|s| s.gso = true)
}

/// Lengths of runs that end with PSH.
fn bursts(host: &mut Host) -> Vec<usize> {
    let pushed: Vec<bool> = host
        .departures()
        .iter()
        .filter(|sent| sent.segment.len > 0)
        .map(|sent| sent.segment.flags.has(Flags::PSH))
        .collect();
    pushed.split_inclusive(|last| *last).map(<[bool]>::len).collect()
}

/// `tcp_tso_autosize`: a millisecond of 290 kB/s is less than a segment, so the least: two.
#[test]
fn a_slow_path_gets_bursts_of_two() {
    let mut host = Host::connected("cubic", 100, &offload());
    host.forget().write_endless();
    assert_eq!(bursts(&mut host), [2; 5]);
}

/// At 1 ms a burst could hold 42 segments, but at least two bursts make a window (`tcp_cwnd_test`).
#[test]
fn a_short_path_gets_bursts_of_half_a_window() {
    let mut host = Host::connected("cubic", 1, &offload());
    host.forget().write_endless();
    assert_eq!(bursts(&mut host), [5, 5]);
}

#[test]
fn without_offload_nothing_is_pushed_within_a_write() {
    let mut host = Host::connected("cubic", 100, &stock());
    host.forget().write_endless();
    assert!(host.departures().iter().all(|sent| !sent.segment.flags.has(Flags::PSH)));
}

#[test]
fn the_last_segment_of_a_write_is_pushed() {
    let mut host = Host::connected("cubic", 100, &stock());
    host.forget().write_bytes(5_000);
    let departures = host.departures();
    let lengths: Vec<u16> = departures.iter().map(|departure| departure.segment.len).collect();
    assert_eq!(lengths, [1448, 1448, 1448, 656]);
    let pushed: Vec<bool> =
        departures.iter().map(|departure| departure.segment.flags.has(Flags::PSH)).collect();
    assert_eq!(pushed, [false, false, false, true]);
}

/// `tcp_sendmsg`: data that join a pushed buffer before it was sent take its push away.
#[test]
fn a_write_that_joins_the_one_before_moves_the_push() {
    let mut host = Host::connected("cubic", 100, &stock());
    // A whole segment and a part of one wait; what comes then fills the part first.
    host.forget().write_bytes(11 * 1448 + 500).write(20).until(200).ack(10);
    let pushed: Vec<u64> = host
        .departures()
        .iter()
        .filter(|sent| sent.segment.flags.has(Flags::PSH))
        .map(|sent| sent.segment.seq / 1448)
        .collect();
    assert_eq!(pushed, [19]);
}

/// Nagle with Minshall: a short segment waits for another short one, not for full ones.
#[test]
fn short_segments_wait_for_one_another() {
    let mut host = Host::connected("cubic", 100, &stock());
    host.forget().write_bytes(100).write_bytes(200).write_bytes(300);
    let lengths = |host: &mut Host| -> Vec<u16> {
        host.departures().iter().map(|sent| sent.segment.len).collect()
    };
    assert_eq!(lengths(&mut host), [100]);
    host.until(200).ack_bytes(100);
    assert_eq!(lengths(&mut host), [200], "both small writes in one");
}

// ---- TCP small queues ----

/// `tcp_small_queue_check`: a millisecond of the pacing rate, at least two segments, below TCP.
#[test]
fn at_most_two_segments_wait_in_a_slow_interface() {
    let mut host = Host::connected("cubic", 100, &stock());
    // 1448-byte segments at 1 Mbit/s take 12 ms each.
    host.forget().interface(Duration::from_millis(12)).write_endless();
    assert_eq!(host.sent_at(), [(100, 0), (100, 1)]);
    host.until(160);
    assert_eq!(host.sent_at(), [(112, 2), (124, 3), (136, 4), (148, 5), (160, 6)]);
    assert_eq!(host.snapshot().limit, LimitedBy::SmallQueue, "the window is open");
    // A limit of the administrator's is a limit.
    let mut host = Host::connected("cubic", 1, &settings(|s| s.limit_output_bytes = 1_000));
    host.forget().interface(Duration::from_millis(12)).write_endless();
    assert_eq!(host.sent().len(), 2, "but two always go");
    // A fast path has more in the interface: 1 ms of 29 MB/s holds the whole first flight.
    let mut host = Host::connected("cubic", 1, &stock());
    host.forget().interface(Duration::from_micros(12)).write_endless();
    assert_eq!(host.sent().len(), 10);
    assert_eq!(host.snapshot().limit, LimitedBy::Cwnd);
}

// ---- The application's writes ----

/// `tcp_stream_memory_free`: no segment is begun while `tcp_notsent_lowat` bytes are unsent.
#[test]
fn a_writer_waits_while_too_much_is_unsent() {
    let unsent = |lowat: u32| {
        let mut host = Host::connected("cubic", 100, &settings(|s| s.notsent_lowat = lowat));
        host.write_endless();
        (0..6).for_each(|_| {
            host.wait(100).ack_all();
        });
        host.snapshot().bytes_unsent
    };
    let (free, held) = (unsent(u32::MAX), unsent(16_384));
    assert!(free > 1_000_000, "the send buffer is the limit: {free}");
    assert!((1..16_384 + 1_448).contains(&held), "{held}");
}
