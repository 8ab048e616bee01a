//! What a sender is seen to do, as rows of the recording.

use dragstrip_recording::{CcStateRow, SampleRow, Writer};
use dragstrip_tcp::Endpoint;
use dragstrip_units::Instant;

/// A row of `samples`.
#[inline]
pub(crate) fn sample(tables: &mut Writer, now: Instant, flow: u32, sender: &Endpoint) {
    let snapshot = sender.snapshot();
    let some = |value: Option<u64>| value.map(|value| value as i64);
    let table = &mut tables.samples;
    let row = SampleRow {
        time_ns: now.as_nanos() as i64,
        flow,
        cwnd_bytes: snapshot.cwnd_bytes as i64,
        ssthresh_bytes: some(snapshot.ssthresh_bytes),
        bytes_in_flight: snapshot.bytes_in_flight as i64,
        srtt_ns: some(snapshot.srtt_ns),
        rtt_ns: some(snapshot.rtt_ns),
        min_rtt_ns: some(snapshot.min_rtt_ns),
        pacing_bps: some(snapshot.pacing_bps),
        delivery_bps: some(snapshot.delivery_bps),
        bytes_acked: snapshot.bytes_acked as i64,
        bytes_written: snapshot.bytes_written as i64,
        retransmits: snapshot.retransmits as i64,
        state: table.state.word(snapshot.state),
        limited_by: table.limited_by.word(snapshot.limited_by.name()),
    };
    table.push(row);
}

/// Rows of `cc_state`, one for each variable of the sender's congestion control that has a value.
pub(crate) fn cc_state(tables: &mut Writer, now: Instant, flow: u32, sender: &Endpoint) {
    let table = &mut tables.cc_state;
    sender.variables(&mut |name, value| {
        let row =
            CcStateRow { time_ns: now.as_nanos() as i64, flow, name: table.name.word(name), value };
        table.push(row);
    });
}
