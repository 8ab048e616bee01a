//! Property tests: one model over every discipline, and the closed form against the events.

mod common;
mod computed;
mod conservation;
