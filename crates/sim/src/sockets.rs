//! The endpoints of a run, and what their hosts remember of each other.
//!
//! A thousand connections do not fit a processor's near caches, and what a packet costs there is the number of cache
//! lines it touches. So an endpoint is laid out by hand (`repr(C)`, here and in its parts): what every segment needs
//! lies together, what recoveries, older stacks and handshakes need comes after it.

use dragstrip_packet::Dscp;
use dragstrip_scenario::SocketBuffers;
use dragstrip_tcp::{Endpoint, Metrics, Settings};
use dragstrip_units::Instant;
use std::mem::offset_of;

/// An endpoint, and how it is tied into the world.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Socket {
    /// Latest due time of its timer event.
    pub scheduled: Instant,
    /// First hop of its packets.
    pub first_hop: u32,
    pub flow: u32,
    /// True if it sends the flow's data: the recording shows its state.
    pub sends_data: bool,
    /// Something waits for a number of bytes to arrive at either end of the flow.
    pub awaited: bool,
    /// DSCP of its packets.
    pub dscp: Dscp,
    /// Index in [`Memory`] of its pair of host and peer.
    pub destination: u32,
    pub endpoint: Endpoint,
}

const _: () = assert!(offset_of!(Socket, endpoint) == Endpoint::BYTES_BEFORE);
/// Whole cache lines, and no power of two of them: the same line of all sockets then spreads over a cache's sets.
const _: () = assert!(cfg!(target_pointer_width = "32") || size_of::<Socket>() == 22 * 64);

/// An endpoint of QUIC.
#[derive(Debug)]
pub(crate) struct QuicSocket {
    /// Due time of its timer event.
    pub scheduled: Instant,
    /// First hop of its packets.
    pub first_hop: u32,
    pub flow: u32,
    /// It opens the connection and sends the flow's data.
    pub is_client: bool,
    pub dscp: Dscp,
    pub endpoint: dragstrip_quic::Endpoint,
}

impl Clone for QuicSocket {
    /// The stacks have no copies: a run with their flows is not copied ([`Run::copy`](crate::Run::copy)).
    fn clone(&self) -> Self {
        unreachable!("a run with flows of QUIC is not copied")
    }
}

/// The settings of a socket whose buffers the application has chosen.
pub(crate) fn with_buffers(settings: Settings, socket: SocketBuffers) -> Settings {
    let SocketBuffers { send_bytes, receive_bytes } = socket;
    let settings = match send_bytes {
        Some(bytes) => settings.with_send_buffer(u64::from(bytes)),
        None => settings,
    };
    match receive_bytes {
        Some(bytes) => settings.with_receive_buffer(u64::from(bytes)),
        None => settings,
    }
}

/// Metrics that hosts have cached of each other, for each pair.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Vec<Metrics>);

impl Memory {
    /// Metrics that the hosts have cached before the run, for the pairs that `sockets` connect.
    pub fn of(sockets: &[Socket]) -> Self {
        let pairs = sockets.iter().map(|socket| socket.destination as usize + 1).max();
        let mut metrics = vec![Metrics::default(); pairs.unwrap_or(0)];
        for socket in sockets {
            metrics[socket.destination as usize] = socket.endpoint.history();
        }
        Self(metrics)
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
