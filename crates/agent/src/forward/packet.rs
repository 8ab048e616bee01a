//! Real IP packets as the forwarder's queues see them, and what those queues write into one.

use dragstrip_packet::{
    Body, Datagram, ETHERNET_BYTES, Flags, SackBlock, Segment, Timestamps, TrafficClass,
};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Bits of the fragment offset (RFC 791 §3.1).
const OFFSET: u16 = 0x1fff;

/// Properties of a packet that queues classify and count by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// Hash of the 5-tuple; of a packet without ports, of addresses and protocol.
    pub flow: u32,
    pub class: TrafficClass,
    pub body: Body,
    /// The frame that an Ethernet would carry it in, without FCS.
    pub frame_bytes: u32,
}

/// Two octets at a position.
pub fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn quad(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Fields of an IP header that both the queues and the [way out](super::exit) look at.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    pub class: u8,
    pub protocol: u8,
    /// Source and destination, one behind the other.
    pub addresses: &'a [u8],
    /// Position of what follows the header.
    pub start: usize,
    /// False of an IPv4 fragment other than the first, which has no ports.
    pub is_first: bool,
}

/// Reads an IPv4 or IPv6 header; none if the packet is neither. Extension headers of IPv6 are not looked behind.
pub fn header(packet: &[u8]) -> Option<Header<'_>> {
    Some(match packet.first()? >> 4 {
        4 if packet.len() >= IPV4_BYTES => Header {
            class: packet[1],
            protocol: packet[9],
            addresses: &packet[12..20],
            start: usize::from(packet[0] & 15) * 4,
            is_first: pair(packet, 6)? & OFFSET == 0,
        },
        6 if packet.len() >= IPV6_BYTES => Header {
            class: packet[0] << 4 | packet[1] >> 4,
            protocol: packet[6],
            addresses: &packet[8..40],
            start: IPV6_BYTES,
            is_first: true,
        },
        _ => return None,
    })
}

/// Reads an IPv4 or IPv6 packet; none if it is neither. Extension headers of IPv6 hide the ports behind them.
pub fn describe(packet: &[u8]) -> Option<Description> {
    let frame_bytes = ETHERNET_BYTES + packet.len() as u32;
    let Header { class, protocol, addresses, start, is_first } = header(packet)?;
    let payload = packet.get(start..).unwrap_or_default();
    let ports = if is_first && matches!(protocol, TCP | UDP) { quad(payload, 0) } else { None };
    let words = addresses.chunks_exact(4).filter_map(|word| quad(word, 0));
    let flow = words.chain([u32::from(protocol), ports.unwrap_or_default()]).fold(0, mix);
    let body = if is_first && protocol == TCP { segment(payload).map(Body::Tcp) } else { None };
    let other = Datagram { number: 0, len: payload.len() as u16 };
    Some(Description {
        flow: (flow >> 32) as u32,
        class: TrafficClass::from_octet(class),
        body: body.unwrap_or(Body::Udp(other)),
        frame_bytes,
    })
}

/// SplitMix64's finaliser over what came before and another word.
fn mix(hash: u64, word: u32) -> u64 {
    let mut x = hash.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ u64::from(word);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Header flags by their bit in TCP's fourteenth octet (RFC 9293 §3.1, RFC 3168 §6.1); the urgent pointer is not modelled.
const FLAGS: [(u8, Flags); 7] = [
    (1, Flags::FIN),
    (2, Flags::SYN),
    (4, Flags::RST),
    (8, Flags::PSH),
    (16, Flags::ACK),
    (64, Flags::ECE),
    (128, Flags::CWR),
];

/// The segment of a TCP header, with the options that filters of acknowledgements and header compression compare; the window is
/// not scaled.
fn segment(bytes: &[u8]) -> Option<Segment> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let payload = bytes.len().checked_sub(header)?;
    let octet = *bytes.get(13)?;
    let flags = FLAGS
        .into_iter()
        .fold(Flags::default(), |flags, (bit, flag)| flags.with_if(flag, octet & bit != 0));
    let flags = flags.with_if(Flags::AE, bytes[12] & 1 != 0);
    let mut segment = Segment::new(quad(bytes, 4)?.into(), payload as u16, flags);
    segment.ack = quad(bytes, 8)?.into();
    segment.window = pair(bytes, 14)?.into();
    let (mut rest, mut blocks, mut stamps) = (bytes.get(20..header)?, &[][..], None);
    while let [kind, tail @ ..] = rest {
        let length = match (kind, tail.first()) {
            (0, _) => break,
            (1, _) => {
                rest = tail;
                continue;
            }
            (_, Some(length)) => usize::from(*length),
            (_, None) => break,
        };
        let Some(option) = rest.get(2..length) else { break };
        match kind {
            5 => blocks = option,
            8 => stamps = quad(option, 0).zip(quad(option, 4)),
            _ => {}
        }
        rest = &rest[length..];
    }
    if let Some((val, ecr)) = stamps {
        segment.set_timestamps(Timestamps { val, ecr });
    }
    if !flags.has(Flags::SYN) {
        let ack = segment.ack as u32;
        let relative = |edge: u32| edge.wrapping_sub(ack) as i32;
        let edges = blocks.chunks_exact(8).filter_map(|block| quad(block, 0).zip(quad(block, 4)));
        let blocks: Vec<SackBlock> = edges
            .filter(|(start, end)| start != end)
            .map(|(start, end)| SackBlock { start: relative(start), end: relative(end) })
            .take(if stamps.is_some() { 3 } else { 4 })
            .collect();
        if !blocks.is_empty() {
            segment.set_sack(&blocks);
        }
    }
    Some(segment)
}

