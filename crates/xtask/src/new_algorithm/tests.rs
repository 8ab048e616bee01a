//! On a copy of the crates it changes, never on the checkout.

use super::*;
use crate::root;
use std::fs;
use std::path::PathBuf;

/// A folder that goes away with the test.
struct Copy(PathBuf);

impl Copy {
    /// Of these paths below the root.
    fn of(name: &str, paths: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        for path in paths {
            copy(&root().join(path), &folder.join(path));
        }
        Self(folder)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

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
    let list: Vec<&str> = modules.lines().filter(|line| line.starts_with("pub mod ")).collect();
    assert!(list.is_sorted() && list.contains(&"pub mod my_cc;"), "{list:?}");
    let registry = tree.text(REGISTRY);
    assert!(registry.contains("    my_cc: MyCc,\n}"), "{registry}");
    assert!(registry.contains("    reno::linux: Reno,\n"), "the old ones stay");
}

/// The promise: the new file compiles, passes its tests and the lints; so it does with the guide's change. (The generic model drives it
/// as soon as it is in the checkout.) Builds the crate once more, with the dependencies at hand.
#[test]
fn the_new_algorithm_compiles_and_passes_its_tests_and_the_lints() {
    let paths = ["crates/cc", "crates/units", "clippy.toml", "rustfmt.toml", "Cargo.lock"];
    let tree = Copy::of("compiles", &paths);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    // Only the two crates that were copied.
    let (before, rest) = manifest.split_once("members = [").unwrap();
    let (_, after) = rest.split_once(']').unwrap();
    let manifest = format!("{before}members = [\"crates/units\", \"crates/cc\"]{after}");
    fs::write(tree.0.join("Cargo.toml"), manifest).unwrap();
    create(&tree.0, "my-exp").unwrap();
    check(&tree.0);
    // The guide to the letter: its change to the new file, and the lines that it says are registered.
    let guide = fs::read_to_string(root().join("docs/new-algorithm.md")).unwrap();
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

/// The diffs of a page.
fn diffs(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```diff\n").skip(1);
    blocks.map(|block| block.split_once("\n```").expect("the block ends").0).collect()
}

/// `text` with every hunk of `diff` applied: what it takes away must be there once.
fn changed_by(text: &str, diff: &str) -> String {
    let mut text = text.to_owned();
    for hunk in diff.split("@@\n").skip(1) {
        let side = |drop: char| -> String {
            let lines = hunk.lines().filter(|line| !line.starts_with(drop));
            lines.map(|line| line.get(1..).unwrap_or_default().to_owned() + "\n").collect()
        };
        let (old, new) = (side('+'), side('-'));
        assert_eq!(text.matches(&old).count(), 1, "the guide's hunk:\n{hunk}");
        text = text.replace(&old, &new);
    }
    text
}

/// The target folder that this test was built into: the dependencies are there already.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

#[track_caller]
fn cargo(folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "cargo {arguments:?}:\n{printed}\n{errors}");
}
