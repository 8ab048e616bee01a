//! CUBIC as RFC 9438 has it.
//!
//! - **Source**: Xu, Ha, Rhee, Goel and Eggert, "CUBIC for Fast and Long-Distance Networks", RFC 9438.
//! - **Equations**: `W(t) = C (t − K)³ + Wmax`, `K = ∛((Wmax − cwnd) / C)` from the window at the beginning of the epoch, `C` = 0.4, `β` = 0.7;
//!   per ACK `cwnd += (target − cwnd) / cwnd`, target = `W(t + SRTT)` within `[cwnd, 1.5 cwnd]`. Reno's window `West += α acked / cwnd`,
//!   α = 3 (1 − β) / (1 + β) = 9/17, and 1 once `West` has reached the window before the reduction; where `W(t) < West` the window is that.
//!   On congestion `Wmax = cwnd`, or 0.85 of it if the last `Wmax` was not reached again; `ssthresh = max(0.7 flight size, 2)`.
//! - **States**:
//!
//! ```text
//!   HyStart++ ──cwnd ≥ ssthresh──▶ below Wmax ──t = K──▶ beyond Wmax
//!       ▲                          (concave)             (convex)
//!       │                              ▲                    │
//!       │                              └── fast recovery ───┘
//!       └──── timeout: cwnd = 1, then K = 0 and Wmax = cwnd (section 4.8)
//! ```
//! - **Departs from Linux's CUBIC** (`cubic`): the reduction takes the flight size; α becomes 1; the target is a round trip ahead by the smoothed
//!   RTT; a timeout does not forget `Wmax` by resetting all, but begins at a plateau; slow start is HyStart++ (section 4.10).
//! - **Departs from the RFC**: the flight size counts as the window at most, so that segments sent by limited transmit do not count (RFC 5681,
//!   section 3.2); an ECN echo leaves 2 packets at least, as a loss does. Time in which the application has nothing to send (section 5.8) is taken
//!   out when it sends again. A window grows by no more than what was delivered, also where Reno's is ahead of it.
//! - **Held against no kernel**: none has it. Its arithmetic is in doubles, and only +, −, · and /.

use crate::slow_start::hystart_pp::HyStartPp;
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Parameter, Parameters, Range, Response,
    Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::{Duration, Instant, Stream};

const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Largest ratio of the target to the window, in a round trip.
const TARGET_MAX: f64 = 1.5;
/// α while Reno's window has not come back.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "cubic-rfc9438",
    file: file!(),
    models: "RFC 9438",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[
        Parameter::new(
            "fast_convergence",
            1.0,
            Range::Switch,
            "",
            "give way below the last plateau",
            "RFC 9438, section 4.7",
        ),
        Parameter::new(
            "hystart_pp",
            1.0,
            Range::Switch,
            "",
            "the first slow start is that of HyStart++; else it goes on until a loss",
            "RFC 9438, section 4.10",
        ),
    ],
    variables: &[
        Variable::new("w_max", Unit::Packets, "the plateau"),
        Variable::new("k", Unit::Nanoseconds, "from the curve's beginning to its plateau"),
        Variable::new("t", Unit::Nanoseconds, "since the curve began"),
        Variable::new("w_est", Unit::Packets, "window that Reno would have"),
    ],
    needs: Needs::NOTHING,
};

/// CUBIC of RFC 9438.
#[derive(Clone, Debug)]
pub struct CubicRfc9438 {
    fast_convergence: bool,
    first: Option<HyStartPp>,
    /// Packets; 0 before the first reduction.
    w_max: f64,
    /// The window before the last reduction.
    cwnd_prior: f64,
    after_timeout: bool,
    epoch: Option<Epoch>,
    /// Fraction of a packet in the window.
    fraction: f64,
}

/// Since congestion avoidance began or went on.
#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds.
    k: f64,
    w_est: f64,
}

