//! HyStart: ends slow start before it overflows the queue.
//!
//! - **Paper**: Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks",
//!   PFLDnet 2008.
//! - **Rules**: once per round trip, slow start ends (`ssthresh = cwnd`) as soon as either
//!   1. *train*: ACKs at most 2 ms apart have kept coming for longer than half the minimum RTT
//!      (all of it when the sender is paced), so the window is about as long as the path; or
//!   2. *delay*: after 8 samples the round's minimum RTT exceeds the connection's by an eighth,
//!      at least 4 ms and at most 16 ms.
//! - **States**: `looking ──train or delay──▶ found`; only a timeout leads back.
//! - **Departs from the paper** as Linux 6.1 does: the train threshold is lengthened by the time
//!   of four of the sender's largest bursts (at most 1 ms); nothing happens below a window of 16;
//!   it acts once per connection or timeout.
//! - **Source of the details**: Linux 6.1 `tcp_cubic.c` (`hystart_update`, `hystart_ack_delay`,
//!   `bictcp_hystart_reset`).
//! - **Parameters** are those of the kernel module `tcp_cubic`. Two more bring back what kernels once had: `hystart_delay_shift`
//!   4 (2b4636a5f8ca, until 42eef7a0bb09) and `hystart_early_rounds` 0 (4e1fddc98d25, until 25c1a9ca53db).

use crate::{HyStartClock, PacingStatus, Parameter, Parameters, Range, View, Window};

/// Samples before a round's minimum is believed (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// Bounds of the delay increase that ends slow start, µs (`HYSTART_DELAY_MIN`, `_MAX`).
const DELAY_US: (u32, u32) = (4_000, 16_000);
/// Cap on the allowance for bursts, µs.
const ACK_DELAY_US_MAX: u64 = 1_000;

const SOURCE: &str = "module parameter";

/// `hystart_detect`.
pub const DETECT: Parameter = Parameter::new(
    "hystart_detect",
    3.0,
    Range::Whole(0, 3),
    "",
    "what ends slow start: 1 ACK trains, 2 delay, 3 both, 0 neither",
    SOURCE,
);
/// `hystart_low_window`.
pub const LOW_WINDOW: Parameter = Parameter::new(
    "hystart_low_window",
    16.0,
    Range::Whole(0, 1 << 20),
    "packets",
    "window below which HyStart ends nothing",
    SOURCE,
);
/// `hystart_ack_delta_us`.
pub const ACK_DELTA_US: Parameter = Parameter::new(
    "hystart_ack_delta_us",
    2_000.0,
    Range::Whole(0, 1 << 20),
    "us",
    "longest gap between the ACKs of one train, on the clock of microseconds",
    SOURCE,
);

/// `hystart_delay_shift`.
pub const DELAY_SHIFT: Parameter = Parameter::new(
    "hystart_delay_shift",
    3.0,
    Range::Whole(0, 8),
    "",
    "delay ends slow start from the least RTT over two to this power, 4 to 16 ms",
    "Linux tcp_cubic.c, HYSTART_DELAY_THRESH; 4 until 42eef7a0bb09",
);
/// `hystart_early_rounds`.
pub const EARLY_ROUNDS: Parameter = Parameter::new(
    "hystart_early_rounds",
    1.0,
    Range::Switch,
    "",
    "rounds are counted below hystart_low_window too",
    "Linux tcp_cubic.c, hystart_update; not until 25c1a9ca53db",
);

/// The detector. It shares the caller's minimum RTT rather than keeping its own.
#[derive(Clone, Debug)]
pub struct HyStart {
    in_jiffies: bool,
    detect_train: bool,
    detect_delay: bool,
    low_window: u32,
    ack_delta_us: u32,
    /// The delay that ends slow start is the least RTT shifted by this.
    delay_shift: u32,
    /// Least window with which a round begins, packets.
    rounds_from: u32,
    found: bool,
    sample_cnt: u8,
    /// Minimum RTT of this round, µs.
    curr_rtt_us: u32,
    round_start_us: u64,
    /// The last ACK of the train, µs.
    last_ack_us: u64,
    /// The round ends when this byte is acknowledged.
    end_seq: u64,
}

impl HyStart {
    /// A detector with this clock, if there is one.
    #[must_use]
    pub fn new(parameters: &Parameters<'_>, clock: HyStartClock) -> Option<Self> {
        let in_jiffies = match clock {
            HyStartClock::None => return None,
            HyStartClock::Jiffies => true,
            HyStartClock::Microseconds => false,
        };
        let detect = parameters.whole(DETECT.name);
        Some(Self {
            in_jiffies,
            detect_train: detect & 1 != 0,
            detect_delay: detect & 2 != 0,
            low_window: parameters.whole(LOW_WINDOW.name),
            ack_delta_us: parameters.whole(ACK_DELTA_US.name),
            delay_shift: parameters.whole(DELAY_SHIFT.name),
            rounds_from: if parameters.switch(EARLY_ROUNDS.name) {
                0
            } else {
                parameters.whole(LOW_WINDOW.name)
            },
            found: false,
            sample_cnt: 0,
            curr_rtt_us: u32::MAX,
            round_start_us: 0,
            last_ack_us: 0,
            end_seq: 0,
        })
    }

