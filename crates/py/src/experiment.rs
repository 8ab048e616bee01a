//! What an experiment means (`crates/experiment`), as JSON.

use crate::{panic, problem, to_json};
use dragstrip_experiment::{self as core, CompareForm, Experiment, FlowWord, Variants};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// All combinations of what varies in an experiment given as JSON. Each is made when it is asked for.
#[pyclass(frozen, name = "Variants", module = "dragstrip._core")]
pub struct PyVariants(Variants);

#[pymethods]
impl PyVariants {
    #[new]
    fn new(experiment_json: &str) -> PyResult<Self> {
        panic::caught(experiment_json, || {
            Variants::from_json(experiment_json).map(Self).map_err(problem)
        })
    }

    fn __len__(&self) -> usize {
        self.0.count() as usize
    }

    /// The settings and the experiment of one of them, each as JSON.
    fn __getitem__(&self, number: u32) -> PyResult<(String, String)> {
        panic::caught(&number.to_string(), || {
            if number >= self.0.count() {
                return Err(PyIndexError::new_err(number));
            }
            let variant = self.0.get(number).map_err(problem)?;
            Ok((to_json(&variant.settings)?, to_json(&variant.content)?))
        })
    }
}

/// Dotted path → list of values, of a table given as JSON; `field` is the table's own. An error's value is JSON.
#[pyfunction]
pub fn varied(table_json: &str, field: &str) -> PyResult<String> {
    panic::caught(table_json, || {
        let axes = core::varied(&value(table_json)?, field).map_err(problem)?;
        to_json(
            &axes.into_iter().map(|(path, values)| (path, values.into())).collect::<Map<_, _>>(),
        )
    })
}

/// Dotted path → what is no table, of a table given as JSON.
#[pyfunction]
pub fn flat(table_json: &str) -> PyResult<String> {
    panic::caught(table_json, || to_json(&core::flat(&value(table_json)?)))
}

/// Content given as JSON with the fields set of a JSON list of `[path, value]`.
#[pyfunction]
pub fn assign(content_json: &str, assignments_json: &str) -> PyResult<String> {
    panic::caught(content_json, || {
        core::assign_json(content_json, assignments_json).map_err(problem)
    })
}

/// A dotted path in its parts.
#[pyfunction]
pub fn path_parts(path: &str) -> PyResult<Vec<&str>> {
    panic::caught(path, || Ok(core::path_parts(path)))
}

/// The scenario, as JSON with every default written out, of a repeat of an experiment given as JSON, named after its
/// settings, a JSON table.
#[pyfunction]
pub fn build_run(
    experiment_json: &str,
    settings_json: &str,
    repeat: u64,
    repeats: u64,
) -> PyResult<String> {
    panic::caught(experiment_json, || {
        let experiment = Experiment::from_json(experiment_json).map_err(problem)?;
        let settings = value(settings_json)?;
        let settings = settings.as_object().cloned().unwrap_or_default();
        to_json(&core::build_run(&experiment, &settings, repeat, repeats).map_err(problem)?)
    })
}

/// The scenario, as JSON with every default written out, that an experiment given as JSON means; alternatives are
/// left aside (`crates/experiment`).
#[pyfunction]
pub fn build_scenario(experiment_json: &str, name: &str, seed: u64) -> PyResult<String> {
    panic::caught(experiment_json, || {
        let experiment = Experiment::from_json(experiment_json).map_err(problem)?;
        to_json(&core::build(&experiment, name, seed).map_err(problem)?)
    })
}

/// The experiment, as JSON, that the options of a comparison mean, given as JSON too.
#[pyfunction]
pub fn compare(form_json: &str) -> PyResult<String> {
    panic::caught(form_json, || {
        let form = CompareForm::from_json(form_json).map_err(problem)?;
        to_json(&core::compare(&form).map_err(problem)?)
    })
}

/// An experiment's `path` and `media`, given as JSON, with the names in them written out.
#[pyfunction]
pub fn spell_names(content_json: &str) -> PyResult<String> {
    panic::caught(content_json, || {
        let mut content = value(content_json)?;
        core::spell_names(&mut content).map_err(problem)?;
        to_json(&content)
    })
}

/// Checks a queue's words as an experiment has them; what they are counted in is not known yet.
#[pyfunction]
pub fn check_queue(words: &str) -> PyResult<()> {
    panic::caught(words, || core::check_queue(words).map_err(problem))
}

/// The algorithm that a flow's `cc` names, and how many flows.
#[pyfunction]
pub fn flow_word(word: &str) -> PyResult<(&str, u64)> {
    panic::caught(word, || {
        let word = FlowWord::parse(word, "").map_err(problem)?;
        Ok((word.name, word.count.unwrap_or(1)))
    })
}

/// All named paths, media, workloads and queue disciplines, as a JSON table of lists.
#[pyfunction]
pub fn names() -> PyResult<String> {
    panic::caught("names", || {
        let queues: Vec<Value> = dragstrip_qdisc::KINDS
            .iter()
            .map(|kind| serde_json::json!({"name": kind.name, "words": kind.words, "example": kind.least}))
            .collect();
        to_json(&serde_json::json!({
            "paths": core::PATHS, "media": core::MEDIA, "workloads": core::WORKLOADS, "queues": queues,
        }))
    })
}

fn value(json: &str) -> PyResult<Value> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
