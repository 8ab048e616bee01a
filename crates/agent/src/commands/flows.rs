//! Programs as flows of a run: their servers listen before it, each client starts when its flow does, and takes its server with
//! it; all end with the run.
//!
//! In a machine that is thrown away their files come with the request, as those of programs alone do (programs/mod.rs). On a user's
//! machine they are the user's processes, in a process namespace, and see the machine's files.

use super::live::{End, Home, Live, Stream};
use super::{machine_settings, root, settings};
use crate::event_loop::{ELSEWHERE, Elsewhere};
use crate::fault::{Fault, fault};
use crate::network::{self, Network};
use crate::plan::Plan;
use crate::side::{Notice, Order};
use crate::sys::{self, Poll, process};
use dragstrip_scenario::{FlowSpec, NodeSpec, Scenario};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;

/// Programs of a request. The bytes of `files` follow those of what is loaded.
#[derive(Deserialize)]
pub struct FlowPrograms {
    /// Files of a machine that is thrown away; elsewhere none.
    #[serde(default)]
    files: Vec<root::Entry>,
    environment: BTreeMap<String, String>,
    flows: Vec<Commands>,
}

/// Commands of a flow.
#[derive(Deserialize)]
struct Commands {
    flow: usize,
    folder: String,
    /// Empty: none.
    server: Vec<String>,
    client: Vec<String>,
}

/// Bytes of a stream that an answer has: its last ones.
const SHOWN_BYTES: usize = 16 << 10;
/// Never, for a timer.
const NEVER: i64 = i64::MAX / 2;

/// A flow's programs while they run.
struct Running<'p> {
    spec: &'p FlowSpec,
    commands: &'p Commands,
    live: Live<'p>,
    /// The client's host.
    space: File,
    started: bool,
    ended_ns: Option<i64>,
    /// Status of the server, if it ended before the client.
    server_status: Option<i32>,
}

/// All programs of a run.
pub struct Runner<'p> {
    home: Home,
    all: Vec<Running<'p>>,
    /// Readable when one of them has printed something or has ended, or when the next is due.
    poll: Poll,
    timer: OwnedFd,
    start: i64,
    end_ns: i64,
    progress: &'p dyn Fn(u64, u64),
}

impl<'p> Runner<'p> {
    /// Prepares the hosts, and starts the servers. `machine`: the first network namespace of one that is thrown away.
    pub fn open(
        programs: &'p FlowPrograms,
        files: &[u8],
        scenario: &'p Scenario,
        (plan, network): (&Plan, &Network),
        machine: Option<&File>,
        progress: &'p dyn Fn(u64, u64),
    ) -> Result<Self, Fault> {
        let here = network::own_namespace()?;
        if let Some(home) = machine {
            machine_settings(home)?;
        }
        let mut prepared: BTreeMap<&str, &str> = BTreeMap::new();
        for Commands { flow, .. } in &programs.flows {
            let spec = spec(scenario, *flow)?;
            let cc = spec.transport.name();
            for name in [&spec.sender, &spec.receiver] {
                let other = prepared.insert(name, cc).filter(|other| *other != cc);
                if let Some(other) = other {
                    let expected =
                        format!("{other}, as the other programs of host {name}: they share it");
                    return crate::fault::refusal(format!("flow {}: cc", spec.label), cc, expected);
                }
                settings(space(plan, network, name)?, cc, &format!("flow {}: cc", spec.label))?;
            }
        }
        sys::enter(&here)?;
        let hosts = hosts(programs, scenario, plan)?;
        let home = if machine.is_some() {
            root::enter(&programs.files, files, &hosts, "/")?;
            for commands in &programs.flows {
                fs::create_dir_all(&commands.folder)?;
            }
            Home::Machine
        } else {
            on_this_machine(hosts)?
        };
        let (poll, timer) = (Poll::new()?, sys::timer()?);
        poll.add(&timer, libc::EPOLLIN, ELSEWHERE)?;
        let mut runner =
            Self { home, all: Vec::new(), poll, timer, start: 0, end_ns: NEVER, progress };
        for commands in &programs.flows {
            runner.serve(commands, programs, scenario, (plan, network))?;
        }
        sys::enter(&here)?;
        Ok(runner)
    }

