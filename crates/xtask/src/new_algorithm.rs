//! `new-algorithm NAME`: a congestion control to start from.
//!
//! It compiles, is documented, tested, registered and raceable at once, and behaves as Reno until
//! its author changes it (docs/new-algorithm.md). With `--bpf` there is a second one, for the real kernel.

use crate::skeleton::{Names, changed, format_files, names, with_module};
use crate::{Failure, read, write};
use std::path::{Path, PathBuf};

const ALGORITHMS: &str = "crates/cc/src/algorithms";
const REGISTRY: &str = "crates/cc/src/registry.rs";
const BPF: &str = "bpf";

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
    let new_modules = with_module(&old_modules, &names)?;
    let new_registry = with_registration(&old_registry, &names)?;
    write(&file, &names.filled(include_str!("new_algorithm.rs.txt")))?;
    write(&modules, &new_modules)?;
    write(&registry, &new_registry)?;
    format_files(&[&file, &modules, &registry])?;
    Ok(format!(
        "wrote {ALGORITHMS}/{}.rs and registered {name:?}\n\
         next: cargo test --locked -p dragstrip-cc {}, then cargo xtask generate (docs/new-algorithm.md)",
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
