//! Prague: a scalable congestion control for L4S, DCTCP made fit for the Internet.
//!
//! - **Paper**: Briscoe, De Schepper, Albisser, Tilmans, Kuhn, Fairhurst, Scheffenegger, Johansson, Kühlewind et al., "Implementing the
//!   'Prague Requirements' for Low Latency Low Loss Scalable Throughput (L4S)", netdev 0x13, 2019;
//!   draft-briscoe-iccrg-prague-congestion-control; the requirements are RFC 9331 §4.3.
//! - **Equations**: `w` is the window with its fraction, `F` the share of a round's packets that were marked:
//!
//! ```text
//!   per round     α ← (1 − g) α + g F,  g = 1/16
//!   per ACK       w += a · (packets that it reports as not marked) / w
//!   at a mark     once a round: w ← (1 − α/2) w;   the first mark of all: w ← w/2
//!   at a loss     w ← w/2, and no growth until the recovery has ended
//!   a = 1,  or  (RTT/T)²  where RTT < T = 25 ms, from four rounds after slow start on; then a round takes T at least
//! ```
//! - **States**:
//!
//! ```text
//!   slow start ──first mark or loss: half──▶ congestion avoidance ──4 rounds──▶ independent of RTTs below T
//!                                                   │ a mark: (1 − α/2) w, a loss: w/2
//! ```
//! - **Steady state**: `1 − p = p W/2` for a share `p` of marks, where `W` are the packets of T or RTT, whichever is longer: two marks
//!   in that time, whatever the rate. As a reduction waits for the first mark after the last one's round, with marks at random it is 2.7.
//! - **Needs** accurate ECN at both ends, and sends ECT(1): a queue with a low marking threshold for L4S (`dualpi2`, `fq_codel ce_threshold
//!   1ms ce_threshold_selector 0x1/0x1`). Where accurate ECN was not granted it is Reno, without ECN.
//! - **Window**: in force is `w`, rounded up; it follows by a packet per ACK, so that proportional rate reduction has no part in it.
//!   Packets are paced at `w` per RTT, a quarter of a millisecond's worth at once at most.
//! - **Kernel 5.15** (`prague_kernel` 5), which L4STeam built for testbeds in 2024 (testing-build 5.15.72-56eae305c-prague-91; L4STeam/tcp-prague,
//!   commit 90aea47, is that module by itself): `w` grows unless the application is the limit (`app_limited`), where 6.x asks
//!   `tcp_is_cwnd_limited`, which a flow that is paced at its window seldom is; steps are shares of the whole window, and packets
//!   are paced at that; windows of up to four packets have a rate in their place (`rates.rs`). `prague_ecn_fallback` 1 looks for a
//!   queue with classic ECN by RTTs, finds one nearly everywhere, and reduces almost as Reno does there.
//! - **Departs from the module**: with 6.x it has windows alone, not the rates that the module (`prague_cwnd_mode` 2) takes in place of
//!   windows of up to four packets; segments never shrink; the first mark ends slow start, which in the module a packet of the same
//!   ACK that was not marked begins again.
//! - **Source of the details**: L4STeam's `tcp_prague.c`, version 0.7 of both. Parameters are those of the module, but
//!   `prague_kernel`.

mod classic;
mod rates;

