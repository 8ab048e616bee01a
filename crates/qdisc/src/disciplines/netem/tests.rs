//! netem against the reference vectors, and its statistics with fixed seeds.

use super::{Config, Distribution, Loss, Netem, Slot};
use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc};
use crate::testing::Log;
use dragstrip_units::{Duration, Instant, Rate, Stream};

fn frame(id: u32) -> Item {
    Item { packet: PacketId(id), len: 1514, ..Item::default() }
}

fn netem(config: Config) -> Netem {
    Netem::new(config, Stream::named(11, "netem"))
}

/// Everything that leaves from now on: (packet, when).
fn drain(netem: &mut Netem, mut now: Instant, log: &mut Log) -> Vec<(u32, Instant)> {
    let mut departures = Vec::new();
    loop {
        match netem.dequeue(now, log) {
            Dequeue::Packet(item) => departures.push((item.packet.0, now)),
            Dequeue::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            Dequeue::Empty => return departures,
        }
    }
}

/// Sends `count` packets `spacing` apart, taking what is due before each; (packet, sent, left).
fn pass(config: Config, count: u32, spacing: Duration, log: &mut Log) -> Vec<(u32, u64, u64)> {
    let mut netem = netem(Config { limit: u32::MAX, ..config });
    let mut departures = Vec::new();
    for id in 0..count {
        let now = Instant::ZERO + spacing * u64::from(id + 1_000_000);
        let mut at = now - spacing;
        while let due @ (Dequeue::Packet(_) | Dequeue::Wait(_)) = netem.dequeue(at, log) {
            match due {
                Dequeue::Packet(item) => departures.push((item.packet.0, at)),
                Dequeue::Wait(until) if until <= now => at = until,
                Dequeue::Wait(_) | Dequeue::Empty => break,
            }
        }
        let _ = netem.enqueue(frame(id), now, log);
    }
    departures.extend(drain(&mut netem, Instant::ZERO + spacing * u64::from(count + 999_999), log));
    let arrival_ns = |id: u32| (spacing * u64::from(id % 1_000_000 + 1_000_000)).as_nanos();
    departures.into_iter().map(|(id, at)| (id, arrival_ns(id), at.as_nanos())).collect()
}

fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let variance = values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance))
}

#[test]
fn with_a_rate_packets_leave_one_after_the_other() {
    let mut log = Log::default();
    let mut netem = netem(Config {
        delay: Duration::from_millis(100),
        rate: Rate::from_bits_per_second(1_000_000),
        ..Config::default()
    });
    for id in 0..3 {
        let _ = netem.enqueue(frame(id), Instant::ZERO, &mut log);
    }
    let times: Vec<u64> =
        drain(&mut netem, Instant::ZERO, &mut log).iter().map(|left| left.1.as_nanos()).collect();
    assert_eq!(times, [112_112_000, 124_224_000, 136_336_000]);
}

#[test]
fn with_a_rate_jitter_does_not_reorder() {
    let config = Config {
        delay: Duration::from_millis(10),
        jitter: Duration::from_millis(5),
        rate: Rate::from_bits_per_second(100_000_000),
        ..Config::default()
    };
    let departures = pass(config, 5_000, Duration::from_micros(500), &mut Log::default());
    assert!(
        departures.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].2 + 121_120 <= pair[1].2)
    );
}

#[test]
fn uniform_jitter_of_75_ms_around_100_ms_reorders_half_of_close_pairs() {
    let config = Config {
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(75),
        ..Config::default()
    };
    let departures = pass(config, 40_000, Duration::from_micros(120), &mut Log::default());
    let mut delays = vec![0_u64; departures.len()];
    for &(id, sent, at) in &departures {
        delays[id as usize] = at - sent;
    }
    assert!(delays.iter().all(|delay| (25_000_000..175_000_000).contains(delay)));
    let (mean, deviation) = mean_and_deviation(delays.iter().map(|&ns| ns as f64 / 1e6));
    // 0.608 ms less than 100: the kernel's remainder (see distribution.rs).
    assert!((mean - 99.392).abs() < 0.7 && (deviation - 43.3).abs() < 0.4, "{mean} {deviation}");
    let swapped = delays.windows(2).filter(|pair| pair[1] + 120_000 < pair[0]).count() as f64;
    let share = swapped / (delays.len() - 1) as f64;
    // (1 - 0.12/150)^2 / 2.
    assert!((share - 0.4992).abs() < 0.01, "{share}");
}

#[test]
fn normal_jitter_has_its_mean_and_deviation_and_correlation_does_not_change_them() {
    let config = Config {
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(10),
        distribution: Distribution::Normal,
        ..Config::default()
    };
    for delay_correlation in [0.0, 0.5] {
        let config = Config { delay_correlation, ..config };
        let mut departures = pass(config, 40_000, Duration::from_micros(120), &mut Log::default());
        departures.sort_unstable();
        let delays: Vec<f64> =
            departures.into_iter().map(|(_, sent, at)| (at - sent) as f64 / 1e6).collect();
        let (mean, deviation) = mean_and_deviation(delays.iter().copied());
        assert!((mean - 100.0).abs() < 0.2 && (deviation - 10.0).abs() < 0.15);
        let products = delays.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        let lag = products.sum::<f64>() / 40_000.0 / (deviation * deviation);
        assert!(lag.abs() < 0.02, "{lag}");
    }
}

