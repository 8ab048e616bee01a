//! A tree of classes as a scenario describes it, its checks and its facts.

use super::filter::comparable;
use super::leaves::Leaves;
use super::rounds::Rounds;
use super::{HTB_LEVELS, Scheduler, Tree, curve, filter, hfsc, htb, parse, print};
use crate::disciplines::ets::EtsSpec;
use crate::disciplines::fifo::{Fifo, PfifoSpec};
use crate::disciplines::netem::NetemSpec;
use crate::disciplines::prio::PrioSpec;
use crate::disciplines::tbf::{self, TbfSpec};
use crate::disciplines::{
    Buffer, Class, Configuration, Confirmation, Facts, Payment, QdiscSpec, Streams, TXQUEUELEN,
};
use crate::netlink::saturated;
use crate::table::{Row, Table};
use crate::tc::{self, Text, Words};
use crate::token_rate::{Framing, rate};
use dragstrip_units::{Problem, Report};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most trees within each other.
const TREES_MAX: usize = 4;
/// Most classes of one discipline.
const CLASSES_MAX: usize = 4_000;
/// Most filters of one discipline.
const FILTERS_MAX: usize = 4_000;
/// Debt that htb remembers, seconds (`mbuffer`).
const MBUFFER_SECONDS: u64 = 60;

/// Classes in a tree, with the filters that lead packets to them, as tc's commands build it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// Major number of the discipline and its classes.
    pub handle: u16,
    /// The discipline that shares between the classes.
    pub scheduler: SchedulerSpec,
    /// Its classes, each behind its parent; those of prio and ets are their bands, of netem and tbf the only one.
    pub classes: Vec<ClassSpec>,
    /// Filters in the order in which packets meet them.
    #[serde(default)]
    pub filters: Vec<FilterSpec>,
}

/// A discipline with classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulerSpec {
    /// Hierarchical token bucket.
    Htb {
        /// Minor number of the class of what no filter leads elsewhere; 0: such packets pass unshaped, before all others.
        #[serde(default)]
        default_minor: u16,
        /// Packets of no class that may wait.
        direct_packets: u32,
    },
    /// Hierarchical fair service curves.
    Hfsc {
        /// Minor number of the class of what no filter leads elsewhere; 0: such packets are dropped.
        #[serde(default)]
        default_minor: u16,
    },
    /// Deficit round robin; what no filter leads to a class is dropped.
    Drr {},
    /// Strict priority between bands.
    Prio(PrioSpec),
    /// Strict bands, then shares between the others.
    Ets(EtsSpec),
    /// A network emulator in front of the discipline in its class.
    Netem(Box<NetemSpec>),
    /// A token bucket behind the discipline in its class.
    Tbf(TbfSpec),
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Minor number.
    pub minor: u16,
    /// Minor number of the class above; 0: the discipline itself.
    #[serde(default)]
    pub parent: u16,
    /// What the class may send.
    pub parameters: ClassParameters,
    /// Queue discipline of a class without classes below it.
    #[serde(default)]
    pub leaf: Option<Box<QdiscSpec>>,
}

/// What a class may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClassParameters {
    /// A class of htb.
    Htb(HtbClass),
    /// A class of hfsc.
    Hfsc(HfscClass),
    /// A class of drr.
    Drr {
        /// Bytes that it may send in turn.
        quantum_bytes: u32,
    },
    /// A band of prio or ets, or the only class of netem or tbf.
    Band {},
}

/// A class of htb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HtbClass {
    /// Rate that it may send whatever others do.
    pub rate_bps: u64,
    /// Rate up to which it may borrow from the classes above.
    pub ceil_bps: u64,
    /// Bucket of the rate.
    pub burst_bytes: u64,
    /// Bucket of the ceiling.
    pub cburst_bytes: u64,
    /// Bytes that it may send in turn.
    pub quantum_bytes: u32,
    /// The lowest is served first among classes that send at the same level.
    #[serde(default)]
    pub priority: u8,
    /// Added to every packet's charge.
    #[serde(default)]
    pub overhead_bytes: i32,
    /// Least charge per packet.
    #[serde(default)]
    pub mpu_bytes: u32,
    /// Charge in whole ATM cells (48 bytes of payload cost 53).
    #[serde(default)]
    pub linklayer_atm: bool,
}

