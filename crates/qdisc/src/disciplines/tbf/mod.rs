//! Token bucket filter (`sch_tbf.c`).
//!
//! Tokens are nanoseconds at the rate; the bucket, `burst` bytes deep, starts full. A packet pays
//! **before** it leaves: it waits until the bucket holds its whole cost, so unlike htb the bucket never
//! goes negative and a packet longer than the bucket can never pass: it is dropped on arrival. The
//! optional second bucket (peak rate, `mtu` bytes) spaces the packets of a burst.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::fifo::{Fifo, Limit};
use crate::peek::Peekable;
use crate::token_rate::{self, Framing, TokenRate};
use dragstrip_units::{Duration, Instant, Rate};
pub use spec::TbfSpec;

/// A tbf as `tc qdisc add ... tbf` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Token rate.
    pub rate: Rate,
    /// Bucket in bytes.
    pub burst: u32,
    /// Second bucket: its rate, and its depth in bytes (tc's `mtu`).
    pub peak: Option<(Rate, u32)>,
}

#[derive(Clone, Debug)]
struct Bucket {
    rate: TokenRate,
    depth_ns: i64,
    tokens_ns: i64,
}

impl Bucket {
    fn full(rate: Rate, bytes: u32) -> Self {
        let rate = TokenRate::new(rate, Framing::default());
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
    config: Config,
    rate: Bucket,
    peak: Option<Bucket>,
    len_max: u32,
    checkpoint: Instant,
}

impl Shaper {
    /// Buckets as configured, full.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { rate, burst, peak } = config;
        Self {
            config,
            rate: Bucket::full(rate, burst),
            peak: peak.map(|(rate, mtu)| Bucket::full(rate, mtu)),
            len_max: peak.map_or(burst, |(_, mtu)| burst.min(mtu)),
            checkpoint: Instant::ZERO,
        }
    }

    /// True when a packet of `len` can ever pass.
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

    /// `tbf_change` with another rate: both buckets are full again.
    pub fn change(&mut self, bps: u64, now: Instant) {
        let rate = token_rate::rate(bps);
        *self = Self { checkpoint: now, ..Self::new(Config { rate, ..self.config }) };
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

/// The filter with the queue in front of it, which is a byte-limited FIFO where tc names no other.
#[derive(Clone, Debug)]
pub struct Tbf<Q = Fifo> {
    shaper: Shaper,
    queue: Peekable<Q>,
}

impl Tbf {
    /// A filter in front of which up to `limit` bytes wait.
    #[must_use]
    pub fn new(config: Config, limit: u64) -> Self {
        Self::with_child(config, Fifo::bytes(limit))
    }

    /// The buckets.
    #[must_use]
    pub fn shaper(&self) -> &Shaper {
        &self.shaper
    }

    /// Returns the capacity of the queue.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.queue.inner().limit()
    }
}

impl<Q: Qdisc> Tbf<Q> {
    /// A filter in front of which packets wait in `child`.
    #[must_use]
    pub fn with_child(config: Config, child: Q) -> Self {
        Self { shaper: Shaper::new(config), queue: Peekable::new(child) }
    }
}

impl<Q: Qdisc> Qdisc for Tbf<Q> {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        if self.shaper.passes(item.len) {
            self.queue.enqueue(item, now, sink)
        } else {
            sink.dropped(item, DropReason::Overlimit);
            Verdict::Dropped(DropReason::Overlimit)
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let head = match self.queue.peek(now, sink) {
            Dequeue::Packet(head) => head,
            nothing @ (Dequeue::Wait(_) | Dequeue::Empty) => return nothing,
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

    fn change<S: Sink>(&mut self, change: Change, now: Instant, sink: &mut S) {
        match change {
            Change::RateBps(bps) => self.shaper.change(bps, now),
            Change::LimitBytes(_)
            | Change::LimitPackets(_)
            | Change::DelayNs(_)
            | Change::Loss(_) => self.queue.change(change, now, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Shaper, Tbf};
    use crate::contract::{Dequeue, DropReason, Item, PacketId, Qdisc};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant, Rate};

    fn mbit(n: u64) -> Rate {
        Rate::from_bits_per_second(n * 1_000_000).unwrap()
    }

    fn config(burst: u32) -> Config {
        Config { rate: mbit(1), burst, peak: None }
    }

    /// Returns the departure times of `count` full frames that wait from `now` on, in microseconds after `now`.
    fn leave_us(shaper: &mut Shaper, now: Instant, count: usize) -> Vec<u64> {
        let mut leave = || {
            let at = shaper.ready(1514).max(now);
            shaper.charge(1514, at);
            at.since(now).as_micros_floor()
        };
        std::iter::repeat_with(&mut leave).take(count).collect()
    }

    #[test]
    fn the_bucket_refills_to_its_depth_and_no_further() {
        let mut shaper = Shaper::new(config(3028));
        // First a full bucket that is given more, then an empty one that fills up.
        for seconds in [10, 20] {
            let now = Instant::ZERO + Duration::from_secs(seconds);
            assert_eq!(leave_us(&mut shaper, now, 4), [0, 0, 12_112, 24_224]);
        }
    }

    #[test]
    fn the_peak_rate_spaces_the_burst() {
        let mut shaper = Shaper::new(Config { peak: Some((mbit(10), 1514)), ..config(4542) });
        // Three frames at the peak rate; by then the bucket has earned 2.4224 ms towards the fourth.
        assert_eq!(leave_us(&mut shaper, Instant::ZERO, 5), [0, 1_211, 2_422, 12_112, 24_224]);
    }

    #[test]
    fn what_exceeds_the_bucket_or_the_limit_is_dropped() {
        let mut log = Log::default();
        let mut tbf = Tbf::new(config(1514), 3028);
        let frame = |id, len| Item { packet: PacketId(id), len, ..Item::default() };
        for (id, len) in [(0, 1515), (1, 1514), (2, 1514), (3, 66)] {
            let _ = tbf.enqueue(frame(id, len), Instant::ZERO, &mut log);
        }
        let over = |id| (PacketId(id), DropReason::Overlimit);
        assert_eq!(log.drops, [over(0), over(3)]);
        assert_eq!(tbf.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(frame(1, 1514)));
        let next = Dequeue::Wait(Instant::from_nanos(12_112_000));
        assert_eq!(tbf.dequeue(Instant::ZERO, &mut log), next);
    }
}
