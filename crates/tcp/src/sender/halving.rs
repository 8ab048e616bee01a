//! Loss detection and recovery as they were before RACK and PRR: FACK, the rate halved over the ACKs of a round
//! trip, F-RTO in the place of a timeout's first judgement.
//!
//! Kernel: Linux 2.6.27's `tcp_ack`, `tcp_fastretrans_alert`, `tcp_time_to_recover`, `tcp_update_scoreboard`,
//! `tcp_cwnd_down`, `tcp_mark_lost_retrans` (tcp_input.c). Mathis and Mahdavi, "Forward Acknowledgement", SIGCOMM 1996.
//!
//! What decides its throughput under loss:
//! - a lost retransmission shows only when data sent after it was SACKed, and only in Recovery with FACK; otherwise the
//!   timeout must come;
//! - the window never exceeds what is in flight by more than `reordering` packets while anything is dubious
//!   (`tcp_moderate_cwnd`), so undoing a reduction does not give the window back at once;
//! - what is learnt of reordering turns FACK off, and is thrown away at every timeout down to the setting.
//!
//! Not modelled: retransmission of segments not marked lost while nothing new may be sent (forward
//! retransmission).

use super::ack::{Ack, News};
use super::frto::Frto;
use super::recovery::Repair;
use super::scoreboard::Marks;
use super::{Io, Sender};
use crate::segment::{Outbox, Segment};
use dragstrip_cc::{CaState, CongestionControl, Event, Response};
use std::collections::VecDeque;

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    /// Which segment.
    number: u64,
    /// When, to tell it from a later one.
    sent_us: u64,
    /// `snd_nxt` then: data beyond it was sent later.
    snd_nxt: u64,
}

/// What this style of recovery remembers besides [`super::recovery::Recovery`].
#[derive(Clone, Debug)]
pub(super) struct Halving {
    /// Holes below the highest SACK are taken for losses; off once reordering was seen.
    pub fack: bool,
    pub frto: Frto,
    /// Data sent before the timeout that F-RTO judges ends here (`frto_highmark`).
    pub frto_end: Option<u64>,
    /// In the order of their transmission.
    pub retransmitted: VecDeque<Again>,
}

impl Halving {
    pub fn new(fack: bool) -> Self {
        Self { fack, frto: Frto::Off, frto_end: None, retransmitted: VecDeque::new() }
    }

    pub fn note_retransmission(&mut self, number: u64, sent_us: u64, snd_nxt: u64) {
        self.retransmitted.push_back(Again { number, sent_us, snd_nxt });
    }
}

impl Sender {
    /// `tcp_ack` of 2.6.27: growth before loss detection, and only the cumulative ACK makes the window grow.
    pub(super) fn on_ack_halving<O: Outbox>(&mut self, segment: &Segment, io: &mut Io<'_, O>) {
        self.view.prior_in_flight = self.in_flight();
        self.view.max_burst = self.recovery.reordering;
        let prior_packets = self.view.packets_out;
        let prior_highest = self.highest_sack();
        let mut ack = Ack::new(self.view.snd_una, self.view.snd_nxt);
        let repair = if segment.ack < self.view.snd_una {
            if segment.has_sack() && prior_packets > 0 {
                self.sacktag(segment, &mut ack);
                self.view.delivered += u64::from(ack.sack_delivered);
                self.mark_lost_retransmissions();
                if self.view.state == CaState::Open {
                    self.keep_open_halving();
                }
            }
            Repair::None
        } else {
            self.note_blocks(segment, &mut ack);
            self.take_in(segment, &mut ack);
            if prior_packets == 0 {
                Repair::None
            } else {
                if segment.has_sack() {
                    self.mark_lost_retransmissions();
                }
                self.clean_queue(&mut ack, prior_highest);
                if ack.news.has(News::SET_TIMER) {
                    self.set_transmit_timer();
                }
                self.judge(&mut ack, prior_packets - self.view.packets_out)
            }
        };
        if !self.has_cong_control {
            self.update_pacing_rate();
        }
        self.repair(repair, io);
        self.push_pending(io);
    }

