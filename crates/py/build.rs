//! Records the sources and settings of this build: the program compares them with the checkout that it runs in.

#![allow(clippy::disallowed_methods, reason = "it reads the sources")]

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let root = Path::new("../..");
    let mut crates = BTreeSet::new();
    add(root, "py", &mut crates)?;
    let mut files = vec![root.join("Cargo.toml"), root.join("Cargo.lock")];
    for name in &crates {
        let home = root.join("crates").join(name);
        files.push(home.join("Cargo.toml"));
        sources(&home.join("src"), &mut files)?;
        println!("cargo::rerun-if-changed={}", home.join("src").display());
    }
    let mut names: Vec<_> = files.iter().map(|file| (relative(file), file)).collect();
    names.sort();
    // As python/dragstrip/model/recording/core_build.py does it.
    let mut hash = Sha256::new();
    for (name, file) in names {
        let content = fs::read(file)?;
        hash.update(format!("{name} {}\n", content.len()));
        hash.update(content);
        if !name.ends_with(".rs") {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    println!("cargo::rustc-env=BUILT_OF={:x}", hash.finalize());
    println!("cargo::rustc-env=BUILT_CRATES={}", crates.into_iter().collect::<Vec<_>>().join(" "));
    println!("cargo::rustc-env=BUILT_PROFILE={}", profile());
    Ok(())
}

/// A crate and those of this workspace that it is made of.
fn add(root: &Path, name: &str, crates: &mut BTreeSet<String>) -> Result<()> {
    if crates.insert(name.to_owned()) {
        let manifest = fs::read_to_string(root.join("crates").join(name).join("Cargo.toml"))?;
        let needed = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        for line in needed.lines().take_while(|line| !line.starts_with('[')) {
            if let Some(suffix) = line.strip_prefix("dragstrip-") {
                let end = suffix.find(['.', ' ', '=']).unwrap_or(suffix.len());
                add(root, &suffix[..end], crates)?;
            }
        }
    }
    Ok(())
}

/// The Rust files below a folder; test files are not part of the extension.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "tests" {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    Ok(())
}

/// A path from the root of the sources, with slashes.
fn relative(file: &Path) -> String {
    let parts = file.iter().skip(2).map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

/// The name of cargo's profile: `OUT_DIR` is `target/[TRIPLE/]PROFILE/build/PACKAGE/out`.
fn profile() -> String {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let folder = out.ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}
