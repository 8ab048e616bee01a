//! Signals from the ACKs and losses of one round: the latest delivery, the short-term bounds (`bw_lo`, `inflight_lo`),
//! and whether bandwidth still grows.

use super::{BW_SCALE, GAIN_SCALE, INFINITE, Model, UNIT, Version, saturate, valid};
use crate::algorithms::bbr::{FULL_BW_ROUNDS, FULL_BW_THRESHOLD};
use crate::{RateSample, View, Window};

/// Share of a bound kept after a round with loss: 1 − `bbr_beta`, /256.
const KEEP: u64 = UNIT as u64 - UNIT as u64 * 30 / 100;

/// `bbr_calculate_bw_sample`: packets/µs · 2^24, rounded up; 0 without a sample.
pub(super) fn bandwidth(sample: &RateSample) -> u32 {
    let packets = u64::from(valid(sample).unwrap_or(0));
    saturate((packets << BW_SCALE).div_ceil(sample.interval_us.max(1)))
}

/// 0.7 of a bound, but no less than what has just been delivered.
pub(super) fn lowered(bound: u32, latest: u32) -> u32 {
    latest.max(((u64::from(bound) * KEEP) >> GAIN_SCALE) as u32)
}

/// 0.7 of a target.
pub(super) fn reduced(target: u32) -> u32 {
    lowered(target, 0)
}

/// Signals of the round trip in progress.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    /// The round of loss signals ends when a packet sent after this many were delivered is delivered itself.
    pub round_delivered: u64,
    pub round_start: bool,
    pub loss_in_round: bool,
    /// Largest sample of the round.
    pub bw_latest: u32,
    pub inflight_latest: u32,
    pub bw_lo: u32,
    pub inflight_lo: u32,
    /// ACKs of the round that came with losses, in STARTUP.
    pub loss_events: u8,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            round_delivered: 0,
            round_start: false,
            loss_in_round: false,
            bw_latest: 0,
            inflight_latest: 0,
            bw_lo: INFINITE,
            inflight_lo: INFINITE,
            loss_events: 0,
        }
    }
}

impl Signals {
    /// `bbr_update_latest_delivery_signals`.
    pub fn update_latest(&mut self, view: &View, sample: &RateSample, bw: u32) {
        self.round_start = false;
        if sample.interval_us == 0 || sample.acked_sacked == 0 {
            return;
        }
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(sample.delivered.unwrap_or(0));
        if sample.prior_delivered >= self.round_delivered {
            self.round_delivered = view.delivered;
            self.round_start = true;
        }
    }

    /// `bbr_advance_latest_delivery_signals`.
    pub fn advance_latest(&mut self, sample: &RateSample, bw: u32) {
        if self.round_start {
            self.bw_latest = bw;
            self.inflight_latest = sample.delivered.unwrap_or(0);
        }
    }

    /// `bbr_note_loss`: the first loss of a round begins a round of its own.
    pub fn note_loss(&mut self, view: &View) {
        if !self.loss_in_round {
            self.round_delivered = view.delivered;
        }
        self.loss_in_round = true;
    }

    /// `bbr_reset_congestion_signals`.
    pub fn reset(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// `bbr_reset_lower_bounds`.
    pub fn reset_lower_bounds(&mut self) {
        self.bw_lo = INFINITE;
        self.inflight_lo = INFINITE;
    }
}

/// Detects a full pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct FullBandwidth {
    /// Bandwidth that growth is compared with.
    pub bw: u32,
    rounds: u8,
    /// Since the last restart.
    pub now: bool,
    /// At any time: STARTUP is over.
    pub reached: bool,
}

impl FullBandwidth {
    /// `bbr_reset_full_bw`, then judges against `bw`.
    pub fn restart(&mut self, bw: u32) {
        self.bw = bw;
        self.rounds = 0;
        self.now = false;
    }

    /// `bbr_check_full_bw_reached`.
    pub fn check(&mut self, sample: &RateSample, bw: u32, round_start: bool) {
        if self.now || sample.is_app_limited {
            return;
        }
        if u64::from(bw) >= (u64::from(self.bw) * FULL_BW_THRESHOLD) >> GAIN_SCALE {
            self.restart(bw);
        } else if round_start {
            self.rounds += 1;
            self.now = self.rounds >= FULL_BW_ROUNDS;
            self.reached |= self.now;
        }
    }
}

impl<V: Version> Model<V> {
    /// `bbr_update_congestion_signals`.
    pub(super) fn update_congestion_signals(
        &mut self,
        window: &Window,
        sample: &RateSample,
        bw: u32,
    ) {
        if sample.interval_us == 0 || sample.acked_sacked == 0 {
            return;
        }
        if !sample.is_app_limited || bw >= self.max_bw() {
            self.bw_hi[1] = self.bw_hi[1].max(bw);
        }
        self.signals.loss_in_round |= sample.losses > 0;
        if !self.signals.round_start {
            return;
        }
        if !self.is_probing() {
            let by_marks = self.lowered_by_marks(window.cwnd);
            if self.signals.loss_in_round {
                self.lower_bounds(window);
            }
            self.signals.inflight_lo = self.signals.inflight_lo.min(by_marks);
        }
        self.signals.loss_in_round = false;
        self.end_round_of_marks();
        if V::IS_SECOND {
            self.signals.advance_latest(sample, bw);
        }
        self.undo.of_this_round = false;
    }

    /// `bbr_adapt_lower_bounds`: a round with loss.
    fn lower_bounds(&mut self, window: &Window) {
        let max_bw = self.max_bw();
        let signals = &mut self.signals;
        if signals.bw_lo == INFINITE {
            signals.bw_lo = max_bw;
        }
        if signals.inflight_lo == INFINITE {
            signals.inflight_lo = window.cwnd;
        }
        signals.bw_lo = lowered(signals.bw_lo, signals.bw_latest);
        signals.inflight_lo = lowered(signals.inflight_lo, signals.inflight_latest);
    }
}
