//! TCP's header and options.

use crate::{ETHERNET_BYTES, IP_BYTES};

/// TCP's header without options.
const TCP_BYTES: u32 = 20;

/// Header flags: the header's fourteenth octet, with AE (RFC 9768 §3.2) in the place of URG, which nothing here sets
/// (RFC 6093 §5 advises against it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(1);
    /// Opens a connection.
    pub const SYN: Self = Self(2);
    /// Ends a connection at once.
    pub const RST: Self = Self(4);
    /// The sender has nothing more to add at once.
    pub const PSH: Self = Self(8);
    /// Acknowledges.
    pub const ACK: Self = Self(16);
    /// The third bit of the ACE counter (RFC 9768).
    pub const AE: Self = Self(32);
    /// ECN echo (RFC 3168 §6.1); the first bit of the ACE counter.
    pub const ECE: Self = Self(64);
    /// Window reduced (RFC 3168 §6.1); the second bit of the ACE counter.
    pub const CWR: Self = Self(128);

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

    /// Those of `other` that are set here too.
    #[inline]
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The others.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// AE and the header's fourteenth octet, as they lie on the wire: bits 8 and 7 to 0.
    #[must_use]
    pub const fn wire(self) -> u16 {
        let ae = self.0 & Self::AE.0;
        (ae as u16) << 3 | (self.0 & !ae) as u16
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
    /// The block `[start, end)` of a segment with this `ack`.
    #[inline]
    #[must_use]
    pub const fn relative(ack: u64, start: u64, end: u64) -> Self {
        Self { start: start.wrapping_sub(ack) as i32, end: end.wrapping_sub(ack) as i32 }
    }

    /// First byte and one past the last of a block that came with `ack`.
    #[inline]
    #[must_use]
    pub const fn range(self, ack: u64) -> (u64, u64) {
        (ack.wrapping_add_signed(self.start as i64), ack.wrapping_add_signed(self.end as i64))
    }

    /// Its length.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.end.wrapping_sub(self.start) as u32
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval, ms.
    pub val: u32,
    /// TSecr, ms.
    pub ecr: u32,
}

/// What only a SYN carries. That it offers timestamps is said by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size, bytes (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Shift of the windows to come (RFC 7323 §2); `None`: no scaling.
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 §2).
    pub sack_permitted: bool,
}

/// Room for the values of options: a SYN's, or four SACK blocks, or three and the timestamps behind them.
const OPTION_WORDS: usize = 8;

/// Where the timestamps lie.
const STAMPS: usize = 6;

/// A segment: 56 bytes, so that a packet's record with its routing fits a cache line. `stamped` is a `bool` of its own
/// so that [`crate::Body`] finds room for its discriminant in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First byte of the payload.
    pub seq: u64,
    /// Next byte expected from the other side.
    pub ack: u64,
    /// Receive window in bytes, scale already applied.
    pub window: u32,
    options: [u32; OPTION_WORDS],
    /// Payload bytes.
    pub len: u16,
    /// Flags.
    pub flags: Flags,
    stamped: bool,
}

impl Segment {
    /// `len` bytes from `seq` on, without options; nothing is acknowledged yet.
    #[inline]
    #[must_use]
    pub fn new(seq: u64, len: u16, flags: Flags) -> Self {
        Self { seq, len, flags, ..Self::default() }
    }

    /// One past the last payload byte.
    #[inline]
    #[must_use]
    pub fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// The timestamps option.
    #[inline]
    #[must_use]
    pub fn timestamps(&self) -> Option<Timestamps> {
        let stamps = Timestamps { val: self.options[STAMPS], ecr: self.options[STAMPS + 1] };
        self.stamped.then_some(stamps)
    }

