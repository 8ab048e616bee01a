//! Scenarios in JSON: read, checked, their recording estimated.
#![no_main]

use dragstrip_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::from_json(text) else { return };
    if scenario.validate().is_ok() {
        let _ = scenario.recording_bytes();
    }
});
