//! Listens at a host's interfaces: packet-level RTTs and what arrives on the wire.
//!
//! The kernel copies each packet's head and time stamp into a ring; nothing is handed to a reader meanwhile
//! and no packet is kept, so that TCP's own accounting is not disturbed.

use crate::fault::{Fault, fault};
use crate::sys;
use crate::sys::Mapping;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

const BLOCK: usize = 4096;
const FRAME: usize = 192;
const FRAMES_PER_BLOCK: usize = BLOCK / FRAME;
/// Offset of struct sockaddr_ll after the aligned struct tpacket2_hdr.
const ADDRESS: usize = 32;
const OUTGOING: u8 = 4;

const FULL: &str = "the ring for packets was full, so that some were not seen: this machine was too busy to read them \
     in time; a lower rate, a shorter record.interval or a machine with less other work helps";

/// A packet of TCP, or a datagram where a tap takes them, seen at an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TappedPacket {
    pub is_tcp: bool,
    pub source: Ipv4Addr,
    pub target: Ipv4Addr,
    pub time: i64,
    pub outgoing: bool,
    pub source_port: u16,
    pub target_port: u16,
    pub sequence: u32,
    pub acknowledged: u32,
    pub payload: u32,
    /// Ethernet frame without FCS.
    pub frame: u32,
    pub sacked: Vec<(u32, u32)>,
}

impl Default for TappedPacket {
    fn default() -> Self {
        Self {
            is_tcp: true,
            source: Ipv4Addr::UNSPECIFIED,
            target: Ipv4Addr::UNSPECIFIED,
            time: 0,
            outgoing: false,
            source_port: 0,
            target_port: 0,
            sequence: 0,
            acknowledged: 0,
            payload: 0,
            frame: 0,
            sacked: Vec::new(),
        }
    }
}

/// A ring on all interfaces of the thread's namespace.
pub struct Tap {
    /// Datagrams are given too.
    pub takes_datagrams: bool,
    ring: Mapping,
    /// Readable while the ring has packets.
    pub socket: OwnedFd,
    next: usize,
    frames: usize,
}

impl Tap {
    /// Opens a ring with room for about this many packets, at an interface; 0 means all.
    pub fn open(packets: usize, interface: i32) -> Result<Self, Fault> {
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let version2 = 1_i32;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version2, "tpacket 2")?;
        let blocks = packets.div_ceil(FRAMES_PER_BLOCK);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (blocks * FRAMES_PER_BLOCK) as u32,
        };
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request, "packet ring")?;
        let ring = Mapping::new(&socket, 0, blocks * BLOCK)?;
        sys::bind_packets(&socket, interface)?;
        let frames = blocks * FRAMES_PER_BLOCK;
        Ok(Self { takes_datagrams: false, ring, socket, next: 0, frames })
    }

    /// The next frame of the ring, and its status.
    fn take(&mut self) -> Option<([u8; FRAME], u32)> {
        const USER: u32 = 1;
        let at = self.next / FRAMES_PER_BLOCK * BLOCK + self.next % FRAMES_PER_BLOCK * FRAME;
        let status = self.ring.load_half(at);
        if status & USER == 0 {
            return None;
        }
        let mut frame = [0; FRAME];
        self.ring.read(at, &mut frame);
        self.ring.store_half(at, 0);
        self.next = (self.next + 1) % self.frames;
        Some((frame, status))
    }

    /// Gives every packet since the last call to `each`; a fault if some were lost.
    pub fn drain(&mut self, mut handle: impl FnMut(&TappedPacket)) -> Result<(), Fault> {
        const LOSING: u32 = 4;
        while let Some((frame, status)) = self.take() {
            if status & LOSING != 0 {
                return fault(FULL);
            }
            if let Some(packet) = parse(&frame, self.takes_datagrams) {
                handle(&packet);
            }
        }
        Ok(())
    }

    /// Passes the head of every packet of any kind since the last call to `each`; [`Tap::lost`] counts the dropped
    /// ones.
    pub fn drain_heads(&mut self, mut handle: impl FnMut(&Head<'_>)) {
        while let Some((frame, _)) = self.take() {
            if let Some(head) = head(&frame) {
                handle(&head);
            }
        }
    }

    /// Packets for which the ring had no room, since the last call.
    pub fn dropped_packets(&self) -> Result<u64, Fault> {
        sys::interface::dropped_packets(&self.socket)
    }
}

