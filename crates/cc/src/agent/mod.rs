//! An agent: a congestion control whose window or pacing rate is set step by step, by a policy or from outside the run.
//!
//! Scope: what an agent sees of a step ([`figures`]), what an action does ([`action`]), policies and their models ([`policy`],
//! [`model`]), and the algorithm itself ([`Agent`]). Out of scope: when a step ends, which the simulator's loop sees to.
//!
//! An agent that sets windows leaves a reduction and the time after a timeout to the endpoint, as every algorithm without a
//! `cong_control` does; one that sets the rate owns both (`has_cong_control`). One with an inner algorithm forwards every hook to
//! it and multiplies its window once a step, as Orca does (Abbasloo et al., SIGCOMM 2020).

mod action;
mod figures;
mod model;
mod policy;
#[cfg(test)]
mod tests;

pub use action::ActionKind;
pub use figures::{COUNT, FIGURES, FigureRow, Figures};
pub use policy::{OnLoss, POLICY_MAX, Policy, Step};

use crate::{
    About, Ack, AckEvent, CaState, CongestionControl, Event, LostPacket, Needs, RateSample,
    Response, Signal, View, Window,
};
use dragstrip_units::{Duration, Instant};
use figures::Sums;
use model::Scratch;
use std::sync::Arc;

/// The row of an agent that sets windows.
const ABOUT: About = About {
    name: "agent",
    file: file!(),
    models: "none: a policy of the scenario",
    module: None,
    signal: Signal::Nothing,
    settles: false,
    parameters: &[],
    variables: &[],
    needs: Needs::NOTHING,
};

/// The row of one that sets the pacing rate.
const ABOUT_RATE: About = About { needs: Needs { pacing: true, ..Needs::NOTHING }, ..ABOUT };

/// Shortest step of round trips.
const STEP_MIN: Duration = Duration::from_millis(1);
/// Smallest window of an agent that sets the rate, packets.
const RATE_WINDOW_MIN: u32 = 10;
/// Round trips of its rate that its window holds: a full queue does not hold it back.
const RATE_WINDOW_RTTS: f64 = 2.0;

/// An agent at work in one connection.
#[derive(Clone, Debug)]
pub struct Agent<A> {
    policy: Arc<Policy>,
    inner: Option<Box<A>>,
    about: &'static About,
    sums: Sums,
    figures: Figures,
    /// Observations, the oldest step first.
    seen: Box<[f32]>,
    scratch: Scratch,
    /// Window that it has set, packets.
    window: u32,
    /// Rate that it has set, bytes per second.
    rate: u64,
    /// The last action.
    action: f64,
    /// Number of actions so far.
    actions: usize,
    /// End of the step.
    due: Instant,
    /// A data packet has been acknowledged.
    begun: bool,
}

