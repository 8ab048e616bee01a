//! The experiment's Python classes, its reference page and its JSON Schema, all from `crates/experiment`'s types.

use crate::Failure;
use crate::output::{MARK, Output};
use crate::pages::{cell, holds, sentence};
use crate::python::{capitalised, docstring, identifier};
use crate::schema::{Field, Kind, Model, Shape, Type, Variant};
use dragstrip_experiment::Experiment;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub fn all() -> Result<Vec<Output>, Failure> {
    let schema = Experiment::schema();
    let model = Model::read(&schema);
    let published = serde_json::to_string_pretty(&draft_7(schema))
        .map_err(|error| Failure::Usage(format!("the schema cannot be written: {error}")))?;
    Ok(vec![
        Output { path: "docs/reference/experiment.schema.json", text: published + "\n" },
        Output { path: "docs/reference/experiment.md", text: page(&model) },
        Output { path: "python/dragstrip/experiment/parts.py", text: classes(&model) },
    ])
}

/// The schema in draft 7, which editors of TOML read.
fn draft_7(mut schema: Value) -> Value {
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    let Value::Object(mut table) = schema else { unreachable!("a schema is an object") };
    let definitions = table.shift_remove("$defs").unwrap_or_default();
    table.insert("definitions".to_owned(), definitions);
    let text = Value::Object(table).to_string().replace("#/$defs/", "#/definitions/");
    serde_json::from_str(&text).unwrap_or_default()
}

/// A type's name without the ending by which Rust knows it.
fn plain(name: &str) -> &str {
    name.strip_suffix("Form").unwrap_or(name)
}

// --- the reference page -------------------------------------------------------------------------

fn page(model: &Model) -> String {
    let mut text = format!(
        "{MARK}# The experiment file\n\n\
         What one TOML file of the catalogue holds, what `dragstrip compare --show` writes, and what the classes of\n\
         `dragstrip.experiment` take in Python. Quantities are text with a unit in tc's words: `10mbit`, `40ms`,\n\
         `200kb`, `1%`. Unknown fields are errors. `experiment.schema.json` beside this page is its JSON Schema: an\n\
         editor completes a file whose first line is `#:schema` and the schema's path or address.\n"
    );
    for kind in from_the_top(model) {
        let name = plain(&kind.name);
        let _ = write!(text, "\n## {name}\n\n{}\n", sentence(&kind.description));
        match &kind.shape {
            Shape::Struct(fields) => fields_table(&mut text, fields),
            Shape::Words(words) => {
                text.push_str("\n| value | meaning |\n|---|---|\n");
                for (word, description) in words {
                    let _ = writeln!(text, "| `\"{word}\"` | {} |", cell(&sentence(description)));
                }
            }
            Shape::Union { tag, variants } => {
                for variant in variants {
                    let about = sentence(&variant.description);
                    let _ = write!(text, "\n### `{tag} = \"{}\"`\n\n{about}\n", variant.word);
                    if !variant.fields.is_empty() {
                        fields_table(&mut text, &variant.fields);
                    }
                }
            }
            Shape::Either(kinds) => {
                let type_links: Vec<String> = kinds.iter().map(linked).collect();
                let _ = write!(text, "\nIt is {}.\n", type_links.join(" or "));
            }
        }
    }
    text
}

/// All types, each after the first that has a field of it.
pub fn from_the_top(model: &Model) -> Vec<&Type> {
    let mut ordered: Vec<&Type> = model.types.iter().rev().take(1).collect();
    let mut at = 0;
    while let Some(kind) = ordered.get(at) {
        let mut type_names = Vec::new();
        match &kind.shape {
            Shape::Struct(fields) => {
                fields.iter().for_each(|field| names(&field.kind, &mut type_names))
            }
            Shape::Union { variants, .. } => {
                let fields = variants.iter().flat_map(|variant| &variant.fields);
                fields.for_each(|field| names(&field.kind, &mut type_names));
            }
            Shape::Either(kinds) => kinds.iter().for_each(|kind| names(kind, &mut type_names)),
            Shape::Words(_) => {}
        }
        for name in type_names {
            let definition = model.types.iter().find(|definition| definition.name == name);
            ordered.extend(
                definition.filter(|definition| {
                    !ordered.iter().any(|entry| entry.name == definition.name)
                }),
            );
        }
        at += 1;
    }
    ordered
}

/// The types that a kind names.
fn names<'a>(kind: &'a Kind, found: &mut Vec<&'a str>) {
    match kind {
        Kind::Named(name) => found.push(name),
        Kind::List(inner) | Kind::Map(inner) => names(inner, found),
        Kind::Either(kinds) => kinds.iter().for_each(|kind| names(kind, found)),
        Kind::Bool
        | Kind::Text
        | Kind::Number
        | Kind::Integer { .. }
        | Kind::Quantity(_)
        | Kind::Any => {}
    }
}

