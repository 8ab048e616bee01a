//! Timing of acknowledgements: at once, with the next segment, after 40 ms, or compressed.
//!
//! Kernel: `__tcp_ack_snd_check`, `tcp_event_data_recv`, `tcp_send_delayed_ack`, `tcp_delack_timer_handler`,
//! `tcp_compressed_ack_kick` (tcp_input.c, tcp_output.c, tcp_timer.c).

use crate::host::HostSettings;
use crate::profile::DelayedAck;
use crate::segment::{Flags, Segment};
use dragstrip_units::{Duration, Instant};
use std::sync::Arc;

/// `TCP_MAX_QUICKACKS`.
const MAX_QUICK: u32 = 16;
/// `TCP_FASTRETRANS_THRESH`: duplicates sent uncompressed.
const UNCOMPRESSED_DUPLICATES: u32 = 3;
const TCP_MSS_DEFAULT: u32 = 536;
const TCP_MIN_MSS: u32 = 88;

#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see sockets.rs
pub(super) struct Acknowledger {
    /// Tick at which the delayed-ACK timer expires, and when it goes off.
    delack: Option<(u64, Instant)>,
    compressed_deadline: Instant,
    compressed: u32,
    /// Segments still to be acknowledged at once (`icsk_ack.quick`).
    quick: u32,
    /// Largest segment seen (`rcv_mss`).
    rcv_mss: u32,
    /// Length of the last segment, if it may be a full one of a smaller size (`last_seg_size`).
    last_len: u32,
    /// `ICSK_ACK_NOW`.
    now: bool,
    /// Something waits to be acknowledged (`ICSK_ACK_SCHED`).
    scheduled: bool,
    /// A short or pushed segment was read (`ICSK_ACK_PUSHED`).
    pushed: bool,
    /// Estimated spacing of data, ticks (`ato`); 0: no data yet.
    ato: u64,
    last_data_tick: u64,
    pub(super) host: Arc<HostSettings>,
    /// Duplicates sent for this `rcv_nxt`.
    duplicates_of: u64,
    duplicates: u32,
}

/// Inputs of the decision.
pub(super) struct Situation {
    pub now: Instant,
    /// Bytes received since the last acknowledgement.
    pub unacked: u64,
    /// The window that would be offered is at least the one offered last.
    pub window_holds: bool,
    /// Less than half of the buffer is free.
    pub tight: bool,
    /// The application reads at once.
    pub read: bool,
    /// The read opens the window so far that the sender is told.
    pub opened: bool,
    /// Something is queued out of order.
    pub hole: bool,
    pub sack: bool,
    pub rcv_nxt: u64,
    pub rcv_rtt_us: u64,
    pub srtt_us_x8: u32,
}

impl Acknowledger {
    pub fn new(settings: &Arc<HostSettings>) -> Self {
        Self {
            quick: 0,
            ato: 0,
            last_data_tick: 0,
            // tcp_initialize_rcv_mss: TCP_MSS_DEFAULT, less where segments are smaller.
            rcv_mss: match settings.profile.delayed_ack {
                DelayedAck::Estimated | DelayedAck::EverySecond => settings.mss().clamp(88, 536),
                // tcp_v4_syn_recv_sock: mss_clamp.
                DelayedAck::Spacing => settings.advmss(),
            },
            last_len: 0,
            now: false,
            scheduled: false,
            pushed: false,
            delack: None,
            compressed: 0,
            compressed_deadline: Instant::NEVER,
            duplicates: 0,
            duplicates_of: 0,
            host: Arc::clone(settings),
        }
    }

    #[inline]
    fn style(&self) -> DelayedAck {
        self.host.profile.delayed_ack
    }

    #[inline]
    fn min_ticks(&self) -> u64 {
        u64::from(self.host.delack_min_ticks)
    }

    #[inline]
    pub fn deadline(&self) -> Instant {
        self.delack.map_or(Instant::NEVER, |delack| delack.1).min(self.compressed_deadline)
    }

    /// `tcp_initialize_rcv_mss`: they are taken for no longer than one's own.
    pub fn cap_segment_size(&mut self, mss: u32) {
        if self.style() != DelayedAck::Spacing {
            self.rcv_mss = self.rcv_mss.min(mss.max(TCP_MIN_MSS));
        }
    }

