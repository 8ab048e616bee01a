//! What a discipline is given, what it answers and whom it tells.

pub use dragstrip_packet::{Dscp, Ecn};
use dragstrip_units::Instant;

/// Handle of a packet in the simulator's arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketId(pub u32);

/// What a discipline needs to know of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The packet.
    pub packet: PacketId,
    /// `qdisc_pkt_len`: the Ethernet frame without FCS, preamble and gap (1514 for a full segment).
    pub len: u32,
    /// Identifies the 5-tuple; fair queueing hashes it. The two directions of a flow differ.
    pub flow: u32,
    /// ECN codepoint at the time of enqueue.
    pub ecn: Ecn,
    /// DSCP.
    pub dscp: Dscp,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// No room.
    Overlimit,
    /// Active queue management decided so.
    Aqm,
    /// netem's loss model.
    Loss,
    /// netem's corruption: the receiver's checksum would discard it.
    Corrupt,
}

/// Who is told what a discipline does with packets.
pub trait Sink {
    /// `item` will never leave.
    fn dropped(&mut self, item: Item, reason: DropReason);
    /// `packet`'s ECN field becomes CE; it stays in the queue or leaves as usual.
    fn marked(&mut self, packet: PacketId);
    /// netem duplicates `item`: the answer is the copy, a packet of its own.
    fn duplicated(&mut self, item: Item) -> Item;
}

/// What a dequeue gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// This packet leaves now.
    Packet(Item),
    /// Nothing may leave before this instant (a shaper's or netem's watchdog).
    Wait(Instant),
    /// Nothing is queued.
    Empty,
}

/// What a discipline holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Sum of `len`.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u32,
}

/// A queue discipline. Calls come with `now` never decreasing.
pub trait Qdisc {
    /// Takes `item` in, or drops it or another one (told to `sink`).
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S);

    /// The next packet that may leave at `now`, or when to ask again.
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue;

    /// What is queued, children included.
    fn backlog(&self) -> Backlog;
}

impl<Q: Qdisc> Qdisc for Box<Q> {
    #[inline]
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) {
        Q::enqueue(self, item, now, sink);
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        Q::dequeue(self, now, sink)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Q::backlog(self)
    }
}
