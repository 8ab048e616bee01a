//! Results of simple paths that can be computed in advance, compared with the simulation.

use dragstrip_scenario::{
    Adaptation, Application, BfifoSpec, FlowSpec, FqCodelSpec, HistorySpec, HtbSpec, LinkSpec,
    LossModel, NetemSpec, NodeSpec, PfifoSpec, QdiscSpec, Scenario, SfqSpec, SocketBuffers,
    StackProfile, Transport,
};
use dragstrip_sim::{Column, Data, Recording};
use dragstrip_testkit::path::{datagrams, dumbbell, flow, link, ping};

/// A full Ethernet frame, and the payload in it.
const FRAME: f64 = 1514.0;
const PAYLOAD: f64 = 1448.0;

const MS: u64 = 1_000_000;

fn run(scenario: &Scenario) -> Recording {
    dragstrip_sim::run(scenario, &mut |_| true).expect("a valid scenario")
}

/// A link shaped as a testbed would: htb with the burst that tc computes, in front of a FIFO.
fn shaped(rate_bps: u64, leaf: QdiscSpec) -> LinkSpec {
    let burst = HtbSpec::default_burst_bytes(rate_bps);
    let qdisc = QdiscSpec::from(HtbSpec {
        rate_bps,
        ceil_bps: None,
        burst_bytes: burst,
        cburst_bytes: burst,
        overhead_bytes: 0,
        mpu_bytes: 0,
        linklayer_atm: false,
        leaf: Box::new(leaf),
    });
    LinkSpec { qdisc, ..link("r", "d") }
}

fn bfifo(limit_bytes: u64) -> QdiscSpec {
    QdiscSpec::from(BfifoSpec { limit_bytes })
}

fn pfifo(limit_packets: u32) -> QdiscSpec {
    QdiscSpec::from(PfifoSpec { limit_packets })
}

fn table<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a Data {
    let table = recording.tables.iter().find(|entry| entry.name == table).expect("a table");
    let column = table.columns.iter().find(|column| column.name == name).expect("a column");
    let Column { data, .. } = column;
    data
}

fn numbers<'a>(recording: &'a Recording, of: &str, name: &str) -> &'a [i64] {
    let Data::Int(values) = table(recording, of, name) else { panic!("{name} holds no numbers") };
    values
}

/// Rows of a table whose `flow` is this one and whose time lies in the span, as (time, value).
fn of_flow(recording: &Recording, of: &str, name: &str, flow: i64, from_s: u64) -> Vec<(i64, f64)> {
    let times = numbers(recording, of, "time_ns");
    let flows = numbers(recording, of, "flow");
    let values = numbers(recording, of, name);
    let rows = (0..times.len())
        .filter(|&row| flows[row] == flow && times[row] > (from_s * 1_000_000_000) as i64);
    rows.map(|row| (times[row], values[row] as f64)).collect()
}

/// Payload received from `from_s` on, bit/s.
fn goodput_bps(recording: &Recording, flow: i64, from_s: u64) -> f64 {
    let rows = of_flow(recording, "received", "new_bytes", flow, from_s);
    let span = rows.last().expect("data").0 as f64 / 1e9 - from_s as f64;
    rows.iter().map(|row| row.1).sum::<f64>() * 8.0 / span
}

fn assert_near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value}, not {expected}");
}

// ---- rows ----

