//! Descriptions of the algorithms, for code that does not run them: one row each.

use std::fmt;

/// One algorithm's row.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// As scenarios call it.
    pub name: &'static str,
    /// Its source file, from the root of the project: `file!()`.
    pub file: &'static str,
    /// The kernels or stacks whose implementation it is, and their file.
    pub models: &'static str,
    /// Linux's module, in kernels that have it as one; none: always built in, or not part of Linux.
    pub module: Option<&'static str>,
    /// Congestion signal.
    pub signal: Signal,
    /// True when its window stands still on a steady path without a loss: a flat flight then shows no other limit.
    pub settles: bool,
    /// Parameters, in the order of its reference page.
    pub parameters: &'static [Parameter],
    /// State variables that it shows to a recording, in the order of
    /// [`CongestionControl::variables`](crate::CongestionControl::variables).
    pub variables: &'static [Variable],
    /// Services that it needs of the endpoint.
    pub needs: Needs,
}

/// Primary congestion signal of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A lost packet, or a mark that stands for one.
    Loss,
    /// A round trip that is longer than the empty path's, or grows.
    Delay,
    /// A rate and a round trip that it measures: it sends at the one, and keeps a multiple of their product in flight.
    Model,
    /// The share of packets that are marked.
    Marks,
    /// Nothing, or what a program of its own says.
    Nothing,
}

/// Something that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// As the original calls it.
    pub name: &'static str,
    /// Default value.
    pub default: f64,
    /// Permitted values.
    pub range: Range,
    /// Unit; empty: a number without a unit.
    pub unit: &'static str,
    /// Meaning: no sentence, no full stop.
    pub meaning: &'static str,
    /// Source of name and default.
    pub source: &'static str,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Whole numbers, both ends included.
    Whole(u32, u32),
    /// Whole numbers up to the value of another parameter.
    UpTo(u32, &'static str),
    /// Some whole numbers.
    OneOf(&'static [u32]),
    /// Numbers, both ends included.
    Real(f64, f64),
    /// 0 or 1.
    Switch,
}

impl Range {
    /// True when `value` is in the range; of [`UpTo`](Self::UpTo) only the lower end is known here.
    pub(crate) fn contains(self, value: f64) -> bool {
        let whole =
            |from, to| value.fract() == 0.0 && (f64::from(from)..=f64::from(to)).contains(&value);
        match self {
            Self::Whole(from, to) => whole(from, to),
            Self::UpTo(from, _) => whole(from, u32::MAX),
            Self::OneOf(values) => values.iter().any(|&one| f64::from(one) == value),
            Self::Real(from, to) => (from..=to).contains(&value),
            Self::Switch => whole(0, 1),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(from, to) => write!(f, "a whole number from {from} to {to}"),
            Self::UpTo(from, other) => write!(f, "a whole number from {from} to {other}"),
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(u32::to_string).collect();
                write!(f, "one of {}", values.join(", "))
            }
            Self::Real(from, to) => write!(f, "a number from {from} to {to}"),
            Self::Switch => f.write_str("0 or 1"),
        }
    }
}

/// Services that an algorithm needs of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Packets must be paced even without an `fq` queue discipline.
    pub pacing: bool,
    /// RTTs are in µs where others are given jiffies (`TCP_CONG_RTT_STAMP`, before 3.15).
    pub rtt_stamps: bool,
    /// ECN negotiation and feedback.
    pub ecn: EcnMode,
    /// It draws random numbers: seeds give different runs.
    pub dice: bool,
}

/// The ECN that an algorithm asks for. Both ends of a connection run the same one.
///
/// A mode is wired up in the endpoint's `ecn.rs` (handshake, codepoints), its receiver's `feedback.rs` (what it
/// echoes) and its sender's `linux_6/marks.rs` (how the echo is counted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// RFC 3168, if the settings of both hosts agree: ECT(0) on new data; an echo from a mark until CWR. Or RFC 9768, if
    /// they agree on that: ECT(0) on every segment; counters of marks.
    Classic,
    /// RFC 8257, whatever the settings say: ECT(0) on every segment; the echo says of each segment whether it was
    /// marked. An algorithm falls back to something else if ECN was not granted ([`View::ecn`](crate::View::ecn)).
    Dctcp,
    /// RFC 9768 or nothing, whatever the settings say, with the codepoint of L4S (RFC 9331): ECT(1) on every segment.
    L4s,
}

impl Needs {
    /// Nothing, and classic ECN.
    pub const NOTHING: Self =
        Self { pacing: false, rtt_stamps: false, ecn: EcnMode::Classic, dice: false };
}

/// A quantity of an algorithm's state.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// As in the paper or the kernel, in small letters.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Meaning: no sentence, no full stop.
    pub meaning: &'static str,
}

/// Unit of a [`Variable`]: a recording's base units.
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

impl Parameter {
    /// A row of the list.
    #[must_use]
    pub const fn new(
        name: &'static str,
        default: f64,
        range: Range,
        unit: &'static str,
        meaning: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, default, range, unit, meaning, source }
    }
}

impl Variable {
    /// A row of the list.
    #[must_use]
    pub const fn new(name: &'static str, unit: Unit, meaning: &'static str) -> Self {
        Self { name, unit, meaning }
    }
}
