//! Dual-queue coupled AQM (RFC 9332; `sch_dualpi2.c` of Linux 6.17): low latency for L4S, and fairness to classic flows.
//!
//! Packets with ECT(1) or CE go to the L queue, all others to the C queue. One PI controller moves p' at fixed times so that the longer
//! of both queues' delays settles at `target`; scalable flows answer to a mark with less than classic ones, so that the two
//! probabilities are coupled:
//!
//! ```text
//!                     p' += alpha (q - target) + beta (q - q')
//! C queue:  drop or mark with p'²          L queue:  mark with k p', and whatever waited longer than `step_thresh`
//! ```
//!
//! As Linux 6.17 does it:
//! - time in ns, p' in 1/2³²; gains are constant, since the square takes their place; there is no burst allowance;
//! - the AQM judges when a packet leaves, and not with less than two frames left behind it;
//! - L goes first while C is empty or its credit used up; between full queues of equal packets C has `classic_protection` percent;
//! - overload, k p' > 1: both queues are dropped from with p'² and all of L that stays is marked (`drop_on_overload`), or p' ends at
//!   1/k and the queue grows (`overflow`);
//! - a packet that may not be marked, in L by `any_ect` or not, is dropped where another is marked.
//!
//! RFC 9332's appendix A differs: its controller sees the C queue alone, L has a ramp from 800 us to 1.2 ms instead of a step, and draws are
//! spread evenly instead of at random.
//!
//! Departure: of more than 10,000 updates between two calls (160 s without a packet) only the last are made up for.
//!
//! **No kernel of Debian 12 has it**: nothing here was held against one; the tests are closed forms of the above.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Ecn, Item, Qdisc, Sink, Verdict};
use crate::disciplines::FRAME;
use crate::periodic::Periodic;
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::DualPi2Spec;
use std::collections::VecDeque;

/// A dualpi2 as `tc qdisc add ... dualpi2` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait in both queues.
    pub limit: u32,
    /// The controller.
    pub control: Control,
    /// Time between its updates.
    pub tupdate: Duration,
    /// Ratio of the marking probability of L to p' (2).
    pub coupling: u32,
    /// The L queue's step.
    pub step: Step,
    /// Packets that L must hold for the step to apply to the next (0).
    pub min_qlen_step: u32,
    /// Drop from both queues under overload; else p' ends where L is always marked.
    pub drop_on_overload: bool,
    /// Share of C between full queues, in percent (10).
    pub classic_protection: u32,
    /// ECT(0) belongs to L too.
    pub any_ect: bool,
}

/// The controller's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The delay at which the queues settle (15 ms).
    pub target: Duration,
    /// Weight of the distance from the target, 1/256 Hz (41).
    pub alpha: u32,
    /// Weight of the change since the last update, 1/256 Hz (819).
    pub beta: u32,
}

/// From where on everything in L is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Longer waits.
    Time(Duration),
    /// More packets left behind.
    Packets(u32),
}

/// Updates that are made up for at once.
const UPDATES_MAX: u64 = 10_000;

/// Certainty (`MAX_PROB`).
const CERTAIN: u64 = u32::MAX as u64;
/// Products of delay and weight are this much larger than p'.
const GAIN: i128 = 64;

/// A weight in 1/256 Hz per nanosecond of delay, in 1/64 of p' (`dualpi2_scale_alpha_beta`).
const fn scaled(weight: u32) -> i128 {
    (weight as u128 * CERTAIN as u128 * GAIN as u128 / 256 / 1_000_000_000) as i128
}

/// p' after an update that finds `delay` and found `before` the last time (`calculate_probability`).
fn updated(p: u64, control: &Control, delay: Duration, before: Duration) -> u64 {
    let ns = |span: Duration| i128::from(span.as_nanos());
    let delta = (ns(delay) - ns(control.target)) * scaled(control.alpha)
        + (ns(delay) - ns(before)) * scaled(control.beta);
    (i128::from(p) + delta / GAIN).clamp(0, i128::from(CERTAIN)) as u64
}

/// A packet, when it came, and whether the step applies to it.
type Waiting = (Item, Instant, bool);

#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Queue {
    fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.0.len);
        Some(waiting)
    }

    /// Time the head packet has waited; 0 when there is none.
    fn delay(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |&(_, since, _)| now.since(since))
    }
}

/// Decision of the AQM about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Pass,
    Mark,
    Drop,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: Config,
    timer: Periodic,
    /// p', in 1/2³².
    p: u64,
    last_delay: Duration,
    classic: Queue,
    scalable: Queue,
    /// Above 0: it is C's turn (`c_protection_credit`).
    credit: i64,
    stream: Stream,
}

impl DualPi2 {
    /// Empty queues; draws come from `stream`.
    #[must_use]
    pub fn new(config: Config, stream: Stream) -> Self {
        let mut discipline = Self {
            config,
            timer: Periodic::every(config.tupdate),
            p: 0,
            last_delay: Duration::ZERO,
            classic: Queue::default(),
            scalable: Queue::default(),
            credit: 0,
            stream,
        };
        discipline.reset_credit();
        discipline
    }

