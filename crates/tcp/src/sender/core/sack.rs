//! Processing of SACK blocks (kernel: `tcp_sacktag_write_queue` and below; RFC 2018, RFC 2883).

use super::{Ack, AckFlags, Core, Marks, Stack};
use crate::segment::Segment;

/// The blocks of the last ACK: what they covered needs no second look (`recv_sack_cache`).
#[derive(Clone, Debug, Default)]
pub(super) struct SackCache {
    blocks: [(u64, u64); 4],
    /// Duplicate segments reported so far (`dsack_dups`).
    duplicates: u64,
    /// One past the highest byte SACKed; meaningful while something is SACKed.
    highest: u64,
}

/// A duplicate that the first block reports (RFC 2883).
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Dsack {
    /// One past its last byte.
    pub end: u64,
    pub segments: u64,
    /// As many segments were retransmitted: it is not a copy that the network made.
    pub believed: bool,
}

impl Core {
    /// `tcp_highest_sack_seq`.
    #[inline]
    pub fn highest_sack(&self) -> u64 {
        match &self.sacks {
            Some(sacks) if self.view.sacked_out > 0 => sacks.highest,
            Some(_) | None => self.view.snd_una,
        }
    }

    /// Marks everything the blocks of `segment` report; the duplicate that is among them.
    pub fn sacktag<S: Stack>(
        &mut self,
        stack: &mut S,
        segment: &Segment,
        ack: &mut Ack,
    ) -> Option<Dsack> {
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (block, wire) in blocks.iter_mut().zip(segment.sack()) {
            *block = wire.range(segment.ack);
            count += 1;
        }
        let dsack = self.check_dsack(stack, &blocks[..count], segment.ack, ack);
        let duplicate = dsack.is_some_and(|dsack| dsack.believed);
        let cached = self.sacks.get_or_insert_default().blocks;
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
            let cached_block = cached.iter().find(|cached_block| {
                cached_block.0 >= start && cached_block.1 <= end && cached_block.0 < cached_block.1
            });
            match cached_block {
                Some(&(known_start, known_end)) if !duplicate => {
                    self.walk(stack, (start, known_start), false, ack);
                    self.walk(stack, (known_end, end), false, ack);
                }
                Some(_) | None => self.walk(stack, (start, end), duplicate, ack),
            }
        }
        self.sacks.get_or_insert_default().blocks = blocks;
        self.view.delivered += u64::from(ack.sack_delivered);
        dsack
    }

    /// Marks the segments inside `[start, end)`.
    fn walk<S: Stack>(
        &mut self,
        stack: &mut S,
        (start, end): (u64, u64),
        duplicate: bool,
        ack: &mut Ack,
    ) {
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
            self.sacktag_one(stack, number, duplicate, ack);
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
    fn sacktag_one<S: Stack>(
        &mut self,
        stack: &mut S,
        number: u64,
        duplicate: bool,
        ack: &mut Ack,
    ) {
        let mut sent_segment = self.board.get(number);
        let retransmitted = sent_segment.marks.any(Marks::RETRANS.with(Marks::EVER_RETRANS));
        if duplicate && retransmitted {
            stack.on_duplicate_reported(sent_segment.end_seq(), 1);
            if sent_segment.marks.has(Marks::SACKED) {
                ack.reordered_from = ack.reordered_from.min(sent_segment.seq);
            }
        }
        if sent_segment.end_seq() <= self.view.snd_una {
            return;
        }
        if !sent_segment.marks.has(Marks::SACKED) {
            stack.on_segment_sacked(self, &sent_segment, ack);
            if sent_segment.marks.has(Marks::RETRANS) {
                // A segment that is not marked lost keeps its R: its retransmission is still on the way.
                if sent_segment.marks.has(Marks::LOST) {
                    sent_segment.marks.clear(Marks::LOST.with(Marks::RETRANS));
                    self.view.lost_out -= 1;
                    self.view.retrans_out -= 1;
                }
            } else {
                if !retransmitted {
                    // A hole that was never retransmitted is filled from below the highest SACK: reordering.
                    if sent_segment.seq < self.highest_sack() {
                        ack.reordered_from = ack.reordered_from.min(sent_segment.seq);
                    }
                    ack.first_sacked_us.get_or_insert(sent_segment.sent_us);
                    ack.last_sacked_us = Some(sent_segment.sent_us);
                }
                if sent_segment.marks.has(Marks::LOST) {
                    sent_segment.marks.clear(Marks::LOST);
                    self.view.lost_out -= 1;
                }
            }
            sent_segment.marks.set(Marks::SACKED);
            ack.flags.set(AckFlags::DATA_SACKED);
            ack.sack_delivered += 1;
            self.rate_delivered(&mut ack.draft, &sent_segment);
            let sacks = self.sacks.get_or_insert_default();
            if self.view.sacked_out == 0 || sent_segment.end_seq() > sacks.highest {
                sacks.highest = sent_segment.end_seq();
            }
            self.view.sacked_out += 1;
        }
        if duplicate && sent_segment.marks.has(Marks::RETRANS) {
            sent_segment.marks.clear(Marks::RETRANS);
            self.view.retrans_out -= 1;
        }
        *self.board.marks_mut(number) = sent_segment.marks;
    }

    /// `tcp_check_dsack`: whether the first block reports a duplicate (RFC 2883 §4: it lies below the
    /// cumulative ACK or inside the second block).
    fn check_dsack<S: Stack>(
        &mut self,
        stack: &mut S,
        blocks: &[(u64, u64)],
        cumulative: u64,
        ack: &mut Ack,
    ) -> Option<Dsack> {
        let &(start, end) = blocks.first()?;
        let inside_second =
            blocks.get(1).is_some_and(|second| start >= second.0 && end <= second.1);
        if (start >= cumulative && !inside_second) || start >= end {
            return None;
        }
        let segments = (end - start).div_ceil(u64::from(self.view.mss)).max(1);
        let sacks = self.sacks.get_or_insert_default();
        sacks.duplicates += segments;
        // More duplicates than retransmissions: the network copied a packet.
        let believed = sacks.duplicates <= self.counters.retransmits;
        if believed {
            ack.flags.set(AckFlags::DSACKING_ACK);
            ack.sack_delivered += segments as u32;
            let forgotten = end <= ack.prior_una;
            if forgotten {
                stack.on_duplicate_reported(end, segments as u32);
            }
        }
        Some(Dsack { end, segments, believed })
    }

    /// The receiver threw away what it had SACKed: all marks go.
    pub fn forget_sacks(&mut self) {
        for number in self.board.head()..self.board.tail() {
            self.board.marks_mut(number).clear(Marks::SACKED);
        }
        self.view.sacked_out = 0;
        if let Some(sacks) = &mut self.sacks {
            sacks.blocks = [(0, 0); 4];
        }
    }

    /// `tcp_shift_skb_data`: segment `number` and the one after it are one skb from now on if both are SACKed
    /// and as long as each other; the memory of the second skb beyond its payload is free.
    fn merge_after(&mut self, number: u64) {
        let next = self.board.get(number + 1);
        let sent_segment = self.board.get(number);
        let is_plain =
            |marks: Marks| marks.has(Marks::SACKED) && !marks.any(Marks::LOST.with(Marks::RETRANS));
        let mergeable =
            is_plain(sent_segment.marks) && is_plain(next.marks) && sent_segment.len == next.len;
        if mergeable && sent_segment.marks.has(Marks::BURST_END) {
            self.board.marks_mut(number).clear(Marks::BURST_END);
            self.transmission.bursts_out -= 1;
        }
    }
}
