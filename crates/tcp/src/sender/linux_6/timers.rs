//! Retransmission timeout, tail loss probe, reordering timer, window probe: one timer, four meanings.
//!
//! Kernel: `tcp_retransmit_timer`, `tcp_rearm_rto`, `tcp_schedule_loss_probe`, `tcp_send_loss_probe`,
//! `tcp_process_tlp_ack`. RFC 6298, RFC 8985 §7.

use super::Linux6;
use super::recovery::Episode;
use crate::segment::Outbox;
use crate::sender::core::{AckFlags, Core, Io, Push, Stack};
use dragstrip_cc::{CaState, CongestionControl, Event};
use dragstrip_units::Duration;

/// Purpose of the timer (`icsk_pending`).
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
    /// Nothing is in flight and nothing may go (`ICSK_TIME_PROBE0`; `window_probe.rs`).
    Window,
}

/// A tail loss probe whose answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// `snd_nxt` when it was sent (`tlp_high_seq`).
    pub end: u64,
    /// It was a retransmission, not new data.
    retransmitted: bool,
}

impl Linux6 {
    #[inline]
    pub(super) fn set_timer(&mut self, core: &mut Core, pending: Pending, delay: u64) {
        self.pending = pending;
        core.set_timer(delay);
    }

    pub(super) fn clear_timer(&mut self, core: &mut Core) {
        self.pending = Pending::None;
        core.timer.clear();
    }

    /// `tcp_set_xmit_timer`.
    pub(super) fn set_transmit_timer(&mut self, core: &mut Core) {
        if !self.schedule_probe(core, true) {
            self.rearm_rto(core);
        }
    }

    /// True when the next transmission will set the timer anyway: the usual case, in which setting it
    /// for the ACK too would be wasted work.
    #[inline]
    pub(super) fn sets_timer_when_sending(&self, core: &Core) -> bool {
        core.view.state == CaState::Open && core.settings.tail_loss_probe && core.settings.sack
    }

    /// µs until the head's timeout, counted from when it was last sent (`tcp_rto_delta_us`).
    fn rto_left_us(&self, core: &Core) -> i64 {
        let sent_us = core.board.front_sent_us().unwrap_or(0);
        (sent_us + core.settings.ticks.to_micros(core.timer.rto_ticks)) as i64
            - core.now_us() as i64
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm_rto(&mut self, core: &mut Core) {
        if core.view.packets_out == 0 {
            if self.pending != Pending::Window {
                self.clear_timer(core);
            }
            return;
        }
        let mut delay = core.timer.rto_ticks;
        if matches!(self.pending, Pending::Reordering | Pending::LossProbe) {
            // The time already spent on the other timer counts.
            delay = core.settings.ticks.count_micros_ceil(self.rto_left_us(core).max(1) as u64);
        }
        self.set_timer(core, Pending::Retransmit, delay);
    }

    /// `tcp_schedule_loss_probe`.
    pub(super) fn schedule_probe(&mut self, core: &mut Core, advancing: bool) -> bool {
        if !core.settings.tail_loss_probe
            || !core.settings.sack
            || core.view.packets_out == 0
            || !matches!(core.view.state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut delay = if core.view.srtt_us_x8 > 0 {
            // With one segment out the receiver may be sitting on a delayed ACK.
            let alone = core.view.packets_out == 1;
            let extra_us = if alone {
                u64::from(core.settings.rto_min_us)
            } else {
                core.settings.timeout_min_us()
            };
            Duration::from_micros(u64::from(core.view.srtt_us_x8 >> 2) + extra_us)
        } else {
            core.settings.rto_initial
        };
        let rto_us = if advancing {
            core.settings.ticks.to_micros(core.timer.rto_ticks) as i64
        } else {
            self.rto_left_us(core)
        };
        if rto_us > 0 {
            delay = delay.min(Duration::from_micros(rto_us as u64));
        }
        self.set_timer(core, Pending::LossProbe, core.settings.ticks.count_span_ceil(delay));
        true
    }

    /// `tcp_write_timer_handler`.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn on_pending<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        match self.pending {
            Pending::None => self.clear_timer(core),
            Pending::Reordering => self.on_reordering_timer(core, io),
            Pending::LossProbe => self.send_probe(core, io),
            Pending::Retransmit => self.on_timeout(core, io),
            Pending::Window => self.probe_window(core, io),
        }
    }

    /// `tcp_retransmit_timer`.
    fn on_timeout<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.clear_timer(core);
        if core.view.packets_out == 0 {
            return;
        }
        core.counters.rto_count += 1;
        self.enter_loss(core);
        self.linux.timeouts += 1;
        self.retransmit_burst(core, core.board.head(), 1, io);
        core.back_off();
        self.set_timer(core, Pending::Retransmit, core.timer.rto_ticks);
    }

    /// `tcp_rack_reo_timeout`.
    fn on_reordering_timer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        // What the timer was for stays known: the timeout then counts from the head's transmission.
        core.timer.clear();
        if self.rack_timeout(core) {
            if core.view.state != CaState::Recovery {
                self.enter_recovery(core, false);
                if let Episode::Reduction(prr) = &mut self.episode
                    && !core.has_cong_control
                {
                    prr.reduce(core, 1, 1, false);
                }
            }
            self.retransmit(core, io);
        }
        if self.pending != Pending::Retransmit {
            self.rearm_rto(core);
        }
    }

    /// `tcp_send_loss_probe`: one segment, to provoke a SACK of what the tail lost.
    fn send_probe<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.timer.clear();
        if self.probe.is_none() {
            let unsent = core.unsent();
            let sends_new = unsent > 0 && core.room() >= u64::from(core.view.mss).min(unsent);
            let any_sent = if sends_new {
                let before = core.view.packets_out;
                self.output(core, Push::Probe, io);
                core.view.packets_out > before
            } else if core.view.packets_out > 0 {
                self.retransmit_tail(core, io);
                true
            } else {
                false
            };
            if any_sent {
                self.probe = Some(Probe { end: core.view.snd_nxt, retransmitted: !sends_new });
                // The timeout runs from now, not from the head's transmission.
                self.pending = Pending::None;
            }
        }
        self.rearm_rto(core);
    }

    /// `tcp_process_tlp_ack`.
    pub(super) fn process_probe_ack(&mut self, core: &mut Core, acked_to: u64, flags: AckFlags) {
        let Some(probe) = self.probe else { return };
        let progress = AckFlags::ADVANCED.with(AckFlags::NOT_DUPLICATE).with(AckFlags::DATA_SACKED);
        if acked_to < probe.end {
            return;
        }
        if !probe.retransmitted || flags.has(AckFlags::DSACK_OF_PROBE) {
            self.probe = None;
        } else if acked_to > probe.end {
            // The probe repaired a loss: one reduction, all at once.
            core.cc.cwnd_event(&core.view, &mut core.window, Event::TlpRecovery);
            self.init_reduction(core);
            self.set_state(core, CaState::Cwr);
            self.end_reduction(core);
            self.try_keep_open(core);
        } else if !flags.any(progress) {
            self.probe = None;
        }
    }
}
