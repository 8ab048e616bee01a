//! A program behind a described path, in real time and on this machine: two network namespaces, and between them the
//! simulator's own queues and lines.
//!
//! The request and the answer are JSON in files that the requester hands over by number. The programs live in a process
//! namespace, which ends with this process, and this process with the one that started it.

mod exit;
mod inside;
mod path;
mod recorder;

use crate::fault::{Fault, fault, refusal};
use crate::local_machine::Rights;
use crate::netlink::{Attributes, Message, Rtnetlink as _, Socket, flag};
use crate::{network, record, sys};
use dragstrip_recording::{QueueRow, Queues, Recording, Writer};
use dragstrip_scenario::{NodeSpec, Scenario, Sysctls};
use inside::Outcome;
use path::{Path, Stop};
use recorder::{Names, Openings, Recorded, Recorder, RecorderRequest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;
use sys::process;

const DEVICE: &str = "/dev/net/tun";
/// Name of each end's device.
const INTERFACE: &str = "path";
const MTU_BYTES: u32 = 1500;
/// Packets that a device holds until the forwarder has read them; the kernel's 500 are too few for a burst.
const DEVICE_PACKETS: u32 = 10_000;

/// The request: a scenario's path, and the programs at its ends.
#[derive(Debug, Deserialize)]
pub struct Request {
    pub scenario: Scenario,
    /// Hosts of the server and of the client.
    pub ends: [String; 2],
    /// Congestion control of both.
    pub cc: String,
    /// Empty: none.
    pub server: Vec<String>,
    /// File for what the server prints, open under this number; none: standard error.
    #[serde(default)]
    pub server_output: Option<i32>,
    pub command: Vec<String>,
    /// The command is a shell that controls jobs.
    pub interactive: bool,
    pub environment: BTreeMap<String, String>,
    pub limit_ns: u64,
    /// The real network can be reached through the path.
    pub network: bool,
    /// Request of a recording; none: nothing is recorded.
    pub recorder: Option<RecorderRequest>,
}

/// The network namespace of one end.
pub struct Space {
    pub namespace: fs::File,
    netlink: Socket,
    interface: i32,
}

/// Addresses of the server (0) and the client (1), of the blocks for benchmarks (RFC 2544 §C.2.2, RFC 5180 §8).
pub fn addresses(end: usize) -> [String; 2] {
    let host = if end == 0 { 2 } else { 1 };
    [Ipv4Addr::new(198, 18, 0, host as u8).to_string(), address6(host).to_string()]
}

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

fn server_addresses() -> [IpAddr; 2] {
    [SERVER.into(), address6(2).into()]
}

const fn address6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, host)
}

/// Runs a request of the file `request`, and answers into the file `answer`, both open under these numbers.
pub fn serve(request: i32, answer: i32, parent: i32) -> Result<(), Fault> {
    let mut text = String::new();
    process::inherited(request).read_to_string(&mut text)?;
    let request: Request =
        serde_json::from_str(&text).map_err(|error| Fault::Failed(format!("request: {error}")))?;
    let mut answer = process::inherited(answer);
    let bytes = match run(&request, parent) {
        Ok((recording, outcome)) => record::answer(&recording, outcome, &[]),
        Err(Fault::Refused(field, value, expected)) => {
            format!("{}\n", serde_json::json!({ "refused": [field, value, expected] })).into_bytes()
        }
        Err(fault) => return Err(fault),
    };
    answer.write_all(&bytes)?;
    Ok(())
}

