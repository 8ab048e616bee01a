//! s2n-quic: its endpoint takes the time and the network as arguments, and its randomness from a provider.

mod config;
mod crypto;
mod providers;

use crate::connection::{Connection, PORTS};
use crate::contract::{Outbox, Role, Settings, Snapshot};
use crate::data::{Data, ZEROES};
use bytes::Bytes;
use config::Config;
use dragstrip_cc::program::Fault;
use dragstrip_scenario::quic::Algorithm;
use dragstrip_units::Instant;
use providers::{Engine, Figures, Incoming, Watch, lock};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::recovery::congestion_controller;
use s2n_quic_core::recovery::{bbr, cubic};
use s2n_quic_core::stream::StreamType;
use s2n_quic_core::time::{Clock as _, NoopClock, Timestamp};
use s2n_quic_transport::endpoint::{
    Endpoint,
    connect::{Attempt, Connect},
    handle::{Acceptor, Connector},
};
use s2n_quic_transport::stream::Stream;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SERVER_NAME: &str = "dragstrip.invalid";

/// Handles of one end, which threads may send to each other but not share.
#[derive(Default)]
struct Handles {
    engine: Option<Box<dyn Engine>>,
    connector: Option<Connector>,
    acceptor: Option<Acceptor>,
    attempt: Option<Pin<Box<Attempt>>>,
    connection: Option<s2n_quic_transport::connection::Connection>,
    outgoing: Vec<Stream>,
    incoming: Vec<Stream>,
}

/// One end of a connection.
struct End {
    handles: Mutex<Handles>,
    figures: Arc<Mutex<Figures>>,
    role: Role,
    stream_count: u32,
    data: Data,
    buffer: Vec<u8>,
    established: bool,
    loss: Option<String>,
    deadline: Instant,
    /// Figures after the last input.
    last: Figures,
    rtt_new: bool,
}

/// The stack's form of an instant: its resolution is a microsecond.
fn stack_time(now: Instant) -> Timestamp {
    NoopClock.get_time() + Duration::from_nanos(now.as_nanos())
}

fn simulated_time(at: Timestamp) -> Instant {
    let since = at.saturating_duration_since(NoopClock.get_time()).as_nanos();
    Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}

fn address(role: Role) -> SocketAddress {
    let (host, port) = match role {
        Role::Client => (1, PORTS[0]),
        Role::Server => (2, PORTS[1]),
    };
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), port)).into()
}

/// Starts one end with a congestion control.
fn start<C: congestion_controller::Endpoint>(
    settings: &Settings<'_>,
    watch: Watch,
    control: C,
) -> Handles {
    let mut handles = Handles::default();
    match settings.role {
        Role::Client => {
            let config = Config::<false, C>::new(settings, watch, control);
            let (endpoint, connector) = Endpoint::new_client(config);
            handles.engine = Some(Box::new(endpoint));
            handles.connector = Some(connector);
        }
        Role::Server => {
            let config = Config::<true, C>::new(settings, watch, control);
            let (endpoint, acceptor) = Endpoint::new_server(config);
            handles.engine = Some(Box::new(endpoint));
            handles.acceptor = Some(acceptor);
        }
    }
    handles
}

/// A congestion control of the stack's, with an initial window in bytes where one is given.
macro_rules! control {
    ($kind:ident, $window:expr) => {{
        let builder = $kind::builder::Builder::default();
        match $window {
            Some(bytes) => builder.with_initial_congestion_window(bytes).build(),
            None => builder.build(),
        }
    }};
}

pub(crate) fn connection(
    settings: &Settings<'_>,
    algorithm: Algorithm,
) -> Box<dyn Connection + Send + Sync> {
    let figures = Arc::<Mutex<Figures>>::default();
    let is_bbr = matches!(algorithm, Algorithm::Bbr | Algorithm::Bbr2);
    let watch = Watch { figures: Arc::clone(&figures), has_threshold: !is_bbr };
    let window = settings.flow.initial_window;
    let window = window.map(|packets| packets * u32::from(settings.payload_bytes));
    let handles = match algorithm {
        Algorithm::Bbr | Algorithm::Bbr2 => start(settings, watch, control!(bbr, window)),
        Algorithm::Cubic | Algorithm::NewReno => start(settings, watch, control!(cubic, window)),
    };
    Box::new(End {
        handles: Mutex::new(handles),
        figures,
        role: settings.role,
        stream_count: settings.flow.streams,
        data: Data::default(),
        buffer: vec![0; settings.payload_bytes.into()],
        established: false,
        loss: None,
        deadline: Instant::NEVER,
        last: Figures::default(),
        rtt_new: false,
    })
}

impl Handles {
    /// Takes the connection once the handshake is complete; true when it is there.
    fn establish(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(attempt) = &mut self.attempt
            && let Poll::Ready(outcome) = attempt.as_mut().poll(context)
        {
            self.attempt = None;
            self.connection = outcome.ok();
        }
        if self.connection.is_none()
            && let Some(acceptor) = &mut self.acceptor
            && let Poll::Ready(connection) = acceptor.poll_accept(context)
        {
            self.connection = connection;
        }
        self.connection.is_some()
    }

