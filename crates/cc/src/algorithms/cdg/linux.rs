//! CDG as in Linux: backs off, at random, when delay is rising.
//!
//! - **Paper**: Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients", IFIP
//!   Networking 2011, LNCS 6641.
//! - **Equations**: per round trip, the gradients of its minimum and its maximum RTT, summed over 8
//!   rounds; backoff with probability `1 − exp(−g / G)`, `g` the mean gradient, `G` = 3 ms; a backoff
//!   keeps 0.7071 of the window. A *shadow window* remembers what a loss-based flow would have:
//!   loss halves that, not what backoffs have left.
//! - **States**:
//!
//! ```text
//!   unknown ◀──reduction complete── backoff ◀──random draw, gradient > 0── (any state)
//!      │ use_tolerance only
//!      └──▶ non-full ◀──gradients──▶ full       loss in non-full: no reduction
//! ```
//! - **Departs from the paper**, as Linux does: the reduction takes a round trip (CWR and PRR) rather
//!   than one step; a HyStart variant may end slow start; sums of gradients rather than means,
//!   microseconds rather than milliseconds; more than five backoffs in a row without a falling
//!   gradient are ineffectual, and there are none then until one falls; the shadow window is bounded by
//!   the window while the application is the limit. Loss tolerance is off by default.
//! - **Departs from Linux 6.1**: `exp` is the mathematical one (`libm`), not the kernel's table
//!   (which is off by less than 10⁻⁴); `window` goes up to 8 (the kernel allocates up to 256).
//!   And a tie: the kernel looks at the maximum unless the minimum has risen, `min > 0`. A host's
//!   own microseconds decide that where the queue empties in every round; a simulated host takes no
//!   time for a packet, its least RTT is the same to the microsecond, and a coin decides.
//! - **Source of the details**: Linux 6.1 `tcp_cdg.c`. Parameters are those of the module:
//!   `window` (rounds, power of two), `backoff_beta` (/1024), `backoff_factor` (1000 / (G ·
//!   window), G in ms), `hystart_detect` (0..3), `use_ineff` (backoffs, 0 off), `use_shadow`,
//!   `use_tolerance`.

use crate::algorithms::reno;
use crate::{
    About, Ack, CongestionControl, Event, Needs, Parameter, Parameters, Range, Response, Rules,
    Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "cdg",
    file: file!(),
    models: "Linux 6.1, tcp_cdg.c",
    module: Some("tcp_cdg"),
    signal: Signal::Delay,
    settles: false,
    parameters: &[
        Parameter::new(
            "window",
            8.0,
            Range::OneOf(&[1, 2, 4, 8]),
            "rounds",
            "that gradients are summed over",
            "module parameter",
        ),
        Parameter::new(
            "backoff_beta",
            724.0,
            Range::Whole(0, 1024),
            "1/1024",
            "kept of the window on a backoff",
            "module parameter",
        ),
        Parameter::new(
            "backoff_factor",
            42.0,
            Range::Whole(0, 1_000_000),
            "1/ms",
            "1000 / (G window): how likely a gradient makes a backoff",
            "module parameter",
        ),
        Parameter::new(
            "hystart_detect",
            3.0,
            Range::Whole(0, 3),
            "",
            "how slow start ends before a loss: 1 ACK trains, 2 delay, 3 both, 0 neither",
            "module parameter",
        ),
        Parameter::new(
            "use_ineff",
            5.0,
            Range::Whole(0, u16::MAX as u32),
            "backoffs",
            "in a row without effect before there are none; 0: indefinitely",
            "module parameter",
        ),
        Parameter::new(
            "use_shadow",
            1.0,
            Range::Switch,
            "",
            "a loss halves the shadow window",
            "module parameter",
        ),
        Parameter::new(
            "use_tolerance",
            0.0,
            Range::Switch,
            "",
            "a loss without a full queue costs nothing",
            "module parameter",
        ),
    ],
    variables: &[
        Variable::new(
            "gradient_min",
            Unit::Nanoseconds,
            "change of the least RTT per round, summed over the window of rounds",
        ),
        Variable::new("gradient_max", Unit::Nanoseconds, "the same of the largest RTT"),
        Variable::new("shadow_window", Unit::Packets, "window that a loss-based flow would have"),
        Variable::new("backoffs", Unit::Count, "backoffs in a row without a falling gradient"),
        Variable::new(
            "queue",
            Unit::Count,
            "what the gradients say of the queue: 0 unknown, 1 not full, 2 full, 3 backed off",
        ),
        Variable::new("delay_min", Unit::Nanoseconds, "least RTT that slow start has seen"),
    ],
    needs: Needs { dice: true, ..Needs::NOTHING },
};

