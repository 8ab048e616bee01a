//! CUBIC: the window is a cubic function of the time since the last reduction.
//!
//! - **Paper**: Ha, Rhee and Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", ACM SIGOPS
//!   Operating Systems Review 42(5), 2008; RFC 9438.
//! - **Equations**: `W(t) = C (t − K)³ + Wmax`, `K = ∛((Wmax − cwnd) / C)`, `C = 0.4`; on congestion
//!   `Wmax = cwnd`, `ssthresh = 0.7 cwnd`; if the window had not reached the last `Wmax` again,
//!   `Wmax = 0.85 cwnd` (fast convergence). Where Reno would be faster, be Reno: `W_est` grows by
//!   `3 (1 − β) / (1 + β)` packets per round trip.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh, or HyStart──▶ below Wmax ──t = K──▶ probing above Wmax
//!       ▲                                        (concave)              (convex)
//!       │                                            ▲                     │
//!       │                                            └── loss or ECN echo ─┘
//!       └──── timeout: everything is forgotten, Wmax included ─────────────┘
//! ```
//! - **Departs from RFC 9438**, as Linux does: β is 717/1024; the target is `W(t + minRTT)`, not
//!   clamped to 1.5 cwnd but growth is held to one packet per two delivered; the reduction takes
//!   `cwnd`, not the flight size; the Reno-friendly slope is 8/15 packet per round trip indefinitely,
//!   RFC 9438 §4.3 goes to 1 at the former window; before the first loss the window grows by at
//!   least 5 % per round trip; time is in jiffies and the curve is computed once per jiffy.
//! - **Departs from Linux 6.1**: the seeds of the cube root are computed, not the kernel's
//!   hand-tuned 64 bytes (`K` differs by less than 0.19 %); products that the kernel keeps in 32
//!   bits are kept in 64 (its beta product overflows at 6 million packets).
//! - **Beyond Linux**, if asked for: HyStart++ as the first slow start, as RFC 9438 §4.10 recommends (`hystart_pp`, RFC 9406;
//!   `slow_start/hystart_pp.rs`).
//! - **Source of the details**: Linux 6.1 `tcp_cubic.c`. The other parameters are those of the module.
//! - **Variants**, by the rules of the stack profile ([`CubicCurve`], [`HyStartClock`](crate::HyStartClock)): Linux
//!   2.6.27 has version 2.2, without HyStart: ACKs are counted and corrected by their ratio to packets, no
//!   bounds on the growth, the curve computed whenever the window has changed, no correction for idle times, delays in
//!   whole jiffies; an undone reduction goes back to `Wmax`. 2.6.38 has the same curve and HyStart in jiffies.

