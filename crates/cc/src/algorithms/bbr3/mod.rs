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
//! - **ECN**: marks are not heard, as in Google's module (the draft has no reaction at all), unless `ecn_low` 1 says that the path's
//!   queues mark at a shallow threshold (the route feature `ecn_low`) and its RTT is 5 ms at most. The receiver then echoes each mark as
//!   DCTCP's does. α smooths the share of marks; a round with marks outside of probes lowers `inflight_lo` to `1 − α/3` of it; a probe
//!   of which more than half was marked was too high, and two rounds of STARTUP with as many end it.
//! - **Departs from Google's module**: every ACK runs the whole model (its shortcut for application-limited ACKs is left
//!   out); bursts and delayed ACKs are the host's, not the module's (`tso_segs`, `fast_ack_mode`); the ACK of a tail loss probe's
//!   retransmission begins a round of signals like any other; an undone reduction never lowers the window. As the draft has
//!   it, DRAIN ends after more than three rounds whatever is in flight, and a spurious loss gives back what was before the
//!   first loss of its round, STARTUP or a probe included.
//! - **Departs from the draft**, as Google's module does: drain gain 0.34, not 0.5; 0.91, not 0.90, in DOWN; the plateau
//!   is reset by any ACK; fractions are multiples of 1/256, so that 2 % is 1.95 % and 0.7 is 0.703; STARTUP counts ACKs with
//!   losses, not lost ranges, and has the 2 % rule without SACK too; a timeout begins the judgement of growth anew and, outside
//!   of probes, bounds `inflight_lo`; what is in flight is an estimate for the next departure; aggregation is the maximum of 5 to
//!   10 rounds and of 100 ms at most; CRUISE lowers `inflight_lo` to `inflight_hi`; a cycle without a sample does not advance
//!   the bandwidth filter.
//! - **No kernel of Debian has it**: no recording of a kernel stands beside it. Tests hold it against closed forms of the draft.
//! - **Source of the details**: `tcp_bbr.c` of the branch v3 of github.com/google/bbr.

mod bounds;
mod cwnd;
mod cycle;
mod ecn;
mod mode;
mod signals;