impl<A: CongestionControl> Agent<A> {
    /// An agent of this policy, over an algorithm with its row if the policy names one.
    #[must_use]
    pub fn new(policy: &Arc<Policy>, inner: Option<(A, &'static About)>) -> Self {
        let about = match &inner {
            Some((_, about)) => about,
            None if policy.action.is_rate() => &ABOUT_RATE,
            None => &ABOUT,
        };
        let inner = inner.map(|(inner, _)| Box::new(inner));
        Self {
            inner,
            about,
            sums: Sums::new(),
            figures: [0.0; COUNT],
            seen: vec![0.0; policy.inputs()].into(),
            scratch: Scratch::new(),
            window: 0,
            rate: 0,
            action: 0.0,
            actions: 0,
            due: Instant::NEVER,
            begun: false,
            policy: Arc::clone(policy),
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Values of the last step that ended.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Observation at the end of the last step: `history` steps, the oldest first, of the policy's figures.
    #[must_use]
    pub fn observation(&self) -> &[f32] {
        &self.seen
    }

    /// End of the step; now, when the first data packet has just been acknowledged.
    #[must_use]
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// True once a data packet has been acknowledged: the first step has begun.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// True if it is asked after every ACK.
    #[must_use]
    pub fn is_asked_at_acks(&self) -> bool {
        self.policy.step == Step::Ack
    }

    pub(crate) const fn about(&self) -> &'static About {
        self.about
    }

    /// Ends the step at `view.now`; `sent` counts the segments sent so far. Returns the policy's action; None: it comes from
    /// outside.
    pub fn close(&mut self, view: &View, window: &Window, sent: u64) -> Option<f64> {
        self.figures = self.sums.close(view, window, sent, self.action);
        let count = self.policy.observed.len();
        if count > 0 {
            self.seen.copy_within(count.., 0);
            let newest = self.seen.len() - count;
            for (place, figure) in self.seen[newest..].iter_mut().zip(&self.policy.observed) {
                let row = &FIGURES[*figure];
                *place = self.figures[*figure].clamp(row.low, row.high) as f32;
            }
            if self.actions == 0 {
                for start in (0..newest).step_by(count) {
                    self.seen.copy_within(newest.., start);
                }
            }
        }
        self.due = match self.policy.step {
            Step::Ms(ms) => view.now + Duration::from_nanos((ms * 1e6) as u64),
            Step::Rtts(rtts) => {
                let step = Duration::from_nanos((self.sums.mean_us() * rtts * 1e3) as u64);
                view.now + step.max(STEP_MIN)
            }
            Step::Ack => Instant::NEVER,
        };
        self.decide()
    }

    fn decide(&mut self) -> Option<f64> {
        let Self { policy, scratch, seen, .. } = self;
        scratch.inputs.clear();
        scratch.inputs.extend(seen.iter().map(|value| f64::from(*value)));
        for (input, mean) in scratch.inputs.iter_mut().zip(&policy.mean) {
            *input -= mean;
        }
        for (input, deviation) in scratch.inputs.iter_mut().zip(&policy.deviation) {
            *input /= deviation;
        }
        let (low, high, choices) = policy.action.bounds();
        let action = policy.model.action(self.actions, choices.is_some(), scratch)?;
        // A sum may overflow: a policy then leaves everything as it is.
        Some(if action.is_nan() { 0.0 } else { action.clamp(low, high) })
    }

    /// Applies an action within its bounds. Returns true if it changes window or rate.
    pub fn act(&mut self, action: f64, view: &View, window: &mut Window) -> bool {
        self.action = action;
        self.actions += 1;
        let kind = self.policy.action;
        if kind.is_rate() {
            let rate = kind.rate(action, self.rate, self.policy.delta);
            let changed = rate != self.rate;
            self.rate = rate;
            self.set_rate(view, window);
            return changed;
        }
        if self.inner.is_some() || self.policy.step == Step::Ack {
            let cwnd = kind.window(action, window.cwnd).min(window.clamp);
            let changed = cwnd != window.cwnd;
            window.cwnd = cwnd;
            return changed;
        }
        let target = kind.window(action, self.window);
        let changed = target != self.window;
        self.window = target;
        if changed {
            if self.policy.on_loss == OnLoss::Keep {
                window.ssthresh = target.max(2);
            }
            // A reduction and the time after a timeout are the endpoint's.
            if view.state <= CaState::Disorder {
                window.cwnd = target.min(window.clamp);
            }
        }
        changed
    }

    /// The rate, and a window that does not hold it back.
    fn set_rate(&self, view: &View, window: &mut Window) {
        window.pacing_rate = self.rate;
        let rtt_s = f64::from(view.srtt_us_x8) / 8e6;
        let packets = RATE_WINDOW_RTTS * self.rate as f64 * rtt_s / f64::from(view.mss);
        window.cwnd = (libm::ceil(packets) as u32).max(RATE_WINDOW_MIN).min(window.clamp);
    }
}

impl<A: CongestionControl> CongestionControl for Agent<A> {
    // No hook is inlined: an inner algorithm makes every call recursive, and the others' hooks would not be inlined either.
    #[inline(never)]
    fn init(&mut self, view: &View, window: &mut Window) {
        self.sums.start(view);
        if let Some(inner) = &mut self.inner {
            inner.init(view, window);
        }
        if let Some(packets) = self.policy.window_packets {
            window.cwnd = packets.min(window.clamp);
        }
        self.window = window.cwnd;
        if self.policy.action.is_rate() {
            let rtt_s = (f64::from(view.srtt_us_x8) / 8e6).max(1e-3);
            let bps = f64::from(window.cwnd) * f64::from(view.mss) * 8.0 / rtt_s;
            let bps = self.policy.rate_bps.unwrap_or(bps);
            self.rate = ActionKind::Rate.rate(bps, 0, 0.0);
            self.set_rate(view, window);
        } else if self.inner.is_none() && self.policy.on_loss == OnLoss::Keep {
            window.ssthresh = self.window;
        }
    }

    #[inline(never)]
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        match (&mut self.inner, self.policy.on_loss) {
            (Some(inner), _) => inner.ssthresh(view, window),
            (None, OnLoss::Keep) if self.policy.action.is_rate() => window.cwnd.max(2),
            (None, OnLoss::Keep) if self.policy.step == Step::Ack => window.cwnd.max(2),
            (None, OnLoss::Keep) => self.window,
            (None, OnLoss::Halve) => (window.cwnd >> 1).max(2),
        }
    }

    #[inline(never)]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.sums.grow(acked, view.cwnd_limited(window));
        if let Some(inner) = &mut self.inner {
            return inner.cong_avoid(view, window, acked);
        }
        if self.policy.step != Step::Ack {
            window.cwnd = self.window.min(window.clamp);
        }
        Response::None
    }

