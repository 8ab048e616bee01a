//! A policer in front of a queue (`act_police.c`): what comes faster than the rate is dropped, not delayed.
//!
//! ```text
//!   tokens' = min(min(elapsed, burst) + tokens, burst) - cost(len)      nanoseconds at the rate
//!   tokens' >= 0: the packet goes on, tokens and clock are stored; else it is dropped and nothing is stored
//! ```
//!
//! The bucket is full at first. A second one, at the peak rate and `mtu` deep, must have its tokens too. A packet longer than
//! `mtu` is dropped whatever the buckets hold. As Linux 6.1 does it, with `conform-exceed drop` on what leaves an interface:
//! frames count with their link header.
//!
//! A policer has no queue; behind it stands the interface's own.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::token_rate::{self, Framing, TokenRate, bucket_in_ticks};
use dragstrip_units::{Instant, Rate};
pub use spec::PoliceSpec;

/// A policer as `tc filter add ... police` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Token rate.
    pub rate: Rate,
    /// Bucket in bytes.
    pub burst: u64,
    /// The longest packet that may pass, and the second bucket.
    pub mtu: u32,
    /// The second bucket's rate.
    pub peak: Option<Rate>,
}

/// The buckets.
#[derive(Clone, Debug)]
pub struct Buckets {
    config: Config,
    rate: TokenRate,
    burst_ns: i64,
    tokens_ns: i64,
    /// Rate, depth and tokens of the second one.
    peak: Option<(TokenRate, i64, i64)>,
    checkpoint: Instant,
}

impl Buckets {
    /// Buckets as configured, full.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let burst_ns = bucket_in_ticks(config.burst, config.rate);
        let peak = config.peak.map(|rate| {
            let rate = TokenRate::new(rate, Framing::default());
            let depth = rate.cost_ns(config.mtu);
            (rate, depth, depth)
        });
        let rate = TokenRate::new(config.rate, Framing::default());
        Self { config, rate, burst_ns, tokens_ns: burst_ns, peak, checkpoint: Instant::ZERO }
    }

    /// `tcf_police_act`: whether a packet of `len` may pass at `now`; it has paid then.
    pub fn conforms(&mut self, len: u32, now: Instant) -> bool {
        if len > self.config.mtu {
            return false;
        }
        let elapsed = now.since(self.checkpoint).as_nanos().min(self.burst_ns as u64) as i64;
        let tokens = (self.tokens_ns + elapsed).min(self.burst_ns) - self.rate.cost_ns(len);
        let peak = self
            .peak
            .as_ref()
            .map(|(rate, depth, tokens)| (tokens + elapsed).min(*depth) - rate.cost_ns(len));
        if tokens < 0 || peak.is_some_and(|tokens| tokens < 0) {
            return false;
        }
        self.tokens_ns = tokens;
        if let (Some((_, _, stored)), Some(tokens)) = (&mut self.peak, peak) {
            *stored = tokens;
        }
        self.checkpoint = now;
        true
    }
}

/// The policer with the queue behind it.
#[derive(Clone, Debug)]
pub struct Police<Q> {
    buckets: Buckets,
    queue: Q,
}

impl<Q: Qdisc> Police<Q> {
    /// A policer in front of `queue`.
    #[must_use]
    pub fn new(config: Config, queue: Q) -> Self {
        Self { buckets: Buckets::new(config), queue }
    }
}

impl<Q: Qdisc> Qdisc for Police<Q> {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        if self.buckets.conforms(item.len, now) {
            return self.queue.enqueue(item, now, sink);
        }
        sink.dropped(item, DropReason::Overlimit);
        Verdict::Dropped(DropReason::Overlimit)
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        self.queue.dequeue(now, sink)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn head(&self) -> Option<Item> {
        self.queue.head()
    }

    /// A policer with another rate is a new one (`tcf_police_init` writes its parameters afresh): its bucket is full.
    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        match change {
            Change::RateBps(bps) => {
                let config = Config { rate: token_rate::rate(bps), ..self.buckets.config };
                self.buckets = Buckets { checkpoint: now, ..Buckets::new(config) };
            }
            Change::LimitBytes(_)
            | Change::LimitPackets(_)
            | Change::DelayNs(_)
            | Change::Loss(_) => self.queue.change(change, now, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Config};
    use dragstrip_units::{Duration, Instant, Rate};

    fn megabit(burst: u64) -> Config {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        Config { rate, burst, mtu: 2040, peak: None }
    }

    fn passed(buckets: &mut Buckets, at: Instant, len: u32, count: usize) -> usize {
        (0..count).filter(|_| buckets.conforms(len, at)).count()
    }

    /// `rate 1mbit burst 15000`, 30 at once: ten of 1500 bytes pass, as a kernel lets them at ingress; of 1514 bytes, nine.
    #[test]
    fn a_full_bucket_passes_what_it_holds() {
        for (len, count) in [(1500, 10), (1514, 9)] {
            let mut buckets = Buckets::new(megabit(15_000));
            assert_eq!(passed(&mut buckets, Instant::ZERO, len, 30), count);
        }
    }

    /// Time goes on counting while packets are dropped; a bucket earns no more than it holds.
    #[test]
    fn what_is_dropped_costs_nothing() {
        let mut buckets = Buckets::new(megabit(3_028));
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(passed(&mut buckets, ms(0), 1514, 5), 2);
        // 12.112 ms pay for a frame; asking at 5 and 10 ms does not put that off.
        assert_eq!([5, 10, 12, 13].map(|at| passed(&mut buckets, ms(at), 1514, 1)), [0, 0, 0, 1]);
        // It was bought at 13 ms; 0.888 ms are left over and count.
        assert_eq!([24, 25].map(|at| passed(&mut buckets, ms(at), 1514, 1)), [0, 1]);
        assert_eq!(passed(&mut buckets, ms(10_000), 1514, 5), 2);
    }

    #[test]
    fn a_packet_above_the_mtu_never_passes() {
        let mut buckets = Buckets::new(megabit(100_000));
        assert!(!buckets.conforms(2041, Instant::ZERO));
        assert!(buckets.conforms(2040, Instant::ZERO));
    }

    /// A peak rate spaces what the first bucket would let through at once: 1514 bytes at 2 Mbit/s are 6.056 ms.
    #[test]
    fn the_peak_rate_spaces_a_burst() {
        let peak = Rate::from_bits_per_second(2_000_000);
        let mut buckets = Buckets::new(Config { mtu: 1514, peak, ..megabit(15_140) });
        let us = |us| Instant::ZERO + Duration::from_micros(us);
        let at = [0, 1, 6_055, 6_056, 12_111, 12_112];
        assert_eq!(at.map(|at| passed(&mut buckets, us(at), 1514, 1)), [1, 0, 0, 1, 0, 1]);
    }
}