/// Longest gradient window, rounds.
const WINDOW_MAX: usize = 8;
/// Sums over eight rounds must fit: an RTT of 134 s is as good as any longer one.
const RTT_US_MAX: u32 = i32::MAX as u32 >> 4;
/// A gradient sum at or below this shows that a backoff had an effect, µs.
const EFFECTUAL_US: i32 = -32;
/// HyStart: ACKs closer than this are one train, µs.
const TRAIN_GAP_US: u64 = 3_000;
/// HyStart: no delay below this counts, µs.
const DELAY_US_MIN: u32 = 125;
/// HyStart: samples in a round before its minimum counts.
const DELAY_SAMPLES: u16 = 8;
/// Credit for delayed ACKs that the filter may hold.
const DELACK_MAX: u8 = 5;

/// Extremes of the RTT, or their gradients, µs. Zero is "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i32,
    max: i32,
}

/// CDG's estimate of the bottleneck's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    NonFull,
    Full,
    /// We have just backed off: the next reduction is ours.
    Backoff,
}

/// Linux's CDG.
#[derive(Clone, Debug)]
pub struct Cdg {
    parameters: Settings,
    coin: Stream,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    window: u8,
    backoff_beta: u16,
    use_ineff: u16,
    backoff_factor: u32,
    detect_train: bool,
    detect_delay: bool,
    use_shadow: bool,
    use_tolerance: bool,
}

/// State that an idle restart resets (`struct cdg`).
#[derive(Clone, Debug)]
struct State {
    rtt: MinMax,
    rtt_prev: MinMax,
    gradients: [MinMax; WINDOW_MAX],
    gsum: MinMax,
    filled: bool,
    tail: u8,
    queue: Queue,
    /// Delayed ACKs expected.
    delack: u8,
    backoff_cnt: u16,
    sample_cnt: u16,
    shadow_wnd: u32,
    delay_min: i32,
    /// The round ends when this byte is acknowledged.
    rtt_seq: u64,
    /// The last ACK of the train, µs; `None` until the round's first.
    last_ack_us: Option<u64>,
    round_start_us: u64,
}

impl State {
    fn new(rtt_seq: u64, shadow_wnd: u32) -> Self {
        Self {
            rtt: MinMax::default(),
            rtt_prev: MinMax::default(),
            gradients: [MinMax::default(); WINDOW_MAX],
            gsum: MinMax::default(),
            filled: false,
            tail: 0,
            queue: Queue::Unknown,
            delack: 0,
            backoff_cnt: 0,
            sample_cnt: 0,
            shadow_wnd,
            delay_min: 0,
            rtt_seq,
            last_ack_us: None,
            round_start_us: 0,
        }
    }
}

impl Cdg {
    /// `stream` tosses the coin.
    #[must_use]
    pub fn new(given: &Parameters<'_>, _rules: &Rules, stream: Stream) -> Self {
        let detect = given.whole("hystart_detect");
        let parameters = Settings {
            window: given.whole("window") as u8,
            backoff_beta: given.whole("backoff_beta") as u16,
            backoff_factor: given.whole("backoff_factor"),
            use_ineff: given.whole("use_ineff") as u16,
            detect_train: detect & 1 != 0,
            detect_delay: detect & 2 != 0,
            use_shadow: given.switch("use_shadow"),
            use_tolerance: given.switch("use_tolerance"),
        };
        Self { parameters, coin: stream, state: State::new(0, 0) }
    }

    /// `tcp_cdg_hystart_update`: HyStart with this file's delayed-ACK filter, at any window.
    fn hystart(&mut self, view: &View, window: &mut Window) {
        let state = &mut self.state;
        state.delay_min = min_not_zero(state.delay_min, state.rtt.min);
        if state.delay_min == 0 {
            return;
        }
        if self.parameters.detect_train && train_is_long(state, view, window) {
            window.ssthresh = window.cwnd;
            return;
        }
        if self.parameters.detect_delay {
            if state.sample_cnt < DELAY_SAMPLES {
                state.sample_cnt += 1;
            } else {
                let base = state.delay_min as u32;
                let threshold = (base + base / 8).max(DELAY_US_MIN);
                if state.rtt.min as u32 > threshold {
                    window.ssthresh = window.cwnd;
                }
            }
        }
    }

