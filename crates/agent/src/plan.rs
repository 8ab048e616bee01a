//! From a scenario to what is built: namespaces, veth pairs, queue disciplines, routes.
//!
//! A link and the one back share a chain of veth pairs: `from - [relay] - [relay of the return path] - to`. A relay
//! holds the stage after a queue: delay, impairments, the serialisation of a store-and-forward transmitter. Delay is
//! never placed on a host that sends TCP data, where netem would hide the packets from TCP Small Queues.

use crate::changes::{self, Changing, Step};
use crate::fault::{Fault, fault, refusal};
use crate::kernel::Kernel;
use crate::lines;
use crate::qdisc::Marking;
use crate::stages::{Side, keeps_bursts, lacking, leave_to_cable, serialized};
use crate::trees;
use dragstrip_scenario::{
    Application, LinkSpec, NodeSpec, QdiscSpec, Scenario, StackProfile, Topology, Transport,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A network namespace.
#[derive(Debug, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub address: Ipv4Addr,
    pub forwards: bool,
    pub sysctl: BTreeMap<String, String>,
    /// (destination, hop).
    pub routes: Vec<(usize, usize)>,
}

/// One direction of a veth pair; the pair is hops 2k and 2k + 1.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hop {
    pub from: usize,
    pub to: usize,
    pub mtu_bytes: u32,
    /// Most segments that TCP hands down at once; none: the kernel's own limit.
    pub gso_segments_max: Option<u32>,
    /// The interface takes bursts as they are: TSO and GSO stay on.
    #[serde(default)]
    pub whole_bursts: bool,
    pub qdisc: QdiscSpec,
    /// Marks that its filters look at.
    #[serde(default)]
    pub markings: Vec<Marking>,
    /// Name in the table of queues.
    pub watched: Option<String>,
    /// Its interface is the near end of this link, or of a line the first one behind its queue.
    pub near_end_of: Option<String>,
    /// Delay of the line that packets of this hop meet behind it.
    #[serde(default)]
    pub line_delay_ns: Option<u64>,
}

/// Links in the simulator's code, to and from, between the two interfaces of a namespace of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// The namespace.
    pub node: usize,
    /// The first of its hops: to it, from it, on to the other end, and back to it.
    pub first_hop: usize,
    /// Names of the nodes that it joins.
    pub ends: [String; 2],
    /// The links there and back, and what each is.
    pub links: Vec<String>,
    pub kinds: Vec<String>,
}

impl Line {
    /// Hops out of its namespace, to its first end and to its second.
    pub const fn hops_out(&self) -> [usize; 2] {
        [self.first_hop + 1, self.first_hop + 2]
    }
}

/// The network to build.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    pub nodes: Vec<Node>,
    pub hops: Vec<Hop>,
    /// Changes during the run.
    pub steps: Vec<Step>,
    /// Source of every netem's own seed, on a kernel that accepts one.
    pub seed: Option<u64>,
    /// Delays that are left to what hosts and cables take themselves, a line each.
    #[serde(default)]
    pub cables: Vec<String>,
    #[serde(default)]
    pub lines: Vec<Line>,
}

