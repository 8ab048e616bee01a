//! Applications of flows: when they open, write, request, answer, pause and stop.

use crate::rates::rate;
use dragstrip_packet::Dscp;
use dragstrip_player::Player;
use dragstrip_rtp::Session;
use dragstrip_scenario::Application;
use dragstrip_units::{Duration, Instant, Rate};

/// An application.
#[derive(Clone, Copy, Debug)]
pub(crate) enum App {
    /// Writes as fast as the socket takes it.
    Bulk { bytes: Option<u64> },
    /// Bulk and silence in turn.
    OnOff { on: Duration, off: Duration },
    /// The client asks, the server answers, the client thinks.
    RequestResponse { request: u64, response: u64, think: Duration },
    /// The client asks for a segment of a video after the other: its flow has the player.
    Video { request: u64 },
    /// Datagrams at regular times.
    ConstantRate { rate: Rate, datagram: u32 },
    /// A live video over RTP: its flow has the session.
    Rtp,
    /// Carries the packets of these stages, from the client to the server and back.
    Tunnel { there: Option<u32>, back: Option<u32> },
}

impl App {
    /// The application of a flow; `tunnelled` is the first stage that a tunnel carries there, or back.
    pub fn of(application: &Application, tunnelled: impl Fn(bool) -> Option<u32>) -> Self {
        match *application {
            Application::Tunnel { header_bytes: _ } => {
                Self::Tunnel { there: tunnelled(false), back: tunnelled(true) }
            }
            Application::Bulk { bytes } => Self::Bulk { bytes },
            // Refused before (`build::check`).
            Application::Program { .. } => Self::Bulk { bytes: Some(0) },
            Application::OnOff { on_ns, off_ns } => {
                Self::OnOff { on: Duration::from_nanos(on_ns), off: Duration::from_nanos(off_ns) }
            }
            Application::RequestResponse { request_bytes, response_bytes, think_ns } => {
                Self::RequestResponse {
                    request: request_bytes,
                    response: response_bytes,
                    think: Duration::from_nanos(think_ns),
                }
            }
            Application::Video { request_bytes, .. } => Self::Video { request: request_bytes },
            Application::ConstantRate { rate_bps, datagram_bytes } => {
                Self::ConstantRate { rate: rate(rate_bps), datagram: datagram_bytes }
            }
            Application::Rtp { .. } => Self::Rtp,
        }
    }
}

/// Participants of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlowKind {
    /// Two endpoints.
    Tcp { client: u32, server: u32 },
    /// Two endpoints of QUIC, numbered on their own.
    Quic { client: u32, server: u32 },
    /// Datagrams, and where they begin their way.
    Udp { first_hop: u32 },
    /// Packets of a video over RTP and its reports, and where these begin their ways.
    Rtp { there: u32, back: u32 },
}

/// State of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not started.
    Waiting,
    /// Writing, or waiting for an answer.
    Busy,
    /// Silent, or thinking.
    Quiet,
    /// Over.
    Stopped,
}

/// A flow while the run lasts.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub kind: FlowKind,
    pub app: App,
    pub start: Instant,
    pub stop: Instant,
    pub phase: Phase,
    /// Time at which it ended.
    pub ended: Option<Instant>,
    /// Requests made so far.
    pub rounds: u64,
    /// Datagrams sent, and the remainder of a regular sender's interval in fractions of a nanosecond.
    pub datagrams_sent: u64,
    pub datagrams_received: u64,
    pub carry: u64,
    /// DSCP of its datagrams; a connection's sockets have their own.
    pub dscp: Dscp,
    /// Player of a video flow.
    pub player: Option<Box<Player>>,
    /// Both ends of a video over RTP.
    pub session: Option<Box<Session>>,
}

impl Flow {
    pub fn new(kind: FlowKind, app: App, start: Instant, stop: Instant) -> Self {
        Self {
            kind,
            app,
            start,
            stop,
            phase: Phase::Waiting,
            ended: None,
            rounds: 0,
            datagrams_sent: 0,
            datagrams_received: 0,
            carry: 0,
            dscp: Dscp::DEFAULT,
            player: None,
            session: None,
        }
    }

    /// True while it has started and not stopped.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Waiting && self.phase != Phase::Stopped
    }

    /// True when the application reacts to the arrival of a number of bytes.
    pub fn awaits_bytes(&self) -> bool {
        match self.app {
            App::Bulk { bytes } => bytes.is_some(),
            App::RequestResponse { .. } | App::Video { .. } | App::Tunnel { .. } => true,
            App::OnOff { .. } | App::ConstantRate { .. } | App::Rtp => false,
        }
    }

    /// The socket of one end.
    ///
    /// # Panics
    /// If the flow is UDP.
    pub fn socket(&self, of_server: bool) -> u32 {
        match self.kind {
            FlowKind::Tcp { client, server } => {
                if of_server {
                    server
                } else {
                    client
                }
            }
            FlowKind::Quic { .. } | FlowKind::Udp { .. } | FlowKind::Rtp { .. } => {
                unreachable!("validation lets only TCP carry tunnels")
            }
        }
    }

    /// The TCP endpoint whose sending half carries the flow's data: the client's, but for
    /// request/response and a video, where the answers are the data.
    pub fn data_sender(&self) -> Option<u32> {
        match (self.kind, self.app) {
            (FlowKind::Quic { .. } | FlowKind::Udp { .. } | FlowKind::Rtp { .. }, _) => None,
            (FlowKind::Tcp { server, .. }, App::RequestResponse { .. } | App::Video { .. }) => {
                Some(server)
            }
            (
                FlowKind::Tcp { client, .. },
                App::Bulk { .. }
                | App::OnOff { .. }
                | App::ConstantRate { .. }
                | App::Rtp
                | App::Tunnel { .. },
            ) => Some(client),
        }
    }
}
