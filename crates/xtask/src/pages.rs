//! The reference pages, from the types, the tables and the algorithms' own headers.

use crate::output::{MARK, Output};
use crate::schema::{Field, Kind, Model, Shape, Type};
use crate::{Failure, profiles, read};
use dragstrip_cc::{About, EcnMode, Needs, Parameter, Variable};
use dragstrip_scenario::{QdiscSpec, Support, Sysctl, freebsd_sysctl_table, sysctl_table};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

pub fn all(root: &Path, model: &Model) -> Result<Vec<Output>, Failure> {
    Ok(vec![
        Output { path: "docs/reference/scenario.md", text: scenario(model) },
        Output { path: "docs/reference/sysctls.md", text: sysctls() },
        Output { path: "docs/reference/profiles.md", text: profiles::page() },
        Output { path: "docs/reference/qdiscs.md", text: qdiscs(model) },
        Output { path: "docs/reference/algorithms.md", text: algorithms(root)? },
    ])
}

/// Types used before the types they consist of: the reader starts at the top.
fn scenario(model: &Model) -> String {
    let mut text = format!(
        "{MARK}# The scenario\n\n\
         One concrete run, as an engine takes it: JSON, every quantity in base units and named by its\n\
         suffix (`_ns`, `_bps`, `_bytes`). `docs/reference/scenario.schema.json` is its JSON Schema.\n\
         Unknown fields are errors. Experiments (TOML, with units) are expanded to scenarios; `dragstrip run`\n\
         keeps each run's `scenario.json`.\n"
    );
    for kind in model.types.iter().rev() {
        let _ = write!(text, "\n## {}\n\n{}\n", kind.name, sentence(&kind.description));
        match &kind.shape {
            Shape::Struct(fields) => fields_table(&mut text, fields),
            Shape::Words(words) => {
                text.push_str("\n| value | |\n|---|---|\n");
                for (word, description) in words {
                    let _ = writeln!(text, "| `\"{word}\"` | {} |", cell(description));
                }
            }
            Shape::Union { .. } => union(&mut text, kind),
            Shape::Either(_) => {}
        }
    }
    text
}

fn union(text: &mut String, kind: &Type) {
    let Shape::Union { tag, variants } = &kind.shape else { return };
    for variant in variants {
        let _ = write!(
            text,
            "\n### `{tag}`: `\"{}\"`\n\n{}\n",
            variant.word,
            sentence(&variant.description)
        );
        if !variant.fields.is_empty() {
            fields_table(text, &variant.fields);
        }
    }
}

fn fields_table(text: &mut String, fields: &[Field]) {
    text.push_str("\n| field | holds | default | |\n|---|---|---|---|\n");
    for field in fields {
        let default = match &field.default {
            None => "mandatory".to_owned(),
            Some(Value::Null) => "absent".to_owned(),
            Some(value) => format!("`{value}`"),
        };
        let holds = holds(&field.kind);
        let description = cell(&field.description);
        let _ = writeln!(text, "| `{}` | {holds} | {default} | {description} |", field.name);
    }
}

pub fn holds(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Integer { signed: false } => "whole number".to_owned(),
        Kind::Integer { signed: true } => "whole number, may be negative".to_owned(),
        Kind::List(inner) => format!("list of {}", holds(inner)),
        Kind::Map(inner) => format!("object: name to {}", holds(inner)),
        Kind::Named(name) => format!("[{name}](#{})", name.to_lowercase()),
        Kind::Quantity(quantity) => quantity.clone(),
        Kind::Either(kinds) => kinds.iter().map(holds).collect::<Vec<_>>().join(" or "),
        Kind::Any => "anything".to_owned(),
    }
}

/// A description as a separate sentence.
pub fn sentence(description: &str) -> String {
    if description.ends_with(['.', ':', '!']) {
        description.to_owned()
    } else {
        format!("{description}.")
    }
}

/// A bar would end the table's cell.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn sysctls() -> String {
    let mut text = format!(
        "{MARK}# Kernel settings\n\n\
         Set per host by the kernel's own names (`sysctl` in an experiment's hosts or a scenario's\n\
         nodes, `--sysctl KEY=VALUE` on the command line), with Linux 6.1's values and defaults. A name\n\
         that is not in this table is an error. So is a value that the simulator cannot honour: it is\n\
         refused, never ignored.\n\n"
    );
    settings_table(&mut text, &sysctl_table());
    text.push_str("\n## FreeBSD 9\n\nHosts of the profile `freebsd-9` have these instead.\n\n");
    settings_table(&mut text, &freebsd_sysctl_table());
    text.push_str(
        "\nThe congestion control is not a setting of the host here: each flow names its own (`cc`). Nor is\n\
         the queue discipline: each link names its own (`queue`, `qdisc`).\n",
    );
    text
}

fn settings_table(text: &mut String, lines: &[Sysctl]) {
    text.push_str(
        "| name | values | default | meaning | in the simulator |\n|---|---|---|---|---|\n",
    );
    for line in lines {
        let support = match line.support {
            Support::Modelled => "honoured".to_owned(),
            Support::NoEffect(reason) => format!("no effect: {reason}"),
            Support::DefaultOnly => "only the default".to_owned(),
        };
        let kind = line.kind.to_string();
        let (name, default, meaning) = (line.name, &line.default, cell(line.meaning));
        let _ =
            writeln!(text, "| `{name}` | {} | `{default}` | {meaning} | {support} |", cell(&kind));
    }
}

