//! Westwood+: after a loss the window is what the path was seen to carry.
//!
//! - **Paper**: Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport
//!   over Wireless Links", ACM MobiCom 2001; Mascolo et al., "Performance Evaluation of Westwood+ TCP over
//!   High-Speed Networks", Performance Evaluation 55, 2004.
//! - **Equations**: growth is Reno's. Once per round trip `b = acknowledged bytes / time`, smoothed twice by
//!   `x ← (7 x + b) / 8`; at the end of a reduction `ssthresh = cwnd = B · RTTmin / MSS`.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: half, then B · RTTmin when it has ended
//!       └── timeout: ssthresh = B · RTTmin ┘
//! ```
//! - **Departs from the paper**, as Linux does: time is in ticks; what an ACK acknowledges counts for the next round trip if
//!   it ends one; the minimum RTT is measured anew after each timeout. Two filters in a row lag behind slow start, so that an early
//!   loss on a long path leaves a threshold far below the bandwidth-delay product.
//! - **Departs from Linux**: the largest window (`snd_cwnd_clamp`) holds at once, not only when the window grows again.
//! - **Source of the details**: Linux 6.1 `tcp_westwood.c`. The module has no parameters.

use crate::algorithms::reno;
use crate::{
    About, Ack, AckEvent, CongestionControl, Event, Needs, Parameters, Response, Rules, Signal,
    Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Before the first sample, seconds (`TCP_WESTWOOD_INIT_RTT`).
const INITIAL_RTT_S: u32 = 20;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "westwood",
    file: file!(),
    models: "Linux 6.1, tcp_westwood.c",
    module: Some("tcp_westwood"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[
        Variable::new("bandwidth", Unit::BitsPerSecond, "estimate, smoothed twice"),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT since the last timeout, in ticks"),
    ],
    needs: Needs::NOTHING,
};

/// Linux's Westwood+. It has no parameters.
#[derive(Clone, Debug)]
pub struct Westwood {
    /// The last RTT and the least since the last timeout, jiffies.
    rtt: u32,
    rtt_min: u32,
    /// The next RTT is the least.
    forget_rtt_min: bool,
    /// Bytes per jiffy, smoothed once and twice.
    once: u32,
    twice: u32,
    /// Bytes acknowledged in this round trip, and when it began in jiffies.
    acknowledged: u32,
    round_start: u64,
    /// `snd_una` when it was last looked at; before the first ACK nothing.
    snd_una: Option<u64>,
    /// Bytes that duplicate ACKs have told of.
    accounted: u32,
}

impl Westwood {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            rtt: 0,
            rtt_min: 0,
            forget_rtt_min: true,
            once: 0,
            twice: 0,
            acknowledged: 0,
            round_start: 0,
            snd_una: None,
            accounted: 0,
        }
    }

    /// `westwood_update_window`: if a round trip has passed, and at least 50 ms, its bandwidth is a sample.
    fn end_round(&mut self, view: &View) {
        let passed = view.jiffies_since(self.round_start);
        if passed <= self.rtt.max(view.hz / 20) {
            return;
        }
        let sample = self.acknowledged / passed;
        if self.once == 0 && self.twice == 0 {
            (self.once, self.twice) = (sample, sample);
        } else {
            let smooth = |old: u32, new: u32| {
                // 32 bits, wrapping, as in the kernel: above 600 MB per tick.
                old.wrapping_mul(7).wrapping_add(new) >> 3
            };
            self.once = smooth(self.once, sample);
            self.twice = smooth(self.twice, self.once);
        }
        self.acknowledged = 0;
        self.round_start = view.jiffies();
    }

    /// `westwood_acked_count`: bytes that this ACK stands for, where segments are missing.
    fn count(&mut self, gained: u32, mss: u32) -> u32 {
        if gained == 0 {
            self.accounted = self.accounted.saturating_add(mss);
            return mss;
        }
        if gained <= mss {
            return gained;
        }
        if self.accounted >= gained {
            self.accounted -= gained;
            mss
        } else {
            gained - std::mem::take(&mut self.accounted)
        }
    }

    /// `tcp_westwood_bw_rttmin`.
    fn carried(&self, view: &View) -> u32 {
        (self.twice.wrapping_mul(self.rtt_min) / view.mss).max(2)
    }
}

