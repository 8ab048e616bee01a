//! The conductor of a run: builds the network and verifies it, runs the sides by one clock, and collects their
//! results.

use crate::checks::{self, Check, RoundTrips};
use crate::commands::flows::{FlowPrograms, Runner};
use crate::event_loop::{Alone, ELSEWHERE, Elsewhere, TIMER, drive};
use crate::fault::{Fault, fault};
use crate::forward::lines::{Carriers, Running};
use crate::kernel::{Kernel, Lines};
use crate::load::Load;
use crate::machine::{self, Grant, Part};
use crate::network::{self, Network, Place};
use crate::plan::Plan;
use crate::record;
use crate::side::{
    CaptureRequest, Counts, EndReport, Pinger, Report, Ring, Side, collect_captures,
};
use crate::sys::{self, Poll};
use dragstrip_recording::{FlowRow, Writer};
use dragstrip_scenario::{NodeSpec, Scenario, Transport};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Quiet time between building and measuring: the kernel brings links up in its own time.
pub const SETTLE_NS: i64 = 2_000_000_000;
/// Packets that fit into the rings of all hosts together, unless more may pass between two samples.
const RING_PACKETS: usize = 1 << 17;
/// The same at most: 195 MiB of the machine's memory.
const RING_PACKETS_MAX: usize = 1 << 20;
/// Packets that are taken out of a ring in one go, about: a tenth of a millisecond, in which no end of a flow is served.
const AT_ONCE: u128 = 64;
/// No emulated path is faster than this.
const RATE_BPS_MAX: u64 = 1_000_000_000;
/// A jump of the clock that packets are stamped with beyond this would be in the figures.
pub const CLOCK_STEP_NS: i64 = 1_000_000;
/// Pings on each idle path, at most.
pub const PINGS: usize = 10;
/// A ping's answer is waited for so long, and twice the delay.
pub const PINGS_WAIT_NS: i64 = 50_000_000;
/// The same behind a line in the simulator's code, as slow as a modem.
const LINE_WAIT_NS: i64 = 2_000_000_000;
/// Bytes on the wire of a ping whose round trip is not evaluated here.
const PING_FRAME_BYTES: u32 = 98;
/// The kernel's counters (netstat -s) that together count every loss epoch of a host.
const LOSS_EPOCHS: [&str; 3] = ["TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts"];

/// A request for a run.
#[derive(Deserialize)]
pub struct Request {
    scenario: Scenario,
    /// Programs whose bytes follow the request: the loader and what it loads; may be empty.
    load: Vec<Part>,
    /// Real time: probe streams verify the paths before the run.
    #[serde(default)]
    real_time: bool,
    /// Links that the simulator's code carries, if not the kernel's usual ones.
    #[serde(default)]
    lines: Option<Lines>,
    /// Packets are kept too.
    #[serde(default)]
    capture: Option<CaptureRequest>,
    /// Programs of flows.
    #[serde(default)]
    commands: Option<FlowPrograms>,
}

