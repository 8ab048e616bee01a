//! One bad scenario per rule: the fixture with one thing wrong.

use crate::applications::Application;
use crate::media::MediumSpec;
use crate::types::{
    CpuSpec, GsoMode, HistorySpec, NodeSpec, Route, Scenario, SocketBuffers, StackProfile,
    Transport,
};
use crate::{DURATION_MAX_NS, HostSpec, Problem, RecordingSize, fixture};
use dragstrip_qdisc::{BfifoSpec, LossModel, NetemSpec, PfifoSpec, QdiscSpec};
use std::collections::BTreeMap;

fn problems(change: impl FnOnce(&mut Scenario)) -> Vec<Problem> {
    let mut scenario = fixture::scenario();
    change(&mut scenario);
    scenario.validate().expect_err("the change breaks the scenario")
}

/// The change makes exactly this field wrong; the answer is what was expected of it.
#[track_caller]
fn wrong(field: &str, change: impl FnOnce(&mut Scenario)) -> String {
    let mut problems = problems(change);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = problems.remove(0);
    assert_eq!(problem.field, field, "{problem}");
    problem.expected
}

fn a(scenario: &mut Scenario) -> &mut HostSpec {
    match &mut scenario.nodes[0] {
        NodeSpec::Host(host) => host,
        NodeSpec::Router { .. } => panic!("the first node is a host"),
    }
}

/// The bottleneck's discipline: link 1 is r1-r2.
fn qdisc(spec: QdiscSpec) -> impl FnOnce(&mut Scenario) {
    move |scenario| scenario.links[1].qdisc = spec
}

fn tc(text: &str) -> impl FnOnce(&mut Scenario) {
    qdisc(QdiscSpec::parse(text).expect(text))
}

fn netem(text: &str) -> NetemSpec {
    NetemSpec::parse_text(text).expect(text)
}

#[test]
fn the_fixture_is_valid() {
    assert_eq!(fixture::scenario().validate(), Ok(()));
}

#[test]
fn every_discipline_is_valid_as_tc_configures_it() {
    for text in dragstrip_qdisc::KINDS.iter().flat_map(|kind| kind.examples) {
        let mut scenario = fixture::scenario();
        tc(text)(&mut scenario);
        assert_eq!(scenario.validate(), Ok(()), "{text}");
    }
}

#[test]
fn the_duration_has_bounds() {
    wrong("flows[0].start_ns", |s| s.flows[0].start_ns = s.duration_ns);
    assert!(problems(|s| s.duration_ns = 0).iter().any(|p| p.field == "duration_ns"));
    let expected = wrong("duration_ns", |s| s.duration_ns = DURATION_MAX_NS + 1);
    assert!(expected.contains("17000000000000"), "{expected}");
}

#[test]
fn names_are_distinct_and_not_empty() {
    wrong("nodes[4].name", |s| s.nodes.push(NodeSpec::Router { name: "r1".to_owned() }));
    wrong("links[6].name", |s| s.links.push(fixture::link("r1-r2", "r1", "r2")));
    wrong("flows[1].label", |s| s.flows.push(fixture::flow("reno", "reno")));
    wrong("flows[0].label", |s| s.flows[0].label = " ".to_owned());
    // Bidirectional controls, characters without width, and a name that no file can have.
    for name in ["a\u{202e}b", "a\u{200b}b", "\u{feff}a", "a\u{2028}b", "a\u{e0041}b"] {
        wrong("flows[0].label", |s| s.flows[0].label = name.to_owned());
    }
    wrong("flows[0].label", |s| s.flows[0].label = "x".repeat(101));
    let mut long = fixture::scenario();
    long.flows[0].label = "ü".repeat(100);
    assert_eq!(long.validate(), Ok(()));
    wrong("probes[1].label", |s| s.probes.push(s.probes[0].clone()));
}

#[test]
fn an_empty_flow_list_is_refused() {
    assert_eq!(wrong("flows", |s| s.flows.clear()), "at least one flow");
}

#[test]
fn a_freebsd_host_has_its_own_algorithms_and_settings_and_no_bursts() {
    let freebsd = |change: fn(&mut Scenario)| {
        move |s: &mut Scenario| {
            a(s).profile = StackProfile::Freebsd9;
            s.flows[0] = fixture::flow("newreno", "newreno-freebsd");
            change(s);
        }
    };
    let mut good = fixture::scenario();
    freebsd(|_| {})(&mut good);
    assert_eq!(good.validate(), Ok(()));
    let expected =
        wrong("flows[0].transport.cc", freebsd(|s| s.flows[0] = fixture::flow("reno", "reno")));
    assert!(expected.starts_with("one of newreno-freebsd, "), "{expected}");
    wrong("nodes[0].gso", freebsd(|s| a(s).gso = GsoMode::Auto));
    wrong(
        "nodes[0].sysctl[\"net.ipv4.tcp_sack\"]",
        freebsd(|s| drop(a(s).sysctl.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned()))),
    );
}

