//! LEDBAT++: takes what others leave, and holds the queue at a target.
//!
//! - **Source**: Balasubramanian, Ertugay and Havey, "LEDBAT++: Congestion Control for Background Traffic",
//!   draft-irtf-iccrg-ledbat-plus-plus. It follows LEDBAT (RFC 6817) and measures RTTs, not delays one way.
//! - **Equations**: queueing delay `d` = least of the last four RTTs − base; base = least RTT of the last ten minutes; `T` = 60 ms;
//!   `GAIN = 1 / min(16, ⌈2T / base⌉)`. Per round trip `W += GAIN` while `d < T`, else
//!   `W += max(GAIN − W (d / T − 1), −W / 2)`; at least 2 packets. On a loss half.
//! - **States**:
//!
//! ```text
//!   slow start, × GAIN ──d > 3T/4, or a loss──▶ at the target ──2 RTT, then 9 × what the last one took──▶ slowdown
//!                                                    ▲                                                        │
//!                                                    └── slow start to the window of before ◀── 2 packets, 2 RTT
//! ```
//! - **Slowdowns** let the queue drain, so that the base RTT is seen again and late flows do not take a standing queue for it.
//! - **Departs from the draft**: the change of a round trip is made ACK by ACK, in 1/65536 packets; a loss within a slowdown
//!   halves the window that it goes back to.
//! - **Not held against another implementation**: the reference is Windows', which is closed.

use crate::algorithms::reno;
use crate::delays::Queueing;
use crate::{
    About, Ack, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules, Signal,
    Unit, Variable, View, Window,
};
use dragstrip_units::{Duration, Instant, Stream};

/// Most that `1 / GAIN` is.
const DIVISOR_MAX: u32 = 16;
/// Window in a slowdown.
const LEAST: u32 = 2;
/// Round trips before the first slowdown, and at the least window.
const ROUND_TRIPS: u64 = 2;
/// The time between slowdowns is so many times the last one's.
const BETWEEN: u64 = 9;
/// Parts of a packet.
const PARTS: i64 = 1 << 16;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "ledbatpp",
    file: file!(),
    models: "draft-irtf-iccrg-ledbat-plus-plus",
    module: None,
    signal: Signal::Delay,
    settles: true,
    parameters: &[
        Parameter::new(
            "target_ms",
            60.0,
            Range::Whole(1, 1_000),
            "ms",
            "queueing delay that is held",
            "the draft",
        ),
        Parameter::new(
            "slowdowns",
            1.0,
            Range::Switch,
            "",
            "let the queue drain now and then",
            "the draft",
        ),
    ],
    variables: &[
        Variable::new("base_rtt", Unit::Nanoseconds, "least RTT of the last ten minutes"),
        Variable::new("queueing", Unit::Nanoseconds, "least of the last four RTTs, less the base"),
        Variable::new("gain", Unit::Ratio, "packets that a round trip below the target adds"),
    ],
    needs: Needs::NOTHING,
};

