//! Vegas as in FreeBSD 9, on the RTT measurements of `h_ertt`.
//!
//! - **Paper**: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
//!   IEEE JSAC 13(8), 1995.
//! - **Equations**: once per round trip, `diff = (cwnd / minRTT − sent / RTT) · minRTT` in segments, where `sent` is what
//!   left from the marked segment on until it was acknowledged, RTT is the marked segment's, and rates are whole bytes
//!   per tick; `diff < alpha`: `cwnd += 1`; `diff > beta`: `cwnd −= 1`; otherwise leave it.
//! - **States**:
//!
//! ```text
//!   slow start, every other round ──diff > beta: ssthresh = cwnd──▶ steering (1..3 queued)
//!       ▲                                                               │
//!       └──────────── timeout: cwnd = 1 ───────── loss: NewReno's half ─┘
//! ```
//! - **Departs from Linux's Vegas** (`vegas`), as FreeBSD does: slow start grows every other round trip; the queue is compared
//!   with what was sent in the round, so that a receiver that delays its ACKs makes the window look a segment
//!   or two less used than it is; times are whole kernel ticks, plus one.
//! - **Departs from FreeBSD 9**: as `cdg-freebsd`'s measurement does; an ECN echo is taken for a loss.
//! - **Source of the details**: FreeBSD 9.3 `cc/cc_vegas.c`, 9.0 `khelp/h_ertt.c`. Parameters are the sysctls
//!   `net.inet.tcp.cc.vegas.*` in segments, `alpha` 1 and `beta` 3, and `tick_ms` as for `cdg-freebsd`.

use crate::bsd::{ByteCounting, ByteWindow, Ertt, half};
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Parameter, Parameters, Range, Response,
    Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "vegas-freebsd",
    file: file!(),
    models: "FreeBSD 9.3, cc_vegas.c",
    module: None,
    signal: Signal::Delay,
    settles: true,
    parameters: &[
        Parameter::new(
            "alpha",
            1.0,
            Range::UpTo(1, "beta"),
            "segments",
            "with fewer queued the window grows",
            "net.inet.tcp.cc.vegas.alpha",
        ),
        Parameter::new(
            "beta",
            3.0,
            Range::Whole(1, 1 << 16),
            "segments",
            "with more queued it shrinks",
            "net.inet.tcp.cc.vegas.beta",
        ),
        Parameter::new(
            "tick_ms",
            0.0,
            Range::Whole(0, 1_000),
            "ms",
            "tick that RTTs are counted in; 0: the host's on FreeBSD, 1 elsewhere",
            "kern.hz",
        ),
    ],
    variables: &[
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT measured, in whole ticks and one"),
        Variable::new(
            "marked_rtt",
            Unit::Nanoseconds,
            "RTT of the marked segment of the round that ended last",
        ),
        Variable::new(
            "diff",
            Unit::Packets,
            "segments queued in the network, as far as the rates tell",
        ),
    ],
    needs: Needs { dice: true, ..Needs::NOTHING },
};

/// FreeBSD's Vegas.
#[derive(Clone, Debug)]
pub struct VegasFreebsd {
    alpha: i64,
    beta: i64,
    bytes: ByteWindow,
    growth: ByteCounting,
    ertt: Ertt,
    /// NewReno's growth runs in this round trip (`slow_start_toggle`).
    grows: bool,
}

impl VegasFreebsd {
    /// `stream` says when ticks fall.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, rules: &Rules, mut stream: Stream) -> Self {
        Self {
            alpha: i64::from(parameters.whole("alpha")),
            beta: i64::from(parameters.whole("beta")),
            bytes: ByteWindow::default(),
            growth: ByteCounting::default(),
            ertt: Ertt::new(parameters.whole("tick_ms"), rules.bsd, stream.next_u32()),
            grows: true,
        }
    }

    /// Segments queued, as far as the rates tell; `None` before both RTTs are known.
    fn queued(&self, view: &View) -> Option<i64> {
        let (least, marked) = (self.ertt.min_rtt, self.ertt.marked_rtt);
        if least == 0 || marked == 0 {
            return None;
        }
        let expected = self.bytes.cwnd as i64 / i64::from(least);
        let actual = self.ertt.marked_bytes as i64 / i64::from(marked);
        Some((expected - actual) * i64::from(least) / i64::from(view.mss))
    }

    /// The once-per-round-trip decision.
    fn steer(&mut self, view: &View, window: &Window) {
        let Some(queued) = self.queued(view) else { return };
        let mss = u64::from(view.mss);
        if queued < self.alpha {
            if self.bytes.in_slow_start() {
                self.grows = !self.grows;
            } else {
                self.grows = false;
                self.bytes.cwnd = (self.bytes.cwnd + mss).min(u64::from(window.clamp) * mss);
            }
        } else if queued > self.beta {
            self.grows = false;
            if view.state != CaState::Recovery {
                self.bytes.cwnd = (self.bytes.cwnd.saturating_sub(mss)).max(2 * mss);
                self.bytes.ssthresh = self.bytes.ssthresh.min(self.bytes.cwnd);
            }
        }
    }
}

