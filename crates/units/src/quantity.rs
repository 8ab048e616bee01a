//! Bytes and bit rates.

use crate::Duration;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(u64);

/// A rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    #[inline]
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number itself.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for ByteCount {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for ByteCount {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for ByteCount {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Rate {
    /// `bps` bits per second; `None` for zero.
    #[must_use]
    pub const fn from_bits_per_second(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// Bits per second.
    #[inline]
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Transmission time of `bytes` at this rate, cut to whole nanoseconds (at most [`Duration::MAX`]), and the
    /// remainder in units of 1/rate nanoseconds (to be handed back as `carry` for the next packet).
    #[inline]
    #[must_use]
    pub const fn time_for_floor(self, bytes: u64, carry: u64) -> (Duration, u64) {
        let bit_ns = bytes as u128 * 8_000_000_000 + carry as u128;
        if bit_ns <= u64::MAX as u128 {
            let bit_ns = bit_ns as u64;
            (Duration::from_nanos(bit_ns / self.0), bit_ns % self.0)
        } else {
            let rate = self.0 as u128;
            (Duration::from_nanos(saturated(bit_ns / rate)), (bit_ns % rate) as u64)
        }
    }

    /// Number of whole bytes that pass in `span` at this rate.
    #[inline]
    #[must_use]
    pub const fn bytes_in_floor(self, span: Duration) -> u64 {
        saturated(self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000)
    }
}

const fn saturated(value: u128) -> u64 {
    if value > u64::MAX as u128 { u64::MAX } else { value as u64 }
}
