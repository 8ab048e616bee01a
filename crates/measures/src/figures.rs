//! Figures of flows and probes of any recording: of a run, of captures, of another program's file.
//!
//! Scope: figures that need no scenario. A figure that the recording does not contain is none; nothing is estimated in
//! its place. Figures that another program computed itself, from more samples than it wrote down, take precedence.

use crate::arithmetic::{mean, percentiles};
use crate::limits::{limiting_factor, spans};
use dragstrip_recording::{ColumnDef, Data, Recording, column};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Samples from which on there are a 5th and a 95th percentile: at least one sample lies beyond each.
pub const TAIL_SAMPLES: usize = 20;

/// Bound of figures that another program reports, exclusive.
const REPORTED_MAX: f64 = (1_u64 << 62) as f64;

/// A flow's figures, as `dragstrip inspect --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowFigures {
    /// Number of the flow.
    pub flow: i64,
    /// Name.
    pub label: Option<String>,
    /// Congestion control; none where it is unknown or the flow has none.
    pub cc: Option<String>,
    /// Bytes that arrived, else bytes acknowledged during the samples, else (TCP only) bytes written.
    pub bytes: Option<i64>,
    /// From start to stop; a missing one is the time of the flow's first or last row.
    pub duration_s: f64,
    /// Rate of these bytes over the measured time.
    pub goodput_bps: Option<f64>,
    /// Round trips at the finest resolution in the recording.
    pub rtt_ms: RoundTrips,
    /// Data segments sent.
    pub segments: Option<i64>,
    /// Retransmissions by verdict.
    pub retransmissions: Retransmissions,
    /// Late originals, which no table of a recording counts.
    pub reordered: Option<i64>,
    /// Seconds by limiting factor ([`limiting_factor`]); none without a recorded limit.
    pub limited_s: Option<BTreeMap<&'static str, f64>>,
    /// True when both ends agreed on ECN.
    pub ecn: Option<bool>,
}

/// Retransmissions by verdict. Only a capture's packets allow one; a count alone is `unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// Retransmissions of lost segments.
    pub needed: Option<i64>,
    /// Retransmissions of segments that had arrived.
    pub spurious: Option<i64>,
    /// Retransmissions without a verdict.
    pub unknown: Option<i64>,
}

/// A probe's figures: the requests of one name to one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeFigures {
    /// Name of the probe.
    pub probe: Option<String>,
    /// Node that answers.
    pub target: Option<String>,
    /// Requests.
    pub sent: Option<i64>,
    /// Requests without an answer.
    pub lost: Option<i64>,
    /// Round trips of the answered requests.
    pub rtt_ms: RoundTrips,
}

/// Round-trip times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoundTrips {
    /// Source: `samples` (every RTT sample), `latest` (the latest sample of each interval), `srtt` (the smoothed RTT),
    /// `echo` (answered requests) or `summary` (figures of another program alone); none without a round trip.
    pub method: Option<&'static str>,
    /// Number of values.
    pub samples: usize,
    /// 5th percentile, from [`TAIL_SAMPLES`] values on.
    pub p5: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile, from [`TAIL_SAMPLES`] values on.
    pub p95: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

impl RoundTrips {
    /// Computes the figures of round trips in nanoseconds.
    #[must_use]
    pub fn new(mut values_ns: Vec<f64>, method: Option<&'static str>) -> Self {
        let samples = values_ns.len();
        let mean_ms = mean(&values_ns).map(|ns| ns / 1e6);
        let Some(ns) = percentiles(&mut values_ns, [0.0, 5.0, 50.0, 95.0, 100.0]) else {
            return Self { method, ..Self::default() };
        };
        let [min, p5, p50, p95, max] = ns.map(|ns| ns / 1e6);
        let tail = |value| (samples >= TAIL_SAMPLES).then_some(value);
        Self {
            method,
            samples,
            p5: tail(p5),
            p50: Some(p50),
            p95: tail(p95),
            min: Some(min),
            mean: mean_ms,
            max: Some(max),
        }
    }

    /// Puts the extremes and the mean that another program reports (`min`, `mean`, `max`, in ms) in place of the
    /// computed ones.
    fn with_reported(mut self, reported: &Value) -> Self {
        for (name, figure) in
            [("min", &mut self.min), ("mean", &mut self.mean), ("max", &mut self.max)]
        {
            *figure = reported_figure(reported, name).or(*figure);
        }
        self
    }
}

