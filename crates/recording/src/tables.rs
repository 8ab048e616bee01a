//! The tables and columns of a recording: the definition itself.
//!
//! A new column stands at the end of its table, a new table at the end of the list. `cargo xtask generate` then writes
//! what follows from it. What that means for the format: `docs/decisions/0013-a-recording-only-grows.md`.

use crate::define::{STAGED_ROWS, TableDef, tables};
use crate::recording::{Column, Recording, Table};
use crate::stores::{Flag, Float, Int, Key, MaybeInt, PackedInt, PackedMaybeInt, Store, Text};

tables! {
    flows: Flows of FlowRow, "a row per flow",
    "In request/response the answers are the flow's data: `samples` and counters are the answering side's." {
        flow: Key, "", "number, in the scenario's order; the other tables refer to it";
        label: Text, "", "as in the scenario";
        protocol: Text, "", "`tcp`, `quic` or `udp`; `program` of a program of the user's own";
        cc: Text, "", "congestion control as in the scenario; empty text for `udp`";
        sender: Text, "", "host as in the scenario";
        receiver: Text, "", "host as in the scenario";
        start_ns: Int, "ns", "when the application began";
        stop_ns: Int, "ns", "when it ended: the last byte of a bounded flow arrived, its stop time was reached, or the run ended";
        bytes_acked: Int, "B", "acknowledged to the sender";
        bytes_received: Int, "B", "new bytes at the receiver";
        segments_sent: Int, "1", "segments with data (datagrams for UDP), retransmissions included";
        retransmits: Int, "1", "of these, retransmissions";
        rto_count: MaybeInt, "1", "expiries of the retransmission timer; empty where a kernel counts those of several flows together";
        reductions: Int, "1", "times that the window was reduced";
        ecn_negotiated: Flag, "", "both ends agreed on ECN";
        datagrams_lost: MaybeInt, "1", "UDP only: datagrams sent and not received";
    }
    samples: Samples of SampleRow, "a row per TCP flow and interval, or per ACK (`record.every_ack`)", "" {
        time_ns: PackedInt, "ns", "when the sample was taken";
        flow: Key, "", "the flow";
        cwnd_bytes: PackedInt, "B", "congestion window: packets times the MSS";
        ssthresh_bytes: PackedMaybeInt, "B", "slow-start threshold: packets times the MSS; empty while it is infinite";
        bytes_in_flight: PackedInt, "B", "packets in flight (tcp_packets_in_flight) times the MSS";
        srtt_ns: PackedMaybeInt, "ns", "smoothed RTT; empty before the first RTT sample";
        rtt_ns: PackedMaybeInt, "ns", "latest RTT sample";
        min_rtt_ns: PackedMaybeInt, "ns", "smallest RTT that the sender's filter holds";
        pacing_bps: PackedMaybeInt, "bit/s", "pacing rate; empty while there is none";
        delivery_bps: PackedMaybeInt, "bit/s", "latest delivery-rate sample";
        bytes_acked: PackedInt, "B", "acknowledged so far";
        bytes_written: PackedInt, "B", "what the sending socket took so far, sent or not";
        retransmits: PackedInt, "1", "retransmissions so far";
        state: Text, "", "`disorder`, `cwr`, `recovery` or `loss`; while nothing is wrong the algorithm's own phase";
        limit: Text, "", "what limits the sender: `cwnd`, `pacing`, `small_queue` (TCP small queues; only the simulator tells it), `rwnd`, `sndbuf`, `app`, or `handshake` while no connection exists";
    }
    received: Received of ReceivedRow, "a row per flow and interval of its life", "The last interval ends with the run and may be shorter than the others." {
        time_ns: Int, "ns", "the interval's end";
        flow: Key, "", "the flow";
        wire_bytes: Int, "B", "Ethernet frames with data that arrived in the interval, retransmissions included";
        new_bytes: Int, "B", "bytes of the interval's data that are new to the receiver";
    }
    rtts: Rtts of RttRow, "a row per RTT sample of the sender (`record.rtts`)", "" {
        time_ns: PackedInt, "ns", "when the ACK arrived";
        flow: Key, "", "the flow";
        rtt_ns: PackedInt, "ns", "the RTT";
    }
    probes: Probes of ProbeRow, "a row per ping", "" {
        time_ns: Int, "ns", "when the request was sent";
        probe: Text, "", "the probe's label";
        target: Text, "", "node that answers";
        rtt_ns: MaybeInt, "ns", "request to answer; empty if lost";
        lost: Flag, "", "no answer until the end of the run";
    }
    queues: Queues of QueueRow, "a row per link with a queue and interval",
    "A netem behind a link appears as `LINK:netem`." {
        time_ns: Int, "ns", "the interval's end";
        link: Text, "", "the link";
        backlog_bytes: Int, "B", "waiting now";
        backlog_packets: Int, "1", "waiting now";
        enqueued: Int, "1", "packets so far";
        dropped: Int, "1", "packets so far";
        marked: Int, "1", "packets so far (ECN)";
        sent_bytes: Int, "B", "Ethernet frames that have left the queue so far";
    }
    cc_state: CcState of CcStateRow,
    "a row per TCP flow, sample and variable of its congestion control (`record.cc_state`)",
    "[Algorithms](algorithms.md) says which variables each algorithm has, and in which units. One that has no value yet has no row. The kernel engines have what the kernel tells (`TCP_CC_INFO`): some of BBR's and Vegas'." {
        time_ns: PackedInt, "ns", "when the sample was taken";
        flow: Key, "", "the flow";
        name: Text, "", "the variable";
        value: Float, "", "its value, in the unit of that variable";
    }
    spp: Spp of SppRow,
    "a row per round trip of a TCP flow between captures at both of its ends, by the rules of SPP (`record.captures`)",
    "From the packet that the receiver's capture shows last before one of the other direction to that one, as SPP pairs them; stamps are in microseconds ([how](../how-to/captures.md#as-caia-measured))." {
        time_ns: Int, "ns", "its middle at the sender";
        flow: Key, "", "the flow";
        rtt_ns: Int, "ns", "from the sender and back to it, without the receiver's time";
        processing_ns: Int, "ns", "the receiver's time, from the one packet to the other";
    }
    tcpstat: Tcpstat of TcpstatRow,
    "a row per TCP flow and second of its receiver's capture, by the rules of tcpstat (`record.captures`)",
    "Seconds count from the flow's first packet there; the last one ends behind the last packet." {
        time_ns: Int, "ns", "the second's end";
        flow: Key, "", "the flow";
        ip_bytes: Int, "B", "IP packets of the flow that arrived in it, from IP's header on, retransmissions included";
    }
    video: Video of VideoRow, "a row per segment of a video that has come (`application.kind` is `video`)",
    "Segments last equally long. A recording without a player has no such file." {
        time_ns: Int, "ns", "when its last byte came";
        flow: Key, "", "the flow";
        asked_ns: Int, "ns", "when the player asked for it";
        rate_bps: Int, "bit/s", "its bit rate, a rung of the ladder";
        bytes: Int, "B", "its size";
        buffer_ns: Int, "ns", "buffered and not yet played, it included";
        waited_ns: Int, "ns", "time since the segment before, or since the flow's start, in which nothing was played";
        playing: Flag, "", "playback goes on from here; false: it waits for more";
    }
    frames: Frames of FrameRow, "a row per frame of a live video over RTP (`application.kind` is `rtp`)",
    "A recording without such a video has no such file." {
        time_ns: Int, "ns", "when it was captured";
        flow: Key, "", "the flow";
        target_bps: Int, "bit/s", "SCReAMv2's target bit rate then";
        bytes: Int, "B", "its size, headers of RTP included";
        packets: Int, "1", "packets that it takes";
        sent: Int, "1", "of these, sent until the end of the run";
        arrived: Int, "1", "of these, arrived until the end of the run";
        arrived_ns: MaybeInt, "ns", "when all of them had arrived; empty: some are missing";
        window_bytes: Int, "B", "SCReAMv2's reference window when it was captured";
        srtt_ns: MaybeInt, "ns", "smoothed RTT then; empty before the first report";
        queue_delay_ns: Int, "ns", "latest queueing delay then, as the sender estimates it";
    }
}

