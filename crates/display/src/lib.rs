//! Appearance of charts: colours, dash patterns, units and ends of axes, and marks of what an explanation names.
//!
//! Scope: the tables ([`tables`]) and the rules that choose from them, the same for the report (through crates/py) and for
//! the page (through crates/play). `cargo xtask generate` writes the tables as `python/dragstrip/display/look.json`, for style
//! sheets and constants. Out of scope: drawing, and text around a figure.

mod rules;
pub mod tables;

pub use rules::{Axis, Mark, axis, colours, dashes, mark, strip_colours, unit_for};