    /// Adds the timestamps option.
    ///
    /// # Panics
    /// Beside four SACK blocks (debug builds).
    #[inline]
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        debug_assert!(self.stamped || self.sack().count() < 4);
        self.options[STAMPS] = timestamps.val;
        self.options[STAMPS + 1] = timestamps.ecr;
        self.stamped = true;
    }

    /// Whether there is a SACK option.
    #[inline]
    #[must_use]
    pub fn has_sack(&self) -> bool {
        self.options[0] != self.options[1] && !self.flags.has(Flags::SYN)
    }

    /// The SACK blocks, the most recent first.
    #[inline]
    pub fn sack(&self) -> impl Iterator<Item = SackBlock> + '_ {
        let words = match (self.flags.has(Flags::SYN), self.stamped) {
            (true, _) => &[][..],
            (false, true) => &self.options[..STAMPS],
            (false, false) => &self.options[..],
        };
        let blocks = words.chunks_exact(2).take_while(|edges| edges[0] != edges[1]);
        blocks.map(|edges| SackBlock { start: edges[0] as i32, end: edges[1] as i32 })
    }

    /// Sets the SACK option to these blocks, none of them empty: at most four, or three beside timestamps, the most recent
    /// first.
    ///
    /// # Panics
    /// With more blocks than that; with an empty one, and on a SYN (debug builds).
    #[inline]
    pub fn set_sack(&mut self, blocks: &[SackBlock]) {
        debug_assert!(!self.flags.has(Flags::SYN) && blocks.iter().all(|b| b.start != b.end));
        let words = if self.stamped { &mut self.options[..STAMPS] } else { &mut self.options[..] };
        words.fill(0);
        for (index, block) in blocks.iter().enumerate() {
            words[2 * index] = block.start as u32;
            words[2 * index + 1] = block.end as u32;
        }
    }

    /// The options of a SYN.
    #[must_use]
    pub fn syn_options(&self) -> Option<SynOptions> {
        let [mss, scale, sack, ..] = self.options;
        self.flags.has(Flags::SYN).then_some(SynOptions {
            mss: mss as u16,
            window_scale: scale.checked_sub(1).map(|shift| shift as u8),
            sack_permitted: sack != 0,
        })
    }

    /// Makes a SYN of the segment, with these options.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        let SynOptions { mss, window_scale, sack_permitted } = options;
        self.flags = self.flags.with(Flags::SYN);
        let scale = window_scale.map_or(0, |shift| u32::from(shift) + 1);
        self.options[..3].copy_from_slice(&[u32::from(mss), scale, u32::from(sack_permitted)]);
    }

    /// Values of timestamps and SACK blocks, zero where there are none: two headers of the same length with the same options have
    /// the same.
    #[must_use]
    pub fn option_words(&self) -> [u32; OPTION_WORDS] {
        self.options
    }

    /// Bytes of IP's and TCP's headers: 20 + 20 + options; a SYN carries 20 bytes of options, timestamps take 12, SACK 4 and
    /// 8 a block.
    #[inline]
    #[must_use]
    pub fn header_len(&self) -> u32 {
        let options = if self.flags.has(Flags::SYN) {
            20
        } else {
            let stamps = if self.stamped { 12 } else { 0 };
            let sack = if self.has_sack() { 4 + 8 * self.sack().count() as u32 } else { 0 };
            stamps + sack
        };
        IP_BYTES + TCP_BYTES + options
    }

    /// Length of the Ethernet frame without FCS.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> u32 {
        ETHERNET_BYTES + self.header_len() + u32::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_leaves_room_for_its_routing_in_a_cache_line() {
        assert_eq!(size_of::<Segment>(), 56);
    }

    #[test]
    fn flags_lie_on_the_wire_as_in_rfc_9293_and_rfc_9768() {
        let bits = [
            (Flags::FIN, 0x001),
            (Flags::SYN, 0x002),
            (Flags::RST, 0x004),
            (Flags::PSH, 0x008),
            (Flags::ACK, 0x010),
            (Flags::ECE, 0x040),
            (Flags::CWR, 0x080),
            (Flags::AE, 0x100),
        ];
        for (flag, bit) in bits {
            assert_eq!(flag.wire(), bit);
        }
        let all = bits.iter().fold(Flags::default(), |all, (flag, _)| all.with(*flag));
        assert_eq!(all.wire(), 0x1df, "all but URG");
    }

    #[test]
    fn a_syn_says_what_was_put_into_it_and_holds_no_sack_blocks() {
        for window_scale in [None, Some(0), Some(14)] {
            let options = SynOptions { mss: 1460, window_scale, sack_permitted: true };
            let mut syn = Segment::new(0, 0, Flags::ECE);
            syn.set_syn_options(options);
            assert_eq!(syn.syn_options(), Some(options));
            assert!(syn.flags.has(Flags::SYN.with(Flags::ECE)));
            assert!(!syn.has_sack() && syn.sack().next().is_none());
            assert_eq!(syn.frame_len(), 74);
        }
        assert_eq!(Segment::new(0, 0, Flags::ACK).syn_options(), None);
    }

    #[test]
    fn options_lengthen_the_frame() {
        let mut segment = Segment::new(0, 1448, Flags::ACK);
        assert_eq!((segment.frame_len(), segment.timestamps()), (54 + 1448, None));
        segment.set_timestamps(Timestamps { val: 0, ecr: 0 });
        assert_eq!(
            (segment.frame_len(), segment.timestamps()),
            (1514, Some(Timestamps::default()))
        );
        let block = |start, end| SackBlock::relative(1_000, start, end);
        for blocks in [&[][..], &[block(2_000, 3_000)], &[block(500, 1_000), block(2_000, 3_000)]] {
            segment.set_sack(blocks);
            assert!(segment.sack().eq(blocks.iter().copied()));
            assert_eq!(segment.has_sack(), !blocks.is_empty());
            let sack = if blocks.is_empty() { 0 } else { 4 + 8 * blocks.len() as u32 };
            assert_eq!(segment.frame_len(), 1514 + sack);
            assert_eq!(segment.timestamps(), Some(Timestamps::default()));
        }
        assert_eq!(block(500, 1_000).range(1_000), (500, 1_000), "a DSACK lies below");
        let four = [block(0, 1), block(2, 3), block(4, 5), block(6, 7)];
        let mut bare = Segment::new(0, 0, Flags::ACK);
        bare.set_sack(&four);
        assert!(bare.sack().eq(four) && bare.timestamps().is_none());
        assert_eq!(bare.frame_len(), 54 + 36);
        bare.set_sack(&four[..3]);
        bare.set_timestamps(Timestamps { val: 8, ecr: 9 });
        assert!(bare.sack().eq(four[..3].iter().copied()));
        assert_eq!(
            (bare.timestamps(), bare.frame_len()),
            (Some(Timestamps { val: 8, ecr: 9 }), 54 + 40)
        );
    }
}