/// LEDBAT++.
#[derive(Clone, Debug)]
pub struct Ledbatpp {
    target_us: u32,
    slowdowns: bool,
    /// Queueing delay from RTTs, µs.
    delays: Queueing,
    /// Fraction of a packet in the window.
    parts: i64,
    slowdown: Slowdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slowdown {
    /// The first slow start goes on.
    NotYet,
    Due(Instant),
    /// At the least window.
    Drains {
        since: Instant,
        until: Instant,
    },
    /// On the way back.
    Grows {
        since: Instant,
    },
}

impl Ledbatpp {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            target_us: 1_000 * parameters.whole("target_ms"),
            slowdowns: parameters.switch("slowdowns"),
            delays: Queueing::new(),
            parts: 0,
            slowdown: Slowdown::NotYet,
        }
    }

    /// 1 / GAIN.
    fn divisor(&self) -> u32 {
        let twice = u64::from(self.target_us) * 2;
        let ratio = twice.div_ceil(u64::from(self.delays.base().max(1)));
        ratio.clamp(1, u64::from(DIVISOR_MAX)) as u32
    }

    /// Returns the change per round trip of a window of so many parts, with this queueing delay.
    fn change(&self, parts: i64, queueing_us: u32) -> i64 {
        let gain = PARTS / i64::from(self.divisor());
        if queueing_us < self.target_us {
            return gain;
        }
        let over = i128::from(queueing_us - self.target_us);
        let less = i128::from(parts) * over / i128::from(self.target_us);
        let least = i128::from(-parts / 2);
        (i128::from(gain) - less).max(least) as i64
    }

    /// One round trip from here on, as far as is known.
    fn rtt(view: &View) -> Duration {
        Duration::from_micros(u64::from(view.srtt_us_x8 >> 3).max(1))
    }

    /// Looks at the clock; whether the window may be changed by what was delivered.
    fn keep_time(&mut self, view: &View, window: &mut Window) -> bool {
        let two = Self::rtt(view) * ROUND_TRIPS;
        match self.slowdown {
            Slowdown::NotYet => {
                if !window.in_slow_start() {
                    self.slowdown = Slowdown::Due(view.now + two);
                }
                true
            }
            Slowdown::Due(at) if self.slowdowns && view.now >= at && window.cwnd > LEAST => {
                window.ssthresh = window.cwnd;
                window.cwnd = LEAST;
                self.parts = 0;
                self.slowdown = Slowdown::Drains { since: view.now, until: view.now + two };
                false
            }
            Slowdown::Due(_) => true,
            Slowdown::Drains { since, until } => {
                if view.now >= until {
                    self.slowdown = Slowdown::Grows { since };
                }
                view.now >= until
            }
            Slowdown::Grows { since } => {
                if !window.in_slow_start() {
                    let took = view.now.since(since);
                    self.slowdown = Slowdown::Due(view.now + took * BETWEEN);
                }
                true
            }
        }
    }

    /// Changes the window by so many parts of a packet.
    fn add(&mut self, window: &mut Window, change: i64, most: u32) {
        let all = i64::from(window.cwnd) * PARTS + self.parts + change;
        let all = all.min(i64::from(most) * PARTS).max(i64::from(LEAST) * PARTS);
        window.cwnd = (all / PARTS) as u32;
        self.parts = all % PARTS;
    }
}