use self::classic::ClassicQueue;
use self::rates::Rates;
use crate::algorithms::reno;
use crate::{
    About, Ack, CaState, CongestionControl, EcnMode, Event, Needs, Parameter, Parameters, Range,
    RateSample, Response, Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::{Instant, Stream};

/// Bits of the window's fraction (`CWND_UNIT`).
const UNIT: u32 = 20;
/// A packet.
const ONE: u64 = 1 << UNIT;
/// Bits of α (`PRAGUE_ALPHA_BITS`).
const ALPHA_BITS: u32 = 24;
/// g is 1/2 to this power (`PRAGUE_SHIFT_G`).
const SHIFT_G: u32 = 4;
/// `MIN_CWND_RTT`: with less, an ACK that is delayed would stop the flow.
const CWND_MIN: u32 = 2;
/// Packet size that the increase of a packet is meant for, bytes (`MTU_SYS`).
const MTU: u64 = 1_500;
/// IPv4's and TCP's headers with timestamps, which the module's rate counts.
const HEADERS: u32 = 52;
/// `MINIMUM_RATE`, bytes per second.
const RATE_MIN: u64 = 12_500;
/// RTTs beyond this are not scaled, µs (`MAX_SCALED_RTT`): the module's squares would overflow.
const SCALED_RTT_US_MAX: u32 = 100_000;

const SOURCE: &str = "module parameter";

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "prague",
    file: file!(),
    models: "L4STeam's tcp_prague.c, version 0.7 of its kernels 6.x, on request of its 5.15. No kernel of Debian has it",
    module: None,
    signal: Signal::Marks,
    settles: false,
    parameters: &[
        Parameter::new(
            "prague_burst_shift",
            12.0,
            Range::Whole(0, 30),
            "",
            "a burst is what the pacing rate sends in a second / 2 to this power, at most",
            SOURCE,
        ),
        Parameter::new(
            "prague_max_tso_segs",
            0.0,
            Range::Whole(0, 65_535),
            "packets",
            "a burst has no more; 0: no such limit",
            SOURCE,
        ),
        Parameter::new(
            "prague_rtt_transition",
            4.0,
            Range::Whole(0, 1 << 30),
            "rounds",
            "rounds from the end of slow start until growth is that of the longer RTT",
            SOURCE,
        ),
        Parameter::new(
            "prague_rtt_target",
            25_000.0,
            Range::Whole(0, 100_000),
            "us",
            "below this RTT flows grow as if they had it; 0: each as its own RTT says",
            SOURCE,
        ),
        Parameter::new(
            "prague_alpha_mode",
            0.0,
            Range::Whole(0, 1),
            "",
            "alpha at the start, 0 or 1; with 0 the first mark halves the window",
            SOURCE,
        ),
        Parameter::new(
            "prague_ecn_fallback",
            0.0,
            Range::Whole(0, 1),
            "",
            "1: reduce almost as Reno does where the queue seems to mark as RFC 3168 says (only of 5.15)",
            SOURCE,
        ),
        Parameter::new(
            "prague_kernel",
            6.0,
            Range::Whole(5, 6),
            "",
            "the kernels of L4STeam that the module is of: 6 for 6.x, 5 for 5.15 as of 2024",
            "L4STeam/linux, L4STeam/tcp-prague",
        ),
    ],
    variables: &[
        Variable::new("alpha", Unit::Ratio, "share of marked packets, smoothed"),
        Variable::new("frac_cwnd", Unit::Packets, "window with its fraction"),
        Variable::new("increase", Unit::Packets, "what it grows by in a round without marks"),
    ],
    needs: Needs { pacing: true, ecn: EcnMode::L4s, ..Needs::NOTHING },
};

/// L4STeam's Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    burst_shift: u32,
    max_tso_segs: u32,
    rtt_transition: u32,
    rtt_target_us: u32,
    /// The first mark halves the window.
    first_mark_halves: bool,
    /// The module of 5.15, which has rates in place of short windows.
    rates: Option<Box<Rates>>,
    /// Watches for a queue with classic ECN (the fallback of 5.15).
    classic: Option<Box<ClassicQueue>>,
    /// Accurate ECN was agreed on: otherwise it is Reno.
    scalable: bool,
    /// α, /2²⁴, times 16 (`upscaled_alpha`).
    upscaled_alpha: u64,
    /// w, /2²⁰ packets.
    frac_cwnd: u64,
    /// a, /2²⁰ packets.
    increase: u64,
    /// A mark has been reported: there is such a queue on the path.
    saw_ce: bool,
    in_loss: bool,
    /// Rounds since slow start ended.
    round: u32,
    /// The round ends when this byte is acknowledged; counters of packets when it began, delivered and marked.
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    alpha_at: Instant,
    /// Time of the last reduction by marks; `None`: never.
    cwr_at: Option<Instant>,
    /// Window before the last loss, in packets and with its fraction.
    loss_cwnd: u32,
    loss_frac_cwnd: u64,
    burst: u32,
}

/// The length of a packet, bytes (`tcp_mss_to_mtu`).
fn mtu(view: &View) -> u64 {
    u64::from(view.mss + HEADERS)
}

/// A quotient rounded to the nearest.
fn nearest(number: u64, divisor: u64) -> u64 {
    (number + divisor / 2) / divisor
}

