//! Retransmission timeout, tail loss probe, reordering timer, window probe: one timer, four meanings.
//!
//! Kernel: `tcp_retransmit_timer`, `tcp_rearm_rto`, `tcp_schedule_loss_probe`, `tcp_send_loss_probe`,
//! `tcp_process_tlp_ack`. RFC 6298, RFC 8985 §7.

use super::ack::News;
use super::transmit::Push;
use super::{Io, Sender};
use crate::profile::{RecoveryStyle, Settings};
use crate::segment::Outbox;
use dragstrip_cc::CaState;
use dragstrip_units::{Duration, Instant};

/// `TCP_TIMEOUT_FALLBACK`.
const RTO_FALLBACK: Duration = Duration::from_secs(3);

/// What the timer is for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// Not set.
    None,
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe.
    LossProbe,
    /// RACK waits for a reordered segment.
    Reordering,
    /// Nothing is in flight and nothing may go (`ICSK_TIME_PROBE0`).
    Window,
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    pending: Pending,
    deadline: Instant,
    /// Retransmission timeout with its backoff, ticks.
    pub rto_ticks: u64,
    /// `snd_nxt` when a probe was sent (`tlp_high_seq`).
    probe_end: Option<u64>,
    /// The probe was a retransmission, not new data.
    probe_retransmitted: bool,
    pub max_ticks: u64,
    min_us: u32,
}

impl Timers {
    pub fn new(settings: &Settings) -> Self {
        let ticks = settings.ticks();
        Self {
            pending: Pending::None,
            deadline: Instant::NEVER,
            rto_ticks: ticks.count_span_ceil(settings.rto_initial),
            probe_end: None,
            probe_retransmitted: false,
            max_ticks: ticks.count_span_ceil(settings.rto_max),
            min_us: settings.rto_min.as_micros_floor() as u32,
        }
    }

    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    pub fn pending(&self) -> Pending {
        self.pending
    }

    pub fn probe_end(&self) -> Option<u64> {
        self.probe_end
    }

    pub fn forget_probe(&mut self) {
        self.probe_end = None;
    }

    pub fn min_us(&self) -> u32 {
        self.min_us
    }
}

impl Sender {
    #[inline]
    pub(super) fn set_timer(&mut self, pending: Pending, delay: u64) {
        self.timers.pending = pending;
        self.timers.deadline = self.ticks.timer(self.view.now, delay.min(self.timers.max_ticks));
    }

    pub(super) fn clear_timer(&mut self) {
        self.timers.pending = Pending::None;
        self.timers.deadline = Instant::NEVER;
    }

    /// `tcp_set_rto`: from the estimator, dropping any backoff.
    pub(super) fn set_rto(&mut self) {
        self.timers.rto_ticks = self.rtt.rto_ticks(self.ticks, self.timers.max_ticks);
    }

    /// RFC 6298 §5.7: the SYN was lost and gave no sample, so the network may be slower than the
    /// first timeout assumed (`tcp_init_metrics`).
    pub(super) fn fall_back_to_cautious_rto(&mut self) {
        self.timers.rto_ticks = self.ticks.count_span_ceil(RTO_FALLBACK);
    }

    /// `tcp_set_xmit_timer`.
    pub(super) fn set_transmit_timer(&mut self) {
        if !self.schedule_probe(true) {
            self.rearm_rto();
        }
    }

