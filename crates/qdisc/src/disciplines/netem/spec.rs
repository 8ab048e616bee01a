//! netem in words, checks and the kernel's form (`q_netem.c`).

use super::{Config, Distribution, Loss, Netem, table};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Confirmation, Facts, Streams};
use crate::netlink::{self, TICK_NS, Writer, saturated, word, words};
use crate::tc::{Text, Words, rate, share_unless_zero, time, unknown, unless, unreadable, wrong};
use crate::token_rate;
use dragstrip_units::{Duration, ParseError, Problem, Report, format_percent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Network emulator: delay, jitter, loss, reordering, duplication.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetemSpec {
    /// Packets that may be inside.
    pub limit_packets: u32,
    /// Mean delay.
    #[serde(default)]
    pub delay_ns: u64,
    /// Half width (uniform) or standard deviation (normal ...) of the delay.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Correlation of successive delays, 0 to 1.
    #[serde(default)]
    pub delay_correlation: f64,
    /// Shape of the delay.
    #[serde(default)]
    pub distribution: DelayDistribution,
    /// Loss.
    #[serde(default)]
    pub loss: LossModel,
    /// Probability of a copy, 0 to 1.
    #[serde(default)]
    pub duplicate: f64,
    /// Correlation of successive duplications.
    #[serde(default)]
    pub duplicate_correlation: f64,
    /// Probability of a corrupted packet (dropped by the receiver's checksum), 0 to 1.
    #[serde(default)]
    pub corrupt: f64,
    /// Probability that a packet overtakes the delay, 0 to 1.
    #[serde(default)]
    pub reorder: f64,
    /// Correlation of successive reorderings.
    #[serde(default)]
    pub reorder_correlation: f64,
    /// Only every `gap`-th packet may overtake; 0: no reordering.
    #[serde(default)]
    pub gap: u32,
    /// netem's own rate.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Mark ECN-capable packets instead of losing them.
    #[serde(default)]
    pub ecn: bool,
}

/// Shape of netem's delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        /// Of which the last is lost.
        packets: u32,
    },
}

impl Default for NetemSpec {
    /// netem without any words: nothing happens to a packet, and tc's limit of 1000 packets holds.
    fn default() -> Self {
        Self {
            limit_packets: 1000,
            delay_ns: 0,
            jitter_ns: 0,
            delay_correlation: 0.0,
            distribution: DelayDistribution::default(),
            loss: LossModel::default(),
            duplicate: 0.0,
            duplicate_correlation: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            reorder_correlation: 0.0,
            gap: 0,
            rate_bps: None,
            ecn: false,
        }
    }
}

impl NetemSpec {
    /// What `text` says about netem, with or without the word `netem` in front.
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

    /// tc's own checks once all words are read.
    fn consistent(mut self, distribution: Option<DelayDistribution>) -> Result<Self, Problem> {
        if let Some(distribution) = distribution {
            if self.delay_ns == 0 || self.jitter_ns == 0 {
                return Err(wrong(
                    "\"distribution\" alone",
                    "delay and jitter too: \"delay 100ms 10ms\"",
                ));
            }
            self.distribution = distribution;
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
    const WORDS: &'static [&'static str] = &[
        "delay",
        "distribution",
        "loss",
        "duplicate",
        "corrupt",
        "reorder",
        "gap",
        "limit",
        "rate",
        "ecn",
    ];
    const UNMODELLED: &'static [&'static str] = &["slot", "seed"];
    const GRAMMAR: &'static str = "\
- `delay TIME [JITTER [CORRELATION]]`, `distribution uniform|normal|pareto|paretonormal`
- `loss P [CORRELATION]`, `loss random P [CORRELATION]`, `loss gemodel P [R [1-H [1-K]]]`, `ecn`
- `loss every PACKETS`: the last of each so many, which tc has not; the vm engine refuses it
- `duplicate P [CORRELATION]`, `corrupt P`, `reorder P [CORRELATION]`, `gap N`
- `limit PACKETS`, `rate RATE`
";

    fn parse(words: &mut Words<'_>) -> Result<Self, Problem> {
        let mut spec = Self::default();
        let (mut distribution, mut has_loss) = (None, false);
        while let Some(word) = words.next() {
            match word {
                "limit" => spec.limit_packets = words.packets(word)?,
                "delay" | "latency" => {
                    spec.delay_ns = words.time(word)?;
                    if words.number_follows() {
                        spec.jitter_ns = words.time(word)?;
                        spec.delay_correlation = words.share_or(word, 0.0)?;
                    }
                }
                "distribution" => distribution = Some(words.value(word, shape)?),
                "loss" | "drop" => {
                    spec.loss = loss(words, word)?;
                    has_loss = true;
                }
                "ecn" => spec.ecn = true,
                "duplicate" => {
                    spec.duplicate = words.share(word)?;
                    spec.duplicate_correlation = words.share_or(word, 0.0)?;
                }
                "corrupt" => {
                    spec.corrupt = words.share(word)?;
                    let expected = "no correlation: the simulator corrupts packets independently";
                    no_number(words, word, expected)?;
                }
                "reorder" => {
                    spec.reorder = words.share(word)?;
                    spec.reorder_correlation = words.share_or(word, 0.0)?;
                }
                "gap" => spec.gap = words.whole(word)?,
                "rate" => {
                    spec.rate_bps = Some(words.rate(word)?);
                    let expected = "no overhead or cell size: the simulator does not model them";
                    no_number(words, word, expected)?;
                }
                _ => return Err(Self::unknown(word)),
            }
        }
        if spec.ecn && !has_loss {
            let expected = "a loss that can become a mark: \"loss 1% ecn\"";
            return Err(wrong("\"ecn\" without \"loss\"", expected));
        }
        spec.consistent(distribution)
    }

