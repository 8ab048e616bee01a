//! The inspection document: files, flows, and everything else.

use crate::connection::{Connection, Direction, Echo, Place};
use crate::joint::{Between, BetweenDocument, Rtt};
use crate::labels::{Event, Others};
use crate::limits::{Limit, Slice};
use crate::opening::{FastOpen, fast_open, mptcp};
use crate::quantiles::Quantiles;
use crate::rest::{self, Attempts, OtherRow, QuicRow, Unopened};
use crate::rows;
use crate::state::{File, Flow, Followed};
use crate::table::{Key, Table};
use crate::text::{count_phrase, end_text, seconds};
use crate::twins::twins;
use crate::verdicts::{Judged, Tally};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the document.
const VERSION: u32 = 1;
/// Fewest segments with which a connection's lesser direction is a separate flow: an initial window (RFC 6928); a
/// shorter one has no figures of interest.
const LESSER_SEGMENTS: u64 = 10;

/// Data of a flow that only a recording needs.
pub(crate) struct Shown {
    /// Origin of its rows.
    pub place: rows::Place,
    /// Its ends.
    pub ends: [String; 2],
    /// Times of its beginning and end.
    pub times: [i64; 2],
    /// Bytes acknowledged.
    pub acked: u64,
    /// Limiting factor over time.
    pub slices: Vec<Slice>,
    /// True when the figures are the sender's.
    pub at_sender: bool,
    /// Data of a full segment.
    pub full: u32,
    /// The handshake's round trip.
    pub opening_ns: Option<i64>,
    /// Verdict on each segment below the highest, if recorded.
    pub every: Vec<Judged>,
}

/// The whole.
#[derive(Debug, Serialize)]
pub struct Inspected {
    /// Version of this document's format.
    pub version: u32,
    /// Time of the first listed flow's beginning, nanoseconds since the epoch: times of a recording count from here.
    pub origin_ns: i64,
    /// A file each, in the order in which they were given.
    pub files: Vec<FileDocument>,
    /// A flow each, in the order in which they were first seen.
    pub flows: Vec<FlowDocument>,
    /// Joint results of two captures, of each flow that both contain.
    pub between: Vec<BetweenDocument>,
    /// Data segments that are not new, if labels are requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Unanswered connections.
    pub unanswered: Vec<Attempts>,
    /// Connections that were answered by RST.
    pub refused: Vec<Attempts>,
    /// QUIC's connections.
    pub quic: Vec<QuicRow>,
    /// Traffic other than TCP, by protocol and port, QUIC too.
    pub other: Vec<OtherRow>,
    /// Further remarks: connections without data, packets that could not be read.
    pub notes: Vec<String>,
}

