//! The C library ngtcp2, loaded while the program runs: one end of a connection, without cipher, socket or clock.
//!
//! Scope: the library's functions and structures, callbacks that cipher nothing and draw from a named stream, and a safe object
//! around a connection. Out of scope: the handshake's messages and the loop around a connection (`dragstrip-quic`).
//!
//! The only crate of the simulator with `unsafe` in it. Nothing is linked: where the library is not installed, [`version`] says
//! which package has it.

#![allow(unsafe_code, reason = "ngtcp2's interface is C")]

mod absent;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod callbacks;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod connection;
mod contract;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod elsewhere;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod layout;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod library;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod settings;

pub use absent::Absent;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub use connection::Connection;
pub use contract::{Algorithm, Config, Handshake, ID_BYTES, Level, Output, Role, State};
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub use elsewhere::{Connection, version};
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub use library::version;
