//! BBR's policer detector (`lt_bw`): two lossy intervals of one rate make a token bucket.
//!
//! - **Paper**: Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016.
//! - **Rule**: an interval is at least 4 rounds long, begins and ends with a loss, and counts if at
//!   least 50/256 as many packets were lost in it as were delivered. Two in a row within 1/8 or 500
//!   bytes/s of each other: their mean is the policer's rate, kept for 48 rounds of PROBE_BW.
//! - **States**: `waiting ──loss──▶ sampling ──two agree──▶ in use ──48 rounds──▶ waiting`
//! - **Source of the details**: Linux 6.1 `tcp_bbr.c` (`bbr_lt_bw_*`).

use super::{BW_SCALE, GAIN_SCALE, MS_PER_S, UNIT, US_PER_S, bytes_per_second, saturate};
use crate::{RateSample, View};

/// Shortest interval, rounds (`bbr_lt_intvl_min_rtts`).
const INTERVAL_ROUNDS: u8 = 4;
/// Longer than four times that, and it is no policer's.
const INTERVAL_ROUNDS_MAX: u8 = 4 * INTERVAL_ROUNDS;
/// Least loss, /256 of what was delivered (`bbr_lt_loss_thresh`).
const LOSS_THRESHOLD: u64 = 50;
/// Two rates agree within 1/8, in 1/256 (`bbr_lt_bw_ratio`).
const BW_RATIO: u64 = UNIT as u64 / 8;
/// ... or within 4 kbit/s, bytes/s (`bbr_lt_bw_diff`).
const BW_DIFF: u64 = 4_000 / 8;
/// Rounds that the policer's rate is used for before BBR probes again (`bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u8 = 48;
/// An interval of as many ms does not fit into the kernel's 32 bits of µs.
const INTERVAL_MS_MAX: u64 = u32::MAX as u64 / US_PER_MS;
const US_PER_MS: u64 = US_PER_S / MS_PER_S;

/// Change made by an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// A policer was found: its rate is to be used.
    Found,
    /// It has been believed for long enough: probe again.
    Released,
}

/// The detector.
#[derive(Clone, Debug, Default)]
pub struct Policer {
    /// Sampling began at the first loss.
    is_sampling: bool,
    in_use: bool,
    /// Rounds in the interval, or of use.
    rounds: u8,
    /// Rate of the last interval, packets/µs · 2^24; 0: none.
    bw: u32,
    /// The interval's beginning.
    last_ms: u64,
    last_delivered: u64,
    last_lost: u64,
}

impl Policer {
    /// The policer's rate, when there is one.
    #[inline]
    pub fn rate(&self) -> Option<u32> {
        self.in_use.then_some(self.bw)
    }

    /// `bbr_reset_lt_bw_sampling`.
    pub fn reset(&mut self, view: &View) {
        self.bw = 0;
        self.in_use = false;
        self.is_sampling = false;
        self.start_interval(view);
    }

    fn start_interval(&mut self, view: &View) {
        self.last_ms = delivered_ms(view);
        self.last_delivered = view.delivered;
        self.last_lost = view.lost;
        self.rounds = 0;
    }

    /// `bbr_lt_bw_sampling`. `round_start`: this ACK begins a round; `probing`: in PROBE_BW.
    #[inline]
    pub fn sample(
        &mut self,
        view: &View,
        sample: &RateSample,
        round_start: bool,
        probing: bool,
    ) -> Change {
        if self.in_use {
            self.rounds += u8::from(probing && round_start);
            if self.rounds < USE_ROUNDS {
                return Change::None;
            }
            self.reset(view);
            return Change::Released;
        }
        // Until the first loss the bucket still has tokens, and the rate is not the policer's.
        if !self.is_sampling {
            if sample.losses == 0 {
                return Change::None;
            }
            self.start_interval(view);
            self.is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset(view);
            return Change::None;
        }
        self.rounds += u8::from(round_start);
        if self.rounds > INTERVAL_ROUNDS_MAX {
            self.reset(view);
        } else if self.rounds >= INTERVAL_ROUNDS && sample.losses > 0 {
            return self.end_interval(view);
        }
        Change::None
    }

