//! Python bindings, nothing else.
//!
//! Scope: the translation between Python objects and the crates below. Out of scope: decisions. Tables cross as
//! columns of bytes, which Arrow takes over without looking at rows.

mod algorithms;
mod capture;
mod experiment;
mod inspect;
mod measures;
mod panic;
mod parts;
mod tables;

use dragstrip_scenario::{FlowSpec, Problem, Scenario};
use dragstrip_sim::SetupError;
use dragstrip_units::{ByteCount, Duration, ParseError, Rate, tc};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    _core,
    InputError,
    PyValueError,
    "An input that cannot be right; `args` are the field, the value and what would be right."
);

/// Runs a scenario given as JSON and answers with its tables (see `tables.rs` for their form).
///
/// `progress` is called with the simulated time in nanoseconds, about every simulated second and within some
/// tenths of a real one; when it answers `False` the run ends early. The interpreter is free while the simulator works, and Ctrl-C
/// ends the run. A panic is raised as `PanicError`. With `capture` packets are written to files meanwhile (see `capture.rs`). Otherwise a
/// large network is simulated on at most `cores` processor cores (see `parts.rs`); the tables do not depend on that.
#[pyfunction]
#[pyo3(signature = (scenario_json, progress=None, capture=None, cores=1))]
fn run<'py>(
    py: Python<'py>,
    scenario_json: &str,
    progress: Option<Py<PyAny>>,
    capture: Option<capture::Asked>,
    cores: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = panic::caught(scenario_json, || parse(scenario_json))?;
    let mut interrupted: Option<PyErr> = None;
    let mut advanced = |now_ns| {
        let go_on = Python::attach(|py| report(py, progress.as_ref(), now_ns));
        go_on.unwrap_or_else(|error| {
            interrupted = Some(error);
            false
        })
    };
    let mut taps =
        capture.as_ref().map(|request| capture::begin(&scenario, request)).transpose()?;
    let outcome = panic::caught(scenario_json, || {
        Ok(py.detach(|| match &mut taps {
            None => parts::run(&scenario, cores, &mut advanced),
            Some(taps) => dragstrip_sim::run_observed(&scenario, taps, &mut advanced),
        }))
    })?;
    if let Some(error) = interrupted {
        return Err(error);
    }
    let recording = outcome.map_err(setup_error)?;
    if let (Some(taps), Some(asked)) = (taps, &capture) {
        py.detach(|| capture::end(taps, &scenario, asked))?;
    }
    tables::to_python(py, recording)
}

/// Passes the simulated time on, after Python's signal handlers had their turn.
fn report(py: Python<'_>, progress: Option<&Py<PyAny>>, now_ns: u64) -> PyResult<bool> {
    py.check_signals()?;
    let Some(callback) = progress else { return Ok(true) };
    let answer = callback.call1(py, (now_ns,))?;
    if answer.is_none(py) { Ok(true) } else { answer.is_truthy(py) }
}

fn parse(scenario_json: &str) -> PyResult<Scenario> {
    Scenario::from_json(scenario_json).map_err(problem)
}

/// A scenario given as JSON, with every default written out.
#[pyfunction]
fn complete(scenario_json: &str) -> PyResult<String> {
    panic::caught(scenario_json, || to_json(&parse(scenario_json)?))
}

/// Everything that is wrong with a scenario given as JSON: field, value, what would be right.
#[pyfunction]
fn validate(scenario_json: &str) -> PyResult<Vec<(String, String, String)>> {
    panic::caught(scenario_json, || {
        let problems = match Scenario::from_json(scenario_json) {
            Ok(scenario) => scenario.validate().err().unwrap_or_default(),
            Err(problem) => vec![problem],
        };
        Ok(problems
            .into_iter()
            .map(|problem| (problem.field, problem.value, problem.expected))
            .collect())
    })
}

/// About how many bytes the columns of a scenario's recording will take in memory.
#[pyfunction]
fn recording_bytes(scenario_json: &str) -> PyResult<u64> {
    panic::caught(scenario_json, || Ok(parse(scenario_json)?.recording_bytes()))
}

