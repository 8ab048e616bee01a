//! State of flows and their senders as rows of the recording.

use crate::apps::Flow;
use dragstrip_quic::Snapshot;
use dragstrip_recording::{CcStateRow, FlowRow, Flows, SampleRow, Writer};
use dragstrip_scenario::FlowSpec;
use dragstrip_tcp::Endpoint;
use dragstrip_units::Instant;

/// A row of `samples`.
#[inline]
pub(crate) fn sample(tables: &mut Writer, now: Instant, flow: u32, sender: &Endpoint) {
    let snapshot = sender.snapshot();
    let signed = |value: Option<u64>| value.map(|value| value as i64);
    let table = &mut tables.samples;
    let row = SampleRow {
        time_ns: now.as_nanos() as i64,
        flow,
        cwnd_bytes: snapshot.cwnd_bytes as i64,
        ssthresh_bytes: signed(snapshot.ssthresh_bytes),
        bytes_in_flight: snapshot.bytes_in_flight as i64,
        srtt_ns: signed(snapshot.srtt_ns),
        rtt_ns: signed(snapshot.rtt_ns),
        min_rtt_ns: signed(snapshot.min_rtt_ns),
        pacing_bps: signed(snapshot.pacing_bps),
        delivery_bps: signed(snapshot.delivery_bps),
        bytes_acked: snapshot.bytes_acked as i64,
        bytes_written: snapshot.bytes_written as i64,
        retransmits: snapshot.retransmits as i64,
        state: table.state.word(snapshot.state),
        limit: table.limit.word(snapshot.limit.name()),
    };
    table.stage(row);
}

/// Rows of `cc_state`, one for each variable of the sender's congestion control that has a value.
pub(crate) fn cc_state(tables: &mut Writer, now: Instant, flow: u32, sender: &Endpoint) {
    let table = &mut tables.cc_state;
    sender.variables(&mut |name, value| {
        let row =
            CcStateRow { time_ns: now.as_nanos() as i64, flow, name: table.name.word(name), value };
        table.stage(row);
    });
}

/// A row of `flows`: what is known at the end of the run. `sender` has the flow's data, `new_bytes` have arrived.
pub(crate) fn flow(
    table: &mut Flows,
    index: u32,
    flow: &Flow,
    spec: &FlowSpec,
    sender: Option<&Endpoint>,
    new_bytes: u64,
    now: Instant,
) {
    let ended = flow.ended.unwrap_or(now.min(flow.stop)).max(flow.start);
    let count = |get: fn(&Endpoint) -> u64| sender.map_or(0, get) as i64;
    let lost_datagrams = flow.datagrams_sent.saturating_sub(flow.datagrams_received);
    let row = FlowRow {
        flow: index,
        label: table.label.word(&spec.label),
        protocol: table.protocol.word(if sender.is_some() { "tcp" } else { "udp" }),
        cc: table.cc.word(spec.transport.name()),
        sender: table.sender.word(&spec.sender),
        receiver: table.receiver.word(&spec.receiver),
        start_ns: flow.start.as_nanos() as i64,
        stop_ns: ended.as_nanos() as i64,
        bytes_acked: count(Endpoint::bytes_acked),
        bytes_received: new_bytes as i64,
        segments_sent: sender.map_or(flow.datagrams_sent, Endpoint::segments_sent) as i64,
        retransmits: count(Endpoint::retransmits),
        rto_count: Some(count(Endpoint::rto_count)),
        reductions: match &flow.session {
            Some(session) => session.scream().reductions() as i64,
            None => count(Endpoint::reductions),
        },
        ecn_negotiated: sender.is_some_and(Endpoint::ecn_negotiated),
        datagrams_lost: sender.is_none().then_some(lost_datagrams as i64),
    };
    table.push(row);
}

/// Limit of a sender of QUIC. The stacks do not tell it: one with data that leaves half of its window unused, and has no rate of the
/// algorithm's, waits for credit of flow control. Their pacers leave less unused, also while the window doubles.
fn quic_limit(sender: &Snapshot) -> &'static str {
    let Snapshot { established, idle, cwnd_bytes, bytes_in_flight, pacing_bps, .. } = *sender;
    let is_unused = bytes_in_flight < cwnd_bytes / 2;
    match (established, idle, pacing_bps) {
        (false, ..) => "handshake",
        (true, true, _) => "app",
        (true, false, Some(_)) if bytes_in_flight < cwnd_bytes * 9 / 10 => "pacing",
        (true, false, None) if is_unused => "rwnd",
        (true, false, _) => "cwnd",
    }
}

/// A row of `samples` of a sender of QUIC, in this state.
pub(crate) fn quic_sample(
    tables: &mut Writer,
    now: Instant,
    flow: u32,
    sender: &Snapshot,
    state: &str,
) {
    let signed = |value: Option<u64>| value.map(|value| value as i64);
    let limit = quic_limit(sender);
    let table = &mut tables.samples;
    let row = SampleRow {
        time_ns: now.as_nanos() as i64,
        flow,
        cwnd_bytes: sender.cwnd_bytes as i64,
        ssthresh_bytes: signed(sender.ssthresh_bytes),
        bytes_in_flight: sender.bytes_in_flight as i64,
        srtt_ns: signed(sender.srtt_ns),
        rtt_ns: signed(sender.rtt_ns),
        min_rtt_ns: signed(sender.min_rtt_ns),
        pacing_bps: signed(sender.pacing_bps),
        delivery_bps: None,
        bytes_acked: sender.bytes_acked as i64,
        bytes_written: sender.bytes_written as i64,
        retransmits: sender.packets_lost as i64,
        state: table.state.word(state),
        limit: table.limit.word(limit),
    };
    table.stage(row);
}

/// A row of `flows` of a flow of QUIC.
pub(crate) fn quic_flow(
    table: &mut Flows,
    index: u32,
    flow: &Flow,
    spec: &FlowSpec,
    sender: &Snapshot,
    new_bytes: u64,
    now: Instant,
) {
    let ended = flow.ended.unwrap_or(now.min(flow.stop)).max(flow.start);
    let row = FlowRow {
        flow: index,
        label: table.label.word(&spec.label),
        protocol: table.protocol.word("quic"),
        cc: table.cc.word(spec.transport.name()),
        sender: table.sender.word(&spec.sender),
        receiver: table.receiver.word(&spec.receiver),
        start_ns: flow.start.as_nanos() as i64,
        stop_ns: ended.as_nanos() as i64,
        bytes_acked: sender.bytes_acked as i64,
        bytes_received: new_bytes as i64,
        segments_sent: sender.packets_sent as i64,
        retransmits: sender.packets_lost as i64,
        rto_count: None,
        reductions: sender.reductions as i64,
        ecn_negotiated: false,
        datagrams_lost: None,
    };
    table.push(row);
}
