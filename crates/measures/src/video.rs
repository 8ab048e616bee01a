//! Video QoE: start-up delay, stalls, bit rate.

use crate::measured::{Measured, MissingColumn, Of, Window};
use dragstrip_recording::column::video;
use dragstrip_scenario::Application;
use serde::Serialize;

/// Quality of experience of a video, from the flow's start to its stop.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename = "Video")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Watched {
    /// Time until playback begins; the flow's life where it never does.
    pub startup_s: f64,
    /// Number of stalls after that.
    pub stalls: u64,
    /// Time of all stalls.
    pub stall_s: f64,
    /// Mean bit rate of the segments that arrived; `null` if none did.
    pub bps: Option<f64>,
    /// Changes of the bit rate from one segment to the next.
    pub switches: u64,
}

impl Measured {
    /// A flow's video; none of a flow that is not one.
    pub(crate) fn watched(&self, place: usize) -> Result<Option<Watched>, MissingColumn> {
        let flow = &self.flows()[place];
        let spec = usize::try_from(flow.flow).ok().and_then(|flow| self.scenario.flows.get(flow));
        if !spec.is_some_and(|spec| matches!(spec.application, Application::Video { .. })) {
            return Ok(None);
        }
        let rows = self.rows(Of::Video, place, &Window::default())?;
        let (times, waited) = (self.ints(&video::time_ns)?, self.ints(&video::waited_ns)?);
        let (rates, buffered) = (self.ints(&video::rate_bps)?, self.ints(&video::buffer_ns)?);
        let playing = self.flags(&video::playing)?;
        // Standing times in order, each with whether playback stands from before, and goes on behind.
        let mut stood = Vec::with_capacity(rows.len() + 1);
        let mut standing = true;
        for &row in &rows {
            stood.push((waited[row], standing, playing[row]));
            standing = !playing[row];
        }
        let left = match rows.last() {
            Some(&row) if !standing => flow.stop_ns - times[row] - buffered[row],
            Some(&row) => flow.stop_ns - times[row],
            None => flow.stop_ns - flow.start_ns,
        };
        stood.push((left.max(0), standing, false));
        let (mut startup_ns, mut stall_ns, mut stalls, mut began) = (0, 0, 0, false);
        for (ns, standing, goes_on) in stood {
            if began {
                stall_ns += ns;
                stalls += u64::from(ns > 0 && !standing);
            } else {
                startup_ns += ns;
                began = goes_on;
            }
        }
        let rate = rows.iter().map(|row| rates[*row] as f64).sum::<f64>() / rows.len() as f64;
        Ok(Some(Watched {
            startup_s: startup_ns as f64 / 1e9,
            stalls,
            stall_s: stall_ns as f64 / 1e9,
            bps: (!rows.is_empty()).then_some(rate),
            switches: rows.windows(2).filter(|two| rates[two[0]] != rates[two[1]]).count() as u64,
        }))
    }
}
