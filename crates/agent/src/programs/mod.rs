//! Programs at the two ends of a scenario's path, on a machine in virtual time that is thrown away afterwards.
//!
//! Their files come with the request, and become the root of the file system (root.rs); the network is that of a run of
//! flows (conductor.rs). A server starts first; the command starts when the server listens, at a round second, so that
//! the time which files and set-up took does not show. What both print, the command's exit status and the files that it
//! leaves are the answer (live.rs).

mod live;
mod root;

use crate::conductor::{self, SETTLE_NS};
use crate::event_loop::{ELSEWHERE, drive};
use crate::fault::{Fault, fault, refusal};
use crate::kernel::Kernel;
use crate::load::Load;
use crate::machine::{self, Grant, Part};
use crate::network::{self, Network};
use crate::plan::Plan;
use crate::side::{Agenda, CaptureRequest, Captured, Desk, Event};
use crate::sys::{self, Poll};
use dragstrip_recording::{Data, Recording, Writer};
use dragstrip_scenario::{FULL_FRAME_BYTES, Scenario};
use live::{End, Live, Stream};
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
/// Time that a server has to begin to listen.
const LISTEN_NS: i64 = 10_000_000_000;
const LISTEN_STEP_MS: i32 = 10;
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
    let home = fs::File::open("/proc/thread-self/ns/net")?;
    sys::set_clock(programs.date_s)?;
    let plan = Plan::new(scenario, kernel)?;
    let Behind { load, files, input } = Behind::of(programs, raw)?;
    let _held = machine::prepare(scenario, &programs.load, load, grant)?;
    let mut network = Network::build(&plan, scenario.cold_arp, grant.global_sysctls)?;
    let path_report = network.verify(&plan)?;
    conductor::wait_until(sys::now() + SETTLE_NS)?;
    let (idle, checked) = conductor::idle_round_trips(scenario, &plan, &network, false)?;
    conductor::expect_in_time(&checked)?;
    if scenario.cold_arp {
        network.forget_neighbours(&plan);
    }
    let ends = ends(programs, &plan, &network)?;
    settings(programs, &home, &ends)?;
    root::enter(&programs.files, files, &names(programs, &plan)?, &programs.folder)?;
    let mut environment = programs.environment.clone();
    let address = plan.nodes[plan.node(&programs.ends[0])?].address;
    environment.insert("DRAGSTRIP_SERVER".to_owned(), address.to_string());
    let mut live = Live::new(environment, &programs.folder, progress)?;
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
        let listen_until = sys::now() + LISTEN_NS;
        live.start("--server", &programs.server, &ends[0], None)?;
        while !listens(&ends[0])? {
            live.look(LISTEN_STEP_MS)?;
            live.step();
            expect_server(&live, &programs.server[0], listen_until)?;
        }
        rest(&mut live, next_round())?;
    }
    let counters = [Counters::read(&ends[0])?, Counters::read(&ends[1])?];
    let before = Load::now();
    poll.add(live.poll(), libc::EPOLLIN, ELSEWHERE)?;
    let start = sys::now();
    live.start("COMMAND", &programs.command, &ends[1], Some(input))?;
    let mut tables = Writer::default();
    let end_ns = programs.limit_ns as i64;
    drive(&mut sides, &poll, (start, end_ns), &mut tables, &mut live)?;
    let duration_ns = sys::now() - start;
    let load = before.until(Load::now());
    let after = [Counters::read(&ends[0])?, Counters::read(&ends[1])?];
    let end = live.finish()?;
    for side in &mut sides {
        let (mut agenda, mut notices) = (Agenda::new(0), Vec::new());
        let mut desk =
            Desk { poll: &poll, agenda: &mut agenda, tables: &mut tables, notices: &mut notices };
        side.on_event(duration_ns, Event::Sample, &mut desk)?;
    }
    let captured = sides.iter_mut().map(|side| side.captured(duration_ns as u64));
    let captured: Vec<Captured> =
        captured.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    if let Some(capture_request) = capture {
        capture_request.check(&captured)?;
    }
    let (outputs, missing) = Output::all(programs)?;
    let increments = [0, 1].map(|end: usize| after[end].since(&counters[end]));
    let about = json!({
        "kernel": network::kernel_release(),
        "status": end.status,
        "timed_out": end.end == End::TimedOut,
        "flooded": if let End::Flooded(stream) = end.end { Some(stream.name()) } else { None },
        "server_status": end.server_status,
        "duration_ns": duration_ns,
        "address": address.to_string(),
        "directions": directions(programs, &increments, &tables.finish())?,
        "path": path_report,
        "idle_rtt_ns": idle,
        "cpu_idle_share": load.idle_share,
        "missing_outputs": missing,
    });
    Ok(answer(about, end.streams, outputs, captured))
}

