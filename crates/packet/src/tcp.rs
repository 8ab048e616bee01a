//! TCP's header and options.

use crate::{ETHERNET_BYTES, IP_BYTES};

/// TCP's header without options.
const TCP_BYTES: u32 = 20;

dragstrip_units::flags! {
    /// Header flags: the header's fourteenth octet, with AE (RFC 9768 §3.2) in the place of URG, which nothing here sets
    /// (RFC 6093 §5 advises against it).
    pub struct Flags: u8 {
        /// The sender has no more data.
        FIN = 1;
        /// Opens a connection.
        SYN = 2;
        /// Ends a connection at once.
        RST = 4;
        /// The sender has nothing more to add at once.
        PSH = 8;
        /// Acknowledges.
        ACK = 16;
        /// The third bit of the ACE counter (RFC 9768).
        AE = 32;
        /// ECN echo (RFC 3168 §6.1); the first bit of the ACE counter.
        ECE = 64;
        /// Window reduced (RFC 3168 §6.1); the second bit of the ACE counter.
        CWR = 128;
    }
}

impl Flags {
    /// The three flags as a number: the ACE counter of RFC 9768 (§3.2.1), AE first.
    #[inline]
    #[must_use]
    pub const fn ace(self) -> u8 {
        (self.0 & Self::AE.0) >> 3 | (self.0 & (Self::CWR.0 | Self::ECE.0)) >> 6
    }

    /// The same with this number in the three flags; only its lowest three bits count.
    #[inline]
    #[must_use]
    pub const fn with_ace(self, ace: u8) -> Self {
        let other_flags = self.0 & !(Self::AE.0 | Self::CWR.0 | Self::ECE.0);
        Self(other_flags | (ace & 4) << 3 | (ace & 3) << 6)
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

/// The AccECN option (RFC 9768 §3.2.3): how many bytes of payload have arrived with each codepoint, in 24 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes {
    /// Kind 174, which begins with ECT(1); otherwise kind 172, which begins with ECT(0).
    pub ect1_first: bool,
    /// Number of counters it holds, from the first on: 0 to 3.
    pub fields: u8,
    /// The counters: of the codepoint that comes first, of CE, of the other codepoint.
    pub counters: [u32; 3],
}

impl EcnBytes {
    /// Largest value of a counter, after which it starts again.
    pub const MASK: u32 = 0x00ff_ffff;
    /// Index of CE's counter.
    pub const CE: usize = 1;

    /// Returns the option of a handshake: nothing has come yet, and counters of ECTs begin with 1 (RFC 9768 §3.2.1).
    #[must_use]
    pub const fn of_handshake() -> Self {
        Self { ect1_first: true, fields: 3, counters: [1, 0, 1] }
    }

    /// The option's kind.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> u8 {
        if self.ect1_first { 174 } else { 172 }
    }

    /// Its length without padding.
    #[inline]
    #[must_use]
    pub const fn wire_len(&self) -> u8 {
        2 + 3 * self.fields
    }

    /// Its length in the header, padded to whole words.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> u32 {
        (self.wire_len() as u32).next_multiple_of(4)
    }
}

/// Options that only a SYN carries. Its offer of timestamps is the timestamps option itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size, bytes (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Shift of the windows to come (RFC 7323 §2); `None`: no scaling.
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018 §2).
    pub sack_permitted: bool,
}

/// Room for the values of options: a SYN's, or four SACK blocks, or three and the timestamps behind them. The AccECN option
/// takes the two words before the timestamps or before the end, and with three counters the one before those.
const OPTION_WORDS: usize = 8;

/// Index of the timestamps.
const STAMPS: usize = 6;

/// Options of a segment other than a SYN's and SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Extras {
    #[default]
    None,
    Stamps,
    Counters,
    Both,
}

impl Extras {
    #[inline]
    const fn stamped(self) -> bool {
        matches!(self, Self::Stamps | Self::Both)
    }

