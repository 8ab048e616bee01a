//! Hybla: grows over a long path as Reno does over one of 25 ms.
//!
//! - **Paper**: Caini and Firrincieli, "TCP Hybla: a TCP Enhancement for Heterogeneous Networks", International Journal
//!   of Satellite Communications and Networking 22(5), 2004.
//! - **Equations**: `ρ = max(RTT / 25 ms, 1)`. Per ACK in slow start `cwnd += 2^ρ − 1`, in congestion avoidance
//!   `cwnd += ρ² / cwnd`; on congestion `ssthresh = cwnd / 2`.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(cwnd/2, 2); Reno until Open again
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the paper**, as Linux does: the first window is ρ packets, one on a short path; ρ follows the
//!   least smoothed RTT and only falls; `2^ρ` is cut at `2^16` and the window at 65535; where growth is
//!   below 1/128 of a packet per ACK, the rest is lost. Neither pacing nor bandwidth estimation.
//! - **Source of the details**: Linux 6.1 `tcp_hybla.c`. The parameter is the module's.

use crate::algorithms::reno;
use crate::{
    About, CaState, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// The largest window.
const CLAMP: u32 = 65_535;
/// Growth is counted in 1/128 packet.
const PART: u32 = 128;
/// 2^(i/8) in 1/128.
const ROOTS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "hybla",
    file: file!(),
    models: "Linux 6.1, tcp_hybla.c",
    module: Some("tcp_hybla"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[Parameter::new(
        "rtt0",
        25.0,
        Range::Whole(1, 1_000),
        "ms",
        "RTT whose Reno is imitated",
        "module parameter",
    )],
    variables: &[Variable::new("rho", Unit::Ratio, "least smoothed RTT over rtt0, at least 1")],
    needs: Needs::NOTHING,
};

/// Linux's Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    rtt0_ms: u32,
    /// Nothing is wrong: otherwise it is Reno.
    open: bool,
    /// ρ in 1/8.
    rho_x8: u32,
    /// The smoothed RTT that ρ is of, 1/8 µs.
    least_srtt_us_x8: u32,
    /// Parts of the next packet of growth.
    parts: u32,
}

impl Hybla {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            rtt0_ms: parameters.whole("rtt0"),
            open: true,
            rho_x8: 8,
            least_srtt_us_x8: 0,
            parts: 0,
        }
    }

    /// `hybla_recalc_param`.
    fn learn(&mut self, view: &View) {
        self.rho_x8 = (view.srtt_us_x8 / (self.rtt0_ms * 1_000)).max(8);
        self.least_srtt_us_x8 = view.srtt_us_x8;
    }

    /// ρ² in 1/128.
    fn square(&self) -> u32 {
        self.rho_x8.wrapping_mul(self.rho_x8) << 1
    }

    /// 2^ρ − 1 in 1/128.
    fn in_slow_start(&self) -> u32 {
        (ROOTS[(self.rho_x8 % 8) as usize] << (self.rho_x8 / 8).min(16)) - PART
    }
}

impl CongestionControl for Hybla {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.learn(view);
        window.clamp = CLAMP;
        window.cwnd = self.rho_x8 / 8;
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        reno::half(window)
    }

    /// Each ACK counts once, whatever it covers.
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if view.srtt_us_x8 < self.least_srtt_us_x8 {
            self.learn(view);
        }
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        if !self.open {
            reno::grow(view, window, acked);
            return Response::None;
        }
        let starting = window.cwnd < window.ssthresh;
        let growth = if starting {
            self.in_slow_start()
        } else {
            let growth = self.square() / window.cwnd;
            if growth < PART {
                window.cwnd_cnt += 1;
            }
            growth
        };
        window.cwnd = window.cwnd.saturating_add(growth / PART);
        self.parts += growth % PART;
        if self.parts >= PART {
            window.cwnd = window.cwnd.saturating_add(1);
            self.parts -= PART;
            window.cwnd_cnt = 0;
        }
        if growth == 0 && window.cwnd_cnt >= window.cwnd {
            window.cwnd += 1;
            window.cwnd_cnt = 0;
        }
        if starting {
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
        window.cwnd = window.cwnd.min(window.clamp);
        Response::None
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        self.open = new == CaState::Open;
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("rho", f64::from(self.rho_x8) / 8.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};

    fn over(rtt_ms: u32) -> (Hybla, View, Window) {
        let (mut hybla, mut window) = (made!(Hybla), Window::new(10));
        let view = View { srtt_us_x8: 8_000 * rtt_ms, ..view() };
        hybla.init(&view, &mut window);
        (hybla, view, window)
    }

    /// Values of the kernel's own file.
    #[test]
    fn rho_and_its_square_are_the_kernels() {
        for (rtt_ms, rho_x8, square) in [
            (10, 8, 128),
            (50, 16, 512),
            (60, 19, 722),
            (100, 32, 2_048),
            (125, 40, 3_200),
            (250, 80, 12_800),
        ] {
            let (hybla, _, window) = over(rtt_ms);
            assert_eq!((hybla.rho_x8, hybla.square()), (rho_x8, square), "{rtt_ms} ms");
            assert_eq!((window.cwnd, window.clamp), (rho_x8 / 8, 65_535), "{rtt_ms} ms");
        }
    }

    #[test]
    fn slow_start_is_steeper_over_a_longer_path() {
        for (rtt_ms, windows) in [(25, [2, 3]), (125, [36, 67]), (250, [1_033, 2_056])] {
            let (mut hybla, view, mut window) = over(rtt_ms);
            for cwnd in windows {
                let _ = hybla.cong_avoid(&view, &mut window, 1);
                assert_eq!(window.cwnd, cwnd, "{rtt_ms} ms");
            }
        }
    }

    /// ACKs per packet of growth at a window of 100. The kernel's own file.
    #[test]
    fn congestion_avoidance_has_the_slope_of_a_short_path() {
        for (rtt_ms, expected) in [(25, 128), (50, 26), (100, 7), (125, 4), (250, 1)] {
            let (mut hybla, view, mut window) = over(rtt_ms);
            (window.cwnd, window.ssthresh) = (100, 2);
            let mut acks = 0;
            while window.cwnd == 100 {
                let _ = hybla.cong_avoid(&view, &mut window, 2);
                acks += 1;
            }
            assert_eq!(acks, expected, "{rtt_ms} ms");
        }
    }

    #[test]
    fn while_something_is_wrong_it_is_reno() {
        let (mut hybla, view, mut window) = over(250);
        window.ssthresh = 2;
        hybla.set_state(&view, &mut window, CaState::Disorder);
        let _ = hybla.cong_avoid(&view, &mut window, 10);
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn rho_only_falls() {
        let (mut hybla, mut view, mut window) = over(100);
        for (rtt_ms, rho_x8) in [(200, 32), (50, 16), (100, 16)] {
            view.srtt_us_x8 = 8_000 * rtt_ms;
            let _ = hybla.cong_avoid(&view, &mut window, 1);
            assert_eq!(hybla.rho_x8, rho_x8);
        }
    }
}
