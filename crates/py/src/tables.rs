//! A recording as Python objects.
//!
//! `{"tables": {table: {column: value}}, "sha256": text}`, where a value is a pair:
//! `("int", bytes)`: 64-bit little-endian integers, the least one standing for "no value";
//! `("text", (names, bytes))`: 32-bit little-endian indexes into the list of names;
//! `("bool", bytes)`: one byte each, 0 or 1;
//! `("float", bytes)`: 64-bit little-endian, NaN standing for "no value".

use dragstrip_recording::{Column, Data, Recording};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

pub fn to_python(py: Python<'_>, recording: Recording) -> PyResult<Bound<'_, PyDict>> {
    let sha256 = recording.sha256();
    let tables = PyDict::new(py);
    for table in recording.tables {
        let columns = PyDict::new(py);
        for Column { name, data } in table.columns {
            columns.set_item(name, column(py, data)?)?;
        }
        tables.set_item(table.name, columns)?;
    }
    let answer = PyDict::new(py);
    answer.set_item("tables", tables)?;
    answer.set_item("sha256", sha256)?;
    Ok(answer)
}

fn column(py: Python<'_>, data: Data) -> PyResult<Bound<'_, PyTuple>> {
    let kind = data.kind().name();
    let bytes = PyBytes::new_with(py, data.byte_count(), |bytes| {
        data.write_to(bytes);
        Ok(())
    })?;
    match data {
        Data::Text { names, .. } => (kind, (names, bytes)).into_pyobject(py),
        Data::Int(_) | Data::Bool(_) | Data::Float(_) => (kind, bytes).into_pyobject(py),
    }
}
