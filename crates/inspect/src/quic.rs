//! QUIC on UDP's port 443: packets and bytes of each connection, and its round trip by the spin bit (RFC 9000 §17.4).
//!
//! The spin bit of short headers has the client's value inverted once a round trip. An end that does not take part
//! sends a constant or random bits (RFC 9000 requires that of one connection in sixteen), so that a value counts only
//! if it follows the rule: the server repeats the client's last value, the client inverts the server's.

use crate::quantiles::Quantiles;
use dragstrip_capture::read::{Address, Datagram, Other};
use std::collections::BTreeMap;

/// QUIC's port.
const PORT: u16 = 443;
/// Connections that are followed.
const FOLLOWED_MAX: usize = 4_096;
/// Fewest changes of the bit for a result.
const CHANGES_MIN: u64 = 8;
/// Packets for each change, at least, where only one direction is in the capture: random bits change with every second.
const PACKETS_PER_CHANGE: u64 = 4;

/// Ends of a connection: the client's address and port, the server's.
pub type Ends = [(Address, u16); 2];

/// A connection.
#[derive(Debug, Default)]
pub struct Quic {
    /// Time of the first packet, by its file's clock.
    pub first_ns: i64,
    /// The last packet.
    pub last_ns: i64,
    /// Packets to the server and to the client.
    pub packets: [u64; 2],
    /// Bytes of their frames.
    pub bytes: [u64; 2],
    /// The version of the first long header.
    pub version: Option<u32>,
    /// Packets that begin as QUIC's do (RFC 8999: a long header, or the fixed bit).
    like: u64,
    spin: [Spin; 2],
    /// Changes of the bit that follow the rule, and others.
    changes: [u64; 2],
}

/// The spin bit of one direction.
#[derive(Debug, Default)]
struct Spin {
    value: Option<bool>,
    changed_ns: Option<i64>,
    /// The change before that, and the round trip between both: it counts with the next change.
    latest: Option<(i64, i64)>,
    packets: u64,
    changes: u64,
    trips: Quantiles,
}

impl Quic {
    /// True when most packets look like QUIC's.
    pub fn is_quic(&self) -> bool {
        2 * self.like >= self.packets[0] + self.packets[1]
    }

    /// Round trips, if the bit spins.
    pub fn trips(&self) -> Option<&Quantiles> {
        let [proper, improper] = self.changes;
        let has_both_ways = self.spin.iter().all(|spin| spin.packets > 0);
        let spins = if has_both_ways {
            proper + improper >= CHANGES_MIN && 10 * proper >= 9 * (proper + improper)
        } else {
            self.spin.iter().any(|spin| {
                spin.changes >= CHANGES_MIN && spin.packets >= PACKETS_PER_CHANGE * spin.changes
            })
        };
        let busier = self.spin.iter().max_by_key(|spin| spin.packets)?;
        (spins && busier.trips.count() > 0).then_some(&busier.trips)
    }

    fn take(&mut self, packet: &Other, datagram: &Datagram, side: usize) {
        self.last_ns = packet.time_ns;
        self.packets[side] += 1;
        self.bytes[side] += u64::from(packet.bytes);
        let Some(first) = datagram.begin[..usize::from(datagram.begin_bytes)].first() else {
            return;
        };
        let (long, fixed) = (first & 0x80 != 0, first & 0x40 != 0);
        self.like += u64::from(long || fixed);
        if long {
            if self.version.is_none() && datagram.begin_bytes == 5 {
                let [_, version @ ..] = datagram.begin;
                self.version = Some(u32::from_be_bytes(version)).filter(|version| *version != 0);
            }
        } else if fixed {
            self.spin(packet.time_ns, side, first & 0x20 != 0);
        }
    }

    fn spin(&mut self, at: i64, side: usize, value: bool) {
        let opposite = self.spin[1 - side].value;
        let spin_state = &mut self.spin[side];
        spin_state.packets += 1;
        let Some(before) = spin_state.value.replace(value).filter(|before| *before != value) else {
            return;
        };
        spin_state.changes += 1;
        // A client (side 0) inverts, a server reflects.
        let due = opposite.is_none_or(|opposite_value| {
            if side == 0 { opposite_value == before } else { opposite_value == value }
        });
        self.changes[usize::from(!due)] += 1;
        if due {
            if let Some((_, trip)) = spin_state.latest.take() {
                spin_state.trips.add(trip);
            }
            let changed = spin_state.changed_ns.replace(at);
            spin_state.latest = changed.map(|changed| (changed, at - changed));
        } else {
            // A late packet had brought back an old value, and this one ends that.
            spin_state.changed_ns = spin_state.latest.take().map(|(changed, _)| changed);
        }
    }
}

/// All connections of a file.
#[derive(Debug, Default)]
pub struct Quics {
    all: BTreeMap<Ends, Quic>,
    /// Packets of connections for which there was no room.
    pub passed: u64,
}

