//! Pings: requests that leave, answers that come back.

use super::World;
use crate::calendar::Source;
use crate::observer::Observer;
use crate::packets::Packet;
use dragstrip_packet::{Body, Echo, EchoKind, TrafficClass};
use dragstrip_recording::ProbeRow;

impl<O: Observer> World<O> {
    pub(super) fn on_probe(&mut self, index: usize) {
        let probe = &mut self.probes[index];
        let table = &mut self.recorder.probes;
        let row = ProbeRow {
            time_ns: self.now.as_nanos() as i64,
            probe: table.probe.word(&probe.label),
            target: table.target.word(&probe.target),
            rtt_ns: None,
            lost: true,
        };
        let row = table.push(row);
        let echo = Echo {
            sent: self.now,
            sequence: probe.rows.len() as u32,
            bytes: probe.bytes,
            kind: EchoKind::Request,
        };
        probe.rows.push(row);
        let (first_hop, next) = (probe.there, self.now + probe.interval);
        self.network.calendar.set(self.layout.probes + index as Source, next);
        self.network.send(
            Packet::new(Body::Icmp(echo), TrafficClass::default()),
            first_hop,
            self.now,
        );
    }

    pub(super) fn on_probe_answer(&mut self, index: usize, echo: &Echo) {
        let row = self.probes[index].rows[echo.sequence as usize];
        let probes = &mut self.recorder.probes;
        // A duplicated answer does not count.
        if probes.lost.values()[row] {
            probes.rtt_ns.set(row, Some(self.now.since(echo.sent).as_nanos() as i64));
            probes.lost.set(row, false);
        }
    }
}
