//! The retransmission queue: one record per segment sent and not cumulatively acknowledged.
//!
//! A queue indexed by segment number. A sequence number maps to a segment number by arithmetic (segments are
//! full-sized but for the odd short one), so nothing here searches a list.

use dragstrip_units::make_room;
use std::collections::VecDeque;

dragstrip_units::flags! {
    /// State of one segment (kernel: `sacked` flags of `tcp_skb_cb`).
    pub(in crate::sender) struct Marks: u8 {
        /// S: selectively acknowledged.
        SACKED = 1;
        /// R: a retransmission is in flight.
        RETRANS = 2;
        /// L: deemed lost.
        LOST = 4;
        /// Was retransmitted at least once.
        EVER_RETRANS = 8;
        /// Was sent while the application was the limit.
        APP_LIMITED = 16;
        /// The last segment of its burst: the socket buffer it is part of ends with it.
        BURST_END = 32;
        /// RACK has found it lost, and does not look at it again before it is retransmitted (the kernel takes it off its list).
        JUDGED = 64;
        /// Pushed: PSH goes with the data whenever it is sent (`tcp_flags` of `tcp_skb_cb`).
        PUSHED = 128;
    }
}

/// A segment in the retransmission queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sender) struct Sent {
    /// First byte.
    pub seq: u64,
    /// Time of the last transmission, µs.
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
    /// Packets in flight and lost at that time; zeros unless the algorithm wants flights.
    pub flight: Flight,
}

/// The network as a segment found it when it was last sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sender) struct Flight {
    /// Packets in flight, the segment included.
    pub in_flight: u32,
    /// Low bits of the `lost` counter.
    pub lost: u32,
}

impl Sent {
    #[inline]
    pub fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// A [`Sent`] as it is kept: 24 bytes. No more than 2 GiB are ever outstanding (the largest window is 1 GiB), so that
/// a sequence number of 32 bits, as on the wire, says which byte is meant; 40 bits of microseconds are 12 days.
#[derive(Clone, Copy, Debug)]
struct Entry {
    seq: u32,
    sent_us: u32,
    since_first_tx_us: u32,
    since_delivery_us: u32,
    delivered: u32,
    len: u16,
    sent_us_high: u8,
    marks: Marks,
}

impl Entry {
    #[inline]
    fn new(sent: &Sent) -> Self {
        Self {
            seq: sent.seq as u32,
            sent_us: sent.sent_us as u32,
            since_first_tx_us: sent.since_first_tx_us,
            since_delivery_us: sent.since_delivery_us,
            delivered: sent.delivered,
            len: sent.len,
            sent_us_high: (sent.sent_us >> 32) as u8,
            marks: sent.marks,
        }
    }

    /// Returns the entry that follows a segment's where flights are kept.
    #[inline]
    fn of_flight(flight: Flight) -> Self {
        Self {
            seq: flight.in_flight,
            sent_us: flight.lost,
            since_first_tx_us: 0,
            since_delivery_us: 0,
            delivered: 0,
            len: 0,
            sent_us_high: 0,
            marks: Marks::default(),
        }
    }

    #[inline]
    fn flight(&self) -> Flight {
        Flight { in_flight: self.seq, lost: self.sent_us }
    }

    #[inline]
    fn sent_us(&self) -> u64 {
        u64::from(self.sent_us_high) << 32 | u64::from(self.sent_us)
    }

    /// The segment, whose first byte is not below `base`.
    #[inline]
    fn unpack(&self, base: u64) -> Sent {
        Sent {
            seq: base + u64::from(self.seq.wrapping_sub(base as u32)),
            sent_us: self.sent_us(),
            since_first_tx_us: self.since_first_tx_us,
            since_delivery_us: self.since_delivery_us,
            delivered: self.delivered,
            len: self.len,
            marks: self.marks,
            flight: Flight::default(),
        }
    }
}

/// Segments at the front of the queue of which nothing is known but that they were sent, once.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Plain {
    pub segments: u32,
    /// Number of them that end a burst.
    pub bursts: u32,
    /// Time of the first one's transmission, µs.
    pub first_us: u64,
    pub last: Sent,
}

