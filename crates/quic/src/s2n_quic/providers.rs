//! Parts that s2n-quic takes from its caller: connection IDs, tokens, randomness, events, and the way to the network.

use crate::contract::Outbox;
use crate::seeds::CID_BYTES;
use dragstrip_units::Stream;
use s2n_quic_core::connection::{self, LocalId};
use s2n_quic_core::endpoint::Endpoint;
use s2n_quic_core::event::api as events;
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress, datagram};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::RemoteAddress;
use s2n_quic_core::time::Timestamp;
use s2n_quic_core::{endpoint, event, path, random, stateless_reset, token};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// The value behind a lock that only one thread takes.
pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fill(stream: &mut Stream, bytes: &mut [u8]) {
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&stream.next_u64().to_le_bytes()[..word.len()]);
    }
}

/// Randomness of a named stream, for whoever asks.
pub struct Draws(pub Stream);

impl random::Generator for Draws {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        fill(&mut self.0, dest);
    }

    fn private_random_fill(&mut self, dest: &mut [u8]) {
        fill(&mut self.0, dest);
    }
}

impl connection::id::Generator for Draws {
    fn generate(&mut self, _: &connection::id::ConnectionInfo<'_>) -> LocalId {
        let mut id = [0; CID_BYTES];
        fill(&mut self.0, &mut id);
        LocalId::try_from_bytes(&id).expect("an ID of a permitted length")
    }
}

impl connection::id::Validator for Draws {
    fn validate(&self, _: &connection::id::ConnectionInfo<'_>, buffer: &[u8]) -> Option<usize> {
        (buffer.len() >= CID_BYTES).then_some(CID_BYTES)
    }
}

/// Draws reset tokens, which are never sent.
pub struct ResetTokens(pub Stream);

impl stateless_reset::token::Generator for ResetTokens {
    const ENABLED: bool = false;

    fn generate(&mut self, _: &[u8]) -> stateless_reset::Token {
        let mut token = [0; crate::seeds::TOKEN_BYTES];
        fill(&mut self.0, &mut token);
        token.into()
    }
}

/// No tokens: a server here sends no Retry.
pub struct NoTokens;

impl token::Format for NoTokens {
    const TOKEN_LEN: usize = 0;

    fn generate_new_token(
        &mut self,
        _: &mut token::Context<'_>,
        _: &LocalId,
        _: &mut [u8],
    ) -> Option<()> {
        None
    }

    fn generate_retry_token(
        &mut self,
        _: &mut token::Context<'_>,
        _: &connection::InitialId,
        _: &mut [u8],
    ) -> Option<()> {
        None
    }

    fn validate_token(
        &mut self,
        _: &mut token::Context<'_>,
        _: &[u8],
    ) -> Option<connection::InitialId> {
        None
    }
}

/// Every connection is let in.
pub struct NoLimits;

impl endpoint::Limiter for NoLimits {
    fn on_connection_attempt(
        &mut self,
        _: &endpoint::limits::ConnectionAttempt<'_>,
    ) -> endpoint::limits::Outcome {
        endpoint::limits::Outcome::allow()
    }
}

/// Addresses do not change.
#[derive(Debug)]
pub struct NoMigration;

impl path::migration::Validator for NoMigration {
    fn on_migration_attempt(
        &mut self,
        _: &path::migration::Attempt<'_>,
    ) -> path::migration::Outcome {
        path::migration::Outcome::Allow
    }
}

/// Figures of a connection, as its events give them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub cwnd_bytes: u64,
    pub bytes_in_flight: u64,
    /// Last, least and smoothed RTT, ns.
    pub rtts_ns: Option<[u64; 3]>,
    /// Window with which slow start or the last reduction ended; of BBR none.
    pub ssthresh_bytes: Option<u64>,
    /// The window has been reduced, and the new one is not known yet.
    pub is_reduced: bool,
    pub pacing_bps: Option<u64>,
    pub bytes_acked: u64,
    pub packets_sent: u64,
    pub packets_lost: u64,
    pub reductions: u64,
    pub loss: Option<String>,
}

/// Keeps the figures of a connection's events.
pub struct Watch {
    pub figures: Arc<Mutex<Figures>>,
    /// The congestion control has a threshold.
    pub has_threshold: bool,
}

impl event::Subscriber for Watch {
    type ConnectionContext = ();

    fn create_connection_context(
        &mut self,
        _: &events::ConnectionMeta,
        _: &events::ConnectionInfo,
    ) {
    }

    fn on_packet_sent(&mut self, (): &mut (), _: &events::ConnectionMeta, _: &events::PacketSent) {
        lock(&self.figures).packets_sent += 1;
    }

