//! Mapping of a scenario's nodes and queues to the hosts of a lab. No host is contacted or changed here.
//!
//! A link is a cable between two hosts, or part of a host as long as it needs no shaping. Its queue is placed at the
//! egress of the host where the link begins. The stage after the queue (delay, impairments, netem) goes onto the same
//! interface if there is no queue and the host sends no data: netem takes packets off a sender's socket, which TCP
//! Small Queues then no longer sees. Otherwise it is placed at the ingress of the host that the link leads to, on a
//! separate interface (ifb).

use super::hosts::{Allow, Cable, Host, Lab};
use super::messages::{Place, Queue, Ready};
use crate::changes::{self, Changing, Step};
use crate::fault::{Fault, fault, refusal};
use crate::kernel::Kernel;
use crate::network::seed_of;
use crate::plan::{self, Hop, Node, Plan};
use crate::stages::{Side, lacking, leave_to_cable};
use crate::trees;
use dragstrip_scenario::{
    GsoMode, LinkSpec, NodeSpec, Period, QdiscSpec, Scenario, Sysctls, Topology,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Configuration and duties of one host in a run.
#[derive(Debug, Default)]
pub struct Part {
    pub sysctls: BTreeMap<String, String>,
    pub interfaces: Vec<Ready>,
    pub queues: Vec<Queue>,
    /// For each queue the node that reports its counters.
    owners: Vec<usize>,
    /// Changes of the queues during the run; their hops are indices of queues.
    steps: Vec<Step>,
    pub nodes: Vec<usize>,
    /// Links that begin here: the node, the name, the interface.
    pub near_ends: Vec<(usize, String, String)>,
    /// True when one of the host's nodes forwards.
    pub forwards: bool,
    /// The way to each end of a flow: its address, our interface, and the next host's address if it is not there yet.
    pub ways: Vec<(Ipv4Addr, String, Option<Ipv4Addr>)>,
}

/// A scenario in a lab.
#[derive(Debug, Default)]
pub struct Placement {
    nodes: Vec<Node>,
    /// By the host's name.
    pub parts: BTreeMap<String, Part>,
    /// Links whose delay is left to their cables.
    pub cables: Vec<String>,
    /// Delay set after each queue, by link (ns).
    delays: Vec<u64>,
}

/// Lays a scenario out; `kernels` are those of the hosts, by name.
pub fn place(
    scenario: &Scenario,
    lab: &Lab,
    kernels: &BTreeMap<String, Kernel>,
) -> Result<Placement, Fault> {
    plan::refuse(scenario, &Kernel::default())?;
    trees::refuse_marks(scenario)?;
    let mut hosts = scenario.nodes.iter().filter_map(NodeSpec::host);
    if let Some(host) = hosts.find(|host| host.gso == GsoMode::Whole) {
        let expected = "off or auto: offloads are off on its interfaces";
        return refusal(format!("host {}: gso", host.name), "whole", expected);
    }
    let topology = Topology::new(scenario);
    let mtus = plan::link_mtus(scenario, &topology);
    let mut homes = Vec::new();
    for node in &scenario.nodes {
        homes.push(home(lab, node.name())?);
    }
    let mut placing = Placing {
        scenario,
        lab,
        kernels,
        topology,
        mtus,
        homes,
        taken: BTreeMap::new(),
        found: Placement {
            nodes: scenario.nodes.iter().map(plan::node).collect(),
            parts: BTreeMap::new(),
            cables: Vec::new(),
            delays: vec![0; scenario.links.len()],
        },
    };
    placing.nodes()?;
    for link in 0..scenario.links.len() {
        placing.link(link)?;
    }
    placing.ways()?;
    Ok(placing.found)
}

fn home<'l>(lab: &'l Lab, node: &str) -> Result<&'l Host, Fault> {
    let name = lab.nodes.get(node).map_or(node, String::as_str);
    let host = lab.hosts.iter().find(|host| host.name == name);
    match host {
        Some(host) => Ok(host),
        None => refusal("nodes", node, "a line in [nodes] that says which host plays this node"),
    }
}

