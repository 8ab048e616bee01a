//! The expansion of an experiment into runs: every variant in turn, then all again with the next seed.

use crate::plan::Plan;
use crate::variants::{Variant, Variants};
use dragstrip_scenario::{Problem, Scenario};
use serde_json::{Map, Value};
use std::ops::Range;

/// One run of an experiment.
#[derive(Clone, Debug)]
pub struct ExpandedRun {
    /// The dotted paths that vary, with the values chosen.
    pub settings: Map<String, Value>,
    /// Number of the repeat, counted from 0.
    pub repeat: u64,
    /// The concrete run.
    pub scenario: Scenario,
}

/// Reads the files of an expansion, and selects its runs.
pub trait Selection {
    /// Error of either method; problems of the experiment convert to it.
    type Error: From<Problem>;

    /// Returns a variant's content with the contents of the files that it names.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn load(&mut self, content: Value) -> Result<Value, Self::Error> {
        Ok(content)
    }

    /// Reports whether a run is to be made; the others are left out, and are not validated.
    ///
    /// # Errors
    /// Whatever ends the expansion.
    fn keeps(
        &mut self,
        settings: &Map<String, Value>,
        repeat: u64,
        scenario: &Scenario,
    ) -> Result<bool, Self::Error>;
}

/// Keeps every run of an experiment whose files have been read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Everything;

impl Selection for Everything {
    type Error = Problem;

    fn keeps(&mut self, _: &Map<String, Value>, _: u64, _: &Scenario) -> Result<bool, Problem> {
        Ok(true)
    }
}

/// Returns the runs of these `repeats` out of `of`, ordered by repeat, then by variant.
///
/// Only the first repeat of a variant is validated, since repeats differ in the seed alone.
///
/// # Errors
/// The first field that is wrong, with the settings that set it; whatever `selection` refuses.
pub fn expand<S: Selection>(
    variants: &Variants,
    repeats: Range<u64>,
    of: u64,
    algorithms: &[String],
    selection: &mut S,
) -> Result<Vec<ExpandedRun>, S::Error> {
    let mut plans = Vec::new();
    for number in 0..variants.count() {
        let Variant { settings, content } = variants.get(number)?;
        plans.push((selection.load(content)?, settings));
    }
    let mut plans =
        plans.into_iter().map(|(content, settings)| Plan::new(content, settings, algorithms));
    let mut read = Vec::new();
    let mut runs = Vec::new();
    for repeat in repeats.clone() {
        for variant in 0..variants.count() {
            let first = repeat == repeats.start;
            if first {
                // Read only now: of several faults the one of the earliest run is reported.
                read.extend(plans.next().transpose()?);
            }
            let plan = &read[variant as usize];
            let scenario = plan.run(repeat, of)?;
            if !selection.keeps(plan.settings(), repeat, &scenario)? {
                continue;
            }
            if first {
                plan.judge(&scenario)?;
            }
            runs.push(ExpandedRun { settings: plan.settings().clone(), repeat, scenario });
        }
    }
    Ok(runs)
}
