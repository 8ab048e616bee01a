//! The path.

use crate::datagram::{Arrival, Datagram, End, PAYLOAD_MAX, Totals};
use crate::ledger::Ledger;
use crate::path::{self, Error};
use dragstrip_packet::{Body, Dscp, TrafficClass};
use dragstrip_scenario::Scenario;
use dragstrip_sim::{Forwarder, Way};
use dragstrip_units::Instant;
use std::time::Duration;

/// Headers of Ethernet, IPv4 and UDP around a payload.
const HEADERS_BYTES: u32 = 14 + 20 + 8;

/// The number by which fair queueing knows the caller's connection.
const FLOW: u32 = 1 << 20;

/// A flow of TCP in the same network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Its congestion control.
    pub algorithm: String,
    /// Bytes that its receiver has in order.
    pub bytes_received: u64,
}

/// A path between two ends, with other flows on it.
#[derive(Debug)]
pub struct Strip {
    network: Forwarder<Ledger>,
    rivals: Vec<String>,
}

impl Strip {
    /// The path that these options of `dragstrip compare` describe (`rate`, `rtt`, `queue`, `path`, `medium`, `loss`, `netem`, …),
    /// with a flow of TCP for each of `rivals` (`cubic`, `bbr`, `reno*3`, `cubic@80ms`, …) from the start.
    ///
    /// # Errors
    /// An option that does not exist or whose value is none of its own, by name.
    pub fn new(options: &[(&str, &str)], rivals: &[&str], seed: u64) -> Result<Self, Error> {
        let (scenario, [client, server]) = path::scenario(options, rivals, seed)?;
        if rivals.is_empty() {
            let network = Forwarder::new(&scenario, &[[&client, &server]], Ledger::default())?;
            return Ok(Self { network, rivals: Vec::new() });
        }
        Self::of_scenario(&scenario, [&client, &server])
    }

    /// The network of a scenario, between two of its hosts (the client and the server), with the scenario's flows.
    ///
    /// # Errors
    /// A scenario that is not valid, or hosts that it does not connect.
    pub fn of_scenario(scenario: &Scenario, ends: [&str; 2]) -> Result<Self, Error> {
        let network = Forwarder::among_flows(scenario, &[ends], Ledger::default())?;
        let rivals = scenario.flows.iter().map(|flow| flow.transport.name().to_owned());
        Ok(Self { network, rivals: rivals.collect() })
    }

    /// Sends a datagram now, the time up to which the path has advanced. A payload of more than [`PAYLOAD_MAX`] bytes is dropped, as a
    /// host drops it that may not fragment.
    pub fn send(&mut self, from: End, datagram: Datagram) {
        let to = from.other();
        let Datagram { payload, ecn } = datagram;
        if payload.len() > PAYLOAD_MAX {
            let totals = &mut self.network.observer_mut().totals[to as usize];
            totals.sent += 1;
            totals.dropped += 1;
            return;
        }
        let frame_bytes = HEADERS_BYTES + payload.len() as u32;
        let way = if from == End::Client { Way::THERE } else { Way::BACK };
        let class = TrafficClass::new(Dscp::DEFAULT, ecn);
        let body = Body::Udp(dragstrip_packet::Datagram { number: 0, len: payload.len() as u16 });
        self.network.send(way, FLOW, class, body, frame_bytes, |ledger, packet| {
            ledger.keep(packet.0, to, payload);
        });
    }

    /// The next time at which something happens on the path; `None` if nothing ever will unless something is sent.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        self.network.due().map(|at| Duration::from_nanos(at.as_nanos()))
    }

    /// Lets everything happen that is due until `now`, a time since the start. Time that has passed already stays as it is.
    pub fn advance(&mut self, now: Duration) {
        let now = Instant::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        self.network.advance(now);
    }

    /// Takes the earliest arrival that has not been taken yet.
    pub fn receive(&mut self) -> Option<Arrival> {
        self.network.observer_mut().arrivals.pop_front()
    }

    /// Counts of the datagrams to an end.
    #[must_use]
    pub fn totals(&self, to: End) -> Totals {
        self.network.observer().totals[to as usize]
    }

    /// The flows of TCP and what they have carried so far.
    #[must_use]
    pub fn rivals(&self) -> Vec<Rival> {
        let flows = self.rivals.iter().enumerate();
        flows
            .map(|(index, algorithm)| Rival {
                algorithm: algorithm.clone(),
                bytes_received: self.network.bytes_received(index),
            })
            .collect()
    }

    /// The last time that the path can reach: the option `duration`.
    #[must_use]
    pub fn end(&self) -> Duration {
        Duration::from_nanos(self.network.end().as_nanos())
    }
}
