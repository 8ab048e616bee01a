//! codel in words, checks and the kernel's form (`q_codel.c`).

use super::{Codel, Config, Params};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::word;
use crate::table::{switch, table, time, whole};
use dragstrip_units::Duration;

/// RFC 8289 §4.3.
pub(crate) const TARGET_NS: u64 = 5_000_000;
/// RFC 8289 §4.3.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

// Attributes: TCA_CODEL_TARGET and on. The kernel keeps times in units of 1024 ns and does not report them exactly.
table! {
    /// Controlled delay (RFC 8289).
    #[derive(Copy, Eq)]
    pub struct CodelSpec {
        /// Packets that may wait.
        limit_packets: u32 = 1000 => whole("limit").at_least(1).attribute(2).confirmed(),
        /// Acceptable standing delay.
        target_ns: u64 = TARGET_NS => time("target").at_least(1).attribute(1),
        /// Sliding window.
        interval_ns: u64 = INTERVAL_NS => time("interval").at_least(1).attribute(3),
        /// Mark instead of drop.
        ecn: bool = false => switch(&[("ecn", true), ("noecn", false)]).attribute(4).confirmed(),
        /// Mark every ECN-capable packet that has waited longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold_ns: Option<u64> = None => time("ce_threshold").at_least(1).attribute(5),
    }
}

/// The control law's parameters on Ethernet.
pub(crate) fn control_law(
    target_ns: u64,
    interval_ns: u64,
    ecn: bool,
    ce_threshold_ns: Option<u64>,
) -> Params {
    Params {
        target: Duration::from_nanos(target_ns),
        interval: Duration::from_nanos(interval_ns),
        ecn,
        ce_threshold: ce_threshold_ns.map(Duration::from_nanos),
        ..Params::default()
    }
}

impl Configuration for CodelSpec {
    type Model = Box<Codel>;

    const KIND: &'static str = "codel";
    const AQM: bool = true;
    const MODULES: &'static [&'static str] = &["sch_codel"];
    const EXAMPLES: &'static [&'static str] =
        &["codel", "codel limit 100 target 10ms interval 50ms ecn ce_threshold 1ms"];
    const EXTREMES: &'static [&'static str] = &["codel"];

    fn facts(&self) -> Facts {
        Facts {
            marks: self.ecn || self.ce_threshold_ns.is_some(),
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Codel> {
        let params = control_law(self.target_ns, self.interval_ns, self.ecn, self.ce_threshold_ns);
        Box::new(Codel::new(Config { limit: self.limit_packets, params }))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    /// struct tc_codel_xstats: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark, dropping, ce_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        [24, 32].map(|at| u64::from(word(statistics, at).unwrap_or_default())).iter().sum()
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        (scope.packets(), scope.time_ns(20), scope.time_ns(200), any::<bool>(), ce_threshold(scope))
            .prop_map(|(limit_packets, target_ns, interval_ns, ecn, ce_threshold_ns)| Self {
                limit_packets,
                target_ns,
                interval_ns,
                ecn,
                ce_threshold_ns,
            })
            .boxed()
    }
}

/// A threshold in one of three.
#[cfg(any(test, feature = "arbitrary"))]
pub(crate) fn ce_threshold(
    scope: crate::arbitrary::Scope,
) -> impl proptest::strategy::Strategy<Value = Option<u64>> {
    proptest::option::weighted(0.3, scope.time_ns(20))
}