use self::bounds::Upper;
use self::ecn::Marks;
use self::mode::{LowInFlight, Mode, Phase};
use self::signals::{FullBandwidth, Signals};
use super::bbr::aggregation::{Aggregation, SLOT_ROUNDS};
use super::bbr::{
    BW_SCALE, GAIN_SCALE, NOMINAL_RTT_US, SNDBUF_FACTOR, UNIT, bytes_per_second, in_recovery,
    saturate, valid,
};
use crate::{
    About, CaState, CongestionControl, Event, LostPacket, Needs, Parameter, Parameters, Range,
    RateSample, Response, Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;
use std::marker::PhantomData;

/// A version of the model, as Google's module has it.
pub trait Version: Clone + std::fmt::Debug {
    /// Pacing rate to bandwidth in STARTUP, /256.
    const STARTUP_GAIN: u16;
    /// Window to BDP in STARTUP and DRAIN, /256.
    const STARTUP_CWND_GAIN: u16;
    /// As many ACKs with losses in a round end STARTUP (`bbr_full_loss_cnt`).
    const FULL_LOSS_CNT: u8;
    /// The second version: its rules for the end of probes, for bounds and for marks.
    const IS_SECOND: bool;

    /// The rules that parameters set for marks.
    fn mark_rules(parameters: &Parameters<'_>) -> MarkRules;
}

/// Rules for congestion marks: those that a connection reacts to, and the codepoint of its own segments.
#[derive(Clone, Copy, Debug)]
pub struct MarkRules {
    /// Queues of the path mark at a shallow threshold, and marks are heard.
    pub low: bool,
    /// ... on paths of this RTT at most, µs (`bbr_ecn_max_rtt_us`).
    pub rtt_us_max: u32,
    /// Segments are ECT(1) where accurate ECN is agreed on.
    pub l4s: bool,
}

/// BBRv3.
#[derive(Clone, Debug)]
pub struct Third;

impl Version for Third {
    /// 4 ln 2, the least pacing gain that doubles the rate every round with a window of twice the BDP
    /// (`bbr_startup_pacing_gain`).
    const STARTUP_GAIN: u16 = (UNIT as u32 * 277 / 100 + 1) as u16;
    const STARTUP_CWND_GAIN: u16 = CWND_GAIN;
    const FULL_LOSS_CNT: u8 = 6;
    const IS_SECOND: bool = false;

    fn mark_rules(parameters: &Parameters<'_>) -> MarkRules {
        MarkRules { low: parameters.whole("ecn_low") == 1, rtt_us_max: ECN_RTT_US_MAX, l4s: false }
    }
}

/// BBRv2: see `bbr2.rs`.
#[derive(Clone, Debug)]
pub struct Second;

/// Marks of paths with a longer RTT are none of a shallow threshold, µs (`bbr_ecn_max_rtt_us`).
const ECN_RTT_US_MAX: u32 = 5_000;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bbr3",
    file: file!(),
    models: "Google's tcp_bbr.c, branch v3; draft-ietf-ccwg-bbr. No kernel of Debian has it",
    module: None,
    signal: Signal::Model,
    settles: true,
    parameters: &[Parameter::new(
        "ecn_low",
        0.0,
        Range::Whole(0, 1),
        "",
        "1: the path's queues mark at a shallow threshold, and marks are heard",
        "route feature ecn_low",
    )],
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

/// Twice the BDP, to bear delayed and stretched ACKs (`bbr_cwnd_gain`).
const CWND_GAIN: u16 = 2 * UNIT;
/// Gain on the bandwidth-delay product, in PROBE_RTT (`bbr_probe_rtt_cwnd_gain`).
const PROBE_RTT_CWND_GAIN: u16 = UNIT / 2;
/// Below it a burst of the second version may be one packet, bytes per second (`bbr_min_tso_rate`).
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
/// "No bound".
const INFINITE: u32 = u32::MAX;
/// The window never asks for less (`bbr_cwnd_min_target`).
const CWND_MIN: u32 = 4;
/// The module keeps the initial window in 7 bits (`init_cwnd`).
const INITIAL_CWND_MAX: u32 = 0x7f;
/// A slot of the ACK-aggregation filter in STARTUP, rounds (`bbr_extra_acked_win_rtts` is for later).
const STARTUP_SLOT_ROUNDS: u8 = 1;
/// As long a `min_rtt` is believed (`bbr_min_rtt_win_sec`).
const MIN_RTT_WINDOW_S: u64 = 10;
/// As long PROBE_RTT waits for a lower RTT (`bbr_probe_rtt_win_ms`).
const PROBE_RTT_WINDOW_S: u64 = 5;

/// BBRv3.
pub type Bbr3 = Model<Third>;

/// The model of both versions.
#[derive(Clone, Debug)]
pub struct Model<V> {
    version: PhantomData<V>,
    chance: Stream,
    mode: Mode,
    /// Mode that paces the packets in flight: the mode as the last ACK left it. One that begins within an ACK, or with
    /// a loss between two, has paced nothing yet. (The module writes its gains at the end of `bbr_update_model`.)
    pace: Mode,
    signals: Signals,
    full: FullBandwidth,
    upper: Upper,
    /// None where marks are not heard.
    marks: Option<Box<Marks>>,
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
    /// Start of DOWN, µs, and the wait from then until the next probe.
    cycle_us: u64,
    probe_wait_us: u32,
    rounds_since_probe: u8,
    prev_state: CaState,
    idle_restart: bool,
    has_seen_rtt: bool,
    initial_cwnd: u32,
    /// The window before recovery or PROBE_RTT cut it.
    prior_cwnd: u32,
    undo: Undo,
    /// Rounds since DRAIN began.
    drain_rounds: u8,
}

/// State that a loss changes, as it was before the first one of a round (`BBRSaveStateUponLoss`).
#[derive(Clone, Debug)]
struct Undo {
    mode: Mode,
    bw_lo: u32,
    inflight_lo: u32,
    inflight_hi: u32,
    /// True for a loss of the round in progress: further losses in it are the same loss.
    of_this_round: bool,
}

impl<V: Version> Model<V> {
    /// `stream` draws the wait between probes.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, stream: Stream) -> Self {
        let rules = V::mark_rules(parameters);
        Self {
            version: PhantomData,
            chance: stream,
            mode: Mode::Startup,
            pace: Mode::Startup,
            signals: Signals::default(),
            full: FullBandwidth::default(),
            upper: Upper::default(),
            marks: (rules.low || rules.l4s).then(|| Box::new(Marks::new(rules))),
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
            initial_cwnd: 0,
            prior_cwnd: 0,
            undo: Undo {
                mode: Mode::Startup,
                bw_lo: INFINITE,
                inflight_lo: INFINITE,
                inflight_hi: INFINITE,
                of_this_round: false,
            },
            drain_rounds: 0,
        }
    }

    /// Every change of mode.
    fn enter(&mut self, next: Mode) {
        debug_assert!(
            self.mode.may_become(next),
            "{:?} -> {next:?} is not in the state diagram",
            self.mode
        );
        debug_assert!(
            match next {
                Mode::Startup => !self.full.reached,
                Mode::Drain | Mode::ProbeBw(_) => self.full.reached,
                Mode::ProbeRtt { .. } => true,
            },
            "{next:?} while the pipe is {:?}",
            self.full
        );
        self.mode = next;
    }

    fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
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
            (view.srtt_us_x8 / 8).max(1)
        } else {
            NOMINAL_RTT_US
        };
        let bw = (u64::from(window.cwnd) << BW_SCALE) / u64::from(rtt_us);
        window.pacing_rate = bytes_per_second(view, saturate(bw), V::STARTUP_GAIN);
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
            let rounds = if self.full.reached { SLOT_ROUNDS } else { STARTUP_SLOT_ROUNDS };
            self.aggregation.begin_round(rounds);
        }
        self.aggregation.update(view, window.cwnd, self.bw(), sample.acked_sacked);
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self, window: &Window) {
        let cut = in_recovery(self.prev_state) || self.is_probing_rtt();
        self.prior_cwnd = if cut { self.prior_cwnd.max(window.cwnd) } else { window.cwnd };
    }

    /// `BBRSaveStateUponLoss`: once per round, for the losses of one have lowered the bounds before recovery is entered.
    fn save_undo(&mut self) {
        if self.undo.of_this_round {
            return;
        }
        self.undo = Undo {
            mode: self.mode,
            bw_lo: self.signals.bw_lo,
            inflight_lo: self.signals.inflight_lo,
            inflight_hi: self.upper.inflight_hi,
            of_this_round: true,
        };
    }

    /// `bbr_note_loss`.
    fn note_loss(&mut self, view: &View) {
        self.save_undo();
        self.signals.note_loss(view);
        self.note_in_cycle(true, false);
    }

    /// The state that a spurious loss ended (`BBRHandleSpuriousLossDetection`): a probe is taken up by refilling the pipe.
    fn return_to_probing(&mut self, view: &View) {
        match (self.undo.mode, self.mode) {
            (_, Mode::ProbeRtt { .. } | Mode::Startup) => {}
            (Mode::Startup, Mode::Drain | Mode::ProbeBw(_)) => {
                self.full.reached = false;
                self.enter(Mode::Startup);
            }
            (Mode::ProbeBw(Phase::Up), Mode::ProbeBw(Phase::Down | Phase::Cruise)) => {
                self.start_refill(view)
            }
            (
                Mode::Drain | Mode::ProbeBw(_) | Mode::ProbeRtt { .. },
                Mode::Drain | Mode::ProbeBw(_),
            ) => {}
        }
    }

    /// `bbr_is_probing_bandwidth`.
    fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up))
    }
}