    fn open_streams(&mut self, count: usize, context: &mut Context<'_>) {
        let Some(connection) = &mut self.connection else { return };
        while self.outgoing.len() < count
            && let Poll::Ready(Ok(stream)) =
                connection.poll_open_stream(StreamType::Unidirectional, context)
        {
            self.outgoing.push(stream);
        }
    }

    /// Fills the streams in turn, until none has room.
    fn write(&mut self, data: &mut Data, context: &mut Context<'_>) {
        let mut full = 0;
        while data.next_len() > 0 && full < self.outgoing.len() {
            let turn = data.turn % self.outgoing.len();
            let stream = &mut self.outgoing[turn];
            data.turn += 1;
            let Poll::Ready(Ok(room)) = stream.poll_send_ready(context) else {
                full += 1;
                continue;
            };
            let len = data.next_len().min(room);
            if len == 0 || stream.send_data(Bytes::from_static(&ZEROES[..len])).is_err() {
                full += 1;
                continue;
            }
            data.written += len as u64;
            full = 0;
        }
    }

    /// Reads what has arrived in order; its length.
    fn read(&mut self, context: &mut Context<'_>) -> u64 {
        let Some(connection) = &mut self.connection else { return 0 };
        let kind = Some(StreamType::Unidirectional);
        while let Poll::Ready(Ok(Some(stream))) = connection.poll_accept(kind, context) {
            self.incoming.push(stream);
        }
        let mut bytes = 0;
        for stream in &mut self.incoming {
            while let Poll::Ready(Ok(Some(chunk))) = stream.poll_receive(context) {
                bytes += chunk.len() as u64;
            }
        }
        bytes
    }
}

impl End {
    /// Lets application and stack exchange what they have for each other, and sends what is due.
    fn drive(&mut self, now: Instant, out: &mut dyn Outbox) {
        let at = stack_time(now);
        let mut context = Context::from_waker(Waker::noop());
        let handles = self.handles.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(engine) = &mut handles.engine {
                engine.wake(at);
            }
            self.established |= handles.establish(&mut context);
            if self.role == Role::Client {
                handles.open_streams(self.stream_count as usize, &mut context);
                handles.write(&mut self.data, &mut context);
            } else {
                self.data.read += handles.read(&mut context);
            }
            let Some(engine) = &mut handles.engine else { break };
            engine.wake(at);
            if engine.transmit(out, &mut self.buffer, at) == 0 {
                break;
            }
        }
        let deadline = handles.engine.as_ref().and_then(|engine| engine.deadline());
        self.deadline = deadline.map_or(Instant::NEVER, simulated_time);
        let mut figures = lock(&self.figures);
        if let Some(reason) = figures.loss.take() {
            self.loss.get_or_insert(reason);
        }
        self.last = figures.clone();
    }
}

impl Connection for End {
    fn open(&mut self, now: Instant, out: &mut dyn Outbox) {
        let handles = self.handles.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(connector) = &handles.connector {
            let connect = Connect::new(address(Role::Server)).with_server_name(SERVER_NAME);
            handles.attempt = Some(Box::pin(connector.connect(connect)));
        }
        self.drive(now, out);
    }

    fn write_until(&mut self, total: u64, now: Instant, out: &mut dyn Outbox) {
        self.data.want(total);
        self.drive(now, out);
    }

    fn stop_writing(&mut self) {
        self.data.stop();
    }

    fn on_datagram(&mut self, payload: &[u8], now: Instant, out: &mut dyn Outbox) {
        let from = match self.role {
            Role::Client => address(Role::Server),
            Role::Server => address(Role::Client),
        };
        let mut payload = payload.to_vec();
        let handles = self.handles.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &mut handles.engine {
            engine.receive(Incoming { payload: Some(&mut payload), from }, stack_time(now));
        }
        // A datagram that takes packets out of flight is an acknowledgement, with a sample.
        let in_flight = lock(&self.figures).bytes_in_flight;
        self.rtt_new |= in_flight < self.last.bytes_in_flight;
        self.drive(now, out);
    }

    fn on_deadline(&mut self, now: Instant, out: &mut dyn Outbox) {
        self.drive(now, out);
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn bytes_read(&self) -> u64 {
        self.data.read
    }

    fn snapshot(&self) -> Snapshot {
        let figures = &self.last;
        Snapshot {
            cwnd_bytes: figures.cwnd_bytes,
            ssthresh_bytes: figures.ssthresh_bytes,
            bytes_in_flight: figures.bytes_in_flight,
            srtt_ns: figures.rtts_ns.map(|[_, _, smoothed]| smoothed),
            rtt_ns: figures.rtts_ns.map(|[last, _, _]| last),
            min_rtt_ns: figures.rtts_ns.map(|[_, least, _]| least),
            pacing_bps: figures.pacing_bps,
            bytes_acked: figures.bytes_acked,
            bytes_written: self.data.written,
            packets_sent: figures.packets_sent,
            packets_lost: figures.packets_lost,
            reductions: figures.reductions,
            established: self.established,
            idle: self.data.next_len() == 0,
        }
    }

    fn take_rtt_ns(&mut self) -> Option<u64> {
        let is_new = std::mem::take(&mut self.rtt_new);
        self.last.rtts_ns.filter(|_| is_new).map(|[last, _, _]| last)
    }

    fn take_loss(&mut self) -> Option<String> {
        self.loss.take()
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}
