//! The loop: takes the earliest event and dispatches it to its source.

mod agents;
mod apps;
mod layout;
mod out;
mod parts;
mod probes;
mod programs;
mod quic;
mod rtp;
mod tick;
mod tunnel;
mod video;

use agents::Agents;
pub(crate) use agents::Stop;
pub(crate) use layout::Layout;
use out::Out;

use crate::apps::{App, Flow, FlowKind, Phase};
use crate::calendar::{END_OF_TIME, Source};
use crate::network::{Changes, Network, Target};
use crate::observer::Observer;
use crate::packets::Packet;
use crate::partition::{Assignment, united};
use crate::probes::Probe;
use crate::recorder;
use crate::sockets::{Memory, QuicSocket, Socket};
use dragstrip_packet::{Body, Echo, EchoKind, Ecn, Segment};
use dragstrip_qdisc::PacketId;
use dragstrip_recording::{Recording, RttRow, Word, Writer};
use dragstrip_scenario::Scenario;
use dragstrip_units::{Duration, Instant};

/// A queue whose state is recorded.
#[derive(Clone, Debug)]
pub(crate) struct QueueWatch {
    pub stage: usize,
    pub link: Word,
}

/// Bytes that have arrived at the receiving end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    wire_bytes: u64,
    new_bytes: u64,
    total_new_bytes: u64,
}

/// Events between two reports of progress at most: about a tenth of a second.
const EVENTS_UNREPORTED: u32 = 1 << 20;

/// A run in progress.
#[derive(Clone, Debug)]
pub(crate) struct World<O> {
    pub(crate) network: Network<O>,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) quic: Vec<QuicSocket>,
    pub(crate) flows: Vec<Flow>,
    arrivals: Vec<Arrivals>,
    /// A datagram of QUIC while its endpoint takes it.
    payload: Vec<u8>,
    memory: Memory,
    probes: Vec<Probe>,
    recorder: Writer,
    queues: Vec<QueueWatch>,
    layout: Layout,
    changes: Changes,
    pub(crate) now: Instant,
    end: Instant,
    /// True once the last interval's arrivals are recorded.
    ended: bool,
    interval: Duration,
    every_ack: bool,
    record_rtts: bool,
    record_cc_state: bool,
    has_programs: bool,
    agents: Agents,
    /// Part of the scenario that is simulated here.
    assignment: Assignment,
}

impl<O: Observer> World<O> {
    #[expect(clippy::too_many_arguments, reason = "called once, by build, with the parts it made")]
    pub fn new(
        scenario: &Scenario,
        network: Network<O>,
        (sockets, quic): (Vec<Socket>, Vec<QuicSocket>),
        flows: Vec<Flow>,
        probes: Vec<Probe>,
        recorder: Writer,
        queues: Vec<QueueWatch>,
        layout: Layout,
        changes: Changes,
        assignment: Assignment,
    ) -> Self {
        let mut world = Self {
            memory: Memory::of(&sockets),
            network,
            sockets,
            quic,
            payload: Vec::new(),
            arrivals: vec![Arrivals::default(); flows.len()],
            flows,
            probes,
            recorder,
            queues,
            changes: Changes { source: layout.changes, ..changes },
            layout,
            now: Instant::ZERO,
            end: Instant::from_nanos(scenario.duration_ns).min(END_OF_TIME),
            ended: false,
            interval: Duration::from_nanos(scenario.record.interval_ns),
            every_ack: scenario.record.every_ack,
            record_rtts: scenario.record.rtts,
            record_cc_state: scenario.record.cc_state,
            has_programs: !scenario.programs.is_empty(),
            agents: Agents::default(),
            assignment,
        };
        if world.has_programs {
            world.find_agents();
        }
        let assignment = &world.assignment;
        world.queues.retain(|watch| assignment.has_stage(watch.stage));
        for (index, flow) in world.flows.iter().enumerate() {
            let source = world.layout.flows + index as Source;
            world.network.calendar.set(source, flow.start);
        }
        for (index, probe) in world.probes.iter().enumerate() {
            if !world.assignment.asks(index) {
                continue;
            }
            let source = world.layout.probes + index as Source;
            world.network.calendar.set(source, probe.start);
        }
        if let Some((at, ..)) = world.changes.ahead.front() {
            world.network.calendar.set(world.layout.changes, *at);
        }
        world.set_tick();
        world
    }

