//! `tidy`: the house rules that neither the compiler nor Clippy knows.

use crate::citations::Tree;
use crate::{Failure, layers, read};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a Rust file before its tests.
const LINES_MAX: usize = 600;
/// Folders with hand-written files.
const FOLDERS: &[&str] = &[
    "bpf",
    "crates",
    "python",
    "docs",
    "experiments",
    "bench",
    "tests",
    "tools",
    "validation",
    "fuzz",
    ".ci",
];
const FILES: &[&str] = &["README.md", "Makefile", "pyproject.toml", "Cargo.toml"];
/// Endings of the files that are read.
const ENDINGS: &[&str] =
    &["rs", "py", "pyi", "md", "toml", "json", "c", "h", "cc", "tcl", "sh", "html", "js", ""];
/// Outputs of `make play` and `make wheel`; they may be cited without existing.
const MADE: [&str; 3] = [
    "python/dragstrip/playground/page.html",
    "playground/node_modules/.package-lock.json",
    "python/dragstrip/studies/passport/baselines.json.gz",
];
/// Folders that tools write.
const SKIPPED: &[&str] =
    &["target", "node_modules", "__pycache__", "build", "results", "corpus", "found", "failures"];

pub fn check(root: &Path) -> Result<String, Failure> {
    let mut files: Vec<PathBuf> = FILES.iter().map(|file| root.join(file)).collect();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    let mut complaints = Vec::new();
    let mut count = 0;
    for file in files.iter().filter(|file| file.is_file()) {
        // Not text: not ours to judge.
        let Ok(text) = fs::read_to_string(file) else { continue };
        count += 1;
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        complaints.extend(complaints_about(&name, &text));
    }
    complaints.extend(crate_headers(root)?);
    complaints.extend(broken_citations(root)?);
    complaints.extend(layers::complaints(root)?);
    complaints.extend(stale_lock(root));
    if complaints.is_empty() {
        Ok(format!("{count} files are tidy"))
    } else {
        Err(Failure::Found(complaints.join("\n")))
    }
}

/// The fuzz targets have a separate lock file, which becomes stale when a crate gets a new dependency.
fn stale_lock(root: &Path) -> Option<String> {
    let output = Command::new("cargo")
        .args(["tree", "--quiet", "--locked", "--offline", "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .output()
        .ok()?;
    let stale = String::from_utf8_lossy(&output.stderr).contains("cannot update the lock file");
    stale.then(|| {
        "fuzz/Cargo.lock: a crate's dependencies have changed; cargo update --workspace in fuzz/ writes it"
            .to_owned()
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && !name.starts_with('.') {
                collect(&path, files)?;
            }
        } else if ENDINGS.contains(&path.extension().unwrap_or_default().to_string_lossy().as_ref())
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Lists the paths that text files cite and the repository lacks.
fn broken_citations(root: &Path) -> Result<Vec<String>, Failure> {
    let mut listed = Command::new("git");
    listed.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = listed.current_dir(root).output();
    // Outside a checkout (a source distribution) there is no list to compare with.
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .split_terminator('\0')
        .filter(|name| root.join(name).exists())
        .map(str::to_owned)
        .collect();
    let tree = Tree::new(names.iter().map(String::as_str).chain(MADE).map(PathBuf::from));
    let mut complaints = Vec::new();
    for name in names.iter().filter(|name| cites(name)) {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        let page = |path: &Path| fs::read_to_string(root.join(path)).ok();
        complaints.extend(tree.complaints(name, &text, page));
    }
    Ok(complaints)
}

/// True when this file contains prose by people or programs: neither data nor the rules' own examples.
fn cites(name: &str) -> bool {
    let ending = Path::new(name).extension().unwrap_or_default().to_string_lossy();
    let prose_endings = ["rs", "py", "pyi", "md", "c", "h", "toml", "tcl", "html", "css", "js", ""];
    prose_endings.contains(&ending.as_ref()) && !name.ends_with("xtask/src/citations.rs")
}

/// Lists the problems of one file.
fn complaints_about(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(path) = machine_path(line) {
            let number = number + 1;
            complaints.push(format!("{name}:{number}: {path} exists on one machine only"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{name}: the last line does not end"));
    }
    if name.ends_with(".rs") {
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        let lines = code.lines().count();
        if lines > LINES_MAX && !is_test {
            complaints.push(format!("{name}: {lines} lines before the tests, {LINES_MAX} at most"));
        }
        if !text.starts_with("//!") {
            complaints.push(format!("{name}: the first line does not say what the file is (//!)"));
        }
    }
    complaints
}

/// A path into a user's home or work folder.
fn machine_path(line: &str) -> Option<&'static str> {
    // Put together, so that this file is tidy itself.
    const STARTS: [&str; 4] = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/Us", "ers/"),
    ];
    STARTS.into_iter().find(|start| {
        line.match_indices(start).any(|(at, _)| {
            // Inside a longer path or an address it is someone else's.
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || "./_-~".contains(c))
        })
    })
}

/// Crates whose first file does not state its scope and what is out of scope.
fn crate_headers(root: &Path) -> Result<Vec<String>, Failure> {
    let mut complaints = Vec::new();
    let Ok(entries) = fs::read_dir(root.join("crates")) else {
        return Err(Failure::Usage("there is no folder crates".to_owned()));
    };
    let mut crates: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    crates.sort();
    for folder in crates.iter().filter(|folder| folder.join("Cargo.toml").is_file()) {
        let library = folder.join("src/lib.rs");
        let first = if library.is_file() { library } else { folder.join("src/main.rs") };
        let text = read(&first)?;
        let header = text.lines().map_while(|line| line.strip_prefix("//!")).collect::<String>();
        if !["Scope:", "Out of scope:"].iter().all(|phrase| header.contains(phrase)) {
            let name = first.strip_prefix(root).unwrap_or(&first).display();
            complaints.push(format!(
                "{name}: its header does not state \"Scope:\" and \"Out of scope:\""
            ));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_file_has_no_complaints() {
        assert!(complaints_about("a.rs", "//! What it is.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn each_rule_can_complain() {
        let long = format!("//! Long.\n{}", "fn a() {}\n".repeat(LINES_MAX));
        for (text, complaint) in [
            ("fn a() {}\n", "a.rs: the first line"),
            ("//! No end.", "a.rs: the last line"),
            (long.as_str(), "a.rs: 601 lines"),
            (concat!("//! In /ho", "me/me/x.\n"), "a.rs:1: "),
        ] {
            let complaints = complaints_about("a.rs", text);
            assert_eq!(complaints.len(), 1, "{complaints:?}");
            assert!(complaints[0].starts_with(complaint), "{complaints:?}");
        }
        let tested = format!("{}#[cfg(test)]\nmod tests {{}}\n", &long[..long.len() - 10]);
        assert!(complaints_about("a.rs", &tested).is_empty(), "tests do not count");
    }

    #[test]
    fn other_paths_are_not_machine_paths() {
        for line in ["see a/docs/work/x", "https://example.org/home/x", "~/home/x", "a/root/b"] {
            assert_eq!(machine_path(line), None, "{line}");
        }
    }

    #[test]
    fn the_tree_is_tidy() {
        let checked = check(&crate::root());
        assert!(checked.is_ok(), "{checked:?}");
    }
}
