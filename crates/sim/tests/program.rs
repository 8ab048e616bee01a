//! Algorithms that a scenario brings as a text (docs/how-to/program.md), in whole runs.

use dragstrip_scenario::{
    Application, GsoMode, LinkSpec, NodeSpec, QdiscSpec, Scenario, Transport,
};
use dragstrip_sim::{Column, Data, Recording, Run};
use dragstrip_testkit::path::{dumbbell, flow, link, ping};

const RENO: &str = include_str!("../../../programs/my-reno.cc");
const EXP: &str = include_str!("../../../programs/my-exp.cc");
const VEGAS: &str = include_str!("../../../programs/my-vegas.cc");
const BBR: &str = include_str!("../../../programs/my-bbr.cc");

const SECONDS: u64 = 20;
const RATE_BPS: u64 = 10_000_000;

/// One flow of `cc` at 10 Mbit/s and 40 ms, or what `change` makes of it; `queue` and `netem` in tc's words.
fn scenario(cc: &str, program: Option<&str>, queue: &str, netem: Option<&str>) -> Scenario {
    let netem = netem.map(|words| {
        let QdiscSpec::Netem(spec) = QdiscSpec::parse(words).unwrap() else {
            panic!("{words} is no netem");
        };
        spec
    });
    let qdisc = QdiscSpec::parse(queue).unwrap();
    let bottleneck = LinkSpec { rate_bps: Some(RATE_BPS), qdisc, netem, ..link("r", "d") };
    let mut scenario = dumbbell(1, bottleneck, 40_000_000, SECONDS);
    scenario.flows.push(flow("s0", "d", cc));
    scenario.flows[0].label = "flow".to_owned();
    scenario.probes.push(ping("d", "s0"));
    scenario.record.every_ack = true;
    scenario.programs.extend(program.map(|text| (cc.to_owned(), text.to_owned())));
    scenario
}

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).unwrap_or_else(|error| panic!("{error:?}"))
}

fn column<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a Column {
    let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
    table.columns.iter().find(|column| column.name == name).expect("a column")
}

fn numbers<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a [i64] {
    let Data::Int(values) = &column(recording, table, name).data else {
        panic!("{name}: no numbers")
    };
    values
}

fn goodput_bps(recording: &Recording) -> f64 {
    let bytes: i64 = numbers(recording, "received", "new_bytes").iter().sum();
    bytes as f64 * 8.0 / SECONDS as f64
}

fn mean_ping_ms(recording: &Recording) -> f64 {
    let answered = numbers(recording, "probes", "rtt_ns").iter().filter(|rtt| **rtt > 0);
    let rtts: Vec<i64> = answered.copied().collect();
    rtts.iter().sum::<i64>() as f64 / rtts.len() as f64 / 1e6
}

/// Every column, but for the algorithm's name.
fn assert_same_bytes(ours: &Recording, theirs: &Recording, case: &str) {
    for (our_table, their_table) in ours.tables.iter().zip(&theirs.tables) {
        for (one_column, other_column) in our_table.columns.iter().zip(&their_table.columns) {
            if (our_table.name, one_column.name) != ("flows", "cc") {
                let is_same = format!("{one_column:?}") == format!("{other_column:?}");
                assert!(is_same, "{case}: {}.{} differs", our_table.name, one_column.name);
            }
        }
    }
}

fn change_hosts(scenario: &mut Scenario, change: impl Fn(&mut dragstrip_scenario::HostSpec)) {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            change(host);
        }
    }
}

type Change = fn(&mut Scenario);

