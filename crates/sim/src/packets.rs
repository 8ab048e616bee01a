//! Packets under way: 64-byte records in an arena, reused last in, first out, so that an ACK takes the record
//! of the data packet that caused it.

use dragstrip_qdisc::{Ecn, PacketId};
use dragstrip_tcp::{Flags, Segment};

/// A packet.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// TCP header; a datagram or a ping uses `seq` and `ack` for its number and its time.
    pub segment: Segment,
    /// The hop whose queue discipline holds it; elsewhere a lane knows.
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

/// The arena.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    records: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        match self.free.pop() {
            Some(index) => {
                self.records[index as usize] = packet;
                PacketId(index)
            }
            None => {
                self.records.push(packet);
                PacketId((self.records.len() - 1) as u32)
            }
        }
    }

    #[inline]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.records[id.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.records[id.0 as usize]
    }

    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        self.free.push(id.0);
    }

    /// Packets under way.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }
}