    #[inline(never)]
    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        if new >= CaState::Cwr && (new != view.state || new == CaState::Loss) {
            self.sums.reduce();
        }
        if let Some(inner) = &mut self.inner {
            inner.set_state(view, window, new);
        }
    }

    #[inline(never)]
    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        if let Some(inner) = &mut self.inner {
            inner.cwnd_event(view, window, event);
        }
    }

    #[inline(never)]
    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us {
            self.sums.sample(view.now, rtt_us);
        }
        if !self.begun {
            self.begun = true;
            self.due = view.now;
        }
        if let Some(inner) = &mut self.inner {
            inner.acked(view, window, ack);
        }
    }

    #[inline(never)]
    fn in_ack_event(&mut self, view: &View, window: &mut Window, event: &AckEvent) {
        if let Some(inner) = &mut self.inner {
            inner.in_ack_event(view, window, event);
        }
    }

    #[inline(never)]
    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        match &mut self.inner {
            Some(inner) => inner.undo_cwnd(view, window),
            None => window.cwnd.max(view.prior_cwnd),
        }
    }

    #[inline(never)]
    fn has_cong_control(&self) -> bool {
        match &self.inner {
            Some(inner) => inner.has_cong_control(),
            None => self.policy.action.is_rate(),
        }
    }

    #[inline(never)]
    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        self.sums.grow(sample.acked_sacked, view.is_cwnd_limited);
        if let Some(inner) = &mut self.inner {
            return inner.cong_control(view, window, sample);
        }
        self.set_rate(view, window);
        Response::None
    }

    #[inline(never)]
    fn wants_flights(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.wants_flights())
    }

    #[inline(never)]
    fn wants_exact_echo(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.wants_exact_echo())
    }

    #[inline(never)]
    fn wants_l4s(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.wants_l4s())
    }

    #[inline(never)]
    fn marked_lost(&mut self, view: &View, window: &mut Window, packet: &LostPacket) {
        if let Some(inner) = &mut self.inner {
            inner.marked_lost(view, window, packet);
        }
    }

    #[inline(never)]
    fn min_cwnd(&self, window: &Window) -> u32 {
        match &self.inner {
            Some(inner) => inner.min_cwnd(window),
            None => window.ssthresh,
        }
    }

    #[inline(never)]
    fn min_tso_segs(&self, view: &View, window: &Window) -> Option<u32> {
        self.inner.as_ref().and_then(|inner| inner.min_tso_segs(view, window))
    }

    #[inline(never)]
    fn tso_segs(&self) -> Option<u32> {
        self.inner.as_ref().and_then(|inner| inner.tso_segs())
    }

    #[inline(never)]
    fn sndbuf_factor(&self) -> u32 {
        self.inner.as_ref().map_or(2, |inner| inner.sndbuf_factor())
    }

    #[inline(never)]
    fn phase(&self, view: &View, window: &Window) -> &'static str {
        match &self.inner {
            Some(inner) => inner.phase(view, window),
            None if self.policy.action.is_rate() => "control",
            None if window.in_slow_start() => "slow_start",
            None => "congestion_avoidance",
        }
    }

    #[inline(never)]
    fn variables(&self, view: &View, window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if let Some(inner) = &self.inner {
            inner.variables(view, window, tell);
        }
    }
}
