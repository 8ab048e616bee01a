//! netem in words, checks and the kernel's form (`q_netem.c`).

use super::{Config, Distribution, Loss, Netem, Slot, table as distribution_table};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::{self, TICK_NS, Writer, saturated, words};
use crate::table::{self, Draft, GivenWords, Layout, Place, Plain, Word};
use crate::table::{packets, rate, share, size_u32, switch, table, text, time, whole};
use crate::tc::{Text, Words, share_unless_zero, unknown, unreadable, wrong};
use crate::token_rate;
use dragstrip_units::{Duration, Problem, Report, format_percent};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// struct tc_netem_qopt, then attributes. Without any words nothing happens to a packet.
table! {
    /// Network emulator: delay, jitter, loss, reordering, duplication.
    pub struct NetemSpec {
        /// Packets that may be inside.
        limit_packets: u32 = 1000 => packets("limit").at_least(1).at(4).confirmed(),
        /// Mean delay.
        #[serde(default)]
        delay_ns: u64 = 0 => time("delay")
            .or(&["latency"])
            .encoded(ticks)
            .at(0)
            .confirmed_as("delay in ticks"),
        /// Half width (uniform) or standard deviation (normal ...) of the delay.
        #[serde(default)]
        jitter_ns: u64 = 0 => time("").called("JITTER").behind_or_kept().encoded(ticks).at(20),
        /// Correlation of successive delays, 0 to 1.
        #[serde(default)]
        delay_correlation: f64 = 0.0 => share("").called("CORRELATION").behind(),
        /// Shape of the delay.
        #[serde(default)]
        distribution: DelayDistribution = DelayDistribution::default() =>
            text("distribution", "uniform|normal|pareto|paretonormal", shape, |shape| {
                match shape {
                    DelayDistribution::Uniform => "uniform",
                    DelayDistribution::Normal => "normal",
                    DelayDistribution::Pareto => "pareto",
                    DelayDistribution::Paretonormal => "paretonormal",
                }
                .to_owned()
            })
            .unless_usual(),
        /// Loss.
        #[serde(default)]
        loss: LossModel = LossModel::default() => LOSS,
        /// Probability of a copy, 0 to 1.
        #[serde(default)]
        duplicate: f64 = 0.0 => share("duplicate").at(16),
        /// Correlation of successive duplications.
        #[serde(default)]
        duplicate_correlation: f64 = 0.0 => share("").called("CORRELATION").behind(),
        /// Probability of a corrupted packet (dropped by the receiver's checksum), 0 to 1.
        #[serde(default)]
        corrupt: f64 = 0.0 => share("corrupt")
            .unless_usual()
            .alone("no correlation: the simulator corrupts packets independently"),
        /// Probability that a packet overtakes the delay, 0 to 1.
        #[serde(default)]
        reorder: f64 = 0.0 => share("reorder"),
        /// Correlation of successive reorderings.
        #[serde(default)]
        reorder_correlation: f64 = 0.0 => share("").called("CORRELATION").behind(),
        /// Only every `gap`-th packet may overtake; 0: no reordering.
        #[serde(default)]
        gap: u32 = 0 => whole("gap").unless_usual(),
        /// netem's own rate.
        #[serde(default)]
        rate_bps: Option<u64> = None =>
            rate("rate").alone("no overhead or cell size: the simulator does not model them"),
        /// Packets wait for a slot: the least time to the next one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_ns: Option<u64> = None => time("slot"),
        /// The greatest time to the next slot; the time is drawn uniformly. None: as the least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_max_ns: Option<u64> = None => time("").called("MAX").behind()
            .at_least_of("slot_ns", |spec: &NetemSpec| spec.slot_ns.unwrap_or(0)),
        /// Packets of a slot. None: any number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_packets: Option<u32> = None =>
            packets("packets").at_least(1).at_most(SLOT_MAX),
        /// Bytes of a slot, whose last packet may go beyond. None: any number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot_bytes: Option<u32> = None => size_u32("bytes").at_least(1).at_most(SLOT_MAX),
        /// Mark ECN-capable packets instead of losing them.
        #[serde(default)]
        ecn: bool = false => switch(&[("ecn", true)]).after("loss"),
    }
}

