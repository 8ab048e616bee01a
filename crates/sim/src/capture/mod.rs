//! Captures of a run: an observer that writes what passes hosts and links as files of packets.
//!
//! A host sees what a packet tap on its interfaces does: what leaves its queue for the line, and what has arrived. A link is
//! its near end's interface: what leaves the queue there, what the queue drops, and what arrives over the link back.

mod ends;
mod order;
mod wire;

use crate::error::{SetupError, problem};
use crate::observer::{Event, Kinds, Loss, Observer, Sighting, Vantage};
use dragstrip_capture::format::{INBOUND, OUTBOUND};
use dragstrip_capture::write::{File, Record, Section};
use dragstrip_packet::{Body, TrafficClass};
use dragstrip_qdisc::DropReason;
use dragstrip_scenario::{NodeSpec, Scenario, Topology};
use dragstrip_units::Instant;
use order::Order;
use std::io::{self, Write};
use std::sync::Arc;
pub(crate) use wire::{FIRST_ADDRESS, flow_ports};
use wire::{Mark, Wire};

pub(crate) use ends::BothEnds;

/// Format of the files.
#[derive(Clone, Copy, Debug)]
pub struct CaptureSettings<'a> {
    /// Bytes kept of each frame.
    pub snaplen: u32,
    /// Bytes kept of each datagram of QUIC; 0: as of others, with zeros for a payload. Otherwise payloads are encrypted, and the keys
    /// are in the file.
    pub datagram_snaplen: u32,
    /// The program that writes, with its version.
    pub program: &'a str,
    /// Comment on the run, stored in each file.
    pub comment: &'a str,
}

/// A packet for a tap to write.
#[derive(Clone, Debug)]
struct TapPacket {
    mark: Mark,
    body: Body,
    payload: Option<Arc<[u8]>>,
    class: TrafficClass,
    /// Why it goes no further.
    dropped: Option<DropReason>,
}

/// A stage of a link at which a tap sees packets.
#[derive(Clone, Copy, Debug)]
struct Line {
    link: u32,
    direction: u32,
}

/// A vantage point and its file.
#[derive(Debug)]
struct Tap<W> {
    file: File<W>,
    lines: Vec<Line>,
    order: Order<TapPacket>,
}

/// A sighting's tap, and the line of that tap in which it is queued.
type Place = (u32, u32);

/// Places to which one link's packets are written.
#[derive(Debug, Default)]
struct AtLink {
    leaving: Vec<Place>,
    dropped: Vec<Place>,
    arriving: Vec<Place>,
    /// True when packets arrive from a netem after the link.
    netem: bool,
}

/// Capture files, one for each vantage point, written during the run.
#[derive(Debug)]
pub struct Capture<W> {
    wire: Wire,
    links: Vec<AtLink>,
    taps: Vec<Tap<W>>,
    clock: Instant,
}

impl<W: Write> Capture<W> {
    /// `points` are names of hosts and links, each with what its file is written to.
    ///
    /// # Errors
    /// A name that is neither a host nor a link.
    pub fn new(
        scenario: &Scenario,
        points: Vec<(String, W)>,
        settings: &CaptureSettings<'_>,
    ) -> Result<Self, SetupError> {
        let topology = Topology::new(scenario);
        let mut links: Vec<AtLink> = scenario
            .links
            .iter()
            .map(|link| AtLink {
                netem: scenario.netem_behind(link).is_some(),
                ..AtLink::default()
            })
            .collect();
        let with_payloads = settings.datagram_snaplen > 0;
        let wire = Wire::new(scenario, &topology, with_payloads);
        let key_log = wire.key_log();
        let snaplen = if key_log.is_empty() { settings.snaplen } else { settings.datagram_snaplen };
        let mut taps = Vec::new();
        for (name, to) in points {
            let lines = lay(scenario, &topology, &name, taps.len() as u32, &mut links)?;
            let section = Section { program: settings.program, comment: settings.comment };
            let description = if scenario.links.iter().any(|link| link.name == name) {
                "the near end of a link, behind its queue; what the queue drops has a comment"
            } else {
                "the interfaces of a host"
            };
            let mut file = File::new(to, &section, &name, description, snaplen)
                .with_headers_snaplen(settings.snaplen);
            if !key_log.is_empty() {
                file.add_key_log(&key_log);
            }
            let order = Order::new(lines.len());
            taps.push(Tap { file, lines, order });
        }
        Ok(Self { wire, links, taps, clock: Instant::ZERO })
    }

    /// Writes what was seen up to `end`, and ends the files.
    ///
    /// # Errors
    /// A file that could not be written, by its place in `points`, and why.
    pub fn finish(self, end: Instant) -> Result<(), (usize, io::Error)> {
        let Self { wire, mut taps, .. } = self;
        for tap in &mut taps {
            tap.write(end, &wire);
        }
        for (index, tap) in taps.into_iter().enumerate() {
            tap.file.finish(end).map_err(|error| (index, error))?;
        }
        Ok(())
    }
}

