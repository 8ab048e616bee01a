//! Figures without a scenario: each fallback of tables built by hand, and a run's figures against its measures.

use dragstrip_measures::figures::{
    Facts, FlowFigures, ProbeFigures, RoundTrips, TAIL_SAMPLES, flow_figures, probe_figures,
};
use dragstrip_measures::{LIMITS, Measured, Window, limiting_factor};
use dragstrip_recording::{
    Column, Data, FlowRow, ProbeRow, ReceivedRow, Recording, RttRow, SampleRow, Table, Writer,
    column,
};
use dragstrip_scenario::{LinkSpec, QdiscSpec, Scenario};
use dragstrip_testkit::path::{dumbbell, flow, link};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

fn flow_row(writer: &mut Writer, protocol: &str) -> FlowRow {
    FlowRow {
        flow: 0,
        label: writer.flows.label.word("a"),
        protocol: writer.flows.protocol.word(protocol),
        cc: writer.flows.cc.word(""),
        sender: writer.flows.sender.word(""),
        receiver: writer.flows.receiver.word(""),
        start_ns: Data::NULL,
        stop_ns: Data::NULL,
        bytes_acked: Data::NULL,
        bytes_received: Data::NULL,
        segments_sent: Data::NULL,
        retransmits: Data::NULL,
        rto_count: None,
        reductions: Data::NULL,
        ecn_negotiated: true,
        datagrams_lost: None,
    }
}

fn sample_row(writer: &mut Writer, time_ns: i64, limit: &str) -> SampleRow {
    SampleRow {
        time_ns,
        flow: 0,
        cwnd_bytes: Data::NULL,
        ssthresh_bytes: None,
        bytes_in_flight: Data::NULL,
        srtt_ns: None,
        rtt_ns: None,
        min_rtt_ns: None,
        pacing_bps: None,
        delivery_bps: None,
        bytes_acked: Data::NULL,
        bytes_written: Data::NULL,
        retransmits: Data::NULL,
        state: writer.samples.state.word(""),
        limit: writer.samples.limit.word(limit),
    }
}

fn received(time_ns: i64, new_bytes: i64) -> ReceivedRow {
    ReceivedRow { time_ns, flow: 0, wire_bytes: Data::NULL, new_bytes }
}

/// Figures of the only flow of these tables.
fn only(writer: Writer, facts: Facts<'_>) -> FlowFigures {
    let mut figures = flow_figures(&writer.finish(), facts);
    assert_eq!(figures.len(), 1);
    figures.remove(0)
}

/// A flow of which nothing but these samples is recorded.
fn sampled(protocol: &str, fill: impl Fn(&mut SampleRow, i64)) -> Writer {
    let mut writer = Writer::default();
    let row = flow_row(&mut writer, protocol);
    writer.flows.push(row);
    for second in 1..=5 {
        let mut row = sample_row(&mut writer, second * S, "");
        fill(&mut row, second);
        writer.samples.push(row);
    }
    writer
}

#[test]
fn bytes_come_from_the_best_source_that_the_recording_has() {
    let mut writer = sampled("tcp", |row, second| {
        row.bytes_acked = if second == 5 { Data::NULL } else { second * 1000 };
        row.bytes_written = second * 7000;
    });
    assert_eq!(only(writer.clone(), Facts::default()).bytes, Some(3000));
    writer.received.push(received(2 * S, 600));
    writer.received.push(received(3 * S, 500));
    assert_eq!(only(writer, Facts::default()).bytes, Some(1100));

    let written = |protocol| sampled(protocol, |row, second| row.bytes_written = second * 7000);
    assert_eq!(only(written("tcp"), Facts::default()).bytes, Some(35_000));
    let datagrams = only(written("udp"), Facts::default());
    assert_eq!((datagrams.bytes, datagrams.goodput_bps), (None, None));

    let mut writer = Writer::default();
    let row = FlowRow { bytes_received: 9, ..flow_row(&mut writer, "tcp") };
    writer.flows.push(row);
    writer.received.push(received(S, 600));
    assert_eq!(only(writer, Facts::default()).bytes, Some(9));
}

#[test]
fn a_missing_start_or_stop_is_that_of_the_rows() {
    let mut writer = sampled("tcp", |row, second| row.bytes_acked = second * 1000);
    let figures = only(writer.clone(), Facts::default());
    assert_eq!((figures.duration_s, figures.goodput_bps), (4.0, Some(8000.0)));
    let end = Facts { end_ns: Some(9 * S), ..Facts::default() };
    assert_eq!(only(writer.clone(), end).duration_s, 8.0);
    writer.received.push(received(S / 2, 600));
    writer.received.push(received(6 * S, 600));
    assert_eq!(only(writer, Facts::default()).duration_s, 5.5);

    let mut writer = Writer::default();
    let row = FlowRow { bytes_received: 9, ..flow_row(&mut writer, "tcp") };
    writer.flows.push(row);
    let figures = only(writer, Facts::default());
    assert_eq!((figures.duration_s, figures.goodput_bps), (0.0, None));
}

