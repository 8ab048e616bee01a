//! A sink that follows one packet.

use crate::contract::{DropReason, Headers, Hosts, Item, PacketId, Sink, Verdict};
use dragstrip_packet::Segment;

/// Passes everything on, and keeps the verdict on one packet up to date.
pub(super) struct Watched<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) packet: PacketId,
    pub(super) verdict: Verdict,
}

impl Sink for Watched<'_> {
    fn dropped(&mut self, item: Item, reason: DropReason) {
        if item.packet == self.packet {
            self.verdict = Verdict::Dropped(reason);
        }
        self.sink.dropped(item, reason);
    }

    fn marked(&mut self, packet: PacketId) {
        if packet == self.packet && self.verdict == Verdict::Queued {
            self.verdict = Verdict::Marked;
        }
        self.sink.marked(packet);
    }

    fn duplicated(&mut self, item: Item) -> Item {
        self.sink.duplicated(item)
    }

    fn washed(&mut self, packet: PacketId) {
        self.sink.washed(packet);
    }

    fn hosts(&self, packet: PacketId) -> Hosts {
        self.sink.hosts(packet)
    }

    fn headers(&self, packet: PacketId) -> Headers {
        self.sink.headers(packet)
    }

    fn segment(&self, packet: PacketId) -> Option<&Segment> {
        self.sink.segment(packet)
    }
}
