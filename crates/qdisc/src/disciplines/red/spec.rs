//! red in words, checks and the kernel's form (`q_red.c`).

use super::average::Params;
use super::shape::{Impossible, Shape, Wish};
use super::{Red, Signals};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, word, words};
use crate::tc::{self, Text, Words, unreadable, wrong};
use dragstrip_units::tc::text::parse_size;
use dragstrip_units::{ParseError, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random early detection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    /// Bytes that may wait.
    pub limit_bytes: u32,
    /// Average queue from which on packets are chosen.
    pub min_bytes: u32,
    /// Average queue from which on every packet is.
    pub max_bytes: u32,
    /// Length of a packet for what tc computes.
    pub avpkt_bytes: u32,
    /// Packets that may come at once to an empty queue; more make the average slower.
    pub burst_packets: u32,
    /// Share of packets chosen where the average reaches the upper threshold.
    pub probability: f64,
    /// Rate by which the average of an idle queue decays.
    pub bandwidth_bps: u64,
    /// Move the probability so that the average stays between the thresholds.
    pub adaptive: bool,
    /// Mark instead of drop.
    pub ecn: bool,
    /// Drop above the upper threshold even with `ecn`.
    pub harddrop: bool,
    /// With `ecn`: let in what cannot be marked.
    pub nodrop: bool,
}

/// tc's.
pub(crate) const PROBABILITY: f64 = 0.02;
/// tc's.
const BANDWIDTH_BPS: u64 = 10_000_000;

impl RedSpec {
    fn shape(&self) -> Result<Shape, Impossible> {
        let wish = Wish {
            min: self.min_bytes,
            max: self.max_bytes,
            unit: 1,
            avpkt: self.avpkt_bytes,
            burst: self.burst_packets,
        };
        Shape::new(wish, self.probability, self.bandwidth_bps)
    }

    /// `TC_RED_ECN`, `_HARDDROP`, `_ADAPTATIVE`, `_NODROP`.
    fn flags(&self) -> u32 {
        let flags = [self.ecn, self.harddrop, self.adaptive, self.nodrop];
        (0..).zip(flags).map(|(bit, on)| u32::from(on) << bit).sum()
    }
}

/// A size that the kernel's 32 bits hold.
fn size(words: &mut Words<'_>, word: &str) -> Result<u32, Problem> {
    words.value(word, |text| {
        let bytes = parse_size(text)?.get();
        u32::try_from(bytes).map_err(|_| unreadable(text, "a size below 4 GiB"))
    })
}

/// A probability as tc writes it: a plain number.
pub(crate) fn probability(text: &str) -> Result<f64, ParseError> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| unreadable(text, "a plain number above 0, up to 1"))
}

/// Says in which field a wish cannot be met.
pub(crate) fn report_impossible(
    problem: Impossible,
    wish: [(String, String); 4],
    packets: &str,
    report: &mut Report,
) {
    let [burst, max, probability, bandwidth] = wish;
    let ((field, value), expected) = match problem {
        Impossible::Burst => (
            burst,
            format!(
                "at least as many packets as the lower threshold is {packets}, and not so many that no average is slow enough"
            ),
        ),
        Impossible::Thresholds => (
            max,
            String::from(
                "less, or a shorter burst: the average has 32 bits, more of them behind the point the longer the burst",
            ),
        ),
        Impossible::Probability => (probability, String::from("more, for thresholds so far apart")),
        Impossible::Bandwidth => {
            (bandwidth, String::from("more: the table of idle times ends before"))
        }
    };
    report.add(field, value, expected);
}

impl Configuration for RedSpec {
    type Model = Box<Red>;

