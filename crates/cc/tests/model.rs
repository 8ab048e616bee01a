//! One model for every registered congestion control, and for the programs of `programs/`: a connection to which anything legal happens.
//!
//! [`Connection`] plays the endpoint: it keeps the counters of a [`View`] consistent, calls the
//! hooks in the order of the contract and owns the window in recovery. [`Step`] is one thing that can
//! happen to it. Whatever the sequence, the invariants of [`Connection::check`] hold, nothing panics
//! or overflows, and the same sequence leads to the same state.
//!
//! On failure, proptest prints the shortest sequence it finds and adds its seed to
//! `tests/model.proptest-regressions`, which is replayed first by
//! `cargo test --locked -p dragstrip-cc --test model`. More sequences: `PROPTEST_CASES=20000` before it.

use dragstrip_cc::{
    Ack, AckEvent, Algorithm, BsdHost, CaState, CongestionControl, CubicCurve, CwndLimited, Event,
    Growth, HyStartClock, LostPacket, Options, PacingStatus, RateSample, Response, Rules, Stamps,
    Text, Variable, VegasRule, View, Window, about, draws, names,
};
use dragstrip_units::{Duration, Instant, Stream};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Algorithms as texts (docs/how-to/program.md).
const PROGRAMS: [(&str, &str); 4] = [
    ("my-reno", include_str!("../../../programs/my-reno.cc")),
    ("my-exp", include_str!("../../../programs/my-exp.cc")),
    ("my-vegas", include_str!("../../../programs/my-vegas.cc")),
    ("my-bbr", include_str!("../../../programs/my-bbr.cc")),
];

/// Algorithms with a switch that changes what they do.
const SWITCHED: [&str; 2] = ["reno:hystart_pp", "cubic:hystart_pp"];

/// Everything that the model drives.
fn all() -> impl Iterator<Item = &'static str> {
    names().iter().copied().chain(SWITCHED).chain(PROGRAMS.iter().map(|(name, _)| *name))
}

fn new_algorithm(name: &str, rules: &Rules, seed: u64) -> Algorithm {
    match PROGRAMS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => {
            let text = Text::parse(text).unwrap();
            Algorithm::of(&text, &Options::new(), rules, Stream::named(seed, name)).unwrap()
        }
        // Its text comes later.
        None if name == "any" => new_algorithm("my-reno", rules, seed),
        None => {
            let (name, switch) = name.split_once(':').map_or((name, None), |(a, b)| (a, Some(b)));
            let options = switch.into_iter().map(|switch| (switch.to_owned(), 1.0)).collect();
            Algorithm::new(name, &options, rules, Stream::named(seed, name)).unwrap()
        }
    }
}

/// Something that happens to a connection.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes, µs.
    Wait(u32),
    /// As many packets leave as the window and the application allow.
    Send { at_most: u32, application_limited: bool },
    /// An ACK covers packets; `sacked` of them only selectively. The RTT is missing after
    /// retransmissions.
    Ack { packets: u32, sacked: bool, rtt_us: Option<u32>, delayed: bool, lost: u32, echoed: bool },
    /// A tail loss probe turns out to have repaired a loss.
    ProbeRepaired,
    /// Data arrives from the other side, marked or not.
    Data { marked: bool },
    /// The retransmission timer expires.
    Timeout,
    /// The reduction in progress was spurious.
    Undo,
    /// The congestion window is restarted after an idle time of so many seconds.
    Idle(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let rtt_us = prop_oneof![
        1 => Just(None),
        1 => Just(Some(0)),
        20 => (1_u32..300_000).prop_map(Some),
        1 => (1_u32..10_000_000).prop_map(Some),
    ];
    prop_oneof![
        6 => (0_u32..200_000).prop_map(Step::Wait),
        1 => (0_u32..30_000_000).prop_map(Step::Wait),
        12 => (1_u32..300, prop::bool::weighted(0.1))
            .prop_map(|(at_most, application_limited)| Step::Send { at_most, application_limited }),
        30 => (
            1_u32..100,
            prop::bool::weighted(0.1),
            rtt_us,
            any::<bool>(),
            prop_oneof![12 => Just(0), 1 => 1_u32..50],
            prop::bool::weighted(0.1),
        )
            .prop_map(|(packets, sacked, rtt_us, delayed, lost, echoed)| Step::Ack {
                packets,
                sacked,
                rtt_us,
                delayed,
                lost,
                echoed,
            }),
        1 => any::<bool>().prop_map(|marked| Step::Data { marked }),
        1 => Just(Step::ProbeRepaired),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
        1 => (1_u8..60).prop_map(Step::Idle),
    ]
}

