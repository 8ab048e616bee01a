//! The scenario of an experiment without alternatives.

use crate::arrivals::arrivals;
use crate::changes::changes;
use crate::dumbbell::dumbbell;
use crate::flows::flows;
use crate::media::medium;
use crate::parts::{Transmitter, discipline, emulation, host, u32_of, wire};
use crate::pattern::matches;
use crate::presets::hosts::HOSTS;
use crate::problem;
use crate::rules::ALIKE_MAX;
use crate::types::DEFAULT_QUEUE;
use crate::types::{
    CpuForm, Experiment, FlowForm, HostForm, InterfaceForm, LinkForm, NodeForm, NodeKind, ProbeForm,
};
use crate::words::{Holds, queue_words, spelt_out};
use dragstrip_scenario::{
    CpuSpec, FlowSpec, HistorySpec, HostSpec, InterruptSpec, LinkSpec, NodeSpec, ProbeSpec,
    Problem, QdiscSpec, Record, Scenario, Transport, quic,
};
use dragstrip_units::suggest;
use std::collections::BTreeMap;

/// More flows than there are event numbers for.
const FLOWS_MAX: u64 = 1 << 20;

/// The scenario called `name` that an experiment means, alternatives left aside.
///
/// # Errors
/// The first field whose words cannot be read, or flows without hosts. [`Scenario::validate`] has the rest.
pub fn build(experiment: &Experiment, name: &str, seed: u64) -> Result<Scenario, Problem> {
    let flow_forms = spelt_out(&experiment.flows)?;
    count(experiment, &flow_forms)?;
    let (nodes, mut links) = match &experiment.path {
        Some(path) => dumbbell(path, &flow_forms, &experiment.media)?,
        None => {
            let nodes = experiment.nodes.iter().map(node).collect();
            (nodes, graph(&experiment.links)?)
        }
    };
    let changes = changes(&experiment.changes, experiment.path.as_ref(), &links)?;
    let mut nodes: Vec<NodeSpec> = nodes;
    let hosts = Hosts::new(&experiment.hosts.0);
    for node in &mut nodes {
        if let NodeSpec::Host(host) = node {
            hosts.settle(host, &mut links)?;
        }
    }
    let media = experiment.media.iter().map(|(name, form)| {
        Ok((
            name.clone(),
            medium(form).map_err(|problem| problem.within(&format!("media.{name}")))?,
        ))
    });
    let arrivals = arrivals(experiment, &flow_forms, seed)?;
    let flows = flows(&flow_forms, &arrivals, experiment.path.is_some(), &nodes)?;
    Ok(Scenario {
        name: name.to_owned(),
        seed,
        duration_ns: experiment.duration.0,
        media: media.collect::<Result<BTreeMap<_, _>, Problem>>()?,
        routes: experiment.routes.clone(),
        programs: used_programs(&experiment.programs, &flows),
        flows,
        nodes,
        links,
        probes: experiment.probes.iter().map(probe).collect(),
        cold_arp: experiment.cold_arp,
        changes,
        record: Record {
            interval_ns: experiment.record.interval.0,
            every_ack: experiment.record.every_ack,
            rtts: experiment.record.rtts,
            cc_state: experiment.record.cc_state,
            captures: experiment.record.captures,
        },
    })
}

