//! Each rule against a run that was built to have its cause, and one that was built not to; the figures in the sentences against
//! the measures.

use dragstrip_measures::{Figure, Finding, Measured, Window, explain, find, summarise};
use dragstrip_scenario::{
    Application, LinkSpec, LossModel, NetemSpec, NodeSpec, QdiscSpec, Scenario, Transport,
};
use dragstrip_testkit::path::{dumbbell, flow, host, link, router};

const MBIT: u64 = 1_000_000;
const MS: u64 = 1_000_000;

/// 10 Mbit/s and 40 ms, whose BDP is 50 kB; one flow for 20 s.
fn path(queue: &str, cc: &str) -> Scenario {
    sized(10 * MBIT, 40 * MS, queue, &[cc], 20)
}

fn sized(rate_bps: u64, rtt_ns: u64, queue: &str, ccs: &[&str], seconds: u64) -> Scenario {
    let bottleneck = LinkSpec {
        rate_bps: Some(rate_bps),
        qdisc: QdiscSpec::parse(queue).expect("a queue"),
        ..link("r", "d")
    };
    let mut scenario = dumbbell(ccs.len(), bottleneck, rtt_ns, seconds);
    scenario.record.rtts = true;
    let flows = ccs.iter().enumerate().map(|(at, cc)| flow(&format!("s{at}"), "d", cc));
    scenario.flows = flows.collect();
    scenario
}

fn set(scenario: &mut Scenario, sysctl: &str, value: &str) {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.sysctl.insert(sysctl.to_owned(), value.to_owned());
        }
    }
}

fn lossy(scenario: &mut Scenario, probability: f64) {
    let netem = NetemSpec {
        loss: LossModel::Random { probability, correlation: 0.0 },
        ..NetemSpec::default()
    };
    scenario.links[0].netem = Some(Box::new(netem));
}

fn measured(scenario: &Scenario) -> Measured {
    let recording = dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario");
    Measured::new(scenario.clone(), recording).expect("all columns")
}

/// Findings of a run, each sentence compared with its figures.
fn findings(run: &Measured) -> Vec<Finding> {
    let findings = explain(run).expect("all columns");
    for finding in &findings {
        numbers_are_figures(finding);
    }
    findings
}

fn why(scenario: &Scenario) -> Vec<Finding> {
    findings(&measured(scenario))
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule).collect()
}

fn found<'a>(findings: &'a [Finding], rule: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("no {rule} in {findings:#?}"))
}

/// The first finding must be this one.
fn first<'a>(findings: &'a [Finding], rule: &str) -> &'a Finding {
    let found = found(findings, rule);
    assert_eq!(findings[0].rule, rule, "{findings:#?}");
    found
}

fn absent(findings: &[Finding], rule: &str) {
    assert!(!rules(findings).contains(&rule), "{rule} in {findings:#?}");
}

/// Every number with a unit (or a bare count) in the sentence is a figure, to the digits shown. Options in backquotes are not figures,
/// and names may hold digits.
fn numbers_are_figures(finding: &Finding) {
    let prose: String = finding.sentence.split('`').step_by(2).collect();
    let words: Vec<&str> =
        prose.split([' ', ',', ':', ';', '(', ')']).filter(|w| !w.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let Ok(shown) = word.parse::<f64>() else { continue };
        if words.get(at + 1) == Some(&"others") || *word == "100" {
            continue;
        }
        let scale = match *words.get(at + 1).unwrap_or(&"") {
            "%" => 100.0,
            "kbit/s" | "kB" => 1e-3,
            "Mbit/s" | "MB" => 1e-6,
            "Gbit/s" | "GB" => 1e-9,
            _ => 1.0,
        };
        let decimals = word.split_once('.').map_or(0, |(_, part)| part.len());
        let last: f64 = format!("1e-{decimals}").parse().expect("a number");
        let half = 0.5 * last * (1.0 + 1e-9);
        let close = |figure: &f64| (figure.abs() * scale - shown).abs() <= half;
        assert!(
            finding.figures.values().any(close),
            "{word} in {:?} is none of {:?}",
            finding.sentence,
            finding.figures
        );
    }
}