/// The host: what does not change during a connection.
#[derive(Clone, Debug)]
struct Host {
    hz: u32,
    mss: u32,
    initial_cwnd: u32,
    clamp: u32,
    pacing_status: PacingStatus,
    rules: Rules,
}

/// Every combination of rules, also those that no kernel has.
fn rules() -> impl Strategy<Value = Rules> {
    (
        prop_oneof![Just(Growth::Packets), Just(Growth::Acks)],
        prop_oneof![Just(Growth::Packets), Just(Growth::Acks)],
        any::<bool>(),
        prop_oneof![
            Just(CwndLimited::Recently),
            Just(CwndLimited::WithinBurst),
            Just(CwndLimited::AsTold),
            Just(CwndLimited::Always)
        ],
        prop_oneof![
            Just(HyStartClock::None),
            Just(HyStartClock::Jiffies),
            Just(HyStartClock::Microseconds)
        ],
        prop_oneof![Just(CubicCurve::PerJiffy), Just(CubicCurve::PerWindow)],
        prop_oneof![Just(VegasRule::Module), Just(VegasRule::Patch)],
        prop_oneof![Just(BsdHost::Native), Just(BsdHost::Foreign)],
    )
        .prop_map(
            |(
                growth,
                module_growth,
                slow_start_at_threshold,
                limited,
                hystart,
                cubic,
                vegas,
                bsd,
            )| {
                Rules {
                    growth,
                    module_growth,
                    slow_start_at_threshold,
                    limited,
                    hystart,
                    cubic,
                    vegas,
                    bsd,
                }
            },
        )
}

fn host() -> impl Strategy<Value = Host> {
    (
        prop_oneof![Just(100), Just(250), Just(1_000)],
        prop_oneof![Just(536), Just(1_448), Just(8_948)],
        1_u32..20,
        prop_oneof![4 => Just(u32::MAX), 1 => 20_u32..200],
        prop_oneof![Just(PacingStatus::None), Just(PacingStatus::Needed), Just(PacingStatus::Fq)],
        rules(),
    )
        .prop_map(|(hz, mss, initial_cwnd, clamp, pacing_status, rules)| Host {
            hz,
            mss,
            initial_cwnd,
            clamp,
            pacing_status,
            rules,
        })
}

/// The endpoint of the model.
struct Connection {
    name: &'static str,
    cc: Algorithm,
    growth: Growth,
    view: View,
    window: Window,
    /// The reduction ends when this byte is acknowledged.
    high_seq: u64,
    prior_ssthresh: u32,
    /// A reduction can still be undone.
    undoable: bool,
}

impl Connection {
    fn new(name: &'static str, host: &Host, seed: u64) -> Self {
        let cc = new_algorithm(name, &host.rules, seed);
        let view = View {
            now: Instant::from_nanos(1),
            snd_una: 1,
            snd_nxt: 1,
            ecn: true,
            pacing_status: host.pacing_status,
            gso_max_bytes: 65_216,
            limited: host.rules.limited,
            prior_in_flight: host.initial_cwnd,
            ..View::new(host.hz, host.mss, host.initial_cwnd)
        };
        let mut window = Window::with_rules(host.initial_cwnd, &host.rules);
        window.clamp = host.clamp;
        let mut connection = Self {
            name,
            cc,
            growth: host.rules.growth,
            view,
            window,
            high_seq: 0,
            prior_ssthresh: 0,
            undoable: false,
        };
        connection.cc.init(&connection.view, &mut connection.window);
        connection.check("init");
        connection
    }

