//! The same scenario gives the same bytes: twice in a row, in a debug build and in a release build, from
//! Rust and from Python (`tests/test_determinism.py` holds the same file against the compiled extension
//! and the pool).
//!
//! The golden recording has everything in one run, so its hash changes with any behaviour. Beside it
//! `tests/golden/behaviours.txt` has a digest per algorithm and per text of a queue discipline, each from a run of
//! its own: those that differ name what changed.
//!
//! If a change of the model is meant to change the results of a run, this writes the new hash and digests:
//!
//! ```text
//! DRAGSTRIP_BLESS=1 cargo test --locked -p dragstrip-sim --test determinism
//! ```

use dragstrip_qdisc::KINDS;
use dragstrip_scenario::{
    BfifoSpec, ChangeSpec, FlowSpec, LinkSpec, NodeSpec, QdiscSpec, Scenario,
};
use dragstrip_sim::{Data, Recording, Run};
use dragstrip_testkit::path::{datagrams, dumbbell, flow, link};
use std::collections::{BTreeMap, BTreeSet};

/// Every algorithm, queue discipline, impairment and application in one run of ten seconds.
const SCENARIO: &str = include_str!("../../../tests/golden/recording.scenario.json");
const GOLDEN: &str = include_str!("../../../tests/golden/recording.sha256");
/// One line per behaviour: its name, a tab, the recording's hash.
const BEHAVIOURS: &str = include_str!("../../../tests/golden/behaviours.txt");
const BLESS: &str = "DRAGSTRIP_BLESS=1 cargo test --locked -p dragstrip-sim --test determinism";

fn scenario() -> Scenario {
    Scenario::from_json(SCENARIO).expect("a scenario")
}

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

#[expect(clippy::disallowed_methods, reason = "this test rewrites its golden files on request")]
fn bless(file: &str, content: &str) -> bool {
    let is_requested = std::env::var_os("DRAGSTRIP_BLESS").is_some();
    if is_requested {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/");
        std::fs::write(format!("{folder}{file}"), content).expect("the golden file can be written");
    }
    is_requested
}

#[test]
fn a_recording_has_the_golden_hash() {
    let hash = run(&scenario()).sha256();
    if bless("recording.sha256", &format!("{hash}\n")) {
        return;
    }
    assert_eq!(
        hash,
        GOLDEN.trim(),
        "the golden recording changed (each_behaviour_has_its_digest names the behaviour); if intended: {BLESS}"
    );
}

/// Every host of the scenario uses ECN where the peer does.
fn with_ecn(mut scenario: Scenario) -> Scenario {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.sysctl.insert("net.ipv4.tcp_ecn".to_owned(), "1".to_owned());
        }
    }
    scenario
}

/// One flow for eight seconds at 10 Mbit/s and 40 ms with a buffer of one BDP: slow start, overflow and
/// recovery; a loss in 400 packets, which is a CE mark where the flow uses ECN; from the fourth second on half the
/// rate, twice the delay.
fn alone(algorithm: &str) -> Scenario {
    let loss = QdiscSpec::parse("netem loss 0.25% ecn").expect("a netem");
    let QdiscSpec::Netem(netem) = loss else { panic!("no netem") };
    let bottleneck = LinkSpec {
        rate_bps: Some(10_000_000),
        qdisc: BfifoSpec { limit_bytes: 50_000 }.into(),
        netem: Some(netem),
        ..link("r", "d")
    };
    let mut scenario = with_ecn(dumbbell(1, bottleneck, 40_000_000, 8));
    scenario.flows = vec![flow("s0", "d", algorithm)];
    let change = |link: &str| ChangeSpec {
        at_ns: 4_000_000_000,
        link: link.to_owned(),
        ..ChangeSpec::default()
    };
    scenario.changes = vec![
        ChangeSpec { rate_bps: Some(5_000_000), ..change("r-d") },
        ChangeSpec { delay_ns: Some(80_000_000), ..change("d-r") },
    ];
    scenario
}

/// Two flows with constant windows, one of them with ECN, and datagrams at a third of the rate: more than the
/// discipline serves, and no congestion control that reacts. All packets have the default DSCP, as in every run, so
/// that `prio` and `ets` use one band here; crates/qdisc tests their others.
fn overloaded(discipline: &str) -> Scenario {
    let qdisc = QdiscSpec::parse(discipline).expect(discipline);
    let bottleneck = LinkSpec { rate_bps: Some(10_000_000), qdisc, ..link("r", "d") };
    let mut scenario = with_ecn(dumbbell(3, bottleneck, 20_000_000, 3));
    if let Some(NodeSpec::Host(host)) = scenario.nodes.iter_mut().find(|node| node.name() == "s1") {
        host.sysctl.clear();
    }
    let window = BTreeMap::from([("window".to_owned(), 100.0)]);
    let constant = |sender: &str| -> FlowSpec {
        let mut spec = flow(sender, "d", "fixed");
        if let dragstrip_scenario::Transport::Tcp { cc_options, .. } = &mut spec.transport {
            cc_options.clone_from(&window);
        }
        spec
    };
    scenario.flows = vec![constant("s0"), constant("s1"), datagrams("s2", "d", 3_300_000, 1_000)];
    scenario
}

