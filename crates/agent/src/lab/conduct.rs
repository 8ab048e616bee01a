//! The conductor of a lab: probes every host before it changes any, lays the scenario out on them, verifies the path,
//! starts all hosts at one moment, and merges their data into one recording.

use super::change::Change;
use super::findings::{Clock, Finding, clock, examine};
use super::hosts::{Agent, Lab, Remote};
use super::messages::{Applied, Apply, Ask, Open, Played};
use super::placement::place;
use super::stage::{Stage, expect, in_parallel, kernel, look};
use super::{frames::Frame, merge};
use crate::checks::RoundTrips;
use crate::conductor::Ends;
use crate::fault::{Fault, fault};
use crate::machine::Part;
use crate::side::{CaptureRequest, Captured, Notice, Order, Report};
use crate::{plan, record, sys};
use dragstrip_recording::Recording;
use dragstrip_scenario::Scenario;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Delay of the common start after the last host was notified, in addition to three round trips.
const START_NS: i64 = 1_000_000_000;

/// A request about a lab.
#[derive(Deserialize)]
pub struct Request {
    lab: Lab,
    what: What,
    scenario: Option<Scenario>,
    /// Scenarios for which the hosts' ability is checked.
    #[serde(default)]
    scenarios: Vec<Scenario>,
    /// Programs whose bytes follow the request: the loader and the congestion controls that it loads; may be empty.
    #[serde(default)]
    load: Vec<Part>,
    /// Packets are kept too.
    #[serde(default)]
    capture: Option<CaptureRequest>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum What {
    /// Look at every host, and change nothing.
    Check,
    /// Roll back the changes that a dead run has left.
    Clean,
    /// Say for each scenario what keeps the hosts from running it.
    Missing,
    Run,
}

/// Congestion controls that come along, and their bytes.
struct Programs<'r> {
    parts: &'r [Part],
    raw: &'r [u8],
}

impl Programs<'_> {
    fn names(&self) -> Vec<&str> {
        self.parts.iter().skip(1).map(Part::algorithm).collect()
    }
}