/// A file.
#[derive(Debug, Serialize)]
pub struct FileDocument {
    /// Filled in by the caller.
    pub path: String,
    /// Packets of any kind.
    pub packets: u64,
    /// Segments that were acknowledged and are not in the file, at least.
    pub missing: u64,
    /// Frames that are there twice.
    pub duplicates: u64,
    /// Packets with a stamp before that of a packet before them.
    pub disorder: u64,
    /// Times that the capturing clock was set back.
    pub clock_steps: u64,
    /// Packets left out because the file holds them twice, with the same stamps: it was appended to itself.
    pub repeated: u64,
    /// Packets that the queue at the captured link dropped, by the comments of a simulated capture; absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub queue_drops: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A flow: the data of one direction of a connection.
#[derive(Debug, Serialize)]
pub struct FlowDocument {
    /// Its number.
    pub flow: u64,
    /// Its ends.
    pub label: String,
    /// Distinct bytes of data.
    pub bytes: u64,
    /// From the connection's first packet to the last data or their acknowledgement.
    pub duration_s: f64,
    /// Bytes over duration; at the sender, acknowledged bytes.
    pub goodput_bps: f64,
    /// Round trips.
    pub rtt_ms: Rtt,
    /// Segments with data.
    pub segments: u64,
    /// Retransmitted segments, by verdict.
    pub retransmissions: Tally,
    /// Segments that were overtaken in the network.
    pub reordered: u64,
    /// SYNs of the connection that repeat an earlier one.
    pub syn_retransmissions: u64,
    /// SYN-ACKs of the connection that repeat an earlier one.
    pub syn_ack_retransmissions: u64,
    /// FINs of the connection, of both ends and without data, that repeat an earlier one.
    pub fin_retransmissions: u64,
    /// Seconds by what limited the sender.
    pub limited_s: Limited,
    /// Seconds for which the receiver's window was closed.
    pub closed_s: f64,
    /// Both ends agreed on ECN; null if the capture does not say.
    pub ecn: Option<bool>,
    /// Method of reporting marks: `classic` (RFC 3168) or `accurate` (RFC 9768); null without ECN.
    pub ecn_feedback: Option<&'static str>,
    /// Reported marks: marked packets by accurate ECN's counters; acknowledgements with ECE by classic ECN.
    pub marks_reported: u64,
    /// Multipath TCP (RFC 8684): an `initial` subflow, one that has `joined`, `offered` and not agreed on, or a `subflow` of
    /// which the handshake is not in the capture; null without.
    pub mptcp: Option<&'static str>,
    /// TCP Fast Open (RFC 7413); null without.
    pub fast_open: Option<FastOpen>,
    /// Encapsulation of the segments: tunnels, and link-layer tags other than one VLAN tag; null without.
    pub encapsulation: Option<String>,
    /// Index of the file in which it is measured, from 0.
    pub file: usize,
    /// Position of that capture for this flow: at the sender, the receiver or between.
    pub place: &'static str,
    /// Data segments marked CE.
    pub marked: u64,
    /// Results of other tools, if requested.
    #[serde(flatten)]
    pub others: Option<Others>,
}

/// Seconds by limit.
#[derive(Debug, Default, Serialize)]
pub struct Limited {
    /// The congestion window, or pacing.
    pub cwnd: f64,
    /// The receiver's window.
    pub receiver: f64,
    /// The application, or its socket's buffer.
    pub application: f64,
    /// Unknown.
    pub unknown: f64,
}

pub(crate) fn of(files: &[File], flows: Table<Flow>, passed: u64) -> (Inspected, Vec<Shown>) {
    let mut result = DocumentDraft {
        files,
        shown: Vec::new(),
        missing: vec![0; files.len()],
        flows: Vec::new(),
        between: Vec::new(),
        events: Vec::new(),
        unopened: Unopened::default(),
        carried: BTreeMap::new(),
        lone: 0,
        silent: 0,
        twice: 0,
    };
    let twins = twins(&flows);
    for (number, (key, flow)) in flows.into_entries().enumerate() {
        match flow {
            Flow::Lone(lone) => {
                result.lone += u64::from(!result.unopened.take_lone(files, &key, &lone));
            }
            Flow::Passed => {}
            Flow::Followed(_) if twins.contains(&number) => result.twice += 1,
            Flow::Followed(followed) => result.connection(number, &key, *followed),
        }
    }
    let notes = result.notes(passed);
    let rows = files.iter().zip(&result.missing).map(|(file, missing)| FileDocument {
        path: String::new(),
        packets: file.counts().packets,
        missing: *missing,
        duplicates: file.duplicates,
        disorder: file.order.disorder,
        clock_steps: file.order.steps,
        repeated: file.order.repeated,
        queue_drops: file.counts().queue_drops,
    });
    let inspected = Inspected {
        version: VERSION,
        origin_ns: result.shown.iter().map(|flow| flow.times[0]).min().unwrap_or(0),
        files: rows.collect(),
        flows: result.flows,
        between: result.between,
        events: result.events,
        unanswered: result.unopened.unanswered,
        refused: result.unopened.refused,
        quic: rest::quic(files),
        other: rest::non_tcp_rows(files),
        notes,
    };
    (inspected, result.shown)
}

/// The document under construction.
struct DocumentDraft<'a> {
    files: &'a [File],
    shown: Vec<Shown>,
    missing: Vec<u64>,
    flows: Vec<FlowDocument>,
    between: Vec<BetweenDocument>,
    events: Vec<Event>,
    unopened: Unopened,
    /// Connections by what they were carried in.
    carried: BTreeMap<String, u64>,
    lone: u64,
    silent: u64,
    /// Connections that are there inside a tunnel and outside.
    twice: u64,
}

/// Encapsulations that are noted.
const CARRIED_MAX: usize = 16;

