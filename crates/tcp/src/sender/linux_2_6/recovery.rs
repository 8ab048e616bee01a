//! The recovery state machine, and the rate halved over the ACKs of a round trip.
//!
//! Kernel: Linux 2.6.27's `tcp_fastretrans_alert`, `tcp_enter_cwr`, `tcp_cwnd_down`, `tcp_moderate_cwnd` (tcp_input.c).

use super::Linux26;
use super::frto::Frto;
use crate::sender::core::{Ack, AckFlags, Core};
use dragstrip_cc::{CaState, CongestionControl, Event};

impl Linux26 {
    /// `tcp_fastretrans_alert`. Whether lost segments are to be retransmitted.
    pub(super) fn alert(&mut self, core: &mut Core, ack: &mut Ack, acked: u32) -> bool {
        let flags = ack.flags;
        let duplicate = !flags.any(AckFlags::ADVANCED.with(AckFlags::NOT_DUPLICATE));
        let mut retransmits = duplicate
            || (flags.has(AckFlags::DATA_SACKED) && self.fackets_out(core) > self.linux.reordering);
        if flags.has(AckFlags::ECE) {
            self.linux.prior_ssthresh = 0;
        }
        if flags.has(AckFlags::RENEGING) {
            core.forget_sacks();
            self.enter_loss(core);
            self.linux.timeouts += 1;
            return true;
        }
        if self.is_fack(core)
            && flags.has(AckFlags::DATA_LOST)
            && core.view.snd_una < self.linux.high_seq
            && core.view.state != CaState::Open
            && self.fackets_out(core) > self.linux.reordering
        {
            self.mark_head_lost(core, self.fackets_out(core) - self.linux.reordering);
        }
        if core.view.state == CaState::Open {
            self.linux.retrans_stamp = None;
        } else if core.view.snd_una >= self.linux.high_seq && self.episode_ended(core) {
            return false;
        }
        let mut entered = false;
        match core.view.state {
            CaState::Recovery => {
                if flags.has(AckFlags::ADVANCED) {
                    retransmits = self.try_undo_partial(core, acked);
                } else if !core.settings.sack && duplicate {
                    self.add_reno_sack(core);
                }
            }
            CaState::Loss => {
                if flags.has(AckFlags::DATA_ACKED) {
                    self.linux.timeouts = 0;
                }
                if !core.settings.sack && flags.has(AckFlags::ADVANCED) {
                    core.view.sacked_out = 0;
                }
                if !self.try_undo_loss(core) {
                    self.moderate_cwnd(core);
                    return true;
                }
                if core.view.state != CaState::Open || !self.enters_recovery(core, flags, duplicate)
                {
                    return false;
                }
                entered = true;
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if !self.enters_recovery(core, flags, duplicate) {
                    return false;
                }
                entered = true;
            }
        }
        if retransmits || (self.is_fack(core) && self.is_head_timed_out(core)) {
            self.update_scoreboard(core, entered);
        }
        self.cwnd_down(core, flags);
        true
    }

    /// `high_seq` is acknowledged; whether the ACK needs no more attention.
    fn episode_ended(&mut self, core: &mut Core) -> bool {
        match core.view.state {
            CaState::Open => {}
            CaState::Loss => {
                self.linux.timeouts = 0;
                return self.try_undo_recovery(core);
            }
            CaState::Cwr => {
                if core.view.snd_una != self.linux.high_seq {
                    self.complete_cwr(core);
                    core.set_state(CaState::Open);
                }
            }
            CaState::Disorder => {
                self.try_undo_dsack(core);
                // With SACK the state is kept until duplicates of all retransmissions may have been reported.
                if self.linux.undo.is_none()
                    || !core.settings.sack
                    || core.view.snd_una != self.linux.high_seq
                {
                    self.linux.undo = None;
                    core.set_state(CaState::Open);
                }
            }
            CaState::Recovery => {
                if !core.settings.sack {
                    core.view.sacked_out = 0;
                }
                if self.try_undo_recovery(core) {
                    return true;
                }
                self.complete_cwr(core);
            }
        }
        false
    }

