//! Expansion of an experiment (`crates/experiment`), as JSON.

use crate::{panic, problem, to_json};
use dragstrip_experiment::{self as core, FlowWord, RaceForm, Variants};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// All combinations of an experiment given as JSON. Each is built on request.
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

/// Flattens a table given as JSON to leaf values by dotted path.
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

/// The content of an experiment given as JSON, checked and with its names written out. Flows may name `algorithms`
/// and the experiment's own programs.
#[pyfunction]
pub fn checked(experiment_json: &str, algorithms: Vec<String>) -> PyResult<String> {
    panic::caught(experiment_json, || {
        to_json(&core::checked(value(experiment_json)?, &algorithms).map_err(problem)?)
    })
}

/// The scenario, as JSON with every default written out, of a repeat of an experiment given as JSON in which these
/// settings, a JSON table, were chosen; if `judged`, it is validated.
#[pyfunction]
pub fn planned(
    experiment_json: &str,
    settings_json: &str,
    repeat: u64,
    repeats: u64,
    algorithms: Vec<String>,
    judged: bool,
) -> PyResult<String> {
    panic::caught(experiment_json, || {
        let settings = value(settings_json)?;
        let settings = settings.as_object().cloned().unwrap_or_default();
        let content = value(experiment_json)?;
        let runs = (repeat, repeats);
        to_json(&core::planned(content, &settings, runs, &algorithms, judged).map_err(problem)?)
    })
}

/// The instant in nanoseconds of a change given as JSON, whose values are checked.
#[pyfunction]
pub fn change_at(change_json: &str) -> PyResult<u64> {
    panic::caught(change_json, || core::change_at(&value(change_json)?).map_err(problem))
}

/// Refuses a text that is not a distribution of sizes: a name, one size, or the lines of a file.
#[pyfunction]
pub fn check_sizes(text: &str) -> PyResult<()> {
    panic::caught(text, || core::Sizes::parse(text).map(|_| ()).map_err(problem))
}

/// The option of a race that sets a field of its experiment: its name, and its word on a command line.
#[pyfunction]
pub fn race_option(field: &str) -> PyResult<Option<(&'static str, String)>> {
    panic::caught(field, || Ok(core::option_of(field).map(|option| (option.name, option.word()))))
}

/// The experiment, as JSON, that the options of a comparison mean, given as JSON too.
#[pyfunction]
pub fn compare(form_json: &str) -> PyResult<String> {
    panic::caught(form_json, || {
        let form = RaceForm::from_json(form_json).map_err(problem)?;
        to_json(&core::compare(&form).map_err(problem)?)
    })
}

/// The parts of a flow's `cc`, such as `bbr:probe_rtt_win_sec=5*4@20ms+1s`.
#[pyclass(frozen, get_all, name = "FlowWord", module = "dragstrip._core")]
pub struct PyFlowWord {
    /// The algorithm.
    name: String,
    /// Number of flows; None if the word has no count.
    count: Option<u64>,
    /// The base RTT; None if the word has none.
    rtt_ns: Option<u64>,
    /// Start time of the first flow; None if the word has no start.
    start_ns: Option<u64>,
}

#[pymethods]
impl PyFlowWord {
    /// True when the word has no count, RTT or start: an algorithm with its options.
    #[getter]
    fn is_algorithm_alone(&self) -> bool {
        self.count.is_none() && self.rtt_ns.is_none() && self.start_ns.is_none()
    }
}

/// The candidate most like a word, or None if none is like it.
#[pyfunction]
#[pyo3(signature = (word, candidates))]
pub fn nearest(word: &str, candidates: Vec<String>) -> PyResult<Option<String>> {
    panic::caught(word, || {
        let nearest = dragstrip_units::nearest(word, candidates.iter().map(String::as_str));
        Ok(nearest.map(str::to_owned))
    })
}

/// Parses a flow's `cc`.
#[pyfunction]
pub fn flow_word(word: &str) -> PyResult<PyFlowWord> {
    panic::caught(word, || {
        let word = FlowWord::parse(word, "").map_err(problem)?;
        Ok(PyFlowWord {
            name: word.name.to_owned(),
            count: word.count,
            rtt_ns: word.rtt_ns(),
            start_ns: word.start_ns(),
        })
    })
}

/// All named paths, media, workloads and queue disciplines, as a JSON table of lists.
#[pyfunction]
pub fn names() -> PyResult<String> {
    panic::caught("names", || {
        let queues: Vec<Value> = dragstrip_qdisc::KINDS
            .iter()
            .map(|kind| {
                let words = (kind.words)();
                serde_json::json!({"name": kind.name, "words": words, "example": kind.least})
            })
            .collect();
        to_json(&serde_json::json!({
            "paths": core::PATHS, "media": core::MEDIA, "workloads": core::WORKLOADS, "queues": queues,
        }))
    })
}

/// The kernel's modules that the queue disciplines may be in.
#[pyfunction]
pub fn queue_modules() -> PyResult<Vec<&'static str>> {
    panic::caught("modules", || {
        Ok(dragstrip_qdisc::KINDS.iter().flat_map(|kind| kind.modules).copied().collect())
    })
}

fn value(json: &str) -> PyResult<Value> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
