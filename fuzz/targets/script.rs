//! Conformance scripts: the language. (Playing one is bounded by the player's own limits.)
#![no_main]

use dragstrip_conformance::Script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Script::parse(text);
});