fn qdiscs(model: &Model) -> String {
    let classful = |kind: &&dragstrip_qdisc::Kind| (kind.words)().contains(&"leaf");
    let behind: Vec<String> = dragstrip_qdisc::KINDS
        .iter()
        .filter(classful)
        .map(|kind| format!("`{}`", kind.name))
        .collect();
    let mut text = format!(
        "{MARK}# Queue disciplines\n\n\
         Written as tc(8) writes them: `--queue \"bfifo limit 200kb\"`. Rates count in 1000s of bits\n\
         (`10mbit`; `mbps` is *bytes*), sizes in 1024s of bytes (`0.1mb` is 104,857 bytes), times need\n\
         their unit. What is left out gets the default that tc and the kernel give it. The words\n\
         of a discipline that are not listed here are refused.\n\n\
         `leaf` and another discipline's words may follow those of {}\n\
         (`htb rate 1mbit leaf codel limit 100 ecn`); `htb` stands for a class.\n",
        behind.join(" and ")
    );
    for kind in dragstrip_qdisc::KINDS {
        let dragstrip_qdisc::Kind { name, unmodelled, lines, least, notes, .. } = kind;
        let spec = QdiscSpec::parse(least).expect("the least text is accepted");
        let description = description(model, name);
        let _ = writeln!(text, "\n## {name}\n\n{description}\n");
        let lines = lines();
        if !lines.is_empty() {
            text.push_str("| words | range | default | |\n|---|---|---|---|\n");
        }
        for dragstrip_qdisc::table::Line { words, range, default, about } in &lines {
            let (words, about) = (cell(words), sentence(&cell(about)));
            let _ = writeln!(text, "| {words} | {range} | {default} | {about} |");
        }
        if !lines.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "- `{least}` means `{}`", spec.print());
        if !unmodelled.is_empty() {
            let words: Vec<String> = unmodelled.iter().map(|word| format!("`{word}`")).collect();
            let _ = writeln!(
                text,
                "- refused, for the simulator does not model it: {}",
                words.join(", ")
            );
        }
        text.push_str(notes);
    }
    text.push_str("\nThe fields of each are in [the scenario](scenario.md#qdiscspec).\n");
    text
}

fn description(model: &Model, word: &str) -> String {
    let qdisc = model.types.iter().find(|kind| kind.name == "QdiscSpec").expect("QdiscSpec");
    let Shape::Union { variants, .. } = &qdisc.shape else { panic!("QdiscSpec is a union") };
    let variant = variants.iter().find(|variant| variant.word == word);
    sentence(&variant.expect("every discipline is in the scenario").description)
}

/// Every algorithm's own header and row, in the order of the registry.
fn algorithms(root: &Path) -> Result<String, Failure> {
    let names: Vec<String> = dragstrip_cc::names().iter().map(|name| format!("`{name}`")).collect();
    let mut text = format!(
        "{MARK}# Congestion controls\n\n\
         Known by these names: {}. What follows is the header of each one's source file, what it models, its\n\
         parameters (`cc_options` of a flow) and what of its state a recording shows (`cc_state`).\n",
        names.join(", ")
    );
    for about in dragstrip_cc::about() {
        let About { name, file, models, parameters, variables, needs, .. } = *about;
        let source = read(&root.join(file))?;
        let _ = write!(text, "\n## {name}\n\n{}\n", header(&source));
        let _ = write!(text, "\nModels: {models}. Source: `{file}`.{}\n", wants(needs));
        if !parameters.is_empty() {
            text.push_str("\n| parameter | values | default | unit | meaning | source |\n|---|---|---|---|---|---|\n");
        }
        for Parameter { name, default, range, unit, meaning, source } in parameters {
            let _ = writeln!(
                text,
                "| `{name}` | {range} | {default} | {unit} | {} | {source} |",
                cell(meaning)
            );
        }
        if !variables.is_empty() {
            text.push_str("\n| shows | unit | meaning |\n|---|---|---|\n");
        }
        for Variable { name, unit, meaning } in variables {
            let _ = writeln!(text, "| `{name}` | {} | {} |", unit.suffix(), cell(meaning));
        }
    }
    Ok(text)
}

/// Services of the endpoint for an algorithm, as sentences.
fn wants(needs: Needs) -> String {
    let Needs { pacing, rtt_stamps, ecn, dice } = needs;
    let mut text = String::new();
    if pacing {
        text.push_str(" Paced by the endpoint, if no `fq` does it.");
    }
    if rtt_stamps {
        text.push_str(" RTTs in microseconds also where the kernel gives others jiffies.");
    }
    match ecn {
        EcnMode::Classic => {}
        EcnMode::Dctcp => text.push_str(" ECN as RFC 8257 has it, whatever the settings say."),
        EcnMode::L4s => {
            text.push_str(" Accurate ECN (RFC 9768) with ECT(1), whatever the settings say.");
        }
    }
    if dice {
        text.push_str(" It draws random numbers: seeds differ.");
    }
    text
}

/// The `//!` lines, without rustdoc's references to items.
fn header(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    without_item_links(lines.join("\n").trim())
}

/// "[`View`]" and "[`View`](crate::View)" → "`View`".
fn without_item_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((item, behind)) = after.split_once("`]") else {
            plain.push_str("[`");
            rest = after;
            continue;
        };
        let _ = write!(plain, "`{item}`");
        rest = behind.strip_prefix('(').and_then(|b| b.split_once(')')).map_or(behind, |(_, b)| b);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_loses_its_references_to_items() {
        let source = "//! Takes [`View`] and\n//! [`Window`](crate::Window).\n\nuse x;\n//! no";
        assert_eq!(header(source), "Takes `View` and\n`Window`.");
    }
}
