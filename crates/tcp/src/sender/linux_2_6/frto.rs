//! A timeout before 3.10: F-RTO judges it before anything is marked lost; otherwise everything is lost at once.
//!
//! Kernel: Linux 2.6.27's `tcp_enter_frto`, `tcp_process_frto`, `tcp_enter_frto_loss`, `tcp_enter_loss` (tcp_input.c). RFC 4138,
//! with SACK its appendix B.

use super::Linux26;
use crate::sender::core::{AckFlags, Core, Marks};
use dragstrip_cc::{CaState, CongestionControl, Event};

/// F-RTO's steps (`frto_counter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    /// No timeout is being judged.
    Off,
    /// The head was retransmitted, no ACK has come yet.
    Retransmitted,
    /// An ACK has advanced; two new segments were sent.
    Probing,
}

impl Linux26 {
    /// The retransmission timer went off: F-RTO if it may be used, otherwise everything is lost.
    pub(super) fn time_out(&mut self, core: &mut Core) {
        if self.may_use_frto(core) {
            self.enter_frto(core);
        } else {
            self.enter_loss(core);
        }
    }

    /// `tcp_use_frto`: with SACK always; without, when nothing but the head was retransmitted.
    fn may_use_frto(&self, core: &Core) -> bool {
        if !core.settings.frto || core.settings.sack {
            return core.settings.frto;
        }
        let second = core.board.head() + 1;
        core.view.retrans_out <= 1
            && (second >= core.board.tail()
                || !core.board.marks(second).any(Marks::RETRANS.with(Marks::EVER_RETRANS)))
    }

    /// True when this timeout begins an episode, in which the window is to be reduced.
    fn is_new_episode(&self, core: &Core) -> bool {
        let undisturbed = matches!(core.view.state, CaState::Open | CaState::Disorder);
        (undisturbed && self.frto == Frto::Off)
            || core.view.snd_una == self.linux.high_seq
            || ((core.view.state == CaState::Loss || self.frto != Frto::Off)
                && self.linux.timeouts == 0)
    }

    /// `tcp_enter_frto`: the timeout may have been spurious; nothing is marked lost yet.
    fn enter_frto(&mut self, core: &mut Core) {
        if self.is_new_episode(core) {
            self.linux.prior_ssthresh = core.window.current_ssthresh(core.view.state);
            core.view.prior_cwnd = core.window.cwnd;
            let cwnd = core.window.cwnd;
            if self.frto != Frto::Off {
                // The window has not been reduced for the last timeout yet.
                core.window.cwnd = 2;
            }
            core.reduce_threshold();
            core.window.cwnd = cwnd;
        }
        self.linux.arm_undo(core, Some(0));
        let head = core.board.head();
        let marks = core.board.marks_mut(head);
        if marks.has(Marks::EVER_RETRANS) {
            self.linux.undo = None;
        }
        if marks.has(Marks::RETRANS) {
            marks.clear(Marks::RETRANS);
            core.view.retrans_out -= 1;
        }
        core.window.cwnd = core.window.cwnd.min(core.in_flight() + 1);
        let repairing =
            self.frto != Frto::Off || matches!(core.view.state, CaState::Recovery | CaState::Loss);
        let earlier = core.settings.sack && repairing && self.linux.high_seq > core.view.snd_una;
        self.frto_end = Some(if earlier { self.linux.high_seq } else { core.view.snd_nxt });
        core.set_state(CaState::Disorder);
        self.linux.high_seq = core.view.snd_nxt;
        self.frto = Frto::Retransmitted;
    }

