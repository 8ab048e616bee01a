//! State of the decoder between two headers: layers so far, bytes left, the IP header around them.

use super::layers::{Layer, Layers};
use super::packet::{Address, Content, Other, Protocol};

/// Encapsulations that are followed one inside another; each IP packet in another is one.
const DEPTH_MAX: u8 = 8;

/// Facts from the headers read so far.
#[derive(Clone, Copy)]
pub struct Scan {
    pub time_ns: i64,
    /// Bytes of the frame on the line.
    pub bytes: u32,
    pub layers: Layers,
    /// An outer header is marked CE.
    pub ce: bool,
    pub depth: u8,
}

impl Scan {
    /// Inside one encapsulation more; none when there are too many.
    pub fn inside(mut self, layer: Layer) -> Option<Self> {
        self.layers.add(layer);
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(self)
    }

    /// Another protocol.
    pub fn non_tcp(&self, protocol: Protocol) -> Content {
        let Self { time_ns, bytes, .. } = *self;
        Content::Other(Other { time_ns, bytes, protocol, datagram: None })
    }
}

/// Remainder of a packet: bytes in the file, and on the wire.
#[derive(Clone, Copy)]
pub struct Rest<'a> {
    pub data: &'a [u8],
    pub whole: usize,
}

impl Rest<'_> {
    /// Behind a header of so many bytes; `None`: it is cut off.
    pub fn after(self, header: usize) -> Option<Self> {
        let data = self.data.get(header..)?;
        Some(Self { data, whole: self.whole.saturating_sub(header).max(data.len()) })
    }
}

/// Fields of IP's header that concern its payload.
#[derive(Clone, Copy)]
pub struct Header {
    pub source: Address,
    pub destination: Address,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    /// The ECN codepoint, an outer header's mark included (RFC 6040 §4.2).
    pub ecn: u8,
    /// Length of the packet.
    pub total: usize,
    /// Not the first fragment: no header of the next protocol.
    pub later: bool,
    /// A fragment.
    pub fragment: bool,
}
