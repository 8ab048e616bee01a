//! Measures of a recording that Python holds as Arrow tables.
//!
//! Tables come as `{table: {column: (kind, value)}}` with values as in `tables.rs`, anything with a buffer in the
//! place of bytes. Columns that no format defines are left out, columns that are not there are missed when a
//! measure needs them.

use crate::objects::{Document, to_python};
use crate::{InputError, panic};
use dragstrip_measures::figures::{Facts, RoundTrips, flow_figures, probe_figures};
use dragstrip_measures::{
    Figure, Flow, MEASURES, Measured, MissingColumn, THROUGHPUT_NS, Transfer, Window, arithmetic,
    find, is_right, summarise,
};
use dragstrip_recording::{Column, ColumnDef, Data, Kind, Recording, TABLES, Table};
use dragstrip_scenario::Scenario;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// A flow as `dragstrip.results.measures.Flow` has it.
#[derive(IntoPyObject)]
struct FlowRow<'a> {
    flow: i64,
    label: &'a str,
    cc: &'a str,
    sender: &'a str,
    receiver: &'a str,
    start_ns: i64,
    stop_ns: i64,
    bytes_received: i64,
    segments_sent: i64,
    retransmits: i64,
    rto_count: Option<i64>,
    reductions: i64,
    ecn_negotiated: bool,
    datagrams_lost: Option<i64>,
    goodput_bps: f64,
}

impl<'a> From<&'a Flow> for FlowRow<'a> {
    fn from(row: &'a Flow) -> Self {
        let Flow {
            flow,
            label,
            cc,
            sender,
            receiver,
            start_ns,
            stop_ns,
            bytes_received,
            segments_sent,
            retransmits,
            rto_count,
            reductions,
            ecn_negotiated,
            datagrams_lost,
        } = row;
        Self {
            flow: *flow,
            label,
            cc,
            sender,
            receiver,
            start_ns: *start_ns,
            stop_ns: *stop_ns,
            bytes_received: *bytes_received,
            segments_sent: *segments_sent,
            retransmits: *retransmits,
            rto_count: *rto_count,
            reductions: *reductions,
            ecn_negotiated: *ecn_negotiated,
            datagrams_lost: *datagrams_lost,
            goodput_bps: row.goodput_bps(),
        }
    }
}

/// A recording with what the measures need of it at hand.
#[pyclass(frozen, name = "Measured", module = "dragstrip._core")]
pub struct PyMeasured(Measured);

#[pymethods]
impl PyMeasured {
    /// The fields of `dragstrip.results.measures.Flow` of every flow, in the order of the table `flows`.
    fn flows(&self) -> Vec<FlowRow<'_>> {
        self.0.flows().iter().map(FlowRow::from).collect()
    }

    fn segment_bytes(&self, flow: i64) -> PyResult<u32> {
        panic::caught("segment_bytes", || Ok(self.0.segment_bytes(self.place(flow)?)))
    }

    fn queued_links(&self) -> Vec<&str> {
        self.0.queued_links()
    }

    /// The values of a series as 64-bit floats.
    #[pyo3(signature = (name, subject, after_ns, until_ns, state))]
    fn series<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        subject: &Bound<'_, PyAny>,
        after_ns: i64,
        until_ns: Option<i64>,
        state: Option<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        panic::caught(name, || {
            let measure = MEASURES.iter().find(|measure| measure.name == name);
            let figure = measure.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.figure;
            let values = self.values(figure, subject, &Window { after_ns, until_ns, state })?;
            Ok(PyBytes::new(py, &Data::Float(values).to_bytes()))
        })
    }

    /// A figure by its whole name; none where there is nothing to measure.
    #[pyo3(signature = (name, subject, after_ns, until_ns, state))]
    fn figure(
        &self,
        name: &str,
        subject: &Bound<'_, PyAny>,
        after_ns: i64,
        until_ns: Option<i64>,
        state: Option<String>,
    ) -> PyResult<Option<f64>> {
        panic::caught(name, || {
            let definition = find(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
            let window = Window { after_ns, until_ns, state };
            match definition {
                (measure, Some(statistic)) => {
                    Ok(statistic.of(self.values(measure.figure, subject, &window)?))
                }
                (measure, None) => match measure.figure {
                    Figure::FlowFigure(figure) => {
                        let place = self.place(subject.extract()?)?;
                        figure(&self.0, place, &window).map_err(missing)
                    }
                    Figure::WholeFlow(figure) => {
                        figure(&self.0, self.place(subject.extract()?)?).map_err(missing)
                    }
                    Figure::NameFigure(figure) => {
                        figure(&self.0, subject.extract()?).map_err(missing)
                    }
                    Figure::RunFigure(figure) => figure(&self.0).map_err(missing),
                    Figure::TransfersFigure(figure) => Ok(figure(&self.transfers(subject)?)),
                    Figure::OfFlow(_) | Figure::OfName(_) | Figure::OfTransfers(_) => {
                        Err(PyKeyError::new_err(name.to_owned()))
                    }
                },
            }
        })
    }

    /// Returns the summary of the run as a dict.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        panic::caught("summary", || to_python(py, &summarise(&self.0).map_err(missing)?))
    }
}