/// Runs a scenario; `raw` are the bytes after the request, `progress` receives the elapsed time (ns) and the bytes
/// that have arrived.
pub fn run(
    request: &Request,
    raw: &[u8],
    grant: Grant,
    kernel: &Kernel,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<u8>, Fault> {
    let Request { scenario, load, real_time, lines, capture, commands } = request;
    let (raw, files) = raw.split_at(load.iter().map(Part::bytes).sum::<usize>().min(raw.len()));
    let kernel = Kernel { lines: lines.unwrap_or(kernel.lines), ..kernel.clone() };
    let mut plan = Plan::new(scenario, &kernel)?;
    // In virtual time the kernel's own randomness is the seed's (machine/mod.rs).
    plan.seed = real_time.then_some(scenario.seed);
    let _held = machine::prepare(scenario, load, raw, grant)?;
    let is_whole = commands.is_some() && grant.whole();
    let machine = is_whole.then(network::own_namespace).transpose()?;
    let mut network = Network::build(&plan, scenario.cold_arp, grant.global_sysctls)?;
    let mut path_report = network.verify(&plan)?;
    path_report.extend(plan.cables.iter().cloned());
    let carriers = Carriers::open(&plan, &network, scenario)?;
    let idle_lines = carriers.as_ref().map(Carriers::start_idle).transpose()?;
    wait_until(sys::now() + SETTLE_NS)?;
    let (idle, mut checked) = idle_round_trips(scenario, &plan, &network, *real_time)?;
    if *real_time {
        checked.extend(self::checked(scenario, &plan, &mut network)?);
    } else {
        expect_in_time(&checked)?;
    }
    if scenario.cold_arp {
        network.forget_neighbours(&plan);
    }
    let poll = Poll::new()?;
    let at = (&plan, &network);
    let open = |commands| Runner::open(commands, files, scenario, at, machine.as_ref(), progress);
    let mut runner = commands.as_ref().map(open).transpose()?;
    let (mut sides, _relays) = open_sides(scenario, &plan, network, capture.as_ref(), &poll)?;
    let mut tables = Writer::default();
    let running_lines = carriers.as_ref().map(Carriers::start).transpose()?;
    idle_lines.map(Running::stop).transpose()?;
    let before = Load::now();
    let clock = sys::clock_offset();
    let start = sys::now() + 1_000_000;
    if let Some(running) = &running_lines {
        running.begin((start - clock) as u64);
    }
    let end_ns = scenario.duration_ns as i64;
    if let Some(runner) = &mut runner {
        poll.add(runner.poll(), libc::EPOLLIN, ELSEWHERE)?;
        runner.begin(start, end_ns)?;
    }
    let mut alone = Alone(progress);
    let elsewhere: &mut dyn Elsewhere =
        if let Some(runner) = &mut runner { runner } else { &mut alone };
    let lateness = drive(&mut sides, &poll, (start, end_ns), &mut tables, elsewhere)?;
    let (ended, programs) = runner.map(Runner::finish).transpose()?.unwrap_or_default();
    let load = before.until(Load::now());
    let step = sys::clock_offset() - clock;
    if step.abs() > CLOCK_STEP_NS {
        return fault(format!("the machine's clock was set by {step} ns in the middle of the run"));
    }
    let carried = running_lines.map(Running::stop).transpose()?;
    let mut reports = BTreeMap::new();
    for side in &mut sides {
        reports.insert(side.node(), side.finish(scenario.duration_ns as i64, &mut tables)?);
    }
    let captured = collect_captures(&mut sides, scenario.duration_ns, capture.as_ref())?;
    let ends = Ends::of(scenario, &plan, &reports)?;
    ends.record(scenario, &reports, &ended, &mut tables);
    let netstat_by_node = reports.iter().filter_map(|(node, report)| {
        Some((plan.nodes[*node].name.as_str(), report.counts.as_ref()?))
    });
    let mut about = json!({
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "path": path_report,
        "idle_rtt_ns": idle,
        "ecn_negotiated": ends.check_ecn(scenario, &plan)?,
        "netstat": netstat_by_node.collect::<BTreeMap<_, _>>(),
        "cpu_idle_share": load.idle_share,
        "cpu_steal_share": load.steal_share,
        "softnet": {"dropped": load.dropped, "squeezed": load.squeezed},
        "samples": {"taken": lateness.samples, "late": lateness.late, "worst_ns": lateness.worst_ns},
    });
    if commands.is_some() {
        about["programs"] = programs_about(programs, scenario, &reports).into();
    }
    if *real_time {
        about["checks"] = json!(checked);
        about["scheduling"] = if sys::has_raised_priority() { "ahead" } else { "shared" }.into();
    }
    if scenario.record.every_ack {
        let senders =
            reports.values().flat_map(|report| &report.ends).filter_map(|end| end.sent.as_ref());
        let together: u64 = senders.map(|sender| sender.acks_together).sum();
        about["acks_sampled_with_a_later_one"] = together.into();
    }
    if let Some((carriers, carried)) = carriers.as_ref().zip(carried) {
        about["lines"] = carriers.record(&carried, &mut tables.queues).into();
    }
    let mut recording = tables.finish();
    record::in_order(&mut recording);
    if carriers.is_some() {
        record::queues_in_order(&mut recording);
    }
    Ok(record::answer(&recording, about, &captured))
}

/// Entries of programs, with the bytes of their packets on the wire at the client's host.
fn programs_about(
    mut entries: Vec<Value>,
    scenario: &Scenario,
    reports: &BTreeMap<usize, Report>,
) -> Vec<Value> {
    for entry in &mut entries {
        let flow = scenario.flows.iter().position(|flow| entry["flow"] == flow.label.as_str());
        let mut ends = reports.values().flat_map(|report| &report.ends);
        if let Some(end) =
            ends.find(|end| Some(end.flow) == flow && end.client_wire_bytes.is_some())
        {
            entry["client_wire_bytes"] = end.client_wire_bytes.into();
        }
    }
    entries
}

/// Waits until a time of this machine's clock.
pub fn wait_until(time: i64) -> Result<(), Fault> {
    let (poll, timer) = (Poll::new()?, sys::timer()?);
    poll.add(&timer, libc::EPOLLIN, TIMER)?;
    sys::arm(&timer, time)?;
    let mut ready = Vec::new();
    while sys::now() < time {
        poll.wait(&mut ready, 1_000)?;
    }
    Ok(())
}

/// Results of the probe streams; their queues are reset afterwards.
fn checked(scenario: &Scenario, plan: &Plan, network: &mut Network) -> Result<Vec<Check>, Fault> {
    let check_results = checks::run(scenario, plan, network)?;
    network.renew_queues(plan)?;
    network.verify(plan)?;
    Ok(check_results)
}

/// Pings along every flow's path while nothing else moves; a fault if one is back too soon. One that is late has met a
/// delay that is not the scenario's, or in real time a machine that is slow: there half of the pings have to be in time.
pub fn idle_round_trips(
    scenario: &Scenario,
    plan: &Plan,
    network: &Network,
    real_time: bool,
) -> Result<(Value, Vec<Check>), Fault> {
    let (mut measured, mut checks) = (Map::new(), Vec::new());
    for flow in &scenario.flows {
        let (from, to) = (plan.node(&flow.sender)?, plan.node(&flow.receiver)?);
        let name = format!("{} to {}", flow.sender, flow.receiver);
        if measured.contains_key(&name) {
            continue;
        }
        let ((forward, constant), (back, constant_back)) =
            (plan.delay_ns(from, to), plan.delay_ns(to, from));
        let delay_ns = (forward + back) as i64;
        network.places[from].enter()?;
        let mut pinger = Pinger::open(0xffff, plan.nodes[to].address, 64)?;
        let slots = (plan.slots_ns(from, to) + plan.slots_ns(to, from)) as i64;
        let slack = RoundTrips::slack_ns(delay_ns, serialisation_ns(scenario)) + slots;
        let mut answers = Vec::new();
        // A slow line's answer is waited for longer, and no longer than for it.
        let has_line = plan.has_line(from, to) || plan.has_line(to, from);
        let wait_ns = if has_line { LINE_WAIT_NS } else { PINGS_WAIT_NS };
        for _ in 0..PINGS {
            pinger.send(0);
            let until = sys::now() + 2 * delay_ns + wait_ns;
            let rtt = answer_until(&mut pinger, until, has_line)?;
            answers.extend(rtt);
            // The first one may have waited for neighbours to be found.
            let enough =
                rtt.is_some_and(|rtt| rtt <= delay_ns + slack) && constant && constant_back;
            if enough && !real_time {
                break;
            }
        }
        let Some(RoundTrips { best_ns: rtt, median_ns }) = RoundTrips::of(answers) else {
            if plan.may_drop(from, to) || plan.may_drop(to, from) {
                continue;
            }
            return fault(format!("{name}: {PINGS} pings on the idle path were not answered"));
        };
        if constant && constant_back {
            if rtt < delay_ns {
                return fault(format!(
                    "{name}: the idle round trip takes {rtt} ns, not {delay_ns} ns"
                ));
            }
            let usual = if real_time { median_ns } else { rtt };
            checks.push(Check::idle(&name, delay_ns, usual, [delay_ns, delay_ns + slack]));
        }
        measured.insert(name, rtt.into());
    }
    Ok((Value::Object(measured), checks))
}

/// In virtual time nothing may be late; a fault if a round trip is.
pub fn expect_in_time(checks: &[Check]) -> Result<(), Fault> {
    match checks.iter().find(|check| check.measured > check.most) {
        None => Ok(()),
        Some(Check { path, measured, asked, .. }) => {
            fault(format!("{path}: the idle round trip takes {measured} us, not {asked} us"))
        }
    }
}

/// The round trip of the last answer up to `time`, or of the first one if that is enough. Each answer is read at once: the kernel starts stamping packets
/// some time after the request to do so (net_enable_timestamp), and until then an answer's time is that of its
/// reading.
fn answer_until(pinger: &mut Pinger, time: i64, first: bool) -> Result<Option<i64>, Fault> {
    let (poll, timer) = (Poll::new()?, sys::timer()?);
    poll.add(&timer, libc::EPOLLIN, TIMER)?;
    poll.add(&pinger.socket, libc::EPOLLIN, TIMER + 1)?;
    sys::arm(&timer, time)?;
    let (mut ready, mut last) = (Vec::new(), None);
    while sys::now() < time && !(first && last.is_some()) {
        poll.wait(&mut ready, 1_000)?;
        last = pinger.answers().last().map(|(_, rtt)| *rtt).or(last);
    }
    Ok(last)
}

/// Serialisation time of a ping's 98 bytes on all transmitters together.
pub fn serialisation_ns(scenario: &Scenario) -> i64 {
    let rates = scenario.links.iter().filter_map(|link| link.rate_bps);
    rates.map(|bps| (200 * 8 * 1_000_000_000 / bps.max(1)) as i64).sum()
}

/// A side for each node that has something to do, and the namespaces of the others, which go with their last file.
pub fn open_sides<'a>(
    scenario: &'a Scenario,
    plan: &'a Plan,
    network: Network,
    capture: Option<&CaptureRequest>,
    poll: &Poll,
) -> Result<(Vec<Side<'a>>, Vec<Place>), Fault> {
    let Network { places, interfaces } = network;
    let tcp = scenario.flows.iter().filter(|flow| matches!(flow.transport, Transport::Tcp { .. }));
    let mut hosts: Vec<&str> =
        tcp.flat_map(|flow| [flow.sender.as_str(), flow.receiver.as_str()]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let rings = rings(scenario, &hosts)?;
    let flows = scenario.flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]);
    let end_hosts: Vec<&String> =
        flows.chain(scenario.probes.iter().map(|probe| &probe.from)).collect();
    let captures = |node: usize| {
        let near_end = |link: &str| {
            let hop = plan.hops.iter().position(|hop| hop.near_end_of.as_deref() == Some(link))?;
            (plan.hops[hop].from == node).then(|| interfaces[hop])
        };
        capture.map_or_else(Vec::new, |capture_request| {
            capture_request.at(&plan.nodes[node].name, near_end)
        })
    };
    let busy = |node: usize| {
        end_hosts.iter().any(|name| **name == plan.nodes[node].name)
            || plan.hops.iter().any(|hop| hop.from == node && hop.watched.is_some())
            || plan.steps.iter().any(|step| plan.hops[step.hop].from == node)
            || !captures(node).is_empty()
    };
    let mut sides: Vec<Side<'a>> = Vec::new();
    let mut idle_places = Vec::new();
    for (node, place) in places.into_iter().enumerate() {
        if busy(node) {
            let number = sides.len();
            let none = Ring { packets: 0, emptied_ns: scenario.record.interval_ns };
            let ring = rings.get(plan.nodes[node].name.as_str()).copied().unwrap_or(none);
            let at = (node, place);
            let mut side = Side::open(number, at, scenario, plan, &interfaces, ring, poll)?;
            if let Some(wanted) = capture {
                side.capture(wanted, &captures(node), &[])?;
            }
            sides.push(side);
        } else {
            idle_places.push(place);
        }
    }
    Ok((sides, idle_places))
}