use super::root::cubic_root;
use crate::slow_start::hystart::{self, HyStart};
use crate::slow_start::hystart_pp::{HYSTART_PP, HyStartPp};
use crate::{
    About, Ack, CaState, CongestionControl, CubicCurve, Event, Needs, Parameter, Parameters, Range,
    Response, Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Denominator of beta (`BICTCP_BETA_SCALE`).
const BETA_SCALE: u32 = 1024;
/// The curve's clock ticks 2^10 times a second (`BICTCP_HZ`).
const CLOCK_BITS: u32 = 10;
/// The cube of the clock, times the 2^10 that `bic_scale` is scaled by.
const CUBE_BITS: u32 = 10 + 3 * CLOCK_BITS;

/// The same in BIC.
pub const FAST_CONVERGENCE: Parameter = Parameter::new(
    "fast_convergence",
    1.0,
    Range::Switch,
    "",
    "W_max falls further when the window had not reached it again",
    "module parameter",
);

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "cubic",
    file: file!(),
    models: "Linux 2.6.27, 2.6.38 and 6.1, tcp_cubic.c",
    module: Some("tcp_cubic"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[
        FAST_CONVERGENCE,
        Parameter::new(
            "beta",
            717.0,
            Range::Whole(512, 1023),
            "1/1024",
            "kept of the window on a reduction",
            "module parameter",
        ),
        Parameter::new(
            "initial_ssthresh",
            0.0,
            Range::Whole(0, 1 << 30),
            "packets",
            "threshold at the start; 0: none; only without HyStart",
            "module parameter",
        ),
        Parameter::new(
            "bic_scale",
            41.0,
            Range::Whole(1, 1024),
            "",
            "C in 1/1024, times 1/10",
            "module parameter",
        ),
        Parameter::new(
            "tcp_friendliness",
            1.0,
            Range::Switch,
            "",
            "never slower than Reno would be",
            "module parameter",
        ),
        Parameter::new(
            "hystart",
            1.0,
            Range::Switch,
            "",
            "HyStart may end slow start",
            "module parameter",
        ),
        hystart::DETECT,
        hystart::LOW_WINDOW,
        hystart::ACK_DELTA_US,
        hystart::DELAY_SHIFT,
        hystart::EARLY_ROUNDS,
        HYSTART_PP,
    ],
    variables: &[
        Variable::new(
            "w_max",
            Unit::Packets,
            "window at the last reduction, less when fast convergence gave way",
        ),
        Variable::new("origin", Unit::Packets, "height of the curve's plateau"),
        Variable::new("k", Unit::Nanoseconds, "from the curve's beginning to its plateau"),
        Variable::new("t", Unit::Nanoseconds, "since the curve began"),
        Variable::new("w_est", Unit::Packets, "window that Reno would have"),
        Variable::new("cnt", Unit::Packets, "to be delivered for one packet of growth"),
        Variable::new(
            "delay_min",
            Unit::Nanoseconds,
            "least RTT since the connection or the last timeout",
        ),
    ],
    needs: Needs::NOTHING,
};

/// Linux's CUBIC, with or without HyStart.
#[derive(Clone, Debug)]
pub struct Cubic {
    rule: CubicCurve,
    /// Kept of the window on congestion, /1024 (`beta`, 717).
    beta: u32,
    /// Packets in 1/8 of `cwnd` per packet of Reno growth (`beta_scale`, 15).
    reno_scale: u32,
    /// C in 1/1024, times 10: `bic_scale * 10` (410).
    curve_scale: u32,
    /// 2^40 / `curve_scale`: K³ per packet below Wmax.
    cube_factor: u64,
    /// `initial_ssthresh`, packets; 0 is none. Only without HyStart, as in the kernel.
    initial_ssthresh: u32,
    fast_convergence: bool,
    tcp_friendliness: bool,
    first: SlowStart,

    /// One packet more per `cnt` delivered.
    cnt: u32,
    /// Wmax, packets; 0 before the first reduction.
    last_max_cwnd: u32,
    /// The window when the curve was last computed.
    last_cwnd: u32,
    /// Minimum RTT, µs; 0 when unknown.
    delay_min_us: u32,
    /// Time of the last computation of the curve, jiffies.
    last_time: u64,
    epoch: Option<Epoch>,
    /// Packets per ACK × 16, an average over 16 (version 2.2 only; `delayed_ack`).
    delayed_ack_x16: u32,
}

/// The first slow start; after a timeout HyStart again, else the plain one.
#[derive(Clone, Debug)]
enum SlowStart {
    Plain,
    HyStart(HyStart),
    HyStartPp(HyStartPp),
}

/// The time since congestion avoidance resumed after a reduction.
#[derive(Clone, Debug)]
struct Epoch {
    /// Jiffies.
    start: u64,
    /// Height of the plateau, packets.
    origin: u32,
    /// Time to the plateau, 1/1024 s.
    k: u32,
    /// Packets delivered and not yet turned into Reno growth.
    ack_cnt: u32,
    /// Reno's window (W_est).
    tcp_cwnd: u32,
}

impl Cubic {
    /// Draws no random numbers. (`beta` below 512: the kernel's friendliness loop would not end at a window of 1.)
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, rules: &Rules, _stream: Stream) -> Self {
        let beta = parameters.whole("beta");
        let curve_scale = 10 * parameters.whole("bic_scale");
        let hystart = HyStart::new(parameters, rules.hystart);
        let first = match hystart {
            _ if parameters.switch(HYSTART_PP.name) => SlowStart::HyStartPp(HyStartPp::new()),
            Some(hystart) if parameters.switch("hystart") => SlowStart::HyStart(hystart),
            Some(_) | None => SlowStart::Plain,
        };
        Self {
            rule: rules.cubic,
            beta,
            reno_scale: 8 * (BETA_SCALE + beta) / 3 / (BETA_SCALE - beta),
            curve_scale,
            cube_factor: (1 << CUBE_BITS) / u64::from(curve_scale),
            initial_ssthresh: parameters.whole("initial_ssthresh"),
            fast_convergence: parameters.switch("fast_convergence"),
            tcp_friendliness: parameters.switch("tcp_friendliness"),
            first,
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            delay_min_us: 0,
            last_time: 0,
            epoch: None,
            delayed_ack_x16: 2 << 4,
        }
    }

    /// `bictcp_reset`.
    fn reset(&mut self, view: &View) {
        self.cnt = 0;
        self.last_max_cwnd = 0;
        self.last_cwnd = 0;
        self.delay_min_us = 0;
        self.last_time = 0;
        self.epoch = None;
        self.delayed_ack_x16 = 2 << 4;
        if let SlowStart::HyStart(hystart) = &mut self.first {
            hystart.reset(view);
        }
    }

    /// `bictcp_update`: computes `cnt` for this ACK.
    fn update(&mut self, view: &View, cwnd: u32, acked: u32) {
        match self.rule {
            CubicCurve::PerJiffy => self.update_per_jiffy(view, cwnd, acked),
            CubicCurve::PerWindow => self.update_per_window(view, cwnd, acked),
        }
    }

    fn update_per_jiffy(&mut self, view: &View, cwnd: u32, acked: u32) {
        let now = view.jiffies();
        if let Some(epoch) = &mut self.epoch {
            epoch.ack_cnt = epoch.ack_cnt.wrapping_add(acked);
        }
        if self.last_cwnd == cwnd && now - self.last_time <= u64::from(view.hz / 32) {
            return;
        }
        if self.epoch.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            self.cnt = self.curve(view, cwnd, acked);
        }
        if self.tcp_friendliness {
            self.keep_up_with_reno(cwnd);
        }
        // 1.5 times per round trip at most.
        self.cnt = self.cnt.max(2);
    }

    /// The cubic part: packets to be delivered per packet of growth.
    fn curve(&mut self, view: &View, cwnd: u32, acked: u32) -> u32 {
        let now = view.jiffies();
        let epoch = match &mut self.epoch {
            Some(epoch) => epoch,
            none => {
                none.insert(Epoch::start(now, cwnd, acked, self.last_max_cwnd, self.cube_factor))
            }
        };
        let ahead = u64::from(view.jiffies_in(self.delay_min_us));
        let t = ((now - epoch.start + ahead) << CLOCK_BITS) / u64::from(view.hz);

        let off = t.abs_diff(u64::from(epoch.k));
        // Wraps as the kernel's does, 347 s beyond K.
        let cube =
            u64::from(self.curve_scale).wrapping_mul(off).wrapping_mul(off).wrapping_mul(off);
        let delta = (cube >> CUBE_BITS) as u32;
        let target = if t < u64::from(epoch.k) {
            epoch.origin.wrapping_sub(delta)
        } else {
            epoch.origin.wrapping_add(delta)
        };

        let cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        match self.rule {
            // Nothing known of the path: at least 5 % per round trip.
            CubicCurve::PerJiffy if self.last_max_cwnd == 0 => cnt.min(20),
            CubicCurve::PerJiffy | CubicCurve::PerWindow => cnt,
        }
    }

    /// `bictcp_update` of version 2.2: for every ACK unless the window has just been looked at; the count
    /// of ACKs is turned into one of packets by the ratio between them.
    fn update_per_window(&mut self, view: &View, cwnd: u32, acked: u32) {
        let now = view.jiffies();
        if let Some(epoch) = &mut self.epoch {
            epoch.ack_cnt = epoch.ack_cnt.wrapping_add(acked);
        }
        if self.last_cwnd == cwnd && now - self.last_time <= u64::from(view.hz / 32) {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        self.cnt = self.curve(view, cwnd, acked);
        if self.tcp_friendliness {
            self.keep_up_with_reno(cwnd);
        }
        self.cnt = (self.cnt.saturating_mul(16) / self.delayed_ack_x16).max(1);
    }

    /// Returns the delay in an ACK's RTT; [`CubicCurve::PerWindow`] keeps the ratio of packets to ACKs by the way.
    #[inline]
    fn delay_us(&mut self, view: &View, ack: &Ack) -> Option<u32> {
        match self.rule {
            CubicCurve::PerJiffy => ack.rtt_us,
            CubicCurve::PerWindow if ack.packets == 0 => None,
            CubicCurve::PerWindow => {
                if view.state == CaState::Open {
                    self.delayed_ack_x16 += ack.packets;
                    self.delayed_ack_x16 -= (self.delayed_ack_x16 - ack.packets) >> 4;
                }
                let jiffy_us = 1_000_000 / view.hz;
                ack.rtt_us.map(|rtt_us| rtt_us / jiffy_us * jiffy_us)
            }
        }
    }

    /// Right after a recovery the queue is still full: its delays are no base delays.
    #[inline]
    fn is_right_after_recovery(&self, view: &View) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| view.jiffies() - epoch.start < u64::from(view.hz))
    }

    /// RFC 9438 §4.3, "Reno-Friendly Region".
    fn keep_up_with_reno(&mut self, cwnd: u32) {
        let Some(epoch) = &mut self.epoch else { return };
        let delta = (u64::from(cwnd) * u64::from(self.reno_scale)) >> 3;
        let delta = delta.min(u64::from(u32::MAX)) as u32;
        while epoch.ack_cnt > delta {
            epoch.ack_cnt -= delta;
            epoch.tcp_cwnd += 1;
        }
        if epoch.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (epoch.tcp_cwnd - cwnd));
        }
    }

    /// `cwnd * (numerator / denominator)` without the kernel's overflow.
    fn part(cwnd: u32, numerator: u32, denominator: u32) -> u32 {
        (u64::from(cwnd) * u64::from(numerator) / u64::from(denominator)) as u32
    }
}

