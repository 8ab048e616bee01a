//! Flows of QUIC: the same bytes every time, the figures that the stacks have on a plain path, and what ends them.

use dragstrip_scenario::{
    Application, BfifoSpec, ChangeSpec, FlowSpec, LinkSpec, NetemSpec, QdiscSpec, Scenario,
    Transport, quic,
};
use dragstrip_sim::audit::{audit, in_parts};
use dragstrip_sim::{Data, Recording};
use dragstrip_testkit::path::{dumbbell, flow, link};

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

fn quic_flow(sender: &str, cc: &str) -> FlowSpec {
    FlowSpec {
        label: cc.to_owned(),
        transport: Transport::Quic { cc: cc.to_owned(), cc_options: Default::default() },
        ..flow(sender, "d", "")
    }
}

/// True where this machine has the library of a word's stack; says which it lacks.
fn can_run(word: &str) -> bool {
    let Ok(control) = quic::find(word) else { return true };
    let absence = dragstrip_quic::absence(control.stack());
    if let Some(absence) = &absence {
        eprintln!("skipped: {word} needs {absence}");
    }
    absence.is_none()
}

/// 10 Mbit/s, 40 ms, a drop-tail queue of 200 kB, and a sender for each flow.
fn race(ccs: &[&str], seconds: u64) -> Scenario {
    let qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: 200_000 });
    let bottleneck = LinkSpec { rate_bps: Some(10_000_000), qdisc, ..link("r", "d") };
    let mut scenario = dumbbell(ccs.len(), bottleneck, 40_000_000, seconds);
    for (index, cc) in ccs.iter().enumerate() {
        let sender = format!("s{index}");
        scenario.flows.push(match cc.split_once('/') {
            Some(_) => quic_flow(&sender, cc),
            None => flow(&sender, "d", cc),
        });
    }
    scenario
}

fn column<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a Data {
    let table = recording.table(table).expect("a table");
    &table.columns.iter().find(|column| column.name == name).expect("a column").data
}

fn numbers<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a [i64] {
    let Data::Int(values) = column(recording, table, name) else { panic!("{name}: no numbers") };
    values
}

/// Goodput of each flow, Mbit/s.
fn goodputs(recording: &Recording, seconds: f64) -> Vec<f64> {
    let bytes = numbers(recording, "flows", "bytes_received");
    bytes.iter().map(|bytes| *bytes as f64 * 8e-6 / seconds).collect()
}

#[test]
fn every_stack_gives_the_same_bytes_twice_and_others_with_another_seed() {
    let own = ["noq/dragstrip-cubic", "noq/dragstrip-bbr3"];
    for word in quic::names().chain(own).filter(|word| can_run(word)) {
        let scenario = race(&[word, "cubic"], 4);
        let hash = run(&scenario).sha256();
        assert_eq!(run(&scenario).sha256(), hash, "{word}");
        let (observed, books) = audit(&scenario).expect("a valid scenario");
        assert_eq!(observed.sha256(), hash, "{word}");
        assert_eq!(books.records, books.waiting, "{word}");
    }
    let scenario = race(&["noq/cubic"], 4);
    let other = Scenario { seed: 2, ..scenario.clone() };
    assert_ne!(run(&scenario).sha256(), run(&other).sha256());
    assert!(scenario.draws());
}

#[test]
fn a_run_with_quic_is_not_cut_into_parts() {
    assert!(in_parts(&race(&["noq/cubic", "cubic"], 1), 2).expect("a valid scenario").is_none());
}

/// The figures that a program of 400 lines around the same crates has given on this path.
#[test]
fn one_flow_has_the_goodput_and_the_losses_of_its_stack() {
    for (word, mbit, lost) in [
        ("noq/cubic", 9.463, 256),
        ("noq/newreno", 9.465, 174),
        ("quinn/cubic", 9.465, 258),
        ("quinn/newreno", 9.467, 175),
        ("quinn/bbr", 9.400, 6),
    ] {
        let recording = run(&race(&[word], 30));
        let goodput = goodputs(&recording, 30.0)[0];
        let dropped = *numbers(&recording, "flows", "retransmits").first().expect("a flow");
        assert!((goodput / mbit - 1.0).abs() < 0.005, "{word}: {goodput} Mbit/s, not {mbit}");
        let tolerance = (lost / 50).max(6);
        assert!((dropped - lost).abs() <= tolerance, "{word}: {dropped} lost, not {lost}");
    }
}