    /// `tcp_cdg_grad`: the gradient that backoff is decided by, µs summed over the window.
    fn gradient(&mut self) -> i64 {
        let state = &mut self.state;
        let new = MinMax {
            min: state.rtt.min - state.rtt_prev.min,
            max: state.rtt.max - state.rtt_prev.max,
        };
        let slot = &mut state.gradients[usize::from(state.tail)];
        state.gsum.min += new.min - slot.min;
        state.gsum.max += new.max - slot.max;
        *slot = new;
        state.tail = (state.tail + 1) & (self.parameters.window - 1);

        let MinMax { min, max } = state.gsum;
        // A tie falls to one side or the other (see the head of this file).
        let rises = min > 0 || (min == 0 && self.coin.next_u32() & 1 == 0);
        let mut gradient = i64::from(if rises { min } else { max });
        if !state.filled {
            if state.tail == 0 {
                state.filled = true;
            } else {
                // Extrapolates the rounds not yet seen.
                gradient = gradient * i64::from(self.parameters.window) / i64::from(state.tail);
            }
        }
        if min <= EFFECTUAL_US || max <= EFFECTUAL_US {
            state.backoff_cnt = 0;
        }
        if self.parameters.use_tolerance {
            state.queue = judge(min, max).unwrap_or(state.queue);
        }
        gradient
    }

    /// `tcp_cdg_backoff`: tosses the coin.
    fn backs_off(&mut self, gradient: u32, window: &Window) -> bool {
        let keep = negative_exponential(gradient.wrapping_mul(self.parameters.backoff_factor));
        if self.coin.next_u32() <= keep {
            return false;
        }
        let state = &mut self.state;
        if self.parameters.use_ineff > 0 {
            state.backoff_cnt = state.backoff_cnt.wrapping_add(1);
            if state.backoff_cnt > self.parameters.use_ineff {
                return false;
            }
        }
        state.shadow_wnd = state.shadow_wnd.max(window.cwnd);
        state.queue = Queue::Backoff;
        true
    }

    /// The end of a round trip that gave samples; whether to back off.
    fn round_ends(&mut self, view: &View, window: &Window) -> bool {
        let gradient = if self.state.rtt_prev == MinMax::default() { 0 } else { self.gradient() };
        let state = &mut self.state;
        state.rtt_seq = view.snd_nxt;
        state.rtt_prev = std::mem::take(&mut state.rtt);
        state.last_ack_us = None;
        state.sample_cnt = 0;
        gradient > 0 && self.backs_off(gradient as u32, window)
    }
}

/// True when the ACK train has lasted longer than half the base delay.
fn train_is_long(state: &mut State, view: &View, window: &Window) -> bool {
    let now_us = view.now_us();
    match state.last_ack_us {
        Some(last_ack_us) if view.cwnd_limited(window) => {
            if now_us >= last_ack_us + TRAIN_GAP_US {
                return false;
            }
            state.last_ack_us = Some(now_us);
            let half_us = (state.delay_min as u32 / 2).max(DELAY_US_MIN);
            now_us > state.round_start_us + u64::from(half_us)
        }
        Some(_) | None => {
            state.last_ack_us = Some(now_us);
            state.round_start_us = now_us;
            false
        }
    }
}

/// Estimates the queue from the sums of gradients; `None`: nothing new.
fn judge(min: i32, max: i32) -> Option<Queue> {
    // DIV_ROUND_CLOSEST: small variations are none.
    let coarse = |us: i32| if us > 0 { (us + 32) / 64 } else { (us - 32) / 64 };
    let (min, max) = (coarse(min), coarse(max));
    if min > 0 && max <= 0 {
        Some(Queue::Full)
    } else if (min > 0 && max > 0) || max < 0 {
        Some(Queue::NonFull)
    } else {
        None
    }
}

/// `exp(-millionths / 10⁶)` in 2³²nds (`nexp_u32`); 0 from 2^24 on, as in the kernel.
fn negative_exponential(millionths: u32) -> u32 {
    if millionths >= 1 << 24 {
        return 0;
    }
    (libm::exp(-f64::from(millionths) * 1e-6) * f64::from(u32::MAX)) as u32
}