    const KIND: &'static str = "red";
    const WORDS: &'static [&'static str] = &[
        "limit",
        "min",
        "max",
        "avpkt",
        "burst",
        "adaptive",
        "probability",
        "bandwidth",
        "ecn",
        "harddrop",
        "nodrop",
    ];
    const UNMODELLED: &'static [&'static str] = &["qevent"];
    const LEAST: &'static str = "red limit 400000 avpkt 1000";

    /// Limit and avpkt are mandatory; the rest follows from them (Floyd's recommendations, says tc).
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let (mut limit, mut avpkt) = (None, None);
        let (mut min_bytes, mut max_bytes, mut burst_packets) = (0, 0, 0);
        let mut spec = Self {
            limit_bytes: 0,
            min_bytes: 0,
            max_bytes: 0,
            avpkt_bytes: 0,
            burst_packets: 0,
            probability: PROBABILITY,
            bandwidth_bps: BANDWIDTH_BPS,
            adaptive: false,
            ecn: false,
            harddrop: false,
            nodrop: false,
        };
        while let Some(word) = words.next() {
            match word {
                "limit" => limit = Some(size(words, word)?),
                "min" => min_bytes = size(words, word)?,
                "max" => max_bytes = size(words, word)?,
                "avpkt" => avpkt = Some(size(words, word)?),
                "burst" => burst_packets = words.whole(word)?,
                "probability" => spec.probability = words.value(word, probability)?,
                "bandwidth" => spec.bandwidth_bps = words.rate(word)?,
                "adaptive" | "adaptative" => spec.adaptive = true,
                "ecn" => spec.ecn = true,
                "harddrop" => spec.harddrop = true,
                "nodrop" => spec.nodrop = true,
                _ => return Err(Self::unknown(word)),
            }
        }
        let mandatory = |word: &str, example: &str| {
            wrong(format!("no {word:?}"), format!("red to have one, such as \"{word} {example}\""))
        };
        spec.limit_bytes = limit.ok_or_else(|| mandatory("limit", "400000"))?;
        spec.avpkt_bytes = avpkt.ok_or_else(|| mandatory("avpkt", "1000"))?;
        spec.max_bytes = match (max_bytes, min_bytes) {
            (0, 0) => spec.limit_bytes / 4,
            (0, min) => min.saturating_mul(3),
            (max, _) => max,
        };
        spec.min_bytes = if min_bytes == 0 { spec.max_bytes / 3 } else { min_bytes };
        if burst_packets == 0 {
            let bytes = 2 * u64::from(spec.min_bytes) + u64::from(spec.max_bytes);
            let packets = bytes.checked_div(3 * u64::from(spec.avpkt_bytes)).unwrap_or(0);
            burst_packets = u32::try_from(packets).unwrap_or(u32::MAX);
        }
        spec.burst_packets = burst_packets;
        Ok(spec)
    }

    fn print(&self) -> Text {
        let bytes = |bytes: u32| tc::size(u64::from(bytes));
        let flag = |on: bool, word: &'static str| if on { word } else { "" };
        Text::new(Self::KIND)
            .pair("limit", bytes(self.limit_bytes))
            .pair("min", bytes(self.min_bytes))
            .pair("max", bytes(self.max_bytes))
            .pair("avpkt", bytes(self.avpkt_bytes))
            .pair("burst", self.burst_packets)
            .pair("probability", self.probability)
            .pair("bandwidth", tc::rate(self.bandwidth_bps))
            .word(flag(self.adaptive, "adaptive"))
            .word(flag(self.ecn, "ecn"))
            .word(flag(self.harddrop, "harddrop"))
            .word(flag(self.nodrop, "nodrop"))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_bytes,
            min_bytes,
            max_bytes,
            avpkt_bytes,
            burst_packets,
            probability,
            bandwidth_bps,
            adaptive,
            ecn,
            harddrop: _,
            nodrop,
        } = *self;
        let before = report.problems.len();
        report.at_least(format!("{at}.limit_bytes"), limit_bytes, 1);
        report.at_least(format!("{at}.avpkt_bytes"), avpkt_bytes, 1);
        report.at_least(format!("{at}.min_bytes"), min_bytes, 1);
        report.at_least(format!("{at}.max_bytes"), max_bytes, min_bytes);
        report.share(format!("{at}.probability"), probability);
        report.shaper_rate(format!("{at}.bandwidth_bps"), bandwidth_bps);
        if nodrop && !ecn {
            report.add(format!("{at}.nodrop"), "true without ecn", "ecn: true too, or no nodrop");
        }
        if nodrop && adaptive {
            let expected = "one of the two: no kernel takes them together";
            report.add(format!("{at}.nodrop"), "true with adaptive", expected);
        }
        if report.problems.len() == before
            && let Err(problem) = self.shape()
        {
            let wish = [
                (format!("{at}.burst_packets"), burst_packets.to_string()),
                (format!("{at}.max_bytes"), max_bytes.to_string()),
                (format!("{at}.probability"), probability.to_string()),
                (format!("{at}.bandwidth_bps"), bandwidth_bps.to_string()),
            ];
            report_impossible(problem, wish, "packets of avpkt_bytes", report);
        }
    }

    fn facts(&self) -> Facts {
        let limit = u64::from(self.limit_bytes);
        Facts { draws: true, ..Facts::queue(Buffer::bytes(limit)) }.holding("limit_bytes", limit)
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Red> {
        let shape = self.shape().unwrap_or_default();
        let params = Params::new(self.min_bytes, self.max_bytes, shape);
        let signals = Signals { ecn: self.ecn, harddrop: self.harddrop, nodrop: self.nodrop };
        let limit = u64::from(self.limit_bytes);
        let stream = streams.named(Self::KIND);
        Box::new(Red::new(limit, self.min_bytes, params, signals, self.adaptive, stream))
    }

    /// Flags go where tc had them before 5.7, because there the kernel starts the adaptive algorithm's timer;
    /// `nodrop` is only known in the newer place, and both at once are refused.
    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitBytes(bytes) = change else { return None };
        Some(Self { limit_bytes: u32::try_from(bytes).ok()?, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        let shape = self.shape().unwrap_or_default();
        let mut parameters = words(&[self.limit_bytes, self.min_bytes, self.max_bytes]);
        let historic = if self.nodrop { 0 } else { self.flags() };
        let logs = [shape.wlog, shape.plog, shape.cell_log, historic];
        parameters.extend(logs.map(|log| log as u8));
        Some(Writer::value(|inside| {
            // TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P, TCA_RED_FLAGS (struct nla_bitfield32: value, selector)
            inside.bytes(1, &parameters).bytes(2, &shape.table[..]).u32(3, shape.max_p);
            if self.nodrop {
                inside.bytes(4, &words(&[self.flags(), 15]));
            }
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let parameters = Attributes(options).get(1).unwrap_or_default();
        let one = |what, at, wanted| Confirmation::new(what, word(parameters, at), wanted);
        vec![
            one("limit", 0, self.limit_bytes),
            one("min", 4, self.min_bytes),
            one("max", 8, self.max_bytes),
        ]
    }

    /// struct tc_red_xstats: early, pdrop, other, marked
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 12).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let min = scope.choose(0_u32..20_000, 15_140..30_000_u32);
        let width = scope.choose(0_u32..20_000, 0..90_000_u32);
        let limit = scope.choose(0_u32..60_000, 5_000..200_000_u32);
        let share = scope.choose(0.0..=1.0, 0.01..=1.0);
        let burst = scope.choose(0_u32..100, 20..25_u32);
        let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (limit, min, width, scope.choose(0_u32..3_000, 1_500..1_600_u32), burst, share, switches)
            .prop_map(
                |(limit_bytes, min_bytes, width, avpkt_bytes, burst_packets, share, flags)| {
                    let (adaptive, ecn, harddrop, nodrop) = flags;
                    Self {
                        limit_bytes,
                        min_bytes,
                        max_bytes: min_bytes + width,
                        avpkt_bytes,
                        burst_packets,
                        // To four digits, as a person writes it.
                        probability: libm::rint(share * 1e4) / 1e4,
                        bandwidth_bps: BANDWIDTH_BPS,
                        adaptive,
                        ecn,
                        harddrop,
                        nodrop: nodrop && ecn && !adaptive,
                    }
                },
            )
            .boxed()
    }
}
