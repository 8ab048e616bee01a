//! Congestion controls: what each does with the window, and nothing else.
//!
//! Scope: the contract ([`CongestionControl`]), one file or folder per algorithm under `algorithms/`, the slow-start
//! parts that several algorithms share under `slow_start/`, the parts that FreeBSD's share under `bsd/`, the language
//! in which a scenario defines its own algorithm under `program/`, agents and policies under
//! `agent/`, the rules in which kernels differ ([`Rules`]), and
//! the registry that turns a name into an algorithm. Out of scope: loss detection, retransmission, RTT estimation,
//! timers, packets: those are the endpoint's (`dragstrip-tcp`).
//!
//! A congestion control is a guest. At every hook it is shown a read-only [`View`] of the
//! connection and may change the [`Window`]. Time is `view.now`, randomness is the [`Stream`] it
//! was built with.
//!
//! [`Stream`]: dragstrip_units::Stream

mod about;
pub mod agent;
pub mod algorithms;
mod bsd;
mod ca_state;
mod contract;
mod delays;
mod parameters;
pub mod program;
mod registry;
mod rules;
pub mod slow_start;
#[cfg(test)]
mod testing;
mod window;
mod windowed_max;

pub use about::{About, EcnMode, Needs, Parameter, Range, Signal, Unit, Variable};
pub use ca_state::CaState;
pub use contract::{
    Ack, AckEvent, CongestionControl, Event, LostPacket, PacingStatus, RateSample, Response,
    Stamps, View,
};
pub use parameters::{Options, PARTS, Parameters, UnknownAlgorithm, check_options};
#[cfg(feature = "guest")]
pub use registry::Guest;
pub use registry::{Agent, Algorithm, Text, about, check, draws, names, paces};
pub use rules::{BsdHost, CubicCurve, CwndLimited, Growth, HyStartClock, Rules, VegasRule};
pub use window::Window;
