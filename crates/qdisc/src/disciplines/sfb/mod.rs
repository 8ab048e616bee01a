//! Stochastic fair blue: BLUE for each flow, without a list of flows (Feng, Kandlur, Saha and Shin, "Stochastic fair blue", INFOCOM
//! 2001; `sch_sfb.c`).
//!
//! ```text
//!   hash ──4 bits──▶ level 0: 16 bins ─┐
//!        ──4 bits──▶ level 1: 16 bins ─┤  a bin: packets in the queue, probability p     all bins' least p:
//!          ...                         ├─▶ full: p grows; empty: p falls              ──▶ below 1: mark or drop so often
//!        ──4 bits──▶ level 7: 16 bins ─┘                                                  1: inelastic, into the penalty box
//! ```
//!
//! A packet belongs to a bin of each level. The bins of a flow that answers to marks have a moderate p, those of one that does
//! not end at certainty; a flow that shares some bins with such a one, but not all, has their least. What is inelastic may use
//! a fixed rate of packets. Now and then the hash changes, so that nobody shares all bins for long: two sets of bins take turns,
//! and shortly before, the next one learns who is inelastic.
//!
//! As Linux 6.1 does it:
//! - above one half, p drops twice the excess and marks only the rest;
//! - a bin counts packets when they are admitted, and the next set only those that are inelastic and were admitted;
//! - the penalty box's clock starts again at each packet that finds no token, even if it earns none: who comes faster than the
//!   rate gets the first tokens and then nothing (`sfb_rate_limit`);
//! - the set that has been active keeps its probabilities for its next turn, and gets another hash (`sfb_swap_slot`).
//!
//! Departures: the kernel's clock has 250 ticks a second here, and the run begins with one.

pub mod spec;

use crate::contract::{Backlog, Change, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::flow_hash::FlowHash;
use crate::periodic::{jiffies, jiffies_of};
use dragstrip_units::{Duration, Instant, Stream};
pub use spec::SfbSpec;
use std::collections::VecDeque;

/// Levels, each with bins of its own (`SFB_LEVELS`).
const LEVELS: usize = 8;
/// Bins of a level, for four bits of the hash (`SFB_NUMBUCKETS`).
const BINS: usize = 16;
/// A probability of one (`SFB_MAX_PROB`).
pub(super) const CERTAIN: u16 = u16::MAX;
/// Ticks per second of the kernel's clock.
const HZ: u64 = 250;

/// An sfb as the kernel keeps it; packets, and probabilities in 65535ths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub limit: u32,
    /// Packets in a bin from which on nothing more is admitted.
    pub max: u32,
    /// Packets in a bin from which on it is full.
    pub target: u32,
    pub increment: u32,
    pub decrement: u32,
    pub rehash: Duration,
    pub warmup: Duration,
    /// Inelastic packets per second.
    pub penalty_rate: u32,
    pub penalty_burst: u32,
}

/// State of the flows that share a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    packets: u16,
    probability: u16,
}

/// The bins of all levels, and the hash that leads to them.
#[derive(Clone, Debug)]
struct Bins {
    hash: FlowHash,
    levels: [[Bin; BINS]; LEVELS],
}

impl Bins {
    fn new(stream: &mut Stream) -> Self {
        Self { hash: FlowHash::new(stream), levels: <[[Bin; BINS]; LEVELS]>::default() }
    }

    /// Never zero, by which the kernel says that a packet is in no bins.
    fn hash(&self, flow: u32) -> u32 {
        self.hash.of(flow).max(1)
    }

    /// A flow's bin of each level.
    fn of(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        let bins = (0..LEVELS).map(move |level| (hash >> (4 * level)) as usize % BINS);
        self.levels.iter_mut().zip(bins).map(|(level, bin)| &mut level[bin])
    }

    /// A packet has come: full bins grow more severe, empty ones milder. The least of packets and probabilities.
    fn learn(&mut self, hash: u32, config: &Config) -> (u16, u16) {
        let saturated = |step: u32| u16::try_from(step).unwrap_or(CERTAIN);
        let (more, less) = (saturated(config.increment), saturated(config.decrement));
        self.of(hash).fold((u16::MAX, CERTAIN), |(packets, probability), bin| {
            if bin.packets == 0 {
                bin.probability = bin.probability.saturating_sub(less);
            } else if u32::from(bin.packets) >= config.target {
                bin.probability = bin.probability.saturating_add(more);
            }
            (packets.min(bin.packets), probability.min(bin.probability))
        })
    }

    fn enter(&mut self, hash: u32) {
        self.of(hash).for_each(|bin| bin.packets = bin.packets.saturating_add(1));
    }

    fn leave(&mut self, hash: u32) {
        self.of(hash).for_each(|bin| bin.packets = bin.packets.saturating_sub(1));
    }
}

/// Decision about a packet of a responsive flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    /// Mark it, or drop what cannot be marked.
    Mark,
    Drop,
}

/// By a number drawn from all of 16 bits.
fn fate(drawn: u16, probability: u16) -> Fate {
    let beyond = u32::from(probability.saturating_sub(CERTAIN / 2));
    if drawn >= probability {
        Fate::Pass
    } else if u32::from(drawn) < 2 * beyond {
        Fate::Drop
    } else {
        Fate::Mark
    }
}