fn fields_table(text: &mut String, fields: &[Field]) {
    text.push_str("\n| field | holds | default | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let default = match &field.default {
            None => "mandatory".to_owned(),
            Some(Value::Null) => String::new(),
            Some(Value::String(empty)) if empty.is_empty() => String::new(),
            Some(Value::Array(none)) if none.is_empty() => String::new(),
            Some(Value::Object(none)) if none.is_empty() => String::new(),
            Some(value) => format!("`{value}`"),
        };
        let (name, type_text) = (&field.name, linked(&field.kind));
        let _ = writeln!(
            text,
            "| `{name}` | {type_text} | {default} | {} |",
            cell(&sentence(&field.description))
        );
    }
}

/// Type of a field, with links to the headings of this page.
fn linked(kind: &Kind) -> String {
    match kind {
        Kind::Named(name) => format!("[{0}](#{1})", plain(name), plain(name).to_lowercase()),
        Kind::List(inner) => format!("list of {}", linked(inner)),
        Kind::Map(inner) => format!("table: name to {}", linked(inner)),
        Kind::Either(kinds) => kinds.iter().map(linked).collect::<Vec<_>>().join(" or "),
        Kind::Bool | Kind::Text | Kind::Number | Kind::Integer { .. } | Kind::Quantity(_) => {
            holds(kind)
        }
        Kind::Any => "any value".to_owned(),
    }
}

// --- the Python classes -------------------------------------------------------------------------

const HEADER: &str = r#""""The parts of an experiment as Python classes. Generated: `cargo xtask generate`.

Do not edit: fields, defaults and documentation are those of crates/experiment/src/types.rs. Values are what a TOML
file would hold: quantities are text with a unit (`rate="10mbit"`). The core checks them when an experiment is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal, TypeAlias

from dragstrip.experiment.part import Entries, Named, One, Part, Reader, Tagged, part
"#;

fn classes(model: &Model) -> String {
    let mut text = HEADER.to_owned();
    let mut exported: BTreeSet<String> = BTreeSet::new();
    for kind in &model.types {
        let name = plain(&kind.name);
        match &kind.shape {
            Shape::Struct(fields) => {
                // The experiment itself has methods: `types.py` adds them.
                let name = if name == "Experiment" { "ExperimentFields" } else { name };
                class(&mut text, model, name, &kind.description, None, fields);
                exported.insert(name.to_owned());
            }
            Shape::Words(words) => {
                let listed: Vec<String> =
                    words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                let line = format!("{name}: TypeAlias = Literal[{}]", listed.join(", "));
                if line.chars().count() <= 110 {
                    let _ = writeln!(text, "\n\n{line}");
                } else {
                    let _ = writeln!(
                        text,
                        "\n\n{name}: TypeAlias = Literal[\n    {},\n]",
                        listed.join(",\n    ")
                    );
                }
                let _ = writeln!(text, "\"\"\"{}\"\"\"", sentence(&kind.description));
                exported.insert(name.to_owned());
            }
            Shape::Union { tag, variants } => {
                let mut names = Vec::new();
                for variant in variants {
                    let variant_class = class_name(name, variant, &exported);
                    let tag = Some((tag.as_str(), variant.word.as_str(), name));
                    class(
                        &mut text,
                        model,
                        &variant_class,
                        &variant.description,
                        tag,
                        &variant.fields,
                    );
                    exported.insert(variant_class.clone());
                    names.push((variant.word.clone(), variant_class));
                }
                let listed: Vec<&str> = names.iter().map(|(_, class)| class.as_str()).collect();
                let _ = writeln!(text, "\n\n{name}: TypeAlias = {}", listed.join(" | "));
                docstring_at(&mut text, &kind.description);
                let pairs: Vec<String> = names
                    .iter()
                    .map(|(word, class)| format!("    \"{word}\": {class},\n"))
                    .collect();
                let constant = tag_table(name);
                let _ = write!(
                    text,
                    "{constant}: Mapping[str, type[Part]] = {{\n{}}}\n\"\"\"Kind → class.\"\"\"\n",
                    pairs.concat()
                );
                exported.insert(name.to_owned());
            }
            Shape::Either(kinds) => {
                let listed: Vec<String> = kinds.iter().map(annotation).collect();
                let _ = writeln!(text, "\n\n{name}: TypeAlias = \"{}\"", listed.join(" | "));
                let _ = writeln!(text, "\"\"\"{}\"\"\"", sentence(&kind.description));
                exported.insert(name.to_owned());
            }
        }
    }
    text.push_str("\n__all__ = [\n");
    for name in exported {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text.push_str("]\n");
    text
}

/// The name of a union's variant: its own, or with the union's where another union has one of that name.
fn class_name(union: &str, variant: &Variant, used_names: &BTreeSet<String>) -> String {
    let camel: String = variant.word.split('_').map(capitalised).collect();
    // `Program` is an algorithm as a text (python/dragstrip/experiment/programs.py).
    let is_used = used_names.contains(&camel) || camel == "Program";
    if is_used { format!("{camel}{union}") } else { camel }
}

fn tag_table(name: &str) -> String {
    format!("{}S", name.to_uppercase())
}

fn class(
    text: &mut String,
    model: &Model,
    name: &str,
    description: &str,
    tag: Option<(&str, &str, &str)>,
    fields: &[Field],
) {
    let _ = write!(text, "\n\n@part\nclass {name}(Part):\n");
    docstring(text, &sentence(description));
    if tag.is_some() || !fields.is_empty() {
        text.push('\n');
    }
    if let Some((tag, word, union)) = tag {
        let _ = writeln!(text, "    {tag}: Literal[\"{word}\"] = \"{word}\"");
        docstring(text, &format!("Selects this {} in an experiment.", union.to_lowercase()));
    }
    for field in fields {
        let (own, _) = identifier(&field.name);
        let mut annotation = annotation(&field.kind);
        if field.optional {
            annotation.push_str(" | None");
        }
        let _ = writeln!(text, "    {own}: {annotation}{}", default(model, field));
        docstring(text, &sentence(&field.description));
    }
    let nested: Vec<String> = fields
        .iter()
        .filter_map(|field| Some((identifier(&field.name).0, reader(model, &field.kind)?)))
        .map(|(name, reader)| format!("        \"{name}\": {reader},\n"))
        .collect();
    if !nested.is_empty() {
        let _ = write!(
            text,
            "\n    READERS: ClassVar[Mapping[str, Reader]] = {{\n{}    }}\n",
            nested.concat()
        );
    }
}

/// Reader of the parts within a field; none if a field has none.
fn reader(model: &Model, kind: &Kind) -> Option<String> {
    match kind {
        Kind::List(inner) => Some(format!("Entries({})", reader(model, inner)?)),
        Kind::Map(inner) => Some(format!("Named({})", reader(model, inner)?)),
        Kind::Named(name) => {
            let definition = model.types.iter().find(|definition| definition.name == *name)?;
            match &definition.shape {
                Shape::Struct(_) => Some(format!("One({})", plain(name))),
                Shape::Union { .. } => Some(format!("Tagged({})", tag_table(plain(name)))),
                Shape::Either(kinds) => kinds.iter().find_map(|kind| reader(model, kind)),
                Shape::Words(_) => None,
            }
        }
        Kind::Either(kinds) => kinds.iter().find_map(|kind| reader(model, kind)),
        Kind::Bool
        | Kind::Text
        | Kind::Number
        | Kind::Integer { .. }
        | Kind::Quantity(_)
        | Kind::Any => None,
    }
}

fn annotation(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Text | Kind::Quantity(_) => "str".to_owned(),
        Kind::Number => "float".to_owned(),
        Kind::Integer { .. } => "int".to_owned(),
        Kind::List(inner) => format!("list[{}]", annotation(inner)),
        Kind::Map(inner) => format!("dict[str, {}]", annotation(inner)),
        Kind::Either(kinds) => kinds.iter().map(annotation).collect::<Vec<_>>().join(" | "),
        Kind::Named(name) => plain(name).to_owned(),
        Kind::Any => "Any".to_owned(),
    }
}

