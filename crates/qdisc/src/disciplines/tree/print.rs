//! A tree in tc's commands, written.

use super::types::{
    ClassParameters, ClassSpec, Condition, CurveSpec, Exceeds, Field, FilterSpec, FlowKey,
    HtbClass, Key, Matching, Operand, PolicerSpec, SchedulerSpec, TreeSpec,
};
use crate::disciplines::{Configuration as _, QdiscSpec};
use crate::tc::{Text, rate, size, time};
use std::net::Ipv4Addr;

/// The commands, with `;` between them.
pub(super) fn commands(tree: &TreeSpec) -> Text {
    let mut lines = Vec::new();
    add(tree, "root", &mut lines);
    let mut text = Text::new(lines.first().map_or("tc", String::as_str));
    for line in lines.iter().skip(1) {
        text = text.joined(";").word(line);
    }
    text
}

fn add(tree: &TreeSpec, place: &str, lines: &mut Vec<String>) {
    let handle = tree.handle;
    let scheduler = match &tree.scheduler {
        SchedulerSpec::Htb { default_minor, direct_packets } => {
            format!("htb default {default_minor:#x} direct_qlen {direct_packets}")
        }
        SchedulerSpec::Hfsc { default_minor } => format!("hfsc default {default_minor:#x}"),
        SchedulerSpec::Drr {} => "drr".to_owned(),
        SchedulerSpec::Prio(prio) => prio.print().to_string(),
        SchedulerSpec::Ets(ets) => ets.print().to_string(),
        SchedulerSpec::Netem(netem) => netem.print().to_string(),
        SchedulerSpec::Tbf(tbf) => tbf.print().to_string(),
    };
    lines.push(format!("tc qdisc add {place} handle {handle:x}: {scheduler}"));
    for class in &tree.classes {
        lines.extend(added(class, handle));
    }
    for class in &tree.classes {
        let Some(leaf) = &class.leaf else { continue };
        let place = format!("parent {handle:x}:{:x}", class.minor);
        if let QdiscSpec::Tc(inner) = &**leaf {
            add(inner, &place, lines);
        } else {
            lines.push(format!("tc qdisc add {place} {}", leaf.print()));
        }
    }
    for filter in &tree.filters {
        lines.push(filter_words(filter, handle));
    }
}

/// The command of a class; none: it exists by itself.
fn added(class: &ClassSpec, handle: u16) -> Option<String> {
    let (minor, parent) = (
        class.minor,
        match class.parent {
            0 => format!("{handle:x}:"),
            parent => format!("{handle:x}:{parent:x}"),
        },
    );
    let parameters = match &class.parameters {
        ClassParameters::Htb(htb) => htb_words(htb),
        ClassParameters::Hfsc(hfsc) => {
            let curves = match (hfsc.real_time, hfsc.link_share) {
                (Some(one), Some(other)) if one == other => vec![("sc", one)],
                (real_time, link_share) => real_time
                    .map(|curve| ("rt", curve))
                    .into_iter()
                    .chain(link_share.map(|curve| ("ls", curve)))
                    .collect(),
            };
            let limit = hfsc.upper_limit.map(|curve| ("ul", curve));
            let words =
                curves.into_iter().chain(limit).map(|(name, curve)| curve_words(name, &curve));
            format!("hfsc {}", words.collect::<Vec<_>>().join(" "))
        }
        ClassParameters::Drr { quantum_bytes } => format!("drr quantum {quantum_bytes}"),
        ClassParameters::Band {} => return None,
    };
    Some(format!("tc class add parent {parent} classid {handle:x}:{minor:x} {parameters}"))
}

fn htb_words(htb: &HtbClass) -> String {
    let HtbClass {
        rate_bps,
        ceil_bps,
        burst_bytes,
        cburst_bytes,
        quantum_bytes,
        priority,
        overhead_bytes,
        mpu_bytes,
        linklayer_atm,
    } = *htb;
    Text::new("htb")
        .pair("rate", rate(rate_bps))
        .pair("ceil", rate(ceil_bps))
        .pair("burst", size(burst_bytes))
        .pair("cburst", size(cburst_bytes))
        .pair("quantum", quantum_bytes)
        .optional("prio", (priority > 0).then_some(priority))
        .optional("overhead", (overhead_bytes != 0).then_some(overhead_bytes))
        .optional("mpu", (mpu_bytes > 0).then_some(mpu_bytes))
        .word(if linklayer_atm { "linklayer atm" } else { "" })
        .to_string()
}

fn curve_words(name: &str, curve: &CurveSpec) -> String {
    let CurveSpec { m1_bps, d_ns, m2_bps } = *curve;
    let first = (m1_bps > 0 || d_ns > 0).then(|| format!("m1 {} d {}", rate(m1_bps), time(d_ns)));
    Text::new(name).word(&first.unwrap_or_default()).pair("m2", rate(m2_bps)).to_string()
}