/// Rows of `received` add up to the totals in `flows`, also with an arrival at the run's last instant and a shorter
/// last interval; every table has a row at the end.
#[test]
fn every_byte_received_is_in_a_row() {
    for duration_ns in [2_000 * MS, 2_050 * MS, 1_999_999_999, 2_000_000_001, 30 * MS] {
        // A datagram each millisecond, over links that take no time.
        let mut scenario = dumbbell(2, LinkSpec { qdisc: pfifo(50), ..link("r", "d") }, 20 * MS, 2);
        scenario.links.iter_mut().for_each(|link| link.rate_bps = None);
        scenario.flows = vec![flow("s0", "d", "cubic"), datagrams("s1", "d", 8_000_000, 1_000)];
        scenario.duration_ns = duration_ns;
        let recording = run(&scenario);
        let rows = numbers(&recording, "received", "new_bytes");
        let total: i64 = numbers(&recording, "flows", "bytes_received").iter().sum();
        assert_eq!(rows.iter().sum::<i64>(), total, "{duration_ns} ns");
        for table in ["received", "samples", "queues"] {
            let last = numbers(&recording, table, "time_ns").last();
            assert_eq!(last, Some(&(duration_ns as i64)), "{table}");
        }
    }
}

// ---- goodput ----

/// A saturated htb link carries rate · 1448/1514 of payload.
#[test]
fn a_shaped_link_delivers_the_payload_share_of_its_rate() {
    for (rate, cc) in [(1_000_000, "reno"), (10_000_000, "cubic"), (100_000_000, "reno")] {
        // 60 ms of buffer, three times the pipe: no reduction empties it.
        let buffer = (rate * 60 / 8_000).max(100_000);
        let mut scenario = dumbbell(1, shaped(rate, bfifo(buffer)), 20 * MS, 30);
        scenario.flows.push(flow("s0", "d", cc));
        assert_near(goodput_bps(&run(&scenario), 0, 10), rate as f64 * PAYLOAD / FRAME, 0.001);
    }
}

/// Fast Ethernet with its FCS, preamble and gap (24 bytes): 1448/1538 of 100 Mbit/s = 94.15.
#[test]
fn a_wire_carries_its_framing_too() {
    let wire = LinkSpec {
        rate_bps: Some(100_000_000),
        overhead_bytes: 24,
        medium: None,
        qdisc: pfifo(200),
        ..link("r", "d")
    };
    let mut scenario = dumbbell(1, wire, 10 * MS, 20);
    scenario.flows.push(flow("s0", "d", "cubic"));
    let goodput_mbps = goodput_bps(&run(&scenario), 0, 10) / 1e6;
    assert!((goodput_mbps - 94.15).abs() < 0.02, "{goodput_mbps} Mbit/s");
}

// ---- delay ----

/// Nothing else on the path: a ping takes the delays and its own transmission times, to the nanosecond.
#[test]
fn an_idle_ping_measures_the_base_rtt() {
    let mut scenario = dumbbell(1, shaped(1_000_000, bfifo(100_000)), 40 * MS, 5);
    scenario.probes.push(ping("d", "s0"));
    // A UDP datagram long after the last ping: a scenario needs a flow.
    scenario.flows.push(datagrams("s0", "d", 8, 8));
    scenario.flows[0].start_ns = 4_950 * MS;
    let recording = run(&scenario);
    // (The one sent as the run ends is not answered any more.)
    let rtts = &numbers(&recording, "probes", "rtt_ns")[..25];
    // 98 bytes at 10 Gbit/s into the router: 78.4 ns, cut to 78 on every idle wire.
    assert_eq!(rtts, [40_000_078; 25]);
}

/// A ping on a store-and-forward path: each wire takes the frame's time again.
#[test]
fn every_wire_takes_the_frame_time_again() {
    let slow = LinkSpec { rate_bps: Some(1_000_000), delay_ns: 3 * MS, ..link("r", "d") };
    let mut scenario = dumbbell(1, slow, 40 * MS, 2);
    scenario.links[1].rate_bps = Some(2_000_000);
    scenario.probes.push(ping("d", "s0"));
    scenario.flows.push(datagrams("s0", "d", 8, 8));
    scenario.flows[0].start_ns = 1_990 * MS;
    // 98 bytes: 392 µs up at 2 Mbit/s, 784 µs down at 1 Mbit/s, 78 ns of the access link.
    let recording = run(&scenario);
    assert_eq!(numbers(&recording, "probes", "rtt_ns")[..10], [44_176_078; 10]);
}

