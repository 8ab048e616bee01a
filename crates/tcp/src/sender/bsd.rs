//! Loss detection, recovery and transmission of 4.4BSD's line, as FreeBSD 9 has them.
//!
//! FreeBSD: `tcp_do_segment` (tcp_input.c), `tcp_output`, `tcp_sack.c`, `tcp_timer_rexmt`. RFC 6582 without SACK.
//!
//! What decides its throughput under loss:
//! - three duplicate ACKs begin a recovery, in which the holes below the highest SACK are sent again, and new data, as far as a
//!   window allows that starts at one segment and grows by one per duplicate ACK up to the threshold;
//! - a retransmission that is lost again shows only by the timeout, which forgets all SACKs and sends everything again,
//!   but for what is SACKed anew;
//! - the timeout is 200 ms on top of mean and deviations; one that an ACK within half a round trip proves wrong is taken
//!   back.
//!
//! FreeBSD counts bytes; here segments are counted, which are full as long as there is data.

use super::ack::{Ack, News};
use super::rtt::BsdRttEstimator;
use super::scoreboard::Marks;
use super::timers::Pending;
use super::{Io, Sender};
use crate::segment::{Outbox, Segment};
use dragstrip_cc::{CaState, CongestionControl, Event};

/// Duplicate ACKs that begin a recovery (`tcprexmtthresh`).
const DUPLICATES: u32 = 3;
/// Doublings of the timeout at most (`tcp_backoff`).
const MAX_SHIFT: u32 = 6;

/// What a first timeout may be taken back to.
#[derive(Clone, Debug)]
struct Before {
    cwnd: u32,
    ssthresh: u32,
    high_seq: u64,
    state: CaState,
    /// An ACK before this tick answers what was sent before (`t_badrxtwin`).
    until_tick: u64,
}

/// What this stack remembers besides [`super::recovery::Recovery`], whose `high_seq` is `snd_recover`.
#[derive(Clone, Debug, Default)]
pub(super) struct Bsd {
    /// Duplicate ACKs in a row (`t_dupacks`).
    duplicates: u32,
    /// New segments sent on the first two of them (`snd_limited`).
    limited: u32,
    /// The next segment to be sent again after a timeout; all are below once it has reached the tail (`snd_nxt`).
    next: u64,
    /// Data from here on was first sent in this recovery (`sack_newdata`).
    new_data: u64,
    /// The peer's window as last offered, bytes (`snd_wnd`).
    peer_window: u64,
    before: Option<Before>,
    rtt: BsdRttEstimator,
    /// Without timestamps: the byte and the tick whose acknowledgement is waited for (`t_rtseq`, `t_rtttime`).
    timed: Option<(u64, u64)>,
    /// Tick of the last segment received (`t_rcvtime`).
    heard_at: u64,
}

impl Bsd {
    pub fn note_window(&mut self, window: u32) {
        self.peer_window = u64::from(window);
    }
}

impl Sender {
    /// An ACK has arrived, and whatever it allows is sent.
    pub(super) fn on_ack_bsd<O: Outbox>(&mut self, segment: &Segment, io: &mut Io<'_, O>) {
        self.bsd.heard_at = self.ticks.at(self.view.now);
        let prior_window = self.bsd.peer_window;
        let prior_una = self.view.snd_una;
        let prior_packets = self.view.packets_out;
        let prior_highest = self.highest_sack();
        let mut ack = Ack::new(prior_una, self.view.snd_nxt);
        if segment.ack < prior_una {
            // From the past: it is no duplicate of the last.
            self.bsd.duplicates = 0;
            return;
        }
        self.take_in(segment, &mut ack);
        self.bsd.note_window(segment.window);
        if prior_packets > 0 && (segment.ack > prior_una || ack.news.has(News::DATA_SACKED)) {
            self.clean_queue(&mut ack, prior_highest);
        }
        if segment.ack > prior_una {
            self.advance_bsd(prior_packets - self.view.packets_out, io);
        } else if prior_packets > 0 && segment.len == 0 && self.bsd.peer_window == prior_window {
            self.duplicate_bsd(io);
            return;
        } else {
            self.bsd.duplicates = 0;
        }
        self.push_pending(io);
    }