impl CongestionControl for Ledbatpp {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        self.parts = 0;
        match self.slowdown {
            Slowdown::Drains { .. } | Slowdown::Grows { .. } => (window.ssthresh / 2).max(LEAST),
            Slowdown::NotYet | Slowdown::Due(_) => reno::half(window),
        }
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !self.keep_time(view, window) || !view.cwnd_limited(window) {
            return Response::None;
        }
        let Some(queueing_us) = self.delays.get() else { return Response::None };
        if window.in_slow_start() {
            let first = self.slowdown == Slowdown::NotYet;
            if first && u64::from(queueing_us) * 4 > u64::from(self.target_us) * 3 {
                window.ssthresh = window.cwnd;
            } else {
                let step = i64::from(acked) * PARTS / i64::from(self.divisor());
                self.add(window, step, window.ssthresh.min(window.clamp));
            }
            return Response::None;
        }
        let parts = i64::from(window.cwnd) * PARTS + self.parts;
        let acked = i64::from(acked.min(window.cwnd));
        let step = self.change(parts, queueing_us) * acked / i64::from(window.cwnd.max(1));
        self.add(window, step, window.clamp);
        Response::None
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        let Some(rtt_us) = ack.rtt_us else { return };
        self.delays.record(view.now, rtt_us);
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let Some(queueing_us) = self.delays.get() else { return };
        tell("base_rtt", f64::from(self.delays.base()) * 1e3);
        tell("queueing", f64::from(queueing_us) * 1e3);
        tell("gain", 1.0 / f64::from(self.divisor()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, view};

    fn with_base(pairs: &[(&str, f64)], base_ms: u32) -> Ledbatpp {
        let mut ledbatpp = made!(Ledbatpp, pairs);
        ledbatpp.acked(&view(), &mut Window::new(10), &ack(1, base_ms * 1000));
        ledbatpp
    }

    fn packets(parts: i64) -> f64 {
        parts as f64 / PARTS as f64
    }

    #[test]
    fn the_gain_follows_the_base_rtt() {
        for (base_ms, divisor) in [(1, 16), (8, 15), (20, 6), (60, 2), (120, 1), (500, 1)] {
            assert_eq!(with_base(&[], base_ms).divisor(), divisor, "{base_ms} ms");
        }
    }

    #[test]
    fn beyond_the_target_a_round_trip_takes_the_excess_away_but_half_at_most() {
        let ledbatpp = with_base(&[], 20);
        for (queueing_ms, wanted) in [(0, 1.0 / 6.0), (59, 1.0 / 6.0), (66, 1.0 / 6.0 - 5.0)] {
            let change = packets(ledbatpp.change(50 * PARTS, queueing_ms * 1000));
            assert!((change - wanted).abs() < 1e-3, "{queueing_ms} ms: {change}");
        }
        assert!((packets(ledbatpp.change(50 * PARTS, 90_000)) - (1.0 / 6.0 - 25.0)).abs() < 1e-3);
        assert!((packets(ledbatpp.change(50 * PARTS, 120_000)) + 25.0).abs() < 1e-3);
    }

    /// All packets of a window are acknowledged with this RTT, one at a time.
    fn round(it: &mut Ledbatpp, view: &mut View, window: &mut Window, rtt_ms: u64) {
        view.srtt_us_x8 = rtt_ms as u32 * 8_000;
        for _ in 0..window.cwnd {
            it.acked(view, window, &ack(1, rtt_ms as u32 * 1000));
            let _ = it.cong_avoid(view, window, 1);
        }
        view.now += Duration::from_millis(rtt_ms);
    }

    #[test]
    fn a_round_trip_below_the_target_adds_the_gain() {
        let mut ledbatpp = with_base(&[("slowdowns", 0.0)], 60);
        let mut window = Window { ssthresh: 20, ..Window::new(20) };
        let mut view = view();
        for _ in 0..10 {
            round(&mut ledbatpp, &mut view, &mut window, 100);
        }
        let all = f64::from(window.cwnd) + packets(ledbatpp.parts);
        // The part of a packet that the window has is not acknowledged in its round.
        assert!((24.8..=25.0).contains(&all), "{all}");
    }

    #[test]
    fn the_first_slow_start_ends_at_three_quarters_of_the_target() {
        for (rtt_ms, ended) in [(60 + 45, false), (60 + 46, true)] {
            let mut ledbatpp = with_base(&[], 60);
            let (mut window, mut view) = (Window::new(10), view());
            round(&mut ledbatpp, &mut view, &mut window, 60);
            assert_eq!(window.cwnd, 15, "half of Reno's, for the gain is a half");
            round(&mut ledbatpp, &mut view, &mut window, rtt_ms);
            round(&mut ledbatpp, &mut view, &mut window, rtt_ms);
            assert_eq!(window.ssthresh < Window::INFINITE, ended);
        }
    }

    #[test]
    fn slowdowns_come_two_round_trips_after_slow_start_and_then_after_nine_times_their_length() {
        let mut ledbatpp = with_base(&[], 120);
        let (mut window, mut view) = (Window::new(40), view());
        window.ssthresh = 40;
        let mut low = Vec::new();
        let began = at_ms(0);
        for _ in 0..200 {
            round(&mut ledbatpp, &mut view, &mut window, 120);
            if window.cwnd == LEAST {
                low.push(view.now.since(began).as_nanos() / 120_000_000);
            }
        }
        // Due after two round trips, and two at the least window; then 4, 8, 16, 32 and the threshold: six in all. The next is due
        // 54 after that.
        assert_eq!(low[..4], [3, 4, 63, 64], "{low:?}");
    }

    #[test]
    fn a_loss_halves_the_window_and_in_a_slowdown_the_one_to_go_back_to() {
        let mut ledbatpp = with_base(&[], 20);
        assert_eq!(ledbatpp.ssthresh(&view(), &mut Window::new(40)), 20);
        ledbatpp.slowdown = Slowdown::Grows { since: at_ms(0) };
        assert_eq!(ledbatpp.ssthresh(&view(), &mut Window { ssthresh: 40, ..Window::new(4) }), 20);
    }
}