/// Rate limit of all inelastic flows together.
#[derive(Clone, Copy, Debug)]
struct PenaltyBox {
    tokens: u64,
    /// Time of the last token update, ticks.
    since: u64,
}

impl PenaltyBox {
    fn full(config: &Config, now: Instant) -> Self {
        Self { tokens: config.penalty_burst.into(), since: jiffies(now) }
    }

    /// True when a packet may pass (`sfb_rate_limit` returns the opposite).
    fn admits(&mut self, config: &Config, now: Instant) -> bool {
        if config.penalty_rate == 0 || config.penalty_burst == 0 {
            return false;
        }
        if self.tokens == 0 {
            let age = jiffies(now).saturating_sub(self.since).min(10 * HZ);
            let earned = age * u64::from(config.penalty_rate) / HZ;
            self.tokens = earned.min(config.penalty_burst.into());
            self.since = jiffies(now);
        }
        let admits = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        admits
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfb {
    config: Config,
    sets: [Bins; 2],
    /// Index of the set that decides.
    active: usize,
    /// Since when, in ticks.
    since: u64,
    /// True when the other set is warming up.
    warming: bool,
    penalty: PenaltyBox,
    /// Each with its hash in the sets that count it.
    queue: VecDeque<(Item, [Option<u32>; 2])>,
    bytes: u64,
    stream: Stream,
}

impl Sfb {
    fn new(config: Config, mut stream: Stream) -> Self {
        Self {
            sets: [Bins::new(&mut stream), Bins::new(&mut stream)],
            active: 0,
            since: 0,
            warming: false,
            penalty: PenaltyBox::full(&config, Instant::ZERO),
            queue: VecDeque::new(),
            bytes: 0,
            stream,
            config,
        }
    }

    /// Lets the sets take turns, and the next one learn before.
    fn take_turns(&mut self, now: Instant) {
        let (rehash, warmup) = (jiffies_of(self.config.rehash), jiffies_of(self.config.warmup));
        if rehash == 0 {
            return;
        }
        let (now, end) = (jiffies(now), self.since + rehash);
        if now > end {
            self.sets[self.active].hash = FlowHash::new(&mut self.stream);
            self.active ^= 1;
            (self.since, self.warming) = (now, false);
        } else if warmup > 0 && now + warmup > end {
            self.warming = true;
        }
    }

    /// Why a packet is not admitted; else its hashes, and whether it was marked.
    fn judge<S: Sink>(
        &mut self,
        item: &mut Item,
        now: Instant,
        sink: &mut S,
    ) -> Result<([Option<u32>; 2], bool), DropReason> {
        let (active, other) = (self.active, self.active ^ 1);
        let (mut hashes, mut marked) = ([None; 2], false);
        let hash = self.sets[active].hash(item.flow);
        hashes[active] = Some(hash);
        let (packets, probability) = self.sets[active].learn(hash, &self.config);
        if u32::from(packets) >= self.config.max {
            return Err(DropReason::Overlimit);
        }
        if probability == CERTAIN {
            if self.warming {
                let hash = self.sets[other].hash(item.flow);
                hashes[other] = Some(hash);
                let _ = self.sets[other].learn(hash, &self.config);
            }
            if !self.penalty.admits(&self.config, now) {
                return Err(DropReason::Aqm);
            }
        } else {
            let random = self.stream.below(1 << 16) as u16;
            marked = match fate(random, probability) {
                Fate::Pass => false,
                Fate::Mark if item.mark(sink) => true,
                Fate::Mark | Fate::Drop => return Err(DropReason::Aqm),
            };
        }
        Ok((hashes, marked))
    }
}

impl Qdisc for Sfb {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        let judgement = if self.queue.len() >= self.config.limit as usize {
            Err(DropReason::Overlimit)
        } else {
            self.take_turns(now);
            self.judge(&mut item, now, sink)
        };
        match judgement {
            Err(reason) => {
                sink.dropped(item, reason);
                Verdict::Dropped(reason)
            }
            Ok((hashes, marked)) => {
                for (set, hash) in self.sets.iter_mut().zip(hashes) {
                    hash.into_iter().for_each(|hash| set.enter(hash));
                }
                self.bytes += u64::from(item.len);
                self.queue.push_back((item, hashes));
                if marked { Verdict::Marked } else { Verdict::Queued }
            }
        }
    }

    fn dequeue<S: Sink>(&mut self, _now: Instant, _sink: &mut S) -> Dequeue {
        let Some((item, hashes)) = self.queue.pop_front() else { return Dequeue::Empty };
        for (set, hash) in self.sets.iter_mut().zip(hashes) {
            hash.into_iter().for_each(|hash| set.leave(hash));
        }
        self.bytes -= u64::from(item.len);
        Dequeue::Packet(item)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queue.len() as u32, bytes: self.bytes }
    }

    fn head(&self) -> Option<Item> {
        self.queue.front().map(|(item, _)| *item)
    }

    /// `sfb_change`: the queue is purged, and everything begins afresh.
    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        let Change::LimitPackets(limit) = change else { return };
        for (item, _) in self.queue.drain(..) {
            sink.dropped(item, DropReason::Overlimit);
        }
        let config = Config { limit, ..self.config };
        let afresh = Self::new(config, self.stream.clone());
        let penalty = PenaltyBox::full(&config, now);
        *self = Self { since: jiffies(now), penalty, ..afresh };
    }
}

#[cfg(test)]
mod tests;