/// The loss models behind `loss`. tc takes `ecn` only behind a loss, even one that never comes.
const LOSS: Word<NetemSpec> = Word::new(
    &["loss"],
    "[random] P [CORRELATION] | gemodel P [R [1-H [1-K]]] | every PACKETS",
    |draft: &mut Draft<'_, NetemSpec>, words, word| {
        draft.spec.loss = loss(words, word)?;
        Ok(())
    },
)
.or(&["drop"])
.about(|| {
    "Loss: each packet with a probability, Gilbert-Elliott's two states, or the last of each so many, which tc does not have \
     and the vm engine refuses."
        .into()
})
.printed(|spec| {
    let loss = spec.loss.print().or_else(|| spec.ecn.then(|| "0%".to_owned()));
    loss.map(|loss| format!("loss {loss}"))
})
.checked(|spec, field, report| spec.loss.check(field, report))
.sends(Place::At(8), |spec| {
    let share = match spec.loss {
        LossModel::None | LossModel::Gemodel { .. } | LossModel::Every { .. } => return None,
        LossModel::Random { probability, .. } => netlink::share(probability),
    };
    Some(share.to_ne_bytes().to_vec())
});

/// Largest value, which the kernel takes for no limit of a slot.
const SLOT_MAX: u32 = i32::MAX as u32;

/// Whole ticks of the packet scheduler.
fn ticks(ns: u64) -> u64 {
    ns / TICK_NS
}

/// Shape of netem's delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelayDistribution {
    /// Uniform in ±jitter.
    #[default]
    Uniform,
    /// Normal.
    Normal,
    /// Pareto.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    Paretonormal,
}

/// netem's loss models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossModel {
    /// No loss.
    #[default]
    None,
    /// Each packet with this probability.
    Random {
        /// 0 to 1.
        probability: f64,
        /// Correlation of successive draws.
        #[serde(default)]
        correlation: f64,
    },
    /// Gilbert–Elliott.
    Gemodel {
        /// Good to bad.
        p: f64,
        /// Bad to good.
        r: f64,
        /// Loss in the bad state (tc's 1-h).
        one_minus_h: f64,
        /// Loss in the good state (tc's 1-k).
        one_minus_k: f64,
    },
    /// Every so many-th packet, counted from the first. A kernel's netem has no such model: only the simulator runs it.
    Every {
        /// Number of packets of which the last is lost.
        packets: u32,
    },
}

impl Plain for DelayDistribution {}

impl NetemSpec {
    /// Parses a netem `text`, with or without the word `netem` in front.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`](crate::QdiscSpec::parse).
    pub fn parse_text(text: &str) -> Result<Self, Problem> {
        let mut words = Words::new(text);
        if words.peek() == Some(Self::KIND) {
            words.next();
        }
        Self::parse(&mut words)
    }

    fn distribution(&self) -> Distribution {
        match self.distribution {
            DelayDistribution::Uniform => Distribution::Uniform,
            DelayDistribution::Normal => Distribution::Normal,
            DelayDistribution::Pareto => Distribution::Pareto,
            DelayDistribution::Paretonormal => Distribution::ParetoNormal,
        }
    }

    fn slot(&self) -> Option<Slot> {
        let min = self.slot_ns?;
        let max = self.slot_max_ns.unwrap_or(min);
        // Of two zeros the kernel makes no slots.
        (max > 0).then(|| Slot {
            min: Duration::from_nanos(min),
            max: Duration::from_nanos(max),
            packets: self.slot_packets.unwrap_or(SLOT_MAX),
            bytes: self.slot_bytes.unwrap_or(SLOT_MAX),
        })
    }

    /// Returns the longest time that a packet that is due waits for its slot, if slots have no limits.
    #[must_use]
    pub fn slot_wait_ns(&self) -> u64 {
        self.slot().map_or(0, |slot| slot.max.as_nanos())
    }

