//! Controlled delay (RFC 8289; `codel_impl.h`, `sch_codel.c`).
//!
//! CoDel looks at how long packets have been queued, at the moment they leave. When the sojourn
//! time has stayed above `target` for an `interval`, it drops (or marks) one packet, and then
//! again after `interval / sqrt(count)`, until the sojourn time falls below the target.
//!
//! ```text
//!             above target for an interval: drop one
//!   watching ─────────────────────────────────────────▶ dropping ──┐ now >= drop_next: count += 1,
//!      ▲                                                 │   ▲     │ drop, drop_next += interval / sqrt(count)
//!      └───── below target, or at most one MTU queued ───┘   └─────┘
//! ```
//!
//! As Linux does it:
//! - time in units of 1024 ns, 32 bits that wrap;
//! - the inverse square root in 16 bits, **one** Newton step per count: 1, 0.5, 0.5625, 0.4878 ... so the
//!   third drop of an episode comes 50 ms after the second (100 ms interval), not 71 ms;
//! - nothing is dropped while at most one MTU is left, and the MTU is the device's;
//! - the packet whose mark opens or continues an episode is delivered without being judged again;
//! - with ECN an ECN-capable packet is always marked, never dropped;
//! - whatever the law and `ecn` say, an ECN-capable packet that has waited longer than `ce_threshold` is marked as it leaves.
//!
//! One departure: whether a first episode counts as "recent" (only FQ-CoDel's overflow can make that
//! matter) depends in Linux on the machine's uptime; here it never does.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use dragstrip_packet::TrafficClass;
use dragstrip_units::{Duration, Instant};
pub use spec::CodelSpec;
use std::collections::VecDeque;

/// A codel as `tc qdisc add ... codel` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that may wait (tc: 1000).
    pub limit: u32,
    /// Parameters of the drop law.
    pub params: Params,
}

/// The control law's parameters, shared with FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Acceptable standing delay (5 ms).
    pub target: Duration,
    /// Time for which the delay may stay above the target (100 ms).
    pub interval: Duration,
    /// With no more bytes than this queued nothing is dropped: `psched_mtu` of the device, 1514 on
    /// Ethernet.
    pub mtu: u32,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark every ECN-capable packet that has waited longer.
    pub ce_threshold: Option<Duration>,
    /// Packets to which that threshold applies; none: to all.
    pub ce_threshold_selector: Option<Selector>,
}

/// Packets that have one value in some bits of the traffic class (`ce_threshold_selector`, `ce_threshold_mask`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// Value of these bits.
    pub value: u8,
    /// The bits.
    pub mask: u8,
}

impl Selector {
    fn takes(self, item: &Item) -> bool {
        TrafficClass::new(item.dscp, item.ecn).octet() & self.mask == self.value
    }
}

impl Default for Params {
    /// Linux: 5 ms, 100 ms, 1514 bytes, no ECN, no other threshold.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1514,
            ecn: false,
            ce_threshold: None,
            ce_threshold_selector: None,
        }
    }
}

/// `codel_time_t`: units of 1024 ns, compared with wrap-around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time(u32);

impl Time {
    pub(crate) fn of(now: Instant) -> Self {
        Self((now.as_nanos() >> 10) as u32)
    }

    fn span(span: Duration) -> u32 {
        (span.as_nanos() >> 10).min(u64::from(u32::MAX)) as u32
    }

    fn plus(self, span: u32) -> Self {
        Self(self.0.wrapping_add(span))
    }

    fn minus(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    fn after(self, other: Self) -> bool {
        (self.minus(other) as i32) > 0
    }
}

/// The 16-bit fixed-point inverse square root of a count that goes up in ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InverseSqrt(u16);

impl InverseSqrt {
    const ONE: Self = Self(u16::MAX);