fn run(request: &Request, parent: i32) -> Result<(Recording, serde_json::Value), Fault> {
    process::ignore_terminal();
    let (user, group) = sys::user();
    // A user namespace takes this right away, and children do not inherit it.
    let first = process::go_first();
    if !first {
        sys::raise_priority();
    }
    sys::set_timer_slack()?;
    let wait = || request.network.then(exit::wait).transpose();
    let (rights, waiting) = Rights::take_after(Some(parent), wait)?;
    let mut devices = Vec::new();
    let mut spaces = Vec::new();
    let mut openings = Openings::new();
    for (end, host) in request.ends.iter().enumerate() {
        let (space, device) = build(request, end, host)?;
        if let Some(recorder) = &request.recorder {
            openings.open(recorder, SERVER)?;
        }
        spaces.push(space);
        devices.push(device);
    }
    let (Ok(mut spaces), Ok(devices)) =
        (<[Space; 2]>::try_from(spaces), <[OwnedFd; 2]>::try_from(devices))
    else {
        return fault("a path has two ends");
    };
    let ends = [request.ends[0].as_str(), request.ends[1].as_str()];
    let exit =
        waiting.map(|waiting| waiting.start(&spaces[0].namespace, &devices[0])).transpose()?;
    let inside = server_addresses();
    let mut carrier = path::open(&request.scenario, ends, devices, exit, inside)?;
    let recorder = start_recorder(request, openings, &spaces, &mut carrier)?;
    let (from, to) = process::pipe()?;
    let (listens, listening) = process::pipe()?;
    process::unshare_processes()?;
    let Some(programs) = process::fork()? else {
        let user = (rights == Rights::UserNamespace).then_some((user, group));
        inside::run(request, &spaces, user, (to.into(), listening.into()));
    };
    drop((to, listening));
    let begin_ns = process::monotonic();
    let stop = carrier.run(&from, request.limit_ns);
    let duration_ns = process::monotonic() - begin_ns;
    if stop == Stop::TimedOut {
        process::kill(programs);
    }
    let mut text = String::new();
    fs::File::from(from).read_to_string(&mut text)?;
    sys::reap_until(programs)?;
    if request.interactive {
        process::take_terminal();
    }
    if let (Stop::TimedOut, Some(server)) = (stop, request.server.first())
        && fs::File::from(listens).read(&mut [0])? == 0
    {
        return network::no_listener(
            "--server",
            server,
            None,
            Duration::from_nanos(request.limit_ns),
            "",
        );
    }
    let outcome: Outcome = serde_json::from_str(&text).unwrap_or_default();
    if let Some((field, value, expected)) = outcome.refused {
        return refusal(field, value, expected);
    }
    let outside = carrier.end_exit(stop);
    let (recorded, recording) = recording(recorder, &mut carrier);
    let outcome = serde_json::json!({
        "status": outcome.status,
        "timed_out": stop == Stop::TimedOut,
        "server_status": outcome.server_status,
        "names": outcome.names,
        "rights": rights.name(),
        "ahead": first,
        "duration_ns": duration_ns,
        "directions": directions(&carrier, &mut spaces)?,
        "outside": outside,
        "recorded": recorded,
    });
    Ok((recording, outcome))
}

/// Totals of both directions.
fn directions(carrier: &Path, spaces: &mut [Space; 2]) -> Result<Vec<serde_json::Value>, Fault> {
    let ledger = carrier.ledger();
    let mut directions = Vec::new();
    for (way, name) in ["down", "up"].into_iter().enumerate() {
        let mut direction = serde_json::to_value(&ledger.totals[way]).unwrap_or_default();
        direction["direction"] = name.into();
        direction["lateness"] =
            serde_json::to_value(ledger.lateness[way].figures()).unwrap_or_default();
        direction["device_drops"] = spaces[way].drops()?.into();
        directions.push(direction);
    }
    Ok(directions)
}

/// Ends a recorder, if there is one: figures, and the tables. A fault of it takes no outcome away.
fn recording(recorder: Option<Recorder>, carrier: &mut Path) -> (serde_json::Value, Recording) {
    let Some(recorder) = recorder else {
        return (serde_json::Value::Null, Writer::default().finish());
    };
    let queues = carrier.end_copies().clone();
    match recorder.end() {
        Ok(recorded) => (recorded.about(), with_queues(recorded, &queues).finish()),
        Err(fault) => {
            (serde_json::json!({ "failed": fault.to_string() }), Writer::default().finish())
        }
    }
}