impl CongestionControl for VegasFreebsd {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.bytes.adopt(view, window);
        self.ertt.mark(view);
    }

    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.bytes.adopt(view, window);
        self.bytes.ssthresh = half(view, &self.bytes);
        self.grows = self.bytes.cwnd < self.bytes.ssthresh;
        self.bytes.ssthresh_in_packets(view)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.bytes.adopt(view, window);
        self.growth.count(view, &self.bytes, acked);
        if self.grows {
            self.growth.grow(view, &mut self.bytes, window, acked);
        }
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

    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        self.bytes.adopt(view, window);
        if self.ertt.measure(view, ack) {
            self.steer(view, window);
            if view.state != CaState::Recovery {
                self.bytes.export(view, window);
            }
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let tick_ns = self.ertt.tick_ns(view);
        for (name, ticks) in [("min_rtt", self.ertt.min_rtt), ("marked_rtt", self.ertt.marked_rtt)]
        {
            if ticks > 0 {
                tell(name, f64::from(ticks) * tick_ns);
            }
        }
        if let Some(queued) = self.queued(view) {
            tell("diff", queued as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, options, view};

    const MSS: u64 = 1_448;

    /// After a first round of 9 ms, read as 10, with nothing queued.
    fn start(cwnd: u32, ssthresh: u32) -> (VegasFreebsd, View, Window) {
        let mut vegas = made!(VegasFreebsd);
        let mut window = Window::new(cwnd);
        window.ssthresh = ssthresh;
        let mut view = view();
        view.now = at_ms(10_000);
        vegas.init(&view, &mut window);
        vegas.ertt.min_rtt = 10;
        (vegas, view, window)
    }

    /// A round whose marked segment took `rtt_ms`, read as one more; `sent` segments left in it.
    fn round(
        vegas: &mut VegasFreebsd,
        view: &mut View,
        window: &mut Window,
        rtt_ms: u32,
        sent: u64,
    ) {
        view.snd_una = view.snd_nxt + MSS;
        view.snd_nxt = view.snd_una + (sent - 1) * MSS;
        vegas.acked(view, window, &ack(1, rtt_ms * 1_000));
    }

    /// 20 − 20 · 10 / (rtt + 1): nothing, 1.8, 3.3, 4.6 and 13.5 segments queued.
    #[test]
    fn it_keeps_one_to_three_segments_queued() {
        for (rtt_ms, expected) in [(9, 21), (10, 20), (11, 20), (12, 19), (30, 19)] {
            let (mut vegas, mut view, mut window) = start(20, 5);
            round(&mut vegas, &mut view, &mut window, rtt_ms, 20);
            assert_eq!(window.cwnd, expected, "{rtt_ms} ms");
        }
    }

    /// Segments that the receiver's delayed ACK leaves out count as queued: with one segment less, 20 ms of nothing
    /// queued are one segment queued, and the window stays.
    #[test]
    fn a_delayed_ack_looks_like_a_segment_queued() {
        let (mut vegas, mut view, mut window) = start(20, 5);
        round(&mut vegas, &mut view, &mut window, 9, 19);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn slow_start_runs_every_other_round() {
        let (mut vegas, mut view, mut window) = start(10, Window::INFINITE);
        let mut grew = Vec::new();
        for _ in 0..4 {
            let before = window.cwnd;
            let _ = vegas.cong_avoid(&view, &mut window, 1);
            grew.push(window.cwnd > before);
            let cwnd = u64::from(window.cwnd);
            round(&mut vegas, &mut view, &mut window, 9, cwnd);
        }
        assert_eq!(grew, [true, false, true, false]);
    }

    #[test]
    fn slow_start_ends_at_the_window() {
        let (mut vegas, mut view, mut window) = start(20, Window::INFINITE);
        round(&mut vegas, &mut view, &mut window, 30, 20);
        assert_eq!((window.cwnd, window.ssthresh), (19, 19));
    }

    #[test]
    fn the_window_never_falls_below_2() {
        let (mut vegas, mut view, mut window) = start(2, 2);
        vegas.beta = 1;
        round(&mut vegas, &mut view, &mut window, 300, 2);
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn alpha_above_beta_is_refused() {
        assert!(Parameters::new(&ABOUT, &options(&[("alpha", 4.0)])).is_err());
    }
}
