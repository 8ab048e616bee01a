//! Queue disciplines in tc(8)'s own words, with the defaults that tc and the kernel fill in.
//!
//! ```text
//! bfifo limit 200kb
//! tbf rate 1mbit burst 1600 latency 50ms
//! htb rate 1mbit leaf codel limit 100 target 10ms ecn
//! netem delay 100ms 75ms 25% distribution normal loss 5% limit 10000
//! ```
//!
//! `leaf` is ours: tc(8) gives a class its own discipline in a second command. Words that exist in
//! tc and that the simulator does not model are refused by name.
//!
//! Source: iproute2 6.1 `tc/q_*.c` for grammar and tc's defaults, Linux 6.1 `net/sched/sch_*.c`
//! for the kernel's, both as of the reference sheet of the disciplines.

use crate::nearest::suggest;
use crate::problem::Problem;
use crate::types::{DelayDistribution, LossModel, NetemSpec, QdiscSpec};
use dragstrip_units::tc::text::{parse_percent, parse_rate, parse_size, parse_time};
use dragstrip_units::{ParseError, Rate};
use std::str::FromStr;

/// Packets in a queue of Ethernet's default length (`txqueuelen`).
const TXQUEUELEN: u32 = 1000;
/// Bytes of a full Ethernet frame without FCS (`psched_mtu` at an MTU of 1500).
const FRAME: u32 = 1514;
/// The MTU that tc's htb assumes for a class.
const HTB_MTU: u64 = 1600;
/// What tc reads as HZ from /proc/net/psched on a kernel with high-resolution timers.
const HZ: u64 = 1_000_000_000;

const KINDS: &[&str] =
    &["noqueue", "bfifo", "pfifo", "tbf", "htb", "codel", "fq_codel", "sfq", "netem"];

/// The queue discipline that `text` describes.
///
/// # Errors
/// An unknown word, a missing or unreadable value, a missing mandatory word; the problem's `value`
/// is the word, its `field` is empty.
pub fn parse_qdisc(text: &str) -> Result<QdiscSpec, Problem> {
    let mut words = Words::new(text);
    qdisc(&mut words)
}

/// What `text` says about netem, with or without the word `netem` in front.
///
/// # Errors
/// As [`parse_qdisc`].
pub fn parse_netem(text: &str) -> Result<NetemSpec, Problem> {
    let mut words = Words::new(text);
    if words.peek() == Some("netem") {
        words.next();
    }
    netem(&mut words)
}

fn qdisc(words: &mut Words) -> Result<QdiscSpec, Problem> {
    let list = KINDS.join(", ");
    let Some(kind) = words.next() else {
        return Err(wrong("nothing", format!("a queue discipline: {list}")));
    };
    match kind {
        "noqueue" => words.end(QdiscSpec::Noqueue),
        "bfifo" => bfifo(words),
        "pfifo" => pfifo(words),
        "tbf" => tbf(words),
        "htb" => htb(words),
        "codel" => codel(words),
        "fq_codel" => fq_codel(words),
        "sfq" => sfq(words),
        "netem" => netem(words).map(|spec| QdiscSpec::Netem(Box::new(spec))),
        _ => Err(wrong(
            format!("{kind:?}"),
            suggest(kind, KINDS.iter().copied(), &format!("a queue discipline: {list}")),
        )),
    }
}

fn wrong(value: impl std::fmt::Display, expected: impl Into<String>) -> Problem {
    Problem::new("", value, expected)
}

/// The words of a text, and how a value behind one of them is read.
struct Words<'a> {
    rest: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.split_whitespace().peekable() }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.rest.next()
    }

    fn peek(&mut self) -> Option<&'a str> {
        self.rest.peek().copied()
    }

    /// `NEXT_IS_NUMBER` of iproute2: an optional number follows.
    fn number_follows(&mut self) -> bool {
        self.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    }

    /// The value of `word`, read by `parse`.
    fn value<T>(
        &mut self,
        word: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, Problem> {
        let text = self.next().ok_or_else(|| {
            wrong(format!("{word:?} at the end"), format!("a value after {word:?}"))
        })?;
        parse(text).map_err(|error| wrong(format!("\"{word} {text}\""), error.expected))
    }

    fn rate(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_rate).map(Rate::bits_per_second)
    }

    fn size(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_size).map(|size| size.get())
    }

    /// tc reads a number of packets as it reads a size: `1k` is 1024.
    fn packets(&mut self, word: &str) -> Result<u32, Problem> {
        self.value(word, |text| {
            let fits = parse_size(text).ok().and_then(|size| u32::try_from(size.get()).ok());
            fits.ok_or_else(|| unreadable(text, "a number of packets"))
        })
    }

    fn time(&mut self, word: &str) -> Result<u64, Problem> {
        self.value(word, parse_time).map(|span| span.as_nanos())
    }

    fn share(&mut self, word: &str) -> Result<f64, Problem> {
        self.value(word, parse_percent)
    }

    /// A share if a number follows, else `default`.
    fn share_or(&mut self, word: &str, default: f64) -> Result<f64, Problem> {
        if self.number_follows() { self.share(word) } else { Ok(default) }
    }

    fn whole<T: FromStr>(&mut self, word: &str) -> Result<T, Problem> {
        self.value(word, |text| {
            text.parse().map_err(|_| unreadable(text, "a whole number without a unit"))
        })
    }

    /// Nothing may follow `spec`.
    fn end<T>(&mut self, spec: T) -> Result<T, Problem> {
        match self.next() {
            None => Ok(spec),
            Some(word) => Err(unknown(word, &[], &[])),
        }
    }
}