impl Prague {
    /// Draws no random numbers.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, _rules: &Rules, _stream: Stream) -> Self {
        let first_mark_halves = parameters.whole("prague_alpha_mode") == 0;
        let of_5_15 = parameters.whole("prague_kernel") == 5;
        let falls_back = of_5_15 && parameters.whole("prague_ecn_fallback") == 1;
        Self {
            burst_shift: parameters.whole("prague_burst_shift"),
            max_tso_segs: parameters.whole("prague_max_tso_segs"),
            rtt_transition: parameters.whole("prague_rtt_transition"),
            rtt_target_us: parameters.whole("prague_rtt_target"),
            first_mark_halves,
            rates: of_5_15.then(|| Box::new(Rates::new(0))),
            classic: falls_back.then(|| Box::new(ClassicQueue::new(0))),
            scalable: false,
            upscaled_alpha: if first_mark_halves { 0 } else { 1 << (ALPHA_BITS + SHIFT_G) },
            frac_cwnd: 0,
            increase: ONE,
            saw_ce: false,
            in_loss: false,
            round: 0,
            next_seq: 0,
            old_delivered: 0,
            old_delivered_ce: 0,
            alpha_at: Instant::ZERO,
            cwr_at: None,
            loss_cwnd: 0,
            loss_frac_cwnd: 0,
            burst: 1,
        }
    }

    fn alpha(&self) -> u64 {
        self.upscaled_alpha >> SHIFT_G
    }

    /// True when growth is that of the longer RTT by now (`prague_is_rtt_indep`).
    fn is_independent(&self, window: &Window) -> bool {
        !window.in_slow_start() && self.round >= self.rtt_transition
    }

    /// True when T has passed since then.
    fn target_has_passed(&self, view: &View, since: Instant) -> bool {
        view.now.since(since).as_nanos() >= u64::from(self.rtt_target_us) * 1_000
    }

    /// a (`prague_ai_ack_increase`): a packet in T, of a window that is RTT/T of the one that T would need.
    fn update_increase(&mut self, view: &View) {
        let (srtt, target) = (u64::from(view.srtt_us_x8), u64::from(self.rtt_target_us) * 8);
        let scales = self.round >= self.rtt_transition
            && srtt > 0
            && srtt <= u64::from(SCALED_RTT_US_MAX) * 8
            && srtt < target;
        self.increase = if scales { nearest(srtt * srtt * ONE, target * target) } else { ONE };
    }

    /// `prague_new_round`.
    fn begin_round(&mut self, view: &View, window: &Window) {
        self.next_seq = view.snd_nxt;
        (self.old_delivered, self.old_delivered_ce) = (view.delivered, view.delivered_ce);
        if !window.in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
        self.update_increase(view);
    }

    /// α's formula (`prague_update_alpha`): its remainder is kept.
    fn update_alpha(&mut self, delivered: u64, marked: u64) {
        let share = (marked << ALPHA_BITS) / delivered.max(1);
        let alpha = self.upscaled_alpha - (self.upscaled_alpha >> SHIFT_G) + share;
        self.upscaled_alpha = alpha.min(1 << (ALPHA_BITS + SHIFT_G));
    }

    /// At the end of a round.
    fn end_round(&mut self, view: &View, window: &Window) {
        let early = self.is_independent(window) && !self.target_has_passed(view, self.alpha_at);
        if view.snd_una < self.next_seq || early {
            return;
        }
        if self.saw_ce {
            if let Some(classic) = &mut self.classic {
                classic.judge(view.min_rtt_us);
            }
            self.update_alpha(
                view.delivered - self.old_delivered,
                view.delivered_ce - self.old_delivered_ce,
            );
            self.alpha_at = view.now;
        }
        if let Some(rates) = &mut self.rates {
            rates.end_round(view.srtt_us_x8);
        }
        self.begin_round(view, window);
    }

    /// V, 1/8 µs (`prague_virtual_rtt`).
    fn virtual_rtt_x8(&self, view: &View) -> u64 {
        u64::from(self.rtt_target_us * 8).max(view.srtt_us_x8.into())
    }

    /// The rate, if it stands in for the window.
    fn rate(&mut self, window: &Window) -> Option<&mut Rates> {
        let stands_in = self.saw_ce && self.rtt_target_us > 0 && self.is_independent(window);
        self.rates.as_deref_mut().filter(|rates| stands_in && rates.short_window)
    }

    /// True when the window may grow: it was the limit, or for 5.15 the application was not.
    fn may_grow(&self, view: &View, window: &Window) -> bool {
        if self.rates.is_some() { view.app_limited == 0 } else { view.cwnd_limited(window) }
    }

    /// The window that w means (`prague_frac_cwnd_to_snd_cwnd`).
    fn whole(&self, window: &Window) -> u32 {
        let packets = self.frac_cwnd.div_ceil(ONE).min(u32::MAX.into()) as u32;
        packets.max(CWND_MIN).min(window.clamp)
    }

    /// `prague_update_cwnd`.
    fn update_cwnd(&mut self, view: &View, window: &mut Window, sample: &RateSample) {
        if sample.newly_marked > 0 && !self.saw_ce {
            self.saw_ce = true;
            if self.first_mark_halves {
                self.frac_cwnd = self.frac_cwnd.div_ceil(2);
            }
            window.ssthresh = window.ssthresh.min(self.whole(window));
        }
        let unmarked = sample.acked_sacked.saturating_sub(sample.newly_marked);
        if unmarked > 0
            && !self.in_loss
            && self.may_grow(view, window)
            && self.grow(view, window, unmarked)
        {
            return;
        }
        let whole = self.whole(window);
        if window.cwnd > whole {
            window.cwnd -= 1;
            window.ssthresh = window.cwnd;
            self.update_increase(view);
        } else if window.cwnd < whole {
            window.cwnd += 1;
            self.update_increase(view);
        }
    }

    /// Grows by packets that were not marked; whether slow start took them all.
    fn grow(&mut self, view: &View, window: &mut Window, unmarked: u32) -> bool {
        let mut avoidance_packets = unmarked;
        if window.in_slow_start() {
            avoidance_packets = window.slow_start(avoidance_packets);
            self.frac_cwnd = u64::from(window.cwnd) << UNIT;
            if avoidance_packets == 0 {
                self.update_increase(view);
                return true;
            }
        }
        let virtual_rtt_x8 = self.virtual_rtt_x8(view);
        let frac = if let Some(rate) = self.rate(window) {
            rate.grow(avoidance_packets, virtual_rtt_x8, mtu(view));
            rate.window(mtu(view))
        } else {
            self.frac_cwnd.saturating_add(self.step(view, window, avoidance_packets))
        };
        self.frac_cwnd = frac.max(self.frac_cwnd.saturating_add(avoidance_packets.into()));
        false
    }

    /// Growth of w for packets that were not marked, /2²⁰ packets; by window 5.15 means the whole one, and packets as they are.
    fn step(&self, view: &View, window: &Window, packets: u32) -> u64 {
        let increase = u64::from(packets) * self.increase;
        if self.rates.is_some() {
            return nearest(increase, window.cwnd.max(1).into());
        }
        let frac = u128::from(self.frac_cwnd.max(1));
        let step = (((u128::from(increase) << UNIT) + frac / 2) / frac) as u64;
        step.saturating_mul(MTU) / mtu(view)
    }

    /// `prague_enter_cwr`.
    fn marked(&mut self, view: &View, window: &Window) {
        if self.is_independent(window)
            && self.cwr_at.is_some_and(|at| !self.target_has_passed(view, at))
        {
            return;
        }
        self.cwr_at = Some(view.now);
        let mut alpha = self.alpha();
        if let Some(classic) = &self.classic {
            alpha = classic.share(alpha);
        }
        if let Some(rate) = self.rate(window) {
            rate.reduce(alpha);
            self.frac_cwnd = rate.window(mtu(view));
            return;
        }
        let given_up = u128::from(alpha) * u128::from(self.frac_cwnd) + (1 << ALPHA_BITS);
        self.frac_cwnd -= (given_up >> (ALPHA_BITS + 1)) as u64;
    }

    /// `prague_enter_loss`.
    fn on_loss(&mut self, view: &View, window: &Window) {
        (self.loss_cwnd, self.loss_frac_cwnd) = (window.cwnd, self.frac_cwnd);
        self.frac_cwnd -= self.frac_cwnd >> 1;
        if let Some(rates) = &mut self.rates {
            rates.remember();
        }
        if let Some(rate) = self.rate(window) {
            rate.halve();
            self.frac_cwnd = rate.window(mtu(view));
        }
        self.in_loss = true;
    }

    /// `prague_update_pacing_rate`: w, or what is out if that is more, per RTT; twice as much far below the threshold.
    fn pace(&mut self, view: &View, window: &mut Window) {
        let second_half =
            self.virtual_rtt_x8(view) * 1_000 / 16 <= view.now.since(self.alpha_at).as_nanos();
        if let Some(rate) = self.rate(window) {
            let paced = rate.paced(second_half);
            self.set_rate(view, window, paced);
            return;
        }
        let mut rate = 8_000_000 * mtu(view);
        if view.srtt_us_x8 > 0 {
            rate /= u64::from(view.srtt_us_x8);
        }
        let whole = if self.rates.is_some() { window.cwnd.into() } else { self.frac_cwnd >> UNIT };
        let rate = rate.saturating_mul(whole.max(view.in_flight().into())).max(RATE_MIN);
        self.set_rate(view, window, rate);
        if let Some(rates) = &mut self.rates {
            rates.bytes = window.pacing_rate;
        }
    }

    /// The rate in force, and the bursts of it.
    fn set_rate(&mut self, view: &View, window: &mut Window, mut rate: u64) {
        if window.cwnd < window.ssthresh / 2 {
            rate = rate.saturating_mul(2);
        }
        let burst = (rate / mtu(view)) >> self.burst_shift;
        self.burst = burst.clamp(1, u32::MAX.into()) as u32;
        if self.max_tso_segs > 0 {
            self.burst = self.burst.min(self.max_tso_segs);
        }
        window.pacing_rate = rate;
    }
}

