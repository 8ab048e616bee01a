//! Vectors computed from the kernel's arithmetic, some of them seen on a 6.1.192, and what each rule does to packets.

use super::{CERTAIN, Config, Controller, Params, Pie, Ticks, timer_period};
use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
use crate::testing::Log;
use dragstrip_units::{Duration, Instant, Stream};

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn ticks(ms: u64) -> Ticks {
    Ticks::span(Duration::from_millis(ms))
}

/// A controller past its burst allowance.
fn controller(probability: u64, delay: Ticks) -> Controller {
    Controller {
        probability,
        delay,
        delay_before: delay,
        burst_allowance: Ticks(0),
        ..Controller::new()
    }
}

/// The probabilities after updates that find these delays, with packets queued unless the delay is 0.
fn updates(mut controller: Controller, delays_ms: &[u64]) -> Vec<u64> {
    delays_ms
        .iter()
        .map(|&ms| {
            controller.delay = ticks(ms);
            controller.update(&Params::default(), ms * 1_514);
            controller.probability
        })
        .collect()
}

fn shares(probabilities: &[u64]) -> Vec<f64> {
    probabilities.iter().map(|&p| (p as f64 / CERTAIN as f64 * 1e6).round() / 1e6).collect()
}

/// Seen on the kernel with 30.2 ms; the gains change at 10⁻⁴.
#[test]
fn a_standing_delay_of_twice_the_target_raises_the_probability_as_in_the_kernel() {
    let probabilities = updates(Controller::new(), &[30; 8]);
    let expected = [
        1_385_384_062_500,
        2_440_915_078_125,
        3_496_446_093_750,
        4_551_977_109_375,
        5_607_508_125_000,
    ];
    assert_eq!(probabilities[..5], expected);
    assert_eq!(probabilities[7], 11_940_694_687_500);
}

#[test]
fn long_delays_add_two_percent_and_growth_is_bounded_from_ten_percent_on() {
    let probabilities = updates(Controller::new(), &[300; 5]);
    assert_eq!(shares(&probabilities), [0.020_201, 0.058_013, 0.095_826, 0.133_638, 0.173_638]);
    let from = Controller { delay_before: ticks(15), ..controller(CERTAIN / 100 * 12, ticks(15)) };
    assert_eq!(shares(&updates(from, &[45])), [0.14]);
}

#[test]
fn an_idle_queue_forgets_and_then_has_its_allowance_back() {
    let idle = controller(CERTAIN / 5, Ticks(0));
    assert_eq!(shares(&updates(idle, &[0, 0])), [0.195_029, 0.190_136]);
    let mut idle = idle;
    idle.update_times(10_000, &Params::default(), 0);
    assert_eq!(idle, Controller::new());
}

/// Returns the index of the first drop among many arrivals in a row when a draw always chooses a drop, and when it
/// never does.
fn first_drops(probability: u64, params: &Params, len: u32) -> (usize, usize) {
    let first = |bits: u64| {
        let mut controller = controller(probability, ticks(30));
        (1..).find(|_| controller.condemns(params, 100_000, len, || bits)).unwrap()
    };
    (first(0), first(u64::MAX))
}

#[test]
fn drops_are_between_085_and_85_expected_ones_apart() {
    let params = Params::default();
    assert_eq!(first_drops(CERTAIN / 20, &params, 1514), (17, 171));
    assert_eq!(first_drops(CERTAIN / 100, &params, 1514), (85, 851));
    // With bytemode half a frame counts half, and a longer packet as any other.
    let bytemode = Params { bytemode: true, ..params };
    assert_eq!(first_drops(CERTAIN / 20, &bytemode, 757), (35, 341));
    assert_eq!(first_drops(CERTAIN / 20, &bytemode, 3000), (17, 171));
}

#[test]
fn a_small_queue_is_spared() {
    let params = Params::default();
    let ever = |mut controller: Controller, backlog| {
        (0..1000).any(|_| controller.condemns(&params, backlog, 1514, || 0))
    };
    let congested = controller(CERTAIN / 10, ticks(30));
    assert!(ever(congested, 3_028) && !ever(congested, 3_027));
    assert!(!ever(Controller { burst_allowance: Ticks(1), ..congested }, 100_000));
    // Below half the target, unless much is dropped already.
    assert!(!ever(Controller { delay: ticks(7), ..congested }, 100_000));
    assert!(ever(Controller { delay: ticks(7), ..controller(CERTAIN / 5, ticks(7)) }, 100_000));
}

#[test]
fn timers_fire_at_the_next_slot_of_the_wheel() {
    let period = |ms| timer_period(Duration::from_millis(ms)).as_nanos() / 1_000_000;
    // Ticks of 4 ms; from 63 ticks on slots of eight.
    assert_eq!([1, 4, 15, 16, 17, 248, 252, 500].map(period), [8, 8, 20, 20, 24, 252, 256, 512]);
    assert_eq!(timer_period(Duration::ZERO), Duration::ZERO);
}

fn frame(id: u32, ecn: Ecn) -> Item {
    Item { packet: PacketId(id), len: 1514, ecn, ..Item::default() }
}

fn pie(params: Params) -> Pie {
    let config = Config { limit: 1000, params, tupdate: Duration::from_millis(15) };
    Pie::new(config, Stream::named(1, "pie"))
}