impl PyMeasured {
    /// Raises `InputError` for a column that the measures need and that the tables don't have.
    pub fn new(scenario: Scenario, tables: &Bound<'_, PyDict>) -> PyResult<Self> {
        Measured::new(scenario, recording(tables)?).map(Self).map_err(missing)
    }

    fn place(&self, flow: i64) -> PyResult<usize> {
        let flows = self.0.flows();
        let row = usize::try_from(flow).ok();
        let row = row.filter(|row| flows.get(*row).is_some_and(|entry| entry.flow == flow));
        row.or_else(|| flows.iter().position(|entry| entry.flow == flow))
            .ok_or_else(|| PyKeyError::new_err(format!("no flow {flow}")))
    }

    /// The transfers among flows with these numbers.
    fn transfers(&self, subject: &Bound<'_, PyAny>) -> PyResult<Vec<Transfer>> {
        let numbers: Vec<i64> = subject.extract()?;
        let places = numbers.into_iter().map(|number| self.place(number));
        Ok(self.0.transfers(&places.collect::<PyResult<Vec<_>>>()?))
    }

    fn values(
        &self,
        figure: Figure,
        subject: &Bound<'_, PyAny>,
        window: &Window,
    ) -> PyResult<Vec<f64>> {
        match figure {
            Figure::OfFlow(series) => {
                series(&self.0, self.place(subject.extract()?)?, window).map_err(missing)
            }
            Figure::OfName(series) => series(&self.0, subject.extract()?).map_err(missing),
            Figure::OfTransfers(value) => {
                Ok(self.transfers(subject)?.iter().filter_map(value).collect())
            }
            Figure::FlowFigure(_)
            | Figure::WholeFlow(_)
            | Figure::NameFigure(_)
            | Figure::RunFigure(_)
            | Figure::TransfersFigure(_) => Err(PyTypeError::new_err("a figure is no series")),
        }
    }
}

fn missing(error: MissingColumn) -> PyErr {
    let field = format!("{}.{}", error.table, error.column);
    InputError::new_err((field, "", format!("{error}, which a measure needs")))
}

fn recording(tables: &Bound<'_, PyDict>) -> PyResult<Recording> {
    let mut recording = Recording::default();
    for def in TABLES {
        let Some(table) = tables.get_item(def.name)? else { continue };
        let table = table.cast::<PyDict>()?;
        let mut columns = Vec::new();
        for column in def.columns {
            if let Some(value) = table.get_item(column.name)? {
                columns.push(Column { name: column.name, data: data(column, &value)? });
            }
        }
        recording.tables.push(Table { name: def.name, columns });
    }
    Ok(recording)
}