#[test]
fn loss_is_told_as_loss_and_has_its_rate() {
    let mut log = Log::default();
    let config =
        Config { loss: Loss::Random { probability: 0.1, correlation: 0.0 }, ..Config::default() };
    let departures = pass(config, 50_000, Duration::from_micros(120), &mut log);
    assert_eq!(departures.len() + log.drops.len(), 50_000);
    assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Loss));
    assert!((log.drops.len() as f64 / 50_000.0 - 0.1).abs() < 0.005);
}

#[test]
fn ecn_marks_what_would_have_been_lost() {
    let mut log = Log::default();
    let loss = Loss::Random { probability: 1.0, correlation: 0.0 };
    let mut netem = netem(Config { loss, ecn: true, ..Config::default() });
    let _ = netem.enqueue(Item { ecn: Ecn::Ect0, ..frame(0) }, Instant::ZERO, &mut log);
    let _ = netem.enqueue(frame(1), Instant::ZERO, &mut log);
    assert_eq!(log.marks, [PacketId(0)]);
    assert_eq!(log.drops, [(PacketId(1), DropReason::Loss)]);
    assert_eq!(drain(&mut netem, Instant::ZERO, &mut log).len(), 1);
}

#[test]
fn a_copy_goes_before_its_original_and_is_not_copied_again() {
    let mut log = Log::default();
    let mut netem =
        netem(Config { duplicate: 1.0, delay: Duration::from_millis(1), ..Config::default() });
    let _ = netem.enqueue(frame(7), Instant::ZERO, &mut log);
    assert_eq!(netem.backlog().packets, 2);
    let departed_ids: Vec<u32> =
        drain(&mut netem, Instant::ZERO, &mut log).iter().map(|departure| departure.0).collect();
    assert_eq!(departed_ids, [1_000_007, 7]);
}

#[test]
fn a_packet_both_copied_and_lost_passes_once() {
    // Each copy is lost again on its own: P(original out) = 1 - p(1-d), of a copy d(1-p)^2.
    let mut log = Log::default();
    let config = Config {
        duplicate: 0.5,
        loss: Loss::Random { probability: 0.2, correlation: 0.0 },
        ..Config::default()
    };
    let departures = pass(config, 50_000, Duration::from_micros(120), &mut log);
    let originals =
        departures.iter().filter(|departure| departure.0 < 1_000_000).count() as f64 / 50_000.0;
    let copies =
        departures.iter().filter(|departure| departure.0 >= 1_000_000).count() as f64 / 50_000.0;
    assert!((originals - 0.9).abs() < 0.006, "{originals}");
    assert!((copies - 0.5 * 0.8 * 0.8).abs() < 0.01, "{copies}");
}

#[test]
fn corrupted_packets_take_their_place_and_are_dropped_when_due() {
    let mut log = Log::default();
    let mut netem =
        netem(Config { corrupt: 1.0, delay: Duration::from_millis(1), ..Config::default() });
    let _ = netem.enqueue(frame(0), Instant::ZERO, &mut log);
    assert_eq!(netem.backlog().packets, 1);
    assert_eq!(
        netem.dequeue(Instant::ZERO, &mut log),
        Dequeue::Wait(Instant::from_nanos(1_000_000))
    );
    assert_eq!(netem.dequeue(Instant::from_nanos(1_000_000), &mut log), Dequeue::Empty);
    assert_eq!(log.drops, [(PacketId(0), DropReason::Corrupt)]);
}

#[test]
fn a_quarter_overtakes_and_with_a_gap_every_fifth() {
    let overtaken = |config: Config, count: u32| -> Vec<u32> {
        let config = Config { delay: Duration::from_millis(10), ..config };
        let departures = pass(config, count, Duration::from_millis(1), &mut Log::default());
        departures
            .iter()
            .filter(|&&(_, sent, at)| at < sent + 10_000_000)
            .map(|departure| departure.0)
            .collect()
    };
    // `pass` looks one spacing after each arrival, so "at once" shows as at most 1 ms.
    let quarter = overtaken(Config { reorder: 0.25, ..Config::default() }, 40_000);
    assert!((quarter.len() as f64 / 40_000.0 - 0.25).abs() < 0.01);
    assert_eq!(overtaken(Config { gap: 5, ..Config::default() }, 20), [4, 9, 14, 19]);
    let fifth_or_later = overtaken(Config { gap: 5, reorder: 0.5, ..Config::default() }, 40_000);
    // A run of 4 and then on average one more delayed packet: one in 6.
    assert!((fifth_or_later.len() as f64 / 40_000.0 - 1.0 / 6.0).abs() < 0.005);
}

