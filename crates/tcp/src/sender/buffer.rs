//! The application's writes and the send buffer.
//!
//! A bulk application writes whenever the socket takes it. `sendmsg` fills buffers of up to 64 KiB (45
//! full segments) and looks at the memory in use only before it begins the next one; when that has
//! reached `sndbuf` the writer sleeps, the last buffer is pushed (PSH on its last segment), and it is woken when
//! a third of `sndbuf` is free (`sk_stream_write_space`). `sndbuf` follows the window, but only when the window could not be
//! filled (`tcp_check_space`, `tcp_sndbuf_expand`).

use super::Sender;
use crate::profile::Settings;
use std::collections::VecDeque;

/// Truesize of an skb beyond its payload: the sk_buff, its head and shared info (approximate).
pub(super) const SKB_OVERHEAD: u64 = 1_280;

/// What the application will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// As much as the socket takes, for ever.
    Endless,
    /// This many bytes in all since the start of the connection, and then nothing until told so.
    Until(u64),
}

/// A socket buffer not yet wholly sent.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u64,
    end: u64,
    pushed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    supply: Supply,
    /// Bytes written to the socket so far (`write_seq`).
    pub written: u64,
    chunks: VecDeque<Chunk>,
    /// Send buffer limit in bytes of memory.
    sndbuf: u64,
    /// The application waits for room.
    pub blocked: bool,
    factor: u64,
    limit: u64,
    per_segment: u64,
    /// Bytes of one write of the application.
    write_bytes: u64,
    /// Bytes of a full socket buffer.
    chunk_bytes: u64,
}

impl Buffer {
    pub fn new(settings: &Settings, factor: u32) -> Self {
        let mss = u64::from(settings.mss());
        // tcp_sndbuf_expand: a segment with its headers and shared info, rounded up to a power of
        // two, and the sk_buff (256 bytes on x86-64): 4352 for an MSS of 1448.
        let per_segment = (mss + 320 + 320).next_power_of_two().max(1024) + 256;
        let mut buffer = Self {
            supply: Supply::Until(0),
            written: 0,
            chunks: VecDeque::new(),
            sndbuf: settings.wmem[1],
            blocked: false,
            factor: u64::from(factor),
            limit: settings.wmem[2],
            per_segment,
            write_bytes: settings.write_bytes,
            // sk_gso_max_size less room for headers, in whole segments.
            chunk_bytes: (65_215 / mss).max(1) * mss,
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

    /// Bytes that the application has and the socket has not taken.
    fn waiting(&self) -> u64 {
        match self.supply {
            Supply::Endless => u64::MAX,
            Supply::Until(total) => total.saturating_sub(self.written),
        }
    }

    /// `tcp_sndbuf_expand`.
    fn expand(&mut self, cwnd: u32, reordering: u32) {
        let segments = u64::from(cwnd.max(10).max(reordering + 1));
        let wanted = self.factor * segments * self.per_segment;
        self.sndbuf = self.sndbuf.max(wanted.min(self.limit));
    }

    /// Memory in use: payload, and an skb's overhead for every buffer and every burst sent.
    fn memory(&self, snd_una: u64, bursts_out: u64) -> u64 {
        self.written - snd_una + SKB_OVERHEAD * (self.chunks.len() as u64 + bursts_out)
    }

    /// The end of the first unsent buffer, and whether its last segment is pushed.
    #[inline]
    pub fn head(&mut self, snd_nxt: u64) -> Option<(u64, bool)> {
        while let Some(chunk) = self.chunks.front() {
            if chunk.end > snd_nxt {
                return Some((chunk.end, chunk.pushed));
            }
            self.chunks.pop_front();
        }
        None
    }

    /// Lets the application write; whether it got anything in.
    fn fill(&mut self, snd_una: u64, snd_nxt: u64, bursts_out: u64, gso: bool) -> bool {
        if self.blocked {
            let memory = self.memory(snd_una, bursts_out);
            if self.sndbuf.saturating_sub(memory) < memory / 2 {
                return false;
            }
        }
        self.blocked = false;
        let before = self.written;
        let full = if gso { self.chunk_bytes } else { u64::MAX };
        loop {
            let waiting = self.waiting();
            if waiting == 0 {
                break;
            }
            let open = self.chunks.back().is_some_and(|tail| {
                tail.end > snd_nxt && tail.end - tail.start < self.chunk_bytes.min(full)
            });
            if !open {
                if self.memory(snd_una, bursts_out) >= self.sndbuf && self.written > snd_una {
                    self.blocked = true;
                    if let Some(tail) = self.chunks.back_mut() {
                        tail.pushed = true;
                    }
                    break;
                }
                self.chunks.push_back(Chunk {
                    start: self.written,
                    end: self.written,
                    pushed: false,
                });
            }
            self.extend_tail(waiting);
        }
        self.written > before
    }

    /// Copies into the last buffer until it is full, a write ends, or there is nothing more.
    fn extend_tail(&mut self, waiting: u64) {
        let write_left = self.write_bytes - self.written % self.write_bytes;
        let Some(tail) = self.chunks.back_mut() else { return };
        let room = self.chunk_bytes - (tail.end - tail.start);
        let bytes = room.min(write_left).min(waiting);
        tail.end += bytes;
        self.written += bytes;
        if bytes == write_left || bytes == waiting {
            // The end of a sendmsg pushes what it wrote.
            tail.pushed = true;
        }
    }
}

impl Sender {
    /// Room was made, or the application has new data: lets it write. Whether it did.
    #[inline]
    pub(super) fn refill(&mut self) -> bool {
        let burst = u64::from(self.transmission.last_burst.max(1));
        let bursts_out = u64::from(self.view.packets_out) / burst;
        let (snd_una, snd_nxt) = (self.view.snd_una, self.view.snd_nxt);
        // tcp_should_expand_sndbuf: only a window that is not full asks for more data.
        if self.buffer.blocked && self.in_flight() < self.window.cwnd {
            self.buffer.expand(self.window.cwnd, self.recovery.reordering);
        }
        self.buffer.fill(snd_una, snd_nxt, bursts_out, self.settings.gso)
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

    /// `tcp_update_pacing_rate`: what a loss-based algorithm would send at, with headroom.
    #[inline]
    pub(super) fn update_pacing_rate(&mut self) {
        let (view, window, settings) = (&self.view, &mut self.window, &self.settings);
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
        window.pacing_rate = rate;
    }
}
