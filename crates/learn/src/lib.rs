//! Episodes in which a policy learns: a scenario whose numbers are drawn anew, an agent that is stepped through it.
//!
//! Scope: the draw of an episode's path ([`Template`]), its steps and its end, with one agent ([`Episode`]) or with several that
//! step together ([`Group`]). Out of scope: the agent itself
//! (`dragstrip-cc`), rewards (the caller's), threads (crates/py).

mod episode;
mod group;
mod template;

pub use episode::{After, Episode, ResetError, StepError};
pub use group::{Group, Member};
pub use template::{Knob, Template};
