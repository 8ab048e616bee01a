//! The Python classes: pydantic models, strictly typed, with the descriptions as docstrings.

use crate::schema::{Field, Kind, Model, Shape, Type, Variant};
use serde_json::Value;
use std::fmt::Write as _;

/// pyproject.toml's line length.
const WIDTH: usize = 110;

const HEADER: &str = r#""""The scenario: one concrete run, as the engines take it. Generated: `cargo xtask generate`.

Do not edit: the types are defined in crates/scenario/src/types.rs. Quantities are in base units, named
by the suffix (`_ns`, `_bps`, `_bytes`); what they must satisfy beyond their type is checked by the core.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

UInt64 = Annotated[int, Field(strict=True, ge=0, lt=2**64)]
UInt32 = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Int32 = Annotated[int, Field(strict=True, ge=-(2**31), lt=2**31)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Model(BaseModel):
    """What all parts have in common: no unknown fields, no changes, both names of a renamed field."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, use_attribute_docstrings=True
    )

    def to_json(self) -> str:
        """The JSON that the engines read, with every default written out."""
        return self.model_dump_json(by_alias=True)
"#;

pub fn module(model: &Model) -> String {
    let mut text = HEADER.to_owned();
    let mut exported = vec!["Model".to_owned()];
    let mut recursive = Vec::new();
    for kind in &model.types {
        match &kind.shape {
            Shape::Struct(fields) => {
                class(&mut text, model, &kind.name, &kind.description, None, fields);
                exported.push(kind.name.clone());
            }
            Shape::Words(words) => alias_of_words(&mut text, kind, words),
            Shape::Either(_) => panic!("a scenario has no field of several kinds: {}", kind.name),
            Shape::Union { tag, variants } => {
                for variant in variants {
                    let name = class_name(kind, variant);
                    let tag = Some((tag.as_str(), variant.word.as_str()));
                    class(&mut text, model, &name, &variant.description, tag, &variant.fields);
                    if variant.fields.iter().any(|field| refers_to(&field.kind, &kind.name)) {
                        recursive.push(name.clone());
                    }
                    exported.push(name);
                }
                alias_of_union(&mut text, kind, tag, variants);
            }
        }
        if !matches!(kind.shape, Shape::Struct(_)) {
            exported.push(kind.name.clone());
        }
    }
    text.push_str("\n\n");
    for name in recursive {
        let _ = writeln!(text, "{name}.model_rebuild()");
    }
    exported.sort_unstable();
    text.push_str("\n__all__ = [\n");
    for name in exported {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text.push_str("]\n");
    text
}

fn refers_to(kind: &Kind, name: &str) -> bool {
    match kind {
        Kind::Named(referred) => referred == name,
        Kind::List(inner) | Kind::Map(inner) => refers_to(inner, name),
        Kind::Bool
        | Kind::Text
        | Kind::Number
        | Kind::Integer { .. }
        | Kind::Quantity(_)
        | Kind::Either(_)
        | Kind::Any => false,
    }
}

/// `QdiscSpec`'s `fq_codel` is `FqCodelQdisc`.
fn class_name(union: &Type, variant: &Variant) -> String {
    let stem = union.name.trim_end_matches("Spec").trim_end_matches("Model");
    let camel: String = variant.word.split('_').map(capitalised).collect();
    format!("{camel}{stem}")
}

pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn class(
    text: &mut String,
    model: &Model,
    name: &str,
    description: &str,
    tag: Option<(&str, &str)>,
    fields: &[Field],
) {
    let _ = write!(text, "\n\nclass {name}(Model):\n    \"\"\"{description}\"\"\"\n");
    if tag.is_some() || !fields.is_empty() {
        text.push('\n');
    }
    if let Some((tag, word)) = tag {
        let _ = writeln!(text, "    {tag}: Literal[\"{word}\"] = \"{word}\"");
    }
    for field in fields {
        let (identifier, alias) = identifier(&field.name);
        let mut annotation = annotation(&field.kind);
        if field.optional {
            annotation.push_str(" | None");
        }
        let value = value(model, field, alias);
        let _ = writeln!(text, "    {identifier}: {annotation}{value}");
        docstring(text, &field.description);
    }
}

/// Indented, on several lines when one does not hold it.
pub fn docstring(text: &mut String, description: &str) {
    let description = description.replace('\n', " ");
    let whole = format!("    \"\"\"{description}\"\"\"");
    if whole.chars().count() <= WIDTH {
        let _ = writeln!(text, "{whole}");
        return;
    }
    let mut line = "    \"\"\"".to_owned();
    for word in description.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = "    ".to_owned();
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(text, "{}\n    \"\"\"", line.trim_end());
}

/// A name that Python reserves gets an underscore, and the schema's name as its alias.
pub fn identifier(name: &str) -> (String, Option<&str>) {
    const RESERVED: &[&str] = &["from", "import", "in", "is", "lambda", "global", "with", "as"];
    if RESERVED.contains(&name) {
        (format!("{name}_"), Some(name))
    } else {
        (name.to_owned(), None)
    }
}

fn annotation(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "StrictBool".to_owned(),
        Kind::Text => "StrictStr".to_owned(),
        Kind::Number => "Number".to_owned(),
        Kind::Integer { bits, signed: false } => format!("UInt{bits}"),
        Kind::Integer { bits, signed: true } => format!("Int{bits}"),
        Kind::List(inner) => format!("list[{}]", annotation(inner)),
        Kind::Map(inner) => format!("dict[StrictStr, {}]", annotation(inner)),
        Kind::Named(name) => name.clone(),
        Kind::Quantity(_) | Kind::Either(_) | Kind::Any => {
            panic!("a scenario has numbers in base units, each of one kind")
        }
    }
}

/// Text after the annotation: ` = default` and the like.
fn value(model: &Model, field: &Field, alias: Option<&str>) -> String {
    let alias = alias.map(|alias| format!("alias=\"{alias}\""));
    // A list that is left out where it is empty.
    let none = Value::Array(Vec::new());
    let left_out = matches!(field.kind, Kind::List(_)) && !field.optional;
    let default = field.default.as_ref();
    let default = default.map(|value| if left_out && value.is_null() { &none } else { value });
    match (default, alias) {
        (None, None) => String::new(),
        (None, Some(alias)) => format!(" = Field({alias})"),
        (Some(default), None) => format!(" = {}", literal(model, &field.kind, default)),
        (Some(default), Some(alias)) => {
            format!(" = Field(default={}, {alias})", literal(model, &field.kind, default))
        }
    }
}

fn literal(model: &Model, kind: &Kind, default: &Value) -> String {
    match default {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(word) => format!("\"{word}\""),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(fields) => match kind {
            Kind::Named(name) => format!("{}()", default_class(model, name, default)),
            Kind::Map(_) if fields.is_empty() => "{}".to_owned(),
            Kind::Map(_)
            | Kind::List(_)
            | Kind::Bool
            | Kind::Text
            | Kind::Number
            | Kind::Integer { .. }
            | Kind::Quantity(_)
            | Kind::Either(_)
            | Kind::Any => panic!("a default of an unknown form: {default}"),
        },
    }
}

/// The class whose defaults this is: the type itself, or the variant that the tag names.
fn default_class(model: &Model, name: &str, default: &Value) -> String {
    let kind = model.types.iter().find(|kind| kind.name == name).expect("a known type");
    match &kind.shape {
        Shape::Struct(_) => name.to_owned(),
        Shape::Union { tag, variants } => {
            let word = default[tag].as_str().expect("the default names its variant");
            let variant = variants.iter().find(|variant| variant.word == word);
            class_name(kind, variant.expect("a known variant"))
        }
        Shape::Words(_) | Shape::Either(_) => panic!("an object cannot be the default of {name}"),
    }
}

fn alias_of_words(text: &mut String, kind: &Type, words: &[(String, String)]) {
    let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let _ = writeln!(text, "\n\n{}: TypeAlias = Literal[{}]", kind.name, list.join(", "));
    let _ = writeln!(text, "\"\"\"{}\"\"\"", kind.description);
}

fn alias_of_union(text: &mut String, kind: &Type, tag: &str, variants: &[Variant]) {
    let names: Vec<String> = variants.iter().map(|variant| class_name(kind, variant)).collect();
    let one_line = format!("    {},", names.join(" | "));
    let _ = writeln!(text, "\n\n{}: TypeAlias = Annotated[", kind.name);
    if one_line.len() <= WIDTH {
        let _ = writeln!(text, "{one_line}");
    } else {
        let _ = writeln!(text, "    {},", names.join("\n    | "));
    }
    let _ = writeln!(text, "    Field(discriminator=\"{tag}\"),\n]");
    let _ = writeln!(text, "\"\"\"{}\"\"\"", kind.description);
}
