//! tcptrace's counts: the sequence space as it keeps it (`rexmit.c`, version 6.6.7), for comparisons.

use crate::half::{FIN, SYN};
use crate::intervals::Intervals;
use dragstrip_capture::read::Packet;
use serde::Serialize;

/// The sequence space is forgotten beyond this: tcptrace keeps three of its quarters.
const KEPT: i64 = 1 << 30;

/// tcptrace's classification of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// Some of it was seen before.
    Rexmt,
    /// Not seen before, below what was.
    Outoforder,
}

/// A direction's counts, under tcptrace's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// "rexmt data pkts".
    pub rexmt_data_pkts: u64,
    /// "rexmt data bytes".
    pub rexmt_data_bytes: u64,
    /// "outoforder pkts".
    pub outoforder_pkts: u64,
    /// "zwnd probe pkts".
    pub zwnd_probe_pkts: u64,
}

/// A direction.
#[derive(Debug, Default)]
struct Side {
    reference: Option<(u32, i64)>,
    seen: Intervals,
    /// The last window that it offered.
    window: Option<u16>,
    counts: Counts,
}

/// A connection.
#[derive(Debug, Default)]
pub struct Tcptrace {
    sides: [Side; 2],
}

impl Tcptrace {
    /// A packet of a direction, in the order of the file.
    pub fn take(&mut self, packet: &Packet, side: usize) -> Option<Count> {
        let closed = self.sides[1 - side].window == Some(0);
        let direction = &mut self.sides[side];
        direction.window = Some(packet.window);
        let opens = (packet.flags & SYN).count_ones() + (packet.flags & FIN).count_ones();
        let length = i64::from(packet.payload + opens);
        if length == 0 {
            return None;
        }
        if closed {
            direction.counts.zwnd_probe_pkts += 1;
            return None;
        }
        let (reference_seq, at) = *direction.reference.get_or_insert((packet.seq, 0));
        let start = at + i64::from(packet.seq.wrapping_sub(reference_seq).cast_signed());
        let end = start + length;
        let highest = direction.seen.end();
        let missing = direction.seen.missing(start, end);
        let new: i64 = missing.iter().map(|part| part.1 - part.0).sum();
        let late = missing.first().is_some_and(|part| part.0 == start)
            && highest.is_some_and(|highest| highest > end);
        direction.seen.add(start, end);
        if highest.is_none_or(|highest| end > highest) {
            direction.reference = Some((packet.seq, start));
            direction.seen.forget_below(end - KEPT);
        }
        direction.counts.outoforder_pkts += u64::from(late);
        if new < length {
            direction.counts.rexmt_data_pkts += 1;
            direction.counts.rexmt_data_bytes += (length - new).cast_unsigned();
            return Some(Count::Rexmt);
        }
        late.then_some(Count::Outoforder)
    }

    /// Counts of a direction.
    pub fn counts(&self, side: usize) -> Counts {
        self.sides[side].counts
    }
}
