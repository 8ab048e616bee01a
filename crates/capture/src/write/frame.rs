//! A frame's headers: Ethernet, IPv4, and TCP, UDP or ICMP with the checksums that a receiver would accept.
//!
//! Payloads are zeros, which add nothing to a sum in one's complement, or those of datagrams.

use dragstrip_packet::{
    Body, ETHERNET_BYTES, EchoKind, EcnBytes, Flags, IP_BYTES, Segment, SynOptions, Timestamps,
    TrafficClass,
};

/// The longest headers: Ethernet's, IPv4's without options, TCP's with 40 bytes of them.
pub const HEADERS_MAX: usize = 14 + 20 + 60;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TTL: u8 = 64;
/// Don't fragment.
const DF: u8 = 0x40;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// An end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// IPv4 address.
    pub address: [u8; 4],
    /// TCP's or UDP's port.
    pub port: u16,
}

/// Offsets between a connection's own counts, from 0, and the header fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// The sender's initial sequence number.
    pub own_isn: u32,
    /// The receiver's initial sequence number.
    pub peer_isn: u32,
    /// Shift of the windows that the sender of the segment announces.
    pub window_shift: u8,
}

/// A frame to be written.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Sender.
    pub from: End,
    /// Receiver.
    pub to: End,
    /// IPv4's identification.
    pub ip_id: u16,
    /// DSCP and ECN.
    pub class: TrafficClass,
    /// Payload of IP.
    pub body: &'a Body,
    /// Bytes of a datagram; empty: zeros.
    pub payload: &'a [u8],
    /// Numbers of a TCP connection.
    pub numbers: Numbers,
    /// ICMP's identifier.
    pub echo_id: u16,
}

impl Frame<'_> {
    /// Length of its headers: [`HEADERS_MAX`] at most.
    #[inline]
    #[must_use]
    pub fn headers_len(&self) -> usize {
        let transport = match self.body {
            Body::Tcp(segment) => (segment.header_len() - IP_BYTES) as usize,
            Body::Udp(_) | Body::Quic(_) | Body::Icmp(_) => 8,
        };
        (ETHERNET_BYTES + IP_BYTES) as usize + transport
    }

    /// Bytes after its headers.
    #[inline]
    #[must_use]
    pub fn payload_len(&self) -> u32 {
        match self.body {
            Body::Tcp(segment) => segment.len.into(),
            Body::Udp(datagram) => datagram.len.into(),
            Body::Quic(datagram) => datagram.len.into(),
            Body::Icmp(echo) => u32::from(echo.bytes) - 8,
        }
    }

    /// Writes its headers, on a line between two addresses of Ethernet, to where there are as many bytes as they have.
    ///
    /// # Panics
    /// If the length of `into` differs from the headers' (debug builds), or is too short for a header.
    #[inline]
    pub fn write(&self, (from, to): ([u8; 6], [u8; 6]), into: &mut [u8]) {
        let (front, transport) = into.split_at_mut((ETHERNET_BYTES + IP_BYTES) as usize);
        debug_assert_eq!(transport.len() + 34, self.headers_len());
        let transport_len = transport.len() as u32 + self.payload_len();
        let protocol = match self.body {
            Body::Tcp(_) => TCP,
            Body::Udp(_) | Body::Quic(_) => UDP,
            Body::Icmp(_) => ICMP,
        };
        // For a burst that is one packet and exceeds the field it is 0, as in Linux.
        let [len_high, len_low] =
            u16::try_from(IP_BYTES + transport_len).unwrap_or(0).to_be_bytes();
        let [id_high, id_low] = self.ip_id.to_be_bytes();
        let first = [0x45, self.class.octet(), len_high, len_low];
        let second = [id_high, id_low, DF, 0];
        let addresses = sum_of([self.from.address, self.to.address]);
        let sum = sum_of([first, second, [TTL, protocol, 0, 0]]).wrapping_add(addresses);
        let [sum_high, sum_low] = checksum(sum).to_be_bytes();
        let third = [TTL, protocol, sum_high, sum_low];
        front[..6].copy_from_slice(&to);
        front[6..12].copy_from_slice(&from);
        front[12..14].copy_from_slice(&ETHERTYPE_IPV4);
        let ip = [first, second, third, self.from.address, self.to.address];
        front[14..34].copy_from_slice(ip.as_flattened());
        let pseudo = addresses.wrapping_add(u64::from(protocol)).wrapping_add(transport_len.into());
        match self.body {
            Body::Tcp(segment) => tcp(segment, self, pseudo, transport),
            Body::Udp(_) | Body::Quic(_) => {
                put_u16(transport, 0, self.from.port);
                put_u16(transport, 2, self.to.port);
                put_u16(transport, 4, transport_len as u16);
                put_u16(transport, 6, 0);
                // 0 means no checksum (RFC 768): its other form is sent.
                let sum = words(transport) + pseudo + padded_words(self.payload);
                let sum = Some(checksum(sum)).filter(|&sum| sum != 0);
                put_u16(transport, 6, sum.unwrap_or(u16::MAX));
            }
            Body::Icmp(echo) => {
                transport[..2]
                    .copy_from_slice(&[if echo.kind == EchoKind::Request { 8 } else { 0 }, 0]);
                put_u16(transport, 2, 0);
                put_u16(transport, 4, self.echo_id);
                put_u16(transport, 6, echo.sequence as u16);
                put_u16(transport, 2, checksum(words(transport)));
            }
        }
    }
}

