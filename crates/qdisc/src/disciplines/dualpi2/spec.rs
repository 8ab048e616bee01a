//! dualpi2 in words, checks and the kernel's form (`q_dualpi2.c` of iproute2 6.18).

use super::{Config, Control, DualPi2, Step};
use crate::contract::Change;
use crate::disciplines::{Buffer, Configuration, Facts, Streams};
use crate::netlink::{micros, word};
use crate::table::{
    Draft, Form, GivenWords, Place, Word, switch, table, text, time, unnamed, whole,
};
use crate::tc::{self, Words, unreadable};
use dragstrip_units::tc::text::parse_time;
use dragstrip_units::{Duration, Problem, Report};

/// The kernel counts microseconds.
const LEAST_NS: u64 = 1_000;
/// Beyond this a weight moves the probability from 0 to 1 within a few microseconds of delay.
const WEIGHT_MAX_HZ: f64 = 1e4;
/// The kernel's.
const STEP_THRESH_NS: u64 = 1_000_000;

// Attributes: TCA_DUALPI2_LIMIT and on.
table! {
    /// Dual-queue coupled AQM for L4S (RFC 9332); in Linux since 6.17, so that no kernel of Debian 12 has it.
    #[derive(Copy)]
    pub struct DualPi2Spec {
        /// Packets that may wait in both queues.
        limit_packets: u32 = 10_000 => whole("limit").at_least(1).attribute(1).confirmed(),
        /// The delay at which the queues settle.
        target_ns: u64 = 15_000_000 => time("target").at_least(LEAST_NS).attribute(3).confirmed(),
        /// Time between updates of the probability.
        tupdate_ns: u64 = 16_000_000 => time("tupdate").at_least(LEAST_NS).attribute(4).confirmed(),
        /// Weight of the distance from the target, Hz.
        alpha_hz: f64 = 0.16 => hertz("alpha").attribute(5).confirmed(),
        /// Weight of the change of the delay, Hz.
        beta_hz: f64 = 3.2 => hertz("beta").attribute(6).confirmed(),
        /// Ratio of the low-latency queue's marking probability to the square root of the classic one's.
        coupling_factor: u32 = 2 => whole("coupling_factor").at_least(1).at_most(255).octet(10),
        /// Longer waits in the low-latency queue are marked.
        step_thresh_ns: u64 = STEP_THRESH_NS => STEP_THRESH,
        /// In its place: more packets left behind in the low-latency queue.
        #[serde(default)]
        step_thresh_packets: Option<u32> = None => unnamed().attribute(7),
        /// Packets that the low-latency queue must hold for the threshold to apply to the next one.
        min_qlen_step_packets: u32 = 0 => whole("min_qlen_step").attribute(9),
        /// Under overload drop from both queues instead of letting them grow.
        drop_on_overload: bool = true =>
            switch(&[("drop_on_overload", true), ("overflow", false)]).octet(11),
        /// Share of the classic queue while both are full, percent.
        classic_protection_percent: u32 = 10 => whole("classic_protection").at_most(100).octet(13),
        /// Packets with ECT(0) belong to the low-latency queue too.
        any_ect: bool = false =>
            switch(&[("l4s_ect", false), ("any_ect", true)])
                .octet(14)
                .encoded(|any| if any { 3 } else { 1 }),
    }
    words {
        "max_rtt" => rtt(&["max_rtt"], || {
            "The largest round-trip time: sets `target`, `tupdate`, `alpha` and `beta` (RFC 9332 appendix A).".into()
        })
        .after("beta_hz"),
        "typical_rtt" => rtt(&["typical_rtt"], || {
            "The usual round-trip time; a sixth of the largest where only that is given.".into()
        })
        .after("max_rtt"),
        "drop_dequeue" => Word::new(&["drop_dequeue"], "", |_, _, _| Ok(()))
            .about(|| "What the simulator does anyway: drop as packets leave.".into())
            .sends(Place::Attribute(12), |_| Some(vec![0]))
            .after("drop_on_overload"),
    }
}