    /// New data was acknowledged, `acked` segments of it.
    fn advance_bsd<O: Outbox>(&mut self, acked: u32, io: &mut Io<'_, O>) {
        self.bsd.next = self.bsd.next.max(self.board.head());
        self.undo_timeout_bsd();
        self.recovery.timeouts = 0;
        let recovering = self.view.state == CaState::Recovery;
        if !recovering {
            self.view.is_cwnd_limited = self.window_bytes() <= self.bsd.peer_window;
            // Neither algorithm asks for a reduction: FreeBSD's delay-based ones make theirs themselves.
            let _ = self.cc.cong_avoid(&self.view, &mut self.window, acked);
        } else if self.view.snd_una < self.recovery.high_seq {
            self.partial_ack_bsd(acked, io);
        } else {
            self.end_recovery_bsd();
        }
        self.bsd.duplicates = 0;
        if self.view.packets_out == 0 {
            self.clear_timer();
        } else {
            self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        }
    }

    fn window_bytes(&self) -> u64 {
        u64::from(self.window.cwnd) * u64::from(self.view.mss)
    }

    /// Segments sent for the first time in this recovery.
    fn new_segments(&self) -> u32 {
        ((self.view.snd_nxt - self.bsd.new_data) / u64::from(self.view.mss)) as u32
    }

    /// `tcp_sack_partialack`, `tcp_newreno_partial_ack`.
    fn partial_ack_bsd<O: Outbox>(&mut self, acked: u32, io: &mut Io<'_, O>) {
        self.bsd.timed = None;
        if self.settings.sack {
            let more = acked.clamp(1, 2);
            let cwnd = self.view.retrans_out + self.new_segments() + more;
            self.window.cwnd = cwnd.min(self.window.ssthresh);
        } else {
            if !self.board.is_empty() {
                self.send_again_bsd(self.board.head(), io);
            }
            // Partial deflation (RFC 6582 §3.2 step 3).
            self.window.cwnd = self.window.cwnd.saturating_sub(acked) + 1;
        }
    }

    /// `newreno_post_recovery`: no burst if little is in flight.
    fn end_recovery_bsd(&mut self) {
        self.window.cwnd = self.window.ssthresh.min(self.view.packets_out + 1);
        self.cc.cwnd_event(&self.view, &mut self.window, Event::CompleteCwr);
        self.set_state(CaState::Open);
    }

    /// `CC_RTO_ERR`: the ACK is too early to answer the retransmission.
    fn undo_timeout_bsd(&mut self) {
        let Some(before) = self.bsd.before.take() else { return };
        if self.ticks.at(self.view.now) >= before.until_tick {
            return;
        }
        self.forget_repairs();
        self.bsd.next = self.board.tail();
        self.window.cwnd = before.cwnd;
        self.window.ssthresh = before.ssthresh;
        self.recovery.high_seq = before.high_seq;
        self.set_state(before.state);
    }

