//! Observation of packets at the edges of hosts and links: the source of captures.
//!
//! A run is compiled for its observer; for `()`, which every ordinary run has, nothing is left of it.

use crate::hops::{END, NOT_A_STAGE};
use crate::packets::Packets;
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::{DropReason, PacketId};
use dragstrip_scenario::Topology;
use dragstrip_units::Instant;

/// Observation point.
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
        /// In the netem after the link, which has a separate queue, instead of in the link's own queue and line.
        netem: bool,
    },
}

/// Owner of a packet.
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

/// Event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node's protocols send it.
    Sent {
        /// Owner of the packet.
        owner: Owner,
    },
    /// A node's protocols take it: it is at the end of its path.
    Received,
    /// The packet reaches a link's queue.
    Enqueued,
    /// It leaves the queue for the line: here a host's packet tap sees what it sends (Linux's `dev_queue_xmit_nit`).
    Dequeued,
    /// The far end has all of it: here a host's packet tap sees what it receives.
    Arrived,
    /// The packet is lost.
    Dropped(Loss),
    /// A queue discipline has set its codepoint to CE.
    Marked,
    /// A netem has made this copy of a packet in its queue.
    Duplicated {
        /// The packet.
        of: PacketId,
    },
}

impl Event {
    /// Kind of the event.
    #[inline]
    const fn kind(self) -> Kinds {
        match self {
            Self::Sent { .. } => Kinds::SENT,
            Self::Received => Kinds::RECEIVED,
            Self::Enqueued => Kinds::ENQUEUED,
            Self::Dequeued => Kinds::DEQUEUED,
            Self::Arrived => Kinds::ARRIVED,
            Self::Dropped(_) => Kinds::DROPPED,
            Self::Marked => Kinds::MARKED,
            Self::Duplicated { .. } => Kinds::DUPLICATED,
        }
    }
}

dragstrip_units::flags! {
    /// Kinds of [`Event`].
    pub struct Kinds: u8 {
        /// [`Event::Sent`].
        SENT = 1;
        /// [`Event::Received`].
        RECEIVED = 2;
        /// [`Event::Enqueued`].
        ENQUEUED = 4;
        /// [`Event::Dequeued`].
        DEQUEUED = 8;
        /// [`Event::Arrived`].
        ARRIVED = 16;
        /// [`Event::Dropped`].
        DROPPED = 32;
        /// [`Event::Marked`].
        MARKED = 64;
        /// [`Event::Duplicated`].
        DUPLICATED = 128;
        /// Everything.
        ALL = 255;
    }
}

/// A packet at a vantage point.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// Time.
    pub at: Instant,
    /// Observation point.
    pub vantage: Vantage,
    /// Event.
    pub event: Event,
    /// Tells packets apart from [`Event::Sent`] or [`Event::Duplicated`] to [`Event::Received`] or [`Event::Dropped`]; then it may
    /// be given to another one.
    pub packet: PacketId,
    /// DSCP and ECN.
    pub class: TrafficClass,
    /// Length of the Ethernet frame without FCS, bytes; of a burst that is one packet, of the frames it would be cut into.
    pub frame_bytes: u32,
    /// Payload of IP.
    pub body: &'a Body,
    /// Bytes of a QUIC datagram; empty for other packets.
    pub payload: &'a [u8],
}

/// Watches a run.
///
/// Events of one packet are reported in order. Between packets the order of calls is not that of time: if a link's
/// departures can be computed on arrival, they are reported then, with `at` ahead of the clock and perhaps after the
/// end of the run.
pub trait Observer {
    /// False for an observer that ignores every event.
    const ON: bool = true;

    /// Kinds of events to report at a vantage point, queried once before the run; no others are reported.
    fn kinds(&self, _: Vantage) -> Kinds {
        Kinds::ALL
    }

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

    fn kinds(&self, vantage: Vantage) -> Kinds {
        (**self).kinds(vantage)
    }

    fn saw(&mut self, sighting: &Sighting<'_>) {
        (**self).saw(sighting);
    }
}

