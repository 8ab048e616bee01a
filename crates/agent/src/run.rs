//! A run: builds the network, believes it only when it is as asked, drives the traffic, and answers.

use crate::fault::{Fault, fault};
use crate::flow::{CLIENT, Flow, Phase, SERVER};
use crate::network::Network;
use crate::plan::Plan;
use crate::probe::{self, Pinger};
use crate::record;
use crate::sys::{self, Poll};
use crate::tap::Tap;
use crate::{load, modules, qdisc};
use dragstrip_recording::{QueueRow, RttRow, Writer};
use dragstrip_scenario::{Application, Scenario};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::os::fd::OwnedFd;

/// Quiet time between building and measuring: the kernel brings links up in its own time.
const SETTLE_NS: i64 = 2_000_000_000;
/// Packets that fit into the rings of all hosts together.
const RING_PACKETS: usize = 1 << 17;

/// What happens at a set time. The order of simultaneous events is that of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sample,
    Stop(usize),
    Start(usize),
    Toggle(usize),
    Ask(usize),
    Datagram(usize),
    Ping(usize),
}

/// Tokens of files that are waited for: what it is in the low bits, which one in the rest.
const TIMER: u64 = 0;
const FLOW: u64 = 1;
const LISTENER: u64 = 2;
const PROBE: u64 = 3;
/// The receiving end of a TCP connection, which may have answers to write.
const ACCEPTED: u64 = 4;
const TAP: u64 = 5;
const KIND_BITS: u32 = 3;

fn token(what: u64, index: usize) -> u64 {
    what | (index as u64) << KIND_BITS
}

struct Run<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    network: Network,
    flows: Vec<Flow<'a>>,
    pingers: Vec<Pinger>,
    taps: BTreeMap<usize, Tap>,
    poll: Poll,
    timer: OwnedFd,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    tables: Writer,
    /// Counters of watched queues at the start, by hop.
    before: BTreeMap<usize, qdisc::Counters>,
    /// What TCP had counted at the start, by host.
    counted_before: BTreeMap<usize, Counts>,
    start: i64,
}

/// A request for a run.
#[derive(Deserialize)]
pub struct Request {
    scenario: Scenario,
    /// What stands behind the request: the loader, and what it is to load; or nothing.
    load: Vec<load::Part>,
}

/// Runs a scenario; `raw` are the bytes behind the request, `progress` is told how far it has come.
pub fn run(request: &Request, raw: &[u8], progress: &dyn Fn(u64)) -> Result<Vec<u8>, Fault> {
    let Request { scenario, load } = request;
    let plan = Plan::new(scenario)?;
    stir(scenario.seed)?;
    load::register(load, raw)?;
    modules::configure(scenario)?;
    let mut network = Network::build(&plan, scenario.cold_arp)?;
    let seen = network.verify(&plan)?;
    let settled = sys::now() + SETTLE_NS;
    wait_until(settled)?;
    let idle = idle_round_trips(scenario, &plan, &network)?;
    if scenario.cold_arp {
        network.forget_neighbours(&plan);
    }
    let mut run = Run::prepare(scenario, &plan, network)?;
    let busy = cpu_ticks();
    run.drive(progress)?;
    let idle_share = idle_share(busy, cpu_ticks());
    let ecn = run.finish()?;
    let counters = run.counters_of_hosts()?;
    let mut about = json!({
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "path": seen,
        "idle_rtt_ns": idle,
        "ecn_negotiated": ecn,
        "netstat": counters,
        "cpu_idle_share": idle_share,
    });
    if scenario.record.every_ack {
        let together: u64 = run.flows.iter().map(|flow| flow.acks_together).sum();
        about["acks_sampled_with_a_later_one"] = together.into();
    }
    Ok(record::answer(&run.tables.finish(), about))
}

/// The seed becomes part of the kernel's randomness: netem's dice, hashes, sequence numbers.
fn stir(seed: u64) -> Result<(), Fault> {
    let pool = fs::OpenOptions::new().write(true).open("/dev/urandom")?;
    let mut data = [0; 32];
    data[..8].copy_from_slice(&seed.to_le_bytes());
    sys::stir(&pool, data)
}

