//! Conformance scripts: the language, and what one asks for played on the simulator's endpoint.
#![no_main]

use dragstrip_conformance::{Script, play_on_simulator};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(script) = Script::parse(text) {
        let _ = play_on_simulator(&script);
    }
});
