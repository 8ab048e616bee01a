//! A connection at two vantage points: which packet is which, what was lost between, round trips without synchronised clocks.
//!
//! Data are matched by ranges of bytes, so that either side may have cut or joined segments; copies of the same bytes
//! are distinguished by their time stamps and by IPv4's identification, else they match in order. Round trips are
//! paired as SPP does (Zander and Armitage, CAIA 2013): the last packet seen at the far point before one of the other
//! direction, and the first such one.

use crate::envelope::Envelope;
use crate::half::Kind;
use crate::intervals::Intervals;
use crate::quantiles::Quantiles;
use crate::verdicts::{Judged, Tally, Verdict};
use dragstrip_capture::read::Packet;
use std::collections::{BTreeMap, VecDeque};

/// Copies that wait for the other point at most, of a direction.
const WAITING_MAX: usize = 1 << 16;
/// Most retransmissions that wait for a verdict.
const AGAIN_MAX: usize = 1 << 14;

/// A part of a copy that one point has shown.
#[derive(Clone, Copy, Debug)]
struct Copy {
    end: i64,
    at: i64,
    stamp: Option<u32>,
    /// IPv4 identification of a packet from which no part was taken yet.
    ip_id: Option<u16>,
    /// The receiver refuses it.
    stale: bool,
}

/// Retransmitted data, and the bytes of them of which an earlier copy arrived.
#[derive(Debug)]
struct Again {
    start: i64,
    end: i64,
    at: i64,
    seq: u32,
    arrived: Intervals,
}

/// Receive state that a host at a capture point would have for a direction's data, including the segments that it
/// would reject for their stamps.
///
/// PAWS (RFC 7323 §5): older than TS.Recent, which is the stamp of the last data in which the last acknowledgement lay or at whose ends it stood
/// (`tcp_sequence`, `tcp_replace_ts_recent`). Linux allows a tick (`TCP_PAWS_WINDOW`). The receiver's echoes tell TS.Recent too, but may pass its capture later than they were sent:
/// packets out are tapped behind the queue (`dev_queue_xmit_nit`), where a delay may stand.
#[derive(Debug, Default)]
struct Replay {
    recent: Option<u32>,
    next: Option<i64>,
    beyond: Intervals,
}

impl Replay {
    fn refuses(&mut self, start: i64, end: i64, stamp: Option<u32>) -> bool {
        let newer = |stamp: u32| self.recent.map(|recent| stamp.wrapping_sub(recent).cast_signed());
        if stamp.and_then(newer).is_some_and(|by| by < -1) {
            return true;
        }
        let next = *self.next.get_or_insert(start);
        if start <= next && end >= next && stamp.and_then(newer).is_none_or(|by| by >= 0) {
            self.recent = stamp.or(self.recent);
        }
        self.beyond.add(start, end);
        self.acknowledged(next);
        false
    }

    /// All below has arrived, whether the capture has it or not.
    fn acknowledged(&mut self, edge: i64) {
        let next = self.beyond.covered_from(self.next.map_or(edge, |next| next.max(edge)));
        self.beyond.forget_below(next);
        self.next = Some(next);
    }
}

/// One direction between the points.
#[derive(Debug, Default)]
pub struct Way {
    reference: Option<(u32, i64)>,
    replays: [Replay; 2],
    /// By start and order, what only this point has shown.
    waiting: [BTreeMap<(i64, u64), Copy>; 2],
    longest: [i64; 2],
    /// The same of packets without data, by what they are.
    empty: [BTreeMap<u64, VecDeque<i64>>; 2],
    empties: [usize; 2],
    number: u64,
    arrived: Intervals,
    again: [VecDeque<Again>; 2],
    judged: [Tally; 2],
    /// Packets shown by each point, with data and without.
    pub shown: [u64; 2],
    given_up: [u64; 2],
    /// Packets that both have shown.
    pub matched: u64,
    /// The second point's stamp less the first's.
    pub delays: Envelope,
    /// Data that arrived after what was sent later, if the data come from this point.
    pub overtaken: [u64; 2],
    latest: [Option<i64>; 2],
}

/// A packet that both points have shown, with its stamp at each.
pub type Record = [i64; 2];

impl Way {
    fn position(&mut self, seq: u32) -> i64 {
        let (reference_seq, at) = *self.reference.get_or_insert((seq, 0));
        at + i64::from(seq.wrapping_sub(reference_seq).cast_signed())
    }

    /// An acknowledgement of this direction's data that a point has shown.
    fn acknowledged(&mut self, point: usize, ack: u32) {
        let edge = self.position(ack);
        self.replays[point].acknowledged(edge);
    }

    fn take(&mut self, point: usize, packet: &Packet, kind: Kind, stale: bool) -> Option<Record> {
        self.shown[point] += 1;
        let counterpart_ns = if packet.payload == 0 {
            self.take_empty(point, packet)
        } else {
            self.take_data(point, packet, kind, stale)
        }?;
        self.matched += 1;
        let record = if point == 0 {
            [packet.time_ns, counterpart_ns]
        } else {
            [counterpart_ns, packet.time_ns]
        };
        self.delays.add(record[0], record[1] - record[0]);
        if packet.payload > 0 {
            for (point, at) in record.into_iter().enumerate() {
                self.overtaken[point] +=
                    u64::from(self.latest[point].is_some_and(|latest| at < latest));
                self.latest[point] = self.latest[point].max(Some(at));
            }
        }
        Some(record)
    }

