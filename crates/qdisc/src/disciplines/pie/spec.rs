//! pie in words, checks and the kernel's form (`q_pie.c`).

use super::{Config, Params, Pie};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, micros, word};
use crate::tc::{Text, Words, time};
use dragstrip_units::{Duration, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Proportional integral controller enhanced (RFC 8033).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PieSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// The delay at which the queue settles.
    pub target_ns: u64,
    /// Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20.
    pub tupdate_ns: u64,
    /// Weight of the distance from the target, in 1/16 Hz.
    pub alpha: u32,
    /// Weight of the change of the delay, in 1/16 Hz.
    pub beta: u32,
    /// Mark instead of drop, up to a probability of 10 %.
    pub ecn: bool,
    /// Drop short packets less, in proportion to their length.
    pub bytemode: bool,
    /// Compute the delay from the rate at which packets leave instead of stamping each.
    pub dq_rate_estimator: bool,
}

/// tc's most for both weights (`ALPHA_MAX`, `BETA_MAX`).
const WEIGHT_MAX: u32 = 32;
/// The kernel counts microseconds.
const LEAST_NS: u64 = 1_000;

impl Default for PieSpec {
    /// The kernel's: 1000 packets, 15 ms, nothing switched on.
    fn default() -> Self {
        Self {
            limit_packets: 1000,
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

/// As much of a time as the kernel is told.
pub(crate) fn whole_micros(ns: u64) -> Duration {
    Duration::from_micros(u64::from(micros(ns)))
}

/// The ranges of the controller's target and period, and of its weights.
pub(crate) fn check_controller(
    (target_ns, tupdate_ns): (u64, u64),
    (alpha, beta): (u32, u32),
    at: &str,
    report: &mut Report,
) {
    report.time(format!("{at}.target_ns"), target_ns, LEAST_NS);
    report.time(format!("{at}.tupdate_ns"), tupdate_ns, LEAST_NS);
    for (field, weight) in [("alpha", alpha), ("beta", beta)] {
        report.at_least(format!("{at}.{field}"), weight, 1);
        report.at_most(format!("{at}.{field}"), weight, WEIGHT_MAX);
    }
}

impl Configuration for PieSpec {
    type Model = Box<Pie>;

    const KIND: &'static str = "pie";
    const WORDS: &'static [&'static str] = &[
        "limit",
        "target",
        "tupdate",
        "alpha",
        "beta",
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
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn: _,
            bytemode: _,
            dq_rate_estimator: _,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        check_controller((target_ns, tupdate_ns), (alpha, beta), at, report);
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Pie> {
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
        let config = Config { limit: self.limit_packets, params, tupdate };
        Box::new(Pie::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_PIE_TARGET, _LIMIT, _TUPDATE, _ALPHA, _BETA, _ECN, _BYTEMODE, _DQ_RATE_ESTIMATOR
            inside.u32(1, micros(self.target_ns)).u32(2, self.limit_packets);
            inside.u32(3, micros(self.tupdate_ns)).u32(4, self.alpha).u32(5, self.beta);
            inside.u32(6, u32::from(self.ecn)).u32(7, u32::from(self.bytemode));
            inside.u32(8, u32::from(self.dq_rate_estimator));
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        let one = |what, kind, wanted| Confirmation::new(what, inside.number(kind), wanted);
        vec![
            one("limit", 2, self.limit_packets),
            one("alpha", 4, self.alpha),
            one("beta", 5, self.beta),
            one("ecn", 6, u32::from(self.ecn)),
            one("bytemode", 7, u32::from(self.bytemode)),
            one("dq_rate_estimator", 8, u32::from(self.dq_rate_estimator)),
        ]
    }

    /// struct tc_pie_xstats: prob (64 bits), delay, avg_dq_rate, dq_rate_estimating, packets_in, dropped, overlimit, maxq,
    /// ecn_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 36).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let weight = || scope.choose(0_u32..100, 1..=WEIGHT_MAX);
        let switches = any::<(bool, bool, bool)>();
        (scope.packets(), scope.time_ns(30), scope.time_ns(60), weight(), weight(), switches)
            .prop_map(|(limit_packets, target_ns, tupdate_ns, alpha, beta, switches)| Self {
                limit_packets,
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
