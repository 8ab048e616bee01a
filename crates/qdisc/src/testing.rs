//! A sink for unit tests.

use crate::contract::{DropReason, Hosts, Item, PacketId, Sink};
use dragstrip_packet::{Flags, Segment};

/// A segment that acknowledges up to `ack`, and whatever else `flags` say.
pub(crate) fn segment(ack: u64, len: u16, flags: Flags) -> Segment {
    let mut segment = Segment::new(1, len, flags.with(Flags::ACK));
    segment.ack = ack;
    segment
}

/// Everything a discipline has reported.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) drops: Vec<(PacketId, DropReason)>,
    pub(crate) marks: Vec<PacketId>,
    pub(crate) copies: Vec<PacketId>,
    /// Segments and flows of packets, by number; none or the same for those beyond.
    pub(crate) segments: Vec<Segment>,
    pub(crate) hosts: Vec<Hosts>,
}

impl Sink for Log {
    fn dropped(&mut self, item: Item, reason: DropReason) {
        self.drops.push((item.packet, reason));
    }

    fn marked(&mut self, packet: PacketId) {
        self.marks.push(packet);
    }

    fn duplicated(&mut self, item: Item) -> Item {
        self.copies.push(item.packet);
        Item { packet: PacketId(item.packet.0 + 1_000_000), ..item }
    }

    fn hosts(&self, packet: PacketId) -> Hosts {
        self.hosts.get(packet.0 as usize).copied().unwrap_or_default()
    }

    fn segment(&self, packet: PacketId) -> Option<&Segment> {
        self.segments.get(packet.0 as usize)
    }
}
