//! choke in words, checks and the kernel's form (`q_choke.c`).

use super::Choke;
use crate::contract::Change;
use crate::disciplines::red::average::Params;
use crate::disciplines::red::shape::{Impossible, Shape, Wish};
use crate::disciplines::red::spec::{PROBABILITY, report_impossible};
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::{Writer, word};
use crate::table::{self, GivenWords, Layout, rate, switch, table, whole};
use dragstrip_units::{Problem, Report};

/// Bytes of a packet for what tc computes.
const AVPKT_BYTES: u32 = 1_000;
/// The kernel's most (`CHOKE_MAX_QUEUE`).
const LIMIT_MAX: u32 = 128 * 1024 - 1;

// TCA_CHOKE_PARMS with struct tc_red_qopt. What is zero here follows from the limit (`complete`).
table! {
    /// CHOKe: RED that compares an arriving packet with a random one of the queue, and drops both if they are of one flow.
    #[derive(Copy, Eq)]
    pub struct ChokeSpec {
        /// Packets that may wait.
        limit_packets: u32 = 0 =>
            whole("limit").mandatory("1000").at_least(1).at_most(LIMIT_MAX).at(0).confirmed(),
        /// Average queue up to which nothing is dropped, in packets.
        min_packets: u32 = 0 =>
            whole("min").usually("a third of `max`").at_least(1).at(4).confirmed(),
        /// Average queue above which every packet is chosen, in packets.
        max_packets: u32 = 0 =>
            whole("max")
                .usually("a quarter of `limit`")
                .at_least_of("min", |spec: &ChokeSpec| spec.min_packets)
                .at_most_of("limit", |spec: &ChokeSpec| spec.limit_packets)
                .at(8)
                .confirmed(),
        /// Packets that may come at once to an empty queue; more make the average slower.
        burst_packets: u32 = 0 => whole("burst").usually("(2 `min` + `max`) / 3"),
        /// Rate by which the average of an idle queue decays.
        bandwidth_bps: u64 = 0 => rate("bandwidth").mandatory("1mbit").after("limit_packets"),
        /// Mark instead of drop, where no packet of the same flow was drawn.
        ecn: bool = false => switch(&[("ecn", true)]),
    }
}

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
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_choke"];
    const EXAMPLES: &'static [&'static str] = &[
        "choke limit 1000 bandwidth 10mbit",
        "choke limit 300 bandwidth 3mbit min 20 max 90 burst 60 ecn",
    ];
    const EXTREMES: &'static [&'static str] = &["choke limit 1000 bandwidth 10mbit ecn"];
    const LAYOUT: Layout = Layout::Inside(1, 16);
    const UNMODELLED: &'static [&'static str] = &["probability", "avpkt", "harddrop"];
    const LEAST: &'static str = "choke limit 1000 bandwidth 10mbit";

    /// Derives values that were not given from the limit.
    fn complete(mut self, _given: &GivenWords<'_>) -> Result<Self, Problem> {
        if self.max_packets == 0 {
            self.max_packets = self.limit_packets / 4;
        }
        if self.min_packets == 0 {
            self.min_packets = self.max_packets / 3;
        }
        if self.burst_packets == 0 {
            let third = (2 * u64::from(self.min_packets) + u64::from(self.max_packets)) / 3;
            self.burst_packets = u32::try_from(third).unwrap_or(u32::MAX);
        }
        Ok(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        let before = report.problems.len();
        table::check(self, at, report);
        if report.problems.len() == before
            && let Err(problem) = self.shape()
        {
            let max = (format!("{at}.max_packets"), self.max_packets.to_string());
            let wish = [
                (format!("{at}.burst_packets"), self.burst_packets.to_string()),
                max.clone(),
                max,
                (format!("{at}.bandwidth_bps"), self.bandwidth_bps.to_string()),
            ];
            report_impossible(problem, wish, "packets", report);
        }
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, marks: self.ecn, ..Facts::queue(Buffer::packets(self.limit_packets)) }
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
        let mut parameters = table::structure(self, 16);
        let logs = [shape.wlog, shape.plog, shape.cell_log, u32::from(self.ecn)];
        parameters[12..].copy_from_slice(&logs.map(|log| log as u8));
        Some(Writer::value(|inside| {
            // TCA_CHOKE_PARMS, TCA_CHOKE_STAB, TCA_CHOKE_MAX_P
            inside.bytes(1, &parameters).bytes(2, &shape.table[..]).u32(3, shape.max_p);
        }))
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
