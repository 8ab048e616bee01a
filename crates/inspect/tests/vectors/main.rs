//! Short captures of one situation each, with what is true of it. Times are in milliseconds.

mod trace;

use dragstrip_inspect::{FlowDocument, Inspected, Tally};
use trace::{Fields, Trace, series};

const SENDER: [f64; 3] = [0.0, 40.0, 40.1];
const RECEIVER: [f64; 3] = [0.0, 0.1, 40.1];

fn only(inspection: &Inspected) -> &FlowDocument {
    assert_eq!((inspection.flows.len(), inspection.files[0].missing), (1, 0));
    &inspection.flows[0]
}

fn again(flow: &FlowDocument) -> (u64, u64, u64) {
    let Tally { needed, spurious, unknown } = flow.retransmissions;
    (needed, spurious, unknown)
}

/// Compares the quantiles that the samples determine.
#[track_caller]
fn expect_rtts(flow: &FlowDocument, method: &str, samples: &[f64]) {
    assert_eq!((flow.rtt_ms.method, flow.rtt_ms.samples), (method, samples.len() as u64));
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    for (share, quantile) in
        [(0.05, flow.rtt_ms.p5), (0.5, flow.rtt_ms.p50), (0.95, flow.rtt_ms.p95)]
    {
        let rank = share * (sorted.len() - 1) as f64;
        let below = sorted[rank as usize];
        let above = sorted[(rank as usize + 1).min(sorted.len() - 1)];
        let expected = below + (above - below) * rank.fract();
        assert!(
            quantile.is_some_and(|quantile| (quantile - expected).abs() < 1e-6),
            "{share}: {quantile:?}, not {expected}"
        );
    }
}

#[test]
fn v1_a_delayed_acknowledgement_measures_its_last_segment() {
    let mut trace = Trace::opened(SENDER);
    trace.a(50.0, 1, 1_000);
    trace.a(50.01, 1_001, 1_000);
    trace.b(90.5, 2_001, 1_050, &[]);
    let inspection = trace.inspect();
    let flow = only(&inspection);
    expect_rtts(flow, "ack", &[40.49]);
    assert_eq!(
        (flow.bytes, flow.segments, again(flow), flow.place),
        (2_000, 2, (0, 0, 0), "sender")
    );
    assert_eq!(flow.label, "10.0.0.1:40000 → 10.0.0.2:80");
}

fn one_loss(segments: u32, windows: [u16; 5]) -> Trace {
    let mut trace = Trace::opened(SENDER);
    for index in 0..segments {
        trace.a(50.0 + 0.01 * f64::from(index), 1 + 1_000 * index, 1_000);
    }
    trace.b_window(90.0, 1_001, 1_050, &[], windows[0]);
    trace.b_window(90.1, 1_001, 1_050, &[(2_001, 3_001)], windows[1]);
    trace.b_window(90.2, 1_001, 1_050, &[(2_001, 4_001)], windows[2]);
    trace.b_window(90.3, 1_001, 1_050, &[(2_001, 5_001)], windows[3]);
    trace.a(90.31, 1_001, 1_000);
    trace
}

#[test]
fn v2_one_loss_at_the_sender() {
    let mut trace = one_loss(6, [512; 5]);
    trace.b(90.4, 1_001, 1_050, &[(2_001, 6_001)]);
    trace.b(130.4, 6_001, 1_090, &[]);
    let inspection = trace.inspect();
    let flow = only(&inspection);
    expect_rtts(flow, "ack", &[40.0, 40.08, 40.17, 40.26, 40.35, 40.09]);
    assert_eq!((flow.bytes, flow.segments, again(flow), flow.reordered), (6_000, 7, (1, 0, 0), 0));
}

