//! Congestion controls that a request brings along: compiled BPF programs, put into the kernel by a program that
//! comes with them (bpf/load.c). They stay until the machine ends.

use crate::fault::{Fault, fault, refusal};
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of the verifier's log that a fault tells; the reason stands at its end.
const LOG_LINES: usize = 8;

/// A file behind a request.
#[derive(Deserialize)]
pub struct Part {
    name: String,
    bytes: usize,
}

/// Registers the algorithms in `raw`; the first part is the loader.
pub fn register(parts: &[Part], raw: &[u8]) -> Result<(), Fault> {
    let folder = std::env::temp_dir().join("dragstrip-load");
    let files = unpack(&folder, parts, raw)?;
    let Some((loader, objects)) = files.split_first() else { return Ok(()) };
    fs::set_permissions(loader, fs::Permissions::from_mode(0o755))?;
    for object in objects {
        let done = Command::new(loader).arg("register").arg(object).output()?;
        if !done.status.success() {
            let name = object.file_stem().unwrap_or_default().to_string_lossy();
            let said = String::from_utf8_lossy(&done.stderr);
            let expected = format!("a program that this kernel takes: {}", reason(&said));
            return refusal(format!("load {name}"), "", expected);
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn unpack(folder: &Path, parts: &[Part], raw: &[u8]) -> Result<Vec<PathBuf>, Fault> {
    let mut rest = raw;
    let mut files = Vec::new();
    for Part { name, bytes } in parts {
        let Some((content, behind)) = rest.split_at_checked(*bytes) else {
            return fault(format!("{name}: the request ends too soon"));
        };
        fs::create_dir_all(folder)?;
        files.push(folder.join(name));
        fs::write(folder.join(name), content)?;
        rest = behind;
    }
    Ok(files)
}

/// What a person needs of libbpf's and the verifier's words, in one line: the end of the verifier's log, if there
/// is one, and the loader's own last word.
fn reason(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
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
        let said = format!(
            "libbpf: prog 'x': BPF program load failed: Permission denied\n\
             libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n{log}R1 invalid mem access\n\
             processed 9 insns\n-- END PROG LOAD LOG --\nlibbpf: failed to load object\nthe kernel does not take it\n"
        );
        let lines = reason(&said);
        assert!(
            lines.starts_with("prog 'x': BPF program load failed: Permission denied | 13: "),
            "{lines}"
        );
        assert!(lines.ends_with("R1 invalid mem access | the kernel does not take it"), "{lines}");
    }

    #[test]
    fn without_a_log_the_last_lines_are_told() {
        assert_eq!(reason("libbpf: a\n\nthe kernel has it\n"), "a | the kernel has it");
    }

    #[test]
    fn a_request_that_is_too_short_is_a_fault() {
        let folder =
            std::env::temp_dir().join(format!("dragstrip-load-test-{}", std::process::id()));
        let parts = |sizes: &[usize]| -> Vec<Part> {
            let part = |(at, bytes): (usize, &usize)| Part { name: at.to_string(), bytes: *bytes };
            sizes.iter().enumerate().map(part).collect()
        };
        let files = unpack(&folder, &parts(&[2, 3]), b"abcde").unwrap();
        assert_eq!(fs::read(&files[1]).unwrap(), b"cde");
        assert!(unpack(&folder, &parts(&[2, 4]), b"abcde").is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
