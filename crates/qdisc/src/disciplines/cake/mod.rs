//! Common Applications Kept Enhanced: shaper, priorities, fair queueing and AQM in one (`sch_cake.c`; Høiland-Jørgensen, Täht and
//! Morton, "Piece of CAKE", LANMAN 2018).
//!
//! ```text
//!            tin 2 (voice)  ── queues, sparse flows first, hosts in equal shares, each under COBALT ─┐
//!   DSCP ──▶ tin 0 (best effort) ── the same ──────────────────────────────────────────────────────┼─▶ shaper
//!            tin 1 (bulk)   ── the same ───────────────────────────────────────────────────────────┘
//! ```
//!
//! - **Shaper**: a clock that each packet sets forward by what it takes at the rate, from where it stood. So there is no burst, and
//!   what leaves late is made good. A second clock, 1.5 times as slow, lets packets go if the first has run away (`ingress`).
//! - **Tins** have such a clock each, at their part of the rate: of those whose clock has come, the highest goes; else the one whose
//!   clock is next. Without a shaper they take turns by weight.
//! - **Queues**: a thousand in each tin, found by a set-associative hash ([`flows`]); deficit round robin, and a flow's quantum is
//!   divided by the number of busy flows of its host.
//! - **COBALT** ([`cobalt`]) judges packets when they leave, but never drops a queue's last.
//! - **Memory**: beyond the limit the queue with most bytes of all tins loses its oldest packet ([`longest`]).
//! - **Acknowledgements** that a newer one makes superfluous may be removed ([`acks`]).
//!
//! Departures: memory is `truesize` as for fq_codel; the full frame by which COBALT judges its target has 1514 bytes, whatever the
//! interface's MTU. After the last packet has gone the kernel sets a timer that does nothing while the queue is empty, and so there
//! is none here.

mod acks;
mod cobalt;
mod config;
mod flows;
mod longest;
pub mod spec;
mod tins;

use crate::arena::Arena;
use crate::contract::{
    Backlog, Change, Dequeue, DropReason, Dscp, Hosts, Item, PacketId, Qdisc, Sink, Verdict,
};
use crate::flow_hash::FlowHash;
use crate::netlink::saturated;
use crate::truesize::truesize;
pub use config::{AckFilter, Charge, Config, Diffserv, Isolation, LinkLayer};
use dragstrip_units::{Instant, Stream};
use flows::{Flows, Key, Set};
use longest::Longest;
pub use spec::CakeSpec;
use tins::{ByteTime, Terms};

/// Note stored with a packet.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Arrival time, ns.
    arrived: i64,
    /// Bytes the shaper charges for it.
    charged: u32,
}

/// A tin's bandwidth share, and how much of it has been used.
#[derive(Clone, Copy, Debug)]
struct Tin {
    terms: Terms,
    /// With a shaper: from when on it is within its part of the rate.
    due: i64,
    /// Without one: what it may send in turn.
    quantum: i64,
    deficit: i64,
    /// Bytes queued.
    bytes: u64,
}

/// Clocks of a shaper: the next packet may leave at the earlier of these.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    time: ByteTime,
    next: i64,
    failsafe: i64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Cake {
    config: Config,
    memory_limit: u64,
    hash: FlowHash,
    stream: Stream,
    tins: Vec<Tin>,
    /// Flows of each tin.
    flows: Vec<Flows>,
    /// The tin in turn.
    turn: usize,
    clocks: Clocks,
    arena: Arena<Note>,
    longest: Longest,
    backlog: Backlog,
    memory: u64,
}

fn nanos(at: Instant) -> i64 {
    at.as_nanos() as i64
}

impl Cake {
    /// Empty queues; which flows share one, and by how much quanta are rounded, follows from `stream`.
    #[must_use]
    pub fn new(config: Config, mut stream: Stream) -> Self {
        let tins: Vec<Tin> = tins::shares(config.diffserv, config.rate)
            .into_iter()
            .map(|share| Tin {
                terms: tins::terms(share.rate, &config),
                due: 0,
                quantum: share.quantum,
                deficit: 0,
                bytes: 0,
            })
            .collect();
        Self {
            memory_limit: u64::from(config.memory_limit()),
            hash: FlowHash::new(&mut stream),
            stream,
            flows: tins.iter().map(|_| Flows::new(config.isolation)).collect(),
            turn: 0,
            clocks: Clocks { time: ByteTime::at(config.rate), next: 0, failsafe: 0 },
            arena: Arena::new(),
            longest: Longest::default(),
            backlog: Backlog::default(),
            memory: 0,
            config,
            tins,
        }
    }

    /// Computes the values derived from rate and memory (`cake_reconfigure`).
    fn reconfigure(&mut self) {
        let Config { diffserv, rate, .. } = self.config;
        for (tin, share) in self.tins.iter_mut().zip(tins::shares(diffserv, rate)) {
            (tin.terms, tin.quantum) = (tins::terms(share.rate, &self.config), share.quantum);
        }
        self.clocks.time = ByteTime::at(rate);
        self.memory_limit = u64::from(self.config.memory_limit());
    }

