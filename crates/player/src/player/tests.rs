//! A player over paths whose times are known: its rates, its buffer, its stalls.

use super::*;
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
const MBIT: u64 = 1_000_000;

fn player(adaptation: Adaptation) -> Player {
    Player::new(&Application::Video {
        ladder_bps: vec![MBIT, 2 * MBIT, 4 * MBIT, 8 * MBIT],
        segment_ns: 4 * S,
        buffer_ns: 30 * S,
        startup_ns: 4 * S,
        adaptation,
        reservoir_ns: 10 * S,
        cushion_ns: 16 * S,
        safety: 0.9,
        request_bytes: 500,
    })
    .expect("a player")
}

/// Rows over a path of a constant rate without delay, until a time.
fn rows(mut player: Player, bps: u64, until: u64) -> Vec<VideoRow> {
    let (mut now, mut rows) = (0, Vec::new());
    while now < until {
        now += player.ask(now) * 8 * S / bps;
        let (row, next) = player.arrived(now, 0);
        rows.push(row);
        now = next;
    }
    rows
}

/// At 5 Mbit/s nine tenths carry 4 Mbit/s: after the first segment of 1 Mbit/s (0.8 s) each of 4 takes 3.2 s and the
/// buffer grows by 0.8 s a segment, to 30 s; then it asks every 4 s.
#[test]
fn by_throughput_it_takes_what_the_path_carries_and_fills_its_buffer() {
    let rows = rows(player(Adaptation::Throughput), 5 * MBIT, 300 * S);
    assert_eq!(rows[0].time_ns, 800_000_000);
    assert_eq!((rows[0].waited_ns, rows[0].buffer_ns), (800_000_000, 4 * S as i64));
    assert!(rows[1..].iter().all(|row| row.rate_bps == 4 * MBIT as i64 && row.waited_ns == 0));
    for (number, row) in rows.iter().enumerate() {
        let grown = 4 * S + number as u64 * (S * 8 / 10);
        // When it is full it asks with 26 s, and 22.8 are left when the segment is there.
        let full = 26 * S - 32 * S / 10 + 4 * S;
        let expected = if grown + 4 * S <= 30 * S + S * 8 / 10 { grown } else { full };
        assert_eq!(row.buffer_ns, expected as i64, "segment {number}");
    }
    let last = &rows[rows.len() - 2..];
    assert_eq!(last[1].asked_ns - last[0].asked_ns, 4 * S as i64);
}

/// BBA-0 over 5 Mbit/s settles between the rungs around it: the buffer goes up with 4 Mbit/s and down with 8.
#[test]
fn by_buffer_its_mean_rate_is_that_of_the_path() {
    let rows = rows(player(Adaptation::Buffer), 5 * MBIT, 4000 * S);
    let late = &rows[rows.len() / 2..];
    assert!(late.iter().all(|row| row.waited_ns == 0));
    assert!(late.iter().all(|row| [4, 8].contains(&(row.rate_bps / MBIT as i64))));
    let mean = late.iter().map(|row| row.rate_bps).sum::<i64>() as f64 / late.len() as f64;
    assert!((mean / 5e6 - 1.0).abs() < 0.01, "{mean}");
}

/// A path below the lowest rung: each segment of 4 Mbit takes 8 s, so playback stands 4 s for every 4 s played.
#[test]
fn a_path_that_is_too_slow_stalls() {
    for adaptation in [Adaptation::Buffer, Adaptation::Throughput] {
        let rows = rows(player(adaptation), MBIT / 2, 100 * S);
        assert_eq!(rows[0].waited_ns, 8 * S as i64, "the start");
        assert!(rows[1..].iter().all(|row| row.waited_ns == 4 * S as i64 && row.playing));
    }
}

/// Playback begins, and goes on after a stall, once `startup` is buffered.
#[test]
fn it_waits_for_what_it_is_to_have() {
    let mut player = player(Adaptation::Buffer);
    player.startup_ns = 8 * S;
    player.ask(0);
    assert!(!player.arrived(S, 0).0.playing);
    player.ask(S);
    let (row, _) = player.arrived(2 * S, 0);
    assert_eq!((row.playing, row.waited_ns, row.buffer_ns), (true, S as i64, 8 * S as i64));
    player.ask(2 * S);
    let (row, _) = player.arrived(11 * S, 0);
    assert_eq!((row.playing, row.waited_ns, row.buffer_ns), (false, S as i64, 4 * S as i64));
}

proptest! {
    /// Whatever the path does: nothing is lost between what is fetched, played and buffered, and the clock.
    #[test]
    fn what_is_played_and_waited_is_what_has_passed(
        by_buffer in any::<bool>(),
        startup_s in 4..26_u64,
        took_ms in proptest::collection::vec(0..20_000_u64, 1..200),
    ) {
        let mut player = player(if by_buffer { Adaptation::Buffer } else { Adaptation::Throughput });
        player.startup_ns = startup_s * S;
        let (mut now, mut waited, mut bytes) = (7 * S, 0, 0);
        for (fetched, ms) in (1..).zip(took_ms) {
            bytes += player.ask(now);
            let level = player.level_ns;
            prop_assert!(level + 4 * S <= 30 * S, "it asks for what fits");
            let request_time = now;
            now += ms * 1_000_000;
            let (row, next) = player.arrived(now, 3);
            waited += row.waited_ns as u64;
            let buffered = row.buffer_ns as u64;
            prop_assert!((4 * S..=30 * S).contains(&buffered));
            prop_assert_eq!(fetched * 4 * S - buffered + waited, now - 7 * S);
            prop_assert_eq!((row.asked_ns as u64, row.time_ns as u64), (request_time, now));
            prop_assert_eq!(player.total_bytes(), bytes);
            prop_assert!(next >= now && (next == now || row.playing));
            now = next;
        }
    }
}
