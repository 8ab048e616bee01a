//! Trace of packets: the passage of each through a link, for a stretch of the run.

use dragstrip_packet::Body;
use dragstrip_sim::{Event, Observer, Owner, Sighting, Vantage};

/// Most passages in memory: two round trips at 1 Gbit/s and 40 ms have half as many.
const ROWS_MAX: usize = 100_000;
/// Numbers of a row of [`Trace::rows`].
const COLUMNS: usize = 10;

/// A packet's way through a link, or through the netem behind it.
#[derive(Clone, Copy, Debug)]
struct Passage {
    link: u32,
    netem: bool,
    in_ns: u64,
    /// End of queueing, ns.
    line_ns: Option<u64>,
    /// Arrival at the far end, or loss, ns.
    out_ns: Option<u64>,
    lost: bool,
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
struct TrackedPacket {
    owner: Owner,
    /// Retransmission of payload.
    retransmitted: bool,
    /// A packet with payload.
    data: bool,
    marked: bool,
    bytes: u32,
    passage: Option<Passage>,
}

/// Passages that end after `from_ns`.
#[derive(Debug, Default)]
pub struct Trace {
    from_ns: u64,
    packets: Vec<Option<TrackedPacket>>,
    /// The highest sequence number that each flow has sent, forward and back.
    sent_to: Vec<[u64; 2]>,
    ended: Vec<(TrackedPacket, Passage)>,
    full: bool,
}

impl Trace {
    pub fn new(from_ns: u64) -> Self {
        Self { from_ns, ..Self::default() }
    }

    /// Drops the passages that ended before `from_ns`.
    pub fn from(&mut self, from_ns: u64) {
        self.from_ns = from_ns;
        self.ended.retain(|(_, passage)| passage.out_ns.is_none_or(|at| at >= from_ns));
        self.full = self.ended.len() >= ROWS_MAX;
    }

    /// True when passages were left out, beyond [`ROWS_MAX`].
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Ten numbers for each passage that began before `to_ns`: flow (of a probe: -1 - its number), 1 on the way back,
    /// link, 1 in netem, instants of entering, of leaving the queue and of the end (NaN: not yet), 1 if lost,
    /// 1 data + 2 retransmitted + 4 marked, bytes.
    pub fn rows(&self, to_ns: u64) -> Vec<f64> {
        let open = self.packets.iter().flatten().filter_map(|it| Some((*it, it.passage?)));
        let all = self.ended.iter().copied().chain(open);
        let mut rows = Vec::with_capacity(COLUMNS * self.ended.len());
        for (packet, passage) in all.filter(|(_, passage)| passage.in_ns <= to_ns) {
            let (subject, back) = match packet.owner {
                Owner::Flow { flow, back } => (f64::from(flow), back),
                Owner::Probe { probe, back } => (-1.0 - f64::from(probe), back),
            };
            let kind = i32::from(packet.data)
                + 2 * i32::from(packet.retransmitted)
                + 4 * i32::from(packet.marked);
            let at = |instant: Option<u64>| instant.map_or(f64::NAN, |at| at as f64);
            let flag = |it: bool| f64::from(u8::from(it));
            rows.extend([
                subject,
                flag(back),
                f64::from(passage.link),
                flag(passage.netem),
                passage.in_ns as f64,
                at(passage.line_ns),
                at(passage.out_ns),
                flag(passage.lost),
                f64::from(kind),
                f64::from(packet.bytes),
            ]);
        }
        rows
    }

    fn begin(&mut self, sighting: &Sighting<'_>, owner: Owner) {
        let mut retransmitted = false;
        let mut data = true;
        if let (Body::Tcp(segment), Owner::Flow { flow, back }) = (sighting.body, owner) {
            let flow = flow as usize;
            if self.sent_to.len() <= flow {
                self.sent_to.resize(flow + 1, [0; 2]);
            }
            let end = &mut self.sent_to[flow][usize::from(back)];
            data = segment.len > 0;
            retransmitted = data && segment.seq < *end;
            *end = segment.end_seq().max(*end);
        }
        let bytes = sighting.frame_bytes;
        self.put(
            sighting,
            Some(TrackedPacket { owner, retransmitted, data, marked: false, bytes, passage: None }),
        );
    }

    fn put(&mut self, sighting: &Sighting<'_>, packet: Option<TrackedPacket>) {
        let place = sighting.packet.0 as usize;
        if self.packets.len() <= place {
            self.packets.resize(place + 1, None);
        }
        self.packets[place] = packet;
    }

    fn packet_mut(&mut self, sighting: &Sighting<'_>) -> Option<&mut TrackedPacket> {
        self.packets.get_mut(sighting.packet.0 as usize)?.as_mut()
    }

    fn end(&mut self, sighting: &Sighting<'_>, lost: bool) {
        let at = sighting.at.as_nanos();
        let Some(entered) = entered(sighting) else { return };
        let Some(packet) = self.packet_mut(sighting) else { return };
        let passage = packet.passage.take().unwrap_or(entered);
        let packet = *packet;
        if at < self.from_ns {
            return;
        }
        if self.ended.len() < ROWS_MAX {
            self.ended.push((packet, Passage { out_ns: Some(at), lost, ..passage }));
        } else {
            self.full = true;
        }
    }
}

/// The passage of a link that begins with this sighting; none at a node.
fn entered(sighting: &Sighting<'_>) -> Option<Passage> {
    let in_ns = sighting.at.as_nanos();
    match sighting.vantage {
        Vantage::Link { link, netem } => {
            Some(Passage { link, netem, in_ns, line_ns: None, out_ns: None, lost: false })
        }
        Vantage::Node { .. } => None,
    }
}

impl Observer for Trace {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        match sighting.event {
            Event::Sent { owner } => self.begin(sighting, owner),
            Event::Duplicated { of } => {
                let copied = self.packets.get(of.0 as usize).copied().flatten();
                self.put(sighting, copied);
            }
            Event::Enqueued => {
                if let Some(packet) = self.packet_mut(sighting) {
                    packet.passage = entered(sighting);
                }
            }
            Event::Dequeued => {
                if let Some(passage) = self.packet_mut(sighting).and_then(|it| it.passage.as_mut())
                {
                    passage.line_ns = Some(sighting.at.as_nanos());
                }
            }
            Event::Marked => {
                if let Some(packet) = self.packet_mut(sighting) {
                    packet.marked = true;
                }
            }
            Event::Arrived => self.end(sighting, false),
            Event::Dropped(_) => {
                self.end(sighting, true);
                self.put(sighting, None);
            }
            Event::Received => self.put(sighting, None),
        }
    }
}
