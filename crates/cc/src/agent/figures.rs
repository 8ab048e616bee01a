//! Figures of a step: sums that ACKs add to, and the table of what is made of them at the step's end.

use crate::{CaState, View, Window};
use dragstrip_units::Instant;

/// Number of figures.
pub const COUNT: usize = FIGURES.len();

/// Values of a step, in the order of [`FIGURES`].
pub type Figures = [f64; COUNT];

/// A figure of a step. An observation is its value within `low` and `high`.
#[derive(Clone, Copy, Debug)]
pub struct FigureRow {
    /// Name, with its unit where it has one.
    pub name: &'static str,
    /// Least value of an observation.
    pub low: f64,
    /// Greatest value of an observation.
    pub high: f64,
    /// Meaning: no sentence, no full stop.
    pub meaning: &'static str,
}

const fn row(name: &'static str, low: f64, high: f64, meaning: &'static str) -> FigureRow {
    FigureRow { name, low, high, meaning }
}

/// All figures. Bounds of Aurora's three are those of PCC-RL's `common/sender_obs.py`.
pub const FIGURES: &[FigureRow] = &[
    row("time_s", 0.0, 1e6, "time since the start of the run"),
    row("interval_s", 0.0, 1e3, "length of the step"),
    row("throughput_mbps", 0.0, 1e6, "payload delivered for the first time, per time"),
    row("goodput_mbps", 0.0, 1e6, "payload acknowledged in order, per time"),
    row("sent_mbps", 0.0, 1e6, "payload sent, retransmissions included, per time"),
    row("lost_mbps", 0.0, 1e6, "payload marked lost, per time"),
    row("loss_ratio", 0.0, 1.0, "packets marked lost, of those delivered or marked lost"),
    row("marked_ratio", 0.0, 1.0, "packets with a congestion mark, of those delivered"),
    row("rtt_ms", 0.0, 1e6, "mean round-trip time; the last known without a sample"),
    row("rtt_last_ms", 0.0, 1e6, "last sample of the round-trip time"),
    row("rtt_max_ms", 0.0, 1e6, "longest sample of the round-trip time; as rtt_ms without one"),
    row("rtt_min_ms", 0.0, 1e6, "shortest round-trip time of the connection"),
    row("srtt_ms", 0.0, 1e6, "smoothed round-trip time"),
    row("latency_gradient", -1.0, 10.0, "slope of the round-trip time: least squares, s/s"),
    row("latency_ratio", 1.0, 1e4, "rtt_ms by the shortest rtt_ms of the connection"),
    row("send_ratio", 0.0, 1e3, "sent_mbps by throughput_mbps; 1 without a delivery"),
    row("throughput_ratio", 0.0, 1.0, "throughput_mbps by the greatest of the connection"),
    row("pacing_ratio", 0.0, 10.0, "pacing_mbps by the greatest throughput_mbps"),
    row("lost_ratio", 0.0, 50.0, "5 lost_mbps by the greatest throughput_mbps"),
    row("acked_ratio", 0.0, 100.0, "packets delivered by the window"),
    row("rtt_ratio", 0.0, 1.0, "rtt_min_ms by srtt_ms"),
    row("delay_metric", 0.0, 1.0, "1.25 rtt_ratio, at most 1"),
    row("cwnd_packets", 0.0, 1e9, "congestion window"),
    row("ssthresh_packets", 0.0, 1e9, "slow-start threshold; 1e9 while there is none"),
    row("in_flight_packets", 0.0, 1e9, "packets in flight"),
    row("pacing_mbps", 0.0, 1e6, "pacing rate; 0 while there is none"),
    row("throughput_max_mbps", 0.0, 1e6, "greatest throughput_mbps of the connection"),
    row("delivered_packets", 0.0, 1e9, "packets delivered"),
    row("lost_packets", 0.0, 1e9, "packets marked lost"),
    row("sent_packets", 0.0, 1e9, "packets sent, retransmissions included"),
    row("rtt_samples", 0.0, 1e9, "ACKs that gave a round-trip time"),
    row("growth_packets", 0.0, 1e9, "packets by whose delivery a window may grow"),
    row("cwnd_limited", 0.0, 1.0, "1: the window was the limit at the last chance to grow"),
    row("recovery_state", 0.0, 4.0, "0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss"),
    row("reductions", 0.0, 1e9, "reductions and timeouts begun"),
    row("mss_bytes", 0.0, 65_536.0, "payload of a full segment"),
    row("action", -1e12, 1e12, "action of the step"),
];

/// Position of the figure called `name`.
#[must_use]
pub fn position(name: &str) -> Option<usize> {
    FIGURES.iter().position(|row| row.name == name)
}

/// Cumulative counters at the beginning of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    delivered: u64,
    marked: u64,
    lost: u64,
    sent: u64,
    in_order: u64,
}

/// Sums of a step and memory of the connection.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    began: Instant,
    then: Counters,
    rtt_samples: u32,
    rtt_us: u64,
    rtt_max_us: u32,
    rtt_last_us: u32,
    /// Least-squares sums over (seconds since the step began, seconds of RTT).
    slope: [f64; 4],
    growth: u32,
    limited: bool,
    reductions: u32,
    // Of the whole connection.
    rtt_min_us: u32,
    mean_ms: f64,
    mean_min_ms: f64,
    throughput_max: f64,
}

impl Sums {
    pub const fn new() -> Self {
        Self {
            began: Instant::ZERO,
            then: Counters { delivered: 0, marked: 0, lost: 0, sent: 0, in_order: 0 },
            rtt_samples: 0,
            rtt_us: 0,
            rtt_max_us: 0,
            rtt_last_us: 0,
            slope: [0.0; 4],
            growth: 0,
            limited: false,
            reductions: 0,
            rtt_min_us: u32::MAX,
            mean_ms: 0.0,
            mean_min_ms: f64::INFINITY,
            throughput_max: 0.0,
        }
    }