impl HtbClass {
    pub(super) const fn framing(&self) -> Framing {
        Framing { overhead: self.overhead_bytes, mpu: self.mpu_bytes, atm: self.linklayer_atm }
    }
}

/// A class of hfsc: at least one of the first two curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HfscClass {
    /// Service that a leaf has whatever limits there are (`rt`).
    #[serde(default)]
    pub real_time: Option<CurveSpec>,
    /// Share among the classes beside it (`ls`).
    #[serde(default)]
    pub link_share: Option<CurveSpec>,
    /// The most that it shares (`ul`).
    #[serde(default)]
    pub upper_limit: Option<CurveSpec>,
}

/// A service curve: a rate for some time, then another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CurveSpec {
    /// The first rate.
    #[serde(default)]
    pub m1_bps: u64,
    /// How long it holds.
    #[serde(default)]
    pub d_ns: u64,
    /// The rate from then on.
    pub m2_bps: u64,
}

impl CurveSpec {
    fn built(&self) -> curve::Curve {
        curve::Curve::new(self.m1_bps, self.d_ns, self.m2_bps)
    }
}

/// A class by its whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassId {
    /// The discipline's number.
    pub major: u16,
    /// The class's own.
    pub minor: u16,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// Minor number of the inner class that it hangs on; 0: the discipline itself.
    #[serde(default)]
    pub parent: u16,
    /// The lowest is asked first (tc's `prio`, `pref`).
    pub priority: u16,
    /// Packets that it takes.
    pub matching: Matching,
    /// Class that they go to; a filter that computes it has none.
    #[serde(default)]
    pub class: Option<ClassId>,
    /// They are dropped instead.
    #[serde(default)]
    pub drop: bool,
    /// Policer that they pass before.
    #[serde(default)]
    pub police: Option<PolicerSpec>,
}

/// The condition of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Matching {
    /// Every packet (matchall, u32 without a mask).
    Everything {},
    /// Words of the packet have these values, all of them.
    U32 {
        /// The words.
        keys: Vec<Key>,
    },
    /// The packet's mark.
    Fw {
        /// Its value under the mask; none: the mark is the class's number.
        #[serde(default)]
        mark: Option<u32>,
        /// The mask.
        mask: u32,
    },
    /// A hash of these fields chooses the class.
    Flow {
        /// The fields.
        keys: Vec<FlowKey>,
        /// Number of classes.
        divisor: u32,
        /// Minor number of the first.
        base: u16,
    },
}

/// Four octets of a packet, compared under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Position of the first octet, from the beginning of IP's header: a multiple of four.
    pub offset: u16,
    /// The value.
    pub value: u32,
    /// Bits that count.
    pub mask: u32,
}

/// A field that a flow filter hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FlowKey {
    /// Source address.
    Src,
    /// Destination address.
    Dst,
    /// IP's protocol.
    Proto,
    /// Source port.
    ProtoSrc,
    /// Destination port.
    ProtoDst,
    /// `skb->priority`.
    Priority,
    /// The firewall's mark.
    Mark,
}

/// A policer of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Token rate.
    pub rate_bps: u64,
    /// Bucket.
    pub burst_bytes: u64,
    /// The longest frame that conforms.
    pub mtu_bytes: u32,
    /// Second bucket's rate.
    #[serde(default)]
    pub peakrate_bps: Option<u64>,
    /// What happens to packets that exceed.
    pub exceeds: Exceeds,
}

/// What happens to packets that exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exceeds {
    /// They are dropped.
    Drop,
    /// The next filter is asked.
    Continue,
    /// They go to the class all the same.
    Ok,
}

impl Default for TreeSpec {
    /// The least tree: prio's bands.
    fn default() -> Self {
        let prio = PrioSpec::default();
        let band = |minor| ClassSpec {
            minor,
            parent: 0,
            parameters: ClassParameters::Band {},
            leaf: Some(Box::new(PfifoSpec::default().into())),
        };
        let classes = (1..=prio.bands as u16).map(band).collect();
        let scheduler = SchedulerSpec::Prio(prio);
        Self { handle: 1, scheduler, classes, filters: Vec::new() }
    }
}

impl Table for TreeSpec {
    const ROWS: &'static [Row<Self>] = &[];
}

