//! Conservation of packets and bytes in a run, counted in independent places: for tests.

use crate::apps::FlowKind;
use crate::network::{Card, Processor, Server};
use crate::observer::Observer;
use crate::world::World;
use crate::{Recording, SetupError, build, parts};
use dragstrip_scenario::Scenario;
use dragstrip_units::Instant;

/// The books of a run at its end.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Packets that hosts and routers sent.
    pub sent: u64,
    /// Copies that netem made.
    pub copied: u64,
    /// Packets that reached the end of their path.
    pub delivered: u64,
    /// Packets that a queue or an impairment dropped.
    pub dropped: u64,
    /// Packets found waiting in queues and on links.
    pub waiting: u64,
    /// Packet records in use.
    pub records: u64,
    /// Payloads of QUIC's datagrams in use.
    pub payloads: u64,
    /// Both directions of every TCP connection.
    pub streams: Vec<Stream>,
}

/// One direction of a TCP connection.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The flow's label, and which end sends.
    pub name: String,
    /// Bytes written to the socket.
    pub written: u64,
    /// Bytes that arrived in order.
    pub in_order: u64,
    /// Bytes that the sender knows to have arrived.
    pub acked: u64,
    /// The flow runs, and not everything written has been acknowledged.
    pub unfinished: bool,
    /// Time of the sending host's next timer.
    pub deadline: Instant,
    /// Time for which the event queue has scheduled that timer.
    pub scheduled: Instant,
    /// Time at which the run ended.
    pub now: Instant,
}

/// Runs `scenario` and closes the books.
///
/// # Errors
/// A scenario that validation would refuse.
pub fn audit(scenario: &Scenario) -> Result<(Recording, Audit), SetupError> {
    audit_observed(scenario, ())
}

/// The same for `observer` to watch.
///
/// # Errors
/// A scenario that validation would refuse.
pub fn audit_observed<O: Observer>(
    scenario: &Scenario,
    observer: O,
) -> Result<(Recording, Audit), SetupError> {
    let mut world = build::build(scenario, observer)?;
    world.run(&mut |_| true);
    let audit = world.audit(scenario);
    Ok((world.finish(scenario), audit))
}

/// The recordings of a scenario of any size in one world and in at most `count` parts; `None` where it cannot be cut.
///
/// # Errors
/// A scenario that validation would refuse.
pub fn in_parts(scenario: &Scenario, count: usize) -> Result<Option<[Recording; 2]>, SetupError> {
    parts::both_ways(scenario, count)
}

impl<O: Observer> World<O> {
    fn audit(&self, scenario: &Scenario) -> Audit {
        let network = &self.network;
        let mut audit = Audit {
            sent: network.sent,
            delivered: network.delivered,
            copied: 0,
            dropped: 0,
            waiting: network.lanes.iter().map(|lane| lane.len() as u64).sum(),
            records: network.packets.len() as u64,
            payloads: network.packets.payloads() as u64,
            streams: Vec::new(),
        };
        audit.waiting += network.processors.iter().map(Processor::packets).sum::<u64>();
        audit.waiting += network.cards.iter().map(Card::packets).sum::<u64>();
        for stage in &network.stages {
            let rare = stage.counters.rare();
            audit.copied += rare.copied;
            audit.dropped += rare.dropped;
            // A packet in a computed queue is already in the lane after it.
            audit.waiting += match &stage.server {
                Server::Computed(_) => 0,
                Server::Evented(evented) => u64::from(evented.packets()),
                Server::Shared(shared) => u64::from(shared.packets()),
                Server::Tunnel(tunnel) => tunnel.packets(),
            };
        }
        for (flow, spec) in self.flows.iter().zip(&scenario.flows) {
            let FlowKind::Tcp { client, server } = flow.kind else { continue };
            for (end, from, to) in [("client", client, server), ("server", server, client)] {
                let (from, to) = (&self.sockets[from as usize], &self.sockets[to as usize]);
                let written_bytes = from.endpoint.bytes_written();
                let acked = from.endpoint.bytes_acked();
                audit.streams.push(Stream {
                    name: format!("{}/{end}", spec.label),
                    written: written_bytes,
                    in_order: to.endpoint.bytes_in_order(),
                    acked,
                    unfinished: flow.is_running() && acked < written_bytes,
                    deadline: from.endpoint.deadline(),
                    scheduled: from.scheduled,
                    now: self.now,
                });
            }
        }
        audit
    }
}
