//! The types and values that an endpoint of s2n-quic is made of.

use super::crypto::Sessions;
use super::providers::{Draws, NoLimits, NoMigration, NoTokens, ResetTokens, Watch};
use crate::contract::Settings;
use crate::secrets::Secrets;
use crate::seeds;
use dragstrip_scenario::quic::{FlowSettings, HEADERS_BYTES};
use s2n_quic_core::connection::limits::Limits;
use s2n_quic_core::path::{RemoteAddress, mtu};
use s2n_quic_core::recovery::congestion_controller;
use s2n_quic_core::{connection::close, datagram, dc, endpoint, packet};
use s2n_quic_transport::endpoint::Context;
use s2n_quic_transport::{connection, stream};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

/// Time without a packet after which a connection is lost: the other stacks' default.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client's or a server's, with a congestion control.
pub struct Config<const IS_SERVER: bool, C> {
    congestion_controller: C,
    connection_id_format: Draws,
    stateless_reset_token_generator: ResetTokens,
    random_generator: Draws,
    tls: Sessions,
    endpoint_limits: NoLimits,
    token: NoTokens,
    connection_limits: Limits,
    mtu: mtu::Manager<mtu::Config>,
    connection_close_formatter: close::Development,
    event_subscriber: Watch,
    path_migration: NoMigration,
    packet_interceptor: packet::interceptor::Disabled,
    datagram: datagram::Disabled,
    dc: dc::Disabled,
}

impl<const IS_SERVER: bool, C> fmt::Debug for Config<IS_SERVER, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

impl<const IS_SERVER: bool, C: congestion_controller::Endpoint> Config<IS_SERVER, C> {
    pub fn new(settings: &Settings<'_>, watch: Watch, control: C) -> Self {
        Self {
            congestion_controller: control,
            connection_id_format: Draws(seeds::connection_ids(settings)),
            stateless_reset_token_generator: ResetTokens(seeds::connection_ids(settings)),
            random_generator: Draws(seeds::draws(settings)),
            tls: Sessions(Secrets::new(settings.seed, settings.connection).random),
            endpoint_limits: NoLimits,
            token: NoTokens,
            connection_limits: limits(&settings.flow),
            mtu: mtu::Manager::new(mtu_config(settings.payload_bytes + HEADERS_BYTES)),
            connection_close_formatter: close::Development,
            event_subscriber: watch,
            path_migration: NoMigration,
            packet_interceptor: packet::interceptor::Disabled::default(),
            datagram: datagram::Disabled::default(),
            dc: dc::Disabled::default(),
        }
    }
}

/// One MTU from the beginning, in the stack's terms: with the headers of IPv4 and UDP.
fn mtu_config(mtu: u16) -> mtu::Config {
    let config = mtu::Config::builder()
        .with_max_mtu(mtu)
        .and_then(|config| config.with_initial_mtu(mtu))
        .and_then(|config| config.with_base_mtu(mtu))
        .and_then(mtu::Builder::build);
    config.expect("validation keeps the MTU within the stack's range")
}

fn limits(flow: &FlowSettings) -> Limits {
    // Validation refuses a threshold of acknowledgements.
    let FlowSettings { stream_window, streams, ack_threshold: _, initial_window: _ } = *flow;
    let limits = Limits::new()
        .with_data_window(u32::MAX.into())
        .and_then(|limits| limits.with_unidirectional_data_window(stream_window.into()))
        .and_then(|limits| limits.with_max_open_local_unidirectional_streams(streams.into()))
        .and_then(|limits| limits.with_max_open_remote_unidirectional_streams(streams.into()))
        .and_then(|limits| limits.with_max_send_buffer_size(stream_window))
        .and_then(|limits| limits.with_max_idle_timeout(IDLE_TIMEOUT));
    limits.expect("validation keeps the limits within the stack's ranges")
}

impl<const IS_SERVER: bool, C: congestion_controller::Endpoint> s2n_quic_transport::endpoint::Config
    for Config<IS_SERVER, C>
{
    type TLSEndpoint = Sessions;
    type CongestionControllerEndpoint = C;
    type Connection = connection::Implementation<Self>;
    type ConnectionLock = Mutex<Self::Connection>;
    type ConnectionIdFormat = Draws;
    type StatelessResetTokenGenerator = ResetTokens;
    type RandomGenerator = Draws;
    type TokenFormat = NoTokens;
    type EndpointLimits = NoLimits;
    type ConnectionLimits = Limits;
    type Mtu = mtu::Config;
    type StreamManager = stream::DefaultStreamManager;
    type ConnectionCloseFormatter = close::Development;
    type EventSubscriber = Watch;
    type PathHandle = RemoteAddress;
    type PathMigrationValidator = NoMigration;
    type PacketInterceptor = packet::interceptor::Disabled;
    type DatagramEndpoint = datagram::Disabled;
    type DcEndpoint = dc::Disabled;

    const ENDPOINT_TYPE: endpoint::Type =
        if IS_SERVER { endpoint::Type::Server } else { endpoint::Type::Client };

    fn context(&mut self) -> Context<'_, Self> {
        Context {
            congestion_controller: &mut self.congestion_controller,
            connection_id_format: &mut self.connection_id_format,
            stateless_reset_token_generator: &mut self.stateless_reset_token_generator,
            random_generator: &mut self.random_generator,
            tls: &mut self.tls,
            endpoint_limits: &mut self.endpoint_limits,
            token: &mut self.token,
            connection_limits: &mut self.connection_limits,
            mtu: &mut self.mtu,
            connection_close_formatter: &mut self.connection_close_formatter,
            event_subscriber: &mut self.event_subscriber,
            path_migration: &mut self.path_migration,
            packet_interceptor: &mut self.packet_interceptor,
            datagram: &mut self.datagram,
            dc: &mut self.dc,
        }
    }
}