#[test]
fn a_host_of_2_6_has_the_algorithms_and_settings_of_its_time() {
    let on = |profile, cc: &'static str| {
        move |s: &mut Scenario| {
            a(s).profile = profile;
            s.flows[0] = fixture::flow("flow", cc);
        }
    };
    wrong("flows[0].transport.cc", on(StackProfile::Linux2627, "vegas"));
    wrong("flows[0].transport.cc", on(StackProfile::Linux2638, "bbr"));
    let mut good = fixture::scenario();
    on(StackProfile::Linux2638, "vegas")(&mut good);
    assert_eq!(good.validate(), Ok(()));
    wrong("nodes[0].sysctl[\"net.ipv4.tcp_recovery\"]", |s| {
        on(StackProfile::Linux2638, "reno")(s);
        a(s).sysctl.insert("net.ipv4.tcp_recovery".to_owned(), "1".to_owned());
    });
}

#[test]
fn a_host_of_2_2_has_little_to_set() {
    let old = |name: &'static str, value: &'static str| {
        move |s: &mut Scenario| {
            a(s).profile = StackProfile::Linux22;
            s.flows[0] = fixture::flow("flow", "vegas");
            a(s).sysctl.insert(name.to_owned(), value.to_owned());
        }
    };
    let mut good = fixture::scenario();
    old("net.ipv4.tcp_sack", "0")(&mut good);
    assert_eq!(good.validate(), Ok(()));
    for name in ["net.ipv4.tcp_recovery", "net.ipv4.tcp_rmem", "net.ipv4.tcp_reordering"] {
        let expected = wrong(&format!("nodes[0].sysctl[{name:?}]"), old(name, "1"));
        assert_eq!(expected, "a setting that Linux 2.2 has");
    }
    wrong("nodes[0].gso", |s| {
        old("net.ipv4.tcp_sack", "1")(s);
        a(s).gso = GsoMode::Auto;
    });
    wrong("flows[0].transport.cc", |s| {
        old("net.ipv4.tcp_sack", "1")(s);
        s.flows[0] = fixture::flow("flow", "cubic");
    });
}

#[test]
fn bursts_stay_whole_where_nothing_cuts_them() {
    let whole = |s: &mut Scenario| a(s).gso = GsoMode::Whole;
    let mut good = fixture::scenario();
    whole(&mut good);
    assert_eq!(good.validate(), Ok(()));
    for (queue, cuts) in [
        ("tbf rate 1mbit burst 100kb limit 100kb", Some("the tbf of r1-r2")),
        ("htb rate 1mbit leaf cake", Some("the cake of r1-r2")),
        ("htb rate 1mbit leaf pfifo", None),
    ] {
        let on = |s: &mut Scenario| {
            tc(queue)(s);
            whole(s);
        };
        if let Some(cuts) = cuts {
            assert!(wrong("nodes[0].gso", on).contains(cuts));
        } else {
            on(&mut good);
            assert_eq!(good.validate(), Ok(()));
        }
    }
    wrong("nodes[0].gso", |s| {
        whole(s);
        a(s).profile = StackProfile::Linux2627;
        s.flows[0] = fixture::flow("flow", "reno");
    });
}

#[test]
fn a_packet_takes_a_processor_a_second_at_most() {
    let cpu = |shared: Option<&str>, receive_ns, ack_ns, send_ns| {
        let shared = shared.map(str::to_owned);
        move |s: &mut Scenario| a(s).cpu = Some(CpuSpec { shared, receive_ns, ack_ns, send_ns })
    };
    let second = 1_000_000_000;
    let mut good = fixture::scenario();
    cpu(Some("machine"), second, second, second)(&mut good);
    assert_eq!(good.validate(), Ok(()));
    wrong("nodes[0].cpu.receive_ns", cpu(None, second + 1, 0, 0));
    wrong("nodes[0].cpu.ack_ns", cpu(None, 0, second + 1, 0));
    wrong("nodes[0].cpu.send_ns", cpu(None, 0, 0, second + 1));
    wrong("nodes[0].cpu.shared", cpu(Some(" "), 0, 0, 0));
}

#[test]
fn a_history_belongs_to_hosts_that_have_one() {
    let with_history = |history: HistorySpec| {
        move |s: &mut Scenario| {
            a(s).profile = StackProfile::Linux2627;
            s.flows[0] = fixture::flow("flow", "reno");
            a(s).history = Some(history);
        }
    };
    let plain = HistorySpec {
        ssthresh_packets: 2,
        reordering_packets: 127,
        rtt_ns: 500_000_000,
        rtt_deviation_ns: 1,
    };
    let mut good = fixture::scenario();
    with_history(plain)(&mut good);
    assert_eq!(good.validate(), Ok(()));
    wrong("nodes[0].history", |s| a(s).history = Some(plain));
    let at =
        |field: &str, history| wrong(&format!("nodes[0].history.{field}"), with_history(history));
    at("ssthresh_packets", HistorySpec { ssthresh_packets: 1, ..plain });
    at("reordering_packets", HistorySpec { reordering_packets: 128, ..plain });
    at("rtt_deviation_ns", HistorySpec { rtt_ns: 0, ..plain });
    at("rtt_ns", HistorySpec { rtt_ns: 120_000_000_001, ..plain });
}