impl CongestionControl for Westwood {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.rtt = INITIAL_RTT_S * view.hz;
        self.rtt_min = self.rtt;
        self.round_start = view.jiffies();
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        reno::half(window)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        reno::grow(view, window, acked);
        Response::None
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::CompleteCwr => {
                window.ssthresh = self.carried(view);
                window.cwnd = window.ssthresh.min(window.clamp);
            }
            Event::Loss => {
                window.ssthresh = self.carried(view);
                self.forget_rtt_min = true;
            }
            Event::TxStart
            | Event::CwndRestart
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us.filter(|&us| us > 0) {
            // usecs_to_jiffies rounds up.
            self.rtt = view.jiffies_in(rtt_us);
        }
    }

    /// `tcp_westwood_ack`.
    fn in_ack_event(&mut self, view: &View, _window: &mut Window, event: &AckEvent) {
        let before = *self.snd_una.get_or_insert(view.snd_una);
        self.end_round(view);
        let gained = (view.snd_una - before) as u32;
        let acked_bytes = if event.slow_path { self.count(gained, view.mss) } else { gained };
        self.acknowledged = self.acknowledged.saturating_add(acked_bytes);
        self.snd_una = Some(view.snd_una);
        self.rtt_min = if std::mem::take(&mut self.forget_rtt_min) {
            self.rtt
        } else {
            self.rtt_min.min(self.rtt)
        };
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let hz = f64::from(view.hz);
        if self.twice > 0 {
            tell("bandwidth", f64::from(self.twice) * 8.0 * hz);
        }
        if !self.forget_rtt_min {
            tell("min_rtt", f64::from(self.rtt_min) / hz * 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, made, view};
    use dragstrip_units::Instant;

    const FAST: AckEvent = AckEvent {
        slow_path: false,
        window_update: false,
        ece: false,
        newly_delivered: 0,
        newly_marked: 0,
    };
    const SLOW: AckEvent = AckEvent { slow_path: true, ..FAST };

    /// A kernel of 250 ticks a second, 4 segments acknowledged in each, RTT 10 ticks; the first so many ticks of it.
    fn steady(ticks: u64) -> (Westwood, View) {
        let (mut westwood, mut view) = (made!(Westwood), View { hz: 250, ..view() });
        let mut window = Window::new(100);
        westwood.init(&view, &mut window);
        westwood.acked(&view, &mut window, &ack(4, 40_000));
        for tick in 1..=ticks {
            view.now = Instant::from_nanos(tick * 4_000_000);
            view.snd_una += 5_792;
            westwood.in_ack_event(&view, &mut window, &FAST);
        }
        (westwood, view)
    }

    /// Values of the kernel's own file. A sample spans 13 ticks, the least more than 12. The first lacks the bytes of
    /// two ACKs: the first one's, where counting starts, and the last one's, which count for the next.
    #[test]
    fn the_estimate_creeps_up_through_two_filters() {
        let estimates: Vec<u32> = (1..=15).map(|round| steady(13 * round).0.twice).collect();
        assert_eq!(estimates[..5], [4_900, 4_913, 4_937, 4_969, 5_006]);
        assert_eq!(estimates[14], 5_408);
    }

    #[test]
    fn after_a_reduction_the_window_is_what_the_path_carries() {
        let (mut westwood, view) = steady(13 * 15);
        let mut window = Window::new(100);
        westwood.cwnd_event(&view, &mut window, Event::CompleteCwr);
        // 5408 bytes a tick, 10 ticks.
        assert_eq!((window.cwnd, window.ssthresh), (37, 37));
    }

    #[test]
    fn after_a_timeout_the_least_rtt_is_learnt_anew() {
        let (mut westwood, view) = steady(13 * 15);
        let mut window = Window::new(1);
        westwood.cwnd_event(&view, &mut window, Event::Loss);
        assert_eq!((window.cwnd, window.ssthresh), (1, 37));
        westwood.acked(&view, &mut window, &ack(1, 100_000));
        westwood.in_ack_event(&view, &mut window, &FAST);
        assert_eq!(westwood.rtt_min, 25);
    }

    /// Values of the kernel's own file: three duplicate ACKs, then one for five segments.
    #[test]
    fn what_duplicate_acks_told_of_is_not_counted_again() {
        let (mut westwood, mut view) = (made!(Westwood), View { hz: 250, ..view() });
        let mut window = Window::new(10);
        westwood.init(&view, &mut window);
        for _ in 0..3 {
            westwood.in_ack_event(&view, &mut window, &SLOW);
        }
        assert_eq!((westwood.acknowledged, westwood.accounted), (4_344, 4_344));
        view.snd_una += 5 * 1_448;
        westwood.in_ack_event(&view, &mut window, &SLOW);
        assert_eq!((westwood.acknowledged, westwood.accounted), (7_240, 0));
    }
}
