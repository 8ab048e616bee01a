//! Layers: no crate depends on one above it, and inside a crate no two modules need each other.
//!
//! Modules are compared with their siblings, folder by folder: what `sender/ack.rs` needs of `receiver/mod.rs`
//! counts as `sender` → `receiver`. A folder's first file may be used by what is in the folder, and uses it.

use crate::{Failure, read};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// The crates from the lowest layer up; each knows only those before it.
const ORDER: &[&str] = &[
    "units",
    "display",
    "recording",
    "packet",
    "cc",
    "qdisc",
    "link",
    "tcp",
    "scenario",
    "experiment",
    "measures",
    "capture",
    "inspect",
    "conformance",
    "player",
    "rtp",
    "ngtcp2",
    "quic",
    "sim",
    "learn",
    "strip",
    "agent",
    "lockstep",
    "testkit",
    "py",
    "play",
    "page",
    "xtask",
];

type Module = Vec<String>;

/// Lists the dependencies that point upwards or form a circle; `cargo xtask tidy` reports them.
pub fn complaints(root: &Path) -> Result<Vec<String>, Failure> {
    let mut complaints = Vec::new();
    let folder = root.join("crates");
    let entries = fs::read_dir(&folder)
        .map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for name in names {
        complaints.extend(upward(&name, &read(&folder.join(&name).join("Cargo.toml"))?));
        let modules = modules(&folder.join(&name).join("src"))?;
        complaints.extend(cycles(&modules).iter().map(|cycle| format!("crates/{name}: {cycle}")));
    }
    Ok(complaints)
}

/// Dependencies of a crate on those above it; a crate that has no place in the order.
fn upward(name: &str, manifest: &str) -> Vec<String> {
    let Some(level) = ORDER.iter().position(|member| *member == name) else {
        return vec![format!(
            "crates/{name} has no place in the order of layers (xtask/src/layers.rs)"
        )];
    };
    // Dependencies of tests (`dev-dependencies`) may be on a higher layer.
    let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    normal
        .lines()
        .filter_map(|line| line.strip_prefix("dragstrip-")?.split(['.', ' ', '=']).next())
        .filter(|dependency| {
            ORDER.iter().position(|member| member == dependency).is_none_or(|at| at >= level)
        })
        .map(|dependency| format!("crates/{name} depends on {dependency}, which is above it"))
        .collect()
}

/// A module's own text, by its path inside the crate; unit tests are not included.
fn modules(source: &Path) -> Result<BTreeMap<Module, syn::File>, Failure> {
    let mut sources = BTreeMap::new();
    let mut folders = vec![(source.to_path_buf(), Module::new())];
    while let Some((folder, path)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().map(|entry| entry.path()) {
            let stem = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut module = path.clone();
            if entry.is_dir() {
                module.push(stem);
                folders.push((entry, module));
                continue;
            }
            if entry.extension().is_none_or(|ending| ending != "rs") || stem == "tests" {
                continue;
            }
            if !["mod", "lib", "main"].contains(&stem.as_str()) {
                module.push(stem);
            }
            let text = read(&entry)?;
            let file = syn::parse_file(&text)
                .map_err(|error| Failure::Usage(format!("{}: {error}", entry.display())))?;
            sources.insert(module, file);
        }
    }
    Ok(sources)
}

/// Sibling modules that depend on each other, with the arrows between them.
fn cycles(modules: &BTreeMap<Module, syn::File>) -> Vec<String> {
    let summaries: BTreeMap<&Module, ModuleReferences> = modules
        .iter()
        .map(|(module, file)| {
            let mut summary =
                ModuleReferences { module: module.clone(), ..ModuleReferences::default() };
            summary.visit_file(file);
            (module, summary)
        })
        .collect();
    // Folder → sibling → the siblings it needs.
    let mut levels: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, its) in &summaries {
        for path in &its.paths {
            let target = resolve(path, &summaries);
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < target.len() {
                let level = levels.entry(module[..common].to_vec()).or_default();
                level.entry(module[common].clone()).or_default().insert(target[common].clone());
            }
        }
    }
    let mut complaints = Vec::new();
    for (folder, needs) in &levels {
        for (from, to) in needs.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)))
        {
            if reaches(needs, to, from) {
                let place = if folder.is_empty() { ".".to_owned() } else { folder.join("/") };
                complaints.push(format!("in {place}, {from} needs {to}, which needs {from}"));
            }
        }
    }
    complaints
}

