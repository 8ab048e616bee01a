//! Recovery after changes of the path: how long the flows take until they fill it again.

use crate::measure::{Figure, Level, Measure, measure};
use crate::measured::{Measured, MissingColumn};
use dragstrip_recording::column::received;
use serde::Serialize;
use std::collections::BTreeMap;

/// Changes within this time after the first are one boundary: a handover is an outage, a new delay and the link's return.
const BOUNDARY_NS: u64 = 1_000_000_000;
/// The path is filled when the flows get this share of its rate for `FULL_NS`, headers counted as of full frames.
const SHARE: f64 = 0.9;
const FULL_NS: u64 = 1_000_000_000;
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// Mean time of recovery.
pub(crate) const RECOVERY: Measure = measure(
    Level::Run,
    "path_recovery_s",
    "s",
    "mean time from a change of the path (of several within a second, from the first) to the first second in which all flows \
     together get nine tenths of its rate; what does not recover counts with its time until the next change",
    Figure::RunFigure(Measured::recovery_s),
);

/// Recovery of the goodput after a change of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Recovery {
    /// Time of the change; of several within a second, of the first.
    pub at_s: f64,
    /// Time from then to the first second in which all flows together get nine tenths of the path's rate; `null`: none
    /// before the next change or the end.
    pub recovery_s: Option<f64>,
    /// Time until the next change, or the end.
    pub span_s: f64,
}

impl Measured {
    /// The recoveries after each change; none without changes, or without a rate on the first flow's path.
    pub(crate) fn recoveries(&self) -> Result<Vec<Recovery>, MissingColumn> {
        let boundaries = self.boundaries();
        if boundaries.is_empty() {
            return Ok(Vec::new());
        }
        let (times, bytes) = (self.ints(&received::time_ns)?, self.ints(&received::new_bytes)?);
        let mut sums: BTreeMap<u64, i64> = BTreeMap::new();
        for (time, bytes) in times.iter().zip(bytes) {
            *sums.entry((*time).max(0) as u64).or_default() += bytes;
        }
        let ends: Vec<(u64, i64)> = sums.into_iter().collect();
        let interval_ns = self.scenario.record.interval_ns.max(1);
        let count = FULL_NS.div_ceil(interval_ns) as usize;
        let next = boundaries.iter().skip(1).map(|(at_ns, _)| *at_ns);
        let until = next.chain([self.scenario.duration_ns]);
        let recoveries =
            boundaries.iter().zip(until).filter_map(|((at_ns, settled_ns), until_ns)| {
                let rate_bps = self.rate_at(*settled_ns)? as f64;
                let least = SHARE * PAYLOAD * rate_bps * (count as u64 * interval_ns) as f64 / 8e9;
                let full = ends.windows(count).find(|window| {
                    let (begin, end) =
                        (window[0].0.saturating_sub(interval_ns), window[count - 1].0);
                    let sum: i64 = window.iter().map(|(_, bytes)| bytes).sum();
                    begin >= *at_ns && end <= until_ns && sum as f64 >= least
                });
                let begin = full.map(|window| window[0].0.saturating_sub(interval_ns));
                Some(Recovery {
                    at_s: *at_ns as f64 / 1e9,
                    recovery_s: begin.map(|begin| (begin - at_ns) as f64 / 1e9),
                    span_s: (until_ns - at_ns) as f64 / 1e9,
                })
            });
        Ok(recoveries.collect())
    }

    /// Mean time of recovery; what does not recover counts with all its time until the next change.
    pub(crate) fn recovery_s(&self) -> Result<Option<f64>, MissingColumn> {
        let recoveries = self.recoveries()?;
        let times = recoveries.iter().map(|it| it.recovery_s.unwrap_or(it.span_s));
        let total: f64 = times.sum();
        Ok((!recoveries.is_empty()).then(|| total / recoveries.len() as f64))
    }

    /// First and last change of each boundary, in order. Of a run that is still going on, `duration_ns` is its time until
    /// now: later changes have not happened.
    fn boundaries(&self) -> Vec<(u64, u64)> {
        let times = self.scenario.changes.iter().map(|it| it.at_ns);
        let mut times: Vec<u64> =
            times.filter(|at_ns| *at_ns < self.scenario.duration_ns).collect();
        times.sort_unstable();
        let mut boundaries: Vec<(u64, u64)> = Vec::new();
        for at_ns in times {
            match boundaries.last_mut() {
                Some((first, last)) if at_ns - *first <= BOUNDARY_NS => *last = at_ns,
                Some(_) | None => boundaries.push((at_ns, at_ns)),
            }
        }
        boundaries
    }

    /// Rate of the slowest link on the first flow's path at a time.
    fn rate_at(&self, at_ns: u64) -> Option<u64> {
        let path = self.paths().first()?.as_ref()?;
        let links = self.scenario.links.iter().filter(|link| path.forward.contains(&link.name));
        links
            .filter_map(|link| {
                let periods = self.scenario.periods(link);
                let period = periods.iter().rev().find(|period| period.from_ns <= at_ns)?;
                self.scenario.link_facts(&period.link).rate_bps
            })
            .min()
    }
}
