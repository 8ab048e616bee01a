//! Tests on a copy of the crates that a command changes, never on the checkout.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that goes away with the test.
pub struct Copy(pub PathBuf);

impl Copy {
    /// Of these paths below the root.
    pub fn of(name: &str, paths: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        for path in paths {
            copy(&root().join(path), &folder.join(path));
        }
        Self(folder)
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap()
    }

    /// A workspace of these crates only, which have been copied.
    pub fn workspace(&self, crates: &[&str]) {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let (before, rest) = manifest.split_once("members = [").unwrap();
        let (_, after) = rest.split_once(']').unwrap();
        let members: Vec<String> = crates.iter().map(|name| format!("\"crates/{name}\"")).collect();
        let manifest = format!("{before}members = [{}]{after}", members.join(", "));
        fs::write(self.0.join("Cargo.toml"), manifest).unwrap();
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

/// The diffs of a page.
pub fn diffs(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```diff\n").skip(1);
    blocks.map(|block| block.split_once("\n```").expect("the block ends").0).collect()
}

/// `text` with every hunk of `diff` applied: what it takes away must be there once.
pub fn changed_by(text: &str, diff: &str) -> String {
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

/// Runs cargo in `folder`.
#[track_caller]
pub fn cargo(folder: &Path, arguments: &[&str]) {
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
