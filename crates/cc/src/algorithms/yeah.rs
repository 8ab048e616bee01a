//! YeAH: as fast as Scalable TCP while the queue is short, Reno where it is long, and it empties queues that it made.
//!
//! - **Paper**: Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007.
//! - **Equations**: once per round trip `Q = cwnd · (RTT − baseRTT) / RTT`, the packets queued in the network. Fast:
//!   `cwnd += 0.01` per packet delivered. Slow, if `Q > 80` or `RTT − baseRTT > baseRTT / 8`: Reno; and if `Q > 80`, the
//!   window gives up Q, unless it has kept to Reno's window already. A loss costs Q, between 1/8 and 1/2 of the window,
//!   or half after 16 slow round trips.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ fast ◀──queue short / long──▶ slow
//!       ▲                             │ loss or ECN echo            │
//!       └── timeout: cwnd = 1 ────────┴─────────────────────────────┘
//! ```
//! - **Departs from the paper**, as Linux does: a round's RTT is its least, and rounds with two samples or fewer are not
//!   judged; growth below 100 packets is Reno's in both modes; the slow mode is left after one short queue.
//! - **Source of the details**: Linux 6.1 `tcp_yeah.c`, which borrows its RTTs from `tcp_vegas.c`. The module has no
//!   parameters.

use super::vegas::rounds::{NO_RTT, Rounds};
use super::{highspeed, scalable};
use crate::{
    About, Ack, CaState, CongestionControl, Event, Growth, Needs, Parameters, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// More queued packets than this are too many (`TCP_YEAH_ALPHA`).
const QUEUE: u32 = 80;
/// A delay of more than this part of the base RTT is too long (`TCP_YEAH_PHY`).
const DELAY_PART: u32 = 8;
/// After as many slow round trips a loss costs half (`TCP_YEAH_RHO`).
const RENO_ROUNDS: u32 = 16;
/// After as many fast ones Reno's window is forgotten (`TCP_YEAH_ZETA`).
const FAST_ROUNDS: u32 = 50;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "yeah",
    file: file!(),
    models: "Linux 6.1, tcp_yeah.c",
    module: Some("tcp_yeah"),
    signal: Signal::Loss,
    settles: false,
    parameters: &[],
    variables: &[
        Variable::new(
            "base_rtt",
            Unit::Nanoseconds,
            "least RTT since the connection began or was last idle",
        ),
        Variable::new("round_rtt", Unit::Nanoseconds, "least RTT of this round so far"),
        Variable::new("queued", Unit::Packets, "in the network, as the last judged round had it"),
        Variable::new("reno_window", Unit::Packets, "window that Reno would have beside it"),
        Variable::new("slow", Unit::Count, "round trips in the slow mode; 0: fast"),
    ],
    needs: Needs { rtt_stamps: true, ..Needs::NOTHING },
};

/// Linux's YeAH. It has no parameters.
#[derive(Clone, Debug)]
pub struct Yeah {
    rounds: Rounds,
    /// Packets queued as the last judged round had it (`lastQ`).
    queued: u32,
    /// Round trips in the slow mode (`doing_reno_now`).
    slow_rounds: u32,
    /// Window that Reno would have (`reno_count`), packets.
    reno_window: u32,
    /// Fast round trips since it was last forgotten (`fast_count`).
    fast_rounds: u32,
}

impl Yeah {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            rounds: Rounds::default(),
            queued: 0,
            slow_rounds: 0,
            reno_window: 2,
            fast_rounds: 0,
        }
    }

    /// The once-per-round-trip decision.
    fn judge(&mut self, window: &mut Window) {
        let (rtt, base) = (self.rounds.min_rtt_us, self.rounds.base_rtt_us);
        let delay = rtt - base;
        let queued = (u64::from(window.cwnd) * u64::from(delay) / u64::from(rtt)) as u32;
        if queued > QUEUE || delay > base / DELAY_PART {
            if queued > QUEUE && window.cwnd > self.reno_window {
                let given_up = queued.min(window.cwnd >> 1);
                window.cwnd = (window.cwnd - given_up).max(self.reno_window);
                window.ssthresh = window.cwnd;
            }
            self.reno_window = if self.reno_window <= 2 {
                (window.cwnd >> 1).max(2)
            } else {
                self.reno_window.saturating_add(1)
            };
            self.slow_rounds = (self.slow_rounds + 1).min(0x00ff_ffff);
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > FAST_ROUNDS {
                self.reno_window = 2;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
        }
        self.queued = queued;
    }
}

