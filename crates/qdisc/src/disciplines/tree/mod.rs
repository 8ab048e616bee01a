//! A tree of classes with filters, as tc's commands build it on a router's interface.
//!
//! ```text
//!            filters of the discipline, then of the inner class they lead to ...
//! packet ──▶ class that is a leaf ──▶ its discipline (which may be a tree of its own)
//!            no filter, no class: the default class; htb sends past all classes, prio and ets look at priomap, hfsc and drr drop
//! ```
//!
//! The schedulers: htb ([`htb`]), hfsc ([`hfsc`]), drr and the bands of ets ([`rounds`]), prio's strict bands, and disciplines with
//! one class (netem, tbf) that have another discipline in them.
//!
//! Left out: changes of classes and filters during a run, `skb->priority` that is a class.

mod actions;
mod check;
mod class_words;
mod condition_words;
mod curve;
mod facts;
mod filter;
mod filter_content;
mod filter_words;
mod flower_words;
mod hfsc;
mod htb;
pub mod kernel;
mod leaves;
mod parse;
mod print;
#[cfg(any(test, feature = "arbitrary"))]
mod random;
mod rounds;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod types;
mod u32_tables;
mod u32_words;
mod watched;
mod words;

use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::PRIORITIES;
use crate::disciplines::fifo::Fifo;
use crate::disciplines::netem::Netem;
use crate::disciplines::tbf;
use dragstrip_units::Instant;
use filter::{Answer, Filters};
use leaves::Leaves;
pub(crate) use parse::{has_added_classes, plain};
use rounds::Rounds;
use std::collections::BTreeMap;
pub use types::{Key, TreeSpec};
use watched::Watched;

/// Levels of htb's classes (`TC_HTB_MAXDEPTH`).
pub(crate) const HTB_LEVELS: usize = 8;

/// Scheduler of the root discipline: it chooses the class that sends next.
#[derive(Clone, Debug)]
enum Scheduler {
    Htb {
        hierarchy: htb::Hierarchy,
        /// Packets of no class, which pass unshaped and first.
        direct: Fifo,
    },
    Hfsc(hfsc::Hierarchy),
    Drr(Rounds),
    Prio,
    Ets {
        /// Bands in front that are strict.
        strict: usize,
        rounds: Rounds,
    },
    /// Packets that are due go on into the class.
    Netem(Netem),
    Tbf(tbf::Shaper),
}

/// Destination of a packet that is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Leaf(usize),
    Direct,
    Nowhere,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Tree {
    handle: u16,
    scheduler: Scheduler,
    leaves: Leaves,
    /// Number of each class by its minor number.
    numbers: BTreeMap<u16, usize>,
    /// Depth of each class, from 0 on.
    depths: Vec<usize>,
    filters: Filters,
    /// Of inner classes.
    inner_filters: Vec<Filters>,
    /// Minor number of the class of what no filter leads elsewhere.
    default: Option<u16>,
    /// The class of each priority, of prio and ets.
    priomap: Option<[u32; PRIORITIES]>,
}

impl Tree {
    fn class(&self, minor: u16) -> Option<usize> {
        self.numbers.get(&minor).copied()
    }

    /// `htb_classify`, `hfsc_classify`, `drr_classify`, `prio_classify`, `ets_classify`.
    fn destination<S: Sink>(&mut self, item: &Item, now: Instant, sink: &S) -> Destination {
        if let Some(priomap) = self.priomap {
            return self.band(item, &priomap, now, sink);
        }
        let mut at = None;
        loop {
            let filters = match at {
                None => &mut self.filters,
                Some(class) => &mut self.inner_filters[class],
            };
            if filters.is_empty() {
                break;
            }
            let (major, minor) = match filters.classify(item, self.handle, now, sink) {
                Answer::Drop => return Destination::Nowhere,
                Answer::None => break,
                Answer::Class(major, minor) => (major, minor),
            };
            if major != self.handle {
                break;
            }
            if minor == 0 && matches!(self.scheduler, Scheduler::Htb { .. }) {
                return Destination::Direct;
            }
            let Some(class) = self.class(minor) else { break };
            if self.leaves.has(class) {
                return Destination::Leaf(class);
            }
            // A filter of a class leads downwards only; htb follows it anywhere, which a loop would never end.
            if at.is_some_and(|before: usize| self.depths[class] <= self.depths[before]) {
                break;
            }
            at = Some(class);
        }
        let default = self.default.and_then(|minor| self.class(minor));
        match (default.filter(|&class| self.leaves.has(class)), &self.scheduler) {
            (Some(class), _) => Destination::Leaf(class),
            (None, Scheduler::Htb { .. }) => Destination::Direct,
            (None, _) => Destination::Nowhere,
        }
    }