    /// One Newton step `x (3 - count x²) / 2` towards the new count (RFC 8289 §A.1).
    fn step(&mut self, count: u32) {
        let x = u64::from(self.0) << 16;
        let square = (x * x) >> 32;
        let three_less = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square));
        // Two bits are given up before the product so that it fits 64 bits.
        let product = (three_less >> 2).wrapping_mul(x) >> (32 - 2 + 1);
        self.0 = (product >> 16) as u16;
    }

    /// `span / sqrt(count)`.
    fn scale(self, span: u32) -> u32 {
        ((u64::from(span) * (u64::from(self.0) << 16)) >> 32) as u32
    }
}

/// Queue interface that CoDel needs.
pub(crate) trait Source {
    /// Takes the oldest packet out, with the time of its enqueue.
    fn pop(&mut self) -> Option<(Item, Time)>;
    /// Bytes that are left, by the measure the MTU rule uses.
    fn bytes(&self) -> u64;
}

/// State of the control law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Controller {
    /// Drops (or marks) in this episode; FQ-CoDel's overflow adds to it.
    pub(crate) count: u32,
    last_count: u32,
    inverse_sqrt: InverseSqrt,
    dropping: bool,
    /// An interval after the sojourn time first exceeded the target; `None`: it does not.
    first_above: Option<Time>,
    drop_next: Time,
    /// Sojourn time of the last packet examined (`ldelay`).
    sojourn: Sojourn,
}

/// A packet's time in the queue, units of 1024 ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sojourn(u32);

impl Sojourn {
    fn exceeds(self, threshold: Duration) -> bool {
        (self.0.wrapping_sub(Time::span(threshold)) as i32) > 0
    }
}

impl Controller {
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            last_count: 0,
            // `codel_vars_init` leaves zero; set before its first use, on entry into dropping.
            inverse_sqrt: InverseSqrt(0),
            dropping: false,
            first_above: None,
            drop_next: Time(0),
            sojourn: Sojourn(0),
        }
    }

    /// The next packet that survives, after dropping as many as the law demands.
    pub(crate) fn dequeue<Q: Source, S: Sink>(
        &mut self,
        source: &mut Q,
        params: &Params,
        now: Instant,
        sink: &mut S,
    ) -> Option<Item> {
        let mut head = self.control(source, params, Time::of(now), sink)?;
        let late = params.ce_threshold.is_some_and(|threshold| self.sojourn.exceeds(threshold));
        // `codel_dequeue`: the law may have marked it already, and the selector then sees CE.
        if late && params.ce_threshold_selector.is_none_or(|selector| selector.takes(&head)) {
            head.mark(sink);
        }
        Some(head)
    }

    fn control<Q: Source, S: Sink>(
        &mut self,
        source: &mut Q,
        params: &Params,
        now: Time,
        sink: &mut S,
    ) -> Option<Item> {
        let interval = Time::span(params.interval);
        let (mut head, mut condemned) = self.judge(source, params, now);
        if head.is_none() {
            self.dropping = false;
            return None;
        }
        if self.dropping {
            if !condemned {
                self.dropping = false;
            }
            while let Some(mut item) = head
                && self.dropping
                && !self.drop_next.after(now)
            {
                self.count = self.count.wrapping_add(1);
                self.inverse_sqrt.step(self.count);
                if params.ecn && item.mark(sink) {
                    self.drop_next = self.drop_next.plus(self.inverse_sqrt.scale(interval));
                    return Some(item);
                }
                sink.dropped(item, DropReason::Aqm);
                (head, condemned) = self.judge(source, params, now);
                if condemned {
                    self.drop_next = self.drop_next.plus(self.inverse_sqrt.scale(interval));
                } else {
                    self.dropping = false;
                }
            }
        } else if let Some(item) = &mut head
            && condemned
        {
            if !(params.ecn && item.mark(sink)) {
                sink.dropped(*item, DropReason::Aqm);
                (head, _) = self.judge(source, params, now);
            }
            self.begin_episode(now, interval);
        }
        head
    }

    /// Starts dropping. RFC 8289 §5.5: soon after the last episode, the drop rate which controlled
    /// the queue then is the one to start from; `delta` is how far that episode had to go.
    fn begin_episode(&mut self, now: Time, interval: u32) {
        self.dropping = true;
        // Unsigned in the kernel too.
        let delta = self.count.wrapping_sub(self.last_count);
        let had_one = self.last_count != 0;
        let pause = now.minus(self.drop_next).wrapping_sub(interval.wrapping_mul(16)) as i32;
        if had_one && delta > 1 && pause < 0 {
            self.count = delta;
            self.inverse_sqrt.step(self.count);
        } else {
            self.count = 1;
            self.inverse_sqrt = InverseSqrt::ONE;
        }
        self.last_count = self.count;
        self.drop_next = now.plus(self.inverse_sqrt.scale(interval));
    }

    /// The oldest packet, and whether its sojourn time has been too long for an interval.
    fn judge<Q: Source>(
        &mut self,
        source: &mut Q,
        params: &Params,
        now: Time,
    ) -> (Option<Item>, bool) {
        let Some((item, enqueued)) = source.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let sojourn = now.minus(enqueued);
        self.sojourn = Sojourn(sojourn);
        let short = (sojourn.wrapping_sub(Time::span(params.target)) as i32) < 0;
        if short || source.bytes() <= u64::from(params.mtu) {
            self.first_above = None;
            return (Some(item), false);
        }
        let Some(first_above) = self.first_above else {
            self.first_above = Some(now.plus(Time::span(params.interval)));
            return (Some(item), false);
        };
        (Some(item), now.after(first_above))
    }
}

