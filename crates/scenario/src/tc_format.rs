//! The way back: a queue discipline in tc(8)'s words, for people and for kernels.

use crate::types::{DelayDistribution, LossModel, NetemSpec, QdiscSpec};
use dragstrip_units::{
    ByteCount, Duration, Rate, format_percent, format_rate, format_size, format_time,
};

/// `spec` in tc's words; [`parse_qdisc`](crate::parse_qdisc) gives the same specification back
/// when it is valid. A class of htb names its discipline behind `leaf`.
#[must_use]
pub fn format_qdisc(spec: &QdiscSpec) -> String {
    match spec {
        QdiscSpec::Noqueue => "noqueue".to_owned(),
        QdiscSpec::Bfifo { limit_bytes } => format!("bfifo limit {}", size(*limit_bytes)),
        QdiscSpec::Pfifo { limit_packets } => format!("pfifo limit {limit_packets}"),
        QdiscSpec::Tbf { rate_bps, burst_bytes, limit_bytes, peakrate_bps, mtu_bytes } => {
            Text::new("tbf")
                .pair("rate", rate(*rate_bps))
                .pair("burst", size(*burst_bytes))
                .pair("limit", size(*limit_bytes))
                .optional("peakrate", peakrate_bps.map(rate))
                .optional("mtu", mtu_bytes.map(size))
                .0
        }
        QdiscSpec::Htb {
            rate_bps,
            ceil_bps,
            burst_bytes,
            cburst_bytes,
            overhead_bytes,
            mpu_bytes,
            linklayer_atm,
            leaf,
        } => {
            Text::new("htb")
                .pair("rate", rate(*rate_bps))
                .optional("ceil", ceil_bps.map(rate))
                .pair("burst", size(*burst_bytes))
                .pair("cburst", size(*cburst_bytes))
                .optional("overhead", nonzero(*overhead_bytes != 0, overhead_bytes))
                .optional("mpu", nonzero(*mpu_bytes != 0, mpu_bytes))
                .optional("linklayer", linklayer_atm.then(|| "atm".to_owned()))
                .pair("leaf", format_qdisc(leaf))
                .0
        }
        QdiscSpec::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            Text::new("codel")
                .pair("limit", limit_packets)
                .pair("target", time(*target_ns))
                .pair("interval", time(*interval_ns))
                .word(if *ecn { "ecn" } else { "noecn" })
                .0
        }
        QdiscSpec::FqCodel {
            limit_packets,
            memory_limit_bytes,
            flows,
            target_ns,
            interval_ns,
            quantum_bytes,
            drop_batch_packets,
            ecn,
        } => {
            Text::new("fq_codel")
                .pair("limit", limit_packets)
                .pair("flows", flows)
                .pair("quantum", quantum_bytes)
                .pair("target", time(*target_ns))
                .pair("interval", time(*interval_ns))
                .pair("memory_limit", size(*memory_limit_bytes))
                .pair("drop_batch", drop_batch_packets)
                .word(if *ecn { "ecn" } else { "noecn" })
                .0
        }
        QdiscSpec::Sfq {
            limit_packets,
            flows,
            divisor,
            depth_packets,
            quantum_bytes,
            perturb_ns,
        } => {
            Text::new("sfq")
                .pair("limit", limit_packets)
                .pair("flows", flows)
                .pair("divisor", divisor)
                .pair("depth", depth_packets)
                .pair("quantum", quantum_bytes)
                .optional("perturb", nonzero(*perturb_ns != 0, perturb_ns / 1_000_000_000))
                .0
        }
        QdiscSpec::Netem(spec) => format_netem(spec),
    }
}

