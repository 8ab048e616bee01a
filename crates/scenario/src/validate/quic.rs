//! Flows of QUIC: what of a scenario their stacks know.

use crate::applications::Application;
use crate::quic::{HEADERS_BYTES, PAYLOAD_BYTES_MIN, find};
use crate::routing::Topology;
use crate::types::{FlowSpec, GsoMode, HostSpec, Scenario, Transport};
use dragstrip_units::Report;

/// Checks a flow whose application is called so, between hosts whose smaller MTU this is.
pub(super) fn check(
    scenario: &Scenario,
    flow: &FlowSpec,
    (cc, application, mtu): (&str, &str, u32),
    (topology, at): (&Topology, &str),
    report: &mut Report,
) {
    if let Err(expected) = find(cc) {
        report.add(format!("{at}.transport.cc"), format!("{cc:?}"), expected);
    }
    match flow.application {
        Application::Bulk { .. } | Application::OnOff { .. } => {}
        Application::RequestResponse { .. }
        | Application::Video { .. }
        | Application::ConstantRate { .. }
        | Application::Tunnel { .. } => report.add(
            format!("{at}.application.kind"),
            format!("{application} over QUIC"),
            "bulk or on_off over QUIC",
        ),
    }
    let least = u32::from(PAYLOAD_BYTES_MIN + HEADERS_BYTES);
    if mtu < least {
        let value = format!("QUIC over an MTU of {mtu} bytes");
        report.add(format!("{at}.transport"), value, format!("an MTU of {least} bytes at least"));
    }
    for name in [&flow.sender, &flow.receiver] {
        let index = topology.node(name);
        let host = index.and_then(|index| scenario.nodes[index].host().map(|host| (index, host)));
        if let Some((index, host)) = host
            && !has_tcp(scenario, name)
        {
            check_host(host, &format!("nodes[{index}]"), report);
        }
    }
}

/// True when a flow of TCP begins or ends at a host.
fn has_tcp(scenario: &Scenario, host: &str) -> bool {
    let ends_here = |flow: &&FlowSpec| flow.sender == host || flow.receiver == host;
    let mut flows = scenario.flows.iter().filter(ends_here);
    flows.any(|flow| matches!(flow.transport, Transport::Tcp { .. }))
}

/// Refuses settings of a kernel's TCP on a host that has none of its flows.
fn check_host(host: &HostSpec, at: &str, report: &mut Report) {
    let default = HostSpec::with_name(&host.name);
    let expected = "the default on a host with flows of QUIC only: its stack is no kernel's";
    if host.profile != default.profile {
        let profile = format!("{:?}", host.profile.name());
        report.add(format!("{at}.profile"), profile, expected);
    }
    for (name, value) in &host.sysctl {
        if name.contains("tcp") {
            report.add(format!("{at}.sysctl.{name}"), value, expected);
        }
    }
    if host.gso != default.gso && matches!(host.gso, GsoMode::Whole) {
        report.add(format!("{at}.gso"), "whole", expected);
    }
    if host.history.is_some() {
        report.add(format!("{at}.history"), "metrics of TCP", expected);
    }
}
