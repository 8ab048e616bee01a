//! Round-trip times: the smoothed estimate, the timeout drawn from it, the windowed minimum.
//!
//! Kernel: `tcp_rtt_estimator`, `tcp_set_rto`, `tcp_update_rtt_min` (tcp_input.c), `minmax_running_min`
//! (lib/win_minmax.c).

use crate::ticks::Ticks;

/// RFC 6298 with Linux's differences: the deviation is floored at the minimum RTO (200 ms), rises at
/// once and decays once per round trip; samples below the mean raise the deviation at 1/8 gain.
#[derive(Clone, Debug, Default)]
pub(in crate::sender) struct RttEstimator {
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

/// The kernel's variables have 32 bits: × 8 they hold 536 s. There it goes on from 0, here at the most.
fn saturated(us: i64) -> u32 {
    u32::try_from(us.max(0)).unwrap_or(u32::MAX)
}

impl RttEstimator {
    /// Takes a sample of `rtt_us`.
    pub fn sample(&mut self, rtt_us: u32, snd_una: u64, snd_nxt: u64, rto_min_us: u32) {
        let rtt = i64::from(rtt_us.max(1));
        let mut srtt = i64::from(self.srtt_us_x8);
        if srtt == 0 {
            srtt = rtt << 3;
            self.mdev_us_x4 = saturated(rtt << 1);
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
            self.mdev_us_x4 = saturated(mdev + deviation);
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
        self.srtt_us_x8 = saturated(srtt).max(1);
    }

    /// Mean deviation × 4, µs.
    pub fn mdev_us_x4(&self) -> u32 {
        self.mdev_us_x4
    }

    /// Raises the estimate to the cached metrics of the path where these are more than the measurement
    /// (`tcp_init_metrics`).
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

/// Minimum over a sliding window, remembering the best three (Nichols; `struct minmax`).
/// Times are ticks, of which 32 bits are 49 days at 1000 Hz; values µs.
#[derive(Clone, Debug)]
pub(in crate::sender) struct WindowedMin {
    best: [(u32, u32); 3],
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
        let time = time as u32;
        if value > self.best[2].1 && u64::from(time - self.best[0].0) <= window / 4 {
            return; // the third best at most, and none of them is old
        }
        self.take(window, (time, value));
    }

    #[inline(never)]
    fn take(&mut self, window: u64, sample: (u32, u32)) {
        let (time, value) = sample;
        if value <= self.best[0].1 || u64::from(time - self.best[2].0) > window {
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
    fn age(&mut self, window: u64, sample: (u32, u32)) {
        let age = u64::from(sample.0 - self.best[0].0);
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if u64::from(sample.0 - self.best[0].0) > window {
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
        let ticks = Ticks::new(1000, crate::ticks::TimerWheel::Buckets, false);
        let mut short = RttEstimator::default();
        short.sample(1_000, 0, 1, 200_000);
        assert_eq!(short.rto_ticks(ticks, 120_000), 201);
        let mut long = RttEstimator::default();
        long.sample(500_000, 0, 1, 200_000);
        assert_eq!(long.rto_ticks(ticks, 120_000), 1_500);
    }

    #[test]
    fn a_steady_rtt_lets_the_timeout_fall_to_rtt_plus_200_ms() {
        let ticks = Ticks::new(1000, crate::ticks::TimerWheel::Buckets, false);
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
        let ticks = Ticks::new(1000, crate::ticks::TimerWheel::Buckets, false);
        let mut estimator = RttEstimator::default();
        estimator.sample(400_000, 0, 1, 200_000);
        estimator.sample(100_000, 0, 1, 200_000);
        // srtt 400 − 300/8 = 362.5 ms; deviation 4·(200 + 100/8/4) = 812.5 ms.
        assert_eq!(estimator.rto_ticks(ticks, 120_000), 1_175);
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
