//! NV: a successor of Vegas for data centres, which compares rates instead of delays.
//!
//! - **Paper**: Brakmo, "TCP-NV: An Update to TCP-Vegas", 2010 (with the patches for Linux; there is no publication).
//! - **Equations**: once per round trip, the window that the highest rate of the round would need at the least RTT is
//!   `W = rate · RTTmin + 10`. `cwnd > W`: growth stops, `ssthresh = W` and `cwnd −= 0.3 (cwnd − W)`;
//!   `cwnd ≤ W − 2`: growth is allowed; otherwise nothing changes. Growth is Reno's; after timeouts halved, as often as there were.
//!   On a loss `ssthresh = 0.8 cwnd`.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd > W──▶ holding ◀──cwnd ≤ W − 2 / cwnd > W──▶ growing by one per round trip
//!       ▲                      │ loss or ECN echo: 0.8 cwnd; the RTT is learnt anew when Open again
//!       └── timeout: cwnd = 1 ─┘
//! ```
//! - **Departs from the paper**: this is the later version of the kernel. The least RTT is replaced every 4 to 6 s, so
//!   that a standing queue becomes part of it.
//! - **Chance**: one byte per replacement, when the next one is.
//! - **Source of the details**: Linux 6.1 `tcp_nv.c`. Parameters are those of the module.

