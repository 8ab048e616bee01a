//! One flow on real sockets: what its application does, and what the kernel says about it.

use crate::cc_state;
use crate::fault::{Fault, fault};
use crate::plan::Plan;
use crate::run::Counts;
use crate::sys;
use crate::tap::{Matcher, Seen};
use dragstrip_recording::{FlowRow, ReceivedRow, SampleRow, Samples, Word, Writer};
use dragstrip_scenario::{Application, FlowSpec, Record, Transport};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Bytes per write(2), as iperf3 does it.
const WRITE: usize = 128 << 10;
static ZEROS: [u8; WRITE] = [0; WRITE];
const FIRST_PORT: u16 = 5001;
const FIRST_CLIENT_PORT: u16 = 30_001;

/// The kernel's counters (netstat -s) that together tell of every loss epoch of a host.
const LOSS_EPOCHS: [&str; 3] = ["TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts"];

/// Where a flow is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not begun.
    Waiting,
    /// Sending, or asking.
    Busy,
    /// Silent, or thinking.
    Quiet,
    /// All that there was to send has arrived.
    Finished,
    /// Told to stop.
    Stopped,
}

/// The parts of TCP_INFO that are recorded (struct tcp_info, linux/tcp.h).
#[derive(Clone, Debug, Default)]
pub struct Info {
    pub state: u8,
    pub ecn: bool,
    pub mss: u64,
    pub cwnd: u64,
    pub ssthresh: Option<u64>,
    pub in_flight: u64,
    pub srtt_us: u64,
    pub min_rtt_us: Option<u64>,
    pub pacing: Option<u64>,
    pub delivery: u64,
    pub bytes_acked: u64,
    pub retransmits: u64,
    pub segments: u64,
    /// Microseconds spent busy, limited by the receiver's window, limited by the send buffer.
    pub busy_us: [u64; 3],
}

impl Info {
    fn read(fd: &OwnedFd) -> Result<Self, Fault> {
        let mut bytes = [0; 256];
        sys::get_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        let word = |at| u64::from(crate::netlink::word(&bytes, at).unwrap_or_default());
        let long = |at| crate::netlink::long(&bytes, at).unwrap_or_default();
        const OPTION_ECN: u8 = 8;
        let infinite = |value: u64, limit: u64| (value < limit).then_some(value);
        Ok(Self {
            state: bytes[1],
            ecn: bytes[5] & OPTION_ECN != 0,
            mss: word(16),
            cwnd: word(80),
            ssthresh: infinite(word(76), 0x7fff_ffff),
            in_flight: (word(24) + word(36)).saturating_sub(word(28) + word(32)),
            srtt_us: word(68),
            min_rtt_us: infinite(word(148), u64::from(u32::MAX)),
            pacing: infinite(long(104), u64::MAX),
            delivery: long(160),
            bytes_acked: long(120),
            retransmits: word(100),
            segments: word(156),
            busy_us: [long(168), long(176), long(184)],
        })
    }
}

/// A flow.
pub struct Flow<'a> {
    pub spec: &'a FlowSpec,
    pub phase: Phase,
    pub sender: usize,
    pub receiver: usize,
    receiver_address: Ipv4Addr,
    port: u16,
    client_port: u16,
    listener: Option<OwnedFd>,
    client: Option<OwnedFd>,
    server: Option<OwnedFd>,
    /// Bytes written by either side, and how many it may have written.
    written: [u64; 2],
    allowed: [u64; 2],
    /// Bytes that have come to either side's application.
    read: [u64; 2],
    rounds: u64,
    pub started_ns: i64,
    pub ended_ns: Option<i64>,
    datagrams: [u64; 2],
    wire_bytes: u64,
    recorded_bytes: u64,
    matcher: Matcher,
    rtt_ns: Option<i64>,
    /// When the last ACK came that no sample has shown yet.
    acked_ns: Option<i64>,
    /// ACKs that came together with a later one and have no sample of their own.
    pub acks_together: u64,
    info: Info,
    /// When the interval began, and `Info::busy_us` then.
    interval: (i64, [u64; 3]),
    /// Rows of `samples` since then: what held the sender back is known at the interval's end.
    rows: Vec<usize>,
    /// Beginnings of CWR, and of any reduction, that samples saw.
    seen_cwr: u64,
    seen_reductions: u64,
}