impl<V: Version> CongestionControl for Model<V> {
    fn init(&mut self, view: &View, window: &mut Window) {
        window.ssthresh = Window::INFINITE;
        self.initial_cwnd = window.cwnd.min(INITIAL_CWND_MAX);
        self.next_round_delivered = if V::IS_SECOND { 0 } else { view.delivered };
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
        self.save_undo();
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
            Event::TlpRecovery if !V::IS_SECOND => {
                let tx_in_flight = self.signals.inflight_latest.saturating_add(1);
                self.note_loss(view);
                let probe = RateSample { lost: 1, tx_in_flight, ..RateSample::default() };
                if self.upper.samples && bounds::is_too_high(&probe) {
                    self.handle_too_high(view, window, &probe);
                }
            }
            Event::TlpRecovery
            | Event::TxStart
            | Event::CwndRestart
            | Event::CompleteCwr
            | Event::Loss
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        self.full.restart(0);
        // Nor does what was no loss count at the round's end.
        self.signals.loss_in_round = false;
        self.undo.of_this_round = false;
        self.signals.bw_lo = self.signals.bw_lo.max(self.undo.bw_lo);
        self.signals.inflight_lo = self.signals.inflight_lo.max(self.undo.inflight_lo);
        self.upper.inflight_hi = self.upper.inflight_hi.max(self.undo.inflight_hi);
        if !V::IS_SECOND {
            self.return_to_probing(view);
        }
        self.prior_cwnd.max(window.cwnd)
    }

