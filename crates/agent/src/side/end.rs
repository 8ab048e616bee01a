//! One end of a flow on a real socket, with its application.

use super::asking::{self, Asking};
use super::cc_state;
use super::message::EndReport;
use super::sending::{Sending, may_be_paced};
use super::tap::TappedPacket;
use crate::fault::{Fault, fault};
use crate::plan::Plan;
use crate::ports::{FIRST_CLIENT_PORT, FIRST_PORT};
use crate::sys;
use dragstrip_recording::{ReceivedRow, Writer};
use dragstrip_scenario::{Application, FlowSpec, Record, SocketBuffers, Transport};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Bytes per write(2), as iperf3 does it.
const WRITE: usize = 128 << 10;
static ZEROS: [u8; WRITE] = [0; WRITE];
/// Ethernet, IP and UDP headers.
const UDP_HEADERS: u64 = 42;

/// Role of an end: client (opens the connection or sends the datagrams) or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Client,
    Server,
}

/// Phase of a flow at one of its ends.
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
    /// Asked to stop.
    Stopped,
}

/// Result of reading a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing to act upon.
    Nothing,
    /// The last byte of a bounded flow.
    Last,
    /// The whole answer, and when the next request is due.
    Answer { next_ns: i64 },
}

/// The number of the flow that a packet may belong to, from its ports.
pub fn flow_of(packet: &TappedPacket) -> Option<usize> {
    packet.source_port.min(packet.target_port).checked_sub(FIRST_PORT).map(usize::from)
}

/// Byte counts at the receiving end of a flow.
#[derive(Default)]
struct Receiving {
    wire_bytes: u64,
    recorded_bytes: u64,
}

/// An end of a flow.
pub struct End<'a> {
    pub flow: usize,
    pub spec: &'a FlowSpec,
    pub role: Role,
    pub phase: Phase,
    /// Addresses of this end's host and of the server's.
    address: Ipv4Addr,
    server_address: Ipv4Addr,
    port: u16,
    client_port: u16,
    /// Listening socket of a server, until the end.
    listener: Option<OwnedFd>,
    /// Socket of the connection; a server of datagrams has only its listener.
    socket: Option<OwnedFd>,
    written: u64,
    allowed: u64,
    /// Bytes that have come to this end's application.
    read: u64,
    /// State of a flow whose data are answers.
    asking: Option<Asking>,
    datagrams: u64,
    ended_ns: Option<i64>,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
}

impl<'a> End<'a> {
    /// Creates an end. `pacing_queue`: a discipline that paces may be at the egress of its host.
    pub fn new(
        flow: usize,
        spec: &'a FlowSpec,
        role: Role,
        plan: &Plan,
        pacing_queue: bool,
    ) -> Result<Self, Fault> {
        let (client, server) = (plan.node(&spec.sender)?, plan.node(&spec.receiver)?);
        let node = if role == Role::Client { client } else { server };
        let source = if spec.application.is_asking() { Role::Server } else { Role::Client };
        let paced =
            spec.transport.cc(role == Role::Server).map(|cc| may_be_paced(cc, pacing_queue));
        let start_ns = spec.start_ns as i64;
        let sending = paced.filter(|_| role == source);
        Ok(Self {
            flow,
            spec,
            role,
            phase: Phase::Waiting,
            address: plan.nodes[node].address,
            server_address: plan.nodes[server].address,
            port: FIRST_PORT + flow as u16,
            client_port: FIRST_CLIENT_PORT + flow as u16,
            listener: None,
            socket: None,
            written: 0,
            allowed: 0,
            read: 0,
            asking: Asking::new(flow, &spec.application),
            datagrams: 0,
            ended_ns: None,
            sending: sending.map(|paced| Sending::new(role == Role::Client, paced, start_ns)),
            receiving: (role != source).then(Receiving::default),
        })
    }

    pub fn is_tcp(&self) -> bool {
        self.congestion().is_some()
    }

