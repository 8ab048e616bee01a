//! The links where each flow queues and loses packets, by the recorded queues of the links on its path.

use crate::hops::{Hop, Queueing};
use crate::measured::{Measured, MissingColumn, Of, Window};
use dragstrip_recording::{Data, column};
use dragstrip_scenario::{FULL_FRAME_BYTES, FlowSpec, PathFacts};
use std::collections::BTreeMap;

/// A mean wait below this part of the idle round trip is no queueing.
const WAIT_PART_MIN: f64 = 0.01;

/// Fewer losses than this, or a smaller part of them at one link, name none.
const LOST_MIN: f64 = 1.0;
const LOST_PART_MIN: f64 = 0.9;

/// A link's rows of `queues`.
#[derive(Debug)]
struct Series {
    times: Vec<i64>,
    /// Wait of a packet that arrives at the interval's end, ms.
    waits_ms: Vec<f64>,
    /// Dropped in the interval.
    dropped: Vec<i64>,
    /// Bytes that left in it.
    sent: Vec<i64>,
}

/// The interval that ends with a row, of a counter.
fn steps(rows: &[usize], values: &[i64]) -> Option<Vec<i64>> {
    let mut before = 0;
    let step = |row: &usize| {
        let value = values.get(*row).copied().filter(|value| *value != Data::NULL)?;
        let step = (value - before).max(0);
        before = value;
        Some(step)
    };
    rows.iter().map(step).collect()
}

impl Measured {
    /// The paths that the data of the flows take; none where packets find none.
    pub(crate) fn paths(&self) -> &[Option<PathFacts>] {
        self.paths.get_or_init(|| {
            let specs: BTreeMap<&str, &FlowSpec> =
                self.scenario.flows.iter().map(|spec| (spec.label.as_str(), spec)).collect();
            let pairs = self.flows().iter().map(|flow| {
                let spec = specs.get(flow.label.as_str());
                spec.map_or((flow.sender.as_str(), flow.receiver.as_str()), |spec| spec.data_ends())
            });
            match self.scenario.path_facts(pairs, FULL_FRAME_BYTES) {
                Ok(paths) => paths.into_iter().map(Some).collect(),
                Err(_) => vec![None; self.flows().len()],
            }
        })
    }

    /// Returns the links where each flow queues and loses packets, in the order of the flows.
    ///
    /// Waits and drops are those of the links' queues: where a discipline serves each flow for itself (`fq_codel`, `cake`,
    /// `fq`), they are of all its flows together.
    ///
    /// # Errors
    /// A column that is needed is missing.
    pub fn queueing(&self) -> Result<&[Queueing], MissingColumn> {
        let all = self.queueing.get_or_init(|| self.find_queueing());
        all.as_deref().map_err(|error| *error)
    }

    fn find_queueing(&self) -> Result<Vec<Queueing>, MissingColumn> {
        let mut series: BTreeMap<&str, Series> = BTreeMap::new();
        let links = self.rows_by_link()?;
        for path in self.paths().iter().flatten() {
            for name in path.forward.iter().filter(|name| links.contains_key(name.as_str())) {
                if !series.contains_key(name.as_str())
                    && let Some(known) = self.series(name, &links[name.as_str()])?
                {
                    series.insert(name, known);
                }
            }
        }
        let flows = self.paths().iter().enumerate();
        flows
            .map(|(place, path)| match path {
                Some(path) => self.queueing_of(place, path, &series),
                None => Ok(Queueing::default()),
            })
            .collect()
    }

