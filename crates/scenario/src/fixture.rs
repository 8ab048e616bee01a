//! A small valid scenario for the tests of this crate: a — r1 ═ r2 — b, one flow, one ping.

use crate::applications::Application;
use crate::types::{
    FlowSpec, GsoMode, HostSpec, LinkSpec, NodeSpec, ProbeSpec, Record, Scenario, SocketBuffers,
    StackProfile, Transport,
};
use dragstrip_qdisc::{PfifoSpec, QdiscSpec};
use std::collections::BTreeMap;

pub(crate) fn host(name: &str) -> NodeSpec {
    NodeSpec::Host(HostSpec {
        name: name.to_owned(),
        profile: StackProfile::Linux6,
        sysctl: BTreeMap::new(),
        gso: GsoMode::Off,
        mtu_bytes: 1500,
        tick_hz: Some(250),
        history: None,
        cpu: None,
        interrupts: None,
    })
}

pub(crate) fn link(name: &str, from: &str, to: &str) -> LinkSpec {
    LinkSpec {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        rate_bps: Some(10_000_000),
        delay_ns: 1_000_000,
        overhead_bytes: 0,
        medium: None,
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 100 }),
        netem: None,
    }
}

pub(crate) fn flow(label: &str, cc: &str) -> FlowSpec {
    FlowSpec {
        label: label.to_owned(),
        sender: "a".to_owned(),
        receiver: "b".to_owned(),
        transport: Transport::Tcp {
            cc: cc.to_owned(),
            cc_options: BTreeMap::new(),
            receiver_cc: None,
            socket: SocketBuffers::default(),
        },
        application: Application::Bulk { bytes: None },
        start_ns: 0,
        stop_ns: None,
        source: None,
        dscp: 0,
        mark: 0,
    }
}

pub(crate) fn scenario() -> Scenario {
    let router = |name: &str| NodeSpec::Router { name: name.to_owned() };
    let pairs = [("a", "r1"), ("r1", "r2"), ("r2", "b"), ("b", "r2"), ("r2", "r1"), ("r1", "a")];
    Scenario {
        name: "fixture".to_owned(),
        seed: 1,
        duration_ns: 10_000_000_000,
        nodes: vec![host("a"), host("b"), router("r1"), router("r2")],
        links: pairs.iter().map(|(from, to)| link(&format!("{from}-{to}"), from, to)).collect(),
        media: BTreeMap::new(),
        routes: Vec::new(),
        flows: vec![flow("reno", "reno")],
        probes: vec![ProbeSpec {
            label: "ping".to_owned(),
            from: "b".to_owned(),
            target: "a".to_owned(),
            interval_ns: 200_000_000,
            size_bytes: 64,
            start_ns: 0,
        }],
        programs: BTreeMap::new(),
        cold_arp: false,
        changes: Vec::new(),
        record: Record::default(),
    }
}
