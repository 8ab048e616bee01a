//! A packet: IP's traffic class, followed by a TCP segment, a UDP datagram or an ICMP echo.
//!
//! Scope: headers as every crate sees them, and their length on the wire. Out of scope: their processing
//! (`dragstrip-tcp`, `dragstrip-qdisc`), a packet's location on its path (`dragstrip-sim`), bytes of captures.

mod body;
mod ip;
mod tcp;

pub use body::{Body, Datagram, Echo, EchoKind, QuicDatagram};
pub use ip::{Dscp, Ecn, TrafficClass};
pub use tcp::{EcnBytes, Flags, SackBlock, Segment, SynOptions, Timestamps};

/// Ethernet's header without FCS, which a frame's length counts.
pub const ETHERNET_BYTES: u32 = 14;

/// IPv4's header without options.
pub const IP_BYTES: u32 = 20;