/// `3p` are packets, anything else a time.
const STEP_THRESH: Word<DualPi2Spec> = Word::new(&["step_thresh"], "TIME|PACKETSp", step_thresh)
    .printed(|spec| {
        let step = match spec.step_thresh_packets {
            Some(packets) => format!("{packets}p"),
            None => tc::time(spec.step_thresh_ns),
        };
        Some(format!("step_thresh {step}"))
    })
    .checked(|spec, field, report| report.time(field, spec.step_thresh_ns, 0))
    .sends(Place::Attribute(8), |spec| match spec.step_thresh_packets {
        Some(_) => None,
        None => Some(micros(spec.step_thresh_ns).to_ne_bytes().to_vec()),
    });

fn step_thresh(
    draft: &mut Draft<'_, DualPi2Spec>,
    words: &mut Words<'_>,
    word: &str,
) -> Result<(), Problem> {
    let spec = &mut draft.spec;
    (spec.step_thresh_ns, spec.step_thresh_packets) = words.value(word, |text| {
        if let Some(packets) = text.strip_suffix('p').and_then(|number| number.parse().ok()) {
            return Ok((STEP_THRESH_NS, Some(packets)));
        }
        let span = parse_time(text)
            .map_err(|_| unreadable(text, "a time such as 1ms, or packets such as 3p"))?;
        Ok((span.as_nanos(), None))
    })?;
    Ok(())
}

/// A weight in Hz, which the kernel is told in 1/256 Hz.
const fn hertz(word: &'static str) -> Form<DualPi2Spec, f64> {
    fn read(words: &mut Words<'_>, word: &str) -> Result<f64, Problem> {
        words.value(word, |text| {
            let hz = text.parse().ok().filter(|hz: &f64| hz.is_finite() && *hz >= 0.0);
            hz.ok_or_else(|| unreadable(text, "a plain number, in Hz"))
        })
    }
    text(word, "HZ", read, |hz| hz.to_string())
        .within("1/256 to 10000", weight_check)
        .encoded(|hz| u64::from(weight(hz)))
}

fn weight_check(report: &mut Report, field: String, hz: f64) {
    // 1/256 Hz is the kernel's least.
    if !(1.0 / 256.0..=WEIGHT_MAX_HZ).contains(&hz) {
        report.add(field, hz, format!("from 1/256 (0.00390625) to {WEIGHT_MAX_HZ}"));
    }
}

/// A weight in the kernel's 1/256 Hz.
fn weight(hz: f64) -> u32 {
    libm::rint(hz * 256.0) as u32
}

/// A time that is kept until all words are read.
const fn rtt(listed: &'static [&'static str], about: fn() -> String) -> Word<DualPi2Spec> {
    Word::new(listed, "TIME", |draft, words, word| {
        let time = words.time(word)?;
        draft.given.keep(word, time);
        Ok(())
    })
    .about(about)
}

impl DualPi2Spec {
    /// Derives tc's parameters from the largest and the usual round-trip time (RFC 9332 appendix A).
    fn set_rtts(&mut self, most_ns: u64, typical_ns: u64) {
        self.target_ns = typical_ns;
        self.tupdate_ns = typical_ns.min(most_ns / 3);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let most = seconds(most_ns);
        self.alpha_hz = 0.1 * seconds(self.tupdate_ns) / (most * most);
        self.beta_hz = 0.3 / most;
    }
}

impl Configuration for DualPi2Spec {
    type Model = Box<DualPi2>;

