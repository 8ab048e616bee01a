//! Copa: aims at a rate of one packet per δ of queueing delay, and drains the queue every few round trips to see that delay.
//!
//! - **Paper**: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, section 2.
//! - **Equations**: `dq = RTTstanding − RTTmin`, where `RTTstanding` is the least RTT of the last half smoothed RTT and `RTTmin` that of the
//!   last 10 s; target rate `1 / (δ dq)`. An ACK adds `v / (δ cwnd)` packets while `cwnd / RTTstanding` is at most the target, else takes
//!   as many away. Packets are paced at `2 cwnd / RTTstanding`. δ = 0.5.
//! - **Velocity** `v`: once per round trip the window is held against that of a round trip ago; from the third time in a row that it has gone
//!   the same way on, `v` doubles, else it is 1.
//! - **States**:
//!
//! ```text
//!   slow start, × 2 ──rate > target──▶ default, δ = 0.5 ──not nearly empty for 5 RTT──▶ competitive: 1/δ + 1 per RTT,
//!       ▲                                  ▲                                             halved on a loss, 2 at least
//!       └────── timeout ──────             └──────────── queue nearly empty ─────────────────┘
//! ```
//! - **Nearly empty**: `dq` at most a tenth of what the largest RTT of the last four round trips exceeds `RTTmin` by, or one packet's time
//!   (`RTTstanding / cwnd`).
//! - **Losses** change nothing but δ in competitive mode; ECN echoes nothing at all.
//! - **Departs from the paper**: a round trip changes the window by at most itself, as the authors' genericCC has it
//!   (`v ≤ δ cwnd`); one packet is no queue, for an ACK covers two that wait for each other (the paper's receivers acknowledge each); a timeout begins slow start again, of which the paper says nothing. `RTTmin`, `RTTstanding` and the largest RTT are kept
//!   in three samples each (Nichols' windowed filter), which finds a true sample of its time but not always the least.
//! - **Other implementations differ**: mvfst has no competitive mode and takes the latest RTT; genericCC takes a competitive loss for two in
//!   δ. **Held against none of them.**

use crate::windowed_max::WindowedMax;
use crate::{
    About, CaState, CongestionControl, Needs, Parameter, Parameters, Range, RateSample, Response,
    Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::{Instant, Stream};

/// Packets; the window never has fewer.
const LEAST: u32 = 2;
/// Parts of a packet.
const PARTS: i64 = 1 << 16;
/// `RTTmin` is looked for in so many ticks of [`ticks`]: 10 s.
const MIN_WINDOW: u32 = 1_000_000;
/// A tick, ns: u32 holds 11 hours of them.
const TICK_NS: u64 = 10_000;
/// Round trips in a row in one direction before the velocity doubles.
const SAME_WAY: u8 = 3;
/// Round trips without a nearly empty queue that make the sender compete.
const NOT_EMPTY: u64 = 5;
/// Round trips of which the largest RTT counts.
const LARGEST: u32 = 4;
/// A queue below this part of the largest is nearly empty.
const NEARLY_EMPTY: u32 = 10;
/// Most that 1/δ grows to.
const INVERSE_MAX: f64 = 10_000.0;
/// Most that the velocity grows to; the window bounds it long before.
const VELOCITY_MAX: u32 = 1 << 20;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "copa",
    file: file!(),
    models: "NSDI 2018",
    module: None,
    signal: Signal::Delay,
    settles: true,
    parameters: &[
        Parameter::new(
            "delta",
            0.5,
            Range::Real(0.004, 1.0),
            "1/packet",
            "δ of the default mode: about 1/δ packets of each flow wait",
            "the paper",
        ),
        Parameter::new(
            "competitive",
            1.0,
            Range::Switch,
            "",
            "compete where others keep the queue full",
            "the paper",
        ),
    ],
    variables: &[
        Variable::new("standing_rtt", Unit::Nanoseconds, "least RTT of the last half smoothed RTT"),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT of the last 10 s"),
        Variable::new("delta", Unit::Ratio, "δ, less than its default in competitive mode"),
        Variable::new("velocity", Unit::Count, "v"),
    ],
    needs: Needs { pacing: true, ..Needs::NOTHING },
};

/// Copa.
#[derive(Clone, Debug)]
pub struct Copa {
    /// 1/δ of the default mode.
    default_inverse: f64,
    competes: bool,

