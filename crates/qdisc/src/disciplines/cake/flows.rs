//! A tin's queues: who is in which, whose turn it is, and how many busy flows a host has.
//!
//! ```text
//!                 ┌────────────── packet ◀───────────────┐
//!   unused ──packet──▶ sparse ──deficit used up──▶ bulk ──empty──▶ decaying ──at rest──▶ unused
//!                        └─the same, but empty─▶ sparse-wait ─packet─▶ bulk
//! ```
//!
//! Sparse flows are in the list of new flows, bulk and waiting ones in that of old flows.

use super::cobalt::Cobalt;
use super::config::Isolation;
use super::tins::Terms;
use crate::arena::Queue;
use dragstrip_units::Stream;

/// Queues of a tin, and places for hosts.
pub(super) const QUEUES: usize = 1024;
/// Queues that a flow may be given: those of its set (`CAKE_SET_WAYS`).
const WAYS: usize = 8;

/// The 32-bit hashes of a packet's flow and of its hosts' addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub flow: u32,
    pub source: u32,
    pub destination: u32,
}

/// State of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Unused,
    Sparse,
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub queue: Queue,
    pub cobalt: Cobalt,
    pub deficit: i64,
    /// Places of its hosts.
    source: u16,
    destination: u16,
    pub set: Set,
    /// Tag of the flow that last owned the queue.
    tag: u32,
    /// Its neighbours in the list it is in.
    before: u16,
    behind: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    source_tag: u32,
    destination_tag: u32,
    /// Bulk flows from it and to it.
    source_flows: u16,
    destination_flows: u16,
}

const NONE: u16 = u16::MAX;

/// Flows in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u16,
    tail: u16,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(super) fn first(self) -> Option<usize> {
        (self.head != NONE).then_some(usize::from(self.head))
    }

    fn push_back(&mut self, flows: &mut [Flow], index: usize) {
        let tail = std::mem::replace(&mut self.tail, index as u16);
        (flows[index].before, flows[index].behind) = (tail, NONE);
        match flows.get_mut(usize::from(tail)) {
            Some(last) => last.behind = index as u16,
            None => self.head = index as u16,
        }
    }

    fn remove(&mut self, flows: &mut [Flow], index: usize) {
        let Flow { before, behind, .. } = flows[index];
        match flows.get_mut(usize::from(before)) {
            Some(flow) => flow.behind = behind,
            None => self.head = behind,
        }
        match flows.get_mut(usize::from(behind)) {
            Some(flow) => flow.before = before,
            None => self.tail = before,
        }
    }
}

/// The queues of a tin.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    isolation: Isolation,
    pub all: Vec<Flow>,
    hosts: Vec<Host>,
    new: List,
    old: List,
    decaying: List,
    pub sparse: u32,
    pub bulk: u32,
}

/// The places of the set around `place`, from there on.
fn ways(place: usize) -> impl Iterator<Item = usize> {
    let first = place - place % WAYS;
    (0..WAYS).map(move |way| first + (place + way) % WAYS)
}

impl Flows {
    pub(super) fn new(isolation: Isolation) -> Self {
        let flow = Flow {
            queue: Queue::EMPTY,
            cobalt: Cobalt::NEW,
            deficit: 0,
            source: 0,
            destination: 0,
            set: Set::Unused,
            tag: 0,
            before: NONE,
            behind: NONE,
        };
        Self {
            isolation,
            all: vec![flow; QUEUES],
            hosts: vec![Host::default(); QUEUES],
            new: List::EMPTY,
            old: List::EMPTY,
            decaying: List::EMPTY,
            sparse: 0,
            bulk: 0,
        }
    }

