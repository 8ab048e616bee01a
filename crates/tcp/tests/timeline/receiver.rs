//! Timing of the receiver's acknowledgements, and their content.

use crate::harness::{Host, settings, stock};
use dragstrip_tcp::{Flags, Settings};

/// Segments 0 to `count`, one each millisecond from 101 ms on; all quick ACKs are spent.
fn after(count: u64) -> Host {
    after_on(&stock(), count)
}

fn after_on(settings: &Settings, count: u64) -> Host {
    let mut host = Host::receiver(100, settings);
    for number in 0..count {
        host.wait(1).data(number);
    }
    // A last one that waited for a second is acknowledged meanwhile.
    host.until(170).forget();
    host
}

/// `tcp_event_data_recv`: 16 quick ACKs, then every second segment.
#[test]
fn the_first_segments_are_acknowledged_one_by_one_then_every_second() {
    let mut host = Host::receiver(100, &stock());
    for number in 0..27 {
        host.wait(1).data(number);
    }
    let acked: Vec<u64> = host.acks().into_iter().map(|ack| ack.1).collect();
    let expected: Vec<u64> = (1..=16).chain([18, 20, 22, 24, 26]).collect();
    assert_eq!(acked, expected);
}

/// 40 ms from tick 50 are tick 60; the timer goes off on the one after.
#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let mut host = after(22);
    host.until(200).data(22).until(300);
    assert_eq!(host.acks(), [(244, 23, vec![])]);
}

/// `tcp_delack_timer_handler`: a delayed ACK that was not needed doubles the estimate.
#[test]
fn a_second_lone_segment_waits_twice_as_long() {
    let mut host = after(22);
    host.until(200).data(22).until(300).forget();
    host.data(23).until(500);
    // 80 ms, below the RTT of 100 ms: 20 ticks from tick 75.
    assert_eq!(host.acks(), [(384, 24, vec![])]);
}

#[test]
fn a_segment_after_a_long_silence_is_acknowledged_at_once() {
    let mut host = after(21);
    host.until(1_000).data(21);
    assert_eq!(host.acks(), [(1_000, 22, vec![])]);
}

/// `tcp_measure_rcv_mss`: a full segment with PSH, or a short one, is the end of a write.
#[test]
fn the_end_of_a_write_is_acknowledged_at_once() {
    let mut host = after(21);
    host.until(200).data_with(21, Flags::PSH);
    assert_eq!(host.acks(), [(200, 22, vec![])]);
    let mut host = after(21);
    host.until(200).bytes(21 * 1448, 1000);
    assert_eq!(host.acks().len(), 1);
}

/// RFC 7323 §4.3: an ACK of two segments echoes the first one's timestamp, so that its delay shows.
#[test]
fn a_delayed_ack_echoes_the_first_segment_it_covers() {
    let mut host = after(21);
    host.until(200).data(21).until(230).data(22);
    let ack = &host.departures()[0];
    assert_eq!((ack.segment.ack, ack.stamps().ecr), (23 * 1448, 200));
    // Out of order: still the last one that began no later than what had been acknowledged.
    host.until(240).data(24);
    assert_eq!(host.departures()[0].stamps().ecr, 200);
}

/// RFC 2018 §4: the block with the newest arrival first, at most three beside timestamps.
#[test]
fn the_newest_block_comes_first() {
    let mut host = after(20);
    host.until(200).data(21).data(23).data(25);
    assert_eq!(
        host.acks(),
        [
            (200, 20, vec![(21, 22)]),
            (200, 20, vec![(23, 24), (21, 22)]),
            (200, 20, vec![(25, 26), (23, 24), (21, 22)]),
        ]
    );
    // A block that grows moves to the front; filling the gap between two joins them.
    host.until(210).data(22).until(220);
    assert_eq!(host.acks()[0].2, [(21, 24), (25, 26)]);
}

/// RFC 5681 §4.2: an ACK at once when a gap is filled, also a part of it.
#[test]
fn a_filled_gap_is_acknowledged_at_once() {
    let mut host = after(20);
    host.until(200).data(22).data(24).forget();
    host.until(201).data(21);
    host.until(202).data(20);
    assert_eq!(host.acks(), [(201, 20, vec![(21, 23), (24, 25)]), (202, 23, vec![(24, 25)])]);
    host.until(203).data(23);
    assert_eq!(host.acks(), [(203, 25, vec![])]);
}

