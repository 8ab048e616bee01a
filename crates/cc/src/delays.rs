//! Delay history of algorithms that watch the delay: the least of the last few, and of a longer time before.

use dragstrip_units::Instant;

/// No delay is known.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The least of the last `N` spans of time, of which the current one is the last.
#[derive(Clone, Debug)]
pub(crate) struct Least<const N: usize> {
    span_ns: u64,
    /// By the number of their span, modulo `N`.
    each: [u32; N],
    current: u64,
}

impl<const N: usize> Least<N> {
    /// Nothing is known.
    pub const fn new(span_ns: u64) -> Self {
        Self { span_ns, each: [UNKNOWN; N], current: 0 }
    }

    /// Takes in a delay. Spans without one know nothing.
    #[inline]
    pub fn record(&mut self, now: Instant, delay: u32) {
        let span = now.as_nanos() / self.span_ns;
        for skipped in self.current + 1..=span.min(self.current + N as u64) {
            self.each[skipped as usize % N] = UNKNOWN;
        }
        self.current = span;
        let least = &mut self.each[span as usize % N];
        *least = delay.min(*least);
    }

    /// [`UNKNOWN`] before the first.
    #[inline]
    pub fn get(&self) -> u32 {
        self.each.iter().copied().min().unwrap_or(UNKNOWN)
    }
}

/// Delays of which the least counts (RFC 6817's `CURRENT_FILTER`).
const FILTER: usize = 4;
/// Minutes that the base delay is looked for in (RFC 6817's `BASE_HISTORY`).
const MINUTES: usize = 10;
const MINUTE_NS: u64 = 60_000_000_000;

/// Queueing delay as in RFC 6817, §2.4.2: the least of the last four delays, less the least of the last ten minutes.
#[derive(Clone, Debug)]
pub(crate) struct Queueing {
    recent: [u32; FILTER],
    next: u8,
    base: Least<MINUTES>,
}

impl Queueing {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { recent: [UNKNOWN; FILTER], next: 0, base: Least::new(MINUTE_NS) }
    }

    /// Takes in a delay.
    #[inline]
    pub fn record(&mut self, now: Instant, delay: u32) {
        let delay = delay.min(UNKNOWN - 1);
        self.recent[usize::from(self.next) % FILTER] = delay;
        self.next = (self.next + 1) % FILTER as u8;
        self.base.record(now, delay);
    }

    /// The base delay; [`UNKNOWN`] before the first.
    #[inline]
    pub fn base(&self) -> u32 {
        self.base.get()
    }

    /// None before the first delay.
    #[inline]
    pub fn get(&self) -> Option<u32> {
        let least = self.recent.iter().copied().min()?;
        (least < UNKNOWN).then(|| least.saturating_sub(self.base()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn a_base_of_ten_minutes_ago_is_forgotten() {
        let mut queueing = Queueing::new();
        assert_eq!((queueing.base(), queueing.get()), (UNKNOWN, None));
        queueing.record(at_ms(0), 20_000);
        queueing.record(at_ms(9 * 60_000), 50_000);
        assert_eq!(queueing.base(), 20_000);
        queueing.record(at_ms(10 * 60_000), 60_000);
        assert_eq!(queueing.base(), 50_000);
        queueing.record(at_ms(60 * 60_000), 70_000);
        assert_eq!(queueing.base(), 70_000);
    }

    #[test]
    fn the_least_of_four_delays_counts() {
        let mut delays = Queueing::new();
        for (delay, queueing) in [(100, 0), (130, 0), (140, 0), (150, 0), (160, 30), (170, 40)] {
            delays.record(at_ms(1), delay);
            assert_eq!(delays.get(), Some(queueing), "{delay}");
        }
    }
}
