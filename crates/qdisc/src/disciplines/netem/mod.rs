//! Network emulator (`sch_netem.c`): delay, jitter, loss, duplication, corruption, reordering, rate.
//!
//! Everything is decided when a packet arrives, in the kernel's order:
//!
//! 1. duplicate? (the count of packets goes to two)
//! 2. lost? (the count goes down by one; with `ecn` an ECN-capable packet is marked instead)
//! 3. none left: gone
//! 4. corrupt?
//! 5. no room in the delay line: dropped, with its copy
//! 6. the copy goes through all this itself, without being copied again, and *before* the original
//! 7. reorder? then to the front, without delay; otherwise
//! 8. a delay is drawn and the packet takes its place by the time it is due
//!
//! Each delay is drawn independently, so **jitter reorders** as soon as it exceeds the spacing of
//! packets. With a `rate` packets stay in order: `due = max(last due, now + delay) + len / rate`,
//! and the limit counts what is delayed together with what waits for the rate.
//!
//! With `slot` the delay line opens for a moment only, as where a medium or an interface aggregates packets: what is
//! due leaves together, up to so many packets and bytes, and what is left waits for the next slot.
//!
//! Departures from the kernel:
//! - a corrupted packet takes its place in the delay line and is dropped when due, where in a network its
//!   receiver's checksum would do it; links behind do not carry it, and the few flips
//!   that no checksum covers (source MAC address) are not spared;
//! - a copy enters this netem again, in the kernel the interface's root discipline (the same thing
//!   for netem at the root or below htb);
//! - left out: slots by a distribution, cell sizes, a child discipline.

mod delay_line;
mod distribution;
mod random;
mod slots;
pub mod spec;

pub use distribution::Distribution;
pub use random::Loss;
pub use slots::Slot;
pub use spec::{DelayDistribution, LossModel, NetemSpec};

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use delay_line::{DelayLine, Delayed};
use distribution::{Shape, table};
use dragstrip_units::{Duration, Instant, Rate, Stream};
use random::{Chance, Correlated, LossProcess};
use slots::Slots;

/// A netem as `tc qdisc add ... netem` describes it. Probabilities and correlations from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Packets in the delay line (tc: 1000).
    pub limit: u32,
    /// Mean delay.
    pub delay: Duration,
    /// Half width (uniform) or scale of the deviation; the kernel cuts it to 2.147 s.
    pub jitter: Duration,
    /// Correlation of successive delays.
    pub delay_correlation: f64,
    /// Shape of the jitter.
    pub distribution: Distribution,
    /// Loss model.
    pub loss: Loss,
    /// Mark ECN-capable packets instead of losing them.
    pub ecn: bool,
    /// Probability of a copy.
    pub duplicate: f64,
    /// Correlation of successive duplications.
    pub duplicate_correlation: f64,
    /// Probability of a damaged packet.
    pub corrupt: f64,
    /// Correlation of successive corruptions.
    pub corrupt_correlation: f64,
    /// Probability that a packet leaves at once; with zero and a `gap`, tc's `gap N` without
    /// `reorder`, every gap-th packet does.
    pub reorder: f64,
    /// Correlation of successive reorderings.
    pub reorder_correlation: f64,
    /// Only a packet after `gap - 1` delayed ones may be reordered; zero with a `reorder`
    /// probability means one, as tc sets it.
    pub gap: u32,
    /// Packets also take their length at this rate, one after the other.
    pub rate: Option<Rate>,
    /// Times at which the delay line opens, and for how much; none: always.
    pub slot: Option<Slot>,
}