    /// The queue of a packet (`cake_hash`): the one that its hash names if that is its own, else one of the set that is its own,
    /// else an unused one of the set, else the first again, which is then shared.
    pub(super) fn place(&mut self, key: Key) -> usize {
        if self.isolation == Isolation::Flowblind {
            return 0;
        }
        let tag = match self.isolation {
            Isolation::Srchost => key.source,
            Isolation::Dsthost => key.destination,
            Isolation::Hosts => key.source ^ key.destination,
            Isolation::Flowblind
            | Isolation::Flows
            | Isolation::DualSrchost
            | Isolation::DualDsthost
            | Isolation::TripleIsolate => key.flow,
        };
        let direct = tag as usize % QUEUES;
        let is_own = |flow: &Flow| flow.tag == tag;
        if is_own(&self.all[direct]) && self.all[direct].set != Set::Unused {
            return direct;
        }
        if let Some(own) = ways(direct).find(|&way| is_own(&self.all[way])) {
            if self.all[own].set == Set::Unused {
                self.settle_hosts(own, key);
            }
            return own;
        }
        let unused = ways(direct).find(|&way| self.all[way].set == Set::Unused);
        if unused.is_none() && self.all[direct].set == Set::Bulk {
            self.count_hosts(direct, false);
        }
        let index = unused.unwrap_or(direct);
        self.all[index].tag = tag;
        self.settle_hosts(index, key);
        index
    }

    /// Gives a flow's hosts their places, likewise.
    fn settle_hosts(&mut self, index: usize, key: Key) {
        let (Key { source, destination, .. }, hosts) = (key, &mut self.hosts);
        if self.isolation.by_source() {
            let direct = source as usize % QUEUES;
            let place = ways(direct)
                .find(|&way| hosts[way].source_tag == source)
                .or_else(|| ways(direct).find(|&way| hosts[way].source_flows == 0))
                .unwrap_or(direct);
            hosts[place].source_tag = source;
            self.all[index].source = place as u16;
        }
        if self.isolation.by_destination() {
            let direct = destination as usize % QUEUES;
            let place = ways(direct)
                .find(|&way| hosts[way].destination_tag == destination)
                .or_else(|| ways(direct).find(|&way| hosts[way].destination_flows == 0))
                .unwrap_or(direct);
            hosts[place].destination_tag = destination;
            self.all[index].destination = place as u16;
        }
        if self.all[index].set == Set::Bulk {
            self.count_hosts(index, true);
        }
    }

    /// Its hosts have a bulk flow more, or one less.
    fn count_hosts(&mut self, index: usize, more: bool) {
        let count = |flows: &mut u16| {
            *flows = if more { (*flows + 1).min(QUEUES as u16) } else { flows.saturating_sub(1) };
        };
        let Flow { source, destination, .. } = self.all[index];
        if self.isolation.by_source() {
            count(&mut self.hosts[usize::from(source)].source_flows);
        }
        if self.isolation.by_destination() {
            count(&mut self.hosts[usize::from(destination)].destination_flows);
        }
    }

    /// Bytes that a flow may send in turn: its part of the quantum, by the busier of its hosts, rounded up or down by chance so
    /// that nobody gains (`cake_get_flow_quantum`).
    fn quantum(&self, index: usize, terms: &Terms, stream: &mut Stream) -> i64 {
        let Flow { source, destination, .. } = self.all[index];
        let mut load = 1;
        if self.isolation.by_source() {
            load = load.max(self.hosts[usize::from(source)].source_flows);
        }
        if self.isolation.by_destination() {
            load = load.max(self.hosts[usize::from(destination)].destination_flows);
        }
        let part = u32::from(u16::MAX / load);
        i64::from((terms.quantum * part + (stream.next_u32() >> 16)) >> 16)
    }

