//! CDG v0.1 as in FreeBSD 9, by the paper's own authors.
//!
//! - **Paper**: Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients", IFIP
//!   Networking 2011, LNCS 6641; the RTT samples are those of Hayes, "Timing enhancements to the
//!   FreeBSD kernel ...", CAIA technical report 100219A, 2010.
//! - **Equations**: per round trip, the gradients of its minimum and maximum RTT, each a moving
//!   average over 8; backoff with probability `1 − exp(−g / G)`, `G` = 3 ticks; a backoff keeps 70 %. A
//!   *shadow window* does what NewReno would; a loss halves that. Loss counts only when the queue
//!   is believed full.
//! - **States** of the queue, from the signs of the two averages (minimum, maximum):
//!
//! ```text
//!   unknown ──▶  full    (> 0, ≤ 0)    a loss halves the window
//!                empty   (≥ 0, < 0)    the shadow window is given up
//!                rising  (> 0, > 0)    in these three,
//!                falling (< 0, < 0)    a loss costs nothing
//! ```
//!   Unknown counts as full. After a delay backoff one round trip of *congestion recovery* follows:
//!   no further backoff, and a loss costs nothing.
//! - **Departs from Linux's CDG** (`cdg`), as FreeBSD does: the window jumps on a backoff, at once;
//!   time is in whole kernel ticks (+ 1), `G` too; no HyStart;
//!   slow start grows one segment per ACK; ineffectual backoffs are held for five turns, not indefinitely.
//! - **Departs from FreeBSD 9**: recovery is the endpoint's (PRR, or what its stack profile says) and
//!   the window does not grow in it; a round ends when the first segment sent in it is cumulatively
//!   acknowledged, where FreeBSD also takes a SACK beyond it; time stamps are not matched; what is
//!   exported is whole packets, at least 1, with a threshold of at least 2; no receiver window;
//!   an ECN echo is taken for a loss; `smoothing_factor` goes from 1 to 8.
//! - **Source of the details**: FreeBSD 9.3 `cc/cc_cdg.c`, 9.0 `khelp/h_ertt.c` (from 9.1 on RTTs are milliseconds). Parameters
//!   are the sysctls `net.inet.tcp.cc.cdg.*`, and `tick_ms`, by default (0) the tick of a FreeBSD host, 1 on others.

use crate::bsd::{ByteWindow, Ertt};
use crate::{
    About, Ack, BsdHost, CaState, CongestionControl, Event, Needs, Parameter, Parameters, Range,
    Response, Rules, Signal, Unit, Variable, View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "cdg-freebsd",
    file: file!(),
    models: "FreeBSD 9.3, cc_cdg.c, version 0.1",
    module: None,
    signal: Signal::Delay,
    settles: false,
    parameters: &[
        Parameter::new(
            "tick_ms",
            0.0,
            Range::Whole(0, 1_000),
            "ms",
            "tick that RTTs are counted in; 0: the host's on FreeBSD, 1 elsewhere",
            "kern.hz",
        ),
        Parameter::new(
            "alpha_inc",
            0.0,
            Range::Whole(0, 10_000),
            "rounds",
            "growth rises by a segment every so many rounds; 0: it does not",
            "net.inet.tcp.cc.cdg.alpha_inc",
        ),
        Parameter::new(
            "beta_delay",
            70.0,
            Range::Whole(1, 100),
            "%",
            "kept of the window on a delay backoff",
            "net.inet.tcp.cc.cdg.beta_delay",
        ),
        Parameter::new(
            "beta_loss",
            50.0,
            Range::Whole(1, 100),
            "%",
            "kept of the window on a loss",
            "net.inet.tcp.cc.cdg.beta_loss",
        ),
        Parameter::new(
            "smoothing_factor",
            8.0,
            Range::Whole(1, SMOOTHING_MAX as u32),
            "rounds",
            "length of the moving average of gradients",
            "net.inet.tcp.cc.cdg.smoothing_factor",
        ),
        Parameter::new(
            "exp_backoff_scale",
            3.0,
            Range::Whole(1, 10_000),
            "ticks",
            "G: the gradient at which a backoff has probability 1 - 1/e",
            "net.inet.tcp.cc.cdg.exp_backoff_scale",
        ),
        Parameter::new(
            "loss_compete_consec_cong",
            5.0,
            Range::Whole(0, 10_000),
            "backoffs",
            "in a row without effect before they are held",
            "net.inet.tcp.cc.cdg.loss_compete_consec_cong",
        ),
        Parameter::new(
            "loss_compete_hold_backoff",
            5.0,
            Range::Whole(0, 10_000),
            "backoffs",
            "held then",
            "net.inet.tcp.cc.cdg.loss_compete_hold_backoff",
        ),
    ],
    variables: &[
        Variable::new(
            "gradient_min",
            Unit::Nanoseconds,
            "change of the least RTT per round, a moving average",
        ),
        Variable::new("gradient_max", Unit::Nanoseconds, "the same of the largest RTT"),
        Variable::new("shadow_window", Unit::Bytes, "window that NewReno would have; 0 none"),
        Variable::new("backoffs", Unit::Count, "delay backoffs in a row, held ones included"),
        Variable::new(
            "queue",
            Unit::Count,
            "what the gradients say of the queue: 0 unknown, 1 empty, 2 rising, 3 falling, 4 full",
        ),
        Variable::new("min_rtt", Unit::Nanoseconds, "least RTT measured, in whole ticks and one"),
    ],
    needs: Needs { dice: true, ..Needs::NOTHING },
};

