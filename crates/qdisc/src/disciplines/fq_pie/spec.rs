//! fq_pie in words, checks and the kernel's form (`q_fq_pie.c`).

use super::{Config, FqPie};
use crate::contract::Change;
use crate::disciplines::pie::Params;
use crate::disciplines::pie::spec::{check_controller, whole_micros};
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::{Attributes, Writer, micros, saturated, word};
use crate::tc::{Text, Words, size, time};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flow queueing with PIE: fair queueing, and PIE in each queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqPieSpec {
    /// Packets that may wait in all queues together.
    pub limit_packets: u32,
    /// Number of queues.
    pub flows: u32,
    /// Bytes a queue may send in turn.
    pub quantum_bytes: u32,
    /// The kernel counts memory and does not enforce this.
    pub memory_limit_bytes: u64,
    /// Mark instead of drop up to this probability, in percent.
    pub ecn_prob_percent: u32,
    /// The delay at which the queue settles.
    pub target_ns: u64,
    /// Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20.
    pub tupdate_ns: u64,
    /// Weight of the distance from the target, in 1/16 Hz.
    pub alpha: u32,
    /// Weight of the change of the delay, in 1/16 Hz.
    pub beta: u32,
    /// Mark instead of drop.
    pub ecn: bool,
    /// Drop short packets less, in proportion to their length.
    pub bytemode: bool,
    /// Compute the delay from the rate at which packets leave instead of stamping each.
    pub dq_rate_estimator: bool,
}

/// The kernel's most (`NLA_POLICY_RANGE` in `fq_pie_change`).
const FLOWS_MAX: u32 = 65_536;
/// tc's least, below which the kernel sets a queue's turn to this.
const QUANTUM_MIN: u32 = 256;

impl Default for FqPieSpec {
    /// The kernel's: 10240 packets, 1024 queues, 15 ms, nothing switched on.
    fn default() -> Self {
        Self {
            limit_packets: 10_240,
            flows: 1024,
            quantum_bytes: FRAME,
            memory_limit_bytes: 32 << 20,
            ecn_prob_percent: 10,
            target_ns: 15_000_000,
            tupdate_ns: 15_000_000,
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
        }
    }
}

impl Configuration for FqPieSpec {
    type Model = Box<FqPie>;

    const KIND: &'static str = "fq_pie";
    const NESTED: bool = true;
    /// TCA_FQ_PIE_FLOWS: `fq_pie_change` refuses it.
    const FIXED: Option<u16> = Some(2);
    const WORDS: &'static [&'static str] = &[
        "limit",
        "flows",
        "target",
        "tupdate",
        "alpha",
        "beta",
        "quantum",
        "memory_limit",
        "ecn_prob",
        "ecn",
        "noecn",
        "bytemode",
        "nobytemode",
        "dq_rate_estimator",
        "no_dq_rate_estimator",
    ];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "flows" => spec.flows = words.whole(word)?,
                "quantum" => spec.quantum_bytes = words.whole(word)?,
                "memory_limit" => spec.memory_limit_bytes = words.size(word)?,
                "ecn_prob" => spec.ecn_prob_percent = words.whole(word)?,
                "target" => spec.target_ns = words.time(word)?,
                "tupdate" => spec.tupdate_ns = words.time(word)?,
                "alpha" => spec.alpha = words.whole(word)?,
                "beta" => spec.beta = words.whole(word)?,
                "ecn" => spec.ecn = true,
                "noecn" => spec.ecn = false,
                "bytemode" => spec.bytemode = true,
                "nobytemode" => spec.bytemode = false,
                "dq_rate_estimator" => spec.dq_rate_estimator = true,
                "no_dq_rate_estimator" => spec.dq_rate_estimator = false,
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("limit", self.limit_packets)
            .pair("flows", self.flows)
            .pair("quantum", self.quantum_bytes)
            .pair("memory_limit", size(self.memory_limit_bytes))
            .pair("ecn_prob", self.ecn_prob_percent)
            .pair("target", time(self.target_ns))
            .pair("tupdate", time(self.tupdate_ns))
            .pair("alpha", self.alpha)
            .pair("beta", self.beta)
            .ecn(self.ecn)
            .word(if self.bytemode { "bytemode" } else { "" })
            .word(if self.dq_rate_estimator { "dq_rate_estimator" } else { "" })
    }

    /// tc drops a 0 silently and leaves the default; here it is refused.
    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            flows,
            quantum_bytes,
            memory_limit_bytes,
            ecn_prob_percent,
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn: _,
            bytemode: _,
            dq_rate_estimator: _,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_least(format!("{at}.flows"), flows, 1);
        report.at_most(format!("{at}.flows"), flows, FLOWS_MAX);
        report.at_least(format!("{at}.quantum_bytes"), quantum_bytes, QUANTUM_MIN);
        report.at_most(format!("{at}.quantum_bytes"), quantum_bytes, QUANTUM_MAX);
        report.at_least(format!("{at}.memory_limit_bytes"), memory_limit_bytes, 1);
        report.at_most(format!("{at}.ecn_prob_percent"), ecn_prob_percent, 100);
        check_controller((target_ns, tupdate_ns), (alpha, beta), at, report);
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
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

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_FQ_PIE_LIMIT, _FLOWS, _TARGET, _TUPDATE, _ALPHA, _BETA, _QUANTUM, _MEMORY_LIMIT, _ECN_PROB, _ECN, _BYTEMODE,
            // _DQ_RATE_ESTIMATOR
            inside.u32(1, self.limit_packets).u32(2, self.flows);
            inside.u32(3, micros(self.target_ns)).u32(4, micros(self.tupdate_ns));
            inside.u32(5, self.alpha).u32(6, self.beta).u32(7, self.quantum_bytes);
            inside.u32(8, saturated(self.memory_limit_bytes)).u32(9, self.ecn_prob_percent);
            inside.u32(10, u32::from(self.ecn)).u32(11, u32::from(self.bytemode));
            inside.u32(12, u32::from(self.dq_rate_estimator));
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        let one = |what, kind, wanted| Confirmation::new(what, inside.number(kind), wanted);
        vec![
            one("limit", 1, self.limit_packets),
            one("flows", 2, self.flows),
            one("alpha", 5, self.alpha),
            one("beta", 6, self.beta),
            one("quantum", 7, self.quantum_bytes),
            one("ecn_prob", 9, self.ecn_prob_percent),
            one("ecn", 10, u32::from(self.ecn)),
            one("bytemode", 11, u32::from(self.bytemode)),
            one("dq_rate_estimator", 12, u32::from(self.dq_rate_estimator)),
        ]
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
