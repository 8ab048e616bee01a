//! Transmission: new segments in bursts, retransmissions, each stamped and counted; and the pacer's clock.
//!
//! Kernel: `__tcp_transmit_skb`, `__tcp_retransmit_skb`, `tcp_update_skb_after_send`, `tcp_fragment` (tcp_output.c).

use super::{Core, Io, Marks, Sent, Stack};
use crate::ecn::{Agreed, Carries};
use crate::segment::{Ecn, Flags, Outbox, Segment};
use dragstrip_cc::{CongestionControl, Event, PacingStatus};
use dragstrip_units::{Duration, Instant};

/// IP's and TCP's headers with all their options.
const MOST_HEADERS: u64 = 120;

/// Segments that leave at once: one socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) struct Burst {
    pub segments: u32,
    pub bytes: u64,
    /// Its last segment is pushed.
    pub pushed: bool,
}

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(in crate::sender) struct Transmission {
    /// End of the last segment shorter than the MSS (`snd_sml`).
    small_end: u64,
    /// Data segments sent, for the pacer's grace.
    pub data_segments: u64,
    /// Bursts sent and not wholly acknowledged: each is a socket buffer with its overhead.
    pub bursts_out: u64,
    /// Time at which the pacer would have let the last burst go; it may have gone later.
    prior_departure: Instant,
    /// The receiver's window stopped the last transmission.
    pub rwnd_limited: bool,
    /// TCP small queues stopped it.
    pub small_queue_limited: bool,
}

impl Default for Transmission {
    fn default() -> Self {
        Self {
            small_end: 0,
            data_segments: 0,
            bursts_out: 0,
            prior_departure: Instant::ZERO,
            rwnd_limited: false,
            small_queue_limited: false,
        }
    }
}

impl Core {
    /// Flags of a data segment. `ends_burst`: it is the last of several that leave together.
    #[inline]
    fn flags(&self, marks: Marks, ends_burst: bool) -> Flags {
        let pushed = ends_burst && self.settings.profile.burst_end_pushed;
        Flags::ACK.with_if(Flags::PSH, pushed || marks.has(Marks::PUSHED))
    }

    /// The first unsent segment alone.
    pub fn one_segment(&mut self) -> Burst {
        let head = self.buffer.head(self.view.snd_nxt);
        let (end, pushed) = head.unwrap_or((self.buffer.written, true));
        let unsent_bytes = end - self.view.snd_nxt;
        let bytes = unsent_bytes.min(u64::from(self.view.mss));
        Burst { segments: 1, bytes, pushed: pushed && bytes == unsent_bytes }
    }

    /// Nagle with Minshall's refinement (`tcp_nagle_check`): a short segment waits only for another short one.
    pub fn waits_for_short(&self) -> bool {
        !self.settings.nodelay
            && self.view.packets_out > 0
            && self.transmission.small_end > self.view.snd_una
    }

    /// True when the pacer holds the next segment back; if so it is looked at again when it may go.
    #[inline]
    pub fn is_pacing_blocked(&mut self) -> bool {
        if self.view.pacing_status != PacingStatus::Needed || self.view.departure <= self.view.now {
            return false;
        }
        self.timer.wakeup = self.view.departure;
        true
    }