/// Each host's ring: an equal share, and more where more may pass the host between two samples. Where memory does not
/// allow for that, it is emptied in between.
pub fn rings<'a>(
    scenario: &'a Scenario,
    hosts: &[&'a str],
) -> Result<BTreeMap<&'a str, Ring>, Fault> {
    let pairs = scenario.flows.iter().map(|flow| (flow.sender.as_str(), flow.receiver.as_str()));
    let paths = scenario.at_its_fastest().path_facts(pairs, PING_FRAME_BYTES);
    let paths = paths.map_err(|problem| Fault::Failed(problem.to_string()))?;
    let mtu = scenario.nodes.iter().filter_map(NodeSpec::host).map(|host| host.mtu_bytes).min();
    let share = RING_PACKETS / hosts.len().max(1);
    let interval_ns = scenario.record.interval_ns;
    let mut rings = BTreeMap::new();
    for &host in hosts {
        // Rates of the bottlenecks of its flows, each once regardless of the number of flows.
        let mut rates: BTreeMap<Option<&str>, u64> = BTreeMap::new();
        for (flow, path) in scenario.flows.iter().zip(&paths) {
            if flow.sender == host || flow.receiver == host {
                let rate = path.rate_bps.unwrap_or(RATE_BPS_MAX).min(RATE_BPS_MAX);
                rates.insert(path.bottleneck.as_deref(), rate);
            }
        }
        let rate = rates.values().sum::<u64>().min(RATE_BPS_MAX);
        let bits = u128::from(rate) * u128::from(interval_ns) / 1_000_000_000;
        let data = bits / 8 / u128::from(mtu.unwrap_or(1_500));
        // As many ACKs, and as much again for what a queue held back or a burst brings.
        let passing = usize::try_from(4 * data).unwrap_or(usize::MAX);
        let packets = share.max(passing).min(RING_PACKETS_MAX / hosts.len().max(1));
        let full = passing.div_ceil(packets.max(1)) as u128;
        // Every second segment is acknowledged.
        let times = full.max((data * 3 / 2).div_ceil(AT_ONCE)).max(1);
        rings.insert(host, Ring { packets, emptied_ns: (interval_ns / times as u64).max(1) });
    }
    Ok(rings)
}