    /// The connection is open.
    pub const fn start(&mut self, view: &View) {
        self.began = view.now;
        self.then.delivered = view.delivered;
        self.then.in_order = view.snd_una;
    }

    #[inline]
    pub fn sample(&mut self, now: Instant, rtt_us: u32) {
        self.rtt_samples += 1;
        self.rtt_us += u64::from(rtt_us);
        self.rtt_last_us = rtt_us;
        self.rtt_max_us = self.rtt_max_us.max(rtt_us);
        self.rtt_min_us = self.rtt_min_us.min(rtt_us);
        let at = now.as_nanos().saturating_sub(self.began.as_nanos()) as f64 / 1e9;
        let rtt = f64::from(rtt_us) / 1e6;
        let [t, r, tr, tt] = &mut self.slope;
        (*t, *r, *tr, *tt) = (*t + at, *r + rtt, *tr + at * rtt, *tt + at * at);
    }

    #[inline]
    pub const fn grow(&mut self, packets: u32, limited: bool) {
        self.growth += packets;
        self.limited = limited;
    }

    /// A reduction or the time after a timeout begins.
    pub const fn reduce(&mut self) {
        self.reductions += 1;
    }

    /// Mean round-trip time of the last step that had a sample, µs; 0 before the first.
    pub const fn mean_us(&self) -> f64 {
        self.mean_ms * 1e3
    }

    fn gradient(&self) -> f64 {
        let n = f64::from(self.rtt_samples);
        let [t, r, tr, tt] = self.slope;
        let spread = n * tt - t * t;
        if self.rtt_samples < 2 || spread <= 1e-18 { 0.0 } else { (n * tr - t * r) / spread }
    }

    /// Ends the step and begins the next one. `sent` counts the segments sent so far.
    pub fn close(&mut self, view: &View, window: &Window, sent: u64, action: f64) -> Figures {
        let now = Counters {
            delivered: view.delivered,
            marked: view.delivered_ce,
            lost: view.lost,
            sent,
            in_order: view.snd_una,
        };
        let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let delivered = since(now.delivered, self.then.delivered);
        let lost = since(now.lost, self.then.lost);
        let sent_packets = since(now.sent, self.then.sent);
        let marked = since(now.marked, self.then.marked);
        let interval = since(view.now.as_nanos(), self.began.as_nanos()) / 1e9;
        let mss = f64::from(view.mss);
        let mbps =
            |packets: f64| if interval > 0.0 { packets * mss * 8e-6 / interval } else { 0.0 };
        let in_order = since(now.in_order, self.then.in_order) / mss;
        let throughput = mbps(delivered);
        if self.rtt_samples > 0 {
            self.mean_ms = self.rtt_us as f64 / f64::from(self.rtt_samples) / 1e3;
            self.mean_min_ms = self.mean_min_ms.min(self.mean_ms);
        }
        self.throughput_max = self.throughput_max.max(throughput);
        let max = self.throughput_max;
        let of_max = |value: f64| if max > 0.0 { value / max } else { 0.0 };
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let pacing =
            if window.pacing_rate == u64::MAX { 0.0 } else { window.pacing_rate as f64 * 8e-6 };
        let srtt = f64::from(view.srtt_us_x8) / 8e3;
        let rtt_min =
            if self.rtt_min_us == u32::MAX { 0.0 } else { f64::from(self.rtt_min_us) / 1e3 };
        let rtt_max =
            if self.rtt_samples > 0 { f64::from(self.rtt_max_us) / 1e3 } else { self.mean_ms };
        let rtt_ratio = if srtt > 0.0 { (rtt_min / srtt).min(1.0) } else { 1.0 };
        let threshold =
            if window.ssthresh >= Window::INFINITE { 1e9 } else { f64::from(window.ssthresh) };
        let state = match view.state {
            CaState::Open => 0.0,
            CaState::Disorder => 1.0,
            CaState::Cwr => 2.0,
            CaState::Recovery => 3.0,
            CaState::Loss => 4.0,
        };
        let figures = [
            view.now.as_nanos() as f64 / 1e9,
            interval,
            throughput,
            mbps(in_order),
            mbps(sent_packets),
            mbps(lost),
            share(lost, lost + delivered),
            share(marked, delivered),
            self.mean_ms,
            f64::from(self.rtt_last_us) / 1e3,
            rtt_max,
            rtt_min,
            srtt,
            self.gradient(),
            if self.mean_min_ms.is_finite() { self.mean_ms / self.mean_min_ms } else { 1.0 },
            if delivered > 0.0 { sent_packets / delivered } else { 1.0 },
            of_max(throughput),
            of_max(pacing),
            of_max(5.0 * mbps(lost)),
            share(delivered, f64::from(window.cwnd)),
            rtt_ratio,
            (1.25 * rtt_ratio).min(1.0),
            f64::from(window.cwnd),
            threshold,
            f64::from(view.in_flight()),
            pacing,
            max,
            delivered,
            lost,
            sent_packets,
            f64::from(self.rtt_samples),
            f64::from(self.growth),
            f64::from(u8::from(self.limited)),
            state,
            f64::from(self.reductions),
            mss,
            action,
        ];
        (self.began, self.then) = (view.now, now);
        (self.rtt_samples, self.rtt_us, self.rtt_max_us) = (0, 0, 0);
        (self.slope, self.growth, self.reductions) = ([0.0; 4], 0, 0);
        figures
    }
}