/// Fractional bits of a gradient, ticks (`D_P_E`).
const GRADIENT_BITS: u32 = 7;
/// Gradients above this many G back off for certain (`MAXGRAD`).
const GRADIENT_MAX: i32 = 5;
/// Probabilities are in 2^-15 (`EXP_PREC`).
const PROBABILITY_ONE: f64 = 32_768.0;
/// The probability at a gradient that rounds to nothing: not 0 but 10 / 2^15.
const PROBABILITY_MIN: u32 = 10;
/// Longest moving average, samples.
const SMOOTHING_MAX: usize = 8;
/// Share of the shadow window kept on a loss, % (`RENO_BETA`).
const RENO_BETA: u32 = 50;

/// CDG's estimate of the bottleneck's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    Empty,
    Rising,
    Falling,
    Full,
}

/// Window change that the ACK being processed allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThisAck {
    /// It carried no measurement: growth in slow start only.
    Plain,
    /// It ended a round.
    Measured,
    /// The coin fell: no growth.
    Congested,
}

#[derive(Clone, Debug)]
struct Settings {
    alpha_inc: u16,
    beta_delay: u8,
    beta_loss: u8,
    smoothing_factor: u8,
    exp_backoff_scale: u16,
    consec_cong: u16,
    hold_backoff: u16,
}

/// A moving average of gradients, by FreeBSD's arithmetic: each term is divided on its own.
#[derive(Clone, Debug, Default)]
struct Trend {
    mean: i32,
    samples: [i32; SMOOTHING_MAX],
}

/// FreeBSD's CDG.
#[derive(Clone, Debug)]
pub struct CdgFreebsd {
    parameters: Settings,
    host: BsdHost,
    coin: Stream,

    bytes: ByteWindow,
    /// Bytes; 0: none.
    shadow_w: u64,
    /// Bytes of window and shadow before the reduction that has just begun.
    before: Option<(u64, u64)>,

    trend_min: Trend,
    trend_max: Trend,
    /// Next slot of both trends, and how many are filled.
    slot: u8,
    filled: u8,
    queue: Queue,
    this_ack: ThisAck,
    ertt: Ertt,
    consec_cong_cnt: u32,
    /// Growth per round trip when `alpha_inc` is on, segments, and rounds since it last rose.
    window_incr: u32,
    rtt_count: u32,
    /// Extremes of the RTT in this round and the last, ticks.
    min_rtt: i32,
    max_rtt: i32,
    prev_min_rtt: i32,
    /// 0: the last round is not to be compared with.
    prev_max_rtt: i32,
    /// In congestion recovery until this byte is acknowledged.
    recover: Option<u64>,
}

