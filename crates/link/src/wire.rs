//! The store-and-forward wire: a transmitter, then a propagation delay.
//!
//! A frame is on the wire for `(len + overhead) × 8 / rate`, one at a time, and arrives `delay` after
//! its last bit has left. Without a rate the wire takes frames as fast as they come.

use dragstrip_qdisc::Line;
use dragstrip_units::{Duration, Instant, Rate};

/// A directed wire.
#[derive(Clone, Debug)]
pub struct Wire {
    line: Option<Line>,
    delay: Duration,
}

impl Wire {
    /// A wire sending at `rate` (none: instantly) frames that are longer by `overhead_bytes` (24
    /// for Ethernet's FCS, preamble and gap), with this propagation delay.
    #[must_use]
    pub fn new(rate: Option<Rate>, overhead_bytes: u32, delay: Duration) -> Self {
        Self { line: rate.map(|rate| Line::new(rate, overhead_bytes)), delay }
    }

    /// The instant from which the next frame may be sent; in the past when the transmitter is idle.
    #[inline]
    #[must_use]
    pub fn free(&self) -> Instant {
        self.line.as_ref().map_or(Instant::ZERO, Line::free)
    }

    /// Sends a frame of `len` bytes as soon as possible from `now` on; returns the end of its
    /// transmission, to which [`Self::delay`] is added for the arrival.
    #[inline]
    pub fn send(&mut self, len: u32, now: Instant) -> Instant {
        self.line.as_mut().map_or(now, |line| line.send(len, now))
    }

    /// Another rate for the frames that follow; the one in transmission ends when it would have. Of a wire without a rate
    /// nothing changes.
    pub fn set_rate(&mut self, rate: Rate) {
        if let Some(line) = &mut self.line {
            line.set_rate(rate);
        }
    }

    /// Propagation delay.
    #[inline]
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::Wire;
    use dragstrip_units::{Duration, Instant, Rate};

    #[test]
    fn frames_follow_each_other_and_arrive_a_delay_after_their_last_bit() {
        let delay = Duration::from_millis(10);
        let mut wire = Wire::new(Rate::from_bits_per_second(100_000_000), 24, delay);
        let first = wire.send(1514, Instant::ZERO);
        let second = wire.send(1514, Instant::ZERO);
        assert_eq!(first.as_nanos(), 1538 * 80);
        assert_eq!(second.as_nanos(), 2 * 1538 * 80);
        assert_eq!(wire.free(), second);
        assert_eq!((second + wire.delay()).as_nanos(), 10_246_080);
    }

    #[test]
    fn without_a_rate_there_is_only_the_delay() {
        let mut wire = Wire::new(None, 24, Duration::from_millis(1));
        let now = Instant::from_nanos(5);
        assert_eq!((wire.send(1514, now), wire.free()), (now, Instant::ZERO));
    }
}
