//! TCP over media that stations share: what comes out of them, and that nothing gets lost inside.

use dragstrip_scenario::{
    Application, LinkSpec, MediumSpec, NodeSpec, PfifoSpec, QdiscSpec, Scenario, SocketBuffers,
    Transport,
};
use dragstrip_sim::audit::audit;
use dragstrip_sim::{Column, Data};
use dragstrip_testkit::path::{dumbbell, flow, host, link, router};

fn medium(json: &str) -> MediumSpec {
    serde_json::from_str(json).expect(json)
}

fn over(medium: &str, delay_ns: u64, from: &str, to: &str) -> LinkSpec {
    let qdisc = QdiscSpec::from(PfifoSpec { limit_packets: 100 });
    LinkSpec { medium: Some(medium.to_owned()), qdisc, delay_ns, ..link(from, to) }
}

/// One flow over a medium in both directions.
fn path(spec: &MediumSpec, cc: &str, seconds: u64) -> Scenario {
    let down = over("air", 500_000, "r", "d");
    let mut scenario = dumbbell(1, down, 0, seconds);
    scenario.links[1] = over("air", 500_000, "d", "r");
    scenario.media.insert("air".to_owned(), spec.clone());
    scenario.flows.push(flow("s0", "d", cc));
    scenario
}

/// Runs, closes the books, and gives the goodput in Mbit/s.
fn goodput(scenario: &Scenario) -> f64 {
    let (_, books) = audit(scenario).expect("a valid scenario");
    assert_eq!(books.sent + books.copied, books.delivered + books.dropped + books.waiting);
    assert_eq!(books.waiting, books.records);
    let received: u64 = books.streams.iter().map(|stream| stream.in_order).sum();
    received as f64 * 8.0 / scenario.duration_ns as f64 * 1e3
}

/// Without collisions and with the backoffs of data and ACKs one after the other it would be 23.9 and 18.1 (two segments per
/// ACK). Both count down at the same time, which gains about 12 %; collisions take half of it.
#[test]
fn wifi_g_carries_a_few_percent_more_than_the_sum_of_its_cycles() {
    for (slot, computed) in [("short", 23.9), ("long", 18.1)] {
        let cell = format!(r#"{{"kind": "wifi_g", "rate_bps": 54000000, "slot": "{slot}"}}"#);
        let goodput_mbps = goodput(&path(&medium(&cell), "cubic", 20));
        assert!((1.0..1.08).contains(&(goodput_mbps / computed)), "{slot}: {goodput_mbps}");
    }
}

#[test]
fn a_damaged_frame_costs_time_and_no_packet() {
    let cell = r#"{"kind": "wifi_g", "rate_bps": 54000000, "frame_error": 0.1}"#;
    let clean = r#"{"kind": "wifi_g", "rate_bps": 54000000}"#;
    let (noisy, clean) = (path(&medium(cell), "cubic", 20), path(&medium(clean), "cubic", 20));
    let ratio = goodput(&noisy) / goodput(&clean);
    assert!((0.78..0.92).contains(&ratio), "{ratio}");
}

/// Two packets waiting make a slow link, forty a fast one.
#[test]
fn aggregation_starves_vegas_and_not_cubic() {
    let cell = medium(r#"{"kind": "wifi_n", "mcs": 15, "width_mhz": 40}"#);
    let (vegas, cubic) = (goodput(&path(&cell, "vegas", 20)), goodput(&path(&cell, "cubic", 20)));
    assert!(vegas < 0.5 * cubic, "{vegas} {cubic}");
}

#[test]
fn a_powerline_serves_a_long_queue_better_than_a_short_one() {
    let line = medium(r#"{"kind": "homeplug_av", "phy_bps": 107000000}"#);
    let (vegas, cubic) = (goodput(&path(&line, "vegas", 20)), goodput(&path(&line, "cubic", 20)));
    // 45.5 Mbit/s is the fact sheet's upper bound without beacons and collisions.
    assert!(vegas < cubic && (36.0..46.0).contains(&cubic), "{vegas} {cubic}");
}

/// 1304 kbit/s with an MTU of 1492, if ACKs do not interfere.
#[test]
fn adsl_carries_what_its_cells_leave() {
    let (down, up) =
        (r#"{"kind": "adsl", "rate_bps": 1536000}"#, r#"{"kind": "adsl", "rate_bps": 256000}"#);
    let mut scenario = path(&medium(down), "cubic", 60);
    scenario.links.iter_mut().filter(|link| link.from == "d").for_each(|link| {
        link.medium = Some("up".to_owned());
    });
    scenario.media.insert("up".to_owned(), medium(up));
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.mtu_bytes = 1492;
        }
    }
    let goodput_mbps = goodput(&scenario);
    assert!((goodput_mbps / 1.304 - 1.0).abs() < 0.01, "{goodput_mbps}");
}

/// laptop – bridge – bridge – server: with both hops in one channel a station waits for its own packets to move on.
#[test]
fn two_hops_in_a_channel_carry_about_half_of_one() {
    let mut scenario = path(&medium(r#"{"kind": "wifi_n", "mcs": 7}"#), "cubic", 20);
    let one_hop = goodput(&scenario);
    scenario.nodes.push(NodeSpec::Router { name: "b".to_owned() });
    scenario.links.retain(|link| link.medium.is_none());
    for (from, to) in [("r", "b"), ("b", "d"), ("d", "b"), ("b", "r")] {
        scenario.links.push(over("air", 0, from, to));
    }
    let two = goodput(&scenario);
    assert!((0.4..0.6).contains(&(two / one_hop)), "{one_hop} {two}");
}

/// The forward path over one medium, the return path over another.
fn line(down: &str, up: &str, mtu_bytes: u32, seconds: u64) -> Scenario {
    let mut scenario = path(&medium(down), "reno", seconds);
    scenario.links.iter_mut().filter(|link| link.from == "d").for_each(|link| {
        link.medium = Some("up".to_owned());
    });
    scenario.media.insert("up".to_owned(), medium(up));
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.mtu_bytes = mtu_bytes;
        }
    }
    scenario
}

fn without_timestamps(scenario: &mut Scenario) {
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.sysctl.insert("net.ipv4.tcp_timestamps".to_owned(), "0".to_owned());
        }
    }
}

