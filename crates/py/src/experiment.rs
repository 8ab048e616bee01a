//! Experiments (`crates/experiment`): checked, varied and expanded into runs.

use crate::objects::{Document, to_python};
use crate::scenario::PyScenario;
use crate::{panic, problem};
use dragstrip_experiment::{self as core, FlowWord, RaceForm, Selection, Variants};
use dragstrip_scenario::{Problem, Scenario};
use pyo3::prelude::*;
use serde_json::{Map, Value};

/// All combinations of what varies in an experiment.
#[pyclass(frozen, name = "Variants", module = "dragstrip._core")]
pub struct PyVariants(Variants);

#[pymethods]
impl PyVariants {
    #[new]
    fn new(content: Document) -> PyResult<Self> {
        caught(content.0, |content| Variants::new(content).map(Self))
    }

    fn __len__(&self) -> usize {
        self.0.count() as usize
    }

    /// Returns the runs of the first `made` of `repeats` repeats, all combinations in turn, then all again with the next seed: the
    /// settings, the repeat's number and the scenario of each.
    ///
    /// Flows may name `algorithms` and the experiment's own programs. `load` returns a content with what the files hold that it
    /// names. `keeps` (settings, repeat, scenario) is asked for each run, if given; one that is left out is not validated.
    /// Raises `InputError` for the first field that is wrong.
    #[pyo3(signature = (made, repeats, algorithms, load, keeps=None))]
    fn expand<'py>(
        &self,
        py: Python<'py>,
        made: u64,
        repeats: u64,
        algorithms: Vec<String>,
        load: Bound<'py, PyAny>,
        keeps: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, u64, PyScenario)>> {
        let mut callbacks = Callbacks { py, load, keeps };
        let expanded = panic::caught("an expansion", || {
            core::expand(&self.0, 0..made, repeats, &algorithms, &mut callbacks).map_err(|it| it.0)
        });
        let run = |run: core::ExpandedRun| {
            Ok((to_python(py, &run.settings)?, run.repeat, PyScenario::new(run.scenario)))
        };
        expanded?.into_iter().map(run).collect()
    }
}

/// An error of Python that a problem of the experiment becomes too.
struct Failure(PyErr);

impl From<Problem> for Failure {
    fn from(wrong: Problem) -> Self {
        Self(problem(wrong))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

/// Python's part in an expansion.
struct Callbacks<'py> {
    py: Python<'py>,
    load: Bound<'py, PyAny>,
    keeps: Option<Bound<'py, PyAny>>,
}

impl Selection for Callbacks<'_> {
    type Error = Failure;

    fn load(&mut self, content: Value) -> Result<Value, Failure> {
        let loaded = self.load.call1((to_python(self.py, &content)?,))?;
        Ok(loaded.extract::<Document>()?.0)
    }

    fn keeps(
        &mut self,
        settings: &Map<String, Value>,
        repeat: u64,
        scenario: &Scenario,
    ) -> Result<bool, Failure> {
        let Some(keeps) = &self.keeps else { return Ok(true) };
        let settings = to_python(self.py, settings)?;
        let answer = keeps.call1((settings, repeat, PyScenario::new(scenario.clone())))?;
        Ok(answer.is_truthy()?)
    }
}

/// Returns dotted path → list of values of a table; `field` is the table's own. Raises `InputError`, whose value is JSON.
#[pyfunction]
pub fn varied<'py>(py: Python<'py>, table: Document, field: &str) -> PyResult<Bound<'py, PyAny>> {
    let axes = caught(table.0, |table| core::varied(&table, field))?;
    let axes = axes.into_iter().map(|(path, values)| (path, values.into()));
    to_python(py, &axes.collect::<Map<_, _>>())
}

/// Returns dotted path → leaf value of a table.
#[pyfunction]
pub fn flat(py: Python<'_>, table: Document) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &caught(table.0, |table| Ok(core::flat(&table)))?)
}

/// Returns content with the fields of a list of (dotted path, value) set. Raises `InputError` for a path that leads nowhere.
#[pyfunction]
pub fn assign(
    py: Python<'_>,
    content: Document,
    assignments: Vec<(String, Document)>,
) -> PyResult<Bound<'_, PyAny>> {
    let changed = caught(content.0, |mut content| {
        for (path, value) in &assignments {
            core::assign(&mut content, path, &value.0)?;
        }
        Ok(content)
    });
    to_python(py, &changed?)
}

/// A dotted path in its parts.
#[pyfunction]
pub fn path_parts(path: &str) -> PyResult<Vec<&str>> {
    panic::caught(path, || Ok(core::path_parts(path)))
}

