//! The window offered to the sender, and the receive buffer behind it.
//!
//! Kernel: `tcp_select_initial_window`, `__tcp_select_window`, `tcp_grow_window`, `tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`,
//! `tcp_rcv_rtt_measure_ts`. Where the application reads at once, only data out of order
//! occupy the buffer.

use crate::host::HostSettings;
use crate::profile::ReceiveTuning;
use crate::segment::{Segment, Timestamps};
use dragstrip_units::Instant;
use std::mem::offset_of;
use std::sync::Arc;

#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see sockets.rs
pub(super) struct WindowOffer {
    /// Last window advertised, from `advertised_at`.
    offered: u64,
    advertised_at: u64,
    /// Largest window offered for now; grows with every full segment (`rcv_ssthresh`).
    ssthresh: u64,
    /// Largest window that the buffer's size allows.
    clamp: u64,
    /// Receive buffer, bytes of memory.
    rcvbuf: u64,
    settings: Tuning,
    /// Receiver's RTT estimate × 8, µs.
    rtt_us_x8: u64,
    /// Start of the current measurement of the reading rate, and the byte that came then.
    space_at: Instant,
    /// The byte at which the window being measured has been used up (`rcv_rtt_est`).
    measured_until: u64,
    last_echo: u32,
    scale: u32,
    space_seq: u64,
    /// Bytes read in the best round trip so far.
    space: u64,
    /// Time at which the window being measured was offered; never: none yet (`rcv_rtt_est`).
    measured_from: Instant,
    /// Measurement where the buffer grows by steps: the timestamp whose echo ends it (`rfbuf_ts`), and the bytes that
    /// have arrived since (`rfbuf_cnt`).
    step_since: Option<u32>,
    step_bytes: u64,
}

/// The settings the window depends on.
#[derive(Clone, Debug)]
struct Tuning {
    host: Arc<HostSettings>,
    /// Payload of a segment: less the timestamps once they are agreed on.
    advmss: u32,
    /// 256ths of the buffer that are window, where they are measured (`scaling_ratio`); otherwise 0.
    share: u16,
}

/// `TCP_DEFAULT_SCALING_RATIO`, in 256ths.
const HALF: u16 = 128;

/// Memory of a segment received: its headers and payload in a block of the allocator's, which are powers of two, and the
/// `sk_buff` (256 bytes on x86-64). `SKB_TRUESIZE` of what `sock_alloc_send_pskb` gives for a frame of 82 bytes of headers and room.
pub(super) fn segment_memory(len: u64) -> u64 {
    ((len + 82).next_multiple_of(64) + 320).next_power_of_two() + 256
}

impl Tuning {
    #[inline]
    fn rule(&self) -> ReceiveTuning {
        self.host.profile.receive_tuning
    }

    /// Payload of a segment, bytes.
    #[inline]
    fn advmss(&self) -> u64 {
        u64::from(self.advmss)
    }

    /// `tcp_rmem`'s maximum.
    #[inline]
    fn rmem_max(&self) -> u64 {
        self.host.rmem[2]
    }

    /// `tcp_select_initial_window`: whole segments, and no more than an unscaled field holds. Few at first in old kernels: while
    /// the offer then grows, every segment is acknowledged at once.
    fn initial(&self, full: u64, mss: u64) -> u64 {
        let whole = if full > mss { full - full % mss } else { full };
        let most = if self.host.profile.initial_offer_unscaled { 65_535 } else { u64::MAX };
        let few = u64::from(self.host.profile.initial_offer);
        whole.min(most).min(few.saturating_mul(self.advmss()))
    }

    #[inline]
    fn window_from_space(&self, space: u64) -> u64 {
        if self.share > 0 {
            (space * u64::from(self.share)) >> 8
        } else if self.host.adv_win_scale <= 0 {
            space >> -self.host.adv_win_scale
        } else {
            space - (space >> self.host.adv_win_scale)
        }
    }
}

