//! Conformance scripts on the kernel's own socket.
//!
//! Two namespaces and a veth pair between them. The socket lives in the first; the other has no address, so that no
//! kernel answers there: a packet socket captures what leaves and injects the peer's segments.

use crate::fault::{Fault, fault};
use crate::netlink::{Message, Rtnetlink as _, Socket, flag};
use crate::network;
use crate::network::{address, has_accurate_ecn, neighbour, refuse_accurate_ecn, sysctl, up};
use crate::sys::{self, Poll};
use dragstrip_conformance::{Action, Info, Opening, Outcome, Packet, Read, Script, Stack, play};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

mod clock;
mod wire;

/// A request for scripts.
#[derive(Deserialize)]
pub struct Request {
    conform: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    text: String,
}

#[derive(Serialize)]
struct Played {
    name: String,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
struct Answer {
    kernel: String,
    played: Vec<Played>,
}

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// The most that one write(2) is given; in whole segments, so that an endless writer ends on no short one.
const WRITE: usize = 90 * 1460;
static ZEROS: [u8; WRITE] = [0; WRITE];

/// Runs all scripts, one after the other, each in separate namespaces.
pub fn run(request: &Request, progress: &dyn Fn(u64)) -> Result<Vec<u8>, Fault> {
    let home = network::own_namespace()?;
    let mut played = Vec::new();
    for (number, Named { name, text }) in request.conform.iter().enumerate() {
        let script =
            Script::parse(text).map_err(|error| Fault::Failed(format!("{name}: {error}")))?;
        if script.needs_accurate_ecn && !has_accurate_ecn() {
            return Err(refuse_accurate_ecn("SCRIPT", name, "a script without accurate ECN"));
        }
        let mut kernel = Kernel::new(&script).map_err(|fault| fault.at(name))?;
        played.push(Played { name: name.clone(), outcome: play(&script, &mut kernel) });
        drop(kernel);
        sys::enter(&home)?;
        progress(1 + number as u64);
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let answer = Answer { kernel: release.trim().to_owned(), played };
    let mut bytes =
        serde_json::to_vec(&answer).map_err(|error| Fault::Failed(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

struct Kernel {
    wire: OwnedFd,
    wire_poll: Poll,
    both_poll: Poll,
    timer: OwnedFd,
    listener: Option<OwnedFd>,
    socket: Option<OwnedFd>,
    client: bool,
    cc: String,
    /// Bytes that the application still wants to write, and is free to.
    pending: u64,
    /// Most bytes of one write(2), and whether the last one found too little room: then it waits until there is enough.
    write_size: usize,
    waits: bool,
    /// Bytes that it still reads; `None`: no limit.
    to_read: Option<u64>,
    start: i64,
    /// Initial sequence number of the socket, once seen.
    own_isn: Option<u32>,
    scaling: bool,
    /// The shift that the socket announced on its SYN.
    scale: u8,
    seen: Vec<Packet>,
}

impl Kernel {
    fn new(script: &Script) -> Result<Self, Fault> {
        sys::unshare_network()?;
        let peer = network::own_namespace()?;
        quieten()?;
        sys::unshare_network()?;
        let local_namespace = network::own_namespace()?;
        quieten()?;
        connect_namespaces(script, &peer)?;
        for (name, value) in &script.sysctls {
            let whole = if name.contains('.') { name.clone() } else { format!("net.ipv4.{name}") };
            sysctl(&whole, value)?;
        }
        sys::enter(&peer)?;
        let mut netlink = Socket::new()?;
        let peer_interface = sys::interface_index("w1")?;
        up(&mut netlink, peer_interface)?;
        sys::interface::ethtool("w1", 0x2c, 0)?; // gro
        let wire = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        sys::set_option(&wire, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32, "time stamps")?;
        sys::bind_packets(&wire, peer_interface)?;
        sys::enter(&local_namespace)?;
        let (wire_poll, both_poll, timer) = (Poll::new()?, Poll::new()?, sys::timer()?);
        wire_poll.add(&wire, libc::EPOLLIN, 1)?;
        wire_poll.add(&timer, libc::EPOLLIN, 0)?;
        both_poll.add(&wire, libc::EPOLLIN, 1)?;
        both_poll.add(&timer, libc::EPOLLIN, 0)?;
        let client = match script.opening {
            Opening::Client(_) => true,
            Opening::Server(_) => false,
            Opening::Written => script.lines.iter().any(|line| line.action == Action::Connect),
        };
        let mut kernel = Self {
            wire,
            wire_poll,
            both_poll,
            timer,
            listener: None,
            socket: None,
            client,
            cc: script.cc.clone(),
            pending: 0,
            write_size: WRITE / script.segment_bytes() as usize * script.segment_bytes() as usize,
            waits: false,
            to_read: None,
            start: 0,
            own_isn: None,
            scaling: script.peer.scaling && script.sysctl("tcp_window_scaling") != Some("0"),
            scale: 0,
            seen: Vec::new(),
        };
        if !client {
            let listener = kernel.open()?;
            sys::bind(&listener, OWN, wire::OWN_PORT)?;
            sys::listen(&listener)?;
            kernel.listener = Some(listener);
        }
        // Links come up in their own time; timers are compared with the simulator's, whose ticks begin
        // with the run.
        kernel.start = clock::aligned(sys::now() + 500_000_000)?;
        kernel.sleep_until(kernel.start)?;
        while kernel.hear()?.is_some() {}
        kernel.seen.clear();
        Ok(kernel)
    }

    fn open(&self) -> Result<OwnedFd, Fault> {
        let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        sys::set_congestion(&socket, &self.cc)?;
        Ok(socket)
    }

    fn sleep_until(&self, at: i64) -> Result<(), Fault> {
        sys::arm(&self.timer, at)?;
        let mut ready = Vec::new();
        let mut buffer = [0; 2_048];
        while sys::now() < at {
            self.wire_poll.wait(&mut ready, 1_000)?;
            if ready.iter().any(|(token, _)| *token == 1) {
                while sys::receive(&self.wire, &mut buffer).is_some() {}
            }
        }
        Ok(())
    }

    /// Takes one segment off the wire, if there is one.
    fn hear(&mut self) -> Result<Option<()>, Fault> {
        let mut buffer = [0; 2_048];
        let Some(received) = sys::receive_stamped(&self.wire, &mut buffer) else {
            return Ok(None);
        };
        if let Some(raw) = wire::read(&buffer[..received.bytes.min(buffer.len())]) {
            let isn = *self.own_isn.get_or_insert(raw.sequence);
            self.scale = raw.scale.unwrap_or(self.scale);
            let scale = if self.scaling && !raw.packet.syn { self.scale } else { 0 };
            let mut packet = raw.packet;
            packet.at_ns = received.time_ns - self.start;
            packet.seq = i64::from(raw.sequence.wrapping_sub(isn) as i32) - 1;
            packet.window_bytes <<= scale;
            self.seen.push(packet);
        }
        Ok(Some(()))
    }

    /// Performs the application's own calls: accept, read, write.
    fn serve(&mut self) {
        if self.socket.is_none() {
            self.socket = self.listener.as_ref().and_then(sys::accept);
        }
        let Some(socket) = &self.socket else { return };
        while self.to_read != Some(0) {
            let most = self.to_read.unwrap_or(WRITE as u64).min(WRITE as u64) as usize;
            let Some(bytes @ 1..) = sys::discard(socket, most) else { break };
            if let Some(remaining) = &mut self.to_read {
                *remaining -= bytes as u64;
            }
        }
        while self.pending > 0 && (!self.waits || sys::is_writeable(socket)) {
            let size = self.pending.min(self.write_size as u64) as usize;
            let written_bytes = sys::write(socket, &ZEROS[..size]);
            self.waits = written_bytes.is_none_or(|bytes| bytes < size);
            self.pending -= written_bytes.unwrap_or(0) as u64;
            if written_bytes.is_none() {
                return;
            }
        }
    }

    fn pass(&mut self, at: i64, or_departure: bool) -> Result<(), Fault> {
        sys::arm(&self.timer, at)?;
        let mut ready = Vec::new();
        loop {
            self.serve();
            let before = self.seen.len();
            while self.hear()?.is_some() {}
            let has_departed = self.seen.len() > before;
            if sys::now() >= at || (or_departure && has_departed) {
                return Ok(());
            }
            if has_departed {
                continue;
            }
            self.both_poll.wait(&mut ready, 1_000)?;
        }
    }

    /// A frame arrives at the socket's host.
    fn inject_frame(&mut self, frame: &[u8]) -> Result<(), String> {
        if sys::write(&self.wire, frame) != Some(frame.len()) {
            return Err("the packet socket takes no packet".to_owned());
        }
        self.serve();
        Ok(())
    }

    fn look(&self) -> Result<Info, Fault> {
        let Some(socket) = &self.socket else { return fault("there is no connection") };
        let mut bytes = [0; 256];
        sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        let word = |at| i64::from(crate::netlink::word(&bytes, at).unwrap_or_default());
        let long = |at| crate::netlink::long(&bytes, at).unwrap_or_default() as i64;
        let acked = long(120);
        // TCP_CA_Open and so on, linux/tcp.h.
        const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
        let infinite = |value: i64, limit: i64| (value < limit).then_some(value);
        Ok(Info {
            state: (*STATES.get(usize::from(bytes[1])).unwrap_or(&"unknown")).to_owned(),
            cwnd: word(80),
            ssthresh: infinite(word(76), 0x7fff_ffff),
            flight: word(24) + word(36) - word(28) - word(32),
            retrans: word(100),
            srtt_us: word(68),
            min_rtt_us: infinite(word(148), i64::from(u32::MAX)).unwrap_or(0),
            // The SYN counts as a byte.
            acked: (acked - i64::from(self.client)).max(0),
            reordering: word(88),
            lost: word(32),
            notsent: word(144),
            busy_us: Some(long(168)),
            rwnd_limited_us: Some(long(176)),
            sndbuf_limited_us: Some(long(184)),
        })
    }
}

fn quieten() -> Result<(), Fault> {
    sysctl("net.ipv6.conf.all.disable_ipv6", "1")?;
    sysctl("net.ipv6.conf.default.disable_ipv6", "1")
}

/// A veth pair `w0` here, `w1` there.
fn connect_namespaces(script: &Script, peer: &fs::File) -> Result<(), Fault> {
    use std::os::fd::AsRawFd;
    const NEW_LINK: u16 = 16;
    const NEW_ROUTE: u16 = 24;
    let mut netlink = Socket::new()?;
    let mut message = Message::new(NEW_LINK, flag::ACK | flag::CREATE | flag::EXCL, &[0; 16]);
    message.text(3, "w0").bytes(1, &OWN_MAC).u32(4, script.mtu_bytes);
    message.nest(18, |linkinfo| {
        linkinfo.text(1, "veth").nest(2, |data| {
            data.nest(1, |other| {
                other.fixed(&[0; 16]);
                other.text(3, "w1").bytes(1, &PEER_MAC).u32(4, script.mtu_bytes);
                other.u32(28, peer.as_raw_fd() as u32);
            });
        });
    });
    netlink.ask(message).map_err(|fault| fault.at("veth"))?;
    let interface = sys::interface_index("w0")?;
    for offload in [0x1f, 0x24, 0x2c, 0x17] {
        // tso, gso, gro, tx checksums: what is seen is what a wire would carry
        sys::interface::ethtool("w0", offload, 0)?;
    }
    up(&mut netlink, 1)?;
    up(&mut netlink, interface)?;
    address(&mut netlink, interface, OWN.octets())?;
    neighbour(&mut netlink, interface, PEER.octets(), PEER_MAC)?;
    // struct rtmsg: IPv4, /32, main table, boot, link, unicast.
    let fixed = [2, 32, 0, 0, 254, 3, 253, 1, 0, 0, 0, 0];
    let mut route = Message::new(NEW_ROUTE, flag::ACK | flag::CREATE | flag::EXCL, &fixed);
    route.bytes(1, &PEER.octets()).u32(4, interface as u32);
    netlink.ask(route).map_err(|fault| fault.at("route")).map(drop)
}

/// A fault, for the player.
fn to_message<T>(outcome: Result<T, Fault>) -> Result<T, String> {
    outcome.map_err(|fault| fault.to_string())
}

impl Stack for Kernel {
    fn now_ns(&self) -> i64 {
        sys::now() - self.start
    }

    fn until(&mut self, at_ns: i64, or_departure: bool) -> Result<(), String> {
        to_message(self.pass(self.start + at_ns, or_departure))
    }

    fn connect(&mut self) -> Result<(), String> {
        let socket = to_message(self.open())?;
        to_message(sys::bind(&socket, OWN, wire::OWN_PORT))?;
        to_message(sys::connect(&socket, PEER, wire::PEER_PORT))?;
        self.socket = Some(socket);
        Ok(())
    }

    fn write(&mut self, bytes: Option<u64>) -> Result<(), String> {
        self.pending = bytes.map_or(u64::MAX / 2, |bytes| self.pending + bytes);
        self.serve();
        Ok(())
    }

    fn write_by(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > WRITE as u64 {
            return Err(format!("writes of at most {WRITE} bytes"));
        }
        self.write_size = bytes as usize;
        Ok(())
    }

    fn read(&mut self, amount: Read) -> Result<(), String> {
        self.to_read = match amount {
            Read::On => None,
            Read::Off => Some(0),
            Read::Some(bytes) => Some(bytes),
        };
        self.serve();
        // Packets that have not arrived by now are not waited for.
        if self.to_read.is_some() {
            self.to_read = Some(0);
        }
        Ok(())
    }

    fn shutdown(&mut self) -> Result<(), String> {
        let socket = self.socket.as_ref().ok_or("there is no connection")?;
        to_message(sys::shutdown(socket))
    }

    fn too_big(&mut self, seq: i64, mtu: u32) -> Result<(), String> {
        self.inject_frame(&wire::too_big(seq, self.own_isn.unwrap_or_default(), mtu))
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), String> {
        let frame = wire::write(packet, self.own_isn.unwrap_or_default(), self.scaling);
        self.inject_frame(&frame)
    }

    fn departures(&mut self) -> Result<Vec<Packet>, String> {
        while to_message(self.hear())?.is_some() {}
        Ok(std::mem::take(&mut self.seen))
    }

    fn info(&mut self) -> Result<Info, String> {
        to_message(self.look())
    }
}
