//! Maintenance commands.
//!
//! Scope: `generate` (the JSON Schema, the Python classes and the reference pages, from
//! the Rust types), `fuzz` and `tidy`. Out of scope: anything a user of Dragstrip needs. Exit codes: 0 done,
//! 1 something is stale or untidy, 2 a mistake on the command line.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this program's work is files; the bans are for the core crates"
)]

mod citations;
mod experiment;
mod fuzz;
mod generate;
mod layers;
mod look;
mod measures;
mod names;
mod output;
mod pages;
mod profiles;
mod python;
mod race;
mod recording;
mod result;
mod schema;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask generate [--check]     write (or only compare) schema, Python classes and pages
       cargo xtask fuzz [TARGET ...] [--seconds N] [--executions N]   fuzz the parsers; with neither, the same inputs each time
       cargo xtask fuzz TARGET --summary             in a temporary folder; prints one line of JSON
       cargo xtask fuzz TARGET --replay FILE         run a target on one input
       cargo xtask tidy                   check what the compiler does not";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments, &root()) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(Failure::Usage(message)) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
        Err(Failure::Found(message)) => {
            eprintln!("{message}");
            ExitCode::from(1)
        }
        Err(Failure::Reported(line)) => {
            println!("{line}");
            ExitCode::from(1)
        }
    }
}

/// Why a command failed.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The command line is wrong, or a file cannot be read or written.
    Usage(String),
    /// The tree is not as it should be.
    Found(String),
    /// The same, in the line that the command prints for programs.
    Reported(String),
}

fn run(arguments: &[&str], root: &Path) -> Result<String, Failure> {
    match arguments {
        ["generate"] => generate::write(root),
        ["generate", "--check"] => generate::check(root),
        ["fuzz", rest @ ..] => fuzz::run(rest, root),
        ["tidy"] => tidy::check(root),
        _ => Err(Failure::Usage(USAGE.to_owned())),
    }
}

/// The checkout this program was compiled in.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_a_usage_error() {
        for arguments in [&[][..], &["generat"], &["generate", "--chek"], &["tidy", "all"]] {
            assert_eq!(run(arguments, &root()), Err(Failure::Usage(USAGE.to_owned())));
        }
    }
}
