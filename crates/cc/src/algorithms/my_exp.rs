//! MyExp: one sentence that says what it does differently.
//!
//! - **Paper**: author, title, year; section.
//! - **Equations**: slow start `cwnd += acked`; congestion avoidance `cwnd += acked / cwnd`;
//!   on congestion `ssthresh = cwnd / 2`.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(cwnd/2, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the paper**: where, and why.

use super::reno;
use crate::{About, CongestionControl, Needs, Parameters, Response, Rules, Signal, View, Window};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "my-exp",
    file: file!(),
    models: "none",
    signal: Signal::Loss,
    parameters: &[],
    variables: &[],
    needs: Needs::NOTHING,
};

/// MyExp's state. Reno needs none.
#[derive(Clone, Debug)]
pub struct MyExp;

impl MyExp {
    /// The parameters are those of the row; the rules are the kernel's; the stream is the algorithm's own source of chance.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self
    }
}

impl CongestionControl for MyExp {
    /// A loss or an ECN echo: how large may the window stay? At least two packets.
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        reno::half(window)
    }

    /// `acked` packets were delivered: how does the window grow?
    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        reno::grow(view, window, acked);
        Response::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, options, view};

    #[test]
    fn congestion_halves_the_window_but_leaves_two_packets() {
        for (cwnd, ssthresh) in [(100, 50), (5, 2), (1, 2)] {
            assert_eq!(made!(MyExp).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    #[test]
    fn slow_start_doubles_the_window_in_a_round_trip() {
        let mut window = Window::new(10);
        assert_eq!(made!(MyExp).cong_avoid(&view(), &mut window, 10), Response::None);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn congestion_avoidance_adds_a_packet_in_a_round_trip() {
        let mut window = Window::new(10);
        window.ssthresh = 10;
        assert_eq!(made!(MyExp).cong_avoid(&view(), &mut window, 10), Response::None);
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn an_unknown_parameter_is_refused() {
        assert!(Parameters::new(&ABOUT, &options(&[("colour", 1.0)])).is_err());
    }
}
