//! Tunnels: a flow that carries links, over a path that does not lead through them.

use crate::applications::Application;
use crate::media::MediumSpec;
use crate::routing::Topology;
use crate::types::{FlowSpec, LinkSpec, Scenario};
use dragstrip_units::Report;
use dragstrip_units::suggest;

/// Checks the tunnel `(name, flow, near)`.
pub(super) fn check(
    scenario: &Scenario,
    topology: &Topology,
    (name, flow, near): (&str, &str, &str),
    report: &mut Report,
) {
    check_links(scenario, name, near, report);
    let at = format!("media.{name}.flow");
    let Some(carrier) = scenario.flows.iter().find(|candidate| candidate.label == flow) else {
        let labels: Vec<&str> = scenario.flows.iter().map(|flow| flow.label.as_str()).collect();
        let expected = suggest(flow, labels.iter().copied(), "the label of a flow");
        report.add(at, format!("{flow:?}"), expected);
        return;
    };
    if !matches!(carrier.application, Application::Tunnel { .. }) {
        report.add(at, format!("{flow:?}"), "a flow whose application is of kind tunnel");
        return;
    }
    if let Some(sibling) = tunnels_of(scenario, flow).find(|sibling| *sibling < name) {
        let expected = format!("a flow of its own: media.{sibling} is carried by this one");
        report.add(at, format!("{flow:?}"), expected);
    } else if let Some(link) = leads_into_itself(scenario, topology, name, carrier) {
        let expected =
            format!("a flow whose path does not lead through the tunnel itself (link {link})");
        report.add(at, format!("{flow:?}"), expected);
    }
}

/// Every flow that is to carry a tunnel does.
pub(super) fn check_flows(scenario: &Scenario, report: &mut Report) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        let is_carrier = matches!(flow.application, Application::Tunnel { .. });
        if is_carrier && tunnels_of(scenario, &flow.label).next().is_none() {
            let expected = format!("a medium of kind tunnel with flow = {:?}", flow.label);
            report.add(format!("flows[{index}].application"), "carries no tunnel", expected);
        }
    }
}

fn tunnels_of<'a>(scenario: &'a Scenario, label: &str) -> impl Iterator<Item = &'a str> {
    scenario.media.iter().filter_map(move |(name, medium)| {
        let MediumSpec::Tunnel { flow, near: _ } = medium else { return None };
        (flow == label).then_some(name.as_str())
    })
}

/// Checks that one link leaves the near node, and at most one comes back.
fn check_links(scenario: &Scenario, name: &str, near: &str, report: &mut Report) {
    let at = format!("media.{name}.near");
    let mine: Vec<&LinkSpec> =
        scenario.links.iter().filter(|link| link.medium.as_deref() == Some(name)).collect();
    let outgoing: Vec<&&LinkSpec> = mine.iter().filter(|link| link.from == near).collect();
    let [outgoing] = outgoing[..] else {
        if !mine.is_empty() {
            let value = format!("{near:?}, which {} of the tunnel's links leave", outgoing.len());
            report.add(at, value, "the node that exactly one of them leaves");
        }
        return;
    };
    let back = mine.iter().filter(|link| link.from == outgoing.to && link.to == near).count();
    if back > 1 || mine.len() != 1 + back {
        let expected = format!("the link {} and at most one back", outgoing.name);
        report.add(format!("media.{name}"), format!("{} links", mine.len()), expected);
    }
}

/// The link through which packets of `carrier` would enter the tunnel called `name`, themselves or inside other tunnels.
fn leads_into_itself<'a>(
    scenario: &'a Scenario,
    topology: &Topology,
    name: &str,
    carrier: &FlowSpec,
) -> Option<&'a str> {
    let mut carriers = vec![carrier];
    let mut looked_at = 0;
    while let Some(&flow) = carriers.get(looked_at) {
        looked_at += 1;
        for link in path_both_ways(scenario, topology, flow) {
            let Some((medium, spec)) =
                link.medium.as_ref().and_then(|medium| scenario.media.get_key_value(medium))
            else {
                continue;
            };
            if medium == name {
                return Some(&link.name);
            }
            let MediumSpec::Tunnel { flow, near: _ } = spec else { continue };
            let inner = scenario.flows.iter().find(|candidate| candidate.label == *flow);
            let is_carrier =
                |inner: &&FlowSpec| carriers.iter().any(|carrier| carrier.label == inner.label);
            if let Some(inner) = inner.filter(|inner| !is_carrier(inner)) {
                carriers.push(inner);
            }
        }
    }
    None
}

fn path_both_ways<'a>(
    scenario: &'a Scenario,
    topology: &Topology,
    flow: &FlowSpec,
) -> Vec<&'a LinkSpec> {
    let ends = (topology.node(&flow.sender), topology.node(&flow.receiver));
    let (Some(from), Some(to)) = ends else { return Vec::new() };
    let links = [topology.path(from, to), topology.path(to, from)];
    links.into_iter().flatten().flatten().map(|link| &scenario.links[link]).collect()
}
