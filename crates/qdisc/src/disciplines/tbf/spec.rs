//! tbf in words, checks and the kernel's form (`q_tbf.c`).

use super::{Config, Tbf};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};
use crate::tc::{self, Text, Words, missing, wrong};
use crate::token_rate::rate;
use dragstrip_units::{Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Token bucket filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TbfSpec {
    /// Token rate.
    pub rate_bps: u64,
    /// Bucket.
    pub burst_bytes: u64,
    /// Bytes that may wait.
    pub limit_bytes: u64,
    /// Second bucket's rate.
    #[serde(default)]
    pub peakrate_bps: Option<u64>,
    /// Second bucket's size.
    #[serde(default)]
    pub mtu_bytes: Option<u64>,
}

/// tc's default `mtu`, the second bucket's size.
const MTU_BYTES: u64 = 1600;

impl Configuration for TbfSpec {
    type Model = Box<Tbf>;

    const KIND: &'static str = "tbf";
    const WORDS: &'static [&'static str] =
        &["rate", "burst", "limit", "latency", "peakrate", "mtu"];
    const UNMODELLED: &'static [&'static str] = &["mpu", "overhead", "linklayer"];
    const LEAST: &'static str = "tbf rate 1mbit burst 1600 latency 50ms";

    /// Rate and burst are mandatory, and either a limit or the latency it is computed from.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
        let (mut peakrate_bps, mut mtu_bytes) = (None, None);
        while let Some(word) = words.next() {
            match word {
                "rate" => rate = Some(words.rate(word)?),
                "burst" | "buffer" | "maxburst" => burst = Some(words.size(word)?),
                "limit" => limit = Some(words.size(word)?),
                "latency" => latency = Some(words.time(word)?),
                "peakrate" => peakrate_bps = Some(words.rate(word)?),
                "mtu" | "minburst" => mtu_bytes = Some(words.size(word)?),
                _ => return Err(Self::unknown(word)),
            }
        }
        let rate_bps = rate.ok_or_else(|| missing("rate", "tbf"))?;
        let burst_bytes = burst
            .ok_or_else(|| wrong("no \"burst\"", "tbf to have one, such as \"burst 1600\""))?;
        if peakrate_bps.is_some() != mtu_bytes.is_some() {
            return Err(wrong("one of \"peakrate\" and \"mtu\"", "both or neither"));
        }
        let limit_bytes = match (limit, latency) {
            (Some(limit), None) => limit,
            (None, Some(latency)) => {
                let main = limit_for_latency(rate_bps, latency, burst_bytes);
                match (peakrate_bps, mtu_bytes) {
                    (Some(peak), Some(mtu)) => main.min(limit_for_latency(peak, latency, mtu)),
                    (_, None) | (None, _) => main,
                }
            }
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "\"limit\" and \"latency\"",
                    "one of them: each determines the other",
                ));
            }
            (None, None) => {
                return Err(wrong(
                    "neither \"limit\" nor \"latency\"",
                    "one, such as \"latency 50ms\"",
                ));
            }
        };
        Ok(Self { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes })
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("rate", tc::rate(self.rate_bps))
            .pair("burst", tc::size(self.burst_bytes))
            .pair("limit", tc::size(self.limit_bytes))
            .optional("peakrate", self.peakrate_bps.map(tc::rate))
            .optional("mtu", self.mtu_bytes.map(tc::size))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes } = *self;
        report.shaper_rate(format!("{at}.rate_bps"), rate_bps);
        report.at_least(format!("{at}.burst_bytes"), burst_bytes, 1);
        report.at_least(format!("{at}.limit_bytes"), limit_bytes, 1);
        match (peakrate_bps, mtu_bytes) {
            (None, None) => {}
            (Some(peak), Some(mtu)) => {
                report.shaper_rate(format!("{at}.peakrate_bps"), peak);
                report.at_least(format!("{at}.peakrate_bps"), peak, rate_bps);
                report.at_least(format!("{at}.mtu_bytes"), mtu, 1);
            }
            (Some(_), None) => {
                report.add(format!("{at}.mtu_bytes"), "nothing", "the peak rate's bucket");
            }
            (None, Some(_)) => {
                report.add(format!("{at}.peakrate_bps"), "nothing", "the bucket's rate");
            }
        }
    }

    fn facts(&self) -> Facts {
        // A packet longer than a bucket can never pass (sch_tbf.c).
        Facts {
            rate_bps: [Some(self.rate_bps), self.peakrate_bps].into_iter().flatten().min(),
            shapes: true,
            ..Facts::queue(Buffer::bytes(self.limit_bytes))
                .holding("burst_bytes", self.burst_bytes)
                .holding("limit_bytes", self.limit_bytes)
                .holding("mtu_bytes", self.mtu_bytes.unwrap_or_default())
        }
    }

    fn build(&self, _streams: &Streams<'_>) -> Box<Tbf> {
        let peak = self.peakrate_bps.map(|bps| {
            let mtu = self.mtu_bytes.unwrap_or(MTU_BYTES);
            (rate(bps), saturated(mtu))
        });
        let config = Config { rate: rate(self.rate_bps), burst: saturated(self.burst_bytes), peak };
        Box::new(Tbf::new(config, self.limit_bytes))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        match change {
            Change::RateBps(rate_bps) => Some(Self { rate_bps, ..*self }),
            Change::LimitBytes(limit_bytes) => Some(Self { limit_bytes, ..*self }),
            Change::LimitPackets(_) | Change::DelayNs(_) | Change::Loss(_) => None,
        }
    }

    fn options(&self) -> Option<Vec<u8>> {
        let peak = self.peakrate_bps.unwrap_or(0);
        let mtu = self.mtu_bytes.unwrap_or(MTU_BYTES);
        let mut parameters = ratespec(self.rate_bps, 0, 0, false);
        parameters.extend(if peak == 0 { vec![0; 12] } else { ratespec(peak, 0, 0, false) });
        parameters.extend(words(&[
            saturated(self.limit_bytes),
            ticks(self.rate_bps, self.burst_bytes),
            if peak == 0 { 0 } else { ticks(peak, mtu) },
        ]));
        Some(Writer::value(|inside| {
            inside.bytes(1, &parameters).u64(4, self.rate_bps / 8); // TCA_TBF_PARMS, TCA_TBF_RATE64
            inside.u32(6, saturated(self.burst_bytes)); // TCA_TBF_BURST
            if peak > 0 {
                inside.u64(5, peak / 8).u32(7, saturated(mtu)); // TCA_TBF_PRATE64, TCA_TBF_PBURST
            }
        }))
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let found = Attributes(options).get(1).and_then(|parameters| word(parameters, 8));
        vec![Confirmation::new("rate in bytes per second", found, saturated(self.rate_bps / 8))]
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let peak = prop::option::weighted(0.3, scope.choose(1_000_u64..4_000, scope.bytes()));
        (scope.rate_bps(), scope.choose(100_u64..20_000, scope.bytes()), scope.bytes(), peak)
            .prop_map(|(rate_bps, burst_bytes, limit_bytes, mtu_bytes)| Self {
                rate_bps,
                burst_bytes,
                limit_bytes,
                peakrate_bps: mtu_bytes.map(|_| rate_bps * 2),
                mtu_bytes,
            })
            .boxed()
    }
}

/// The limit that tc computes from a latency: what waits for it at the rate, plus the bucket.
fn limit_for_latency(rate_bps: u64, latency_ns: u64, bucket: u64) -> u64 {
    let waiting = u128::from(rate_bps) * u128::from(latency_ns) / 8_000_000_000;
    u64::try_from(waiting).unwrap_or(u64::MAX).saturating_add(bucket)
}

#[cfg(test)]
mod tests {
    use super::limit_for_latency;

    #[test]
    fn the_limit_from_a_latency_includes_the_bucket() {
        let (megabit, latency) = (1_000_000, 400_000_000);
        assert_eq!(limit_for_latency(megabit, latency, 1600), 50_000 + 1600);
        assert_eq!(limit_for_latency(megabit, latency, 1500), 50_000 + 1500);
    }
}