    fn take_empty(&mut self, point: usize, packet: &Packet) -> Option<i64> {
        let print = print(packet);
        if let Some(times) = self.empty[1 - point].get_mut(&print) {
            let at = times.pop_front();
            if times.is_empty() {
                self.empty[1 - point].remove(&print);
            }
            self.empties[1 - point] -= 1;
            return at;
        }
        if self.empties[point] < WAITING_MAX {
            self.empties[point] += 1;
            self.empty[point].entry(print).or_default().push_back(packet.time_ns);
        } else {
            self.given_up[point] += 1;
        }
        None
    }

    fn take_data(&mut self, point: usize, packet: &Packet, kind: Kind, stale: bool) -> Option<i64> {
        let start = self.position(packet.seq) + i64::from(packet.flags & 2 != 0);
        let end = start + i64::from(packet.payload);
        self.reference = Some((packet.seq, start - i64::from(packet.flags & 2 != 0)));
        if kind == Kind::Again {
            self.note_again(point, start, end, packet);
        }
        let copy = Copy {
            end,
            at: packet.time_ns,
            stamp: packet.stamps.map(|pair| pair.0),
            ip_id: packet.ip_id,
            stale: self.replays[point].refuses(start, end, packet.stamps.map(|pair| pair.0))
                || stale,
        };
        let mut match_ns = None;
        let mut ranges = vec![(start, end)];
        while let Some(range) = ranges.pop() {
            let Some((key, held)) = self.counterpart(1 - point, range, &copy, (start, end)) else {
                self.wait(
                    point,
                    range,
                    Copy {
                        end: range.1,
                        ip_id: copy.ip_id.filter(|_| range == (start, end)),
                        ..copy
                    },
                );
                continue;
            };
            self.waiting[1 - point].remove(&key);
            let part = (range.0.max(key.0), range.1.min(held.end));
            for rest in [(key.0, part.0), (part.1, held.end)] {
                if rest.0 < rest.1 {
                    self.wait(1 - point, rest, Copy { end: rest.1, ip_id: None, ..held });
                }
            }
            ranges.extend(
                [(range.0, part.0), (part.1, range.1)].into_iter().filter(|rest| rest.0 < rest.1),
            );
            match_ns = Some(held.at);
            let times = if point == 0 { [copy.at, held.at] } else { [held.at, copy.at] };
            if !copy.stale && !held.stale {
                self.note_arrived(part, times);
            }
        }
        match_ns
    }

    /// The copy of the other point of which this is one.
    fn counterpart(
        &self,
        point: usize,
        range: (i64, i64),
        copy: &Copy,
        whole: (i64, i64),
    ) -> Option<((i64, u64), Copy)> {
        let from = range.0 - self.longest[point];
        let mut best = None;
        for (key, candidate) in self.waiting[point].range((from, 0)..(range.1, 0)) {
            if candidate.end <= range.0 || candidate.stamp != copy.stamp {
                continue;
            }
            let is_same_segment = range == whole && (key.0, candidate.end) == whole;
            let ids = if is_same_segment {
                copy.ip_id.zip(candidate.ip_id).filter(|ids| *ids != (0, 0))
            } else {
                None
            };
            match ids {
                Some((id, other)) if id == other => return Some((*key, *candidate)),
                Some(_) => {}
                None if best.is_none() => best = Some((*key, *candidate)),
                None => {}
            }
        }
        best
    }

    fn wait(&mut self, point: usize, range: (i64, i64), copy: Copy) {
        self.number += 1;
        self.longest[point] = self.longest[point].max(range.1 - range.0);
        self.waiting[point].insert((range.0, self.number), copy);
        if self.waiting[point].len() > WAITING_MAX {
            self.waiting[point].pop_first();
            self.given_up[point] += 1;
        }
    }

    fn note_again(&mut self, point: usize, start: i64, end: i64, packet: &Packet) {
        let mut arrived = Intervals::default();
        let mut from = start;
        for gap in self.arrived.missing(start, end).into_iter().chain([(end, end)]) {
            if from < gap.0 {
                arrived.add(from, gap.0);
            }
            from = gap.1;
        }
        let (at, seq) = (packet.time_ns, packet.seq);
        self.again[point].push_back(Again { start, end, at, seq, arrived });
        if self.again[point].len() > AGAIN_MAX
            && let Some(oldest) = self.again[point].pop_front()
        {
            self.judged[point].add(oldest.verdict());
        }
    }

    fn note_arrived(&mut self, part: (i64, i64), times: Record) {
        for (point, again) in self.again.iter_mut().enumerate() {
            for copy in again.iter_mut().rev().filter(|copy| copy.at > times[point]) {
                let common = (part.0.max(copy.start), part.1.min(copy.end));
                if common.0 < common.1 {
                    copy.arrived.add(common.0, common.1);
                }
            }
        }
        self.arrived.add(part.0, part.1);
    }

