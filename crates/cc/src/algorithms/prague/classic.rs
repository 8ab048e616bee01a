//! Detection of a queue with classic ECN, and the fallback for it (`prague_classic_ecn_detection`, kernel 5.15).
//!
//! A queue that marks for L4S keeps RTTs even and low; one that marks as RFC 3168 says lets them vary and grow. A score
//! moves each round by `lg(deviation / 750 µs) / 2`, and up by `lg(depth / 2 ms) / 2` where the queue is deeper: so it was
//! meant. The module's logarithms of the references are those of α's 20 bits, and α has 24: 1.5 µs and 1.6 µs, so that nearly
//! every queue counts as classic (issue 38 of L4STeam/linux). Above [`L4S_STICKY`] the share of marks that a reduction uses is at
//! least 0.625 of the score's excess.

use super::ALPHA_BITS;

/// The score until which the queue counts as one for L4S (`L_STICKY`: 16 · V).
const L4S_STICKY: u64 = 16 << (ALPHA_BITS - 1);
/// ... from which it counts as classic (`CLASSIC_ECN`) ...
const CLASSIC: u64 = L4S_STICKY + (1 << ALPHA_BITS);
/// ... and the largest score (`C_STICKY`).
const SCORE_MAX: u64 = CLASSIC + L4S_STICKY;
/// lg 750 (µs), /2^20, weighted by V = 1/2 (`V0_LG`); α has 24 bits.
const DEVIATION_LG: i64 = 10_014_683 >> 1;
/// lg 2000 (µs), likewise (`D0_LG`).
const DEPTH_LG: i64 = 11_498_458 >> 1;
/// Largest shift of the smoothed RTT (`PRAGUE_MAX_SRTT_BITS`); the deviation's is one more.
const SRTT_BITS_MAX: u32 = 18;
/// 2^19.5: what a logarithm's remainder starts as (`PRAGUE_INIT_MDEV_CARRY`).
const CARRY: u64 = 741_455;
/// Half of the deviation's unit: it makes integer logarithms unbiased (`PRAGUE_INIT_ADJ_US`).
const ADJUSTMENT: u64 = 262_144;

/// Score of the queue, and the RTTs that it is judged by.
#[derive(Clone, Debug)]
pub(super) struct ClassicQueue {
    score: u64,
    /// Smoothed RTT and its deviation, µs, with `shift` and `shift` + 1 bits of fraction (`srtt_pace_us`, `mdev_pace_us`).
    srtt: u64,
    deviation: u64,
    shift: u32,
    /// Remainders of the two logarithms (`rest_mdev_us`, `rest_depth_us`).
    deviation_rest: u64,
    depth_rest: u64,
}

/// The whole part of log2, less `shift` and not below 0, and what is left of the number.
fn logarithm(number: u64, shift: u32) -> (u32, u64) {
    let lg = number.max(1).ilog2().max(shift) - shift;
    (lg, number >> lg)
}

impl ClassicQueue {
    /// The state at the start of a connection; 0 for an RTT that is not known yet.
    pub fn new(srtt_us: u32) -> Self {
        Self {
            score: 0,
            srtt: u64::from(srtt_us) << SRTT_BITS_MAX,
            deviation: 1 << (SRTT_BITS_MAX + 1),
            shift: SRTT_BITS_MAX,
            deviation_rest: CARRY,
            depth_rest: CARRY >> 1,
        }
    }

    /// Takes in an RTT (`prague_rtt_estimator`).
    pub fn add_rtt(&mut self, rtt_us: u32) {
        let rtt = u64::from(rtt_us);
        if self.srtt == 0 {
            self.srtt = (rtt << self.shift).max(1);
            self.deviation = 1 << (self.shift + 1);
            return;
        }
        let error = rtt as i64 - (self.srtt >> self.shift) as i64;
        self.srtt = self.srtt.saturating_add_signed(error).max(1);
        let excess = error.abs() - (self.deviation >> (self.shift + 1)) as i64;
        self.deviation = self.deviation.saturating_add_signed(excess);
    }

    /// Smooths over longer for larger windows (`prague_update_rtt_scaling`).
    pub fn rescale(&mut self, ssthresh: u32) {
        let lg = ssthresh.max(1).ilog2();
        let shift = (lg + (lg >> 1) + 1).min(SRTT_BITS_MAX);
        let scaled = |value: u64| {
            if shift >= self.shift {
                value << (shift - self.shift)
            } else {
                value >> (self.shift - shift)
            }
        };
        (self.srtt, self.deviation) = (scaled(self.srtt), scaled(self.deviation));
        (self.deviation_rest, self.depth_rest) =
            (scaled(self.deviation_rest), scaled(self.depth_rest));
        self.shift = shift;
    }

