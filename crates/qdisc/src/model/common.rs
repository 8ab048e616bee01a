//! Shared parts of the property tests: random traffic, and a record of every packet.

use crate::change::purge;
use crate::contract::Change;
use crate::contract::{
    Backlog, Dequeue, DropReason, Dscp, Ecn, Hosts, Item, PacketId, Qdisc, Sink, Verdict,
};
use crate::testing::segment;
use crate::{Discipline, QdiscSpec, Streams};
use dragstrip_packet::{Flags, Segment};
use dragstrip_units::{Duration, Instant};
use proptest::prelude::*;

/// The discipline that a test drives.
pub(crate) fn make(spec: &QdiscSpec, seed: u64) -> Discipline {
    spec.build(&Streams::of_link(seed, "test"))
}

/// One packet: how long after the one before, its length, flow and ECN field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) gap: Duration,
    pub(crate) item: Item,
}

pub(crate) fn arrivals(packets_max: usize) -> impl Strategy<Value = Vec<Arrival>> {
    // 121,120 ns: a full frame at 100 Mbit/s.
    let gap = prop_oneof![
        2 => Just(0_u64),
        2 => Just(121_120),
        3 => 0_u64..200_000,
        1 => 0_u64..20_000_000,
    ];
    let len = prop_oneof![1 => Just(66_u32), 3 => Just(1514_u32), 1 => 14_u32..3_000];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let dscp = prop_oneof![Just(Dscp::DEFAULT), Just(Dscp::EF), Just(Dscp::LE)];
    let arrival = (gap, len, 0_u32..5, ecn, dscp).prop_map(|(gap, len, flow, ecn, dscp)| Arrival {
        gap: Duration::from_nanos(gap),
        item: Item { packet: PacketId(0), len, flow, ecn, dscp },
    });
    prop::collection::vec(arrival, 0..packets_max).prop_map(|mut arrivals| {
        for (id, arrival) in arrivals.iter_mut().enumerate() {
            arrival.item.packet = PacketId(id as u32);
        }
        arrivals
    })
}

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    Dropped,
    Left,
}

/// Report about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    Dropped(DropReason),
    Marked,
}

/// The book of all packets: panics at the first that is where it cannot be.
#[derive(Debug, Default)]
pub(crate) struct Book {
    entries: Vec<(Item, Instant, Place)>,
    /// Segment of each packet: the short ones are acknowledgements, each of more than the one before.
    segments: Vec<Segment>,
    /// For each packet itself, or the packet it is a copy of: a copy leaves beside its original.
    originals: Vec<u32>,
    inside: Backlog,
    now: Instant,
    /// Everything reported to the sink, in order.
    reported: Vec<(PacketId, Reported)>,
    /// The last original to leave of each flow.
    last_left: [Option<u32>; 8],
}

impl Book {
    fn enter(&mut self, item: Item, original: u32) {
        self.originals.push(original);
        assert_eq!(item.packet.0 as usize, self.entries.len());
        self.entries.push((item, self.now, Place::Inside));
        let payload = if item.len < 100 { 0 } else { 100 };
        let ack = u64::from(item.packet.0);
        self.segments.push(segment(ack, payload, Flags::ACK));
        self.inside.bytes += u64::from(item.len);
        self.inside.packets += 1;
    }

    fn exit(&mut self, item: Item, place: Place) {
        let (entered, since, was) = &mut self.entries[item.packet.0 as usize];
        assert_eq!(*was, Place::Inside, "{:?} is gone already", item.packet);
        assert_eq!((entered.len, entered.flow), (item.len, item.flow));
        assert!(*since <= self.now);
        *was = place;
        self.inside.bytes -= u64::from(item.len);
        self.inside.packets -= 1;
    }

