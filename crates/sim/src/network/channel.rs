//! Media that several stages share: whose turn it is, and what becomes of what is sent.

use super::{Network, Server, Stage};
use crate::calendar::Source;
use crate::observer::{Event, Loss, Observer};
use dragstrip_link::{Air, Medium, Ring, SharedMedium};
use dragstrip_qdisc::{Item, PacketId};
use dragstrip_units::Instant;

/// A medium and the stages that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub medium: Medium,
    pub stations: Vec<Station>,
    /// Outcomes of the current transmission.
    pub outcomes: Vec<Outcome>,
    /// Event source for the next transmission.
    pub source: Source,
}

/// A node's transmitter in a channel: one radio, however many links begin there.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    /// Its links' stages, served in turn.
    pub stages: Vec<u32>,
    pub turn: usize,
    /// In the transmission that is being made.
    pub transmitted: bool,
}

/// Fate of a packet on the air; given up if it never arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    stage: usize,
    packet: PacketId,
    arrives: Option<Instant>,
}

/// A channel's stations during a transmission.
struct OnAir<'a> {
    stations: &'a mut [Station],
    stages: &'a mut [Stage],
    outcomes: &'a mut Vec<Outcome>,
}

impl OnAir<'_> {
    fn stage(&self, station: usize) -> usize {
        let Station { stages, turn, .. } = &self.stations[station];
        stages[*turn] as usize
    }

    fn has_frames(&self, station: usize) -> bool {
        match &self.stages[self.stage(station)].server {
            Server::Shared(shared) => !shared.ring.is_empty(),
            Server::Computed(_) | Server::Evented(_) | Server::Tunnel(_) => false,
        }
    }

    /// Every station will send from the next of its links that has something to send.
    fn choose_links(&mut self) {
        for station in 0..self.stations.len() {
            let links = self.stations[station].stages.len();
            for _ in 0..links {
                if self.has_frames(station) {
                    break;
                }
                let turn = &mut self.stations[station].turn;
                *turn = (*turn + 1) % links;
            }
        }
    }
}

impl Air for OnAir<'_> {
    fn ring(&mut self, station: usize) -> &mut Ring {
        self.stations[station].transmitted = true;
        let stage = self.stage(station);
        match &mut self.stages[stage].server {
            Server::Shared(shared) => &mut shared.ring,
            Server::Computed(_) | Server::Evented(_) | Server::Tunnel(_) => {
                unreachable!("a channel's stages are made with a ring")
            }
        }
    }

    fn delivered(&mut self, station: usize, item: Item, at: Instant) {
        let stage = self.stage(station);
        self.outcomes.push(Outcome { stage, packet: item.packet, arrives: Some(at) });
    }

    fn on_lost(&mut self, station: usize, item: Item) {
        let stage = self.stage(station);
        self.outcomes.push(Outcome { stage, packet: item.packet, arrives: None });
    }
}

impl<O: Observer> Network<O> {
    /// Somebody's turn on a shared medium has come.
    pub fn transmit(&mut self, index: usize, now: Instant) {
        let channel = &mut self.channels[index];
        let mut air = OnAir {
            stations: &mut channel.stations,
            stages: &mut self.stages,
            outcomes: &mut channel.outcomes,
        };
        air.choose_links();
        channel.medium.transmit(now, &mut air);
        for outcome in 0..self.channels[index].outcomes.len() {
            let Outcome { stage, packet, arrives } = self.channels[index].outcomes[outcome];
            if let Some(at) = arrives {
                let delay = self.stages[stage].delay;
                self.leave(stage, packet, at + delay, now);
            } else {
                self.stages[stage].counters.rare_mut().dropped += 1;
                let loss = Event::Dropped(Loss::Medium);
                self.watch.at_stage(stage, loss, packet, &self.packets, now);
                self.packets.remove(packet);
            }
        }
        self.channels[index].outcomes.clear();
        self.take_turns(index, now);
        let channel = &self.channels[index];
        self.calendar.set(channel.source, channel.medium.due());
    }

    /// Those that have transmitted fill their rings, and a node with several links serves the next one unless the
    /// frame has to be repeated.
    fn take_turns(&mut self, index: usize, now: Instant) {
        for station in 0..self.channels[index].stations.len() {
            let Station { stages, turn, transmitted } = &mut self.channels[index].stations[station];
            if !std::mem::take(transmitted) {
                continue;
            }
            let links = stages.len();
            if let Server::Shared(shared) = &self.stages[stages[*turn] as usize].server
                && !shared.ring.repeats()
            {
                *turn = (*turn + 1) % links;
            }
            for link in 0..links {
                let stage = self.channels[index].stations[station].stages[link];
                self.offer(stage as usize, now);
            }
        }
    }
}
