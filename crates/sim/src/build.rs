//! From a scenario to a world ready to run: names become numbers, specifications become parts.

use crate::algorithms::{algorithm, connection_name, programs, quic_endpoint, tcp_targets};
use crate::apps::{App, Flow, FlowKind};
use crate::calendar::{Calendar, MAX_SOURCES, Source};
use crate::changes::{changes, concerns_queue};
use crate::error::{SetupError, problem};
use crate::headers;
use crate::hops::{CARD, END, PROCESSOR};
use crate::lane::{Lane, MAX_HOPS};
use crate::media::{Media, Place};
use crate::neighbours::resolutions;
use crate::network::{
    Addresses, Cards, Evented, Network, Processors, Server, Shared, Stage, StageCounters, Target,
    Tunnel,
};
use crate::observer::{Observer, Watch};
use crate::owners::owner;
use crate::packets::Packets;
use crate::partition::{Assignment, CutLinks, FLOWS_MIN, Partition};
use crate::probes::Probe;
use crate::rates::rate;
use crate::sockets::{QuicSocket, Socket, with_buffers};
use crate::world::{Layout, QueueWatch, World};
use dragstrip_link::{Ring, Transmitter, Wire};
use dragstrip_packet::Dscp;
use dragstrip_player::Player;
use dragstrip_qdisc::{ComputedFifo, Configuration as _, Discipline, Headers, Hosts, Streams};
use dragstrip_recording::Writer;
use dragstrip_rtp::Session;
use dragstrip_scenario::{
    Application, NodeSpec, QdiscSpec, Scenario, SocketBuffers, Topology, Transport,
};
use dragstrip_tcp::{Endpoint, HostSettings, Role, Settings};
use dragstrip_units::{Duration, Instant, Rate, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A stage before lanes and sources have been numbered.
struct Draft {
    discipline: Discipline,
    line: Option<(Rate, u32)>,
    medium: Option<Place>,
    /// Its line or queue changes during the run.
    changes: bool,
    delay: Duration,
    /// Node it leads to: stages to the same node share a lane.
    to: usize,
    /// The network may be cut after it.
    is_cut: bool,
    watched: Option<String>,
}

/// The stages of every link, and which of them each link consists of.
fn stages<'a>(
    scenario: &'a Scenario,
    topology: &Topology<'_>,
    cut_links: &CutLinks,
    media: &mut Media<'a>,
) -> (Vec<Draft>, Vec<Vec<u32>>) {
    let mut drafts = Vec::new();
    let mut of_link = Vec::new();
    for (index, link) in scenario.links.iter().enumerate() {
        let to = topology.ends(index).1;
        let mut mine = vec![drafts.len() as u32];
        let behind = scenario.netem_behind(link);
        let delay = Duration::from_nanos(link.delay_ns);
        let after_netem = if scenario.netem_delays(link) { Duration::ZERO } else { delay };
        drafts.push(Draft {
            discipline: link.qdisc.build(&Streams::of_link(scenario.seed, &link.name)),
            line: link.rate_bps.map(|bps| (rate(bps), link.overhead_bytes)),
            medium: media.place(link, drafts.len() as u32),
            changes: concerns_queue(scenario, link),
            delay: if behind.is_some() { Duration::ZERO } else { delay },
            to,
            is_cut: cut_links.at(index),
            watched: (link.qdisc != QdiscSpec::NOQUEUE).then(|| link.name.clone()),
        });
        if let Some(spec) = &behind {
            mine.push(drafts.len() as u32);
            let name = format!("{}:netem", link.name);
            drafts.push(Draft {
                discipline: Discipline::Netem(spec.build(&Streams::of_link(scenario.seed, &name))),
                line: None,
                medium: None,
                changes: false,
                delay: after_netem,
                to,
                is_cut: false, // a link with a netem is not cut
                watched: Some(name),
            });
        }
        of_link.push(mine);
    }
    (drafts, of_link)
}

