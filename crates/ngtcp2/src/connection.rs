//! A connection as a safe object.

use crate::callbacks::{Context, callbacks};
use crate::contract::{Config, Handshake, ID_BYTES, Output, Role, State};
use crate::layout::{
    Address, AddressSlice, Cid, CloseError, Conn, ConnStat, CryptoAead, CryptoCtx, ERR_DRAINING,
    ERR_STREAM_DATA_BLOCKED, ERR_STREAM_SHUT_WR, PROTOCOL_V1, PacketHeader, PacketInfo, Path,
    STRUCTURES, TAG_BYTES,
};
use crate::library::{Library, library};
use crate::settings;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

/// `AF_INET` of Linux.
const AF_INET: u16 = 2;

/// Addresses of the client and the server: they only tell the two apart.
const ADDRESSES: [Address; 2] = [
    Address { family: AF_INET, port: [192, 0], address: [10, 0, 0, 1], zero: [0; 8] },
    Address { family: AF_INET, port: [1, 187], address: [10, 0, 0, 2], zero: [0; 8] },
];

/// One end of a connection. Times are nanoseconds of the caller's clock.
#[derive(Debug)]
pub struct Connection {
    library: &'static Library,
    conn: *mut Conn,
    /// Owned; the library's callbacks look at it during its calls.
    context: *mut Context,
    addresses: &'static [Address; 2],
    /// The last error, for the peer.
    error: c_int,
}

// SAFETY: the library keeps no state outside a connection; methods that call it take `&mut self`.
unsafe impl Send for Connection {}
// SAFETY: `&self` methods only read numbers of the context, which change in methods that take `&mut self`.
unsafe impl Sync for Connection {}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Local address first.
static CLIENT_ENDS: [Address; 2] = ADDRESSES;
static SERVER_ENDS: [Address; 2] = [ADDRESSES[1], ADDRESSES[0]];

fn path(ends: &[Address; 2]) -> Path {
    let len = size_of::<Address>() as u32;
    let [local, remote] = [0, 1].map(|end| AddressSlice { address: &raw const ends[end], len });
    Path { local, remote, user_data: ptr::null_mut() }
}

fn cid(random: &mut dragstrip_units::Stream) -> Cid {
    let mut cid = Cid { len: ID_BYTES, ..Default::default() };
    cid.data[..ID_BYTES].copy_from_slice(&random.next_u64().to_le_bytes());
    cid
}

impl Connection {
    /// A client.
    ///
    /// # Errors
    /// The library is absent, or refuses the settings.
    pub fn client(
        mut config: Config,
        now_ns: u64,
        handshake: Box<dyn Handshake>,
    ) -> Result<Self, String> {
        let dcid = cid(&mut config.random);
        Self::new(config, &dcid, None, now_ns, handshake)
    }

    /// A server for a client's first datagram, which is still to be read; `None` if it is no such datagram.
    ///
    /// # Errors
    /// The library is absent, or refuses the settings.
    pub fn server(
        config: Config,
        datagram: &[u8],
        now_ns: u64,
        handshake: Box<dyn Handshake>,
    ) -> Result<Option<Self>, String> {
        let library = library().map_err(|absent| absent.to_string())?;
        let mut header = MaybeUninit::<PacketHeader>::zeroed();
        // SAFETY: the header is one that the library fills if it answers 0; zeroes are a header, too.
        let (accepted, header) = unsafe {
            let accepted = (library.accept)(header.as_mut_ptr(), datagram.as_ptr(), datagram.len());
            (accepted, header.assume_init())
        };
        if accepted != 0 {
            return Ok(None);
        }
        Self::new(config, &header.scid, Some(header.dcid), now_ns, handshake).map(Some)
    }

