//! Loss detection, recovery and transmission of Linux 2.2: the window is inflated by duplicate ACKs, SACKs point at holes, and
//! after a timeout everything is sent again before anything new.
//!
//! Kernel: `tcp_ack`, `tcp_fast_retrans`, `should_advance_cwnd` (tcp_input.c of 2.2.13), `tcp_snd_test` (tcp.h),
//! `tcp_xmit_retransmit_queue`, `tcp_fack_retransmit` (tcp_output.c of 2.2.10), `tcp_retransmit_timer` (tcp_timer.c).
//!
//! What decides its throughput under loss:
//! - three duplicate ACKs, or a SACK of the fourth segment or beyond, begin a fast retransmit, once for all that is out: what
//!   is lost twice waits for the timeout;
//! - with SACK what is out is counted up to the highest one SACKed, holes and all, so that much new data leaves at once;
//! - after a timeout nothing new is sent until all is acknowledged, and without timestamps no RTT is taken: the timeout
//!   stays doubled;
//! - the timeout is five quarters of mean and four deviations, doubled for a window of one packet (and of 33: the shift by
//!   `cwnd − 1` is one of 32 bits);
//! - an episode that ends with exactly three duplicate ACKs leaves the window inflated.

use super::ack::{Ack, News};
use super::rtt::LastTickEstimator;
use super::scoreboard::Marks;
use super::timers::Pending;
use super::{Io, Sender};
use crate::segment::{Outbox, Segment};
use dragstrip_cc::{CaState, CongestionControl, Event};

/// Duplicate ACKs that begin a fast retransmit, and segments of which a SACK may lie ahead.
const DUPLICATES: u32 = 3;

/// What this stack remembers.
#[derive(Clone, Debug, Default)]
pub(super) struct Inflation {
    /// Duplicate ACKs (`dup_acks`).
    duplicates: u32,
    /// What was out when the episode began ends here (`high_seq`).
    episode_end: Option<u64>,
    /// Segments from the head up to the highest one SACKed (`fackets_out`).
    facked: u32,
    /// Retransmissions since they were last counted down (`retrans_out`): one that is SACKed again counts again.
    again: u32,
    /// Timeouts since everything was acknowledged (`retransmits`).
    timeouts: u32,
    /// How often the timeout was doubled (`backoff`).
    doublings: u32,
    /// The next segment that a timeout has to send again (`retrans_head`), all of them having been sent at the tail.
    next: u64,
    /// RTT of the ACK in hand, ticks.
    sample: Option<u64>,
    rtt: LastTickEstimator,
}

impl Sender {
    /// An ACK has arrived, and whatever it allows is sent.
    pub(super) fn on_ack_inflating<O: Outbox>(&mut self, segment: &Segment, io: &mut Io<'_, O>) {
        self.count_facked(segment);
        let prior_una = self.view.snd_una;
        if segment.ack < prior_una {
            return;
        }
        let mut ack = Ack::new(prior_una, self.view.snd_nxt);
        let (prior_packets, prior_again) = (self.view.packets_out, self.view.retrans_out);
        let prior_highest = self.highest_sack();
        // Data and a wider window are no duplicates.
        let widened = segment.ack + u64::from(segment.window) > self.window_end;
        let plain = segment.ack == prior_una && segment.len == 0 && !widened;
        self.take_in(segment, &mut ack);
        if prior_packets > 0 {
            self.clean_queue(&mut ack, prior_highest);
        }
        let acked = prior_packets - self.view.packets_out;
        let (state, repaired) = (&mut self.inflation, prior_again - self.view.retrans_out);
        state.facked = state.facked.saturating_sub(acked);
        state.again = state.again.saturating_sub(repaired);
        if acked > 0 {
            // should_advance_cwnd: not for what a fast retransmit without SACK has repaired.
            let repairs = ack.news.has(News::RETRANS_ACKED);
            if !repairs || state.facked > 0 || state.timeouts > 0 {
                let _ = self.cc.cong_avoid(&self.view, &mut self.window, 1);
            }
        }
        self.settle_rtt();
        if self.view.packets_out == 0 {
            self.clear_timer();
        } else if acked > 0 {
            self.go_on(io);
        }
        self.judge_duplicate(plain, prior_una, segment, io);
        self.push_pending(io);
    }

    /// `tcp_sacktag_write_queue`: how far the blocks reach, and what they say of retransmissions.
    fn count_facked(&mut self, segment: &Segment) {
        for block in segment.sack() {
            let (start, end) = block.range(segment.ack);
            let beyond = self.board.number_at(end);
            for number in self.board.head()..beyond {
                let sent = self.board.get(number);
                if sent.seq < start {
                    continue;
                }
                if sent.marks.has(Marks::RETRANS) {
                    self.inflation.again = self.inflation.again.saturating_sub(1);
                }
                let reach = (number + 1 - self.board.head()) as u32;
                self.inflation.facked = self.inflation.facked.max(reach);
            }
        }
    }