/// The programs that flows name: unused programs are left out of the scenario.
fn used_programs(
    programs: &BTreeMap<String, String>,
    flows: &[FlowSpec],
) -> BTreeMap<String, String> {
    let uses = |name: &String| {
        flows.iter().any(|flow| match &flow.transport {
            Transport::Quic { cc, .. } => &cc[quic::own_start(cc)..] == name,
            transport @ (Transport::Tcp { .. } | Transport::Udp) => {
                [false, true].into_iter().any(|end| transport.cc(end) == Some(name))
            }
        })
    };
    let entries = programs.iter().filter(|(name, _)| uses(name));
    entries.map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// Refuses crowds that no scenario holds before anything is made of them, and round trips of flows that share a sender.
fn count(experiment: &Experiment, flows: &[FlowForm]) -> Result<(), Problem> {
    let mut total = 0_u64;
    for (index, flow) in flows.iter().enumerate() {
        if flow.rtt.is_some() && experiment.path.as_ref().is_none_or(|path| path.senders.is_some())
        {
            let expected =
                "only on a path where every flow has a sender of its own (no nodes, no senders)";
            return Err(problem(&format!("flows[{index}].rtt"), "", expected));
        }
        let wrong = |expected: &str| {
            problem(&format!("flows[{index}].count"), &flow.count.to_string(), expected)
        };
        if !(1..=ALIKE_MAX).contains(&flow.count) {
            return Err(wrong(&format!("a whole number from 1 to {ALIKE_MAX}")));
        }
        total += flow.count;
        if total > FLOWS_MAX {
            return Err(wrong(&format!("at most {FLOWS_MAX} flows in all")));
        }
    }
    Ok(())
}

fn node(form: &NodeForm) -> NodeSpec {
    let NodeForm { name, kind } = form;
    match kind {
        NodeKind::Host => host(name),
        NodeKind::Router => NodeSpec::Router { name: name.clone() },
    }
}

fn probe(form: &ProbeForm) -> ProbeSpec {
    let ProbeForm { from, target, label, interval, size, start } = form;
    ProbeSpec {
        label: if label.is_empty() { format!("{from}-{target}") } else { label.clone() },
        from: from.clone(),
        target: target.clone(),
        interval_ns: interval.0,
        size_bytes: u32_of(*size),
        start_ns: start.0,
    }
}

/// Host settings by pattern.
struct Hosts<'a>(&'a [(String, HostForm)]);

impl<'a> Hosts<'a> {
    fn new(patterns: &'a [(String, HostForm)]) -> Self {
        Self(patterns)
    }

    /// Later patterns override earlier ones; of sysctls each one separately.
    fn settle(&self, host: &mut HostSpec, links: &mut [LinkSpec]) -> Result<(), Problem> {
        let mut ticks = None;
        let mut card = InterfaceForm::default();
        for (pattern, form) in self.0.iter().filter(|(pattern, _)| matches(&host.name, pattern)) {
            let HostForm { preset, profile, sysctl, gso, mtu, tick_hz, history, cpu, interface } =
                form;
            let kind = preset.as_deref().map(|name| host_kind(pattern, name)).transpose()?;
            host.gso = kind.as_ref().and_then(|form| form.gso).unwrap_or(host.gso);
            let kind_interface = kind.and_then(|form| form.interface);
            for form in [kind_interface.as_ref(), interface.as_ref()].into_iter().flatten() {
                card.take(form);
            }
            host.sysctl.extend(sysctl.iter().map(|(key, value)| (key.clone(), value.0.clone())));
            host.profile = profile.unwrap_or(host.profile);
            host.gso = gso.unwrap_or(host.gso);
            host.mtu_bytes = mtu.map_or(host.mtu_bytes, u32_of);
            ticks = tick_hz.or(ticks);
            if let Some(metrics) = history {
                host.history = Some(HistorySpec {
                    ssthresh_packets: metrics.ssthresh,
                    reordering_packets: metrics.reordering,
                    rtt_ns: metrics.rtt.0,
                    rtt_deviation_ns: metrics.deviation.0,
                });
            }
            if let Some(CpuForm { shared, receive, ack, send }) = cpu {
                host.cpu = Some(CpuSpec {
                    shared: shared.clone(),
                    receive_ns: receive.0,
                    ack_ns: ack.0,
                    send_ns: send.0,
                });
            }
        }
        host.tick_hz = ticks;
        host.tick_hz = Some(host.ticks_per_second());
        connect(host, &card, links)
    }
}

