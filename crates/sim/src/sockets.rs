//! The endpoints of a run, and what their hosts remember of each other.
//!
//! A thousand connections do not fit a processor's near caches, and what a packet costs there is the number of cache
//! lines it touches. So an endpoint is laid out by hand (`repr(C)`, here and in its parts): what every segment needs
//! lies together, what recoveries, older stacks and handshakes need comes after it.

use dragstrip_tcp::{Endpoint, Metrics};
use dragstrip_units::Instant;

/// An endpoint, and how it is tied into the world.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Socket {
    /// When its timer event is due at the latest.
    pub scheduled: Instant,
    /// Where its packets begin their way.
    pub first_hop: u32,
    pub flow: u32,
    /// It sends the flow's data: its state is what the recording shows.
    pub sends_data: bool,
    /// Something waits for a number of bytes to arrive at either end of the flow.
    pub awaited: bool,
    /// Which of the [`Memory`] is of its host and its peer.
    pub destination: u32,
    pub endpoint: Endpoint,
}

/// What hosts remember of each other, for each pair.
#[derive(Debug)]
pub(crate) struct Memory(Vec<Metrics>);

impl Memory {
    /// Of the pairs that `sockets` connect, what the hosts have from before.
    pub fn of(sockets: &[Socket]) -> Self {
        let pairs = sockets.iter().map(|socket| socket.destination as usize + 1).max();
        let mut known = vec![Metrics::default(); pairs.unwrap_or(0)];
        for socket in sockets {
            known[socket.destination as usize] = socket.endpoint.history();
        }
        Self(known)
    }

    /// Before a connection is opened.
    pub fn recall(&self, socket: &mut Socket) {
        socket.endpoint.recall(self.0[socket.destination as usize]);
    }

    /// A connection is reset.
    pub fn close(&mut self, socket: &mut Socket) {
        if socket.endpoint.keeps_metrics() {
            socket.endpoint.remember(&mut self.0[socket.destination as usize]);
        }
        socket.endpoint.reset();
    }
}