/// The bytes behind a request.
struct Behind<'r> {
    load: &'r [u8],
    files: &'r [u8],
    input: &'r [u8],
}

impl<'r> Behind<'r> {
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

/// Congestion control of both ends, and what programs without rights over the machine may do.
fn settings(programs: &Programs, home: &fs::File, ends: &[fs::File; 2]) -> Result<(), Fault> {
    sys::enter(home)?;
    let available = "net.ipv4.tcp_available_congestion_control";
    let algorithms = fs::read_to_string(network::proc_file(available))?;
    // The kernel has this list once, and lets its first namespace alone change it.
    network::sysctl("net.ipv4.tcp_allowed_congestion_control", algorithms.trim())?;
    // Addresses of memory differ by seed otherwise, and with them what some programs do.
    network::sysctl("kernel.randomize_va_space", "0")?;
    network::sysctl("kernel.hostname", "dragstrip")?;
    for end in ends {
        sys::enter(end)?;
        network::set("--cc", "net.ipv4.tcp_congestion_control", &sys::in_kernel(&programs.cc))?;
        network::sysctl("net.ipv4.ip_unprivileged_port_start", "0")?;
        network::sysctl("net.ipv4.ping_group_range", "0 2147483647")?;
    }
    sys::enter(home)
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

fn expect_server(live: &Live<'_>, program: &str, until: i64) -> Result<(), Fault> {
    if let Some(status) = live.server_status() {
        let last = live.last_line(Stream::Server);
        let expected = format!("a server that listens: it has ended with status {status}{last}");
        return refusal("--server", program, expected);
    }
    if sys::now() > until {
        let wait_s = LISTEN_NS / 1_000_000_000;
        let last = live.last_line(Stream::Server);
        let expected = format!("a server that listens on some port within {wait_s} s{last}");
        return refusal("--server", program, expected);
    }
    Ok(())
}

fn listens(end: &fs::File) -> Result<bool, Fault> {
    let home = fs::File::open("/proc/thread-self/ns/net")?;
    sys::enter(end)?;
    let listens = network::has_listener();
    sys::enter(&home)?;
    Ok(listens)
}

/// Totals of an end's interfaces (Documentation/networking/statistics.rst); bytes are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in: u64,
    bytes_in: u64,
    packets_out: u64,
    bytes_out: u64,
}

impl Counters {
    fn read(end: &fs::File) -> Result<Self, Fault> {
        let home = fs::File::open("/proc/thread-self/ns/net")?;
        sys::enter(end)?;
        let text = fs::read_to_string("/proc/thread-self/net/dev");
        sys::enter(&home)?;
        Ok(Self::parse(&text?))
    }

    /// Each line after the first two: a name, eight columns of what came in, and eight of what went out.
    fn parse(text: &str) -> Self {
        const ETHERNET_BYTES: u64 = 14;
        let mut all = Self::default();
        for line in text.lines().skip(2) {
            let Some((name, columns)) = line.split_once(':') else { continue };
            if name.trim() == "lo" {
                continue;
            }
            let columns: Vec<u64> =
                columns.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let column = |index: usize| columns.get(index).copied().unwrap_or_default();
            all.packets_in += column(1);
            all.bytes_in += column(0).saturating_sub(ETHERNET_BYTES * column(1));
            all.packets_out += column(9);
            all.bytes_out += column(8).saturating_sub(ETHERNET_BYTES * column(9));
        }
        all
    }