    /// Starts a flow's server.
    fn serve(
        &mut self,
        commands: &'p Commands,
        programs: &FlowPrograms,
        scenario: &'p Scenario,
        (plan, network): (&Plan, &Network),
    ) -> Result<(), Fault> {
        let spec = spec(scenario, commands.flow)?;
        let address = plan.nodes[plan.node(&spec.sender)?].address;
        let mut environment = programs.environment.clone();
        environment.insert("DRAGSTRIP_SERVER".to_owned(), address.to_string());
        let mut live = Live::new(self.home, environment, &commands.folder, self.progress)?;
        if !commands.server.is_empty() {
            let field = format!("flow {}: application.server", spec.label);
            live.serve(&field, &commands.server, space(plan, network, &spec.sender)?)?;
        }
        self.poll.add(live.poll(), libc::EPOLLIN, ELSEWHERE)?;
        let space = space(plan, network, &spec.receiver)?.try_clone()?;
        self.all.push(Running {
            spec,
            commands,
            live,
            space,
            started: false,
            ended_ns: None,
            server_status: None,
        });
        Ok(())
    }

    /// Readable when [`Elsewhere::orders`] has something to do.
    pub const fn poll(&self) -> &Poll {
        &self.poll
    }

    /// The run begins at this time of the clock, and lasts so long.
    pub fn begin(&mut self, start: i64, end_ns: i64) -> Result<(), Fault> {
        (self.start, self.end_ns) = (start, end_ns);
        self.act()
    }

    /// Starts and ends clients that are due, and waits for the next.
    fn act(&mut self) -> Result<(), Fault> {
        let now_ns = sys::now() - self.start;
        let mut next_ns = NEVER;
        for running in &mut self.all {
            let start_ns = running.spec.start_ns as i64;
            let stop_ns = running.spec.stop_ns.map_or(NEVER, |stop_ns| stop_ns as i64);
            if !running.started && now_ns >= start_ns && now_ns < self.end_ns {
                running.started = true;
                let field = format!("flow {}: application.client", running.spec.label);
                running.live.start(&field, &running.commands.client, &running.space, Some(&[]))?;
            }
            if running.started && now_ns >= stop_ns {
                running.live.end_command();
            } else {
                next_ns = next_ns.min(if running.started { stop_ns } else { start_ns });
            }
        }
        sys::arm(&self.timer, self.start.saturating_add(next_ns).min(NEVER))
    }

    /// Ends all programs: by flow when the client ended, if it did, and an entry for the answer.
    pub fn finish(mut self) -> Result<(BTreeMap<usize, i64>, Vec<Value>), Fault> {
        for running in &mut self.all {
            running.look(self.start)?;
        }
        self.home.end()?;
        let mut ended = BTreeMap::new();
        let mut entries = Vec::new();
        for Running { spec, commands, live, started, ended_ns, server_status, .. } in self.all {
            ended.extend(ended_ns.map(|ended_ns| (commands.flow, ended_ns)));
            let outcome = live.outcome();
            let shown = |stream: Stream| {
                let bytes = outcome.streams.iter().find(|(other, _)| *other == stream);
                let bytes = bytes.map_or(&[][..], |(_, bytes)| bytes);
                let from = bytes.len().saturating_sub(SHOWN_BYTES);
                json!({"bytes": bytes.len(), "end": String::from_utf8_lossy(&bytes[from..])})
            };
            entries.push(json!({
                "flow": spec.label,
                "status": outcome.status,
                "started": started,
                "completion_ns": ended_ns.map(|ended_ns| ended_ns - spec.start_ns as i64),
                "flooded": if let End::Flooded(stream) = outcome.end { Some(stream.name()) } else { None },
                "server_status": server_status,
                "stdout": shown(Stream::Out),
                "stderr": shown(Stream::Errors),
                "server_output": shown(Stream::Server),
            }));
        }
        Ok((ended, entries))
    }
}