    fn print(&self) -> Text {
        let Self {
            limit_packets,
            delay_ns,
            jitter_ns,
            delay_correlation,
            distribution,
            loss,
            duplicate,
            duplicate_correlation,
            corrupt,
            reorder,
            reorder_correlation,
            gap,
            rate_bps,
            ecn,
        } = self;
        // A correlation stands behind its value, even where that is 0.
        let jitter = unless(*jitter_ns == 0 && *delay_correlation == 0.0, time(*jitter_ns));
        let delay = unless(*delay_ns == 0 && jitter.is_none(), time(*delay_ns));
        let percent = |share: f64, correlation: f64| {
            unless(share == 0.0 && correlation == 0.0, format_percent(share))
        };
        let shape = match distribution {
            DelayDistribution::Uniform => None,
            DelayDistribution::Normal => Some("normal"),
            DelayDistribution::Pareto => Some("pareto"),
            DelayDistribution::Paretonormal => Some("paretonormal"),
        };
        Text::new(Self::KIND)
            .pair("limit", limit_packets)
            .optional("delay", delay)
            .word(jitter.as_deref().unwrap_or_default())
            .word(&share_unless_zero(*delay_correlation))
            .optional("distribution", shape)
            // tc takes "ecn" only behind a loss, even one that never comes.
            .optional("loss", loss.print().or_else(|| ecn.then(|| "0%".to_owned())))
            .word(if *ecn { "ecn" } else { "" })
            .optional("duplicate", percent(*duplicate, *duplicate_correlation))
            .word(&share_unless_zero(*duplicate_correlation))
            .optional("corrupt", percent(*corrupt, 0.0))
            .optional("reorder", percent(*reorder, *reorder_correlation))
            .word(&share_unless_zero(*reorder_correlation))
            .optional("gap", unless(*gap == 0, gap))
            .optional("rate", rate_bps.map(rate))
    }

    fn check(&self, at: &str, report: &mut Report) {
        let Self {
            limit_packets,
            delay_ns,
            jitter_ns,
            delay_correlation,
            distribution: _,
            loss,
            duplicate,
            duplicate_correlation,
            corrupt,
            reorder,
            reorder_correlation,
            gap: _,
            rate_bps,
            ecn: _,
        } = self;
        report.at_least(format!("{at}.limit_packets"), *limit_packets, 1);
        report.time(format!("{at}.delay_ns"), *delay_ns, 0);
        report.time(format!("{at}.jitter_ns"), *jitter_ns, 0);
        for (field, share) in [
            ("delay_correlation", delay_correlation),
            ("duplicate", duplicate),
            ("duplicate_correlation", duplicate_correlation),
            ("corrupt", corrupt),
            ("reorder", reorder),
            ("reorder_correlation", reorder_correlation),
        ] {
            report.share(format!("{at}.{field}"), *share);
        }
        loss.check(&format!("{at}.loss"), report);
        if let Some(bps) = rate_bps {
            report.shaper_rate(format!("{at}.rate_bps"), *bps);
        }
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
                || !matches!(self.loss, LossModel::None | LossModel::Every { .. })
                || [self.duplicate, self.corrupt, self.reorder].iter().any(|chance| *chance > 0.0),
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
        let (random, loss_correlation) = match self.loss {
            LossModel::None | LossModel::Gemodel { .. } | LossModel::Every { .. } => (0.0, 0.0),
            LossModel::Random { probability, correlation } => (probability, correlation),
        };
        // With reordering and no gap, tc sets the gap to 1.
        let gap = if self.reorder > 0.0 { self.gap.max(1) } else { self.gap };
        let ticks = |ns: u64| saturated(ns / TICK_NS);
        // struct tc_netem_qopt, then attributes
        let head = [
            ticks(self.delay_ns),
            self.limit_packets,
            share(random),
            gap,
            share(self.duplicate),
            ticks(self.jitter_ns),
        ];
        let mut body = Writer::behind(&words(&head));
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
        if self.jitter_ns > 0
            && let Some(table) = table(self.distribution())
        {
            let entries = table.iter().flat_map(|entry| entry.to_ne_bytes());
            body.bytes(2, &entries.collect::<Vec<u8>>()); // TCA_NETEM_DELAY_DIST
        }
        Some(body.into_bytes())
    }

    fn confirm(&self, options: &[u8]) -> Vec<Confirmation> {
        let ticks = saturated(self.delay_ns / TICK_NS);
        vec![
            Confirmation::new("delay in ticks", word(options, 0), ticks),
            Confirmation::new("limit", word(options, 4), self.limit_packets),
        ]
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
        (delays, harms, order, rest)
            .prop_map(|(delays, harms, order, rest)| Self {
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
    /// What stands behind `loss`; none: no loss.
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

fn no_number(words: &mut Words<'_>, word: &str, expected: &str) -> Result<(), Problem> {
    if !words.number_follows() {
        return Ok(());
    }
    let extra = words.next().unwrap_or_default();
    Err(wrong(format!("{extra:?} behind {word:?}"), expected))
}

fn shape(text: &str) -> Result<DelayDistribution, ParseError> {
    match text {
        "uniform" => Ok(DelayDistribution::Uniform),
        "normal" => Ok(DelayDistribution::Normal),
        "pareto" => Ok(DelayDistribution::Pareto),
        "paretonormal" => Ok(DelayDistribution::Paretonormal),
        _ => Err(unreadable(text, "uniform, normal, pareto or paretonormal")),
    }
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