/// Facts about a recording that its tables do not hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// End of the run, ns, where a flow has no stop; none: the flow's last row.
    pub end_ns: Option<i64>,
    /// True when `samples` has a row per ACK (`record.every_ack`).
    pub every_ack: bool,
    /// Figures that another program reports, by the flow's number as text: `measured_s` (the duration that a rate
    /// refers to), `goodput_bps`, and `rtt_ms` with `min`, `mean` and `max`.
    pub reported: Option<&'a Value>,
}

/// Returns the figures of each flow, in the order of the table `flows`.
#[must_use]
pub fn flow_figures(recording: &Recording, facts: Facts<'_>) -> Vec<FlowFigures> {
    use column::{flows, received, rtts, samples};
    let tables = Tables {
        recording,
        samples: rows_by_flow(recording, &samples::flow),
        received: rows_by_flow(recording, &received::flow),
        rtts: rows_by_flow(recording, &rtts::flow),
    };
    let numbers = Ints::new(recording, &flows::flow);
    let row_count = numbers.values.len();
    (0..row_count).filter_map(|row| Some(tables.flow(row, numbers.get(row)?, facts))).collect()
}

/// Returns the figures of each probe, in the order of their first requests.
///
/// `summaries` lists requests that another program sums up: `probe`, `target`, `sent`, `lost`, and `rtt_ms` with
/// `min`, `mean` and `max`. Their counts and extremes replace those of the rows.
#[must_use]
pub fn probe_figures(recording: &Recording, summaries: &Value) -> Vec<ProbeFigures> {
    use column::probes;
    let (names, targets) =
        (Texts::new(recording, &probes::probe), Texts::new(recording, &probes::target));
    let trips = Ints::new(recording, &probes::rtt_ns);
    let unanswered = flags(recording, &probes::lost);
    let row_count = Ints::new(recording, &probes::time_ns).values.len();
    // Rows of each probe, by its place in the order of first requests.
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for row in 0..row_count {
        let place = *places.entry((names.get(row), targets.get(row))).or_insert(groups.len());
        groups.resize_with(groups.len().max(place + 1), Vec::new);
        groups[place].push(row);
    }
    let figures = groups.into_iter().map(|rows| {
        let (probe, target) = (names.get(rows[0]), targets.get(rows[0]));
        let is_lost = |row: usize| unanswered.get(row).copied().unwrap_or(false);
        let answered = rows.iter().copied().filter(|row| !is_lost(*row));
        let values_ns: Vec<f64> =
            answered.filter_map(|row| trips.get(row)).map(|ns| ns as f64).collect();
        let (sent, answers) = (rows.len() as i64, values_ns.len() as i64);
        let method = (answers > 0).then_some("echo");
        let mut figures = ProbeFigures {
            probe: probe.map(str::to_owned),
            target: target.map(str::to_owned),
            sent: Some(sent),
            lost: Some(sent - answers),
            rtt_ms: RoundTrips::new(values_ns, method),
        };
        if let Some(summary) = summary_of(summaries, probe, target) {
            let trips = figures.rtt_ms.with_reported(&summary["rtt_ms"]);
            let method = (answers > 0).then_some("summary");
            figures.rtt_ms = RoundTrips { method, samples: 0, p50: None, ..trips };
            (figures.sent, figures.lost) = (summary["sent"].as_i64(), summary["lost"].as_i64());
        }
        figures
    });
    figures.collect()
}

/// Returns the last summary of these requests.
fn summary_of<'a>(
    summaries: &'a Value,
    probe: Option<&str>,
    target: Option<&str>,
) -> Option<&'a Value> {
    let matches = |value: Option<&Value>, text: Option<&str>| match (value, text) {
        (Some(Value::String(value)), Some(text)) => value == text,
        (Some(Value::Null), None) => true,
        _ => false,
    };
    summaries.as_array()?.iter().rev().find(|summary| {
        matches(summary.get("probe"), probe) && matches(summary.get("target"), target)
    })
}

/// Returns a number that another program reports; none for anything else and for numbers that nothing can have.
fn reported_figure(reported: &Value, name: &str) -> Option<f64> {
    reported.get(name)?.as_f64().filter(|value| value.abs() < REPORTED_MAX)
}

