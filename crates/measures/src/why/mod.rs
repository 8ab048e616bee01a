//! Why a run came out as it did: a sentence per cause, made from measures by rules.
//!
//! `facts.rs` collects what the rules look at, `rules.rs` has a function per rule and the thresholds, `rivals.rs` why one of
//! two gets more, `words.rs` has the sentences. The first finding explains the run; the others are true as well.

mod facts;
mod rivals;
mod rules;
mod words;

use crate::measured::{Measured, MissingColumn};
use serde::Serialize;
use std::collections::BTreeMap;

pub use facts::FLOWS_MAX;

/// An explanation of a part of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename = "Explanation")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Labels of the flows that it concerns.
    pub flows: Vec<String>,
    /// One sentence.
    pub sentence: String,
    /// The figures in the sentence, in base units: `_s`, `_ms`, `_bps`, `_bytes`, shares of 1.
    pub figures: BTreeMap<&'static str, f64>,
}

/// Explains a run, the strongest cause first; no findings where no rule applies, or where links change. Only the first
/// [`FLOWS_MAX`] flows are considered.
///
/// # Errors
/// A column that is needed is missing.
pub fn explain(run: &Measured) -> Result<Vec<Finding>, MissingColumn> {
    // The rules hold figures against one rate, one round trip and one buffer.
    if !run.scenario.changes.is_empty() {
        return Ok(Vec::new());
    }
    let facts = facts::Facts::of(run)?;
    Ok(rules::RULES.iter().filter_map(|rule| rule(&facts)).map(words::finding).collect())
}
