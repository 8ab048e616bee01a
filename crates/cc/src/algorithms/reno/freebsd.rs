//! NewReno as in FreeBSD 9: Reno's growth, counted in bytes.
//!
//! - **Paper**: RFC 5681 for the window, RFC 3465 (appropriate byte counting) for its growth.
//! - **Equations**: slow start `cwnd += min(bytes acknowledged, L · mss)`, L = 2, and 1 while a timeout is being repaired;
//!   congestion avoidance: one segment per window of acknowledged bytes, of which an ACK counts L segments at most; on congestion
//!   `ssthresh = cwnd / 2`.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd > ssthresh──▶ congestion avoidance
//!       ▲                                  │ three duplicate ACKs: ssthresh = max(cwnd/2, 2 segments)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from Linux's Reno**, as FreeBSD does: slow start holds at the threshold; a stretch ACK counts
//!   two segments; the window grows while it does not exceed the window of the receiver, whether it is used or not.
//! - **Departs from FreeBSD 9**: an ECN echo is taken for a loss (`net.inet.tcp.ecn.enable` is 0 there).
//! - **Source of the details**: FreeBSD 9.3 `cc/cc_newreno.c`, `cc_ack_received` in `tcp_input.c`. L is the sysctl
//!   `net.inet.tcp.abc_l_var` of the host; with `net.inet.tcp.rfc3465` = 0 growth is by `mss` per ACK and `mss² / cwnd`.

use crate::bsd::{ByteCounting, ByteWindow, half};
use crate::{
    About, CongestionControl, Event, Needs, Parameters, Response, Rules, Signal, Unit, Variable,
    View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "newreno-freebsd",
    file: file!(),
    models: "FreeBSD 9.3, cc_newreno.c",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[Variable::new(
        "bytes_acked",
        Unit::Bytes,
        "acknowledged towards the next step of congestion avoidance",
    )],
    needs: Needs::NOTHING,
};

/// FreeBSD's NewReno. Its parameters are those of the host.
#[derive(Clone, Debug)]
pub struct NewrenoFreebsd {
    bytes: ByteWindow,
    growth: ByteCounting,
}

impl NewrenoFreebsd {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self { bytes: ByteWindow::default(), growth: ByteCounting::default() }
    }
}

impl CongestionControl for NewrenoFreebsd {
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.bytes.adopt(view, window);
        self.bytes.ssthresh = half(view, &self.bytes);
        self.bytes.ssthresh_in_packets(view)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.bytes.adopt(view, window);
        self.growth.count(view, &self.bytes, acked);
        self.growth.grow(view, &mut self.bytes, window, acked);
        self.bytes.export(view, window);
        Response::None
    }

    fn cwnd_event(&mut self, _view: &View, _window: &mut Window, event: Event) {
        match event {
            Event::CompleteCwr | Event::Loss => self.growth.restart(),
            Event::TxStart
            | Event::CwndRestart
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("bytes_acked", self.growth.acked as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CaState;
    use crate::testing::{made, view};

    fn start(cwnd: u32, ssthresh: u32) -> (NewrenoFreebsd, View, Window) {
        let newreno = made!(NewrenoFreebsd);
        let mut window = Window::new(cwnd);
        window.ssthresh = ssthresh;
        (newreno, view(), window)
    }

    /// RFC 3465 §2.2, L = 2.
    #[test]
    fn slow_start_counts_two_segments_of_an_ack_at_most() {
        let (mut newreno, view, mut window) = start(10, Window::INFINITE);
        for (acked, expected) in [(1, 11), (2, 13), (7, 15)] {
            let _ = newreno.cong_avoid(&view, &mut window, acked);
            assert_eq!(window.cwnd, expected);
        }
    }

    /// RFC 3465 §2.3: no more than one segment while a timeout is being repaired.
    #[test]
    fn after_a_timeout_an_ack_counts_once() {
        let (mut newreno, mut view, mut window) = start(1, 10);
        view.state = CaState::Loss;
        let _ = newreno.cong_avoid(&view, &mut window, 2);
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn delayed_acks_do_not_slow_congestion_avoidance() {
        for per_ack in [1, 2] {
            let (mut newreno, view, mut window) = start(20, 10);
            for _ in 0..20 / per_ack {
                assert_eq!(window.cwnd, 20);
                let _ = newreno.cong_avoid(&view, &mut window, per_ack);
            }
            assert_eq!(window.cwnd, 21, "{per_ack} segments per ACK");
        }
    }

    #[test]
    fn without_byte_counting_an_ack_counts_once() {
        let (mut newreno, mut view, mut window) = start(20, 10);
        view.abc_limit = 0;
        for _ in 0..10 {
            let _ = newreno.cong_avoid(&view, &mut window, 2);
        }
        assert_eq!(window.cwnd, 20, "ten of the twenty ACKs or so that a step takes");
        for _ in 0..11 {
            let _ = newreno.cong_avoid(&view, &mut window, 2);
        }
        assert_eq!(window.cwnd, 21);
    }

    #[test]
    fn a_window_beyond_the_receiver_s_does_not_grow() {
        let (mut newreno, mut view, mut window) = start(20, Window::INFINITE);
        view.is_cwnd_limited = false;
        let _ = newreno.cong_avoid(&view, &mut window, 2);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn half_is_given_up_but_two_segments_stay() {
        for (cwnd, ssthresh) in [(100, 50), (7, 3), (3, 2), (1, 2)] {
            let (mut newreno, view, mut window) = start(cwnd, 5);
            assert_eq!(newreno.ssthresh(&view, &mut window), ssthresh);
        }
    }
}
