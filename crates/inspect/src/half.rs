//! One direction of a connection as one capture shows it: the data sent, what came back for it, and what follows.
//!
//! Everything is kept by ranges of bytes, never by packets, so that super-segments and segments cut anew need no care. Positions are
//! sequence numbers without their wrap, relative to where the capture first saw the direction.

use crate::board::{Board, Sent};
use crate::intervals::Intervals;
use crate::verdicts::{Covered, Retransmission, Verdicts};
use dragstrip_capture::read::Packet;
use std::collections::VecDeque;

/// Holes that were acknowledged without having been seen, of which the data may still come late in the file.
const UNSEEN_MAX: usize = 64;

/// The data of the longest segment on Ethernet.
pub const ETHERNETS: u32 = 1_460;

/// SYN, FIN, RST of a header's flags.
pub const SYN: u16 = 2;
/// FIN.
pub const FIN: u16 = 1;
/// RST.
pub const RST: u16 = 4;
/// PSH.
pub const PSH: u16 = 8;
/// ACK.
pub const ACK: u16 = 16;

/// Kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Without data.
    Empty,
    /// A probe of a connection at rest or of a closed window.
    Probe,
    /// Data not seen before, beyond all that was.
    New,
    /// Data not seen before, below the highest: late, or retransmitted after a loss before this capture point.
    Late,
    /// Data seen before.
    Again,
}

/// An RTT sample and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds.
    pub ns: i64,
    /// By the echo of a time stamp: Karn's rule forbids the range's own.
    pub echoed: bool,
}

/// A time stamp of a direction.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    /// Time of its first appearance.
    at: i64,
    /// The last acknowledgement that came with it.
    ack: u32,
}

/// State of a direction.
#[derive(Debug, Default)]
pub struct Half {
    /// A sequence number and its position, from which all others are computed.
    reference: Option<(u32, i64)>,
    /// The end of all data seen or acknowledged.
    pub next: i64,
    /// The end of all data seen.
    shown: i64,
    /// All below is acknowledged.
    pub acked: i64,
    fin: Option<i64>,
    opened_at: Option<u32>,
    seen: Intervals,
    unseen: VecDeque<(i64, i64)>,
    board: Board,
    /// Verdicts on retransmitted data.
    pub verdicts: Verdicts,
    /// Data segments.
    pub segments: u64,
    /// Data segments with data seen before.
    pub again_total: u64,
    /// Distinct bytes of data seen.
    pub bytes: u64,
    /// Bytes that were acknowledged and never seen.
    pub missing_bytes: i64,
    /// The longest segment, at most what its MSS allows where that is known.
    pub longest: u32,
    /// The window scale of those who acknowledge; `None` before their SYN.
    pub scale: Option<u8>,
    /// The right edge that was offered for this direction's data.
    pub edge: Option<i64>,
    window_closed: bool,
    /// Since when, while data could still come.
    closed_since: Option<i64>,
    /// For how long the offered window was closed, nanoseconds.
    pub closed_ns: i64,
    /// The first position.
    base: i64,
    /// FINs without data that were sent before.
    pub fin_again: u64,
    repeats: u32,
    /// Data beyond this were not yet sent when recovery began.
    recover: i64,
    /// Stamps and times of this direction's packets, for echoes.
    stamps: VecDeque<Stamp>,
    /// Steps of IPv4's identification from segment to segment: rising, not rising.
    pub rising: (u32, u32),
    last_id: Option<u16>,
}

impl Half {
    /// The position of a segment's first byte of data, of one that was taken.
    pub fn position_of(&self, packet: &Packet) -> i64 {
        let (reference_seq, at) = self.reference.unwrap_or((packet.seq, 0));
        at + i64::from(packet.seq.wrapping_sub(reference_seq).cast_signed())
            + i64::from(packet.flags & SYN != 0)
    }

    fn position(&mut self, seq: u32) -> i64 {
        let (reference_seq, at) = *self.reference.get_or_insert((seq, 0));
        at + i64::from(seq.wrapping_sub(reference_seq).cast_signed())
    }