impl SchedulerSpec {
    /// The kernel's name.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Htb { .. } => "htb",
            Self::Hfsc { .. } => "hfsc",
            Self::Drr {} => "drr",
            Self::Prio(_) => "prio",
            Self::Ets(_) => "ets",
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
        }
    }

    /// Number of classes that exist by themselves; none: each is added.
    pub(super) fn bands(&self) -> Option<usize> {
        match self {
            Self::Htb { .. } | Self::Hfsc { .. } | Self::Drr {} => None,
            Self::Prio(prio) => Some(prio.bands as usize),
            Self::Ets(ets) => Some(ets.bands()),
            Self::Netem(_) | Self::Tbf(_) => Some(1),
        }
    }

    const fn takes(&self, parameters: &ClassParameters) -> bool {
        match (self, parameters) {
            (Self::Htb { .. }, ClassParameters::Htb(_))
            | (Self::Hfsc { .. }, ClassParameters::Hfsc(_))
            | (Self::Drr {}, ClassParameters::Drr { .. })
            | (
                Self::Prio(_) | Self::Ets(_) | Self::Netem(_) | Self::Tbf(_),
                ClassParameters::Band {},
            ) => true,
            _ => false,
        }
    }
}

impl TreeSpec {
    /// Classes by their minor numbers: the position of each in the list.
    fn places(&self) -> BTreeMap<u16, usize> {
        self.classes.iter().enumerate().map(|(at, class)| (class.minor, at)).collect()
    }

    fn leaves(&self) -> impl Iterator<Item = (usize, &QdiscSpec)> {
        self.classes.iter().enumerate().filter_map(|(at, class)| Some((at, class.leaf.as_deref()?)))
    }

    fn check_class(&self, at: usize, field: &str, report: &mut Report) {
        let class = &self.classes[at];
        let before = &self.classes[..at];
        if class.minor == 0 || before.iter().any(|other| other.minor == class.minor) {
            report.add(
                format!("{field}.minor"),
                class.minor,
                "a number above 0 that no other class has",
            );
        }
        let depth = self.depth(at);
        let above = before.iter().find(|other| other.minor == class.parent);
        match (class.parent, above) {
            (0, _) => {}
            (parent, None) => {
                report.add(
                    format!("{field}.parent"),
                    parent,
                    "0 or the number of a class before it",
                );
            }
            (parent, Some(above)) if above.leaf.is_some() => {
                report.add(
                    format!("{field}.parent"),
                    parent,
                    "a class without a discipline of its own",
                );
            }
            (_, Some(_)) => {}
        }
        if self.scheduler.bands().is_some() || matches!(self.scheduler, SchedulerSpec::Drr {}) {
            if class.parent != 0 {
                let expected =
                    format!("0: {} has no classes within classes", self.scheduler.kind());
                report.add(format!("{field}.parent"), class.parent, expected);
            }
        } else if depth >= HTB_LEVELS {
            let expected = format!("at most {HTB_LEVELS} levels of classes");
            report.add(format!("{field}.parent"), class.parent, expected);
        }
        let is_inner = self.classes.iter().any(|other| other.parent == class.minor);
        match &class.leaf {
            None if !is_inner => {
                report.add(format!("{field}.leaf"), "none", "a discipline: no class is below it");
            }
            Some(leaf)
                if **leaf == QdiscSpec::NOQUEUE
                    || matches!(**leaf, QdiscSpec::Htb(_) | QdiscSpec::Police(_)) =>
            {
                let expected = "a discipline that queues, or a tree";
                report.add(format!("{field}.leaf"), leaf.kind(), expected);
            }
            Some(leaf) => leaf.check(&format!("{field}.leaf"), report),
            None => {}
        }
        if !self.scheduler.takes(&class.parameters) {
            let expected = format!("those of {}", self.scheduler.kind());
            report.add(format!("{field}.parameters"), "another discipline's", expected);
        }
        check_parameters(&class.parameters, &format!("{field}.parameters"), report);
    }

    /// Classes above a class; as many as there may be where they go round.
    fn depth(&self, at: usize) -> usize {
        let (mut depth, mut parent) = (0, self.classes[at].parent);
        while parent != 0 && depth < HTB_LEVELS {
            depth += 1;
            let above = self.classes[..at].iter().find(|other| other.minor == parent);
            parent = above.map_or(0, |above| above.parent);
        }
        depth
    }

    /// Trees within each other.
    fn trees(&self) -> usize {
        let inner = self
            .leaves()
            .map(|(_, leaf)| if let QdiscSpec::Tc(tree) = leaf { tree.trees() } else { 0 });
        1 + inner.max().unwrap_or(0)
    }