fn default(model: &Model, field: &Field) -> String {
    let key = match identifier(&field.name) {
        (_, Some(name)) => format!("metadata={{\"key\": \"{name}\"}}"),
        (_, None) => String::new(),
    };
    let comma = if key.is_empty() { "" } else { ", " };
    match &field.default {
        None if key.is_empty() => String::new(),
        None => format!(" = field({key})"),
        Some(Value::Array(_)) => format!(" = field(default_factory=list{comma}{key})"),
        Some(Value::Object(fields)) => {
            let factory = match &field.kind {
                Kind::Named(name) => {
                    let definition = model.types.iter().find(|definition| definition.name == *name);
                    match definition.map(|definition| &definition.shape) {
                        Some(Shape::Union { tag, variants }) => {
                            let word = fields[tag].as_str().unwrap_or_default();
                            let variant = variants.iter().find(|candidate| candidate.word == word);
                            variant.map_or_else(String::new, |variant| capitalised(&variant.word))
                        }
                        _ => plain(name).to_owned(),
                    }
                }
                Kind::Map(_)
                | Kind::List(_)
                | Kind::Bool
                | Kind::Text
                | Kind::Number
                | Kind::Integer { .. }
                | Kind::Quantity(_)
                | Kind::Either(_)
                | Kind::Any => "dict".to_owned(),
            };
            format!(" = field(default_factory={factory}{comma}{key})")
        }
        Some(value) => {
            let literal = match value {
                Value::Null => "None".to_owned(),
                Value::Bool(true) => "True".to_owned(),
                Value::Bool(false) => "False".to_owned(),
                Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    value.to_string()
                }
            };
            if key.is_empty() {
                format!(" = {literal}")
            } else {
                format!(" = field(default={literal}, {key})")
            }
        }
    }
}

/// A docstring below a name of the module.
fn docstring_at(text: &mut String, description: &str) {
    let mut indented = String::new();
    docstring(&mut indented, &sentence(description));
    for line in indented.lines() {
        let _ = writeln!(text, "{}", line.strip_prefix("    ").unwrap_or(line));
    }
}