impl DocumentDraft<'_> {
    fn connection(&mut self, number: usize, key: &Key, mut followed: Followed) {
        for (file, point) in &mut followed.points {
            for side in 0..2 {
                point.end(side);
                self.missing[*file] += point.sides[side].missing();
            }
        }
        let halves =
            |side: usize| followed.points.iter().map(move |point| &point.1.sides[side].half);
        let segments = |side: usize| halves(side).map(|half| half.segments).max().unwrap_or(0);
        let bytes = |side: usize| halves(side).map(|half| half.bytes).max().unwrap_or(0);
        let main = usize::from(bytes(1) > bytes(0));
        if let Some((file, point)) = followed.points.first() {
            if !point.layers.is_empty() {
                *self.carried.entry(point.layers.text()).or_default() += 1;
            }
            if segments(main) == 0 || point.unanswered().is_some() {
                let listed = self.unopened.take(self.files, *file, key, point);
                self.silent += u64::from(!listed);
                return;
            }
        }
        let lesser = segments(1 - main) > LESSER_SEGMENTS;
        for side in [Some(main), lesser.then_some(1 - main)].into_iter().flatten() {
            self.flow(number, key, &followed, side);
        }
    }

    fn flow(&mut self, connection: usize, key: &Key, followed: &Followed, side: usize) {
        let number = self.flows.len() as u64;
        let best = followed.points.iter().min_by_key(|(_, point)| rank(point.place(side)));
        let Some((file, point)) = best else { return };
        let mut flow_said = flow(number, label(key, side), *file, point, side);
        let mut two = Vec::new();
        for (index, pair) in followed.pairs.iter().enumerate() {
            let files = [0, index + 1].map(|file| (file, &self.files[file]));
            let Some(joint) = Between::of(pair, side, files) else { continue };
            if joint.near_file() == *file {
                (flow_said.retransmissions, flow_said.reordered) = joint.judged();
                two = joint.verdicts();
            }
            self.between.push(joint.document(number));
        }
        if let Some(labels) = &point.labels {
            let verdicts = point.sides[side].half.verdicts.judgements();
            let at_receiver = point.place(side) == Place::Receiver;
            self.events.extend(labels.events(number, side, &verdicts, at_receiver, &two));
        }
        self.shown.push(shown_flow(connection, *file, key, point, side));
        self.flows.push(flow_said);
    }

    fn notes(&self, passed: u64) -> Vec<String> {
        let mut notes = vec![
            count_phrase(self.lone, "connections of a single packet are not listed"),
            count_phrase(
                self.silent,
                if self.silent == 1 {
                    "connection without data is not listed"
                } else {
                    "connections without data are not listed"
                },
            ),
            count_phrase(
                passed,
                "packets of connections beyond the first 250000 were not looked at",
            ),
            count_phrase(
                self.twice,
                "connections are there twice, inside a tunnel and outside, and are listed once",
            ),
            self.unopened.note(),
        ];
        let carried = self.carried.iter().take(CARRIED_MAX).map(|(text, count)| match count {
            1 => format!("1 TCP connection is inside {text}"),
            _ => format!("{count} TCP connections are inside {text}"),
        });
        notes.extend(carried.map(Some));
        let more = self.carried.values().skip(CARRIED_MAX).sum();
        notes.push(count_phrase(more, "TCP connections are inside other tunnels"));
        for index in 1..self.files.len() {
            if !self.between.iter().any(|joint| joint.files.contains(&index)) {
                notes.push(Some(format!(
                    "file {} shares no answered packet with file 1",
                    index + 1
                )));
            }
        }
        for (index, file) in self.files.iter().enumerate() {
            let about = file_notes(file).into_iter().flatten();
            notes.extend(about.map(|note| Some(format!("file {}: {note}", index + 1))));
        }
        notes.into_iter().flatten().collect()
    }
}

fn file_notes(file: &File) -> Vec<Option<String>> {
    let counts = file.counts();
    vec![
        file.fault.as_ref().map(|fault| format!("could be read only as far as {fault}")),
        counts.cut_short.then(|| "ends in the middle of a packet".to_owned()),
        count_phrase(
            counts.malformed,
            "packets have headers that are cut off or contradict themselves",
        ),
        count_phrase(counts.fragments, "IP fragments were passed over"),
        count_phrase(
            counts.cut_options,
            "segments have their TCP options cut off: no SACK, no time stamps",
        ),
        count_phrase(counts.foreign_links, "packets are of a link type that is not read"),
        count_phrase(counts.unstamped, "packets have no stamp and got that of the packet before"),
        count_phrase(
            counts.said_dropped,
            "packets were dropped at the interface or by the capturing program, as the file says",
        ),
        count_phrase(
            file.order.steps,
            "times the clock was set back: intervals across that are not known",
        ),
        count_phrase(
            file.order.repeated,
            "segments are in the file a second time with the same timestamps and left out: it was appended to itself",
        ),
        count_phrase(
            file.other.quic.passed,
            "packets of QUIC connections beyond the first 4096 count by their port alone",
        ),
    ]
}

fn rank(place: Place) -> u8 {
    match place {
        Place::Sender => 0,
        Place::Between => 1,
        Place::Receiver => 2,
    }
}