    fn congestion(&self) -> Option<&'a str> {
        self.spec.transport.cc(self.role == Role::Server)
    }

    /// Its TCP sends the data that is recorded.
    pub const fn sends(&self) -> bool {
        self.sending.is_some()
    }

    /// Opens a server's socket; the thread is in the host's namespace.
    pub fn listen(&mut self) -> Result<&OwnedFd, Fault> {
        let socket = self.open()?;
        sys::bind(&socket, self.address, self.port)?;
        if self.is_tcp() {
            sys::listen(&socket)?;
        }
        Ok(self.listener.insert(socket))
    }

    fn open(&self) -> Result<OwnedFd, Fault> {
        let Some(name) = self.congestion().map(sys::in_kernel) else {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            self.mark(&socket)?;
            return Ok(socket);
        };
        let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        // Accepted sockets inherit it too.
        self.mark(&socket)?;
        // Closing leaves no state behind: the path may be used for another run a moment later. Accepted sockets
        // inherit it from the listener.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger, "SO_LINGER")?;
        sys::set_congestion(&socket, &name)?;
        let mut cc_bytes = [0; 16];
        let length =
            sys::get_option(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut cc_bytes)?;
        let cc_name = String::from_utf8_lossy(&cc_bytes[..length]);
        if cc_name.trim_end_matches('\0') != name {
            return fault(format!(
                "flow {}: the kernel uses {cc_name}, not {name}",
                self.spec.label
            ));
        }
        if let Transport::Tcp { socket: SocketBuffers { send_bytes, receive_bytes }, .. } =
            self.spec.transport
        {
            for (name, bytes) in [(libc::SO_SNDBUF, send_bytes), (libc::SO_RCVBUF, receive_bytes)] {
                let Some(bytes) = bytes else { continue };
                let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
                sys::set_option(&socket, libc::SOL_SOCKET, name, &bytes, "socket buffer")?;
            }
        }
        Ok(socket)
    }

    /// Sets the flow's DSCP; the kernel keeps TCP's ECN bits.
    fn mark(&self, socket: &OwnedFd) -> Result<(), Fault> {
        if self.spec.dscp == 0 {
            return Ok(());
        }
        let octet = i32::from(self.spec.dscp) << 2;
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, &octet, "IP_TOS")
    }

    /// The flow begins: a client opens its socket; the thread is in the host's namespace.
    pub fn start(&mut self, now_ns: i64) -> Result<Option<&OwnedFd>, Fault> {
        self.phase = Phase::Busy;
        if self.role == Role::Server {
            return Ok(None);
        }
        let socket = self.open()?;
        sys::bind(&socket, self.address, self.client_port)?;
        sys::connect(&socket, self.server_address, self.port)
            .map_err(|fault| fault.at(&self.spec.label))?;
        self.allowed = match self.spec.application {
            Application::Bulk { bytes } => bytes.unwrap_or(u64::MAX),
            Application::OnOff { .. } => u64::MAX,
            Application::RequestResponse { .. } | Application::Video { .. } => {
                self.asking.as_mut().map_or(0, |asking| asking.ask(now_ns))
            }
            // A tunnel is refused with the link that it carries, a video over RTP by the engine; a program has no end of
            // this kind.
            Application::ConstantRate { .. }
            | Application::Rtp { .. }
            | Application::Tunnel { .. }
            | Application::Program { .. } => 0,
        };
        Ok(Some(self.socket.insert(socket)))
    }

    /// Somebody has connected.
    pub fn accept(&mut self) -> Option<&OwnedFd> {
        let accepted = sys::accept(self.listener.as_ref()?)?;
        Some(self.socket.insert(accepted))
    }

    /// Writes what this end may write, until its socket takes no more.
    pub fn pump(&mut self) {
        let (Some(socket), true) = (&self.socket, self.is_tcp()) else { return };
        if self.phase == Phase::Quiet && matches!(self.spec.application, Application::OnOff { .. })
        {
            return;
        }
        while self.written < self.allowed {
            let chunk = (self.allowed - self.written).min(WRITE as u64) as usize;
            let client_requests = self.asking.as_ref().filter(|_| self.role == Role::Client);
            let words =
                client_requests.and_then(|asking| asking.words(self.allowed - self.written));
            let data = words.as_deref().unwrap_or(&ZEROS[..chunk]);
            let Some(accepted) = sys::write(socket, data) else { return };
            self.written += accepted as u64;
        }
    }

    /// Takes what has arrived.
    pub fn take(&mut self, now_ns: i64, tables: &mut Writer) -> Taken {
        if !self.is_tcp() {
            while let Some(bytes) = self.listener.as_ref().and_then(|fd| sys::discard(fd, 0)) {
                self.datagrams += 1;
                self.read += bytes as u64;
                if let Some(receiving) = &mut self.receiving {
                    receiving.wire_bytes += bytes as u64 + UDP_HEADERS;
                }
            }
            return Taken::Nothing;
        }
        let server_requests = self.asking.as_mut().filter(|_| self.role == Role::Server);
        if let (Some(asking), Some(socket)) = (server_requests, &self.socket) {
            self.read += asking.answer(socket);
            self.allowed = asking.answered_bytes();
            self.pump();
            return Taken::Nothing;
        }
        self.read += self.socket.as_ref().map_or(0, asking::discard);
        if let Some(asking) = &mut self.asking
            && self.phase == Phase::Busy
            && self.read >= asking.awaited_bytes()
        {
            self.phase = Phase::Quiet;
            return Taken::Answer { next_ns: asking.answered(now_ns, tables) };
        }
        match (&self.spec.application, self.role) {
            (Application::Bulk { bytes: Some(bytes) }, Role::Server)
                if self.read >= *bytes && self.phase == Phase::Busy =>
            {
                self.arrived(now_ns);
                Taken::Last
            }
            (
                Application::Bulk { .. }
                | Application::OnOff { .. }
                | Application::RequestResponse { .. }
                | Application::Video { .. }
                | Application::ConstantRate { .. }
                | Application::Rtp { .. }
                | Application::Tunnel { .. }
                | Application::Program { .. },
                Role::Client | Role::Server,
            ) => Taken::Nothing,
        }
    }

    /// All that there was to send has arrived at the other end, or at this one.
    pub fn arrived(&mut self, at_ns: i64) {
        if self.phase != Phase::Stopped {
            self.phase = Phase::Finished;
            self.ended_ns.get_or_insert(at_ns);
        }
    }

    /// The next request.
    pub fn ask_again(&mut self, now_ns: i64) {
        if let Some(asking) = &mut self.asking {
            self.allowed = asking.ask(now_ns);
            self.phase = Phase::Busy;
            self.pump();
        }
    }

    /// From sending to silence or back.
    pub fn toggle(&mut self) {
        self.phase = if self.phase == Phase::Busy { Phase::Quiet } else { Phase::Busy };
        self.pump();
    }

    /// Sends a datagram.
    pub fn datagram(&mut self, bytes: u32) {
        let size = (bytes as usize).min(WRITE);
        let send_result = self.socket.as_ref().and_then(|fd| sys::write(fd, &ZEROS[..size]));
        self.datagrams += u64::from(send_result.is_some());
    }

    /// The flow's time is over: the connection is reset.
    pub fn stop(&mut self, now_ns: i64, tables: &mut Writer) -> Result<(), Fault> {
        if let Some(sending) = &mut self.sending {
            sending.read(self.socket.as_ref())?;
            sending.end_interval(now_ns, &mut tables.samples);
        }
        self.ended_ns.get_or_insert(now_ns);
        self.phase = Phase::Stopped;
        self.socket = None;
        Ok(())
    }

    /// A packet of this flow at the host's interfaces. An ACK may give an RTT: (time in the run, RTT).
    pub fn see(&mut self, packet: &TappedPacket, start: i64) -> Option<(i64, i64)> {
        let (local, remote) = match self.role {
            Role::Client => (self.client_port, self.port),
            Role::Server => (self.port, self.client_port),
        };
        if let Some(receiving) = &mut self.receiving
            && !packet.outgoing
            && packet.source_port == remote
            && packet.payload > 0
        {
            receiving.wire_bytes += u64::from(packet.frame);
        }
        self.sending.as_mut()?.see(packet, local, remote, start)
    }

    /// The ports by which a packet belongs to this flow.
    pub fn owns(&self, packet: &TappedPacket) -> bool {
        let ports = [packet.source_port, packet.target_port];
        ports.contains(&self.port) && ports.contains(&self.client_port)
    }

    const fn running(&self) -> bool {
        matches!(self.phase, Phase::Busy | Phase::Quiet)
    }

    /// Rows of `received` and, unless it has one per ACK, of `samples` at the end of an interval.
    pub fn record(
        &mut self,
        now_ns: i64,
        record: &Record,
        tables: &mut Writer,
    ) -> Result<(), Fault> {
        let running = self.running();
        if let Some(receiving) = &mut self.receiving {
            let Receiving { wire_bytes, recorded_bytes } = receiving;
            if running || *wire_bytes > 0 || self.read > *recorded_bytes {
                tables.received.push(ReceivedRow {
                    time_ns: now_ns,
                    flow: self.flow as u32,
                    wire_bytes: *wire_bytes as i64,
                    new_bytes: (self.read - *recorded_bytes) as i64,
                });
                (*wire_bytes, *recorded_bytes) = (0, self.read);
            }
        }
        let Some(sending) = &mut self.sending else { return Ok(()) };
        let sampled = running && self.socket.is_some();
        if sampled || sending.has_open_rows() {
            sending.read(self.socket.as_ref())?;
            let sample = sampled && !record.every_ack;
            if sample {
                sending.sample(self.flow, now_ns, self.written, &mut tables.samples);
            }
            sending.end_interval(now_ns, &mut tables.samples);
            if sample && record.cc_state {
                self.record_cc_state(now_ns, tables)?;
            }
        }
        Ok(())
    }

    /// Rows of `cc_state`.
    fn record_cc_state(&self, time_ns: i64, tables: &mut Writer) -> Result<(), Fault> {
        let Some((socket, cc)) = self.socket.as_ref().zip(self.congestion()) else { return Ok(()) };
        cc_state::record(&mut tables.cc_state, socket, cc, time_ns, self.flow as u32)
    }

    /// A row of `samples` after ACKs that no row has shown yet: the sender's state now that TCP has processed them.
    pub fn record_ack(&mut self, record: &Record, tables: &mut Writer) -> Result<(), Fault> {
        let Some(sending) = &mut self.sending else { return Ok(()) };
        if let Some(time_ns) = sending.take_acked()
            && self.socket.is_some()
        {
            sending.read(self.socket.as_ref())?;
            sending.sample(self.flow, time_ns, self.written, &mut tables.samples);
            if record.cc_state {
                self.record_cc_state(time_ns, tables)?;
            }
        }
        Ok(())
    }

    /// The run is over.
    pub fn finish(&mut self, end_ns: i64, tables: &mut Writer) -> Result<EndReport, Fault> {
        let sender_stats = match &mut self.sending {
            Some(sending) => {
                sending.read(self.socket.as_ref())?;
                sending.end_interval(end_ns, &mut tables.samples);
                Some(sending.report())
            }
            None => None,
        };
        Ok(EndReport {
            flow: self.flow,
            ended_ns: self.ended_ns,
            datagrams: self.datagrams,
            received_bytes: self.receiving.is_some().then_some(self.read),
            client_wire_bytes: None,
            sent: sender_stats,
        })
    }
}
