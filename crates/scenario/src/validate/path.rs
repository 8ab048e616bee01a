//! Checks that packets arrive, in both directions, and that one of them fits into every queue.

use super::{ETHERNET_BYTES, PACKET_BYTES_MIN};
use crate::applications::Application;
use crate::routing::Topology;
use crate::types::{FlowSpec, LinkSpec, Scenario, Transport};
use dragstrip_qdisc::{Configuration as _, Facts, QdiscSpec};
use dragstrip_units::Report;

/// IPv4 header; with Ethernet's in front of what `size_bytes` counts of a ping.
const IP_BYTES: u64 = 20;

/// The largest packet a link must carry, and whose.
#[derive(Clone, Default)]
pub(super) struct Need {
    bytes: u64,
    whose: String,
}

/// Answers with what each link must carry.
pub(super) fn check(scenario: &Scenario, topology: &Topology, report: &mut Report) -> Vec<Need> {
    let mut needs = vec![Need::default(); scenario.links.len()];
    for (index, flow) in scenario.flows.iter().enumerate() {
        let (forward_bytes, back) = packets(scenario, flow, topology);
        let subject = format!("flow {:?}", flow.label);
        let ends = (flow.sender.as_str(), flow.receiver.as_str());
        let field = format!("flows[{index}].receiver");
        round_trip(topology, ends, (forward_bytes, back), &subject, &field, &mut needs, report);
        check_time(scenario, flow, topology, &field, report);
    }
    for (index, probe) in scenario.probes.iter().enumerate() {
        let bytes = ETHERNET_BYTES + IP_BYTES + u64::from(probe.size_bytes);
        let subject = format!("probe {:?}", probe.label);
        let ends = (probe.from.as_str(), probe.target.as_str());
        let field = format!("probes[{index}].target");
        round_trip(topology, ends, (bytes, bytes), &subject, &field, &mut needs, report);
    }
    for (index, (link, need)) in scenario.links.iter().zip(&needs).enumerate() {
        check_room(&link.qdisc, need, &format!("links[{index}].qdisc"), report);
    }
    needs
}

/// The largest frames a flow sends to its receiver and back.
fn packets(scenario: &Scenario, flow: &FlowSpec, topology: &Topology) -> (u64, u64) {
    let mtu = |name: &str| {
        let host = topology.node(name).and_then(|node| scenario.nodes[node].host());
        host.map_or(0, |host| u64::from(host.mtu_bytes))
    };
    // The handshake agrees on the smaller MTU's segment.
    let full = mtu(&flow.sender).min(mtu(&flow.receiver)) + ETHERNET_BYTES;
    match (&flow.transport, &flow.application) {
        (
            Transport::Tcp { .. },
            Application::RequestResponse { .. }
            | Application::Video { .. }
            | Application::Tunnel { .. }
            | Application::Program { .. },
        ) => (full, full),
        (Transport::Tcp { .. }, _) => (full, PACKET_BYTES_MIN),
        // Both ends pad what opens the connection.
        (Transport::Quic { .. }, _) => (full, full),
        (Transport::Udp, Application::ConstantRate { datagram_bytes, .. }) => {
            (u64::from(*datagram_bytes) + 28 + ETHERNET_BYTES, 0)
        }
        (Transport::Udp, Application::Rtp { packet_bytes, .. }) => {
            (u64::from(*packet_bytes) + 28 + ETHERNET_BYTES, PACKET_BYTES_MIN)
        }
        (Transport::Udp, _) => (0, 0),
    }
}

/// Follows packets of these sizes there and back; `field` names the far end.
fn round_trip(
    topology: &Topology,
    (near, far): (&str, &str),
    (there, back): (u64, u64),
    subject: &str,
    field: &str,
    needs: &mut [Need],
    report: &mut Report,
) {
    let (Some(from), Some(to)) = (topology.node(near), topology.node(far)) else { return };
    for (from, to, bytes, way) in [(from, to, there, "path to it"), (to, from, back, "return path")]
    {
        // UDP needs no return path.
        if bytes == 0 {
            continue;
        }
        match topology.path(from, to) {
            Ok(links) => {
                for link in links {
                    if bytes > needs[link].bytes {
                        needs[link] = Need { bytes, whose: subject.to_owned() };
                    }
                }
            }
            Err(why) => {
                report.add(field, format!("{far:?}"), format!("a {way} for packets: {why}"));
                return;
            }
        }
    }
}

/// A window that comes back at once lets the next one go at once: without a rate or a delay anywhere on its round trip
/// a TCP flow would send without end at one instant.
fn check_time(
    scenario: &Scenario,
    flow: &FlowSpec,
    topology: &Topology,
    field: &str,
    report: &mut Report,
) {
    let (Some(from), Some(to)) = (topology.node(&flow.sender), topology.node(&flow.receiver))
    else {
        return;
    };
    let (Ok(mut links), Ok(back)) = (topology.path(from, to), topology.path(to, from)) else {
        return;
    };
    links.extend(back);
    let instant = links.iter().all(|&link| takes_no_time(&scenario.links[link]));
    if flow.transport != Transport::Udp && !links.is_empty() && instant {
        let value = format!("{:?}, reached in no time", flow.receiver);
        report.add(field, value, "a path with a rate or a delay on one of its links");
    }
}

fn takes_no_time(link: &LinkSpec) -> bool {
    let instant = |facts: Facts| facts.delay_ns == 0 && facts.rate_bps.is_none();
    let wire = link.rate_bps.is_none() && link.medium.is_none() && link.delay_ns == 0;
    let netem = link.netem.as_deref().is_none_or(|netem| instant(netem.facts()));
    instant(link.qdisc.facts()) && wire && netem
}

/// Checks that the largest packet of the path fits into the queue.
pub(super) fn check_room(spec: &QdiscSpec, need: &Need, at: &str, report: &mut Report) {
    let facts = spec.facts();
    for (field, payment) in facts.pays {
        let least = payment.least_bps(need.bytes);
        if payment.rate_bps < least {
            let Need { bytes, whose } = need;
            let expected = format!(
                "at least {least}: a packet of {whose} ({bytes} bytes) would owe more than {} s, which htb forgets",
                payment.seconds
            );
            report.add(format!("{at}.{field}"), payment.rate_bps, expected);
        }
    }
    for (field, room) in facts.holds_packet {
        // Zero has been reported already.
        if room > 0 && room < need.bytes {
            let expected = format!("at least {}: a packet of {}", need.bytes, need.whose);
            report.add(format!("{at}.{field}"), room, expected);
        }
    }
}