    /// Sends new segments back to back; whether the host's own queue took them.
    #[inline]
    pub fn send_burst<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        burst: Burst,
        io: &mut Io<'_, O>,
    ) -> bool {
        if burst.segments == 1 {
            return self.send_alone(stack, burst.bytes, burst.pushed, io);
        }
        self.send_together(stack, burst, io)
    }

    /// The same of one segment of `len` bytes.
    #[inline(never)]
    fn send_alone<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        len: u64,
        pushed: bool,
        io: &mut Io<'_, O>,
    ) -> bool {
        self.before_data();
        let seq = self.view.snd_nxt;
        let end = seq + len;
        if len < u64::from(self.view.mss) {
            self.transmission.small_end = end;
        }
        let marks = Marks::BURST_END.with_if(Marks::PUSHED, pushed);
        let mut segment = Sent { seq, len: len as u16, marks, ..Sent::default() };
        self.stamp(&mut segment, self.view.departure.as_micros_floor());
        self.board.push(&segment);
        let flags = self.flags(marks, false);
        if !self.transmit(stack, &segment, flags, true, 1, io)
            && self.view.packets_out > 0
            && S::UNSENT_IF_REFUSED
        {
            self.take_back(stack);
            return false;
        }
        self.view.snd_nxt = end;
        self.view.packets_out += 1;
        self.transmission.bursts_out += 1;
        self.after_data(len, 1);
        true
    }

    /// The segment sent last has been refused by the host's own queue.
    #[cold]
    fn take_back<S: Stack>(&mut self, stack: &mut S) {
        self.board.pop_back();
        self.counters.segments_sent -= 1;
        stack.on_local_queue_full(self);
    }

    /// The same of several.
    #[inline(never)]
    fn send_together<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        burst: Burst,
        io: &mut Io<'_, O>,
    ) -> bool {
        self.before_data();
        let burst_end = self.view.snd_nxt + burst.bytes;
        if burst.bytes < u64::from(burst.segments) * u64::from(self.view.mss) {
            self.transmission.small_end = burst_end;
        }
        let departure_us = self.view.departure.as_micros_floor();
        let whole = self.stays_whole(burst.segments, burst.bytes);
        let first = self.view.snd_nxt;
        let mut last_marks = Marks::default();
        for _ in 0..burst.segments {
            let len = u64::from(self.view.mss).min(burst_end - self.view.snd_nxt) as u16;
            let end = self.view.snd_nxt + u64::from(len);
            let mut segment = Sent { seq: self.view.snd_nxt, len, ..Sent::default() };
            let last_of_burst = end == burst_end;
            if last_of_burst {
                segment.marks.set(Marks::BURST_END);
            }
            if burst.pushed && last_of_burst {
                segment.marks.set(Marks::PUSHED);
            }
            let flags = self.flags(segment.marks, burst.segments > 1 && last_of_burst);
            self.stamp(&mut segment, departure_us);
            self.board.push(&segment);
            // A segment that is alone counts as sent, or nothing would ever send it again.
            last_marks = segment.marks;
            if !whole
                && !self.emit(stack, &segment, flags, true, 1, io)
                && self.view.packets_out > 0
                && S::UNSENT_IF_REFUSED
            {
                self.take_back(stack);
                return false;
            }
            self.view.snd_nxt = end;
            self.view.packets_out += 1;
        }
        if whole {
            let segment = Sent { seq: first, len: burst.bytes as u16, ..Sent::default() };
            let flags = self.flags(last_marks, true);
            self.emit(stack, &segment, flags, true, burst.segments, io);
        }
        self.transmission.bursts_out += 1;
        self.after_data(burst.bytes, u64::from(burst.segments));
        true
    }

    /// Payload of the segments from `first` to `last`.
    fn bytes(&self, first: u64, last: u64) -> u64 {
        (first..=last).map(|number| u64::from(self.board.get(number).len)).sum()
    }

    /// True when these segments leave as one packet. IP's length has 16 bits.
    fn stays_whole(&self, segments: u32, bytes: u64) -> bool {
        self.settings.whole_bursts && segments > 1 && bytes <= u64::from(u16::MAX) - MOST_HEADERS
    }

    /// Prepares an skb, once before it is sent (`__tcp_transmit_skb`).
    #[inline]
    fn before_data(&mut self) {
        if self.in_flight() == 0 {
            self.cc.cwnd_event(&self.view, &mut self.window, Event::TxStart);
        }
        self.view.last_data_sent = self.view.now;
        self.transmission.prior_departure = self.view.departure;
        self.view.departure = self.view.departure.max(self.view.now);
    }

    /// Advances the pacer's clock (`tcp_update_skb_after_send`).
    #[inline]
    fn after_data(&mut self, payload: u64, segments: u64) {
        self.transmission.data_segments += segments;
        if self.view.pacing_status == PacingStatus::None {
            return;
        }
        let rate = self.window.pacing_rate;
        // sch_fq never paced a connection's first ten segments.
        if rate == u64::MAX || rate == 0 || self.transmission.data_segments < 10 {
            return;
        }
        let span = payload * 1_000_000_000 / rate;
        let late = self.view.departure.since(self.transmission.prior_departure).as_nanos();
        self.view.departure += Duration::from_nanos(span - late.min(span / 2));
    }

    /// Puts one data segment on the wire, or `segments` of them as one packet; whether the host's own queue took it.
    #[inline(never)]
    fn emit<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        sent: &Sent,
        flags: Flags,
        new: bool,
        segments: u32,
        io: &mut Io<'_, O>,
    ) -> bool {
        self.transmit(stack, sent, flags, new, segments, io)
    }

    #[inline(always)] // the segment is then made in its place
    fn transmit<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        sent: &Sent,
        mut flags: Flags,
        new: bool,
        segments: u32,
        io: &mut Io<'_, O>,
    ) -> bool {
        let mut ecn = Ecn::NotEct;
        if !matches!(self.agreed, Agreed::None) {
            (ecn, flags) = self.ecn_of(flags, new);
        }
        let mut segment = Segment::new(sent.seq, sent.len, flags);
        io.receiver.fill_header(&mut segment, self.view.now);
        io.receiver.tell_bytes(&mut segment);
        self.counters.segments_sent += u64::from(segments);
        let has_left = if segments > 1 {
            io.out.send_whole(&segment, segments, ecn, self.view.now)
        } else {
            io.out.send(&segment, ecn, self.view.now)
        };
        let Some(leaves) = has_left else { return false };
        if leaves > self.view.now {
            let memory = u64::from(sent.len) + self.settings.profile.skb_overhead;
            stack.on_queued_locally(leaves, memory);
        }
        true
    }

    /// Codepoint and flags of a data segment where ECN was agreed on.
    #[inline(never)]
    fn ecn_of(&mut self, flags: Flags, new: bool) -> (Ecn, Flags) {
        let ecn = self.codepoint(if new { Carries::NewData } else { Carries::Retransmission });
        if !new || !self.agreed.by_flags() {
            return (ecn, flags);
        }
        let reduced = std::mem::take(&mut self.cwr_pending);
        (ecn, flags.with_if(Flags::CWR, reduced))
    }

    /// `__tcp_retransmit_skb`: sends `segments` from `number` on again, together.
    pub fn retransmit<S: Stack, O: Outbox>(
        &mut self,
        stack: &mut S,
        number: u64,
        segments: u32,
        io: &mut Io<'_, O>,
    ) {
        self.before_data();
        let departure_us = self.view.departure.as_micros_floor();
        let mut payload = 0;
        let last = number + u64::from(segments) - 1;
        let first = number;
        let whole =
            self.settings.whole_bursts && self.stays_whole(segments, self.bytes(first, last));
        let mut last_flags = Flags::default();
        for number in number..=last {
            let mut segment = self.board.get(number);
            self.stamp(&mut segment, departure_us);
            if self.board.keeps_flights() {
                // Those before it in the burst are not counted as retransmitted yet.
                segment.flight.in_flight += (number + u64::from(segments) - 1 - last) as u32;
            }
            segment.marks.set(Marks::EVER_RETRANS);
            self.board.set(number, &segment);
            self.counters.retransmits += 1;
            last_flags = self.flags(segment.marks, segments > 1 && number == last);
            if !whole {
                self.emit(stack, &segment, last_flags, false, 1, io);
            }
            payload += u64::from(segment.len);
        }
        if whole {
            // `tcp_retransmit_skb` hands the skb to the interface as it is.
            let segment =
                Sent { seq: self.board.get(first).seq, len: payload as u16, ..Sent::default() };
            self.emit(stack, &segment, last_flags, false, segments, io);
        }
        self.after_data(payload, u64::from(segments));
    }

    /// Segments from `number` on are retransmissions in flight from now on.
    pub fn mark_retransmitted(&mut self, number: u64, segments: u32) {
        for number in number..number + u64::from(segments) {
            let marks = self.board.marks_mut(number);
            if !marks.has(Marks::RETRANS) {
                marks.set(Marks::RETRANS);
                self.view.retrans_out += 1;
            }
        }
    }

    /// `tcp_fragment`: the skb that holds segment `number` ends with it from now on; the rest is one of its own.
    pub fn split_after(&mut self, number: u64) {
        let marks = self.board.marks_mut(number);
        self.transmission.bursts_out += u64::from(!marks.has(Marks::BURST_END));
        marks.set(Marks::BURST_END);
    }
}
