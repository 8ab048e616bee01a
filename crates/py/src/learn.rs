//! Environments in which policies learn: a batch of episodes, stepped by threads.
//!
//! Scope: buffers of numpy and threads over the batch. Out of scope: episodes (`crates/learn`), rewards (Python).

use crate::objects::{Document, to_python};
use crate::{InputError, panic, problem, setup_error};
use dragstrip_cc::agent::{COUNT, FIGURES, Policy};
use dragstrip_learn::{Episode, Knob, ResetError, StepError, Template};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// The table of figures: name, lowest and highest value of an observation, meaning.
pub fn figures(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, FIGURES.iter().map(|row| (row.name, row.low, row.high, row.meaning)))
}

/// Returns the facts of a policy's text as a dict: `low` and `high` action, `choices` (None: not a choice), `observe`, `history`.
/// Raises `InputError`, whose field is the place, such as `3:14`.
#[pyfunction]
pub fn policy_facts<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    panic::caught("a policy", || {
        let policy = Policy::parse(text);
        let policy =
            policy.map_err(|it| InputError::new_err((it.at.to_string(), it.value, it.expected)))?;
        let (low, high, choices) = policy.action.bounds();
        let facts = serde_json::json!({
            "low": low,
            "high": high,
            "choices": choices,
            "observe": policy.observe,
            "history": policy.history,
        });
        to_python(py, &facts)
    })
}

/// A knob: a JSON pointer, the values at both ends, the number of its draw, and whether it is a whole number.
pub type KnobRow = (String, f64, f64, usize, bool);

/// The scenario, given as a dict, with its knobs. Raises `InputError` for one that is not valid at both ends.
pub fn template(
    scenario: Document,
    knobs: Vec<KnobRow>,
    logarithmic: Vec<bool>,
    flow: u32,
) -> PyResult<Arc<Template>> {
    let knob = |(pointer, low, high, draw, whole)| Knob { pointer, low, high, draw, whole };
    let knobs = knobs.into_iter().map(knob).collect();
    Ok(Arc::new(Template::new(scenario.0, knobs, logarithmic, flow).map_err(problem)?))
}

/// Behaviour of a batch when an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Autoreset {
    NextStep,
    SameStep,
    Disabled,
}

/// An environment of a batch.
struct Slot {
    episode: Episode,
    /// This step has begun an episode in place of an action.
    was_reset: bool,
    /// Observation and figures at the end of the episode that this step ended.
    last: Option<(Vec<f32>, [f64; COUNT])>,
    over: bool,
    /// Terminated and truncated, of that episode.
    ended: (bool, bool),
}

/// A batch of environments. Results are in the order of the environments, whatever the number of threads.
#[pyclass(name = "Episodes", module = "dragstrip._core")]
pub struct PyEpisodes {
    slots: Vec<Slot>,
    pool: Option<ThreadPool>,
    autoreset: Autoreset,
    width: usize,
}

/// An environment in the middle of an episode.
#[pyclass(frozen, name = "Snapshot", module = "dragstrip._core")]
pub struct PySnapshot {
    episode: Episode,
    over: bool,
}

/// An error, made where the interpreter is at hand.
type Refusal = Box<dyn FnOnce() -> PyErr + Send>;

/// The environment that has failed, and its error.
type Failure = (usize, Refusal);

#[pymethods]
impl PyEpisodes {
    /// A batch of `count` environments of a scenario, given as a dict, with an agent in flow `flow`.
    ///
    /// A knob is a JSON pointer, the values at both ends of its range, the number of the draw that it follows, and whether it is a whole number;
    /// `logarithmic` has an entry for each draw. `autoreset` is `next_step`, `same_step` or `disabled`. Raises `InputError` for
    /// a scenario that is not valid at both ends.
    #[new]
    fn new(
        scenario: Document,
        knobs: Vec<KnobRow>,
        logarithmic: Vec<bool>,
        flow: u32,
        count: usize,
        threads: usize,
        autoreset: &str,
    ) -> PyResult<Self> {
        panic::caught("environments", || {
            let template = template(scenario, knobs, logarithmic, flow)?;
            let slot = || Slot {
                episode: Episode::new(&template),
                was_reset: false,
                last: None,
                over: false,
                ended: (false, false),
            };
            let autoreset = match autoreset {
                "same_step" => Autoreset::SameStep,
                "disabled" => Autoreset::Disabled,
                _ => Autoreset::NextStep,
            };
            let pool = (threads > 1 && count > 1)
                .then(|| ThreadPoolBuilder::new().num_threads(threads.min(count)).build())
                .transpose()
                .map_err(|error| InputError::new_err(("threads", threads, error.to_string())))?;
            Ok(Self { slots: (0..count).map(|_| slot()).collect(), pool, autoreset, width: 0 })
        })
    }