impl Epoch {
    fn start(now: u64, cwnd: u32, acked: u32, last_max_cwnd: u32, cube_factor: u64) -> Self {
        let (k, origin) = if last_max_cwnd <= cwnd {
            (0, cwnd)
        } else {
            (cubic_root(cube_factor.saturating_mul(u64::from(last_max_cwnd - cwnd))), last_max_cwnd)
        };
        Self { start: now, origin, k, ack_cnt: acked, tcp_cwnd: cwnd }
    }
}

impl CongestionControl for Cubic {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.reset(view);
        if matches!(self.first, SlowStart::Plain) && self.initial_ssthresh > 0 {
            window.ssthresh = self.initial_ssthresh.max(2);
        }
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        self.epoch = None;
        self.last_max_cwnd = if window.cwnd < self.last_max_cwnd && self.fast_convergence {
            Self::part(window.cwnd, BETA_SCALE + self.beta, 2 * BETA_SCALE)
        } else {
            window.cwnd
        };
        Self::part(window.cwnd, self.beta, BETA_SCALE).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = if window.in_slow_start() {
            match &mut self.first {
                SlowStart::HyStartPp(first) => first.grow(view, window, acked),
                SlowStart::HyStart(hystart) => {
                    hystart.growing(view);
                    window.slow_start(acked)
                }
                SlowStart::Plain => window.slow_start(acked),
            }
        } else {
            acked
        };
        if avoidance_packets > 0 {
            self.update(view, window.cwnd, avoidance_packets);
            window.additive_increase(self.cnt, avoidance_packets);
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.reset(view);
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        match self.rule {
            CubicCurve::PerJiffy => window.cwnd.max(view.prior_cwnd),
            CubicCurve::PerWindow => window.cwnd.max(self.last_max_cwnd),
        }
    }

