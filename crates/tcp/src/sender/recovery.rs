//! The recovery state machine: entering and leaving CWR, Recovery and Loss, the reduction over one
//! round trip, and taking a reduction back.
//!
//! Kernel: `tcp_fastretrans_alert`, `tcp_enter_*`, `tcp_cwnd_reduction`, `tcp_try_undo_*`
//! (tcp_input.c). RFC 6937bis (PRR), RFC 5682 (F-RTO), RFC 4015 and 3708 (undo).
//!
//! ```text
//!          SACK or duplicate ACK            something is lost
//!   Open ◀─────────────────────▶ Disorder ───────────────────▶ Recovery
//!     │  ▲                          │                             │ ▲
//!     │  └── high_seq passed ─ CWR ◀┘ ECN echo     high_seq acked │ │ lost again after undo
//!     ▼                                                           ▼ │
//!   timeout from any state ──▶ Loss ── everything acked or spurious ──▶ Open
//! ```

use super::ack::{Ack, News};
use super::scoreboard::Marks;
use super::timers::Pending;
use super::transmit::Push;
use super::{Io, Sender};
use crate::segment::Outbox;
use dragstrip_cc::{CaState, CongestionControl, Event, Window};
use dragstrip_units::Duration;

/// What a reduction in progress needs to remember.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    /// The episode ends when this byte is acknowledged.
    pub high_seq: u64,
    /// `snd_una` when the episode began, while it can still be undone.
    pub undo_marker: Option<u64>,
    /// Retransmissions of the episode not yet reported as duplicates; `None` before the first.
    pub undo_retrans: Option<u32>,
    /// Threshold to go back to on undo; 0: none (an ECN echo was seen).
    pub prior_ssthresh: u32,
    prr_delivered: u32,
    pub prr_out: u32,
    /// Duplicate-ACK threshold, raised when reordering is seen.
    pub reordering: u32,
    /// Reordering events seen (`reord_seen`).
    pub reordering_seen: u32,
    /// Timestamp (ms) of the episode's first retransmission (`retrans_stamp`).
    pub retrans_stamp: Option<u32>,
    /// F-RTO is judging a timeout.
    frto: bool,
    /// Timeouts since `snd_una` last moved (`icsk_retransmits`).
    pub timeouts: u32,
    /// CWR is to be set on the next new segment.
    pub cwr_pending: bool,
}

impl Recovery {
    pub fn new(reordering: u32) -> Self {
        Self {
            high_seq: 0,
            undo_marker: None,
            undo_retrans: None,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            reordering,
            reordering_seen: 0,
            retrans_stamp: None,
            frto: false,
            timeouts: 0,
            cwr_pending: false,
        }
    }

    /// `segments` retransmissions of this episode were reported as duplicates.
    pub fn retransmission_was_spurious(&mut self, segments: u32) {
        if let Some(left) = &mut self.undo_retrans {
            *left = left.saturating_sub(segments);
        }
    }

    /// Segments were retransmitted (end of `tcp_retransmit_skb`).
    pub fn note_retransmission(&mut self, stamp_ms: u32, segments: u32) {
        self.retrans_stamp.get_or_insert(stamp_ms);
        *self.undo_retrans.get_or_insert(0) += segments;
    }
}

/// What to send after an ACK (`REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing special.
    None,
    /// Lost segments.
    Lost,
    /// New data first: F-RTO wants to see it acknowledged.
    New,
}

