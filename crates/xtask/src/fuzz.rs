//! `fuzz`: builds the targets of `fuzz/` for libFuzzer and runs them, each for some seconds or executions.
//!
//! Without either it repeats the same inputs on every machine: a check of what was found before. New inputs
//! come with `--seconds` or `--executions`, whose seed is drawn.

use crate::Failure;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// Default number of inputs for a target, and their seed.
const REPEATED: u64 = 5_000;
const REPEATED_SEED: u64 = 1;
/// A single input may take this long, in seconds, and the process this much memory, in MiB.
const INPUT_SECONDS: u64 = 10;
const MEMORY_MIB: u64 = 1024;
/// Inputs are no longer than this, in bytes.
const BYTES_MAX: u64 = 16_384;
/// A summary quotes so much of a failing target's output.
const WHAT_LINES: usize = 30;

/// Compiler flags for libFuzzer: counters on edges, and the operands of comparisons.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Parsed command line.
#[derive(Debug, PartialEq, Eq)]
struct FuzzOptions {
    targets: Vec<String>,
    /// A run ends after so many seconds or inputs, whichever comes first; with neither it repeats.
    seconds: Option<u64>,
    executions: Option<u64>,
    /// Works in a temporary folder and prints the summary that tests/torture/README.md describes.
    summary: bool,
    replay: Option<PathBuf>,
}

pub fn run(arguments: &[&str], root: &Path) -> Result<String, Failure> {
    let target_names = targets(root)?;
    let options = parse_options(arguments, &target_names)?;
    let folder = root.join("fuzz");
    let repeats =
        options.seconds.is_none() && options.executions.is_none() && options.replay.is_none();
    let profile = if repeats { "repeated" } else { "release" };
    let programs = build(&folder, &root.join("target/fuzz"), profile)?;
    if let Some(file) = &options.replay {
        let exit = Command::new(programs.join(&options.targets[0])).arg(file).status();
        return match exit {
            Ok(status) if status.success() => Ok(format!("{} passes", file.display())),
            _ => Err(Failure::Found(format!("{} still fails", file.display()))),
        };
    }
    if options.summary {
        return summary(&folder, &programs, &options);
    }
    let mut results = Vec::new();
    for name in &options.targets {
        let ran = run_target(&folder, &folder, &programs.join(name), name, &options)?;
        let count = ran.count;
        match ran.failure {
            None => results.push(format!("{name}: {count} inputs, no failure")),
            Some(failure) => {
                let (output, replay) = (&failure.output, failure.replay(name));
                return Err(Failure::Found(format!("{output}\n{name} failed; again:\n{replay}")));
            }
        }
    }
    Ok(results.join("\n"))
}

/// Runs the one target and describes it in a line of JSON.
fn summary(folder: &Path, programs: &Path, options: &FuzzOptions) -> Result<String, Failure> {
    let [name] = options.targets.as_slice() else {
        return Err(Failure::Usage("--summary: name one target".to_owned()));
    };
    let began = Instant::now();
    let place = std::env::temp_dir().join(format!("dragstrip-fuzz-{name}-{}", std::process::id()));
    let ran = run_target(folder, &place, &programs.join(name), name, options)?;
    let failed = ran.failure.is_some();
    if !failed {
        let _ = fs::remove_dir_all(&place);
    }
    let failures: Vec<_> = ran
        .failure
        .into_iter()
        .map(|failure| {
            let lines: Vec<&str> = failure.output.lines().collect();
            let output_tail = lines[lines.len().saturating_sub(WHAT_LINES)..].join("\n");
            json!({"replay": failure.replay(name), "what": output_tail})
        })
        .collect();
    let mut outcomes = json!({"held": ran.count - u64::from(failed)});
    if ran.pauses > 0 {
        outcomes["held when tried again, the machine had stood still"] = json!(ran.pauses);
    }
    let line = json!({
        "kind": format!("fuzz-{name}"),
        "wanted": options.executions.unwrap_or(ran.count),
        "tried": ran.count,
        "failures": failures,
        "outcomes": outcomes,
        "skipped": null,
        "seconds": began.elapsed().as_secs(),
    });
    if failed { Err(Failure::Reported(line.to_string())) } else { Ok(line.to_string()) }
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

fn parse_options(arguments: &[&str], target_names: &[String]) -> Result<FuzzOptions, Failure> {
    let mut options = FuzzOptions {
        targets: Vec::new(),
        seconds: None,
        executions: None,
        summary: false,
        replay: None,
    };
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "--seconds" => {
                options.seconds = Some(positive(argument, rest.next())?);
            }
            "--executions" => options.executions = Some(positive(argument, rest.next())?),
            "--summary" => options.summary = true,
            "--replay" => {
                let file =
                    rest.next().ok_or_else(|| Failure::Usage("--replay: a file".to_owned()))?;
                options.replay = Some(PathBuf::from(file));
            }
            name if target_names.iter().any(|target| target == name) => {
                options.targets.push(name.to_owned())
            }
            other => {
                return Err(Failure::Usage(format!(
                    "{other}: expected one of {}",
                    target_names.join(", ")
                )));
            }
        }
    }
    if options.replay.is_some() && options.targets.len() != 1 {
        return Err(Failure::Usage(
            "--replay: name the one target that the input is for".to_owned(),
        ));
    }
    if options.targets.is_empty() {
        options.targets = target_names.to_vec();
    }
    Ok(options)
}