/// Payload 1448 of 1508 bytes, 332 of 392; blocks are shared, so a second carries 3439 bytes.
#[test]
fn a_modem_carries_what_headers_and_blocks_leave() {
    let modem = r#"{"kind": "modem", "rate_bps": 28800}"#;
    for (mtu, window, expected) in
        [(1500, 4.0, 3439.0 * 1448.0 / 1508.0), (384, 8.0, 3439.0 * 332.0 / 392.0)]
    {
        let mut scenario = line(modem, modem, mtu, 200);
        scenario.flows[0].transport = Transport::Tcp {
            cc: "fixed".to_owned(),
            cc_options: [("window".to_owned(), window)].into(),
            receiver_cc: None,
            socket: SocketBuffers::default(),
        };
        let goodput_bytes = goodput(&scenario) * 1e6 / 8.0;
        // The RTT is a second longer than the handshake's: some segments are sent twice before TCP knows.
        assert!(
            (0.96..1.0).contains(&(goodput_bytes / expected)),
            "{mtu}: {goodput_bytes} {expected}"
        );
    }
}

/// RFC 1144 makes 40 bytes 3. With timestamps 52 stay 52, except where two segments leave in the same millisecond.
#[test]
fn header_compression_gains_little_with_timestamps() {
    let modem = r#"{"kind": "modem", "rate_bps": 28800, "van_jacobson": true}"#;
    let mut scenario = line(modem, modem, 384, 120);
    let stamped = goodput(&scenario) * 1e6 / 8.0;
    without_timestamps(&mut scenario);
    let plain = goodput(&scenario) * 1e6 / 8.0;
    assert!((0.97..1.05).contains(&(stamped / (3439.0 * 332.0 / 392.0))), "{stamped}");
    assert!((0.97..1.0).contains(&(plain / (3439.0 * 344.0 / 355.0))), "{plain}");
}

