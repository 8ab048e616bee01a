//! The simulator's own links and queues between devices of real kernels, by the clock.
//!
//! `carrier` moves packets between devices and a simulated network; a shell (shell/) runs one between two TUN devices.
//! `lines` runs one in a network of namespaces, for links that a kernel cannot have itself.

mod carrier;
mod lateness;
mod ledger;
pub mod lines;
pub mod packet;

pub use carrier::{Carrier, Devices};
