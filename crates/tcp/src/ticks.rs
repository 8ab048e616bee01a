//! The kernel's clock tick and its timer wheel.

use dragstrip_units::{Duration, Instant};

/// Microseconds in 32 bits, as kernels keep RTTs: 4295 s and more count as 4295 s.
#[inline]
pub(crate) fn micros(us: u64) -> u32 {
    u32::try_from(us).unwrap_or(u32::MAX)
}

/// Timer resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerWheel {
    /// Rounded up to buckets (since 4.8).
    Buckets,
    /// At the tick set.
    Exact,
}

/// Jiffies of a host: a tick every 1/HZ second, the first at the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    tick_ns: u64,
    /// 2^64 / `tick_ns`, rounded down: ticks are counted for every ACK, and a multiplication is
    /// cheaper than a division.
    reciprocal: u64,
    wheel: TimerWheel,
    /// Timestamps stand still between ticks.
    ticked_stamps: bool,
}

impl Ticks {
    pub fn new(hz: u32, wheel: TimerWheel, ticked_stamps: bool) -> Self {
        let tick_ns = 1_000_000_000 / u64::from(hz);
        Self { tick_ns, reciprocal: u64::MAX / tick_ns, wheel, ticked_stamps }
    }

    /// The timestamp option's clock, ms.
    #[inline]
    pub fn stamp_ms(self, now: Instant) -> u32 {
        let us =
            if self.ticked_stamps { self.to_micros(self.at(now)) } else { now.as_micros_floor() };
        (us / 1_000) as u32
    }

    /// Returns the smallest difference between two different timestamps, ms.
    pub fn stamp_step_ms(self) -> u32 {
        if self.ticked_stamps { (self.tick_ns / 1_000_000) as u32 } else { 1 }
    }

    /// `ns / tick_ns`.
    #[inline]
    fn whole(self, ns: u64) -> u64 {
        let mut ticks = ((u128::from(ns) * u128::from(self.reciprocal)) >> 64) as u64;
        // The reciprocal is short by less than one part in 2^64, so the product by at most one tick.
        if ns - ticks * self.tick_ns >= self.tick_ns {
            ticks += 1;
        }
        ticks
    }

    /// Ticks since the start of the run.
    #[inline]
    pub fn at(self, now: Instant) -> u64 {
        self.whole(now.as_nanos())
    }

    /// Whole ticks that cover `us` microseconds (`usecs_to_jiffies`: rounded up).
    #[inline]
    pub fn count_micros_ceil(self, us: u64) -> u64 {
        self.whole(us * 1_000 + self.tick_ns - 1)
    }

    /// Whole ticks that `span` covers (`nsecs_to_jiffies`).
    #[inline]
    pub fn count_span_floor(self, span: Duration) -> u64 {
        self.whole(span.as_nanos())
    }

    /// Whole ticks that cover `span`.
    #[inline]
    pub fn count_span_ceil(self, span: Duration) -> u64 {
        self.whole(span.as_nanos() + self.tick_ns - 1)
    }

    /// Microseconds in `ticks`.
    #[inline]
    pub fn to_micros(self, ticks: u64) -> u64 {
        ticks * self.tick_ns / 1_000
    }

    /// The instant at which tick number `tick` happens.
    #[inline]
    pub fn instant(self, tick: u64) -> Instant {
        Instant::from_nanos(tick * self.tick_ns)
    }

    /// Returns the time at which a kernel timer set at `now` for `delay` ticks goes off.
    ///
    /// The wheel never fires early: the expiry is rounded up to the next bucket of its level
    /// (`calc_index`, kernel/time/timer.c since 4.8): one tick late below 63 ticks, up to 8 below
    /// 504, up to 64 below 4032, and so on (`LVL_START`).
    ///
    /// Before 4.8 it goes off with the tick it was set for.
    #[inline]
    pub fn timer(self, now: Instant, delay: u64) -> Instant {
        let expires = self.at(now) + delay;
        match self.wheel {
            TimerWheel::Buckets => {}
            TimerWheel::Exact => return self.instant(expires),
        }
        let mut shift = 0;
        while delay >= 63 << shift && shift < 24 {
            shift += 3;
        }
        self.instant(((expires >> shift) + 1) << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_timer_fires_at_the_tick_after_its_expiry() {
        let ticks = Ticks::new(250, TimerWheel::Buckets, false);
        assert_eq!(
            ticks.timer(Instant::from_nanos(1_000_000), 10),
            Instant::from_nanos(44_000_000)
        );
    }

    /// The timer wheel that rounds came with Linux 4.8 (`calc_wheel_index`, kernel/time/timer.c).
    #[test]
    fn the_old_wheel_is_exact() {
        let ticks = Ticks::new(1000, TimerWheel::Exact, false);
        let set = Instant::from_nanos(1_500_000);
        assert_eq!(ticks.timer(set, 201), Instant::from_nanos(202_000_000));
    }

    #[test]
    fn timestamps_stand_still_between_ticks_where_the_kernel_s_do() {
        let now = Instant::from_nanos(1_019_999_999);
        assert_eq!(Ticks::new(100, TimerWheel::Exact, true).stamp_ms(now), 1_010);
        assert_eq!(Ticks::new(100, TimerWheel::Buckets, false).stamp_ms(now), 1_019);
    }

    #[test]
    fn counting_ticks_divides_exactly() {
        let mut stream = dragstrip_units::Stream::named(1, "ticks");
        for hz in [100, 250, 300, 1000] {
            let ticks = Ticks::new(hz, TimerWheel::Buckets, false);
            for _ in 0..10_000 {
                let tick = stream.next_u64() >> 24;
                for ns in [tick * ticks.tick_ns, tick * ticks.tick_ns + ticks.tick_ns - 1] {
                    let ns = ns & ((1 << 62) - 1);
                    assert_eq!(ticks.whole(ns), ns / ticks.tick_ns);
                }
            }
        }
    }

    #[test]
    fn a_far_timer_is_rounded_up_to_eight_ticks() {
        let ticks = Ticks::new(250, TimerWheel::Buckets, false);
        // 65 ticks from tick 0: bucket 8 covers 64..72, the next one is 72.
        assert_eq!(ticks.timer(Instant::ZERO, 65), Instant::from_nanos(72 * 4_000_000));
        // The first level ends at 62, so that its last bucket is never the current one.
        assert_eq!(ticks.timer(Instant::ZERO, 62), Instant::from_nanos(63 * 4_000_000));
        assert_eq!(ticks.timer(Instant::ZERO, 63), Instant::from_nanos(64 * 4_000_000));
        assert_eq!(
            ticks.timer(Instant::from_nanos(4_000_000), 63),
            Instant::from_nanos(72 * 4_000_000)
        );
    }
}