/// A full tail-drop queue of B bytes at rate R delays by 8·B/R.
#[test]
fn a_full_fifo_delays_by_its_size_over_its_rate() {
    let mut scenario = dumbbell(1, shaped(1_000_000, bfifo(100 * 1514)), 10 * MS, 30);
    // Twice what the link carries.
    scenario.flows.push(datagrams("s0", "d", 2_000_000, 1472));
    scenario.probes.push(ping("d", "s0"));
    let recording = run(&scenario);
    let times = numbers(&recording, "probes", "time_ns");
    let rtts = numbers(&recording, "probes", "rtt_ns");
    let late: Vec<f64> = (0..rtts.len())
        .filter(|&row| times[row] > 5_000_000_000 && rtts[row] >= 0)
        .map(|row| rtts[row] as f64 / 1e6)
        .collect();
    assert!(late.len() > 10, "most pings find a gap left by a full frame");
    // 100 frames of 12.112 ms, and what is left of the time of the one that went last; a ping takes the
    // room that was too little for a frame.
    let (full, frame) = (10.0 + 100.0 * 12.112, 12.112);
    for rtt in &late {
        assert!((full - 1.2 * frame..=full + frame).contains(rtt), "{rtt} ms, not {full}");
    }
}

// ---- windows ----

/// (largest window, threshold that followed) in packets of every episode of losses from `from_s` on.
fn reductions(recording: &Recording, from_s: u64) -> Vec<(f64, f64)> {
    let of = |name| of_flow(recording, "samples", name, 0, from_s);
    let (windows, thresholds, retransmits) =
        (of("cwnd_bytes"), of("ssthresh_bytes"), of("retransmits"));
    let mut peaks = Vec::new();
    let mut peak = 0.0_f64;
    let mut last = 0;
    for at in 1..windows.len() {
        peak = peak.max(windows[at - 1].1);
        if retransmits[at].1 > retransmits[at - 1].1 && at - last > 100 {
            peaks.push((peak / PAYLOAD, thresholds[at].1 / PAYLOAD));
            (peak, last) = (0.0, at);
        }
    }
    // The first one had begun before.
    peaks.into_iter().skip(1).collect()
}

/// Reno fills pipe and buffer, P + B packets, loses one, and continues with half of that.
#[test]
fn renos_sawtooth_turns_at_pipe_plus_buffer() {
    const BUFFER: u32 = 60;
    let mut scenario = dumbbell(1, shaped(5_000_000, pfifo(BUFFER)), 100 * MS, 150);
    scenario.record.interval_ns = 10 * MS;
    scenario.flows.push(flow("s0", "d", "reno"));
    let recording = run(&scenario);
    let reductions = reductions(&recording, 5);
    assert!(reductions.len() >= 5, "{reductions:?}");
    // The pipe, 100 ms in frames of 1514 bytes.
    let turn = 5_000_000.0 * 0.1 / 8.0 / FRAME + f64::from(BUFFER);
    for (peak, trough) in &reductions {
        // One more is in transmission, and one is what does not fit.
        assert!((turn..=turn + 3.0).contains(peak), "{peak} packets, not {turn}");
        assert!(
            (turn / 2.0 - 1.0..=turn / 2.0 + 2.0).contains(trough),
            "{trough}, not half of {turn}"
        );
    }
}

/// BBR at 1 Mbit/s without delay fills its own minimum RTT: the window settles at 14 packets (seed 004's
/// recordings: 14 ± 2), and at 4 every ten seconds (PROBE_RTT).
#[test]
fn bbr_at_one_megabit_holds_fourteen_packets_and_four_in_probe_rtt() {
    let mut scenario = dumbbell(1, shaped(1_000_000, bfifo(104_857)), MS, 60);
    scenario.record.interval_ns = 10 * MS;
    scenario.flows.push(flow("s0", "d", "bbr"));
    let recording = run(&scenario);
    let windows = of_flow(&recording, "samples", "cwnd_bytes", 0, 20);
    let mut windows: Vec<f64> = windows.iter().map(|row| row.1 / PAYLOAD).collect();
    let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((least - 4.0).abs() < 0.01, "{least} in PROBE_RTT");
    windows.sort_by(f64::total_cmp);
    let median = windows[windows.len() / 2];
    assert!((12.0..=16.0).contains(&median), "{median} packets");
}

