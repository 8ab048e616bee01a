//! The long-term bound, `inflight_hi`: lowered where a probe loses too much, raised where it does not.

use super::signals::reduced;
use super::{CWND_MIN, GAIN_SCALE, INFINITE, Mode, Model, Phase, UNIT, Version};
use crate::{LostPacket, RateSample, View, Window};

/// Loss above it is too much: `bbr_loss_thresh`, 2 %, /256.
const LOSS_THRESHOLD: u64 = UNIT as u64 * 2 / 100;
/// `bbr_inflight_headroom`, 15 %, /256.
const HEADROOM: u64 = UNIT as u64 * 15 / 100;
/// The slope of `inflight_hi` doubles as often at most (`bbr_raise_inflight_hi_slope`): 2^30 packets are more than any window.
pub(super) const SLOPE_ROUNDS_MAX: u8 = 30;

/// Probe that the arriving ACKs are about (`bbr_ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    /// None.
    Init,
    /// The pipe is refilled.
    Refilling,
    /// A probe has begun; what is acknowledged was sent before.
    Starting,
    /// The acknowledged data was sent by the probe.
    Feedback,
    /// The probe has ended; what is acknowledged was sent by it.
    Stopping,
}

/// The bound and what moves it.
#[derive(Clone, Debug)]
pub(super) struct Upper {
    pub inflight_hi: u32,
    /// Packets to be acknowledged for one more in `inflight_hi`, and those that have been.
    pub per_raise: u32,
    pub acked: u32,
    /// Rounds of this probe.
    pub rounds: u8,
    /// The acknowledged or lost data was sent while probing.
    pub samples: bool,
    /// The last probe lost too much.
    pub prev_too_high: bool,
    /// The last probe stopped where an earlier one had lost too much, for fear of it.
    pub stopped_risky: bool,
    pub acks: Acks,
}

impl Default for Upper {
    fn default() -> Self {
        Self {
            inflight_hi: INFINITE,
            per_raise: INFINITE,
            acked: 0,
            rounds: 0,
            samples: false,
            prev_too_high: false,
            stopped_risky: false,
            acks: Acks::Init,
        }
    }
}

impl Upper {
    /// `bbr_inflight_with_headroom`: leaves room for others.
    pub fn with_headroom(&self) -> u32 {
        if self.inflight_hi == INFINITE {
            return INFINITE;
        }
        let headroom = ((u64::from(self.inflight_hi) * HEADROOM) >> GAIN_SCALE).max(1) as u32;
        self.inflight_hi.saturating_sub(headroom).max(CWND_MIN)
    }

    /// `bbr_raise_inflight_hi_slope`: 1, 2, 4 ... packets per round.
    pub fn raise_slope(&mut self, cwnd: u32) {
        self.per_raise = (cwnd >> self.rounds).max(1);
        self.rounds = (self.rounds + 1).min(SLOPE_ROUNDS_MAX);
    }

    /// `bbr_probe_inflight_hi_upward`, while the bound is what limits the window.
    pub fn raise(&mut self, cwnd: u32, acked: u32, round_start: bool) {
        self.acked = self.acked.saturating_add(acked);
        if self.acked >= self.per_raise {
            let more = self.acked / self.per_raise;
            self.acked -= more * self.per_raise;
            self.inflight_hi = self.inflight_hi.saturating_add(more);
        }
        if round_start {
            self.raise_slope(cwnd);
        }
    }
}

/// `bbr_is_inflight_too_high`: more than 2 % of what was in flight has been lost.
pub(super) fn is_too_high(sample: &RateSample) -> bool {
    sample.tx_in_flight > 0
        && u64::from(sample.lost) > (u64::from(sample.tx_in_flight) * LOSS_THRESHOLD) >> GAIN_SCALE
}

/// `bbr_inflight_hi_from_lost_skb`: how much was in flight when loss exceeded the threshold.
pub(super) fn where_loss_became_too_high(packet: &LostPacket) -> u32 {
    let before = u64::from(packet.tx_in_flight.saturating_sub(1));
    let lost_before = u64::from(packet.lost.saturating_sub(1));
    let budget = (before * LOSS_THRESHOLD).div_ceil(u64::from(UNIT));
    // (lost + x) / (in flight + x) = threshold, where x of the packet itself still fit.
    let prefix =
        (budget.saturating_sub(lost_before) << GAIN_SCALE) / (u64::from(UNIT) - LOSS_THRESHOLD);
    (before + prefix).min(u64::from(u32::MAX)) as u32
}

impl<V: Version> Model<V> {
    /// `bbr_adapt_upper_bounds`; true if it has moved on to another phase.
    pub(super) fn adapt_upper_bounds(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
    ) -> bool {
        if self.round_start && self.upper.acks == Acks::Starting {
            self.upper.acks = Acks::Feedback;
        }
        if self.round_start && self.upper.acks == Acks::Stopping {
            self.upper.samples = false;
            self.upper.acks = Acks::Init;
            if matches!(self.mode, Mode::ProbeBw(_)) {
                // A cycle is over: bbr_advance_max_bw_filter.
                if !sample.is_app_limited && self.bw_hi[1] > 0 {
                    self.bw_hi = [self.bw_hi[1], 0];
                }
                if self.upper.stopped_risky && !self.upper.prev_too_high {
                    self.start_refill(view);
                    return true;
                }
            }
        }
        if is_too_high(sample) || self.marks_are_too_many(sample) {
            if self.upper.samples {
                self.handle_too_high(view, window, sample);
            }
        } else if self.upper.inflight_hi != INFINITE {
            self.upper.inflight_hi = self.upper.inflight_hi.max(sample.tx_in_flight);
            if self.mode == Mode::ProbeBw(Phase::Up) {
                if self.is_bounded(view, window) {
                    self.upper.raise(window.cwnd, sample.acked_sacked, self.round_start);
                } else if V::IS_SECOND {
                    self.upper.acked = 0;
                }
            }
        }
        false
    }

    /// The window is used up, and it is `inflight_hi` that keeps it from growing.
    pub(super) fn is_bounded(&self, view: &View, window: &Window) -> bool {
        view.cwnd_limited(window) && window.cwnd >= self.upper.inflight_hi
    }

    /// `bbr_handle_inflight_too_high`.
    pub(super) fn handle_too_high(&mut self, view: &View, window: &Window, sample: &RateSample) {
        self.upper.prev_too_high = true;
        self.upper.samples = false; // once per probe
        if !sample.is_app_limited {
            let target = self.target_in_flight(view, window);
            self.upper.inflight_hi = sample.tx_in_flight.max(reduced(target));
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.start_down(view);
        }
    }
}
