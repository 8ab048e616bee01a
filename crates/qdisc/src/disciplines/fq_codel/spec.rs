//! fq_codel in words, checks and the kernel's form (`q_fq_codel.c`).

use super::{Config, FqCodel};
use crate::contract::Change;
use crate::disciplines::codel::spec::{INTERVAL_NS, TARGET_NS, check_control_law, control_law};
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::{Attributes, Writer, micros, saturated, word};
use crate::tc::{Text, Words, size, time};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flow queueing with CoDel (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqCodelSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Bytes of memory that may be used.
    pub memory_limit_bytes: u64,
    /// Number of queues.
    pub flows: u32,
    /// Acceptable standing delay.
    pub target_ns: u64,
    /// Sliding window.
    pub interval_ns: u64,
    /// Bytes a queue may send in turn.
    pub quantum_bytes: u32,
    /// Most packets dropped at once on overflow.
    pub drop_batch_packets: u32,
    /// Mark instead of drop.
    pub ecn: bool,
    /// Mark every ECN-capable packet that has waited longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
}

/// The kernel's bound (`fq_codel_init`).
const FLOWS_MAX: u32 = 65_536;

impl Default for FqCodelSpec {
    /// tc's and the kernel's; ECN is on unless it is switched off (`fq_codel_init`).
    fn default() -> Self {
        Self {
            limit_packets: 10_240,
            memory_limit_bytes: 32 << 20,
            flows: 1024,
            target_ns: TARGET_NS,
            interval_ns: INTERVAL_NS,
            quantum_bytes: FRAME,
            drop_batch_packets: 64,
            ecn: true,
            ce_threshold_ns: None,
        }
    }
}

impl Configuration for FqCodelSpec {
    type Model = Box<FqCodel>;

    const KIND: &'static str = "fq_codel";
    /// TCA_FQ_CODEL_FLOWS: `fq_codel_change` refuses it.
    const FIXED: Option<u16> = Some(5);
    const WORDS: &'static [&'static str] = &[
        "limit",
        "memory_limit",
        "flows",
        "target",
        "interval",
        "quantum",
        "drop_batch",
        "ecn",
        "noecn",
        "ce_threshold",
    ];
    const UNMODELLED: &'static [&'static str] = &["ce_threshold_selector"];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "memory_limit" => spec.memory_limit_bytes = words.size(word)?,
                "flows" => spec.flows = words.whole(word)?,
                "target" => spec.target_ns = words.time(word)?,
                "interval" => spec.interval_ns = words.time(word)?,
                "quantum" => spec.quantum_bytes = words.whole(word)?,
                "drop_batch" => spec.drop_batch_packets = words.whole(word)?,
                "ecn" => spec.ecn = true,
                "noecn" => spec.ecn = false,
                "ce_threshold" => spec.ce_threshold_ns = Some(words.time(word)?),
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
            .pair("target", time(self.target_ns))
            .pair("interval", time(self.interval_ns))
            .pair("memory_limit", size(self.memory_limit_bytes))
            .pair("drop_batch", self.drop_batch_packets)
            .ecn(self.ecn)
            .optional("ce_threshold", self.ce_threshold_ns.map(time))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            memory_limit_bytes,
            flows,
            target_ns,
            interval_ns,
            quantum_bytes,
            drop_batch_packets,
            ecn: _,
            ce_threshold_ns,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_least(format!("{at}.memory_limit_bytes"), memory_limit_bytes, 1);
        report.at_least(format!("{at}.flows"), flows, 1);
        report.at_most(format!("{at}.flows"), flows, FLOWS_MAX);
        check_control_law(target_ns, interval_ns, ce_threshold_ns, at, report);
        report.at_least(format!("{at}.quantum_bytes"), quantum_bytes, 1);
        report.at_most(format!("{at}.quantum_bytes"), quantum_bytes, QUANTUM_MAX);
        report.at_least(format!("{at}.drop_batch_packets"), drop_batch_packets, 1);
    }

    /// Memory is no limit of frames' bytes: it counts what the kernel allocates for them.
    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
            .holding("memory_limit_bytes", self.memory_limit_bytes)
    }

    fn build(&self, streams: &Streams<'_>) -> Box<FqCodel> {
        let config = Config {
            limit: self.limit_packets,
            memory_limit: self.memory_limit_bytes,
            flows: self.flows,
            quantum: self.quantum_bytes,
            drop_batch: self.drop_batch_packets,
            params: control_law(self.target_ns, self.interval_ns, self.ecn, self.ce_threshold_ns),
        };
        Box::new(FqCodel::new(config, &mut streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_FQ_CODEL_TARGET, _LIMIT, _INTERVAL, _ECN, _FLOWS, _QUANTUM, _DROP_BATCH_SIZE, _MEMORY_LIMIT,
            // _CE_THRESHOLD
            inside.u32(1, micros(self.target_ns)).u32(2, self.limit_packets);
            inside.u32(3, micros(self.interval_ns)).u32(4, u32::from(self.ecn));
            inside.u32(5, self.flows).u32(6, self.quantum_bytes).u32(8, self.drop_batch_packets);
            inside.u32(9, saturated(self.memory_limit_bytes));
            if let Some(ce_threshold_ns) = self.ce_threshold_ns {
                inside.u32(7, micros(ce_threshold_ns));
            }
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        vec![
            Confirmation::new("limit", inside.number(2), self.limit_packets),
            Confirmation::new("ecn", inside.number(4), u32::from(self.ecn)),
            Confirmation::new("flows", inside.number(5), self.flows),
        ]
    }

    /// struct tc_fq_codel_xstats: type (0: of the discipline), then maxpacket, drop_overlimit, ecn_mark, new_flow_count,
    /// new_flows_len, old_flows_len, ce_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        let whole = word(statistics, 0).unwrap_or_default() == 0;
        let number = |at| u64::from(word(statistics, at).unwrap_or_default());
        if whole { number(12) + number(28) } else { 0 }
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use crate::disciplines::codel::spec::ce_threshold;
        use proptest::prelude::*;
        let memory = scope.choose(2_000_u64..100_000, 5_000..1_000_000_u64);
        let flows = scope.choose(1_u32..8, 1..2000_u32);
        let sizes = (scope.packets(), memory, flows, scope.quantum_bytes(), 1_u32..70);
        (sizes, scope.time_ns(20), scope.time_ns(200), any::<bool>(), ce_threshold(scope))
            .prop_map(|(sizes, target_ns, interval_ns, ecn, ce_threshold_ns)| Self {
                limit_packets: sizes.0,
                memory_limit_bytes: sizes.1,
                flows: sizes.2,
                target_ns,
                interval_ns,
                quantum_bytes: sizes.3,
                drop_batch_packets: sizes.4,
                ecn,
                ce_threshold_ns,
            })
            .boxed()
    }
}