use crate::{
    About, Ack, CaState, CongestionControl, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// The last RTT's share of the average, in 1/256 (`nv_rtt_factor`).
const RTT_SHARE: u64 = 128;
/// ACKs that a decision must rest on: to shrink, to grow, to leave slow start (`nv_*_eval_min_calls`).
const TO_SHRINK: u8 = 60;
const TO_GROW: u8 = 20;
const TO_LEAVE_SLOW_START: u8 = 30;
/// Round trips before a window is too large (`nv_rtt_min_cnt`), and before growth stops without enough ACKs to tell
/// (`nv_stop_rtt_cnt`).
const ROUNDS: u8 = 2;
const STOP_ROUNDS: u8 = 10;
/// Packets around the target in which nothing changes (`nv_pad_buffer`).
const BUFFER: u32 = 2;
/// Given up of what is too much, in 1/128 (`nv_cong_dec_mult`: 30 %).
const GIVEN_UP: u32 = 38;
/// Kept on a loss, in 1/1024 (`nv_loss_dec_factor`).
const KEPT: u64 = 819;
/// Decisions to grow after which growth is doubled again (`nv_cwnd_growth_rate_neg`).
const REGAINED: u8 = 8;
/// Windows that are too small for more than one ACK per round trip: the least, the step, the bound.
const SMALL: (u32, u32, u32) = (4, 2, 81);
/// "No sample yet", µs.
const NO_RTT: u32 = u32::MAX;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "nv",
    file: file!(),
    models: "Linux 6.1, tcp_nv.c",
    module: Some("tcp_nv"),
    signal: Signal::Delay,
    settles: false,
    parameters: &[
        Parameter::new(
            "nv_pad",
            10.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "queued beyond what the path needs",
            "module parameter",
        ),
        Parameter::new(
            "nv_reset_period",
            5.0,
            Range::Whole(1, 3_600),
            "s",
            "between replacements of the least RTT, give or take a quarter",
            "module parameter",
        ),
        Parameter::new(
            "nv_min_cwnd",
            2.0,
            Range::Whole(1, 1 << 16),
            "packets",
            "least window after a decision",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new("min_rtt", Unit::Nanoseconds, "least averaged RTT of the last period"),
        Variable::new("rate", Unit::BitsPerSecond, "highest of this round"),
        Variable::new("growing", Unit::Count, "1: growth is allowed"),
    ],
    needs: Needs { dice: true, ..Needs::NOTHING },
};

/// Linux's NV.
#[derive(Clone, Debug)]
pub struct Nv {
    pad: u32,
    period_s: u32,
    min_cwnd: u32,
    stream: Stream,
    /// Growth is allowed.
    growing: bool,
    /// Everything is measured anew when the state is Open again.
    forget: bool,
    /// Growth is halved so many times.
    halved: u8,
    /// Decisions to grow since the last one against it.
    grown: u8,
    /// A window below which an ACK per round trip is to be expected, packets.
    small: u32,
    /// ACKs since the last decision, and round trips.
    calls: u8,
    rounds: u8,
    /// The round trip ends when this byte is acknowledged.
    round_end: u64,
    snd_una: u64,
    /// The average RTT, µs; 0: none yet.
    rtt_us: u32,
    /// Its least in the last period and in this one, µs.
    min_rtt_us: u32,
    next_min_rtt_us: u32,
    /// End of the period, jiffies.
    period_end: u64,
    /// The highest rate since the last decision, 100 bit/s.
    rate: u32,
}

impl Nv {
    /// Returns the algorithm; it draws a byte of `stream` per period.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, stream: Stream) -> Self {
        Self {
            pad: parameters.whole("nv_pad"),
            period_s: parameters.whole("nv_reset_period"),
            min_cwnd: parameters.whole("nv_min_cwnd"),
            stream,
            growing: true,
            forget: false,
            halved: 0,
            grown: 0,
            small: SMALL.0,
            calls: 0,
            rounds: 0,
            round_end: 0,
            snd_una: 0,
            rtt_us: 0,
            min_rtt_us: NO_RTT,
            next_min_rtt_us: NO_RTT,
            period_end: 0,
            rate: 0,
        }
    }

    /// `tcpnv_reset`.
    fn restart(&mut self, view: &View) {
        self.forget = false;
        self.grown = 0;
        (self.calls, self.rounds, self.rate, self.rtt_us) = (0, 0, 0, 0);
        (self.round_end, self.snd_una) = (view.snd_una, view.snd_una);
    }

    /// The average RTT with this sample, µs.
    fn average(&mut self, rtt_us: u32) -> u32 {
        let average = if self.rtt_us > 0 {
            let old = (256 - RTT_SHARE) * u64::from(self.rtt_us);
            ((RTT_SHARE * u64::from(rtt_us) + old) / 256) as u32
        } else {
            self.min_rtt_us = rtt_us.saturating_mul(2);
            rtt_us
        };
        self.rtt_us = average;
        average
    }

    fn keep_minimum(&mut self, view: &View, rtt_us: u32) {
        self.min_rtt_us = self.min_rtt_us.min(rtt_us);
        self.next_min_rtt_us = self.next_min_rtt_us.min(rtt_us);
        let now = view.jiffies();
        if now >= self.period_end {
            self.min_rtt_us = std::mem::replace(&mut self.next_min_rtt_us, NO_RTT);
            let share = 384 + u64::from(self.stream.below(256));
            let period = u64::from(self.period_s) * share * u64::from(view.hz);
            self.period_end = now + (period >> 9);
            self.small = (self.small / 2).max(SMALL.0);
        }
    }

    /// The end of a round trip in which so many bytes were acknowledged.
    fn end_round(&mut self, view: &View, window: &mut Window, acknowledged: u64) {
        self.round_end = view.snd_nxt;
        self.rounds = self.rounds.saturating_add(1);
        let mss = u64::from(view.mss);
        if self.calls == 1
            && acknowledged >= u64::from(self.small - 1) * mss
            && self.small < SMALL.2
        {
            // One ACK in a round trip: the window is too small to judge by it.
            self.small = (self.small + SMALL.1).min(SMALL.2);
            self.round_end = view.snd_nxt + u64::from(self.small) * mss;
            self.calls = 0;
            self.growing = true;
            return;
        }
        let carried = u64::from(self.rate) * u64::from(self.min_rtt_us) / (80_000 * mss);
        let target = (carried as u32).saturating_add(self.pad);
        let decided = if window.cwnd > target {
            self.shrink(window, target)
        } else if window.cwnd <= target.saturating_sub(BUFFER) {
            self.grow()
        } else {
            false
        };
        if decided {
            (self.calls, self.rounds, self.rate) = (0, 0, 0);
            window.cwnd = window.cwnd.max(self.min_cwnd);
        }
    }

    /// The window is too large; whether there were ACKs enough to tell.
    fn shrink(&mut self, window: &mut Window, target: u32) -> bool {
        if self.rounds < ROUNDS {
            return false;
        }
        if window.ssthresh >= Window::INFINITE {
            if self.calls < TO_LEAVE_SLOW_START {
                return false;
            }
        } else if self.calls < TO_SHRINK {
            if self.growing && self.rounds > STOP_ROUNDS {
                self.growing = false;
            }
            return false;
        }
        self.growing = false;
        window.ssthresh = target;
        let excess = window.cwnd - target;
        if excess > 2 {
            let given_up = (u64::from(excess) * u64::from(GIVEN_UP)) >> 7;
            window.cwnd -= (given_up as u32).max(2);
        } else {
            window.cwnd = target;
        }
        self.grown = 0;
        true
    }

    /// The window may be larger; whether there were ACKs enough to tell.
    fn grow(&mut self) -> bool {
        if self.calls < TO_GROW {
            return false;
        }
        self.growing = true;
        self.grown = self.grown.saturating_add(1);
        if self.halved > 0 && self.grown > REGAINED {
            self.halved -= 1;
            self.grown = 0;
        }
        true
    }
}