impl Quics {
    /// Takes a packet if it is of the port.
    pub fn take(&mut self, packet: &Other) {
        let Some(datagram) = &packet.datagram else { return };
        let Some((ends, side)) = ends(datagram) else { return };
        // Between two ports 443 the first packet's sender is the client.
        let turned = [ends[1], ends[0]];
        let (ends, side) = if ends[0].1 == PORT && self.all.contains_key(&turned) {
            (turned, 1 - side)
        } else {
            (ends, side)
        };
        if self.all.len() == FOLLOWED_MAX && !self.all.contains_key(&ends) {
            self.passed += 1;
            return;
        }
        let fresh = || Quic { first_ns: packet.time_ns, ..Quic::default() };
        self.all.entry(ends).or_insert_with(fresh).take(packet, datagram, side);
    }

    /// Each with its ends.
    pub fn iter(&self) -> impl Iterator<Item = (&Ends, &Quic)> {
        self.all.iter()
    }
}

/// The ends of a datagram's connection, and whether it goes to the client (1) or the server (0).
fn ends(datagram: &Datagram) -> Option<(Ends, usize)> {
    let from = (datagram.source, datagram.source_port);
    let to = (datagram.destination, datagram.destination_port);
    match (from.1, to.1) {
        (_, PORT) => Some(([from, to], 0)),
        (PORT, _) => Some(([to, from], 1)),
        _ => None,
    }
}

/// A version by the name that people know (IANA's registry of QUIC versions).
pub fn version_name(version: u32) -> String {
    match version {
        1 => "1".to_owned(),
        0x6b33_43cf => "2".to_owned(),
        0xff00_0000..=0xff00_00ff => format!("draft-{:02}", version & 0xff),
        0x5130_3030..=0x5139_3939 => String::from_utf8_lossy(&version.to_be_bytes()).into_owned(),
        _ => format!("{version:#010x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_capture::read::Protocol;

    fn packet(time_ns: i64, to_server: bool, first: u8) -> Other {
        let (client, server) = (([1; 16], 50_000), ([2; 16], PORT));
        let (from, to) = if to_server { (client, server) } else { (server, client) };
        let datagram = Datagram {
            source: from.0,
            destination: to.0,
            source_port: from.1,
            destination_port: to.1,
            begin: [first, 0, 0, 0, 1],
            begin_bytes: 5,
        };
        Other {
            time_ns,
            bytes: 1_242,
            protocol: Protocol::Port(17, PORT),
            datagram: Some(datagram),
        }
    }

    fn only(packets: impl IntoIterator<Item = Other>) -> Quic {
        let mut all = Quics::default();
        for packet in packets {
            all.take(&packet);
        }
        all.all.into_values().next().unwrap()
    }

    /// A download over 40 ms, seen at the server: its bit is the client's of 20 ms before.
    fn spun(client: bool, server: bool) -> Vec<Other> {
        let ms = 1_000_000;
        (0..2_000_i64)
            .flat_map(|n| {
                let at = n * ms;
                let bit = |spins: bool| if spins { ((n / 40 % 2) as u8) << 5 } else { 0 };
                let down = client.then(|| packet(at, true, 0x40 | bit(true)));
                let up = server.then(|| packet(at + 1, false, 0x40 | bit(true)));
                [down, up].into_iter().flatten().collect::<Vec<Other>>()
            })
            .collect()
    }

    #[test]
    fn a_bit_that_spins_tells_the_round_trip() {
        for (client, server) in [(true, true), (false, true), (true, false)] {
            let quic = only(spun(client, server));
            let trips = quic.trips().expect("it spins");
            assert_eq!(trips.at(0.5), Some(40e6), "{client} {server}");
        }
    }

    #[test]
    fn constant_and_random_bits_tell_nothing() {
        let constant = (0..500).map(|n| packet(n, n % 2 == 0, 0x40));
        assert!(only(constant).trips().is_none());
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8 & 0x20
        };
        let packets: Vec<Other> =
            (0..5_000).map(|n| packet(n * 1_000, n % 2 == 0, 0x40 | random())).collect();
        assert!(only(packets).trips().is_none());
        let single: Vec<Other> =
            (0..5_000).map(|n| packet(n * 1_000, true, 0x40 | random())).collect();
        assert!(only(single).trips().is_none());
    }

    #[test]
    fn a_late_packet_costs_no_wrong_sample() {
        let mut packets = spun(true, true);
        let late = packets[41 * 2 - 8];
        packets.insert(41 * 2 + 3, Other { time_ns: packets[41 * 2 + 2].time_ns, ..late });
        let quic = only(packets);
        let trips = quic.trips().unwrap();
        assert!(trips.least().unwrap() > 30_000_000, "{:?}", trips.least());
    }

    #[test]
    fn packets_with_other_first_bytes_are_not_quic() {
        assert!(!only((0..10).map(|n| packet(n, true, 0x17))).is_quic(), "DTLS");
        let quic = only([packet(0, true, 0xc3), packet(1, false, 0x43)]);
        assert_eq!((quic.is_quic(), quic.version), (true, Some(1)));
        assert_eq!(version_name(0xff00_001d), "draft-29");
    }
}
