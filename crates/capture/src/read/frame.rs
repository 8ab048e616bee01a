//! What a record holds before IP: link types (https://www.tcpdump.org/linktypes.html).

use super::Record;
use super::bytes::{be16, be32};
use super::ip;
use super::packet::Content;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

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
pub fn content(record: &Record<'_>) -> Result<Content, String> {
    if expect_known(record.link).is_err() {
        return Ok(Content::Foreign);
    }
    Ok(match network(record.link, record.data) {
        None => Content::Malformed,
        Some(None) => Content::Other,
        Some(Some(at)) => {
            let whole = (record.original as usize).saturating_sub(at);
            ip::content(record.time_ns, &record.data[at..], whole)
        }
    })
}

/// Where IP's header begins; inner `None`: another protocol. Outer `None`: cut off before that.
fn network(link: u32, data: &[u8]) -> Option<Option<usize>> {
    match link {
        1 => ether_type(data, be16(data, 12)?, 14),
        113 => ether_type(data, be16(data, 14)?, 16),
        276 => ether_type(data, be16(data, 0)?, 20),
        0 | 108 => {
            // The family is in the writer's byte order; all known ones fit into one byte.
            let family = be32(data, 0)?;
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            within(data, matches!(family, 2 | 10 | 24 | 28 | 30), 4)
        }
        9 | 50 => {
            let at = if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
            ppp(data, at)
        }
        _ => within(data, true, 0),
    }
}

/// Past VLAN tags and PPPoE.
fn ether_type(data: &[u8], mut kind: u16, mut at: usize) -> Option<Option<usize>> {
    loop {
        match kind {
            IPV4 | IPV6 => return within(data, true, at),
            0x8100 | 0x88a8 | 0x9100 => {
                kind = be16(data, at + 2)?;
                at += 4;
            }
            0x8864 => return ppp(data, at + 6),
            _ => return Some(None),
        }
    }
}

fn ppp(data: &[u8], at: usize) -> Option<Option<usize>> {
    let protocol = be16(data, at)?;
    within(data, matches!(protocol, 0x0021 | 0x0057), at + 2)
}

fn within(data: &[u8], is_ip: bool, at: usize) -> Option<Option<usize>> {
    if is_ip { (at < data.len()).then_some(Some(at)) } else { Some(None) }
}
