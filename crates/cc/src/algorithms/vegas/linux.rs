//! Vegas: keeps a few packets queued in the network, no more, and backs off before loss.
//!
//! - **Paper**: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//!   Internet", IEEE JSAC 13(8), 1995.
//! - **Equations**: once per round trip, `diff = cwnd · (RTT − baseRTT) / baseRTT`, the packets queued
//!   in the network; `diff < alpha`: `cwnd += 1`; `diff > beta`: `cwnd −= 1`; otherwise leave it.
//! - **States**:
//!
//! ```text
//!   slow start ──diff > gamma: cwnd = min(cwnd, cwnd·baseRTT/RTT + 1)──▶ steering (2..4 queued)
//!       ▲                                                                     │
//!       └──────────────── loss: Reno until the state is Open again ───────────┘
//! ```
//! - **Departs from the paper**, as Linux does: no retransmission before three duplicate ACKs
//!   and no ¾ reduction for it; slow start doubles every round trip, not every other; `diff` divides by
//!   baseRTT, so it grows faster than the paper's queue estimate (which divides by RTT); the
//!   round's RTT is its minimum; with two samples or fewer in a round, it is Reno.
//! - The growth by one per round trip does not ask whether the window was the limit.
//! - **Variants**, by the rules of the stack profile: where slow start holds at the threshold (2.6.38) it ends one
//!   packet below the window.
//! - [`VegasRule::Patch`] (Linux 2.2) is the patch of 1999 (Cardwell and Bak), as its port in Linux 2.6.0 to 2.6.12 has it; the
//!   patch itself was not found. It judges what was sent in the round instead of the window, divides by the round's RTT as
//!   the paper does, counts half packets and whole kernel ticks plus one, moves towards the last round's window by one, and
//!   leaves slow start for good: `ssthresh = 2`; a round with two samples or fewer adds one packet. `alpha` 1, `beta` 3, `gamma` 1. Idle times end a round and forget nothing.
//! - **Source of the details**: Linux 6.1 `tcp_vegas.c`. Parameters are those of the module, in
//!   packets: `alpha` 2, `beta` 4, `gamma` 1.

mod patch;

use self::patch::Patch;
use super::rounds::{NO_RTT, Rounds};
use crate::algorithms::reno;
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Parameter, Parameters, Range, Response,
    Rules, Signal, Unit, Variable, VegasRule, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "vegas",
    file: file!(),
    models: "Linux 2.6.38 and 6.1, tcp_vegas.c; on Linux 2.2 the patch of 1999",
    module: Some("tcp_vegas"),
    signal: Signal::Delay,
    settles: true,
    parameters: &[
        Parameter::new(
            "alpha",
            2.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "with fewer queued the window grows (the patch: 1)",
            "module parameter",
        ),
        Parameter::new(
            "beta",
            4.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "with more queued it shrinks (the patch: 3)",
            "module parameter",
        ),
        Parameter::new(
            "gamma",
            1.0,
            Range::Whole(0, 1 << 16),
            "packets",
            "with more queued slow start ends",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new(
            "base_rtt",
            Unit::Nanoseconds,
            "least RTT since the connection began or was last idle",
        ),
        Variable::new("round_rtt", Unit::Nanoseconds, "least RTT of this round so far"),
        Variable::new(
            "diff",
            Unit::Packets,
            "queued in the network as the last round that was judged had it",
        ),
    ],
    needs: Needs { rtt_stamps: true, ..Needs::NOTHING },
};

/// Linux's Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    rule: VegasRule,
    alpha: u32,
    beta: u32,
    gamma: u32,
    /// True when the window rule applies; only while nothing is wrong (`doing_vegas_now`).
    steering: bool,
    rounds: Rounds,
    /// Half packets queued as the last judged round had it.
    diff_x2: Option<u32>,
    patch: Patch,
}