    /// F-RTO, growth, and the state machine if the ACK is dubious.
    fn judge(&mut self, ack: &mut Ack, acked: u32) -> Repair {
        let news = ack.news;
        let judging = self.halving.frto != Frto::Off && self.process_frto(news);
        if self.halving.frto_end.is_some_and(|end| end < self.view.snd_una) {
            self.halving.frto_end = None;
        }
        let dubious = !news.has(News::NOT_DUPLICATE)
            || news.any(News::DATA_SACKED.with(News::ECE))
            || self.view.state != CaState::Open;
        let free = !news.has(News::ECE) || self.window.cwnd < self.window.ssthresh;
        if news.has(News::DATA_ACKED) && !judging && (!dubious || (free && !self.in_reduction())) {
            let response = self.cc.cong_avoid(&self.view, &mut self.window, 1);
            self.transmission.validated_at = self.view.now;
            if response == Response::EnterCwr {
                self.enter_cwr_halving(true);
            }
        }
        if dubious { self.alert_halving(ack, acked) } else { Repair::None }
    }

    /// Whether blocks of the ACK reach beyond the episode's end or beyond what F-RTO judges.
    fn note_blocks(&self, segment: &Segment, ack: &mut Ack) {
        for block in segment.sack() {
            let (_, end) = block.range(segment.ack);
            if end > self.recovery.high_seq {
                ack.news.set(News::DATA_LOST);
            }
            if self.halving.frto_end.is_some_and(|mark| end > mark) {
                ack.news.set(News::LATER_SACKED);
            }
        }
    }

    /// FACK holds: with SACK, and no reordering seen.
    #[inline]
    fn is_fack(&self) -> bool {
        self.halving.fack && self.settings.sack
    }

    /// `tcp_fackets_out`: segments from the head up to the highest one SACKed; without SACK, duplicate ACKs and the
    /// hole.
    fn fackets_out(&self) -> u32 {
        if !self.settings.sack {
            return self.view.sacked_out + 1;
        }
        if self.view.sacked_out == 0 {
            return 0;
        }
        (self.board.number_at(self.highest_sack()) - self.board.head()) as u32
    }

    /// `tcp_update_reordering`: reordering of `distance` packets was seen.
    pub(super) fn learn_reordering(&mut self, distance: u32) {
        if distance > self.recovery.reordering {
            // Less than before, when the setting was above the cap.
            self.recovery.reordering = distance.min(self.settings.max_reordering);
            self.halving.fack = false;
        }
    }

    /// `tcp_remove_reno_sacks`: one of the packets was the hole, the others take duplicate ACKs with them.
    pub(super) fn eat_duplicates(&mut self, acked: u32) {
        self.view.sacked_out = self.view.sacked_out.saturating_sub(acked - 1);
        self.limit_duplicates(acked);
    }

    /// `tcp_check_reno_reordering`: more duplicate ACKs than segments that can have caused them.
    fn limit_duplicates(&mut self, acked: u32) {
        let holes = self.view.lost_out.max(1).min(self.view.packets_out);
        if self.view.sacked_out + holes > self.view.packets_out {
            self.view.sacked_out = self.view.packets_out - holes;
            self.learn_reordering(self.view.packets_out + acked);
        }
    }

    /// `tcp_head_timedout`: the head was sent longer ago than the timeout, which is restarted by every ACK.
    fn is_head_timed_out(&self) -> bool {
        self.board.front().is_some_and(|sent| self.is_timed_out(sent.sent_us))
    }

    fn is_timed_out(&self, sent_us: u64) -> bool {
        self.ticks_since(sent_us) > self.timers.rto_ticks
    }

    /// `tcp_time_to_recover`.
    fn is_time_to_recover(&self) -> bool {
        if self.halving.frto != Frto::Off {
            return false;
        }
        if self.view.lost_out > 0 {
            return true;
        }
        let duplicates = if self.is_fack() { self.fackets_out() } else { self.view.sacked_out + 1 };
        if duplicates > self.recovery.reordering || (self.is_fack() && self.is_head_timed_out()) {
            return true;
        }
        // A short window with nothing more to send gets no further duplicates.
        let packets_out = self.view.packets_out;
        packets_out <= self.recovery.reordering
            && self.view.sacked_out >= (packets_out / 2).max(self.settings.reordering)
            && !self.may_send_now()
    }

    /// `tcp_may_send_now`.
    pub(super) fn may_send_now(&self) -> bool {
        let unsent = self.buffer.written - self.view.snd_nxt;
        let room = self.window_end.saturating_sub(self.view.snd_nxt);
        unsent > 0
            && self.in_flight() < self.window.cwnd
            && room >= unsent.min(u64::from(self.view.mss))
    }