#[test]
fn an_unknown_algorithm_gets_the_nearest_one() {
    let cc = |name: &str| Transport::Tcp {
        cc: name.to_owned(),
        cc_options: BTreeMap::new(),
        receiver_cc: None,
        socket: SocketBuffers::default(),
    };
    let expected = wrong("flows[0].transport.cc", |s| s.flows[0].transport = cc("rono"));
    assert!(expected.ends_with("did you mean \"reno\"?"), "{expected}");
    let options = BTreeMap::from([("beta".to_owned(), 3.0)]);
    wrong("flows[0].transport.cc_options.beta", |s| {
        s.flows[0].transport = Transport::Tcp {
            cc: "reno".to_owned(),
            cc_options: options,
            receiver_cc: None,
            socket: SocketBuffers::default(),
        };
    });
}

#[test]
fn settings_of_a_host_are_checked() {
    wrong("nodes[0].mtu_bytes", |s| a(s).mtu_bytes = 65_536);
    wrong("nodes[0].mtu_bytes", |s| {
        s.probes.clear();
        a(s).mtu_bytes = 67;
    });
    wrong("nodes[0].tick_hz", |s| a(s).tick_hz = Some(60));
    let set = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    wrong("nodes[0].sysctl[\"net.ipv4.tcp_foo\"]", |s| a(s).sysctl = set("net.ipv4.tcp_foo", "1"));
    wrong("nodes[0].sysctl[\"net.ipv4.tcp_ecn\"]", |s| a(s).sysctl = set("net.ipv4.tcp_ecn", "on"));
}

#[test]
fn links_join_two_nodes_that_exist() {
    let reported = problems(|s| s.links[1].to = "r9".to_owned());
    assert!(reported.iter().any(|p| p.field == "links[1].to"), "{reported:#?}");
    let reported = problems(|s| s.links[1].to = "r1".to_owned());
    assert!(reported.iter().any(|p| p.field == "links[1].to"), "{reported:#?}");
}

#[test]
fn rates_are_neither_zero_nor_absurd() {
    wrong("links[1].rate_bps", |s| s.links[1].rate_bps = Some(0));
    wrong("links[1].rate_bps", |s| s.links[1].rate_bps = Some(10_000_000_000_001));
    wrong("links[1].netem.rate_bps", |s| {
        s.links[1].netem = Some(NetemSpec { rate_bps: Some(0), ..NetemSpec::default() }.into());
    });
    wrong("links[1].delay_ns", |s| s.links[1].delay_ns = u64::MAX);
}

