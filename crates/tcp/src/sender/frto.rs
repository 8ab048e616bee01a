//! A timeout before 3.10: F-RTO judges it before anything is marked lost; otherwise everything is lost at once.
//!
//! Kernel: Linux 2.6.27's `tcp_enter_frto`, `tcp_process_frto`, `tcp_enter_frto_loss`, `tcp_enter_loss` (tcp_input.c). RFC 4138,
//! with SACK its appendix B.

use super::Sender;
use super::ack::News;
use super::scoreboard::Marks;
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

impl Sender {
    /// The retransmission timer went off: F-RTO if it may be used, otherwise everything is lost.
    pub(super) fn time_out_halving(&mut self) {
        if self.may_use_frto() {
            self.enter_frto();
        } else {
            self.enter_loss_halving();
        }
    }

    /// `tcp_use_frto`: with SACK always; without, when nothing but the head was retransmitted.
    fn may_use_frto(&self) -> bool {
        if !self.settings.frto || self.settings.sack {
            return self.settings.frto;
        }
        let second = self.board.head() + 1;
        self.view.retrans_out <= 1
            && (second >= self.board.tail()
                || !self.board.marks(second).any(Marks::RETRANS.with(Marks::EVER_RETRANS)))
    }

    /// Whether this timeout begins an episode, in which the window is to be reduced.
    fn is_new_episode(&self) -> bool {
        let undisturbed = matches!(self.view.state, CaState::Open | CaState::Disorder);
        (undisturbed && self.halving.frto == Frto::Off)
            || self.view.snd_una == self.recovery.high_seq
            || ((self.view.state == CaState::Loss || self.halving.frto != Frto::Off)
                && self.recovery.timeouts == 0)
    }

    /// `tcp_enter_frto`: the timeout may have been spurious; nothing is marked lost yet.
    fn enter_frto(&mut self) {
        if self.is_new_episode() {
            self.recovery.prior_ssthresh = self.window.current_ssthresh(self.view.state);
            self.view.prior_cwnd = self.window.cwnd;
            let cwnd = self.window.cwnd;
            if self.halving.frto != Frto::Off {
                // The window has not been reduced for the last timeout yet.
                self.window.cwnd = 2;
            }
            self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
            self.window.cwnd = cwnd;
            self.counters.reductions += 1;
        }
        self.recovery.undo_marker = Some(self.view.snd_una);
        self.recovery.undo_retrans = Some(0);
        let head = self.board.head();
        let marks = self.board.marks_mut(head);
        if marks.has(Marks::EVER_RETRANS) {
            self.recovery.undo_marker = None;
        }
        if marks.has(Marks::RETRANS) {
            marks.clear(Marks::RETRANS);
            self.view.retrans_out -= 1;
        }
        self.window.cwnd = self.window.cwnd.min(self.in_flight() + 1);
        let repairing = self.halving.frto != Frto::Off
            || matches!(self.view.state, CaState::Recovery | CaState::Loss);
        let earlier = self.settings.sack && repairing && self.recovery.high_seq > self.view.snd_una;
        self.halving.frto_end =
            Some(if earlier { self.recovery.high_seq } else { self.view.snd_nxt });
        self.set_state(CaState::Disorder);
        self.recovery.high_seq = self.view.snd_nxt;
        self.halving.frto = Frto::Retransmitted;
    }

