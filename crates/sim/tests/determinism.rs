//! The same scenario gives the same bytes: twice in a row, in a debug build and in a release build, from
//! Rust and from Python (`tests/test_determinism.py` holds the same file against the compiled extension
//! and the pool).
//!
//! If a change of the model is meant to change the results of a run, this writes the new hash:
//!
//! ```text
//! DRAGSTRIP_BLESS=1 cargo test --locked -p dragstrip-sim --test determinism
//! ```

use dragstrip_scenario::Scenario;
use dragstrip_sim::{Data, Recording};

/// Every algorithm, queue discipline, impairment and application in one run of ten seconds.
const SCENARIO: &str = include_str!("../../../tests/golden/recording.scenario.json");
const GOLDEN: &str = include_str!("../../../tests/golden/recording.sha256");

fn scenario() -> Scenario {
    Scenario::from_json(SCENARIO).expect("a scenario")
}

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

#[expect(
    clippy::disallowed_methods,
    reason = "writing the golden hash is asked for, and done, here"
)]
fn bless(hash: &str) -> bool {
    let is_requested = std::env::var_os("DRAGSTRIP_BLESS").is_some();
    if is_requested {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/recording.sha256");
        std::fs::write(file, format!("{hash}\n")).expect("the golden file can be written");
    }
    is_requested
}

#[test]
fn a_recording_has_the_golden_hash() {
    let hash = run(&scenario()).sha256();
    if bless(&hash) {
        return;
    }
    assert_eq!(
        hash,
        GOLDEN.trim(),
        "what a run gives has changed; if that is meant: \
         DRAGSTRIP_BLESS=1 cargo test --locked -p dragstrip-sim --test determinism"
    );
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