#[test]
fn reno_as_a_program_has_the_bytes_of_reno() {
    let nothing: Change = |_| {};
    let marks: Change = |scenario| {
        change_hosts(scenario, |host| {
            host.sysctl.insert("net.ipv4.tcp_ecn".to_owned(), "1".to_owned());
        });
    };
    let bursts: Change = |scenario| change_hosts(scenario, |host| host.gso = GsoMode::Auto);
    let pauses: Change = |scenario| {
        scenario.flows[0].application =
            Application::OnOff { on_ns: 1_500_000_000, off_ns: 1_700_000_000 };
    };
    let crowd: Change = |scenario| {
        let second_flow = scenario.flows[0].clone();
        let two = dragstrip_scenario::FlowSpec {
            label: "two".to_owned(),
            start_ns: 3_000_000_000,
            ..second_flow.clone()
        };
        let back = dragstrip_scenario::FlowSpec {
            label: "back".to_owned(),
            sender: "d".to_owned(),
            receiver: "s0".to_owned(),
            ..second_flow
        };
        scenario.flows.extend([two, back]);
    };
    for (queue, netem, change) in [
        ("pfifo limit 10", None, nothing),
        ("pfifo limit 300", None, nothing),
        ("bfifo limit 50000b", None, bursts),
        ("codel", None, nothing),
        ("codel ecn", None, marks),
        ("pfifo limit 100", Some("netem loss 1%"), nothing),
        ("pfifo limit 100", Some("netem loss 8%"), nothing),
        ("pfifo limit 100", Some("netem delay 5ms 5ms loss 0.1%"), nothing),
        ("pfifo limit 50", None, pauses),
        ("fq_codel", None, crowd),
    ] {
        let [mut ours, mut theirs] = [("my-reno", Some(RENO)), ("reno", None)]
            .map(|(name, program)| scenario(name, program, queue, netem));
        change(&mut ours);
        change(&mut theirs);
        let case = format!("{queue}, {netem:?}");
        let ours = run(&ours);
        assert_same_bytes(&ours, &run(&theirs), &case);
        assert!(goodput_bps(&ours) > 0.02 * RATE_BPS as f64, "{case}: nothing happened");
    }
    // The comparison can fail: one number of the text changed.
    let steep = RENO.replace("cwnd / 2", "cwnd / 3");
    let steep = run(&scenario("my-reno", Some(&steep), "pfifo limit 10", None));
    let reno = run(&scenario("reno", None, "pfifo limit 10", None));
    let windows = |recording: &Recording| numbers(recording, "samples", "cwnd_bytes").to_vec();
    assert_ne!(windows(&steep), windows(&reno));
}

#[test]
fn every_example_does_what_it_is_for() {
    let deep = "pfifo limit 200";
    for (name, text) in [("my-exp", EXP), ("my-vegas", VEGAS), ("my-bbr", BBR)] {
        let recording = run(&scenario(name, Some(text), deep, None));
        let rate = goodput_bps(&recording);
        assert!(rate > 0.85 * RATE_BPS as f64, "{name}: {rate}");
    }
    let ping = |name: &str, text| mean_ping_ms(&run(&scenario(name, text, deep, None)));
    let (reno, vegas, bbr) =
        (ping("reno", None), ping("my-vegas", Some(VEGAS)), ping("my-bbr", Some(BBR)));
    // Vegas holds two to four packets of 1.2 ms in the queue, BBR one BDP at most.
    assert!((40.0..48.0).contains(&vegas), "{vegas}");
    assert!(bbr < 90.0 && bbr < 0.6 * reno, "{bbr} and {reno}");
    let lossy =
        |name: &str, text| goodput_bps(&run(&scenario(name, text, deep, Some("netem loss 1%"))));
    let (reno, exp, bbr) =
        (lossy("reno", None), lossy("my-exp", Some(EXP)), lossy("my-bbr", Some(BBR)));
    // The mean windows of docs/how-to/new-algorithm.md: 1.53 times Reno's.
    assert!((1.3..1.8).contains(&(exp / reno)), "{exp} against {reno}");
    assert!(bbr > 0.85 * RATE_BPS as f64, "{bbr}");
}

