//! Records what happens on a path while programs use it: a thread beside the forwarder, which gets copies of the packets,
//! asks the kernels of both ends about their sockets, pings, writes captures and says once a second how things stand.
//!
//! Nothing here delays a packet. What the forwarder copies waits in memory, within bounds.

mod connection;
mod connections;
mod owners;
mod rows;
mod sockets;
mod tee;

pub use rows::Names;
use tee::Ending;
pub use tee::{Head, Message, PathState, Tee, WayState};

use super::Space;
use crate::fault::{Fault, fault};
use crate::side::{Pinger, probe_row};
use crate::sys::process;
use connections::{Connections, Totals};
use dragstrip_capture::format::{INBOUND, OUTBOUND};
use dragstrip_capture::write::{File, Section};
use dragstrip_packet::ETHERNET_BYTES;
use dragstrip_recording::Writer;
use dragstrip_units::Instant;
use serde::{Deserialize, Serialize};
use sockets::Sockets;
use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time after an interval's end in which the forwarder's copies of its packets come.
const GRACE_NS: u64 = 3 * tee::AGE_NS;
/// Least time after a look for new connections' sockets, and in multiples of what it took.
const LOOK_NS: u64 = 20_000_000;
const LOOK_COSTS: u64 = 10;
/// Time between two messages about the path, and so between two lines.
pub const PATH_NS: u64 = 1_000_000_000;

/// The request: files are open under these numbers.
#[derive(Clone, Debug, Deserialize)]
pub struct RecorderRequest {
    /// Length of an interval.
    interval_ns: u64,
    /// Time between two pings, and their label and target in the table; none: no pings.
    ping: Option<PingRequest>,
    captures: Option<CaptureRequest>,
    /// Gets a line of JSON every second.
    live: Option<i32>,
}

#[derive(Clone, Debug, Deserialize)]
struct PingRequest {
    interval_ns: u64,
    size_bytes: usize,
    label: String,
    target: String,
}

#[derive(Clone, Debug, Deserialize)]
struct CaptureRequest {
    /// Files of the server's host and of the client's.
    files: [Option<i32>; 2],
    /// Names of both hosts.
    points: [String; 2],
    snaplen: u32,
    program: String,
    comment: String,
}

/// Tables and counts of a recorder at its end.
pub struct Recorded {
    pub tables: Writer,
    /// Length of an interval in them.
    pub interval_ns: u64,
    /// Time of the path at its end.
    duration_ns: u64,
    summary: Summary,
}

impl Recorded {
    /// The figures beside the tables.
    pub fn about(&self) -> serde_json::Value {
        let Self { interval_ns, duration_ns, summary, .. } = self;
        serde_json::json!({
            "interval_ns": interval_ns, "duration_ns": duration_ns, "summary": summary,
        })
    }
}

/// Figures beside the tables.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    totals: Totals,
    /// Packets that the recorder did not see, because it was behind.
    pub missing: u64,
    /// Packets in the captures, by host.
    captured: [u64; 2],
}

/// The forwarder's side: the thread, and where it gets its packets from.
pub struct Recorder {
    thread: JoinHandle<Result<Recorded, Fault>>,
}

/// Sockets that a recorder needs, opened in the namespaces that they look at.
pub struct Openings {
    sockets: Vec<Sockets>,
    pinger: Option<Pinger>,
}

impl Openings {
    pub const fn new() -> Self {
        Self { sockets: Vec::new(), pinger: None }
    }

    /// Opens those of a host, in whose namespace this thread is: the server's first.
    pub fn open(&mut self, request: &RecorderRequest, server: Ipv4Addr) -> Result<(), Fault> {
        self.sockets.push(Sockets::open()?);
        if let (Some(ping), 2) = (&request.ping, self.sockets.len()) {
            self.pinger = Some(Pinger::open(std::process::id() as u16, server, ping.size_bytes)?);
        }
        Ok(())
    }
}

