//! The perturbed hash of fair queueing.

use dragstrip_units::Stream;

/// Maps flows to buckets; which flows collide follows from the perturbation.
#[derive(Clone, Debug)]
pub(crate) struct FlowHash {
    perturbation: u64,
}

impl FlowHash {
    /// A perturbation drawn from `stream`.
    pub(crate) fn new(stream: &mut Stream) -> Self {
        Self { perturbation: stream.next_u64() }
    }

    /// A bucket below `buckets` (`reciprocal_scale` of a 32-bit hash).
    #[inline]
    pub(crate) fn bucket(&self, flow: u32, buckets: u32) -> u32 {
        ((u64::from(self.of(flow)) * u64::from(buckets)) >> 32) as u32
    }

    /// 32 bits.
    #[inline]
    pub(crate) fn of(&self, key: u32) -> u32 {
        // SplitMix64's finaliser: every input bit changes every output bit with probability 1/2.
        let mut x = self.perturbation ^ u64::from(key);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        (x >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::FlowHash;
    use dragstrip_units::Stream;

    #[test]
    fn two_of_ten_flows_share_one_of_1024_buckets_as_often_as_by_chance() {
        let mut stream = Stream::named(3, "hash");
        let mut collisions = 0;
        for _ in 0..20_000 {
            let hash = FlowHash::new(&mut stream);
            let mut buckets: Vec<u32> = (0..10).map(|flow| hash.bucket(flow, 1024)).collect();
            buckets.sort_unstable();
            buckets.dedup();
            collisions += u32::from(buckets.len() < 10);
        }
        // 1 - 1024!/(1014! 1024^10) = 4.31 %; standard deviation over 20,000 trials 0.14 %.
        let share = f64::from(collisions) / 20_000.0;
        assert!((share - 0.0431).abs() < 0.005, "{share}");
    }
}
