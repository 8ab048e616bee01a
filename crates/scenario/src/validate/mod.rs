//! Validation of a scenario.
//!
//! Every problem is reported, not only the first, each with the JSON path of its field.

mod algorithm;
mod changes;
mod medium;
mod memory;
mod path;
mod program;
mod quic;
mod traffic;
mod tunnel;

pub use memory::RecordingSize;

use crate::captures::CAPTURED_HOSTS_MAX;
use crate::freebsd::FreebsdSysctls;
use crate::routing::Topology;
use crate::sysctl::Sysctls;
use crate::types::{
    CpuSpec, GsoMode, HistorySpec, HostSpec, InterruptSpec, LinkSpec, NodeSpec, Record, Route,
    Scenario, StackProfile,
};
use dragstrip_qdisc::{Configuration as _, QdiscSpec};
use dragstrip_tcp::profiles;
use dragstrip_units::{Problem, Report};
use std::collections::BTreeSet;

/// The least a link must be able to hold: an ACK with all its options (20 bytes of IP, 60 of TCP)
/// and an Ethernet header.
pub const PACKET_BYTES_MIN: u64 = 94;

/// Ethernet's header; the queue disciplines count it (`qdisc_pkt_len`).
const ETHERNET_BYTES: u64 = 14;
/// The least MTU of IPv4 (RFC 791) and the largest IP packet.
const MTU_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;
/// The tick rates a kernel can be built with.
const TICK_HZ: &[u32] = &[100, 250, 300, 1000];
/// A threshold above this was never set by a reduction, and is not remembered (`tcp_update_metrics`).
const HISTORY_PACKETS_MAX: u32 = 0xfffe;
/// The most reordering that Linux 2.6 learns (`TCP_MAX_REORDERING`).
const HISTORY_REORDERING_MAX: u32 = 127;
/// A host with a longer processing time cannot answer in time.
const CPU_NS_MAX: u64 = 1_000_000_000;
/// `TCP_RTO_MAX`.
const HISTORY_NS_MAX: u64 = 120_000_000_000;

impl Scenario {
    /// Checks that this scenario can be run.
    ///
    /// # Errors
    /// Every problem, in the order of the document.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut report = Report::default();
        report.time("duration_ns", self.duration_ns, 1);
        names(self, &mut report);
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(host) = node.host() {
                host_checks(host, &format!("nodes[{index}]"), &mut report);
                burst_checks(self, host, &format!("nodes[{index}].gso"), &mut report);
            }
        }
        let topology = Topology::new(self);
        for (index, link) in self.links.iter().enumerate() {
            link_checks(link, &format!("links[{index}]"), &topology, &mut report);
        }
        medium::check(self, &topology, &mut report);
        for (index, route) in self.routes.iter().enumerate() {
            route_checks(self, route, &format!("routes[{index}]"), &topology, &mut report);
        }
        traffic::check(self, &topology, &mut report);
        let needs = path::check(self, &topology, &mut report);
        if !self.changes.is_empty() {
            changes::check(self, &topology, &needs, &mut report);
        }
        record_checks(self, &mut report);
        if report.problems.is_empty() { Ok(()) } else { Err(report.problems) }
    }
}

/// Every list that is referred to, or that figures name, has distinct names.
fn names(scenario: &Scenario, report: &mut Report) {
    let nodes = scenario.nodes.iter().enumerate();
    distinct(nodes.map(|(i, node)| (format!("nodes[{i}].name"), node.name())), report);
    let links = scenario.links.iter().enumerate();
    distinct(links.map(|(i, link)| (format!("links[{i}].name"), link.name.as_str())), report);
    let flows = scenario.flows.iter().enumerate();
    distinct(flows.map(|(i, flow)| (format!("flows[{i}].label"), flow.label.as_str())), report);
    let probes = scenario.probes.iter().enumerate();
    distinct(probes.map(|(i, probe)| (format!("probes[{i}].label"), probe.label.as_str())), report);
}

/// Characters of a name: files are named after it.
const NAME_MAX: usize = 100;

/// Invisible characters: those that change the direction of the text around them (UAX #9) or have no width, and line
/// and paragraph separators.
const fn unseen(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

fn distinct<'a>(names: impl Iterator<Item = (String, &'a str)>, report: &mut Report) {
    let mut used_names = BTreeSet::new();
    for (field, name) in names {
        if name.trim().is_empty() || name.contains(char::is_control) || name.contains(unseen) {
            report.add(field, format!("{name:?}"), "a name that people can read");
        } else if name.chars().count() > NAME_MAX {
            let begin: String = name.chars().take(20).collect();
            let expected = format!("a name of at most {NAME_MAX} characters");
            report.add(
                field,
                format!("{begin:?}... ({} characters)", name.chars().count()),
                expected,
            );
        } else if !used_names.insert(name) {
            report.add(field, format!("{name:?} again"), "a name that nothing else has");
        }
    }
}