#[test]
fn a_trace_carries_its_opportunities() {
    // 12 Mbit/s for a second, 1.2 Mbit/s for another.
    let mut opportunities: Vec<u64> = (1..=1000).collect();
    opportunities.extend((1..=100).map(|n| 1000 + 10 * n));
    let trace = format!(r#"{{"kind": "trace", "opportunities_ms": {opportunities:?}}}"#);
    let goodput_mbps = goodput(&line(&trace, &trace, 1500, 20));
    let expected = 6.6 * 1448.0 / 1500.0;
    assert!((0.95..1.0).contains(&(goodput_mbps / expected)), "{goodput_mbps} {expected}");
}

/// The fact sheet expects 80 to 90 Mbit/s, from one collision for every ACK; some ACKs collide more than once.
#[test]
fn a_hub_carries_about_80_mbit_s_and_less_with_other_stations() {
    let hub = medium(r#"{"kind": "ethernet_hub"}"#);
    let alone = goodput(&path(&hub, "cubic", 10));
    assert!((78.0..90.0).contains(&alone), "{alone}");
    let busy = r#"{"kind": "ethernet_hub", "background_stations": 10, "background_load": 0.5}"#;
    let shared_mbps = goodput(&path(&medium(busy), "cubic", 10));
    assert!((10.0..35.0).contains(&shared_mbps), "{shared_mbps}");
}

/// Data and ACKs destroy each other whenever both want to talk; data alone pass.
#[test]
fn a_duplex_mismatch_loses_what_overlaps() {
    let hub = medium(r#"{"kind": "ethernet_hub", "full_duplex": "r"}"#);
    let mut scenario = path(&hub, "cubic", 10);
    let (_, books) = audit(&scenario).expect("a valid scenario");
    let loss_share = books.dropped as f64 / books.sent as f64;
    assert!((0.02..0.5).contains(&loss_share), "{loss_share}");
    scenario.flows = vec![dragstrip_testkit::path::datagrams("s0", "d", 80_000_000, 1_400)];
    let (_, books) = audit(&scenario).expect("a valid scenario");
    assert!(books.dropped == 0 && books.delivered > 10_000, "{books:?}");
}

/// Hosts `a` and `b` beyond the routers `r` and `h`, which a tunnel joins. Its connection, from `v` to `w`, crosses a wire of 1.25 Mbit/s
/// and 20 ms each way, with room for 20 packets.
fn tunnel(inner: &str, outer: &str, seconds: u64) -> Scenario {
    let through = |from: &str, to: &str| LinkSpec {
        medium: Some("tun".to_owned()),
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 50 }),
        ..link(from, to)
    };
    let wire = |from: &str, to: &str| LinkSpec {
        rate_bps: Some(1_250_000),
        delay_ns: 20_000_000,
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 20 }),
        ..link(from, to)
    };
    let mut scenario = dumbbell(0, link("r", "d"), 0, seconds);
    scenario.nodes = ["a", "b", "v", "w"].map(host).into();
    scenario.nodes.extend(["r", "h"].map(router));
    scenario.links = vec![
        link("a", "r"),
        through("r", "h"),
        link("h", "b"),
        link("b", "h"),
        through("h", "r"),
        link("r", "a"),
        wire("v", "w"),
        wire("w", "v"),
    ];
    scenario
        .media
        .insert("tun".to_owned(), medium(r#"{"kind": "tunnel", "flow": "outer", "near": "r"}"#));
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node
            && ["a", "b"].contains(&host.name.as_str())
        {
            host.mtu_bytes = 1450;
        }
    }
    scenario.flows = vec![flow("a", "b", inner), flow("v", "w", outer)];
    scenario.flows[1].label = "outer".to_owned();
    scenario.flows[1].application = Application::Tunnel { header_bytes: 2 };
    scenario
}

fn in_order(scenario: &Scenario, stream: &str) -> u64 {
    let (_, books) = audit(scenario).expect("a valid scenario");
    assert_eq!(books.sent + books.copied, books.delivered + books.dropped + books.waiting);
    assert_eq!(books.waiting, books.records);
    let entry = books.streams.iter().find(|entry| entry.name == stream);
    entry.expect("a stream of this name").in_order
}

/// 1398 bytes of the inner payload in 1452 of the stream, 1448 of those in a frame of 1514.
#[test]
fn a_tunnel_carries_what_two_rows_of_headers_leave() {
    let goodput_bps = in_order(&tunnel("cubic", "cubic", 60), "a-cubic/client") as f64 * 8.0 / 60.0;
    let expected = 1_250_000.0 * 1448.0 / 1514.0 * 1398.0 / 1452.0;
    assert!((0.96..1.0).contains(&(goodput_bps / expected)), "{goodput_bps} {expected}");
}