    /// A round has ended.
    pub fn judge(&mut self, min_rtt_us: u32) {
        let (srtt, deviation) = (self.srtt >> self.shift, self.deviation >> (self.shift + 1));
        if srtt == 0 || min_rtt_us == u32::MAX {
            return;
        }
        let adjustment = ADJUSTMENT >> (SRTT_BITS_MAX - self.shift);
        let (lg, rest) = logarithm(deviation * self.deviation_rest + adjustment, self.shift + 1);
        self.deviation_rest = rest;
        let mut score = self.score as i64 + (i64::from(lg) << (ALPHA_BITS - 1)) - DEVIATION_LG;
        if let Some(depth) = srtt.checked_sub(min_rtt_us.into()).filter(|&depth| depth > 0) {
            let (lg, rest) = logarithm(depth * self.depth_rest + (adjustment >> 1), self.shift);
            self.depth_rest = rest;
            score += ((i64::from(lg) << (ALPHA_BITS - 1)) - DEPTH_LG).max(0);
        }
        self.score = score.max(0).min(SCORE_MAX as i64) as u64;
    }

    /// The share of marks that a reduction uses, for this `alpha` (`prague_classic_ecn_fallback`); both /2^24.
    pub fn share(&self, alpha: u64) -> u64 {
        let excess = self.score.min(CLASSIC).saturating_sub(L4S_STICKY);
        alpha.max((excess >> 1) + (excess >> 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a hundred RTTs each.
    fn after(rounds: u32, min_rtt_us: u32, rtt_us: impl Fn(u32) -> u32) -> ClassicQueue {
        let mut queue = ClassicQueue::new(min_rtt_us);
        queue.rescale(100);
        for round in 0..rounds {
            (0..100).for_each(|number| queue.add_rtt(rtt_us(round * 100 + number)));
            queue.judge(min_rtt_us);
        }
        queue
    }

    /// By hand: 2^24 · (lg 750 - 10014683 / 2^24) / 2 and, for a depth of 2 ms, 2^24 · (lg 2000 - 11498458 / 2^24) / 2. The remainders
    /// keep the mean of whole logarithms right.
    #[test]
    fn a_score_rises_by_logarithms_of_the_deviation_and_the_depth() {
        let mut queue = ClassicQueue::new(10_000);
        queue.deviation = 750 << (queue.shift + 1);
        let mean = |depth_us: u32, queue: &mut ClassicQueue| {
            let rounds = 500;
            let sum: f64 = (0..rounds)
                .map(|_| {
                    queue.score = 0;
                    queue.judge(10_000 - depth_us);
                    queue.score as f64
                })
                .sum();
            sum / f64::from(rounds) / f64::from(1 << ALPHA_BITS)
        };
        let deviation = (9.550_747 - 10_014_683.0 / f64::from(1 << 24)) / 2.0;
        let depth = (10.965_784 - 11_498_458.0 / f64::from(1 << 24)) / 2.0;
        let without = mean(0, &mut queue);
        assert!((without - deviation).abs() < 0.02, "{without} {deviation}");
        let with = mean(2_000, &mut queue);
        assert!((with - deviation - depth).abs() < 0.04, "{with}");
    }

    /// Issue 38 of L4STeam/linux: noise of 0.2 ms at an empty queue is enough.
    #[test]
    fn nearly_every_queue_counts_as_classic() {
        let queue = after(40, 10_000, |number| 10_000 + (number * 7_919) % 400);
        assert_eq!(queue.score, SCORE_MAX);
        assert_eq!(queue.share(0), 5 << (ALPHA_BITS - 3), "0.625");
        assert_eq!(queue.share(1 << ALPHA_BITS), 1 << ALPHA_BITS);
        let still = after(40, 10_000, |_| 10_000);
        assert_eq!((still.score, still.share(123)), (0, 123));
    }

    #[test]
    fn rescaling_keeps_what_was_measured() {
        let mut queue = after(3, 10_000, |_| 15_000);
        let srtt = queue.srtt >> queue.shift;
        for ssthresh in [2, 700, 40, u32::MAX >> 1] {
            queue.rescale(ssthresh);
            assert!((queue.srtt >> queue.shift).abs_diff(srtt) <= 1, "{ssthresh}");
        }
    }
}
