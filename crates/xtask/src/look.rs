//! The appearance of charts for Python and for the page's style sheets, from `crates/display`'s tables.

use crate::output::Output;
use dragstrip_display::tables::{
    COLOURS, DASHES, HEADROOM, PALETTE, PANELS, RESERVED, STRIPS, THRESHOLD, UNITS,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub fn file() -> Output {
    let fields = [
        ("colours", table(COLOURS.iter().map(|it| (it.name, json!([it.light, it.dark]))))),
        (
            "strips",
            table(
                STRIPS.iter().map(|it| (it.colour.name, json!([it.colour.light, it.colour.dark]))),
            ),
        ),
        ("palette", json!(PALETTE).to_string()),
        ("known", table(RESERVED.iter().map(|(name, colour)| (*name, json!(colour))))),
        ("dashes", json!(DASHES).to_string()),
        ("threshold", json!(THRESHOLD).to_string()),
        ("units", table(UNITS.iter().map(|(kind, units)| (*kind, json!(units))))),
        ("panels", table(PANELS.iter().map(|it| (it.name, json!([it.title, it.units]))))),
        ("headroom", json!(HEADROOM).to_string()),
    ];
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!(" \"{name}\": {value}")).collect();
    let text = format!("{{\n{}\n}}\n", fields.join(",\n"));
    Output { path: "python/dragstrip/display/look.json", text }
}

/// An object with a line for each entry, in the order given.
fn table<'a>(entries: impl Iterator<Item = (&'a str, Value)>) -> String {
    let mut text = String::new();
    for (name, value) in entries {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}\n  \"{name}\": {value}");
    }
    format!("{{{text}\n }}")
}
