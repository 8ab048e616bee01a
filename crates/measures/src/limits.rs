//! For how long what limited a flow, in which state it was, and for how long a link had nothing to send.

use crate::measured::{Measured, MissingColumn, Of, Window};
use dragstrip_recording::{ColumnDef, Data, column};
use dragstrip_scenario::{FULL_FRAME_BYTES, LinkSpec, Scenario};
use std::collections::BTreeMap;

/// Limits of a sender, as `samples.limit` has them; a kernel's by its chronographs (`tcp_chrono_set`), which count in ticks.
pub const LIMITS: [&str; 7] =
    ["cwnd", "pacing", "small_queue", "rwnd", "sndbuf", "app", "handshake"];

/// States in which a flow is below its slow-start threshold or looks for the path's rate.
const SLOW_START: [&str; 2] = ["slow_start", "startup"];

/// Returns the limiting factor of a value of `samples.limit`, in the words that captures are inspected in: `cwnd` (pacing
/// included), `small_queue` (which no capture shows), `receiver`, `application`, or `unknown`.
#[must_use]
pub fn limiting_factor(limit: &str) -> &'static str {
    match limit {
        "cwnd" | "pacing" => "cwnd",
        "small_queue" => "small_queue",
        "rwnd" => "receiver",
        "sndbuf" | "app" => "application",
        _ => "unknown",
    }
}

/// Returns the rows of a flow's samples with the nanoseconds that each stands for.
///
/// A sample stands for the time since the sample before it, the first for the time since `begin_ns`: a kernel's limit is
/// the chronograph that ran longest since then (`tcp_chrono_set`), and the simulator's samples are read the same way.
/// With a sample at every ACK, each stands for the time until the next one, the last until `end_ns`: the ACK
/// changes the limit.
pub(crate) fn spans(
    rows: &[usize],
    times: &[i64],
    begin_ns: i64,
    end_ns: i64,
    every_ack: bool,
) -> Vec<(usize, i64)> {
    let span = |from: i64, to: i64| to.saturating_sub(from).max(0);
    let spans = rows.iter().enumerate().map(|(at, &row)| {
        let span = if every_ack {
            let next = rows.get(at + 1).map_or(end_ns, |next| times[*next]);
            // What was before the first ACK is the handshake's and the first flight's.
            let from = if at == 0 { begin_ns } else { times[row] };
            span(from, next)
        } else {
            let before = at.checked_sub(1).map_or(begin_ns, |before| times[rows[before]]);
            span(before, times[row])
        };
        (row, span)
    });
    spans.collect()
}

impl Measured {
    /// Rows of `samples` of a flow, and the nanoseconds that each stands for: since the sample before it, or, where there is one at
    /// every ACK, until the next one.
    pub(crate) fn spans(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<Vec<(usize, i64)>, MissingColumn> {
        let times = self.ints(&column::samples::time_ns)?;
        let flow = &self.flows()[place];
        let rows = self.rows(Of::Samples, place, &Window { state: None, ..window.clone() })?;
        let begin = flow.start_ns + window.after_ns;
        let every_ack = self.scenario.record.every_ack;
        Ok(spans(&rows, times, begin, flow.end_ns(window), every_ack))
    }

    /// Seconds for each text of a column.
    fn seconds_by(
        &self,
        def: &'static ColumnDef,
        spans: &[(usize, i64)],
    ) -> Result<BTreeMap<&str, f64>, MissingColumn> {
        let (names, index) = self.texts(def)?;
        let mut spent_ns = vec![0; names.len()];
        for (row, span) in spans {
            if let Ok(name) = usize::try_from(index[*row]) {
                spent_ns[name] += span;
            }
        }
        let durations = names.iter().map(String::as_str).zip(spent_ns);
        let durations = durations.filter(|(name, span)| !name.is_empty() && *span > 0);
        Ok(durations.map(|(name, span)| (name, span as f64 / 1e9)).collect())
    }

    /// For how long what limited a flow, s. A flow without a sample has none.
    ///
    /// # Errors
    /// A column that is needed is missing.
    pub fn limited_s(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<BTreeMap<&str, f64>, MissingColumn> {
        let spans = self.spans(place, window)?;
        self.seconds_by(&column::samples::limit, &spans)
    }

    /// Limit of a flow at each of its samples, in their order.
    pub(crate) fn limits_of<'a>(
        &'a self,
        spans: &[(usize, i64)],
    ) -> Result<Vec<&'a str>, MissingColumn> {
        self.words_of(&column::samples::limit, spans)
    }

