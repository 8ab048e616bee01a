//! BBR version 3: BBR that also learns how much the path can hold before it loses.
//!
//! - **Paper**: draft-ietf-ccwg-bbr, "BBR Congestion Control"; Cardwell et al., "BBRv3: Algorithm Bug Fixes and Public
//!   Internet Deployment", IETF 117, 2023.
//! - **Equations**: `bw = min(max of two probing cycles, bw_lo)`, `pacing_rate = pacing_gain · bw · 0.99`,
//!   `cwnd = max(⌈cwnd_gain · bw · min_rtt⌉ + aggregation, 3 bursts, 4)`, bounded by `inflight_hi` (less 15 % while it
//!   cruises) and by `inflight_lo`. A probe that loses more than 2 %: `inflight_hi = max(in flight then, 0.7 · target)`.
//!   A round with loss outside of probes: `bw_lo` and `inflight_lo` × 0.7, not below what was just delivered.
//! - **States**:
//!
//! ```text
//!   STARTUP ──bw grew < 25 % in 3 rounds, or 6 losses, > 2 %──▶ DRAIN ──in flight ≤ BDP─┐
//!   gain 2.77                                                   0.34                    ▼
//!      ▲        ┌──▶ UP 1.25 ──plateau, or loss > 2 %───────────────────────────▶ DOWN 0.91 ◀─┐
//!      │        └─── REFILL 1, one round ◀──2 to 3 s, or 63 rounds── CRUISE 1 ◀──drained──┘   │
//!      └── pipe not full ── PROBE_RTT (BDP/2, 200 ms and a round) ────────────────────────────┘
//!                              ▲ from any state: no lower RTT for 5 s
//! ```
//! - **Without ECN**: the reaction to marks of Google's module needs accurate ECN (RFC 9768), which the simulator lacks;
//!   the draft has none either.
//! - **Departs from Google's module**: every ACK runs the whole model (its shortcut for application-limited ACKs is left
//!   out); bursts and delayed ACKs are the host's, not the module's (`tso_segs`, `fast_ack_mode`); the ACK of a tail loss probe's
//!   retransmission begins a round of signals like any other; an undone reduction never lowers the window.
//! - **Departs from the draft**, as Google's module does: drain gain 0.34, not 0.5; 0.91, not 0.90, in DOWN; the plateau
//!   is reset by any ACK; fractions are multiples of 1/256, so that 2 % is 1.95 % and 0.7 is 0.703.
//! - **No kernel of Debian has it**: no recording of a kernel stands beside it. Tests hold it against closed forms of the draft.
//! - **Source of the details**: `tcp_bbr.c` of the branch v3 of github.com/google/bbr. It has no parameters here.

mod bounds;
mod cwnd;
mod cycle;
mod signals;

use self::bounds::Upper;
use self::signals::{FullBandwidth, Signals};
use super::bbr::aggregation::{Aggregation, SLOT_ROUNDS};
use super::bbr::{BW_SCALE, bytes_per_second, in_recovery, saturate, valid};
use crate::{
    About, CaState, CongestionControl, Event, LostPacket, Needs, Parameters, RateSample, Response,
    Rules, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bbr3",
    file: file!(),
    models: "Google's tcp_bbr.c, branch v3; draft-ietf-ccwg-bbr. No kernel of Debian has it",
    parameters: &[],
    variables: &[
        Variable::new("bandwidth", Unit::BitsPerSecond, "of the model: the largest, within bw_lo"),
        Variable::new(
            "max_bandwidth",
            Unit::BitsPerSecond,
            "largest delivery rate of this probing cycle and the last",
        ),
        Variable::new("bw_lo", Unit::BitsPerSecond, "bound after loss, until the next probe"),
        Variable::new(
            "inflight_hi",
            Unit::Packets,
            "the most that was in flight without much loss",
        ),
        Variable::new("inflight_lo", Unit::Packets, "bound after loss, until the next probe"),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT of ten seconds"),
        Variable::new("pacing_gain", Unit::Ratio, "pacing rate to bandwidth"),
        Variable::new("cwnd_gain", Unit::Ratio, "window to bandwidth-delay product"),
        Variable::new(
            "full_bandwidth",
            Unit::BitsPerSecond,
            "bandwidth that growth is judged against",
        ),
        Variable::new("extra_acked", Unit::Packets, "added to the window for ACK aggregation"),
    ],
    needs: Needs { pacing: true, dice: true, ..Needs::NOTHING },
};

