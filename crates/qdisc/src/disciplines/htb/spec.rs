//! htb with one class in words, checks and the kernel's form (`q_htb.c`).

use super::{Config, Htb, MBUFFER_NS};
use crate::contract::Change;
use crate::disciplines::fifo::PfifoSpec;
use crate::disciplines::{Class, Configuration, Confirmation, Facts, Payment, Streams};
use crate::disciplines::{Discipline, QdiscSpec};
use crate::netlink::{Attributes, Writer, ratespec, saturated, ticks, word, words};
use crate::tc::{self, Text, Words, missing, unless, unreadable};
use crate::token_rate::{Framing, rate};
use dragstrip_units::{ParseError, Problem, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hierarchical token bucket with one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtbSpec {
    /// Token rate.
    pub rate_bps: u64,
    /// Ceiling; the rate when absent.
    #[serde(default)]
    pub ceil_bps: Option<u64>,
    /// Bucket.
    pub burst_bytes: u64,
    /// Ceiling's bucket.
    pub cburst_bytes: u64,
    /// Added to every packet's charge; may be negative.
    #[serde(default)]
    pub overhead_bytes: i32,
    /// Least charge per packet.
    #[serde(default)]
    pub mpu_bytes: u32,
    /// Charge in whole ATM cells (48 bytes of payload cost 53).
    #[serde(default)]
    pub linklayer_atm: bool,
    /// Queue discipline of the class.
    pub leaf: Box<QdiscSpec>,
}

/// The MTU that tc's htb assumes for a class.
const MTU_BYTES: u64 = 1600;
/// What tc reads as HZ from /proc/net/psched on a kernel with high-resolution timers.
const HZ: u64 = 1_000_000_000;

impl HtbSpec {
    /// What tc and the kernel make of a rate alone: no ceiling above it, tc's buckets; `leaf` queues.
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
    const WORDS: &'static [&'static str] =
        &["rate", "ceil", "burst", "cburst", "overhead", "mpu", "linklayer", "leaf"];
    const UNMODELLED: &'static [&'static str] =
        &["prio", "quantum", "mtu", "default", "r2q", "direct_qlen"];
    const LEAST: &'static str = "htb rate 1mbit";
    const CLASSFUL: bool = true;

    /// One class; the kernel's default leaf is a pfifo of `txqueuelen` packets.
    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let (mut rate, mut ceil_bps, mut burst, mut cburst) = (None, None, None, None);
        let (mut overhead_bytes, mut mpu_bytes, mut linklayer_atm) = (0, 0, false);
        let mut leaf = QdiscSpec::from(PfifoSpec::default());
        while let Some(word) = words.next() {
            match word {
                "rate" => rate = Some(words.rate(word)?),
                "ceil" => ceil_bps = Some(words.rate(word)?),
                "burst" | "buffer" | "maxburst" => burst = Some(words.size(word)?),
                "cburst" | "cbuffer" | "cmaxburst" => cburst = Some(words.size(word)?),
                "overhead" => overhead_bytes = words.whole(word)?,
                "mpu" => mpu_bytes = words.whole(word)?,
                "linklayer" => linklayer_atm = words.value(word, linklayer)?,
                "leaf" | ":" => leaf = QdiscSpec::parse_words(words)?,
                _ => return Err(Self::unknown(word)),
            }
        }
        let rate_bps = rate.ok_or_else(|| missing("rate", "htb"))?;
        let ceiling = ceil_bps.unwrap_or(rate_bps);
        Ok(Self {
            rate_bps,
            ceil_bps,
            burst_bytes: burst.unwrap_or_else(|| Self::default_burst_bytes(rate_bps)),
            cburst_bytes: cburst.unwrap_or_else(|| Self::default_burst_bytes(ceiling)),
            overhead_bytes,
            mpu_bytes,
            linklayer_atm,
            leaf: Box::new(leaf),
        })
    }

    fn print(&self) -> Text {
        let Self { overhead_bytes, mpu_bytes, linklayer_atm, .. } = self;
        Text::new(Self::KIND)
            .pair("rate", tc::rate(self.rate_bps))
            .optional("ceil", self.ceil_bps.map(tc::rate))
            .pair("burst", tc::size(self.burst_bytes))
            .pair("cburst", tc::size(self.cburst_bytes))
            .optional("overhead", unless(*overhead_bytes == 0, overhead_bytes))
            .optional("mpu", unless(*mpu_bytes == 0, mpu_bytes))
            .optional("linklayer", linklayer_atm.then_some("atm"))
            .pair("leaf", self.leaf.print())
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            rate_bps,
            ceil_bps,
            burst_bytes,
            cburst_bytes,
            overhead_bytes,
            mpu_bytes,
            linklayer_atm: _,
            leaf,
        } = self;
        report.shaper_rate(format!("{at}.rate_bps"), *rate_bps);
        if let Some(ceil) = ceil_bps {
            report.shaper_rate(format!("{at}.ceil_bps"), *ceil);
            report.at_least(format!("{at}.ceil_bps"), *ceil, *rate_bps);
        }
        report.at_least(format!("{at}.burst_bytes"), *burst_bytes, 1);
        report.at_least(format!("{at}.cburst_bytes"), *cburst_bytes, 1);
        // Below -20 a pure ACK (54 bytes at least) might cost nothing.
        report.at_least(format!("{at}.overhead_bytes"), *overhead_bytes, -20);
        report.at_most(format!("{at}.overhead_bytes"), *overhead_bytes, 65_535);
        report.at_most(format!("{at}.mpu_bytes"), *mpu_bytes, 65_535);
        leaf.check(&format!("{at}.leaf"), report);
    }

    /// Its leaf's, at the rate: without siblings to borrow from, the ceiling lets nothing more pass.
    fn facts(&self) -> Facts {
        let Facts { rate_bps, delay_ns, buffer, shapes: _, reorders, draws, holds_packet, pays } =
            self.leaf.facts();
        let rates = [Some(self.rate_bps), self.ceil_bps, rate_bps];
        Facts {
            rate_bps: rates.into_iter().flatten().min(),
            delay_ns,
            buffer,
            shapes: true,
            reorders,
            draws,
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

    fn confirm_class(&self, _index: usize, options: &[u8]) -> Vec<Confirmation> {
        // struct tc_htb_opt begins with two struct tc_ratespec, whose last word is the rate in bytes per second.
        let found = Attributes(options).get(1).and_then(|parameters| word(parameters, 8));
        vec![Confirmation::new("rate in bytes per second", found, saturated(self.rate_bps / 8))]
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

fn linklayer(text: &str) -> Result<bool, ParseError> {
    match text {
        "atm" | "adsl" => Ok(true),
        "ethernet" => Ok(false),
        _ => Err(unreadable(text, "atm, adsl or ethernet")),
    }
}