/// RFC 2883 §4: what was received twice is reported once, first.
#[test]
fn duplicates_are_reported() {
    let mut host = after(20);
    host.until(200).data(5);
    assert_eq!(host.acks(), [(200, 20, vec![(5, 6)])]);
    // Above the cumulative ACK: inside the second block.
    host.until(201).data(22).forget().data(22);
    assert_eq!(host.acks(), [(201, 20, vec![(22, 23), (22, 23)])]);
    let mut silent = Host::receiver(100, &settings(|s| s.dsack = false));
    silent.until(200).data(0).data(1).forget().data(0);
    assert_eq!(silent.acks(), [(200, 2, vec![])]);
}

/// `tcp_paws_check` (RFC 7323 §5.3): where a retransmission has overtaken originals, these carry timestamps from before it
/// and are refused, though nothing else of them has come.
#[test]
fn an_original_that_a_retransmission_has_overtaken_is_refused() {
    let mut host = after(20);
    host.until(200).data(22).until(250).data(20).forget();
    // 21 left with 22, and the copy of 20 after them.
    host.late(50).data(21);
    assert_eq!(host.acks(), [(250, 21, vec![(22, 23)])]);
    assert_eq!(host.endpoint().bytes_in_order(), 21 * 1448);
    // The original of 20 is a duplicate, and reported as one.
    host.data(20);
    assert_eq!(host.acks(), [(250, 21, vec![(20, 21), (22, 23)])]);
    // One unit of the timestamps' clock is let through.
    host.late(1).data(21);
    assert_eq!(host.acks(), [(250, 23, vec![])]);
    // FreeBSD's goes back by none.
    let mut bsd = after_on(&settings(|s| s.profile.paws_window = 0), 20);
    bsd.until(200).data(20).late(1).data(21);
    assert_eq!(bsd.endpoint().bytes_in_order(), 21 * 1448);
}

/// `tcp_replace_ts_recent`: the timestamp echoed never goes back.
#[test]
fn an_older_timestamp_is_not_echoed() {
    let mut host = after(20);
    host.until(200).data(20).until(201).forget().late(1).data(21);
    host.until(202).late(2).data(22);
    let echoes: Vec<u32> = host.departures().iter().map(|ack| ack.stamps().ecr).collect();
    assert_eq!(echoes, [200]);
}

/// `tcp_sequence`: of data that lie wholly below what was acknowledged nothing is taken, the timestamp neither.
#[test]
fn the_timestamp_of_a_duplicate_is_not_echoed() {
    let mut host = after(20);
    host.until(200).data(5);
    assert_eq!(host.departures()[0].stamps().ecr, 119, "the last segment but one, not 200");
}

/// A duplicate makes the next ACKs quick: the sender is in trouble.
#[test]
fn a_duplicate_ends_delayed_acks_for_a_while() {
    let mut host = after(21);
    host.until(200).data(5).forget().data(21);
    assert_eq!(host.acks(), [(200, 22, vec![])]);
}

/// `tcp_comp_sack_*`: three duplicates at once, then one a millisecond, at the end of its 100 µs of slack.
#[test]
fn further_duplicates_are_compressed() {
    let mut host = Host::receiver(100, &stock());
    for number in 0..20 {
        host.wait(1).echoing(100).data(number);
    }
    host.until(200).forget();
    for number in 21..31 {
        host.data(number);
    }
    host.until(210);
    let acks = host.departures();
    let at: Vec<u64> = acks.iter().map(|ack| ack.at.as_nanos() / 1_000).collect();
    assert_eq!(at, [200_000, 200_000, 200_000, 201_100]);
    assert_eq!(acks[3].segment.sack().next().map(|block| block.end), Some(11 * 1448));
    // Without compression every one is answered.
    let mut host = Host::receiver(100, &settings(|s| s.comp_sack_nr = 0));
    host.until(200).data(0).forget();
    for number in 2..12 {
        host.data(number);
    }
    assert_eq!(host.acks().len(), 10);
}

#[test]
fn no_more_than_44_are_compressed_into_one() {
    // A window that holds them all.
    let mut host = Host::receiver(100, &settings(|s| s.rmem[1] = 152_000));
    for number in 0..20 {
        host.wait(1).echoing(100).data(number);
    }
    host.until(200).forget();
    for number in 21..21 + 3 + 44 {
        host.data(number);
    }
    assert_eq!(host.acks().len(), 3);
    host.data(68);
    assert_eq!(host.acks().len(), 1);
}