    /// The tin and the queue of a packet.
    fn place<S: Sink>(&mut self, item: &Item, sink: &S) -> (usize, usize) {
        let tin = tins::tin_of(self.config.diffserv, item.dscp);
        let by_host = !matches!(self.config.isolation, Isolation::Flowblind | Isolation::Flows);
        let hosts = if by_host { sink.hosts(item.packet) } else { Hosts::default() };
        let key = Key {
            flow: self.hash.of(item.flow),
            source: self.hash.of(hosts.source),
            destination: self.hash.of(hosts.destination),
        };
        (tin, self.flows[tin].place(key))
    }

    /// Clocks of what has been idle are not in arrears.
    fn wake(&mut self, tin: usize, now: i64) {
        let (tin, clocks) = (&mut self.tins[tin], &mut self.clocks);
        if tin.bytes > 0 {
            return;
        }
        tin.due = tin.due.max(now);
        if self.backlog.packets == 0 && clocks.next < now {
            (clocks.next, clocks.failsafe) = (now, now);
        }
    }

    /// Takes the acknowledgement out that the last packet of this queue makes superfluous.
    fn filter<S: Sink>(&mut self, (tin, queue): (usize, usize), now: i64, sink: &mut S) -> bool {
        let aggressive = match self.config.ack_filter {
            AckFilter::NoAckFilter => return false,
            AckFilter::AckFilter => false,
            AckFilter::AckFilterAggressive => true,
        };
        let flow = &mut self.flows[tin].all[queue];
        let Some(place) = acks::superfluous(&self.arena, &flow.queue, aggressive, sink) else {
            return false;
        };
        let (item, note) = self.arena.take(&mut flow.queue, place);
        self.count_out(tin, &item);
        if self.config.ingress {
            self.charge(tin, note.charged, now, true);
        }
        sink.dropped(item, DropReason::AckFilter);
        true
    }

    fn count_out(&mut self, tin: usize, item: &Item) {
        let len = u64::from(item.len);
        self.tins[tin].bytes -= len;
        self.backlog.bytes -= len;
        self.backlog.packets -= 1;
        self.memory -= truesize(item.len);
    }

    /// The next packet of a queue.
    fn pop(&mut self, (tin, queue): (usize, usize)) -> Option<(Item, Note)> {
        let entry = self.arena.pop_front(&mut self.flows[tin].all[queue].queue)?;
        self.count_out(tin, &entry.0);
        Some(entry)
    }

    /// Drops the oldest packet of the queue with most bytes.
    fn drop_from_longest<S: Sink>(&mut self, now: i64, sink: &mut S) -> Option<PacketId> {
        let (tin, queue) = self.longest.queue(&self.flows);
        let Some((item, note)) = self.pop((tin, queue)) else {
            self.longest.is_wrong();
            return None;
        };
        self.flows[tin].all[queue].cobalt.overflows(&self.tins[tin].terms.cobalt, now);
        if self.config.ingress {
            self.charge(tin, note.charged, now, true);
        }
        self.longest.was_dropped_from(&self.flows);
        sink.dropped(item, DropReason::Overlimit);
        Some(item.packet)
    }

    /// Sets the clocks forward by a packet that was sent, or dropped after it had used the line (`cake_advance_shaper`).
    fn charge(&mut self, tin: usize, charged: u32, now: i64, dropped: bool) {
        let (tin, clocks) = (&mut self.tins[tin], &mut self.clocks);
        if !clocks.time.shapes() {
            return;
        }
        let part = tin.terms.time.of(charged);
        if tin.due < now {
            tin.due += part;
        } else {
            tin.due = tin.due.max(now + part);
        }
        let whole = clocks.time.of(charged);
        clocks.next += whole;
        if !dropped {
            clocks.failsafe += whole + whole / 2;
        }
    }

    /// The tin that goes next; none if nobody has anything.
    fn choose(&mut self, now: i64) -> Option<usize> {
        if !self.clocks.time.shapes() {
            return self.take_turns();
        }
        let mut best: Option<(usize, i64)> = None;
        for (index, (tin, flows)) in self.tins.iter().zip(&self.flows).enumerate() {
            let wait = tin.due - now;
            if flows.any() && (wait <= 0 || best.is_none_or(|(_, least)| wait <= least)) {
                best = Some((index, wait));
            }
        }
        best.map(|(index, _)| index)
    }

