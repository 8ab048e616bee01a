//! A panic of a core crate becomes a Python error: one run fails, and the caller's process lives.
//!
//! What lives here: the hook that keeps where it happened, and the boundary that every call into the simulator
//! crosses. What must not: swallowing one. It is our fault, and the error asks for a report.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

create_exception!(
    _core,
    PanicError,
    PyRuntimeError,
    "A fault of the core; `args` are the panic's message and its place in the sources."
);

thread_local! {
    /// Where this thread's last panic was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a panic's place for the error instead of printing it.
pub fn install_hook() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        PLACE.with_borrow_mut(|kept| *kept = place);
    }));
}

/// What `work` gives, or its panic as an error.
///
/// Nothing that it was working on is used afterwards, so that what it left half done is not seen.
pub fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    panic::catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| PanicError::new_err((message(&*payload), PLACE.take())))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
