//! Completion times of a run's transfers, for a page.

use crate::refused::{self, Refused};
use dragstrip_measures::{self as measures, Level, MEASURES, Transfer};
use dragstrip_units::{suggest, tc};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

#[derive(Deserialize)]
struct Summary {
    flows: Vec<Flow>,
}

#[derive(Deserialize)]
struct Flow {
    transfer: Option<Transfer>,
}

/// A measure of transfers (`fct_s_p99`, `fct_slowdown_p50`, `fct_unfinished`) of the flows of a run's summary, given as
/// JSON, whose size lies between two bounds in tc's words, the upper one included; an empty bound is none. Returns JSON:
/// `{figure, unit, transfers}` with the number of these flows, as a claim with `size_above` and `size_up_to` measures it.
///
/// # Errors
/// A name of no such measure, a bound that is no size, or bounds between which no flow lies.
#[wasm_bindgen]
pub fn transfers_figure(
    summary: &str,
    measure: &str,
    size_above: &str,
    size_up_to: &str,
) -> Result<String, Refused> {
    let summary: Summary = serde_json::from_str(summary)
        .map_err(|error| refused::wrong("summary", "", &format!("JSON: {error}")))?;
    let above = bound("size_above", size_above)?;
    let up_to = bound("size_up_to", size_up_to)?;
    let all: Vec<Transfer> = summary.flows.iter().filter_map(|flow| flow.transfer).collect();
    let is_between = |transfer: &&Transfer| {
        above.is_none_or(|above| above < transfer.bytes)
            && up_to.is_none_or(|up_to| transfer.bytes <= up_to)
    };
    let transfers: Vec<Transfer> = all.iter().filter(is_between).copied().collect();
    let (figure, unit) =
        measures::of_transfers(measure, &transfers).ok_or_else(|| unknown(measure))?;
    if transfers.is_empty() {
        let bytes = || all.iter().map(|transfer| transfer.bytes);
        let sizes = match (bytes().min(), bytes().max()) {
            (Some(least), Some(most)) => format!("flows carry {least} to {most} bytes"),
            _ => "no flow has a size".to_owned(),
        };
        let (field, value) = match up_to {
            Some(_) => ("size_up_to", size_up_to),
            None => ("size_above", size_above),
        };
        let expected = format!("bounds between which some flow lies: {sizes}");
        return Err(refused::wrong(field, value, &expected));
    }
    Ok(json!({"figure": figure, "unit": unit, "transfers": transfers.len()}).to_string())
}

fn bound(field: &str, text: &str) -> Result<Option<u64>, Refused> {
    if text.is_empty() {
        return Ok(None);
    }
    let size =
        tc::parse_size(text).map_err(|error| refused::wrong(field, text, &error.expected))?;
    Ok(Some(size.get()))
}

fn unknown(name: &str) -> Refused {
    let measures = MEASURES.iter().filter(|measure| measure.level == Level::Transfers);
    let names: Vec<String> = measures
        .map(|it| if it.is_series() { format!("{}_p99", it.name) } else { it.name.to_owned() })
        .collect();
    let expected = format!("a measure of transfers, such as {}", names.join(", "));
    let expected = suggest(name, names.iter().map(String::as_str), &expected);
    refused::wrong("measure", name, &expected)
}
