//! COBALT: CoDel and BLUE side by side (`cobalt_should_drop` and its neighbours in `sch_cake.c`).
//!
//! CoDel's clock runs on at all times. While it is due and the queue's packets wait too long, one is marked or dropped and the
//! count grows; while it is due and they do not, the count shrinks by the same law. BLUE drops a share of what passes, which
//! grows when the memory runs out and shrinks when the queue is found empty.
//!
//! Two things follow from the kernel's arithmetic: a queue that was never used before has a reciprocal root of zero, so its first
//! signal comes with the second packet over the target and not an interval later; and intervals are cut to 32 bits of
//! nanoseconds, so beyond 4.29 s they wrap.

use crate::contract::{Item, Sink};
use dragstrip_units::Stream;

/// Before the run: every deadline has passed.
const LONG_AGO: i64 = i64::MIN / 4;

/// Counts whose reciprocal roots are tabulated (`REC_INV_SQRT_CACHE`).
const TABULATED: usize = 16;

/// Reciprocal roots of 0 to 15 in 1/2^32, four Newton steps from the one before.
const ROOTS: [u32; TABULATED] = {
    let mut roots = [u32::MAX; TABULATED];
    let mut root = u32::MAX;
    let mut count = 1;
    while count < TABULATED {
        let mut step = 0;
        while step < 4 {
            root = newton(root, count as u32);
            step += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
};

/// A step towards 1/√count: x/2 · (3 - count·x²).
const fn newton(root: u32, count: u32) -> u32 {
    let square = (root as u64 * root as u64) >> 32;
    let rest = (3_u64 << 32).wrapping_sub(count as u64 * square);
    (((rest >> 2).wrapping_mul(root as u64)) >> 31) as u32
}

/// A tin's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Params {
    /// The delay above which packets are marked or dropped, ns.
    pub target: u64,
    /// The time to the first signal and the scale of the others, ns.
    pub interval: u64,
    /// Transmission time of a full frame at the tin's rate, ns.
    pub mtu_time: u64,
}

/// BLUE's steps: 1/256 up, 1/4096 down.
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

/// A queue's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    count: u32,
    root: u32,
    /// Time of the next signal, or the time at which this state is at rest.
    drop_next: i64,
    blue_timer: i64,
    drop_probability: u32,
    dropping: bool,
}

impl Cobalt {
    pub(super) const NEW: Self = Self {
        count: 0,
        root: 0,
        drop_next: LONG_AGO,
        blue_timer: LONG_AGO,
        drop_probability: 0,
        dropping: false,
    };

    /// Takes up another count.
    fn recount(&mut self, count: u32) {
        self.count = count;
        self.root = match ROOTS.get(count as usize) {
            Some(root) => *root,
            None => newton(self.root, count),
        };
    }

    /// The control law: `from` plus the interval divided by the root of the count.
    fn law(&self, from: i64, params: &Params) -> i64 {
        let cut = u64::from(params.interval as u32);
        from + ((cut * u64::from(self.root)) >> 32) as i64
    }

    fn advance(&mut self, params: &Params) {
        self.drop_next = self.law(self.drop_next, params);
    }

