//! DCTCP: reduces by the share of packets that were marked.
//!
//! - **Paper**: Alizadeh et al., "Data Center TCP (DCTCP)", ACM SIGCOMM 2010; RFC 8257.
//! - **Equations**: once per window, with F the share of its packets that were marked, `α ← (1 − g) α + g F`, `g` = 1/16; at an
//!   echo of a mark, once per window, `cwnd ← (1 − α/2) cwnd`. A loss costs half. Growth is Reno's.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                             │ echo: ssthresh = max((1 − α/2) cwnd, 2); loss: max(cwnd/2, 2)
//!       └──── timeout: cwnd = 1 ──────┘
//! ```
//! - **Needs** a queue that marks from a length or delay on (`ce_threshold`), and DCTCP at both ends: the receiver
//!   echoes each mark. Where ECN was not granted it is Reno.
//! - **Departs from RFC 8257**, as Linux does: α is a multiple of 1/1024, and the window's decay takes at least 1 of it, so
//!   that below 16 all of it is gone after one window; α starts at 1.
//! - **Source of the details**: Linux 6.1 `tcp_dctcp.c`. Parameters are those of the module.

use crate::algorithms::reno;
use crate::{
    About, AckEvent, CaState, CongestionControl, EcnMode, Event, Needs, Parameter, Parameters,
    Range, Response, Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// α is counted in 1/1024 (`DCTCP_MAX_ALPHA`).
const ONE: u32 = 1024;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "dctcp",
    file: file!(),
    models: "Linux 6.1, tcp_dctcp.c",
    module: Some("tcp_dctcp"),
    signal: Signal::Marks,
    settles: false,
    parameters: &[
        Parameter::new(
            "dctcp_shift_g",
            4.0,
            Range::Whole(0, 10),
            "",
            "the last window's weight in alpha is 1/2 to this power",
            "module parameter",
        ),
        Parameter::new(
            "dctcp_alpha_on_init",
            1024.0,
            Range::Whole(0, 1024),
            "1/1024",
            "alpha at the start",
            "module parameter",
        ),
    ],
    variables: &[Variable::new("alpha", Unit::Ratio, "share of marked packets, smoothed")],
    needs: Needs { ecn: EcnMode::Dctcp, ..Needs::NOTHING },
};

/// Linux's DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    shift_g: u32,
    /// /1024.
    alpha: u32,
    /// Both ends agreed on ECN: otherwise it is Reno.
    marked: bool,
    /// Counters of packets when the window began, delivered and marked.
    delivered: u64,
    delivered_ce: u64,
    /// The window ends when this byte is acknowledged.
    round_end: u64,
    /// The window before the last reduction.
    loss_cwnd: u32,
}

impl Dctcp {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        Self {
            shift_g: parameters.whole("dctcp_shift_g"),
            alpha: parameters.whole("dctcp_alpha_on_init"),
            marked: false,
            delivered: 0,
            delivered_ce: 0,
            round_end: 0,
            loss_cwnd: 0,
        }
    }

    /// `dctcp_reset`.
    fn begin_round(&mut self, view: &View) {
        self.round_end = view.snd_nxt;
        (self.delivered, self.delivered_ce) = (view.delivered, view.delivered_ce);
    }

    /// `dctcp_update_alpha`'s formula.
    fn update(&mut self, delivered: u64, marked: u64) {
        let decay = self.alpha >> self.shift_g;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        if marked > 0 {
            let gain = (marked << (10 - self.shift_g)) / delivered.max(1);
            self.alpha = (u64::from(self.alpha) + gain).min(u64::from(ONE)) as u32;
        }
    }

    /// `dctcp_react_to_loss`.
    fn on_loss(&mut self, window: &mut Window) {
        self.loss_cwnd = window.cwnd;
        window.ssthresh = reno::half(window);
    }
}

