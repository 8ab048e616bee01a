//! Hierarchical token bucket with one class (`sch_htb.c`, no hysteresis).
//!
//! Two buckets, one filled at the rate and one at the ceiling, both counted in nanoseconds of
//! transmission time and both full at the start. The class may send while **both** hold zero or
//! more; the packet is charged **after** it has left, so a bucket may go negative, and the next
//! packet waits until it is back at zero. A 1600-byte bucket therefore lets two full frames go back to
//! back after an idle time. A packet leaves at the *start* of its transmission time.
//!
//! ```text
//!   tokens' = min(tokens + elapsed, burst) - cost(len)      elapsed <= 60 s (mbuffer)
//!   next    = checkpoint + max(0, -tokens, -ctokens)
//! ```
//!
//! Left out: the hierarchy (one class has nobody to borrow from, so between rate and ceiling it
//! simply waits), DRR between siblings, the direct queue for unclassified packets.

pub mod spec;

use crate::classes::{Classes, OneClass};
use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink, Verdict};
use crate::token_rate::{self, Framing, TokenRate, bucket_in_ticks};
use dragstrip_units::{Duration, Instant, Rate};
pub use spec::HtbSpec;

/// Most time that counts as elapsed, and most debt: `mbuffer`, 60 s in the kernel.
const MBUFFER_NS: i64 = 60_000_000_000;

/// An htb class as `tc class add ... htb` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Token rate.
    pub rate: Rate,
    /// Ceiling; without a parent to borrow from only the smaller of the two rates matters.
    pub ceil: Rate,
    /// Bucket in bytes.
    pub burst: u64,
    /// Ceiling's bucket in bytes.
    pub cburst: u64,
    /// Bytes charged for a packet.
    pub framing: Framing,
}

impl Config {
    /// Returns the values that tc computes when only `rate` is given, on kernels with high-resolution timers:
    /// ceiling = rate, `burst = cburst = rate / 10^9 + 1600` bytes (1600: tc's default mtu).
    #[must_use]
    pub fn with_rate(rate: Rate) -> Self {
        let burst = rate.bits_per_second() / 8 / 1_000_000_000 + 1600;
        Self { rate, ceil: rate, burst, cburst: burst, framing: Framing::default() }
    }
}

/// The two buckets of a class.
#[derive(Clone, Debug)]
pub struct Shaper {
    config: Config,
    rate: TokenRate,
    ceil: TokenRate,
    buffer_ns: i64,
    cbuffer_ns: i64,
    tokens_ns: i64,
    ctokens_ns: i64,
    checkpoint: Instant,
}

impl Shaper {
    /// Buckets as configured, full.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { rate, ceil, burst, cburst, framing } = config;
        let buffer_ns = bucket_in_ticks(burst, rate);
        let cbuffer_ns = bucket_in_ticks(cburst, ceil);
        Self {
            config,
            rate: TokenRate::new(rate, framing),
            ceil: TokenRate::new(ceil, framing),
            buffer_ns,
            cbuffer_ns,
            tokens_ns: buffer_ns,
            ctokens_ns: cbuffer_ns,
            checkpoint: Instant::ZERO,
        }
    }

    /// The earliest instant at which the next packet may leave; in the past when it may at once.
    #[inline]
    #[must_use]
    pub fn ready(&self) -> Instant {
        let deficit = -self.tokens_ns.min(self.ctokens_ns).min(0);
        self.checkpoint + Duration::from_nanos(deficit as u64)
    }

    /// `htb_change_class` with another rate: the ceiling is the rate, and the buckets keep their bytes and the debt its time, so that
    /// what has left is paid for at the old rate.
    pub fn change(&mut self, bps: u64) {
        let rate = token_rate::rate(bps);
        let usual = Config::with_rate(self.config.rate).burst;
        let bucket =
            |bytes: u64| if bytes == usual { Config::with_rate(rate).burst } else { bytes };
        let Config { burst, cburst, framing, .. } = self.config;
        let config =
            Config { rate, ceil: rate, burst: bucket(burst), cburst: bucket(cburst), framing };
        let Self { tokens_ns, ctokens_ns, checkpoint, .. } = *self;
        *self = Self { tokens_ns, ctokens_ns, checkpoint, ..Self::new(config) };
    }

    /// A packet of `len` has left at `now`.
    #[inline]
    pub fn charge(&mut self, len: u32, now: Instant) {
        let elapsed = (now.since(self.checkpoint).as_nanos()).min(MBUFFER_NS as u64) as i64;
        let pay = |tokens: i64, buffer: i64, cost: i64| {
            ((tokens + elapsed).min(buffer) - cost).max(1 - MBUFFER_NS)
        };
        self.tokens_ns = pay(self.tokens_ns, self.buffer_ns, self.rate.cost_ns(len));
        self.ctokens_ns = pay(self.ctokens_ns, self.cbuffer_ns, self.ceil.cost_ns(len));
        self.checkpoint = now;
    }
}

