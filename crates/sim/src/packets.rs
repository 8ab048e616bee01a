//! Packets in flight: 64-byte records in an arena, reused last in, first out, so that an ACK takes the record of the
//! data packet that caused it. The arena grows by chunks, whose records never move. The bytes of QUIC's datagrams lie beside it.

use dragstrip_packet::{Body, QuicDatagram, Segment, TrafficClass};
use dragstrip_qdisc::PacketId;

/// A packet.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// Payload of IP.
    pub body: Body,
    /// The hop whose queue discipline holds it; elsewhere a lane knows. Of a free record: the next free one.
    pub hop: u32,
    /// [`Packet::frame`] in 24 bits: Ethernet's header in front of the largest IP packet takes 17.
    frame_low: u16,
    frame_high: u8,
    /// DSCP and ECN of its IP header.
    pub class: TrafficClass,
}

/// A packet is one cache line.
const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// A packet about to leave its host.
    #[inline]
    pub fn new(body: Body, class: TrafficClass) -> Self {
        Self::of_length(body.frame_len(), body, class)
    }

    /// The same of a segment, whose length is then not looked up by protocol.
    #[inline]
    pub fn tcp(segment: &Segment, class: TrafficClass) -> Self {
        Self::of_length(segment.frame_len(), Body::Tcp(*segment), class)
    }

    /// The same of a burst that is one packet: every segment of it has its headers on a wire.
    pub fn whole(segment: &Segment, segments: u32, class: TrafficClass) -> Self {
        let headers = segment.frame_len() - u32::from(segment.len);
        Self::of_length(segment.frame_len() + (segments - 1) * headers, Body::Tcp(*segment), class)
    }

    /// A packet whose frame has a length of its own, IPv6's or one with options.
    #[inline]
    pub fn of_length(frame: u32, body: Body, class: TrafficClass) -> Self {
        debug_assert!(frame < 1 << 24, "a payload of 16 bits and headers");
        Self { body, hop: 0, frame_low: frame as u16, frame_high: (frame >> 16) as u8, class }
    }

    /// Adds the bytes of a frame that is merged into this packet.
    fn lengthen(&mut self, frame: u32) {
        let sum = self.frame() + frame;
        debug_assert!(sum < 1 << 24, "a payload of 16 bits and headers");
        (self.frame_low, self.frame_high) = (sum as u16, (sum >> 16) as u8);
    }

    /// Ethernet frame without FCS, bytes.
    #[inline]
    pub fn frame(&self) -> u32 {
        u32::from(self.frame_low) | u32::from(self.frame_high) << 16
    }
}

/// The end of the list of free records.
const NONE: u32 = u32::MAX;

/// Records of a chunk: 2 to the power of this.
const CHUNK_BITS: u32 = 9;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Records, and beside them the lengths of their frames: a router needs nothing else of a packet, and many flows' records do not
/// fit the near caches.
#[derive(Clone, Debug)]
struct Chunk {
    records: [Packet; CHUNK],
    frames: [u32; CHUNK],
}

/// The arena.
#[derive(Clone, Debug)]
pub(crate) struct Packets {
    /// Records in chunks of a fixed size, so that a record is found with one comparison.
    chunks: Vec<Box<Chunk>>,
    /// The record freed last, which leads to the others.
    free: u32,
    under_way: usize,
    payloads: Payloads,
}

impl Default for Packets {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: NONE, under_way: 0, payloads: Payloads::default() }
    }
}