#[test]
fn v3_two_holes() {
    let mut trace = Trace::opened(SENDER);
    for index in 0..8 {
        trace.a(50.0 + 0.01 * f64::from(index), 1 + 1_000 * index, 1_000);
    }
    trace.b(90.0, 1_001, 1_050, &[]);
    trace.b(90.1, 1_001, 1_050, &[(2_001, 3_001)]);
    trace.b(90.2, 1_001, 1_050, &[(4_001, 5_001), (2_001, 3_001)]);
    trace.b(90.3, 1_001, 1_050, &[(4_001, 6_001), (2_001, 3_001)]);
    trace.a(90.31, 1_001, 1_000);
    trace.b(90.4, 1_001, 1_050, &[(4_001, 7_001), (2_001, 3_001)]);
    trace.a(90.41, 3_001, 1_000);
    trace.b(90.5, 1_001, 1_050, &[(4_001, 8_001), (2_001, 3_001)]);
    trace.a(90.51, 8_001, 1_000);
    trace.b(130.4, 3_001, 1_090, &[(4_001, 8_001)]);
    trace.b(130.5, 8_001, 1_090, &[]);
    trace.b(130.6, 9_001, 1_090, &[]);
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!((flow.bytes, again(flow), flow.reordered), (9_000, (2, 0, 0), 0));
}

/// A receiver that compresses its ACKs (Linux's `tcp_compressed_ack_kick`) reports several new ranges at once, the
/// latest arrival first. The sample is of the highest of them, as `tcp_sacktag_write_queue` comes to it last.
#[test]
fn several_new_blocks_give_the_rtt_of_the_highest() {
    let mut trace = Trace::opened(SENDER);
    for index in 0..6 {
        trace.a(50.0 + f64::from(index), 1 + 1_000 * index, 1_000);
    }
    trace.b(100.0, 1, 1_030, &[(5_001, 6_001), (3_001, 4_001), (1_001, 2_001)]);
    let inspection = trace.inspect();
    expect_rtts(only(&inspection), "ack", &[45.0]);
}

#[test]
fn v4_a_spurious_timeout() {
    let mut sender = Trace::opened(SENDER);
    sender.a(50.0, 1, 1_000);
    sender.a(300.0, 1, 1_000);
    sender.b(350.0, 1_001, 1_050, &[]);
    let echo = sender.inspect();
    assert_eq!(again(only(&echo)), (0, 1, 0), "told by the echo alone");
    sender.b(360.0, 1_001, 1_050, &[(1, 1_001)]);
    let inspection = sender.inspect();
    expect_rtts(only(&inspection), "ack", &[300.0]);
    assert_eq!(again(only(&inspection)), (0, 1, 0), "and once only by D-SACK");

    let mut receiver = Trace::opened(RECEIVER);
    receiver.a(50.0, 1, 1_000);
    receiver.b(50.1, 1_001, 1_050, &[]);
    receiver.a(300.0, 1, 1_000);
    receiver.b(300.1, 1_001, 1_050, &[(1, 1_001)]);
    let inspection = receiver.inspect();
    assert_eq!((again(only(&inspection)), only(&inspection).place), ((0, 1, 0), "receiver"));
}

#[test]
fn v5_reordering_at_the_receiver() {
    let mut trace = Trace::opened(RECEIVER);
    for (ms, seq, id) in [(50.0, 1, 201), (50.1, 2_001, 203), (50.2, 1_001, 202)] {
        let fields = trace::Fields {
            seq,
            ack: 1,
            len: 1_000,
            flags: 16,
            window: 512,
            value: 1_030,
            echo: 2_000,
            ip_id: Some(id),
            ..Default::default()
        };
        trace.add(ms, 0, fields);
        let (ack, sacks) = if seq == 2_001 {
            (1_001, vec![(2_001, 3_001)])
        } else {
            (if seq == 1 { 1_001 } else { 3_001 }, vec![])
        };
        trace.b(ms + 0.01, ack, 1_030, &sacks);
    }
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!(
        (flow.bytes, flow.reordered, again(flow), flow.place),
        (3_000, 1, (0, 0, 0), "receiver")
    );
}

#[test]
fn a_repair_at_the_receiver_is_not_reordering() {
    let mut trace = Trace::opened(RECEIVER);
    trace.a(50.0, 1, 1_000);
    trace.a(50.1, 2_001, 1_000);
    trace.b(50.2, 1_001, 1_050, &[(2_001, 3_001)]);
    trace.a(92.0, 1_001, 1_000);
    trace.b(92.1, 3_001, 1_092, &[]);
    let inspection = trace.inspect();
    assert_eq!((only(&inspection).reordered, again(only(&inspection))), (0, (1, 0, 0)));
}