/// The class with its leaf discipline.
#[derive(Clone, Debug)]
pub struct Htb<L> {
    shaper: Shaper,
    classes: Classes<OneClass, [L; 1]>,
}

impl<L: Qdisc> Htb<L> {
    /// A class shaping what `leaf` lets go.
    #[must_use]
    pub fn new(config: Config, leaf: L) -> Self {
        Self { shaper: Shaper::new(config), classes: Classes::new(OneClass, [leaf]) }
    }

    /// The buckets.
    #[must_use]
    pub fn shaper(&self) -> &Shaper {
        &self.shaper
    }

    /// The discipline of the class.
    #[must_use]
    pub fn leaf(&self) -> &L {
        self.classes.child(0)
    }
}

impl<L: Qdisc> Qdisc for Htb<L> {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.classes.enqueue(item, now, sink)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let leaf = self.classes.child_mut(0);
        if leaf.backlog().packets == 0 {
            return Dequeue::Empty;
        }
        let ready = self.shaper.ready();
        if ready > now {
            return Dequeue::Wait(ready);
        }
        let answer = leaf.dequeue(now, sink);
        if let Dequeue::Packet(item) = answer {
            self.shaper.charge(item.len, now);
        }
        answer
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        match change {
            Change::RateBps(bps) => self.shaper.change(bps),
            Change::LimitBytes(_)
            | Change::LimitPackets(_)
            | Change::DelayNs(_)
            | Change::Loss(_) => self.classes.child_mut(0).change(change, now, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Shaper};
    use crate::token_rate::Framing;
    use dragstrip_units::{Duration, Instant, Rate};

    fn mbit(n: u64) -> Rate {
        Rate::from_bits_per_second(n * 1_000_000).unwrap()
    }

    /// Returns the departure times of `count` frames that wait from `now` on, in microseconds after `now`.
    fn leave_us(shaper: &mut Shaper, now: Instant, len: u32, count: usize) -> Vec<u64> {
        let mut leave = || {
            let at = shaper.ready().max(now);
            shaper.charge(len, at);
            at.since(now).as_micros_floor()
        };
        std::iter::repeat_with(&mut leave).take(count).collect()
    }

    #[test]
    fn an_idle_time_earns_one_more_packet_and_no_more() {
        let mut shaper = Shaper::new(Config::with_rate(mbit(1)));
        let start = [0, 0, 11_424, 23_536];
        assert_eq!(leave_us(&mut shaper, Instant::ZERO, 1514, 4), start);
        for seconds in [10, 1_000] {
            let later = Instant::ZERO + Duration::from_secs(seconds);
            assert_eq!(leave_us(&mut shaper, later, 1514, 4), start);
        }
    }

    #[test]
    fn the_slower_of_rate_and_ceiling_governs() {
        let slow_ceil = Config { ceil: mbit(1), ..Config::with_rate(mbit(10)) };
        let slow_rate = Config { rate: mbit(1), ..Config::with_rate(mbit(10)) };
        for config in [slow_ceil, slow_rate] {
            let mut shaper = Shaper::new(config);
            assert_eq!(leave_us(&mut shaper, Instant::ZERO, 1514, 4), [0, 0, 11_424, 23_536]);
        }
    }

    #[test]
    fn atm_cells_are_charged() {
        let framing = Framing { overhead: 40, mpu: 0, atm: true };
        let mut shaper = Shaper::new(Config { framing, ..Config::with_rate(mbit(1)) });
        // 33 cells of 53 bytes are 13.992 ms, more than the bucket of 12.8 ms: no second packet.
        assert_eq!(leave_us(&mut shaper, Instant::ZERO, 1514, 3), [0, 1_192, 15_184]);
    }

    #[test]
    fn debt_is_limited_to_60_seconds() {
        let kilobit = Rate::from_bits_per_second(1_000).unwrap();
        let mut shaper = Shaper::new(Config::with_rate(kilobit));
        // 9000 bytes are 72 s at this rate, the bucket 12.8 s.
        assert_eq!(leave_us(&mut shaper, Instant::ZERO, 9_000, 2), [0, 59_200_000]);
        assert_eq!(shaper.ready().as_nanos(), 59_200_000_000 + 59_999_999_999);
    }
}