    fn take_turns(&mut self) -> Option<usize> {
        let (mut wrapped, mut empty) = (false, true);
        loop {
            let (tin, any) = (&mut self.tins[self.turn], self.flows[self.turn].any());
            if tin.deficit >= 0 && any {
                return Some(self.turn);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            empty &= !any;
            self.turn += 1;
            if self.turn == self.tins.len() {
                self.turn = 0;
                if wrapped && empty {
                    return None;
                }
                wrapped = true;
            }
        }
    }

    /// The next packet of the flow in turn that COBALT lets pass; none: the flow has no packet, or is charged for one that was
    /// dropped, and a new choice is to be made.
    fn next_of<S: Sink>(&mut self, at: (usize, usize), now: i64, sink: &mut S) -> Option<Item> {
        let (tin, queue) = at;
        loop {
            let Some((mut item, note)) = self.pop(at) else {
                let params = &self.tins[tin].terms.cobalt;
                let at_rest = self.flows[tin].all[queue].cobalt.found_empty(params, now);
                self.flows[tin].retire(queue, at_rest);
                return None;
            };
            self.longest.has_shrunk(at, &self.flows);
            let busy = if self.config.ingress { u64::from(self.flows[tin].bulk) } else { 0 };
            let flow = &mut self.flows[tin].all[queue];
            let sojourn = (now - note.arrived) as u64;
            let params = &self.tins[tin].terms.cobalt;
            let with = (&mut self.stream, &mut *sink);
            let condemned = flow.cobalt.condemns(&mut item, sojourn, params, busy, now, with);
            let drops = condemned && flow.queue.packets > 0;
            if !drops || self.config.ingress {
                flow.deficit -= i64::from(note.charged);
                self.tins[tin].deficit -= i64::from(note.charged);
                self.charge(tin, note.charged, now, drops);
            }
            if !drops {
                return Some(item);
            }
            sink.dropped(item, DropReason::Aqm);
            if self.config.ingress {
                return None;
            }
        }
    }
}

impl Qdisc for Cake {
    fn enqueue<S: Sink>(&mut self, mut item: Item, now: Instant, sink: &mut S) -> Verdict {
        let now = nanos(now);
        let at = self.place(&item, sink);
        let (tin, queue) = at;
        if self.config.wash && item.dscp != Dscp::DEFAULT {
            item.dscp = Dscp::DEFAULT;
            sink.washed(item.packet);
        }
        self.wake(tin, now);
        let note = Note { arrived: now, charged: self.config.charge.of(item.len) };
        self.arena.push_back(&mut self.flows[tin].all[queue].queue, item, note);
        self.tins[tin].bytes += u64::from(item.len);
        self.backlog.bytes += u64::from(item.len);
        self.backlog.packets += 1;
        self.memory += truesize(item.len);
        let mut verdict = Verdict::Queued;
        if self.filter(at, now, sink) {
            verdict = Verdict::DroppedOther(DropReason::AckFilter);
        }
        self.longest.has_grown(at, &self.flows);
        self.flows[tin].has_packet(queue, &self.tins[tin].terms, &mut self.stream);
        while self.memory > self.memory_limit {
            let Some(dropped) = self.drop_from_longest(now, sink) else { continue };
            if dropped == item.packet {
                verdict = Verdict::Dropped(DropReason::Overlimit);
            } else if !matches!(verdict, Verdict::Dropped(_)) {
                verdict = Verdict::DroppedOther(DropReason::Overlimit);
            }
        }
        verdict
    }

    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        let now = nanos(now);
        let mut decaying = true;
        while self.backlog.packets > 0 {
            let Clocks { next, failsafe, .. } = self.clocks;
            let earliest = next.min(failsafe);
            if earliest > now {
                return Dequeue::Wait(Instant::from_nanos(earliest as u64));
            }
            let Some(tin) = self.choose(now) else { break };
            self.turn = tin;
            while let Some(queue) = self.flows[tin].turn(decaying) {
                decaying = false;
                let flow = &self.flows[tin].all[queue];
                if flow.deficit <= 0 && flow.set != Set::Decaying {
                    self.flows[tin].refill(queue, &self.tins[tin].terms, &mut self.stream);
                    continue;
                }
                if let Some(item) = self.next_of((tin, queue), now, sink) {
                    self.longest.has_left();
                    return Dequeue::Packet(item);
                }
                // Ingress: a packet was dropped, and the same tin goes on.
                if self.flows[tin].all[queue].queue.packets == 0 {
                    break;
                }
            }
        }
        Dequeue::Empty
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// `cake_change`: the rate of a shaper, or memory. No packet is dropped; for what has left the clocks stand as they were set.
    fn change<S: Sink>(&mut self, change: Change, _now: Instant, _sink: &mut S) {
        match change {
            Change::RateBps(bps) => self.config.rate = bps / 8,
            Change::LimitBytes(bytes) => self.config.memory = Some(saturated(bytes)),
            Change::LimitPackets(_) | Change::DelayNs(_) | Change::Loss(_) => return,
        }
        self.reconfigure();
    }
}

#[cfg(test)]
mod tests;
