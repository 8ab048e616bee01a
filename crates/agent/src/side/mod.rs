//! A side: one host's work in a run. Its ends of flows, its pings, its tap, the queues at its interfaces.
//!
//! A side acts when one of its files is ready or one of its events is due, and knows nothing of other hosts:
//! what one must know of another, a conductor carries over (message.rs).

mod agenda;
mod asking;
mod capture;
mod cc_state;
mod end;
mod heard;
mod info;
mod message;
mod probe;
mod sending;
mod tap;
mod watch;

pub use agenda::{Agenda, Event};
pub use capture::{CaptureRequest, Captured, Described, Wire, collect as collect_captures};
pub use info::{Bytes, CWR, Info, longest_limit};
pub use message::{Counts, EndReport, Notice, Order, Report};
pub use probe::{Pinger, row as probe_row};
pub use sending::may_be_paced;
pub use tap::{Matcher, read_sacks};

use crate::changes::Step;
use crate::fault::Fault;
use crate::network::Place;
use crate::plan::Plan;
use crate::qdisc;
use crate::sys::{self, Poll};
use capture::Capture;
use dragstrip_recording::{RttRow, Writer};
use dragstrip_scenario::{Application, QdiscSpec, Scenario};
use end::{End, Phase, Role, Taken};
use heard::Heard;
use std::fs;
use tap::Tap;
use watch::Watch;

/// Context in which a side handles an event.
pub struct Desk<'d> {
    pub poll: &'d Poll,
    pub agenda: &'d mut Agenda,
    pub tables: &'d mut Writer,
    pub notices: &'d mut Vec<Notice>,
}

/// The ring of a side's tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// That it has room for.
    pub packets: usize,
    /// Interval at which the ring is emptied (ns); every sample empties it too.
    pub emptied_ns: u64,
}

/// A file that is waited for: what it is, whose, and which one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    what: u64,
    side: usize,
    index: usize,
}

const LISTENER: u64 = 1;
/// An end's connection, or a server's socket for datagrams.
const SOCKET: u64 = 2;
const PROBE: u64 = 3;
const TAP: u64 = 4;
const WHAT_BITS: u32 = 3;
const SIDE_BITS: u32 = 24;

impl Token {
    const fn pack(self) -> u64 {
        self.what | (self.side as u64) << WHAT_BITS | (self.index as u64) << (WHAT_BITS + SIDE_BITS)
    }

    const fn unpack(token: u64) -> Self {
        Self {
            what: token & ((1 << WHAT_BITS) - 1),
            side: (token >> WHAT_BITS & ((1 << SIDE_BITS) - 1)) as usize,
            index: (token >> (WHAT_BITS + SIDE_BITS)) as usize,
        }
    }
}

/// The number of the side that a ready file belongs to.
pub const fn side_of(token: u64) -> usize {
    Token::unpack(token).side
}

/// One host.
pub struct Side<'a> {
    /// Its number among the sides of this process.
    number: usize,
    /// Its number in the plan.
    node: usize,
    scenario: &'a Scenario,
    place: Place,
    /// By flow.
    ends: Vec<End<'a>>,
    /// Flows of programs whose client is here.
    heard: Vec<Heard>,
    /// With the number of the probe.
    pingers: Vec<(usize, Pinger)>,
    tap: Option<Tap>,
    captures: Vec<Capture>,
    ring: Ring,
    watches: Vec<Watch<'a>>,
    /// With the interface.
    steps: Vec<(i32, &'a Step)>,
    counted_before: Counts,
    start: i64,
}

impl<'a> Side<'a> {
    /// Opens all that waits for others: listening sockets, the tap, sockets for pings, counters.
    ///
    /// `interfaces` are those of the plan's hops, `ring` is the tap's.
    pub fn open(
        number: usize,
        (node, place): (usize, Place),
        scenario: &'a Scenario,
        plan: &'a Plan,
        interfaces: &[i32],
        ring: Ring,
        poll: &Poll,
    ) -> Result<Self, Fault> {
        let mut side = Self {
            number,
            node,
            scenario,
            place,
            ends: Vec::new(),
            heard: Heard::at(node, scenario, plan)?,
            pingers: Vec::new(),
            tap: None,
            captures: Vec::new(),
            ring,
            watches: Vec::new(),
            steps: Vec::new(),
            counted_before: Counts::new(),
            start: 0,
        };
        side.enter()?;
        side.open_ends(plan, poll)?;
        if side.ends.iter().any(End::is_tcp) || !side.heard.is_empty() {
            let mut tap = Tap::open(ring.packets, 0)?;
            tap.takes_datagrams = !side.heard.is_empty();
            if scenario.record.every_ack && side.ends.iter().any(End::sends) {
                poll.add(&tap.socket, libc::EPOLLIN, side.token(TAP, 0))?;
            }
            side.tap = Some(tap);
            side.counted_before = counts();
        }
        for (index, probe) in scenario.probes.iter().enumerate() {
            if plan.node(&probe.from)? == node {
                let target = plan.nodes[plan.node(&probe.target)?].address;
                let pinger = Pinger::open(index as u16, target, probe.size_bytes as usize)?;
                poll.add(&pinger.socket, libc::EPOLLIN, side.token(PROBE, side.pingers.len()))?;
                side.pingers.push((index, pinger));
            }
        }
        for (hop, &interface) in plan.hops.iter().zip(interfaces) {
            if let (Some(name), true) = (&hop.watched, hop.from == node) {
                let watch = Watch::new(&mut side.place.netlink, name, interface, &hop.qdisc)?;
                side.watches.push(watch);
            }
        }
        let side_steps = plan.steps.iter().filter(|step| plan.hops[step.hop].from == node);
        side.steps = side_steps.map(|step| (interfaces[step.hop], step)).collect();
        Ok(side)
    }

