//! The library's functions, found by name when they are first needed.

use crate::absent::{Absent, VERSION};
use crate::layout::{
    Callbacks, Cid, CloseError, Conn, ConnStat, CryptoCtx, Info, KeyCtx, PacketHeader, PacketInfo,
    Path, Settings, TransportParams,
};
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::LazyLock;

/// Name of the file, with the version of its interface.
const FILE: &str = "libngtcp2.so.9";

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($name:ident: $symbol:literal $kind:ty;)*) => {
        /// Functions of the library.
        pub struct Library {
            $(pub $name: $kind,)*
            pub version: String,
            /// Holds the code that the functions are.
            _file: libloading::Library,
        }

        fn functions(file: libloading::Library, version: String) -> Result<Library, Absent> {
            // SAFETY: the types are those of ngtcp2.h of the version that was checked.
            unsafe {
                Ok(Library {
                    $($name: *file.get::<$kind>($symbol).map_err(missing)?,)*
                    version,
                    _file: file,
                })
            }
        }
    };
}

type New = unsafe extern "C" fn(
    *mut *mut Conn,
    *const Cid,
    *const Cid,
    *const Path,
    u32,
    c_int,
    *const Callbacks,
    c_int,
    *const Settings,
    c_int,
    *const TransportParams,
    *const c_void,
    *mut c_void,
) -> c_int;
type HandshakeKey =
    unsafe extern "C" fn(*mut Conn, *const KeyCtx, *const u8, usize, *const KeyCtx) -> c_int;
type DataKey = unsafe extern "C" fn(
    *mut Conn,
    *const u8,
    usize,
    *const KeyCtx,
    *const u8,
    usize,
    *const KeyCtx,
) -> c_int;

functions! {
    settings_default: b"ngtcp2_settings_default_versioned\0" unsafe extern "C" fn(c_int, *mut Settings);
    params_default: b"ngtcp2_transport_params_default_versioned\0"
        unsafe extern "C" fn(c_int, *mut TransportParams);
    client_new: b"ngtcp2_conn_client_new_versioned\0" New;
    server_new: b"ngtcp2_conn_server_new_versioned\0" New;
    del: b"ngtcp2_conn_del\0" unsafe extern "C" fn(*mut Conn);
    accept: b"ngtcp2_accept\0" unsafe extern "C" fn(*mut PacketHeader, *const u8, usize) -> c_int;
    read_pkt: b"ngtcp2_conn_read_pkt_versioned\0" unsafe extern "C" fn(
        *mut Conn, *const Path, c_int, *const PacketInfo, *const u8, usize, u64,
    ) -> c_int;
    write_stream: b"ngtcp2_conn_write_stream_versioned\0" unsafe extern "C" fn(
        *mut Conn, *mut Path, c_int, *mut PacketInfo, *mut u8, usize, *mut isize, u32, i64,
        *const u8, usize, u64,
    ) -> isize;
    write_close: b"ngtcp2_conn_write_connection_close_versioned\0" unsafe extern "C" fn(
        *mut Conn, *mut Path, c_int, *mut PacketInfo, *mut u8, usize, *const CloseError, u64,
    ) -> isize;
    close_error_default: b"ngtcp2_connection_close_error_default\0" unsafe extern "C" fn(*mut CloseError);
    set_close_error: b"ngtcp2_connection_close_error_set_transport_error_liberr\0"
        unsafe extern "C" fn(*mut CloseError, c_int, *const u8, usize);
    close_error: b"ngtcp2_conn_get_connection_close_error\0"
        unsafe extern "C" fn(*mut Conn, *mut CloseError);
    update_tx_time: b"ngtcp2_conn_update_pkt_tx_time\0" unsafe extern "C" fn(*mut Conn, u64);
    send_quantum: b"ngtcp2_conn_get_send_quantum\0" unsafe extern "C" fn(*mut Conn) -> usize;
    expiry: b"ngtcp2_conn_get_expiry\0" unsafe extern "C" fn(*mut Conn) -> u64;
    handle_expiry: b"ngtcp2_conn_handle_expiry\0" unsafe extern "C" fn(*mut Conn, u64) -> c_int;
    open_uni_stream: b"ngtcp2_conn_open_uni_stream\0"
        unsafe extern "C" fn(*mut Conn, *mut i64, *mut c_void) -> c_int;
    extend_stream: b"ngtcp2_conn_extend_max_stream_offset\0"
        unsafe extern "C" fn(*mut Conn, i64, u64) -> c_int;
    conn_stat: b"ngtcp2_conn_get_conn_stat_versioned\0"
        unsafe extern "C" fn(*mut Conn, c_int, *mut ConnStat);
    stream_loss_count: b"ngtcp2_conn_get_stream_loss_count\0"
        unsafe extern "C" fn(*mut Conn, i64) -> usize;
    submit_crypto: b"ngtcp2_conn_submit_crypto_data\0"
        unsafe extern "C" fn(*mut Conn, c_int, *const u8, usize) -> c_int;
    decode_params: b"ngtcp2_conn_decode_remote_transport_params\0"
        unsafe extern "C" fn(*mut Conn, *const u8, usize) -> c_int;
    encode_params: b"ngtcp2_conn_encode_local_transport_params\0"
        unsafe extern "C" fn(*mut Conn, *mut u8, usize) -> isize;
    completed: b"ngtcp2_conn_handshake_completed\0" unsafe extern "C" fn(*mut Conn);
    set_initial_ctx: b"ngtcp2_conn_set_initial_crypto_ctx\0"
        unsafe extern "C" fn(*mut Conn, *const CryptoCtx);
    set_ctx: b"ngtcp2_conn_set_crypto_ctx\0" unsafe extern "C" fn(*mut Conn, *const CryptoCtx);
    initial_key: b"ngtcp2_conn_install_initial_key\0" unsafe extern "C" fn(
        *mut Conn, *const KeyCtx, *const u8, *const KeyCtx, *const KeyCtx, *const u8, *const KeyCtx,
        usize,
    ) -> c_int;
    rx_handshake_key: b"ngtcp2_conn_install_rx_handshake_key\0" HandshakeKey;
    tx_handshake_key: b"ngtcp2_conn_install_tx_handshake_key\0" HandshakeKey;
    rx_key: b"ngtcp2_conn_install_rx_key\0" DataKey;
    tx_key: b"ngtcp2_conn_install_tx_key\0" DataKey;
    strerror: b"ngtcp2_strerror\0" unsafe extern "C" fn(c_int) -> *const c_char;
}

