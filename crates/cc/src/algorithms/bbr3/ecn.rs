//! The reaction to marks of a shallow threshold (the route feature `ecn_low`, the second version's `ecn_enable`): Google's module's, the
//! draft has none.
//!
//! α smooths the share of marked packets of each round, by 1/16. A round with marks outside of probes lowers `inflight_lo`
//! to 1 − α/3 of what it was; a probe of which more than half of the packets were marked has gone too far; two rounds of
//! STARTUP with as many end it. Where marks, but no losses, came since the last probe and have ceased, the next probe begins at once.

use super::{GAIN_SCALE, INFINITE, MarkRules, Model, UNIT, Version};
use crate::{CaState, RateSample, View};

/// Weight of a round's share in α, /256 (`bbr_ecn_alpha_gain`).
const ALPHA_GAIN: u64 = UNIT as u64 / 16;
/// Share of α that `inflight_lo` loses, /256 (`bbr_ecn_factor`).
const FACTOR: u64 = UNIT as u64 / 3;
/// More marks than this are too many, /256 (`bbr_ecn_thresh`).
const THRESHOLD: u64 = UNIT as u64 / 2;
/// Rounds with too many marks that end STARTUP (`bbr_full_ecn_cnt`).
const STARTUP_ROUNDS: u8 = 2;
/// In-flight that a probe begins with after marks have ceased, as a share of `inflight_hi`, /256 (`bbr_ecn_reprobe_gain`).
const REPROBE_GAIN: u64 = UNIT as u64 / 2;

/// State of the reaction to marks.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    pub rules: MarkRules,
    /// Marks are heard: the rules say so, both ends agreed on ECN, and the path is short.
    pub eligible: bool,
    /// α, /256.
    alpha: u16,
    /// Counters at α's last update.
    delivered: u64,
    delivered_ce: u64,
    startup_rounds: u8,
    /// A mark was echoed in the round, or the cycle, in progress.
    pub in_round: bool,
    pub in_cycle: bool,
    /// A loss was seen in the cycle in progress.
    pub loss_in_cycle: bool,
}

impl Marks {
    pub fn new(rules: MarkRules) -> Self {
        Self {
            rules,
            eligible: false,
            alpha: UNIT,
            delivered: 0,
            delivered_ce: 0,
            startup_rounds: 0,
            in_round: false,
            in_cycle: false,
            loss_in_cycle: false,
        }
    }

    /// Forgets marks and losses of the round and of the cycle (`bbr_reset_congestion_signals`).
    pub fn reset(&mut self) {
        (self.in_round, self.in_cycle, self.loss_in_cycle) = (false, false, false);
    }

    /// True if more than half (the second version: half) of what was delivered was marked.
    #[inline]
    pub fn are_too_many<V: Version>(&self, sample: &RateSample) -> bool {
        let marked = u64::from(sample.delivered_ce);
        if !self.eligible || marked == 0 {
            return false;
        }
        sample.delivered.is_some_and(|delivered| {
            let most = (u64::from(delivered) * THRESHOLD) >> GAIN_SCALE;
            marked > most || (V::IS_SECOND && marked == most)
        })
    }

    /// `bbr_ecn_lower_bounds`.
    pub fn lowered(&self, inflight_lo: u32) -> u32 {
        let keep = u64::from(UNIT) - ((u64::from(self.alpha) * FACTOR) >> GAIN_SCALE);
        ((u64::from(inflight_lo) * keep) >> GAIN_SCALE) as u32
    }

    /// At the start of a round; the share of marks in the last one, /256 (`bbr_update_ecn_alpha`).
    fn update_alpha(&mut self, view: &View, min_rtt_us: u32) -> Option<u64> {
        self.eligible |= self.rules.low && view.ecn && min_rtt_us <= self.rules.rtt_us_max;
        let delivered = view.delivered - self.delivered;
        if !self.eligible || delivered == 0 {
            return None;
        }
        let share = ((view.delivered_ce - self.delivered_ce) << GAIN_SCALE) / delivered;
        let kept = ((u64::from(UNIT) - ALPHA_GAIN) * u64::from(self.alpha)) >> GAIN_SCALE;
        let alpha = kept + ((ALPHA_GAIN * share) >> GAIN_SCALE);
        self.alpha = alpha.min(UNIT.into()) as u16;
        (self.delivered, self.delivered_ce) = (view.delivered, view.delivered_ce);
        Some(share)
    }
}

