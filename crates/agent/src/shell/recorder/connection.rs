//! A TCP connection or a flow of UDP datagrams across a path: what its packets show at both hosts, and what the kernels of a
//! connection's ends say.

use super::sockets::{End, TcpSocket};
use super::tee::Head;
use crate::forward::packet::{self, TCP, UDP};
use crate::side::{CWR, Info, Matcher, read_sacks};
use dragstrip_packet::ETHERNET_BYTES;
use std::net::IpAddr;

const SYN: u8 = 2;
const ACK: u8 = 16;
const ECE: u8 = 64;

/// Bytes of a UDP header.
const UDP_BYTES: usize = 8;

/// The head of a TCP segment, or of a UDP datagram, which has no numbers and no flags.
#[derive(Clone, Debug)]
pub struct SegmentHead {
    pub is_udp: bool,
    /// Addresses of its sender and of its receiver.
    pub ends: [End; 2],
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    pub payload: u32,
    pub sacked: Vec<(u32, u32)>,
}

impl SegmentHead {
    /// Reads the first bytes of an IP packet of this length; none if it has neither.
    pub fn read(bytes: &[u8], length: u32) -> Option<Self> {
        let header = packet::header(bytes).filter(|ip| ip.is_first)?;
        let tcp = bytes.get(header.start..)?;
        if header.protocol == UDP {
            let [source, target] = addresses(header.addresses)?;
            return Some(Self {
                is_udp: true,
                ends: [(source, packet::pair(tcp, 0)?), (target, packet::pair(tcp, 2)?)],
                sequence: 0,
                acknowledged: 0,
                flags: 0,
                payload: length.checked_sub((header.start + UDP_BYTES) as u32)?,
                sacked: Vec::new(),
            });
        }
        if header.protocol != TCP {
            return None;
        }
        let size = usize::from(tcp.get(12)? >> 4) * 4;
        let long = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
        let [source, target] = addresses(header.addresses)?;
        Some(Self {
            is_udp: false,
            ends: [(source, packet::pair(tcp, 0)?), (target, packet::pair(tcp, 2)?)],
            sequence: long(4)?,
            acknowledged: long(8)?,
            flags: *tcp.get(13)?,
            payload: length.checked_sub((header.start + size) as u32)?,
            sacked: read_sacks(tcp.get(20..size).unwrap_or_default()),
        })
    }

    /// It opens a connection; any datagram may be the first.
    pub const fn opens(&self) -> bool {
        self.is_udp || self.flags & (SYN | ACK) == SYN
    }
}

/// Source and destination of an IP header.
fn addresses(bytes: &[u8]) -> Option<[IpAddr; 2]> {
    let (source, target) = bytes.split_at(bytes.len() / 2);
    let address = |octets: &[u8]| -> Option<IpAddr> {
        match octets.len() {
            4 => Some(<[u8; 4]>::try_from(octets).ok()?.into()),
            _ => Some(<[u8; 16]>::try_from(octets).ok()?.into()),
        }
    };
    Some([address(source)?, address(target)?])
}

/// Answer of the sender's kernel, and the time at which it was asked.
#[derive(Clone, Debug)]
pub struct Reading {
    pub at_ns: u64,
    pub info: Info,
}

/// State of a direction at the end of an interval; counts are those since the beginning.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub time_ns: u64,
    /// The last one before; none before the kernel was asked.
    pub reading: Option<Reading>,
    pub rtt_ns: Option<i64>,
    pub acked: u64,
    pub written: u64,
    pub wire_bytes: u64,
    pub received: u64,
}

/// The data of one end on their way to the other.
#[derive(Debug, Default)]
pub struct Lane {
    /// Sequence number of the first byte.
    first: Option<u32>,
    /// Bytes sent once at least.
    pub sent: u64,
    pub segments: u64,
    pub retransmits: u64,
    /// Ethernet frames with data that arrived.
    pub wire_bytes: u64,
    /// Bytes that the receiver has in order, as it acknowledges them.
    pub received: u64,
    /// The same as the sender knows it.
    pub acked: u64,
    pub last_arrival_ns: Option<u64>,
    /// Datagrams that arrived.
    pub datagrams: u64,
    matcher: Matcher,
    pub rtt_ns: Option<i64>,
    pub reading: Option<Reading>,
    pub queued: u64,
    pub cc: String,
    /// Beginnings of a reduction of the window that were seen.
    pub reductions: u64,
    pub history: Vec<Snapshot>,
}

impl Lane {
    /// Position of a sequence number near the last byte sent; none before the first.
    fn position(&self, sequence: u32) -> Option<u64> {
        let last = self.first?.wrapping_add(self.sent as u32);
        let distance = sequence.wrapping_sub(last) as i32;
        self.sent.checked_add_signed(distance.into())
    }