    /// Bit/s that the classes below `parent` (0: all) let pass at most; none: no limit.
    fn limit_bps(&self, parent: u16) -> Option<u64> {
        let children = self.classes.iter().filter(|class| class.parent == parent);
        children.map(|class| self.class_limit_bps(class)).sum()
    }

    fn class_limit_bps(&self, class: &ClassSpec) -> Option<u64> {
        let inside = match &class.leaf {
            Some(leaf) => leaf.facts().rate_bps,
            None => self.limit_bps(class.minor),
        };
        // What is guaranteed below passes whatever the limits of this class.
        let own = match &class.parameters {
            ClassParameters::Htb(htb) if class.leaf.is_some() && class.parent == 0 => {
                Some(htb.rate_bps.min(htb.ceil_bps))
            }
            ClassParameters::Htb(htb) if class.leaf.is_some() => Some(htb.ceil_bps),
            ClassParameters::Htb(htb) => Some(
                if class.parent == 0 { htb.rate_bps.min(htb.ceil_bps) } else { htb.ceil_bps }
                    .max(self.guaranteed_bps(class.minor)),
            ),
            ClassParameters::Hfsc(hfsc) => {
                let limit = hfsc.upper_limit.map(|curve| curve.m2_bps);
                let limit = if hfsc.link_share.is_none() && class.leaf.is_some() {
                    hfsc.real_time.map(|curve| curve.m2_bps)
                } else {
                    limit
                };
                let promised = match (&class.leaf, hfsc.real_time) {
                    (Some(_), real_time) => real_time.map_or(0, |curve| curve.m2_bps),
                    (None, _) => self.guaranteed_bps(class.minor),
                };
                limit.map(|limit| limit.max(promised))
            }
            ClassParameters::Drr { .. } | ClassParameters::Band {} => None,
        };
        [own, inside].into_iter().flatten().min()
    }

    /// Sum of what the leaves below a class may send whatever it says.
    fn guaranteed_bps(&self, minor: u16) -> u64 {
        let children = self.classes.iter().filter(|class| class.parent == minor);
        children
            .map(|class| match (&class.parameters, &class.leaf) {
                (ClassParameters::Htb(htb), Some(_)) => htb.rate_bps.min(htb.ceil_bps),
                (ClassParameters::Hfsc(hfsc), Some(_)) => {
                    hfsc.real_time.map_or(0, |curve| curve.m2_bps)
                }
                _ => self.guaranteed_bps(class.minor),
            })
            .sum()
    }

    /// Packets pass that no class limits.
    fn has_direct_queue(&self) -> bool {
        let SchedulerSpec::Htb { default_minor, .. } = self.scheduler else { return false };
        !self.classes.iter().any(|class| class.minor == default_minor && class.leaf.is_some())
    }

