//! Hosts' processing time per packet, bursts that stay one packet, interrupts, GRO and pacing by fq, against precomputed values.

use dragstrip_qdisc::FqSpec;
use dragstrip_scenario::{
    CpuSpec, GsoMode, HostSpec, InterruptSpec, LinkSpec, NodeSpec, PfifoSpec, QdiscSpec, Scenario,
    Transport,
};
use dragstrip_sim::{Data, Recording};
use dragstrip_testkit::path::{datagrams, dumbbell, flow, link, ping};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

fn numbers<'a>(recording: &'a Recording, table: &str, column: &str) -> &'a [i64] {
    let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
    let column = table.columns.iter().find(|entry| entry.name == column).expect("a column");
    let Data::Int(values) = &column.data else { panic!("{} holds no numbers", column.name) };
    values
}

/// One sender on a path of 1 Gbit/s and 20 ms, for 10 s.
fn fast() -> Scenario {
    let wire = LinkSpec {
        rate_bps: Some(1_000_000_000),
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 10_000 }),
        ..link("r", "d")
    };
    dumbbell(1, wire, 20 * MS, 10)
}

fn cpu(scenario: &mut Scenario, host: &str, cpu: CpuSpec) {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(spec) = node
            && spec.name == host
        {
            spec.cpu = Some(cpu.clone());
        }
    }
}

fn costs(receive_us: u64, ack_us: u64, send_us: u64) -> CpuSpec {
    CpuSpec {
        shared: None,
        receive_ns: receive_us * US,
        ack_ns: ack_us * US,
        send_ns: send_us * US,
    }
}

fn shared(cpu: CpuSpec) -> CpuSpec {
    CpuSpec { shared: Some("machine".to_owned()), ..cpu }
}

/// Payload acknowledged in the last five seconds, in packets of 1448 bytes per second.
fn packets_per_second(scenario: &Scenario) -> f64 {
    let recording = run(scenario);
    let (times, acked) =
        (numbers(&recording, "samples", "time_ns"), numbers(&recording, "samples", "bytes_acked"));
    let half = times.partition_point(|&at| at < 5_000_000_000);
    let last = times.len() - 1;
    let seconds = (times[last] - times[half]) as f64 / 1e9;
    (acked[last] - acked[half]) as f64 / 1448.0 / seconds
}

fn first_ping(scenario: &Scenario) -> i64 {
    let mut scenario = scenario.clone();
    scenario.flows = vec![datagrams("s0", "d", 8, 8)];
    scenario.flows[0].start_ns = scenario.duration_ns - 50 * MS;
    scenario.probes = vec![ping("s0", "d")];
    numbers(&run(&scenario), "probes", "rtt_ns")[0]
}

/// A ping is sent and received twice; nothing has to wait, so that it does not matter whether a processor is shared.
#[test]
fn an_idle_ping_takes_what_its_packets_take() {
    let idle = first_ping(&fast());
    let mut separate = fast();
    cpu(&mut separate, "s0", costs(1, 1_000, 20));
    cpu(&mut separate, "d", costs(300, 1_000, 4_000));
    let mut shared_scenario = fast();
    cpu(&mut shared_scenario, "s0", shared(costs(1, 1_000, 20)));
    cpu(&mut shared_scenario, "d", shared(costs(300, 1_000, 4_000)));
    assert_eq!(first_ping(&separate) - idle, 4_321 * US as i64);
    assert_eq!(first_ping(&shared_scenario) - idle, 4_321 * US as i64);
}

/// A processor that needs 100 µs for a packet handles 10,000 a second, at any host; one that also sends an ACK for
/// every second packet handles that many fewer.
#[test]
fn a_processor_limits_a_flow() {
    for (sender, receiver, expected) in [
        (costs(0, 0, 100), costs(0, 0, 0), 10_000.0),
        (costs(0, 0, 0), costs(100, 0, 0), 10_000.0),
        (costs(0, 50, 75), costs(0, 0, 0), 10_000.0),
        (costs(0, 0, 0), costs(75, 0, 50), 10_000.0),
    ] {
        let mut scenario = fast();
        scenario.flows.push(flow("s0", "d", "reno"));
        cpu(&mut scenario, "s0", sender.clone());
        cpu(&mut scenario, "d", receiver.clone());
        let rate = packets_per_second(&scenario);
        assert!((rate / expected - 1.0).abs() < 0.01, "{rate} with {sender:?}, {receiver:?}");
    }
}

