//! Flows of QUIC: what of a scenario their stacks know.

use super::algorithm::check_algorithm;
use super::program::{self, Programs};

use crate::applications::Application;
use crate::quic::{Control, HEADERS_BYTES, PARAMETERS, PAYLOAD_BYTES_MIN, find, of_algorithm};
use crate::routing::Topology;
use crate::types::{FlowSpec, GsoMode, HostSpec, Scenario, Transport};
use dragstrip_cc::{EcnMode, Options};
use dragstrip_units::Report;

/// Checks a flow whose application is called so, between hosts whose smaller MTU this is.
pub(super) fn check(
    scenario: &Scenario,
    flow: &FlowSpec,
    (application, mtu): (&str, u32),
    (topology, at): (&Topology, &str),
    report: &mut Report,
) {
    match flow.application {
        Application::Bulk { .. } | Application::OnOff { .. } => {}
        Application::RequestResponse { .. }
        | Application::Video { .. }
        | Application::ConstantRate { .. }
        | Application::Rtp { .. }
        | Application::Tunnel { .. }
        | Application::Program { .. } => report.add(
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

/// Checks the congestion control of a flow and its parameters.
pub(super) fn check_options(
    scenario: &Scenario,
    (cc, options): (&str, &Options),
    programs: &Programs<'_>,
    at: &str,
    report: &mut Report,
) {
    let transport = format!("{at}.transport");
    let control = match find(cc) {
        Err(expected) => return report.add(format!("{transport}.cc"), format!("{cc:?}"), expected),
        Ok(control) => control,
    };
    let own = match control {
        Control::Stack(..) => None,
        Control::Own(name) => Some(name),
    };
    let of_algorithm = of_algorithm(options);
    if let Some(name) = own {
        match programs.get(name) {
            Some(Some(text)) if text.is_policy() => {
                let expected = "a flow of TCP for a policy";
                report.add(format!("{transport}.cc"), format!("{cc:?}"), expected);
            }
            Some(text) => program::options(text.as_ref(), name, &of_algorithm, at, report),
            None => check_algorithm(scenario, name, &of_algorithm, (&transport, "cc"), report),
        }
        let row = dragstrip_cc::about().iter().find(|row| row.name == name);
        if row.is_some_and(|row| row.needs.ecn != EcnMode::Classic) {
            let expected = "an algorithm that needs no ECN of its own: datagrams are sent Not-ECT";
            report.add(format!("{transport}.cc"), format!("{cc:?}"), expected);
        }
    }
    let of_connection =
        options.iter().filter(|(name, _)| own.is_none() || !of_algorithm.contains_key(*name));
    let of_connection = of_connection.map(|(name, value)| (name.clone(), *value)).collect();
    let stack = control.stack();
    for name in stack.lacks().iter().filter(|name| options.contains_key(**name)) {
        let value = options[*name].to_string();
        let expected = format!("none: {} has no setting for it ({cc})", stack.release());
        report.add(format!("{transport}.cc_options.{name}"), value, expected);
    }
    if let Err((name, expected)) = dragstrip_cc::check_options(PARAMETERS, &of_connection) {
        let value = options.get(&name).map_or_else(String::new, f64::to_string);
        report.add(format!("{transport}.cc_options.{name}"), value, format!("{expected} ({cc})"));
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
