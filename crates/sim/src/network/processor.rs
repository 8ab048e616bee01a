//! Processors of hosts: what a packet costs there.
//!
//! Linux receives, answers and sends in one softirq: an ACK that arrives is processed and the segments it releases are sent before the next packet is
//! looked at (`net_rx_action`). So what is received waits for the processor in order of arrival, and what is sent takes its time at
//! once and leaves when that is over, an instant known in advance. The one pending event of a processor is the end of the packet that it receives.

use super::Network;
use crate::calendar::Source;
use crate::hops::{END, PROCESSOR};
use crate::lane::Waiting;
use crate::observer::Observer;
use crate::packets::Packet;
use dragstrip_packet::Body;
use dragstrip_qdisc::PacketId;
use dragstrip_scenario::{CpuSpec, Scenario};
use dragstrip_units::{Duration, Instant, make_room};
use std::collections::{BTreeMap, VecDeque};

/// A processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processor {
    /// Time until which it is busy with the work it has begun.
    busy: Instant,
    /// Packets received, each with the end of its path; the first is being processed.
    received: VecDeque<(PacketId, u32)>,
    /// The lane of packets sent until it is through with them.
    sent: u32,
    /// The end of the packet being received.
    source: Source,
}

impl Processor {
    /// Packets received that are not delivered yet.
    pub fn packets(&self) -> u64 {
        self.received.len() as u64
    }

    /// Does something more; when that is done.
    fn work(&mut self, takes: Duration, now: Instant) -> Instant {
        self.busy = self.busy.max(now) + takes;
        self.busy
    }
}

/// A host's use of a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    processor: usize,
    receive: Duration,
    ack: Duration,
    send: Duration,
}

impl Work {
    fn receiving(&self, packet: &Packet) -> Duration {
        match &packet.body {
            Body::Tcp(segment) if segment.len == 0 => self.ack,
            Body::Tcp(_) | Body::Udp(_) | Body::Quic(_) | Body::Icmp(_) => self.receive,
        }
    }
}

/// The processors of a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processors {
    all: Vec<Processor>,
    /// Processing times of each host with a processor, in the order of nodes.
    works: Vec<Work>,
    /// Index in `works` of each node.
    of_node: Vec<Option<u32>>,
}

impl Processors {
    /// Creates the processors of the hosts of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let mut processors = Self::default();
        let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &scenario.nodes {
            let cpu = node.host().and_then(|host| host.cpu.as_ref());
            processors.of_node.push(cpu.map(|_| processors.works.len() as u32));
            let Some(CpuSpec { shared: name, receive_ns, ack_ns, send_ns }) = cpu else { continue };
            let next = processors.all.len();
            let processor =
                name.as_deref().map_or(next, |name| *shared.entry(name).or_insert(next));
            if processor == next {
                processors.all.push(Processor::default());
            }
            processors.works.push(Work {
                processor,
                receive: Duration::from_nanos(*receive_ns),
                ack: Duration::from_nanos(*ack_ns),
                send: Duration::from_nanos(*send_ns),
            });
        }
        processors
    }

    /// Number of processors.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Iterates over the processors.
    pub fn iter(&self) -> impl Iterator<Item = &Processor> {
        self.all.iter()
    }

    /// The hop at which packets enter or leave this node's protocols; none if that takes no time.
    pub fn hop(&self, node: usize) -> Option<u32> {
        self.of_node[node].map(|work| PROCESSOR | work)
    }

    /// Gives each its lane and its number in the calendar, from these on.
    pub fn number(&mut self, first_lane: u32, first_source: Source) {
        for (index, processor) in self.all.iter_mut().enumerate() {
            processor.sent = first_lane + index as u32;
            processor.source = first_source + index as Source;
        }
    }

    fn work_at(&self, hop: u32) -> Work {
        self.works[(hop & !PROCESSOR) as usize]
    }
}

impl<O: Observer> Network<O> {
    /// A packet is sent at `now` by a host whose processor is at `hop`; when that hands it on to the interface, or when it has left that as
    /// far as this is known.
    #[inline(never)]
    pub(super) fn send_by_processor(
        &mut self,
        id: PacketId,
        hop: u32,
        len: u32,
        now: Instant,
    ) -> Option<Instant> {
        let work = self.processors.work_at(self.hops[hop as usize]);
        let processor = &mut self.processors.all[work.processor];
        let at = processor.work(work.send, now);
        let hop = hop + 1;
        if self.stages[self.hops[hop as usize] as usize].tandem {
            return self.travel(id, hop, len, at, now);
        }
        let lane = &mut self.lanes[processor.sent as usize];
        if lane.push(Waiting { at, id, hop }) {
            self.calendar.set(lane.source, at);
        }
        Some(at)
    }

    /// A packet has reached a host whose processor is at `hop`.
    #[inline(never)]
    pub(super) fn receive_by_processor(&mut self, id: PacketId, hop: u32, now: Instant) {
        let index = self.processors.work_at(self.hops[hop as usize]).processor;
        let processor = &mut self.processors.all[index];
        make_room(&mut processor.received);
        processor.received.push_back((id, hop + 1));
        if processor.received.len() == 1 {
            self.begin_work(index, now);
        }
    }

    /// The processor takes the next packet received.
    pub fn begin_work(&mut self, index: usize, now: Instant) {
        let processor = &mut self.processors.all[index];
        let Some(&(id, end)) = processor.received.front() else { return };
        let work = self.processors.works[(self.hops[end as usize - 1] & !PROCESSOR) as usize];
        let due = processor.work(work.receiving(self.packets.get(id)), now);
        self.calendar.set(processor.source, due);
    }

    /// A processor has done a packet; that and its port. What its receiver sends of it comes before the next one: then `begin_work`.
    pub fn end_work(&mut self, index: usize, now: Instant) -> Option<(PacketId, u32)> {
        let processor = &mut self.processors.all[index];
        let (id, hop) = processor.received.pop_front()?;
        self.calendar.set(processor.source, Instant::NEVER);
        self.watch.received(hop, id, &self.packets, now);
        Some((id, self.hops[hop as usize] & !END))
    }
}