/// Sender and receiver of 100 µs each: together on one processor half as much.
#[test]
fn hosts_that_share_a_processor_wait_for_each_other() {
    for (of, expected) in [
        (CpuSpec::clone as fn(&CpuSpec) -> CpuSpec, 10_000.0),
        (|cpu| shared(cpu.clone()), 5_000.0),
    ] {
        let mut scenario = fast();
        scenario.flows.push(flow("s0", "d", "reno"));
        cpu(&mut scenario, "s0", of(&costs(0, 0, 100)));
        cpu(&mut scenario, "d", of(&costs(100, 0, 0)));
        let rate = packets_per_second(&scenario);
        assert!((rate / expected - 1.0).abs() < 0.01, "{rate}, not {expected}");
    }
}

/// The time between two packets of a burst is the processor's, with a polled queue and with a computed one after it.
#[test]
fn a_burst_leaves_one_packet_at_a_time() {
    for limit_packets in [None, Some(10_000)] {
        let mut scenario = fast();
        scenario.duration_ns = 15 * MS;
        scenario.record.interval_ns = MS / 10;
        scenario.links[1].delay_ns = 10 * MS;
        scenario.flows.push(flow("s0", "d", "reno"));
        let access_link = scenario.links.iter_mut().find(|link| link.from == "s0").expect("a link");
        access_link.qdisc = limit_packets.map_or(QdiscSpec::NOQUEUE, |limit_packets| {
            QdiscSpec::from(PfifoSpec { limit_packets })
        });
        cpu(&mut scenario, "s0", costs(0, 0, 400));
        let recording = run(&scenario);
        let times = numbers(&recording, "received", "time_ns");
        let bytes = numbers(&recording, "received", "new_bytes");
        let arrivals: Vec<i64> = times
            .iter()
            .zip(bytes)
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(at, _)| at / 100_000)
            .collect();
        let gaps: Vec<i64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [4; 9], "the initial window, in tenths of a millisecond: {arrivals:?}");
    }
}

/// A processor that takes no time changes nothing.
#[test]
fn a_processor_without_costs_is_none() {
    let mut scenario = fast();
    scenario.flows.push(flow("s0", "d", "cubic"));
    scenario.flows.push(flow("d", "s0", "bbr"));
    scenario.probes.push(ping("s0", "d"));
    let without = run(&scenario).sha256();
    cpu(&mut scenario, "s0", costs(0, 0, 0));
    cpu(&mut scenario, "d", costs(0, 0, 0));
    assert_eq!(run(&scenario).sha256(), without);
}

/// (segments sent, data packets at the bottleneck, ACKs, payload as a share of the bottleneck's bytes)
fn crossing(gso: GsoMode) -> (f64, f64, f64, f64) {
    let mut scenario = fast();
    scenario.flows.push(flow("s0", "d", "reno"));
    scenario.links[1].qdisc = QdiscSpec::from(PfifoSpec { limit_packets: 1_000 });
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.gso = gso;
        }
    }
    let recording = run(&scenario);
    let links = recording.tables.iter().find(|table| table.name == "queues").expect("a table");
    let rows = links.columns[0].data.len() / 2;
    assert_eq!(rows, 100, "two queues, ten a second");
    let last = |column: &str, queue: usize| {
        let values = numbers(&recording, "queues", column);
        values[values.len() - 2 + queue] as f64
    };
    let flow = |column: &str| numbers(&recording, "flows", column)[0] as f64;
    assert_eq!((last("dropped", 0), flow("retransmits")), (0.0, 0.0));
    let payload = flow("bytes_received") / last("sent_bytes", 0);
    (flow("segments_sent"), last("enqueued", 0), last("enqueued", 1), payload)
}

/// A burst that stays together is one packet of a queue and gets one ACK; its segments' headers are on the wire
/// nevertheless.
#[test]
fn a_whole_burst_is_one_packet_with_one_ack() {
    let (segments, packets, acks, payload) = crossing(GsoMode::Auto);
    assert!((packets / segments - 1.0).abs() < 0.001, "{packets} of {segments}");
    assert!((acks / segments - 0.5).abs() < 0.02, "{acks} for {segments}");
    assert!((payload * 1514.0 / 1448.0 - 1.0).abs() < 0.001, "{payload}");
    let (segments, packets, acks, payload) = crossing(GsoMode::Whole);
    assert!(packets * 10.0 < segments, "{packets} of {segments}");
    // A burst of one segment waits for the next one.
    assert!((0.9..=1.0).contains(&(acks / packets)), "{acks} for {packets}");
    assert!((payload * 1514.0 / 1448.0 - 1.0).abs() < 0.01, "{payload}");
}

fn host(scenario: &mut Scenario, name: &str, change: impl Fn(&mut HostSpec)) {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(spec) = node
            && spec.name == name
        {
            change(spec);
        }
    }
}

