//! Packets of a program's flow, at the host of its client: those between its two hosts that belong to no other flow.

use super::message::EndReport;
use super::tap::TappedPacket;
use crate::fault::Fault;
use crate::plan::Plan;
use dragstrip_recording::{ReceivedRow, Writer};
use dragstrip_scenario::Scenario;
use std::net::Ipv4Addr;

/// Bytes of a program's packets. Its TCP tells nobody which of them are new, so that a payload that comes twice counts twice.
#[derive(Debug)]
pub struct Heard {
    flow: usize,
    client: Ipv4Addr,
    server: Ipv4Addr,
    wire_bytes: u64,
    payload_bytes: u64,
    received_bytes: u64,
    sent_bytes: u64,
    /// Time at which the client ended, as far as it has: what its server sends later is nobody's.
    ended_ns: i64,
}

impl Heard {
    /// Those of the programs whose client is at a node.
    pub fn at(node: usize, scenario: &Scenario, plan: &Plan) -> Result<Vec<Self>, Fault> {
        let mut all = Vec::new();
        for (flow, spec) in scenario.flows.iter().enumerate() {
            if !spec.application.is_program() || plan.node(&spec.receiver)? != node {
                continue;
            }
            let address = |name: &str| Ok::<_, Fault>(plan.nodes[plan.node(name)?].address);
            let (client, server) = (address(&spec.receiver)?, address(&spec.sender)?);
            all.push(Self::new(flow, client, server));
        }
        Ok(all)
    }

    /// Packets of a flow between the hosts of its client and its server, of which none has come.
    const fn new(flow: usize, client: Ipv4Addr, server: Ipv4Addr) -> Self {
        Self {
            flow,
            client,
            server,
            wire_bytes: 0,
            payload_bytes: 0,
            received_bytes: 0,
            sent_bytes: 0,
            ended_ns: i64::MAX,
        }
    }

    /// The client of a flow has ended, so far into the run.
    pub fn end(&mut self, flow: usize, at_ns: i64) {
        if self.flow == flow {
            self.ended_ns = at_ns;
        }
    }

    /// A packet at the host's interfaces, in a run that began at this time of its clock.
    pub fn hear(&mut self, packet: &TappedPacket, start: i64) {
        if packet.time - start > self.ended_ns {
            return;
        }
        let ends = (packet.source, packet.target);
        if packet.outgoing && ends == (self.client, self.server) {
            self.sent_bytes += u64::from(packet.frame);
        } else if !packet.outgoing && ends == (self.server, self.client) {
            self.wire_bytes += u64::from(packet.frame);
            self.payload_bytes += u64::from(packet.payload);
        }
    }

    /// A row of `received` for an interval in which something came.
    pub fn record(&mut self, time_ns: i64, tables: &mut Writer) {
        if self.wire_bytes == 0 {
            return;
        }
        tables.received.push(ReceivedRow {
            time_ns,
            flow: self.flow as u32,
            wire_bytes: self.wire_bytes as i64,
            new_bytes: self.payload_bytes as i64,
        });
        self.received_bytes += self.payload_bytes;
        (self.wire_bytes, self.payload_bytes) = (0, 0);
    }

    /// Totals of the run.
    pub fn report(&self) -> EndReport {
        EndReport {
            flow: self.flow,
            received_bytes: Some(self.received_bytes + self.payload_bytes),
            client_wire_bytes: Some(self.sent_bytes),
            ..EndReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_both_ways_count_and_others_do_not() {
        let (client, server) = (Ipv4Addr::new(10, 0, 0, 3), Ipv4Addr::new(10, 0, 0, 1));
        let mut heard = Heard::new(1, client, server);
        let packet = |source, target, outgoing, payload| TappedPacket {
            time: 1_050,
            source,
            target,
            outgoing,
            payload,
            frame: payload + 66,
            ..TappedPacket::default()
        };
        heard.hear(&packet(server, client, false, 1_000), 1_000);
        heard.hear(&packet(client, server, true, 0), 1_000);
        heard.hear(&packet(Ipv4Addr::new(10, 0, 0, 2), client, false, 500), 1_000);
        heard.end(2, 0);
        heard.end(1, 50);
        heard.hear(&packet(server, client, false, 0), 1_000);
        heard.end(1, 49);
        heard.hear(&packet(server, client, false, 700), 1_000);
        let mut tables = Writer::default();
        heard.record(100, &mut tables);
        heard.record(200, &mut tables);
        assert_eq!(tables.received.wire_bytes.values(), [1_132], "a row where something came");
        let report = heard.report();
        assert_eq!((report.received_bytes, report.client_wire_bytes), (Some(1_000), Some(66)));
    }
}