    /// One end, to a peer whose ID is `dcid`; `original` is the ID that a client has called its server by.
    fn new(
        config: Config,
        dcid: &Cid,
        original: Option<Cid>,
        now_ns: u64,
        handshake: Box<dyn Handshake>,
    ) -> Result<Self, String> {
        let library = library().map_err(|absent| absent.to_string())?;
        let is_client = config.role == Role::Client;
        let mut random = config.random.clone();
        let scid = cid(&mut random);
        let context = Box::into_raw(Box::new(Context::new(library, is_client, random, handshake)));
        let ends = if is_client { &CLIENT_ENDS } else { &SERVER_ENDS };
        let mut connection =
            Self { library, conn: ptr::null_mut(), context, addresses: ends, error: 0 };
        let settings = settings::settings(library, &config, context.cast(), now_ns);
        let params = settings::params(library, &config, scid, original);
        let new = if is_client { library.client_new } else { library.server_new };
        // SAFETY: the library copies what it is shown, but for the context, which lives as long as the connection.
        let outcome = unsafe {
            new(
                &mut connection.conn,
                dcid,
                &scid,
                &path(ends),
                PROTOCOL_V1,
                STRUCTURES,
                &callbacks(),
                STRUCTURES,
                &settings,
                STRUCTURES,
                &params,
                ptr::null(),
                context.cast(),
            )
        };
        if outcome != 0 {
            connection.conn = ptr::null_mut();
            return Err(library.words(outcome));
        }
        connection.set_ciphers();
        Ok(connection)
    }

    /// Says how long tags are, and that keys have no limits.
    fn set_ciphers(&mut self) {
        let native = ptr::dangling_mut::<c_void>();
        let cipher = CryptoCtx {
            aead: CryptoAead { native, max_overhead: TAG_BYTES },
            md: native,
            hp: native,
            max_encryption: u64::MAX,
            max_decryption_failure: u64::MAX,
        };
        // SAFETY: the library copies the ciphers.
        unsafe {
            (self.library.set_initial_ctx)(self.conn, &cipher);
            (self.library.set_ctx)(self.conn, &cipher);
        }
    }

    /// Takes a datagram.
    ///
    /// # Errors
    /// The connection is lost, for this reason.
    pub fn read(&mut self, datagram: &[u8], now_ns: u64) -> Result<(), String> {
        let (path, info) = (path(self.addresses), PacketInfo::default());
        let (data, len) = (datagram.as_ptr(), datagram.len());
        // SAFETY: the library only looks at path, info and datagram during the call.
        let outcome = unsafe {
            (self.library.read_pkt)(self.conn, &path, STRUCTURES, &info, data, len, now_ns)
        };
        self.checked(outcome)
    }

    fn checked(&mut self, outcome: c_int) -> Result<(), String> {
        if outcome == 0 {
            return Ok(());
        }
        self.error = outcome;
        let words = self.library.words(outcome);
        Err(self.peer_reason(outcome).map_or(words.clone(), |reason| format!("{words}: {reason}")))
    }

    /// Error that the peer has closed the connection with.
    fn peer_reason(&mut self, outcome: c_int) -> Option<String> {
        if i64::from(outcome) != ERR_DRAINING {
            return None;
        }
        let mut error = self.close_error();
        // SAFETY: the connection is this object's; the reason it points to lives as long.
        let reason = unsafe {
            (self.library.close_error)(self.conn, &mut error);
            match error.reason_len {
                0 => &[],
                len => std::slice::from_raw_parts(error.reason, len),
            }
        };
        let text = String::from_utf8_lossy(reason);
        Some(format!("error {:#x} {text}", error.code).trim_end().to_owned())
    }

    fn close_error(&self) -> CloseError {
        let mut error = MaybeUninit::<CloseError>::zeroed();
        // SAFETY: the library fills the structure, of which zeroes are a value, too.
        unsafe {
            (self.library.close_error_default)(error.as_mut_ptr());
            error.assume_init()
        }
    }

    /// Writes the next datagram into `buffer`, with data of a stream if one is given. The data have to stay: the library sends
    /// from where they are.
    pub fn write(
        &mut self,
        buffer: &mut [u8],
        stream: Option<i64>,
        data: &'static [u8],
        now_ns: u64,
    ) -> Output {
        let (mut info, mut accepted) = (PacketInfo::default(), -1);
        let (dest, room) = (buffer.as_mut_ptr(), buffer.len());
        let (stream, (from, len)) = match stream {
            Some(stream) => (stream, (data.as_ptr(), data.len())),
            None => (-1, (ptr::null(), 0)),
        };
        // SAFETY: the library writes no more than the buffer's length, and the data are static.
        let outcome = unsafe {
            (self.library.write_stream)(
                self.conn,
                ptr::null_mut(),
                STRUCTURES,
                &mut info,
                dest,
                room,
                &mut accepted,
                0,
                stream,
                from,
                len,
                now_ns,
            )
        } as i64;
        match outcome {
            0 => Output::Nothing,
            len if len > 0 => {
                Output::Datagram { len: len as usize, data: accepted.max(0) as usize }
            }
            ERR_STREAM_DATA_BLOCKED | ERR_STREAM_SHUT_WR => Output::Full,
            error => match self.checked(error as c_int) {
                Ok(()) => Output::Nothing,
                Err(reason) => Output::Lost(reason),
            },
        }
    }

