//! What is wrong with an input: where, what was said, what would be right.

use std::fmt;

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, e.g. `flows[2].transport.cc`; empty for the document as a whole.
    pub field: String,
    /// What was given, as people would read it.
    pub value: String,
    /// What would be right.
    pub expected: String,
}

impl Problem {
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.to_string(), expected: expected.into() }
    }

    /// The same problem seen from the structure that contains it: `parent` goes before the field.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{parent}{dot}{}", self.field);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.field.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}got {}, expected {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for Problem {}
