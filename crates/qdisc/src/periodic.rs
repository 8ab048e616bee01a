//! Kernel timers that nobody waits for, replayed at the next call.
//!
//! An AQM that updates its drop probability every 20 ms, or a hash that changes every 10 s, needs no event: between two calls
//! nothing that such a timer looks at changes, so its work can be made up for when somebody comes. At equal instants the
//! timer goes first. What must happen at its instant (a packet becomes due) is [`Dequeue::Wait`](crate::Dequeue)'s.

use dragstrip_units::{Duration, Instant};

/// A tick of the kernel's clock at 250 Hz.
const TICK: Duration = Duration::from_millis(4);

/// Ticks from the start of the run to `at`.
pub(crate) const fn jiffies(at: Instant) -> u64 {
    at.as_nanos() / TICK.as_nanos()
}

/// The ticks of a span, rounded up (`msecs_to_jiffies`).
pub(crate) const fn jiffies_of(span: Duration) -> u64 {
    span.as_nanos().div_ceil(TICK.as_nanos())
}

/// A timer that fires every period, the first time one period after the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    next: Instant,
    period: Duration,
}

impl Periodic {
    /// A timer with this period; zero: it never fires.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        let next = if period == Duration::ZERO { Instant::NEVER } else { Instant::ZERO + period };
        Self { next, period }
    }

    /// Returns the number of times it has fired since the last call. `now` never decreases.
    #[inline]
    pub fn due(&mut self, now: Instant) -> u64 {
        if now < self.next { 0 } else { self.fire(now) }
    }

    /// The instants at which it has fired since it was last asked; of more than `most` the latest.
    #[inline]
    pub fn instants(&mut self, now: Instant, most: u64) -> impl Iterator<Item = Instant> + use<> {
        let (first, period) = (self.next, self.period.as_nanos());
        let times = self.due(now);
        (times.saturating_sub(most)..times)
            .map(move |number| first + Duration::from_nanos(number * period))
    }

    #[cold]
    fn fire(&mut self, now: Instant) -> u64 {
        let period = self.period.as_nanos();
        let times = now.since(self.next).as_nanos() / period + 1;
        self.next += Duration::from_nanos(times * period);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::Periodic;
    use dragstrip_units::{Duration, Instant};

    #[test]
    fn each_period_counts_once_at_its_instant_or_later() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut timer = Periodic::every(Duration::from_millis(20));
        let fired: Vec<u64> =
            [0, 19, 20, 20, 39, 85, 100, 101].into_iter().map(|ms| timer.due(at(ms))).collect();
        assert_eq!(fired, [0, 0, 1, 0, 0, 3, 1, 0]);
        let mut timer = Periodic::every(Duration::from_millis(20));
        assert_eq!(timer.instants(at(65), 9).collect::<Vec<_>>(), [at(20), at(40), at(60)]);
        assert_eq!(timer.instants(at(79), 9).count(), 0);
        assert_eq!(timer.instants(at(159), 2).collect::<Vec<_>>(), [at(120), at(140)]);
        assert_eq!(Periodic::every(Duration::ZERO).due(at(1_000_000)), 0);
    }
}