#[test]
fn the_limit_counts_the_delay_line() {
    let mut log = Log::default();
    let mut netem =
        netem(Config { limit: 2, delay: Duration::from_millis(1), ..Config::default() });
    for id in 0..4 {
        let _ = netem.enqueue(frame(id), Instant::ZERO, &mut log);
    }
    let over = |id| (PacketId(id), DropReason::Overlimit);
    assert_eq!(log.drops, [over(2), over(3)]);
}

#[test]
fn jitter_below_zero_means_at_once_not_before() {
    let config = Config {
        delay: Duration::from_millis(1),
        jitter: Duration::from_millis(10),
        ..Config::default()
    };
    let departures = pass(config, 2_000, Duration::from_millis(1), &mut Log::default());
    assert_eq!(departures.len(), 2_000);
    assert!(departures.iter().all(|&(_, sent, at)| at >= sent && at <= sent + 11_000_000));
}

/// Packets 1 ms apart, each asked for at once as `__dev_xmit_skb` does: the kernel's own arithmetic by hand.
#[test]
fn what_is_due_leaves_together_when_a_slot_opens() {
    let slot = |packets| Slot {
        min: Duration::from_millis(5),
        max: Duration::from_millis(5),
        packets,
        bytes: i32::MAX as u32,
    };
    let leaving = |slot: Slot, delay_ms: u64| {
        let (mut log, delay) = (Log::default(), Duration::from_millis(delay_ms));
        let mut netem = netem(Config { slot: Some(slot), delay, ..Config::default() });
        let mut departures: Vec<(u32, u64)> = Vec::new();
        let mut wake = Instant::NEVER;
        for id in 0..13_u64 {
            let now = Instant::ZERO + Duration::from_millis(100 + id);
            let arrives = id < 12;
            let end = if arrives { now } else { Instant::NEVER };
            loop {
                let at = wake.min(end);
                if at == Instant::NEVER {
                    break;
                }
                if at == now && arrives {
                    let _ = netem.enqueue(frame(id as u32), now, &mut log);
                }
                wake = Instant::NEVER;
                loop {
                    match netem.dequeue(at, &mut log) {
                        Dequeue::Packet(item) => {
                            departures.push((item.packet.0, at.as_nanos() / 1_000_000 - 100));
                        }
                        Dequeue::Wait(until) => {
                            wake = until;
                            break;
                        }
                        Dequeue::Empty => break,
                    }
                }
                if at == end {
                    break;
                }
            }
        }
        departures.iter().map(|departure| departure.1).collect::<Vec<u64>>()
    };
    let any = u32::MAX >> 1;
    // The first packet finds the slot of long ago over: the next one opens 5 ms later, and takes what came until then.
    assert_eq!(leaving(slot(any), 0), [5, 5, 5, 5, 5, 5, 11, 11, 11, 11, 11, 11]);
    // Two a slot: the next one is counted from when the second left.
    assert_eq!(leaving(slot(2), 0), [5, 5, 10, 10, 15, 15, 20, 20, 25, 25, 30, 30]);
    // Each question before the first is due at 20 draws a slot anew, and so does the one at 20: the slot of 16 is over.
    assert_eq!(leaving(slot(any), 20), [25, 25, 25, 25, 25, 25, 30, 30, 30, 30, 30, 35]);
}

#[test]
fn a_slots_time_is_drawn_between_its_bounds_and_its_bytes_are_counted() {
    let slot = Slot {
        min: Duration::from_millis(2),
        max: Duration::from_millis(10),
        packets: u32::MAX >> 1,
        bytes: 4 * 1514,
    };
    let config = Config { limit: u32::MAX, slot: Some(slot), ..Config::default() };
    let (mut netem, mut log) = (netem(config), Log::default());
    for id in 0..40_000 {
        let _ = netem.enqueue(frame(id), Instant::ZERO + Duration::from_millis(1), &mut log);
    }
    let departures = drain(&mut netem, Instant::ZERO + Duration::from_millis(1), &mut log);
    assert!(
        departures.iter().enumerate().all(|(at, departure)| departure.0 == at as u32),
        "none overtakes"
    );
    let slots: Vec<_> = departures.chunks(4).collect();
    assert!(slots.iter().all(|slot| slot.iter().all(|departure| departure.1 == slot[0].1)));
    let gaps = slots
        .windows(2)
        .map(|pair| (pair[1][0].1.as_nanos() - pair[0][0].1.as_nanos()) as f64 / 1e6);
    assert!(gaps.clone().all(|ms| (2.0..10.0).contains(&ms)));
    let (mean, deviation) = mean_and_deviation(gaps);
    // Uniform: 8 / sqrt(12) = 2.309; of 9999 draws the mean's own deviation is 0.023.
    assert!((mean - 6.0).abs() < 0.07 && (deviation - 2.309).abs() < 0.05, "{mean} {deviation}");
}
