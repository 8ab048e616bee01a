//! Hierarchical token buckets over classes (`sch_htb.c`, no hysteresis).
//!
//! ```text
//!            tokens of the rate   tokens of the ceiling
//! can send        >= 0                  >= 0             stands in the row of its level
//! may borrow      < 0                   >= 0             stands in the feed of its parent
//! cannot send     any                   < 0              waits until the ceiling's tokens are back
//! ```
//!
//! A leaf that has packets and may borrow makes its parent stand for it, and so on up to a class that can send. Rows are asked
//! from the leaves' level upwards, within a level by priority, within a priority by deficit round robin: a leaf has a deficit
//! for each level, and the pointer that leads to it moves on when the deficit is used up. Whoever lends is charged with all
//! classes above it; classes below it, down to the leaf, pay at their ceilings only.
//!
//! Rows and feeds are in the order of class numbers. When a class leaves a feed while the pointer stands on it, its number
//! is kept, and the round goes on from there (`last_ptr_id`); the pointer of a row moves to the next class instead.
//!
//! Events (`htb_do_events`) of a level are looked at only when the levels below had no packet.

use super::HTB_LEVELS;
use super::leaves::Leaves;
use crate::contract::{Dequeue, Item, Sink};
use crate::token_rate::{Framing, TokenRate, bucket_in_ticks};
use dragstrip_units::{Duration, Instant, Rate};

/// Priorities (`TC_HTB_NUMPRIO`).
const PRIORITIES: usize = 8;
/// `mbuffer`: most time that counts as elapsed, and most debt.
const MBUFFER_NS: i64 = 60_000_000_000;
/// Time until a level without events is looked at again, and the longest sleep of the watchdog (`htb_dequeue`).
const QUIET_NS: u64 = 1_000_000_000;
const SLEEP_NS: u64 = 5_000_000_000;

/// A class as it is configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    /// The number of its parent; none: a class of the root.
    pub parent: Option<usize>,
    /// It has no classes below it.
    pub is_leaf: bool,
    pub rate: Rate,
    pub ceil: Rate,
    pub burst_bytes: u64,
    pub cburst_bytes: u64,
    pub quantum_bytes: u32,
    pub priority: u8,
    pub framing: Framing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    CannotSend,
    MayBorrow,
    CanSend,
}

/// Classes that stand for packets of one priority, in the order of their numbers, and the one whose turn it is.
#[derive(Clone, Debug, Default)]
struct Ring {
    members: Vec<usize>,
    pointer: Option<usize>,
    /// The number of the class that left while the pointer stood on it.
    departed: Option<usize>,
}

impl Ring {
    fn insert(&mut self, class: usize) {
        if let Err(at) = self.members.binary_search(&class) {
            self.members.insert(at, class);
        }
    }

    fn remove(&mut self, class: usize) {
        if let Ok(at) = self.members.binary_search(&class) {
            self.members.remove(at);
        }
    }

    /// The first member that is not before `class`.
    fn from(&self, class: usize) -> Option<usize> {
        self.members.get(self.members.partition_point(|&member| member < class)).copied()
    }

    fn advance(&mut self) {
        self.pointer = self.pointer.and_then(|class| self.from(class + 1));
    }
}

/// Place of a ring: the row of a level, or the feed of a class.
#[derive(Clone, Copy, Debug)]
enum Place {
    Row(usize),
    Feed(usize),
}

#[derive(Clone, Debug)]
struct Class {
    parent: Option<usize>,
    level: usize,
    is_leaf: bool,
    priority: usize,
    quantum: i64,
    rate: TokenRate,
    ceil: TokenRate,
    buffer_ns: i64,
    cbuffer_ns: i64,
    tokens_ns: i64,
    ctokens_ns: i64,
    checkpoint: Instant,
    mode: Mode,
    /// Priorities, as bits, for which it stands somewhere.
    activity: u8,
    /// Deficits of a leaf, by the level that lends to it.
    deficits: [i64; HTB_LEVELS],
    /// Rings of an inner class, by priority: the classes below that borrow from it.
    feeds: Vec<Ring>,
}