impl Recorder {
    /// Starts the thread, which waits for its first message and holds no lock until then; returns the forwarder's side too.
    pub fn start(
        request: &RecorderRequest,
        openings: Openings,
        spaces: &[Space; 2],
        names: Names,
    ) -> Result<(Self, Tee), Fault> {
        let Openings { sockets, pinger } = openings;
        let Ok(sockets) = <[Sockets; 2]>::try_from(sockets) else { return fault("two ends") };
        let (to, from) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let snaplen = request.captures.as_ref().map_or(0, |captures| captures.snaplen as usize);
        let tee = Tee::new(to, snaplen.max(tee::HEADERS_BYTES), waiting.clone());
        let namespaces = [spaces[0].namespace.try_clone()?, spaces[1].namespace.try_clone()?];
        let mut desk = Desk {
            connections: Connections::new(request.interval_ns),
            tables: Writer::default(),
            sockets,
            namespaces,
            pings: request.ping.clone().zip(pinger),
            captures: Captures::open(request.captures.as_ref()),
            live: request.live.map(process::inherited),
            path: (0, PathState::default()),
            epoch_ns: 0,
            look_due_ns: 0,
            list_due_ns: request.interval_ns,
            interval_ns: request.interval_ns,
            ping_due_ns: 0,
        };
        let thread = std::thread::spawn(move || {
            let ending = desk.run(&from, &waiting)?;
            desk.conclude(ending, &names)
        });
        Ok((Self { thread }, tee))
    }

    /// Waits for what it has, after [`Message::End`].
    pub fn end(self) -> Result<Recorded, Fault> {
        self.thread.join().unwrap_or_else(|_| fault("the recorder failed"))
    }
}

/// State of the thread.
struct Desk {
    connections: Connections,
    tables: Writer,
    sockets: [Sockets; 2],
    namespaces: [fs::File; 2],
    pings: Option<(PingRequest, Pinger)>,
    captures: Captures,
    live: Option<fs::File>,
    /// Counters of the path, and when they were told.
    path: (u64, PathState),
    epoch_ns: u64,
    /// Kernels may be asked about new connections.
    look_due_ns: u64,
    list_due_ns: u64,
    interval_ns: u64,
    ping_due_ns: u64,
}

impl Desk {
    fn now_ns(&self) -> u64 {
        process::monotonic().saturating_sub(self.epoch_ns)
    }

    /// Works until the path's time ends.
    fn run(&mut self, from: &Receiver<Message>, waiting: &AtomicUsize) -> Result<Ending, Fault> {
        match from.recv() {
            Ok(Message::Begin(epoch_ns)) => self.epoch_ns = epoch_ns,
            Ok(Message::Packets(_) | Message::Path(_) | Message::End(_)) | Err(_) => {
                return Ok(Ending::default()); // nothing was started
            }
        }
        loop {
            let message = match from.try_recv() {
                Ok(message) => Ok(message),
                Err(_) => {
                    self.act()?; // with all packets so far, however late this thread is
                    from.recv_timeout(Duration::from_nanos(self.wait_ns()))
                }
            };
            match message {
                Ok(Message::Packets(buffer)) => {
                    waiting.fetch_sub(buffer.len(), Ordering::Relaxed);
                    tee::read(&buffer, |head| {
                        self.captures.add(&head);
                        self.connections.see(&head);
                    });
                }
                Ok(Message::Path(state)) => self.say(state),
                Ok(Message::End(ending)) => {
                    self.list()?;
                    return Ok(ending);
                }
                Ok(Message::Begin(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Ending { at_ns: self.now_ns(), missing: 0 });
                }
            }
        }
    }

    fn wait_ns(&self) -> u64 {
        let close_ns = self.connections.due_ns() + GRACE_NS;
        let ping_ns = if self.pings.is_some() { self.ping_due_ns } else { u64::MAX };
        let due_ns = close_ns.min(self.list_due_ns).min(ping_ns);
        due_ns.saturating_sub(self.now_ns()).clamp(1_000_000, LOOK_NS)
    }

    /// Everything that is due.
    fn act(&mut self) -> Result<(), Fault> {
        let now_ns = self.now_ns();
        if let Some((request, pinger)) = &mut self.pings {
            pinger.record(&mut self.tables.probes);
            if now_ns >= self.ping_due_ns {
                let row = probe_row(
                    &mut self.tables.probes,
                    now_ns as i64,
                    &request.label,
                    &request.target,
                );
                pinger.send(row);
                self.ping_due_ns = now_ns + request.interval_ns;
            }
        }
        let is_new = self.connections.has_strangers() && now_ns >= self.look_due_ns;
        if is_new || now_ns >= self.list_due_ns {
            self.list()?;
        }
        if now_ns >= self.connections.due_ns() + GRACE_NS {
            self.connections.close_until(now_ns - GRACE_NS);
        }
        Ok(())
    }

