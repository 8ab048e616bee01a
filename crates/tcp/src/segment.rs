//! What travels between two endpoints.

use dragstrip_units::Instant;

/// Header flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Opens a connection.
    pub const SYN: Self = Self(1);
    /// Acknowledges.
    pub const ACK: Self = Self(2);
    /// The sender has nothing more to add at once.
    pub const PSH: Self = Self(4);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(8);
    /// Window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(16);
    /// The sending host sets ECT(0) in the IP header of this segment.
    pub const ECT: Self = Self(32);
    /// Congestion experienced: set in the IP header on the way.
    pub const CE: Self = Self(64);
    /// The timestamp option is present.
    pub const TS: Self = Self(128);

    /// Both sets together.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds `other` when `condition` holds.
    #[inline]
    #[must_use]
    pub const fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// Whether all of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A SACK block relative to the segment's `ack`: `[ack + start, ack + end)`; a DSACK
/// (RFC 2883) lies below `ack` and is negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte, relative to `ack`.
    pub start: i32,
    /// One past the last byte, relative to `ack`.
    pub end: i32,
}

impl SackBlock {
    /// First byte and one past the last of a block that came with `ack`.
    #[inline]
    #[must_use]
    pub const fn range(self, ack: u64) -> (u64, u64) {
        (ack.wrapping_add_signed(self.start as i64), ack.wrapping_add_signed(self.end as i64))
    }
}

/// A segment: 56 bytes, so that a packet record with its routing fits a cache line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First byte of the payload.
    pub seq: u64,
    /// Next byte expected from the other side.
    pub ack: u64,
    /// Timestamp value, ms (RFC 7323).
    pub ts_val: u32,
    /// Timestamp echo, ms.
    pub ts_ecr: u32,
    /// Receive window in bytes, scale already applied.
    pub window: u32,
    /// Payload bytes.
    pub len: u16,
    /// Flags.
    pub flags: Flags,
    /// How many of `sack` are meant.
    pub sack_count: u8,
    /// SACK blocks, the first one most recent.
    pub sack: [SackBlock; 3],
}

impl Segment {
    /// One past the last payload byte.
    #[inline]
    #[must_use]
    pub fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Length of the Ethernet frame without FCS: 14 + 20 (IP) + 20 (TCP) + options + payload;
    /// a SYN carries 20 bytes of options, timestamps take 12, SACK 4 and 8 a block.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> u32 {
        let sack = if self.sack_count == 0 { 0 } else { 4 + 8 * u32::from(self.sack_count) };
        let options = if self.flags.has(Flags::SYN) {
            20
        } else if self.flags.has(Flags::TS) {
            12 + sack
        } else {
            sack
        };
        54 + options + u32::from(self.len)
    }
}

/// Where an endpoint's segments go.
pub trait Outbox {
    /// `segment` leaves the host now. The answer is when it will have left the host's own
    /// interface, for TCP Small Queues; `now` when nothing holds it up; `None`: the host's own queue was full.
    fn send(&mut self, segment: &Segment, now: Instant) -> Option<Instant>;
}
