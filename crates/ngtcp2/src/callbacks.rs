//! Functions that the library calls: keys that change nothing, randomness of a named stream, the handshake's messages.
//!
//! The library calls them only from within a call of [`crate::Connection`], with the context that it was made with.

use crate::contract::{Handshake, Level};
use crate::layout::{
    CHALLENGE_BYTES, Callbacks, Cid, Conn, CryptoAead, ERR_CALLBACK_FAILURE, KeyCtx,
    LEVEL_APPLICATION, LEVEL_HANDSHAKE, LEVEL_INITIAL, MASK_BYTES, NONCE_BYTES, PacketHeader,
    SECRET_BYTES, TAG_BYTES, TOKEN_BYTES,
};
use crate::library::Library;
use dragstrip_units::Stream;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;

/// Room for encoded transport parameters.
const PARAMETERS_BYTES: usize = 512;

/// Every bit of a key.
static ZEROES: [u8; SECRET_BYTES] = [0; SECRET_BYTES];

/// A key: the library only asks that there is one.
const KEY: KeyCtx = KeyCtx { native: ptr::dangling_mut() };

/// State that the callbacks share with the connection. A function of the library may call one callback from within another, so
/// each looks at it through a shared reference.
pub struct Context {
    pub library: &'static Library,
    is_client: bool,
    random: RefCell<Stream>,
    /// Missing while it writes.
    handshake: RefCell<Option<Box<dyn Handshake>>>,
    /// Level with which the next message is sent.
    level: Cell<c_int>,
    has_peer_parameters: Cell<bool>,
    has_own_parameters: Cell<bool>,
    pub completed: Cell<bool>,
    pub bytes_read: Cell<u64>,
    pub bytes_acked: Cell<u64>,
}

impl Context {
    pub fn new(
        library: &'static Library,
        is_client: bool,
        random: Stream,
        handshake: Box<dyn Handshake>,
    ) -> Self {
        Self {
            library,
            is_client,
            random: RefCell::new(random),
            handshake: RefCell::new(Some(handshake)),
            level: Cell::new(LEVEL_INITIAL),
            has_peer_parameters: Cell::default(),
            has_own_parameters: Cell::default(),
            completed: Cell::default(),
            bytes_read: Cell::default(),
            bytes_acked: Cell::default(),
        }
    }

    /// Installs the keys of the initial packets.
    fn install_initial(&self, conn: *mut Conn) -> c_int {
        let iv = ZEROES.as_ptr();
        // SAFETY: the connection is the caller's; a key has no content.
        unsafe { (self.library.initial_key)(conn, &KEY, iv, &KEY, &KEY, iv, &KEY, NONCE_BYTES) }
    }

    fn install(&self, conn: *mut Conn, level: Level) -> Result<(), c_int> {
        let (iv, secret) = (ZEROES.as_ptr(), ZEROES.as_ptr());
        let Library { rx_handshake_key, tx_handshake_key, rx_key, tx_key, .. } = *self.library;
        // SAFETY: as in `install_initial`.
        unsafe {
            match level {
                Level::Handshake => {
                    self.level.set(LEVEL_HANDSHAKE);
                    checked(rx_handshake_key(conn, &KEY, iv, NONCE_BYTES, &KEY))?;
                    checked(tx_handshake_key(conn, &KEY, iv, NONCE_BYTES, &KEY))
                }
                Level::OneRtt => {
                    self.level.set(LEVEL_APPLICATION);
                    checked(rx_key(conn, secret, SECRET_BYTES, &KEY, iv, NONCE_BYTES, &KEY))?;
                    checked(tx_key(conn, secret, SECRET_BYTES, &KEY, iv, NONCE_BYTES, &KEY))
                }
            }
        }
    }

    /// Gives the library what the handshake has for it: the peer's parameters, messages, keys, its end.
    fn advance(&self, conn: *mut Conn) -> Result<(), c_int> {
        let Some(mut handshake) = self.handshake.take() else { return Err(ERR_CALLBACK_FAILURE) };
        let outcome = self.advance_with(handshake.as_mut(), conn);
        self.handshake.replace(Some(handshake));
        outcome
    }

    fn advance_with(&self, handshake: &mut dyn Handshake, conn: *mut Conn) -> Result<(), c_int> {
        self.exchange_parameters(handshake, conn)?;
        loop {
            let mut message = Vec::new();
            let keys = handshake.write(&mut message);
            if !message.is_empty() {
                let (data, len) = (message.as_ptr(), message.len());
                // SAFETY: the library copies the message.
                checked(unsafe {
                    (self.library.submit_crypto)(conn, self.level.get(), data, len)
                })?;
            }
            match keys {
                Some(level) => self.install(conn, level)?,
                None if message.is_empty() => break,
                None => {}
            }
        }
        if handshake.is_done() && !self.completed.replace(true) {
            // SAFETY: the keys of every level are installed.
            unsafe { (self.library.completed)(conn) };
        }
        Ok(())
    }

