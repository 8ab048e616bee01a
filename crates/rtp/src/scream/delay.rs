//! Queue delay: its base, averages and variation, and the target that competing flows may raise (§4.2.1).

use super::VIRTUAL_RTT;

/// QDELAY_TARGET_LO and _HI, s.
const QDELAY_TARGET_LO: f64 = 0.06;
const QDELAY_TARGET_HI: f64 = 0.4;
/// QDELAY_AVG_G.
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
/// QDELAY_DEV_AVG_G, and QDELAY_DEV_NORM, s.
const QDELAY_DEV_AVG_G: f64 = 1.0 / 64.0;
const QDELAY_DEV_NORM: f64 = 0.025;
/// QDELAY_MIN_AVG_ALPHA.
const QDELAY_MIN_AVG_ALPHA: f64 = 1.0 / 256.0;
/// Minima of one-way delay: one per minute, of ten minutes (RFC 6817 §2.4.2).
const BASE_HISTORY: usize = 10;
const BASE_INTERVAL: f64 = 60.0;
/// Samples whose variance, and whose mean, tell competing flows; time between two of them, s.
const SAMPLES: usize = 200;
const MEAN_OF: usize = 50;
const SAMPLE_INTERVAL: f64 = 0.05;
/// Weight of a round trip in the loss event rate.
const LOSS_EVENT_G: f64 = 0.01;

/// Queue delay as the sender sees it.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// Latest, and average, s.
    pub latest: f64,
    pub average: f64,
    /// Queue delay that the sender aims at, s.
    pub target: f64,
    base: [f64; BASE_HISTORY],
    base_since: f64,
    averaged_at: f64,
    deviation: f64,
    deviation_max: f64,
    history: Box<[f64; SAMPLES]>,
    samples: usize,
    sampled_at: f64,
    round_since: f64,
    round_lost: bool,
    round_min: f64,
    loss_event_rate: f64,
    min_average: f64,
    reset_until: f64,
}

impl Delay {
    pub fn new() -> Self {
        Self {
            latest: 0.0,
            average: 0.0,
            target: QDELAY_TARGET_LO,
            base: [f64::INFINITY; BASE_HISTORY],
            base_since: f64::NEG_INFINITY,
            averaged_at: f64::NEG_INFINITY,
            deviation: 0.0,
            deviation_max: 0.1,
            history: Box::new([0.0; SAMPLES]),
            samples: 0,
            sampled_at: f64::NEG_INFINITY,
            round_since: f64::NEG_INFINITY,
            round_lost: false,
            round_min: f64::INFINITY,
            loss_event_rate: 0.0,
            min_average: 0.0,
            reset_until: f64::NEG_INFINITY,
        }
    }

    /// From 1 where the delay is steady down to less than 0 where it varies: what is left of the threshold.
    pub fn steadiness(&self) -> f64 {
        (self.deviation_max - self.deviation) / self.deviation_max
    }

    /// True while the target bit rate is halved because the base was forgotten (§4.5).
    pub fn is_reset(&self, now: f64) -> bool {
        now < self.reset_until
    }

    /// A report's one-way delay. `ratio` is a packet's share of the reference window.
    pub fn sample(&mut self, now: f64, one_way: f64, smoothed_rtt: f64, ratio: f64, lost: bool) {
        self.latest = one_way - self.base(now, one_way);
        self.round_lost |= lost;
        self.round_min = self.round_min.min(self.latest);
        if now - self.averaged_at >= VIRTUAL_RTT.min(smoothed_rtt) {
            self.averaged_at = now;
            self.average = if self.latest < self.average {
                self.latest
            } else {
                QDELAY_AVG_G * self.latest + (1.0 - QDELAY_AVG_G) * self.average
            };
            self.vary(ratio);
        }
        if now - self.round_since >= smoothed_rtt {
            self.end_round(now, smoothed_rtt);
        }
        if now - self.sampled_at >= SAMPLE_INTERVAL {
            self.sampled_at = now;
            self.history[self.samples % SAMPLES] = self.latest / QDELAY_TARGET_LO;
            self.samples += 1;
            self.retarget();
        }
    }

    fn base(&mut self, now: f64, one_way: f64) -> f64 {
        if now - self.base_since >= BASE_INTERVAL {
            self.base_since = now;
            self.base.rotate_right(1);
            self.base[0] = one_way;
        }
        self.base[0] = self.base[0].min(one_way);
        self.base.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn vary(&mut self, ratio: f64) {
        self.deviation_max = (0.1 * (1.0 - ratio / 0.1)).max(0.05);
        let normal = (self.latest - QDELAY_DEV_NORM / 4.0) / QDELAY_DEV_NORM;
        let capped = normal.min(self.deviation_max * 1.5).max(0.0);
        self.deviation = (1.0 - QDELAY_DEV_AVG_G) * self.deviation + QDELAY_DEV_AVG_G * capped;
    }

    /// Once per round trip: the loss event rate, and a base that has become too low (§4.5, there for drifting clocks).
    fn end_round(&mut self, now: f64, smoothed_rtt: f64) {
        self.round_since = now;
        let event = f64::from(u8::from(std::mem::take(&mut self.round_lost)));
        self.loss_event_rate += LOSS_EVENT_G * (event - self.loss_event_rate);
        let lowest = std::mem::replace(&mut self.round_min, f64::INFINITY);
        self.min_average += QDELAY_MIN_AVG_ALPHA * (lowest - self.min_average);
        if self.min_average > self.target / 4.0 {
            self.min_average = 0.0;
            self.base = [f64::INFINITY; BASE_HISTORY];
            self.base_since = f64::NEG_INFINITY;
            self.reset_until = now + (5.0 * smoothed_rtt).max(0.2);
        }
    }

    /// Competing flows compensation.
    fn retarget(&mut self) {
        let all = &self.history[..self.samples.min(SAMPLES)];
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let squares = all.iter().map(|sample| (sample - mean) * (sample - mean)).sum::<f64>();
        let variance = squares / all.len() as f64;
        let recent = self.samples.min(MEAN_OF);
        let recently = (self.samples - recent..self.samples).map(|at| self.history[at % SAMPLES]);
        let average = recently.sum::<f64>() / recent as f64;
        let limit = (average + variance.sqrt()) * QDELAY_TARGET_LO;
        let target = if self.loss_event_rate > 0.002 {
            1.5 * limit
        } else if variance < 0.2 {
            limit
        } else if limit < QDELAY_TARGET_LO {
            (self.target * 0.5).max(limit)
        } else {
            self.target * 0.9
        };
        self.target = target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }
}
