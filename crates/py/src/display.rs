//! Appearance of charts.

use crate::{InputError, panic};
use dragstrip_display as display;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The name of each algorithm's colour.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn curve_colours(algorithms: Vec<String>) -> PyResult<Vec<&'static str>> {
    panic::caught("curve_colours", || Ok(display::colours(&texts(&algorithms))))
}

/// The place of each curve's dash pattern in `look.json`, of curves with these colours.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn curve_dashes(colours: Vec<String>) -> PyResult<Vec<usize>> {
    panic::caught("curve_dashes", || Ok(display::dashes(&texts(&colours))))
}

/// The place of the largest unit in which `greatest` is at least 1, else of the smallest; `sizes` are the units' sizes, from
/// the smallest up.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn unit_for(greatest: f64, sizes: Vec<f64>) -> PyResult<usize> {
    panic::caught("unit_for", || Ok(display::unit_for(greatest, &sizes)))
}

/// Title with unit, unit and upper end of a panel's axis. Raises `InputError` if there is no such panel.
#[pyfunction]
pub fn panel_axis(panel: &str, greatest: f64) -> PyResult<(String, &'static str, f64)> {
    panic::caught(panel, || {
        let axis = display::axis(panel, greatest)
            .ok_or_else(|| InputError::new_err(("panel", panel.to_owned(), "a panel over time")))?;
        Ok((axis.title, axis.unit, axis.high))
    })
}

/// The instant in seconds that a finding names, and its text; None where it names none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists and dicts arrive")]
pub fn finding_mark(
    flows: Vec<String>,
    figures: BTreeMap<String, f64>,
) -> PyResult<Option<(f64, String)>> {
    panic::caught("finding_mark", || {
        let mark = display::mark(&texts(&flows), |name| figures.get(name).copied());
        Ok(mark.map(|mark| (mark.at_s, mark.text)))
    })
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}
