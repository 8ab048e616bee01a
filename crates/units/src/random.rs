//! Named streams of randomness.
//!
//! Every random element of a run (one netem's loss, one flow's CDG coin, ...) draws from a stream
//! of its own, whose seed is derived from the run's seed and the element's name. Adding an
//! element therefore never changes what another one draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic generator: the same on every platform.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` in the run with this `seed`.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name; SplitMix64 (inside seed_from_u64) does the mixing.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(32) ^ hash))
    }

    /// 32 uniform bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform integer in `[0, bound)`; `bound` must not be zero. Multiply-shift on 32 bits, as
    /// the kernel's `get_random_u32_below` does without its rejection step (bias below 2^-32 × bound).
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0);
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    #[test]
    fn streams_with_different_names_are_unrelated_and_each_is_repeatable() {
        let draws = |name: &str| {
            let mut stream = Stream::named(7, name);
            (0..4).map(|_| stream.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draws("a"), draws("a"));
        assert_ne!(draws("a"), draws("b"));
        assert_ne!(draws("a"), {
            let mut stream = Stream::named(8, "a");
            (0..4).map(|_| stream.next_u64()).collect::<Vec<_>>()
        });
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut stream = Stream::named(1, "below");
        let draws: Vec<u32> = (0..1000).map(|_| stream.below(7)).collect();
        assert_eq!(draws.iter().max(), Some(&6));
        assert_eq!(draws.iter().min(), Some(&0));
    }
}