/// Tables that came after the first recordings: where one has no rows, it is neither written nor part of the hash.
pub const LATER: &[&str] = &["video", "frames"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, Kind, Word};

    fn a_row_each() -> Writer {
        let mut writer = Writer::default();
        let probe = writer.probes.probe.word("d-s1");
        let target = writer.probes.target.word("s1");
        writer.probes.push(ProbeRow { time_ns: 5, probe, target, rtt_ns: None, lost: true });
        writer.rtts.push(RttRow { time_ns: 7, flow: 3, rtt_ns: 40 });
        let name = writer.cc_state.name.word("bw_bps");
        writer.cc_state.push(CcStateRow { time_ns: 7, flow: 3, name, value: 0.5 });
        writer
    }

    #[test]
    fn what_is_finished_is_what_is_defined() {
        let recording = a_row_each().finish();
        assert_eq!(recording.tables.len(), TABLES.len());
        for (table, def) in recording.tables.iter().zip(TABLES) {
            assert_eq!(table.name, def.name);
            let columns: Vec<(&str, Kind)> =
                table.columns.iter().map(|column| (column.name, column.data.kind())).collect();
            let defined: Vec<(&str, Kind)> =
                def.columns.iter().map(|column| (column.name, column.kind)).collect();
            assert_eq!(columns, defined);
        }
        let [probes, rtts, cc_state] =
            ["probes", "rtts", "cc_state"].map(|name| recording.table(name).expect("a table"));
        assert_eq!(probes.columns[3].data, Data::Int(vec![Data::NULL].into()));
        assert_eq!(rtts.columns[1].data, Data::Int(vec![3].into()));
        assert_eq!(cc_state.columns[3].data, Data::Float(vec![0.5]));
    }

    #[test]
    fn staged_rows_are_those_that_are_pushed() {
        for rows in [0, 1, STAGED_ROWS - 1, STAGED_ROWS, STAGED_ROWS + 1, 3 * STAGED_ROWS] {
            let (mut pushed, mut staged) = (Writer::default(), Writer::default());
            for row in 0..rows {
                for (writer, is_staged) in [(&mut pushed, false), (&mut staged, true)] {
                    let table = &mut writer.cc_state;
                    let name = table.name.word(if row % 3 == 0 { "cwnd" } else { "bw_bps" });
                    let row = CcStateRow { time_ns: row as i64, flow: 7, name, value: row as f64 };
                    if is_staged {
                        table.stage(row);
                    } else {
                        table.push(row);
                    }
                    let probe = writer.probes.probe.word("p");
                    let (rtt_ns, lost) =
                        ((row.time_ns % 2 == 0).then_some(9), row.time_ns % 5 == 0);
                    let row = ProbeRow { time_ns: 1, probe, target: Word::default(), rtt_ns, lost };
                    if is_staged {
                        writer.probes.stage(row);
                    } else {
                        writer.probes.push(row);
                    }
                }
            }
            let (pushed, staged) = (pushed.finish(), staged.finish());
            assert_eq!(staged.table("probes").expect("probes").columns[0].data.len(), rows);
            assert_eq!(pushed.sha256(), staged.sha256(), "{rows} rows");
        }
    }

    #[test]
    fn an_earlier_row_can_be_changed() {
        let mut writer = a_row_each();
        writer.probes.rtt_ns.set(0, Some(9));
        writer.probes.lost.set(0, false);
        let recording = writer.finish();
        let probes = recording.table("probes").expect("probes");
        assert_eq!(probes.columns[3].data, Data::Int(vec![9].into()));
        assert_eq!(probes.columns[4].data, Data::Bool(vec![false]));
    }

    /// Names are unique, and suffixes tell units.
    #[test]
    fn the_definition_is_sound() {
        for (index, table) in TABLES.iter().enumerate() {
            assert!(TABLES[..index].iter().all(|other| other.name != table.name), "{}", table.name);
            for column in table.columns {
                assert_eq!(table.column(column.name), Some(column), "{} twice", column.name);
                assert_eq!(column.table, table.name);
                for (suffix, unit) in [("_ns", "ns"), ("_bytes", "B"), ("_bps", "bit/s")] {
                    assert!(
                        !column.name.ends_with(suffix) || column.unit == unit,
                        "{}.{} in {}",
                        table.name,
                        column.name,
                        column.unit
                    );
                }
            }
        }
    }
}