/// Result of a minute of overload.
#[derive(Default)]
struct Minute {
    /// Times at which packets were dropped, us.
    drops: Vec<u64>,
    /// Times at which packets were marked, us.
    marks: Vec<u64>,
    /// Packets queued on average in the second half.
    queued: f64,
}

/// Three frames come in the time that two need on 10 Mbit/s.
fn overload(params: Params, ecn: Ecn) -> Minute {
    let mut pie = pie(params);
    let (mut log, mut minute) = (Log::default(), Minute::default());
    let mut next_left = 1_211;
    for id in 0.. {
        let now = id * 807;
        if now > 60_000_000 {
            break;
        }
        if now > 30_000_000 {
            minute.queued += f64::from(pie.backlog().packets) / LATE;
        }
        while next_left <= now {
            let _ = pie.dequeue(at(next_left), &mut log);
            next_left += 1_211;
        }
        match pie.enqueue(frame(id as u32, ecn), at(now), &mut log) {
            Verdict::Dropped(reason) => {
                assert_eq!(reason, DropReason::Aqm);
                minute.drops.push(now);
            }
            Verdict::Marked => minute.marks.push(now),
            Verdict::Queued | Verdict::DroppedOther(_) => {}
        }
    }
    minute
}

/// Arrivals in the second half of the minute.
const LATE: f64 = 30_000_000.0 / 807.0;

/// Traffic that does not respond to drops is dropped, a third of it, until the queue is at its target: 15 ms are 12.4
/// frames.
#[test]
fn under_overload_the_delay_settles_at_the_target() {
    for dq_rate_estimator in [false, true] {
        let params = Params { dq_rate_estimator, ..Params::default() };
        let Minute { drops, queued, .. } = overload(params, Ecn::NotEct);
        assert!(drops[0] > 150_000, "the burst allowance: {}", drops[0]);
        let share = drops.iter().filter(|&&us| us > 30_000_000).count() as f64 / LATE;
        assert!((share - 1.0 / 3.0).abs() < 0.005, "{share}");
        assert!((queued - 12.4).abs() < 1.5, "{queued}");
    }
}

/// Up to 10 % an ECN-capable packet is marked, and nothing else; above it is dropped.
#[test]
fn ecn_marks_until_ten_percent() {
    let ecn = Params { ecn: true, ..Params::default() };
    let Minute { drops, marks, .. } = overload(ecn, Ecn::Ect0);
    assert!(!marks.is_empty() && marks.last() < drops.first());
    assert!(overload(Params::default(), Ecn::Ect0).marks.is_empty());
    assert!(overload(ecn, Ecn::NotEct).marks.is_empty());
}

/// `accu_prob` is not begun anew by a mark that it forced.
#[test]
fn a_sum_that_has_reached_85_marks_every_packet_until_one_is_dropped() {
    let mut pie = pie(Params { ecn: true, ..Params::default() });
    let mut log = Log::default();
    for id in 0..3 {
        let _ = pie.enqueue(frame(id, Ecn::NotEct), at(0), &mut log);
    }
    pie.controller = Controller { sum: super::SUM_HIGH, ..controller(CERTAIN / 1000, ticks(30)) };
    let mut verdicts = |ecn: [Ecn; 3]| {
        ecn.map(|ecn| pie.enqueue(frame(9, ecn), at(1), &mut log) == Verdict::Marked)
    };
    assert_eq!(verdicts([Ecn::Ect0; 3]), [true, true, true]);
    assert_eq!(verdicts([Ecn::Ect1, Ecn::NotEct, Ecn::Ect0]), [true, false, false]);
    assert_eq!(log.drops, [(PacketId(9), DropReason::Aqm)]);
}

/// 16 KiB are eleven frames: one every 1.2112 ms is 1.25 bytes per us, 20.48 in 1/256 byte per tick of 64 ns.
#[test]
fn the_estimator_measures_the_rate_at_which_frames_leave() {
    let mut pie = pie(Params { dq_rate_estimator: true, ..Params::default() });
    let mut log = Log::default();
    for id in 0..60 {
        let _ = pie.enqueue(frame(id, Ecn::NotEct), at(0), &mut log);
    }
    for number in 0..40 {
        let now = Instant::ZERO + Duration::from_nanos(number * 1_211_200);
        assert!(matches!(pie.dequeue(now, &mut log), Dequeue::Packet(_)));
    }
    // The first frame of a cycle leaves at its start: eleven frames in ten gaps, then in eleven; averaged by eighths, cut.
    assert_eq!(pie.controller.rate, 22 - (22 >> 3) + (20 >> 3));
}

#[test]
fn a_full_queue_drops_what_arrives_and_begins_a_new_sum() {
    let config = Config { limit: 1, params: Params::default(), tupdate: Duration::from_millis(15) };
    let mut pie = Pie::new(config, Stream::named(1, "pie"));
    let mut log = Log::default();
    pie.controller.sum = 5;
    assert_eq!(pie.enqueue(frame(0, Ecn::Ect0), at(0), &mut log), Verdict::Queued);
    let full = Verdict::Dropped(DropReason::Overlimit);
    assert_eq!(pie.enqueue(frame(1, Ecn::Ect0), at(0), &mut log), full);
    assert_eq!(pie.controller.sum, 0);
}