/// TCP's header; `pseudo`: the sum of the other data that its checksum covers.
#[inline]
fn tcp(segment: &Segment, frame: &Frame<'_>, pseudo: u64, to: &mut [u8]) {
    let Numbers { own_isn, peer_isn, window_shift } = frame.numbers;
    let syn = segment.flags.has(Flags::SYN);
    let acks = segment.flags.has(Flags::ACK);
    // A SYN occupies a sequence number, in front of the data.
    let seq = own_isn.wrapping_add(segment.seq as u32).wrapping_add(u32::from(!syn));
    let base = peer_isn.wrapping_add(1);
    let ack = if acks { base.wrapping_add(segment.ack as u32) } else { 0 };
    let window = if syn { segment.window } else { segment.window >> window_shift };
    let words_long = to.len() as u32 / 4;
    let (header, options) = to.split_at_mut(20);
    let options_sum = match segment.syn_options() {
        Some(syn) => {
            Options { to: &mut *options, at: 0 }.of_syn(
                syn,
                segment.timestamps(),
                segment.ecn_bytes(),
            );
            words(options)
        }
        None => of_segment(segment, base, options),
    };
    let ports = u32::from(frame.from.port) << 16 | u32::from(frame.to.port);
    let rest =
        words_long << 28 | u32::from(segment.flags.wire()) << 16 | window.min(u32::from(u16::MAX));
    let fixed = [ports, seq, ack, rest];
    let sum = fixed
        .iter()
        .fold(pseudo.wrapping_add(options_sum), |sum, word| sum.wrapping_add((*word).into()));
    let last = u32::from(checksum(sum)) << 16;
    let [ports, seq, ack, rest] = fixed.map(u32::to_be_bytes);
    header.copy_from_slice([ports, seq, ack, rest, last.to_be_bytes()].as_flattened());
}

/// The options of a segment after the handshake; their sum. `base`: the wire's number of the peer's first byte.
#[inline]
fn of_segment(segment: &Segment, base: u32, to: &mut [u8]) -> u64 {
    match segment.timestamps() {
        // Almost every segment.
        Some(stamps) if to.len() == 12 => {
            let option = [[1, 1, 8, 10], stamps.val.to_be_bytes(), stamps.ecr.to_be_bytes()];
            to.copy_from_slice(option.as_flattened());
            sum_of(option)
        }
        _ => {
            Options { to: &mut *to, at: 0 }.of_segment(segment, base);
            words(to)
        }
    }
}

/// Room for options, and where the next one goes.
struct Options<'a> {
    to: &'a mut [u8],
    at: usize,
}

