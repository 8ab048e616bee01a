//! Hierarchical fair service curves (`sch_hfsc.c`; Stoica, Zhang, Ng: A Hierarchical Fair Service Curve Algorithm, SIGCOMM
//! 1997).
//!
//! ```text
//! is a leaf eligible by its real-time curve? ──yes──▶ the one with the earliest deadline
//!        │ no
//! from the root down: the child with the least virtual time that its upper limit admits
//!        │ none
//! wait for the earliest eligible time or the earliest fit time
//! ```
//!
//! Real-time curves belong to leaves, and what they promise passes whatever the limits above. Link-share curves divide among
//! siblings what passes; upper limits hold a class back. All three begin anew when a class becomes active, never above
//! where they were. Virtual times of siblings are kept together: who becomes active starts at the middle of those that
//! are. An inner class without a link-share curve takes its real-time curve for one, as Linux does since 6.6.

use super::curve::{Curve, Running};
use super::leaves::Leaves;
use crate::contract::{Dequeue, Sink};
use crate::netlink::TICK_NS;
use dragstrip_units::{Duration, Instant};

/// Time to sleep where nothing is due.
const SLEEP_NS: u64 = 1_000_000_000;

/// A class as it is configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    /// The number of its parent; none: a class of the root.
    pub parent: Option<usize>,
    pub is_leaf: bool,
    pub real_time: Option<Curve>,
    pub link_share: Option<Curve>,
    pub upper_limit: Option<Curve>,
}

#[derive(Clone, Debug, Default)]
struct Class {
    /// Its place in the list; the root has none.
    parent: Option<usize>,
    is_leaf: bool,
    rsc: Option<Curve>,
    fsc: Option<Curve>,
    usc: Option<Curve>,
    deadline: Running,
    eligible: Running,
    virtual_: Running,
    ulimit: Running,
    /// Bytes sent by the real-time criterion, and all.
    cumul: u64,
    total: u64,
    /// Eligible time and deadline.
    e: u64,
    d: u64,
    vt: u64,
    /// Fit time: its own, the least of its children, and the later of both.
    myf: u64,
    cfmin: u64,
    f: u64,
    vtadj: u64,
    cvtmin: u64,
    cvtoff: u64,
    vtperiod: u32,
    parentperiod: u32,
    /// Active children, or whether it has packets.
    nactive: u32,
    /// Active children by virtual time and by fit time; the later comer of two alike stands behind.
    by_vt: Vec<usize>,
    by_fit: Vec<usize>,
}

/// The classes of one hfsc; the root is the last.
#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    classes: Vec<Class>,
    root: usize,
    /// Leaves with packets and a real-time curve, by eligible time.
    by_eligible: Vec<usize>,
}

/// Puts `class` behind all whose key is not greater.
fn insert(list: &mut Vec<usize>, class: usize, key: impl Fn(usize) -> u64) {
    let own_key = key(class);
    let at = list.partition_point(|&other| key(other) <= own_key);
    list.insert(at, class);
}

fn remove(list: &mut Vec<usize>, class: usize) {
    list.retain(|&other| other != class);
}

impl Hierarchy {
    pub(super) fn new(configs: &[Config]) -> Self {
        let root = configs.len();
        let mut classes: Vec<Class> = configs
            .iter()
            .map(|config| {
                let real_time = config.real_time.filter(|_| config.is_leaf);
                let link_share = config.link_share.or(config.real_time.filter(|_| !config.is_leaf));
                let running = |curve: Option<Curve>| Running::new(curve.unwrap_or_default());
                let eligible = running(real_time);
                Class {
                    parent: Some(config.parent.unwrap_or(root)),
                    is_leaf: config.is_leaf,
                    rsc: real_time,
                    fsc: link_share,
                    usc: config.upper_limit,
                    deadline: eligible,
                    eligible,
                    virtual_: running(link_share),
                    ulimit: running(config.upper_limit),
                    ..Class::default()
                }
            })
            .collect();
        classes.push(Class::default());
        Self { classes, root, by_eligible: Vec::new() }
    }

    const fn ticks(now: Instant) -> u64 {
        now.as_nanos() / TICK_NS
    }

    /// A leaf has packets, of which the first has this length: both halves of `hfsc_enqueue`.
    pub(super) fn activate<S: Sink>(
        &mut self,
        class: usize,
        len: u32,
        leaves: &mut Leaves,
        now: Instant,
        sink: &mut S,
    ) {
        let state = &self.classes[class];
        if self.by_eligible.contains(&class) || state.nactive > 0 {
            return;
        }
        let (has_rsc, has_fsc) = (state.rsc.is_some(), state.fsc.is_some());
        if has_rsc {
            self.begin_real_time(class, len, now);
        }
        if has_fsc {
            self.begin_link_share(class, now);
        }
        if has_rsc {
            // The kernel takes the head out now, so that nothing can drop it before its deadline.
            let _ = leaves.peek(class, now, sink);
            self.settle(class, leaves);
        }
    }

