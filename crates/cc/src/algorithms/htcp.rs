//! H-TCP: grows faster the longer ago the last loss was, and gives up what the queue held.
//!
//! - **Paper**: Leith and Shorten, "H-TCP: TCP for High-Speed and Long-Distance Networks", PFLDnet 2004;
//!   draft-leith-tcp-htcp-06.
//! - **Equations**: per window `cwnd += α`, with `α = 2 (1 − β) (1 + 10 (Δ − 1 s) + ((Δ − 1 s) / 2)²)`, where Δ is the time
//!   since the last loss, and 1 within the first second; scaled by the RTT in units of 100 ms. On congestion
//!   `ssthresh = β cwnd`, with `β = RTTmin / RTTmax` from 0.5 to 0.8, or 0.5 if the throughput has
//!   changed by more than a fifth since the loss before.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance, steeper with time
//!       ▲                                  │ loss or ECN echo: ssthresh = max(β cwnd, 2), Δ = 0
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from the paper**, as Linux does: the first backoff by RTTs only arms that mode; RTTs are whole ticks;
//!   the ACK at which the window steps is not counted; the scale is within 1/2 and 10.
//! - **Source of the details**: Linux 6.1 `tcp_htcp.c`. Parameters are those of the module.

use crate::{
    About, Ack, CaState, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// α and β are multiples of 1/128.
const ONE: u32 = 128;
/// β's bounds: 0.5 and 0.8.
const BETA: (u32, u32) = (ONE / 2, 102);

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "htcp",
    file: file!(),
    models: "Linux 6.1, tcp_htcp.c",
    module: Some("tcp_htcp"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[
        Parameter::new(
            "use_rtt_scaling",
            1.0,
            Range::Switch,
            "",
            "growth does not depend on the RTT",
            "module parameter",
        ),
        Parameter::new(
            "use_bandwidth_switch",
            1.0,
            Range::Switch,
            "",
            "half is given up where the throughput has changed by more than a fifth",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new("alpha", Unit::Packets, "growth per window"),
        Variable::new("beta", Unit::Ratio, "kept of the window at the last reduction"),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT, in ticks"),
        Variable::new("max_rtt", Unit::Nanoseconds, "largest RTT, fading, in ticks"),
    ],
    needs: Needs::NOTHING,
};

/// The achieved throughput, packets per second.
#[derive(Clone, Debug, Default)]
struct Throughput {
    /// Packets since `since`, jiffies.
    packets: u32,
    since: u64,
    smoothed: u32,
    /// The largest since the last loss, and the one when the loss before came.
    largest: u32,
    before: u32,
}

/// State restored when a reduction is undone.
#[derive(Clone, Copy, Debug)]
struct Undo {
    last_congestion: u64,
    max_rtt: u32,
    throughput_before: u32,
}

/// Linux's H-TCP.
#[derive(Clone, Debug)]
pub struct Htcp {
    use_rtt_scaling: bool,
    use_bandwidth_switch: bool,
    /// /128.
    alpha: u32,
    /// /128.
    beta: u32,
    /// The next reduction may be by the ratio of RTTs.
    by_rtt: bool,
    /// Packets of the last ACK.
    packets: u32,
    /// Jiffies; 0 when unknown.
    min_rtt: u32,
    max_rtt: u32,
    /// Time of the last reduction, jiffies.
    last_congestion: u64,
    throughput: Throughput,
    undo: Option<Undo>,
}

impl Htcp {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            use_rtt_scaling: parameters.switch("use_rtt_scaling"),
            use_bandwidth_switch: parameters.switch("use_bandwidth_switch"),
            alpha: ONE,
            beta: BETA.0,
            by_rtt: false,
            packets: 1,
            min_rtt: 0,
            max_rtt: 0,
            last_congestion: 0,
            throughput: Throughput::default(),
            undo: None,
        }
    }

    /// `measure_rtt`.
    fn measure_rtt(&mut self, view: &View, rtt: u32) {
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if view.state == CaState::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            // A jump by more than 20 ms is not believed.
            if rtt <= self.max_rtt + view.hz.div_ceil(50) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// `measure_achieved_throughput`: a sample per window.
    fn measure_throughput(&mut self, view: &View, window: &Window, packets: u32) {
        let now = view.jiffies();
        if !matches!(view.state, CaState::Open | CaState::Disorder) {
            (self.throughput.packets, self.throughput.since) = (0, now);
            return;
        }
        self.throughput.packets = self.throughput.packets.saturating_add(packets);
        let passed = view.jiffies_since(self.throughput.since);
        let growth = (self.alpha / ONE).max(1);
        let whole =
            i64::from(self.throughput.packets) >= i64::from(window.cwnd) - i64::from(growth);
        if !whole || passed < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        let sample = self.throughput.packets.wrapping_mul(view.hz) / passed;
        if view.jiffies_since(self.last_congestion) / self.min_rtt <= 3 {
            (self.throughput.smoothed, self.throughput.largest) = (sample, sample);
        } else {
            let smoothed = self.throughput.smoothed.wrapping_mul(3).wrapping_add(sample) / 4;
            self.throughput.smoothed = smoothed;
            self.throughput.largest = self.throughput.largest.max(smoothed);
        }
        (self.throughput.packets, self.throughput.since) = (0, now);
    }

    /// `htcp_alpha_update`.
    fn update_alpha(&mut self, view: &View) {
        let (hz, since) = (view.hz, view.jiffies_since(self.last_congestion));
        let mut factor = 1;
        if since > hz {
            let late = since - hz;
            // 32 bits, wrapping, as in the kernel.
            let square = (late / 2).wrapping_mul(late / 2) / hz;
            factor = 1 + late.wrapping_mul(10).wrapping_add(square) / hz;
        }
        if self.use_rtt_scaling && self.min_rtt > 0 {
            let scale = ((hz << 3) / self.min_rtt.saturating_mul(10)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = (2 * factor).wrapping_mul(ONE - self.beta);
        if self.alpha == 0 {
            self.alpha = ONE;
        }
    }

    /// `htcp_beta_update`.
    fn update_beta(&mut self, view: &View) {
        if self.use_bandwidth_switch {
            let (now, before) = (5 * u64::from(self.throughput.largest), self.throughput.before);
            self.throughput.before = self.throughput.largest;
            if !(4 * u64::from(before)..=6 * u64::from(before)).contains(&now) {
                self.beta = BETA.0;
                self.by_rtt = false;
                return;
            }
        }
        let worthwhile = self.min_rtt > view.hz.div_ceil(100) && self.max_rtt > 0;
        self.beta = if self.by_rtt && worthwhile {
            ((self.min_rtt << 7) / self.max_rtt).clamp(BETA.0, BETA.1)
        } else {
            self.by_rtt = true;
            BETA.0
        };
    }
}

impl CongestionControl for Htcp {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.last_congestion = view.jiffies();
    }

    /// `htcp_recalc_ssthresh`.
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.update_beta(view);
        self.update_alpha(view);
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt) * 95 / 100;
        }
        ((u64::from(window.cwnd) * u64::from(self.beta) / u64::from(ONE)) as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        if window.in_slow_start() {
            // What is left over at the threshold is not handed on.
            window.slow_start(acked);
            return Response::None;
        }
        if window.cwnd_cnt.wrapping_mul(self.alpha) / ONE >= window.cwnd {
            if window.cwnd < window.clamp {
                window.cwnd += 1;
            }
            window.cwnd_cnt = 0;
            self.update_alpha(view);
        } else {
            window.cwnd_cnt += self.packets;
        }
        self.packets = 1;
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        match new {
            CaState::Open => {
                if self.undo.take().is_some() {
                    self.last_congestion = view.jiffies();
                }
            }
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.undo = Some(Undo {
                    last_congestion: self.last_congestion,
                    max_rtt: self.max_rtt,
                    throughput_before: self.throughput.before,
                });
                self.last_congestion = view.jiffies();
            }
            CaState::Disorder => {}
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        if view.state == CaState::Open {
            self.packets = ack.packets;
        }
        if let Some(rtt_us) = ack.rtt_us.filter(|&us| us > 0) {
            // usecs_to_jiffies rounds up.
            self.measure_rtt(view, view.jiffies_in(rtt_us));
        }
        if self.use_bandwidth_switch {
            self.measure_throughput(view, window, ack.packets);
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        if let Some(undo) = self.undo.take() {
            self.last_congestion = undo.last_congestion;
            self.max_rtt = undo.max_rtt;
            self.throughput.before = undo.throughput_before;
        }
        window.cwnd.max(view.prior_cwnd)
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("alpha", f64::from(self.alpha) / f64::from(ONE));
        tell("beta", f64::from(self.beta) / f64::from(ONE));
        for (name, ticks) in [("min_rtt", self.min_rtt), ("max_rtt", self.max_rtt)] {
            if ticks > 0 {
                tell(name, f64::from(ticks) / f64::from(view.hz) * 1e9);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, made, view};

    fn kernel(ms: u64) -> View {
        View { hz: 250, now: at_ms(ms), ..view() }
    }

    /// α in 1/128, so long after a loss.
    fn alpha(rtt_ms: u32, beta: u32, ms: u64) -> u32 {
        let mut htcp = Htcp { min_rtt: rtt_ms.div_ceil(4), beta, ..made!(Htcp) };
        htcp.update_alpha(&kernel(ms));
        htcp.alpha
    }

    /// Values of the kernel's own file, β 0.5.
    #[test]
    fn growth_gets_steeper_with_time() {
        for (rtt_ms, ms, expected) in [
            (100, 1_000, 1),
            (100, 1_500, 6),
            (100, 2_000, 11),
            (100, 3_000, 22),
            (100, 5_000, 45),
            (100, 11_000, 126),
            (40, 2_000, 4),
            (40, 3_000, 8),
            (10, 3_000, 2),
            (10, 11_000, 15),
            (200, 1_000, 2),
            (200, 2_000, 22),
        ] {
            assert_eq!(alpha(rtt_ms, 64, ms), expected * ONE, "{rtt_ms} ms, after {ms} ms");
        }
        assert_eq!(alpha(100, 102, 2_000), 572);
        let mut plain = Htcp { min_rtt: 10, ..made!(Htcp, &[("use_rtt_scaling", 0.0)]) };
        plain.update_alpha(&kernel(2_000));
        assert_eq!(plain.alpha, 11 * ONE);
    }

    #[test]
    fn with_a_steady_throughput_the_second_reduction_is_by_the_ratio_of_rtts() {
        let mut htcp = Htcp { min_rtt: 10, max_rtt: 15, ..made!(Htcp) };
        (htcp.throughput.largest, htcp.throughput.before) = (1_000, 1_000);
        assert_eq!(htcp.ssthresh(&kernel(100), &mut Window::new(100)), 50);
        htcp.max_rtt = 15;
        assert_eq!(htcp.ssthresh(&kernel(200), &mut Window::new(100)), 66);
        assert_eq!(htcp.beta, 85);
    }

    #[test]
    fn another_throughput_than_at_the_loss_before_costs_half() {
        for (largest, beta) in [(799, 64), (800, 85), (1_200, 85), (1_201, 64)] {
            let mut htcp = Htcp { min_rtt: 10, max_rtt: 15, by_rtt: true, ..made!(Htcp) };
            (htcp.throughput.largest, htcp.throughput.before) = (largest, 1_000);
            let _ = htcp.ssthresh(&kernel(100), &mut Window::new(100));
            assert_eq!(htcp.beta, beta, "{largest} after 1000");
        }
    }

    #[test]
    fn the_largest_rtt_fades() {
        let mut htcp = Htcp { min_rtt: 10, max_rtt: 110, ..made!(Htcp) };
        let _ = htcp.ssthresh(&kernel(100), &mut Window::new(100));
        assert_eq!(htcp.max_rtt, 105);
    }

    /// Values of the kernel's own file: α 1, an ACK for two packets.
    #[test]
    fn the_ack_at_which_the_window_steps_is_not_counted() {
        let mut htcp = made!(Htcp);
        let mut window = Window { ssthresh: 2, ..Window::new(10) };
        for expected in [6, 7] {
            let (mut acks, before) = (0, window.cwnd);
            while window.cwnd == before {
                htcp.packets = 2;
                let _ = htcp.cong_avoid(&kernel(0), &mut window, 2);
                acks += 1;
            }
            assert_eq!(acks, expected);
        }
    }

    #[test]
    fn an_undone_reduction_goes_back_to_the_time_of_the_last() {
        let (mut htcp, mut window) = (made!(Htcp), Window::new(100));
        htcp.set_state(&kernel(5_000), &mut window, CaState::Recovery);
        assert_eq!(htcp.last_congestion, 1_250);
        let _ = htcp.undo_cwnd(&kernel(5_100), &mut window);
        htcp.set_state(&kernel(5_100), &mut window, CaState::Open);
        assert_eq!(htcp.last_congestion, 0);
        htcp.set_state(&kernel(6_000), &mut window, CaState::Recovery);
        htcp.set_state(&kernel(6_100), &mut window, CaState::Open);
        assert_eq!(htcp.last_congestion, 1_525, "Δ counts from the end of the reduction");
    }

    #[test]
    fn a_sudden_rtt_is_not_believed() {
        let mut htcp = made!(Htcp);
        for rtt in [10, 30, 15, 20] {
            htcp.measure_rtt(&kernel(0), rtt);
        }
        assert_eq!((htcp.min_rtt, htcp.max_rtt), (10, 20));
    }
}