    fn sends(&mut self, at_ns: u64, segment: &SegmentHead) {
        if segment.flags & SYN != 0 {
            self.first = Some(segment.sequence.wrapping_add(1));
        }
        if segment.payload == 0 {
            return;
        }
        self.first.get_or_insert(segment.sequence);
        let end = self.position(segment.sequence).map(|start| start + u64::from(segment.payload));
        let Some(end) = end else { return };
        self.segments += 1;
        self.retransmits += u64::from(end <= self.sent);
        self.sent = self.sent.max(end);
        self.matcher.record_sent(at_ns as i64, segment.sequence, segment.payload);
    }

    /// Bytes that an acknowledgement covers; its FIN is none.
    fn covered(&self, segment: &SegmentHead) -> u64 {
        let position =
            if segment.flags & ACK == 0 { None } else { self.position(segment.acknowledged) };
        position.unwrap_or_default().min(self.sent)
    }

    fn hears(&mut self, at_ns: u64, segment: &SegmentHead) {
        self.acked = self.acked.max(self.covered(segment));
        let SegmentHead { acknowledged, sacked, .. } = segment;
        if segment.flags & ACK != 0
            && let Some(rtt) = self.matcher.acknowledged(at_ns as i64, *acknowledged, sacked)
        {
            self.rtt_ns = Some(rtt);
        }
    }

    /// Takes the current answer of the sender's kernel.
    fn learn(&mut self, at_ns: u64, socket: TcpSocket) {
        let before = self.reading.as_ref().map_or(0, |reading| reading.info.state);
        self.reductions += u64::from(socket.info.state >= CWR && before < CWR);
        self.queued = socket.queued_bytes.into();
        self.reading = Some(Reading { at_ns, info: socket.info });
        self.cc = socket.cc;
    }

    /// Something has been sent or has arrived since the last interval.
    fn has_news(&self) -> bool {
        self.history.last().is_none_or(|last| {
            (last.acked, last.wire_bytes, last.received)
                != (self.acked, self.wire_bytes, self.received)
        })
    }

    fn close_interval(&mut self, time_ns: u64) {
        self.history.push(Snapshot {
            time_ns,
            reading: self.reading.clone(),
            rtt_ns: self.rtt_ns,
            acked: self.acked,
            written: self.acked + self.queued,
            wire_bytes: self.wire_bytes,
            received: self.received,
        });
    }
}

/// A connection, or a flow of datagrams.
#[derive(Debug)]
pub struct Connection {
    pub is_udp: bool,
    /// At the server's host and at the client's.
    pub ends: [End; 2],
    /// The host that opened it.
    pub opener: usize,
    pub start_ns: u64,
    /// Name of the program that opened it, else of the one that accepted it; empty while not known.
    pub program: String,
    /// Times that somebody looked for its name.
    pub looks: u32,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// Data from the server's host, and from the client's.
    pub lanes: [Lane; 2],
    /// A kernel had it at the last look.
    is_listed: bool,
}

impl Connection {
    /// Begins with a packet at a host.
    pub fn new(is_udp: bool, ends: [End; 2], opener: usize, start_ns: u64) -> Self {
        Self {
            is_udp,
            ends,
            opener,
            start_ns,
            program: String::new(),
            looks: 0,
            ecn: false,
            lanes: Default::default(),
            is_listed: false,
        }
    }

    /// A segment at a host.
    pub fn see(&mut self, head: &Head<'_>, segment: &SegmentHead) {
        let Head { at_ns, host, outgoing, length, .. } = *head;
        if self.is_udp {
            self.see_datagram(head, segment.payload);
            return;
        }
        let [from_here, from_there] = if host == 0 { [0, 1] } else { [1, 0] };
        if outgoing {
            self.ecn |= segment.flags & (SYN | ACK | ECE) == SYN | ACK | ECE;
            self.lanes[from_here].sends(at_ns, segment);
            let covered = self.lanes[from_there].covered(segment);
            let received = &mut self.lanes[from_there].received;
            *received = (*received).max(covered);
        } else {
            self.lanes[from_here].hears(at_ns, segment);
            if segment.payload > 0 {
                let lane = &mut self.lanes[from_there];
                lane.wire_bytes += u64::from(length + ETHERNET_BYTES);
                lane.last_arrival_ns = Some(at_ns);
            }
        }
    }

    fn see_datagram(&mut self, head: &Head<'_>, payload: u32) {
        let Head { at_ns, host, outgoing, length, .. } = *head;
        if outgoing {
            let lane = &mut self.lanes[host];
            lane.segments += 1;
            lane.sent += u64::from(payload);
        } else {
            let lane = &mut self.lanes[1 - host];
            lane.datagrams += 1;
            lane.received += u64::from(payload);
            lane.wire_bytes += u64::from(length + ETHERNET_BYTES);
            lane.last_arrival_ns = Some(at_ns);
        }
    }

    /// Before kernels are asked again.
    pub const fn forget_listing(&mut self) {
        self.is_listed = false;
    }