    /// `tcp_ack_packets_out`: new data was acknowledged and some is still out.
    fn go_on<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        if self.inflation.timeouts > 0 {
            self.send_queue_again(io);
            self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        } else if let Some(head) = self.board.front() {
            // The timeout counts from when the head was sent.
            let waited = self.ticks_since(head.sent_us);
            let left = self.timers.rto_ticks.saturating_sub(waited).max(1);
            self.set_timer(Pending::Retransmit, left);
        }
    }

    /// `tcp_fast_retrans`.
    fn judge_duplicate<O: Outbox>(
        &mut self,
        plain: bool,
        prior_una: u64,
        segment: &Segment,
        io: &mut Io<'_, O>,
    ) {
        let duplicate = plain && self.view.packets_out > 0;
        match self.inflation.episode_end {
            None if duplicate => {
                self.inflation.duplicates += 1;
                if self.inflation.facked > DUPLICATES || self.inflation.duplicates == DUPLICATES {
                    self.retransmit_fast(io);
                }
            }
            None => self.inflation.duplicates = 0,
            Some(_) if duplicate => {
                self.inflation.duplicates += 1;
                if self.inflation.duplicates > DUPLICATES {
                    if self.inflation.facked == 0 {
                        self.window.cwnd = (self.window.cwnd + 1).min(self.window.clamp);
                    } else {
                        self.fill_holes(io);
                    }
                }
            }
            Some(end) if self.view.snd_una >= end || segment.len > 0 => {
                self.deflate();
                if self.view.snd_una >= end {
                    self.inflation.episode_end = None;
                    self.inflation.facked = 0;
                    self.set_state(CaState::Open);
                }
            }
            Some(_) if self.inflation.duplicates >= DUPLICATES => {
                if self.inflation.facked > 0 {
                    self.fill_holes(io);
                } else if segment.ack > prior_una {
                    // The next hole (RFC 2582).
                    self.repeat(self.board.head(), io);
                    self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
                }
            }
            Some(_) => {}
        }
    }

    /// The third duplicate ACK, or SACKs of its worth.
    fn retransmit_fast<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.reduce_threshold();
        self.window.cwnd = (self.window.ssthresh + DUPLICATES).min(self.window.clamp);
        self.inflation.episode_end = Some(self.view.snd_nxt);
        self.recovery.high_seq = self.view.snd_nxt;
        self.set_state(CaState::Recovery);
        if self.inflation.facked == 0 {
            self.repeat(self.board.head(), io);
        } else {
            self.fill_holes(io);
        }
        self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
    }

    /// `tcp_recalc_ssthresh`: of what the peer's window lets out of the window.
    fn reduce_threshold(&mut self) {
        let peer = self.window_end.saturating_sub(self.view.snd_una) / u64::from(self.view.mss);
        let usable = self.window.cwnd.min(u32::try_from(peer).unwrap_or(u32::MAX));
        let mut seen = self.window.clone();
        seen.cwnd = usable;
        self.view.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = self.cc.ssthresh(&self.view, &mut seen);
        self.counters.reductions += 1;
    }

    /// `clear_fast_retransmit`.
    fn deflate(&mut self) {
        if self.inflation.duplicates > DUPLICATES {
            self.window.cwnd = self.window.ssthresh;
        }
        self.inflation.duplicates = 0;
    }

    /// `tcp_retransmit_timer`.
    pub(super) fn time_out_inflating<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.renege();
        self.forget_repairs();
        let head = self.board.head();
        self.inflation.next = head;
        self.inflation.facked = 0;
        self.inflation.again = 0;
        if self.inflation.timeouts == 0 {
            self.reduce_threshold();
            self.window.cwnd_cnt = 0;
            self.window.cwnd = 1;
            self.cc.cwnd_event(&self.view, &mut self.window, Event::Loss);
        }
        self.inflation.timeouts += 1;
        self.inflation.duplicates = 0;
        self.inflation.episode_end = Some(self.view.snd_nxt);
        self.recovery.high_seq = self.view.snd_nxt;
        self.set_state(CaState::Loss);
        self.repeat(head, io);
        self.inflation.doublings += 1;
        self.timers.rto_ticks = (self.timers.rto_ticks << 1).min(self.timers.max_ticks);
        self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
    }

    /// `tcp_retransmit_skb`.
    fn repeat<O: Outbox>(&mut self, number: u64, io: &mut Io<'_, O>) {
        self.send_again(number, 1, io);
        let marks = self.board.marks_mut(number);
        if !marks.has(Marks::RETRANS) {
            marks.set(Marks::RETRANS);
            self.view.retrans_out += 1;
        }
        self.inflation.again += 1;
    }

    /// `tcp_xmit_retransmit_queue`: what was out at the timeout, as far as the window allows for retransmissions.
    fn send_queue_again<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.inflation.next = self.inflation.next.max(self.board.head());
        while self.inflation.next < self.board.tail() {
            let number = self.inflation.next;
            self.inflation.next += 1;
            if self.board.marks(number).has(Marks::SACKED) {
                continue;
            }
            self.repeat(number, io);
            if self.inflation.again >= self.window.cwnd {
                break;
            }
        }
    }

    /// `tcp_fack_retransmit`: what is neither SACKed nor sent again below the highest SACK; one at least.
    fn fill_holes<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        let end = self.board.tail().min(self.board.head() + u64::from(self.inflation.facked));
        for number in self.board.head()..end {
            if self.board.marks(number).any(Marks::SACKED.with(Marks::RETRANS)) {
                continue;
            }
            self.repeat(number, io);
            if self.out() >= self.window.cwnd {
                break;
            }
        }
    }

    /// `tcp_packets_in_flight`.
    fn out(&self) -> u32 {
        self.view.packets_out.saturating_sub(self.inflation.facked) + self.inflation.again
    }

    /// `tcp_write_xmit`: new data. Whether anything was sent.
    pub(super) fn output_inflating<O: Outbox>(&mut self, io: &mut Io<'_, O>) -> bool {
        let before = self.view.snd_nxt;
        self.transmission.rwnd_limited = false;
        while self.may_send_inflating() {
            let burst = self.one_segment();
            self.send_burst(burst, io);
        }
        let sent = self.view.snd_nxt > before;
        if sent && self.timers.pending() == Pending::None {
            self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        }
        sent
    }

    /// `tcp_snd_test`: nothing new after a timeout; what is shorter than half a segment waits for all that is out.
    fn may_send_inflating(&mut self) -> bool {
        if self.buffer.written == self.view.snd_nxt
            || self.inflation.timeouts > 0
            || self.out() >= self.window.cwnd
        {
            return false;
        }
        let bytes = self.one_segment().bytes;
        if self.view.snd_nxt + bytes > self.window_end {
            self.transmission.rwnd_limited = true;
            return false;
        }
        let short = bytes < u64::from(self.view.mss / 2);
        !short || self.view.packets_out == 0 || self.settings.nodelay
    }

    /// A SYN that was sent again: `tcp_retransmit_timer` takes it for any segment. The handshake gives no RTT.
    pub(super) fn note_lost_syns(&mut self, count: u32) {
        if count > 0 {
            self.window.ssthresh = 2;
            let rto = self.timers.rto_ticks << count.min(6);
            self.timers.rto_ticks = rto.min(self.timers.max_ticks);
        }
    }

    /// RTT of the last segment acknowledged, or what the timestamp tells.
    pub(super) fn sample_last(&mut self, last_us: Option<u64>, repeated: bool, packets: u32) {
        let sample = match (self.transmission.echoed_ms, last_us) {
            _ if packets == 0 => None,
            (Some(echo), _) => {
                let ms = self.ticks.stamp_ms(self.view.now).saturating_sub(echo);
                Some(u64::from(ms) * u64::from(self.settings.hz) / 1_000)
            }
            (None, Some(sent_us)) if !repeated && self.inflation.timeouts == 0 => {
                Some(self.ticks_since(sent_us))
            }
            (None, _) => None,
        };
        self.inflation.sample = sample;
        self.last_rtt_us = sample.map(|ticks| self.ticks.to_micros(ticks) as u32);
        self.new_rtt_us = self.last_rtt_us;
    }

    /// `tcp_ack_saw_tstamp`, and the same without timestamps: estimate and timeout.
    fn settle_rtt(&mut self) {
        let stamped = self.transmission.echoed_ms.is_some();
        let all = self.view.packets_out == 0;
        if self.inflation.timeouts > 0 && all {
            self.inflation.timeouts = 0;
            self.inflation.facked = 0;
            self.inflation.again = 0;
        }
        let Some(ticks) = self.inflation.sample.take() else { return };
        self.inflation.rtt.sample(ticks);
        self.view.srtt_us_x8 = self.ticks.to_micros(self.inflation.rtt.srtt_x8()) as u32;
        let us = self.last_rtt_us.unwrap_or(0).max(1);
        self.view.min_rtt_us = self.view.min_rtt_us.min(us);
        if all || !stamped || self.inflation.timeouts == 0 {
            self.inflation.doublings = 0;
        }
        let least = self.ticks.count_span_ceil(self.settings.rto_min);
        let timeout =
            self.inflation.rtt.timeout(self.window.cwnd) << self.inflation.doublings.min(20);
        self.timers.rto_ticks = timeout.clamp(least, self.timers.max_ticks);
    }
}
