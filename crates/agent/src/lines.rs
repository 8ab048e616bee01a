//! Links that the simulator's code carries for a kernel: which they are, and what is refused of them.

use crate::fault::{Fault, refusal};
use crate::kernel::{Kernel, Lines};
use crate::stages::{keeps_bursts, lacking, serialized};
use crate::trees;
use dragstrip_scenario::{LinkSpec, LossModel, MediumSpec, QdiscSpec, Scenario, Topology};
use std::collections::BTreeSet;

/// Links by number that a kernel does not have itself, each with the one back.
pub fn carried(scenario: &Scenario, kernel: &Kernel) -> BTreeSet<usize> {
    let is_carried = |link: &LinkSpec| match kernel.lines {
        Lines::None => false,
        Lines::Media => beyond_kernels(link),
        Lines::Lacking => {
            let mut periods = scenario.periods(link).into_iter();
            beyond_kernels(link) || periods.any(|period| lacking(&period.link, kernel).is_err())
        }
        Lines::All => {
            beyond_kernels(link)
                || link.rate_bps.is_some()
                || link.delay_ns > 0
                || link.netem.is_some()
                || link.qdisc != QdiscSpec::NOQUEUE
        }
    };
    let topology = Topology::new(scenario);
    let links = scenario.links.iter().enumerate().filter(|(_, link)| is_carried(link));
    let ends: BTreeSet<(usize, usize)> = links.map(|(index, _)| topology.ends(index)).collect();
    let all = 0..scenario.links.len();
    all.filter(|&link| {
        let (from, to) = topology.ends(link);
        ends.contains(&(from, to)) || ends.contains(&(to, from))
    })
    .collect()
}

/// True when no kernel has such a link.
fn beyond_kernels(link: &LinkSpec) -> bool {
    link.medium.is_some() || loses_by_number(link)
}

/// True when a netem loses packets by their numbers.
pub fn loses_by_number(link: &LinkSpec) -> bool {
    let leaves = link.qdisc.classes();
    let queues = leaves.iter().map(|class| class.child).chain([&link.qdisc]);
    let inside = queues
        .filter_map(|queue| if let QdiscSpec::Netem(netem) = queue { Some(netem) } else { None });
    inside.chain(&link.netem).any(|netem| matches!(netem.loss, LossModel::Every { .. }))
}

/// A link's kind in a word.
pub fn kind(scenario: &Scenario, link: &LinkSpec) -> String {
    let medium = link.medium.as_ref().and_then(|name| scenario.media.get(name));
    medium.map_or_else(|| "wire".to_owned(), |medium| serialized(medium, Some("kind")))
}

/// A refusal of a link that the simulator's code cannot carry for a kernel.
pub fn refuse(scenario: &Scenario, link: &LinkSpec) -> Result<(), Fault> {
    let field = |part: &str| format!("link {}: {part}", link.name);
    if let Some(name) = &link.medium
        && let Some(MediumSpec::Tunnel { .. }) = scenario.media.get(name)
    {
        let expected = "none, or a line or a shared medium: a tunnel's TCP runs in the engine sim";
        return refusal(field("medium"), format!("{name} (tunnel)"), expected);
    }
    if trees::is_in(&link.qdisc) {
        let expected = "a queue without filters: packets of this link have no addresses for them";
        return refusal(field("queue"), "a class tree", expected);
    }
    if keeps_bursts(scenario) {
        let kind = kind(scenario, link);
        let expected = "gso off or auto on its hosts: this link takes packet by packet";
        return refusal(field("medium"), kind, expected);
    }
    Ok(())
}

/// s - r - d with a hub between r and d, for tests.
#[cfg(test)]
pub fn hub() -> Scenario {
    let text = r#"{"name": "t", "duration_ns": 1000000000, "nodes": [
        {"kind": "host", "name": "s"}, {"kind": "router", "name": "r"}, {"kind": "host", "name": "d"}],
      "links": [{"name": "s-r", "from": "s", "to": "r", "delay_ns": 1000000}, {"name": "r-s", "from": "r", "to": "s"},
        {"name": "r-d", "from": "r", "to": "d", "medium": "hub", "delay_ns": 3000000},
        {"name": "d-r", "from": "d", "to": "r"}],
      "media": {"hub": {"kind": "ethernet_hub"}},
      "flows": [{"label": "f", "sender": "s", "receiver": "d",
        "transport": {"protocol": "tcp", "cc": "reno"}, "application": {"kind": "bulk"}}]}"#;
    serde_json::from_str(text).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_scenario::NetemSpec;

    fn kernel(lines: Lines, lacks: &[&'static str]) -> Kernel {
        Kernel { lines, lacks: lacks.to_vec(), ..Kernel::DEBIAN }
    }

    #[test]
    fn links_are_carried_as_far_as_the_kernel_does_not_have_them() {
        let mut scenario = hub();
        let numbers = |scenario: &Scenario, lines, lacks: &[&'static str]| {
            let carried = carried(scenario, &kernel(lines, lacks));
            carried.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(numbers(&scenario, Lines::None, &[]), [0; 0]);
        assert_eq!(numbers(&scenario, Lines::Media, &["netem"]), [2, 3]);
        assert_eq!(numbers(&scenario, Lines::Lacking, &[]), [2, 3]);
        assert_eq!(numbers(&scenario, Lines::Lacking, &["netem"]), [0, 1, 2, 3]);
        scenario.links[2].medium = None;
        scenario.links[2].delay_ns = 0;
        assert_eq!(numbers(&scenario, Lines::Media, &[]), [0; 0]);
        assert_eq!(numbers(&scenario, Lines::All, &[]), [0, 1]);
        let netem = NetemSpec::parse_text("loss every 100").unwrap();
        scenario.links[3].netem = Some(Box::new(netem));
        assert_eq!(numbers(&scenario, Lines::Media, &[]), [2, 3]);
    }
}
