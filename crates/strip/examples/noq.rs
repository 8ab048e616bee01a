//! noq as it ships, with rustls, on paths of the strip beside two flows of Linux's CUBIC.
//! `cargo run --locked --release -p dragstrip-strip --example noq` prints the times of a transfer.

#![expect(
    clippy::disallowed_types,
    reason = "noq takes instants of std; this program makes them of the path's time"
)]

use bytes::BytesMut;
use dragstrip_strip::{Datagram, Ecn, End, Strip};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, FourTuple, ServerConfig, StreamEvent,
};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One end: noq's endpoint and its only connection.
struct Side {
    end: End,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    is_connected: bool,
    bytes_read: usize,
}

/// A client and a server of noq at the ends of a path.
struct Pair {
    strip: Strip,
    /// Time of both stacks at the start of the path.
    base: Instant,
    now: Duration,
    client: Side,
    server: Side,
}

fn address(end: End) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1 + end as u8), 443).into()
}

impl Side {
    fn new(end: End, server: Option<Arc<ServerConfig>>) -> Self {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, false);
        Self { end, endpoint, connection: None, is_connected: false, bytes_read: 0 }
    }

    fn handle(&mut self, now: Instant, datagram: &Datagram, strip: &mut Strip) {
        let ecn = noq_proto::EcnCodepoint::from_bits(datagram.ecn as u8);
        let (peer, bytes) = (address(self.end.other()), BytesMut::from(&datagram.payload[..]));
        let mut answer = Vec::new();
        match self.endpoint.handle(now, FourTuple::new(peer, None), ecn, bytes, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            Some(DatagramEvent::Response(response)) => {
                answer.truncate(response.size);
                strip.send(self.end, Datagram { payload: answer, ecn: Ecn::NotEct });
            }
            None => {}
        }
    }

    /// Exchanges events with the connection, reads its streams and sends what it has.
    fn drive(&mut self, now: Instant, strip: &mut Strip) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            self.is_connected |= matches!(event, Event::Connected);
            if let Event::Stream(StreamEvent::Readable { id }) = event {
                readable.push(id);
            }
        }
        readable.extend(std::iter::from_fn(|| connection.streams().accept(Dir::Uni)));
        for id in readable {
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { continue };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.bytes_read += chunk.bytes.len();
            }
            let _ = chunks.finalize();
        }
        let mut burst = Vec::new();
        while let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut burst) {
            let ecn = transmit.ecn.map_or(Ecn::NotEct, |_| Ecn::Ect0);
            let size = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in burst.chunks(size) {
                strip.send(self.end, Datagram { payload: datagram.to_vec(), ecn });
            }
            burst.clear();
        }
    }
}

impl Pair {
    /// Both ends with a certificate of their own, and a connection that has begun.
    fn connect(strip: Strip) -> Result<Self, Box<dyn Error>> {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let key =
            rustls::pki_types::PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certified.cert.der().clone())?;
        let server = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key)?;
        let base = Instant::now();
        let mut client = Side::new(End::Client, None);
        let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        client.connection =
            Some(client.endpoint.connect(base, config, address(End::Server), "localhost")?);
        let server = Side::new(End::Server, Some(Arc::new(server)));
        Ok(Self { strip, base, now: Duration::ZERO, client, server })
    }

    /// Lets path and stacks act until `done`, or until the end of the path; returns true for the former.
    fn drive(&mut self, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            let now = self.base + self.now;
            while let Some(arrival) = self.strip.receive() {
                let side =
                    if arrival.to == End::Client { &mut self.client } else { &mut self.server };
                side.handle(now, &arrival.datagram, &mut self.strip);
            }
            self.client.drive(now, &mut self.strip);
            self.server.drive(now, &mut self.strip);
            if done(self) {
                return true;
            }
            let timers = [&mut self.client, &mut self.server].into_iter().filter_map(|side| {
                let (_, connection) = side.connection.as_mut()?;
                Some(connection.poll_timeout()?.saturating_duration_since(self.base))
            });
            let Some(next) = timers.chain(self.strip.next_event()).min() else { return false };
            if next > self.strip.end() {
                return false;
            }
            self.now = self.now.max(next);
            self.strip.advance(self.now);
        }
    }

    /// Sends a message of this many bytes to the server; the time until its last byte has been read.
    fn send(&mut self, bytes: usize) -> Option<Duration> {
        self.drive(|pair| pair.client.is_connected).then_some(())?;
        let stream = self.client.connection.as_mut()?.1.streams().open(Dir::Uni)?;
        let (start, message, mut written) = (self.now, vec![7; bytes], 0);
        let before = self.server.bytes_read;
        while written < bytes {
            let read = self.server.bytes_read;
            let (_, connection) = self.client.connection.as_mut()?;
            written += connection.send_stream(stream).write(&message[written..]).unwrap_or(0);
            self.drive(|pair| written == bytes || pair.server.bytes_read > read).then_some(())?;
        }
        let (_, connection) = self.client.connection.as_mut()?;
        connection.send_stream(stream).finish().ok()?;
        self.drive(|pair| pair.server.bytes_read == before + bytes).then(|| self.now - start)
    }
}

fn path(queue: &str, rivals: &[&str]) -> Result<Strip, dragstrip_strip::Error> {
    let options = [("rate", "20mbit"), ("rtt", "40ms"), ("queue", queue), ("duration", "60s")];
    Strip::new(&options, rivals, 1)
}

fn main() -> Result<(), Box<dyn Error>> {
    for queue in ["bfifo limit 100kb", "fq_codel"] {
        for rivals in [&[][..], &["cubic", "cubic"]] {
            let mut pair = Pair::connect(path(queue, rivals)?)?;
            let time = pair.send(5_000_000).ok_or("5 MB did not arrive within 60 s")?;
            println!("{queue}, beside {} CUBIC: 5 MB in {:.2} s", rivals.len(), time.as_secs_f64());
        }
    }
    Ok(())
}

#[test]
fn a_message_arrives_on_every_path() -> Result<(), Box<dyn Error>> {
    let mut alone = Pair::connect(path("bfifo limit 100kb", &[])?)?;
    let mut beside = Pair::connect(path("bfifo limit 100kb", &["cubic", "cubic"])?)?;
    let times = [alone.send(1_000_000), beside.send(1_000_000)].map(Option::unwrap_or_default);
    // 1 MB takes 0.4 s at 20 Mbit/s, slow start some round trips; two CUBICs leave a third of the rate or less.
    let range = Duration::from_millis(400)..Duration::from_millis(900);
    assert!(range.contains(&times[0]), "{times:?}");
    assert!(times[1] > times[0] * 2, "{times:?}");
    assert!(beside.strip.rivals().iter().all(|rival| rival.bytes_received > 0));
    Ok(())
}