impl Sender {
    /// `tcp_fastretrans_alert`: called for every ACK that is not plain progress in Open.
    pub(super) fn alert(&mut self, ack: &mut Ack, duplicate: bool) -> Repair {
        if ack.news.has(News::ECE) {
            self.recovery.prior_ssthresh = 0;
        }
        if ack.news.has(News::RENEGING.with(News::ADVANCED)) {
            self.suspect_reneging();
            ack.news.clear(News::SET_TIMER);
            return Repair::None;
        }
        if self.view.state == CaState::Open {
            self.recovery.retrans_stamp = None;
        } else if self.view.snd_una >= self.recovery.high_seq && self.episode_ended() {
            return Repair::None;
        }
        match self.view.state {
            CaState::Recovery => self.alert_in_recovery(ack, duplicate),
            CaState::Loss => self.alert_in_loss(ack, duplicate),
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                self.alert_before_recovery(ack, duplicate)
            }
        }
    }

    /// Step D: `high_seq` is acknowledged. Whether the ACK needs no more attention.
    fn episode_ended(&mut self) -> bool {
        match self.view.state {
            // RFC 3168 wants a full window to pass, hence strictly beyond high_seq.
            CaState::Cwr => {
                if self.view.snd_una != self.recovery.high_seq {
                    self.end_reduction();
                    self.set_state(CaState::Open);
                }
            }
            CaState::Recovery => {
                if !self.settings.sack {
                    self.view.sacked_out = 0;
                }
                if self.try_undo_recovery() {
                    return true;
                }
                self.end_reduction();
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {}
        }
        false
    }

    fn alert_in_recovery(&mut self, ack: &mut Ack, duplicate: bool) -> Repair {
        if !ack.news.has(News::ADVANCED) {
            if !self.settings.sack {
                self.add_reno_sack(ack, duplicate);
            }
        } else if self.try_undo_partial(ack) {
            return Repair::None;
        }
        if self.try_undo_dsack() {
            self.try_to_open(ack);
        }
        self.identify_loss(ack);
        if self.view.state != CaState::Recovery {
            if self.view.lost_out == 0 {
                return Repair::None;
            }
            self.enter_recovery(ack.news.has(News::ECE));
        }
        Repair::Lost
    }

    fn alert_in_loss(&mut self, ack: &mut Ack, duplicate: bool) -> Repair {
        let repair = self.process_loss(ack, duplicate);
        self.identify_loss(ack);
        if self.view.state != CaState::Open && !ack.news.has(News::LOST_RETRANS) {
            return repair;
        }
        self.alert_before_recovery(ack, duplicate)
    }

    fn alert_before_recovery(&mut self, ack: &mut Ack, duplicate: bool) -> Repair {
        if !self.settings.sack {
            if ack.news.has(News::ADVANCED) {
                self.view.sacked_out = 0;
            }
            self.add_reno_sack(ack, duplicate);
        }
        if matches!(self.view.state, CaState::Open | CaState::Disorder) {
            self.try_undo_dsack();
        }
        self.identify_loss(ack);
        if self.view.lost_out == 0 {
            self.try_to_open(ack);
            return Repair::None;
        }
        self.enter_recovery(ack.news.has(News::ECE));
        Repair::Lost
    }

    /// `tcp_identify_packet_loss`.
    fn identify_loss(&mut self, ack: &mut Ack) {
        if self.board.is_empty() {
            return;
        }
        if !self.settings.sack {
            self.newreno_mark_lost(ack.news.has(News::ADVANCED));
        } else if self.settings.rack {
            let retrans_out = self.view.retrans_out;
            if self.rack_mark_lost() {
                ack.news.clear(News::SET_TIMER);
            }
            if retrans_out > self.view.retrans_out {
                ack.news.set(News::LOST_RETRANS);
            }
        } else if self.view.sacked_out >= self.recovery.reordering {
            self.mark_head_lost();
        }
    }

    /// RFC 6675 without RACK (`tcp_mark_head_lost`): everything more than `reordering` SACKed segments
    /// below the highest SACK.
    fn mark_head_lost(&mut self) {
        let mut above = self.view.sacked_out;
        for number in self.board.head()..self.board.tail() {
            if above < self.recovery.reordering {
                break;
            }
            let marks = self.board.marks(number);
            if marks.has(Marks::SACKED) {
                above -= 1;
            } else if !marks.has(Marks::LOST) {
                self.mark_lost(number);
            }
        }
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, ack: &Ack) {
        self.forget_old_retransmissions();
        if ack.news.has(News::ECE) {
            self.enter_cwr();
        }
        if self.view.state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// `tcp_try_keep_open`.
    pub(super) fn try_keep_open(&mut self) {
        let state =
            if self.view.sacked_out + self.view.lost_out > 0 || self.any_retransmission_out() {
                CaState::Disorder
            } else {
                CaState::Open
            };
        if self.view.state != state {
            self.set_state(state);
            self.recovery.high_seq = self.view.snd_nxt;
        }
    }

    /// `tcp_any_retrans_done`.
    fn any_retransmission_out(&self) -> bool {
        self.view.retrans_out > 0
            || self.board.front().is_some_and(|sent| sent.marks.has(Marks::EVER_RETRANS))
    }

    pub(super) fn set_state(&mut self, state: CaState) {
        self.cc.set_state(&self.view, &mut self.window, state);
        self.view.state = state;
    }

    /// `tcp_enter_cwr`: reduce without anything lost (ECN echo, local drop, the algorithm's wish).
    pub(super) fn enter_cwr(&mut self) {
        self.recovery.prior_ssthresh = 0;
        if matches!(self.view.state, CaState::Open | CaState::Disorder) {
            self.recovery.undo_marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, ece: bool) {
        if self.settings.profile.undoes_before_retransmitting {
            self.forget_old_retransmissions();
        }
        self.recovery.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_reduction() {
            if !ece {
                self.recovery.prior_ssthresh = self.window.current_ssthresh(self.view.state);
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// `tcp_init_undo`.
    fn init_undo(&mut self) {
        self.recovery.undo_marker = Some(self.view.snd_una);
        // Retransmissions still out may come back as duplicates of the episode before.
        self.recovery.undo_retrans =
            if self.view.retrans_out > 0 { Some(self.view.retrans_out) } else { None };
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn init_reduction(&mut self) {
        self.recovery.high_seq = self.view.snd_nxt;
        self.timers.forget_probe();
        self.window.cwnd_cnt = 0;
        self.view.prior_cwnd = self.window.cwnd;
        self.recovery.prr_delivered = 0;
        self.recovery.prr_out = 0;
        self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
        self.recovery.cwr_pending = self.ecn();
        self.counters.reductions += 1;
    }

    /// `tcp_cwnd_reduction`: proportional rate reduction (RFC 6937bis, Linux 6.1's form).
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        if delivered == 0 || self.view.prior_cwnd == 0 {
            return;
        }
        self.recovery.prr_delivered += delivered;
        let in_flight = i64::from(self.in_flight());
        let room = i64::from(self.window.ssthresh) - in_flight;
        let prr_out = i64::from(self.recovery.prr_out);
        let prr_delivered = i64::from(self.recovery.prr_delivered);
        let allowed = if room < 0 {
            let prior = i64::from(self.view.prior_cwnd);
            (i64::from(self.window.ssthresh) * prr_delivered + prior - 1) / prior - prr_out
        } else {
            let mut allowed = (prr_delivered - prr_out).max(i64::from(delivered));
            if advanced && newly_lost == 0 {
                allowed += 1;
            }
            allowed.min(room)
        };
        // The first retransmission of an episode goes out whatever the arithmetic says.
        let allowed = allowed.max(i64::from(prr_out == 0));
        self.window.cwnd = (in_flight + allowed).max(1) as u32;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(super) fn end_reduction(&mut self) {
        if self.has_cong_control {
            return;
        }
        if self.window.ssthresh < Window::INFINITE
            && (self.view.state == CaState::Cwr || self.recovery.undo_marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
            self.transmission.validated_at = self.view.now;
        }
        self.cc.cwnd_event(&self.view, &mut self.window, Event::CompleteCwr);
    }

    /// `tcp_may_undo`: every retransmission was a duplicate, or the ACK answers the original.
    fn may_undo(&self) -> bool {
        self.recovery.undo_marker.is_some()
            && (self.recovery.undo_retrans == Some(0) || self.answers_original())
    }

    /// `tcp_packet_delayed` (Eifel, RFC 3522): the echoed timestamp is older than the first retransmission, or there was none
    /// yet. Without SACK the stamp is also forgotten where `high_seq` is reached: then it says nothing.
    fn answers_original(&self) -> bool {
        match (self.recovery.retrans_stamp, self.transmission.echoed_ms) {
            (Some(first), Some(echo)) => echo < first,
            (Some(_), None) => false,
            (None, _) => {
                self.settings.profile.undoes_before_retransmitting
                    && (self.settings.sack || self.view.snd_una < self.recovery.high_seq)
            }
        }
    }

    /// `tcp_retrans_stamp_cleanup`.
    fn forget_old_retransmissions(&mut self) {
        if !self.any_retransmission_out() {
            self.recovery.retrans_stamp = None;
        }
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            for number in self.board.head()..self.board.tail() {
                self.board.marks_mut(number).clear(Marks::LOST);
            }
            self.view.lost_out = 0;
            self.transmission.retransmit_from(self.board.tail());
        }
        if self.recovery.prior_ssthresh > 0 {
            self.window.cwnd = self.cc.undo_cwnd(&self.view, &mut self.window);
            if self.recovery.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.recovery.prior_ssthresh;
                self.recovery.cwr_pending = false;
            }
        }
        self.transmission.validated_at = self.view.now;
        self.recovery.undo_marker = None;
        self.rack.rescan(self.board.head());
    }

    /// `tcp_try_undo_recovery`; whether the state must be kept (no SACK: `snd_una` only equals `high_seq`).
    fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_reduction(false);
        } else if self.rack.persist > 0 {
            self.rack.persist -= 1;
        }
        if !self.settings.sack && self.view.snd_una == self.recovery.high_seq {
            // Late duplicates must not start a false fast retransmit: wait for one more ACK.
            self.forget_old_retransmissions();
            return true;
        }
        self.set_state(CaState::Open);
        false
    }

    /// `tcp_try_undo_dsack`.
    fn try_undo_dsack(&mut self) -> bool {
        if self.recovery.undo_marker.is_some() && self.recovery.undo_retrans == Some(0) {
            self.rack.persist_longer();
            self.undo_reduction(false);
            return true;
        }
        false
    }

    /// `tcp_try_undo_partial`: a hole was filled by the original after all.
    fn try_undo_partial(&mut self, ack: &Ack) -> bool {
        if self.recovery.undo_marker.is_some() && self.answers_original() {
            self.check_reordering(ack.prior_una);
            if self.view.retrans_out > 0 {
                return true;
            }
            self.forget_old_retransmissions();
            self.undo_reduction(true);
            self.try_keep_open();
        }
        false
    }

    /// `tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.recovery.timeouts = 0;
        if by_frto || self.settings.sack {
            self.set_state(CaState::Open);
        }
        true
    }

    /// `tcp_process_loss`, with F-RTO's judgement (RFC 5682 §3.1).
    fn process_loss(&mut self, ack: &mut Ack, duplicate: bool) -> Repair {
        let recovered = self.view.snd_una >= self.recovery.high_seq;
        if ack.news.has(News::ADVANCED) && self.try_undo_loss(false) {
            return Repair::None;
        }
        if self.recovery.frto {
            // Step 3.b: data sent before the timeout and never retransmitted arrives: spurious.
            if ack.news.has(News::ORIG_SACK_ACKED) && self.try_undo_loss(true) {
                return Repair::None;
            }
            if self.view.snd_nxt > self.recovery.high_seq {
                if ack.news.has(News::DATA_SACKED) || duplicate {
                    self.recovery.frto = false;
                }
            } else if ack.news.has(News::ADVANCED) && !recovered {
                self.recovery.high_seq = self.view.snd_nxt;
                // Step 2.b: try new data.
                if self.buffer.written > self.view.snd_nxt && self.window_end > self.view.snd_nxt {
                    return Repair::New;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return Repair::None;
        }
        if !self.settings.sack {
            if self.view.snd_nxt > self.recovery.high_seq && duplicate {
                self.add_reno_sack(ack, duplicate);
            } else if ack.news.has(News::ADVANCED) {
                self.view.sacked_out = 0;
            }
        }
        Repair::Lost
    }

    /// `tcp_enter_loss`: the retransmission timer went off.
    pub(super) fn enter_loss(&mut self) {
        let new_recovery = self.view.state < CaState::Recovery;
        self.timeout_mark_lost();
        let disordered = matches!(self.view.state, CaState::Open | CaState::Disorder);
        if disordered
            || self.recovery.high_seq <= self.view.snd_una
            || (self.view.state == CaState::Loss && self.recovery.timeouts == 0)
        {
            self.recovery.prior_ssthresh = self.window.current_ssthresh(self.view.state);
            self.view.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
            self.cc.cwnd_event(&self.view, &mut self.window, Event::Loss);
            self.init_undo();
            self.counters.reductions += 1;
        }
        self.window.cwnd = self.in_flight() + 1;
        self.window.cwnd_cnt = 0;
        self.transmission.validated_at = self.view.now;
        if disordered && self.view.sacked_out >= self.recovery.reordering {
            self.recovery.reordering = self.recovery.reordering.min(self.settings.reordering);
        }
        self.set_state(CaState::Loss);
        self.recovery.high_seq = self.view.snd_nxt;
        self.timers.forget_probe();
        self.recovery.cwr_pending = self.ecn();
        self.recovery.frto = self.settings.frto && (new_recovery || self.recovery.timeouts > 0);
    }

    /// `tcp_timeout_mark_lost` (RFC 8985 §6.3): the head, and whatever was sent longer ago than the last
    /// RTT; younger segments stay in flight. A head that is SACKed means that the receiver reneged: then
    /// no mark is believed and everything is lost.
    fn timeout_mark_lost(&mut self) {
        let reneged = self.board.front().is_some_and(|sent| sent.marks.has(Marks::SACKED));
        if reneged {
            self.renege();
        } else if !self.settings.sack {
            self.view.sacked_out = 0;
        }
        let head = self.board.head();
        for number in head..self.board.tail() {
            let may_be_under_way = !reneged && self.settings.rack && self.settings.sack;
            if may_be_under_way && number != head && !self.rack_expired(number) {
                continue;
            }
            self.mark_lost(number);
        }
    }

    /// `tcp_check_sack_reneging`: the ACK stops short of data that was SACKed. The receiver gets half a round
    /// trip, at least 10 ms, to say better; then the timeout comes.
    fn suspect_reneging(&mut self) {
        let half = self.ticks.count_micros_ceil(u64::from(self.view.srtt_us_x8 >> 4));
        let least = self.ticks.count_span_ceil(Duration::from_millis(10));
        self.set_timer(Pending::Retransmit, half.max(least));
    }

    /// The receiver dropped data it had SACKed: all marks go.
    pub(super) fn renege(&mut self) {
        for number in self.board.head()..self.board.tail() {
            self.board.marks_mut(number).clear(Marks::SACKED);
        }
        self.view.sacked_out = 0;
        self.forget_sacks();
        self.rack.rescan(self.board.head());
    }

    /// Whether segment `number` was sent longer ago than the last RTT.
    fn rack_expired(&self, number: u64) -> bool {
        self.now_us() >= self.board.get(number).sent_us + self.rack.rtt_us()
    }

    /// `tcp_xmit_recovery`: sends what the state machine decided on.
    pub(super) fn repair<O: Outbox>(&mut self, repair: Repair, io: &mut Io<'_, O>) {
        match repair {
            Repair::None => {}
            Repair::New => {
                self.write_xmit(io, Push::Pending);
                if self.view.snd_nxt <= self.recovery.high_seq {
                    self.recovery.frto = false;
                    self.retransmit(io);
                }
            }
            Repair::Lost => self.retransmit(io),
        }
    }
}
