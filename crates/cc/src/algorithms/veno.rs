//! Veno: Reno that takes a loss with a short queue for one by chance.
//!
//! - **Paper**: Fu and Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks", IEEE JSAC
//!   21(2), 2003.
//! - **Equations**: `N = cwnd · (RTT − baseRTT) / RTT`, the packets queued in the network. `N < 3`: growth is Reno's, and a
//!   loss leaves `4/5 cwnd`. Otherwise one packet per two windows, and a loss leaves half.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance: at full speed while N < 3, at half beyond
//!       ▲                                  │ loss or ECN echo: 4/5 or 1/2; Reno until Open again
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the paper**, as Linux does: N is computed at each ACK from the least RTT since the last one that
//!   came this far, not from a round's; N is kept over recoveries and idle times.
//! - **Source of the details**: Linux 6.1 `tcp_veno.c`. The module has no parameters.

use crate::algorithms::reno;
use crate::algorithms::vegas::rounds::NO_RTT;
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Parameters, Response, Rules, Signal,
    Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// With so many half packets queued the path is congested (`beta`).
const CONGESTED_X2: u32 = 6;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "veno",
    file: file!(),
    models: "Linux 6.1, tcp_veno.c",
    module: Some("tcp_veno"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[
        Variable::new(
            "base_rtt",
            Unit::Nanoseconds,
            "least RTT since the connection began or was last idle",
        ),
        Variable::new("queued", Unit::Packets, "in the network, as the last ACK had it"),
    ],
    needs: Needs::NOTHING,
};

/// Linux's Veno. It has no parameters.
#[derive(Clone, Debug)]
pub struct Veno {
    /// Nothing is wrong: otherwise it is Reno.
    open: bool,
    /// µs.
    base_rtt_us: u32,
    /// Least RTT since the last ACK that was judged, µs.
    min_rtt_us: u32,
    /// RTT samples, in 16 bits; never reset.
    samples: u16,
    /// Beyond the limit: the next step is taken, not left out.
    step: bool,
    /// Half packets queued.
    queued_x2: u32,
}

impl Veno {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            open: true,
            base_rtt_us: NO_RTT,
            min_rtt_us: NO_RTT,
            samples: 0,
            step: true,
            queued_x2: 0,
        }
    }

    fn judge(&mut self, window: &mut Window, acked: u32) {
        let twice = u64::from(window.cwnd) << 1;
        let target = twice * u64::from(self.base_rtt_us) / u64::from(self.min_rtt_us);
        self.queued_x2 = (twice as u32).wrapping_sub(target as u32);
        let avoidance_packets = window.beyond_slow_start_by_module(acked);
        if avoidance_packets > 0 {
            self.avoid(window, avoidance_packets);
        }
        window.cwnd = window.cwnd.max(2).min(window.clamp);
    }

    /// Congestion avoidance, with the queue known.
    fn avoid(&mut self, window: &mut Window, acked: u32) {
        if self.queued_x2 < CONGESTED_X2 {
            window.additive_increase(window.cwnd, acked);
        } else if window.cwnd_cnt >= window.cwnd {
            if self.step && window.cwnd < window.clamp {
                window.cwnd += 1;
                self.step = false;
            } else {
                self.step = true;
            }
            window.cwnd_cnt = 0;
        } else {
            window.cwnd_cnt += acked;
        }
    }
}

impl CongestionControl for Veno {
    fn init(&mut self, _view: &View, _window: &mut Window) {
        self.base_rtt_us = NO_RTT;
        self.min_rtt_us = NO_RTT;
        self.step = true;
        self.open = true;
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        if self.queued_x2 < CONGESTED_X2 {
            ((u64::from(window.cwnd) * 4 / 5) as u32).max(2)
        } else {
            reno::half(window)
        }
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !self.open {
            reno::grow(view, window, acked);
            return Response::None;
        }
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        // With one or two samples there may be none without a delayed ACK.
        if self.samples <= 2 {
            reno::grow(view, window, acked);
        } else {
            self.judge(window, acked);
        }
        self.min_rtt_us = NO_RTT;
        Response::None
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        self.open = new == CaState::Open;
        if self.open {
            self.min_rtt_us = NO_RTT;
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        if matches!(event, Event::TxStart | Event::CwndRestart) {
            self.init(view, window);
        }
    }

    #[inline]
    fn acked(&mut self, _view: &View, _window: &mut Window, ack: &Ack) {
        let Some(rtt_us) = ack.rtt_us else { return };
        // Never zero: it is divided by.
        let rtt_us = rtt_us.min(NO_RTT - 2) + 1;
        self.base_rtt_us = self.base_rtt_us.min(rtt_us);
        self.min_rtt_us = self.min_rtt_us.min(rtt_us);
        self.samples = self.samples.wrapping_add(1);
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if self.base_rtt_us != NO_RTT {
            tell("base_rtt", f64::from(self.base_rtt_us) * 1e3);
        }
        tell("queued", f64::from(self.queued_x2) / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, made, view};

    /// After three samples of `base_us`, an ACK that took `rtt_us`, in congestion avoidance.
    fn judged(cwnd: u32, base_us: u32, rtt_us: u32) -> (Veno, Window) {
        let (mut veno, mut window) = (made!(Veno), Window { ssthresh: 2, ..Window::new(cwnd) });
        for _ in 0..3 {
            veno.acked(&view(), &mut window, &ack(1, base_us - 1));
        }
        veno.min_rtt_us = NO_RTT;
        veno.acked(&view(), &mut window, &ack(1, rtt_us - 1));
        let _ = veno.cong_avoid(&view(), &mut window, 1);
        window.cwnd = cwnd;
        (veno, window)
    }

    /// Values of the kernel's own file: half packets queued, and the threshold after a loss.
    #[test]
    fn a_loss_with_a_short_queue_costs_a_fifth() {
        for (cwnd, base_us, rtt_us, expected) in [
            (50, 40_000, 42_000, (5, 40)),
            (50, 40_000, 42_500, (6, 25)),
            (100, 100_000, 103_000, (6, 50)),
        ] {
            let (mut veno, mut window) = judged(cwnd, base_us, rtt_us);
            assert_eq!((veno.queued_x2, veno.ssthresh(&view(), &mut window)), expected);
        }
    }

    /// Values of the kernel's own file: window 10, a long queue, an ACK for two packets; steps at which ACK.
    #[test]
    fn with_a_long_queue_it_grows_by_one_per_two_windows() {
        let (mut veno, mut window) = (made!(Veno), Window { ssthresh: 2, ..Window::new(10) });
        veno.queued_x2 = 20;
        let mut steps = Vec::new();
        for number in 1..=50 {
            let before = window.cwnd;
            veno.avoid(&mut window, 2);
            if window.cwnd > before {
                steps.push(number);
            }
        }
        assert_eq!(steps, [6, 20, 34, 50]);
    }

    #[test]
    fn while_something_is_wrong_it_is_reno_and_keeps_the_queue() {
        let (mut veno, mut window) = judged(50, 40_000, 80_000);
        veno.set_state(&view(), &mut window, CaState::Disorder);
        let _ = veno.cong_avoid(&view(), &mut window, 50);
        assert_eq!((window.cwnd, veno.ssthresh(&view(), &mut window)), (51, 25));
    }

    #[test]
    fn an_idle_time_forgets_the_base_rtt() {
        let (mut veno, mut window) = judged(50, 40_000, 80_000);
        veno.cwnd_event(&view(), &mut window, Event::CwndRestart);
        assert_eq!((veno.base_rtt_us, veno.samples), (NO_RTT, 4));
    }
}