/// Marks that make a segment other than plain.
const NOT_PLAIN: Marks =
    Marks::SACKED.with(Marks::RETRANS).with(Marks::LOST).with(Marks::EVER_RETRANS);

/// The queue.
#[derive(Clone, Debug)]
pub(in crate::sender) struct Scoreboard {
    entries: VecDeque<Entry>,
    /// Number of the oldest segment.
    head: u64,
    /// First byte of the oldest segment, or of the last one there was.
    base: u64,
    mss: u32,
    /// 1 if flights are kept: each entry is followed by a second one, which holds the segment's flight. Else 0.
    flights: u8,
}

impl Scoreboard {
    pub fn new(mss: u32) -> Self {
        Self { entries: VecDeque::new(), head: 0, base: 0, mss, flights: 0 }
    }

    /// From now on flights are kept; nothing has been sent yet.
    pub fn keep_flights(&mut self) {
        debug_assert!(self.is_empty());
        self.flights = 1;
    }

    #[inline]
    pub fn keeps_flights(&self) -> bool {
        self.flights != 0
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of the oldest segment.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// One past the number of the newest segment.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.head + (self.entries.len() >> self.flights) as u64
    }

    #[inline]
    fn place(&self, number: u64) -> usize {
        debug_assert!(number >= self.head);
        ((number - self.head) as usize) << self.flights
    }

    #[inline]
    pub fn get(&self, number: u64) -> Sent {
        let place = self.place(number);
        let mut segment = self.entries[place].unpack(self.base);
        if self.keeps_flights() {
            segment.flight = self.entries[place + 1].flight();
        }
        segment
    }

    #[inline]
    pub fn marks(&self, number: u64) -> Marks {
        self.entries[self.place(number)].marks
    }

    #[inline]
    pub fn marks_mut(&mut self, number: u64) -> &mut Marks {
        let place = self.place(number);
        &mut self.entries[place].marks
    }

    /// Writes down anew what is known of a segment.
    #[inline]
    pub fn set(&mut self, number: u64, sent: &Sent) {
        let place = self.place(number);
        self.entries[place] = Entry::new(sent);
        if self.keeps_flights() {
            self.entries[place + 1] = Entry::of_flight(sent.flight);
        }
    }

    /// Time of the oldest segment's last transmission, µs.
    #[inline]
    pub fn front_sent_us(&self) -> Option<u64> {
        self.entries.front().map(Entry::sent_us)
    }

    #[inline]
    pub fn front(&self) -> Option<Sent> {
        (!self.is_empty()).then(|| self.get(self.head))
    }

    #[inline(always)] // the entry is then made in its place
    pub fn push(&mut self, sent: &Sent) {
        if self.entries.is_empty() {
            self.base = sent.seq;
        }
        make_room(&mut self.entries);
        self.entries.push_back(Entry::new(sent));
        if self.keeps_flights() {
            make_room(&mut self.entries);
            self.entries.push_back(Entry::of_flight(sent.flight));
        }
    }

    #[inline]
    pub fn pop_front(&mut self) {
        debug_assert!(!self.is_empty());
        self.entries.pop_front();
        if self.keeps_flights() {
            self.entries.pop_front();
        }
        self.head += 1;
        if let Some(next) = self.front() {
            self.base = next.seq;
        }
    }

    /// The segments that end at or below `una`, where all of them are plain; the first begins at `from`. `None` where there is
    /// none, and where flights are kept.
    #[inline(always)] // of every ACK
    pub fn plain_until(&self, from: u64, una: u64) -> Option<Plain> {
        let first = self.entries.front()?;
        if self.base != from || self.keeps_flights() {
            return None;
        }
        let (mut last, mut seq) = (first, self.base);
        let mut next_seq = seq + u64::from(first.len);
        if next_seq > una || first.marks.any(NOT_PLAIN) {
            return None;
        }
        let mut segments = 1_u32;
        let mut bursts = u32::from(first.marks.has(Marks::BURST_END));
        while let Some(entry) = self.entries.get(segments as usize) {
            let end = next_seq + u64::from(entry.len);
            if end > una {
                break;
            }
            if entry.marks.any(NOT_PLAIN) {
                return None;
            }
            (last, seq, next_seq) = (entry, next_seq, end);
            segments += 1;
            bursts += u32::from(entry.marks.has(Marks::BURST_END));
        }
        Some(Plain { segments, bursts, first_us: first.sent_us(), last: last.unpack(seq) })
    }

