//! netem's random draws: correlated 32-bit numbers and the loss models.

use dragstrip_units::Stream;

/// A fraction from 0 to 1 as tc encodes it: 32 bits, 1 = 2^32 - 1.
///
/// # Panics
/// Outside 0 to 1.
pub(super) fn encode(fraction: f64) -> u32 {
    assert!((0.0..=1.0).contains(&fraction), "{fraction} is not between 0 and 1");
    libm::rint(fraction * f64::from(u32::MAX)) as u32
}

/// 32-bit numbers, each a mean of the last and a fresh one (`get_crandom`).
///
/// With correlation they are no longer uniform: the variance falls to (1 - rho) / (1 + rho) of the
/// uniform one's, so a 5 % event becomes rarer or vanishes. The kernel does the same.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    rho: u32,
    last: u32,
}

impl Correlated {
    pub(super) fn new(correlation: f64, stream: &mut Stream) -> Self {
        let rho = encode(correlation);
        Self { rho, last: if rho == 0 { 0 } else { stream.next_u32() } }
    }

    #[inline]
    pub(super) fn draw(&mut self, stream: &mut Stream) -> u32 {
        let fresh = stream.next_u32();
        if self.rho == 0 {
            return fresh;
        }
        // rho < 2^32, so both products and their sum fit 64 bits.
        let rho = u64::from(self.rho) + 1;
        let sum = u64::from(fresh) * ((1 << 32) - rho) + u64::from(self.last) * rho;
        self.last = (sum >> 32) as u32;
        self.last
    }
}

/// An event of some probability whose occurrences may be correlated.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    probability: u32,
    draws: Correlated,
}

impl Chance {
    pub(super) fn new(probability: f64, correlation: f64, stream: &mut Stream) -> Self {
        Self { probability: encode(probability), draws: Correlated::new(correlation, stream) }
    }

    pub(super) fn certain(stream: &mut Stream) -> Self {
        Self::new(1.0, 0.0, stream)
    }

    /// True when the event happens now: with probability (p + 2^-32), never when p is zero.
    #[inline]
    pub(super) fn happens(&mut self, stream: &mut Stream) -> bool {
        self.probability != 0 && self.probability >= self.draws.draw(stream)
    }
}

/// Loss model; probabilities from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this probability (tc: `loss P [CORRELATION]`).
    Random {
        /// Probability of a loss.
        probability: f64,
        /// Correlation of successive draws.
        correlation: f64,
    },
    /// Gilbert–Elliott (tc: `loss gemodel P R 1-H 1-K`): starts in the good state; the loss is
    /// drawn in the state a packet finds, which the same packet may change for the next.
    GilbertElliott {
        /// Good to bad.
        p: f64,
        /// Bad to good.
        r: f64,
        /// Loss in the bad state.
        one_minus_h: f64,
        /// Loss in the good state.
        one_minus_k: f64,
    },
    /// Every so many-th packet (no model of netem's).
    Every {
        /// Number of packets of which the last is lost.
        packets: u32,
    },
    /// Four states (tc: `loss state P13 P31 P32 P23 P14`): 1 received in a gap, 2 received in a
    /// burst, 3 lost in a burst, 4 lost alone in a gap.
    FourState {
        /// Gap to burst loss.
        p13: f64,
        /// Burst loss to gap.
        p31: f64,
        /// Burst loss to burst reception.
        p32: f64,
        /// Burst reception to burst loss.
        p23: f64,
        /// Gap to isolated loss.
        p14: f64,
    },
}

/// States of the four-state model, named by what the last packet met.
#[derive(Clone, Copy, Debug)]
pub(super) enum Period {
    Gap,
    BurstReceived,
    BurstLost,
    GapLost,
}

/// A loss model with its state; encoded probabilities.
#[derive(Clone, Debug)]
pub(super) enum LossProcess {
    None,
    Random(Chance),
    GilbertElliott { to_bad: u32, to_good: u32, loss_bad: u32, loss_good: u32, bad: bool },
    Every { packets: u32, left: u32 },
    FourState { p13: u32, p31: u32, p32: u32, p23: u32, p14: u32, period: Period },
}

