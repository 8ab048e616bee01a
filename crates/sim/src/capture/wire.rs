//! Header fields that the simulation does not model: addresses, ports, initial sequence numbers, identifications.
//!
//! Addresses and ports are those that a kernel engine gives the same scenario (`crates/agent`).

use crate::algorithms::connection_name;
use crate::observer::{Owner, Sighting};
use dragstrip_capture::write::{End, Frame, Numbers};
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::PacketId;
use dragstrip_quic::Protection;
use dragstrip_scenario::{FlowSpec, Scenario, Topology, Transport};
use dragstrip_units::Stream;
use std::sync::Arc;

/// The address of the first node; the others follow.
pub(crate) const FIRST_ADDRESS: u32 = 0x0a00_0001;
/// The receiver's port of the first flow, and the sender's.
pub(super) const FIRST_PORT: u16 = 5_001;
pub(super) const FIRST_CLIENT_PORT: u16 = 30_001;
/// Flows whose ports are apart; where there are more, ports are used again, from another address as a rule.
pub(super) const PORTS: usize = 25_000;

/// Ports of the sender and the receiver of a flow, by its number.
pub(crate) const fn flow_ports(flow: usize) -> (u16, u16) {
    let port = (flow % PORTS) as u16;
    (FIRST_CLIENT_PORT + port, FIRST_PORT + port)
}

/// Header state of a packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its number in the run.
    pub id: u64,
    /// The conversation that it belongs to.
    talk: u32,
    /// Index of the end that sent it.
    side: u16,
    ip_id: u16,
}

/// A flow or a probe as represented in headers.
#[derive(Clone, Copy, Debug)]
struct Conversation {
    /// Opener and answerer.
    ends: [End; 2],
    isns: [u32; 2],
    /// The window scale that each has offered in its SYN.
    scales: [Option<u8>; 2],
    /// The identification of each one's next packet.
    next_ip_ids: [u16; 2],
    /// ICMP's identifier.
    echo_id: u16,
}

/// Payloads of QUIC's datagrams as a capture shows them.
#[derive(Debug, Default)]
struct Payloads {
    /// Protection of each conversation; empty where captures have no payloads.
    protections: Vec<Option<Box<Protection>>>,
    /// Encrypted payloads of the packets in flight, by record.
    bytes: Vec<Option<Arc<[u8]>>>,
}

impl Payloads {
    fn new(scenario: &Scenario) -> Self {
        let protection = |flow: &FlowSpec| match flow.transport {
            Transport::Quic { .. } => {
                Protection::new(scenario.seed, &connection_name(flow)).map(Box::new)
            }
            Transport::Tcp { .. } | Transport::Udp => None,
        };
        let protections = scenario.flows.iter().map(protection).collect();
        Self { protections, bytes: Vec::new() }
    }

    fn on_sent(&mut self, packet: PacketId, talk: u32, side: usize, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let Some(Some(protection)) = self.protections.get_mut(talk as usize) else { return };
        let mut datagram = payload.to_vec();
        protection.protect(side == 0, &mut datagram);
        self.set(packet, Some(datagram.into()));
    }

    fn set(&mut self, packet: PacketId, bytes: Option<Arc<[u8]>>) {
        let place = packet.0 as usize;
        if place >= self.bytes.len() {
            self.bytes.resize(place + 1, None);
        }
        self.bytes[place] = bytes;
    }
}

/// The headers of a run, and payloads where captures have them.
#[derive(Debug)]
pub(super) struct Wire {
    /// Conversations of the flows, followed by those of the probes.
    talks: Vec<Conversation>,
    flows: u32,
    /// Addresses at the ends of each link.
    links: Vec<([u8; 6], [u8; 6])>,
    /// Marks of the packets in flight, by record.
    marks: Vec<Mark>,
    payloads: Payloads,
    next_id: u64,
}

/// A node's address.
pub(super) fn address_of(topology: &Topology<'_>, name: &str) -> u32 {
    FIRST_ADDRESS + topology.node(name).unwrap_or_default() as u32
}

impl Wire {
    pub fn new(scenario: &Scenario, topology: &Topology<'_>, with_payloads: bool) -> Self {
        let end =
            |name: &str, port: u16| End { address: address_of(topology, name).to_be_bytes(), port };
        let flow = |(index, flow): (usize, &dragstrip_scenario::FlowSpec)| {
            let (client, server) = flow_ports(index);
            let ends = [end(&flow.sender, client), end(&flow.receiver, server)];
            let mut isns = Stream::named(scenario.seed, &format!("capture/{}", flow.label));
            Conversation::new(ends, [isns.next_u32(), isns.next_u32()], 0)
        };
        let probe = |(index, probe): (usize, &dragstrip_scenario::ProbeSpec)| {
            let ends = [end(&probe.from, 0), end(&probe.target, 0)];
            Conversation::new(ends, [0; 2], index as u16 + 1)
        };
        let ends = |link: usize| {
            let (from, to) = topology.ends(link);
            (mac(from as u32), mac(to as u32))
        };
        Self {
            talks: (scenario.flows.iter().enumerate().map(flow))
                .chain(scenario.probes.iter().enumerate().map(probe))
                .collect(),
            flows: scenario.flows.len() as u32,
            links: (0..scenario.links.len()).map(ends).collect(),
            marks: Vec::new(),
            payloads: if with_payloads { Payloads::new(scenario) } else { Payloads::default() },
            next_id: 0,
        }
    }