    const fn since(&self, before: &Self) -> Self {
        Self {
            packets_in: self.packets_in - before.packets_in,
            bytes_in: self.bytes_in - before.bytes_in,
            packets_out: self.packets_out - before.packets_out,
            bytes_out: self.bytes_out - before.bytes_out,
        }
    }
}

/// Both directions: what entered at one end, what left at the other, and drops and marks of the queues in between.
fn directions(
    programs: &Programs,
    increments: &[Counters; 2],
    recording: &Recording,
) -> Result<Vec<Value>, Fault> {
    let Programs { scenario, ends, .. } = programs;
    let pair = [(ends[0].as_str(), ends[1].as_str())];
    let facts = scenario.path_facts(pair, FULL_FRAME_BYTES);
    let facts = facts.map_err(|problem| Fault::Failed(problem.to_string()))?;
    let is_back = |queue: &str| {
        let link = queue.split(':').next().unwrap_or_default();
        facts.iter().any(|facts| facts.back.iter().any(|name| name == link))
    };
    let queues = totals(recording);
    let direction = |name: &str, from: &Counters, to: &Counters, back: bool| {
        let here = || queues.iter().filter(|(queue, _)| is_back(queue) == back);
        let drops: BTreeMap<&String, i64> = here()
            .map(|(queue, all)| (queue, all.dropped))
            .filter(|(_, count)| *count > 0)
            .collect();
        json!({
            "direction": name,
            "packets_in": from.packets_out,
            "bytes_in": from.bytes_out,
            "packets_out": to.packets_in,
            "bytes_out": to.bytes_in,
            "drops": drops,
            "marks": here().map(|(_, all)| all.marked).sum::<i64>(),
        })
    };
    let [server, client] = increments;
    Ok(vec![direction("down", server, client, false), direction("up", client, server, true)])
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    dropped: i64,
    marked: i64,
}

/// Each watched queue's last row.
fn totals(recording: &Recording) -> BTreeMap<String, Queue> {
    let mut totals = BTreeMap::new();
    let Some(table) = recording.table("queues") else { return totals };
    let column = |name: &str| {
        table.columns.iter().find(|column| column.name == name).map(|column| &column.data)
    };
    if let (Some(Data::Text { names, index }), Some(Data::Int(dropped)), Some(Data::Int(marked))) =
        (column("link"), column("dropped"), column("marked"))
    {
        for ((&link, &dropped), &marked) in index.iter().zip(dropped).zip(marked) {
            totals.insert(names[link as usize].clone(), Queue { dropped, marked });
        }
    }
    totals
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
    about: Value,
    streams: Vec<(Stream, Vec<u8>)>,
    outputs: Vec<Output>,
    captured: Vec<Captured>,
) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut place = |mut description: Value, bytes: Vec<u8>| {
        description["offset"] = raw.len().into();
        description["bytes"] = bytes.len().into();
        raw.extend(bytes);
        description
    };
    let streams: Vec<Value> = streams
        .into_iter()
        .map(|(stream, bytes)| place(json!({"name": stream.name()}), bytes))
        .collect();
    let outputs: Vec<Value> = outputs
        .into_iter()
        .map(|Output { name, content }| place(json!({ "name": name }), content))
        .collect();
    let captures: Vec<Value> = captured
        .into_iter()
        .map(|Captured { bytes, described }| place(json!(described), bytes))
        .collect();
    let head = json!({"run": about, "streams": streams, "outputs": outputs, "captures": captures});
    let mut answer = head.to_string().into_bytes();
    answer.push(b'\n');
    answer.extend(raw);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_counts_its_ip_bytes_and_not_its_loopback() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets ...\n    \
            lo: 999 9 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n    \
            v0: 1514 1 0 0 0 0 0 0 132 2 0 0 0 0 0 0\n";
        let counters = Counters::parse(text);
        let expected = Counters { packets_in: 1, bytes_in: 1500, packets_out: 2, bytes_out: 104 };
        assert_eq!(counters, expected);
        assert_eq!(counters.since(&counters), Counters::default());
    }

    #[test]
    fn an_answer_lists_where_its_bytes_are() {
        let bytes = answer(
            json!({"status": 0}),
            vec![(Stream::Out, b"out".to_vec()), (Stream::Errors, Vec::new())],
            vec![Output { name: "a file".to_owned(), content: b"content".to_vec() }],
            Vec::new(),
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
