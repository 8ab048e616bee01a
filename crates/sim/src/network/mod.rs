//! Links, and packets on their way over them.
//!
//! A path is a list of stages. A stage is a queue discipline, a transmitter and a delay; a link with a netem after it
//! is two. Where a stage's departures can be computed on arrival ([`ComputedFifo`]) a packet passes through without an
//! event, and on into the next stage as long as that one has no other feeder; it then waits in a lane, a FIFO with one
//! pending event, for its next significant instant.

mod card;
mod change;
mod channel;
mod counters;
mod processor;
mod tunnel;

pub(crate) use card::{Card, Cards};
pub(crate) use change::{Act, Changes};
pub(crate) use channel::{Channel, Station};
pub(crate) use counters::StageCounters;
pub(crate) use processor::{Processor, Processors};
pub(crate) use tunnel::Tunnel;

use crate::calendar::{Calendar, Source};
use crate::hops::{CARD, END, NOT_A_STAGE, PROCESSOR};
use crate::lane::{Lane, Waiting};
use crate::observer::{Event, Loss, Observer, Watch};
use crate::packets::{Packet, Packets};
use dragstrip_link::{Header, Ring, SharedMedium, Transmitter};
use dragstrip_packet::{Body, Dscp, Ecn, Segment, TrafficClass};
use dragstrip_qdisc::{
    Backlog, ComputedFifo, Dequeue, Discipline, DropReason, Headers, Hosts, Item, PacketId, Qdisc,
    Sink, Verdict,
};
use dragstrip_units::{Duration, Instant};

/// No stage has been passed yet.
const NO_STAGE: usize = usize::MAX;

/// Ethernet's header, which a frame's length counts.
pub(crate) const ETHERNET_BYTES: u32 = 14;

/// Server that decides when a packet leaves a stage.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// Known on arrival.
    Computed(ComputedFifo),
    /// Decided at each dequeue.
    Evented(Box<Evented>),
    /// Decided by a medium that others share.
    Shared(Box<Shared>),
    /// Decided by a TCP connection.
    Tunnel(Box<Tunnel>),
}

/// A queue discipline that is polled, and the transmitter after it.
#[derive(Clone, Debug)]
pub(crate) struct Evented {
    pub discipline: Discipline,
    pub transmitter: Transmitter,
    /// Propagation delay.
    pub delay: Duration,
    /// Its watchdog, or the end of the transmission in progress.
    pub source: Source,
}

impl Evented {
    /// Packets in the queue; one on the wire has left it.
    pub fn packets(&self) -> u32 {
        self.discipline.backlog().packets
    }
}

/// A queue discipline in front of a station's transmit ring.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub discipline: Discipline,
    pub ring: Ring,
    /// The channel, and which of its stations this is.
    pub channel: usize,
    pub station: usize,
    /// The discipline's watchdog.
    pub source: Source,
}

impl Shared {
    /// Packets in the queue and in the ring.
    pub fn packets(&self) -> u32 {
        self.discipline.backlog().packets + self.ring.backlog().packets
    }
}

#[derive(Clone, Debug)]
#[repr(align(64))] // two cache lines: a thousand hosts have two thousand stages
pub(crate) struct Stage {
    pub server: Server,
    pub delay: Duration,
    /// Only one stage feeds this one, in order, and nothing watches its queue: it may be computed ahead of time.
    pub tandem: bool,
    /// The network may be cut after it: packets that pass it wait in a separate lane.
    pub is_cut: bool,
    /// Lane shared with other stages that lead to the same node, and a separate lane for packets that would overtake
    /// there.
    pub shared_lane: u32,
    pub own_lane: u32,
    pub counters: StageCounters,
    /// The neighbour at the other end is not known before this instant; zero: it is.
    pub neighbour_known: Instant,
}

const _: () = assert!(size_of::<Stage>() == 128);

/// An ARP exchange still to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    /// The first stage of the link back, which learns from the request.
    pub back: Option<u32>,
    /// Request and reply take this long.
    pub round_trip: Duration,
}

