//! The endpoints of a run, and what their hosts remember of each other.

use dragstrip_tcp::{Endpoint, Metrics};
use dragstrip_units::Instant;

/// An endpoint, and how it is tied into the world.
#[derive(Debug)]
pub(crate) struct Socket {
    pub endpoint: Endpoint,
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
}

/// What hosts remember of each other, for each pair.
#[derive(Debug)]
pub(crate) struct Memory(Vec<Metrics>);

impl Memory {
    /// Nothing yet, of the pairs that `sockets` connect.
    pub fn of(sockets: &[Socket]) -> Self {
        let pairs = sockets.iter().map(|socket| socket.destination as usize + 1).max();
        Self(vec![Metrics::default(); pairs.unwrap_or(0)])
    }

    /// Before a connection is opened.
    pub fn recall(&self, socket: &mut Socket) {
        if socket.endpoint.keeps_metrics() {
            socket.endpoint.recall(self.0[socket.destination as usize]);
        }
    }

    /// A connection is reset.
    pub fn close(&mut self, socket: &mut Socket) {
        if socket.endpoint.keeps_metrics() {
            socket.endpoint.remember(&mut self.0[socket.destination as usize]);
        }
        socket.endpoint.reset();
    }
}
