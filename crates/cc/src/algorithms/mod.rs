//! One file per algorithm. `cargo xtask new-algorithm NAME` adds one.

pub mod bbr;
pub mod cdg;
pub mod cdg_freebsd;
pub mod cubic;
pub mod cubic_freebsd;
pub mod exp;
pub mod fixed;
pub mod newreno_freebsd;
pub mod reno;
pub mod vegas;
pub mod vegas_freebsd;

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

/// A whole-number option (a kernel module's `int` parameter), or its default.
pub(crate) fn integer(
    options: &Options,
    algorithm: &'static str,
    name: &str,
    default: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, UnknownAlgorithm> {
    match options.get(name) {
        None => Ok(default),
        Some(value)
            if *value >= f64::from(*range.start())
                && *value <= f64::from(*range.end())
                && value.fract() == 0.0 =>
        {
            Ok(*value as u32)
        }
        Some(value) => Err(UnknownAlgorithm::Parameter {
            algorithm,
            parameter: name.to_owned(),
            expected: format!(
                "a whole number from {} to {} instead of {value}",
                range.start(),
                range.end()
            ),
        }),
    }
}

/// A switch: 0 or 1.
pub(crate) fn switch(
    options: &Options,
    algorithm: &'static str,
    name: &str,
    default: bool,
) -> Result<bool, UnknownAlgorithm> {
    Ok(integer(options, algorithm, name, u32::from(default), 0..=1)? == 1)
}