#[derive(Clone, Debug)]
struct Stamped {
    queue: VecDeque<(Item, Time)>,
    bytes: u64,
}

impl Source for Stamped {
    fn pop(&mut self) -> Option<(Item, Time)> {
        let head = self.queue.pop_front()?;
        self.bytes -= u64::from(head.0.len);
        Some(head)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The discipline: one queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel {
    limit: u32,
    params: Params,
    queue: Stamped,
    controller: Controller,
}

impl Codel {
    /// An empty queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { limit, params } = config;
        Self {
            limit,
            params,
            queue: Stamped { queue: VecDeque::new(), bytes: 0 },
            controller: Controller::new(),
        }
    }
}

impl Qdisc for Codel {
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) -> Verdict {
        if self.backlog().packets < self.limit {
            self.queue.queue.push_back((item, Time::of(now)));
            self.queue.bytes += u64::from(item.len);
            Verdict::Queued
        } else {
            sink.dropped(item, DropReason::Overlimit);
            Verdict::Dropped(DropReason::Overlimit)
        }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        self.controller
            .dequeue(&mut self.queue, &self.params, now, sink)
            .map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.queue.bytes, packets: self.queue.queue.len() as u32 }
    }

    fn change<S: Sink>(&mut self, change: Change, _now: Instant, sink: &mut S) {
        // `codel_change`: the oldest packets go.
        let Change::LimitPackets(limit) = change else { return };
        self.limit = limit;
        while self.backlog().packets > limit {
            let Some((item, _)) = self.queue.pop() else { break };
            sink.dropped(item, DropReason::Overlimit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Codel, Config, Controller, InverseSqrt, Params, Selector, Source, Time};
    use crate::contract::{DropReason, Dscp, Ecn, Item, PacketId, Qdisc};
    use crate::model::common::arrivals;
    use crate::model::conservation::account;
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant};
    use proptest::prelude::*;

    fn micros(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn frame(id: u32, ecn: Ecn) -> Item {
        Item { packet: PacketId(id), len: 1514, ecn, ..Item::default() }
    }

    /// A queue that never gets shorter, every packet of which has waited 20 ms.
    struct Standing {
        now: Instant,
        ecn: Ecn,
    }

    impl Source for Standing {
        fn pop(&mut self) -> Option<(Item, Time)> {
            Some((frame(0, self.ecn), Time::of(self.now - Duration::from_millis(20))))
        }

        fn bytes(&self) -> u64 {
            100_000
        }
    }

    /// Checks when a standing queue above the target is dropped from or marked.
    fn check_signals(params: Params, ecn: Ecn) -> Log {
        let mut controller = Controller::new();
        let mut log = Log::default();
        let mut times = Vec::new();
        let start = 50_000;
        for us in (start..start + 580_000).step_by(10) {
            let now = micros(us);
            let before = log.drops.len() + log.marks.len();
            controller.dequeue(&mut Standing { now, ecn }, &params, now, &mut log);
            for _ in before..log.drops.len() + log.marks.len() {
                times.push((us - start) as f64 / 1000.0);
            }
        }
        assert!(log.drops.iter().all(|&(_, reason)| reason == DropReason::Aqm));
        assert_eq!(times.len(), SIGNALS_MS.len());
        for (time, expected) in times.iter().zip(SIGNALS_MS) {
            // The vector is rounded to 0.1 ms, and dequeues are 10 us apart.
            assert!((time - expected).abs() < 0.065, "{times:?}");
        }
        log
    }

    /// One Newton step per drop; the exact square root would give 270.7 for the third.
    const SIGNALS_MS: [f64; 11] =
        [100.0, 200.0, 250.0, 306.2, 355.0, 399.2, 439.6, 477.1, 512.3, 545.4, 576.9];

    #[test]
    fn a_standing_queue_is_dropped_from_at_the_kernels_times() {
        assert!(check_signals(Params::default(), Ecn::Ect0).marks.is_empty());
    }

    #[test]
    fn with_ecn_the_same_instants_mark_unless_the_packet_cannot_be_marked() {
        let params = Params { ecn: true, ..Params::default() };
        assert!(check_signals(params, Ecn::Ect0).drops.is_empty());
        assert!(check_signals(params, Ecn::NotEct).marks.is_empty());
    }

    #[test]
    fn the_inverse_square_root_takes_one_newton_step_per_count() {
        let mut root = InverseSqrt::ONE;
        let mut roots = vec![f64::from(root.0) / 65536.0];
        for count in 2..=8 {
            root.step(count);
            roots.push(f64::from(root.0) / 65536.0);
        }
        let expected = [1.0, 0.5, 0.5625, 0.4878, 0.4415, 0.4041, 0.3752, 0.3515];
        for (root, expected) in roots.iter().zip(expected) {
            assert!((root - expected).abs() < 1e-4, "{root} is not {expected}");
        }
    }

    /// Returns the number of drops among 1000 packets when each waits 20 ms and `left` stay in the queue after it.
    fn drops_with_left_behind(left: u32) -> usize {
        let mut codel = Codel::new(Config { limit: 10, params: Params::default() });
        let mut log = Log::default();
        for id in 0..1_000 {
            let now = micros(u64::from(id) * 20_000 / u64::from(left));
            let _ = codel.enqueue(frame(id, Ecn::NotEct), now, &mut log);
            while codel.backlog().packets > left {
                codel.dequeue(now, &mut log);
            }
        }
        log.drops.len()
    }

    #[test]
    fn with_one_mtu_left_nothing_is_dropped_however_old() {
        assert_eq!(drops_with_left_behind(1), 0);
        assert!(drops_with_left_behind(2) > 10);
    }

    /// Packets of 1514 bytes on 10 Mbit/s, twelve at once; two leave at the start.
    fn marked_above_4_ms(ecn: Ecn) -> Vec<u32> {
        marked_where(None, ecn, Dscp::DEFAULT)
    }

    /// The same of packets that a selector may leave out.
    fn marked_where(ce_threshold_selector: Option<Selector>, ecn: Ecn, dscp: Dscp) -> Vec<u32> {
        let ce_threshold = Some(Duration::from_millis(4));
        let params = Params { ce_threshold, ce_threshold_selector, ..Params::default() };
        let mut codel = Codel::new(Config { limit: 1000, params });
        let mut log = Log::default();
        for id in 0..12 {
            let _ = codel.enqueue(Item { dscp, ..frame(id, ecn) }, micros(0), &mut log);
        }
        codel.dequeue(micros(0), &mut log);
        codel.dequeue(micros(0), &mut log);
        for number in 0..10 {
            codel.dequeue(micros(1_140) + Duration::from_nanos(number * 1_211_200), &mut log);
        }
        log.marks.iter().map(|packet| packet.0).collect()
    }

    /// As a kernel below htb marked them: from the packet on that leaves at 4.78 ms.
    #[test]
    fn above_the_threshold_every_packet_is_marked_that_can_be() {
        assert_eq!(marked_above_4_ms(Ecn::Ect0), [5, 6, 7, 8, 9, 10, 11]);
        assert!(marked_above_4_ms(Ecn::NotEct).is_empty());
    }

    /// `codel_dequeue`: `(dsfield & mask) == selector`.
    #[test]
    fn a_selector_leaves_packets_to_the_law_alone() {
        let marked = |value, mask, ecn, dscp| {
            let marks = marked_where(Some(Selector { value, mask }), ecn, dscp);
            assert!([0, 7].contains(&marks.len()), "{marks:?}");
            !marks.is_empty()
        };
        for (mask, ect0, ect1, ce) in [(1, false, true, true), (3, false, true, false)] {
            assert_eq!(marked(1, mask, Ecn::Ect0, Dscp::DEFAULT), ect0);
            assert_eq!(marked(1, mask, Ecn::Ect1, Dscp::DEFAULT), ect1);
            assert_eq!(marked(1, mask, Ecn::Ce, Dscp::DEFAULT), ce);
            assert!(!marked(1, mask, Ecn::NotEct, Dscp::DEFAULT));
        }
        assert!(marked(0xb8, 0xfc, Ecn::Ect0, Dscp::EF));
        assert!(!marked(0xb8, 0xfc, Ecn::Ect0, Dscp::LE));
    }

    #[test]
    fn an_episode_soon_after_another_goes_on_where_that_one_was() {
        let params = Params::default();
        let mut controller = Controller::new();
        let mut log = Log::default();
        let mut run = |from_ms: u64, to_ms: u64, above: bool, log: &mut Log| {
            for ms in from_ms..to_ms {
                let now = micros(ms * 1000);
                // Below: the packets have waited no time at all.
                let age = Duration::from_millis(if above { 0 } else { 20 });
                let mut source = Standing { now: now + age, ecn: Ecn::NotEct };
                controller.dequeue(&mut source, &params, now, log);
            }
            controller.count
        };
        // 11 drops as above (count 11), a pause below the target, and again above it.
        assert_eq!(run(1_000, 1_580, true, &mut log), 11);
        assert_eq!(run(1_580, 1_700, false, &mut log), 11);
        assert_eq!(run(1_700, 1_802, true, &mut log), 10);
        // The second episode began with count = delta = 10 and drops fast; after a pause longer
        // than 16 intervals a third begins with 1.
        assert_eq!(run(1_802, 4_000, false, &mut log), 10);
        assert_eq!(run(4_000, 4_102, true, &mut log), 1);
    }

    #[test]
    fn a_full_queue_drops_what_arrives() {
        let mut codel = Codel::new(Config { limit: 1, params: Params::default() });
        let mut log = Log::default();
        let _ = codel.enqueue(frame(0, Ecn::Ect0), micros(0), &mut log);
        let _ = codel.enqueue(frame(1, Ecn::Ect0), micros(0), &mut log);
        assert_eq!(log.drops, [(PacketId(1), DropReason::Overlimit)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        /// The configuration's MTU is Ethernet's; the law's may be any device's.
        #[test]
        fn no_packet_is_lost_from_the_books_at_any_mtu(
            limit in 0_u32..60,
            target in 0_u64..20_000,
            interval in 0_u64..100_000,
            mtu in 0_u32..3_000,
            ecn: bool,
            arrivals in arrivals(150),
            requests in prop::collection::vec(0_u8..4, 1..150),
        ) {
            let target = Duration::from_micros(target);
            let interval = Duration::from_micros(interval);
            let params = Params { target, interval, mtu, ecn, ..Params::default() };
            account(&mut Codel::new(Config { limit, params }), true, &arrivals, &requests);
        }
    }
}
