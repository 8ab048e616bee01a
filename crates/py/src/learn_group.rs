//! Environments of several agents.
//!
//! Scope: buffers of numpy and states of agents. Out of scope: episodes (`crates/learn`), rewards (Python).

use crate::learn::{KnobRow, fill, read_actions, reset_error, step_error, template};
use crate::objects::{Document, to_python};
use crate::panic;
use dragstrip_cc::agent::COUNT;
use dragstrip_learn::{Group, Member};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// An environment of several agents, whose steps all end at the ticks of one clock.
#[pyclass(name = "Group", module = "dragstrip._core")]
pub struct PyGroup {
    group: Group,
    agents: usize,
}

#[pymethods]
impl PyGroup {
    /// An environment with agents in `flows` of a scenario, given as a dict. Knobs are those of `Episodes`. Raises `InputError` for a
    /// scenario that is not valid at both ends of its ranges.
    #[new]
    fn new(
        scenario: Document,
        knobs: Vec<KnobRow>,
        logarithmic: Vec<bool>,
        flows: Vec<u32>,
        tick_ns: u64,
    ) -> PyResult<Self> {
        panic::caught("environments", || {
            let template = template(scenario, knobs, logarithmic, 0)?;
            let agents = flows.len();
            Ok(Self { group: Group::new(&template, flows, tick_ns), agents })
        })
    }

    /// Begins an episode. Fills `observations` (float32) and `figures` (float64), a row for each agent, and returns their states.
    fn reset(
        &mut self,
        py: Python<'_>,
        seed: Option<u64>,
        observations: PyBuffer<f32>,
        figures: PyBuffer<f64>,
    ) -> PyResult<Vec<&'static str>> {
        let Self { group, .. } = self;
        panic::caught("an episode", || py.detach(|| group.reset(seed)).map_err(reset_error))?;
        self.put(py, &observations, &figures)
    }

    /// Applies the actions (float64, an entry for each agent) of those that are present and goes on to the next tick, as `reset`.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyBuffer<f64>,
        observations: PyBuffer<f32>,
        figures: PyBuffer<f64>,
    ) -> PyResult<Vec<&'static str>> {
        let actions = read_actions(py, &actions, self.agents)?;
        let Self { group, .. } = self;
        panic::caught("an episode", || {
            py.detach(|| group.step(&actions)).map_err(|(_, error)| step_error(&error))
        })?;
        self.put(py, &observations, &figures)
    }

    /// Returns the scenario of the episode as a dict; None before the first reset.
    fn scenario<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        panic::caught("a scenario", || {
            self.group.run().map(|run| to_python(py, run.scenario())).transpose()
        })
    }

    /// The fraction of each range that was drawn for the episode, from 0 to 1.
    fn fractions(&self) -> Vec<f64> {
        self.group.fractions().to_vec()
    }

    /// Returns the SHA-256 of the recording of the episode so far; None before the first reset.
    fn sha256(&self) -> PyResult<Option<String>> {
        panic::caught("an episode", || Ok(self.group.run().map(|run| run.recording().sha256())))
    }
}

impl PyGroup {
    /// Copies observations and figures into the caller's arrays, and returns the states of the agents.
    fn put(
        &self,
        py: Python<'_>,
        observations: &PyBuffer<f32>,
        figures: &PyBuffer<f64>,
    ) -> PyResult<Vec<&'static str>> {
        let mut rows = Vec::with_capacity(observations.item_count());
        let mut values = Vec::with_capacity(self.agents * COUNT);
        for number in 0..self.agents {
            rows.extend_from_slice(self.group.observation(number));
            values.extend_from_slice(self.group.figures(number));
        }
        fill(py, observations, &rows, "observations")?;
        fill(py, figures, &values, "figures")?;
        let state = |member: &Member| match member {
            Member::Absent => "absent",
            Member::Present => "present",
            Member::Terminated => "terminated",
            Member::Truncated => "truncated",
            Member::Gone => "gone",
        };
        Ok(self.group.members().iter().map(state).collect())
    }
}