/// Writes a traffic class into the header, whose checksum stays right (RFC 1624, equation 3); IPv6 has none.
pub fn set_class(packet: &mut [u8], class: TrafficClass) {
    let octet = class.octet();
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= IPV4_BYTES => {
            let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let before = word(packet, 0);
            packet[1] = octet;
            let sum =
                u32::from(!word(packet, 10)) + u32::from(!before) + u32::from(word(packet, 0));
            let folded = (sum & 0xffff) + (sum >> 16);
            let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) if packet.len() >= IPV6_BYTES => {
            packet[0] = packet[0] & 0xf0 | octet >> 4;
            packet[1] = packet[1] & 0x0f | octet << 4;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_packet::{Dscp, Ecn};

    /// RFC 1071: the sum of a header with a right checksum.
    fn sum(header: &[u8]) -> u16 {
        let words =
            header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        ((folded & 0xffff) + (folded >> 16)) as u16
    }

    fn ipv4(class: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let length = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, class, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.extend([198, 18, 0, 2, 198, 18, 0, 1]);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn tcp(port: u16, options: &[u8], payload: usize) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0..2].copy_from_slice(&port.to_be_bytes());
        header[2..4].copy_from_slice(&80_u16.to_be_bytes());
        header[4..8].copy_from_slice(&1000_u32.to_be_bytes());
        header[8..12].copy_from_slice(&5000_u32.to_be_bytes());
        header[12] = ((20 + options.len()) / 4) as u8 * 16;
        header[13] = 0x58; // ECE, ACK, PSH
        header.extend(options);
        header.resize(header.len() + payload, 7);
        header
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for class in 0..=255 {
            let mut packet = ipv4(class, UDP, &[0; 12]);
            assert_eq!(sum(&packet[..20]), 0xffff);
            let description = describe(&packet).unwrap();
            assert_eq!(description.class.octet(), class);
            set_class(&mut packet, description.class.with_ecn(Ecn::Ce));
            assert_eq!(sum(&packet[..20]), 0xffff, "class {class}");
            assert_eq!(describe(&packet).unwrap().class.octet(), class | 3);
        }
    }

    #[test]
    fn a_mark_of_ipv6_leaves_version_and_flow_label() {
        let mut packet = vec![0x6b, 0x8a, 0xbc, 0xde, 0, 0, 17, 64];
        packet.resize(40, 9);
        let class = describe(&packet).unwrap().class;
        assert_eq!((class.dscp(), class.ecn()), (Dscp::EF, Ecn::NotEct));
        set_class(&mut packet, class.with_ecn(Ecn::Ce));
        assert_eq!(packet[..4], [0x6b, 0xba, 0xbc, 0xde]);
    }

    #[test]
    fn a_segment_is_read_with_its_options() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4, 1, 1, 5, 10];
        options.extend(6000_u32.to_be_bytes());
        options.extend(7000_u32.to_be_bytes());
        let description = describe(&ipv4(2, TCP, &tcp(4000, &options, 100))).unwrap();
        let Body::Tcp(segment) = description.body else { panic!("TCP") };
        assert_eq!((segment.seq, segment.ack, segment.len), (1000, 5000, 100));
        assert!(segment.flags.has(Flags::ACK.with(Flags::PSH).with(Flags::ECE)));
        assert!(!segment.flags.any(Flags::SYN.with(Flags::FIN)));
        assert_eq!(segment.timestamps(), Some(Timestamps { val: 3, ecr: 4 }));
        assert_eq!(segment.sack().collect::<Vec<_>>(), [SackBlock { start: 1000, end: 2000 }]);
        assert_eq!(description.frame_bytes, 14 + 20 + 20 + 24 + 100);
        assert_eq!(description.class.ecn(), Ecn::Ect0);
    }

    #[test]
    fn ports_tell_flows_apart_and_noise_is_no_packet() {
        let flow = |port| describe(&ipv4(0, TCP, &tcp(port, &[], 5))).unwrap().flow;
        assert_eq!(flow(4000), flow(4000));
        assert_ne!(flow(4000), flow(4001));
        assert_eq!(describe(&[]), None);
        assert_eq!(describe(&[0x45; 19]), None);
        assert_eq!(describe(&[0x60; 39]), None);
        assert_eq!(describe(&[0x15; 60]), None);
        for length in 20..60 {
            let mut packet = ipv4(0, TCP, &tcp(1, &[5, 40, 8, 200], 0));
            packet.truncate(length);
            assert!(describe(&packet).is_some());
        }
    }
}
