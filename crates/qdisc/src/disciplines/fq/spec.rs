//! fq in words, checks and the kernel's form (`q_fq.c`).

use super::{Config, Fq};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::disciplines::{FRAME, QUANTUM_MAX};
use crate::netlink::{Attributes, Writer, long, micros, saturated};
use crate::tc::{self, Text, Words, time, unless};
use crate::token_rate::rate;
use dragstrip_units::{Duration, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fair queue: round robin between flows, and a rate for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Packets of one flow that may wait.
    pub flow_limit_packets: u32,
    /// Bytes a flow may send in turn.
    pub quantum_bytes: u32,
    /// Bytes a new flow may send before its first turn ends.
    pub initial_quantum_bytes: u32,
    /// Highest rate of each flow; none: unlimited.
    #[serde(default)]
    pub maxrate_bps: Option<u64>,
    /// Whether the highest rate is enforced.
    pub pacing: bool,
    /// Flows are told apart by so many values of a hash, less one; a power of two less one in the kernel's default.
    pub orphan_mask: u32,
    /// Idle time after which a flow has a quantum again.
    pub refill_delay_ns: u64,
    /// Mark packets that leave so long after they were due.
    #[serde(default)]
    pub ce_threshold_ns: Option<u64>,
}

impl Default for FqSpec {
    /// The kernel's.
    fn default() -> Self {
        Self {
            limit_packets: 10_000,
            flow_limit_packets: 100,
            quantum_bytes: 2 * FRAME,
            initial_quantum_bytes: 10 * FRAME,
            maxrate_bps: None,
            pacing: true,
            orphan_mask: 1023,
            refill_delay_ns: 40_000_000,
            ce_threshold_ns: None,
        }
    }
}

/// The most that is told apart here.
const ORPHAN_MASK_MAX: u32 = 65_535;

impl Configuration for FqSpec {
    type Model = Box<Fq>;

    const KIND: &'static str = "fq";
    const WORDS: &'static [&'static str] = &[
        "limit",
        "flow_limit",
        "quantum",
        "initial_quantum",
        "maxrate",
        "pacing",
        "nopacing",
        "orphan_mask",
        "refill_delay",
        "ce_threshold",
    ];
    const UNMODELLED: &'static [&'static str] = &[
        "defrate",
        "buckets",
        "low_rate_threshold",
        "timer_slack",
        "horizon",
        "horizon_cap",
        "horizon_drop",
    ];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "flow_limit" => spec.flow_limit_packets = words.whole(word)?,
                "quantum" => spec.quantum_bytes = words.whole(word)?,
                "initial_quantum" => spec.initial_quantum_bytes = words.whole(word)?,
                "maxrate" => spec.maxrate_bps = Some(words.rate(word)?),
                "pacing" => spec.pacing = true,
                "nopacing" => spec.pacing = false,
                "orphan_mask" => spec.orphan_mask = words.whole(word)?,
                "refill_delay" => spec.refill_delay_ns = words.time(word)?,
                "ce_threshold" => spec.ce_threshold_ns = Some(words.time(word)?),
                _ => return Err(Self::unknown(word)),
            }
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("limit", self.limit_packets)
            .pair("flow_limit", self.flow_limit_packets)
            .pair("quantum", self.quantum_bytes)
            .pair("initial_quantum", self.initial_quantum_bytes)
            .optional("maxrate", self.maxrate_bps.map(tc::rate))
            .word(if self.pacing { "" } else { "nopacing" })
            .optional("orphan_mask", unless(self.orphan_mask == 1023, self.orphan_mask))
            .pair("refill_delay", time(self.refill_delay_ns))
            .optional("ce_threshold", self.ce_threshold_ns.map(time))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            flow_limit_packets,
            quantum_bytes,
            initial_quantum_bytes,
            maxrate_bps,
            pacing: _,
            orphan_mask,
            refill_delay_ns,
            ce_threshold_ns,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_least(format!("{at}.flow_limit_packets"), flow_limit_packets, 1);
        report.at_least(format!("{at}.quantum_bytes"), quantum_bytes, 1);
        report.at_most(format!("{at}.quantum_bytes"), quantum_bytes, QUANTUM_MAX);
        let first_most = i32::MAX as u32;
        report.at_most(format!("{at}.initial_quantum_bytes"), initial_quantum_bytes, first_most);
        if let Some(maxrate_bps) = maxrate_bps {
            report.shaper_rate(format!("{at}.maxrate_bps"), maxrate_bps);
        }
        report.at_most(format!("{at}.orphan_mask"), orphan_mask, ORPHAN_MASK_MAX);
        report.time(format!("{at}.refill_delay_ns"), refill_delay_ns, 0);
        if let Some(ce_threshold_ns) = ce_threshold_ns {
            report.time(format!("{at}.ce_threshold_ns"), ce_threshold_ns, 0);
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            draws: true,
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

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_FQ_PLIMIT, _FLOW_PLIMIT, _QUANTUM, _INITIAL_QUANTUM, _RATE_ENABLE, _FLOW_MAX_RATE, _FLOW_REFILL_DELAY,
            // _ORPHAN_MASK, _CE_THRESHOLD
            inside.u32(1, self.limit_packets).u32(2, self.flow_limit_packets);
            inside.u32(3, self.quantum_bytes).u32(4, self.initial_quantum_bytes);
            inside.u32(5, u32::from(self.pacing));
            if let Some(maxrate_bps) = self.maxrate_bps {
                inside.u32(7, saturated(maxrate_bps / 8));
            }
            inside.u32(9, micros(self.refill_delay_ns)).u32(10, self.orphan_mask);
            if let Some(ce_threshold_ns) = self.ce_threshold_ns {
                inside.u32(12, micros(ce_threshold_ns));
            }
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        let one = |what, kind, wanted| Confirmation::new(what, inside.number(kind), wanted);
        vec![
            one("limit", 1, self.limit_packets),
            one("flow_limit", 2, self.flow_limit_packets),
            one("quantum", 3, self.quantum_bytes),
            one("initial_quantum", 4, self.initial_quantum_bytes),
            one("pacing", 5, u32::from(self.pacing)),
            one("orphan_mask", 10, self.orphan_mask),
        ]
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
