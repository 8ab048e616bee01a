//! Links that change during a run: tc's `change` and `ip link set` at their times.

use super::{Losses, Network, Server};
use crate::calendar::Source;
use crate::observer::Observer;
use dragstrip_link::Transmitter;
use dragstrip_qdisc::{Change, Discipline, Fifo, Limit, Qdisc, purge};
use dragstrip_units::{Instant, Rate};
use std::collections::VecDeque;

/// A change of a stage.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Its line has another rate.
    Line(Rate),
    /// Its discipline has another setting.
    Queue(Change),
    /// The link goes down.
    Down,
    /// The link comes up, and this is its queue.
    Up(Box<Discipline>),
}

/// Pending changes, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub ahead: VecDeque<(Instant, u32, Act)>,
    /// Event source for the next change.
    pub source: Source,
}

impl Changes {
    /// Time of the next change.
    pub fn due(&self) -> Instant {
        self.ahead.front().map_or(Instant::NEVER, |(at, ..)| *at)
    }
}

impl<O: Observer> Network<O> {
    /// Makes the changes that are due.
    #[cold]
    #[inline(never)]
    pub fn change(&mut self, changes: &mut Changes, now: Instant) {
        while changes.due() <= now {
            let Some((_, stage, act)) = changes.ahead.pop_front() else { break };
            self.change_stage(stage as usize, act, now);
        }
        self.calendar.set(changes.source, changes.due());
    }

    fn change_stage(&mut self, index: usize, act: Act, now: Instant) {
        let stage = &mut self.stages[index];
        let mut sink = Losses {
            packets: &mut self.packets,
            hops: &self.hops,
            addresses: &self.addresses,
            counters: &mut stage.counters,
            watch: &mut self.watch,
            stage: index,
            now,
        };
        let discipline = match &mut stage.server {
            Server::Evented(evented) => {
                if let (Act::Line(rate), Transmitter::Wire(wire)) = (&act, &mut evented.transmitter)
                {
                    wire.set_rate(*rate);
                }
                &mut evented.discipline
            }
            Server::Shared(shared) => &mut shared.discipline,
            Server::Tunnel(tunnel) => &mut tunnel.discipline,
            Server::Computed(_) => unreachable!("a stage that changes is asked event by event"),
        };
        match act {
            Act::Line(_) => {}
            Act::Queue(change) => discipline.change(change, now, &mut sink),
            Act::Down => {
                purge(discipline, now, &mut sink);
                *discipline = Discipline::Pfifo(Fifo::new(Limit::Down));
            }
            Act::Up(fresh) => *discipline = *fresh,
        }
    }
}
