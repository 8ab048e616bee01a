//! TCP's header and options (RFC 9293 §3.1, RFC 7323, RFC 2018, RFC 7413, RFC 8684, RFC 9768).

use super::bytes::{be16, be32};
use super::packet::Packet;
use dragstrip_packet::EcnBytes;

/// TCP's number in IP.
pub const PROTOCOL: u8 = 6;

/// Adds the fields of TCP's header; `whole`: bytes of the segment on the wire. `None`: cut off or contradictory.
pub fn read(packet: &mut Packet, data: &[u8], whole: usize) -> Option<()> {
    let word = be16(data, 12)?;
    let header = usize::from(word >> 12) * 4;
    packet.source_port = be16(data, 0)?;
    packet.destination_port = be16(data, 2)?;
    packet.seq = be32(data, 4)?;
    packet.ack = be32(data, 8)?;
    packet.flags = word & 0x1ff;
    packet.window = be16(data, 14)?;
    if header < 20 {
        return None;
    }
    packet.payload = u32::try_from(whole.checked_sub(header)?).ok()?;
    packet.options_cut = data.len() < header;
    options(packet, data.get(20..header.min(data.len())).unwrap_or_default());
    Some(())
}

fn options(packet: &mut Packet, mut rest: &[u8]) {
    while let [kind, after @ ..] = rest {
        match kind {
            0 => return,
            1 => rest = after,
            _ => {
                let Some(length) = after.first().map(|length| usize::from(*length)) else { return };
                let Some(value) = rest.get(2..length) else { return };
                option(packet, *kind, value);
                rest = &rest[length..];
            }
        }
    }
}

fn option(packet: &mut Packet, kind: u8, value: &[u8]) {
    match (kind, value.len()) {
        (2, 2) => packet.mss = be16(value, 0),
        (3, 1) => packet.window_scale = Some(value[0].min(14)), // RFC 7323 §2.3
        (4, 0) => packet.sack_permitted = true,
        (5, _) => {
            for (slot, block) in packet.sacks.iter_mut().zip(value.chunks_exact(8)) {
                if let (Some(left), Some(right)) = (be32(block, 0), be32(block, 4)) {
                    *slot = (left, right);
                    packet.sack_count += 1;
                }
            }
        }
        (8, 8) => packet.stamps = be32(value, 0).zip(be32(value, 4)),
        (30, 1..) if packet.mptcp.is_none() => packet.mptcp = Some(value[0] >> 4),
        (34, cookie) => packet.fast_open = Some(cookie as u8),
        // The experiment's number before RFC 7413 gave the option one.
        (254, 2..) if be16(value, 0) == Some(0xf989) => {
            packet.fast_open = Some(value.len() as u8 - 2);
        }
        (172 | 174, 0 | 3 | 6 | 9) => packet.ecn_bytes = Some(ecn_bytes(kind, value)),
        _ => {}
    }
}

fn ecn_bytes(kind: u8, value: &[u8]) -> EcnBytes {
    let mut counters = [0; 3];
    for (counter, bytes) in counters.iter_mut().zip(value.chunks_exact(3)) {
        *counter = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
    }
    EcnBytes { ect1_first: kind == 174, fields: value.len() as u8 / 3, counters }
}
