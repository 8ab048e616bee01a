//! Verdicts on retransmitted data: needed, spurious, or unknown from this capture.
//!
//! Evidence, in this order: the receiver reports that it had the data (D-SACK, RFC 2883; or they were acknowledged
//! before they were retransmitted); the acknowledgement's time stamp echoes an earlier copy (Eifel detection, RFC
//! 3522); the acknowledgement came sooner than any round trip; it echoes the copy; data sent afterwards were received
//! before them, and a receiver that sends SACK never reported a duplicate.

use crate::board::Sent;
use dragstrip_capture::read::Packet;
use serde::Serialize;
use std::collections::VecDeque;

/// Judged retransmissions that a late D-SACK can still change.
const JUDGED_MAX: usize = 1_024;
/// Unjudged ones at most.
const OPEN_MAX: usize = 1 << 16;

/// A retransmission.
#[derive(Clone, Debug)]
pub struct Retransmission {
    /// First byte's position.
    pub start: i64,
    /// The position after the last byte.
    pub end: i64,
    /// Send time.
    pub at: i64,
    /// Its time stamp.
    pub stamp: Option<u32>,
    /// The time stamp of the copy before it.
    pub stamp_before: Option<u32>,
    /// There were signs of loss: later data SACKed, three repeated acknowledgements, or recovery in progress.
    pub signs: bool,
    /// All of it was acknowledged or SACKed before.
    pub known: bool,
    /// The segment's sequence number.
    pub seq: u32,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Earlier copies were lost.
    Needed,
    /// An earlier copy arrived.
    Spurious,
    /// Unknown.
    Unknown,
}

/// An acknowledgement that covers a retransmission.
pub struct Covered {
    /// Arrival time.
    pub at: i64,
    /// All below is acknowledged.
    pub acked: i64,
    /// And was before it.
    pub before: i64,
    /// Its echo.
    pub echo: Option<u32>,
}

/// A segment's verdict.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// Time of the segment.
    pub at: i64,
    /// Its sequence number.
    pub seq: u32,
    /// Classification of the segment.
    pub verdict: SegmentVerdict,
}

/// Classification of a segment below the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentVerdict {
    /// Sent again: earlier copies were lost.
    Needed,
    /// Sent again: an earlier copy arrived.
    Spurious,
    /// Retransmitted or late: unknown.
    Unknown,
    /// Sent once, and overtaken.
    Reordered,
}

impl From<Verdict> for SegmentVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Needed => Self::Needed,
            Verdict::Spurious => Self::Spurious,
            Verdict::Unknown => Self::Unknown,
        }
    }
}

/// Segments by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Earlier copies were lost.
    pub needed: u64,
    /// An earlier copy arrived.
    pub spurious: u64,
    /// Unknown.
    pub unknown: u64,
}

impl Tally {
    /// Counts one.
    pub fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Needed => self.needed += 1,
            Verdict::Spurious => self.spurious += 1,
            Verdict::Unknown => self.unknown += 1,
        }
    }

    /// Total number.
    pub fn total(&self) -> u64 {
        self.needed + self.spurious + self.unknown
    }
}

/// A direction's retransmissions.
#[derive(Debug, Default)]
pub struct Verdicts {
    open: Vec<Retransmission>,
    judged: VecDeque<(Retransmission, Verdict, i64)>,
    settled: Tally,
    least_rtt_ns: Option<i64>,
    /// Both ends permit SACK.
    pub sack: bool,
    /// Data not seen before below what was seen: of these, late originals.
    pub reordered: u64,
    /// Segments that were retransmitted after a loss before this capture point.
    pub repaired: u64,
    /// Segments that are neither known as late nor as retransmitted.
    pub late_unknown: u64,
    /// Each one's verdict, where they are wanted one by one.
    pub log: Option<Vec<Judged>>,
}

impl Verdicts {
    /// The least RTT at this place.
    pub fn note_rtt(&mut self, ns: i64) {
        self.least_rtt_ns = Some(self.least_rtt_ns.map_or(ns, |least| least.min(ns)));
    }

    /// Data that were seen before.
    pub fn sent_again(&mut self, retransmission: Retransmission) {
        if retransmission.known {
            self.judge(retransmission, Verdict::Spurious);
        } else {
            self.open.push(retransmission);
            if self.open.len() > OPEN_MAX {
                self.settled.unknown += 1;
                let retransmission = self.open.remove(0);
                self.note(&retransmission, Verdict::Unknown);
            }
        }
    }

    fn judge(&mut self, retransmission: Retransmission, verdict: Verdict) {
        self.judged.push_back((retransmission, verdict, 0));
        if self.judged.len() > JUDGED_MAX
            && let Some((retransmission, verdict, _)) = self.judged.pop_front()
        {
            self.settled.add(verdict);
            self.note(&retransmission, verdict);
        }
    }

    fn note(&mut self, retransmission: &Retransmission, verdict: Verdict) {
        if let Some(log) = &mut self.log {
            log.push(Judged {
                at: retransmission.at,
                seq: retransmission.seq,
                verdict: verdict.into(),
            });
        }
    }