/// Both ends of every flow, by the flow's number: the client's, the server's, and where the data are sent.
pub struct Ends<'r>(Vec<(&'r EndReport, &'r EndReport, usize)>);

impl<'r> Ends<'r> {
    pub fn of(
        scenario: &Scenario,
        plan: &Plan,
        reports: &'r BTreeMap<usize, Report>,
    ) -> Result<Self, Fault> {
        let mut flow_ends = Vec::new();
        for (flow, spec) in scenario.flows.iter().enumerate() {
            let (client, server) = (plan.node(&spec.sender)?, plan.node(&spec.receiver)?);
            let ends_at =
                |node: usize| reports[&node].ends.iter().filter(move |end| end.flow == flow);
            // Where both are on one host the client's comes first.
            // A program's packets are heard at its client's host alone, the flow's receiver.
            let first_end =
                ends_at(if spec.application.is_program() { server } else { client }).next();
            let (Some(client_end), Some(server_end)) = (first_end, ends_at(server).next_back())
            else {
                return fault(format!("flow {}: an end has not reported", spec.label));
            };
            let source = if server_end.sent.is_some() { server } else { client };
            flow_ends.push((client_end, server_end, source));
        }
        Ok(Self(flow_ends))
    }

    /// Writes a row of `flows` each. A host's counters give every recovery and timeout if no other flow shares it; the
    /// kernel does not count CWR (ECN), so samples are used for it.
    pub fn record(
        &self,
        scenario: &Scenario,
        reports: &BTreeMap<usize, Report>,
        ended: &BTreeMap<usize, i64>,
        tables: &mut Writer,
    ) {
        let mut senders: BTreeMap<usize, usize> = BTreeMap::new();
        for (one, other, source) in &self.0 {
            if one.sent.is_some() || other.sent.is_some() {
                *senders.entry(*source).or_default() += 1;
            }
        }
        for ((client, server, source), (flow, spec)) in
            self.0.iter().zip(scenario.flows.iter().enumerate())
        {
            let sender_stats = client.sent.as_ref().or(server.sent.as_ref());
            let alone = senders.get(source) == Some(&1);
            let counts =
                reports[source].counts.as_ref().filter(|_| alone && sender_stats.is_some());
            let count = |counts: &Counts, name| counts.get(name).copied().unwrap_or_default();
            let timeouts = match sender_stats {
                Some(_) => counts.map(|counts| count(counts, "TCPTimeouts") as i64),
                None => Some(0),
            };
            let tcp = sender_stats.cloned().unwrap_or_default();
            let reductions = counts.map_or(tcp.seen_reductions, |counts| {
                LOSS_EPOCHS.iter().map(|name| count(counts, name)).sum::<u64>() + tcp.seen_cwr
            });
            let datagrams_lost = client.datagrams.saturating_sub(server.datagrams) as i64;
            let cc = spec.transport.cc(false).unwrap_or_default();
            let received = client.received_bytes.or(server.received_bytes);
            let ended_ns = client.ended_ns.into_iter().chain(server.ended_ns).min();
            let ended_ns = ended_ns.or_else(|| ended.get(&flow).copied());
            let protocol = match sender_stats {
                _ if spec.application.is_program() => "program",
                Some(_) => "tcp",
                None => "udp",
            };
            let table = &mut tables.flows;
            let row = FlowRow {
                flow: flow as u32,
                label: table.label.word(&spec.label),
                protocol: table.protocol.word(protocol),
                cc: table.cc.word(cc),
                sender: table.sender.word(&spec.sender),
                receiver: table.receiver.word(&spec.receiver),
                start_ns: spec.start_ns as i64,
                stop_ns: ended_ns.unwrap_or(scenario.duration_ns as i64),
                bytes_acked: tcp.bytes_acked as i64,
                bytes_received: received.unwrap_or_default() as i64,
                segments_sent: if sender_stats.is_some() { tcp.segments } else { client.datagrams }
                    as i64,
                retransmits: tcp.retransmits as i64,
                rto_count: timeouts,
                reductions: reductions as i64,
                ecn_negotiated: tcp.ecn,
                datagrams_lost: (protocol == "udp").then_some(datagrams_lost),
            };
            table.push(row);
        }
    }

