//! The average queue of RED and CHOKe, and what follows from it for an arriving packet (`red.h`).

use super::shape::Shape;
use dragstrip_units::{Instant, Stream};

/// Thresholds and steps (`struct red_parms`); bytes, or packets for CHOKe.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) shape: Shape,
    /// Both thresholds with `wlog` bits behind the point, as the average.
    min: u64,
    max: u64,
    /// Their distance, at least 1.
    delta: u32,
}

impl Params {
    pub(crate) fn new(min: u32, max: u32, shape: Shape) -> Self {
        let scaled = |threshold: u32| u64::from(threshold) << shape.wlog;
        let delta = max.saturating_sub(min).max(1);
        Self { min: scaled(min), max: scaled(max), delta, shape }
    }

    /// The distance between the thresholds, at least 1.
    pub(crate) const fn delta(&self) -> u32 {
        self.delta
    }

    /// The largest probability in 1/2³², at the upper threshold; 0 in tc's message leaves it to `plog` (`red_maxp`).
    pub(crate) const fn max_p(&self) -> u32 {
        if self.shape.max_p > 0 {
            return self.shape.max_p;
        }
        let shifted = if self.shape.plog < 32 { u32::MAX >> self.shape.plog } else { u32::MAX };
        shifted.wrapping_mul(self.delta)
    }
}

/// Position of the average relative to the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Below,
    Between,
    Above,
}

/// State of the average (`struct red_vars`).
#[derive(Clone, Debug)]
pub(crate) struct Average {
    /// The average, `wlog` bits behind the point.
    value: u64,
    /// Since when the queue has been idle; none: it is not.
    idle: Option<Instant>,
    /// Packets since the last one that was signalled in the band; -1: outside it (`qcount`).
    count: i64,
    /// Random number that the count is compared with (`qR`).
    drawn: u64,
    /// One in so many 32-bit numbers per unit of the average (`max_P_reciprocal`'s divisor).
    step: u32,
}

impl Average {
    /// `red_set_vars`: the average of another configuration means nothing.
    pub(crate) fn restart(&mut self) {
        self.value = 0;
        self.count = -1;
    }

    pub(crate) fn new(params: &Params, idle: Option<Instant>) -> Self {
        let step = (params.max_p() / params.delta).max(1);
        Self { value: 0, idle, count: -1, drawn: 0, step }
    }

    /// A packet arrives that finds `backlog` (`red_calc_qavg`, `red_end_of_idle_period`).
    pub(crate) fn arrives(&mut self, params: &Params, backlog: u64, now: Instant) {
        self.value = match self.idle.take() {
            Some(since) => decayed(self.value, &params.shape, since, now),
            None => self.value - (self.value >> params.shape.wlog) + backlog,
        };
    }

    /// The queue was asked and had nothing.
    pub(crate) fn found_empty(&mut self, now: Instant) {
        self.idle.get_or_insert(now);
    }

    /// As a timer sees it at `now`, in whole units.
    pub(crate) fn whole(&self, params: &Params, now: Instant) -> u64 {
        let value = match self.idle {
            Some(since) => decayed(self.value, &params.shape, since, now),
            None => self.value,
        };
        value >> params.shape.wlog
    }

    /// RED's zones: the lower threshold and the upper one belong to the zone above them (`red_cmp_thresh`).
    pub(crate) const fn zone(&self, params: &Params) -> Zone {
        if self.value < params.min {
            Zone::Below
        } else if self.value < params.max {
            Zone::Between
        } else {
            Zone::Above
        }
    }

    /// CHOKe's: a threshold belongs to the zone below it.
    pub(crate) const fn zone_up_to(&self, params: &Params) -> Zone {
        if self.value <= params.min {
            Zone::Below
        } else if self.value <= params.max {
            Zone::Between
        } else {
            Zone::Above
        }
    }

    /// The band was left.
    pub(crate) const fn outside(&mut self) {
        self.count = -1;
    }

