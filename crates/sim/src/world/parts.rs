//! A world that is one part of a run: what crosses to other parts, and all parts as one.

use super::World;
use crate::apps::FlowKind;
use crate::lane::Waiting;
use crate::observer::Observer;
use crate::partition::{Crossing, Partition, united};
use dragstrip_recording::{Recording, Writer};
use dragstrip_scenario::{Scenario, Topology};
use dragstrip_units::Instant;

impl<O: Observer> World<O> {
    /// The lanes of the cut links that begin in part `number`, and the part at the far end of each.
    pub(crate) fn cuts(
        &self,
        scenario: &Scenario,
        topology: &Topology<'_>,
        partition: &Partition,
        number: u8,
    ) -> Vec<(u32, u8)> {
        let parts = |link: usize| {
            let (from, to) = topology.ends(link);
            (partition.part_of[from], partition.part_of[to])
        };
        let mut stage = 0;
        let mut cuts = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            if let (from, to) = parts(index)
                && from == number
                && to != number
            {
                cuts.push((self.network.stages[stage].own_lane, to));
            }
            stage += 1 + usize::from(scenario.netem_behind(link).is_some());
        }
        cuts
    }

    /// True when a lane contains packets.
    pub(crate) fn has_sent(&self, lane: u32) -> bool {
        self.network.lanes[lane as usize].len() > 0
    }

    /// Empties a lane.
    pub(crate) fn hand_over(&mut self, lane: u32, crossings: &mut Vec<Crossing>) {
        let network = &mut self.network;
        let under_way = &mut network.lanes[lane as usize];
        network.calendar.set(under_way.source, Instant::NEVER);
        while let Some(Waiting { at, id, hop }) = under_way.pop() {
            let packet = network.packets.get(id).clone();
            network.packets.remove(id);
            crossings.push(Crossing { lane, at, hop, packet });
        }
    }

    /// Puts what another part has handed over into the same lanes here.
    pub(crate) fn take_over(&mut self, crossings: &mut Vec<Crossing>) {
        let network = &mut self.network;
        for Crossing { lane, at, hop, packet } in crossings.drain(..) {
            let id = network.packets.insert(packet);
            let lane = &mut network.lanes[lane as usize];
            if lane.push(Waiting { at, id, hop }) {
                network.calendar.set(lane.source, at);
            }
        }
    }

    /// The recording of a run in parts.
    pub(crate) fn unite(scenario: &Scenario, parts: impl Iterator<Item = Self>) -> Recording {
        let mut whole: Option<Self> = None;
        let mut tables = Vec::new();
        for mut part in parts {
            tables.push(std::mem::take(&mut part.recorder).finish());
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => whole.absorb(part),
            }
        }
        if let Some(whole) = whole {
            let mut flows = Writer::default();
            whole.add_flows(scenario, &mut flows);
            tables.insert(0, flows.finish());
        }
        united(tables)
    }

    /// Takes over what another part knows of its flows and sockets.
    fn absorb(&mut self, mut part: Self) {
        self.now = self.now.max(part.now);
        for index in 0..self.flows.len() {
            let (mine, theirs) = (&mut self.flows[index], &part.flows[index]);
            if let FlowKind::Tcp { client, server } = mine.kind {
                for socket in [client as usize, server as usize] {
                    if part.assignment.has_socket(socket) {
                        std::mem::swap(&mut self.sockets[socket], &mut part.sockets[socket]);
                    }
                }
            }
            if part.assignment.sends(index) {
                (mine.phase, mine.rounds) = (theirs.phase, theirs.rounds);
                mine.datagrams_sent = theirs.datagrams_sent;
            }
            if part.assignment.receives(index) {
                mine.datagrams_received = theirs.datagrams_received;
                self.arrivals[index] = part.arrivals[index];
            }
            mine.ended = [mine.ended, theirs.ended].into_iter().flatten().min();
        }
    }
}
