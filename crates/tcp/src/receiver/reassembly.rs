//! Out-of-order data, and the SACK blocks that report it.
//!
//! Kernel: `tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`, `tcp_sack_maybe_coalesce`, `tcp_sack_remove`,
//! `tcp_dsack_set`. RFC 2018 §4: the first block is the most recent one.

use crate::segment::SackBlock;

/// Most blocks remembered (`TCP_NUM_SACKS`).
const REMEMBERED: usize = 4;

/// Data that a receiver holds out of order; made when some arrives so for the first time.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    queue: Option<Box<Queue>>,
    /// Nothing is queued and nothing is to be reported: the queue need not be looked at.
    is_idle: bool,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self { queue: None, is_idle: true }
    }
}

impl Reassembly {
    #[inline]
    fn queue(&self) -> Option<&Queue> {
        if self.is_idle { None } else { self.queue.as_deref() }
    }

    /// Changes the queue.
    fn change<T>(&mut self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let queue = self.queue.get_or_insert_default();
        let result = change(queue);
        self.is_idle = queue.ranges.is_empty() && !queue.reports();
        result
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue().is_none_or(|queue| queue.ranges.is_empty())
    }

    /// True when there is something for an acknowledgement to report.
    #[inline]
    pub fn reports(&self) -> bool {
        self.queue().is_some_and(Queue::reports)
    }

    /// Memory held by queued segments: 2304 bytes for 1448 of payload (truesize, approximate).
    #[inline]
    pub fn memory(&self) -> u64 {
        self.queue().map_or(0, |queue| queue.queued + queue.queued * 19 / 32)
    }

    /// Bytes from `rcv_nxt` to the end of queued data.
    #[inline]
    pub fn reach(&self, rcv_nxt: u64) -> u64 {
        self.queue().and_then(|queue| queue.ranges.last()).map_or(0, |range| range.1 - rcv_nxt)
    }

    /// The next acknowledgement reports `[start, end)` as a duplicate (RFC 2883).
    pub fn set_duplicate(&mut self, start: u64, end: u64) {
        self.change(|queue| queue.duplicate = Some((start, end)));
    }

    #[inline]
    pub fn forget_duplicate(&mut self) {
        if !self.is_idle {
            self.change(|queue| queue.duplicate = None);
        }
    }

    /// Queues `[start, end)`; how many of the bytes are new. What of it had come before is reported (`tcp_data_queue_ofo`).
    pub fn insert(&mut self, start: u64, end: u64, dsack: bool) -> u64 {
        self.change(|queue| queue.insert(start, end, dsack))
    }

    /// Returns the number of blocks more recent than the one that `[start, end)` would extend; all of them if it
    /// extends none.
    pub fn blocks_before(&self, start: u64, end: u64) -> usize {
        self.queue().map_or(0, |queue| queue.blocks_before(start, end))
    }

    /// The in-order edge has reached `next`: takes out what now continues it. The new edge, and how many of the
    /// queued bytes lay below `next`; the first range of them is reported as a duplicate (`tcp_ofo_queue`).
    pub fn absorb(&mut self, next: u64, dsack: bool) -> (u64, u64) {
        self.change(|queue| queue.absorb(next, dsack))
    }

    /// Fills in as many blocks as there is room for, a pending duplicate first; how many.
    pub fn blocks(&mut self, ack: u64, into: &mut [SackBlock]) -> usize {
        if self.is_idle { 0 } else { self.change(|queue| queue.blocks(ack, into)) }
    }
}

/// Ranges that have arrived out of order.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Disjoint ranges above `rcv_nxt`, ascending.
    ranges: Vec<(u64, u64)>,
    queued: u64,
    /// Blocks to report, most recent first.
    recent: [(u64, u64); REMEMBERED],
    recent_count: usize,
    duplicate: Option<(u64, u64)>,
}

impl Queue {
    fn reports(&self) -> bool {
        self.recent_count > 0 || self.duplicate.is_some()
    }

    /// `tcp_dsack_extend`: the pending duplicate grows by what touches it.
    fn extend_duplicate(&mut self, start: u64, end: u64) {
        match &mut self.duplicate {
            None => self.duplicate = Some((start, end)),
            Some(pending) if start <= pending.1 && pending.0 <= end => {
                *pending = (pending.0.min(start), pending.1.max(end));
            }
            Some(_) => {}
        }
    }

    fn insert(&mut self, start: u64, end: u64, dsack: bool) -> u64 {
        // Arrivals are nearly always at or near the end.
        let mut first = self.ranges.len();
        while first > 0 && self.ranges[first - 1].1 >= start {
            first -= 1;
        }
        let mut last = first;
        let mut merged = (start, end);
        let mut had = 0;
        while last < self.ranges.len() && self.ranges[last].0 <= end {
            let (low, high) = self.ranges[last];
            if dsack && high > start && low < end {
                if low < start || (low == start && high >= end) {
                    self.duplicate = Some((start, high.min(end)));
                } else {
                    self.extend_duplicate(low, high.min(end));
                }
            }
            had += high.min(end).saturating_sub(low.max(start));
            merged = (merged.0.min(low), merged.1.max(high));
            last += 1;
        }
        let new = (end - start) - had;
        match last - first {
            0 => self.ranges.insert(first, merged),
            1 => self.ranges[first] = merged,
            _ => {
                self.ranges[first] = merged;
                self.ranges.drain(first + 1..last);
            }
        }
        self.queued += new;
        self.report(start, end);
        new
    }

