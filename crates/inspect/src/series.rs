//! Every segment of the flows with what it changed, kept only if it is wanted: what the inference of a path rests on.

use crate::connection::Connection;
use crate::half::{ACK, Kind, Sample};
use crate::result::Shown;
use crate::rows::Place;
use crate::verdicts::{Judged, SegmentVerdict};
use dragstrip_capture::read::Packet;
use std::collections::BTreeMap;

/// Rows at most: a quarter of a gigabyte.
pub const SERIES_MAX: usize = 3_000_000;

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Row {
    /// Data not seen before, beyond all that was.
    New = 0,
    /// Data seen before, or below what was.
    Again = 1,
    /// A probe of a connection at rest or of a closed window.
    Probe = 2,
    /// An acknowledgement.
    Acknowledgement = 3,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    place: Place,
    row: Row,
    /// The receiver reports congestion (ECE, or a new mark by accurate ECN), or the network did (CE).
    marked: bool,
    /// The time is that of an echo.
    echoed: bool,
    seq: u32,
    bytes: u32,
    ip_bytes: u32,
    at: i64,
    /// Data: the first byte's position. Acknowledgement: all below is acknowledged.
    position: i64,
    /// Acknowledgement: bytes acknowledged or SACKed so far.
    delivered: i64,
    in_flight: i64,
    rtt_ns: Option<i64>,
    window: Option<i64>,
}

/// All segments, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Series {
    rows: Vec<Segment>,
    /// Rows that found no room.
    left_out: u64,
}

/// A flow's segments in columns; a row each, in the order of time.
#[derive(Debug, Default)]
pub struct FlowSeries {
    /// The flow's number.
    pub flow: u64,
    /// Data of a full segment.
    pub full: u32,
    /// From the first segment of the handshake to the third, if it is there once.
    pub opening_ns: Option<i64>,
    /// Columns by name; the least integer means "none".
    pub columns: Vec<(&'static str, Vec<i64>)>,
    /// Segments of all flows that found no room.
    pub left_out: u64,
}

impl Series {
    /// After a packet of the direction `side`, which gave the other direction this sample.
    pub fn note(
        &mut self,
        (number, file, side): (usize, usize, usize),
        connection: &Connection,
        packet: &Packet,
        kind: Kind,
        sample: Option<Sample>,
    ) {
        const ECE: u16 = 64;
        let place =
            |side: usize| Place { number: number as u32, side: side as u8, file: file as u8 };
        let row = match kind {
            Kind::Empty => None,
            Kind::Probe => Some(Row::Probe),
            Kind::New => Some(Row::New),
            Kind::Late | Kind::Again => Some(Row::Again),
        };
        let half = &connection.sides[side].half;
        let whole = Segment {
            place: place(side),
            row: Row::Acknowledgement,
            marked: packet.ecn == 3,
            echoed: false,
            seq: packet.seq,
            bytes: packet.payload,
            ip_bytes: packet.ip_bytes,
            at: packet.time_ns,
            position: half.position_of(packet),
            delivered: 0,
            in_flight: half.in_flight(),
            rtt_ns: None,
            window: None,
        };
        if let Some(row) = row {
            self.push(Segment { row, ..whole });
        }
        let reverse = &connection.sides[1 - side].half;
        if packet.flags & ACK != 0 && reverse.segments > 0 {
            self.push(Segment {
                place: place(1 - side),
                marked: if connection.accurate {
                    connection.sides[1 - side].newly_marked > 0
                } else {
                    packet.flags & ECE != 0
                },
                echoed: sample.is_some_and(|sample| sample.echoed),
                position: reverse.acked,
                delivered: reverse.delivered(),
                in_flight: reverse.in_flight(),
                rtt_ns: sample.map(|sample| sample.ns),
                window: reverse.edge.map(|edge| edge - reverse.acked),
                ..whole
            });
        }
    }

    fn push(&mut self, segment: Segment) {
        if self.rows.len() < SERIES_MAX {
            self.rows.push(segment);
        } else {
            self.left_out += 1;
        }
    }

    /// The segments of the flows that are listed.
    pub fn finish(mut self, details: &[Shown]) -> Vec<FlowSeries> {
        self.rows.sort_by_key(|segment| segment.place);
        let flows = details.iter().enumerate().map(|(number, flow)| {
            let start = self.rows.partition_point(|segment| segment.place < flow.place);
            let rows = &self.rows[start..];
            let rows = &rows[..rows.partition_point(|segment| segment.place == flow.place)];
            FlowSeries {
                flow: number as u64,
                full: flow.full,
                opening_ns: flow.opening_ns,
                columns: columns(rows, &flow.every),
                left_out: self.left_out,
            }
        });
        flows.collect()
    }
}

fn columns(rows: &[Segment], judgements: &[Judged]) -> Vec<(&'static str, Vec<i64>)> {
    let verdicts: BTreeMap<(i64, u32), SegmentVerdict> =
        judgements.iter().map(|judged| ((judged.at, judged.seq), judged.verdict)).collect();
    let verdict = |row: &Segment| match row.row {
        Row::New | Row::Probe | Row::Acknowledgement => 0,
        Row::Again => match verdicts.get(&(row.at, row.seq)) {
            Some(SegmentVerdict::Needed) => 1,
            Some(SegmentVerdict::Spurious) => 2,
            Some(SegmentVerdict::Unknown) | None => 3,
            Some(SegmentVerdict::Reordered) => 4,
        },
    };
    let column = |of: &dyn Fn(&Segment) -> i64| rows.iter().map(of).collect::<Vec<i64>>();
    vec![
        ("time_ns", column(&|row| row.at)),
        ("kind", column(&|row| row.row as i64)),
        ("verdict", column(&verdict)),
        ("marked", column(&|row| i64::from(row.marked))),
        ("echoed", column(&|row| i64::from(row.echoed))),
        ("bytes", column(&|row| i64::from(row.bytes))),
        ("ip_bytes", column(&|row| i64::from(row.ip_bytes))),
        ("position", column(&|row| row.position)),
        ("delivered", column(&|row| row.delivered)),
        ("in_flight", column(&|row| row.in_flight)),
        ("rtt_ns", column(&|row| row.rtt_ns.unwrap_or(i64::MIN))),
        ("window", column(&|row| row.window.unwrap_or(i64::MIN))),
    ]
}