impl Class {
    fn elapsed_ns(&self, now: Instant) -> i64 {
        now.since(self.checkpoint).as_nanos().min(MBUFFER_NS as u64) as i64
    }

    /// `htb_class_mode`: the mode after so much time, and for how long it lasts.
    fn mode_after(&self, elapsed_ns: i64) -> (Mode, i64) {
        let ceiling = self.ctokens_ns + elapsed_ns;
        if ceiling < 0 {
            return (Mode::CannotSend, -ceiling);
        }
        let rate = self.tokens_ns + elapsed_ns;
        if rate >= 0 { (Mode::CanSend, elapsed_ns) } else { (Mode::MayBorrow, -rate) }
    }
}

/// The classes of one htb.
#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    classes: Vec<Class>,
    rows: Vec<[Ring; PRIORITIES]>,
    /// Priorities, as bits, of which a row has classes.
    row_masks: [u8; HTB_LEVELS],
    /// Classes that wait for tokens, by level: the earliest is the last.
    waiting: Vec<Vec<(Instant, usize)>>,
    next_events: [Instant; HTB_LEVELS],
}

/// Level of an inner class so many classes below the root.
const fn inner_level(depth: usize) -> usize {
    HTB_LEVELS - 1 - depth
}

fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(lowest)
    })
}

impl Hierarchy {
    /// Classes as configured, each behind its parent; buckets are full.
    pub(super) fn new(configs: &[Config]) -> Self {
        let mut depths = Vec::with_capacity(configs.len());
        let classes = configs.iter().map(|config| {
            let depth = config.parent.map_or(0, |parent: usize| depths[parent] + 1);
            depths.push(depth);
            let buffer_ns = bucket_in_ticks(config.burst_bytes, config.rate);
            let cbuffer_ns = bucket_in_ticks(config.cburst_bytes, config.ceil);
            Class {
                parent: config.parent,
                level: if config.is_leaf { 0 } else { inner_level(depth) },
                is_leaf: config.is_leaf,
                priority: usize::from(config.priority) % PRIORITIES,
                quantum: i64::from(config.quantum_bytes),
                rate: TokenRate::new(config.rate, config.framing),
                ceil: TokenRate::new(config.ceil, config.framing),
                buffer_ns,
                cbuffer_ns,
                tokens_ns: buffer_ns,
                ctokens_ns: cbuffer_ns,
                checkpoint: Instant::ZERO,
                mode: Mode::CanSend,
                activity: 0,
                deficits: [0; HTB_LEVELS],
                feeds: if config.is_leaf { Vec::new() } else { vec![Ring::default(); PRIORITIES] },
            }
        });
        Self {
            classes: classes.collect(),
            rows: vec![Default::default(); HTB_LEVELS],
            row_masks: [0; HTB_LEVELS],
            waiting: vec![Vec::new(); HTB_LEVELS],
            next_events: [Instant::ZERO; HTB_LEVELS],
        }
    }

    fn ring(&mut self, place: Place, priority: usize) -> &mut Ring {
        match place {
            Place::Row(level) => &mut self.rows[level][priority],
            Place::Feed(class) => &mut self.classes[class].feeds[priority],
        }
    }

    /// `htb_activate`: a leaf has packets.
    pub(super) fn activate(&mut self, class: usize) {
        if self.classes[class].activity == 0 {
            self.classes[class].activity = 1 << self.classes[class].priority;
            self.stand(class);
        }
    }

    /// `htb_deactivate`.
    fn deactivate(&mut self, class: usize) {
        self.step_down(class);
        self.classes[class].activity = 0;
    }

    /// `htb_activate_prios`: stands where its mode says, and its parents for it.
    fn stand(&mut self, mut class: usize) {
        let mut mask = self.classes[class].activity;
        while self.classes[class].mode == Mode::MayBorrow
            && mask != 0
            && let Some(parent) = self.classes[class].parent
        {
            for priority in bits(mask) {
                let feed = &mut self.classes[parent].feeds[priority];
                if !feed.members.is_empty() {
                    mask &= !(1 << priority);
                }
                feed.insert(class);
            }
            self.classes[parent].activity |= mask;
            class = parent;
        }
        if self.classes[class].mode == Mode::CanSend && mask != 0 {
            let level = self.classes[class].level;
            self.row_masks[level] |= mask;
            for priority in bits(mask) {
                self.rows[level][priority].insert(class);
            }
        }
    }