    /// Opens the captures that are wanted here: each one's place among all, and its interface (`CaptureRequest::at`).
    pub fn capture(
        &mut self,
        request: &CaptureRequest,
        points: &[(usize, i32)],
        wires: &[Wire],
    ) -> Result<(), Fault> {
        self.enter()?;
        for &(point, interface) in points {
            self.captures.push(request.open(point, interface, wires)?);
        }
        Ok(())
    }

    /// Finishes this side's captures and returns their files.
    pub fn captured(&mut self, end_ns: u64) -> Result<Vec<Captured>, Fault> {
        let start = self.start;
        self.captures.drain(..).map(|capture| capture.finish(start, end_ns)).collect()
    }

    /// True when a discipline that paces (fq) is or may be at this host's egress: the machine's default, if none was
    /// configured.
    fn may_have_pacing_queue(&self, plan: &Plan) -> bool {
        let name = &plan.nodes[self.node].name;
        let mut egress_links = self.scenario.links.iter().filter(|link| link.from == *name);
        egress_links.any(|link| {
            let all = link.qdisc.classes();
            let mut queues = all.iter().map(|class| class.child).chain([&link.qdisc]);
            let machines = self.place.namespace.is_none()
                && link.qdisc == QdiscSpec::NOQUEUE
                && link.rate_bps.is_none();
            queues.any(|queue| queue.row().paces) || machines && default_paces()
        })
    }

    fn open_ends(&mut self, plan: &Plan, poll: &Poll) -> Result<(), Fault> {
        let pacing_queue = self.may_have_pacing_queue(plan);
        for (flow, spec) in self
            .scenario
            .flows
            .iter()
            .enumerate()
            .filter(|(_, spec)| !spec.application.is_program())
        {
            for (role, host) in [(Role::Client, &spec.sender), (Role::Server, &spec.receiver)] {
                if plan.node(host)? != self.node {
                    continue;
                }
                let mut end = End::new(flow, spec, role, plan, pacing_queue)?;
                if role == Role::Server {
                    let token_kind = if end.is_tcp() { LISTENER } else { SOCKET };
                    let token = self.token(token_kind, self.ends.len());
                    poll.add(end.listen()?, libc::EPOLLIN, token)?;
                }
                self.ends.push(end);
            }
        }
        Ok(())
    }

    fn enter(&self) -> Result<(), Fault> {
        self.place.enter()
    }

    const fn token(&self, kind: u64, index: usize) -> u64 {
        Token { what: kind, side: self.number, index }.pack()
    }

    /// Its number in the plan.
    pub const fn node(&self) -> usize {
        self.node
    }

    /// Executes an order of the conductor.
    pub fn on_order(&mut self, order: Order, agenda: &mut Agenda) {
        match order {
            Order::Begin { start } => {
                self.start = start;
                self.schedule(agenda);
            }
            Order::Arrived { flow, at_ns } => {
                for end in self.ends.iter_mut().filter(|end| end.flow == flow) {
                    end.arrived(at_ns);
                }
                self.heard.iter_mut().for_each(|heard| heard.end(flow, at_ns));
            }
        }
    }

    fn schedule(&self, agenda: &mut Agenda) {
        agenda.add(self.scenario.record.interval_ns as i64, Event::Sample, self.number);
        let taps = self.tap.is_some() || !self.captures.is_empty();
        if taps && self.ring.emptied_ns < self.scenario.record.interval_ns {
            agenda.add(self.ring.emptied_ns as i64, Event::Drain, self.number);
        }
        for (index, (_, step)) in self.steps.iter().enumerate() {
            agenda.add(step.at_ns as i64, Event::Change(index), self.number);
        }
        for (index, end) in self.ends.iter().enumerate() {
            agenda.add(end.spec.start_ns as i64, Event::Start(index), self.number);
            if let Some(stop_ns) = end.spec.stop_ns {
                agenda.add(stop_ns as i64, Event::Stop(index), self.number);
            }
        }
        for (index, (probe, _)) in self.pingers.iter().enumerate() {
            let start_ns = self.scenario.probes[*probe].start_ns;
            agenda.add(start_ns as i64, Event::Ping(index), self.number);
        }
    }

