//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and what is behind them.

use super::bytes::{be16, be32};
use super::frame::{Rest, Scan, ethernet, mpls};
use super::layers::Layer;
use super::packet::{Address, Content, Packet, Protocol};
use super::{tcp, tunnel, udp};

/// What IP's header says of what it carries.
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
    later: bool,
    /// A fragment.
    fragment: bool,
}

/// Reads from IP's header on.
pub fn content(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    match rest.data.first()? >> 4 {
        4 => version_4(scan, rest),
        6 => version_6(scan, rest),
        _ => None,
    }
}

fn marked(scan: &Scan, ecn: u8) -> u8 {
    if scan.ce && ecn != 0 { 3 } else { ecn }
}

fn version_4(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let Rest { data, whole } = rest;
    let length = usize::from(data[0] & 15) * 4;
    if length < 20 || data.len() < length {
        return None;
    }
    // A super-segment's total length is 0 when it does not fit (BIG TCP), or before the NIC has cut it.
    let total = match usize::from(be16(data, 2)?) {
        0 => whole,
        total => total,
    };
    let offset = be16(data, 6)?;
    let header = Header {
        source: mapped(data, 12)?,
        destination: mapped(data, 16)?,
        ip_id: be16(data, 4),
        ttl: data[8],
        ecn: marked(&scan, data[1] & 3),
        total,
        later: offset & 0x1fff != 0,
        fragment: offset & 0x3fff != 0,
    };
    next(scan, &header, data[9], data.get(length..)?, total.checked_sub(length))
}

fn version_6(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    const HEADER: usize = 40;
    let Rest { data, whole } = rest;
    if data.len() < HEADER {
        return None;
    }
    // The length is 0 in jumbograms (RFC 2675), which BIG TCP makes.
    let total = match usize::from(be16(data, 4)?) {
        0 => whole,
        length => HEADER + length,
    };
    let (mut protocol, mut at) = (data[6], HEADER);
    let (mut later, mut fragment) = (false, false);
    loop {
        let length = match protocol {
            0 | 43 | 60 | 135 => (usize::from(*data.get(at + 1)?) + 1) * 8,
            51 => (usize::from(*data.get(at + 1)?) + 2) * 4,
            44 => {
                let offset = be16(data, at + 2)?;
                (later, fragment) = (offset & 0xfff8 != 0, offset & 0xfff9 != 0);
                8
            }
            _ => break,
        };
        protocol = *data.get(at)?;
        at += length;
        if later {
            break;
        }
    }
    let header = Header {
        source: *data[8..].first_chunk()?,
        destination: *data[24..].first_chunk()?,
        ip_id: None,
        ttl: data[7],
        ecn: marked(&scan, (be16(data, 0)? >> 4) as u8 & 3),
        total,
        later,
        fragment,
    };
    next(scan, &header, protocol, data.get(at..)?, total.checked_sub(at))
}

/// What IP carries; `whole`: its bytes on the line, if the header does not contradict itself.
fn next(
    scan: Scan,
    header: &Header,
    protocol: u8,
    data: &[u8],
    whole: Option<usize>,
) -> Option<Content> {
    if protocol == tcp::PROTOCOL {
        if header.fragment {
            return Some(Content::Fragment);
        }
        return segment(scan, header, data, whole?);
    }
    if header.later {
        return Some(scan.other(Protocol::Fragment(protocol)));
    }
    let rest = Rest { data, whole: whole.unwrap_or(data.len()).max(data.len()) };
    // Of a tunnel's packet that was cut into fragments the first has the inner headers, and those tell the length.
    let inner = inside(scan, header, protocol, rest);
    Some(inner.unwrap_or_else(|| match protocol {
        udp::PROTOCOL => udp::other(&scan, header, data),
        1 => scan.other(data.first().map_or(Protocol::Ip(1), |kind| Protocol::Icmp(*kind))),
        58 => scan.other(data.first().map_or(Protocol::Ip(58), |kind| Protocol::Icmp6(*kind))),
        33 | 132 | 136 => scan.other(match (be16(data, 0), be16(data, 2)) {
            (Some(source), Some(destination)) => Protocol::Port(protocol, source.min(destination)),
            _ => Protocol::Ip(protocol),
        }),
        _ => scan.other(Protocol::Ip(protocol)),
    }))
}

/// The content of a tunnel; `None`: there is none that can be read.
fn inside(mut scan: Scan, header: &Header, protocol: u8, rest: Rest<'_>) -> Option<Content> {
    scan.ce |= header.ecn == 3;
    let four = header.ip_id.is_some();
    let content = match protocol {
        4 => content(scan.inside(if four { Layer::Ipip } else { Layer::FourInSix })?, rest),
        41 => content(scan.inside(if four { Layer::SixInFour } else { Layer::SixInSix })?, rest),
        47 => tunnel::gre(scan, rest),
        97 => ethernet(scan.inside(Layer::EtherIp)?, rest.after(2)?),
        137 => mpls(scan, rest),
        udp::PROTOCOL => tunnel::udp(scan, rest),
        _ => None,
    };
    content.filter(|content| !matches!(content, Content::Malformed))
}

fn segment(scan: Scan, header: &Header, data: &[u8], whole: usize) -> Option<Content> {
    let mut packet = Packet {
        time_ns: scan.time_ns,
        source: header.source,
        destination: header.destination,
        ip_id: header.ip_id,
        ttl: header.ttl,
        ecn: header.ecn,
        ip_bytes: header.total as u32,
        layers: scan.layers,
        ..Packet::default()
    };
    tcp::read(&mut packet, data, whole)?;
    Some(Content::Tcp(packet))
}

fn mapped(data: &[u8], at: usize) -> Option<Address> {
    let mut address = [0; 16];
    address[10..12].fill(0xff);
    address[12..].copy_from_slice(&be32(data, at)?.to_be_bytes());
    Some(address)
}