#[test]
fn v6_a_tail_loss() {
    let mut trace = Trace::opened(SENDER);
    trace.a(50.0, 1, 1_000);
    trace.a(50.01, 1_001, 1_000);
    trace.b(90.0, 1_001, 1_050, &[]);
    trace.a(290.0, 1_001, 1_000);
    trace.b(330.0, 2_001, 1_290, &[]);
    let inspection = trace.inspect();
    expect_rtts(only(&inspection), "ack", &[40.0, 40.0]);
    assert_eq!(again(only(&inspection)), (1, 0, 0));
}

#[test]
fn v7_rack_is_not_reordering() {
    let mut trace = Trace::opened([0.0, 100.0, 100.1]);
    for index in 0..5 {
        trace.a(200.0 + f64::from(index), 1 + 1_000 * index, 1_000);
    }
    trace.b(300.0, 1_001, 1_200, &[]);
    trace.b(302.0, 1_001, 1_200, &[(2_001, 3_001)]);
    trace.b(303.0, 1_001, 1_200, &[(2_001, 4_001)]);
    trace.a(303.1, 5_001, 1_000);
    trace.a(328.0, 1_001, 1_000);
    trace.b(428.0, 4_001, 1_328, &[]);
    let inspection = trace.inspect();
    assert_eq!((again(only(&inspection)), only(&inspection).reordered), ((1, 0, 0), 0));
}

#[test]
fn v8_a_closed_window_is_the_receivers() {
    let mut trace = Trace::opened(SENDER);
    trace.a(50.0, 1, 1_000);
    trace.b_window(90.0, 1_001, 1_050, &[], 0);
    trace.a(300.0, 1_001, 1);
    trace.b_window(340.0, 1_001, 1_050, &[], 0);
    trace.b_window(500.0, 1_001, 1_050, &[], 512);
    trace.a(501.0, 1_001, 1_000);
    trace.b(541.0, 2_001, 1_501, &[]);
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!(
        (flow.bytes, flow.segments, again(flow)),
        (2_000, 2, (0, 0, 0)),
        "the probe is none"
    );
    assert!((flow.limited_s.receiver - 0.451).abs() < 1e-9, "{:?}", flow.limited_s);
}

#[test]
fn v9_a_window_that_moves_with_the_sacks() {
    let mut trace = one_loss(5, [1_000, 1_001, 1_002, 1_003, 0]);
    trace.b_window(90.5, 1_001, 1_050, &[(2_001, 5_001)], 1_001);
    trace.b(130.4, 5_001, 1_090, &[]);
    let inspection = trace.inspect();
    expect_rtts(only(&inspection), "ack", &[40.0, 40.08, 40.17, 40.26, 40.09]);
    assert_eq!(again(only(&inspection)), (1, 0, 0));
}

#[test]
fn v11_a_super_segment_is_measured_by_ranges() {
    for no_length in [false, true] {
        let mut trace = Trace::opened(SENDER);
        trace.no_length = no_length;
        trace.a(50.0, 1, 3_000);
        trace.b(90.5, 2_001, 1_050, &[]);
        trace.b(90.6, 3_001, 1_050, &[]);
        let inspection = trace.inspect();
        expect_rtts(only(&inspection), "ack", &[40.5, 40.6]);
        assert_eq!((only(&inspection).bytes, only(&inspection).segments), (3_000, 1));
    }
}

/// Stamps of the way there and of the way back at REF and at MON, whose clock is 3.7 s ahead.
const THERE: [(f64, f64); 6] =
    [(0.0, 10.0), (1.0, 12.0), (2.0, 14.0), (20.0, 32.0), (60.0, 71.0), (100.0, 111.0)];
const BACK: [(f64, f64); 3] = [(24.5, 14.5), (46.0, 33.0), (81.0, 71.5)];

/// Trace at a capture point: segments by their number, acknowledgements of the segments there at that time.
fn point(stamps: impl Fn((f64, f64)) -> f64, clock_ms: f64) -> Trace {
    let mut trace = Trace::new();
    trace.clock_ms += clock_ms;
    let forward = THERE.iter().enumerate().map(|(index, times)| (stamps(*times), index, true));
    let back = BACK.iter().enumerate().map(|(index, times)| (stamps(*times), index, false));
    let mut all: Vec<_> = forward.chain(back).collect();
    all.sort_by(|first, second| first.0.total_cmp(&second.0));
    for (ms, index, is_data) in all {
        let number = index as u32;
        let fields = trace::Fields { flags: 16, window: 512, ..Default::default() };
        if is_data {
            trace.add(
                ms,
                0,
                trace::Fields {
                    seq: 1 + 1_000 * number,
                    ack: 1,
                    len: 1_000,
                    value: 1_000,
                    echo: 2_000,
                    ..fields
                },
            );
        } else {
            let ack = [3_001, 4_001, 5_001][index];
            trace.add(ms, 1, trace::Fields { seq: 1, ack, value: 2_000, echo: 1_000, ..fields });
        }
    }
    trace
}