/// Gains are in 1/256.
const UNIT: u16 = 256;
/// 4 ln 2, the least pacing gain that doubles the rate every round with a window of twice the BDP.
const STARTUP_GAIN: u16 = (256 * 277 / 100 + 1) as u16;
const DRAIN_GAIN: u16 = (256 * 1000 / 2885) as u16;
const UP_GAIN: u16 = UNIT * 5 / 4;
const DOWN_GAIN: u16 = (256 * 91 / 100) as u16;
const CWND_GAIN: u16 = 2 * UNIT;
const UP_CWND_GAIN: u16 = UNIT * 9 / 4;
/// Of the bandwidth-delay product, in PROBE_RTT.
const PROBE_RTT_CWND_GAIN: u16 = UNIT / 2;
/// "No bound".
const INFINITE: u32 = u32::MAX;
/// The window never asks for less.
const CWND_MIN: u32 = 4;
/// `bbr_min_rtt_win_sec` and `bbr_probe_rtt_win_ms`, s; `bbr_probe_rtt_mode_ms`.
const MIN_RTT_WINDOW_S: u64 = 10;
const PROBE_RTT_WINDOW_S: u64 = 5;
const PROBE_RTT_MS: u64 = 200;

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt {
        /// `None` until little enough is in flight.
        low: Option<LowInFlight>,
    },
}

/// Where in the cycle of PROBE_BW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Up,
    Down,
    Cruise,
    Refill,
}

/// The low water of PROBE_RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LowInFlight {
    /// 200 ms after it began, jiffies.
    until: u64,
    /// Whether a round trip has passed.
    round_done: bool,
}

/// BBR v3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    chance: Stream,
    mode: Mode,
    signals: Signals,
    full: FullBandwidth,
    upper: Upper,
    aggregation: Aggregation,
    /// A round ends when a packet sent after this many were delivered is delivered itself.
    next_round_delivered: u64,
    round_start: bool,
    /// Largest bandwidth of the last cycle and of this one.
    bw_hi: [u32; 2],
    min_rtt_us: u32,
    /// Jiffies.
    min_rtt_stamp: u64,
    /// The least RTT since PROBE_RTT was last due, and when it was measured.
    probe_rtt_min_us: u32,
    probe_rtt_min_stamp: u64,
    /// When DOWN began, µs, and how long to wait from then until the next probe.
    cycle_us: u64,
    probe_wait_us: u32,
    rounds_since_probe: u8,
    prev_state: CaState,
    idle_restart: bool,
    has_seen_rtt: bool,
    in_probe_rtt: bool,
    pacing_gain: u16,
    cwnd_gain: u16,
    initial_cwnd: u32,
    /// The window before recovery or PROBE_RTT cut it.
    prior_cwnd: u32,
    /// `bw_lo`, `inflight_lo` and `inflight_hi` before the last reduction.
    undo: (u32, u32, u32),
}

