//! Quantities: instants, durations, bytes, rates; named streams of randomness; tc(8)'s grammar; how queues grow;
//! sets of flags ([`flags!`]); what is wrong with an input.
//!
//! Scope: integer newtypes with only the operators that make dimensional sense, the parser of quantities as people
//! write them, the seeded generator every random element draws from, and the single error format for an input
//! ([`Problem`], [`Report`]). Out of scope: anything that knows about packets, queues or TCP.
//!
//! Rounding is in the method's name (`_floor`, `_ceil`). Inside the simulator an [`Instant`]
//! counts nanoseconds since the start of the run.

mod flags;
mod nearest;
mod problem;
mod quantity;
mod random;
mod room;
pub mod tc;
mod time;

pub use nearest::{nearest, suggest};
pub use problem::{DURATION_MAX_NS, Problem, Report};
pub use quantity::{ByteCount, Rate};
pub use random::Stream;
pub use room::make_room;
pub use tc::{
    ParseError, format_percent, format_rate, format_size, format_time, parse_percent, parse_rate,
    parse_size, parse_time,
};
pub use time::{Duration, Instant};
