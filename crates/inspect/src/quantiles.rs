//! The distribution of many durations in bounded memory: exact up to some thousands, then in bins of 0.4 %.

/// Samples kept as they are.
const EXACT_MAX: usize = 4_096;
/// Bins per octave, as a power of two.
const FINE: u32 = 8;
/// Octaves: nanoseconds to eighteen minutes.
const OCTAVES: usize = 40;

/// A distribution of durations in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    count: u64,
    least: i64,
    exact: Vec<i64>,
    bins: Vec<u32>,
}

impl Quantiles {
    /// Adds a duration; a negative one counts as 0.
    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.least = if self.count == 0 { ns } else { self.least.min(ns) };
        self.count += 1;
        if !self.bins.is_empty() {
            self.bins[bin(ns)] += 1;
        } else if self.exact.len() < EXACT_MAX {
            self.exact.push(ns);
        } else {
            self.bins = vec![0; (OCTAVES + 1) << FINE];
            for duration in std::mem::take(&mut self.exact).into_iter().chain([ns]) {
                self.bins[bin(duration)] += 1;
            }
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least.
    pub fn least(&self) -> Option<i64> {
        (self.count > 0).then_some(self.least)
    }

    /// The duration below which this share lies, nanoseconds: between neighbours in proportion, as numpy does it.
    pub fn at(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = share * (self.count - 1) as f64;
        if self.bins.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            let below = sorted[rank as usize] as f64;
            let above = sorted[(rank as usize + 1).min(sorted.len() - 1)] as f64;
            return Some(below + (above - below) * rank.fract());
        }
        let mut passed = 0.0;
        for (index, count) in self.bins.iter().enumerate() {
            let count = f64::from(*count);
            if passed + count > rank {
                let (low, high) = edges(index);
                return Some(low + (high - low) * (rank - passed + 0.5) / count);
            }
            passed += count;
        }
        None
    }
}

fn bin(ns: i64) -> usize {
    let ns = ns.cast_unsigned();
    let octave = (64 - (ns >> FINE).leading_zeros()) as usize; // 0: as fine as nanoseconds
    if octave == 0 {
        return ns as usize;
    }
    let sub_bin = (ns >> (octave - 1)) as usize & ((1 << FINE) - 1);
    (octave.min(OCTAVES) << FINE) + if octave > OCTAVES { (1 << FINE) - 1 } else { sub_bin }
}

fn edges(index: usize) -> (f64, f64) {
    let (octave, sub_bin) = (index >> FINE, index & ((1 << FINE) - 1));
    if octave == 0 {
        return (index as f64, index as f64 + 1.0);
    }
    let step = (1_u64 << (octave - 1)) as f64;
    let low = ((1 << FINE) + sub_bin) as f64 * step;
    (low, low + step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_exact() {
        let mut quantiles = Quantiles::default();
        for ns in [40_490_000, 40_500_000, 40_480_000] {
            quantiles.add(ns);
        }
        assert_eq!((quantiles.count(), quantiles.least()), (3, Some(40_480_000)));
        assert_eq!(quantiles.at(0.5), Some(40_490_000.0));
        assert_eq!(quantiles.at(0.25), Some(40_485_000.0));
        assert_eq!(Quantiles::default().at(0.5), None);
    }

    #[test]
    fn many_are_within_a_bin() {
        let mut quantiles = Quantiles::default();
        for ns in 0..1_000_000 {
            quantiles.add(ns * 100);
        }
        for share in [0.05, 0.5, 0.95] {
            let quantile = quantiles.at(share).expect("samples");
            assert!((quantile / (share * 1e8) - 1.0).abs() < 0.004, "{share}: {quantile}");
        }
    }

    #[test]
    fn every_duration_has_a_bin_that_holds_it() {
        for shift in 0..62 {
            for ns in [(1_i64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let index = bin(ns);
                assert!(index < (OCTAVES + 1) << FINE);
                let (low, high) = edges(index);
                assert!(
                    ns >= 1 << 46 || (low <= ns as f64 && (ns as f64) < high),
                    "{ns} {low} {high}"
                );
            }
        }
    }
}
