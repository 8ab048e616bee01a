//! The conductor of a lab: looks at every host before it changes any, lays the scenario out on them, believes the path
//! when it is as asked, has all begin at one moment, and makes one recording of what they saw.

use super::change::Change;
use super::findings::{Clock, Finding, clock, examine};
use super::hosts::{Agent, Host, Lab, Remote};
use super::place::{Placement, place};
use super::words::{Applied, Apply, Ask, Facts, Open, Played, Route};
use super::{frames::Frame, merge};
use crate::conductor::{Ends, PINGS_WAIT_NS, SETTLE_NS, serialisation_ns};
use crate::fault::{Fault, fault, refusal};
use crate::kernel::Kernel;
use crate::machine;
use crate::side::{Notice, Order, Report};
use crate::{plan, record, sys};
use dragstrip_qdisc::KINDS;
use dragstrip_recording::Recording;
use dragstrip_scenario::{Scenario, Transport};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All begin so long after the last one was told, and three round trips.
const START_NS: i64 = 1_000_000_000;

/// A request about a lab.
#[derive(Deserialize)]
pub struct Request {
    lab: Lab,
    what: What,
    scenario: Option<Scenario>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum What {
    /// Look at every host, and change nothing.
    Check,
    /// Undo what was left behind.
    Clean,
    Run,
}

/// Does what is asked; `progress` gets how far a run has come.
pub fn conduct(request: &Request, progress: &dyn Fn(u64)) -> Result<Vec<u8>, Fault> {
    let Request { lab, what, scenario } = request;
    let agent = Agent::own()?;
    match (what, scenario) {
        (What::Check, scenario) => check(lab, scenario.as_ref(), &agent),
        (What::Clean, _) => clean(lab, &agent),
        (What::Run, Some(scenario)) => run(lab, scenario, &agent, progress),
        (What::Run, None) => fault("there is no scenario"),
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// The same for all, each on a thread of its own.
fn each<I: Sync, T: Send>(all: &[I], one: impl Fn(&I) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = all.iter().map(|item| scope.spawn(move || one(item))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn connect(lab: &Lab, hosts: &[&Host], agent: &Agent) -> Result<Vec<Remote>, Fault> {
    each(hosts, |host| Remote::connect(lab, host, agent)).into_iter().collect()
}

fn look(remote: &Remote, host: &Host) -> Result<Facts, Fault> {
    let interfaces = host.interfaces.iter().map(|cable| cable.name.clone()).collect();
    remote.ask(&Ask::Facts { interfaces, connection: remote.connection })
}

fn check(lab: &Lab, scenario: Option<&Scenario>, agent: &Agent) -> Result<Vec<u8>, Fault> {
    let reached = each(&lab.hosts, |host| {
        let remote = Remote::connect(lab, host, agent)?;
        let facts = look(&remote, host)?;
        let clock = clock(&remote)?;
        Ok::<_, Fault>((facts, clock))
    });
    let mut findings = Vec::new();
    let mut kernels = BTreeMap::new();
    let mut hosts = serde_json::Map::new();
    for (host, reached) in lab.hosts.iter().zip(reached) {
        match reached {
            Ok((facts, clock)) => {
                findings.extend(examine(lab, host, &facts, clock));
                kernels.insert(host.name.clone(), kernel(&facts));
                let about = json!({"facts": facts, "clock": clock});
                hosts.insert(host.name.clone(), about);
            }
            Err(fault) => findings.push(Finding {
                host: host.name.clone(),
                what: "reached".to_owned(),
                found: fault.to_string(),
                ok: false,
                expected: String::new(),
                refused: false,
            }),
        }
    }
    if let Some(scenario) = scenario {
        let placed = place(scenario, lab, &kernels);
        findings.push(Finding {
            host: String::new(),
            what: format!("scenario {}", scenario.name),
            found: placed.as_ref().err().map_or_else(|| "can run".to_owned(), ToString::to_string),
            ok: placed.is_ok(),
            expected: String::new(),
            refused: true,
        });
    }
    Ok(line(&json!({"findings": findings, "hosts": hosts})))
}

fn clean(lab: &Lab, agent: &Agent) -> Result<Vec<u8>, Fault> {
    let all = each(&lab.hosts, |host| {
        let undone = Remote::connect(lab, host, agent)
            .and_then(|remote| remote.ask::<Vec<Change>>(&Ask::Clean));
        match undone {
            Ok(undone) => json!({"host": host.name, "undone": undone}),
            Err(fault) => json!({"host": host.name, "failed": fault.to_string()}),
        }
    });
    Ok(line(&json!({"hosts": all})))
}

fn kernel(facts: &Facts) -> Kernel {
    let lacks = KINDS.iter().map(|kind| kind.name);
    let lacks = lacks.filter(|kind| facts.lacks.iter().any(|lacking| lacking == kind)).collect();
    Kernel { tick_hz: facts.tick_hz, lacks }
}

/// What a thread that panicked has left is as good as what the others leave.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run's hosts.
struct Stage<'l> {
    lab: &'l Lab,
    remotes: Vec<Remote>,
    facts: BTreeMap<String, Facts>,
    placement: Placement,
}

fn run(
    lab: &Lab,
    scenario: &Scenario,
    agent: &Agent,
    progress: &dyn Fn(u64),
) -> Result<Vec<u8>, Fault> {
    let stage = Stage::prepare(lab, scenario, agent)?;
    let outcome = stage.apply_and_play(scenario, progress);
    let reverted = each(&stage.remotes, |remote| remote.ask::<Vec<Change>>(&Ask::Revert));
    let answer = outcome?;
    reverted.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answer)
}

impl<'l> Stage<'l> {
    /// Looks at all hosts that the scenario needs, and lays it out; nothing is changed but what an earlier run left.
    fn prepare(lab: &'l Lab, scenario: &Scenario, agent: &Agent) -> Result<Self, Fault> {
        let nodes = scenario.nodes.iter().map(|node| node.name());
        let homes: BTreeSet<&str> =
            nodes.map(|node| lab.nodes.get(node).map_or(node, String::as_str)).collect();
        let hosts: Vec<&Host> =
            lab.hosts.iter().filter(|host| homes.contains(host.name.as_str())).collect();
        // What is wrong with the files is said before anybody is asked.
        place(scenario, lab, &BTreeMap::new())?;
        machine::refuse_options(scenario)?;
        let remotes = connect(lab, &hosts, agent)?;
        let pairs: Vec<(&Remote, &&Host)> = remotes.iter().zip(&hosts).collect();
        let found = each(&pairs, |(remote, host)| {
            let facts = look(remote, host)?;
            if facts.holder.as_ref().is_some_and(|holder| !holder.alive) {
                remote.ask::<Vec<Change>>(&Ask::Clean)?;
                return look(remote, host);
            }
            Ok(facts)
        });
        let found = found.into_iter().collect::<Result<Vec<Facts>, Fault>>()?;
        let nothing = Clock { offset_ns: 0, error_ns: 0, round_trip_ns: 0 };
        for (host, facts) in hosts.iter().zip(&found) {
            let wrong = examine(lab, host, facts, nothing).into_iter().find(|finding| !finding.ok);
            if let Some(Finding { host, what, found, expected, refused, .. }) = wrong {
                let field = format!("host {host}: {what}");
                return if refused {
                    refusal(field, found, expected)
                } else {
                    fault(format!("{field}: {found}, expected {expected}"))
                };
            }
        }
        let facts: BTreeMap<String, Facts> =
            hosts.iter().map(|host| host.name.clone()).zip(found).collect();
        let kernels = facts.iter().map(|(name, facts)| (name.clone(), kernel(facts))).collect();
        let placement = place(scenario, lab, &kernels)?;
        let stage = Self { lab, remotes, facts, placement };
        stage.check_algorithms(scenario)?;
        stage.check_routes()?;
        Ok(stage)
    }

    fn remote(&self, host: &str) -> Result<&Remote, Fault> {
        let found = self.remotes.iter().find(|remote| remote.name == host);
        found.map_or_else(|| fault(format!("host {host} is not connected")), Ok)
    }

    /// The line to the host of a node.
    fn remote_of(&self, node: usize) -> Result<&Remote, Fault> {
        self.remote(self.placement.host_of(node).unwrap_or_default())
    }

    /// Every congestion control must be in the kernels of both ends.
    fn check_algorithms(&self, scenario: &Scenario) -> Result<(), Fault> {
        let plan = self.placement.plan();
        for flow in &scenario.flows {
            let Transport::Tcp { cc, .. } = &flow.transport else { continue };
            for end in [&flow.sender, &flow.receiver] {
                let host = self.placement.host_of(plan.node(end)?).unwrap_or_default();
                let known = self.facts.get(host).map(|facts| facts.algorithms.as_slice());
                let known = known.unwrap_or_default();
                if !known.contains(&sys::in_kernel(cc)) {
                    let expected =
                        format!("one that the kernel of host {host} has: {}", known.join(" "));
                    return refusal(format!("flow {}: cc", flow.label), cc, expected);
                }
            }
        }
        Ok(())
    }

    /// Packets must take the lab's cables, host by host, and routers must forward.
    fn check_routes(&self) -> Result<(), Fault> {
        for (name, part) in &self.placement.parts {
            if part.forwards && !self.facts.get(name).is_some_and(|facts| facts.forwards) {
                return fault(format!(
                    "host {name}: forwards no packets: sysctl -w net.ipv4.ip_forward=1"
                ));
            }
            let targets = part.ways.iter().map(|(target, ..)| *target).collect();
            let routes: Vec<Route> = self.remote(name)?.ask(&Ask::Routes { targets })?;
            for (target, interface, gateway) in &part.ways {
                let found = routes.iter().find(|route| route.target == *target);
                if found.is_some_and(|r| r.interface == *interface && r.gateway == *gateway) {
                    continue;
                }
                let told = |interface: &str, gateway: Option<Ipv4Addr>| {
                    let via = gateway.map_or_else(String::new, |gateway| format!("via {gateway} "));
                    format!("{via}dev {interface}")
                };
                let is = found.map_or_else(
                    || "is missing".to_owned(),
                    |r| format!("goes {}", told(&r.interface, r.gateway)),
                );
                return fault(format!(
                    "host {name}: route to {target}: {is}, expected {way}: ip route add {target} {way}",
                    way = told(interface, *gateway)
                ));
            }
        }
        Ok(())
    }

    fn apply_and_play(
        &self,
        scenario: &Scenario,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<u8>, Fault> {
        let bare = self.round_trips(scenario, None)?;
        let applied = self.apply()?;
        std::thread::sleep(Duration::from_nanos(SETTLE_NS as u64));
        let idle = self.round_trips(scenario, Some(&bare))?;
        let clocks = self.clocks()?;
        self.open(scenario)?;
        let longest = clocks.values().map(|clock| clock.round_trip_ns).max().unwrap_or_default();
        let start = sys::now() + START_NS + 3 * longest;
        let (recording, played) = self.go(scenario, start, &clocks, progress)?;
        let later = self.clocks()?;
        self.finish(scenario, recording, &played, |about| {
            let path = applied.iter().flat_map(|(host, applied)| {
                applied.verified.iter().map(move |line| format!("{host}: {line}"))
            });
            about["path"] = path.chain(self.placement.cables.iter().cloned()).collect();
            about["bare_rtt_ns"] = json!(bare);
            about["idle_rtt_ns"] = json!(idle);
            let hosts = self.facts.iter().map(|(name, facts)| {
                let drift_ns = later[name].offset_ns - clocks[name].offset_ns;
                let about = json!({
                    "kernel": facts.kernel, "tick_hz": facts.tick_hz, "agent": facts.agent,
                    "clock": clocks[name], "clock_drift_ns": drift_ns,
                    "changes": applied.get(name).map(|applied| applied.changes),
                });
                (name.clone(), about)
            });
            about["hosts"] = Value::Object(hosts.collect());
            let apart = clocks.values().map(|clock| clock.error_ns).max().unwrap_or_default();
            about["start_error_ns"] = (2 * apart).into();
        })
    }

    /// The idle round trip of each flow's path; held against the bare lab's and the delays that were set, if that is
    /// known.
    fn round_trips(
        &self,
        scenario: &Scenario,
        bare: Option<&BTreeMap<String, i64>>,
    ) -> Result<BTreeMap<String, i64>, Fault> {
        let plan = self.placement.plan();
        let mut measured = BTreeMap::new();
        for flow in &scenario.flows {
            let (from, to) = (plan.node(&flow.sender)?, plan.node(&flow.receiver)?);
            let name = format!("{} to {}", flow.sender, flow.receiver);
            if measured.contains_key(&name) {
                continue;
            }
            let (set, constant) = self.placement.delay_ns(scenario, from, to);
            let set = if bare.is_some() { set as i64 } else { 0 };
            let before = bare.and_then(|bare| bare.get(&name)).copied();
            let most = before.map_or(i64::MAX, |before| {
                before + set + set / 50 + 1_000_000 + serialisation_ns(scenario)
            });
            let (source, target) = (plan.nodes[from].address, plan.nodes[to].address);
            let wait_ns = 2 * set + PINGS_WAIT_NS + serialisation_ns(scenario);
            let enough_ns = if bare.is_some() && constant { most } else { 0 };
            let ask = Ask::Ping { source, target, wait_ns, enough_ns };
            let Some(rtt) = self.remote_of(from)?.ask::<Option<i64>>(&ask)? else {
                return fault(self.unanswered(&name, from, to)?);
            };
            if before.is_some() && constant && !(set..=most).contains(&rtt) {
                let before = before.unwrap_or_default();
                return fault(format!(
                    "{name}: the idle round trip takes {rtt} ns, expected {set} to {most} ns: {before} ns without \
                     what was set"
                ));
            }
            measured.insert(name, rtt);
        }
        Ok(measured)
    }

    /// Why pings are not answered, as far as routers can be asked.
    fn unanswered(&self, name: &str, from: usize, to: usize) -> Result<String, Fault> {
        let plan = self.placement.plan();
        let (source, target) = (plan.nodes[from].address, plan.nodes[to].address);
        for (host, part) in self.placement.parts.iter().filter(|(_, part)| part.forwards) {
            let Some(&router) = part.nodes.first() else { continue };
            let own = plan.nodes[router].address;
            let ask = |source, target| Ask::Ping {
                source,
                target,
                wait_ns: PINGS_WAIT_NS,
                enough_ns: i64::MAX,
            };
            let near: Option<i64> = self.remote_of(from)?.ask(&ask(source, own))?;
            let ends = self.lab.hosts.iter().find(|lab_host| lab_host.name == *host);
            let next = part.ways.iter().find(|(known, ..)| *known == target);
            let out = ends.zip(next).and_then(|(ends, (_, interface, _))| {
                ends.interfaces.iter().find(|cable| cable.name == *interface)
            });
            let far: Option<i64> = match out {
                Some(cable) => self.remote(host)?.ask(&ask(cable.address, target))?,
                None => None,
            };
            if near.is_some() && far.is_some() {
                return Ok(format!(
                    "host {host}: forwards nothing from {source} to {target}, though it reaches both and ip_forward is 1: \
                     is its FORWARD policy DROP (docker sets it)?"
                ));
            }
        }
        Ok(format!("{name}: pings from {source} to {target} are not answered"))
    }

    fn apply(&self) -> Result<BTreeMap<String, Applied>, Fault> {
        let applied = each(&self.remotes, |remote| {
            let part = &self.placement.parts[&remote.name];
            let apply = Apply {
                lab: self.lab.name.clone(),
                owner: self.lab.owner.clone(),
                connection: remote.connection,
                hold_ms: self.lab.revert_after_ns / 1_000_000,
                replace_qdisc: self.lab.allow.replace_qdisc,
                offloads: self.lab.allow.offloads,
                sysctls: part.sysctls.clone(),
                interfaces: part.interfaces.clone(),
                queues: part.queues.clone(),
            };
            remote.ask::<Applied>(&Ask::Apply(apply)).map(|done| (remote.name.clone(), done))
        });
        applied.into_iter().collect()
    }

    fn clocks(&self) -> Result<BTreeMap<String, Clock>, Fault> {
        // One after the other: together they would make each other wait.
        self.remotes.iter().map(|remote| Ok((remote.name.clone(), clock(remote)?))).collect()
    }

    fn open(&self, scenario: &Scenario) -> Result<(), Fault> {
        let opened = each(&self.remotes, |remote| {
            let open = Open {
                scenario: scenario.clone(),
                plan: self.placement.plan_of(&remote.name),
                nodes: self.placement.parts[&remote.name].nodes.clone(),
            };
            remote.ask::<bool>(&Ask::Open(Box::new(open))).map(drop)
        });
        opened.into_iter().collect()
    }

    /// The run: what one host has seen is carried to the others, until all have answered.
    fn go(
        &self,
        scenario: &Scenario,
        start: i64,
        clocks: &BTreeMap<String, Clock>,
        progress: &dyn Fn(u64),
    ) -> Result<(Recording, Vec<Played>), Fault> {
        for remote in &self.remotes {
            remote.put(&Ask::Go { start: start + clocks[&remote.name].offset_ns })?;
        }
        let now_ns = AtomicU64::new(0);
        let left = AtomicUsize::new(self.remotes.len());
        let (answers, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
        std::thread::scope(|scope| {
            for remote in &self.remotes {
                let (now_ns, left, answers, failed) = (&now_ns, &left, &answers, &failed);
                scope.spawn(move || {
                    match self.listen(remote, now_ns) {
                        Ok(frame) => locked(answers).push(frame),
                        Err(fault) => {
                            // The first one is told; the others have nothing to wait for any more.
                            locked(failed).get_or_insert(fault);
                            self.remotes.iter().for_each(Remote::cut);
                        }
                    }
                    left.fetch_sub(1, Ordering::Relaxed);
                });
            }
            while left.load(Ordering::Relaxed) > 0 {
                progress(now_ns.load(Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        if let Some(fault) = locked(&failed).take() {
            return Err(fault);
        }
        let mut whole = Recording::default();
        let mut all = Vec::new();
        for frame in locked(&answers).drain(..) {
            let (head, raw): (merge::Head, &[u8]) = frame.outcome()?;
            merge::append(&mut whole, merge::recording(&head, raw, scenario.flows.len())?);
            all.push(head.run);
        }
        Ok((whole, all))
    }

    /// Hears one host to its answer, or its fault.
    fn listen(&self, remote: &Remote, now_ns: &AtomicU64) -> Result<Frame, Fault> {
        loop {
            let frame = remote.next()?;
            match frame.kind {
                b'p' => drop(now_ns.fetch_max(frame.parsed::<u64>()?.0, Ordering::Relaxed)),
                b'n' => {
                    let Notice::Arrived { flow, at_ns } = frame.parsed()?.0;
                    for other in self.remotes.iter().filter(|other| other.name != remote.name) {
                        other.order(Order::Arrived { flow, at_ns })?;
                    }
                }
                b'a' => return Ok(frame),
                _ => {
                    return frame
                        .outcome::<Value>()
                        .map(|_| Frame { kind: b'a', content: Vec::new() });
                }
            }
        }
    }

    /// The recording of all, and what is known of the run.
    fn finish(
        &self,
        scenario: &Scenario,
        mut recording: Recording,
        played: &[Played],
        add: impl FnOnce(&mut Value),
    ) -> Result<Vec<u8>, Fault> {
        let plan = self.placement.plan();
        let mut reports: BTreeMap<usize, Report> = BTreeMap::new();
        for (node, report) in played.iter().flat_map(|played| &played.reports) {
            reports.insert(*node, report.clone());
        }
        self.uncount_shared(scenario, &plan, &mut reports)?;
        let mut rows = dragstrip_recording::Writer::default();
        let ends = Ends::of(scenario, &plan, &reports)?;
        ends.record(scenario, &reports, &mut rows);
        merge::append(&mut recording, rows.finish());
        record::in_order(&mut recording);
        let kernels: BTreeSet<&str> = self.facts.values().map(|f| f.kernel.as_str()).collect();
        let least = |share: fn(&Played) -> f64| played.iter().map(share).fold(1.0, f64::min);
        let sum = |count: fn(&Played) -> u64| played.iter().map(count).sum::<u64>();
        let mut about = json!({
            "kernel": kernels.into_iter().collect::<Vec<_>>().join(", "),
            "ecn_negotiated": ends.check_ecn(scenario, &plan)?,
            "cpu_idle_share": least(|played| played.idle_share),
            "cpu_steal_share": played.iter().map(|p| p.steal_share).fold(0.0, f64::max),
            "softnet": {"dropped": sum(|p| p.dropped), "squeezed": sum(|p| p.squeezed)},
            "samples": {
                "taken": sum(|p| p.samples),
                "late": sum(|p| p.late),
                "worst_ns": played.iter().map(|p| p.worst_ns).max().unwrap_or_default().max(0),
            },
        });
        add(&mut about);
        Ok(record::answer(&recording, about, Vec::new()))
    }

    /// A host's counters are nobody's own where two of its nodes send.
    fn uncount_shared(
        &self,
        scenario: &Scenario,
        plan: &plan::Plan,
        reports: &mut BTreeMap<usize, Report>,
    ) -> Result<(), Fault> {
        let mut senders: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for name in plan::senders(scenario) {
            let node = plan.node(name)?;
            let host = self.placement.host_of(node).unwrap_or_default();
            senders.entry(host).or_default().insert(node);
        }
        for node in senders.values().filter(|nodes| nodes.len() > 1).flatten() {
            if let Some(report) = reports.get_mut(node) {
                report.counts = None;
            }
        }
        Ok(())
    }
}
