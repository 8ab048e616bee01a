//! The state of flows and queues at an instant, and the events between two instants.

use crate::curves::{Span, rows};
use crate::watch::{Fate, Fates};
use dragstrip_recording::{Data, Writer};
use dragstrip_scenario::Scenario;
use dragstrip_sim::{Owner, Vantage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The state of every flow and queue at `at_ns`, by the last row before it; no row for a flow that is not
/// running.
pub fn at(tables: &Writer, scenario: &Scenario, at_ns: i64) -> Value {
    // A row is as old as an interval at most; where there is one per ACK, as the last ACK.
    let lead = 2 * if scenario.record.every_ack { 1_000_000_000 } else { interval_ns(scenario) };
    let span = Span { from_ns: at_ns.saturating_sub(lead), to_ns: at_ns };
    let samples = &tables.samples;
    let mut flows = vec![Value::Null; scenario.flows.len()];
    for row in rows(&samples.time_ns.values(), span) {
        let flow = samples.flow.values()[row];
        let known = |value: i64| (value != Data::NULL).then_some(value);
        let text = |column: &dragstrip_recording::Text| {
            column.names().get(column.index()[row] as usize).cloned()
        };
        flows[flow as usize] = json!({
            "flow": flow,
            "cwnd_bytes": samples.cwnd_bytes.values()[row],
            "ssthresh_bytes": known(samples.ssthresh_bytes.values()[row]),
            "in_flight_bytes": samples.bytes_in_flight.values()[row],
            "srtt_ns": known(samples.srtt_ns.values()[row]),
            "rtt_ns": known(samples.rtt_ns.values()[row]),
            "min_rtt_ns": known(samples.min_rtt_ns.values()[row]),
            "pacing_bps": known(samples.pacing_bps.values()[row]),
            "delivery_bps": known(samples.delivery_bps.values()[row]),
            "acked_bytes": samples.bytes_acked.values()[row],
            "retransmits": samples.retransmits.values()[row],
            "state": text(&samples.state),
            "limit": text(&samples.limit),
        });
    }
    let queues = &tables.queues;
    let mut links = vec![Value::Null; queues.link.names().len()];
    for row in rows(queues.time_ns.values(), span) {
        let link = queues.link.index()[row] as usize;
        links[link] = json!({
            "link": queues.link.names()[link],
            "backlog_bytes": queues.backlog_bytes.values()[row],
            "backlog_packets": queues.backlog_packets.values()[row],
            "enqueued": queues.enqueued.values()[row],
            "dropped": queues.dropped.values()[row],
            "marked": queues.marked.values()[row],
        });
    }
    json!({"t": at_ns, "flows": flows, "links": links})
}

fn interval_ns(scenario: &Scenario) -> i64 {
    i64::try_from(scenario.record.interval_ns).unwrap_or(i64::MAX / 4)
}

/// Drops and marks, to the nanosecond, and changes of a sender's state, to an interval of the recording; in the order
/// of time, `most` of them.
pub fn events(
    tables: &Writer,
    fates: &Fates,
    scenario: &Scenario,
    span: Span,
    most: usize,
) -> Value {
    let mut events: Vec<(i64, Value)> = Vec::new();
    let inside = |fate: &&Fate| (span.from_ns..=span.to_ns).contains(&(fate.at_ns as i64));
    events.extend(
        fates.rows().iter().filter(inside).map(|it| (it.at_ns as i64, event_of(it, scenario))),
    );
    let samples = &tables.samples;
    let (times, flows) = (samples.time_ns.values(), samples.flow.values());
    let lead = 2 * interval_ns(scenario);
    let mut states: BTreeMap<i64, i32> = BTreeMap::new();
    for row in rows(&times, Span { from_ns: span.from_ns.saturating_sub(lead), ..span }) {
        let state = samples.state.index()[row];
        let before = states.insert(flows[row], state);
        if times[row] >= span.from_ns && before.is_some_and(|before| before != state) {
            let to = &samples.state.names()[state as usize];
            // A sender is in `loss` from an expiry of its retransmission timer on.
            let what = if to == "loss" { "rto" } else { "state" };
            let event = json!({"t": times[row], "what": what, "flow": flows[row], "to": to});
            events.push((times[row], event));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.truncate(most);
    events.into_iter().map(|(_, event)| event).collect()
}

fn event_of(fate: &Fate, scenario: &Scenario) -> Value {
    let link = match fate.vantage {
        Vantage::Link { link, netem } => {
            let name = scenario.links.get(link as usize).map_or("", |link| &link.name);
            format!("{name}{}", if netem { ":netem" } else { "" })
        }
        Vantage::Node { .. } => String::new(),
    };
    let what = if fate.marked { "mark" } else { "drop" };
    match fate.owner {
        Owner::Flow { flow, back } => {
            json!({"t": fate.at_ns, "what": what, "flow": flow, "back": back, "link": link})
        }
        Owner::Probe { probe, back } => {
            json!({"t": fate.at_ns, "what": what, "probe": probe, "back": back, "link": link})
        }
    }
}