/// A measure of the run's flow at a place.
fn measure(run: &Measured, name: &str, place: usize) -> f64 {
    let (measure, statistic) = find(name).expect("a measure");
    let window = Window::default();
    let figure = match (measure.figure, statistic) {
        (Figure::OfFlow(series), Some(statistic)) => {
            statistic.of(series(run, place, &window).expect("a series"))
        }
        (Figure::FlowFigure(figure), None) => figure(run, place, &window).expect("a figure"),
        (Figure::WholeFlow(figure), None) => figure(run, place).expect("a figure"),
        (Figure::NameFigure(figure), None) => figure(run, "r-d").expect("a figure"),
        (Figure::OfName(series), Some(statistic)) => {
            statistic.of(series(run, "r-d").expect("a series"))
        }
        _ => panic!("{name}"),
    };
    figure.unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_queue_that_never_empties() {
    let run = measured(&path("bfifo limit 200000", "cubic"));
    let findings = findings(&run);
    let finding = first(&findings, "standing_queue");
    assert!(
        finding.sentence.starts_with("cubic's queue is almost never empty: "),
        "{}",
        finding.sentence
    );
    assert_eq!(finding.figures["rtt_ms"], measure(&run, "rtt_ms_p50", 0));
    // Idle, and one frame's transmission.
    let queueing = measure(&run, "rtt_ms_p50", 0) - 40.0 - 1.2112;
    assert!((finding.figures["queueing_ms"] - queueing).abs() < 1e-6);
    assert!(measure(&run, "backlog_bytes_p5", 0) > 0.0);
    // Vegas keeps two to four packets there.
    absent(&why(&path("bfifo limit 200000", "vegas")), "standing_queue");
}

/// On a medium the RTT above the empty path's is not all queueing: the wait in the queue is.
#[test]
fn a_queue_in_front_of_a_medium() {
    let mut scenario = path("pfifo limit 30", "cubic");
    let wifi = serde_json::json!({"kind": "wifi_g", "rate_bps": 24 * MBIT});
    let wifi = serde_json::from_value(wifi).expect("a medium");
    scenario.media.insert("wifi".to_owned(), wifi);
    let bottleneck = &mut scenario.links[0];
    (bottleneck.rate_bps, bottleneck.medium) = (None, Some("wifi".to_owned()));
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "standing_queue");
    let summary = serde_json::to_value(summarise(&run).expect("all columns")).expect("a document");
    assert_eq!(summary["flows"][0]["queueing_ms"], finding.figures["queueing_ms"]);
    let rtt_ms = measure(&run, "rtt_ms_p50", 0);
    assert!((5.0..rtt_ms - 40.0).contains(&finding.figures["queueing_ms"]), "{finding:?}");
}

/// Without every sample, the RTT of an interval counts if something was acknowledged in it: that of a silent flow is old.
#[test]
fn a_silent_flow_has_no_rtt() {
    let figures = |rtts: bool| {
        let mut scenario = path("bfifo limit 100000", "cubic");
        scenario.record.rtts = rtts;
        scenario.flows[0].application = Application::OnOff { on_ns: 1000 * MS, off_ns: 3000 * MS };
        let run = measured(&scenario);
        let intervals = scenario.duration_ns / scenario.record.interval_ns;
        let (measure, _) = find("rtt_ms_p50").expect("a measure");
        let Figure::OfFlow(series) = measure.figure else { panic!("a series") };
        let samples = series(&run, 0, &Window::default()).expect("a series").len() as u64;
        (samples, intervals)
    };
    let (samples, intervals) = figures(false);
    // A quarter of the time, and what of each second's data the queue still holds.
    assert!((intervals / 4..intervals / 2).contains(&samples), "{samples} of {intervals}");
    assert!(figures(true).0 > 10 * samples);
}

#[test]
fn a_send_buffer_and_the_value_that_helps() {
    for gso in [dragstrip_scenario::GsoMode::Off, dragstrip_scenario::GsoMode::Auto] {
        let mut scenario = path("bfifo limit 100000", "cubic");
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node {
                host.gso = gso;
            }
        }
        set(&mut scenario, "net.ipv4.tcp_wmem", "4096 16384 32768");
        let run = measured(&scenario);
        let limited = findings(&run);
        let finding = first(&limited, "send_buffer");
        assert_eq!(finding.figures["goodput_bps"], measure(&run, "goodput_bps", 0));
        assert_eq!(finding.figures["sndbuf_limited_s"], measure(&run, "sndbuf_limited_s", 0));
        assert_eq!(finding.figures["bdp_bytes"], 50_000.0);
        helps(&mut scenario, finding, "send_buffer");
    }
}

