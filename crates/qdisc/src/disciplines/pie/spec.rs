//! pie in words, checks and the kernel's form (`q_pie.c`).

use super::{Config, Params, Pie};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::{micros, word};
use crate::table::{switch, table, time, whole};
use dragstrip_units::Duration;

/// tc's most for both weights (`ALPHA_MAX`, `BETA_MAX`).
pub(crate) const WEIGHT_MAX: u32 = 32;
/// The kernel counts microseconds.
pub(crate) const LEAST_NS: u64 = 1_000;

// Attributes: TCA_PIE_TARGET and on. tc drops a 0 silently and leaves the default; here it is refused.
table! {
    /// Proportional integral controller enhanced (RFC 8033).
    #[derive(Copy, Eq)]
    pub struct PieSpec {
        /// Packets that may wait.
        limit_packets: u32 = 1000 => whole("limit").at_least(1).attribute(2).confirmed(),
        /// The delay at which the queue settles.
        target_ns: u64 = 15_000_000 => time("target").at_least(LEAST_NS).attribute(1),
        /// Time between updates of the drop probability; the kernel rounds it up to its ticks, 15 ms to 20.
        tupdate_ns: u64 = 15_000_000 => time("tupdate").at_least(LEAST_NS).attribute(3),
        /// Weight of the distance from the target, in 1/16 Hz.
        alpha: u32 = 2 => whole("alpha").at_least(1).at_most(WEIGHT_MAX).attribute(4).confirmed(),
        /// Weight of the change of the delay, in 1/16 Hz.
        beta: u32 = 20 => whole("beta").at_least(1).at_most(WEIGHT_MAX).attribute(5).confirmed(),
        /// Mark instead of drop, up to a probability of 10 %.
        ecn: bool = false => switch(&[("ecn", true), ("noecn", false)]).attribute(6).confirmed(),
        /// Drop short packets less, in proportion to their length.
        bytemode: bool = false =>
            switch(&[("bytemode", true), ("nobytemode", false)]).unless_usual().attribute(7).confirmed(),
        /// Compute the delay from the rate at which packets leave instead of stamping each.
        dq_rate_estimator: bool = false =>
            switch(&[("dq_rate_estimator", true), ("no_dq_rate_estimator", false)])
                .unless_usual()
                .attribute(8)
                .confirmed(),
    }
}

/// As much of a time as the kernel is told.
pub(crate) fn whole_micros(ns: u64) -> Duration {
    Duration::from_micros(u64::from(micros(ns)))
}

impl Configuration for PieSpec {
    type Model = Box<Pie>;

    const KIND: &'static str = "pie";
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_pie"];
    const EXAMPLES: &'static [&'static str] = &[
        "pie",
        "pie limit 200 target 5ms tupdate 30ms alpha 4 beta 32 ecn bytemode dq_rate_estimator",
        "pie nobytemode no_dq_rate_estimator",
    ];
    const EXTREMES: &'static [&'static str] =
        &["pie limit 4294967295 target 4000s tupdate 1us alpha 32 beta 32"];

    fn facts(&self) -> Facts {
        Facts { draws: true, marks: self.ecn, ..Facts::queue(Buffer::packets(self.limit_packets)) }
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