impl LossProcess {
    pub(super) fn new(loss: Loss, stream: &mut Stream) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random { probability, correlation } => {
                Self::Random(Chance::new(probability, correlation, stream))
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => Self::GilbertElliott {
                to_bad: encode(p),
                to_good: encode(r),
                loss_bad: encode(one_minus_h),
                loss_good: encode(one_minus_k),
                bad: false,
            },
            Loss::Every { packets } => Self::Every { packets, left: packets },
            Loss::FourState { p13, p31, p32, p23, p14 } => Self::FourState {
                p13: encode(p13),
                p31: encode(p31),
                p32: encode(p32),
                p23: encode(p23),
                p14: encode(p14),
                period: Period::Gap,
            },
        }
    }

    /// True when the next packet is lost.
    #[inline]
    pub(super) fn next(&mut self, stream: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Random(chance) => chance.happens(stream),
            &mut Self::GilbertElliott { to_bad, to_good, loss_bad, loss_good, ref mut bad } => {
                let (leave, loss) = if *bad { (to_good, loss_bad) } else { (to_bad, loss_good) };
                *bad ^= stream.next_u32() < leave;
                stream.next_u32() < loss
            }
            Self::Every { packets, left } => {
                *left = left.saturating_sub(1);
                let is_lost = *left == 0;
                if is_lost {
                    *left = *packets;
                }
                is_lost
            }
            &mut Self::FourState { p13, p31, p32, p23, p14, ref mut period } => {
                let draw = u64::from(stream.next_u32());
                // `first` if the draw falls in the first stretch, `second` in the one after it.
                let choose = |first: (u32, Period), second: (u32, Period), stay: Period| {
                    if draw < u64::from(first.0) {
                        first.1
                    } else if draw < u64::from(first.0) + u64::from(second.0) {
                        second.1
                    } else {
                        stay
                    }
                };
                use Period::{BurstLost, BurstReceived, Gap, GapLost};
                *period = match *period {
                    Gap => choose((p14, GapLost), (p13, BurstLost), Gap),
                    BurstReceived => choose((p23, BurstLost), (0, Gap), BurstReceived),
                    BurstLost => choose((p32, BurstReceived), (p31, Gap), BurstLost),
                    GapLost => Gap,
                };
                matches!(*period, BurstLost | GapLost)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Correlated, Loss, LossProcess, encode};
    use dragstrip_units::Stream;

    const DRAWS: u32 = 400_000;

    fn loss_sequence(loss: Loss) -> Vec<bool> {
        let mut stream = Stream::named(5, "loss");
        let mut process = LossProcess::new(loss, &mut stream);
        (0..DRAWS).map(|_| process.next(&mut stream)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
    }

    fn burst_mean(lost: &[bool]) -> f64 {
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        lost.iter().filter(|&&lost| lost).count() as f64 / bursts as f64
    }

    #[test]
    fn the_encoding_reaches_both_ends() {
        assert_eq!((encode(0.0), encode(1.0), encode(0.5)), (0, u32::MAX, 1 << 31));
    }

    #[test]
    fn certain_events_always_happen_and_impossible_ones_never() {
        let mut stream = Stream::named(1, "chance");
        let mut certain = Chance::certain(&mut stream);
        let mut never = Chance::new(0.0, 0.0, &mut stream);
        assert!((0..1000).all(|_| certain.happens(&mut stream) && !never.happens(&mut stream)));
    }

    #[test]
    fn random_loss_has_its_rate_and_no_memory() {
        let losses = loss_sequence(Loss::Random { probability: 0.05, correlation: 0.0 });
        // Standard deviation 0.03 %.
        assert!((share(&losses) - 0.05).abs() < 0.0015);
        assert!((burst_mean(&losses) - 1.0 / 0.95).abs() < 0.01);
    }

    #[test]
    fn gilbert_loses_p_over_p_plus_r_in_bursts_of_1_over_r() {
        let (p, r) = (0.01, 0.25);
        let losses =
            loss_sequence(Loss::GilbertElliott { p, r, one_minus_h: 1.0, one_minus_k: 0.0 });
        assert!((share(&losses) - p / (p + r)).abs() < 0.002);
        assert!((burst_mean(&losses) - 1.0 / r).abs() < 0.15);
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let (p, r, h, k) = (0.02, 0.1, 0.5, 0.01);
        let losses = loss_sequence(Loss::GilbertElliott { p, r, one_minus_h: h, one_minus_k: k });
        let expected = (p * h + r * k) / (p + r);
        assert!((share(&losses) - expected).abs() < 0.003);
    }

    #[test]
    fn gilbert_draws_the_loss_before_the_transition() {
        let always = Loss::GilbertElliott { p: 1.0, r: 1.0, one_minus_h: 1.0, one_minus_k: 0.0 };
        assert_eq!(loss_sequence(always)[..4], [false, true, false, true]);
    }

    #[test]
    fn every_fourth_is_lost() {
        let losses = loss_sequence(Loss::Every { packets: 4 });
        assert_eq!(losses[..9], [false, false, false, true, false, false, false, true, false]);
        assert_eq!(losses.iter().filter(|&&lost| lost).count() as u32, DRAWS / 4);
        assert!(loss_sequence(Loss::Every { packets: 1 }).iter().all(|&lost| lost));
    }

    #[test]
    fn four_states_reduce_to_gilbert_when_only_bursts_are_left() {
        let (p13, p31) = (0.01, 0.25);
        let losses = loss_sequence(Loss::FourState { p13, p31, p32: 0.0, p23: 1.0, p14: 0.0 });
        assert!((share(&losses) - p13 / (p13 + p31)).abs() < 0.002);
        assert!((burst_mean(&losses) - 1.0 / p31).abs() < 0.15);
    }

    #[test]
    fn isolated_losses_of_four_states_are_isolated() {
        let losses =
            loss_sequence(Loss::FourState { p13: 0.0, p31: 1.0, p32: 0.0, p23: 1.0, p14: 0.05 });
        // One in 1/0.05 + 1 packets: after a loss one packet gets through unasked.
        assert!((share(&losses) - 1.0 / 21.0).abs() < 0.0015);
        assert!(!losses.windows(2).any(|pair| pair[0] && pair[1]));
    }

    #[test]
    fn correlation_narrows_the_draws() {
        let mut stream = Stream::named(5, "correlated");
        let mut draws = Correlated::new(0.5, &mut stream);
        let draws: Vec<f64> =
            (0..DRAWS).map(|_| f64::from(draws.draw(&mut stream)) / f64::from(u32::MAX)).collect();
        let n = f64::from(DRAWS);
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let lag = draws.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
        assert!((mean - 0.5).abs() < 0.003);
        assert!((variance * 12.0 - 1.0 / 3.0).abs() < 0.01);
        assert!((lag / variance - 0.5).abs() < 0.01);
    }
}
