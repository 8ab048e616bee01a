//! Agents: the ends of their steps, their actions, and ACKs that wait for them.
//!
//! An event at the very end of a step belongs to it. An action acts at once: what may be sent by it is sent at the instant of the
//! action. After an ACK that ends a step, what it releases leaves after the action.

use super::World;
use super::out::Out;
use crate::observer::Observer;
use dragstrip_cc::Agent;
use dragstrip_packet::{Ecn, Segment};
use dragstrip_tcp::Phase;
use dragstrip_units::Instant;

/// Agents of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agents {
    /// Sockets whose data an agent governs.
    sockets: Vec<u32>,
    /// Those whose step has ended, and that wait for an action from outside.
    waiting: Vec<u32>,
    /// Socket whose last ACK is held until its agent acts.
    held: Option<Held>,
    /// Number of agents whose flow has ended.
    ended: usize,
    /// Something may happen at any event: an agent's first ACK, the end of its data, or any ACK of one that is asked after each.
    by_event: bool,
}

/// An ACK whose release waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    socket: u32,
    /// It is recorded afterwards.
    recorded: bool,
}

/// Why a run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Everything until the given time has happened.
    Until,
    /// There were too many events.
    Events,
    /// An agent's step has ended.
    Step,
    /// An agent's flow has ended.
    Ended,
}

impl Agents {
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }
}

impl<O: Observer> World<O> {
    /// Collects the agents, at the beginning.
    pub(super) fn find_agents(&mut self) {
        let governs = |index: &usize| {
            let socket = &self.sockets[*index];
            socket.sends_data && socket.endpoint.agent().is_some()
        };
        self.agents.sockets = (0..self.sockets.len()).filter(governs).map(|it| it as u32).collect();
        self.agents.by_event = true;
    }

    /// The agent of a flow.
    pub fn agent(&self, flow: usize) -> Option<&Agent> {
        let socket = self.flows[flow].data_sender()?;
        self.sockets[socket as usize].endpoint.agent()
    }

