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
}

impl<'a, O> Out<'a, O> {
    #[inline]
    pub fn of(network: &'a mut Network<O>, socket: &Socket) -> Self {
        Self { network, first_hop: socket.first_hop, dscp: socket.dscp }
    }
}

/// The same where what an ACK releases waits for an agent's action.
pub(super) struct HeldOut<'a, O>(pub Out<'a, O>);

impl<O: Observer> Outbox for HeldOut<'_, O> {
    const HOLDS: bool = true;

    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant> {
        self.0.send(segment, ecn, now)
    }

    fn send_whole(
        &mut self,
        segment: &Segment,
        segments: u32,
        ecn: Ecn,
        now: Instant,
    ) -> Option<Instant> {
        self.0.send_whole(segment, segments, ecn, now)
    }
}

impl<O: Observer> Outbox for Out<'_, O> {
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
