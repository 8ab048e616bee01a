//! The simulator for a page: bindings for WebAssembly.
//!
//! Scope: a page's calls into the core (the scenarios of a form, a run in slices, its curves, measures and hashes), and
//! bounds on the runs that a link may request. Out of scope: the meaning of a form, the simulation and the measures (the
//! crates below), and drawing.
//!
//! Times are in nanoseconds and cross as 64-bit floats: a run of [`bounds::DURATION_MAX_NS`] is far below 2^53.
//! Structures cross as JSON, a scenario always as text: a seed has 64 bits, and JavaScript's numbers have 53.
//! Invalid input is thrown as text, a JSON list of `{field, value, expected}`; anything else that is thrown is a
//! trap, after which the instance must not be used again.

mod appearance;
mod bounds;
mod curves;
mod form;
mod lens;
mod lessons;
mod moment;
mod refused;
mod run;
mod trace;
mod transfers;
mod watch;

pub use appearance::{curve_styles, panel_axis, strip_colours};
pub use bounds::{bounds, cost};
pub use form::{
    command_line, flow_word, names, parse, picture_interval, runs_of, runs_of_experiment, written,
};
pub use lens::Lens;
pub use lessons::{quiz_verdict, summary_figure};
pub use run::Run;
pub use transfers::transfers_figure;

use wasm_bindgen::prelude::wasm_bindgen;

/// The core's version.
#[must_use]
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
