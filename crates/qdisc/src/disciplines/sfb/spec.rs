//! sfb in words, checks and the kernel's form (`q_sfb.c`).

use super::{CERTAIN, Config, Sfb};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams, TXQUEUELEN};
use crate::netlink::{Attributes, Writer, saturated, word, words};
use crate::tc::{Text, Words, unreadable};
use dragstrip_units::{Duration, ParseError, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stochastic fair blue: packets are marked or dropped by probabilities that flows have through a hash, and flows that do not answer are
/// held to a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SfbSpec {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Packets that may wait in a bin: of a flow, and of others that share the bin.
    pub max_packets: u32,
    /// Packets in a bin from which on its probability grows.
    pub target_packets: u32,
    /// By how much, in 65535ths, with each packet that finds it so.
    pub increment: u32,
    /// By how much it falls, in 65535ths, with each packet that finds the bin empty.
    pub decrement: u32,
    /// Packets per second of all flows together whose probability is one.
    pub penalty_rate: u32,
    /// How many of those may come at once.
    pub penalty_burst_packets: u32,
    /// Time between changes of the hash; 0: never.
    pub rehash_ns: u64,
    /// Time before a change in which the next bins learn who does not answer; 0: none.
    pub warmup_ns: u64,
}

const MS: u64 = 1_000_000;
/// tc's `max` where neither that nor `target` is given.
const MAX: u32 = 25;

impl Default for SfbSpec {
    /// What tc fills in; the kernel by itself would have twice the increment and four times the decrement.
    fn default() -> Self {
        Self {
            limit_packets: TXQUEUELEN,
            max_packets: MAX,
            target_packets: target_below(MAX),
            increment: 33,
            decrement: 3,
            penalty_rate: 10,
            penalty_burst_packets: 20,
            rehash_ns: 600_000 * MS,
            warmup_ns: 60_000 * MS,
        }
    }
}

/// Four fifths.
const fn target_below(max: u32) -> u32 {
    saturated_from((max as u64 * 4 + 3) / 5)
}

/// Five quarters.
const fn max_above(target: u32) -> u32 {
    saturated_from((target as u64 * 5 + 1) / 4)
}

const fn saturated_from(value: u64) -> u32 {
    if value > u32::MAX as u64 { u32::MAX } else { value as u32 }
}

/// In 65535ths, to the nearest.
fn probability(text: &str) -> Result<u32, ParseError> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share
        .map(|share| (share * f64::from(CERTAIN) + 0.5) as u32)
        .ok_or_else(|| unreadable(text, "a plain number from 0 to 1"))
}

