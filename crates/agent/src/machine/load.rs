//! Congestion controls that come with a request: compiled BPF programs, loaded into the kernel by a program that comes
//! with them (bpf/load.c). They stay until the machine ends, or for the duration of the run.

use super::grant::Programs;
use crate::fault::{Fault, fault, refusal};
use crate::sys;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

/// Lines of the verifier's log in a fault; the reason is at its end.
const LOG_LINES: usize = 8;

/// A file after a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    name: String,
    bytes: usize,
}

impl Part {
    /// Its bytes after the request.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The algorithm in it, after which it is called.
    pub fn algorithm(&self) -> &str {
        self.name.rsplit_once('.').map_or(self.name.as_str(), |(stem, _)| stem)
    }
}

/// Congestion controls that are in the kernel until this is dropped, or this process ends.
pub struct Held(Vec<Child>);

impl Drop for Held {
    fn drop(&mut self) {
        for loader in &mut self.0 {
            drop(loader.stdin.take());
            let _ = loader.wait(); // it is gone either way
        }
    }
}

/// Puts the algorithms in `raw` into the kernel; the first part is the loader.
pub fn install(parts: &[Part], raw: &[u8], stay: Programs) -> Result<Option<Held>, Fault> {
    let files = unpack(parts, raw)?;
    let Some(((_, loader), objects)) = files.split_first() else { return Ok(None) };
    let order = match stay {
        Programs::ForGood => "register",
        Programs::ForTheRun => "hold",
    };
    let mut holders = Held(Vec::new());
    for (part, (_, object)) in parts.iter().skip(1).zip(objects) {
        let mut command = Command::new(place(loader));
        command.arg(order).arg(place(object));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut started = command.spawn()?;
        let mut word = String::new();
        if let Some(stdout) = &mut started.stdout {
            BufReader::new(stdout).read_line(&mut word)?;
        }
        // A holder stays as long as this process keeps it, and ends early only if it has failed.
        if word.trim() == HELD {
            holders.0.push(started);
            continue;
        }
        let output = started.wait_with_output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let expected = format!("a program that this kernel takes: {}", reason(&stderr));
            return refusal(format!("load {}", part.algorithm()), "", expected);
        }
    }
    Ok(Some(holders))
}

/// The loader's word when it holds an algorithm in the kernel.
const HELD: &str = "held";

/// Path under which a child process opens a file in memory.
fn place(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Each part's name, and its content in memory: nothing of it is left on a disk, however this process ends.
fn unpack(parts: &[Part], raw: &[u8]) -> Result<Vec<(String, File)>, Fault> {
    let mut rest = raw;
    let mut files = Vec::new();
    for Part { name, bytes } in parts {
        let Some((content, behind)) = rest.split_at_checked(*bytes) else {
            return fault(format!("{name}: the request ends too soon"));
        };
        let mut file = sys::memory_file(name)?;
        file.write_all(content)?;
        files.push((name.clone(), file));
        rest = behind;
    }
    Ok(files)
}

/// Summarises the messages of libbpf and the verifier in one line: the end of the verifier's log, if there is one, and
/// the loader's last message.
fn reason(messages: &str) -> String {
    let lines: Vec<&str> =
        messages.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let log: Vec<&str> = lines
        .iter()
        .copied()
        .skip_while(|line| !line.contains("BEGIN PROG LOAD LOG"))
        .skip(1)
        .take_while(|line| !line.contains("END PROG LOAD LOG"))
        .filter(|line| !line.starts_with("processed "))
        .collect();
    let failed = lines.iter().find(|line| line.contains("BPF program load failed"));
    let lines = if log.is_empty() {
        lines[lines.len().saturating_sub(4)..].to_vec()
    } else {
        let end = &log[log.len().saturating_sub(LOG_LINES)..];
        failed.into_iter().chain(end).chain(lines.last()).copied().collect()
    };
    lines.iter().map(|line| line.trim_start_matches("libbpf: ")).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_end_of_the_verifiers_log() {
        let log: String = (0..20).map(|number| format!("{number}: (b7) r0 = 0\n")).collect();
        let verifier_log = format!(
            "libbpf: prog 'x': BPF program load failed: Permission denied\n\
             libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n{log}R1 invalid mem access\n\
             processed 9 insns\n-- END PROG LOAD LOG --\nlibbpf: failed to load object\nthe kernel does not take it\n"
        );
        let lines = reason(&verifier_log);
        assert!(
            lines.starts_with("prog 'x': BPF program load failed: Permission denied | 13: "),
            "{lines}"
        );
        assert!(lines.ends_with("R1 invalid mem access | the kernel does not take it"), "{lines}");
    }

    #[test]
    fn without_a_log_the_last_lines_are_reported() {
        assert_eq!(reason("libbpf: a\n\nthe kernel has it\n"), "a | the kernel has it");
    }

    #[test]
    fn a_request_that_is_too_short_is_a_fault() {
        let parts = |sizes: &[usize]| -> Vec<Part> {
            let part = |(at, bytes): (usize, &usize)| Part { name: at.to_string(), bytes: *bytes };
            sizes.iter().enumerate().map(part).collect()
        };
        let files = unpack(&parts(&[2, 3]), b"abcde").unwrap();
        assert_eq!(std::fs::read(place(&files[1].1)).unwrap(), b"cde");
        assert!(unpack(&parts(&[2, 4]), b"abcde").is_err());
    }
}
