//! What is said of an algorithm where its code does not run: one row each.

/// One algorithm's row.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// As scenarios call it.
    pub name: &'static str,
    /// What it shows of its state to a recording, in the order of
    /// [`CongestionControl::variables`](crate::CongestionControl::variables).
    pub variables: &'static [Variable],
}

/// A quantity of an algorithm's state.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// As in the paper or the kernel, in small letters.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// A sentence without its full stop.
    pub meaning: &'static str,
}

/// What a [`Variable`] is counted in: a recording's base units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bits per second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Packets of the connection's MSS.
    Packets,
    /// Something that is counted, or a number that names a state.
    Count,
    /// A ratio of two quantities of one kind.
    Ratio,
}

impl Unit {
    /// The suffix that recordings use for it.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::BitsPerSecond => "bps",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Count => "count",
            Self::Ratio => "ratio",
        }
    }
}

impl Variable {
    /// A row of the list.
    pub(crate) const fn new(name: &'static str, unit: Unit, meaning: &'static str) -> Self {
        Self { name, unit, meaning }
    }
}
