//! ECN marks: how echoes are counted (`tcp_count_delivered`), how many had been counted when a segment was sent
//! (`tx.delivered_ce`), and what an ACK passes to the algorithm (`tcp_in_ack_event`).

use super::Linux6;
use super::accurate::AccEcnFeedback;
use crate::ecn::Agreed;
use crate::receiver::PACKETS_BEGIN;
use crate::segment::{Flags, Segment};
use crate::sender::core::{Ack, AckFlags, Core, Marks};
use dragstrip_cc::{AckEvent, CongestionControl};
use std::collections::VecDeque;

/// The history of `delivered_ce`, instead of a copy of it in every record of the scoreboard: it has a step for every
/// ACK that reported marks since the oldest outstanding segment was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkHistory {
    /// `delivered` and `delivered_ce` after that ACK.
    steps: VecDeque<(u64, u64)>,
    /// With accurate ECN: what the last ACK said.
    pub told: AccEcnFeedback,
}

impl MarkHistory {
    /// `delivered_ce` when `delivered` was counted.
    fn at(&self, delivered: u64) -> u64 {
        let after = self.steps.partition_point(|step| step.0 <= delivered);
        after.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }

    /// An ACK has reported marks. No segment is outstanding that was sent before `oldest` were delivered.
    fn note(&mut self, delivered: u64, delivered_ce: u64, oldest: u64) {
        while self.steps.get(1).is_some_and(|next| next.0 <= oldest) {
            self.steps.pop_front();
        }
        self.steps.push_back((delivered, delivered_ce));
    }
}

/// True when header prediction takes the ACK (`tcp_rcv_established`): nothing but an acknowledgement, in order, with
/// the window that is known.
#[inline]
pub(super) fn is_predicted(core: &Core, segment: &Segment, rcv_nxt: u64) -> bool {
    let usual = if core.agreed.by_counters() {
        segment.flags.ace() == (core.view.delivered_ce as u8).wrapping_add(PACKETS_BEGIN) & 7
    } else {
        !segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR)
    };
    usual
        && !segment.has_sack()
        && segment.end_seq() == rcv_nxt
        && u64::from(segment.window) + core.view.snd_una == core.window_end
}

impl Linux6 {
    /// Counts what the ACK reports as marked of the packets delivered since `delivered_before`; the answer is their
    /// number.
    #[inline]
    pub(super) fn count_marked(
        &mut self,
        core: &mut Core,
        ack: &mut Ack,
        delivered_before: u64,
    ) -> u32 {
        if !ack.flags.has(AckFlags::ECE) {
            return 0;
        }
        let marked = match core.agreed {
            Agreed::Accurate(_) => std::mem::take(&mut ack.marked),
            // The echo is a flag: it counts for all that the ACK covers.
            Agreed::None | Agreed::Classic | Agreed::Dctcp => {
                (core.view.delivered - delivered_before) as u32
            }
        };
        if marked == 0 {
            return 0;
        }
        core.view.delivered_ce += u64::from(marked);
        // A retransmission is stamped anew, so that only a head that never was tells how far back stamps go.
        let head = core.board.front().filter(|head| !head.marks.has(Marks::EVER_RETRANS));
        let behind = head.map(|head| (core.view.delivered as u32).wrapping_sub(head.delivered));
        let oldest = behind.map_or(0, |behind| core.view.delivered - u64::from(behind));
        let history = self.marks.get_or_insert_default();
        history.note(core.view.delivered, core.view.delivered_ce, oldest);
        marked
    }

    /// `delivered_ce` since `prior_delivered` packets had been delivered.
    #[inline]
    pub(super) fn marked_since(&self, core: &Core, prior_delivered: u64) -> u32 {
        let Some(history) = &self.marks else { return 0 };
        (core.view.delivered_ce - history.at(prior_delivered)) as u32
    }

    /// `tcp_in_ack_event`; the answer is how many packets the ACK has reported as marked.
    #[inline]
    pub(super) fn in_ack_event(
        &mut self,
        core: &mut Core,
        ack: &mut Ack,
        delivered_before: u64,
    ) -> u32 {
        let newly_marked = self.count_marked(core, ack, delivered_before);
        let event = AckEvent {
            slow_path: !ack.flags.has(AckFlags::PREDICTED),
            window_update: ack.flags.has(AckFlags::WINDOW_UPDATE),
            ece: ack.flags.has(AckFlags::ECE),
            newly_delivered: (core.view.delivered - delivered_before) as u32,
            newly_marked,
        };
        core.cc.in_ack_event(&core.view, &mut core.window, &event);
        newly_marked
    }
}

#[cfg(test)]
mod tests {
    use super::MarkHistory;

    #[test]
    fn a_step_holds_from_its_own_count_on() {
        let mut history = MarkHistory::default();
        history.note(10, 3, 0);
        history.note(20, 5, 0);
        for (delivered, marked) in [(0, 0), (9, 0), (10, 3), (19, 3), (20, 5), (99, 5)] {
            assert_eq!(history.at(delivered), marked, "{delivered}");
        }
    }

    #[test]
    fn what_nobody_can_ask_for_any_more_is_forgotten() {
        let mut history = MarkHistory::default();
        for n in 1..1_000 {
            history.note(10 * n, n, 10 * n.saturating_sub(5));
        }
        assert!(history.steps.len() <= 7, "{}", history.steps.len());
        assert_eq!((history.at(9_940), history.at(9_990)), (994, 999));
    }
}
