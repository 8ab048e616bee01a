//! CUBIC as in FreeBSD 9.
//!
//! - **Paper**: Ha, Rhee and Xu, "CUBIC", ACM SIGOPS Operating Systems Review 42(5), 2008, in the form of
//!   draft-rhee-tcpm-cubic-02.
//! - **Equations**: `W(t) = C (t − K)³ + Wmax`, `K = ∛((1 − β) Wmax / C)`, `C` = 102/256, `β` = 204/256; on congestion
//!   `Wmax = cwnd`, `cwnd = β Wmax`, and if the window had not reached the last `Wmax` again, `Wmax` = 230/256 of it first. Set
//!   once per window of bytes acknowledged, to `W(t + RTT)`, or to the window that a Reno with β would have, if that is more.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd > ssthresh──▶ below Wmax ──t = K──▶ probing above Wmax
//!       ▲                           (concave)             (convex)
//!       │                               ▲                    │
//!       │                               └── fast recovery ───┘
//!       └───────── timeout: cwnd = 1, the curve begins again ┘
//! ```
//! - **Departs from Linux's CUBIC** (`cubic`), as FreeBSD does: no HyStart; slow start is NewReno's; the first
//!   reduction is to a half; the curve's time begins when recovery ends; the window jumps to the curve; RTTs are whole ticks
//!   of the smoothed RTT.
//! - Reno's window is computed in 32 bits, and wraps after 76 ticks with full Ethernet segments: that region is nearly
//!   never used. It is FreeBSD's arithmetic on amd64 that is followed.
//! - **Departs from FreeBSD 9**: an ECN echo is taken for a loss.
//! - **Source of the details**: FreeBSD 9.3 `cc/cc_cubic.c`, `cc_cubic.h`. It has no parameters but the host's.

use crate::bsd::{ByteCounting, ByteWindow};
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Parameters, Response, Rules, Signal,
    Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "cubic-freebsd",
    file: file!(),
    models: "FreeBSD 9.3, cc_cubic.c",
    module: None,
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[
        Variable::new(
            "w_max",
            Unit::Bytes,
            "window at the last reduction, less when fast convergence gave way",
        ),
        Variable::new("k", Unit::Nanoseconds, "from the curve's beginning to its plateau"),
        Variable::new("t", Unit::Nanoseconds, "since the curve began"),
        Variable::new("mean_rtt", Unit::Nanoseconds, "mean smoothed RTT before the last reduction"),
        Variable::new("min_rtt", Unit::Nanoseconds, "least smoothed RTT"),
    ],
    needs: Needs::NOTHING,
};

/// Fractional bits (`CUBIC_SHIFT`).
const SHIFT: u32 = 8;
/// β, 1 − β, C and what fast convergence keeps, with [`SHIFT`] bits.
const BETA: u64 = 204;
const ONE_SUB_BETA: u64 = 51;
const C: i64 = 102;
const FAST_CONVERGENCE: u64 = 230;
/// Smoothed RTTs before this many samples are not trusted (`CUBIC_MIN_RTT_SAMPLES`).
const MIN_RTT_SAMPLES: u32 = 8;

/// FreeBSD's CUBIC.
#[derive(Clone, Debug)]
pub struct CubicFreebsd {
    bytes: ByteWindow,
    growth: ByteCounting,
    /// Time to the plateau, 1/256 s.
    k: i64,
    /// Sum and number of smoothed RTTs since the last reduction, ticks.
    rtt_sum: u64,
    rtt_count: u64,
    rtt_mean: u32,
    /// 0: unknown.
    rtt_min: u32,
    rtt_samples: u32,
    /// The window at the last reduction, and at the one before, bytes.
    max_cwnd: u64,
    prev_max_cwnd: u64,
    reductions: u32,
    /// Timeouts in a row.
    timeouts: u32,
    /// Start of the curve, ticks.
    epoch: u64,
}

