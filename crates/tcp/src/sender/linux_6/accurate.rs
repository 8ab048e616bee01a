//! Accurate ECN, the sending half: how many packets an acknowledgement reports as marked (RFC 9768 §3.2.2.5, appendix A.2;
//! Linux 6.18 `__tcp_accecn_process`).
//!
//! The counter in the flags says it modulo 8. Where an acknowledgement covers more than seven packets, it may have gone round: as
//! often as it can have, to be safe, unless the option's bytes of CE show that it has not. Departs from Linux in how they show it:
//! full segments are assumed, and the least number that fits both counters counts.

use super::Linux6;
use crate::receiver::PACKETS_BEGIN;
use crate::segment::{EcnBytes, Segment};
use crate::sender::core::{Ack, AckFlags, Core};

/// Feedback in the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccEcnFeedback {
    /// Its timestamp, ms.
    stamp: u32,
    /// Bytes that came as CE, in 24 bits.
    ce_bytes: u32,
}

/// Returns how many of `delivered` packets are marked, when the counter went on by `least` modulo 8 and, if known,
/// that of bytes by so many full segments.
fn marked(least: u32, delivered: u32, segments: Option<u32>) -> u32 {
    if delivered < 8 {
        return least;
    }
    let safe = delivered - ((delivered.wrapping_sub(least)) & 7);
    match segments {
        None => safe,
        Some(segments) => (least + segments.saturating_sub(least).next_multiple_of(8)).min(safe),
    }
}

impl Linux6 {
    /// Sets how many packets the acknowledgement reports as marked, where accurate ECN was agreed on. It has been taken in, all but
    /// that.
    pub(super) fn read_counters(
        &mut self,
        core: &Core,
        segment: &Segment,
        ack: &mut Ack,
        delivered_before: u64,
    ) {
        if !core.agreed.by_counters() {
            return;
        }
        // An old one, overtaken on the way, would set the counters back.
        let stamp = segment.timestamps().map_or(0, |stamps| stamps.val);
        let last_feedback = &mut self.marks.get_or_insert_default().told;
        let newer = stamp > last_feedback.stamp;
        if !newer && !ack.flags.any(AckFlags::ADVANCED.with(AckFlags::DATA_SACKED)) {
            return;
        }
        last_feedback.stamp = last_feedback.stamp.max(stamp);
        let segments = segment.ecn_bytes().filter(|bytes| bytes.fields >= 2).map(|bytes| {
            let now = bytes.counters[EcnBytes::CE];
            let more = now.wrapping_sub(last_feedback.ce_bytes) & EcnBytes::MASK;
            if more > EcnBytes::MASK / 2 {
                return 0;
            }
            last_feedback.ce_bytes = now;
            more.div_ceil(core.view.mss)
        });
        let delivered_ce = core.view.delivered_ce as u8;
        let least = segment.flags.ace().wrapping_sub(PACKETS_BEGIN).wrapping_sub(delivered_ce) & 7;
        let delivered = (core.view.delivered - delivered_before) as u32;
        ack.marked = marked(least.into(), delivered, segments);
        if ack.marked > 0 {
            ack.flags.set(AckFlags::ECE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn up_to_seven_packets_the_counter_is_exact() {
        for delivered in 0..8 {
            for least in 0..8 {
                assert_eq!(marked(least, delivered, None), least);
                assert_eq!(marked(least, delivered, Some(99)), least);
            }
        }
    }

    /// RFC 9768 appendix A.2.1: the most that the counter can have gone on by, but not more than came.
    #[test]
    fn beyond_that_it_has_gone_round_as_often_as_it_can() {
        for (least, delivered, most) in
            [(0, 8, 8), (1, 8, 1), (7, 8, 7), (3, 11, 11), (4, 11, 4), (0, 40, 40), (5, 40, 37)]
        {
            assert_eq!(marked(least, delivered, None), most, "{least} of {delivered}");
        }
    }

    #[test]
    fn bytes_say_how_often_it_has() {
        for (least, delivered, segments, wanted) in [
            (0, 40, 0, 0),
            (1, 40, 1, 1),
            (1, 40, 9, 9),
            (5, 40, 3, 5),
            (5, 40, 12, 13),
            (5, 40, 40, 37),
        ] {
            assert_eq!(marked(least, delivered, Some(segments)), wanted, "{least} {segments}");
        }
    }
}
