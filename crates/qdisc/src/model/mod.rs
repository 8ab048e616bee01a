//! Property tests: one model over every discipline, and the closed form against the events.

pub(crate) mod common;
mod computed;
pub(crate) mod conservation;
mod toys;