    /// One of this side's files is ready.
    pub fn on_file(&mut self, token: u64, events: i32, desk: &mut Desk<'_>) -> Result<(), Fault> {
        let Token { what, index, .. } = Token::unpack(token);
        match what {
            LISTENER => {
                let watched = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
                let token = self.token(SOCKET, index);
                if let Some(accepted) = self.ends[index].accept() {
                    desk.poll.add(accepted, watched, token)?;
                    self.take(index, desk);
                }
            }
            SOCKET => {
                if events & libc::EPOLLOUT != 0 {
                    self.ends[index].pump();
                }
                if events & libc::EPOLLIN != 0 {
                    self.take(index, desk);
                }
            }
            PROBE => self.pingers[index].1.record(&mut desk.tables.probes),
            TAP => self.drain(desk.tables)?,
            _ => {} // the timer: events are looked at in any case
        }
        Ok(())
    }

    fn take(&mut self, index: usize, desk: &mut Desk<'_>) {
        let now_ns = sys::now() - self.start;
        let end = &mut self.ends[index];
        match end.take(now_ns, desk.tables) {
            Taken::Nothing => {}
            Taken::Last => desk.notices.push(Notice::Arrived { flow: end.flow, at_ns: now_ns }),
            Taken::Answer { next_ns } => desk.agenda.add(next_ns, Event::Ask(index), self.number),
        }
    }

    /// One of this side's events is due.
    pub fn on_event(
        &mut self,
        time_ns: i64,
        event: Event,
        desk: &mut Desk<'_>,
    ) -> Result<(), Fault> {
        match event {
            Event::Sample => {
                self.sample(time_ns, desk.tables)?;
                let next_ns = time_ns + self.scenario.record.interval_ns as i64;
                desk.agenda.add(next_ns, Event::Sample, self.number);
            }
            Event::Drain => {
                self.drain(desk.tables)?;
                desk.agenda.add(time_ns + self.ring.emptied_ns as i64, event, self.number);
            }
            Event::Change(index) => self.change(index)?,
            Event::Start(index) => self.start_end(index, time_ns, desk)?,
            Event::Stop(index) => {
                self.drain(desk.tables)?;
                self.ends[index].stop(time_ns, desk.tables)?;
            }
            Event::Toggle(index) => {
                let end = &mut self.ends[index];
                if let (Application::OnOff { on_ns, off_ns }, Phase::Busy | Phase::Quiet) =
                    (&end.spec.application, end.phase)
                {
                    end.toggle();
                    let lasts = if end.phase == Phase::Busy { *on_ns } else { *off_ns };
                    desk.agenda.add(time_ns + lasts as i64, event, self.number);
                }
            }
            Event::Ask(index) => {
                if self.ends[index].phase == Phase::Quiet {
                    self.ends[index].ask_again(time_ns);
                }
            }
            Event::Datagram(index) => self.datagram(index, time_ns, desk.agenda),
            Event::Ping(index) => {
                let (probe, pinger) = &mut self.pingers[index];
                let spec = &self.scenario.probes[*probe];
                let table = &mut desk.tables.probes;
                pinger.send(probe::row(table, time_ns, &spec.label, &spec.target));
                desk.agenda.add(time_ns + spec.interval_ns as i64, event, self.number);
            }
        }
        Ok(())
    }

    /// One of the disciplines here becomes what it is to be.
    fn change(&mut self, index: usize) -> Result<(), Fault> {
        let (interface, Step { from, to, anew, .. }) = self.steps[index];
        let Self { place, watches, .. } = self;
        let watch = watches.iter_mut().find(|watch| watch.interface == interface);
        let netlink = &mut place.netlink;
        if !anew {
            qdisc::change(netlink, interface, from, to)?;
            if let Some(watch) = watch {
                watch.becomes(to);
            }
            return Ok(());
        }
        let Some(watch) = watch else { return qdisc::replace(netlink, interface, from, to) };
        watch.ends(netlink)?;
        qdisc::replace(netlink, interface, from, to)?;
        watch.begins(netlink, to)
    }