/// The settings of a kind of host by name.
fn host_kind(pattern: &str, name: &str) -> Result<HostForm, Problem> {
    let Some(kind) = HOSTS.iter().find(|kind| kind.name == name) else {
        let names = HOSTS.iter().map(|kind| kind.name);
        let expected = format!("one of {}", names.clone().collect::<Vec<_>>().join(", "));
        let expected = suggest(name, names, &expected);
        return Err(problem(&format!("hosts.{pattern}.preset"), &format!("{name:?}"), &expected));
    };
    Ok(kind.settings())
}

/// Gives the host its network interface: rate and queue of the links that leave it and have none, and its interrupts.
fn connect(
    host: &mut HostSpec,
    form: &InterfaceForm,
    links: &mut [LinkSpec],
) -> Result<(), Problem> {
    let InterfaceForm { rate, queue, interrupts, gro } = form;
    let field = |name: &str| format!("hosts.{}.interface.{name}", host.name);
    if let Some(words) = queue.as_deref().or_else(|| rate.map(|_| DEFAULT_QUEUE)) {
        let is_bare = |link: &&mut LinkSpec| {
            link.from == host.name
                && link.medium.is_none()
                && link.rate_bps.is_none()
                && link.qdisc == QdiscSpec::NOQUEUE
        };
        for link in links.iter_mut().filter(is_bare) {
            link.rate_bps = rate.map(|rate| rate.0);
            link.qdisc = discipline(words, &field("queue"))?;
        }
    }
    match (interrupts, gro.unwrap_or(false)) {
        (Some(gap), gro) => host.interrupts = Some(InterruptSpec { gap_ns: gap.0, gro }),
        (None, true) => {
            let expected =
                "false, or interrupts beside it: only packets of one interrupt are merged";
            return Err(problem(&field("gro"), "true", expected));
        }
        (None, false) => {}
    }
    Ok(())
}

fn graph(forms: &[LinkForm]) -> Result<Vec<LinkSpec>, Problem> {
    let mut links = Vec::new();
    for (index, form) in forms.iter().enumerate() {
        let LinkForm { from, to, name, both_ways, .. } = form;
        let at = format!("links[{index}]");
        let link_name = |default_name: String, suffix: &str| match name.as_str() {
            "" => default_name,
            name => format!("{name}{suffix}"),
        };
        links.push(build_link(form, from, to, link_name(format!("{from}-{to}"), ""), &at)?);
        if *both_ways {
            links.push(build_link(
                form,
                to,
                from,
                link_name(format!("{to}-{from}"), "-back"),
                &at,
            )?);
        }
    }
    Ok(links)
}

