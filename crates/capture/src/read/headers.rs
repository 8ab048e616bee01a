//! Headers from the link's to TCP's: link types (https://www.tcpdump.org/linktypes.html), tags, MPLS, PPP; IPv4 (RFC 791)
//! and IPv6 (RFC 8200); GRE and tunnels in UDP, inside which it all begins anew. A header that contradicts its own format is
//! no tunnel.

use super::Record;
use super::bytes::{be16, be32};
use super::layers::{Layer, Layers};
use super::packet::{Address, Content, Packet, Protocol};
use super::scan::{Header, Rest, Scan};
use super::{tcp, udp};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Ethernet frames inside GRE or Geneve (RFC 7637 §3.2).
const BRIDGED: u16 = 0x6558;

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
                2 | 10 | 24 | 28 | 30 => ip(scan, rest.after(4)?),
                _ => Some(scan.non_tcp(Protocol::Family(family as u16))),
            }
        }
        9 | 50 => ppp(scan, rest),
        _ => ip(scan, rest),
    }
}

/// An Ethernet frame.
fn ethernet(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    ether_type(scan, be16(rest.data, 12)?, rest.after(14)?)
}

/// Dispatches on an EtherType: VLAN tags, PPPoE and MPLS are passed, IP is read.
fn ether_type(mut scan: Scan, mut kind: u16, mut rest: Rest<'_>) -> Option<Content> {
    let mut tagged = false;
    loop {
        match kind {
            IPV4 | IPV6 => return ip(scan, rest),
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
            _ => return Some(scan.non_tcp(Protocol::EtherType(kind))),
        }
    }
}

/// PPP, with or without address and control, its protocol in two bytes or one (RFC 1661 §6.5).
fn ppp(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let at = if rest.data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = *rest.data.get(at)?;
    let (protocol, length) =
        if first & 1 == 1 { (u16::from(first), 1) } else { (be16(rest.data, at)?, 2) };
    let rest = rest.after(at + length)?;
    match protocol {
        0x0021 | 0x0057 => ip(scan, rest),
        0x0281 | 0x0283 => mpls(scan, rest),
        _ => Some(scan.non_tcp(Protocol::Ppp(protocol))),
    }
}

/// MPLS: labels up to the bottom of the stack, then IP, or a pseudowire's control word and Ethernet (RFC 4448).
fn mpls(scan: Scan, mut rest: Rest<'_>) -> Option<Content> {
    let Some(scan) = scan.inside(Layer::Mpls) else {
        return Some(scan.non_tcp(Protocol::EtherType(0x8847)));
    };
    loop {
        let label = be32(rest.data, 0)?;
        rest = rest.after(4)?;
        if label & 0x100 != 0 {
            break;
        }
    }
    match rest.data.first()? >> 4 {
        4 | 6 => ip(scan, rest),
        0 => ethernet(scan, rest.after(4)?),
        _ => Some(scan.non_tcp(Protocol::EtherType(0x8847))),
    }
}

/// Reads from IP's header on.
fn ip(scan: Scan, rest: Rest<'_>) -> Option<Content> {
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

/// Dispatches on the IP protocol; `whole`: its bytes on the line, if the header does not contradict itself.
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
        return Some(scan.non_tcp(Protocol::Fragment(protocol)));
    }
    let rest = Rest { data, whole: whole.unwrap_or(data.len()).max(data.len()) };
    // Of a tunnel's packet that was fragmented the first fragment has the inner headers, which contain the length.
    let inner = inside(scan, header, protocol, rest);
    Some(inner.unwrap_or_else(|| match protocol {
        udp::PROTOCOL => udp::datagram(&scan, header, data),
        1 => scan.non_tcp(data.first().map_or(Protocol::Ip(1), |kind| Protocol::Icmp(*kind))),
        58 => scan.non_tcp(data.first().map_or(Protocol::Ip(58), |kind| Protocol::Icmp6(*kind))),
        33 | 132 | 136 => scan.non_tcp(match (be16(data, 0), be16(data, 2)) {
            (Some(source), Some(destination)) => Protocol::Port(protocol, source.min(destination)),
            _ => Protocol::Ip(protocol),
        }),
        _ => scan.non_tcp(Protocol::Ip(protocol)),
    }))
}