    /// Greatest of `u32::MAX` − RTT, µs, which is the least RTT.
    min: Option<WindowedMax>,
    standing: WindowedMax,
    largest: WindowedMax,
    slow_start: bool,
    /// 1/δ.
    inverse: f64,
    /// Last time at which the queue was nearly empty.
    emptied: Instant,
    lost_in_round: bool,

    velocity: u32,
    /// The window a round trip ago, where it went from there, and how often in a row.
    before: u32,
    up: bool,
    same: u8,
    /// The round trip ends when this byte is acknowledged.
    round_end: u64,
    /// Fraction of a packet in the window.
    parts: i64,
}

impl Copa {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        let default_inverse = 1.0 / parameters.real("delta");
        Self {
            default_inverse,
            competes: parameters.switch("competitive"),
            min: None,
            standing: WindowedMax::default(),
            largest: WindowedMax::default(),
            slow_start: true,
            inverse: default_inverse,
            emptied: Instant::ZERO,
            lost_in_round: false,
            velocity: 1,
            before: 0,
            up: true,
            same: 0,
            round_end: 0,
            parts: 0,
        }
    }

    /// RTTs known by now, µs: the standing one and the least.
    fn rtts_us(&self) -> Option<(u32, u32)> {
        let least = self.min.as_ref()?.get();
        Some((u32::MAX - self.standing.get(), u32::MAX - least))
    }

    fn record(&mut self, view: &View, rtt_us: u32) {
        let rtt_us = rtt_us.max(1);
        let (now, inverted) = (ticks(view.now), u32::MAX - rtt_us);
        let srtt_us = (view.srtt_us_x8 >> 3).max(1);
        let srtt = (u64::from(srtt_us) * 1_000 / TICK_NS) as u32;
        match &mut self.min {
            Some(min) => {
                min.update(MIN_WINDOW, now, inverted);
                self.standing.update(srtt / 2, now, inverted);
                self.largest.update(srtt.saturating_mul(LARGEST), now, rtt_us);
            }
            none => {
                *none = Some(WindowedMax::new(now, inverted));
                self.standing = WindowedMax::new(now, inverted);
                self.largest = WindowedMax::new(now, rtt_us);
            }
        }
    }

    /// Default or competitive; looked at with every RTT.
    fn choose_mode(&mut self, view: &View, cwnd: u32, queueing_us: u32, least_us: u32) {
        let most_us = self.largest.get().saturating_sub(least_us);
        let packet_us = (least_us + queueing_us) / cwnd;
        let nearly_empty = queueing_us <= packet_us.max(most_us / NEARLY_EMPTY);
        if nearly_empty || self.slow_start || !self.competes {
            self.emptied = view.now;
            self.inverse = self.default_inverse;
        }
    }

    fn competitive(&self, view: &View) -> bool {
        let srtt_ns = u64::from(view.srtt_us_x8 >> 3) * 1_000;
        view.now.since(self.emptied).as_nanos() > NOT_EMPTY * srtt_ns
    }

    /// Once per round trip: velocity, and δ in competitive mode.
    fn end_round(&mut self, view: &View, cwnd: u32) {
        self.round_end = view.snd_nxt;
        let up = cwnd > self.before;
        if up == self.up && cwnd != self.before {
            self.same = self.same.saturating_add(1);
            if self.same >= SAME_WAY {
                self.velocity = (self.velocity * 2).min(VELOCITY_MAX);
            }
        } else {
            (self.velocity, self.same) = (1, 0);
        }
        (self.up, self.before) = (up, cwnd);
        if self.competitive(view) {
            self.inverse = if self.lost_in_round {
                (self.inverse / 2.0).max(self.default_inverse)
            } else {
                (self.inverse + 1.0).min(INVERSE_MAX)
            };
        }
        self.lost_in_round = false;
    }

    /// Returns the change of the window for `acked` packets, in parts of one: at most 1 for 1.
    fn step(&self, cwnd: u32, acked: u32) -> i64 {
        let change_per_packet = f64::from(self.velocity) * self.inverse / f64::from(cwnd);
        (change_per_packet.min(1.0) * f64::from(acked) * PARTS as f64) as i64
    }

    /// True when the rate is at most the target: `cwnd / standing <= 1 / (δ dq)`.
    fn below_target(&self, cwnd: u32, standing_us: u32, queueing_us: u32) -> bool {
        f64::from(cwnd) * f64::from(queueing_us) <= f64::from(standing_us) * self.inverse
    }
}