    fn rows_by_link(&self) -> Result<BTreeMap<&str, Vec<usize>>, MissingColumn> {
        let (names, index) = self.texts(&column::queues::link)?;
        let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, number) in index.iter().enumerate() {
            if let Some(name) = usize::try_from(*number).ok().and_then(|number| names.get(number)) {
                rows.entry(name).or_default().push(row);
            }
        }
        Ok(rows)
    }

    /// None where the recording does not tell what the link sent.
    fn series(&self, link: &str, rows: &[usize]) -> Result<Option<Series>, MissingColumn> {
        let times = self.ints(&column::queues::time_ns)?;
        let backlog = self.ints(&column::queues::backlog_bytes)?;
        let times: Vec<i64> = rows.iter().map(|row| times[*row]).collect();
        let bytes: Vec<f64> = rows.iter().map(|row| backlog[*row].max(0) as f64).collect();
        let dropped = steps(rows, self.ints(&column::queues::dropped)?);
        let sent = self.ints(&column::queues::sent_bytes).ok().and_then(|all| steps(rows, all));
        let Some((dropped, sent)) = dropped.zip(sent) else { return Ok(None) };
        let changes = self.scenario.changes.iter().any(|change| change.link == link);
        let spec = self.scenario.links.iter().find(|spec| spec.name == link);
        let configured = spec.filter(|_| !changes).and_then(|spec| {
            let own = spec.qdisc.facts().rate_bps;
            own.into_iter().chain(spec.rate_bps).min().map(|rate| rate as f64)
        });
        // Without one rate: what left while something waited (Little's law).
        let waiting: f64 = bytes.iter().sum();
        let mut before = 0;
        let (mut left, mut span_s) = (0.0, 0.0);
        for (at, time) in times.iter().enumerate() {
            if bytes[at] > 0.0 {
                left += sent[at] as f64 * 8.0;
                span_s += (time - before) as f64 / 1e9;
            }
            before = *time;
        }
        let rate = configured.or((waiting > 0.0 && left > 0.0).then(|| left / span_s));
        let waits_ms = bytes.iter().map(|bytes| rate.map_or(0.0, |rate| bytes * 8e3 / rate));
        Ok(Some(Series { times, waits_ms: waits_ms.collect(), dropped, sent }))
    }

    fn queueing_of(
        &self,
        place: usize,
        path: &PathFacts,
        series: &BTreeMap<&str, Series>,
    ) -> Result<Queueing, MissingColumn> {
        let received = self.ints(&column::received::time_ns)?;
        let wire = self.ints(&column::received::wire_bytes)?;
        let rows = self.rows(Of::Received, place, &Window::default())?;
        let arrived: Vec<f64> = rows.iter().map(|row| wire[*row].max(0) as f64).collect();
        let nothing = arrived.iter().all(|bytes| *bytes == 0.0);
        let known = path.forward.iter().filter_map(|name| Some((name, series.get(name.as_str())?)));
        let known: Vec<(&String, &Series)> = known.collect();
        // Of each queue and interval: what of its drops may be the flow's.
        let mut drops: Vec<Vec<f64>> = Vec::with_capacity(known.len());
        let mut hops: Vec<Hop> = Vec::with_capacity(known.len());
        for (name, series) in &known {
            let (mut weight, mut waited, mut at) = (0.0, 0.0, 0);
            let mut own = Vec::with_capacity(rows.len());
            for (row, bytes) in rows.iter().zip(&arrived) {
                at += series.times[at..].partition_point(|time| *time < received[*row]);
                let Some(sent) = series.sent.get(at) else { break };
                let bytes = if nothing { 1.0 } else { *bytes };
                weight += bytes;
                waited += bytes * series.waits_ms[at];
                // What arrives has left this queue some time before: a part above 1 is all of it.
                own.push(series.dropped[at] as f64 * (bytes / (*sent).max(1) as f64).min(1.0));
            }
            own.resize(rows.len(), 0.0);
            let wait_ms = if weight > 0.0 { waited / weight } else { 0.0 };
            hops.push(Hop { link: (*name).clone(), wait_ms, lost: own.iter().sum() });
            drops.push(own);
        }
        let ends: Vec<i64> = rows.iter().map(|row| received[*row]).collect();
        let trip_ms: f64 = hops.iter().map(|hop| hop.wait_ms).sum();
        let trip_ns = path.base_rtt_ns as f64 + trip_ms * 1e6;
        if let Some(lost) = self.repaired(place, &ends, &drops, trip_ns as i64)? {
            hops.iter_mut().zip(lost).for_each(|(hop, lost)| hop.lost = lost);
        }
        // The first of equals.
        let longest = hops.iter().rev().max_by(|a, b| a.wait_ms.total_cmp(&b.wait_ms));
        let losing = hops.iter().rev().max_by(|a, b| a.lost.total_cmp(&b.lost));
        let lost: f64 = hops.iter().map(|hop| hop.lost).sum();
        let clear = |hop: &&Hop| hop.lost >= LOST_MIN && hop.lost > LOST_PART_MIN * lost;
        let losing = losing.filter(clear).map(|hop| hop.link.clone());
        let least_ms = WAIT_PART_MIN * path.base_rtt_ns as f64 / 1e6;
        let queues = longest.filter(|hop| hop.wait_ms > 0.0 && hop.wait_ms >= least_ms);
        let bottleneck = queues.map(|hop| hop.link.clone());
        Ok(Queueing {
            bottleneck: bottleneck.or_else(|| losing.clone()).or_else(|| path.bottleneck.clone()),
            loss_link: losing,
            hops,
        })
    }

    /// Retransmissions of a flow by the queue whose drops they follow: each interval's are divided by what the queues dropped of the
    /// flow in the round trip before, or, after a timeout, in the last time before it in which they dropped anything. None for a
    /// flow without retransmissions, or without queues that drop.
    fn repaired(
        &self,
        place: usize,
        ends: &[i64],
        drops: &[Vec<f64>],
        trip_ns: i64,
    ) -> Result<Option<Vec<f64>>, MissingColumn> {
        let dropped: Vec<f64> =
            (0..ends.len()).map(|at| drops.iter().map(|own| own[at]).sum()).collect();
        if dropped.iter().all(|count| *count == 0.0) {
            return Ok(None);
        }
        let times = self.ints(&column::samples::time_ns)?;
        let counts = self.ints(&column::samples::retransmits)?;
        let mut lost = vec![0.0; drops.len()];
        let (mut before, mut at) = (0, 0);
        for row in self.rows(Of::Samples, place, &Window::default())? {
            let count = counts[row];
            if count == Data::NULL || count <= before {
                continue;
            }
            let again = (count - before) as f64;
            before = count;
            at += ends[at..].partition_point(|end| *end < times[row]);
            let last = at.min(ends.len() - 1);
            let mut first = ends[..last].partition_point(|end| *end < times[row] - trip_ns);
            while first > 0 && dropped[first..=last].iter().all(|count| *count == 0.0) {
                first -= 1;
            }
            let all: f64 = dropped[first..=last].iter().sum();
            if all > 0.0 {
                for (lost, own) in lost.iter_mut().zip(drops) {
                    *lost += again * own[first..=last].iter().sum::<f64>() / all;
                }
            }
        }
        Ok((before > 0).then_some(lost))
    }

    /// The max-min fair rates of flows that compete, bit/s of frames, in their order: the rate of each is as large as it can be
    /// without one that is smaller having to fall (Bertsekas, Gallager, Data Networks, 1992, 6.5.2). None where they are all equal, or
    /// where a link has no constant rate.
    pub(crate) fn max_min_bps(&self, set: &[usize]) -> Option<Vec<f64>> {
        if set.len() < 2 {
            return None;
        }
        let mut users: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, place) in set.iter().enumerate() {
            for name in &self.paths().get(*place)?.as_ref()?.forward {
                users.entry(name).or_default().push(at);
            }
        }
        let mut room: Vec<(f64, Vec<usize>)> = Vec::new();
        for spec in &self.scenario.links {
            let Some(flows) = users.remove(spec.name.as_str()) else { continue };
            let changes = self.scenario.changes.iter().any(|change| {
                change.link == spec.name && (change.rate_bps.is_some() || change.up.is_some())
            });
            if spec.medium.is_some() || changes {
                return None;
            }
            if let Some(rate) = self.scenario.link_facts(spec).rate_bps {
                room.push((rate as f64, flows));
            }
        }
        let mut rates: Vec<Option<f64>> = vec![None; set.len()];
        loop {
            let open = |flows: &[usize]| flows.iter().filter(|at| rates[**at].is_none()).count();
            let level = |(rate, flows): &(f64, Vec<usize>)| {
                let taken: f64 = flows.iter().filter_map(|at| rates[*at]).sum();
                let open = open(flows);
                (open > 0).then(|| (rate - taken).max(0.0) / open as f64)
            };
            let levels = room.iter().enumerate().filter_map(|(at, link)| Some((at, level(link)?)));
            let Some((tightest, level)) = levels.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            for at in room[tightest].1.clone() {
                rates[at].get_or_insert(level);
            }
        }
        let rates: Vec<f64> = rates.into_iter().collect::<Option<_>>()?;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        (least > 0.0 && most > least * (1.0 + 1e-9)).then_some(rates)
    }
}
