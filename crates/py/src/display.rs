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

/// Title with unit, unit, the unit's size and the upper end of each panel's axis, of panels with these greatest values.
/// Raises `InputError` if there is no such panel.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn panel_axes(panels: Vec<(String, f64)>) -> PyResult<Vec<(String, &'static str, f64, f64)>> {
    panic::caught("panel_axes", || {
        panels
            .iter()
            .map(|(panel, greatest)| {
                let axis = display::axis(panel, *greatest).ok_or_else(|| {
                    InputError::new_err(("panel", panel.to_owned(), "a panel over time"))
                })?;
                Ok((axis.title, axis.unit, axis.divisor, axis.high))
            })
            .collect()
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
