//! LEDBAT: fills what others leave, and lets its packets wait no longer than a target.
//!
//! - **Source**: Shalunov, Hazel, Iyengar and Kuehlewind, "Low Extra Delay Background Transport (LEDBAT)", RFC 6817.
//! - **Equations**: queueing delay `d` = least of the last four one-way delays − base; base = least one-way delay of the last ten minutes;
//!   per ACK `cwnd += GAIN · (TARGET − d) / TARGET · acked / cwnd`; at least 2 packets, at most one more than were in flight. On a loss
//!   half.
//! - **States**: one; it begins with 2 packets and has no slow start (§2.4.2 needs none).
//! - **One-way delay**: the peer's timestamp less the one it echoes, whatever the clocks' distance, which the difference to the base does not
//!   contain. In ms, as timestamps are. Without timestamps round trips stand in.
//! - **Known to be unfair**: a flow that comes later takes the others' queue for the path's delay (§4.3), and keeps its own above it.
//! - **Departs from the RFC**: a timeout begins with one packet and goes up as ever; the one packet that is allowed beyond the flight
//!   counts from the most that was in flight in the last round trip, not from what was when the ACK came: a sender that builds bursts
//!   holds back a part of its window.
//! - **Not held against another implementation.**

use crate::algorithms::reno;
use crate::delays::Queueing;
use crate::{
    About, Ack, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules, Signal,
    Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// MIN_CWND and INIT_CWND, packets.
const LEAST: u32 = 2;
/// ALLOWED_INCREASE, packets.
const ALLOWED_INCREASE: u32 = 1;
/// Parts of a packet.
const PARTS: i64 = 1 << 16;
/// The first one-way delay, ms: what others differ from it may be negative.
const FIRST_MS: i32 = 1 << 20;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "ledbat",
    file: file!(),
    models: "RFC 6817",
    module: None,
    signal: Signal::Delay,
    settles: true,
    parameters: &[
        Parameter::new(
            "target_ms",
            100.0,
            Range::Whole(1, 100),
            "ms",
            "queueing delay that is held; 100 at most",
            "RFC 6817, section 2.5",
        ),
        Parameter::new(
            "gain",
            1.0,
            Range::Real(0.01, 1.0),
            "",
            "packets that a round trip adds on an empty queue",
            "RFC 6817, section 2.5",
        ),
    ],
    variables: &[
        Variable::new(
            "queueing",
            Unit::Nanoseconds,
            "least of the last four delays, less the base",
        ),
        Variable::new("off_target", Unit::Ratio, "what is left to the target, as a part of it"),
    ],
    needs: Needs::NOTHING,
};

/// LEDBAT.
#[derive(Clone, Debug)]
pub struct Ledbat {
    target_us: u32,
    /// Growth in a round trip on an empty queue, in parts of a packet.
    gain: i64,
    /// µs; of one-way delays each with the same unknown added.
    delays: Queueing,
    /// The distance of both clocks and the first delay.
    first_ms: Option<u32>,
    /// Fraction of a packet in the window.
    parts: i64,
}

impl Ledbat {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            target_us: 1_000 * parameters.whole("target_ms"),
            gain: (parameters.real("gain") * PARTS as f64) as i64,
            delays: Queueing::new(),
            first_ms: None,
            parts: 0,
        }
    }

    /// The one-way delay that an ACK tells, µs, and something that is the same for all of a connection.
    fn delay_us(&mut self, view: &View, ack: &Ack) -> Option<u32> {
        let Some(stamps) = view.stamps else { return ack.rtt_us };
        let ms = stamps.val.wrapping_sub(stamps.ecr);
        let first = *self.first_ms.get_or_insert(ms);
        let ms = FIRST_MS.saturating_add(ms.wrapping_sub(first) as i32).clamp(0, 2 * FIRST_MS);
        Some(ms as u32 * 1_000)
    }

    /// Returns the change of the window for a whole window delivered, in parts of a packet.
    fn change(&self, queueing_us: u32) -> i64 {
        self.gain * (i64::from(self.target_us) - i64::from(queueing_us)) / i64::from(self.target_us)
    }
}

impl CongestionControl for Ledbat {
    fn init(&mut self, _view: &View, window: &mut Window) {
        window.cwnd = LEAST.min(window.clamp);
        window.ssthresh = LEAST;
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        self.parts = 0;
        reno::half(window)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        let Some(queueing_us) = self.delays.get() else { return Response::None };
        let cwnd = i64::from(window.cwnd);
        let step = self.change(queueing_us) * i64::from(acked.min(window.cwnd)) / cwnd;
        let flight = view.max_packets_out.max(view.prior_in_flight);
        let most = flight.saturating_add(ALLOWED_INCREASE).max(LEAST).min(window.clamp);
        let all = cwnd * PARTS + self.parts + step;
        let all = all.max(i64::from(LEAST) * PARTS).min(i64::from(most) * PARTS);
        window.cwnd = (all / PARTS) as u32;
        self.parts = all % PARTS;
        Response::None
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        if let Some(delay_us) = self.delay_us(view, ack) {
            self.delays.record(view.now, delay_us);
        }
    }

