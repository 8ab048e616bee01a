//! What leaves, and when: window, pacing, burst size, TCP Small Queues, retransmissions.
//!
//! Kernel: `tcp_write_xmit`, `tcp_xmit_retransmit_queue`, `tcp_cwnd_validate`, `tcp_tso_autosize`,
//! `tcp_tso_should_defer`, `tcp_small_queue_check` (tcp_output.c).

use super::buffer::SKB_OVERHEAD;
use super::scoreboard::{Marks, Sent};
use super::timers::Pending;
use super::{Io, Sender};
use crate::profile::{RecoveryStyle, SendBuffer};
use crate::segment::{Ecn, Flags, Outbox, Segment};
use dragstrip_cc::{CaState, CongestionControl, Event, PacingStatus};
use dragstrip_units::{Duration, Instant};
use std::collections::VecDeque;

/// Why data is pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    /// Whatever the window allows.
    Pending,
    /// One burst of it (`tcp_push_one`).
    One,
    /// One segment beyond the window: a tail loss probe, or a probe of a window without packets.
    Probe,
}

/// What leaves at once: one socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    pub segments: u32,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Transmission {
    /// When the pacer or the local queue lets the next segment go.
    pub wakeup: Instant,
    /// No segment below this number waits to be retransmitted (`retransmit_skb_hint`).
    retransmit_hint: u64,
    /// Timestamp echo of the ACK in hand, ms.
    pub echoed_ms: Option<u32>,
    /// When the window was last known to be justified (`snd_cwnd_stamp`).
    pub validated_at: Instant,
    /// Most packets out since then (`snd_cwnd_used`).
    cwnd_used: u32,
    /// End of the round over which `is_cwnd_limited` is remembered (`cwnd_usage_seq`).
    usage_round_ends: u64,
    /// End of the last segment shorter than the MSS (`snd_sml`).
    small_end: u64,
    /// Data segments sent, for the pacer's grace.
    data_segments: u64,
    /// Bursts sent and not wholly acknowledged: each is a socket buffer with its overhead.
    pub bursts_out: u64,
    /// Bytes of memory in the host's own queue, and when each piece leaves it.
    device: VecDeque<(Instant, u64)>,
    device_bytes: u64,
    /// When the pacer would have let the last burst go; it may have gone later.
    prior_departure: Instant,
    /// The receiver's window stopped the last transmission.
    pub rwnd_limited: bool,
}

impl Default for Transmission {
    fn default() -> Self {
        Self {
            wakeup: Instant::NEVER,
            retransmit_hint: 0,
            echoed_ms: None,
            validated_at: Instant::ZERO,
            cwnd_used: 0,
            usage_round_ends: 0,
            small_end: 0,
            data_segments: 0,
            bursts_out: 0,
            device: VecDeque::new(),
            device_bytes: 0,
            prior_departure: Instant::ZERO,
            rwnd_limited: false,
        }
    }
}

impl Transmission {
    /// Segment `number` waits to be retransmitted; segments below the hint do not.
    #[inline]
    pub fn retransmit_from(&mut self, number: u64) {
        self.retransmit_hint = self.retransmit_hint.min(number);
    }
}

/// Lost, and not sent again yet.
fn waits_for_retransmission(marks: Marks) -> bool {
    marks.has(Marks::LOST) && !marks.any(Marks::SACKED.with(Marks::RETRANS))
}

