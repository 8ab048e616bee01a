//! Instants and durations in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A point in simulated time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of simulated time in nanoseconds; never negative.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a run can reach: "no event".
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start of the run.
    #[inline]
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the start of the run.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start of the run (the unit of the kernel's RTT samples).
    #[inline]
    #[must_use]
    pub const fn as_micros_floor(self) -> u64 {
        self.0 / 1_000
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    #[inline]
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    #[inline]
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    #[inline]
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `s` seconds.
    #[inline]
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Nanoseconds.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds.
    #[inline]
    #[must_use]
    pub const fn as_micros_floor(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds.
    #[inline]
    #[must_use]
    pub const fn as_millis_floor(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds, for figures shown to people; never for the simulation itself.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero when `other` is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Stops at the start of the run.
    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}ns", self.0)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}
