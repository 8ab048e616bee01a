//! Links that a kernel cannot have itself: the simulator's, between the two interfaces of a namespace of their own.
//!
//! A thread takes frames from a packet socket at either interface and writes them to the other one when they are due. It
//! runs before everything else that the agent does, so that its lateness is its own time and that of the kernel.

use super::{Carrier, Devices};
use crate::fault::{Fault, fault};
use crate::network::Network;
use crate::plan::{Line, Plan};
use crate::sys::{self, process};
use dragstrip_recording::{QueueRow, Queues};
use dragstrip_scenario::{Record, Scenario, Transport};
use dragstrip_sim::Way;
use dragstrip_units::Instant;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// struct `virtio_net_hdr` (checksums stay the sender's business), and an Ethernet header.
const HEADER_BYTES: usize = 10 + 14;
/// Bytes of packets that wait for the thread at a socket, as the kernel counts them.
const WAITING_BYTES: i32 = 1 << 24;
const STACK_BYTES: usize = 1 << 22;
/// Longest time for which paths are looked at before the traffic.
const IDLE_NS: u64 = 3_600_000_000_000;

/// Packet sockets, by way.
struct Sockets {
    open: Arc<Vec<OwnedFd>>,
    files: Vec<RawFd>,
}

impl Devices for Sockets {
    fn files(&self) -> &[RawFd] {
        &self.files
    }

    fn write(&mut self, way: Way, bytes: &[u8]) -> bool {
        sys::write(&self.open[way.opposite().0], bytes).is_some()
    }

    fn header_bytes(&self) -> usize {
        HEADER_BYTES
    }
}

/// The lines of a plan, ready to be carried.
pub struct Carriers<'p> {
    lines: &'p [Line],
    sockets: Arc<Vec<OwnedFd>>,
    /// The scenario as the simulator is to have it: its links are of interest only.
    scenario: Scenario,
}

/// A thread that carries packets, or will from a time on.
pub struct Running {
    thread: JoinHandle<Option<Carried>>,
    begin: mpsc::Sender<u64>,
    /// Closing it ends the thread.
    stop: OwnedFd,
}

/// Outcome of a run.
pub struct Carried {
    queues: Queues,
    /// By way.
    ways: Vec<Value>,
}

impl<'p> Carriers<'p> {
    /// Opens the sockets of the plan's lines; none if it has no lines.
    pub fn open(
        plan: &'p Plan,
        network: &Network,
        scenario: &Scenario,
    ) -> Result<Option<Self>, Fault> {
        if plan.lines.is_empty() {
            return Ok(None);
        }
        let mut sockets = Vec::new();
        for line in &plan.lines {
            network.places[line.node].enter()?;
            for hop in line.hops_out() {
                sockets.push(socket(network.interfaces[hop])?);
            }
        }
        Ok(Some(Self {
            lines: &plan.lines,
            sockets: Arc::new(sockets),
            scenario: links_of(scenario),
        }))
    }

    /// A thread that carries packets from now on, while paths are looked at before the traffic.
    pub fn start_idle(&self) -> Result<Running, Fault> {
        let mut scenario = self.scenario.clone();
        scenario.changes.clear();
        scenario.cold_arp = false;
        scenario.duration_ns = IDLE_NS;
        scenario.record.interval_ns = IDLE_NS;
        let running = self.prepare(scenario)?;
        running.begin(process::monotonic());
        Ok(running)
    }

    /// A thread that will carry packets for a run.
    pub fn start(&self) -> Result<Running, Fault> {
        self.prepare(self.scenario.clone())
    }