    /// `htb_deactivate_prios`: stands nowhere any more, and parents only as far as others need them.
    fn step_down(&mut self, mut class: usize) {
        let mut mask = self.classes[class].activity;
        while self.classes[class].mode == Mode::MayBorrow
            && mask != 0
            && let Some(parent) = self.classes[class].parent
        {
            let mut emptied = 0;
            for priority in bits(mask) {
                let feed = &mut self.classes[parent].feeds[priority];
                if feed.pointer == Some(class) {
                    feed.departed = Some(class);
                    feed.pointer = None;
                }
                feed.remove(class);
                emptied |= u8::from(feed.members.is_empty()) << priority;
            }
            mask = emptied;
            self.classes[parent].activity &= !mask;
            class = parent;
        }
        if self.classes[class].mode == Mode::CanSend && mask != 0 {
            let level = self.classes[class].level;
            for priority in bits(mask) {
                let row = &mut self.rows[level][priority];
                if row.pointer == Some(class) {
                    row.advance();
                }
                row.remove(class);
                if row.members.is_empty() {
                    self.row_masks[level] &= !(1 << priority);
                }
            }
        }
    }

    /// `htb_change_class_mode`: the mode after so much time; the answer is for how long it lasts.
    fn change_mode(&mut self, class: usize, elapsed_ns: i64) -> i64 {
        let (mode, lasts_ns) = self.classes[class].mode_after(elapsed_ns);
        if mode == self.classes[class].mode {
            return lasts_ns;
        }
        if self.classes[class].activity == 0 {
            self.classes[class].mode = mode;
            return lasts_ns;
        }
        if self.classes[class].mode != Mode::CannotSend {
            self.step_down(class);
        }
        self.classes[class].mode = mode;
        if mode != Mode::CannotSend {
            self.stand(class);
        }
        lasts_ns
    }

    /// `htb_add_to_wait_tree`.
    fn wait(&mut self, class: usize, now: Instant, delay_ns: i64) {
        let at = now + Duration::from_nanos(delay_ns.max(1) as u64);
        let level = self.classes[class].level;
        self.next_events[level] = self.next_events[level].min(at);
        let waiting = &mut self.waiting[level];
        let place = waiting.partition_point(|&(other, _)| other > at);
        waiting.insert(place, (at, class));
    }

    /// `htb_do_events`: the earliest event that is still to come.
    fn do_events(&mut self, level: usize, now: Instant) -> Option<Instant> {
        while let Some(&(at, class)) = self.waiting[level].last() {
            if at > now {
                return Some(at);
            }
            let _ = self.waiting[level].pop();
            let elapsed_ns = self.classes[class].elapsed_ns(now);
            let lasts_ns = self.change_mode(class, elapsed_ns);
            if self.classes[class].mode != Mode::CanSend {
                self.wait(class, now, lasts_ns);
            }
        }
        None
    }

    /// `htb_lookup_leaf`: the leaf whose turn it is.
    fn leaf(&mut self, level: usize, priority: usize) -> Option<usize> {
        let mut path = [Place::Row(level); HTB_LEVELS + 1];
        let mut depth = 0;
        loop {
            let ring = self.ring(path[depth], priority);
            if ring.pointer.is_none()
                && let Some(departed) = ring.departed
            {
                ring.pointer = ring.from(departed);
            }
            ring.departed = None;
            let Some(class) = ring.pointer else {
                // The end of the round: it begins again, and above it is the next one's turn.
                ring.pointer = ring.members.first().copied();
                let _ = ring.pointer?;
                if depth > 0 {
                    depth -= 1;
                    self.ring(path[depth], priority).advance();
                }
                continue;
            };
            if self.classes[class].is_leaf {
                return Some(class);
            }
            depth += 1;
            path[depth] = Place::Feed(class);
        }
    }