impl Vegas {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, rules: &Rules, _stream: Stream) -> Self {
        let (alpha, beta) = match rules.vegas {
            VegasRule::Module => (2, 4),
            VegasRule::Patch => (1, 3),
        };
        Self {
            rule: rules.vegas,
            alpha: parameters.explicit("alpha").unwrap_or(alpha),
            beta: parameters.explicit("beta").unwrap_or(beta),
            gamma: parameters.whole("gamma"),
            steering: false,
            rounds: Rounds::default(),
            diff_x2: None,
            patch: Patch::default(),
        }
    }

    /// `vegas_enable`: a new round, judged by its own samples.
    fn start(&mut self, view: &View) {
        self.steering = true;
        self.rounds.begin(view);
    }

    /// The once-per-round-trip decision.
    fn steer(&mut self, view: &View, window: &mut Window, acked: u32) {
        let (rtt, base) = (self.rounds.min_rtt_us, self.rounds.base_rtt_us);
        let target = (u64::from(window.cwnd) * u64::from(base) / u64::from(rtt)) as u32;
        // 32 bits, wrapping, as in the kernel: 4295 packets times one second of queue is 0.
        let diff = window.cwnd.wrapping_mul(rtt - base) / base;
        self.diff_x2 = Some(diff.saturating_mul(2));

        if window.in_slow_start() {
            if diff > self.gamma {
                // One more than the target: truncation would cost full utilisation.
                window.cwnd = window.cwnd.min(target.saturating_add(1));
                window.ssthresh = below(window);
            } else {
                window.slow_start(acked);
            }
        } else if diff > self.beta {
            window.cwnd -= 1;
            window.ssthresh = below(window);
        } else if diff < self.alpha {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2).min(window.clamp);
        window.ssthresh = window.current_ssthresh(view.state);
    }
}

/// `tcp_vegas_ssthresh`: a threshold that ends slow start.
fn below(window: &Window) -> u32 {
    window.ssthresh.min(window.ending_threshold().max(1))
}

