//! A tree of classes as a scenario describes it.

use super::{HTB_LEVELS, curve};
use crate::disciplines::ets::EtsSpec;
use crate::disciplines::fifo::PfifoSpec;
use crate::disciplines::netem::NetemSpec;
use crate::disciplines::prio::PrioSpec;
use crate::disciplines::tbf::TbfSpec;
use crate::disciplines::{QdiscSpec, TXQUEUELEN};
use crate::table::{Row, Table};
use crate::token_rate::Framing;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Packets of no class that wait unless tc is told otherwise (`direct_qlen`): the interface's `txqueuelen`.
pub(super) const DIRECT_PACKETS: u32 = TXQUEUELEN;

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
    /// Limits of what the class may send.
    pub parameters: ClassParameters,
    /// Queue discipline of a class without classes below it.
    #[serde(default)]
    pub leaf: Option<Box<QdiscSpec>>,
}

/// Limits of what a class may send, by its discipline.
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
    /// Duration of the first rate.
    #[serde(default)]
    pub d_ns: u64,
    /// The rate from then on.
    pub m2_bps: u64,
}

impl CurveSpec {
    pub(super) fn built(&self) -> curve::Curve {
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
    /// A condition of several fields (basic; u32 with a mark).
    Basic {
        /// The condition.
        condition: Condition,
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

/// A condition of a packet's fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// All of them hold.
    All {
        /// The conditions.
        of: Vec<Self>,
    },
    /// One of them holds.
    Any {
        /// The conditions.
        of: Vec<Self>,
    },
    /// The condition does not hold.
    Not {
        /// The condition.
        of: Box<Self>,
    },
    /// A field under a mask is equal to a value, greater or less.
    Compare {
        /// The field.
        field: Field,
        /// Bits that count.
        mask: u32,
        /// The comparison.
        operand: Operand,
        /// The value.
        value: u32,
    },
}

impl Condition {
    /// The field has this value under the mask.
    pub(super) const fn equal(field: Field, mask: u32, value: u32) -> Self {
        Self::Compare { field, mask, operand: Operand::Equal, value }
    }

    /// All of these conditions; one alone is itself.
    pub(super) fn all(conditions: impl Iterator<Item = Self>) -> Self {
        let mut of: Vec<Self> = conditions.collect();
        if of.len() == 1 { of.remove(0) } else { Self::All { of } }
    }

    /// A part of it compares a field of this kind.
    pub(super) fn compares(&self, is: &impl Fn(&Field) -> bool) -> bool {
        match self {
            Self::All { of } | Self::Any { of } => of.iter().any(|part| part.compares(is)),
            Self::Not { of } => of.compares(is),
            Self::Compare { field, .. } => is(field),
        }
    }
}

/// A field of a packet that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Field {
    /// Octets from the beginning of IP's header on.
    Octets {
        /// Position of the first.
        offset: u16,
        /// Their bits: 8, 16 or 32.
        width: u8,
    },
    /// The firewall's mark.
    Mark {},
    /// `skb->priority`.
    Priority {},
    /// The packet's length with Ethernet's header.
    Length {},
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Operand {
    /// Equal.
    Equal,
    /// Greater than the value.
    Greater,
    /// Less than the value.
    Less,
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
    /// Fate of packets that exceed the rate.
    pub exceeds: Exceeds,
}

/// Fate of packets that exceed a policer's rate.
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

    pub(super) const fn takes(&self, parameters: &ClassParameters) -> bool {
        matches!(
            (self, parameters),
            (Self::Htb { .. }, ClassParameters::Htb(_))
                | (Self::Hfsc { .. }, ClassParameters::Hfsc(_))
                | (Self::Drr {}, ClassParameters::Drr { .. })
                | (
                    Self::Prio(_) | Self::Ets(_) | Self::Netem(_) | Self::Tbf(_),
                    ClassParameters::Band {},
                )
        )
    }

    /// It as a discipline of its own, if its classes are there without being added.
    pub(super) fn alone(&self) -> Option<QdiscSpec> {
        match self {
            Self::Htb { .. } | Self::Hfsc { .. } | Self::Drr {} => None,
            Self::Prio(prio) => Some(QdiscSpec::Prio(*prio)),
            Self::Ets(ets) => Some(QdiscSpec::Ets(ets.clone())),
            Self::Netem(netem) => Some(QdiscSpec::Netem(netem.clone())),
            Self::Tbf(tbf) => Some(QdiscSpec::Tbf(*tbf)),
        }
    }

    /// A discipline whose classes are there without being added, if it is one.
    pub(super) fn of(spec: &QdiscSpec) -> Option<Self> {
        if let QdiscSpec::Prio(prio) = spec {
            return Some(Self::Prio(*prio));
        }
        if let QdiscSpec::Ets(ets) = spec {
            return Some(Self::Ets(ets.clone()));
        }
        if let QdiscSpec::Netem(netem) = spec {
            return Some(Self::Netem(netem.clone()));
        }
        if let QdiscSpec::Tbf(tbf) = spec { Some(Self::Tbf(*tbf)) } else { None }
    }
}

impl TreeSpec {
    /// Classes by their minor numbers: the position of each in the list.
    pub(super) fn places(&self) -> BTreeMap<u16, usize> {
        self.classes.iter().enumerate().map(|(at, class)| (class.minor, at)).collect()
    }

    pub(super) fn leaves(&self) -> impl Iterator<Item = (usize, &QdiscSpec)> {
        self.classes.iter().enumerate().filter_map(|(at, class)| Some((at, class.leaf.as_deref()?)))
    }
    /// Classes above a class; as many as there may be where they go round.
    pub(super) fn depth(&self, at: usize) -> usize {
        let (mut depth, mut parent) = (0, self.classes[at].parent);
        while parent != 0 && depth < HTB_LEVELS {
            depth += 1;
            let above = self.classes[..at].iter().find(|other| other.minor == parent);
            parent = above.map_or(0, |above| above.parent);
        }
        depth
    }

    /// Trees within each other.
    pub(super) fn trees(&self) -> usize {
        let inner = self
            .leaves()
            .map(|(_, leaf)| if let QdiscSpec::Tc(tree) = leaf { tree.trees() } else { 0 });
        1 + inner.max().unwrap_or(0)
    }
}
