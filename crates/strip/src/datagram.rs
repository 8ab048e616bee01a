//! Datagrams, where they go and what has become of them.

use dragstrip_packet::Ecn;
use std::time::Duration;

/// Largest payload that the path carries: an MTU of 1500 bytes.
pub const PAYLOAD_MAX: usize = 1472;

/// One end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end whose data passes the bottleneck.
    Client,
    /// The other.
    Server,
}

impl End {
    /// The end at the other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A datagram of UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Content; at most [`PAYLOAD_MAX`] bytes.
    pub payload: Vec<u8>,
    /// ECN field of its IP header; on arrival CE if a queue has marked it.
    pub ecn: Ecn,
}

/// A datagram at the end of its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the start.
    pub at: Duration,
    /// The end that it has reached.
    pub to: End,
    /// The datagram.
    pub datagram: Datagram,
}

/// Counts of the datagrams to one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent towards it.
    pub sent: u64,
    /// Arrived there.
    pub arrived: u64,
    /// Lost on the way.
    pub dropped: u64,
    /// Marked on the way, lost later or not.
    pub marked: u64,
    /// Copies that netem has made.
    pub copied: u64,
}