    /// A loss may end the interval: was it lossy enough, and how fast?
    fn end_interval(&mut self, view: &View) -> Change {
        let lost_packets = view.lost - self.last_lost;
        let delivered = view.delivered - self.last_delivered;
        let ms = delivered_ms(view).saturating_sub(self.last_ms);
        if delivered == 0 || lost_packets << GAIN_SCALE < LOSS_THRESHOLD * delivered || ms == 0 {
            return Change::None;
        }
        if ms >= INTERVAL_MS_MAX {
            self.reset(view);
            return Change::None;
        }
        self.compare(view, saturate((delivered << BW_SCALE) / (ms * US_PER_MS)))
    }

    /// `bbr_lt_bw_interval_done`.
    fn compare(&mut self, view: &View, bw: u32) -> Change {
        let difference = bw.abs_diff(self.bw);
        if self.bw > 0
            && (u64::from(difference) << GAIN_SCALE <= BW_RATIO * u64::from(self.bw)
                || bytes_per_second(view, difference, UNIT) <= BW_DIFF)
        {
            self.bw = ((u64::from(bw) + u64::from(self.bw)) >> 1) as u32;
            self.in_use = true;
            self.rounds = 0;
            return Change::Found;
        }
        self.bw = bw;
        self.start_interval(view);
        Change::None
    }
}

fn delivered_ms(view: &View) -> u64 {
    view.delivered_at.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, view};

    /// Rounds of 100 ms: `delivered` packets and `lost` of them lost, all at the round's start.
    fn rounds(
        policer: &mut Policer,
        view: &mut View,
        n: u32,
        delivered: u64,
        lost: u64,
    ) -> Vec<Change> {
        (0..n)
            .map(|_| {
                view.now = at_ms(view.now.as_nanos() / 1_000_000 + 100);
                view.delivered_at = view.now;
                view.delivered += delivered;
                view.lost += lost;
                let sample = RateSample { losses: lost as u32, ..RateSample::default() };
                policer.sample(view, &sample, true, true)
            })
            .filter(|change| *change != Change::None)
            .collect()
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer_for_48_rounds() {
        let (mut policer, mut view) = (Policer::default(), view());
        assert_eq!(rounds(&mut policer, &mut view, 8, 100, 25), [Change::Found]);
        let packets_per_second = f64::from(policer.rate().unwrap()) * 1e6 / f64::from(1 << 24);
        assert!((packets_per_second - 1_000.0).abs() < 1.0, "{packets_per_second}");
        assert_eq!(rounds(&mut policer, &mut view, 47, 100, 0), []);
        assert_eq!(rounds(&mut policer, &mut view, 1, 100, 0), [Change::Released]);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn losses_below_a_fifth_are_no_policer() {
        let (mut policer, mut view) = (Policer::default(), view());
        assert_eq!(rounds(&mut policer, &mut view, 40, 100, 19), []);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn rates_further_apart_than_an_eighth_do_not_agree() {
        let (mut policer, mut view) = (Policer::default(), view());
        let _ = rounds(&mut policer, &mut view, 5, 100, 25);
        assert_eq!(rounds(&mut policer, &mut view, 4, 140, 35), []);
    }

    #[test]
    fn an_application_limited_sample_starts_over() {
        let (mut policer, mut view) = (Policer::default(), view());
        let _ = rounds(&mut policer, &mut view, 5, 100, 25);
        let sample = RateSample { is_app_limited: true, ..RateSample::default() };
        policer.sample(&view, &sample, false, true);
        assert!(!policer.is_sampling);
        assert_eq!(policer.bw, 0);
    }
}