    /// Checks the invariants that hold after every hook.
    fn check(&self, hook: &str) {
        let name = self.name;
        let Window { cwnd, ssthresh, clamp, pacing_rate, .. } = self.window;
        assert!(cwnd >= 1, "{name}, {hook}: cwnd {cwnd}");
        assert!(cwnd <= clamp, "{name}, {hook}: cwnd {cwnd} above {clamp}");
        // 1 only where Linux allows it: HyStart and Vegas set it to the window after a timeout.
        assert!(ssthresh >= 1, "{name}, {hook}: ssthresh {ssthresh}");
        // 0 beyond 16 s per packet, BBR's unit of bandwidth; no RTT here is as long.
        assert!(pacing_rate > 0, "{name}, {hook}: pacing rate 0");
        assert_ne!(self.cc.min_tso_segs(&self.view, &self.window), Some(0));
        assert!(self.cc.min_cwnd(&self.window) <= ssthresh);
        assert!(!self.cc.phase(&self.view, &self.window).is_empty());
        assert!(
            name == "any" || self.cc.fault().is_none(),
            "{name}, {hook}: {:?}",
            self.cc.fault()
        );
        let mut listed = self.cc.about().variables.iter();
        self.cc.variables(&self.view, &self.window, &mut |reported, value| {
            assert!(
                listed.any(|it| it.name == reported),
                "{name}, {hook}: {reported} out of order or not listed"
            );
            assert!(value.is_finite(), "{name}, {hook}: {reported} is {value}");
        });
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Wait(us) => self.view.now += Duration::from_micros(u64::from(us)),
            Step::Send { at_most, application_limited } => self.send(at_most, application_limited),
            Step::Ack { packets, sacked, rtt_us, delayed, lost, echoed } => {
                self.ack(packets, sacked, rtt_us, delayed, lost, echoed);
            }
            Step::Data { marked } => {
                self.event(if marked { Event::EcnIsCe } else { Event::EcnNoCe });
            }
            Step::ProbeRepaired => self.event(Event::TlpRecovery),
            Step::Timeout => self.time_out(),
            Step::Undo => self.undo(),
            Step::Idle(seconds) => self.idle(seconds),
        }
    }

    fn event(&mut self, event: Event) {
        self.cc.cwnd_event(&self.view, &mut self.window, event);
        self.check("cwnd_event");
    }

    fn send(&mut self, at_most: u32, application_limited: bool) {
        let room = self.window.cwnd.saturating_sub(self.view.in_flight());
        let packets = room.min(at_most);
        if packets > 0 {
            if self.view.in_flight() == 0 {
                self.event(Event::TxStart);
            }
            self.view.last_data_sent = self.view.now;
            self.view.departure = self.view.now + Duration::from_micros(u64::from(packets) * 10);
            self.view.snd_nxt += u64::from(packets) * u64::from(self.view.mss);
            self.view.packets_out += packets;
        }
        self.view.max_packets_out = self.view.packets_out;
        self.view.is_cwnd_limited = packets == room;
        if application_limited {
            self.view.app_limited = self.view.delivered + u64::from(self.view.in_flight());
        }
    }

    /// Steps 2 to 12 of `tcp_ack`.
    fn ack(
        &mut self,
        packets: u32,
        sacked: bool,
        rtt_us: Option<u32>,
        delayed: bool,
        lost: u32,
        echoed: bool,
    ) {
        let prior_in_flight = self.view.in_flight();
        self.view.prior_in_flight = prior_in_flight;
        let prior_delivered = self.view.delivered.saturating_sub(u64::from(prior_in_flight));
        let delivered = self.deliver(packets, sacked);
        if delivered == 0 {
            return;
        }
        if let Some(rtt_us) = rtt_us {
            self.view.srtt_us_x8 = (rtt_us * 8).max(1);
            self.view.min_rtt_us = self.view.min_rtt_us.min(rtt_us);
            let before_ms =
                |us: u32| (self.view.now.as_micros_floor().wrapping_sub(us.into()) / 1_000) as u32;
            let (val, ecr) = (before_ms(rtt_us / 3), before_ms(rtt_us));
            self.view.stamps = Some(Stamps { val, ecr });
        }
        let ack = Ack { packets: delivered, rtt_us, in_flight: prior_in_flight };
        self.cc.acked(&self.view, &mut self.window, &ack);
        self.check("acked");
        let newly_marked = if echoed { delivered } else { 0 };
        self.view.delivered_ce += u64::from(newly_marked);
        let event = AckEvent {
            slow_path: echoed || sacked,
            window_update: !sacked,
            ece: echoed,
            newly_delivered: delivered,
            newly_marked,
        };
        self.cc.in_ack_event(&self.view, &mut self.window, &event);
        self.check("in_ack_event");

        let losses = lost.min(self.view.packets_out - self.view.sacked_out - self.view.lost_out);
        self.view.lost_out += losses;
        for one in 0..losses {
            self.view.lost += 1;
            if self.cc.wants_flights() {
                let packet = LostPacket {
                    tx_in_flight: prior_in_flight.max(1),
                    lost: one + 1,
                    is_app_limited: self.view.app_limited > 0,
                };
                self.cc.marked_lost(&self.view, &mut self.window, &packet);
                self.check("marked_lost");
            }
        }
        self.leave_reduction_when_due();
        if losses > 0 && self.can_reduce() {
            self.reduce(CaState::Recovery);
        } else if echoed && self.can_reduce() {
            self.reduce(CaState::Cwr);
        }

        let span = (self.view.delivered - prior_delivered) as u32;
        let interval_us = u64::from(rtt_us.unwrap_or(0));
        let sample = RateSample {
            prior_delivered,
            delivered: (interval_us > 0).then_some(span),
            interval_us,
            rtt_us,
            losses,
            acked_sacked: delivered,
            delivered_ce: if echoed { span } else { 0 },
            newly_marked,
            is_ece: echoed,
            prior_in_flight,
            tx_in_flight: prior_in_flight,
            lost: losses,
            is_app_limited: self.view.app_limited > prior_delivered,
            is_retrans: false,
            is_ack_delayed: delayed,
        };
        if self.view.app_limited < self.view.delivered {
            self.view.app_limited = 0;
        }
        self.control(&sample);
    }

    /// Packets leave the network; answers how many.
    fn deliver(&mut self, packets: u32, sacked: bool) -> u32 {
        let outstanding = self.view.packets_out - self.view.sacked_out - self.view.lost_out;
        let delivered;
        if sacked {
            delivered = packets.min(outstanding.saturating_sub(1));
            self.view.sacked_out += delivered;
        } else {
            // The first packets are acknowledged, whatever had become of them.
            let mut acked_packets = packets.min(self.view.packets_out);
            let mut was_sacked = self.view.sacked_out.min(acked_packets.saturating_sub(1));
            if self.view.sacked_out - was_sacked >= self.view.packets_out - acked_packets {
                // All the rest has been SACKed: the cumulative ACK covers it too.
                acked_packets = self.view.packets_out;
                was_sacked = self.view.sacked_out;
            }
            self.view.packets_out -= acked_packets;
            self.view.sacked_out -= was_sacked;
            self.view.lost_out = self.view.lost_out.saturating_sub(acked_packets - was_sacked);
            let unsacked = self.view.packets_out - self.view.sacked_out;
            self.view.lost_out = self.view.lost_out.min(unsacked);
            delivered = acked_packets - was_sacked;
            self.view.snd_una += u64::from(acked_packets) * u64::from(self.view.mss);
        }
        if delivered > 0 {
            self.view.delivered += u64::from(delivered);
            self.view.delivered_at = self.view.now;
        }
        delivered
    }

    fn control(&mut self, sample: &RateSample) {
        if self.cc.has_cong_control() {
            let answer = self.cc.cong_control(&self.view, &mut self.window, sample);
            self.check("cong_control");
            match answer {
                Response::None => {}
                Response::EnterCwr => panic!("{}: nothing that it controls to reduce", self.name),
                Response::MarkAppLimited => {
                    self.view.app_limited =
                        (self.view.delivered + u64::from(self.view.in_flight())).max(1);
                }
            }
        } else if matches!(self.view.state, CaState::Cwr | CaState::Recovery) {
            // Proportional rate reduction, roughly.
            self.window.cwnd = (self.view.in_flight() + 1).min(self.window.ssthresh).max(1);
            self.window.cwnd = self.window.cwnd.min(self.window.clamp);
        } else {
            let before = self.window.cwnd;
            let growth_units = match self.growth {
                Growth::Packets => sample.acked_sacked,
                Growth::Acks => 1,
            };
            let answer = self.cc.cong_avoid(&self.view, &mut self.window, growth_units);
            self.check("cong_avoid");
            // FreeBSD's CUBIC jumps to its curve, which idle time does not stop; Illinois multiplies what it has counted by
            // a slope that has just changed; Hybla's step is exponential in the RTT.
            assert!(
                matches!(self.name, "any" | "fixed" | "cubic-freebsd" | "illinois" | "hybla")
                    || self.window.cwnd <= before.saturating_add(2 * sample.acked_sacked + 2),
                "{}: {before} + {} packets delivered -> {}",
                self.name,
                sample.acked_sacked,
                self.window.cwnd
            );
            if answer == Response::EnterCwr && self.can_reduce() {
                self.reduce(CaState::Cwr);
            }
        }
        if !self.cc.has_cong_control() && self.view.srtt_us_x8 > 0 {
            let in_round = u64::from(self.window.cwnd) * u64::from(self.view.mss) * 2;
            let rate = u128::from(in_round) * 8_000_000 / u128::from(self.view.srtt_us_x8);
            self.window.pacing_rate = (rate as u64).max(1);
        }
    }

    /// Recovery reduces once; CWR is promoted without a second reduction.
    fn can_reduce(&self) -> bool {
        matches!(self.view.state, CaState::Open | CaState::Disorder)
    }

    fn become_state(&mut self, new: CaState) {
        self.cc.set_state(&self.view, &mut self.window, new);
        self.check("set_state");
        self.view.state = new;
    }

    /// Calls `ssthresh`; what is returned is the threshold.
    fn lower_threshold(&mut self) {
        self.prior_ssthresh = self.window.current_ssthresh(self.view.state);
        self.view.prior_cwnd = self.window.cwnd;
        let ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
        assert!(ssthresh >= 2 || self.cc.has_cong_control(), "ssthresh {ssthresh}");
        self.window.ssthresh = ssthresh;
        self.check("ssthresh");
    }

    fn reduce(&mut self, state: CaState) {
        self.high_seq = self.view.snd_nxt;
        self.undoable = state == CaState::Recovery;
        self.lower_threshold();
        self.become_state(state);
    }

    fn leave_reduction_when_due(&mut self) {
        if self.view.snd_una < self.high_seq {
            return;
        }
        match self.view.state {
            CaState::Open => {}
            CaState::Disorder | CaState::Loss => self.become_state(CaState::Open),
            CaState::Cwr | CaState::Recovery => {
                // tcp_end_cwnd_reduction leaves the window to an algorithm with cong_control.
                if !self.cc.has_cong_control() {
                    self.window.cwnd = self.window.ssthresh.min(self.window.clamp);
                }
                self.event(Event::CompleteCwr);
                self.become_state(CaState::Open);
            }
        }
        self.undoable &= self.view.state != CaState::Open;
    }

    /// `tcp_enter_loss`.
    fn time_out(&mut self) {
        if self.view.packets_out == 0 {
            return;
        }
        if self.view.state != CaState::Loss && self.view.state != CaState::Recovery {
            self.lower_threshold();
            self.event(Event::Loss);
            assert!(self.window.ssthresh >= 2 || self.cc.has_cong_control());
        }
        self.high_seq = self.view.snd_nxt;
        self.undoable = true;
        let unsacked = self.view.packets_out - self.view.sacked_out;
        self.view.lost += u64::from(unsacked - self.view.lost_out);
        self.view.lost_out = unsacked;
        self.window.cwnd = 1;
        self.window.cwnd_cnt = 0;
        self.become_state(CaState::Loss);
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self) {
        if !self.undoable {
            return;
        }
        self.undoable = false;
        self.view.lost_out = 0;
        let before = self.window.cwnd;
        let cwnd = self.cc.undo_cwnd(&self.view, &mut self.window);
        assert!(cwnd >= before, "undo took the window from {before} to {cwnd}");
        self.window.cwnd = cwnd.min(self.window.clamp);
        self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
        self.check("undo_cwnd");
        self.become_state(CaState::Open);
    }

    /// `tcp_cwnd_restart`, which an algorithm with cong_control is spared.
    fn idle(&mut self, seconds: u8) {
        if self.view.packets_out > 0 {
            return;
        }
        self.view.now += Duration::from_secs(u64::from(seconds));
        if self.cc.has_cong_control() {
            return;
        }
        self.event(Event::CwndRestart);
        self.window.ssthresh = self.window.current_ssthresh(self.view.state);
        let floor = self.view.initial_cwnd.min(self.window.cwnd);
        self.window.cwnd = (self.window.cwnd >> seconds.min(31)).max(floor).max(1);
        self.window.cwnd_cnt = 0;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource(
            "proptest-regressions",
        ))),
        ..ProptestConfig::default()
    })]

    /// Two instances walk side by side: invariants hold, and both end in the same state, whatever their seeds where
    /// the algorithm draws nothing.
    #[test]
    fn whatever_happens_the_invariants_hold(
        host in host(),
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        for name in all() {
            let mut first = Connection::new(name, &host, seed);
            let random = names().contains(&name) && draws(name);
            let mut two = Connection::new(name, &host, if random { seed } else { !seed });
            for step in &steps {
                first.apply(step);
                two.apply(step);
            }
            let state = |connection: &Connection| format!("{:?} {:?}", connection.cc, connection.window);
            prop_assert_eq!(state(&first), state(&two), "{} is not deterministic", name);
        }
    }
}

