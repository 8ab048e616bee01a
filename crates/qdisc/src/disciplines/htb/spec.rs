//! htb with one class in words, checks and the kernel's form (`q_htb.c`).

use super::{Config, Htb, MBUFFER_NS};
use crate::contract::Change;
use crate::disciplines::fifo::PfifoSpec;
use crate::disciplines::{Class, Configuration, Confirmation, Facts, Payment, Streams};
use crate::disciplines::{Discipline, QdiscSpec};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};
use crate::table::{self, GivenWords, Word, size, table, text, whole};
use crate::tc::{Words, unreadable};
use crate::token_rate::{Framing, rate};
use dragstrip_units::Problem;

// Below an overhead of -20 a pure ACK (54 bytes at least) might cost nothing. A bucket of zero is tc's (`complete`); the
// kernel's default leaf is a pfifo of `txqueuelen` packets.
table! {
    /// Hierarchical token bucket with one class.
    pub struct HtbSpec {
        /// Token rate.
        rate_bps: u64 = 0 => table::rate("rate").mandatory("1mbit"),
        /// Ceiling; the rate when absent.
        #[serde(default)]
        ceil_bps: Option<u64> = None =>
            table::rate("ceil").at_least_of("rate", |spec: &HtbSpec| spec.rate_bps),
        /// Bucket.
        burst_bytes: u64 = 0 => size("burst")
            .or(&["buffer", "maxburst"])
            .usually("1600b, and a nanosecond at the rate")
            .at_least(1),
        /// Ceiling's bucket.
        cburst_bytes: u64 = 0 => size("cburst")
            .or(&["cbuffer", "cmaxburst"])
            .usually("1600b, and a nanosecond at the ceiling")
            .at_least(1),
        /// Added to every packet's charge; may be negative.
        #[serde(default)]
        overhead_bytes: i32 = 0 => whole("overhead").unless_usual().at_least(-20).at_most(65_535),
        /// Least charge per packet.
        #[serde(default)]
        mpu_bytes: u32 = 0 => whole("mpu").unless_usual().at_most(65_535),
        /// Charge in whole ATM cells (48 bytes of payload cost 53).
        #[serde(default)]
        linklayer_atm: bool = false =>
            text("linklayer", "atm|adsl|ethernet", linklayer, |atm| {
                if atm { "atm" } else { "ethernet" }.to_owned()
            })
            .unless_usual(),
        /// Queue discipline of the class.
        leaf: Box<QdiscSpec> = Box::new(QdiscSpec::from(PfifoSpec::default())) =>
            Word::new(&["leaf"], "DISCIPLINE", |draft: &mut table::Draft<'_, HtbSpec>, words, _| {
                *draft.spec.leaf = QdiscSpec::parse_words(words)?;
                Ok(())
            })
            .or(&[":"])
            .printed(|spec| Some(format!("leaf {}", spec.leaf.print())))
            .checked(|spec, field, report| spec.leaf.check(field, report)),
    }
}

fn linklayer(words: &mut Words<'_>, word: &str) -> Result<bool, Problem> {
    words.value(word, |text| match text {
        "atm" | "adsl" => Ok(true),
        "ethernet" => Ok(false),
        _ => Err(unreadable(text, "atm, adsl or ethernet")),
    })
}

/// The MTU that tc's htb assumes for a class.
const MTU_BYTES: u64 = 1600;
/// HZ as tc reads it from /proc/net/psched on a kernel with high-resolution timers.
const HZ: u64 = 1_000_000_000;

impl HtbSpec {
    /// Returns the class that tc and the kernel derive from a rate alone: no ceiling above it, tc's buckets; `leaf`
    /// queues.
    #[must_use]
    pub fn with_rate(rate_bps: u64, leaf: QdiscSpec) -> Self {
        let burst_bytes = Self::default_burst_bytes(rate_bps);
        Self {
            rate_bps,
            ceil_bps: None,
            burst_bytes,
            cburst_bytes: burst_bytes,
            overhead_bytes: 0,
            mpu_bytes: 0,
            linklayer_atm: false,
            leaf: Box::new(leaf),
        }
    }

    /// The bucket tc's htb gives to a rate: what passes in one tick, plus an MTU. With high-resolution
    /// timers a tick is a nanosecond, so that below 8 Gbit/s only the MTU is left.
    #[must_use]
    pub const fn default_burst_bytes(rate_bps: u64) -> u64 {
        rate_bps / 8 / HZ + MTU_BYTES
    }

    fn ceiling_bps(&self) -> u64 {
        self.ceil_bps.unwrap_or(self.rate_bps)
    }

    fn framing(&self) -> Framing {
        Framing { overhead: self.overhead_bytes, mpu: self.mpu_bytes, atm: self.linklayer_atm }
    }

    fn ratespec(&self, rate_bps: u64) -> Vec<u8> {
        ratespec(rate_bps, self.overhead_bytes, self.mpu_bytes, self.linklayer_atm)
    }
}

impl Configuration for HtbSpec {
    type Model = Box<Htb<Discipline>>;