/// Returns the content of an experiment, checked and with its names written out. Flows may name `algorithms` and the
/// experiment's own programs. Raises `InputError` for the first field that is wrong.
#[pyfunction]
pub fn checked(
    py: Python<'_>,
    content: Document,
    algorithms: Vec<String>,
) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &caught(content.0, |content| core::checked(content, &algorithms))?)
}

/// Returns the scenario of an experiment in which nothing varies and whose files have been read; it is validated if it is
/// to be `judged`. Raises `InputError` for the first field that is wrong.
#[pyfunction]
pub fn planned(content: Document, algorithms: Vec<String>, judged: bool) -> PyResult<PyScenario> {
    caught(content.0, |content| core::planned(content, &algorithms, judged).map(PyScenario::new))
}

/// Returns the instant in nanoseconds of a link's change, whose values are checked.
#[pyfunction]
pub fn change_at(change: Document) -> PyResult<u64> {
    caught(change.0, |change| core::change_at(&change))
}

/// Refuses a text that is no distribution of sizes: a name, one size, or the lines of a file.
#[pyfunction]
pub fn check_sizes(text: &str) -> PyResult<()> {
    panic::caught(text, || core::Sizes::parse(text).map(|_| ()).map_err(problem))
}

/// The option of a race behind a field of its experiment: its name, and its word on a command line.
#[pyfunction]
pub fn race_option(field: &str) -> PyResult<Option<(&'static str, String)>> {
    panic::caught(field, || Ok(core::option_of(field).map(|option| (option.name, option.word()))))
}

/// Returns the content of the experiment that the options of a comparison, a dict, describe. Raises `InputError` for the
/// first option that is wrong.
#[pyfunction]
pub fn compare(py: Python<'_>, options: Document) -> PyResult<Bound<'_, PyAny>> {
    let content = caught(options.0, |options| {
        let Value::Object(options) = options else {
            return Err(Problem::new("", "", "is not a table of options"));
        };
        core::compare(&RaceForm::new(options)?)
    });
    to_python(py, &content?)
}

/// The parts of a flow's `cc`, such as `bbr:probe_rtt_win_sec=5*4@20ms+1s`.
#[pyclass(frozen, get_all, name = "FlowWord", module = "dragstrip._core")]
pub struct PyFlowWord {
    /// The algorithm.
    name: String,
    /// Number of flows; None if the word has no count.
    count: Option<u64>,
    /// The base RTT in nanoseconds; None if the word has none.
    rtt_ns: Option<u64>,
    /// Start of the first flow in nanoseconds; None if the word has none.
    start_ns: Option<u64>,
}

#[pymethods]
impl PyFlowWord {
    /// The algorithm without the QUIC stack that carries it: `my-exp` of `noq/dragstrip-my-exp`.
    #[getter]
    fn own_name(&self) -> &str {
        &self.name[dragstrip_scenario::quic::own_start(&self.name)..]
    }

    /// True if the word has no count, RTT or start: an algorithm with its options.
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

/// Returns a flow's `cc` without its count (`*`), RTT (`@`) or start (`+`), and the text of that part or None.
#[pyfunction]
pub fn flow_word_without(word: &str, sign: char) -> PyResult<(String, Option<String>)> {
    panic::caught(word, || {
        let (rest, part) = FlowWord::without(word, sign);
        Ok((rest, part.map(str::to_owned)))
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

/// Returns all named paths, media, workloads and queue disciplines: lists of dicts in a dict.
#[pyfunction]
pub fn names(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    panic::caught("names", || {
        let queue = |kind: &dragstrip_qdisc::Kind| {
            serde_json::json!({
                "name": kind.name,
                "words": (kind.words)(),
                "example": kind.least,
                "fifo": kind.fifo,
                "aqm": kind.aqm,
                "probabilistic": kind.probabilistic,
                "since": kind.since,
                "modules": kind.modules,
            })
        };
        let names = serde_json::json!({
            "paths": core::PATHS,
            "hosts": core::HOSTS,
            "media": core::MEDIA,
            "workloads": core::WORKLOADS,
            "queues": dragstrip_qdisc::KINDS.iter().map(queue).collect::<Vec<_>>(),
        });
        to_python(py, &names)
    })
}

/// Calls `work` on a document; a panic is raised as an error that names the document.
fn caught<T>(document: Value, work: impl FnOnce(Value) -> Result<T, Problem>) -> PyResult<T> {
    let subject = format!("experiment {}", document["name"]);
    panic::caught_at(|| subject, || work(document).map_err(problem))
}
