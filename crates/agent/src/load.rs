//! Load of the machine during a run, and the resulting delay of the agent's samples.

use std::fs;

/// A sample this late no longer represents its instant.
const LATE_NS: i64 = 10_000_000;

/// Punctuality of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    pub samples: u64,
    /// Samples more than 10 ms late.
    pub late: u64,
    pub worst_ns: i64,
}

impl Lateness {
    /// Records a sample taken this much later than due.
    pub fn sampled(&mut self, by_ns: i64) {
        self.samples += 1;
        self.late += u64::from(by_ns > LATE_NS);
        self.worst_ns = self.worst_ns.max(by_ns);
    }
}

/// Counters of the machine's processors (proc(5)): ticks, and packets that the kernel's receive work left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    idle: u64,
    steal: u64,
    all: u64,
    dropped: u64,
    squeezed: u64,
}

/// The same over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Share of all processors' time.
    pub idle_share: f64,
    /// Share taken by a hypervisor.
    pub steal_share: f64,
    /// Packets that the kernel dropped before any queue saw them.
    pub dropped: u64,
    /// Number of times that the receive softirq ran out of its budget.
    pub squeezed: u64,
}

impl Load {
    pub fn now() -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        Self::parse(&read("/proc/stat"), &read("/proc/net/softnet_stat"))
    }

    fn parse(stat: &str, softnet: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or_default();
        // A line for each processor: packets, dropped, time_squeeze, in hexadecimal.
        let column = |index: usize| {
            let words = softnet.lines().filter_map(|line| line.split_whitespace().nth(index));
            words.filter_map(|word| u64::from_str_radix(word, 16).ok()).sum()
        };
        Self {
            idle: tick(3),
            steal: tick(7),
            all: ticks.iter().sum(),
            dropped: column(1),
            squeezed: column(2),
        }
    }

    /// From this moment to a later one.
    pub fn until(self, later: Self) -> Loaded {
        let all = later.all.saturating_sub(self.all).max(1) as f64;
        Loaded {
            idle_share: later.idle.saturating_sub(self.idle) as f64 / all,
            steal_share: later.steal.saturating_sub(self.steal) as f64 / all,
            dropped: later.dropped.saturating_sub(self.dropped),
            squeezed: later.squeezed.saturating_sub(self.squeezed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_all_processors() {
        let before =
            Load::parse("cpu  10 0 0 90 0 0 0 0 0 0\ncpu0 ...", "0a 01 02 00\n0b 00 01 00");
        let after = Load::parse("cpu  30 0 0 150 0 0 0 20 0 0\n", "0a 03 02 00\n0b 10 01 00");
        let interval = before.until(after);
        assert_eq!((interval.idle_share, interval.steal_share), (0.6, 0.2));
        assert_eq!((interval.dropped, interval.squeezed), (18, 0));
    }

    #[test]
    fn a_sample_after_ten_milliseconds_is_late() {
        let mut lateness = Lateness::default();
        for by_ns in [0, 10_000_000, 10_000_001] {
            lateness.sampled(by_ns);
        }
        assert_eq!(lateness, Lateness { samples: 3, late: 1, worst_ns: 10_000_001 });
    }
}
