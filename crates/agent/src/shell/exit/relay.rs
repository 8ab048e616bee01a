//! The relay: a process in this machine's own network, whose second thread opens sockets in the far end's.

use super::NAME_SERVER;
use super::opening::{self, Kind, Opening};
use crate::fault::Fault;
use crate::sys;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OnceCell, oneshot};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

/// Longest packet of a device.
const PACKET_MAX: usize = 1 << 16;
/// Time that a connection outside may take: what Linux takes with `tcp_syn_retries` of 4.
const CONNECT_WAIT: Duration = Duration::from_secs(31);
/// Time after which a connection outside is closed that the program has not accepted.
const ACCEPT_WAIT: Duration = Duration::from_secs(75);
/// Time without a datagram after which a flow of them ends (RFC 4787 §4.3).
const IDLE: Duration = Duration::from_secs(120);
/// The same of a query for a name, which has one answer.
const DNS_IDLE: Duration = Duration::from_secs(10);
/// Datagrams that a flow keeps until its socket is open.
const EARLY_DATAGRAMS_MAX: usize = 64;
/// Time that connections have to hand on what the path has carried, once the forwarder has ended.
const HAND_ON_WAIT: Duration = Duration::from_secs(3);
const HAND_ON_STEP: Duration = Duration::from_millis(10);
/// Flows of datagrams at once.
const DATAGRAM_FLOWS_MAX: usize = 1024;
/// Addresses at which the far end listens at once.
const LISTENERS_MAX: usize = 4096;
/// Bytes that a connection holds in each direction beside the kernel's buffers.
const COPY_BYTES: usize = 1 << 16;
/// Packets that wait for the relay; the socket holds more of them.
const QUEUED_PACKETS: usize = 256;
/// A wait without an end, ms (poll(2)).
const FOREVER: i32 = -1;
const DNS_PORT: u16 = 53;

type PacketQueue = tokio::sync::mpsc::Sender<Vec<u8>>;

/// Connections and flows of datagrams to the real network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub connections: u64,
    /// Connections that the other end, the network or the relay refused.
    pub refused: u64,
    pub datagram_flows: u64,
    /// Packets of protocols that are not relayed, and datagrams of flows beyond the limit.
    pub not_relayed: u64,
}

/// A socket to open in the far end's namespace.
struct Open {
    at: SocketAddr,
    kind: Socket,
}

enum Socket {
    Listener(oneshot::Sender<io::Result<std::net::TcpListener>>),
    /// The socket of a flow from this address.
    Datagrams(SocketAddr, oneshot::Sender<io::Result<std::net::UdpSocket>>),
}

#[derive(Default)]
struct State {
    /// Addresses at which the far end listens, with whether it can, once that is known.
    listeners: HashMap<SocketAddr, Rc<OnceCell<bool>>>,
    /// By client and target: the connection outside, once it is there.
    pending: HashMap<(SocketAddr, SocketAddr), Option<TcpStream>>,
    /// Flows of datagrams, by client and target: what came before the socket was open, none from then on.
    datagrams: HashMap<(SocketAddr, SocketAddr), Option<Vec<Vec<u8>>>>,
    /// Connections whose client has not closed its side yet.
    uploads: usize,
    counts: Counts,
}

struct Relay {
    state: RefCell<State>,
    device: OwnedFd,
    far: mpsc::Sender<Open>,
    name_server: Option<IpAddr>,
}

