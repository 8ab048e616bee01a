//! A panic of a core crate becomes a Python error: one run fails, and the caller's process lives.
//!
//! Scope: the hook that stores the location of a panic, and the boundary that every call into the core crosses. Out of
//! scope: hiding a panic. It is our fault, and the error asks for a report.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::Value;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

create_exception!(
    _core,
    PanicError,
    PyRuntimeError,
    "A fault of the core. Its text says where, at what, and that it should be reported."
);

thread_local! {
    /// Location of this thread's last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a panic's place for the error instead of printing it.
pub fn install_hook() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        PLACE.with_borrow_mut(|location| *location = place);
    }));
}

/// Returns what `work` returns, or its panic as an error that names `subject`: a document in JSON by its name and seed, any
/// other text by itself.
pub fn caught<T>(subject: &str, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught_at(|| subject_label(subject), work)
}

/// Returns what `work` returns, or its panic as an error that names its subject.
///
/// Nothing that it was working on is used afterwards, so that a half-changed state is not seen.
pub fn caught_at<T>(
    subject: impl FnOnce() -> String,
    work: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let (message, place, subject) = (message(&*payload), PLACE.take(), subject());
        Err(PanicError::new_err(format!(
            "a fault of the core in {place}: {message} ({subject}); please report it"
        )))
    })
}

fn subject_label(subject: &str) -> String {
    const SHOWN: usize = 80;
    let document: Value = serde_json::from_str(subject).unwrap_or_default();
    match (document.get("name"), document.get("seed")) {
        (Some(name), Some(seed)) => format!("scenario {name}, seed {seed}"),
        (Some(name), None) => format!("experiment {name}"),
        (None, _) => format!("at {:?}", subject.chars().take(SHOWN).collect::<String>()),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
