//! Errors, each a single line for the user.

use std::fmt::{self, Display, Formatter};

/// A fault, in one line.
#[derive(Debug)]
pub enum Fault {
    Failed(String),
    /// A request that cannot be fulfilled here: field, value (may be empty), and what would be right.
    Refused(String, String, String),
}

impl Fault {
    /// The same fault, with where it happened in front.
    pub fn at(self, place: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{place}: {text}")),
            refused @ Self::Refused(..) => refused,
        }
    }
}

impl Display for Fault {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => to.write_str(text),
            Self::Refused(field, value, expected) if value.is_empty() => {
                write!(to, "{field}: expected {expected}")
            }
            Self::Refused(field, value, expected) => {
                write!(to, "{field}: got {value}, expected {expected}")
            }
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The last system call's error, with what was tried.
pub fn os(call: &str) -> Fault {
    Fault::Failed(format!("{call}: {}", std::io::Error::last_os_error()))
}

/// A fault from any text.
pub fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(message.into()))
}

/// Returns a refusal: an error in the request.
pub fn refusal<T>(
    field: impl Into<String>,
    value: impl Into<String>,
    expected: impl Into<String>,
) -> Result<T, Fault> {
    Err(Fault::Refused(field.into(), value.into(), expected.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_value_has_no_gap() {
        let message = |value| refusal::<()>("link a-b", value, "a cable").unwrap_err().to_string();
        assert_eq!(message(""), "link a-b: expected a cable");
        assert_eq!(message("x"), "link a-b: got x, expected a cable");
    }
}
