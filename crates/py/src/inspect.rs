//! Captures that Python reads piece by piece.

use crate::objects::to_python;
use crate::{InputError, panic, tables};
use dragstrip_capture::read::Fault;
use dragstrip_capture::write::Anonymous;
use dragstrip_inspect::{FlowSeries, Session};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Captures that are inspected together; raises `InputError` for one that cannot be read.
#[pyclass(name = "Inspection")]
pub struct PyInspection {
    session: Option<Session>,
}

#[pymethods]
impl PyInspection {
    /// Creates an inspection of `files` files. `rows`: also a recording; `labels`: also the labels of Wireshark and tcptrace;
    /// `segments`: also each segment.
    #[new]
    #[pyo3(signature = (files, rows, labels, segments=false))]
    fn new(files: usize, rows: bool, labels: bool, segments: bool) -> PyResult<Self> {
        if !(1..=dragstrip_inspect::FILES_MAX).contains(&files) {
            return Err(PyValueError::new_err(format!("{files} files")));
        }
        let mut session = Session::new(files, rows);
        if labels {
            session = session.labelled();
        }
        if segments {
            session = session.every_segment();
        }
        Ok(Self { session: Some(session) })
    }

    /// The file that needs more bytes; None when all are at their end.
    fn hungry(&mut self) -> PyResult<Option<usize>> {
        Ok(self.session()?.hungry())
    }

    /// Takes the next bytes of a file, without the interpreter's lock; no bytes end the file.
    fn feed(&mut self, py: Python<'_>, file: usize, piece: &[u8]) -> PyResult<()> {
        let session = self.session()?;
        panic::caught("a capture", || {
            let fed = py.detach(|| {
                if piece.is_empty() { session.end(file) } else { session.feed(file, piece) }
            });
            fed.map_err(refused)
        })
    }

    /// Returns the inspection as a dict, the tables of a recording (`tables.rs`) or none, and of each flow its segments in columns of 64-bit
    /// little-endian integers, on request. No bytes can follow.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Finished<'py>> {
        let session = self.session.take().ok_or_else(finished)?;
        let (result, recording, series) =
            panic::caught("a capture", || Ok(py.detach(|| session.finish())))?;
        let tables = recording.map(|recording| tables::to_python(py, recording)).transpose()?;
        let series = series.into_iter().map(|flow| segments(py, flow)).collect::<PyResult<_>>()?;
        Ok((to_python(py, &result)?, tables, series))
    }
}

/// A copy of a capture without payload and addresses; raises `InputError` where the capture cannot be read.
#[pyclass(name = "Anonymous")]
pub struct PyAnonymous {
    copy: Anonymous,
}

#[pymethods]
impl PyAnonymous {
    /// Creates a copy without bytes.
    #[new]
    fn new() -> Self {
        Self { copy: Anonymous::default() }
    }

    /// Takes the next bytes of the capture and returns those of the copy.
    fn feed<'py>(&mut self, py: Python<'py>, piece: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let copy =
            panic::caught("a capture", || py.detach(|| self.copy.feed(piece)).map_err(refused))?;
        Ok(PyBytes::new(py, &copy))
    }

    /// Ends the capture and returns how many packets it had, and how many of them are in the copy.
    fn end(&mut self) -> PyResult<(u64, u64)> {
        let counts = panic::caught("a capture", || self.copy.end().map_err(refused))?;
        Ok((counts.packets, counts.tcp))
    }
}

/// The inspection, tables, and each flow's segments.
type Finished<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyDict>>, Vec<Bound<'py, PyDict>>);

fn segments(py: Python<'_>, flow: FlowSeries) -> PyResult<Bound<'_, PyDict>> {
    let FlowSeries { flow, full, opening_ns, columns, left_out } = flow;
    let table = PyDict::new(py);
    table.set_item("flow", flow)?;
    table.set_item("full_bytes", full)?;
    table.set_item("opening_ns", opening_ns)?;
    table.set_item("left_out", left_out)?;
    for (name, values) in columns {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        table.set_item(name, PyBytes::new(py, &bytes))?;
    }
    Ok(table)
}

impl PyInspection {
    fn session(&mut self) -> PyResult<&mut Session> {
        self.session.as_mut().ok_or_else(finished)
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the inspection is finished")
}

fn refused(fault: Fault) -> PyErr {
    let place = if fault.at == 0 { String::new() } else { format!("byte {}", fault.at) };
    InputError::new_err((place, "", fault.what))
}