    fn phase(&self, _view: &View, _window: &Window) -> &'static str {
        match self.delays.get() {
            Some(queueing_us) if queueing_us > self.target_us => "above_target",
            Some(_) | None => "below_target",
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let Some(queueing_us) = self.delays.get() else { return };
        tell("queueing", f64::from(queueing_us) * 1e3);
        tell("off_target", 1.0 - f64::from(queueing_us) / f64::from(self.target_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamps;
    use crate::testing::{ack, made, view};

    fn packets(parts: i64) -> f64 {
        parts as f64 / PARTS as f64
    }

    /// One ACK whose data has waited for so long; both clocks are a day apart.
    fn waited(it: &mut Ledbat, view: &mut View, window: &mut Window, ms: u32) {
        view.stamps = Some(Stamps { val: 86_400_000_u32.wrapping_add(20 + ms), ecr: 0 });
        it.acked(view, window, &ack(1, 40_000));
    }

    /// The window that a window's worth of ACKs makes of 10 packets, when four delays were so long and one before was 0.
    fn after(pairs: &[(&str, f64)], queueing_ms: u32) -> f64 {
        let mut ledbat = made!(Ledbat, pairs);
        let (mut view, mut window) = (view(), Window::new(10));
        view.max_packets_out = 10;
        for ms in [0, queueing_ms, queueing_ms, queueing_ms, queueing_ms] {
            waited(&mut ledbat, &mut view, &mut window, ms);
        }
        let _ = ledbat.cong_avoid(&view, &mut window, 10);
        f64::from(window.cwnd) + packets(ledbat.parts)
    }

    #[test]
    fn the_window_grows_by_what_is_left_to_the_target() {
        for (queueing_ms, wanted) in [(0, 11.0), (50, 10.5), (100, 10.0), (200, 9.0)] {
            assert!((after(&[], queueing_ms) - wanted).abs() < 1e-3, "{queueing_ms} ms");
        }
        assert!((after(&[("target_ms", 25.0)], 50) - 9.0).abs() < 1e-3);
        assert!((after(&[("gain", 0.5)], 0) - 10.5).abs() < 1e-3);
    }

    #[test]
    fn it_begins_with_two_packets_and_never_has_fewer() {
        let mut ledbat = made!(Ledbat);
        let (mut view, mut window) = (view(), Window::new(10));
        ledbat.init(&view, &mut window);
        assert_eq!((window.cwnd, window.in_slow_start()), (2, false));
        for ms in [0, 900, 900, 900, 900] {
            waited(&mut ledbat, &mut view, &mut window, ms);
        }
        let _ = ledbat.cong_avoid(&view, &mut window, 2);
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut ledbat = made!(Ledbat);
        let (mut view, mut window) = (view(), Window::new(10));
        waited(&mut ledbat, &mut view, &mut window, 0);
        view.max_packets_out = 4;
        for _ in 0..100 {
            let _ = ledbat.cong_avoid(&view, &mut window, 10);
        }
        assert_eq!(window.cwnd, 5, "one more than were in flight");
    }

    #[test]
    fn without_timestamps_round_trips_count() {
        let mut ledbat = made!(Ledbat);
        let mut window = Window::new(10);
        for rtt_ms in [40, 70, 70, 70, 70] {
            ledbat.acked(&view(), &mut window, &ack(1, rtt_ms * 1_000));
        }
        assert_eq!(ledbat.delays.get(), Some(30_000));
    }

    #[test]
    fn a_clock_that_runs_ahead_makes_delays_shorter_than_the_first() {
        let mut ledbat = made!(Ledbat);
        let (mut view, mut window) = (view(), Window::new(10));
        for ms in [50, 40, 40, 40, 40] {
            waited(&mut ledbat, &mut view, &mut window, ms);
        }
        assert_eq!(ledbat.delays.get(), Some(0));
        assert_eq!(ledbat.delays.base(), (FIRST_MS as u32 - 10) * 1_000);
    }

    #[test]
    fn a_loss_halves_the_window() {
        assert_eq!(made!(Ledbat).ssthresh(&view(), &mut Window::new(40)), 20);
        assert_eq!(made!(Ledbat).ssthresh(&view(), &mut Window::new(2)), 2);
    }
}