/// The outer connection repairs the losses on the wire: the inner one does not retransmit for them, and sees delay.
#[test]
fn a_tunnel_hides_losses_and_keeps_order() {
    let mut scenario = tunnel("reno", "reno", 60);
    let netem = r#"{"limit_packets": 1000, "loss": {"model": "random", "probability": 0.02}}"#;
    scenario.links[6].netem = Some(serde_json::from_str(netem).expect(netem));
    // The inner window never fills the tunnel's queue.
    scenario.flows[0].transport = Transport::Tcp {
        cc: "fixed".to_owned(),
        cc_options: [("window".to_owned(), 8.0)].into(),
        receiver_cc: None,
        socket: SocketBuffers::default(),
    };
    let (recording, books) = audit(&scenario).expect("a valid scenario");
    let flows = recording.tables.iter().find(|table| table.name == "flows").expect("flows");
    let retransmits = flows.columns.iter().find(|column| column.name == "retransmits");
    let Some(Column { data: Data::Int(counts), .. }) = retransmits else { panic!("{flows:?}") };
    assert!(counts[1] > 20, "{counts:?}");
    assert!(counts[0] < counts[1] / 4, "{counts:?}");
    assert!(books.streams.iter().all(|stream| stream.in_order <= stream.written));
}

/// Nothing is taken from the tunnel's queue while the outer socket is full: the queue overflows, and the inner flow learns of it.
#[test]
fn a_full_socket_fills_the_tunnels_queue() {
    let mut scenario = tunnel("reno", "reno", 60);
    let (_, books) = audit(&scenario).expect("a valid scenario");
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node
            && host.name == "v"
        {
            host.sysctl.insert("net.ipv4.tcp_wmem".to_owned(), "4096 16384 16384".to_owned());
        }
    }
    let (recording, small) = audit(&scenario).expect("a valid scenario");
    assert!(small.dropped > 0 && books.dropped > 0, "{} {}", small.dropped, books.dropped);
    let queues = recording.tables.iter().find(|table| table.name == "queues").expect("queues");
    let of = |name| queues.columns.iter().find(|column| column.name == name);
    let (Some(Column { data: Data::Int(packets), .. }), Some(_)) =
        (of("backlog_packets"), of("link"))
    else {
        panic!("{queues:?}")
    };
    assert_eq!(packets.iter().max(), Some(&50));
}

/// A tunnel inside a tunnel is as good as one, less its headers.
#[test]
fn tunnels_nest() {
    // Four minutes: while the outermost connection repairs a loss nothing arrives in order for seconds.
    let mut scenario = tunnel("cubic", "cubic", 240);
    let outer_bytes = in_order(&scenario, "a-cubic/client");
    // The outer connection's wire is replaced by a tunnel between separate routers.
    scenario.links.truncate(6);
    scenario.nodes.extend(["x", "y"].map(router));
    scenario.nodes.extend(["p", "q"].map(host));
    let second = |from: &str, to: &str| LinkSpec {
        medium: Some("second".to_owned()),
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 50 }),
        ..link(from, to)
    };
    let wire = |from: &str, to: &str| LinkSpec {
        rate_bps: Some(1_250_000),
        delay_ns: 20_000_000,
        qdisc: QdiscSpec::from(PfifoSpec { limit_packets: 20 }),
        ..link(from, to)
    };
    scenario.links.extend([
        link("v", "x"),
        second("x", "y"),
        link("y", "w"),
        link("w", "y"),
        second("y", "x"),
        link("x", "v"),
        wire("p", "q"),
        wire("q", "p"),
    ]);
    scenario.media.insert(
        "second".to_owned(),
        medium(r#"{"kind": "tunnel", "flow": "outermost", "near": "x"}"#),
    );
    let mut outermost = flow("p", "q", "cubic");
    outermost.label = "outermost".to_owned();
    outermost.application = Application::Tunnel { header_bytes: 2 };
    scenario.flows.push(outermost);
    let two = in_order(&scenario, "a-cubic/client");
    assert!((0.85..1.0).contains(&(two as f64 / outer_bytes as f64)), "{outer_bytes} {two}");
}

#[test]
fn the_same_seed_gives_the_same_air() {
    let mut scenario = path(&medium(r#"{"kind": "wifi_g", "rate_bps": 54000000}"#), "reno", 5);
    let first = goodput(&scenario).to_bits();
    assert_eq!(goodput(&scenario).to_bits(), first);
    scenario.seed += 1;
    assert_ne!(goodput(&scenario).to_bits(), first);
}
