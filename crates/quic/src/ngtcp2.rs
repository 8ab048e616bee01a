//! ngtcp2: a library of C, which takes every time, every random byte and every message of the handshake from its caller.
//!
//! It has no buffer for data to be sent: a stream's data are read where they are when a packet is filled, so bytes are written
//! when they leave. Bursts are as long as the library's congestion control permits (`send_quantum`), as its own programs send.

use crate::connection::Connection;
use crate::contract::{Outbox, Role, Settings, Snapshot, Unavailable};
use crate::data::{Data, ZEROES};
use crate::handshake;
use crate::secrets::{Secret, Secrets};
use crate::seeds::{CID_BYTES, draws};
use dragstrip_cc::program::Fault;
use dragstrip_ngtcp2::{self as library, Config, Output, State};
use dragstrip_scenario::quic::{Algorithm, FlowSettings};
use dragstrip_units::Instant;

/// Time without a packet after which a connection is lost: the other stacks' default.
const IDLE_TIMEOUT_NS: u64 = 30_000_000_000;

const _: () = assert!(CID_BYTES == library::ID_BYTES);

/// Why the library cannot be used.
pub(crate) fn absence() -> Option<Unavailable> {
    library::version().err().map(|absent| Unavailable::Library(absent.to_string()))
}

/// One end of a connection.
struct End {
    config: Config,
    /// `random` of the ClientHello.
    random: Secret,
    connection: Option<library::Connection>,
    stream_count: u32,
    streams: Vec<i64>,
    data: Data,
    buffer: Vec<u8>,
    /// The connection was lost: a server takes no other.
    is_lost: bool,
    loss: Option<String>,
    deadline: Instant,
    figures: Figures,
}

/// Figures of the sender after the last input.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    state: State,
    bytes_acked: u64,
    packets_sent: u64,
    packets_lost: u64,
    reductions: u64,
    rtt_new: bool,
}

impl library::Handshake for handshake::Handshake {
    fn set_own(&mut self, parameters: Vec<u8>) {
        self.set_own(parameters);
    }

    fn read(&mut self, bytes: &[u8]) {
        self.read(bytes);
    }

    fn write(&mut self, buffer: &mut Vec<u8>) -> Option<library::Level> {
        self.write(buffer).map(|level| match level {
            handshake::Level::Handshake => library::Level::Handshake,
            handshake::Level::OneRtt => library::Level::OneRtt,
        })
    }

    fn peer(&self) -> Option<&[u8]> {
        self.peer()
    }

    fn is_done(&self) -> bool {
        self.is_done()
    }
}

pub(crate) fn connection(
    settings: &Settings<'_>,
    algorithm: Algorithm,
) -> Result<Box<dyn Connection + Send + Sync>, Unavailable> {
    if let Some(unavailable) = absence() {
        return Err(unavailable);
    }
    // Validation refuses an initial window.
    let FlowSettings { stream_window, streams, ack_threshold, initial_window: _ } = settings.flow;
    let config = Config {
        role: match settings.role {
            Role::Client => library::Role::Client,
            Role::Server => library::Role::Server,
        },
        algorithm: match algorithm {
            Algorithm::Cubic => library::Algorithm::Cubic,
            Algorithm::NewReno => library::Algorithm::Reno,
            Algorithm::Bbr => library::Algorithm::Bbr,
            Algorithm::Bbr2 => library::Algorithm::Bbr2,
        },
        payload_bytes: settings.payload_bytes,
        stream_window: stream_window.into(),
        streams: streams.into(),
        // The threshold is of packets that may wait; the library counts the one beyond.
        ack_packets: ack_threshold.map(|packets| packets + 1),
        idle_timeout_ns: IDLE_TIMEOUT_NS,
        random: draws(settings),
    };
    Ok(Box::new(End {
        config,
        random: Secrets::new(settings.seed, settings.connection).random,
        connection: None,
        stream_count: streams,
        streams: Vec::new(),
        data: Data::default(),
        buffer: vec![0; settings.payload_bytes.into()],
        is_lost: false,
        loss: None,
        deadline: Instant::NEVER,
        figures: Figures::default(),
    }))
}

fn handshake(is_client: bool, random: Secret) -> Box<dyn library::Handshake> {
    Box::new(handshake::Handshake::new(is_client, random, Vec::new()))
}

impl End {
    /// Sends what is due, and takes the figures.
    fn drive(&mut self, now: Instant, out: &mut dyn Outbox) {
        self.open_streams();
        self.transmit(now, out);
        let Some(connection) = &mut self.connection else { return };
        let state = connection.state();
        let figures = &mut self.figures;
        if state.recovery_ns != figures.state.recovery_ns && state.recovery_ns != u64::MAX {
            figures.reductions += 1;
        }
        figures.state = state;
        figures.bytes_acked = connection.bytes_acked();
        figures.packets_lost =
            self.streams.iter().map(|stream| connection.lost_packets(*stream)).sum();
        self.deadline = match connection.expiry_ns() {
            u64::MAX => Instant::NEVER,
            at => Instant::from_nanos(at),
        };
    }