impl Bbr3 {
    /// `stream` draws the wait between probes.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, stream: Stream) -> Self {
        Self {
            chance: stream,
            mode: Mode::Startup,
            signals: Signals::default(),
            full: FullBandwidth::default(),
            upper: Upper::default(),
            aggregation: Aggregation::default(),
            next_round_delivered: 0,
            round_start: false,
            bw_hi: [0; 2],
            min_rtt_us: u32::MAX,
            min_rtt_stamp: 0,
            probe_rtt_min_us: u32::MAX,
            probe_rtt_min_stamp: 0,
            cycle_us: 0,
            probe_wait_us: 0,
            rounds_since_probe: 0,
            prev_state: CaState::Open,
            idle_restart: false,
            has_seen_rtt: false,
            in_probe_rtt: false,
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: CWND_GAIN,
            initial_cwnd: 0,
            prior_cwnd: 0,
            undo: (INFINITE, INFINITE, INFINITE),
        }
    }

    /// `bbr_max_bw`.
    #[inline]
    fn max_bw(&self) -> u32 {
        self.bw_hi[0].max(self.bw_hi[1])
    }

    /// `bbr_bw`.
    #[inline]
    fn bw(&self) -> u32 {
        self.max_bw().min(self.signals.bw_lo)
    }

    /// `bbr_init_pacing_rate_from_rtt`: the window in one RTT, or in 1 ms while it is unknown.
    fn init_pacing_rate(&mut self, view: &View, window: &mut Window) {
        let rtt_us = if view.srtt_us_x8 > 0 {
            self.has_seen_rtt = true;
            (view.srtt_us_x8 >> 3).max(1)
        } else {
            1_000
        };
        let bw = (u64::from(window.cwnd) << BW_SCALE) / u64::from(rtt_us);
        window.pacing_rate = bytes_per_second(view, saturate(bw), STARTUP_GAIN);
    }

    /// `bbr_set_pacing_rate`: while the pipe is not full it only rises.
    fn set_pacing_rate(&mut self, view: &View, window: &mut Window, gain: u16) {
        let rate = bytes_per_second(view, self.bw(), gain);
        if !self.has_seen_rtt && view.srtt_us_x8 > 0 {
            self.init_pacing_rate(view, window);
        }
        if self.full.reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    /// `bbr_update_round_start`.
    fn update_round(&mut self, view: &View, sample: &RateSample) {
        self.round_start =
            sample.interval_us > 0 && sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = view.delivered;
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
        }
    }

    /// `bbr_update_ack_aggregation`.
    fn update_aggregation(&mut self, view: &View, window: &Window, sample: &RateSample) {
        if sample.acked_sacked == 0 || valid(sample).is_none() {
            return;
        }
        if self.round_start {
            self.aggregation.begin_round(if self.full.reached { SLOT_ROUNDS } else { 1 });
        }
        self.aggregation.update(view, window.cwnd, self.bw(), sample.acked_sacked);
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (DRAIN_GAIN, CWND_GAIN),
            Mode::ProbeBw(Phase::Up) => (UP_GAIN, UP_CWND_GAIN),
            Mode::ProbeBw(Phase::Down) => (DOWN_GAIN, CWND_GAIN),
            Mode::ProbeBw(Phase::Cruise | Phase::Refill) => (UNIT, CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self, window: &Window) {
        let cut = in_recovery(self.prev_state) || matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if cut { self.prior_cwnd.max(window.cwnd) } else { window.cwnd };
    }

    /// `bbr_is_probing_bandwidth`.
    fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up))
    }
}

impl CongestionControl for Bbr3 {
    fn init(&mut self, view: &View, window: &mut Window) {
        window.ssthresh = Window::INFINITE;
        self.initial_cwnd = window.cwnd.min(0x7f);
        self.next_round_delivered = view.delivered;
        self.signals.round_delivered = view.delivered + 1;
        self.min_rtt_us = view.min_rtt_us;
        self.probe_rtt_min_us = view.min_rtt_us;
        self.min_rtt_stamp = view.jiffies();
        self.probe_rtt_min_stamp = view.jiffies();
        self.init_pacing_rate(view, window);
        self.aggregation.restart(view.now_us());
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        self.save_cwnd(window);
        self.undo = (self.signals.bw_lo, self.signals.inflight_lo, self.upper.inflight_hi);
        window.ssthresh
    }