    /// `tcp_skb_mark_lost`: a segment with a retransmission in flight stays as it is.
    fn mark_lost_once(&mut self, number: u64) {
        if !self.board.marks(number).any(Marks::SACKED.with(Marks::LOST)) {
            self.mark_lost(number);
        }
    }

    /// `tcp_mark_head_lost`: from the head, as far as `packets` reach, but not beyond the episode. FACK counts every
    /// segment, otherwise those that were SACKed count.
    fn mark_first_lost(&mut self, packets: u32) {
        let mut count = 0;
        for number in self.board.head()..self.board.tail() {
            let sent = self.board.get(number);
            if sent.end_seq() > self.recovery.high_seq {
                break;
            }
            if self.is_fack() || !self.settings.sack || sent.marks.has(Marks::SACKED) {
                count += 1;
            }
            if count > packets {
                break;
            }
            self.mark_lost_once(number);
        }
    }

    /// `tcp_update_scoreboard`, `tcp_timeout_skbs`.
    fn update_scoreboard(&mut self, fast_retransmit: bool) {
        if !self.settings.sack {
            self.mark_first_lost(1);
            let most = self.view.packets_out - self.view.lost_out;
            self.view.sacked_out = self.view.sacked_out.min(most);
            return;
        }
        if self.is_fack() {
            let beyond = self.fackets_out().saturating_sub(self.recovery.reordering);
            self.mark_first_lost(beyond.max(1));
        } else {
            let beyond = self.view.sacked_out.saturating_sub(self.recovery.reordering);
            self.mark_first_lost(beyond.max(u32::from(fast_retransmit)));
        }
        if !self.is_fack() || !self.is_head_timed_out() {
            return;
        }
        for number in self.board.head()..self.board.tail() {
            if !self.is_timed_out(self.board.get(number).sent_us) {
                break;
            }
            self.mark_lost_once(number);
        }
    }

    /// `tcp_mark_lost_retrans`: a retransmission is lost when data sent after it was SACKed.
    fn mark_lost_retransmissions(&mut self) {
        if !self.is_fack() || self.view.state != CaState::Recovery {
            return;
        }
        let received = self.highest_sack();
        while let Some(&Again { number, sent_us, snd_nxt }) = self.halving.retransmitted.front() {
            let live = number >= self.board.head() && {
                let sent = self.board.get(number);
                sent.sent_us == sent_us && sent.marks.has(Marks::RETRANS)
            };
            if live {
                if received <= snd_nxt {
                    break;
                }
                let marks = self.board.marks_mut(number);
                marks.clear(Marks::RETRANS);
                self.view.retrans_out -= 1;
                self.mark_lost_once(number);
                self.transmission.retransmit_from(number);
            }
            self.halving.retransmitted.pop_front();
        }
    }

    /// `tcp_moderate_cwnd`: no burst out of a dubious situation.
    fn moderate_cwnd(&mut self) {
        let most = self.in_flight().saturating_add(self.recovery.reordering);
        self.window.cwnd = self.window.cwnd.min(most);
        self.transmission.validated_at = self.view.now;
    }

    /// `tcp_cwnd_down`: one packet less for every second ACK, and never more than one beyond what is in flight.
    fn halve_rate(&mut self, news: News) {
        let progress = News::DATA_ACKED.with(News::DATA_SACKED).with(News::ADVANCED);
        let duplicate = !self.settings.sack && !news.has(News::NOT_DUPLICATE);
        if !news.any(progress.with(News::DSACKING_ACK)) && !duplicate {
            return;
        }
        let counted = self.window.cwnd_cnt + 1;
        self.window.cwnd_cnt = counted & 1;
        let less = counted >> 1;
        if less > 0 && self.window.cwnd > self.cc.min_cwnd(&self.window) {
            self.window.cwnd = self.window.cwnd.saturating_sub(less);
        }
        self.window.cwnd = self.window.cwnd.min(self.in_flight() + 1);
        self.transmission.validated_at = self.view.now;
    }

    /// `tcp_enter_cwr`.
    pub(super) fn enter_cwr_halving(&mut self, set_ssthresh: bool) {
        self.recovery.prior_ssthresh = 0;
        if !matches!(self.view.state, CaState::Open | CaState::Disorder) {
            return;
        }
        self.recovery.undo_marker = None;
        if set_ssthresh {
            self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
            self.counters.reductions += 1;
        }
        self.window.cwnd = self.window.cwnd.min(self.in_flight() + 1);
        self.window.cwnd_cnt = 0;
        self.recovery.high_seq = self.view.snd_nxt;
        self.transmission.validated_at = self.view.now;
        self.recovery.cwr_pending = self.ecn();
        self.set_state(CaState::Cwr);
    }

