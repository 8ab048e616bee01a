//! Settings, inputs and answers of a connection.

use dragstrip_units::Stream;

/// Bytes of every connection ID.
pub const ID_BYTES: usize = 8;

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens the connection.
    Client,
    /// Waits for it.
    Server,
}

/// A congestion control of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// NewReno (RFC 9002, section 7).
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR, version 1.
    Bbr,
    /// BBR, version 2.
    Bbr2,
}

/// Settings of one end of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// End of the connection.
    pub role: Role,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Size of every full datagram's payload, bytes.
    pub payload_bytes: u16,
    /// Flow control of a stream, bytes.
    pub stream_window: u64,
    /// Unidirectional streams that the peer may open.
    pub streams: u64,
    /// Packets that call for an acknowledgement at once; `None`: the library's two.
    pub ack_packets: Option<u32>,
    /// Time without a packet after which the connection is lost, ns.
    pub idle_timeout_ns: u64,
    /// Randomness: connection IDs, tokens, the library's draws.
    pub random: Stream,
}

/// Keys of a level of encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Keys of the handshake.
    Handshake,
    /// Keys of the data.
    OneRtt,
}

/// Messages of the cryptographic handshake (RFC 9001, section 4).
pub trait Handshake: Send + Sync {
    /// Takes this end's encoded transport parameters.
    fn set_own(&mut self, parameters: Vec<u8>);
    /// Takes a part of the peer's messages.
    fn read(&mut self, bytes: &[u8]);
    /// Appends the next message that is this end's turn, if any; the keys with which the next ones are sent.
    fn write(&mut self, buffer: &mut Vec<u8>) -> Option<Level>;
    /// The peer's encoded transport parameters, once they have arrived.
    fn peer(&self) -> Option<&[u8]>;
    /// True when the last message was written or read.
    fn is_done(&self) -> bool;
}

/// Outcome of a call for a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A datagram was written to the buffer.
    Datagram {
        /// Its length, bytes.
        len: usize,
        /// Bytes of the stream's data in it.
        data: usize,
    },
    /// The stream has no room for data.
    Full,
    /// Nothing may leave now.
    Nothing,
    /// The connection is lost, for this reason.
    Lost(String),
}

/// State of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, bytes; `u64::MAX`: infinite.
    pub ssthresh_bytes: u64,
    /// Bytes of packets in flight.
    pub bytes_in_flight: u64,
    /// Last, least and smoothed RTT, ns; `None` before the first sample.
    pub rtts_ns: Option<[u64; 3]>,
    /// Rate that the congestion control sets, bit/s; 0: none.
    pub pacing_bps: u64,
    /// Instant at which the last recovery began, ns; `u64::MAX`: there was none.
    pub recovery_ns: u64,
}