    /// µs until the head's timeout, counted from when it was last sent (`tcp_rto_delta_us`).
    fn rto_left_us(&self) -> i64 {
        let sent_us = self.board.front().map_or(0, |sent| sent.sent_us);
        (sent_us + self.ticks.to_micros(self.timers.rto_ticks)) as i64 - self.now_us() as i64
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm_rto(&mut self) {
        if self.view.packets_out == 0 {
            self.clear_timer();
            return;
        }
        let mut delay = self.timers.rto_ticks;
        if matches!(self.timers.pending, Pending::Reordering | Pending::LossProbe) {
            // The time already spent on the other timer counts.
            delay = self.ticks.count_micros_ceil(self.rto_left_us().max(1) as u64);
        }
        self.set_timer(Pending::Retransmit, delay);
    }

    /// `tcp_schedule_loss_probe`.
    pub(super) fn schedule_probe(&mut self, advancing: bool) -> bool {
        if !self.settings.tail_loss_probe
            || !self.settings.sack
            || self.view.packets_out == 0
            || !matches!(self.view.state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut delay = if self.view.srtt_us_x8 > 0 {
            // With one segment out the receiver may be sitting on a delayed ACK.
            let alone = self.view.packets_out == 1;
            let extra_us =
                if alone { u64::from(self.timers.min_us) } else { self.settings.timeout_min_us() };
            self.ticks.count_micros_ceil(u64::from(self.view.srtt_us_x8 >> 2) + extra_us)
        } else {
            self.ticks.count_span_ceil(self.settings.rto_initial)
        };
        let rto_us = if advancing {
            self.ticks.to_micros(self.timers.rto_ticks) as i64
        } else {
            self.rto_left_us()
        };
        if rto_us > 0 {
            delay = delay.min(self.ticks.count_micros_ceil(rto_us as u64));
        }
        self.set_timer(Pending::LossProbe, delay);
        true
    }

    /// `tcp_write_timer_handler`.
    pub(super) fn on_timer<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        match self.timers.pending {
            Pending::None => self.clear_timer(),
            Pending::Reordering => self.on_reordering_timer(io),
            Pending::LossProbe => self.send_probe(io),
            Pending::Retransmit => self.on_timeout(io),
            Pending::Window => self.probe_window(io),
        }
    }

    /// `tcp_check_probe_timer`: with nothing in flight no ACK would ever let the next segment go. A window of no
    /// packets at all is what `tcp_moderate_cwnd` of 2.6 leaves where `reordering` is 0.
    #[cold]
    pub(super) fn wait_for_window(&mut self) {
        if self.timers.pending == Pending::None {
            self.set_timer(Pending::Window, self.timers.rto_ticks);
        }
    }

    /// `tcp_send_probe0`, `tcp_write_wakeup`: one segment, whatever the congestion window says.
    fn probe_window<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.clear_timer();
        if self.view.packets_out == 0 {
            self.write_xmit(io, Push::Probe);
        }
    }

    /// `tcp_retransmit_timer`.
    fn on_timeout<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.clear_timer();
        if self.view.packets_out == 0 {
            return;
        }
        self.counters.rto_count += 1;
        match self.settings.profile.recovery {
            RecoveryStyle::Bsd => return self.time_out_bsd(io),
            RecoveryStyle::Inflation => return self.time_out_inflating(io),
            RecoveryStyle::RackPrr => self.enter_loss(),
            RecoveryStyle::RateHalving { .. } => self.time_out_halving(),
        }
        self.recovery.timeouts += 1;
        self.retransmit_head(io);
        self.timers.rto_ticks = (self.timers.rto_ticks << 1).min(self.timers.max_ticks);
        self.set_timer(Pending::Retransmit, self.timers.rto_ticks);
    }

    /// `tcp_rack_reo_timeout`.
    fn on_reordering_timer<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        // What the timer was for stays known: the timeout then counts from the head's transmission.
        self.timers.deadline = Instant::NEVER;
        if self.rack_timeout() {
            if self.view.state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.has_cong_control {
                    self.reduce(1, 1, false);
                }
            }
            self.retransmit(io);
        }
        if self.timers.pending != Pending::Retransmit {
            self.rearm_rto();
        }
    }

    /// `tcp_send_loss_probe`: one segment, to provoke a SACK of what the tail lost.
    fn send_probe<O: Outbox>(&mut self, io: &mut Io<'_, O>) {
        self.timers.deadline = Instant::NEVER;
        if self.timers.probe_end.is_none() {
            self.timers.probe_retransmitted = false;
            let before = self.view.packets_out;
            let room = self.window_end.saturating_sub(self.view.snd_nxt);
            let sent = if self.buffer.written > self.view.snd_nxt
                && room >= u64::from(self.view.mss).min(self.buffer.written - self.view.snd_nxt)
            {
                self.write_xmit(io, Push::Probe);
                self.view.packets_out > before
            } else if self.view.packets_out > 0 {
                self.timers.probe_retransmitted = true;
                self.retransmit_tail(io);
                true
            } else {
                false
            };
            if sent {
                self.timers.probe_end = Some(self.view.snd_nxt);
                // The timeout runs from now, not from the head's transmission.
                self.timers.pending = Pending::None;
            }
        }
        self.rearm_rto();
    }

    /// `tcp_process_tlp_ack`.
    pub(super) fn process_probe_ack(&mut self, acked_to: u64, news: News) {
        let Some(probe_end) = self.timers.probe_end else { return };
        if acked_to < probe_end {
            return;
        }
        if !self.timers.probe_retransmitted || news.has(News::DSACK_OF_PROBE) {
            self.timers.probe_end = None;
        } else if acked_to > probe_end {
            // The probe repaired a loss: one reduction, all at once.
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        } else if !news.any(News::ADVANCED.with(News::NOT_DUPLICATE).with(News::DATA_SACKED)) {
            self.timers.probe_end = None;
        }
    }
}