impl CongestionControl for Vegas {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.steering = true;
        self.rounds.forget_path(view);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        reno::half(window)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !self.steering {
            reno::grow(view, window, acked);
        } else if self.rule == VegasRule::Patch {
            self.steer_by_patch(view, window, acked);
        } else if self.rounds.ended(view) {
            // One or two samples are one delayed ACK each: no RTT of the network among them.
            if self.rounds.samples <= 2 {
                reno::grow(view, window, acked);
            } else {
                self.steer(view, window, acked);
            }
            self.rounds.begin(view);
        } else if window.in_slow_start() {
            window.slow_start(acked);
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        match new {
            CaState::Open => self.start(view),
            CaState::Disorder | CaState::Cwr | CaState::Recovery | CaState::Loss => {
                self.steering = false;
            }
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            // After an idle time old samples say nothing about the path.
            Event::TxStart | Event::CwndRestart => match self.rule {
                VegasRule::Module => self.init(view, window),
                VegasRule::Patch => self.start(view),
            },
            Event::CompleteCwr
            | Event::Loss
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        let Some(rtt_us) = ack.rtt_us else { return };
        let unit = match self.rule {
            VegasRule::Module => 1,
            VegasRule::Patch => 1_000_000 / view.hz,
        };
        self.patch.rtt_us = self.rounds.sample(rtt_us, unit);
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        for (name, us) in
            [("base_rtt", self.rounds.base_rtt_us), ("round_rtt", self.rounds.min_rtt_us)]
        {
            if us != NO_RTT {
                tell(name, f64::from(us) * 1e3);
            }
        }
        if let Some(halves) = self.diff_x2 {
            tell("diff", f64::from(halves) / 2.0);
        }
    }

    /// As Reno's.
    fn min_cwnd(&self, window: &Window) -> u32 {
        window.ssthresh / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OLD_RULES, ack, made, view};

    const BASE_US: u32 = 9_999; // + 1 in the algorithm

    fn vegas() -> Vegas {
        made!(Vegas)
    }

    /// One round: three samples of `rtt_us`, then the ACK that ends it.
    fn round(vegas: &mut Vegas, view: &mut View, window: &mut Window, rtt_us: u32) {
        for _ in 0..3 {
            vegas.acked(view, window, &ack(1, rtt_us));
        }
        view.snd_una = vegas.rounds.end + 1;
        view.snd_nxt = view.snd_una + 100_000;
        let _ = vegas.cong_avoid(view, window, 1);
    }

    fn steered(cwnd: u32, ssthresh: u32, rtt_us: u32) -> Window {
        let (mut vegas, mut view, mut window) = (vegas(), view(), Window::new(cwnd));
        window.ssthresh = ssthresh;
        vegas.init(&view, &mut window);
        vegas.acked(&view, &mut window, &ack(1, BASE_US));
        view.snd_una = 1;
        let _ = vegas.cong_avoid(&view, &mut Window::new(1), 1); // ends the round of the base sample
        round(&mut vegas, &mut view, &mut window, rtt_us);
        window
    }

    /// A window of 10 over 10 ms: each further millisecond is one packet queued.
    #[test]
    fn it_keeps_two_to_four_packets_queued() {
        for (queued, expected) in [(0, 11), (1, 11), (2, 10), (3, 10), (4, 10), (5, 9), (30, 9)] {
            let window = steered(10, 5, BASE_US + 1_000 * queued);
            assert_eq!(window.cwnd, expected, "{queued} queued");
        }
    }

    #[test]
    fn the_window_never_falls_below_2() {
        assert_eq!(steered(2, 2, BASE_US + 200_000).cwnd, 2);
    }

    #[test]
    fn the_threshold_follows_the_window_down_but_not_up() {
        let window = steered(10, 9, BASE_US + 5_000);
        assert_eq!((window.cwnd, window.ssthresh), (9, 9));
        let window = steered(20, 9, BASE_US);
        assert_eq!((window.cwnd, window.ssthresh), (21, 15), "three quarters of it at least");
    }

    #[test]
    fn slow_start_ends_at_the_rate_of_the_path_plus_one() {
        // 20 packets over 20 ms where 10 ms would do: 10 fit.
        let window = steered(20, Window::INFINITE, BASE_US + 10_000);
        assert_eq!((window.cwnd, window.ssthresh), (11, 11));
    }

    #[test]
    fn slow_start_doubles_every_round_trip() {
        let (mut vegas, mut view, mut window) = (vegas(), view(), Window::new(10));
        vegas.init(&view, &mut window);
        view.snd_una = 0;
        let _ = vegas.cong_avoid(&view, &mut window, 10);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn with_two_samples_it_is_reno() {
        let (mut vegas, mut view, mut window) = (vegas(), view(), Window::new(10));
        window.ssthresh = 5;
        vegas.init(&view, &mut window);
        vegas.acked(&view, &mut window, &ack(1, 10_000));
        vegas.acked(&view, &mut window, &ack(1, 90_000));
        view.snd_una = 1;
        let _ = vegas.cong_avoid(&view, &mut window, 10);
        assert_eq!((window.cwnd, window.cwnd_cnt), (11, 0));
    }

    #[test]
    fn outside_open_it_is_reno_and_keeps_the_base_rtt() {
        let (mut vegas, view, mut window) = (vegas(), view(), Window::new(10));
        vegas.init(&view, &mut window);
        vegas.acked(&view, &mut window, &ack(1, BASE_US));
        vegas.set_state(&view, &mut window, CaState::Disorder);
        assert!(!vegas.steering);
        vegas.set_state(&view, &mut window, CaState::Open);
        assert!(vegas.steering);
        assert_eq!((vegas.rounds.base_rtt_us, vegas.rounds.min_rtt_us), (BASE_US + 1, NO_RTT));
    }

    #[test]
    fn an_idle_time_forgets_the_base_rtt() {
        let (mut vegas, view, mut window) = (vegas(), view(), Window::new(10));
        vegas.acked(&view, &mut window, &ack(1, BASE_US));
        vegas.cwnd_event(&view, &mut window, Event::TxStart);
        assert_eq!(vegas.rounds.base_rtt_us, NO_RTT);
    }

    /// 1 Mbit/s, 1 ms of propagation, a receiver that acknowledges every second packet after the
    /// first 16. The rule alone would settle at 2 or 3 packets (3 · 23 ms / 13 ms > 4 queued), but a
    /// round of fewer than three ACKs is left to Reno, which grows until there are three: about
    /// five packets, as Linux 4.15 was measured to keep on such a path (7.07 KB).
    #[test]
    fn on_a_slow_short_path_too_few_samples_keep_it_at_about_five_packets() {
        const PACKET_US: u64 = 12_112;
        let (mut vegas, mut view, mut window) = (vegas(), view(), Window::new(10));
        vegas.init(&view, &mut window);
        let (mut sent, mut acked, mut free_us) = (0, 0, 0);
        let mut on_the_way = std::collections::VecDeque::new();
        let mut windows = Vec::new();
        let mut now_us = 0;
        while windows.len() < 400 {
            while sent - acked < u64::from(window.cwnd) {
                free_us = now_us.max(free_us) + PACKET_US;
                on_the_way.push_back((now_us, free_us + 1_000));
                sent += 1;
            }
            let together = if acked < 16 { 1 } else { 2 };
            let (sent_us, ack_us) = on_the_way[together - 1];
            on_the_way.drain(..together);
            now_us = ack_us;
            acked += together as u64;
            view.snd_una = acked;
            view.snd_nxt = sent;
            vegas.acked(&view, &mut window, &ack(together as u32, (ack_us - sent_us) as u32));
            let _ = vegas.cong_avoid(&view, &mut window, together as u32);
            windows.push(window.cwnd);
        }
        let settled = &windows[200..];
        let mean = f64::from(settled.iter().sum::<u32>()) / settled.len() as f64;
        assert!((4.5..=5.5).contains(&mean), "{mean}: {settled:?}");
    }

    /// The rules of Linux 2.2.
    const PATCH: Rules = Rules { vegas: VegasRule::Patch, ..OLD_RULES };

    /// The patch of 1999, a second in: a round of ten segments with 100 ms, then one with `ticks` more in it. Windows before and
    /// after, and the algorithm.
    fn patched(samples: u32, ticks: u32, given: &[(&str, f64)]) -> (Window, Vegas) {
        let mut vegas = made!(Vegas, given, &PATCH);
        let mut view = View { hz: 100, snd_nxt: 0, ..view() };
        let mut window = Window { ssthresh: 2, ..Window::with_rules(10, &PATCH) };
        vegas.init(&view, &mut window);
        let segment = u64::from(view.mss);
        // 90 ms and a tick.
        vegas.acked(&view, &mut window, &ack(1, 90_000));
        view.snd_una = segment;
        view.snd_nxt = 10 * segment;
        let _ = vegas.cong_avoid(&view, &mut window, 1);
        vegas.rounds.forget_round();
        for _ in 0..samples {
            vegas.acked(&view, &mut window, &ack(1, 90_000 + ticks * 10_000));
        }
        window.cwnd = 10;
        vegas.patch.cwnd = 10;
        view.snd_una = 11 * segment;
        view.snd_nxt = 21 * segment;
        let _ = vegas.cong_avoid(&view, &mut window, 1);
        (window, vegas)
    }

    /// Ten segments over 100 ms: 20 − 200/(10 + ticks) half packets, cut, against 2 and 6; as many as 2 leave the window as it is.
    #[test]
    fn the_patch_keeps_one_to_three_packets_queued() {
        for (ticks, cwnd) in [(0, 11), (1, 10), (2, 10), (4, 10), (5, 9), (40, 9)] {
            assert_eq!(patched(3, ticks, &[]).0.cwnd, cwnd, "{ticks} ticks");
        }
        assert_eq!(patched(3, 5, &[("beta", 4.0)]).0.cwnd, 10);
    }

    #[test]
    fn the_patch_adds_one_for_a_round_with_two_samples_and_counts_the_last_twice() {
        let (window, vegas) = patched(2, 40, &[]);
        assert_eq!((window.cwnd, vegas.rounds.samples, vegas.rounds.min_rtt_us), (11, 1, 500_000));
    }

    /// The patch keeps the base RTT where `vegas` of later kernels forgets the path.
    #[test]
    fn the_patch_keeps_the_base_rtt_over_an_idle_time() {
        let (mut window, mut vegas) = patched(3, 0, &[]);
        vegas.cwnd_event(&view(), &mut window, Event::TxStart);
        assert_eq!((vegas.rounds.base_rtt_us, vegas.rounds.samples), (100_000, 0));
    }

    #[test]
    fn the_queue_estimate_wraps_like_the_kernels() {
        // 4295 · 1 s = 4 295 000 000 µs = 2^32 + 32 704: three packets queued, says 32-bit arithmetic.
        assert_eq!(steered(4_295, 5, BASE_US + 1_000_000).cwnd, 4_295);
        assert_eq!(steered(4_294, 5, BASE_US + 1_000_000).cwnd, 4_293);
    }
}
