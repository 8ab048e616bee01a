//! BBRv3 against closed forms, and on an imagined path: one ACK per packet, at the bottleneck's spacing.

use super::bounds::{Acks, is_too_high, where_loss_became_too_high};
use super::mode::{DOWN_GAIN, UP_CWND_GAIN, UP_GAIN};
use super::signals::{bandwidth, lowered};
use super::*;
use crate::algorithms::bbr::DRAIN_GAIN;
use crate::testing::{made, view};
use dragstrip_units::{Duration, Instant};

/// A flow whose in-flight and bandwidth the test decides.
struct Path {
    bbr: Bbr3,
    view: View,
    window: Window,
    spacing_us: u64,
    rtt_us: u32,
}

impl Path {
    fn new(spacing_us: u64, rtt_us: u32) -> Self {
        let mut bbr = made!(Bbr3);
        let (mut view, mut window) = (view(), Window::new(10));
        view.min_rtt_us = rtt_us;
        view.srtt_us_x8 = rtt_us * 8;
        bbr.init(&view, &mut window);
        Self { bbr, view, window, spacing_us, rtt_us }
    }

    /// One packet is delivered; it was sent when as many were in flight as stay behind now.
    fn ack(&mut self, in_flight: u32) -> RateSample {
        self.view.now += Duration::from_micros(self.spacing_us);
        self.view.departure = self.view.departure.max(self.view.now);
        self.view.delivered_at = self.view.now;
        self.view.delivered += 1;
        self.view.packets_out = in_flight;
        RateSample {
            prior_delivered: self.view.delivered.saturating_sub(u64::from(in_flight) + 1),
            delivered: Some(1),
            interval_us: self.spacing_us,
            rtt_us: Some(self.rtt_us),
            acked_sacked: 1,
            prior_in_flight: in_flight + 1,
            tx_in_flight: in_flight + 1,
            ..RateSample::default()
        }
    }

    fn control(&mut self, sample: &RateSample) {
        let _ = self.bbr.cong_control(&self.view, &mut self.window, sample);
    }

    /// A packet at the window, or at twice the BDP where that is less (the path holds no more).
    fn step(&mut self) {
        let sample = self.ack(self.window.cwnd.min(self.pipe() * self.load() / 4));
        self.control(&sample);
    }

    /// In flight, in quarters of a BDP, as the pacing gain brings about.
    fn load(&self) -> u32 {
        match self.bbr.mode {
            Mode::Startup => 8,
            Mode::ProbeBw(Phase::Up) => 5,
            Mode::ProbeRtt { .. } => 2,
            Mode::Drain | Mode::ProbeBw(Phase::Down | Phase::Cruise | Phase::Refill) => 4,
        }
    }

    fn pipe(&self) -> u32 {
        self.rtt_us / self.spacing_us as u32
    }

    fn phase(&self) -> &'static str {
        self.bbr.phase(&self.view, &self.window)
    }

    fn until(&mut self, phase: &str) {
        for _ in 0..200_000 {
            if self.phase() == phase {
                return;
            }
            self.step();
        }
        panic!("{phase} does not come; it stays in {}", self.phase());
    }

    fn mark_lost(&mut self, tx_in_flight: u32, lost: u32) {
        let packet = LostPacket { tx_in_flight, lost, is_app_limited: false };
        self.bbr.marked_lost(&self.view, &mut self.window, &packet);
    }
}

#[test]
fn the_gains_are_those_of_the_module() {
    assert_eq!((Third::STARTUP_GAIN, DRAIN_GAIN, UP_GAIN, DOWN_GAIN), (710, 88, 320, 232));
    assert_eq!((CWND_GAIN, UP_CWND_GAIN, PROBE_RTT_CWND_GAIN), (512, 576, 128));
}

