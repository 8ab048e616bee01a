//! What tc accepts, what it fills in, and what is refused.

use super::*;

#[track_caller]
fn ok(text: &str) -> QdiscSpec {
    parse_qdisc(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

#[test]
fn fifos_with_and_without_a_limit() {
    assert_eq!(ok("bfifo limit 200kb"), QdiscSpec::Bfifo { limit_bytes: 204_800 });
    assert_eq!(ok("bfifo limit 0.1MB"), QdiscSpec::Bfifo { limit_bytes: 104_857 });
    assert_eq!(ok("bfifo limit 30000"), QdiscSpec::Bfifo { limit_bytes: 30_000 });
    assert_eq!(ok("bfifo"), QdiscSpec::Bfifo { limit_bytes: 1_514_000 });
    assert_eq!(ok("pfifo limit 100"), QdiscSpec::Pfifo { limit_packets: 100 });
    assert_eq!(ok("pfifo"), QdiscSpec::Pfifo { limit_packets: 1000 });
    assert_eq!(ok("noqueue"), QdiscSpec::Noqueue);
}

#[test]
fn tbf_computes_its_limit_from_a_latency() {
    let tbf = |limit_bytes| QdiscSpec::Tbf {
        rate_bps: 1_000_000,
        burst_bytes: 1600,
        limit_bytes,
        peakrate_bps: None,
        mtu_bytes: None,
    };
    assert_eq!(ok("tbf rate 1mbit burst 1600 latency 50ms"), tbf(7850));
    assert_eq!(ok("tbf rate 1mbit burst 1600 limit 10kb"), tbf(10_240));
    let QdiscSpec::Tbf { limit_bytes, .. } =
        ok("tbf rate 1mbit burst 1600 latency 50ms peakrate 2mbit mtu 1514")
    else {
        panic!("a tbf")
    };
    assert_eq!(limit_bytes, 7850, "min(7850, 12500 + 1514)");
}

#[test]
fn htb_gets_the_bursts_that_tc_computes() {
    let QdiscSpec::Htb { burst_bytes, cburst_bytes, ceil_bps, leaf, .. } = ok("htb rate 1mbit")
    else {
        panic!("an htb")
    };
    assert_eq!((burst_bytes, cburst_bytes, ceil_bps), (1600, 1600, None));
    assert_eq!(*leaf, QdiscSpec::Pfifo { limit_packets: 1000 });
    assert_eq!(htb_default_burst_bytes(10_000_000_000), 1601);
}

#[test]
fn htb_takes_a_leaf_and_everything_else_tc_knows_of_a_class() {
    let text = "htb rate 1mbit ceil 2mbit burst 15k cburst 16k overhead -4 mpu 64 linklayer atm \
                leaf bfifo limit 0.1MB";
    assert_eq!(
        ok(text),
        QdiscSpec::Htb {
            rate_bps: 1_000_000,
            ceil_bps: Some(2_000_000),
            burst_bytes: 15_360,
            cburst_bytes: 16_384,
            overhead_bytes: -4,
            mpu_bytes: 64,
            linklayer_atm: true,
            leaf: Box::new(QdiscSpec::Bfifo { limit_bytes: 104_857 }),
        }
    );
}

#[test]
fn codel_and_fq_codel_have_the_kernels_defaults() {
    assert_eq!(
        ok("codel limit 100 target 10ms interval 100ms ecn"),
        QdiscSpec::Codel {
            limit_packets: 100,
            target_ns: 10_000_000,
            interval_ns: 100_000_000,
            ecn: true
        }
    );
    assert_eq!(
        ok("codel"),
        QdiscSpec::Codel {
            limit_packets: 1000,
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            ecn: false
        }
    );
    let fq_codel = |ecn| QdiscSpec::FqCodel {
        limit_packets: 10_240,
        memory_limit_bytes: 33_554_432,
        flows: 1024,
        target_ns: 5_000_000,
        interval_ns: 100_000_000,
        quantum_bytes: 1514,
        drop_batch_packets: 64,
        ecn,
    };
    assert_eq!(ok("fq_codel"), fq_codel(true));
    assert_eq!(ok("fq_codel noecn"), fq_codel(false));
}

#[test]
fn sfq_perturbs_in_whole_seconds() {
    assert_eq!(
        ok("sfq perturb 10"),
        QdiscSpec::Sfq {
            limit_packets: 127,
            flows: 128,
            divisor: 1024,
            depth_packets: 127,
            quantum_bytes: 1514,
            perturb_ns: 10_000_000_000,
        }
    );
    assert!(parse_qdisc("sfq perturb 10s").is_err());
}

#[test]
fn netem_delays() {
    let spec = parse_netem("netem delay 100ms 75ms 25% distribution normal limit 10k").unwrap();
    assert_eq!(
        spec,
        NetemSpec {
            limit_packets: 10_240,
            delay_ns: 100_000_000,
            jitter_ns: 75_000_000,
            delay_correlation: 0.25,
            distribution: DelayDistribution::Normal,
            ..NetemSpec::default()
        }
    );
    assert_eq!(parse_netem("").unwrap(), NetemSpec::default());
}

#[test]
fn netem_loses_in_three_ways() {
    let loss = |text| parse_netem(text).unwrap().loss;
    let random = |probability, correlation| LossModel::Random { probability, correlation };
    assert_eq!(loss("loss 5%"), random(0.05, 0.0));
    assert_eq!(loss("loss 5% 25%"), random(0.05, 0.25));
    assert_eq!(loss("loss random 1"), random(0.01, 0.0));
    assert_eq!(loss("loss 0%"), LossModel::None);
    assert_eq!(
        loss("loss gemodel 1%"),
        LossModel::Gemodel { p: 0.01, r: 0.99, one_minus_h: 1.0, one_minus_k: 0.0 }
    );
    assert_eq!(
        loss("loss gemodel 1% 10% 70% 0.1% limit 7"),
        LossModel::Gemodel { p: 0.01, r: 0.1, one_minus_h: 0.7, one_minus_k: 0.001 }
    );
}

#[test]
fn netem_reorders_duplicates_corrupts_and_shapes() {
    let spec = parse_netem(
        "delay 10ms reorder 25% 50% gap 5 duplicate 1% 10% corrupt 0.1% rate 1mbit loss 1% ecn",
    )
    .unwrap();
    assert_eq!((spec.reorder, spec.reorder_correlation, spec.gap), (0.25, 0.5, 5));
    assert_eq!((spec.duplicate, spec.duplicate_correlation), (0.01, 0.1));
    assert_eq!((spec.corrupt, spec.rate_bps, spec.ecn), (0.001, Some(1_000_000), true));
    assert_eq!(parse_netem("delay 10ms reorder 25%").unwrap().gap, 1, "tc's default");
}

#[test]
fn mistakes_name_the_word_and_what_would_be_right() {
    for (text, value, hint) in [
        ("", "nothing", "a queue discipline: noqueue, bfifo"),
        ("bfifi limit 3kb", "\"bfifi\"", "did you mean \"bfifo\"?"),
        ("red limit 100", "\"red\"", "a queue discipline: noqueue"),
        ("bfifo limit", "\"limit\" at the end", "a value after \"limit\""),
        ("bfifo limit 3kib", "\"limit 3kib\"", "a size with its unit"),
        ("bfifo limt 3kb", "\"limt\"", "did you mean \"limit\"?"),
        ("pfifo limit 99999999999", "\"limit 99999999999\"", "a number of packets"),
        ("noqueue limit 3", "\"limit\"", "nothing more"),
        ("tbf burst 1600 limit 9kb", "no \"rate\"", "tbf to have one"),
        ("tbf rate 1mbit limit 9kb", "no \"burst\"", "burst 1600"),
        ("tbf rate 1mbit burst 1600", "neither", "latency 50ms"),
        ("tbf rate 1mbit burst 1600 limit 9kb latency 1ms", "\"limit\" and", "one of them"),
        ("tbf rate 1mbit burst 1600 limit 9kb peakrate 2mbit", "one of", "both or neither"),
        ("htb leaf pfifo", "no \"rate\"", "htb to have one"),
        ("htb rate 0", "\"rate 0\"", "a rate above zero"),
        ("htb rate 1mbit quantum 1514", "\"quantum\"", "does not model \"quantum\""),
        ("htb rate 1mbit leaf", "nothing", "a queue discipline"),
        ("codel target 5", "\"target 5\"", "a time with its unit"),
        ("codel ce_threshold 1ms", "\"ce_threshold\"", "does not model"),
        ("sfq headdrop", "\"headdrop\"", "does not model"),
        ("netem delay", "\"delay\" at the end", "a value after"),
        ("netem delay 100", "\"delay 100\"", "a time with its unit"),
        ("netem distribution normal", "\"distribution\" alone", "delay and jitter"),
        ("netem delay 1ms 1ms distribution gauss", "\"distribution gauss\"", "normal"),
        ("netem loss state 1%", "\"state\"", "does not model"),
        ("netem loss 101%", "\"loss 101%\"", "from 0% to 100%"),
        ("netem reorder 25%", "\"reorder\" without", "a delay"),
        ("netem delay 1ms gap 5", "\"gap\" without", "the probability"),
        ("netem ecn", "\"ecn\" without", "loss 1% ecn"),
        ("netem corrupt 1% 5%", "\"5%\" behind", "no correlation"),
        ("netem rate 1mbit 20", "\"20\" behind", "no overhead"),
        ("netem slot 1ms", "\"slot\"", "does not model"),
    ] {
        let problem = parse_qdisc(text).expect_err(text);
        assert!(problem.value.starts_with(value), "{text}: {problem}");
        assert!(problem.expected.contains(hint), "{text}: {problem}");
    }
}
