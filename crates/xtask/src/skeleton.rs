//! What the commands share that write a file to start from: names, the list of modules, the layout.

use crate::Failure;
use std::path::Path;
use std::process::Command;

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
            "{name:?} cannot be a name: small letters, digits, and single - or _ between them, at most \
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

/// A module's first file with one `pub mod` line more, sorted.
pub fn with_module(modules: &str, names: &Names) -> Result<String, Failure> {
    let listed = format!("pub mod {};", names.module);
    let is_module = |line: &str| line.starts_with("pub mod ");
    let mut lines: Vec<&str> = modules.lines().collect();
    let last = lines.iter().rposition(|line| is_module(line));
    let last = last.ok_or_else(|| changed("the list of modules in mod.rs"))?;
    let at = lines
        .iter()
        .position(|line| is_module(line) && *line > listed.as_str())
        .unwrap_or(last + 1);
    lines.insert(at, &listed);
    Ok(lines.join("\n") + "\n")
}

/// The house's layout, so that `cargo fmt --check` is content whatever the name's length.
pub fn format_files(files: &[&Path]) -> Result<(), Failure> {
    let formatted = Command::new("rustfmt").args(["--edition", "2024"]).args(files).output();
    match formatted {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Failure::Found(format!("rustfmt is not content:\n{message}")))
        }
        Err(error) => Err(Failure::Found(format!("rustfmt cannot be started: {error}"))),
    }
}

#[cfg(test)]
pub mod testing;
