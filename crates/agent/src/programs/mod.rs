//! Programs at the two ends of a scenario's path, on a machine in virtual time that is thrown away afterwards.
//!
//! Their files come with the request, and become the root of the file system (commands/root.rs); the network is that of a run of
//! flows (conductor.rs). A server starts first; the command starts when the server listens, at a round second, so that
//! the time which files and set-up took does not show. What both print, the command's exit status and the files that it
//! leaves are the answer (commands/live.rs).

mod counters;

use crate::commands::live::{End, Home, Live, Stream};
use crate::commands::{machine_settings, root, settings};
use crate::conductor::{self, SETTLE_NS};
use crate::event_loop::{ELSEWHERE, drive};
use crate::fault::{Fault, fault, refusal};
use crate::forward::lines::{Carriers, Running};
use crate::kernel::Kernel;
use crate::load::Load;
use crate::machine::{self, Grant, Part};
use crate::network::{self, Network};
use crate::plan::Plan;
use crate::record::Behind;
use crate::side::{Agenda, CaptureRequest, Captured, Desk, Event, collect_captures};
use crate::sys::{self, Poll, process};
use counters::Counters;
use dragstrip_recording::Writer;
use dragstrip_scenario::Scenario;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A request for programs.
#[derive(Deserialize)]
pub struct Request {
    programs: Programs,
}

/// The path and the programs. The bytes of `load`, of `files` and of the command's input follow the request, in this order.
#[derive(Deserialize)]
struct Programs {
    scenario: Scenario,
    /// Hosts of the server and of the client.
    ends: [String; 2],
    /// Congestion control of both.
    cc: String,
    #[serde(default)]
    load: Vec<Part>,
    files: Vec<root::Entry>,
    /// Bytes of the command's standard input; none: it is empty.
    input_bytes: usize,
    /// Folder in which both programs start.
    folder: String,
    environment: BTreeMap<String, String>,
    /// Empty: none.
    server: Vec<String>,
    command: Vec<String>,
    /// Files to return.
    outputs: Vec<String>,
    limit_ns: u64,
    /// Seconds since 1970 at which the machine's clock is set.
    date_s: i64,
    #[serde(default)]
    capture: Option<CaptureRequest>,
}

/// The server and the command each start at a multiple of this time.
const ROUND_NS: i64 = 10_000_000_000;
/// Longest time between two steps that are reported.
const STEP_MS: i32 = 1_000;
/// Bytes of all files that are returned.
const OUTPUTS_BYTES_MAX: u64 = 64 << 20;

