//! quinn.

use crate::clock::StackInstant;
use crate::connection::{BURST_DATAGRAMS, configured, connection};
use crate::contract::Control;
use crate::session::session;
use dragstrip_scenario::quic::Algorithm;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

session!(quinn_proto, cid: &quinn_proto::ConnectionId, shared: Arc<Self>, path: ());
connection!(quinn_proto);

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

fn factory(settings: &Settings<'_>, _: &Arc<Figures>) -> Factory {
    let initial_window = settings.flow.initial_window;
    let bytes =
        initial_window.map(|packets| u64::from(packets) * u64::from(settings.payload_bytes));
    match settings.control {
        // Dragstrip's controls run in noq alone.
        Control::Own(_) | Control::Stack(_, Algorithm::Cubic) => configured!(CubicConfig, bytes),
        Control::Stack(_, Algorithm::NewReno) => configured!(NewRenoConfig, bytes),
        // It draws where its cycle of pacing gains begins, unseeded; the pacer reads no rate, so that nothing is sent
        // another time for it.
        Control::Stack(_, Algorithm::Bbr | Algorithm::Bbr2) => configured!(BbrConfig, bytes),
    }
}

fn set_ids(
    config: &mut quinn_proto::EndpointConfig,
    ids: impl Fn() -> Box<dyn quinn_proto::ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(ids);
}

fn endpoint(
    config: quinn_proto::EndpointConfig,
    server: Option<Arc<quinn_proto::ServerConfig>>,
) -> quinn_proto::Endpoint {
    quinn_proto::Endpoint::new(Arc::new(config), server, false, None)
}

fn receive(
    endpoint: &mut quinn_proto::Endpoint,
    now: StackInstant,
    peer: SocketAddr,
    payload: &[u8],
    response: &mut Vec<u8>,
) -> Option<quinn_proto::DatagramEvent> {
    endpoint.handle(now, peer, None, None, BytesMut::from(payload), response)
}

fn poll_transmit(
    connection: &mut quinn_proto::Connection,
    now: StackInstant,
    burst: &mut Vec<u8>,
) -> Option<quinn_proto::Transmit> {
    connection.poll_transmit(now, BURST_DATAGRAMS, burst)
}

fn path(connection: &mut quinn_proto::Connection) -> (quinn_proto::PathStats, ControllerMetrics) {
    let mut metrics = connection.congestion_state().metrics();
    // The pacer does not read it, and BBR's is not seeded.
    metrics.pacing_rate = None;
    (connection.stats().path, metrics)
}

/// A key for tokens, of which a server without Retry sends none.
struct TokenKey;

impl crypto::HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn crypto::AeadKey> {
        Box::new(TokenKey)
    }
}

impl crypto::AeadKey for TokenKey {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), crypto::CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], crypto::CryptoError> {
        Err(crypto::CryptoError)
    }
}

/// Makes controllers that are watched.
struct Watching {
    factory: Factory,
    figures: Arc<Figures>,
}

impl ControllerFactory for Watching {
    fn build(self: Arc<Self>, now: StackInstant, mtu: u16) -> Box<dyn Controller> {
        let controller = Arc::clone(&self.factory).build(now, mtu);
        Box::new(Watched { controller, figures: Arc::clone(&self.figures) })
    }
}

/// A controller whose inputs are noted.
struct Watched {
    controller: Box<dyn Controller>,
    figures: Arc<Figures>,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: StackInstant, bytes: u64, last: u64) {
        self.figures.sent(bytes);
        self.controller.on_sent(now, bytes, last);
    }

    fn on_ack(
        &mut self,
        now: StackInstant,
        sent: StackInstant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.figures.acked(bytes, now.saturating_duration_since(sent).as_nanos() as u64);
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: StackInstant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.figures.set_in_flight(in_flight);
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: StackInstant,
        sent: StackInstant,
        is_persistent: bool,
        lost_bytes: u64,
    ) {
        let before = self.controller.window();
        self.controller.on_congestion_event(now, sent, is_persistent, lost_bytes);
        self.figures.congested(before, self.controller.window());
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.controller.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let controller = self.controller.clone_box();
        Box::new(Self { controller, figures: Arc::clone(&self.figures) })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}