    /// `init_ed`.
    fn begin_real_time(&mut self, class: usize, len: u32, now: Instant) {
        let state = &mut self.classes[class];
        let Some(rsc) = state.rsc else { return };
        state.deadline.begin(&rsc, Self::ticks(now), state.cumul);
        state.eligible = if rsc.is_convex() { state.deadline.straight() } else { state.deadline };
        self.set_times(class, len);
    }

    /// `update_ed`: eligible time and deadline of the next packet.
    fn set_times(&mut self, class: usize, len: u32) {
        let state = &mut self.classes[class];
        state.e = state.eligible.time_of(state.cumul);
        state.d = state.deadline.time_of(state.cumul + u64::from(len));
        remove(&mut self.by_eligible, class);
        let classes = &self.classes;
        insert(&mut self.by_eligible, class, |other| classes[other].e);
    }

    /// `update_d`: of what passed by link share the deadline alone changes.
    fn set_deadline(&mut self, class: usize, len: u32) {
        let state = &mut self.classes[class];
        state.d = state.deadline.time_of(state.cumul + u64::from(len));
    }

    /// `init_vf`: the class becomes active, and those above it that were not.
    fn begin_link_share(&mut self, leaf: usize, now: Instant) {
        let mut class = leaf;
        let mut activates = true;
        while let Some(parent) = self.classes[class].parent {
            if activates {
                self.classes[class].nactive += 1;
                activates = self.classes[class].nactive == 1;
            }
            if activates {
                self.join(class, parent, now);
            }
            self.set_fit(class, parent);
            class = parent;
        }
    }

    fn join(&mut self, class: usize, parent: usize, now: Instant) {
        let greatest = self.classes[parent].by_vt.last().map(|&last| self.classes[last].vt);
        match greatest {
            Some(mut vt) => {
                let above = &self.classes[parent];
                if above.cvtmin != 0 {
                    vt = (above.cvtmin + vt) / 2;
                }
                let period = above.vtperiod;
                let state = &mut self.classes[class];
                if period != state.parentperiod || vt > state.vt {
                    state.vt = vt;
                }
            }
            None => {
                let above = &mut self.classes[parent];
                above.cvtmin = 0;
                let offset = above.cvtoff;
                self.classes[class].vt = offset;
            }
        }
        let (period, others) = (self.classes[parent].vtperiod, self.classes[parent].nactive);
        let state = &mut self.classes[class];
        if let Some(fsc) = state.fsc {
            state.virtual_.begin(&fsc, state.vt, state.total);
        }
        state.vtadj = 0;
        state.vtperiod = state.vtperiod.wrapping_add(1);
        state.parentperiod = if others == 0 { period.wrapping_add(1) } else { period };
        state.f = 0;
        if let Some(usc) = state.usc {
            state.ulimit.begin(&usc, Self::ticks(now), state.total);
            state.myf = state.ulimit.time_of(state.total);
        }
        self.place_by_vt(class, parent);
        self.place_by_fit(class, parent);
    }

    fn place_by_vt(&mut self, class: usize, parent: usize) {
        let mut list = std::mem::take(&mut self.classes[parent].by_vt);
        remove(&mut list, class);
        insert(&mut list, class, |other| self.classes[other].vt);
        self.classes[parent].by_vt = list;
    }

    fn place_by_fit(&mut self, class: usize, parent: usize) {
        let mut list = std::mem::take(&mut self.classes[parent].by_fit);
        remove(&mut list, class);
        insert(&mut list, class, |other| self.classes[other].f);
        self.classes[parent].by_fit = list;
    }

    /// The fit time, of which the parent knows the least of its children's (`update_cfmin`).
    fn set_fit(&mut self, class: usize, parent: usize) {
        let state = &mut self.classes[class];
        let f = state.myf.max(state.cfmin);
        if f != state.f {
            state.f = f;
            self.place_by_fit(class, parent);
        }
        self.set_least_fit(parent);
    }

    fn set_least_fit(&mut self, parent: usize) {
        let least = self.classes[parent].by_fit.first().map_or(0, |&first| self.classes[first].f);
        self.classes[parent].cfmin = least;
    }