/// Runs the programs of a request; `raw` are the bytes after it, `progress` receives the elapsed time (ns).
pub fn run(
    request: &Request,
    raw: &[u8],
    grant: Grant,
    kernel: &Kernel,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<u8>, Fault> {
    let Request { programs } = request;
    let scenario = &programs.scenario;
    if !grant.whole() {
        return fault("programs need a machine that is thrown away");
    }
    let home = network::own_namespace()?;
    sys::set_clock(programs.date_s)?;
    let plan = Plan::new(scenario, kernel)?;
    let Attached { load, files, input } = Attached::of(programs, raw)?;
    let _held = machine::prepare(scenario, &programs.load, load, grant)?;
    let mut network = Network::build(&plan, scenario.cold_arp, grant.global_sysctls)?;
    let path_report = network.verify(&plan)?;
    let timed = Scenario { duration_ns: programs.limit_ns, ..scenario.clone() };
    let carriers = Carriers::open(&plan, &network, &timed)?;
    let idle_lines = carriers.as_ref().map(Carriers::start_idle).transpose()?;
    conductor::wait_until(sys::now() + SETTLE_NS)?;
    let (idle, checked) = conductor::idle_round_trips(scenario, &plan, &network, false)?;
    conductor::expect_in_time(&checked)?;
    if scenario.cold_arp {
        network.forget_neighbours(&plan);
    }
    let ends = ends(programs, &plan, &network)?;
    machine_settings(&home)?;
    for end in &ends {
        settings(end, &programs.cc, "--cc")?;
        network::sysctl("net.ipv4.ping_group_range", "0 2147483647")?;
    }
    sys::enter(&home)?;
    root::enter(&programs.files, files, &names(programs, &plan)?, &programs.folder)?;
    let mut environment = programs.environment.clone();
    let address = plan.nodes[plan.node(&programs.ends[0])?].address;
    environment.insert("DRAGSTRIP_SERVER".to_owned(), address.to_string());
    let mut live = Live::new(Home::Machine, environment, &programs.folder, progress)?;
    live.step();

    // No end of the scenario's flows is opened: the programs are the traffic.
    let mut quiet = scenario.clone();
    quiet.flows.clear();
    quiet.duration_ns = programs.limit_ns;
    let poll = Poll::new()?;
    let capture = programs.capture.as_ref();
    let (mut sides, _relays) = conductor::open_sides(&quiet, &plan, network, capture, &poll)?;

    rest(&mut live, next_round())?;
    if !programs.server.is_empty() {
        live.serve("--server", &programs.server, &ends[0])?;
        rest(&mut live, next_round())?;
    }
    let running_lines = carriers.as_ref().map(Carriers::start).transpose()?;
    idle_lines.map(Running::stop).transpose()?;
    let counters = [Counters::read(&ends[0])?, Counters::read(&ends[1])?];
    let before = Load::now();
    poll.add(live.poll(), libc::EPOLLIN, ELSEWHERE)?;
    let start = sys::now();
    if let Some(running) = &running_lines {
        running.begin(process::monotonic());
    }
    live.start("COMMAND", &programs.command, &ends[1], Some(input))?;
    let mut tables = Writer::default();
    let end_ns = programs.limit_ns as i64;
    drive(&mut sides, &poll, (start, end_ns), &mut tables, &mut live)?;
    let duration_ns = sys::now() - start;
    let carried = running_lines.map(Running::stop).transpose()?;
    let load = before.until(Load::now());
    let after = [Counters::read(&ends[0])?, Counters::read(&ends[1])?];
    live.look(0)?;
    Home::Machine.end()?;
    let end = live.outcome();
    for side in &mut sides {
        let (mut agenda, mut notices) = (Agenda::new(0), Vec::new());
        let mut desk =
            Desk { poll: &poll, agenda: &mut agenda, tables: &mut tables, notices: &mut notices };
        side.on_event(duration_ns, Event::Sample, &mut desk)?;
    }
    let lines = carriers.as_ref().zip(carried);
    let lines = lines.map(|(carriers, carried)| carriers.record(&carried, &mut tables.queues));
    let captured = collect_captures(&mut sides, duration_ns as u64, capture)?;
    let (outputs, missing) = Output::all(programs)?;
    let increments = [0, 1].map(|end: usize| after[end].since(&counters[end]));
    let mut about = json!({
        "kernel": network::kernel_release(),
        "status": end.status,
        "timed_out": end.end == End::TimedOut,
        "flooded": if let End::Flooded(stream) = end.end { Some(stream.name()) } else { None },
        "server_status": end.server_status,
        "duration_ns": duration_ns,
        "address": address.to_string(),
        "directions": counters::directions(scenario, &programs.ends, &increments, &tables.finish())?,
        "path": path_report,
        "idle_rtt_ns": idle,
        "cpu_idle_share": load.idle_share,
        "missing_outputs": missing,
    });
    if let Some(lines) = lines {
        about["lines"] = lines.into();
    }
    Ok(answer(&about, &end.streams, &outputs, &captured))
}

/// The bytes behind a request.
struct Attached<'r> {
    load: &'r [u8],
    files: &'r [u8],
    input: &'r [u8],
}

impl<'r> Attached<'r> {
    fn of(programs: &Programs, raw: &'r [u8]) -> Result<Self, Fault> {
        let load: usize = programs.load.iter().map(Part::bytes).sum();
        let files: usize = programs.files.iter().map(root::Entry::bytes).sum();
        if raw.len() != load + files + programs.input_bytes {
            return fault("the request has not the bytes that it lists");
        }
        let (load, rest) = raw.split_at(load);
        let (files, input) = rest.split_at(files);
        Ok(Self { load, files, input })
    }
}

