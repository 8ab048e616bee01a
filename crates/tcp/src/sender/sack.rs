//! What SACK blocks tell (kernel: `tcp_sacktag_write_queue` and below; RFC 2018, RFC 2883).

use super::Sender;
use super::ack::{Ack, News};
use super::scoreboard::Marks;
use crate::profile::RecoveryStyle;
use crate::segment::Segment;

/// The blocks of the last ACK: what they covered needs no second look (`recv_sack_cache`).
#[derive(Clone, Debug, Default)]
pub(super) struct SackCache {
    blocks: [(u64, u64); 3],
    /// Duplicate segments reported so far (`dsack_dups`).
    duplicates: u64,
    /// One past the highest byte SACKed; meaningful while something is SACKed.
    highest: u64,
}

impl Sender {
    /// `tcp_highest_sack_seq`.
    #[inline]
    pub(super) fn highest_sack(&self) -> u64 {
        if self.view.sacked_out == 0 { self.view.snd_una } else { self.sacks.highest }
    }

    /// Marks everything the blocks of `segment` report.
    pub(super) fn sacktag(&mut self, segment: &Segment, ack: &mut Ack) {
        let mut blocks = [(0, 0); 3];
        let mut count = 0;
        for (block, wire) in blocks.iter_mut().zip(segment.sack()) {
            *block = wire.range(segment.ack);
            count += 1;
        }
        let duplicate = self.check_dsack(&blocks[..count], segment.ack, ack);
        let cached = self.sacks.blocks;
        let reported = blocks[0];
        // In ascending order, or the newest block of several would make the others look reordered.
        blocks[..count].sort_unstable();
        for &(start, end) in &blocks[..count] {
            let duplicate = duplicate && (start, end) == reported;
            // A duplicate may lie among what this very ACK takes off the queue.
            let low = if duplicate { ack.prior_una } else { self.view.snd_una };
            if end <= low || start >= end || end > self.view.snd_nxt {
                continue;
            }
            // What a block of the last ACK covered is marked already.
            let known =
                cached.iter().find(|known| known.0 >= start && known.1 <= end && known.0 < known.1);
            match known {
                Some(&(known_start, known_end)) if !duplicate => {
                    self.walk(start, known_start, false, ack);
                    self.walk(known_end, end, false, ack);
                }
                Some(_) | None => self.walk(start, end, duplicate, ack),
            }
        }
        self.sacks.blocks = blocks;
        let judged = self.halving.frto_end.is_some_and(|end| self.view.snd_una <= end);
        if (self.view.state != dragstrip_cc::CaState::Loss || self.recovery.undo_marker.is_some())
            && !judged
        {
            self.check_reordering(ack.reordered_from);
        }
    }

    /// Marks the segments inside `[start, end)`.
    fn walk(&mut self, start: u64, end: u64, duplicate: bool, ack: &mut Ack) {
        if start >= end {
            return;
        }
        let low = if duplicate { ack.prior_una } else { self.view.snd_una };
        let mut first = self.board.number_at(start.max(low));
        if first < self.board.tail() && self.board.get(first).seq < start {
            first += 1;
        }
        let mut number = first;
        while number < self.board.tail() && self.board.get(number).end_seq() <= end {
            self.sacktag_one(number, duplicate, ack);
            if number > self.board.head() {
                self.merge_after(number - 1);
            }
            number += 1;
        }
        if number > first {
            self.cut_out(first, number);
        }
    }

    /// The segments `first..end` are SACKed: where that divides an skb it becomes two, and where it fills a hole
    /// what follows is joined (`tcp_match_skb_to_sack`, the end of `tcp_shift_skb_data`).
    fn cut_out(&mut self, first: u64, end: u64) {
        if first > self.board.head() && !self.board.marks(first - 1).has(Marks::SACKED) {
            self.split_after(first - 1);
        }
        if end == self.board.tail() {
            return;
        }
        if self.board.marks(end).has(Marks::SACKED) {
            self.merge_after(end - 1);
        } else {
            self.split_after(end - 1);
        }
    }

