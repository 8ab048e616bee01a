//! What stands in headers beside what a simulation knows: addresses, ports, initial sequence numbers, identifications.
//!
//! Addresses and ports are those that a kernel engine gives the same scenario (`crates/agent`).

use crate::observer::Owner;
use dragstrip_capture::write::{End, Frame, Headers, Numbers};
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::PacketId;
use dragstrip_scenario::{Scenario, Topology};
use dragstrip_units::Stream;

/// The address of the first node; the others follow.
const FIRST_ADDRESS: u32 = 0x0a00_0001;
/// The receiver's port of the first flow, and the sender's.
const FIRST_PORT: u16 = 5_001;
const FIRST_CLIENT_PORT: u16 = 30_001;
/// Flows whose ports are apart; where there are more, ports are used again, from another address as a rule.
const PORTS: usize = 25_000;

/// What a packet keeps on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its number in the run.
    pub id: u64,
    /// Length of the frame.
    pub wire_len: u32,
    /// As they leave the node.
    pub headers: Headers,
}

/// A flow or a probe as headers tell it.
#[derive(Clone, Copy, Debug)]
struct Conversation {
    /// Who begins it, who answers.
    ends: [End; 2],
    isns: [u32; 2],
    /// The window scale that each has offered in its SYN.
    scales: [Option<u8>; 2],
    /// The identification of each one's next packet.
    next_ip_ids: [u16; 2],
}

/// The headers of a run.
#[derive(Debug)]
pub(super) struct Wire {
    flows: Vec<Conversation>,
    probes: Vec<Conversation>,
    /// Of each link: the addresses at its ends.
    links: Vec<([u8; 6], [u8; 6])>,
    /// Of each packet under way, by its record.
    marks: Vec<Mark>,
    next_id: u64,
}

impl Wire {
    pub fn new(scenario: &Scenario, topology: &Topology<'_>) -> Self {
        let end = |name: &str, port: u16| {
            let node = topology.node(name).unwrap_or_default() as u32;
            End { address: (FIRST_ADDRESS + node).to_be_bytes(), port }
        };
        let flow = |(index, flow): (usize, &dragstrip_scenario::FlowSpec)| {
            let port = (index % PORTS) as u16;
            let ends = [
                end(&flow.sender, FIRST_CLIENT_PORT + port),
                end(&flow.receiver, FIRST_PORT + port),
            ];
            let mut isns = Stream::named(scenario.seed, &format!("capture/{}", flow.label));
            Conversation::new(ends, [isns.next_u32(), isns.next_u32()])
        };
        let probe = |probe: &dragstrip_scenario::ProbeSpec| {
            Conversation::new([end(&probe.from, 0), end(&probe.target, 0)], [0; 2])
        };
        let ends = |link: usize| {
            let (from, to) = topology.ends(link);
            (mac(from as u32), mac(to as u32))
        };
        Self {
            flows: scenario.flows.iter().enumerate().map(flow).collect(),
            probes: scenario.probes.iter().map(probe).collect(),
            links: (0..scenario.links.len()).map(ends).collect(),
            marks: Vec::new(),
            next_id: 0,
        }
    }

    /// A packet begins its way.
    #[inline]
    pub fn sent(
        &mut self,
        packet: PacketId,
        owner: Owner,
        class: TrafficClass,
        body: &Body,
        frame_bytes: u32,
    ) {
        let (talk, side, echo_id) = match owner {
            Owner::Flow { flow, back } => (&mut self.flows[flow as usize], usize::from(back), 0),
            Owner::Probe { probe, back } => {
                (&mut self.probes[probe as usize], usize::from(back), probe as u16 + 1)
            }
        };
        let mut frames = 1;
        if let Body::Tcp(segment) = body {
            // A burst that is one packet takes a number for each segment that it would be cut into.
            let more = frame_bytes - body.frame_len();
            frames += more / (body.frame_len() - u32::from(segment.len));
            if let Some(options) = segment.syn_options() {
                talk.scales[side] = options.window_scale;
            }
        }
        let ip_id = talk.next_ip_ids[side];
        talk.next_ip_ids[side] = ip_id.wrapping_add(frames as u16);
        let headers = talk.frame(side, ip_id, class, body, echo_id).headers();
        let mark = Mark { id: self.next_id, wire_len: body.frame_len(), headers };
        self.next_id += 1;
        self.put(packet, mark);
    }

    /// A netem has made a copy: IP does not tell it apart.
    pub fn copied(&mut self, of: PacketId, packet: PacketId) {
        let mark = Mark { id: self.next_id, ..*self.mark(of) };
        self.next_id += 1;
        self.put(packet, mark);
    }

    #[inline]
    fn put(&mut self, packet: PacketId, mark: Mark) {
        let place = packet.0 as usize;
        if place >= self.marks.len() {
            self.marks.resize(place + 1, mark);
        }
        self.marks[place] = mark;
    }

    /// What a packet under way keeps.
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
    fn new(ends: [End; 2], isns: [u32; 2]) -> Self {
        Self { ends, isns, scales: [None; 2], next_ip_ids: [1; 2] }
    }

    /// A packet of one side.
    #[inline]
    fn frame<'a>(
        &self,
        side: usize,
        ip_id: u16,
        class: TrafficClass,
        body: &'a Body,
        echo_id: u16,
    ) -> Frame<'a> {
        let peer = 1 - side;
        // Windows are scaled where both have offered it (RFC 7323 §2.2).
        let scales = self.scales[peer].is_some();
        let window_shift = self.scales[side].filter(|_| scales).unwrap_or(0);
        let numbers = Numbers { own_isn: self.isns[side], peer_isn: self.isns[peer], window_shift };
        let (from, to) = (self.ends[side], self.ends[peer]);
        Frame { from, to, ip_id, class, body, numbers, echo_id }
    }
}

/// A node's address on Ethernet, administered locally.
fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [2, 0, a, b, c, d]
}