/// 10 packets in 12 ms: ⌈10 · 2^24 / 12000⌉; the BDP over 40 ms rounds up.
#[test]
fn bandwidth_rate_and_bdp_in_closed_form() {
    let sample = RateSample { delivered: Some(10), interval_us: 12_000, ..RateSample::default() };
    let bw = bandwidth(&sample);
    assert_eq!(bw, 13_982);
    assert_eq!(bytes_per_second(&view(), bw, UNIT), 1_194_684);
    let path = Path::new(1_200, 40_000);
    let bdps = [256, 512, 576, 128].map(|gain| path.bbr.bdp(bw, gain));
    assert_eq!(bdps, [34, 67, 76, 17]);
    // 10 packets in 40 ms at 2.77, less 1 %.
    assert_eq!(path.window.pacing_rate, 993_872);
}

#[test]
fn bursts_are_a_millisecond_and_longer_on_short_paths() {
    for (rate, rtt_us, segments) in
        [(1_250_000, 40_000, 2), (1_250_000, 1_000, 23), (12_500_000, 100_000, 8)]
    {
        let mut path = Path::new(1_000, rtt_us);
        path.window.pacing_rate = rate;
        assert_eq!(path.bbr.tso_segs_goal(&path.view, &path.window), segments, "{rate} {rtt_us}");
    }
}

#[test]
fn headroom_is_fifteen_percent_but_a_packet_at_least() {
    let room = |inflight_hi| Upper { inflight_hi, ..Upper::default() }.with_headroom();
    assert_eq!([100, 6, 4, INFINITE].map(room), [86, 5, 4, INFINITE]);
}

#[test]
fn the_bound_rises_by_1_2_4_packets_per_round() {
    let mut upper = Upper { inflight_hi: 100, ..Upper::default() };
    let slopes: Vec<u32> = (0..8)
        .map(|_| {
            upper.raise_slope(100);
            upper.per_raise
        })
        .collect();
    assert_eq!(slopes, [100, 50, 25, 12, 6, 3, 1, 1]);
    upper = Upper { inflight_hi: 100, per_raise: 25, ..Upper::default() };
    for _ in 0..100 {
        upper.raise(100, 1, false);
    }
    assert_eq!(upper.inflight_hi, 104);
}

#[test]
fn two_percent_of_what_was_in_flight_is_too_much() {
    let lost = |tx_in_flight, lost| {
        is_too_high(&RateSample { tx_in_flight, lost, ..RateSample::default() })
    };
    assert!(!lost(0, 9) && !lost(1_000, 19) && lost(1_000, 20) && !lost(1, 0) && lost(1, 1));
}

#[test]
fn the_bound_is_where_loss_became_too_high() {
    for (tx_in_flight, lost, expected) in [(100, 2, 100), (100, 3, 99), (1_000, 20, 1_000)] {
        let packet = LostPacket { tx_in_flight, lost, is_app_limited: false };
        assert_eq!(where_loss_became_too_high(&packet), expected, "{packet:?}");
    }
}

#[test]
fn a_lossy_round_keeps_seven_tenths_but_no_less_than_was_delivered() {
    assert_eq!((lowered(1_000, 0), lowered(1_000, 900), lowered(10, 0)), (703, 900, 7));
}

#[test]
fn startup_ends_on_a_plateau_of_three_rounds() {
    let mut path = Path::new(1_000, 20_000);
    let mut rounds = 0;
    while path.phase() == "startup" {
        path.step();
        rounds += u32::from(path.bbr.round_start);
    }
    // The first round sets the mark, the next three do not beat it.
    assert_eq!(rounds, 4);
    assert!(path.bbr.full.reached && path.bbr.upper.inflight_hi == INFINITE);
    assert_eq!(path.bbr.pace.pacing_gain::<Third>(), DRAIN_GAIN);
}