    /// A segment of this direction. `path_ns`: the least RTT known from here to the sender and back.
    pub fn on_segment(&mut self, packet: &Packet, path_ns: Option<i64>) -> Kind {
        let opening = packet.flags & SYN != 0;
        let fresh = self.reference.is_none();
        if opening {
            self.opened_at.get_or_insert(packet.seq);
        }
        let start = self.position(packet.seq) + i64::from(opening);
        let end = start + i64::from(packet.payload);
        if fresh {
            (self.next, self.shown, self.acked, self.base) = (start, start, start, start);
        }
        if packet.flags & FIN != 0 {
            self.fin_again += u64::from(packet.payload == 0 && self.fin == Some(end));
            self.fin = Some(end);
        }
        if packet.payload == 0 {
            return Kind::Empty;
        }
        if packet.payload == 1
            && ((end == self.next && self.acked >= end)
                || (start == self.next && self.window_closed))
        {
            self.take_new(packet, start, end, true);
            return Kind::Probe;
        }
        self.segments += 1;
        // An acknowledgement that was reordered into the file follows no data.
        let highest = self.shown;
        let gaps = self.gaps(start, end);
        let new: i64 = gaps.iter().map(|gap| gap.1 - gap.0).sum();
        let probes = self.board.probed(start, end);
        let again = i64::from(packet.payload) - new - probes > 0;
        let late = !again && gaps.iter().any(|gap| gap.0 < highest);
        if again {
            self.again_total += 1;
            self.again(packet, start, end);
        } else if late {
            let above = self.board.above(end);
            self.verdicts.late(packet, above, path_ns, self.ids_rise());
        }
        self.take_new(packet, start, end, false);
        self.longest = self.longest.max(packet.payload);
        self.note_id(packet);
        match (again, late) {
            (true, _) => Kind::Again,
            (_, true) => Kind::Late,
            _ => Kind::New,
        }
    }

    /// The parts of a range that were not seen before.
    fn gaps(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        for hole in &self.unseen {
            let part = (start.max(hole.0), end.min(hole.1));
            if part.0 < part.1 {
                gaps.push(part);
            }
        }
        if end > self.acked {
            gaps.extend(self.seen.missing(start.max(self.acked), end));
        }
        gaps
    }

    fn again(&mut self, packet: &Packet, start: i64, end: i64) {
        let is_received = self.board.is_known_received(start.max(self.acked), end);
        let signs = self.repeats >= 3 || start < self.recover || self.board.sacked_above(start);
        if self.repeats >= 3 || self.board.sacked_above(start) {
            self.recover = self.recover.max(self.next);
        }
        let before = self.board.sent_again(start, end, packet);
        self.verdicts.sent_again(Retransmission {
            start,
            end,
            at: packet.time_ns,
            stamp: packet.stamps.map(|pair| pair.0),
            stamp_before: before,
            signs,
            known: is_received,
            seq: packet.seq,
        });
    }

    fn take_new(&mut self, packet: &Packet, start: i64, end: i64, probe: bool) {
        for gap in self.gaps(start, end) {
            self.bytes += (gap.1 - gap.0).cast_unsigned();
            if gap.0 >= self.acked {
                self.board.insert(Sent::new(gap, packet, probe));
            } else {
                self.missing_bytes -= gap.1 - gap.0;
            }
        }
        self.fill_unseen(start, end);
        if end > self.acked {
            self.seen.add(start.max(self.acked), end);
        }
        self.shown = self.shown.max(end);
        if end > self.next {
            self.next = end;
            self.reference = Some((
                packet
                    .seq
                    .wrapping_add(u32::from(packet.flags & SYN != 0))
                    .wrapping_add(packet.payload),
                end,
            ));
        }
        if let Some(edge) = self.board.overfull() {
            self.seen.forget_below(edge);
            self.acked = self.acked.max(edge);
        }
    }

    fn fill_unseen(&mut self, start: i64, end: i64) {
        if self.unseen.is_empty() {
            return;
        }
        let holes = std::mem::take(&mut self.unseen);
        for (from, to) in holes {
            for part in [(from, to.min(start)), (from.max(end), to)] {
                if part.0 < part.1 {
                    self.unseen.push_back(part);
                }
            }
        }
        self.unseen.truncate(UNSEEN_MAX);
    }

