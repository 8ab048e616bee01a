//! red in words, checks and the kernel's form (`q_red.c`).

use super::average::Params;
use super::shape::{Impossible, Shape, Wish};
use super::{Red, Signals};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::{Writer, word, words};
use crate::table::{self, GivenWords, Layout, rate, size_u32, switch, table, text, whole};
use crate::tc::{Words, unreadable};
use dragstrip_units::{Problem, Report};

/// tc's.
pub(crate) const PROBABILITY: f64 = 0.02;
/// tc's.
const BANDWIDTH_BPS: u64 = 10_000_000;

// TCA_RED_PARMS with struct tc_red_qopt. What is zero here follows from the limit (`complete`).
table! {
    /// Random early detection.
    #[derive(Copy)]
    pub struct RedSpec {
        /// Bytes that may wait.
        limit_bytes: u32 = 0 =>
            size_u32("limit").mandatory("400000").at_least(1).at(0).confirmed(),
        /// Average queue from which on packets are chosen.
        min_bytes: u32 = 0 =>
            size_u32("min").usually("a third of `max`").at_least(1).at(4).confirmed(),
        /// Average queue from which on every packet is.
        max_bytes: u32 = 0 =>
            size_u32("max")
                .usually("three times `min`, or a quarter of `limit`")
                .at_least_of("min", |spec: &RedSpec| spec.min_bytes)
                .at(8)
                .confirmed(),
        /// Length of a packet for what tc computes.
        avpkt_bytes: u32 = 0 => size_u32("avpkt").mandatory("1000").at_least(1),
        /// Packets that may come at once to an empty queue; more make the average slower.
        burst_packets: u32 = 0 => whole("burst").usually("(2 `min` + `max`) / (3 `avpkt`)"),
        /// Share of packets chosen where the average reaches the upper threshold.
        probability: f64 = PROBABILITY =>
            text("probability", "NUMBER", probability, |share| share.to_string())
                .within("0 to 1", |report, field, share| report.share(field, share)),
        /// Rate by which the average of an idle queue decays.
        bandwidth_bps: u64 = BANDWIDTH_BPS => rate("bandwidth"),
        /// Move the probability so that the average stays between the thresholds.
        adaptive: bool = false => switch(&[("adaptive", true)]).also(&[("adaptative", true)]),
        /// Mark instead of drop.
        ecn: bool = false => switch(&[("ecn", true)]),
        /// Drop above the upper threshold even with `ecn`.
        harddrop: bool = false => switch(&[("harddrop", true)]),
        /// With `ecn`: let in what cannot be marked.
        nodrop: bool = false => switch(&[("nodrop", true)]),
    }
}

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

/// A probability as tc writes it: a plain number.
fn probability(words: &mut Words<'_>, word: &str) -> Result<f64, Problem> {
    words.value(word, |text| {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| unreadable(text, "a plain number above 0, up to 1"))
    })
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
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_red"];
    const EXAMPLES: &'static [&'static str] = &[
        "red limit 400000 avpkt 1000",
        "red limit 60kb min 5kb avpkt 1514 burst 9 probability 0.1 bandwidth 3mbit adaptive ecn",
        "red limit 1mb max 90kb avpkt 1514 ecn harddrop nodrop",
    ];
    const EXTREMES: &'static [&'static str] = &["red limit 1mb avpkt 1000 adaptive ecn"];
    const LAYOUT: Layout = Layout::Inside(1, 16);
    const UNMODELLED: &'static [&'static str] = &["qevent"];
    const LEAST: &'static str = "red limit 400000 avpkt 1000";

    /// Derives values that were not given from the limit (Floyd's recommendations, says tc).
    fn complete(mut self, _given: &GivenWords<'_>) -> Result<Self, Problem> {
        self.max_bytes = match (self.max_bytes, self.min_bytes) {
            (0, 0) => self.limit_bytes / 4,
            (0, min) => min.saturating_mul(3),
            (max, _) => max,
        };
        if self.min_bytes == 0 {
            self.min_bytes = self.max_bytes / 3;
        }
        if self.burst_packets == 0 {
            let bytes = 2 * u64::from(self.min_bytes) + u64::from(self.max_bytes);
            let packets = bytes.checked_div(3 * u64::from(self.avpkt_bytes)).unwrap_or(0);
            self.burst_packets = u32::try_from(packets).unwrap_or(u32::MAX);
        }
        Ok(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        let before = report.problems.len();
        table::check(self, at, report);
        if self.nodrop && !self.ecn {
            report.add(format!("{at}.nodrop"), "true without ecn", "ecn: true too, or no nodrop");
        }
        if self.nodrop && self.adaptive {
            let expected = "one of the two: no kernel takes them together";
            report.add(format!("{at}.nodrop"), "true with adaptive", expected);
        }
        if report.problems.len() == before
            && let Err(problem) = self.shape()
        {
            let wish = [
                (format!("{at}.burst_packets"), self.burst_packets.to_string()),
                (format!("{at}.max_bytes"), self.max_bytes.to_string()),
                (format!("{at}.probability"), self.probability.to_string()),
                (format!("{at}.bandwidth_bps"), self.bandwidth_bps.to_string()),
            ];
            report_impossible(problem, wish, "packets of avpkt_bytes", report);
        }
    }

    fn facts(&self) -> Facts {
        let limit = u64::from(self.limit_bytes);
        Facts { draws: true, marks: self.ecn, ..Facts::queue(Buffer::bytes(limit)) }
            .holding("limit_bytes", limit)
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Red> {
        let shape = self.shape().unwrap_or_default();
        let params = Params::new(self.min_bytes, self.max_bytes, shape);
        let signals = Signals { ecn: self.ecn, harddrop: self.harddrop, nodrop: self.nodrop };
        let limit = u64::from(self.limit_bytes);
        let stream = streams.named(Self::KIND);
        Box::new(Red::new(limit, self.min_bytes, params, signals, self.adaptive, stream))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitBytes(bytes) = change else { return None };
        Some(Self { limit_bytes: u32::try_from(bytes).ok()?, ..*self })
    }

    /// Flags go where tc had them before 5.7, because there the kernel starts the adaptive algorithm's timer;
    /// `nodrop` is only known in the newer place, and both at once are refused.
    fn options(&self) -> Option<Vec<u8>> {
        let shape = self.shape().unwrap_or_default();
        let mut parameters = table::structure(self, 16);
        let historic = if self.nodrop { 0 } else { self.flags() };
        let logs = [shape.wlog, shape.plog, shape.cell_log, historic];
        parameters[12..].copy_from_slice(&logs.map(|log| log as u8));
        Some(Writer::value(|inside| {
            // TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P, TCA_RED_FLAGS (struct nla_bitfield32: value, selector)
            inside.bytes(1, &parameters).bytes(2, &shape.table[..]).u32(3, shape.max_p);
            if self.nodrop {
                inside.bytes(4, &words(&[self.flags(), 15]));
            }
        }))
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
