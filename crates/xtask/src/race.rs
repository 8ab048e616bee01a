//! A race's options for the command line and Python's keywords, and for the page, from `crates/experiment`'s table.

use crate::output::Output;
use dragstrip_experiment::{ALGORITHMS, OPTIONS, RaceOption, SEED_MAX, Takes};
use std::fmt::Write as _;

pub fn all() -> Vec<Output> {
    vec![
        Output { path: "python/dragstrip/experiment/race.py", text: python() },
        Output { path: "playground/src/options.ts", text: page() },
    ]
}

const HEADER: &str = r#""""The options of a race: Python's keywords and the command line's. Generated: `cargo xtask generate`.

Do not edit: the table is in crates/experiment/src/race.rs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypedDict


@dataclass(frozen=True)
class RaceOption:
    """An option: its name in Python, its word on a command line, and what it takes."""

    name: str
    word: str
    takes: Literal["text", "count", "flag", "texts", "pairs", "files"]
    metavar: str
    default: str
    """What it has where nothing is given, as text; empty: nothing."""
    help: str
    completes: str
    """What completes its values: paths, media, workloads; empty: nothing."""
    varies: str
    """The dotted path by which `vary` and `sweep` vary it; empty: they do not."""


"#;

fn python() -> String {
    let mut text = HEADER.to_owned();
    let _ = writeln!(text, "SEED_MAX = {SEED_MAX}\n\"\"\"The greatest seed.\"\"\"\n");
    let _ =
        writeln!(text, "ALGORITHMS = {}\n\"\"\"The arguments of a race.\"\"\"\n", row(&ALGORITHMS));
    text.push_str("OPTIONS: tuple[RaceOption, ...] = (\n");
    for option in OPTIONS {
        let _ = writeln!(text, "    {},", row(option).replace('\n', "\n    "));
    }
    text.push_str(
        ")\n\"\"\"All of them, in the order of help.\"\"\"\n\n\n\
         class RaceOptions(TypedDict, total=False):\n    \"\"\"Keyword arguments of `dragstrip.compare` beside the algorithms.\"\"\"\n\n",
    );
    for option in OPTIONS {
        let kind = match option.takes {
            Takes::Text if option.metavar == "TIME" => "str | timedelta | None",
            Takes::Text if option.name == "path" => "str | Path | None",
            Takes::Text => "str | None",
            Takes::Count => "int",
            Takes::Flag => "bool",
            Takes::Texts => "Sequence[str]",
            Takes::Pairs | Takes::Files => "Mapping[str, str]",
        };
        let _ = writeln!(text, "    {}: {kind}", option.name);
        let _ = writeln!(text, "    \"\"\"{}\"\"\"", option.help.replace("; repeatable", ""));
    }
    text.push_str("\n\n__all__ = [\"ALGORITHMS\", \"OPTIONS\", \"SEED_MAX\", \"RaceOption\", \"RaceOptions\"]\n");
    text
}

/// An option as a call of Python's class.
fn row(option: &RaceOption) -> String {
    let RaceOption { name, metavar, default, help, completes, .. } = option;
    let (word, takes) = (option.word(), takes(option));
    let varies = option.varies().unwrap_or_default().replace('"', "\\\"");
    let fields: [&str; 8] = [name, &word, takes, metavar, default, help, completes, &varies];
    let lines: String = fields.iter().map(|field| format!("    \"{field}\",\n")).collect();
    format!("RaceOption(\n{lines})")
}

fn takes(option: &RaceOption) -> &'static str {
    match option.takes {
        Takes::Text => "text",
        Takes::Count => "count",
        Takes::Flag => "flag",
        Takes::Texts => "texts",
        Takes::Pairs => "pairs",
        Takes::Files => "files",
    }
}

fn page() -> String {
    let mut text =
        "// The fields of the page's form. Generated: `cargo xtask generate`; the table is in \
                    crates/experiment/src/race.rs.\n\n"
            .to_owned();
    let on_page: Vec<&RaceOption> = OPTIONS.iter().filter(|option| option.on_page).collect();
    let quoted =
        |names: Vec<&str>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
    let names = quoted(on_page.iter().map(|option| option.name).collect());
    let _ = writeln!(text, "export type TextField = {};\n", names.join(" | "));
    let _ = writeln!(
        text,
        "/** Options with a field of text. */\nexport const TEXTS: readonly TextField[] = [{}];\n",
        names.join(", ")
    );
    text.push_str("/** What each option does, in one sentence. */\nexport const ABOUT: Record<TextField, string> = {\n");
    for option in on_page {
        let help = option.help.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(text, "  {}: \"{help}\",", option.name);
    }
    text.push_str("};\n");
    text
}