impl CubicFreebsd {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            bytes: ByteWindow::default(),
            growth: ByteCounting::default(),
            k: 0,
            rtt_sum: 0,
            rtt_count: 0,
            rtt_mean: 1,
            rtt_min: 0,
            rtt_samples: 0,
            max_cwnd: 0,
            prev_max_cwnd: 0,
            reductions: 0,
            timeouts: 0,
            epoch: 0,
        }
    }

    /// `cubic_record_rtt`.
    fn record_rtt(&mut self, view: &View) {
        if self.rtt_samples < MIN_RTT_SAMPLES {
            return;
        }
        let tick_us = 1_000_000 / view.hz;
        let rtt = view.srtt_us_x8 / 8 / tick_us;
        if rtt < self.rtt_min || self.rtt_min == 0 {
            self.rtt_min = rtt.max(1);
            self.rtt_mean = self.rtt_mean.max(self.rtt_min);
        }
        self.rtt_sum += u64::from(rtt);
        self.rtt_count += 1;
    }

    /// The window by the curve and by Reno, once per window acknowledged.
    fn follow_curve(&mut self, view: &View, window: &Window) {
        let mss = u64::from(view.mss);
        let ticks = view.jiffies() - self.epoch;
        let reno = self.reno_window(ticks as u32, view.mss);
        let cubic = self.cubic_window(ticks + u64::from(self.rtt_mean), view);
        self.growth.window_done = false;
        let cwnd = if cubic < reno { reno } else { self.bytes.cwnd.max(cubic) };
        self.bytes.cwnd = cwnd.clamp(mss, u64::from(window.clamp) * mss);
        if self.reductions == 0 {
            self.max_cwnd = self.max_cwnd.max(self.bytes.cwnd);
        }
    }

    /// `tf_cwnd`: in 32 bits up to the division.
    fn reno_window(&self, ticks: u32, mss: u32) -> u64 {
        let slope = (3 * ONE_SUB_BETA as u32).wrapping_mul(ticks).wrapping_mul(mss) << SHIFT;
        let grown = slope / ((2 << SHIFT) - ONE_SUB_BETA as u32) / self.rtt_mean;
        (self.max_cwnd * BETA + u64::from(grown)) >> SHIFT
    }

    /// `cubic_cwnd`.
    fn cubic_window(&self, ticks: u64, view: &View) -> u64 {
        let hz = i64::from(view.hz);
        let off = (((ticks as i64) << SHIFT) - self.k * hz) / hz;
        let cube = off.wrapping_mul(off).wrapping_mul(off);
        let delta = cube.wrapping_mul(C).wrapping_mul(i64::from(view.mss)) >> (4 * SHIFT);
        (delta + self.max_cwnd as i64).max(0) as u64
    }
}

/// `cubic_k`: ∛((1 − β) Wmax / C) in 1/256 s, by a parabola over [1/8, 1].
fn plateau_after(max_packets: u64) -> i64 {
    let mut scaled = (((max_packets * ONE_SUB_BETA) << SHIFT) / C as u64) as i64;
    let mut octaves = 0;
    while scaled >= 256 {
        scaled >>= 3;
        octaves += 1;
    }
    // 1.072302 s + 0.3812513 − 0.46946116 s².
    let root = ((scaled * 275) >> SHIFT) + 98 - (((scaled * scaled * 120) >> SHIFT) >> SHIFT);
    root << octaves
}

impl CongestionControl for CubicFreebsd {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.bytes.adopt(view, window);
        self.max_cwnd = self.bytes.cwnd;
        self.epoch = view.jiffies();
    }

    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.bytes.adopt(view, window);
        let cwnd = self.bytes.cwnd;
        self.bytes.ssthresh = if self.reductions == 0 { cwnd >> 1 } else { (cwnd * BETA) >> SHIFT };
        self.reductions += 1;
        self.prev_max_cwnd = self.max_cwnd;
        self.max_cwnd = cwnd;
        self.bytes.ssthresh_in_packets(view)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.bytes.adopt(view, window);
        self.growth.count(view, &self.bytes, acked);
        let due = view.abc_limit == 0 || self.growth.window_done;
        if self.bytes.in_slow_start() || (due && self.rtt_min == 0) {
            self.growth.grow(view, &mut self.bytes, window, acked);
        } else if due && view.is_cwnd_limited {
            self.follow_curve(view, window);
        }
        self.bytes.export(view, window);
        Response::None
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::Loss => {
                self.growth.restart();
                self.timeouts += 1;
                if self.timeouts >= 2 {
                    self.reductions += 1;
                }
                self.epoch = view.jiffies();
            }
            Event::CompleteCwr => self.end_recovery(view, window),
            Event::TxStart
            | Event::CwndRestart
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        self.bytes.adopt(view, window);
        if ack.packets > 0 {
            self.timeouts = 0;
            self.rtt_samples = self.rtt_samples.saturating_add(1);
        }
        self.record_rtt(view);
    }

    fn phase(&self, view: &View, _window: &Window) -> &'static str {
        if view.state == CaState::Loss || self.bytes.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let tick_ns = 1e9 / f64::from(view.hz);
        tell("w_max", self.max_cwnd as f64);
        tell("k", self.k as f64 * 1e9 / f64::from(1 << SHIFT));
        tell("t", (view.jiffies() - self.epoch) as f64 * tick_ns);
        tell("mean_rtt", f64::from(self.rtt_mean) * tick_ns);
        if self.rtt_min > 0 {
            tell("min_rtt", f64::from(self.rtt_min) * tick_ns);
        }
    }
}

