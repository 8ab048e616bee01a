//! Round-trip times: the smoothed estimate, the timeout drawn from it, the windowed minimum.
//!
//! Kernel: `tcp_rtt_estimator`, `tcp_set_rto`, `tcp_update_rtt_min` (tcp_input.c), `minmax_running_min`
//! (lib/win_minmax.c).

use crate::ticks::Ticks;

/// RFC 6298 with Linux's differences: the deviation is floored at the minimum RTO (200 ms), rises at
/// once and decays once per round trip; samples below the mean raise the deviation at 1/8 gain.
#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    /// Smoothed RTT × 8, µs; 0 before the first sample.
    pub srtt_us_x8: u32,
    /// Mean deviation × 4, µs.
    mdev_us_x4: u32,
    /// Largest `mdev` of the current round trip.
    mdev_max_us: u32,
    /// The variance term of the RTO, µs.
    rttvar_us: u32,
    /// A new round trip of the estimator begins when this byte is acknowledged.
    round_ends: u64,
}

impl RttEstimator {
    /// Takes a sample of `rtt_us`.
    pub fn sample(&mut self, rtt_us: u32, snd_una: u64, snd_nxt: u64, rto_min_us: u32) {
        let rtt = i64::from(rtt_us.max(1));
        let mut srtt = i64::from(self.srtt_us_x8);
        if srtt == 0 {
            srtt = rtt << 3;
            self.mdev_us_x4 = (rtt << 1) as u32;
            self.rttvar_us = self.mdev_us_x4.max(rto_min_us);
            self.mdev_max_us = self.rttvar_us;
            self.round_ends = snd_nxt;
        } else {
            let error = rtt - (srtt >> 3);
            srtt += error;
            let mdev = i64::from(self.mdev_us_x4);
            let mut deviation = error;
            if error < 0 {
                deviation = -error - (mdev >> 2);
                // The sample is below the mean: a rise of the deviation would be an artefact
                // of a falling RTT, so it counts an eighth.
                if deviation > 0 {
                    deviation >>= 3;
                }
            } else {
                deviation -= mdev >> 2;
            }
            self.mdev_us_x4 = (mdev + deviation) as u32;
            if self.mdev_us_x4 > self.mdev_max_us {
                self.mdev_max_us = self.mdev_us_x4;
                self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
            }
            if snd_una > self.round_ends {
                if self.mdev_max_us < self.rttvar_us {
                    self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
                }
                self.round_ends = snd_nxt;
                self.mdev_max_us = rto_min_us;
            }
        }
        self.srtt_us_x8 = (srtt as u32).max(1);
    }

    /// Mean deviation × 4, µs.
    pub fn mdev_us_x4(&self) -> u32 {
        self.mdev_us_x4
    }

    /// What is known of the path counts where it is more than what was measured (`tcp_init_metrics`).
    pub fn raise(&mut self, srtt_us_x8: u32, mdev_us_x4: u32, rto_min_us: u32) {
        self.srtt_us_x8 = self.srtt_us_x8.max(srtt_us_x8);
        if mdev_us_x4 > self.mdev_us_x4 {
            self.mdev_us_x4 = mdev_us_x4;
            self.rttvar_us = mdev_us_x4.max(rto_min_us);
            self.mdev_max_us = self.rttvar_us;
        }
    }

    /// The retransmission timeout in ticks, without backoff.
    pub fn rto_ticks(&self, ticks: Ticks, max_ticks: u64) -> u64 {
        ticks
            .count_micros_ceil(u64::from(self.srtt_us_x8 >> 3) + u64::from(self.rttvar_us))
            .min(max_ticks)
    }
}

/// RFC 6298 in ticks as 4.4BSD has kept it (`tcp_xmit_timer`): the mean × 32, the mean deviation × 16.
#[derive(Clone, Debug, Default)]
pub(super) struct BsdRttEstimator {
    srtt_x32: i64,
    rttvar_x16: i64,
}

impl BsdRttEstimator {
    /// Takes a sample of `rtt` ticks, of which one is for the clock.
    pub fn sample(&mut self, rtt: u64) {
        let rtt = rtt as i64;
        if self.srtt_x32 == 0 {
            self.srtt_x32 = rtt << 5;
            self.rttvar_x16 = rtt << 3;
            return;
        }
        // Both changes have two fractional bits.
        let error = ((rtt - 1) << 2) - (self.srtt_x32 >> 3);
        self.srtt_x32 = (self.srtt_x32 + error).max(1);
        self.rttvar_x16 = (self.rttvar_x16 + error.abs() - (self.rttvar_x16 >> 2)).max(1);
    }

    /// Mean and four deviations, ticks (`TCP_REXMTVAL`).
    pub fn timeout(&self) -> u64 {
        (((self.srtt_x32 >> 3) + self.rttvar_x16) >> 2) as u64
    }

    /// The smoothed RTT × 32, ticks.
    pub fn srtt_x32(&self) -> u64 {
        self.srtt_x32 as u64
    }
}

/// Jacobson's estimator in ticks as Linux 2.2 has it (`tcp_rtt_estimator`, `tcp_set_rto`): the mean × 8, the deviation × 4.
#[derive(Clone, Debug, Default)]
pub(super) struct LastTickEstimator {
    srtt_x8: u32,
    mdev_x4: u32,
}