/// ngtcp2's controls of windows stop at 2.89 times the best delivery rate times the least RTT (`ngtcp2_cc_cubic_cc_on_ack_recv`,
/// `ngtcp2_cc_reno_cc_on_ack_recv`).
#[test]
fn a_window_of_ngtcp2_fills_one_bdp_of_buffer_and_not_four() {
    for word in ["ngtcp2/cubic", "ngtcp2/reno"].into_iter().filter(|word| can_run(word)) {
        let of = |limit_bytes: u64| {
            let mut scenario = race(&[word], 30);
            scenario.links[0].qdisc = QdiscSpec::from(BfifoSpec { limit_bytes });
            let recording = run(&scenario);
            let windows = numbers(&recording, "samples", "cwnd_bytes");
            (outcome(&scenario), *windows.iter().max().expect("a sample"))
        };
        let ((goodput, lost), window) = of(200_000);
        assert!(goodput > 0.99 && lost == 0, "{word}: {goodput} of the path, {lost} lost");
        // With the rate of a start's short samples, a sixth above the path's.
        let target = 2.89 * 10e6 / 8.0 * 0.0412;
        assert!((target..target * 1.2).contains(&(window as f64)), "{word}: {window} bytes");
        let ((goodput, lost), _) = of(50_000);
        assert!(goodput > 0.95 && lost > 10, "{word}: {goodput} of the path, {lost} lost");
    }
}

#[test]
fn every_stack_keeps_to_the_mtu() {
    for word in quic::names().filter(|word| can_run(word)) {
        let mut scenario = race(&[word], 5);
        for node in &mut scenario.nodes {
            if let dragstrip_scenario::NodeSpec::Host(host) = node {
                host.mtu_bytes = 1_228;
            }
        }
        let (goodput, _) = outcome(&scenario);
        assert!(goodput > 0.75 && goodput < 0.99, "{word}: {goodput} of the path");
    }
}

#[test]
fn cubic_of_quic_loses_as_much_as_tcps_without_hystart() {
    let mut tcp = race(&["cubic"], 30);
    let Transport::Tcp { cc_options, .. } = &mut tcp.flows[0].transport else { unreachable!() };
    cc_options.insert("hystart".to_owned(), 0.0);
    let lost = |scenario: &Scenario| -> i64 {
        let recording = run(scenario);
        let dropped = numbers(&recording, "queues", "dropped").iter().max().expect("a queue");
        let lost = *numbers(&recording, "flows", "retransmits").first().expect("a flow");
        assert_eq!(lost, *dropped, "what is lost is what the queue dropped");
        lost
    };
    let (quic, tcp) = (lost(&race(&["noq/cubic"], 30)), lost(&tcp));
    // 258 and 252: 2.4 %. With HyStart TCP loses a tenth of it.
    assert!((quic as f64 / tcp as f64 - 1.0).abs() < 0.03, "{quic} and {tcp} lost");
}

#[test]
fn quic_and_tcp_share_a_queue() {
    let recording = run(&race(&["noq/cubic", "cubic"], 60));
    let goodputs = goodputs(&recording, 60.0);
    assert!((goodputs.iter().sum::<f64>() - 9.51).abs() < 0.05, "{goodputs:?}");
    assert!(goodputs[0] > goodputs[1] && goodputs[1] > 2.0, "{goodputs:?}");
}