/// The hash of a run per algorithm and per example of a discipline, by name.
fn digests() -> BTreeMap<String, String> {
    let algorithms = dragstrip_cc::names()
        .iter()
        .map(|name| (format!("algorithm {name}"), run(&alone(name)).sha256()));
    let disciplines = KINDS.iter().flat_map(|kind| {
        let texts: BTreeSet<&str> = kind.examples.iter().copied().chain([kind.least]).collect();
        texts
            .into_iter()
            .map(|text| (format!("discipline {text}"), run(&overloaded(text)).sha256()))
    });
    algorithms.chain(disciplines).collect()
}

#[test]
fn each_behaviour_has_its_digest() {
    let digests = digests();
    let text: String = digests.iter().map(|(name, hash)| format!("{name}\t{hash}\n")).collect();
    if bless("behaviours.txt", &text) {
        return;
    }
    let stored: BTreeMap<String, String> = BEHAVIOURS
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, hash)| (name.to_owned(), hash.to_owned()))
        .collect();
    let names: BTreeSet<&String> = digests.keys().chain(stored.keys()).collect();
    let changed: Vec<&String> =
        names.into_iter().filter(|name| digests.get(*name) != stored.get(*name)).collect();
    assert!(
        changed.is_empty(),
        "{} of {} behaviours changed (all: a part that every run has); if intended: {BLESS}\n{changed:#?}",
        changed.len(),
        digests.len(),
    );
}

/// Digests of equal runs would name nothing.
#[test]
fn no_two_algorithms_have_the_same_digest() {
    let hashes: Vec<&str> = BEHAVIOURS
        .lines()
        .filter(|line| line.starts_with("algorithm "))
        .filter_map(|line| line.split_once('\t').map(|(_, hash)| hash))
        .collect();
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
}

#[test]
fn two_runs_are_the_same_and_two_seeds_are_not() {
    let once = scenario();
    assert_eq!(run(&once).sha256(), run(&once).sha256());
    let other_seed = Scenario { seed: once.seed + 1, ..once.clone() };
    assert_ne!(run(&once).sha256(), run(&other_seed).sha256());
}

/// A golden run that touches little would prove little.
#[test]
fn a_run_in_slices_shows_every_row_meanwhile() {
    let mut scenario = alone("cubic");
    scenario.record.every_ack = true;
    scenario.record.cc_state = true;
    let whole = run(&scenario).sha256();
    let mut slices = Run::new(scenario, ()).expect("a valid scenario");
    let mut until_ns = 0;
    while !slices.is_done() {
        until_ns += 333_000_000;
        slices.advance(until_ns, u32::MAX);
        let recording = slices.recording();
        let tables = slices.tables();
        for (table, times) in [
            ("samples", tables.samples.time_ns.values()),
            ("cc_state", tables.cc_state.time_ns.values()),
        ] {
            let recorded = &recording.table(table).expect("a table").columns[0].data;
            assert_eq!(*recorded, Data::Int(times.to_vec().into()), "{table} at {until_ns} ns");
        }
    }
    assert!(slices.tables().samples.time_ns.values().len() > 1_000);
    assert_eq!(slices.finish().sha256(), whole);
}

#[test]
fn the_golden_run_meets_everything() {
    let recording = run(&scenario());
    let numbers = |table: &str, column: &str| -> &[i64] {
        let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
        let column = table.columns.iter().find(|entry| entry.name == column).expect("a column");
        let Data::Int(values) = &column.data else { panic!("{} holds no numbers", column.name) };
        values
    };
    for column in ["retransmits", "rto_count", "reductions", "datagrams_lost"] {
        assert!(numbers("flows", column).iter().any(|count| *count > 0), "no {column}");
    }
    assert!(numbers("flows", "bytes_received").iter().all(|bytes| *bytes > 10_000));
    for column in ["dropped", "marked"] {
        assert!(numbers("queues", column).iter().any(|count| *count > 0), "nothing {column}");
    }
    let table = recording.tables.iter().find(|table| table.name == "samples").expect("samples");
    let states = table.columns.iter().find(|column| column.name == "state").expect("states");
    let Data::Text { names, .. } = &states.data else { panic!("states have names") };
    for state in ["disorder", "cwr", "recovery", "loss", "slow_start", "congestion_avoidance"] {
        assert!(names.iter().any(|name| name == state), "no sender was ever in {state}: {names:?}");
    }
}