    fn open_streams(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if self.config.role == library::Role::Server || !connection.is_established() {
            return;
        }
        while self.streams.len() < self.stream_count as usize {
            let Some(stream) = connection.open_stream() else { return };
            self.streams.push(stream);
        }
    }

    /// Sends a burst: packets of the streams in turn, and those without data when no stream has any or room for any.
    fn transmit(&mut self, now: Instant, out: &mut dyn Outbox) {
        let Some(connection) = &mut self.connection else { return };
        let mut room = connection.burst_bytes() / self.buffer.len();
        let mut full = 0;
        loop {
            let has_data = self.data.next_len() > 0 && full < self.streams.len();
            let stream = has_data.then(|| self.streams[self.data.turn % self.streams.len()]);
            let data = &ZEROES[..self.data.next_len()];
            match connection.write(&mut self.buffer, stream, data, now.as_nanos()) {
                Output::Datagram { len, data } => {
                    out.send(&self.buffer[..len]);
                    self.figures.packets_sent += 1;
                    self.data.written += data as u64;
                    self.data.turn += 1;
                    full = 0;
                    room = room.saturating_sub(1);
                    if room == 0 {
                        break;
                    }
                }
                Output::Full => {
                    self.data.turn += 1;
                    full += 1;
                }
                Output::Nothing => break,
                Output::Lost(reason) => return self.lose(reason, now, out),
            }
        }
        connection.end_burst(now.as_nanos());
    }

    /// The connection is lost: the peer is told where there is something to tell, and nothing else is sent.
    fn lose(&mut self, reason: String, now: Instant, out: &mut dyn Outbox) {
        if let Some(mut connection) = self.connection.take() {
            let len = connection.write_close(&mut self.buffer, now.as_nanos());
            if len > 0 {
                out.send(&self.buffer[..len]);
            }
        }
        self.loss.get_or_insert(reason);
        (self.is_lost, self.deadline) = (true, Instant::NEVER);
    }
}

impl Connection for End {
    fn open(&mut self, now: Instant, out: &mut dyn Outbox) {
        let config = self.config.clone();
        match library::Connection::client(config, now.as_nanos(), handshake(true, self.random)) {
            Ok(connection) => self.connection = Some(connection),
            Err(reason) => self.loss = Some(reason),
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
        let is_server = self.config.role == library::Role::Server;
        if self.connection.is_none() && is_server && !self.is_lost {
            let config = self.config.clone();
            match library::Connection::server(
                config,
                payload,
                now.as_nanos(),
                handshake(false, self.random),
            ) {
                Ok(connection) => self.connection = connection,
                Err(reason) => self.loss = Some(reason),
            }
        }
        let Some(connection) = &mut self.connection else { return };
        let outcome = connection.read(payload, now.as_nanos());
        // A datagram that takes packets out of flight is an acknowledgement, with a sample.
        let in_flight = connection.state().bytes_in_flight;
        self.figures.rtt_new |= in_flight < self.figures.state.bytes_in_flight;
        match outcome {
            Ok(()) => {
                self.data.read = connection.bytes_read();
                self.drive(now, out);
            }
            Err(reason) => self.lose(reason, now, out),
        }
    }

    fn on_deadline(&mut self, now: Instant, out: &mut dyn Outbox) {
        let Some(connection) = &mut self.connection else { return };
        match connection.on_expiry(now.as_nanos()) {
            Ok(()) => self.drive(now, out),
            Err(reason) => self.lose(reason, now, out),
        }
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn bytes_read(&self) -> u64 {
        self.data.read
    }

    fn snapshot(&self) -> Snapshot {
        let Figures { state, bytes_acked, packets_sent, packets_lost, reductions, .. } =
            self.figures;
        let rtts = state.rtts_ns;
        Snapshot {
            cwnd_bytes: state.cwnd_bytes,
            ssthresh_bytes: Some(state.ssthresh_bytes).filter(|bytes| *bytes < u64::MAX),
            bytes_in_flight: state.bytes_in_flight,
            srtt_ns: rtts.map(|[_, _, smoothed]| smoothed),
            rtt_ns: rtts.map(|[last, _, _]| last),
            min_rtt_ns: rtts.map(|[_, least, _]| least),
            pacing_bps: Some(state.pacing_bps).filter(|rate| *rate > 0),
            bytes_acked,
            bytes_written: self.data.written,
            packets_sent,
            packets_lost,
            reductions,
            established: self.connection.as_ref().is_some_and(library::Connection::is_established),
            idle: self.data.next_len() == 0,
        }
    }

    fn take_rtt_ns(&mut self) -> Option<u64> {
        let is_new = std::mem::take(&mut self.figures.rtt_new);
        self.figures.state.rtts_ns.filter(|_| is_new).map(|[last, _, _]| last)
    }

    fn take_loss(&mut self) -> Option<String> {
        self.loss.take()
    }

    fn fault(&self) -> Option<Fault> {
        None
    }
}
