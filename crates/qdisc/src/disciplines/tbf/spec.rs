//! tbf in words, checks and the kernel's form (`q_tbf.c`).

use super::{Config, Tbf};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};
use crate::table::{self, GivenWords, Word, size, table};
use crate::tc::wrong;
use crate::token_rate::rate;
use dragstrip_units::{Problem, Report};

table! {
    /// Token bucket filter.
    #[derive(Copy, Eq)]
    pub struct TbfSpec {
        /// Token rate.
        rate_bps: u64 = 0 => table::rate("rate").mandatory("1mbit"),
        /// Bucket.
        burst_bytes: u64 = 0 =>
            size("burst").or(&["buffer", "maxburst"]).mandatory("1600").at_least(1),
        /// Bytes that may wait.
        limit_bytes: u64 = 0 => size("limit").usually("from `latency`").at_least(1),
        /// Second bucket's rate.
        #[serde(default)]
        peakrate_bps: Option<u64> = None =>
            table::rate("peakrate").at_least_of("rate", |spec: &TbfSpec| spec.rate_bps),
        /// Second bucket's size.
        #[serde(default)]
        mtu_bytes: Option<u64> = None => size("mtu").or(&["minburst"]).at_least(1),
    }
    words {
        "latency" => Word::new(&["latency"], "TIME", |draft, words, word| {
            let latency = words.time(word)?;
            draft.given.keep(word, latency);
            Ok(())
        })
        .about(|| "In place of `limit`: how long a packet may wait at the rate.".into())
        .after("limit_bytes"),
    }
}

/// tc's default `mtu`, the second bucket's size.
const MTU_BYTES: u64 = 1600;

impl Configuration for TbfSpec {
    type Model = Box<Tbf>;

    const KIND: &'static str = "tbf";
    const FIFO: bool = true;
    const MODULES: &'static [&'static str] = &["sch_tbf"];
    const EXAMPLES: &'static [&'static str] = &[
        "tbf rate 1mbit burst 1600 latency 50ms",
        "tbf rate 1mbit burst 1600 latency 50ms peakrate 2mbit mtu 1514",
        "tbf rate 3mbit burst 9kb limit 90kb",
    ];
    const EXTREMES: &'static [&'static str] = &["tbf rate {}bit burst 65549b limit 1mb"];
    const UNMODELLED: &'static [&'static str] = &["mpu", "overhead", "linklayer"];
    const LEAST: &'static str = "tbf rate 1mbit burst 1600 latency 50ms";
    const KEEPS: bool = false;
    const CUTS_BURSTS: bool = true;

    /// Either a limit or the latency it is computed from.
    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        if self.peakrate_bps.is_some() != self.mtu_bytes.is_some() {
            return Err(wrong("one of \"peakrate\" and \"mtu\"", "both or neither"));
        }
        match (given.has("limit_bytes"), given.value("latency")) {
            (true, None) => {}
            (false, Some(latency)) => {
                let main = limit_for_latency(self.rate_bps, latency, self.burst_bytes);
                self.limit_bytes = match (self.peakrate_bps, self.mtu_bytes) {
                    (Some(peak), Some(mtu)) => main.min(limit_for_latency(peak, latency, mtu)),
                    (_, None) | (None, _) => main,
                };
            }
            (true, Some(_)) => {
                let expected = "one of them: each determines the other";
                return Err(wrong("\"limit\" and \"latency\"", expected));
            }
            (false, None) => {
                let expected = "one, such as \"latency 50ms\"";
                return Err(wrong("neither \"limit\" nor \"latency\"", expected));
            }
        }
        Ok(self)
    }

    fn check(&self, at: &str, report: &mut Report) {
        let paired = self.peakrate_bps.is_some() == self.mtu_bytes.is_some();
        let alone = Self { peakrate_bps: None, mtu_bytes: None, ..*self };
        table::check(if paired { self } else { &alone }, at, report);
        match (self.peakrate_bps, self.mtu_bytes) {
            (None, None) | (Some(_), Some(_)) => {}
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
        let reported_rate = Attributes(options).get(1).and_then(|parameters| word(parameters, 8));
        vec![Confirmation::new(
            "rate in bytes per second",
            reported_rate,
            saturated(self.rate_bps / 8),
        )]
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