/// Receiver of a packet at the end of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A TCP endpoint.
    Endpoint(u32),
    /// A TCP endpoint whose agent is asked after each ACK.
    Agent(u32),
    /// A QUIC endpoint.
    Quic(u32),
    /// The receiving side of a UDP flow.
    Datagrams(u32),
    /// The receiver of a video over RTP.
    Rtp(u32),
    /// Its sender, which takes reports.
    Reports(u32),
    /// The host or router that answers a ping.
    Answerer(u32),
    /// The host that sent it.
    Asker(u32),
    /// Whoever watches: the packet came from outside and leaves again.
    Outside,
}

/// Flow and host identity of each port, by which fair queueing classifies packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub flows: Vec<u32>,
    pub hosts: Vec<Hosts>,
    pub headers: Vec<Headers>,
}

/// The port at the end of the path that `hop` is part of.
fn port(hops: &[u32], hop: u32) -> Option<usize> {
    let end = hops[hop as usize..].iter().find(|entry| **entry & END != 0)?;
    Some((end & !END) as usize)
}

/// Everything between the hosts.
#[derive(Clone, Debug)]
pub(crate) struct Network<O> {
    pub packets: Packets,
    /// Packets that entered from a host, and that reached the end of their path.
    pub sent: u64,
    pub delivered: u64,
    pub stages: Vec<Stage>,
    pub lanes: Vec<Lane>,
    pub hops: Vec<u32>,
    /// Receiver of the packets that arrive at each port.
    pub ports: Vec<Target>,
    pub addresses: Addresses,
    pub calendar: Calendar,
    pub channels: Vec<Channel>,
    pub processors: Processors,
    pub cards: Cards,
    /// Links whose first packet has to wait for ARP, by their first stage.
    pub resolutions: std::collections::BTreeMap<u32, Resolution>,
    pub watch: Watch<O>,
}

/// Header fields that header compression compares; none if the packet is not TCP.
fn tcp_header(packet: &Packet, hops: &[u32]) -> Option<Header> {
    let Body::Tcp(segment) = packet.body else { return None };
    Some(Header { connection: port(hops, packet.hop)? as u32, segment })
}

/// The sink a discipline reports to while it holds packets of the arena.
pub(crate) struct Losses<'a, O> {
    pub packets: &'a mut Packets,
    pub hops: &'a [u32],
    pub addresses: &'a Addresses,
    pub counters: &'a mut StageCounters,
    pub watch: &'a mut Watch<O>,
    pub stage: usize,
    pub now: Instant,
}

impl<O: Observer> Losses<'_, O> {
    #[inline]
    pub fn tell(&mut self, event: Event, id: PacketId) {
        self.watch.at_stage(self.stage, event, id, self.packets, self.now);
    }
}

impl<O: Observer> Sink for Losses<'_, O> {
    fn dropped(&mut self, item: Item, reason: DropReason) {
        self.tell(Event::Dropped(Loss::Queue(reason)), item.packet);
        self.packets.remove(item.packet);
        self.counters.rare_mut().dropped += 1;
    }

    fn marked(&mut self, packet: PacketId) {
        let class = &mut self.packets.get_mut(packet).class;
        *class = class.with_ecn(Ecn::Ce);
        self.counters.rare_mut().marked += 1;
        self.tell(Event::Marked, packet);
    }

    fn duplicated(&mut self, item: Item) -> Item {
        let packet = self.packets.duplicate(item.packet);
        self.counters.rare_mut().copied += 1;
        self.tell(Event::Duplicated { of: item.packet }, packet);
        Item { packet, ..item }
    }

    fn washed(&mut self, packet: PacketId) {
        let class = &mut self.packets.get_mut(packet).class;
        *class = TrafficClass::new(Dscp::DEFAULT, class.ecn());
    }

    fn hosts(&self, packet: PacketId) -> Hosts {
        let port = port(self.hops, self.packets.get(packet).hop);
        port.map(|port| self.addresses.hosts[port]).unwrap_or_default()
    }

    fn headers(&self, packet: PacketId) -> Headers {
        let port = port(self.hops, self.packets.get(packet).hop);
        port.map(|port| self.addresses.headers[port]).unwrap_or_default()
    }

    fn segment(&self, packet: PacketId) -> Option<&Segment> {
        match &self.packets.get(packet).body {
            Body::Tcp(segment) => Some(segment),
            Body::Udp(_) | Body::Quic(_) | Body::Icmp(_) => None,
        }
    }
}

