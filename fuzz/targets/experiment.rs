//! Experiments in JSON: read, expanded, the scenario checked; what `compare` means.
#![no_main]

use dragstrip_experiment::{CompareForm, Experiment, build, compare};
use libfuzzer_sys::fuzz_target;

/// Larger crowds are only slower.
const FLOWS_MAX: u64 = 100;

fuzz_target!(|text: &str| {
    if let Ok(form) = CompareForm::from_json(text) {
        let _ = compare(&form);
    }
    let Ok(experiment) = Experiment::from_json(text) else { return };
    let receivers = experiment.path.as_ref().map_or(0, |path| u64::from(path.receivers));
    if experiment.flows.iter().any(|flow| flow.count > FLOWS_MAX) || receivers > FLOWS_MAX {
        return;
    }
    if let Ok(scenario) = build(&experiment, "fuzz", 1) {
        let _ = scenario.validate();
    }
});
