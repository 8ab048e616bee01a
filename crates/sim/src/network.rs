//! Links, and packets on their way over them.
//!
//! A path is a list of stages. A stage is a queue discipline, a transmitter and a delay; a link with a netem
//! behind it is two. Where a stage's departures can be computed on arrival ([`ComputedFifo`]) a packet walks through without
//! an event, and on into the next stage as long as that one is fed by nobody else; it then waits in a lane, a
//! FIFO with one pending event, for the instant at which it matters again.

use crate::calendar::{Calendar, Source};
use crate::packets::{Packet, Packets};
use dragstrip_qdisc::{
    Backlog, ComputedFifo, Dequeue, Discipline, DropReason, Item, Line, PacketId, Qdisc, Sink,
};
use dragstrip_tcp::Flags;
use dragstrip_units::{Duration, Instant};
use std::collections::VecDeque;

/// A FIFO of packets that arrive somewhere at known instants, never decreasing.
#[derive(Debug)]
pub(crate) struct Lane {
    under_way: VecDeque<(Instant, PacketId)>,
    last: Instant,
    source: Source,
}

impl Lane {
    /// An empty lane that is `source` in the calendar.
    pub fn new(source: Source) -> Self {
        Self { under_way: VecDeque::new(), last: Instant::ZERO, source }
    }
}

/// What decides when a packet leaves a stage.
#[derive(Debug)]
pub(crate) enum Server {
    /// Known on arrival.
    Computed(ComputedFifo),
    /// Decided at each dequeue.
    Evented(Box<Evented>),
}

/// A queue discipline that has to be asked, and the transmitter behind it.
#[derive(Debug)]
pub(crate) struct Evented {
    pub discipline: Discipline,
    pub line: Option<Line>,
    /// Its watchdog, or the end of the transmission in progress.
    pub source: Source,
}

/// What passed a stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageCounters {
    pub enqueued: u64,
    pub dropped: u64,
    pub marked: u64,
    pub copied: u64,
}

#[derive(Debug)]
pub(crate) struct Stage {
    pub server: Server,
    pub delay: Duration,
    /// Only one stage feeds this one, in order, and nothing watches its queue: it may be computed ahead of time.
    pub tandem: bool,
    /// Lane shared with other stages that lead to the same node, and a lane of its own for
    /// what would overtake there.
    pub shared_lane: u32,
    pub own_lane: u32,
    pub counters: StageCounters,
    /// The neighbour at the other end is not known before this instant; zero: it is.
    pub neighbour_known: Instant,
}

/// An ARP exchange still to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolution {
    /// The first stage of the link back, which learns from the request.
    pub back: Option<u32>,
    /// Request and reply take this long.
    pub round_trip: Duration,
}

/// A destination of packets.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// First stage and number of stages in [`Network::hops`].
    pub first_hop: u32,
    pub hop_count: u8,
    /// What fair queueing hashes.
    pub flow_key: u32,
    pub target: Target,
}

/// Who takes a packet at the end of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A TCP endpoint.
    Endpoint(u32),
    /// The receiving side of a UDP flow.
    Datagrams(u32),
    /// The host or router that answers a probe.
    ProbeTarget(u32),
    /// The host that asked.
    ProbeOrigin(u32),
}

/// Everything between the hosts.
#[derive(Debug)]
pub(crate) struct Network {
    pub packets: Packets,
    pub stages: Vec<Stage>,
    pub lanes: Vec<Lane>,
    pub hops: Vec<u32>,
    pub ports: Vec<Port>,
    pub calendar: Calendar,
    /// Links whose first packet has to wait for ARP, by their first stage.
    pub resolutions: std::collections::BTreeMap<u32, Resolution>,
}

/// The sink a discipline reports to while it holds packets of the arena.
struct Losses<'a> {
    packets: &'a mut Packets,
    counters: &'a mut StageCounters,
}

impl Sink for Losses<'_> {
    fn dropped(&mut self, item: Item, _reason: DropReason) {
        self.packets.remove(item.packet);
        self.counters.dropped += 1;
    }

    fn marked(&mut self, packet: PacketId) {
        let flags = &mut self.packets.get_mut(packet).segment.flags;
        *flags = flags.with(Flags::CE);
        self.counters.marked += 1;
    }

    fn duplicated(&mut self, item: Item) -> Item {
        let copy = self.packets.get(item.packet).clone();
        self.counters.copied += 1;
        Item { packet: self.packets.insert(copy), ..item }
    }
}

impl Network {
    /// A packet leaves its host at `now`; the answer is when it has left the host's own interface
    /// (`now` when it was dropped there or when that cannot be known yet).
    #[inline]
    pub fn send(&mut self, packet: Packet, now: Instant) -> Instant {
        let id = self.packets.insert(packet);
        self.travel(id, now, now)
    }

