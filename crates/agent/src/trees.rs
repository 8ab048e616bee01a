//! Class trees on a kernel: what is refused of them, and the marks that their filters look at.

use crate::fault::{Fault, refusal};
use crate::ports::{FIRST_CLIENT_PORT, FIRST_PORT};
use crate::qdisc::Marking;
use dragstrip_qdisc::TreeSpec;
use dragstrip_scenario::{QdiscSpec, Scenario, Transport};

/// Names of the disciplines in one.
pub fn kinds(spec: &QdiscSpec) -> Vec<&'static str> {
    if let QdiscSpec::Tc(tree) = spec { tree.kinds() } else { vec![spec.kind()] }
}

/// True for a tree, or a discipline with one in a class.
pub fn is_in(spec: &QdiscSpec) -> bool {
    matches!(spec, QdiscSpec::Tc(_)) || spec.classes().iter().any(|class| is_in(class.child))
}

/// The delay that packets meet in a discipline, the least of its classes', and whether all meet the same.
pub fn delay_ns(spec: &QdiscSpec) -> (u64, bool) {
    if let QdiscSpec::Tc(tree) = spec {
        return tree.least_delay_ns();
    }
    if let QdiscSpec::Netem(netem) = spec {
        return (netem.delay_ns, netem.jitter_ns == 0 && netem.reorder == 0.0);
    }
    let children = spec.classes();
    let with_tree = children.iter().find(|class| is_in(class.child));
    with_tree.map_or((0, true), |class| delay_ns(class.child))
}

/// True when a discipline, or one in its classes, is a tree that fulfils a condition.
fn any_tree(spec: &QdiscSpec, fulfils: impl Fn(&TreeSpec) -> bool) -> bool {
    let is_such = |spec: &QdiscSpec| matches!(spec, QdiscSpec::Tc(tree) if fulfils(tree));
    is_such(spec) || spec.classes().iter().any(|class| is_such(class.child))
}

/// True when filters of a discipline, or of what is in its classes, look at marks.
pub fn looks_at_marks(spec: &QdiscSpec) -> bool {
    any_tree(spec, TreeSpec::looks_at_marks)
}

/// The marks that flows have, for an interface whose filters look at them.
pub fn markings(scenario: &Scenario) -> Vec<Marking> {
    let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.mark != 0);
    let marking = |(index, flow): (usize, &dragstrip_scenario::FlowSpec)| Marking {
        protocol: match flow.transport {
            Transport::Tcp { .. } => libc::IPPROTO_TCP,
            Transport::Udp | Transport::Quic { .. } => libc::IPPROTO_UDP,
        } as u8,
        ports: (FIRST_PORT + index as u16, FIRST_CLIENT_PORT + index as u16),
        mark: flow.mark,
    };
    flows.map(marking).collect()
}

/// A fault if a tree needs what the kernel is not given here.
pub fn refuse(scenario: &Scenario) -> Result<(), Fault> {
    for link in &scenario.links {
        let field = || format!("link {}: queue", link.name);
        if any_tree(&link.qdisc, TreeSpec::has_conditions) {
            return refusal(field(), "a filter of kind basic", "filters of kind u32 or flower");
        }
        if link.qdisc.policer().is_some() && looks_at_marks(&link.qdisc) {
            let expected =
                "a policer in the filters, or filters by address, port, protocol or DSCP";
            return refusal(field(), "filters by mark behind a policer", expected);
        }
    }
    Ok(())
}

/// A fault if the firewall of a host of a lab would have to mark packets.
pub fn refuse_marks(scenario: &Scenario) -> Result<(), Fault> {
    let expected = "filters by address, port, protocol or DSCP: no firewall here marks packets";
    if let Some(link) = scenario.links.iter().find(|link| looks_at_marks(&link.qdisc)) {
        return refusal(format!("link {}: queue", link.name), "a filter by mark", expected);
    }
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.mark != 0) {
        return refusal(format!("flow {}: mark", flow.label), flow.mark.to_string(), "none here");
    }
    Ok(())
}

/// True for a discipline behind which nothing waits for a line of this rate: it sends no faster itself.
pub fn shapes_to(queue: &QdiscSpec, rate_bps: u64) -> bool {
    let facts = queue.facts();
    facts.shapes && facts.rate_bps.is_some_and(|most| most <= rate_bps)
}
