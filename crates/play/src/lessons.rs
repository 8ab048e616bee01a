//! The judge of lessons, for a page.

use crate::refused::{self, Refused};
use dragstrip_measures as measures;
use serde_json::Value;
use wasm_bindgen::prelude::wasm_bindgen;

/// A figure of a run's summary, given as JSON, by its path such as `flows.0.share`; `undefined` where the summary has no
/// number there.
///
/// # Errors
/// A summary that is not JSON.
#[wasm_bindgen]
pub fn summary_figure(summary: &str, measure: &str) -> Result<Option<f64>, Refused> {
    Ok(measures::summary_figure(&json("summary", summary)?, measure))
}

/// The verdict on a lesson's quiz by the run's summary, both given as JSON, and, for a quiz about a number, that number.
/// Returns JSON: `right`, and `checks`, a list of `{measure, figure, least, most, right}`.
///
/// # Errors
/// Text that is not JSON, or a quiz of no kind.
#[wasm_bindgen]
pub fn quiz_verdict(quiz: &str, summary: &str, number: f64) -> Result<String, Refused> {
    let verdict = measures::judge(&json("quiz", quiz)?, &json("summary", summary)?, number)
        .map_err(|expected| refused::wrong("quiz", "", expected))?;
    Ok(serde_json::json!(verdict).to_string())
}

fn json(field: &str, text: &str) -> Result<Value, Refused> {
    serde_json::from_str(text).map_err(|error| refused::wrong(field, "", &format!("JSON: {error}")))
}
