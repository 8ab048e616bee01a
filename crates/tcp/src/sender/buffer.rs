//! The application's writes and the send buffer.
//!
//! A bulk application writes whenever the socket takes it; the socket takes it while the memory of
//! what is queued is below `sndbuf`, and once it was full, only when it has fallen to two thirds of it
//! (`sk_stream_write_space`). `sndbuf` follows the window (`tcp_sndbuf_expand`).

use super::Sender;
use crate::profile::Settings;
use dragstrip_cc::{PacingStatus, View, Window};

/// What the application will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// As much as the socket takes, for ever.
    Endless,
    /// This many bytes in all since the start of the connection, and then nothing until told so.
    Until(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    supply: Supply,
    /// Bytes written to the socket so far (`write_seq`).
    pub written: u64,
    /// Send buffer limit in bytes of memory.
    sndbuf: u64,
    /// The application waits for room.
    pub blocked: bool,
    factor: u64,
    limit: u64,
    per_segment: u64,
}

impl Buffer {
    pub fn new(settings: &Settings, factor: u32) -> Self {
        // tcp_sndbuf_expand: a segment with its headers and shared info, rounded up to a power of
        // two, and the sk_buff (256 bytes on x86-64): 4352 for an MSS of 1448.
        let per_segment =
            (u64::from(settings.mss()) + 320 + 320).next_power_of_two().max(1024) + 256;
        let mut buffer = Self {
            supply: Supply::Until(0),
            written: 0,
            sndbuf: settings.wmem[1],
            blocked: false,
            factor: u64::from(factor),
            limit: settings.wmem[2],
            per_segment,
        };
        buffer.expand(settings.initial_cwnd, settings.reordering);
        buffer
    }

    pub fn supply(&mut self, supply: Supply) {
        self.supply = supply;
    }

    pub fn is_finished(&self, snd_una: u64) -> bool {
        match self.supply {
            Supply::Endless => false,
            Supply::Until(total) => snd_una >= total,
        }
    }

    /// Whether the application has data that the socket has not taken.
    fn wants_more(&self) -> bool {
        match self.supply {
            Supply::Endless => true,
            Supply::Until(total) => self.written < total,
        }
    }

    /// `tcp_sndbuf_expand`.
    fn expand(&mut self, cwnd: u32, reordering: u32) {
        let segments = u64::from(cwnd.max(10).max(reordering + 1));
        let wanted = self.factor * segments * self.per_segment;
        self.sndbuf = self.sndbuf.max(wanted.min(self.limit));
    }

    /// Memory of `payload` bytes queued in the socket: large buffers as `sendmsg` fills them.
    /// (A 64 KiB buffer and its head: 3 % more than the payload.)
    fn memory(payload: u64) -> u64 {
        payload + payload / 32
    }

    /// Lets the application write. Whether it got anything in.
    fn fill(&mut self, snd_una: u64) -> bool {
        if !self.wants_more() {
            self.blocked = false;
            return false;
        }
        let queued = Self::memory(self.written - snd_una);
        if self.blocked && queued * 3 > self.sndbuf * 2 {
            return false;
        }
        let room = self.sndbuf.saturating_sub(queued);
        let wanted = match self.supply {
            Supply::Endless => room,
            Supply::Until(total) => room.min(total - self.written),
        };
        self.written += wanted;
        self.blocked = self.wants_more();
        wanted > 0
    }
}

impl Sender {
    /// After room was made: grow the buffer (`tcp_new_space`) and let the application write.
    #[inline]
    pub(super) fn refill(&mut self) {
        // tcp_should_expand_sndbuf: only a window that is not full asks for more data.
        if self.buffer.blocked && self.in_flight() < self.window.cwnd {
            self.buffer.expand(self.window.cwnd, self.recovery.reordering);
        }
        self.buffer.fill(self.view.snd_una);
    }

    /// `tcp_rate_check_app_limited`: the application ran dry while the window was open.
    pub(super) fn check_app_limited(&mut self) {
        if self.buffer.written - self.view.snd_nxt < u64::from(self.view.mss)
            && self.in_flight() < self.window.cwnd
            && self.view.lost_out <= self.view.retrans_out
        {
            let mark = self.view.delivered + u64::from(self.in_flight());
            self.view.app_limited = mark.max(1);
        }
    }
}

/// `tcp_update_pacing_rate`: what a loss-based algorithm would send at, with headroom.
pub(super) fn pacing_rate(view: &View, window: &Window, settings: &Settings) -> u64 {
    let ratio = if window.cwnd < window.ssthresh / 2 {
        settings.pacing_ss_ratio
    } else {
        settings.pacing_ca_ratio
    };
    let mut rate = u64::from(view.mss) * ((1_000_000 / 100) << 3) * u64::from(ratio);
    rate *= u64::from(window.cwnd.max(view.packets_out));
    if view.srtt_us_x8 > 0 {
        rate /= u64::from(view.srtt_us_x8);
    }
    debug_assert!(view.pacing_status != PacingStatus::Needed || rate > 0);
    rate
}

impl Sender {
    #[inline]
    pub(super) fn update_pacing_rate(&mut self) {
        self.window.pacing_rate = pacing_rate(&self.view, &self.window, &self.settings);
    }
}