    /// Runs to the end, to a program's fault, or until `progress` returns false: it is called after every simulated
    /// second and after `EVENTS_UNREPORTED` events, as a second of a hundred thousand flows takes minutes.
    pub fn run(&mut self, progress: &mut dyn FnMut(u64) -> bool) {
        let mut report_at = Instant::ZERO + Duration::from_secs(1);
        loop {
            self.advance(report_at, EVENTS_UNREPORTED);
            let Some(next) = self.pending() else {
                self.advance(self.end, u32::MAX);
                return;
            };
            if self.fault().is_some() || !progress(self.now.as_nanos()) {
                return;
            }
            report_at = next + Duration::from_secs(1);
        }
    }

    /// Lets everything happen that is due until `until`, but no more than `events_max` events; answers with their number.
    ///
    /// The clock is then at `until` (at the run's end if that is earlier), or at the last event if there were too
    /// many. A run in slices equals the run in one piece: between events nothing happens.
    pub fn advance(&mut self, until: Instant, events_max: u32) -> u32 {
        let until = until.min(self.end);
        let (events, complete) = if self.agents.is_empty() {
            self.handle(until, events_max)
        } else {
            let (events, stop) = self.advance_steps(until, events_max);
            (events, stop == Stop::Until)
        };
        if complete {
            self.now = self.now.max(until);
            self.end_at_end();
        }
        events
    }

    /// At the end of the run, records the last interval.
    fn end_at_end(&mut self) {
        if self.now == self.end && !self.ended {
            self.ended = true;
            self.record_arrivals();
        }
    }

    /// Handles the events that are due until `until`, but no more than `events_max`. Returns their number, and whether none is left.
    #[inline(never)] // one body, into which what it alone calls is inlined
    fn handle(&mut self, until: Instant, events_max: u32) -> (u32, bool) {
        let mut events = 0;
        while let Some((at, source)) = self.network.calendar.next() {
            if at > until {
                break;
            }
            if events == events_max {
                return (events, false);
            }
            debug_assert!(at >= self.now, "the clock never goes back");
            self.now = at;
            self.dispatch(source);
            events += 1;
        }
        (events, true)
    }

    /// Time of the next event; none if that is after the end.
    pub fn pending(&self) -> Option<Instant> {
        let (at, _) = self.network.calendar.next()?;
        (at <= self.end).then_some(at)
    }

    /// Bytes that a flow's receiver has in order.
    pub fn bytes_received(&self, flow: usize) -> u64 {
        self.arrivals[flow].total_new_bytes
    }

    /// End time of the run.
    pub const fn end(&self) -> Instant {
        self.end
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.network.watch.observer
    }

