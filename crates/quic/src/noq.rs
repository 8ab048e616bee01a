//! noq.

use crate::clock::StackInstant;
use crate::connection::{BURST_DATAGRAMS, configured, connection};
use crate::contract::Control;
use crate::own::{INITIAL_WINDOW, OwnFactory};
use crate::session::session;
use dragstrip_scenario::quic::Algorithm;
use noq_proto::congestion::{
    Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use noq_proto::{FourTuple, PathId, RttEstimator};
use std::num::NonZeroUsize;

session!(noq_proto, cid: noq_proto::ConnectionId, shared: &Self, path: (PathId));
connection!(noq_proto);

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

fn factory(settings: &Settings<'_>, figures: &Arc<Figures>) -> Factory {
    let initial_window = settings.flow.initial_window;
    let bytes =
        initial_window.map(|packets| u64::from(packets) * u64::from(settings.payload_bytes));
    match settings.control {
        Control::Own(algorithm) => Arc::new(OwnFactory {
            algorithm: algorithm.clone(),
            initial_window: initial_window.unwrap_or(INITIAL_WINDOW),
            figures: Arc::clone(figures),
        }),
        Control::Stack(_, Algorithm::NewReno) => configured!(NewRenoConfig, bytes),
        Control::Stack(_, Algorithm::Cubic | Algorithm::Bbr | Algorithm::Bbr2) => {
            configured!(CubicConfig, bytes)
        }
    }
}

fn set_ids(
    config: &mut noq_proto::EndpointConfig,
    ids: impl Fn() -> Box<dyn noq_proto::ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(ids));
}

fn endpoint(
    config: noq_proto::EndpointConfig,
    server: Option<Arc<noq_proto::ServerConfig>>,
) -> noq_proto::Endpoint {
    noq_proto::Endpoint::new(Arc::new(config), server, false)
}

fn receive(
    endpoint: &mut noq_proto::Endpoint,
    now: StackInstant,
    peer: SocketAddr,
    payload: &[u8],
    response: &mut Vec<u8>,
) -> Option<noq_proto::DatagramEvent> {
    endpoint.handle(now, FourTuple::new(peer, None), None, BytesMut::from(payload), response)
}

fn poll_transmit(
    connection: &mut noq_proto::Connection,
    now: StackInstant,
    burst: &mut Vec<u8>,
) -> Option<noq_proto::Transmit> {
    const MAX: NonZeroUsize = NonZeroUsize::new(BURST_DATAGRAMS).unwrap();
    connection.poll_transmit(now, MAX, burst)
}

fn path(connection: &mut noq_proto::Connection) -> (noq_proto::PathStats, ControllerMetrics) {
    let stats = connection.path_stats(PathId::ZERO).unwrap_or_default();
    let controller = connection.congestion_state(PathId::ZERO);
    (stats, controller.map(|controller| controller.metrics()).unwrap_or_default())
}

/// A key for tokens, of which a server without Retry sends none.
struct TokenKey;

impl crypto::HandshakeTokenKey for TokenKey {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), crypto::CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _: u128, _: &'a mut [u8]) -> Result<&'a [u8], crypto::CryptoError> {
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
#[derive(Debug)]
struct Watched {
    controller: Box<dyn Controller>,
    figures: Arc<Figures>,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: StackInstant, bytes: u64, largest: u64) {
        self.controller.on_sent(now, bytes, largest);
    }

    fn on_packet_sent(&mut self, now: StackInstant, bytes: u16, number: u64) {
        self.figures.sent(u64::from(bytes));
        self.controller.on_packet_sent(now, bytes, number);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: StackInstant,
        sent: StackInstant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.figures.acked(bytes, now.saturating_duration_since(sent).as_nanos() as u64);
        self.controller.on_ack(now, sent, bytes, number, app_limited, rtt);
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
        is_ecn: bool,
        lost_bytes: u64,
        largest: u64,
    ) {
        let before = self.controller.window();
        self.controller.on_congestion_event(now, sent, is_persistent, is_ecn, lost_bytes, largest);
        self.figures.congested(before, self.controller.window());
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: StackInstant) {
        self.controller.on_packet_lost(bytes, number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.controller.on_mtu_update(mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_delay: std::time::Duration) {
        self.controller.on_ack_frequency_update(threshold, max_delay);
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