    /// `tcp_try_keep_open`.
    fn keep_open_halving(&mut self) {
        let quiet = self.view.sacked_out + self.view.lost_out + self.view.retrans_out == 0
            && self.recovery.undo_marker.is_none();
        let state = if quiet { CaState::Open } else { CaState::Disorder };
        if self.view.state != state {
            self.set_state(state);
            self.recovery.high_seq = self.view.snd_nxt;
        }
    }

    /// `tcp_try_to_open`.
    fn open_halving(&mut self, news: News) {
        if self.halving.frto == Frto::Off && self.view.retrans_out == 0 {
            self.recovery.retrans_stamp = None;
        }
        if news.has(News::ECE) {
            self.enter_cwr_halving(true);
        }
        if self.view.state == CaState::Cwr {
            self.halve_rate(news);
        } else {
            self.keep_open_halving();
            self.moderate_cwnd();
        }
    }

    /// `tcp_may_undo`: nothing retransmitted is outstanding, or the ACK answers data sent before.
    fn may_undo_halving(&self) -> bool {
        let delayed = match (self.recovery.retrans_stamp, self.transmission.echoed_ms) {
            (None, _) => true,
            (Some(first), Some(echo)) => echo < first,
            (Some(_), None) => false,
        };
        self.recovery.undo_marker.is_some()
            && (self.recovery.undo_retrans.unwrap_or(0) == 0 || delayed)
    }

