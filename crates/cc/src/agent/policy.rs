//! A policy as a text: JSON that says what an agent sees, how often it acts, what an action means, and where actions come from.

use super::action::{ActionKind, DELTA};
use super::figures;
use super::model::Model;
use crate::Options;
use crate::program::{Misread, Position};
use serde::Deserialize;

/// Bytes of a policy's text at most.
pub const POLICY_MAX: usize = 1 << 20;
/// Steps that an observation remembers at most.
const HISTORY_MAX: usize = 64;
/// Figures of a step that an observation has at most.
const OBSERVE_MAX: usize = 64;

/// Length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Milliseconds.
    Ms(f64),
    /// Round trips: multiples of the mean round-trip time of the step before.
    Rtts(f64),
    /// From each ACK to the next.
    Ack,
}

/// Answer to a loss of an agent that sets windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLoss {
    /// The window stays as it is.
    #[default]
    Keep,
    /// It is halved, as Reno's.
    Halve,
}

/// A policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Version of this form: 1.
    policy: u32,
    /// Length of a step.
    pub step: Step,
    /// Meaning of an action.
    pub action: ActionKind,
    /// Figures of an observation ([`figures::FIGURES`]).
    #[serde(default)]
    pub observe: Vec<String>,
    /// Steps that an observation remembers.
    #[serde(default = "one_step")]
    pub history: usize,
    /// Answer to a loss.
    #[serde(default)]
    pub on_loss: OnLoss,
    /// First window, packets; none: the host's.
    #[serde(default)]
    pub window_packets: Option<u32>,
    /// First rate, bit/s; none: the host's first window per round trip.
    #[serde(default)]
    pub rate_bps: Option<f64>,
    /// Change of the rate by a whole action of `rate_factor`.
    #[serde(default = "default_delta")]
    pub delta: f64,
    /// Algorithm whose window is multiplied.
    #[serde(default)]
    pub inner: Option<String>,
    /// Its parameters.
    #[serde(default)]
    pub inner_options: Options,
    /// Subtracted from each input of the model; empty: nothing.
    #[serde(default)]
    pub mean: Vec<f64>,
    /// Each input of the model is divided by it after that; empty: by 1.
    #[serde(default)]
    pub deviation: Vec<f64>,
    /// Source of actions.
    #[serde(default)]
    pub model: Model,
    /// Positions of `observe` in the table of figures.
    #[serde(skip)]
    pub(super) observed: Vec<usize>,
}

const fn one_step() -> usize {
    1
}

const fn default_delta() -> f64 {
    DELTA
}

impl Policy {
    /// True for a text that is meant as a policy: JSON.
    #[must_use]
    pub fn is_policy(text: &str) -> bool {
        text.trim_start().starts_with('{')
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The first place where it is no policy.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        let start = Position { line: 1, column: 1 };
        if text.len() > POLICY_MAX {
            let value = format!("a text of {} bytes", text.len());
            return Err(Misread { at: start, value, expected: format!("at most {POLICY_MAX}") });
        }
        let mut policy: Self = serde_json::from_str(text).map_err(|error| {
            let place = |number: usize| u16::try_from(number.max(1)).unwrap_or(u16::MAX);
            let at = Position { line: place(error.line()), column: place(error.column()) };
            let message = error.to_string();
            let value = message.split(" at line ").next().unwrap_or_default().to_owned();
            Misread { at, value, expected: "a policy (docs/how-to/learning.md)".to_owned() }
        })?;
        policy.check().map_err(|(value, expected)| Misread { at: start, value, expected })?;
        Ok(policy)
    }

    /// Inputs of the model: figures by steps.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.observe.len() * self.history
    }

    fn check(&mut self) -> Result<(), (String, String)> {
        let wrong = |value: String, expected: &str| Err((value, expected.to_owned()));
        if self.policy != 1 {
            return wrong(format!("policy: {}", self.policy), "1, the version of this form");
        }
        match self.step {
            Step::Ms(ms) if !(0.001..=1e7).contains(&ms) => {
                return wrong(format!("step.ms: {ms}"), "0.001 to 10000000");
            }
            Step::Rtts(rtts) if !(0.01..=1e3).contains(&rtts) => {
                return wrong(format!("step.rtts: {rtts}"), "0.01 to 1000");
            }
            Step::Ms(_) | Step::Rtts(_) | Step::Ack => {}
        }
        if !(1..=HISTORY_MAX).contains(&self.history) || self.observe.len() > OBSERVE_MAX {
            let value =
                format!("history: {}, observe: {} figures", self.history, self.observe.len());
            return wrong(value, "1 to 64 steps and at most 64 figures");
        }
        if !(1e-6..=0.9).contains(&self.delta) {
            return wrong(format!("delta: {}", self.delta), "0.000001 to 0.9");
        }
        if self.window_packets.is_some_and(|packets| !(1..=1 << 24).contains(&packets)) {
            return wrong("window_packets out of range".to_owned(), "1 to 16777216");
        }
        if self.rate_bps.is_some_and(|bps| !(1e3..=1e12).contains(&bps)) {
            return wrong("rate_bps out of range".to_owned(), "1e3 to 1e12");
        }
        self.check_inner()?;
        self.observed.clear();
        for name in &self.observe {
            let Some(position) = figures::position(name) else {
                let names: Vec<_> = figures::FIGURES.iter().map(|row| row.name).collect();
                let plain = format!("one of {}", names.join(", "));
                return Err((
                    format!("observe: {name:?}"),
                    dragstrip_units::suggest(name, names.iter().copied(), &plain),
                ));
            };
            self.observed.push(position);
        }
        for (name, values) in [("mean", &self.mean), ("deviation", &self.deviation)] {
            let right = values.is_empty() || values.len() == self.inputs();
            if !right || values.iter().any(|value| !value.is_finite()) {
                let value = format!("{name}: {} values", values.len());
                return wrong(value, &format!("{} finite numbers, or none", self.inputs()));
            }
        }
        if self.deviation.iter().any(|value| *value <= 0.0) {
            return wrong("deviation: a value of 0 or less".to_owned(), "positive numbers");
        }
        let outputs = self.action.bounds().2.unwrap_or(1) as usize;
        self.model.check(self.inputs(), outputs)
    }

    fn check_inner(&self) -> Result<(), (String, String)> {
        let Some(name) = &self.inner else { return Ok(()) };
        if self.action != ActionKind::WindowFactor {
            let expected = "the action window_factor beside it".to_owned();
            return Err((format!("inner: {name:?}"), expected));
        }
        Ok(())
    }
}
