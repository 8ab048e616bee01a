//! A measure: what it is taken of, its unit, its meaning, and how it is computed.

use crate::measured::{Measured, MissingColumn, Window};
use crate::transfers::Transfer;

/// Subject of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A flow.
    Flow,
    /// A probe.
    Probe,
    /// A queue.
    Queue,
    /// The run.
    Run,
    /// Several transfers of a run together.
    Transfers,
}

impl Level {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Probe => "probe",
            Self::Queue => "queue",
            Self::Run => "run",
            Self::Transfers => "transfers",
        }
    }
}

/// Computation of a measure. Series give values, of which a claim takes a [`Statistic`]; the others one figure.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// Values of the flow at a place of the table `flows`.
    OfFlow(fn(&Measured, usize, &Window) -> Result<Vec<f64>, MissingColumn>),
    /// Values of the probe with a label, or of the queue of a link.
    OfName(fn(&Measured, &str) -> Result<Vec<f64>, MissingColumn>),
    /// A figure of the flow at a place of the table `flows`.
    FlowFigure(fn(&Measured, usize, &Window) -> Result<Option<f64>, MissingColumn>),
    /// A figure of the flow at a place of the table `flows`, of its whole life whatever the window.
    WholeFlow(fn(&Measured, usize) -> Result<Option<f64>, MissingColumn>),
    /// A figure of the probe with a label, or of the queue of a link.
    NameFigure(fn(&Measured, &str) -> Result<Option<f64>, MissingColumn>),
    /// A figure of the run.
    RunFigure(fn(&Measured) -> Result<Option<f64>, MissingColumn>),
    /// Values of the transfers among the flows at places of the table `flows`, one per transfer.
    OfTransfers(fn(&Transfer) -> Option<f64>),
    /// A figure of the transfers among the flows at places of the table `flows`.
    TransfersFigure(fn(&[Transfer]) -> Option<f64>),
}

/// A measure as a claim names it.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name, of a series without the statistic.
    pub name: &'static str,
    /// Its subject.
    pub level: Level,
    /// The unit of its figures.
    pub unit: &'static str,
    /// A sentence without its full stop.
    pub meaning: &'static str,
    /// Its computation.
    pub figure: Figure,
}

impl Measure {
    /// True when its name ends with a statistic (`_p50`).
    #[must_use]
    pub const fn is_series(&self) -> bool {
        matches!(self.figure, Figure::OfFlow(_) | Figure::OfName(_) | Figure::OfTransfers(_))
    }

    /// True when it is taken of a [`Window`] of a flow's life; the others are of all of it.
    #[must_use]
    pub const fn has_window(&self) -> bool {
        matches!(self.figure, Figure::OfFlow(_) | Figure::FlowFigure(_))
    }
}

/// A measure of these parts.
pub(crate) const fn measure(
    level: Level,
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    figure: Figure,
) -> Measure {
    Measure { name, level, unit, meaning, figure }
}