    /// The packet reaches its next stage at `at`, which may lie ahead of `now`.
    fn travel(&mut self, id: PacketId, mut at: Instant, now: Instant) -> Instant {
        let packet = self.packets.get(id);
        let port = &self.ports[packet.port as usize];
        let (first_hop, hop_count) = (port.first_hop as usize, usize::from(port.hop_count));
        let flow = port.flow_key;
        let len = u32::from(packet.frame);
        let mut hop = usize::from(packet.hop);
        let mut first_departure = None;
        let mut lane_of_first = None;
        let mut previous: Option<usize> = None;
        while hop < hop_count {
            let index = self.hops[first_hop + hop] as usize;
            let stage = &mut self.stages[index];
            if at > now && !stage.tandem {
                break;
            }
            if stage.neighbour_known > at {
                return self.wait_for_neighbour(id, index, hop, at);
            }
            match &mut stage.server {
                Server::Computed(fifo) => {
                    stage.counters.enqueued += 1;
                    let Some(leaves) = fifo.offer(len, at) else {
                        stage.counters.dropped += 1;
                        self.packets.remove(id);
                        return first_departure.unwrap_or(now);
                    };
                    first_departure.get_or_insert(leaves);
                    at = leaves + stage.delay;
                    lane_of_first.get_or_insert(stage.shared_lane);
                    previous = Some(index);
                    hop += 1;
                }
                Server::Evented(_) => {
                    self.packets.get_mut(id).hop = hop as u8;
                    self.enqueue(index, id, len, flow, now);
                    return first_departure.unwrap_or(now);
                }
            }
        }
        self.packets.get_mut(id).hop = hop as u8;
        self.wait(id, at, lane_of_first, previous);
        first_departure.unwrap_or(now)
    }

    /// The neighbour's address is not known: the packet waits for the reply to an ARP request, which
    /// the first one to come sends off.
    fn wait_for_neighbour(
        &mut self,
        id: PacketId,
        stage: usize,
        hop: usize,
        at: Instant,
    ) -> Instant {
        if let Some(resolution) = self.resolutions.remove(&(stage as u32)) {
            self.stages[stage].neighbour_known = at + resolution.round_trip;
            if let Some(back) = resolution.back {
                self.resolutions.remove(&back);
                self.stages[back as usize].neighbour_known = Instant::ZERO;
            }
        }
        self.packets.get_mut(id).hop = hop as u8;
        let known = self.stages[stage].neighbour_known.max(at);
        self.wait(id, known, None, Some(stage));
        at
    }

    /// Puts a packet into the first lane that it would not overtake anybody in.
    #[inline]
    fn wait(&mut self, id: PacketId, at: Instant, first: Option<u32>, last: Option<usize>) {
        let (shared, own) = last
            .map_or((0, 0), |index| (self.stages[index].shared_lane, self.stages[index].own_lane));
        let lane = match first {
            Some(lane) if self.lanes[lane as usize].last <= at => lane,
            _ if self.lanes[shared as usize].last <= at => shared,
            _ => own,
        };
        self.append(lane, id, at);
    }

    #[inline]
    fn append(&mut self, lane: u32, id: PacketId, at: Instant) {
        let queue = &mut self.lanes[lane as usize];
        debug_assert!(queue.last <= at, "a lane keeps its order");
        queue.last = at;
        let was_empty = queue.under_way.is_empty();
        queue.under_way.push_back((at, id));
        if was_empty {
            let source = queue.source;
            self.calendar.set(source, at);
        }
    }

    /// The packet at the head of `lane` has arrived. The answer is a packet at the end of its path.
    #[inline]
    pub fn arrive(&mut self, lane: u32, now: Instant) -> Option<PacketId> {
        let queue = &mut self.lanes[lane as usize];
        let (_, id) = queue.under_way.pop_front()?;
        let next = queue.under_way.front().map_or(Instant::NEVER, |head| head.0);
        self.calendar.set(queue.source, next);
        let packet = self.packets.get(id);
        if packet.hop < self.ports[packet.port as usize].hop_count {
            self.travel(id, now, now);
            return None;
        }
        Some(id)
    }

    fn enqueue(&mut self, index: usize, id: PacketId, len: u32, flow: u32, now: Instant) {
        let ecn = self.packets.get(id).ecn();
        let stage = &mut self.stages[index];
        let Server::Evented(evented) = &mut stage.server else { return };
        stage.counters.enqueued += 1;
        let mut sink = Losses { packets: &mut self.packets, counters: &mut stage.counters };
        evented.discipline.enqueue(Item { packet: id, len, flow, ecn }, now, &mut sink);
        self.pump(index, now);
    }

    /// Lets out of a stage whatever may leave now.
    pub fn pump(&mut self, index: usize, now: Instant) {
        loop {
            let stage = &mut self.stages[index];
            let Server::Evented(evented) = &mut stage.server else { return };
            if let Some(line) = &evented.line
                && line.free() > now
            {
                self.calendar.set(evented.source, line.free());
                return;
            }
            let mut sink = Losses { packets: &mut self.packets, counters: &mut stage.counters };
            match evented.discipline.dequeue(now, &mut sink) {
                Dequeue::Packet(item) => {
                    let leaves = evented.line.as_mut().map_or(now, |line| line.send(item.len, now));
                    let at = leaves + stage.delay;
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

    /// A packet has left the stage `index` and reaches what follows at `at`.
    fn leave(&mut self, index: usize, id: PacketId, at: Instant, now: Instant) {
        let packet = self.packets.get_mut(id);
        packet.hop += 1;
        let more = packet.hop < self.ports[packet.port as usize].hop_count;
        if more && at == now {
            self.travel(id, at, now);
        } else {
            self.wait(id, at, None, Some(index));
        }
    }

    /// What waits in the queue of a stage.
    pub fn backlog(&mut self, index: usize, now: Instant) -> Backlog {
        match &mut self.stages[index].server {
            Server::Computed(fifo) => fifo.backlog(now),
            Server::Evented(evented) => evented.discipline.backlog(),
        }
    }
}