    /// A packet had to go because the memory was used up.
    pub(super) fn overflows(&mut self, params: &Params, now: i64) {
        if now - self.blue_timer > params.target as i64 {
            self.drop_probability = self.drop_probability.saturating_add(UP);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// It was the queue's turn, and there was nothing in it. Whether the state is at rest from now on.
    pub(super) fn found_empty(&mut self, params: &Params, now: i64) -> bool {
        if self.drop_probability > 0 && now - self.blue_timer > params.target as i64 {
            self.drop_probability = self.drop_probability.saturating_sub(DOWN);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.recount(self.count - 1);
            self.advance(params);
        }
        self.drop_probability == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Judges the packet that is about to leave; it may be marked. `busy`: at ingress the number of busy flows, else zero.
    pub(super) fn condemns<S: Sink>(
        &mut self,
        item: &mut Item,
        sojourn: u64,
        params: &Params,
        busy: u64,
        now: i64,
        (stream, sink): (&mut Stream, &mut S),
    ) -> bool {
        let over = sojourn > params.target
            && sojourn > params.mtu_time * busy * 2
            && sojourn > params.mtu_time * 4;
        // Before or after the signal, as it stood before anything below changes it.
        let mut late = now - self.drop_next;
        let mut due = self.count > 0 && late >= 0;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.law(now, params);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut drop = false;
        if due && self.dropping {
            drop = !item.mark(sink);
            self.recount(self.count.saturating_add(1));
            self.advance(params);
            late = now - self.drop_next;
        } else {
            while due {
                self.recount(self.count - 1);
                self.advance(params);
                late = now - self.drop_next;
                due = self.count > 0 && late >= 0;
            }
        }
        // Whether it can be marked does not matter here.
        if self.drop_probability > 0 {
            drop |= stream.next_u32() < self.drop_probability;
        }
        if self.count == 0 {
            self.drop_next = now + params.interval as i64;
        } else if late > 0 && !drop {
            self.drop_next = now;
        }
        drop
    }
}

#[cfg(test)]
mod tests {
    use super::{Cobalt, Params, ROOTS};
    use crate::contract::{Ecn, Item, PacketId};
    use crate::testing::Log;
    use dragstrip_units::Stream;

    /// 10 Mbit/s: a frame takes 1.2112 ms; target 5 ms, interval 100 ms.
    const TEN: Params = Params { target: 5_000_000, interval: 100_000_000, mtu_time: 1_211_200 };

    #[test]
    fn reciprocal_roots_are_those_of_the_first_sixteen_counts() {
        let share = |count: usize| f64::from(ROOTS[count]) / 4_294_967_296.0;
        assert_eq!((ROOTS[0], ROOTS[1]), (u32::MAX, u32::MAX));
        // Four steps do not reach the root of 2.
        assert!((share(2) - 0.70671).abs() < 1e-5, "{}", share(2));
        for count in 3..16 {
            let exact = 1.0 / libm::sqrt(count as f64);
            assert!((share(count) / exact - 1.0).abs() < 1e-4, "{count}: {}", share(count));
        }
    }

    /// Returns the packets marked among those that leave every 1.2112 ms after waiting for 20 ms; one that did not
    /// wait has gone before.
    fn marks(cobalt: &mut Cobalt, from: i64, many: usize) -> Vec<u32> {
        let (mut stream, mut log) = (Stream::named(1, "cobalt"), Log::default());
        let with = (&mut stream, &mut log);
        assert!(!cobalt.condemns(&mut Item::default(), 0, &TEN, 0, from - 1_211_200, with));
        for id in 0.. {
            let now = from + i64::from(id) * 1_211_200;
            let mut item = Item { packet: PacketId(id), ecn: Ecn::Ect0, ..Item::default() };
            let with = (&mut stream, &mut log);
            assert!(!cobalt.condemns(&mut item, 20_000_000, &TEN, 0, now, with));
            if log.marks.len() == many {
                break;
            }
        }
        log.marks.iter().map(|packet| packet.0).collect()
    }

    /// The packets that leave at or first after these milliseconds.
    fn leaving_at(ms: &[f64]) -> Vec<u32> {
        ms.iter().map(|ms| libm::ceil(ms / 1.2112 - 0.01) as u32).collect()
    }

    /// As measured on a Linux 6.1: the second packet over the target has a queue's very first signal.
    #[test]
    fn a_queue_never_used_before_marks_at_once_and_then_by_the_law() {
        let measured = leaving_at(&[1.21, 71.46, 129.60, 179.26, 224.07, 264.04, 302.80]);
        let mut cobalt = Cobalt::NEW;
        assert_eq!(marks(&mut cobalt, 0, 7), measured);
    }

    /// Likewise: the first signal of a queue whose state has come to rest is an interval away.
    #[test]
    fn a_queue_at_rest_waits_for_an_interval() {
        let mut cobalt = Cobalt::NEW;
        marks(&mut cobalt, 0, 3);
        let mut now = 1_000_000_000;
        while !cobalt.found_empty(&TEN, now) {
            now += 10_000_000;
        }
        let measured = leaving_at(&[100.0, 170.7, 228.4, 278.4, 323.1, 364.0, 401.8, 437.1]);
        assert_eq!(marks(&mut cobalt, now, 8), measured);
    }

    /// Packets that cannot be marked are dropped; in addition a share is dropped that grows by 1/256 whenever the
    /// memory runs out, at most once per target, and shrinks by 1/4096 when the queue is found empty.
    #[test]
    fn blue_drops_whatever_can_be_marked_too() {
        let (mut stream, mut log) = (Stream::named(2, "cobalt"), Log::default());
        let mut cobalt = Cobalt::NEW;
        for step in 0..64 {
            cobalt.overflows(&TEN, step * 5_000_001);
            cobalt.overflows(&TEN, step * 5_000_001 + 1);
        }
        assert_eq!(cobalt.drop_probability, 64 << 24);
        let mut dropped = 0;
        for id in 0..40_000 {
            let mut item = Item { packet: PacketId(id), ecn: Ecn::Ect1, ..Item::default() };
            let with = (&mut stream, &mut log);
            dropped += u32::from(cobalt.condemns(&mut item, 0, &TEN, 0, 1 << 40, with));
        }
        // A quarter; the standard deviation is 87.
        assert!((9_700..10_300).contains(&dropped), "{dropped}");
        let mut steps = 0;
        while !cobalt.found_empty(&TEN, (1 << 41) + steps * 5_000_001) {
            steps += 1;
        }
        assert_eq!(steps, 64 * 16 - 1);
    }
}
