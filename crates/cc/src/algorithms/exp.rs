//! Exp: Reno with a faster slow start and a gentler reduction. The worked example for authors.
//!
//! - **Paper**: none. A course exercise asked for a kernel module that differs from Reno in two
//!   numbers: "the slow-start growth factor is 3 instead of 2", and the threshold after congestion is
//!   three quarters of the window instead of a half.
//! - **Equations**: slow start `cwnd += (factor − 1) · acked`, that is × `factor` per round trip;
//!   congestion avoidance `cwnd += acked / cwnd`; on congestion `ssthresh = ¾ cwnd`.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(¾ cwnd, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the original**: its source is not public, so what it counted in slow start is
//!   not known. Here it is packets delivered, as everywhere in Linux since 3.18; on the profile of 2.6.27,
//!   whose Reno counts ACKs, it is `factor` − 1 packets per ACK.
//! - **Parameters**: `factor` (3, the exercise's), whole, 2 to 16; 2 is Reno's slow start.
//!
//! Notes for a reader who wants to write an algorithm: the options are checked once, in `new`;
//! the state is the struct; every hook takes the read-only [`View`] and the [`Window`] it may change;
//! only what differs from Reno is written here. `ssthresh` and `cong_avoid` are the two hooks every
//! algorithm must have. Then add a line to `registry.rs`: the generic model in `crates/cc/tests/model.rs` will
//! drive it through everything a connection can do to it.

use crate::{
    About, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules, Signal, View,
    Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "exp",
    file: file!(),
    models: "none: an exercise",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[Parameter::new(
        "factor",
        3.0,
        Range::Whole(2, 16),
        "",
        "growth of the window per round trip of slow start; 2 is Reno's",
        "the exercise",
    )],
    variables: &[],
    needs: Needs::NOTHING,
};

/// Reno with × `factor` slow start and ¾ reductions.
#[derive(Clone, Debug)]
pub struct Exp {
    /// Packets gained per packet delivered in slow start: `factor` − 1.
    gain: u32,
}

impl Exp {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self { gain: parameters.whole("factor") - 1 }
    }
}

impl CongestionControl for Exp {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        ((u64::from(window.cwnd) * 3 / 4) as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = if window.in_slow_start() {
            // What does not fit below the threshold comes back as growth; count it as packets.
            window.slow_start(acked * self.gain) / self.gain
        } else {
            acked
        };
        if avoidance_packets > 0 {
            window.additive_increase(window.cwnd, avoidance_packets);
        }
        Response::None
    }

    /// As Reno's.
    fn min_cwnd(&self, window: &Window) -> u32 {
        window.ssthresh / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, options, view};

    fn exp(pairs: &[(&str, f64)]) -> Exp {
        made!(Exp, pairs)
    }

    #[test]
    fn slow_start_triples_the_window_every_round_trip() {
        let mut exp = exp(&[]);
        let mut window = Window::new(10);
        for expected in [30, 90, 270] {
            for _ in 0..window.cwnd {
                let _ = exp.cong_avoid(&view(), &mut window, 1);
            }
            assert_eq!(window.cwnd, expected);
        }
    }

    #[test]
    fn with_factor_2_it_starts_like_reno() {
        let mut window = Window::new(10);
        let _ = exp(&[("factor", 2.0)]).cong_avoid(&view(), &mut window, 10);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn a_quarter_is_given_up_on_congestion() {
        for (cwnd, ssthresh) in [(100, 75), (10, 7), (7, 5), (2, 2), (1, 2)] {
            assert_eq!(exp(&[]).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    #[test]
    fn beyond_the_threshold_it_is_reno() {
        let mut window = Window::new(10);
        window.ssthresh = 14;
        // Two packets fill the room of four; the other six count towards the next.
        let _ = exp(&[]).cong_avoid(&view(), &mut window, 8);
        assert_eq!((window.cwnd, window.cwnd_cnt), (14, 6));
    }

    #[test]
    fn fractions_are_refused() {
        assert!(Parameters::new(&ABOUT, &options(&[("factor", 2.5)])).is_err());
    }
}