    /// Before recovery: whether it begins with this ACK.
    fn enters_recovery(&mut self, core: &mut Core, flags: AckFlags, duplicate: bool) -> bool {
        if !core.settings.sack {
            if flags.has(AckFlags::ADVANCED) {
                core.view.sacked_out = 0;
            }
            if duplicate {
                self.add_reno_sack(core);
            }
        }
        if core.view.state == CaState::Disorder {
            self.try_undo_dsack(core);
        }
        if !self.time_to_recover(core) {
            self.try_to_open(core, flags);
            return false;
        }
        self.linux.high_seq = core.view.snd_nxt;
        self.linux.prior_ssthresh = 0;
        self.linux.arm_undo(core, Some(core.view.retrans_out));
        if core.view.state < CaState::Cwr {
            if !flags.has(AckFlags::ECE) {
                self.linux.prior_ssthresh = core.window.current_ssthresh(core.view.state);
            }
            core.view.prior_cwnd = core.window.cwnd;
            core.reduce_threshold();
            core.cwr_pending = core.view.ecn;
        }
        core.window.cwnd_cnt = 0;
        core.set_state(CaState::Recovery);
        true
    }

    /// `tcp_enter_cwr`.
    pub(super) fn enter_cwr(&mut self, core: &mut Core, set_ssthresh: bool) {
        self.linux.prior_ssthresh = 0;
        if !matches!(core.view.state, CaState::Open | CaState::Disorder) {
            return;
        }
        self.linux.undo = None;
        if set_ssthresh {
            core.reduce_threshold();
        }
        core.window.cwnd = core.window.cwnd.min(core.in_flight() + 1);
        core.window.cwnd_cnt = 0;
        self.linux.high_seq = core.view.snd_nxt;
        self.linux.note_window_justified(core);
        core.cwr_pending = core.view.ecn;
        core.set_state(CaState::Cwr);
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, core: &mut Core, flags: AckFlags) {
        if self.frto == Frto::Off && core.view.retrans_out == 0 {
            self.linux.retrans_stamp = None;
        }
        if flags.has(AckFlags::ECE) {
            self.enter_cwr(core, true);
        }
        if core.view.state == CaState::Cwr {
            self.cwnd_down(core, flags);
        } else {
            self.try_keep_open(core);
            self.moderate_cwnd(core);
        }
    }

    /// `tcp_try_keep_open`.
    pub(super) fn try_keep_open(&mut self, core: &mut Core) {
        let quiet = core.view.sacked_out + core.view.lost_out + core.view.retrans_out == 0
            && self.linux.undo.is_none();
        let state = if quiet { CaState::Open } else { CaState::Disorder };
        if core.view.state != state {
            core.set_state(state);
            self.linux.high_seq = core.view.snd_nxt;
        }
    }

    /// `tcp_cwnd_down`: one packet less for every second ACK, and never more than one beyond what is in flight.
    fn cwnd_down(&mut self, core: &mut Core, flags: AckFlags) {
        let progress = AckFlags::DATA_ACKED.with(AckFlags::DATA_SACKED).with(AckFlags::ADVANCED);
        let duplicate = !core.settings.sack && !flags.has(AckFlags::NOT_DUPLICATE);
        if !flags.any(progress.with(AckFlags::DSACKING_ACK)) && !duplicate {
            return;
        }
        let ack_count = core.window.cwnd_cnt + 1;
        core.window.cwnd_cnt = ack_count & 1;
        let less = ack_count >> 1;
        if less > 0 && core.window.cwnd > core.cc.min_cwnd(&core.window) {
            core.window.cwnd = core.window.cwnd.saturating_sub(less);
        }
        core.window.cwnd = core.window.cwnd.min(core.in_flight() + 1);
        self.linux.note_window_justified(core);
    }

    /// `tcp_moderate_cwnd`: no burst out of a dubious situation.
    pub(super) fn moderate_cwnd(&mut self, core: &mut Core) {
        let most = core.in_flight().saturating_add(self.linux.reordering);
        core.window.cwnd = core.window.cwnd.min(most);
        self.linux.note_window_justified(core);
    }

    /// `tcp_complete_cwr`.
    fn complete_cwr(&mut self, core: &mut Core) {
        core.window.cwnd = core.window.cwnd.min(core.window.ssthresh);
        self.linux.note_window_justified(core);
        core.cc.cwnd_event(&core.view, &mut core.window, Event::CompleteCwr);
    }
}
