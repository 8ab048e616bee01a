//! Structures of the library, version 0.12.1 on 64-bit Linux (`ngtcp2/ngtcp2.h`). Sizes and some places are checked below.

use std::ffi::{c_char, c_int, c_void};

/// `ngtcp2_conn`: only ever behind a pointer.
#[repr(C)]
pub struct Conn {
    _opaque: [u8; 0],
}

/// Versions of the structures, all of them 1.
pub const STRUCTURES: c_int = 1;
pub const PROTOCOL_V1: u32 = 1;
/// Bytes of a packet's tag (RFC 9001, section 5.3).
pub const TAG_BYTES: usize = 16;
/// Bytes of a nonce, and of the vector that is one with a packet's number (RFC 9001, section 5.3).
pub const NONCE_BYTES: usize = 12;
/// Bytes of a header that its protection covers (RFC 9001, section 5.4.1).
pub const MASK_BYTES: usize = 5;
/// Bytes of a secret, and of a path's challenge (RFC 9000, section 8.2.1).
pub const SECRET_BYTES: usize = 32;
pub const CHALLENGE_BYTES: usize = 8;
/// Largest number of the wire (RFC 9000, section 16).
pub const VARINT_MAX: u64 = (1 << 62) - 1;
pub const CID_BYTES_MAX: usize = 20;
pub const TOKEN_BYTES: usize = 16;

pub const ERR_STREAM_DATA_BLOCKED: i64 = -210;
pub const ERR_STREAM_SHUT_WR: i64 = -221;
pub const ERR_DRAINING: i64 = -231;
pub const ERR_CALLBACK_FAILURE: c_int = -502;

pub const LEVEL_INITIAL: c_int = 0;
pub const LEVEL_HANDSHAKE: c_int = 1;
pub const LEVEL_APPLICATION: c_int = 2;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Cid {
    pub len: usize,
    pub data: [u8; CID_BYTES_MAX],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    pub base: *mut u8,
    pub len: usize,
}

#[repr(C)]
pub struct PacketHeader {
    pub dcid: Cid,
    pub scid: Cid,
    pub number: i64,
    pub token: Slice,
    pub number_len: usize,
    pub len: usize,
    pub version: u32,
    pub kind: u8,
    pub flags: u8,
}

#[repr(C, align(8))]
#[derive(Default)]
pub struct PacketInfo {
    pub ecn: u32,
}

/// `sockaddr_in`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub family: u16,
    /// In network order, as the address.
    pub port: [u8; 2],
    pub address: [u8; 4],
    pub zero: [u8; 8],
}

#[repr(C)]
pub struct AddressSlice {
    pub address: *const Address,
    pub len: u32,
}

#[repr(C)]
pub struct Path {
    pub local: AddressSlice,
    pub remote: AddressSlice,
    pub user_data: *mut c_void,
}

/// `sockaddr_in6`, which is not used.
#[repr(C, align(4))]
pub struct Address6([u8; 28]);

#[repr(C)]
pub struct PreferredAddress {
    pub cid: Cid,
    pub v4: Address,
    pub v6: Address6,
    pub v4_present: u8,
    pub v6_present: u8,
    pub token: [u8; TOKEN_BYTES],
}

#[repr(C)]
pub struct VersionInfo {
    pub chosen: u32,
    pub other: *mut u8,
    pub other_len: usize,
}

#[repr(C)]
pub struct TransportParams {
    pub preferred_address: PreferredAddress,
    pub original_dcid: Cid,
    pub initial_scid: Cid,
    pub retry_scid: Cid,
    pub max_stream_data_bidi_local: u64,
    pub max_stream_data_bidi_remote: u64,
    pub max_stream_data_uni: u64,
    pub max_data: u64,
    pub max_streams_bidi: u64,
    pub max_streams_uni: u64,
    pub max_idle_timeout: u64,
    pub max_udp_payload_size: u64,
    pub active_connection_id_limit: u64,
    pub ack_delay_exponent: u64,
    pub max_ack_delay: u64,
    pub max_datagram_frame_size: u64,
    pub token_present: u8,
    pub disable_active_migration: u8,
    pub retry_scid_present: u8,
    pub preferred_address_present: u8,
    pub token: [u8; TOKEN_BYTES],
    pub grease_quic_bit: u8,
    pub version_info: VersionInfo,
    pub version_info_present: u8,
}