/// A packet enters a lane, which has a pending event from its first packet on.
#[inline(always)]
fn enter(lane: &mut Lane, calendar: &mut Calendar, waiting: Waiting) {
    if lane.push(waiting) {
        calendar.set(lane.source, waiting.at);
    }
}

impl<O: Observer> Network<O> {
    /// Adds a port for packets from outside that go the way which begins at `first_hop`, as a flow of its own; returns the first
    /// hop of its path.
    pub fn add_port(&mut self, first_hop: u32, flow: u32) -> u32 {
        let way = first_hop as usize;
        let length = self.hops[way..].iter().take_while(|hop| **hop & END == 0).count();
        let hosts = port(&self.hops, first_hop).map(|port| self.addresses.hosts[port]);
        let added = self.hops.len() as u32;
        self.hops.extend_from_within(way..way + length);
        self.hops.push(END | self.ports.len() as u32);
        self.watch.repeat(way..=way + length);
        self.ports.push(Target::Outside);
        self.addresses.flows.push(flow);
        self.addresses.hosts.push(hosts.unwrap_or_default());
        self.addresses.headers.push(Headers::default());
        added
    }

    /// Starts shared media on which background traffic precedes our stations.
    pub fn start_media(&mut self) {
        for channel in &self.channels {
            self.calendar.set(channel.source, channel.medium.due());
        }
    }

    /// A packet leaves its host at `now`, for the path that begins at `first_hop`; the answer is
    /// when it has left the host's own interface (`now` when that cannot be known yet), and `None` when a FIFO
    /// there had no room for it.
    #[inline]
    pub fn send(&mut self, packet: Packet, first_hop: u32, now: Instant) -> Option<Instant> {
        let len = packet.frame();
        let id = self.insert(packet);
        self.watch.on_sent(first_hop, id, &self.packets, now);
        self.depart(id, first_hop, len, now)
    }