    fn has_cong_control(&self) -> bool {
        true
    }

    /// `bbr_main`.
    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        self.update_round(view, sample);
        if self.update_marks(view, sample) {
            self.end_startup(view, window);
        }
        let bw = signals::bandwidth(sample);
        self.signals.update_latest(view, sample, bw);
        self.update_congestion_signals(window, sample, bw);
        self.update_aggregation(view, window, sample);
        self.check_loss_in_startup(view, window, sample);
        self.full.check(sample, bw, self.round_start);
        self.check_drain(view, window);
        self.update_cycle(view, window, sample, bw);
        let response = self.update_min_rtt(view, window, sample);
        self.pace = self.mode;

        self.set_pacing_rate(view, window, self.pace.pacing_gain::<V>());
        self.set_cwnd(view, window, sample.acked_sacked);
        self.bound_cwnd(window);
        if !V::IS_SECOND {
            self.signals.advance_latest(sample, bw);
        }
        self.prev_state = view.state;
        self.note_in_cycle(sample.lost > 0, sample.delivered_ce > 0);
        response
    }

    fn wants_flights(&self) -> bool {
        true
    }

    /// `precise_ece_ack`.
    fn wants_exact_echo(&self) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.rules.low)
    }

    fn wants_l4s(&self) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.rules.l4s)
    }

    /// `bbr_skb_marked_lost`.
    fn marked_lost(&mut self, view: &View, window: &mut Window, packet: &LostPacket) {
        self.note_loss(view);
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

    fn min_tso_segs(&self, _view: &View, window: &Window) -> Option<u32> {
        let slow = V::IS_SECOND && window.pacing_rate < MIN_TSO_RATE;
        Some(if slow { 1 } else { cwnd::MIN_TSO_SEGS })
    }

    fn sndbuf_factor(&self) -> u32 {
        SNDBUF_FACTOR
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
        tell("pacing_gain", f64::from(self.pace.pacing_gain::<V>()) / f64::from(UNIT));
        tell("cwnd_gain", f64::from(self.pace.cwnd_gain::<V>()) / f64::from(UNIT));
        if !self.full.reached {
            tell("full_bandwidth", bps(self.full.bw));
        }
        tell("extra_acked", f64::from(self.aggregation.room(self.bw())));
    }
}

#[cfg(test)]
mod tests;