/// Relays until the forwarder's side of `packets` closes, and writes the counts there.
pub fn run(namespace: fs::File, device: OwnedFd, packets: OwnedFd) -> Result<(), Fault> {
    let _ = sys::raise_file_limit();
    let (far, requests) = mpsc::channel();
    std::thread::spawn(move || open_sockets(&namespace, &requests));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let relay = Rc::new(Relay {
        state: RefCell::default(),
        device,
        far,
        name_server: first_name_server(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
    });
    let (queue, mut queued) = tokio::sync::mpsc::channel(QUEUED_PACKETS);
    let answers = packets.try_clone()?;
    std::thread::spawn(move || read_packets(&packets, &queue));
    LocalSet::new().block_on(&runtime, async {
        while let Some(packet) = queued.recv().await {
            relay.take(&packet);
        }
        let counts = relay.state.borrow().counts;
        let text = serde_json::to_string(&counts).unwrap_or_default();
        sys::write(&answers, text.as_bytes());
        let _ = timeout(HAND_ON_WAIT, relay.hand_on()).await;
    });
    Ok(())
}

/// The far end's thread.
fn open_sockets(namespace: &fs::File, requests: &mpsc::Receiver<Open>) {
    if sys::enter(namespace).is_err() {
        return;
    }
    while let Ok(Open { at, kind }) = requests.recv() {
        match kind {
            Socket::Listener(answer) => drop(answer.send(std::net::TcpListener::bind(at))),
            Socket::Datagrams(client, answer) => drop(answer.send(datagram_socket(at, client))),
        }
    }
}

/// A socket of one flow: several flows may share a target, so that its address is bound for reuse.
fn datagram_socket(at: SocketAddr, client: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(at), socket2::Type::DGRAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&at.into())?;
    socket.connect(&client.into())?;
    Ok(socket.into())
}

/// The first address of a resolver's configuration (resolv.conf(5)).
fn first_name_server(text: &str) -> Option<IpAddr> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).next()
}

/// Reads packets until the forwarder has closed its side.
fn read_packets(packets: &OwnedFd, queue: &PacketQueue) {
    let mut buffer = vec![0; PACKET_MAX];
    loop {
        if !sys::is_readable_within(packets, FOREVER) {
            continue;
        }
        match sys::read(packets, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
            Ok(length) if queue.blocking_send(buffer[..length].to_vec()).is_ok() => {}
            Ok(_) => return,
        }
    }
}

impl Relay {
    fn take(self: &Rc<Self>, packet: &[u8]) {
        let Some(opening) = opening::read(packet) else { return };
        let key = (opening.from, opening.to);
        match opening.kind {
            Kind::Connection => {
                let mut state = self.state.borrow_mut();
                match state.pending.get(&key) {
                    Some(None) => return, // a copy, while the connection outside is tried
                    Some(Some(_)) => return self.pass_on(packet),
                    None => state.pending.insert(key, None),
                };
                drop(state);
                tokio::task::spawn_local(Rc::clone(self).connect(opening, packet.to_vec()));
            }
            Kind::Datagram => {
                let mut state = self.state.borrow_mut();
                let is_full = state.datagrams.len() >= DATAGRAM_FLOWS_MAX;
                match state.datagrams.get_mut(&key) {
                    Some(None) => return self.pass_on(packet),
                    Some(Some(early)) => {
                        if early.len() < EARLY_DATAGRAMS_MAX {
                            early.push(packet.to_vec());
                        }
                        return;
                    }
                    None if is_full => {
                        state.counts.not_relayed += 1;
                        return;
                    }
                    None => state.datagrams.insert(key, Some(vec![packet.to_vec()])),
                };
                state.counts.datagram_flows += 1;
                drop(state);
                tokio::task::spawn_local(Rc::clone(self).carry_datagrams(opening));
            }
            Kind::Other if opening.protocol == libc::IPPROTO_UDP as u8 => self.pass_on(packet),
            Kind::Other => self.state.borrow_mut().counts.not_relayed += 1,
        }
    }

    /// Gives a packet to the far end's kernel.
    fn pass_on(&self, packet: &[u8]) {
        sys::write(&self.device, packet);
    }

    /// The real address behind one inside; none of those that lead to this machine or nowhere.
    fn outside(&self, to: SocketAddr) -> Option<SocketAddr> {
        if to.ip() == NAME_SERVER {
            let asked = self.name_server.filter(|_| to.port() == DNS_PORT)?;
            return Some(SocketAddr::new(asked, DNS_PORT));
        }
        (is_outside(to.ip()) && !is_own(to)).then_some(to)
    }

