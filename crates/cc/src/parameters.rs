//! An algorithm's parameters: from a scenario's text to values that its row allows.

use crate::{About, Parameter, Range};
use dragstrip_units::suggest;
use std::collections::BTreeMap;

/// The unit of a parameter that is a fraction in the kernel's fixed-point arithmetic.
pub const PARTS: &str = "1/1024";

/// Parameters of an algorithm as the scenario gives them: module parameter name → value.
pub type Options = BTreeMap<String, f64>;

/// There is no algorithm of that name, or it has no parameter of that name.
#[derive(Clone, Debug, PartialEq)]
pub enum UnknownAlgorithm {
    /// The name; `nearest` is the registered name most like it.
    Name {
        /// Name that was asked for.
        name: String,
        /// The registered name most like it.
        nearest: &'static str,
    },
    /// The algorithm exists, the parameter does not, or its value is out of range.
    Parameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter asked for.
        parameter: String,
        /// Permitted value.
        expected: String,
    },
}

/// The parameters of one algorithm: each is given and in its range, or at its default.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    about: &'static About,
    options: &'a Options,
}

impl<'a> Parameters<'a> {
    /// Checks `options` against the algorithm's row.
    ///
    /// # Errors
    /// A parameter that the algorithm does not have, or a value out of its range.
    pub fn new(about: &'static About, options: &'a Options) -> Result<Self, UnknownAlgorithm> {
        match check_options(about.parameters, options) {
            Ok(()) => Ok(Self { about, options }),
            Err((parameter, expected)) => {
                Err(UnknownAlgorithm::Parameter { algorithm: about.name, parameter, expected })
            }
        }
    }

    /// A whole number.
    #[must_use]
    pub fn whole(&self, name: &'static str) -> u32 {
        self.real(name) as u32
    }

    /// The same if it was given: its default is somebody else's.
    #[must_use]
    pub fn explicit(&self, name: &'static str) -> Option<u32> {
        self.options.contains_key(name).then(|| self.whole(name))
    }

    /// A switch.
    #[must_use]
    pub fn switch(&self, name: &'static str) -> bool {
        self.whole(name) == 1
    }

    /// A number.
    #[must_use]
    pub fn real(&self, name: &'static str) -> f64 {
        value_of(self.about.parameters, self.options, name)
            .unwrap_or_else(|| panic!("{} has no {name} in its row", self.about.name))
    }
}

/// Checks options against a table of parameters.
///
/// # Errors
/// The first parameter that the table does not have or whose value is out of its range, and what is expected.
pub fn check_options(table: &[Parameter], options: &Options) -> Result<(), (String, String)> {
    for (name, value) in options {
        let wrong = match table.iter().find(|parameter| parameter.name == name) {
            None => Some(list_names(table, name)),
            Some(parameter) => complaint(table, options, parameter, *value),
        };
        if let Some(expected) = wrong {
            return Err((name.clone(), expected));
        }
    }
    Ok(())
}

/// The value of a parameter, given or its default; `None`: the table has no such parameter.
fn value_of(table: &[Parameter], options: &Options, name: &str) -> Option<f64> {
    let row = table.iter().find(|parameter| parameter.name == name)?;
    Some(options.get(name).copied().unwrap_or(row.default))
}

fn list_names(table: &[Parameter], name: &str) -> String {
    let names: Vec<&str> = table.iter().map(|parameter| parameter.name).collect();
    if names.is_empty() {
        "no parameters".to_owned()
    } else {
        suggest(name, names.iter().copied(), &format!("one of {}", names.join(", ")))
    }
}

/// Returns the permitted values if `value` is not one; `None`: it is.
fn complaint(
    table: &[Parameter],
    options: &Options,
    parameter: &Parameter,
    value: f64,
) -> Option<String> {
    let range = match parameter.range {
        Range::UpTo(from, other) => {
            Range::Whole(from, value_of(table, options, other).unwrap_or_default() as u32)
        }
        Range::Whole(..) | Range::OneOf(_) | Range::Real(..) | Range::Switch => parameter.range,
    };
    if range.contains(value) {
        return None;
    }
    Some(match (parameter.unit, range) {
        (PARTS, Range::Whole(from, to)) => {
            let share = |whole: u32| f64::from(whole * 1000 / 1024) / 1000.0;
            format!("{range}, in 1/1024: {} to {}", share(from), share(to))
        }
        _ => range.to_string(),
    })
}
