//! The application's writes and the send buffer.
//!
//! A bulk application writes whenever the socket takes it. `sendmsg` fills buffers of up to 64 KiB (45
//! full segments, or half the largest window the peer has offered; one segment each without GSO) and looks at the memory in use only
//! before it begins the next one; when that has reached `sndbuf` the writer sleeps, the last buffer is
//! pushed (PSH on its last segment), and it is woken when a third of `sndbuf` is free
//! (`sk_stream_write_space`). A buffer that is full and first in line is sent from at once, and what
//! has left it is room again. Where `tcp_notsent_lowat` is set, it sleeps as well while so much is unsent, and is woken at
//! half of it (`tcp_stream_memory_free`). `sndbuf` follows the window, but only when the window could not be filled
//! (`tcp_sendmsg_locked`, `tcp_check_space`, `tcp_sndbuf_expand`).

use super::Core;
use crate::host::HostSettings;
use crate::profile::SendBuffer;
use std::collections::VecDeque;
use std::sync::Arc;

/// The same where every segment is an skb of its own (2.6.27 on 32 bits, no offload): headers 160, an sk_buff of 184; not
/// verified, as in the receiver's window.
const SEGMENT_OVERHEAD: u64 = 160 + 184;

/// Room that a writer waits for where payload alone counts, bytes (FreeBSD's `sb_lowat`).
const LOW_WATER: u64 = 2_048;

/// Amount that the application will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// As much as the socket takes, for ever.
    Endless,
    /// This many bytes in all since the start of the connection, and then nothing until more is asked for.
    Until(u64),
}

/// A socket buffer not yet wholly sent; without bursts, where each holds one segment, all up to one that is pushed.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u64,
    end: u64,
    pushed: bool,
}

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(in crate::sender) struct Buffer {
    supply: Supply,
    /// Bytes written to the socket so far (`write_seq`).
    pub written: u64,
    /// Send buffer limit in bytes of memory.
    sndbuf: u64,
    host: Arc<HostSettings>,
    /// The application waits for room.
    pub blocked: bool,
    /// Socket buffers of more than one segment.
    pub bursts: bool,
    style: SendBuffer,
    per_segment: u32,
    mss: u64,
    /// 2^64 / `mss`, rounded up: segments are counted for every one that is sent.
    per_mss: u64,
    chunks: VecDeque<Chunk>,
    /// Start of the application's current write.
    write_start: u64,
    /// Largest window the peer ever offered (`max_window`).
    pub max_window: u64,
    /// End of what was last pushed (`pushed_seq`).
    pushed: u64,
    /// Bytes of a full socket buffer, were it not for the peer's window.
    chunk_bytes: u64,
    /// Bytes of one write of the application.
    write_bytes: u64,
    factor: u32,
}

/// Result of one step of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Wrote {
    /// Nothing: the application has no more, or waits for room.
    Nothing,
    /// A write of the application ended.
    Write,
    /// A buffer is full.
    Buffer,
}

impl Buffer {
    pub fn new(settings: &Arc<HostSettings>, factor: u32) -> Self {
        let mss = u64::from(settings.mss());
        let mut style = settings.profile.send_buffer;
        if style == SendBuffer::LinearSegments && settings.gso {
            style = SendBuffer::Memory;
        }
        let per_segment = match style {
            // tcp_sndbuf_expand: a segment with its headers and shared info, rounded up to a power of
            // two, and the sk_buff (256 bytes on x86-64): 4352 for an MSS of 1448.
            SendBuffer::Memory | SendBuffer::LinearSegments => {
                (mss + 320 + 320).next_power_of_two().max(1024) + 256
            }
            // tcp_new_space: the MSS without regard to options.
            SendBuffer::Segments => u64::from(settings.advmss()) + 16 + SEGMENT_OVERHEAD,
            SendBuffer::Payload | SendBuffer::Fixed => 0,
        };
        let mut buffer = Self {
            supply: Supply::Until(0),
            written: 0,
            write_start: 0,
            chunks: VecDeque::new(),
            sndbuf: settings.wmem[1],
            blocked: false,
            factor,
            per_segment: per_segment as u32,
            write_bytes: settings.write_bytes,
            chunk_bytes: 0,
            bursts: settings.gso && style == SendBuffer::Memory,
            max_window: 0,
            pushed: 0,
            mss,
            per_mss: 0,
            style,
            host: Arc::clone(settings),
        };
        buffer.set_mss(mss);
        match style {
            SendBuffer::Memory | SendBuffer::LinearSegments => {
                buffer.expand(settings.initial_cwnd, settings.initial_reordering());
            }
            // tcp_fixup_sndbuf.
            SendBuffer::Segments => buffer.raise(3 * per_segment),
            // tcp_mss: whole segments.
            SendBuffer::Payload => buffer.sndbuf = buffer.sndbuf.next_multiple_of(mss),
            SendBuffer::Fixed => {}
        }
        buffer
    }