/// Numbers that a text may have.
fn sum() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0_u32..100).prop_map(|n| n.to_string()),
        prop::sample::select(vec![
            "cwnd",
            "ssthresh",
            "count",
            "acked",
            "now",
            "rtt",
            "srtt",
            "min_rtt",
            "in_flight",
            "delivered",
            "marked",
            "mss",
            "a",
            "0.001",
            "1e9",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 30, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), prop::sample::select(vec!["+", "-", "*", "/"]))
                .prop_map(|((x, y), sign)| format!("({x} {sign} {y})")),
            (pair, prop::sample::select(vec!["min", "max", "pow"]))
                .prop_map(|((x, y), name)| format!("{name}({x}, {y})")),
            (inner, prop::sample::select(vec!["sqrt", "cbrt", "exp", "log", "abs", "floor", "-"]))
                .prop_map(|(x, name)| format!("{name}({x})")),
        ]
    })
}

proptest! {
    /// Whatever a text computes, the endpoint's invariants hold, and twice it does the same: it goes on, or stops at a
    /// fault and leaves the window alone from there.
    #[test]
    fn any_program_keeps_the_invariants(
        host in host(),
        sums in prop::array::uniform5(sum()),
        control in any::<bool>(),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let [state, grown, slow, loss, round] = sums;
        let (hook, pacing) = if control { ("control", "pacing = abs(a)") } else { ("ack", "") };
        let text = format!(
            "state a = 1
            on {hook} {{ a = {state} if limited and {slow} < a {{ cwnd = {grown} }} else {{ cwnd = cwnd + 1 }} {pacing} }}
            on loss {{ ssthresh = {loss} count = abs({round}) }}
            on round {{ ssthresh = {round} }}
            on idle {{ cwnd = {slow} }}
            on timeout {{ a = {loss} }}"
        );
        let program = Text::parse(&text).map_err(|wrong| TestCaseError::fail(format!("{wrong}\n{text}")))?;
        let run = || {
            let mut connection = Connection::new("any", &host, 1);
            let stream = Stream::named(1, "any");
            connection.cc = Algorithm::of(&program, &Options::new(), &host.rules, stream).unwrap();
            for step in &steps {
                connection.apply(step);
            }
            format!("{:?} {:?}", connection.cc, connection.window)
        };
        prop_assert_eq!(run(), run());
    }
}

