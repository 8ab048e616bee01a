//! A capture without payload and without addresses, of which everything that a path is inferred from is left.

use crate::read::{Address, Counts, Fault, Packet, Reader};
use std::collections::BTreeMap;

/// pcap's magic number for nanoseconds, in the writer's byte order (pcap-savefile(5)).
const MAGIC: u32 = 0xa1b2_3c4d;
/// Link type: IP without a link layer.
const RAW: u32 = 101;
/// The longest packet that is kept: headers of IP and TCP alone.
const SNAPLEN: u32 = 40 + 60;
const OPTIONS_MAX: usize = 40;
const NO_OPERATION: u8 = 1;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;

/// Reads a capture of any form and writes its TCP segments as a pcap file of IP headers and TCP headers.
///
/// Hosts are numbered as they appear: 10.0.0.1, 10.0.0.2 and so on, or fd00::1; one inside a tunnel is another than one outside. Stamps
/// count from the first segment. Other protocols, tunnels, options of IP, unknown options of TCP, and the keys, tokens and cookies in
/// those of Multipath TCP and Fast Open are left out.
#[derive(Default)]
pub struct Anonymous {
    reader: Reader,
    hosts: BTreeMap<(u32, Address), u32>,
    begin_ns: Option<i64>,
    /// Output that has not been fetched.
    made: Vec<u8>,
}

impl Anonymous {
    /// Takes the next bytes of a capture and returns those of the file that is made.
    ///
    /// # Errors
    /// An error in the capture that ends its reading; no more bytes can be fed.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Vec<u8>, Fault> {
        let Self { reader, hosts, begin_ns, made } = self;
        reader.feed(piece, &mut |packet| {
            let begin = *begin_ns.get_or_insert_with(|| {
                head(made);
                packet.time_ns
            });
            // A packet that is out of order before the first cannot have a stamp below zero.
            record(made, hosts, &packet, packet.time_ns.saturating_sub(begin).max(0));
        })?;
        Ok(std::mem::take(made))
    }

    /// The capture ends here.
    ///
    /// # Errors
    /// The file is too short to be a capture.
    pub fn end(&mut self) -> Result<&Counts, Fault> {
        self.reader.end()?;
        Ok(self.reader.counts())
    }
}