/// Ports under construction.
struct Ports<'a> {
    topology: &'a Topology<'a>,
    of_link: &'a [Vec<u32>],
    processors: &'a Processors,
    cards: &'a Cards,
    ports: Vec<Target>,
    addresses: Addresses,
    hops: Vec<u32>,
    /// Links of the paths found so far.
    found: BTreeMap<(usize, usize), Vec<usize>>,
}

impl Ports<'_> {
    /// Adds a port at node `to` for packets from node `from`; returns the first hop of its path. `name` identifies it
    /// in fair queueing, independently of other ports.
    fn add(
        &mut self,
        (from, to): (usize, usize),
        target: Target,
        headers: Headers,
        name: &str,
        field: &str,
    ) -> Result<u32, SetupError> {
        if !self.found.contains_key(&(from, to)) {
            let links =
                self.topology.path(from, to).map_err(|error| problem(field, error.to_string()))?;
            self.found.insert((from, to), links);
        }
        let first_hop = self.hops.len() as u32;
        let links = &self.found[&(from, to)];
        self.hops.extend(self.processors.hop(from));
        self.hops.extend(links.iter().flat_map(|&link| &self.of_link[link]));
        self.hops.extend(self.cards.hop(to));
        self.hops.extend(self.processors.hop(to));
        self.hops.push(END | self.ports.len() as u32);
        self.ports.push(target);
        let address = |node: usize| {
            Stream::named(0, &format!("host/{}", self.topology.node_name(node))).next_u32()
        };
        let hosts = Hosts { source: address(from), destination: address(to) };
        self.addresses.hosts.push(hosts);
        self.addresses.headers.push(headers);
        self.addresses.flows.push(Stream::named(0, name).next_u32());
        Ok(first_hop)
    }

    /// The stage or processor in front of each stage, where it is always the same one; `None` where packets also come from a
    /// host without a processor or from several stages.
    fn feeders(&self, stage_count: usize) -> Vec<Option<u32>> {
        let mut feeders: Vec<Option<Option<u32>>> = vec![None; stage_count];
        let mut before = None;
        for &hop in &self.hops {
            if hop & END != 0 {
                before = None;
                continue;
            }
            if hop & (PROCESSOR | CARD) != 0 {
                before = Some(hop);
                continue;
            }
            let feeder = &mut feeders[hop as usize];
            *feeder = match *feeder {
                None => Some(before),
                Some(unique) if unique == before => Some(unique),
                Some(_) => Some(None),
            };
            before = Some(hop);
        }
        feeders.into_iter().map(Option::flatten).collect()
    }
}

/// Refuses what validation refuses, and programs, which need a kernel.
pub(crate) fn check(scenario: &Scenario) -> Result<(), SetupError> {
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.application.is_program()) {
        let field = format!("flow {}: application", flow.label);
        let text = format!("{field}: got program, expected an engine with a kernel: vm or netns");
        return Err(problem(field, text));
    }
    valid(scenario)
}

/// Refuses what validation refuses.
pub(crate) fn valid(scenario: &Scenario) -> Result<(), SetupError> {
    scenario
        .validate()
        .map_err(|problems| problem(problems[0].field.clone(), problems[0].to_string()))
}

/// Builds the world.
pub(crate) fn build<O: Observer>(scenario: &Scenario, observer: O) -> Result<World<O>, SetupError> {
    check(scenario)?;
    let cut_links = CutLinks::of(scenario, FLOWS_MIN);
    build_part(scenario, &Topology::new(scenario), &cut_links, None, observer)
}