#[test]
fn round_trips_are_the_finest_recorded() {
    let mut writer = sampled("tcp", |row, second| row.srtt_ns = Some(second * MS));
    let trips = |writer: &Writer| only(writer.clone(), Facts::default()).rtt_ms;
    assert_eq!((trips(&writer).method, trips(&writer).samples), (Some("srtt"), 5));
    let row = SampleRow { rtt_ns: Some(7 * MS), ..sample_row(&mut writer, 6 * S, "") };
    writer.samples.push(row);
    assert_eq!((trips(&writer).method, trips(&writer).p50), (Some("latest"), Some(7.0)));
    writer.rtts.push(RttRow { time_ns: S, flow: 0, rtt_ns: 8 * MS });
    writer.rtts.push(RttRow { time_ns: S, flow: 1, rtt_ns: 9 * MS });
    assert_eq!((trips(&writer).method, trips(&writer).max), (Some("samples"), Some(8.0)));
    assert_eq!(trips(&sampled("tcp", |_, _| ())), RoundTrips::default());
}

#[test]
fn few_values_have_no_tails() {
    let values = |count: usize| (1..=count).map(|ms| (ms * 1_000_000) as f64).collect();
    let few = RoundTrips::new(values(TAIL_SAMPLES - 1), Some("echo"));
    assert_eq!((few.p5, few.p50, few.p95), (None, Some(10.0), None));
    assert_eq!((few.min, few.mean, few.max), (Some(1.0), Some(10.0), Some(19.0)));
    let enough = RoundTrips::new(values(TAIL_SAMPLES), Some("echo"));
    assert_eq!((enough.p5, enough.p50, enough.p95), (Some(1.95), Some(10.5), Some(19.05)));
}

#[test]
fn reported_figures_take_precedence_and_nonsense_does_not() {
    let writer = sampled("tcp", |row, second| {
        row.bytes_acked = second * 1000;
        row.rtt_ns = Some(second * MS);
    });
    let figures = |reported: Value| {
        let reported = json!({ "0": reported, "1": { "goodput_bps": 1 } });
        only(writer.clone(), Facts { reported: Some(&reported), ..Facts::default() })
    };
    assert_eq!(figures(json!({ "measured_s": 2 })).goodput_bps, Some(16_000.0));
    assert_eq!(figures(json!({ "measured_s": 0 })).goodput_bps, None);
    assert_eq!(figures(json!({ "goodput_bps": 5.5 })).goodput_bps, Some(5.5));
    let trips = figures(json!({ "rtt_ms": { "min": 0.5, "mean": null, "max": 1e30 } })).rtt_ms;
    assert_eq!((trips.min, trips.mean, trips.max), (Some(0.5), Some(3.0), Some(5.0)));
    for nonsense in [json!(null), json!([]), json!("x"), json!({ "goodput_bps": true })] {
        assert_eq!(figures(nonsense), figures(json!({})));
    }
}

#[test]
fn tables_and_columns_may_be_missing() {
    assert!(flow_figures(&Recording::default(), Facts::default()).is_empty());
    assert!(probe_figures(&Recording::default(), &json!([])).is_empty());
    let columns = vec![Column { name: "flow", data: Data::Int(vec![4].into()) }];
    let recording = Recording { tables: vec![Table { name: "flows", columns }] };
    let figures = flow_figures(&recording, Facts::default());
    assert_eq!((figures[0].flow, figures[0].ecn, figures[0].label.as_deref()), (4, None, None));
    assert_eq!((figures[0].bytes, figures[0].limited_s.as_ref()), (None, None));
}

fn probed() -> Writer {
    let mut writer = Writer::default();
    for (target, rtt_ns) in [("x", Some(3 * MS)), ("y", None), ("x", Some(5 * MS)), ("x", None)] {
        let (probe, target) = (writer.probes.probe.word("p"), writer.probes.target.word(target));
        writer.probes.push(ProbeRow { time_ns: 0, probe, target, rtt_ns, lost: rtt_ns.is_none() });
    }
    writer
}

fn counts(figures: &ProbeFigures) -> (Option<&str>, Option<i64>, Option<i64>) {
    (figures.target.as_deref(), figures.sent, figures.lost)
}

#[test]
fn probes_are_counted_by_name_and_target() {
    let figures = probe_figures(&probed().finish(), &json!([]));
    let [x, y] = &figures[..] else { panic!("{figures:?}") };
    assert_eq!(counts(x), (Some("x"), Some(3), Some(1)));
    assert_eq!((x.rtt_ms.method, x.rtt_ms.mean), (Some("echo"), Some(4.0)));
    assert_eq!(counts(y), (Some("y"), Some(1), Some(1)));
    assert_eq!(y.rtt_ms, RoundTrips::default());
}