// ---- sharing ----

/// Ten flows through a fair queue share alike. Buckets enough that none collide.
#[test]
fn fair_queues_share_alike() {
    let fq_codel = QdiscSpec::from(FqCodelSpec {
        limit_packets: 10_240,
        memory_limit_bytes: 32 << 20,
        flows: 65_536,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes: 1514,
        drop_batch_packets: 64,
        ecn: false,
        ce_threshold_ns: None,
        ce_threshold_selector: None,
    });
    let sfq = QdiscSpec::from(SfqSpec {
        limit_packets: 1_270,
        flows: 127,
        divisor: 65_536,
        depth_packets: 127,
        quantum_bytes: 1514,
        perturb_ns: 0,
    });
    for (name, qdisc) in [("fq_codel", fq_codel), ("sfq", sfq)] {
        let mut scenario = dumbbell(10, shaped(20_000_000, qdisc), 20 * MS, 30);
        for index in 0..10 {
            // Unequal competitors.
            let cc = ["reno", "cubic"][index % 2];
            scenario.flows.push(flow(&format!("s{index}"), "d", cc));
        }
        let recording = run(&scenario);
        let shares: Vec<f64> = (0..10).map(|flow| goodput_bps(&recording, flow, 10)).collect();
        let mean = shares.iter().sum::<f64>() / 10.0;
        for share in &shares {
            assert!((share / mean - 1.0).abs() < 0.02, "{name}: {shares:?}");
        }
        assert_near(shares.iter().sum(), 20e6 * PAYLOAD / FRAME, 0.005);
    }
    // In one queue the loss decides: far from alike.
    let mut scenario = dumbbell(10, shaped(20_000_000, pfifo(100)), 20 * MS, 30);
    for index in 0..10 {
        scenario.flows.push(flow(&format!("s{index}"), "d", ["reno", "cubic"][index % 2]));
    }
    let recording = run(&scenario);
    let shares: Vec<f64> = (0..10).map(|flow| goodput_bps(&recording, flow, 10)).collect();
    let mean = shares.iter().sum::<f64>() / 10.0;
    assert!(shares.iter().any(|share| (share / mean - 1.0).abs() > 0.1), "{shares:?}");
}

// ---- datagrams ----

/// A constant rate is constant: 1000 bytes at 3 Mbit/s are 375 datagrams a second, none of them
/// late by a rounding error.
#[test]
fn datagrams_keep_their_rate_exactly() {
    let mut scenario = dumbbell(1, shaped(10_000_000, bfifo(100_000)), 5 * MS, 60);
    scenario.flows.push(datagrams("s0", "d", 3_000_000, 1_000));
    let recording = run(&scenario);
    assert_eq!(numbers(&recording, "flows", "segments_sent"), [60 * 375]);
    assert_eq!(numbers(&recording, "flows", "datagrams_lost"), [0]);
    // Every interval of 100 ms holds 37 or 38 of them.
    let rows = of_flow(&recording, "received", "new_bytes", 0, 1);
    assert!(rows.iter().all(|row| row.1 == 37_000.0 || row.1 == 38_000.0));
    assert_near(goodput_bps(&recording, 0, 1), 3e6, 0.0005);
}