#[test]
fn v10_round_trips_between_two_points() {
    let reference = point(|times| times.0, 0.0);
    let monitor = point(|times| times.1, 3_700.0);
    for captures in [[&reference, &monitor], [&monitor, &reference]] {
        let inspection = trace::inspected(&captures);
        assert_eq!(inspection.between.len(), 1, "{inspection:?}");
        let joint = &inspection.between[0];
        assert_eq!(joint.files[0], usize::from(!std::ptr::eq(captures[0], &reference)));
        let rtt = &joint.rtt_ms;
        assert_eq!(rtt.samples, 3);
        let close = |quantile: Option<f64>, expected: f64| {
            quantile.is_some_and(|quantile| (quantile - expected).abs() < 1e-6)
        };
        assert!(close(rtt.p50, 22.0), "{rtt:?}");
        assert!(close(rtt.p5, 20.65) && close(rtt.p95, 24.7), "20.5, 22.0, 25.0: {rtt:?}");
        assert_eq!((joint.there.matched, joint.there.lost, joint.back.matched), (6, 0, 3));
    }
}

/// Segments ten milliseconds apart with acknowledgements in between: PSH has no significance, a short segment has.
#[test]
fn a_pacers_gaps_are_the_congestion_controls() {
    for (last, application) in [(1_000, false), (300, true)] {
        let mut trace = Trace::opened(SENDER);
        trace.b(45.0, 1, 1_040, &[]);
        for index in 0..20 {
            let ms = 50.0 + 10.0 * f64::from(index);
            let fields = trace::Fields {
                flags: 24,
                window: 512,
                ack: 1,
                value: 1_000,
                echo: 2_000,
                ..Default::default()
            };
            trace.add(ms, 0, trace::Fields { seq: 1 + 1_000 * index, len: last, ..fields });
        }
        let inspection = trace.inspect();
        let limited = &inspection.flows[0].limited_s;
        let limited_s = if application { limited.application } else { limited.cwnd };
        assert!((limited_s - 0.19).abs() < 1e-9, "{limited:?}");
    }
}

/// A receiver with the later stamp refuses an original that comes after it: sending it again was needed although it arrived.
#[test]
fn segments_rejected_by_paws_did_not_arrive() {
    let mut near = Trace::opened(SENDER);
    let mut far = Trace::opened([20.0, 20.1, 60.0]);
    near.a(50.0, 1, 1_000);
    near.a(55.0, 1_001, 1_000);
    near.a(60.0, 1, 1_000);
    let stamped = |seq: u32, value: u32| trace::Fields {
        seq,
        len: 1_000,
        ack: 1,
        flags: 16,
        window: 512,
        value,
        echo: 2_000,
        ..Default::default()
    };
    far.b(64.0, 1, 1_060, &[]);
    far.add(70.0, 0, trace::Fields { ip_id: Some(104), ..stamped(1, 1_050) });
    far.add(75.0, 0, trace::Fields { ip_id: Some(105), ..stamped(1_001, 1_055) });
    far.add(80.0, 0, trace::Fields { ip_id: Some(106), ..stamped(1, 1_060) });
    far.b(80.1, 1_001, 1_060, &[]);
    near.b(84.0, 1, 1_060, &[]);
    near.b(100.1, 1_001, 1_060, &[]);
    let inspection = trace::inspected(&[&near, &far]);
    assert_eq!((inspection.between.len(), again(&inspection.flows[0])), (1, (1, 0, 0)));
}