/// Starts what was asked to be recorded.
fn start_recorder(
    request: &Request,
    openings: Openings,
    spaces: &[Space; 2],
    carrier: &mut Path,
) -> Result<Option<Recorder>, Fault> {
    let Some(wanted) = &request.recorder else { return Ok(None) };
    let cc = sys::in_kernel(&request.cc);
    let names = Names { hosts: request.ends.clone(), server: server_addresses(), cc };
    let (recorder, tee) = Recorder::start(wanted, openings, spaces, names)?;
    carrier.copy_to(tee);
    Ok(Some(recorder))
}

/// The tables of a recorder with the queues of the forwarder's intervals, of which it kept every one, or one in so many.
fn with_queues(recorded: Recorded, queues: &Queues) -> Writer {
    let Recorded { mut tables, interval_ns, .. } = recorded;
    for (row, &time_ns) in queues.time_ns.values().iter().enumerate() {
        if time_ns.cast_unsigned() % interval_ns != 0 {
            continue;
        }
        let name = &queues.link.names()[queues.link.index()[row] as usize];
        let link = tables.queues.link.word(name);
        tables.queues.push(QueueRow {
            time_ns,
            link,
            backlog_bytes: queues.backlog_bytes.values()[row],
            backlog_packets: queues.backlog_packets.values()[row],
            enqueued: queues.enqueued.values()[row],
            dropped: queues.dropped.values()[row],
            marked: queues.marked.values()[row],
            sent_bytes: queues.sent_bytes.values()[row],
        });
    }
    tables
}

/// The namespace of an end, with its device, which the thread has entered.
fn build(request: &Request, end: usize, host: &str) -> Result<(Space, OwnedFd), Fault> {
    let defaults = Sysctls::linux_6().values();
    sys::unshare_network()?;
    let namespace = network::own_namespace()?;
    let mut netlink = Socket::new()?;
    network::up(&mut netlink, 1)?;
    for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        if let Some((_, value)) = defaults.iter().find(|(default, _)| *default == name) {
            network::sysctl(name, value)?;
        }
    }
    for (name, value) in [
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.ip_unprivileged_port_start", "0"),
        ("net.ipv4.ping_group_range", "0 0"),
    ] {
        network::sysctl(name, value)?;
    }
    let node = request.scenario.nodes.iter().find_map(|node| match node {
        NodeSpec::Host(spec) if spec.name == host => Some(spec),
        NodeSpec::Host(_) | NodeSpec::Router { .. } => None,
    });
    for (name, value) in node.map(|spec| &spec.sysctl).into_iter().flatten() {
        network::set(&format!("sysctl {name}"), name, value)?;
    }
    let device = process::tun(DEVICE, INTERFACE).or_else(|fault| {
        let expected = if fs::exists(DEVICE).unwrap_or(false) {
            format!(
                "a TUN device that you may open ({fault}): as root, or after `chmod 666 {DEVICE}`"
            )
        } else {
            "a TUN device: `modprobe tun`, or a container started with --device /dev/net/tun"
                .to_owned()
        };
        refusal(DEVICE, "", expected)
    })?;
    let interface = sys::interface_index(INTERFACE)?;
    let mut space = Space { namespace, netlink, interface };
    space.set_up(end, request)?;
    Ok((space, device))
}

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const MAIN_TABLE: u8 = 254;
const LOCAL_TABLE: u8 = 255;
const CREATE: u16 = flag::ACK | flag::CREATE | flag::EXCL;

