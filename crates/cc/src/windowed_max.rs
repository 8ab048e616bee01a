//! Kathleen Nichols' windowed maximum: the best of the last `window` rounds in three samples.
//!
//! Source: Linux `lib/win_minmax.c`. It is not exact: when the best sample leaves the window the
//! second best takes its place, which is a true sample of the window but not always its maximum.

/// A value and when it was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u32,
    value: u32,
}

/// The maximum over a sliding window of the caller's time unit (`struct minmax`).
#[derive(Clone, Debug, Default)]
pub struct WindowedMax {
    best: [Sample; 3],
}

impl WindowedMax {
    /// Empty but for `value`.
    pub fn new(time: u32, value: u32) -> Self {
        Self { best: [Sample { time, value }; 3] }
    }

    /// The maximum (`minmax_get`).
    #[inline]
    pub fn get(&self) -> u32 {
        self.best[0].value
    }

    /// Takes in a sample (`minmax_running_max`).
    pub fn update(&mut self, window: u32, time: u32, value: u32) {
        // A new maximum outlives all before it; so does anything when the window holds nothing.
        if value >= self.best[0].value || time - self.best[2].time > window {
            *self = Self::new(time, value);
            return;
        }
        let sample = Sample { time, value };
        if value >= self.best[1].value {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].value {
            self.best[2] = sample;
        }
        self.age(window, sample);
    }

    /// Lets the best samples age (`minmax_subwin_update`), keeping the three well apart.
    fn age(&mut self, window: u32, sample: Sample) {
        let age = sample.time - self.best[0].time;
        if age > window {
            self.promote(sample);
            if sample.time - self.best[0].time > window {
                self.promote(sample);
            }
        } else if self.best[1].time == self.best[0].time && age > window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].time == self.best[1].time && age > window / 2 {
            self.best[2] = sample;
        }
    }

    /// The second and third best move up; `sample` is the new third.
    fn promote(&mut self, sample: Sample) {
        self.best = [self.best[1], self.best[2], sample];
    }
}

#[cfg(test)]
mod tests {
    use super::WindowedMax;

    #[test]
    fn a_peak_is_remembered_for_the_window_and_no_longer() {
        let mut filter = WindowedMax::new(0, 0);
        filter.update(10, 1, 100);
        for time in 2..=11 {
            filter.update(10, time, 50);
            assert_eq!(filter.get(), 100, "at {time}");
        }
        filter.update(10, 12, 50);
        assert_eq!(filter.get(), 50);
    }

    #[test]
    fn after_a_long_silence_only_the_new_sample_counts() {
        let mut filter = WindowedMax::new(0, 0);
        filter.update(10, 1, 100);
        filter.update(10, 40, 3);
        assert_eq!(filter.get(), 3);
    }

    #[test]
    fn while_samples_fall_the_answer_is_one_of_the_window() {
        let mut filter = WindowedMax::new(0, 0);
        for time in 0..100 {
            filter.update(10, time, 1000 - time);
            let oldest = time.saturating_sub(10);
            assert!((1000 - time..=1000 - oldest).contains(&filter.get()), "at {time}");
        }
    }
}