/// The whole number above 0 that an option is given.
fn positive(option: &str, value: Option<&&str>) -> Result<u64, Failure> {
    value
        .and_then(|text| text.parse().ok())
        .filter(|&number: &u64| number > 0)
        .ok_or_else(|| Failure::Usage(format!("{option}: a whole number above 0")))
}

/// Compiles all targets in a profile of `fuzz/Cargo.toml`; gives the folder that they are in.
fn build(folder: &Path, target: &Path, profile: &str) -> Result<PathBuf, Failure> {
    let version = Command::new("rustc").arg("-vV").output();
    let version = version.map_err(|error| Failure::Usage(format!("rustc: {error}")))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    // Named even where it is the host: flags for a target do not reach build scripts.
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let exit = Command::new("cargo")
        .args(["build", "--quiet", "--locked", "--profile", profile, "--target", host])
        .arg("--target-dir")
        .arg(target)
        .current_dir(folder)
        .env("RUSTFLAGS", FLAGS)
        .status();
    match exit {
        Ok(status) if status.success() => Ok(target.join(host).join(profile)),
        _ => Err(Failure::Usage(
            "the fuzz targets do not build (they need a C++ compiler)".to_owned(),
        )),
    }
}

/// A failure found by a run: the output, and the input that failed.
struct FuzzFailure {
    output: String,
    input: String,
}

impl FuzzFailure {
    fn replay(&self, name: &str) -> String {
        format!("cargo xtask fuzz {name} --replay {}", self.input)
    }

    /// The input took longer than it may.
    fn is_late(&self) -> bool {
        self.output.contains("ERROR: libFuzzer: timeout")
    }
}

/// Result of a target's run.
#[derive(Default)]
struct Ran {
    count: u64,
    /// Inputs that were late once and not when tried again: the machine stood still.
    pauses: u64,
    failure: Option<FuzzFailure>,
}

