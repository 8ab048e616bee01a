//! Names and parameters of congestion controls.

use crate::types::Scenario;
use dragstrip_cc::UnknownAlgorithm;
use dragstrip_units::{Report, nearest as nearest_of};
use std::collections::BTreeMap;

/// Checks that there is an algorithm called `cc` with these parameters.
pub(super) fn check_algorithm(
    scenario: &Scenario,
    cc: &str,
    options: &BTreeMap<String, f64>,
    (at, field): (&str, &str),
    report: &mut Report,
) {
    match dragstrip_cc::check(cc, options) {
        Ok(()) => {}
        Err(UnknownAlgorithm::Name { name, nearest }) => {
            let list: Vec<&str> = dragstrip_cc::names()
                .iter()
                .copied()
                .chain(scenario.programs.keys().map(String::as_str))
                .collect();
            let nearest_program = nearest_of(&name, scenario.programs.keys().map(String::as_str));
            let nearest = nearest_program.unwrap_or(nearest);
            let expected = format!("one of {}; did you mean {nearest:?}?", list.join(", "));
            report.add(format!("{at}.{field}"), format!("{name:?}"), expected);
        }
        Err(UnknownAlgorithm::Parameter { algorithm, parameter, expected }) => {
            let value = options.get(&parameter).map_or_else(String::new, f64::to_string);
            let expected = format!("{expected} ({algorithm})");
            report.add(format!("{at}.cc_options.{parameter}"), value, expected);
        }
    }
}