/// Builds the world of a valid scenario between pairs of nodes whose packets come from outside, and the first hops of the ways from
/// each pair's first node to its second and back.
pub(crate) fn build_between<O: Observer>(
    scenario: &Scenario,
    pairs: &[[&str; 2]],
    observer: O,
) -> Result<(World<O>, Vec<u32>), SetupError> {
    let topology = Topology::new(scenario);
    let node = |name: &str| {
        topology.node(name).ok_or_else(|| problem("nodes", format!("{name:?} is no node")))
    };
    let mut ways = Vec::new();
    for &[near, far] in pairs {
        let (near, far) = (node(near)?, node(far)?);
        ways.extend([(near, far), (far, near)]);
    }
    let mut first_hops = Vec::new();
    let cut_links = CutLinks::of(scenario, FLOWS_MIN);
    let world = build_world(scenario, &topology, &cut_links, None, observer, |ports| {
        for way in ways {
            first_hops.push(ports.add(
                way,
                Target::Outside,
                Headers::default(),
                "outside",
                "links",
            )?);
        }
        Ok(())
    })?;
    Ok((world, first_hops))
}

/// Builds the world of one part of a valid scenario, or of all of it: everything is there and has the same number in each, but
/// only what is of this part begins to act.
pub(crate) fn build_part<O: Observer>(
    scenario: &Scenario,
    topology: &Topology<'_>,
    cut_links: &CutLinks,
    part: Option<(&Partition, u8)>,
    observer: O,
) -> Result<World<O>, SetupError> {
    build_world(scenario, topology, cut_links, part, observer, |_| Ok(()))
}

