//! Proportional integral controller enhanced (RFC 8033; `sch_pie.c`, `pie.h`).
//!
//! PIE drops on arrival, with a probability that a controller moves at fixed times so that the delay of the queue
//! settles at `target`. With q the delay and q' the one of the update before:
//!
//! ```text
//! p += (alpha (q - target) + beta (q - q')) · scale(p)        alpha, beta in 1/16 Hz
//! scale: 1 from p = 0.1 on, 1/2 below, and 1/4 of that for each of p < 10⁻², 10⁻³ .. 10⁻⁶
//!
//! arrival ──▶ burst allowance left?   q < target/2, p < 0.2?   less than two frames queued? ──▶ let in
//!                 no to all: accu += p   accu < 0.85: let in   >= 8.5: drop   between: drop with probability p
//! ```
//!
//! As Linux 6.1 does it:
//! - time in ticks of 64 ns, probability as a whole number of which 2⁵⁶ - 1 is certainty;
//! - the delay is the sojourn time of the packet that left last (0 if it left nothing behind); with `dq_rate_estimator`
//!   the backlog over an average of the rate at which 16 KiB leave;
//! - updates come from a timer wheel (`calc_index` in `kernel/time/timer.c`): 15 ms are 4 ticks of 250 Hz, and the timer fires at
//!   the next one, every **20 ms**;
//! - the burst allowance of 150 ms shrinks by the time between two dequeues, idle time included, not by update;
//! - from p = 0.1 on p grows by at most 0.02 an update, and by 0.02 more while the delay is above 250 ms;
//! - with `ecn` an ECN-capable packet is marked while p is at most 0.1, and dropped above;
//! - a drop begins a new sum. A mark does so only if it was drawn: **once the sum has reached 8.5, every ECN-capable packet is
//!   marked** until something is dropped or p is 0 (RFC 8033 §5.1 begins anew each time);
//! - nothing bounds p by certainty: under load that does not answer it goes on rising, and takes as long to come back.
//!
//! One departure: the timer has been running when the run starts, and fires at whole multiples of its period; the kernel's
//! first comes half a second after the discipline was set up, at a phase of its own.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::periodic::Periodic;
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::PieSpec;
use std::collections::VecDeque;

/// A pie as `tc qdisc add ... pie` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait (tc: 1000).
    pub limit: u32,
    /// Parameters of the drop probability.
    pub params: Params,
    /// Time between updates as asked for; the timer wheel rounds it up. Zero: no updates.
    pub tupdate: Duration,
}

/// The controller's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The delay at which the queue settles (15 ms).
    pub target: Duration,
    /// Weight of the distance from the target, 1/16 Hz (2).
    pub alpha: u32,
    /// Weight of the change since the last update, 1/16 Hz (20).
    pub beta: u32,
    /// Mark ECN-capable packets instead of dropping them, up to a probability of 10 %.
    pub ecn: bool,
    /// Short packets are dropped in proportion to their length.
    pub bytemode: bool,
    /// The delay is computed from the backlog and the rate at which it leaves.
    pub dq_rate_estimator: bool,
    /// `psched_mtu` of the device, 1514 on Ethernet.
    pub mtu: u32,
}

impl Default for Params {
    /// Linux: 15 ms, 2/16 and 20/16 Hz, nothing switched on.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
            mtu: 1514,
        }
    }
}

/// Ticks per second of the kernel's clock (`CONFIG_HZ` of Debian's kernels).
const HZ: u64 = 250;

/// The period of a kernel timer that re-arms itself `delay` ahead each time it fires (`usecs_to_jiffies`, `calc_index`): the
/// wheel's first level has 63 slots of one tick, each further level is eight times as coarse, and a timer fires at the
/// first slot **after** the one it is due in.
pub(crate) fn timer_period(delay: Duration) -> Duration {
    let ticks = u128::from(delay.as_nanos()) * u128::from(HZ);
    let ticks = ticks.div_ceil(1_000_000_000) as u64;
    if ticks == 0 {
        return Duration::ZERO;
    }
    let (mut slot, mut reach) = (1, 63);
    while ticks >= reach {
        slot *= 8;
        reach *= 8;
    }
    Duration::from_nanos((ticks / slot + 1) * slot * (1_000_000_000 / HZ))
}

