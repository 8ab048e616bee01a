//! An endpoint, whichever stack it is of.

#[cfg(feature = "stacks")]
use crate::connection::Connection;
#[cfg(feature = "stacks")]
use crate::contract::Control;
use crate::contract::{Outbox, Settings, Snapshot, Unavailable};
#[cfg(feature = "stacks")]
use crate::guard::Guard;
use dragstrip_cc::program::Fault;
use dragstrip_scenario::quic::Stack;
use dragstrip_units::Instant;
use std::fmt;

/// One end of a connection.
pub struct Endpoint {
    #[cfg(feature = "stacks")]
    connection: Guard,
    #[cfg(not(feature = "stacks"))]
    connection: Never,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

#[cfg(feature = "stacks")]
impl Endpoint {
    /// An endpoint without a connection.
    ///
    /// # Errors
    /// A build without stacks, a stack whose library is absent.
    pub fn new(settings: &Settings<'_>) -> Result<Self, Unavailable> {
        let connection = match settings.control {
            Control::Stack(Stack::Ngtcp2, algorithm) => {
                crate::ngtcp2::connection(settings, algorithm)?
            }
            Control::Stack(Stack::Noq, _) | Control::Own(_) => crate::noq::connection(settings),
            Control::Stack(Stack::Quinn, _) => crate::quinn::connection(settings),
            Control::Stack(Stack::S2nQuic, algorithm) => {
                crate::s2n_quic::connection(settings, algorithm)
            }
        };
        Ok(Self { connection: Guard::new(connection, settings.payload_bytes) })
    }
}

/// Why a stack cannot run on this machine; `None`: it can.
#[must_use]
pub fn absence(stack: Stack) -> Option<Unavailable> {
    #[cfg(feature = "stacks")]
    match stack {
        Stack::Ngtcp2 => crate::ngtcp2::absence(),
        Stack::Noq | Stack::Quinn | Stack::S2nQuic => None,
    }
    #[cfg(not(feature = "stacks"))]
    match stack {
        Stack::Ngtcp2 | Stack::Noq | Stack::Quinn | Stack::S2nQuic => Some(Unavailable::Build),
    }
}

/// There is no endpoint.
#[derive(Clone, Copy)]
#[cfg(not(feature = "stacks"))]
enum Never {}

#[cfg(not(feature = "stacks"))]
impl Endpoint {
    /// An endpoint without a connection.
    ///
    /// # Errors
    /// A build without stacks.
    pub fn new(_: &Settings<'_>) -> Result<Self, Unavailable> {
        Err(Unavailable::Build)
    }
}

/// Forwards to the connection, of which a build without stacks has none.
macro_rules! forward {
    (
        acts { $($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?;)* }
        tells { $($(#[$get_doc:meta])* $get:ident() -> $get_answer:ty;)* }
    ) => {
        #[cfg(feature = "stacks")]
        impl Endpoint {
            $($(#[$doc])* pub fn $name(&mut self $(, $argument: $kind)*) $(-> $answer)? {
                self.connection.$name($($argument),*)
            })*
            $($(#[$get_doc])* #[must_use] pub fn $get(&self) -> $get_answer {
                self.connection.$get()
            })*
        }
        #[cfg(not(feature = "stacks"))]
        impl Endpoint {
            $($(#[$doc])* pub fn $name(&mut self $(, _: $kind)*) $(-> $answer)? {
                match self.connection {}
            })*
            $($(#[$get_doc])* #[must_use] pub fn $get(&self) -> $get_answer {
                match self.connection {}
            })*
        }
    };
}

forward! {
    acts {
        /// A client opens the connection.
        open(now: Instant, out: &mut dyn Outbox);
        /// The application wants bytes sent until there are `total`; `u64::MAX` for as many as fit.
        write_until(total: u64, now: Instant, out: &mut dyn Outbox);
        /// The application has nothing to add to what was written.
        stop_writing();
        /// A datagram has arrived.
        on_datagram(payload: &[u8], now: Instant, out: &mut dyn Outbox);
        /// The deadline has come.
        on_deadline(now: Instant, out: &mut dyn Outbox);
        /// The endpoint falls silent: nothing is sent, and what arrives is ignored.
        close();
        /// The RTT sample since the last call, ns.
        take_rtt_ns() -> Option<u64>;
        /// Reason of a lost connection in the stack's words; returned once.
        take_loss() -> Option<String>;
    }
    tells {
        /// Instant at which the endpoint has to act next.
        deadline() -> Instant;
        /// Bytes that the application has read.
        bytes_read() -> u64;
        /// Fault that has stopped the program that controls the congestion.
        fault() -> Option<Fault>;
        /// State of the sender.
        snapshot() -> Snapshot;
    }
}
