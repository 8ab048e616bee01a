//! Changes while packets wait: tc's `change` on a live device.

use crate::contract::{Dequeue, DropReason, Qdisc, Sink};
use dragstrip_units::Instant;

/// Drops what the discipline hands out until no more than `most` packets are left, as `fq_codel_change`, `fq_change` and
/// `fq_pie_change` do.
pub(crate) fn drain<Q: Qdisc, S: Sink>(qdisc: &mut Q, most: u32, now: Instant, sink: &mut S) {
    while qdisc.backlog().packets > most {
        let Dequeue::Packet(item) = qdisc.dequeue(now, sink) else { break };
        sink.dropped(item, DropReason::Overlimit);
    }
}

/// Drops everything that waits, as `qdisc_reset` frees it when the device goes down (`dev_deactivate_many`). Of use for a
/// discipline that is not asked again: it is asked as time goes on, until it is empty.
pub fn purge<Q: Qdisc, S: Sink>(qdisc: &mut Q, mut now: Instant, sink: &mut S) {
    let mut down = Down(sink);
    loop {
        match qdisc.dequeue(now, &mut down) {
            Dequeue::Packet(item) => down.dropped(item, DropReason::Down),
            Dequeue::Wait(until) => now = until,
            Dequeue::Empty => return,
        }
    }
}

/// Whatever the discipline says of a packet, the reason is another; and nobody sees a mark.
struct Down<'a, S>(&'a mut S);

impl<S: Sink> Sink for Down<'_, S> {
    fn dropped(&mut self, item: crate::Item, _reason: DropReason) {
        self.0.dropped(item, DropReason::Down);
    }

    fn marked(&mut self, _packet: crate::PacketId) {}

    fn duplicated(&mut self, item: crate::Item) -> crate::Item {
        self.0.duplicated(item)
    }

    fn washed(&mut self, packet: crate::PacketId) {
        self.0.washed(packet);
    }

    fn hosts(&self, packet: crate::PacketId) -> crate::Hosts {
        self.0.hosts(packet)
    }

    fn headers(&self, packet: crate::PacketId) -> crate::Headers {
        self.0.headers(packet)
    }

    fn segment(&self, packet: crate::PacketId) -> Option<&dragstrip_packet::Segment> {
        self.0.segment(packet)
    }
}

#[cfg(test)]
mod tests;