/// The facts of the ways between pairs of nodes (`crates/scenario/src/path.rs`), as a JSON list: links there and
/// back, bottleneck, rate, round trips, bandwidth-delay product, buffer. `base_rtt_ns` is that of a frame of
/// `frame_bytes`.
#[pyfunction]
#[pyo3(signature = (scenario_json, pairs, frame_bytes=98))]
fn path_facts(
    scenario_json: &str,
    pairs: Vec<(String, String)>,
    frame_bytes: u32,
) -> PyResult<String> {
    panic::caught(scenario_json, || {
        let pairs = pairs.iter().map(|(near, far)| (near.as_str(), far.as_str()));
        to_json(&parse(scenario_json)?.path_facts(pairs, frame_bytes).map_err(problem)?)
    })
}

/// The facts of every link of a scenario, as a JSON list in their order: rates, delay, buffer.
#[pyfunction]
fn link_facts(scenario_json: &str) -> PyResult<String> {
    panic::caught(scenario_json, || {
        let scenario = parse(scenario_json)?;
        let facts: Vec<_> = scenario.links.iter().map(|link| scenario.link_facts(link)).collect();
        to_json(&facts)
    })
}

/// All facts of a scenario from one reading of it, for there may be a hundred thousand hosts: of every link as
/// `link_facts` has them, of the way of every flow's data as `path_facts` has them, and whether anything is random.
#[pyfunction]
fn facts(scenario_json: &str, frame_bytes: u32) -> PyResult<(String, String, bool)> {
    panic::caught(scenario_json, || {
        let scenario = parse(scenario_json)?;
        let links: Vec<_> = scenario.links.iter().map(|link| scenario.link_facts(link)).collect();
        let pairs = scenario.flows.iter().map(FlowSpec::data_ends);
        let ways = scenario.path_facts(pairs, frame_bytes).map_err(problem)?;
        Ok((to_json(&links)?, to_json(&ways)?, scenario.draws()))
    })
}

/// True when something in a scenario draws random numbers; if not, every seed gives the same recording.
#[pyfunction]
fn draws(scenario_json: &str) -> PyResult<bool> {
    panic::caught(scenario_json, || Ok(parse(scenario_json)?.draws()))
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Plays a conformance script on the simulator's endpoint; answers with the outcome as JSON.
#[pyfunction]
fn conform(name: &str, text: &str) -> PyResult<String> {
    let wrong = |expected: String| InputError::new_err((name.to_owned(), "", expected));
    panic::caught(name, || {
        let script = dragstrip_conformance::Script::parse(text);
        let script = script.map_err(|fault| wrong(fault.to_string()))?;
        to_json(&dragstrip_conformance::play_on_simulator(&script).map_err(wrong)?)
    })
}

fn setup_error(error: SetupError) -> PyErr {
    InputError::new_err((error.field, "", error.message))
}

fn problem(problem: Problem) -> PyErr {
    InputError::new_err((problem.field, problem.value, problem.expected))
}

fn parse_error(error: ParseError) -> PyErr {
    InputError::new_err(("", error.value, error.expected))
}

/// Refuses a text that is not a program (docs/how-to/program.md): the error's field is its place, such as `3:14`.
#[pyfunction]
fn check_program(text: &str) -> PyResult<()> {
    panic::caught(text, || {
        let read = dragstrip_cc::program::Program::parse(text);
        let wrong = |fault: dragstrip_cc::program::Misread| {
            InputError::new_err((fault.at.to_string(), fault.found, fault.expected))
        };
        read.map(|_| ()).map_err(wrong)
    })
}

/// The names of all congestion controls, in the order of the reference page.
#[pyfunction(name = "algorithms")]
fn algorithm_names() -> Vec<&'static str> {
    dragstrip_cc::names().to_vec()
}

/// All algorithms as a JSON list: name, source file, what it models, parameters, variables, needs.
#[pyfunction]
fn algorithm_table() -> PyResult<String> {
    to_json(&algorithms::table())
}

/// A queue discipline in the words of tc(8), as the scenario's JSON.
#[pyfunction]
fn parse_qdisc(text: &str) -> PyResult<String> {
    panic::caught(text, || {
        let qdisc = dragstrip_scenario::QdiscSpec::parse(text).map_err(problem)?;
        to_json(&qdisc)
    })
}

