//! Error in an input: its field, the value given and the value expected; and a report that collects errors.

use crate::tc::{RATE_MAX_BPS, format_time};
use crate::time::Duration;
use std::fmt::{self, Display};

/// One thing that is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, e.g. `flows[2].transport.cc`; empty for the document as a whole.
    pub field: String,
    /// Value given, as people would read it.
    pub value: String,
    /// Expected value.
    pub expected: String,
}

impl Problem {
    /// `field` has `value` where `expected` would be right.
    pub fn new(field: impl Into<String>, value: impl Display, expected: impl Into<String>) -> Self {
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

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.field.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}got {}, expected {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for Problem {}

/// The longest run: an event's key holds 2^44 ns (4 h 53 min), and a little is left for what is
/// scheduled beyond the end. No span within a run is longer.
pub const DURATION_MAX_NS: u64 = 17_000_000_000_000;

/// Collects problems, each with the path of its field.
#[derive(Debug, Default)]
pub struct Report {
    /// Problems, in the order of the checks.
    pub problems: Vec<Problem>,
}

impl Report {
    /// `field` has `value` where `expected` would be right.
    pub fn add(
        &mut self,
        field: impl Into<String>,
        value: impl Display,
        expected: impl Into<String>,
    ) {
        self.problems.push(Problem::new(field, value, expected));
    }

    /// A span in nanoseconds from `least` up to the longest run.
    pub fn time(&mut self, field: impl Into<String>, ns: u64, least: u64) {
        if ns < least {
            self.add(field, ns, format!("at least {least}"));
        } else if ns > DURATION_MAX_NS {
            let value = format!("{ns} ({})", format_time(Duration::from_nanos(ns)));
            self.add(field, value, format!("at most {DURATION_MAX_NS} (17000s, 4 h 43 min)"));
        }
    }

    /// A rate in bit/s that is not zero and that something could have.
    pub fn rate(&mut self, field: impl Into<String>, bps: u64) {
        if bps == 0 || bps > RATE_MAX_BPS {
            self.add(field, bps, format!("from 1 to {RATE_MAX_BPS} (10tbit)"));
        }
    }

    /// The same of a shaper, which counts whole bytes per second as the kernel's do.
    pub fn shaper_rate(&mut self, field: impl Into<String>, bps: u64) {
        if !(8..=RATE_MAX_BPS).contains(&bps) {
            let expected = format!("from 8 to {RATE_MAX_BPS} (10tbit): whole bytes per second");
            self.add(field, bps, expected);
        }
    }

    /// A number of bytes that something could send: at most 2^60.
    pub fn amount(&mut self, field: impl Into<String>, bytes: u64) {
        const MOST: u64 = 1 << 60;
        if !(1..=MOST).contains(&bytes) {
            self.add(field, bytes, format!("from 1 to {MOST}"));
        }
    }

    /// A probability or a correlation.
    pub fn share(&mut self, field: impl Into<String>, share: f64) {
        if !(0.0..=1.0).contains(&share) {
            self.add(field, share, "a number from 0 to 1");
        }
    }

    /// A value that is not below `least`.
    pub fn at_least<T: Display + PartialOrd>(
        &mut self,
        field: impl Into<String>,
        value: T,
        least: T,
    ) {
        if value < least {
            self.add(field, value, format!("at least {least}"));
        }
    }

    /// A value that is not above `most`.
    pub fn at_most<T: Display + PartialOrd>(
        &mut self,
        field: impl Into<String>,
        value: T,
        most: T,
    ) {
        if value > most {
            self.add(field, value, format!("at most {most}"));
        }
    }
}