fn flow(number: u64, label: String, file: usize, point: &Connection, side: usize) -> FlowDocument {
    let direction = &point.sides[side];
    let place = point.place(side);
    let last_ns = direction.last_ns.max(point.first_ns);
    let duration_s = seconds(last_ns - point.first_ns);
    let (retransmissions, reordered) = judged(direction, place);
    let arrived =
        if place == Place::Sender { direction.half.acked_bytes() } else { direction.half.bytes };
    let syns = |answers: bool| {
        let senders = point.sides.iter().filter(|side| side.answers() == Some(answers));
        senders.map(|side| side.syns.again).sum()
    };
    FlowDocument {
        flow: number,
        label,
        bytes: direction.half.bytes,
        duration_s,
        goodput_bps: if duration_s > 0.0 { arrived as f64 * 8.0 / duration_s } else { 0.0 },
        rtt_ms: rtt(point, direction, place),
        segments: direction.half.segments,
        retransmissions,
        reordered,
        syn_retransmissions: syns(false),
        syn_ack_retransmissions: syns(true),
        fin_retransmissions: point.sides.iter().map(|side| side.half.fin_again).sum(),
        limited_s: limited(direction, place, duration_s),
        closed_s: seconds(direction.half.closed_ns),
        ecn: point.ecn(),
        ecn_feedback: point.echo().map(|echo| match echo {
            Echo::Classic => "classic",
            Echo::Accurate => "accurate",
        }),
        marks_reported: match point.echo() {
            Some(Echo::Accurate) => direction.feedback.packets,
            Some(Echo::Classic) => point.sides[1 - side].ece,
            None => 0,
        },
        mptcp: mptcp(point),
        fast_open: fast_open(point),
        encapsulation: Some(point.layers.text()).filter(|text| !text.is_empty()),
        file,
        place: match place {
            Place::Sender => "sender",
            Place::Receiver => "receiver",
            Place::Between => "between",
        },
        marked: direction.ecn[3],
        others: point.labels.as_ref().map(|labels| labels.results(side)),
    }
}

/// Retransmissions by verdict, and late originals: at the sender nothing that the network does to data can be seen, at the receiver all
/// that comes twice was sent once too often.
fn judged(direction: &Direction, place: Place) -> (Tally, u64) {
    let verdicts = &direction.half.verdicts;
    let mut tally = verdicts.tally();
    match place {
        Place::Sender => return (tally, 0),
        Place::Receiver => tally = Tally { needed: 0, spurious: tally.total(), unknown: 0 },
        Place::Between => {}
    }
    tally.needed += verdicts.repaired;
    tally.unknown += verdicts.late_unknown;
    (tally, verdicts.reordered)
}

/// Round trips by the best method that the place allows.
fn rtt(point: &Connection, direction: &Direction, place: Place) -> Rtt {
    let (method, quantiles) = match place {
        Place::Sender => ("ack", &direction.onward),
        Place::Receiver => ("echo", &direction.backward),
        Place::Between => ("ack+echo", &direction.both),
    };
    let opening = point.opening_rtt_ns().map(|ns| ns as f64);
    if let (0, Some(ns)) = (quantiles.count(), opening) {
        let ms = Some(ns / 1e6);
        return Rtt { method: "handshake", samples: 1, p5: ms, p50: ms, p95: ms };
    }
    let ms = |quantiles: &Quantiles, share| quantiles.at(share).map(|ns| ns / 1e6);
    Rtt {
        method,
        samples: quantiles.count(),
        p5: ms(quantiles, 0.05),
        p50: ms(quantiles, 0.5),
        p95: ms(quantiles, 0.95),
    }
}

fn limited(direction: &Direction, place: Place, duration_s: f64) -> Limited {
    if place != Place::Sender {
        // From elsewhere only the closed window is visible.
        let receiver = seconds(direction.half.closed_ns).min(duration_s);
        return Limited { receiver, unknown: duration_s - receiver, ..Limited::default() };
    }
    let of = |limit: Limit| seconds(direction.limits.spent_ns[limit as usize]);
    let limits = Limited {
        cwnd: of(Limit::Cwnd),
        receiver: of(Limit::Receiver),
        application: of(Limit::Application),
        unknown: 0.0,
    };
    let unknown = (duration_s - limits.cwnd - limits.receiver - limits.application).max(0.0);
    Limited { unknown, ..limits }
}

fn shown_flow(connection: usize, file: usize, key: &Key, point: &Connection, side: usize) -> Shown {
    let direction = &point.sides[side];
    Shown {
        place: rows::Place { number: connection as u32, side: side as u8, file: file as u8 },
        ends: [side, 1 - side].map(|index| end_text(key, index)),
        times: [point.first_ns, direction.last_ns],
        acked: direction.half.acked.max(0).cast_unsigned().min(direction.half.bytes),
        slices: direction.limits.slices.clone().unwrap_or_default(),
        at_sender: point.place(side) == Place::Sender,
        full: direction.full_bytes(),
        opening_ns: point.opening_rtt_ns(),
        every: direction.half.verdicts.judgements(),
    }
}

/// `10.0.0.1:5001 → 10.0.0.2:80`.
fn label(key: &Key, side: usize) -> String {
    format!("{} → {}", end_text(key, side), end_text(key, 1 - side))
}