    /// A packet begins its way.
    #[inline]
    pub fn on_sent(&mut self, owner: Owner, sighting: &Sighting<'_>) {
        let Sighting { packet, body, frame_bytes, payload, .. } = *sighting;
        let (talk, back) = match owner {
            Owner::Flow { flow, back } => (flow, back),
            Owner::Probe { probe, back } => (self.flows + probe, back),
        };
        let (side, state) = (usize::from(back), &mut self.talks[talk as usize]);
        let mut frames = 1;
        if let Body::Tcp(segment) = body {
            // A burst that is one packet takes a number for each segment that it would be cut into.
            if segment.len > 0 {
                let headers = segment.frame_len() - u32::from(segment.len);
                let more = frame_bytes - segment.frame_len();
                frames += more / headers;
            }
            if let Some(options) = segment.syn_options() {
                state.scales[side] = options.window_scale;
            }
        }
        let ip_id = state.next_ip_ids[side];
        state.next_ip_ids[side] = ip_id.wrapping_add(frames as u16);
        let mark = Mark { id: self.next_id, talk, side: side as u16, ip_id };
        self.next_id += 1;
        self.set_mark(packet, mark);
        self.payloads.on_sent(packet, talk, side, payload);
    }

    /// Logs of the keys of all connections of QUIC.
    pub fn key_log(&self) -> String {
        let protections = self.payloads.protections.iter().flatten();
        protections.map(|protection| protection.key_log()).collect()
    }

    /// The payload of a packet in flight, if captures have it.
    #[inline]
    pub fn payload(&self, packet: PacketId, body: &Body) -> Option<Arc<[u8]>> {
        match body {
            Body::Quic(_) => self.payloads.bytes.get(packet.0 as usize)?.clone(),
            Body::Tcp(_) | Body::Udp(_) | Body::Icmp(_) => None,
        }
    }

    /// A packet as a tap on its way sees it. What both ends have offered in their SYNs does not change after them.
    #[inline]
    pub fn frame<'a>(
        &self,
        mark: &Mark,
        class: TrafficClass,
        body: &'a Body,
        payload: &'a [u8],
    ) -> Frame<'a> {
        let (talk, side) = (&self.talks[mark.talk as usize], usize::from(mark.side));
        Frame { payload, ..talk.frame(side, mark.ip_id, class, body) }
    }

    /// A netem has made a copy: IP does not distinguish it.
    pub fn copied(&mut self, of: PacketId, packet: PacketId) {
        let mark = Mark { id: self.next_id, ..*self.mark(of) };
        self.next_id += 1;
        self.set_mark(packet, mark);
        if let Some(bytes) = self.payloads.bytes.get(of.0 as usize).cloned() {
            self.payloads.set(packet, bytes);
        }
    }

    #[inline]
    fn set_mark(&mut self, packet: PacketId, mark: Mark) {
        let place = packet.0 as usize;
        if place >= self.marks.len() {
            self.marks.resize(place + 1, mark);
        }
        self.marks[place] = mark;
    }

    /// Mark of a packet in flight.
    #[inline]
    pub fn mark(&self, packet: PacketId) -> &Mark {
        &self.marks[packet.0 as usize]
    }

    /// The addresses at a link's ends.
    #[inline]
    pub fn macs(&self, link: u32) -> ([u8; 6], [u8; 6]) {
        self.links[link as usize]
    }
}

impl Conversation {
    fn new(ends: [End; 2], isns: [u32; 2], echo_id: u16) -> Self {
        Self { ends, isns, scales: [None; 2], next_ip_ids: [1; 2], echo_id }
    }

    /// A packet of one side.
    #[inline]
    fn frame<'a>(&self, side: usize, ip_id: u16, class: TrafficClass, body: &'a Body) -> Frame<'a> {
        let peer = 1 - side;
        // Windows are scaled where both have offered it (RFC 7323 §2.2).
        let scales = self.scales[peer].is_some();
        let window_shift = self.scales[side].filter(|_| scales).unwrap_or(0);
        let numbers = Numbers { own_isn: self.isns[side], peer_isn: self.isns[peer], window_shift };
        let (from, to) = (self.ends[side], self.ends[peer]);
        Frame { from, to, ip_id, class, body, payload: &[], numbers, echo_id: self.echo_id }
    }
}

/// A node's address on Ethernet, administered locally.
fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [2, 0, a, b, c, d]
}
