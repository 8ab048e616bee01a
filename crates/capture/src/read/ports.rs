//! Names of what is not TCP: UDP's ports (IANA's registry of service names), IP's protocols, EtherTypes.

use super::packet::Protocol;

/// Ports of UDP that have a name, the servers'.
const UDP: &[(u16, &str)] = &[
    (53, "DNS"),
    (67, "DHCP"),
    (69, "TFTP"),
    (123, "NTP"),
    (137, "NetBIOS name service"),
    (138, "NetBIOS datagrams"),
    (161, "SNMP"),
    (162, "SNMP traps"),
    (319, "PTP"),
    (320, "PTP"),
    (389, "LDAP"),
    (443, "QUIC"),
    (500, "IKE"),
    (514, "syslog"),
    (520, "RIP"),
    (521, "RIPng"),
    (547, "DHCPv6"),
    (853, "DNS over QUIC"),
    (1_194, "OpenVPN"),
    (1_701, "L2TP"),
    (1_812, "RADIUS"),
    (1_813, "RADIUS accounting"),
    (1_900, "SSDP"),
    (2_055, "NetFlow"),
    (2_123, "GTP-C"),
    (2_152, "GTP-U"),
    (3_478, "STUN"),
    (3_544, "Teredo"),
    (3_702, "WS-Discovery"),
    (3_784, "BFD"),
    (4_500, "IPsec NAT traversal"),
    (4_739, "IPFIX"),
    (4_789, "VXLAN"),
    (5_060, "SIP"),
    (5_246, "CAPWAP control"),
    (5_247, "CAPWAP data"),
    (5_353, "mDNS"),
    (5_355, "LLMNR"),
    (6_081, "Geneve"),
    (6_343, "sFlow"),
    (6_635, "MPLS in UDP"),
    (8_472, "VXLAN"),
    (17_500, "Dropbox LAN sync"),
    (51_820, "WireGuard"),
];

/// Ports of clients, which count as their servers'.
const CLIENTS: &[(u16, u16)] = &[(68, 67), (546, 547)];

fn udp_name(port: u16) -> Option<&'static str> {
    UDP.binary_search_by_key(&port, |row| row.0).ok().map(|row| UDP[row].1)
}

/// The port that identifies a datagram's service: one with a name, the destination's before the source's; otherwise
/// the lower.
pub fn service(source: u16, destination: u16) -> u16 {
    let named_port = [destination, source].into_iter().find(|port| udp_name(*port).is_some());
    named_port.unwrap_or_else(|| {
        let lower = source.min(destination);
        CLIENTS.iter().find(|row| row.0 == lower).map_or(lower, |row| row.1)
    })
}

impl Protocol {
    /// The protocol's name, its port, and the meaning of the port, the type or the number.
    #[must_use]
    pub fn names(self) -> (String, Option<u16>, Option<&'static str>) {
        match self {
            Self::Port(17, port) => ("UDP".to_owned(), Some(port), udp_name(port)),
            Self::Port(protocol, port) => (ip_name(protocol), Some(port), None),
            Self::Ip(protocol) => (ip_name(protocol), None, None),
            Self::Fragment(protocol) => (ip_name(protocol), None, Some("later fragments")),
            Self::Icmp(kind) => ("ICMP".to_owned(), None, icmp_name(kind)),
            Self::Icmp6(kind) => ("ICMPv6".to_owned(), None, icmp6_name(kind)),
            Self::EtherType(kind) => (ether_name(kind), None, None),
            Self::Ppp(protocol) => (format!("PPP protocol {protocol:#06x}"), None, None),
            Self::Family(family) => (format!("address family {family}"), None, None),
        }
    }
}

fn ip_name(protocol: u8) -> String {
    let name = match protocol {
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4 in IP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6 in IP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        88 => "EIGRP",
        89 => "OSPF",
        97 => "EtherIP",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TPv3",
        132 => "SCTP",
        136 => "UDP-Lite",
        137 => "MPLS in IP",
        _ => return format!("IP protocol {protocol}"),
    };
    name.to_owned()
}

fn ether_name(kind: u16) -> String {
    let name = match kind {
        ..=1_500 => "802.3 LLC",
        0x0806 => "ARP",
        0x22f0 => "AVTP",
        0x8035 => "RARP",
        0x8809 => "slow protocols (LACP)",
        0x8847 => "MPLS",
        0x8863 => "PPPoE discovery",
        0x888e => "802.1X",
        0x88a2 => "ATA over Ethernet",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0x8902 => "CFM",
        0x9000 => "loopback test",
        _ => return format!("EtherType {kind:#06x}"),
    };
    name.to_owned()
}

fn icmp_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0 => "echo reply",
        3 => "destination unreachable",
        5 => "redirect",
        8 => "echo request",
        11 => "time exceeded",
        _ => return None,
    })
}

fn icmp6_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        1 => "destination unreachable",
        2 => "packet too big",
        3 => "time exceeded",
        128 => "echo request",
        129 => "echo reply",
        133 => "router solicitation",
        134 => "router advertisement",
        135 => "neighbour solicitation",
        136 => "neighbour advertisement",
        143 => "multicast listener report",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_ports_are_in_order() {
        assert!(UDP.is_sorted_by_key(|row| row.0));
    }

    #[test]
    fn a_service_is_the_server_in_both_directions() {
        assert_eq!((service(546, 547), service(547, 546)), (547, 547));
        assert_eq!((service(68, 67), service(67, 68), service(68, 60_000)), (67, 67, 67));
        assert_eq!((service(50_000, 443), service(443, 50_000)), (443, 443));
        assert_eq!((service(9_999, 40_000), service(40_000, 9_999)), (9_999, 9_999));
    }
}