/// Namespaces of the server and of the client.
fn ends(programs: &Programs, plan: &Plan, network: &Network) -> Result<[fs::File; 2], Fault> {
    let mut namespaces = Vec::new();
    for name in &programs.ends {
        let place = &network.places[plan.node(name)?];
        let Some(namespace) = &place.namespace else {
            return fault(format!("{name} has no namespace of its own"));
        };
        namespaces.push(namespace.try_clone()?);
    }
    <[fs::File; 2]>::try_from(namespaces).or_else(|_| fault("a path has two ends"))
}

/// Addresses and names of the two ends.
fn names(programs: &Programs, plan: &Plan) -> Result<String, Fault> {
    let mut text = "127.0.0.1 localhost\n".to_owned();
    for (end, name) in programs.ends.iter().zip(["server", "client"]) {
        text.push_str(&format!("{} {name}\n", plan.nodes[plan.node(end)?].address));
    }
    Ok(text)
}

/// The next round instant, with a second before it.
fn next_round() -> i64 {
    const LEAST_NS: i64 = 1_000_000_000;
    (sys::now() + LEAST_NS) / ROUND_NS * ROUND_NS + ROUND_NS
}

/// Waits until an instant, and takes meanwhile what programs print.
fn rest(live: &mut Live<'_>, until: i64) -> Result<(), Fault> {
    let timer = sys::timer()?;
    let poll = Poll::new()?;
    poll.add(&timer, libc::EPOLLIN, 0)?;
    poll.add(live.poll(), libc::EPOLLIN, ELSEWHERE)?;
    sys::arm(&timer, until)?;
    let mut ready = Vec::new();
    while sys::now() < until {
        poll.wait(&mut ready, STEP_MS)?;
        live.look(0)?;
        live.step();
    }
    Ok(())
}

/// A file that was asked for.
struct Output {
    name: String,
    content: Vec<u8>,
}

impl Output {
    /// Those that are there, and the names of the others.
    fn all(programs: &Programs) -> Result<(Vec<Self>, Vec<String>), Fault> {
        let (mut outputs, mut missing, mut room) = (Vec::new(), Vec::new(), OUTPUTS_BYTES_MAX);
        for name in &programs.outputs {
            let file = Path::new(&programs.folder).join(name);
            let Ok(about) = fs::metadata(&file) else {
                missing.push(name.clone());
                continue;
            };
            if !about.is_file() {
                return refusal("--fetch", name, "a file that the command writes: it is none");
            }
            let Some(rest) = room.checked_sub(about.len()) else {
                let expected = format!("at most {} MiB in all files", OUTPUTS_BYTES_MAX >> 20);
                return refusal("--fetch", name, expected);
            };
            room = rest;
            outputs.push(Self { name: name.clone(), content: fs::read(&file)? });
        }
        Ok((outputs, missing))
    }
}

/// The answer: a line of JSON, and the bytes of streams, files and captures that it lists.
fn answer(
    about: &Value,
    streams: &[(Stream, Vec<u8>)],
    outputs: &[Output],
    captured: &[Captured],
) -> Vec<u8> {
    let mut raw = Behind::default();
    let streams: Vec<Value> = streams
        .iter()
        .map(|(stream, bytes)| raw.append(json!({"name": stream.name()}), bytes))
        .collect();
    let outputs: Vec<Value> = outputs
        .iter()
        .map(|Output { name, content }| raw.append(json!({ "name": name }), content))
        .collect();
    let captures = raw.captures(captured);
    raw.under(&json!({"run": about, "streams": streams, "outputs": outputs, "captures": captures}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lists_where_its_bytes_are() {
        let bytes = answer(
            &json!({"status": 0}),
            &[(Stream::Out, b"out".to_vec()), (Stream::Errors, Vec::new())],
            &[Output { name: "a file".to_owned(), content: b"content".to_vec() }],
            &[],
        );
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let head: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        let raw = &bytes[end + 1..];
        let part = |part: &Value| {
            let start = part["offset"].as_u64().unwrap() as usize;
            raw[start..start + part["bytes"].as_u64().unwrap() as usize].to_vec()
        };
        assert_eq!(part(&head["streams"][0]), b"out");
        assert_eq!(part(&head["streams"][1]), b"");
        assert_eq!(part(&head["outputs"][0]), b"content");
    }
}