impl Default for Config {
    /// tc's defaults: a limit of 1000 packets, and nothing happens to them.
    fn default() -> Self {
        Self {
            limit: 1000,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: 0.0,
            distribution: Distribution::Uniform,
            loss: Loss::None,
            ecn: false,
            duplicate: 0.0,
            duplicate_correlation: 0.0,
            corrupt: 0.0,
            corrupt_correlation: 0.0,
            reorder: 0.0,
            reorder_correlation: 0.0,
            gap: 0,
            rate: None,
            slot: None,
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Netem {
    stream: Stream,
    limit: u32,
    delay_ns: i64,
    jitter_ns: i64,
    delay_draw: Correlated,
    shape: Shape,
    loss: LossProcess,
    ecn: bool,
    duplicate: Chance,
    corrupt: Chance,
    reorder: Chance,
    gap: u32,
    /// Packets delayed since the last one that was reordered.
    delayed_in_row: u32,
    bytes_per_second: Option<u64>,
    line: DelayLine,
    slots: Option<Slots>,
    /// Reordered packets, the newest last: it leaves first (`__qdisc_enqueue_head`).
    ahead: Vec<Delayed>,
    ahead_bytes: u64,
}

impl Netem {
    /// An empty netem that draws from `stream`.
    ///
    /// # Panics
    /// If a probability or correlation is not between 0 and 1.
    #[must_use]
    pub fn new(config: Config, mut stream: Stream) -> Self {
        let random = &mut stream;
        let reorder = if config.gap > 0 && config.reorder == 0.0 {
            Chance::certain(random)
        } else {
            Chance::new(config.reorder, config.reorder_correlation, random)
        };
        let gap = if config.reorder > 0.0 { config.gap.max(1) } else { config.gap };
        Self {
            limit: config.limit,
            delay_ns: config.delay.as_nanos().min(i64::MAX as u64 / 4) as i64,
            jitter_ns: config.jitter.as_nanos().min(i32::MAX as u64) as i64,
            delay_draw: Correlated::new(config.delay_correlation, random),
            shape: Shape::new(config.distribution),
            loss: LossProcess::new(config.loss, random),
            ecn: config.ecn,
            duplicate: Chance::new(config.duplicate, config.duplicate_correlation, random),
            corrupt: Chance::new(config.corrupt, config.corrupt_correlation, random),
            reorder,
            gap,
            delayed_in_row: 0,
            bytes_per_second: config.rate.map(|rate| (rate.bits_per_second() / 8).max(1)),
            line: DelayLine::default(),
            slots: config.slot.map(Slots::new),
            ahead: Vec::new(),
            ahead_bytes: 0,
            stream,
        }
    }

    fn admit<S: Sink>(
        &mut self,
        mut item: Item,
        now: Instant,
        copy: bool,
        sink: &mut S,
    ) -> Verdict {
        let duplicate = !copy && self.duplicate.happens(&mut self.stream);
        let mut is_lost = self.loss.next(&mut self.stream);
        let marked = is_lost && self.ecn && item.mark(sink);
        is_lost &= !marked;
        if is_lost && !duplicate {
            sink.dropped(item, DropReason::Loss);
            return Verdict::Dropped(DropReason::Loss);
        }
        let corrupt = self.corrupt.happens(&mut self.stream);
        if self.line.backlog().packets >= self.limit {
            sink.dropped(item, DropReason::Overlimit);
            return Verdict::Dropped(DropReason::Overlimit);
        }
        if duplicate && !is_lost {
            let copy = sink.duplicated(item);
            // A copy is nobody's packet in hand.
            let _ = self.admit(copy, now, true, sink);
        }
        if self.overtakes() {
            self.delayed_in_row = 0;
            self.ahead_bytes += u64::from(item.len);
            self.ahead.push(Delayed { due: now, item, corrupt });
        } else {
            self.delayed_in_row = self.delayed_in_row.saturating_add(1);
            let due = self.due(item.len, now);
            self.line.push(Delayed { due, item, corrupt });
        }
        if marked { Verdict::Marked } else { Verdict::Queued }
    }

    fn overtakes(&mut self) -> bool {
        self.gap > 0
            && self.delayed_in_row >= self.gap - 1
            && self.reorder.happens(&mut self.stream)
    }

    fn due(&mut self, len: u32, now: Instant) -> Instant {
        let mut delay = self.delay_ns;
        if self.jitter_ns > 0 {
            let random = self.delay_draw.draw(&mut self.stream);
            delay += self.shape.deviation_ns(self.jitter_ns, random);
        }
        // A negative delay puts the packet in front of others that are due now.
        let due = now.as_nanos().saturating_add_signed(delay);
        let Some(bytes_per_second) = self.bytes_per_second else {
            return Instant::from_nanos(due);
        };
        let start = self.line.last_due().map_or(due, |last| due.max(last.as_nanos()));
        let time = u128::from(len) * 1_000_000_000 / u128::from(bytes_per_second);
        Instant::from_nanos(start) + Duration::from_nanos(time.min(u128::from(u64::MAX)) as u64)
    }

    fn pop(&mut self, now: Instant) -> Option<Delayed> {
        if let Some(delayed) = self.ahead.pop() {
            self.ahead_bytes -= u64::from(delayed.item.len);
            return Some(delayed);
        }
        if let (Some(slots), Some(due)) = (&mut self.slots, self.line.next_due()) {
            slots.before(due, now, &mut self.stream);
            if !slots.is_open(now) {
                return None;
            }
        }
        let delayed = self.line.pop_due(now)?;
        if let Some(slots) = &mut self.slots {
            slots.passed(delayed.item.len, now, &mut self.stream);
        }
        Some(delayed)
    }

    /// Returns the time at which a packet can leave next.
    fn wait(&self) -> Dequeue {
        let Some(due) = self.line.next_due() else { return Dequeue::Empty };
        Dequeue::Wait(self.slots.as_ref().map_or(due, |slots| due.max(slots.opens())))
    }
}

impl Qdisc for Netem {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.admit(item, now, false, sink)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        while let Some(Delayed { item, corrupt, .. }) = self.pop(now) {
            if !corrupt {
                return Dequeue::Packet(item);
            }
            sink.dropped(item, DropReason::Corrupt);
        }
        self.wait()
    }

    fn backlog(&self) -> Backlog {
        let Backlog { bytes, packets } = self.line.backlog();
        Backlog { bytes: bytes + self.ahead_bytes, packets: packets + self.ahead.len() as u32 }
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, _sink: &mut S) {
        match change {
            Change::DelayNs(ns) => self.delay_ns = ns.min(i64::MAX as u64 / 4) as i64,
            Change::Loss(probability) => {
                let loss = Loss::Random { probability, correlation: 0.0 };
                self.loss = LossProcess::new(loss, &mut self.stream);
            }
            Change::LimitPackets(limit) => self.limit = limit,
            Change::RateBps(_) | Change::LimitBytes(_) => return,
        }
        // The kernel is told all of it anew (`get_slot`).
        if let Some(slots) = &mut self.slots {
            slots.restart(now);
        }
    }
}

#[cfg(test)]
mod tests;
