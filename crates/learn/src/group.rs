//! Episodes with several agents, whose steps all end at the ticks of one clock.

use crate::Template;
use crate::episode::{ResetError, StepError, check_bounds};
use dragstrip_cc::Agent;
use dragstrip_cc::agent::{COUNT, Figures};
use dragstrip_sim::Run;
use dragstrip_units::Stream;
use std::sync::Arc;

/// State of an agent after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// None of its data has been acknowledged yet.
    Absent,
    /// It acts at this tick.
    Present,
    /// Its flow has ended since the last tick.
    Terminated,
    /// The episode's time is over.
    Truncated,
    /// It has ended before; it does not come back.
    Gone,
}

impl Member {
    /// True of a member whose last step has just ended.
    const fn is_last(self) -> bool {
        matches!(self, Self::Terminated | Self::Truncated)
    }
}

/// An environment of several agents: its current episode, and the source of its draws.
///
/// The steps of their policies have to be longer than an episode, so that none ends by itself.
#[derive(Debug)]
pub struct Group {
    template: Arc<Template>,
    /// Flows of the agents.
    flows: Vec<u32>,
    tick_ns: u64,
    stream: Stream,
    run: Option<Run>,
    /// Number of the last tick.
    tick: u64,
    members: Vec<Member>,
    figures: Vec<Figures>,
    /// Fraction of each range that was drawn.
    fractions: Vec<f64>,
}

impl Group {
    /// An environment without an episode; `tick_ns` is above 0.
    #[must_use]
    pub fn new(template: &Arc<Template>, flows: Vec<u32>, tick_ns: u64) -> Self {
        Self {
            template: Arc::clone(template),
            tick_ns: tick_ns.max(1),
            stream: Stream::named(0, "episodes"),
            run: None,
            tick: 0,
            members: vec![Member::Absent; flows.len()],
            figures: vec![[0.0; COUNT]; flows.len()],
            fractions: Vec::new(),
            flows,
        }
    }

    /// Begins the next episode; with `seed` the first one of a new series. It begins at the first tick at which an agent is
    /// present; if there is none, all are gone.
    ///
    /// # Errors
    /// A drawn scenario that cannot be run.
    pub fn reset(&mut self, seed: Option<u64>) -> Result<(), ResetError> {
        if let Some(seed) = seed {
            self.stream = Stream::named(seed, "episodes");
        }
        let (fractions, seed) = self.template.draw(&mut self.stream);
        let scenario = self.template.at(&fractions, seed).map_err(ResetError::Problem)?;
        self.run = Some(Run::new(scenario, ()).map_err(ResetError::Setup)?);
        self.fractions = fractions;
        self.tick = 0;
        self.members.fill(Member::Absent);
        self.figures.fill([0.0; COUNT]);
        self.go_on();
        Ok(())
    }

    /// Refuses an action out of its bounds, and any when nobody is present; `actions` has an entry for each agent, of which those
    /// of agents that are not present do not count.
    ///
    /// # Errors
    /// The reason, with the number of the agent.
    pub fn check(&self, actions: &[f64]) -> Result<(), (usize, StepError)> {
        let run = self.run.as_ref().filter(|_| self.members.contains(&Member::Present));
        let Some(run) = run else { return Err((0, StepError::Over)) };
        for (number, (flow, action)) in self.flows.iter().zip(actions).enumerate() {
            if self.members[number] == Member::Present
                && let Some(agent) = run.agent(*flow)
            {
                check_bounds(agent, *action).map_err(|error| (number, error))?;
            }
        }
        Ok(())
    }