impl<V: Version> Model<V> {
    /// At every ACK, before the model; true if marks end STARTUP.
    pub(super) fn update_marks(&mut self, view: &View, sample: &RateSample) -> bool {
        let Some(marks) = &mut self.marks else { return false };
        let mut ends_startup = false;
        if self.round_start
            && let Some(share) = marks.update_alpha(view, self.min_rtt_us)
            && !self.full.reached
        {
            // `bbr_check_ecn_too_high_in_startup`
            let rounds = marks.startup_rounds.saturating_add(1);
            marks.startup_rounds = if share >= THRESHOLD { rounds } else { 0 };
            ends_startup = marks.startup_rounds >= STARTUP_ROUNDS;
        }
        marks.in_round |= marks.eligible && sample.is_ece;
        ends_startup
    }

    /// The part of `bbr_is_inflight_too_high` on marks.
    #[inline]
    pub(super) fn marks_are_too_many(&self, sample: &RateSample) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.are_too_many::<V>(sample))
    }

    /// A probing cycle, or the first one after STARTUP, begins.
    pub(super) fn reset_marks(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.reset();
        }
    }

    /// A round of signals ends.
    pub(super) fn end_round_of_marks(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.in_round = false;
        }
    }

    /// Remembers losses and marks until the cycle ends.
    #[inline]
    pub(super) fn note_in_cycle(&mut self, lost: bool, marked: bool) {
        if let Some(marks) = &mut self.marks {
            marks.loss_in_cycle |= lost;
            marks.in_cycle |= marked;
        }
    }

    /// The first part of `bbr_check_time_to_probe_bw`: where marks have ceased, others may have left.
    pub(super) fn marks_have_ceased(&self, view: &View) -> Option<u8> {
        let marks = self.marks.as_ref().filter(|_| !V::IS_SECOND)?;
        let ceased =
            marks.eligible && marks.in_cycle && !marks.loss_in_cycle && view.state == CaState::Open;
        ceased.then(|| {
            let packets = (u64::from(self.upper.inflight_hi) * REPROBE_GAIN) >> GAIN_SCALE;
            packets.max(1).ilog2() as u8
        })
    }

    /// The reaction to marks of `bbr_adapt_lower_bounds`: a bound for `inflight_lo`.
    pub(super) fn lowered_by_marks(&mut self, cwnd: u32) -> u32 {
        let Some(marks) = self.marks.as_ref().filter(|marks| marks.in_round) else {
            return INFINITE;
        };
        if self.signals.inflight_lo == INFINITE {
            self.signals.inflight_lo = cwnd;
        }
        marks.lowered(self.signals.inflight_lo)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Second, Third};
    use super::*;
    use crate::testing::view;

    fn marks(low: bool) -> Marks {
        Marks::new(MarkRules { low, rtt_us_max: 5_000, l4s: false })
    }

    /// By hand: 240/256 of α and 16/256 of the share, both rounded down.
    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut marks = marks(true);
        let mut view = View { ecn: true, ..view() };
        let mut alphas = Vec::new();
        for (delivered, delivered_ce) in [(100, 0), (200, 50), (300, 150)] {
            (view.delivered, view.delivered_ce) = (delivered, delivered_ce);
            marks.update_alpha(&view, 2_000);
            alphas.push(marks.alpha);
        }
        assert_eq!(alphas, [240, 233, 234]);
        assert_eq!(marks.lowered(100), 69, "1 - 234/256 · 85/256");
    }

    #[test]
    fn marks_count_on_short_paths_of_routes_that_say_so_where_ecn_was_agreed_on() {
        for (low, ecn, rtt_us, eligible) in [
            (true, true, 5_000, true),
            (true, true, 5_001, false),
            (true, false, 2_000, false),
            (false, true, 2_000, false),
        ] {
            let mut marks = marks(low);
            marks.update_alpha(&View { ecn, delivered: 10, ..view() }, rtt_us);
            assert_eq!(marks.eligible, eligible, "{low} {ecn} {rtt_us}");
        }
    }

    #[test]
    fn more_than_half_are_too_many() {
        let mut marks = marks(true);
        let sample = |delivered_ce| RateSample {
            delivered: Some(20),
            delivered_ce,
            ..RateSample::default()
        };
        assert!(!marks.are_too_many::<Third>(&sample(20)), "not eligible yet");
        marks.eligible = true;
        assert_eq!(
            [10, 11].map(|marked| marks.are_too_many::<Third>(&sample(marked))),
            [false, true]
        );
        assert_eq!(
            [9, 10].map(|marked| marks.are_too_many::<Second>(&sample(marked))),
            [false, true],
            "half of them, for the second version"
        );
    }
}