#[repr(C)]
pub struct ConnStat {
    pub latest_rtt: u64,
    pub min_rtt: u64,
    pub smoothed_rtt: u64,
    pub rttvar: u64,
    pub initial_rtt: u64,
    pub first_rtt_sample_ts: u64,
    pub pto_count: usize,
    pub loss_detection_timer: u64,
    pub last_tx_pkt_ts: [u64; 3],
    pub loss_time: [u64; 3],
    pub cwnd: u64,
    pub ssthresh: u64,
    pub congestion_recovery_start_ts: u64,
    pub bytes_in_flight: u64,
    pub max_tx_udp_payload_size: usize,
    pub delivery_rate_sec: u64,
    pub pacing_rate: f64,
    pub send_quantum: usize,
}

#[repr(C)]
pub struct QlogSettings {
    pub odcid: Cid,
    pub write: Option<unsafe extern "C" fn()>,
}

#[repr(C)]
pub struct Settings {
    pub qlog: QlogSettings,
    pub cc_algo: c_int,
    pub initial_ts: u64,
    pub initial_rtt: u64,
    pub log_printf: Option<unsafe extern "C" fn()>,
    pub max_tx_udp_payload_size: usize,
    pub token: Slice,
    pub rand_ctx: *mut c_void,
    pub max_window: u64,
    pub max_stream_window: u64,
    pub ack_thresh: usize,
    pub no_tx_udp_payload_size_shaping: c_int,
    pub handshake_timeout: u64,
    pub preferred_versions: *mut u32,
    pub preferred_versions_len: usize,
    pub other_versions: *mut u32,
    pub other_versions_len: usize,
    pub original_version: u32,
    pub no_pmtud: c_int,
}

#[repr(C)]
pub struct CryptoAead {
    pub native: *mut c_void,
    pub max_overhead: usize,
}

#[repr(C)]
pub struct CryptoCtx {
    pub aead: CryptoAead,
    pub md: *mut c_void,
    pub hp: *mut c_void,
    pub max_encryption: u64,
    pub max_decryption_failure: u64,
}

/// `ngtcp2_crypto_aead_ctx` and `ngtcp2_crypto_cipher_ctx`, which are alike.
#[repr(C)]
pub struct KeyCtx {
    pub native: *mut c_void,
}

#[repr(C)]
pub struct CloseError {
    pub kind: c_int,
    pub code: u64,
    pub frame_type: u64,
    pub reason: *mut u8,
    pub reason_len: usize,
}

#[repr(C)]
pub struct Info {
    pub age: c_int,
    pub number: c_int,
    pub text: *const c_char,
}

/// A callback that is not set.
pub type NoCallback = Option<unsafe extern "C" fn()>;
pub type OnConn = Option<unsafe extern "C" fn(*mut Conn, *mut c_void) -> c_int>;
pub type DeleteKey = Option<unsafe extern "C" fn(*mut Conn, *mut KeyCtx, *mut c_void)>;
/// `ngtcp2_encrypt` and `ngtcp2_decrypt`.
pub type Cipher = Option<
    unsafe extern "C" fn(
        dest: *mut u8,
        aead: *const CryptoAead,
        key: *const KeyCtx,
        text: *const u8,
        text_len: usize,
        nonce: *const u8,
        nonce_len: usize,
        aad: *const u8,
        aad_len: usize,
    ) -> c_int,
>;

pub type UpdateKey = Option<
    unsafe extern "C" fn(
        conn: *mut Conn,
        rx_secret: *mut u8,
        tx_secret: *mut u8,
        rx_key: *mut KeyCtx,
        rx_iv: *mut u8,
        tx_key: *mut KeyCtx,
        tx_iv: *mut u8,
        last_rx_secret: *const u8,
        last_tx_secret: *const u8,
        secret_len: usize,
        user_data: *mut c_void,
    ) -> c_int,