impl CongestionControl for Yeah {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.rounds.forget_path(view);
        window.clamp = window.clamp.min(highspeed::CLAMP);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        let half = (window.cwnd >> 1).max(2);
        let given_up = if self.slow_rounds < RENO_ROUNDS {
            self.queued.min(half).max(window.cwnd >> 3)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window >> 1).max(2);
        window.cwnd.saturating_sub(given_up).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !view.cwnd_limited(window) {
            return Response::None;
        }
        let avoidance_packets = window.beyond_slow_start_by_module(acked);
        if avoidance_packets > 0 {
            if self.slow_rounds > 0 {
                window.additive_increase(window.cwnd, avoidance_packets);
            } else {
                // The fast mode has always counted packets (`yeah->pkts_acked`).
                let packets =
                    if window.module_growth == Growth::Acks { acked } else { avoidance_packets };
                window.additive_increase(window.cwnd.min(scalable::STEP), packets);
            }
        }
        if self.rounds.ended(view) {
            if self.rounds.samples > 2 {
                self.judge(window);
            }
            self.rounds.begin(view);
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, _window: &mut Window, new: CaState) {
        if new == CaState::Open {
            self.rounds.begin(view);
        }
    }

    fn cwnd_event(&mut self, view: &View, _window: &mut Window, event: Event) {
        // After an idle time old samples say nothing about the path.
        if matches!(event, Event::TxStart | Event::CwndRestart) {
            self.rounds.forget_path(view);
        }
    }

    #[inline]
    fn acked(&mut self, _view: &View, _window: &mut Window, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us {
            self.rounds.sample(rtt_us, 1);
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        for (name, us) in
            [("base_rtt", self.rounds.base_rtt_us), ("round_rtt", self.rounds.min_rtt_us)]
        {
            if us != NO_RTT {
                tell(name, f64::from(us) * 1e3);
            }
        }
        tell("queued", f64::from(self.queued));
        tell("reno_window", f64::from(self.reno_window));
        tell("slow", f64::from(self.slow_rounds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, made, view};

    /// A round at this window over a path of `base_ms` that took `rtt_us`.
    fn judged(cwnd: u32, base_us: u32, rtt_us: u32) -> (Yeah, Window) {
        let (mut yeah, mut window) = (made!(Yeah), Window { ssthresh: 2, ..Window::new(cwnd) });
        yeah.init(&view(), &mut window);
        yeah.rounds.sample(base_us - 1, 1);
        yeah.rounds.begin(&view());
        for _ in 0..3 {
            yeah.acked(&view(), &mut window, &ack(1, rtt_us - 1));
        }
        yeah.judge(&mut window);
        (yeah, window)
    }

    /// Values of the kernel's own file.
    #[test]
    fn a_short_queue_is_fast_and_a_loss_costs_an_eighth() {
        let (mut yeah, mut window) = judged(500, 100_000, 105_000);
        assert_eq!((yeah.queued, yeah.slow_rounds), (23, 0));
        assert_eq!(yeah.ssthresh(&view(), &mut window), 438);
    }

    /// Values of the kernel's own file.
    #[test]
    fn a_long_delay_is_slow() {
        let (yeah, window) = judged(500, 100_000, 112_600);
        assert_eq!((yeah.queued, yeah.slow_rounds, yeah.reno_window), (55, 1, 250));
        assert_eq!(window.cwnd, 500);
    }

    /// Values of the kernel's own file.
    #[test]
    fn a_long_queue_is_given_up_down_to_half_the_window() {
        let (yeah, window) = judged(500, 100_000, 125_000);
        assert_eq!((window.cwnd, window.ssthresh, yeah.reno_window), (400, 400, 200));
        assert_eq!(judged(1_000, 100_000, 110_000).1.cwnd, 910);
        assert_eq!(judged(300, 20_000, 40_000).1.cwnd, 150);
    }

    #[test]
    fn after_sixteen_slow_rounds_a_loss_costs_half() {
        for (slow_rounds, ssthresh) in [(15, 88), (16, 50)] {
            let mut yeah = Yeah { slow_rounds, ..made!(Yeah) };
            assert_eq!(yeah.ssthresh(&view(), &mut Window::new(100)), ssthresh);
        }
    }

    /// Until 5.7 a slow YeAH takes an ACK of two packets for one; a fast one counts both (`yeah->pkts_acked`).
    #[test]
    fn where_modules_count_acks_slow_growth_is_half_of_it_and_fast_the_same() {
        let rules = crate::Rules { module_growth: Growth::Acks, ..crate::testing::RULES };
        for (slow_rounds, cwnd) in [(0, 1_010), (1, 1_000)] {
            let mut yeah = Yeah { slow_rounds, ..made!(Yeah, &[], &rules) };
            let mut window = Window { ssthresh: 2, ..Window::with_rules(1_000, &rules) };
            for _ in 0..500 {
                let _ = yeah.cong_avoid(&view(), &mut window, 2);
            }
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn fast_it_grows_as_scalable_and_slow_as_reno() {
        for (slow_rounds, cwnd) in [(0, 1_010), (1, 1_001)] {
            let mut yeah = Yeah { slow_rounds, ..made!(Yeah) };
            let mut window = Window { ssthresh: 2, ..Window::new(1_000) };
            for _ in 0..500 {
                let _ = yeah.cong_avoid(&view(), &mut window, 2);
            }
            assert_eq!(window.cwnd, cwnd);
        }
    }
}