    const KIND: &'static str = "dualpi2";
    const SINCE: Option<(u32, u32)> = Some((6, 17));
    const AQM: bool = true;
    const PROBABILISTIC: bool = true;
    const MODULES: &'static [&'static str] = &["sch_dualpi2"];
    const EXAMPLES: &'static [&'static str] = &[
        "dualpi2",
        "dualpi2 limit 500 target 5ms tupdate 8ms alpha 0.5 beta 4 coupling_factor 3 step_thresh 5p min_qlen_step 2 overflow any_ect",
        "dualpi2 max_rtt 60ms typical_rtt 12ms drop_on_overload drop_dequeue classic_protection 50 l4s_ect",
    ];
    const EXTREMES: &'static [&'static str] =
        &["dualpi2 limit 4294967295 target 4000s tupdate 1us alpha 10000 beta 10000"];
    const UNMODELLED: &'static [&'static str] =
        &["memlimit", "drop_enqueue", "split_gso", "no_split_gso"];
    const NESTED: bool = true;

    /// `max_rtt` and `typical_rtt` set target, tupdate, alpha and beta, wherever they stand.
    fn complete(mut self, given: &GivenWords<'_>) -> Result<Self, Problem> {
        match (given.value("max_rtt"), given.value("typical_rtt")) {
            (Some(most), typical) => self.set_rtts(most, typical.unwrap_or(most / 6)),
            (None, Some(typical)) => self.set_rtts(typical.saturating_mul(6), typical),
            (None, None) => {}
        }
        Ok(self)
    }

    /// Packets of a flow that differ in ECN are in two queues.
    fn facts(&self) -> Facts {
        Facts {
            draws: true,
            marks: true,
            reorders: true,
            ..Facts::queue(Buffer::packets(self.limit_packets))
        }
    }

    fn build(&self, streams: &Streams<'_>) -> Box<DualPi2> {
        let span = |ns| Duration::from_micros(u64::from(micros(ns)));
        let config = Config {
            limit: self.limit_packets,
            control: Control {
                target: span(self.target_ns),
                alpha: weight(self.alpha_hz),
                beta: weight(self.beta_hz),
            },
            tupdate: span(self.tupdate_ns),
            coupling: self.coupling_factor,
            step: self
                .step_thresh_packets
                .map_or_else(|| Step::Time(span(self.step_thresh_ns)), Step::Packets),
            min_qlen_step: self.min_qlen_step_packets,
            drop_on_overload: self.drop_on_overload,
            classic_protection: self.classic_protection_percent,
            any_ect: self.any_ect,
        };
        Box::new(DualPi2::new(config, streams.named(Self::KIND)))
    }

    fn changed(&self, change: Change) -> Option<Self> {
        let Change::LimitPackets(limit_packets) = change else { return None };
        Some(Self { limit_packets, ..*self })
    }

    /// struct tc_dualpi2_xstats: prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark
    fn marked(&self, statistics: &[u8]) -> u64 {
        u64::from(word(statistics, 24).unwrap_or_default())
    }

    #[cfg(any(test, feature = "arbitrary"))]
    fn arbitrary(scope: crate::arbitrary::Scope) -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let hz = || (1_u32..2_000).prop_map(|hundredths| f64::from(hundredths) / 100.0);
        let steps = (scope.time_ns(5), prop::option::weighted(0.3, 0_u32..20), 0_u32..4);
        let switches = any::<(bool, bool)>();
        let shares = (1_u32..5, 0_u32..=100);
        (scope.packets(), scope.time_ns(30), scope.time_ns(60), hz(), hz(), steps, shares, switches)
            .prop_map(
                |(limit_packets, target_ns, tupdate_ns, alpha_hz, beta_hz, steps, shares, on)| {
                    Self {
                        limit_packets,
                        target_ns,
                        tupdate_ns,
                        alpha_hz,
                        beta_hz,
                        coupling_factor: shares.0,
                        step_thresh_ns: steps.0,
                        step_thresh_packets: steps.1,
                        min_qlen_step_packets: steps.2,
                        drop_on_overload: on.0,
                        classic_protection_percent: shares.1,
                        any_ect: on.1,
                    }
                },
            )
            .boxed()
    }
}