fn reaches(needs: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut visited = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        if at == to {
            return true;
        }
        if visited.insert(at) {
            waiting.extend(needs.get(at).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// The module that a path leads into, through what modules re-export.
fn resolve(path: &Module, summaries: &BTreeMap<&Module, ModuleReferences>) -> Module {
    let mut path = path.clone();
    for _ in 0..8 {
        let depth =
            (0..=path.len()).rev().find(|&depth| summaries.contains_key(&path[..depth].to_vec()));
        let depth = depth.unwrap_or(0);
        let module = path[..depth].to_vec();
        let passed_on = path
            .get(depth)
            .and_then(|name| summaries.get(&module).and_then(|summary| summary.exports.get(name)))
            .cloned();
        let Some(mut target) = passed_on else { return module };
        target.extend_from_slice(&path[depth + 1..]);
        path = target;
    }
    path
}

/// Paths that one module names of its own crate, and names that it re-exports.
#[derive(Default)]
struct ModuleReferences {
    module: Module,
    paths: BTreeSet<Module>,
    exports: BTreeMap<String, Module>,
}

impl ModuleReferences {
    /// The path from the crate's root; none if it leads out of the crate or is a local name.
    fn rooted(&self, names: &[String]) -> Option<Module> {
        let first = names.first()?;
        if !["crate", "super", "self"].contains(&first.as_str()) {
            return None;
        }
        let mut base = if first == "crate" { Module::new() } else { self.module.clone() };
        let mut rest = names;
        while let Some(word) =
            rest.first().filter(|word| ["crate", "super", "self"].contains(&word.as_str()))
        {
            if word == "super" {
                base.pop();
            }
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn add(&mut self, names: &[String]) {
        if let Some(path) = self.rooted(names) {
            self.paths.insert(path);
        }
    }

    fn visit_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, passed_on: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.visit_use(&path.tree, before, passed_on);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.visit_use(item, before, passed_on);
                }
            }
            syn::UseTree::Name(name) => {
                self.record_use(&name.ident, &name.ident, before, passed_on)
            }
            syn::UseTree::Rename(name) => {
                self.record_use(&name.ident, &name.rename, before, passed_on)
            }
            syn::UseTree::Glob(_) => self.add(&before.clone()),
        }
    }

    fn record_use(
        &mut self,
        name: &syn::Ident,
        exported: &syn::Ident,
        before: &[String],
        passed_on: bool,
    ) {
        let mut names = before.to_vec();
        if name != "self" {
            names.push(name.to_string());
        }
        self.add(&names);
        if passed_on {
            // A child may be named without `self`.
            let below = || self.module.iter().chain(&names).cloned().collect();
            let target = self.rooted(&names).unwrap_or_else(below);
            self.exports.insert(exported.to_string(), target);
        }
    }
}

impl<'ast> Visit<'ast> for ModuleReferences {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let for_tests = item.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
        });
        if !for_tests {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let passed_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.visit_use(&item.tree, &mut Vec::new(), passed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        // A macro's words are its own business: look for paths that begin at the root.
        let text = item.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            if word.starts_with("crate::") {
                let names: Vec<String> =
                    word.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
                self.add(&names);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> BTreeMap<Module, syn::File> {
        let module =
            |path: &str| path.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect();
        files.iter().map(|(path, text)| (module(path), syn::parse_file(text).unwrap())).collect()
    }

    #[test]
    fn mutually_dependent_siblings_are_reported() {
        let first_module = ("a", "use crate::b::B;");
        for back in [
            "use crate::a::A;",
            "fn f() { crate::a::g() }",
            "fn f() { m!(x, crate::a::A) }",
            "use super::A;",
        ] {
            let modules =
                crate_of(&[("", "pub use a::A; mod a; mod b;"), first_module, ("b", back)]);
            assert_eq!(cycles(&modules).len(), 2, "{back}");
        }
    }

    #[test]
    fn a_folder_counts_as_one_among_its_siblings() {
        let files = [("a/x", "use crate::b::y::Y;"), ("a/z", ""), ("b/y", "use crate::a::z::Z;")];
        assert_eq!(cycles(&crate_of(&files)).len(), 2);
    }

    #[test]
    fn one_direction_is_not_a_cycle_nor_are_tests_or_the_folders_first_file() {
        let tested = "#[cfg(test)] mod tests { use crate::a::A; }";
        let modules =
            crate_of(&[("", "use a::A;"), ("a", "use crate::b::B; use crate::C;"), ("b", tested)]);
        assert_eq!(cycles(&modules), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_on_a_higher_layer_is_reported() {
        let manifest = "[dependencies]\ndragstrip-sim.workspace = true\n[dev-dependencies]\ndragstrip-py = 1\n";
        assert_eq!(upward("tcp", manifest), ["crates/tcp depends on sim, which is above it"]);
        assert_eq!(upward("py", manifest), Vec::<String>::new());
        assert_eq!(upward("new", "").len(), 1);
    }
}
