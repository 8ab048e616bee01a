//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and the segment behind them.

use super::bytes::{be16, be32};
use super::packet::{Address, Content, Packet};
use super::tcp;

/// Reads from IP's header on; `whole`: bytes that were on the line from here.
pub fn content(time_ns: i64, data: &[u8], whole: usize) -> Content {
    let read = match data.first().map(|byte| byte >> 4) {
        Some(4) => version_4(time_ns, data, whole),
        Some(6) => version_6(time_ns, data, whole),
        _ => None,
    };
    read.unwrap_or(Content::Malformed)
}

fn version_4(time_ns: i64, data: &[u8], whole: usize) -> Option<Content> {
    let header = usize::from(data[0] & 15) * 4;
    if header < 20 || data.len() < header {
        return None;
    }
    if data[9] != tcp::PROTOCOL {
        return Some(Content::Other);
    }
    if be16(data, 6)? & 0x3fff != 0 {
        return Some(Content::Fragment);
    }
    // A super-segment's total length is 0 when it does not fit (BIG TCP), or before the NIC has cut it.
    let total = match usize::from(be16(data, 2)?) {
        0 => whole,
        total => total,
    };
    let mut packet = Packet {
        time_ns,
        source: mapped(data, 12)?,
        destination: mapped(data, 16)?,
        ip_id: be16(data, 4),
        ttl: data[8],
        ecn: data[1] & 3,
        ip_bytes: total as u32,
        ..Packet::default()
    };
    tcp::read(&mut packet, &data[header..], total.checked_sub(header)?)?;
    Some(Content::Tcp(packet))
}

fn version_6(time_ns: i64, data: &[u8], whole: usize) -> Option<Content> {
    const HEADER: usize = 40;
    if data.len() < HEADER {
        return None;
    }
    // The length is 0 in jumbograms (RFC 2675), which BIG TCP makes.
    let total = match usize::from(be16(data, 4)?) {
        0 => whole,
        length => HEADER + length,
    };
    let (mut next, mut at) = (data[6], HEADER);
    while next != tcp::PROTOCOL {
        let length = match next {
            0 | 43 | 60 => (usize::from(*data.get(at + 1)?) + 1) * 8,
            51 => (usize::from(*data.get(at + 1)?) + 2) * 4,
            44 if be16(data, at + 2)? & 0xfff9 != 0 => return Some(Content::Fragment),
            44 => 8,
            _ => return Some(Content::Other),
        };
        next = *data.get(at)?;
        at += length;
    }
    let mut packet = Packet {
        time_ns,
        source: *data[8..].first_chunk()?,
        destination: *data[24..].first_chunk()?,
        ttl: data[7],
        ecn: (be16(data, 0)? >> 4) as u8 & 3,
        ip_bytes: total as u32,
        ..Packet::default()
    };
    tcp::read(&mut packet, data.get(at..)?, total.checked_sub(at)?)?;
    Some(Content::Tcp(packet))
}

fn mapped(data: &[u8], at: usize) -> Option<Address> {
    let mut address = [0; 16];
    address[10..12].fill(0xff);
    address[12..].copy_from_slice(&be32(data, at)?.to_be_bytes());
    Some(address)
}
