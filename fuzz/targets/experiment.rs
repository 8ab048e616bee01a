//! Experiments in JSON: what varies multiplied out, each read, expanded, the scenario checked; what `compare` means.
#![no_main]

use dragstrip_experiment::{CompareForm, Experiment, Variants, build_run, compare};
use libfuzzer_sys::fuzz_target;

/// Larger crowds are only slower.
const FLOWS_MAX: u64 = 100;
/// More combinations are more of the same.
const VARIANTS_MAX: u32 = 8;

fuzz_target!(|text: &str| {
    if let Ok(form) = CompareForm::from_json(text) {
        let _ = compare(&form);
    }
    let Ok(variants) = Variants::from_json(text) else { return };
    for number in 0..variants.count().min(VARIANTS_MAX) {
        let Ok(variant) = variants.get(number) else { return };
        let Ok(experiment) = Experiment::from_json(&variant.content.to_string()) else { return };
        let receivers = experiment.path.as_ref().map_or(0, |path| u64::from(path.receivers));
        if experiment.flows.iter().any(|flow| flow.count > FLOWS_MAX) || receivers > FLOWS_MAX {
            return;
        }
        if let Ok(scenario) = build_run(&experiment, &variant.settings, 0, experiment.repeat) {
            let _ = scenario.validate();
        }
    }
});
