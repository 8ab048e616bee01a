//! `fuzz`: builds the targets of `fuzz/` for libFuzzer and runs them, each for some seconds.

use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long a target runs unless it is said.
const SECONDS: u64 = 5;
/// A single input may take this long, in seconds, and the process this much memory, in MiB.
const INPUT_SECONDS: u64 = 10;
const MEMORY_MIB: u64 = 1024;
/// Inputs are no longer than this, in bytes.
const BYTES_MAX: u64 = 16_384;

/// What libFuzzer needs of the compiler: counters on edges, and what comparisons saw.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// What is asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    targets: Vec<String>,
    seconds: u64,
    replay: Option<PathBuf>,
}

pub fn run(arguments: &[&str], root: &Path) -> Result<String, Failure> {
    let known = targets(root)?;
    let asked = asked(arguments, &known)?;
    let folder = root.join("fuzz");
    let programs = build(&folder, &root.join("target/fuzz"))?;
    if let Some(file) = &asked.replay {
        let done = Command::new(programs.join(&asked.targets[0])).arg(file).status();
        return match done {
            Ok(status) if status.success() => Ok(format!("{} passes", file.display())),
            _ => Err(Failure::Found(format!("{} still fails", file.display()))),
        };
    }
    let mut results = Vec::new();
    for name in &asked.targets {
        results.push(one(&folder, &programs.join(name), name, asked.seconds)?);
    }
    Ok(results.join("\n"))
}

/// The targets that `fuzz/Cargo.toml` names have a file each.
fn targets(root: &Path) -> Result<Vec<String>, Failure> {
    let folder = root.join("fuzz/targets");
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            entry.path().file_stem().map(|name| name.to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    Ok(names)
}

fn asked(arguments: &[&str], known: &[String]) -> Result<Asked, Failure> {
    let mut asked = Asked { targets: Vec::new(), seconds: SECONDS, replay: None };
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "--seconds" => {
                let given = rest.next().and_then(|text| text.parse().ok()).filter(|&s: &u64| s > 0);
                asked.seconds = given.ok_or_else(|| {
                    Failure::Usage("--seconds: a whole number above 0".to_owned())
                })?;
            }
            "--replay" => {
                let file =
                    rest.next().ok_or_else(|| Failure::Usage("--replay: a file".to_owned()))?;
                asked.replay = Some(PathBuf::from(file));
            }
            name if known.iter().any(|target| target == name) => {
                asked.targets.push(name.to_owned())
            }
            other => {
                return Err(Failure::Usage(format!(
                    "{other}: expected one of {}",
                    known.join(", ")
                )));
            }
        }
    }
    if asked.replay.is_some() && asked.targets.len() != 1 {
        return Err(Failure::Usage(
            "--replay: name the one target that the input is for".to_owned(),
        ));
    }
    if asked.targets.is_empty() {
        asked.targets = known.to_vec();
    }
    Ok(asked)
}

/// Compiles all targets; gives the folder that they are in.
fn build(folder: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let version = Command::new("rustc").arg("-vV").output();
    let version = version.map_err(|error| Failure::Usage(format!("rustc: {error}")))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    // Named even where it is the host: flags for a target do not reach build scripts.
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let done = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--locked", "--target", host, "--target-dir"])
        .arg(target)
        .current_dir(folder)
        .env("RUSTFLAGS", FLAGS)
        .status();
    match done {
        Ok(status) if status.success() => Ok(target.join(host).join("release")),
        _ => Err(Failure::Usage(
            "the fuzz targets do not build; they need a C++ compiler".to_owned(),
        )),
    }
}

/// Runs a target from its corpus; a failing input is kept, and the command that replays it is printed.
fn one(folder: &Path, program: &Path, name: &str, seconds: u64) -> Result<String, Failure> {
    let [found, failures] = ["found", "failures"].map(|kind| folder.join(kind).join(name));
    for place in [&found, &failures] {
        fs::create_dir_all(place)
            .map_err(|error| Failure::Usage(format!("{}: {error}", place.display())))?;
    }
    let done = Command::new(program)
        .args([
            format!("-max_total_time={seconds}"),
            format!("-timeout={INPUT_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            format!("-max_len={BYTES_MAX}"),
            format!("-artifact_prefix={}/", failures.display()),
            "-print_final_stats=1".to_owned(),
            "-verbosity=0".to_owned(),
        ])
        .args([&found, &folder.join("corpus").join(name)])
        .output()
        .map_err(|error| Failure::Usage(format!("{}: {error}", program.display())))?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() {
        let count =
            said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        return Ok(format!("{name}: {} inputs, no failure", count.unwrap_or("?").trim()));
    }
    let kept = said.lines().find_map(|line| line.split("Test unit written to ").nth(1));
    let kept = kept.unwrap_or("no input was kept").trim();
    Err(Failure::Found(format!(
        "{said}\n{name} failed; again:\ncargo xtask fuzz {name} --replay {kept}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read() {
        let known = ["script", "tc"].map(str::to_owned);
        let all = asked(&[], &known).unwrap();
        assert_eq!((all.targets.as_slice(), all.seconds, all.replay), (&known[..], SECONDS, None));
        let one = asked(&["tc", "--seconds", "7"], &known).unwrap();
        assert_eq!((one.targets, one.seconds), (vec!["tc".to_owned()], 7));
        for wrong in [&["tx"][..], &["--seconds", "0"], &["--seconds"], &["--replay", "x"]] {
            assert!(matches!(asked(wrong, &known), Err(Failure::Usage(_))), "{wrong:?}");
        }
    }

    #[test]
    fn every_target_is_built_and_has_a_corpus() {
        let root = crate::root();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        for name in targets(&root).unwrap() {
            assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name}");
            assert!(root.join("fuzz/corpus").join(&name).is_dir(), "{name}");
        }
    }
}