#[test]
fn payloads_are_freed_on_arrival_and_drop_and_shared_by_copies() {
    let words = ["noq/newreno", "quinn/cubic", "s2n-quic/cubic", "ngtcp2/cubic"];
    let words: Vec<_> = words.into_iter().filter(|word| can_run(word)).collect();
    let mut scenario = race(&words, 5);
    let netem = "netem duplicate 2% loss 1% limit 1000";
    let QdiscSpec::Netem(netem) = QdiscSpec::parse(netem).expect("a netem") else { unreachable!() };
    scenario.links[0].netem = Some(Box::new(NetemSpec::clone(&netem)));
    let (recording, books) = audit(&scenario).expect("a valid scenario");
    assert!(books.copied > 50 && books.dropped > 50, "{books:?}");
    assert_eq!(books.sent + books.copied, books.delivered + books.dropped + books.waiting);
    assert_eq!(books.records, books.waiting);
    assert!(books.payloads <= books.records && books.payloads + 60 > books.records, "{books:?}");
    assert!(goodputs(&recording, 5.0).iter().all(|goodput| *goodput > 0.5));
}

#[test]
fn a_transfer_ends_when_its_last_byte_is_read() {
    let mut scenario = race(&["noq/cubic"], 10);
    scenario.flows[0].application = Application::Bulk { bytes: Some(1_000_000) };
    let recording = run(&scenario);
    assert_eq!(numbers(&recording, "flows", "bytes_received"), [1_000_000]);
    let stop = numbers(&recording, "flows", "stop_ns")[0];
    assert!((800_000_000..1_500_000_000).contains(&stop), "{stop}");
}

#[test]
fn a_connection_that_dies_ends_its_flow_in_the_stacks_words() {
    for (word, reason) in [
        ("noq/cubic", "timed out"),
        ("quinn/cubic", "timed out"),
        ("ngtcp2/cubic", "ERR_IDLE_CLOSE"),
        ("ngtcp2/bbr2", "ERR_IDLE_CLOSE"),
        ("s2n-quic/cubic", "idle timer expired"),
    ] {
        if !can_run(word) {
            continue;
        }
        let mut scenario = race(&[word], 60);
        scenario.changes.push(ChangeSpec {
            at_ns: 5_000_000_000,
            link: "r-d".to_owned(),
            rate_bps: None,
            delay_ns: None,
            loss: None,
            limit_bytes: None,
            limit_packets: None,
            up: Some(false),
        });
        let recording = run(&scenario);
        let stop = numbers(&recording, "flows", "stop_ns")[0];
        assert!((30_000_000_000..50_000_000_000).contains(&stop), "{word}: {stop}");
        let Data::Text { names, .. } = column(&recording, "samples", "state") else { panic!() };
        let says = |name: &&String| name.starts_with("lost: ") && name.contains(reason);
        assert!(names.iter().find(says).is_some(), "{word}: {names:?}");
    }
}

/// A race of one flow with this parameter.
fn with_option(word: &str, option: &str, value: f64, seconds: u64) -> Scenario {
    let mut scenario = race(&[word], seconds);
    let (Transport::Quic { cc_options, .. } | Transport::Tcp { cc_options, .. }) =
        &mut scenario.flows[0].transport
    else {
        unreachable!("no UDP here")
    };
    cc_options.insert(option.to_owned(), value);
    scenario
}

/// Goodput as a share of what its headers leave of 10 Mbit/s, and packets lost.
fn outcome(scenario: &Scenario) -> (f64, i64) {
    let is_quic = matches!(scenario.flows[0].transport, Transport::Quic { .. });
    let best = if is_quic { 9.489 } else { 9.564 };
    let recording = run(scenario);
    let seconds = scenario.duration_ns as f64 / 1e9;
    let lost = *numbers(&recording, "flows", "retransmits").first().expect("a flow");
    (goodputs(&recording, seconds)[0] / best, lost)
}