    /// Connects outside, and lets the far end's kernel have the first segment: it accepts if that worked, refuses if not, and
    /// has no answer if there was none.
    async fn connect(self: Rc<Self>, opening: Opening, packet: Vec<u8>) {
        let key = (opening.from, opening.to);
        let stream = match self.outside(opening.to) {
            Some(to) => match timeout(CONNECT_WAIT, TcpStream::connect(to)).await {
                Ok(stream) => stream,
                Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
            },
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        };
        if stream.as_ref().is_err_and(is_silence) {
            self.state.borrow_mut().pending.remove(&key);
            return;
        }
        let stream = stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        let listens = match &stream {
            Ok(_) => self.listen(opening.to).await,
            Err(_) => false,
        };
        self.settle(key, stream.ok().filter(|_| listens));
        self.pass_on(&packet);
        if listens {
            sleep(ACCEPT_WAIT).await;
            self.state.borrow_mut().pending.remove(&key);
        }
    }

    /// Keeps a connection until it is accepted, or counts that there is none.
    fn settle(&self, key: (SocketAddr, SocketAddr), stream: Option<TcpStream>) {
        let mut state = self.state.borrow_mut();
        if stream.is_some() {
            state.counts.connections += 1;
            state.pending.insert(key, stream);
        } else {
            state.counts.refused += 1;
            state.pending.remove(&key);
        }
    }

    /// Has the far end listen at an address; false if it cannot. Who asks meanwhile waits for the same answer.
    async fn listen(self: &Rc<Self>, at: SocketAddr) -> bool {
        let cell = {
            let mut state = self.state.borrow_mut();
            if state.listeners.len() >= LISTENERS_MAX && !state.listeners.contains_key(&at) {
                return false;
            }
            Rc::clone(state.listeners.entry(at).or_default())
        };
        let listens = *cell.get_or_init(|| self.open_listener(at)).await;
        if !listens {
            self.state.borrow_mut().listeners.remove(&at);
        }
        listens
    }

    async fn open_listener(self: &Rc<Self>, at: SocketAddr) -> bool {
        let (answer, opened) = oneshot::channel();
        let is_asked = self.far.send(Open { at, kind: Socket::Listener(answer) }).is_ok();
        let listener = if is_asked { opened.await.ok().and_then(Result::ok) } else { None };
        let listener = listener
            .filter(|listener| listener.set_nonblocking(true).is_ok())
            .and_then(|listener| TcpListener::from_std(listener).ok());
        let Some(listener) = listener else { return false };
        tokio::task::spawn_local(Rc::clone(self).accept(at, listener));
        true
    }

    /// Waits until every client that has closed its side is heard outside.
    async fn hand_on(&self) {
        while self.state.borrow().uploads > 0 {
            sleep(HAND_ON_STEP).await;
        }
    }

    async fn accept(self: Rc<Self>, at: SocketAddr, listener: TcpListener) {
        loop {
            let Ok((inner, client)) = listener.accept().await else {
                sleep(Duration::from_millis(100)).await; // no descriptor is free
                continue;
            };
            let outer = self.state.borrow_mut().pending.remove(&(client, at)).flatten();
            match outer {
                Some(outer) => {
                    let relay = Rc::clone(&self);
                    drop(tokio::task::spawn_local(relay.carry_stream(inner, outer)));
                }
                None => drop(inner.set_zero_linger()),
            }
        }
    }

    /// Copies both ways until both ends have closed; an end that resets has the other reset, too. Until the client has closed
    /// its side, whatever ends the relay resets the connection outside: it never looks complete.
    async fn carry_stream(self: Rc<Self>, mut inner: TcpStream, mut outer: TcpStream) {
        let _ = inner.set_nodelay(true);
        let _ = outer.set_zero_linger();
        self.state.borrow_mut().uploads += 1;
        let (from_inner, mut to_inner) = inner.split();
        let (from_outer, mut to_outer) = outer.split();
        let up = async {
            let mut from_inner = BufReader::with_capacity(COPY_BYTES, from_inner);
            let copied = tokio::io::copy_buf(&mut from_inner, &mut to_outer).await;
            let closed = if copied.is_ok() { to_outer.shutdown().await } else { Ok(()) };
            self.state.borrow_mut().uploads -= 1;
            copied?;
            closed?;
            socket2::SockRef::from(to_outer.as_ref()).set_linger(None)
        };
        let down = async {
            let mut from_outer = BufReader::with_capacity(COPY_BYTES, from_outer);
            tokio::io::copy_buf(&mut from_outer, &mut to_inner).await?;
            to_inner.shutdown().await
        };
        if tokio::try_join!(up, down).is_err() {
            let _ = inner.set_zero_linger();
            let _ = outer.set_zero_linger();
        }
    }

