//! The peer's segments as Ethernet frames.

use super::{OWN, OWN_MAC, PEER, PEER_MAC};
use dragstrip_conformance::{EcnBytes, Packet, SynOptions};
use std::net::Ipv4Addr;

pub const OWN_PORT: u16 = 5001;
pub const PEER_PORT: u16 = 30_001;
/// The peer's initial sequence number; the scripts count from its first byte of data.
const PEER_ISN: u32 = 1_000_000;
/// The peer's window scale.
const SCALE: u8 = 7;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const ECE: u8 = 64;
const CWR: u8 = 128;
/// In the octet before those.
const AE: u8 = 1;
const ECT1: u8 = 1;
const ECT0: u8 = 2;
const CE: u8 = 3;

/// A segment of the kernel's, its sequence number not yet made relative.
pub struct Raw {
    pub sequence: u32,
    pub packet: Packet,
    /// The shift of the following windows, present in a SYN only.
    pub scale: Option<u8>,
}

/// Reads a frame from the socket under test; nothing if it is something else.
pub fn read(frame: &[u8]) -> Option<Raw> {
    let ip = frame.get(14..34)?;
    if frame[12..14] != [8, 0] || ip[0] != 0x45 || ip[9] != 6 || ip[12..16] != OWN.octets() {
        return None;
    }
    let tcp = frame.get(34..)?;
    let short = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    let total = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    let has_ack = flags & ACK != 0;
    let ack = i64::from(long(8).wrapping_sub(PEER_ISN) as i32) - 1;
    let mut packet = Packet {
        len: total.checked_sub(20 + header as u32)?,
        ack: if has_ack { ack } else { 0 },
        syn: flags & SYN != 0,
        fin: flags & FIN != 0,
        rst: flags & RST != 0,
        has_ack,
        psh: flags & PSH != 0,
        ece: flags & ECE != 0,
        cwr: flags & CWR != 0,
        ae: *tcp.get(12)? & AE != 0,
        ect: matches!(ip[1] & 3, ECT0 | ECT1),
        ect1: ip[1] & 3 == ECT1,
        ce: ip[1] & 3 == CE,
        window_bytes: u32::from(short(14)),
        ..Packet::default()
    };
    let scale = read_options(tcp.get(20..header)?, &mut packet);
    Some(Raw { sequence: long(4), packet, scale })
}

/// Fills in SACK blocks and timestamps; the window's scale, if it is there.
fn read_options(mut options: &[u8], packet: &mut Packet) -> Option<u8> {
    let mut scale = None;
    let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let relative = |number: u32| i64::from(number.wrapping_sub(PEER_ISN) as i32) - 1;
    while let [kind, rest @ ..] = options {
        if *kind == 1 {
            options = rest;
            continue;
        }
        let length = rest.first().map_or(0, |length| usize::from(*length));
        if *kind == 0 || length < 2 || length > options.len() {
            return scale;
        }
        let body = &options[2..length];
        match (*kind, body.len()) {
            (5, _) => {
                let blocks = body.chunks_exact(8);
                packet.sack =
                    blocks.map(|b| (relative(word(b)), relative(word(&b[4..])))).collect();
            }
            (172 | 174, _) => {
                let counter = |b: &[u8]| u32::from_be_bytes([0, b[0], b[1], b[2]]);
                let counters = body.chunks_exact(3).map(counter).collect();
                packet.bytes = Some(EcnBytes { ect1_first: *kind == 174, counters });
            }
            (3, 1) => scale = Some(body[0].min(14)),
            (8, 8) => packet.timestamps = Some((word(body), word(&body[4..]))),
            _ => {}
        }
        options = &options[length..];
    }
    scale
}

/// The frame of a segment of the peer's.
pub fn write(packet: &Packet, own_isn: u32, scaling: bool) -> Vec<u8> {
    let sequence = |relative: i64, isn: u32| isn.wrapping_add(1).wrapping_add(relative as u32);
    let options = options(packet, own_isn);
    let mut tcp = Vec::new();
    tcp.extend_from_slice(&PEER_PORT.to_be_bytes());
    tcp.extend_from_slice(&OWN_PORT.to_be_bytes());
    tcp.extend_from_slice(&sequence(packet.seq, PEER_ISN).to_be_bytes());
    let ack = if packet.has_ack { sequence(packet.ack, own_isn) } else { 0 };
    tcp.extend_from_slice(&ack.to_be_bytes());
    let flags = [
        (SYN, packet.options.is_some()),
        (FIN, packet.fin),
        (RST, packet.rst),
        (PSH, packet.psh),
        (ACK, packet.has_ack),
        (ECE, packet.ece),
        (CWR, packet.cwr),
    ];
    let flags = flags.into_iter().fold(0, |all, (bit, set)| if set { all | bit } else { all });
    let ae = if packet.ae { AE } else { 0 };
    tcp.extend_from_slice(&[((20 + options.len()) as u8 / 4) << 4 | ae, flags]);
    let shift = if scaling && packet.options.is_none() { SCALE } else { 0 };
    let window = (packet.window_bytes >> shift).min(65_535) as u16;
    tcp.extend_from_slice(&window.to_be_bytes());
    tcp.extend_from_slice(&[0; 4]);
    tcp.extend_from_slice(&options);
    tcp.resize(tcp.len() + packet.len as usize, 0);
    let sum = segment_sum(&tcp);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let mark = if packet.ce {
        CE
    } else if packet.ect1 {
        ECT1
    } else if packet.ect {
        ECT0
    } else {
        0
    };
    frame(6, mark, PEER, &tcp)
}