#[test]
fn startup_ends_on_six_losses_in_a_recovery_if_they_are_too_many() {
    for (losses, tx_lost, ends) in [(6, 20, true), (5, 20, false), (6, 0, false)] {
        let mut path = Path::new(1_000, 40_000);
        // Bandwidth grows all the time: no plateau.
        path.view.state = CaState::Recovery;
        path.bbr.signals.round_delivered = 1_000;
        for n in 0..10 {
            path.spacing_us = path.spacing_us * 7 / 10;
            let sample = RateSample {
                losses: u32::from(n < losses),
                lost: tx_lost,
                tx_in_flight: 100,
                ..path.ack(40)
            };
            path.control(&sample);
        }
        assert_eq!(path.phase(), "startup");
        path.bbr.signals.round_delivered = 0;
        path.spacing_us = path.spacing_us.max(10) * 7 / 10;
        let sample = RateSample { lost: tx_lost, tx_in_flight: 100, ..path.ack(40) };
        path.control(&sample);
        assert_eq!(path.bbr.full.reached, ends, "{losses} losses");
        assert_eq!(path.bbr.upper.inflight_hi != INFINITE, ends);
    }
}

#[test]
fn probing_goes_cruise_refill_up_down_and_waits_two_to_three_seconds() {
    let mut path = Path::new(500, 50_000); // a BDP of 100: 63 rounds last longer than 3 s
    path.until("probe_bw_cruise");
    let began = path.view.now; // DRAIN, DOWN and CRUISE follow upon one ACK
    let mut phases = vec![path.phase()];
    while phases.len() < 5 {
        path.step();
        if path.phase() != phases[phases.len() - 1] {
            phases.push(path.phase());
            let waited = path.view.now.since(began).as_micros_floor();
            if path.phase() == "probe_bw_refill" {
                assert!((2_000_000..3_001_000).contains(&waited), "{waited} µs");
            }
        }
    }
    assert_eq!(
        phases,
        ["probe_bw_cruise", "probe_bw_refill", "probe_bw_up", "probe_bw_down", "probe_bw_cruise"]
    );
}

#[test]
fn a_small_window_is_probed_after_as_many_rounds_as_it_has_packets() {
    let mut path = Path::new(1_000, 20_000);
    path.until("probe_bw_down");
    let mut rounds = u32::from(path.bbr.rounds_since_probe);
    while path.phase() != "probe_bw_refill" {
        path.step();
        rounds += u32::from(path.bbr.round_start);
    }
    assert_eq!(rounds, 21, "the BDP; bandwidth and BDP are rounded up");
}

#[test]
fn a_probe_that_loses_more_than_two_percent_lowers_the_bound_and_ends() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_up");
    path.step();
    path.mark_lost(110, 1);
    assert_eq!(path.bbr.upper.inflight_hi, INFINITE, "1 of 110 is not much");
    path.mark_lost(110, 3);
    assert_eq!(path.phase(), "probe_bw_down");
    // 2 of 109 lost before: the budget of 3 leaves one more.
    assert_eq!(path.bbr.upper.inflight_hi, 110);
    assert!(path.bbr.upper.prev_too_high && !path.bbr.upper.samples);
    path.until("probe_bw_cruise");
    path.step();
    assert!(path.window.cwnd <= 110 - 16, "{} with headroom", path.window.cwnd);
}

#[test]
fn the_bound_falls_to_seven_tenths_of_the_target_at_once_but_not_further() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_up");
    path.step();
    let target = path.bbr.target_in_flight(&path.view, &path.window);
    path.mark_lost(10, 5);
    assert_eq!(path.bbr.upper.inflight_hi, target * 180 / 256);
}

