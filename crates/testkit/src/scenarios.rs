//! Random valid scenarios: dumbbells, chains of routers and random graphs, with every kind of link
//! and traffic.

use crate::links::{link, medium, rate_bps};
use crate::path;
use crate::traffic::{flow, host};
use dragstrip_scenario::{
    Application, ChangeSpec, FlowSpec, GsoMode, HostSpec, LinkSpec, MediumSpec, NodeSpec,
    ProbeSpec, Record, Scenario, SocketBuffers, StackProfile, Transport,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// Limit on the cost of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Longest run, ns.
    pub duration_ns: u64,
    /// Most flows.
    pub flows: usize,
}

/// Hosts come first in the numbering of nodes, then routers; every edge is a link in each direction.
#[derive(Clone, Debug)]
struct Shape {
    hosts: usize,
    routers: usize,
    edges: Vec<(usize, usize)>,
}

fn dumbbell() -> impl Strategy<Value = Shape> {
    (1..4_usize).prop_map(|senders| {
        let (hosts, left, right) = (senders + 1, senders + 1, senders + 2);
        let mut edges = vec![(left, right), (senders, right)];
        edges.extend((0..senders).map(|sender| (sender, left)));
        Shape { hosts, routers: 2, edges }
    })
}

fn chain() -> impl Strategy<Value = Shape> {
    (0..5_usize).prop_map(|routers| {
        // 0 — 2 — 3 ... — 1, or the two hosts side by side.
        let mut stops = vec![0];
        stops.extend(2..2 + routers);
        stops.push(1);
        let edges = stops.windows(2).map(|pair| (pair[0], pair[1])).collect();
        Shape { hosts: 2, routers, edges }
    })
}

fn graph() -> impl Strategy<Value = Shape> {
    let picks = proptest::collection::vec(any::<usize>(), 12);
    (2..5_usize, 1..5_usize, 0..4_usize, picks).prop_map(|(hosts, routers, chords, picks)| {
        let mut picks = picks.into_iter();
        let mut pick = |below: usize| picks.next().unwrap_or(0) % below;
        let mut edges = Vec::new();
        for router in 1..routers {
            edges.push((hosts + router, hosts + pick(router)));
        }
        for host in 0..hosts {
            edges.push((host, hosts + pick(routers)));
        }
        for _ in 0..chords {
            let (from, to) = (hosts + pick(routers), hosts + pick(routers));
            let exists = edges.iter().any(|&(a, b)| (a, b) == (from, to) || (b, a) == (from, to));
            if from != to && !exists {
                edges.push((from, to));
            }
        }
        Shape { hosts, routers, edges }
    })
}

/// Valid scenarios; a case takes some milliseconds to run within `budget`.
pub fn scenarios(budget: Budget) -> impl Strategy<Value = Scenario> {
    let shape = prop_oneof![2 => dumbbell(), 1 => chain(), 2 => graph()];
    let parts = (
        // Both directions of at most eleven edges: the ones at hosts have a rate.
        proptest::collection::vec((link(false), link(true)), 22),
        // What carries an edge that is no wire, and whether the node that sends first does not listen.
        proptest::collection::vec(
            proptest::option::weighted(0.15, (medium(), proptest::bool::weighted(0.2))),
            11,
        ),
        // A wire for the connection that carries a tunnel between two routers.
        proptest::option::weighted(0.2, (link(false), link(false))),
        proptest::collection::vec(host(), 4),
        proptest::collection::vec(flow(), 1..=budget.flows),
        proptest::collection::vec((any::<usize>(), any::<usize>(), 20 * MS..400 * MS), 0..3),
    );
    let changes = prop_oneof![
        3 => Just(Vec::new()),
        1 => proptest::collection::vec(change(), 1..8),
    ];
    let rest = (any::<u64>(), 50 * MS..budget.duration_ns, any::<bool>(), any::<bool>(), changes);
    (shape, parts, rest).prop_map(|(shape, (links, media, tunnel, hosts, flows, probes), rest)| {
        let (seed, duration_ns, cold_arp, every_ack, changes) = rest;
        let nodes = nodes(&shape, hosts);
        let mut links = name_links(&shape, &nodes, links);
        let media = name_media(&mut links, media);
        let scenario = Scenario {
            name: "random".to_owned(),
            seed,
            duration_ns,
            links,
            media,
            routes: Vec::new(),
            flows: name_flows(&shape, &nodes, flows, duration_ns),
            probes: name_probes(&shape, &nodes, probes),
            nodes,
            programs: BTreeMap::new(),
            cold_arp,
            changes: Vec::new(),
            record: Record {
                interval_ns: 10 * MS,
                every_ack,
                rtts: true,
                cc_state: every_ack,
                captures: false,
            },
        };
        changing(single_where_cut(tunnelled(scenario, &shape, tunnel)), changes)
    })
}