    /// Returns once the thread is ready to begin.
    fn prepare(&self, scenario: Scenario) -> Result<Running, Fault> {
        let (stopped, stop) = process::pipe()?;
        let (begin, begun) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let pairs: Vec<[String; 2]> = self.lines.iter().map(|line| line.ends.clone()).collect();
        let sockets = Sockets {
            files: self.sockets.iter().map(AsRawFd::as_raw_fd).collect(),
            open: Arc::clone(&self.sockets),
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let pairs: Vec<[&str; 2]> =
                pairs.iter().map(|[near, far]| [near.as_str(), far.as_str()]).collect();
            let carrier = Carrier::new(&scenario, &pairs, sockets);
            let (carrier, outcome) = match carrier {
                Ok(carrier) => (Some(carrier), Ok(())),
                Err(fault) => (None, Err(fault)),
            };
            ready.send(outcome).ok()?;
            Some(carry(carrier?, begun.recv().ok()?, &stopped))
        })?;
        match is_ready.recv() {
            Ok(outcome) => outcome.map(|()| Running { thread, begin, stop }),
            Err(_) => fault("the forwarder has not started"),
        }
    }

    /// Adds the queues' rows, and returns each line's figures. The rows are those that the simulator records.
    pub fn record(&self, carried: &Carried, tables: &mut Queues) -> Vec<Value> {
        let rows = &carried.queues;
        let owned = |name: &str| {
            let link = name.strip_suffix(":netem").unwrap_or(name);
            self.lines.iter().any(|line| line.links.iter().any(|owned| owned == link))
        };
        for (row, &word) in rows.link.index().iter().enumerate() {
            let name = &rows.link.names()[word as usize];
            if !owned(name) {
                continue;
            }
            let link = tables.link.word(name);
            tables.push(QueueRow {
                time_ns: rows.time_ns.values()[row],
                link,
                backlog_bytes: rows.backlog_bytes.values()[row],
                backlog_packets: rows.backlog_packets.values()[row],
                enqueued: rows.enqueued.values()[row],
                dropped: rows.dropped.values()[row],
                marked: rows.marked.values()[row],
                sent_bytes: rows.sent_bytes.values()[row],
            });
        }
        let mut ways = carried.ways.iter();
        let described = self.lines.iter().map(|line| {
            let directions: Vec<&Value> = ways.by_ref().take(2).collect();
            json!({"between": line.ends, "links": line.links, "directions": directions})
        });
        described.collect()
    }
}

impl Running {
    /// Instant zero of the network is this time of the monotonic clock (ns).
    pub fn begin(&self, epoch_ns: u64) {
        let _ = self.begin.send(epoch_ns); // a thread that has ended tells when it is stopped
    }

    /// Ends it.
    pub fn stop(self) -> Result<Carried, Fault> {
        drop(self.stop);
        match self.thread.join() {
            Ok(Some(carried)) => Ok(carried),
            Ok(None) | Err(_) => fault("the forwarder has ended before its time"),
        }
    }
}

fn carry(mut carrier: Carrier<Sockets>, epoch_ns: u64, stop: &OwnedFd) -> Carried {
    process::go_first();
    carrier.begin(epoch_ns);
    while !carrier.wait(stop.as_raw_fd(), Instant::NEVER) {
        carrier.round();
    }
    carrier.step();
    let queues = carrier.queues().clone();
    let ledger = carrier.ledger();
    let ways = ledger.totals.iter().zip(&ledger.lateness).zip(carrier.devices.open.iter());
    let ways = ways.map(|((totals, lateness), socket)| {
        let mut way = json!(totals);
        way["lateness"] = json!(lateness.figures());
        way["device_drops"] = sys::interface::dropped_packets(socket).unwrap_or_default().into();
        way
    });
    Carried { ways: ways.collect(), queues }
}

/// A packet socket that takes what comes in at an interface and sends what is written there.
fn socket(interface: i32) -> Result<OwnedFd, Fault> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    for (level, name, value, meaning) in [
        (libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1, "headers of checksums"),
        (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "a socket for what comes in"),
    ] {
        sys::set_option(&socket, level, name, &value, meaning)?;
    }
    for name in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
        // As much as the machine allows.
        let _ = sys::set_option(&socket, libc::SOL_SOCKET, name, &WAITING_BYTES, "a buffer");
    }
    sys::bind_packets(&socket, interface)?;
    Ok(socket)
}

/// linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// The scenario whose links the simulator is to have: kernels have algorithms that it does not know.
fn links_of(scenario: &Scenario) -> Scenario {
    let mut links = scenario.clone();
    links.programs.clear();
    links.record = Record { interval_ns: scenario.record.interval_ns, ..Record::default() };
    for flow in &mut links.flows {
        if let Transport::Tcp { cc, cc_options, receiver_cc, .. } = &mut flow.transport {
            "reno".clone_into(cc);
            (*cc_options, *receiver_cc) = (BTreeMap::new(), None);
        }
    }
    links
}
