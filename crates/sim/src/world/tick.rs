//! Records at the end of every interval.

use super::World;
use crate::apps::FlowKind;
use crate::observer::Observer;
use dragstrip_recording::{QueueRow, ReceivedRow};
use dragstrip_units::Instant;

impl<O: Observer> World<O> {
    /// The end of a recording interval; of the last one what arrives at the same instant is still to come.
    pub(super) fn on_tick(&mut self) {
        if self.now < self.end {
            self.record_arrivals();
        }
        for index in 0..self.flows.len() {
            let flow = &self.flows[index];
            if flow.is_running()
                && !self.every_ack
                && let FlowKind::Quic { client, .. } = flow.kind
            {
                self.sample_quic(index, client as usize);
            } else if flow.is_running()
                && !self.every_ack
                && let Some(sender) = flow.data_sender()
                && self.assignment.has_socket(sender as usize)
            {
                self.sample(index, sender as usize);
            }
        }
        self.record_queues();
        self.set_tick();
    }

    /// Records the state of every queue that is watched.
    pub(crate) fn record_queues(&mut self) {
        for watch in &self.queues {
            let backlog = self.network.backlog(watch.stage, self.now);
            let sent_bytes = self.network.sent_bytes(watch.stage, self.now);
            let counters = &self.network.stages[watch.stage].counters;
            let rare = counters.rare();
            self.recorder.queues.push(QueueRow {
                time_ns: self.now.as_nanos() as i64,
                link: watch.link,
                backlog_bytes: backlog.bytes as i64,
                backlog_packets: i64::from(backlog.packets),
                enqueued: counters.enqueued as i64,
                dropped: rare.dropped as i64,
                marked: rare.marked as i64,
                sent_bytes: sent_bytes as i64,
            });
        }
    }

    /// The last interval ends with the run, and may be shorter than the others.
    pub(super) fn set_tick(&mut self) {
        let next = (self.now + self.interval).min(self.end);
        let due = if self.now < self.end { next } else { Instant::NEVER };
        self.network.calendar.set(self.layout.tick, due);
    }

    /// Records the arrivals since the previous interval.
    pub(super) fn record_arrivals(&mut self) {
        for (index, (flow, arrivals)) in self.flows.iter().zip(&mut self.arrivals).enumerate() {
            // One that is stopped at the run's end has lived through the last interval.
            let lives = flow.is_running() || flow.ended == Some(self.end);
            if !self.assignment.receives(index) {
                continue;
            }
            if lives || arrivals.wire_bytes > 0 {
                self.recorder.received.push(ReceivedRow {
                    time_ns: self.now.as_nanos() as i64,
                    flow: index as u32,
                    wire_bytes: std::mem::take(&mut arrivals.wire_bytes) as i64,
                    new_bytes: std::mem::take(&mut arrivals.new_bytes) as i64,
                });
            }
        }
    }
}