/// Tables of a recording with the rows of each flow.
struct Tables<'a> {
    recording: &'a Recording,
    samples: BTreeMap<i64, Vec<usize>>,
    received: BTreeMap<i64, Vec<usize>>,
    rtts: BTreeMap<i64, Vec<usize>>,
}

impl<'a> Tables<'a> {
    fn ints(&self, def: &ColumnDef) -> Ints<'a> {
        Ints::new(self.recording, def)
    }

    fn text(&self, def: &ColumnDef, row: usize) -> Option<&'a str> {
        Texts::new(self.recording, def).get(row)
    }

    fn flow(&self, row: usize, flow: i64, facts: Facts<'_>) -> FlowFigures {
        use column::{flows, samples};
        let reported =
            facts.reported.and_then(|all| all.get(flow.to_string())).unwrap_or(&Value::Null);
        let sampled = rows_of(&self.samples, flow);
        let (start_ns, stop_ns) = self.life_ns(row, flow, facts.end_ns);
        let duration_s = stop_ns.saturating_sub(start_ns) as f64 / 1e9;
        let measured_s = reported_figure(reported, "measured_s").unwrap_or(duration_s);
        let bytes = self.bytes(row, flow);
        let computed =
            bytes.filter(|_| measured_s > 0.0).map(|bytes| bytes as f64 * 8.0 / measured_s);
        let counted = self.ints(&flows::retransmits).get(row);
        FlowFigures {
            flow,
            label: self.text(&flows::label, row).map(str::to_owned),
            cc: self.text(&flows::cc, row).filter(|cc| !cc.is_empty()).map(str::to_owned),
            bytes,
            duration_s,
            goodput_bps: reported_figure(reported, "goodput_bps").or(computed),
            rtt_ms: self.round_trips(flow).with_reported(&reported["rtt_ms"]),
            segments: self.ints(&flows::segments_sent).get(row),
            retransmissions: Retransmissions {
                needed: None,
                spurious: None,
                unknown: counted.or_else(|| self.ints(&samples::retransmits).last(sampled)),
            },
            reordered: None,
            limited_s: self.limited_s(sampled, start_ns, stop_ns, facts.every_ack),
            ecn: flags(self.recording, &flows::ecn_negotiated).get(row).copied(),
        }
    }

    /// Returns start and stop of a flow, ns.
    fn life_ns(&self, row: usize, flow: i64, end_ns: Option<i64>) -> (i64, i64) {
        use column::{flows, received, samples};
        let tables = [
            (self.ints(&samples::time_ns), rows_of(&self.samples, flow)),
            (self.ints(&received::time_ns), rows_of(&self.received, flow)),
        ];
        let first = || tables.iter().filter_map(|(times, rows)| times.first(rows)).min();
        let last = || tables.iter().filter_map(|(times, rows)| times.last(rows)).max();
        let start = self.ints(&flows::start_ns).get(row).or_else(first);
        let stop = self.ints(&flows::stop_ns).get(row).or(end_ns).or_else(last);
        (start.unwrap_or(0), stop.unwrap_or(0))
    }

    /// Returns the bytes that arrived, or were acknowledged during the samples, or else were written.
    fn bytes(&self, row: usize, flow: i64) -> Option<i64> {
        use column::{flows, received, samples};
        if let Some(bytes) = self.ints(&flows::bytes_received).get(row) {
            return Some(bytes);
        }
        let arrivals = rows_of(&self.received, flow);
        if !arrivals.is_empty() {
            let sizes = self.ints(&received::new_bytes);
            let sizes = arrivals.iter().filter_map(|row| sizes.get(*row));
            return Some(sizes.fold(0, i64::saturating_add));
        }
        let sampled = rows_of(&self.samples, flow);
        let acked = self.ints(&samples::bytes_acked);
        if let (Some(first), Some(last)) = (acked.first(sampled), acked.last(sampled)) {
            return Some(last.saturating_sub(first));
        }
        // For datagrams, the bytes written say little about the bytes that arrived.
        let is_tcp = self.text(&flows::protocol, row) == Some("tcp");
        self.ints(&samples::bytes_written).last(sampled).filter(|_| is_tcp)
    }

    /// Returns the finest round trips: every sample, the latest of each interval, or the smoothed RTT.
    fn round_trips(&self, flow: i64) -> RoundTrips {
        use column::{rtts, samples};
        let sampled = rows_of(&self.samples, flow);
        let sources = [
            ("samples", self.ints(&rtts::rtt_ns), rows_of(&self.rtts, flow)),
            ("latest", self.ints(&samples::rtt_ns), sampled),
            ("srtt", self.ints(&samples::srtt_ns), sampled),
        ];
        for (method, values, rows) in sources {
            let values_ns: Vec<f64> =
                rows.iter().filter_map(|row| values.get(*row)).map(|ns| ns as f64).collect();
            if !values_ns.is_empty() {
                return RoundTrips::new(values_ns, Some(method));
            }
        }
        RoundTrips::default()
    }

    /// Returns the seconds by limiting factor, each sample counted as [`Measured::limited_s`] counts it.
    ///
    /// [`Measured::limited_s`]: crate::Measured::limited_s
    fn limited_s(
        &self,
        rows: &[usize],
        start_ns: i64,
        stop_ns: i64,
        every_ack: bool,
    ) -> Option<BTreeMap<&'static str, f64>> {
        let words = Texts::new(self.recording, &column::samples::limit);
        let word = |row: usize| words.get(row).filter(|word| !word.is_empty());
        if !rows.iter().any(|row| word(*row).is_some()) {
            return None;
        }
        let times = self.ints(&column::samples::time_ns).values;
        let inside =
            |row: &usize| times.get(*row).is_some_and(|time| (start_ns..=stop_ns).contains(time));
        let rows: Vec<usize> = rows.iter().copied().filter(inside).collect();
        let mut spent_ns = BTreeMap::from(
            ["cwnd", "receiver", "application", "unknown"].map(|name| (name, 0_i64)),
        );
        for (row, span_ns) in spans(&rows, times, start_ns, stop_ns, every_ack) {
            let spent = spent_ns.entry(limiting_factor(word(row).unwrap_or(""))).or_insert(0_i64);
            *spent = spent.saturating_add(span_ns);
        }
        Some(spent_ns.into_iter().map(|(name, ns)| (name, ns as f64 / 1e9)).collect())
    }
}