/// The side that opens the connection, and the other.
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

impl<'a> Flow<'a> {
    pub fn new(index: usize, spec: &'a FlowSpec, plan: &Plan) -> Result<Self, Fault> {
        let node = |name: &str| {
            let found = plan.nodes.iter().position(|node| node.name == name);
            found.ok_or_else(|| Fault::Failed(format!("flow {}: no host {name}", spec.label)))
        };
        let (sender, receiver) = (node(&spec.sender)?, node(&spec.receiver)?);
        Ok(Self {
            spec,
            phase: Phase::Waiting,
            sender,
            receiver,
            receiver_address: plan.nodes[receiver].address,
            port: FIRST_PORT + index as u16,
            client_port: FIRST_CLIENT_PORT + index as u16,
            listener: None,
            client: None,
            server: None,
            written: [0; 2],
            allowed: [0; 2],
            read: [0; 2],
            rounds: 0,
            started_ns: spec.start_ns as i64,
            ended_ns: None,
            datagrams: [0; 2],
            wire_bytes: 0,
            recorded_bytes: 0,
            matcher: Matcher::default(),
            rtt_ns: None,
            acked_ns: None,
            acks_together: 0,
            info: Info::default(),
            interval: (spec.start_ns as i64, [0; 3]),
            rows: Vec::new(),
            seen_cwr: 0,
            seen_reductions: 0,
        })
    }

    pub fn is_tcp(&self) -> bool {
        self.congestion().is_some()
    }