/// The ICMP message of a router that has no way for the segment that begins at `seq` (RFC 1191 §4).
pub fn too_big(seq: i64, own_isn: u32, mtu: u32) -> Vec<u8> {
    let seq = own_isn.wrapping_add(1).wrapping_add(seq as u32);
    let mut quoted = header(1500, 6, 0, OWN, PEER);
    quoted.extend_from_slice(&OWN_PORT.to_be_bytes());
    quoted.extend_from_slice(&PEER_PORT.to_be_bytes());
    quoted.extend_from_slice(&seq.to_be_bytes());
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend_from_slice(&(mtu as u16).to_be_bytes());
    icmp.extend_from_slice(&quoted);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    frame(1, 0, PEER, &icmp)
}

fn segment_sum(tcp: &[u8]) -> u16 {
    let mut pseudo = [&PEER.octets()[..], &OWN.octets(), &[0, 6]].concat();
    pseudo.extend_from_slice(&(tcp.len() as u16).to_be_bytes());
    pseudo.extend_from_slice(tcp);
    checksum(&pseudo)
}

fn header(total: u16, protocol: u8, mark: u8, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let [high, low] = total.to_be_bytes();
    let mut ip = vec![0x45, mark, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    ip.extend_from_slice(&from.octets());
    ip.extend_from_slice(&to.octets());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn frame(protocol: u8, mark: u8, from: Ipv4Addr, body: &[u8]) -> Vec<u8> {
    let ip = header((20 + body.len()) as u16, protocol, mark, from, OWN);
    [&OWN_MAC[..], &PEER_MAC, &[8, 0], &ip, body].concat()
}

fn options(packet: &Packet, own_isn: u32) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some(SynOptions { mss, sack, timestamps: _, scaling }) = packet.options {
        options.extend_from_slice(&[2, 4]);
        options.extend_from_slice(&(mss as u16).to_be_bytes());
        if sack {
            options.extend_from_slice(&[1, 1, 4, 2]);
        }
        if scaling {
            options.extend_from_slice(&[1, 3, 3, SCALE]);
        }
    }
    if let Some((value, echo)) = packet.timestamps {
        options.extend_from_slice(&[1, 1, 8, 10]);
        options.extend_from_slice(&value.to_be_bytes());
        options.extend_from_slice(&echo.to_be_bytes());
    }
    if !packet.sack.is_empty() {
        options.extend_from_slice(&[1, 1, 5, 2 + 8 * packet.sack.len() as u8]);
        for edge in packet.sack.iter().flat_map(|(from, to)| [from, to]) {
            let number = own_isn.wrapping_add(1).wrapping_add(*edge as u32);
            options.extend_from_slice(&number.to_be_bytes());
        }
    }
    if let Some(EcnBytes { ect1_first, counters }) = &packet.bytes {
        let kind = if *ect1_first { 174 } else { 172 };
        options.extend_from_slice(&[kind, 2 + 3 * counters.len() as u8]);
        for counter in counters {
            options.extend_from_slice(&counter.to_be_bytes()[1..]);
        }
        options.resize(options.len().next_multiple_of(4), 1);
    }
    options
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or_default()));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_the_wire() {
        let original = Packet {
            seq: 1448,
            len: 100,
            ack: 2896,
            has_ack: true,
            psh: true,
            ect: true,
            ect1: true,
            ae: true,
            bytes: Some(EcnBytes { ect1_first: true, counters: vec![7, 70_000, 9] }),
            window_bytes: 128_000,
            sack: vec![(4344, 5792)],
            timestamps: Some((7, 8)),
            ..Packet::default()
        };
        let mut frame = write(&original, 5, true);
        assert_eq!(
            checksum(&frame[14..34]),
            0,
            "RFC 1071: with its checksum a header sums to nothing"
        );
        // As if the socket had sent it: read() ignores other senders.
        frame[26..30].copy_from_slice(&OWN.octets());
        let raw = read(&frame).unwrap();
        assert_eq!(raw.sequence, PEER_ISN + 1 + 1448);
        assert_eq!((raw.packet.len, raw.packet.psh, raw.packet.ect), (100, true, true));
        assert_eq!(
            (raw.packet.ect1, raw.packet.ace(), raw.packet.bytes),
            (true, 4, original.bytes)
        );
        assert_eq!((raw.packet.window_bytes, raw.packet.timestamps), (1000, Some((7, 8))));
        assert_eq!(raw.packet.sack[0].1 - raw.packet.sack[0].0, 1448);
        assert!(read(&frame[..40]).is_none());
    }
}
