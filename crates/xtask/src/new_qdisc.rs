//! `new-qdisc NAME`: a queue discipline to start from.
//!
//! It compiles, is documented, tested, registered and usable at once, and behaves as a pfifo until
//! its author changes it (docs/how-to/new-qdisc.md).

use crate::skeleton::{Names, changed, names, with_module, write_all};
use crate::{Failure, read};
use std::path::Path;

const DISCIPLINES: &str = "crates/qdisc/src/disciplines";

/// Writes the folder and the two lines of the registry; nothing is written if anything is wrong.
pub fn create(root: &Path, name: &str) -> Result<String, Failure> {
    let names = names(name)?;
    // The kernel's names have underscores, and JSON's are made of the type's: no part may begin with a digit.
    if name.contains('-')
        || name.split('_').any(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Err(Failure::Usage(format!(
            "{name:?} cannot be a discipline: parts are joined by _ and begin with a letter"
        )));
    }
    let module = &names.module;
    let folder = root.join(DISCIPLINES).join(module);
    let registry = root.join(DISCIPLINES).join("mod.rs");
    let known = dragstrip_qdisc::KINDS.iter().any(|kind| kind.name == name);
    if folder.exists() || known {
        return Err(Failure::Usage(format!("{name:?} exists already: choose another name")));
    }
    let new_registry = with_registration(&with_module(&read(&registry)?, &names)?, &names)?;
    let (model, spec) = (folder.join("mod.rs"), folder.join("spec.rs"));
    write_all(&[
        (model, names.filled(include_str!("new_qdisc.mod.rs.txt"))),
        (spec, names.filled(include_str!("new_qdisc.spec.rs.txt"))),
        (registry, new_registry),
    ])?;
    Ok(format!(
        "wrote {DISCIPLINES}/{module}/ and registered {name:?}\n\
         next: cargo test --locked -p dragstrip-qdisc {module}, then cargo xtask generate (docs/how-to/new-qdisc.md)"
    ))
}

/// A line at the end of `disciplines! { ... }`.
fn with_registration(registry: &str, names: &Names) -> Result<String, Failure> {
    let invocation = "\ndisciplines! {\n";
    let (before, table) = registry
        .split_once(invocation)
        .ok_or_else(|| changed("`disciplines! {` in disciplines/mod.rs"))?;
    let (table, after) =
        table.split_once("\n}").ok_or_else(|| changed("the end of `disciplines! {`"))?;
    let Names { registered: _, module, kind } = names;
    Ok(format!("{before}{invocation}{table}\n    {kind}({module}::{kind}Spec),\n}}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;
    use crate::skeleton::testing::{Copy, cargo, changed_by, diffs};
    use std::fs;

    #[test]
    fn bad_and_existing_names_are_refused_and_nothing_is_written() {
        let tree = Copy::of("qdisc-refused", &["crates/qdisc/src"]);
        let registry = tree.text("crates/qdisc/src/disciplines/mod.rs");
        for name in [
            "", "Red", "2red", "my-red", "my_2", "a__b", "../x", "match", "pfifo", "fq_codel",
            "fifo",
        ] {
            assert!(matches!(create(&tree.0, name), Err(Failure::Usage(_))), "{name}");
        }
        assert_eq!(tree.text("crates/qdisc/src/disciplines/mod.rs"), registry);
    }

    /// The promise: the new folder compiles, the generic model drives it, and its tests and the lints pass; so they do with
    /// the guide's change. Builds the crate once more, with the dependencies at hand.
    #[test]
    fn the_new_discipline_passes_the_generic_model_its_tests_and_the_lints() {
        let paths =
            ["crates/qdisc", "crates/packet", "crates/units", "clippy.toml", "rustfmt.toml"];
        let tree = Copy::of("qdisc-compiles", &[&paths[..], &["Cargo.lock"]].concat());
        tree.workspace(&["units", "packet", "qdisc"]);
        create(&tree.0, "my_queue").unwrap();
        assert!(matches!(create(&tree.0, "my_queue"), Err(Failure::Usage(_))), "a second time");
        create(&tree.0, "pfifo_head_drop").unwrap();
        // The guide to the letter: the lines that it says are registered, and its change to the new model.
        let guide = fs::read_to_string(root().join("docs/how-to/new-qdisc.md")).unwrap();
        let [registered, change] = diffs(&guide)[..] else { panic!("two diffs in the guide") };
        let registry = tree.text("crates/qdisc/src/disciplines/mod.rs");
        for line in registered.lines().filter(|line| !line.starts_with("+++")) {
            let line = line.strip_prefix('+').expect("lines are added, none goes");
            assert!(registry.contains(&format!("{line}\n")), "{line}");
        }
        let model = tree.0.join(DISCIPLINES).join("pfifo_head_drop/mod.rs");
        fs::write(&model, changed_by(&fs::read_to_string(&model).unwrap(), change)).unwrap();
        cargo(&tree.0, &["fmt", "--all", "--check"]);
        cargo(&tree.0, &["test", "--quiet", "--offline", "-p", "dragstrip-qdisc", "--lib"]);
        let clippy =
            ["clippy", "--quiet", "--offline", "-p", "dragstrip-qdisc", "--lib", "--tests"];
        cargo(&tree.0, &[&clippy[..], &["--", "-D", "warnings"]].concat());
    }
}
