//! QUIC stacks of other projects as endpoints of the simulator.
//!
//! Scope: ngtcp2, noq, quinn and s2n-quic behind one interface, without cipher, clock or randomness of their own; Dragstrip's congestion controls within noq. Out of scope: the words for them
//! (`dragstrip-scenario`), the network between two endpoints and the application (`dragstrip-sim`).
//!
//! Without the feature `stacks` there is the interface alone, and no endpoint can be made.

#[cfg(feature = "stacks")]
mod clock;
#[cfg(feature = "stacks")]
mod connection;
mod contract;
#[cfg(feature = "stacks")]
mod data;
mod endpoint;
#[cfg(feature = "stacks")]
mod guard;
#[cfg(feature = "stacks")]
mod handshake;
#[cfg(feature = "stacks")]
mod ngtcp2;
#[cfg(feature = "stacks")]
mod noq;
#[cfg(feature = "stacks")]
mod own;
#[cfg(feature = "stacks")]
mod quinn;
#[cfg(feature = "stacks")]
mod s2n_quic;
#[cfg(feature = "stacks")]
mod seeds;
#[cfg(feature = "stacks")]
mod session;
#[cfg(feature = "stacks")]
mod watch;

pub use contract::{Control, Outbox, Role, Settings, Snapshot, Unavailable};
pub use endpoint::{Endpoint, absence};
