//! `new-algorithm NAME`: a congestion control to start from.
//!
//! It compiles, is documented, tested, registered and raceable at once, and behaves as Reno until
//! its author changes it (docs/how-to/new-algorithm.md). With `--bpf` there is a second one, for the real kernel.

use crate::skeleton::{Names, changed, names, with_module, write_all};
use crate::{Failure, read};
use std::path::{Path, PathBuf};

const ALGORITHMS: &str = "crates/cc/src/algorithms";
const REGISTRY: &str = "crates/cc/src/registry.rs";
const BPF: &str = "bpf";

/// Writes the file and the two registrations; nothing is written if anything is wrong.
pub fn create(root: &Path, name: &str) -> Result<String, Failure> {
    let names = names(name)?;
    write_all(&planned(root, &names)?)?;
    Ok(next(&names))
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
    let mut files = if known { Vec::new() } else { planned(root, &names)? };
    files.push((program, names.filled(include_str!("new_algorithm.bpf.c.txt"))));
    write_all(&files)?;
    let first = if known { String::new() } else { next(&names) + "\n" };
    Ok(format!(
        "{first}wrote {BPF}/{module}.bpf.c\n\
         next: dragstrip compare --engine vm --load {BPF}/{module}.bpf.c ... reno {module} (docs/how-to/vm.md)"
    ))
}

/// The file and the two registrations.
fn planned(root: &Path, names: &Names) -> Result<Vec<(PathBuf, String)>, Failure> {
    let file = rust_file(root, names);
    let modules = root.join(ALGORITHMS).join("mod.rs");
    let registry = root.join(REGISTRY);
    let (old_modules, old_registry) = (read(&modules)?, read(&registry)?);
    let listed = format!("pub mod {};", names.module);
    let name = names.registered;
    if file.exists() || old_modules.contains(&listed) || dragstrip_cc::names().contains(&name) {
        return Err(Failure::Usage(format!("{name:?} exists already: choose another name")));
    }
    let new_modules = with_module(&old_modules, names)?;
    let new_registry = with_registration(&old_registry, names)?;
    let text = names.filled(include_str!("new_algorithm.rs.txt"));
    Ok(vec![(file, text), (modules, new_modules), (registry, new_registry)])
}

/// What was done, and what comes next.
fn next(names: &Names) -> String {
    let Names { registered, module, kind: _ } = names;
    format!(
        "wrote {ALGORITHMS}/{module}.rs and registered {registered:?}\n\
         next: cargo test --locked -p dragstrip-cc {module}, then cargo xtask generate (docs/how-to/new-algorithm.md)"
    )
}

fn rust_file(root: &Path, names: &Names) -> PathBuf {
    root.join(ALGORITHMS).join(format!("{}.rs", names.module))
}

/// A line at the end of `algorithms! { ... }`.
fn with_registration(registry: &str, names: &Names) -> Result<String, Failure> {
    let invocation = "\nalgorithms! {\n";
    let (before, table) =
        registry.split_once(invocation).ok_or_else(|| changed("`algorithms! {` in registry.rs"))?;
    let (table, after) =
        table.split_once("\n}").ok_or_else(|| changed("the end of `algorithms! {`"))?;
    let Names { registered: _, module, kind } = names;
    Ok(format!("{before}{invocation}{table}\n    {module}: {kind},\n}}{after}"))
}

#[cfg(test)]
mod tests;