    async fn carry_datagrams(self: Rc<Self>, opening: Opening) {
        let key = (opening.from, opening.to);
        if let Ok([inner, outer]) = self.datagram_sockets(&opening).await {
            let early = self.state.borrow_mut().datagrams.insert(key, None);
            for packet in early.flatten().into_iter().flatten() {
                self.pass_on(&packet);
            }
            let idle = if opening.to.port() == DNS_PORT { DNS_IDLE } else { IDLE };
            exchange(&inner, &outer, idle).await;
        }
        self.state.borrow_mut().datagrams.remove(&key);
    }

    /// Sockets of a flow at the far end and outside.
    async fn datagram_sockets(&self, opening: &Opening) -> io::Result<[UdpSocket; 2]> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let to = self.outside(opening.to).ok_or_else(refused)?;
        let outer = UdpSocket::bind(any_of(to)).await?;
        outer.connect(to).await?;
        let (answer, opened) = oneshot::channel();
        let kind = Socket::Datagrams(opening.from, answer);
        self.far.send(Open { at: opening.to, kind }).map_err(|_| refused())?;
        let inner = opened.await.map_err(|_| refused())??;
        inner.set_nonblocking(true)?;
        Ok([UdpSocket::from_std(inner)?, outer])
    }
}

/// True of an address of this machine: its routes lead there from the same address.
fn is_own(to: SocketAddr) -> bool {
    // Connecting a datagram socket sends nothing.
    let from = std::net::UdpSocket::bind(any_of(to))
        .and_then(|socket| socket.connect(to).and_then(|()| socket.local_addr()));
    from.is_ok_and(|from| from.ip() == to.ip())
}

/// Any address and port of the family of `to`.
const fn any_of(to: SocketAddr) -> SocketAddr {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(any, 0)
}

/// True of an error that says nothing about the other end: it did not answer, or no descriptor is free here.
fn is_silence(error: &io::Error) -> bool {
    const NO_DESCRIPTORS: [i32; 2] = [libc::EMFILE, libc::ENFILE];
    matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::TimedOut)
        || error.raw_os_error().is_some_and(|number| NO_DESCRIPTORS.contains(&number))
}

/// True of an address that may be another machine's: neither this machine's loopback nor one inside.
fn is_outside(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_inside = match address {
        IpAddr::V4(address) => address.octets()[..3] == [198, 18, 0],
        IpAddr::V6(address) => address.segments()[..3] == [0x2001, 2, 0],
    };
    !is_inside && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

/// Carries datagrams both ways until none has come for a while, or an end refuses them.
async fn exchange(inner: &UdpSocket, outer: &UdpSocket, idle: Duration) {
    let (mut up, mut down) = (vec![0; PACKET_MAX], vec![0; PACKET_MAX]);
    loop {
        let moved = tokio::select! {
            received = inner.recv(&mut up) => match received {
                Ok(length) => outer.send(&up[..length]).await,
                Err(error) => Err(error),
            },
            received = outer.recv(&mut down) => match received {
                Ok(length) => inner.send(&down[..length]).await,
                Err(error) => Err(error),
            },
            () = sleep(idle) => return,
        };
        if moved.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_the_inside_are_not_outside() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"] {
            assert!(!is_outside(address.parse().unwrap()), "{address}");
        }
        for address in ["198.18.0.1", "198.18.0.200", "2001:2::1", "224.0.0.1", "ff02::1"] {
            assert!(!is_outside(address.parse().unwrap()), "{address}");
        }
        for address in ["192.0.2.1", "198.18.1.1", "10.0.0.1", "2001:db8::1"] {
            assert!(is_outside(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn the_first_name_server_is_asked() {
        let text = "# comment\noptions edns0\nnameserver nothing\nnameserver 192.0.2.5 # x\n\
             nameserver 192.0.2.6\n";
        assert_eq!(first_name_server(text), Some("192.0.2.5".parse().unwrap()));
        assert_eq!(first_name_server("search example.org"), None);
    }
}