/// A packet as the ring has it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// By the machine's clock, nanoseconds.
    pub time: i64,
    pub outgoing: bool,
    /// At the interface of a host to itself.
    pub loopback: bool,
    /// The interface's number.
    pub interface: i32,
    /// Length of the Ethernet frame without FCS; of a burst that is one packet, the whole burst.
    pub length: u32,
    /// As many of its bytes as fit.
    pub bytes: &'a [u8],
}

fn half(bytes: &[u8], offset: usize) -> u32 {
    u32::from(u16::from_ne_bytes([bytes[offset], bytes[offset + 1]]))
}

fn full(bytes: &[u8], offset: usize) -> u32 {
    half(bytes, offset) | half(bytes, offset + 2) << 16
}

/// Reads a frame of the ring (struct tpacket2_hdr: status, len, snaplen, mac, net, sec, nsec; struct sockaddr_ll: .., hatype at 8,
/// pkttype at 10; ifindex at 4).
fn head(frame: &[u8]) -> Option<Head<'_>> {
    let (length, snapped) = (full(frame, 4), full(frame, 8) as usize);
    let mac = half(frame, 12) as usize;
    let time = i64::from(full(frame, 16)) * 1_000_000_000 + i64::from(full(frame, 20));
    let bytes = frame.get(mac..(mac + snapped).min(frame.len()))?;
    let outgoing = frame[ADDRESS + 10] == OUTGOING;
    let loopback = half(frame, ADDRESS + 8) == u32::from(libc::ARPHRD_LOOPBACK);
    let interface = full(frame, ADDRESS + 4) as i32;
    Some(Head { time, outgoing, loopback, interface, length, bytes })
}

fn parse(frame: &[u8], takes_datagrams: bool) -> Option<TappedPacket> {
    let Head { time, outgoing, loopback: _, interface: _, length, bytes } = head(frame)?;
    let datagram = || takes_datagrams.then(|| read_udp(bytes)).flatten();
    let packet = read_tcp(bytes).or_else(datagram)?;
    Some(TappedPacket { time, outgoing, frame: length, ..packet })
}

/// Source and target of an IPv4 header.
fn addresses(ip: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    (address(12), address(16))
}

