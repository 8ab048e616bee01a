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
mod mode;
mod policer;

use self::aggregation::{Aggregation, SLOT_ROUNDS};
use self::cwnd::{CWND_MIN_TARGET, min_tso_segs};
pub(super) use self::mode::DRAIN_GAIN;
use self::mode::{CYCLE_LEN, CYCLE_RAND, HIGH_GAIN, LowInFlight, Mode, Pace, Pipe};
use self::policer::{Change, Policer};
use crate::windowed_max::WindowedMax;
use crate::{
    About, CaState, CongestionControl, Event, Needs, Parameters, RateSample, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bbr",
    file: file!(),
    models: "Linux 6.1, tcp_bbr.c",
    module: Some("tcp_bbr"),
    signal: Signal::Model,
    settles: true,
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

/// Bandwidths are in packets/µs · 2^24 (`BW_SCALE`): 0.7 kbit/s to 3 Tbit/s fit into 32 bits at 1500 bytes.
pub(super) const BW_SCALE: u32 = 24;
/// Gains and fractions are in 1/2^8 (`BBR_SCALE`).
pub(super) const GAIN_SCALE: u32 = 8;
/// A gain of 1 (`BBR_UNIT`).
pub(super) const UNIT: u16 = 1 << GAIN_SCALE;
/// Rounds that the bandwidth filter remembers: a cycle and two more, as RTTs vary (`bbr_bw_rtts`).
const BW_ROUNDS: u32 = 10;
/// As long a `min_rtt` is believed (`bbr_min_rtt_win_sec`).
const MIN_RTT_WINDOW_S: u64 = 10;
/// At least as long PROBE_RTT keeps in-flight low, so that flows that share a queue do it together
/// (`bbr_probe_rtt_mode_ms`).
pub(super) const PROBE_RTT_MS: u64 = 200;
/// 25 % more is growth (`bbr_full_bw_thresh`) ...
pub(super) const FULL_BW_THRESHOLD: u64 = UNIT as u64 * 5 / 4;
/// ... and three rounds without fill the pipe (`bbr_full_bw_cnt`).
pub(super) const FULL_BW_ROUNDS: u8 = 3;
/// The RTT that the first pacing rate assumes while there is none (`bbr_init_pacing_rate_from_rtt`).
pub(super) const NOMINAL_RTT_US: u32 = 1_000;
/// The pace stays as far below the bandwidth, so that no queue builds up (`bbr_pacing_margin_percent`).
const PACING_MARGIN_PERCENT: u64 = 1;
/// The send buffer holds as many windows (`bbr_sndbuf_expand`): it may slow-start even in recovery.
pub(super) const SNDBUF_FACTOR: u32 = 3;
const US_PER_S: u64 = 1_000_000;
const MS_PER_S: u64 = 1_000;

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
    /// Start of the PROBE_BW phase, µs.
    cycle_us: u64,
    prev_state: CaState,
    packet_conservation: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    pipe: Pipe,
    pace: Pace,
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
            idle_restart: false,
            has_seen_rtt: false,
            pipe: Pipe::EMPTY,
            pace: Pace { mode: Mode::Startup, policed: false },
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
            (view.srtt_us_x8 / 8).max(1)
        } else {
            NOMINAL_RTT_US
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
        if self.pipe.is_full() || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    // ---- The model, in the order of bbr_update_model.

    /// Updates the bandwidth estimate; returns true when this ACK begins a round.
    fn update_bw(&mut self, view: &View, sample: &RateSample) -> bool {
        let Some(delivered) = valid(sample) else { return false };
        let round_start = sample.prior_delivered >= self.next_rtt_delivered;
        if round_start {
            self.next_rtt_delivered = view.delivered;
            self.rtt_cnt += 1;
            self.packet_conservation = false;
        }
        self.detect_policer(view, sample, round_start);

        let bw = saturate((u64::from(delivered) << BW_SCALE) / sample.interval_us);
        // An application-limited sample says how fast the application is, unless it is a record.
        if !sample.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rtt_cnt, bw);
        }
        round_start
    }

    fn detect_policer(&mut self, view: &View, sample: &RateSample, round_start: bool) {
        let probing = matches!(self.mode, Mode::ProbeBw { .. });
        match self.policer.sample(view, sample, round_start, probing) {
            Change::None => {}
            Change::Found => self.pace.policed = true, // at once, to avoid drops
            Change::Released => self.enter_probe_bw(view),
        }
    }

    fn update_ack_aggregation(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
        round_start: bool,
    ) {
        if sample.acked_sacked == 0 || valid(sample).is_none() {
            return;
        }
        if round_start {
            self.aggregation.begin_round(SLOT_ROUNDS);
        }
        self.aggregation.update(view, window.cwnd, self.bw(), sample.acked_sacked);
    }

    fn update_cycle_phase(&mut self, view: &View, window: &Window, sample: &RateSample) {
        if let Mode::ProbeBw { phase } = self.mode
            && self.phase_is_over(view, window, sample)
        {
            self.enter_phase(view, (phase + 1) % CYCLE_LEN);
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn phase_is_over(&self, view: &View, window: &Window, sample: &RateSample) -> bool {
        let age_us = view.delivered_at.as_micros_floor().saturating_sub(self.cycle_us);
        let full_length = age_us > u64::from(self.min_rtt_us);
        let gain = self.pace.pacing_gain();
        if gain == UNIT {
            return full_length;
        }
        let in_flight = self.in_net_at_departure(view, window, sample.prior_in_flight);
        let bw = self.bw.get();
        if gain > UNIT {
            // Until it has raised what is in flight, or the buffer cannot hold that.
            return full_length
                && (sample.losses > 0 || in_flight >= self.in_flight(view, window, bw, gain));
        }
        full_length || in_flight <= self.in_flight(view, window, bw, UNIT)
    }

    fn enter_phase(&mut self, view: &View, phase: u8) {
        self.enter(Mode::ProbeBw { phase });
        self.cycle_us = view.delivered_at.as_micros_floor();
    }

    fn check_full_bw_reached(&mut self, sample: &RateSample, round_start: bool) {
        let Pipe::Filling { bw, rounds } = self.pipe else { return };
        if !round_start || sample.is_app_limited {
            return;
        }
        let threshold = (u64::from(bw) * FULL_BW_THRESHOLD) >> GAIN_SCALE;
        self.pipe = if u64::from(self.bw.get()) >= threshold {
            Pipe::Filling { bw: self.bw.get(), rounds: 0 }
        } else if rounds + 1 < FULL_BW_ROUNDS {
            Pipe::Filling { bw, rounds: rounds + 1 }
        } else {
            Pipe::Full
        };
    }

    fn check_drain(&mut self, view: &View, window: &mut Window) {
        let bw = self.bw.get();
        if self.mode == Mode::Startup && self.pipe.is_full() {
            self.enter(Mode::Drain);
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
        let phase = (CYCLE_LEN - self.chance.below(CYCLE_RAND) as u8) % CYCLE_LEN;
        self.enter_phase(view, phase);
    }

    /// `bbr_update_min_rtt`; asks for the application-limited mark in PROBE_RTT, where its own low rates must not count.
    fn update_min_rtt(
        &mut self,
        view: &View,
        window: &mut Window,
        sample: &RateSample,
        round_start: bool,
    ) -> Response {
        let now = view.jiffies();
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW_S * u64::from(view.hz);
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < self.min_rtt_us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt_us = rtt_us;
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && !self.is_probing_rtt() {
            self.keep_larger_cwnd(window);
            self.enter(Mode::ProbeRtt { low: None });
        }
        let mut response = Response::None;
        if let Mode::ProbeRtt { low } = self.mode {
            response = Response::MarkAppLimited;
            self.probe_rtt(view, window, low, round_start);
        }
        // An idle restart is over once something new is delivered.
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
        response
    }

    /// An ACK in PROBE_RTT: 200 ms and a round after in-flight has become low, it is over.
    fn probe_rtt(
        &mut self,
        view: &View,
        window: &mut Window,
        low: Option<LowInFlight>,
        round_start: bool,
    ) {
        match low {
            None if view.in_flight() <= CWND_MIN_TARGET => {
                let until = view.jiffies() + probe_rtt_jiffies(view);
                self.enter(Mode::ProbeRtt { low: Some(LowInFlight { until, round_done: false }) });
                self.next_rtt_delivered = view.delivered;
            }
            None => {}
            Some(low) => {
                let low = LowInFlight { round_done: low.round_done || round_start, ..low };
                if low.round_done {
                    self.enter(Mode::ProbeRtt { low: Some(low) });
                    self.leave_probe_rtt_when_due(view, window);
                }
            }
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn leave_probe_rtt_when_due(&mut self, view: &View, window: &mut Window) {
        let Mode::ProbeRtt { low: Some(low) } = self.mode else { return };
        if view.jiffies() > low.until {
            self.min_rtt_stamp = view.jiffies();
            window.cwnd = window.cwnd.max(self.prior_cwnd).min(window.clamp);
            if self.pipe.is_full() {
                self.enter_probe_bw(view);
            } else {
                self.enter(Mode::Startup);
            }
        }
    }
}

/// Bytes per second at `gain`, 1 % below what the model says (`bbr_rate_bytes_per_sec`).
#[inline]
pub(super) fn bytes_per_second(view: &View, bw: u32, gain: u16) -> u64 {
    let rate = (u64::from(bw) * u64::from(view.mss)).saturating_mul(u64::from(gain)) >> GAIN_SCALE;
    rate.saturating_mul(US_PER_S / 100 * (100 - PACING_MARGIN_PERCENT)) >> BW_SCALE
}

/// [`PROBE_RTT_MS`] in jiffies, rounded up like `msecs_to_jiffies`.
pub(super) fn probe_rtt_jiffies(view: &View) -> u64 {
    (PROBE_RTT_MS * u64::from(view.hz)).div_ceil(MS_PER_S)
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
        if in_recovery(self.prev_state) || self.is_probing_rtt() {
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
            if let Pipe::Filling { bw, .. } = &mut self.pipe {
                *bw = 0;
            }
            // A timeout ends a round, with a loss.
            self.detect_policer(view, &RateSample { losses: 1, ..RateSample::default() }, true);
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
        if !self.pipe.is_full() {
            self.pipe = Pipe::EMPTY;
        }
        self.policer.reset(view);
        window.cwnd
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        let round_start = self.update_bw(view, sample);
        self.update_ack_aggregation(view, window, sample, round_start);
        self.update_cycle_phase(view, window, sample);
        self.check_full_bw_reached(sample, round_start);
        self.check_drain(view, window);
        let response = self.update_min_rtt(view, window, sample, round_start);
        self.update_pace();

        self.set_pacing_rate(view, window, self.bw(), self.pace.pacing_gain());
        self.set_cwnd(view, window, sample);
        response
    }

    fn min_tso_segs(&self, _view: &View, window: &Window) -> Option<u32> {
        Some(min_tso_segs(window))
    }

    fn sndbuf_factor(&self) -> u32 {
        SNDBUF_FACTOR
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
        tell("pacing_gain", f64::from(self.pace.pacing_gain()) / f64::from(UNIT));
        tell("cwnd_gain", f64::from(self.pace.mode.cwnd_gain()) / f64::from(UNIT));
        if let Mode::ProbeBw { phase } = self.mode {
            tell("cycle_phase", f64::from(phase));
        }
        tell("round", f64::from(self.rtt_cnt));
        if let Pipe::Filling { bw, .. } = self.pipe {
            tell("full_bandwidth", bps(bw));
        }
        tell("policed", f64::from(u8::from(self.policer.rate().is_some())));
        tell("extra_acked", f64::from(self.aggregation.room(self.bw())));
    }
}

#[cfg(test)]
mod tests;