/// A change of whichever link, at a part of the run.
#[derive(Clone, Debug)]
struct Drawn {
    link: usize,
    part: f64,
    what: u32,
    rate_bps: u64,
    delay_ns: u64,
    loss: f64,
    limit: u32,
}

fn change() -> impl Strategy<Value = Drawn> {
    let limit = prop_oneof![1..20_u32, 20..2_000_u32];
    (any::<usize>(), 0.0..1.0, any::<u32>(), rate_bps(), 0..60 * MS, 0.0..0.3, limit).prop_map(
        |(link, part, what, rate_bps, delay_ns, loss, limit)| Drawn {
            link,
            part,
            what,
            rate_bps,
            delay_ns,
            loss,
            limit,
        },
    )
}

/// With those of these changes that its links can make.
fn changing(mut scenario: Scenario, drawn: Vec<Drawn>) -> Scenario {
    for Drawn { link, part, what, rate_bps, delay_ns, loss, limit } in drawn {
        let name = &scenario.links[link % scenario.links.len()].name;
        let at_ns = (scenario.duration_ns as f64 * part) as u64;
        let none = || ChangeSpec { at_ns, link: name.clone(), ..ChangeSpec::default() };
        let settings = [
            ChangeSpec { rate_bps: Some(rate_bps), ..none() },
            ChangeSpec { delay_ns: Some(delay_ns), ..none() },
            ChangeSpec { loss: Some(loss), ..none() },
            ChangeSpec { limit_bytes: Some(u64::from(limit) * 1514), ..none() },
            ChangeSpec { limit_packets: Some(limit), ..none() },
            ChangeSpec { up: Some(what >> 30 > 1), ..none() },
        ];
        for (bit, change) in settings.into_iter().enumerate() {
            if what >> bit & 1 == 1 {
                scenario.changes.push(change);
                if scenario.validate().is_err() {
                    scenario.changes.pop();
                }
            }
        }
    }
    scenario
}

/// Bursts are cut at the host where something on the path would cut them.
fn single_where_cut(mut scenario: Scenario) -> Scenario {
    if scenario.cuts_bursts().is_some() {
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node
                && host.gso == GsoMode::Whole
            {
                host.gso = GsoMode::Auto;
            }
        }
    }
    scenario
}

/// `scenario` with the stack `profile` on every host, without settings of Linux 6.1's, and flows of its congestion
/// controls `ccs`, in turn.
#[must_use]
pub fn on_stack(scenario: &Scenario, profile: StackProfile, ccs: &[&str]) -> Scenario {
    let mut old = scenario.clone();
    for node in &mut old.nodes {
        if let NodeSpec::Host(host) = node {
            (host.profile, host.gso) = (profile, GsoMode::Off);
            host.sysctl.clear();
        }
    }
    for (index, flow) in old.flows.iter_mut().enumerate() {
        if let Transport::Tcp { cc, cc_options, receiver_cc, socket } = &mut flow.transport {
            ccs[index % ccs.len()].clone_into(cc);
            cc_options.clear();
            *receiver_cc = None;
            *socket = SocketBuffers::default();
        }
    }
    old
}

fn nodes(shape: &Shape, hosts: Vec<HostSpec>) -> Vec<NodeSpec> {
    let hosts = hosts.into_iter().take(shape.hosts).enumerate();
    let hosts =
        hosts.map(|(index, host)| NodeSpec::Host(HostSpec { name: format!("h{index}"), ..host }));
    let routers = (0..shape.routers).map(|index| NodeSpec::Router { name: format!("r{index}") });
    hosts.chain(routers).collect()
}

fn name_links(
    shape: &Shape,
    nodes: &[NodeSpec],
    links: Vec<(LinkSpec, LinkSpec)>,
) -> Vec<LinkSpec> {
    let directed = shape.edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
    let link_specs = directed.zip(links).map(|((from, to), (limited, free))| {
        let link = if from < shape.hosts { limited } else { free };
        let (from, to) = (nodes[from].name(), nodes[to].name());
        LinkSpec { name: format!("{from}-{to}"), from: from.to_owned(), to: to.to_owned(), ..link }
    });
    link_specs.collect()
}

