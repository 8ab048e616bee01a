//! What an inspection says: files, flows, and what stands beside them.

use crate::between::{Between, BetweenSaid, Rtt};
use crate::connection::{Connection, Direction, Echo, Place};
use crate::labels::{Event, Others};
use crate::limits::{Limit, Slice};
use crate::opening::{FastOpen, fast_open, mptcp};
use crate::quantiles::Quantiles;
use crate::rest::{self, Attempts, OtherRow, QuicRow, Unopened};
use crate::rows;
use crate::state::{File, Flow, Followed};
use crate::table::{Key, Table};
use crate::text::{counted, end_text, seconds};
use crate::twins::twins;
use crate::verdicts::{Judged, Tally};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the document.
const VERSION: u32 = 1;
/// A connection's lesser direction is a flow of its own beyond an initial window of segments (RFC 6928): below it there is nothing to tell.
const LESSER_SEGMENTS: u64 = 10;

/// What a recording needs of a flow besides what is said.
pub(crate) struct Shown {
    /// Where its rows come from.
    pub place: rows::Place,
    /// Its ends.
    pub ends: [String; 2],
    /// When it began and ended.
    pub times: [i64; 2],
    /// Bytes acknowledged.
    pub acked: u64,
    /// What limited it when.
    pub slices: Vec<Slice>,
    /// Whether the figures are the sender's.
    pub at_sender: bool,
    /// Data of a full segment.
    pub full: u32,
    /// The handshake's round trip.
    pub opening_ns: Option<i64>,
    /// What was said of each segment below the highest, if that was kept.
    pub every: Vec<Judged>,
}

/// The whole.
#[derive(Debug, Serialize)]
pub struct Inspected {
    /// Of this form.
    pub version: u32,
    /// When the first listed flow began, nanoseconds since the epoch: times of a recording count from here.
    pub origin_ns: i64,
    /// A file each, in the order in which they were given.
    pub files: Vec<FileSaid>,
    /// A flow each, in the order in which they were first seen.
    pub flows: Vec<FlowSaid>,
    /// What two captures say together, of each flow that both show.
    pub between: Vec<BetweenSaid>,
    /// Data segments that are not new, where labels are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Connections that nobody answered.
    pub unanswered: Vec<Attempts>,
    /// Connections that were answered by RST.
    pub refused: Vec<Attempts>,
    /// QUIC's connections.
    pub quic: Vec<QuicRow>,
    /// What is not TCP, by protocol and port, QUIC too.
    pub other: Vec<OtherRow>,
    /// What else there was: connections without data, packets that could not be read.
    pub notes: Vec<String>,
}

/// A file.
#[derive(Debug, Serialize)]
pub struct FileSaid {
    /// Filled in by whoever knows it.
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
}

/// A flow: the data of one direction of a connection.
#[derive(Debug, Serialize)]
pub struct FlowSaid {
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
    /// Of these, sent again.
    pub retransmissions: Tally,
    /// Of these, overtaken on the way.
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
    /// How the receiver reports marks: `classic` (RFC 3168) or `accurate` (RFC 9768); null without ECN.
    pub ecn_feedback: Option<&'static str>,
    /// What it reported: marked packets by accurate ECN's counters; acknowledgements with ECE by classic ECN.
    pub marks_reported: u64,
    /// Multipath TCP (RFC 8684): an `initial` subflow, one that has `joined`, `offered` and not agreed on, or a `subflow` of
    /// which the handshake is not in the capture; null without.
    pub mptcp: Option<&'static str>,
    /// TCP Fast Open (RFC 7413); null without.
    pub fast_open: Option<FastOpen>,
    /// What the segments were carried in: tunnels, and tags of the line other than one VLAN tag; null without.
    pub encapsulation: Option<String>,
    /// Which file it is measured in, from 0.
    pub file: usize,
    /// Where that capture stands for this flow: at the sender, the receiver or between.
    pub place: &'static str,
    /// Data segments marked CE.
    pub marked: u64,
    /// What others say, where that is asked for.
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
    /// Not to be told.
    pub unknown: f64,
}