    /// A duplicate ACK.
    fn duplicate_bsd<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.bsd.duplicates += 1;
        if self.bsd.duplicates > DUPLICATES || self.view.state == CaState::Recovery {
            self.inflate_bsd();
        } else if self.bsd.duplicates == DUPLICATES {
            let reduced_for = self.recovery.high_seq;
            if !self.settings.sack && reduced_for > 0 && self.view.snd_una <= reduced_for {
                // The window was reduced for this flight already (RFC 6582 §4).
                self.bsd.duplicates = 0;
                return;
            }
            self.enter_recovery_bsd(io);
        } else if self.settings.bsd.limited_transmit {
            self.limited_transmit_bsd(io);
            return;
        }
        self.push_pending(io);
    }

    /// One more segment has left the network. With SACK the window grows while less than the threshold is in flight.
    fn inflate_bsd(&mut self) {
        if !(self.settings.sack && self.view.state == CaState::Recovery) {
            self.window.cwnd = self.window.cwnd.saturating_add(1);
            return;
        }
        let beyond = (self.view.snd_nxt - self.highest_sack()) / u64::from(self.view.mss);
        if (beyond as u32).saturating_add(self.view.retrans_out) < self.window.ssthresh {
            self.window.cwnd = (self.window.cwnd + 1).min(self.window.ssthresh);
        }
    }

    /// RFC 3042: a new segment for each of the first two duplicates, beyond the window.
    fn limited_transmit_bsd<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        if self.bsd.duplicates == 1 {
            self.bsd.limited = 0;
        }
        let cwnd = self.window.cwnd;
        let out = self.view.packets_out;
        self.window.cwnd = out + self.bsd.duplicates - self.bsd.limited.min(self.bsd.duplicates);
        self.push_pending(io);
        self.bsd.limited = (self.bsd.limited + self.view.packets_out - out).min(2);
        self.window.cwnd = cwnd;
    }

    /// `CC_NDUPACK`.
    fn enter_recovery_bsd<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.forget_repairs();
        self.bsd.next = self.board.tail();
        self.bsd.timed = None;
        self.recovery.high_seq = self.view.snd_nxt;
        self.bsd.new_data = self.view.snd_nxt;
        self.view.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
        self.counters.reductions += 1;
        self.set_state(CaState::Recovery);
        self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        if self.settings.sack {
            self.window.cwnd = 1;
        } else {
            self.send_again_bsd(self.board.head(), io);
            self.window.cwnd = self.window.ssthresh + self.bsd.duplicates - self.bsd.limited;
        }
    }

    /// `tcp_timer_rexmt`.
    pub(super) fn time_out_bsd<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.recovery.timeouts += 1;
        let half_rtt = self.bsd.rtt.srtt_x32() >> 6;
        self.bsd.before = (self.recovery.timeouts == 1).then(|| Before {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            high_seq: self.recovery.high_seq,
            state: self.view.state,
            until_tick: self.ticks.at(self.view.now) + half_rtt,
        });
        self.renege();
        self.forget_repairs();
        self.set_rto_bsd();
        self.bsd.next = self.board.head();
        self.bsd.duplicates = 0;
        self.bsd.timed = None;
        self.recovery.high_seq = self.view.snd_nxt;
        let usable = self.window.cwnd.min((self.bsd.peer_window / u64::from(self.view.mss)) as u32);
        self.view.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = (usable / 2).max(2);
        self.window.cwnd = 1;
        self.counters.reductions += 1;
        self.cc.cwnd_event(&self.view, &mut self.window, Event::Loss);
        self.set_state(CaState::Loss);
        self.output_bsd(io);
        self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
    }

    /// What was sent again in the last recovery is no longer accounted for.
    pub(super) fn forget_repairs(&mut self) {
        for number in self.board.head()..self.board.tail() {
            self.board.marks_mut(number).clear(Marks::LOST.with(Marks::RETRANS));
        }
        self.view.lost_out = 0;
        self.view.retrans_out = 0;
    }

    /// Sends segment `number` again, and remembers it as lost and repaired.
    fn send_again_bsd<O: Outbox>(&mut self, number: u64, io: &mut Io<'_, O>) {
        self.send_again(number, 1, io);
        let marks = self.board.marks_mut(number);
        if !marks.has(Marks::RETRANS) {
            marks.set(Marks::LOST.with(Marks::RETRANS));
            self.view.lost += 1;
            self.view.lost_out += 1;
            self.view.retrans_out += 1;
        }
    }

    /// `tcp_sack_output`: the first segment below the highest SACK, and below the end of the recovery, that was neither
    /// SACKed nor sent again in it.
    fn next_hole(&self) -> Option<u64> {
        let end = self.highest_sack().min(self.recovery.high_seq);
        (self.board.head()..self.board.tail())
            .take_while(|&number| self.board.get(number).seq < end)
            .find(|&number| !self.board.marks(number).any(Marks::SACKED.with(Marks::RETRANS)))
    }

    /// `tcp_output`: holes, what a timeout has to send again, new data. Whether anything new was sent.
    pub(super) fn output_bsd<O: Outbox>(&mut self, io: &mut Io<'_, O>) -> bool {
        self.restart_after_idle_bsd();
        let before = self.view.snd_nxt;
        let repairing = self.settings.sack && self.view.state == CaState::Recovery;
        self.transmission.rwnd_limited = false;
        let mut sent_any = false;
        loop {
            self.skip_sacked();
            if repairing
                && self.view.retrans_out < self.window.cwnd
                && let Some(number) = self.next_hole()
            {
                self.send_again_bsd(number, io);
            } else if self.bsd.next < self.board.tail() {
                if self.bsd.next - self.board.head() >= u64::from(self.window.cwnd) {
                    break;
                }
                self.send_again_bsd(self.bsd.next, io);
                self.bsd.next += 1;
            } else if self.may_send_bsd(repairing) {
                self.time_segment();
                let burst = self.one_segment();
                if !self.send_burst(burst, io) {
                    break;
                }
                self.bsd.next = self.board.tail();
            } else {
                break;
            }
            sent_any = true;
        }
        if self.view.state == CaState::Loss && self.bsd.next >= self.board.tail() {
            self.set_state(CaState::Open);
        }
        if sent_any && self.timers.pending() == Pending::None {
            self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        }
        self.grow_send_buffer_bsd();
        self.view.snd_nxt > before
    }

    /// `tcp_sack_adjust`: what was SACKed since the timeout is not sent again.
    fn skip_sacked(&mut self) {
        while self.bsd.next < self.board.tail()
            && self.board.marks(self.bsd.next).has(Marks::SACKED)
        {
            self.bsd.next += 1;
        }
    }

    /// Whether a new segment may go: congestion window, peer's window, and no short segment while others are out.
    fn may_send_bsd(&mut self, repairing: bool) -> bool {
        let out = if repairing && self.view.retrans_out > 0 {
            self.new_segments() + self.view.retrans_out
        } else {
            self.view.packets_out
        };
        let unsent = self.buffer.written - self.view.snd_nxt;
        if unsent == 0 || out >= self.window.cwnd {
            return false;
        }
        let mss = u64::from(self.view.mss);
        let room = self.window_end.saturating_sub(self.view.snd_nxt);
        if room < mss.min(unsent) {
            self.transmission.rwnd_limited = true;
            return false;
        }
        unsent >= mss || self.view.packets_out == 0 || self.settings.nodelay
    }

    /// Without timestamps one segment at a time is timed.
    fn time_segment(&mut self) {
        if !self.settings.timestamps && self.bsd.timed.is_none() {
            self.bsd.timed = Some((self.view.snd_nxt, self.ticks.at(self.view.now)));
        }
    }

    fn grow_send_buffer_bsd(&mut self) {
        let (una, nxt) = (self.view.snd_una, self.view.snd_nxt);
        let window = self.window_bytes().min(self.bsd.peer_window);
        self.buffer.grow_by_step(self.bsd.peer_window, window, una, nxt);
    }

    /// `newreno_after_idle`: after a timeout's length of silence the window is no larger than the initial one.
    fn restart_after_idle_bsd(&mut self) {
        let silent = self.ticks.at(self.view.now).saturating_sub(self.bsd.heard_at);
        if self.view.packets_out == 0 && self.view.snd_nxt > 0 && silent >= self.timers.rto_ticks {
            self.window.cwnd = self.window.cwnd.min(self.settings.initial_cwnd);
            self.cc.cwnd_event(&self.view, &mut self.window, Event::CwndRestart);
        }
    }

    /// RTT samples: of the last segment (S)ACKed for the algorithm; for the timeout what the timestamp tells.
    pub(super) fn take_rtts_bsd(&mut self, last_us: Option<u64>, packets: u32) -> bool {
        self.last_rtt_us = last_us.map(|sent_us| (self.now_us() - sent_us) as u32);
        if packets == 0 {
            return false;
        }
        let now = self.ticks.at(self.view.now);
        let rtt = match (self.transmission.echoed_ms, self.bsd.timed) {
            (Some(echo), _) => {
                let ms = self.ticks.stamp_ms(self.view.now).saturating_sub(echo);
                u64::from(ms) * u64::from(self.settings.hz) / 1_000 + 1
            }
            (None, Some((seq, at))) if self.view.snd_una > seq => {
                self.bsd.timed = None;
                now - at + 1
            }
            (None, _) => return false,
        };
        self.new_rtt_us = self.last_rtt_us;
        self.take_rtt_bsd(rtt);
        true
    }

    /// Feeds the estimator and the timeout with `rtt` ticks, of which one is for the clock.
    pub(super) fn take_rtt_bsd(&mut self, rtt: u64) {
        self.bsd.rtt.sample(rtt);
        // × 8, µs, from × 32, ticks.
        self.view.srtt_us_x8 = (self.ticks.to_micros(self.bsd.rtt.srtt_x32()) / 4) as u32;
        if let Some(us) = self.last_rtt_us {
            self.view.min_rtt_us = self.view.min_rtt_us.min(us.max(1));
        }
        self.recovery.timeouts = 0;
        self.set_rto_bsd();
        self.timers.rto_ticks = self.timers.rto_ticks.max(rtt + 2);
    }

    /// `TCPT_RANGESET` of `TCP_REXMTVAL`, doubled for every timeout in a row.
    fn set_rto_bsd(&mut self) {
        let least = self.ticks.count_span_ceil(self.settings.rto_min);
        let slop = self.ticks.count_span_ceil(self.settings.bsd.rto_slop);
        let timeout = match self.bsd.rtt.timeout() {
            0 => self.ticks.count_span_ceil(self.settings.rto_initial),
            ticks => ticks.max(least),
        };
        let backed_off = timeout << self.recovery.timeouts.min(MAX_SHIFT);
        self.timers.rto_ticks = (backed_off + slop).min(self.timers.max_ticks);
    }
}
