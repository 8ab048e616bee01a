//! fq_codel in words, checks and the kernel's form (`q_fq_codel.c`).

use super::{Config, FqCodel};
use crate::contract::Change;
use crate::disciplines::codel::spec::{INTERVAL_NS, TARGET_NS, control_law};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::word;
use crate::table::{size, switch, table, time, whole};

/// The kernel's bound (`fq_codel_init`).
const FLOWS_MAX: u32 = 65_536;

// Attributes: TCA_FQ_CODEL_TARGET and on. ECN is on unless it is switched off (`fq_codel_init`).
table! {
    /// Flow queueing with CoDel (RFC 8290).
    #[derive(Copy, Eq)]
    pub struct FqCodelSpec {
        /// Packets that may wait.
        limit_packets: u32 = 10_240 => whole("limit").at_least(1).attribute(2).confirmed(),
        /// Bytes of memory that may be used.
        memory_limit_bytes: u64 = 32 << 20 =>
            size("memory_limit").at_least(1).attribute(9).after("interval_ns"),
        /// Number of queues.
        flows: u32 = 1024 => whole("flows").at_least(1).at_most(FLOWS_MAX).attribute(5).confirmed(),
        /// Acceptable standing delay.
        target_ns: u64 = TARGET_NS => time("target").at_least(1).attribute(1),
        /// Sliding window.
        interval_ns: u64 = INTERVAL_NS => time("interval").at_least(1).attribute(3),
        /// Bytes a queue may send in turn.
        quantum_bytes: u32 = FRAME =>
            whole("quantum").at_least(1).at_most(QUANTUM_MAX).attribute(6).after("flows"),
        /// Most packets dropped at once on overflow.
        drop_batch_packets: u32 = 64 => whole("drop_batch").at_least(1).attribute(8),
        /// Mark instead of drop.
        ecn: bool = true => switch(&[("ecn", true), ("noecn", false)]).attribute(4).confirmed(),
        /// Mark every ECN-capable packet that has waited longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold_ns: Option<u64> = None => time("ce_threshold").at_least(1).attribute(7).last(),
    }
}

impl Configuration for FqCodelSpec {
    type Model = Box<FqCodel>;

    const KIND: &'static str = "fq_codel";
    const AQM: bool = true;
    const MODULES: &'static [&'static str] = &["sch_fq_codel"];
    const EXAMPLES: &'static [&'static str] = &[
        "fq_codel",
        "fq_codel limit 600 memory_limit 1mb flows 64 target 8ms interval 60ms quantum 300 drop_batch 7 noecn ce_threshold 2ms",
    ];
    const EXTREMES: &'static [&'static str] = &["fq_codel"];
    /// TCA_FQ_CODEL_FLOWS: `fq_codel_change` refuses it.
    const FIXED: Option<u16> = Some(5);
    const UNMODELLED: &'static [&'static str] = &["ce_threshold_selector"];

    /// Memory is no limit of frames' bytes: it counts what the kernel allocates for them.
    fn facts(&self) -> Facts {
        Facts {
            draws: true,
            marks: self.ecn || self.ce_threshold_ns.is_some(),
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
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