    /// Estimated size of the peer's segments (`rcv_mss`), bytes.
    #[inline]
    pub fn segment_size(&self) -> u32 {
        self.rcv_mss
    }

    /// True when ACKs are delayed by the estimated spacing of data.
    #[inline]
    pub fn is_estimated(&self) -> bool {
        self.style() == DelayedAck::Estimated
    }

    #[inline]
    pub fn owes(&self) -> bool {
        self.scheduled
    }

    pub fn acknowledge_now(&mut self) {
        self.now = true;
        self.scheduled = true;
    }

    /// ACKs are being held back by SACK compression.
    #[inline]
    pub fn is_compressing(&self) -> bool {
        self.compressed > 0
    }

    /// Data out of order wait to be acknowledged (`inet_csk_schedule_ack`).
    pub fn schedule(&mut self, tick: u64, rto_ticks: u64) {
        self.scheduled = true;
        if self.style() == DelayedAck::Spacing {
            self.measure_spacing(tick, rto_ticks);
        }
    }

    /// One more segment is acknowledged at once (`quick |= 1`).
    pub fn quick_once(&mut self) {
        self.quick |= 1;
    }

    /// `tcp_incr_quickack`: half a window's worth, at most `limit`.
    fn add_quick(&mut self, limit: u32, window: u64) {
        let half = (window / (2 * u64::from(self.rcv_mss))).min(u64::from(limit)) as u32;
        self.quick = self.quick.max(if half == 0 { 2 } else { half });
    }

    /// `tcp_enter_quickack_mode`.
    pub fn enter_quick(&mut self, limit: u32, window: u64) {
        if self.style() == DelayedAck::Spacing {
            self.quick = 1;
            return;
        }
        self.add_quick(limit, window);
        self.ato = self.min_ticks();
    }

    /// `tcp_event_data_recv`: measures segment size and spacing.
    pub fn on_data(&mut self, segment: &Segment, tick: u64, window: u64, rto_ticks: u64) {
        if self.style() != DelayedAck::Spacing {
            self.estimate(segment, tick, window, rto_ticks);
            return;
        }
        self.scheduled = true;
        self.measure_spacing(tick, rto_ticks);
        self.measure_segment(self.full_len(segment), segment.flags.has(Flags::PSH));
    }

    /// The length of one segment: several in one packet have their own (gso_size).
    #[inline]
    fn full_len(&self, segment: &Segment) -> u32 {
        let len = u32::from(segment.len);
        if len <= self.host.advmss() {
            return len;
        }
        self.host.advmss() - if segment.timestamps().is_some() { 12 } else { 0 }
    }

