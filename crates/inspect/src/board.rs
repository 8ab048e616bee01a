//! Scoreboard of a direction: the ranges of bytes in flight with their send times.

use crate::intervals::Intervals;
use dragstrip_capture::read::Packet;
use std::collections::VecDeque;

/// Most ranges in flight; beyond that the capture seems to lack the acknowledgements, and the oldest are given up.
const UNDER_WAY_MAX: usize = 1 << 16;
/// Copies of a range of which stamps are kept.
const COPIES_MAX: usize = 4;

/// A range that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    start: i64,
    end: i64,
    /// Time of the first transmission.
    pub first_ns: i64,
    /// Time stamp of the first copy.
    pub stamp: Option<u32>,
    /// IPv4's identification of the first copy.
    pub ip_id: Option<u16>,
    /// Stamp and time of later copies.
    copies: Vec<(Option<u32>, i64)>,
    sacked: bool,
    probe: bool,
}

impl Sent {
    /// A range that a packet brings.
    pub fn new(range: (i64, i64), packet: &Packet, probe: bool) -> Self {
        Self {
            start: range.0,
            end: range.1,
            first_ns: packet.time_ns,
            stamp: packet.stamps.map(|pair| pair.0),
            ip_id: packet.ip_id,
            copies: Vec::new(),
            sacked: false,
            probe,
        }
    }
}

/// The ranges covered by an acknowledgement.
#[derive(Debug, Default)]
pub struct Removed {
    /// Something was sent more than once.
    pub again: bool,
    /// Latest send time among ranges that were sent once and not known to be received before.
    pub clean: Option<i64>,
    /// Stamps and times of retransmitted ranges.
    copies: Vec<(Option<u32>, i64)>,
}

impl Removed {
    /// Send time of the only copy with this stamp; none if several or no copies have it.
    pub fn copy_with(&self, stamp: u32) -> Option<i64> {
        let mut with = self.copies.iter().filter(|copy| copy.0 == Some(stamp));
        let first = with.next()?;
        with.all(|copy| copy.1 == first.1).then_some(first.1)
    }

    fn take(&mut self, range: &Sent) {
        if range.copies.is_empty() {
            if !range.sacked {
                self.clean = Some(range.first_ns);
            }
        } else {
            self.again = true;
            self.copies.push((range.stamp, range.first_ns));
            self.copies.extend_from_slice(&range.copies);
        }
    }
}

/// The ranges in flight, in order.
#[derive(Debug, Default)]
pub struct Board {
    all: VecDeque<Sent>,
    /// SACKed ranges.
    sacked: Intervals,
}

impl Board {
    /// Adds a range that overlaps none.
    pub fn insert(&mut self, range: Sent) {
        if self.all.back().is_none_or(|last| last.end <= range.start) {
            self.all.push_back(range);
        } else {
            let at = self.all.partition_point(|entry| entry.start < range.start);
            self.all.insert(at, range);
        }
    }

    /// Gives up the oldest when there are too many; where the rest begins.
    pub fn overfull(&mut self) -> Option<i64> {
        if self.all.len() <= UNDER_WAY_MAX {
            return None;
        }
        self.all.drain(..UNDER_WAY_MAX / 2);
        self.all.front().map(|first| first.start)
    }

    /// First range that ends beyond.
    fn first_beyond(&self, start: i64) -> usize {
        self.all.partition_point(|entry| entry.end <= start)
    }

    /// Bytes of a range that only probes of a closed window brought.
    pub fn probed(&self, start: i64, end: i64) -> i64 {
        let ranges =
            self.all.range(self.first_beyond(start)..).take_while(|entry| entry.start < end);
        ranges
            .filter(|entry| entry.probe)
            .map(|entry| entry.end.min(end) - entry.start.max(start))
            .sum()
    }

    /// The first range above, which was there before what is below it.
    pub fn above(&self, end: i64) -> Option<&Sent> {
        self.all.get(self.all.partition_point(|entry| entry.start < end))
    }

    /// True when all of a range in flight is SACKed; an empty range is.
    pub fn is_known_received(&self, start: i64, end: i64) -> bool {
        if start >= end {
            return true;
        }
        let mut ranges = self
            .all
            .range(self.first_beyond(start)..)
            .take_while(|entry| entry.start < end)
            .peekable();
        ranges.peek().is_some() && ranges.all(|entry| entry.sacked)
    }

    /// Bytes that are SACKed.
    pub fn sacked_bytes(&self) -> i64 {
        self.sacked.total()
    }

    /// True when something above is SACKed.
    pub fn sacked_above(&self, start: i64) -> bool {
        self.sacked.end().is_some_and(|end| end > start)
    }

    /// Marks a range as retransmitted; returns the stamp of the previous copy.
    pub fn sent_again(&mut self, start: i64, end: i64, packet: &Packet) -> Option<u32> {
        self.cut(start);
        self.cut(end);
        let mut before = None;
        let first = self.first_beyond(start);
        for entry in self.all.range_mut(first..) {
            if entry.start >= end {
                break;
            }
            before = entry.copies.last().map_or(entry.stamp, |copy| copy.0);
            if entry.copies.len() == COPIES_MAX {
                entry.copies.remove(0);
            }
            entry.copies.push((packet.stamps.map(|pair| pair.0), packet.time_ns));
        }
        before
    }

    /// Makes a position the border of two ranges.
    fn cut(&mut self, at: i64) {
        let index = self.first_beyond(at);
        let Some(entry) = self.all.get_mut(index) else { return };
        if entry.start < at && at < entry.end {
            let mut upper = entry.clone();
            entry.end = at;
            upper.start = at;
            self.all.insert(index + 1, upper);
        }
    }

    /// Takes away what is acknowledged.
    pub fn acknowledge(&mut self, ack: i64) -> Removed {
        let mut removed = Removed::default();
        while let Some(first) = self.all.front_mut() {
            if first.start >= ack {
                break;
            }
            removed.take(first);
            if first.end > ack {
                first.start = ack;
                break;
            }
            self.all.pop_front();
        }
        self.sacked.forget_below(ack);
        removed
    }

    /// Marks what blocks say; the newest of what is newly known counts.
    pub fn sack(&mut self, blocks: &[(i64, i64)]) -> Removed {
        let mut removed = Removed::default();
        for block in blocks {
            let Some((first, last)) = self.all.front().zip(self.all.back()) else { break };
            let (start, end) = (block.0.max(first.start), block.1.min(last.end));
            if start >= end {
                continue;
            }
            for part in self.sacked.add(start, end) {
                self.sack_part(part, &mut removed);
            }
        }
        removed
    }

    fn sack_part(&mut self, part: (i64, i64), removed: &mut Removed) {
        self.cut(part.0);
        self.cut(part.1);
        let first = self.first_beyond(part.0);
        for entry in self.all.range_mut(first..) {
            if entry.start >= part.1 {
                break;
            }
            removed.take(entry);
            entry.sacked = true;
        }
    }
}