/// `spec` in tc's words, `netem` in front.
#[must_use]
pub fn format_netem(spec: &NetemSpec) -> String {
    let NetemSpec {
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
    } = spec;
    // A correlation stands behind its value, even where that is 0.
    let correlated = *delay_correlation != 0.0;
    let jitter = nonzero(*jitter_ns != 0 || correlated, time(*jitter_ns));
    let duplicated = *duplicate != 0.0 || *duplicate_correlation != 0.0;
    let reordered = *reorder != 0.0 || *reorder_correlation != 0.0;
    let shape = match distribution {
        DelayDistribution::Uniform => None,
        DelayDistribution::Normal => Some("normal"),
        DelayDistribution::Pareto => Some("pareto"),
        DelayDistribution::Paretonormal => Some("paretonormal"),
    };
    Text::new("netem")
        .pair("limit", limit_packets)
        .optional("delay", nonzero(*delay_ns != 0 || jitter.is_some(), time(*delay_ns)))
        .word(jitter.as_deref().unwrap_or_default())
        .word(&share_unless_zero(*delay_correlation))
        .optional("distribution", shape)
        .optional("loss", loss_words(loss))
        .word(if *ecn { "ecn" } else { "" })
        .optional("duplicate", nonzero(duplicated, format_percent(*duplicate)))
        .word(&share_unless_zero(*duplicate_correlation))
        .optional("corrupt", nonzero(*corrupt != 0.0, format_percent(*corrupt)))
        .optional("reorder", nonzero(reordered, format_percent(*reorder)))
        .word(&share_unless_zero(*reorder_correlation))
        .optional("gap", nonzero(*gap != 0, gap))
        .optional("rate", rate_bps.map(rate))
        .0
}

fn loss_words(loss: &LossModel) -> Option<String> {
    match loss {
        LossModel::None => None,
        LossModel::Random { probability, correlation } => {
            Some(Text(format_percent(*probability)).word(&share_unless_zero(*correlation)).0)
        }
        LossModel::Gemodel { p, r, one_minus_h, one_minus_k } => {
            let shares = [p, r, one_minus_h, one_minus_k].map(|share| format_percent(*share));
            Some(format!("gemodel {}", shares.join(" ")))
        }
    }
}

/// Words with a blank between them.
struct Text(String);

impl Text {
    fn new(kind: &str) -> Self {
        Self(kind.to_owned())
    }

    fn word(mut self, word: &str) -> Self {
        if !word.is_empty() {
            self.0.push(' ');
            self.0.push_str(word);
        }
        self
    }

    fn pair(self, word: &str, value: impl ToString) -> Self {
        self.word(word).word(&value.to_string())
    }

    fn optional(self, word: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.pair(word, value),
            None => self,
        }
    }
}

fn nonzero(is: bool, value: impl ToString) -> Option<String> {
    is.then(|| value.to_string())
}

fn share_unless_zero(share: f64) -> String {
    if share == 0.0 { String::new() } else { format_percent(share) }
}

fn rate(bps: u64) -> String {
    Rate::from_bits_per_second(bps).map_or_else(|| "0bit".to_owned(), format_rate)
}

fn size(bytes: u64) -> String {
    format_size(ByteCount::new(bytes))
}

fn time(ns: u64) -> String {
    format_time(Duration::from_nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::format_qdisc;
    use crate::tc_text::parse_qdisc;

    /// Texts in their shortest form: reading and writing gives a text that reads the same.
    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "noqueue",
            "bfifo limit 0.1mb",
            "pfifo limit 7",
            "tbf rate 1mbit burst 1600 latency 50ms peakrate 2mbit mtu 1514",
            "htb rate 1mbit ceil 2mbit overhead -4 mpu 64 linklayer atm leaf codel ecn",
            "htb rate 1mbit leaf netem delay 10ms",
            "codel target 10ms",
            "fq_codel noecn memory_limit 1mb",
            "sfq perturb 10",
            "netem",
            "netem delay 100ms 75ms 25% distribution pareto loss gemodel 1% 10% 70% 0.1%",
            "netem delay 0ms 0ms 5% duplicate 0% 6% reorder 0% 7%",
            "netem delay 1ms reorder 25% 50% gap 5 duplicate 1% 2% corrupt 3% loss 3.3% 1% ecn rate 9kbit",
        ] {
            let spec = parse_qdisc(text).expect(text);
            let written = format_qdisc(&spec);
            assert_eq!(parse_qdisc(&written), Ok(spec), "{text} → {written}");
        }
    }

    #[test]
    fn people_can_read_it() {
        let spec = parse_qdisc("htb rate 1mbit leaf bfifo limit 200kb").unwrap();
        assert_eq!(
            format_qdisc(&spec),
            "htb rate 1mbit burst 1600b cburst 1600b leaf bfifo limit 200kb"
        );
    }
}