impl CdgFreebsd {
    /// `stream` says when ticks fall, and tosses the coin.
    #[must_use]
    pub fn new(given: &Parameters<'_>, rules: &Rules, mut stream: Stream) -> Self {
        let ertt = Ertt::new(given.whole("tick_ms"), rules.bsd, stream.next_u32());
        let parameters = Settings {
            alpha_inc: given.whole("alpha_inc") as u16,
            beta_delay: given.whole("beta_delay") as u8,
            beta_loss: given.whole("beta_loss") as u8,
            smoothing_factor: given.whole("smoothing_factor") as u8,
            exp_backoff_scale: given.whole("exp_backoff_scale") as u16,
            consec_cong: given.whole("loss_compete_consec_cong") as u16,
            hold_backoff: given.whole("loss_compete_hold_backoff") as u16,
        };
        Self {
            host: rules.bsd,
            parameters,
            coin: stream,
            bytes: ByteWindow::default(),
            shadow_w: 0,
            before: None,
            trend_min: Trend::default(),
            trend_max: Trend::default(),
            slot: 0,
            filled: 0,
            queue: Queue::Unknown,
            this_ack: ThisAck::Plain,
            ertt,
            consec_cong_cnt: 0,
            window_incr: 0,
            rtt_count: 0,
            min_rtt: i32::MAX,
            max_rtt: 0,
            prev_min_rtt: 0,
            prev_max_rtt: 0,
            recover: None,
        }
    }

    /// The end of a round; whether the coin says congestion.
    fn round_ends(&mut self) -> bool {
        let mut congestion = false;
        if self.prev_max_rtt != 0 {
            let scale = |ticks: i32| ticks.saturating_mul(1 << GRADIENT_BITS);
            let gradient_max = scale(self.max_rtt - self.prev_max_rtt);
            let gradient_min = scale(self.min_rtt - self.prev_min_rtt);
            self.smooth(gradient_min, gradient_max);

            let (min, max) = (self.trend_min.mean, self.trend_max.mean);
            let slow_start = self.bytes.in_slow_start();
            congestion = if slow_start && gradient_min > 0 {
                self.coin_falls(gradient_min)
            } else if min > 0 {
                self.coin_falls(min)
            } else if slow_start && gradient_max > 0 {
                self.coin_falls(gradient_max)
            } else {
                max > 0 && self.coin_falls(max)
            };
            self.judge(min, max);
        }
        self.prev_min_rtt = self.min_rtt;
        self.prev_max_rtt = self.max_rtt;
        self.min_rtt = i32::MAX;
        self.max_rtt = 0;
        congestion
    }

    /// `calc_moving_average`. While it fills, the missing terms count as 0.
    fn smooth(&mut self, gradient_min: i32, gradient_max: i32) {
        let length = self.parameters.smoothing_factor;
        let full = self.filled == length;
        self.trend_min.push(gradient_min, self.slot, full, length);
        self.trend_max.push(gradient_max, self.slot, full, length);
        self.slot = (self.slot + 1) % length;
        self.filled = (self.filled + 1).min(length);
    }

    fn judge(&mut self, min: i32, max: i32) {
        if min > 0 && max <= 0 {
            self.queue = Queue::Full;
        } else if min >= 0 && max < 0 {
            self.queue = Queue::Empty;
            self.shadow_w = 0;
        } else if min > 0 && max > 0 {
            self.queue = Queue::Rising;
        } else if min < 0 && max < 0 {
            self.queue = Queue::Falling;
        }
        if min < 0 || max < 0 {
            self.consec_cong_cnt = 0;
        }
    }

    /// `prob_backoff`: true with probability 1 − exp(−gradient / G).
    fn coin_falls(&mut self, gradient: i32) -> bool {
        let scale = i32::from(self.parameters.exp_backoff_scale);
        if gradient > (GRADIENT_MAX * scale) << GRADIENT_BITS {
            return true;
        }
        let index = if scale > 1 { (gradient + scale / 2) / scale } else { gradient };
        // random() has 31 bits.
        self.coin.next_u32() >> 1 < 65_535 * probability(index)
    }

    /// `CC_CDG_DELAY`.
    fn back_off(&mut self, view: &View) {
        self.bytes.ssthresh = self.bytes.cwnd * u64::from(self.parameters.beta_delay) / 100;
        self.bytes.cwnd = self.bytes.ssthresh;
        self.recover = Some(view.snd_nxt);
        self.window_incr = 0;
        self.rtt_count = 0;
    }

    /// The coin says congestion: back off, or recognise that backing off does not help.
    fn congested(&mut self, view: &View, in_recovery: bool) {
        self.consec_cong_cnt += 1;
        if in_recovery {
            return;
        }
        let limit = u32::from(self.parameters.consec_cong);
        if self.consec_cong_cnt <= limit {
            self.back_off(view);
        } else if self.consec_cong_cnt >= limit + u32::from(self.parameters.hold_backoff) {
            self.consec_cong_cnt = 0;
        }
        // The effect shows in the second round only.
        self.prev_max_rtt = 0;
        self.shadow_w = self.shadow_w.max(self.bytes.cwnd);
    }

