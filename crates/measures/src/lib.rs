//! Measures: functions from a recording to a figure with a unit.
//!
//! Scope: the measures of a flow, a probe, a queue and a run ([`MEASURES`]), the summary of a run, its explanation
//! ([`explain`]), the verdict of a lesson's quiz on a run ([`judge`]) and the arithmetic. Out of scope: more than one
//! run (statistics, grading of claims, and reports), and files.
//!
//! A flow lives from its start to its stop (the end of the run when none is recorded). Probes are measured
//! while some flow lives, so that a finished download does not dilute them; `idle` measures take the rest.
//! Percentiles interpolate linearly between the two nearest values.

mod alone;
pub mod arithmetic;
#[cfg(feature = "schema")]
pub mod document;
pub mod figures;
mod hops;
mod limits;
mod measure;
mod measured;
pub mod numbers;
mod queueing;
mod quiz;
mod recovery;
mod registry;
mod rtp;
mod series;
mod summary;
mod transfers;
mod video;
mod why;

pub use hops::{Hop, Queueing};
pub use limits::{LIMITS, limiting_factor};
pub use measure::{Figure, Level, Measure};
pub use measured::{Flow, Measured, MissingColumn, Window};
pub use quiz::{Check, Verdict, is_right, judge, summary_figure};
pub use registry::{MEASURES, Statistic, find, of_transfers};
pub use series::THROUGHPUT_NS;
pub use summary::{Summary, summarise};
pub use transfers::Transfer;
pub use why::{FLOWS_MAX as EXPLAINED_FLOWS_MAX, Finding, explain};
