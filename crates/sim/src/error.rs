//! Why a scenario cannot be run.

/// A scenario that cannot be run: the field (a JSON path such as `links[2].qdisc.limit_bytes`), and
/// what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError {
    /// JSON path of the field.
    pub field: String,
    /// The value, and what would be right.
    pub message: String,
}

pub(crate) fn problem(field: impl Into<String>, message: impl Into<String>) -> SetupError {
    SetupError { field: field.into(), message: message.into() }
}
