//! The network between nodes that are not simulated: it takes their packets at the instants of a clock that its caller
//! reads, and says when each one arrives. Queues, lines and media are those of any run.

use crate::build;
use crate::error::SetupError;
use crate::observer::Observer;
use crate::packets::Packet;
use crate::world::World;
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::PacketId;
use dragstrip_recording::Queues;
use dragstrip_scenario::Scenario;
use dragstrip_units::Instant;
use std::collections::BTreeMap;

/// Flows that a queue tells apart; later ones share the places of earlier ones.
const FLOWS_MAX: usize = 1 << 16;

/// A direction between the nodes of a pair: twice the pair's number, and one more for the way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way(pub usize);

impl Way {
    /// From the first node of the first pair to its second.
    pub const THERE: Self = Self(0);
    /// The way back.
    pub const BACK: Self = Self(1);

    /// The other direction of the same pair.
    #[must_use]
    pub const fn opposite(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Paths of one direction.
#[derive(Debug)]
struct Ports {
    /// First hop of the way.
    first_hop: u32,
    /// First hop of each flow's own path.
    flows: BTreeMap<u32, u32>,
}

/// A network between pairs of nodes. Its observer sees every packet on every link, and those that arrive at a node; a packet that
/// a node sends is handed over with its number instead.
#[derive(Debug)]
pub struct Forwarder<O> {
    world: World<O>,
    /// By number.
    ways: Vec<Ports>,
}

impl<O: Observer> Forwarder<O> {
    /// The network of `scenario` between the nodes of each pair, at instant zero; its flows and probes are left out.
    ///
    /// # Errors
    /// A scenario that validation would refuse, or nodes that it does not connect.
    pub fn new(scenario: &Scenario, pairs: &[[&str; 2]], observer: O) -> Result<Self, SetupError> {
        build::valid(scenario)?;
        let bare = Scenario { flows: Vec::new(), probes: Vec::new(), ..scenario.clone() };
        Self::unchecked(&bare, pairs, observer)
    }

    /// The same with the flows and probes of `scenario`, which begin as in any run. The observer sees their packets too.
    ///
    /// # Errors
    /// A scenario that validation would refuse, or nodes that it does not connect.
    pub fn among_flows(
        scenario: &Scenario,
        pairs: &[[&str; 2]],
        observer: O,
    ) -> Result<Self, SetupError> {
        build::check(scenario)?;
        Self::unchecked(scenario, pairs, observer)
    }

    fn unchecked(
        scenario: &Scenario,
        pairs: &[[&str; 2]],
        observer: O,
    ) -> Result<Self, SetupError> {
        let (world, first_hops) = build::build_between(scenario, pairs, observer)?;
        let ports = |first_hop| Ports { first_hop, flows: BTreeMap::new() };
        Ok(Self { world, ways: first_hops.into_iter().map(ports).collect() })
    }

    /// Lets everything happen that is due until `until`, the arrivals among it.
    pub fn advance(&mut self, until: Instant) {
        self.world.advance(until, u32::MAX);
    }

    /// The next instant at which something happens; none while nothing is on its way.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.world.pending()
    }

    /// The last instant that it can reach.
    #[must_use]
    pub const fn end(&self) -> Instant {
        self.world.end()
    }

    /// A packet enters at the instant up to which time has advanced. `flow` identifies its 5-tuple, by which fair queueing
    /// classifies it; `keep` is told its number before anything happens to it.
    pub fn send(
        &mut self,
        way: Way,
        flow: u32,
        class: TrafficClass,
        body: Body,
        frame_bytes: u32,
        keep: impl FnOnce(&mut O, PacketId),
    ) {
        let network = &mut self.world.network;
        let ports = &mut self.ways[way.0];
        let flow = if ports.flows.len() < FLOWS_MAX || ports.flows.contains_key(&flow) {
            flow
        } else {
            let later = ports.flows.range(flow..).next().or_else(|| ports.flows.iter().next());
            later.map_or(flow, |(flow, _)| *flow)
        };
        let first_hop = ports.first_hop;
        let first_hop =
            *ports.flows.entry(flow).or_insert_with(|| network.add_port(first_hop, flow));
        let id = network.insert(Packet::of_length(frame_bytes, body, class));
        keep(&mut network.watch.observer, id);
        network.depart(id, first_hop, frame_bytes, self.world.now);
    }

    /// Bytes that the receiver of the scenario's flow with this index has in order.
    #[must_use]
    pub fn bytes_received(&self, flow: usize) -> u64 {
        self.world.bytes_received(flow)
    }

    /// Adds rows of `queues` for the instant up to which time has advanced.
    pub fn record_queues(&mut self) {
        self.world.record_queues();
    }

    /// Rows of `queues` so far: one per link with a queue and interval.
    #[must_use]
    pub const fn queues(&self) -> &Queues {
        &self.world.tables().queues
    }

    /// The observer.
    pub const fn observer_mut(&mut self) -> &mut O {
        self.world.observer_mut()
    }

    /// The same.
    #[must_use]
    pub const fn observer(&self) -> &O {
        self.world.observer()
    }
}
