//! A video: requests for its segments, and the segments.

use super::World;
use crate::apps::{FlowKind, Phase};
use crate::observer::Observer;
use dragstrip_units::Instant;

impl<O: Observer> World<O> {
    /// A request for a segment has arrived, or a segment.
    pub(super) fn after_video(
        &mut self,
        flow_index: usize,
        endpoint: usize,
        request: u64,
        in_order: u64,
    ) {
        let flow = &mut self.flows[flow_index];
        let (FlowKind::Tcp { server, .. }, Some(player)) = (flow.kind, &mut flow.player) else {
            return;
        };
        if flow.phase == Phase::Stopped {
            return;
        }
        if endpoint == server as usize {
            if in_order == flow.rounds * request {
                let total = player.total_bytes();
                self.write_until(server, total);
            }
        } else if in_order == player.total_bytes() && flow.phase == Phase::Busy {
            flow.phase = Phase::Quiet;
            let (row, next) = player.arrived(self.now.as_nanos(), flow_index as u32);
            self.recorder.video.push(row);
            let next = Instant::from_nanos(next).min(flow.stop);
            self.set_app(flow_index, next);
        }
    }
}