impl Tuning {
    /// Buffer that a window takes: `tcp_space_from_win`, or so many segments with the memory of each.
    fn space_from_window(&self, window: u64) -> u64 {
        if self.share > 0 {
            (window << 8) / u64::from(self.share)
        } else {
            window / self.advmss() * self.segment_memory()
        }
    }

    /// Memory of one segment as the tuning sees it: SKB_TRUESIZE(advmss + MAX_TCP_HEADER), enlarged
    /// until its share of window holds the segment.
    fn segment_memory(&self) -> u64 {
        let overhead = match self.rule() {
            ReceiveTuning::Headroom | ReceiveTuning::Growth => 320 + 256 + 320,
            // 2.6.27 on 32 bits: headers 160, 16, an sk_buff of 184 (unverified).
            ReceiveTuning::Twice => 160 + 16 + 184,
            ReceiveTuning::Step | ReceiveTuning::Fixed => 0,
        };
        let mut memory = self.advmss() + overhead;
        while self.window_from_space(memory) < self.advmss() {
            memory += 128;
        }
        memory
    }
}

impl WindowOffer {
    /// Bytes of what every segment needs; the rest is needed once per round trip or window.
    pub const HOT_BYTES: usize = offset_of!(Self, space_seq);

    pub fn new(settings: &Arc<HostSettings>) -> Self {
        let mss = u64::from(settings.mss());
        let tuning = Tuning {
            advmss: settings.advmss(),
            share: if settings.profile.measured_share { HALF } else { 0 },
            host: Arc::clone(settings),
        };
        let rcvbuf = match tuning.rule() {
            // tcp_fixup_rcvbuf leaves alone what an application has chosen.
            _ if settings.receive_locked => settings.rmem[1],
            ReceiveTuning::Headroom | ReceiveTuning::Growth | ReceiveTuning::Twice => {
                let tuned = if settings.moderate_rcvbuf { 4 } else { 1 };
                let room = settings.profile.initial_room * tuned * tuning.segment_memory();
                settings.rmem[1].max(room.min(settings.rmem[2]))
            }
            // tcp_mss: whole segments.
            ReceiveTuning::Step => settings.rmem[1].next_multiple_of(mss),
            ReceiveTuning::Fixed => settings.rmem[1],
        };
        let full = tuning.window_from_space(rcvbuf);
        let initial = tuning.initial(full, mss);
        // tcp_connect_init, tcp_openreq_init_rwin: a chosen buffer is the most that there will be.
        let least = if settings.receive_locked { full } else { u64::MAX };
        let space = settings.rmem[2].max(settings.core_rmem_max).min(least);
        let scale = if settings.window_scaling {
            (space.max(1).ilog2().saturating_sub(15)).min(14)
        } else {
            0
        };
        Self {
            clamp: full,
            rcvbuf,
            ssthresh: initial,
            offered: initial,
            advertised_at: 0,
            scale,
            rtt_us_x8: 0,
            measured_from: Instant::NEVER,
            measured_until: 0,
            last_echo: 0,
            space_seq: 0,
            space_at: Instant::ZERO,
            space: initial,
            step_since: None,
            step_bytes: 0,
            settings: tuning,
        }
    }

    /// `reserved`: one segment, as it counts when the buffers are set up (`tcp_init_buffer_space`), which is
    /// not offered until the buffer grows.
    pub fn establish(&mut self, now: Instant, scaling: bool, timestamps: bool, reserved: u64) {
        self.space_at = now;
        if timestamps {
            // tcp_finish_connect, and TCP_SYN_RECV in tcp_rcv_state_process.
            self.settings.advmss -= 12;
        }
        if self.has_headroom() && self.clamp > 2 * reserved {
            self.clamp = (2 * reserved).max(self.clamp - reserved);
            self.ssthresh = self.ssthresh.min(self.clamp);
        }
        self.space = self.ssthresh.min(self.offered).min(10 * reserved);
        if !scaling {
            self.scale = 0;
            self.clamp = self.clamp.min(65_535);
            self.ssthresh = self.ssthresh.min(self.clamp);
        }
    }