fn host_checks(host: &HostSpec, at: &str, report: &mut Report) {
    let HostSpec { name: _, profile, sysctl, gso, mtu_bytes, tick_hz, history, cpu, interrupts } =
        host;
    let row = profile.row();
    if let Some(reason) = row.no_bursts
        && *gso != GsoMode::Off
    {
        let value = if *gso == GsoMode::Whole { "whole" } else { "auto" };
        report.add(format!("{at}.gso"), value, format!("off: {reason}"));
    }
    let problems = match row.sysctls {
        profiles::Sysctls::Linux { .. } => Sysctls::of_kernel_all(*profile, sysctl).1,
        profiles::Sysctls::Freebsd => FreebsdSysctls::all(sysctl).1,
    };
    let path = format!("{at}.sysctl");
    report.problems.extend(problems.into_iter().map(|problem| problem.within(&path)));
    if !MTU_BYTES.contains(mtu_bytes) {
        report.add(format!("{at}.mtu_bytes"), mtu_bytes, "from 68 to 65535");
    }
    if let Some(tick_hz) = tick_hz
        && !TICK_HZ.contains(tick_hz)
    {
        report.add(format!("{at}.tick_hz"), tick_hz, "one of 100, 250, 300, 1000");
    }
    if let Some(history) = history {
        history_checks(*profile, history, at, report);
    }
    if let Some(cpu) = cpu {
        cpu_checks(cpu, &format!("{at}.cpu"), report);
    }
    if let Some(InterruptSpec { gap_ns, gro: _ }) = interrupts {
        if !(1..=CPU_NS_MAX).contains(gap_ns) {
            report.add(format!("{at}.interrupts.gap_ns"), gap_ns, "from 1 ns to 1 s");
        }
        if cpu.is_some() {
            let expected = "none beside cpu, whose packets are processed one by one";
            report.add(format!("{at}.interrupts"), "interrupts", expected);
        }
    }
}

/// Reports hosts whose bursts cannot be one packet.
fn burst_checks(scenario: &Scenario, host: &HostSpec, at: &str, report: &mut Report) {
    if host.gso != GsoMode::Whole || host.profile.row().no_bursts.is_some() {
        return;
    }
    if matches!(host.profile, StackProfile::Linux2627 | StackProfile::Linux2638) {
        report.add(at, "whole", "off or auto: an interface of Linux 2.6 refuses segments here");
    } else if let Some(cuts) = scenario.cuts_bursts() {
        report.add(at, "whole", format!("off or auto: {cuts} carries single frames"));
    }
}

impl Scenario {
    /// Hosts with a discipline at their own interface that paces connections, as fq does (`fq_classify`, since Linux 3.12).
    #[must_use]
    pub fn paced_hosts(&self) -> BTreeSet<&str> {
        fn paces(qdisc: &QdiscSpec) -> bool {
            if let QdiscSpec::Fq(spec) = qdisc {
                return spec.pacing;
            }
            qdisc.classes().iter().any(|class| paces(class.child))
        }
        let pacing = self.links.iter().filter(|link| paces(&link.qdisc));
        let senders: BTreeSet<&str> = pacing.map(|link| link.from.as_str()).collect();
        let has_fq = |host: &&HostSpec| {
            use StackProfile::{Linux6, Linux7, Linux415, Linux515L4s, Linux612};
            matches!(host.profile, Linux6 | Linux612 | Linux7 | Linux515L4s | Linux415)
        };
        let hosts = self.nodes.iter().filter_map(NodeSpec::host).filter(has_fq);
        hosts.map(|host| host.name.as_str()).filter(|name| senders.contains(name)).collect()
    }

    /// The first obstacle to a burst as one packet: a medium, or a discipline that takes single frames only, such as a
    /// token bucket, in which it might not fit (`tbf_segment`).
    #[must_use]
    pub fn cuts_bursts(&self) -> Option<String> {
        fn cuts(qdisc: &QdiscSpec) -> Option<&'static str> {
            if qdisc.cuts_bursts() {
                return Some(qdisc.kind());
            }
            qdisc.classes().iter().find_map(|class| cuts(class.child))
        }
        self.links.iter().find_map(|link| match &link.medium {
            Some(medium) => Some(format!("the medium {medium}")),
            None => cuts(&link.qdisc).map(|kind| format!("the {kind} of {}", link.name)),
        })
    }
}

