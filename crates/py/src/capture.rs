//! Captures: files opened for the core to write into.

use crate::setup_error;
use dragstrip_scenario::Scenario;
use dragstrip_sim::{Capture, CaptureSettings};
use dragstrip_units::Instant;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
#[expect(
    clippy::disallowed_types,
    reason = "the edge: the core is passed something to write to"
)]
use std::fs::File;
use std::io;

/// Requested files: (host or link, path of its file), bytes kept of each frame and of each datagram of QUIC, comment on the run in
/// each file.
pub type CaptureRequest = (Vec<(String, String)>, (u32, u32), String);

/// Opens the files.
#[expect(clippy::disallowed_types, reason = "likewise")]
pub fn begin(scenario: &Scenario, request: &CaptureRequest) -> PyResult<Capture<File>> {
    let (points, (snaplen, datagram_snaplen), comment) = request;
    let open = |(point, path): &(String, String)| match File::create_new(path) {
        Ok(file) => Ok((point.clone(), file)),
        Err(error) => Err(refused(path, &error)),
    };
    let points = points.iter().map(open).collect::<PyResult<Vec<_>>>()?;
    let program = concat!("dragstrip ", env!("CARGO_PKG_VERSION"));
    let settings = CaptureSettings {
        snaplen: *snaplen,
        datagram_snaplen: *datagram_snaplen,
        program,
        comment,
    };
    Capture::new(scenario, points, &settings).map_err(setup_error)
}

/// Ends them.
#[expect(clippy::disallowed_types, reason = "likewise")]
pub fn end(capture: Capture<File>, scenario: &Scenario, request: &CaptureRequest) -> PyResult<()> {
    let end = Instant::from_nanos(scenario.duration_ns);
    capture.finish(end).map_err(|(file, error)| refused(&request.0[file].1, &error))
}

/// An `OSError` with its number and the file.
fn refused(path: &str, error: &io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string(), path.to_owned()))
}