impl Space {
    /// struct ifinfomsg.
    fn link(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(self.interface.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes
    }

    /// MTU, queue, addresses of both families and a route to the other end, which names the congestion control: a user
    /// namespace may choose there among all that the kernel has loaded.
    /// With the real network, the client's other addresses lie behind the path, and the far end's are all its own.
    fn set_up(&mut self, end: usize, request: &Request) -> Result<(), Fault> {
        let cc = request.cc.as_str();
        let mut message = Message::new(RTM_NEWLINK, flag::ACK, &self.link());
        message.u32(4, MTU_BYTES).u32(13, DEVICE_PACKETS); // IFLA_MTU, IFLA_TXQLEN
        self.netlink.ask(message).map_err(|fault| fault.at(INTERFACE))?;
        network::up(&mut self.netlink, self.interface)?;
        let [host, peer] = if end == 0 { [2_u16, 1] } else { [1, 2] };
        network::address(&mut self.netlink, self.interface, [198, 18, 0, host as u8])?;
        let has_ipv6 = fs::exists("/proc/sys/net/ipv6").unwrap_or(false);
        if has_ipv6 && end == 0 && request.network {
            // IPv6 binds sockets to addresses of interfaces only, whatever the local table has (inet6_bind).
            network::sysctl("net.ipv6.ip_nonlocal_bind", "1")?;
        }
        if has_ipv6 {
            const NODAD: u8 = 2; // IFA_F_NODAD: usable at once
            let mut fixed = vec![10, 128, NODAD, 0];
            fixed.extend(self.interface.to_ne_bytes());
            let mut message = Message::new(RTM_NEWADDR, CREATE, &fixed);
            message.bytes(1, &address6(host).octets()); // IFA_ADDRESS
            self.netlink.ask(message).map_err(|fault| fault.at("IPv6 address"))?;
        }
        let peers =
            [(2, 32, vec![198, 18, 0, peer as u8]), (10, 128, address6(peer).octets().to_vec())];
        for (family, bits, peer) in peers {
            if family == 10 && !has_ipv6 {
                continue;
            }
            let table = if end == 0 && request.network { LOCAL_TABLE } else { MAIN_TABLE };
            self.route((family, bits, table), &peer, cc)?;
            if request.network && end == 0 {
                self.own_all(family)?;
            } else if request.network {
                self.route((family, 0, MAIN_TABLE), &[], cc)?;
            }
        }
        Ok(())
    }

    /// Has the kernel take every address of a family for this host's own that no other route of the local table has.
    fn own_all(&mut self, family: u8) -> Result<(), Fault> {
        const LOOPBACK: u32 = 1;
        let scope = if family == 2 { 254 } else { 0 }; // RT_SCOPE_HOST
        let fixed = [family, 0, 0, 0, LOCAL_TABLE, 3, scope, 2, 0, 0, 0, 0]; // RTN_LOCAL
        let mut message = Message::new(RTM_NEWROUTE, CREATE, &fixed);
        message.u32(4, LOOPBACK); // RTA_OIF
        self.netlink.ask(message).map(drop).map_err(|fault| fault.at("route of all addresses"))
    }

    /// A route to a network, of (family, bits of its prefix, table).
    fn route(
        &mut self,
        (family, bits, table): (u8, u8, u8),
        network: &[u8],
        cc: &str,
    ) -> Result<(), Fault> {
        // struct rtmsg: boot, link scope (IPv4) or universe, unicast.
        let scope = if family == 2 { 253 } else { 0 };
        let fixed = [family, bits, 0, 0, table, 3, scope, 1, 0, 0, 0, 0];
        let mut message = Message::new(RTM_NEWROUTE, CREATE, &fixed);
        if !network.is_empty() {
            message.bytes(1, network); // RTA_DST
        }
        message.u32(4, self.interface as u32); // RTA_OIF
        message.nest(8, |metrics| {
            metrics.text(16, &sys::in_kernel(cc)); // RTA_METRICS: RTAX_CC_ALGO
        });
        self.netlink.ask(message).map(drop).or_else(|fault| {
            let loaded = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            let loaded = loaded.unwrap_or_default();
            let expected = format!("one that this kernel has loaded: {} ({fault})", loaded.trim());
            refusal("--cc", cc, expected)
        })
    }

    /// Packets that the device dropped because the forwarder did not read them in time.
    fn drops(&mut self) -> Result<u64, Fault> {
        let answer = self.netlink.ask(Message::new(RTM_GETLINK, flag::ACK, &self.link()))?;
        const STATS: u16 = 23; // IFLA_STATS64
        const TX_DROPPED: usize = 7;
        let statistics = answer.get(16..).and_then(|rest| Attributes(rest).get(STATS));
        let bytes = statistics.and_then(|all| all.get(8 * TX_DROPPED..8 * TX_DROPPED + 8));
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}
