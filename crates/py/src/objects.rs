//! Python objects as JSON values, and Rust values as Python objects.
//!
//! Scope: the rules of this translation, the same for every function. Documents cross as dicts, never as text.

use crate::problem;
use dragstrip_scenario::Problem;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::Serialize;
use serde_json::{Map, Number, Value};

/// Most levels of tables and lists in a document; `serde_json` reads as many.
const LEVELS_MAX: usize = 127;

/// A JSON value from a dict, a list or a plain value of Python.
///
/// A value that JSON does not have, such as a date of TOML, NaN or infinity, becomes its text.
pub struct Document(pub Value);

impl<'py> FromPyObject<'_, 'py> for Document {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        value(&object, LEVELS_MAX).map(Self)
    }
}

fn value(object: &Bound<'_, PyAny>, levels: usize) -> PyResult<Value> {
    if levels == 0 {
        let expected = format!("at most {LEVELS_MAX} levels of tables and lists");
        return Err(problem(Problem::new(String::new(), String::new(), expected)));
    }
    if object.is_none() {
        Ok(Value::Null)
    } else if let Ok(text) = object.cast::<PyString>() {
        match text.to_str() {
            Ok(text) => Ok(Value::String(text.to_owned())),
            Err(_) => Err(problem(Problem::new(String::new(), text.repr()?, "a text in UTF-8"))),
        }
    } else if let Ok(flag) = object.cast::<PyBool>() {
        Ok(Value::Bool(flag.is_true()))
    } else if let Ok(number) = object.cast::<PyInt>() {
        integer(number)
    } else if let Ok(number) = object.cast::<PyFloat>() {
        match Number::from_f64(number.value()) {
            Some(number) => Ok(Value::Number(number)),
            None => text(object),
        }
    } else if let Ok(table) = object.cast::<PyDict>() {
        let mut entries = Map::with_capacity(table.len());
        for (key, entry) in table {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(problem(Problem::new(String::new(), key.to_string(), "a text as key")));
            };
            entries.insert(key.to_str()?.to_owned(), value(&entry, levels - 1)?);
        }
        Ok(Value::Object(entries))
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let entries = object.try_iter()?;
        entries.map(|entry| value(&entry?, levels - 1)).collect::<PyResult<_>>().map(Value::Array)
    } else {
        text(object)
    }
}

/// A whole number; beyond 64 bits the nearest float, as in JSON.
fn integer(number: &Bound<'_, PyInt>) -> PyResult<Value> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(Value::Number(number.into()));
    }
    if let Ok(number) = number.extract::<u64>() {
        return Ok(Value::Number(number.into()));
    }
    match number.extract::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => Ok(Value::Number(number)),
        None => text(number),
    }
}

fn text(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(Value::String(object.str()?.to_str()?.to_owned()))
}

/// Converts a value to dicts, lists and plain values of Python, as JSON would have it: NaN becomes None.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value);
    let value = value.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(pythonize::pythonize(py, &value)?)
}
