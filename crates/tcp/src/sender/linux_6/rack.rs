//! RACK: a segment is lost when one sent later was delivered and enough time has passed
//! (RFC 8985 §6; kernel: tcp_recovery.c).
//!
//! The kernel keeps segments in a list by time of last transmission. Here the order is implicit: segments
//! never retransmitted are in ring order, retransmitted ones in a queue of their own.

use super::Linux6;
use super::timers::Pending;
use crate::sender::core::{Core, Marks, Sent, sent_after};
use dragstrip_cc::CaState;
use std::collections::VecDeque;

/// `TCP_RACK_RECOVERY_THRESH`: recoveries for which a widened window is kept.
const PERSIST: u32 = 16;

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(super) struct Rack {
    /// Send time and end of the most recently sent segment that was delivered.
    sent_us: u64,
    end_seq: u64,
    /// Its RTT.
    rtt_us: u64,
    /// `delivered` when `steps` last changed.
    last_delivered: u64,
    /// No segment below this number waits for detection.
    scan_from: u64,
    /// The reordering window in quarters of the minimum RTT.
    steps: u32,
    /// Recoveries until `steps` falls back to 1.
    pub persist: u32,
    /// It moved since the last detection.
    pub advanced: bool,
    /// A DSACK arrived in this round.
    pub dsack_seen: bool,
    /// Retransmissions in time order: segment number and send time (stale when they differ).
    retransmitted: VecDeque<(u64, u64)>,
}

impl Rack {
    pub fn new() -> Self {
        Self {
            sent_us: 0,
            end_seq: 0,
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            last_delivered: 0,
            scan_from: 0,
            retransmitted: VecDeque::new(),
        }
    }

    /// RTT of the most recently sent segment that was delivered, µs.
    pub fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// A segment was retransmitted.
    pub fn note_retransmission(&mut self, number: u64, sent_us: u64) {
        self.retransmitted.push_back((number, sent_us));
    }

    /// Marks were thrown away (undo, reneging): what they hid waits for detection again.
    pub fn rescan(&mut self, head: u64) {
        self.scan_from = head;
        self.advanced = true;
    }

    /// A widened window is kept for another 16 recoveries: reordering was proven by DSACK.
    pub fn persist_longer(&mut self) {
        self.persist = PERSIST.min(self.persist + 1);
    }
}

impl Linux6 {
    /// `tcp_rack_advance`: a segment is newly delivered.
    #[inline]
    pub(super) fn rack_advance(&mut self, core: &Core, sent: &Sent) {
        let rtt_us = core.now_us().saturating_sub(sent.sent_us);
        // Sooner than the path allows: this acknowledges the original, not the retransmission.
        if sent.marks.has(Marks::EVER_RETRANS) && rtt_us < u64::from(self.linux.min_rtt.get()) {
            return;
        }
        let rack = &mut self.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        if sent_after(sent.sent_us, rack.sent_us, sent.end_seq(), rack.end_seq) {
            rack.sent_us = sent.sent_us;
            rack.end_seq = sent.end_seq();
        }
    }

    /// `tcp_rack_reo_wnd`.
    fn reordering_window_us(&self, core: &Core) -> u64 {
        if self.reordering_seen == 0 {
            // No reordering known: be quick in recovery and at the classic threshold of duplicate ACKs.
            if matches!(core.view.state, CaState::Recovery | CaState::Loss) {
                return 0;
            }
            if core.view.sacked_out >= self.linux.reordering && !core.settings.rack_no_dupthresh {
                return 0;
            }
        }
        let quarter = u64::from(self.linux.min_rtt.get() >> 2);
        (quarter * u64::from(self.rack.steps)).min(u64::from(core.view.srtt_us_x8 >> 3))
    }

    /// `tcp_rack_detect_loss`: marks what must be lost by now; how long to wait for the rest, µs.
    fn rack_detect(&mut self, core: &mut Core) -> u64 {
        let window = self.reordering_window_us(core);
        let now_us = core.now_us();
        let deadline = self.rack.rtt_us + window;
        let mut wait_us = 0;
        let mut blocked = false;
        self.rack.scan_from = self.rack.scan_from.max(core.board.head());
        let mut number = self.rack.scan_from;
        while number < core.board.tail() {
            let segment = core.board.get(number);
            let original = !segment.marks.has(Marks::EVER_RETRANS);
            let settled = Marks::SACKED.with(Marks::LOST).with(Marks::JUDGED);
            if original && !segment.marks.any(settled) {
                if !sent_after(
                    self.rack.sent_us,
                    segment.sent_us,
                    self.rack.end_seq,
                    segment.end_seq(),
                ) {
                    break;
                }
                let elapsed = now_us - segment.sent_us;
                if deadline <= elapsed {
                    self.linux.mark_lost(core, number);
                    core.board.marks_mut(number).set(Marks::JUDGED);
                } else {
                    wait_us = wait_us.max(deadline - elapsed);
                    blocked = true;
                }
            }
            number += 1;
            if !blocked {
                self.rack.scan_from = number;
            }
        }
        wait_us.max(self.rack_detect_retransmitted(core, deadline, now_us))
    }

    /// The same for segments whose last transmission was a retransmission.
    fn rack_detect_retransmitted(&mut self, core: &mut Core, deadline: u64, now_us: u64) -> u64 {
        let mut wait_us = 0;
        let mut index = 0;
        while let Some(&(number, sent_us)) = self.rack.retransmitted.get(index) {
            let live = number >= core.board.head() && {
                let segment = core.board.get(number);
                segment.sent_us == sent_us
                    && !segment.marks.has(Marks::SACKED)
                    && (segment.marks.has(Marks::RETRANS) || !segment.marks.has(Marks::LOST))
            };
            if !live {
                if index == 0 {
                    self.rack.retransmitted.pop_front();
                } else {
                    index += 1;
                }
                continue;
            }
            let end_seq = core.board.get(number).end_seq();
            if !sent_after(self.rack.sent_us, sent_us, self.rack.end_seq, end_seq) {
                break;
            }
            let elapsed = now_us - sent_us;
            if deadline <= elapsed {
                self.linux.mark_lost(core, number);
                // Judged: this transmission does not come up again.
                self.rack.retransmitted[index].1 = u64::MAX;
            } else {
                wait_us = wait_us.max(deadline - elapsed);
                index += 1;
            }
        }
        wait_us
    }

    /// `tcp_rack_mark_lost`; whether a reordering timer was set.
    pub(super) fn rack_mark_lost(&mut self, core: &mut Core) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait_us = self.rack_detect(core);
        if wait_us == 0 {
            return false;
        }
        let delay = core.settings.ticks.count_micros_ceil(wait_us + core.settings.timeout_min_us());
        self.set_timer(core, Pending::Reordering, delay.min(core.timer.rto_ticks));
        true
    }

    /// `tcp_rack_reo_timeout`, the part that finds losses; whether anything was marked.
    pub(super) fn rack_timeout(&mut self, core: &mut Core) -> bool {
        let before = core.in_flight();
        self.rack_detect(core);
        core.in_flight() != before
    }

    /// `tcp_rack_update_reo_wnd`: a DSACK in a round widens the window by a quarter of the minimum RTT.
    #[inline(always)] // a few comparisons
    pub(super) fn rack_adapt(&mut self, core: &mut Core, prior_delivered: u64) {
        if core.settings.rack_static_window || prior_delivered == 0 {
            return;
        }
        if prior_delivered < self.rack.last_delivered {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.steps = (self.rack.steps + 1).min(255);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = core.view.delivered;
            self.rack.persist = PERSIST;
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }
}
