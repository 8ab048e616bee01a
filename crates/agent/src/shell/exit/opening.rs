//! Packets that may open a connection or a flow of datagrams to an address outside.

use crate::forward::packet::{self, Header, TCP, UDP, pair};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const FRAGMENT: u8 = 44;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Kind of a packet to an address outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first segment of a connection.
    Connection,
    /// A datagram, or the first fragment of one.
    Datagram,
    /// A packet without ports: a later fragment, which follows its first, or a protocol that is not relayed.
    Other,
}

/// A packet's ends and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub kind: Kind,
    /// Protocol number of the packet.
    pub protocol: u8,
    pub from: SocketAddr,
    pub to: SocketAddr,
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let ipv4 = <[u8; 4]>::try_from(octets).map(|octets| Ipv4Addr::from(octets).into());
    ipv4.or_else(|_| <[u8; 16]>::try_from(octets).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

/// Reads a packet's ends and kind; none of a segment that opens nothing, or of what is no IP packet.
pub fn read(packet: &[u8]) -> Option<Opening> {
    let mut header = packet::header(packet)?;
    if header.protocol == FRAGMENT && packet[0] >> 4 == 6 {
        // RFC 8200 §4.5: the offset is in the upper thirteen bits.
        let (protocol, offset) = (*packet.get(header.start)?, pair(packet, header.start + 2)? >> 3);
        header = Header { protocol, start: header.start + 8, is_first: offset == 0, ..header };
    }
    let Header { protocol, addresses, start, is_first, .. } = header;
    let (from, to) = addresses.split_at(addresses.len() / 2);
    let (from, to) = (address(from)?, address(to)?);
    let opening = |kind, ports: [u16; 2]| Opening {
        kind,
        protocol,
        from: SocketAddr::new(from, ports[0]),
        to: SocketAddr::new(to, ports[1]),
    };
    let has_ports = is_first && matches!(protocol, TCP | UDP);
    if !has_ports {
        return Some(opening(Kind::Other, [0, 0]));
    }
    let ports = [pair(packet, start)?, pair(packet, start + 2)?];
    if protocol == UDP {
        return Some(opening(Kind::Datagram, ports));
    }
    let flags = packet.get(start + 13)?;
    (flags & (SYN | ACK) == SYN).then(|| opening(Kind::Connection, ports))
}

/// True of a packet that the far end's kernel must not have before the relay: it leads to another address than `inside`
/// and may open something there.
pub fn may_open(packet: &[u8], inside: &[IpAddr]) -> bool {
    read(packet).is_some_and(|opening| {
        let is_group = opening.to.ip().is_multicast();
        !inside.contains(&opening.to.ip()) && !is_group && !is_about_a_path(packet, &opening)
    })
}

/// True of ICMP's messages about packets, such as "port unreachable", which answer and open nothing.
fn is_about_a_path(packet: &[u8], opening: &Opening) -> bool {
    const ECHO_REQUEST: u8 = 8;
    const ECHO_REQUEST_V6: u8 = 128;
    let kind = packet::header(packet).and_then(|header| packet.get(header.start)).copied();
    match opening.protocol {
        ICMP => kind != Some(ECHO_REQUEST),
        ICMPV6 => kind != Some(ECHO_REQUEST_V6),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: [IpAddr; 1] = [IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2))];

    fn packet(protocol: u8, to: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 18, 0, 1];
        packet.extend(to);
        packet.extend(rest);
        packet
    }

    fn segment(flags: u8) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[..4].copy_from_slice(&[0x10, 0, 0, 80]);
        header[13] = flags;
        header
    }

    #[test]
    fn a_first_segment_opens_and_others_pass() {
        let to = [192, 0, 2, 1];
        let first = packet(TCP, to, &segment(SYN));
        let opening = read(&first).unwrap();
        assert_eq!(opening.kind, Kind::Connection);
        assert_eq!(opening.from, "198.18.0.1:4096".parse().unwrap());
        assert_eq!(opening.to, "192.0.2.1:80".parse().unwrap());
        assert!(may_open(&first, &INSIDE));
        for flags in [ACK, ACK | SYN, 4, 1] {
            assert!(!may_open(&packet(TCP, to, &segment(flags)), &INSIDE), "{flags}");
        }
        assert!(!may_open(&packet(TCP, [198, 18, 0, 2], &segment(SYN)), &INSIDE));
    }

    #[test]
    fn datagrams_fragments_and_echo_requests_are_the_relays() {
        let to = [192, 0, 2, 1];
        assert!(may_open(&packet(UDP, to, &[0, 1, 0, 53, 0, 8, 0, 0]), &INSIDE));
        let mut later = packet(UDP, to, &[0; 8]);
        later[7] = 9;
        assert_eq!(read(&later).unwrap().kind, Kind::Other);
        assert!(may_open(&later, &INSIDE));
        let mut six = [0; 60];
        (six[0], six[6], six[40]) = (0x60, FRAGMENT, UDP);
        assert_eq!(read(&six).unwrap().kind, Kind::Datagram);
        six[43] = 8;
        assert_eq!(read(&six).unwrap().kind, Kind::Other);
        assert_eq!(read(&six).unwrap().protocol, UDP);
        assert!(may_open(&packet(ICMP, to, &[8, 0, 0, 0]), &INSIDE));
        assert!(!may_open(&packet(ICMP, to, &[3, 3, 0, 0]), &INSIDE));
        assert!(!may_open(&packet(UDP, [224, 0, 0, 22], &[0; 8]), &INSIDE));
    }

    #[test]
    fn cut_packets_open_nothing_without_a_panic() {
        let whole = packet(TCP, [192, 0, 2, 1], &segment(SYN));
        for length in 0..whole.len() {
            let _ = may_open(&whole[..length], &INSIDE);
        }
        let mut six = [0; 60];
        six[0] = 0x60;
        six[6] = TCP;
        for length in 0..six.len() {
            let _ = may_open(&six[..length], &INSIDE);
        }
    }
}