impl CongestionControl for Nv {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.restart(view);
        self.period_end = view.jiffies() + 2 * u64::from(view.hz);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        ((u64::from(window.cwnd) * KEPT / 1024) as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) || !self.growing {
            return Response::None;
        }
        let avoidance_packets = window.beyond_slow_start(acked);
        if avoidance_packets > 0 {
            let step = u64::from(window.cwnd) << self.halved;
            window.additive_increase(
                (step.min(u64::from(u32::MAX)) as u32).max(SMALL.0),
                avoidance_packets,
            );
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        match new {
            CaState::Open => {
                if self.forget {
                    self.restart(view);
                }
            }
            CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.forget = true;
                self.growing = false;
                if new == CaState::Loss {
                    self.halved = (self.halved + 1).min(8);
                }
            }
            CaState::Disorder => {}
        }
    }

    /// `tcpnv_acked`.
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        let Some(rtt_us) = ack.rtt_us else { return };
        if !matches!(view.state, CaState::Open | CaState::Disorder) {
            return;
        }
        let acknowledged = view.snd_una - self.snd_una;
        self.snd_una = view.snd_una;
        if ack.in_flight == 0 {
            return;
        }
        let rtt_us = self.average(rtt_us);
        let bytes = u64::from(ack.in_flight) * u64::from(view.mss);
        self.rate = self.rate.max((bytes * 80_000 / u64::from(rtt_us.max(1))) as u32);
        self.calls = self.calls.saturating_add(1);
        self.keep_minimum(view, rtt_us);
        if self.round_end < view.snd_una {
            self.end_round(view, window, acknowledged);
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if self.min_rtt_us != NO_RTT {
            tell("min_rtt", f64::from(self.min_rtt_us) * 1e3);
        }
        tell("rate", f64::from(self.rate) * 100.0);
        tell("growing", f64::from(u8::from(self.growing)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, made, view};

    #[test]
    fn a_fifth_is_given_up_on_a_loss() {
        for (cwnd, ssthresh) in [(100, 79), (1, 2)] {
            assert_eq!(made!(Nv).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
    }

    /// A window of 100 over a path of 10 ms, all of it in flight, with an average RTT of `rtt_us`; growth was stopped.
    fn judged(rtt_us: u32) -> (Nv, Window) {
        let (mut nv, mut window) = (made!(Nv), Window { ssthresh: 50, ..Window::new(100) });
        let mut view = View { hz: 250, snd_nxt: 100 * 1_448, ..view() };
        nv.init(&view, &mut window);
        nv.growing = false;
        (nv.min_rtt_us, nv.rtt_us) = (10_000, rtt_us);
        (nv.calls, nv.rounds) = (TO_SHRINK, ROUNDS);
        view.snd_una = 1_448;
        nv.acked(&view, &mut window, &Ack { packets: 1, rtt_us: Some(rtt_us), in_flight: 100 });
        (nv, window)
    }

    /// Values of the kernel's own file: 66 packets need 10 ms, and 10 may queue.
    #[test]
    fn the_window_gives_up_a_third_of_what_is_too_much() {
        let (nv, window) = judged(15_000);
        assert_eq!((window.cwnd, window.ssthresh, nv.growing), (93, 76, false));
    }

    #[test]
    fn with_a_short_queue_growth_is_allowed() {
        let (nv, window) = judged(10_500);
        assert_eq!((window.cwnd, nv.growing), (100, true));
    }

    #[test]
    fn after_a_loss_the_rtt_is_measured_anew() {
        let (mut nv, mut window) = judged(10_500);
        nv.set_state(&view(), &mut window, CaState::Loss);
        nv.set_state(&view(), &mut window, CaState::Open);
        assert_eq!((nv.rtt_us, nv.halved), (0, 1));
        assert_eq!(nv.average(30_000), 30_000);
        assert_eq!(nv.min_rtt_us, 60_000);
    }

    #[test]
    fn after_a_timeout_growth_is_halved_until_eight_decisions_have_allowed_it() {
        let mut nv = Nv { halved: 1, calls: TO_GROW, ..made!(Nv) };
        let mut window = Window { ssthresh: 2, ..Window::new(10) };
        let _ = nv.cong_avoid(&view(), &mut window, 19);
        assert_eq!(window.cwnd, 10);
        let _ = nv.cong_avoid(&view(), &mut window, 1);
        assert_eq!(window.cwnd, 11);
        for _ in 0..9 {
            assert!(nv.grow());
        }
        assert_eq!(nv.halved, 0);
    }

    /// (5 · (384 + byte) · 250) >> 9 ticks: 3.75 to 6.2 s.
    #[test]
    fn a_standing_queue_becomes_part_of_the_path() {
        let (mut nv, mut window) = (made!(Nv), Window::new(10));
        let mut view = View { hz: 250, ..view() };
        nv.init(&view, &mut window);
        nv.min_rtt_us = 10_000;
        for (ms, min_rtt_us) in [(1_999, 10_000), (2_000, 30_000)] {
            view.now = at_ms(ms);
            nv.keep_minimum(&view, 30_000);
            assert_eq!(nv.min_rtt_us, min_rtt_us, "{ms} ms");
        }
        let ticks = nv.period_end - 500;
        assert!((937..=1_560).contains(&ticks), "{ticks}");
    }
}
