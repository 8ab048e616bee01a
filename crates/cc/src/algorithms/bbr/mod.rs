//! BBR version 1: models the path as a bandwidth and a round-trip time, and paces to the model.
//!
//! - **Paper**: Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, "BBR: Congestion-Based Congestion
//!   Control", CACM 60(2), 2017; draft-cardwell-iccrg-bbr-congestion-control-00.
//! - **Equations**: `bw = max(delivered / interval)` over 10 round trips, `min_rtt = min(rtt)` over
//!   10 s, `pacing_rate = pacing_gain · bw · 0.99`,
//!   `cwnd = ⌈cwnd_gain · bw · min_rtt⌉ + aggregation + 3 bursts`.
//! - **States**:
//!
//! ```text
//!   STARTUP ──bw grew < 25 % in 3 rounds──▶ DRAIN ──in flight ≤ BDP──▶ PROBE_BW ─┐ gains
//!   gain 2.89                               0.34                     ▲    │      │ 1.25 0.75 1×6
//!      ▲                                                             │    └──────┘
//!      └── pipe not full ── PROBE_RTT (4 packets, 200 ms and a round)┘
//!                              ▲ from any state: min_rtt not renewed for 10 s
//! ```
//! - Loss and ECN do not slow it down, except: the first round of a recovery conserves packets; two
//!   lossy intervals of one rate are taken for a policer, whose rate is then kept (`lt_bw`).
//! - **Departs from the paper**, as Linux 6.1 does: `lt_bw`; room for ACK aggregation
//!   (`extra_acked`); in-flight is corrected for packets already scheduled to leave (EDT); a
//!   `min_rtt` sample must be lower, not equal, to renew it; +2 packets in the 1.25 phase.
//! - **Departs from Linux 6.1**: products that could overflow 64 bits saturate (beyond 10^9
//!   packets in flight); a bandwidth sample above 256 packets/µs saturates instead of being cut.
//! - **Source of the details**: Linux 6.1 `tcp_bbr.c`. Like the module, it has no parameters.

pub(super) mod aggregation;
mod cwnd;
mod policer;

use self::aggregation::{Aggregation, SLOT_ROUNDS};
use self::cwnd::{CWND_MIN_TARGET, min_tso_segs};
use self::policer::{Change, Policer};
use crate::windowed_max::WindowedMax;
use crate::{
    About, CaState, CongestionControl, Event, Needs, Parameters, RateSample, Response, Rules, Unit,
    Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bbr",
    file: file!(),
    models: "Linux 6.1, tcp_bbr.c",
    parameters: &[],
    variables: &[
        Variable::new(
            "bandwidth",
            Unit::BitsPerSecond,
            "of the model: the largest delivery rate of ten rounds, or a policer's",
        ),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT of ten seconds"),
        Variable::new("pacing_gain", Unit::Ratio, "pacing rate to bandwidth"),
        Variable::new("cwnd_gain", Unit::Ratio, "window to bandwidth-delay product"),
        Variable::new(
            "cycle_phase",
            Unit::Count,
            "in PROBE_BW, the phase of the gain cycle: 0 probes, 1 drains, 2 to 7 cruise",
        ),
        Variable::new("round", Unit::Count, "packet-timed rounds so far"),
        Variable::new(
            "full_bandwidth",
            Unit::BitsPerSecond,
            "bandwidth that growth is judged against in STARTUP",
        ),
        Variable::new("policed", Unit::Count, "1 while the bandwidth is a policer's"),
        Variable::new("extra_acked", Unit::Packets, "added to the window for ACK aggregation"),
    ],
    needs: Needs { pacing: true, dice: true, ..Needs::NOTHING },
};

