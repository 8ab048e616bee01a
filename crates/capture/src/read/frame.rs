//! What a record holds before IP: link types (https://www.tcpdump.org/linktypes.html), tags, MPLS and PPP.

use super::Record;
use super::bytes::{be16, be32};
use super::ip;
use super::layers::{Layer, Layers};
use super::packet::{Content, Other, Protocol};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Ethernet frames inside GRE or Geneve (RFC 7637 §3.2).
const BRIDGED: u16 = 0x6558;

/// Encapsulations that are followed one inside another; each IP packet in another is one.
const DEPTH_MAX: u8 = 8;

/// Raises what is wrong with a file of this link type.
pub fn expect_known(link: u32) -> Result<(), String> {
    let read = "expected Ethernet, SLL, SLL2, NULL, LOOP, RAW or PPP";
    match link {
        0 | 1 | 9 | 12 | 14 | 50 | 101 | 108 | 113 | 228 | 229 | 276 => Ok(()),
        105 | 119 | 127 | 163 => Err(format!("is of 802.11 frames (link type {link}), {read}")),
        _ => Err(format!("is of link type {link}, {read}")),
    }
}

/// Reads a record's headers.
pub fn content(record: &Record<'_>) -> Content {
    if expect_known(record.link).is_err() {
        return Content::Foreign;
    }
    let scan = Scan {
        time_ns: record.time_ns,
        bytes: record.original,
        layers: Layers::default(),
        ce: false,
        depth: 0,
    };
    let rest = Rest { data: record.data, whole: record.original as usize };
    link(record.link, scan, rest).unwrap_or(Content::Malformed)
}

/// What the headers before have told.
#[derive(Clone, Copy)]
pub struct Scan {
    pub time_ns: i64,
    /// Bytes of the frame on the line.
    pub bytes: u32,
    pub layers: Layers,
    /// An outer header is marked CE.
    pub ce: bool,
    depth: u8,
}

impl Scan {
    /// Inside one encapsulation more; none when there are too many.
    pub fn inside(mut self, layer: Layer) -> Option<Self> {
        self.layers.add(layer);
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(self)
    }

    /// Another protocol.
    pub fn other(&self, protocol: Protocol) -> Content {
        let Self { time_ns, bytes, .. } = *self;
        Content::Other(Other { time_ns, bytes, protocol, datagram: None })
    }
}

/// What is left of a packet: bytes in the file, and on the line.
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

/// `None`: cut off.
fn link(link: u32, scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let data = rest.data;
    match link {
        1 => ethernet(scan, rest),
        113 => ether_type(scan, be16(data, 14)?, rest.after(16)?),
        276 => ether_type(scan, be16(data, 0)?, rest.after(20)?),
        0 | 108 => {
            // The family is in the writer's byte order; all known ones fit into one byte.
            let family = be32(data, 0)?;
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            match family {
                2 | 10 | 24 | 28 | 30 => ip::content(scan, rest.after(4)?),
                _ => Some(scan.other(Protocol::Family(family as u16))),
            }
        }
        9 | 50 => ppp(scan, rest),
        _ => ip::content(scan, rest),
    }
}

/// An Ethernet frame.
pub fn ethernet(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    ether_type(scan, be16(rest.data, 12)?, rest.after(14)?)
}

/// What an EtherType announces: past VLAN tags, PPPoE and MPLS.
pub fn ether_type(mut scan: Scan, mut kind: u16, mut rest: Rest<'_>) -> Option<Content> {
    let mut tagged = false;
    loop {
        match kind {
            IPV4 | IPV6 => return ip::content(scan, rest),
            0x8100 | 0x88a8 | 0x9100 => {
                kind = be16(rest.data, 2)?;
                rest = rest.after(4)?;
                if tagged {
                    scan.layers.add(Layer::QinQ);
                }
                tagged = true;
            }
            0x8864 => {
                scan.layers.add(Layer::Pppoe);
                return ppp(scan, rest.after(6)?);
            }
            0x8847 | 0x8848 => return mpls(scan, rest),
            BRIDGED => return ethernet(scan, rest),
            _ => return Some(scan.other(Protocol::EtherType(kind))),
        }
    }
}

/// PPP, with or without address and control, its protocol in two bytes or one (RFC 1661 §6.5).
pub fn ppp(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let at = if rest.data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = *rest.data.get(at)?;
    let (protocol, length) =
        if first & 1 == 1 { (u16::from(first), 1) } else { (be16(rest.data, at)?, 2) };
    let rest = rest.after(at + length)?;
    match protocol {
        0x0021 | 0x0057 => ip::content(scan, rest),
        0x0281 | 0x0283 => mpls(scan, rest),
        _ => Some(scan.other(Protocol::Ppp(protocol))),
    }
}

/// MPLS: labels up to the bottom of the stack, then IP, or a pseudowire's control word and Ethernet (RFC 4448).
pub fn mpls(scan: Scan, mut rest: Rest<'_>) -> Option<Content> {
    let Some(scan) = scan.inside(Layer::Mpls) else {
        return Some(scan.other(Protocol::EtherType(0x8847)));
    };
    loop {
        let label = be32(rest.data, 0)?;
        rest = rest.after(4)?;
        if label & 0x100 != 0 {
            break;
        }
    }
    match rest.data.first()? >> 4 {
        4 | 6 => ip::content(scan, rest),
        0 => ethernet(scan, rest.after(4)?),
        _ => Some(scan.other(Protocol::EtherType(0x8847))),
    }
}