    /// Asks both kernels about their sockets.
    fn list(&mut self) -> Result<(), Fault> {
        let begin_ns = self.now_ns();
        self.list_due_ns = (begin_ns / self.interval_ns + 1) * self.interval_ns;
        let [server, client] = &mut self.sockets;
        let lists = [server.list()?, client.list()?];
        self.connections.learn(begin_ns, lists, || owners::programs(&self.namespaces));
        let end_ns = self.now_ns();
        self.look_due_ns = end_ns + LOOK_NS.max(LOOK_COSTS * (end_ns - begin_ns));
        Ok(())
    }

    /// Says how things stand: bytes that arrived, drops and marks since the last line, and what waits now.
    fn say(&mut self, state: PathState) {
        let now_ns = self.now_ns();
        let (before_ns, before) = std::mem::replace(&mut self.path, (now_ns, state));
        let Some(live) = &mut self.live else { return };
        let elapsed_s = now_ns.saturating_sub(before_ns).max(1) as f64 / 1e9;
        let ways: Vec<_> = (state.ways.iter().zip(before.ways))
            .map(|(now, before)| {
                let rate_bps = (now.bytes_out - before.bytes_out) as f64 * 8.0 / elapsed_s;
                serde_json::json!({
                    "rate_bps": rate_bps.round() as u64,
                    "backlog_bytes": now.backlog_bytes,
                    "drops": now.drops - before.drops,
                    "marks": now.marks - before.marks,
                })
            })
            .collect();
        let (rtt_ns, flows) = self.connections.busiest();
        let line = serde_json::json!({
            "time_ns": now_ns, "ways": ways, "rtt_ns": rtt_ns, "flows": flows,
        });
        let _ = live.write_all(format!("{line}\n").as_bytes()); // nobody may read it any more
    }

    fn conclude(self, ending: Ending, names: &Names) -> Result<Recorded, Fault> {
        let Ending { at_ns: end_ns, missing } = ending;
        let Self { connections, mut tables, pings, captures, .. } = self;
        if let Some((_, mut pinger)) = pings {
            pinger.record(&mut tables.probes);
        }
        let (interval_ns, totals) = connections.conclude(end_ns, names, &mut tables);
        let captured = captures.finish(end_ns, missing)?;
        Ok(Recorded {
            tables,
            interval_ns,
            duration_ns: end_ns,
            summary: Summary { totals, missing, captured },
        })
    }
}

/// Captures at the two hosts.
struct Captures {
    files: [Option<(File<fs::File>, u64)>; 2],
    snaplen: usize,
}

impl Captures {
    fn open(request: Option<&CaptureRequest>) -> Self {
        let files = [0, 1].map(|host: usize| {
            let request = request?;
            let file = process::inherited(request.files[host]?);
            let section = Section { program: &request.program, comment: &request.comment };
            let (point, snaplen) = (&request.points[host], request.snaplen);
            let description = "the interface of a host, as the forwarder reads and writes it";
            Some((File::new(file, &section, point, description, snaplen), 0))
        });
        Self { files, snaplen: request.map_or(0, |request| request.snaplen as usize) }
    }

    /// A packet, as an Ethernet without addresses would carry it.
    fn add(&mut self, head: &Head<'_>) {
        let Some((file, count)) = &mut self.files[head.host] else { return };
        let mut frame = vec![0; ETHERNET_BYTES as usize];
        let is_ipv6 = head.bytes.first().is_some_and(|first| first >> 4 == 6);
        frame[12..14].copy_from_slice(if is_ipv6 { &[0x86, 0xdd] } else { &[8, 0] });
        frame.extend_from_slice(head.bytes);
        frame.truncate(self.snaplen);
        let direction = if head.outgoing { OUTBOUND } else { INBOUND };
        let at = Instant::from_nanos(head.at_ns);
        file.add_bytes(at, direction, head.length + ETHERNET_BYTES, &frame);
        *count += 1;
    }

    /// Ends the files; returns the packets in each.
    fn finish(self, end_ns: u64, missing: u64) -> Result<[u64; 2], Fault> {
        let mut packets = [0; 2];
        for (host, capture) in self.files.into_iter().enumerate() {
            if let Some((mut file, count)) = capture {
                file.note_missing(missing);
                let finished = file.finish(Instant::from_nanos(end_ns));
                finished.map_err(|error| Fault::Failed(format!("captures: {error}")))?;
                packets[host] = count;
            }
        }
        Ok(packets)
    }
}