/// The content of a tunnel; `None`: there is none that can be read.
fn inside(mut scan: Scan, header: &Header, protocol: u8, rest: Rest<'_>) -> Option<Content> {
    scan.ce |= header.ecn == 3;
    let four = header.ip_id.is_some();
    let content = match protocol {
        4 => ip(scan.inside(if four { Layer::Ipip } else { Layer::FourInSix })?, rest),
        41 => ip(scan.inside(if four { Layer::SixInFour } else { Layer::SixInSix })?, rest),
        47 => gre(scan, rest),
        97 => ethernet(scan.inside(Layer::EtherIp)?, rest.after(2)?),
        137 => mpls(scan, rest),
        udp::PROTOCOL => inside_udp(scan, rest),
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

/// GRE (RFC 2784, RFC 2890), PPTP's variant (RFC 2637 §4.1), and ERSPAN in it.
fn gre(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    let (flags, kind) = (be16(rest.data, 0)?, be16(rest.data, 2)?);
    let field = |flag: u16| if flags & flag != 0 { 4 } else { 0 };
    if flags & ROUTING != 0 {
        return None;
    }
    let scan = scan.inside(Layer::Gre)?;
    match flags & 7 {
        0 => {
            let rest = rest.after(4 + field(CHECKSUM) + field(KEY) + field(SEQUENCE))?;
            match kind {
                0x88be if flags & SEQUENCE == 0 => ethernet(scan.inside(Layer::Erspan)?, rest),
                0x88be => ethernet(scan.inside(Layer::Erspan)?, rest.after(8)?),
                0x22eb => {
                    let platform = if rest.data.get(11)? & 1 == 1 { 8 } else { 0 };
                    ethernet(scan.inside(Layer::Erspan)?, rest.after(12 + platform)?)
                }
                0x880b => ppp(scan, rest),
                _ => ether_type(scan, kind, rest),
            }
        }
        // A separate acknowledgement has no sequence number and no payload.
        1 if kind == 0x880b && flags & SEQUENCE != 0 => {
            ppp(scan, rest.after(12 + field(ACKNOWLEDGEMENT))?)
        }
        _ => None,
    }
}

/// VXLAN (also at Linux's former port), Geneve, GTP-U and MPLS in UDP (RFC 7510), recognised by the destination port.
fn inside_udp(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let port = be16(rest.data, 2)?;
    let rest = rest.after(udp::HEADER)?;
    match port {
        4_789 | 8_472 => vxlan(scan, rest),
        6_081 => geneve(scan, rest),
        2_152 => gtp_u(scan, rest),
        // Neither IP nor Ethernet: the format is unknown.
        6_635 => mpls(scan, rest).filter(|content| !matches!(content, Content::Other(_))),
        _ => None,
    }
}

fn vxlan(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    const HAS_NETWORK: u8 = 0x08;
    const GROUP_POLICY: u8 = 0x80;
    let word = be32(rest.data, 4)?;
    if rest.data[0] & !GROUP_POLICY != HAS_NETWORK || word & 0xff != 0 {
        return None;
    }
    let mut scan = scan.inside(Layer::Vxlan)?;
    scan.layers.add_network(Layer::Vxlan, word >> 8);
    ethernet(scan, rest.after(8)?)
}

fn geneve(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let (first, kind, word) = (*rest.data.first()?, be16(rest.data, 2)?, be32(rest.data, 4)?);
    if first >> 6 != 0 || word & 0xff != 0 {
        return None;
    }
    let mut scan = scan.inside(Layer::Geneve)?;
    scan.layers.add_network(Layer::Geneve, word >> 8);
    ether_type(scan, kind, rest.after(8 + 4 * usize::from(first & 0x3f))?)
}

/// GTP-U: eight bytes, four more with any of the flags E, S and PN, then extension headers (TS 29.281 §5).
fn gtp_u(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    const USER_DATA: u8 = 255;
    let flags = *rest.data.first()?;
    if flags & 0xf0 != 0x30 || *rest.data.get(1)? != USER_DATA {
        return None;
    }
    let scan = scan.inside(Layer::GtpU)?;
    if flags & 7 == 0 {
        return ip(scan, rest.after(8)?);
    }
    let mut extension = if flags & 4 != 0 { *rest.data.get(11)? } else { 0 };
    let mut rest = rest.after(12)?;
    while extension != 0 {
        let length = usize::from(*rest.data.first()?) * 4;
        if length == 0 {
            return None;
        }
        extension = *rest.data.get(length - 1)?;
        rest = rest.after(length)?;
    }
    ip(scan, rest)
}