    /// The same.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.network.watch.observer
    }

    /// Lets who watches add to the tables, at the end.
    pub fn conclude(&mut self, add: impl FnOnce(&mut O, Instant, &mut Writer)) {
        add(&mut self.network.watch.observer, self.now, &mut self.recorder);
    }

    /// Moves rows that wait into the tables.
    pub(crate) fn settle_tables(&mut self) {
        self.recorder.settle();
    }

    /// The tables, to say how they are kept.
    pub(crate) const fn tables_mut(&mut self) -> &mut Writer {
        &mut self.recorder
    }

    /// Tables recorded so far; rows of `flows` are made at the end.
    pub const fn tables(&self) -> &Writer {
        &self.recorder
    }

    #[inline]
    fn dispatch(&mut self, source: Source) {
        let layout = &self.layout;
        if (source as usize) < layout.shared_lanes {
            self.on_lane(source);
        } else if source >= layout.endpoints {
            if source < layout.flows {
                self.on_endpoint_timer(source - layout.endpoints);
            } else if source < layout.probes {
                self.on_app((source - layout.flows) as usize);
            } else if source < layout.quic {
                self.on_probe((source - layout.probes) as usize);
            } else if source < layout.changes {
                self.on_quic_timer((source - layout.quic) as usize);
            } else {
                self.network.change(&mut self.changes, self.now);
            }
        } else if source >= layout.cards {
            self.on_interrupt((source - layout.cards) as usize);
        } else if source >= layout.processors {
            self.on_processor((source - layout.processors) as usize);
        } else if source >= layout.own_lanes {
            self.on_lane(source - layout.own_lanes + layout.shared_lanes as u32);
        } else if source == layout.tick {
            self.on_tick();
        } else if source >= layout.channels {
            let channel = (source - layout.channels) as usize;
            self.network.calendar.set(source, Instant::NEVER);
            self.network.transmit(channel, self.now);
        } else {
            let stage = layout.watched_stages[source as usize - layout.shared_lanes];
            self.network.calendar.set(source, Instant::NEVER);
            if self.network.tunnel(stage).is_some() {
                self.feed_tunnel(stage);
            } else {
                self.network.pump(stage, self.now);
            }
        }
    }

    #[inline]
    fn on_lane(&mut self, lane: u32) {
        if let Some((id, port)) = self.network.arrive(lane, self.now) {
            self.deliver(id, port);
        }
    }

    /// A host's processor has done a packet that was received.
    #[inline(never)]
    fn on_processor(&mut self, processor: usize) {
        if let Some((id, port)) = self.network.end_work(processor, self.now) {
            self.deliver(id, port);
        }
        self.network.begin_work(processor, self.now);
    }

    /// A host's card interrupts it: all packets received since the last time are processed, one after the other.
    #[inline(never)]
    fn on_interrupt(&mut self, card: usize) {
        self.network.interrupt(card, self.now);
        while let Some((id, port)) = self.network.poll(card, self.now) {
            self.deliver(id, port);
        }
    }

    /// A packet has reached the end of its path.
    #[inline]
    fn deliver(&mut self, id: PacketId, port: u32) {
        let packet = self.network.packets.get(id);
        let target = self.network.ports[port as usize];
        self.network.delivered += 1;
        let (Target::Endpoint(endpoint), Body::Tcp(segment)) = (target, &packet.body) else {
            return self.deliver_other(id, target);
        };
        let (frame, segment, class) = (packet.frame(), *segment, packet.class);
        self.network.packets.free(id);
        self.deliver_segment(endpoint, &segment, class.ecn(), frame);
    }

    /// The same of one that is not for a TCP endpoint of this network.
    #[inline(never)]
    fn deliver_other(&mut self, id: PacketId, target: Target) {
        let packet = self.network.packets.get(id);
        let (frame, body, class) = (packet.frame(), packet.body, packet.class);
        self.network.packets.remove(id);
        match (target, &body) {
            (Target::Agent(endpoint), Body::Tcp(segment)) => {
                self.deliver_to_agent(endpoint, segment, class.ecn());
            }
            (Target::Datagrams(flow), Body::Udp(datagram)) => {
                let arrivals = &mut self.arrivals[flow as usize];
                let flow = &mut self.flows[flow as usize];
                flow.datagrams_received += 1;
                arrivals.wire_bytes += u64::from(frame);
                arrivals.new_bytes += u64::from(datagram.len);
                arrivals.total_new_bytes += u64::from(datagram.len);
            }
            (Target::Rtp(flow), Body::Udp(datagram)) => {
                self.deliver_rtp(flow as usize, *datagram, class.ecn(), frame);
            }
            (Target::Reports(flow), Body::Udp(datagram)) => {
                self.deliver_report(flow as usize, datagram.number);
            }
            (Target::Quic(endpoint), Body::Quic(datagram)) => {
                self.deliver_quic(endpoint as usize, *datagram, frame);
            }
            (Target::Answerer(probe), Body::Icmp(echo)) => {
                let back = self.probes[probe as usize].back;
                let reply = Body::Icmp(Echo { kind: EchoKind::Reply, ..*echo });
                self.network.send(Packet::new(reply, class), back, self.now);
            }
            (Target::Outside, _) => {}
            (Target::Asker(probe), Body::Icmp(echo)) => self.on_probe_answer(probe as usize, echo),
            (
                Target::Endpoint(_)
                | Target::Agent(_)
                | Target::Quic(_)
                | Target::Datagrams(_)
                | Target::Rtp(_)
                | Target::Reports(_)
                | Target::Answerer(_)
                | Target::Asker(_),
                Body::Tcp(_) | Body::Udp(_) | Body::Quic(_) | Body::Icmp(_),
            ) => {
                unreachable!("each port takes the packets of one sender, which sends one protocol")
            }
        }
    }

    #[inline]
    fn deliver_segment(&mut self, endpoint: u32, segment: &Segment, ecn: Ecn, frame: u32) {
        let index = endpoint as usize;
        let mut out = Out::of(&mut self.network, &self.sockets[index]);
        let new_bytes = self.sockets[index].endpoint.on_segment(segment, ecn, self.now, &mut out);
        let socket = &self.sockets[index];
        let (flow, awaited) = (socket.flow as usize, socket.awaited);
        if socket.sends_data {
            if segment.len == 0 || new_bytes == 0 {
                self.after_ack(flow, index);
            }
        } else if segment.len > 0 {
            let arrivals = &mut self.arrivals[flow];
            arrivals.wire_bytes += u64::from(frame);
            arrivals.new_bytes += new_bytes;
            arrivals.total_new_bytes += new_bytes;
        }
        self.reschedule(index);
        if awaited {
            self.after_arrival(flow, index, segment.len > 0);
        }
    }

    #[inline(always)] // of every ACK
    fn after_ack(&mut self, flow: usize, endpoint: usize) {
        if self.record_rtts
            && let Some(rtt_ns) = self.sockets[endpoint].endpoint.new_rtt_ns()
        {
            self.recorder.rtts.stage(RttRow {
                time_ns: self.now.as_nanos() as i64,
                flow: flow as u32,
                rtt_ns: rtt_ns as i64,
            });
        }
        if self.every_ack {
            self.sample(flow, endpoint);
        }
    }

    fn sample(&mut self, flow: usize, endpoint: usize) {
        let sender = &self.sockets[endpoint].endpoint;
        recorder::sample(&mut self.recorder, self.now, flow as u32, sender);
        if self.record_cc_state {
            recorder::cc_state(&mut self.recorder, self.now, flow as u32, sender);
        }
    }

    /// Ensures that an event is pending no later than the endpoint's deadline. One that is too early stays: when it
    /// comes, the endpoint is polled again.
    #[inline]
    fn reschedule(&mut self, index: usize) {
        let deadline = self.sockets[index].endpoint.deadline();
        if deadline < self.sockets[index].scheduled {
            self.sockets[index].scheduled = deadline;
            self.network.calendar.set(self.layout.endpoints + index as Source, deadline);
        }
    }

    fn on_endpoint_timer(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        if self.sockets[index].endpoint.deadline() <= self.now {
            let mut out = Out::of(&mut self.network, &self.sockets[index]);
            self.sockets[index].endpoint.on_deadline(self.now, &mut out);
        }
        let deadline = self.sockets[index].endpoint.deadline();
        self.sockets[index].scheduled = deadline;
        self.network.calendar.set(self.layout.endpoints + endpoint, deadline);
    }

    /// Data that an application waited for has arrived.
    pub(crate) fn after_data(&mut self, flow_index: usize, endpoint: usize) {
        let flow = &mut self.flows[flow_index];
        let FlowKind::Tcp { client, server } = flow.kind else { return };
        let in_order = self.sockets[endpoint].endpoint.bytes_in_order();
        match flow.app {
            App::Bulk { bytes: Some(bytes) } => {
                if endpoint == server as usize && in_order >= bytes && flow.ended.is_none() {
                    flow.ended = Some(self.now);
                }
            }
            App::RequestResponse { request, response, think } => {
                if flow.phase == Phase::Stopped {
                    return;
                }
                if endpoint == server as usize {
                    let requests = in_order / request;
                    self.write_until(server, requests * response);
                } else if in_order == flow.rounds * response && flow.phase == Phase::Busy {
                    flow.phase = Phase::Quiet;
                    let next = (self.now + think).min(flow.stop);
                    debug_assert!(client as usize == endpoint);
                    self.set_app(flow_index, next);
                }
            }
            App::Video { request } => self.after_video(flow_index, endpoint, request, in_order),
            App::Bulk { bytes: None }
            | App::OnOff { .. }
            | App::ConstantRate { .. }
            | App::Rtp
            | App::Tunnel { .. } => {}
        }
    }

    fn set_app(&mut self, flow: usize, at: Instant) {
        self.network.calendar.set(self.layout.flows + flow as Source, at);
    }

    pub(crate) fn write_until(&mut self, endpoint: u32, total: u64) {
        let index = endpoint as usize;
        if !self.assignment.has_socket(index) {
            return;
        }
        let mut out = Out::of(&mut self.network, &self.sockets[index]);
        self.sockets[index].endpoint.write_until(total, self.now, &mut out);
        self.reschedule(index);
    }

    fn write_endless(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        if !self.assignment.has_socket(index) {
            return;
        }
        let mut out = Out::of(&mut self.network, &self.sockets[index]);
        self.sockets[index].endpoint.write_endless(self.now, &mut out);
        self.reschedule(index);
    }

    fn open(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        if !self.assignment.has_socket(index) {
            return;
        }
        self.memory.recall(&mut self.sockets[index]);
        let mut out = Out::of(&mut self.network, &self.sockets[index]);
        self.sockets[index].endpoint.open(self.now, &mut out);
        self.reschedule(index);
    }

    /// The recording of what happened so far.
    pub fn finish(mut self, scenario: &Scenario) -> Recording {
        let mut tables = std::mem::take(&mut self.recorder);
        self.add_flows(scenario, &mut tables);
        let in_order = self.assignment.in_order;
        drop(self); // tables of many flows are large too
        finished(tables, in_order)
    }

    /// The same of a run in progress.
    pub fn recording(&self, scenario: &Scenario) -> Recording {
        let mut tables = self.recorder.clone();
        self.add_flows(scenario, &mut tables);
        finished(tables, self.assignment.in_order)
    }

    fn add_flows(&self, scenario: &Scenario, tables: &mut Writer) {
        for (index, (flow, spec)) in self.flows.iter().zip(&scenario.flows).enumerate() {
            let sender = flow.data_sender().map(|index| &self.sockets[index as usize].endpoint);
            let new_bytes = self.arrivals[index].total_new_bytes;
            let table = &mut tables.flows;
            if let FlowKind::Quic { client, .. } = flow.kind {
                let sender = self.quic[client as usize].endpoint.snapshot();
                recorder::quic_flow(table, index as u32, flow, spec, &sender, new_bytes, self.now);
                continue;
            }
            recorder::flow(table, index as u32, flow, spec, sender, new_bytes, self.now);
        }
    }
}

fn finished(tables: Writer, in_order: bool) -> Recording {
    let recording = tables.finish();
    if in_order { united(vec![recording]) } else { recording }
}
