//! A recorded link: instants at which so many bytes may leave, over and over. One direction.
//!
//! The format is mahimahi's (Netravali et al., USENIX ATC 2015; mm-link(1)): each number is an opportunity, in
//! milliseconds since the beginning, to deliver one packet of 1500 bytes. Bytes are counted: several short packets share an
//! opportunity, and one that does not fit goes on in the next. What nobody uses is lost. Behind the last one
//! the trace begins again.

use dragstrip_units::{Duration, Instant};

/// An opportunity's bytes, and what a packet has beside its IP length: mahimahi reads packets from a tun device, which puts four
/// bytes in front.
const OPPORTUNITY_BYTES: u32 = 1504;
const TUN_BYTES: u32 = 4;
/// Ethernet's header, which a frame's length counts.
const ETHERNET_BYTES: u32 = 14;

/// One direction of a recorded link.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Never decreasing.
    opportunities_ms: Box<[u64]>,
    /// Last start of the trace.
    began: Instant,
    /// The opportunity that is used next, and its bytes that nobody has used.
    next: usize,
    left: u32,
}

impl Trace {
    /// A link that nobody has used.
    ///
    /// # Panics
    /// In debug builds, when there are no opportunities or the last one is at 0: the trace would never get on.
    #[must_use]
    pub fn new(opportunities_ms: &[u64]) -> Self {
        debug_assert!(opportunities_ms.is_sorted() && opportunities_ms.last() > Some(&0));
        Self {
            opportunities_ms: opportunities_ms.into(),
            began: Instant::ZERO,
            next: 0,
            left: OPPORTUNITY_BYTES,
        }
    }

    fn opportunity(&self) -> Instant {
        self.began + Duration::from_millis(self.opportunities_ms[self.next])
    }

    fn advance(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.next += 1;
        if self.next == self.opportunities_ms.len() {
            self.began += Duration::from_millis(self.opportunities_ms[self.next - 1]);
            self.next = 0;
        }
    }

    /// The first instant from `now` on at which a frame may begin to leave.
    #[must_use]
    pub fn free(&mut self, now: Instant) -> Instant {
        while self.left == 0 || self.opportunity() < now {
            self.advance();
        }
        self.opportunity()
    }

    /// Sends a frame from `now` on; returns when its last byte has left.
    pub fn send(&mut self, len: u32, now: Instant) -> Instant {
        let mut bytes = len.saturating_sub(ETHERNET_BYTES) + TUN_BYTES;
        loop {
            let at = self.free(now);
            let used_bytes = bytes.min(self.left);
            self.left -= used_bytes;
            bytes -= used_bytes;
            if bytes == 0 {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1514;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn departures(trace: &mut Trace, lens: &[u32]) -> Vec<u64> {
        lens.iter().map(|&len| trace.send(len, Instant::ZERO).as_micros_floor() / 1000).collect()
    }

    #[test]
    fn a_full_packet_takes_an_opportunity_and_the_trace_repeats() {
        let mut trace = Trace::new(&[1, 3, 3, 10]);
        assert_eq!(departures(&mut trace, &[FULL; 10]), [1, 3, 3, 10, 11, 13, 13, 20, 21, 23]);
    }

    #[test]
    fn short_packets_share_an_opportunity_and_long_ones_go_on_in_the_next() {
        // 748 + 4 bytes each: two of them are 1504.
        let mut trace = Trace::new(&[2, 5, 9]);
        assert_eq!(departures(&mut trace, &[762, 762, 762, FULL, 762]), [2, 2, 5, 9, 9]);
    }

    #[test]
    fn what_nobody_uses_is_lost() {
        let mut trace = Trace::new(&[2, 5, 9]);
        assert_eq!(trace.send(514, Instant::ZERO), at(2));
        // The rest of the opportunity at 2 ms, and all of that at 5 ms, have passed.
        assert_eq!(trace.free(at(6)), at(9));
        assert_eq!(trace.send(FULL, at(6)), at(9));
        assert_eq!(trace.send(FULL, at(100)), at(101));
    }

    #[test]
    fn a_trace_of_12_mbit_s_carries_12_mbit_s() {
        let mut trace = Trace::new(&[1]);
        let last = (0..1000).map(|_| trace.send(FULL, Instant::ZERO)).last();
        assert_eq!(last, Some(at(1000)));
    }
}