fn unreadable(text: &str, expected: &str) -> ParseError {
    ParseError { value: text.to_owned(), expected: expected.to_owned() }
}

/// `word` is none of `accepted`; those of `unmodelled` exist in tc.
fn unknown(word: &str, accepted: &[&str], unmodelled: &[&str]) -> Problem {
    let list = accepted.join(", ");
    let expected = if unmodelled.contains(&word) {
        format!("none of it: the simulator does not model {word:?}; accepted here: {list}")
    } else if accepted.is_empty() {
        "nothing more".to_owned()
    } else {
        suggest(word, accepted.iter().copied(), &format!("one of: {list}"))
    };
    wrong(format!("{word:?}"), expected)
}

fn missing(word: &str, of: &str) -> Problem {
    wrong(format!("no {word:?}"), format!("{of} to have one, such as \"{word} 1mbit\""))
}

/// `q_fifo.c`; kernel default `txqueuelen` full frames.
fn bfifo(words: &mut Words) -> Result<QdiscSpec, Problem> {
    let mut limit_bytes = u64::from(TXQUEUELEN) * u64::from(FRAME);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit_bytes = words.size(word)?,
            _ => return Err(unknown(word, &["limit"], &[])),
        }
    }
    Ok(QdiscSpec::Bfifo { limit_bytes })
}

/// `q_fifo.c`; kernel default `txqueuelen` packets.
fn pfifo(words: &mut Words) -> Result<QdiscSpec, Problem> {
    let mut limit_packets = TXQUEUELEN;
    while let Some(word) = words.next() {
        match word {
            "limit" => limit_packets = words.packets(word)?,
            _ => return Err(unknown(word, &["limit"], &[])),
        }
    }
    Ok(QdiscSpec::Pfifo { limit_packets })
}