    /// Gives the library the peer's transport parameters, and the handshake this end's: a server's depend on the client's.
    fn exchange_parameters(
        &self,
        handshake: &mut dyn Handshake,
        conn: *mut Conn,
    ) -> Result<(), c_int> {
        if let Some(parameters) = handshake.peer()
            && !self.has_peer_parameters.replace(true)
        {
            let (data, len) = (parameters.as_ptr(), parameters.len());
            // SAFETY: the library copies what it reads of the slice.
            checked(unsafe { (self.library.decode_params)(conn, data, len) })?;
        }
        if (self.is_client || self.has_peer_parameters.get())
            && !self.has_own_parameters.replace(true)
        {
            let mut own = vec![0; PARAMETERS_BYTES];
            // SAFETY: the library writes no more than the buffer's length.
            let len = unsafe { (self.library.encode_params)(conn, own.as_mut_ptr(), own.len()) };
            own.truncate(usize::try_from(len).map_err(|_| len as c_int)?);
            handshake.set_own(own);
        }
        Ok(())
    }

    fn draw(&self, bytes: &mut [u8]) {
        let mut random = self.random.borrow_mut();
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
        }
    }
}

fn checked(result: c_int) -> Result<(), c_int> {
    if result == 0 { Ok(()) } else { Err(result) }
}

fn answer(result: Result<(), c_int>) -> c_int {
    // The library takes one error of a callback, and its own fatal ones.
    result.map_or(ERR_CALLBACK_FAILURE, |()| 0)
}

/// The callbacks of every connection.
pub fn callbacks() -> Callbacks {
    Callbacks {
        client_initial: Some(client_initial),
        recv_client_initial: Some(recv_client_initial),
        recv_crypto_data: Some(recv_crypto_data),
        handshake_completed: None,
        recv_version_negotiation: None,
        encrypt: Some(encrypt),
        decrypt: Some(decrypt),
        hp_mask: Some(hp_mask),
        recv_stream_data: Some(recv_stream_data),
        acked_stream_data_offset: Some(acked_stream_data_offset),
        stream_open: None,
        stream_close: None,
        recv_stateless_reset: None,
        recv_retry: Some(recv_retry),
        extend_max_local_streams_bidi: None,
        extend_max_local_streams_uni: None,
        rand: Some(rand),
        get_new_connection_id: Some(get_new_connection_id),
        remove_connection_id: None,
        update_key: Some(update_key),
        path_validation: None,
        select_preferred_addr: None,
        stream_reset: None,
        extend_max_remote_streams_bidi: None,
        extend_max_remote_streams_uni: None,
        extend_max_stream_data: None,
        dcid_status: None,
        handshake_confirmed: None,
        recv_new_token: None,
        delete_crypto_aead_ctx: Some(delete_key),
        delete_crypto_cipher_ctx: Some(delete_key),
        recv_datagram: None,
        ack_datagram: None,
        lost_datagram: None,
        get_path_challenge_data: Some(get_path_challenge_data),
        stream_stop_sending: None,
        version_negotiation: Some(version_negotiation),
        recv_rx_key: None,
        recv_tx_key: None,
        early_data_rejected: None,
    }
}

/// The context behind the pointer that a connection was made with.
///
/// # Safety
/// The pointer is a connection's, which outlives the call.
unsafe fn context<'a>(user_data: *mut c_void) -> &'a Context {
    // SAFETY: the caller's promise.
    unsafe { &*user_data.cast::<Context>() }
}

unsafe extern "C" fn client_initial(conn: *mut Conn, user_data: *mut c_void) -> c_int {
    let context = unsafe { context(user_data) };
    answer(checked(context.install_initial(conn)).and_then(|()| context.advance(conn)))
}

unsafe extern "C" fn recv_client_initial(
    conn: *mut Conn,
    _: *const Cid,
    user_data: *mut c_void,
) -> c_int {
    let context = unsafe { context(user_data) };
    answer(checked(context.install_initial(conn)))
}

unsafe extern "C" fn recv_crypto_data(
    conn: *mut Conn,
    _: c_int,
    _: u64,
    data: *const u8,
    len: usize,
    user_data: *mut c_void,
) -> c_int {
    let (context, data) = unsafe { (context(user_data), std::slice::from_raw_parts(data, len)) };
    if let Some(handshake) = context.handshake.borrow_mut().as_mut() {
        handshake.read(data);
    }
    answer(context.advance(conn))
}

unsafe extern "C" fn encrypt(
    dest: *mut u8,
    _: *const CryptoAead,
    _: *const KeyCtx,
    text: *const u8,
    text_len: usize,
    _: *const u8,
    _: usize,
    _: *const u8,
    _: usize,
) -> c_int {
    // SAFETY: the library's buffer has room for text and tag; the text may be in it.
    unsafe {
        ptr::copy(text, dest, text_len);
        ptr::write_bytes(dest.add(text_len), 0, TAG_BYTES);
    }
    0
}