    /// Starts looking, at the beginning of the connection and after a timeout.
    pub fn reset(&mut self, view: &View) {
        self.found = false;
        self.start_round(view);
    }

    fn start_round(&mut self, view: &View) {
        self.round_start_us = view.now_us();
        self.last_ack_us = view.now_us();
        self.end_seq = view.snd_nxt;
        self.curr_rtt_us = u32::MAX;
        self.sample_cnt = 0;
    }

    /// Looks at an ACK with RTT `delay_us`; ends slow start by setting `ssthresh`.
    #[inline]
    pub fn acked(&mut self, view: &View, window: &mut Window, delay_us: u32, delay_min_us: u32) {
        if self.found || !window.in_slow_start() {
            return;
        }
        if self.in_jiffies {
            return self.acked_in_jiffies(view, window, delay_us, delay_min_us);
        }
        // Since 5.16 rounds are counted here, also below the low window, so that they keep step with
        // the flights; before, on every ACK that could grow the window.
        if view.snd_una > self.end_seq && window.cwnd >= self.rounds_from {
            self.start_round(view);
        }
        if window.cwnd < self.low_window {
            return;
        }
        if (self.detect_train && self.train_is_long(view, window, delay_min_us))
            | (self.detect_delay && self.delay_has_grown(delay_us, delay_min_us))
        {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }

    /// The window is about to grow: before 2.6.39 a round began here.
    #[inline]
    pub fn growing(&mut self, view: &View) {
        if self.in_jiffies && view.snd_una > self.end_seq {
            self.start_round(view);
        }
    }

    /// The same from 2.6.29 to 2.6.38, on a clock of jiffies: a train of ACKs at most 2 ms apart ends slow start
    /// after half the minimum RTT, the delay when the least of the round's first eight samples exceeds the
    /// minimum by a sixteenth of it, at least 2 jiffies and at most 16.
    fn acked_in_jiffies(
        &mut self,
        view: &View,
        window: &mut Window,
        delay_us: u32,
        delay_min_us: u32,
    ) {
        if window.cwnd < self.low_window {
            return;
        }
        let jiffy_us = u64::from(1_000_000 / view.hz);
        let now = view.now_us() / jiffy_us;
        let mut exits = false;
        if self.detect_train {
            // msecs_to_jiffies rounds up.
            let gap = 2_000_u64.div_ceil(jiffy_us);
            if now - self.last_ack_us / jiffy_us <= gap {
                self.last_ack_us = view.now_us();
                let half = u64::from(delay_min_us) / jiffy_us / 2;
                exits = now - self.round_start_us / jiffy_us >= half;
            }
        }
        if self.sample_cnt < MIN_SAMPLES {
            self.curr_rtt_us = self.curr_rtt_us.min(delay_us);
            self.sample_cnt += 1;
        } else if self.detect_delay {
            let (low, high) = (2 * jiffy_us as u32, 16 * jiffy_us as u32);
            let increase_us = (delay_min_us >> 4).clamp(low, high);
            exits |= self.curr_rtt_us > delay_min_us.saturating_add(increase_us);
        }
        if exits {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }

    fn train_is_long(&mut self, view: &View, window: &Window, delay_min_us: u32) -> bool {
        let now_us = view.now_us();
        if now_us - self.last_ack_us > u64::from(self.ack_delta_us) {
            return false;
        }
        self.last_ack_us = now_us;
        let mut threshold_us = u64::from(delay_min_us) + ack_delay_us(view, window);
        if view.pacing_status == PacingStatus::None {
            // Paced ACKs are spread over the whole round trip, unpaced ones are not.
            threshold_us >>= 1;
        }
        now_us - self.round_start_us > threshold_us
    }

    fn delay_has_grown(&mut self, delay_us: u32, delay_min_us: u32) -> bool {
        self.curr_rtt_us = self.curr_rtt_us.min(delay_us);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
            return false;
        }
        let (low_us, high_us) = DELAY_US;
        let increase_us = (delay_min_us >> self.delay_shift).clamp(low_us, high_us);
        self.curr_rtt_us > delay_min_us.saturating_add(increase_us)
    }
}

/// Returns the duration of four of the largest bursts at the current pacing rate, µs (`hystart_ack_delay`):
/// two would do, but the rate is doubled in slow start.
fn ack_delay_us(view: &View, window: &Window) -> u64 {
    if window.pacing_rate == 0 {
        return 0;
    }
    (u64::from(view.gso_max_bytes) * 4 * 1_000_000 / window.pacing_rate).min(ACK_DELAY_US_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{options, view};
    use crate::{About, Needs};
    use dragstrip_units::Instant;

    const ABOUT: About = About {
        name: "test",
        file: file!(),
        models: "none",
        module: None,
        signal: crate::Signal::Loss,
        settles: false,
        parameters: &[DETECT, LOW_WINDOW, ACK_DELTA_US, DELAY_SHIFT, EARLY_ROUNDS],
        variables: &[],
        needs: Needs::NOTHING,
    };

    fn start(pairs: &[(&str, f64)], view: &View) -> HyStart {
        start_with(HyStartClock::Microseconds, pairs, view)
    }

    fn start_with(clock: HyStartClock, pairs: &[(&str, f64)], view: &View) -> HyStart {
        let options = options(pairs);
        let mut hystart = HyStart::new(&Parameters::new(&ABOUT, &options).unwrap(), clock).unwrap();
        hystart.reset(view);
        hystart
    }

    fn at_us(view: &mut View, us: u64) {
        view.now = Instant::from_nanos(us * 1_000);
    }

    /// ACKs every millisecond over a 40 ms path: when is the train found?
    fn train_ends_at_us(status: PacingStatus, spacing_us: u64) -> Option<u64> {
        let mut view = view();
        view.pacing_status = status;
        let mut hystart = start(&[("hystart_detect", 1.0)], &view);
        let mut window = Window::new(20);
        for n in 1..100 {
            at_us(&mut view, n * spacing_us);
            hystart.acked(&view, &mut window, 40_000, 40_000);
            if !window.in_slow_start() {
                assert_eq!(window.ssthresh, 20);
                return Some(n * spacing_us);
            }
        }
        None
    }

    #[test]
    fn an_unpaced_train_ends_slow_start_after_half_the_minimum_rtt() {
        assert_eq!(train_ends_at_us(PacingStatus::None, 1_000), Some(21_000));
    }

    #[test]
    fn a_paced_train_must_last_the_whole_rtt() {
        assert_eq!(train_ends_at_us(PacingStatus::Fq, 1_000), Some(41_000));
        assert_eq!(train_ends_at_us(PacingStatus::Needed, 1_000), Some(41_000));
    }

    #[test]
    fn a_gap_of_more_than_2_ms_breaks_the_train() {
        assert_eq!(train_ends_at_us(PacingStatus::None, 2_000), Some(22_000));
        assert_eq!(train_ends_at_us(PacingStatus::None, 2_001), None);
    }

    /// After eight samples at the minimum the ninth decides; a fresh round each time.
    fn delay_is_found(rtt_us: u32, min_us: u32, samples: u32) -> bool {
        let view = view();
        let mut hystart = start(&[("hystart_detect", 2.0)], &view);
        let mut window = Window::new(16);
        for _ in 0..samples {
            hystart.acked(&view, &mut window, rtt_us, min_us);
        }
        !window.in_slow_start()
    }

    #[test]
    fn the_delay_increase_is_an_eighth_between_4_and_16_ms() {
        assert!(!delay_is_found(14_000, 10_000, 9));
        assert!(delay_is_found(14_001, 10_000, 9));
        assert!(!delay_is_found(90_000, 80_000, 9));
        assert!(delay_is_found(90_001, 80_000, 9));
        assert!(!delay_is_found(316_000, 300_000, 9));
        assert!(delay_is_found(316_001, 300_000, 9));
    }

    /// Up to a 100 ms minimum a sixteenth is less than 6.25 ms where an eighth is 12.5.
    #[test]
    fn a_shift_of_4_ends_slow_start_at_a_sixteenth() {
        let ends = |shift: f64, rtt_us: u32| {
            let view = view();
            let options = [("hystart_detect", 2.0), ("hystart_delay_shift", shift)];
            let mut hystart = start(&options, &view);
            let mut window = Window::new(16);
            for _ in 0..9 {
                hystart.acked(&view, &mut window, rtt_us, 100_000);
            }
            !window.in_slow_start()
        };
        assert_eq!((ends(4.0, 106_250), ends(4.0, 106_251)), (false, true));
        assert_eq!((ends(3.0, 106_251), ends(3.0, 112_501)), (false, true));
    }

    /// A flight of 15 begins at 0; that of 20 at 30 ms. Late rounds count the train of the first with the second's.
    #[test]
    fn without_early_rounds_the_first_train_is_longer() {
        let ends = |early: f64| {
            let mut view = view();
            let mut hystart =
                start(&[("hystart_detect", 1.0), ("hystart_early_rounds", early)], &view);
            (view.snd_una, view.snd_nxt) = (1, 2);
            let mut window = Window::new(15);
            at_us(&mut view, 30_000);
            hystart.acked(&view, &mut window, 40_000, 40_000);
            window.cwnd = 20;
            (view.snd_una, view.snd_nxt) = (2, 3);
            (1..60).find(|ms| {
                at_us(&mut view, 30_000 + ms * 1_000);
                hystart.acked(&view, &mut window, 40_000, 40_000);
                !window.in_slow_start()
            })
        };
        assert_eq!((ends(1.0), ends(0.0)), (Some(21), Some(22)));
    }

    #[test]
    fn eight_samples_are_not_enough() {
        assert!(!delay_is_found(200_000, 10_000, 8));
    }

    #[test]
    fn nothing_ends_slow_start_below_a_window_of_16() {
        let view = view();
        let mut hystart = start(&[], &view);
        let mut window = Window::new(15);
        for _ in 0..50 {
            hystart.acked(&view, &mut window, 500_000, 10_000);
        }
        assert!(window.in_slow_start());
    }

    #[test]
    fn it_acts_once_until_it_is_reset() {
        let view = view();
        let mut hystart = start(&[], &view);
        let mut window = Window::new(16);
        let ends = |hystart: &mut HyStart, window: &mut Window| {
            for _ in 0..9 {
                hystart.acked(&view, window, 500_000, 10_000);
            }
            !window.in_slow_start()
        };
        assert!(ends(&mut hystart, &mut window));
        window.ssthresh = Window::INFINITE;
        assert!(!ends(&mut hystart, &mut window));
        hystart.reset(&view);
        assert!(ends(&mut hystart, &mut window));
    }

    #[test]
    fn a_new_round_forgets_the_last_rounds_minimum() {
        let mut view = view();
        view.snd_nxt = 10_000;
        let mut hystart = start(&[("hystart_detect", 2.0)], &view);
        let mut window = Window::new(16);
        hystart.acked(&view, &mut window, 10_000, 10_000);
        for _ in 0..20 {
            hystart.acked(&view, &mut window, 50_000, 10_000);
        }
        assert!(window.in_slow_start(), "one low sample holds for its round");
        view.snd_una = 10_001;
        view.snd_nxt = 20_000;
        for _ in 0..9 {
            hystart.acked(&view, &mut window, 50_000, 10_000);
        }
        assert!(!window.in_slow_start());
    }

    /// A minimum of 100 ms: a sixteenth is 6.25 ms, and 2 jiffies of 4 ms are more.
    #[test]
    fn in_jiffies_the_delay_may_rise_by_a_sixteenth() {
        let exits = |hz: u32, rtt_us: u32| {
            let mut view = view();
            (view.hz, view.now) = (hz, Instant::from_nanos(1_000_000_000));
            let mut hystart = start_with(HyStartClock::Jiffies, &[("hystart_detect", 2.0)], &view);
            let mut window = Window::new(16);
            for _ in 0..9 {
                hystart.acked(&view, &mut window, rtt_us, 100_000);
            }
            !window.in_slow_start()
        };
        assert_eq!((exits(1_000, 106_000), exits(1_000, 107_000)), (false, true));
        assert_eq!((exits(250, 108_000), exits(250, 112_000)), (false, true));
    }

    #[test]
    fn in_jiffies_a_train_lasts_half_the_minimum_rtt() {
        let mut view = view();
        let mut hystart = start_with(HyStartClock::Jiffies, &[("hystart_detect", 1.0)], &view);
        let mut window = Window::new(20);
        let mut exit_ms = 0;
        for ms in 1..60 {
            at_us(&mut view, ms * 1_000);
            hystart.acked(&view, &mut window, 40_000, 40_000);
            if exit_ms == 0 && !window.in_slow_start() {
                exit_ms = ms;
            }
        }
        assert_eq!(exit_ms, 20);
    }

    #[test]
    fn the_allowance_for_bursts_is_capped_at_1_ms() {
        let view = view();
        let mut window = Window::new(10);
        window.pacing_rate = 1_250_000_000; // 10 Gbit/s
        assert_eq!(ack_delay_us(&view, &window), 208);
        window.pacing_rate = 1_250_000;
        assert_eq!(ack_delay_us(&view, &window), 1_000);
    }

    #[test]
    fn the_ack_delta_takes_whole_microseconds_up_to_about_a_second() {
        // `hystart_ack_delta_us` is an int of tcp_cubic; here at most 2^20.
        for (value, valid) in
            [(0.0, true), (1_048_576.0, true), (1_048_577.0, false), (-1.0, false), (0.5, false)]
        {
            let given = options(&[("hystart_ack_delta_us", value)]);
            assert_eq!(Parameters::new(&ABOUT, &given).is_ok(), valid, "{value}");
        }
    }
}
