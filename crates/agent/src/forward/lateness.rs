//! Lateness of packets, from when they were due until they left: a histogram of nanoseconds with steps of three per cent.

use serde::Serialize;

/// Steps per power of two.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Powers of two of a number of 64 bits, those below the first with steps left out.
const POWERS: usize = (u64::BITS - STEP_BITS) as usize;

/// The histogram.
#[derive(Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    packets: u64,
    worst_ns: u64,
}

/// Figures of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessFigures {
    pub packets: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub worst_ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; STEPS * (POWERS + 1)], packets: 0, worst_ns: 0 }
    }
}

/// The step of a number: those below the number of steps have one each.
fn step(ns: u64) -> usize {
    if ns < STEPS as u64 {
        return ns as usize;
    }
    let power = ns.ilog2() - STEP_BITS;
    (power as usize + 1) * STEPS + ((ns >> power) as usize & (STEPS - 1))
}

/// The largest number of a step.
fn top(step: usize) -> u64 {
    if step < STEPS {
        return step as u64;
    }
    let power = (step / STEPS - 1) as u32;
    let least = ((STEPS + step % STEPS) as u64) << power;
    least + ((1 << power) - 1)
}

impl Lateness {
    /// A packet left so much later than due.
    pub fn add(&mut self, ns: u64) {
        self.counts[step(ns)] += 1;
        self.packets += 1;
        self.worst_ns = self.worst_ns.max(ns);
    }

    /// A quantile, up to a step too high.
    fn quantile(&self, share: f64) -> u64 {
        let rank = (self.packets as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let reached = self.counts.iter().position(|count| {
            sum += count;
            sum >= rank
        });
        reached.map_or(0, |step| top(step).min(self.worst_ns))
    }

    /// Median, 99th percentile and the worst.
    pub fn figures(&self) -> LatenessFigures {
        LatenessFigures {
            packets: self.packets,
            median_ns: self.quantile(0.5),
            p99_ns: self.quantile(0.99),
            worst_ns: self.worst_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_without_a_gap() {
        let mut last = None;
        for ns in (0..5_000).chain([1 << 40, u64::MAX]) {
            let step = step(ns);
            assert!(ns <= top(step), "{ns}");
            assert!(top(step) - ns <= ns / STEPS as u64, "{ns}");
            assert!(last.is_none_or(|last| last <= step), "{ns}");
            last = Some(step);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_numbers() {
        let mut lateness = Lateness::default();
        for ns in 1..=1_000 {
            lateness.add(ns * 100);
        }
        lateness.add(5_000_000);
        let figures = lateness.figures();
        assert_eq!((figures.packets, figures.worst_ns), (1_001, 5_000_000));
        assert!((50_000..=52_000).contains(&figures.median_ns), "{figures:?}");
        assert!((99_000..=103_000).contains(&figures.p99_ns), "{figures:?}");
        assert_eq!(Lateness::default().figures().median_ns, 0);
    }
}
