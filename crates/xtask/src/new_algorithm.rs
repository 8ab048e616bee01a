//! `new-algorithm NAME`: a congestion control to start from.
//!
//! It compiles, is documented, tested, registered and raceable at once, and behaves as Reno until
//! its author changes it (docs/new-algorithm.md). With `--bpf` there is a second one, for the real kernel.

use crate::{Failure, read, write};
use std::path::{Path, PathBuf};
use std::process::Command;

const ALGORITHMS: &str = "crates/cc/src/algorithms";
const REGISTRY: &str = "crates/cc/src/registry.rs";
const BPF: &str = "bpf";
/// `TCP_CA_NAME_MAX` is 16 with the terminating zero: the same name must fit a kernel module.
const NAME_LETTERS_MAX: usize = 15;
/// Names that Rust or this crate already uses for something else.
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

/// What the files call the new algorithm.
struct Names<'a> {
    /// In scenarios: `my-cc`.
    registered: &'a str,
    /// File and module: `my_cc`.
    module: String,
    /// Type: `MyCc`.
    kind: String,
}

impl Names<'_> {
    /// A skeleton with these names in it.
    fn filled(&self, skeleton: &str) -> String {
        skeleton
            .replace("{name}", self.registered)
            .replace("{module}", &self.module)
            .replace("{Kind}", &self.kind)
    }
}

/// Writes the file and the two registrations; nothing is written if anything is wrong.
pub fn create(root: &Path, name: &str) -> Result<String, Failure> {
    let names = names(name)?;
    let file = rust_file(root, &names);
    let modules = root.join(ALGORITHMS).join("mod.rs");
    let registry = root.join(REGISTRY);
    let (old_modules, old_registry) = (read(&modules)?, read(&registry)?);
    let listed = format!("pub mod {};", names.module);
    let known = dragstrip_cc::names().contains(&name);
    if file.exists() || old_modules.contains(&listed) || known {
        return Err(Failure::Usage(format!("{name:?} exists already: choose another name")));
    }
    let new_modules = with_module(&old_modules, &listed)?;
    let new_registry = with_registration(&old_registry, &names)?;
    write(&file, &names.filled(include_str!("new_algorithm.rs.txt")))?;
    write(&modules, &new_modules)?;
    write(&registry, &new_registry)?;
    format_files(&[&file, &modules, &registry])?;
    Ok(format!(
        "wrote {ALGORITHMS}/{}.rs and registered {name:?}\n\
         next: cargo test -p dragstrip-cc {}, then cargo xtask generate (docs/new-algorithm.md)",
        names.module, names.module
    ))
}

/// Writes what [`create`] does, unless it is there, and a BPF program for the kernel.
pub fn create_both(root: &Path, name: &str) -> Result<String, Failure> {
    let names = names(name)?;
    let module = &names.module;
    let program = root.join(BPF).join(format!("{module}.bpf.c"));
    if program.exists() {
        return Err(Failure::Usage(format!(
            "{BPF}/{module}.bpf.c exists already: choose another name"
        )));
    }
    let known = rust_file(root, &names).exists();
    let first = if known { String::new() } else { create(root, name)? + "\n" };
    write(&program, &names.filled(include_str!("new_algorithm.bpf.c.txt")))?;
    Ok(format!(
        "{first}wrote {BPF}/{module}.bpf.c\n\
         next: dragstrip compare --engine vm --load {BPF}/{module}.bpf.c ... reno {module} (docs/vm.md)"
    ))
}

fn rust_file(root: &Path, names: &Names) -> PathBuf {
    root.join(ALGORITHMS).join(format!("{}.rs", names.module))
}

fn names(name: &str) -> Result<Names<'_>, Failure> {
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

fn changed(what: &str) -> Failure {
    Failure::Usage(format!("{what} is not where this command expects it"))
}

/// `pub mod` lines, sorted.
fn with_module(modules: &str, listed: &str) -> Result<String, Failure> {
    let is_module = |line: &str| line.starts_with("pub mod ");
    let mut lines: Vec<&str> = modules.lines().collect();
    let last = lines.iter().rposition(|line| is_module(line));
    let last = last.ok_or_else(|| changed("the list of modules in algorithms/mod.rs"))?;
    let at = lines.iter().position(|line| is_module(line) && *line > listed).unwrap_or(last + 1);
    lines.insert(at, listed);
    Ok(lines.join("\n") + "\n")
}

/// The module in the `use`, and a line at the end of `algorithms! { ... }`.
fn with_registration(registry: &str, names: &Names) -> Result<String, Failure> {
    let start = "use crate::algorithms::{";
    let (before, list) = registry
        .split_once(start)
        .ok_or_else(|| changed("`use crate::algorithms::{...}` in registry.rs"))?;
    let (list, after) = list.split_once("};").ok_or_else(|| changed("the end of that `use`"))?;
    let mut modules: Vec<&str> =
        list.split(',').map(str::trim).filter(|module| !module.is_empty()).collect();
    modules.push(&names.module);
    modules.sort_unstable();
    let registry = format!("{before}{start}{}}};{after}", modules.join(", "));
    let invocation = "\nalgorithms! {\n";
    let (before, table) =
        registry.split_once(invocation).ok_or_else(|| changed("`algorithms! {` in registry.rs"))?;
    let (table, after) =
        table.split_once("\n}").ok_or_else(|| changed("the end of `algorithms! {`"))?;
    let Names { registered: _, module, kind } = names;
    Ok(format!("{before}{invocation}{table}\n    {module}: {kind},\n}}{after}"))
}

/// The house's layout, so that `cargo fmt --check` is content whatever the name's length.
fn format_files(files: &[&Path]) -> Result<(), Failure> {
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
mod tests;