/// The same algorithm behind the other transport: goodput but for the headers, and as many losses where it fills the buffer.
#[test]
fn an_algorithm_does_in_quic_as_in_tcp() {
    for (name, option, lost_within) in [
        ("cubic", Some(("hystart", 0.0)), 0.05),
        ("reno", None, 0.05),
        ("bbr", None, 0.0),
        ("bbr3", None, 0.0),
    ] {
        let of = |word: &str| match option {
            Some((option, value)) => outcome(&with_option(word, option, value, 30)),
            None => outcome(&race(&[word], 30)),
        };
        let (quic, tcp) = (of(&format!("noq/dragstrip-{name}")), of(name));
        assert!((quic.0 / tcp.0 - 1.0).abs() < 0.01, "{name}: {quic:?} in QUIC, {tcp:?} in TCP");
        let apart = (quic.1 - tcp.1).abs() as f64;
        assert!(apart <= lost_within * tcp.1 as f64, "{name}: {quic:?} in QUIC, {tcp:?} in TCP");
    }
}

#[test]
fn a_program_controls_both_transports_and_its_fault_ends_the_run() {
    let with = |name: &str, text: &str| {
        let mut scenario = race(&[name], 10);
        scenario.programs.insert("mine".to_owned(), text.to_owned());
        scenario
    };
    let text = include_str!("../../../programs/my-reno.cc");
    let (quic, tcp) = (outcome(&with("noq/dragstrip-mine", text)), outcome(&with("mine", text)));
    assert!((quic.0 / tcp.0 - 1.0).abs() < 0.01, "{quic:?} in QUIC, {tcp:?} in TCP");
    let fault = with("noq/dragstrip-mine", "on ack { cwnd = 0 / 0 }\n");
    let error = dragstrip_sim::run(&fault, &mut |_| true).expect_err("a fault");
    assert!(error.field.starts_with("programs.mine:"), "{error:?}");
}

#[test]
fn parameters_of_a_connection_change_what_they_name() {
    let window = |scenario: &Scenario| {
        let recording = run(scenario);
        numbers(&recording, "samples", "cwnd_bytes")[0]
    };
    for word in ["noq/cubic", "noq/dragstrip-cubic", "quinn/newreno", "s2n-quic/cubic"] {
        let mut scenario = with_option(word, "initial_window", 40.0, 1);
        scenario.links[0].rate_bps = Some(1_000_000);
        assert!(window(&scenario) >= 40 * 1_472, "{word}");
    }
    let words = ["noq/cubic", "ngtcp2/cubic", "s2n-quic/cubic"];
    for word in words.into_iter().filter(|word| can_run(word)) {
        // Four streams of 10 kB, then eight, in 40 ms: 8 and 16 Mbit/s at most; the second is more than the path carries. A
        // receiver that grants half a window at a time halves them.
        let mut narrow = with_option(word, "stream_window", 10_000.0, 10);
        let four = outcome(&narrow).0 * 9.489;
        let Transport::Quic { cc_options, .. } = &mut narrow.flows[0].transport else {
            unreachable!()
        };
        cc_options.insert("streams".to_owned(), 8.0);
        let eight = outcome(&narrow).0 * 9.489;
        let apart = four < 8.0 && four > 4.0 && eight > four * 1.1;
        assert!(apart, "{word}: {four} and {eight} Mbit/s");
        if word.starts_with("s2n-quic/") {
            continue; // it acknowledges every tenth packet, without a setting
        }
        // One acknowledgement for eleven packets in place of two.
        let acks = |scenario: &Scenario| {
            let recording = run(scenario);
            numbers(&recording, "rtts", "rtt_ns").len()
        };
        let mut usual = race(&[word], 5);
        usual.record.rtts = true;
        let mut rare = with_option(word, "ack_threshold", 10.0, 5);
        rare.record.rtts = true;
        let (usual, rare) = (acks(&usual), acks(&rare));
        assert!(rare * 4 < usual, "{word}: {rare} and {usual} samples");
    }
}

