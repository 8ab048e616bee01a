//! BIC: a binary search for the window at which packets were lost.
//!
//! - **Paper**: Xu, Harfoush and Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks",
//!   IEEE INFOCOM 2004.
//! - **Equations**: per round trip towards `Wmax` by `(Wmax − cwnd) / 4`, at most 16 packets; within 4 packets of it
//!   `4/20`; beyond, slowly at first, then 16 again. On congestion `Wmax = cwnd` and `ssthresh = 0.8 cwnd`; if the
//!   window had not reached the last `Wmax` again, `Wmax = 0.9 cwnd` (fast convergence).
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ towards Wmax ──cwnd ≥ Wmax──▶ beyond Wmax
//!       ▲                              ▲                              │
//!       │                              └────── loss or ECN echo ──────┘
//!       └── timeout: everything is forgotten, Wmax included ──────────┘
//! ```
//! - **Departs from the paper**, as Linux does: the search is by a quarter of the distance, not by half; the window up to
//!   which it is Reno is 14 packets; before the first loss the window grows by at least 5 % per round trip. Growth
//!   counts packets and is corrected for delayed ACKs besides, so that with one ACK for two packets it climbs twice as fast
//!   as the paper's.
//! - **Source of the details**: Linux 6.1 `tcp_bic.c`. Parameters are those of the module.

use crate::algorithms::cubic::linux::FAST_CONVERGENCE;
use crate::{
    About, Ack, CaState, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Denominator of `beta` (`BICTCP_BETA_SCALE`).
const BETA_SCALE: u32 = 1024;
/// Divisor of the distance to Wmax that gives the part covered by a round trip; also the distance that counts as there
/// (`BICTCP_B`).
const PART: u32 = 4;
/// Packets per ACK are averaged over 2^4 ACKs and counted in 1/16 (`ACK_RATIO_SHIFT`).
const RATIO_BITS: u32 = 4;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bic",
    file: file!(),
    models: "Linux 6.1, tcp_bic.c",
    module: Some("tcp_bic"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[
        FAST_CONVERGENCE,
        Parameter::new(
            "max_increment",
            16.0,
            Range::Whole(1, 1 << 16),
            "packets",
            "largest growth per round trip",
            "module parameter",
        ),
        Parameter::new(
            "low_window",
            14.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "up to this window it is Reno",
            "module parameter",
        ),
        Parameter::new(
            "beta",
            819.0,
            Range::Whole(1, 1023),
            "1/1024",
            "kept of the window on a reduction",
            "module parameter",
        ),
        Parameter::new(
            "initial_ssthresh",
            0.0,
            Range::Whole(0, 1 << 30),
            "packets",
            "threshold at the start; 0: none",
            "module parameter",
        ),
        Parameter::new(
            "smooth_part",
            20.0,
            Range::Whole(1, 1 << 16),
            "",
            "round trips for the last 4 packets below W_max and the first 4 beyond",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new(
            "w_max",
            Unit::Packets,
            "window at the last reduction, less when fast convergence gave way",
        ),
        Variable::new("cnt", Unit::Packets, "to be delivered for one packet of growth"),
    ],
    needs: Needs::NOTHING,
};

/// Linux's BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    fast_convergence: bool,
    max_increment: u32,
    low_window: u32,
    /// /1024.
    beta: u32,
    initial_ssthresh: u32,
    smooth_part: u32,

    /// One packet more per `cnt` delivered.
    cnt: u32,
    /// Wmax, packets; 0 before the first reduction.
    last_max_cwnd: u32,
    /// The window when `cnt` was last computed, and when that was in jiffies.
    last_cwnd: u32,
    last_time: u64,
    /// Packets per ACK × 16, an average over 16.
    delayed_ack_x16: u32,
}

impl Bic {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            fast_convergence: parameters.switch("fast_convergence"),
            max_increment: parameters.whole("max_increment"),
            low_window: parameters.whole("low_window"),
            beta: parameters.whole("beta"),
            initial_ssthresh: parameters.whole("initial_ssthresh"),
            smooth_part: parameters.whole("smooth_part"),
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            delayed_ack_x16: 2 << RATIO_BITS,
        }
    }

    /// `bictcp_reset`.
    fn reset(&mut self) {
        self.cnt = 0;
        self.last_max_cwnd = 0;
        self.last_cwnd = 0;
        self.last_time = 0;
        self.delayed_ack_x16 = 2 << RATIO_BITS;
    }

    /// `bictcp_update`: computes `cnt` for this ACK.
    fn update(&mut self, view: &View, cwnd: u32) {
        if self.last_cwnd == cwnd && view.jiffies_since(self.last_time) <= view.hz / 32 {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = view.jiffies();
        if cwnd <= self.low_window {
            self.cnt = cwnd;
            return;
        }
        let searched = self.search(cwnd);
        // Nothing known of the path: at least 5 % per round trip.
        let searched = if self.last_max_cwnd == 0 { searched.min(20) } else { searched };
        self.cnt = ((searched << RATIO_BITS) / self.delayed_ack_x16).max(1);
    }

    /// Packets to be delivered per packet of growth, were there an ACK for each.
    fn search(&self, cwnd: u32) -> u32 {
        let (target, steepest) = (self.last_max_cwnd, cwnd / self.max_increment);
        let slowest = cwnd.saturating_mul(self.smooth_part) / PART;
        if cwnd < target {
            let step = (target - cwnd) / PART;
            if step > self.max_increment {
                steepest
            } else if step <= 1 {
                slowest
            } else {
                cwnd / step
            }
        } else if cwnd < target + PART {
            slowest
        } else if cwnd < target + self.max_increment * (PART - 1) {
            cwnd * (PART - 1) / (cwnd - target)
        } else {
            steepest
        }
    }
}