/// Hosts and routers: each is a network namespace, and building them is time in which the machine is silent (253 hosts
/// and a router: half of the silence that is taken for a hang, where five others share each core).
const NODES_MAX: usize = 256;
/// Flows: each has sockets with their own buffers in the machine's memory, and ports by its number.
const FLOWS_MAX: usize = 1_000;
impl Plan {
    /// Lays out a valid scenario; a fault names what this kernel cannot do.
    pub fn new(scenario: &Scenario, kernel: &Kernel) -> Result<Self, Fault> {
        let mut scenario = scenario.clone();
        let cables =
            if kernel.lacks.contains(&"netem") { cables(&mut scenario) } else { Vec::new() };
        let scenario = &scenario;
        refuse(scenario, kernel)?;
        let topology = Topology::new(scenario);
        let nodes = scenario.nodes.iter().map(node).collect();
        let (hops, steps, lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut plan = Self { nodes, hops, steps, seed: None, cables, lines };
        let mut chains: Vec<Chain> = Vec::new();
        for index in 0..scenario.links.len() {
            let ends = topology.ends(index);
            let back = chains.iter().position(|chain| {
                chain.back.is_none() && topology.ends(chain.link) == (ends.1, ends.0)
            });
            match back {
                Some(back) => chains[back].back = Some(index),
                None => chains.push(Chain {
                    link: index,
                    back: None,
                    nodes: Vec::new(),
                    first: 0,
                    mtu_bytes: 0,
                }),
            }
        }
        let mtus = link_mtus(scenario, &topology);
        let carried = lines::carried(scenario, kernel);
        for chain in &mut chains {
            let back = chain.back.map(|back| mtus[back]);
            chain.mtu_bytes = mtus[chain.link].max(back.unwrap_or_default());
            if carried.contains(&chain.link) {
                plan.lay_line(scenario, &topology, chain);
            } else {
                plan.lay(scenario, &topology, kernel, chain)?;
            }
        }
        plan.routes(scenario, &topology, &chains);
        for (index, node) in plan.nodes.iter_mut().enumerate() {
            node.address = Ipv4Addr::from(0x0a00_0001 + index as u32);
        }
        Ok(plan)
    }

    /// The number of a node by its name.
    pub fn node(&self, name: &str) -> Result<usize, Fault> {
        let index = self.nodes.iter().position(|node| node.name == name);
        index.map_or_else(|| fault(format!("there is no node {name}")), Ok)
    }

    /// Lays a chain's veth pairs and puts both links' queues on them.
    fn lay(
        &mut self,
        scenario: &Scenario,
        topology: &Topology<'_>,
        kernel: &Kernel,
        chain: &mut Chain,
    ) -> Result<(), Fault> {
        let (from, to) = topology.ends(chain.link);
        let senders = senders(scenario);
        let mut sides = Vec::new();
        for link in [Some(chain.link), chain.back] {
            let link = link.map(|link| &scenario.links[link]);
            let side = link
                .map(|link| Side::new(link, Changing::of(scenario, &link.name), kernel, &senders));
            sides.push(side.transpose()?);
        }
        chain.nodes.push(from);
        let relays: Vec<bool> = sides
            .iter()
            .map(|side| side.as_ref().is_some_and(|side| side.behind.is_some()))
            .collect();
        for (link, _) in [chain.link, chain.back.unwrap_or_default()]
            .into_iter()
            .zip(&relays)
            .filter(|(_, relay)| **relay)
        {
            let name = format!("relay of {}", scenario.links[link].name);
            chain.nodes.push(self.inner_node(name, true));
        }
        chain.nodes.push(to);
        self.pairs(scenario, chain);
        // Forward: the first hop, then the second; back: the last hop's other direction, then the one before.
        let last = self.hops.len() - 1;
        let places = [[chain.first, chain.first + 2], [last, last.wrapping_sub(2)]];
        for ((side, link), [queue, behind]) in
            sides.into_iter().zip([Some(chain.link), chain.back]).zip(places)
        {
            let Some(side) = side else { continue };
            let link = link.map(|link| &scenario.links[link]);
            self.hops[queue].near_end_of = link.map(|link| link.name.clone());
            if let Some(link) = link {
                self.change(scenario, link, kernel, [queue, behind])?;
            }
            (self.hops[queue].qdisc, self.hops[queue].watched) = side.queue;
            if trees::looks_at_marks(&self.hops[queue].qdisc) {
                self.hops[queue].markings = trees::markings(scenario);
            }
            if let Some((spec, watched)) = side.behind {
                self.hops[behind].qdisc = QdiscSpec::Netem(spec);
                self.hops[behind].watched = watched;
            }
        }
        Ok(())
    }

    /// Lays the veth pairs between a chain's nodes.
    fn pairs(&mut self, scenario: &Scenario, chain: &mut Chain) {
        chain.first = self.hops.len();
        let whole_bursts = keeps_bursts(scenario);
        for pair in chain.nodes.windows(2) {
            for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let limit = scenario.nodes.get(from).and_then(gso_limit);
                self.hops.push(Hop {
                    from,
                    to,
                    mtu_bytes: chain.mtu_bytes,
                    gso_segments_max: limit,
                    whole_bursts,
                    qdisc: QdiscSpec::NOQUEUE,
                    markings: Vec::new(),
                    watched: None,
                    near_end_of: None,
                    line_delay_ns: None,
                });
            }
        }
    }

    /// Lays two veth pairs, and between them a namespace in which the simulator's code carries both links.
    fn lay_line(&mut self, scenario: &Scenario, topology: &Topology<'_>, chain: &mut Chain) {
        let (from, to) = topology.ends(chain.link);
        let links: Vec<&LinkSpec> = [Some(chain.link), chain.back]
            .iter()
            .flatten()
            .map(|&link| &scenario.links[link])
            .collect();
        let name = format!("line of {}", links[0].name);
        let node = self.inner_node(name, false);
        chain.nodes = vec![from, node, to];
        self.pairs(scenario, chain);
        let [first, last] = [chain.first, chain.first + 3];
        for (&link, [hop, beyond]) in links.iter().zip([[first, first + 2], [last, first + 1]]) {
            self.hops[hop].line_delay_ns = Some(scenario.link_facts(link).delay_ns);
            self.hops[beyond].near_end_of = Some(link.name.clone());
        }
        self.lines.push(Line {
            node,
            first_hop: chain.first,
            ends: [from, to].map(|end| scenario.nodes[end].name().to_owned()),
            links: links.iter().map(|link| link.name.clone()).collect(),
            kinds: links.iter().map(|link| lines::kind(scenario, link)).collect(),
        });
    }

