//! Illinois: losses say when to reduce, delays say by how much and how fast to grow again.
//!
//! - **Paper**: Liu, Başar and Srikant, "TCP-Illinois: A Loss- and Delay-Based Congestion Control Algorithm for
//!   High-Speed Networks", VALUETOOLS 2006.
//! - **Equations**: per window `cwnd += α(d)`, on congestion `ssthresh = (1 − β(d)) cwnd`, where d is the mean queueing
//!   delay of the last round and dm the largest seen: α falls from 10 at d ≤ dm/100 to 0.3 at dm, as
//!   `κ1 / (κ2 + d)`; β rises from 1/8 at d ≤ dm/10 to 1/2 at 8 dm/10.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max((1 − β) cwnd, 2)
//!       └── timeout: cwnd = 1, α 1, β 1/2 ─┘
//! ```
//! - **Departs from the paper**, as Linux does: below 15 packets α is 1 and β 1/2; α goes back to 10 only after five
//!   rounds with a short queue; what a step does not use is lost; the largest RTT never ages.
//! - **Source of the details**: Linux 6.1 `tcp_illinois.c`. Parameters are those of the module.

use crate::algorithms::vegas::rounds::NO_RTT;
use crate::{
    About, Ack, CaState, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// α is counted in 1/128: one, the least (0.3) and the largest (10).
const ALPHA: u32 = 128;
const ALPHA_MIN: u32 = 38;
const ALPHA_MAX: u32 = 10 * ALPHA;
/// β is counted in 1/64: the least (1/8) and the largest (1/2).
const BETA_MIN: u32 = 8;
const BETA_MAX: u32 = 32;
/// Longer RTTs count as this, µs: products with `ALPHA_MAX` fit into 32 bits.
const RTT_MAX: u32 = u32::MAX / ALPHA_MAX;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "illinois",
    file: file!(),
    models: "Linux 6.1, tcp_illinois.c",
    module: Some("tcp_illinois"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[
        Parameter::new(
            "win_thresh",
            15.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "below this window it is Reno",
            "module parameter",
        ),
        Parameter::new(
            "theta",
            5.0,
            Range::Whole(0, 1 << 16),
            "round trips",
            "with a short queue before growth is fastest again",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new("alpha", Unit::Packets, "growth per window"),
        Variable::new("beta", Unit::Ratio, "to be given up of the window at the next reduction"),
        Variable::new("base_rtt", Unit::Nanoseconds, "least RTT"),
        Variable::new("max_rtt", Unit::Nanoseconds, "largest RTT"),
    ],
    needs: Needs { rtt_stamps: true, ..Needs::NOTHING },
};

/// Linux's Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    win_thresh: u32,
    theta: u32,
    /// /128.
    alpha: u32,
    /// /64.
    beta: u32,
    /// µs.
    base_rtt_us: u32,
    max_rtt_us: u32,
    /// RTT samples of this round, and their sum in µs.
    samples: u16,
    sum_us: u64,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    /// Packets of the last ACK.
    packets: u32,
    /// The queue was long since α was last at its largest; rounds with a short one since.
    was_long: bool,
    short_rounds: u32,
}

impl Illinois {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            win_thresh: parameters.whole("win_thresh"),
            theta: parameters.whole("theta"),
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt_us: NO_RTT,
            max_rtt_us: 0,
            samples: 0,
            sum_us: 0,
            round_end: 0,
            packets: 0,
            was_long: false,
            short_rounds: 0,
        }
    }

    /// `rtt_reset`.
    fn begin_round(&mut self, view: &View) {
        self.round_end = view.snd_nxt;
        (self.samples, self.sum_us) = (0, 0);
    }

    /// `update_params`: the round that ends gives α and β.
    fn learn(&mut self, view: &View, window: &Window) {
        if window.cwnd < self.win_thresh {
            (self.alpha, self.beta) = (ALPHA, BETA_MAX);
        } else if self.samples > 0 {
            let largest = self.max_rtt_us - self.base_rtt_us;
            let mean = (self.sum_us / u64::from(self.samples)) as u32 - self.base_rtt_us;
            self.alpha = self.next_alpha(mean, largest);
            self.beta = next_beta(mean, largest);
        }
        self.begin_round(view);
    }

    fn next_alpha(&mut self, mean: u32, largest: u32) -> u32 {
        let short = largest / 100;
        if mean <= short {
            if !self.was_long {
                return ALPHA_MAX;
            }
            self.short_rounds += 1;
            if self.short_rounds < self.theta {
                return self.alpha;
            }
            (self.was_long, self.short_rounds) = (false, 0);
            return ALPHA_MAX;
        }
        self.was_long = true;
        let (largest, mean) = (largest - short, mean - short);
        let slope = (mean * (ALPHA_MAX - ALPHA_MIN)) / ALPHA_MIN;
        largest * ALPHA_MAX / (largest + slope)
    }
}

