//! The retransmission queue: one record per segment sent and not cumulatively acknowledged.
//!
//! A ring indexed by segment number. A segment number maps to a slot by masking, a sequence
//! number to a segment number by arithmetic (segments are full-sized but for the odd short one), so nothing here
//! searches a list.

/// What is known of one segment (kernel: `sacked` flags of `tcp_skb_cb`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    /// S: selectively acknowledged.
    pub const SACKED: Self = Self(1);
    /// R: a retransmission is in flight.
    pub const RETRANS: Self = Self(2);
    /// L: deemed lost.
    pub const LOST: Self = Self(4);
    /// Was retransmitted at least once.
    pub const EVER_RETRANS: Self = Self(8);
    /// Was sent while the application was the limit.
    pub const APP_LIMITED: Self = Self(16);
    /// The last segment of its burst: the socket buffer it is part of ends with it.
    pub const BURST_END: Self = Self(32);

    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    #[inline]
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A segment in the retransmission queue: 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// First byte.
    pub seq: u64,
    /// When it was last sent, µs.
    pub sent_us: u64,
    /// µs from the start of its delivery-rate window (`first_tx_mstamp`) to `sent_us`.
    pub since_first_tx_us: u32,
    /// µs from the last delivery before it was sent (`delivered_mstamp`) to `sent_us`.
    pub since_delivery_us: u32,
    /// Low bits of the `delivered` counter when it was sent.
    pub delivered: u32,
    /// Payload bytes.
    pub len: u16,
    pub marks: Marks,
}

impl Sent {
    #[inline]
    pub fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// The ring.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    slots: Vec<Sent>,
    /// Number of the oldest segment.
    head: u64,
    /// Number of the next segment to be sent.
    tail: u64,
    mss: u64,
}

impl Scoreboard {
    pub fn new(mss: u32) -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0, mss: u64::from(mss) }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Number of the oldest segment.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// One past the number of the newest segment.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        debug_assert!(number >= self.head && number < self.tail);
        number as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub fn get(&self, number: u64) -> &Sent {
        &self.slots[self.slot(number)]
    }

    #[inline]
    pub fn get_mut(&mut self, number: u64) -> &mut Sent {
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    #[inline]
    pub fn front(&self) -> Option<&Sent> {
        if self.is_empty() { None } else { Some(self.get(self.head)) }
    }

    #[inline]
    pub fn push(&mut self, sent: Sent) {
        if (self.tail - self.head) as usize == self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        self.slots[self.tail as usize & mask] = sent;
        self.tail += 1;
    }

    #[inline]
    pub fn pop_front(&mut self) {
        debug_assert!(!self.is_empty());
        self.head += 1;
    }

    /// Takes the newest segment back: it has not left.
    pub fn pop_back(&mut self) {
        debug_assert!(!self.is_empty());
        self.tail -= 1;
    }

    /// Number of the first segment whose end lies beyond `seq`: the one that holds byte `seq`,
    /// or [`Self::tail`].
    pub fn number_at(&self, seq: u64) -> u64 {
        let Some(front) = self.front() else { return self.tail };
        let guess = self.head + seq.saturating_sub(front.seq) / self.mss;
        let mut number = guess.min(self.tail);
        // Short segments push numbers up, never down: the guess is never too high.
        while number < self.tail && self.get(number).end_seq() <= seq {
            number += 1;
        }
        number
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(16);
        let mut slots = vec![Sent::default(); capacity];
        for number in self.head..self.tail {
            slots[number as usize & (capacity - 1)] = *self.get(number);
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(seq: u64, len: u16) -> Sent {
        Sent { seq, len, ..Sent::default() }
    }

    #[test]
    fn a_sequence_number_finds_its_segment_past_short_ones() {
        let mut board = Scoreboard::new(1000);
        let mut seq = 0;
        for len in [1000, 10, 1000, 500, 1000, 1000] {
            board.push(sent(seq, len));
            seq += u64::from(len);
        }
        assert_eq!(board.number_at(0), 0);
        assert_eq!(board.number_at(999), 0);
        assert_eq!(board.number_at(1000), 1);
        assert_eq!(board.number_at(1010), 2);
        assert_eq!(board.number_at(2510), 4);
        assert_eq!(board.number_at(seq), board.tail());
        board.pop_front();
        board.pop_front();
        assert_eq!(board.number_at(2510), 4);
    }

    #[test]
    fn growing_keeps_every_segment_in_its_place() {
        let mut board = Scoreboard::new(10);
        for i in 0..100 {
            board.push(sent(i * 10, 10));
            if i % 3 == 0 {
                board.pop_front();
            }
        }
        for number in board.head()..board.tail() {
            assert_eq!(board.get(number).seq, number * 10);
        }
    }
}