impl Packets {
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if self.free == NONE {
            self.grow();
        }
        self.under_way = self.under_way.wrapping_add(1);
        let id = PacketId(self.free);
        let chunk = &mut *self.chunks[id.0 as usize >> CHUNK_BITS];
        let place = id.0 as usize & (CHUNK - 1);
        chunk.frames[place] = packet.frame();
        let record = &mut chunk.records[place];
        self.free = record.hop;
        *record = packet;
        id
    }

    /// Another chunk of free records, in ascending order.
    #[cold]
    fn grow(&mut self) {
        let first = (self.chunks.len() << CHUNK_BITS) as u32;
        let mut chunk = Box::new(Chunk {
            records: std::array::from_fn(|index| Packet {
                hop: first + index as u32 + 1,
                ..Packet::new(Body::Tcp(Segment::default()), TrafficClass::default())
            }),
            frames: [0; CHUNK],
        });
        chunk.records[CHUNK - 1].hop = NONE;
        self.chunks.push(chunk);
        self.free = first;
    }

    #[inline]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.chunks[id.0 as usize >> CHUNK_BITS].records[id.0 as usize & (CHUNK - 1)]
    }

    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.chunks[id.0 as usize >> CHUNK_BITS].records[id.0 as usize & (CHUNK - 1)]
    }

    /// The packet's [`Packet::frame`], without a look at its record.
    #[inline]
    pub fn frame(&self, id: PacketId) -> u32 {
        self.chunks[id.0 as usize >> CHUNK_BITS].frames[id.0 as usize & (CHUNK - 1)]
    }

    /// Adds the bytes of a frame that is merged into the packet.
    pub fn lengthen(&mut self, id: PacketId, frame: u32) {
        let packet = self.get_mut(id);
        packet.lengthen(frame);
        let sum = packet.frame();
        self.chunks[id.0 as usize >> CHUNK_BITS].frames[id.0 as usize & (CHUNK - 1)] = sum;
    }

    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        if let Body::Quic(datagram) = self.get(id).body {
            self.payloads.release(datagram);
        }
        self.free(id);
    }

    /// Removes a packet that has no payload beside its record.
    #[inline]
    pub fn free(&mut self, id: PacketId) {
        let next = std::mem::replace(&mut self.free, id.0);
        self.get_mut(id).hop = next;
        self.under_way -= 1;
    }

    /// Another packet like this one.
    pub fn duplicate(&mut self, id: PacketId) -> PacketId {
        let copy = self.get(id).clone();
        if let Body::Quic(datagram) = copy.body {
            self.payloads.share(datagram);
        }
        self.insert(copy)
    }

    /// The body of a packet with this payload.
    pub fn quic(&mut self, payload: &[u8]) -> Body {
        Body::Quic(self.payloads.store(payload))
    }

    /// The payload of a packet in flight; empty for other protocols than QUIC.
    pub fn payload(&self, body: &Body) -> &[u8] {
        match body {
            Body::Quic(datagram) => self.payload_of_removed(*datagram),
            Body::Tcp(_) | Body::Udp(_) | Body::Icmp(_) => &[],
        }
    }

    /// The payload of a packet that was just removed.
    pub fn payload_of_removed(&self, datagram: QuicDatagram) -> &[u8] {
        &self.payloads.slots[datagram.slot as usize].bytes
    }

    /// Payloads in use.
    pub fn payloads(&self) -> usize {
        self.payloads.slots.len() - self.payloads.free.len()
    }

    /// Packets in flight.
    pub fn len(&self) -> usize {
        self.under_way
    }
}

/// Bytes of a datagram, and how many packets have them.
#[derive(Clone, Debug, Default)]
struct Payload {
    bytes: Vec<u8>,
    packets: u32,
}

/// Payloads of QUIC's datagrams. A released one keeps its bytes until its place is needed.
#[derive(Clone, Debug, Default)]
struct Payloads {
    slots: Vec<Payload>,
    free: Vec<u32>,
}

impl Payloads {
    fn store(&mut self, payload: &[u8]) -> QuicDatagram {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Payload::default());
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.bytes.clear();
        place.bytes.extend_from_slice(payload);
        place.packets = 1;
        QuicDatagram { slot, len: payload.len() as u16 }
    }

    fn share(&mut self, datagram: QuicDatagram) {
        self.slots[datagram.slot as usize].packets += 1;
    }

    #[cold]
    fn release(&mut self, datagram: QuicDatagram) {
        let place = &mut self.slots[datagram.slot as usize];
        place.packets -= 1;
        if place.packets == 0 {
            self.free.push(datagram.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_lives_as_long_as_its_last_packet() {
        let mut packets = Packets::default();
        let body = packets.quic(&[1, 2, 3]);
        let first = packets.insert(Packet::new(body, TrafficClass::default()));
        let second = packets.duplicate(first);
        packets.remove(first);
        assert_eq!(packets.payloads(), 1);
        let Body::Quic(datagram) = packets.get(second).body else { unreachable!() };
        packets.remove(second);
        assert_eq!((packets.payloads(), packets.payload_of_removed(datagram)), (0, &[1, 2, 3][..]));
        assert_eq!(packets.quic(&[4]), Body::Quic(QuicDatagram { slot: datagram.slot, len: 1 }));
    }
}
