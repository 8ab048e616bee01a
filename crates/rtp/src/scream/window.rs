//! The reference window: its reduction and its increase (§4.2.2), and the share of marked packets (§4.2.1).

use super::delay::Delay;
use super::{Feedback, Limits, VIRTUAL_RTT};

/// MIN_REF_WND, bytes.
const MIN_REF_WND: f64 = 3000.0;
/// BYTES_IN_FLIGHT_HEAD_ROOM.
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
/// BETA_LOSS and BETA_ECN.
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
/// POST_CONGESTION_DELAY_RTT.
const POST_CONGESTION_DELAY_RTTS: f64 = 100.0;
/// MUL_INCREASE_FACTOR.
const MUL_INCREASE_FACTOR: f64 = 0.02;
/// MIN_QUEUE_DELAY_DEV_SCALE.
const MIN_QUEUE_DELAY_DEV_SCALE: f64 = 0.1;
/// L4S_AVG_G_UP and _DOWN.
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;

/// The reference window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub bytes: f64,
    pub reductions: u64,
    /// The window at the last congestion (ref_wnd_i), and when it was noted.
    inflection: f64,
    inflection_at: f64,
    congested_at: f64,
    reacted_at: f64,
    /// Since the last reaction.
    lost: bool,
    marked: bool,
    /// Most bytes in flight in this round trip and in the one before.
    flight_max: f64,
    flight_max_before: f64,
    round_since: f64,
    alpha: f64,
    alpha_at: f64,
    delivered: f64,
    delivered_marked: f64,
}

impl Window {
    pub const fn new() -> Self {
        Self {
            bytes: MIN_REF_WND,
            reductions: 0,
            inflection: 1.0,
            inflection_at: 0.0,
            congested_at: 0.0,
            reacted_at: 0.0,
            lost: false,
            marked: false,
            flight_max: 0.0,
            flight_max_before: 0.0,
            round_since: 0.0,
            alpha: 0.0,
            alpha_at: 0.0,
            delivered: 0.0,
            delivered_marked: 0.0,
        }
    }

    /// A packet's share of the window, 1 at most.
    pub fn ratio(&self, limits: &Limits) -> f64 {
        (limits.mss / self.bytes).min(1.0)
    }

    pub fn sent(&mut self, in_flight: f64) {
        self.flight_max = self.flight_max.max(in_flight);
    }

    /// No report has come for long.
    pub fn silence(&mut self, now: f64) {
        (self.congested_at, self.reacted_at) = (now, now);
        self.bytes = (self.bytes * BETA_LOSS).max(MIN_REF_WND);
        self.reductions += 1;
    }

    pub fn report(
        &mut self,
        now: f64,
        feedback: &Feedback,
        smoothed_rtt: f64,
        delay: &Delay,
        limits: &Limits,
        can_grow: bool,
    ) {
        self.lost |= feedback.lost;
        self.marked |= feedback.marked > 0.0;
        self.count(now, feedback, smoothed_rtt);
        let scale = self.distance_scale();
        if self.lost || self.marked {
            self.congested_at = now;
        }
        if now - self.reacted_at >= VIRTUAL_RTT.min(smoothed_rtt) {
            self.react(now, smoothed_rtt, delay, limits, scale);
        }
        if can_grow {
            self.grow(now, feedback, smoothed_rtt, delay, limits, scale);
        }
        if now - self.round_since >= smoothed_rtt {
            self.round_since = now;
            self.flight_max_before = std::mem::take(&mut self.flight_max);
        }
    }

    /// From 0.1 near the window of the last congestion to 1 far from it.
    fn distance_scale(&self) -> f64 {
        let distance = (self.bytes - self.inflection) / self.inflection * 8.0;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// Share of marked packets: fast up, slow down.
    fn count(&mut self, now: f64, feedback: &Feedback, smoothed_rtt: f64) {
        self.delivered += feedback.packets;
        self.delivered_marked += feedback.marked;
        if now - self.alpha_at < smoothed_rtt.min(0.01) || self.delivered == 0.0 {
            return;
        }
        let share = self.delivered_marked / self.delivered;
        self.alpha = if share >= self.alpha {
            L4S_AVG_G_UP * share + (1.0 - L4S_AVG_G_UP) * self.alpha
        } else {
            (1.0 - L4S_AVG_G_DOWN) * self.alpha
        };
        self.alpha_at = now;
        (self.delivered, self.delivered_marked) = (0.0, 0.0);
    }

    /// Reduces the window: by loss, else by marks, else by queue delay.
    fn react(&mut self, now: f64, smoothed_rtt: f64, delay: &Delay, limits: &Limits, scale: f64) {
        let half = delay.target / 2.0;
        let is_late = delay.average > half;
        if !self.lost && !self.marked && !is_late {
            return;
        }
        if now - self.inflection_at > 10.0 * smoothed_rtt {
            self.inflection_at = now;
            self.inflection = self.bytes;
        }
        let rtt_scale = (smoothed_rtt / VIRTUAL_RTT).max(1.0);
        if self.lost {
            self.bytes *= BETA_LOSS;
        } else if self.marked && limits.is_l4s {
            self.react_to_l4s(now, smoothed_rtt, delay, scale, rtt_scale);
        } else if self.marked {
            self.bytes *= BETA_ECN;
        } else {
            let virtual_alpha = ((delay.average - half) / half).clamp(0.0, 1.0);
            self.bytes *= 1.0 - virtual_alpha / 2.0 / rtt_scale;
        }
        self.bytes = self.bytes.max(MIN_REF_WND);
        self.reacted_at = now;
        self.reductions += 1;
        (self.lost, self.marked) = (false, false);
    }

    fn react_to_l4s(
        &mut self,
        now: f64,
        smoothed_rtt: f64,
        delay: &Delay,
        scale: f64,
        rtt_scale: f64,
    ) {
        let mut backoff = self.alpha / 2.0 / rtt_scale;
        if delay.latest < delay.target * 0.25 {
            backoff *= scale.max(0.25);
            backoff *= delay.steadiness().max(MIN_QUEUE_DELAY_DEV_SCALE);
        }
        if now - self.reacted_at > 100.0 * VIRTUAL_RTT.max(smoothed_rtt) {
            // Long without congestion: the window may be far above the flight.
            self.bytes = self.bytes.min(self.flight_max_before);
        }
        self.bytes *= 1.0 - backoff;
    }

    /// About a packet per round trip, less near the last congestion, and by a share of the window long after it.
    fn grow(
        &mut self,
        now: f64,
        feedback: &Feedback,
        smoothed_rtt: f64,
        delay: &Delay,
        limits: &Limits,
        scale: f64,
    ) {
        let calm = POST_CONGESTION_DELAY_RTTS * VIRTUAL_RTT.max(smoothed_rtt);
        let post_congestion = ((now - self.congested_at) / calm).clamp(0.0, 1.0);
        let mut increment = (feedback.bytes - feedback.marked_bytes).max(0.0) * self.ratio(limits);
        increment *= (smoothed_rtt / VIRTUAL_RTT).min(1.0);
        increment *= scale.max(0.25);
        increment *= delay.steadiness().max(MIN_QUEUE_DELAY_DEV_SCALE);
        increment *= 1.0 + MUL_INCREASE_FACTOR * self.bytes / limits.mss * post_congestion * scale;
        let flight = self.flight_max.max(self.flight_max_before);
        let bytes_max = limits.mss + flight * BYTES_IN_FLIGHT_HEAD_ROOM;
        if self.bytes + increment <= bytes_max {
            self.bytes += increment;
        }
    }
}