/// `psched_time_t`: ticks of 64 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks(u64);

impl Ticks {
    pub(crate) const fn of(now: Instant) -> Self {
        Self(now.as_nanos() >> 6)
    }

    const fn span(span: Duration) -> Self {
        Self(span.as_nanos() >> 6)
    }

    const fn minus(self, earlier: Self) -> Self {
        Self(self.0.wrapping_sub(earlier.0))
    }
}

/// Ticks in a second (`PSCHED_TICKS_PER_SEC`).
const TICKS_PER_SECOND: u64 = 15_625_000;
/// Probability 1 (`MAX_PROB`).
const CERTAIN: u64 = u64::MAX >> 8;
/// Queues shorter than this are not dropped from at the start (RFC 8033 §4.4).
const BURST_ALLOWANCE: Ticks = Ticks(150 * TICKS_PER_SECOND / 1000);
/// Above this delay the probability grows faster; found by experiments, says RFC 8033 §5.5.
const LONG_DELAY: Ticks = Ticks(TICKS_PER_SECOND / 4);
/// RFC 8033 §5.2's DQ_THRESHOLD: the rate is averaged over so many bytes, and only while they are there.
const RATE_CYCLE_BYTES: u64 = 16_384;
/// Bytes per tick are kept in 1/256 (`PIE_SCALE`).
const RATE_SHIFT: u32 = 8;

/// The sums below 0.85 let packets in, those from 8.5 on drop (RFC 8033 §5.1).
const SUM_LOW: u64 = CERTAIN / 100 * 85;
const SUM_HIGH: u64 = CERTAIN / 2 * 17;

/// State of the controller (`struct pie_vars`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    delay: Ticks,
    delay_before: Ticks,
    burst_allowance: Ticks,
    probability: u64,
    /// Sum of the probabilities since the last drop.
    sum: u64,
    /// The last dequeue; with the estimator the start of its cycle.
    since: Option<Ticks>,
    /// Bytes that have left in this cycle; none: not measuring.
    left: Option<u64>,
    /// Average rate, 1/256 byte per tick.
    rate: u32,
}

impl Controller {
    pub(crate) const fn new() -> Self {
        Self {
            delay: Ticks(0),
            delay_before: Ticks(0),
            burst_allowance: BURST_ALLOWANCE,
            probability: 0,
            sum: 0,
            since: None,
            left: None,
            rate: 0,
        }
    }

    /// `pie_vars_init`: a new measurement; the delays and the probability stay.
    fn restart(&mut self) {
        let Self { delay, delay_before, probability, .. } = *self;
        *self = Self { delay, delay_before, probability, ..Self::new() };
    }

    /// True when a packet of `len` bytes that arrives at a queue of `backlog` bytes is dropped early
    /// (`pie_drop_early`); `draw` gives 64 random bits.
    pub(crate) fn condemns(
        &mut self,
        params: &Params,
        backlog: u64,
        len: u32,
        draw: impl FnOnce() -> u64,
    ) -> bool {
        let half_target = Ticks(Ticks::span(params.target).0 / 2);
        // RFC 8033 §4.1: a small queue is no reason to drop, and two frames are a small queue.
        let small = self.delay < half_target && self.probability < CERTAIN / 5;
        let few = backlog < 2 * u64::from(params.mtu);
        if self.burst_allowance > Ticks(0) || small || few {
            return false;
        }
        let probability = if params.bytemode && len <= params.mtu {
            u64::from(len) * (self.probability / u64::from(params.mtu.max(1)))
        } else {
            self.probability
        };
        // RFC 8033 §5.1, derandomisation.
        self.sum = if probability == 0 { 0 } else { self.sum.wrapping_add(probability) };
        if self.sum < SUM_LOW {
            return false;
        }
        if self.sum >= SUM_HIGH {
            return true;
        }
        let condemned = draw() >> 8 < probability;
        if condemned {
            self.sum = 0;
        }
        condemned
    }

