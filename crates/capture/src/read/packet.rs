//! What is read of a packet.

/// An IP address; IPv4's are mapped (RFC 4291 §2.5.5.2).
pub type Address = [u8; 16];

/// A TCP segment with what IP said about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured, nanoseconds since the epoch.
    pub time_ns: i64,
    /// IP's source.
    pub source: Address,
    /// IP's destination.
    pub destination: Address,
    /// TCP's source port.
    pub source_port: u16,
    /// TCP's destination port.
    pub destination_port: u16,
    /// IPv4's identification; none in IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The ECN codepoint (RFC 3168 §5).
    pub ecn: u8,
    /// Length of the IP packet.
    pub ip_bytes: u32,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The header's flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256.
    pub flags: u16,
    /// The window field as it stands.
    pub window: u16,
    /// Bytes of data.
    pub payload: u32,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// Time-stamp option: value and echo.
    pub stamps: Option<(u32, u32)>,
    /// SACK blocks, as far as `sack_count`.
    pub sacks: [(u32, u32); 4],
    /// How many blocks there are.
    pub sack_count: u8,
    /// The options were cut off.
    pub options_cut: bool,
}

/// What a record turned out to be.
pub enum Content {
    Tcp(Packet),
    /// Another protocol.
    Other,
    Fragment,
    Malformed,
    /// A link type that is not read.
    Foreign,
}