/// Both links of an edge that has a medium name it instead of having a rate.
fn name_media(
    links: &mut [LinkSpec],
    media: Vec<Option<(MediumSpec, bool)>>,
) -> BTreeMap<String, MediumSpec> {
    let mut named = BTreeMap::new();
    for (index, (edge, medium)) in links.chunks_exact_mut(2).zip(media).enumerate() {
        let Some((mut medium, deaf)) = medium else { continue };
        if let MediumSpec::EthernetHub { full_duplex, .. } = &mut medium {
            *full_duplex = deaf.then(|| edge[0].from.clone());
        }
        for link in edge {
            link.medium = Some(format!("m{index}"));
            link.rate_bps = None;
            link.overhead_bytes = 0;
        }
        named.insert(format!("m{index}"), medium);
    }
    named
}

/// The first edge between routers becomes a tunnel, whose connection has a wire and hosts of its own.
fn tunnelled(
    mut scenario: Scenario,
    shape: &Shape,
    wire: Option<(LinkSpec, LinkSpec)>,
) -> Scenario {
    let between_routers = |&(a, b): &(usize, usize)| a >= shape.hosts && b >= shape.hosts;
    let (Some((there, back)), Some(edge)) = (wire, shape.edges.iter().position(between_routers))
    else {
        return scenario;
    };
    let near = scenario.links[2 * edge].from.clone();
    for link in &mut scenario.links[2 * edge..2 * edge + 2] {
        if let Some(medium) = link.medium.replace("tunnel".to_owned()) {
            scenario.media.remove(&medium);
        }
        link.rate_bps = None;
        link.overhead_bytes = 0;
    }
    let spec = MediumSpec::Tunnel { flow: "carrier".to_owned(), near };
    scenario.media.insert("tunnel".to_owned(), spec);
    for (from, to, link) in [("t0", "t1", there), ("t1", "t0", back)] {
        scenario.nodes.push(path::host(from));
        let name = format!("{from}-{to}");
        scenario.links.push(LinkSpec { name, from: from.to_owned(), to: to.to_owned(), ..link });
    }
    scenario.flows.push(FlowSpec {
        label: "carrier".to_owned(),
        application: Application::Tunnel { header_bytes: 2 },
        ..path::flow("t0", "t1", "cubic")
    });
    scenario
}

/// Two different hosts, chosen by two numbers.
fn pair(shape: &Shape, from: usize, to: usize) -> (usize, usize) {
    let from = from % shape.hosts;
    (from, (from + 1 + to % (shape.hosts - 1)) % shape.hosts)
}

fn name_flows(
    shape: &Shape,
    nodes: &[NodeSpec],
    flows: Vec<(usize, usize, FlowSpec)>,
    duration_ns: u64,
) -> Vec<FlowSpec> {
    let flow_specs = flows.into_iter().enumerate().map(|(index, (from, to, flow))| {
        let (from, to) = pair(shape, from, to);
        let start_ns = flow.start_ns % duration_ns;
        let is_small = |node: usize| nodes[node].host().is_some_and(|host| host.mtu_bytes < 576);
        // A report needs the room that every host can reassemble.
        let application = if let Application::Rtp { min_bps, .. } = flow.application
            && (is_small(from) || is_small(to))
        {
            Application::ConstantRate { rate_bps: min_bps.min(100_000), datagram_bytes: 40 }
        } else {
            flow.application
        };
        FlowSpec {
            application,
            label: format!("f{index}"),
            sender: nodes[from].name().to_owned(),
            receiver: nodes[to].name().to_owned(),
            start_ns,
            stop_ns: flow.stop_ns.map(|stop| stop - flow.start_ns + start_ns),
            ..flow
        }
    });
    flow_specs.collect()
}

/// Pings from a host to any other node.
fn name_probes(
    shape: &Shape,
    nodes: &[NodeSpec],
    probes: Vec<(usize, usize, u64)>,
) -> Vec<ProbeSpec> {
    let probe_specs = probes.into_iter().enumerate().map(|(index, (from, to, interval_ns))| {
        let from = from % shape.hosts;
        let target = (from + 1 + to % (nodes.len() - 1)) % nodes.len();
        ProbeSpec {
            label: format!("p{index}"),
            from: nodes[from].name().to_owned(),
            target: nodes[target].name().to_owned(),
            interval_ns,
            // Fits the smallest MTU.
            size_bytes: 40,
            start_ns: 0,
        }
    });
    probe_specs.collect()
}
