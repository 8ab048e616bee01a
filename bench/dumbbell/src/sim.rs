//! The dumbbell as a scenario, run by the simulator in this process.

use crate::options::{Layout, MSS_BYTES, Options, Recording as What};
use crate::usage;
use dragstrip_scenario::{
    Application, FlowSpec, GsoMode, HostSpec, LinkSpec, NodeSpec, PfifoSpec, QdiscSpec, Record,
    Scenario, SocketBuffers, StackProfile, Transport,
};
use dragstrip_sim::{Data, Recording};
use std::collections::BTreeMap;

/// Runs the scenario `--repeat` times; the answer is a JSON object.
pub fn command(options: &Options) -> Result<String, String> {
    let scenario = scenario(options);
    if options.scenario_only {
        return serde_json::to_string_pretty(&scenario).map_err(|error| error.to_string());
    }
    let (mut bytes, mut packets, mut retransmits) = (0, 0, 0);
    let before_s = usage::cpu_s();
    for _ in 0..options.repeat {
        let recording = dragstrip_sim::run(&scenario, &mut |_| true)
            .map_err(|error| format!("{}: {}", error.field, error.message))?;
        bytes = sum(&recording, "flows", "bytes_received")?;
        packets = data_packets(&recording)?;
        retransmits = sum(&recording, "flows", "retransmits")?;
    }
    let run_cpu_s = (usage::cpu_s() - before_s) / options.repeat as f64;
    Ok(serde_json::json!({
        "program": "dragstrip",
        "flows": options.flows,
        "cc": options.cc,
        "layout": match options.layout { Layout::Hub => "hub", Layout::Lump => "lump" },
        "queue_packets": options.queue_packets(),
        "seconds": options.seconds,
        "repeat": options.repeat,
        "data_packets": packets,
        "goodput_mbps": bytes as f64 * 8.0 / options.seconds as f64 / 1e6,
        "retransmits": retransmits,
        "run_cpu_s": run_cpu_s,
        "peak_rss_kib": usage::peak_rss_kib(),
    })
    .to_string())
}

/// What the receivers of all flows took, in full-sized segments.
pub fn data_packets(recording: &Recording) -> Result<u64, String> {
    Ok(sum(recording, "flows", "bytes_received")? / MSS_BYTES)
}

/// `sender --- 10x rate, rtt/4 --- router --- rate, rtt/4, FIFO of one BDP --- receiver`
fn scenario(options: &Options) -> Scenario {
    let senders = match options.layout {
        Layout::Hub => options.flows,
        Layout::Lump => 1,
    };
    let mut nodes = vec![host(options, "receiver"), NodeSpec::Router { name: "router".to_owned() }];
    let mut links = vec![
        link(options, "router", "receiver", 1, fifo(options.queue_packets())),
        link(options, "receiver", "router", 1, QdiscSpec::NOQUEUE),
    ];
    for index in 0..senders {
        let name = sender(index);
        nodes.push(host(options, &name));
        links.push(link(options, &name, "router", 10, QdiscSpec::NOQUEUE));
        links.push(link(options, "router", &name, 10, QdiscSpec::NOQUEUE));
    }
    Scenario {
        name: "bench dumbbell".to_owned(),
        seed: 1,
        duration_ns: options.duration_ns(),
        nodes,
        links,
        media: std::collections::BTreeMap::new(),
        routes: Vec::new(),
        flows: (0..options.flows).map(|index| flow(options, index, senders)).collect(),
        probes: Vec::new(),
        programs: BTreeMap::new(),
        cold_arp: false,
        changes: Vec::new(),
        record: record(options),
    }
}

fn sender(index: u64) -> String {
    format!("sender-{index}")
}

fn fifo(packets: u64) -> QdiscSpec {
    QdiscSpec::from(PfifoSpec { limit_packets: u32::try_from(packets).unwrap_or(u32::MAX) })
}

/// A stock host whose socket buffers limit nobody: at most four times a flow's share of pipe and
/// queue, as in the other programs, and no less than 4 MiB for the window of its slow start.
fn host(options: &Options, name: &str) -> NodeSpec {
    let bdp_bytes = options.rate_bps() / 8 * options.rtt_ms / 1000;
    let most = (8 * bdp_bytes / options.flows).max(4 << 20);
    NodeSpec::Host(HostSpec {
        name: name.to_owned(),
        profile: StackProfile::Linux6,
        sysctl: BTreeMap::from([
            ("net.ipv4.tcp_rmem".to_owned(), format!("4096 131072 {most}")),
            ("net.ipv4.tcp_wmem".to_owned(), format!("4096 16384 {most}")),
        ]),
        gso: GsoMode::Off,
        mtu_bytes: 1500,
        tick_hz: Some(250),
        history: None,
        cpu: None,
        interrupts: None,
    })
}