    /// Begins an episode of each environment that `mask` has as 1, with its seed where there is one; the observations are put into `observations`
    /// (float32) and the figures into `figures` (float64), a row for each environment.
    fn reset(
        &mut self,
        py: Python<'_>,
        mask: Vec<bool>,
        seeds: Vec<Option<u64>>,
        observations: PyBuffer<f32>,
        figures: PyBuffer<f64>,
    ) -> PyResult<()> {
        let work = |number: usize, slot: &mut Slot| {
            if !mask[number] {
                return Ok(());
            }
            slot.over = false;
            begin(slot, seeds[number])
        };
        self.each(py, work)?;
        self.put(py, &observations, &figures, false)
    }

    /// Steps all environments with `actions` (float64). Fills `observations`, `figures` and `flags` (uint8, a row of three: terminated,
    /// truncated, begun anew). Returns the numbers of the environments whose episode has ended and begun anew in this step; `figures` are
    /// those of the step that ended, and `last` has the observation then in these rows.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyBuffer<f64>,
        observations: PyBuffer<f32>,
        figures: PyBuffer<f64>,
        flags: PyBuffer<u8>,
        last: Option<PyBuffer<f32>>,
    ) -> PyResult<Vec<usize>> {
        let actions = read_actions(py, &actions, self.slots.len())?;
        let autoreset = self.autoreset;
        for (slot, action) in self.slots.iter().zip(&actions) {
            if !(slot.over && autoreset == Autoreset::NextStep) {
                slot.episode.check(*action).map_err(|error| step_error(&error))?;
            }
        }
        self.each(py, |number, slot| advance(slot, actions[number], autoreset))?;
        self.put(py, &observations, &figures, true)?;
        let mut states = Vec::with_capacity(3 * self.slots.len());
        for slot in &self.slots {
            let ended = slot.last.is_some();
            let after = slot.episode.after();
            let (terminated, truncated) =
                if ended { slot.ended } else { (after.terminated, after.truncated) };
            states.extend([terminated, truncated, slot.was_reset].map(u8::from));
        }
        fill(py, &flags, &states, "flags")?;
        let ended: Vec<usize> =
            (0..self.slots.len()).filter(|number| self.slots[*number].last.is_some()).collect();
        if let Some(last) = last
            && !ended.is_empty()
        {
            let mut rows = Vec::with_capacity(self.slots.len() * self.width);
            for slot in &self.slots {
                let row = slot.last.as_ref().map(|(row, _)| row.as_slice());
                rows.extend_from_slice(row.unwrap_or_else(|| slot.episode.observation()));
            }
            fill(py, &last, &rows, "last")?;
        }
        Ok(ended)
    }

    /// Returns the scenario of an environment's episode as a dict; None before the first reset.
    fn scenario<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        panic::caught("a scenario", || {
            let run = self.slots.get(number).and_then(|slot| slot.episode.run());
            run.map(|run| to_python(py, run.scenario())).transpose()
        })
    }

    /// The actions of an environment's episode so far.
    fn actions(&self, number: usize) -> Vec<f64> {
        self.slots.get(number).map_or_else(Vec::new, |slot| slot.episode.actions().to_vec())
    }

    /// The fraction of each range that was drawn for an environment's episode, from 0 to 1.
    fn fractions(&self, number: usize) -> Vec<f64> {
        self.slots.get(number).map_or_else(Vec::new, |slot| slot.episode.fractions().to_vec())
    }

    /// Returns a copy of an environment in the middle of its episode. Raises `InputError` before the first reset, and with rivals over
    /// QUIC, whose stacks cannot be copied.
    fn snapshot(&self, number: usize) -> PyResult<PySnapshot> {
        panic::caught("a snapshot", || {
            let slot = self.slots.get(number);
            match slot.and_then(|slot| Some((slot.episode.copy()?, slot.over))) {
                Some((episode, over)) => Ok(PySnapshot { episode, over }),
                None => {
                    let expected = "an episode after its reset, without rivals over QUIC";
                    Err(InputError::new_err(("snapshot", "", expected)))
                }
            }
        })
    }

    /// Puts a snapshot in the place of an environment, and fills `observations` and `figures` as `reset` does.
    fn restore(
        &mut self,
        py: Python<'_>,
        number: usize,
        snapshot: &PySnapshot,
        observations: PyBuffer<f32>,
        figures: PyBuffer<f64>,
    ) -> PyResult<()> {
        let wrong = || InputError::new_err(("snapshot", "", "one of this environment"));
        let slot = self.slots.get_mut(number).ok_or_else(wrong)?;
        slot.episode = panic::caught("a snapshot", || snapshot.episode.copy().ok_or_else(wrong))?;
        (slot.over, slot.was_reset, slot.last) = (snapshot.over, false, None);
        self.put(py, &observations, &figures, false)
    }

    /// Returns the SHA-256 of the recording of an environment's episode so far; None before the first reset.
    fn sha256(&self, number: usize) -> PyResult<Option<String>> {
        panic::caught("an episode", || {
            let run = self.slots.get(number).and_then(|slot| slot.episode.run());
            Ok(run.map(|run| run.recording().sha256()))
        })
    }
}

