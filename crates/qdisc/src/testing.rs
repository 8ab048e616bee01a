//! A sink for unit tests.

use crate::contract::{DropReason, Item, PacketId, Sink};

/// Everything a discipline has reported.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) drops: Vec<(PacketId, DropReason)>,
    pub(crate) marks: Vec<PacketId>,
    pub(crate) copies: Vec<PacketId>,
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
}