#[test]
fn disciplines_have_sane_settings() {
    wrong("links[1].qdisc.limit_packets", qdisc(QdiscSpec::from(PfifoSpec { limit_packets: 0 })));
    wrong("links[1].qdisc.interval_ns", tc("codel interval 0s"));
    wrong("links[1].qdisc.divisor", tc("sfq divisor 1000"));
    wrong("links[1].qdisc.depth_packets", tc("sfq depth 128"));
    wrong("links[1].qdisc.flows", tc("fq_codel flows 0"));
    wrong("links[1].qdisc.limit_packets", tc("pie limit 0"));
    wrong("links[1].qdisc.limit_packets", tc("choke limit 200000 bandwidth 10mbit"));
    wrong(
        "links[1].qdisc.max_packets",
        tc("choke limit 100 bandwidth 10mbit min 40 max 30 burst 50"),
    );
    wrong(
        "links[1].qdisc.max_packets",
        tc("choke limit 100 bandwidth 10mbit min 40 max 130 burst 50"),
    );
    wrong("links[1].qdisc.burst_packets", tc("choke limit 1000 bandwidth 10mbit burst 3"));
    wrong("links[1].qdisc.limit_packets", tc("fq limit 0"));
    wrong("links[1].qdisc.limit_packets", tc("dualpi2 limit 0"));
    wrong("links[1].qdisc.target_ns", tc("dualpi2 target 0ms"));
    wrong("links[1].qdisc.tupdate_ns", tc("dualpi2 tupdate 100ns"));
    wrong("links[1].qdisc.alpha_hz", tc("dualpi2 alpha 0"));
    wrong("links[1].qdisc.beta_hz", tc("dualpi2 beta 20000"));
    wrong("links[1].qdisc.coupling_factor", tc("dualpi2 coupling_factor 0"));
    wrong("links[1].qdisc.classic_protection_percent", tc("dualpi2 classic_protection 101"));
    wrong("links[1].qdisc.bands", tc("prio bands 17"));
    wrong("links[1].qdisc.priomap[3]", tc("prio bands 3 priomap 0 0 0 3"));
    wrong("links[1].qdisc.quanta_bytes", tc("ets bands 17 priomap 0"));
    wrong("links[1].qdisc.quanta_bytes[1]", tc("ets quanta 1514 0"));
    wrong("links[1].qdisc.priomap[0]", tc("ets bands 3 priomap 3"));
    wrong("links[1].qdisc.flow_limit_packets", tc("fq flow_limit 0"));
    wrong("links[1].qdisc.quantum_bytes", tc("fq quantum 2000000"));
    wrong("links[1].qdisc.initial_quantum_bytes", tc("fq initial_quantum 3000000000"));
    wrong("links[1].qdisc.orphan_mask", tc("fq orphan_mask 65536"));
    wrong("links[1].qdisc.flows", tc("fq_pie flows 65537"));
    wrong("links[1].qdisc.quantum_bytes", tc("fq_pie quantum 255"));
    wrong("links[1].qdisc.ecn_prob_percent", tc("fq_pie ecn_prob 101"));
    wrong("links[1].qdisc.target_ns", tc("fq_pie target 0ms"));
    wrong("links[1].qdisc.beta", tc("fq_pie beta 33"));
    wrong("links[1].qdisc.bandwidth_bps", tc("cake bandwidth 511bit"));
    wrong("links[1].qdisc.rehash_ns", tc("sfb rehash 17000001"));
    wrong("links[1].qdisc.warmup_ns", tc("sfb db 4294967295"));
    wrong("links[1].qdisc.rtt_ns", tc("cake rtt 999ns"));
    wrong("links[1].qdisc.rtt_ns", tc("cake rtt 4295s"));
    wrong("links[1].qdisc.memory_limit_bytes", tc("cake memlimit 2303b"));
    wrong("links[1].qdisc.overhead_bytes", tc("cake overhead -21"));
    wrong("links[1].qdisc.overhead_bytes", tc("cake overhead 257"));
    wrong("links[1].qdisc.mpu_bytes", tc("cake mpu 257"));
    wrong("links[1].qdisc.avpkt_bytes", tc("red limit 400000 avpkt 0"));
    wrong("links[1].qdisc.limit_bytes", tc("red limit 1000 min 6000 max 9000 avpkt 1514 burst 5"));
    wrong("links[1].qdisc.max_bytes", tc("red limit 400000 avpkt 1000 min 3000 max 2000 burst 9"));
    wrong("links[1].qdisc.max_bytes", tc("red limit 4000000000 avpkt 1000 burst 1000000"));
    wrong("links[1].qdisc.burst_packets", tc("red limit 400000 avpkt 1000 burst 3"));
    wrong("links[1].qdisc.probability", tc("red limit 400000 avpkt 1000 probability 0"));
    wrong("links[1].qdisc.bandwidth_bps", tc("red limit 400000 avpkt 1000 bandwidth 8bit"));
    wrong("links[1].qdisc.nodrop", tc("red limit 400000 avpkt 1000 nodrop"));
    wrong("links[1].qdisc.nodrop", tc("red limit 400000 avpkt 1000 ecn adaptive nodrop"));
    wrong("links[1].qdisc.target_ns", tc("pie target 0ms"));
    wrong("links[1].qdisc.tupdate_ns", tc("pie tupdate 0us"));
    wrong("links[1].qdisc.alpha", tc("pie alpha 0"));
    wrong("links[1].qdisc.beta", tc("pie beta 33"));
    wrong("links[1].qdisc.ceil_bps", tc("htb rate 2mbit ceil 1mbit"));
    wrong("links[1].qdisc.leaf.limit_packets", tc("htb rate 2mbit leaf pfifo limit 0"));
    wrong(
        "links[1].qdisc.peakrate_bps",
        tc("tbf rate 2mbit burst 2kb limit 9kb peakrate 1mbit mtu 2kb"),
    );
    wrong("links[1].qdisc.limit_packets", tc("netem limit 0"));
}

#[test]
fn shares_lie_between_zero_and_one() {
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        wrong("links[1].netem.loss.probability", |s| {
            let loss = LossModel::Random { probability: share, correlation: 0.0 };
            s.links[1].netem = Some(NetemSpec { loss, ..NetemSpec::default() }.into());
        });
        wrong("links[1].netem.reorder", |s| {
            s.links[1].netem = Some(NetemSpec { reorder: share, ..netem("delay 1ms") }.into());
        });
    }
}