impl Options<'_> {
    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.to[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn stamps(&mut self, stamps: Timestamps) {
        self.add(&[8, 10]);
        self.add(&stamps.val.to_be_bytes());
        self.add(&stamps.ecr.to_be_bytes());
    }

    /// In Linux's order (`tcp_options_write`); what is left of the room is filled with ends of options.
    fn of_syn(&mut self, syn: SynOptions, stamps: Option<Timestamps>, bytes: Option<EcnBytes>) {
        let [high, low] = syn.mss.to_be_bytes();
        self.add(&[2, 4, high, low]);
        match (syn.sack_permitted, stamps) {
            (true, Some(stamps)) => {
                self.add(&[4, 2]);
                self.stamps(stamps);
            }
            (false, Some(stamps)) => {
                self.add(&[1, 1]);
                self.stamps(stamps);
            }
            (true, None) => self.add(&[1, 1, 4, 2]),
            (false, None) => {}
        }
        if let Some(shift) = syn.window_scale {
            self.add(&[1, 3, 3, shift]);
        }
        if let Some(bytes) = bytes {
            self.ecn_bytes(&bytes);
        }
        self.to[self.at..].fill(0);
    }

    /// The AccECN option (RFC 9768 §3.2.3), and no-operations up to a whole word.
    fn ecn_bytes(&mut self, bytes: &EcnBytes) {
        self.add(&[bytes.kind(), bytes.wire_len()]);
        for counter in &bytes.counters[..usize::from(bytes.fields)] {
            self.add(&counter.to_be_bytes()[1..]);
        }
        let padding = bytes.room() as usize - usize::from(bytes.wire_len());
        self.add(&[1; 3][..padding]);
    }

    /// `base`: the wire's number of the peer's first byte.
    #[inline]
    fn of_segment(&mut self, segment: &Segment, base: u32) {
        if let Some(stamps) = segment.timestamps() {
            self.add(&[1, 1]);
            self.stamps(stamps);
        }
        if segment.has_sack() {
            self.add(&[1, 1, 5, 2 + 8 * segment.sack().count() as u8]);
            for block in segment.sack() {
                let (start, end) = block.range(segment.ack);
                self.add(&base.wrapping_add(start as u32).to_be_bytes());
                self.add(&base.wrapping_add(end as u32).to_be_bytes());
            }
        }
        if let Some(bytes) = segment.ecn_bytes() {
            self.ecn_bytes(&bytes);
        }
    }
}