    /// `tcp_sacktag_one`.
    fn sacktag_one(&mut self, number: u64, duplicate: bool, ack: &mut Ack) {
        let mut sent = self.board.get(number);
        let retransmitted = sent.marks.any(Marks::RETRANS.with(Marks::EVER_RETRANS));
        if duplicate && retransmitted {
            if self.recovery.undo_marker.is_some_and(|marker| sent.end_seq() > marker) {
                self.recovery.retransmission_was_spurious(1);
            }
            if sent.marks.has(Marks::SACKED) {
                ack.reordered_from = ack.reordered_from.min(sent.seq);
            }
        }
        if sent.end_seq() <= self.view.snd_una {
            return;
        }
        if !sent.marks.has(Marks::SACKED) {
            self.rack_advance(retransmitted, sent.end_seq(), sent.sent_us);
            if sent.marks.has(Marks::RETRANS) {
                // A segment that is not marked lost keeps its R: its retransmission is still on the way.
                if sent.marks.has(Marks::LOST) {
                    sent.marks.clear(Marks::LOST.with(Marks::RETRANS));
                    self.view.lost_out -= 1;
                    self.view.retrans_out -= 1;
                }
            } else {
                if !retransmitted {
                    // A hole that was never retransmitted is filled from below the highest SACK: reordering.
                    if sent.seq < self.highest_sack() {
                        ack.reordered_from = ack.reordered_from.min(sent.seq);
                    }
                    if sent.end_seq() <= self.recovery.high_seq {
                        ack.news.set(News::ORIG_SACK_ACKED);
                    }
                    if self.halving.frto_end.is_some_and(|end| sent.end_seq() <= end) {
                        ack.news.set(News::FRTO_ORIG_SACKED);
                    }
                    ack.first_sacked_us.get_or_insert(sent.sent_us);
                    ack.last_sacked_us = Some(sent.sent_us);
                }
                if sent.marks.has(Marks::LOST) {
                    sent.marks.clear(Marks::LOST);
                    self.view.lost_out -= 1;
                }
            }
            sent.marks.set(Marks::SACKED);
            ack.news.set(News::DATA_SACKED);
            ack.sack_delivered += 1;
            self.rate_delivered(&mut ack.draft, &sent);
            if self.view.sacked_out == 0 || sent.end_seq() > self.sacks.highest {
                self.sacks.highest = sent.end_seq();
            }
            self.view.sacked_out += 1;
        }
        if duplicate && sent.marks.has(Marks::RETRANS) {
            sent.marks.clear(Marks::RETRANS);
            self.view.retrans_out -= 1;
        }
        *self.board.marks_mut(number) = sent.marks;
    }

    /// `tcp_check_dsack`: whether the first block reports a duplicate (RFC 2883 §4: it lies below the
    /// cumulative ACK or inside the second block).
    fn check_dsack(&mut self, blocks: &[(u64, u64)], cumulative: u64, ack: &mut Ack) -> bool {
        let Some(&(start, end)) = blocks.first() else { return false };
        let inside_second =
            blocks.get(1).is_some_and(|second| start >= second.0 && end <= second.1);
        if start >= cumulative && !inside_second {
            return false;
        }
        if start >= end {
            return false;
        }
        let segments = (end - start).div_ceil(u64::from(self.view.mss)).max(1);
        let probe = segments == 1 && self.timers.probe_end() == Some(end);
        if probe {
            ack.news.set(News::DSACK_OF_PROBE);
        }
        self.sacks.duplicates += segments;
        // More duplicates than retransmissions: the network copied a packet.
        if self.sacks.duplicates > self.counters.retransmits {
            return false;
        }
        if self.recovery.reordering_seen > 0 && !probe {
            self.rack.dsack_seen = true;
        }
        ack.news.set(News::DSACKING_ACK);
        ack.sack_delivered += segments as u32;
        let forgotten = end <= ack.prior_una;
        if forgotten && self.recovery.undo_marker.is_some_and(|marker| end > marker) {
            self.recovery.retransmission_was_spurious(segments as u32);
        }
        true
    }

    /// `tcp_check_sack_reordering`: data from `low` arrived after data above it.
    pub(super) fn check_reordering(&mut self, low: u64) {
        let highest = self.highest_sack();
        if low >= highest {
            return;
        }
        let distance = (highest - low).div_ceil(u64::from(self.view.mss)) as u32;
        match self.settings.profile.recovery {
            RecoveryStyle::RackPrr => {}
            RecoveryStyle::RateHalving { .. } => return self.learn_reordering(distance),
            RecoveryStyle::Bsd | RecoveryStyle::Inflation => return,
        }
        if distance > self.recovery.reordering {
            self.recovery.reordering = distance.min(self.settings.max_reordering);
        }
        self.recovery.reordering_seen += 1;
    }

    /// The receiver threw away what it had SACKed: forget all SACK marks.
    pub(super) fn forget_sacks(&mut self) {
        self.sacks.blocks = [(0, 0); 3];
    }

    /// `tcp_shift_skb_data`: segment `number` and the one after it are one skb from now on if both are SACKed
    /// and as long as each other; the memory of the second skb beyond its payload is free.
    fn merge_after(&mut self, number: u64) {
        let next = self.board.get(number + 1);
        let sent = self.board.get(number);
        let is_plain =
            |marks: Marks| marks.has(Marks::SACKED) && !marks.any(Marks::LOST.with(Marks::RETRANS));
        let both = is_plain(sent.marks) && is_plain(next.marks) && sent.len == next.len;
        if both && sent.marks.has(Marks::BURST_END) {
            self.board.marks_mut(number).clear(Marks::BURST_END);
            self.transmission.bursts_out -= 1;
        }
    }
}