    fn scheduler(&self, streams: &Streams<'_>, places: &BTreeMap<u16, usize>) -> Scheduler {
        let parent = |class: &ClassSpec| places.get(&class.parent).copied();
        match &self.scheduler {
            SchedulerSpec::Htb { direct_packets, .. } => {
                let configs = self.classes.iter().filter_map(|class| {
                    let ClassParameters::Htb(htb) = class.parameters else { return None };
                    Some(htb::Config {
                        parent: parent(class),
                        is_leaf: class.leaf.is_some(),
                        rate: rate(htb.rate_bps),
                        ceil: rate(htb.ceil_bps),
                        burst_bytes: htb.burst_bytes,
                        cburst_bytes: htb.cburst_bytes,
                        quantum_bytes: htb.quantum_bytes,
                        priority: htb.priority,
                        framing: htb.framing(),
                    })
                });
                Scheduler::Htb {
                    hierarchy: htb::Hierarchy::new(&configs.collect::<Vec<_>>()),
                    direct: Fifo::packets(*direct_packets),
                }
            }
            SchedulerSpec::Hfsc { .. } => {
                let configs = self.classes.iter().filter_map(|class| {
                    let ClassParameters::Hfsc(hfsc) = class.parameters else { return None };
                    Some(hfsc::Config {
                        parent: parent(class),
                        is_leaf: class.leaf.is_some(),
                        real_time: hfsc.real_time.map(|curve| curve.built()),
                        link_share: hfsc.link_share.map(|curve| curve.built()),
                        upper_limit: hfsc.upper_limit.map(|curve| curve.built()),
                    })
                });
                Scheduler::Hfsc(hfsc::Hierarchy::new(&configs.collect::<Vec<_>>()))
            }
            SchedulerSpec::Drr {} => {
                let quanta = self.classes.iter().map(|class| {
                    let ClassParameters::Drr { quantum_bytes } = class.parameters else {
                        return None;
                    };
                    Some(quantum_bytes.max(1))
                });
                Scheduler::Drr(Rounds::new(quanta.collect()))
            }
            SchedulerSpec::Prio(_) => Scheduler::Prio,
            SchedulerSpec::Ets(ets) => {
                let strict = ets.strict as usize;
                let shared = ets.quanta_bytes.iter().map(|&quantum| Some(quantum.max(1)));
                let quanta = std::iter::repeat_n(None, strict).chain(shared).collect();
                Scheduler::Ets { strict, rounds: Rounds::new(quanta) }
            }
            SchedulerSpec::Netem(netem) => Scheduler::Netem(*netem.build(streams)),
            SchedulerSpec::Tbf(spec) => {
                let peak = spec.peakrate_bps.zip(spec.mtu_bytes);
                Scheduler::Tbf(tbf::Shaper::new(tbf::Config {
                    rate: rate(spec.rate_bps),
                    burst: saturated(spec.burst_bytes),
                    peak: peak.map(|(bps, mtu)| (rate(bps), saturated(mtu))),
                }))
            }
        }
    }
}

fn check_parameters(parameters: &ClassParameters, field: &str, report: &mut Report) {
    match parameters {
        ClassParameters::Htb(htb) => {
            report.shaper_rate(format!("{field}.rate_bps"), htb.rate_bps);
            report.shaper_rate(format!("{field}.ceil_bps"), htb.ceil_bps);
            report.at_least(format!("{field}.burst_bytes"), htb.burst_bytes, 1);
            report.at_least(format!("{field}.cburst_bytes"), htb.cburst_bytes, 1);
            report.at_least(format!("{field}.quantum_bytes"), htb.quantum_bytes, 1);
            if htb.priority > 7 {
                report.add(format!("{field}.priority"), htb.priority, "from 0 to 7");
            }
            if !(-20..=65_535).contains(&htb.overhead_bytes) {
                report.add(
                    format!("{field}.overhead_bytes"),
                    htb.overhead_bytes,
                    "from -20 to 65535",
                );
            }
            if htb.mpu_bytes > 65_535 {
                report.add(format!("{field}.mpu_bytes"), htb.mpu_bytes, "at most 65535");
            }
        }
        ClassParameters::Hfsc(hfsc) => {
            if hfsc.real_time.is_none() && hfsc.link_share.is_none() {
                report.add(field, "no curve", "real_time or link_share");
            }
            if hfsc.upper_limit.is_some() && hfsc.link_share.is_none() {
                let expected = "link_share too: the limit is one of sharing";
                report.add(format!("{field}.upper_limit"), "alone", expected);
            }
            for (name, curve) in [
                ("real_time", hfsc.real_time),
                ("link_share", hfsc.link_share),
                ("upper_limit", hfsc.upper_limit),
            ] {
                let Some(curve) = curve else { continue };
                if curve.m1_bps == 0 && curve.m2_bps == 0 {
                    report.add(format!("{field}.{name}"), "rates of 0", "a rate above 0");
                }
                // The kernel counts bytes per second in 32 bits.
                for (rate, bps) in [("m1_bps", curve.m1_bps), ("m2_bps", curve.m2_bps)] {
                    if bps / 8 > u64::from(u32::MAX) || (1..8).contains(&bps) {
                        let expected = "0, or from 8 to 34359738360 (34gbit)";
                        report.add(format!("{field}.{name}.{rate}"), bps, expected);
                    }
                }
                report.time(format!("{field}.{name}.d_ns"), curve.d_ns, 0);
            }
        }
        ClassParameters::Drr { quantum_bytes } => {
            report.at_least(format!("{field}.quantum_bytes"), *quantum_bytes, 1);
        }
        ClassParameters::Band {} => {}
    }
}