/// `q_tbf.c`: rate and burst are mandatory, and either a limit or the latency it is computed from.
fn tbf(words: &mut Words) -> Result<QdiscSpec, Problem> {
    const ACCEPTED: &[&str] = &["rate", "burst", "limit", "latency", "peakrate", "mtu"];
    const UNMODELLED: &[&str] = &["mpu", "overhead", "linklayer"];
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
            _ => return Err(unknown(word, ACCEPTED, UNMODELLED)),
        }
    }
    let rate_bps = rate.ok_or_else(|| missing("rate", "tbf"))?;
    let burst_bytes =
        burst.ok_or_else(|| wrong("no \"burst\"", "tbf to have one, such as \"burst 1600\""))?;
    if peakrate_bps.is_some() != mtu_bytes.is_some() {
        return Err(wrong("one of \"peakrate\" and \"mtu\"", "both or neither"));
    }
    let limit_bytes = match (limit, latency) {
        (Some(limit), None) => limit,
        (None, Some(latency)) => {
            let main = tbf_limit(rate_bps, latency, burst_bytes);
            match (peakrate_bps, mtu_bytes) {
                (Some(peak), Some(mtu)) => main.min(tbf_limit(peak, latency, mtu)),
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
    Ok(QdiscSpec::Tbf { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes })
}

/// What waits for `latency` at `rate_bps`, plus a bucket.
fn tbf_limit(rate_bps: u64, latency_ns: u64, bucket: u64) -> u64 {
    let waiting = u128::from(rate_bps) * u128::from(latency_ns) / 8_000_000_000;
    u64::try_from(waiting).unwrap_or(u64::MAX).saturating_add(bucket)
}

/// The bucket tc's htb gives to a rate: what passes in one tick, plus an MTU. With high-resolution
/// timers a tick is a nanosecond, so that below 8 Gbit/s only the MTU is left.
#[must_use]
pub fn htb_default_burst_bytes(rate_bps: u64) -> u64 {
    rate_bps / 8 / HZ + HTB_MTU
}

/// `q_htb.c`, one class; the kernel's default leaf is a pfifo of `txqueuelen` packets.
fn htb(words: &mut Words) -> Result<QdiscSpec, Problem> {
    const ACCEPTED: &[&str] =
        &["rate", "ceil", "burst", "cburst", "overhead", "mpu", "linklayer", "leaf"];
    const UNMODELLED: &[&str] = &["prio", "quantum", "mtu", "default", "r2q", "direct_qlen"];
    let (mut rate, mut ceil_bps, mut burst, mut cburst) = (None, None, None, None);
    let (mut overhead_bytes, mut mpu_bytes, mut linklayer_atm) = (0, 0, false);
    let mut leaf = QdiscSpec::Pfifo { limit_packets: TXQUEUELEN };
    while let Some(word) = words.next() {
        match word {
            "rate" => rate = Some(words.rate(word)?),
            "ceil" => ceil_bps = Some(words.rate(word)?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.size(word)?),
            "cburst" | "cbuffer" | "cmaxburst" => cburst = Some(words.size(word)?),
            "overhead" => overhead_bytes = words.whole(word)?,
            "mpu" => mpu_bytes = words.whole(word)?,
            "linklayer" => linklayer_atm = words.value(word, linklayer)?,
            "leaf" | ":" => leaf = qdisc(words)?,
            _ => return Err(unknown(word, ACCEPTED, UNMODELLED)),
        }
    }
    let rate_bps = rate.ok_or_else(|| missing("rate", "htb"))?;
    let burst_bytes = burst.unwrap_or_else(|| htb_default_burst_bytes(rate_bps));
    let cburst_bytes =
        cburst.unwrap_or_else(|| htb_default_burst_bytes(ceil_bps.unwrap_or(rate_bps)));
    Ok(QdiscSpec::Htb {
        rate_bps,
        ceil_bps,
        burst_bytes,
        cburst_bytes,
        overhead_bytes,
        mpu_bytes,
        linklayer_atm,
        leaf: Box::new(leaf),
    })
}

fn linklayer(text: &str) -> Result<bool, ParseError> {
    match text {
        "atm" | "adsl" => Ok(true),
        "ethernet" => Ok(false),
        _ => Err(unreadable(text, "atm, adsl or ethernet")),
    }
}

/// `q_codel.c`.
fn codel(words: &mut Words) -> Result<QdiscSpec, Problem> {
    const ACCEPTED: &[&str] = &["limit", "target", "interval", "ecn", "noecn"];
    let (mut limit_packets, mut ecn) = (1000, false);
    let (mut target_ns, mut interval_ns) = (CODEL_TARGET_NS, CODEL_INTERVAL_NS);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit_packets = words.whole(word)?,
            "target" => target_ns = words.time(word)?,
            "interval" => interval_ns = words.time(word)?,
            "ecn" => ecn = true,
            "noecn" => ecn = false,
            _ => return Err(unknown(word, ACCEPTED, &["ce_threshold"])),
        }
    }
    Ok(QdiscSpec::Codel { limit_packets, target_ns, interval_ns, ecn })
}

/// RFC 8289 §4.3.
const CODEL_TARGET_NS: u64 = 5_000_000;
/// RFC 8289 §4.3.
const CODEL_INTERVAL_NS: u64 = 100_000_000;

/// `q_fq_codel.c`; ECN is on unless it is switched off (`fq_codel_init`).
fn fq_codel(words: &mut Words) -> Result<QdiscSpec, Problem> {
    const ACCEPTED: &[&str] = &[
        "limit",
        "memory_limit",
        "flows",
        "target",
        "interval",
        "quantum",
        "drop_batch",
        "ecn",
        "noecn",
    ];
    const UNMODELLED: &[&str] = &["ce_threshold", "ce_threshold_selector"];
    let (mut limit_packets, mut memory_limit_bytes, mut flows) = (10_240, 32 << 20, 1024);
    let (mut target_ns, mut interval_ns) = (CODEL_TARGET_NS, CODEL_INTERVAL_NS);
    let (mut quantum_bytes, mut drop_batch_packets, mut ecn) = (FRAME, 64, true);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit_packets = words.whole(word)?,
            "memory_limit" => memory_limit_bytes = words.size(word)?,
            "flows" => flows = words.whole(word)?,
            "target" => target_ns = words.time(word)?,
            "interval" => interval_ns = words.time(word)?,
            "quantum" => quantum_bytes = words.whole(word)?,
            "drop_batch" => drop_batch_packets = words.whole(word)?,
            "ecn" => ecn = true,
            "noecn" => ecn = false,
            _ => return Err(unknown(word, ACCEPTED, UNMODELLED)),
        }
    }
    Ok(QdiscSpec::FqCodel {
        limit_packets,
        memory_limit_bytes,
        flows,
        target_ns,
        interval_ns,
        quantum_bytes,
        drop_batch_packets,
        ecn,
    })
}