>;

#[repr(C)]
pub struct Callbacks {
    pub client_initial: OnConn,
    pub recv_client_initial:
        Option<unsafe extern "C" fn(*mut Conn, *const Cid, *mut c_void) -> c_int>,
    pub recv_crypto_data:
        Option<unsafe extern "C" fn(*mut Conn, c_int, u64, *const u8, usize, *mut c_void) -> c_int>,
    pub handshake_completed: NoCallback,
    pub recv_version_negotiation: NoCallback,
    pub encrypt: Cipher,
    pub decrypt: Cipher,
    pub hp_mask: Option<
        unsafe extern "C" fn(*mut u8, *const *mut c_void, *const KeyCtx, *const u8) -> c_int,
    >,
    pub recv_stream_data: Option<
        unsafe extern "C" fn(
            *mut Conn,
            u32,
            i64,
            u64,
            *const u8,
            usize,
            *mut c_void,
            *mut c_void,
        ) -> c_int,
    >,
    pub acked_stream_data_offset:
        Option<unsafe extern "C" fn(*mut Conn, i64, u64, u64, *mut c_void, *mut c_void) -> c_int>,
    pub stream_open: NoCallback,
    pub stream_close: NoCallback,
    pub recv_stateless_reset: NoCallback,
    pub recv_retry:
        Option<unsafe extern "C" fn(*mut Conn, *const PacketHeader, *mut c_void) -> c_int>,
    pub extend_max_local_streams_bidi: NoCallback,
    pub extend_max_local_streams_uni: NoCallback,
    pub rand: Option<unsafe extern "C" fn(*mut u8, usize, *const *mut c_void)>,
    pub get_new_connection_id:
        Option<unsafe extern "C" fn(*mut Conn, *mut Cid, *mut u8, usize, *mut c_void) -> c_int>,
    pub remove_connection_id: NoCallback,
    pub update_key: UpdateKey,
    pub path_validation: NoCallback,
    pub select_preferred_addr: NoCallback,
    pub stream_reset: NoCallback,
    pub extend_max_remote_streams_bidi: NoCallback,
    pub extend_max_remote_streams_uni: NoCallback,
    pub extend_max_stream_data: NoCallback,
    pub dcid_status: NoCallback,
    pub handshake_confirmed: NoCallback,
    pub recv_new_token: NoCallback,
    pub delete_crypto_aead_ctx: DeleteKey,
    pub delete_crypto_cipher_ctx: DeleteKey,
    pub recv_datagram: NoCallback,
    pub ack_datagram: NoCallback,
    pub lost_datagram: NoCallback,
    pub get_path_challenge_data:
        Option<unsafe extern "C" fn(*mut Conn, *mut u8, *mut c_void) -> c_int>,
    pub stream_stop_sending: NoCallback,
    pub version_negotiation:
        Option<unsafe extern "C" fn(*mut Conn, u32, *const Cid, *mut c_void) -> c_int>,
    pub recv_rx_key: NoCallback,
    pub recv_tx_key: NoCallback,
    pub early_data_rejected: NoCallback,
}

/// Sizes and places as a C compiler has them.
const _: () = {
    assert!(size_of::<Cid>() == 32 && size_of::<PacketHeader>() == 112);
    assert!(size_of::<PacketInfo>() == 8 && size_of::<Path>() == 40 && size_of::<Info>() == 16);
    assert!(size_of::<PreferredAddress>() == 96 && size_of::<TransportParams>() == 344);
    assert!(std::mem::offset_of!(TransportParams, token) == 292);
    assert!(size_of::<ConnStat>() == 176 && std::mem::offset_of!(ConnStat, pacing_rate) == 160);
    assert!(size_of::<Settings>() == 184 && std::mem::offset_of!(Settings, ack_thresh) == 120);
    assert!(size_of::<Callbacks>() == 320 && size_of::<CryptoCtx>() == 48);
    assert!(size_of::<CloseError>() == 40);
};
