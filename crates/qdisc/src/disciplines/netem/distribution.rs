//! Shapes of netem's delay (`tabledist`, and the tables that iproute2's generators print).
//!
//! A table holds the inverse of the cumulative distribution at 4096 equal steps, in 8192ths of a
//! standard deviation, 16 bits. A draw picks an entry at random.
//!
//! Two properties of the kernel's arithmetic are kept on purpose. Both shapes reduce the 32-bit draw by
//! a *remainder*: (1) the uniform one is uneven when 2^32 is not a multiple of twice the jitter (100 ±
//! 75 ms has a mean of 99.4 ms; it grows with the jitter), and (2) the remainder looks at the low bits, so
//! correlated draws, which are alike in their high bits, give nearly independent delays: netem's
//! delay correlation has hardly any effect.

use std::sync::Arc;

/// Shape of the delay around its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform in [delay - jitter, delay + jitter).
    #[default]
    Uniform,
    /// Normal; jitter is the standard deviation.
    Normal,
    /// Pareto with exponent 3, shifted to mean zero and cut at four jitters. Its standard deviation is
    /// 1.15 jitters before the cut: the generator divides by the variance.
    Pareto,
    /// A quarter normal, three quarters Pareto, of the same quantile.
    ParetoNormal,
}

const ENTRIES: u32 = 4096;
const SCALE: f64 = 8192.0;

/// A shape ready to be drawn from.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Uniform,
    Table(Arc<[i16]>),
}

impl Shape {
    pub(super) fn new(distribution: Distribution) -> Self {
        let table = |values: &dyn Fn(u32, f64) -> f64| {
            let mut x = -4.0;
            let entry = |k: u32| {
                x = normal_quantile((f64::from(4 * k) + 0.5) / 16384.0, x);
                values(k, libm::rint(x * SCALE)).clamp(f64::from(i16::MIN), f64::from(i16::MAX))
                    as i16
            };
            Self::Table((0..ENTRIES).map(entry).collect())
        };
        match distribution {
            Distribution::Uniform => Self::Uniform,
            Distribution::Normal => table(&|_, normal| normal),
            Distribution::Pareto => table(&|k, _| pareto(k)),
            Distribution::ParetoNormal => {
                table(&|k, normal| libm::trunc((normal + 3.0 * pareto(k)) / 4.0))
            }
        }
    }

    /// A deviation from the mean, in nanoseconds, made of 32 random bits.
    #[inline]
    pub(super) fn deviation_ns(&self, jitter_ns: i64, random: u32) -> i64 {
        match self {
            Self::Uniform => i64::from(random) % (2 * jitter_ns) - jitter_ns,
            Self::Table(table) => {
                let value = i64::from(table[random as usize % table.len()]);
                // In two parts as the kernel does: whole scales, and the rest rounded.
                const SCALE: i64 = 8192;
                let rest = (jitter_ns % SCALE) * value;
                let half = if rest >= 0 { SCALE / 2 } else { -SCALE / 2 };
                (rest + half) / SCALE + (jitter_ns / SCALE) * value
            }
        }
    }
}

/// The table of a shape, as netem takes it from tc(8); none for the uniform one.
#[must_use]
pub fn table(distribution: Distribution) -> Option<Arc<[i16]>> {
    match Shape::new(distribution) {
        Shape::Uniform => None,
        Shape::Table(table) => Some(table),
    }
}

/// Quantile of the Pareto distribution with exponent 3 and minimum 1, less its mean, over its variance.
fn pareto(k: u32) -> f64 {
    let tail = 1.0 - f64::from(k) / f64::from(ENTRIES);
    let value = 1.0 / libm::cbrt(tail) - 1.5;
    libm::rint((value * (4.0 / 3.0) * SCALE).min(f64::from(i16::MAX)))
}

/// Returns the `p` quantile of the standard normal distribution, by Newton's method from a point below it.
fn normal_quantile(p: f64, mut x: f64) -> f64 {
    for _ in 0..60 {
        let error = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2) - p;
        let density = libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
        let step = error / density;
        x -= step;
        if step.abs() < 1e-10 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Shape};
    use dragstrip_units::Stream;

    fn table(distribution: Distribution) -> Vec<i16> {
        super::table(distribution).map_or_else(Vec::new, |table| table.to_vec())
    }

    /// Mean and standard deviation in jitters.
    fn moments(distribution: Distribution) -> (f64, f64) {
        const DRAWS: u32 = 400_000;
        let shape = Shape::new(distribution);
        let mut stream = Stream::named(2, "shape");
        let jitter = 75_000_000;
        let draws: Vec<f64> = (0..DRAWS)
            .map(|_| shape.deviation_ns(jitter, stream.next_u32()) as f64 / jitter as f64)
            .collect();
        let n = f64::from(DRAWS);
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (mean, libm::sqrt(variance))
    }

    #[test]
    fn uniform_reaches_from_one_end_to_the_other() {
        let shape = Shape::new(Distribution::Uniform);
        assert_eq!(shape.deviation_ns(75_000_000, 0), -75_000_000);
        assert_eq!(shape.deviation_ns(75_000_000, 149_999_999), 74_999_999);
        let (mean, deviation) = moments(Distribution::Uniform);
        // 28 whole rounds of 150,000,000 and 94,967,296 more: (28 · 1.5e8^2 + 94,967,296^2) / 2^33.
        assert!((mean - (74_391_577.0 - 75e6) / 75e6).abs() < 0.003, "{mean}");
        assert!((deviation - 1.0 / libm::sqrt(3.0)).abs() < 0.003, "{deviation}");
    }

    #[test]
    fn normal_quantiles_are_those_of_the_textbook() {
        let table = table(Distribution::Normal);
        assert_eq!(table.len(), 4096);
        assert_eq!(table[0], i16::MIN);
        // The middle, and the quantiles of 2.5 %, 97.5 % and 84.13 % (one deviation).
        for (k, deviations) in [(2048, 0.0), (102, -1.96), (3994, 1.96), (3446, 1.0)] {
            assert!((f64::from(table[k]) / 8192.0 - deviations).abs() < 0.006, "{k}");
        }
        assert!(table.is_sorted());
        let (mean, deviation) = moments(Distribution::Normal);
        assert!(mean.abs() < 0.005 && (deviation - 1.0).abs() < 0.006);
    }

    #[test]
    fn pareto_starts_at_its_minimum_and_is_cut_at_four() {
        let table = table(Distribution::Pareto);
        assert_eq!((table[0], table[4095]), (-5461, i16::MAX));
        assert!(table.is_sorted());
        let (mean, deviation) = moments(Distribution::Pareto);
        // Cut at 4.5 times the minimum the mean loses 4/3 · 4.5^-2 / 2 = 0.033; the variance of
        // the cut distribution is 16/9 · (3 - 2/4.5 - 1.4753^2) = 0.674.
        assert!((mean + 0.033).abs() < 0.004, "{mean}");
        assert!((deviation - 0.821).abs() < 0.005, "{deviation}");
    }

    #[test]
    fn paretonormal_mixes_the_quantiles() {
        let (normal, pareto) = (table(Distribution::Normal), table(Distribution::Pareto));
        let mixed = table(Distribution::ParetoNormal);
        for k in (1..4096).step_by(97) {
            let sum = i32::from(normal[k]) + 3 * i32::from(pareto[k]);
            assert_eq!(i32::from(mixed[k]), sum / 4);
        }
    }
}
