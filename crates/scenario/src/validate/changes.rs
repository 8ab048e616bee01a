//! Validation of links' changes.

use super::path::Need;
use super::{link_checks, path};
use crate::changes::has;
use crate::routing::Topology;
use crate::types::{ChangeSpec, LinkSpec, Scenario};
use dragstrip_qdisc::Change;
use dragstrip_units::tc::format_time;
use dragstrip_units::{Duration, Report};

/// More than a value per 0.1 s for half an hour.
const CHANGES_MAX: usize = 20_000;

pub(super) fn check(scenario: &Scenario, topology: &Topology, needs: &[Need], report: &mut Report) {
    if scenario.changes.len() > CHANGES_MAX {
        let expected = format!("at most {CHANGES_MAX} in all");
        report.add("changes", scenario.changes.len(), expected);
        return;
    }
    let mut links: Vec<LinkSpec> = scenario.links.clone();
    let mut order: Vec<usize> = (0..scenario.changes.len()).collect();
    order.sort_by_key(|&index| scenario.changes[index].at_ns);
    for index in order {
        let (change, at) = (&scenario.changes[index], format!("changes[{index}]"));
        if change.at_ns >= scenario.duration_ns {
            let end = format_time(Duration::from_nanos(scenario.duration_ns));
            let expected = format!("a time before the run's end at {end}");
            report.add(format!("{at}.at_ns"), change.at_ns, expected);
        }
        if change.is_empty() {
            let expected = "a rate, delay, loss, limit, or whether the link is up";
            report.add(at.clone(), "nothing", expected);
        }
        let Some(number) = topology.link(&change.link) else {
            report.add(format!("{at}.link"), format!("{:?}", change.link), "the name of a link");
            continue;
        };
        settings(change, &links[number], &at, report);
        change.apply(&mut links[number]);
        let mut then = Report::default();
        link_checks(&links[number], "", topology, &mut then);
        path::check_room(&links[number].qdisc, &needs[number], "", &mut then);
        for problem in then.problems {
            // Errors in the initial settings have been reported with the link.
            let of = |part: &str| problem.field.contains(part);
            let field = if of("loss") && change.loss.is_some() {
                "loss"
            } else if of("delay") && change.delay_ns.is_some() {
                "delay_ns"
            } else if (of("rate") || of("burst") || of("ceil")) && change.rate_bps.is_some() {
                "rate_bps"
            } else if change.limit_bytes.is_some() {
                "limit_bytes"
            } else if change.limit_packets.is_some() {
                "limit_packets"
            } else {
                continue;
            };
            report.add(format!("{at}.{field}"), problem.value, problem.expected);
        }
    }
}

/// Reports settings of a change that the link does not have.
fn settings(change: &ChangeSpec, link: &LinkSpec, at: &str, report: &mut Report) {
    let ChangeSpec {
        at_ns: _,
        link: _,
        rate_bps,
        delay_ns,
        loss,
        limit_bytes,
        limit_packets,
        up: _,
    } = change;
    let kind = link.qdisc.kind();
    let name = &link.name;
    if let Some(bps) = rate_bps
        && (link.medium.is_some()
            || link.rate_bps.is_none() && !has(&link.qdisc, Change::RateBps(*bps)))
    {
        let owners = "a wire, htb, tbf or cake with a bandwidth has";
        let expected = format!("none: {name} has no rate of its own ({owners})");
        report.add(format!("{at}.rate_bps"), bps, expected);
    }
    let counts_bytes = has(&link.qdisc, Change::LimitBytes(1 << 20));
    let counts_packets = has(&link.qdisc, Change::LimitPackets(1000));
    let no_limit = link.unchangeable().map_or_else(
        || "has no limit of its own".to_owned(),
        |kind| {
            format!(
                "has a queue {kind}, which cannot be changed: sch_{kind} has no change operation"
            )
        },
    );
    if let Some(bytes) = limit_bytes
        && !counts_bytes
    {
        let why = if counts_packets { "counts packets" } else { &no_limit };
        report.add(format!("{at}.limit_bytes"), bytes, format!("none: the {kind} of {name} {why}"));
    } else if let Some(bytes) = limit_bytes
        && !has(&link.qdisc, Change::LimitBytes(*bytes))
    {
        report.add(format!("{at}.limit_bytes"), bytes, "at most 4294967295");
    }
    if let Some(packets) = limit_packets
        && !counts_packets
    {
        let why = if counts_bytes { "counts bytes" } else { &no_limit };
        let expected = format!("none: the {kind} of {name} {why}");
        report.add(format!("{at}.limit_packets"), packets, expected);
    }
    if let Some(loss) = loss {
        report.share(format!("{at}.loss"), *loss);
    }
    if let (Some(ns), Some(netem)) = (delay_ns, &link.netem)
        && (netem.reorder > 0.0 || netem.gap > 0)
    {
        let expected = format!("none: the netem of {name} sends packets past its delay (reorder)");
        report.add(format!("{at}.delay_ns"), ns, expected);
    }
}