/// Executes a request; `raw` are the bytes after it, `progress` receives the elapsed time of a run.
pub fn conduct(request: &Request, raw: &[u8], progress: &dyn Fn(u64)) -> Result<Vec<u8>, Fault> {
    let Request { lab, what, scenario, scenarios, load, capture } = request;
    let programs = Programs { parts: load, raw };
    let agent = Agent::running_program()?;
    match (what, scenario) {
        (What::Check, scenario) => check(lab, scenario.as_ref(), &agent),
        (What::Clean, _) => clean(lab, &agent),
        (What::Missing, _) => missing(lab, scenarios, &agent, &programs.names()),
        (What::Run, Some(scenario)) => {
            run(lab, scenario, &agent, &programs, capture.as_ref(), progress)
        }
        (What::Run, None) => fault("there is no scenario"),
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn check(lab: &Lab, scenario: Option<&Scenario>, agent: &Agent) -> Result<Vec<u8>, Fault> {
    let reached = in_parallel(&lab.hosts, |host| {
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
    let all = in_parallel(&lab.hosts, |host| {
        let undone = Remote::connect(lab, host, agent)
            .and_then(|remote| remote.ask::<Vec<Change>>(&Ask::Clean));
        match undone {
            Ok(undone) => json!({"host": host.name, "undone": undone}),
            Err(fault) => json!({"host": host.name, "failed": fault.to_string()}),
        }
    });
    Ok(line(&json!({"hosts": all})))
}

/// For each scenario nothing, or field, value and what would be right.
fn missing(
    lab: &Lab,
    scenarios: &[Scenario],
    agent: &Agent,
    programs: &[&str],
) -> Result<Vec<u8>, Fault> {
    let refusal_json = |outcome: Result<(), Fault>| match outcome {
        Ok(()) => Ok(Value::Null),
        Err(Fault::Refused(field, value, expected)) => Ok(json!([field, value, expected])),
        Err(fault) => Err(fault),
    };
    let mut refusals = Vec::new();
    for scenario in scenarios {
        refusals.push(refusal_json(expect(lab, scenario, programs))?);
    }
    if refusals.iter().all(Value::is_null) {
        let mut stage = Stage::reach(lab, scenarios, agent)?;
        for (scenario, refusal) in scenarios.iter().zip(&mut refusals) {
            *refusal = refusal_json(stage.lay_out(scenario, programs))?;
        }
    }
    Ok(line(&json!({"missing": refusals})))
}

/// Data collected from the hosts of a run.
#[derive(Default)]
struct RunData {
    recording: Recording,
    played: Vec<Played>,
    captured: Vec<Captured>,
}

/// Locks a mutex; data left by a panicked thread are as usable as any other.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(
    lab: &Lab,
    scenario: &Scenario,
    agent: &Agent,
    programs: &Programs<'_>,
    capture: Option<&CaptureRequest>,
    progress: &dyn Fn(u64),
) -> Result<Vec<u8>, Fault> {
    let stage = Stage::prepare(lab, scenario, agent, &programs.names())?;
    let outcome = stage.apply_and_play(scenario, programs, capture, progress);
    let reverted = in_parallel(&stage.remotes, |remote| remote.ask::<Vec<Change>>(&Ask::Revert));
    let answer = outcome?;
    reverted.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(answer)
}

impl Stage<'_> {
    fn apply_and_play(
        &self,
        scenario: &Scenario,
        programs: &Programs<'_>,
        capture: Option<&CaptureRequest>,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<u8>, Fault> {
        let (bare, _) = self.round_trips(scenario, None)?;
        let applied = self.apply(scenario, programs)?;
        let mut checks = self.settle()?;
        let (idle, round_trips) = self.round_trips(scenario, Some(&bare))?;
        checks.extend(round_trips);
        let clocks = self.clocks()?;
        self.open(scenario, capture)?;
        let longest = clocks.values().map(|clock| clock.round_trip_ns).max().unwrap_or_default();
        let start = sys::now() + START_NS + 3 * longest;
        let run_data = self.go(scenario, start, &clocks, progress)?;
        if let Some(capture_request) = capture {
            capture_request.check(&run_data.captured)?;
        }
        let later = self.clocks()?;
        self.finish(scenario, run_data, |about| {
            let path = applied.iter().flat_map(|(host, applied)| {
                applied.verified.iter().map(move |line| format!("{host}: {line}"))
            });
            about["path"] = path.chain(self.placement.cables.iter().cloned()).collect();
            let best = |trips: &BTreeMap<String, RoundTrips>| -> Value {
                let best = trips.iter().map(|(path, trips)| (path.clone(), trips.best_ns.into()));
                Value::Object(best.collect())
            };
            about["bare_rtt_ns"] = best(&bare);
            about["idle_rtt_ns"] = best(&idle);
            about["checks"] = json!(checks);
            let hosts = self.facts.iter().map(|(name, facts)| {
                let drift_ns = later[name].offset_ns - clocks[name].offset_ns;
                let about = json!({
                    "kernel": facts.kernel, "tick_hz": facts.tick_hz, "agent": facts.agent,
                    "clock": clocks[name], "clock_drift_ns": drift_ns, "clock_discipline": facts.discipline,
                    "changes": applied.get(name).map(|applied| applied.changes),
                });
                (name.clone(), about)
            });
            about["hosts"] = Value::Object(hosts.collect());
            let apart = clocks.values().map(|clock| clock.error_ns).max().unwrap_or_default();
            about["start_error_ns"] = (2 * apart).into();
        })
    }

    fn apply(
        &self,
        scenario: &Scenario,
        programs: &Programs<'_>,
    ) -> Result<BTreeMap<String, Applied>, Fault> {
        let loading = self.loading(scenario, &programs.names())?;
        let applied = in_parallel(&self.remotes, |remote| {
            let part = &self.placement.parts[&remote.name];
            let loads = loading.contains(&remote.name.as_str());
            let (parts, raw) =
                if loads { (programs.parts, programs.raw) } else { Default::default() };
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
                programs: parts.to_vec(),
            };
            remote
                .ask_with::<Applied>(&Ask::Apply(apply), raw)
                .map(|done| (remote.name.clone(), done))
        });
        applied.into_iter().collect()
    }

    fn clocks(&self) -> Result<BTreeMap<String, Clock>, Fault> {
        // One after the other: together they would make each other wait.
        self.remotes.iter().map(|remote| Ok((remote.name.clone(), clock(remote)?))).collect()
    }

    fn open(&self, scenario: &Scenario, capture: Option<&CaptureRequest>) -> Result<(), Fault> {
        let opened = in_parallel(&self.remotes, |remote| {
            let part = &self.placement.parts[&remote.name];
            let open = Open {
                scenario: scenario.clone(),
                plan: self.placement.plan_of(&remote.name),
                nodes: part.nodes.clone(),
                near_ends: part.near_ends.clone(),
                capture: capture.cloned(),
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
    ) -> Result<RunData, Fault> {
        for remote in &self.remotes {
            remote.send(&Ask::Go { start: start + clocks[&remote.name].offset_ns })?;
        }
        let now_ns = AtomicU64::new(0);
        let pending = AtomicUsize::new(self.remotes.len());
        let (answers, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
        std::thread::scope(|scope| {
            for remote in &self.remotes {
                let (now_ns, pending, answers, failed) = (&now_ns, &pending, &answers, &failed);
                scope.spawn(move || {
                    match self.listen(remote, now_ns) {
                        Ok(frame) => locked(answers).push(frame),
                        Err(fault) => {
                            // Only the first fault is reported; the other hosts have nothing to wait for any more.
                            locked(failed).get_or_insert(fault);
                            self.remotes.iter().for_each(Remote::cut);
                        }
                    }
                    pending.fetch_sub(1, Ordering::Relaxed);
                });
            }
            while pending.load(Ordering::Relaxed) > 0 {
                progress(now_ns.load(Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        if let Some(fault) = locked(&failed).take() {
            return Err(fault);
        }
        let mut run_data = RunData::default();
        for frame in locked(&answers).drain(..) {
            let (head, raw): (merge::Head, &[u8]) = frame.outcome()?;
            merge::append(
                &mut run_data.recording,
                merge::recording(&head, raw, scenario.flows.len())?,
            );
            run_data.captured.extend(merge::captures(&head, raw)?);
            run_data.played.push(head.run);
        }
        Ok(run_data)
    }

    /// Hears one host to its answer, or its fault.
    fn listen(&self, remote: &Remote, now_ns: &AtomicU64) -> Result<Frame, Fault> {
        loop {
            let frame = remote.next()?;
            match frame.kind {
                b'p' => drop(now_ns.fetch_max(frame.parsed::<u64>()?.0, Ordering::Relaxed)),
                b'n' => {
                    let Notice::Arrived { flow, at_ns } = frame.parsed()?.0;
                    for peer in self.remotes.iter().filter(|peer| peer.name != remote.name) {
                        peer.order(Order::Arrived { flow, at_ns })?;
                    }
                }
                b'a' => return Ok(frame),
                _ => {
                    return frame
                        .outcome::<Value>()
                        .map(|_| Frame { kind: b'a', content: Vec::new() })
                        .map_err(|fault| fault.at(&format!("host {}", remote.name)));
                }
            }
        }
    }

    /// The recording of all, and what is known of the run.
    fn finish(
        &self,
        scenario: &Scenario,
        run_data: RunData,
        add: impl FnOnce(&mut Value),
    ) -> Result<Vec<u8>, Fault> {
        let RunData { mut recording, played, captured } = run_data;
        let plan = self.placement.plan();
        let mut reports: BTreeMap<usize, Report> = BTreeMap::new();
        for (node, report) in played.iter().flat_map(|played| &played.reports) {
            reports.insert(*node, report.clone());
        }
        self.uncount_shared(scenario, &plan, &mut reports)?;
        let mut rows = dragstrip_recording::Writer::default();
        let ends = Ends::of(scenario, &plan, &reports)?;
        ends.record(scenario, &reports, &BTreeMap::new(), &mut rows);
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
        Ok(record::answer(&recording, about, &captured))
    }

    /// Removes the counters of a host that several sending nodes share.
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