    /// The same in all kernels but 2.2.
    #[inline]
    pub fn estimate(&mut self, segment: &Segment, tick: u64, window: u64, rto_ticks: u64) {
        self.scheduled = true;
        let len = self.full_len(segment);
        let last_len = std::mem::take(&mut self.last_len);
        let pushed = segment.flags.has(Flags::PSH);
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(self.host.advmss());
            // The end of an application's write: more may not come soon.
            self.pushed |= self.host.profile.full_push_acknowledged && pushed;
        } else if self.may_be_full(segment, pushed) && len == last_len {
            // Two of the same length in a row: the sender's segments are smaller now.
            self.rcv_mss = len;
        } else {
            self.last_len = if self.may_be_full(segment, pushed) { len } else { 0 };
            self.pushed = true;
        }
        if self.ato == 0 {
            self.add_quick(MAX_QUICK, window);
            self.ato = self.min_ticks();
        } else {
            let gap = tick - self.last_data_tick;
            if gap <= self.min_ticks() / 2 {
                self.ato = (self.ato >> 1) + self.min_ticks() / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto_ticks);
            } else if gap > rto_ticks {
                // The sender must have restarted its window: help it along.
                self.add_quick(MAX_QUICK, window);
            }
        }
        self.last_data_tick = tick;
    }

    /// True when a segment shorter than those before may still be a full one (`tcp_measure_rcv_mss`): options count,
    /// and a push marks the end of a write.
    fn may_be_full(&self, segment: &Segment, pushed: bool) -> bool {
        let least = if pushed { TCP_MSS_DEFAULT } else { TCP_MIN_MSS };
        let options = if segment.timestamps().is_some() { 12 } else { 0 };
        u32::from(segment.len) + options >= least
    }

    /// `tcp_delack_estimator` of 2.2: the first segment is acknowledged at once; after that the delay is half the last one
    /// and the time since the last segment.
    fn measure_spacing(&mut self, tick: u64, rto_ticks: u64) {
        if self.ato == 0 {
            self.ato = 1;
            self.quick = 1;
        } else {
            let gap = (tick - self.last_data_tick).max(1);
            self.ato = if gap > rto_ticks { rto_ticks } else { self.ato / 2 + gap };
            self.quick = 0;
        }
        self.last_data_tick = tick;
    }

    /// `tcp_measure_rcv_mss` and `tcp_remember_ack` of 2.2: two segments of the same length in a row are full ones; the end of a
    /// short write is not sat on.
    fn measure_segment(&mut self, len: u32, pushed: bool) {
        if len > self.rcv_mss || (len >= 536 && len == self.last_len) {
            self.rcv_mss = len;
        }
        self.last_len = if len >= 536 { len } else { 0 };
        if pushed && len < self.host.advmss() / 2 {
            self.ato = self.ato.min(u64::from(self.host.delack_max_ticks / 10));
        }
    }

    /// `__tcp_ack_snd_check`, and what the reading application triggers (`tcp_cleanup_rbuf`).
    pub fn decide(&mut self, situation: &Situation) -> bool {
        match self.style() {
            DelayedAck::Estimated => {}
            DelayedAck::EverySecond => return self.decide_pairs(situation),
            DelayedAck::Spacing => return self.decide_by_spacing(situation),
        }
        if !self.scheduled {
            return false;
        }
        let more_than_one = situation.unacked > u64::from(self.rcv_mss);
        if more_than_one && situation.tight {
            self.quick = 0;
        }
        if (more_than_one && situation.window_holds) || self.quick > 0 || self.now {
            return true;
        }
        if !situation.hole {
            return self.acknowledges_read(situation)
                || self.delay(
                    situation.now,
                    self.host.ticks.at(situation.now),
                    situation.srtt_us_x8,
                );
        }
        if !situation.sack || self.compressed >= self.host.comp_sack_nr {
            return true;
        }
        if self.duplicates_of != situation.rcv_nxt {
            self.duplicates_of = situation.rcv_nxt;
            self.duplicates = 0;
        }
        if self.duplicates < UNCOMPRESSED_DUPLICATES {
            self.duplicates += 1;
            return true;
        }
        self.compress(situation);
        false
    }

    /// The same for data in order that an application has read at once, with nothing out of order: whatever makes more than one
    /// segment, or ends a write, is acknowledged. `opened`: what it has read opens the window.
    #[inline]
    pub fn decide_read(
        &mut self,
        now: Instant,
        tick: u64,
        unacked: u64,
        opened: bool,
        srtt_us_x8: u32,
    ) -> bool {
        unacked > u64::from(self.rcv_mss)
            || self.quick > 0
            || self.now
            || self.pushed
            || opened
            || self.delay(now, tick, srtt_us_x8)
    }

    /// True when a read releases an acknowledgement (`tcp_cleanup_rbuf`): more than one segment, or a pushed one if
    /// all is read, or a window that opens.
    pub fn acknowledges_read(&self, situation: &Situation) -> bool {
        let more_than_one = situation.unacked > u64::from(self.rcv_mss);
        let all_read = self.pushed && !situation.hole;
        let due = self.scheduled && situation.unacked > 0 && (more_than_one || all_read);
        situation.read && (due || situation.opened)
    }

    /// The buffer is tight (`__tcp_select_window`): segments are no longer acknowledged one by one.
    #[inline]
    pub fn leave_quick(&mut self) {
        self.quick = 0;
    }

    /// FreeBSD's `DELAY_ACK`: the first segment sets a timer, the second finds it running.
    fn decide_pairs(&mut self, situation: &Situation) -> bool {
        if !self.scheduled {
            return false;
        }
        if self.now || situation.hole || self.delack.is_some() || self.host.pair_ticks == 0 {
            return true;
        }
        let pair_ticks = u64::from(self.host.pair_ticks);
        let expires = self.host.ticks.at(situation.now) + pair_ticks;
        self.delack = Some((expires, self.host.ticks.timer(situation.now, pair_ticks)));
        false
    }

    /// `__tcp_ack_snd_check`, `tcp_send_delayed_ack` of 2.2.
    fn decide_by_spacing(&mut self, situation: &Situation) -> bool {
        if !self.scheduled {
            return false;
        }
        let full = situation.unacked >= 2 * u64::from(self.rcv_mss);
        if full || self.quick > 0 || self.now || situation.hole {
            return true;
        }
        let delay = self.ato.min(u64::from(self.host.delack_max_ticks * 5 / 2));
        let expires = self.host.ticks.at(situation.now) + delay;
        if self.delack.is_none_or(|(pending, _)| expires < pending) {
            self.delack = Some((expires, self.host.ticks.timer(situation.now, delay)));
        }
        false
    }

    /// SACK compression: at most one ACK per `tcp_comp_sack_rtt_percent` of the RTT or per `tcp_comp_sack_delay_ns`.
    fn compress(&mut self, situation: &Situation) {
        self.compressed += 1;
        if self.compressed_deadline != Instant::NEVER {
            return;
        }
        let mut rtt_us_x8 = situation.rcv_rtt_us << 3;
        if situation.srtt_us_x8 > 0 {
            rtt_us_x8 = rtt_us_x8.min(u64::from(situation.srtt_us_x8));
        }
        let share = rtt_us_x8 * (1_000 >> 3) * u64::from(self.host.comp_sack_rtt_percent) / 100;
        let delay = self.host.comp_sack_delay.min(Duration::from_nanos(share));
        // Nothing else interrupts the processor, so the timer goes off at the end of its slack.
        self.compressed_deadline = situation.now + delay + self.host.comp_sack_slack;
    }

    /// `tcp_send_delayed_ack`, in the tick that it is; whether the timer was so close that the ACK goes out at once.
    fn delay(&mut self, now: Instant, tick: u64, srtt_us_x8: u32) -> bool {
        let max_ticks = u64::from(self.host.delack_max_ticks);
        let mut ato = self.ato;
        if ato > self.min_ticks() {
            let mut limit = if self.pushed { max_ticks } else { max_ticks * 5 / 2 };
            if srtt_us_x8 > 0 {
                let rtt = self.host.ticks.count_micros_ceil(u64::from(srtt_us_x8 >> 3));
                limit = limit.min(rtt.max(self.min_ticks()));
            }
            ato = ato.min(limit);
        }
        ato = ato.min(max_ticks);
        let mut expires = tick + ato;
        if let Some((pending, _)) = self.delack {
            if pending <= tick + (ato >> 2) {
                return true;
            }
            expires = expires.min(pending);
        }
        if self.delack.is_none_or(|(pending, _)| pending != expires) {
            self.delack = Some((expires, self.host.ticks.timer(now, expires - tick)));
        }
        false
    }

    /// A timer is due; whether to acknowledge.
    pub fn on_deadline(&mut self, now: Instant, rto_ticks: u64) -> bool {
        let mut send = false;
        if self.compressed_deadline <= now {
            self.compressed_deadline = Instant::NEVER;
            send = self.compressed > 0;
        }
        if self.delack.is_some_and(|(_, at)| at <= now) {
            self.delack = None;
            if self.scheduled {
                if self.style() != DelayedAck::Spacing {
                    // Missed: data comes more slowly than thought.
                    self.ato = (self.ato << 1).min(rto_ticks);
                }
                send = true;
            }
        }
        send
    }

    /// Data that cannot be taken have to be answered (`out_of_window` in `tcp_data_queue`).
    pub fn refuse(&mut self, window: u64) {
        self.enter_quick(MAX_QUICK, window);
        self.scheduled = true;
    }

    /// Nothing waits to be acknowledged, or is about to be.
    pub fn is_at_rest(&self) -> bool {
        !self.scheduled
            && !self.now
            && !self.pushed
            && self.delack.is_none()
            && self.compressed == 0
            && self.compressed_deadline == Instant::NEVER
    }

    /// `tcp_event_ack_sent`.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        if self.scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 && self.style() != DelayedAck::Spacing {
                self.ato = self.min_ticks();
            }
        }
        self.compressed = 0;
        self.compressed_deadline = Instant::NEVER;
        self.scheduled = false;
        self.now = false;
        self.pushed = false;
        self.delack = None;
    }
}