    fn blocks_before(&self, start: u64, end: u64) -> usize {
        let blocks = &self.recent[..self.recent_count];
        blocks.iter().position(|other| other.0 <= end && start <= other.1).unwrap_or(blocks.len())
    }

    /// `tcp_sack_new_ofo_skb`: the block that holds the newest arrival comes first.
    fn report(&mut self, start: u64, end: u64) {
        let mut block = (start, end);
        let mut separate_count = 0;
        // Blocks that touch the new one melt into it.
        for index in 0..self.recent_count {
            let old_block = self.recent[index];
            if old_block.0 <= block.1 && block.0 <= old_block.1 {
                block = (block.0.min(old_block.0), block.1.max(old_block.1));
            } else {
                self.recent[separate_count] = old_block;
                separate_count += 1;
            }
        }
        let count = (separate_count + 1).min(REMEMBERED);
        self.recent.copy_within(0..count - 1, 1);
        self.recent[0] = block;
        self.recent_count = count;
    }

    fn absorb(&mut self, mut next: u64, dsack: bool) -> (u64, u64) {
        if let Some(&(start, end)) = self.ranges.first()
            && dsack
            && start < next
        {
            // Not what lies beyond it: that has come for the first time.
            self.extend_duplicate(start, end.min(next));
        }
        let mut absorbed_count = 0;
        let mut overlap = 0;
        for &(start, end) in &self.ranges {
            if start > next {
                break;
            }
            overlap += next.min(end).saturating_sub(start);
            self.queued -= end - start;
            next = next.max(end);
            absorbed_count += 1;
        }
        self.ranges.drain(..absorbed_count);
        self.forget_below(next);
        (next, overlap)
    }

    /// `tcp_sack_remove`.
    fn forget_below(&mut self, next: u64) {
        let mut remaining_count = 0;
        for index in 0..self.recent_count {
            if self.recent[index].0 >= next {
                self.recent[remaining_count] = self.recent[index];
                remaining_count += 1;
            }
        }
        self.recent_count = if self.ranges.is_empty() { 0 } else { remaining_count };
    }

    fn blocks(&mut self, ack: u64, into: &mut [SackBlock]) -> usize {
        let mut count = 0;
        if let Some((start, end)) = self.duplicate.take() {
            into[0] = SackBlock::relative(ack, start, end);
            count = 1;
        }
        for &(start, end) in &self.recent[..self.recent_count] {
            if count == into.len() {
                break;
            }
            into[count] = SackBlock::relative(ack, start, end);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(reassembly: &mut Reassembly, ack: u64) -> Vec<(i32, i32)> {
        let mut blocks = [SackBlock::default(); 3];
        let count = reassembly.blocks(ack, &mut blocks);
        blocks[..count].iter().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn the_newest_block_comes_first_and_grows() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.insert(2000, 3000, true), 1000);
        assert_eq!(reassembly.insert(5000, 6000, true), 1000);
        assert_eq!(reported(&mut reassembly, 1000), [(4000, 5000), (1000, 2000)]);
        assert_eq!(reassembly.insert(3000, 4000, true), 1000);
        assert_eq!(reported(&mut reassembly, 1000), [(1000, 3000), (4000, 5000)]);
        assert_eq!(reassembly.insert(4000, 5000, true), 1000);
        assert_eq!(reported(&mut reassembly, 1000), [(1000, 5000)]);
    }

    #[test]
    fn a_filled_gap_frees_everything_that_follows_it() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(2000, 3000, true);
        reassembly.insert(4000, 5000, true);
        assert_eq!(reassembly.absorb(2000, false), (3000, 0));
        assert_eq!(reported(&mut reassembly, 3000), [(1000, 2000)]);
        assert_eq!(reassembly.absorb(4500, false), (5000, 500));
        assert!(reassembly.is_empty());
        assert_eq!(reassembly.memory(), 0);
    }

    #[test]
    fn a_segment_that_covers_what_was_queued_reports_no_more_than_that() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(1000, 3000, true);
        reassembly.insert(4000, 5000, true);
        assert_eq!(reassembly.absorb(6000, true), (6000, 3000));
        assert_eq!(reported(&mut reassembly, 6000), [(-5000, -3000)], "the first range alone");
        // Out of order, each range that touches the one before extends it (tcp_dsack_extend).
        reassembly.insert(7000, 8000, true);
        reassembly.insert(9000, 9500, true);
        assert_eq!(reassembly.insert(7000, 10_000, true), 1500);
        assert_eq!(reported(&mut reassembly, 6000), [(1000, 2000), (1000, 4000)]);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(2000, 3000, true);
        assert_eq!(reassembly.insert(2000, 3000, true), 0);
        assert_eq!(reported(&mut reassembly, 1000), [(1000, 2000), (1000, 2000)]);
        assert_eq!(reported(&mut reassembly, 1000), [(1000, 2000)]);
    }
}