impl CubicRfc9438 {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            fast_convergence: parameters.switch("fast_convergence"),
            first: parameters.switch("hystart_pp").then(HyStartPp::new),
            w_max: 0.0,
            cwnd_prior: 0.0,
            after_timeout: false,
            epoch: None,
            fraction: 0.0,
        }
    }

    /// `W(t)`, packets.
    fn curve(&self, t: f64, k: f64) -> f64 {
        let off = t - k;
        C * off * off * off + self.w_max
    }

    /// Section 4.2 to 4.5: one ACK's growth.
    fn grow(&mut self, view: &View, window: &mut Window, acked: u32) {
        let cwnd = f64::from(window.cwnd) + self.fraction;
        let mut epoch = self.epoch.take().unwrap_or_else(|| self.begin(view.now, cwnd));
        let t = seconds(view.now.since(epoch.start));
        let srtt = f64::from(view.srtt_us_x8) / 8e6;
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * f64::from(acked) / cwnd;
        let grown = if self.curve(t, epoch.k) < epoch.w_est {
            epoch.w_est.max(cwnd)
        } else {
            let target = self.curve(t + srtt, epoch.k).max(cwnd).min(TARGET_MAX * cwnd);
            cwnd + (target - cwnd) / cwnd * f64::from(acked)
        };
        // `W_est` may be far ahead of a window that was restarted after a pause.
        let grown = grown.min(cwnd + f64::from(acked)).min(f64::from(window.clamp));
        window.cwnd = grown as u32;
        self.fraction = grown - f64::from(window.cwnd);
        self.epoch = Some(epoch);
    }

    /// An epoch at this window.
    fn begin(&mut self, now: Instant, cwnd: f64) -> Epoch {
        if self.after_timeout || cwnd >= self.w_max {
            self.after_timeout = false;
            self.w_max = cwnd;
        }
        Epoch { start: now, k: cube_root((self.w_max - cwnd) / C), w_est: cwnd }
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// ∛ of what is not negative, by Newton's rule from above: to a double's last digits, on every machine the same.
fn cube_root(value: f64) -> f64 {
    let mut root = value.max(1.0);
    loop {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next >= root {
            return if value > 0.0 { root } else { 0.0 };
        }
        root = next;
        if root < 1e-9 {
            return 0.0;
        }
    }
}

impl CongestionControl for CubicRfc9438 {
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        let cwnd = f64::from(window.cwnd);
        let gives_way = self.fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_way { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
        // Section 4.6; whole packets.
        let flight = view.packets_out.min(window.cwnd);
        ((f64::from(flight) * BETA) as u32).max(2)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = match &mut self.first {
            Some(first) if window.in_slow_start() => first.grow(view, window, acked),
            Some(_) | None => window.beyond_slow_start(acked),
        };
        if avoidance_packets > 0 {
            self.grow(view, window, avoidance_packets);
        }
        Response::None
    }

    #[inline]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        if let Some(first) = &mut self.first {
            first.acked(view, window, ack.rtt_us);
        }
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.after_timeout = true;
            self.epoch = None;
            self.fraction = 0.0;
        }
    }

    fn cwnd_event(&mut self, view: &View, _window: &mut Window, event: Event) {
        if let (Event::TxStart, Some(epoch)) = (event, &mut self.epoch) {
            let idle = view.now.since(view.last_data_sent);
            epoch.start = (epoch.start + idle).min(view.now);
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("w_max", self.w_max);
        let Some(epoch) = &self.epoch else { return };
        tell("k", epoch.k * 1e9);
        tell("t", view.now.since(epoch.start).as_nanos() as f64);
        tell("w_est", epoch.w_est);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, made, view};

    /// After a reduction from `from` packets, in congestion avoidance, with an RTT of 100 ms.
    fn reduced(pairs: &[(&str, f64)], from: u32) -> (CubicRfc9438, View, Window) {
        let mut cubic = made!(CubicRfc9438, pairs);
        let (mut view, mut window) = (view(), Window::new(from));
        view.packets_out = from;
        view.srtt_us_x8 = 800_000;
        window.ssthresh = cubic.ssthresh(&view, &mut window);
        window.cwnd = window.ssthresh;
        (cubic, view, window)
    }

    /// Windows of ACKs, one packet each, for so many seconds.
    fn run(it: &mut CubicRfc9438, view: &mut View, window: &mut Window, seconds: f64) -> f64 {
        let end = view.now + Duration::from_nanos((seconds * 1e9) as u64);
        while view.now < end {
            let step = 100_000_000 / u64::from(window.cwnd);
            let _ = it.cong_avoid(view, window, 1);
            view.now += Duration::from_nanos(step);
        }
        f64::from(window.cwnd) + it.fraction
    }

    #[test]
    fn roots_are_exact() {
        for (value, root) in
            [(0.0, 0.0), (1.0, 1.0), (0.001, 0.1), (27.0, 3.0), (75.0, 4.217_163_326_5)]
        {
            assert!((cube_root(value) - root).abs() < 1e-9, "{value}: {}", cube_root(value));
        }
    }

    #[test]
    fn a_reduction_keeps_seven_tenths_of_the_flight() {
        let (it, mut view, _) = reduced(&[], 100);
        assert_eq!(it.w_max, 100.0);
        view.packets_out = 50;
        let mut it = it;
        assert_eq!(it.ssthresh(&view, &mut Window::new(100)), 35, "not of the window");
        view.packets_out = 120;
        assert_eq!(it.ssthresh(&view, &mut Window::new(100)), 70);
        view.packets_out = 1;
        assert_eq!(it.ssthresh(&view, &mut Window::new(100)), 2);
    }

    #[test]
    fn fast_convergence_leaves_a_lower_plateau() {
        for (pairs, plateau) in [(&[][..], 68.0), (&[("fast_convergence", 0.0)][..], 80.0)] {
            let (mut it, view, _) = reduced(pairs, 100);
            let _ = it.ssthresh(&view, &mut Window::new(80));
            assert_eq!(it.w_max, plateau);
        }
    }

    /// Below and beyond the plateau the window is on the curve one round trip ahead; with these figures the curve is above Reno's window.
    #[test]
    fn the_window_follows_the_curve() {
        let (mut it, mut view, mut window) = reduced(&[], 1_000);
        let k = cube_root(300.0 / C);
        assert!((k - 9.085_6).abs() < 1e-4);
        for (until, from) in [(2.0, 0.0), (9.0, 2.0), (12.0, 9.0)] {
            let cwnd = run(&mut it, &mut view, &mut window, until - from);
            let curve = it.curve(until, k);
            // An ACK takes the window a part of the way to the target of a round trip later: a round trip behind at most.
            let ahead = it.curve(until + 0.1, k);
            assert!((curve - 1.0..=ahead + 1.0).contains(&cwnd), "{until} s: {cwnd}, {curve}");
        }
    }

    /// Equation 5: one packet of 10 000 is lost, 100 ms of RTT: 187 packets in the mean.
    #[test]
    fn the_mean_window_is_the_response_function() {
        let (mut it, mut view, mut window) = reduced(&[], 200);
        let (mut sum, mut time) = (0.0, 0.0);
        for packet in 0..400_000_u32 {
            let step = 0.1 / f64::from(window.cwnd);
            view.now += Duration::from_nanos((step * 1e9) as u64);
            if packet % 10_000 == 9_999 {
                view.packets_out = window.cwnd;
                window.ssthresh = it.ssthresh(&view, &mut window);
                window.cwnd = window.ssthresh;
            } else {
                let _ = it.cong_avoid(&view, &mut window, 1);
            }
            if packet >= 100_000 {
                sum += f64::from(window.cwnd) * step;
                time += step;
            }
        }
        let (a, b) = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA)), 0.1_f64 / 1e-4);
        let expected = a.sqrt().sqrt() * b.sqrt() * b.sqrt().sqrt();
        assert!((expected - 187.4).abs() < 0.1, "{expected}");
        assert!((sum / time / expected - 1.0).abs() < 0.03, "{}", sum / time);
    }

    #[test]
    fn reno_sets_the_pace_of_short_round_trips_and_alpha_becomes_one() {
        let (mut it, mut view, mut window) = reduced(&[], 20);
        view.srtt_us_x8 = 8_000;
        let _ = it.cong_avoid(&view, &mut window, 1);
        let before = it.epoch.as_ref().unwrap().w_est;
        let _ = it.cong_avoid(&view, &mut window, 1);
        let after = it.epoch.as_ref().unwrap().w_est;
        assert!((after - before - 9.0 / 17.0 / 14.0).abs() < 1e-3, "{}", after - before);
        // It has come back to the window before the reduction: one packet per window from here on.
        (window.cwnd, it.fraction) = (20, 0.0);
        it.epoch.as_mut().unwrap().w_est = 20.0;
        let _ = it.cong_avoid(&view, &mut window, 1);
        let cwnd = f64::from(window.cwnd) + it.fraction;
        assert!((cwnd - 20.0 - 1.0 / 20.0).abs() < 1e-2, "the window is Reno's: {cwnd}");
        it.epoch.as_mut().unwrap().w_est = 40.0;
        let _ = it.cong_avoid(&view, &mut window, 1);
        assert_eq!(window.cwnd, 21, "by no more than was delivered");
    }

    #[test]
    fn a_timeout_begins_at_a_plateau() {
        let (mut it, mut view, mut window) = reduced(&[], 100);
        it.set_state(&view, &mut window, CaState::Loss);
        (window.cwnd, window.ssthresh) = (1, 4);
        view.now = at_ms(500);
        for _ in 0..4 {
            let _ = it.cong_avoid(&view, &mut window, 1);
        }
        assert_eq!((it.w_max, it.epoch.as_ref().unwrap().k), (4.0, 0.0));
    }

    #[test]
    fn a_pause_of_the_application_does_not_count() {
        let (mut it, mut view, mut window) = reduced(&[], 1_000);
        run(&mut it, &mut view, &mut window, 2.0);
        view.last_data_sent = view.now;
        view.now += Duration::from_millis(10_000);
        it.cwnd_event(&view, &mut window, Event::TxStart);
        let epoch = it.epoch.as_ref().unwrap();
        let t = seconds(view.now.since(epoch.start));
        assert!((t - 2.0).abs() < 0.01, "{t}");
    }

    #[test]
    fn slow_start_is_hystart_pp_unless_it_is_turned_off() {
        assert!(made!(CubicRfc9438).first.is_some());
        assert!(made!(CubicRfc9438, &[("hystart_pp", 0.0)]).first.is_none());
    }
}