fn head(file: &mut Vec<u8>) {
    file.extend(MAGIC.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(SNAPLEN.to_le_bytes());
    file.extend(RAW.to_le_bytes());
}

fn record(
    file: &mut Vec<u8>,
    hosts: &mut BTreeMap<(u32, Address), u32>,
    packet: &Packet,
    at_ns: i64,
) {
    let [from, to] = [packet.source, packet.destination].map(|address| {
        let next = hosts.len() as u32 + 1;
        *hosts.entry((packet.layers.tunnel(), address)).or_insert(next)
    });
    let front = if packet.ip_id.is_some() { IPV4_HEADER } else { IPV6_HEADER };
    // Options of IP and unknown ones of TCP keep their lengths as no-operations, as far as there is room.
    let spare =
        (packet.ip_bytes as usize).saturating_sub(front + TCP_HEADER + packet.payload as usize);
    let options = options(packet, spare.min(OPTIONS_MAX) & !3);
    let header_bytes = front + TCP_HEADER + options.len();
    let whole = header_bytes + packet.payload as usize;
    let (seconds, nanoseconds) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    for word in [seconds as u32, nanoseconds as u32, header_bytes as u32, whole as u32] {
        file.extend(word.to_le_bytes());
    }
    // A super-segment too long for the field has none (BIG TCP).
    match packet.ip_id {
        Some(id) => {
            let [high, low] = u16::try_from(whole).unwrap_or(0).to_be_bytes();
            let [id_high, id_low] = id.to_be_bytes();
            file.extend([
                0x45, packet.ecn, high, low, id_high, id_low, 0x40, 0, packet.ttl, 6, 0, 0,
            ]);
            for host in [from, to] {
                file.extend((0x0a00_0000 | host & 0x00ff_ffff).to_be_bytes());
            }
        }
        None => {
            let [high, low] = u16::try_from(whole - IPV6_HEADER).unwrap_or(0).to_be_bytes();
            file.extend([0x60, packet.ecn << 4, 0, 0, high, low, 6, packet.ttl]);
            for host in [from, to] {
                file.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                file.extend(host.to_be_bytes());
            }
        }
    }
    file.extend(packet.source_port.to_be_bytes());
    file.extend(packet.destination_port.to_be_bytes());
    file.extend(packet.seq.to_be_bytes());
    file.extend(packet.ack.to_be_bytes());
    let words = ((TCP_HEADER + options.len()) / 4) as u16;
    file.extend((words << 12 | packet.flags & 0x1ff).to_be_bytes());
    file.extend(packet.window.to_be_bytes());
    file.extend([0; 4]);
    file.extend(options);
}

/// The known options of a segment, padded to `length` bytes where they take fewer.
fn options(packet: &Packet, length: usize) -> Vec<u8> {
    let mut option_bytes = Vec::with_capacity(OPTIONS_MAX);
    if let Some(mss) = packet.mss {
        let [high, low] = mss.to_be_bytes();
        option_bytes.extend([2, 4, high, low]);
    }
    if let Some(shift) = packet.window_scale {
        option_bytes.extend([3, 3, shift]);
    }
    if packet.sack_permitted {
        option_bytes.extend([4, 2]);
    }
    if let Some((value, echo)) = packet.stamps {
        option_bytes.extend([8, 10]);
        option_bytes.extend(value.to_be_bytes());
        option_bytes.extend(echo.to_be_bytes());
    }
    if packet.sack_count > 0 {
        option_bytes.extend([5, 2 + 8 * packet.sack_count]);
        for (left, right) in &packet.sacks[..usize::from(packet.sack_count)] {
            option_bytes.extend(left.to_be_bytes());
            option_bytes.extend(right.to_be_bytes());
        }
    }
    if let Some(bytes) = packet.ecn_bytes {
        option_bytes.extend([bytes.kind(), bytes.wire_len()]);
        for counter in &bytes.counters[..usize::from(bytes.fields)] {
            option_bytes.extend(&counter.to_be_bytes()[1..]);
        }
    }
    if let Some(cookie) = packet.fast_open {
        option_bytes.extend([34, 2 + cookie.min(16)]);
        option_bytes.resize(option_bytes.len() + usize::from(cookie.min(16)), 0);
    }
    if let Some(subtype) = packet.mptcp {
        option_bytes.extend([30, 4, subtype << 4, 0]);
    }
    let length = length.max(option_bytes.len().next_multiple_of(4)).min(OPTIONS_MAX);
    option_bytes.resize(length, NO_OPERATION);
    option_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &[u8]) -> Vec<Packet> {
        let mut packets = Vec::new();
        let mut reader = Reader::new();
        reader.feed(file, &mut |packet| packets.push(packet)).unwrap();
        reader.end().unwrap();
        packets
    }

    fn packet(ip_id: Option<u16>, last: u8) -> Packet {
        let mut source = [0; 16];
        source[10..12].fill(if ip_id.is_some() { 0xff } else { 0x20 });
        source[15] = last;
        let header = if ip_id.is_some() { IPV4_HEADER } else { IPV6_HEADER };
        Packet {
            time_ns: 1_700_000_000_000_000_001,
            source,
            destination: [7; 16],
            source_port: 443,
            destination_port: 51_000,
            ip_id,
            ttl: 63,
            ecn: 2,
            ip_bytes: (header + TCP_HEADER + 36 + 1_448) as u32,
            seq: 0xffff_fff0,
            ack: 17,
            flags: 0x118,
            window: 501,
            payload: 1_448,
            stamps: Some((1, 2)),
            sacks: [(5, 9), (20, 30), (0, 0), (0, 0)],
            sack_count: 2,
            ..Packet::default()
        }
    }

    #[test]
    fn everything_but_addresses_and_the_date_is_left() {
        for ip_id in [Some(9), None] {
            let first = packet(ip_id, 200);
            let second = Packet { time_ns: first.time_ns + 1_500_000_000, ..packet(ip_id, 201) };
            let (mut file, mut hosts) = (Vec::new(), BTreeMap::new());
            head(&mut file);
            for packet in [&first, &second] {
                record(&mut file, &mut hosts, packet, packet.time_ns - first.time_ns);
            }
            let packets = read(&file);
            for (packet, before) in packets.iter().zip([first, second]) {
                let Packet { source, destination, .. } = *packet;
                let time_ns = before.time_ns - first.time_ns;
                assert_eq!(*packet, Packet { time_ns, source, destination, ..before });
            }
            assert_eq!(packets.len(), 2);
            assert_eq!(packets[0].destination, packets[1].destination);
            assert_ne!(packets[0].source, packets[1].source);
            assert_eq!(packets[0].source[13..], [0, 0, 1]);
        }
    }

    #[test]
    fn a_syn_keeps_its_options() {
        let syn = Packet {
            flags: 2,
            payload: 0,
            ip_bytes: 60,
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            sack_count: 0,
            sacks: [(0, 0); 4],
            ..packet(Some(1), 4)
        };
        let mut file = Vec::new();
        head(&mut file);
        record(&mut file, &mut BTreeMap::new(), &syn, 0);
        let packet = read(&file)[0];
        let Packet { source, destination, .. } = packet;
        assert_eq!(packet, Packet { time_ns: 0, source, destination, ..syn });
    }
}
