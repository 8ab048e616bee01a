//! Undoing a reduction that turns out to have been spurious.
//!
//! Kernel: Linux 2.6.27's `tcp_try_undo_*`, `tcp_undo_cwr` (tcp_input.c).

use super::Linux26;
use crate::sender::core::Core;
use dragstrip_cc::{CaState, CongestionControl};

impl Linux26 {
    /// `tcp_may_undo`: nothing retransmitted is outstanding, or the ACK answers data sent before.
    fn may_undo(&self, core: &Core) -> bool {
        let delayed = match (self.linux.retrans_stamp, core.view.stamps.map(|stamps| stamps.ecr)) {
            (None, _) => true,
            (Some(first), Some(echo)) => echo < first,
            (Some(_), None) => false,
        };
        self.linux.undo.is_some() && (self.linux.all_were_duplicates() || delayed)
    }

    /// `tcp_undo_cwr`.
    fn undo_cwr(&mut self, core: &mut Core, with_ssthresh: bool) {
        if self.linux.prior_ssthresh > 0 {
            // It does not remember the window, only that it was halved.
            core.view.prior_cwnd = core.window.ssthresh << 1;
            core.window.cwnd = core.cc.undo_cwnd(&core.view, &mut core.window);
            if with_ssthresh && self.linux.prior_ssthresh > core.window.ssthresh {
                core.window.ssthresh = self.linux.prior_ssthresh;
                core.cwr_pending = false;
            }
        } else {
            core.window.cwnd = core.window.cwnd.max(core.window.ssthresh);
        }
        self.moderate_cwnd(core);
    }

    /// `tcp_try_undo_recovery`; whether the state must be kept.
    pub(super) fn try_undo_recovery(&mut self, core: &mut Core) -> bool {
        if self.may_undo(core) {
            self.undo_cwr(core, true);
            self.linux.undo = None;
        }
        if !core.settings.sack && core.view.snd_una == self.linux.high_seq {
            self.moderate_cwnd(core);
            return true;
        }
        core.set_state(CaState::Open);
        false
    }

    /// `tcp_try_undo_dsack`.
    pub(super) fn try_undo_dsack(&mut self, core: &mut Core) {
        if self.linux.all_were_duplicates() {
            self.undo_cwr(core, true);
            self.linux.undo = None;
        }
    }

    /// `tcp_try_undo_partial`: whether the next hole is taken for a loss.
    pub(super) fn try_undo_partial(&mut self, core: &mut Core, acked: u32) -> bool {
        let failed = !core.settings.sack || self.fackets_out(core) > self.linux.reordering;
        if !self.may_undo(core) {
            return failed;
        }
        if core.view.retrans_out == 0 {
            self.linux.retrans_stamp = None;
        }
        self.update_reordering(core, self.fackets_out(core) + acked);
        self.undo_cwr(core, false);
        false
    }

    /// `tcp_try_undo_loss`.
    pub(super) fn try_undo_loss(&mut self, core: &mut Core) -> bool {
        if !self.may_undo(core) {
            return false;
        }
        self.linux.unmark_lost(core);
        self.undo_cwr(core, true);
        self.linux.timeouts = 0;
        self.linux.undo = None;
        if core.settings.sack {
            core.set_state(CaState::Open);
        }
        true
    }
}
