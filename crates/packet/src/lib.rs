//! What a packet is: IP's traffic class, and a TCP segment, a UDP datagram or an ICMP echo behind it.
//!
//! What lives here: headers as every crate sees them, and their length on the wire. What must not: what anybody does
//! with them (`dragstrip-tcp`, `dragstrip-qdisc`), where a packet is under way (`dragstrip-sim`), bytes of captures.

mod body;
mod ip;
mod tcp;

pub use body::{Body, Datagram, Echo, EchoKind};
pub use ip::{Dscp, Ecn, TrafficClass};
pub use tcp::{EcnBytes, Flags, SackBlock, Segment, SynOptions, Timestamps};

/// Ethernet's header without FCS, which a frame's length counts.
pub const ETHERNET_BYTES: u32 = 14;

/// IPv4's header without options.
pub const IP_BYTES: u32 = 20;