    /// True when a packet chosen for a drop may be marked instead.
    pub(crate) const fn may_mark(&self, params: &Params) -> bool {
        params.ecn && self.probability <= CERTAIN / 10
    }

    /// The same up to a probability in percent (`fq_pie_qdisc_enqueue`).
    pub(crate) const fn may_mark_up_to(&self, params: &Params, percent: u32) -> bool {
        params.ecn && self.probability <= CERTAIN / 100 * percent as u64
    }

    /// A packet was dropped on arrival.
    pub(crate) const fn has_dropped(&mut self) {
        self.sum = 0;
    }

    /// A packet of `len` bytes that came at `arrived` leaves `backlog` bytes behind (`pie_process_dequeue`).
    pub(crate) fn has_left(
        &mut self,
        params: &Params,
        len: u32,
        arrived: Ticks,
        now: Ticks,
        backlog: u64,
    ) {
        let passed = if params.dq_rate_estimator {
            let Some(passed) = self.estimate(len, now, backlog) else { return };
            passed
        } else {
            let passed = self.since.map_or(Ticks(0), |since| now.minus(since));
            self.since = Some(now);
            self.delay = if backlog == 0 { Ticks(0) } else { now.minus(arrived) };
            passed
        };
        self.burst_allowance.0 = self.burst_allowance.0.saturating_sub(passed.0);
    }

    /// RFC 8033 §5.2: the rate at which the queue leaves, measured over cycles of 16 KiB. Returns how long a cycle that
    /// ends took.
    fn estimate(&mut self, len: u32, now: Ticks, backlog: u64) -> Option<Ticks> {
        if backlog >= RATE_CYCLE_BYTES && self.left.is_none() {
            self.since = Some(now);
            self.left = Some(0);
        }
        let departed_bytes = self.left? + u64::from(len);
        self.left = Some(departed_bytes);
        let passed = now.minus(self.since?);
        if departed_bytes < RATE_CYCLE_BYTES || passed == Ticks(0) {
            return None;
        }
        // The kernel keeps both in 32 bits.
        let rate = ((departed_bytes << RATE_SHIFT) / passed.0) as u32;
        self.rate = if self.rate == 0 { rate } else { self.rate - (self.rate >> 3) + (rate >> 3) };
        if backlog < RATE_CYCLE_BYTES {
            self.left = None;
        } else {
            self.left = Some(0);
            self.since = Some(now);
        }
        Some(passed)
    }

    /// The delay at this update, and at the one before.
    fn delays(&mut self, params: &Params, backlog: u64) -> (Ticks, Ticks) {
        if !params.dq_rate_estimator {
            return (self.delay, self.delay_before);
        }
        self.delay_before = self.delay;
        // 32 bits in the kernel too.
        let scaled = (backlog as u32) << RATE_SHIFT;
        (Ticks(u64::from(scaled.checked_div(self.rate).unwrap_or(0))), self.delay_before)
    }

    /// `weight` in 1/16 Hz as a probability per tick, smaller the less is dropped (RFC 8033 §4.2).
    fn scaled(&self, weight: u32) -> u64 {
        let mut gain = (u64::from(weight) * (CERTAIN / TICKS_PER_SECOND)) >> 4;
        if self.probability < CERTAIN / 10 {
            gain >>= 1;
            let mut power = 100;
            while power <= 1_000_000 && self.probability < CERTAIN / power {
                gain >>= 2;
                power *= 10;
            }
        }
        gain
    }

