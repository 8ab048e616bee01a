//! Class trees on a kernel: what is refused of them.

use crate::fault::{Fault, refusal};
use dragstrip_scenario::{LinkSpec, QdiscSpec, Scenario};

/// Names of the disciplines in one.
pub fn kinds(spec: &QdiscSpec) -> Vec<&'static str> {
    if let QdiscSpec::Tc(tree) = spec { tree.kinds() } else { vec![spec.kind()] }
}

/// A fault if a flow or a tree needs what the kernel is not given here.
pub fn refuse(scenario: &Scenario) -> Result<(), Fault> {
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.mark != 0) {
        let expected = "none: a kernel clears marks between namespaces";
        return refusal(format!("flow {}: mark", flow.label), flow.mark.to_string(), expected);
    }
    for link in &scenario.links {
        let field = || format!("link {}: queue", link.name);
        let is_tree = |spec: &QdiscSpec| matches!(spec, QdiscSpec::Tc(_));
        if link.qdisc.classes().iter().any(|class| is_tree(class.child)) {
            let expected = "a discipline without classes, or the tree alone";
            return refusal(field(), "a class tree in a class", expected);
        }
        if let QdiscSpec::Tc(tree) = &link.qdisc
            && let Some((value, expected)) = tree.beyond_kernel()
        {
            return refusal(field(), value, expected);
        }
    }
    Ok(())
}

/// The tree of a link with a rate of its own: behind one that sends no faster nothing waits for the line.
pub fn on_line(link: &LinkSpec, rate_bps: u64) -> Result<QdiscSpec, Fault> {
    if link.qdisc.facts().rate_bps.is_some_and(|most| most <= rate_bps) {
        return Ok(link.qdisc.clone());
    }
    let expected = format!("one that sends at most the link's rate, {rate_bps} bit/s, in all");
    refusal(format!("link {}: queue", link.name), "a class tree", expected)
}
