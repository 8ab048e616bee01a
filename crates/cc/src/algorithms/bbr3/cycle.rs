//! State transitions.

use super::bounds::{Acks, SLOPE_ROUNDS_MAX, is_too_high};
use super::mode::UP_GAIN;
use super::{
    INFINITE, LowInFlight, MIN_RTT_WINDOW_S, Mode, Model, PROBE_RTT_WINDOW_S, Phase, UNIT, Version,
};
use crate::algorithms::bbr::probe_rtt_jiffies;
use crate::{CaState, RateSample, Response, View, Window};

/// ACKs with losses are counted in 4 bits (`loss_events_in_round`).
const LOSS_EVENTS_MAX: u8 = 0xf;
/// Between probes: 2 s (`bbr_bw_probe_base_us`) ...
pub(super) const PROBE_WAIT_US: u32 = 2_000_000;
/// ... and up to 1 s more (`bbr_bw_probe_rand_us`), ...
pub(super) const PROBE_WAIT_RANDOM_US: u32 = 1_000_000;
/// ... or as many rounds as Reno would need to refill the pipe, 63 at most (`bbr_bw_probe_max_rounds`).
const PROBE_WAIT_ROUNDS_MAX: u32 = 63;
/// DRAIN gives up after more rounds than these: the path may have become slower than `max_bw` (draft-ietf-ccwg-bbr, §5.3.2).
const DRAIN_ROUNDS_MAX: u8 = 3;
/// The count of those rounds begins at 0 or 1 (`bbr_bw_probe_rand_rounds`).
const PROBE_RANDOM_ROUNDS: u32 = 2;

impl<V: Version> Model<V> {
    /// `bbr_check_loss_too_high_in_startup`.
    pub(super) fn check_loss_in_startup(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
    ) {
        if self.full.reached {
            return;
        }
        if sample.losses > 0 {
            self.signals.loss_events = (self.signals.loss_events + 1).min(LOSS_EVENTS_MAX);
        }
        if !self.signals.round_start {
            return;
        }
        if view.state == CaState::Recovery
            && self.signals.loss_events >= V::FULL_LOSS_CNT
            && (is_too_high(sample) || self.marks_are_too_many(sample))
        {
            self.end_startup(view, window);
        } else {
            self.signals.loss_events = 0;
        }
    }

    /// `bbr_handle_queue_too_high_in_startup`.
    pub(super) fn end_startup(&mut self, view: &View, window: &Window) {
        self.full.reached = true;
        let bdp = self.in_flight(view, window, self.max_bw(), UNIT);
        let latest = if V::IS_SECOND { 0 } else { self.signals.inflight_latest };
        self.upper.inflight_hi = bdp.max(latest);
    }

    /// `bbr_check_drain`, and `BBRCheckDrainDone` of the draft, which does not drain for ever.
    pub(super) fn check_drain(&mut self, view: &View, window: &mut Window) {
        let target = self.in_flight(view, window, self.max_bw(), UNIT);
        if self.mode == Mode::Startup && self.full.reached {
            self.enter(Mode::Drain);
            // For the curious; it never asks for it.
            window.ssthresh = target;
            self.signals.reset();
            self.reset_marks();
            self.drain_rounds = 0;
        } else if self.mode == Mode::Drain && self.round_start {
            self.drain_rounds = self.drain_rounds.saturating_add(1);
        }
        if self.mode == Mode::Drain
            && ((!V::IS_SECOND && self.drain_rounds > DRAIN_ROUNDS_MAX)
                || self.in_net_at_departure(view, window, view.in_flight()) <= target)
        {
            self.start_down(view);
        }
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
        bw: u32,
    ) {
        if !self.full.reached || self.adapt_upper_bounds(view, window, sample) {
            return;
        }
        let Mode::ProbeBw(phase) = self.mode else { return };
        match phase {
            Phase::Cruise => {
                self.probe_when_due(view, window);
            }
            Phase::Refill if self.round_start => {
                self.upper.samples = true;
                self.start_up(view, window, bw);
            }
            Phase::Refill => {}
            Phase::Up => {
                if self.is_probe_done(view, window, sample, bw) {
                    self.upper.prev_too_high = false;
                    self.start_down(view);
                }
            }
            Phase::Down => {
                if !self.probe_when_due(view, window) && self.is_drained(view, window, sample) {
                    self.start_cruise();
                }
            }
        }
    }

    /// `bbr_check_time_to_probe_bw`; true if a probe has begun.
    fn probe_when_due(&mut self, view: &View, window: &Window) -> bool {
        if let Some(rounds) = self.marks_have_ceased(view) {
            self.start_refill(view);
            self.upper.rounds = rounds.min(SLOPE_ROUNDS_MAX);
            return true;
        }
        let due = self.is_time_to_probe(view, window);
        if due {
            self.start_refill(view);
        }
        due
    }

    /// True after the wait between probes, or as many rounds as Reno would need.
    fn is_time_to_probe(&self, view: &View, window: &Window) -> bool {
        let age_us = view.delivered_at.as_micros_floor().saturating_sub(self.cycle_us);
        let rounds = self.target_in_flight(view, window).min(PROBE_WAIT_ROUNDS_MAX);
        age_us > u64::from(self.probe_wait_us) || u32::from(self.rounds_since_probe) >= rounds
    }