    /// Writes the datagram that tells the peer of the last error; its length, 0 if there is nothing to tell.
    pub fn write_close(&mut self, buffer: &mut [u8], now_ns: u64) -> usize {
        let mut error = self.close_error();
        let mut info = PacketInfo::default();
        let (dest, room) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the library writes no more than the buffer's length.
        let len = unsafe {
            (self.library.set_close_error)(&mut error, self.error, ptr::null(), 0);
            (self.library.write_close)(
                self.conn,
                ptr::null_mut(),
                STRUCTURES,
                &mut info,
                dest,
                room,
                &error,
                now_ns,
            )
        };
        usize::try_from(len).unwrap_or(0)
    }

    /// Tells the pacer that a burst has ended.
    pub fn end_burst(&mut self, now_ns: u64) {
        // SAFETY: the connection is this object's.
        unsafe { (self.library.update_tx_time)(self.conn, now_ns) };
    }

    /// Bytes that may leave at once.
    pub fn burst_bytes(&mut self) -> usize {
        // SAFETY: as above.
        unsafe { (self.library.send_quantum)(self.conn) }
    }

    /// The timer has run out.
    ///
    /// # Errors
    /// The connection is lost, for this reason.
    pub fn on_expiry(&mut self, now_ns: u64) -> Result<(), String> {
        // SAFETY: as above.
        let outcome = unsafe { (self.library.handle_expiry)(self.conn, now_ns) };
        self.checked(outcome)
    }

    /// Instant at which the timer runs out; `u64::MAX`: never.
    pub fn expiry_ns(&mut self) -> u64 {
        // SAFETY: as above.
        unsafe { (self.library.expiry)(self.conn) }
    }

    /// Opens a unidirectional stream; `None` while the peer permits no more.
    pub fn open_stream(&mut self) -> Option<i64> {
        let mut stream = -1;
        // SAFETY: as above.
        let outcome =
            unsafe { (self.library.open_uni_stream)(self.conn, &mut stream, ptr::null_mut()) };
        (outcome == 0).then_some(stream)
    }

    fn context(&self) -> &Context {
        // SAFETY: it lives as long as the connection.
        unsafe { &*self.context }
    }

    /// True when the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.context().completed.get()
    }

    /// Bytes of all streams that have arrived in order.
    pub fn bytes_read(&self) -> u64 {
        self.context().bytes_read.get()
    }

    /// Bytes of all streams that were acknowledged in order.
    pub fn bytes_acked(&self) -> u64 {
        self.context().bytes_acked.get()
    }

    /// Packets with data of a stream that were declared lost.
    pub fn lost_packets(&mut self, stream: i64) -> u64 {
        // SAFETY: the connection is this object's.
        unsafe { (self.library.stream_loss_count)(self.conn, stream) as u64 }
    }

    /// State of the sender.
    pub fn state(&mut self) -> State {
        let mut stat = MaybeUninit::<ConnStat>::zeroed();
        // SAFETY: the library fills the structure, of which zeroes are a value, too.
        let stat = unsafe {
            (self.library.conn_stat)(self.conn, STRUCTURES, stat.as_mut_ptr());
            stat.assume_init()
        };
        let ConnStat { latest_rtt, min_rtt, smoothed_rtt, pacing_rate, .. } = stat;
        let has_rtt = stat.first_rtt_sample_ts != u64::MAX;
        State {
            cwnd_bytes: stat.cwnd,
            ssthresh_bytes: stat.ssthresh,
            bytes_in_flight: stat.bytes_in_flight,
            rtts_ns: has_rtt.then_some([latest_rtt, min_rtt, smoothed_rtt]),
            // Bytes per nanosecond.
            pacing_bps: (pacing_rate * 8e9) as u64,
            recovery_ns: stat.congestion_recovery_start_ts,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: both are this object's, and the library is done with the context when the connection is gone.
        unsafe {
            if !self.conn.is_null() {
                (self.library.del)(self.conn);
            }
            drop(Box::from_raw(self.context));
        }
    }
}
