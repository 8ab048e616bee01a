//! The contract of a discipline: its input, its answers and the sink it reports to.

use dragstrip_packet::Segment;
pub use dragstrip_packet::{Dscp, Ecn};
use dragstrip_units::Instant;

/// Handle of a packet in the simulator's arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketId(pub u32);

/// The properties of a packet that a discipline needs.
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

impl Item {
    /// Marks it, if it may be marked (`INET_ECN_set_ce`): true for ECT(0), ECT(1) and CE. The sink is notified, and who judges the
    /// packet after this one sees CE.
    #[inline]
    pub fn mark<S: Sink>(&mut self, sink: &mut S) -> bool {
        if !self.ecn.is_capable() {
            return false;
        }
        self.ecn = Ecn::Ce;
        sink.marked(self.packet);
        true
    }

    /// `skb->priority` of a forwarded packet, from what used to be the TOS bits (`rt_tos2priority`): 0 best effort, 2 bulk,
    /// 4 interactive bulk, 6 interactive.
    #[inline]
    #[must_use]
    pub const fn priority(&self) -> u8 {
        match self.dscp.value() >> 1 & 3 {
            0 => 0,
            1 => 2,
            2 => 6,
            _ => 4,
        }
    }
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
    /// No class takes it.
    Unclassified,
    /// The link is down.
    Down,
    /// A later acknowledgement of the same connection says what it says.
    AckFilter,
}

/// A setting of a discipline that gets another value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Bit/s of a shaper.
    RateBps(u64),
    /// Amount that may wait, where the limit counts bytes.
    LimitBytes(u64),
    /// Amount that may wait, where the limit counts packets.
    LimitPackets(u32),
    /// By which netem holds every packet.
    DelayNs(u64),
    /// Probability with which netem loses a packet, each by itself.
    Loss(f64),
}

/// The hosts that a packet's addresses name: two packets with the same number have the same address there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Sending host.
    pub source: u32,
    /// Whom it is for.
    pub destination: u32,
}

/// Fields of a packet's headers that filters look at, beside those of an [`Item`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// IP's protocol: 1 ICMP, 6 TCP, 17 UDP.
    pub protocol: u8,
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port; ICMP's type and code.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// The firewall's mark.
    pub mark: u32,
}

/// Result of `enqueue` for the packet in hand; more detailed than the kernel's `NET_XMIT` codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is in, as it came.
    Queued,
    /// It is in, and was marked.
    Marked,
    /// It is gone.
    Dropped(DropReason),
    /// It is in, and at least one that waited was dropped instead.
    DroppedOther(DropReason),
}

/// Receives what a discipline does with packets, and answers the few that look further into them than an [`Item`] goes.
pub trait Sink {
    /// `item` will never leave.
    fn dropped(&mut self, item: Item, reason: DropReason);
    /// `packet`'s ECN field becomes CE; it stays in the queue or leaves as usual.
    fn marked(&mut self, packet: PacketId);
    /// netem duplicates `item`: the answer is the copy, a packet of its own.
    fn duplicated(&mut self, item: Item) -> Item;
    /// `packet`'s DSCP becomes that of best effort.
    fn washed(&mut self, _packet: PacketId) {}
    /// The addresses of `packet`; for who knows none all are alike.
    fn hosts(&self, _packet: PacketId) -> Hosts {
        Hosts::default()
    }
    /// The headers of `packet`; for who knows none all fields are zero.
    fn headers(&self, _packet: PacketId) -> Headers {
        Headers::default()
    }
    /// The TCP segment that `packet` carries, if it is one.
    fn segment(&self, _packet: PacketId) -> Option<&Segment> {
        None
    }
}

/// Result of a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// This packet leaves now.
    Packet(Item),
    /// Nothing may leave before this instant (a shaper's or netem's watchdog).
    Wait(Instant),
    /// Nothing is queued.
    Empty,
}

/// Backlog of a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Sum of `len`.
    pub bytes: u64,
    /// Number of packets.
    pub packets: u32,
}

/// A queue discipline. Calls come with `now` never decreasing.
///
/// It has no clock of its own. To be woken it answers [`Dequeue::Wait`]; a kernel timer that nobody waits for is replayed at
/// the next call ([`Periodic`](crate::Periodic)).
pub trait Qdisc {
    /// Takes `item` in, or drops it or others: every drop and mark is reported to `sink`, and the answer is what became of
    /// `item`. What a replayed timer did is not part of the answer.
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict;

    /// The next packet that may leave at `now`, or when to ask again.
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue;

    /// Returns the backlog, children included.
    fn backlog(&self) -> Backlog;

    /// The packet that leaves next, of a discipline in which looking decides nothing. Others are looked at with
    /// [`Peekable`](crate::Peekable).
    #[inline]
    fn head(&self) -> Option<Item> {
        None
    }

    /// A setting gets another value (tc's `change`); what waits stays, unless the kernel's discipline drops it then. A setting that
    /// the discipline does not have is none of its business: [`Configuration::changed`](crate::Configuration::changed) knows.
    fn change<S: Sink>(&mut self, _change: Change, _now: Instant, _sink: &mut S) {}
}

impl<Q: Qdisc> Qdisc for Box<Q> {
    #[inline]
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        Q::enqueue(self, item, now, sink)
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        Q::dequeue(self, now, sink)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Q::backlog(self)
    }

    #[inline]
    fn head(&self) -> Option<Item> {
        Q::head(self)
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        Q::change(self, change, now, sink);
    }
}
