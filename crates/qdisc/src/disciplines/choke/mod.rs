//! CHOKe: choose and keep for responsive flows, choose and kill for unresponsive ones (Pan, Prabhakar and Psounis 2000; `sch_choke.c`).
//!
//! RED, with one more judge: above the lower threshold a packet that arrives is compared with a random one of the queue. If both
//! are of one flow, **both are dropped**. Who has most in the queue is caught most often.
//!
//! As Linux 6.1 does it:
//! - the average, its thresholds and the limit are in packets; the table of idle times is tc's for packets of 1000 bytes;
//! - a threshold belongs to the zone below it (RED: above it);
//! - an average begins as busy, and an idle clock starts when a device finds nothing (htb, tbf and drr do not ask, as with
//!   RED);
//! - a packet dropped out of the middle leaves a hole, which keeps its place until it comes to the head; a draw that hits a
//!   hole is repeated, twice, then the head is taken.
//!
//! One departure: the kernel's ring has a power of two of places, and holes may fill it up; here it grows.

pub mod spec;

use crate::contract::Change;
use crate::contract::{Backlog, Dequeue, DropReason, Item, Qdisc, Sink, Verdict};
use crate::disciplines::red::average::{Average, Params, Zone};
use dragstrip_units::{Instant, Stream};
pub use spec::ChokeSpec;
use std::collections::VecDeque;

/// Draws until the head is taken.
const DRAWS: u32 = 3;

/// The discipline.
#[derive(Clone, Debug)]
pub struct Choke {
    limit: u32,
    ecn: bool,
    params: Params,
    average: Average,
    /// Packets and holes; a packet is at the head.
    ring: VecDeque<Option<Item>>,
    backlog: Backlog,
    stream: Stream,
}

impl Choke {
    fn new(limit: u32, ecn: bool, params: Params, stream: Stream) -> Self {
        Self {
            limit,
            ecn,
            average: Average::new(&params, None),
            params,
            ring: VecDeque::new(),
            backlog: Backlog::default(),
            stream,
        }
    }

    /// Takes the packet at `index` out.
    fn take(&mut self, index: usize) -> Option<Item> {
        let item = self.ring.get_mut(index)?.take()?;
        while self.ring.front().is_some_and(Option::is_none) {
            self.ring.pop_front();
        }
        self.backlog.bytes -= u64::from(item.len);
        self.backlog.packets -= 1;
        Some(item)
    }

    /// The random packet's place (`choke_peek_random`), if it is of this flow.
    fn match_random(&mut self, flow: u32) -> Option<usize> {
        let places = self.ring.len() as u32;
        if places == 0 {
            return None;
        }
        let mut candidate = 0;
        for _ in 0..DRAWS {
            let index = self.stream.below(places) as usize;
            if self.ring[index].is_some() {
                candidate = index;
                break;
            }
        }
        self.ring[candidate].filter(|item| item.flow == flow).map(|_| candidate)
    }
}