    /// The texts of a column in these rows.
    pub(crate) fn words_of<'a>(
        &'a self,
        def: &'static ColumnDef,
        spans: &[(usize, i64)],
    ) -> Result<Vec<&'a str>, MissingColumn> {
        let (names, index) = self.texts(def)?;
        let word = |row: usize| usize::try_from(index[row]).map_or("", |at| names[at].as_str());
        Ok(spans.iter().map(|(row, _)| word(*row)).collect())
    }

    /// For how long a flow was in which state, s.
    ///
    /// # Errors
    /// A column that is needed is missing.
    pub fn state_s(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<BTreeMap<&str, f64>, MissingColumn> {
        let spans = self.spans(place, window)?;
        self.seconds_by(&column::samples::state, &spans)
    }

    /// The seconds of one limit; none for a flow without samples.
    pub(crate) fn limited_by_s(
        &self,
        place: usize,
        window: &Window,
        limit: &str,
    ) -> Result<Option<f64>, MissingColumn> {
        let durations = self.limited_s(place, window)?;
        Ok((!durations.is_empty()).then(|| durations.get(limit).copied().unwrap_or(0.0)))
    }

    /// The seconds of some states; none for a flow without samples.
    pub(crate) fn in_state_s(
        &self,
        place: usize,
        window: &Window,
        states: &[&str],
    ) -> Result<Option<f64>, MissingColumn> {
        let durations = self.state_s(place, window)?;
        let of = |state: &&str| durations.get(*state).copied().unwrap_or(0.0);
        Ok((!durations.is_empty()).then(|| states.iter().map(of).sum()))
    }

    /// Seconds in slow start.
    pub(crate) fn slow_start_s(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<Option<f64>, MissingColumn> {
        self.in_state_s(place, window, &SLOW_START)
    }

    /// The intervals in which some flow lives: when each ends (ns), and for how long (s) the link had nothing to send in it. None
    /// where its rate is not constant, or was not recorded.
    pub(crate) fn idle_intervals(
        &self,
        link: &str,
    ) -> Result<Option<Vec<(i64, f64)>>, MissingColumn> {
        let (Some(payload), Some(busy)) = (self.payload_part(link), self.busy()) else {
            return Ok(None);
        };
        let Ok(sent) = self.ints(&column::queues::sent_bytes) else { return Ok(None) };
        let times = self.ints(&column::queues::time_ns)?;
        let mut idle = Vec::new();
        let (mut time, mut bytes) = (0, 0);
        for row in self.queue_rows(link)? {
            if sent.get(row).is_none_or(|sent| *sent == Data::NULL) {
                return Ok(None);
            }
            let span_s = (times[row] - time) as f64 / 1e9;
            let rate = payload.rate(time, times[row]);
            // While a link is down its senders are not what keeps it from sending.
            let sending_s =
                if rate > 0.0 { (sent[row] - bytes) as f64 * 8.0 / rate } else { span_s };
            if busy.0 < times[row] && time < busy.1 {
                let part = ((times[row].min(busy.1) - time.max(busy.0)) as f64 / 1e9).max(0.0);
                idle.push((times[row], (span_s - sending_s).clamp(0.0, part)));
            }
            (time, bytes) = (times[row], sent[row]);
        }
        Ok(Some(idle))
    }

    /// Payload of frames per second, where a link has a rate.
    fn payload_part(&self, link: &str) -> Option<Payload<'_>> {
        let scenario = &self.scenario;
        let spec = scenario.links.iter().find(|spec| spec.name == link)?;
        if spec.medium.is_some() {
            return None;
        }
        let changes = scenario.changes.iter().any(|change| change.link == link);
        let rate = scenario.link_facts(spec).rate_bps? as f64;
        // Each frame gets the bytes that the link adds; it is counted as a full one.
        let framing = 1.0 + f64::from(spec.overhead_bytes) / f64::from(FULL_FRAME_BYTES);
        let changing = changes.then_some((scenario, spec));
        (rate > 0.0).then_some(Payload { constant: rate / framing, framing, changing })
    }

    /// For how long a link had nothing to send while some flow lives, s; none where its rate is not constant.
    ///
    /// # Errors
    /// A column that is needed is missing.
    pub fn idle_s(&self, link: &str) -> Result<Option<f64>, MissingColumn> {
        let intervals = self.idle_intervals(link)?;
        Ok(intervals.map(|all| all.iter().map(|(_, idle)| idle).sum()))
    }
}

/// Rate at which a link carries frames' payload.
struct Payload<'a> {
    /// Bit/s, as long as nothing changes.
    constant: f64,
    framing: f64,
    changing: Option<(&'a Scenario, &'a LinkSpec)>,
}

impl Payload<'_> {
    /// The mean rate from one instant to another, ns.
    fn rate(&self, from_ns: i64, to_ns: i64) -> f64 {
        let Some((scenario, link)) = self.changing else { return self.constant };
        let mean = scenario.mean_rate_bps(link, from_ns.max(0) as u64, to_ns.max(0) as u64);
        mean.unwrap_or(0.0) / self.framing
    }
}