fn filter_words(filter: &FilterSpec, handle: u16) -> String {
    let parent = match filter.parent {
        0 => format!("{handle:x}:"),
        parent => format!("{handle:x}:{parent:x}"),
    };
    let text = Text::new("tc filter add")
        .pair("parent", parent)
        .word("protocol ip")
        .pair("prio", filter.priority);
    let text = match &filter.matching {
        Matching::Everything {} => text.word("matchall"),
        Matching::U32 { keys } => {
            keys.iter().fold(text.word("u32"), |text, key| text.word(&key_words(key)))
        }
        Matching::Basic { condition } => {
            text.word("basic match").word(&format!("'{}'", condition_words(condition)))
        }
        Matching::Fw { mark: None, .. } => text.word("fw"),
        Matching::Fw { mark: Some(mark), mask } => {
            text.pair("handle", format!("{mark:#x}/{mask:#x}")).word("fw")
        }
        Matching::Flow { keys, divisor, base } => {
            let keys: Vec<&str> = keys.iter().map(|key| flow_key(*key)).collect();
            text.pair("flow hash keys", keys.join(","))
                .pair("divisor", divisor)
                .pair("baseclass", format!("{handle:x}:{base:x}"))
        }
    };
    text.word(&filter.police.as_ref().map(police_words).unwrap_or_default())
        .optional(
            "classid",
            filter.class.map(|class| format!("{:x}:{:x}", class.major, class.minor)),
        )
        .word(if filter.drop { "action drop" } else { "" })
        .to_string()
}

const fn flow_key(key: FlowKey) -> &'static str {
    match key {
        FlowKey::Src => "src",
        FlowKey::Dst => "dst",
        FlowKey::Proto => "proto",
        FlowKey::ProtoSrc => "proto-src",
        FlowKey::ProtoDst => "proto-dst",
        FlowKey::Priority => "priority",
        FlowKey::Mark => "mark",
    }
}

fn police_words(police: &PolicerSpec) -> String {
    let PolicerSpec { rate_bps, burst_bytes, mtu_bytes, peakrate_bps, exceeds } = *police;
    Text::new("police")
        .pair("rate", rate(rate_bps))
        .pair("burst", size(burst_bytes))
        .pair("mtu", size(mtu_bytes.into()))
        .optional("peakrate", peakrate_bps.map(rate))
        .word(match exceeds {
            Exceeds::Drop => "drop",
            Exceeds::Continue => "continue",
            Exceeds::Ok => "ok",
        })
        .to_string()
}

/// A condition in ematches (tc-ematch(8)). tc reads `A and B or C` as `A and (B or C)`: every part has brackets.
fn condition_words(condition: &Condition) -> String {
    let part = |of: &Condition| match of {
        Condition::Compare { .. } => condition_words(of),
        Condition::All { .. } | Condition::Any { .. } | Condition::Not { .. } => {
            format!("({})", condition_words(of))
        }
    };
    let joined = |of: &[Condition], word: &str| of.iter().map(part).collect::<Vec<_>>().join(word);
    match condition {
        Condition::All { of } => joined(of, " and "),
        Condition::Any { of } => joined(of, " or "),
        Condition::Not { of } => format!("not {}", part(of)),
        Condition::Compare { field, mask, operand, value } => {
            let operand = match operand {
                Operand::Equal => "eq",
                Operand::Greater => "gt",
                Operand::Less => "lt",
            };
            let meta = |name: &str| {
                let under =
                    if *mask == u32::MAX { String::new() } else { format!(" mask {mask:#x}") };
                format!("meta({name}{under} {operand} {value})")
            };
            match field {
                Field::Octets { offset, width } => {
                    format!("cmp(u{width} at {offset} layer 1 mask {mask:#x} {operand} {value:#x})")
                }
                Field::Mark {} => meta("nf_mark"),
                Field::Priority {} => meta("priority"),
                Field::Length {} => meta("pkt_len"),
            }
        }
    }
}

/// A word's comparison, by name where it has one.
fn key_words(key: &Key) -> String {
    let Key { offset, value, mask } = *key;
    let prefix = mask.leading_ones();
    let is_prefix = mask.count_ones() == prefix;
    match offset {
        0 if mask & !0x00ff_0000 == 0 => {
            format!("match ip dsfield {:#04x} {:#04x}", value >> 16, mask >> 16)
        }
        8 if mask == 0x00ff_0000 => format!("match ip protocol {} 0xff", value >> 16),
        12 if is_prefix => format!("match ip src {}/{prefix}", Ipv4Addr::from(value)),
        16 if is_prefix => format!("match ip dst {}/{prefix}", Ipv4Addr::from(value)),
        20 if mask & 0xffff == 0 => format!("match ip sport {} {:#06x}", value >> 16, mask >> 16),
        20 if mask & !0xffff == 0 => format!("match ip dport {value} {mask:#06x}"),
        _ => format!("match u32 {value:#010x} {mask:#010x} at {offset}"),
    }
}
