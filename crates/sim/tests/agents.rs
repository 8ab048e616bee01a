//! Agents beside the algorithms that they imitate, on random paths: the same recording, byte for byte.

use dragstrip_cc::agent::FIGURES;
use dragstrip_scenario::{
    Application, BfifoSpec, GsoMode, LinkSpec, QdiscSpec, Scenario, Transport,
};
use dragstrip_sim::{Data, Recording, Run};
use dragstrip_testkit::path::{dumbbell, flow, link};
use proptest::prelude::*;

/// A path of one flow; a policy named `mine` is among its own algorithms.
#[derive(Clone, Debug)]
struct Path {
    rate_bps: u64,
    rtt_ns: u64,
    buffer_bytes: u64,
    gso: bool,
}

fn paths() -> impl Strategy<Value = Path> {
    (1_u64..50, 2_u64..200, 3_u64..300, any::<bool>()).prop_map(|(mbps, rtt_ms, buffer_kb, gso)| {
        Path {
            rate_bps: mbps * 1_000_000,
            rtt_ns: rtt_ms * 1_000_000,
            buffer_bytes: buffer_kb * 1_000,
            gso,
        }
    })
}

fn scenario(path: &Path, cc: &str, policy: &str) -> Scenario {
    let qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: path.buffer_bytes });
    let bottleneck = LinkSpec { rate_bps: Some(path.rate_bps), qdisc, ..link("r", "d") };
    let mut scenario = dumbbell(1, bottleneck, path.rtt_ns, 6);
    scenario.flows.push(flow("s0", "d", cc));
    scenario.flows[0].label = "flow".to_owned();
    if !path.gso {
        for node in &mut scenario.nodes {
            if let dragstrip_scenario::NodeSpec::Host(host) = node {
                host.gso = GsoMode::Off;
            }
        }
    }
    if !policy.is_empty() {
        scenario.programs.insert("mine".to_owned(), policy.to_owned());
    }
    assert!(scenario.validate().is_ok(), "{:?}", scenario.validate());
    scenario
}

fn with_options(mut scenario: Scenario, options: &[(&str, f64)]) -> Scenario {
    if let Transport::Tcp { cc_options, .. } = &mut scenario.flows[0].transport {
        *cc_options = options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    }
    scenario
}

/// The hash of a recording in which every algorithm has the same name.
fn hash(mut recording: Recording) -> String {
    for column in recording.tables.iter_mut().flat_map(|table| &mut table.columns) {
        if let ("cc", Data::Text { names, .. }) = (column.name, &mut column.data) {
            names.iter_mut().for_each(|name| *name = "anything".to_owned());
        }
    }
    recording.sha256()
}