/// Bandwidths are in packets/µs · 2^24.
pub(super) const BW_SCALE: u32 = 24;
/// Gains are in 1/256.
const UNIT: u16 = 256;
/// 2/ln 2, the least gain that doubles the rate every round trip.
const HIGH_GAIN: u16 = (256 * 2885 / 1000 + 1) as u16;
/// Its inverse: drains in one round what STARTUP has queued.
const DRAIN_GAIN: u16 = (256 * 1000 / 2885) as u16;
/// Twice the BDP, to bear delayed and stretched ACKs.
const CWND_GAIN: u16 = 2 * UNIT;
/// Probe for more, drain what that queued, cruise.
const CYCLE: [u16; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The cycle starts in any phase but the one that drains.
const CYCLE_RAND: u32 = 7;
/// Rounds that the bandwidth filter remembers.
const BW_ROUNDS: u32 = 10;
const MIN_RTT_WINDOW_S: u64 = 10;
const PROBE_RTT_MS: u64 = 200;
/// 25 % more is growth; three rounds without fill the pipe.
const FULL_BW_THRESHOLD: u64 = 256 * 5 / 4;
const FULL_BW_CNT: u8 = 3;

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw {
        /// Index into [`CYCLE`].
        phase: u8,
    },
    ProbeRtt {
        /// `None` until no more than four packets are in flight.
        low: Option<LowInFlight>,
    },
}

/// The low water of PROBE_RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LowInFlight {
    /// 200 ms after it began, jiffies.
    until: u64,
    /// Whether a round trip has passed.
    round_done: bool,
}

/// Linux's BBR v1.
#[derive(Clone, Debug)]
pub struct Bbr {
    chance: Stream,
    mode: Mode,
    bw: WindowedMax,
    min_rtt_us: u32,
    /// Jiffies.
    min_rtt_stamp: u64,
    /// Packet-timed rounds; the current one ends when a packet sent after this many were
    /// delivered is delivered itself.
    rtt_cnt: u32,
    next_rtt_delivered: u64,
    /// When the PROBE_BW phase began, µs.
    cycle_us: u64,
    prev_state: CaState,
    packet_conservation: bool,
    round_start: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    in_probe_rtt: bool,
    full_bw_reached: bool,
    full_bw_cnt: u8,
    full_bw: u32,
    pacing_gain: u16,
    cwnd_gain: u16,
    /// The window before recovery or PROBE_RTT cut it.
    prior_cwnd: u32,
    policer: Policer,
    aggregation: Aggregation,
}