    /// `tcp_undo_cwr`.
    fn undo_cwr(&mut self, with_ssthresh: bool) {
        if self.recovery.prior_ssthresh > 0 {
            // It does not remember the window, only that it was halved.
            self.view.prior_cwnd = self.window.ssthresh << 1;
            self.window.cwnd = self.cc.undo_cwnd(&self.view, &mut self.window);
            if with_ssthresh && self.recovery.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.recovery.prior_ssthresh;
                self.recovery.cwr_pending = false;
            }
        } else {
            self.window.cwnd = self.window.cwnd.max(self.window.ssthresh);
        }
        self.moderate_cwnd();
    }

    /// `tcp_try_undo_recovery`; whether the state must be kept.
    fn undo_recovery_halving(&mut self) -> bool {
        if self.may_undo_halving() {
            self.undo_cwr(true);
            self.recovery.undo_marker = None;
        }
        if !self.settings.sack && self.view.snd_una == self.recovery.high_seq {
            self.moderate_cwnd();
            return true;
        }
        self.set_state(CaState::Open);
        false
    }

    /// `tcp_try_undo_dsack`.
    fn undo_dsack_halving(&mut self) {
        if self.recovery.undo_marker.is_some() && self.recovery.undo_retrans.unwrap_or(0) == 0 {
            self.undo_cwr(true);
            self.recovery.undo_marker = None;
        }
    }

    /// `tcp_try_undo_partial`: whether the next hole is taken for a loss.
    fn undo_partial_halving(&mut self, acked: u32) -> bool {
        let failed = !self.settings.sack || self.fackets_out() > self.recovery.reordering;
        if !self.may_undo_halving() {
            return failed;
        }
        if self.view.retrans_out == 0 {
            self.recovery.retrans_stamp = None;
        }
        self.learn_reordering(self.fackets_out() + acked);
        self.undo_cwr(false);
        false
    }

    /// `tcp_try_undo_loss`.
    fn undo_loss_halving(&mut self) -> bool {
        if !self.may_undo_halving() {
            return false;
        }
        for number in self.board.head()..self.board.tail() {
            self.board.marks_mut(number).clear(Marks::LOST);
        }
        self.view.lost_out = 0;
        self.undo_cwr(true);
        self.recovery.timeouts = 0;
        self.recovery.undo_marker = None;
        if self.settings.sack {
            self.set_state(CaState::Open);
        }
        true
    }

    /// `tcp_complete_cwr`.
    fn complete_cwr(&mut self) {
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.transmission.validated_at = self.view.now;
        self.cc.cwnd_event(&self.view, &mut self.window, Event::CompleteCwr);
    }

    /// `tcp_fastretrans_alert`.
    fn alert_halving(&mut self, ack: &mut Ack, acked: u32) -> Repair {
        let news = ack.news;
        let duplicate = !news.any(News::ADVANCED.with(News::NOT_DUPLICATE));
        let mut lost = duplicate
            || (news.has(News::DATA_SACKED) && self.fackets_out() > self.recovery.reordering);
        if news.has(News::ECE) {
            self.recovery.prior_ssthresh = 0;
        }
        if news.has(News::RENEGING) {
            self.renege();
            self.enter_loss_halving();
            self.recovery.timeouts += 1;
            return Repair::Lost;
        }
        if self.is_fack()
            && news.has(News::DATA_LOST)
            && self.view.snd_una < self.recovery.high_seq
            && self.view.state != CaState::Open
            && self.fackets_out() > self.recovery.reordering
        {
            self.mark_first_lost(self.fackets_out() - self.recovery.reordering);
        }
        if self.view.state == CaState::Open {
            self.recovery.retrans_stamp = None;
        } else if self.view.snd_una >= self.recovery.high_seq && self.episode_ended_halving() {
            return Repair::None;
        }
        let mut entered = false;
        match self.view.state {
            CaState::Recovery => {
                if news.has(News::ADVANCED) {
                    lost = self.undo_partial_halving(acked);
                } else if !self.settings.sack && duplicate {
                    self.add_duplicate();
                }
            }
            CaState::Loss => {
                if news.has(News::DATA_ACKED) {
                    self.recovery.timeouts = 0;
                }
                if !self.settings.sack && news.has(News::ADVANCED) {
                    self.view.sacked_out = 0;
                }
                if !self.undo_loss_halving() {
                    self.moderate_cwnd();
                    return Repair::Lost;
                }
                if self.view.state != CaState::Open || !self.enters_recovery(news, duplicate) {
                    return Repair::None;
                }
                entered = true;
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if !self.enters_recovery(news, duplicate) {
                    return Repair::None;
                }
                entered = true;
            }
        }
        if lost || (self.is_fack() && self.is_head_timed_out()) {
            self.update_scoreboard(entered);
        }
        self.halve_rate(news);
        Repair::Lost
    }

    /// `high_seq` is acknowledged; whether the ACK needs no more attention.
    fn episode_ended_halving(&mut self) -> bool {
        match self.view.state {
            CaState::Open => {}
            CaState::Loss => {
                self.recovery.timeouts = 0;
                return self.undo_recovery_halving();
            }
            CaState::Cwr => {
                if self.view.snd_una != self.recovery.high_seq {
                    self.complete_cwr();
                    self.set_state(CaState::Open);
                }
            }
            CaState::Disorder => {
                self.undo_dsack_halving();
                // With SACK the state is kept until duplicates of all retransmissions may have been reported.
                if self.recovery.undo_marker.is_none()
                    || !self.settings.sack
                    || self.view.snd_una != self.recovery.high_seq
                {
                    self.recovery.undo_marker = None;
                    self.set_state(CaState::Open);
                }
            }
            CaState::Recovery => {
                if !self.settings.sack {
                    self.view.sacked_out = 0;
                }
                if self.undo_recovery_halving() {
                    return true;
                }
                self.complete_cwr();
            }
        }
        false
    }

    /// Before recovery: whether it begins with this ACK.
    fn enters_recovery(&mut self, news: News, duplicate: bool) -> bool {
        if !self.settings.sack {
            if news.has(News::ADVANCED) {
                self.view.sacked_out = 0;
            }
            if duplicate {
                self.add_duplicate();
            }
        }
        if self.view.state == CaState::Disorder {
            self.undo_dsack_halving();
        }
        if !self.is_time_to_recover() {
            self.open_halving(news);
            return false;
        }
        self.recovery.high_seq = self.view.snd_nxt;
        self.recovery.prior_ssthresh = 0;
        self.recovery.undo_marker = Some(self.view.snd_una);
        self.recovery.undo_retrans = Some(self.view.retrans_out);
        if self.view.state < CaState::Cwr {
            if !news.has(News::ECE) {
                self.recovery.prior_ssthresh = self.window.current_ssthresh(self.view.state);
            }
            self.view.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
            self.recovery.cwr_pending = self.ecn();
            self.counters.reductions += 1;
        }
        self.window.cwnd_cnt = 0;
        self.set_state(CaState::Recovery);
        true
    }

    /// `tcp_add_reno_sack`.
    fn add_duplicate(&mut self) {
        self.view.sacked_out += 1;
        self.limit_duplicates(0);
    }
}