impl PyEpisodes {
    /// Does some work for every environment, on all threads; the first failure in their order is raised.
    fn each(
        &mut self,
        py: Python<'_>,
        work: impl Fn(usize, &mut Slot) -> Result<(), Refusal> + Sync,
    ) -> PyResult<()> {
        let Self { slots, pool, .. } = self;
        let one = |(number, slot): (usize, &mut Slot)| -> Option<Failure> {
            work(number, slot).err().map(|failure| (number, failure))
        };
        let failure = panic::caught("an episode", || {
            Ok(py.detach(|| match pool {
                None => {
                    let failures: Vec<Failure> =
                        slots.iter_mut().enumerate().filter_map(one).collect();
                    failures.into_iter().next()
                }
                Some(pool) => {
                    let share = slots.len().div_ceil(4 * pool.current_num_threads()).max(1);
                    pool.install(|| {
                        let all = slots.par_iter_mut().enumerate().with_min_len(share);
                        all.filter_map(one).min_by_key(|(number, _)| *number)
                    })
                }
            }))
        })?;
        match failure {
            None => Ok(()),
            Some((_, error)) => Err(error()),
        }
    }

    /// Copies observations and figures into the caller's arrays; `of_step`: figures of the step that ended an episode.
    fn put(
        &mut self,
        py: Python<'_>,
        observations: &PyBuffer<f32>,
        figures: &PyBuffer<f64>,
        of_step: bool,
    ) -> PyResult<()> {
        let mut rows = Vec::with_capacity(observations.item_count());
        let mut values = Vec::with_capacity(figures.item_count());
        for slot in &self.slots {
            let row = slot.episode.observation();
            self.width = self.width.max(row.len());
            rows.extend_from_slice(row);
            match &slot.last {
                Some((_, last)) if of_step => values.extend_from_slice(last),
                Some(_) | None => values.extend_from_slice(slot.episode.figures()),
            }
        }
        fill(py, observations, &rows, "observations")?;
        fill(py, figures, &values, "figures")
    }
}

/// Copies rows into the caller's array. Raises `InputError` for one of another size.
pub fn fill<T: Element + Copy>(
    py: Python<'_>,
    buffer: &PyBuffer<T>,
    rows: &[T],
    name: &str,
) -> PyResult<()> {
    if buffer.item_count() != rows.len() {
        let expected = format!("an array of {} numbers", rows.len());
        return Err(InputError::new_err((name.to_owned(), buffer.item_count(), expected)));
    }
    buffer.copy_from_slice(py, rows)
}

fn begin(slot: &mut Slot, seed: Option<u64>) -> Result<(), Refusal> {
    slot.last = None;
    slot.episode.reset(seed).map_err(|error| -> Refusal { Box::new(move || reset_error(error)) })
}

pub fn reset_error(error: ResetError) -> PyErr {
    match error {
        ResetError::Problem(wrong) => problem(wrong),
        ResetError::Setup(wrong) => setup_error(wrong),
    }
}

fn advance(slot: &mut Slot, action: f64, autoreset: Autoreset) -> Result<(), Refusal> {
    (slot.was_reset, slot.last) = (false, None);
    if slot.over && autoreset == Autoreset::NextStep {
        (slot.over, slot.was_reset) = (false, true);
        return begin(slot, None);
    }
    let after = slot
        .episode
        .step(action)
        .map_err(|error| -> Refusal { Box::new(move || step_error(&error)) })?;
    slot.over = after.is_over();
    if slot.over && autoreset == Autoreset::SameStep {
        let last = (slot.episode.observation().to_vec(), *slot.episode.figures());
        begin(slot, None)?;
        (slot.over, slot.last) = (false, Some(last));
        slot.ended = (after.terminated, after.truncated);
    }
    Ok(())
}

/// The actions of a step, one for each of `count`.
pub fn read_actions(py: Python<'_>, actions: &PyBuffer<f64>, count: usize) -> PyResult<Vec<f64>> {
    let actions = actions.to_vec(py)?;
    if actions.len() == count {
        return Ok(actions);
    }
    Err(InputError::new_err(("action", actions.len().to_string(), format!("{count} actions"))))
}

pub fn step_error(error: &StepError) -> PyErr {
    let (field, value, expected) = match error {
        StepError::Over => {
            ("step".to_owned(), "after the end".to_owned(), "a reset before it".to_owned())
        }
        StepError::Action { action, low, high, whole } => {
            let kind = if *whole { "a whole number" } else { "a number" };
            ("action".to_owned(), action.to_string(), format!("{kind} from {low} to {high}"))
        }
        StepError::Fault(field, message) => (field.clone(), String::new(), message.clone()),
    };
    InputError::new_err((field, value, expected))
}