pub(crate) fn of(files: &[File], flows: Table<Flow>, passed: u64) -> (Inspected, Vec<Shown>) {
    let mut said = Said {
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
                said.lone += u64::from(!said.unopened.take_lone(files, &key, &lone));
            }
            Flow::Passed => {}
            Flow::Followed(_) if twins.contains(&number) => said.twice += 1,
            Flow::Followed(followed) => said.connection(number, &key, *followed),
        }
    }
    let notes = said.notes(passed);
    let rows = files.iter().zip(&said.missing).map(|(file, missing)| FileSaid {
        path: String::new(),
        packets: file.counts().packets,
        missing: *missing,
        duplicates: file.duplicates,
        disorder: file.order.disorder,
        clock_steps: file.order.steps,
        repeated: file.order.repeated,
    });
    let inspected = Inspected {
        version: VERSION,
        origin_ns: said.shown.iter().map(|flow| flow.times[0]).min().unwrap_or(0),
        files: rows.collect(),
        flows: said.flows,
        between: said.between,
        events: said.events,
        unanswered: said.unopened.unanswered,
        refused: said.unopened.refused,
        quic: rest::quic(files),
        other: rest::other(files),
        notes,
    };
    (inspected, said.shown)
}

/// While it is put together.
struct Said<'a> {
    files: &'a [File],
    shown: Vec<Shown>,
    missing: Vec<u64>,
    flows: Vec<FlowSaid>,
    between: Vec<BetweenSaid>,
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

