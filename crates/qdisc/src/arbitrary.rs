//! Random configurations: what the disciplines' strategies are made of.

use proptest::prelude::*;

/// Range of random configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whatever a model has to bear, limits of nothing and contradictions included.
    Anything,
    /// Configurations a scenario may contain when no frame is longer than this.
    Valid {
        /// The longest frame, in bytes.
        frame_bytes: u64,
    },
}

const MS: u64 = 1_000_000;

impl Scope {
    /// Either of two strategies.
    pub fn choose<T: std::fmt::Debug + 'static>(
        self,
        anything: impl Strategy<Value = T> + 'static,
        valid: impl Strategy<Value = T> + 'static,
    ) -> BoxedStrategy<T> {
        match self {
            Self::Anything => anything.boxed(),
            Self::Valid { .. } => valid.boxed(),
        }
    }

    /// A limit in packets.
    pub fn packets(self) -> BoxedStrategy<u32> {
        self.choose(0_u32..60, prop_oneof![1..5_u32, 5..300_u32])
    }

    /// A limit in bytes; a valid one holds a frame.
    pub fn bytes(self) -> BoxedStrategy<u64> {
        match self {
            Self::Anything => (0_u64..60_000).boxed(),
            Self::Valid { frame_bytes } => {
                prop_oneof![Just(frame_bytes), frame_bytes..100_000].boxed()
            }
        }
    }

    /// A rate: a valid one is log-uniform from 100 kbit/s to 30 Mbit/s.
    pub fn rate_bps(self) -> BoxedStrategy<u64> {
        let anything = prop_oneof![1 => Just(100_000_000), 2 => 10_000_u64..1_000_000_000];
        let valid = (0_u32..=990, 0_u64..1000).prop_map(|(thousandths, rest)| {
            // 100 kbit/s · 2^(8.25 · share), by squaring: no float decides.
            let mut rate = 100_000_u64 << (thousandths / 120);
            rate += rate * u64::from(thousandths % 120) / 120;
            rate + rest
        });
        self.choose(anything, valid)
    }

    /// A time up to `most_ms`; a valid one is at least a millisecond.
    pub fn time_ns(self, most_ms: u64) -> BoxedStrategy<u64> {
        self.choose((0..most_ms * 1_000).prop_map(|us| us * 1_000), MS..most_ms * MS)
    }

    /// A quantum of round-robin service, in bytes.
    pub fn quantum_bytes(self) -> BoxedStrategy<u32> {
        self.choose(1_u32..4_000, 300..3028_u32)
    }

    /// A probability or correlation, mostly zero; a valid one is at most `most`.
    pub fn share(self, most: f64) -> BoxedStrategy<f64> {
        let most = if self == Self::Anything { 1.0 } else { most };
        prop_oneof![2 => Just(0.0), 1 => 0.0..=most].boxed()
    }
}