/// The same with the receiver's acknowledgements 30 ms late in its capture, after a delay on its own interface: the
/// data show which segments it rejects.
#[test]
fn segments_rejected_by_paws_follow_from_the_data_alone() {
    let mut near = Trace::opened(SENDER);
    let mut far = Trace::opened([20.0, 20.1, 60.0]);
    for (ms, seq) in [(50.0, 1), (55.0, 1_001), (60.0, 1), (65.0, 1_001)] {
        near.a(ms, seq, 1_000);
    }
    let stamped = |seq: u32, value: u32, id: u16| trace::Fields {
        seq,
        len: 1_000,
        ack: 1,
        flags: 16,
        window: 512,
        value,
        echo: 2_000,
        ip_id: Some(id),
        ..Default::default()
    };
    // The first copy that arrives is the second of the first segment; the originals are then too old.
    far.add(80.0, 0, stamped(1, 1_060, 105));
    far.add(84.0, 0, stamped(1, 1_050, 103));
    far.add(85.0, 0, stamped(1_001, 1_055, 104));
    far.add(90.0, 0, stamped(1_001, 1_065, 106));
    for (ms, ack, echo) in [(110.0, 1_001, 1_060), (120.0, 2_001, 1_065)] {
        far.b(ms, ack, echo, &[]);
        near.b(ms + 20.0, ack, echo, &[]);
    }
    let inspection = trace::inspected(&[&near, &far]);
    assert_eq!((inspection.between.len(), again(&inspection.flows[0])), (1, (2, 0, 0)));
}

/// The capture has an ACK some microseconds before the data that it covers, as taps of two directions do.
#[test]
fn data_after_their_acknowledgement_are_not_retransmissions() {
    let mut trace = Trace::opened(SENDER);
    for index in 0..300 {
        let ms = 50.0 + f64::from(index);
        trace.b(ms, 1_001 + 1_000 * index, 1_000 + ms as u32, &[]);
        trace.a(ms + 0.005, 1 + 1_000 * index, 1_000);
    }
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!((flow.bytes, flow.segments, again(flow)), (300_000, 300, (0, 0, 0)));
    assert_eq!(flow.reordered, 0);

    // All of them follow all the acknowledgements for them.
    let mut trace = Trace::opened(SENDER);
    for index in 0..300 {
        trace.b(50.0, 1_001 + 1_000 * index, 1_050, &[]);
    }
    for index in 0..300 {
        trace.a(50.5, 1 + 1_000 * index, 1_000);
    }
    let inspection = trace.inspect();
    assert_eq!((only(&inspection).bytes, again(only(&inspection))), (300_000, (0, 0, 0)));
}

/// At the receiver: A writes 3 segments, thinks, and writes 3 more, which echo the last acknowledgement.
#[test]
fn an_application_s_pause_is_not_a_round_trip() {
    let mut trace = Trace::opened(RECEIVER);
    let data = |seq, value, echo| trace::Fields {
        seq,
        ack: 1,
        len: 1_000,
        flags: 16,
        window: 512,
        value,
        echo,
        ..trace::Fields::default()
    };
    let mut seq = 1;
    for turn in 0..5 {
        let ms = 100.0 + 500.0 * f64::from(turn);
        for part in 0..3 {
            let echo = if turn == 0 { 2_000 } else { 2_000 + (ms - 499.0) as u32 };
            trace.add(ms + 0.1 * f64::from(part), 0, data(seq, 1_000 + ms as u32, echo));
            seq += 1_000;
        }
        trace.b(ms + 1.0, seq, 1_000 + ms as u32, &[]);
    }
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!(flow.place, "receiver");
    expect_rtts(flow, "handshake", &[40.1]);
}

#[test]
fn missing_data_are_counted_in_segments_without_data_in_the_capture() {
    let mut trace = Trace::opened(SENDER);
    trace.b(90.0, 20_001, 1_050, &[]);
    assert_eq!(trace.inspect().files[0].missing, 20);
    let mut trace = Trace::new();
    trace.b(90.0, 1, 1_050, &[]);
    trace.b(95.0, 14_601, 1_050, &[]);
    assert_eq!(trace.inspect().files[0].missing, 10);
}

/// Before and after a router, whose queue takes from 1 ms to 12 ms.
#[test]
fn a_packet_on_both_sides_of_a_router_is_there_twice() {
    for ttls in [[64, 63], [64, 64]] {
        let mut trace = Trace::opened(SENDER);
        let mut packets = Vec::new();
        for index in 0..100_u32 {
            let ms = 50.0 + 0.25 * f64::from(index);
            let behind = ms + 1.0 + f64::from(index * 7 % 12);
            packets.push((ms, index, ttls[0]));
            packets.push((behind, index, ttls[1]));
        }
        packets.sort_by(|first, second| first.0.total_cmp(&second.0));
        for (ms, index, ttl) in packets {
            trace.ttl = ttl;
            trace.add(ms, 0, identified(1 + 1_000 * index, 200 + index as u16));
        }
        let inspection = trace.inspect();
        let flow = only(&inspection);
        assert_eq!((flow.segments, again(flow), flow.reordered), (100, (0, 0, 0), 0), "{ttls:?}");
        assert_eq!(inspection.files[0].duplicates, 100, "{ttls:?}");
    }
}