fn check_filter(filter: &FilterSpec, field: &str, report: &mut Report) {
    report.at_least(format!("{field}.priority"), filter.priority, 1);
    match &filter.matching {
        Matching::Everything {} => {}
        Matching::U32 { keys } => {
            for (at, key) in keys.iter().enumerate() {
                let known = comparable(key.offset);
                let place = format!("{field}.matching.keys[{at}]");
                match known {
                    None => report.add(
                        format!("{place}.offset"),
                        key.offset,
                        "0, 4, 8, 12, 16, 20 or 32: nothing else of a packet is modelled",
                    ),
                    Some(known) if key.mask & !known != 0 => report.add(
                        format!("{place}.mask"),
                        format!("{:#x}", key.mask),
                        format!("bits of {known:#010x}: nothing else of this word is modelled"),
                    ),
                    Some(_) if key.value & !key.mask != 0 => report.add(
                        format!("{place}.value"),
                        format!("{:#x}", key.value),
                        "bits of the mask alone",
                    ),
                    Some(_) => {}
                }
            }
            if keys.is_empty() {
                report.add(format!("{field}.matching.keys"), "none", "at least one");
            }
        }
        Matching::Fw { mark, mask } => {
            if mark.is_some_and(|mark| mark & !mask != 0) {
                report.add(
                    format!("{field}.matching.mark"),
                    mark.unwrap_or(0),
                    "bits of the mask alone",
                );
            }
        }
        Matching::Flow { keys, divisor, .. } => {
            if keys.is_empty() {
                report.add(format!("{field}.matching.keys"), "none", "at least one");
            }
            report.at_least(format!("{field}.matching.divisor"), *divisor, 1);
        }
    }
    let computes =
        matches!(filter.matching, Matching::Fw { mark: None, .. } | Matching::Flow { .. });
    if filter.class.is_some() == computes && !filter.drop {
        let expected =
            if computes { "no class: the filter computes it" } else { "a class, or drop" };
        report.add(format!("{field}.class"), if computes { "a class" } else { "none" }, expected);
    }
    if let Some(police) = &filter.police {
        report.shaper_rate(format!("{field}.police.rate_bps"), police.rate_bps);
        report.at_least(format!("{field}.police.burst_bytes"), police.burst_bytes, 1);
        report.at_least(format!("{field}.police.mtu_bytes"), police.mtu_bytes, 1);
    }
}

impl Configuration for TreeSpec {
    type Model = Box<Tree>;