/// A script of tc's commands as a JSON object: `queues`, of each what it is of, its lines, its words, the fields of a path,
/// notes; `skipped`, the commands of other programs. An error's field is the line, such as `line 3`.
#[pyfunction]
fn import_tc(script: &str) -> PyResult<String> {
    panic::caught(script, || {
        let imported = dragstrip_qdisc::import::import(script).map_err(|wrong| {
            problem(Problem { field: format!("line {}", wrong.line), ..wrong.problem })
        })?;
        let queues = imported.queues.iter().map(|queue| {
            serde_json::json!({
                "device": queue.device,
                "direction": if queue.ingress { "in" } else { "out" },
                "through": queue.through,
                "lines": queue.lines,
                "queue": queue.queue.print(),
                "rate_bps": queue.queue.facts().rate_bps,
                "path": queue.path().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
                "notes": queue.notes,
            })
        });
        let skipped = imported
            .skipped
            .iter()
            .map(|command| serde_json::json!({ "line": command.line, "command": command.command }));
        to_json(&serde_json::json!({
            "queues": queues.collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
        }))
    })
}

/// A rate with its unit, in bits per second.
#[pyfunction]
fn parse_rate(text: &str) -> PyResult<u64> {
    panic::caught(text, || tc::parse_rate(text).map(Rate::bits_per_second).map_err(parse_error))
}

/// A size with its unit, in bytes.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    panic::caught(text, || tc::parse_size(text).map(ByteCount::get).map_err(parse_error))
}

/// A time with its unit, in nanoseconds.
#[pyfunction]
fn parse_time(text: &str) -> PyResult<u64> {
    panic::caught(text, || tc::parse_time(text).map(Duration::as_nanos).map_err(parse_error))
}

/// A share with its per cent sign, from 0 to 1.
#[pyfunction]
fn parse_percent(text: &str) -> PyResult<f64> {
    panic::caught(text, || tc::parse_percent(text).map_err(parse_error))
}

/// Python module `dragstrip._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("BUILT_OF", env!("BUILT_OF"))?;
    module.add("BUILT_CRATES", env!("BUILT_CRATES"))?;
    module.add("BUILT_PROFILE", env!("BUILT_PROFILE"))?;
    panic::install_hook();
    module.add("InputError", module.py().get_type::<InputError>())?;
    module.add("PanicError", module.py().get_type::<panic::PanicError>())?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_class::<experiment::PyFlowWord>()?;
    module.add_class::<experiment::PyVariants>()?;
    module.add_function(wrap_pyfunction!(experiment::varied, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::flat, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::assign, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::path_parts, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::checked, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::planned, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::compare, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::change_at, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::check_sizes, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::race_option, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::flow_word, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::nearest, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::names, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::queue_modules, module)?)?;
    module.add_function(wrap_pyfunction!(complete, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(recording_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(path_facts, module)?)?;
    module.add_function(wrap_pyfunction!(link_facts, module)?)?;
    module.add_function(wrap_pyfunction!(facts, module)?)?;
    module.add_function(wrap_pyfunction!(draws, module)?)?;
    module.add_function(wrap_pyfunction!(conform, module)?)?;
    module.add_function(wrap_pyfunction!(algorithm_names, module)?)?;
    module.add_function(wrap_pyfunction!(check_program, module)?)?;
    module.add("PROGRAM_MAX", dragstrip_cc::program::TEXT_MAX)?;
    module.add_function(wrap_pyfunction!(algorithm_table, module)?)?;
    module.add_function(wrap_pyfunction!(parse_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(import_tc, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(parse_time, module)?)?;
    module.add_function(wrap_pyfunction!(parse_percent, module)?)?;
    module.add_class::<inspect::PyAnonymous>()?;
    module.add_class::<inspect::PyInspection>()?;
    module.add("CAPTURES_MAX", dragstrip_inspect::FILES_MAX)?;
    module.add_class::<measures::PyMeasured>()?;
    module.add_function(wrap_pyfunction!(measures::measures, module)?)?;
    module.add_function(wrap_pyfunction!(measures::has_window, module)?)?;
    module.add_function(wrap_pyfunction!(measures::measure_of, module)?)?;
    module.add_function(wrap_pyfunction!(measures::rates_bps, module)?)?;
    module.add_function(wrap_pyfunction!(measures::jain, module)?)?;
    module.add("THROUGHPUT_NS", dragstrip_measures::THROUGHPUT_NS)?;
    Ok(())
}
