//! One episode after the other: reset, steps, the end.

use crate::Template;
use dragstrip_cc::Agent;
use dragstrip_cc::agent::{COUNT, Figures};
use dragstrip_scenario::Problem;
use dragstrip_sim::{Run, SetupError};
use dragstrip_units::Stream;
use std::fmt;
use std::sync::Arc;

/// State after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// The flow has ended.
    pub terminated: bool,
    /// The episode's time is over.
    pub truncated: bool,
}

impl After {
    /// True when there is no next step.
    #[must_use]
    pub const fn is_over(self) -> bool {
        self.terminated || self.truncated
    }
}

/// Why a step is refused; nothing has changed then.
#[derive(Clone, Debug, PartialEq)]
pub enum StepError {
    /// There is no episode, or it is over.
    Over,
    /// The action is not a number within the bounds.
    Action {
        /// The action.
        action: f64,
        /// Lowest action.
        low: f64,
        /// Highest action.
        high: f64,
        /// It is a choice: a whole number.
        whole: bool,
    },
    /// A rival's program has failed.
    Fault(String, String),
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the episode is over"),
            Self::Action { action, low, high, whole } => {
                let kind = if *whole { "a whole number" } else { "a number" };
                write!(f, "{action}, expected {kind} from {low} to {high}")
            }
            Self::Fault(field, message) => write!(f, "{field}: {message}"),
        }
    }
}

/// Refuses an action out of the bounds of an agent's actions.
pub(crate) fn check_bounds(agent: &Agent, action: f64) -> Result<(), StepError> {
    let (low, high, choices) = agent.policy().action.bounds();
    let whole = choices.is_some();
    if !(low..=high).contains(&action) || whole && libm::floor(action) != action {
        return Err(StepError::Action { action, low, high, whole });
    }
    Ok(())
}

/// Why an episode does not begin.
#[derive(Clone, Debug)]
pub enum ResetError {
    /// The scenario is wrong.
    Problem(Problem),
    /// It cannot be built.
    Setup(SetupError),
}

/// An environment: its current episode, and the source of its draws.
#[derive(Debug)]
pub struct Episode {
    template: Arc<Template>,
    stream: Stream,
    run: Option<Run>,
    after: After,
    figures: Figures,
    /// Actions of the episode so far.
    actions: Vec<f64>,
    /// Fraction of each range that was drawn.
    fractions: Vec<f64>,
}

impl Episode {
    /// An environment without an episode.
    #[must_use]
    pub fn new(template: &Arc<Template>) -> Self {
        Self {
            template: Arc::clone(template),
            stream: Stream::named(0, "episodes"),
            run: None,
            after: After::default(),
            figures: [0.0; COUNT],
            actions: Vec::new(),
            fractions: Vec::new(),
        }
    }

    /// A copy of the environment in the middle of its episode; None before the first one, and with rivals over QUIC.
    #[must_use]
    pub fn copy(&self) -> Option<Self> {
        let run = self.run.as_ref()?.copy()?;
        let Self { template, stream, run: _, after, figures, actions, fractions } = self;
        Some(Self {
            template: Arc::clone(template),
            stream: stream.clone(),
            run: Some(run),
            after: *after,
            figures: *figures,
            actions: actions.clone(),
            fractions: fractions.clone(),
        })
    }

    /// Begins the next episode; with `seed` the first one of a new series. It begins when the first data packet has been
    /// acknowledged.
    ///
    /// # Errors
    /// A drawn scenario that cannot be run.
    pub fn reset(&mut self, seed: Option<u64>) -> Result<(), ResetError> {
        if let Some(seed) = seed {
            self.stream = Stream::named(seed, "episodes");
        }
        let (fractions, seed) = self.template.draw(&mut self.stream);
        let scenario = self.template.at(&fractions, seed).map_err(ResetError::Problem)?;
        let mut run = Run::new(scenario, ()).map_err(ResetError::Setup)?;
        self.fractions = fractions;
        self.actions.clear();
        self.after = After::default();
        let flow = self.template.flow();
        if !run.advance_to_step(u64::MAX) || run.has_ended(flow) {
            // No ACK of data before the end of time: the first step says so.
            run.end_step(flow);
        }
        self.figures = run.agent(flow).map_or([0.0; COUNT], |agent| *agent.figures());
        self.run = Some(run);
        Ok(())
    }

    /// Refuses an action out of its bounds, and any action when the episode is over.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, action: f64) -> Result<(), StepError> {
        let agent = self.run.as_ref().and_then(|run| run.agent(self.template.flow()));
        let Some(agent) = agent.filter(|_| !self.after.is_over()) else {
            return Err(StepError::Over);
        };
        check_bounds(agent, action)
    }

    /// Applies an action and goes on to the end of the step.
    ///
    /// # Errors
    /// An action out of its bounds, or an episode that is over.
    pub fn step(&mut self, action: f64) -> Result<After, StepError> {
        self.check(action)?;
        let flow = self.template.flow();
        let Some(run) = &mut self.run else { return Err(StepError::Over) };
        self.actions.push(action);
        run.act(flow, action);
        let stopped = run.advance_to_step(u64::MAX);
        let ended = run.has_ended(flow);
        if ended || !stopped {
            if !stopped {
                // The last interval of the recording.
                run.advance(u64::MAX, u32::MAX);
            }
            run.end_step(flow);
            let by_itself = ended && run.now_ns() < run.end_ns();
            self.after = After { terminated: by_itself, truncated: !by_itself };
        }
        if let Some(agent) = run.agent(flow) {
            self.figures = *agent.figures();
        }
        if let Some(fault) = run.fault() {
            self.after.truncated = true;
            return Err(StepError::Fault(fault.field, fault.message));
        }
        Ok(self.after)
    }

    /// Observation at the end of the last step; empty before the first reset.
    #[must_use]
    pub fn observation(&self) -> &[f32] {
        let agent = self.run.as_ref().and_then(|run| run.agent(self.template.flow()));
        agent.map_or(&[], |agent| agent.observation())
    }

    /// Figures of the last step.
    #[must_use]
    pub const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// State after the last step.
    #[must_use]
    pub const fn after(&self) -> After {
        self.after
    }

    /// Fraction of each range that was drawn, from 0 to 1.
    #[must_use]
    pub fn fractions(&self) -> &[f64] {
        &self.fractions
    }

    /// Actions of the episode so far.
    #[must_use]
    pub fn actions(&self) -> &[f64] {
        &self.actions
    }

    /// The run; None before the first reset.
    #[must_use]
    pub const fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }
}