    /// The band: the minor number of a filter's class less one, whatever its major, or that of the priority.
    fn band<S: Sink>(
        &mut self,
        item: &Item,
        priomap: &[u32; PRIORITIES],
        now: Instant,
        sink: &S,
    ) -> Destination {
        let of_priority = |priority: u8| priomap[usize::from(priority) % PRIORITIES] as usize;
        let band = match self.filters.classify(item, self.handle, now, sink) {
            Answer::Drop => return Destination::Nowhere,
            Answer::None => of_priority(item.priority()),
            Answer::Class(_, minor) => usize::from(minor).wrapping_sub(1),
        };
        let band = if self.leaves.has(band) { band } else { of_priority(0) };
        if self.leaves.has(band) { Destination::Leaf(band) } else { Destination::Nowhere }
    }

    /// A leaf may have packets from now on. Returns the verdict on `item`: hfsc looks at the head of a leaf at once, and a leaf that
    /// decides when it is looked at may drop or mark the packet that it has just taken.
    fn activate<S: Sink>(
        &mut self,
        class: usize,
        item: &Item,
        verdict: Verdict,
        now: Instant,
        sink: &mut S,
    ) -> Verdict {
        if self.leaves.packets(class) == 0 {
            return verdict;
        }
        match &mut self.scheduler {
            Scheduler::Htb { hierarchy, .. } => hierarchy.activate(class),
            Scheduler::Hfsc(hierarchy) => {
                let mut watched = Watched { sink, packet: item.packet, verdict };
                hierarchy.activate(class, item.len, &mut self.leaves, now, &mut watched);
                return watched.verdict;
            }
            Scheduler::Drr(rounds) | Scheduler::Ets { rounds, .. } => rounds.activate(class),
            Scheduler::Prio | Scheduler::Netem(_) | Scheduler::Tbf(_) => {}
        }
        verdict
    }
}

/// Asks classes in their order; who gives nothing yet is passed over.
fn first<S: Sink>(
    leaves: &mut Leaves,
    classes: impl Iterator<Item = usize>,
    now: Instant,
    sink: &mut S,
) -> Dequeue {
    let mut wake = Dequeue::Empty;
    for class in classes {
        match leaves.dequeue(class, now, sink) {
            Dequeue::Packet(item) => return Dequeue::Packet(item),
            Dequeue::Wait(until) => wake = sooner(wake, until),
            Dequeue::Empty => {}
        }
    }
    wake
}

/// Waits for the earlier of both.
fn sooner(answer: Dequeue, until: Instant) -> Dequeue {
    match answer {
        Dequeue::Wait(other) => Dequeue::Wait(other.min(until)),
        Dequeue::Packet(_) => answer,
        Dequeue::Empty => Dequeue::Wait(until),
    }
}

/// A netem with a discipline in it (`netem_dequeue`): what is due moves into it, and leaves when it says so.
fn from_behind<S: Sink>(
    netem: &mut Netem,
    leaves: &mut Leaves,
    now: Instant,
    sink: &mut S,
) -> Dequeue {
    loop {
        match netem.dequeue(now, sink) {
            Dequeue::Packet(item) => {
                let _ = leaves.enqueue(0, item, now, sink);
            }
            Dequeue::Wait(until) => {
                return match leaves.dequeue(0, now, sink) {
                    Dequeue::Packet(item) => Dequeue::Packet(item),
                    answer @ (Dequeue::Wait(_) | Dequeue::Empty) => sooner(answer, until),
                };
            }
            Dequeue::Empty => return leaves.dequeue(0, now, sink),
        }
    }
}

