//! On a copy of the crates it changes, never on the checkout.

use super::*;
use crate::root;
use crate::skeleton::module_of;
use crate::skeleton::testing::{Copy, cargo, changed_by, diffs};
use std::fs;

#[test]
fn bad_and_existing_names_are_refused_and_nothing_is_written() {
    let tree = Copy::of("refused", &["crates/cc/src"]);
    let registry = tree.text(REGISTRY);
    for name in [
        "",
        "Reno2",
        "2fast",
        "a b",
        "a--b",
        "-a",
        "a_",
        "über",
        "../x",
        "match",
        "a/b",
        "reno",
        "a-name-much-too-long",
    ] {
        assert!(matches!(create(&tree.0, name), Err(Failure::Usage(_))), "{name}");
    }
    assert_eq!(tree.text(REGISTRY), registry);
}

#[test]
fn a_second_time_it_exists_already() {
    let tree = Copy::of("twice", &["crates/cc/src"]);
    create(&tree.0, "swift").unwrap();
    assert!(matches!(create(&tree.0, "swift"), Err(Failure::Usage(_))));
}

#[test]
fn the_program_for_the_kernel_comes_beside_the_rust_one_or_alone() {
    let tree = Copy::of("bpf", &["crates/cc/src"]);
    create_both(&tree.0, "my-cc").unwrap();
    assert!(tree.text("crates/cc/src/algorithms/my_cc.rs").contains("MyCc"));
    let program = tree.text("bpf/my_cc.bpf.c");
    // The kernel takes no hyphen.
    assert!(program.contains(".name = \"my_cc\""), "{program}");
    assert!(!program.contains("{module}") && !program.contains("{Kind}"), "{program}");
    assert!(matches!(create_both(&tree.0, "my-cc"), Err(Failure::Usage(_))), "a second time");
    let registry = tree.text(REGISTRY);
    create_both(&tree.0, "fixed").unwrap();
    assert_eq!(tree.text(REGISTRY), registry, "fixed.rs is there already");
    assert!(tree.0.join("bpf/fixed.bpf.c").is_file());
}

#[test]
fn modules_and_registry_stay_sorted_and_complete() {
    let tree = Copy::of("sorted", &["crates/cc/src"]);
    create(&tree.0, "my-cc").unwrap();
    let modules = tree.text("crates/cc/src/algorithms/mod.rs");
    let list: Vec<&str> =
        modules.lines().filter(|line| line.starts_with("pub mod ")).map(module_of).collect();
    assert!(list.is_sorted() && list.contains(&"my_cc"), "{list:?}");
    let registry = tree.text(REGISTRY);
    assert!(registry.contains("    my_cc: MyCc,\n}"), "{registry}");
    assert!(registry.contains("    reno::linux: Reno,\n"), "the old ones stay");
}

/// The promise: the new file compiles, passes its tests and the lints; so it does with the guide's change. (The generic model drives it
/// as soon as it is in the checkout.) Builds the crate once more, with the dependencies at hand.
#[test]
fn the_new_algorithm_compiles_and_passes_its_tests_and_the_lints() {
    let mut paths = vec!["crates/cc", "crates/units", "clippy.toml", "rustfmt.toml", "Cargo.lock"];
    // Its tests read them.
    paths.extend(["docs/how-to/program.md", "programs"]);
    let tree = Copy::of("compiles", &paths);
    tree.workspace(&["units", "cc"]);
    create(&tree.0, "my-exp").unwrap();
    check(&tree.0);
    // The guide to the letter: its change to the new file, and the lines that it says are registered.
    let guide = fs::read_to_string(root().join("docs/how-to/new-algorithm.md")).unwrap();
    let [registered, change] = diffs(&guide)[..] else { panic!("two diffs in the guide") };
    let places = ["crates/cc/src/algorithms/mod.rs", REGISTRY].map(|path| tree.text(path)).concat();
    for line in registered.lines().filter(|line| !line.starts_with("+++")) {
        let there = line.strip_prefix('+').is_some_and(|line| places.contains(line));
        let gone = line.strip_prefix('-').is_some_and(|line| !places.contains(line));
        assert!(there || gone, "{line}");
    }
    let file = tree.0.join("crates/cc/src/algorithms/my_exp.rs");
    fs::write(&file, changed_by(&fs::read_to_string(&file).unwrap(), change)).unwrap();
    check(&tree.0);
}

/// Layout, tests and lints.
#[track_caller]
fn check(folder: &Path) {
    cargo(folder, &["fmt", "--all", "--check"]);
    cargo(folder, &["test", "--quiet", "--offline", "-p", "dragstrip-cc", "--lib"]);
    let clippy = ["clippy", "--quiet", "--offline", "-p", "dragstrip-cc", "--lib", "--tests"];
    cargo(folder, &[&clippy[..], &["--", "-D", "warnings"]].concat());
}