/// `q_sfq.c`; `perturb` is in whole seconds, as in tc.
fn sfq(words: &mut Words) -> Result<QdiscSpec, Problem> {
    const ACCEPTED: &[&str] = &["limit", "flows", "divisor", "depth", "quantum", "perturb"];
    const UNMODELLED: &[&str] = &[
        "headdrop",
        "redflowlimit",
        "min",
        "max",
        "avpkt",
        "burst",
        "probability",
        "ecn",
        "harddrop",
    ];
    let (mut limit_packets, mut flows, mut divisor, mut depth_packets) = (127, 128, 1024, 127);
    let (mut quantum_bytes, mut perturb_s) = (FRAME, 0_u32);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit_packets = words.whole(word)?,
            "flows" => flows = words.whole(word)?,
            "divisor" => divisor = words.whole(word)?,
            "depth" => depth_packets = words.whole(word)?,
            "quantum" => quantum_bytes = words.packets(word)?,
            "perturb" => perturb_s = words.whole(word)?,
            _ => return Err(unknown(word, ACCEPTED, UNMODELLED)),
        }
    }
    Ok(QdiscSpec::Sfq {
        limit_packets,
        flows,
        divisor,
        depth_packets,
        quantum_bytes,
        perturb_ns: u64::from(perturb_s) * 1_000_000_000,
    })
}

const NETEM_WORDS: &[&str] = &[
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

/// `q_netem.c`.
fn netem(words: &mut Words) -> Result<NetemSpec, Problem> {
    let mut spec = NetemSpec::default();
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
                no_number(
                    words,
                    "corrupt",
                    "no correlation: the simulator corrupts packets independently",
                )?;
            }
            "reorder" => {
                spec.reorder = words.share(word)?;
                spec.reorder_correlation = words.share_or(word, 0.0)?;
            }
            "gap" => spec.gap = words.whole(word)?,
            "rate" => {
                spec.rate_bps = Some(words.rate(word)?);
                no_number(
                    words,
                    "rate",
                    "no overhead or cell size: the simulator does not model them",
                )?;
            }
            _ => return Err(unknown(word, NETEM_WORDS, &["slot", "seed"])),
        }
    }
    if spec.ecn && !has_loss {
        return Err(wrong(
            "\"ecn\" without \"loss\"",
            "a loss that can become a mark: \"loss 1% ecn\"",
        ));
    }
    netem_consistent(spec, distribution)
}

/// tc's own checks once all words are read.
fn netem_consistent(
    mut spec: NetemSpec,
    distribution: Option<DelayDistribution>,
) -> Result<NetemSpec, Problem> {
    if let Some(distribution) = distribution {
        if spec.delay_ns == 0 || spec.jitter_ns == 0 {
            return Err(wrong(
                "\"distribution\" alone",
                "delay and jitter too: \"delay 100ms 10ms\"",
            ));
        }
        spec.distribution = distribution;
    }
    if spec.reorder > 0.0 {
        if spec.delay_ns == 0 {
            return Err(wrong(
                "\"reorder\" without \"delay\"",
                "a delay that packets can overtake",
            ));
        }
        if spec.gap == 0 {
            spec.gap = 1;
        }
    } else if spec.gap > 0 {
        return Err(wrong(
            "\"gap\" without \"reorder\"",
            "the probability too: \"reorder 25% gap 5\"",
        ));
    }
    Ok(spec)
}

fn no_number(words: &mut Words, word: &str, expected: &str) -> Result<(), Problem> {
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

/// `loss P [CORR]`, `loss random P [CORR]` or `loss gemodel P [R [1-H [1-K]]]`.
fn loss(words: &mut Words, word: &str) -> Result<LossModel, Problem> {
    const MODELS: &[&str] = &["random", "gemodel"];
    match words.peek() {
        Some("gemodel") => {
            words.next();
            let p = words.share("gemodel")?;
            let r = words.share_or("gemodel", 1.0 - p)?;
            let one_minus_h = words.share_or("gemodel", 1.0)?;
            let one_minus_k = words.share_or("gemodel", 0.0)?;
            return Ok(LossModel::Gemodel { p, r, one_minus_h, one_minus_k });
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

#[cfg(test)]
mod tests;