impl Said<'_> {
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
        let mut said = flow(number, label(key, side), *file, point, side);
        let mut two = Vec::new();
        for (index, pair) in followed.pairs.iter().enumerate() {
            let files = [0, index + 1].map(|file| (file, &self.files[file]));
            let Some(between) = Between::of(pair, side, files) else { continue };
            if between.near_file() == *file {
                (said.retransmissions, said.reordered) = between.judged();
                two = between.every();
            }
            self.between.push(between.said(number));
        }
        if let Some(labels) = &point.labels {
            let one = point.sides[side].half.verdicts.every();
            let at_receiver = point.place(side) == Place::Receiver;
            self.events.extend(labels.events(number, side, &one, at_receiver, &two));
        }
        self.shown.push(shown(connection, *file, key, point, side));
        self.flows.push(said);
    }

    fn notes(&self, passed: u64) -> Vec<String> {
        let mut notes = vec![
            counted(self.lone, "connections of a single packet are not listed"),
            counted(
                self.silent,
                if self.silent == 1 {
                    "connection without data is not listed"
                } else {
                    "connections without data are not listed"
                },
            ),
            counted(passed, "packets of connections beyond the first 250000 were not looked at"),
            counted(
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
        notes.push(counted(more, "TCP connections are inside other tunnels"));
        for index in 1..self.files.len() {
            if !self.between.iter().any(|between| between.files.contains(&index)) {
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
        counted(counts.malformed, "packets have headers that are cut off or contradict themselves"),
        counted(counts.fragments, "IP fragments were passed over"),
        counted(
            counts.cut_options,
            "segments have their TCP options cut off: no SACK, no time stamps",
        ),
        counted(counts.foreign_links, "packets are of a link type that is not read"),
        counted(counts.unstamped, "packets have no stamp and got that of the packet before"),
        counted(
            counts.said_dropped,
            "packets were dropped at the interface or by the capturing program, as the file says",
        ),
        counted(
            file.order.steps,
            "times the clock was set back: intervals across that are not known",
        ),
        counted(
            file.order.repeated,
            "segments are in the file a second time with the same timestamps and left out: it was appended to itself",
        ),
        counted(
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

fn flow(number: u64, label: String, file: usize, point: &Connection, side: usize) -> FlowSaid {
    let own = &point.sides[side];
    let place = point.place(side);
    let last_ns = own.last_ns.max(point.first_ns);
    let duration_s = seconds(last_ns - point.first_ns);
    let (retransmissions, reordered) = judged(own, place);
    let arrived = if place == Place::Sender { own.half.acked_bytes() } else { own.half.bytes };
    let syns = |answers: bool| {
        let sent = point.sides.iter().filter(|side| side.answers() == Some(answers));
        sent.map(|side| side.syns.again).sum()
    };
    FlowSaid {
        flow: number,
        label,
        bytes: own.half.bytes,
        duration_s,
        goodput_bps: if duration_s > 0.0 { arrived as f64 * 8.0 / duration_s } else { 0.0 },
        rtt_ms: rtt(point, own, place),
        segments: own.half.segments,
        retransmissions,
        reordered,
        syn_retransmissions: syns(false),
        syn_ack_retransmissions: syns(true),
        fin_retransmissions: point.sides.iter().map(|side| side.half.fin_again).sum(),
        limited_s: limited(own, place, duration_s),
        closed_s: seconds(own.half.closed_ns),
        ecn: point.ecn(),
        ecn_feedback: point.echo().map(|echo| match echo {
            Echo::Classic => "classic",
            Echo::Accurate => "accurate",
        }),
        marks_reported: match point.echo() {
            Some(Echo::Accurate) => own.feedback.packets,
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
        marked: own.ecn[3],
        others: point.labels.as_ref().map(|labels| labels.others(side)),
    }
}

/// Retransmissions by verdict, and late originals: at the sender nothing that the network does to data can be seen, at the receiver all
/// that comes twice was sent once too often.
fn judged(own: &Direction, place: Place) -> (Tally, u64) {
    let verdicts = &own.half.verdicts;
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
fn rtt(point: &Connection, own: &Direction, place: Place) -> Rtt {
    let (method, seen) = match place {
        Place::Sender => ("ack", &own.onward),
        Place::Receiver => ("echo", &own.backward),
        Place::Between => ("ack+echo", &own.both),
    };
    let opening = point.opening_rtt_ns().map(|ns| ns as f64);
    if let (0, Some(ns)) = (seen.count(), opening) {
        let ms = Some(ns / 1e6);
        return Rtt { method: "handshake", samples: 1, p5: ms, p50: ms, p95: ms };
    }
    let ms = |seen: &Quantiles, share| seen.at(share).map(|ns| ns / 1e6);
    Rtt {
        method,
        samples: seen.count(),
        p5: ms(seen, 0.05),
        p50: ms(seen, 0.5),
        p95: ms(seen, 0.95),
    }
}

fn limited(own: &Direction, place: Place, duration_s: f64) -> Limited {
    if place != Place::Sender {
        // From elsewhere only the closed window is visible.
        let receiver = seconds(own.half.closed_ns).min(duration_s);
        return Limited { receiver, unknown: duration_s - receiver, ..Limited::default() };
    }
    let of = |limit: Limit| seconds(own.limits.spent_ns[limit as usize]);
    let known = Limited {
        cwnd: of(Limit::Cwnd),
        receiver: of(Limit::Receiver),
        application: of(Limit::Application),
        unknown: 0.0,
    };
    let unknown = (duration_s - known.cwnd - known.receiver - known.application).max(0.0);
    Limited { unknown, ..known }
}

fn shown(connection: usize, file: usize, key: &Key, point: &Connection, side: usize) -> Shown {
    let own = &point.sides[side];
    Shown {
        place: rows::Place { number: connection as u32, side: side as u8, file: file as u8 },
        ends: [side, 1 - side].map(|index| end_text(key, index)),
        times: [point.first_ns, own.last_ns],
        acked: own.half.acked.max(0).cast_unsigned().min(own.half.bytes),
        slices: own.limits.slices.clone().unwrap_or_default(),
        at_sender: point.place(side) == Place::Sender,
        full: own.full_bytes(),
        opening_ns: point.opening_rtt_ns(),
        every: own.half.verdicts.every(),
    }
}

/// `10.0.0.1:5001 → 10.0.0.2:80`.
fn label(key: &Key, side: usize) -> String {
    format!("{} → {}", end_text(key, side), end_text(key, 1 - side))
}