    fn on_packet_lost(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        _: &events::PacketLost<'_>,
    ) {
        lock(&self.figures).packets_lost += 1;
    }

    fn on_recovery_metrics(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        event: &events::RecoveryMetrics<'_>,
    ) {
        let mut figures = lock(&self.figures);
        figures.cwnd_bytes = event.congestion_window.into();
        if std::mem::take(&mut figures.is_reduced) && self.has_threshold {
            figures.ssthresh_bytes = Some(figures.cwnd_bytes);
        }
        figures.bytes_in_flight = event.bytes_in_flight.into();
        let rtts = [event.latest_rtt, event.min_rtt, event.smoothed_rtt];
        figures.rtts_ns = Some(rtts.map(|rtt| rtt.as_nanos() as u64));
    }

    fn on_congestion(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        _: &events::Congestion<'_>,
    ) {
        let mut figures = lock(&self.figures);
        figures.reductions += 1;
        figures.is_reduced = true;
    }

    fn on_slow_start_exited(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        event: &events::SlowStartExited,
    ) {
        if self.has_threshold {
            lock(&self.figures).ssthresh_bytes = Some(event.congestion_window.into());
        }
    }

    fn on_pacing_rate_updated(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        event: &events::PacingRateUpdated,
    ) {
        lock(&self.figures).pacing_bps = Some(event.bytes_per_second.saturating_mul(8));
    }

    fn on_tx_stream_progress(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        event: &events::TxStreamProgress,
    ) {
        lock(&self.figures).bytes_acked += event.bytes as u64;
    }

    fn on_connection_closed(
        &mut self,
        (): &mut (),
        _: &events::ConnectionMeta,
        event: &events::ConnectionClosed,
    ) {
        lock(&self.figures).loss.get_or_insert(event.error.to_string());
    }
}

/// The stack's endpoint, whose type only the stack can name.
pub trait Engine: Send {
    fn receive(&mut self, datagram: Incoming<'_>, now: Timestamp);
    /// Sends what may leave now; the number of datagrams.
    fn transmit(&mut self, out: &mut dyn Outbox, buffer: &mut [u8], now: Timestamp) -> usize;
    fn wake(&mut self, now: Timestamp);
    fn deadline(&self) -> Option<Timestamp>;
}

impl<E: Endpoint<PathHandle = RemoteAddress>> Engine for E {
    fn receive(&mut self, mut datagram: Incoming<'_>, now: Timestamp) {
        Endpoint::receive(self, &mut datagram, &now);
    }

    fn transmit(&mut self, out: &mut dyn Outbox, buffer: &mut [u8], now: Timestamp) -> usize {
        let mut outgoing = Outgoing { out, buffer, datagrams: 0 };
        Endpoint::transmit(self, &mut outgoing, &now);
        outgoing.datagrams
    }

    fn wake(&mut self, now: Timestamp) {
        let mut context = Context::from_waker(Waker::noop());
        while let std::task::Poll::Ready(Ok(count)) = self.poll_wakeups(&mut context, &now) {
            if count == 0 {
                break;
            }
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.timeout()
    }
}

/// A datagram that has arrived.
pub struct Incoming<'a> {
    pub payload: Option<&'a mut [u8]>,
    pub from: SocketAddress,
}

impl rx::Queue for Incoming<'_> {
    type Handle = RemoteAddress;

    fn for_each<F: FnMut(datagram::Header<RemoteAddress>, &mut [u8])>(&mut self, mut take: F) {
        if let Some(payload) = self.payload.take() {
            let ecn = ExplicitCongestionNotification::NotEct;
            take(datagram::Header { path: self.from.into(), ecn }, payload);
        }
    }

    fn is_empty(&self) -> bool {
        self.payload.is_none()
    }
}

/// The way out.
struct Outgoing<'a> {
    out: &'a mut dyn Outbox,
    buffer: &'a mut [u8],
    datagrams: usize,
}

/// Datagrams that a call may send: the stack asks again for more.
const CAPACITY: usize = 1_024;

impl tx::Queue for Outgoing<'_> {
    type Handle = RemoteAddress;

    fn push<M: tx::Message<Handle = RemoteAddress>>(
        &mut self,
        mut message: M,
    ) -> Result<tx::Outcome, tx::Error> {
        let len = message.write_payload(tx::PayloadBuffer::new(self.buffer), 0)?;
        self.out.send(&self.buffer[..len]);
        self.datagrams += 1;
        Ok(tx::Outcome { len, index: 0 })
    }

    fn capacity(&self) -> usize {
        CAPACITY - self.datagrams.min(CAPACITY)
    }
}