/// A datagram, of which a fragment without ports counts too.
fn read_udp(packet: &[u8]) -> Option<TappedPacket> {
    let ip = packet.get(14..34)?;
    if packet[12..14] != [8, 0] || ip[0] != 0x45 || ip[9] != 17 {
        return None;
    }
    let (source, target) = addresses(ip);
    let is_first = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
    let port = |at: usize| {
        let bytes = packet.get(at..at + 2).filter(|_| is_first);
        bytes.map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let total = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    Some(TappedPacket {
        is_tcp: false,
        source,
        target,
        source_port: port(34),
        target_port: port(36),
        payload: total.checked_sub(if is_first { 28 } else { 20 })?,
        ..TappedPacket::default()
    })
}

fn read_tcp(packet: &[u8]) -> Option<TappedPacket> {
    let ip = packet.get(14..34)?;
    if packet[12..14] != [8, 0] || ip[0] != 0x45 || ip[9] != 6 {
        return None;
    }
    let tcp = packet.get(34..)?;
    let head = tcp.get(..20)?;
    let short = |offset: usize| u16::from_be_bytes([head[offset], head[offset + 1]]);
    let long = |offset: usize| u32::from(short(offset)) << 16 | u32::from(short(offset + 2));
    let header = usize::from(head[12] >> 4) * 4;
    let total = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    let (source, target) = addresses(ip);
    Some(TappedPacket {
        source,
        target,
        source_port: short(0),
        target_port: short(2),
        sequence: long(4),
        acknowledged: long(8),
        payload: total.checked_sub(20 + header as u32)?,
        sacked: read_sacks(tcp.get(20..header).unwrap_or_default()),
        ..TappedPacket::default()
    })
}

/// Blocks of TCP's options (RFC 2018).
pub fn read_sacks(mut options: &[u8]) -> Vec<(u32, u32)> {
    const NOP: u8 = 1;
    const SACK: u8 = 5;
    let mut blocks = Vec::new();
    while let [kind, rest @ ..] = options {
        if *kind == NOP {
            options = rest;
            continue;
        }
        let length = rest.first().map_or(0, |length| usize::from(*length));
        if *kind == 0 || length < 2 || length > options.len() {
            break;
        }
        if *kind == SACK {
            let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            blocks.extend(options[2..length].chunks_exact(8).map(|b| (word(b), word(&b[4..]))));
        }
        options = &options[length..];
    }
    blocks
}

#[derive(Debug)]
struct Sent {
    end: u32,
    time: i64,
    retransmitted: bool,
    sacked: bool,
}

/// Matches a sender's data with what acknowledges it.
#[derive(Debug, Default)]
pub struct Matcher {
    /// In the order of their ends.
    outstanding: VecDeque<Sent>,
    next: Option<u32>,
    /// The selective acknowledgements of the last packet that had some.
    told: Vec<(u32, u32)>,
}

/// `a` comes after `b` in sequence space (RFC 9293, 3.4).
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Matcher {
    /// Data that leaves the sender.
    pub fn record_sent(&mut self, time: i64, sequence: u32, payload: u32) {
        let end = sequence.wrapping_add(payload);
        if self.next.is_none_or(|next| after(end, next)) {
            self.outstanding.push_back(Sent { end, time, retransmitted: false, sacked: false });
            self.next = Some(end);
            return;
        }
        for segment in self.ending_within(sequence, end) {
            segment.retransmitted = true;
        }
    }

    /// Segments that end after `left` and not after `right`.
    fn ending_within(&mut self, left: u32, right: u32) -> impl Iterator<Item = &mut Sent> {
        let first = self.outstanding.partition_point(|segment| !after(segment.end, left));
        let last = self.outstanding.partition_point(|segment| !after(segment.end, right));
        self.outstanding.range_mut(first..last.max(first))
    }

    /// The part of a SACK block that the previous packet did not report: most blocks repeat or have grown at one end,
    /// and processing all of them in full each time takes processor time from the flows.
    fn news(&self, (left, right): (u32, u32)) -> (u32, u32) {
        for &(from, to) in &self.told {
            if left == from && !after(to, right) {
                return (to, right);
            }
            if right == to && !after(left, from) {
                return (left, from);
            }
        }
        (left, right)
    }

    /// An acknowledgement that reaches the sender: the RTT of the last segment newly acknowledged that
    /// was sent only once (Karn), cumulatively or, if there is none, selectively.
    pub fn acknowledged(&mut self, time: i64, number: u32, sacked: &[(u32, u32)]) -> Option<i64> {
        let mut rtt = None;
        while let Some(first) = self.outstanding.front()
            && !after(first.end, number)
        {
            if !first.retransmitted && !first.sacked {
                rtt = Some(time - first.time);
            }
            self.outstanding.pop_front();
        }
        let mut selective = None;
        for &block in sacked {
            let (left, right) = self.news(block);
            for segment in self.ending_within(left, right).filter(|segment| !segment.sacked) {
                segment.sacked = true;
                if !segment.retransmitted {
                    selective = Some(time - segment.time);
                }
            }
        }
        if !sacked.is_empty() {
            self.told = sacked.to_vec();
        }
        rtt.or(selective)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};

    /// A ring of one block in a file, with these words of status at its frames, as the kernel writes them.
    fn ring(statuses: &[u32]) -> Tap {
        let path = std::env::temp_dir().join(format!("dragstrip-ring-{}", std::process::id()));
        let create = File::options().read(true).write(true).create_new(true).open(&path);
        let mut file = create.unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(BLOCK as u64).unwrap();
        for (number, status) in statuses.iter().enumerate() {
            file.seek(SeekFrom::Start((number * FRAME) as u64)).unwrap();
            file.write_all(&status.to_ne_bytes()).unwrap();
        }
        let ring = Mapping::new(&file, 0, BLOCK).unwrap();
        let (socket, frames) = (file.into(), FRAMES_PER_BLOCK);
        Tap { takes_datagrams: false, ring, socket, next: 0, frames }
    }

    #[test]
    fn a_ring_that_was_full_is_a_fault_with_advice() {
        // TP_STATUS_USER, and TP_STATUS_LOSING on the first frame after packets that found no room.
        let mut whole = ring(&[1; FRAMES_PER_BLOCK]);
        whole.drain(|_| ()).unwrap();
        let mut full = ring(&[1, 1, 1 | 4, 1]);
        let message = full.drain(|_| ()).unwrap_err().to_string();
        assert!(message.starts_with("the ring for packets was full"), "{message}");
        assert!(message.contains("a shorter record.interval"), "{message}");
        assert_eq!(full.next, 3, "what came before it was read");
    }

    #[test]
    fn a_cumulative_acknowledgement_takes_its_last_segment() {
        let mut matcher = Matcher::default();
        matcher.record_sent(0, u32::MAX - 99, 100);
        matcher.record_sent(5, 0, 100);
        assert_eq!(matcher.acknowledged(30, 100, &[]), Some(25));
        assert_eq!(matcher.acknowledged(31, 100, &[]), None);
    }

    #[test]
    fn retransmissions_give_no_sample() {
        let mut matcher = Matcher::default();
        matcher.record_sent(0, 0, 100);
        matcher.record_sent(1, 100, 100);
        assert_eq!(matcher.acknowledged(30, 0, &[(100, 200)]), Some(29));
        matcher.record_sent(40, 0, 100);
        assert_eq!(matcher.acknowledged(60, 200, &[]), None);
    }

    #[test]
    fn blocks_that_are_repeated_or_have_grown_say_only_what_is_new() {
        let mut matcher = Matcher::default();
        for segment in 0..6 {
            matcher.record_sent(i64::from(segment), segment * 100, 100);
        }
        assert_eq!(matcher.acknowledged(20, 100, &[(200, 300)]), Some(20));
        assert_eq!(matcher.acknowledged(30, 100, &[(200, 300)]), None, "repeated");
        assert_eq!(matcher.acknowledged(40, 100, &[(200, 400)]), Some(37), "grown to the right");
        assert_eq!(
            matcher.acknowledged(50, 100, &[(500, 600), (200, 400)]),
            Some(45),
            "a second one"
        );
        assert_eq!(matcher.acknowledged(60, 100, &[(200, 600)]), Some(56), "joined");
        matcher.record_sent(70, 100, 100);
        assert_eq!(matcher.acknowledged(80, 600, &[]), None, "all were retransmitted or told");
    }

    #[test]
    fn a_packet_is_read() {
        let mut packet = vec![0; 14 + 20 + 32];
        packet[12..14].copy_from_slice(&[8, 0]);
        packet[14] = 0x45;
        packet[16..18].copy_from_slice(&1000_u16.to_be_bytes());
        packet[23] = 6;
        packet[34..38].copy_from_slice(&[0x13, 0x89, 0, 80]);
        packet[46] = 8 << 4;
        packet[54..66].copy_from_slice(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9]);
        let packet_view = read_tcp(&packet).unwrap();
        assert_eq!(
            (packet_view.source_port, packet_view.target_port, packet_view.payload),
            (5001, 80, 1000 - 52)
        );
        assert_eq!(packet_view.sacked, [(1, 9)]);
        assert!(read_tcp(&packet[..40]).is_none());
        packet[23] = 17;
        packet[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 3]);
        let datagram = read_udp(&packet).unwrap();
        let ends = (datagram.source.octets(), datagram.target.octets());
        assert_eq!(ends, ([10, 0, 0, 1], [10, 0, 0, 3]));
        assert_eq!((datagram.source_port, datagram.payload, datagram.is_tcp), (5001, 972, false));
        assert_eq!(read_tcp(&packet), None);
    }
}
