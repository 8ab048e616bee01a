//! Appearance of charts, for a page.

use crate::refused::{self, Refused};
use dragstrip_display as display;
use dragstrip_display::tables::DASHES;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// Colour and dash pattern of each flow's curves as JSON, a list of `{colour, dash}` with colours by name; `algorithms` are the
/// flows' algorithms, a list of texts as JSON.
///
/// # Errors
/// No such list.
#[wasm_bindgen]
pub fn curve_styles(algorithms: &str) -> Result<String, Refused> {
    let algorithms: Vec<&str> = serde_json::from_str(algorithms)
        .map_err(|_| refused::wrong("algorithms", algorithms, "a JSON list of texts"))?;
    let colours = display::colours(&algorithms);
    let dashes = display::dashes(&colours);
    let styles = colours.iter().zip(dashes);
    let styles = styles.map(|(colour, at)| json!({"colour": colour, "dash": DASHES[at]}));
    Ok(styles.collect::<Value>().to_string())
}

/// The colour of each phase or limit as JSON, a list of names; `words` is a list of texts as JSON.
///
/// # Errors
/// No such list.
#[wasm_bindgen]
pub fn strip_colours(words: &str) -> Result<String, Refused> {
    let words: Vec<&str> = serde_json::from_str(words)
        .map_err(|_| refused::wrong("words", words, "a JSON list of texts"))?;
    Ok(json!(display::strip_colours(&words)).to_string())
}

/// The axis of a panel as JSON, `{title, unit, divisor, high, share}`; `greatest` is the panel's greatest value in base units.
///
/// # Errors
/// No such panel.
#[wasm_bindgen]
pub fn panel_axis(panel: &str, greatest: f64) -> Result<String, Refused> {
    let axis = display::axis(panel, greatest)
        .ok_or_else(|| refused::wrong("panel", panel, "a panel over time"))?;
    let display::Axis { title, unit, divisor, high, is_share } = axis;
    Ok(json!({"title": title, "unit": unit, "divisor": divisor, "high": high, "share": is_share})
        .to_string())
}