    /// Verdicts on the retransmitted data at the point `near` their sender; `until`: data sent later may still have
    /// been in flight.
    pub fn verdicts(&self, near: usize, until: i64) -> Tally {
        let mut tally = self.judged[near];
        for again in &self.again[near] {
            let verdict = again.verdict();
            let open = verdict == Verdict::Needed && again.at > until;
            tally.add(if open { Verdict::Unknown } else { verdict });
        }
        tally
    }

    /// The same one by one, of those still known.
    pub fn judgements(&self, near: usize, until: i64) -> Vec<Judged> {
        let of = |again: &Again| {
            let verdict = again.verdict();
            let open = verdict == Verdict::Needed && again.at > until;
            let settled_verdict = if open { Verdict::Unknown } else { verdict };
            Judged { at: again.at, seq: again.seq, verdict: settled_verdict.into() }
        };
        self.again[near].iter().map(of).collect()
    }

    /// Packets that left the point `near` between two times and never came to the other.
    pub fn lost_packets(&self, near: usize, since: i64, until: i64) -> u64 {
        let in_span = |at: &i64| (since..=until).contains(at);
        let data = self.waiting[near]
            .values()
            .filter(|copy| in_span(&copy.at))
            .map(|copy| (copy.at, copy.stamp));
        let mut data: Vec<_> = data.collect();
        data.dedup();
        let empty = self.empty[near].values().flatten().filter(|at| in_span(at)).count();
        self.given_up[near] + (data.len() + empty) as u64
    }
}

impl Again {
    fn verdict(&self) -> Verdict {
        if self.arrived.missing(self.start, self.end).is_empty() {
            Verdict::Spurious
        } else {
            Verdict::Needed
        }
    }
}

/// A connection between two points.
#[derive(Debug, Default)]
pub struct Pair {
    /// Each direction, as the key has them.
    pub ways: [Way; 2],
    /// Index of the point nearer to the first end.
    pub near: Option<usize>,
    /// Records that may still become the first half of a round trip, by direction.
    records: [VecDeque<Record>; 2],
    /// Round trips from the point near a direction's sender.
    pub trips: [Quantiles; 2],
    /// The last echo at each point, by the direction of its sender.
    echoes: [[Option<u32>; 2]; 2],
}

impl Pair {
    /// A packet of a direction at a point.
    pub fn take(&mut self, point: usize, side: usize, packet: &Packet, kind: Kind) {
        const KEPT_MAX: usize = 1 << 16;
        // Its previous echo is the least that a receiver compares with.
        let older = packet
            .stamps
            .zip(self.echoes[point][1 - side])
            .map(|(stamps, echo)| stamps.0.wrapping_sub(echo).cast_signed());
        self.echoes[point][side] = packet.stamps.map(|stamps| stamps.1);
        let stale = older.is_some_and(|older| older < -1);
        if packet.flags & 16 != 0 {
            self.ways[1 - side].acknowledged(point, packet.ack);
        }
        let Some(record) = self.ways[side].take(point, packet, kind, stale) else { return };
        if self.near.is_none() {
            self.near = self.nearer(side, record);
        }
        if let Some(near) = self.near {
            self.pair(1 - side, record, if side == 1 { near } else { 1 - near });
        }
        let records = &mut self.records[side];
        if records.len() < KEPT_MAX {
            let last = records
                .iter()
                .rposition(|entry| entry[1] <= record[1])
                .map_or(0, |index| index + 1);
            records.insert(last, record);
        }
    }

    /// Compares the round trips at both points: they are longer at the point nearer to the initiator.
    fn nearer(&self, side: usize, back: Record) -> Option<usize> {
        let forward = self.records[1 - side]
            .iter()
            .rev()
            .find(|record| record[0] < back[0] && record[1] < back[1])?;
        let times = [back[0] - forward[0], back[1] - forward[1]];
        let nearer_to_other = match times[0].cmp(&times[1]) {
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => return None,
        };
        Some(if side == 1 { nearer_to_other } else { 1 - nearer_to_other })
    }

    /// Takes a packet that came back; `near` is the point near the sender of those it may answer.
    fn pair(&mut self, out: usize, back: Record, near: usize) {
        let far = 1 - near;
        let mut last = None;
        while self.records[out].front().is_some_and(|record| record[far] < back[far]) {
            last = self.records[out].pop_front();
        }
        if let Some(record) = last {
            self.trips[out].add((back[near] - record[near]) - (back[far] - record[far]));
        }
    }
}

fn print(packet: &Packet) -> u64 {
    let (value, echo) = packet.stamps.unwrap_or_default();
    let words = [
        u64::from(packet.seq) << 32 | u64::from(packet.ack),
        u64::from(packet.flags) << 32
            | u64::from(packet.window) << 16
            | u64::from(packet.ip_id.unwrap_or(0)),
        u64::from(value) << 32 | u64::from(echo),
        u64::from(packet.sacks[0].0) << 32 | u64::from(packet.sacks[0].1),
    ];
    words.iter().fold(2, |hash: u64, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
    })
}