    /// `tcp_process_frto` (RFC 4138): whether the ACK is dealt with as far as growth goes.
    pub(super) fn process_frto(&mut self, core: &mut Core, flags: AckFlags) -> bool {
        let first = self.frto == Frto::Retransmitted;
        if flags.has(AckFlags::DATA_ACKED) {
            self.linux.timeouts = 0;
        }
        if flags.has(AckFlags::NONHEAD_RETRANS_ACKED)
            || (!first && flags.has(AckFlags::RETRANS_ACKED))
        {
            self.linux.undo = None;
        }
        if self.frto_end.is_none_or(|end| core.view.snd_una >= end) {
            self.enter_frto_loss(core, if first { 2 } else { 3 }, flags);
            return true;
        }
        let forward = flags.any(AckFlags::DATA_ACKED.with(AckFlags::DATA_SACKED));
        let not_duplicate = flags.has(AckFlags::NOT_DUPLICATE);
        if core.settings.sack {
            if first && !flags.has(AckFlags::DATA_ACKED) {
                // Nothing new may be sent yet.
                core.window.cwnd = core.window.cwnd.min(core.in_flight());
                return true;
            }
            let original =
                flags.has(AckFlags::ORIG_SACK_ACKED) && !flags.has(AckFlags::BEYOND_FRTO);
            if !first && (!forward || (flags.has(AckFlags::DATA_SACKED) && !original)) {
                if forward || !not_duplicate {
                    self.enter_frto_loss(core, 3, flags);
                }
                return true;
            }
        } else {
            if !forward && !flags.has(AckFlags::ADVANCED) && not_duplicate {
                return true;
            }
            if !flags.has(AckFlags::DATA_ACKED) {
                self.enter_frto_loss(core, if first { 0 } else { 3 }, flags);
                return true;
            }
        }
        if first {
            core.window.cwnd = core.in_flight() + 2;
            self.frto = Frto::Probing;
            if !self.may_send_now(core) {
                self.enter_frto_loss(core, 2, flags);
            }
            return true;
        }
        // Spurious: the rate is halved nevertheless (`tcp_frto_response` 0).
        self.enter_cwr(core, false);
        self.frto = Frto::Off;
        self.linux.undo = None;
        false
    }

    /// `tcp_enter_frto_loss`: the timeout was right; `allowed` segments may go beyond what is in flight.
    fn enter_frto_loss(&mut self, core: &mut Core, allowed: u32, flags: AckFlags) {
        core.view.lost_out = 0;
        core.view.retrans_out = 0;
        if !core.settings.sack {
            core.view.sacked_out = 0;
        }
        // The head's retransmission counts only while no ACK has come.
        let mut waiting = self.frto == Frto::Retransmitted && !flags.has(AckFlags::DATA_ACKED);
        for number in core.board.head()..core.board.tail() {
            let marks = core.board.marks_mut(number);
            marks.clear(Marks::LOST);
            if waiting {
                if marks.has(Marks::RETRANS) {
                    core.view.retrans_out += 1;
                }
                waiting = false;
            } else {
                if marks.has(Marks::EVER_RETRANS) {
                    self.linux.undo = None;
                }
                marks.clear(Marks::RETRANS);
            }
            if !marks.has(Marks::SACKED) {
                marks.set(Marks::LOST);
                core.view.lost_out += 1;
                core.view.lost += 1;
            }
        }
        self.begin_loss(core, core.in_flight() + allowed);
    }

    /// `tcp_enter_loss`: everything that was not SACKed is lost.
    pub(super) fn enter_loss(&mut self, core: &mut Core) {
        if self.is_new_episode(core) {
            self.linux.prior_ssthresh = core.window.current_ssthresh(core.view.state);
            core.view.prior_cwnd = core.window.cwnd;
            core.reduce_threshold();
            core.cc.cwnd_event(&core.view, &mut core.window, Event::Loss);
        }
        core.view.retrans_out = 0;
        core.view.lost_out = 0;
        if !core.settings.sack {
            core.view.sacked_out = 0;
        }
        self.linux.arm_undo(core, Some(0));
        for number in core.board.head()..core.board.tail() {
            let marks = core.board.marks_mut(number);
            if marks.has(Marks::EVER_RETRANS) {
                self.linux.undo = None;
            }
            marks.clear(Marks::LOST.with(Marks::RETRANS));
            if !marks.has(Marks::SACKED) {
                marks.set(Marks::LOST);
                core.view.lost_out += 1;
                core.view.lost += 1;
            }
        }
        self.begin_loss(core, 1);
    }

    /// Enters Loss, common to both ways into it: the reordering estimate is thrown away down to the setting, as an
    /// unsigned number.
    fn begin_loss(&mut self, core: &mut Core, cwnd: u32) {
        core.window.cwnd = cwnd;
        core.window.cwnd_cnt = 0;
        self.linux.note_window_justified(core);
        self.frto = Frto::Off;
        self.retransmitted.clear();
        self.linux.reordering = self.linux.reordering.min(core.settings.reordering);
        core.set_state(CaState::Loss);
        self.linux.high_seq = core.view.snd_nxt;
        core.cwr_pending = core.view.ecn;
        self.linux.retransmit_from(core.board.head());
    }
}
