//! Undoing a reduction that turns out to have been spurious.
//!
//! Kernel: `tcp_try_undo_*`, `tcp_undo_cwnd_reduction` (tcp_input.c). RFC 3522 and 4015 (Eifel), RFC 3708 (DSACK).

use super::Linux6;
use crate::sender::core::{Ack, Core};
use dragstrip_cc::{CaState, CongestionControl};

impl Linux6 {
    /// `tcp_init_undo`.
    pub(super) fn init_undo(&mut self, core: &Core) {
        // Retransmissions still out may come back as duplicates of the episode before.
        let out = core.view.retrans_out;
        self.linux.arm_undo(core, (out > 0).then_some(out));
    }

    /// `tcp_may_undo`: every retransmission was a duplicate, or the ACK answers the original.
    fn may_undo(&self, core: &Core) -> bool {
        self.linux.undo.is_some()
            && (self.linux.all_were_duplicates() || self.answers_original(core))
    }

    /// `tcp_packet_delayed` (Eifel, RFC 3522): the echoed timestamp is older than the first retransmission, or there was none
    /// yet. Without SACK the stamp is also forgotten where `high_seq` is reached: then it says nothing.
    fn answers_original(&self, core: &Core) -> bool {
        match (self.linux.retrans_stamp, core.view.stamps.map(|stamps| stamps.ecr)) {
            (Some(first), Some(echo)) => echo < first,
            (Some(_), None) => false,
            (None, _) => {
                core.settings.profile.undoes_before_retransmitting
                    && (core.settings.sack || core.view.snd_una < self.linux.high_seq)
            }
        }
    }

    /// `tcp_retrans_stamp_cleanup`.
    pub(super) fn forget_old_retransmissions(&mut self, core: &mut Core) {
        if !self.any_retransmission_out(core) {
            self.linux.retrans_stamp = None;
        }
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, core: &mut Core, unmark: bool) {
        if unmark {
            self.linux.unmark_lost(core);
        }
        if self.linux.prior_ssthresh > 0 {
            core.window.cwnd = core.cc.undo_cwnd(&core.view, &mut core.window);
            if self.linux.prior_ssthresh > core.window.ssthresh {
                core.window.ssthresh = self.linux.prior_ssthresh;
                core.cwr_pending = false;
            }
        }
        self.linux.note_window_justified(core);
        self.linux.undo = None;
        self.rack.rescan(core.board.head());
    }

    /// `tcp_try_undo_recovery`; whether the state must be kept (no SACK: `snd_una` only equals `high_seq`).
    pub(super) fn try_undo_recovery(&mut self, core: &mut Core) -> bool {
        if self.may_undo(core) {
            self.undo_reduction(core, false);
        } else if self.rack.persist > 0 {
            self.rack.persist -= 1;
        }
        if !core.settings.sack && core.view.snd_una == self.linux.high_seq {
            // Late duplicates must not start a false fast retransmit: wait for one more ACK.
            self.forget_old_retransmissions(core);
            return true;
        }
        self.set_state(core, CaState::Open);
        false
    }

    /// `tcp_try_undo_dsack`.
    pub(super) fn try_undo_dsack(&mut self, core: &mut Core) -> bool {
        if self.linux.all_were_duplicates() {
            self.rack.persist_longer();
            self.undo_reduction(core, false);
            return true;
        }
        false
    }

    /// `tcp_try_undo_partial`: a hole was filled by the original after all.
    pub(super) fn try_undo_partial(&mut self, core: &mut Core, ack: &Ack) -> bool {
        if self.linux.undo.is_some() && self.answers_original(core) {
            self.check_reordering(core, ack.prior_una);
            if core.view.retrans_out > 0 {
                return true;
            }
            self.forget_old_retransmissions(core);
            self.undo_reduction(core, true);
            self.try_keep_open(core);
        }
        false
    }

    /// `tcp_try_undo_loss`.
    pub(super) fn try_undo_loss(&mut self, core: &mut Core, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(core) {
            return false;
        }
        self.undo_reduction(core, true);
        self.linux.timeouts = 0;
        if by_frto || core.settings.sack {
            self.set_state(core, CaState::Open);
        }
        true
    }
}