    fn cwnd_event(&mut self, view: &View, _window: &mut Window, event: Event) {
        // Idle time does not advance the curve.
        if let (CubicCurve::PerJiffy, Event::TxStart, Some(epoch)) =
            (self.rule, event, &mut self.epoch)
        {
            let now = view.jiffies();
            let last_sent = view.last_data_sent.as_nanos() / (1_000_000_000 / u64::from(view.hz));
            epoch.start = (epoch.start + now.saturating_sub(last_sent)).min(now);
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        if let SlowStart::HyStartPp(first) = &mut self.first {
            first.acked(view, window, ack.rtt_us);
        }
        let Some(delay_us) = self.delay_us(view, ack) else { return };
        if self.is_right_after_recovery(view) {
            return;
        }
        let delay_us = delay_us.max(1);
        if self.delay_min_us == 0 || self.delay_min_us > delay_us {
            self.delay_min_us = delay_us;
        }
        if let SlowStart::HyStart(hystart) = &mut self.first {
            hystart.acked(view, window, delay_us, self.delay_min_us);
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let nonzero = |value: u32| (value > 0).then(|| f64::from(value));
        let mut show = |name, value: Option<f64>| value.into_iter().for_each(|it| tell(name, it));
        show("w_max", nonzero(self.last_max_cwnd));
        if let Some(Epoch { start, origin, k, ack_cnt: _, tcp_cwnd }) = self.epoch {
            let age = view.jiffies() - start;
            show("origin", Some(f64::from(origin)));
            show("k", Some(f64::from(k) * 1e9 / f64::from(1 << CLOCK_BITS)));
            show("t", Some(age as f64 * 1e9 / f64::from(view.hz)));
            show("w_est", Some(f64::from(tcp_cwnd)));
        }
        show("cnt", nonzero(self.cnt));
        show("delay_min", nonzero(self.delay_min_us).map(|us| us * 1e3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, options, view};

    fn cubic(pairs: &[(&str, f64)]) -> Cubic {
        made!(Cubic, pairs)
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Cubic>() <= 160, "{}", size_of::<Cubic>());
    }

    #[test]
    fn the_constants_are_the_kernels() {
        let cubic = cubic(&[]);
        assert_eq!(cubic.reno_scale, 15);
        assert_eq!(cubic.curve_scale, 410);
        assert_eq!(cubic.cube_factor, 2_681_735_677);
    }

    #[test]
    fn beta_is_717_of_1024_and_the_threshold_at_least_2() {
        for (cwnd, ssthresh) in [(100, 70), (3, 2), (1, 2), (10, 7), (1000, 700)] {
            let mut window = Window::new(cwnd);
            assert_eq!(cubic(&[]).ssthresh(&view(), &mut window), ssthresh);
        }
    }

    #[test]
    fn fast_convergence_gives_way_when_the_window_did_not_recover() {
        let mut with = cubic(&[]);
        let mut without = cubic(&[("fast_convergence", 0.0)]);
        for cubic in [&mut with, &mut without] {
            cubic.ssthresh(&view(), &mut Window::new(100));
            cubic.ssthresh(&view(), &mut Window::new(90));
        }
        assert_eq!(with.last_max_cwnd, 76); // 90 * 1741 / 2048
        assert_eq!(without.last_max_cwnd, 90);
    }

    /// RFC 9438 §4.2: K = ∛(Wmax (1 − β) / C). Within 0.3 % in seconds.
    #[test]
    fn k_is_that_of_the_rfc() {
        for w_max in [20_u32, 100, 1_000, 10_000, 100_000] {
            let mut cubic = cubic(&[]);
            let mut window = Window::new(w_max);
            window.cwnd = cubic.ssthresh(&view(), &mut window);
            window.ssthresh = window.cwnd;
            let deficit = f64::from(w_max - window.cwnd);
            let _ = cubic.cong_avoid(&view(), &mut window, 1);
            let k_s = f64::from(cubic.epoch.unwrap().k) / 1024.0;
            let exact_s = libm::cbrt(deficit / 0.4);
            assert!((k_s / exact_s - 1.0).abs() < 0.003, "{w_max}: {k_s} s, RFC {exact_s} s");
        }
    }

    /// One packet lost at 1000 packets and 100 ms: the window follows W(t) of RFC 9438 eq. 1.
    #[test]
    fn the_window_follows_the_curve() {
        let mut cubic = cubic(&[("tcp_friendliness", 0.0)]);
        let mut view = view();
        let mut window = Window::new(1_000);
        window.cwnd = cubic.ssthresh(&view, &mut window);
        window.ssthresh = window.cwnd;
        let k_s = libm::cbrt(300.0 / 0.4);
        let mut due = 0;
        for ms in 0..15_000_u64 {
            view.now = at_ms(ms);
            due += window.cwnd; // packets delivered per 100 ms
            cubic.acked(&view, &mut window, &ack(1, 100_000));
            let _ = cubic.cong_avoid(&view, &mut window, due / 100);
            due %= 100;
            if ms > 0 && ms % 1_000 == 0 {
                let t = ms as f64 / 1_000.0 - k_s;
                let exact = 1_000.0 + 0.4 * t * t * t;
                let error = f64::from(window.cwnd) / exact - 1.0;
                assert!(error.abs() < 0.006, "{ms} ms: {} against {exact}", window.cwnd);
            }
        }
    }

    /// Fact 3 of the fact sheet: 15/8 of a window delivered per packet of Reno growth.
    #[test]
    fn with_short_round_trips_it_grows_like_reno_at_8_fifteenths() {
        let mut cubic = cubic(&[]);
        let mut view = view();
        let mut window = Window::new(100);
        window.cwnd = cubic.ssthresh(&view, &mut window);
        window.ssthresh = window.cwnd;
        // 10 ms per round trip: K is 4.2 s, so in 100 round trips the curve gains 17 packets.
        for round in 0..100_u64 {
            for n in 0..window.cwnd {
                view.now = dragstrip_units::Instant::from_nanos(
                    round * 10_000_000 + u64::from(n) * 10_000_000 / u64::from(window.cwnd),
                );
                let _ = cubic.cong_avoid(&view, &mut window, 1);
            }
        }
        let reno = 70.0 + 100.0 * 8.0 / 15.0;
        let error = f64::from(window.cwnd) - reno;
        assert!(error.abs() < 4.0, "{} against {reno}", window.cwnd);
    }

    #[test]
    fn before_the_first_loss_it_grows_by_at_least_5_percent() {
        let mut cubic = cubic(&[]);
        let mut window = Window::new(40);
        window.ssthresh = 40; // HyStart's doing
        let _ = cubic.cong_avoid(&view(), &mut window, 1);
        assert_eq!((cubic.cnt, cubic.epoch.unwrap().k), (20, 0));
    }

    #[test]
    fn growth_never_exceeds_one_packet_per_two_delivered() {
        let mut cubic = cubic(&[]);
        let mut view = view();
        let mut window = Window::new(10);
        window.ssthresh = 10;
        let _ = cubic.cong_avoid(&view, &mut window, 1);
        view.now = at_ms(60_000);
        let _ = cubic.cong_avoid(&view, &mut window, 1);
        assert_eq!(cubic.cnt, 2);
    }

    #[test]
    fn delays_in_the_first_second_of_an_epoch_are_not_believed() {
        let mut cubic = cubic(&[]);
        let mut view = view();
        let mut window = Window::new(100);
        window.cwnd = cubic.ssthresh(&view, &mut window);
        window.ssthresh = window.cwnd;
        view.now = at_ms(5_000);
        let _ = cubic.cong_avoid(&view, &mut window, 1);
        view.now = at_ms(5_999);
        cubic.acked(&view, &mut window, &ack(1, 30_000));
        assert_eq!(cubic.delay_min_us, 0);
        view.now = at_ms(6_000);
        cubic.acked(&view, &mut window, &ack(1, 50_000));
        assert_eq!(cubic.delay_min_us, 50_000);
    }

    #[test]
    fn idle_time_does_not_advance_the_curve() {
        let mut cubic = cubic(&[]);
        let mut view = view();
        let mut window = Window::new(100);
        window.cwnd = cubic.ssthresh(&view, &mut window);
        window.ssthresh = window.cwnd;
        view.now = at_ms(1_000);
        let _ = cubic.cong_avoid(&view, &mut window, 1);
        view.now = at_ms(10_000);
        view.last_data_sent = at_ms(3_000);
        cubic.cwnd_event(&view, &mut window, Event::TxStart);
        assert_eq!(cubic.epoch.as_ref().unwrap().start, 8_000);
        view.now = at_ms(20_000);
        cubic.cwnd_event(&view, &mut window, Event::TxStart);
        assert_eq!(cubic.epoch.as_ref().unwrap().start, 20_000, "never in the future");
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut cubic = cubic(&[]);
        let mut window = Window::new(100);
        cubic.acked(&view(), &mut window, &ack(1, 10_000));
        cubic.ssthresh(&view(), &mut window);
        cubic.set_state(&view(), &mut window, CaState::Loss);
        assert_eq!((cubic.last_max_cwnd, cubic.delay_min_us), (0, 0));
    }

    #[test]
    fn an_application_limited_window_does_not_grow() {
        let mut view = view();
        view.is_cwnd_limited = false;
        let mut window = Window::new(10);
        let _ = cubic(&[]).cong_avoid(&view, &mut window, 10);
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn a_beta_the_kernel_would_hang_on_is_refused() {
        let error = Parameters::new(&ABOUT, &options(&[("beta", 300.0)])).unwrap_err();
        assert_eq!(
            error,
            crate::UnknownAlgorithm::Parameter {
                algorithm: "cubic",
                parameter: "beta".to_owned(),
                expected: "a whole number from 512 to 1023, in 1/1024: 0.5 to 0.999".to_owned(),
            }
        );
    }
}