    /// Never called: [`cong_control`](Self::cong_control) replaces it.
    fn cong_avoid(&mut self, _view: &View, _window: &mut Window, _acked: u32) -> Response {
        Response::None
    }

    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full.restart(0);
            if !self.is_probing() && self.signals.inflight_lo == INFINITE {
                // The window before the timeout, which has already set it to 1.
                self.signals.inflight_lo = window.cwnd.max(self.prior_cwnd);
            }
        } else if view.state == CaState::Loss {
            window.cwnd = window.cwnd.max(self.prior_cwnd).min(window.clamp);
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::TxStart if view.app_limited > 0 => {
                self.idle_restart = true;
                self.aggregation.restart(view.now_us());
                match self.mode {
                    // No more speed is needed: the estimated one will do.
                    Mode::ProbeBw(_) => self.set_pacing_rate(view, window, UNIT),
                    Mode::ProbeRtt { .. } => self.leave_probe_rtt_when_due(view, window),
                    Mode::Startup | Mode::Drain => {}
                }
            }
            Event::TlpRecovery => {
                let tx_in_flight = self.signals.inflight_latest.saturating_add(1);
                self.signals.note_loss(view);
                let probe = RateSample { lost: 1, tx_in_flight, ..RateSample::default() };
                if self.upper.samples && bounds::is_too_high(&probe) {
                    self.handle_too_high(view, window, &probe);
                }
            }
            Event::TxStart
            | Event::CwndRestart
            | Event::CompleteCwr
            | Event::Loss
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn undo_cwnd(&mut self, _view: &View, window: &mut Window) -> u32 {
        self.full.restart(0);
        let (bw_lo, inflight_lo, inflight_hi) = self.undo;
        self.signals.bw_lo = self.signals.bw_lo.max(bw_lo);
        self.signals.inflight_lo = self.signals.inflight_lo.max(inflight_lo);
        self.upper.inflight_hi = self.upper.inflight_hi.max(inflight_hi);
        self.prior_cwnd.max(window.cwnd)
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    /// `bbr_main`.
    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) {
        self.update_round(view, sample);
        let bw = signals::bandwidth(sample);
        self.signals.update_latest(view, sample, bw);

        self.update_congestion_signals(window, sample, bw);
        self.update_aggregation(view, window, sample);
        self.check_loss_in_startup(view, window, sample);
        self.full.check(sample, bw, self.round_start);
        self.check_drain(view, window);
        self.update_cycle(view, window, sample, bw);
        self.update_min_rtt(view, window, sample);
        self.update_gains();

        self.set_pacing_rate(view, window, self.pacing_gain);
        self.set_cwnd(view, window, sample.acked_sacked);
        self.bound_cwnd(window);
        self.signals.advance_latest(sample, bw);
        self.prev_state = view.state;
    }

    fn keeps_app_limited(&self) -> bool {
        self.in_probe_rtt
    }

    fn wants_flights(&self) -> bool {
        true
    }

    /// `bbr_skb_marked_lost`.
    fn marked_lost(&mut self, view: &View, window: &mut Window, packet: &LostPacket) {
        self.signals.note_loss(view);
        if !self.upper.samples {
            return; // what is lost was not sent to probe
        }
        let mut sample = RateSample {
            tx_in_flight: packet.tx_in_flight,
            lost: packet.lost,
            is_app_limited: packet.is_app_limited,
            ..RateSample::default()
        };
        if bounds::is_too_high(&sample) {
            sample.tx_in_flight = bounds::where_loss_became_too_high(packet);
            self.handle_too_high(view, window, &sample);
        }
    }

    fn min_tso_segs(&self, _view: &View, _window: &Window) -> Option<u32> {
        Some(cwnd::MIN_TSO_SEGS)
    }

    fn sndbuf_factor(&self) -> u32 {
        3
    }

    fn phase(&self, _view: &View, _window: &Window) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw(Phase::Up) => "probe_bw_up",
            Mode::ProbeBw(Phase::Down) => "probe_bw_down",
            Mode::ProbeBw(Phase::Cruise) => "probe_bw_cruise",
            Mode::ProbeBw(Phase::Refill) => "probe_bw_refill",
            Mode::ProbeRtt { .. } => "probe_rtt",
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let bps = |bw: u32| {
            let packets_per_second = f64::from(bw) * 1e6 / f64::from(1 << BW_SCALE);
            packets_per_second * f64::from(view.mss) * 8.0
        };
        tell("bandwidth", bps(self.bw()));
        tell("max_bandwidth", bps(self.max_bw()));
        if self.signals.bw_lo != INFINITE {
            tell("bw_lo", bps(self.signals.bw_lo));
        }
        if self.upper.inflight_hi != INFINITE {
            tell("inflight_hi", f64::from(self.upper.inflight_hi));
        }
        if self.signals.inflight_lo != INFINITE {
            tell("inflight_lo", f64::from(self.signals.inflight_lo));
        }
        if self.min_rtt_us != u32::MAX {
            tell("min_rtt", f64::from(self.min_rtt_us) * 1e3);
        }
        tell("pacing_gain", f64::from(self.pacing_gain) / f64::from(UNIT));
        tell("cwnd_gain", f64::from(self.cwnd_gain) / f64::from(UNIT));
        if !self.full.reached {
            tell("full_bandwidth", bps(self.full.bw));
        }
        tell("extra_acked", f64::from(self.aggregation.room(self.bw())));
    }
}

#[cfg(test)]
mod tests;
