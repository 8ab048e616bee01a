//! A recording as Python objects.
//!
//! `{"tables": {table: {column: value}}, "sha256": text}`, where a value is a pair:
//! `("int", bytes)`: 64-bit little-endian integers, the least one standing for "no value";
//! `("text", (names, bytes))`: 32-bit little-endian indexes into the list of names;
//! `("bool", bytes)`: one byte each, 0 or 1.

use dragstrip_sim::{Column, Data, Recording};
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

fn column<'py>(py: Python<'py>, data: Data) -> PyResult<Bound<'py, PyTuple>> {
    match data {
        Data::Int(values) => {
            let bytes = integers(&values);
            ("int", PyBytes::new(py, &bytes)).into_pyobject(py)
        }
        Data::Text { names, index } => {
            let bytes: Vec<u8> = index.iter().flat_map(|value| value.to_le_bytes()).collect();
            ("text", (names, PyBytes::new(py, &bytes))).into_pyobject(py)
        }
        Data::Bool(values) => {
            let bytes: Vec<u8> = values.into_iter().map(u8::from).collect();
            ("bool", PyBytes::new(py, &bytes)).into_pyobject(py)
        }
    }
}

fn integers(values: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}