#[test]
fn a_receive_window_and_the_value_that_helps() {
    let mut scenario = path("bfifo limit 100000", "cubic");
    set(&mut scenario, "net.ipv4.tcp_rmem", "4096 16384 32768");
    let run = measured(&scenario);
    let limited = findings(&run);
    let finding = first(&limited, "receive_window");
    assert_eq!(finding.figures["rwnd_limited_s"], measure(&run, "rwnd_limited_s", 0));
    helps(&mut scenario, finding, "receive_window");
}

/// The options in the sentence, set, take the limit away and fill the link.
fn helps(scenario: &mut Scenario, finding: &Finding, rule: &str) {
    let options = finding.sentence.split('`').nth(1).expect("advice");
    for option in options.split("--sysctl ").filter(|option| !option.is_empty()) {
        let (name, value) = option.trim().split_once('=').expect("NAME=VALUE");
        set(scenario, name, value.trim_matches('"'));
    }
    let run = measured(scenario);
    absent(&findings(&run), rule);
    let goodput = measure(&run, "goodput_bps", 0);
    assert!(goodput > 9e6, "{options}: {goodput}");
}

/// A sender whose own interface is the bottleneck, and one behind a router.
#[test]
fn a_host_on_the_line_is_limited_by_tcp_small_queues() {
    let mut scenario = path("bfifo limit 200000", "cubic");
    let line = scenario.links[0].clone();
    for link in &mut scenario.links {
        if link.name == "s0-r" {
            (link.rate_bps, link.qdisc) = (line.rate_bps, line.qdisc.clone());
        } else if link.name == "r-d" {
            link.rate_bps = Some(1_000 * MBIT);
        }
    }
    let run = measured(&scenario);
    let on_line = findings(&run);
    let finding = first(&on_line, "small_queue");
    let limited_s = finding.figures["small_queue_limited_s"];
    let (measure, _) = find("small_queue_limited_s").expect("a measure");
    let Figure::FlowFigure(figure) = measure.figure else { panic!("a figure of a flow") };
    assert_eq!(figure(&run, 0, &Window::default()).expect("a column"), Some(limited_s));
    assert!(finding.figures["small_queue_limited_share"] > 0.95, "{finding:?}");
    absent(&on_line, "standing_queue");
    absent(&why(&path("bfifo limit 200000", "cubic")), "small_queue");
}

#[test]
fn a_buffer_that_limits_nothing_is_not_blamed() {
    // The send buffer is the limit, and yet the link is full.
    let mut scenario = path("bfifo limit 1000000", "cubic");
    set(&mut scenario, "net.ipv4.tcp_wmem", "4096 16384 262144");
    let run = measured(&scenario);
    assert!(measure(&run, "sndbuf_limited_s", 0) > 5.0);
    absent(&findings(&run), "send_buffer");
}

#[test]
fn an_application_that_sends_now_and_then() {
    let mut scenario = path("bfifo limit 100000", "cubic");
    scenario.flows[0].application = Application::OnOff { on_ns: 1000 * MS, off_ns: 3000 * MS };
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "application");
    assert_eq!(finding.figures["app_limited_s"], measure(&run, "app_limited_s", 0));
    assert!((0.6..0.8).contains(&finding.figures["app_limited_share"]), "{finding:?}");
    absent(&why(&path("bfifo limit 100000", "cubic")), "application");
}

#[test]
fn answers_are_the_server_s() {
    let mut scenario = path("bfifo limit 100000", "cubic");
    scenario.flows[0].application = Application::RequestResponse {
        request_bytes: 100,
        response_bytes: 20_000,
        think_ns: 500 * MS,
    };
    first(&why(&scenario), "application");
}