    /// `cdg_window_increase`.
    fn grow(&mut self, view: &View, window: &Window, measured: bool) {
        let mss = u64::from(view.mss);
        let (mut increase, mut shadow_increase) = (0, 0);
        if self.bytes.in_slow_start() {
            increase = mss;
            shadow_increase = mss;
            self.window_incr = 0;
            self.rtt_count = 0;
        } else if measured {
            shadow_increase = mss;
            increase = mss * self.segments_per_round();
        }
        let limit = u64::from(window.clamp) * mss;
        if self.shadow_w > 0 {
            self.shadow_w = (self.shadow_w + shadow_increase).min(limit);
        }
        self.bytes.cwnd = (self.bytes.cwnd + increase).min(limit);
    }

    /// 1, or with `alpha_inc` one more every so many rounds.
    fn segments_per_round(&mut self) -> u64 {
        if self.parameters.alpha_inc == 0 {
            return 1;
        }
        self.rtt_count += 1;
        if self.rtt_count >= u32::from(self.parameters.alpha_inc) {
            self.window_incr += 1;
            self.rtt_count = 0;
        }
        u64::from(self.window_incr)
    }
}

impl Trend {
    fn push(&mut self, gradient: i32, slot: u8, full: bool, length: u8) {
        let slot = &mut self.samples[usize::from(slot)];
        let oldest = if full { *slot } else { 0 };
        self.mean += (gradient - oldest) / i32::from(length);
        *slot = gradient;
    }
}

/// (1 − exp(−index / 128)) · 2^15, rounded: FreeBSD's table, computed.
fn probability(index: i32) -> u32 {
    if index == 0 {
        return PROBABILITY_MIN;
    }
    let exact = -libm::expm1(-f64::from(index) / f64::from(1 << GRADIENT_BITS));
    libm::round(exact * PROBABILITY_ONE) as u32
}