    fn congestion(&self) -> Option<&'a str> {
        match &self.spec.transport {
            Transport::Tcp { cc, .. } => Some(cc),
            Transport::Udp => None,
        }
    }

    fn answers(&self) -> bool {
        matches!(self.spec.application, Application::RequestResponse { .. })
    }

    /// The node whose TCP sends the data that is recorded.
    pub fn data_sender(&self) -> usize {
        if self.answers() { self.receiver } else { self.sender }
    }

    /// The receiving socket; the thread is in the receiver's namespace.
    pub fn listen(&mut self) -> Result<&OwnedFd, Fault> {
        let socket = self.socket()?;
        sys::bind(&socket, Ipv4Addr::UNSPECIFIED, self.port)?;
        if self.is_tcp() {
            sys::listen(&socket)?;
        }
        Ok(self.listener.insert(socket))
    }

    fn socket(&self) -> Result<OwnedFd, Fault> {
        let Some(name) = self.congestion() else {
            return sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        };
        let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        sys::set_congestion(&socket, name)?;
        let mut found = [0; 16];
        let length = sys::get_option(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut found)?;
        let found = String::from_utf8_lossy(&found[..length]);
        if found.trim_end_matches('\0') != name {
            return fault(format!("flow {}: the kernel uses {found}, not {name}", self.spec.label));
        }
        Ok(socket)
    }

    /// Opens the sending socket and begins; the thread is in the sender's namespace.
    pub fn start(&mut self) -> Result<&OwnedFd, Fault> {
        let socket = self.socket()?;
        sys::bind(&socket, Ipv4Addr::UNSPECIFIED, self.client_port)?;
        sys::connect(&socket, self.receiver_address, self.port)
            .map_err(|fault| fault.at(&self.spec.label))?;
        self.phase = Phase::Busy;
        self.allowed[CLIENT] = match self.spec.application {
            Application::Bulk { bytes } => bytes.unwrap_or(u64::MAX),
            Application::OnOff { .. } => u64::MAX,
            Application::RequestResponse { request_bytes, .. } => {
                self.rounds = 1;
                request_bytes
            }
            // A tunnel is refused with the link that it carries.
            Application::ConstantRate { .. } | Application::Tunnel { .. } => 0,
        };
        Ok(self.client.insert(socket))
    }

    /// Somebody has connected.
    pub fn accept(&mut self) -> Option<&OwnedFd> {
        let accepted = sys::accept(self.listener.as_ref()?)?;
        Some(self.server.insert(accepted))
    }

    /// Writes what one side may write, until its socket takes no more.
    pub fn pump(&mut self, side: usize) {
        let socket = if side == CLIENT { &self.client } else { &self.server };
        let (Some(socket), true) = (socket, self.is_tcp()) else { return };
        if self.phase == Phase::Quiet && !self.answers() {
            return;
        }
        while self.written[side] < self.allowed[side] {
            let left = (self.allowed[side] - self.written[side]).min(WRITE as u64) as usize;
            let Some(taken) = sys::write(socket, &ZEROS[..left]) else { return };
            self.written[side] += taken as u64;
        }
    }

    /// Takes what has arrived. Gives true when the client has the whole answer it asked for.
    pub fn take(&mut self, now_ns: i64) -> bool {
        if !self.is_tcp() {
            while let Some(bytes) = self.listener.as_ref().and_then(|fd| sys::discard(fd, 0)) {
                self.datagrams[SERVER] += 1;
                self.read[SERVER] += bytes as u64;
                self.wire_bytes += bytes as u64 + UDP_HEADERS;
            }
            return false;
        }
        for (side, socket) in [(CLIENT, &self.client), (SERVER, &self.server)] {
            let Some(socket) = socket else { continue };
            while let Some(bytes) = sys::discard(socket, WRITE) {
                self.read[side] += bytes as u64;
                if bytes < WRITE {
                    break;
                }
            }
        }
        match self.spec.application {
            Application::Bulk { bytes: Some(bytes) } if self.read[SERVER] >= bytes => {
                if self.phase == Phase::Busy {
                    self.phase = Phase::Finished;
                    self.ended_ns = Some(now_ns);
                }
                false
            }
            Application::RequestResponse { request_bytes, response_bytes, .. } => {
                self.allowed[SERVER] = self.read[SERVER] / request_bytes.max(1) * response_bytes;
                self.pump(SERVER);
                let whole = self.read[CLIENT] >= self.rounds * response_bytes;
                let answered = whole && self.phase == Phase::Busy;
                if answered {
                    self.phase = Phase::Quiet;
                }
                answered
            }
            Application::Bulk { .. }
            | Application::OnOff { .. }
            | Application::ConstantRate { .. }
            | Application::Tunnel { .. } => false,
        }
    }

    /// The next request.
    pub fn ask_again(&mut self) {
        if let Application::RequestResponse { request_bytes, .. } = self.spec.application {
            self.rounds += 1;
            self.allowed[CLIENT] += request_bytes;
            self.phase = Phase::Busy;
            self.pump(CLIENT);
        }
    }

    /// From sending to silence or back.
    pub fn toggle(&mut self) {
        self.phase = if self.phase == Phase::Busy { Phase::Quiet } else { Phase::Busy };
        self.pump(CLIENT);
    }

    /// Sends a datagram.
    pub fn datagram(&mut self, bytes: u32) {
        let size = (bytes as usize).min(WRITE);
        let sent = self.client.as_ref().and_then(|fd| sys::write(fd, &ZEROS[..size]));
        self.datagrams[CLIENT] += u64::from(sent.is_some());
    }

    /// The flow's time is over: the connection is reset.
    pub fn stop(&mut self, now_ns: i64, tables: &mut Writer) -> Result<(), Fault> {
        self.read_info()?;
        self.end_interval(now_ns, &mut tables.samples);
        self.ended_ns.get_or_insert(now_ns);
        self.phase = Phase::Stopped;
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        for socket in [self.client.take(), self.server.take()].into_iter().flatten() {
            if self.is_tcp() {
                sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger, "SO_LINGER")?;
            }
        }
        Ok(())
    }

    /// A packet at the sender's side.
    pub fn at_sender(&mut self, seen: &Seen, start: i64) -> Option<(i64, i64)> {
        let (data_port, ack_port) = if self.answers() {
            (self.port, self.client_port)
        } else {
            (self.client_port, self.port)
        };
        if seen.outgoing && seen.source_port == data_port && seen.payload > 0 {
            self.matcher.sent(seen.time, seen.sequence, seen.payload);
        } else if !seen.outgoing && seen.source_port == ack_port && seen.target_port == data_port {
            if seen.payload == 0 {
                self.acks_together += u64::from(self.acked_ns.is_some());
                self.acked_ns = Some(seen.time - start);
            }
            let rtt = self.matcher.acknowledged(seen.time, seen.acknowledged, &seen.sacked)?;
            self.rtt_ns = Some(rtt);
            return Some((seen.time - start, rtt));
        }
        None
    }

    /// A packet at the receiver's side.
    pub fn at_receiver(&mut self, seen: &Seen) {
        let ours = if self.answers() { self.port } else { self.client_port };
        if !seen.outgoing && seen.source_port == ours && seen.payload > 0 {
            self.wire_bytes += u64::from(seen.frame);
        }
    }

    /// The port by which a packet belongs to this flow.
    pub fn owns(&self, seen: &Seen) -> bool {
        let ports = [seen.source_port, seen.target_port];
        ports.contains(&self.port) && ports.contains(&self.client_port)
    }

    /// A TCP connection that has come about.
    pub const fn connected(&self) -> bool {
        self.info.segments > 0
    }

    /// Both ends agreed on ECN.
    pub const fn has_ecn(&self) -> bool {
        self.info.ecn
    }

    fn data_socket(&self) -> Option<&OwnedFd> {
        if self.answers() { self.server.as_ref() } else { self.client.as_ref() }
    }

    fn read_info(&mut self) -> Result<(), Fault> {
        if !self.is_tcp() {
            return Ok(());
        }
        if let Some(socket) = self.data_socket() {
            let info = Info::read(socket)?;
            const CWR: u8 = 2;
            let begun = info.state >= CWR && self.info.state < CWR;
            self.seen_reductions += u64::from(begun);
            self.seen_cwr += u64::from(begun && info.state == CWR);
            self.info = info;
        }
        Ok(())
    }

    fn new_bytes(&self) -> u64 {
        self.read[if self.answers() { CLIENT } else { SERVER }]
    }

    /// Rows of `received` and, unless it has one per ACK, of `samples` at the end of an interval.
    pub fn record(
        &mut self,
        index: usize,
        now_ns: i64,
        what: &Record,
        tables: &mut Writer,
    ) -> Result<(), Fault> {
        let running = !matches!(self.phase, Phase::Waiting | Phase::Stopped | Phase::Finished);
        let new_bytes = self.new_bytes();
        if running || self.wire_bytes > 0 || new_bytes > self.recorded_bytes {
            tables.received.push(ReceivedRow {
                time_ns: now_ns,
                flow: index as u32,
                wire_bytes: self.wire_bytes as i64,
                new_bytes: (new_bytes - self.recorded_bytes) as i64,
            });
            (self.wire_bytes, self.recorded_bytes) = (0, new_bytes);
        }
        let sampled = running && self.is_tcp() && self.data_socket().is_some();
        if sampled || !self.rows.is_empty() {
            self.read_info()?;
            if sampled && !what.every_ack {
                self.sample(index, now_ns, what, tables)?;
            }
            self.end_interval(now_ns, &mut tables.samples);
        }
        Ok(())
    }

    /// A row of `samples` after ACKs that no row has shown yet: how the sender stands now that TCP has taken them in.
    pub fn record_ack(
        &mut self,
        index: usize,
        what: &Record,
        tables: &mut Writer,
    ) -> Result<(), Fault> {
        if let Some(time_ns) = self.acked_ns.take()
            && self.data_socket().is_some()
        {
            self.read_info()?;
            self.sample(index, time_ns, what, tables)?;
        }
        Ok(())
    }

    /// Says of an interval's rows what held the sender back longest in it, by the kernel's own clocks.
    fn end_interval(&mut self, now_ns: i64, table: &mut Samples) {
        let (begun_ns, before) = std::mem::replace(&mut self.interval, (now_ns, self.info.busy_us));
        let grown = |which: usize| self.info.busy_us[which].saturating_sub(before[which]);
        let (busy, rwnd, sndbuf) = (grown(0), grown(1), grown(2));
        let spent = [
            ("cwnd", busy.saturating_sub(rwnd + sndbuf)),
            ("rwnd", rwnd),
            ("sndbuf", sndbuf),
            ("app", ((now_ns - begun_ns) as u64 / 1_000).saturating_sub(busy)),
        ];
        let longest = spent.iter().rev().max_by_key(|(_, time)| *time);
        let limit = table.limited_by.word(longest.map_or("cwnd", |(name, _)| *name));
        for row in self.rows.drain(..) {
            table.limited_by.set(row, limit);
        }
    }

    /// A row of `samples`, and of `cc_state` one per variable.
    fn sample(
        &mut self,
        index: usize,
        now_ns: i64,
        what: &Record,
        tables: &mut Writer,
    ) -> Result<(), Fault> {
        if what.cc_state
            && let Some((socket, cc)) = self.data_socket().zip(self.congestion())
        {
            cc_state::record(&mut tables.cc_state, socket, cc, now_ns, index as u32)?;
        }
        let table = &mut tables.samples;
        let info = &self.info;
        let some = |value: u64| (value > 0).then_some(value as i64);
        let state = match info.state {
            0 if info.ssthresh.is_none_or(|ssthresh| info.cwnd < ssthresh) => "slow_start",
            0 => "congestion_avoidance",
            1 => "disorder",
            2 => "cwr",
            3 => "recovery",
            _ => "loss",
        };
        let row = SampleRow {
            time_ns: now_ns,
            flow: index as u32,
            cwnd_bytes: (info.cwnd * info.mss) as i64,
            ssthresh_bytes: info.ssthresh.map(|packets| (packets * info.mss) as i64),
            bytes_in_flight: (info.in_flight * info.mss) as i64,
            srtt_ns: some(info.srtt_us * 1_000),
            rtt_ns: self.rtt_ns,
            min_rtt_ns: info.min_rtt_us.map(|us| (us * 1_000) as i64),
            pacing_bps: info.pacing.map(|bytes| (bytes * 8) as i64),
            delivery_bps: some(info.delivery * 8),
            bytes_acked: self.bytes_acked() as i64,
            bytes_written: self.written[if self.answers() { SERVER } else { CLIENT }] as i64,
            retransmits: info.retransmits as i64,
            state: table.state.word(state),
            limited_by: Word::default(), // known at the interval's end
        };
        self.rows.push(table.push(row));
        Ok(())
    }

    /// The kernel counts the SYN of the side that opened the connection.
    fn bytes_acked(&self) -> u64 {
        if self.answers() { self.info.bytes_acked } else { self.info.bytes_acked.saturating_sub(1) }
    }

    /// The flow's row; `counts` are its host's if no other flow shares that host. They tell of every recovery
    /// and timeout; the kernel keeps no count of CWR (ECN), so samples tell of it.
    pub fn finish(
        &mut self,
        index: usize,
        end_ns: i64,
        counts: Option<&Counts>,
        tables: &mut Writer,
    ) -> Result<(), Fault> {
        self.read_info()?;
        self.end_interval(end_ns, &mut tables.samples);
        let lost = self.datagrams[CLIENT].saturating_sub(self.datagrams[SERVER]) as i64;
        let tcp = self.is_tcp();
        let count = |counts: &Counts, name| counts.get(name).copied().unwrap_or_default();
        let timeouts =
            if tcp { counts.map(|counts| count(counts, "TCPTimeouts")) } else { Some(0) };
        let reductions = counts.map_or(self.seen_reductions, |counts| {
            LOSS_EPOCHS.iter().map(|name| count(counts, name)).sum::<u64>() + self.seen_cwr
        });
        let table = &mut tables.flows;
        let row = FlowRow {
            flow: index as u32,
            label: table.label.word(&self.spec.label),
            protocol: table.protocol.word(if tcp { "tcp" } else { "udp" }),
            cc: table.cc.word(self.congestion().unwrap_or("")),
            sender: table.sender.word(&self.spec.sender),
            receiver: table.receiver.word(&self.spec.receiver),
            start_ns: self.started_ns,
            stop_ns: self.ended_ns.unwrap_or(end_ns),
            bytes_acked: if tcp { self.bytes_acked() as i64 } else { 0 },
            bytes_received: self.new_bytes() as i64,
            segments_sent: if tcp { self.info.segments } else { self.datagrams[CLIENT] } as i64,
            retransmits: self.info.retransmits as i64,
            rto_count: timeouts.map(|count| count as i64),
            reductions: reductions as i64,
            ecn_negotiated: self.info.ecn,
            datagrams_lost: (!tcp).then_some(lost),
        };
        table.push(row);
        Ok(())
    }
}

/// Ethernet, IP and UDP headers.
const UDP_HEADERS: u64 = 42;