fn rows_of(rows: &BTreeMap<i64, Vec<usize>>, flow: i64) -> &[usize] {
    rows.get(&flow).map_or(&[], Vec::as_slice)
}

/// Returns the rows of each flow in a table, in their order.
fn rows_by_flow(recording: &Recording, flow: &ColumnDef) -> BTreeMap<i64, Vec<usize>> {
    let mut rows: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (row, number) in Ints::new(recording, flow).values.iter().enumerate() {
        rows.entry(*number).or_default().push(row);
    }
    rows
}

/// A column of integers; a column that the recording lacks has no values.
#[derive(Clone, Copy)]
struct Ints<'a> {
    values: &'a [i64],
}

impl<'a> Ints<'a> {
    fn new(recording: &'a Recording, def: &ColumnDef) -> Self {
        match recording.column(def) {
            Some(Data::Int(values)) => Self { values },
            Some(Data::Text { .. } | Data::Bool(_) | Data::Float(_)) | None => Self { values: &[] },
        }
    }

    fn get(self, row: usize) -> Option<i64> {
        self.values.get(row).copied().filter(|value| *value != Data::NULL)
    }

    fn first(self, rows: &[usize]) -> Option<i64> {
        rows.iter().find_map(|row| self.get(*row))
    }

    fn last(self, rows: &[usize]) -> Option<i64> {
        rows.iter().rev().find_map(|row| self.get(*row))
    }
}

/// A column of texts; a column that the recording lacks has no values.
#[derive(Clone, Copy)]
struct Texts<'a> {
    names: &'a [String],
    index: &'a [i32],
}

impl<'a> Texts<'a> {
    fn new(recording: &'a Recording, def: &ColumnDef) -> Self {
        match recording.column(def) {
            Some(Data::Text { names, index }) => Self { names, index },
            Some(Data::Int(_) | Data::Bool(_) | Data::Float(_)) | None => {
                Self { names: &[], index: &[] }
            }
        }
    }

    fn get(self, row: usize) -> Option<&'a str> {
        let place = usize::try_from(*self.index.get(row)?).ok()?;
        self.names.get(place).map(String::as_str)
    }
}

fn flags<'a>(recording: &'a Recording, def: &ColumnDef) -> &'a [bool] {
    match recording.column(def) {
        Some(Data::Bool(values)) => values,
        Some(Data::Int(_) | Data::Text { .. } | Data::Float(_)) | None => &[],
    }
}
