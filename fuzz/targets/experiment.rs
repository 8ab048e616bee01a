//! Experiments in JSON: what varies multiplied out, each checked, expanded, the scenario
//! validated; what a race means, and its command line.
#![no_main]

use dragstrip_experiment::{
    Experiment, Plan, RaceForm, Variants, algorithms, checked, command_line, compare,
};
use libfuzzer_sys::fuzz_target;

/// Larger crowds are only slower.
const FLOWS_MAX: u64 = 100;
/// More combinations are more of the same.
const VARIANTS_MAX: u32 = 8;

fuzz_target!(|text: &str| {
    let known = algorithms();
    if let Ok(form) = RaceForm::from_json(text) {
        let _ = command_line(&form);
        let _ = compare(&form).and_then(|content| checked(content, &known));
    }
    let Ok(content) = serde_json::from_str(text) else { return };
    let Ok(variants) = Variants::new(content) else { return };
    for number in 0..variants.count().min(VARIANTS_MAX) {
        let Ok(variant) = variants.get(number) else { return };
        let Ok(experiment) = Experiment::from_json(&variant.content.to_string()) else {
            let _ = checked(variant.content, &known);
            return;
        };
        let receivers = experiment.path.as_ref().map_or(0, |path| u64::from(path.receivers));
        if experiment.flows.iter().any(|flow| flow.count > FLOWS_MAX) || receivers > FLOWS_MAX {
            return;
        }
        let plan = Plan::new(variant.content, variant.settings, &known);
        let _ = plan.and_then(|plan| plan.judge(&plan.run(0, experiment.repeat)?));
    }
});