/// The model must be able to fail: a run of it visits what it is there to test.
#[test]
fn the_model_reaches_every_state() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = (host(), prop::collection::vec(step(), 1..400));
    let (mut states, mut phases) = (Vec::new(), std::collections::BTreeSet::new());
    let mut reported = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let (host, steps) = strategy.new_tree(&mut runner).unwrap().current();
        for name in all() {
            let mut connection = Connection::new(name, &host, seed);
            for step in &steps {
                connection.apply(step);
                if !states.contains(&connection.view.state) {
                    states.push(connection.view.state);
                }
                phases.insert((name, connection.cc.phase(&connection.view, &connection.window)));
                connection.cc.variables(
                    &connection.view,
                    &connection.window,
                    &mut |variable, value| {
                        if value != 0.0 {
                            reported.insert((name, variable));
                        }
                    },
                );
            }
        }
    }
    for state in [CaState::Open, CaState::Cwr, CaState::Recovery, CaState::Loss] {
        assert!(states.contains(&state), "{state:?} is never reached");
    }
    for phase in ["startup", "drain", "probe_bw", "probe_rtt"] {
        assert!(phases.contains(&("bbr", phase)), "bbr never reaches {phase}");
    }
    for phase in [
        "startup",
        "drain",
        "probe_bw_down",
        "probe_bw_cruise",
        "probe_bw_refill",
        "probe_bw_up",
        "probe_rtt",
    ] {
        for name in ["bbr2", "bbr3"] {
            assert!(phases.contains(&(name, phase)), "{name} never reaches {phase}");
        }
    }
    for phase in ["below_target", "above_target"] {
        assert!(phases.contains(&("ledbat", phase)), "ledbat is never {phase}");
    }
    for phase in ["slow_start", "default", "competitive"] {
        assert!(phases.contains(&("copa", phase)), "copa never reaches {phase}");
    }
    let own_phases = ["bbr", "bbr2", "bbr3", "copa", "fixed", "ledbat", "my-bbr"];
    for name in all().filter(|name| !own_phases.contains(name)) {
        for phase in ["slow_start", "congestion_avoidance"] {
            assert!(phases.contains(&(name, phase)), "{name} never reaches {phase}");
        }
    }
    assert!(phases.contains(&("cdg-freebsd", "congestion_recovery")));
    for row in about() {
        for variable in row.variables {
            let Variable { name, unit: _, meaning: _ } = variable;
            // Two lossy intervals of one rate are no accident: bbr/policer.rs tests them.
            assert!(
                reported.contains(&(row.name, *name)) || (row.name, *name) == ("bbr", "policed"),
                "{} never shows {name}",
                row.name
            );
        }
    }
}