/// Runs a target from its corpus; what it finds and what fails is kept in `place`.
fn run_target(
    folder: &Path,
    place: &Path,
    program: &Path,
    name: &str,
    options: &FuzzOptions,
) -> Result<Ran, Failure> {
    let failures = place.join("failures").join(name);
    let repeats = options.seconds.is_none() && options.executions.is_none();
    let new_inputs = if repeats {
        std::env::temp_dir().join(format!("dragstrip-fuzz-{name}-{}", std::process::id()))
    } else {
        place.join("found").join(name)
    };
    for place in [&new_inputs, &failures] {
        fs::create_dir_all(place)
            .map_err(|error| Failure::Usage(format!("{}: {error}", place.display())))?;
    }
    let began = Instant::now();
    let mut all = Ran::default();
    loop {
        let mut command = Command::new(program);
        command
            .args([
                format!("-timeout={INPUT_SECONDS}"),
                format!("-rss_limit_mb={MEMORY_MIB}"),
                format!("-max_len={BYTES_MAX}"),
                format!("-artifact_prefix={}/", failures.display()),
                "-print_final_stats=1".to_owned(),
                "-verbosity=0".to_owned(),
            ])
            .args(options.seconds.map(|seconds| {
                let remaining = seconds.saturating_sub(began.elapsed().as_secs());
                format!("-max_total_time={}", remaining.max(1))
            }))
            .args(options.executions.map(|count| format!("-runs={}", count - all.count)));
        if repeats {
            command.args([format!("-runs={REPEATED}"), format!("-seed={REPEATED_SEED}")]);
        }
        command.args([&new_inputs, &folder.join("corpus").join(name)]);
        let output = command
            .output()
            .map_err(|error| Failure::Usage(format!("{}: {error}", program.display())))?;
        let ran = ran(&output);
        all.count += ran.count;
        all.failure = ran.failure;
        if !all.failure.as_ref().is_some_and(|late| late.is_late() && passes(program, &late.input))
        {
            break;
        }
        all.pauses += 1;
        all.failure = None;
        let over = options.executions.is_some_and(|count| all.count >= count);
        let late = options.seconds.is_some_and(|seconds| began.elapsed().as_secs() >= seconds);
        if repeats || over || late {
            break;
        }
    }
    if repeats {
        let _ = fs::remove_dir_all(&new_inputs);
    }
    Ok(all)
}

/// True when an input finishes in time on its own.
fn passes(program: &Path, input: &str) -> bool {
    let limit = format!("-timeout={INPUT_SECONDS}");
    let output = Command::new(program).arg(limit).arg(input).output();
    output.is_ok_and(|output| output.status.success())
}

/// Reads what libFuzzer printed.
fn ran(output: &Output) -> Ran {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = stderr
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    if output.status.success() {
        return Ran { count, ..Ran::default() };
    }
    let input_path = stderr.lines().find_map(|line| line.split("Test unit written to ").nth(1));
    let input = input_path.unwrap_or("no input was kept").trim().to_owned();
    Ran { count: count.max(1), pauses: 0, failure: Some(FuzzFailure { output: stderr, input }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read() {
        let target_names = ["script", "tc"].map(str::to_owned);
        let all = parse_options(&[], &target_names).unwrap();
        assert_eq!(
            (all.targets.as_slice(), all.seconds, all.replay),
            (&target_names[..], None, None)
        );
        let options = parse_options(&["tc", "--seconds", "7"], &target_names).unwrap();
        assert_eq!((options.targets, options.seconds), (vec!["tc".to_owned()], Some(7)));
        let options =
            parse_options(&["tc", "--executions", "1000", "--summary"], &target_names).unwrap();
        assert_eq!((options.executions, options.summary), (Some(1000), true));
        for wrong in [
            &["tx"][..],
            &["--seconds", "0"],
            &["--seconds"],
            &["--replay", "x"],
            &["--executions", "many"],
        ] {
            assert!(
                matches!(parse_options(wrong, &target_names), Err(Failure::Usage(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn output_of_a_target_is_parsed() {
        use std::os::unix::process::ExitStatusExt;
        let output = |status, stderr: &str| Output {
            status: std::process::ExitStatus::from_raw(status),
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
        };
        let fine = ran(&output(0, "Done\nstat::number_of_executed_units: 4321\n"));
        assert_eq!((fine.count, fine.failure.is_none()), (4321, true));
        let failed = ran(&output(77 << 8, "panic\nTest unit written to /tmp/x/crash-1\n"));
        assert_eq!(failed.count, 1);
        let failure = failed.failure.unwrap();
        assert!(!failure.is_late());
        assert_eq!(failure.replay("tc"), "cargo xtask fuzz tc --replay /tmp/x/crash-1");
        let late = ran(&output(70 << 8, "==7== ERROR: libFuzzer: timeout after 10 seconds\n"));
        assert!(late.failure.unwrap().is_late());
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
