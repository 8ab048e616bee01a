//! QUIC stacks of other projects as endpoints of the simulator.
//!
//! Scope: ngtcp2, noq, quinn and s2n-quic behind one interface, without cipher, clock or randomness of their own; Dragstrip's
//! congestion controls within noq; encryption of their datagrams for captures. Out of scope: the words for them
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
mod protection;
#[cfg(not(feature = "stacks"))]
mod protection {
    /// There is nothing to encrypt.
    #[derive(Debug)]
    pub enum Protection {}

    impl Protection {
        /// `None`: this build has no QUIC stacks.
        #[must_use]
        pub fn new(_: u64, _: &str) -> Option<Self> {
            None
        }

        /// A log of the keys.
        #[must_use]
        pub fn key_log(&self) -> String {
            match *self {}
        }

        /// Encrypts the packets of a datagram.
        pub fn protect(&mut self, _: bool, _: &mut [u8]) {
            match *self {}
        }
    }
}
#[cfg(feature = "stacks")]
mod quinn;
#[cfg(feature = "stacks")]
mod s2n_quic;
#[cfg(feature = "stacks")]
mod secrets;
#[cfg(feature = "stacks")]
mod seeds;
#[cfg(feature = "stacks")]
mod session;
#[cfg(feature = "stacks")]
mod watch;

pub use contract::{Control, Outbox, Role, Settings, Snapshot, Unavailable};
pub use endpoint::{Endpoint, absence};
pub use protection::Protection;
