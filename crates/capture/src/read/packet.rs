//! Decoded packets.

use super::layers::Layers;
use dragstrip_packet::EcnBytes;

/// An IP address; IPv4's are mapped (RFC 4291 §2.5.5.2).
pub type Address = [u8; 16];

/// A TCP segment with what IP said about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Capture time, nanoseconds since the epoch.
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
    /// The unscaled window field.
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
    /// Number of blocks.
    pub sack_count: u8,
    /// The options were cut off.
    pub options_cut: bool,
    /// The AccECN option (RFC 9768 §3.2.3).
    pub ecn_bytes: Option<EcnBytes>,
    /// The subtype of a Multipath TCP option (RFC 8684 §3); of several, the first.
    pub mptcp: Option<u8>,
    /// The Fast Open option (RFC 7413 §4.1.1): bytes of its cookie, 0 for a request.
    pub fast_open: Option<u8>,
    /// The layers around the IP packet.
    pub layers: Layers,
}

impl Packet {
    /// True for a SYN that opens a connection.
    #[must_use]
    pub fn opens(&self) -> bool {
        const SYN: u16 = 2;
        const ACK: u16 = 16;
        self.flags & (SYN | ACK) == SYN
    }
}

/// Protocol of a packet that is not TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// A protocol of IP with ports, and the port of the service.
    Port(u8, u16),
    /// A protocol of IP without ports.
    Ip(u8),
    /// A later fragment of a packet of this protocol.
    Fragment(u8),
    /// ICMP by type.
    Icmp(u8),
    /// ICMPv6 by type.
    Icmp6(u8),
    /// An EtherType.
    EtherType(u16),
    /// A PPP protocol number.
    Ppp(u16),
    /// An address family of a loopback interface.
    Family(u16),
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// IP's source.
    pub source: Address,
    /// IP's destination.
    pub destination: Address,
    /// UDP's source port.
    pub source_port: u16,
    /// UDP's destination port.
    pub destination_port: u16,
    /// The first bytes of its payload, as far as `begin_bytes`.
    pub begin: [u8; 5],
    /// Number of those bytes in the file.
    pub begin_bytes: u8,
}

/// A packet that is not TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Capture time, nanoseconds since the epoch.
    pub time_ns: i64,
    /// Bytes of the frame on the line.
    pub bytes: u32,
    /// Protocol.
    pub protocol: Protocol,
    /// UDP's header and the first bytes of its payload.
    pub datagram: Option<Datagram>,
}

/// Decoded content of a record.
pub enum Content {
    Tcp(Packet),
    /// Another protocol.
    Other(Other),
    Fragment,
    Malformed,
    /// A link type that is not read.
    Foreign,
}
