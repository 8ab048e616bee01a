//! Conformance scripts: time lines of one TCP endpoint, in text, played against any stack.
//!
//! Scope: the language (`script.rs`, `line.rs`), the player that is the endpoint's peer and judge (`play.rs`,
//! `play/judge.rs`), and the simulator's endpoint as a stack (`simulator.rs`). Out of scope: access to a kernel; the
//! agent implements [`Stack`] on real sockets.
//!
//! The scripts are in `conformance/`, their language is described in `conformance/README.md`.

mod line;
mod play;
mod script;
#[cfg(feature = "simulator")]
mod simulator;

pub use line::{Action, Base, EcnBytes, Expected, Line, Position, Pushed, Range, Reading, Reply};
pub use play::{Failure, Info, Outcome, Packet, Read, Stack, SynOptions, Verdict, play};
pub use script::{Fault, Opening, PeerOptions, Script};
#[cfg(feature = "simulator")]
pub use simulator::play_on_simulator;
