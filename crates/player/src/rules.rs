//! Choice of the next rung of the ladder.

/// Segments of whose throughput the mean is taken.
const RECENT: usize = 5;

/// BBA-0's line from the lowest rate at the reservoir's end to the highest at the cushion's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateMap {
    pub reservoir_ns: u64,
    pub cushion_ns: u64,
}

impl RateMap {
    /// The rung after `rung` with `level_ns` in the buffer.
    pub fn next(self, ladder: &[u64], rung: usize, level_ns: u64) -> usize {
        let top = ladder.len() - 1;
        if level_ns <= self.reservoir_ns {
            return 0;
        }
        let above = level_ns - self.reservoir_ns;
        if above >= self.cushion_ns {
            return top;
        }
        // f(B) - Rmin is `span * above / cushion`: compared without the division.
        let span = u128::from(ladder[top] - ladder[0]) * u128::from(above);
        let beyond =
            |rung: usize| u128::from(ladder[rung] - ladder[0]) * u128::from(self.cushion_ns);
        if span >= beyond((rung + 1).min(top)) {
            (0..=top).rev().find(|&rung| beyond(rung) < span).unwrap_or(0)
        } else if span <= beyond(rung.saturating_sub(1)) {
            (0..=top).find(|&rung| beyond(rung) > span).unwrap_or(top)
        } else {
            rung
        }
    }
}

/// The harmonic mean of the last segments' throughput, of which a share is taken.
#[derive(Clone, Debug)]
pub(crate) struct Throughput {
    safety_ppm: u128,
    /// Attoseconds a bit, rounded up.
    recent: [u128; RECENT],
    seen: usize,
}

impl Throughput {
    pub fn new(safety: f64) -> Self {
        Self { safety_ppm: (safety * 1e6 + 0.5) as u128, recent: [0; RECENT], seen: 0 }
    }

    /// A segment of so many bytes took so long.
    pub fn took(&mut self, bytes: u64, ns: u64) {
        let attoseconds = u128::from(ns) * 1_000_000_000;
        self.recent[self.seen % RECENT] = attoseconds.div_ceil(u128::from(bytes.max(1)) * 8);
        self.seen += 1;
    }

    /// The highest rung that the share of the mean carries; the lowest if none does, and before the first segment.
    pub fn next(&self, ladder: &[u64]) -> usize {
        let count = self.seen.min(RECENT);
        // rate <= safety * count / sum, with 10^18 as in a second and ppm.
        let sum: u128 = self.recent[..count].iter().sum();
        let most = count as u128 * self.safety_ppm * 1_000_000_000_000;
        let carried = |rate: &u64| count > 0 && u128::from(*rate) * sum <= most;
        ladder.iter().rposition(carried).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const LADDER: [u64; 4] = [1_000_000, 2_000_000, 3_000_000, 5_000_000];

    fn mapped(rung: usize, level_s: u64) -> usize {
        RateMap { reservoir_ns: 10 * S, cushion_ns: 20 * S }.next(&LADDER, rung, level_s * S)
    }

    /// The line is 1 Mbit/s at 10 s and 5 Mbit/s at 30 s: 200 kbit/s a second.
    #[test]
    fn the_map_goes_from_reservoir_to_cushion() {
        assert_eq!([mapped(3, 0), mapped(3, 10)], [0, 0], "the reservoir is not touched");
        assert_eq!([mapped(0, 30), mapped(0, 99)], [3, 3], "the highest rate at the cushion's end");
        // f(16) = 2.2: up to 2 from 1, down to the rung above it from 5.
        assert_eq!([mapped(0, 16), mapped(3, 16)], [1, 2]);
        // Between the neighbours of 2 and of 3 nothing changes.
        assert_eq!([mapped(1, 12), mapped(1, 19), mapped(2, 16), mapped(2, 29)], [1, 1, 2, 2]);
        // f(20) = 3, a rung itself: up to the one below it, as the paper's strict sign says.
        assert_eq!([mapped(0, 20), mapped(1, 20), mapped(3, 20)], [1, 1, 3]);
    }

    #[test]
    fn the_mean_is_harmonic_and_of_five() {
        let mut rule = Throughput::new(0.9);
        assert_eq!(rule.next(&LADDER), 0, "nothing is known");
        // 2 and 8 Mbit/s: 3.2 (their arithmetic mean is 5), of which nine tenths are 2.88.
        rule.took(250_000, S);
        rule.took(1_000_000, S);
        assert_eq!(rule.next(&LADDER), 1);
        assert_eq!(Throughput { safety_ppm: 1_000_000, ..rule.clone() }.next(&LADDER), 2);
        for _ in 0..5 {
            rule.took(1_000_000, S);
        }
        assert_eq!(rule.next(&LADDER), 3, "older ones are forgotten");
        rule.took(1, 60 * S);
        assert_eq!(rule.next(&LADDER), 0, "one slow segment counts most");
    }
}
