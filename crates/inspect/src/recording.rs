//! A recording of what captures show: what they do not show stays empty.

use crate::limits::Limit;
use crate::result::{Inspected, Shown};
use crate::rows::{INTERVAL_NS, Place, Rows, State};
use dragstrip_recording::{Data, FlowRow, ReceivedRow, Recording, RttRow, SampleRow, Writer};
use std::collections::BTreeMap;

/// Tables of the flows that are listed; times count from the first packet of all captures.
pub(crate) fn of(inspected: &Inspected, details: &[Shown], rows: &Rows) -> Recording {
    let mut writer = Writer::default();
    let origin = inspected.origin_ns;
    let numbers: BTreeMap<Place, u32> =
        details.iter().enumerate().map(|(number, flow)| (flow.place, number as u32)).collect();
    for (number, (flow, inspected)) in details.iter().zip(&inspected.flows).enumerate() {
        let again = &inspected.retransmissions;
        let row = FlowRow {
            flow: number as u32,
            label: writer.flows.label.word(&inspected.label),
            protocol: writer.flows.protocol.word("tcp"),
            cc: writer.flows.cc.word(""),
            sender: writer.flows.sender.word(&flow.ends[0]),
            receiver: writer.flows.receiver.word(&flow.ends[1]),
            start_ns: flow.times[0] - origin,
            stop_ns: flow.times[1].max(flow.times[0]) - origin,
            bytes_acked: flow.acked.cast_signed(),
            bytes_received: inspected.bytes.cast_signed(),
            segments_sent: inspected.segments.cast_signed(),
            retransmits: again.total().cast_signed(),
            rto_count: None,
            reductions: Data::NULL,
            ecn_negotiated: inspected.ecn == Some(true),
            datagrams_lost: None,
        };
        writer.flows.push(row);
    }
    for trip in &rows.trips {
        if let Some(flow) =
            numbers.get(&trip.place).filter(|flow| details[**flow as usize].at_sender)
        {
            writer.rtts.push(RttRow { time_ns: trip.at - origin, flow: *flow, rtt_ns: trip.ns });
        }
    }
    states(&mut writer, details, rows, &numbers, origin);
    writer.finish()
}

/// Rows that repeat a state while nothing happens, of all flows: seven hours of one. A stamp can lie by centuries.
/// Fuzzing reaches the bound a hundred times as often, so that there it is low.
const SILENT_MAX: usize = if cfg!(fuzzing) { 1 << 10 } else { 1 << 18 };

/// Rows of `samples` and `received`: a state each time, and while nothing happens the last one again, up to [`SILENT_MAX`].
fn states(
    writer: &mut Writer,
    details: &[Shown],
    rows: &Rows,
    numbers: &BTreeMap<Place, u32>,
    origin: i64,
) {
    let mut last: Vec<Option<State>> = vec![None; details.len()];
    let mut filled = 0;
    for state in &rows.states {
        let Some(&number) = numbers.get(&state.place) else { continue };
        let flow = &details[number as usize];
        if let Some(before) = last[number as usize] {
            for step in 1..(state.at - before.at) / INTERVAL_NS {
                if filled == SILENT_MAX {
                    break;
                }
                filled += 1;
                let repeated = State { at: before.at + step * INTERVAL_NS, ..before };
                push(writer, flow, number, &repeated, origin, 0);
            }
        }
        let before =
            last[number as usize].replace(*state).map_or(0, |before| received(flow, &before));
        push(writer, flow, number, state, origin, received(flow, state) - before);
    }
}

/// Bytes that the receiver had at a state, as far as this capture point tells.
fn received(flow: &Shown, state: &State) -> i64 {
    if flow.at_sender { state.acked } else { state.bytes.cast_signed() }
}

fn push(
    writer: &mut Writer,
    flow: &Shown,
    number: u32,
    state: &State,
    origin: i64,
    new_bytes: i64,
) {
    let time_ns = state.at - origin;
    writer.received.push(ReceivedRow { time_ns, flow: number, wire_bytes: Data::NULL, new_bytes });
    let slice = flow.slices.partition_point(|slice| slice.1 <= state.at);
    let limit =
        flow.slices.get(slice).filter(|_| flow.at_sender).map_or("", |slice| match slice.2 {
            Limit::Cwnd => "cwnd",
            Limit::Receiver => "rwnd",
            Limit::Application => "app",
        });
    let row = SampleRow {
        time_ns,
        flow: number,
        cwnd_bytes: Data::NULL,
        ssthresh_bytes: None,
        bytes_in_flight: state.in_flight,
        srtt_ns: None,
        rtt_ns: None,
        min_rtt_ns: None,
        pacing_bps: None,
        delivery_bps: None,
        bytes_acked: state.acked,
        bytes_written: Data::NULL,
        retransmits: state.again.cast_signed(),
        state: writer.samples.state.word(""),
        limit: writer.samples.limit.word(limit),
    };
    writer.samples.push(row);
}