    /// The pointer that leads to a leaf moves on.
    fn advance(&mut self, leaf: usize, level: usize, priority: usize) {
        let place = match self.classes[leaf].parent {
            Some(parent) if level > 0 => Place::Feed(parent),
            Some(_) | None => Place::Row(0),
        };
        self.ring(place, priority).advance();
    }

    /// `htb_dequeue_tree`; `wake` becomes the earliest instant at which a leaf asks to be asked again.
    fn serve<S: Sink>(
        &mut self,
        (level, priority): (usize, usize),
        leaves: &mut Leaves,
        now: Instant,
        wake: &mut Instant,
        sink: &mut S,
    ) -> Option<Item> {
        let mut start = self.leaf(level, priority)?;
        let mut class = start;
        let item = loop {
            while leaves.packets(class) == 0 {
                self.deactivate(class);
                if self.row_masks[level] & 1 << priority == 0 {
                    return None;
                }
                let next = self.leaf(level, priority)?;
                if class == start {
                    start = next;
                }
                class = next;
            }
            match leaves.dequeue(class, now, sink) {
                Dequeue::Packet(item) => break item,
                Dequeue::Wait(until) => *wake = (*wake).min(until),
                Dequeue::Empty => {}
            }
            self.advance(class, level, priority);
            class = self.leaf(level, priority)?;
            if class == start {
                return None;
            }
        };
        let quantum = self.classes[class].quantum;
        let deficit = &mut self.classes[class].deficits[level];
        *deficit -= i64::from(item.len);
        if *deficit < 0 {
            *deficit += quantum;
            self.advance(class, level, priority);
        }
        if leaves.packets(class) == 0 {
            self.deactivate(class);
        }
        self.charge(class, level, item.len, now);
        Some(item)
    }

    /// `htb_charge_class`: the leaf and all above it, of which the one at `level` has lent.
    fn charge(&mut self, leaf: usize, level: usize, len: u32, now: Instant) {
        let mut at = Some(leaf);
        while let Some(class) = at {
            let charged = &mut self.classes[class];
            let elapsed_ns = charged.elapsed_ns(now);
            let pay = |tokens: i64, buffer: i64, cost: i64| {
                ((tokens + elapsed_ns).min(buffer) - cost).max(1 - MBUFFER_NS)
            };
            charged.tokens_ns = if charged.level >= level {
                pay(charged.tokens_ns, charged.buffer_ns, charged.rate.cost_ns(len))
            } else {
                charged.tokens_ns + elapsed_ns
            };
            charged.ctokens_ns =
                pay(charged.ctokens_ns, charged.cbuffer_ns, charged.ceil.cost_ns(len));
            charged.checkpoint = now;
            let (before, level_of, parent) = (charged.mode, charged.level, charged.parent);
            let lasts_ns = self.change_mode(class, 0);
            let mode = self.classes[class].mode;
            if mode != before {
                if before != Mode::CanSend {
                    self.waiting[level_of].retain(|&(_, waits)| waits != class);
                }
                if mode != Mode::CanSend {
                    self.wait(class, now, lasts_ns);
                }
            }
            at = parent;
        }
    }

    /// `htb_dequeue`.
    pub(super) fn dequeue<S: Sink>(
        &mut self,
        leaves: &mut Leaves,
        now: Instant,
        sink: &mut S,
    ) -> Dequeue {
        if leaves.total().packets == 0 {
            return Dequeue::Empty;
        }
        let mut wake = now + Duration::from_nanos(SLEEP_NS);
        for level in 0..HTB_LEVELS {
            if now >= self.next_events[level] {
                let quiet = now + Duration::from_nanos(QUIET_NS);
                self.next_events[level] = quiet;
                self.next_events[level] = self.do_events(level, now).unwrap_or(quiet);
            }
            wake = wake.min(self.next_events[level]);
            for priority in bits(self.row_masks[level]) {
                if let Some(item) = self.serve((level, priority), leaves, now, &mut wake, sink) {
                    return Dequeue::Packet(item);
                }
            }
        }
        if leaves.total().packets == 0 {
            return Dequeue::Empty;
        }
        Dequeue::Wait(wake.max(now + Duration::from_nanos(1)))
    }
}