    fn note_id(&mut self, packet: &Packet) {
        let Some(id) = packet.ip_id else { return };
        if let Some(last) = self.last_id {
            if (1..=64).contains(&id.wrapping_sub(last)) {
                self.rising.0 += 1;
            } else {
                self.rising.1 += 1;
            }
        }
        self.last_id = Some(id);
    }

    fn ids_rise(&self) -> bool {
        self.rising.0 >= 4 && self.rising.0 >= 4 * self.rising.1
    }

    /// A segment of the other direction, which acknowledges this one; the RTT sample that it gives at this place.
    pub fn answered(&mut self, packet: &Packet) -> Option<Sample> {
        if packet.flags & ACK == 0 {
            return None;
        }
        let fresh = self.reference.is_none();
        let mut ack = self.position(packet.ack);
        if fresh {
            (self.next, self.shown, self.acked, self.base) = (ack, ack, ack, ack);
        }
        if self.fin.is_some_and(|fin| ack == fin + 1) {
            ack -= 1;
        }
        let advanced = ack > self.acked;
        let before = self.acked;
        let sacks = self.sack_ranges(packet);
        let double = sacks.first().copied().filter(|first| {
            first.1 <= ack
                || sacks.get(1).is_some_and(|second| second.0 <= first.0 && first.1 <= second.1)
        });
        self.note_window(packet, ack, advanced);
        if let Some(double) = double {
            self.verdicts.twice_received(double);
        }
        if advanced {
            self.note_missing(ack);
        }
        let removed = if advanced { self.board.acknowledge(ack) } else { Default::default() };
        if advanced {
            self.acked = ack;
            self.seen.forget_below(ack);
        }
        // By sequence number, as `tcp_sacktag_write_queue` walks them: the highest newly known range gives the sample. In the
        // option the newest block comes first (RFC 2018 section 4), and compressed ACKs report several at once.
        let mut blocks = sacks;
        if double.is_some() {
            blocks.remove(0);
        }
        blocks.sort_unstable();
        let sacked = self.board.sack(&blocks);
        let echo = packet.stamps.map(|pair| pair.1);
        if removed.again || sacked.again {
            let covered = Covered { at: packet.time_ns, acked: ack, before, echo };
            let board = &self.board;
            self.verdicts
                .covered(&covered, |start, end| board.is_known_received(start.max(ack), end));
        }
        let sample = sacked.clean.or(removed.clean.filter(|_| !removed.again));
        if let Some(sent) = sample {
            return Some(Sample { ns: packet.time_ns - sent, echoed: false });
        }
        let sent_ns = echo.filter(|_| advanced).and_then(|echo| removed.copy_with(echo))?;
        Some(Sample { ns: packet.time_ns - sent_ns, echoed: true })
    }

    /// The least RTT at this place, for verdicts.
    pub fn note_rtt(&mut self, ns: i64) {
        self.verdicts.note_rtt(ns);
    }

    fn sack_ranges(&mut self, packet: &Packet) -> Vec<(i64, i64)> {
        let mut ranges = Vec::new();
        for (left, right) in &packet.sacks[..usize::from(packet.sack_count)] {
            let start = self.position(*left);
            let length = i64::from(right.wrapping_sub(*left).cast_signed());
            if length > 0 {
                ranges.push((start, start + length));
            }
        }
        ranges
    }

    fn note_window(&mut self, packet: &Packet, ack: i64, advanced: bool) {
        let opening = packet.flags & SYN != 0;
        if packet.flags & RST == 0 {
            self.window_closed = packet.window == 0 && !opening;
            match (self.closed_since, self.window_closed && !self.closed()) {
                (None, true) => self.closed_since = Some(packet.time_ns),
                (Some(_), false) => self.open_window(packet.time_ns),
                _ => {}
            }
            let scale = if opening { Some(0) } else { self.scale };
            self.edge = scale.map(|scale| ack + (i64::from(packet.window) << scale));
        }
        if advanced {
            self.repeats = 0;
        } else if packet.payload == 0 && ack == self.acked && ack < self.next && !opening {
            self.repeats += 1;
        }
    }