#[test]
fn a_summary_replaces_counts_and_extremes() {
    let rtt_ms = json!({ "min": 1, "mean": 4, "max": 9 });
    let summaries = json!([
        { "probe": "p", "target": "x", "sent": 100, "lost": null, "rtt_ms": rtt_ms },
        { "probe": "p" },
        7,
    ]);
    let figures = probe_figures(&probed().finish(), &summaries);
    assert_eq!(counts(&figures[0]), (Some("x"), Some(100), None));
    let trips = &figures[0].rtt_ms;
    assert_eq!((trips.method, trips.samples, trips.p50), (Some("summary"), 0, None));
    assert_eq!((trips.min, trips.mean, trips.max), (Some(1.0), Some(4.0), Some(9.0)));
    assert_eq!(counts(&figures[1]), (Some("y"), Some(1), Some(1)));
}

#[test]
fn a_sample_limits_the_time_since_the_one_before() {
    let mut writer = Writer::default();
    let row = FlowRow { start_ns: S, stop_ns: 9 * S, ..flow_row(&mut writer, "tcp") };
    writer.flows.push(row);
    for (second, limit) in [(3, "handshake"), (4, "rwnd"), (8, "app"), (10, "cwnd")] {
        let row = sample_row(&mut writer, second * S, limit);
        writer.samples.push(row);
    }
    let limited =
        |every_ack| only(writer.clone(), Facts { every_ack, ..Facts::default() }).limited_s;
    let seconds = |unknown, receiver, application| {
        let names = ["application", "cwnd", "receiver", "unknown"];
        let values = [application, 0.0, receiver, unknown];
        Some(names.into_iter().zip(values).collect::<BTreeMap<_, _>>())
    };
    assert_eq!(limited(false), seconds(2.0, 1.0, 4.0));
    assert_eq!(limited(true), seconds(3.0, 4.0, 1.0));
}

/// A path of 10 Mbit/s and 40 ms with two flows.
fn run(every_ack: bool) -> (Scenario, Recording) {
    let bottleneck = LinkSpec {
        rate_bps: Some(10_000_000),
        qdisc: QdiscSpec::parse("bfifo limit 50000").expect("a queue"),
        ..link("r", "d")
    };
    let mut scenario = dumbbell(2, bottleneck, 40_000_000, 5);
    scenario.record.rtts = true;
    scenario.record.every_ack = every_ack;
    scenario.flows = vec![flow("s0", "d", "cubic"), flow("s1", "d", "bbr")];
    let recording = dragstrip_sim::run(&scenario, &mut |_| true).expect("a valid scenario");
    (scenario, recording)
}

#[test]
fn figures_of_a_run_are_its_measures() {
    for every_ack in [false, true] {
        let (scenario, recording) = run(every_ack);
        let end_ns = Some(scenario.duration_ns as i64);
        let figures = flow_figures(&recording, Facts { end_ns, every_ack, reported: None });
        let Some(Data::Int(rtt_flows)) = recording.column(&column::rtts::flow) else {
            panic!("a column of flows")
        };
        let rtt_counts = [0, 1].map(|flow| rtt_flows.iter().filter(|row| **row == flow).count());
        let measured = Measured::new(scenario, recording).expect("all columns");
        assert_eq!(figures.len(), 2);
        for (place, (figures, row)) in figures.iter().zip(measured.flows()).enumerate() {
            assert_eq!(figures.bytes, Some(row.bytes_received));
            assert_eq!(figures.duration_s, row.duration_s());
            assert_eq!(figures.goodput_bps, Some(row.goodput_bps()));
            assert_eq!(figures.segments, Some(row.segments_sent));
            assert_eq!(figures.retransmissions.unknown, Some(row.retransmits));
            assert_eq!(
                (figures.rtt_ms.method, figures.ecn),
                (Some("samples"), Some(row.ecn_negotiated))
            );
            assert_eq!(figures.rtt_ms.samples, rtt_counts[place]);
            assert!(rtt_counts[place] > 100, "{rtt_counts:?}");
            let spent = measured.limited_s(place, &Window::default()).expect("all columns");
            let mut factors: BTreeMap<&str, f64> = BTreeMap::new();
            for (limit, seconds) in &spent {
                *factors.entry(limiting_factor(limit)).or_default() += seconds;
            }
            let limited = figures.limited_s.as_ref().expect("limits");
            assert!(limited.values().sum::<f64>() > 4.8, "{limited:?}");
            for (factor, seconds) in limited {
                let expected = factors.get(factor).copied().unwrap_or(0.0);
                assert!((seconds - expected).abs() < 1e-9, "{factor}: {seconds}, {expected}");
            }
        }
    }
}

#[test]
fn every_limit_but_the_handshake_has_a_factor() {
    for limit in LIMITS {
        assert_eq!(limiting_factor(limit) == "unknown", limit == "handshake", "{limit}");
    }
}