    fn start_end(&mut self, index: usize, time_ns: i64, desk: &mut Desk<'_>) -> Result<(), Fault> {
        self.enter()?;
        let token = self.token(SOCKET, index);
        let end = &mut self.ends[index];
        let tcp = end.is_tcp();
        let Some(socket) = end.start(time_ns)? else { return Ok(()) };
        if tcp {
            let watched = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
            desk.poll.add(socket, watched, token)?;
        }
        match end.spec.application {
            Application::OnOff { on_ns, .. } => {
                desk.agenda.add(time_ns + on_ns as i64, Event::Toggle(index), self.number);
            }
            Application::ConstantRate { .. } => self.datagram(index, time_ns, desk.agenda),
            Application::Bulk { .. }
            | Application::RequestResponse { .. }
            | Application::Video { .. }
            | Application::Rtp { .. }
            | Application::Tunnel { .. }
            | Application::Program { .. } => {}
        }
        Ok(())
    }

    fn datagram(&mut self, index: usize, time_ns: i64, agenda: &mut Agenda) {
        let end = &mut self.ends[index];
        if let (Application::ConstantRate { rate_bps, datagram_bytes }, Phase::Busy) =
            (&end.spec.application, end.phase)
        {
            end.datagram(*datagram_bytes);
            let bits = u128::from(*datagram_bytes) * 8 * 1_000_000_000;
            let gap = (bits / u128::from((*rate_bps).max(1))) as i64;
            agenda.add(time_ns + gap, Event::Datagram(index), self.number);
        }
    }

    /// Takes what the tap has seen.
    fn drain(&mut self, tables: &mut Writer) -> Result<(), Fault> {
        let Self { tap, captures, ends, heard, scenario, start, .. } = self;
        for capture in captures {
            capture.drain(*start, scenario.duration_ns);
        }
        if let Some(tap) = tap {
            tap.drain(|packet| {
                let flow = end::flow_of(packet).unwrap_or(usize::MAX);
                let first = ends.partition_point(|end| end.flow < flow);
                let flow_ends = ends[first..].iter_mut().take_while(|end| end.flow == flow);
                let mut is_owned = false;
                for end in flow_ends.filter(|end| end.owns(packet)) {
                    is_owned = true;
                    if packet.is_tcp
                        && let Some((time_ns, rtt_ns)) = end.see(packet, *start)
                        && scenario.record.rtts
                    {
                        tables.rtts.push(RttRow { time_ns, flow: end.flow as u32, rtt_ns });
                    }
                }
                if !is_owned {
                    heard.iter_mut().for_each(|heard| heard.hear(packet, *start));
                }
            })?;
        }
        if scenario.record.every_ack {
            for end in ends {
                end.record_ack(&scenario.record, tables)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, time_ns: i64, tables: &mut Writer) -> Result<(), Fault> {
        self.drain(tables)?;
        for end in &mut self.ends {
            end.record(time_ns, &self.scenario.record, tables)?;
        }
        for heard in &mut self.heard {
            heard.record(time_ns, tables);
        }
        for watch in &self.watches {
            watch.record(&mut self.place.netlink, time_ns, &mut tables.queues)?;
        }
        Ok(())
    }

    /// The last rows, and what the conductor makes the flows' rows of.
    pub fn finish(&mut self, end_ns: i64, tables: &mut Writer) -> Result<Report, Fault> {
        self.drain(tables)?;
        for (_, pinger) in &mut self.pingers {
            pinger.record(&mut tables.probes);
        }
        let ends = self.ends.iter_mut().map(|end| end.finish(end_ns, tables));
        let mut ends = ends.collect::<Result<Vec<_>, _>>()?;
        ends.extend(self.heard.iter().map(Heard::report));
        let counts = self.tap.is_some().then(|| self.count_increments()).transpose()?;
        Ok(Report { ends, counts })
    }

    /// Increments of this host's TCP counters since the start; zero increments are left out.
    fn count_increments(&self) -> Result<Counts, Fault> {
        self.enter()?;
        let mut now = counts();
        for (name, before) in &self.counted_before {
            now.entry(name.clone()).and_modify(|count| *count = count.saturating_sub(*before));
        }
        now.retain(|_, count| *count > 0);
        Ok(now)
    }
}

/// The counters of this namespace so far.
fn counts() -> Counts {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Counts::new() };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// True when the machine's default discipline for an interface paces.
fn default_paces() -> bool {
    let default = fs::read_to_string("/proc/sys/net/core/default_qdisc").unwrap_or_default();
    dragstrip_qdisc::KINDS.iter().any(|kind| kind.paces && kind.name == default.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back() {
        let token = Token { what: TAP, side: 70_000, index: 9 };
        assert_eq!(Token::unpack(token.pack()), token);
        assert_eq!(side_of(token.pack()), 70_000);
        assert_ne!(token.pack(), 0, "the timer's");
    }
}