impl CongestionControl for CdgFreebsd {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.bytes.adopt(view, window);
        self.shadow_w = self.bytes.cwnd;
        self.ertt.mark(view);
    }

    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.bytes.adopt(view, window);
        self.before = Some((self.bytes.cwnd, self.shadow_w));
        let harmless = match self.queue {
            Queue::Empty | Queue::Rising | Queue::Falling => true,
            Queue::Unknown | Queue::Full => self.recover.is_some(),
        };
        self.bytes.ssthresh = if harmless {
            self.bytes.cwnd
        } else {
            self.shadow_w = self.shadow_w * u64::from(RENO_BETA) / 100;
            self.window_incr = 0;
            self.rtt_count = 0;
            self.shadow_w.max(self.bytes.cwnd * u64::from(self.parameters.beta_loss) / 100)
        };
        self.bytes.ssthresh_in_packets(view)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, _acked: u32) -> Response {
        self.bytes.adopt(view, window);
        match std::mem::replace(&mut self.this_ack, ThisAck::Plain) {
            ThisAck::Plain => self.grow(view, window, false),
            ThisAck::Measured => self.grow(view, window, true),
            ThisAck::Congested => {}
        }
        self.bytes.export(view, window);
        Response::None
    }

    fn set_state(&mut self, _view: &View, _window: &mut Window, new: CaState) {
        match new {
            // Both kinds of recovery end together, and a timeout ends them too.
            CaState::Open | CaState::Loss => self.recover = None,
            CaState::Disorder | CaState::Cwr | CaState::Recovery => {}
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            // FreeBSD's endpoint sets NewReno's threshold itself.
            Event::Loss if self.host == BsdHost::Native => {}
            Event::Loss => {
                // ssthresh() cannot know that this is a timeout, to which NewReno's answer is due.
                if let Some((cwnd, shadow_w)) = self.before.take() {
                    let mss = u64::from(view.mss);
                    self.shadow_w = shadow_w;
                    self.bytes.ssthresh = (cwnd / 2 / mss).max(2) * mss;
                    window.ssthresh = self.bytes.ssthresh_in_packets(view);
                }
            }
            Event::CompleteCwr => {
                self.bytes.keep_threshold(window);
            }
            Event::TxStart
            | Event::CwndRestart
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        self.bytes.adopt(view, window);
        self.before = None;
        let round_over = self.ertt.measure(view, ack);
        // The last RTT measured counts again, even if this ACK has measured none.
        self.max_rtt = self.max_rtt.max(self.ertt.rtt);
        self.min_rtt = self.min_rtt.min(self.ertt.rtt);

        self.this_ack = ThisAck::Plain;
        if round_over {
            self.this_ack = ThisAck::Measured;
            if self.round_ends() {
                self.this_ack = ThisAck::Congested;
                let in_recovery = self.recover.is_some() || view.state == CaState::Recovery;
                self.congested(view, in_recovery);
                self.bytes.export(view, window);
            }
        }
        // The ACK that ends congestion recovery is still part of it.
        if self.recover.is_some_and(|recover| view.snd_una >= recover) {
            self.recover = None;
        }
    }

    fn phase(&self, _view: &View, _window: &Window) -> &'static str {
        if self.recover.is_some() {
            "congestion_recovery"
        } else if self.bytes.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        }
    }

    fn variables(&self, view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        let tick_ns = self.ertt.tick_ns(view);
        let nanoseconds = |ticks: i32| f64::from(ticks) / f64::from(1 << GRADIENT_BITS) * tick_ns;
        tell("gradient_min", nanoseconds(self.trend_min.mean));
        tell("gradient_max", nanoseconds(self.trend_max.mean));
        tell("shadow_window", self.shadow_w as f64);
        tell("backoffs", f64::from(self.consec_cong_cnt));
        let queue = match self.queue {
            Queue::Unknown => 0,
            Queue::Empty => 1,
            Queue::Rising => 2,
            Queue::Falling => 3,
            Queue::Full => 4,
        };
        tell("queue", f64::from(queue));
        if self.ertt.min_rtt > 0 {
            tell("min_rtt", f64::from(self.ertt.min_rtt) * tick_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, made, view};

    const MSS: u64 = 1_448;

    fn start(pairs: &[(&str, f64)], cwnd: u32, ssthresh: u32) -> (CdgFreebsd, View, Window) {
        let mut cdg = made!(CdgFreebsd, pairs);
        let mut window = Window::new(cwnd);
        window.ssthresh = ssthresh;
        let mut view = view();
        view.now = at_ms(10_000);
        cdg.init(&view, &mut window);
        (cdg, view, window)
    }

    /// Ends a round whose RTT was `rtt_ms` on a millisecond clock (which reads one more).
    fn round(cdg: &mut CdgFreebsd, view: &mut View, window: &mut Window, rtt_ms: u32) {
        view.snd_una = view.snd_nxt + 1; // beyond what was marked
        view.snd_nxt = view.snd_una + 100_000;
        cdg.acked(view, window, &ack(2, rtt_ms * 1_000));
        let _ = cdg.cong_avoid(view, window, 2);
    }

    #[test]
    fn the_probability_table_is_that_of_freebsd() {
        // Entries 0, 1, 2, 6, 128 and the last of the 641 in cc_cdg.c.
        let table = [(0, 10), (1, 255), (2, 508), (6, 1501), (128, 20_713), (640, 32_547)];
        for (index, expected) in table {
            assert_eq!(probability(index), expected, "entry {index}");
        }
    }

    #[test]
    fn slow_start_grows_one_segment_per_ack_however_many_packets_it_covers() {
        let (mut cdg, view, mut window) = start(&[], 10, Window::INFINITE);
        for expected in 11..20 {
            let _ = cdg.cong_avoid(&view, &mut window, 2);
            assert_eq!(window.cwnd, expected);
        }
    }

    #[test]
    fn congestion_avoidance_grows_one_segment_per_round() {
        let (mut cdg, mut view, mut window) = start(&[], 10, 5);
        for expected in 11..15 {
            round(&mut cdg, &mut view, &mut window, 20);
            for _ in 0..5 {
                cdg.acked(&view, &mut window, &ack(2, 20_000));
                let _ = cdg.cong_avoid(&view, &mut window, 2);
            }
            assert_eq!(window.cwnd, expected);
        }
    }

    #[test]
    fn a_backoff_keeps_70_percent_to_the_byte_at_once_and_the_acks_growth_is_lost() {
        let (mut cdg, mut view, mut window) = start(&[], 10, Window::INFINITE);
        round(&mut cdg, &mut view, &mut window, 10); // 11 packets now
        round(&mut cdg, &mut view, &mut window, 60); // 50 ms > 5 G: certain
        assert_eq!(cdg.bytes.cwnd, 11 * MSS * 70 / 100);
        assert_eq!((window.cwnd, window.ssthresh), (7, 7));
        assert_eq!(cdg.shadow_w, 11 * MSS, "the shadow keeps what there was");
        assert_eq!(cdg.phase(&view, &window), "congestion_recovery");
    }

    #[test]
    fn the_rise_that_caused_a_backoff_is_not_counted_twice() {
        let (mut cdg, mut view, mut window) = start(&[], 10, Window::INFINITE);
        round(&mut cdg, &mut view, &mut window, 10);
        round(&mut cdg, &mut view, &mut window, 60);
        let cwnd = cdg.bytes.cwnd;
        cdg.recover = None;
        round(&mut cdg, &mut view, &mut window, 110);
        assert!(cdg.bytes.cwnd >= cwnd, "no gradient after a backoff");
    }

    #[test]
    fn a_sixth_consecutive_backoff_is_held_and_an_eleventh_counts_again() {
        let (mut cdg, view, _window) = start(&[], 1_000, 5);
        let mut backed_off = Vec::new();
        for n in 1..=15 {
            let cwnd = cdg.bytes.cwnd;
            cdg.congested(&view, false);
            if cdg.bytes.cwnd < cwnd {
                backed_off.push(n);
            }
        }
        assert_eq!(backed_off, [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]);
    }

    #[test]
    fn a_loss_costs_half_only_when_the_queue_is_full_or_unknown() {
        for (queue, expected) in [
            (Queue::Unknown, 50),
            (Queue::Full, 50),
            (Queue::Empty, 100),
            (Queue::Rising, 100),
            (Queue::Falling, 100),
        ] {
            let (mut cdg, view, mut window) = start(&[], 100, 5);
            cdg.queue = queue;
            assert_eq!(cdg.ssthresh(&view, &mut window), expected, "{queue:?}");
        }
    }

    #[test]
    fn a_loss_right_after_a_backoff_costs_nothing() {
        let (mut cdg, view, mut window) = start(&[], 100, 5);
        cdg.congested(&view, false);
        cdg.bytes.export(&view, &mut window);
        assert_eq!(window.cwnd, 70);
        assert_eq!(cdg.ssthresh(&view, &mut window), 70);
    }

    #[test]
    fn a_loss_halves_the_shadow() {
        let (mut cdg, view, mut window) = start(&[], 100, 5);
        cdg.shadow_w = 160 * MSS;
        assert_eq!(cdg.ssthresh(&view, &mut window), 80);
        assert_eq!(cdg.shadow_w, 80 * MSS);
    }

    #[test]
    fn a_timeout_is_newrenos_whatever_the_queue() {
        let (mut cdg, view, mut window) = start(&[], 100, 5);
        cdg.queue = Queue::Rising;
        window.ssthresh = cdg.ssthresh(&view, &mut window);
        assert_eq!(window.ssthresh, 100);
        cdg.cwnd_event(&view, &mut window, Event::Loss);
        assert_eq!((window.ssthresh, cdg.shadow_w), (50, 100 * MSS));
    }

    #[test]
    fn the_queue_is_judged_by_the_signs_of_both_trends() {
        let (mut cdg, ..) = start(&[], 10, 5);
        for (min, max, expected) in [
            (1, 0, Queue::Full),
            (1, -1, Queue::Full),
            (0, -1, Queue::Empty),
            (1, 1, Queue::Rising),
            (-1, -1, Queue::Falling),
            (0, 0, Queue::Falling), // says nothing
        ] {
            cdg.judge(min, max);
            assert_eq!(cdg.queue, expected, "{min}, {max}");
        }
    }

    #[test]
    fn bytes_survive_between_hooks_but_the_endpoints_word_counts() {
        let (mut cdg, view, mut window) = start(&[], 10, 5);
        cdg.bytes.cwnd += 700;
        cdg.bytes.export(&view, &mut window);
        cdg.bytes.adopt(&view, &window);
        assert_eq!(cdg.bytes.cwnd, 10 * MSS + 700);
        window.cwnd = 4;
        cdg.bytes.adopt(&view, &window);
        assert_eq!(cdg.bytes.cwnd, 4 * MSS);
    }

    #[test]
    fn the_average_is_not_normalised_while_it_fills() {
        let mut trend = Trend::default();
        trend.push(80, 0, false, 8);
        assert_eq!(trend.mean, 10);
        for slot in 1..8 {
            trend.push(80, slot, false, 8);
        }
        trend.push(0, 0, true, 8);
        assert_eq!(trend.mean, 70);
        trend.push(-7, 1, true, 8); // (-7 - 80) / 8, cut towards zero
        assert_eq!(trend.mean, 60);
    }
}
