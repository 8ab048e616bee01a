//! Scalable TCP: grows by a share of the window, so that recovery takes the same time at any rate.
//!
//! - **Paper**: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM CCR 33(2), 2003.
//! - **Equations**: congestion avoidance `cwnd += 0.01` per packet delivered; on congestion
//!   `ssthresh = 7/8 cwnd`. Between losses `ln(8/7) / ln(1.01)` = 13.4 round trips pass, whatever the rate.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(7/8 cwnd, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the paper**, as Linux does: below a window of 100 it grows as Reno does, one packet per window,
//!   where the paper switches at 16 and Linux before 4.16 at 50.
//! - **Source of the details**: Linux 6.1 `tcp_scalable.c`. The module has no parameters.

use crate::{About, CongestionControl, Needs, Parameters, Response, Rules, Signal, View, Window};
use dragstrip_units::Stream;

/// Packets delivered per packet of growth, at most (`TCP_SCALABLE_AI_CNT`).
pub const STEP: u32 = 100;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "scalable",
    file: file!(),
    models: "Linux 6.1, tcp_scalable.c",
    module: Some("tcp_scalable"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[],
    needs: Needs::NOTHING,
};

/// Linux's Scalable TCP. It has no parameters and no state.
#[derive(Clone, Debug)]
pub struct Scalable;

impl Scalable {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self
    }
}

impl CongestionControl for Scalable {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        (window.cwnd - (window.cwnd >> 3)).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = window.beyond_slow_start_by_module(acked);
        if avoidance_packets > 0 {
            window.additive_increase(window.cwnd.min(STEP), avoidance_packets);
        }
        Response::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};

    #[test]
    fn an_eighth_is_given_up_but_two_packets_stay() {
        for (cwnd, ssthresh) in [(1000, 875), (100, 88), (8, 7), (7, 7), (1, 2)] {
            assert_eq!(made!(Scalable).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    #[test]
    fn a_large_window_grows_by_a_hundredth_per_round_trip() {
        let mut window = Window { ssthresh: 2, ..Window::new(1000) };
        for _ in 0..500 {
            let _ = made!(Scalable).cong_avoid(&view(), &mut window, 2);
        }
        assert_eq!(window.cwnd, 1010);
    }

    #[test]
    fn a_small_window_grows_by_one_per_round_trip() {
        let mut window = Window { ssthresh: 2, ..Window::new(50) };
        let _ = made!(Scalable).cong_avoid(&view(), &mut window, 50);
        assert_eq!(window.cwnd, 51);
    }

    /// ln(8/7) / ln(1.01) round trips, from any window.
    #[test]
    fn it_recovers_in_thirteen_round_trips_at_any_rate() {
        for peak in [2_000, 200_000] {
            let mut window = Window::new(peak);
            window.ssthresh = Scalable.ssthresh(&view(), &mut window);
            window.cwnd = window.ssthresh;
            let mut rounds = 0;
            while window.cwnd < peak {
                let delivered = window.cwnd;
                let _ = Scalable.cong_avoid(&view(), &mut window, delivered);
                rounds += 1;
            }
            assert_eq!(rounds, 14, "{peak}");
        }
    }
}
