//! Reno: additive increase, multiplicative decrease.
//!
//! - **Paper**: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; RFC 5681 §3.1.
//! - **Equations**: slow start `cwnd += acked`; congestion avoidance `cwnd += acked / cwnd`;
//!   on congestion `ssthresh = cwnd / 2`.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(cwnd/2, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from RFC 5681**, as Linux does: growth counts packets delivered (cumulatively
//!   acknowledged or SACKed), not ACKs and not bytes; the reduction takes `cwnd`, not the flight size
//!   (eq. 4); the window is never inflated in recovery, the endpoint's pipe count does that work.
//! - **Beyond Linux**, if asked for: HyStart++ as the first slow start (`hystart_pp`, RFC 9406; `slow_start/hystart_pp.rs`).
//! - **Source of the details**: Linux 6.1 `tcp_cong.c` (`tcp_reno_*`).

use crate::slow_start::hystart_pp::{HYSTART_PP, HyStartPp};
use crate::{
    About, Ack, CongestionControl, Needs, Parameters, Response, Rules, Signal, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "reno",
    file: file!(),
    models: "Linux 2.2 to 6.1, tcp_cong.c",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[HYSTART_PP],
    variables: &[],
    needs: Needs::NOTHING,
};

/// Linux's Reno, with another slow start if asked for.
#[derive(Clone, Debug, Default)]
pub struct Reno {
    hystart_pp: Option<HyStartPp>,
}

impl Reno {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self { hystart_pp: parameters.switch(HYSTART_PP.name).then(HyStartPp::new) }
    }
}

/// `tcp_reno_cong_avoid`: the growth that several other algorithms fall back on.
#[inline]
pub fn grow(view: &View, window: &mut Window, acked: u32) {
    if !view.cwnd_limited(window) {
        return;
    }
    let avoidance_packets = window.beyond_slow_start(acked);
    if avoidance_packets > 0 {
        window.additive_increase(window.cwnd, avoidance_packets);
    }
}

/// `tcp_reno_ssthresh`: half the window, at least two packets.
#[inline]
#[must_use]
pub fn half(window: &Window) -> u32 {
    (window.cwnd >> 1).max(2)
}

impl CongestionControl for Reno {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        half(window)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        match &mut self.hystart_pp {
            Some(first) if window.in_slow_start() => {
                if view.cwnd_limited(window) {
                    let avoidance_packets = first.grow(view, window, acked);
                    if avoidance_packets > 0 {
                        window.additive_increase(window.cwnd, avoidance_packets);
                    }
                }
            }
            Some(_) | None => grow(view, window, acked),
        }
        Response::None
    }

    #[inline]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        if let Some(first) = &mut self.hystart_pp {
            first.acked(view, window, ack.rtt_us);
        }
    }

    /// `tcp_reno_min_cwnd`.
    fn min_cwnd(&self, window: &Window) -> u32 {
        window.ssthresh / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CwndLimited;
    use crate::testing::{OLD_RULES, view};

    /// A window's worth of packets is delivered, `per_ack` at a time.
    fn round(reno: &mut Reno, window: &mut Window, per_ack: u32) {
        let mut unacked = window.cwnd;
        while unacked > 0 {
            let acked = unacked.min(per_ack);
            let _ = reno.cong_avoid(&view(), window, acked);
            unacked -= acked;
        }
    }

    #[test]
    fn one_packet_per_window_delivered_with_delayed_acks_or_without() {
        for per_ack in [1, 2, 7] {
            let mut window = Window::new(20);
            window.ssthresh = 20;
            for expected in 21..40 {
                round(&mut Reno::default(), &mut window, per_ack);
                assert_eq!(window.cwnd, expected, "{per_ack} packets per ACK");
            }
        }
    }

    /// `tcp_reno_cong_avoid` of 2.6.27 counts ACKs: delayed ACKs halve the slope.
    #[test]
    fn counted_by_ack_delayed_acks_halve_the_growth() {
        let mut view = view();
        view.limited = CwndLimited::WithinBurst;
        view.prior_in_flight = 100;
        let mut window = Window { ssthresh: 20, ..Window::with_rules(21, &OLD_RULES) };
        let mut packets = 0;
        while window.cwnd < 22 {
            let _ = Reno::default().cong_avoid(&view, &mut window, 1);
            packets += 2;
        }
        assert_eq!(packets, 2 * (21 + 1));
    }

    #[test]
    fn half_is_given_up_but_two_packets_stay() {
        for (cwnd, ssthresh) in [(100, 50), (5, 2), (3, 2), (1, 2)] {
            assert_eq!(Reno::default().ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    /// Mathis, Semke, Mahdavi and Ott (CCR 27(3), 1997): between losses at a window of W the
    /// sawtooth delivers 3/8 W² packets in W/2 round trips.
    #[test]
    fn the_sawtooth_delivers_three_eighths_of_the_peak_squared() {
        const PEAK: u32 = 400;
        let mut window = Window::new(PEAK);
        window.ssthresh = Reno::default().ssthresh(&view(), &mut window);
        window.cwnd = window.ssthresh;
        let (mut delivered, mut rounds) = (0, 0);
        while window.cwnd < PEAK {
            delivered += window.cwnd;
            round(&mut Reno::default(), &mut window, 2);
            rounds += 1;
        }
        assert_eq!(rounds, PEAK / 2);
        let exact = 3.0 / 8.0 * f64::from(PEAK * PEAK);
        // The sum of 200..400 is W/4 below the integral.
        assert!((f64::from(delivered + PEAK / 4) - exact).abs() < 1.0, "{delivered} of {exact}");
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut view = view();
        view.is_cwnd_limited = false;
        view.max_packets_out = 6;
        let mut window = Window::new(12);
        let _ = Reno::default().cong_avoid(&view, &mut window, 6);
        assert_eq!(window.cwnd, 12, "half of it was used, not more");
        view.max_packets_out = 7;
        let _ = Reno::default().cong_avoid(&view, &mut window, 6);
        assert_eq!(window.cwnd, 18, "in slow start twice what was used is allowed");
    }
}
