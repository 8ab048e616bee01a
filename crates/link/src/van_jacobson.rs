//! TCP/IP header compression on slow links (RFC 1144): what remains of a header when the other end knows the one before.
//!
//! A compressed header is a byte of flags, TCP's checksum and what changed: a byte per small difference, three per large
//! one. It is sent whole again where the RFC says so: a new connection, a SYN, options that differ (a timestamp nearly always
//! does), a sequence number that goes back, an ACK that repeats the one before.
//!
//! Left out: the urgent pointer, and IP identifiers that do not count up by one.

use dragstrip_packet::{Flags, Segment};

/// A TCP packet as the compressor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tells connections apart.
    pub connection: u32,
    /// Its TCP header, and the length of its payload.
    pub segment: Segment,
}

/// MAX_STATES of the RFC's implementation.
const SLOTS: usize = 16;
/// Flags and checksum.
const LEAST_BYTES: u32 = 3;

/// One direction's compressor.
#[derive(Clone, Debug)]
pub(crate) struct Compressor {
    /// The last header of each connection, the most recent connection first.
    slots: Vec<Header>,
}

impl Compressor {
    pub fn new() -> Self {
        Self { slots: Vec::with_capacity(SLOTS) }
    }

    /// The bytes that `header` takes on the link.
    pub fn compress(&mut self, header: &Header) -> u32 {
        let slot_index = self.slots.iter().position(|slot| slot.connection == header.connection);
        let Some(position) = slot_index else {
            self.slots.truncate(SLOTS - 1);
            self.slots.insert(0, *header);
            return header.segment.header_len();
        };
        let before = std::mem::replace(&mut self.slots[position], *header);
        self.slots[..=position].rotate_right(1);
        let number_byte = u32::from(position > 0);
        changes(&before.segment, &header.segment)
            .map_or(header.segment.header_len(), |bytes| LEAST_BYTES + number_byte + bytes)
    }
}

/// The bytes of the differences; none if the header has to be sent whole.
fn changes(before: &Segment, segment: &Segment) -> Option<u32> {
    if segment.flags.has(Flags::SYN)
        || segment.option_words() != before.option_words()
        || segment.header_len() != before.header_len()
    {
        return None;
    }
    let ack = difference(before.ack, segment.ack)?;
    let seq = difference(before.seq, segment.seq)?;
    let window = match segment.window.wrapping_sub(before.window) {
        0 => 0,
        change => encoded(change.min(0xffff)),
    };
    let payload = u64::from(before.len);
    let follows = segment.seq - before.seq == payload && payload > 0;
    if ack == 0 && seq == 0 && window == 0 {
        // Data behind an ACK with the same numbers; everything else is a repetition.
        return (payload == 0 && segment.len > 0).then_some(0);
    }
    if follows && window == 0 && (ack == 0 || segment.ack - before.ack == payload) {
        // Unidirectional data, or echoed characters: the flags alone say so.
        return Some(0);
    }
    Some(ack + seq + window)
}

fn difference(before: u64, after: u64) -> Option<u32> {
    match after.checked_sub(before)? {
        0 => Some(0),
        change @ 1..=0xffff => Some(encoded(change as u32)),
        _ => None,
    }
}

const fn encoded(change: u32) -> u32 {
    if change <= 255 { 1 } else { 3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_packet::Timestamps;

    fn data(seq: u64, payload: u16) -> Header {
        let mut segment = Segment::new(seq, payload, Flags::ACK);
        (segment.ack, segment.window) = (1, 32_120);
        Header { connection: 1, segment }
    }

    fn ack(ack: u64) -> Header {
        let mut header = data(1, 0);
        header.segment.ack = ack;
        header
    }

    fn sizes(headers: &[Header]) -> Vec<u32> {
        let mut compressor = Compressor::new();
        headers.iter().map(|header| compressor.compress(header)).collect()
    }

    /// RFC 1144, section 3.2.2: three bytes for a transfer's data; for its ACKs the flags, the checksum and the difference.
    #[test]
    fn a_transfer_costs_three_bytes_a_segment_and_six_an_ack() {
        let segments: Vec<Header> = (0..5).map(|n| data(1 + 344 * n, 344)).collect();
        assert_eq!(sizes(&segments), [40, 3, 3, 3, 3]);
        let acks: Vec<Header> = (0..3).map(|n| ack(1 + 688 * n)).collect();
        assert_eq!(sizes(&acks), [40, 6, 6]);
        let small: Vec<Header> = (0..3).map(|n| ack(1 + 200 * n)).collect();
        assert_eq!(sizes(&small), [40, 4, 4]);
    }

    #[test]
    fn what_differs_in_an_unforeseen_way_goes_whole() {
        let stamped = |val: u32, number: u64| {
            let mut header = ack(number);
            header.segment.set_timestamps(Timestamps { val, ecr: 0 });
            header
        };
        assert_eq!(sizes(&[stamped(1, 1), stamped(2, 9)]), [52, 52]);
        // A clock that has not ticked is as good as none.
        assert_eq!(sizes(&[stamped(1, 1), stamped(1, 9)]), [52, 4]);
        assert_eq!(sizes(&[data(1000, 344), data(656, 344)]), [40, 40]);
        assert_eq!(sizes(&[data(1, 0), data(1, 0)]), [40, 40]);
        assert_eq!(sizes(&[data(1, 0), data(1, 344)]), [40, 3]);
        assert_eq!(sizes(&[data(1, 0), data(1_000_000, 0)]), [40, 40]);
    }

    #[test]
    fn a_change_of_connection_costs_a_byte_and_the_seventeenth_forgets_the_first() {
        let first = |n: u32| Header { connection: n, ..data(1, 344) };
        let next = |n: u32| Header { connection: n, ..data(345, 344) };
        assert_eq!(sizes(&[first(1), first(2), next(1), next(2)]), [40, 40, 4, 4]);
        let mut headers: Vec<Header> = (1..=17).map(first).collect();
        headers.extend([next(17), next(1)]);
        assert_eq!(sizes(&headers)[17..], [3, 40]);
    }

    #[test]
    fn a_window_that_moves_is_said() {
        let mut moved = ack(345);
        moved.segment.window = 31_000;
        assert_eq!(sizes(&[data(1, 0), moved]), [40, 3 + 3 + 3]);
    }
}
