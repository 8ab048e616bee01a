//! sfb in words, checks and the kernel's form (`q_sfb.c`).

use super::{CERTAIN, Config, Sfb};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams, TXQUEUELEN};
use crate::netlink::word;
use crate::table::{Form, GivenWords, Layout, table, text, whole};
use crate::tc::unreadable;
use dragstrip_units::{Duration, ParseError, Problem, Report};

const MS: u64 = 1_000_000;
/// tc's `max` where neither that nor `target` is given.
const MAX: u32 = 25;

// TCA_SFB_PARMS with struct tc_sfb_qopt. The defaults are tc's; the kernel by itself would have twice the increment and four
// times the decrement. Times come back in the kernel's ticks.
table! {
    /// Stochastic fair blue: packets are marked or dropped by probabilities that flows have through a hash, and flows that do not answer are
    /// held to a rate.
    #[derive(Copy, Eq)]
    pub struct SfbSpec {
        /// Packets that may wait.
        limit_packets: u32 = TXQUEUELEN => whole("limit").at_least(1).at(24).confirmed(),
        /// Packets that may wait in a bin: of a flow, and of others that share the bin.
        max_packets: u32 = MAX => whole("max").at_least(1).at(8).confirmed(),
        /// Packets in a bin from which on its probability grows.
        target_packets: u32 = target_below(MAX) => whole("target").at_least(1).at(12).confirmed(),
        /// By how much, in 65535ths, with each packet that finds it so.
        increment: u32 = 33 => step("increment").at(16).confirmed(),
        /// By how much it falls, in 65535ths, with each packet that finds the bin empty.
        decrement: u32 = 3 => step("decrement").at(20).confirmed(),
        /// Packets per second of all flows together whose probability is one.
        penalty_rate: u32 = 10 => whole("penalty_rate").at(28).confirmed(),
        /// Number of those packets that may arrive at once.
        penalty_burst_packets: u32 = 20 => whole("penalty_burst").at(32).confirmed(),
        /// Time between changes of the hash; 0: never.
        rehash_ns: u64 = 600_000 * MS => milliseconds("rehash").at(0).after(""),
        /// Time before a change in which the next bins learn who does not answer; 0: none.
        warmup_ns: u64 = 60_000 * MS => milliseconds("db").at(4).after("rehash_ns"),
    }
}

/// A plain number from 0 to 1.
const fn step(word: &'static str) -> Form<SfbSpec, u32> {
    text(word, "NUMBER", |words, word| words.value(word, probability), printed)
        .at_most(CERTAIN as u32)
}

/// A plain number of milliseconds.
const fn milliseconds(word: &'static str) -> Form<SfbSpec, u64> {
    text(
        word,
        "MILLISECONDS",
        |words, word| Ok(u64::from(words.whole::<u32>(word)?) * MS),
        |ns| (ns / MS).to_string(),
    )
    .within("up to 17000000", whole_milliseconds)
    .encoded(|ns| ns / MS)
}

fn whole_milliseconds(report: &mut Report, field: String, ns: u64) {
    let before = report.problems.len();
    report.time(field.clone(), ns, 0);
    if report.problems.len() == before && !ns.is_multiple_of(MS) {
        report.add(field, ns, "whole milliseconds, as tc says it");
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
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_sfb"];
    const EXAMPLES: &'static [&'static str] = &[
        "sfb",
        "sfb max 100",
        "sfb rehash 5000 db 250 limit 500 target 40 increment 0.01 decrement 0.002 penalty_rate 50 penalty_burst 5",
    ];
    const EXTREMES: &'static [&'static str] = &[
        "sfb limit 4294967295 max 4294967295 target 1 increment 1 rehash 1 db 1 penalty_rate 4294967295 penalty_burst 4294967295",
    ];
    const LAYOUT: Layout = Layout::Inside(1, 36);
    const NOTES: &'static str = "\
- `rehash` and `db` are in milliseconds (tc's own help says seconds)
- `max` follows from `target`, and `target` from `max`, where only one is given
";

    /// A zero limit is the device's queue length, a zero `max` or `target` follows from the other.
    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        let explicit_packets =
            |field: &str, packets: u32| if given.has(field) { packets } else { 0 };
        if self.limit_packets == 0 {
            self.limit_packets = TXQUEUELEN;
        }
        let target = explicit_packets("target_packets", self.target_packets);
        self.max_packets = match (explicit_packets("max_packets", self.max_packets), target) {
            (0, 0) => MAX,
            (0, target) => max_above(target),
            (max, _) => max,
        };
        self.target_packets = if target == 0 { target_below(self.max_packets) } else { target };
        Ok(self)
    }

    fn facts(&self) -> Facts {
        Facts { draws: true, marks: true, ..Facts::queue(Buffer::packets(self.limit_packets)) }
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

    /// The values that the kernel takes and reports.
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