    #[inline]
    const fn has_counters(self) -> bool {
        matches!(self, Self::Counters | Self::Both)
    }

    /// Index at which the timestamps, or nothing, begin.
    #[inline]
    const fn end(self) -> usize {
        if self.stamped() { STAMPS } else { OPTION_WORDS }
    }
}

/// A segment: 56 bytes, so that a packet's record with its routing fits a cache line. `extras` is a type of its own
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
    extras: Extras,
}

impl Segment {
    /// `len` bytes from `seq` on, without options; nothing is acknowledged yet.
    #[inline]
    #[must_use]
    pub fn new(seq: u64, len: u16, flags: Flags) -> Self {
        Self { seq, len, flags, ..Self::default() }
    }

    /// True when acknowledgement, window and options are those of `other`.
    #[must_use]
    pub fn has_header_of(&self, other: &Self) -> bool {
        *self == Self { seq: self.seq, len: self.len, flags: self.flags, ..*other }
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
        self.extras.stamped().then_some(stamps)
    }

    /// Adds the timestamps option.
    ///
    /// # Panics
    /// Beside four SACK blocks, or behind the AccECN option (debug builds).
    #[inline]
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        debug_assert!(self.extras.stamped() || self.sack().count() < 4);
        debug_assert!(self.extras.stamped() || !self.extras.has_counters());
        self.options[STAMPS] = timestamps.val;
        self.options[STAMPS + 1] = timestamps.ecr;
        if !self.extras.stamped() {
            self.extras = Extras::Stamps;
        }
    }

    /// The AccECN option.
    #[inline]
    #[must_use]
    pub fn ecn_bytes(&self) -> Option<EcnBytes> {
        if !self.extras.has_counters() {
            return None;
        }
        let at = self.extras.end() - 2;
        let head = self.options[at];
        let fields = (head >> 25) as u8 & 3;
        let third = if fields == 3 { self.options[at - 1] } else { 0 };
        Some(EcnBytes {
            ect1_first: head >> 24 & 1 != 0,
            fields,
            counters: [head & EcnBytes::MASK, self.options[at + 1], third],
        })
    }

    /// The most SACK blocks that leave room for an AccECN option with so many counters, in the header too.
    #[inline]
    #[must_use]
    pub const fn sack_room(stamped: bool, fields: u8) -> usize {
        match (stamped, fields) {
            (true, 0..=2) => 2,
            (true, _) => 1,
            (false, 0..=2) => 3,
            (false, _) => 2,
        }
    }

    /// Adds the AccECN option, after all others. Counters that it does not hold are forgotten.
    ///
    /// # Panics
    /// Beside more SACK blocks than [`Self::sack_room`] (debug builds).
    #[inline]
    pub fn set_ecn_bytes(&mut self, bytes: EcnBytes) {
        let fields = bytes.fields.min(3);
        let stamped = self.extras.stamped();
        debug_assert!(self.sack().count() <= Self::sack_room(stamped, fields));
        let counter = |index: usize| {
            if index < usize::from(fields) { bytes.counters[index] & EcnBytes::MASK } else { 0 }
        };
        let at = self.extras.end() - 2;
        let head = u32::from(bytes.ect1_first) << 24 | u32::from(fields) << 25;
        self.options[at] = head | counter(0);
        self.options[at + 1] = counter(1);
        if fields == 3 {
            self.options[at - 1] = counter(2);
        }
        self.extras = if stamped { Extras::Both } else { Extras::Counters };
    }

    /// The words that SACK blocks may take.
    #[inline]
    fn sack_words(&self) -> usize {
        let end = self.extras.end();
        if self.extras.has_counters() {
            end - 2 - usize::from(self.options[end - 2] >> 25 & 3 == 3)
        } else {
            end
        }
    }

    /// True when there is a SACK option.
    #[inline]
    #[must_use]
    pub fn has_sack(&self) -> bool {
        self.options[0] != self.options[1] && !self.flags.has(Flags::SYN)
    }

    /// The SACK blocks, the most recent first.
    #[inline]
    pub fn sack(&self) -> impl Iterator<Item = SackBlock> + '_ {
        let room = if self.flags.has(Flags::SYN) { 0 } else { self.sack_words() };
        let words = &self.options[..room];
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
        let room = self.sack_words();
        let words = &mut self.options[..room];
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
    /// 8 a block, the AccECN option 4 to 12.
    #[inline]
    #[must_use]
    pub fn header_len(&self) -> u32 {
        let bare = !self.flags.has(Flags::SYN) && self.options[0] == self.options[1];
        if bare && self.extras == Extras::Stamps {
            return IP_BYTES + TCP_BYTES + 12; // all but a few
        }
        self.any_header_len()
    }

    /// The same of any segment.
    #[inline(never)]
    fn any_header_len(&self) -> u32 {
        let options = if self.flags.has(Flags::SYN) {
            20
        } else {
            let stamps = if self.extras.stamped() { 12 } else { 0 };
            let sack = if self.has_sack() { 4 + 8 * self.sack().count() as u32 } else { 0 };
            stamps + sack
        };
        let counters = self.ecn_bytes().map_or(0, |bytes| bytes.room());
        IP_BYTES + TCP_BYTES + options + counters
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
    fn the_ace_counter_is_three_flags_and_leaves_the_others() {
        for ace in 0..8 {
            let flags = Flags::ACK.with(Flags::PSH).with(Flags::AE).with_ace(ace);
            assert_eq!(flags.ace(), ace);
            assert!(flags.has(Flags::ACK.with(Flags::PSH)));
        }
        let six = Flags::ACK.with_ace(6);
        assert!(six.has(Flags::AE.with(Flags::CWR)) && !six.has(Flags::ECE), "AE, CWR, ECE");
        assert_eq!(Flags::ACK.with_ace(13).ace(), 5);
    }

    #[test]
    fn the_accecn_option_lies_beside_stamps_and_blocks() {
        let block = |n: u64| SackBlock::relative(1_000, 2_000 * n, 2_000 * n + 1_000);
        for stamped in [false, true] {
            for fields in 0..=3 {
                let room = Segment::sack_room(stamped, fields);
                let blocks: Vec<SackBlock> = (1..=room as u64).map(block).collect();
                let counters = [0xffff_ffff, 7, 9];
                let mut segment = Segment::new(0, 0, Flags::ACK);
                segment.set_sack(&blocks);
                if stamped {
                    segment.set_timestamps(Timestamps { val: 3, ecr: 4 });
                }
                let bare = segment.header_len();
                segment.set_ecn_bytes(EcnBytes { ect1_first: stamped, fields, counters });
                let read = segment.ecn_bytes().unwrap();
                assert_eq!((read.ect1_first, read.fields), (stamped, fields));
                let counter_count = usize::from(fields);
                assert_eq!(read.counters[..counter_count], [0xff_ffff, 7, 9][..counter_count]);
                assert_eq!(read.counters[counter_count..], [0, 0, 0][counter_count..]);
                assert!(segment.sack().eq(blocks), "{stamped} {fields}");
                assert_eq!(segment.timestamps(), stamped.then_some(Timestamps { val: 3, ecr: 4 }));
                let wide = [4, 8, 8, 12][counter_count];
                assert_eq!(segment.header_len(), bare + wide);
                assert!(segment.header_len() <= 20 + 60);
            }
        }
        let mut syn = Segment::new(0, 0, Flags::ACK);
        let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
        syn.set_syn_options(options);
        syn.set_timestamps(Timestamps { val: 1, ecr: 2 });
        syn.set_ecn_bytes(EcnBytes { ect1_first: false, fields: 3, counters: [1, 0, 1] });
        assert_eq!((syn.syn_options(), syn.header_len()), (Some(options), 72));
        assert_eq!(syn.ecn_bytes().unwrap().counters, [1, 0, 1]);
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
