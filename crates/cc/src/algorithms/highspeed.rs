//! HighSpeed TCP: the larger the window, the larger its steps and the smaller its reductions.
//!
//! - **Paper**: Floyd, "HighSpeed TCP for Large Congestion Windows", RFC 3649, 2003.
//! - **Equations**: per ACK `cwnd += a(cwnd) / cwnd`; on congestion `ssthresh = (1 − b(cwnd)) cwnd`. `a` and `b` are
//!   those of a response function of `0.12 / p^0.835` packets, tabulated (RFC 3649, appendix B): `a` 1 and `b` 1/2 up
//!   to 38 packets, `a` 72 and `b` 0.1 at 83,000.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance, in one of 72 rows of the table
//!       ▲                                  │ loss or ECN echo: ssthresh = max((1 − b) cwnd, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the RFC**, as Linux does: growth counts ACKs, not packets, so that delayed ACKs halve it; the row
//!   is looked up at an ACK in congestion avoidance, so that the first reduction, which ends slow start, is by
//!   half whatever the window; `b` is a multiple of 1/256.
//! - **Source of the details**: Linux 6.1 `tcp_highspeed.c`. The module has no parameters.

use crate::{
    About, CongestionControl, Needs, Parameters, Response, Rules, Signal, Unit, Variable, View,
    Window,
};
use dragstrip_units::Stream;

/// RFC 3649, appendix B: the largest window of a row, and what is given up there in 1/256. Row `i` grows by `i` + 1.
const TABLE: [(u32, u32); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

/// A window that a product with 128 does not overflow.
pub const CLAMP: u32 = u32::MAX / 128;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "highspeed",
    file: file!(),
    models: "Linux 6.1, tcp_highspeed.c",
    module: Some("tcp_highspeed"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[Variable::new("a", Unit::Packets, "growth per window of ACKs")],
    needs: Needs::NOTHING,
};

/// Linux's HighSpeed TCP. It has no parameters.
#[derive(Clone, Debug)]
pub struct Highspeed {
    row: usize,
}

impl Highspeed {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self { row: 0 }
    }

    /// The row of this window: its windows are above the previous row's and at most its own.
    #[inline]
    fn look_up(&mut self, cwnd: u32) {
        while self.row + 1 < TABLE.len() && cwnd > TABLE[self.row].0 {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= TABLE[self.row - 1].0 {
            self.row -= 1;
        }
    }

    fn a(&self) -> u32 {
        self.row as u32 + 1
    }
}

impl CongestionControl for Highspeed {
    fn init(&mut self, _view: &View, window: &mut Window) {
        window.clamp = window.clamp.min(CLAMP);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        let given_up = (u64::from(window.cwnd) * u64::from(TABLE[self.row].1)) >> 8;
        (window.cwnd - given_up as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        if window.in_slow_start() {
            // What is left over at the threshold is not handed on.
            window.slow_start(acked);
            return Response::None;
        }
        self.look_up(window.cwnd);
        if window.cwnd < window.clamp {
            window.cwnd_cnt += self.a();
            if window.cwnd_cnt >= window.cwnd {
                window.cwnd_cnt -= window.cwnd;
                window.cwnd += 1;
            }
        }
        Response::None
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("a", f64::from(self.a()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};

    /// At this window: growth per window of ACKs, and the threshold after a loss.
    fn at(cwnd: u32) -> (u32, u32) {
        let mut highspeed = made!(Highspeed);
        let mut window = Window { ssthresh: 2, ..Window::new(cwnd) };
        let _ = highspeed.cong_avoid(&view(), &mut window, 1);
        window.cwnd = cwnd;
        (highspeed.a(), highspeed.ssthresh(&view(), &mut window))
    }

    /// Values of the kernel's own file.
    #[test]
    fn steps_and_reductions_are_the_tables() {
        for (cwnd, expected) in [
            (38, (1, 19)),
            (39, (2, 22)),
            (100, (2, 57)),
            (222, (4, 138)),
            (500, (6, 327)),
            (1_000, (8, 676)),
            (5_000, (20, 3_790)),
            (10_000, (30, 7_969)),
            (83_000, (71, 74_895)),
        ] {
            assert_eq!(at(cwnd), expected, "{cwnd}");
        }
    }

    #[test]
    fn out_of_slow_start_half_is_given_up() {
        assert_eq!(made!(Highspeed).ssthresh(&view(), &mut Window::new(1_000)), 500);
    }

    /// The count of packets is ignored.
    #[test]
    fn ten_packets_at_1000_take_1256_acks_whatever_they_cover() {
        for packets in [1, 2] {
            let mut highspeed = made!(Highspeed);
            let mut window = Window { ssthresh: 2, ..Window::new(1_000) };
            let mut acks = 0;
            while window.cwnd < 1_010 {
                let _ = highspeed.cong_avoid(&view(), &mut window, packets);
                acks += 1;
            }
            assert_eq!(acks, 1_256);
        }
    }

    #[test]
    fn the_row_follows_the_window_down() {
        let mut highspeed = made!(Highspeed);
        for (cwnd, a) in [(5_000, 20), (38, 1), (200_000, 72), (39, 2)] {
            highspeed.look_up(cwnd);
            assert_eq!(highspeed.a(), a, "{cwnd}");
        }
    }

    /// RFC 3649, table 2: in steady state w = 0.12 / p^0.835. Between losses `a` per window and a cut by `b` give
    /// a sawtooth; its drop rate at the mean window must be near the response function's, with one ACK per packet.
    #[test]
    fn the_sawtooth_follows_the_response_function() {
        for peak in [1_000_u32, 10_000, 80_000] {
            let mut highspeed = made!(Highspeed);
            let mut window = Window { ssthresh: 2, ..Window::new(peak) };
            highspeed.look_up(peak);
            window.cwnd = highspeed.ssthresh(&view(), &mut window);
            let (mut delivered, mut sum, mut acks) = (0.0, 0.0, 0.0);
            while window.cwnd < peak {
                let _ = highspeed.cong_avoid(&view(), &mut window, 1);
                delivered += 1.0;
                sum += f64::from(window.cwnd);
                acks += 1.0;
            }
            let (mean, loss): (f64, f64) = (sum / acks, 1.0 / delivered);
            let expected = 0.12 / libm::pow(loss, 0.835);
            assert!((mean / expected - 1.0).abs() < 0.2, "{peak}: {mean} packets, not {expected}");
        }
    }
}