/// Datagrams faster than the link: what is not carried is lost, and both add up.
#[test]
fn an_overloaded_link_loses_the_rest() {
    let mut scenario = dumbbell(1, shaped(1_000_000, bfifo(20_000)), 5 * MS, 60);
    scenario.flows.push(datagrams("s0", "d", 2_000_000, 1_000));
    let recording = run(&scenario);
    let carried = numbers(&recording, "flows", "bytes_received")[0] as f64 * 8.0 / 60.0;
    assert_near(carried, 1e6 * 1_000.0 / 1_042.0, 0.005);
    let lost_datagrams = numbers(&recording, "flows", "datagrams_lost")[0];
    let received = numbers(&recording, "flows", "bytes_received")[0] / 1_000;
    let sent_datagrams = numbers(&recording, "flows", "segments_sent")[0];
    // `lost_datagrams` includes everything that has not arrived, the queue's 19 too.
    assert_eq!(sent_datagrams, received + lost_datagrams);
    let dropped = *numbers(&recording, "queues", "dropped").last().expect("a queue");
    assert!((lost_datagrams - dropped).abs() <= 20, "{lost_datagrams} lost, {dropped} dropped");
}

/// Two equal impairments are independent: each draws from a separate stream.
#[test]
fn every_impairment_draws_for_itself() {
    let mut scenario = dumbbell(2, link("r", "d"), 10 * MS, 20);
    let loss = LossModel::Random { probability: 0.1, correlation: 0.0 };
    for index in 0..2 {
        let access = scenario.links.iter_mut().find(|link| link.from == format!("s{index}"));
        access.expect("its link").netem =
            Some(NetemSpec { loss: loss.clone(), ..NetemSpec::default() }.into());
        scenario.flows.push(datagrams(&format!("s{index}"), "d", 800_000, 1_000));
    }
    let recording = run(&scenario);
    let [a, b] = [0, 1].map(|flow| of_flow(&recording, "received", "new_bytes", flow, 0));
    assert_ne!(a, b);
    // 2000 datagrams each: 200 lost, standard deviation 13.
    for datagrams in numbers(&recording, "flows", "datagrams_lost") {
        assert!((150..250).contains(datagrams), "{datagrams} of 2000");
    }
}

/// Every hundredth packet, by count: neither more nor fewer.
#[test]
fn a_periodic_loss_takes_every_hundredth() {
    let mut scenario = dumbbell(1, link("r", "d"), 10 * MS, 20);
    let access = scenario.links.iter_mut().find(|link| link.from == "s0").expect("its link");
    let loss = LossModel::Every { packets: 100 };
    access.netem = Some(NetemSpec { loss, ..NetemSpec::default() }.into());
    scenario.flows.push(datagrams("s0", "d", 800_000, 1_000));
    let recording = run(&scenario);
    assert_eq!(numbers(&recording, "flows", "datagrams_lost"), [20]);
    assert!(!scenario.draws());
}

// ---- what applications ask for ----

/// Bits in 20 s over 100 Mbit/s and a round trip of 50 ms of a flow whose ends ask for these buffers.
/// ACKs that are held and let go together come in bunches, a slot apart; so many packets a slot are a rate.
#[test]
fn packets_wait_for_slots() {
    let with = |link: usize, words: &str| {
        let mut scenario = dumbbell(1, shaped(10_000_000, bfifo(1 << 20)), 20 * MS, 20);
        scenario.flows.push(flow("s0", "d", "reno"));
        let netem = NetemSpec::parse_text(words).unwrap();
        scenario.links[link].netem = Some(Box::new(netem));
        assert_eq!(scenario.validate(), Ok(()));
        run(&scenario)
    };
    let (down, up) = (2, 3);
    let bunched = with(up, "slot 20ms limit 10000");
    let times = numbers(&bunched, "rtts", "time_ns");
    let late = times.iter().filter(|time| **time > 5_000 * MS as i64).collect::<Vec<_>>();
    let gaps = late.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0);
    // The next slot is counted from the first ACK that comes after one: a bottleneck's packet or two later, at most.
    assert!(gaps.clone().all(|gap| (20 * MS as i64..23 * MS as i64).contains(&gap)));
    assert!(gaps.count() > 600);
    let limited = with(down, "slot 20ms packets 4 limit 10000");
    assert_near(goodput_bps(&limited, 0, 5), 4.0 * PAYLOAD * 8.0 / 0.020, 0.01);
}