#[test]
fn loss_while_cruising_sets_short_term_bounds_that_the_next_probe_drops() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_cruise");
    let (cwnd, max_bw) = (path.window.cwnd, path.bbr.max_bw());
    path.mark_lost(100, 1);
    path.bbr.signals.round_delivered = 0;
    path.bbr.signals.bw_latest = 0;
    path.spacing_us = 5_000; // little is delivered
    let sample = RateSample { losses: 1, ..path.ack(50) };
    path.control(&sample);
    assert_eq!(path.bbr.signals.bw_lo, ((u64::from(max_bw) * 180) >> 8) as u32);
    assert_eq!(path.bbr.signals.inflight_lo, cwnd * 180 / 256);
    assert_eq!(path.bbr.bw(), path.bbr.signals.bw_lo);
    assert_eq!(path.bbr.upper.inflight_hi, INFINITE, "no probe has lost");
    path.spacing_us = 500;
    path.until("probe_bw_refill");
    assert_eq!((path.bbr.signals.bw_lo, path.bbr.signals.inflight_lo), (INFINITE, INFINITE));
}

#[test]
fn every_five_seconds_half_a_bdp_for_two_hundred_milliseconds() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_rtt");
    let began = path.view.now;
    let at = began.since(Instant::ZERO).as_micros_floor();
    assert!((5_000_000..5_010_000).contains(&at), "{at} µs");
    path.step();
    assert_eq!(path.window.cwnd, 51, "half the BDP; bandwidth and BDP are rounded up");
    while path.phase() == "probe_rtt" {
        path.step();
    }
    let lasted = path.view.now.since(began).as_micros_floor();
    assert!((200_000..260_000).contains(&lasted), "{lasted} µs");
    assert_eq!(path.phase(), "probe_bw_cruise");
    assert!(path.window.cwnd > 100);
}

#[test]
fn after_a_risky_stop_that_lost_nothing_it_probes_again_at_once() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_up");
    path.bbr.upper.prev_too_high = true;
    path.bbr.upper.inflight_hi = 90;
    path.step();
    assert_eq!((path.phase(), path.bbr.upper.stopped_risky), ("probe_bw_down", true));
    assert_eq!(path.bbr.upper.acks, Acks::Stopping);
    while path.phase() == "probe_bw_down" || path.phase() == "probe_bw_cruise" {
        path.step();
        assert!(path.view.now.since(Instant::ZERO).as_micros_floor() < 5_000_000);
    }
    assert_eq!(path.phase(), "probe_bw_refill");
    assert!(path.bbr.rounds_since_probe <= 3, "{}", path.bbr.rounds_since_probe);
}

#[test]
fn a_spurious_timeout_gives_window_and_bounds_back() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_cruise");
    path.step();
    let cwnd = path.window.cwnd;
    path.bbr.ssthresh(&path.view, &mut path.window);
    path.window.cwnd = 1;
    path.bbr.set_state(&path.view, &mut path.window, CaState::Loss);
    assert_eq!(path.bbr.signals.inflight_lo, cwnd);
    path.view.state = CaState::Loss;
    assert_eq!(path.bbr.undo_cwnd(&path.view, &mut path.window), cwnd);
    assert_eq!(path.bbr.signals.inflight_lo, INFINITE);
    path.bbr.set_state(&path.view, &mut path.window, CaState::Open);
    assert_eq!(path.window.cwnd, cwnd);
}

/// draft-ietf-ccwg-bbr, `BBRHandleSpuriousLossDetection`: the round of what was no loss does not cut what has been restored.
#[test]
fn an_undone_loss_is_forgotten_by_the_end_of_its_round() {
    for undone in [false, true] {
        let mut path = Path::new(500, 50_000);
        path.until("probe_bw_cruise");
        path.step();
        path.mark_lost(100, 1);
        path.bbr.ssthresh(&path.view, &mut path.window);
        if undone {
            path.bbr.undo_cwnd(&path.view, &mut path.window);
        }
        for _ in 0..300 {
            path.step();
        }
        let bounds = (path.bbr.signals.bw_lo, path.bbr.signals.inflight_lo);
        assert_eq!(bounds == (INFINITE, INFINITE), undone, "{bounds:?}");
    }
}