/// The modes of an algorithm and where its state diagram leads from each in one step.
type Diagram = &'static [(&'static str, &'static [&'static str])];

/// Cardwell et al., CACM 60(2), 2017, figure 4 and the text on PROBE_RTT.
const BBR: Diagram = &[
    ("startup", &["drain", "probe_rtt"]),
    ("drain", &["probe_bw", "probe_rtt"]),
    ("probe_bw", &["probe_rtt"]),
    ("probe_rtt", &["startup", "probe_bw"]),
];

/// draft-ietf-ccwg-bbr, section 4.3.1.
const BBR3: Diagram = &[
    ("startup", &["drain", "probe_rtt"]),
    ("drain", &["probe_bw_down", "probe_rtt"]),
    ("probe_bw_down", &["probe_bw_cruise", "probe_bw_refill", "probe_rtt"]),
    ("probe_bw_cruise", &["probe_bw_refill", "probe_rtt"]),
    ("probe_bw_refill", &["probe_bw_up", "probe_rtt"]),
    ("probe_bw_up", &["probe_bw_down", "probe_rtt"]),
    ("probe_rtt", &["startup", "probe_bw_down"]),
];

/// Modes that may end within the ACK that begins them. PROBE_RTT is checked last, so it may end any.
const PASSED_THROUGH: [&str; 2] = ["drain", "probe_bw_down"];