#[test]
fn loss_on_the_path() {
    let mut scenario = path("bfifo limit 100000", "reno");
    lossy(&mut scenario, 0.01);
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "random_loss");
    assert!((0.007..0.013).contains(&finding.figures["loss_share"]), "{finding:?}");
    let law = finding.figures["law_bps"];
    let goodput = measure(&run, "goodput_bps", 0);
    assert!((0.5..2.0).contains(&(goodput / law)), "{goodput} beside {law}");
    assert!(finding.sentence.contains("square-root law"), "{}", finding.sentence);
    // As much is retransmitted here, and all of it was dropped by the queue, whoever's it was.
    absent(&why(&path("bfifo limit 20000", "reno")), "random_loss");
    let mut late = sized(20 * MBIT, 200 * MS, "pfifo limit 33", &["reno", "reno"], 30);
    late.flows[1].start_ns = 22_000 * MS;
    absent(&why(&late), "random_loss");
}

#[test]
fn bbr_is_limited_by_its_pacing() {
    let run = measured(&path("bfifo limit 200000", "bbr"));
    let findings = findings(&run);
    let finding = found(&findings, "pacing");
    assert_eq!(finding.figures["pacing_limited_s"], measure(&run, "pacing_limited_s", 0));
    assert!(finding.figures["pacing_limited_share"] > 0.8, "{finding:?}");
    absent(&findings, "standing_queue");
    absent(&why(&path("bfifo limit 200000", "cubic")), "pacing");
}

#[test]
fn what_a_paced_sender_leaves_in_the_queue_is_said_once() {
    // On a short path twice the BDP is a few segments: what BBR has in flight stands in the queue.
    let run = measured(&sized(10 * MBIT, 2 * MS, "bfifo limit 200000", &["bbr"], 20));
    let queueing = measure(&run, "rtt_ms_p50", 0) - 2.0 - 1.2112;
    assert!(queueing > 5.0, "{queueing}: no queue stands here");
    let findings = findings(&run);
    assert!(found(&findings, "pacing").sentence.contains("which leaves"), "{findings:#?}");
    absent(&findings, "standing_queue");
}

#[test]
fn a_flow_that_is_over_before_slow_start_is() {
    let mut scenario = sized(100 * MBIT, 100 * MS, "bfifo limit 1000000", &["reno"], 5);
    scenario.flows[0].application = Application::Bulk { bytes: Some(300_000) };
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "slow_start_not_left");
    assert_eq!(finding.figures["slow_start_s"], measure(&run, "slow_start_s", 0));
    assert_eq!(finding.figures["life_s"], measure(&run, "completion_s", 0));
    absent(&why(&path("bfifo limit 100000", "reno")), "slow_start_not_left");
}

#[test]
fn slow_start_overshoots() {
    // Reno has no HyStart: the last round trip of slow start is a buffer too much.
    let run = measured(&sized(20 * MBIT, 100 * MS, "bfifo limit 250000", &["reno"], 10));
    let findings = findings(&run);
    let finding = found(&findings, "slow_start_overshoot");
    assert_eq!(finding.figures["retransmits"], measure(&run, "retransmits", 0));
    assert!(finding.figures["early_retransmits"] <= finding.figures["retransmits"]);
    absent(
        &why(&sized(20 * MBIT, 100 * MS, "bfifo limit 250000", &["vegas"], 10)),
        "slow_start_overshoot",
    );
}

#[test]
fn timeouts_again_and_again() {
    let mut scenario = path("bfifo limit 100000", "reno");
    lossy(&mut scenario, 0.35);
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "timeouts");
    assert_eq!(finding.figures["timeouts"], measure(&run, "timeouts", 0));
    assert_eq!(finding.figures["loss_s"], measure(&run, "loss_s", 0));
    lossy(&mut scenario, 0.001);
    absent(&why(&scenario), "timeouts");
}

fn shared(ccs: [&str; 2], change: impl FnOnce(&mut Scenario)) -> Vec<Finding> {
    let mut scenario = sized(10 * MBIT, 20 * MS, "bfifo limit 60000", &ccs, 30);
    change(&mut scenario);
    why(&scenario)
}