fn link(options: &Options, from: &str, to: &str, times: u64, qdisc: QdiscSpec) -> LinkSpec {
    LinkSpec {
        name: format!("{from}-{to}"),
        from: from.to_owned(),
        to: to.to_owned(),
        rate_bps: Some(times * options.rate_bps()),
        delay_ns: options.hop_delay_ns(),
        overhead_bytes: 0,
        medium: None,
        qdisc,
        netem: None,
    }
}

fn flow(options: &Options, index: u64, senders: u64) -> FlowSpec {
    FlowSpec {
        label: format!("flow-{index}"),
        sender: sender(index % senders),
        receiver: "receiver".to_owned(),
        transport: Transport::Tcp {
            cc: options.cc.clone(),
            cc_options: BTreeMap::new(),
            receiver_cc: None,
            socket: SocketBuffers::default(),
        },
        application: Application::Bulk { bytes: options.bytes },
        start_ns: options.start_ns(index),
        stop_ns: None,
        source: None,
        dscp: 0,
        mark: 0,
    }
}

fn record(options: &Options) -> Record {
    const INTERVAL_NS: u64 = 100_000_000;
    match options.recording {
        What::None => Record {
            interval_ns: options.duration_ns(),
            every_ack: false,
            rtts: false,
            cc_state: false,
            captures: false,
        },
        What::Interval => Record {
            interval_ns: INTERVAL_NS,
            every_ack: false,
            rtts: false,
            cc_state: false,
            captures: false,
        },
        What::Default => Record {
            interval_ns: INTERVAL_NS,
            every_ack: false,
            rtts: true,
            cc_state: false,
            captures: false,
        },
        What::EveryAck => Record {
            interval_ns: INTERVAL_NS,
            every_ack: true,
            rtts: true,
            cc_state: false,
            captures: false,
        },
    }
}

/// Sum of an integer column.
fn sum(recording: &Recording, table: &str, column: &str) -> Result<u64, String> {
    let data = recording
        .tables
        .iter()
        .find(|candidate| candidate.name == table)
        .and_then(|found| found.columns.iter().find(|candidate| candidate.name == column))
        .map(|found| &found.data);
    match data {
        Some(Data::Int(values)) => Ok(values.iter().filter_map(|&n| u64::try_from(n).ok()).sum()),
        Some(Data::Text { .. } | Data::Bool(_) | Data::Float(_)) => {
            Err(format!("recording: {table}.{column} is not a number"))
        }
        None => Err(format!("recording: no column {table}.{column}")),
    }
}

#[cfg(test)]
mod tests {
    use super::scenario;
    use crate::options::{Layout, Options};
    use dragstrip_scenario::QdiscSpec;

    #[test]
    fn the_base_rtt_is_the_sum_of_the_delays() {
        let options = Options { rtt_ms: 300, flows: 3, ..Options::default() };
        let scenario = scenario(&options);
        let delay_of = |name: &str| {
            scenario.links.iter().find(|link| link.name == name).map(|link| link.delay_ns)
        };
        let there_and_back =
            ["sender-2-router", "router-receiver", "receiver-router", "router-sender-2"];
        let total: u64 = there_and_back.iter().filter_map(|name| delay_of(name)).sum();
        assert_eq!(total, 300_000_000);
    }

    #[test]
    fn every_case_is_a_valid_scenario() {
        for (flows, mbps, rtt_ms) in [(1, 100, 20), (30, 100, 300), (10_000, 10_000, 50)] {
            for layout in [Layout::Hub, Layout::Lump] {
                let options = Options { flows, mbps, rtt_ms, layout, ..Options::default() };
                assert_eq!(scenario(&options).validate(), Ok(()));
            }
        }
    }

    #[test]
    fn only_the_bottleneck_has_a_limited_queue() {
        let limited = |layout| {
            let options = Options { flows: 4, layout, ..Options::default() };
            let links = scenario(&options).links;
            links
                .iter()
                .filter(|link| link.qdisc != QdiscSpec::NOQUEUE)
                .map(|link| link.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(limited(Layout::Hub), ["router-receiver"]);
        assert_eq!(limited(Layout::Lump), ["router-receiver"]);
    }
}
