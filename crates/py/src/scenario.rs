//! A scenario that Python holds: read once, then asked for its facts, run and measured.

use crate::measures::PyMeasured;
use crate::objects::{Document, to_python};
use crate::{capture, panic, parts, problem, setup_error, tables};
use dragstrip_scenario::{FlowSpec, Problem, Scenario};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A scenario: one concrete run, as engines take it.
#[pyclass(frozen, name = "Scenario", module = "dragstrip._core")]
pub struct PyScenario(Scenario);

impl PyScenario {
    pub const fn new(scenario: Scenario) -> Self {
        Self(scenario)
    }

    pub const fn scenario(&self) -> &Scenario {
        &self.0
    }

    /// Its name and seed, for the report of a panic.
    fn subject(&self) -> String {
        format!("scenario {}, seed {}", self.0.name, self.0.seed)
    }

    fn caught<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        panic::caught_at(|| self.subject(), work)
    }
}

/// Reads a scenario from a dict or from its JSON text.
fn read(document: &Bound<'_, PyAny>) -> PyResult<Result<Scenario, Problem>> {
    if let Ok(text) = document.cast::<PyString>() {
        let text = text.to_str()?;
        return panic::caught(text, || Ok(Scenario::from_json(text)));
    }
    let Document(content) = document.extract()?;
    let subject = format!("scenario {}, seed {}", content["name"], content["seed"]);
    panic::caught_at(|| subject, || Ok(Scenario::from_value(content)))
}

#[pymethods]
impl PyScenario {
    /// Raises `InputError` for the first field that is not of the scenario's form; the contents are not validated.
    #[new]
    fn from_document(document: &Bound<'_, PyAny>) -> PyResult<Self> {
        read(document)?.map(Self).map_err(problem)
    }

    /// Returns the scenario as a dict with every default written out.
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.caught(|| to_python(py, &self.0))
    }

    /// Returns the scenario as JSON with every default written out.
    fn to_json(&self) -> PyResult<String> {
        self.caught(|| {
            let text = serde_json::to_string(&self.0);
            text.map_err(|error| PyValueError::new_err(error.to_string()))
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().into_any(), (slf.get().to_json()?,)))
    }

    /// Returns everything that is wrong: field, value, what would be right.
    fn problems(&self) -> PyResult<Vec<(String, String, String)>> {
        self.caught(|| Ok(rows(self.0.validate().err().unwrap_or_default())))
    }

    /// Approximate size of the recording: bytes of its columns in memory, rows of the table `samples`, rows of `rtts`.
    #[getter]
    fn recording_size(&self) -> PyResult<(u64, u64, u64)> {
        self.caught(|| {
            let size = self.0.recording_size();
            Ok((size.bytes, size.sample_rows, size.rtt_rows))
        })
    }

    /// True if any part draws random numbers; if not, every seed gives the same recording.
    #[getter]
    fn draws(&self) -> PyResult<bool> {
        self.caught(|| Ok(self.0.draws()))
    }

    /// Returns the facts of the paths between pairs of nodes (`crates/scenario/src/path.rs`), a dict each: links there
    /// and back, bottleneck, rate, round trips, bandwidth-delay product, buffer. `base_rtt_ns` is that of a frame of
    /// `frame_bytes`. Raises `InputError` for a node that has no path to the other.
    #[pyo3(signature = (pairs, frame_bytes=98))]
    fn path_facts<'py>(
        &self,
        py: Python<'py>,
        pairs: Vec<(String, String)>,
        frame_bytes: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.caught(|| {
            let pairs = pairs.iter().map(|(near, far)| (near.as_str(), far.as_str()));
            to_python(py, &self.0.path_facts(pairs, frame_bytes).map_err(problem)?)
        })
    }

    /// Returns the facts of every link in order, a dict each: rates, delay, buffer.
    fn link_facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.caught(|| {
            let facts: Vec<_> = self.0.links.iter().map(|link| self.0.link_facts(link)).collect();
            to_python(py, &facts)
        })
    }

    /// Returns the facts of the path of every flow's data, in the order of the flows, as `path_facts` does.
    fn flow_facts<'py>(&self, py: Python<'py>, frame_bytes: u32) -> PyResult<Bound<'py, PyAny>> {
        self.caught(|| {
            let pairs = self.0.flows.iter().map(FlowSpec::data_ends);
            to_python(py, &self.0.path_facts(pairs, frame_bytes).map_err(problem)?)
        })
    }

    /// Runs the scenario and returns its tables (see `tables.rs` for their form).
    ///
    /// `progress` is called with the simulated time in nanoseconds, about every simulated second and within some
    /// tenths of a real one; when it answers `False` the run ends early. The interpreter is free while the simulator works,
    /// and Ctrl-C ends the run. A panic is raised as `PanicError`. With `capture` packets are written to files meanwhile (see
    /// `capture.rs`). Otherwise a large network is simulated on at most `cores` processor cores (see `parts.rs`); the
    /// tables do not depend on that.
    #[pyo3(signature = (progress=None, capture=None, cores=1))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        capture: Option<capture::CaptureRequest>,
        cores: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scenario = &self.0;
        let mut interrupted: Option<PyErr> = None;
        let mut advanced = |now_ns| {
            let go_on = Python::attach(|py| report(py, progress.as_ref(), now_ns));
            go_on.unwrap_or_else(|error| {
                interrupted = Some(error);
                false
            })
        };
        let mut taps = capture.as_ref().map(|files| capture::begin(scenario, files)).transpose()?;
        let outcome = self.caught(|| {
            Ok(py.detach(|| match &mut taps {
                None => parts::run(scenario, cores, &mut advanced),
                Some(taps) => dragstrip_sim::run_observed(scenario, taps, &mut advanced),
            }))
        })?;
        if let Some(error) = interrupted {
            return Err(error);
        }
        let recording = outcome.map_err(setup_error)?;
        if let (Some(taps), Some(files)) = (taps, &capture) {
            py.detach(|| capture::end(taps, scenario, files))?;
        }
        tables::to_python(py, recording)
    }

    /// Returns the measures of a recording of this scenario, given as tables (see `measures.rs` for their form).
    fn measured(&self, tables: &Bound<'_, PyDict>) -> PyResult<PyMeasured> {
        self.caught(|| PyMeasured::new(self.0.clone(), tables))
    }
}

/// Returns everything that is wrong with a scenario given as a dict, also with its form: field, value, what would be right.
#[pyfunction]
pub fn problems_of(document: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String, String)>> {
    match read(document)? {
        Ok(scenario) => PyScenario(scenario).problems(),
        Err(problem) => Ok(rows(vec![problem])),
    }
}

fn rows(problems: Vec<Problem>) -> Vec<(String, String, String)> {
    problems.into_iter().map(|problem| (problem.field, problem.value, problem.expected)).collect()
}

/// Passes on the simulated time, after Python's signal handlers have run.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, now_ns: u64) -> PyResult<bool> {
    py.check_signals()?;
    let Some(callback) = progress else { return Ok(true) };
    let answer = callback.call1(py, (now_ns,))?;
    if answer.is_none(py) { Ok(true) } else { answer.is_truthy(py) }
}