#[test]
fn a_buffer_holds_a_full_packet_of_the_path() {
    let expected = wrong("links[1].qdisc.limit_bytes", tc("bfifo limit 1513"));
    assert_eq!(expected, "at least 1514: a packet of flow \"reno\"");
    wrong("links[1].qdisc.leaf.limit_bytes", tc("htb rate 1mbit leaf bfifo limit 1000"));
    wrong("links[1].qdisc.burst_bytes", tc("tbf rate 1mbit burst 1500 limit 9kb"));
    // Only ACKs and pings pass on the return path, and with a smaller MTU only smaller packets.
    let mut scenario = fixture::scenario();
    scenario.links[4].qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: 98 });
    a(&mut scenario).mtu_bytes = 576;
    scenario.links[1].qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: 590 });
    assert_eq!(scenario.validate(), Ok(()));
    wrong("links[4].qdisc.limit_bytes", |s| {
        s.links[4].qdisc = QdiscSpec::from(BfifoSpec { limit_bytes: 97 })
    });
}

#[test]
fn packets_arrive_and_so_do_their_acks() {
    let reported = problems(|s| drop(s.links.remove(1)));
    let at = |field: &str| reported.iter().find(|p| p.field == field).map(|p| p.expected.as_str());
    assert_eq!(
        at("flows[0].receiver"),
        Some("a path to it for packets: no link leads on from \"a\"")
    );
    let reported = problems(|s| drop(s.links.remove(5)));
    assert!(reported.iter().any(|p| p.expected.starts_with("a return path")), "{reported:#?}");
}

#[test]
fn routes_are_checked_and_loops_found() {
    let route = |node: &str, destination: &str, link: &str| Route {
        node: node.to_owned(),
        destination: destination.to_owned(),
        link: link.to_owned(),
    };
    wrong("routes[0].node", |s| s.routes.push(route("r9", "b", "r1-r2")));
    wrong("routes[0].destination", |s| s.routes.push(route("r1", "r2", "r1-r2")));
    wrong("routes[0].link", |s| s.routes.push(route("r1", "b", "r9-r2")));
    let reported = problems(|s| s.routes.push(route("r2", "b", "r2-r1")));
    assert!(reported[0].expected.contains("lead back to \"r1\""), "{reported:#?}");
}

#[test]
fn flows_and_probes_name_hosts() {
    wrong("flows[0].sender", |s| s.flows[0].sender = "nobody".to_owned());
    wrong("flows[0].receiver", |s| s.flows[0].receiver = "r1".to_owned());
    wrong("flows[0].receiver", |s| s.flows[0].receiver = "a".to_owned());
    wrong("probes[0].from", |s| s.probes[0].from = "r1".to_owned());
    wrong("probes[0].target", |s| s.probes[0].target = "nobody".to_owned());
    wrong("probes[0].target", |s| s.probes[0].target = "b".to_owned());
    wrong("probes[0].interval_ns", |s| s.probes[0].interval_ns = 0);
    wrong("probes[0].size_bytes", |s| s.probes[0].size_bytes = 1481);
    let mut scenario = fixture::scenario();
    scenario.probes[0].target = "r1".to_owned();
    assert_eq!(scenario.validate(), Ok(()), "routers answer pings");
}

#[test]
fn flows_end_after_they_start() {
    wrong("flows[0].stop_ns", |s| {
        s.flows[0].start_ns = 5;
        s.flows[0].stop_ns = Some(5);
    });
}

#[test]
fn applications_fit_their_transport() {
    let datagrams = |bytes| Application::ConstantRate { rate_bps: 1000, datagram_bytes: bytes };
    wrong("flows[0].application.kind", |s| s.flows[0].application = datagrams(100));
    wrong("flows[0].application.kind", |s| s.flows[0].transport = Transport::Udp);
    wrong("flows[0].application.datagram_bytes", |s| {
        s.flows[0].transport = Transport::Udp;
        s.flows[0].application = datagrams(1473);
    });
    wrong("flows[0].application.on_ns", |s| {
        s.flows[0].application = Application::OnOff { on_ns: 0, off_ns: 1 };
    });
    wrong("flows[0].application.bytes", |s| {
        s.flows[0].application = Application::Bulk { bytes: Some(0) };
    });
}

/// Such a run would never come past its first instant.
#[test]
fn a_tcp_flow_takes_time() {
    let instant = |s: &mut Scenario| {
        for link in &mut s.links {
            (link.rate_bps, link.delay_ns) = (None, 0);
        }
    };
    let expected = wrong("flows[0].receiver", instant);
    assert_eq!(expected, "a path with a rate or a delay on one of its links");
    let mut scenario = fixture::scenario();
    instant(&mut scenario);
    scenario.links[4].netem = Some(netem("delay 1ms").into());
    assert_eq!(scenario.validate(), Ok(()));
    scenario.links[4].netem = None;
    scenario.links[1].qdisc = QdiscSpec::parse("tbf rate 1mbit burst 2kb limit 9kb").unwrap();
    assert_eq!(scenario.validate(), Ok(()));
}

#[test]
fn the_recording_interval_is_not_zero() {
    wrong("record.interval_ns", |s| s.record.interval_ns = 0);
}