impl LastTickEstimator {
    /// Takes a sample of `rtt` ticks; none counts as one.
    pub fn sample(&mut self, rtt: u64) {
        let rtt = rtt.clamp(1, 1 << 24) as u32;
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt << 3;
            self.mdev_x4 = rtt << 2;
            return;
        }
        let mean = self.srtt_x8 >> 3;
        self.srtt_x8 = self.srtt_x8 + rtt - mean;
        self.mdev_x4 = self.mdev_x4 + rtt.abs_diff(mean) - (self.mdev_x4 >> 2);
    }

    /// Mean and four deviations, a quarter on top, and as much again for a window of one packet, half for one of two ... The shift
    /// is one of 32 bits, and starts again every 32 packets.
    pub fn timeout(&self, cwnd: u32) -> u64 {
        let timeout = (self.srtt_x8 >> 3) + self.mdev_x4;
        u64::from(timeout)
            + u64::from(timeout >> 2)
            + u64::from(timeout >> (cwnd.wrapping_sub(1) & 31))
    }

    /// The smoothed RTT × 8, ticks.
    pub fn srtt_x8(&self) -> u64 {
        u64::from(self.srtt_x8)
    }
}

/// Minimum over a sliding window, remembering the best three (Nichols; `struct minmax`).
/// Times are ticks, values µs.
#[derive(Clone, Debug)]
pub(super) struct WindowedMin {
    best: [(u64, u32); 3],
}

impl WindowedMin {
    pub fn new() -> Self {
        Self { best: [(0, u32::MAX); 3] }
    }

    /// The minimum, `u32::MAX` before the first sample.
    #[inline]
    pub fn get(&self) -> u32 {
        self.best[0].1
    }

    /// Takes a sample.
    #[inline]
    pub fn sample(&mut self, window: u64, time: u64, value: u32) {
        let sample = (time, value);
        if value <= self.best[0].1 || time - self.best[2].0 > window {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.age(window, sample);
    }

    /// Lets the best three move up as the window passes over them.
    fn age(&mut self, window: u64, sample: (u64, u32)) {
        let age = sample.0 - self.best[0].0;
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if sample.0 - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_gives_three_times_itself_but_at_least_200_ms_on_top() {
        let ticks = Ticks::new(1000, crate::profile::TimerWheel::Buckets, false);
        let mut short = RttEstimator::default();
        short.sample(1_000, 0, 1, 200_000);
        assert_eq!(short.rto_ticks(ticks, 120_000), 201);
        let mut long = RttEstimator::default();
        long.sample(500_000, 0, 1, 200_000);
        assert_eq!(long.rto_ticks(ticks, 120_000), 1_500);
    }

    #[test]
    fn a_steady_rtt_lets_the_timeout_fall_to_rtt_plus_200_ms() {
        let ticks = Ticks::new(1000, crate::profile::TimerWheel::Buckets, false);
        let mut estimator = RttEstimator::default();
        for round in 0..200 {
            estimator.sample(500_000, round + 1, round + 1, 200_000);
        }
        assert_eq!(estimator.srtt_us_x8 >> 3, 500_000);
        // The decay by quarters of the difference stops 3 µs short, which is one more tick.
        assert_eq!(estimator.rttvar_us, 200_003);
        assert_eq!(estimator.rto_ticks(ticks, 120_000), 701);
    }

    /// A deviation of 300 ms where 200 ms were expected: by a rise it would count in full, to 1262 ms.
    #[test]
    fn a_falling_rtt_raises_the_deviation_by_an_eighth_only() {
        let ticks = Ticks::new(1000, crate::profile::TimerWheel::Buckets, false);
        let mut estimator = RttEstimator::default();
        estimator.sample(400_000, 0, 1, 200_000);
        estimator.sample(100_000, 0, 1, 200_000);
        // srtt 400 − 300/8 = 362.5 ms; deviation 4·(200 + 100/8/4) = 812.5 ms.
        assert_eq!(estimator.rto_ticks(ticks, 120_000), 1_175);
    }

    /// RFC 6298 §2.2 and §2.3 with a sample of 100 ticks (101 with the clock's), then a steady 100.
    #[test]
    fn bsd_s_timeout_is_the_mean_and_four_deviations() {
        let mut estimator = BsdRttEstimator::default();
        estimator.sample(100);
        assert_eq!(estimator.timeout(), 300);
        for _ in 0..60 {
            estimator.sample(101);
        }
        // Whole quarters of a tick stop the decay at 3 of them.
        assert!((100..=101).contains(&estimator.timeout()), "{}", estimator.timeout());
        estimator.sample(201);
        // Error 100: the deviation rises by a quarter of it, the mean by an eighth: 112 + 4 · 25.
        assert!((212..=214).contains(&estimator.timeout()), "{}", estimator.timeout());
    }

    /// The first sample of 40 ticks gives 40 + 4 · 40, a quarter more, and a share for the window.
    #[test]
    fn the_timeout_of_2_2_is_longer_for_small_windows_and_for_33_packets() {
        let mut estimator = LastTickEstimator::default();
        estimator.sample(40);
        for (cwnd, timeout) in
            [(1, 450), (2, 350), (3, 300), (20, 250), (32, 250), (33, 450), (34, 350)]
        {
            assert_eq!(estimator.timeout(cwnd), timeout, "{cwnd}");
        }
        for _ in 0..100 {
            estimator.sample(40);
        }
        assert_eq!(
            estimator.timeout(20),
            40 + 3 + 10,
            "the deviation stops at three quarters of a tick"
        );
    }

    #[test]
    fn the_minimum_forgets_what_is_older_than_its_window() {
        let mut min = WindowedMin::new();
        min.sample(100, 0, 5);
        for time in 1..100 {
            min.sample(100, time, 10);
        }
        assert_eq!(min.get(), 5);
        min.sample(100, 101, 10);
        assert_eq!(min.get(), 10);
    }
}