/// A full segment with this IP identification.
fn identified(seq: u32, ip_id: u16) -> trace::Fields {
    trace::Fields {
        seq,
        ack: 1,
        len: 1_000,
        flags: 16,
        window: 512,
        value: 1_050,
        echo: 2_000,
        ip_id: Some(ip_id),
        ..trace::Fields::default()
    }
}

/// A sender that writes the same identification into every packet: the time to live distinguishes retransmissions.
#[test]
fn without_an_identification_the_time_to_live_tells_copies() {
    for (second, expected) in [(64, (1, 0, 0)), (63, (0, 0, 0))] {
        let mut trace = Trace::opened(SENDER);
        for (ms, ttl) in [(50.0, 64), (55.0, second)] {
            trace.ttl = ttl;
            trace.add(ms, 0, identified(1, 0));
        }
        trace.ttl = 64;
        trace.b(90.0, 1_001, 1_050, &[]);
        assert_eq!(again(only(&trace.inspect())), expected, "TTL {second}");
    }
}

/// A SYN with 300 bytes, and a SYN-ACK that acknowledges so many of them.
fn fast_open(accepted_bytes: u32) -> Trace {
    let mut trace = Trace::new();
    let opening = Fields { window: 512, opening: true, ..Fields::default() };
    trace.add(0.0, 0, Fields { flags: 2, len: 300, value: 1_000, ..opening.clone() });
    let ack = 1 + accepted_bytes;
    trace.add(40.0, 1, Fields { flags: 18, ack, value: 2_000, echo: 1_000, ..opening });
    if accepted_bytes == 0 {
        trace.a(40.2, 1, 300);
    }
    trace.a(40.3, 301, 1_000);
    trace.b(80.4, 1_301, 1_040, &[]);
    trace
}

#[test]
fn data_in_a_syn_count_once() {
    let inspection = fast_open(300).inspect();
    let flow = only(&inspection);
    assert_eq!((flow.bytes, again(flow)), (1_300, (0, 0, 0)));
    assert_eq!(flow.syn_retransmissions, 0);
}

#[test]
fn data_in_a_syn_that_were_not_taken_are_needed_again() {
    let inspection = fast_open(0).inspect();
    let flow = only(&inspection);
    assert_eq!((flow.bytes, again(flow)), (1_300, (1, 0, 0)));
}

#[test]
fn goodput_at_the_sender_is_what_was_acknowledged() {
    let mut trace = Trace::opened(SENDER);
    for index in 0..10 {
        trace.a(50.0 + f64::from(index), 1 + 1_000 * index, 1_000);
    }
    trace.b(90.0, 6_001, 1_050, &[]);
    let inspection = trace.inspect();
    let flow = only(&inspection);
    assert_eq!((flow.bytes, flow.place), (10_000, "sender"));
    assert!((flow.goodput_bps - 6_000.0 * 8.0 / 0.09).abs() < 1e-6, "{}", flow.goodput_bps);
}

#[test]
fn the_series_has_a_row_per_segment_with_its_bytes() {
    let mut trace = Trace::opened(SENDER);
    trace.a(50.0, 1, 1_000);
    trace.b_window(90.0, 1_001, 1_050, &[], 3);
    let [flow] = series(&trace).try_into().expect("one flow");
    let column = |name: &str| {
        let columns = flow.columns.iter();
        columns.clone().find(|(label, _)| *label == name).map(|(_, values)| values.clone())
    };
    // Data, then its acknowledgement: IP and TCP headers with time stamps are 52 bytes.
    assert_eq!(column("bytes"), Some(vec![1_000, 0]));
    assert_eq!(column("ip_bytes"), Some(vec![1_052, 52]));
    assert_eq!(column("window"), Some(vec![i64::MIN, 3 << 7]));
    assert_eq!(column("rtt_ns"), Some(vec![i64::MIN, 40_000_000]));
}