impl Bbr {
    /// `stream` picks the phase that PROBE_BW starts with.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, stream: Stream) -> Self {
        Self {
            chance: stream,
            mode: Mode::Startup,
            bw: WindowedMax::default(),
            min_rtt_us: u32::MAX,
            min_rtt_stamp: 0,
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            cycle_us: 0,
            prev_state: CaState::Open,
            packet_conservation: false,
            round_start: false,
            idle_restart: false,
            has_seen_rtt: false,
            in_probe_rtt: false,
            full_bw_reached: false,
            full_bw_cnt: 0,
            full_bw: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            prior_cwnd: 0,
            policer: Policer::default(),
            aggregation: Aggregation::default(),
        }
    }

    /// `bbr_bw`.
    #[inline]
    fn bw(&self) -> u32 {
        self.policer.rate().unwrap_or_else(|| self.bw.get())
    }

    // ---- Pacing.

    /// `bbr_init_pacing_rate_from_rtt`: the window in one RTT, or in 1 ms while it is unknown.
    fn init_pacing_rate(&mut self, view: &View, window: &mut Window) {
        let rtt_us = if view.srtt_us_x8 > 0 {
            self.has_seen_rtt = true;
            (view.srtt_us_x8 >> 3).max(1)
        } else {
            1_000
        };
        let bw = (u64::from(window.cwnd) << BW_SCALE) / u64::from(rtt_us);
        window.pacing_rate = bytes_per_second(view, saturate(bw), HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: while the pipe is not full it only rises.
    fn set_pacing_rate(&mut self, view: &View, window: &mut Window, bw: u32, gain: u16) {
        let rate = bytes_per_second(view, bw, gain);
        if !self.has_seen_rtt && view.srtt_us_x8 > 0 {
            self.init_pacing_rate(view, window);
        }
        if self.full_bw_reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    // ---- The model, in the order of bbr_update_model.

    fn update_bw(&mut self, view: &View, sample: &RateSample) {
        self.round_start = false;
        let Some(delivered) = valid(sample) else { return };
        if sample.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = view.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.detect_policer(view, sample);

        let bw = saturate((u64::from(delivered) << BW_SCALE) / sample.interval_us);
        // An application-limited sample says how fast the application is, unless it is a record.
        if !sample.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rtt_cnt, bw);
        }
    }

    fn detect_policer(&mut self, view: &View, sample: &RateSample) {
        let probing = matches!(self.mode, Mode::ProbeBw { .. });
        match self.policer.sample(view, sample, self.round_start, probing) {
            Change::None => {}
            Change::Found => self.pacing_gain = UNIT, // at once, to avoid drops
            Change::Released => self.enter_probe_bw(view),
        }
    }

    fn update_ack_aggregation(&mut self, view: &View, window: &Window, sample: &RateSample) {
        if sample.acked_sacked == 0 || valid(sample).is_none() {
            return;
        }
        if self.round_start {
            self.aggregation.begin_round(SLOT_ROUNDS);
        }
        self.aggregation.update(view, window.cwnd, self.bw(), sample.acked_sacked);
    }

    fn update_cycle_phase(&mut self, view: &View, window: &Window, sample: &RateSample) {
        if let Mode::ProbeBw { phase } = self.mode
            && self.phase_is_over(view, window, sample)
        {
            self.enter_phase(view, phase + 1);
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn phase_is_over(&self, view: &View, window: &Window, sample: &RateSample) -> bool {
        let age_us = view.delivered_at.as_micros_floor().saturating_sub(self.cycle_us);
        let full_length = age_us > u64::from(self.min_rtt_us);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_flight = self.in_net_at_departure(view, window, sample.prior_in_flight);
        let bw = self.bw.get();
        if self.pacing_gain > UNIT {
            // Until it has raised what is in flight, or the buffer cannot hold that.
            return full_length
                && (sample.losses > 0
                    || in_flight >= self.in_flight(view, window, bw, self.pacing_gain));
        }
        full_length || in_flight <= self.in_flight(view, window, bw, UNIT)
    }

    fn enter_phase(&mut self, view: &View, phase: u8) {
        self.mode = Mode::ProbeBw { phase: phase % CYCLE.len() as u8 };
        self.cycle_us = view.delivered_at.as_micros_floor();
    }

    fn check_full_bw_reached(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        let threshold = (u64::from(self.full_bw) * FULL_BW_THRESHOLD) >> 8;
        if u64::from(self.bw.get()) >= threshold {
            self.full_bw = self.bw.get();
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= FULL_BW_CNT;
    }

    fn check_drain(&mut self, view: &View, window: &mut Window) {
        let bw = self.bw.get();
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            // For the curious; BBR itself never asks for it.
            window.ssthresh = self.in_flight(view, window, bw, UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_net_at_departure(view, window, view.in_flight())
                <= self.in_flight(view, window, bw, UNIT)
        {
            self.enter_probe_bw(view);
        }
    }

    fn enter_probe_bw(&mut self, view: &View) {
        // Any phase but the draining one is the first.
        let phase = CYCLE.len() as u8 - 1 - self.chance.below(CYCLE_RAND) as u8;
        self.enter_phase(view, phase + 1);
    }

    fn update_min_rtt(&mut self, view: &View, window: &mut Window, sample: &RateSample) {
        let now = view.jiffies();
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW_S * u64::from(view.hz);
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt_us = rtt_us;
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.keep_larger_cwnd(window);
            self.mode = Mode::ProbeRtt { low: None };
        }
        self.in_probe_rtt = matches!(self.mode, Mode::ProbeRtt { .. });
        if let Mode::ProbeRtt { low } = &mut self.mode {
            match low {
                None if view.in_flight() <= CWND_MIN_TARGET => {
                    // msecs_to_jiffies rounds up.
                    let wait = (PROBE_RTT_MS * u64::from(view.hz)).div_ceil(1_000);
                    *low = Some(LowInFlight { until: now + wait, round_done: false });
                    self.next_rtt_delivered = view.delivered;
                }
                None => {}
                Some(low) => {
                    low.round_done |= self.round_start;
                    if low.round_done {
                        self.leave_probe_rtt_when_due(view, window);
                    }
                }
            }
        }
        // An idle restart is over once something new is delivered.
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn leave_probe_rtt_when_due(&mut self, view: &View, window: &mut Window) {
        let Mode::ProbeRtt { low: Some(low) } = self.mode else { return };
        if view.jiffies() > low.until {
            self.min_rtt_stamp = view.jiffies();
            window.cwnd = window.cwnd.max(self.prior_cwnd).min(window.clamp);
            if self.full_bw_reached {
                self.enter_probe_bw(view);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw { phase } => (CYCLE[usize::from(phase)], CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }
}

/// Bytes per second at `gain`, 1 % below what the model says (`bbr_rate_bytes_per_sec`).
#[inline]
pub(super) fn bytes_per_second(view: &View, bw: u32, gain: u16) -> u64 {
    let rate = (u64::from(bw) * u64::from(view.mss)).saturating_mul(u64::from(gain)) >> 8;
    rate.saturating_mul(1_000_000 / 100 * 99) >> BW_SCALE
}

/// Packets delivered, if the sample says anything.
pub(super) fn valid(sample: &RateSample) -> Option<u32> {
    sample.delivered.filter(|_| sample.interval_us > 0)
}

pub(super) fn in_recovery(state: CaState) -> bool {
    match state {
        CaState::Recovery | CaState::Loss => true,
        CaState::Open | CaState::Disorder | CaState::Cwr => false,
    }
}

pub(super) fn saturate(value: u64) -> u32 {
    value.min(u64::from(u32::MAX)) as u32
}

impl CongestionControl for Bbr {
    fn init(&mut self, view: &View, window: &mut Window) {
        window.ssthresh = Window::INFINITE;
        self.next_rtt_delivered = view.delivered;
        self.min_rtt_us = view.min_rtt_us;
        self.min_rtt_stamp = view.jiffies();
        self.init_pacing_rate(view, window);
        self.policer.reset(view);
        self.aggregation.restart(view.now_us());
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        if in_recovery(self.prev_state) || matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.keep_larger_cwnd(window);
        } else {
            self.prior_cwnd = window.cwnd;
        }
        window.ssthresh
    }

    /// Never called: [`cong_control`](Self::cong_control) replaces it.
    fn cong_avoid(&mut self, _view: &View, _window: &mut Window, _acked: u32) -> Response {
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_bw = 0;
            // A timeout ends a round, with a loss.
            self.round_start = true;
            self.detect_policer(view, &RateSample { losses: 1, ..RateSample::default() });
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        if event == Event::TxStart && view.app_limited > 0 {
            self.idle_restart = true;
            self.aggregation.restart(view.now_us());
            match self.mode {
                // No more speed is needed: the estimated one will do.
                Mode::ProbeBw { .. } => self.set_pacing_rate(view, window, self.bw(), UNIT),
                Mode::ProbeRtt { .. } => self.leave_probe_rtt_when_due(view, window),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.policer.reset(view);
        window.cwnd
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) {
        self.update_bw(view, sample);
        self.update_ack_aggregation(view, window, sample);
        self.update_cycle_phase(view, window, sample);
        self.check_full_bw_reached(sample);
        self.check_drain(view, window);
        self.update_min_rtt(view, window, sample);
        self.update_gains();

        self.set_pacing_rate(view, window, self.bw(), self.pacing_gain);
        self.set_cwnd(view, window, sample);
    }

    fn keeps_app_limited(&self) -> bool {
        self.in_probe_rtt
    }

    fn min_tso_segs(&self, _view: &View, window: &Window) -> Option<u32> {
        Some(min_tso_segs(window))
    }

    /// It may slow-start even in recovery.
    fn sndbuf_factor(&self) -> u32 {
        3
    }

    fn phase(&self, _view: &View, _window: &Window) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw { .. } => "probe_bw",
            Mode::ProbeRtt { .. } => "probe_rtt",
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let bps = |bw: u32| {
            let packets_per_second = f64::from(bw) * 1e6 / f64::from(1 << BW_SCALE);
            packets_per_second * f64::from(view.mss) * 8.0
        };
        tell("bandwidth", bps(self.bw()));
        if self.min_rtt_us != u32::MAX {
            tell("min_rtt", f64::from(self.min_rtt_us) * 1e3);
        }
        tell("pacing_gain", f64::from(self.pacing_gain) / f64::from(UNIT));
        tell("cwnd_gain", f64::from(self.cwnd_gain) / f64::from(UNIT));
        if let Mode::ProbeBw { phase } = self.mode {
            tell("cycle_phase", f64::from(phase));
        }
        tell("round", f64::from(self.rtt_cnt));
        if !self.full_bw_reached {
            tell("full_bandwidth", bps(self.full_bw));
        }
        tell("policed", f64::from(u8::from(self.policer.rate().is_some())));
        tell("extra_acked", f64::from(self.aggregation.room(self.bw())));
    }
}

#[cfg(test)]
mod tests;