impl Qdisc for Choke {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        self.average.arrives(&self.params, u64::from(self.backlog.packets), now);
        let zone = self.average.zone_up_to(&self.params);
        let mut marked = false;
        if zone == Zone::Below {
            self.average.outside();
        } else {
            if let Some(index) = self.match_random(item.flow)
                && let Some(other) = self.take(index)
            {
                sink.dropped(other, DropReason::Aqm);
                sink.dropped(item, DropReason::Aqm);
                return Verdict::Dropped(DropReason::Aqm);
            }
            let signalled = if zone == Zone::Above {
                self.average.outside();
                true
            } else {
                self.average.chooses(&self.params, &mut self.stream)
            };
            marked = signalled && self.ecn && item.mark(sink);
            if signalled && !marked {
                sink.dropped(item, DropReason::Aqm);
                return Verdict::Dropped(DropReason::Aqm);
            }
        }
        if self.backlog.packets >= self.limit {
            sink.dropped(item, DropReason::Overlimit);
            return Verdict::Dropped(DropReason::Overlimit);
        }
        self.ring.push_back(Some(item));
        self.backlog.bytes += u64::from(item.len);
        self.backlog.packets += 1;
        if marked { Verdict::Marked } else { Verdict::Queued }
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, _sink: &mut S) -> Dequeue {
        match self.take(0) {
            Some(item) => Dequeue::Packet(item),
            None => {
                self.average.found_empty(now);
                Dequeue::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn head(&self) -> Option<Item> {
        self.ring.front().copied().flatten()
    }

    fn change<S: Sink>(&mut self, change: Change, _now: Instant, sink: &mut S) {
        // `choke_change`: a ring of another size is filled from the head without holes, and the average starts afresh.
        let Change::LimitPackets(limit) = change else { return };
        let places = |limit: u32| (u64::from(limit) + 1).next_power_of_two();
        let (before, after) = (places(self.limit), places(limit));
        self.limit = limit;
        self.average.restart();
        if after != before {
            self.ring.retain(Option::is_some);
            while self.ring.len() as u64 >= after {
                let Some(Some(item)) = self.ring.pop_back() else { break };
                self.backlog.bytes -= u64::from(item.len);
                self.backlog.packets -= 1;
                sink.dropped(item, DropReason::Overlimit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Choke;
    use crate::QdiscSpec;
    use crate::contract::{Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Verdict};
    use crate::disciplines::{Discipline, Streams};
    use crate::testing::Log;
    use dragstrip_units::{Duration, Instant};

    fn choke(words: &str) -> Choke {
        let spec = QdiscSpec::parse(&format!("choke {words}")).unwrap();
        let Discipline::Choke(choke) = spec.build(&Streams::of_link(1, "test")) else {
            panic!("choke")
        };
        *choke
    }

    fn frame(flow: u32, id: u32, ecn: Ecn) -> Item {
        Item { packet: PacketId(id), len: 1514, flow, ecn, ..Item::default() }
    }

    const DROPPED: Verdict = Verdict::Dropped(DropReason::Aqm);

    /// Seen on the kernel, of which two leave at once: 139 are queued; each of 59 more kills one and itself.
    #[test]
    fn one_flow_alone_kills_itself_above_the_lower_threshold() {
        let mut choke = choke("limit 1000 bandwidth 10mbit");
        let mut log = Log::default();
        for id in 0..200 {
            let verdict = choke.enqueue(frame(1, id, Ecn::NotEct), Instant::ZERO, &mut log);
            assert_eq!(verdict == DROPPED, id >= 141, "{id}");
            if id < 2 {
                assert!(matches!(choke.dequeue(Instant::ZERO, &mut log), Dequeue::Packet(_)));
            }
            if id == 140 {
                assert_eq!(choke.backlog().packets, 139);
            }
        }
        assert_eq!((log.drops.len(), choke.backlog().packets), (118, 80));
    }

    /// Nothing leaving, the average is first above 83 packets at the 140th arrival.
    #[test]
    fn the_first_victim_is_the_140th_arrival() {
        let mut choke = choke("limit 1000 bandwidth 10mbit");
        let mut log = Log::default();
        let first = (1..)
            .find(|&id| {
                let verdict = choke.enqueue(frame(1, id, Ecn::NotEct), Instant::ZERO, &mut log);
                verdict == DROPPED
            })
            .unwrap();
        assert_eq!(first, 140);
    }

    /// With two flows, the one that sends nine times as much is dropped far more often, per packet too.
    #[test]
    fn who_has_most_in_the_queue_is_caught_most_often() {
        let mut choke = choke("limit 1000 bandwidth 10mbit min 20 max 60");
        let mut log = Log::default();
        let mut dropped = [0_u32; 2];
        let mut packets_sent = [0_u32; 2];
        for id in 0..60_000_u32 {
            let now = Instant::ZERO + Duration::from_micros(u64::from(id) * 1_000);
            let modest = usize::from(id % 10 == 0);
            packets_sent[modest] += 1;
            let before = log.drops.len();
            let _ = choke.enqueue(frame(modest as u32, id, Ecn::NotEct), now, &mut log);
            for &(packet, _) in &log.drops[before..] {
                dropped[usize::from(packet.0 % 10 == 0)] += 1;
            }
            // Two of three leave.
            if id % 3 != 0 {
                let _ = choke.dequeue(now, &mut log);
            }
        }
        let share = |flow: usize| f64::from(dropped[flow]) / f64::from(packets_sent[flow]);
        assert!(share(0) > 2.0 * share(1), "{dropped:?} of {packets_sent:?}");
    }

    #[test]
    fn ecn_marks_other_flows_packets_and_a_full_queue_drops() {
        let mut choke = choke("limit 50 bandwidth 10mbit min 10 max 11 burst 20 ecn");
        let mut log = Log::default();
        // Each packet a flow of its own: nothing matches.
        let verdicts: Vec<Verdict> = (0..90)
            .map(|id| choke.enqueue(frame(id, id, Ecn::Ect1), Instant::ZERO, &mut log))
            .collect();
        assert_eq!(verdicts[49], Verdict::Marked);
        assert_eq!(verdicts[50], Verdict::Dropped(DropReason::Overlimit));
        let verdict = choke.enqueue(frame(99, 99, Ecn::NotEct), Instant::ZERO, &mut log);
        assert_eq!(verdict, DROPPED);
    }
}
