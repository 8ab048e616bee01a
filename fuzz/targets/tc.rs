//! tc(8)'s words: rates, sizes, times, shares, queue disciplines. What is read is printed and read again.
#![no_main]

use dragstrip_scenario::{format_qdisc, parse_netem, parse_qdisc};
use dragstrip_units::tc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = tc::parse_rate(text);
    let _ = tc::parse_size(text);
    let _ = tc::parse_time(text);
    let _ = tc::parse_percent(text);
    let _ = parse_netem(text);
    if let Ok(qdisc) = parse_qdisc(text) {
        let printed = format_qdisc(&qdisc);
        let again = parse_qdisc(&printed).unwrap_or_else(|problem| panic!("{printed}: {problem:?}"));
        assert_eq!(format_qdisc(&again), printed);
    }
});
