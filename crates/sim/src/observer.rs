//! Who watches packets at the edges of hosts and links, and what they see: captures are written from this.
//!
//! A run is compiled for its observer; for `()`, which every ordinary run has, nothing is left of it.

use crate::hops::{END, PROCESSOR};
use crate::packets::{Packet, Packets};
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::{DropReason, PacketId};
use dragstrip_scenario::Topology;
use dragstrip_units::Instant;

/// Where a packet is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vantage {
    /// Between a node's protocols and its network interfaces.
    Node {
        /// Index in the nodes of the scenario.
        node: u32,
    },
    /// On a directed link.
    Link {
        /// Index in the links of the scenario.
        link: u32,
        /// In the netem behind the link, which has a queue of its own, instead of in the link's own queue and line.
        netem: bool,
    },
}

/// Whose packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flow's.
    Flow {
        /// Index in the flows of the scenario.
        flow: u32,
        /// From the receiver to the sender, as the scenario calls them, instead of the other way.
        back: bool,
    },
    /// A probe's.
    Probe {
        /// Index in the probes of the scenario.
        probe: u32,
        /// The answer instead of the request.
        back: bool,
    },
}

/// Why a packet will never arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A queue discipline dropped it.
    Queue(DropReason),
    /// The medium gave it up.
    Medium,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node's protocols send it.
    Sent {
        /// Whose it is.
        owner: Owner,
    },
    /// A node's protocols take it: it is at the end of its path.
    Received,
    /// It reaches a link's queue.
    Enqueued,
    /// It leaves the queue for the line: here a host's packet tap sees what it sends (Linux's `dev_queue_xmit_nit`).
    Dequeued,
    /// The far end has all of it: here a host's packet tap sees what it receives.
    Arrived,
    /// It is lost.
    Dropped(Loss),
    /// A queue discipline has set its codepoint to CE.
    Marked,
    /// A netem has made this copy of a packet in its queue.
    Duplicated {
        /// The packet.
        of: PacketId,
    },
}

/// A packet at a vantage point.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// When.
    pub at: Instant,
    /// Where.
    pub vantage: Vantage,
    /// What happens.
    pub event: Event,
    /// Tells packets apart from [`Event::Sent`] or [`Event::Duplicated`] to [`Event::Received`] or [`Event::Dropped`]; then it may
    /// be given to another one.
    pub packet: PacketId,
    /// DSCP and ECN.
    pub class: TrafficClass,
    /// Length of the Ethernet frame without FCS, bytes; of a burst that is one packet, of the frames it would be cut into.
    pub frame_bytes: u32,
    /// What IP carries.
    pub body: &'a Body,
}

/// Watches a run.
///
/// What happens to one packet is reported in order. Between packets the order of calls is not that of time: where a link's departures can be
/// computed on arrival, they are reported then, with `at` ahead of the clock and perhaps after the end of the run.
pub trait Observer {
    /// Whether anybody looks.
    const ON: bool = true;

    /// Something has happened, or will.
    fn saw(&mut self, sighting: &Sighting<'_>);
}

/// Nobody.
impl Observer for () {
    const ON: bool = false;

    fn saw(&mut self, _: &Sighting<'_>) {}
}

impl<O: Observer> Observer for &mut O {
    const ON: bool = O::ON;

    fn saw(&mut self, sighting: &Sighting<'_>) {
        (**self).saw(sighting);
    }
}

/// Where a stage is.
#[derive(Clone, Copy, Debug)]
struct Place {
    vantage: Vantage,
    from: u32,
    to: u32,
}

/// An observer, and the places of the stages that it is shown.
#[derive(Debug)]
pub(crate) struct Watch<O> {
    pub observer: O,
    /// Of each stage; empty when nobody looks.
    places: Vec<Place>,
    /// Of each port; likewise.
    owners: Vec<Owner>,
}

impl<O: Observer> Watch<O> {
    /// `of_link`: the stages of each link; `owners`: whose packets come to each port.
    pub fn new(
        observer: O,
        topology: &Topology<'_>,
        of_link: &[Vec<u32>],
        owners: impl Iterator<Item = Owner>,
    ) -> Self {
        let mut places = Vec::new();
        let owners = if O::ON { owners.collect() } else { Vec::new() };
        if O::ON {
            for (link, stages) in of_link.iter().enumerate() {
                let (from, to) = topology.ends(link);
                for part in 0..stages.len() {
                    let vantage = Vantage::Link { link: link as u32, netem: part > 0 };
                    places.push(Place { vantage, from: from as u32, to: to as u32 });
                }
            }
        }
        Self { observer, places, owners }
    }

    /// A packet at a stage.
    #[inline(always)]
    pub fn at_stage(
        &mut self,
        stage: usize,
        event: Event,
        id: PacketId,
        packets: &Packets,
        at: Instant,
    ) {
        if O::ON {
            self.tell(self.places[stage].vantage, event, id, packets.get(id), at);
        }
    }

    /// A packet sent by the node at the beginning of its path.
    #[inline(always)]
    pub fn sent(
        &mut self,
        hops: &[u32],
        first_hop: u32,
        id: PacketId,
        packets: &Packets,
        at: Instant,
    ) {
        if O::ON {
            let of_host = hops[first_hop as usize] & PROCESSOR != 0;
            let node = self.places[hops[first_hop as usize + usize::from(of_host)] as usize].from;
            let mut path = hops[first_hop as usize..].iter();
            let port = path.find(|hop| *hop & END != 0).map_or(0, |hop| hop & !END);
            let owner = self.owners[port as usize];
            self.tell(Vantage::Node { node }, Event::Sent { owner }, id, packets.get(id), at);
        }
    }

    /// A packet received by the node at the end of its path, `end` in the table of hops.
    #[inline(always)]
    pub fn received(
        &mut self,
        hops: &[u32],
        end: u32,
        id: PacketId,
        packets: &Packets,
        at: Instant,
    ) {
        if O::ON {
            let of_host = hops[end as usize - 1] & PROCESSOR != 0;
            let node = self.places[hops[end as usize - 1 - usize::from(of_host)] as usize].to;
            self.tell(Vantage::Node { node }, Event::Received, id, packets.get(id), at);
        }
    }

    fn tell(&mut self, vantage: Vantage, event: Event, id: PacketId, packet: &Packet, at: Instant) {
        self.observer.saw(&Sighting {
            at,
            vantage,
            event,
            packet: id,
            class: packet.class,
            frame_bytes: packet.frame(),
            body: &packet.body,
        });
    }
}
