//! One file per algorithm. `cargo xtask new-algorithm NAME` adds one.

pub mod fixed;
pub mod reno;

use crate::{Options, UnknownAlgorithm};
use std::ops::RangeInclusive;

/// Refuses options that `algorithm` does not have.
pub(crate) fn reject_unknown(
    algorithm: &'static str,
    options: &Options,
    known: &[&str],
) -> Result<(), UnknownAlgorithm> {
    match options.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(parameter) => Err(UnknownAlgorithm::Parameter {
            algorithm,
            parameter: parameter.clone(),
            expected: if known.is_empty() {
                "no parameters".to_owned()
            } else {
                format!("one of {}", known.join(", "))
            },
        }),
    }
}

/// The option called `name`, or its default, checked against its range.
pub(crate) fn option(
    options: &Options,
    algorithm: &'static str,
    name: &str,
    default: f64,
    range: RangeInclusive<f64>,
) -> Result<f64, UnknownAlgorithm> {
    match options.get(name) {
        None => Ok(default),
        Some(value) if range.contains(value) => Ok(*value),
        Some(value) => Err(UnknownAlgorithm::Parameter {
            algorithm,
            parameter: name.to_owned(),
            expected: format!(
                "a number from {} to {} instead of {value}",
                range.start(),
                range.end()
            ),
        }),
    }
}