fn cpu_checks(cpu: &CpuSpec, at: &str, report: &mut Report) {
    let CpuSpec { shared, receive_ns, ack_ns, send_ns } = cpu;
    if let Some(name) = shared {
        distinct([(format!("{at}.shared"), name.as_str())].into_iter(), report);
    }
    for (field, ns) in [("receive_ns", receive_ns), ("ack_ns", ack_ns), ("send_ns", send_ns)] {
        if *ns > CPU_NS_MAX {
            report.add(format!("{at}.{field}"), ns, "at most 1 s for a packet");
        }
    }
}

fn history_checks(profile: StackProfile, history: &HistorySpec, at: &str, report: &mut Report) {
    let HistorySpec { ssthresh_packets, reordering_packets, rtt_ns, rtt_deviation_ns } = *history;
    let takes_over = |profile: &StackProfile| (profile.row().settings)().metrics_cache;
    let only_threshold = reordering_packets == 0 && rtt_ns == 0;
    if !(takes_over(&profile) || profile.row().tolerates_threshold && only_threshold) {
        let profiles = StackProfile::ALL.iter().filter(|profile| takes_over(profile));
        let profiles: Vec<&str> = profiles.map(|profile| profile.name()).collect();
        let expected = format!("none: only {} go by one here", profiles.join(" and "));
        report.add(format!("{at}.history"), "a history", expected);
    }
    if ssthresh_packets == 1 || ssthresh_packets > HISTORY_PACKETS_MAX {
        report.add(
            format!("{at}.history.ssthresh_packets"),
            ssthresh_packets,
            "from 2 to 65534, or 0",
        );
    }
    if reordering_packets > HISTORY_REORDERING_MAX {
        let expected = "at most 127, the most that is learnt";
        report.add(format!("{at}.history.reordering_packets"), reordering_packets, expected);
    }
    for (field, ns) in [("rtt_ns", rtt_ns), ("rtt_deviation_ns", rtt_deviation_ns)] {
        if ns > HISTORY_NS_MAX {
            report.add(format!("{at}.history.{field}"), ns, "at most 120 s");
        }
    }
    if rtt_ns == 0 && rtt_deviation_ns > 0 {
        let expected = "0 where no RTT is known";
        report.add(format!("{at}.history.rtt_deviation_ns"), rtt_deviation_ns, expected);
    }
}

fn link_checks(link: &LinkSpec, at: &str, topology: &Topology, report: &mut Report) {
    // The medium is judged together with all the links that name it.
    let LinkSpec { name: _, from, to, rate_bps, delay_ns, overhead_bytes, medium: _, qdisc, netem } =
        link;
    for (field, node) in [("from", from), ("to", to)] {
        if topology.node(node).is_none() {
            report.add(format!("{at}.{field}"), format!("{node:?}"), "the name of a node");
        }
    }
    if from == to {
        report.add(format!("{at}.to"), format!("{to:?}"), "another node than the link comes from");
    }
    if let Some(bps) = rate_bps {
        report.rate(format!("{at}.rate_bps"), *bps);
    }
    report.time(format!("{at}.delay_ns"), *delay_ns, 0);
    report.at_most(format!("{at}.overhead_bytes"), *overhead_bytes, *MTU_BYTES.end());
    qdisc.check(&format!("{at}.qdisc"), report);
    if let Some(netem) = netem {
        netem.check(&format!("{at}.netem"), report);
    }
}

fn route_checks(
    scenario: &Scenario,
    route: &Route,
    at: &str,
    topology: &Topology,
    report: &mut Report,
) {
    let Route { node, destination, link } = route;
    if topology.node(node).is_none() {
        report.add(format!("{at}.node"), format!("{node:?}"), "the name of a node");
    }
    let is_host = |node: &NodeSpec| node.host().is_some();
    let target = topology.node(destination).map(|node| &scenario.nodes[node]);
    if !target.is_some_and(is_host) {
        report.add(format!("{at}.destination"), format!("{destination:?}"), "the name of a host");
    }
    match topology.link(link).map(|index| &scenario.links[index]) {
        None => report.add(format!("{at}.link"), format!("{link:?}"), "the name of a link"),
        Some(found) if found.from != *node && topology.node(node).is_some() => {
            report.add(
                format!("{at}.link"),
                format!("{link:?}"),
                format!("a link that leaves {node:?}"),
            );
        }
        Some(_) => {}
    }
}

fn record_checks(scenario: &Scenario, report: &mut Report) {
    let Record { interval_ns, every_ack: _, rtts: _, cc_state: _, captures } = &scenario.record;
    report.time("record.interval_ns", *interval_ns, 1);
    if *captures && scenario.captured_hosts().len() > CAPTURED_HOSTS_MAX {
        let expected = format!("false: TCP flows end at more than {CAPTURED_HOSTS_MAX} hosts");
        report.add("record.captures", "true", expected);
    }
}

#[cfg(test)]
mod tests;
