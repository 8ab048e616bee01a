//! A platform whose structures are not known: there is no connection.

use crate::{Absent, Config, Handshake, Output, State};

/// Version of the library.
///
/// # Errors
/// Always: the platform's structures are not known.
pub fn version() -> Result<&'static str, Absent> {
    Err(Absent::Platform)
}

/// One end of a connection, of which there is none here.
#[derive(Clone, Copy, Debug)]
pub enum Connection {}

#[allow(missing_docs, reason = "as in connection.rs")]
impl Connection {
    pub fn client(_: Config, _: u64, _: Box<dyn Handshake>) -> Result<Self, String> {
        Err(Absent::Platform.to_string())
    }

    pub fn server(
        _: Config,
        _: &[u8],
        _: u64,
        _: Box<dyn Handshake>,
    ) -> Result<Option<Self>, String> {
        Err(Absent::Platform.to_string())
    }

    pub fn read(&mut self, _: &[u8], _: u64) -> Result<(), String> {
        match *self {}
    }

    pub fn write(&mut self, _: &mut [u8], _: Option<i64>, _: &'static [u8], _: u64) -> Output {
        match *self {}
    }

    pub fn write_close(&mut self, _: &mut [u8], _: u64) -> usize {
        match *self {}
    }

    pub fn end_burst(&mut self, _: u64) {
        match *self {}
    }

    pub fn burst_bytes(&mut self) -> usize {
        match *self {}
    }

    pub fn on_expiry(&mut self, _: u64) -> Result<(), String> {
        match *self {}
    }

    pub fn expiry_ns(&mut self) -> u64 {
        match *self {}
    }

    pub fn open_stream(&mut self) -> Option<i64> {
        match *self {}
    }

    pub fn is_established(&self) -> bool {
        match *self {}
    }

    pub fn bytes_read(&self) -> u64 {
        match *self {}
    }

    pub fn bytes_acked(&self) -> u64 {
        match *self {}
    }

    pub fn lost_packets(&mut self, _: i64) -> u64 {
        match *self {}
    }

    pub fn state(&mut self) -> State {
        match *self {}
    }
}