fn min_not_zero(a: i32, b: i32) -> i32 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        (a, b) => a.min(b),
    }
}

impl CongestionControl for Cdg {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.state = State::new(view.snd_nxt, window.cwnd);
        // The ACK of the SYN was counted before (`tcp_finish_connect` comes after `tcp_ack`).
        let handshake_us = (view.srtt_us_x8 >> 3).min(RTT_US_MAX) as i32;
        self.state.rtt = MinMax { min: handshake_us, max: handshake_us };
    }

    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        let cwnd = window.cwnd;
        match self.state.queue {
            Queue::Backoff => {
                ((u64::from(cwnd) * u64::from(self.parameters.backoff_beta)) >> 10).max(2) as u32
            }
            Queue::NonFull if self.parameters.use_tolerance => cwnd.max(2),
            Queue::Unknown | Queue::NonFull | Queue::Full => {
                self.state.shadow_wnd = (self.state.shadow_wnd >> 1).min(cwnd);
                let shadow = if self.parameters.use_shadow { self.state.shadow_wnd } else { 0 };
                shadow.max(cwnd >> 1).max(2)
            }
        }
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if window.in_slow_start() && (self.parameters.detect_train || self.parameters.detect_delay)
        {
            self.hystart(view, window);
        }
        if view.snd_una > self.state.rtt_seq
            && self.state.rtt != MinMax::default()
            && self.round_ends(view, window)
        {
            return Response::EnterCwr;
        }
        if !view.cwnd_limited(window) {
            self.state.shadow_wnd = self.state.shadow_wnd.min(window.cwnd);
            return Response::None;
        }
        let before = window.cwnd;
        reno::grow(view, window, acked);
        let grown = window.cwnd - before;
        self.state.shadow_wnd = self.state.shadow_wnd.saturating_add(grown);
        Response::None
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::CwndRestart => self.state = State::new(view.snd_nxt, window.cwnd),
            Event::CompleteCwr => {
                // The reduction moved the RTT; its gradient says nothing.
                let state = &mut self.state;
                state.queue = Queue::Unknown;
                state.rtt_seq = view.snd_nxt;
                state.rtt_prev = std::mem::take(&mut state.rtt);
            }
            Event::TxStart | Event::Loss | Event::TlpRecovery | Event::EcnNoCe | Event::EcnIsCe => {
            }
        }
    }

    #[inline]
    fn acked(&mut self, view: &View, _window: &mut Window, ack: &Ack) {
        let rtt_us = ack.rtt_us.unwrap_or(0).min(RTT_US_MAX) as i32;
        if rtt_us == 0 {
            return;
        }
        let state = &mut self.state;
        // Hayes' filter: after an ACK for several packets one for a single packet was delayed,
        // and counts only if it lowers the minimum.
        if view.sacked_out == 0 {
            if ack.packets == 1 && state.delack > 0 {
                state.rtt.min = state.rtt.min.min(rtt_us);
                state.delack -= 1;
                return;
            } else if ack.packets > 1 && state.delack < DELACK_MAX {
                state.delack += 1;
            }
        }
        state.rtt.min = min_not_zero(state.rtt.min, rtt_us);
        state.rtt.max = state.rtt.max.max(rtt_us);
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let State { gsum, shadow_wnd, backoff_cnt, queue, delay_min, .. } = &self.state;
        tell("gradient_min", f64::from(gsum.min) * 1e3);
        tell("gradient_max", f64::from(gsum.max) * 1e3);
        tell("shadow_window", f64::from(*shadow_wnd));
        tell("backoffs", f64::from(*backoff_cnt));
        let queue = match queue {
            Queue::Unknown => 0,
            Queue::NonFull => 1,
            Queue::Full => 2,
            Queue::Backoff => 3,
        };
        tell("queue", f64::from(queue));
        if *delay_min > 0 {
            tell("delay_min", f64::from(*delay_min) * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, options, view};

    fn cdg(pairs: &[(&str, f64)]) -> Cdg {
        let mut cdg = made!(Cdg, pairs);
        cdg.init(&view(), &mut Window::new(10));
        cdg
    }

    /// Ends a round whose samples were all `rtt_us`; the answer is CDG's.
    fn round(cdg: &mut Cdg, view: &mut View, window: &mut Window, rtt_us: u32) -> Response {
        cdg.acked(view, window, &ack(2, rtt_us));
        view.snd_una = cdg.state.rtt_seq + 1;
        view.snd_nxt = view.snd_una + 100_000;
        cdg.cong_avoid(view, window, 1)
    }

    fn avoiding(cwnd: u32) -> Window {
        let mut window = Window::new(cwnd);
        window.ssthresh = cwnd;
        window
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Cdg>() <= 224, "{}", size_of::<Cdg>());
    }

    #[test]
    fn the_probability_is_one_minus_exp_of_the_mean_gradient_over_3_ms() {
        // Sum over 8 rounds of 1 ms per round: P = 1 - exp(-1/3).
        let keep = negative_exponential(8_000 * 42);
        let exact = libm::exp(-1.0 / 3.0);
        assert!((f64::from(keep) / 4_294_967_295.0 / exact - 1.0).abs() < 0.003);
        assert_eq!(negative_exponential(0), u32::MAX);
        assert_eq!(negative_exponential(1 << 24), 0);
    }

    #[test]
    fn a_flat_or_falling_delay_never_backs_off() {
        let (mut cdg, mut view, mut window) = (cdg(&[]), view(), avoiding(100));
        for n in 0..200 {
            let answer = round(&mut cdg, &mut view, &mut window, 50_000 - 100 * n);
            assert_eq!(answer, Response::None);
        }
    }

    #[test]
    fn a_steeply_rising_delay_backs_off_and_the_next_reduction_keeps_0_7071() {
        let (mut cdg, mut view, mut window) = (cdg(&[]), view(), avoiding(100));
        let _ = round(&mut cdg, &mut view, &mut window, 10_000);
        let answer = round(&mut cdg, &mut view, &mut window, 400_000);
        assert_eq!(answer, Response::EnterCwr);
        assert_eq!(cdg.ssthresh(&view, &mut avoiding(100)), 70);
        cdg.cwnd_event(&view, &mut window, Event::CompleteCwr);
        assert_eq!(cdg.state.queue, Queue::Unknown);
    }

    /// The measured share of backoffs against 1 - exp(-g/G): 1 ms more per round, 8 rounds filled.
    #[test]
    fn backoffs_are_as_frequent_as_the_paper_says() {
        let mut cdg = cdg(&[("use_ineff", 0.0)]);
        let n = 20_000;
        let hits = (0..n).filter(|_| cdg.backs_off(8_000, &avoiding(100))).count();
        let share = hits as f64 / f64::from(n);
        let exact = 1.0 - libm::exp(-1.0 / 3.0);
        // Four standard deviations of a binomial share, and 0.2 % for G = 1000/(42·8) = 2.976.
        assert!(
            (share - exact).abs() < 4.0 * (exact * (1.0 - exact) / f64::from(n)).sqrt() + 0.002
        );
    }

    #[test]
    fn a_sixth_backoff_in_a_row_is_ineffectual_until_the_delay_falls() {
        let mut cdg = cdg(&[]);
        let window = avoiding(100);
        let steep = 400_000; // beyond the kernel's cut-off: the coin always falls
        let backoffs = (0..20).filter(|_| cdg.backs_off(steep, &window)).count();
        assert_eq!(backoffs, 5);
        cdg.state.rtt_prev = MinMax { min: 10_000, max: 10_000 };
        cdg.state.rtt = MinMax { min: 9_000, max: 9_000 };
        let _ = cdg.gradient();
        assert!(cdg.backs_off(steep, &window));
    }

    #[test]
    fn loss_halves_the_shadow_window_not_what_backoffs_left() {
        let (mut cdg, view) = (cdg(&[]), view());
        cdg.state.shadow_wnd = 160;
        assert_eq!(cdg.ssthresh(&view, &mut avoiding(100)), 80);
        assert_eq!(cdg.ssthresh(&view, &mut avoiding(100)), 50, "the shadow is 40 now");
        let mut plain = super::tests::cdg(&[("use_shadow", 0.0)]);
        plain.state.shadow_wnd = 160;
        assert_eq!(plain.ssthresh(&view, &mut avoiding(100)), 50);
    }

    #[test]
    fn loss_is_tolerated_only_on_request_and_while_the_queue_is_not_full() {
        let (mut cdg, view) = (cdg(&[("use_tolerance", 1.0)]), view());
        cdg.state.queue = judge(640, 640).unwrap();
        assert_eq!(cdg.ssthresh(&view, &mut avoiding(100)), 100);
        cdg.state.queue = judge(640, 0).unwrap();
        assert_eq!(cdg.ssthresh(&view, &mut avoiding(100)), 50);
        assert_eq!(judge(31, -31), None, "rounded to nothing");
    }

    #[test]
    fn a_coin_decides_whether_a_minimum_that_stays_has_risen() {
        let mut cdg = cdg(&[]);
        let mut rises = 0;
        for _ in 0..1000 {
            cdg.state.gsum = MinMax::default();
            cdg.state.gradients = [MinMax::default(); WINDOW_MAX];
            cdg.state.filled = true;
            cdg.state.rtt_prev = MinMax { min: 160_000, max: 160_000 };
            cdg.state.rtt = MinMax { min: 160_000, max: 171_000 };
            let gradient = cdg.gradient();
            assert!(gradient == 0 || gradient == 11_000, "{gradient}");
            rises += u32::from(gradient == 0);
        }
        // Four standard deviations of 1000 tosses.
        assert!((437..=563).contains(&rises), "{rises}");
        cdg.state.rtt_prev = MinMax { min: 160_000, max: 160_000 };
        cdg.state.rtt = MinMax { min: 159_990, max: 171_000 };
        cdg.state.gsum = MinMax::default();
        cdg.state.gradients = [MinMax::default(); WINDOW_MAX];
        assert_eq!(cdg.gradient(), 11_000, "the minimum has fallen: the maximum counts");
    }

    /// With a slow handshake the largest RTT falls for as long as its round is in the sum: no backoff in slow start.
    #[test]
    fn the_first_round_holds_the_rtt_of_the_handshake() {
        let (mut cdg, mut view, mut window) = (made!(Cdg, &[]), view(), Window::new(10));
        view.srtt_us_x8 = 900_000 * 8;
        cdg.init(&view, &mut window);
        assert_eq!(cdg.state.rtt, MinMax { min: 900_000, max: 900_000 });
        cdg.acked(&view, &mut window, &ack(2, 300_000));
        assert_eq!(cdg.state.rtt, MinMax { min: 300_000, max: 900_000 });
        view.srtt_us_x8 = 0;
        cdg.init(&view, &mut window);
        assert_eq!(cdg.state.rtt, MinMax::default(), "no sample of a retransmitted SYN");
    }

    #[test]
    fn missing_rounds_are_extrapolated() {
        let mut cdg = cdg(&[]);
        cdg.state.rtt_prev = MinMax { min: 10_000, max: 10_000 };
        cdg.state.rtt = MinMax { min: 11_000, max: 12_000 };
        assert_eq!(cdg.gradient(), 8_000);
    }

    #[test]
    fn a_delayed_ack_only_lowers_the_minimum() {
        let (mut cdg, view, mut window) = (cdg(&[]), view(), avoiding(10));
        cdg.acked(&view, &mut window, &ack(2, 10_000));
        cdg.acked(&view, &mut window, &ack(1, 50_000));
        assert_eq!(cdg.state.rtt, MinMax { min: 10_000, max: 10_000 });
        cdg.acked(&view, &mut window, &ack(1, 50_000)); // credit spent
        assert_eq!(cdg.state.rtt.max, 50_000);
    }

    #[test]
    fn a_long_ack_train_ends_slow_start_at_any_window() {
        let (mut cdg, mut view, mut window) = (cdg(&[]), view(), Window::new(4));
        view.snd_una = 0;
        let mut ended_ms = None;
        for ms in 0..30 {
            view.now = at_ms(ms);
            cdg.acked(&view, &mut window, &ack(2, 20_000));
            let _ = cdg.cong_avoid(&view, &mut window, 0);
            if ended_ms.is_none() && !window.in_slow_start() {
                ended_ms = Some(ms);
            }
        }
        assert_eq!(ended_ms, Some(11), "half of 20 ms, exceeded");
    }

    #[test]
    fn a_window_that_is_no_power_of_two_is_refused() {
        assert!(Parameters::new(&ABOUT, &options(&[("window", 6.0)])).is_err());
        assert!(Parameters::new(&ABOUT, &options(&[("window", 4.0)])).is_ok());
    }
}
