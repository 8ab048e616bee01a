//! Congestion controls: what each does with the window, and nothing else.
//!
//! What lives here: the contract ([`CongestionControl`]), one file per algorithm under
//! `algorithms/`, the slow-start parts that several algorithms share under `slow_start/`, and the registry that turns a
//! name into an algorithm. What must not: loss detection, retransmission, RTT estimation, timers,
//! packets: those are the endpoint's (`dragstrip-tcp`).
//!
//! A congestion control is a guest. At every hook it is shown a read-only [`View`] of the
//! connection and may change the [`Window`]. Time is `view.now`, randomness is the [`Stream`] it
//! was built with.
//!
//! [`Stream`]: dragstrip_units::Stream

mod about;
pub mod algorithms;
mod bytes;
mod contract;
mod rate_halving;
mod registry;
pub mod slow_start;
#[cfg(test)]
mod testing;
mod window;
mod windowed_max;

pub use about::{About, Unit, Variable};
pub use contract::{
    Ack, CaState, CongestionControl, Event, Kernel, PacingStatus, RateSample, Response, View,
};
pub use registry::{Algorithm, Options, UnknownAlgorithm, about, names};
pub use window::Window;
