//! Measures: functions from a recording to a figure with a unit.
//!
//! What lives here: what a flow, a probe, a queue and a run are measured by ([`MEASURES`]), the summary of a run
//! and the arithmetic. What must not: more than one run (statistics, grading and reports), and files.
//!
//! A flow lives from its start to its stop (the end of the run when none is recorded). Probes are measured
//! while some flow lives, so that a finished download does not dilute them; `idle` measures take the rest.
//! Percentiles interpolate linearly between the two nearest values.

pub mod arithmetic;
mod measured;
mod registry;
mod series;
mod summary;

pub use measured::{Flow, Measured, MissingColumn, Window};
pub use registry::{Figure, Level, MEASURES, Measure, Statistic, find};
pub use series::THROUGHPUT_NS;
pub use summary::{Summary, summarise};