    /// Returns all verdicts one by one, if recorded.
    pub fn judgements(&self) -> Vec<Judged> {
        let Some(log) = &self.log else { return Vec::new() };
        let mut all = log.clone();
        let of = |retransmission: &Retransmission, verdict| Judged {
            at: retransmission.at,
            seq: retransmission.seq,
            verdict,
        };
        all.extend(
            self.judged
                .iter()
                .map(|(retransmission, verdict, _)| of(retransmission, (*verdict).into())),
        );
        all.extend(
            self.open.iter().map(|retransmission| of(retransmission, SegmentVerdict::Unknown)),
        );
        all
    }

    /// Handles the acknowledgement of retransmissions; `received` tests whether a range is SACKed.
    pub fn covered(&mut self, by: &Covered, received: impl Fn(i64, i64) -> bool) {
        let mut index = 0;
        while index < self.open.len() {
            let candidate = &self.open[index];
            if candidate.end <= by.acked || received(candidate.start, candidate.end) {
                let retransmission = self.open.remove(index);
                let verdict = self.verdict(&retransmission, by);
                self.judge(retransmission, verdict);
            } else {
                index += 1;
            }
        }
    }

    fn verdict(&self, retransmission: &Retransmission, by: &Covered) -> Verdict {
        // Only of the segment that was next does the receiver keep the stamp (RFC 7323 §4.3).
        let first = retransmission.start <= by.before
            && by.before < retransmission.end
            && by.acked > by.before;
        if let (true, Some(echo), Some(stamp)) = (first, by.echo, retransmission.stamp) {
            if echo.wrapping_sub(stamp).cast_signed() < 0 {
                return Verdict::Spurious;
            }
            if retransmission.stamp_before.is_some_and(|before| before != stamp) {
                return Verdict::Needed;
            }
        }
        if self.least_rtt_ns.is_some_and(|least| by.at - retransmission.at < least - least / 8) {
            return Verdict::Spurious;
        }
        if retransmission.signs || self.sack { Verdict::Needed } else { Verdict::Unknown }
    }

    /// Handles the receiver's report of a range received twice (D-SACK).
    pub fn twice_received(&mut self, range: (i64, i64)) {
        let overlap = |retransmission: &Retransmission| {
            retransmission.end.min(range.1) - retransmission.start.max(range.0)
        };
        let judged_copy = self.judged.iter_mut().rev().find(|(retransmission, _, reported)| {
            overlap(retransmission) > 0
                && reported + overlap(retransmission) <= retransmission.end - retransmission.start
        });
        if let Some((what, verdict, told)) = judged_copy {
            *told += overlap(what);
            *verdict = Verdict::Spurious;
            return;
        }
        if let Some(index) =
            self.open.iter().rposition(|retransmission| overlap(retransmission) > 0)
        {
            let retransmission = self.open.remove(index);
            let overlap_bytes = overlap(&retransmission);
            self.judge(retransmission, Verdict::Spurious);
            if let Some(last) = self.judged.back_mut() {
                last.2 = overlap_bytes;
            }
        }
    }

    /// Classifies data not seen before, below the highest: late, or retransmitted because the first copy was lost
    /// before this capture point.
    pub fn late(
        &mut self,
        packet: &Packet,
        above: Option<&Sent>,
        path_ns: Option<i64>,
        ids_rise: bool,
    ) {
        let before = sent_before(packet, above, path_ns, ids_rise);
        if let Some(log) = &mut self.log {
            let classification = match before {
                Some(true) => SegmentVerdict::Reordered,
                Some(false) => SegmentVerdict::Needed,
                None => SegmentVerdict::Unknown,
            };
            log.push(Judged { at: packet.time_ns, seq: packet.seq, verdict: classification });
        }
        match before {
            Some(true) => self.reordered += 1,
            Some(false) => self.repaired += 1,
            None => self.late_unknown += 1,
        }
    }

    /// Retransmitted segments by verdict; uncovered ones are unknown.
    pub fn tally(&self) -> Tally {
        let mut tally = self.settled;
        for (_, verdict, _) in &self.judged {
            tally.add(*verdict);
        }
        tally.unknown += self.open.len() as u64;
        tally
    }
}

/// True when a late packet was sent before the one that overtook it: by IPv4's identification where it rises, by the
/// time stamp, or because no copy could have arrived so soon.
fn sent_before(
    packet: &Packet,
    above: Option<&Sent>,
    path_ns: Option<i64>,
    ids_rise: bool,
) -> Option<bool> {
    let above = above?;
    if let (true, Some(id), Some(above_id)) = (ids_rise, packet.ip_id, above.ip_id) {
        return Some(id.wrapping_sub(above_id).cast_signed() < 0);
    }
    if let (Some((stamp, _)), Some(above_id)) = (packet.stamps, above.stamp) {
        let later = stamp.wrapping_sub(above_id).cast_signed();
        if later != 0 {
            return Some(later < 0);
        }
    }
    let least = path_ns?;
    Some(packet.time_ns - above.first_ns < least - least / 8)
}