/// The initial window of a flow over 20 ms: payload that arrived in each tenth of a millisecond that has any, in packets, and the packets that
/// each of its ACKs acknowledged.
fn first_window(gso: GsoMode, interrupts: Option<InterruptSpec>) -> (Vec<i64>, Vec<i64>) {
    let mut scenario = fast();
    scenario.duration_ns = 45 * MS;
    scenario.record.interval_ns = MS / 10;
    scenario.record.every_ack = true;
    scenario.flows.push(flow("s0", "d", "reno"));
    host(&mut scenario, "d", |spec| spec.interrupts.clone_from(&interrupts));
    host(&mut scenario, "s0", |spec| spec.gso = gso);
    let recording = run(&scenario);
    let bytes = numbers(&recording, "received", "new_bytes");
    let arrivals = bytes.iter().filter(|bytes| **bytes > 0).map(|bytes| bytes / 1448).take_while({
        let mut before = 0;
        move |packets| {
            before += packets;
            before <= 10
        }
    });
    let mut acked: Vec<i64> = numbers(&recording, "samples", "bytes_acked")
        .iter()
        .map(|bytes| bytes / 1448)
        .filter(|packets| (1..=10).contains(packets))
        .collect();
    acked.dedup();
    let steps = std::iter::once(0).chain(acked.iter().copied()).collect::<Vec<_>>();
    (arrivals.collect(), steps.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// Ten frames of 12 µs each: the ACK before them interrupts, and 50 µs later what has come by then, and so on. With GRO each interrupt's are one packet
/// with one ACK.
#[test]
fn a_card_interrupts_its_host_so_often_and_merges_segments() {
    let card = |gap_ns, gro| Some(InterruptSpec { gap_ns, gro });
    let (_, alone) = first_window(GsoMode::Off, None);
    assert_eq!(alone, [1; 10], "every segment has its ACK at first (quick ACKs)");
    let (arrivals, acks) = first_window(GsoMode::Off, card(MS, false));
    assert_eq!((arrivals, acks.len()), (vec![10], 10));
    let (arrivals, acks) = first_window(GsoMode::Off, card(MS, true));
    assert_eq!((arrivals, acks), (vec![10], vec![10]));
    let (_, acks) = first_window(GsoMode::Off, card(50 * US, true));
    assert_eq!(acks, [4, 4, 2], "four frames in 50 µs");
    // The last segment of a burst is pushed, which ends a merged packet.
    let (_, acks) = first_window(GsoMode::Auto, card(MS, true));
    assert_eq!(acks, [2; 5], "bursts of two");
}

/// A ping waits for the interrupt, at most the gap; an idle host is interrupted at once.
#[test]
fn a_lone_packet_does_not_wait_for_an_interrupt() {
    let idle = first_ping(&fast());
    let mut scenario = fast();
    for name in ["s0", "d"] {
        host(&mut scenario, name, |spec| {
            spec.interrupts = Some(InterruptSpec { gap_ns: MS, gro: true });
        });
    }
    assert_eq!(first_ping(&scenario), idle);
}

/// Packets in the fullest millisecond at the receiver, in the second half of a second, with this queue at the sender's interface.
fn fullest_ms(queue: QdiscSpec) -> i64 {
    let mut scenario = fast();
    scenario.duration_ns = 1_000 * MS;
    scenario.record.interval_ns = MS;
    let access_link = scenario.links.iter_mut().find(|link| link.from == "s0").expect("a link");
    access_link.qdisc = queue;
    let mut steady = flow("s0", "d", "fixed");
    if let Transport::Tcp { cc_options, .. } = &mut steady.transport {
        cc_options.insert("window".to_owned(), 100.0);
    }
    scenario.flows.push(steady);
    let recording = run(&scenario);
    let bytes = numbers(&recording, "received", "new_bytes");
    bytes[bytes.len() / 2..].iter().max().copied().unwrap_or(0) / 1448
}

/// fq spaces a window of 100 packets over the round trip of 20 ms, at 1.2 times the rate (`tcp_pacing_ca_ratio`) or, in slow start, twice: at most
/// ten packets and a rounding in a millisecond. Without it the window stays the burst that it began as.
#[test]
fn fq_at_the_interface_paces_every_connection() {
    let paced = fullest_ms(QdiscSpec::from(FqSpec::default()));
    assert!(paced <= 12, "{paced}");
    let plain = fullest_ms(QdiscSpec::NOQUEUE);
    assert!(plain > 40, "{plain}");
    let nopacing = fullest_ms(QdiscSpec::from(FqSpec { pacing: false, ..FqSpec::default() }));
    assert!(nopacing > 40, "{nopacing}");
}
