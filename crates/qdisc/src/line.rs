//! The transmitter of a line: one frame at a time, each for its length at the line's rate.

use dragstrip_units::{Duration, Instant, Rate};

/// Computes when a line is free again and when each frame ends, without losing fractions of a nanosecond:
/// the remainder of one frame's time is carried into the next while the line stays busy.
///
/// The instants themselves are cut to whole nanoseconds; over any busy period the error is below 1 ns.
#[derive(Clone, Debug)]
pub struct Line {
    rate: Rate,
    overhead: u32,
    /// Length, whole nanoseconds and remainder of the last frame: almost every frame on a link
    /// has the length of the one before, and a comparison is cheaper than a 64-bit division.
    memo_len: u32,
    memo_time: Duration,
    memo_remainder: u64,
    /// End of the last frame, cut to whole nanoseconds ...
    free: Instant,
    /// ... and what was cut, in 1/rate nanoseconds.
    carry: u64,
}

impl Line {
    /// A line of `rate`; every frame is longer by `overhead` bytes (24 for Ethernet's FCS,
    /// preamble and gap).
    #[must_use]
    pub fn new(rate: Rate, overhead: u32) -> Self {
        let (time, remainder) = rate.time_for_floor(u64::from(overhead), 0);
        Self {
            rate,
            overhead,
            memo_len: 0,
            memo_time: time,
            memo_remainder: remainder,
            free: Instant::ZERO,
            carry: 0,
        }
    }

    /// The instant from which the next frame may be sent; in the past when the line is idle.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Instant {
        self.free
    }

    /// Another rate for the frames that follow; the fraction of a nanosecond that was carried is lost.
    pub fn set_rate(&mut self, rate: Rate) {
        let Self { overhead, free, .. } = *self;
        *self = Self { free, ..Self::new(rate, overhead) };
    }

    /// Sends a frame of `len` bytes as soon as possible from `now` on; returns the end of its transmission.
    #[inline]
    pub fn send(&mut self, len: u32, now: Instant) -> Instant {
        if self.memo_len != len {
            let bytes = u64::from(len) + u64::from(self.overhead);
            let (time, remainder) = self.rate.time_for_floor(bytes, 0);
            (self.memo_len, self.memo_time, self.memo_remainder) = (len, time, remainder);
        }
        if now > self.free {
            // Idle since before this nanosecond: whatever was cut has passed too.
            self.free = now;
            self.carry = 0;
        }
        self.free += self.memo_time;
        self.carry += self.memo_remainder;
        let rate = self.rate.bits_per_second();
        if self.carry >= rate {
            self.carry -= rate;
            self.free += Duration::from_nanos(1);
        }
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::Line;
    use dragstrip_units::{Instant, Rate};

    #[test]
    fn a_busy_line_loses_no_fraction_of_a_nanosecond() {
        let rate = Rate::from_bits_per_second(7_000_003).unwrap();
        let mut line = Line::new(rate, 24);
        let mut bytes_sent: u128 = 0;
        for i in 0..10_000_u32 {
            let len = if i % 3 == 0 { 66 } else { 1514 };
            bytes_sent += u128::from(len + 24);
            let end = line.send(len, Instant::ZERO);
            assert_eq!(u128::from(end.as_nanos()), bytes_sent * 8_000_000_000 / 7_000_003);
        }
    }

    #[test]
    fn an_idle_line_starts_afresh() {
        let rate = Rate::from_bits_per_second(3).unwrap();
        let mut line = Line::new(rate, 0);
        assert_eq!(line.send(1, Instant::ZERO).as_nanos(), 2_666_666_666);
        assert_eq!(line.send(1, line.free()).as_nanos(), 5_333_333_333);
        // The fraction is gone after an idle time: 8/3 s from here, cut.
        let later = Instant::from_nanos(10_000_000_000);
        assert_eq!(line.send(1, later).as_nanos(), 12_666_666_666);
    }
}
