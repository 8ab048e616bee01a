//! Packets inside GRE and inside UDP. A header that contradicts its own format is no tunnel.

use super::bytes::{be16, be32};
use super::frame::{Rest, Scan, ether_type, ethernet, mpls, ppp};
use super::ip;
use super::layers::Layer;
use super::packet::Content;
use super::udp;

/// GRE (RFC 2784, RFC 2890), PPTP's variant (RFC 2637 §4.1), and ERSPAN in it.
pub fn gre(scan: Scan, rest: Rest<'_>) -> Option<Content> {
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
        // An acknowledgement of its own has no sequence number and no payload.
        1 if kind == 0x880b && flags & SEQUENCE != 0 => {
            ppp(scan, rest.after(12 + field(ACKNOWLEDGEMENT))?)
        }
        _ => None,
    }
}

/// VXLAN (also at Linux's former port), Geneve, GTP-U and MPLS in UDP (RFC 7510), told by the port they go to.
pub fn udp(scan: Scan, rest: Rest<'_>) -> Option<Content> {
    let port = be16(rest.data, 2)?;
    let rest = rest.after(udp::HEADER)?;
    match port {
        4_789 | 8_472 => vxlan(scan, rest),
        6_081 => geneve(scan, rest),
        2_152 => gtp_u(scan, rest),
        // What is neither IP nor Ethernet may be anything.
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
        return ip::content(scan, rest.after(8)?);
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
    ip::content(scan, rest)
}