impl CongestionControl for Prague {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.scalable = view.ecn;
        self.frac_cwnd = u64::from(window.cwnd) << UNIT;
        self.alpha_at = view.now;
        self.saw_ce = view.delivered_ce > 0;
        if let Some(classic) = &mut self.classic {
            **classic = ClassicQueue::new(view.srtt_us_x8 / 8);
        }
        if let Some(rates) = &mut self.rates {
            **rates = Rates::new(view.srtt_us_x8);
        }
        if self.scalable {
            self.pace(view, window);
        }
        self.begin_round(view, window);
    }

    /// Its window goes its own way.
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        if let Some(classic) = &mut self.classic {
            classic.rescale(window.ssthresh);
        }
        if self.scalable { window.ssthresh } else { reno::half(window) }
    }

    fn acked(&mut self, _view: &View, _window: &mut Window, ack: &Ack) {
        if let (Some(classic), Some(rtt_us)) = (&mut self.classic, ack.rtt_us) {
            classic.add_rtt(rtt_us);
        }
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        reno::grow(view, window, acked);
        Response::None
    }

    fn has_cong_control(&self) -> bool {
        self.scalable
    }

    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        self.update_cwnd(view, window, sample);
        self.end_round(view, window);
        self.pace(view, window);
        if let Some(rates) = &mut self.rates {
            rates.judge(window, mtu(view));
        }
        Response::None
    }

    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        if new == view.state {
            return;
        }
        match new {
            CaState::Recovery => self.on_loss(view, window),
            CaState::Cwr => self.marked(view, window),
            CaState::Open => self.in_loss = false,
            // A timeout is an event.
            CaState::Disorder | CaState::Loss => {}
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::Loss => self.on_loss(view, window),
            Event::TxStart
            | Event::CwndRestart
            | Event::CompleteCwr
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn undo_cwnd(&mut self, view: &View, window: &mut Window) -> u32 {
        if !self.scalable {
            return window.cwnd.max(view.prior_cwnd);
        }
        self.in_loss = false;
        self.frac_cwnd = self.frac_cwnd.max(self.loss_frac_cwnd);
        if let Some(rates) = &mut self.rates {
            rates.undo();
            self.frac_cwnd = rates.window(mtu(view));
        }
        window.cwnd.max(self.loss_cwnd)
    }

    fn tso_segs(&self) -> Option<u32> {
        self.scalable.then_some(self.burst)
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        if self.scalable {
            tell("alpha", self.alpha() as f64 / f64::from(1 << ALPHA_BITS));
            tell("frac_cwnd", self.frac_cwnd as f64 / ONE as f64);
            tell("increase", self.increase as f64 / ONE as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, made, view};

    /// A connection with accurate ECN, beyond slow start and the transition, with this RTT and window.
    fn with(srtt_us: u32, cwnd: u32) -> (Prague, View, Window) {
        beyond_transition(made!(Prague), srtt_us, cwnd)
    }

    /// The same of kernel 5.15.
    fn of_5_15(srtt_us: u32, cwnd: u32) -> (Prague, View, Window) {
        beyond_transition(made!(Prague, &[("prague_kernel", 5.0)]), srtt_us, cwnd)
    }

    fn beyond_transition(mut prague: Prague, srtt_us: u32, cwnd: u32) -> (Prague, View, Window) {
        let view = View { ecn: true, srtt_us_x8: srtt_us * 8, ..view() };
        let mut window = Window { ssthresh: cwnd, ..Window::new(cwnd) };
        prague.init(&view, &mut window);
        prague.round = 4;
        prague.update_increase(&view);
        (prague, view, window)
    }

    fn sample(acked_sacked: u32, newly_marked: u32) -> RateSample {
        RateSample { acked_sacked, newly_marked, ..RateSample::default() }
    }

    /// By hand, from the module's formulas: 100 packets a round of which 10 are marked.
    #[test]
    fn alpha_follows_the_share_of_marks_and_keeps_its_remainder() {
        let mut prague = made!(Prague);
        prague.update_alpha(100, 10);
        assert_eq!(prague.upscaled_alpha, 1_677_721, "a tenth of 2^24");
        assert_eq!(prague.alpha(), 104_857, "a sixteenth of that: 0.00625");
        (0..400).for_each(|_| prague.update_alpha(100, 10));
        let settled = prague.alpha() as f64 / f64::from(1 << 24);
        assert!((settled - 0.1).abs() < 1e-6, "{settled}");
        // Of one in 10,000 something is left, where DCTCP's 10 bits would keep nothing.
        (0..400).for_each(|_| prague.update_alpha(10_000, 1));
        let settled = prague.alpha() as f64 / f64::from(1 << 24);
        assert!((settled - 1e-4).abs() < 1e-6, "{settled}");
        (0..400).for_each(|_| prague.update_alpha(10, 10));
        assert_eq!(prague.upscaled_alpha, 1 << 28, "1 at most");
    }

    /// (RTT/T)² below T = 25 ms, 1 from there on; 5 ms: 1/25 of 2^20.
    #[test]
    fn the_increase_is_that_of_a_flow_with_the_target_rtt() {
        for (srtt_us, increase) in
            [(5_000, 41_943), (12_500, 262_144), (25_000, 1 << 20), (80_000, 1 << 20)]
        {
            assert_eq!(with(srtt_us, 100).0.increase, increase, "{srtt_us}");
        }
        let (mut prague, view, _) = with(5_000, 100);
        prague.round = 3;
        prague.update_increase(&view);
        assert_eq!(prague.increase, ONE, "before the transition each grows as its own RTT says");
    }

    /// α of a tenth at 100 packets costs five; two that were not marked are worth 0.02.
    #[test]
    fn steps_are_fractions_of_a_packet() {
        let (mut prague, view, mut window) = with(30_000, 100);
        prague.upscaled_alpha = (1 << 28) / 10;
        prague.set_state(&view, &mut window, CaState::Cwr);
        assert_eq!(prague.frac_cwnd, 99_614_722, "95 packets, but for alpha's remainder");
        let (mut prague, view, mut window) = with(30_000, 100);
        prague.saw_ce = true;
        let _ = prague.cong_control(&view, &mut window, &sample(3, 1));
        assert_eq!(prague.frac_cwnd - (100 << UNIT), 20_972);
        assert_eq!(window.cwnd, 101, "rounded up");
    }

    #[test]
    fn the_window_follows_by_a_packet_per_ack() {
        let (mut prague, view, mut window) = with(30_000, 100);
        prague.saw_ce = true;
        prague.frac_cwnd = 90 << UNIT;
        let windows: Vec<u32> = (0..12)
            .map(|_| {
                let _ = prague.cong_control(&view, &mut window, &sample(1, 1));
                window.cwnd
            })
            .collect();
        assert_eq!(windows, [99, 98, 97, 96, 95, 94, 93, 92, 91, 90, 90, 90]);
        assert_eq!(window.ssthresh, 90);
    }

    #[test]
    fn the_first_mark_ends_slow_start_and_halves() {
        let mut prague = made!(Prague);
        let view = View { ecn: true, srtt_us_x8: 160_000, ..view() };
        let mut window = Window::new(40);
        prague.init(&view, &mut window);
        let _ = prague.cong_control(&view, &mut window, &sample(10, 0));
        assert_eq!((window.cwnd, prague.frac_cwnd), (50, 50 << UNIT));
        let _ = prague.cong_control(&view, &mut window, &sample(2, 1));
        assert!(!window.in_slow_start());
        assert_eq!(prague.frac_cwnd >> UNIT, 25);
        assert_eq!(window.cwnd, 49);
    }

    #[test]
    fn a_loss_halves_and_growth_waits_for_the_end_of_recovery() {
        let (mut prague, mut view, mut window) = with(30_000, 100);
        prague.set_state(&view, &mut window, CaState::Recovery);
        view.state = CaState::Recovery;
        assert_eq!(prague.frac_cwnd, 50 << UNIT);
        (0..60).for_each(|_| {
            let _ = prague.cong_control(&view, &mut window, &sample(1, 0));
        });
        assert_eq!((window.cwnd, prague.frac_cwnd), (50, 50 << UNIT));
        let before = prague.clone();
        assert_eq!(prague.undo_cwnd(&view, &mut window), 100);
        assert_eq!(prague.frac_cwnd, 100 << UNIT);
        prague = before;
        prague.set_state(&view, &mut window, CaState::Open);
        let _ = prague.cong_control(&view, &mut window, &sample(1, 0));
        assert!(prague.frac_cwnd > 50 << UNIT);
    }

    /// With marks over 25 ms only the first ones reduce, once the RTT does not count.
    #[test]
    fn marks_reduce_once_in_the_target_rtt() {
        let (mut prague, mut view, mut window) = with(5_000, 100);
        prague.upscaled_alpha = 1 << 28;
        let mut packets = |ms: u64| {
            view.now = at_ms(ms);
            view.state = CaState::Open;
            prague.set_state(&view, &mut window, CaState::Cwr);
            prague.frac_cwnd >> UNIT
        };
        assert_eq!([0, 24, 25, 40, 50].map(&mut packets), [50, 50, 25, 25, 12]);
    }

    /// The mean window, packets, where each packet is marked with this probability: ACKs of a packet each, evenly spaced, and an
    /// endpoint that is in CWR for the packets that were out.
    fn settled(srtt_us: u32, p: f64) -> f64 {
        let (mut prague, mut view, mut window) = with(srtt_us, 40);
        let mut stream = crate::testing::stream();
        prague.saw_ce = true;
        let (mut sum, mut count, mut now_ns) = (0.0, 0.0, 0);
        let mut reopens_at = 0;
        for packet in 0..400_000_u64 {
            now_ns += u64::from(srtt_us) * 1_000 / u64::from(window.cwnd);
            view.now = Instant::from_nanos(now_ns);
            view.snd_una += 1_448;
            view.snd_nxt = view.snd_una + u64::from(window.cwnd) * 1_448;
            let marked = f64::from(stream.next_u32()) < p * f64::from(u32::MAX);
            view.delivered += 1;
            view.delivered_ce += u64::from(marked);
            if view.state == CaState::Cwr && view.snd_una > reopens_at {
                prague.set_state(&view, &mut window, CaState::Open);
                view.state = CaState::Open;
            }
            if marked && view.state == CaState::Open {
                prague.set_state(&view, &mut window, CaState::Cwr);
                view.state = CaState::Cwr;
                reopens_at = view.snd_nxt;
            }
            let _ = prague.cong_control(&view, &mut window, &sample(1, u32::from(marked)));
            if packet >= 100_000 {
                sum += prague.frac_cwnd as f64 / ONE as f64;
                count += 1.0;
            }
        }
        sum / count
    }

    /// Reductions are a round apart and wait for the next mark then, 1/m of a round for m marks in it: with even gains and
    /// losses (1 − p)(1 + 1/m) = m/2. It stays 2.7 for any rate: the scalable property (RFC 9331 §1.2).
    fn marks_per_round(p: f64) -> f64 {
        (1.0 - p) * (1.0 + (1.0 + 2.0 / (1.0 - p)).sqrt())
    }

    #[test]
    fn the_steady_window_is_inverse_to_the_share_of_marks() {
        for (srtt_us, p) in [(25_000, 0.05), (25_000, 0.02), (60_000, 0.05), (60_000, 0.01)] {
            let (found, closed) = (settled(srtt_us, p), marks_per_round(p) / p);
            assert!((found / closed - 1.0).abs() < 0.1, "{srtt_us} {p}: {found} of {closed}");
        }
    }

    #[test]
    fn below_the_target_rates_do_not_depend_on_rtts() {
        let rate = |srtt_us: u32| settled(srtt_us, 0.025) / f64::from(srtt_us);
        let reference = rate(25_000);
        for srtt_us in [12_500, 8_000, 5_000, 2_500] {
            let ratio = rate(srtt_us) / reference;
            assert!((ratio - 1.0).abs() < 0.1, "{srtt_us}: {ratio}");
        }
        let ratio = rate(50_000) / reference;
        assert!((ratio - 0.5).abs() < 0.05, "above it they do: {ratio}");
    }

    /// 100 packets of 1500 bytes in 30 ms are 5 MB/s; a burst is 2^-12 s of that, 0.8 packets: one.
    #[test]
    fn it_is_paced_at_the_window_per_rtt_in_short_bursts() {
        let (prague, _, window) = with(30_000, 100);
        assert_eq!((window.pacing_rate, prague.tso_segs()), (5_000_000, Some(1)));
        let (prague, _, window) = with(1_000, 1_000);
        assert_eq!((window.pacing_rate, prague.tso_segs()), (1_500_000_000, Some(244)));
    }

    /// A flow that is paced at its window is seldom limited by it: 6.x then stands still, 5.15 does not.
    #[test]
    fn of_5_15_it_grows_unless_the_application_is_the_limit() {
        let frac = |(mut prague, mut view, mut window): (Prague, View, Window), app_limited| {
            view.app_limited = app_limited;
            view.is_cwnd_limited = false;
            let _ = prague.cong_control(&view, &mut window, &sample(1, 0));
            prague.frac_cwnd - (100 << UNIT)
        };
        assert_eq!(frac(with(30_000, 100), 0), 0);
        assert_eq!(frac(of_5_15(30_000, 100), 0), ONE.div_ceil(100), "a packet in a round");
        assert_eq!(frac(of_5_15(30_000, 100), 7), 0);
    }

    /// Three packets in 10 ms are 450 kB/s; each packet adds 1500 bytes in V = 25 ms, over the eight packets of V.
    #[test]
    fn of_5_15_a_short_window_is_a_rate() {
        let (mut prague, view, mut window) = of_5_15(10_000, 3);
        prague.saw_ce = true;
        let _ = prague.cong_control(&view, &mut window, &sample(1, 1));
        let rate = prague.rate(&window).expect("a short window").bytes;
        assert_eq!(rate, 450_000);
        let _ = prague.cong_control(&view, &mut window, &sample(1, 0));
        let grown = prague.rate(&window).expect("a short window").bytes - rate;
        assert_eq!(grown, 7_864, "an eighth of 1500 · 2^23 / 200,000 eighths of a µs");
        assert_eq!(window.pacing_rate, (rate + grown) + (rate + grown) * 4 / 128);
        // All is marked, and half the rate is given up; the window follows.
        prague.upscaled_alpha = 1 << 28;
        prague.set_state(&view, &mut window, CaState::Cwr);
        assert_eq!(prague.rate(&window).expect("a short window").bytes, 228_932);
        assert!(prague.frac_cwnd < 2 << UNIT);
        let (long, _, window) = of_5_15(10_000, 5);
        let mut long = Prague { saw_ce: true, ..long };
        assert!(long.rate(&window).is_none());
    }

    #[test]
    fn without_accurate_ecn_it_is_reno() {
        let mut prague = made!(Prague);
        let mut window = Window::new(100);
        prague.init(&view(), &mut window);
        assert!(!prague.has_cong_control() && prague.tso_segs().is_none());
        assert_eq!(prague.ssthresh(&view(), &mut window), 50);
        let _ = prague.cong_avoid(&view(), &mut window, 10);
        assert_eq!(window.cwnd, 110);
    }
}