#[test]
fn a_compressed_report_does_not_outlive_a_filled_gap() {
    let mut host = Host::receiver(100, &stock());
    for number in 0..20 {
        host.wait(1).echoing(100).data(number);
    }
    host.until(200).data(21).data(22).data(23).data(24).forget();
    host.data(20).until(210);
    assert_eq!(host.acks(), [(200, 25, vec![])]);
}

#[test]
fn without_sack_every_arrival_out_of_order_is_a_bare_duplicate() {
    let mut host = Host::receiver(100, &settings(|s| s.sack = false));
    host.until(200).data(0).forget();
    for number in 2..12 {
        host.data(number);
    }
    assert_eq!(host.acks(), vec![(200, 1, vec![]); 10]);
}

/// A path of small packets is acknowledged like any other (`tcp_initialize_rcv_mss`).
#[test]
fn small_segments_are_full_segments_where_the_mtu_is_small() {
    let mut host = Host::receiver(100, &settings(|s| s.mtu_bytes = 500));
    for number in 0..60 {
        host.wait(1).data(number);
    }
    let acked: Vec<u64> = host.acks().into_iter().map(|ack| ack.1).collect();
    assert_eq!(acked[acked.len() - 4..], [54, 56, 58, 60]);
}

// ---- the window ----

/// Half of rmem[1], in whole segments; then less one segment that is never offered (`tcp_init_buffer_space`).
#[test]
fn the_first_window_is_half_the_buffer() {
    let mut host = Host::receiver(100, &stock());
    host.data(0);
    assert_eq!(host.departures()[0].segment.window, 64_128);
    let mut host = Host::client("reno", &stock());
    assert_eq!(host.departures()[0].segment.window, 64_240);
}

/// 40 segments a round trip of 100 ms, one each 2.5 ms, until `end` ms; the last window.
fn fed(end: u64, moderate: bool, rmem_max: u64) -> u64 {
    let stack = settings(|s| {
        s.moderate_rcvbuf = moderate;
        s.rmem[2] = rmem_max;
    });
    let mut host = Host::receiver(100, &stack);
    let mut number = 0;
    while host.now_ms() < end {
        for _ in 0..2 {
            host.echoing(100).data(number);
            number += 1;
        }
        host.wait(5);
    }
    let departures = host.departures();
    let edges: Vec<u64> =
        departures.iter().map(|sent| sent.segment.ack + u64::from(sent.segment.window)).collect();
    assert!(edges.is_sorted(), "the right edge never moves back");
    u64::from(departures.last().map_or(0, |sent| sent.segment.window))
}

/// `tcp_rcv_space_adjust`: twice what was read in a round trip and 16 segments, and twice that by the growth
/// over the 10 segments it began with.
#[test]
fn the_buffer_follows_what_is_read_in_a_round_trip() {
    let tuned = fed(1_500, true, 6_291_456);
    // 40 or 42 segments a round: 2·57920 + 16·1460 = 139 kB, · (1 + 2·(57920 − 14600)/14600) = 965 kB.
    assert!((900_000..1_200_000).contains(&tuned), "{tuned}");
    assert_eq!(fed(1_500, false, 6_291_456), 64_128, "tcp_moderate_rcvbuf = 0");
    assert_eq!(fed(1_500, true, 400_000), 200_000, "half of rmem[2]");
}

/// `tcp_data_queue_ofo`: without SACK data out of order do not widen the window, or their ACKs would not be duplicates.
#[test]
fn a_duplicate_ack_without_sack_offers_the_same_window() {
    let windows = |sack: bool| -> Vec<u32> {
        let roomy = |s: &mut Settings| (s.sack, s.rmem[1]) = (sack, 1 << 20);
        let mut host = Host::receiver(100, &settings(roomy));
        host.wait(1).data(0).forget();
        host.wait(1).data(1).wait(1).data(3).wait(1).data(4).wait(1).data(5);
        host.departures().iter().map(|ack| ack.segment.window).collect()
    };
    let without = windows(false);
    assert_eq!(without.len(), 4);
    assert!(without[1..].iter().all(|&window| window == without[0]), "{without:?}");
    let with = windows(true);
    assert!(with.windows(2).all(|pair| pair[0] < pair[1]), "{with:?}");
}
