//! A tree in the kernel's form: the messages that tc(8) would send, one for each command (`q_htb.c`, `q_hfsc.c`, `f_u32.c`,
//! `f_fw.c`, `f_flow.c`, `f_matchall.c`).

use super::types::{
    ClassParameters, CurveSpec, Exceeds, Field, FilterSpec, FlowKey, HtbClass, Key, Matching,
    PolicerSpec, SchedulerSpec, TreeSpec,
};
use crate::disciplines::police::PoliceSpec;
use crate::disciplines::{Configuration as _, Confirmation, QdiscSpec};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};

/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// `ETH_P_IP` in network order, the lower half of a filter's `tcm_info`.
const IPV4: u32 = 0x0800_u16.to_be() as u32;
/// `TC_U32_TERMINAL`.
const TERMINAL: u8 = 1;
/// `TC_ACT_OK`, `TC_ACT_SHOT`, `TC_ACT_UNSPEC`.
const OK: u32 = 0;
const SHOT: u32 = 2;
const UNSPEC: u32 = u32::MAX;
/// Most disciplines have handles below `0x8000`; from there the kernel takes those that it gives itself.
const SPARE: u16 = 0x7fff;
/// Length of an attribute's header.
const HEADER: usize = 4;
/// Offset of a policer's verdict in `struct tc_police`.
const VERDICT: std::ops::Range<usize> = 4..8;

/// Kind of object that a message adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A discipline.
    Qdisc,
    /// A class.
    Class,
    /// A filter.
    Filter,
}

/// A message: the fields of `struct tcmsg` and the attributes behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Addition {
    /// Kind of the object.
    pub object: Object,
    /// Its number; 0: the kernel's choice.
    pub handle: u32,
    /// The number that it hangs on.
    pub parent: u32,
    /// Priority and protocol of a filter.
    pub info: u32,
    /// `TCA_KIND`.
    pub kind: &'static str,
    /// The value of `TCA_OPTIONS`; none: the kind says it all.
    pub options: Option<Vec<u8>>,
    /// True when the kernel wants those options flagged as nested.
    pub nested: bool,
    /// The discipline that the message adds, if one alone describes it.
    pub spec: Option<QdiscSpec>,
}

impl Addition {
    /// Returns the values that the kernel must report in `TCA_OPTIONS`.
    #[must_use]
    pub fn confirm(&self, reported: &[u8]) -> Vec<Confirmation> {
        if let Some(spec) = &self.spec {
            return spec.confirm(reported);
        }
        let sent = self.options.as_deref().unwrap_or_default();
        let names: &[(u16, usize, &'static str)] = match (self.object, self.kind) {
            (Object::Class, "htb") => &[
                (1, 8, "rate in bytes per second"),
                (1, 20, "ceiling in bytes per second"),
                (1, 24, "burst in ticks"),
                (1, 28, "burst at the ceiling in ticks"),
                (1, 32, "quantum"),
                (1, 40, "prio"),
            ],
            (Object::Class, "hfsc") => &[
                (1, 0, "m1 of rt"),
                (1, 4, "d of rt"),
                (1, 8, "m2 of rt"),
                (2, 0, "m1 of ls"),
                (2, 4, "d of ls"),
                (2, 8, "m2 of ls"),
                (3, 0, "m1 of ul"),
                (3, 4, "d of ul"),
                (3, 8, "m2 of ul"),
            ],
            (Object::Class, "drr") => &[(1, 0, "quantum")],
            _ => &[],
        };
        let number =
            |of: &[u8], kind, at| Attributes(of).get(kind).and_then(|value| word(value, at));
        let wanted = names.iter().filter_map(|&(kind, at, what)| {
            Some(Confirmation::new(what, number(reported, kind, at), number(sent, kind, at)?))
        });
        wanted.collect()
    }
}

const fn id(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}

impl TreeSpec {
    /// The messages in the order in which they are sent.
    /// The tree hangs on `parent`, a class of another discipline; none: on the interface.
    #[must_use]
    pub fn additions(&self, parent: Option<u32>) -> Vec<Addition> {
        let mut additions = Vec::new();
        let spare = self.spare_handles();
        self.add(parent.unwrap_or(ROOT), &mut spare.into_iter().skip(1), &mut additions);
        additions
    }