#[test]
fn all_problems_are_reported_at_once() {
    let reported = problems(|s| {
        s.links[1].rate_bps = Some(0);
        s.flows[0].transport = Transport::Tcp {
            cc: "x".to_owned(),
            cc_options: BTreeMap::new(),
            receiver_cc: None,
            socket: SocketBuffers::default(),
        };
        s.probes[0].interval_ns = 0;
    });
    let fields: Vec<&str> = reported.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["links[1].rate_bps", "flows[0].transport.cc", "probes[0].interval_ns"]);
}

#[test]
fn a_recording_is_estimated_from_its_rows() {
    let mut scenario = fixture::scenario();
    scenario.record.rtts = false;
    scenario.probes.clear();
    // 10 s at 100 ms: 101 rows of 14 + 4 columns for the flow, of 7 for each of six links.
    assert_eq!(scenario.recording_bytes(), 101 * 8 * (14 + 4 + 6 * 7));
    scenario.record.rtts = true;
    // 10 Mbit/s for 10 s are 8256 full frames, every second one acknowledged.
    assert_eq!(scenario.recording_bytes(), 101 * 8 * (14 + 4 + 6 * 7) + 4128 * 3 * 8);
    let rows = |scenario: &Scenario| {
        let RecordingSize { sample_rows, rtt_rows, .. } = scenario.recording_size();
        (sample_rows, rtt_rows)
    };
    assert_eq!(rows(&scenario), (101, 4128));
    scenario.record.every_ack = true;
    scenario.record.rtts = false;
    assert_eq!(rows(&scenario), (4128, 0));
}

#[test]
fn packets_are_those_that_the_slowest_link_lets_pass_while_a_flow_lives() {
    let packets = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = fixture::scenario();
        change(&mut scenario);
        scenario.packets()
    };
    let whole = packets(&|_| {});
    assert_eq!(whole, 8256);
    assert_eq!(packets(&|s| s.flows[0].start_ns = 5_000_000_000), whole / 2);
    assert_eq!(packets(&|s| s.flows[0].stop_ns = Some(1_000_000_000)), whole / 10);
    // A tenth of the rate for a half of the time, and none for a tenth.
    let slower = |s: &mut Scenario| {
        let link = s.links[1].name.clone();
        let text = format!(
            r#"[{{"link": "{link}", "at_ns": 5000000000, "rate_bps": 1000000}},
                {{"link": "{link}", "at_ns": 9000000000, "up": false}}]"#
        );
        s.changes = serde_json::from_str(&text).unwrap();
    };
    assert_eq!(packets(&slower), (10_000_000 * 5 + 1_000_000 * 4) / (1514 * 8));
    let small = |s: &mut Scenario| {
        s.nodes.iter_mut().for_each(|node| {
            if let NodeSpec::Host(host) = node {
                host.mtu_bytes = 300;
            }
        });
    };
    assert_eq!(packets(&small), 10_000_000 * 10 / (314 * 8));
    // Of who asks, the answers are the data.
    let asks = |s: &mut Scenario| {
        let flow = &mut s.flows[0];
        (flow.sender, flow.receiver) = (flow.receiver.clone(), flow.sender.clone());
        flow.application =
            Application::RequestResponse { request_bytes: 100, response_bytes: 1000, think_ns: 0 };
    };
    assert_eq!(packets(&asks), whole);
}

#[test]
fn captures_at_both_ends_take_memory_and_few_hosts() {
    let mut scenario = fixture::scenario();
    let without = scenario.recording_bytes();
    scenario.record.captures = true;
    assert_eq!(scenario.validate(), Ok(()));
    // 4128 ACKs and the 8256 frames that they answer; 11 seconds; a capture at either end.
    let with = 4128 * (4 + 3 * 3) * 8 + 11 * 3 * 8 + (2 << 20);
    assert_eq!(scenario.recording_bytes() - without, with);
    for number in 0..200 {
        let name = format!("h{number}");
        scenario.nodes.push(fixture::host(&name));
        for (from, to) in [(name.as_str(), "r1"), ("r1", name.as_str())] {
            scenario.links.push(fixture::link(&format!("{from}-{to}"), from, to));
        }
        let mut flow = fixture::flow(&name, "reno");
        flow.sender = name;
        scenario.flows.push(flow);
    }
    let problems = scenario.validate().unwrap_err();
    assert_eq!(problems[0].field, "record.captures");
    scenario.record.captures = false;
    assert_eq!(scenario.validate(), Ok(()));
}

#[test]
fn flows_that_share_a_bottleneck_share_its_packets() {
    let mut scenario = fixture::scenario();
    scenario.record.every_ack = true;
    let first_bytes = scenario.recording_bytes();
    scenario.flows.push(fixture::flow("second", "reno"));
    assert_eq!(
        scenario.recording_bytes() - first_bytes,
        101 * 8 * 4,
        "only the table of the receiver grows"
    );
}