/// Enters the tap `tap` at the place called `name`; its lines.
fn lay(
    scenario: &Scenario,
    topology: &Topology<'_>,
    name: &str,
    tap: u32,
    links: &mut [AtLink],
) -> Result<Vec<Line>, SetupError> {
    let mut lines = Vec::new();
    let mut enter = |places: &mut Vec<Place>, link: usize, direction: u32| {
        places.push((tap, lines.len() as u32));
        lines.push(Line { link: link as u32, direction });
    };
    let is_host = |node: &NodeSpec| node.host().is_some() && node.name() == name;
    if let Some(host) = scenario.nodes.iter().position(is_host) {
        let ends = |index: usize| topology.ends(index);
        for (index, link) in
            links.iter_mut().enumerate().filter(|(index, _)| ends(*index).1 == host)
        {
            enter(&mut link.arriving, index, INBOUND);
        }
        for (index, link) in
            links.iter_mut().enumerate().filter(|(index, _)| ends(*index).0 == host)
        {
            enter(&mut link.leaving, index, OUTBOUND);
        }
    } else if let Some(index) = scenario.links.iter().position(|link| link.name == name) {
        let (from, to) = topology.ends(index);
        enter(&mut links[index].leaving, index, OUTBOUND);
        enter(&mut links[index].dropped, index, OUTBOUND);
        if let Some(back) = topology.link_between(to, from) {
            enter(&mut links[back].arriving, back, INBOUND);
        }
    } else {
        let hosts = scenario.nodes.iter().filter(|node| node.host().is_some()).map(NodeSpec::name);
        let names: Vec<&str> =
            hosts.chain(scenario.links.iter().map(|link| link.name.as_str())).take(20).collect();
        return Err(problem("--capture", format!("a host or a link: {}", names.join(" "))));
    }
    Ok(lines)
}

impl<W: Write> Tap<W> {
    /// Writes everything up to `clock`.
    fn write(&mut self, clock: Instant, wire: &Wire) {
        let Self { file, lines, order } = self;
        order.take(clock, |line, at, packet| {
            let TapPacket { mark, body, payload, class, dropped } = packet;
            let Line { link, direction } = lines[line];
            let (macs, dropped) = (wire.macs(link), dropped.map(why));
            let record = Record { at, macs, direction, id: mark.id, dropped };
            let payload = payload.as_deref().unwrap_or_default();
            file.add(&record, wire.frame(mark, *class, body, payload));
        });
    }
}

/// Comment on a packet that a queue has dropped.
const fn why(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Overlimit => "dropped by the queue: no room",
        DropReason::Aqm => "dropped by the queue: active queue management",
        DropReason::Loss => "dropped by the queue: netem's loss",
        DropReason::Corrupt => "dropped by the queue: netem's corruption",
        DropReason::Down => "dropped by the queue: the link is down",
        DropReason::Unclassified => "dropped by the queue: no class takes it",
        DropReason::AckFilter => "dropped by the queue: a later acknowledgement says as much",
    }
}

impl<W: Write> Observer for Capture<W> {
    /// Kinds that move its clock, kinds that its taps write, and duplications.
    fn kinds(&self, vantage: Vantage) -> Kinds {
        let Vantage::Link { link, netem } = vantage else { return Kinds::SENT };
        let at_link = &self.links[link as usize];
        let queue = !netem;
        Kinds::DUPLICATED
            .with_if(Kinds::DEQUEUED, queue && !at_link.leaving.is_empty())
            .with_if(Kinds::DROPPED, queue && !at_link.dropped.is_empty())
            .with_if(Kinds::ARRIVED, netem == at_link.netem && !at_link.arriving.is_empty())
    }

    #[inline]
    fn saw(&mut self, sighting: &Sighting<'_>) {
        let Sighting { at, vantage, event, packet, class, body, .. } = *sighting;
        let (link, netem) = match vantage {
            Vantage::Node { .. } => {
                self.clock = at; // nodes send when the clock says so
                if let Event::Sent { owner } = event {
                    self.wire.on_sent(owner, sighting);
                }
                return;
            }
            Vantage::Link { link, netem } => (link, netem),
        };
        if let Event::Duplicated { of } = event {
            self.wire.copied(of, packet);
            return;
        }
        let at_link = &self.links[link as usize];
        let (places, dropped) = match event {
            Event::Dequeued if !netem => (&at_link.leaving, None),
            Event::Arrived if netem == at_link.netem => (&at_link.arriving, None),
            Event::Dropped(Loss::Queue(reason)) if !netem => (&at_link.dropped, Some(reason)),
            Event::Sent { .. }
            | Event::Received
            | Event::Enqueued
            | Event::Dequeued
            | Event::Arrived
            | Event::Dropped(_)
            | Event::Marked
            | Event::Duplicated { .. } => return,
        };
        for &(tap, line) in places {
            let mark = *self.wire.mark(packet);
            let payload = self.wire.payload(packet, body);
            let record = TapPacket { mark, body: *body, payload, class, dropped };
            let tap = &mut self.taps[tap as usize];
            if tap.order.add(line as usize, at, record) {
                tap.write(self.clock, &self.wire);
            }
        }
    }
}