    /// Lists the TCP flows that negotiated ECN; a fault if the hosts' settings and the algorithm imply otherwise.
    pub fn check_ecn(&self, scenario: &Scenario, plan: &Plan) -> Result<Value, Fault> {
        let setting = |host: &str| -> Result<&str, Fault> {
            let tcp_ecn = plan.nodes[plan.node(host)?].sysctl.get("net.ipv4.tcp_ecn");
            Ok(tcp_ecn.map_or("2", |value| value.trim()))
        };
        let mut ecn_by_flow = Map::new();
        for ((client, server, _), spec) in self.0.iter().zip(&scenario.flows) {
            let Some(sender_stats) = client.sent.as_ref().or(server.sent.as_ref()) else {
                continue;
            };
            if sender_stats.segments == 0 {
                continue; // the connection has not come about
            }
            let (client, server) = (setting(&spec.sender)?, setting(&spec.receiver)?);
            let expected = has_ecn(client, server, &spec.transport);
            if sender_stats.ecn != expected {
                let is = if sender_stats.ecn { "was" } else { "was not" };
                return fault(format!("flow {}: ECN {is} negotiated", spec.label));
            }
            ecn_by_flow.insert(spec.label.clone(), expected.into());
        }
        Ok(Value::Object(ecn_by_flow))
    }
}