    /// `item` arrives at the discipline.
    pub(crate) fn arrives<Q: Qdisc>(&mut self, qdisc: &mut Q, item: Item, now: Instant) {
        self.now = now;
        let item = Item { packet: PacketId(self.entries.len() as u32), ..item };
        self.enter(item, item.packet.0);
        let before = self.reported.len();
        let verdict = qdisc.enqueue(item, now, self);
        self.agrees(verdict, item, before);
        assert_eq!(qdisc.backlog(), self.inside);
    }

    /// The answer of `enqueue` says of `item` what the sink has been given since `before`.
    fn agrees(&self, verdict: Verdict, item: Item, before: usize) {
        let reported = &self.reported[before..];
        let fate =
            reported.iter().filter(|(packet, _)| *packet == item.packet).map(|(_, what)| *what);
        let fate: Vec<Reported> = fate.collect();
        match verdict {
            Verdict::Queued => assert!(fate.is_empty(), "{item:?}: {fate:?}"),
            Verdict::Marked => assert_eq!(fate, [Reported::Marked], "{item:?}"),
            Verdict::Dropped(reason) => {
                assert_eq!(fate.last(), Some(&Reported::Dropped(reason)), "{item:?}");
            }
            Verdict::DroppedOther(reason) => {
                assert!(fate.is_empty(), "{item:?}: {fate:?}");
                assert!(
                    reported.iter().any(|(_, what)| *what == Reported::Dropped(reason)),
                    "{item:?}"
                );
            }
        }
    }

    /// Asks for a packet.
    pub(crate) fn asks<Q: Qdisc>(
        &mut self,
        qdisc: &mut Q,
        now: Instant,
        keeps_order: bool,
    ) -> Dequeue {
        self.now = now;
        let answer = qdisc.dequeue(now, self);
        match answer {
            Dequeue::Packet(item) => {
                self.exit(item, Place::Left);
                if keeps_order {
                    let last = &mut self.last_left[item.flow as usize];
                    let original = self.originals[item.packet.0 as usize];
                    assert!(last.is_none_or(|last| last <= original), "{item:?} is late");
                    *last = Some(original);
                }
            }
            Dequeue::Wait(until) => {
                assert!(until > now);
                assert!(self.inside.packets > 0, "waits for nothing");
            }
            Dequeue::Empty => assert_eq!(self.inside, Backlog::default()),
        }
        assert_eq!(qdisc.backlog(), self.inside);
        answer
    }

    /// A setting changes.
    pub(crate) fn changes<Q: Qdisc>(&mut self, qdisc: &mut Q, change: Change, now: Instant) {
        self.now = now;
        qdisc.change(change, now, self);
        assert_eq!(qdisc.backlog(), self.inside);
    }

    /// The device goes down.
    pub(crate) fn purged<Q: Qdisc>(&mut self, qdisc: &mut Q, now: Instant) {
        self.now = now;
        purge(qdisc, now, self);
        assert_eq!((qdisc.backlog(), self.inside), (Backlog::default(), Backlog::default()));
    }
}

impl Sink for Book {
    fn dropped(&mut self, item: Item, reason: DropReason) {
        self.reported.push((item.packet, Reported::Dropped(reason)));
        self.exit(item, Place::Dropped);
    }

    fn marked(&mut self, packet: PacketId) {
        let (item, _, place) = &self.entries[packet.0 as usize];
        assert_eq!(*place, Place::Inside);
        assert_ne!(item.ecn, Ecn::NotEct);
        self.reported.push((packet, Reported::Marked));
    }

    fn duplicated(&mut self, item: Item) -> Item {
        let copy = Item { packet: PacketId(self.entries.len() as u32), ..item };
        self.enter(copy, item.packet.0);
        copy
    }

    /// Flows 0 and 2 come from one host, 1 and 3 from another; 0 and 1 go to one, 2 and 3 to another.
    fn hosts(&self, packet: PacketId) -> Hosts {
        let flow = self.entries[packet.0 as usize].0.flow;
        Hosts { source: flow % 2, destination: flow / 2 }
    }

    fn segment(&self, packet: PacketId) -> Option<&Segment> {
        self.segments.get(packet.0 as usize)
    }
}