    /// The timer fires (`pie_calculate_probability`).
    pub(crate) fn update(&mut self, params: &Params, backlog: u64) {
        let target = Ticks::span(params.target);
        let (delay, before) = self.delays(params, backlog);
        // What wraps here wraps in the kernel.
        let towards = |weight, from| self.scaled(weight).wrapping_mul(delay.minus(from).0);
        let mut change = (towards(params.alpha, target) as i64)
            .wrapping_add(towards(params.beta, before) as i64);
        if change > (CERTAIN / 50) as i64 && self.probability >= CERTAIN / 10 {
            change = (CERTAIN / 100 * 2) as i64;
        }
        if delay > LONG_DELAY {
            change = change.wrapping_add((CERTAIN / 50) as i64);
        }
        let (moved, wrapped) = self.probability.overflowing_add_signed(change);
        self.probability = match (wrapped, change > 0) {
            (false, _) => moved,
            (true, true) => CERTAIN,
            (true, false) => 0,
        };
        // RFC 8033 §4.2: an idle queue forgets; one so short that its delay rounds to 0 does not.
        let overflowed = wrapped && change > 0;
        if delay == Ticks(0) && before == Ticks(0) && backlog == 0 && !overflowed {
            self.probability -= self.probability / 64;
        }
        self.delay = delay;
        let half_target = Ticks(target.0 / 2);
        let low = delay < half_target && self.delay_before < half_target;
        if low && self.probability == 0 && (!params.dq_rate_estimator || self.rate > 0) {
            self.restart();
        }
        if !params.dq_rate_estimator {
            self.delay_before = delay;
        }
    }

    /// The timer fires so many times, and nothing happens in between.
    pub(crate) fn update_times(&mut self, times: u64, params: &Params, backlog: u64) {
        for _ in 0..times {
            let before = *self;
            self.update(params, backlog);
            if *self == before {
                break;
            }
        }
    }
}

/// The discipline: one queue under PIE.
#[derive(Clone, Debug)]
pub struct Pie {
    limit: u32,
    params: Params,
    timer: Periodic,
    queue: VecDeque<(Item, Ticks)>,
    bytes: u64,
    controller: Controller,
    stream: Stream,
}

impl Pie {
    /// An empty queue; its draws come from `stream`.
    #[must_use]
    pub fn new(config: Config, stream: Stream) -> Self {
        let Config { limit, params, tupdate } = config;
        Self {
            limit,
            params,
            timer: Periodic::every(timer_period(tupdate)),
            queue: VecDeque::new(),
            bytes: 0,
            controller: Controller::new(),
            stream,
        }
    }

    fn refuse<S: Sink>(&mut self, item: Item, reason: DropReason, sink: &mut S) -> Verdict {
        self.controller.has_dropped();
        sink.dropped(item, reason);
        Verdict::Dropped(reason)
    }
}

impl Qdisc for Pie {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        let Self { params, bytes, .. } = *self;
        self.controller.update_times(self.timer.due(now), &params, bytes);
        if self.backlog().packets >= self.limit {
            return self.refuse(item, DropReason::Overlimit, sink);
        }
        let stream = &mut self.stream;
        let mut verdict = Verdict::Queued;
        if self.controller.condemns(&params, bytes, item.len, || stream.next_u64()) {
            if !(self.controller.may_mark(&params) && item.mark(sink)) {
                return self.refuse(item, DropReason::Aqm, sink);
            }
            verdict = Verdict::Marked;
        }
        self.queue.push_back((item, Ticks::of(now)));
        self.bytes += u64::from(item.len);
        verdict
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, _sink: &mut S) -> Dequeue {
        let Self { params, bytes, .. } = *self;
        self.controller.update_times(self.timer.due(now), &params, bytes);
        let Some((item, arrived)) = self.queue.pop_front() else { return Dequeue::Empty };
        self.bytes -= u64::from(item.len);
        self.controller.has_left(&params, item.len, arrived, Ticks::of(now), self.bytes);
        Dequeue::Packet(item)
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.queue.len() as u32 }
    }

    fn change<S: Sink>(&mut self, change: Change, _now: Instant, sink: &mut S) {
        // `pie_change`: the oldest packets go.
        let Change::LimitPackets(limit) = change else { return };
        self.limit = limit;
        while self.backlog().packets > limit {
            let Some((item, _)) = self.queue.pop_front() else { break };
            self.bytes -= u64::from(item.len);
            sink.dropped(item, DropReason::Overlimit);
        }
    }
}

#[cfg(test)]
mod tests;
