//! Python bindings, nothing else.
//!
//! Scope: the translation between Python objects and the crates below. Out of scope:
//! any decision. Tables cross as columns of bytes, which Arrow takes over without looking at rows.

mod algorithms;
mod capture;
mod display;
mod experiment;
mod inspect;
mod learn;
mod learn_group;
mod measures;
mod objects;
mod panic;
mod parts;
mod scenario;
mod tables;

use crate::objects::to_python;
use dragstrip_scenario::Problem;
use dragstrip_sim::SetupError;
use dragstrip_units::{ByteCount, Duration, ParseError, Rate, tc};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

create_exception!(
    _core,
    InputError,
    PyValueError,
    "An input that cannot be right; `args` are the field, the value and what would be right."
);

/// Runs a conformance script on the simulator's endpoint and returns the outcome as a dict.
#[pyfunction]
fn conform<'py>(py: Python<'py>, name: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |expected: String| InputError::new_err((name.to_owned(), "", expected));
    panic::caught(name, || {
        let script = dragstrip_conformance::Script::parse(text);
        let script = script.map_err(|fault| wrong(fault.to_string()))?;
        to_python(py, &dragstrip_conformance::play_on_simulator(&script).map_err(wrong)?)
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

/// Refuses a text that is neither a program (docs/how-to/program.md) nor a policy (docs/how-to/learning.md): the error's field is its place, such as `3:14`.
#[pyfunction]
fn check_program(text: &str) -> PyResult<()> {
    panic::caught(text, || {
        let read = dragstrip_cc::Text::parse(text);
        let wrong = |it: dragstrip_cc::program::Misread| {
            InputError::new_err((it.at.to_string(), it.value, it.expected))
        };
        read.map(|_| ()).map_err(wrong)
    })
}

/// Returns all congestion controls, a dict each: name, source file, model, parameters, variables, needs.
#[pyfunction]
fn algorithm_table(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &algorithms::table())
}

/// Returns the congestion controls of QUIC's stacks, a dict each: name, title, release, stack, `library`, whether it is one, and
/// `absent`, which names it and its package where this machine lacks it.
#[pyfunction]
fn quic_table(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &algorithms::quic_table())
}

/// Returns a queue discipline in the words of tc(8) as a scenario has it. Raises `InputError` for words that tc would refuse.
#[pyfunction]
fn parse_qdisc<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    panic::caught(text, || {
        let qdisc = dragstrip_scenario::QdiscSpec::parse(text).map_err(problem)?;
        to_python(py, &qdisc)
    })
}

/// Returns whether a queue discipline in the words of tc(8) marks packets of ECN-capable flows. Raises `InputError` for words
/// that tc would refuse.
#[pyfunction]
fn queue_marks(text: &str) -> PyResult<bool> {
    panic::caught(text, || {
        let qdisc = dragstrip_scenario::QdiscSpec::parse(text).map_err(problem)?;
        Ok(qdisc.facts().marks)
    })
}

/// Returns the content of a script of tc's commands: `queues`, a dict each with its device, lines, words, the fields of a
/// path and notes; `skipped`, the commands of other programs. Raises `InputError`, whose field is the line, such as `line 3`.
#[pyfunction]
fn import_tc<'py>(py: Python<'py>, script: &str) -> PyResult<Bound<'py, PyAny>> {
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
        let content = serde_json::json!({
            "queues": queues.collect::<Vec<_>>(),
            "skipped": skipped.collect::<Vec<_>>(),
        });
        to_python(py, &content)
    })
}

/// Returns the stack profile nearest to a Linux kernel of this release, as `uname -r` says it.
#[pyfunction]
fn stack_of_release(release: &str) -> &'static str {
    dragstrip_scenario::StackProfile::of_release(release).name()
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
    module.add_class::<scenario::PyScenario>()?;
    module.add_function(wrap_pyfunction!(scenario::problems_of, module)?)?;
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
    module.add_function(wrap_pyfunction!(experiment::flow_word_without, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::nearest, module)?)?;
    module.add_function(wrap_pyfunction!(experiment::names, module)?)?;
    module.add_function(wrap_pyfunction!(conform, module)?)?;
    module.add("ALGORITHMS", PyTuple::new(module.py(), dragstrip_cc::names())?)?;
    let quic: Vec<&str> = dragstrip_scenario::quic::names().collect();
    module.add("QUIC", PyTuple::new(module.py(), quic)?)?;
    module.add_function(wrap_pyfunction!(check_program, module)?)?;
    module.add("PROGRAM_MAX", dragstrip_cc::agent::POLICY_MAX)?;
    module.add_function(wrap_pyfunction!(algorithm_table, module)?)?;
    module.add_function(wrap_pyfunction!(quic_table, module)?)?;
    module.add_function(wrap_pyfunction!(parse_qdisc, module)?)?;
    module.add_function(wrap_pyfunction!(queue_marks, module)?)?;
    module.add_function(wrap_pyfunction!(import_tc, module)?)?;
    module.add_function(wrap_pyfunction!(stack_of_release, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(parse_time, module)?)?;
    module.add_function(wrap_pyfunction!(parse_percent, module)?)?;
    module.add_function(wrap_pyfunction!(display::curve_colours, module)?)?;
    module.add_function(wrap_pyfunction!(display::panel_axes, module)?)?;
    module.add_function(wrap_pyfunction!(display::finding_mark, module)?)?;
    module.add_class::<learn::PyEpisodes>()?;
    module.add_class::<learn::PySnapshot>()?;
    module.add_class::<learn_group::PyGroup>()?;
    module.add("FIGURES", learn::figures(module.py())?)?;
    module.add_function(wrap_pyfunction!(learn::policy_facts, module)?)?;
    module.add_class::<inspect::PyAnonymous>()?;
    module.add_class::<inspect::PyInspection>()?;
    module.add("CAPTURES_MAX", dragstrip_inspect::FILES_MAX)?;
    module.add_class::<measures::PyMeasured>()?;
    module.add("MEASURES", measures::table(module.py())?)?;
    module.add_function(wrap_pyfunction!(measures::has_window, module)?)?;
    module.add_function(wrap_pyfunction!(measures::measure_of, module)?)?;
    module.add_function(wrap_pyfunction!(measures::rates_bps, module)?)?;
    module.add_function(wrap_pyfunction!(measures::jain, module)?)?;
    module.add_function(wrap_pyfunction!(measures::summary_figure, module)?)?;
    module.add_function(wrap_pyfunction!(measures::quiz_is_right, module)?)?;
    module.add_function(wrap_pyfunction!(measures::py_flow_figures, module)?)?;
    module.add_function(wrap_pyfunction!(measures::py_probe_figures, module)?)?;
    module.add_function(wrap_pyfunction!(measures::round_trips, module)?)?;
    module.add_function(wrap_pyfunction!(measures::limiting_factor, module)?)?;
    module.add("TAIL_SAMPLES", dragstrip_measures::figures::TAIL_SAMPLES)?;
    module.add("THROUGHPUT_NS", dragstrip_measures::THROUGHPUT_NS)?;
    Ok(())
}
