//! The interface between the simulator and an endpoint.

use dragstrip_scenario::quic::{self, FlowSettings};
use std::fmt;

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens the connection, and sends the data.
    Client,
    /// Waits for it.
    Server,
}

/// Stack and congestion control of an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Control<'a> {
    /// A control of the stack's own.
    Stack(quic::Stack, quic::Algorithm),
    /// One of Dragstrip's, in noq.
    Own(&'a dragstrip_cc::Algorithm),
}

/// Settings of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Stack and congestion control.
    pub control: Control<'a>,
    /// Settings of the flow.
    pub flow: FlowSettings,
    /// End of the connection.
    pub role: Role,
    /// Largest payload of a datagram, bytes.
    pub payload_bytes: u16,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the connection within the run, by which its secrets are drawn.
    pub connection: &'a str,
    /// Name of the endpoint within the run: its streams of randomness are named after it.
    pub name: &'a str,
}

/// Takes an endpoint's datagrams.
pub trait Outbox {
    /// The payload of a datagram.
    fn send(&mut self, payload: &[u8]);
}

/// Why there is no endpoint; as a text, what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The build has no QUIC stacks.
    Build,
    /// The stack's library cannot be used; what would be right.
    Library(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build => f.write_str("a build with QUIC stacks"),
            Self::Library(expected) => f.write_str(expected),
        }
    }
}

/// Snapshot of a sender for a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, bytes; `None`: infinite, or the algorithm has none.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes of packets in flight.
    pub bytes_in_flight: u64,
    /// Smoothed RTT, ns; `None` before the first sample.
    pub srtt_ns: Option<u64>,
    /// Last RTT sample, ns.
    pub rtt_ns: Option<u64>,
    /// Least RTT sample, ns.
    pub min_rtt_ns: Option<u64>,
    /// Rate at which the controller wants packets spaced, bit/s; `None`: the stack's pacer follows the window.
    pub pacing_bps: Option<u64>,
    /// Bytes of packets that were acknowledged.
    pub bytes_acked: u64,
    /// Bytes that the streams took, sent or not.
    pub bytes_written: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets lost.
    pub packets_lost: u64,
    /// Reductions of the window.
    pub reductions: u64,
    /// True when the connection is open.
    pub established: bool,
    /// True when everything the application wants sent has been written.
    pub idle: bool,
}