    /// The window is closed no longer, or it does not matter any more.
    pub fn open_window(&mut self, at: i64) {
        if let Some(since) = self.closed_since.take() {
            self.closed_ns += at - since;
        }
    }

    /// The data in the SYN were not taken: what is sent of them is needed (RFC 7413 §4.2.2).
    pub fn reject_opening(&mut self) {
        self.recover = self.recover.max(self.next);
    }

    /// Bytes acknowledged since the beginning.
    pub fn acked_bytes(&self) -> u64 {
        (self.acked - self.base).max(0).cast_unsigned()
    }

    /// The first sequence number, of a direction that was opened in the capture.
    pub fn opened_at(&self) -> Option<u32> {
        self.opened_at
    }

    /// Notes data that are acknowledged and were not captured.
    fn note_missing(&mut self, ack: i64) {
        let holes = self.seen.missing(self.acked, ack);
        for hole in holes {
            self.missing_bytes += hole.1 - hole.0;
            if let Some(last) = self.unseen.back_mut().filter(|last| last.1 == hole.0) {
                last.1 = hole.1;
                continue;
            }
            if self.unseen.len() == UNSEEN_MAX {
                self.unseen.pop_front();
            }
            self.unseen.push_back(hole);
        }
        self.next = self.next.max(ack);
    }

    /// Keeps the first time of each time stamp of this direction, and the last acknowledgement with it.
    pub fn stamp(&mut self, packet: &Packet) {
        const KEPT_MAX: usize = 1_024;
        let Some((value, _)) = packet.stamps else { return };
        let newer = self.stamps.back().map(|last| value.wrapping_sub(last.value).cast_signed());
        match newer {
            Some(0) => {
                if let Some(last) = self.stamps.back_mut() {
                    last.ack = packet.ack;
                }
            }
            Some(..0) => {}
            None | Some(1..) => {
                if self.stamps.len() == KEPT_MAX {
                    self.stamps.pop_front();
                }
                self.stamps.push_back(Stamp { value, at: packet.time_ns, ack: packet.ack });
            }
        }
    }

    /// The first echo of a stamp of this direction, in data of this kind, gives a sample, as pping takes it.
    ///
    /// Only data that an acknowledgement can have released count. A sender without data in flight at the
    /// acknowledgement sends when its application writes, and a sender in recovery may have waited for a timer.
    pub fn echoed(&mut self, packet: &Packet, kind: Kind) -> Option<i64> {
        let (_, echo) = packet.stamps?;
        let index = self
            .stamps
            .binary_search_by(|stamp| stamp.value.wrapping_sub(echo).cast_signed().cmp(&0))
            .ok()?;
        let Stamp { at, ack, .. } = self.stamps[index];
        self.stamps.drain(..=index);
        let under_way = packet.seq.wrapping_sub(ack).cast_signed() > 0;
        (kind == Kind::New && under_way).then(|| packet.time_ns - at)
    }

    /// Bytes sent that are neither acknowledged nor SACKed.
    pub fn in_flight(&self) -> i64 {
        self.outstanding() - self.board.sacked_bytes()
    }

    /// Bytes acknowledged or SACKed.
    pub fn delivered(&self) -> i64 {
        self.acked + self.board.sacked_bytes()
    }

    /// Bytes sent and not yet acknowledged.
    pub fn outstanding(&self) -> i64 {
        self.next - self.acked
    }

    /// The end of data that the sender has closed.
    pub fn closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked >= fin)
    }

    /// True when the sender recovers from a loss.
    pub fn recovering(&self) -> bool {
        self.acked < self.recover
    }

    /// Segments missing in the capture, at least; `longest` is the data of the longest where none was seen.
    pub fn missing(&self, longest: u32) -> u64 {
        let segment_bytes = if self.longest > 0 { self.longest } else { longest };
        let longest = i64::from(segment_bytes.clamp(1, ETHERNETS));
        self.missing_bytes.max(0).cast_unsigned().div_ceil(longest.cast_unsigned())
    }

    /// True when its segments have time stamps.
    pub fn stamped(&self) -> bool {
        !self.stamps.is_empty()
    }

    /// True when this is the sequence number that opened the direction.
    pub fn is_first(&self, seq: u32) -> bool {
        self.opened_at == Some(seq)
    }
}
