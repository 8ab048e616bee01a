//! IP over TCP: a link whose packets a connection carries. Here is the link; `world/tunnel.rs` moves its packets.
//!
//! The connection is a flow's like any other. A packet goes from the link's queue into the flow's socket as soon as
//! that has accepted all of the one before; it continues from the far end when the stream has arrived in order up to
//! its end.

use super::{ETHERNET_BYTES, Losses, Network, Server};
use crate::calendar::Source;
use crate::observer::{Event, Observer};
use dragstrip_qdisc::{Dequeue, Discipline, PacketId, Qdisc};
use dragstrip_units::Instant;
use std::collections::VecDeque;

/// A queue discipline in front of a socket, and the packets in the stream after it.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    pub discipline: Discipline,
    /// The socket it writes to.
    pub socket: u32,
    pub header_bytes: u32,
    /// Position of the stream's end.
    pub written: u64,
    /// End position of each packet in the stream.
    pub under_way: VecDeque<(u64, PacketId)>,
    /// Something has come to the queue, or the discipline's watchdog.
    pub source: Source,
}

impl Tunnel {
    /// Packets in the queue and in the stream.
    pub fn packets(&self) -> u64 {
        u64::from(self.discipline.backlog().packets) + self.under_way.len() as u64
    }
}

impl<O: Observer> Network<O> {
    /// The stage's tunnel; none if it has none.
    #[inline]
    pub fn tunnel(&self, index: usize) -> Option<&Tunnel> {
        match &self.stages[index].server {
            Server::Tunnel(tunnel) => Some(tunnel),
            Server::Computed(_) | Server::Evented(_) | Server::Shared(_) => None,
        }
    }

    /// The next packet goes from the queue into the stream; where that then ends, or nothing if no packet may go.
    pub fn enter_tunnel(&mut self, index: usize, now: Instant) -> Option<u64> {
        let stage = &mut self.stages[index];
        let Server::Tunnel(tunnel) = &mut stage.server else { return None };
        let mut sink = Losses {
            packets: &mut self.packets,
            hops: &self.hops,
            addresses: &self.addresses,
            counters: &mut stage.counters,
            watch: &mut self.watch,
            stage: index,
            now,
        };
        match tunnel.discipline.dequeue(now, &mut sink) {
            Dequeue::Packet(item) => {
                sink.tell(Event::Dequeued, item.packet);
                // A tun device hands over the packet without Ethernet's header.
                tunnel.written += u64::from(tunnel.header_bytes + item.len - ETHERNET_BYTES);
                tunnel.under_way.push_back((tunnel.written, item.packet));
                Some(tunnel.written)
            }
            Dequeue::Wait(until) => {
                self.calendar.set(tunnel.source, until);
                None
            }
            Dequeue::Empty => None,
        }
    }

    /// The stream has arrived up to here: the packets in it go on.
    pub fn leave_tunnel(&mut self, index: usize, arrived: u64, now: Instant) {
        let at = now + self.stages[index].delay;
        while let Server::Tunnel(tunnel) = &mut self.stages[index].server
            && let Some(&(end, id)) = tunnel.under_way.front()
            && end <= arrived
        {
            tunnel.under_way.pop_front();
            self.leave(index, id, at, now);
        }
    }
}