    /// A packet that is about to leave its host.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        self.sent = self.sent.wrapping_add(1); // for every packet, and 64 bits do not run over by ones
        self.packets.insert(packet)
    }

    /// Sends it off ([`Network::send`]).
    #[inline]
    pub fn depart(
        &mut self,
        id: PacketId,
        first_hop: u32,
        len: u32,
        now: Instant,
    ) -> Option<Instant> {
        if self.hops[first_hop as usize] & PROCESSOR != 0 {
            return self.send_by_processor(id, first_hop, len, now);
        }
        self.travel(id, first_hop, len, now, now)
    }

    /// The packet reaches the stage at `hop` at `at`, which may lie ahead of `now`.
    fn travel(
        &mut self,
        id: PacketId,
        mut hop: u32,
        len: u32,
        mut at: Instant,
        now: Instant,
    ) -> Option<Instant> {
        let mut first_departure = now;
        let (mut first, mut last) = (NO_STAGE, 0);
        loop {
            let entry = self.hops[hop as usize];
            if entry & NOT_A_STAGE != 0 {
                break;
            }
            let index = entry as usize;
            let stage = &mut self.stages[index];
            if at > now && !stage.tandem {
                break;
            }
            if stage.neighbour_known > at {
                self.wait_for_neighbour(id, index, hop, at);
                return Some(first_departure);
            }
            stage.counters.enqueued = stage.counters.enqueued.wrapping_add(1);
            self.watch.at_stage(index, Event::Enqueued, id, &self.packets, at);
            let Server::Computed(fifo) = &mut stage.server else {
                let refused = self.enqueue(index, id, hop, len, now);
                return (!refused || first != NO_STAGE).then_some(first_departure);
            };
            let Some(departure) = fifo.schedule(len, at) else {
                self.refuse(index, id, at);
                return (first != NO_STAGE).then_some(first_departure);
            };
            stage.counters.bytes = stage.counters.bytes.wrapping_add(u64::from(len));
            at = departure.leaves + stage.delay;
            let (departs, is_cut) = (departure.out_of_queue, stage.is_cut);
            self.watch.at_stage(index, Event::Dequeued, id, &self.packets, departs);
            self.watch.at_stage(index, Event::Arrived, id, &self.packets, at);
            if first == NO_STAGE {
                (first, first_departure) = (index, departure.leaves);
            } else if is_cut {
                first = index;
            }
            last = index;
            hop += 1;
        }
        let first = if first == NO_STAGE { last } else { first };
        self.wait(Waiting { at, id, hop }, first, last);
        Some(first_departure)
    }

    /// A FIFO had no room for the packet.
    #[cold]
    fn refuse(&mut self, index: usize, id: PacketId, at: Instant) {
        self.stages[index].counters.rare_mut().dropped += 1;
        let loss = Event::Dropped(Loss::Queue(DropReason::Overlimit));
        self.watch.at_stage(index, loss, id, &self.packets, at);
        self.packets.remove(id);
    }

    /// The neighbour's address is not known: the packet waits for the reply to an ARP request, which
    /// the first one to come sends off.
    fn wait_for_neighbour(&mut self, id: PacketId, stage: usize, hop: u32, at: Instant) {
        if let Some(resolution) = self.resolutions.remove(&(stage as u32)) {
            self.stages[stage].neighbour_known = at + resolution.round_trip;
            if let Some(back) = resolution.back {
                self.resolutions.remove(&back);
                self.stages[back as usize].neighbour_known = Instant::ZERO;
            }
        }
        let at = self.stages[stage].neighbour_known.max(at);
        self.wait(Waiting { at, id, hop }, stage, stage);
    }

    /// Puts a packet into the first lane in which it overtakes no other: the one of the first stage it has just
    /// passed, the one of the last, or the last stage's own.
    #[inline(always)]
    fn wait(&mut self, waiting: Waiting, first: usize, last: usize) {
        let shared = self.stages[first].shared_lane as usize;
        let lane = &mut self.lanes[shared];
        if lane.last() > waiting.at {
            return self.wait_elsewhere(waiting, last);
        }
        enter(lane, &mut self.calendar, waiting);
    }

    #[inline(never)]
    fn wait_elsewhere(&mut self, waiting: Waiting, last: usize) {
        let Stage { shared_lane, own_lane, .. } = self.stages[last];
        let shared = self.lanes[shared_lane as usize].last() <= waiting.at;
        let lane = &mut self.lanes[if shared { shared_lane } else { own_lane } as usize];
        enter(lane, &mut self.calendar, waiting);
    }

    /// The packet at the head of `lane` has arrived. The answer is a packet at the end of its path, and
    /// its port.
    #[inline]
    pub fn arrive(&mut self, lane: u32, now: Instant) -> Option<(PacketId, u32)> {
        let lane = &mut self.lanes[lane as usize];
        let Waiting { id, hop, .. } = lane.pop()?;
        self.calendar.set(lane.source, lane.due());
        let entry = self.hops[hop as usize];
        if entry & END == 0 {
            if entry & PROCESSOR != 0 {
                self.receive_by_processor(id, hop, now);
                return None;
            }
            if entry & CARD != 0 {
                self.receive_by_card(id, hop, now);
                return None;
            }
            let len = self.packets.frame(id);
            self.travel(id, hop, len, now, now);
            return None;
        }
        self.watch.received(hop, id, &self.packets, now);
        Some((id, entry & !END))
    }

    /// Hands a packet to a stage's discipline; whether it is a FIFO and had no room for it.
    fn enqueue(&mut self, index: usize, id: PacketId, hop: u32, len: u32, now: Instant) -> bool {
        let flow = self.addresses.flows[port(&self.hops, hop).unwrap_or_default()];
        let packet = self.packets.get_mut(id);
        packet.hop = hop;
        let class = packet.class;
        let item = Item { packet: id, len, flow, ecn: class.ecn(), dscp: class.dscp() };
        let stage = &mut self.stages[index];
        let discipline = match &mut stage.server {
            Server::Evented(evented) => &mut evented.discipline,
            Server::Shared(shared) => &mut shared.discipline,
            Server::Tunnel(tunnel) => &mut tunnel.discipline,
            Server::Computed(_) => return false,
        };
        let mut sink = Losses {
            packets: &mut self.packets,
            hops: &self.hops,
            addresses: &self.addresses,
            counters: &mut stage.counters,
            watch: &mut self.watch,
            stage: index,
            now,
        };
        let verdict = discipline.enqueue(item, now, &mut sink);
        let refused = matches!(verdict, Verdict::Dropped(_)) && discipline.fifo().is_some();
        self.pump(index, now);
        refused
    }

    /// Releases all packets that may leave a stage now.
    pub fn pump(&mut self, index: usize, now: Instant) {
        loop {
            let stage = &mut self.stages[index];
            let evented = match &mut stage.server {
                Server::Evented(evented) => evented,
                Server::Shared(_) => return self.offer(index, now),
                // Its socket is not ours: the world comes for it.
                Server::Tunnel(tunnel) => return self.calendar.set(tunnel.source, now),
                Server::Computed(_) => return,
            };
            let free = evented.transmitter.free(now);
            if free > now {
                self.calendar.set(evented.source, free);
                return;
            }
            let mut sink = Losses {
                packets: &mut self.packets,
                hops: &self.hops,
                addresses: &self.addresses,
                counters: &mut stage.counters,
                watch: &mut self.watch,
                stage: index,
                now,
            };
            match evented.discipline.dequeue(now, &mut sink) {
                Dequeue::Packet(item) => {
                    sink.tell(Event::Dequeued, item.packet);
                    let (packets, hops) = (&self.packets, &self.hops);
                    let header = || tcp_header(packets.get(item.packet), hops);
                    let at = evented.transmitter.send(item.len, now, header) + evented.delay;
                    self.leave(index, item.packet, at, now);
                }
                Dequeue::Wait(until) => {
                    self.calendar.set(evented.source, until);
                    return;
                }
                Dequeue::Empty => {
                    self.calendar.set(evented.source, Instant::NEVER);
                    return;
                }
            }
        }
    }

    /// Fills the ring of a stage, and notifies its medium.
    fn offer(&mut self, index: usize, now: Instant) {
        let stage = &mut self.stages[index];
        let Server::Shared(shared) = &mut stage.server else { return };
        let mut sink = Losses {
            packets: &mut self.packets,
            hops: &self.hops,
            addresses: &self.addresses,
            counters: &mut stage.counters,
            watch: &mut self.watch,
            stage: index,
            now,
        };
        let mut watchdog = Instant::NEVER;
        while shared.ring.has_room() {
            match shared.discipline.dequeue(now, &mut sink) {
                Dequeue::Packet(item) => {
                    sink.tell(Event::Dequeued, item.packet);
                    shared.ring.push(item);
                }
                Dequeue::Wait(until) => {
                    watchdog = until;
                    break;
                }
                Dequeue::Empty => break,
            }
        }
        self.calendar.set(shared.source, watchdog);
        if !shared.ring.is_empty() {
            let channel = &mut self.channels[shared.channel];
            channel.medium.offered(shared.station, now);
            self.calendar.set(channel.source, channel.medium.due());
        }
    }

    /// A packet has left the stage `index` and reaches what follows at `at`.
    pub fn leave(&mut self, index: usize, id: PacketId, at: Instant, now: Instant) {
        let packet = self.packets.get(id);
        self.watch.at_stage(index, Event::Arrived, id, &self.packets, at);
        let (hop, len) = (packet.hop + 1, packet.frame());
        self.stages[index].counters.bytes += u64::from(len);
        if at == now && self.hops[hop as usize] & NOT_A_STAGE == 0 {
            self.travel(id, hop, len, at, now);
        } else {
            self.wait(Waiting { at, id, hop }, index, index);
        }
    }

    /// Bytes of frames that have left the queue of a stage.
    pub fn sent_bytes(&mut self, index: usize, now: Instant) -> u64 {
        let Stage { server, counters, .. } = &mut self.stages[index];
        let Server::Computed(fifo) = server else { return counters.bytes };
        counters.bytes - fifo.backlog(now).bytes
    }

    /// Backlog of a stage's queue.
    pub fn backlog(&mut self, index: usize, now: Instant) -> Backlog {
        match &mut self.stages[index].server {
            Server::Computed(fifo) => fifo.backlog(now),
            Server::Evented(evented) => evented.discipline.backlog(),
            Server::Tunnel(tunnel) => tunnel.discipline.backlog(),
            Server::Shared(shared) => {
                let (queue, ring) = (shared.discipline.backlog(), shared.ring.backlog());
                Backlog { bytes: queue.bytes + ring.bytes, packets: queue.packets + ring.packets }
            }
        }
    }
}
