//! The agent on a lab's host: answers one conductor, and reverts all changes when the conductor's heartbeat stops.

use super::change::{self, Change};
use super::host_run::{play, time};
use super::inventory::{self, CAP_NET_ADMIN, CAP_NET_RAW};
use super::journal::{self, Journal};
use super::line::{Line, hold, own_hash};
use super::messages::{Applied, Apply, Ask, Connection, Facts, Place, Queue, Ready};
use crate::checks::RoundTrips;
use crate::conductor::PINGS;
use crate::fault::{Fault, fault, refusal};
use crate::machine::{self, Part, Programs};
use crate::netlink::Socket;
use crate::network::{self, OFFLOADS};
use crate::qdisc;
use crate::side::{Pinger, Wire};
use crate::sys;
use dragstrip_scenario::QdiscSpec;
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

/// Bytes of ICMP header and payload.
const PING_BYTES: usize = 64;

/// State of the run on this host.
#[derive(Default)]
struct Host {
    journal: Option<Journal>,
    queues: Vec<Queue>,
    /// Interfaces that packets of the run pass.
    cables: Vec<String>,
}

/// Answers until the conductor has gone.
pub fn serve() -> Result<(), Fault> {
    sys::raise_file_limit()?;
    let mut line = Line::open()?;
    let mut host = Host::default();
    while let Some(frame) = line.next() {
        if frame.kind != b'q' {
            continue;
        }
        let outcome = frame.parsed::<Ask>().and_then(|(ask, raw)| host.answer(ask, raw, &mut line));
        line.answer(outcome)?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Fault> {
    Ok(serde_json::to_vec(value).unwrap_or_default())
}

impl Host {
    /// Executes a question; `raw` are the bytes after it.
    fn answer(&mut self, ask: Ask, raw: &[u8], line: &mut Line) -> Result<Vec<u8>, Fault> {
        match ask {
            Ask::Facts { interfaces, connection } => to_json(&facts(&interfaces, connection)?),
            Ask::Time => Ok(time()),
            Ask::Carried { interfaces } => {
                to_json(&inventory::carried(&mut Socket::new()?, &interfaces)?)
            }
            Ask::Routes { targets } => to_json(&inventory::routes(&mut Socket::new()?, &targets)?),
            Ask::Ping { source, target, wait_ns } => to_json(&ping(source, target, wait_ns)?),
            Ask::Apply(apply) => {
                let outcome = self.apply(&apply, raw);
                if outcome.is_err() {
                    self.revert()?;
                }
                to_json(&outcome?)
            }
            Ask::Open(open) => {
                let (interfaces, wires) = (self.indexes()?, self.wires()?);
                play(&open, &interfaces, &wires, &self.cables, line)
            }
            Ask::Go { .. } => fault("there is nothing to run"),
            Ask::Revert => to_json(&self.revert()?),
            Ask::Clean => to_json(&journal::clean()?),
        }
    }

    fn revert(&mut self) -> Result<Vec<Change>, Fault> {
        self.queues.clear();
        self.cables.clear();
        self.journal.take().map_or_else(|| Ok(Vec::new()), Journal::revert)
    }

    /// The interface of each queue.
    fn indexes(&self) -> Result<Vec<i32>, Fault> {
        let numbered = self.queues.iter().enumerate();
        let names = numbered.map(|(number, queue)| match queue.place {
            Place::Egress => queue.interface.clone(),
            Place::Ingress => ifb_name(number),
        });
        names.map(|name| sys::interface_index(&name)).collect()
    }

    /// The run's cables, each with the interface at which its incoming packets are delayed.
    fn wires(&self) -> Result<Vec<Wire>, Fault> {
        let wire = |cable: &String| {
            let delays = |queue: &Queue| queue.place == Place::Ingress && queue.interface == *cable;
            let delayed = self.queues.iter().position(delays).map(ifb_name);
            Ok(Wire {
                cable: sys::interface_index(cable)?,
                delayed: delayed.map(|name| sys::interface_index(&name)).transpose()?,
            })
        };
        self.cables.iter().map(wire).collect()
    }

    fn apply(&mut self, apply: &Apply, raw: &[u8]) -> Result<Applied, Fault> {
        let mut netlink = Socket::new()?;
        let names: Vec<String> = apply.interfaces.iter().map(|ready| ready.name.clone()).collect();
        untouchable(&mut netlink, &names, apply)?;
        hold(apply.hold_ms.max(1_000));
        let journal = self.journal.insert(Journal::open(&apply.lab, &apply.owner)?);
        for (name, value) in &apply.sysctls {
            let old = change::sysctl(name)?;
            if old != *value {
                let change = Change::Sysctl { name: name.clone(), old };
                journal.make(&change, || network::set(&format!("sysctl {name}"), name, value))?;
            }
        }
        for ready in &apply.interfaces {
            prepare(journal, &mut netlink, ready, apply.offloads)?;
        }
        for (number, queue) in apply.queues.iter().enumerate() {
            install(journal, &mut netlink, number, queue)?;
        }
        load(journal, &apply.programs, raw)?;
        self.queues.clone_from(&apply.queues);
        self.cables.clone_from(&names);
        let mut verified = Vec::new();
        for (queue, index) in apply.queues.iter().zip(self.indexes()?) {
            let comparison = qdisc::compare(&mut netlink, index, &queue.qdisc);
            let summary = comparison.map_err(|fault| fault.at(&queue.interface))?;
            let place = if queue.place == Place::Ingress { " (what comes in)" } else { "" };
            verified.push(format!("{}{place}: {summary}", queue.interface));
        }
        verified.push(format!("{}: tso gso gro off", names.join(" ")));
        let mtus =
            apply.interfaces.iter().map(|ready| format!("{}: mtu {}", ready.name, ready.mtu_bytes));
        verified.extend(mtus);
        let programs = apply.programs.iter().skip(1).map(Part::algorithm);
        verified.extend(programs.map(|name| format!("congestion control {name} in the kernel")));
        let changes = self.journal.as_ref().map_or(0, Journal::changes);
        Ok(Applied { changes, verified })
    }
}

fn ifb_name(number: usize) -> String {
    format!("dragstrip{number}")
}

/// Refuses changes that would lock the user out, or break another's configuration; the conductor has checked before,
/// this check is final.
fn untouchable(netlink: &mut Socket, names: &[String], apply: &Apply) -> Result<(), Fault> {
    let inventory = inventory::interfaces(netlink, names, apply.connection)?;
    for name in names {
        let Some(interface) = inventory.iter().find(|interface| interface.name == *name) else {
            return fault(format!("{name}: there is no such interface"));
        };
        if let Some(why) = &interface.carries {
            return refusal(name, "", format!("carries {why}; give the lab another interface"));
        }
        let replaced = |queue: &Queue| queue.interface == *name && queue.place == Place::Egress;
        if let (Some((kind, handle)), false) = (&interface.foreign, apply.replace_qdisc)
            && apply.queues.iter().any(replaced)
        {
            let expected = "the system's default; replace_qdisc = true to lose it";
            return refusal(format!("{name}: root qdisc"), format!("{kind} {handle}"), expected);
        }
    }
    match apply.queues.iter().find(|queue| !names.contains(&queue.interface)) {
        Some(queue) => fault(format!("{}: is not among the run's interfaces", queue.interface)),
        None => Ok(()),
    }
}

fn prepare(
    journal: &mut Journal,
    netlink: &mut Socket,
    ready: &Ready,
    offloads: bool,
) -> Result<(), Fault> {
    let Ready { name, gso_segments, mtu_bytes } = ready;
    let mtu = sys::interface::mtu(name)?;
    if mtu != *mtu_bytes {
        let expected = format!(
            "{mtu_bytes}, which the scenario has: `ip link set {name} mtu {mtu_bytes}`, or hosts.*.mtu in the experiment"
        );
        return refusal(format!("{name}: mtu"), mtu.to_string(), expected);
    }
    for (offload, set, ask) in OFFLOADS {
        let old = sys::interface::ethtool(name, ask, 0)?;
        if old != 0 && !offloads {
            let expected = "off, or [allow] offloads = true so that it can be turned off";
            return refusal(format!("{name}: {offload}"), "on", expected);
        }
        if old != 0 {
            let change = Change::Offload { interface: name.clone(), what: offload.to_owned(), old };
            journal.make(&change, || sys::interface::ethtool(name, set, 0))?;
            if sys::interface::ethtool(name, ask, 0)? != 0 {
                return fault(format!("{name}: {offload} stays on"));
            }
        }
    }
    let link = change::touchable(netlink, name)?;
    if let Some(segments) = gso_segments.filter(|segments| *segments != link.gso_segments) {
        let change = Change::GsoSegments { interface: name.clone(), old: link.gso_segments };
        journal.make(&change, || change::set_gso_segments(netlink, link.index, segments))?;
    }
    Ok(())
}

fn install(
    journal: &mut Journal,
    netlink: &mut Socket,
    number: usize,
    queue: &Queue,
) -> Result<(), Fault> {
    let Queue { interface, place, qdisc: spec, seed, .. } = queue;
    let link = change::touchable(netlink, interface)?;
    match place {
        Place::Egress => {
            // A change that is made only during the run is in the journal too; until then the system's own discipline
            // is there.
            let change = Change::Root { interface: interface.clone() };
            journal.make(&change, || {
                if *spec == QdiscSpec::NOQUEUE {
                    return Ok(());
                }
                qdisc::install(netlink, link.index, spec, *seed)
            })
        }
        Place::Ingress => {
            let name = ifb_name(number);
            let change = Change::Ifb { name: name.clone() };
            journal.make(&change, || change::make_ifb(netlink, &name))?;
            let ifb = sys::interface_index(&name)?;
            // It goes with its interface.
            qdisc::install(netlink, ifb, spec, *seed)?;
            let change = Change::Ingress { interface: interface.clone() };
            journal.make(&change, || change::redirect(netlink, link.index, ifb))
        }
    }
    .map_err(|fault| fault.at(interface))
}

/// Puts congestion controls into the kernel, which hold no longer than this process.
fn load(journal: &mut Journal, programs: &[Part], raw: &[u8]) -> Result<(), Fault> {
    for part in programs.iter().skip(1) {
        let name = part.algorithm().to_owned();
        if change::algorithms().contains(&name) {
            let expected = "a name that its kernel has not: choose another .name";
            return refusal(format!("load {name}"), "", expected);
        }
        journal.make(&Change::Program { name }, || Ok(()))?;
    }
    journal.hold(machine::install(programs, raw, Programs::ForTheRun)?);
    Ok(())
}

/// Round trips on the path, while nothing else of ours moves; nothing where no ping is answered.
fn ping(source: Ipv4Addr, target: Ipv4Addr, wait_ns: i64) -> Result<Option<RoundTrips>, Fault> {
    let mut pinger = Pinger::open(0xffff, target, PING_BYTES)?;
    sys::bind(&pinger.socket, source, 0)?;
    let mut answers = Vec::new();
    for _ in 0..PINGS {
        pinger.send(0);
        let until = sys::now() + wait_ns.min(5_000_000_000);
        let mut answered = None;
        while answered.is_none() && sys::now() < until {
            let left_ms = ((until - sys::now()) / 1_000_000).clamp(1, 5_000) as i32;
            sys::is_readable_within(&pinger.socket, left_ms);
            answered = pinger.answers().last().map(|(_, rtt)| *rtt);
        }
        answers.extend(answered);
    }
    Ok(RoundTrips::of(answers))
}

fn facts(interfaces: &[String], connection: Option<Connection>) -> Result<Facts, Fault> {
    let mut netlink = Socket::new()?;
    // In a separate process, which may move into namespaces to test the kernel's features.
    let about = Command::new("/proc/self/exe").arg("about").output()?;
    let about: Value = serde_json::from_slice(&about.stdout).unwrap_or_default();
    let words = |value: &Value| -> Vec<String> {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    Ok(Facts {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        boot: inventory::boot()?,
        discipline: sys::clock_discipline(),
        agent: own_hash()?,
        tick_hz: sys::tick_hz(),
        lacks: words(&about["lacks"]),
        algorithms: change::algorithms(),
        btf: fs::exists("/sys/kernel/btf/vmlinux").unwrap_or_default(),
        net_admin: inventory::capable(CAP_NET_ADMIN),
        net_raw: inventory::capable(CAP_NET_RAW),
        forwards: change::sysctl("net.ipv4.ip_forward").is_ok_and(|value| value == "1"),
        interfaces: inventory::interfaces(&mut netlink, interfaces, connection)?,
        holder: journal::holder()?,
    })
}