impl Running<'_> {
    /// Takes what has been printed. When the client has ended, its server ends too; the time is given once.
    fn look(&mut self, start: i64) -> Result<Option<i64>, Fault> {
        self.live.look(0)?;
        if self.ended_ns.is_some() {
            return Ok(None);
        }
        self.server_status = self.live.server_status();
        self.ended_ns = self.live.command_status().map(|_| sys::now() - start);
        if self.ended_ns.is_some() {
            self.live.end_server();
        }
        Ok(self.ended_ns)
    }
}

impl Elsewhere for Runner<'_> {
    fn tell(&mut self, _notice: Notice) -> Result<(), Fault> {
        Ok(())
    }

    fn orders(&mut self) -> Result<Vec<Order>, Fault> {
        let mut orders = Vec::new();
        for running in &mut self.all {
            let ended_ns = running.look(self.start)?;
            let flow = running.commands.flow;
            orders.extend(ended_ns.map(|at_ns| Order::Arrived { flow, at_ns }));
        }
        self.act()?;
        Ok(orders)
    }

    fn progress(&mut self, now_ns: u64, arrived_bytes: u64) {
        (self.progress)(now_ns, arrived_bytes);
    }
}

fn spec(scenario: &Scenario, flow: usize) -> Result<&FlowSpec, Fault> {
    scenario.flows.get(flow).map_or_else(|| fault(format!("there is no flow {flow}")), Ok)
}

/// A host's namespace.
fn space<'n>(plan: &Plan, network: &'n Network, name: &str) -> Result<&'n File, Fault> {
    let place = &network.places[plan.node(name)?];
    place
        .namespace
        .as_ref()
        .map_or_else(|| fault(format!("{name} has no namespace of its own")), Ok)
}

/// Addresses and names of all hosts; with programs of one flow also `server` and `client`.
fn hosts(programs: &FlowPrograms, scenario: &Scenario, plan: &Plan) -> Result<String, Fault> {
    let mut text = "127.0.0.1 localhost\n".to_owned();
    let mut ends = ["", ""];
    if let [Commands { flow, .. }] = programs.flows.as_slice() {
        let spec = spec(scenario, *flow)?;
        ends = [&spec.sender, &spec.receiver];
    }
    for host in scenario.nodes.iter().filter_map(NodeSpec::host) {
        let address = plan.nodes[plan.node(&host.name)?].address;
        let name = ends.iter().zip(["server", "client"]).find(|(end, _)| **end == host.name);
        let name = name.map_or(String::new(), |(_, name)| format!(" {name}"));
        text.push_str(&format!("{address} {}{name}\n", host.name));
    }
    Ok(text)
}

/// A process namespace on this machine, and in a mount namespace the names of the hosts, where that is allowed.
fn on_this_machine(hosts: String) -> Result<Home, Fault> {
    let named =
        process::unshare_mounts().and_then(|()| process::mount_files(&[("/etc/hosts", hosts)]));
    drop(named); // else programs use $DRAGSTRIP_SERVER
    process::unshare_processes()?;
    let Some(first) = process::fork()? else {
        let _ = process::die_with_maker();
        process::hold()
    };
    Ok(Home::Namespace { first, user: outer_user() })
}

/// User and group that started this process, where it is root in a user namespace alone (user_namespaces(7)).
fn outer_user() -> Option<(u32, u32)> {
    let outer = |file: &str| {
        let text = fs::read_to_string(file).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<u32>);
        let [inner, outer, count] = [words.next()?.ok()?, words.next()?.ok()?, words.next()?.ok()?];
        (inner == 0 && count == 1).then_some(outer)
    };
    Some((outer("/proc/self/uid_map")?, outer("/proc/self/gid_map")?))
}
