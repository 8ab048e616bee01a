//! Every script of `conformance/` on the simulator's endpoint.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read files")]

use dragstrip_conformance::{Script, Verdict, play_on_simulator};
use std::fs;
use std::path::{Path, PathBuf};

fn scripts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let entries = fs::read_dir(&folder).expect("conformance/ is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "script"));
    files.sort();
    let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn every_script_plays_as_written_or_is_a_known_gap() {
    let scripts = scripts();
    assert!(scripts.len() >= 60, "{} scripts", scripts.len());
    let mut wrong = Vec::new();
    let mut gaps = 0;
    for (name, text) in &scripts {
        let script = Script::parse(text).unwrap_or_else(|fault| panic!("{name} {fault}"));
        let outcome = play_on_simulator(&script).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(outcome.checks > 0 || !outcome.failures.is_empty(), "{name} expects nothing");
        match outcome.verdict(script.known_gap.is_some()) {
            Verdict::Pass => {}
            Verdict::KnownGap => gaps += 1,
            Verdict::GapClosed => {
                wrong.push(format!("{name}: passes now: its `known gap` has to go"))
            }
            Verdict::Fail => wrong.extend(outcome.failures.iter().map(|failure| {
                format!("{name}:{}: {}\n    got {}", failure.line, failure.expected, failure.got)
            })),
        }
    }
    println!("{} scripts, {gaps} of them known gaps", scripts.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The player can fail: a time line with one figure changed is refused.
#[test]
fn a_wrong_line_is_found_with_its_number() {
    let right =
        "# t\nopen client 99\n99 write 10\n99 > 0..10\n198 < ack 10\n198 ? cwnd 20 ssthresh inf\n";
    let play = |text: &str| play_on_simulator(&Script::parse(text).unwrap()).unwrap().failures;
    assert_eq!(play(right), []);
    for (from, to, line) in [
        ("0..10", "0..9", 6),
        ("0..10", "1..10", 4),
        ("99 > 0..10", "101.5 > 0..10", 4),
        ("cwnd 20", "cwnd 21", 6),
        ("ssthresh inf", "ssthresh 7", 6),
        ("> 0..10", "> 0..10 ect", 4),
        ("> 0..10", "> 0..11", 4),
        ("> 0..10", "> 0..10 fin", 4),
        ("> 0..10", "> 0..10 of 1000b", 4),
        ("> 0..10", "> 0..10 seq 1", 4),
        ("> 0..10", "> 0..10 ecr 1", 4),
        ("99 > 0..10", "@3 > 0..10", 4),
        ("cwnd 20", "cwnd 20 notsent 1", 6),
    ] {
        let failures = play(&right.replace(from, to));
        assert_eq!(failures.len(), 1, "{from} -> {to}");
        assert_eq!(failures[0].line, line, "{from} -> {to}: {failures:?}");
    }
}