#[inline]
fn put_u16(to: &mut [u8], at: usize, value: u16) {
    to[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of big-endian words, two at a time (RFC 1071 section 2, "parallel summation"), not folded yet; the number of
/// `bytes` is a multiple of four.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (pairs, _) = bytes.as_chunks::<4>();
    pairs.iter().map(|pair| u64::from(u32::from_be_bytes(*pair))).sum()
}

/// The sum of words of bytes of any number, with zeros behind them.
fn padded_words(bytes: &[u8]) -> u64 {
    let (_, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words(bytes) + u64::from(u32::from_be_bytes(last))
}

/// The sum of some words.
#[inline]
fn sum_of<const N: usize>(parts: [[u8; 4]; N]) -> u64 {
    parts.iter().fold(0, |sum: u64, part| sum.wrapping_add(u32::from_be_bytes(*part).into()))
}

/// The Internet checksum of a sum below 2^48 (RFC 1071).
#[inline]
fn checksum(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16); // below 2^18
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_packet::{Datagram, Dscp, Echo, Ecn, SackBlock};
    use dragstrip_units::Instant;

    const FROM: End = End { address: [10, 0, 0, 1], port: 30_001 };
    const TO: End = End { address: [10, 0, 0, 2], port: 5_001 };

    fn frame(body: &Body, numbers: Numbers) -> Vec<u8> {
        let class = TrafficClass::new(Dscp::EF, Ecn::Ect0);
        let frame = Frame {
            from: FROM,
            to: TO,
            ip_id: 0x1234,
            class,
            body,
            payload: &[],
            numbers,
            echo_id: 7,
        };
        let mut headers = vec![0xff; frame.headers_len()];
        frame.write(([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]), &mut headers);
        headers
    }

    #[test]
    fn a_marked_frame_is_accepted_between_its_addresses() {
        let body = Body::Tcp(Segment::new(0, 1460, Flags::ACK));
        let class = TrafficClass::new(Dscp::EF, Ecn::Ce);
        let numbers = Numbers::default();
        let frame = Frame {
            from: FROM,
            to: TO,
            ip_id: 1,
            class,
            body: &body,
            payload: &[],
            numbers,
            echo_id: 0,
        };
        let mut headers = vec![0; frame.headers_len()];
        frame.write(([1; 6], [2; 6]), &mut headers);
        accepted(&headers, 1460, true);
        assert_eq!(headers[..16], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0, 0x45, 0xbb]);
    }

    /// A receiver's check: everything under the checksum, with it, sums to all ones.
    fn accepted(frame: &[u8], payload_len: u32, pseudo: bool) {
        assert_eq!(checksum(words(&frame[14..34])), 0, "IPv4's header");
        let transport = &frame[34..];
        let len = transport.len() as u64 + u64::from(payload_len);
        let pseudo = if pseudo { words(&frame[26..34]) + u64::from(frame[23]) + len } else { 0 };
        assert_eq!(checksum(words(transport) + pseudo), 0, "the transport's");
        let total = u16::from_be_bytes([frame[16], frame[17]]);
        assert_eq!(u64::from(total), 20 + len, "total length");
    }

    #[test]
    fn a_syn_has_linux_s_options_in_linux_s_order() {
        let mut syn = Segment::new(0, 0, Flags::default());
        syn.window = 64_240;
        syn.set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
        syn.set_timestamps(Timestamps { val: 0x0102_0304, ecr: 0 });
        let bytes = frame(&Body::Tcp(syn), Numbers { own_isn: 99, peer_isn: 500, window_shift: 7 });
        accepted(&bytes, 0, true);
        assert_eq!(bytes[14..18], [0x45, 0xba, 0, 60]);
        assert_eq!(
            bytes[34..54],
            [
                0x75, 0x31, 0x13, 0x89, 0, 0, 0, 99, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, bytes[50],
                bytes[51], 0, 0
            ]
        );
        assert_eq!(bytes[54..], [2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7]);
    }

    #[test]
    fn an_acknowledgement_has_its_blocks_in_the_peers_numbers_and_a_shifted_window() {
        let mut ack = Segment::new(10, 0, Flags::ACK.with(Flags::ECE));
        (ack.ack, ack.window) = (1_000, 65_536 << 3);
        ack.set_timestamps(Timestamps { val: 5, ecr: 6 });
        ack.set_sack(&[
            SackBlock::relative(1_000, 2_000, 3_000),
            SackBlock::relative(1_000, 0, 500),
        ]);
        let numbers = Numbers { own_isn: u32::MAX, peer_isn: 100, window_shift: 4 };
        let bytes = frame(&Body::Tcp(ack), numbers);
        accepted(&bytes, 0, true);
        assert_eq!(
            bytes[38..42],
            10_u32.to_be_bytes(),
            "the number of the SYN was the last before 0"
        );
        assert_eq!(bytes[42..46], 1_101_u32.to_be_bytes());
        assert_eq!(bytes[46..50], [0xd0, 0x50, 0x80, 0], "13 words, ECE and ACK, half a window");
        let blocks: Vec<u32> = bytes[70..]
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().expect("four")))
            .collect();
        assert_eq!(bytes[66..70], [1, 1, 5, 18]);
        assert_eq!(blocks, [2_101, 3_101, 101, 601]);
    }

    #[test]
    fn accurate_ecn_is_three_flags_and_an_option() {
        let mut ack = Segment::new(0, 0, Flags::ACK.with_ace(5));
        ack.set_timestamps(Timestamps { val: 5, ecr: 6 });
        ack.set_ecn_bytes(EcnBytes { ect1_first: true, fields: 3, counters: [0x01_0203, 7, 1] });
        let bytes = frame(&Body::Tcp(ack), Numbers::default());
        accepted(&bytes, 0, true);
        assert_eq!(bytes[46..48], [0xb1, 0x50], "11 words, AE, ECE and ACK");
        assert_eq!(bytes[66..], [174, 11, 1, 2, 3, 0, 0, 7, 0, 0, 1, 1]);
        let mut syn = Segment::new(0, 0, Flags::ACK.with_ace(2));
        syn.set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
        syn.set_timestamps(Timestamps::default());
        syn.set_ecn_bytes(EcnBytes::of_handshake());
        let bytes = frame(&Body::Tcp(syn), Numbers::default());
        accepted(&bytes, 0, true);
        assert_eq!(bytes[46..48], [0xd0, 0x92], "13 words, CWR, ACK and SYN");
        assert_eq!(bytes[70..], [1, 3, 3, 7, 174, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn data_datagrams_and_echoes_are_accepted() {
        let data = Segment::new(0, 1460, Flags::ACK.with(Flags::PSH));
        accepted(&frame(&Body::Tcp(data), Numbers::default()), 1460, true);
        let datagram = Datagram { number: 3, len: 172 };
        let bytes = frame(&Body::Udp(datagram), Numbers::default());
        accepted(&bytes, 172, true);
        assert_eq!(bytes.len(), 42);
        for (kind, number) in [(EchoKind::Request, 8), (EchoKind::Reply, 0)] {
            let echo = Echo { sent: Instant::ZERO, sequence: 65_537, bytes: 64, kind };
            let bytes = frame(&Body::Icmp(echo), Numbers::default());
            accepted(&bytes, 56, false);
            assert_eq!((bytes[34], &bytes[38..42]), (number, &[0, 7, 0, 1][..]));
        }
    }

    #[test]
    fn a_syn_without_options_still_fills_the_room_that_the_simulation_counts() {
        let mut syn = Segment::new(0, 0, Flags::default());
        syn.set_syn_options(SynOptions { mss: 536, window_scale: None, sack_permitted: false });
        let bytes = frame(&Body::Tcp(syn), Numbers::default());
        accepted(&bytes, 0, true);
        assert_eq!(bytes.len(), 74);
        assert_eq!(bytes[54..], [2, 4, 2, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
