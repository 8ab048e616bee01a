//! Payload of IP: TCP, UDP, QUIC over UDP, or ICMP.

use crate::{ETHERNET_BYTES, IP_BYTES, Segment};
use dragstrip_units::Instant;

/// UDP's header.
const UDP_BYTES: u32 = 8;

/// A UDP datagram of a sender that numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Number within the flow, from 1.
    pub number: u64,
    /// Payload bytes.
    pub len: u16,
}

/// Request or answer (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoKind {
    /// Type 8.
    Request,
    /// Type 0.
    Reply,
}

/// An ICMP echo. Like ping(8) it carries the time at which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Time at which the request was sent.
    pub sent: Instant,
    /// Sequence number within the probe, from 0.
    pub sequence: u32,
    /// ICMP's header and payload, bytes.
    pub bytes: u16,
    /// Request or answer.
    pub kind: EchoKind,
}

/// A UDP datagram of QUIC, whose bytes lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicDatagram {
    /// Place of its bytes.
    pub slot: u32,
    /// Payload bytes.
    pub len: u16,
}

/// Payload of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
    /// An ICMP echo.
    Icmp(Echo),
    /// A UDP datagram of QUIC.
    Quic(QuicDatagram),
}

impl Body {
    /// Length of the Ethernet frame without FCS.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.frame_len(),
            Self::Udp(datagram) => ETHERNET_BYTES + IP_BYTES + UDP_BYTES + u32::from(datagram.len),
            Self::Quic(datagram) => ETHERNET_BYTES + IP_BYTES + UDP_BYTES + u32::from(datagram.len),
            Self::Icmp(echo) => ETHERNET_BYTES + IP_BYTES + u32::from(echo.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_discriminant_takes_no_room() {
        assert_eq!(size_of::<Body>(), size_of::<Segment>());
    }

    #[test]
    fn a_frame_counts_the_headers_of_its_protocol() {
        let datagram = Datagram { number: 1, len: 1_000 };
        assert_eq!(Body::Udp(datagram).frame_len(), 1_042);
        let echo = Echo { sent: Instant::ZERO, sequence: 0, bytes: 64, kind: EchoKind::Request };
        assert_eq!(Body::Icmp(echo).frame_len(), 98, "ping's 84 bytes of IP");
    }
}
