//! Python bindings, nothing else.
//!
//! What lives here: the translation between Python objects and the crates below. What must not:
//! any decision. Tables cross as columns of bytes, which Arrow takes over without looking at rows.

mod tables;

use dragstrip_scenario::Scenario;
use dragstrip_sim::SetupError;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    _core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; `args` are the field's JSON path and what is wrong with it."
);

/// Runs a scenario given as JSON and answers with its tables (see `tables.rs` for their form).
///
/// `progress` is called about every simulated second with the simulated time in nanoseconds; when it
/// answers `False` the run ends early. The interpreter is free while the simulator works, and Ctrl-C
/// ends the run.
#[pyfunction]
#[pyo3(signature = (scenario_json, progress=None))]
fn run<'py>(
    py: Python<'py>,
    scenario_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = parse(scenario_json)?;
    let mut interrupted: Option<PyErr> = None;
    let outcome = py.detach(|| {
        dragstrip_sim::run(&scenario, &mut |now_ns| {
            match Python::attach(|py| report(py, progress.as_ref(), now_ns)) {
                Ok(go_on) => go_on,
                Err(error) => {
                    interrupted = Some(error);
                    false
                }
            }
        })
    });
    match (interrupted, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(setup_error(error)),
        (None, Ok(recording)) => tables::to_python(py, recording),
    }
}

/// Passes the simulated time on, after Python's signal handlers had their turn.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, now_ns: u64) -> PyResult<bool> {
    py.check_signals()?;
    let Some(callback) = progress else { return Ok(true) };
    let answer = callback.call1(py, (now_ns,))?;
    if answer.is_none(py) { Ok(true) } else { answer.is_truthy(py) }
}

fn parse(scenario_json: &str) -> PyResult<Scenario> {
    serde_json::from_str(scenario_json)
        .map_err(|error| ScenarioError::new_err(("scenario".to_owned(), error.to_string())))
}

fn setup_error(error: SetupError) -> PyErr {
    ScenarioError::new_err((error.field, error.message))
}

/// The names of all congestion controls, in the order of the reference page.
#[pyfunction]
fn algorithms() -> Vec<&'static str> {
    dragstrip_cc::names().to_vec()
}

/// Python module `dragstrip._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(algorithms, module)?)?;
    Ok(())
}
