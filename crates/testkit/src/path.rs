//! Scenarios that tests write down by hand: parts with every default, and a dumbbell.

use dragstrip_scenario::{
    Application, FlowSpec, GsoMode, HostSpec, LinkSpec, NodeSpec, ProbeSpec, QdiscSpec, Record,
    Scenario, SocketBuffers, StackProfile, Transport,
};
use std::collections::BTreeMap;

/// A stock host.
#[must_use]
pub fn host(name: &str) -> NodeSpec {
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

/// A router.
#[must_use]
pub fn router(name: &str) -> NodeSpec {
    NodeSpec::Router { name: name.to_owned() }
}

/// A link without delay, as fast as you like, with an unlimited queue.
#[must_use]
pub fn link(from: &str, to: &str) -> LinkSpec {
    LinkSpec {
        name: format!("{from}-{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        rate_bps: None,
        delay_ns: 0,
        overhead_bytes: 0,
        medium: None,
        qdisc: QdiscSpec::NOQUEUE,
        netem: None,
    }
}

/// A bulk flow over TCP for the whole run.
#[must_use]
pub fn flow(sender: &str, receiver: &str, cc: &str) -> FlowSpec {
    FlowSpec {
        label: format!("{sender}-{cc}"),
        sender: sender.to_owned(),
        receiver: receiver.to_owned(),
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

/// Datagrams of `datagram_bytes` at `rate_bps` of payload.
#[must_use]
pub fn datagrams(sender: &str, receiver: &str, rate_bps: u64, datagram_bytes: u32) -> FlowSpec {
    FlowSpec {
        label: format!("{sender}-udp"),
        transport: Transport::Udp,
        application: Application::ConstantRate { rate_bps, datagram_bytes },
        ..flow(sender, receiver, "reno")
    }
}

/// A ping five times a second.
#[must_use]
pub fn ping(from: &str, target: &str) -> ProbeSpec {
    ProbeSpec {
        label: format!("{from}-{target}"),
        from: from.to_owned(),
        target: target.to_owned(),
        interval_ns: 200_000_000,
        size_bytes: 64,
        start_ns: 0,
    }
}

/// Senders `s0`, `s1` ... on links of their own to the router `r`, and behind it the receiver `d`.
/// The bottleneck is the link `r-d`; `delay_ns` sits on the return path, `d-r`.
#[must_use]
pub fn dumbbell(senders: usize, bottleneck: LinkSpec, delay_ns: u64, seconds: u64) -> Scenario {
    let mut nodes = vec![router("r"), host("d")];
    let mut links = vec![
        LinkSpec { name: "r-d".to_owned(), from: "r".to_owned(), to: "d".to_owned(), ..bottleneck },
        LinkSpec { delay_ns, ..link("d", "r") },
    ];
    for index in 0..senders {
        let name = format!("s{index}");
        nodes.push(host(&name));
        links.push(LinkSpec { rate_bps: Some(10_000_000_000), ..link(&name, "r") });
        links.push(link("r", &name));
    }
    Scenario {
        name: "dumbbell".to_owned(),
        seed: 1,
        duration_ns: seconds * 1_000_000_000,
        nodes,
        links,
        media: std::collections::BTreeMap::new(),
        routes: Vec::new(),
        flows: Vec::new(),
        probes: Vec::new(),
        programs: BTreeMap::new(),
        cold_arp: false,
        changes: Vec::new(),
        record: Record::default(),
    }
}