/// A vantage point, and the kinds of events reported there.
#[derive(Clone, Copy, Debug)]
struct Place {
    vantage: Vantage,
    kinds: Kinds,
}

/// The beginning or the end of a path.
#[derive(Clone, Copy, Debug)]
struct PathEnd {
    place: Place,
    /// None of packets from outside, which nobody here sends.
    owner: Option<Owner>,
}

/// An observer, and the places that it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Watch<O> {
    pub observer: O,
    /// Place of each stage; empty without an observer.
    places: Vec<Place>,
    /// By entry in the table of hops: a path's first and its last; likewise.
    path_ends: Vec<Option<PathEnd>>,
}

impl<O: Observer> Watch<O> {
    /// `of_link`: the stages of each link; `owners`: whose packets come to each port.
    pub fn new(
        observer: O,
        topology: &Topology<'_>,
        of_link: &[Vec<u32>],
        hops: &[u32],
        owners: impl Iterator<Item = Option<Owner>>,
    ) -> Self {
        let mut watch = Self { observer, places: Vec::new(), path_ends: Vec::new() };
        if O::ON {
            let mut nodes = Vec::new();
            for (link, stages) in of_link.iter().enumerate() {
                for part in 0..stages.len() {
                    let vantage = Vantage::Link { link: link as u32, netem: part > 0 };
                    watch.places.push(watch.place(vantage));
                    nodes.push(topology.ends(link));
                }
            }
            watch.path_ends = vec![None; hops.len()];
            let mut first = 0;
            for (path, owner) in hops.chunk_by(|hop, _| hop & END == 0).zip(owners) {
                let mut stages = path.iter().filter(|hop| *hop & NOT_A_STAGE == 0);
                let begins = stages.clone().next().map(|stage| nodes[*stage as usize].0);
                let ends = stages.next_back().map(|stage| nodes[*stage as usize].1);
                let last = first + path.len() - 1;
                for (entry, node) in [(first, begins), (last, ends)] {
                    let vantage = node.map(|node| Vantage::Node { node: node as u32 });
                    watch.path_ends[entry] =
                        vantage.map(|vantage| PathEnd { place: watch.place(vantage), owner });
                }
                first = last + 1;
            }
        }
        watch
    }

    /// Another path is like the one with this place in the table of hops, and follows all others in it.
    pub fn repeat(&mut self, path: std::ops::RangeInclusive<usize>) {
        if O::ON {
            self.path_ends.extend_from_within(path);
        }
    }

    fn place(&self, vantage: Vantage) -> Place {
        Place { vantage, kinds: self.observer.kinds(vantage) }
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
        if O::ON && self.places[stage].kinds.any(event.kind()) {
            self.tell(self.places[stage].vantage, event, id, packets, at);
        }
    }

    /// A packet sent by the node at the beginning of its path, whose place in the table of hops this is.
    #[inline(always)]
    pub fn on_sent(&mut self, first_hop: u32, id: PacketId, packets: &Packets, at: Instant) {
        if O::ON
            && let Some(PathEnd { place, owner: Some(owner) }) = self.path_ends[first_hop as usize]
            && place.kinds.any(Kinds::SENT)
        {
            self.tell(place.vantage, Event::Sent { owner }, id, packets, at);
        }
    }

    /// A packet received by the node at the end of its path, whose place in the table of hops this is.
    #[inline(always)]
    pub fn received(&mut self, end: u32, id: PacketId, packets: &Packets, at: Instant) {
        if O::ON
            && let Some(PathEnd { place, .. }) = self.path_ends[end as usize]
            && place.kinds.any(Kinds::RECEIVED)
        {
            self.tell(place.vantage, Event::Received, id, packets, at);
        }
    }

    fn tell(
        &mut self,
        vantage: Vantage,
        event: Event,
        id: PacketId,
        packets: &Packets,
        at: Instant,
    ) {
        let packet = packets.get(id);
        self.observer.saw(&Sighting {
            at,
            vantage,
            event,
            packet: id,
            class: packet.class,
            frame_bytes: packet.frame(),
            body: &packet.body,
            payload: packets.payload(&packet.body),
        });
    }
}