fn data(def: &ColumnDef, value: &Bound<'_, PyAny>) -> PyResult<Data> {
    let (kind, value): (String, Bound<'_, PyAny>) = value.extract()?;
    if kind != def.kind.name() {
        let wrong = format!("{}.{} holds {}, not {kind}", def.table, def.name, def.kind.name());
        return Err(PyTypeError::new_err(wrong));
    }
    Ok(match def.kind {
        Kind::Int => Data::Int(values::<i64>(&value)?.into()),
        Kind::Float => Data::Float(values(&value)?),
        Kind::Bool => Data::Bool(values::<u8>(&value)?.into_iter().map(|byte| byte != 0).collect()),
        Kind::Text => {
            let (names, index): (Vec<String>, Bound<'_, PyAny>) = value.extract()?;
            Data::Text { names, index: values(&index)? }
        }
    })
}

fn values<T: Element>(value: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(value)?.to_vec(value.py())
}

/// Name, level, unit, meaning and whether it is a series, of every measure.
pub fn table(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let row = |m: &dragstrip_measures::Measure| {
        (m.name, m.level.name(), m.unit, m.meaning, m.is_series())
    };
    PyTuple::new(py, MEASURES.iter().map(row))
}

/// True when the measure that a claim calls `name` can be limited to a part of a flow's life.
#[pyfunction]
pub fn has_window(name: &str) -> bool {
    find(name).is_some_and(|(measure, _)| measure.has_window())
}

/// The name, without its statistic, of the measure that a claim calls `name`; none if there is no such measure.
#[pyfunction]
pub fn measure_of(name: &str) -> Option<&'static str> {
    find(name).map(|(measure, _)| measure.name)
}

/// Bytes of successive intervals as rates of whole seconds, 64-bit floats both.
#[pyfunction]
pub fn rates_bps<'py>(
    py: Python<'py>,
    sizes: &Bound<'py, PyAny>,
    interval_ns: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    panic::caught("rates_bps", || {
        let rates = arithmetic::rates_bps(&values(sizes)?, interval_ns.max(1), THROUGHPUT_NS);
        Ok(PyBytes::new(py, &Data::Float(rates).to_bytes()))
    })
}

/// Jain's index.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn jain(rates: Vec<f64>) -> PyResult<Option<f64>> {
    panic::caught("jain", || Ok(arithmetic::jain(&rates)))
}

/// A figure of a run's summary by its path, such as `flows.0.share`; None where the summary has no number there.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's dicts arrive")]
pub fn summary_figure(summary: Document, measure: &str) -> PyResult<Option<f64>> {
    panic::caught("summary_figure", || Ok(dragstrip_measures::summary_figure(&summary.0, measure)))
}

/// The verdict on a lesson's quiz by the run's summary and, for a quiz about a number, that number. Raises `InputError` for
/// a quiz of no kind.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "as Python's dicts arrive")]
pub fn quiz_is_right(quiz: Document, summary: Document, number: f64) -> PyResult<bool> {
    panic::caught("quiz_is_right", || {
        is_right(&quiz.0, &summary.0, number)
            .map_err(|expected| InputError::new_err(("quiz", "", expected)))
    })
}

/// Figures of each flow of any recording, in the order of the table `flows` (crates/measures/src/figures.rs).
///
/// `reported`: figures of another program, by the flow's number as text.
#[pyfunction(name = "flow_figures")]
#[expect(clippy::needless_pass_by_value, reason = "as Python's dicts arrive")]
pub fn py_flow_figures<'py>(
    py: Python<'py>,
    tables: &Bound<'py, PyDict>,
    reported: Document,
    end_ns: Option<i64>,
    every_ack: bool,
) -> PyResult<Bound<'py, PyAny>> {
    panic::caught("flow_figures", || {
        let facts = Facts { end_ns, every_ack, reported: Some(&reported.0) };
        to_python(py, &flow_figures(&recording(tables)?, facts))
    })
}

/// Figures of each probe of any recording, in the order of their first requests.
///
/// `summaries`: requests that another program sums up, a dict each.
#[pyfunction(name = "probe_figures")]
#[expect(clippy::needless_pass_by_value, reason = "as Python's lists arrive")]
pub fn py_probe_figures<'py>(
    py: Python<'py>,
    tables: &Bound<'py, PyDict>,
    summaries: Document,
) -> PyResult<Bound<'py, PyAny>> {
    panic::caught("probe_figures", || {
        to_python(py, &probe_figures(&recording(tables)?, &summaries.0))
    })
}

/// Figures of round trips in nanoseconds, 64-bit floats, in milliseconds.
#[pyfunction]
pub fn round_trips<'py>(
    py: Python<'py>,
    values_ns: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    panic::caught("round_trips", || {
        let values_ns: Vec<f64> = values(values_ns)?;
        let method = (!values_ns.is_empty()).then_some("echo");
        to_python(py, &RoundTrips::new(values_ns, method))
    })
}

/// The limiting factor of a value of `samples.limit`, in the words of `inspect`.
#[pyfunction]
pub fn limiting_factor(limit: &str) -> &'static str {
    dragstrip_measures::limiting_factor(limit)
}