    /// The steps of a link whose queue, and the stage after it, are at these hops.
    fn change(
        &mut self,
        scenario: &Scenario,
        link: &LinkSpec,
        kernel: &Kernel,
        [queue, behind]: [usize; 2],
    ) -> Result<(), Fault> {
        let (changing, senders) = (Changing::of(scenario, &link.name), senders(scenario));
        let (mut queues, mut netems) = (Vec::new(), Vec::new());
        for period in scenario.periods(link) {
            let side = Side::new(&period.link, changing, kernel, &senders)?;
            queues.push((period.from_ns, side.queue.0, period.up));
            let netem = side.behind.map(|(spec, _)| QdiscSpec::Netem(spec));
            netems.extend(netem.map(|netem| (period.from_ns, netem, true)));
        }
        self.steps.extend(changes::steps(queue, queues));
        self.steps.extend(changes::steps(behind, netems));
        Ok(())
    }

    /// A node that the scenario does not have.
    fn inner_node(&mut self, name: String, forwards: bool) -> usize {
        self.nodes.push(Node {
            name,
            address: Ipv4Addr::UNSPECIFIED,
            forwards,
            sysctl: BTreeMap::new(),
            routes: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// Routes along the paths that packets take, there and back. (From everywhere to everywhere, a few hundred hosts
    /// would take longer to build than most runs last.)
    fn routes(&mut self, scenario: &Scenario, topology: &Topology<'_>, chains: &[Chain]) {
        let mut laid: BTreeMap<usize, (&Chain, bool)> = BTreeMap::new();
        for chain in chains {
            laid.insert(chain.link, (chain, true));
            laid.extend(chain.back.map(|back| (back, (chain, false))));
        }
        let mut used_links: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (from, to) in pairs(scenario, topology) {
            // Without a path, the pings on the idle path will report it.
            used_links
                .extend(topology.path(from, to).unwrap_or_default().iter().map(|&link| (to, link)));
        }
        for (destination, link) in used_links {
            let (chain, forward) = laid[&link];
            let pairs = chain.nodes.len() - 1;
            let nodes = if forward { &chain.nodes[..pairs] } else { &chain.nodes[1..] };
            for (pair, &at) in nodes.iter().enumerate() {
                let hop = chain.first + 2 * pair + usize::from(!forward);
                self.nodes[at].routes.push((destination, hop));
            }
        }
    }

    /// The hops of a path in their order, as far as routes lead.
    fn way(&self, from: usize, to: usize) -> impl Iterator<Item = &Hop> {
        let mut at = from;
        std::iter::from_fn(move || {
            let routes = &self.nodes[at].routes;
            let (_, hop) = routes.iter().find(|(destination, _)| at != to && *destination == to)?;
            let hop = &self.hops[*hop];
            at = hop.to;
            Some(hop)
        })
    }

    /// The longest packet that a path takes.
    pub fn mtu_bytes(&self, from: usize, to: usize) -> u32 {
        self.way(from, to).map(|hop| hop.mtu_bytes).min().unwrap_or(u32::MAX)
    }

    /// Longest time that a packet of a path may wait for netem slots.
    pub fn slots_ns(&self, from: usize, to: usize) -> u64 {
        let slots = self.way(from, to).map(|hop| {
            if let QdiscSpec::Netem(spec) = &hop.qdisc { spec.slot_wait_ns() } else { 0 }
        });
        slots.sum()
    }

    /// The delay that packets of a path meet, and whether every packet meets the same one, slots aside.
    pub fn delay_ns(&self, from: usize, to: usize) -> (u64, bool) {
        let (mut at, mut total, mut constant) = (from, 0, true);
        for hop in self.way(from, to) {
            let (delay_ns, same) =
                hop.line_delay_ns.map_or_else(|| trees::delay_ns(&hop.qdisc), |ns| (ns, false));
            (at, total, constant) = (hop.to, total + delay_ns, constant && same);
        }
        (total, constant && at == to)
    }

    /// True when a tree on a path may drop a packet that no filter leads to a class, such as a ping.
    pub fn may_drop(&self, from: usize, to: usize) -> bool {
        self.way(from, to).any(|hop| trees::is_in(&hop.qdisc))
    }

    /// True when the simulator's code carries a link of a path.
    pub fn has_line(&self, from: usize, to: usize) -> bool {
        self.way(from, to).any(|hop| hop.line_delay_ns.is_some())
    }

    /// True for a node in which the simulator's code carries links.
    pub fn is_line(&self, node: usize) -> bool {
        self.lines.iter().any(|line| line.node == node)
    }

    /// The hop whose interface is at the other end of this one's: a line is no neighbour.
    pub fn opposite(&self, hop: usize) -> usize {
        let line = self.lines.iter().find(|line| line.node == self.hops[hop].to);
        match line.map(|line| hop - line.first_hop) {
            Some(0) => hop + 3,
            Some(3) => hop - 3,
            Some(_) | None => hop ^ 1,
        }
    }
}

/// A link, the one back, and the nodes between their ends.
struct Chain {
    link: usize,
    back: Option<usize>,
    nodes: Vec<usize>,
    /// The first of its hops.
    first: usize,
    /// The MTU of its interfaces.
    mtu_bytes: u32,
}

/// Leaves short delays to their cables.
fn cables(scenario: &mut Scenario) -> Vec<String> {
    let changing: Vec<Changing> =
        scenario.links.iter().map(|link| Changing::of(scenario, &link.name)).collect();
    let links = scenario.links.iter_mut().zip(changing);
    links.filter_map(|(link, changing)| leave_to_cable(link, changing)).collect()
}

pub fn refuse(scenario: &Scenario, kernel: &Kernel) -> Result<(), Fault> {
    for (field, count, most) in
        [("nodes", scenario.nodes.len(), NODES_MAX), ("flows", scenario.flows.len(), FLOWS_MAX)]
    {
        if count > most {
            return refusal(field, count.to_string(), format!("at most {most} on this engine"));
        }
    }
    for host in scenario.nodes.iter().filter_map(NodeSpec::host) {
        let nearest = kernel.release.as_deref().map(StackProfile::of_release);
        if host.profile != StackProfile::Linux6 && Some(host.profile) != nearest {
            let profile = serialized(&host.profile, None);
            let others = nearest.filter(|&stack| stack != StackProfile::Linux6);
            let or = others.map_or_else(String::new, |stack| format!(" or {}", stack.name()));
            let expected = format!("linux-6{or}, the kernel's own stack");
            return refusal(format!("host {}: profile", host.name), profile, expected);
        }
        if host.gso == dragstrip_scenario::GsoMode::Whole && !keeps_bursts(scenario) {
            let expected =
                "whole on all hosts, or off or auto: all interfaces have offloads or none";
            return refusal(format!("host {}: gso", host.name), "whole", expected);
        }
        if let Some(interrupts) = &host.interrupts {
            let value = serde_json::to_string(interrupts).unwrap_or_default();
            let expected = "none: no interface here has a card that holds its interrupts back";
            return refusal(format!("host {}: interrupts", host.name), value, expected);
        }
        if let Some(cpu) = &host.cpu {
            let value = serde_json::to_string(cpu).unwrap_or_default();
            let expected = "none: a kernel takes its own time";
            return refusal(format!("host {}: cpu", host.name), value, expected);
        }
        if let (Some(host_hz), Some(kernel_hz)) = (host.tick_hz, kernel.tick_hz)
            && host_hz != kernel_hz
        {
            let field = format!("host {}: tick_hz", host.name);
            let expected = format!("{kernel_hz}, as the kernel was built");
            return refusal(field, host_hz.to_string(), expected);
        }
    }
    trees::refuse(scenario)?;
    let carried = lines::carried(scenario, kernel);
    for (index, link) in scenario.links.iter().enumerate() {
        if carried.contains(&index) {
            lines::refuse(scenario, link)?;
            continue;
        }
        if link.qdisc.classes().iter().any(|class| *class.child == QdiscSpec::NOQUEUE) {
            let expected = format!(
                "a queue, such as pfifo limit 1000: the kernel's {} holds packets in one",
                link.qdisc.kind()
            );
            return refusal(format!("link {}: queue", link.name), "noqueue", expected);
        }
        if lines::loses_by_number(link) {
            let expected = "random or gemodel: a kernel's netem loses no packet by its number";
            return refusal(format!("link {}: loss", link.name), "every", expected);
        }
        if let Some(medium) = &link.medium {
            let kind = serialized(&scenario.media.get(medium), Some("kind"));
            let expected = "none: a kernel has only links of its own";
            return refusal(
                format!("link {}: medium", link.name),
                format!("{medium} ({kind})"),
                expected,
            );
        }
        for period in scenario.periods(link) {
            lacking(&period.link, kernel)?;
        }
    }
    Ok(())
}

pub fn node(spec: &NodeSpec) -> Node {
    Node {
        name: spec.name().to_owned(),
        address: Ipv4Addr::UNSPECIFIED,
        forwards: spec.host().is_none(),
        sysctl: spec.host().map(|host| host.sysctl.clone()).unwrap_or_default(),
        routes: Vec::new(),
    }
}

/// Hosts that send TCP data.
pub fn senders(scenario: &Scenario) -> Vec<&str> {
    let mut names = Vec::new();
    for flow in &scenario.flows {
        match (&flow.transport, &flow.application) {
            (Transport::Quic { .. } | Transport::Udp, _) => {}
            (
                Transport::Tcp { .. },
                Application::RequestResponse { .. }
                | Application::Video { .. }
                | Application::Tunnel { .. }
                | Application::Program { .. },
            ) => {
                names.extend([flow.sender.as_str(), flow.receiver.as_str()]);
            }
            (
                Transport::Tcp { .. },
                Application::Bulk { .. }
                | Application::OnOff { .. }
                | Application::ConstantRate { .. }
                | Application::Rtp { .. },
            ) => names.push(&flow.sender),
        }
    }
    names
}

/// Nodes between which packets travel, in both orders.
pub fn pairs(scenario: &Scenario, topology: &Topology<'_>) -> BTreeSet<(usize, usize)> {
    let flows = scenario.flows.iter().map(|flow| (&flow.sender, &flow.receiver));
    let probes = scenario.probes.iter().map(|probe| (&probe.from, &probe.target));
    let end_pairs =
        flows.chain(probes).filter_map(|(from, to)| topology.node(from).zip(topology.node(to)));
    end_pairs.flat_map(|(from, to)| [(from, to), (to, from)]).collect()
}

/// MTU of Ethernet, which a link has that no traffic passes.
const MTU_BYTES: u32 = 1500;

/// The MTU of each link's interface, by link. That of a host's link is the host's. That of a link between routers is the
/// longest packet that the traffic's hosts send over it: codel, fq_codel, pie, fq_pie, cake and dualpi2 take the device's
/// (`psched_mtu`), and drop nothing while one or two packets of it are queued.
pub fn link_mtus(scenario: &Scenario, topology: &Topology<'_>) -> Vec<u32> {
    let host = |node: usize| scenario.nodes[node].host().map(|host| host.mtu_bytes);
    let smaller = |ends: (usize, usize)| host(ends.0).into_iter().chain(host(ends.1)).min();
    let mut traffic = vec![None; scenario.links.len()];
    for ends in pairs(scenario, topology) {
        let longest = smaller(ends);
        for link in topology.path(ends.0, ends.1).unwrap_or_default() {
            traffic[link] = traffic[link].max(longest);
        }
    }
    let links = traffic.into_iter().enumerate();
    links
        .map(|(link, longest)| smaller(topology.ends(link)).or(longest).unwrap_or(MTU_BYTES))
        .collect()
}

/// `gso: off` means one segment at a time, which the kernel does if the interface takes no more.
pub fn gso_limit(node: &NodeSpec) -> Option<u32> {
    let off = node.host().is_some_and(|host| host.gso == dragstrip_scenario::GsoMode::Off);
    off.then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Lines;
    use dragstrip_scenario::{GsoMode, HtbSpec, NetemSpec};

    fn scenario(links: &str) -> Scenario {
        let text = format!(
            r#"{{"name": "t", "duration_ns": 1000000000, "nodes": [
                {{"kind": "host", "name": "s"}}, {{"kind": "router", "name": "r"}},
                {{"kind": "host", "name": "d"}}],
              "links": [{links}],
              "flows": [{{"label": "f", "sender": "s", "receiver": "d",
                "transport": {{"protocol": "tcp", "cc": "reno"}}, "application": {{"kind": "bulk"}}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn plan_of(scenario: &Scenario) -> Plan {
        Plan::new(scenario, &Kernel::DEBIAN).unwrap()
    }

    fn dumbbell(bottleneck: &str, back: &str) -> Scenario {
        scenario(&format!(
            r#"{{"name": "s-r", "from": "s", "to": "r"}}, {{"name": "r-s", "from": "r", "to": "s"}},
               {{"name": "r-d", "from": "r", "to": "d", {bottleneck}}},
               {{"name": "d-r", "from": "d", "to": "r", {back}}}"#
        ))
    }

    #[test]
    fn a_delay_stands_on_the_receiver_itself() {
        let queue = r#""qdisc": {"kind": "pfifo", "limit_packets": 9}"#;
        let plan = plan_of(&dumbbell(queue, r#""delay_ns": 10000000"#));
        assert_eq!((plan.nodes.len(), plan.hops.len()), (3, 4));
        assert!(matches!(plan.hops[2].qdisc, QdiscSpec::Pfifo(_)));
        assert!(matches!(plan.hops[3].qdisc, QdiscSpec::Netem(_)));
        assert_eq!(plan.delay_ns(2, 0), (10_000_000, true));
        assert_eq!(plan.delay_ns(0, 2), (0, true));
        assert_eq!(plan.nodes[0].routes, [(2, 0)]);
        assert_eq!(plan.nodes[1].routes, [(0, 1), (2, 2)]);
    }

    #[test]
    fn a_tree_that_shapes_stands_alone_and_another_in_the_line() {
        let tree = |words: &str| {
            let spec = QdiscSpec::parse(words).unwrap();
            let queue = serde_json::to_string(&spec).unwrap();
            let link = format!(r#""rate_bps": 10000000, "qdisc": {queue}"#);
            let plan = plan_of(&dumbbell(&link, r#""delay_ns": 10000000"#));
            let hop = plan.hops.into_iter().find(|hop| hop.watched.is_some()).unwrap();
            (hop.qdisc.kind(), hop.qdisc.classes().len(), hop.qdisc == spec)
        };
        let htb = |rate: &str| {
            tree(&format!(
                "tc qdisc add root handle 1: htb default 1; tc class add parent 1: classid 1:1 htb rate {rate}"
            ))
        };
        assert_eq!(htb("10mbit"), ("tc", 0, true));
        assert_eq!(htb("11mbit"), ("htb", 1, false));
        let prio =
            "tc qdisc add root handle 1: prio; tc filter add parent 1: prio 1 matchall classid 1:2";
        assert_eq!(tree(prio), ("htb", 1, false));
    }

    #[test]
    fn a_queue_and_a_delay_take_a_relay_each_way() {
        let link_fields = r#""qdisc": {"kind": "pfifo", "limit_packets": 9}, "delay_ns": 5000000"#;
        let plan = plan_of(&dumbbell(link_fields, link_fields));
        // s - r - relay (3) - relay (4) of the return path - d
        assert_eq!((plan.nodes.len(), plan.hops.len()), (5, 8));
        let ends: Vec<_> = plan.hops.iter().map(|hop| (hop.from, hop.to)).collect();
        assert_eq!(ends[2..], [(1, 3), (3, 1), (3, 4), (4, 3), (4, 2), (2, 4)]);
        assert_eq!(
            (plan.delay_ns(0, 2), plan.delay_ns(2, 0)),
            ((5_000_000, true), (5_000_000, true))
        );
        let kinds: Vec<_> = plan.hops[2..].iter().map(|hop| hop.qdisc.kind()).collect();
        assert_eq!(kinds, ["pfifo", "noqueue", "netem", "netem", "noqueue", "pfifo"]);
        assert_eq!(plan.nodes[3].routes, [(0, 3), (2, 4)]);
    }

    /// s (MTU 9000) and t (1400) through two routers to d (9000); nothing passes a third.
    #[test]
    fn a_link_between_routers_has_the_mtu_of_its_traffic() {
        let mut scenario = dumbbell(r#""delay_ns": 0"#, r#""delay_ns": 5000000"#);
        let host = |name: &str, mtu_bytes| {
            let mut host = scenario.nodes[0].clone();
            let NodeSpec::Host(spec) = &mut host else { panic!() };
            (spec.name, spec.mtu_bytes) = (name.to_owned(), mtu_bytes);
            host
        };
        let mtus = |scenario: &Scenario| {
            let plan = plan_of(scenario);
            let name = |node: usize| plan.nodes[node].name.clone();
            let hops = plan.hops.iter().map(|hop| (name(hop.from), name(hop.to), hop.mtu_bytes));
            hops.collect::<Vec<_>>()
        };
        assert!(mtus(&scenario).iter().all(|(.., mtu)| *mtu == 1500));
        let (far, near) = (host("d", 9000), host("t", 1400));
        let router = |name: &str| NodeSpec::Router { name: name.to_owned() };
        scenario.nodes.extend([near, router("w"), router("x")]);
        scenario.nodes[2] = far;
        scenario.links[2].to = "w".to_owned();
        scenario.links[3].from = "w".to_owned();
        for (name, from, to) in [
            ("w-d", "w", "d"),
            ("d-w", "d", "w"),
            ("t-r", "t", "r"),
            ("r-t", "r", "t"),
            ("w-x", "w", "x"),
        ] {
            let link = LinkSpec {
                name: name.to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
                ..scenario.links[0].clone()
            };
            scenario.links.push(link);
        }
        let of = |scenario: &Scenario, from: &str, to: &str| {
            let mtus = mtus(scenario);
            mtus.iter().find(|hop| (hop.0.as_str(), hop.1.as_str()) == (from, to)).unwrap().2
        };
        for (from, to, mtu) in [
            ("r", "w", 1500),
            ("w", "r", 1500),
            ("w", "d", 9000),
            ("r", "t", 1400),
            ("w", "x", 1500),
        ] {
            assert_eq!(of(&scenario, from, to), mtu, "{from} to {to}");
        }
        scenario.flows[0].sender = "t".to_owned();
        assert_eq!((of(&scenario, "r", "w"), of(&scenario, "w", "r")), (1400, 1400));
        let NodeSpec::Host(host) = &mut scenario.nodes[0] else { panic!() };
        host.mtu_bytes = 9000;
        let jumbo = Scenario {
            flows: [scenario.flows.clone(), {
                let mut second = scenario.flows[0].clone();
                (second.label, second.sender) = ("g".to_owned(), "s".to_owned());
                vec![second]
            }]
            .concat(),
            ..scenario
        };
        assert_eq!((of(&jumbo, "r", "w"), of(&jumbo, "w", "r")), (9000, 9000));
        assert_eq!(plan_of(&jumbo).mtu_bytes(3, 2), 1400, "a path's is the least on it");
    }

    #[test]
    fn a_sender_never_delays_on_its_own_interface() {
        let mut scenario = dumbbell(r#""delay_ns": 1"#, r#""delay_ns": 1"#);
        scenario.links[0].delay_ns = 1_000_000;
        let plan = plan_of(&scenario);
        assert_eq!(plan.hops[0].qdisc, QdiscSpec::NOQUEUE);
        assert_eq!(plan.nodes[plan.hops[0].to].name, "relay of s-r");
        assert!(matches!(plan.hops[2].qdisc, QdiscSpec::Netem(_)));
    }

    #[test]
    fn a_transmitter_is_a_shaper_and_a_serialising_relay() {
        let wire = r#""rate_bps": 8000000, "overhead_bytes": 24"#;
        let plan = plan_of(&dumbbell(wire, r#""delay_ns": 0"#));
        assert!(matches!(plan.hops[2].qdisc, QdiscSpec::Htb(HtbSpec { overhead_bytes: 24, .. })));
        let QdiscSpec::Netem(behind) = &plan.hops[4].qdisc else { panic!() };
        assert_eq!(behind.rate_bps, Some(8_000_000));
    }

    #[test]
    fn a_netem_that_reorders_is_given_no_rate() {
        let mut scenario =
            dumbbell(r#""rate_bps": 8000000, "delay_ns": 1000000"#, r#""delay_ns": 0"#);
        let mut rate_of = |jitter_ns, reorder| {
            let netem = NetemSpec { jitter_ns, reorder, ..NetemSpec::default() };
            scenario.links[2].netem = Some(Box::new(netem));
            let plan = plan_of(&scenario);
            assert!(matches!(
                plan.hops[2].qdisc,
                QdiscSpec::Htb(HtbSpec { rate_bps: 8_000_000, .. })
            ));
            let QdiscSpec::Netem(behind) = &plan.hops[4].qdisc else { panic!() };
            behind.rate_bps
        };
        assert_eq!(rate_of(0, 0.0), Some(8_000_000));
        assert_eq!(rate_of(500_000, 0.0), None);
        assert_eq!(rate_of(0, 0.25), None);
    }

    #[test]
    fn a_change_is_a_step_of_the_hop_that_it_concerns() {
        let wire = r#""rate_bps": 8000000, "qdisc": {"kind": "pfifo", "limit_packets": 9}"#;
        let mut scenario = dumbbell(wire, r#""delay_ns": 1000000"#);
        scenario.changes = serde_json::from_str(
            r#"[{"at_ns": 5, "link": "r-d", "rate_bps": 4000000}, {"at_ns": 6, "link": "d-r", "delay_ns": 0},
                {"at_ns": 7, "link": "r-d", "up": false}, {"at_ns": 8, "link": "r-d", "up": true}]"#,
        )
        .unwrap();
        let plan = plan_of(&scenario);
        let steps: Vec<_> =
            plan.steps.iter().map(|step| (step.at_ns, step.hop, step.anew)).collect();
        // The queue is at hop 2, the serialising stage after it at hop 4, the return path's delay at hop 5.
        assert_eq!(
            steps,
            [(5, 2, false), (7, 2, true), (8, 2, true), (5, 4, false), (6, 5, false)]
        );
        assert_eq!(plan.steps[1].to, changes::down());
        assert_eq!(plan.steps[2].to, plan.steps[0].to);
        // A delay that changes keeps no order, so that its netem has no rate; without one, none is laid.
        scenario.links[3].rate_bps = Some(1_000_000);
        let hops = plan_of(&scenario).hops;
        let netems = hops.iter().filter_map(|hop| {
            let QdiscSpec::Netem(spec) = &hop.qdisc else { return None };
            Some((spec.delay_ns, spec.rate_bps))
        });
        assert_eq!(netems.collect::<Vec<_>>(), [(0, Some(8_000_000)), (1_000_000, None)]);
    }

    #[test]
    fn features_that_a_kernel_lacks_are_refused_by_name() {
        let bare = Kernel { lacks: vec!["netem", "pfifo"], ..Kernel::default() };
        let refusal = |bottleneck, back| {
            Plan::new(&dumbbell(bottleneck, back), &bare).unwrap_err().to_string()
        };
        let wire = r#""rate_bps": 8000000, "qdisc": {"kind": "bfifo", "limit_bytes": 9000}"#;
        assert_eq!(
            refusal(wire, r#""delay_ns": 20000000"#),
            "link d-r: delay: got 20 ms, expected none: this kernel has no netem (sch_netem), the engine vm has"
        );
        let short = r#""rate_bps": 8000000, "qdisc": {"kind": "pfifo", "limit_packets": 9}"#;
        assert_eq!(
            refusal(short, r#""delay_ns": 0"#),
            "link r-d: queue: got pfifo, expected one that this kernel has: it has no sch_pfifo, the engine vm has"
        );
        let plan = Plan::new(&dumbbell(wire, r#""delay_ns": 0"#), &bare).unwrap();
        assert_eq!(plan.nodes.len(), 3, "no relay that would serialise");
        assert_eq!(plan.cables, Vec::<String>::new());
        assert!(matches!(plan.hops[2].qdisc, QdiscSpec::Htb(_)));
    }

    #[test]
    fn a_kernel_without_netem_leaves_a_cables_delay_to_the_cable() {
        let bare = Kernel { lacks: vec!["netem"], ..Kernel::default() };
        let wire = r#""rate_bps": 8000000, "qdisc": {"kind": "bfifo", "limit_bytes": 9000}"#;
        let mut scenario = dumbbell(wire, r#""delay_ns": 250000"#);
        let plan = Plan::new(&scenario, &bare).unwrap();
        assert_eq!(plan.cables, ["link d-r: delay of 250 us left to the cable"]);
        assert_eq!((plan.nodes.len(), plan.delay_ns(2, 0)), (3, (0, true)));
        // With a netem the delay is set; a changing delay is not left to the cable.
        assert_eq!(plan_of(&scenario).delay_ns(2, 0), (250_000, true));
        scenario.changes =
            serde_json::from_str(r#"[{"at_ns": 5, "link": "d-r", "delay_ns": 100000}]"#).unwrap();
        assert!(Plan::new(&scenario, &bare).is_err());
        scenario.changes.clear();
        scenario.links[3].delay_ns += 1;
        assert!(Plan::new(&scenario, &bare).is_err());
    }

    #[test]
    fn impossible_requests_are_refused_by_name() {
        let mut scenario = dumbbell(r#""delay_ns": 0"#, r#""delay_ns": 0"#);
        let refusal =
            |scenario: &Scenario| Plan::new(scenario, &Kernel::DEBIAN).unwrap_err().to_string();
        let NodeSpec::Host(host) = &mut scenario.nodes[0] else { panic!() };
        host.profile = StackProfile::Linux2638;
        assert_eq!(
            refusal(&scenario),
            "host s: profile: got linux-2.6.38, expected linux-6, the kernel's own stack"
        );
        let newer = Kernel { release: Some("7.3.4+deb13-amd64".to_owned()), ..Kernel::DEBIAN };
        assert_eq!(
            Plan::new(&scenario, &newer).unwrap_err().to_string(),
            "host s: profile: got linux-2.6.38, expected linux-6 or linux-7, the kernel's own stack"
        );
        let NodeSpec::Host(host) = &mut scenario.nodes[0] else { panic!() };
        host.profile = StackProfile::Linux7;
        assert!(refuse(&scenario, &newer).is_ok());
        assert!(refuse(&scenario, &Kernel::DEBIAN).is_err());
    }

    #[test]
    fn a_line_is_no_neighbour() {
        let plan = Plan::new(&crate::lines::hub(), &Kernel::DEBIAN).unwrap();
        let [line] = plan.lines.as_slice() else { panic!("one line") };
        assert_eq!(
            (line.links.as_slice(), line.kinds.as_slice()),
            (
                ["r-d".to_owned(), "d-r".to_owned()].as_slice(),
                ["ethernet_hub".to_owned(), "wire".to_owned()].as_slice(),
            )
        );
        assert_eq!(plan.nodes[line.node].name, "line of r-d");
        assert!(plan.is_line(line.node) && !plan.nodes[line.node].forwards);
        let [there, back] = [line.first_hop, line.first_hop + 3];
        assert_eq!((plan.opposite(there), plan.opposite(back)), (back, there));
        assert_eq!(plan.hops[back].from, 2, "d's own interface");
        for hop in line.hops_out() {
            assert_eq!(plan.hops[hop].from, line.node);
        }
        assert_eq!(plan.delay_ns(1, 2), (3_000_000, false));
        assert!(plan.has_line(0, 2) && !plan.has_line(0, 1));
    }

    #[test]
    fn links_that_cannot_be_carried_are_refused_by_name() {
        let refusal = |scenario: &Scenario, lines| {
            let kernel = Kernel { lines, ..Kernel::DEBIAN };
            Plan::new(scenario, &kernel).unwrap_err().to_string()
        };
        let plain = crate::lines::hub();
        assert_eq!(
            refusal(&plain, Lines::None),
            "link r-d: medium: got hub (ethernet_hub), expected none: a kernel has only links of its own"
        );
        let mut tunnelled = plain.clone();
        let tunnel = serde_json::from_str(r#"{"kind": "tunnel", "flow": "f", "near": "r"}"#);
        tunnelled.media.insert("hub".to_owned(), tunnel.unwrap());
        assert!(
            refusal(&tunnelled, Lines::Media).starts_with("link r-d: medium: got hub (tunnel)")
        );
        let mut whole = plain.clone();
        for node in &mut whole.nodes {
            if let NodeSpec::Host(host) = node {
                host.gso = GsoMode::Whole;
            }
        }
        assert!(
            refusal(&whole, Lines::Media)
                .starts_with("link r-d: medium: got ethernet_hub, expected gso off")
        );
        let mut every = plain;
        every.links[2].medium = None;
        every.links[2].netem = Some(Box::new(NetemSpec::parse_text("loss every 100").unwrap()));
        assert_eq!(
            refusal(&every, Lines::None),
            "link r-d: loss: got every, expected random or gemodel: a kernel's netem loses no packet by its number"
        );
    }
}