fn next_beta(mean: u32, largest: u32) -> u32 {
    let (short, long) = (largest / 10, 8 * largest / 10);
    if mean <= short {
        BETA_MIN
    } else if mean >= long || long <= short {
        BETA_MAX
    } else {
        (BETA_MIN * long - BETA_MAX * short + (BETA_MAX - BETA_MIN) * mean) / (long - short)
    }
}

impl CongestionControl for Illinois {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.begin_round(view);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        let given_up = (u64::from(window.cwnd) * u64::from(self.beta)) >> 6;
        (window.cwnd - given_up as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if view.snd_una > self.round_end {
            self.learn(view, window);
        }
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        if window.in_slow_start() {
            // What is left over at the threshold is not handed on.
            window.slow_start(acked);
            return Response::None;
        }
        window.cwnd_cnt = window.cwnd_cnt.saturating_add(self.packets);
        self.packets = 1;
        let steps = window.cwnd_cnt.wrapping_mul(self.alpha) / ALPHA;
        if steps >= window.cwnd {
            window.cwnd = (window.cwnd + steps / window.cwnd).min(window.clamp);
            window.cwnd_cnt = 0;
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            (self.alpha, self.beta) = (ALPHA, BETA_MAX);
            (self.was_long, self.short_rounds) = (false, 0);
            self.begin_round(view);
        }
    }

    #[inline]
    fn acked(&mut self, _view: &View, _window: &mut Window, ack: &Ack) {
        self.packets = ack.packets;
        let Some(rtt_us) = ack.rtt_us else { return };
        let rtt_us = rtt_us.min(RTT_MAX);
        self.base_rtt_us = self.base_rtt_us.min(rtt_us);
        self.max_rtt_us = self.max_rtt_us.max(rtt_us);
        self.samples = self.samples.saturating_add(1);
        self.sum_us += u64::from(rtt_us);
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("alpha", f64::from(self.alpha) / f64::from(ALPHA));
        tell("beta", f64::from(self.beta) / 64.0);
        if self.base_rtt_us != NO_RTT {
            tell("base_rtt", f64::from(self.base_rtt_us) * 1e3);
            tell("max_rtt", f64::from(self.max_rtt_us) * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};

    /// Values of the kernel's own file: the largest delay is 100 ms.
    #[test]
    fn growth_falls_and_reductions_rise_with_the_delay() {
        for (mean_ms, alpha, beta) in [
            (1, 1_280, 8),
            (5, 551, 8),
            (10, 322, 8),
            (20, 176, 11),
            (50, 74, 21),
            (80, 47, 32),
            (100, 38, 32),
        ] {
            let mut illinois = made!(Illinois);
            assert_eq!(illinois.next_alpha(1_000 * mean_ms, 100_000), alpha, "{mean_ms} ms");
            assert_eq!(next_beta(1_000 * mean_ms, 100_000), beta, "{mean_ms} ms");
        }
    }

    #[test]
    fn after_a_long_queue_growth_is_fastest_only_after_five_short_ones() {
        let mut illinois = made!(Illinois);
        illinois.alpha = illinois.next_alpha(50_000, 100_000);
        for _ in 0..4 {
            assert_eq!(illinois.next_alpha(1_000, 100_000), 74);
        }
        assert_eq!(illinois.next_alpha(1_000, 100_000), ALPHA_MAX);
    }

    #[test]
    fn an_eighth_to_a_half_is_given_up() {
        for (beta, cwnd, ssthresh) in [(8, 100, 88), (32, 100, 50), (32, 3, 2), (32, 1, 2)] {
            let mut illinois = Illinois { beta, ..made!(Illinois) };
            assert_eq!(illinois.ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    /// Values of the kernel's own file: a window of 100, an ACK for two packets.
    #[test]
    fn what_a_step_does_not_use_is_lost() {
        for (alpha, expected) in [(1_280, 5), (38, 169)] {
            let mut illinois = Illinois { alpha, ..made!(Illinois) };
            let mut window = Window { ssthresh: 2, ..Window::new(100) };
            let mut acks = 0;
            while window.cwnd == 100 {
                illinois.packets = 2;
                let _ = illinois.cong_avoid(&view(), &mut window, 2);
                acks += 1;
            }
            assert_eq!((window.cwnd, acks), (101, expected));
        }
    }

    #[test]
    fn a_small_window_is_renos() {
        let mut illinois = made!(Illinois);
        illinois.learn(&view(), &Window::new(14));
        assert_eq!((illinois.alpha, illinois.beta), (128, 32));
    }
}