/// Five decimals tell 65535ths apart.
fn printed(probability: u32) -> String {
    let text = format!("{:.5}", f64::from(probability) / f64::from(CERTAIN));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Configuration for SfbSpec {
    type Model = Box<Sfb>;

    const KIND: &'static str = "sfb";
    const WORDS: &'static [&'static str] = &[
        "rehash",
        "db",
        "limit",
        "max",
        "target",
        "increment",
        "decrement",
        "penalty_rate",
        "penalty_burst",
    ];
    const GRAMMAR: &'static str = "\
- `rehash` and `db` are in milliseconds (tc's own help says seconds), `increment` and `decrement` from 0 to 1, the others in packets
- `max` follows from `target`, and `target` from `max`, where only one is given
";

    /// A zero limit is the device's queue length, a zero `max` or `target` follows from the other.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self { max_packets: 0, target_packets: 0, ..Self::default() };
        while let Some(word) = words.next() {
            match word {
                "rehash" => spec.rehash_ns = u64::from(words.whole::<u32>(word)?) * MS,
                "db" => spec.warmup_ns = u64::from(words.whole::<u32>(word)?) * MS,
                "limit" => spec.limit_packets = words.whole(word)?,
                "max" => spec.max_packets = words.whole(word)?,
                "target" => spec.target_packets = words.whole(word)?,
                "increment" => spec.increment = words.value(word, probability)?,
                "decrement" => spec.decrement = words.value(word, probability)?,
                "penalty_rate" => spec.penalty_rate = words.whole(word)?,
                "penalty_burst" => spec.penalty_burst_packets = words.whole(word)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        if spec.limit_packets == 0 {
            spec.limit_packets = TXQUEUELEN;
        }
        if spec.max_packets == 0 {
            spec.max_packets =
                if spec.target_packets == 0 { MAX } else { max_above(spec.target_packets) };
        }
        if spec.target_packets == 0 {
            spec.target_packets = target_below(spec.max_packets);
        }
        Ok(spec)
    }

    fn print(&self) -> Text {
        Text::new(Self::KIND)
            .pair("rehash", self.rehash_ns / MS)
            .pair("db", self.warmup_ns / MS)
            .pair("limit", self.limit_packets)
            .pair("max", self.max_packets)
            .pair("target", self.target_packets)
            .pair("increment", printed(self.increment))
            .pair("decrement", printed(self.decrement))
            .pair("penalty_rate", self.penalty_rate)
            .pair("penalty_burst", self.penalty_burst_packets)
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            max_packets,
            target_packets,
            increment,
            decrement,
            penalty_rate: _,
            penalty_burst_packets: _,
            rehash_ns,
            warmup_ns,
        } = *self;
        report.at_least(format!("{at}.limit_packets"), limit_packets, 1);
        report.at_least(format!("{at}.max_packets"), max_packets, 1);
        report.at_least(format!("{at}.target_packets"), target_packets, 1);
        for (field, share) in [("increment", increment), ("decrement", decrement)] {
            report.at_most(format!("{at}.{field}"), share, u32::from(CERTAIN));
        }
        for (field, ns) in [("rehash_ns", rehash_ns), ("warmup_ns", warmup_ns)] {
            let before = report.problems.len();
            report.time(format!("{at}.{field}"), ns, 0);
            if report.problems.len() == before && !ns.is_multiple_of(MS) {
                report.add(format!("{at}.{field}"), ns, "whole milliseconds, as tc says it");
            }
        }
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Sfb> {
        let config = Config {
            limit: self.limit_packets,
            max: self.max_packets,
            target: self.target_packets,
            increment: self.increment,
            decrement: self.decrement,
            rehash: Duration::from_nanos(self.rehash_ns),
            warmup: Duration::from_nanos(self.warmup_ns),
            penalty_rate: self.penalty_rate,
            penalty_burst: self.penalty_burst_packets,
        };
        Box::new(Sfb::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    fn options(&self) -> Option<Vec<u8>> {
        // struct tc_sfb_qopt
        let parameters = words(&[
            saturated(self.rehash_ns / MS),
            saturated(self.warmup_ns / MS),
            self.max_packets,
            self.target_packets,
            self.increment,
            self.decrement,
            self.limit_packets,
            self.penalty_rate,
            self.penalty_burst_packets,
        ]);
        Some(Writer::value(|inside| {
            inside.bytes(1, &parameters); // TCA_SFB_PARMS
        }))
    }

    /// Times come back in the kernel's ticks.
    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let parameters = Attributes(options).get(1).unwrap_or_default();
        let one = |what, at, wanted| Confirmation::new(what, word(parameters, at), wanted);
        vec![
            one("max", 8, self.max_packets),
            one("target", 12, self.target_packets),
            one("increment", 16, self.increment),
            one("decrement", 20, self.decrement),
            one("limit", 24, self.limit_packets),
            one("penalty_rate", 28, self.penalty_rate),
            one("penalty_burst", 32, self.penalty_burst_packets),
        ]
    }

    /// struct tc_sfb_xstats: earlydrop, penaltydrop, bucketdrop, queuedrop, childdrop, marked
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 20).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let packets = || scope.choose(0_u32..60, 1..60_u32);
        let step = || prop_oneof![Just(33), 0..=u32::from(CERTAIN)];
        let times = scope.choose((0_u64..50, 0_u64..50), (1_u64..5_000, 0_u64..5_000));
        (scope.packets(), (packets(), packets()), (step(), step()), (0_u32..60, 0_u32..60), times)
            .prop_map(|(limit_packets, sizes, steps, penalty, times)| Self {
                limit_packets,
                max_packets: sizes.0,
                target_packets: sizes.1,
                increment: steps.0,
                decrement: steps.1,
                penalty_rate: penalty.0,
                penalty_burst_packets: penalty.1,
                rehash_ns: times.0 * MS,
                warmup_ns: times.1 * MS,
            })
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{CERTAIN, MS, SfbSpec, printed, probability};
    use crate::QdiscSpec;
    use crate::disciplines::Configuration;

    fn spec(words: &str) -> SfbSpec {
        let QdiscSpec::Sfb(spec) = QdiscSpec::parse(words).unwrap() else { panic!("an sfb") };
        spec
    }

    #[test]
    fn words_have_tcs_defaults() {
        let spec_of = SfbSpec::default();
        assert_eq!(spec("sfb"), spec_of);
        assert_eq!(spec("sfb limit 0 max 0 target 0"), spec_of);
        assert_eq!((spec_of.max_packets, spec_of.target_packets), (25, 20));
        let sizes = |words| (spec(words).max_packets, spec(words).target_packets);
        assert_eq!(sizes("sfb max 100"), (100, 80));
        assert_eq!(sizes("sfb target 10"), (12, 10));
        assert_eq!(sizes("sfb max 9 target 30"), (9, 30));
        let times = spec("sfb rehash 5000 db 250");
        assert_eq!((times.rehash_ns, times.warmup_ns), (5_000 * MS, 250 * MS));
        let steps = spec("sfb increment 0.001 decrement 1");
        assert_eq!((steps.increment, steps.decrement), (66, 65_535));
    }

    #[test]
    fn every_probability_reads_back() {
        for step in 0..=u32::from(CERTAIN) {
            assert_eq!(probability(&printed(step)), Ok(step));
        }
        assert_eq!(
            (printed(33), printed(65_535), printed(0)),
            ("0.0005".into(), "1".into(), "0".into())
        );
    }

    /// What the kernel takes and reports.
    #[test]
    fn netlink_says_what_tc_says() {
        let options = spec("sfb limit 500 penalty_rate 7 penalty_burst 9").options().unwrap();
        let bytes = [
            [40, 0, 1, 0],
            600_000_u32.to_ne_bytes(),
            60_000_u32.to_ne_bytes(),
            25_u32.to_ne_bytes(),
            20_u32.to_ne_bytes(),
            33_u32.to_ne_bytes(),
            3_u32.to_ne_bytes(),
            500_u32.to_ne_bytes(),
            7_u32.to_ne_bytes(),
            9_u32.to_ne_bytes(),
        ];
        assert_eq!(options, bytes.concat());
    }
}