/// The same: losses that ended a probe were none. Its bound comes back, and the probe by way of REFILL.
#[test]
fn a_probe_that_a_spurious_loss_ended_is_taken_up_again() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_up");
    path.bbr.upper.inflight_hi = 150;
    // Two in one round: the second must not save what the first has lowered; nor must recovery.
    path.mark_lost(100, 50);
    assert_eq!(path.phase(), "probe_bw_down");
    path.mark_lost(100, 51);
    assert!(path.bbr.upper.inflight_hi < 150);
    path.bbr.ssthresh(&path.view, &mut path.window);
    path.bbr.undo_cwnd(&path.view, &mut path.window);
    assert_eq!((path.phase(), path.bbr.upper.inflight_hi), ("probe_bw_refill", 150));
    path.until("probe_bw_up");
}

#[test]
fn startup_that_a_spurious_loss_ended_is_taken_up_again() {
    let mut path = Path::new(1_000, 40_000);
    for _ in 0..60 {
        path.step();
    }
    path.mark_lost(40, 20);
    path.bbr.ssthresh(&path.view, &mut path.window);
    // The end of the round in recovery finds them too many.
    path.view.state = CaState::Recovery;
    path.bbr.signals.loss_events = 6;
    path.bbr.signals.round_delivered = 0;
    let sample = RateSample { lost: 20, tx_in_flight: 40, ..path.ack(60) };
    path.control(&sample);
    assert!(path.bbr.full.reached && path.bbr.upper.inflight_hi != INFINITE);
    assert_eq!(path.phase(), "drain");
    path.bbr.undo_cwnd(&path.view, &mut path.window);
    assert_eq!((path.phase(), path.bbr.upper.inflight_hi), ("startup", INFINITE));
    assert!(!path.bbr.full.reached);
}

/// draft-ietf-ccwg-bbr, §5.3.2: the path has become slower, so that in flight stays above the old BDP.
#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut path = Path::new(1_000, 20_000);
    path.until("drain");
    let mut rounds = 0;
    for _ in 0..1_000 {
        if path.phase() != "drain" {
            break;
        }
        let sample = path.ack(200);
        path.control(&sample);
        rounds += u32::from(path.bbr.round_start);
    }
    assert_eq!((path.phase(), rounds), ("probe_bw_down", 4));
}

/// Every pair of modes against the header's diagram.
#[test]
fn the_state_diagram_has_these_edges_and_no_other() {
    use Phase::{Cruise, Down, Refill, Up};
    let low = |round_done| Mode::ProbeRtt { low: Some(LowInFlight { until: 9, round_done }) };
    let high = Mode::ProbeRtt { low: None };
    let bw = Mode::ProbeBw;
    let edges = [
        (Mode::Startup, vec![Mode::Drain, high]),
        (Mode::Drain, vec![bw(Down), high, Mode::Startup]),
        (bw(Down), vec![bw(Cruise), bw(Refill), high, Mode::Startup]),
        (bw(Cruise), vec![bw(Refill), high, Mode::Startup]),
        (bw(Refill), vec![bw(Up), high, Mode::Startup]),
        (bw(Up), vec![bw(Down), high, Mode::Startup]),
        (high, vec![low(false)]),
        (low(false), vec![Mode::Startup, bw(Down), low(true)]),
        (low(true), vec![Mode::Startup, bw(Down), low(true)]),
    ];
    for (from, expected) in &edges {
        for (to, _) in &edges {
            assert_eq!(from.may_become(*to), expected.contains(to), "{from:?} -> {to:?}");
        }
    }
}

#[test]
#[should_panic(expected = "ProbeBw(Cruise) -> ProbeBw(Up) is not in the state diagram")]
fn a_probe_does_not_begin_before_the_pipe_is_refilled() {
    let mut path = Path::new(500, 50_000);
    path.until("probe_bw_cruise");
    path.bbr.enter(Mode::ProbeBw(Phase::Up));
}