    pub fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
        self.per_mss = u64::MAX / mss + 1;
        // sk_gso_max_size less room for headers, in whole segments; one without offload (sk_gso_max_segs).
        self.chunk_bytes = if self.bursts { (65_215 / mss).max(1) * mss } else { mss };
    }

    pub fn supply(&mut self, supply: Supply) {
        self.supply = supply;
    }

    /// A write of `bytes` from now on; one that has begun ends here.
    pub fn write_by(&mut self, bytes: u64) {
        self.write_bytes = bytes.max(1);
        self.write_start = self.written;
    }

    pub fn is_finished(&self, snd_una: u64) -> bool {
        match self.supply {
            Supply::Endless => false,
            Supply::Until(total) => snd_una >= total,
        }
    }

    /// Bytes that the application has and the socket has not taken.
    pub fn waiting(&self) -> u64 {
        match self.supply {
            Supply::Endless => u64::MAX,
            Supply::Until(total) => total.saturating_sub(self.written),
        }
    }

    /// FreeBSD's `tcp_output`: a step more for a buffer that is nearly full while the peer's window is larger
    /// than it, and `window`, what may be out, than what is unsent.
    pub fn grow_by_step(&mut self, peer_window: u64, window: u64, snd_una: u64, snd_nxt: u64) {
        let buffered_bytes = self.written - snd_una;
        if peer_window / 4 * 5 >= self.sndbuf
            && buffered_bytes >= self.sndbuf / 8 * 7
            && buffered_bytes < self.host.wmem[2]
            && window >= buffered_bytes - (snd_nxt - snd_una)
        {
            self.sndbuf =
                self.sndbuf.max((self.sndbuf + self.host.bsd.send_step).min(self.host.wmem[2]));
        }
    }

    /// `tcp_sndbuf_expand`, `tcp_new_space`.
    pub fn expand(&mut self, cwnd: u32, reordering: u32) {
        let least = match self.style {
            SendBuffer::Memory | SendBuffer::LinearSegments => 10,
            SendBuffer::Segments => 0,
            SendBuffer::Payload | SendBuffer::Fixed => return,
        };
        let segments = u64::from(cwnd.max(least).max(reordering + 1));
        self.raise(u64::from(self.factor) * segments * u64::from(self.per_segment));
    }

    fn raise(&mut self, wanted: u64) {
        self.sndbuf = self.sndbuf.max(wanted.min(self.host.wmem[2]));
    }

    /// Memory in use: payload, and an skb's overhead for every unsent buffer and every burst sent, or for every segment.
    fn memory(&self, snd_una: u64, snd_nxt: u64, bursts_out: u64) -> u64 {
        let bytes = self.written - snd_una;
        match self.style {
            SendBuffer::Memory | SendBuffer::Payload => {
                bytes + self.host.profile.skb_overhead * (self.skbs_unsent(snd_nxt) + bursts_out)
            }
            SendBuffer::LinearSegments | SendBuffer::Segments | SendBuffer::Fixed => {
                bytes + self.overhead() * bytes.div_ceil(self.mss)
            }
        }
    }

    fn overhead(&self) -> u64 {
        match self.style {
            SendBuffer::Memory | SendBuffer::Payload => self.host.profile.skb_overhead,
            SendBuffer::LinearSegments => u64::from(self.per_segment) - self.mss,
            SendBuffer::Segments | SendBuffer::Fixed => SEGMENT_OVERHEAD,
        }
    }

    /// Segments that hold so many bytes. Of less than 2^48 the product is exact: what `per_mss` is too large by is less than a
    /// byte's part.
    #[inline]
    fn segments_in(&self, bytes: u64) -> u64 {
        let most = u128::from(bytes + self.mss - 1);
        let segments = ((most * u128::from(self.per_mss)) >> 64) as u64;
        debug_assert_eq!(segments, bytes.div_ceil(self.mss));
        segments
    }

    #[inline]
    fn skbs_unsent(&self, snd_nxt: u64) -> u64 {
        if !self.bursts {
            // All are full but the last: a write goes on where the one before it ended.
            return self.segments_in(self.written - snd_nxt);
        }
        // The last buffer sent from goes only when the next one is looked at.
        let front_sent = self.chunks.front().is_some_and(|chunk| chunk.end <= snd_nxt);
        self.chunks.len() as u64 - u64::from(front_sent)
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

    /// `tcp_grow_skb`: the first unsent buffer, which ends before `until`, takes what it lacks from the next one.
    pub fn fill_head(&mut self, until: u64) -> Option<(u64, bool)> {
        let mut head = *self.chunks.front()?;
        if let Some(next) = self.chunks.get_mut(1) {
            head.end = until.min(next.end);
            next.start = head.end;
            if head.end == next.end {
                head.pushed |= next.pushed;
                self.chunks.remove(1);
            }
            self.chunks[0] = head;
        }
        Some((head.end, head.pushed))
    }

    /// `tcp_xmit_size_goal`: bytes of a buffer, at most half the peer's window.
    fn size_goal(&self) -> u64 {
        let half = (self.max_window / 2 / self.mss).max(1) * self.mss;
        self.chunk_bytes.min(half)
    }

    /// True when a writer that waits for room has enough of it (`sk_stream_is_writeable`; 2.2: `tcp_memory_free`).
    #[inline]
    fn is_writeable(&self, snd_una: u64, snd_nxt: u64, bursts_out: u64) -> bool {
        let unsent = self.written - snd_nxt;
        if self.style == SendBuffer::Memory {
            let skbs = self.skbs_unsent(snd_nxt) + bursts_out;
            return self
                .is_free(self.written - snd_una + self.host.profile.skb_overhead * skbs, unsent);
        }
        let memory = self.memory(snd_una, snd_nxt, bursts_out);
        match self.style {
            SendBuffer::Payload => true,
            SendBuffer::Fixed => memory < self.sndbuf,
            SendBuffer::Memory | SendBuffer::LinearSegments | SendBuffer::Segments => {
                self.is_free(memory, unsent)
            }
        }
    }

    /// True when a third of it is free, and little enough is unsent: `tcp_stream_memory_free` wakes a writer at half
    /// of the amount that stops it.
    #[inline]
    fn is_free(&self, memory: u64, unsent: u64) -> bool {
        self.sndbuf.saturating_sub(memory) >= memory / 2
            && 2 * unsent < u64::from(self.host.notsent_lowat)
    }

    /// True when a writer waits, and not for memory alone. Sending frees none: data that has left stays there until it
    /// is acknowledged, and in no fewer buffers.
    #[inline]
    pub fn waits_for_less_unsent(&self, snd_nxt: u64) -> bool {
        self.blocked && 2 * (self.written - snd_nxt) >= u64::from(self.host.notsent_lowat)
    }

    /// One step of `sendmsg`: copies into the last buffer, or into a new one if there is memory for it.
    fn write(&mut self, snd_una: u64, snd_nxt: u64, bursts_out: u64) -> Wrote {
        let waiting = self.waiting();
        if waiting == 0 {
            self.blocked = false;
            return Wrote::Nothing;
        }
        if self.style == SendBuffer::Payload {
            return self.write_payload(snd_una, snd_nxt, waiting);
        }
        let mut room = self.room_in_tail(snd_nxt);
        if room == 0 {
            let memory = self.memory(snd_una, snd_nxt, bursts_out);
            let full = memory >= self.sndbuf
                || self.written - snd_nxt >= u64::from(self.host.notsent_lowat);
            self.blocked = full && self.written > snd_una;
            if self.blocked {
                // The socket does not block the application: what fitted was a write, and the next
                // one begins here.
                self.write_start = self.written;
                self.push_tail();
                return Wrote::Nothing;
            }
            room = self.size_goal();
            if !self.bursts && self.written > snd_nxt {
                // Nothing is sent from buffers that are not the first: all that there is room for, at once.
                let free_segments =
                    self.sndbuf.saturating_sub(memory).div_ceil(self.mss + self.overhead());
                let until_push =
                    (self.max_window / 2 + self.pushed + 1).saturating_sub(self.written);
                let unsent = self.written - snd_nxt;
                let until_low =
                    u64::from(self.host.notsent_lowat).saturating_sub(unsent).div_ceil(self.mss);
                let segments = free_segments.min(until_push.div_ceil(self.mss)).min(until_low);
                room = self.mss * segments.max(1);
            }
            let start = self.written;
            let goes_on = |tail: &Chunk| !self.bursts && !tail.pushed && tail.end > snd_nxt;
            if !self.chunks.back().is_some_and(goes_on) {
                self.chunks.push_back(Chunk { start, end: start, pushed: false });
            }
        }
        let fresh = self.written == self.write_start;
        let write_left = self.write_bytes - (self.written - self.write_start);
        let Some(tail) = self.chunks.back_mut() else { return Wrote::Nothing };
        let bytes = room.min(write_left).min(waiting);
        if fresh {
            // A write that adds to a pushed buffer takes the push back.
            tail.pushed = false;
        }
        tail.end += bytes;
        self.written += bytes;
        if bytes == write_left || bytes == waiting {
            self.write_start = self.written;
            self.push_tail();
            return Wrote::Write;
        }
        Wrote::Buffer
    }

    /// Room in the last buffer, if it is unsent.
    fn room_in_tail(&self, snd_nxt: u64) -> u64 {
        match self.chunks.back() {
            Some(tail) if tail.end > snd_nxt => {
                let filled = tail.end - tail.start.max(snd_nxt);
                let goal = self.size_goal();
                if self.bursts {
                    goal.saturating_sub(filled)
                } else {
                    filled.next_multiple_of(goal) - filled
                }
            }
            _ => 0,
        }
    }

    /// The same where payload alone counts (`sosend`): as much as there is room for, once the low-water mark is free.
    fn write_payload(&mut self, snd_una: u64, snd_nxt: u64, waiting: u64) -> Wrote {
        let room = self.sndbuf.saturating_sub(self.written - snd_una);
        self.blocked = room < LOW_WATER;
        if self.blocked {
            return Wrote::Nothing;
        }
        let start = self.written;
        self.written += room.min(waiting);
        match self.chunks.back_mut() {
            Some(tail) if tail.end > snd_nxt => tail.end = self.written,
            _ => self.chunks.push_back(Chunk { start, end: self.written, pushed: true }),
        }
        Wrote::Write
    }

    /// True when the application calls `sendmsg` next, and is not in the middle of it.
    #[inline]
    pub fn begins_write(&self) -> bool {
        self.written == self.write_start && self.waiting() > 0
    }

    /// `tcp_mark_push`.
    pub fn push_tail(&mut self) {
        if let Some(tail) = self.chunks.back_mut() {
            tail.pushed = true;
        }
        self.pushed = self.written;
    }

    /// `forced_push`: more than half the peer's window was written since the last push.
    pub fn must_push(&self) -> bool {
        self.written > self.pushed + self.max_window / 2
    }

    /// True when the last buffer is also the first one unsent.
    pub fn tail_is_head(&mut self, snd_nxt: u64) -> bool {
        self.head(snd_nxt).is_some()
            && self.chunks.len() == 1
            && (self.bursts || self.written - snd_nxt <= self.mss)
    }
}

impl Core {
    /// One step of the application's writing.
    pub fn write(&mut self) -> Wrote {
        self.buffer.write(self.view.snd_una, self.view.snd_nxt, self.transmission.bursts_out)
    }

    /// A writer waits that has room enough.
    pub fn misses_space(&self) -> bool {
        let (view, bursts_out) = (&self.view, self.transmission.bursts_out);
        self.buffer.blocked && self.buffer.is_writeable(view.snd_una, view.snd_nxt, bursts_out)
    }

    /// A writer that was woken looks again (`tcp_poll`): bursts cut off meanwhile may have taken the room.
    #[inline]
    pub fn poll_writer(&mut self) {
        let (snd_una, snd_nxt) = (self.view.snd_una, self.view.snd_nxt);
        let bursts_out = self.transmission.bursts_out;
        self.buffer.blocked = !self.buffer.is_writeable(snd_una, snd_nxt, bursts_out);
    }
}
