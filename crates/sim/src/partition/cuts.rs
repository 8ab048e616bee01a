//! Candidate cuts of a network: links whose delay is the lookahead between their two sides.

use dragstrip_qdisc::{ComputedFifo, Streams};
use dragstrip_scenario::{
    Application, CpuSpec, FlowSpec, HostSpec, LinkSpec, NodeSpec, Scenario, Topology, Transport,
};
use dragstrip_units::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A link of less delay is not cut: its sides would have to meet too often.
const DELAY_MIN: Duration = Duration::from_micros(1000);

/// The links at which a scenario may be cut. They follow from the scenario alone, and what waits on them keeps an order that
/// does not depend on other links: so a run gives the same bytes in one part and in several.
#[derive(Clone, Debug, Default)]
pub(crate) struct CutLinks {
    /// Flag of each link; empty where nothing is cut.
    of_link: Vec<bool>,
}

impl CutLinks {
    /// Selects the cuts of a scenario with at least `flows_min` flows. State that several parts would have to change
    /// at one instant prevents cuts: shared media, tunnels, ARP, processors of several hosts, videos, whose two ends are
    /// one state, programs, whose faults end a run, and QUIC, whose datagrams have bytes.
    pub fn of(scenario: &Scenario, flows_min: usize) -> Self {
        if scenario.flows.len() < flows_min
            || scenario.cold_arp
            || !scenario.media.is_empty()
            || !scenario.programs.is_empty()
            || scenario.nodes.iter().any(shares_processor)
            || scenario.flows.iter().any(|flow| is_video(flow) || is_quic(flow))
        {
            return Self::default();
        }
        let of_link: Vec<bool> =
            scenario.links.iter().map(|link| may_be_cut(scenario, link)).collect();
        if of_link.contains(&true) { Self { of_link } } else { Self::default() }
    }

    /// True when there is a cut.
    pub fn any(&self) -> bool {
        !self.of_link.is_empty()
    }

    /// True when this link is a cut.
    pub fn at(&self, link: usize) -> bool {
        self.of_link.get(link).copied().unwrap_or(false)
    }
}

fn shares_processor(node: &NodeSpec) -> bool {
    matches!(node, NodeSpec::Host(HostSpec { cpu: Some(CpuSpec { shared: Some(_), .. }), .. }))
}

fn is_video(flow: &FlowSpec) -> bool {
    matches!(flow.application, Application::Video { .. } | Application::Rtp { .. })
}

/// The bytes of its datagrams lie in one world.
fn is_quic(flow: &FlowSpec) -> bool {
    matches!(flow.transport, Transport::Quic { .. })
}

/// True when a packet takes at least `DELAY_MIN` from the end of a link's queue to its far end, at all times.
fn may_be_cut(scenario: &Scenario, link: &LinkSpec) -> bool {
    link.delay_ns >= DELAY_MIN.as_nanos()
        && link.medium.is_none()
        && scenario.netem_behind(link).is_none()
        && scenario.changes_of(&link.name).is_empty()
}

/// Assignment of nodes to parts, and the lookahead between parts.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// Part of each node.
    pub part_of: Vec<u8>,
    /// The least delay of a link between parts.
    pub ahead: Duration,
}

impl Partition {
    /// At most `parts` parts of about the same work. `None` where one of them would have nearly all of it.
    pub fn new(
        scenario: &Scenario,
        topology: &Topology<'_>,
        cut_links: &CutLinks,
        parts: usize,
    ) -> Option<Self> {
        let nodes = scenario.nodes.len();
        let whole = uncut(scenario, topology, cut_links);
        let mut work = vec![0_u64; nodes];
        for (node, cost) in costs(scenario, topology)?.into_iter().enumerate() {
            work[whole[node]] += cost;
        }
        let total: u64 = work.iter().sum();
        let mut order: Vec<usize> = (0..nodes).filter(|&node| whole[node] == node).collect();
        order.sort_by_key(|&node| std::cmp::Reverse(work[node]));
        let mut load = vec![0_u64; parts.clamp(1, usize::from(u8::MAX))];
        let mut part_of_whole = vec![0_u8; nodes];
        for node in order {
            let least = (0..load.len()).min_by_key(|&part| load[part])?;
            load[least] += work[node];
            part_of_whole[node] = least as u8;
        }
        // Nine tenths in one part: the others would only wait for it.
        if load.iter().max()? * 10 > total * 9 {
            return None;
        }
        let part_of: Vec<u8> = whole.iter().map(|&node| part_of_whole[node]).collect();
        let crosses = |link: usize| {
            let (from, to) = topology.ends(link);
            part_of[from] != part_of[to]
        };
        let delays = scenario.links.iter().enumerate().filter(|(link, _)| crosses(*link));
        let ahead = delays.map(|(_, link)| link.delay_ns).min().map(Duration::from_nanos)?;
        Some(Self { part_of, ahead })
    }
}

/// For each node the lowest node that it is connected with by links that are not cut.
fn uncut(scenario: &Scenario, topology: &Topology<'_>, cut_links: &CutLinks) -> Vec<usize> {
    let mut lowest: Vec<usize> = (0..scenario.nodes.len()).collect();
    fn root(lowest: &mut [usize], mut node: usize) -> usize {
        while lowest[node] != node {
            lowest[node] = lowest[lowest[node]];
            node = lowest[node];
        }
        node
    }
    for link in (0..scenario.links.len()).filter(|&link| !cut_links.at(link)) {
        let (from, to) = topology.ends(link);
        let (from, to) = (root(&mut lowest, from), root(&mut lowest, to));
        lowest[from.max(to)] = from.min(to);
    }
    (0..lowest.len()).map(|node| root(&mut lowest, node)).collect()
}

/// A flow's share of the work at its sender and at its receiver, and of each link that it crosses: by a queue whose
/// departures are computed, and by one that is polled packet by packet. Measured on an access network
/// (`bench/cores.py`).
const SENDER: u64 = 4;
const RECEIVER: u64 = 6;
const COMPUTED: u64 = 1;
const ASKED: u64 = 6;

/// About how much of the work each node has.
fn costs(scenario: &Scenario, topology: &Topology<'_>) -> Option<Vec<u64>> {
    let of_link: Vec<u64> = scenario.links.iter().map(|link| of_hop(scenario, link)).collect();
    let mut costs = vec![0; scenario.nodes.len()];
    let mut paths: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for flow in &scenario.flows {
        let (from, to) = (topology.node(&flow.sender)?, topology.node(&flow.receiver)?);
        costs[from] += SENDER;
        costs[to] += RECEIVER;
        if let Entry::Vacant(place) = paths.entry((from, to)) {
            place.insert(topology.path(from, to).ok()?);
        }
        for &link in &paths[&(from, to)] {
            costs[topology.ends(link).0] += of_link[link];
        }
    }
    Some(costs)
}

fn of_hop(scenario: &Scenario, link: &LinkSpec) -> u64 {
    let discipline = link.qdisc.build(&Streams::of_link(scenario.seed, &link.name));
    if ComputedFifo::of(&discipline, None, false).is_some() { COMPUTED } else { ASKED }
}