#[test]
fn what_quic_does_not_have_is_refused() {
    let refusal = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = race(&["noq/cubic"], 1);
        change(&mut scenario);
        let problems = scenario.validate().expect_err("it is refused");
        (problems[0].field.clone(), problems[0].to_string())
    };
    let (field, text) = refusal(&|s| {
        s.flows[0].transport =
            Transport::Quic { cc: "noq/bbr3".into(), cc_options: Default::default() }
    });
    assert_eq!(field, "flows[0].transport.cc");
    assert!(text.contains("cannot be seeded"), "{text}");
    for (cc, option, expected_field, expected) in [
        ("noq/dragstrip-cubik", "", "cc", "did you mean \"cubic\"?"),
        ("noq/dragstrip-dctcp", "", "cc", "needs no ECN of its own"),
        ("quinn/dragstrip-cubic", "", "cc", "only noq"),
        ("ngtcp2/cubic", "initial_window", "cc_options.initial_window", "has no setting for it"),
        ("s2n-quic/cubic", "ack_threshold", "cc_options.ack_threshold", "has no setting for it"),
        ("ngtcp2/dragstrip-cubic", "", "cc", "only noq"),
        ("noq/cubic", "beta", "cc_options.beta", "one of ack_threshold"),
        ("noq/dragstrip-cubic", "betta", "cc_options.betta", "did you mean \"beta\"?"),
        ("noq/cubic", "streams", "cc_options.streams", "a whole number from 1 to 100"),
    ] {
        let (field, text) = refusal(&|s| {
            let options =
                [(option.to_owned(), 0.0)].into_iter().filter(|(name, _)| !name.is_empty());
            s.flows[0].transport = Transport::Quic { cc: cc.into(), cc_options: options.collect() };
        });
        assert_eq!(field, format!("flows[0].transport.{expected_field}"));
        assert!(text.contains(expected), "{text}");
    }
    let (field, text) = refusal(&|s| {
        s.flows[0].application =
            Application::RequestResponse { request_bytes: 1, response_bytes: 1, think_ns: 0 };
    });
    assert_eq!(field, "flows[0].application.kind");
    assert!(text.contains("bulk or on_off over QUIC"), "{text}");
    let host = |s: &mut Scenario, change: &dyn Fn(&mut dragstrip_scenario::HostSpec)| {
        for node in &mut s.nodes {
            if let dragstrip_scenario::NodeSpec::Host(host) = node {
                change(host);
            }
        }
    };
    let (field, _) = refusal(&|s| {
        host(s, &|host| {
            host.sysctl.insert("net.ipv4.tcp_ecn".into(), "1".into());
        });
    });
    assert!(field.ends_with(".sysctl.net.ipv4.tcp_ecn"), "{field}");
    let (field, text) = refusal(&|s| host(s, &|host| host.mtu_bytes = 1_227));
    assert_eq!(field, "flows[0].transport");
    assert!(text.contains("1228"), "{text}");
}

/// Share of the samples with this limit.
fn limited(recording: &Recording, limit: &str) -> f64 {
    let Data::Text { names, index } = column(recording, "samples", "limit") else {
        panic!("limit: no words")
    };
    let is_limit = |place: &&i32| names.get(**place as usize).is_some_and(|name| name == limit);
    index.iter().filter(is_limit).count() as f64 / index.len() as f64
}

#[test]
fn a_sender_that_waits_for_credit_is_limited_by_it() {
    let path = |options: &[(&str, f64)]| {
        let mut scenario = race(&["noq/cubic"], 10);
        let bottleneck = scenario.links.iter_mut().find(|link| link.rate_bps == Some(10_000_000));
        bottleneck.expect("a bottleneck").rate_bps = Some(100_000_000);
        let Transport::Quic { cc_options, .. } = &mut scenario.flows[0].transport else { panic!() };
        cc_options.extend(options.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        run(&scenario)
    };
    let blocked = path(&[("streams", 1.0), ("stream_window", 200_000.0)]);
    assert!(limited(&blocked, "rwnd") > 0.8, "{}", limited(&blocked, "rwnd"));
    let default = path(&[]);
    assert!(limited(&default, "rwnd") < 0.05, "{}", limited(&default, "rwnd"));
    let paced = run(&race(&["noq/dragstrip-bbr"], 10));
    assert!(limited(&paced, "pacing") > 0.5, "{}", limited(&paced, "pacing"));
}