    /// Returns the credit that C gains per byte of L, and L per byte of C.
    fn weights(&self) -> (i64, i64) {
        let classic = i64::from(self.config.classic_protection);
        (classic, 100 - classic)
    }

    fn reset_credit(&mut self) {
        let (classic, scalable) = self.weights();
        self.credit = i64::from(FRAME) * (classic - scalable);
    }

    /// Makes up for the timer.
    fn catch_up(&mut self, now: Instant) {
        for at in self.timer.instants(now, UPDATES_MAX) {
            let delay = self.classic.delay(at).max(self.scalable.delay(at));
            self.p = updated(self.p, &self.config.control, delay, self.last_delay);
            if !self.config.drop_on_overload {
                self.p = self.p.min(CERTAIN / u64::from(self.config.coupling.max(1)));
            }
            self.last_delay = delay;
            if self.p == 0 && self.backlog().packets == 0 {
                break;
            }
        }
    }

    fn roll(&mut self, p: u64) -> bool {
        u64::from(self.stream.next_u32()) <= p
    }

    /// `must_drop`, with what stays behind the packet.
    fn judge(&mut self, item: &Item, in_l: bool) -> Judgement {
        if self.backlog().bytes < 2 * u64::from(FRAME) {
            return Judgement::Pass;
        }
        let coupled = self.p * u64::from(self.config.coupling);
        let overload = coupled > CERTAIN;
        let squared = |this: &mut Self| this.roll(this.p) && this.roll(this.p);
        match (in_l, overload) {
            (false, true) if squared(self) => Judgement::Drop,
            (false, false) if squared(self) => signal(item),
            (true, true) if self.config.drop_on_overload && squared(self) => Judgement::Drop,
            (true, true) => signal(item),
            (true, false) if self.roll(coupled) => signal(item),
            (true | false, false) | (false, true) => Judgement::Pass,
        }
    }

    /// The packet whose turn it is, the queue it was in, and what that does to the credit.
    fn next(&mut self) -> Option<(Waiting, bool, i64)> {
        let (classic, scalable) = self.weights();
        let both_backlogged = !self.classic.packets.is_empty() && !self.scalable.packets.is_empty();
        let in_l = !self.scalable.packets.is_empty() && (!both_backlogged || self.credit <= 0);
        let waiting = if in_l { self.scalable.pop() } else { self.classic.pop() }?;
        let weight = if in_l { classic } else { -scalable };
        let change = if both_backlogged { weight * i64::from(waiting.0.len) } else { 0 };
        Some((waiting, in_l, change))
    }
}

/// A mark, or a drop of what may not be marked.
fn signal(item: &Item) -> Judgement {
    if item.ecn.is_capable() { Judgement::Mark } else { Judgement::Drop }
}

impl Qdisc for DualPi2 {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.catch_up(now);
        if self.backlog().packets >= self.config.limit {
            sink.dropped(item, DropReason::Overlimit);
            return Verdict::Dropped(DropReason::Overlimit);
        }
        let in_l = match item.ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.config.any_ect,
            Ecn::NotEct => false,
        };
        let step = in_l && self.scalable.packets.len() >= self.config.min_qlen_step as usize;
        let queue = if in_l { &mut self.scalable } else { &mut self.classic };
        queue.packets.push_back((item, now, step));
        queue.bytes += u64::from(item.len);
        Verdict::Queued
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        self.catch_up(now);
        while let Some(((mut item, since, step), in_l, change)) = self.next() {
            let late = match self.config.step {
                Step::Time(most) => now.since(since) > most,
                Step::Packets(most) => self.scalable.packets.len() > most as usize,
            };
            let by_step = if step && late { signal(&item) } else { Judgement::Pass };
            let by_aqm = self.judge(&item, in_l);
            if by_aqm == Judgement::Drop || by_step == Judgement::Drop {
                sink.dropped(item, DropReason::Aqm);
                continue;
            }
            if by_aqm == Judgement::Mark || by_step == Judgement::Mark {
                item.mark(sink);
            }
            self.credit += change;
            return Dequeue::Packet(item);
        }
        self.reset_credit();
        Dequeue::Empty
    }

    fn backlog(&self) -> Backlog {
        let packets = self.classic.packets.len() + self.scalable.packets.len();
        Backlog { bytes: self.classic.bytes + self.scalable.bytes, packets: packets as u32 }
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        // `dualpi2_change`: the oldest packets go, first those of C.
        let Change::LimitPackets(limit) = change else { return };
        self.catch_up(now);
        self.config.limit = limit;
        while self.backlog().packets > limit {
            let Some((item, ..)) = self.classic.pop().or_else(|| self.scalable.pop()) else {
                break;
            };
            sink.dropped(item, DropReason::Overlimit);
        }
    }
}

#[cfg(test)]
mod tests;
