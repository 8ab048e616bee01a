//! Texts that tc accepts, defaults that it fills in, and texts that are refused.

use super::*;
use crate::arbitrary::Scope;
use crate::{
    BfifoSpec, Buffer, CodelSpec, DelayDistribution, FqCodelSpec, HtbSpec, LossModel, NetemSpec,
    PfifoSpec, SfqSpec, TbfSpec,
};
use proptest::prelude::*;

#[track_caller]
fn ok(text: &str) -> QdiscSpec {
    QdiscSpec::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

#[test]
fn fifos_with_and_without_a_limit() {
    assert_eq!(ok("bfifo limit 200kb"), QdiscSpec::from(BfifoSpec { limit_bytes: 204_800 }));
    assert_eq!(ok("bfifo limit 0.1MB"), QdiscSpec::from(BfifoSpec { limit_bytes: 104_857 }));
    assert_eq!(ok("bfifo limit 30000"), QdiscSpec::from(BfifoSpec { limit_bytes: 30_000 }));
    assert_eq!(ok("bfifo"), QdiscSpec::from(BfifoSpec { limit_bytes: 1_514_000 }));
    assert_eq!(ok("pfifo limit 100"), QdiscSpec::from(PfifoSpec { limit_packets: 100 }));
    assert_eq!(ok("pfifo"), QdiscSpec::from(PfifoSpec { limit_packets: 1000 }));
    assert_eq!(ok("noqueue"), QdiscSpec::NOQUEUE);
}

#[test]
fn tbf_computes_its_limit_from_a_latency() {
    let tbf = |limit_bytes| {
        QdiscSpec::from(TbfSpec {
            rate_bps: 1_000_000,
            burst_bytes: 1600,
            limit_bytes,
            peakrate_bps: None,
            mtu_bytes: None,
        })
    };
    assert_eq!(ok("tbf rate 1mbit burst 1600 latency 50ms"), tbf(7850));
    assert_eq!(ok("tbf rate 1mbit burst 1600 limit 10kb"), tbf(10_240));
    let QdiscSpec::Tbf(TbfSpec { limit_bytes, .. }) =
        ok("tbf rate 1mbit burst 1600 latency 50ms peakrate 2mbit mtu 1514")
    else {
        panic!("a tbf")
    };
    assert_eq!(limit_bytes, 7850, "min(7850, 12500 + 1514)");
}

#[test]
fn htb_gets_the_bursts_that_tc_computes() {
    let QdiscSpec::Htb(HtbSpec { burst_bytes, cburst_bytes, ceil_bps, leaf, .. }) =
        ok("htb rate 1mbit")
    else {
        panic!("an htb")
    };
    assert_eq!((burst_bytes, cburst_bytes, ceil_bps), (1600, 1600, None));
    assert_eq!(*leaf, QdiscSpec::from(PfifoSpec { limit_packets: 1000 }));
    assert_eq!(HtbSpec::default_burst_bytes(10_000_000_000), 1601);
}

#[test]
fn htb_takes_a_leaf_and_everything_else_tc_knows_of_a_class() {
    let text = "htb rate 1mbit ceil 2mbit burst 15k cburst 16k overhead -4 mpu 64 linklayer atm \
                leaf bfifo limit 0.1MB";
    assert_eq!(
        ok(text),
        QdiscSpec::from(HtbSpec {
            rate_bps: 1_000_000,
            ceil_bps: Some(2_000_000),
            burst_bytes: 15_360,
            cburst_bytes: 16_384,
            overhead_bytes: -4,
            mpu_bytes: 64,
            linklayer_atm: true,
            leaf: Box::new(QdiscSpec::from(BfifoSpec { limit_bytes: 104_857 })),
        })
    );
}

#[test]
fn codel_and_fq_codel_have_the_kernels_defaults() {
    assert_eq!(
        ok("codel limit 100 target 10ms interval 100ms ecn"),
        QdiscSpec::from(CodelSpec {
            limit_packets: 100,
            target_ns: 10_000_000,
            interval_ns: 100_000_000,
            ecn: true,
            ce_threshold_ns: None,
        })
    );
    assert_eq!(
        ok("codel"),
        QdiscSpec::from(CodelSpec {
            limit_packets: 1000,
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            ecn: false,
            ce_threshold_ns: None,
        })
    );
    assert_eq!(
        ok("codel ce_threshold 1ms"),
        QdiscSpec::from(CodelSpec { ce_threshold_ns: Some(1_000_000), ..CodelSpec::default() })
    );
    let fq_codel = |ecn| {
        QdiscSpec::from(FqCodelSpec {
            limit_packets: 10_240,
            memory_limit_bytes: 33_554_432,
            flows: 1024,
            target_ns: 5_000_000,
            interval_ns: 100_000_000,
            quantum_bytes: 1514,
            drop_batch_packets: 64,
            ecn,
            ce_threshold_ns: None,
            ce_threshold_selector: None,
        })
    };
    assert_eq!(ok("fq_codel"), fq_codel(true));
    assert_eq!(ok("fq_codel noecn"), fq_codel(false));
}

/// tc reads C's numbers; to the kernel, which shows one with every threshold, a mask of nothing is no selector.
#[test]
fn a_selector_of_fq_codel_is_a_value_and_a_mask() {
    let selector = |text: &str| {
        let QdiscSpec::FqCodel(spec) = ok(&format!("fq_codel ce_threshold 1ms {text}")) else {
            panic!("an fq_codel")
        };
        spec.ce_threshold_selector.map(|selector| (selector.value, selector.mask))
    };
    assert_eq!(selector("ce_threshold_selector 0x01/0x03"), Some((1, 3)));
    assert_eq!(selector("ce_threshold_selector 010/255"), Some((8, 255)));
    assert_eq!(selector("ce_threshold_selector 0/0"), None);
    for (text, expected) in [
        ("ce_threshold 1ms ce_threshold_selector 0x2/0x1", "a mask with the value's bits"),
        ("ce_threshold_selector 0x1/0x1", "a ce_threshold too"),
    ] {
        let mut report = Report::default();
        ok(&format!("fq_codel {text}")).check("qdisc", &mut report);
        let problem = report.problems.first().expect(text);
        assert_eq!(problem.field, "qdisc.ce_threshold_selector", "{text}");
        assert!(problem.expected.starts_with(expected), "{text}: {problem}");
    }
}

#[test]
fn sfq_perturbs_in_whole_seconds() {
    assert_eq!(
        ok("sfq perturb 10"),
        QdiscSpec::from(SfqSpec {
            limit_packets: 127,
            flows: 128,
            divisor: 1024,
            depth_packets: 127,
            quantum_bytes: 1514,
            perturb_ns: 10_000_000_000,
        })
    );
    assert!(QdiscSpec::parse("sfq perturb 10s").is_err());
}

#[test]
fn netem_delays() {
    let spec =
        NetemSpec::parse_text("netem delay 100ms 75ms 25% distribution normal limit 10k").unwrap();
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
    assert_eq!(NetemSpec::parse_text("").unwrap(), NetemSpec::default());
}

#[test]
fn netem_loses_in_four_ways() {
    let loss = |text| NetemSpec::parse_text(text).unwrap().loss;
    let random = |probability, correlation| LossModel::Random { probability, correlation };
    assert_eq!(loss("loss 5%"), random(0.05, 0.0));
    assert_eq!(loss("loss 5% 25%"), random(0.05, 0.25));
    assert_eq!(loss("loss random 1"), random(0.01, 0.0));
    assert_eq!(loss("loss 0%"), LossModel::None);
    assert_eq!(loss("loss every 100 limit 7"), LossModel::Every { packets: 100 });
    NetemSpec::parse_text("loss every 1%").unwrap_err();
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
    let spec = NetemSpec::parse_text(
        "delay 10ms reorder 25% 50% gap 5 duplicate 1% 10% corrupt 0.1% rate 1mbit loss 1% ecn",
    )
    .unwrap();
    assert_eq!((spec.reorder, spec.reorder_correlation, spec.gap), (0.25, 0.5, 5));
    assert_eq!((spec.duplicate, spec.duplicate_correlation), (0.01, 0.1));
    assert_eq!((spec.corrupt, spec.rate_bps, spec.ecn), (0.001, Some(1_000_000), true));
    assert_eq!(NetemSpec::parse_text("delay 10ms reorder 25%").unwrap().gap, 1, "tc's default");
}

#[test]
fn mistakes_name_the_word_and_what_would_be_right() {
    for (text, value, hint) in [
        ("", "nothing", "a queue discipline: noqueue, bfifo"),
        ("bfifi limit 3kb", "\"bfifi\"", "did you mean \"bfifo\"?"),
        ("gred limit 100", "\"gred\"", "did you mean \"red\"?"),
        ("red limit 100", "no \"avpkt\"", "red to have one"),
        ("red avpkt 1000", "no \"limit\"", "red to have one"),
        ("red limit 5gb avpkt 1000", "\"limit 5gb\"", "below 4 GiB"),
        ("dualpi2 drop_enqueue", "\"drop_enqueue\"", "does not model"),
        ("dualpi2 step_thresh 3q", "\"step_thresh 3q\"", "packets such as 3p"),
        ("dualpi2 alpha 2%", "\"alpha 2%\"", "a plain number, in Hz"),
        ("prio leaf codel", "\"leaf\"", "does not model"),
        ("prio bands three", "\"bands three\"", "a whole number"),
        ("prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "\"priomap\" with more", "at most 16"),
        ("ets", "none of", "bands 3"),
        ("ets bands 2 quanta 1 2 3", "\"bands 2\"", "at least 3"),
        ("ets quanta 1514 leaf codel", "\"leaf\"", "does not model"),
        ("choke limit 1000", "no \"bandwidth\"", "choke to have one"),
        ("choke bandwidth 10mbit", "no \"limit\"", "choke to have one"),
        ("choke limit 1000 bandwidth 10mbit harddrop", "\"harddrop\"", "does not model"),
        ("sfb increment 5%", "\"increment 5%\"", "a plain number from 0 to 1"),
        ("sfb rehash 600s", "\"rehash 600s\"", "a whole number"),
        ("sfb penalty 10", "\"penalty\"", "penalty_"),
        ("fq horizon 2s", "\"horizon\"", "does not model"),
        ("fq maxrate 0", "\"maxrate 0\"", "a rate above zero"),
        ("fq flow_limit 10p", "\"flow_limit 10p\"", "a whole number"),
        ("cake nat", "\"nat\"", "nonat: the simulator does not model"),
        ("cake autorate-ingress", "\"autorate-ingress\"", "bandwidth RATE"),
        ("cake no-split-gso", "\"no-split-gso\"", "split-gso: "),
        ("cake fwmark 0xff", "\"fwmark\"", "firewall's marks"),
        ("cake lan metro", "\"lan\" and \"metro\"", "one of them"),
        ("cake triple", "\"triple\"", "triple-isolate"),
        ("cake bandwidth 0", "\"bandwidth 0\"", "a rate above zero"),
        ("cake bandwidth", "\"bandwidth\" at the end", "a value after"),
        ("cake overhead 20b", "\"overhead 20b\"", "a whole number"),
        ("cake rtt 50", "\"rtt 50\"", "a time with its unit"),
        ("fq_pie flows", "\"flows\" at the end", "a value after"),
        ("fq_pie ecn_prob 10%", "\"ecn_prob 10%\"", "a whole number"),
        ("red probability 2%", "\"probability 2%\"", "a plain number"),
        ("red limit 400000 avpkt 1000 qevent", "\"qevent\"", "does not model"),
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
        ("fq_codel ce_threshold_selector 1", "\"ce_threshold_selector 1\"", "such as 0x1/0x3"),
        (
            "fq_codel ce_threshold_selector 0x1/",
            "\"ce_threshold_selector 0x1/\"",
            "such as 0x1/0x3",
        ),
        ("fq_codel ce_threshold_selector 1/300", "\"ce_threshold_selector 1/300\"", "of 8 bits"),
        ("fq_codel ce_threshold_selector 1/2/3", "\"ce_threshold_selector 1/2/3\"", "a mask"),
        ("pie target 15", "\"target 15\"", "a time with its unit"),
        ("pie beta 1.25", "\"beta 1.25\"", "a whole number"),
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
        ("netem seed 1", "\"seed\"", "does not model"),
        ("netem packets 3", "\"packets\" or \"bytes\" without", "slot 5ms packets 10"),
    ] {
        let problem = QdiscSpec::parse(text).expect_err(text);
        assert!(problem.value.starts_with(value), "{text}: {problem}");
        assert!(problem.expected.contains(hint), "{text}: {problem}");
    }
}

/// Reading and writing gives a text that reads the same, and what it says is valid.
#[test]
fn what_is_written_reads_back() {
    for (kind, text) in examples() {
        let spec = ok(text);
        assert_eq!(spec.kind(), kind.name, "{text}");
        assert_eq!(QdiscSpec::parse(&spec.print()), Ok(spec.clone()), "{text} → {}", spec.print());
        let mut report = Report::default();
        spec.check("qdisc", &mut report);
        assert!(report.problems.is_empty(), "{text}: {:?}", report.problems);
    }
}

/// The examples of all kinds.
fn examples() -> impl Iterator<Item = (&'static Kind, &'static str)> {
    KINDS.iter().flat_map(|kind| kind.examples.iter().map(move |text| (kind, *text)))
}

/// Texts at the ends of ranges are valid, whatever the rate.
#[test]
fn extremes_are_valid() {
    for text in KINDS.iter().flat_map(|kind| kind.extremes) {
        for rate in ["512", "10000000000000"] {
            let mut report = Report::default();
            ok(&text.replace("{}", rate)).check("qdisc", &mut report);
            assert!(report.problems.is_empty(), "{text}: {:?}", report.problems);
        }
    }
}

/// No word has two meanings, none is refused that is understood, and the page says of each what it is.
#[test]
fn a_word_stands_in_one_row() {
    for kind in KINDS {
        let words = (kind.words)();
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{}: {word} twice", kind.name);
            assert!(!kind.unmodelled.contains(word), "{}: {word} is refused", kind.name);
        }
        for line in (kind.lines)() {
            assert!(!line.about.is_empty(), "{}: {line:?}", kind.name);
        }
    }
}

