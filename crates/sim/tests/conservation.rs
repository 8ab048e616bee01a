//! Random valid scenarios, 2,000 of them (PROPTEST_CASES changes that): no packet and no byte appears or
//! vanishes, time never goes back, nothing stops for good, and every run can be repeated.

use dragstrip_qdisc::Configuration as _;
use dragstrip_scenario::{
    CpuSpec, FlowSpec, FqCodelSpec, HostSpec, LinkSpec, MediumSpec, NodeSpec, ProbeSpec, QdiscSpec,
    Scenario, StackProfile,
};
use dragstrip_sim::audit::{Audit, audit, in_parts};
use dragstrip_sim::{Column, Data, Recording};
use dragstrip_testkit::{Budget, extremes, on_stack, path, payload_bytes_max, runner, scenarios};
use dragstrip_units::Instant;
use proptest::strategy::{BoxedStrategy, Strategy as _};
use proptest::test_runner::{Config, TestCaseError, TestError};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cases in all; they are shared by the tests below.
const CASES: u32 = 2_000;

#[expect(
    clippy::disallowed_methods,
    reason = "the number of cases and the case to replay are asked for"
)]
fn variable_text(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// A test of random cases.
struct Trial {
    /// Its name, and which of several streams of cases it takes.
    test: &'static str,
    stream: u8,
    /// Runs one case of this many.
    share: u32,
    check: fn(&Scenario) -> Result<(), String>,
}

impl Trial {
    /// The case that DRAGSTRIP_REPLAY names, or else random ones.
    fn run(&self) {
        let budget = Budget { duration_ns: 5_000_000_000, flows: 6 };
        self.run_of(&scenarios(budget).boxed());
    }

    /// The same of cases of another kind.
    fn run_of(&self, cases: &BoxedStrategy<Scenario>) {
        let Some(file) = variable_text("DRAGSTRIP_REPLAY") else { return self.try_random(cases) };
        #[expect(clippy::disallowed_methods, reason = "the case to replay is a file")]
        let text = std::fs::read_to_string(file).expect("DRAGSTRIP_REPLAY names a file");
        (self.check)(&Scenario::from_json(&text).expect("a scenario")).expect("this case");
    }

    /// A failing case is written to a file in its smallest form.
    fn try_random(&self, kind: &BoxedStrategy<Scenario>) {
        let cases =
            variable_text("PROPTEST_CASES").and_then(|text| text.parse().ok()).unwrap_or(CASES);
        let config = Config {
            cases: cases.div_ceil(self.share),
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        let outcome = runner(config, self.stream)
            .run(kind, |scenario| (self.check)(&scenario).map_err(TestCaseError::fail));
        let Err(error) = outcome else { return };
        let TestError::Fail(reason, scenario) = error else { panic!("{error}") };
        let test = self.test;
        let file = format!("{}/{test}.json", env!("CARGO_TARGET_TMPDIR"));
        let text = serde_json::to_string_pretty(&scenario).expect("scenarios are JSON");
        #[expect(clippy::disallowed_methods, reason = "the failing case is kept")]
        std::fs::write(&file, text).expect("the target directory can be written");
        panic!(
            "{reason}\nThis replays it:\n  \
             DRAGSTRIP_REPLAY={file} cargo test --locked -p dragstrip-sim --test conservation {test}"
        );
    }
}

macro_rules! ensure {
    ($condition:expr, $($said:tt)+) => {
        if !$condition {
            return Err(format!($($said)+));
        }
    };
}

// ---- packets and bytes ----

#[test]
fn nothing_appears_and_nothing_vanishes() {
    let test = "nothing_appears_and_nothing_vanishes";
    Trial { test, stream: 1, share: 2, check: conserved }.run();
}

/// The other half of the cases, for another processor.
#[test]
fn nothing_appears_and_nothing_vanishes_either() {
    let test = "nothing_appears_and_nothing_vanishes_either";
    Trial { test, stream: 2, share: 2, check: conserved }.run();
}

/// The older stacks, each in its turn.
#[test]
fn nothing_appears_and_nothing_vanishes_on_older_stacks() {
    const STACKS: &[(StackProfile, &[&str])] = &[
        (StackProfile::Linux515L4s, &["prague", "bbr2", "cubic"]),
        (StackProfile::Linux612, &["reno", "cubic", "vegas", "bbr"]),
        (StackProfile::Linux7, &["reno", "cubic", "vegas", "bbr"]),
        (StackProfile::Linux415, &["reno", "cubic", "vegas", "bbr"]),
        (StackProfile::Linux22, &["reno", "vegas"]),
        (StackProfile::Linux2627, &["reno", "cubic", "exp"]),
        (StackProfile::Linux2638, &["reno", "cubic", "vegas"]),
        (
            StackProfile::Freebsd9,
            &["newreno-freebsd", "cubic-freebsd", "vegas-freebsd", "cdg-freebsd"],
        ),
    ];
    let check = |scenario: &Scenario| {
        let (profile, ccs) = STACKS[scenario.seed as usize % STACKS.len()];
        conserved(&on_stack(scenario, profile, ccs))
    };
    let test = "nothing_appears_and_nothing_vanishes_on_older_stacks";
    Trial { test, stream: 4, share: 2, check }.run();
}

/// Rates from 1 bit/s to 400 Gbit/s, MTUs from 68 to 65,535 bytes, times up to the limit: what validation lets pass
/// conserves as any other scenario does, and no flow receives more than its path can carry.
#[test]
fn nothing_is_faster_than_its_path_at_the_ends_of_the_ranges() {
    let check = |scenario: &Scenario| {
        if scenario.validate().is_err() {
            return Ok(());
        }
        conserved(scenario)?;
        let (recording, _) = audit(scenario).map_err(|error| format!("{error:?}"))?;
        let received = column(&recording, "flows", "bytes_received")[0];
        let most = payload_bytes_max(scenario);
        ensure!(received as u128 <= most, "{received} bytes received of at most {most}");
        Ok(())
    };
    let test = "nothing_is_faster_than_its_path_at_the_ends_of_the_ranges";
    Trial { test, stream: 5, share: 4, check }.run_of(&extremes().boxed());
}

/// The value of `draws` decides whether repeats are made.
#[test]
fn scenarios_without_draws_are_independent_of_the_seed() {
    let check = |scenario: &Scenario| {
        let mut scenario = on_stack(scenario, StackProfile::Linux6, &["reno", "cubic", "vegas"]);
        for link in &mut scenario.links {
            link.netem = link.netem.take().filter(|netem| !netem.facts().draws);
        }
        if scenario.draws() {
            return Ok(());
        }
        let run = |scenario: &Scenario| {
            dragstrip_sim::run(scenario, &mut |_| true).map_err(|error| format!("{error:?}"))
        };
        let first = run(&scenario)?;
        scenario.seed = scenario.seed.wrapping_add(1);
        ensure!(first.sha256() == run(&scenario)?.sha256(), "another seed gives another recording");
        Ok(())
    };
    let test = "scenarios_without_draws_are_independent_of_the_seed";
    Trial { test, stream: 6, share: 5, check }.run();
}

/// A run in parts is the run in one piece, in every byte.
#[test]
fn parts_are_the_whole() {
    static CUT: AtomicUsize = AtomicUsize::new(0);
    let check = |scenario: &Scenario| {
        let mut scenario = on_stack(scenario, StackProfile::Linux6, &["reno", "cubic", "bbr"]);
        (scenario.cold_arp, scenario.record.every_ack) = (false, scenario.seed.is_multiple_of(2));
        for parts in [2, 3] {
            let results = in_parts(&scenario, parts).map_err(|error| format!("{error:?}"))?;
            let Some([whole, united]) = results else { continue };
            CUT.fetch_add(1, Ordering::Relaxed);
            for (whole_table, united_table) in whole.tables.iter().zip(&united.tables) {
                for (whole_column, united_column) in
                    whole_table.columns.iter().zip(&united_table.columns)
                {
                    ensure!(
                        whole_column.data == united_column.data,
                        "{parts} parts: another {}.{}",
                        whole_table.name,
                        whole_column.name
                    );
                }
            }
            ensure!(whole.sha256() == united.sha256(), "{parts} parts: another hash");
        }
        Ok(())
    };
    let test = "parts_are_the_whole";
    Trial { test, stream: 7, share: 2, check }.run();
    let cut = CUT.load(Ordering::Relaxed);
    assert!(cut > 0, "no network was cut");
    println!("{cut} runs in parts");
}

fn conserved(scenario: &Scenario) -> Result<(), String> {
    let (recording, books) = audit(scenario).map_err(|error| format!("{error:?}"))?;
    packets_balance(&books)?;
    bytes_balance(&books)?;
    no_endpoint_sleeps_forever(&books)?;
    time_goes_on(&recording)?;
    flows_add_up(&recording)?;
    let (again, _) = audit(scenario).map_err(|error| format!("{error:?}"))?;
    ensure!(recording.sha256() == again.sha256(), "the second run was another one");
    Ok(())
}

fn packets_balance(books: &Audit) -> Result<(), String> {
    let Audit { sent, copied, delivered, dropped, waiting, records, payloads, streams: _ } = books;
    ensure!(
        sent + copied == delivered + dropped + waiting,
        "{sent} sent and {copied} copied are not {delivered} delivered, {dropped} dropped and {waiting} waiting"
    );
    ensure!(records == waiting, "{records} records for {waiting} packets");
    ensure!(*payloads == 0, "{payloads} payloads without a flow of QUIC");
    Ok(())
}

fn bytes_balance(books: &Audit) -> Result<(), String> {
    for stream in &books.streams {
        ensure!(stream.in_order <= stream.written, "received more than was written: {stream:?}");
        ensure!(stream.acked <= stream.in_order, "acknowledged before it came: {stream:?}");
    }
    Ok(())
}

/// A host with unacknowledged data has a timer, the event queue knows of it, and none is overdue.
fn no_endpoint_sleeps_forever(books: &Audit) -> Result<(), String> {
    for stream in &books.streams {
        ensure!(
            !stream.unfinished || stream.deadline < Instant::NEVER,
            "waits for ever: {stream:?}"
        );
        ensure!(stream.scheduled <= stream.deadline, "nobody will wake it: {stream:?}");
        ensure!(stream.deadline >= stream.now, "overdue: {stream:?}");
    }
    Ok(())
}

fn column<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a [i64] {
    let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
    let column = table.columns.iter().find(|column| column.name == name).expect("a column");
    let Column { data: Data::Int(values), .. } = column else { panic!("{name} holds no numbers") };
    values
}

fn time_goes_on(recording: &Recording) -> Result<(), String> {
    for table in ["samples", "received", "rtts", "probes", "queues"] {
        ensure!(column(recording, table, "time_ns").is_sorted(), "{table} goes back in time");
    }
    Ok(())
}

/// Checks that the tables of a flow are consistent with each other.
fn flows_add_up(recording: &Recording) -> Result<(), String> {
    let of = |name| column(recording, "flows", name);
    let in_intervals = |flow: usize, name| -> i64 {
        let flows = column(recording, "received", "flow").iter();
        let values = column(recording, "received", name).iter();
        flows.zip(values).filter(|row| *row.0 == flow as i64).map(|row| *row.1).sum()
    };
    for flow in 0..of("flow").len() {
        let (received, acked) = (of("bytes_received")[flow], of("bytes_acked")[flow]);
        ensure!(received >= acked, "flow {flow}: {received} bytes received, {acked} acknowledged");
        let interval_bytes = in_intervals(flow, "new_bytes");
        ensure!(
            interval_bytes <= received,
            "flow {flow}: {interval_bytes} bytes in intervals of {received}"
        );
        let (segments, again) = (of("segments_sent")[flow], of("retransmits")[flow]);
        ensure!(again <= segments, "flow {flow}: {again} of {segments} segments retransmitted");
        ensure!(of("start_ns")[flow] <= of("stop_ns")[flow], "flow {flow} ends before it begins");
    }
    ensure!(
        column(recording, "probes", "rtt_ns").iter().all(|rtt| *rtt == Data::NULL || *rtt >= 0),
        "a ping was answered before it was sent"
    );
    Ok(())
}

// ---- independence ----

/// A second network next to the first that shares nothing with it (one case for every eight of the others).
#[test]
fn a_flow_elsewhere_changes_nothing() {
    let check = |scenario: &Scenario| {
        let alone = audit(scenario).map_err(|error| format!("{error:?}"))?.0;
        let doubled_tables = audit(&doubled(scenario)).map_err(|error| format!("{error:?}"))?.0;
        let flows = scenario.flows.len() as i64;
        for table in ["samples", "received", "rtts"] {
            ensure!(
                rows_of_flows(&alone, table, flows) == rows_of_flows(&doubled_tables, table, flows),
                "{table} of a flow changed because of another one elsewhere"
            );
        }
        let pings = scenario.probes.len();
        ensure!(pings_of(&alone, pings) == pings_of(&doubled_tables, pings), "a ping changed");
        Ok(())
    };
    let test = "a_flow_elsewhere_changes_nothing";
    Trial { test, stream: 3, share: 8, check }.run();
}

/// The flows that share a bucket of a fair queue depend on their own identity, not on other flows.
#[test]
fn an_unrelated_flow_changes_no_bucket() {
    let qdisc = QdiscSpec::from(FqCodelSpec {
        limit_packets: 1_000,
        memory_limit_bytes: 4 << 20,
        flows: 4,
        target_ns: 5_000_000,
        interval_ns: 100_000_000,
        quantum_bytes: 1_514,
        drop_batch_packets: 64,
        ecn: false,
        ce_threshold_ns: None,
        ce_threshold_selector: None,
    });
    let bottleneck = LinkSpec { rate_bps: Some(2_000_000), qdisc, ..path::link("r", "d") };
    for seed in 0..8 {
        let mut scenario = path::dumbbell(2, bottleneck.clone(), 10_000_000, 2);
        scenario.seed = seed;
        scenario.flows = ["s0", "s1"].map(|sender| path::flow(sender, "d", "cubic")).to_vec();
        scenario.probes = vec![ProbeSpec { label: "p0".to_owned(), ..path::ping("d", "s0") }];
        let [alone, doubled_run] = [scenario.clone(), doubled(&scenario)]
            .map(|scenario| pings_of(&audit(&scenario).expect("a valid scenario").0, 1));
        assert_eq!(alone, doubled_run, "seed {seed}");
    }
}

/// `scenario` with a copy of itself, renamed.
fn doubled(scenario: &Scenario) -> Scenario {
    let renamed = |name: &str| format!("other-{name}");
    let mut twice = scenario.clone();
    twice.nodes.extend(scenario.nodes.iter().map(|node| match node {
        NodeSpec::Host(host) => {
            let mut host = HostSpec { name: renamed(&host.name), ..host.clone() };
            if let Some(CpuSpec { shared: Some(processor), .. }) = &mut host.cpu {
                *processor = renamed(processor);
            }
            NodeSpec::Host(host)
        }
        NodeSpec::Router { name } => NodeSpec::Router { name: renamed(name) },
    }));
    twice.links.extend(scenario.links.iter().map(|link| LinkSpec {
        name: renamed(&link.name),
        from: renamed(&link.from),
        to: renamed(&link.to),
        medium: link.medium.as_deref().map(renamed),
        ..link.clone()
    }));
    twice.media.extend(scenario.media.iter().map(|(name, medium)| {
        let mut medium = medium.clone();
        if let MediumSpec::EthernetHub { full_duplex, .. } = &mut medium {
            *full_duplex = full_duplex.as_deref().map(renamed);
        } else if let MediumSpec::Tunnel { flow, near } = &mut medium {
            (*flow, *near) = (renamed(flow), renamed(near));
        }
        (renamed(name), medium)
    }));
    twice.flows.extend(scenario.flows.iter().map(|flow| FlowSpec {
        label: renamed(&flow.label),
        sender: renamed(&flow.sender),
        receiver: renamed(&flow.receiver),
        ..flow.clone()
    }));
    twice.probes.extend(scenario.probes.iter().map(|probe| ProbeSpec {
        label: renamed(&probe.label),
        from: renamed(&probe.from),
        target: renamed(&probe.target),
        ..probe.clone()
    }));
    twice
}

/// All numbers of the rows that belong to the first `flows` flows.
fn rows_of_flows(recording: &Recording, table: &str, flows: i64) -> Vec<Vec<i64>> {
    let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
    let keep = column(recording, table.name, "flow");
    let numbers = table.columns.iter().filter_map(|column| match &column.data {
        Data::Int(values) => Some(values),
        Data::Text { .. } | Data::Bool(_) | Data::Float(_) => None,
    });
    numbers
        .map(|values| {
            let rows = values.iter().zip(keep).filter(|row| *row.1 < flows);
            rows.map(|row| *row.0).collect()
        })
        .collect()
}

/// (time, RTT) of the first `probes` pings.
fn pings_of(recording: &Recording, probes: usize) -> Vec<(i64, i64)> {
    let table = recording.tables.iter().find(|table| table.name == "probes").expect("a table");
    let Some(Column { data: Data::Text { names, index }, .. }) =
        table.columns.iter().find(|column| column.name == "probe")
    else {
        panic!("pings have names")
    };
    let times = column(recording, "probes", "time_ns").iter();
    let rtts = column(recording, "probes", "rtt_ns").iter();
    let mine = |row: usize| {
        let name = &names[index[row] as usize];
        (0..probes).any(|number| *name == format!("p{number}"))
    };
    let rows = times.zip(rtts).enumerate().filter(|(row, _)| mine(*row));
    rows.map(|(_, (time, rtt))| (*time, *rtt)).collect()
}