impl Sender {
    /// The pacer or the local queue has room again.
    pub(super) fn resume<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        if self.view.lost_out > self.view.retrans_out && self.window.cwnd > self.in_flight() {
            self.retransmit(io);
        }
        self.push_pending(io);
    }

    /// `tcp_data_snd_check`: sends what the window allows, then lets a writer that waited for room go on.
    /// Whether anything was sent.
    #[inline]
    pub(super) fn push_pending<O: Outbox>(&mut self, io: &mut Io<'_, O>) -> bool {
        let waited = self.buffer.blocked;
        let sent = self.write_xmit(io, Push::Pending);
        self.check_space();
        if waited && !self.buffer.blocked {
            self.poll_writer();
        }
        sent | self.refill(io)
    }

    /// `tcp_write_xmit`: sends new data as far as window, receiver, pacing and local queue allow.
    /// Whether anything was sent.
    pub(super) fn write_xmit<O: Outbox>(&mut self, io: &mut Io<'_, O>, push: Push) -> bool {
        match self.settings.profile.recovery {
            RecoveryStyle::RackPrr | RecoveryStyle::RateHalving { .. } => {}
            RecoveryStyle::Bsd => return self.output_bsd(io),
            RecoveryStyle::Inflation => return self.output_inflating(io),
        }
        let prior_packets = self.view.packets_out;
        let max_segments = self.max_burst();
        let mut cwnd_blocked = false;
        self.transmission.rwnd_limited = false;
        if prior_packets == 0 {
            self.restart_after_idle();
        }
        loop {
            if self.buffer.written == self.view.snd_nxt || self.is_pacing_blocked() {
                break;
            }
            let Some(burst) = self.next_burst(push, max_segments, &mut cwnd_blocked) else {
                break;
            };
            if self.is_local_queue_full(burst) {
                break;
            }
            if !self.send_burst(burst, io) || push != Push::Pending {
                break;
            }
        }
        let sent = self.view.packets_out - prior_packets;
        cwnd_blocked |= self.in_flight() >= self.window.cwnd;
        if sent > 0 || cwnd_blocked {
            self.validate_cwnd(cwnd_blocked);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.recovery.prr_out += sent;
            }
            let scheduled = push != Push::Probe && self.schedule_probe(false);
            if !scheduled && (prior_packets == 0 || self.timers.pending() == Pending::LossProbe) {
                self.rearm_rto();
            }
        } else if self.buffer.written == self.view.snd_nxt {
            self.check_app_limited();
        } else if self.view.packets_out == 0 && self.window.cwnd == 0 {
            self.wait_for_window();
        }
        sent > 0
    }

    /// What goes next; `None`: nothing now.
    #[inline]
    fn next_burst(
        &mut self,
        push: Push,
        max_segments: u32,
        cwnd_blocked: &mut bool,
    ) -> Option<Burst> {
        let mss = u64::from(self.view.mss);
        let in_flight = self.in_flight();
        let quota = if in_flight < self.window.cwnd {
            // At least two bursts per window (tcp_cwnd_test).
            (self.window.cwnd - in_flight).min((self.window.cwnd >> 1).max(1))
        } else if push == Push::Probe {
            1
        } else {
            return None;
        };
        let (end, _) = self.buffer.head(self.view.snd_nxt)?;
        let head_bytes = end - self.view.snd_nxt;
        let room = self.window_end.saturating_sub(self.view.snd_nxt);
        if room < mss.min(head_bytes) {
            self.transmission.rwnd_limited = true;
            return None;
        }
        if head_bytes <= mss || !self.buffer.bursts {
            let bytes = head_bytes.min(mss);
            let may_send = bytes == mss || end < self.buffer.written || !self.waits_for_short();
            return may_send.then_some(Burst { segments: 1, bytes });
        }
        if push == Push::Pending && self.should_defer(head_bytes, max_segments, cwnd_blocked) {
            return None;
        }
        let most = u64::from(quota.min(max_segments)) * mss;
        let may_be_short = push == Push::One || !self.waits_for_short();
        let bytes = self.split_point(head_bytes, most, room, end, may_be_short);
        Some(Burst { segments: bytes.div_ceil(mss) as u32, bytes })
    }

    /// The first unsent segment alone.
    pub(super) fn one_segment(&mut self) -> Burst {
        let head = self.buffer.head(self.view.snd_nxt);
        let end = head.map_or(self.buffer.written, |(end, _)| end);
        Burst { segments: 1, bytes: (end - self.view.snd_nxt).min(u64::from(self.view.mss)) }
    }

    /// `tcp_mss_split_point`: how much of the first unsent buffer goes, of which at most `most` may. What is
    /// less than a segment, at the end of the buffer or of the peer's window, goes along unless Nagle holds
    /// it back.
    fn split_point(
        &self,
        head_bytes: u64,
        most: u64,
        room: u64,
        end: u64,
        may_be_short: bool,
    ) -> u64 {
        if most <= room && end < self.buffer.written {
            return most.min(head_bytes);
        }
        let needed = head_bytes.min(room);
        if most <= needed {
            return most;
        }
        if may_be_short { needed } else { needed - needed % u64::from(self.view.mss) }
    }

    /// `tcp_tso_autosize`: about a millisecond of the pacing rate, more on short paths.
    fn max_burst(&self) -> u32 {
        if !self.settings.gso {
            return 1;
        }
        let mut bytes = self.window.pacing_rate >> self.view.pacing_shift;
        let halvings = self.view.min_rtt_us >> self.settings.tso_rtt_log;
        if halvings < 32 {
            bytes = bytes.saturating_add(u64::from(self.view.gso_max_bytes >> halvings));
        }
        let bytes = bytes.min(u64::from(self.view.gso_max_bytes)) as u32;
        let floor = self.cc.min_tso_segs(&self.view, &self.window).min(self.settings.min_tso_segs);
        (bytes / self.view.mss).max(floor)
    }

    /// `tcp_tso_should_defer`: wait a moment for the window to hold a larger burst.
    fn should_defer(&self, head_bytes: u64, max_segments: u32, cwnd_blocked: &mut bool) -> bool {
        if self.view.state >= CaState::Recovery {
            return false;
        }
        let millisecond = Duration::from_millis(1);
        if self.view.now.since(self.view.departure) > millisecond {
            return false;
        }
        let mss = u64::from(self.view.mss);
        let cwnd_room = u64::from(self.window.cwnd.saturating_sub(self.in_flight())) * mss;
        let window_room = self.window_end.saturating_sub(self.view.snd_nxt);
        let limit = cwnd_room.min(window_room);
        if limit >= u64::from(max_segments) * mss {
            return false;
        }
        let is_tail = self.buffer.written - self.view.snd_nxt <= head_bytes;
        if !is_tail && limit >= head_bytes {
            return false;
        }
        let peer_window = self.window_end - self.view.snd_una;
        let chunk = peer_window.min(u64::from(self.window.cwnd) * mss);
        if limit >= chunk / u64::from(self.settings.tso_win_divisor.max(1)) {
            return false;
        }
        let Some(front) = self.board.front() else { return false };
        let srtt_us = u64::from(self.view.srtt_us_x8 >> 3);
        let expected_us = front.sent_us + srtt_us;
        if expected_us > self.now_us() + (srtt_us >> 1).min(1_000) {
            return false;
        }
        if cwnd_room < window_room && cwnd_room <= head_bytes {
            *cwnd_blocked = true;
        }
        true
    }

    /// Nagle with Minshall's refinement (`tcp_nagle_check`): a short segment waits only for another short one.
    fn waits_for_short(&self) -> bool {
        !self.settings.nodelay
            && self.view.packets_out > 0
            && self.transmission.small_end > self.view.snd_una
    }

    #[inline]
    fn is_pacing_blocked(&mut self) -> bool {
        if self.view.pacing_status != PacingStatus::Needed || self.view.departure <= self.view.now {
            return false;
        }
        self.transmission.wakeup = self.view.departure;
        true
    }

    /// `tcp_small_queue_check`: no more than about a millisecond of data below TCP.
    #[inline]
    fn is_local_queue_full(&mut self, burst: Burst) -> bool {
        while let Some(&(leaves, bytes)) = self.transmission.device.front() {
            if leaves > self.view.now {
                break;
            }
            self.transmission.device_bytes -= bytes;
            self.transmission.device.pop_front();
        }
        if self.transmission.device_bytes == 0 || !self.settings.profile.small_queues {
            return false;
        }
        let next = burst.bytes + SKB_OVERHEAD;
        let limit = (self.window.pacing_rate >> self.view.pacing_shift)
            .max(2 * next)
            .min(self.settings.limit_output_bytes);
        if self.transmission.device_bytes < limit || self.view.packets_out <= 1 {
            return false;
        }
        let (leaves, _) = self.transmission.device[0];
        self.transmission.wakeup = self.transmission.wakeup.min(leaves);
        true
    }

    /// Sends new segments back to back; whether the host's own queue took them.
    pub(super) fn send_burst<O: Outbox>(&mut self, burst: Burst, io: &mut Io<'_, O>) -> bool {
        self.before_data();
        let (chunk_end, pushed) =
            self.buffer.head(self.view.snd_nxt).unwrap_or((self.buffer.written, true));
        let burst_end = self.view.snd_nxt + burst.bytes;
        if burst.bytes < u64::from(burst.segments) * u64::from(self.view.mss) {
            self.transmission.small_end = burst_end;
        }
        let departure_us = self.view.departure.as_micros_floor();
        for _ in 0..burst.segments {
            let len = u64::from(self.view.mss).min(burst_end - self.view.snd_nxt) as u16;
            let end = self.view.snd_nxt + u64::from(len);
            // The last segment of every burst is pushed, so that receivers do not wait for
            // more to merge with it (Linux 5.4, __tcp_transmit_skb).
            let last_of_burst = end == burst_end;
            let forced = burst.segments > 1 && last_of_burst;
            let flags = Flags::ACK.with_if(Flags::PSH, forced || (pushed && end == chunk_end));
            let mut sent = Sent { seq: self.view.snd_nxt, len, ..Sent::default() };
            if last_of_burst {
                sent.marks.set(Marks::BURST_END);
            }
            self.stamp(&mut sent, departure_us);
            self.board.push(&sent);
            if !self.emit(sent.seq, len, flags, true, io) && self.stays_unsent() {
                return false;
            }
            self.view.snd_nxt = end;
            self.view.packets_out += 1;
        }
        self.transmission.bursts_out += 1;
        if self.settings.profile.send_buffer == SendBuffer::Memory {
            // tcp_event_new_data_sent, since 5.18: while more of the window is still to be filled.
            self.check_space();
        }
        self.after_data(burst.bytes, u64::from(burst.segments));
        true
    }

    /// What happens once per skb before it is sent (`__tcp_transmit_skb`).
    fn before_data(&mut self) {
        if self.in_flight() == 0 {
            self.cc.cwnd_event(&self.view, &mut self.window, Event::TxStart);
        }
        self.view.last_data_sent = self.view.now;
        self.transmission.prior_departure = self.view.departure;
        self.view.departure = self.view.departure.max(self.view.now);
    }

    /// Advances the pacer's clock (`tcp_update_skb_after_send`).
    fn after_data(&mut self, payload: u64, segments: u64) {
        self.transmission.data_segments += segments;
        if self.view.pacing_status == PacingStatus::None {
            return;
        }
        let rate = self.window.pacing_rate;
        // sch_fq never paced a connection's first ten segments.
        if rate == u64::MAX || rate == 0 || self.transmission.data_segments < 10 {
            return;
        }
        let span = payload * 1_000_000_000 / rate;
        let late = self.view.departure.since(self.transmission.prior_departure).as_nanos();
        self.view.departure += Duration::from_nanos(span - late.min(span / 2));
    }

    /// Puts one data segment on the wire; whether the host's own queue took it.
    fn emit<O: Outbox>(
        &mut self,
        seq: u64,
        len: u16,
        mut flags: Flags,
        new: bool,
        io: &mut Io<'_, O>,
    ) -> bool {
        let mut ecn = Ecn::NotEct;
        if self.ecn && new {
            ecn = Ecn::Ect0;
            flags = flags.with_if(Flags::CWR, self.recovery.cwr_pending);
            self.recovery.cwr_pending = false;
        }
        let mut segment = Segment::new(seq, len, flags);
        io.receiver.fill_header(&mut segment, self.view.now);
        self.counters.segments_sent += 1;
        let Some(leaves) = io.out.send(&segment, ecn, self.view.now) else { return false };
        if leaves > self.view.now {
            let bytes = u64::from(len) + SKB_OVERHEAD;
            self.transmission.device.push_back((leaves, bytes));
            self.transmission.device_bytes += bytes;
        }
        true
    }

    /// `tcp_xmit_retransmit_queue`: sends what is lost and not yet sent again, lowest first, each burst of it
    /// as the burst that it was.
    pub(super) fn retransmit<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        let head = self.board.head();
        let mut number = self.transmission.retransmit_hint.max(head);
        let max_segments = self.max_burst();
        let mut rearm = false;
        while number < self.board.tail() {
            if self.is_pacing_blocked()
                || self.in_flight() >= self.window.cwnd
                || self.view.retrans_out >= self.view.lost_out
            {
                break;
            }
            let sent = self.board.get(number);
            if !waits_for_retransmission(sent.marks) {
                number += 1;
                continue;
            }
            if sent.end_seq() > self.window_end && number != head {
                break;
            }
            let most = (self.window.cwnd - self.in_flight()).min(max_segments);
            let segments = self.lost_together(number, most);
            self.retransmit_burst(number, segments, io);
            if self.in_reduction() {
                self.recovery.prr_out += segments;
            }
            rearm |= number == head && self.timers.pending() != Pending::Reordering;
            number += u64::from(segments);
        }
        self.transmission.retransmit_hint = number;
        if rearm {
            self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
        }
    }

    /// How many segments from `number` on are one lost skb, at most `most` of them, and within the peer's window.
    fn lost_together(&self, number: u64, most: u32) -> u32 {
        let mut segments = 1;
        let mut last = self.board.get(number);
        while segments < most && !last.marks.has(Marks::BURST_END) {
            let next = self.board.get(number + u64::from(segments));
            if !waits_for_retransmission(next.marks) || next.end_seq() > self.window_end {
                break;
            }
            last = next;
            segments += 1;
        }
        segments
    }

    /// The head, after a timeout.
    pub(super) fn retransmit_head<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.retransmit_burst(self.board.head(), 1, io);
    }

    /// The newest segment, as a tail loss probe: not counted as a retransmission in flight.
    pub(super) fn retransmit_tail<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        let tail = self.board.tail() - 1;
        if tail > self.board.head() {
            self.split_after(tail - 1);
        }
        self.send_again(tail, 1, io);
    }

    /// `tcp_retransmit_skb`.
    fn retransmit_burst<O: Outbox>(&mut self, number: u64, segments: u32, io: &mut Io<'_, O>) {
        self.split_after(number + u64::from(segments) - 1);
        self.send_again(number, segments, io);
        for number in number..number + u64::from(segments) {
            let marks = self.board.marks_mut(number);
            if !marks.has(Marks::RETRANS) {
                marks.set(Marks::RETRANS);
                self.view.retrans_out += 1;
            }
        }
        let sent_at = Instant::from_nanos(self.board.get(number).sent_us * 1_000);
        let stamp_ms = self.ticks.stamp_ms(sent_at);
        self.recovery.note_retransmission(stamp_ms, segments);
    }

    /// `__tcp_retransmit_skb`.
    pub(super) fn send_again<O: Outbox>(&mut self, number: u64, segments: u32, io: &mut Io<'_, O>) {
        self.before_data();
        let departure_us = self.view.departure.as_micros_floor();
        let mut payload = 0;
        for number in number..number + u64::from(segments) {
            let mut sent = self.board.get(number);
            self.stamp(&mut sent, departure_us);
            sent.marks.set(Marks::EVER_RETRANS);
            self.board.set(number, &sent);
            match self.settings.profile.recovery {
                RecoveryStyle::RackPrr => self.rack.note_retransmission(number, sent.sent_us),
                RecoveryStyle::RateHalving { .. } => {
                    self.halving.note_retransmission(number, sent.sent_us, self.view.snd_nxt);
                }
                RecoveryStyle::Bsd | RecoveryStyle::Inflation => {}
            }
            self.counters.retransmits += 1;
            self.emit(sent.seq, sent.len, Flags::ACK, false, io);
            payload += u64::from(sent.len);
        }
        self.after_data(payload, u64::from(segments));
    }

    /// `tcp_fragment`: the skb that holds segment `number` ends with it from now on; the rest is one of its own.
    pub(super) fn split_after(&mut self, number: u64) {
        let marks = self.board.marks_mut(number);
        self.transmission.bursts_out += u64::from(!marks.has(Marks::BURST_END));
        marks.set(Marks::BURST_END);
    }

    /// `tcp_cwnd_validate`.
    fn validate_cwnd(&mut self, blocked: bool) {
        if self.view.snd_una >= self.transmission.usage_round_ends
            || blocked
            || (!self.view.is_cwnd_limited && self.view.packets_out > self.view.max_packets_out)
        {
            self.view.is_cwnd_limited = blocked;
            self.view.max_packets_out = self.view.packets_out;
            self.transmission.usage_round_ends = self.view.snd_nxt;
        }
        if self.view.window_used(&self.window) {
            self.transmission.cwnd_used = 0;
            self.transmission.validated_at = self.view.now;
            return;
        }
        self.transmission.cwnd_used = self.transmission.cwnd_used.max(self.view.packets_out);
        let idle = self.view.to_jiffies_floor(self.view.now.since(self.transmission.validated_at));
        if self.settings.slow_start_after_idle
            && idle >= self.timers.rto_ticks
            && !self.has_cong_control
        {
            self.application_limited();
        }
    }

    /// `tcp_cwnd_application_limited` (RFC 2861): a window not used for an RTO shrinks halfway to what was used.
    fn application_limited(&mut self) {
        if self.view.state == CaState::Open && !self.buffer.blocked {
            let used = self.transmission.cwnd_used.max(self.settings.initial_cwnd);
            if used < self.window.cwnd {
                self.window.ssthresh = self.window.current_ssthresh(self.view.state);
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
            self.transmission.cwnd_used = 0;
        }
        self.transmission.validated_at = self.view.now;
    }

    /// `tcp_slow_start_after_idle_check`: the window halves for every RTO of silence.
    fn restart_after_idle(&mut self) {
        if !self.settings.slow_start_after_idle
            || self.has_cong_control
            || self.transmission.data_segments == 0
            || self.buffer.written == self.view.snd_nxt
        {
            return;
        }
        let mut idle = self.ticks.at(self.view.now) - self.ticks.at(self.view.last_data_sent);
        if idle <= self.timers.rto_ticks {
            return;
        }
        self.cc.cwnd_event(&self.view, &mut self.window, Event::CwndRestart);
        self.window.ssthresh = self.window.current_ssthresh(self.view.state);
        let floor = self.settings.initial_cwnd.min(self.window.cwnd);
        let mut cwnd = self.window.cwnd;
        while idle > self.timers.rto_ticks && cwnd > floor {
            idle -= self.timers.rto_ticks;
            cwnd >>= 1;
        }
        self.window.cwnd = cwnd.max(floor);
        self.transmission.validated_at = self.view.now;
        self.transmission.cwnd_used = 0;
    }
}