impl CubicFreebsd {
    /// `cubic_post_recovery`.
    fn end_recovery(&mut self, view: &View, window: &mut Window) {
        self.growth.restart();
        if self.max_cwnd < self.prev_max_cwnd {
            self.max_cwnd = (self.max_cwnd * FAST_CONVERGENCE) >> SHIFT;
        }
        // Unless so little is in flight that a burst would follow.
        if self.bytes.keep_threshold(window) {
            self.bytes.cwnd = ((self.max_cwnd * BETA) >> SHIFT).max(1);
            self.bytes.export(view, window);
        }
        self.epoch = view.jiffies();
        if self.rtt_count > 0 && self.rtt_sum >= self.rtt_count {
            self.rtt_mean = (self.rtt_sum / self.rtt_count) as u32;
        }
        (self.rtt_sum, self.rtt_count) = (0, 0);
        self.k = plateau_after(self.max_cwnd / u64::from(view.mss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, view};

    const MSS: u64 = 1_448;

    fn start(cwnd: u32) -> (CubicFreebsd, View, Window) {
        let mut cubic = made!(CubicFreebsd);
        let mut window = Window::new(cwnd);
        let mut view = view();
        view.srtt_us_x8 = 8 * 50_000;
        cubic.init(&view, &mut window);
        for _ in 0..MIN_RTT_SAMPLES {
            cubic.acked(&view, &mut window, &ack(2, 50_000));
        }
        (cubic, view, window)
    }

    /// Three duplicate ACKs, and the recovery they begin ends.
    fn lose(cubic: &mut CubicFreebsd, view: &View, window: &mut Window) {
        window.ssthresh = cubic.ssthresh(view, window);
        window.cwnd = window.ssthresh;
        cubic.cwnd_event(view, window, Event::CompleteCwr);
    }

    /// ∛(0.2 · W / 0.4) seconds: 100 packets 3.68 s, 1000 packets 7.94 s. The parabola is within 2 % of it.
    #[test]
    fn the_plateau_is_reached_after_k() {
        for (packets, seconds) in [(10, 1.71), (100, 3.68), (1_000, 7.94)] {
            let k = plateau_after(packets) as f64 / 256.0;
            assert!((k / seconds - 1.0).abs() < 0.02, "{packets}: {k} s");
        }
    }

    #[test]
    fn the_first_threshold_is_half_the_next_four_fifths() {
        let (mut cubic, view, mut window) = start(100);
        assert_eq!(cubic.ssthresh(&view, &mut window), 50);
        assert_eq!(cubic.ssthresh(&view, &mut window), 79);
    }

    #[test]
    fn recovery_ends_at_four_fifths_of_the_window_it_began_with() {
        let (mut cubic, view, mut window) = start(100);
        lose(&mut cubic, &view, &mut window);
        assert_eq!(window.cwnd, 79, "204/256 of 100");
        assert_eq!(window.ssthresh, 50);
        lose(&mut cubic, &view, &mut window);
        // 79.7 < 100: fast convergence to 71.6, and 204/256 of that.
        assert_eq!(cubic.max_cwnd, (100 * MSS * 204 / 256) * 230 / 256);
        assert_eq!(window.cwnd, 57);
    }

    #[test]
    fn the_window_is_set_once_per_window_acknowledged() {
        let (mut cubic, mut view, mut window) = start(100);
        lose(&mut cubic, &view, &mut window);
        view.now = at_ms(2_000);
        for _ in 0..39 {
            let _ = cubic.cong_avoid(&view, &mut window, 2);
            assert_eq!(window.cwnd, 79);
        }
        let _ = cubic.cong_avoid(&view, &mut window, 2);
        // 100 − 0.4 (3.68 − 2.05)³ = 98.3.
        assert_eq!(window.cwnd, 98);
    }

    /// 153 · ticks · 1448 · 256 is beyond 32 bits after 76 ticks of any rate.
    #[test]
    fn the_friendly_window_wraps() {
        let (mut cubic, view, mut window) = start(100);
        lose(&mut cubic, &view, &mut window);
        let base = cubic.reno_window(0, 1448);
        assert!(cubic.reno_window(75, 1448) > cubic.reno_window(76, 1448));
        assert!(cubic.reno_window(76, 1448) < base + MSS / 50);
    }
}