impl CongestionControl for Bic {
    fn init(&mut self, _view: &View, window: &mut Window) {
        self.reset();
        if self.initial_ssthresh > 0 {
            window.ssthresh = self.initial_ssthresh;
        }
    }

    /// `bictcp_recalc_ssthresh`.
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        let cwnd = u64::from(window.cwnd);
        self.last_max_cwnd = if window.cwnd < self.last_max_cwnd && self.fast_convergence {
            (cwnd * u64::from(BETA_SCALE + self.beta) / u64::from(2 * BETA_SCALE)) as u32
        } else {
            window.cwnd
        };
        if window.cwnd <= self.low_window {
            (window.cwnd >> 1).max(2)
        } else {
            ((cwnd * u64::from(self.beta) / u64::from(BETA_SCALE)) as u32).max(2)
        }
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = window.beyond_slow_start_by_module(acked);
        if avoidance_packets > 0 {
            self.update(view, window.cwnd);
            window.additive_increase(self.cnt, avoidance_packets);
        }
        Response::None
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.reset();
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        if view.state == CaState::Open {
            let decay = self.delayed_ack_x16 >> RATIO_BITS;
            self.delayed_ack_x16 = self.delayed_ack_x16.saturating_add(ack.packets) - decay;
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if self.last_max_cwnd > 0 {
            tell("w_max", f64::from(self.last_max_cwnd));
        }
        if self.cnt > 0 {
            tell("cnt", f64::from(self.cnt));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, view};

    /// `cnt` at this window after a loss at `last_max`, with so many sixteenths of packets per ACK.
    fn cnt(cwnd: u32, last_max_cwnd: u32, delayed_ack_x16: u32) -> u32 {
        let mut bic = Bic { last_max_cwnd, delayed_ack_x16, ..made!(Bic) };
        bic.update(&view(), cwnd);
        bic.cnt
    }

    /// Values of the kernel's own file.
    #[test]
    fn the_search_is_the_kernels() {
        for (cwnd, last_max, expected) in [
            (100, 200, 6),
            (150, 200, 12),
            (190, 200, 95),
            (196, 200, 980),
            (200, 200, 1_000),
            (204, 200, 153),
            (220, 200, 33),
            (248, 200, 15),
            (1_000, 0, 20),
        ] {
            assert_eq!(cnt(cwnd, last_max, 16), expected, "{cwnd} of {last_max}");
        }
        assert_eq!((cnt(100, 200, 32), cnt(1_000, 2_000, 32)), (3, 31));
    }

    #[test]
    fn a_fifth_is_given_up_half_of_a_small_window() {
        for (cwnd, ssthresh) in [(100, 79), (15, 11), (14, 7), (3, 2)] {
            assert_eq!(made!(Bic).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    #[test]
    fn fast_convergence_lowers_the_target() {
        let mut bic = made!(Bic);
        assert_eq!(bic.ssthresh(&view(), &mut Window::new(100)), 79);
        assert_eq!((bic.ssthresh(&view(), &mut Window::new(80)), bic.last_max_cwnd), (63, 71));
        let mut plain = made!(Bic, &[("fast_convergence", 0.0)]);
        let _ = plain.ssthresh(&view(), &mut Window::new(100));
        let _ = plain.ssthresh(&view(), &mut Window::new(80));
        assert_eq!(plain.last_max_cwnd, 80);
    }

    /// The kernel's own file, with an ACK for two packets, window by window.
    #[test]
    fn the_window_approaches_the_target_lingers_and_leaves_it() {
        let (mut bic, mut view) = (Bic { last_max_cwnd: 100, ..made!(Bic) }, view());
        let mut window = Window { ssthresh: 79, ..Window::new(79) };
        let mut windows = Vec::new();
        for round in 1..=35 {
            view.now = at_ms(100 * round);
            for _ in 0..window.cwnd.div_ceil(2) {
                bic.acked(&view, &mut window, &ack(2, 100_000));
                let _ = bic.cong_avoid(&view, &mut window, 2);
            }
            windows.push(window.cwnd);
        }
        assert_eq!(windows[..4], [86, 91, 93, 93]);
        let reached = |cwnd| windows.iter().position(|&it| it >= cwnd).unwrap() + 1;
        assert!((20..=22).contains(&reached(100)), "{windows:?}");
        assert!((30..=32).contains(&reached(107)), "{windows:?}");
        assert_eq!(windows[34] - windows[33], 32, "{windows:?}");
    }

    /// 31 / 16 is 1: a sixteenth short of two packets per ACK is taken for two.
    #[test]
    fn with_an_ack_per_packet_the_ratio_sticks_at_31() {
        let (mut bic, mut window) = (made!(Bic), Window::new(10));
        for _ in 0..1_000 {
            bic.acked(&view(), &mut window, &ack(1, 10_000));
        }
        assert_eq!(bic.delayed_ack_x16, 31);
    }

    #[test]
    fn a_timeout_forgets_the_target() {
        let (mut bic, mut window) = (made!(Bic), Window::new(100));
        let _ = bic.ssthresh(&view(), &mut window);
        bic.set_state(&view(), &mut window, CaState::Loss);
        assert_eq!(bic.last_max_cwnd, 0);
    }
}
