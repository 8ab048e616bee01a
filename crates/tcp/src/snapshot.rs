//! A recorder's snapshot of a sender.

/// Limit of the sender (`tcp_info`: busy, rwnd-limited, sndbuf-limited).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// No connection exists yet.
    Handshake,
    /// The congestion window, or what else holds a moment's data back (Nagle, deferred bursts).
    Cwnd,
    /// The pacer.
    Pacing,
    /// TCP small queues (TSQ): enough of the connection's data waits in the host's own queue (`tcp_small_queue_check`).
    SmallQueue,
    /// The receiver's window.
    Rwnd,
    /// The send buffer.
    Sndbuf,
    /// The application.
    App,
}

impl LimitedBy {
    /// As the recording writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Cwnd => "cwnd",
            Self::Pacing => "pacing",
            Self::SmallQueue => "small_queue",
            Self::Rwnd => "rwnd",
            Self::Sndbuf => "sndbuf",
            Self::App => "app",
        }
    }
}

/// Snapshot of a sender for a recorder (`tcp_info`).
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, bytes; `None`: infinite.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Smoothed RTT, ns; `None` before the first sample.
    pub srtt_ns: Option<u64>,
    /// Last RTT sample, ns.
    pub rtt_ns: Option<u64>,
    /// Windowed minimum RTT, ns.
    pub min_rtt_ns: Option<u64>,
    /// Pacing rate, bit/s; `None` before the first RTT sample.
    pub pacing_bps: Option<u64>,
    /// Last delivery-rate sample, bit/s.
    pub delivery_bps: Option<u64>,
    /// Bytes cumulatively acknowledged.
    pub bytes_acked: u64,
    /// Bytes that the socket took, sent or not.
    pub bytes_written: u64,
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// The duplicate-ACK threshold, or how far segments are known to overtake one another, segments.
    pub reordering: u32,
    /// Segments deemed lost and still out.
    pub segments_lost: u32,
    /// Bytes that the socket took and has not sent.
    pub bytes_unsent: u64,
    /// Recovery state, or the algorithm's phase while nothing is wrong.
    pub state: &'static str,
    /// Limit of the sender.
    pub limit: LimitedBy,
}
