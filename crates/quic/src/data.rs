//! The application's data: how much it wants sent, has written and has read.

/// Bytes that a sender may have in hand, as a multiple of a stream's window: the stacks' own default.
pub(crate) const SEND_WINDOWS: u64 = 8;

/// Bytes written at a time.
const CHUNK: usize = 16 * 1024;

/// Bytes that a sender writes: their content does not matter.
pub(crate) static ZEROES: [u8; CHUNK] = [0; CHUNK];

/// Bytes of an endpoint's application.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// Wanted in all.
    pub goal: u64,
    pub written: u64,
    pub read: u64,
    /// A stream may have room.
    pub may_write: bool,
    /// The stream whose turn it is.
    pub turn: usize,
}

impl Data {
    /// Bytes to write now.
    pub fn next_len(&self) -> usize {
        (self.goal - self.written).min(CHUNK as u64) as usize
    }

    /// Sets the goal.
    pub fn want(&mut self, total: u64) {
        self.goal = self.written.max(total);
        self.may_write = true;
    }

    /// Wants nothing beyond what is written.
    pub fn stop(&mut self) {
        self.goal = self.written;
    }
}