fn wait_until(time: i64) -> Result<(), Fault> {
    let (poll, timer) = (Poll::new()?, sys::timer()?);
    poll.add(&timer, libc::EPOLLIN, TIMER)?;
    sys::arm(&timer, time)?;
    let mut ready = Vec::new();
    while sys::now() < time {
        poll.wait(&mut ready, 1_000)?;
    }
    Ok(())
}

/// Pings along every flow's path while nothing else moves; a fault if the delay is not the scenario's.
fn idle_round_trips(scenario: &Scenario, plan: &Plan, network: &Network) -> Result<Value, Fault> {
    let node = |name: &str| plan.nodes.iter().position(|node| node.name == name).unwrap_or(0);
    let mut measured = serde_json::Map::new();
    for flow in &scenario.flows {
        let (from, to) = (node(&flow.sender), node(&flow.receiver));
        let name = format!("{} to {}", flow.sender, flow.receiver);
        if measured.contains_key(&name) {
            continue;
        }
        let ((there, constant), (back, constant_back)) =
            (plan.delay_ns(from, to), plan.delay_ns(to, from));
        let wanted = (there + back) as i64;
        sys::enter(&network.places[from].namespace)?;
        let mut pinger = Pinger::open(0xffff, plan.nodes[to].address, 64)?;
        let slack = wanted / 50 + 1_000_000 + serialisation_ns(scenario);
        let mut best: Option<i64> = None;
        for _ in 0..PINGS {
            pinger.send(0);
            wait_until(sys::now() + 2 * wanted + 50_000_000)?;
            let rtt = pinger.answers().last().map(|(_, rtt)| *rtt);
            best = best.into_iter().chain(rtt).min();
            // The first one may have waited for neighbours to be found.
            if best.is_some_and(|rtt| rtt <= wanted + slack) && constant && constant_back {
                break;
            }
        }
        let Some(rtt) = best else {
            return fault(format!("{name}: {PINGS} pings on the idle path were not answered"));
        };
        if constant && constant_back && !(wanted..=wanted + slack).contains(&rtt) {
            return fault(format!("{name}: the idle round trip takes {rtt} ns, not {wanted} ns"));
        }
        measured.insert(name, rtt.into());
    }
    Ok(Value::Object(measured))
}

const PINGS: usize = 10;

/// What a ping's 98 bytes may take on all transmitters together.
fn serialisation_ns(scenario: &Scenario) -> i64 {
    let rates = scenario.links.iter().filter_map(|link| link.rate_bps);
    rates.map(|bps| (200 * 8 * 1_000_000_000 / bps.max(1)) as i64).sum()
}

impl<'a> Run<'a> {
    fn prepare(scenario: &'a Scenario, plan: &'a Plan, network: Network) -> Result<Self, Fault> {
        let (poll, timer) = (Poll::new()?, sys::timer()?);
        poll.add(&timer, libc::EPOLLIN, token(TIMER, 0))?;
        let mut flows = Vec::new();
        for (index, spec) in scenario.flows.iter().enumerate() {
            let mut flow = Flow::new(index, spec, plan)?;
            sys::enter(&network.places[flow.receiver].namespace)?;
            let kind = if flow.is_tcp() { LISTENER } else { FLOW };
            poll.add(flow.listen()?, libc::EPOLLIN, token(kind, index))?;
            flows.push(flow);
        }
        let mut run = Self {
            scenario,
            plan,
            network,
            flows,
            pingers: Vec::new(),
            taps: BTreeMap::new(),
            poll,
            timer,
            events: BinaryHeap::new(),
            tables: Writer::default(),
            before: BTreeMap::new(),
            counted_before: BTreeMap::new(),
            start: 0,
        };
        run.listen()?;
        run.schedule();
        Ok(run)
    }