struct Placing<'a> {
    scenario: &'a Scenario,
    lab: &'a Lab,
    kernels: &'a BTreeMap<String, Kernel>,
    topology: Topology<'a>,
    /// By link.
    mtus: Vec<u32>,
    /// By node.
    homes: Vec<&'a Host>,
    /// Link that occupies an interface's place, and whether another link may share the place.
    taken: BTreeMap<(String, String, bool), (String, bool)>,
    found: Placement,
}

impl<'a> Placing<'a> {
    fn part(&mut self, host: &Host) -> &mut Part {
        self.found.parts.entry(host.name.clone()).or_default()
    }

    /// Settings and the nodes of each host.
    fn nodes(&mut self) -> Result<(), Fault> {
        for node in 0..self.homes.len() {
            let host = self.homes[node];
            let spec = &self.scenario.nodes[node];
            let mut sysctls = spec.host().map(|host| host.sysctl.clone()).unwrap_or_default();
            if spec.host().is_some() {
                let defaults = Sysctls::linux_6().values();
                for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
                    let value = defaults.iter().find(|(setting, _)| *setting == name);
                    let value = value.map(|(_, value)| value.clone()).unwrap_or_default();
                    sysctls.entry(name.to_owned()).or_insert(value);
                }
                sysctls.insert("net.ipv4.tcp_no_metrics_save".to_owned(), "1".to_owned());
            }
            let field = |name: &str| format!("host {}: sysctl {name}", spec.name());
            for (name, value) in sysctls {
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                allowed(&self.lab.allow, &field(&name), &name, &value)?;
                let host_part = self.part(host);
                match host_part.sysctls.insert(name.clone(), value.clone()) {
                    Some(previous) if previous != value => {
                        let expected = format!(
                            "one value for each host of the lab: {} has {previous} too",
                            host.name
                        );
                        return refusal(field(&name), value, expected);
                    }
                    Some(_) | None => {}
                }
            }
            let forwards = self.found.nodes[node].forwards;
            let part = self.part(host);
            part.nodes.push(node);
            part.forwards |= forwards;
        }
        Ok(())
    }

    /// The interface at which a link leaves its host, and the one at which it comes in.
    fn cable(&self, link: usize) -> Result<(&'a Cable, &'a Cable), Fault> {
        let (from, to) = self.topology.ends(link);
        let (from, to) = (self.homes[from], self.homes[to]);
        let name = &self.scenario.links[link].name;
        match (from.towards(&to.name), to.towards(&from.name)) {
            (Some(out), Some(back)) => Ok((out, back)),
            (None, _) => refusal(
                format!("link {name}"),
                "",
                format!("a cable: host {} has no interface with to = \"{}\"", from.name, to.name),
            ),
            (_, None) => refusal(
                format!("link {name}"),
                "",
                format!("a cable: host {} has no interface with to = \"{}\"", to.name, from.name),
            ),
        }
    }

    fn link(&mut self, index: usize) -> Result<(), Fault> {
        let (out, back) = self.cable(index)?;
        let (from, to) = self.topology.ends(index);
        let (from_host, to_host) = (self.homes[from], self.homes[to]);
        let mut link = self.scenario.links[index].clone();
        let changing = Changing::of(self.scenario, &link.name);
        let cable_note = leave_to_cable(&mut link, changing);
        self.found.cables.extend(cable_note);
        let gso = plan::gso_limit(&self.scenario.nodes[from]);
        let mtu_bytes = self.mtus[index];
        self.interface(from_host, out, mtu_bytes, gso);
        let near_end = (from, link.name.clone(), out.name.clone());
        self.part(from_host).near_ends.push(near_end);
        self.interface(to_host, back, mtu_bytes, None);
        let none = Kernel::default();
        let kernel = |host: &Host| self.kernels.get(&host.name).unwrap_or(&none).clone();
        let (kernel_here, kernel_there) = (kernel(from_host), kernel(to_host));
        let senders = plan::senders(self.scenario);
        let (mut sides, mut queues, mut behinds) = (Vec::new(), Vec::new(), Vec::new());
        for Period { from_ns, link, up } in self.scenario.periods(&link) {
            let side = Side::new(&link, changing, &kernel_there, &senders)?;
            let bare = LinkSpec { netem: None, delay_ns: 0, ..link.clone() };
            lacking(&bare, &kernel_here).map_err(|fault| on(fault, from_host))?;
            let home = if side.behind.is_some() {
                (to_host, &kernel_there)
            } else {
                (from_host, &kernel_here)
            };
            lacking(&link, home.1).map_err(|fault| on(fault, home.0))?;
            queues.push((from_ns, side.queue.0.clone(), up));
            let netem = side.behind.clone().map(|(spec, _)| QdiscSpec::Netem(spec));
            behinds.extend(netem.map(|netem| (from_ns, netem, true)));
            sides.push(side);
        }
        let Side { queue: (queue, watched), behind } = sides.swap_remove(0);
        self.found.delays[index] = link.delay_ns + link.netem.map_or(0, |netem| netem.delay_ns);
        let plain = queue == QdiscSpec::NOQUEUE && !changing.up;
        self.claim(index, from_host, out, Place::Egress, plain)?;
        if !plain {
            self.queue((from, out, Place::Egress), queue, watched, queues);
        }
        if let Some((netem, watched)) = behind {
            self.claim(index, to_host, back, Place::Ingress, false)?;
            self.queue((to, back, Place::Ingress), QdiscSpec::Netem(netem), watched, behinds);
        }
        Ok(())
    }

    fn interface(&mut self, host: &Host, cable: &Cable, mtu_bytes: u32, gso_segments: Option<u32>) {
        let part = self.part(host);
        match part.interfaces.iter_mut().find(|ready| ready.name == cable.name) {
            Some(previous) => {
                previous.gso_segments = previous.gso_segments.or(gso_segments);
                previous.mtu_bytes = previous.mtu_bytes.max(mtu_bytes);
            }
            None => {
                part.interfaces.push(Ready { name: cable.name.clone(), gso_segments, mtu_bytes });
            }
        }
    }

    /// Links that share a cable may not both be more than a cable there.
    fn claim(
        &mut self,
        link: usize,
        host: &Host,
        cable: &Cable,
        place: Place,
        plain: bool,
    ) -> Result<(), Fault> {
        let name = &self.scenario.links[link].name;
        let key = (host.name.clone(), cable.name.clone(), place == Place::Egress);
        match self.taken.insert(key, (name.clone(), plain)) {
            Some((other, other_plain)) if !(plain && other_plain) => refusal(
                format!("link {name}"),
                "",
                format!(
                    "a cable of its own: host {}: {} is link {other}'s already, and one of them has a queue, \
                     a rate or a delay",
                    host.name, cable.name
                ),
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// A queue at a place, and what becomes of it by the time from which it is so.
    fn queue(
        &mut self,
        (node, cable, place): (usize, &Cable, Place),
        qdisc: QdiscSpec,
        watched: Option<String>,
        periods: Vec<(u64, QdiscSpec, bool)>,
    ) {
        let seed = self.scenario.seed;
        let part = self.part(self.homes[node]);
        let hop = part.queues.len();
        let seed = Some(seed_of(seed, hop + (node << 8)));
        part.queues.push(Queue { interface: cable.name.clone(), place, qdisc, watched, seed });
        part.owners.push(node);
        part.steps.extend(changes::steps(hop, periods));
    }

    /// Addresses of the nodes, and the ways that routes must take between those that speak with each other.
    fn ways(&mut self) -> Result<(), Fault> {
        for link in 0..self.scenario.links.len() {
            let (from, _) = self.topology.ends(link);
            let address = self.cable(link)?.0.address;
            let node_address = &mut self.found.nodes[from].address;
            if node_address.is_unspecified() {
                *node_address = address;
            }
        }
        for (from, to) in plan::pairs(self.scenario, &self.topology) {
            let path = self.topology.path(from, to);
            let Ok(path) = path else {
                return fault(format!(
                    "there is no path from {} to {}",
                    self.scenario.nodes[from].name(),
                    self.scenario.nodes[to].name()
                ));
            };
            let target = self.found.nodes[to].address;
            for link in path {
                let (out, back) = self.cable(link)?;
                let (at, next) = self.topology.ends(link);
                let gateway = (back.address != target).then_some(back.address);
                let part = self.part(self.homes[at]);
                if !part.ways.iter().any(|(address, ..)| *address == target) {
                    part.ways.push((target, out.name.clone(), gateway));
                }
                debug_assert_ne!(at, next);
            }
        }
        Ok(())
    }
}

fn allowed(allow: &Allow, field: &str, name: &str, value: &str) -> Result<(), Fault> {
    if allow.sysctl(name) {
        return Ok(());
    }
    let expected =
        format!("one that the lab lets be changed: [allow] sysctl has {}", allow.sysctl.join(", "));
    refusal(field, value, expected)
}

/// Adds the host's name to a refusal.
fn on(fault: Fault, host: &Host) -> Fault {
    match fault {
        Fault::Refused(field, value, expected) => {
            Fault::Refused(format!("host {}: {field}", host.name), value, expected)
        }
        failed @ Fault::Failed(_) => failed.at(&format!("host {}", host.name)),
    }
}

impl Placement {
    /// The plan as one host needs it: all nodes, and its own queues for hops.
    pub fn plan_of(&self, host: &str) -> Plan {
        let part = &self.parts[host];
        let hops = part.queues.iter().zip(&part.owners).map(|(queue, &node)| Hop {
            from: node,
            to: node,
            mtu_bytes: 0,
            gso_segments_max: None,
            whole_bursts: false,
            qdisc: queue.qdisc.clone(),
            markings: Vec::new(),
            watched: queue.watched.clone(),
            near_end_of: None,
            line_delay_ns: None,
        });
        Plan { hops: hops.collect(), steps: part.steps.clone(), ..self.plan() }
    }

    /// The nodes alone.
    pub fn plan(&self) -> Plan {
        let node = |node: &Node| Node {
            name: node.name.clone(),
            address: node.address,
            forwards: node.forwards,
            sysctl: node.sysctl.clone(),
            routes: Vec::new(),
        };
        let nodes = self.nodes.iter().map(node).collect();
        let (hops, steps, lines) = (Vec::new(), Vec::new(), Vec::new());
        Plan { nodes, hops, steps, seed: None, cables: Vec::new(), lines }
    }

    /// The host of a node.
    pub fn host_of(&self, node: usize) -> Option<&str> {
        let part = self.parts.iter().find(|(_, part)| part.nodes.contains(&node));
        part.map(|(name, _)| name.as_str())
    }

    /// The delay that is set in both directions, and whether every packet meets the same one.
    pub fn delay_ns(&self, scenario: &Scenario, from: usize, to: usize) -> (u64, bool) {
        let topology = Topology::new(scenario);
        let mut links = topology.path(from, to).unwrap_or_default();
        links.extend(topology.path(to, from).unwrap_or_default());
        let constant = links.iter().all(|link| {
            let netem = scenario.links[*link].netem.as_ref();
            netem.is_none_or(|netem| netem.jitter_ns == 0 && netem.reorder == 0.0)
        });
        (links.iter().map(|link| self.delays[*link]).sum(), constant)
    }
}

#[cfg(test)]
mod tests;