/// A token bucket with a discipline in it (`tbf_dequeue`).
fn paid<S: Sink>(
    shaper: &mut tbf::Shaper,
    leaves: &mut Leaves,
    now: Instant,
    sink: &mut S,
) -> Dequeue {
    let Dequeue::Packet(head) = leaves.peek(0, now, sink) else {
        return leaves.dequeue(0, now, sink);
    };
    let ready = shaper.ready(head.len);
    if ready > now {
        return Dequeue::Wait(ready);
    }
    let answer = leaves.dequeue(0, now, sink);
    if let Dequeue::Packet(item) = answer {
        shaper.charge(item.len, now);
    }
    answer
}

impl Qdisc for Tree {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        match &mut self.scheduler {
            Scheduler::Netem(netem) => return netem.enqueue(item, now, sink),
            Scheduler::Tbf(shaper) if !shaper.passes(item.len) => {
                sink.dropped(item, DropReason::Overlimit);
                return Verdict::Dropped(DropReason::Overlimit);
            }
            Scheduler::Tbf(_) => return self.leaves.enqueue(0, item, now, sink),
            Scheduler::Htb { .. }
            | Scheduler::Hfsc(_)
            | Scheduler::Drr(_)
            | Scheduler::Prio
            | Scheduler::Ets { .. } => {}
        }
        match self.destination(&item, now, sink) {
            Destination::Leaf(class) => {
                let verdict = self.leaves.enqueue(class, item, now, sink);
                self.activate(class, &item, verdict, now, sink)
            }
            Destination::Direct => {
                let Scheduler::Htb { direct, .. } = &mut self.scheduler else {
                    unreachable!("only htb has a direct queue")
                };
                direct.enqueue(item, now, sink)
            }
            Destination::Nowhere => {
                sink.dropped(item, DropReason::Unclassified);
                Verdict::Dropped(DropReason::Unclassified)
            }
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let leaves = &mut self.leaves;
        match &mut self.scheduler {
            Scheduler::Htb { hierarchy, direct } => match direct.dequeue(now, sink) {
                Dequeue::Empty => hierarchy.dequeue(leaves, now, sink),
                answer @ (Dequeue::Packet(_) | Dequeue::Wait(_)) => answer,
            },
            Scheduler::Hfsc(hierarchy) => hierarchy.dequeue(leaves, now, sink),
            Scheduler::Drr(rounds) => rounds.dequeue(leaves, now, sink),
            Scheduler::Prio => first(leaves, 0..self.depths.len(), now, sink),
            Scheduler::Ets { strict, rounds } => match first(leaves, 0..*strict, now, sink) {
                Dequeue::Packet(item) => Dequeue::Packet(item),
                Dequeue::Empty => rounds.dequeue(leaves, now, sink),
                Dequeue::Wait(until) => match rounds.dequeue(leaves, now, sink) {
                    Dequeue::Packet(item) => Dequeue::Packet(item),
                    answer @ (Dequeue::Wait(_) | Dequeue::Empty) => sooner(answer, until),
                },
            },
            Scheduler::Netem(netem) => from_behind(netem, leaves, now, sink),
            Scheduler::Tbf(shaper) => paid(shaper, leaves, now, sink),
        }
    }

    fn backlog(&self) -> Backlog {
        let Backlog { bytes, packets } = self.leaves.total();
        let other = match &self.scheduler {
            Scheduler::Htb { direct, .. } => direct.backlog(),
            Scheduler::Netem(netem) => netem.backlog(),
            Scheduler::Hfsc(_)
            | Scheduler::Drr(_)
            | Scheduler::Prio
            | Scheduler::Ets { .. }
            | Scheduler::Tbf(_) => Backlog::default(),
        };
        Backlog { bytes: bytes + other.bytes, packets: packets + other.packets }
    }
}