#[test]
fn who_gets_less_and_in_what_they_differ() {
    let far = |scenario: &mut Scenario| {
        let far = scenario.links.iter_mut().find(|link| link.name == "r-s1").expect("a link");
        far.delay_ns = 160 * MS;
    };
    let findings = shared(["reno", "reno"], far);
    let finding = first(&findings, "unfair_share");
    assert_eq!(finding.flows, ["s0-reno", "s1-reno"]);
    assert!(finding.sentence.contains("a window is sent once per round trip"), "{finding:?}");
    assert!(finding.figures["least_rtt_ms"] > finding.figures["most_rtt_ms"] + 100.0);
    // The same twice.
    absent(&shared(["reno", "reno"], |_| {}), "unfair_share");
    // A delay-based algorithm yields to one that fills the buffer.
    let findings = shared(["cubic", "vegas"], |_| {});
    let finding = first(&findings, "unfair_share");
    assert!(
        finding.sentence.contains("vegas backs off from the queue that cubic builds"),
        "{finding:?}"
    );
    let queueing = finding.figures["rtt_ms"] - finding.figures["queueing_ms"];
    assert!((queueing - 21.21).abs() < 0.01, "an idle round trip of a full frame: {queueing}");
    assert!(finding.figures["most_packets"] > 2.0 * finding.figures["least_packets"]);
    assert!(finding.sentence.starts_with("cubic gets "), "{}", finding.sentence);
    let ratio = finding.figures["most_bps"] / finding.figures["least_bps"];
    assert_eq!(finding.figures["ratio"], ratio);
}

/// Each mechanism by which one of two algorithms gets more, in a race that has it: its words, and figures that must stand beside them.
#[test]
fn the_mechanism_is_that_of_the_pair() {
    let deep = "bfifo limit 400000";
    let red = "red limit 400kb min 30kb max 90kb avpkt 1500 burst 30 probability 0.1 ecn";
    let pairs = [
        (
            ["vegas", "cubic"],
            deep,
            false,
            "vegas backs off from the queue that cubic builds",
            "queueing_ms",
        ),
        (
            ["vegas", "copa"],
            deep,
            false,
            "both back off from delay, vegas from less of it",
            "queueing_ms",
        ),
        (
            ["cubic", "bbr"],
            "bfifo limit 25000",
            false,
            "bbr does not slow down for losses",
            "least_reductions",
        ),
        (
            ["bbr", "cubic"],
            deep,
            false,
            "cubic fills the buffer, and bbr keeps no more in flight",
            "queueing_ms",
        ),
        (
            ["reno", "scalable"],
            "bfifo limit 50000",
            false,
            "both give way to loss, and scalable regains",
            "most_reductions",
        ),
        (
            ["reno", "dctcp"],
            red,
            true,
            "dctcp reduces its window by the share of its packets that is marked",
            "marked",
        ),
        (["cubic", "prague"], "pie ecn", false, "the queue marks packets of prague", "resent"),
    ];
    for (ccs, queue, ecn, words, figure) in pairs {
        let mut scenario = sized(10 * MBIT, 40 * MS, queue, &ccs, 20);
        if ecn {
            set(&mut scenario, "net.ipv4.tcp_ecn", "1");
        }
        let findings = why(&scenario);
        let finding = found(&findings, "unfair_share");
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
        assert!(finding.figures.contains_key(figure), "{finding:?}");
        assert!(finding.figures["most_packets"] > finding.figures["least_packets"], "{finding:?}");
        assert!(finding.sentence.contains(ccs[0]) && finding.sentence.contains(ccs[1]));
    }
}

/// One algorithm with other options is another contender.
#[test]
fn options_are_a_difference() {
    let findings = shared(["cubic", "cubic"], |scenario| {
        if let Transport::Tcp { cc_options, .. } = &mut scenario.flows[0].transport {
            cc_options.insert("beta".to_owned(), 1000.0);
        }
    });
    let finding = found(&findings, "unfair_share");
    assert!(finding.sentence.contains("both give way to loss"), "{}", finding.sentence);
    assert!(finding.figures["most_reductions"] < finding.figures["least_reductions"]);
}