/// The same, with ports of the caller's own.
fn build_world<O: Observer>(
    scenario: &Scenario,
    topology: &Topology<'_>,
    cut_links: &CutLinks,
    part: Option<(&Partition, u8)>,
    observer: O,
    add_ports: impl FnOnce(&mut Ports<'_>) -> Result<(), SetupError>,
) -> Result<World<O>, SetupError> {
    let mut media = Media::new(scenario);
    let (drafts, of_link) = stages(scenario, topology, cut_links, &mut media);
    let mut processors = Processors::of(scenario);
    let mut cards = Cards::of(scenario);
    let mut ports = Ports {
        topology,
        of_link: &of_link,
        processors: &processors,
        cards: &cards,
        ports: Vec::new(),
        addresses: Addresses::default(),
        hops: Vec::new(),
        found: BTreeMap::new(),
    };
    // Once: as it grew, both its old and its new place would be in memory.
    let mut sockets = Vec::with_capacity(2 * scenario.flows.len());
    let mut quic_sockets = Vec::new();
    let flows = build_flows(scenario, &mut ports, (&mut sockets, &mut quic_sockets), &drafts)?;
    let probes = build_probes(scenario, &mut ports)?;
    add_ports(&mut ports)?;
    let feeders = ports.feeders(drafts.len());
    let layout = Layout::new(
        scenario.nodes.len(),
        &drafts
            .iter()
            .map(|draft| {
                draft.medium.is_some()
                    || draft.changes
                    || ComputedFifo::of(&draft.discipline, None, false).is_none()
            })
            .collect::<Vec<_>>(),
        media.count(),
        processors.count(),
        cards.count(),
        sockets.len(),
        flows.len(),
        probes.len(),
        quic_sockets.len(),
        !scenario.changes.is_empty(),
    );
    let sources: usize = layout.source_counts().iter().sum();
    if sources > MAX_SOURCES {
        return Err(problem(
            "flows",
            format!(
                "the scenario needs {sources} event sources; at most {MAX_SOURCES} are possible"
            ),
        ));
    }
    if ports.hops.len() > MAX_HOPS {
        return Err(problem(
            "flows",
            format!(
                "the scenario's paths have {} hops in all; at most {MAX_HOPS} are possible",
                ports.hops.len()
            ),
        ));
    }
    let Ports { hops, ports, addresses, .. } = ports;
    let mut recorder = Writer::default();
    let mut watched = Vec::new();
    let lanes = lanes(&layout, drafts.len() + processors.count());
    processors.number((layout.shared_lanes + drafts.len()) as u32, layout.processor_source());
    cards.number(layout.card_source());
    let mut stages = finish_stages(drafts, &flows, &feeders, &layout, &mut watched, &mut recorder);
    let resolutions = resolutions(scenario, topology, &of_link);
    for stage in resolutions.keys() {
        stages[*stage as usize].neighbour_known = Instant::NEVER;
    }
    let owners = ports.iter().map(|target| owner(*target, &flows, (&sockets, &quic_sockets)));
    let watch = Watch::new(observer, topology, &of_link, &hops, owners);
    let mut network = Network {
        packets: Packets::default(),
        sent: 0,
        delivered: 0,
        stages,
        lanes,
        hops,
        ports,
        addresses,
        channels: media.finish(&layout),
        processors,
        cards,
        calendar: Calendar::new(layout.source_counts()),
        resolutions,
        watch,
    };
    network.start_media();
    if cut_links.any() {
        // In this order in every part, and in one.
        for probe in &scenario.probes {
            recorder.probes.probe.word(&probe.label);
            recorder.probes.target.word(&probe.target);
        }
    }
    let assignment = match part {
        None => Assignment::all(cut_links.any()),
        Some((partition, number)) => {
            Assignment::of(scenario, topology, &of_link, &flows, partition, number)
        }
    };
    let changes = changes(scenario, &of_link);
    Ok(World::new(
        scenario,
        network,
        (sockets, quic_sockets),
        flows,
        probes,
        recorder,
        watched,
        layout,
        changes,
        assignment,
    ))
}

fn lanes(layout: &Layout, stage_count: usize) -> Vec<Lane> {
    let shared = (0..layout.shared_lanes).map(|lane| Lane::new(lane as Source));
    let own_lanes = (0..stage_count).map(|stage| Lane::new(layout.own_lane_source(stage)));
    shared.chain(own_lanes).collect()
}

fn finish_stages(
    drafts: Vec<Draft>,
    flows: &[Flow],
    feeders: &[Option<u32>],
    layout: &Layout,
    watched: &mut Vec<QueueWatch>,
    recorder: &mut Writer,
) -> Vec<Stage> {
    let mut stages = Vec::with_capacity(drafts.len());
    let at_cuts: Vec<bool> = drafts.iter().map(|draft| draft.is_cut).collect();
    for (index, draft) in drafts.into_iter().enumerate() {
        let observed = draft.watched.is_some();
        if let Some(name) = &draft.watched {
            watched.push(QueueWatch { stage: index, link: recorder.queues.link.word(name) });
        }
        let computed = match draft.medium {
            None if !draft.changes => ComputedFifo::of(&draft.discipline, draft.line, observed),
            None | Some(_) => None,
        };
        let tandem = computed.is_some()
            && !observed
            && !draft.is_cut
            && feeders[index]
                .is_some_and(|feeder| !at_cuts.get(feeder as usize).is_some_and(|is_cut| *is_cut));
        let source = layout.watchdog_source(index);
        let own_lane = (layout.shared_lanes + index) as u32;
        let discipline = draft.discipline;
        let (rate, overhead) = draft.line.map_or((None, 0), |(rate, more)| (Some(rate), more));
        let server = match (computed, draft.medium) {
            (Some(fifo), _) => Server::Computed(fifo),
            (None, Some(Place::Station { channel, station, ring_packets })) => {
                let ring = Ring::new(ring_packets as usize);
                Server::Shared(Box::new(Shared { discipline, ring, channel, station, source }))
            }
            (None, Some(Place::Stream { flow, from_server, header_bytes })) => {
                Server::Tunnel(Box::new(Tunnel {
                    discipline,
                    socket: flows[flow].socket(from_server),
                    header_bytes,
                    written: 0,
                    under_way: VecDeque::new(),
                    source,
                }))
            }
            (None, Some(Place::Own(transmitter))) => {
                let delay = draft.delay;
                Server::Evented(Box::new(Evented { discipline, transmitter, delay, source }))
            }
            (None, None) => {
                let delay = draft.delay;
                let transmitter = Transmitter::Wire(Wire::new(rate, overhead, delay));
                Server::Evented(Box::new(Evented { discipline, transmitter, delay, source }))
            }
        };
        stages.push(Stage {
            server,
            delay: draft.delay,
            tandem,
            is_cut: draft.is_cut,
            shared_lane: if draft.is_cut { own_lane } else { draft.to as u32 },
            own_lane,
            counters: StageCounters::default(),
            neighbour_known: Instant::ZERO,
        });
    }
    stages
}

fn build_flows(
    scenario: &Scenario,
    ports: &mut Ports<'_>,
    (sockets, quic_sockets): (&mut Vec<Socket>, &mut Vec<QuicSocket>),
    drafts: &[Draft],
) -> Result<Vec<Flow>, SetupError> {
    let mut hosts: BTreeMap<&str, Arc<HostSettings>> = BTreeMap::new();
    let mut last = Settings::linux_6().shared();
    let paced = scenario.paced_hosts();
    for (index, node) in scenario.nodes.iter().enumerate() {
        if let NodeSpec::Host(host) = node {
            let mut host_settings = host.settings().map_err(|fault| {
                problem(format!("nodes[{index}].sysctl{}", fault.field), fault.to_string())
            })?;
            host_settings.paced = paced.contains(host.name.as_str());
            if **last != host_settings {
                last = host_settings.shared();
            }
            hosts.insert(&host.name, Arc::clone(&last));
        }
    }
    let programs = programs(scenario)?;
    let mut destinations = BTreeMap::new();
    let mut flows = Vec::with_capacity(scenario.flows.len());
    for (index, spec) in scenario.flows.iter().enumerate() {
        let field = format!("flows[{index}]");
        let missing = |name: &str| problem(format!("{field}.{name}"), "no such host");
        let from = ports.topology.node(&spec.sender).ok_or_else(|| missing("sender"))?;
        let to = ports.topology.node(&spec.receiver).ok_or_else(|| missing("receiver"))?;
        let name = |side: &str| format!("{}/{side}", connection_name(spec));
        let dscp = Dscp::new(spec.dscp).unwrap_or_default();
        let (there, back) = headers::of_flow((from, to), index, spec);
        let kind = match &spec.transport {
            Transport::Quic { .. } => {
                let client = quic_sockets.len() as u32;
                let server = client + 1;
                let target = Target::Quic(server);
                let to_server = ports.add((from, to), target, there, &name("server"), &field)?;
                let target = Target::Quic(client);
                let to_client = ports.add((to, from), target, back, &name("client"), &field)?;
                for (is_client, side, first_hop) in
                    [(true, "client", to_server), (false, "server", to_client)]
                {
                    let at = format!("{field}.transport");
                    let (connection, name) = (connection_name(spec), name(side));
                    let names = (connection.as_str(), name.as_str(), at.as_str());
                    let endpoint = quic_endpoint(scenario, &programs, spec, is_client, names)?;
                    let scheduled = Instant::NEVER;
                    let flow = index as u32;
                    quic_sockets.push(QuicSocket {
                        scheduled,
                        first_hop,
                        flow,
                        is_client,
                        dscp,
                        endpoint,
                    });
                }
                FlowKind::Quic { client, server }
            }
            Transport::Udp if matches!(spec.application, Application::Rtp { .. }) => {
                let target = Target::Rtp(index as u32);
                let forward = ports.add((from, to), target, there, &name("server"), &field)?;
                let target = Target::Reports(index as u32);
                let back = ports.add((to, from), target, back, &name("client"), &field)?;
                FlowKind::Rtp { there: forward, back }
            }
            Transport::Udp => {
                let target = Target::Datagrams(index as u32);
                let first_hop = ports.add((from, to), target, there, &name("server"), &field)?;
                FlowKind::Udp { first_hop }
            }
            Transport::Tcp { socket, .. } => {
                let client = sockets.len() as u32;
                let server = client + 1;
                let [target, back_target] = tcp_targets(&programs, spec, [server, client]);
                let to_server = ports.add((from, to), target, there, &name("server"), &field)?;
                let to_client =
                    ports.add((to, from), back_target, back, &name("client"), &field)?;
                for (role, host, name, first_hop, pair) in [
                    (Role::Client, &spec.sender, "client", to_server, (from, to)),
                    (Role::Server, &spec.receiver, "server", to_client, (to, from)),
                ] {
                    let count = destinations.len() as u32;
                    let destination = *destinations.entry(pair).or_insert(count);
                    let settings = hosts.get(host.as_str()).ok_or_else(|| missing("sender"))?;
                    let mut settings = Arc::clone(settings);
                    if matches!(spec.application, Application::Tunnel { .. }) {
                        // VTUN and ssh set TCP_NODELAY.
                        settings =
                            Settings { nodelay: true, ..Settings::clone(&settings) }.shared();
                    }
                    if *socket != SocketBuffers::default() {
                        settings = with_buffers(Settings::clone(&settings), *socket).shared();
                    }
                    let rules = &settings.profile.congestion;
                    let cc = algorithm(&programs, spec, rules, scenario.seed, name, &field)?;
                    sockets.push(Socket {
                        endpoint: Endpoint::new(role, &settings, cc),
                        scheduled: Instant::NEVER,
                        first_hop,
                        flow: index as u32,
                        sends_data: false,
                        awaited: false,
                        dscp,
                        destination,
                    });
                }
                FlowKind::Tcp { client, server }
            }
        };
        let end = scenario.duration_ns;
        let stop = Instant::from_nanos(spec.stop_ns.unwrap_or(end).min(end));
        let start = Instant::from_nanos(spec.start_ns);
        let player = Player::new(&spec.application).map(Box::new);
        let draws = Stream::named(scenario.seed, &format!("{}/frames", connection_name(spec)));
        let session = Session::new(&spec.application, draws).map(Box::new);
        let app = App::of(&spec.application, |back| tunnelled(drafts, index, back));
        let flow = Flow { player, session, dscp, ..Flow::new(kind, app, start, stop) };
        if let FlowKind::Tcp { client, server } = kind {
            sockets[client as usize].awaited = flow.awaits_bytes();
            sockets[server as usize].awaited = flow.awaits_bytes();
        }
        if let Some(sender) = flow.data_sender() {
            sockets[sender as usize].sends_data = true;
        }
        flows.push(flow);
    }
    Ok(flows)
}

/// The stage whose packets a tunnel's flow carries this way.
fn tunnelled(drafts: &[Draft], carrier: usize, back: bool) -> Option<u32> {
    let is_it = |draft: &Draft| match draft.medium {
        Some(Place::Stream { flow, from_server, .. }) => (flow, from_server) == (carrier, back),
        Some(Place::Own(_) | Place::Station { .. }) | None => false,
    };
    drafts.iter().position(is_it).map(|stage| stage as u32)
}

fn build_probes(scenario: &Scenario, ports: &mut Ports<'_>) -> Result<Vec<Probe>, SetupError> {
    let mut probes = Vec::with_capacity(scenario.probes.len());
    for (index, spec) in scenario.probes.iter().enumerate() {
        let field = format!("probes[{index}]");
        let missing = |name: &str| problem(format!("{field}.{name}"), "no such node");
        let from = ports.topology.node(&spec.from).ok_or_else(|| missing("from"))?;
        let target = ports.topology.node(&spec.target).ok_or_else(|| missing("target"))?;
        let name = |side: &str| format!("probe/{}/{side}", spec.label);
        let (answerer, asker) = (Target::Answerer(index as u32), Target::Asker(index as u32));
        let (there, answer) = headers::of_probe((from, target));
        let forward = ports.add((from, target), answerer, there, &name("there"), &field)?;
        let back = ports.add((target, from), asker, answer, &name("back"), &field)?;
        probes.push(Probe::new(spec, forward, back));
    }
    Ok(probes)
}
