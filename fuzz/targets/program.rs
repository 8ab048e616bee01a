//! Algorithms as texts: what is read is run, at every hook, and neither panics nor takes long. A text in JSON is read as a policy.
#![no_main]

use dragstrip_cc::program::Program;
use dragstrip_cc::{
    Ack, Algorithm, BsdHost, CaState, CongestionControl, CubicCurve, CwndLimited, Event, Growth, HyStartClock, Options,
    PacingStatus, RateSample, Rules, Text, VegasRule, View, Window,
};
use dragstrip_units::{Instant, Stream};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

const OPERATIONS_MAX: usize = 256;
/// Those of Linux 6.
const RULES: Rules = Rules {
    growth: Growth::Packets,
    module_growth: Growth::Packets,
    slow_start_at_threshold: false,
    limited: CwndLimited::Recently,
    hystart: HyStartClock::Microseconds,
    cubic: CubicCurve::PerJiffy,
    vegas: VegasRule::Module,
    bsd: BsdHost::Foreign,
};

fuzz_target!(|text: &str| {
    let _ = Text::parse(text);
    let Ok(program) = Program::parse(text) else { return };
    assert!(program.operations().all(|(_, count)| count <= OPERATIONS_MAX));
    let mut algorithm = Algorithm::of(&Text::Program(Arc::new(program)), &Options::new(), &RULES, Stream::named(1, "fuzz"))
        .unwrap();
    let mut window = Window::new(10);
    let mut view = view();
    algorithm.init(&view, &mut window);
    for round in 0..8 {
        view.now = Instant::from_nanos(round * 40_000_000);
        view.snd_una = round * 14_480;
        view.snd_nxt = view.snd_una + 14_480;
        algorithm.cwnd_event(&view, &mut window, Event::TxStart);
        algorithm.acked(&view, &mut window, &Ack { packets: 2, rtt_us: Some(40_000), in_flight: 10 });
        if algorithm.has_cong_control() {
            let sample = RateSample { delivered: Some(10), interval_us: 40_000, acked_sacked: 2, ..RateSample::default() };
            let _ = algorithm.cong_control(&view, &mut window, &sample);
        } else {
            let _ = algorithm.cong_avoid(&view, &mut window, 2);
        }
        if round % 3 == 2 {
            window.ssthresh = algorithm.ssthresh(&view, &mut window);
            algorithm.set_state(&view, &mut window, CaState::Loss);
        }
        assert!(window.cwnd >= 1 && window.ssthresh >= 2 && window.ssthresh <= Window::INFINITE);
    }
});

fn view() -> View {
    View {
        now: Instant::ZERO,
        hz: 250,
        snd_una: 0,
        snd_nxt: 0,
        mss: 1448,
        packets_out: 10,
        sacked_out: 0,
        lost_out: 0,
        retrans_out: 0,
        max_packets_out: 10,
        is_cwnd_limited: true,
        delivered: 0,
        delivered_ce: 0,
        ecn: false,
        lost: 0,
        delivered_at: Instant::ZERO,
        app_limited: 0,
        srtt_us_x8: 320_000,
        min_rtt_us: 40_000,
        state: CaState::Open,
        prior_cwnd: 0,
        last_data_sent: Instant::ZERO,
        departure: Instant::ZERO,
        pacing_status: PacingStatus::None,
        pacing_shift: 10,
        gso_max_bytes: 65_216,
        initial_cwnd: 10,
        limited: CwndLimited::Recently,
        prior_in_flight: 10,
        max_burst: 3,
        abc_limit: 2,
        stamps: None,
    }
}