unsafe extern "C" fn decrypt(
    dest: *mut u8,
    _: *const CryptoAead,
    _: *const KeyCtx,
    text: *const u8,
    text_len: usize,
    _: *const u8,
    _: usize,
    _: *const u8,
    _: usize,
) -> c_int {
    let Some(len) = text_len.checked_sub(TAG_BYTES) else { return ERR_CALLBACK_FAILURE };
    // SAFETY: the library's buffer has room for the text without its tag.
    unsafe { ptr::copy(text, dest, len) };
    0
}

/// No protection: the mask changes no bit.
unsafe extern "C" fn hp_mask(
    dest: *mut u8,
    _: *const *mut c_void,
    _: *const KeyCtx,
    _: *const u8,
) -> c_int {
    // SAFETY: the library's buffer has the length of a mask.
    unsafe { ptr::write_bytes(dest, 0, MASK_BYTES) };
    0
}

unsafe extern "C" fn recv_stream_data(
    conn: *mut Conn,
    _: u32,
    stream: i64,
    _: u64,
    _: *const u8,
    len: usize,
    user_data: *mut c_void,
    _: *mut c_void,
) -> c_int {
    let context = unsafe { context(user_data) };
    context.bytes_read.set(context.bytes_read.get() + len as u64);
    // SAFETY: the library permits it in this callback.
    answer(checked(unsafe { (context.library.extend_stream)(conn, stream, len as u64) }))
}

unsafe extern "C" fn acked_stream_data_offset(
    _: *mut Conn,
    _: i64,
    _: u64,
    len: u64,
    user_data: *mut c_void,
    _: *mut c_void,
) -> c_int {
    let bytes = &unsafe { context(user_data) }.bytes_acked;
    bytes.set(bytes.get() + len);
    0
}

/// A server sends no Retry here.
unsafe extern "C" fn recv_retry(_: *mut Conn, _: *const PacketHeader, _: *mut c_void) -> c_int {
    ERR_CALLBACK_FAILURE
}

unsafe extern "C" fn rand(dest: *mut u8, len: usize, rand_ctx: *const *mut c_void) {
    // SAFETY: `rand_ctx` is the settings' copy of the context's pointer.
    let (context, bytes) =
        unsafe { (context(*rand_ctx), std::slice::from_raw_parts_mut(dest, len)) };
    context.draw(bytes);
}

unsafe extern "C" fn get_new_connection_id(
    _: *mut Conn,
    cid: *mut Cid,
    token: *mut u8,
    len: usize,
    user_data: *mut c_void,
) -> c_int {
    let (context, cid) = unsafe { (context(user_data), &mut *cid) };
    let Some(data) = cid.data.get_mut(..len) else { return ERR_CALLBACK_FAILURE };
    context.draw(data);
    cid.len = len;
    // SAFETY: the library's buffer has the length of a token.
    context.draw(unsafe { std::slice::from_raw_parts_mut(token, TOKEN_BYTES) });
    0
}

/// The next keys are as the last.
unsafe extern "C" fn update_key(
    _: *mut Conn,
    rx_secret: *mut u8,
    tx_secret: *mut u8,
    rx_key: *mut KeyCtx,
    rx_iv: *mut u8,
    tx_key: *mut KeyCtx,
    tx_iv: *mut u8,
    _: *const u8,
    _: *const u8,
    secret_len: usize,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the library's buffers have the lengths of the keys that were installed.
    unsafe {
        ptr::write_bytes(rx_secret, 0, secret_len);
        ptr::write_bytes(tx_secret, 0, secret_len);
        ptr::write_bytes(rx_iv, 0, NONCE_BYTES);
        ptr::write_bytes(tx_iv, 0, NONCE_BYTES);
        rx_key.write(KEY);
        tx_key.write(KEY);
    }
    0
}

/// A key has nothing to free.
unsafe extern "C" fn delete_key(_: *mut Conn, _: *mut KeyCtx, _: *mut c_void) {}

unsafe extern "C" fn get_path_challenge_data(
    _: *mut Conn,
    data: *mut u8,
    user_data: *mut c_void,
) -> c_int {
    // SAFETY: the library's buffer has the length of a challenge.
    let bytes = unsafe { std::slice::from_raw_parts_mut(data, CHALLENGE_BYTES) };
    unsafe { context(user_data) }.draw(bytes);
    0
}

/// Both ends know the first version alone.
unsafe extern "C" fn version_negotiation(
    _: *mut Conn,
    _: u32,
    _: *const Cid,
    _: *mut c_void,
) -> c_int {
    ERR_CALLBACK_FAILURE
}