#[test]
fn a_label_with_options_is_who_is_meant() {
    let labelled = |label: &str| {
        let mut scenario = sized(10 * MBIT, 20 * MS, "bfifo limit 60000", &["reno"], 10);
        scenario.flows[0].label = label.to_owned();
        let findings = why(&scenario);
        findings[0].sentence.clone()
    };
    assert!(
        labelled("reno:beta=0.8").starts_with("reno:beta=0.8's queue"),
        "{}",
        labelled("reno:beta=0.8")
    );
    assert!(labelled("mine").starts_with("reno's queue"), "{}", labelled("mine"));
}

#[test]
fn a_flow_that_comes_later() {
    // Two seconds are ten round trips, and the queue is full of the other's packets.
    let late = |start_ns| {
        let mut scenario = sized(20 * MBIT, 200 * MS, "bfifo limit 500000", &["reno", "reno"], 30);
        scenario.flows[1].start_ns = start_ns;
        why(&scenario)
    };
    let findings = late(28_000 * MS);
    let finding = first(&findings, "unfair_share");
    assert!(
        finding.sentence.contains("s1-reno started 28 s later, into a queue of"),
        "{finding:?}"
    );
    assert_eq!(finding.figures["later_s"], 28.0);
    assert!(finding.sentence.starts_with("From 28 s to 30 s, s0-reno gets "), "{finding:?}");
    absent(&late(0), "unfair_share");
}

/// A late flow's absence is no part of how two compete: shares, Jain's index and the sentence are of the time in which both live,
/// and say the same.
#[test]
fn shares_and_their_explanation_are_of_the_time_in_which_all_live() {
    let mut scenario = sized(10 * MBIT, 40 * MS, "bfifo limit 50000", &["cubic", "cubic"], 30);
    let far = scenario.links.iter_mut().find(|link| link.name == "r-s1").expect("a link");
    far.delay_ns = 160 * MS;
    scenario.flows[1].start_ns = 10_000 * MS;
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "unfair_share");
    assert!(finding.sentence.starts_with("From 10 s to 30 s, s0-cubic gets "), "{finding:?}");
    let ratio = finding.figures["ratio"];
    let shares = measure(&run, "share", 0) / measure(&run, "share", 1);
    assert!((shares - ratio).abs() < 1e-9, "{shares} for {ratio}");
    let figures = [finding.figures["most_bps"], finding.figures["least_bps"]];
    let both = figures[0] + figures[1];
    assert!((9e6..1e7).contains(&both), "two share the link at {both}, neither is alone");
    let squares = figures.iter().map(|rate| rate * rate).sum::<f64>();
    let jain = both * both / (2.0 * squares);
    assert!((finding.figures["jain"] - jain).abs() < 1e-9);
    // By bytes of the whole run, the absence would have counted too.
    let bytes = |flow: usize| run.flows()[flow].bytes_received as f64;
    assert!(bytes(0) / bytes(1) > 1.2 * ratio, "{} for {ratio}", bytes(0) / bytes(1));
}

#[test]
fn a_link_that_is_idle_after_reductions() {
    let run = measured(&sized(10 * MBIT, 100 * MS, "pfifo limit 10", &["reno"], 20));
    let findings = findings(&run);
    let finding = first(&findings, "idle_link");
    assert_eq!(finding.figures["idle_s"], measure(&run, "idle_s", 0));
    assert!(finding.sentence.contains("after a reduction of the window"), "{}", finding.sentence);
    assert!(finding.sentence.contains("smaller than the BDP"), "{}", finding.sentence);
    // Frames that arrived, over the rate, are the time in which it was not idle.
    let busy = 1.0 - finding.figures["idle_share"];
    let carried = measure(&run, "throughput_bps_mean", 0) / 1e7;
    assert!((busy - carried).abs() < 0.02, "{busy} and {carried}");
    absent(&why(&path("bfifo limit 100000", "reno")), "idle_link");
}