    /// A packet has come to this queue.
    pub(super) fn has_packet(&mut self, index: usize, terms: &Terms, stream: &mut Stream) {
        match self.all[index].set {
            was @ (Set::Unused | Set::Decaying) => {
                if was == Set::Decaying {
                    self.decaying.remove(&mut self.all, index);
                }
                self.new.push_back(&mut self.all, index);
                self.sparse += 1;
                self.all[index].set = Set::Sparse;
                self.all[index].deficit = self.quantum(index, terms, stream);
            }
            Set::SparseWait => {
                self.sparse -= 1;
                self.becomes_bulk(index);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn becomes_bulk(&mut self, index: usize) {
        self.bulk += 1;
        self.all[index].set = Set::Bulk;
        self.count_hosts(index, true);
    }

    /// True when any flow is scheduled.
    pub(super) fn any(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Returns the flow in turn; with `decaying` also the decaying flows, and these first.
    pub(super) fn turn(&self, decaying: bool) -> Option<usize> {
        let first = if decaying { self.decaying.first() } else { None };
        first.or_else(|| self.new.first()).or_else(|| self.old.first())
    }

    /// The flow in turn has used up its deficit: it gets another quantum and goes to the end of the old ones.
    pub(super) fn refill(&mut self, index: usize, terms: &Terms, stream: &mut Stream) {
        let list = if self.all[index].set == Set::Sparse { &mut self.new } else { &mut self.old };
        list.remove(&mut self.all, index);
        self.old.push_back(&mut self.all, index);
        if self.all[index].set == Set::Sparse {
            if self.all[index].queue.packets > 0 {
                self.sparse -= 1;
                self.becomes_bulk(index);
            } else {
                self.all[index].set = Set::SparseWait;
            }
        }
        self.all[index].deficit += self.quantum(index, terms, stream);
    }

    /// The flow in turn has no packet: it goes, or stays among those that decay.
    pub(super) fn retire(&mut self, index: usize, at_rest: bool) {
        let was = self.all[index].set;
        match was {
            Set::Sparse => self.new.remove(&mut self.all, index),
            Set::SparseWait | Set::Bulk => self.old.remove(&mut self.all, index),
            Set::Decaying => self.decaying.remove(&mut self.all, index),
            Set::Unused => {}
        }
        match was {
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Bulk => {
                self.bulk -= 1;
                self.count_hosts(index, false);
            }
            Set::Decaying | Set::Unused => {}
        }
        self.all[index].set = if at_rest { Set::Unused } else { Set::Decaying };
        if !at_rest {
            self.decaying.push_back(&mut self.all, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flows, Isolation, Key, Set};

    fn key(flow: u32) -> Key {
        Key { flow, source: 1, destination: 2 }
    }

    fn occupy(flows: &mut Flows, flow: u32) -> usize {
        let index = flows.place(key(flow));
        flows.all[index].set = Set::Sparse;
        index
    }

    /// 5 and 1029 have the same place; a set has eight; the ninth flow shares the place that its hash names.
    #[test]
    fn eight_flows_with_one_hash_have_queues_of_their_own() {
        let mut flows = Flows::new(Isolation::Flows);
        let alike: Vec<u32> = (0..8).map(|turn| 5 + turn * 1024).collect();
        let places: Vec<usize> = alike.iter().map(|flow| occupy(&mut flows, *flow)).collect();
        assert_eq!(places, [5, 6, 7, 0, 1, 2, 3, 4]);
        assert_eq!(alike.iter().map(|flow| flows.place(key(*flow))).collect::<Vec<_>>(), places);
        assert_eq!(flows.place(key(5 + 8 * 1024)), 5);
        // It has taken the queue over; the one it was taken from finds no other.
        assert_eq!(flows.place(key(5)), 5);
    }

    #[test]
    fn an_unused_queue_remembers_its_flow() {
        let mut flows = Flows::new(Isolation::Flows);
        assert_eq!([5, 1029].map(|flow| occupy(&mut flows, flow)), [5, 6]);
        flows.all[5].set = Set::Unused;
        flows.all[6].set = Set::Unused;
        assert_eq!(occupy(&mut flows, 1029), 6);
        assert_eq!(occupy(&mut flows, 2053), 5);
    }

    #[test]
    fn what_shares_a_queue_is_what_the_isolation_does_not_tell_apart() {
        let keys = [(1, 10, 30), (2, 10, 30), (3, 10, 40), (4, 20, 30)];
        let places = |isolation| {
            let mut flows = Flows::new(isolation);
            keys.map(|(flow, source, destination)| {
                let index = flows.place(Key { flow, source, destination });
                flows.all[index].set = Set::Sparse;
                index
            })
        };
        assert_eq!(places(Isolation::Flowblind), [0, 0, 0, 0]);
        assert_eq!(places(Isolation::Srchost), [10, 10, 10, 20]);
        assert_eq!(places(Isolation::Dsthost), [30, 30, 40, 30]);
        assert_eq!(places(Isolation::Hosts), [10 ^ 30, 10 ^ 30, 10 ^ 40, 20 ^ 30]);
        for isolation in [Isolation::Flows, Isolation::DualSrchost, Isolation::TripleIsolate] {
            assert_eq!(places(isolation), [1, 2, 3, 4]);
        }
    }
}