fn build_link(
    form: &LinkForm,
    from: &str,
    to: &str,
    name: String,
    at: &str,
) -> Result<LinkSpec, Problem> {
    let LinkForm { rate, medium, link: kind, queue, overhead, atm, delay, netem, .. } = form;
    let holds = Holds { rate_bps: rate.map(|rate| rate.0), rtt_ns: None };
    let queue = queue.as_deref().map(|words| queue_words(words, holds, &format!("{at}.queue")));
    let queue = queue.transpose()?;
    let mut link = wire(from, to);
    link.name = name;
    link.delay_ns = delay.0;
    link.netem = emulation(netem.as_deref(), &format!("{at}.netem"))?;
    let field = format!("{at}.queue");
    let queue = queue.as_deref();
    let words = queue.unwrap_or(DEFAULT_QUEUE);
    if let Some(rate) = rate {
        Transmitter { kind: *kind, rate: *rate, overhead: *overhead, atm: *atm }
            .drive(&mut link, words, &field)?;
    } else if let Some(medium) = medium {
        link.medium = Some(medium.clone());
        link.qdisc = discipline(words, &field)?;
    } else if let Some(words) = queue {
        link.qdisc = discipline(words, &field)?;
    }
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_scenario::QdiscSpec;
    use dragstrip_scenario::{StackProfile, Transport};
    use serde_json::{Value, json};

    fn build_content(content: &Value) -> Result<Scenario, Problem> {
        build(&Experiment::from_json(&content.to_string())?, "test", 7)
    }

    fn dumbbell(changes: &Value) -> Value {
        let mut content = json!({
            "duration": "30s",
            "path": {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb"},
            "flows": [{"cc": "cubic", "count": 2}],
        });
        for (field, value) in changes.as_object().into_iter().flatten() {
            content[field] = value.clone();
        }
        content
    }

    #[test]
    fn the_short_form_is_a_dumbbell_that_can_be_run() {
        let scenario = build_content(&dumbbell(&json!({}))).unwrap();
        let names: Vec<&str> = scenario.nodes.iter().map(NodeSpec::name).collect();
        assert_eq!(names, ["s1", "s2", "r", "d"]);
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(links, ["s1-r", "r-s1", "s2-r", "r-s2", "r-d", "d-r"]);
        assert_eq!(
            scenario.links[4].qdisc,
            QdiscSpec::parse("htb rate 10mbit leaf bfifo limit 200kb").unwrap()
        );
        assert_eq!(scenario.links[5].delay_ns, 40_000_000);
        let ends: Vec<_> = scenario
            .flows
            .iter()
            .map(|flow| (&*flow.label, &*flow.sender, &*flow.receiver))
            .collect();
        assert_eq!(ends, [("cubic-1", "s1", "d"), ("cubic-2", "s2", "d")]);
        assert_eq!(scenario.validate(), Ok(()));
    }

    /// The receiver that sends into a limited return path is placed after a router, as a PC behind its modem.
    #[test]
    fn a_receiver_that_uploads_is_placed_after_a_router() {
        let links = |flows: &Value, more: &Value| -> Vec<String> {
            let mut path = json!({"rate": "10mbit", "rtt": "40ms", "up_rate": "1mbit"});
            for (field, value) in more.as_object().into_iter().flatten() {
                path[field] = value.clone();
            }
            let scenario =
                build_content(&dumbbell(&json!({"flows": flows, "path": path}))).unwrap();
            assert_eq!(scenario.validate(), Ok(()));
            scenario.links.into_iter().skip(2).map(|link| link.name).collect()
        };
        let (on_line, behind) = (vec!["r-d", "d-r"], vec!["r-w", "w-r", "w-d", "d-w"]);
        let up = json!([{"cc": "cubic", "reverse": true}]);
        assert_eq!(links(&up, &json!({})), behind);
        assert_eq!(links(&up, &json!({"up_rate": null, "up_queue": "fq_codel"})), behind);
        assert_eq!(links(&up, &json!({"receiver_on_line": true})), on_line);
        assert_eq!(links(&up, &json!({"up_rate": null})), on_line, "nothing limits what goes back");
        assert_eq!(
            links(&json!([{"cc": "cubic", "sender": "d", "receiver": "s1"}]), &json!({})),
            behind
        );
        assert_eq!(links(&json!([{"cc": "cubic"}]), &json!({})), on_line, "ACKs alone");
        let asking = |reverse: bool, request: &str| {
            let application =
                json!({"kind": "request_response", "request": request, "response": "1mb"});
            links(
                &json!([{"cc": "cubic", "reverse": reverse, "application": application}]),
                &json!({}),
            )
        };
        assert_eq!(asking(true, "1kb"), on_line, "the responses go down");
        assert_eq!(asking(false, "1kb"), behind);
        assert_eq!(asking(true, "9mb"), behind, "the requests are an upload");
        let several = json!({"path": {"rate": "1mbit", "receivers": 2, "receiver_on_line": true}});
        assert_eq!(build_content(&dumbbell(&several)).unwrap_err().field, "path.receiver_on_line");
    }

    #[test]
    fn later_patterns_override_and_sysctls_add_up() {
        let hosts = json!({
            "*": {"sysctl": {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_ecn": "1"}, "gso": "off", "profile": "linux-2.6.27"},
            "s2": {"sysctl": {"net.ipv4.tcp_sack": "1"}, "profile": "linux-6"},
            "d": {"tick_hz": 300, "mtu": "1400b"},
        });
        let scenario = build_content(&dumbbell(&json!({"hosts": hosts}))).unwrap();
        let host = |at: usize| scenario.nodes[at].host().unwrap();
        assert_eq!(host(0).sysctl["net.ipv4.tcp_sack"], "0");
        assert_eq!(host(1).sysctl["net.ipv4.tcp_sack"], "1");
        assert_eq!(host(1).sysctl["net.ipv4.tcp_ecn"], "1");
        assert_eq!((host(1).profile, host(3).mtu_bytes), (StackProfile::Linux6, 1400));
        assert_eq!([0, 1, 3].map(|at| host(at).tick_hz), [1000, 250, 300].map(Some));
    }

    #[test]
    fn a_flow_may_be_nearer_or_farther_than_the_path() {
        let flows = json!([{"cc": "reno@10ms"}, {"cc": "cubic"}, {"cc": "bbr", "rtt": "90ms"}]);
        let path = json!({"rate": "10mbit", "delay": "5ms", "up_delay": "35ms", "queue": "1bdp"});
        let scenario = build_content(&dumbbell(&json!({"flows": flows, "path": path}))).unwrap();
        let delays = ["r-s1", "r-s2", "r-s3", "r-d", "d-r"].map(|name| {
            scenario.links.iter().find(|link| link.name == name).unwrap().delay_ns / 1_000_000
        });
        assert_eq!(delays, [0, 30, 80, 5, 5]);
        assert_eq!(scenario.validate(), Ok(()));
        let wrong = |flows: &Value, path: &Value| {
            build_content(&dumbbell(&json!({"flows": flows, "path": path}))).unwrap_err().field
        };
        assert_eq!(wrong(&json!([{"cc": "reno@4ms"}]), &path), "flows[0].rtt");
        let shared = json!({"rate": "1mbit", "rtt": "9ms", "senders": 1});
        assert_eq!(wrong(&json!([{"cc": "reno@4ms"}]), &shared), "flows[0].rtt");
        let opposite_flows = json!([{"cc": "reno@10ms"}, {"cc": "reno@20ms", "reverse": true}]);
        assert_eq!(wrong(&opposite_flows, &path), "flows[1].rtt");
        let longest = json!({"rate": "1mbit", "delay": "18446744073s", "up_delay": "18446744073s"});
        assert_eq!(wrong(&json!([{"cc": "reno@1ms"}]), &longest), "flows[0].rtt");
        let far = json!([{"cc": "reno@18446744073s"}, {"cc": "reno"}]);
        assert!(build_content(&dumbbell(&json!({"flows": far}))).unwrap().validate().is_err());
    }

    #[test]
    fn loss_and_jitter_are_netems() {
        let path = json!({"rate": "10mbit", "rtt": "40ms", "loss": "0.07%", "jitter": "5ms"});
        let scenario = build_content(&dumbbell(&json!({"path": path}))).unwrap();
        let words = "netem delay 5ms 5ms loss 0.07% limit 1000000";
        let netem = scenario.links[4].netem.clone().unwrap();
        assert_eq!(QdiscSpec::Netem(netem), QdiscSpec::parse(words).unwrap());
    }

    #[test]
    fn impairments_ahead_of_the_bottleneck_are_on_every_senders_link() {
        let ahead = |field: &str, words: &str| {
            let path = json!({"rate": "10mbit", "rtt": "40ms", field: words, "loss": "1%"});
            let scenario = build_content(&dumbbell(&json!({"path": path}))).unwrap();
            let of = |name: &str| scenario.links.iter().find(|link| link.name == name).unwrap();
            assert_eq!(of("s1-r").netem, of("s2-r").netem);
            assert_eq!(of("r-s1").netem, None);
            assert_ne!(of("r-d").netem, of("s1-r").netem);
            QdiscSpec::Netem(of("s1-r").netem.clone().unwrap())
        };
        let parsed = |words: &str| QdiscSpec::parse(words).unwrap();
        assert_eq!(ahead("ahead_loss", "0.5%"), parsed("netem loss 0.5% limit 1000000"));
        assert_eq!(ahead("ahead_netem", "loss every 100"), parsed("netem loss every 100"));
    }

    #[test]
    fn a_flow_asks_for_its_buffers() {
        let flows = json!([{"cc": "cubic", "send_buffer": "64kb", "receive_buffer": "1mb"}, {"cc": "reno"}]);
        let scenario = build_content(&dumbbell(&json!({"flows": flows}))).unwrap();
        let socket = |flow: usize| match scenario.flows[flow].transport {
            Transport::Tcp { socket, .. } => (socket.send_bytes, socket.receive_bytes),
            Transport::Quic { .. } | Transport::Udp => panic!(),
        };
        assert_eq!([socket(0), socket(1)], [(Some(65_536), Some(1 << 20)), (None, None)]);
        let bsd = json!({"*": {"profile": "freebsd-9"}});
        let flow_forms = json!([{"cc": "reno", "receive_buffer": "64kb"}]);
        let scenario =
            build_content(&dumbbell(&json!({"flows": flow_forms, "hosts": bsd}))).unwrap();
        let problems = scenario.validate().unwrap_err();
        let is_reported = |field: &str| problems.iter().any(|problem| problem.field == field);
        assert!(is_reported("flows[0].transport.socket.receive_bytes"), "{problems:?}");
    }

    #[test]
    fn a_shared_medium_carries_both_ways() {
        let air = json!({"air": {"kind": "wifi_g", "rate": "54mbit", "ring": 2}});
        let scenario =
            build_content(&dumbbell(&json!({"path": {"medium": "air"}, "media": air}))).unwrap();
        assert_eq!(scenario.links[5].medium.as_deref(), Some("air"));
        let line = json!({"air": {"kind": "adsl", "rate": "1500kbit", "interleaving": "2ms"}});
        let scenario =
            build_content(&dumbbell(&json!({"path": {"medium": "air"}, "media": line}))).unwrap();
        assert_eq!(scenario.links[5].medium, None);
    }

    #[test]
    fn links_of_a_graph_are_bidirectional_by_default() {
        let graph = json!({
            "duration": "1s",
            "nodes": [{"kind": "host", "name": "a"}, {"kind": "host", "name": "b"}],
            "links": [{"from": "a", "to": "b", "rate": "1mbit"}, {"from": "a", "to": "b", "name": "x", "both_ways": false}],
            "flows": [{"cc": "reno", "sender": "a", "receiver": "b"}],
        });
        let scenario = build_content(&graph).unwrap();
        let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(links, ["a-b", "b-a", "x"]);
        let mut without_receiver = graph;
        without_receiver["flows"][0].as_object_mut().unwrap().remove("receiver");
        let problem = build_content(&without_receiver).unwrap_err();
        assert_eq!(problem.field, "flows[0].receiver");
        assert!(problem.expected.starts_with("is missing"), "{problem}");
    }

    #[test]
    fn unreadable_values_are_reported_with_their_field() {
        let problem = build_content(&dumbbell(&json!({"duration": "30"}))).unwrap_err();
        assert_eq!((problem.field.as_str(), problem.value.as_str()), ("duration", "\"30\""));
        let problem = build_content(&dumbbell(&json!({"pat": {}}))).unwrap_err();
        assert_eq!((problem.field.as_str(), problem.value.as_str()), ("pat", ""));
        let path = json!({"rate": "1mbit", "queue": "bfifi"});
        assert_eq!(
            build_content(&dumbbell(&json!({"path": path}))).unwrap_err().field,
            "path.queue"
        );
        let crowd = json!([{"cc": "reno", "count": 100_001}]);
        assert_eq!(
            build_content(&dumbbell(&json!({"flows": crowd}))).unwrap_err().field,
            "flows[0].count"
        );
        let media = json!({"line": {"kind": "adsl", "rate": "fast"}});
        let problem = build_content(&dumbbell(&json!({"media": media}))).unwrap_err();
        assert_eq!(
            (problem.field.as_str(), problem.value.as_str()),
            ("media.line.rate", "\"fast\"")
        );
    }
}
