//! dualpi2 in words, checks and the kernel's form (`q_dualpi2.c` of iproute2 6.18).

use super::{Config, Control, DualPi2, Step};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, micros, word};
use crate::tc::{Text, Words, time, unreadable};
use dragstrip_units::tc::text::parse_time;
use dragstrip_units::{Duration, ParseError, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Dual-queue coupled AQM for L4S (RFC 9332); in Linux since 6.17, so that no kernel of Debian 12 has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Spec {
    /// Packets that may wait in both queues.
    pub limit_packets: u32,
    /// The delay at which the queues settle.
    pub target_ns: u64,
    /// Time between updates of the probability.
    pub tupdate_ns: u64,
    /// Weight of the distance from the target, Hz.
    pub alpha_hz: f64,
    /// Weight of the change of the delay, Hz.
    pub beta_hz: f64,
    /// How much more often the low-latency queue is marked than the square root of the classic one's probability.
    pub coupling_factor: u32,
    /// Longer waits in the low-latency queue are marked.
    pub step_thresh_ns: u64,
    /// In its place: more packets left behind in the low-latency queue.
    #[serde(default)]
    pub step_thresh_packets: Option<u32>,
    /// Packets that the low-latency queue must hold for the threshold to apply to the next one.
    pub min_qlen_step_packets: u32,
    /// Under overload drop from both queues instead of letting them grow.
    pub drop_on_overload: bool,
    /// Share of the classic queue while both are full, percent.
    pub classic_protection_percent: u32,
    /// Packets with ECT(0) belong to the low-latency queue too.
    pub any_ect: bool,
}

impl Default for DualPi2Spec {
    /// The kernel's.
    fn default() -> Self {
        Self {
            limit_packets: 10_000,
            target_ns: 15_000_000,
            tupdate_ns: 16_000_000,
            alpha_hz: 0.16,
            beta_hz: 3.2,
            coupling_factor: 2,
            step_thresh_ns: 1_000_000,
            step_thresh_packets: None,
            min_qlen_step_packets: 0,
            drop_on_overload: true,
            classic_protection_percent: 10,
            any_ect: false,
        }
    }
}

/// The kernel counts microseconds.
const LEAST_NS: u64 = 1_000;
/// Beyond this a weight moves the probability from 0 to 1 within a few microseconds of delay.
const WEIGHT_MAX_HZ: f64 = 1e4;

/// A weight in the kernel's 1/256 Hz.
fn weight(hz: f64) -> u32 {
    libm::rint(hz * 256.0) as u32
}

fn octet(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

fn hertz(text: &str) -> Result<f64, ParseError> {
    let hz = text.parse().ok().filter(|hz: &f64| hz.is_finite() && *hz >= 0.0);
    hz.ok_or_else(|| unreadable(text, "a plain number, in Hz"))
}

/// `3p` are packets, anything else a time.
fn step_thresh(text: &str) -> Result<(u64, Option<u32>), ParseError> {
    if let Some(packets) = text.strip_suffix('p').and_then(|number| number.parse().ok()) {
        return Ok((DualPi2Spec::default().step_thresh_ns, Some(packets)));
    }
    let span = parse_time(text)
        .map_err(|_| unreadable(text, "a time such as 1ms, or packets such as 3p"))?;
    Ok((span.as_nanos(), None))
}

impl DualPi2Spec {
    /// What tc makes of the largest and the usual round-trip time (RFC 9332 appendix A).
    fn set_rtts(&mut self, most_ns: u64, typical_ns: u64) {
        self.target_ns = typical_ns;
        self.tupdate_ns = typical_ns.min(most_ns / 3);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let most = seconds(most_ns);
        self.alpha_hz = 0.1 * seconds(self.tupdate_ns) / (most * most);
        self.beta_hz = 0.3 / most;
    }
}

impl Configuration for DualPi2Spec {
    type Model = Box<DualPi2>;

    const KIND: &'static str = "dualpi2";
    const WORDS: &'static [&'static str] = &[
        "limit",
        "target",
        "tupdate",
        "alpha",
        "beta",
        "max_rtt",
        "typical_rtt",
        "coupling_factor",
        "step_thresh",
        "min_qlen_step",
        "drop_on_overload",
        "overflow",
        "drop_dequeue",
        "classic_protection",
        "l4s_ect",
        "any_ect",
    ];
    const UNMODELLED: &'static [&'static str] =
        &["memlimit", "drop_enqueue", "split_gso", "no_split_gso"];
    const NESTED: bool = true;

    /// `max_rtt` and `typical_rtt` set target, tupdate, alpha and beta, wherever they stand.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        let (mut most, mut typical) = (None, None);
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.whole(word)?,
                "target" => spec.target_ns = words.time(word)?,
                "tupdate" => spec.tupdate_ns = words.time(word)?,
                "alpha" => spec.alpha_hz = words.value(word, hertz)?,
                "beta" => spec.beta_hz = words.value(word, hertz)?,
                "max_rtt" => most = Some(words.time(word)?),
                "typical_rtt" => typical = Some(words.time(word)?),
                "coupling_factor" => spec.coupling_factor = words.whole(word)?,
                "step_thresh" => {
                    (spec.step_thresh_ns, spec.step_thresh_packets) =
                        words.value(word, step_thresh)?;
                }
                "min_qlen_step" => spec.min_qlen_step_packets = words.whole(word)?,
                "drop_on_overload" => spec.drop_on_overload = true,
                "overflow" => spec.drop_on_overload = false,
                "drop_dequeue" => {}
                "classic_protection" => spec.classic_protection_percent = words.whole(word)?,
                "l4s_ect" => spec.any_ect = false,
                "any_ect" => spec.any_ect = true,
                _ => return Err(Self::unknown(word)),
            }
        }
        match (most, typical) {
            (Some(most), typical) => spec.set_rtts(most, typical.unwrap_or(most / 6)),
            (None, Some(typical)) => spec.set_rtts(typical.saturating_mul(6), typical),
            (None, None) => {}
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        let step = match self.step_thresh_packets {
            Some(packets) => format!("{packets}p"),
            None => time(self.step_thresh_ns),
        };
        Text::new(Self::KIND)
            .pair("limit", self.limit_packets)
            .pair("target", time(self.target_ns))
            .pair("tupdate", time(self.tupdate_ns))
            .pair("alpha", self.alpha_hz)
            .pair("beta", self.beta_hz)
            .pair("coupling_factor", self.coupling_factor)
            .pair("step_thresh", step)
            .pair("min_qlen_step", self.min_qlen_step_packets)
            .word(if self.drop_on_overload { "drop_on_overload" } else { "overflow" })
            .pair("classic_protection", self.classic_protection_percent)
            .word(if self.any_ect { "any_ect" } else { "l4s_ect" })
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            target_ns,
            tupdate_ns,
            alpha_hz,
            beta_hz,
            coupling_factor,
            step_thresh_ns,
            step_thresh_packets: _,
            min_qlen_step_packets: _,
            drop_on_overload: _,
            classic_protection_percent,
            any_ect: _,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.time(format!("{at}.target_ns"), target_ns, LEAST_NS);
        report.time(format!("{at}.tupdate_ns"), tupdate_ns, LEAST_NS);
        for (field, hz) in [("alpha_hz", alpha_hz), ("beta_hz", beta_hz)] {
            // 1/256 Hz is the kernel's least.
            if !(1.0 / 256.0..=WEIGHT_MAX_HZ).contains(&hz) {
                let expected = format!("from 1/256 (0.00390625) to {WEIGHT_MAX_HZ}");
                report.add(format!("{at}.{field}"), hz, expected);
            }
        }
        report.at_least(format!("{at}.coupling_factor"), coupling_factor, 1);
        report.at_most(format!("{at}.coupling_factor"), coupling_factor, 255);
        report.time(format!("{at}.step_thresh_ns"), step_thresh_ns, 0);
        let percent = format!("{at}.classic_protection_percent");
        report.at_most(percent, classic_protection_percent, 100);
    }

    /// Packets of a flow that differ in ECN are in two queues.
    fn facts(&self) -> Facts {
        Facts { draws: true, reorders: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<DualPi2> {
        let span = |ns| Duration::from_micros(u64::from(micros(ns)));
        let config = Config {
            limit: self.limit_packets,
            control: Control {
                target: span(self.target_ns),
                alpha: weight(self.alpha_hz),
                beta: weight(self.beta_hz),
            },
            tupdate: span(self.tupdate_ns),
            coupling: self.coupling_factor,
            step: self
                .step_thresh_packets
                .map_or_else(|| Step::Time(span(self.step_thresh_ns)), Step::Packets),
            min_qlen_step: self.min_qlen_step_packets,
            drop_on_overload: self.drop_on_overload,
            classic_protection: self.classic_protection_percent,
            any_ect: self.any_ect,
        };
        Box::new(DualPi2::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        Some(Writer::value(|inside| {
            // TCA_DUALPI2_LIMIT, _TARGET, _TUPDATE, _ALPHA, _BETA, _STEP_THRESH_PKTS or _STEP_THRESH_US, _MIN_QLEN_STEP,
            // _COUPLING, _DROP_OVERLOAD, _DROP_EARLY, _C_PROTECTION, _ECN_MASK
            inside.u32(1, self.limit_packets);
            inside.u32(3, micros(self.target_ns)).u32(4, micros(self.tupdate_ns));
            inside.u32(5, weight(self.alpha_hz)).u32(6, weight(self.beta_hz));
            match self.step_thresh_packets {
                Some(packets) => inside.u32(7, packets),
                None => inside.u32(8, micros(self.step_thresh_ns)),
            };
            inside.u32(9, self.min_qlen_step_packets).bytes(10, &[octet(self.coupling_factor)]);
            inside.bytes(11, &[u8::from(self.drop_on_overload)]).bytes(12, &[0]);
            inside.bytes(13, &[octet(self.classic_protection_percent)]);
            inside.bytes(14, &[if self.any_ect { 3 } else { 1 }]);
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let inside = Attributes(options);
        let one = |what, kind, wanted| Confirmation::new(what, inside.number(kind), wanted);
        vec![
            one("limit", 1, self.limit_packets),
            one("target", 3, micros(self.target_ns)),
            one("tupdate", 4, micros(self.tupdate_ns)),
            one("alpha", 5, weight(self.alpha_hz)),
            one("beta", 6, weight(self.beta_hz)),
        ]
    }

    /// struct tc_dualpi2_xstats: prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 24).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let hz = || (1_u32..2_000).prop_map(|hundredths| f64::from(hundredths) / 100.0);
        let steps = (scope.time_ns(5), prop::option::weighted(0.3, 0_u32..20), 0_u32..4);
        let switches = any::<(bool, bool)>();
        let shares = (1_u32..5, 0_u32..=100);
        (scope.packets(), scope.time_ns(30), scope.time_ns(60), hz(), hz(), steps, shares, switches)
            .prop_map(
                |(limit_packets, target_ns, tupdate_ns, alpha_hz, beta_hz, steps, shares, on)| {
                    Self {
                        limit_packets,
                        target_ns,
                        tupdate_ns,
                        alpha_hz,
                        beta_hz,
                        coupling_factor: shares.0,
                        step_thresh_ns: steps.0,
                        step_thresh_packets: steps.1,
                        min_qlen_step_packets: steps.2,
                        drop_on_overload: on.0,
                        classic_protection_percent: shares.1,
                        any_ect: on.1,
                    }
                },
            )
            .boxed()
    }
}