    /// No kernel was asked about it yet.
    pub fn is_stranger(&self) -> bool {
        !self.is_udp && self.lanes.iter().all(|lane| lane.reading.is_none())
    }

    /// Sequence number of the segment that opened it.
    pub fn opened_with(&self) -> Option<u32> {
        self.lanes[self.opener].first.map(|first| first.wrapping_sub(1))
    }

    /// Takes the answer of a host's kernel.
    pub fn learn(&mut self, at_ns: u64, host: usize, socket: TcpSocket) {
        self.is_listed = true;
        self.lanes[host].learn(at_ns, socket);
    }

    /// An interval ends; returns the number of snapshots made.
    pub fn close_interval(&mut self, time_ns: u64) -> usize {
        let is_listed = self.is_listed;
        let lanes = self.lanes.iter_mut().filter(|lane| lane.segments > 0);
        lanes
            .filter(|lane| is_listed || lane.has_news())
            .map(|lane| lane.close_interval(time_ns))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const FIN: u8 = 1;

    fn end(host: u8, port: u16) -> End {
        (Ipv4Addr::new(198, 18, 0, host).into(), port)
    }

    fn segment(flags: u8, sequence: u32, acknowledged: u32, payload: u32) -> SegmentHead {
        let ends = [end(2, 80), end(1, 4000)];
        SegmentHead {
            is_udp: false,
            ends,
            sequence,
            acknowledged,
            flags,
            payload,
            sacked: Vec::new(),
        }
    }

    fn head(at_ns: u64, host: usize, outgoing: bool) -> Head<'static> {
        Head { at_ns, host, outgoing, length: 1040, bytes: &[] }
    }

    /// A connection whose server begins to count just below the largest sequence number.
    fn transfer() -> Connection {
        let mut connection = Connection::new(false, [end(2, 80), end(1, 4000)], 1, 0);
        let first = u32::MAX - 499;
        connection.see(&head(1, 0, true), &segment(SYN | ACK | ECE, first.wrapping_sub(1), 1, 0));
        connection.see(&head(10, 0, true), &segment(ACK, first, 1, 1000));
        connection.see(&head(11, 0, true), &segment(ACK, first.wrapping_add(1000), 1, 1000));
        connection
    }

    #[test]
    fn bytes_are_counted_across_the_end_of_sequence_numbers() {
        let mut connection = transfer();
        let first = u32::MAX - 499;
        connection.see(&head(20, 1, false), &segment(ACK, first, 1, 1000));
        connection.see(&head(21, 1, true), &segment(ACK, 1, first.wrapping_add(1000), 0));
        let lane = &connection.lanes[0];
        assert_eq!((lane.sent, lane.segments, lane.retransmits), (2000, 2, 0));
        assert_eq!((lane.received, lane.acked, lane.wire_bytes), (1000, 0, 1054));
        connection.see(&head(30, 0, false), &segment(ACK, 1, first.wrapping_add(1000), 0));
        let lane = &connection.lanes[0];
        assert_eq!((lane.acked, lane.rtt_ns, lane.last_arrival_ns), (1000, Some(20), Some(20)));
        assert!(connection.ecn);
        assert_eq!(connection.lanes[1].segments, 0);
    }

    #[test]
    fn what_is_sent_again_counts_once_and_a_fin_is_no_byte() {
        let mut connection = transfer();
        let first = u32::MAX - 499;
        connection.see(&head(40, 0, true), &segment(ACK, first, 1, 1000));
        connection.see(&head(41, 0, true), &segment(FIN | ACK, first.wrapping_add(2000), 1, 0));
        connection.see(&head(50, 1, true), &segment(ACK, 1, first.wrapping_add(2001), 0));
        let lane = &connection.lanes[0];
        assert_eq!((lane.sent, lane.retransmits, lane.received), (2000, 1, 2000));
    }

    #[test]
    fn a_connection_that_is_gone_has_no_more_intervals() {
        let mut connection = transfer();
        assert_eq!(connection.close_interval(100), 1);
        assert_eq!(connection.close_interval(200), 0);
        assert_eq!(connection.lanes[0].history.len(), 1);
    }

    #[test]
    fn a_segment_is_read_from_an_ip_packet() {
        let mut bytes =
            vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 2, 198, 18, 0, 1];
        bytes.extend([0, 80, 0x0f, 0xa0, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 0, 0, 0, 0, 0, 0]);
        let segment = SegmentHead::read(&bytes, 140).unwrap();
        assert_eq!(segment.ends, [end(2, 80), end(1, 4000)]);
        assert_eq!((segment.sequence, segment.acknowledged, segment.payload), (7, 9, 100));
        assert!(!segment.opens());
        for length in 0..bytes.len() {
            assert!(SegmentHead::read(&bytes[..length], 140).is_none() || length >= 34, "{length}");
        }
    }
}