#[test]
fn a_recording_larger_than_the_memory_is_refused() {
    let mut scenario = fixture::scenario();
    assert_eq!(scenario.validate_memory(1 << 30), Ok(()));
    scenario.record.interval_ns = 1_000;
    assert_eq!(scenario.validate_memory(1 << 30).unwrap_err().field, "record");
    scenario.record.interval_ns = 100_000_000;
    scenario.duration_ns = DURATION_MAX_NS;
    assert_eq!(scenario.validate_memory(1 << 20).unwrap_err().field, "duration_ns");
}

/// Ten thousand senders, each on a separate link: routing must not look at all of them for each.
#[test]
fn ten_thousand_flows_are_valid_too() {
    let mut scenario = fixture::scenario();
    for index in 0..10_000 {
        let host = format!("s{index}");
        scenario.nodes.push(fixture::host(&host));
        scenario.links.push(fixture::link(&format!("{host}-r1"), &host, "r1"));
        scenario.links.push(fixture::link(&format!("r1-{host}"), "r1", &host));
        let mut flow = fixture::flow(&host, "reno");
        flow.sender = host;
        scenario.flows.push(flow);
    }
    assert_eq!(scenario.validate(), Ok(()));
    assert!(scenario.recording_bytes() > 0);
}

/// The bottleneck, both ways, over this medium.
fn over(medium: MediumSpec) -> impl FnOnce(&mut Scenario) {
    move |scenario| {
        scenario.media.insert("air".to_owned(), medium);
        for link in [1, 4] {
            scenario.links[link].medium = Some("air".to_owned());
            scenario.links[link].rate_bps = None;
        }
    }
}

fn medium(json: &str) -> MediumSpec {
    serde_json::from_str(json).expect(json)
}

#[test]
fn every_medium_is_valid_with_its_defaults() {
    for json in [
        r#"{"kind": "adsl", "rate_bps": 256000}"#,
        r#"{"kind": "wifi_g", "rate_bps": 54000000}"#,
        r#"{"kind": "wifi_n", "mcs": 15}"#,
        r#"{"kind": "homeplug_av", "phy_bps": 107000000}"#,
        r#"{"kind": "modem", "rate_bps": 28800}"#,
        r#"{"kind": "ethernet_hub"}"#,
        r#"{"kind": "trace", "opportunities_ms": [0, 0, 7]}"#,
    ] {
        let mut scenario = fixture::scenario();
        over(medium(json))(&mut scenario);
        assert_eq!(scenario.validate(), Ok(()), "{json}");
    }
}