    /// True when a packet that arrives between the thresholds is signalled: the gaps are uniform from 1 to the
    /// reciprocal of the probability, and the first packet in the band is never chosen (`red_action`).
    pub(crate) fn chooses(&mut self, params: &Params, stream: &mut Stream) -> bool {
        self.count += 1;
        if self.count == 0 {
            self.drawn = self.draw(stream);
            return false;
        }
        let above = (self.value - params.min) >> params.shape.wlog;
        let signalled = above.wrapping_mul(self.count as u64) >= self.drawn;
        if signalled {
            self.count = 0;
            self.drawn = self.draw(stream);
        }
        signalled
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        u64::from(stream.next_u32() / self.step)
    }

    /// The adaptive algorithm has moved the largest probability.
    pub(crate) fn moved(&mut self, max_p: u32, params: &Params) {
        // DIV_ROUND_CLOSEST
        self.step = (max_p.wrapping_add(params.delta / 2) / params.delta).max(1);
    }
}

/// Returns an average after decay over an idle time (`red_calc_qavg_from_idle_time`): tc's table has 64-ns ticks, the
/// kernel looks it up with microseconds.
fn decayed(value: u64, shape: &Shape, since: Instant, now: Instant) -> u64 {
    let us = (now.since(since).as_nanos() / 1_000).min(255 << shape.cell_log);
    let shift = shape.table[(us >> shape.cell_log) as usize & 255];
    if shift > 0 {
        return value >> shift;
    }
    let decay = value.wrapping_mul(us) >> shape.cell_log;
    if decay < value >> 1 { value - decay } else { value >> 1 }
}

#[cfg(test)]
mod tests {
    use super::{Average, Params, Zone};
    use crate::disciplines::red::shape::{Shape, Wish};
    use dragstrip_units::{Duration, Instant, Stream};

    fn params() -> Params {
        let wish = Wish { min: 33_333, max: 100_000, unit: 1, avpkt: 1000, burst: 55 };
        Params::new(33_333, 100_000, Shape::new(wish, 0.02, 10_000_000).unwrap())
    }

    /// An average of so many bytes, seen by somebody who then waits.
    fn average(bytes: u64) -> Average {
        let params = params();
        Average { value: bytes << params.shape.wlog, ..Average::new(&params, None) }
    }

    #[test]
    fn the_average_follows_the_queue() {
        let params = params();
        let mut average = Average::new(&params, Some(Instant::ZERO));
        let averages: Vec<u64> = (0..60_u64)
            .map(|queued| {
                average.arrives(&params, queued * 1514, Instant::ZERO);
                average.value >> 5
            })
            .collect();
        let at = [1, 2, 3, 10, 20, 30, 40, 50, 60].map(|arrival: usize| averages[arrival - 1]);
        assert_eq!(at, [0, 47, 140, 1_961, 7_507, 15_663, 25_718, 37_157, 49_603]);
        assert_eq!(averages.iter().position(|&bytes| bytes >= 33_333), Some(46));
    }

    #[test]
    fn gaps_are_uniform_up_to_the_reciprocal_of_the_probability() {
        let params = params();
        for (bytes, most) in [(50_000, 201), (90_000, 59)] {
            let mut average = average(bytes);
            let mut stream = Stream::named(1, "red");
            assert_eq!(average.zone(&params), Zone::Between);
            let mut gaps = Vec::new();
            let mut gap = 0;
            for _ in 0..200_000 {
                gap += 1;
                if average.chooses(&params, &mut stream) {
                    gaps.push(gap);
                    gap = 0;
                }
            }
            assert_eq!(gaps[1..].iter().copied().min(), Some(1));
            assert_eq!(gaps[1..].iter().copied().max(), Some(most), "{bytes}");
            let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
            let expected = f64::from(most + 1) / 2.0;
            // A uniform gap deviates by its most over √12; some thousand of them.
            let error = f64::from(most) / 12_f64.sqrt() / (gaps.len() as f64).sqrt();
            assert!((mean - expected).abs() < 4.0 * error + 0.5, "{mean} for {expected}");
        }
    }

    #[test]
    fn an_idle_average_decays_by_tcs_table() {
        let params = params();
        for (ms, left) in [
            (1, 48_474),
            (5, 42_370),
            (10, 34_741),
            (17, 25_000),
            (819, 25_000),
            (820, 12_500),
            (2_000, 1_562),
            (5_000, 12),
            (8_000, 0),
        ] {
            let mut average = average(50_000);
            average.found_empty(Instant::ZERO);
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert_eq!(average.whole(&params, now), left, "{ms} ms");
        }
    }
}