    /// Taps and pingers, and counters as they stand before the traffic.
    fn listen(&mut self) -> Result<(), Fault> {
        let tcp = self.flows.iter().filter(|flow| flow.is_tcp());
        let mut hosts: Vec<usize> = tcp.flat_map(|flow| [flow.sender, flow.receiver]).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for &host in &hosts {
            sys::enter(&self.network.places[host].namespace)?;
            let tap = Tap::open(RING_PACKETS / hosts.len())?;
            if self.scenario.record.every_ack
                && self.flows.iter().any(|flow| flow.is_tcp() && flow.data_sender() == host)
            {
                self.poll.add(&tap.socket, libc::EPOLLIN, token(TAP, host))?;
            }
            self.taps.insert(host, tap);
            self.counted_before.insert(host, counts());
        }
        for (index, probe) in self.scenario.probes.iter().enumerate() {
            let node = |name: &str| self.plan.nodes.iter().position(|node| node.name == name);
            let (Some(from), Some(target)) = (node(&probe.from), node(&probe.target)) else {
                return fault(format!("probe {}: no such host", probe.label));
            };
            sys::enter(&self.network.places[from].namespace)?;
            let address = self.plan.nodes[target].address;
            let pinger = Pinger::open(index as u16, address, probe.size_bytes as usize)?;
            self.poll.add(&pinger.socket, libc::EPOLLIN, token(PROBE, index))?;
            self.pingers.push(pinger);
        }
        for index in 0..self.plan.hops.len() {
            if self.plan.hops[index].watched.is_some() {
                let counters = self.counters(index)?;
                self.before.insert(index, counters);
            }
        }
        Ok(())
    }

    fn counters(&mut self, hop: usize) -> Result<qdisc::Counters, Fault> {
        let (place, interface) = (self.plan.hops[hop].from, self.network.interfaces[hop]);
        let netlink = &mut self.network.places[place].netlink;
        qdisc::read(netlink, interface, &self.plan.hops[hop].qdisc)
    }

    fn at(&mut self, time_ns: i64, event: Event) {
        if time_ns <= self.scenario.duration_ns as i64 {
            self.events.push(Reverse((time_ns, event)));
        }
    }