    const KIND: &'static str = "tc";
    const MODULES: &'static [&'static str] =
        &["sch_hfsc", "sch_drr", "cls_u32", "cls_fw", "cls_flow", "act_gact"];
    const EXAMPLES: &'static [&'static str] = &[
        "tc qdisc add root handle 1: prio; tc qdisc add parent 1:1 tbf rate 1mbit burst 3kb limit 30kb; \
         tc filter add parent 1: prio 1 matchall classid 1:2",
        "tc qdisc add root handle 1: htb default 12; tc class add parent 1: classid 1:1 htb rate 10mbit; \
         tc class add parent 1:1 classid 1:11 htb rate 1mbit ceil 5mbit prio 1; \
         tc class add parent 1:1 classid 1:12 htb rate 5mbit ceil 10mbit prio 2; \
         tc qdisc add parent 1:11 fq_codel; tc qdisc add parent 1:12 sfq; \
         tc filter add parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:11; \
         tc filter add parent 1: protocol ip prio 2 handle 0x1/0xff fw classid 1:11; \
         tc filter add parent 1: protocol ip prio 3 u32 match ip dport 5001 0xffff match ip protocol 6 0xff \
         police rate 1mbit burst 10kb drop flowid 1:11",
        "tc qdisc add root handle 1: hfsc default 2; \
         tc class add parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit; \
         tc class add parent 1:1 classid 1:3 hfsc rt m1 5mbit d 10ms m2 1mbit; \
         tc class add parent 1:1 classid 1:2 hfsc ls m2 5mbit",
        "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr quantum 3028; \
         tc class add classid 1:2 drr; tc qdisc add parent 1:2 handle 2: ets bands 2; \
         tc filter add parent 1: flow hash keys src,dst divisor 2 baseclass 1:1",
        "tc qdisc add root handle 1: netem delay 10ms; tc qdisc add parent 1:1 handle 2: tbf rate 1mbit \
         burst 3kb limit 30kb; tc qdisc add parent 2:1 pfifo limit 50",
    ];
    const LEAST: &'static str = "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr";
    const NOTES: &'static str = "- Its words are tc's commands, one after the other: \
        [class trees](../how-to/class-trees.md) has the classes, filters and actions that are understood.\n";
    const CLASSFUL: bool = true;
    const KEEPS: bool = false;

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut rest = Vec::new();
        while let Some(word) = words.next() {
            rest.push(word);
        }
        match parse::tree(&rest)? {
            QdiscSpec::Tc(tree) => Ok(*tree),
            other => Err(tc::wrong(
                format!("\"tc ... {}\" alone", other.kind()),
                format!("a discipline with classes; one without is written {:?}", other.print()),
            )),
        }
    }

    fn unknown(word: &str) -> Problem {
        tc::unknown(word, &["qdisc", "class", "filter"], &[])
    }

    fn print(&self) -> Text {
        print::commands(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        if self.handle == 0 || self.handle == u16::MAX {
            report.add(format!("{at}.handle"), self.handle, "from 1 to 65534");
        }
        if self.trees() > TREES_MAX {
            let expected =
                format!("at most {TREES_MAX} disciplines with classes within each other");
            report.add(format!("{at}.classes"), "more", expected);
            return;
        }
        if self.classes.len() > CLASSES_MAX || self.filters.len() > FILTERS_MAX {
            let expected = format!("at most {CLASSES_MAX} classes and {FILTERS_MAX} filters");
            report.add(format!("{at}.classes"), self.classes.len(), expected);
            return;
        }
        match &self.scheduler {
            SchedulerSpec::Prio(prio) => prio.check(&format!("{at}.scheduler"), report),
            SchedulerSpec::Ets(ets) => ets.check(&format!("{at}.scheduler"), report),
            SchedulerSpec::Netem(netem) => netem.check(&format!("{at}.scheduler"), report),
            SchedulerSpec::Tbf(tbf) => tbf.check(&format!("{at}.scheduler"), report),
            SchedulerSpec::Htb { direct_packets, .. } => {
                report.at_least(format!("{at}.scheduler.direct_packets"), *direct_packets, 1);
            }
            SchedulerSpec::Hfsc { .. } | SchedulerSpec::Drr {} => {}
        }
        let numbered = || self.classes.iter().zip(1..).all(|(class, minor)| class.minor == minor);
        if let Some(bands) = self.scheduler.bands()
            && (self.classes.len() != bands || !numbered())
        {
            let expected = format!("{bands}, numbered from 1 on");
            report.add(format!("{at}.classes"), self.classes.len(), expected);
        }
        for place in 0..self.classes.len() {
            self.check_class(place, &format!("{at}.classes[{place}]"), report);
        }
        for (place, filter) in self.filters.iter().enumerate() {
            let field = format!("{at}.filters[{place}]");
            check_filter(filter, &field, report);
            let is_inner = |class: &ClassSpec| class.minor == filter.parent && class.leaf.is_none();
            if filter.parent != 0 && !self.classes.iter().any(is_inner) {
                let expected = "0 or the number of a class with classes below it";
                report.add(format!("{field}.parent"), filter.parent, expected);
            }
            if matches!(self.scheduler, SchedulerSpec::Netem(_) | SchedulerSpec::Tbf(_)) {
                let expected = format!("none: {} has one class", self.scheduler.kind());
                report.add(field, "a filter", expected);
            }
        }
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        let mut delays = Vec::new();
        let (mut bytes, mut packets, mut in_bytes, mut in_packets) = (0_u64, 0_u32, true, true);
        for (at, leaf) in self.leaves() {
            let inside = leaf.facts();
            facts.shapes |= inside.shapes;
            facts.draws |= inside.draws;
            facts.marks |= inside.marks;
            facts.reorders |= inside.reorders;
            delays.push(inside.delay_ns);
            let field = |name: String| format!("classes[{at}].leaf.{name}");
            let holds = inside.holds_packet.into_iter();
            facts.holds_packet.extend(holds.map(|(name, bytes)| (field(name), bytes)));
            facts.pays.extend(inside.pays.into_iter().map(|(name, pays)| (field(name), pays)));
            match inside.buffer {
                Buffer { packets: Some(limit), .. } => {
                    packets = packets.saturating_add(limit);
                    in_bytes = false;
                }
                Buffer { bytes: Some(limit), packets: None } => {
                    bytes = bytes.saturating_add(limit);
                    in_packets = false;
                }
                Buffer { bytes: None, packets: None } => (in_bytes, in_packets) = (false, false),
            }
        }
        facts.buffer = match (in_bytes, in_packets) {
            (true, _) => Buffer::bytes(bytes),
            (false, true) => Buffer::packets(packets),
            (false, false) => Buffer::default(),
        };
        facts.delay_ns = delays.into_iter().min().unwrap_or(0);
        facts.reorders |= self.leaves().count() > 1 || self.has_direct_queue();
        facts.draws |= self.filters.iter().any(|one| matches!(one.matching, Matching::Flow { .. }));
        facts.rate_bps = if self.has_direct_queue() { None } else { self.limit_bps(0) };
        match &self.scheduler {
            SchedulerSpec::Htb { .. } | SchedulerSpec::Hfsc { .. } => facts.shapes = true,
            SchedulerSpec::Netem(netem) => {
                let own = netem.facts();
                facts.delay_ns += own.delay_ns;
                facts.rate_bps = [own.rate_bps, facts.rate_bps].into_iter().flatten().min();
                facts.shapes |= own.shapes;
                facts.draws |= own.draws;
                facts.reorders |= own.reorders;
                facts.marks |= own.marks;
            }
            SchedulerSpec::Tbf(tbf) => {
                facts.rate_bps = [tbf.facts().rate_bps, facts.rate_bps].into_iter().flatten().min();
                facts.shapes = true;
                facts.holds_packet.push(("scheduler.burst_bytes".to_owned(), tbf.burst_bytes));
            }
            SchedulerSpec::Drr {} | SchedulerSpec::Prio(_) | SchedulerSpec::Ets(_) => {}
        }
        for (at, class) in self.classes.iter().enumerate() {
            let ClassParameters::Htb(htb) = &class.parameters else { continue };
            for (name, rate_bps) in [("rate_bps", htb.rate_bps), ("ceil_bps", htb.ceil_bps)] {
                let payment =
                    Payment { rate_bps, seconds: MBUFFER_SECONDS, framing: htb.framing() };
                facts.pays.push((format!("classes[{at}].parameters.{name}"), payment));
            }
        }
        facts
    }

    fn build(&self, streams: &Streams<'_>) -> Self::Model {
        let numbers = self.places();
        let leaves = Leaves::new(self.classes.iter().map(|class| {
            let leaf = class.leaf.as_deref()?;
            Some(leaf.build(
                &streams.within(&format!("{:x}:{:x}", self.handle, class.minor)).as_streams(),
            ))
        }));
        let of = |parent: u16| {
            let specs = self.filters.iter().filter(move |filter| filter.parent == parent);
            filter::Filters::new(specs, || streams.named("tc"))
        };
        Box::new(Tree {
            handle: self.handle,
            scheduler: self.scheduler(streams, &numbers),
            leaves,
            numbers,
            depths: (0..self.classes.len()).map(|at| self.depth(at)).collect(),
            filters: of(0),
            inner_filters: self.classes.iter().map(|class| of(class.minor)).collect(),
            default: match self.scheduler {
                SchedulerSpec::Htb { default_minor, .. }
                | SchedulerSpec::Hfsc { default_minor } => Some(default_minor),
                SchedulerSpec::Drr {}
                | SchedulerSpec::Prio(_)
                | SchedulerSpec::Ets(_)
                | SchedulerSpec::Netem(_)
                | SchedulerSpec::Tbf(_) => None,
            },
            priomap: match &self.scheduler {
                SchedulerSpec::Prio(prio) => Some(prio.priomap),
                SchedulerSpec::Ets(ets) => Some(ets.priomap),
                SchedulerSpec::Htb { .. }
                | SchedulerSpec::Hfsc { .. }
                | SchedulerSpec::Drr {}
                | SchedulerSpec::Netem(_)
                | SchedulerSpec::Tbf(_) => None,
            },
        })
    }

    fn options(&self) -> Option<Vec<u8>> {
        None
    }

    fn classes(&self) -> Vec<Class<'_>> {
        Vec::new()
    }

    fn confirm(&self, _options: &[u8]) -> Vec<Confirmation> {
        Vec::new()
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        super::random::trees(scope)
    }
}

/// Packets of no class that wait unless tc is told otherwise (`direct_qlen`): the interface's `txqueuelen`.
pub(super) const DIRECT_PACKETS: u32 = TXQUEUELEN;
