//! Transfers of a known size: how long each took, and how much longer than alone.

use crate::measured::Measured;
use dragstrip_scenario::Application;
use serde::{Deserialize, Serialize};

/// Completion of a transfer.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transfer {
    /// Size.
    pub bytes: u64,
    /// True when all bytes arrived.
    pub finished: bool,
    /// From the flow's start until the last byte arrives; the time so far of an unfinished transfer.
    pub completion_s: f64,
    /// Ratio of that time to the time of the transfer alone on the path: an RTT for the handshake, the bytes at the
    /// bottleneck's rate and the one-way delay. `null` where the path has no rate.
    pub slowdown: Option<f64>,
}

impl Measured {
    /// The transfers among the flows at these places.
    #[must_use]
    pub fn transfers(&self, places: &[usize]) -> Vec<Transfer> {
        places.iter().filter_map(|place| self.transfer(*place)).collect()
    }

    /// A flow's transfer; none of a flow without a size.
    pub(crate) fn transfer(&self, place: usize) -> Option<Transfer> {
        let flow = &self.flows()[place];
        let number = usize::try_from(flow.flow).ok()?;
        let Application::Bulk { bytes: Some(bytes) } = self.scenario.flows.get(number)?.application
        else {
            return None;
        };
        let completion_s = flow.duration_s();
        let alone_s = self.alone_s().get(number).copied().flatten();
        Some(Transfer {
            bytes,
            finished: flow.bytes_received >= 0 && flow.bytes_received as u64 >= bytes,
            completion_s,
            slowdown: alone_s.map(|alone_s| completion_s / alone_s),
        })
    }
}