    /// `tcp_process_frto` (RFC 4138): whether the ACK is dealt with as far as growth goes.
    pub(super) fn process_frto(&mut self, news: News) -> bool {
        let first = self.halving.frto == Frto::Retransmitted;
        if news.has(News::DATA_ACKED) {
            self.recovery.timeouts = 0;
        }
        if news.has(News::NONHEAD_RETRANS_ACKED) || (!first && news.has(News::RETRANS_ACKED)) {
            self.recovery.undo_marker = None;
        }
        if self.halving.frto_end.is_none_or(|end| self.view.snd_una >= end) {
            self.enter_frto_loss(if first { 2 } else { 3 }, news);
            return true;
        }
        let forward = news.any(News::DATA_ACKED.with(News::DATA_SACKED));
        let not_duplicate = news.has(News::NOT_DUPLICATE);
        if self.settings.sack {
            if first && !news.has(News::DATA_ACKED) {
                // Nothing new may be sent yet.
                self.window.cwnd = self.window.cwnd.min(self.in_flight());
                return true;
            }
            let original = news.has(News::FRTO_ORIG_SACKED) && !news.has(News::LATER_SACKED);
            if !first && (!forward || (news.has(News::DATA_SACKED) && !original)) {
                if forward || !not_duplicate {
                    self.enter_frto_loss(3, news);
                }
                return true;
            }
        } else {
            if !forward && !news.has(News::ADVANCED) && not_duplicate {
                return true;
            }
            if !news.has(News::DATA_ACKED) {
                self.enter_frto_loss(if first { 0 } else { 3 }, news);
                return true;
            }
        }
        if first {
            self.window.cwnd = self.in_flight() + 2;
            self.halving.frto = Frto::Probing;
            if !self.may_send_now() {
                self.enter_frto_loss(2, news);
            }
            return true;
        }
        // Spurious: the rate is halved nevertheless (`tcp_frto_response` 0).
        self.enter_cwr_halving(false);
        self.halving.frto = Frto::Off;
        self.recovery.undo_marker = None;
        false
    }

    /// `tcp_enter_frto_loss`: the timeout was right; `allowed` segments may go beyond what is in flight.
    fn enter_frto_loss(&mut self, allowed: u32, news: News) {
        self.view.lost_out = 0;
        self.view.retrans_out = 0;
        if !self.settings.sack {
            self.view.sacked_out = 0;
        }
        // The head's retransmission counts only while no ACK has come.
        let mut waiting = self.halving.frto == Frto::Retransmitted && !news.has(News::DATA_ACKED);
        for number in self.board.head()..self.board.tail() {
            let marks = self.board.marks_mut(number);
            marks.clear(Marks::LOST);
            if waiting {
                if marks.has(Marks::RETRANS) {
                    self.view.retrans_out += 1;
                }
                waiting = false;
            } else {
                if marks.has(Marks::EVER_RETRANS) {
                    self.recovery.undo_marker = None;
                }
                marks.clear(Marks::RETRANS);
            }
            if !marks.has(Marks::SACKED) {
                marks.set(Marks::LOST);
                self.view.lost_out += 1;
                self.view.lost += 1;
            }
        }
        self.begin_loss(self.in_flight() + allowed);
    }

    /// `tcp_enter_loss`: everything that was not SACKed is lost.
    pub(super) fn enter_loss_halving(&mut self) {
        if self.is_new_episode() {
            self.recovery.prior_ssthresh = self.window.current_ssthresh(self.view.state);
            self.view.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
            self.cc.cwnd_event(&self.view, &mut self.window, Event::Loss);
            self.counters.reductions += 1;
        }
        self.view.retrans_out = 0;
        self.view.lost_out = 0;
        if !self.settings.sack {
            self.view.sacked_out = 0;
        }
        self.recovery.undo_marker = Some(self.view.snd_una);
        self.recovery.undo_retrans = Some(0);
        for number in self.board.head()..self.board.tail() {
            let marks = self.board.marks_mut(number);
            if marks.has(Marks::EVER_RETRANS) {
                self.recovery.undo_marker = None;
            }
            marks.clear(Marks::LOST.with(Marks::RETRANS));
            if !marks.has(Marks::SACKED) {
                marks.set(Marks::LOST);
                self.view.lost_out += 1;
                self.view.lost += 1;
            }
        }
        self.begin_loss(1);
    }

    /// What both ways into Loss share: what was learnt of reordering is thrown away down to the setting, as an
    /// unsigned number.
    fn begin_loss(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd;
        self.window.cwnd_cnt = 0;
        self.transmission.validated_at = self.view.now;
        self.halving.frto = Frto::Off;
        self.halving.retransmitted.clear();
        self.recovery.reordering = self.recovery.reordering.min(self.settings.reordering);
        self.set_state(CaState::Loss);
        self.recovery.high_seq = self.view.snd_nxt;
        self.recovery.cwr_pending = self.ecn();
        self.transmission.retransmit_from(self.board.head());
    }
}
