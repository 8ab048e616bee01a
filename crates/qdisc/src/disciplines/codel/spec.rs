//! codel in words, checks and the kernel's form (`q_codel.c`).

use super::{Codel, Config, Params};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, micros, word};
use crate::tc::{Text, Words, time};
use dragstrip_units::{Duration, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Controlled delay (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodelSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Acceptable standing delay.
    pub target_ns: u64,
    /// Sliding window.
    pub interval_ns: u64,
    /// Mark instead of drop.
    pub ecn: bool,
    /// Mark every ECN-capable packet that has waited longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold_ns: Option<u64>,
}

/// RFC 8289 §4.3.
pub(crate) const TARGET_NS: u64 = 5_000_000;
/// RFC 8289 §4.3.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

impl Default for CodelSpec {
    /// The kernel's: 1000 packets, no ECN.
    fn default() -> Self {
        Self {
            limit_packets: 1000,
            target_ns: TARGET_NS,
            interval_ns: INTERVAL_NS,
            ecn: false,
            ce_threshold_ns: None,
        }
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

/// The control law's two times, and the threshold.
pub(crate) fn check_control_law(
    target_ns: u64,
    interval_ns: u64,
    ce_threshold_ns: Option<u64>,
    at: &str,
    report: &mut Report,
) {
    report.time(format!("{at}.target_ns"), target_ns, 1);
    report.time(format!("{at}.interval_ns"), interval_ns, 1);
    if let Some(ce_threshold_ns) = ce_threshold_ns {
        report.time(format!("{at}.ce_threshold_ns"), ce_threshold_ns, 1);
    }
}

impl Configuration for CodelSpec {
    type Model = Box<Codel>;

    const KIND: &'static str = "codel";
    const WORDS: &'static [&'static str] =
        &["limit", "target", "interval", "ecn", "noecn", "ce_threshold"];

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "target" => spec.target_ns = words.time(word)?,
                "interval" => spec.interval_ns = words.time(word)?,
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
            .pair("target", time(self.target_ns))
            .pair("interval", time(self.interval_ns))
            .ecn(self.ecn)
            .optional("ce_threshold", self.ce_threshold_ns.map(time))
    }

    fn check(&self, at: &str, report: &mut Report) {
        report.at_least(format!("{at}.limit_packets"), self.limit_packets, 1);
        check_control_law(self.target_ns, self.interval_ns, self.ce_threshold_ns, at, report);
    }

    fn facts(&self) -> Facts {
        Facts::queue(Buffer::packets(self.limit_packets))
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Codel> {
        let params = control_law(self.target_ns, self.interval_ns, self.ecn, self.ce_threshold_ns);
        Box::new(Codel::new(Config { limit: self.limit_packets, params }))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_CODEL_TARGET, _LIMIT, _INTERVAL, _ECN, _CE_THRESHOLD
            inside.u32(1, micros(self.target_ns)).u32(2, self.limit_packets);
            inside.u32(3, micros(self.interval_ns)).u32(4, u32::from(self.ecn));
            if let Some(ce_threshold_ns) = self.ce_threshold_ns {
                inside.u32(5, micros(ce_threshold_ns));
            }
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        vec![
            Confirmation::new("limit", inside.number(2), self.limit_packets),
            Confirmation::new("ecn", inside.number(4), u32::from(self.ecn)),
        ]
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