#[test]
fn a_queue_that_is_managed() {
    let run = measured(&path("codel", "cubic"));
    let findings = findings(&run);
    let finding = first(&findings, "aqm");
    assert!(
        finding.sentence.starts_with("codel holds the queue of the bottleneck at "),
        "{}",
        finding.sentence
    );
    assert_eq!(finding.figures["dropped"], measure(&run, "dropped", 0));
    let delay = measure(&run, "backlog_bytes_p50", 0) * 8e3 / 1e7;
    assert_eq!(finding.figures["delay_ms"], delay);
    assert_eq!(finding.figures["target_ms"], 5.0);
    absent(&findings, "ecn_marks");
    absent(&why(&path("bfifo limit 100000", "cubic")), "aqm");
    // Its target is too short for the path: what is seen is an idle link.
    let starved = why(&sized(50 * MBIT, 100 * MS, "codel target 1ms interval 10ms", &["reno"], 20));
    absent(&starved, "aqm");
    first(&starved, "idle_link");
}

#[test]
fn marks_instead_of_drops() {
    let mut scenario = path("codel ecn", "cubic");
    set(&mut scenario, "net.ipv4.tcp_ecn", "1");
    let run = measured(&scenario);
    let findings = findings(&run);
    let finding = first(&findings, "ecn_marks");
    assert_eq!(finding.figures["marked"], measure(&run, "marked", 0));
    set(&mut scenario, "net.ipv4.tcp_ecn", "0");
    absent(&why(&scenario), "ecn_marks");
}

#[test]
fn nothing_connected() {
    let mut scenario = sized(10 * MBIT, 40 * MS, "bfifo limit 100000", &["cubic"], 5);
    lossy(&mut scenario, 1.0);
    let run = measured(&scenario);
    let findings = findings(&run);
    first(&findings, "unconnected");
    assert_eq!(measure(&run, "app_limited_s", 0), 0.0, "the application is not to blame");
    absent(&why(&path("bfifo limit 100000", "cubic")), "unconnected");
}

#[test]
fn a_link_that_is_filled() {
    let run = measured(&path("bfifo limit 50000", "vegas"));
    let findings = findings(&run);
    let finding = first(&findings, "filled");
    assert!(
        (finding.figures["used_share"] - (1.0 - measure(&run, "idle_s", 0) / 20.0)).abs() < 1e-9
    );
    let mut lossy_path = path("bfifo limit 50000", "vegas");
    lossy(&mut lossy_path, 0.02);
    absent(&why(&lossy_path), "filled");
}

/// The limits and the states of a flow add up to its life, with a sample an interval and with one at every ACK.
#[test]
fn times_add_up_to_the_flow_s_life() {
    for every_ack in [false, true] {
        let mut scenario = path("bfifo limit 100000", "bbr");
        scenario.record.every_ack = every_ack;
        let run = measured(&scenario);
        let window = Window::default();
        for spent in [run.limited_s(0, &window).unwrap(), run.state_s(0, &window).unwrap()] {
            let all: f64 = spent.values().sum();
            assert!((all - 20.0).abs() < 0.11, "{spent:?}");
        }
        assert!(measure(&run, "pacing_limited_s", 0) > 15.0);
    }
}

#[test]
fn a_window_that_was_never_reduced_is_not_called_reduced() {
    let found = why(&sized(100 * MBIT, 40 * MS, "bfifo limit 500kb", &["fixed"], 5));
    let idle = first(&found, "idle_link");
    assert!(idle.sentence.contains("while a window that was never reduced"), "{idle:?}");
    assert!(!idle.sentence.contains("reduction"), "{idle:?}");
}

#[test]
fn a_program_that_yields_has_a_cause() {
    let mut scenario = sized(10 * MBIT, 40 * MS, "bfifo limit 150kb", &["my-vegas", "cubic"], 20);
    let text = include_str!("../../../programs/my-vegas.cc");
    scenario.programs.insert("my-vegas".to_owned(), text.to_owned());
    let found = why(&scenario);
    let unfair = first(&found, "unfair_share");
    assert!(
        unfair.sentence.contains("my-vegas gives way to the queue that cubic builds"),
        "{unfair:?}"
    );
    assert!(unfair.figures["queueing_ms"] > 20.0, "{unfair:?}");
}

