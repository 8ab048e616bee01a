//! What the commands share that write a file to start from: names, the list of modules, the layout.

use crate::Failure;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// `TCP_CA_NAME_MAX` is 16 with the terminating zero: the same name must fit a kernel module. An interface's discipline may be as long (`IFNAMSIZ`).
const NAME_LETTERS_MAX: usize = 15;
/// Names that Rust or a crate already uses for something else.
const TAKEN: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "algorithm",
    "core",
    "std",
    "test",
];

/// What the files call the new algorithm or discipline.
pub struct Names<'a> {
    /// In scenarios: `my-cc`.
    pub registered: &'a str,
    /// File and module: `my_cc`.
    pub module: String,
    /// Type: `MyCc`.
    pub kind: String,
}

impl Names<'_> {
    /// A skeleton with these names in it.
    pub fn filled(&self, skeleton: &str) -> String {
        skeleton
            .replace("{name}", self.registered)
            .replace("{module}", &self.module)
            .replace("{Kind}", &self.kind)
    }
}

/// The names that files and types get from `name`.
pub fn names(name: &str) -> Result<Names<'_>, Failure> {
    let parts: Vec<&str> = name.split(['-', '_']).collect();
    let plain = |part: &&str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts_well || !parts.iter().all(plain) || name.len() > NAME_LETTERS_MAX {
        return Err(Failure::Usage(format!(
            "{name:?} cannot be a name: lowercase letters, digits and single - or _ between them, at most \
             {NAME_LETTERS_MAX} in all, a letter first"
        )));
    }
    let module = parts.join("_");
    if TAKEN.contains(&module.as_str()) {
        return Err(Failure::Usage(format!(
            "{name:?} is a word of the language: choose another name"
        )));
    }
    let capitalised = |part: &&str| part[..1].to_ascii_uppercase() + &part[1..];
    Ok(Names { registered: name, module, kind: parts.iter().map(capitalised).collect() })
}

/// The sources are not as this command knows them.
pub fn changed(what: &str) -> Failure {
    Failure::Usage(format!("{what} is not where this command expects it"))
}

/// What `pub mod NAME;` names, by which the lines are sorted.
pub fn module_of(line: &str) -> &str {
    line.trim_start_matches("pub mod ").trim_end_matches(';')
}

/// A module's first file with one `pub mod` line more, sorted.
pub fn with_module(modules: &str, names: &Names) -> Result<String, Failure> {
    let listed = format!("pub mod {};", names.module);
    let is_module = |line: &str| line.starts_with("pub mod ");
    let mut lines: Vec<&str> = modules.lines().collect();
    let last = lines.iter().rposition(|line| is_module(line));
    let last = last.ok_or_else(|| changed("the list of modules in mod.rs"))?;
    let at = lines
        .iter()
        .position(|line| is_module(line) && module_of(line) > module_of(&listed))
        .unwrap_or(last + 1);
    lines.insert(at, &listed);
    Ok(lines.join("\n") + "\n")
}

/// Writes all of the files or none: each is written whole beside its place and only then takes it, so that a full disk leaves
/// what was there. Rust is laid out as `cargo fmt` does, whatever the name's length.
pub fn write_all(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    let mut made = Made::default();
    for (path, text) in files {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let text = if is_rust { formatted(text)? } else { text.clone() };
        made.draft(path, &text)
            .map_err(|error| Failure::Found(format!("{}: {error}", path.display())))?;
    }
    for (path, _) in files {
        fs::rename(draft_of(path), path)
            .map_err(|error| Failure::Found(format!("{}: {error}", path.display())))?;
    }
    made.kept = true;
    Ok(())
}

/// What [`write_all`] has made so far; removed again unless it is kept.
#[derive(Default)]
struct Made {
    drafts: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    kept: bool,
}

impl Made {
    fn draft(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let mut folders: Vec<_> = path.ancestors().skip(1).take_while(missing).collect();
        folders.reverse();
        for folder in folders {
            fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        let draft = draft_of(path);
        self.drafts.push(draft.clone());
        fs::write(draft, text)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for draft in &self.drafts {
            let _ = fs::remove_file(draft);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("draft")
}

/// The house's layout of a Rust file.
fn formatted(text: &str) -> Result<String, Failure> {
    let failed = |error| Failure::Found(format!("rustfmt cannot be started: {error}"));
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(crate::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = rustfmt.stdin.take() {
        stdin.write_all(text.as_bytes()).map_err(failed)?;
    }
    let output = rustfmt.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Found(format!("rustfmt is not content:\n{message}")));
    }
    String::from_utf8(output.stdout).map_err(|error| Failure::Found(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    /// The last file cannot be written, for a folder has its draft's name: the others stay as they were.
    #[test]
    fn all_files_are_written_or_none() {
        let place = env::temp_dir().join(format!("dragstrip-all-or-none-{}", std::process::id()));
        fs::create_dir_all(place.join("last.draft")).unwrap();
        fs::write(place.join("old.txt"), "old").unwrap();
        let files = ["old.txt", "new/deep/own.txt", "last.txt"]
            .map(|name| (place.join(name), "new".to_owned()));
        assert!(matches!(write_all(&files), Err(Failure::Found(_))));
        assert_eq!(fs::read_to_string(place.join("old.txt")).unwrap(), "old");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2, "no draft, no folder");
        fs::remove_dir(place.join("last.draft")).unwrap();
        write_all(&files).unwrap();
        assert_eq!(fs::read_to_string(place.join("old.txt")).unwrap(), "new");
        assert_eq!(fs::read_to_string(place.join("new/deep/own.txt")).unwrap(), "new");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 3);
        fs::remove_dir_all(&place).unwrap();
    }
}

#[cfg(test)]
pub mod testing;
