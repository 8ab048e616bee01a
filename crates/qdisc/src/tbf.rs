//! Token bucket filter (`sch_tbf.c`).
//!
//! Tokens are nanoseconds at the rate; the bucket, `burst` bytes deep, starts full. A packet pays
//! **before** it leaves: it waits until the bucket holds its whole cost, so unlike htb the bucket never
//! goes negative and a packet longer than the bucket can never pass: it is dropped on arrival. The
//! optional second bucket (peak rate, `mtu` bytes) spaces the packets of a burst.

use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink};
use crate::fifo::{Fifo, Limit};
use crate::token_rate::{Framing, TokenRate};
use dragstrip_units::{Duration, Instant, Rate};

/// A tbf as `tc qdisc add ... tbf` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Token rate.
    pub rate: Rate,
    /// Bucket in bytes.
    pub burst: u32,
    /// Second bucket: its rate, and its depth in bytes (tc's `mtu`).
    pub peak: Option<(Rate, u32)>,
    /// What is charged for a packet.
    pub framing: Framing,
}

impl Config {
    /// The `limit` in bytes that tc computes from `latency`: the rate's bytes in that time plus the
    /// bucket, or the peak rate's if that is less.
    #[must_use]
    pub fn limit_for_latency(&self, latency: Duration) -> u64 {
        let limit = self.rate.bytes_in_floor(latency) + u64::from(self.burst);
        self.peak
            .map_or(limit, |(rate, mtu)| limit.min(rate.bytes_in_floor(latency) + u64::from(mtu)))
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    rate: TokenRate,
    depth_ns: i64,
    tokens_ns: i64,
}

impl Bucket {
    fn full(rate: Rate, bytes: u32, framing: Framing) -> Self {
        let rate = TokenRate::new(rate, framing);
        let depth_ns = rate.cost_ns(bytes);
        Self { rate, depth_ns, tokens_ns: depth_ns }
    }

    #[inline]
    fn deficit_ns(&self, len: u32) -> i64 {
        self.rate.cost_ns(len) - self.tokens_ns
    }

    #[inline]
    fn pay(&mut self, len: u32, elapsed: i64) {
        self.tokens_ns = (self.tokens_ns + elapsed).min(self.depth_ns) - self.rate.cost_ns(len);
    }
}

/// The buckets.
#[derive(Clone, Debug)]
pub struct Shaper {
    rate: Bucket,
    peak: Option<Bucket>,
    len_max: u32,
    checkpoint: Instant,
}

impl Shaper {
    /// Buckets as configured, full.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { rate, burst, peak, framing } = config;
        Self {
            rate: Bucket::full(rate, burst, framing),
            peak: peak.map(|(rate, mtu)| Bucket::full(rate, mtu, framing)),
            len_max: peak.map_or(burst, |(_, mtu)| burst.min(mtu)),
            checkpoint: Instant::ZERO,
        }
    }

    /// Whether a packet of `len` can ever pass.
    #[inline]
    #[must_use]
    pub fn passes(&self, len: u32) -> bool {
        len <= self.len_max
    }

    /// The earliest instant at which a packet of `len` may leave; in the past when it may at once.
    #[inline]
    #[must_use]
    pub fn ready(&self, len: u32) -> Instant {
        let peak = self.peak.as_ref().map_or(0, |peak| peak.deficit_ns(len));
        let deficit = self.rate.deficit_ns(len).max(peak).max(0);
        self.checkpoint + Duration::from_nanos(deficit as u64)
    }

    /// A packet of `len` has left at `now`.
    #[inline]
    pub fn charge(&mut self, len: u32, now: Instant) {
        let depth = self.rate.depth_ns as u64;
        let elapsed = now.since(self.checkpoint).as_nanos().min(depth) as i64;
        self.rate.pay(len, elapsed);
        if let Some(peak) = &mut self.peak {
            peak.pay(len, elapsed);
        }
        self.checkpoint = now;
    }
}

/// The filter with its byte-limited FIFO.
#[derive(Clone, Debug)]
pub struct Tbf {
    shaper: Shaper,
    queue: Fifo,
}

impl Tbf {
    /// A filter in front of which up to `limit` bytes wait.
    #[must_use]
    pub fn new(config: Config, limit: u64) -> Self {
        Self { shaper: Shaper::new(config), queue: Fifo::bytes(limit) }
    }

    /// The buckets.
    #[must_use]
    pub fn shaper(&self) -> &Shaper {
        &self.shaper
    }

    /// What may wait.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.queue.limit()
    }
}

impl Qdisc for Tbf {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) {
        if self.shaper.passes(item.len) {
            self.queue.enqueue(item, now, sink);
        } else {
            sink.dropped(item, DropReason::Overlimit);
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let Some(head) = self.queue.peek() else {
            return Dequeue::Empty;
        };
        let ready = self.shaper.ready(head.len);
        if ready > now {
            return Dequeue::Wait(ready);
        }
        self.shaper.charge(head.len, now);
        self.queue.dequeue(now, sink)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}