    /// `update_vf`: so many bytes have left, all above count them; who has no packets any more becomes passive.
    fn count(&mut self, leaf: usize, len: u32, is_empty: bool) {
        let mut class = leaf;
        let mut leaves_tree = is_empty && self.classes[leaf].fsc.is_some();
        while let Some(parent) = self.classes[class].parent {
            let cvtmin = self.classes[parent].cvtmin;
            let state = &mut self.classes[class];
            state.total += u64::from(len);
            if state.fsc.is_none() || state.nactive == 0 {
                class = parent;
                continue;
            }
            if leaves_tree {
                state.nactive -= 1;
                leaves_tree = state.nactive == 0;
            }
            state.vt = state.virtual_.time_of(state.total).saturating_add(state.vtadj);
            if state.vt < cvtmin {
                state.vtadj += cvtmin - state.vt;
                state.vt = cvtmin;
            }
            let vt = state.vt;
            if leaves_tree {
                let above = &mut self.classes[parent];
                above.cvtoff = above.cvtoff.max(vt);
                remove(&mut above.by_vt, class);
                remove(&mut above.by_fit, class);
                self.set_least_fit(parent);
            } else {
                if state.usc.is_some() {
                    state.myf = state.ulimit.time_of(state.total);
                }
                self.place_by_vt(class, parent);
                self.set_fit(class, parent);
            }
            class = parent;
        }
    }

    /// `eltree_get_mindl`: of the leaves that are eligible the one with the earliest deadline.
    fn by_real_time(&self, time: u64) -> Option<usize> {
        let eligible = self.by_eligible.iter().take_while(|&&class| self.classes[class].e <= time);
        eligible.copied().min_by_key(|&class| self.classes[class].d)
    }

    /// `vttree_get_minvt`.
    fn by_link_share(&mut self, time: u64) -> Option<usize> {
        if self.classes[self.root].cfmin > time {
            return None;
        }
        let mut class = self.root;
        while !self.classes[class].is_leaf {
            let mut fits = self.classes[class].by_vt.iter();
            let child = fits.find(|&&child| self.classes[child].f <= time).copied()?;
            let vt = self.classes[child].vt;
            let above = &mut self.classes[class];
            above.cvtmin = above.cvtmin.max(vt);
            class = child;
        }
        Some(class)
    }

    /// A leaf that has dropped all it had is out (`hfsc_qlen_notify`).
    fn settle(&mut self, class: usize, leaves: &Leaves) {
        if leaves.packets(class) == 0 {
            self.count(class, 0, true);
            remove(&mut self.by_eligible, class);
        }
    }

    /// `hfsc_dequeue`.
    pub(super) fn dequeue<S: Sink>(
        &mut self,
        leaves: &mut Leaves,
        now: Instant,
        sink: &mut S,
    ) -> Dequeue {
        let time = Self::ticks(now);
        while leaves.total().packets > 0 {
            let urgent = self.by_real_time(time);
            let Some(class) = urgent.or_else(|| self.by_link_share(time)) else {
                return Dequeue::Wait(self.due(now));
            };
            match leaves.dequeue(class, now, sink) {
                Dequeue::Packet(item) => {
                    self.sent(class, item.len, urgent.is_some(), leaves, now, sink);
                    return Dequeue::Packet(item);
                }
                Dequeue::Wait(until) => return Dequeue::Wait(until),
                Dequeue::Empty => self.settle(class, leaves),
            }
        }
        Dequeue::Empty
    }

    fn sent<S: Sink>(
        &mut self,
        class: usize,
        len: u32,
        urgent: bool,
        leaves: &mut Leaves,
        now: Instant,
        sink: &mut S,
    ) {
        self.count(class, len, leaves.packets(class) == 0);
        if urgent {
            self.classes[class].cumul += u64::from(len);
        }
        if self.classes[class].rsc.is_none() {
            return;
        }
        if leaves.packets(class) == 0 {
            remove(&mut self.by_eligible, class);
            return;
        }
        match leaves.peek(class, now, sink) {
            Dequeue::Packet(next) if urgent => self.set_times(class, next.len),
            Dequeue::Packet(next) => self.set_deadline(class, next.len),
            // What is not there yet has no length.
            Dequeue::Wait(_) if urgent => self.set_times(class, 0),
            Dequeue::Wait(_) => self.set_deadline(class, 0),
            Dequeue::Empty => self.settle(class, leaves),
        }
    }

    /// `hfsc_schedule_watchdog`.
    fn due(&self, now: Instant) -> Instant {
        let eligible = self.by_eligible.first().map(|&first| self.classes[first].e);
        let fit = Some(self.classes[self.root].cfmin).filter(|&fit| fit != 0);
        let due = [eligible, fit].into_iter().flatten().min();
        match due {
            Some(due) if due > Self::ticks(now) => Instant::from_nanos(due.saturating_mul(TICK_NS))
                .min(now + Duration::from_nanos(SLEEP_NS)),
            Some(_) | None => now + Duration::from_nanos(SLEEP_NS),
        }
    }
}