/// Converts a time to ticks of [`TICK_NS`].
fn ticks(now: Instant) -> u32 {
    (now.as_nanos() / TICK_NS).min(u64::from(u32::MAX)) as u32
}

impl CongestionControl for Copa {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.before = window.cwnd;
        self.round_end = view.snd_nxt;
        self.emptied = view.now;
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        window.ssthresh
    }

    fn cong_avoid(&mut self, _view: &View, _window: &mut Window, _acked: u32) -> Response {
        Response::None
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        match new {
            CaState::Recovery => self.lost_in_round = true,
            CaState::Loss => {
                self.lost_in_round = true;
                self.slow_start = true;
                (self.velocity, self.same, self.parts) = (1, 0, 0);
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {}
        }
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        if let Some(rtt_us) = sample.rtt_us {
            self.record(view, rtt_us);
        }
        let Some((standing_us, least_us)) = self.rtts_us() else { return Response::None };
        let queueing_us = standing_us.saturating_sub(least_us);
        self.choose_mode(view, window.cwnd, queueing_us, least_us);
        if view.snd_una >= self.round_end {
            self.end_round(view, window.cwnd);
        }
        let below = self.below_target(window.cwnd, standing_us, queueing_us);
        let acked = sample.acked_sacked;
        if self.slow_start && !below {
            self.slow_start = false;
            (self.velocity, self.same) = (1, 0);
        }
        let step = match (self.slow_start, below) {
            (true, _) => i64::from(acked) * PARTS,
            (false, true) => self.step(window.cwnd, acked),
            (false, false) => -self.step(window.cwnd, acked),
        };
        // A window that is not used says nothing about the path.
        if step < 0 || view.cwnd_limited(window) {
            let all = i64::from(window.cwnd) * PARTS + self.parts + step;
            let all = all.max(i64::from(LEAST) * PARTS).min(i64::from(window.clamp) * PARTS);
            window.cwnd = (all / PARTS) as u32;
            self.parts = all % PARTS;
        }
        let rate = 2 * u64::from(window.cwnd) * u64::from(view.mss) * 1_000_000;
        window.pacing_rate = (rate / u64::from(standing_us)).max(1);
        Response::None
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        if view.state == CaState::Loss { window.cwnd.max(view.prior_cwnd) } else { window.cwnd }
    }

    fn phase(&self, view: &View, _window: &Window) -> &'static str {
        match self.slow_start {
            true => "slow_start",
            false if self.competitive(view) => "competitive",
            false => "default",
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if let Some((standing_us, least_us)) = self.rtts_us() {
            tell("standing_rtt", f64::from(standing_us) * 1e3);
            tell("min_rtt", f64::from(least_us) * 1e3);
        }
        tell("delta", 1.0 / self.inverse);
        tell("velocity", f64::from(self.velocity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, made, view};

    /// Past slow start, with a least RTT of 40 ms and a smoothed one of so many.
    fn running(pairs: &[(&str, f64)], srtt_ms: u32) -> (Copa, View, Window) {
        let mut copa = made!(Copa, pairs);
        let (mut view, window) = (view(), Window::new(100));
        view.srtt_us_x8 = srtt_ms * 8_000;
        copa.record(&view, 40_000);
        copa.slow_start = false;
        (copa, view, window)
    }

    fn sample(acked: u32, rtt_ms: u32) -> RateSample {
        RateSample { acked_sacked: acked, rtt_us: Some(rtt_ms * 1_000), ..RateSample::default() }
    }

    fn packets(it: &Copa, window: &Window) -> f64 {
        f64::from(window.cwnd) + it.parts as f64 / PARTS as f64
    }

    #[test]
    fn the_target_is_the_standing_rtt_over_delta_times_the_queueing_delay() {
        let (it, _, _) = running(&[], 50);
        // 42 ms of RTT and 2 of queue: 42 packets; 50 and 10: 10 packets.
        for (standing_ms, queueing_ms, packets) in [(42, 2, 42), (50, 10, 10)] {
            assert!(it.below_target(packets, standing_ms * 1_000, queueing_ms * 1_000));
            assert!(!it.below_target(packets + 1, standing_ms * 1_000, queueing_ms * 1_000));
        }
    }

    #[test]
    fn an_ack_moves_the_window_towards_the_target_by_v_over_delta_and_window() {
        for (cwnd, rtt_ms, wanted) in [(100, 50, 99.98), (8, 50, 8.25), (100, 40, 100.02)] {
            let (mut it, mut view, mut window) = running(&[], 40);
            window.cwnd = cwnd;
            (view.now, it.round_end) = (at_ms(100), 1);
            let _ = it.cong_control(&view, &mut window, &sample(1, rtt_ms));
            assert!((packets(&it, &window) - wanted).abs() < 1e-3, "{cwnd}, {rtt_ms} ms");
        }
    }

    #[test]
    fn packets_are_paced_at_twice_the_window_per_standing_rtt() {
        let (mut it, mut view, mut window) = running(&[], 40);
        (view.now, it.round_end) = (at_ms(100), 1);
        let _ = it.cong_control(&view, &mut window, &sample(1, 50));
        assert_eq!(window.pacing_rate, 2 * u64::from(window.cwnd) * 1448 * 20);
    }

    #[test]
    fn slow_start_doubles_the_window_until_the_rate_exceeds_the_target() {
        let (mut it, mut view, mut window) = running(&[], 40);
        (it.slow_start, window.cwnd, it.round_end) = (true, 10, 1);
        let _ = it.cong_control(&view, &mut window, &sample(10, 40));
        assert_eq!((window.cwnd, it.phase(&view, &window)), (20, "slow_start"));
        // 2 · 50 / 10 = 10 packets are the target.
        view.now = at_ms(100);
        let _ = it.cong_control(&view, &mut window, &sample(1, 50));
        assert_eq!((window.cwnd, it.phase(&view, &window)), (19, "default"));
    }

    #[test]
    fn the_velocity_doubles_from_the_third_round_trip_in_one_direction() {
        let (mut it, view, _) = running(&[], 40);
        let mut velocities = Vec::new();
        for cwnd in [101, 102, 103, 104, 105, 105, 104, 103, 102, 103] {
            it.end_round(&view, cwnd);
            velocities.push(it.velocity);
        }
        // The window begins at 0 here; 105 again, and 103 after 102, are no way on.
        assert_eq!(velocities, [1, 1, 2, 4, 8, 1, 1, 1, 2, 1]);
    }

    #[test]
    fn the_window_at_most_doubles_in_a_round_trip() {
        let (mut it, _, _) = running(&[], 40);
        it.velocity = VELOCITY_MAX;
        assert_eq!(it.step(100, 7), 7 * PARTS);
    }

    #[test]
    fn a_queue_that_never_empties_makes_it_compete_and_a_loss_halves_what_it_gained() {
        let (mut it, mut view, mut window) = running(&[], 40);
        (it.emptied, view.now) = (at_ms(0), at_ms(201));
        assert_eq!(it.phase(&view, &window), "competitive");
        for wanted in [3.0, 4.0, 5.0, 6.0] {
            it.end_round(&view, 100);
            assert_eq!(it.inverse, wanted);
        }
        it.set_state(&view, &mut window, CaState::Recovery);
        it.end_round(&view, 100);
        assert_eq!(it.inverse, 3.0);
        it.set_state(&view, &mut window, CaState::Recovery);
        it.end_round(&view, 100);
        assert_eq!(it.inverse, 2.0, "the default's at least");
        it.inverse = 6.0;
        it.largest = WindowedMax::new(ticks(view.now), 80_000);
        it.choose_mode(&view, 100, 4_001, 40_000);
        assert_eq!(it.inverse, 6.0);
        it.choose_mode(&view, 100, 4_000, 40_000);
        assert_eq!((it.inverse, it.phase(&view, &window)), (2.0, "default"));
    }

    #[test]
    fn competing_can_be_turned_off() {
        let (mut it, mut view, window) = running(&[("competitive", 0.0)], 40);
        (it.emptied, view.now) = (at_ms(0), at_ms(500));
        it.choose_mode(&view, 100, 30_000, 40_000);
        assert_eq!(it.phase(&view, &window), "default");
    }

    #[test]
    fn a_loss_keeps_the_window_and_a_timeout_begins_again() {
        let (mut it, view, mut window) = running(&[], 40);
        assert_eq!(it.ssthresh(&view, &mut window), Window::INFINITE);
        it.set_state(&view, &mut window, CaState::Recovery);
        assert_eq!((window.cwnd, it.slow_start), (100, false));
        it.velocity = 8;
        it.set_state(&view, &mut window, CaState::Loss);
        assert_eq!((it.slow_start, it.velocity), (true, 1));
    }
}
