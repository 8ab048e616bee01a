//! choke in words, checks and the kernel's form (`q_choke.c`).

use super::Choke;
use crate::contract::Change;
use crate::disciplines::red::average::Params;
use crate::disciplines::red::shape::{Impossible, Shape, Wish};
use crate::disciplines::red::spec::{PROBABILITY, report_impossible};
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, word, words};
use crate::tc::{self, Text, Words, missing, wrong};
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CHOKe: RED that compares an arriving packet with a random one of the queue, and drops both if they are of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChokeSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Average queue up to which nothing is dropped, in packets.
    pub min_packets: u32,
    /// Average queue above which every packet is chosen, in packets.
    pub max_packets: u32,
    /// Packets that may come at once to an empty queue; more make the average slower.
    pub burst_packets: u32,
    /// Rate by which the average of an idle queue decays.
    pub bandwidth_bps: u64,
    /// Mark instead of drop, where no packet of the same flow was drawn.
    pub ecn: bool,
}

/// Bytes of a packet for what tc computes.
const AVPKT_BYTES: u32 = 1_000;
/// The kernel's most (`CHOKE_MAX_QUEUE`).
const LIMIT_MAX: u32 = 128 * 1024 - 1;

impl ChokeSpec {
    fn shape(&self) -> Result<Shape, Impossible> {
        let wish = Wish {
            min: self.min_packets,
            max: self.max_packets,
            unit: AVPKT_BYTES,
            avpkt: AVPKT_BYTES,
            burst: self.burst_packets,
        };
        Shape::new(wish, PROBABILITY, self.bandwidth_bps)
    }
}

impl Configuration for ChokeSpec {
    type Model = Box<Choke>;

    const KIND: &'static str = "choke";
    const WORDS: &'static [&'static str] = &["limit", "bandwidth", "ecn", "min", "max", "burst"];
    const UNMODELLED: &'static [&'static str] = &["probability", "avpkt", "harddrop"];
    const LEAST: &'static str = "choke limit 1000 bandwidth 10mbit";

    /// Limit and bandwidth are mandatory; the rest follows from the limit.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let (mut limit, mut bandwidth) = (None, None);
        let (mut min, mut max, mut burst, mut ecn) = (0_u32, 0_u32, 0_u32, false);
        while let Some(word) = words.next() {
            match word {
                "limit" => limit = Some(words.whole::<u32>(word)?),
                "bandwidth" => bandwidth = Some(words.rate(word)?),
                "min" => min = words.whole(word)?,
                "max" => max = words.whole(word)?,
                "burst" => burst = words.whole(word)?,
                "ecn" => ecn = true,
                _ => return Err(Self::unknown(word)),
            }
        }
        let limit_packets = limit
            .ok_or_else(|| wrong("no \"limit\"", "choke to have one, such as \"limit 1000\""))?;
        let bandwidth_bps = bandwidth.ok_or_else(|| missing("bandwidth", "choke"))?;
        let max_packets = if max == 0 { limit_packets / 4 } else { max };
        let min_packets = if min == 0 { max_packets / 3 } else { min };
        if burst == 0 {
            let third = (2 * u64::from(min_packets) + u64::from(max_packets)) / 3;
            burst = u32::try_from(third).unwrap_or(u32::MAX);
        }
        Ok(Self {
            limit_packets,
            min_packets,
            max_packets,
            burst_packets: burst,
            bandwidth_bps,
            ecn,
        })
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("limit", self.limit_packets)
            .pair("bandwidth", tc::rate(self.bandwidth_bps))
            .pair("min", self.min_packets)
            .pair("max", self.max_packets)
            .pair("burst", self.burst_packets)
            .word(if self.ecn { "ecn" } else { "" })
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self { limit_packets, min_packets, max_packets, burst_packets, bandwidth_bps, ecn: _ } =
            *self;
        let before = report.problems.len();
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_most(format!("{at}.limit_packets"), limit_packets, LIMIT_MAX);
        report.at_least(format!("{at}.min_packets"), min_packets, 1);
        report.at_least(format!("{at}.max_packets"), max_packets, min_packets);
        report.at_most(format!("{at}.max_packets"), max_packets, limit_packets);
        report.shaper_rate(format!("{at}.bandwidth_bps"), bandwidth_bps);
        if report.problems.len() == before
            && let Err(problem) = self.shape()
        {
            let wish = [
                (format!("{at}.burst_packets"), burst_packets.to_string()),
                (format!("{at}.max_packets"), max_packets.to_string()),
                (format!("{at}.max_packets"), max_packets.to_string()),
                (format!("{at}.bandwidth_bps"), bandwidth_bps.to_string()),
            ];
            report_impossible(problem, wish, "packets", report);
        }
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Choke> {
        let shape = self.shape().unwrap_or_default();
        let params = Params::new(self.min_packets, self.max_packets, shape);
        Box::new(Choke::new(self.limit_packets, self.ecn, params, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        let shape = self.shape().unwrap_or_default();
        let mut parameters = words(&[self.limit_packets, self.min_packets, self.max_packets]);
        let logs = [shape.wlog, shape.plog, shape.cell_log, u32::from(self.ecn)];
        parameters.extend(logs.map(|log| log as u8));
        Some(Writer::value(|inside| {
            // TCA_CHOKE_PARMS, TCA_CHOKE_STAB, TCA_CHOKE_MAX_P
            inside.bytes(1, &parameters).bytes(2, &shape.table[..]).u32(3, shape.max_p);
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let parameters = Attributes(options).get(1).unwrap_or_default();
        let one = |what, at, wanted| Confirmation::new(what, word(parameters, at), wanted);
        vec![
            one("limit", 0, self.limit_packets),
            one("min", 4, self.min_packets),
            one("max", 8, self.max_packets),
        ]
    }

    /// struct tc_choke_xstats: early, pdrop, other, marked
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 12).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let limit = scope.choose(0_u32..60, 110..300_u32);
        let min = scope.choose(0_u32..20, 5..20_u32);
        let width = scope.choose(0_u32..20, 0..90_u32);
        let burst = scope.choose(0_u32..60, 20..25_u32);
        (limit, min, width, burst, any::<bool>())
            .prop_map(|(limit_packets, min_packets, width, burst_packets, ecn)| Self {
                limit_packets,
                min_packets,
                max_packets: min_packets + width,
                burst_packets,
                bandwidth_bps: 10_000_000,
                ecn,
            })
            .boxed()
    }
}