    /// Flows whose agents wait for an action.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.agents.waiting.iter().map(|socket| self.sockets[*socket as usize].flow)
    }

    /// True once a flow has ended.
    pub fn has_ended(&self, flow: usize) -> bool {
        self.flows[flow].ended.is_some()
    }

    /// Lets everything happen until `until`; agents that are governed from outside leave everything as it is.
    pub(super) fn advance_steps(&mut self, until: Instant, events_max: u32) -> (u32, Stop) {
        let mut events = 0;
        loop {
            let (more, stop) = self.advance_to_step(until, events_max - events);
            events += more;
            if matches!(stop, Stop::Until | Stop::Events) {
                return (events, stop);
            }
            self.leave_waiting();
        }
    }

    /// Agents that wait for an action leave everything as it is.
    pub fn leave_waiting(&mut self) {
        while let Some(socket) = self.agents.waiting.pop() {
            self.act(socket as usize, None);
        }
    }

    /// Lets everything happen until `until`, or until a step ends whose agent waits for an action.
    pub fn advance_to_step(&mut self, until: Instant, events_max: u32) -> (u32, Stop) {
        let mut events = 0;
        loop {
            if self.end_steps() {
                return (events, Stop::Step);
            }
            let due = self.agents.sockets.iter().map(|socket| self.due(*socket as usize));
            let slice_end = due.min().unwrap_or(Instant::NEVER).min(until);
            let most = if self.agents.by_event { 1 } else { u32::MAX }.min(events_max - events);
            let (more, complete) = self.handle(slice_end, most);
            events += more;
            if self.agents.by_event && self.counts_ended() {
                return (events, Stop::Ended);
            }
            if complete {
                self.now = self.now.max(slice_end);
                if slice_end == until && !self.is_any_due() {
                    return (events, Stop::Until);
                }
            } else if events == events_max && !self.is_any_due() {
                return (events, Stop::Events);
            }
        }
    }

    /// Counts the agents whose flow has ended. Returns true if there are more than before.
    fn counts_ended(&mut self) -> bool {
        let flow = |socket: &u32| self.sockets[*socket as usize].flow as usize;
        let sockets = self.agents.sockets.iter();
        let ended = sockets.filter(|socket| self.has_ended(flow(socket))).count();
        let more = ended > self.agents.ended;
        self.agents.ended = ended;
        more
    }

    fn is_any_due(&self) -> bool {
        self.agents.held.is_some()
            || self.agents.sockets.iter().any(|socket| self.due(*socket as usize) <= self.now)
    }

    /// End of a socket's step; never before the first ACK of data and after the connection's end.
    fn due(&self, socket: usize) -> Instant {
        let endpoint = &self.sockets[socket].endpoint;
        let flow = &self.flows[self.sockets[socket].flow as usize];
        match endpoint.agent() {
            Some(agent) if endpoint.phase() == Phase::Established && flow.ended.is_none() => {
                agent.due()
            }
            Some(_) | None => Instant::NEVER,
        }
    }

    /// Ends the steps that are over, in the order of sockets. Returns true if an agent waits for an action.
    fn end_steps(&mut self) -> bool {
        if !self.is_any_due() {
            return false;
        }
        for number in 0..self.agents.sockets.len() {
            let socket = self.agents.sockets[number];
            let index = socket as usize;
            let is_held = self.agents.held.is_some_and(|held| held.socket == socket);
            if !is_held && self.due(index) > self.now {
                continue;
            }
            match self.sockets[index].endpoint.end_step(self.now) {
                Some(action) => self.act(index, Some(action)),
                None => self.agents.waiting.push(socket),
            }
        }
        self.agents.by_event = self.agents.sockets.iter().any(|socket| {
            let socket = &self.sockets[*socket as usize];
            let early = |agent: &Agent| !agent.has_begun() || agent.is_asked_at_acks();
            socket.awaited || socket.endpoint.agent().is_some_and(early)
        });
        !self.agents.waiting.is_empty()
    }

    /// Ends the step of a flow's agent now, whatever its length: the run is over, or the flow.
    pub fn end_step(&mut self, flow: usize) {
        if let Some(socket) = self.flows[flow].data_sender() {
            self.sockets[socket as usize].endpoint.end_step(self.now);
        }
    }

    /// Applies the action of a flow's agent, which waits for it.
    pub fn act_on(&mut self, flow: usize, action: f64) {
        let Some(socket) = self.flows[flow].data_sender() else { return };
        self.agents.waiting.retain(|waiting| *waiting != socket);
        self.act(socket as usize, Some(action));
    }

    fn act(&mut self, index: usize, action: Option<f64>) {
        let mut out = Out::of(&mut self.network, &self.sockets[index]);
        self.sockets[index].endpoint.act(action, self.now, &mut out);
        if let Some(held) = self.agents.held.take_if(|held| held.socket == index as u32)
            && held.recorded
        {
            self.after_ack(self.sockets[index].flow as usize, index);
        }
        self.reschedule(index);
    }

    /// A segment has reached an agent that is asked after each ACK.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_to_agent(&mut self, endpoint: u32, segment: &Segment, ecn: Ecn) {
        let index = endpoint as usize;
        let mut out = Out::holding(&mut self.network, &self.sockets[index]);
        let new_bytes = self.sockets[index].endpoint.on_segment(segment, ecn, self.now, &mut out);
        let recorded = segment.len == 0 || new_bytes == 0;
        let flow = self.sockets[index].flow as usize;
        if self.sockets[index].endpoint.is_held() {
            self.agents.held = Some(Held { socket: endpoint, recorded });
        } else if recorded {
            self.after_ack(flow, index);
        }
        self.reschedule(index);
        if self.sockets[index].awaited {
            self.after_arrival(flow, index, segment.len > 0);
        }
    }
}
