//! fq in words, checks and the kernel's form (`q_fq.c`).

use super::{Config, Fq};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::{long, micros};
use crate::table;
use crate::table::{switch, table, time, whole};
use crate::token_rate::rate;
use dragstrip_units::Duration;

/// The most that is told apart here.
const ORPHAN_MASK_MAX: u32 = 65_535;
/// A flow's credit is a signed number in the kernel.
const INITIAL_QUANTUM_MAX: u32 = i32::MAX as u32;

// Attributes: TCA_FQ_PLIMIT and on.
table! {
    /// Fair queue: round robin between flows, and a rate for each.
    #[derive(Copy, Eq)]
    pub struct FqSpec {
        /// Packets that may wait.
        limit_packets: u32 = 10_000 => whole("limit").at_least(1).attribute(1).confirmed(),
        /// Packets of one flow that may wait.
        flow_limit_packets: u32 = 100 => whole("flow_limit").at_least(1).attribute(2).confirmed(),
        /// Bytes a flow may send in turn.
        quantum_bytes: u32 = 2 * FRAME =>
            whole("quantum").at_least(1).at_most(QUANTUM_MAX).attribute(3).confirmed(),
        /// Bytes a new flow may send before its first turn ends.
        initial_quantum_bytes: u32 = 10 * FRAME =>
            whole("initial_quantum").at_most(INITIAL_QUANTUM_MAX).attribute(4).confirmed(),
        /// Highest rate of each flow; none: unlimited.
        #[serde(default)]
        maxrate_bps: Option<u64> = None => table::rate("maxrate").attribute(7),
        /// Enforcement of the highest rate.
        pacing: bool = true =>
            switch(&[("pacing", true), ("nopacing", false)]).unless_usual().attribute(5).confirmed(),
        /// Flows are told apart by so many values of a hash, less one; a power of two less one in the kernel's default.
        orphan_mask: u32 = 1023 =>
            whole("orphan_mask").unless_usual().at_most(ORPHAN_MASK_MAX).attribute(10).confirmed(),
        /// Idle time after which a flow has a quantum again.
        refill_delay_ns: u64 = 40_000_000 => time("refill_delay").attribute(9),
        /// Mark packets that leave so long after they were due.
        #[serde(default)]
        ce_threshold_ns: Option<u64> = None => time("ce_threshold").attribute(12),
    }
}

impl Configuration for FqSpec {
    type Model = Box<Fq>;

    const KIND: &'static str = "fq";
    const MODULES: &'static [&'static str] = &["sch_fq"];
    const PACES: bool = true;
    const EXAMPLES: &'static [&'static str] = &[
        "fq",
        "fq limit 500 flow_limit 50 quantum 1514 initial_quantum 3028 maxrate 3mbit nopacing orphan_mask 7",
        "fq maxrate 3mbit refill_delay 20ms ce_threshold 4ms pacing",
    ];
    const EXTREMES: &'static [&'static str] =
        &["fq limit 4294967295 flow_limit 4294967295 maxrate 8bit"];
    const UNMODELLED: &'static [&'static str] = &[
        "defrate",
        "buckets",
        "low_rate_threshold",
        "timer_slack",
        "horizon",
        "horizon_cap",
        "horizon_drop",
    ];

    fn facts(&self) -> Facts {
        Facts {
            draws: true,
            marks: self.ce_threshold_ns.is_some(),
            shapes: self.pacing && self.maxrate_bps.is_some(),
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Fq> {
        let span = |ns| Duration::from_micros(u64::from(micros(ns)));
        let config = Config {
            limit: self.limit_packets,
            flow_limit: self.flow_limit_packets,
            quantum: self.quantum_bytes,
            initial_quantum: self.initial_quantum_bytes,
            maxrate: self.maxrate_bps.filter(|_| self.pacing).map(rate),
            flows: self.orphan_mask.saturating_add(1),
            refill_delay: span(self.refill_delay_ns),
            ce_threshold: self.ce_threshold_ns.map(span),
        };
        Box::new(Fq::new(config, &mut streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    /// struct tc_fq_qd_stats: ce_mark stands behind eight numbers of 64 bits and four of 32. It counts what could not be marked
    /// too.
    fn marked(&self, statistics: &[u8]) -> u64 {
        long(statistics, 80).unwrap_or_default()
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let sizes = (scope.packets(), scope.packets(), scope.quantum_bytes(), 0_u32..20_000);
        let maxrate = prop::option::weighted(0.4, scope.rate_bps());
        let threshold = prop::option::weighted(0.3, scope.time_ns(10));
        (sizes, maxrate, any::<bool>(), 0_u32..2_000, scope.time_ns(60), threshold)
            .prop_map(
                |(sizes, maxrate_bps, pacing, orphan_mask, refill_delay_ns, ce_threshold_ns)| {
                    Self {
                        limit_packets: sizes.0,
                        flow_limit_packets: sizes.1,
                        quantum_bytes: sizes.2,
                        initial_quantum_bytes: sizes.3,
                        maxrate_bps,
                        pacing,
                        orphan_mask,
                        refill_delay_ns,
                        ce_threshold_ns,
                    }
                },
            )
            .boxed()
    }
}
