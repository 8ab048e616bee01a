//! Service curves of hfsc: two slopes, in the fixed point of `sch_hfsc.c`.
//!
//! Time is counted in ticks of 64 ns, service in bytes. A slope is kept twice: as bytes per tick with 24 binary places
//! (`SM_SHIFT`), and as ticks per byte with 14 (`ISM_SHIFT`), both rounded up.

use crate::netlink::TICK_NS;

const SM_SHIFT: u32 = 24;
const ISM_SHIFT: u32 = 14;
const TICKS_PER_SECOND: u64 = 1_000_000_000 / TICK_NS;
/// `HT_INFINITY`: the time in which a slope of zero serves anything.
const NEVER: u64 = u64::MAX;

/// A slope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slope {
    sm: u64,
    ism: u64,
}

impl Slope {
    fn of(bytes_per_second: u64) -> Self {
        let sm = (u128::from(bytes_per_second) << SM_SHIFT).div_ceil(u128::from(TICKS_PER_SECOND));
        let ism = match bytes_per_second {
            0 => NEVER,
            rate => (TICKS_PER_SECOND << ISM_SHIFT).div_ceil(rate),
        };
        Self { sm: u64::try_from(sm).unwrap_or(u64::MAX), ism }
    }

    /// `seg_x2y`: bytes that so many ticks serve.
    fn bytes(self, ticks: u64) -> u64 {
        let product = u128::from(ticks) * u128::from(self.sm);
        u64::try_from(product >> SM_SHIFT).unwrap_or(u64::MAX)
    }

    /// `seg_y2x`: ticks in which so many bytes are served.
    fn ticks(self, bytes: u64) -> u64 {
        match (bytes, self.ism) {
            (0, _) => 0,
            (_, NEVER) => NEVER,
            (bytes, ism) => {
                let product = u128::from(bytes) * u128::from(ism);
                u64::try_from(product >> ISM_SHIFT).unwrap_or(NEVER)
            }
        }
    }
}

/// A service curve as it is configured (`struct internal_sc`): the first slope for `dx` ticks, then the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Curve {
    first: Slope,
    dx: u64,
    dy: u64,
    second: Slope,
}

impl Curve {
    /// Rates in bit/s, and how long the first holds.
    pub(super) fn new(m1_bps: u64, d_ns: u64, m2_bps: u64) -> Self {
        // tc hands over whole microseconds, the kernel rounds ticks up (`d2dx`).
        let dx = (d_ns.div_ceil(1_000) * TICKS_PER_SECOND).div_ceil(1_000_000);
        let first = Slope::of(m1_bps / 8);
        Self { first, dx, dy: first.bytes(dx), second: Slope::of(m2_bps / 8) }
    }

    /// The second slope is not below the first.
    pub(super) const fn is_convex(&self) -> bool {
        self.first.sm <= self.second.sm
    }
}

/// A curve that began at a point (`struct runtime_sc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Running {
    x: u64,
    y: u64,
    curve: Curve,
}

impl Running {
    /// `curve` from the origin.
    pub(super) const fn new(curve: Curve) -> Self {
        Self { x: 0, y: 0, curve }
    }

    /// The same with the second slope alone.
    pub(super) const fn straight(mut self) -> Self {
        self.curve.dx = 0;
        self.curve.dy = 0;
        self
    }

    /// `rtsc_y2x`: the time at which so much is served.
    pub(super) fn time_of(&self, y: u64) -> u64 {
        let Self { x, y: start, curve } = *self;
        if y < start {
            x
        } else if y <= start + curve.dy {
            if curve.dy == 0 {
                x + curve.dx
            } else {
                x.saturating_add(curve.first.ticks(y - start))
            }
        } else {
            (x + curve.dx).saturating_add(curve.second.ticks(y - start - curve.dy))
        }
    }

    /// `rtsc_x2y`: the service up to a time.
    fn service_at(&self, time: u64) -> u64 {
        let Self { x, y, curve } = *self;
        if time <= x {
            y
        } else if time <= x + curve.dx {
            y.saturating_add(curve.first.bytes(time - x))
        } else {
            (y + curve.dy).saturating_add(curve.second.bytes(time - x - curve.dx))
        }
    }

    /// `rtsc_min`: the lesser of itself and `curve` begun at a point.
    pub(super) fn begin(&mut self, curve: &Curve, x: u64, y: u64) {
        let here = self.service_at(x);
        if curve.is_convex() {
            if here >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        if here <= y {
            return;
        }
        if self.service_at(x + curve.dx) >= y + curve.dy {
            *self = Self { x, y, curve: Curve { dx: curve.dx, dy: curve.dy, ..self.curve } };
            return;
        }
        // They cross where the first slope has made up for what this one is ahead.
        let ahead = u128::from(here - y) << SM_SHIFT;
        let mut dx =
            u64::try_from(ahead / u128::from(curve.first.sm - curve.second.sm)).unwrap_or(u64::MAX);
        let end = self.x + self.curve.dx;
        if end > x {
            dx = dx.saturating_add(end - x);
        }
        let dy = curve.first.bytes(dx);
        *self = Self { x, y, curve: Curve { dx, dy, ..self.curve } };
    }
}

#[cfg(test)]
mod tests {
    use super::{Curve, Running};

    /// 8 Mbit/s for 10 ms, then 800 kbit/s: 10,000 bytes take 10 ms, 11,000 another 10 ms.
    #[test]
    fn a_concave_curve_serves_its_burst_first() {
        let running = Running::new(Curve::new(8_000_000, 10_000_000, 800_000));
        let ms = |bytes| (running.time_of(bytes) as f64 * 64.0 / 1e6 * 100.0).round() / 100.0;
        assert_eq!([0, 5_000, 10_000, 11_000].map(ms), [0.0, 5.0, 10.0, 20.0]);
    }

    /// A class that comes back after 100 ms has its burst again where the old curve is above the new one.
    #[test]
    fn a_curve_begins_again_when_a_class_becomes_active() {
        let curve = Curve::new(8_000_000, 10_000_000, 800_000);
        let mut running = Running::new(curve);
        let at = |ms: u64| ms * 1_000_000 / 64;
        // 10,000 bytes after 10 ms, 9,000 more after 100 ms: 19,000; 5,000 were served.
        running.begin(&curve, at(100), 5_000);
        assert_eq!(running.time_of(5_000), at(100));
        let served = |ms: u64| running.service_at(at(ms)) / 10 * 10;
        assert_eq!((served(105), served(110)), (10_000, 15_000));
        let mut convex = Running::new(Curve::new(0, 10_000_000, 8_000_000));
        convex.begin(&Curve::new(0, 10_000_000, 8_000_000), at(100), 5_000);
        assert_eq!(convex.service_at(at(109)), 5_000);
    }
}