fn missing(error: libloading::Error) -> Absent {
    // The loader's own words, with the file's name, are the cause.
    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Absent::Missing(reason)
}

fn load(name: &str) -> Result<Library, Absent> {
    type Version = unsafe extern "C" fn(c_int) -> *const Info;
    // SAFETY: the library has no initialisers; its interface is checked before anything else is called.
    let (file, version) = unsafe {
        let file = libloading::Library::new(name).map_err(missing)?;
        let info = file.get::<Version>(b"ngtcp2_version\0").map_err(missing)?(0);
        let version = CStr::from_ptr((*info).text).to_string_lossy().into_owned();
        (file, version)
    };
    if version == VERSION { functions(file, version) } else { Err(Absent::Version(version)) }
}

static LIBRARY: LazyLock<Result<Library, Absent>> = LazyLock::new(|| load(FILE));

/// The library.
pub fn library() -> Result<&'static Library, Absent> {
    LIBRARY.as_ref().map_err(Clone::clone)
}

/// Version of the library.
///
/// # Errors
/// The library is not installed, or is of another version.
pub fn version() -> Result<&'static str, Absent> {
    library().map(|library| library.version.as_str())
}

impl Library {
    /// An error's name in the library's own words.
    pub fn words(&self, error: c_int) -> String {
        // SAFETY: the library answers every number with a static text.
        unsafe { CStr::from_ptr((self.strerror)(error)) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_and_another_one_are_told_apart() {
        assert!(matches!(load("libngtcp2.so.0"), Err(Absent::Missing(_))));
        let Err(Absent::Missing(reason)) = load("libc.so.6") else { panic!("it is not ngtcp2") };
        assert!(reason.contains("ngtcp2_version"), "{reason}");
    }
}