    /// True when packets wait for slots, so that their departure times depend on when the delay line is polled.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        self.slot().is_some()
    }

    /// tc's own checks once all words are read.
    fn consistent(mut self, shaped: bool) -> Result<Self, Problem> {
        if shaped && (self.delay_ns == 0 || self.jitter_ns == 0) {
            return Err(wrong(
                "\"distribution\" alone",
                "delay and jitter too: \"delay 100ms 10ms\"",
            ));
        }
        let limited = self.slot_packets.is_some() || self.slot_bytes.is_some();
        if self.slot_ns.is_none() && limited {
            let expected = "the slot too: \"slot 5ms packets 10\"";
            return Err(wrong("\"packets\" or \"bytes\" without \"slot\"", expected));
        }
        if self.reorder > 0.0 {
            if self.delay_ns == 0 {
                return Err(wrong(
                    "\"reorder\" without \"delay\"",
                    "a delay that packets can overtake",
                ));
            }
            if self.gap == 0 {
                self.gap = 1;
            }
        } else if self.gap > 0 {
            return Err(wrong(
                "\"gap\" without \"reorder\"",
                "the probability too: \"reorder 25% gap 5\"",
            ));
        }
        Ok(self)
    }
}

impl Configuration for NetemSpec {
    type Model = Box<Netem>;