    /// True when UP has reached the limit of its probe.
    fn is_probe_done(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
        bw: u32,
    ) -> bool {
        let in_flight = self.in_net_at_departure(view, window, sample.prior_in_flight);
        if self.upper.prev_too_high && in_flight >= self.upper.inflight_hi {
            self.upper.stopped_risky = true;
            return true;
        }
        if V::IS_SECOND {
            // Until a quarter of a BDP stands in the queue (`bbr_bw_probe_pif_gain`).
            let age_us = view.delivered_at.as_micros_floor().saturating_sub(self.cycle_us);
            let most = self.in_flight(view, window, self.max_bw(), UP_GAIN);
            return age_us > u64::from(self.min_rtt_us) && in_flight >= most;
        }
        if self.is_bounded(view, window) {
            // Bandwidth cannot grow before the bound has.
            self.full.restart(bw);
            return false;
        }
        self.full.now
    }

    /// `bbr_check_time_to_cruise`.
    fn is_drained(&self, view: &View, window: &Window, sample: &RateSample) -> bool {
        let in_flight = self.in_net_at_departure(view, window, sample.prior_in_flight);
        in_flight <= self.upper.with_headroom()
            && in_flight <= self.in_flight(view, window, self.max_bw(), UNIT)
    }

    /// `bbr_start_bw_probe_down`.
    pub(super) fn start_down(&mut self, view: &View) {
        self.signals.reset();
        self.reset_marks();
        self.upper.per_raise = INFINITE;
        self.rounds_since_probe = self.chance.below(PROBE_RANDOM_ROUNDS) as u8;
        self.probe_wait_us = PROBE_WAIT_US + self.chance.below(PROBE_WAIT_RANDOM_US);
        self.cycle_us = view.delivered_at.as_micros_floor();
        self.upper.acks = Acks::Stopping;
        self.next_round_delivered = view.delivered;
        self.enter(Mode::ProbeBw(Phase::Down));
    }

    /// `bbr_start_bw_probe_cruise`.
    fn start_cruise(&mut self) {
        if self.signals.inflight_lo != INFINITE {
            self.signals.inflight_lo = self.signals.inflight_lo.min(self.upper.inflight_hi);
        }
        self.enter(Mode::ProbeBw(Phase::Cruise));
    }

    /// `bbr_start_bw_probe_refill`.
    pub(super) fn start_refill(&mut self, view: &View) {
        self.signals.reset_lower_bounds();
        self.upper.rounds = 0;
        self.upper.acked = 0;
        self.upper.stopped_risky = false;
        self.upper.acks = Acks::Refilling;
        self.next_round_delivered = view.delivered;
        self.enter(Mode::ProbeBw(Phase::Refill));
    }

    /// `bbr_start_bw_probe_up`.
    fn start_up(&mut self, view: &View, window: &Window, bw: u32) {
        self.upper.acks = Acks::Starting;
        self.next_round_delivered = view.delivered;
        if V::IS_SECOND {
            self.cycle_us = view.delivered_at.as_micros_floor();
        }
        self.full.restart(bw);
        self.upper.raise_slope(window.cwnd);
        self.enter(Mode::ProbeBw(Phase::Up));
    }

    /// `bbr_update_min_rtt`; asks for the application-limited mark in PROBE_RTT, where its own low rates must not count.
    pub(super) fn update_min_rtt(
        &mut self,
        view: &View,
        window: &mut Window,
        sample: &RateSample,
    ) -> Response {
        let now = view.jiffies();
        let hz = u64::from(view.hz);
        let due = now > self.probe_rtt_min_stamp + PROBE_RTT_WINDOW_S * hz;
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.probe_rtt_min_us
                || (V::IS_SECOND && rtt_us == self.probe_rtt_min_us)
                || (due && !sample.is_ack_delayed))
        {
            self.probe_rtt_min_us = rtt_us;
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW_S * hz;
        if self.probe_rtt_min_us <= self.min_rtt_us || expired {
            self.min_rtt_us = self.probe_rtt_min_us;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        if due && !self.idle_restart && !self.is_probing_rtt() {
            self.save_cwnd(window);
            self.enter(Mode::ProbeRtt { low: None });
            self.upper.acks = Acks::Stopping;
            self.next_round_delivered = view.delivered;
        }
        let mut response = Response::None;
        if let Mode::ProbeRtt { low } = self.mode {
            response = Response::MarkAppLimited;
            self.probe_rtt(view, window, low);
        }
        // An idle restart is over once something new is delivered.
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
        response
    }

    /// An ACK in PROBE_RTT: 200 ms and a round after in-flight has become low, it is over.
    fn probe_rtt(&mut self, view: &View, window: &mut Window, low: Option<LowInFlight>) {
        match low {
            None if view.in_flight() <= self.probe_rtt_cwnd() => {
                let until = view.jiffies() + probe_rtt_jiffies(view);
                self.enter(Mode::ProbeRtt { low: Some(LowInFlight { until, round_done: false }) });
                self.next_round_delivered = view.delivered;
            }
            None => {}
            Some(low) => {
                let low = LowInFlight { round_done: low.round_done || self.round_start, ..low };
                if low.round_done {
                    self.enter(Mode::ProbeRtt { low: Some(low) });
                    self.leave_probe_rtt_when_due(view, window);
                }
            }
        }
    }

    /// `bbr_check_probe_rtt_done`, `bbr_exit_probe_rtt`.
    pub(super) fn leave_probe_rtt_when_due(&mut self, view: &View, window: &mut Window) {
        let Mode::ProbeRtt { low: Some(low) } = self.mode else { return };
        if view.jiffies() <= low.until {
            return;
        }
        self.probe_rtt_min_stamp = view.jiffies();
        window.cwnd = window.cwnd.max(self.prior_cwnd).min(window.clamp);
        self.signals.reset_lower_bounds();
        if self.full.reached {
            self.start_down(view);
            self.start_cruise();
        } else {
            self.enter(Mode::Startup);
        }
    }
}
