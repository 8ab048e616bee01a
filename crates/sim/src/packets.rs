//! Packets under way: 64-byte records in an arena, reused last in, first out, so that an ACK takes the record
//! of the data packet that caused it. The arena grows by chunks, whose records never move.

use dragstrip_qdisc::{Ecn, PacketId};
use dragstrip_tcp::{Flags, Segment};

/// A packet.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// TCP header; a datagram or a ping uses `seq` and `ack` for its number and its time.
    pub segment: Segment,
    /// The hop whose queue discipline holds it; elsewhere a lane knows. Of a free record: the next free one.
    pub hop: u32,
    /// Ethernet frame without FCS, bytes.
    pub frame: u16,
}

impl Packet {
    /// The ECN field of its IP header.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        if self.segment.flags.has(Flags::CE) {
            Ecn::Ce
        } else if self.segment.flags.has(Flags::ECT) {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }
}

/// The end of the list of free records.
const NONE: u32 = u32::MAX;

/// Records of a chunk: 2 to the power of this.
const CHUNK_BITS: u32 = 9;
const CHUNK: usize = 1 << CHUNK_BITS;

/// The arena.
#[derive(Debug)]
pub(crate) struct Packets {
    /// Of a fixed size, so that a record is found with one comparison.
    chunks: Vec<Box<[Packet; CHUNK]>>,
    /// The record freed last, which leads to the others.
    free: u32,
    under_way: usize,
}

impl Default for Packets {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: NONE, under_way: 0 }
    }
}

impl Packets {
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if self.free == NONE {
            self.grow();
        }
        self.under_way += 1;
        let id = PacketId(self.free);
        let record = self.get_mut(id);
        let next = record.hop;
        *record = packet;
        self.free = next;
        id
    }

    /// Another chunk of free records, in ascending order.
    #[cold]
    fn grow(&mut self) {
        let first = (self.chunks.len() << CHUNK_BITS) as u32;
        let mut chunk = Box::new(std::array::from_fn(|index| Packet {
            hop: first + index as u32 + 1,
            ..Packet::default()
        }));
        chunk[CHUNK - 1].hop = NONE;
        self.chunks.push(chunk);
        self.free = first;
    }

    #[inline]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.chunks[id.0 as usize >> CHUNK_BITS][id.0 as usize & (CHUNK - 1)]
    }

    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.chunks[id.0 as usize >> CHUNK_BITS][id.0 as usize & (CHUNK - 1)]
    }

    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        self.get_mut(id).hop = std::mem::replace(&mut self.free, id.0);
        self.under_way -= 1;
    }

    /// Packets under way.
    pub fn len(&self) -> usize {
        self.under_way
    }
}