    const KIND: &'static str = "netem";
    const MODULES: &'static [&'static str] = &["sch_netem"];
    const EXAMPLES: &'static [&'static str] = &[
        "netem",
        "netem delay 100ms 75ms loss 1%",
        "netem delay 100ms 75ms 25% distribution pareto loss gemodel 1% 10% 70% 0.1%",
        "netem delay 0ms 0ms 5% duplicate 0% 6% reorder 0% 7%",
        "netem loss 0% ecn",
        "netem loss every 100",
        "netem delay 40ms slot 800us 4ms packets 32 bytes 65535b",
        "netem slot 5ms",
        "netem delay 1ms reorder 25% 50% gap 5 duplicate 1% 2% corrupt 3% loss 3.3% 1% ecn rate 9kbit",
    ];
    const EXTREMES: &'static [&'static str] =
        &["netem rate {}bit limit 1000", "netem delay 4000s 3000s limit 4294967295"];
    const LAYOUT: Layout = Layout::Structure(24);
    const UNMODELLED: &'static [&'static str] = &["seed"];

    fn complete(self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        if self.ecn && !given.has("loss") {
            let expected = "a loss that can become a mark: \"loss 1% ecn\"";
            return Err(wrong("\"ecn\" without \"loss\"", expected));
        }
        self.consistent(given.has("distribution"))
    }

    fn facts(&self) -> Facts {
        Facts {
            rate_bps: self.rate_bps,
            delay_ns: self.delay_ns,
            shapes: true,
            reorders: (self.jitter_ns > 0 && self.rate_bps.is_none())
                || self.gap > 0
                || self.reorder > 0.0,
            draws: self.jitter_ns > 0
                || self.slot().is_some_and(|slot| slot.max > slot.min)
                || !matches!(self.loss, LossModel::None | LossModel::Every { .. })
                || [self.duplicate, self.corrupt, self.reorder].iter().any(|chance| *chance > 0.0),
            marks: self.ecn,
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<Netem> {
        let config = Config {
            limit: self.limit_packets,
            delay: Duration::from_nanos(self.delay_ns),
            jitter: Duration::from_nanos(self.jitter_ns),
            delay_correlation: self.delay_correlation,
            distribution: self.distribution(),
            loss: match self.loss {
                LossModel::None => Loss::None,
                LossModel::Random { probability, correlation } => {
                    Loss::Random { probability, correlation }
                }
                LossModel::Gemodel { p, r, one_minus_h, one_minus_k } => {
                    Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }
                }
                LossModel::Every { packets } => Loss::Every { packets },
            },
            ecn: self.ecn,
            duplicate: self.duplicate,
            duplicate_correlation: self.duplicate_correlation,
            corrupt: self.corrupt,
            corrupt_correlation: 0.0,
            reorder: self.reorder,
            reorder_correlation: self.reorder_correlation,
            gap: self.gap,
            rate: self.rate_bps.map(token_rate::rate),
            slot: self.slot(),
        };
        Box::new(Netem::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let mut spec = self.clone();
        match change {
            Change::DelayNs(delay_ns) => spec.delay_ns = delay_ns,
            Change::Loss(probability) if probability > 0.0 => {
                spec.loss = LossModel::Random { probability, correlation: 0.0 };
            }
            Change::Loss(_) => spec.loss = LossModel::None,
            Change::LimitPackets(limit) => spec.limit_packets = limit,
            Change::RateBps(_) | Change::LimitBytes(_) => return None,
        }
        Some(spec)
    }

    fn options(&self) -> Option<Vec<u8>> {
        let share = netlink::share;
        let loss_correlation = match self.loss {
            LossModel::None | LossModel::Gemodel { .. } | LossModel::Every { .. } => 0.0,
            LossModel::Random { correlation, .. } => correlation,
        };
        // With reordering and no gap, tc sets the gap to 1.
        let gap = if self.reorder > 0.0 { self.gap.max(1) } else { self.gap };
        let mut head = table::structure(self, 24);
        head[12..16].copy_from_slice(&gap.to_ne_bytes());
        let mut body = Writer::behind(&head);
        body.u64(10, self.delay_ns).u64(11, self.jitter_ns); // TCA_NETEM_LATENCY64, _JITTER64
        let correlations = [self.delay_correlation, loss_correlation, self.duplicate_correlation];
        body.bytes(1, &words(&correlations.map(share))); // TCA_NETEM_CORR
        body.bytes(3, &words(&[share(self.reorder), share(self.reorder_correlation)])); // _REORDER
        body.bytes(4, &words(&[share(self.corrupt), 0])); // _CORRUPT
        if let LossModel::Gemodel { p, r, one_minus_h, one_minus_k } = self.loss {
            // The kernel takes h where tc(8) takes 1-h, but 1-k as it is.
            let model = [share(p), share(r), share(1.0 - one_minus_h), share(one_minus_k)];
            body.nest(5, |inside| {
                inside.bytes(2, &words(&model)); // NETEM_LOSS_GE
            });
        }
        if let Some(bps) = self.rate_bps {
            let bytes = bps / 8;
            body.bytes(6, &words(&[saturated(bytes), 0, 0, 0])); // TCA_NETEM_RATE
            if bytes > u64::from(u32::MAX) {
                body.u64(8, bytes); // TCA_NETEM_RATE64
            }
        }
        if self.ecn {
            body.u32(7, 1); // TCA_NETEM_ECN
        }
        if let Some(slot) = self.slot() {
            let limit = |limit: u32| if limit == SLOT_MAX { 0 } else { limit };
            // struct tc_netem_slot: the two times, packets, bytes, and a distribution that is not used.
            let mut value = Vec::new();
            value.extend(slot.min.as_nanos().to_ne_bytes());
            value.extend(slot.max.as_nanos().to_ne_bytes());
            value.extend(words(&[limit(slot.packets), limit(slot.bytes)]));
            value.extend([0_u8; 16]);
            body.bytes(12, &value); // TCA_NETEM_SLOT
        }
        if self.jitter_ns > 0
            && let Some(table) = distribution_table(self.distribution())
        {
            let entries = table.iter().flat_map(|entry| entry.to_ne_bytes());
            body.bytes(2, &entries.collect::<Vec<u8>>()); // TCA_NETEM_DELAY_DIST
        }
        Some(body.into_bytes())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        const MS: u64 = 1_000_000;
        let distribution = proptest::sample::select(vec![
            DelayDistribution::Uniform,
            DelayDistribution::Normal,
            DelayDistribution::Pareto,
            DelayDistribution::Paretonormal,
        ]);
        let delay_ns = prop_oneof![1 => Just(0), 3 => 1..30 * MS];
        let jitter_ns = prop_oneof![Just(0), 0..20 * MS];
        let delays = (delay_ns, jitter_ns, scope.share(0.9), distribution);
        let harms =
            (LossModel::arbitrary(scope), scope.share(0.1), scope.share(0.5), scope.share(0.05));
        let order = (scope.share(0.3), scope.share(0.5), prop_oneof![Just(0), 1..5_u32]);
        let limit_packets = scope.choose(0_u32..200, 1..1000_u32);
        let rest = (limit_packets, prop::option::weighted(0.2, scope.rate_bps()), any::<bool>());
        let limits =
            (prop::option::of(1..100_u32), prop::option::of(1..1_000_000_u32), prop::bool::ANY);
        let slot = prop::option::weighted(0.3, (0..20 * MS, 0..20 * MS, limits));
        (delays, harms, order, rest, slot)
            .prop_map(|(delays, harms, order, rest, slot)| Self {
                slot_ns: slot.map(|slot| slot.0),
                slot_max_ns: slot.filter(|slot| slot.2.2).map(|slot| slot.0 + slot.1),
                slot_packets: slot.and_then(|slot| slot.2.0),
                slot_bytes: slot.and_then(|slot| slot.2.1),
                limit_packets: rest.0,
                delay_ns: delays.0,
                jitter_ns: delays.1,
                delay_correlation: delays.2,
                distribution: delays.3,
                loss: harms.0,
                duplicate: harms.1,
                duplicate_correlation: harms.2,
                corrupt: harms.3,
                reorder: order.0,
                reorder_correlation: order.1,
                gap: order.2,
                rate_bps: rest.1,
                ecn: rest.2,
            })
            .boxed()
    }
}

impl LossModel {
    /// Formats the text after `loss`; none: no loss.
    fn print(&self) -> Option<String> {
        match *self {
            Self::None => None,
            Self::Random { probability, correlation } => {
                let text = Text::new(&format_percent(probability));
                Some(text.word(&share_unless_zero(correlation)).to_string())
            }
            Self::Gemodel { p, r, one_minus_h, one_minus_k } => {
                let shares = [p, r, one_minus_h, one_minus_k].map(format_percent);
                Some(format!("gemodel {}", shares.join(" ")))
            }
            Self::Every { packets } => Some(format!("every {packets}")),
        }
    }

    fn check(&self, at: &str, report: &mut Report) {
        match self {
            Self::None => {}
            Self::Random { probability, correlation } => {
                report.share(format!("{at}.probability"), *probability);
                report.share(format!("{at}.correlation"), *correlation);
            }
            Self::Gemodel { p, r, one_minus_h, one_minus_k } => {
                for (field, share) in
                    [("p", p), ("r", r), ("one_minus_h", one_minus_h), ("one_minus_k", one_minus_k)]
                {
                    report.share(format!("{at}.{field}"), *share);
                }
            }
            Self::Every { packets } => report.at_least(format!("{at}.packets"), *packets, 1),
        }
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let bursts = scope.choose(
            (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0),
            (0.0..0.05, 0.1..1.0, 0.0..1.0, 0.0..0.02),
        );
        prop_oneof![
            3 => Just(Self::None),
            2 => (scope.choose(0.0..=1.0, 0.0..0.2), scope.share(0.9)).prop_map(
                |(probability, correlation)| Self::Random { probability, correlation }
            ),
            1 => (1..2000_u32).prop_map(|packets| Self::Every { packets }),
            1 => bursts.prop_map(|(p, r, one_minus_h, one_minus_k)| {
                Self::Gemodel { p, r, one_minus_h, one_minus_k }
            }),
        ]
        .boxed()
    }
}

fn shape(words: &mut Words<'_>, word: &str) -> Result<DelayDistribution, Problem> {
    words.value(word, |text| match text {
        "uniform" => Ok(DelayDistribution::Uniform),
        "normal" => Ok(DelayDistribution::Normal),
        "pareto" => Ok(DelayDistribution::Pareto),
        "paretonormal" => Ok(DelayDistribution::Paretonormal),
        _ => Err(unreadable(text, "uniform, normal, pareto or paretonormal")),
    })
}

/// `loss P [CORR]`, `loss random P [CORR]`, `loss every PACKETS` or `loss gemodel P [R [1-H [1-K]]]`.
fn loss(words: &mut Words<'_>, word: &str) -> Result<LossModel, Problem> {
    const MODELS: &[&str] = &["random", "gemodel", "every"];
    match words.peek() {
        Some("gemodel") => {
            words.next();
            let p = words.share("gemodel")?;
            let r = words.share_or("gemodel", 1.0 - p)?;
            let one_minus_h = words.share_or("gemodel", 1.0)?;
            let one_minus_k = words.share_or("gemodel", 0.0)?;
            return Ok(LossModel::Gemodel { p, r, one_minus_h, one_minus_k });
        }
        Some("every") => {
            words.next();
            return Ok(LossModel::Every { packets: words.whole("every")? });
        }
        Some("random") => {
            words.next();
        }
        Some(_) if !words.number_follows() => {
            let model = words.next().unwrap_or_default();
            return Err(unknown(model, MODELS, &["state"]));
        }
        Some(_) | None => {}
    }
    let probability = words.share(word)?;
    let correlation = words.share_or(word, 0.0)?;
    if probability == 0.0 {
        return Ok(LossModel::None);
    }
    Ok(LossModel::Random { probability, correlation })
}