/// Two routers in a row: `a` crosses both links, `b` the first alone.
fn row(first: &str, second: &str, ccs: [&str; 2]) -> Scenario {
    let mut scenario = path("bfifo limit 60kb", "cubic");
    let limited = |from: &str, to: &str, rate_bps: u64, queue: &str| LinkSpec {
        rate_bps: Some(rate_bps),
        delay_ns: 10 * MS,
        qdisc: QdiscSpec::parse(queue).expect("a queue"),
        ..link(from, to)
    };
    scenario.nodes = ["r0", "r1", "r2"].map(router).to_vec();
    scenario.nodes.extend(["a", "b", "x", "y"].map(host));
    scenario.links =
        vec![limited("r0", "r1", 20 * MBIT, first), limited("r1", "r2", 15 * MBIT, second)];
    let plain = [("a", "r0"), ("b", "r0"), ("r2", "x"), ("r1", "y")];
    scenario.links.extend(plain.map(|(from, to)| link(from, to)));
    scenario.links.extend(plain.map(|(from, to)| link(to, from)));
    scenario.links.extend([link("r1", "r0"), link("r2", "r1")]);
    scenario.flows = vec![flow("a", "x", ccs[0]), flow("b", "y", ccs[1])];
    scenario
}

#[test]
fn the_bottleneck_is_where_flows_queue() {
    let run = measured(&row("bfifo limit 100kb", "bfifo limit 150kb", ["cubic", "bbr"]));
    let named = run.queueing().expect("all columns");
    for queueing in named {
        assert_eq!(queueing.bottleneck.as_deref(), Some("r0-r1"), "{named:?}");
        assert_eq!(queueing.loss_link.as_deref(), Some("r0-r1"), "{named:?}");
    }
    let found = findings(&run);
    assert!(found.iter().all(|finding| !finding.sentence.contains("r1-r2")), "{found:#?}");
    let filled = found.iter().any(|finding| finding.sentence.contains("the bottleneck r0-r1"));
    assert!(filled, "{found:#?}");
}

#[test]
fn a_flow_that_loses_where_the_other_does_not_pass_says_so() {
    // The second link is another flow's too, which `b` never meets.
    let mut scenario = row("bfifo limit 100kb", "bfifo limit 30kb", ["cubic", "cubic"]);
    scenario.nodes.extend([host("c"), host("z")]);
    for (from, to) in [("c", "r1"), ("r2", "z")] {
        scenario.links.extend([link(from, to), link(to, from)]);
    }
    scenario.flows.push(flow("c", "z", "bbr"));
    let run = measured(&scenario);
    let named = run.queueing().expect("all columns");
    assert_eq!(named[0].loss_link.as_deref(), Some("r1-r2"), "{named:?}");
    assert_eq!(named[2].bottleneck.as_deref(), Some("r1-r2"), "{named:?}");
    let unfair = first(&findings(&run), "unfair_share").clone();
    assert!(unfair.sentence.contains("a-cubic loses at r1-r2 ("), "{unfair:?}");
    assert!(unfair.sentence.contains("which b-cubic does not cross"), "{unfair:?}");
    assert!(unfair.sentence.contains("max-min fair would be"), "{unfair:?}");
}

/// A split that is max-min fair over unequal links has an index of 1, though its goodputs differ.
#[test]
fn jains_index_is_of_the_ratio_to_the_fair_rates() {
    let mut scenario = row("bfifo limit 100kb", "bfifo limit 75kb", ["cubic", "cubic"]);
    scenario.links[1].rate_bps = Some(5 * MBIT);
    let run = measured(&scenario);
    let goodputs: Vec<f64> =
        run.flows().iter().map(dragstrip_measures::Flow::goodput_bps).collect();
    let index = |x: &[f64]| {
        let (sum, squares): (f64, f64) = (x.iter().sum(), x.iter().map(|x| x * x).sum());
        sum * sum / (x.len() as f64 * squares)
    };
    // 5 Mbit/s is all that `a` can get, and leaves 15 for `b`.
    let ratio = index(&[goodputs[0] / 5e6, goodputs[1] / 15e6]);
    let (measure, _) = find("jain").expect("a measure");
    let Figure::RunFigure(jain) = measure.figure else { panic!("a figure of the run") };
    let measured = jain(&run).expect("all columns").expect("an index");
    assert!((measured - ratio).abs() < 1e-9, "{measured} {ratio}");
    assert!(measured > 0.98 && index(&goodputs) < 0.85, "{goodputs:?}");
}