#[test]
fn people_can_read_it() {
    assert_eq!(
        ok("htb rate 1mbit leaf bfifo limit 200kb").print(),
        "htb rate 1mbit burst 1600b cburst 1600b leaf bfifo limit 200kb"
    );
}

/// Every registered kind has one name in tc, in JSON and for the kernel, and its least text is complete.
#[test]
fn a_kind_has_one_name_everywhere() {
    for kind in KINDS {
        let spec = ok(kind.least);
        assert_eq!(spec.kind(), kind.name);
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(json["kind"], kind.name);
        assert_eq!(serde_json::from_value::<QdiscSpec>(json).unwrap(), spec);
        assert_eq!(ok(&spec.print()), spec, "{}", spec.print());
        let mut report = Report::default();
        spec.check("qdisc", &mut report);
        assert!(report.problems.is_empty(), "{}: {:?}", kind.name, report.problems);
        let unknown = QdiscSpec::parse(&format!("{} no-such-word", kind.least));
        assert!(unknown.is_err(), "{}", kind.name);
        assert!(
            serde_json::from_value::<QdiscSpec>(
                serde_json::json!({"kind": kind.name, "no_such_field": 1})
            )
            .is_err(),
            "{}",
            kind.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    /// Configurations that a strategy calls valid pass the checks and survive JSON; their facts have no room for less
    /// than a frame.
    #[test]
    fn valid_configurations_are_valid(spec in QdiscSpec::arbitrary(Scope::Valid { frame_bytes: 1514 })) {
        let mut report = Report::default();
        spec.check("qdisc", &mut report);
        prop_assert!(report.problems.is_empty(), "{:?}", report.problems);
        let json = serde_json::to_value(&spec).unwrap();
        prop_assert_eq!(serde_json::from_value::<QdiscSpec>(json).unwrap(), spec.clone());
        for (field, bytes) in spec.facts().holds_packet {
            prop_assert!(bytes == 0 || bytes >= 1514, "{field}: {bytes}");
        }
    }

    /// tc's text has the resolution of its words; written once, it means the same from then on.
    #[test]
    fn text_is_stable(spec in QdiscSpec::arbitrary(Scope::Valid { frame_bytes: 1514 })) {
        if let Ok(read) = QdiscSpec::parse(&spec.print()) {
            prop_assert_eq!(QdiscSpec::parse(&read.print()), Ok(read));
        }
    }
}

/// Messages that tc(8) sends (recorded from the agent before the disciplines had folders of their own; hexadecimal).
#[test]
fn netlink_has_the_bytes_that_the_kernel_was_given() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (text, options) in [
        ("bfifo limit 200kb", "00200300"),
        ("pfifo limit 7", "07000000"),
        (
            "tbf rate 1mbit burst 1600 latency 50ms",
            "2800010000010000ffff000048e80100000000000000000000000000aa1e0000400d0300000000000c00040048e80100000000000800060040060000",
        ),
        (
            "tbf rate 1mbit burst 1600 latency 50ms peakrate 2mbit mtu 1514",
            "2800010000010000ffff000048e8010000010000ffff000090d00300aa1e0000400d0300a17101000c00040048e801000000000008000600400600000c00050090d003000000000008000700ea050000",
        ),
        ("htb rate 1mbit leaf pfifo limit 5", "18000200030000000a000000010000000000000000000000"),
        (
            "htb rate 1mbit ceil 2mbit overhead -4 mpu 64 linklayer atm leaf codel ecn",
            "18000200030000000a000000010000000000000000000000",
        ),
        (
            "codel limit 100 target 10ms ecn",
            "0800010010270000080002006400000008000300a08601000800040001000000",
        ),
        (
            "fq_codel noecn memory_limit 1mb",
            "0800010088130000080002000028000008000300a08601000800040000000000080005000004000008000600ea05000008000800400000000800090000001000",
        ),
        (
            "fq_codel limit 500 flows 64 drop_batch 7 noecn ce_threshold 2ms ce_threshold_selector 0x1/0x3",
            "080001008813000008000200f401000008000300a08601000800040000000000080005004000000008000600ea0500000800080007000000080009000000000205000a000100000005000b000300000008000700d0070000",
        ),
        (
            "sfq perturb 10",
            "ea0500000a0000007f00000000040000800000007f000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        ),
        (
            "pie target 20ms ecn",
            "08000100204e000008000200e803000008000300983a000008000400020000000800050014000000080006000100000008000700000000000800080000000000",
        ),
        (
            "netem",
            "00000000e8030000000000000000000000000000000000000c000a0000000000000000000c000b000000000000000000100001000000000000000000000000000c00030000000000000000000c0004000000000000000000",
        ),
        (
            "netem delay 100ms 75ms 25% loss gemodel 1% 10% 70% 0.1% ecn",
            "84d71700e8030000000000000000000000000000a3e111000c000a0000e1f505000000000c000b00c068780400000000100001000000004000000000000000000c00030000000000000000000c00040000000000000000001800050014000200295c8f029a999919cdcccc4c378941000800070001000000",
        ),
        (
            "netem delay 1ms reorder 25% 50% gap 5 duplicate 1% 2% corrupt 3% loss 3.3% 1% rate 9kbit",
            "093d0000e803000021b0720805000000295c8f02000000000c000a0040420f00000000000c000b0000000000000000001000010000000000295c8f0252b81e050c00030000000040000000800c0004007b14ae07000000001400060065040000000000000000000000000000",
        ),
    ] {
        assert_eq!(ok(text).options().map(|bytes| hex(&bytes)).as_deref(), Some(options), "{text}");
    }
    for (text, options) in [
        (
            "htb rate 1mbit leaf pfifo limit 5",
            "3000010000010000ffff000048e8010000010000ffff000048e80100400d0300400d0300ea05000000000000000000000c00060048e80100000000000c00070048e8010000000000",
        ),
        (
            "htb rate 1mbit ceil 2mbit overhead -4 mpu 64 linklayer atm leaf codel ecn",
            "300001000002fcffffff400048e801000002fcffffff400090d00300400d0300a0860100ea05000000000000000000000c00060048e80100000000000c00070090d0030000000000",
        ),
    ] {
        let spec = ok(text);
        let class = &spec.classes()[0];
        assert_eq!(hex(&class.options), options, "{text}");
        let QdiscSpec::Htb(htb) = &spec else { panic!("an htb") };
        assert_eq!(class.child, &*htb.leaf);
    }
    assert_eq!(ok("noqueue").options(), None);
    // With a table of 4096 entries.
    let table = ok("netem delay 1ms 1ms distribution normal rate 100gbit").options().unwrap();
    assert_eq!(table.len(), 8320 - 4);
}

/// The kernel reports options in the form in which it takes them, so what is sent confirms itself.
#[test]
fn what_is_sent_is_confirmed() {
    let mut silent = Vec::new();
    for (kind, text) in examples() {
        let confirmations = ok(text).confirm(&ok(text).options().unwrap_or_default());
        if confirmations.is_empty() && silent.last() != Some(&kind.name) {
            silent.push(kind.name);
        }
        assert!(
            confirmations.iter().all(|one| one.found == Some(one.wanted)),
            "{text}: {confirmations:?}"
        );
    }
    // The classes of htb and of a tree are confirmed, and sfq's kernel reports other numbers than it was given.
    assert_eq!(silent, ["noqueue", "htb", "sfq", "tc"]);
    let htb = ok("htb rate 3mbit");
    let confirmations = htb.confirm_class(0, &htb.classes()[0].options);
    assert_eq!(
        confirmations,
        [Confirmation::new("rate in bytes per second", Some(375_000), 375_000)]
    );
    assert_eq!(ok("codel").confirm(&[])[0].found, None);
}

/// Facts about a discipline, read through a class.
#[test]
fn facts_see_through_a_class() {
    let facts = ok("htb rate 3mbit ceil 9mbit leaf tbf rate 2mbit burst 1600 limit 9000b").facts();
    assert_eq!((facts.rate_bps, facts.shapes), (Some(2_000_000), true));
    assert_eq!(facts.buffer, Buffer::bytes(9000));
    assert_eq!(facts.holds_packet[1], ("leaf.limit_bytes".to_owned(), 9000));
    let netem = ok("netem delay 30ms rate 7mbit limit 10").facts();
    assert_eq!((netem.rate_bps, netem.delay_ns), (Some(7_000_000), 30_000_000));
    let queue = ok("fq_codel").facts();
    assert_eq!(
        (queue.rate_bps, queue.buffer, queue.shapes),
        (None, Buffer::packets(10_240), false)
    );
}

/// The words of a discipline after a change; `None`: it has no such setting.
fn changed(text: &str, change: Change) -> Option<String> {
    ok(text).changed(change).map(|spec| spec.print())
}

const RATE: Change = Change::RateBps(3_000_000);
const BYTES: Change = Change::LimitBytes(70_000);
const PACKETS: Change = Change::LimitPackets(70);
const NETEM: [Change; 2] = [Change::DelayNs(7_000_000), Change::Loss(0.25)];

#[test]
fn facts_of_a_tbf_are_its_slower_bucket_and_its_sizes() {
    let facts = ok("tbf rate 3mbit burst 9kb limit 90kb").facts();
    let sizes = |burst, limit, mtu| {
        [("burst_bytes", burst), ("limit_bytes", limit), ("mtu_bytes", mtu)]
            .map(|(field, bytes)| (field.to_owned(), bytes))
    };
    let expected = Facts {
        rate_bps: Some(3_000_000),
        shapes: true,
        holds_packet: sizes(9_216, 92_160, 0).into(),
        ..Facts::queue(Buffer::bytes(92_160))
    };
    assert_eq!(facts, expected);
    let spec = TbfSpec {
        rate_bps: 3_000_000,
        burst_bytes: 9_000,
        limit_bytes: 90_000,
        peakrate_bps: Some(2_000_000),
        mtu_bytes: Some(1_514),
    };
    let facts = QdiscSpec::from(spec).facts();
    assert_eq!(facts.rate_bps, Some(2_000_000));
    assert_eq!(facts.holds_packet, sizes(9_000, 90_000, 1_514));
}

#[test]
fn a_tbf_changes_its_rate_and_its_bytes() {
    let text = "tbf rate 1mbit burst 1600b limit 8000b";
    let rate = "tbf rate 3mbit burst 1600b limit 8000b";
    let bytes = "tbf rate 1mbit burst 1600b limit 70000b";
    assert_eq!(changed(text, RATE), Some(ok(rate).print()));
    assert_eq!(changed(text, BYTES), Some(ok(bytes).print()));
    for change in [PACKETS, NETEM[0], NETEM[1]] {
        assert_eq!(changed(text, change), None, "{change:?}");
    }
}

#[test]
fn facts_of_an_fq_codel_are_its_packets_and_its_memory() {
    let expected = |packets, bytes, marks| Facts {
        draws: true,
        marks,
        holds_packet: vec![("memory_limit_bytes".to_owned(), bytes)],
        ..Facts::queue(Buffer::packets(packets))
    };
    assert_eq!(ok("fq_codel").facts(), expected(10_240, 32 << 20, true));
    let small = "fq_codel limit 60 memory_limit 1mb noecn";
    assert_eq!(ok(small).facts(), expected(60, 1 << 20, false));
    assert!(ok("fq_codel noecn ce_threshold 2ms").facts().marks, "above the threshold");
}

#[test]
fn an_fq_codel_changes_its_packets_alone() {
    let text = "fq_codel limit 60 flows 16 noecn";
    let packets = ok("fq_codel limit 70 flows 16 noecn").print();
    assert_eq!(changed(text, PACKETS), Some(packets));
    for change in [RATE, BYTES, NETEM[0], NETEM[1]] {
        assert_eq!(changed(text, change), None, "{change:?}");
    }
}

#[test]
fn facts_of_a_cake_follow_its_bandwidth_and_its_tins() {
    // Frames of 1514 bytes take 2304 bytes of memory each (truesize).
    let expected = |rate_bps: Option<u64>, reorders, memory: u32| Facts {
        rate_bps,
        shapes: rate_bps.is_some(),
        draws: true,
        marks: true,
        reorders,
        ..Facts::queue(Buffer::packets(memory / 2304))
    };
    assert_eq!(ok("cake").facts(), expected(None, true, 10_240 * 1514));
    let shaped = "cake bandwidth 8mbit besteffort memlimit 1mb";
    assert_eq!(ok(shaped).facts(), expected(Some(8_000_000), false, 1 << 20));
    // cake_reconfigure: at least 4 MiB, where four times the rate's bytes in a round trip are less.
    assert_eq!(ok("cake bandwidth 8mbit").facts(), expected(Some(8_000_000), true, 4 << 20));
}

#[test]
fn a_cake_changes_the_bandwidth_that_it_has_and_its_memory() {
    let text = "cake bandwidth 8mbit besteffort memlimit 1mb";
    let rate = ok("cake bandwidth 3mbit besteffort memlimit 1mb").print();
    assert_eq!(changed(text, RATE), Some(rate));
    assert_eq!(changed("cake", RATE), None, "an unlimited one");
    let bytes = ok("cake bandwidth 8mbit besteffort memlimit 70000b").print();
    assert_eq!(changed(text, BYTES), Some(bytes));
    for change in [PACKETS, NETEM[0], NETEM[1]] {
        assert_eq!(changed(text, change), None, "{change:?}");
    }
}

#[test]
fn a_row_has_the_facts_of_its_configuration() {
    let with = |fact: fn(&Kind) -> bool| -> Vec<&str> {
        KINDS.iter().filter(|kind| fact(kind)).map(|kind| kind.name).collect()
    };
    assert_eq!(with(|kind| kind.fifo), ["bfifo", "pfifo", "tbf"]);
    assert_eq!(with(|kind| kind.paces), ["fq"]);
    assert_eq!(with(|kind| !kind.changeable), ["sfq"]);
    let probabilistic = ["red", "choke", "sfb", "pie", "fq_pie", "dualpi2"];
    assert_eq!(with(|kind| kind.probabilistic), probabilistic);
    for kind in KINDS.iter().filter(|kind| kind.probabilistic) {
        assert!(kind.aqm && ok(kind.examples[0]).facts().draws, "{}", kind.name);
    }
    for (kind, text) in examples() {
        assert_eq!(ok(text).row().name, kind.name);
    }
}