    /// Takes them off.
    #[inline]
    pub fn take_off(&mut self, plain: &Plain) {
        for _ in 0..plain.segments {
            self.entries.pop_front();
        }
        self.head += u64::from(plain.segments);
        self.base = if self.is_empty() { plain.last.seq } else { plain.last.end_seq() };
    }

    /// Takes the newest segment back: it has not left.
    pub fn pop_back(&mut self) {
        debug_assert!(!self.is_empty());
        self.entries.pop_back();
        if self.keeps_flights() {
            self.entries.pop_back();
        }
    }

    /// Number of the first segment whose end lies beyond `seq`: the one that holds byte `seq`,
    /// or [`Self::tail`].
    pub fn number_at(&self, seq: u64) -> u64 {
        let Some(front) = self.front() else { return self.tail() };
        let guess = self.head + seq.saturating_sub(front.seq) / u64::from(self.mss);
        let mut number = guess.min(self.tail());
        // Short segments push numbers up, never down: the guess is never too high.
        while number < self.tail() && self.get(number).end_seq() <= seq {
            number += 1;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_segment(seq: u64, len: u16) -> Sent {
        Sent { seq, len, ..Sent::default() }
    }

    #[test]
    fn a_sequence_number_finds_its_segment_past_short_ones() {
        let mut board = Scoreboard::new(1000);
        let mut seq = 0;
        for len in [1000, 10, 1000, 500, 1000, 1000] {
            board.push(&plain_segment(seq, len));
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
    fn an_entry_gives_back_what_it_was_made_of_beyond_four_gigabytes_and_seventy_minutes() {
        assert_eq!(std::mem::size_of::<Entry>(), 24);
        let mut board = Scoreboard::new(1448);
        let first = Sent {
            seq: (7 << 32) - 100,
            sent_us: (3 << 32) + 5,
            since_first_tx_us: 11,
            since_delivery_us: u32::MAX,
            delivered: 13,
            len: 1448,
            marks: Marks::SACKED.with(Marks::BURST_END),
            flight: Flight::default(),
        };
        let second = Sent { seq: first.end_seq(), ..first };
        board.push(&first);
        board.push(&second);
        assert_eq!((board.get(0), board.get(1)), (first, second));
        board.pop_front();
        assert_eq!(board.front(), Some(second));
        let again = Sent { sent_us: 1, marks: Marks::EVER_RETRANS, ..second };
        board.set(1, &again);
        assert_eq!(board.get(1), again);
    }

    #[test]
    fn flights_stay_with_their_segments() {
        let mut board = Scoreboard::new(10);
        board.keep_flights();
        let flown = |n: u32| {
            let flight = Flight { in_flight: n + 1, lost: 2 * n };
            Sent { flight, ..plain_segment(u64::from(n) * 10, 10) }
        };
        for n in 0..100 {
            board.push(&flown(n));
        }
        board.pop_front();
        board.pop_back();
        assert_eq!((board.head(), board.tail(), board.number_at(505)), (1, 99, 50));
        for n in 1..99 {
            assert_eq!(board.get(u64::from(n)), flown(n));
        }
        let again = Sent { flight: Flight { in_flight: 7, lost: 9 }, ..flown(50) };
        board.set(50, &again);
        board.marks_mut(51).set(Marks::LOST);
        assert_eq!((board.get(50), board.get(52)), (again, flown(52)));
        assert_eq!(board.get(51).flight, flown(51).flight);
    }

    #[test]
    fn growing_keeps_every_segment_in_its_place() {
        let mut board = Scoreboard::new(10);
        for i in 0..100 {
            board.push(&plain_segment(i * 10, 10));
            if i % 3 == 0 {
                board.pop_front();
            }
        }
        for number in board.head()..board.tail() {
            assert_eq!(board.get(number).seq, number * 10);
        }
    }
}