    /// A handle that nothing in the tree has, for a discipline around it.
    #[must_use]
    pub fn outer_handle(&self) -> u32 {
        self.spare_handles().first().map_or(0, |&major| id(major, 0))
    }

    /// The tree's own handle.
    #[must_use]
    pub const fn root_handle(&self) -> u32 {
        id(self.handle, 0)
    }

    /// Disciplines in it that mark packets, each with its handle.
    #[must_use]
    pub fn marking_leaves(&self) -> Vec<(u32, QdiscSpec)> {
        let marking = |spec: &QdiscSpec| spec.facts().marks;
        let disciplines = self.additions(None).into_iter();
        disciplines.filter_map(|added| Some((added.handle, added.spec.filter(marking)?))).collect()
    }

    /// Handles for disciplines that no command gives one: for a discipline around the tree, then for each leaf.
    fn spare_handles(&self) -> Vec<u16> {
        let mut used = Vec::new();
        let leaves = self.majors(&mut used);
        (1..=SPARE).rev().filter(|major| !used.contains(major)).take(leaves + 1).collect()
    }

    /// Collects the handles of the tree and of those in it; the answer is the number of other leaves.
    fn majors(&self, used: &mut Vec<u16>) -> usize {
        used.push(self.handle);
        let leaves = self.leaves();
        leaves
            .map(|(_, leaf)| if let QdiscSpec::Tc(inner) = leaf { inner.majors(used) } else { 1 })
            .sum()
    }