#[test]
fn parameters_reach_the_program() {
    let with = |keep: f64| {
        let mut program_scenario = scenario("my-exp", Some(EXP), "pfifo limit 30", None);
        let Transport::Tcp { cc_options, .. } = &mut program_scenario.flows[0].transport else {
            panic!()
        };
        cc_options.insert("keep".to_owned(), keep);
        run(&program_scenario)
    };
    let plain = run(&scenario("my-exp", Some(EXP), "pfifo limit 30", None));
    assert_same_bytes(&with(0.75), &plain, "the default");
    let cwnd =
        |recording: &Recording| numbers(recording, "samples", "cwnd_bytes").iter().sum::<i64>();
    assert!(cwnd(&with(0.3)) < cwnd(&plain));
    let mut program_scenario = scenario("my-exp", Some(EXP), "pfifo limit 30", None);
    let Transport::Tcp { cc_options, .. } = &mut program_scenario.flows[0].transport else {
        panic!()
    };
    cc_options.insert("kep".to_owned(), 0.5);
    let problems = program_scenario.validate().unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "flows[0].transport.cc_options.kep: got 0.5, expected one of factor, keep; did you mean \"keep\"? (my-exp)"
    );
}

/// Its fourth reduction divides by zero.
const BROKEN: &str = "state left = 3
on ack {
    if limited { cwnd = cwnd + acked / cwnd }
}
on loss {
    ssthresh = max(cwnd / 2 + 0 * (1 / left), 2)
    left = left - 1
}
";

#[test]
fn arithmetic_that_fails_ends_the_run_where_it_fails() {
    let broken = scenario("broken", Some(BROKEN), "pfifo limit 10", None);
    let error = dragstrip_sim::run(&broken, &mut |_| true).unwrap_err();
    assert_eq!(error.field, "programs.broken:6:38");
    assert!(error.message.starts_with("gives infinity at "), "{error:?}");
    assert!(error.message.contains(", in ACK "), "{error:?}");
    assert!(error.message.contains(" of flow flow"), "{error:?}");
    // In slices it is the same fault, and the run knows it soon.
    let mut slices = Run::new(broken, ()).unwrap();
    while slices.fault().is_none() && !slices.is_done() {
        slices.advance(u64::MAX, 1_000);
    }
    assert_eq!(slices.fault(), Some(error));
    assert!(!slices.is_done());
}

#[test]
fn a_window_below_zero_is_a_fault() {
    let text = "on ack { cwnd = cwnd - 20 } on loss { ssthresh = 2 }";
    let error =
        dragstrip_sim::run(&scenario("sinking", Some(text), "pfifo limit 10", None), &mut |_| true);
    let error = error.unwrap_err();
    assert_eq!(error.field, "programs.sinking:1:10");
    assert!(error.message.starts_with("gives -10 at "), "{error:?}");
}

#[test]
fn a_scenario_with_a_program_is_checked() {
    for (name, text, message) in [
        (
            "my-reno",
            "on ack { cwnd = cwndd }",
            "programs.my-reno:1:17: got \"cwndd\", expected a name that has been given, or a word of the language; did you mean \"cwnd\"?",
        ),
        (
            "new_reno!",
            RENO,
            "programs: got the name \"new_reno!\", expected a letter, then letters, digits, - and _, at most 32 in all",
        ),
        (
            "bbr3",
            RENO,
            "programs: got the name \"bbr3\", expected another name: bbr3 is an algorithm already",
        ),
        (
            "cdg_freebsd",
            RENO,
            "programs: got the name \"cdg_freebsd\", expected another name: cdg-freebsd is an algorithm already",
        ),
    ] {
        let problems = scenario(name, Some(text), "pfifo limit 10", None).validate().unwrap_err();
        assert_eq!(problems[0].to_string(), message);
    }
    let mut program_scenario = scenario("my-renno", None, "pfifo limit 10", None);
    program_scenario.programs.insert("my-reno".to_owned(), RENO.to_owned());
    let problems = program_scenario.validate().unwrap_err();
    assert!(problems[0].to_string().ends_with("did you mean \"my-reno\"?"), "{}", problems[0]);
}

#[test]
fn a_program_draws_nothing_and_is_part_of_the_scenario() {
    let program_scenario = scenario("my-reno", Some(RENO), "pfifo limit 10", None);
    assert!(!program_scenario.draws());
    let text = serde_json::to_string(&program_scenario).unwrap();
    assert_eq!(Scenario::from_json(&text), Ok(program_scenario));
    let plain = scenario("reno", None, "pfifo limit 10", None);
    assert!(!serde_json::to_string(&plain).unwrap().contains("programs"));
}
