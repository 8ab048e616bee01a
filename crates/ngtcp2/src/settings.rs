//! Settings and transport parameters in the library's form.

use crate::contract::{Algorithm, Config};
use crate::layout::{Cid, STRUCTURES, Settings, TransportParams, VARINT_MAX};
use crate::library::Library;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

fn algorithm_number(algorithm: Algorithm) -> c_int {
    match algorithm {
        Algorithm::Reno => 0,
        Algorithm::Cubic => 1,
        Algorithm::Bbr => 2,
        Algorithm::Bbr2 => 3,
    }
}

/// Settings of a connection.
pub fn settings(library: &Library, config: &Config, context: *mut c_void, now_ns: u64) -> Settings {
    let mut settings = MaybeUninit::<Settings>::zeroed();
    // SAFETY: the library fills the structure, of which zeroes are a value, too.
    let mut settings = unsafe {
        (library.settings_default)(STRUCTURES, settings.as_mut_ptr());
        settings.assume_init()
    };
    settings.cc_algo = algorithm_number(config.algorithm);
    settings.initial_ts = now_ns;
    settings.rand_ctx = context;
    settings.max_tx_udp_payload_size = config.payload_bytes.into();
    settings.no_tx_udp_payload_size_shaping = 1;
    settings.no_pmtud = 1;
    if let Some(packets) = config.ack_packets {
        settings.ack_thresh = packets as usize;
    }
    settings
}

/// Transport parameters of an end that calls itself `scid`; `original` is the ID that a client has called its server by.
pub fn params(
    library: &Library,
    config: &Config,
    scid: Cid,
    original: Option<Cid>,
) -> TransportParams {
    let mut params = MaybeUninit::<TransportParams>::zeroed();
    // SAFETY: as in `settings`.
    let mut params = unsafe {
        (library.params_default)(STRUCTURES, params.as_mut_ptr());
        params.assume_init()
    };
    params.max_stream_data_uni = config.stream_window;
    params.max_data = VARINT_MAX;
    params.max_streams_uni = config.streams;
    params.max_idle_timeout = config.idle_timeout_ns;
    params.initial_scid = scid;
    if let Some(original) = original {
        params.original_dcid = original;
    }
    params
}