/// True when one hook may lead from one mode to the other.
fn leads(diagram: Diagram, from: &str, to: &str) -> bool {
    let (_, next) = diagram.iter().find(|(mode, _)| *mode == from).expect("a mode of the diagram");
    next.iter()
        .any(|mode| *mode == to || (PASSED_THROUGH.contains(mode) && leads(diagram, mode, to)))
}

/// A random walk stays within the state diagrams, and takes each of their edges. The algorithms assert the same of every
/// single change of mode; this sees what a hook makes of several.
#[test]
fn modes_change_as_the_state_diagrams_say() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = (host(), prop::collection::vec(step(), 1..400));
    let mut transitions = std::collections::BTreeSet::new();
    for seed in 0..1_000 {
        let (host, steps) = strategy.new_tree(&mut runner).unwrap().current();
        for (name, diagram) in [("bbr", BBR), ("bbr2", BBR3), ("bbr3", BBR3)] {
            let mut connection = Connection::new(name, &host, seed);
            let mut from = connection.cc.phase(&connection.view, &connection.window);
            for step in &steps {
                connection.apply(step);
                let to = connection.cc.phase(&connection.view, &connection.window);
                if from != to {
                    // A loss that ended STARTUP was none (`BBRHandleSpuriousLossDetection`).
                    let undone = name == "bbr3" && to == "startup" && matches!(step, Step::Undo);
                    let expected = leads(diagram, from, to) || (undone && from != "probe_rtt");
                    assert!(expected, "{name}: {from} -> {to} after {step:?}");
                    transitions.insert((name, from, to));
                }
                from = to;
            }
        }
    }
    for (name, diagram) in [("bbr", BBR), ("bbr2", BBR3), ("bbr3", BBR3)] {
        for (from, next) in diagram {
            for to in *next {
                // BBRv2 and BBRv3 leave PROBE_RTT through DOWN for CRUISE at once.
                let through = name != "bbr" && (*from, *to) == ("probe_rtt", "probe_bw_down");
                let shown_mode = if through { "probe_bw_cruise" } else { to };
                assert!(
                    transitions.contains(&(name, from, shown_mode)),
                    "{name} never goes {from} -> {to}"
                );
            }
        }
    }
}