fn ran(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

/// Steps an agent from outside to the end; `action` is given its figures.
fn steered(scenario: &Scenario, mut action: impl FnMut(&dyn Fn(&str) -> f64) -> f64) -> Recording {
    let mut run = Run::new(scenario.clone(), ()).expect("a valid scenario");
    while run.advance_to_step(u64::MAX) {
        let flows: Vec<u32> = run.waiting().collect();
        for flow in flows {
            let figures = *run.agent(flow).expect("an agent").figures();
            let value = |name: &str| {
                figures[FIGURES.iter().position(|row| row.name == name).expect("a figure")]
            };
            run.act(flow, action(&value));
        }
    }
    run.advance(u64::MAX, u32::MAX);
    run.finish()
}

/// Reno as its paper has it, from an agent's figures alone.
fn reno() -> impl FnMut(&dyn Fn(&str) -> f64) -> f64 {
    let mut count = 0;
    move |figure| {
        let number = |name: &str| figure(name) as u32;
        let (mut cwnd, ssthresh) = (number("cwnd_packets"), number("ssthresh_packets"));
        let mut acked = number("growth_packets");
        if figure("reductions") > 0.0 {
            count = 0;
        }
        if acked > 0 && figure("cwnd_limited") > 0.0 {
            if cwnd < ssthresh {
                let grown = (cwnd + acked).min(ssthresh);
                acked -= grown - cwnd;
                cwnd = grown;
            }
            if acked > 0 {
                if count >= cwnd {
                    count = 0;
                    cwnd += 1;
                }
                count += acked;
                if count >= cwnd {
                    let more = count / cwnd;
                    count -= more * cwnd;
                    cwnd += more;
                }
            }
        }
        f64::from(cwnd)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_constant_window_is_fixed(path in paths(), window in 1_u32..200, step_ms in 1_u32..300) {
        let policy = format!(
            r#"{{"policy": 1, "step": {{"ms": {step_ms}}}, "action": "window", "window_packets": {window}}}"#
        );
        let fixed = with_options(scenario(&path, "fixed", ""), &[("window", f64::from(window))]);
        let agent = steered(&scenario(&path, "mine", &policy), |_| f64::from(window));
        prop_assert_eq!(hash(agent), hash(ran(&fixed)));
    }

    #[test]
    fn reno_from_outside_is_reno(path in paths()) {
        let policy = r#"{"policy": 1, "step": "ack", "action": "window", "on_loss": "halve"}"#;
        let agent = steered(&scenario(&path, "mine", policy), reno());
        prop_assert_eq!(hash(agent), hash(ran(&scenario(&path, "reno", ""))));
    }

    #[test]
    fn an_inner_algorithm_left_alone_is_itself(path in paths(), at in 0_usize..4) {
        let inner = ["cubic", "bbr", "vegas", "reno"][at];
        let policy = format!(
            r#"{{"policy": 1, "step": {{"ms": 20}}, "action": "window_factor", "inner": "{inner}"}}"#
        );
        let agent = steered(&scenario(&path, "mine", &policy), |_| 0.0);
        prop_assert_eq!(hash(agent), hash(ran(&scenario(&path, inner, ""))));
    }

    /// A log of the actions of a run gives that run.
    #[test]
    fn a_log_replays_an_episode(path in paths(), seed in any::<u64>()) {
        let form = r#""policy": 1, "step": {"rtts": 1.0}, "action": "rate_factor", "delta": 0.3"#;
        let mut state = seed;
        let mut actions = Vec::new();
        let agent = steered(&scenario(&path, "mine", &format!("{{{form}}}")), |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let action = (state >> 40) as f64 / f64::from(1 << 23) - 1.0;
            actions.push(action);
            action
        });
        let log = format!(r#"{{{form}, "model": {{"log": {actions:?}}}}}"#);
        prop_assert_eq!(ran(&scenario(&path, "mine", &log)).sha256(), agent.sha256());
    }
}

/// An event at the very end of a step belongs to it: an ACK that comes at the boundary is in the step that ends.
#[test]
fn an_ack_at_the_end_of_a_step_belongs_to_it() {
    let path = Path { rate_bps: 12_000_000, rtt_ns: 40_000_000, buffer_bytes: 100_000, gso: false };
    let rest = r#""action": "window", "window_packets": 2"#;
    let run_of = |step: &str| {
        let policy = format!(r#"{{"policy": 1, "step": {step}, {rest}}}"#);
        Run::new(scenario(&path, "mine", &policy), ()).expect("a valid scenario")
    };
    let delivered = |run: &Run| {
        let place = FIGURES.iter().position(|row| row.name == "delivered_packets");
        run.agent(0).expect("an agent").figures()[place.expect("a figure")]
    };
    // The instants of the first two ACKs, by an agent that is asked at each.
    let (mut at, mut acked) = ([0; 2], 0.0);
    let mut run = run_of(r#""ack""#);
    for instant in &mut at {
        assert!(run.advance_to_step(u64::MAX));
        (*instant, acked) = (run.now_ns(), delivered(&run));
        run.act(0, 2.0);
    }
    assert!(acked > 0.0);
    let gap_ms = (at[1] - at[0]) as f64 / 1e6;
    for (step_ms, expected) in [(gap_ms, acked), (gap_ms - 0.001, 0.0)] {
        let mut run = run_of(&format!(r#"{{"ms": {step_ms:.6}}}"#));
        assert!(run.advance_to_step(u64::MAX));
        assert_eq!(run.now_ns(), at[0]);
        run.act(0, 2.0);
        assert!(run.advance_to_step(u64::MAX));
        assert!((delivered(&run) - expected).abs() < 1e-9, "{step_ms} ms");
    }
}

/// A window that an action raises is used at once, not at the next ACK.
#[test]
fn an_action_acts_at_once() {
    let path = Path { rate_bps: 10_000_000, rtt_ns: 100_000_000, buffer_bytes: 200_000, gso: true };
    let policy = r#"{"policy": 1, "step": {"ms": 30}, "action": "window", "window_packets": 4}"#;
    let mut run = Run::new(scenario(&path, "mine", policy), ()).expect("a valid scenario");
    let in_flight =
        FIGURES.iter().position(|row| row.name == "in_flight_packets").expect("a figure");
    assert!(run.advance_to_step(u64::MAX));
    run.act(0, 20.0);
    assert!(run.advance_to_step(u64::MAX));
    assert!(run.agent(0).expect("an agent").figures()[in_flight] >= 19.0);
}

#[test]
fn a_finite_transfer_ends_its_agent() {
    let path = Path { rate_bps: 10_000_000, rtt_ns: 20_000_000, buffer_bytes: 200_000, gso: true };
    let policy = r#"{"policy": 1, "step": {"ms": 10}, "action": "window", "window_packets": 10}"#;
    let mut scenario = scenario(&path, "mine", policy);
    scenario.flows[0].application = Application::Bulk { bytes: Some(300_000) };
    let mut run = Run::new(scenario, ()).expect("a valid scenario");
    let mut delivered = 0.0;
    while run.advance_to_step(u64::MAX) && !run.has_ended(0) {
        run.act(0, 10.0);
    }
    assert!(run.has_ended(0) && run.now_ns() < 1_000_000_000);
    assert_eq!(run.bytes_received(0), 300_000);
    run.end_step(0);
    delivered += run.agent(0).expect("an agent").figures()[1];
    assert!(delivered < 0.010, "the last step is shorter: {delivered}");
}