    /// Returns the window that the handshake offers. On Linux segments count without the room for timestamps until
    /// these are agreed on.
    pub fn initial(&mut self, stamped: bool) -> u32 {
        if self.has_headroom() || self.settings.rule() == ReceiveTuning::Twice {
            let mss = self.settings.advmss() - if stamped { 12 } else { 0 };
            self.offered = self.settings.initial(self.clamp, mss);
            self.ssthresh = self.offered;
        }
        // A handshake's window has no scale (tcp_transmit_skb).
        self.offered.min(65_535) as u32
    }

    pub fn scale(&self) -> u8 {
        self.scale as u8
    }

    /// The last window advertised.
    #[inline]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    pub fn rtt_us(&self) -> u64 {
        self.rtt_us_x8 >> 3
    }

    /// True when less than half of the buffer is free; then segments are not acknowledged at once
    /// (`__tcp_select_window`).
    #[inline]
    pub fn is_tight(&self, queued: u64) -> bool {
        let settings = &self.settings;
        queued > 0
            && settings.window_from_space(self.rcvbuf.saturating_sub(queued))
                < self.clamp.min(settings.window_from_space(self.rcvbuf)) / 2
    }

    /// `__tcp_select_window`: what could be offered with `queued` bytes of memory in use. `rcv_mss`: size of the sender's segments.
    #[inline]
    pub fn select(&self, queued: u64, rcv_mss: u32) -> u64 {
        let scaled = self.scale > 0
            && !matches!(self.settings.rule(), ReceiveTuning::Step | ReceiveTuning::Fixed);
        if scaled && queued == 0 {
            // All of the buffer is free.
            return self.scaled(self.settings.window_from_space(self.rcvbuf));
        }
        self.select_beside(queued, rcv_mss)
    }

    /// Returns the part of `free` that is offered, in units of the scale.
    #[inline]
    fn scaled(&self, free: u64) -> u64 {
        let unit = (1_u64 << self.scale) - 1;
        (free.min(self.ssthresh).min(self.clamp.max(self.ssthresh)) + unit) & !unit
    }

    /// The same where memory is in use, and where the window is not cut to its scale alone.
    #[inline(never)]
    fn select_beside(&self, queued: u64, rcv_mss: u32) -> u64 {
        if self.settings.rule() == ReceiveTuning::Step {
            // sbspace: data out of order are not in the buffer; and the window is cut to its scale.
            return self.rcvbuf & !((1 << self.scale) - 1);
        }
        if self.settings.rule() == ReceiveTuning::Fixed {
            return self.select_whole(queued);
        }
        let mut free = self.settings.window_from_space(self.rcvbuf.saturating_sub(queued));
        let allowed = self.settings.window_from_space(self.rcvbuf);
        let full = self.clamp.min(allowed);
        let mss = u64::from(rcv_mss).min(full);
        let unit = (1_u64 << self.scale) - 1;
        if free < full / 2 {
            free &= !unit;
            if free < allowed / 16 || free < mss {
                return 0;
            }
        }
        if self.scale > 0 {
            return self.scaled(free);
        }
        let free = free.min(self.ssthresh).min(self.clamp.max(self.ssthresh));
        self.select_unscaled(free, mss, full)
    }

    /// Without scaling: whole segments, and what was offered last as long as that is less than one away.
    fn select_unscaled(&self, free: u64, mss: u64, full: u64) -> u64 {
        if self.offered + mss <= free || self.offered > free {
            free - free % mss.max(1)
        } else if mss == full && free > self.offered + full / 2 {
            free
        } else {
            self.offered
        }
    }

    /// Returns the rest of the window that was offered last (`tcp_receive_window`).
    #[inline]
    pub fn remaining(&self, rcv_nxt: u64) -> u64 {
        (self.advertised_at + self.offered).saturating_sub(rcv_nxt)
    }

    /// True when an application that has just read makes so much room that the sender has to be told
    /// (`tcp_cleanup_rbuf`): twice what is left at least.
    #[inline]
    pub fn has_opened(&self, rcv_nxt: u64, queued: u64, rcv_mss: u32) -> bool {
        let remaining_window = self.remaining(rcv_nxt);
        if 2 * remaining_window > self.clamp {
            return false;
        }
        let window = self.select(queued, rcv_mss);
        window > 0 && window >= 2 * remaining_window
    }

    /// True when there is memory for one segment more; the buffer grows as far as it may where the queued data exceeds
    /// it (`tcp_try_rmem_schedule`, `tcp_clamp_window`).
    pub fn takes(&mut self, queued: u64) -> bool {
        if queued <= self.rcvbuf {
            return true;
        }
        self.rcvbuf = self.rcvbuf.max(queued.min(self.settings.rmem_max()));
        if queued > self.rcvbuf {
            self.ssthresh = self.clamp.min(2 * self.settings.advmss());
        }
        queued <= self.rcvbuf
    }

    /// The same in 2.2: whole segments, and what was offered last as long as that is less than one away.
    fn select_whole(&self, queued: u64) -> u64 {
        let free = self.settings.window_from_space(self.rcvbuf.saturating_sub(queued));
        let mss = u64::from(self.settings.host.mss());
        if free < self.rcvbuf / 4 && free < mss / 2 {
            0
        } else if self.offered + mss > free && self.offered <= free {
            self.offered
        } else {
            free - free % mss
        }
    }

    /// `tcp_select_window`: never takes back what was offered.
    #[inline]
    pub fn advertise(&mut self, rcv_nxt: u64, queued: u64, rcv_mss: u32) -> u32 {
        let current = self.remaining(rcv_nxt);
        let unit = (1_u64 << self.scale) - 1;
        let window = self.select(queued, rcv_mss).max((current + unit) & !unit);
        let window = window.min(65_535 << self.scale);
        self.offered = window;
        self.advertised_at = rcv_nxt;
        window as u32
    }

    /// `tcp_grow_window`: a well-filled segment allows two more; whether it did. `rcv_mss`: size of the sender's segments.
    #[inline]
    pub fn grow(&mut self, len: u64, rcv_mss: u32, queued: u64) -> bool {
        if self.settings.rule() == ReceiveTuning::Fixed {
            return false;
        }
        let space = self.settings.window_from_space(self.rcvbuf.saturating_sub(queued));
        let room = self.clamp.min(space).saturating_sub(self.ssthresh);
        if room == 0 {
            return false;
        }
        let increment = if self.has_headroom() {
            match self.increment(len, rcv_mss) {
                0 => return false,
                increment => increment,
            }
        } else {
            2 * self.settings.advmss()
        };
        self.ssthresh += room.min(increment.max(2 * len));
        true
    }

    /// By how much a segment of `len` bytes lets the offer grow: less where it takes more memory than its share of the window
    /// (`__tcp_grow_window`).
    #[inline]
    fn increment(&self, len: u64, rcv_mss: u32) -> u64 {
        let mut fits = self.settings.window_from_space(segment_memory(len));
        if fits <= len {
            return 2 * self.settings.advmss();
        }
        let mut window = self.settings.window_from_space(self.settings.rmem_max());
        while self.ssthresh <= window >> 1 {
            if fits >> 1 <= len {
                return 2 * u64::from(rcv_mss);
            }
            (fits, window) = (fits >> 1, window >> 1);
        }
        0
    }

    /// `tcp_rcv_rtt_measure`: the time in which a whole window came in is a round trip at least. Where timestamps do not tell
    /// it, the shortest such time is the estimate.
    #[inline]
    pub fn measure_window(&mut self, now: Instant, rcv_nxt: u64) {
        if !self.has_headroom() {
            return;
        }
        if rcv_nxt < self.measured_until {
            return;
        }
        if self.measured_from != Instant::NEVER {
            let sample_us_x8 = now.since(self.measured_from).as_micros_floor().max(1) << 3;
            if self.rtt_us_x8 == 0 || sample_us_x8 < self.rtt_us_x8 {
                self.rtt_us_x8 = sample_us_x8;
            }
        }
        (self.measured_from, self.measured_until) = (now, rcv_nxt + self.offered);
    }

    /// True when the buffer grows with room for slow start.
    #[inline]
    pub fn has_headroom(&self) -> bool {
        self.settings.rule().has_headroom()
    }

    /// True when data in order up to `end` ends no measurement of a window, and the offer has grown as far as it may:
    /// then neither [`Self::measure_window`] nor [`Self::grow`] does anything where no memory is in use.
    #[inline]
    pub fn is_settled(&self, end: u64) -> bool {
        end < self.measured_until
            && self.clamp.min(self.settings.window_from_space(self.rcvbuf)) <= self.ssthresh
    }

    /// True when a segment echoes a new timestamp, different from the last one.
    #[inline]
    pub fn is_new_echo(&self, segment: &Segment) -> bool {
        segment.timestamps().is_some_and(|stamps| stamps.ecr != self.last_echo)
    }

    /// The RTT that the timestamps of data tell (`tcp_rcv_rtt_measure_ts`), or FreeBSD's growth of the buffer; `rcv_nxt` was
    /// `before`.
    #[inline]
    pub fn measure_echo(&mut self, now_ms: u32, rcv_nxt: u64, segment: &Segment, before: u64) {
        if self.settings.rule() == ReceiveTuning::Step {
            if rcv_nxt > before
                && let Some(stamps) = segment.timestamps()
            {
                self.measure_step(segment.len, stamps.ecr);
            }
            return;
        }
        if let Some(Timestamps { ecr, .. }) = segment.timestamps()
            && ecr != self.last_echo
            && u64::from(segment.len) >= u64::from(self.settings.host.mss())
        {
            self.last_echo = ecr;
            let delta_ms = now_ms.saturating_sub(ecr);
            if self.settings.host.profile.least_receiver_rtt && delta_ms == 0 {
                // tcp_rcv_rtt_measure_ts since 6.12 (d59fc95be9d0, 6.16, and its stable series): nothing is known of less than a millisecond.
                return;
            }
            let delta_us = u64::from(delta_ms.max(1)) * 1_000;
            let is_least =
                self.settings.host.profile.least_receiver_rtt && delta_us << 3 < self.rtt_us_x8;
            if self.rtt_us_x8 == 0 || is_least {
                self.rtt_us_x8 = delta_us << 3;
            } else {
                self.rtt_us_x8 = self.rtt_us_x8 - (self.rtt_us_x8 >> 3) + delta_us;
            }
        }
    }

    /// `tcp_rcv_space_adjust`: once per round trip, when more was read than in any before. `beyond`: how far data out of order
    /// reach.
    #[inline]
    pub fn adjust_space(&mut self, now: Instant, copied_seq: u64, beyond: u64) {
        if matches!(self.settings.rule(), ReceiveTuning::Step) {
            return;
        }
        let rtt_ns = (self.rtt_us_x8 >> 3) * 1_000;
        if self.rtt_us_x8 > 0 && now.since(self.space_at).as_nanos() >= rtt_ns {
            self.end_round(now, copied_seq, beyond);
        }
    }

    /// A round trip has passed since the reading rate was last looked at.
    #[inline(never)]
    fn end_round(&mut self, now: Instant, copied_seq: u64, beyond: u64) {
        let copied = copied_seq - self.space_seq;
        if copied > self.space {
            match self.settings.rule() {
                ReceiveTuning::Headroom if self.settings.host.moderate_rcvbuf => {
                    self.enlarge(copied)
                }
                ReceiveTuning::Growth if self.settings.host.moderate_rcvbuf => {
                    self.expand(copied, beyond)
                }
                ReceiveTuning::Twice if self.settings.host.moderate_rcvbuf => self.double(copied),
                ReceiveTuning::Headroom
                | ReceiveTuning::Growth
                | ReceiveTuning::Twice
                | ReceiveTuning::Step
                | ReceiveTuning::Fixed => {}
            }
            self.space = copied;
        }
        self.space_seq = copied_seq;
        self.space_at = now;
    }

    /// A segment left with timestamp `stamp_ms`: a measurement begins (FreeBSD's `tcp_output`).
    #[inline]
    pub fn on_stamp(&mut self, stamp_ms: u32) {
        if self.settings.rule() == ReceiveTuning::Step {
            self.step_since.get_or_insert(stamp_ms);
        }
    }

    /// FreeBSD's receive buffer: seven eighths of it arrived while a timestamp came back.
    fn measure_step(&mut self, len: u16, echo: u32) {
        let echoed =
            self.step_since.filter(|&since| echo > since && echo - since < self.settings.host.hz);
        if echoed.is_none() {
            self.step_bytes += u64::from(len);
            return;
        }
        if self.settings.host.moderate_rcvbuf && self.step_bytes > self.rcvbuf / 8 * 7 {
            let grown =
                (self.rcvbuf + self.settings.host.bsd.receive_step).min(self.settings.rmem_max());
            self.rcvbuf = self.rcvbuf.max(grown);
        }
        self.step_since = None;
        self.step_bytes = 0;
    }

    /// The same until 3.x: twice of what was read, without room for slow start, and no more is offered than that.
    fn double(&mut self, copied: u64) {
        let window = 2 * copied;
        let memory = (window / self.settings.advmss()).max(1) * self.settings.segment_memory();
        let rcvbuf = memory.min(self.settings.rmem_max());
        if rcvbuf > self.rcvbuf {
            self.rcvbuf = rcvbuf;
            self.clamp = window;
        }
    }

    fn enlarge(&mut self, copied: u64) {
        let mut window = 2 * copied + 16 * self.settings.advmss();
        // Room for slow start: grow by twice the growth seen.
        let grow =
            (u128::from(window) * u128::from(copied - self.space) / u128::from(self.space)) as u64;
        window += 2 * grow;
        self.provide(window);
    }

    /// A buffer for so much of a window, as far as it may grow.
    fn provide(&mut self, window: u64) {
        let rcvbuf = self.settings.space_from_window(window).min(self.settings.rmem_max());
        if rcvbuf > self.rcvbuf {
            self.rcvbuf = rcvbuf;
            self.clamp = self.settings.window_from_space(rcvbuf);
        }
    }

    /// `tcp_rcvbuf_grow`: `copied` bytes were read in a round trip.
    fn expand(&mut self, copied: u64, beyond: u64) {
        let window = 2 * copied;
        let low_us_x8 = self.settings.host.rcvbuf_low_rtt.as_micros_floor() << 3;
        let slow_start = if self.rtt_us_x8 < low_us_x8 {
            window * self.rtt_us_x8 / low_us_x8
        } else {
            2 * window * (copied - self.space) / self.space
        };
        self.provide(window + slow_start + beyond);
    }

    /// The same when data came out of order, in kernels that make room for them (`tcp_data_queue_ofo`).
    #[inline]
    pub fn make_room_beyond(&mut self, beyond: u64) {
        if self.settings.rule() == ReceiveTuning::Growth && self.settings.host.moderate_rcvbuf {
            self.expand(self.space, beyond);
        }
    }

    /// The first segment longer than those before it shows how much of the buffer is payload (`tcp_measure_rcv_mss`).
    #[cold]
    pub fn measure_share(&mut self, len: u16) {
        if self.settings.share == 0 {
            return;
        }
        let len = u64::from(len);
        let share = ((len << 8) / (len + self.settings.host.profile.skb_overhead)).max(1) as u16;
        if share != std::mem::replace(&mut self.settings.share, share) {
            self.clamp = self.settings.window_from_space(self.rcvbuf);
            self.space = self.space.min(self.clamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Settings;
    use dragstrip_units::Duration;

    /// A connection of 100 ms whose first full segment has come; segments carry 1448 bytes.
    fn window(settings: &Settings, rtt_us: u64) -> WindowOffer {
        let mut window = WindowOffer::new(&settings.clone().shared());
        window.initial(true);
        window.establish(Instant::ZERO, true, true, 1_448);
        window.measure_share(1_448);
        window.rtt_us_x8 = rtt_us << 3;
        window
    }

    /// Buffer and window after twenty segments were read in the first round trip; the first measure is ten.
    fn grown(settings: &Settings, rtt_us: u64, beyond: u64) -> (u64, u64) {
        let mut window = window(settings, rtt_us);
        assert_eq!(window.space, 14_480);
        window.adjust_space(Instant::ZERO + Duration::from_micros(rtt_us), 28_960, beyond);
        (window.rcvbuf, window.clamp)
    }

    /// `tcp_measure_rcv_mss`: 1448 of 1448 + 896 bytes are 158/256; of 131072 bytes that is 80896. Until then half is window.
    #[test]
    fn the_first_full_segment_shows_the_share_of_the_window() {
        let mut later = WindowOffer::new(&Settings::linux_6_12().shared());
        assert_eq!((later.clamp, later.initial(true)), (65_536, 65_160));
        later.measure_share(1_448);
        assert_eq!((later.clamp, later.settings.share), (80_896, 158));
        let mut stock = WindowOffer::new(&Settings::linux_6().shared());
        stock.measure_share(1_448);
        assert_eq!(stock.clamp, 65_536);
    }

    /// `tcp_select_initial_window`: a field of 16 bits in the handshake, all of it after that.
    #[test]
    fn a_large_initial_buffer_is_offered_at_once() {
        let rmem = [4_096, 8_388_608, 67_108_864];
        let mut stock = WindowOffer::new(&Settings { rmem, ..Settings::linux_6() }.shared());
        assert_eq!((stock.initial(true), stock.offered()), (65_535, 65_535));
        let mut later = WindowOffer::new(&Settings { rmem, ..Settings::linux_6_12() }.shared());
        assert_eq!((later.initial(true), later.offered()), (65_535, 4_194_304 / 1_448 * 1_448));
    }

    /// `tcp_rcv_space_adjust`: 2 · 28960 + 16 · 1448 and twice as much for slow start are 243264 bytes of window; 6.1 takes 2984
    /// bytes for each of the 168 segments, 6.12 divides by its share.
    #[test]
    fn room_for_slow_start_is_a_share_of_the_buffer() {
        assert_eq!(grown(&Settings::linux_6(), 100_000, 0).0, 168 * 2_984);
        assert_eq!(grown(&Settings::linux_6_12(), 100_000, 0), (394_149, 243_263));
        assert_eq!(grown(&Settings::linux_6_12(), 100_000, 14_480), (394_149, 243_263));
    }

    /// `tcp_rcvbuf_grow`: 2 · 28960, twice that for slow start, and what data out of order need; below 1 ms only the RTT's part
    /// of it for slow start.
    #[test]
    fn linux_7_grows_by_its_own_rule() {
        let window_of = |buffer: u64| (buffer << 8) / 158;
        let stock = Settings::linux_7();
        assert_eq!(grown(&stock, 100_000, 0).0, window_of(3 * 57_920));
        assert_eq!(grown(&stock, 100_000, 14_480).0, window_of(3 * 57_920 + 14_480));
        assert_eq!(grown(&stock, 500, 0).0, window_of(57_920 + 28_960));
        let mut waiting = window(&stock, 100_000);
        waiting.make_room_beyond(200_000);
        assert_eq!(waiting.rcvbuf, window_of(2 * 14_480 + 200_000));
        let mut older = window(&Settings::linux_6_12(), 100_000);
        older.make_room_beyond(200_000);
        assert_eq!(older.rcvbuf, 131_072);
    }
}