    fn add(
        &self,
        parent: u32,
        spare: &mut impl Iterator<Item = u16>,
        additions: &mut Vec<Addition>,
    ) {
        let nothing = Addition {
            object: Object::Qdisc,
            handle: id(self.handle, 0),
            parent,
            info: 0,
            kind: self.scheduler.kind(),
            options: None,
            nested: false,
            spec: None,
        };
        let (options, nested) = scheduler_options(&self.scheduler);
        let spec = self.scheduler.alone();
        additions.push(Addition { options, nested, spec, ..nothing.clone() });
        for class in &self.classes {
            let Some(options) = class_options(&class.parameters) else { continue };
            additions.push(Addition {
                object: Object::Class,
                handle: id(self.handle, class.minor),
                parent: id(self.handle, class.parent),
                options: Some(options),
                ..nothing.clone()
            });
        }
        for class in &self.classes {
            let at = id(self.handle, class.minor);
            match class.leaf.as_deref() {
                Some(QdiscSpec::Tc(inner)) => inner.add(at, spare, additions),
                Some(leaf) => additions.push(Addition {
                    handle: id(spare.next().unwrap_or_default(), 0),
                    parent: at,
                    kind: leaf.kind(),
                    options: leaf.options(),
                    nested: leaf.nested(),
                    spec: Some(leaf.clone()),
                    ..nothing.clone()
                }),
                None => {}
            }
        }
        for filter in &self.filters {
            let shares = self.filters.iter().any(|other| {
                (other.parent, other.priority) == (filter.parent, filter.priority)
                    && matches!(other.matching, Matching::U32 { .. })
            });
            let (kind, handle, options) = filter_options(filter, self.handle, shares);
            additions.push(Addition {
                object: Object::Filter,
                handle,
                parent: id(self.handle, filter.parent),
                info: u32::from(filter.priority) << 16 | IPV4,
                kind,
                options,
                ..nothing.clone()
            });
        }
    }
}

fn scheduler_options(scheduler: &SchedulerSpec) -> (Option<Vec<u8>>, bool) {
    match scheduler {
        SchedulerSpec::Htb { default_minor, direct_packets } => {
            let options = Writer::value(|inside| {
                // TCA_HTB_INIT, struct tc_htb_glob; TCA_HTB_DIRECT_QLEN
                inside.bytes(2, &words(&[3, 10, u32::from(*default_minor), 0, 0]));
                inside.u32(5, *direct_packets);
            });
            (Some(options), false)
        }
        // struct tc_hfsc_qopt
        SchedulerSpec::Hfsc { default_minor } => {
            (Some(default_minor.to_ne_bytes().to_vec()), false)
        }
        SchedulerSpec::Drr {} => (None, false),
        SchedulerSpec::Prio(prio) => (prio.options(), false),
        SchedulerSpec::Ets(ets) => (ets.options(), true),
        SchedulerSpec::Netem(netem) => (netem.options(), false),
        SchedulerSpec::Tbf(tbf) => (tbf.options(), false),
    }
}

/// The value of a class's `TCA_OPTIONS`; none: it exists by itself.
fn class_options(parameters: &ClassParameters) -> Option<Vec<u8>> {
    Some(match parameters {
        ClassParameters::Htb(htb) => htb_options(htb),
        ClassParameters::Hfsc(hfsc) => Writer::value(|inside| {
            // TCA_HFSC_RSC, FSC, USC: struct tc_service_curve
            for (kind, curve) in [(1, hfsc.real_time), (2, hfsc.link_share), (3, hfsc.upper_limit)]
            {
                if let Some(CurveSpec { m1_bps, d_ns, m2_bps }) = curve {
                    let numbers = [m1_bps / 8, d_ns.div_ceil(1_000), m2_bps / 8];
                    inside.bytes(kind, &words(&numbers.map(saturated)));
                }
            }
        }),
        ClassParameters::Drr { quantum_bytes } => Writer::value(|inside| {
            inside.u32(1, *quantum_bytes); // TCA_DRR_QUANTUM
        }),
        ClassParameters::Band {} => return None,
    })
}

fn htb_options(htb: &HtbClass) -> Vec<u8> {
    let spec = |rate_bps| ratespec(rate_bps, htb.overhead_bytes, htb.mpu_bytes, htb.linklayer_atm);
    let mut parameters = spec(htb.rate_bps);
    parameters.extend(spec(htb.ceil_bps));
    let (buffer, cbuffer) =
        (ticks(htb.rate_bps, htb.burst_bytes), ticks(htb.ceil_bps, htb.cburst_bytes));
    let priority = u32::from(htb.priority);
    parameters.extend(words(&[buffer, cbuffer, htb.quantum_bytes, 0, priority]));
    Writer::value(|inside| {
        inside.bytes(1, &parameters); // TCA_HTB_PARMS
        inside.u64(6, htb.rate_bps / 8).u64(7, htb.ceil_bps / 8); // TCA_HTB_RATE64, TCA_HTB_CEIL64
    })
}

/// `struct tc_u32_sel`, with a `struct tc_u32_key` for each word.
#[must_use]
pub fn selector(keys: &[Key]) -> Vec<u8> {
    let mut selector = vec![TERMINAL, 0, u8::try_from(keys.len()).unwrap_or(u8::MAX)];
    selector.resize(16, 0);
    for key in keys {
        selector.extend_from_slice(&key.mask.to_be_bytes());
        selector.extend_from_slice(&key.value.to_be_bytes());
        selector.extend(words(&[u32::from(key.offset), 0]));
    }
    selector
}

/// Kind, number and options of a filter; `shares`: others of its priority are u32, and a priority has one kind.
fn filter_options(
    filter: &FilterSpec,
    major: u16,
    shares: bool,
) -> (&'static str, u32, Option<Vec<u8>>) {
    let class = filter.class.map(|class| id(class.major, class.minor));
    let actions = |inside: &mut Writer, kind: u16| {
        if filter.police.is_none() && !filter.drop {
            return;
        }
        inside.nest(kind, |actions| {
            let police =
                filter.police.as_ref().map(|police| (PoliceSpec::KIND, police_options(police)));
            // TCA_GACT_PARMS, struct tc_gact: what it does is the third word.
            let gact = || {
                Writer::value(|inside| {
                    inside.bytes(2, &words(&[0, 0, SHOT, 0, 0]));
                })
            };
            let drop = filter.drop.then(|| ("gact", gact()));
            for (number, (kind, options)) in (1..).zip(police.into_iter().chain(drop)) {
                actions.nest(number, |action| {
                    action.text(1, kind).bytes(2, &options);
                });
            }
        });
    };
    let u32_options = |keys: &[Key]| {
        Writer::value(|inside| {
            if let Some(class) = class {
                inside.u32(1, class);
            }
            actions(inside, 7);
            inside.bytes(5, &selector(keys));
        })
    };
    match &filter.matching {
        Matching::Everything {} if shares => {
            ("u32", 0, Some(u32_options(&[Key { offset: 0, value: 0, mask: 0 }])))
        }
        Matching::Everything {} => {
            let options = Writer::value(|inside| {
                if let Some(class) = class {
                    inside.u32(1, class);
                }
                actions(inside, 2);
            });
            ("matchall", 0, Some(options))
        }
        Matching::U32 { keys } => ("u32", 0, Some(u32_options(keys))),
        // Never sent: the agent refuses it before.
        Matching::Basic { .. } => ("basic", 0, None),
        Matching::Fw { mark: None, .. } => ("fw", 0, None),
        Matching::Fw { mark: Some(mark), mask } => {
            let options = Writer::value(|inside| {
                if let Some(class) = class {
                    inside.u32(1, class);
                }
                actions(inside, 4);
                if *mask != u32::MAX {
                    inside.u32(5, *mask);
                }
            });
            ("fw", *mark, Some(options))
        }
        Matching::Flow { keys, divisor, base } => {
            let bits = keys.iter().fold(0, |sum, key| sum | 1 << flow_key(*key));
            let options = Writer::value(|inside| {
                // TCA_FLOW_KEYS, MODE (hash), BASECLASS, DIVISOR
                inside.u32(1, bits).u32(2, 1).u32(3, id(major, *base)).u32(8, *divisor);
                actions(inside, 9);
            });
            ("flow", 1, Some(options))
        }
    }
}

/// `FLOW_KEY_SRC` and on.
const fn flow_key(key: FlowKey) -> u32 {
    match key {
        FlowKey::Src => 0,
        FlowKey::Dst => 1,
        FlowKey::Proto => 2,
        FlowKey::ProtoSrc => 3,
        FlowKey::ProtoDst => 4,
        FlowKey::Priority => 6,
        FlowKey::Mark => 7,
    }
}

fn police_options(police: &PolicerSpec) -> Vec<u8> {
    let PolicerSpec { rate_bps, burst_bytes, mtu_bytes, peakrate_bps, exceeds } = *police;
    let spec =
        PoliceSpec { rate_bps, burst_bytes, mtu_bytes, peakrate_bps, ..PoliceSpec::default() };
    let mut options = spec.options().unwrap_or_default();
    let verdict = match exceeds {
        Exceeds::Drop => SHOT,
        Exceeds::Continue => UNSPEC,
        Exceeds::Ok => OK,
    };
    // TCA_POLICE_TBF comes first: its value is behind one header.
    let (start, end) = (HEADER + VERDICT.start, HEADER + VERDICT.end);
    options[start..end].copy_from_slice(&verdict.to_ne_bytes());
    options
}

impl TreeSpec {
    /// Names of all disciplines in it.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        let leaves = self.classes.iter().filter_map(|class| class.leaf.as_deref());
        let inner = leaves.flat_map(|leaf| {
            if let QdiscSpec::Tc(inner) = leaf { inner.kinds() } else { vec![leaf.kind()] }
        });
        [self.scheduler.kind()].into_iter().chain(inner).collect()
    }

    /// True when one of its filters, or of a tree in its classes, fulfils a condition.
    fn any_filter(&self, fulfils: &dyn Fn(&FilterSpec) -> bool) -> bool {
        let inner =
            |leaf: &QdiscSpec| matches!(leaf, QdiscSpec::Tc(tree) if tree.any_filter(fulfils));
        self.filters.iter().any(fulfils) || self.leaves().any(|(_, leaf)| inner(leaf))
    }

    /// True when one of its filters is of kind `basic`, whose conditions a kernel is not given here.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.any_filter(&|filter| matches!(filter.matching, Matching::Basic { .. }))
    }

    /// True when one of its filters looks at the firewall's mark.
    #[must_use]
    pub fn looks_at_marks(&self) -> bool {
        self.any_filter(&|filter| match &filter.matching {
            Matching::Fw { .. } => true,
            Matching::Flow { keys, .. } => keys.contains(&FlowKey::Mark),
            Matching::Basic { condition } => {
                condition.compares(&|field| matches!(field, Field::Mark {}))
            }
            Matching::Everything {} | Matching::U32 { .. } => false,
        })
    }
}