    fn schedule(&mut self) {
        self.at(self.scenario.record.interval_ns as i64, Event::Sample);
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            self.at(flow.start_ns as i64, Event::Start(index));
            if let Some(stop_ns) = flow.stop_ns {
                self.at(stop_ns as i64, Event::Stop(index));
            }
        }
        for (index, probe) in self.scenario.probes.iter().enumerate() {
            self.at(probe.start_ns as i64, Event::Ping(index));
        }
    }

    /// The run itself.
    fn drive(&mut self, progress: &dyn Fn(u64)) -> Result<(), Fault> {
        self.start = sys::now() + 1_000_000;
        let end_ns = self.scenario.duration_ns as i64;
        let mut ready = Vec::new();
        loop {
            let next = self.events.peek().map_or(end_ns, |Reverse((time_ns, _))| *time_ns);
            sys::arm(&self.timer, self.start + next.min(end_ns))?;
            self.poll.wait(&mut ready, -1)?;
            for &(token, events) in &ready {
                self.on_file(token, events)?;
            }
            let now_ns = sys::now() - self.start;
            while let Some(&Reverse((time_ns, event))) = self.events.peek()
                && time_ns <= now_ns
            {
                self.events.pop();
                self.on_event(time_ns, event)?;
                if event == Event::Sample {
                    progress(time_ns as u64);
                }
            }
            if now_ns >= end_ns {
                return Ok(());
            }
        }
    }

    fn on_file(&mut self, token: u64, events: i32) -> Result<(), Fault> {
        let index = (token >> KIND_BITS) as usize;
        match token & ((1 << KIND_BITS) - 1) {
            LISTENER => {
                let watched = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
                if let Some(accepted) = self.flows[index].accept() {
                    self.poll.add(accepted, watched, self::token(ACCEPTED, index))?;
                    self.take(index)?;
                }
            }
            // Each side writes when its own socket has room: events of the other say nothing of it.
            kind @ (FLOW | ACCEPTED) => {
                if events & libc::EPOLLOUT != 0 {
                    self.flows[index].pump(if kind == FLOW { CLIENT } else { SERVER });
                }
                if events & libc::EPOLLIN != 0 {
                    self.take(index)?;
                }
            }
            PROBE => self.pingers[index].record(&mut self.tables.probes),
            TAP => self.drain()?,
            _ => {} // the timer: events are looked at in any case
        }
        Ok(())
    }

    fn take(&mut self, index: usize) -> Result<(), Fault> {
        let now_ns = sys::now() - self.start;
        if self.flows[index].take(now_ns)
            && let Application::RequestResponse { think_ns, .. } =
                self.scenario.flows[index].application
        {
            self.at(now_ns + think_ns as i64, Event::Ask(index));
        }
        Ok(())
    }

    fn on_event(&mut self, time_ns: i64, event: Event) -> Result<(), Fault> {
        match event {
            Event::Sample => {
                self.sample(time_ns)?;
                self.at(time_ns + self.scenario.record.interval_ns as i64, Event::Sample);
            }
            Event::Start(index) => self.start_flow(index, time_ns)?,
            Event::Stop(index) => {
                self.drain()?;
                self.flows[index].stop(time_ns, &mut self.tables)?;
            }
            Event::Toggle(index) => {
                let flow = &mut self.flows[index];
                if let (Application::OnOff { on_ns, off_ns }, Phase::Busy | Phase::Quiet) =
                    (&flow.spec.application, flow.phase)
                {
                    flow.toggle();
                    let lasts = if flow.phase == Phase::Busy { *on_ns } else { *off_ns };
                    self.at(time_ns + lasts as i64, Event::Toggle(index));
                }
            }
            Event::Ask(index) => {
                if self.flows[index].phase == Phase::Quiet {
                    self.flows[index].ask_again();
                }
            }
            Event::Datagram(index) => self.datagram(index, time_ns),
            Event::Ping(index) => {
                let spec = &self.scenario.probes[index];
                let row = probe::row(&mut self.tables.probes, time_ns, &spec.label, &spec.target);
                self.pingers[index].send(row);
                self.at(time_ns + spec.interval_ns as i64, Event::Ping(index));
            }
        }
        Ok(())
    }

    fn start_flow(&mut self, index: usize, time_ns: i64) -> Result<(), Fault> {
        sys::enter(&self.network.places[self.flows[index].sender].namespace)?;
        let flow = &mut self.flows[index];
        let tcp = flow.is_tcp();
        let socket = flow.start()?;
        if tcp {
            let watched = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
            self.poll.add(socket, watched, token(FLOW, index))?;
        }
        match self.scenario.flows[index].application {
            Application::OnOff { on_ns, .. } => {
                self.at(time_ns + on_ns as i64, Event::Toggle(index))
            }
            Application::ConstantRate { .. } => self.datagram(index, time_ns),
            Application::Bulk { .. }
            | Application::RequestResponse { .. }
            | Application::Tunnel { .. } => {}
        }
        Ok(())
    }

    fn datagram(&mut self, index: usize, time_ns: i64) {
        let flow = &mut self.flows[index];
        if let (Application::ConstantRate { rate_bps, datagram_bytes }, Phase::Busy) =
            (&flow.spec.application, flow.phase)
        {
            flow.datagram(*datagram_bytes);
            let bits = u128::from(*datagram_bytes) * 8 * 1_000_000_000;
            let gap = (bits / u128::from((*rate_bps).max(1))) as i64;
            self.at(time_ns + gap, Event::Datagram(index));
        }
    }

    fn drain(&mut self) -> Result<(), Fault> {
        let Self { taps, flows, tables, scenario, start, .. } = self;
        for (host, tap) in taps {
            tap.drain(|seen| {
                let Some(index) = flows.iter().position(|flow| flow.owns(seen)) else { return };
                let flow = &mut flows[index];
                let sends = flow.data_sender() == *host;
                if sends
                    && let Some((time_ns, rtt_ns)) = flow.at_sender(seen, *start)
                    && scenario.record.rtts
                {
                    tables.rtts.push(RttRow { time_ns, flow: index as u32, rtt_ns });
                }
                if !sends || flow.sender == flow.receiver {
                    flow.at_receiver(seen);
                }
            })?;
        }
        if scenario.record.every_ack {
            for (index, flow) in flows.iter_mut().enumerate() {
                flow.record_ack(index, &scenario.record, tables)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, time_ns: i64) -> Result<(), Fault> {
        self.drain()?;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.record(index, time_ns, &self.scenario.record, &mut self.tables)?;
        }
        let watched: Vec<usize> = self.before.keys().copied().collect();
        for hop in watched {
            let now = self.counters(hop)?;
            let before = &self.before[&hop];
            let name = self.plan.hops[hop].watched.as_deref().unwrap_or_default();
            let enqueued = now.sent + now.backlog_packets - before.sent - before.backlog_packets;
            let table = &mut self.tables.queues;
            let row = QueueRow {
                time_ns,
                link: table.link.word(name),
                backlog_bytes: now.backlog_bytes as i64,
                backlog_packets: now.backlog_packets as i64,
                enqueued: enqueued as i64,
                dropped: (now.dropped - before.dropped) as i64,
                marked: (now.marked - before.marked) as i64,
            };
            table.push(row);
        }
        Ok(())
    }

    /// The last rows; gives which flows have ECN.
    fn finish(&mut self) -> Result<Value, Fault> {
        self.drain()?;
        for pinger in &mut self.pingers {
            pinger.record(&mut self.tables.probes);
        }
        let mut senders: BTreeMap<usize, usize> = BTreeMap::new();
        for flow in self.flows.iter().filter(|flow| flow.is_tcp()) {
            *senders.entry(flow.data_sender()).or_default() += 1;
        }
        let end_ns = self.scenario.duration_ns as i64;
        for index in 0..self.flows.len() {
            let host = self.flows[index].data_sender();
            let own = self.flows[index].is_tcp() && senders.get(&host) == Some(&1);
            let counted = own.then(|| self.counted(host)).transpose()?;
            self.flows[index].finish(index, end_ns, counted.as_ref(), &mut self.tables)?;
        }
        self.check_ecn()
    }

    /// What a host's TCP has counted since the start; what never happened is left out.
    fn counted(&self, host: usize) -> Result<Counts, Fault> {
        sys::enter(&self.network.places[host].namespace)?;
        let mut now = counts();
        for (name, before) in self.counted_before.get(&host).into_iter().flatten() {
            now.entry(name.clone()).and_modify(|count| *count = count.saturating_sub(*before));
        }
        now.retain(|_, count| *count > 0);
        Ok(now)
    }

    /// The same of every host with a TCP flow, by its name.
    fn counters_of_hosts(&self) -> Result<BTreeMap<&'a str, Counts>, Fault> {
        let hosts = self.counted_before.keys();
        hosts.map(|&host| Ok((self.plan.nodes[host].name.as_str(), self.counted(host)?))).collect()
    }

    /// Which TCP flows have ECN; a fault if the hosts' settings imply something else.
    fn check_ecn(&self) -> Result<Value, Fault> {
        let setting = |host: usize| {
            let own = self.plan.nodes[host].sysctl.get("net.ipv4.tcp_ecn");
            own.map_or("2", |value| value.trim())
        };
        let mut found = serde_json::Map::new();
        for flow in self.flows.iter().filter(|flow| flow.connected()) {
            let wanted = setting(flow.sender) == "1" && setting(flow.receiver) != "0";
            if flow.has_ecn() != wanted {
                let is = if flow.has_ecn() { "was" } else { "was not" };
                return fault(format!("flow {}: ECN {is} negotiated", flow.spec.label));
            }
            found.insert(flow.spec.label.clone(), wanted.into());
        }
        Ok(Value::Object(found))
    }
}

/// TCP's counters by name (netstat -s).
pub type Counts = BTreeMap<String, u64>;

/// Those of this namespace so far.
fn counts() -> Counts {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Counts::new() };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Idle and all ticks of the processor.
fn cpu_ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (numbers.get(3).copied().unwrap_or_default(), numbers.iter().sum())
}

fn idle_share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1).max(1);
    (after.0.saturating_sub(before.0)) as f64 / all as f64
}