#[test]
fn media_reject_what_they_cannot_do() {
    for (field, json) in [
        ("media.air.rate_bps", r#"{"kind": "adsl", "rate_bps": 13000}"#),
        ("media.air.rate_bps", r#"{"kind": "wifi_g", "rate_bps": 11000000}"#),
        (
            "media.air.frame_error",
            r#"{"kind": "wifi_g", "rate_bps": 54000000, "frame_error": 1.0}"#,
        ),
        (
            "media.air.ring_packets",
            r#"{"kind": "wifi_g", "rate_bps": 54000000, "ring_packets": 0}"#,
        ),
        ("media.air.mcs", r#"{"kind": "wifi_n", "mcs": 16}"#),
        ("media.air.width_mhz", r#"{"kind": "wifi_n", "mcs": 15, "width_mhz": 30}"#),
        (
            "media.air.aggregate_packets",
            r#"{"kind": "wifi_n", "mcs": 15, "aggregate_packets": 65}"#,
        ),
        ("media.air.phy_bps", r#"{"kind": "homeplug_av", "phy_bps": 500000000}"#),
        (
            "media.air.efficiency",
            r#"{"kind": "homeplug_av", "phy_bps": 107000000, "efficiency": 0.0}"#,
        ),
        (
            "media.air.beacon_period_ns",
            r#"{"kind": "homeplug_av", "phy_bps": 107000000, "beacon_period_ns": 4000000}"#,
        ),
        ("media.air.rate_bps", r#"{"kind": "modem", "rate_bps": 28000}"#),
        ("media.air.rate_bps", r#"{"kind": "modem", "rate_bps": 56000}"#),
        ("media.air.rate_bps", r#"{"kind": "modem", "rate_bps": 0}"#),
        ("media.air.block_bytes", r#"{"kind": "modem", "rate_bps": 28800, "block_bytes": 0}"#),
        ("media.air.dte_bps", r#"{"kind": "modem", "rate_bps": 28800, "dte_bps": 300}"#),
        ("media.air.buffer_bytes", r#"{"kind": "modem", "rate_bps": 28800, "buffer_bytes": 0}"#),
        (
            "media.air.compression_ratio",
            r#"{"kind": "modem", "rate_bps": 28800, "protocol": "v42bis", "compression_ratio": 0.5}"#,
        ),
        (
            "media.air.compression_ratio",
            r#"{"kind": "modem", "rate_bps": 28800, "protocol": "mnp4", "compression_ratio": 3}"#,
        ),
        ("media.air.background_load", r#"{"kind": "ethernet_hub", "background_load": -1}"#),
        ("media.air.background_stations", r#"{"kind": "ethernet_hub", "background_stations": 5}"#),
        ("media.air.background_stations", r#"{"kind": "ethernet_hub", "background_load": 0.5}"#),
        ("media.air.full_duplex", r#"{"kind": "ethernet_hub", "full_duplex": "a"}"#),
        ("media.air.ring_packets", r#"{"kind": "ethernet_hub", "ring_packets": 0}"#),
        ("media.air.opportunities_ms", r#"{"kind": "trace", "opportunities_ms": []}"#),
        ("media.air.opportunities_ms[2]", r#"{"kind": "trace", "opportunities_ms": [3, 5, 4]}"#),
        ("media.air.opportunities_ms[1]", r#"{"kind": "trace", "opportunities_ms": [0, 0]}"#),
        (
            "media.air.opportunities_ms",
            r#"{"kind": "trace", "opportunities_ms": [18446744073709551615]}"#,
        ),
    ] {
        wrong(field, over(medium(json)));
    }
}

#[test]
fn links_and_media_belong_together() {
    let adsl = || medium(r#"{"kind": "adsl", "rate_bps": 256000}"#);
    wrong("media.air", |s| {
        s.media.insert("air".to_owned(), adsl());
    });
    wrong("links[0].medium", |s| {
        over(adsl())(s);
        s.links[0].rate_bps = None;
        s.links[0].medium = Some("ear".to_owned());
    });
    wrong("links[1].rate_bps", |s| {
        over(adsl())(s);
        s.links[1].rate_bps = Some(1);
    });
}

/// The bottleneck is a tunnel, carried by a flow between two hosts with a separate link.
fn tunnelled(scenario: &mut Scenario) {
    over(medium(r#"{"kind": "tunnel", "flow": "outer", "near": "r1"}"#))(scenario);
    scenario.nodes.extend([fixture::host("v"), fixture::host("w")]);
    scenario.links.extend([fixture::link("v-w", "v", "w"), fixture::link("w-v", "w", "v")]);
    let mut outer = fixture::flow("outer", "reno");
    outer.sender = "v".to_owned();
    outer.receiver = "w".to_owned();
    outer.application = Application::Tunnel { header_bytes: 2 };
    scenario.flows.push(outer);
}

#[test]
fn a_tunnel_has_a_dedicated_flow_and_two_links() {
    let mut scenario = fixture::scenario();
    tunnelled(&mut scenario);
    assert_eq!(scenario.validate(), Ok(()));
    wrong("media.air.flow", |s| {
        tunnelled(s);
        s.flows[1].label = "other".to_owned();
        s.flows[1].application = Application::Bulk { bytes: None };
    });
    wrong("media.air.flow", |s| {
        tunnelled(s);
        s.flows[1].application = Application::Bulk { bytes: None };
    });
    wrong("flows[0].application", |s| {
        s.flows[0].application = Application::Tunnel { header_bytes: 2 };
    });
    wrong("flows[1].application.header_bytes", |s| {
        tunnelled(s);
        s.flows[1].application = Application::Tunnel { header_bytes: 2_000 };
    });
    wrong("media.air.near", |s| {
        tunnelled(s);
        s.media.insert(
            "air".to_owned(),
            medium(r#"{"kind": "tunnel", "flow": "outer", "near": "a"}"#),
        );
    });
    wrong("media.air", |s| {
        tunnelled(s);
        s.links[0].medium = Some("air".to_owned());
        s.links[0].rate_bps = None;
    });
    wrong("media.ear.flow", |s| {
        tunnelled(s);
        s.media.insert(
            "ear".to_owned(),
            medium(r#"{"kind": "tunnel", "flow": "outer", "near": "a"}"#),
        );
        s.links[0].medium = Some("ear".to_owned());
        s.links[0].rate_bps = None;
    });
}

#[test]
fn a_tunnel_through_itself_is_refused() {
    // The carrier's own path leads over the bottleneck.
    let message = wrong("media.air.flow", |s| {
        tunnelled(s);
        s.flows[1].sender = "a".to_owned();
        s.flows[1].receiver = "b".to_owned();
    });
    assert!(message.contains("itself (link r1-r2)"), "{message}");
    // Through another tunnel, each inside the other.
    let reported = problems(|s| {
        tunnelled(s);
        let mut second = fixture::flow("second", "reno");
        second.application = Application::Tunnel { header_bytes: 2 };
        s.flows.push(second);
        let spec = medium(r#"{"kind": "tunnel", "flow": "second", "near": "v"}"#);
        s.media.insert("ear".to_owned(), spec);
        for link in &mut s.links[6..] {
            link.medium = Some("ear".to_owned());
            link.rate_bps = None;
        }
    });
    let fields: Vec<&str> = reported.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["media.air.flow", "media.ear.flow"]);
}