impl CongestionControl for Dctcp {
    fn init(&mut self, view: &View, _window: &mut Window) {
        self.marked = view.ecn;
        self.begin_round(view);
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        if !self.marked {
            return reno::half(window);
        }
        self.loss_cwnd = window.cwnd;
        let given_up = (u64::from(window.cwnd) * u64::from(self.alpha)) >> 11;
        (window.cwnd - given_up as u32).max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        reno::grow(view, window, acked);
        Response::None
    }

    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        if self.marked && new == CaState::Recovery && view.state != CaState::Recovery {
            self.on_loss(window);
        }
    }

    fn cwnd_event(&mut self, _view: &View, window: &mut Window, event: Event) {
        match event {
            Event::Loss if self.marked => self.on_loss(window),
            // What the receiver echoes is the endpoint's.
            Event::Loss
            | Event::TxStart
            | Event::CwndRestart
            | Event::CompleteCwr
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    #[inline]
    fn in_ack_event(&mut self, view: &View, _window: &mut Window, _event: &AckEvent) {
        if self.marked && view.snd_una >= self.round_end {
            self.update(view.delivered - self.delivered, view.delivered_ce - self.delivered_ce);
            self.begin_round(view);
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        window.cwnd.max(if self.marked { self.loss_cwnd } else { view.prior_cwnd })
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if self.marked {
            tell("alpha", f64::from(self.alpha) / f64::from(ONE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};

    /// A connection with ECN whose α is this.
    fn with(alpha: u32) -> Dctcp {
        let mut dctcp = made!(Dctcp);
        dctcp.init(&View { ecn: true, ..view() }, &mut Window::new(10));
        Dctcp { alpha, ..dctcp }
    }

    /// Values of the kernel's own file: windows without a mark.
    #[test]
    fn without_marks_alpha_decays_to_nothing() {
        let mut dctcp = with(1024);
        let alphas: Vec<u32> = (0..=80)
            .map(|_| {
                let alpha = dctcp.alpha;
                dctcp.update(100, 0);
                alpha
            })
            .collect();
        assert_eq!(alphas[..5], [1024, 960, 900, 844, 792]);
        assert_eq!((alphas[16], alphas[45], alphas[80]), (370, 63, 0));
    }

    /// Values of the kernel's own file: α, marked of delivered, α.
    #[test]
    fn alpha_follows_the_share_of_marks() {
        for (alpha, (marked, delivered), expected) in
            [(15, (0, 40), 0), (1_000, (40, 40), 1_002), (0, (1, 40), 1), (0, (1, 0), 64)]
        {
            let mut dctcp = with(alpha);
            dctcp.update(delivered, marked);
            assert_eq!(dctcp.alpha, expected, "{alpha}");
        }
    }

    /// Below 16 it is wiped before the gain is added: a tenth marked stays at 6, from above it stays near 100.
    #[test]
    fn a_tenth_marked_has_two_steady_states() {
        for (alpha, settled) in [(0, 6..=6), (1_024, 96..=111)] {
            let mut dctcp = with(alpha);
            (0..200).for_each(|_| dctcp.update(100, 10));
            assert!(settled.contains(&dctcp.alpha), "{}", dctcp.alpha);
        }
    }

    #[test]
    fn a_mark_costs_half_of_alpha_and_a_loss_half() {
        for (alpha, cwnd, ssthresh) in [(1024, 100, 50), (51, 40, 40), (100, 40, 39), (1024, 3, 2)]
        {
            assert_eq!(with(alpha).ssthresh(&view(), &mut Window::new(cwnd)), ssthresh);
        }
        let (mut dctcp, mut window) = (with(51), Window::new(40));
        window.ssthresh = dctcp.ssthresh(&view(), &mut window);
        dctcp.set_state(&view(), &mut window, CaState::Recovery);
        assert_eq!(window.ssthresh, 20);
        assert_eq!(dctcp.undo_cwnd(&view(), &mut Window::new(20)), 40);
    }

    #[test]
    fn a_window_ends_with_its_last_byte() {
        let mut dctcp = with(0);
        let mut view = View { ecn: true, snd_nxt: 14_480, ..view() };
        dctcp.begin_round(&view);
        (view.delivered, view.delivered_ce, view.snd_una) = (9, 5, 14_479);
        dctcp.in_ack_event(&view, &mut Window::new(10), &AckEvent::default());
        assert_eq!(dctcp.alpha, 0);
        (view.delivered, view.snd_una) = (10, 14_480);
        dctcp.in_ack_event(&view, &mut Window::new(10), &AckEvent::default());
        assert_eq!(dctcp.alpha, 32);
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let mut dctcp = made!(Dctcp);
        dctcp.init(&view(), &mut Window::new(10));
        assert_eq!(dctcp.ssthresh(&view(), &mut Window::new(100)), 50);
    }
}
