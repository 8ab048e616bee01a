//! The way out of a host.

use crate::network::Network;
use crate::observer::Observer;
use crate::packets::Packet;
use crate::sockets::Socket;
use dragstrip_packet::{Dscp, Ecn, Segment, TrafficClass};
use dragstrip_tcp::Outbox;
use dragstrip_units::Instant;

/// The way out of one host for one connection.
pub(super) struct Out<'a, O> {
    network: &'a mut Network<O>,
    first_hop: u32,
    dscp: Dscp,
    /// True if what an ACK releases waits for an agent's action.
    holds: bool,
}

impl<'a, O> Out<'a, O> {
    #[inline]
    pub fn of(network: &'a mut Network<O>, socket: &Socket) -> Self {
        Self { network, first_hop: socket.first_hop, dscp: socket.dscp, holds: false }
    }

    /// The same where what an ACK releases waits for an agent's action.
    pub fn holding(network: &'a mut Network<O>, socket: &Socket) -> Self {
        Self { holds: true, ..Self::of(network, socket) }
    }
}

impl<O: Observer> Outbox for Out<'_, O> {
    #[inline]
    fn holds(&self) -> bool {
        self.holds
    }

    #[inline]
    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant> {
        let class = TrafficClass::new(self.dscp, ecn);
        self.network.send(Packet::tcp(segment, class), self.first_hop, now)
    }

    fn send_whole(
        &mut self,
        segment: &Segment,
        segments: u32,
        ecn: Ecn,
        now: Instant,
    ) -> Option<Instant> {
        let class = TrafficClass::new(self.dscp, ecn);
        self.network.send(Packet::whole(segment, segments, class), self.first_hop, now)
    }
}
