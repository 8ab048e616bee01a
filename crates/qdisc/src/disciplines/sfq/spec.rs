//! sfq in words, checks and the kernel's form (`q_sfq.c`).

use super::{Config, Sfq};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::table::{Layout, packets, table, text, whole};
use dragstrip_units::{Duration, Report};

/// The kernel's bounds (`SFQ_MAX_FLOWS`, `SFQ_MAX_DEPTH`, 65536 hash buckets).
const FLOWS_MAX: u32 = 65_408;
const DEPTH_MAX: u32 = 127;
const DIVISOR_MAX: u32 = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

// struct tc_sfq_qopt_v1, in which headdrop and RED behind it stay off. The hash never changes by default.
table! {
    /// Stochastic fairness queueing.
    #[derive(Copy, Eq)]
    pub struct SfqSpec {
        /// Packets that may wait.
        limit_packets: u32 = 127 => whole("limit").at_least(1).at(8),
        /// Number of queues.
        flows: u32 = 128 => whole("flows").at_least(1).at_most(FLOWS_MAX).at(16),
        /// Hash buckets.
        divisor: u32 = 1024 => whole("divisor").within("a power of two up to 65536", divisor).at(12),
        /// Packets that may wait in one queue.
        depth_packets: u32 = 127 => whole("depth").at_least(1).at_most(DEPTH_MAX).at(20),
        /// Bytes a queue may send in turn.
        quantum_bytes: u32 = FRAME => packets("quantum").called("BYTES").at_least(1).at_most(QUANTUM_MAX).at(0),
        /// Time between changes of the hash; 0: never.
        perturb_ns: u64 = 0 =>
            text(
                "perturb",
                "SECONDS",
                |words, word| Ok(u64::from(words.whole::<u32>(word)?) * SECOND_NS),
                |ns| (ns / SECOND_NS).to_string(),
            )
            .unless_usual()
            .within("up to 17000", whole_seconds)
            .encoded(|ns| ns / SECOND_NS)
            .at(4),
    }
}

fn divisor(report: &mut Report, field: String, divisor: u32) {
    if !divisor.is_power_of_two() || divisor > DIVISOR_MAX {
        report.add(field, divisor, format!("a power of two up to {DIVISOR_MAX}"));
    }
}

fn whole_seconds(report: &mut Report, field: String, ns: u64) {
    report.time(field.clone(), ns, 0);
    if !ns.is_multiple_of(SECOND_NS) {
        report.add(field, ns, "whole seconds, as the kernel keeps it");
    }
}

impl Configuration for SfqSpec {
    type Model = Box<Sfq>;

    const KIND: &'static str = "sfq";
    const MODULES: &'static [&'static str] = &["sch_sfq"];
    const EXAMPLES: &'static [&'static str] =
        &["sfq", "sfq limit 90 flows 16 divisor 64 depth 30 quantum 3028 perturb 10"];
    const EXTREMES: &'static [&'static str] = &["sfq"];
    const LAYOUT: Layout = Layout::Structure(72);
    // `sfq_qdisc_ops` has no `change`.
    const CHANGEABLE: bool = false;
    const UNMODELLED: &'static [&'static str] = &[
        "headdrop",
        "redflowlimit",
        "min",
        "max",
        "avpkt",
        "burst",
        "probability",
        "ecn",
        "harddrop",
    ];

    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Sfq> {
        let config = Config {
            limit: self.limit_packets,
            flows: self.flows,
            divisor: self.divisor,
            depth: self.depth_packets,
            quantum: self.quantum_bytes,
            perturb: Duration::from_nanos(self.perturb_ns),
        };
        Box::new(Sfq::new(config, streams.named(Self::KIND)))
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let flows = scope.choose(1_u32..6, 1..200_u32);
        let divisor = scope.choose(1_u32..8, (0..11_u32).prop_map(|bits| 1 << bits));
        let depth = scope.choose(1_u32..20, 1..128_u32);
        let perturb_ns = scope.choose(
            (0_u64..20_000).prop_map(|us| us * 1_000),
            (0..3_u64).prop_map(|s| s * SECOND_NS),
        );
        (scope.packets(), flows, divisor, depth, scope.quantum_bytes(), perturb_ns)
            .prop_map(|sizes| Self {
                limit_packets: sizes.0,
                flows: sizes.1,
                divisor: sizes.2,
                depth_packets: sizes.3,
                quantum_bytes: sizes.4,
                perturb_ns: sizes.5,
            })
            .boxed()
    }
}