/// True when the ends of a flow agree on ECN with these `net.ipv4.tcp_ecn` settings (`tcp_ecn_send_syn`,
/// `tcp_ecn_create_request`): a SYN of an algorithm that needs ECN is itself ECN-capable, which only a listener with
/// such an algorithm grants, or accurate ECN.
fn has_ecn(client: &str, server: &str, transport: &Transport) -> bool {
    let (needs, grants) = (transport.needs_ecn(false), transport.needs_ecn(true));
    let asks = needs || matches!(client, "1" | "3" | "4");
    let accurate = client == "3" && matches!(server, "3" | "4" | "5");
    asks && (grants || accurate || server != "0" && !needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_negotiation_follows_the_settings_of_both_ends() {
        let of = |client, server, cc: &str, receiver_cc: &str| {
            let transport = json!({"protocol": "tcp", "cc": cc, "receiver_cc": receiver_cc});
            has_ecn(client, server, &serde_json::from_value(transport).unwrap())
        };
        for (client, server, expected) in [
            ("2", "2", false),
            ("1", "2", true),
            ("1", "0", false),
            ("0", "1", false),
            ("3", "2", true),
        ] {
            assert_eq!(of(client, server, "cubic", "cubic"), expected, "{client} {server}");
        }
        assert!(of("2", "2", "dctcp", "dctcp"));
        assert!(!of("1", "1", "dctcp", "cubic"), "the SYN is ECN-capable");
        assert!(of("3", "3", "dctcp", "cubic"), "accurate ECN");
        assert!(!of("2", "2", "cubic", "dctcp"), "nobody asks");
        assert!(of("1", "0", "cubic", "dctcp"));
    }

    /// One flow from each host to one receiver over 100 Mbit/s, sampled at this interval.
    fn scenario(flows: usize, interval_ns: u64) -> Scenario {
        let senders = || (0..flows).map(|number| format!("s{number}"));
        let host = |name: String| json!({"kind": "host", "name": name});
        let mut nodes: Vec<Value> = senders().map(host).collect();
        nodes.extend([host("d".to_owned()), json!({"kind": "router", "name": "r"})]);
        let link = |from: &str, to: &str, rate: Option<u64>| json!({"name": format!("{from}-{to}"), "from": from, "to": to, "rate_bps": rate});
        let mut links = vec![link("r", "d", Some(100_000_000)), link("d", "r", None)];
        links.extend(senders().flat_map(|name| [link(&name, "r", None), link("r", &name, None)]));
        let flow = |name: String| {
            json!({"label": name, "sender": name, "receiver": "d", "application": {"kind": "bulk"},
                "transport": {"protocol": "tcp", "cc": "reno"}})
        };
        let whole = json!({"name": "t", "duration_ns": 4_000_000_000_u64, "nodes": nodes,
            "links": links, "flows": senders().map(flow).collect::<Vec<_>>(),
            "record": {"interval_ns": interval_ns}});
        serde_json::from_value(whole).unwrap()
    }

    /// The rings, checked: they fit into the memory for them, and what may pass until one is emptied fits into it.
    fn checked(flows: usize, interval_ns: u64) -> BTreeMap<String, Ring> {
        let scenario = scenario(flows, interval_ns);
        let hosts: Vec<&str> =
            scenario.nodes.iter().filter_map(NodeSpec::host).map(|h| h.name.as_str()).collect();
        let rings = rings(&scenario, &hosts).unwrap();
        assert!(rings.values().map(|ring| ring.packets).sum::<usize>() <= RING_PACKETS_MAX);
        for ring in rings.values() {
            let passing = 100_000_000 / 8 / 1_500 * ring.emptied_ns / 1_000_000_000;
            assert!(
                2 * passing as usize <= ring.packets,
                "{ring:?}: {passing} packets and their ACKs"
            );
        }
        rings.into_iter().map(|(host, ring)| (host.to_owned(), ring)).collect()
    }

    #[test]
    fn a_ring_that_cannot_hold_an_interval_is_emptied_in_between() {
        for (flows, interval_ns) in
            [(50, 2_000_000_000), (100, 1_000_000_000), (253, 10_000_000_000)]
        {
            assert!(checked(flows, interval_ns)["d"].emptied_ns < interval_ns, "{flows} flows");
        }
    }

    #[test]
    fn a_fast_paths_rings_are_emptied_in_small_portions() {
        for flows in [1, 50] {
            let rings = checked(flows, 100_000_000);
            assert!(rings.values().all(|ring| ring.emptied_ns < 6_000_000), "{rings:?}");
        }
        assert_eq!(checked(1, 5_000_000)["d"].emptied_ns, 5_000_000, "with the samples alone");
    }
}