fn goodput_with(send: Option<u32>, receive: Option<u32>, sysctl: &[(&str, &str)]) -> f64 {
    let bottleneck = LinkSpec { rate_bps: Some(100_000_000), ..link("r", "d") };
    let mut scenario = dumbbell(1, bottleneck, 50 * MS, 20);
    scenario.flows.push(flow("s0", "d", "cubic"));
    let Transport::Tcp { socket, .. } = &mut scenario.flows[0].transport else { panic!() };
    *socket = SocketBuffers { send_bytes: send, receive_bytes: receive };
    for node in &mut scenario.nodes {
        if let NodeSpec::Host(host) = node {
            host.sysctl.extend(sysctl.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        }
    }
    numbers(&run(&scenario), "flows", "bytes_received")[0] as f64 * 8.0
}

/// A chosen receive buffer is doubled, half of it is offered once a round trip, and it never grows.
#[test]
fn a_receive_buffer_that_is_asked_for_limits_the_flow() {
    let rate = goodput_with(None, Some(65_536), &[]) / 20.0;
    // The window is a segment (of memory) short of the 64 KiB, and rounded; slow start takes half a second.
    assert_near(rate, 65_536.0 * 8.0 / 0.05, 0.06);
    // Twice the 208 KiB that are granted at most, regardless of the request ...
    let most = goodput_with(None, Some(10_000_000), &[]);
    assert_near(most, goodput_with(None, Some(212_992), &[]), 1e-9);
    assert!(most < goodput_with(None, None, &[]) * 0.5, "untuned, the window does not grow");
    // ... and more where the host grants it.
    assert!(
        goodput_with(None, Some(10_000_000), &[("net.core.rmem_max", "10000000")]) > 1.5 * most
    );
}

/// A chosen send buffer, doubled, holds what is unacknowledged with its overhead; a writer sleeps until a third of it is free.
#[test]
fn a_send_buffer_that_is_asked_for_limits_the_flow() {
    let rate = goodput_with(Some(65_536), None, &[]) / 20.0;
    let whole = 131_072.0 * 8.0 / 0.05;
    assert!((0.3..1.0).contains(&(rate / whole)), "{rate}, all of the buffer would be {whole}");
    let most = goodput_with(Some(10_000_000), None, &[]);
    assert_near(most, goodput_with(Some(212_992), None, &[]), 1e-9);
    assert!(most < goodput_with(None, None, &[]) * 0.7);
    assert!(
        goodput_with(Some(10_000_000), None, &[("net.core.wmem_max", "10000000")]) > 1.4 * most
    );
}

// ---- bytes ----

/// Request, answer, think time: 20 ms in flight and 80 ms of thinking are ten answers a second.
#[test]
fn questions_are_asked_one_at_a_time() {
    let mut scenario = dumbbell(1, link("r", "d"), 20 * MS, 10);
    scenario.flows.push(flow("s0", "d", "reno"));
    scenario.flows[0].application = Application::RequestResponse {
        request_bytes: 300,
        response_bytes: 1_000,
        think_ns: 80 * MS,
    };
    let recording = run(&scenario);
    // Handshake and first answer take 40 ms, the hundredth comes at 9.94 s.
    assert_eq!(numbers(&recording, "flows", "bytes_received"), [100 * 1_000]);
}

/// The receiver plays a video that the sender has: 4 Mbit/s is the highest rate below nine tenths of what 5 Mbit/s carry.
#[test]
fn a_video_has_the_rate_that_the_path_carries() {
    let mut scenario = dumbbell(1, shaped(5_000_000, bfifo(1 << 17)), 20 * MS, 120);
    scenario.flows.push(FlowSpec { label: "video".to_owned(), ..flow("d", "s0", "cubic") });
    scenario.flows[0].application = Application::Video {
        ladder_bps: [1, 2, 4, 8].map(|mbit| mbit * 1_000_000).to_vec(),
        segment_ns: 4_000 * MS,
        buffer_ns: 20_000 * MS,
        startup_ns: 4_000 * MS,
        adaptation: Adaptation::Throughput,
        reservoir_ns: 0,
        cushion_ns: 0,
        safety: 0.9,
        request_bytes: 500,
    };
    let recording = run(&scenario);
    let column = |name| numbers(&recording, "video", name);
    assert_eq!(column("rate_bps")[..2], [1_000_000, 4_000_000]);
    assert!(column("rate_bps")[1..].iter().all(|rate| *rate == 4_000_000));
    assert!(column("waited_ns")[1..].iter().all(|ns| *ns == 0), "it never stalls");
    let (asked_ns, arrived, level) = (column("asked_ns"), column("time_ns"), column("buffer_ns"));
    // 2 MB in frames at 5 Mbit/s and a round trip, less the burst that a shaper lets pass at once after a pause; slow start
    // after it takes some more.
    let frame = FRAME * 8.0 / 5e6;
    let sending = (2_000_000.0 / PAYLOAD * frame + 0.020 - 2.0 * frame) * 1e9;
    for place in 1..arrived.len() {
        let took = (arrived[place] - asked_ns[place]) as f64;
        assert!((sending..sending + 100e6).contains(&took), "{took} ns, at least {sending}");
        let played = arrived[place] - arrived[place - 1];
        assert_eq!(level[place], level[place - 1] - played + 4_000 * MS as i64);
    }
    // Full: it asks every 4 s.
    let last = asked_ns.len() - 1;
    assert_eq!(asked_ns[last] - asked_ns[last - 1], 4_000 * MS as i64);
    let whole: i64 = column("bytes").iter().sum();
    let came = numbers(&recording, "flows", "bytes_received")[0];
    assert!((whole..whole + 2_000_000).contains(&came), "{came} of {whole} bytes");
}

/// A transfer of a known size takes handshake, transmission and the round trips of slow start.
#[test]
fn a_transfer_ends_when_its_last_byte_arrives() {
    let mut scenario = dumbbell(1, shaped(10_000_000, bfifo(1 << 20)), 20 * MS, 10);
    scenario.flows.push(flow("s0", "d", "reno"));
    scenario.flows[0].application = Application::Bulk { bytes: Some(2_000_000) };
    let recording = run(&scenario);
    let took = numbers(&recording, "flows", "stop_ns")[0] as f64 / 1e9;
    assert_eq!(numbers(&recording, "flows", "bytes_received"), [2_000_000]);
    // 1382 frames of 1514 bytes at 10 Mbit/s are 1.673 s; a round trip each for the handshake and
    // for the window of 10, which 20 ms of 10 Mbit/s (16.5 frames) outgrows at once.
    let sending = 2_000_000.0 / PAYLOAD * FRAME * 8.0 / 1e7;
    assert!((sending + 0.020..sending + 0.050).contains(&took), "{took} s, {sending} s of sending");
}

/// The second connection between two hosts of 2.6.27 begins with the threshold that the first has learnt, unless
/// configured otherwise; on 6.1 it does not.
#[test]
fn a_connection_inherits_the_threshold_of_the_one_before() {
    let second_begins_with = |profile, save: bool| {
        let bottleneck = LinkSpec { rate_bps: Some(2_000_000), qdisc: pfifo(20), ..link("r", "d") };
        let mut scenario = dumbbell(1, bottleneck, 10_000_000, 12);
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node {
                host.profile = profile;
                let value = u8::from(!save).to_string();
                host.sysctl.insert("net.ipv4.tcp_no_metrics_save".to_owned(), value);
            }
        }
        let first = FlowSpec { stop_ns: Some(9_000 * MS), ..flow("s0", "d", "reno") };
        let second =
            FlowSpec { label: "second".to_owned(), start_ns: 10_000 * MS, ..first.clone() };
        scenario.flows = vec![first, FlowSpec { stop_ns: None, ..second }];
        let recording = run(&scenario);
        of_flow(&recording, "samples", "ssthresh_bytes", 1, 10)[0].1 / PAYLOAD
    };
    let fresh = dragstrip_sim::Data::NULL as f64 / PAYLOAD;
    let inherited = second_begins_with(StackProfile::Linux2627, true);
    assert!((2.0..60.0).contains(&inherited), "{inherited} segments");
    assert_eq!(second_begins_with(StackProfile::Linux2627, false), fresh);
    assert_eq!(second_begins_with(StackProfile::Linux6, true), fresh);
}

