//! Random early detection (Floyd and Jacobson 1993; `red.h`, `sch_red.c`).
//!
//! A packet that arrives is judged by an average of the queue in bytes, which moves by 2^-Wlog of its distance at each
//! arrival:
//!
//! ```text
//!            min               max
//! let in      │  one in 1..1/p  │  every packet         p rises from 0 at min to `probability` at max
//! ────────────┼─────────────────┼────────────▶ average
//! ```
//!
//! The signal is a drop; with `ecn` a mark where the packet may be marked, with `nodrop` nothing where it may not, with `harddrop`
//! a drop above max all the same. What is let in or marked still needs room: the queue is a bfifo of `limit` bytes.
//!
//! As Linux 6.1 does it:
//! - gaps between signals are uniform from 1 to 1/p, about half of 1/p on average, and the first packet in the band is never
//!   chosen (`red_action`);
//! - an idle queue's average decays by a table that tc computes in ticks of 64 ns and the kernel reads with microseconds: after
//!   its first half cell 22.5 times too slowly (15.625 / ln 2);
//! - **who asks an empty queue** starts the idle clock: a device does, htb, tbf and drr do not. Below those an average
//!   stays where it was, however long nothing comes;
//! - `adaptive` (`red_adaptative_algo`) moves the largest probability every 512 ms: 500 ms are 125 ticks of 250 Hz, and the timer wheel has
//!   slots of eight there. Since iproute2 5.7 tc's word does not reach the code that starts that timer; here, and on
//!   the kernel that the vm engine sets up, it does.

pub(crate) mod average;
pub(crate) mod shape;
pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::fifo::Fifo;
use crate::disciplines::pie::timer_period;
use crate::periodic::Periodic;
use average::{Average, Params, Zone};
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::RedSpec;

/// Signals applied to a chosen packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// Mark what may be marked.
    pub(crate) ecn: bool,
    /// Above max: drop all the same.
    pub(crate) harddrop: bool,
    /// With `ecn`: let in what may not be marked.
    pub(crate) nodrop: bool,
}

/// The adaptive algorithm's timer, its probability, and the middle fifth it steers to.
#[derive(Clone, Copy, Debug)]
struct Adaptive {
    timer: Periodic,
    max_p: u32,
    low: u64,
    high: u64,
}

/// 1 % (`RED_ONE_PERCENT`, rounded), and 50 times that.
const MAX_P_MIN: u32 = 42_949_673;
const MAX_P_MAX: u32 = 50 * MAX_P_MIN;

impl Adaptive {
    fn new(min: u32, params: &Params) -> Self {
        let fifth = u64::from(params.delta() / 5);
        let low = u64::from(min) + 2 * fifth;
        Self {
            timer: Periodic::every(timer_period(Duration::from_millis(500))),
            max_p: params.max_p(),
            low,
            high: low + fifth,
        }
    }

    /// The timer fires and finds this average.
    fn fires(&mut self, average: u64) {
        if average > self.high && self.max_p <= MAX_P_MAX {
            self.max_p += MAX_P_MIN.min(self.max_p / 4);
        } else if average < self.low && self.max_p >= MAX_P_MIN {
            self.max_p = self.max_p / 10 * 9;
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Red {
    params: Params,
    signals: Signals,
    average: Average,
    adaptive: Option<Adaptive>,
    queue: Fifo,
    stream: Stream,
}

impl Red {
    /// An empty queue of `limit` bytes between the thresholds of `params`, of which `min` is the lower.
    fn new(
        limit: u64,
        min: u32,
        params: Params,
        signals: Signals,
        adaptive: bool,
        stream: Stream,
    ) -> Self {
        Self {
            average: Average::new(&params, Some(Instant::ZERO)),
            adaptive: adaptive.then(|| Adaptive::new(min, &params)),
            params,
            signals,
            queue: Fifo::bytes(limit),
            stream,
        }
    }

    /// Makes up for the timer. A firing sees the average as it was then: only an idle one changes in between.
    fn catch_up(&mut self, now: Instant) {
        let Some(adaptive) = &mut self.adaptive else { return };
        for at in adaptive.timer.instants(now, u64::MAX) {
            let before = adaptive.max_p;
            adaptive.fires(self.average.whole(&self.params, at));
            if adaptive.max_p != before {
                self.average.moved(adaptive.max_p, &self.params);
            }
        }
    }
}

impl Qdisc for Red {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.catch_up(now);
        let Self { params, signals, average, stream, .. } = self;
        average.arrives(params, self.queue.backlog().bytes, now);
        let (chosen, hard) = match average.zone(params) {
            Zone::Below => {
                average.outside();
                (false, false)
            }
            Zone::Between => (average.chooses(params, stream), false),
            Zone::Above => {
                average.outside();
                (true, true)
            }
        };
        let Signals { ecn, harddrop, nodrop } = *signals;
        let mut marked = false;
        if chosen {
            let may_mark = ecn && !(hard && harddrop);
            marked = may_mark && item.mark(sink);
            if !(marked || may_mark && nodrop) {
                sink.dropped(item, DropReason::Aqm);
                return Verdict::Dropped(DropReason::Aqm);
            }
        }
        match self.queue.enqueue(item, now, sink) {
            Verdict::Queued if marked => Verdict::Marked,
            verdict @ (Verdict::Queued
            | Verdict::Marked
            | Verdict::Dropped(_)
            | Verdict::DroppedOther(_)) => verdict,
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        self.catch_up(now);
        let answer = self.queue.dequeue(now, sink);
        if answer == Dequeue::Empty {
            self.average.found_empty(now);
        }
        answer
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn head(&self) -> Option<Item> {
        self.queue.head()
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        // `__red_change`: a new bfifo takes the place of the one that was, which is purged; the average starts afresh.
        let Change::LimitBytes(limit) = change else { return };
        self.catch_up(now);
        while let Dequeue::Packet(item) = self.queue.dequeue(now, sink) {
            sink.dropped(item, DropReason::Overlimit);
        }
        self.queue = Fifo::bytes(limit);
        self.average.restart();
        self.average.found_empty(now);
    }
}

#[cfg(test)]
mod tests;
