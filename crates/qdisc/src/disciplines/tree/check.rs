//! Ranges and contradictions of a tree.

use super::HTB_LEVELS;
use super::filter::{comparable, octets};
use super::types::{
    ClassParameters, ClassSpec, Condition, Field, FilterSpec, Matching, SchedulerSpec, TreeSpec,
};
use crate::disciplines::{Configuration as _, QdiscSpec};
use dragstrip_units::Report;

/// Most trees within each other.
const TREES_MAX: usize = 4;
/// Most classes of one discipline.
const CLASSES_MAX: usize = 4_000;
/// Most filters of one discipline.
pub(super) const FILTERS_MAX: usize = 4_000;

/// Most conditions beside one another in a filter.
const CONDITIONS_MAX: usize = 1_000;

/// Everything of a tree; `at` is its JSON path.
pub(super) fn tree(tree: &TreeSpec, at: &str, report: &mut Report) {
    if tree.handle == 0 || tree.handle == u16::MAX {
        report.add(format!("{at}.handle"), tree.handle, "from 1 to 65534");
    }
    if tree.trees() > TREES_MAX {
        let expected = format!("at most {TREES_MAX} disciplines with classes within each other");
        report.add(format!("{at}.classes"), "more", expected);
        return;
    }
    if tree.classes.len() > CLASSES_MAX || tree.filters.len() > FILTERS_MAX {
        let expected = format!("at most {CLASSES_MAX} classes and {FILTERS_MAX} filters");
        report.add(format!("{at}.classes"), tree.classes.len(), expected);
        return;
    }
    match &tree.scheduler {
        SchedulerSpec::Prio(prio) => prio.check(&format!("{at}.scheduler"), report),
        SchedulerSpec::Ets(ets) => ets.check(&format!("{at}.scheduler"), report),
        SchedulerSpec::Netem(netem) => netem.check(&format!("{at}.scheduler"), report),
        SchedulerSpec::Tbf(tbf) => tbf.check(&format!("{at}.scheduler"), report),
        SchedulerSpec::Htb { direct_packets, .. } => {
            report.at_least(format!("{at}.scheduler.direct_packets"), *direct_packets, 1);
        }
        SchedulerSpec::Hfsc { .. } | SchedulerSpec::Drr {} => {}
    }
    let numbered = || tree.classes.iter().zip(1..).all(|(class, minor)| class.minor == minor);
    if let Some(bands) = tree.scheduler.bands()
        && (tree.classes.len() != bands || !numbered())
    {
        let expected = format!("{bands}, numbered from 1 on");
        report.add(format!("{at}.classes"), tree.classes.len(), expected);
    }
    for place in 0..tree.classes.len() {
        class(tree, place, &format!("{at}.classes[{place}]"), report);
    }
    for (place, one) in tree.filters.iter().enumerate() {
        let field = format!("{at}.filters[{place}]");
        filter(one, &field, report);
        let is_inner = |class: &ClassSpec| class.minor == one.parent && class.leaf.is_none();
        if one.parent != 0 && !tree.classes.iter().any(is_inner) {
            let expected = "0 or the number of a class with classes below it";
            report.add(format!("{field}.parent"), one.parent, expected);
        }
        if matches!(tree.scheduler, SchedulerSpec::Netem(_) | SchedulerSpec::Tbf(_)) {
            let expected = format!("none: {} has one class", tree.scheduler.kind());
            report.add(field, "a filter", expected);
        }
    }
}

fn class(tree: &TreeSpec, at: usize, field: &str, report: &mut Report) {
    let class = &tree.classes[at];
    let before = &tree.classes[..at];
    if class.minor == 0 || before.iter().any(|other| other.minor == class.minor) {
        report.add(
            format!("{field}.minor"),
            class.minor,
            "a number above 0 that no other class has",
        );
    }
    let depth = tree.depth(at);
    let above = before.iter().find(|other| other.minor == class.parent);
    match (class.parent, above) {
        (0, _) => {}
        (parent, None) => {
            report.add(format!("{field}.parent"), parent, "0 or the number of a class before it");
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
    if tree.scheduler.bands().is_some() || matches!(tree.scheduler, SchedulerSpec::Drr {}) {
        if class.parent != 0 {
            let expected = format!("0: {} has no classes within classes", tree.scheduler.kind());
            report.add(format!("{field}.parent"), class.parent, expected);
        }
    } else if depth >= HTB_LEVELS {
        let expected = format!("at most {HTB_LEVELS} levels of classes");
        report.add(format!("{field}.parent"), class.parent, expected);
    }
    let is_inner = tree.classes.iter().any(|other| other.parent == class.minor);
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
    if !tree.scheduler.takes(&class.parameters) {
        let expected = format!("those of {}", tree.scheduler.kind());
        report.add(format!("{field}.parameters"), "another discipline's", expected);
    }
    parameters(&class.parameters, &format!("{field}.parameters"), report);
}

fn parameters(parameters: &ClassParameters, field: &str, report: &mut Report) {
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

fn filter(filter: &FilterSpec, field: &str, report: &mut Report) {
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
        Matching::Basic { condition: given } => {
            condition(given, &format!("{field}.matching.condition"), report);
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

/// Ranges of a condition's parts.
fn condition(condition: &Condition, at: &str, report: &mut Report) {
    match condition {
        Condition::All { of } | Condition::Any { of } => {
            if of.is_empty() || of.len() > CONDITIONS_MAX {
                let expected = format!("from 1 to {CONDITIONS_MAX} conditions");
                report.add(format!("{at}.of"), of.len(), expected);
                return;
            }
            for (number, part) in of.iter().enumerate() {
                self::condition(part, &format!("{at}.of[{number}]"), report);
            }
        }
        Condition::Not { of } => self::condition(of, &format!("{at}.of"), report),
        Condition::Compare { field: Field::Octets { offset, width }, mask, .. } => {
            let Some(known) = octets(*offset, *width) else {
                let expected = "8, 16 or 32 bits within four octets that are modelled: offsets 0 to 23, 32 and 33";
                report.add(format!("{at}.field"), format!("{width} bits at {offset}"), expected);
                return;
            };
            if mask & !known != 0 {
                let expected = format!("bits of {known:#010x}: nothing else there is modelled");
                report.add(format!("{at}.mask"), format!("{mask:#x}"), expected);
            }
        }
        Condition::Compare { .. } => {}
    }
}