/// The cached metrics of a host from before the run initialise its first connection, with saving on or off.
#[test]
fn a_connection_begins_with_the_host_s_history() {
    for save in ["0", "1"] {
        let bottleneck = LinkSpec { rate_bps: Some(2_000_000), qdisc: pfifo(20), ..link("r", "d") };
        let mut scenario = dumbbell(1, bottleneck, 10_000_000, 1);
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node {
                host.profile = StackProfile::Linux2627;
                host.sysctl.insert("net.ipv4.tcp_no_metrics_save".to_owned(), save.to_owned());
                host.history = Some(HistorySpec { ssthresh_packets: 7, ..HistorySpec::default() });
            }
        }
        scenario.flows = vec![flow("s0", "d", "reno")];
        let recording = run(&scenario);
        let begins = of_flow(&recording, "samples", "ssthresh_bytes", 0, 0)[0].1 / PAYLOAD;
        assert!((begins - 7.0).abs() < 1e-9, "{begins} segments");
    }
}

/// A sender that its send buffer limits is application-limited only from one write to the next, as in the kernel
/// (`tcp_rate_check_app_limited` in `tcp_sendmsg_locked`). If every ACK that finds nothing to send set the mark, BBR
/// would stay in STARTUP here for the whole run, with 84 Mbit/s and 35,000 segments retransmitted.
#[test]
fn bbr_limited_by_its_send_buffer_leaves_startup() {
    let bottleneck = LinkSpec {
        rate_bps: Some(100_000_000),
        delay_ns: 20 * MS,
        qdisc: bfifo(1 << 20),
        ..link("r", "d")
    };
    for seed in 1..=5 {
        let mut scenario = dumbbell(10, bottleneck.clone(), 20 * MS, 30);
        scenario.seed = seed;
        scenario.flows = (0..10)
            .map(|n| flow(&format!("s{n}"), "d", if n == 9 { "bbr" } else { "cubic" }))
            .collect();
        scenario.flows[9].start_ns = 2_000 * MS;
        scenario.record.cc_state = true;
        let recording = run(&scenario);
        let again = of_flow(&recording, "samples", "retransmits", 9, 10);
        let late = again.last().expect("samples").1 - again[0].1;
        assert!(late < 1_000.0, "seed {seed}: {late} segments retransmitted in the last 20 s");
        let Data::Text { names, index } = table(&recording, "cc_state", "name") else {
            panic!("variables have names")
        };
        let Data::Float(values) = table(&recording, "cc_state", "value") else {
            panic!("variables are numbers")
        };
        let times = numbers(&recording, "cc_state", "time_ns");
        let gains = (0..times.len()).filter(|&row| {
            names[index[row] as usize] == "pacing_gain" && times[row] > 10_000_000_000
        });
        let highest = gains.map(|row| values[row]).fold(0.0, f64::max);
        assert!((1.0..=1.25).contains(&highest), "seed {seed}: a pacing gain of {highest}");
    }
}
