//! sfq in words, checks and the kernel's form (`q_sfq.c`).

use super::{Config, Sfq};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::{saturated, words};
use crate::tc::{Text, Words, unless};
use dragstrip_units::{Duration, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stochastic fairness queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SfqSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Number of queues.
    pub flows: u32,
    /// Hash buckets.
    pub divisor: u32,
    /// Packets that may wait in one queue.
    pub depth_packets: u32,
    /// Bytes a queue may send in turn.
    pub quantum_bytes: u32,
    /// Time between changes of the hash; 0: never.
    pub perturb_ns: u64,
}

/// The kernel's bounds (`SFQ_MAX_FLOWS`, `SFQ_MAX_DEPTH`, 65536 hash buckets).
const FLOWS_MAX: u32 = 65_408;
const DEPTH_MAX: u32 = 127;
const DIVISOR_MAX: u32 = 65_536;
const SECOND_NS: u64 = 1_000_000_000;
/// Size of struct tc_sfq_qopt_v1.
const QOPT_V1_BYTES: usize = 72;

impl Default for SfqSpec {
    /// The kernel's on Ethernet: the hash never changes.
    fn default() -> Self {
        Self {
            limit_packets: 127,
            flows: 128,
            divisor: 1024,
            depth_packets: 127,
            quantum_bytes: FRAME,
            perturb_ns: 0,
        }
    }
}

impl Configuration for SfqSpec {
    type Model = Box<Sfq>;

    const KIND: &'static str = "sfq";
    const WORDS: &'static [&'static str] =
        &["limit", "flows", "divisor", "depth", "quantum", "perturb"];
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

    /// `perturb` is in whole seconds, as in tc.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "flows" => spec.flows = words.whole(word)?,
                "divisor" => spec.divisor = words.whole(word)?,
                "depth" => spec.depth_packets = words.whole(word)?,
                "quantum" => spec.quantum_bytes = words.packets(word)?,
                "perturb" => spec.perturb_ns = u64::from(words.whole::<u32>(word)?) * SECOND_NS,
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("limit", self.limit_packets)
            .pair("flows", self.flows)
            .pair("divisor", self.divisor)
            .pair("depth", self.depth_packets)
            .pair("quantum", self.quantum_bytes)
            .optional("perturb", unless(self.perturb_ns == 0, self.perturb_ns / SECOND_NS))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self { limit_packets, flows, divisor, depth_packets, quantum_bytes, perturb_ns } =
            *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_least(format!("{at}.flows"), flows, 1);
        report.at_most(format!("{at}.flows"), flows, FLOWS_MAX);
        if !divisor.is_power_of_two() || divisor > DIVISOR_MAX {
            let expected = format!("a power of two up to {DIVISOR_MAX}");
            report.add(format!("{at}.divisor"), divisor, expected);
        }
        report.at_least(format!("{at}.depth_packets"), depth_packets, 1);
        report.at_most(format!("{at}.depth_packets"), depth_packets, DEPTH_MAX);
        report.at_least(format!("{at}.quantum_bytes"), quantum_bytes, 1);
        report.at_most(format!("{at}.quantum_bytes"), quantum_bytes, QUANTUM_MAX);
        report.time(format!("{at}.perturb_ns"), perturb_ns, 0);
        if perturb_ns % SECOND_NS != 0 {
            let expected = "whole seconds, as the kernel keeps it";
            report.add(format!("{at}.perturb_ns"), perturb_ns, expected);
        }
    }

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

    fn options(&self) -> Option<Vec<u8>> {
        let perturb_s = saturated(self.perturb_ns / SECOND_NS);
        let mut bytes =
            words(&[self.quantum_bytes, perturb_s, self.limit_packets, self.divisor, self.flows]);
        bytes.extend(words(&[self.depth_packets])); // headdrop and RED behind it stay off
        bytes.resize(QOPT_V1_BYTES, 0);
        Some(bytes)
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
