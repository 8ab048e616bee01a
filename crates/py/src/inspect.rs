//! Captures that Python reads piece by piece.

use crate::{InputError, panic, tables, to_json};
use dragstrip_capture::read::Fault;
use dragstrip_inspect::Session;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Captures that are inspected together; `InputError` is raised for one that cannot be read at all.
#[pyclass(name = "Inspection")]
pub struct PyInspection {
    session: Option<Session>,
}

#[pymethods]
impl PyInspection {
    /// Of so many files; `rows`: for a recording too; `labels`: with those of Wireshark and tcptrace.
    #[new]
    fn new(files: usize, rows: bool, labels: bool) -> PyResult<Self> {
        if !(1..=dragstrip_inspect::FILES_MAX).contains(&files) {
            return Err(PyValueError::new_err(format!("{files} files")));
        }
        let session = Session::new(files, rows);
        Ok(Self { session: Some(if labels { session.labelled() } else { session }) })
    }

    /// The file to read on in; none: all are at their end.
    fn hungry(&mut self) -> PyResult<Option<usize>> {
        Ok(self.session()?.hungry())
    }

    /// Takes the next bytes of a file, the interpreter being free meanwhile; no bytes: it is at its end.
    fn feed(&mut self, py: Python<'_>, file: usize, piece: &[u8]) -> PyResult<()> {
        let session = self.session()?;
        panic::caught("a capture", || {
            let fed = py.detach(|| {
                if piece.is_empty() { session.end(file) } else { session.feed(file, piece) }
            });
            fed.map_err(refused)
        })
    }

    /// What the captures say, as JSON, and the tables of a recording (`tables.rs`) or none; nothing can be fed after it.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
        let session = self.session.take().ok_or_else(finished)?;
        let (said, recording) = panic::caught("a capture", || Ok(py.detach(|| session.finish())))?;
        let tables = recording.map(|recording| tables::to_python(py, recording)).transpose()?;
        Ok((to_json(&said)?, tables))
    }
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