    const KIND: &'static str = "htb";
    const MODULES: &'static [&'static str] = &["sch_htb"];
    const EXAMPLES: &'static [&'static str] = &[
        "htb rate 1mbit leaf bfifo limit 0.1mb",
        "htb rate 1mbit ceil 2mbit overhead -4 mpu 64 linklayer atm leaf codel ecn",
        "htb rate 1mbit burst 9kb cburst 3kb leaf netem delay 10ms",
        "htb rate 9mbit leaf police rate 1mbit burst 15kb leaf sfq",
    ];
    const EXTREMES: &'static [&'static str] = &["htb rate {}bit"];
    const UNMODELLED: &'static [&'static str] =
        &["prio", "quantum", "mtu", "default", "r2q", "direct_qlen"];
    const LEAST: &'static str = "htb rate 1mbit";
    const CLASSFUL: bool = true;
    const KEEPS: bool = false;

    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        if !given.has("burst_bytes") {
            self.burst_bytes = Self::default_burst_bytes(self.rate_bps);
        }
        if !given.has("cburst_bytes") {
            self.cburst_bytes = Self::default_burst_bytes(self.ceiling_bps());
        }
        Ok(self)
    }

    /// Its leaf's, at the rate: without siblings to borrow from, the ceiling lets nothing more pass.
    fn facts(&self) -> Facts {
        let Facts {
            rate_bps,
            delay_ns,
            buffer,
            shapes: _,
            reorders,
            draws,
            marks,
            holds_packet,
            pays,
        } = self.leaf.facts();
        let rates = [Some(self.rate_bps), self.ceil_bps, rate_bps];
        Facts {
            rate_bps: rates.into_iter().flatten().min(),
            delay_ns,
            buffer,
            shapes: true,
            reorders,
            draws,
            marks,
            holds_packet: holds_packet
                .into_iter()
                .map(|(field, bytes)| (format!("leaf.{field}"), bytes))
                .collect(),
            pays: [
                (String::from("rate_bps"), Some(self.rate_bps)),
                (String::from("ceil_bps"), self.ceil_bps),
            ]
            .into_iter()
            .filter_map(|(field, rate_bps)| {
                let (seconds, framing) = (MBUFFER_NS as u64 / 1_000_000_000, self.framing());
                Some((field, Payment { rate_bps: rate_bps?, seconds, framing }))
            })
            .chain(pays.into_iter().map(|(field, pays)| (format!("leaf.{field}"), pays)))
            .collect(),
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Self::Model {
        let config = Config {
            rate: rate(self.rate_bps),
            ceil: rate(self.ceiling_bps()),
            burst: self.burst_bytes,
            cburst: self.cburst_bytes,
            framing: self.framing(),
        };
        Box::new(Htb::new(config, self.leaf.build(streams)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        if let Change::RateBps(rate_bps) = change {
            let usual = Self::default_burst_bytes;
            let bucket =
                |bytes: u64| if bytes == usual(self.rate_bps) { usual(rate_bps) } else { bytes };
            return Some(Self {
                rate_bps,
                ceil_bps: None,
                burst_bytes: bucket(self.burst_bytes),
                cburst_bytes: bucket(self.cburst_bytes),
                ..self.clone()
            });
        }
        let leaf = Box::new(self.leaf.changed(change)?);
        Some(Self { leaf, ..self.clone() })
    }

    fn options(&self) -> Option<Vec<u8>> {
        // struct tc_htb_glob: version 3, rate2quantum 10, default class 1
        Some(Writer::value(|inside| {
            inside.bytes(2, &words(&[3, 10, 1, 0, 0])); // TCA_HTB_INIT
        }))
    }

    fn classes(&self) -> Vec<Class<'_>> {
        let ceil_bps = self.ceiling_bps();
        let mut parameters = self.ratespec(self.rate_bps);
        parameters.extend(self.ratespec(ceil_bps));
        // buffer, cbuffer, quantum (one packet; there is one class), level, priority
        let buffer = ticks(self.rate_bps, self.burst_bytes);
        parameters.extend(words(&[buffer, ticks(ceil_bps, self.cburst_bytes), 1514, 0, 0]));
        let options = Writer::value(|inside| {
            inside.bytes(1, &parameters); // TCA_HTB_PARMS
            inside.u64(6, self.rate_bps / 8).u64(7, ceil_bps / 8); // TCA_HTB_RATE64, TCA_HTB_CEIL64
        });
        vec![Class { options, child: &self.leaf }]
    }

    fn confirm(&self, _options: &[u8]) -> Vec<Confirmation> {
        Vec::new()
    }

    fn confirm_class(&self, _index: usize, options: &[u8]) -> Vec<Confirmation> {
        // struct tc_htb_opt begins with two struct tc_ratespec, whose last word is the rate in bytes per second.
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
        let bucket = || scope.choose(0_u64..20_000, 1..10_000_u64);
        let ceil_tenths = prop::option::of(scope.choose(1_u64..40, 10..40_u64));
        let framing = (-20..60_i32, 0..200_u32, any::<bool>());
        (
            scope.rate_bps(),
            ceil_tenths,
            bucket(),
            bucket(),
            framing,
            QdiscSpec::arbitrary_classless(scope),
        )
            .prop_map(|(rate_bps, ceil_tenths, burst_bytes, cburst_bytes, framing, leaf)| Self {
                rate_bps,
                ceil_bps: ceil_tenths.map(|tenths| rate_bps * tenths / 10),
                burst_bytes,
                cburst_bytes,
                overhead_bytes: framing.0,
                mpu_bytes: framing.1,
                linklayer_atm: framing.2,
                leaf: Box::new(leaf),
            })
            .boxed()
    }
}
