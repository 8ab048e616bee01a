//! fq_pie in words, checks and the kernel's form (`q_fq_pie.c`).

use super::{Config, FqPie};
use crate::contract::Change;
use crate::disciplines::pie::Params;
use crate::disciplines::pie::spec::{LEAST_NS, WEIGHT_MAX, whole_micros};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::word;
use crate::table::{size, switch, table, time, whole};

/// The kernel's most (`NLA_POLICY_RANGE` in `fq_pie_change`).
const FLOWS_MAX: u32 = 65_536;
/// tc's least, below which the kernel sets a queue's turn to this.
const QUANTUM_MIN: u32 = 256;

// Attributes: TCA_FQ_PIE_LIMIT and on. tc drops a 0 silently and leaves the default; here it is refused.
table! {
    /// Flow queueing with PIE: fair queueing, and PIE in each queue.
    #[derive(Copy, Eq)]
    pub struct FqPieSpec {
        /// Packets that may wait in all queues together.
        limit_packets: u32 = 10_240 => whole("limit").at_least(1).attribute(1).confirmed(),
        /// Number of queues.
        flows: u32 = 1024 => whole("flows").at_least(1).at_most(FLOWS_MAX).attribute(2).confirmed(),
        /// Bytes a queue may send in turn.
        quantum_bytes: u32 = FRAME =>
            whole("quantum").at_least(QUANTUM_MIN).at_most(QUANTUM_MAX).attribute(7).confirmed(),
        /// The kernel counts memory and does not enforce this.
        memory_limit_bytes: u64 = 32 << 20 => size("memory_limit").at_least(1).attribute(8),
        /// Mark instead of drop up to this probability, in percent.
        ecn_prob_percent: u32 = 10 => whole("ecn_prob").at_most(100).attribute(9).confirmed(),
        /// The delay at which the queue settles.
        target_ns: u64 = 15_000_000 => time("target").at_least(LEAST_NS).attribute(3),
        /// Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20.
        tupdate_ns: u64 = 15_000_000 => time("tupdate").at_least(LEAST_NS).attribute(4),
        /// Weight of the distance from the target, in 1/16 Hz.
        alpha: u32 = 2 => whole("alpha").at_least(1).at_most(WEIGHT_MAX).attribute(5).confirmed(),
        /// Weight of the change of the delay, in 1/16 Hz.
        beta: u32 = 20 => whole("beta").at_least(1).at_most(WEIGHT_MAX).attribute(6).confirmed(),
        /// Mark instead of drop.
        ecn: bool = false => switch(&[("ecn", true), ("noecn", false)]).attribute(10).confirmed(),
        /// Drop short packets less, in proportion to their length.
        bytemode: bool = false =>
            switch(&[("bytemode", true), ("nobytemode", false)])
                .unless_usual()
                .attribute(11)
                .confirmed(),
        /// Compute the delay from the rate at which packets leave instead of stamping each.
        dq_rate_estimator: bool = false =>
            switch(&[("dq_rate_estimator", true), ("no_dq_rate_estimator", false)])
                .unless_usual()
                .attribute(12)
                .confirmed(),
    }
}

impl Configuration for FqPieSpec {
    type Model = Box<FqPie>;

    const KIND: &'static str = "fq_pie";
    const SINCE: Option<(u32, u32)> = Some((5, 6));
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_fq_pie"];
    const EXAMPLES: &'static [&'static str] = &[
        "fq_pie",
        "fq_pie limit 500 flows 64 quantum 300 memory_limit 1mb ecn_prob 99 target 5ms tupdate 30ms alpha 4 beta 32 ecn bytemode dq_rate_estimator",
    ];
    const EXTREMES: &'static [&'static str] =
        &["fq_pie limit 4294967295 target 4000s tupdate 1us alpha 32 beta 32"];
    const NESTED: bool = true;
    /// TCA_FQ_PIE_FLOWS: `fq_pie_change` refuses it.
    const FIXED: Option<u16> = Some(2);

    fn facts(&self) -> Facts {
        Facts { draws: true, marks: self.ecn, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<FqPie> {
        let params = Params {
            target: whole_micros(self.target_ns),
            alpha: self.alpha,
            beta: self.beta,
            ecn: self.ecn,
            bytemode: self.bytemode,
            dq_rate_estimator: self.dq_rate_estimator,
            ..Params::default()
        };
        let tupdate = whole_micros(self.tupdate_ns);
        let config = Config {
            limit: self.limit_packets,
            flows: self.flows,
            quantum: self.quantum_bytes,
            ecn_prob: self.ecn_prob_percent,
            params,
            tupdate,
        };
        Box::new(FqPie::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    /// struct tc_fq_pie_xstats: packets_in, dropped, overlimit, overmemory, ecn_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 16).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let weight = || scope.choose(0_u32..100, 1..=32_u32);
        let switches = any::<(bool, bool, bool)>();
        let flows = scope.choose(1_u32..8, 1..2000_u32);
        let sizes = (scope.packets(), flows, scope.quantum_bytes(), 0_u32..=100);
        (sizes, scope.time_ns(30), scope.time_ns(60), weight(), weight(), switches)
            .prop_map(|(sizes, target_ns, tupdate_ns, alpha, beta, switches)| Self {
                limit_packets: sizes.0,
                flows: sizes.1,
                quantum_bytes: sizes.2,
                memory_limit_bytes: 32 << 20,
                ecn_prob_percent: sizes.3,
                target_ns,
                tupdate_ns,
                alpha,
                beta,
                ecn: switches.0,
                bytemode: switches.1,
                dq_rate_estimator: switches.2,
            })
            .boxed()
    }
}