    /// Applies the actions of the agents that are present, in their order and at the same instant, and goes on to the next tick
    /// at which an agent is present, or to the end if none is any more.
    ///
    /// # Errors
    /// As [`check`](Self::check); and a rival's program that has failed.
    pub fn step(&mut self, actions: &[f64]) -> Result<(), (usize, StepError)> {
        self.check(actions)?;
        let Some(run) = &mut self.run else { return Err((0, StepError::Over)) };
        for (number, (flow, action)) in self.flows.iter().zip(actions).enumerate() {
            if self.members[number] == Member::Present {
                run.act(*flow, *action);
            }
        }
        self.go_on();
        match self.run.as_ref().and_then(Run::fault) {
            Some(fault) => Err((0, StepError::Fault(fault.field, fault.message))),
            None => Ok(()),
        }
    }

    /// Goes on to the next tick at which an agent is present, or at which no agent can come any more.
    ///
    /// An agent that has ended while others have still to come waits for them: nobody could act before.
    fn go_on(&mut self) {
        for member in &mut self.members {
            if member.is_last() {
                *member = Member::Gone;
            }
        }
        loop {
            self.tick += 1;
            let is_end = self.advance_to(self.tick * self.tick_ns);
            self.end_steps(is_end);
            let is_present = self.members.contains(&Member::Present);
            if is_end || is_present || !self.members.contains(&Member::Absent) {
                return;
            }
        }
    }

    /// Lets everything happen until a tick. Returns true if the run is over.
    fn advance_to(&mut self, until_ns: u64) -> bool {
        let Some(run) = &mut self.run else { return true };
        while run.advance_to_step(until_ns) {
            run.leave_waiting();
            for number in 0..self.flows.len() {
                let (flow, member) = (self.flows[number], &mut self.members[number]);
                // Its last step ends with the flow, not with the tick. At the end of the run it is the time that is over.
                let has_ended = run.has_ended(flow) && run.now_ns() < run.end_ns();
                if *member == Member::Present && has_ended {
                    run.end_step(flow);
                    *member = Member::Terminated;
                }
            }
        }
        let is_end = until_ns >= run.end_ns();
        if is_end {
            // The last interval of the recording.
            run.advance(u64::MAX, u32::MAX);
        }
        is_end
    }

    /// Ends the steps of all agents that are present, or that have come since the last tick.
    fn end_steps(&mut self, is_end: bool) {
        let Some(run) = &mut self.run else { return };
        for (number, flow) in self.flows.iter().enumerate() {
            let member = &mut self.members[number];
            let has_begun = run.agent(*flow).is_some_and(Agent::has_begun);
            let has_ended = run.has_ended(*flow) && run.now_ns() < run.end_ns();
            let next = match *member {
                // One that came and went between two ticks was never present.
                Member::Absent if has_ended || is_end => Member::Gone,
                Member::Absent if has_begun => Member::Present,
                Member::Present if has_ended => Member::Terminated,
                Member::Present if is_end => Member::Truncated,
                unchanged @ (Member::Absent
                | Member::Present
                | Member::Terminated
                | Member::Truncated
                | Member::Gone) => unchanged,
            };
            // The last step of a flow that ended since the last tick has ended with it.
            if next == Member::Present || *member == Member::Present {
                run.end_step(*flow);
            }
            *member = next;
            if next == Member::Present || next.is_last() {
                self.figures[number] =
                    run.agent(*flow).map_or([0.0; COUNT], |agent| *agent.figures());
            }
        }
    }

    /// States of the agents after the last tick.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Figures of an agent's last step.
    #[must_use]
    pub fn figures(&self, number: usize) -> &Figures {
        &self.figures[number]
    }

    /// Observation of an agent at the end of its last step; empty before the first reset.
    #[must_use]
    pub fn observation(&self, number: usize) -> &[f32] {
        let agent = self.run.as_ref().and_then(|run| run.agent(self.flows[number]));
        agent.map_or(&[], |agent| agent.observation())
    }

    /// Fraction of each range that was drawn, from 0 to 1.
    #[must_use]
    pub fn fractions(&self) -> &[f64] {
        &self.fractions
    }

    /// The run; None before the first reset.
    #[must_use]
    pub const fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }
}
