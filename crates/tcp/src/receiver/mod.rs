//! The receiving half: reassembly, acknowledgements, the window offered.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `accurate.rs` | counters of marks, for accurate ECN | `tcp_ecn_received_counters` |
//! | `acknowledge.rs` | when to acknowledge | `__tcp_ack_snd_check`, `tcp_send_delayed_ack` |
//! | `feedback.rs` | how marks are echoed | `tcp_ecn_check_ce` |
//! | `next.rs` | the common case: the next segment, and nothing else to do | `tcp_rcv_established` |
//! | `reassembly.rs` | what arrived out of order, SACK blocks | `tcp_data_queue_ofo`, `tcp_sack_*` |
//! | `unread.rs` | what the application has not read yet | `tcp_queue_rcv`, `tcp_recvmsg_locked` |
//! | `window.rs` | window and buffer autotuning | `__tcp_select_window`, `tcp_rcv_space_adjust` |

mod accurate;
mod acknowledge;
mod feedback;
mod next;
mod reassembly;
mod unread;
mod window;

use crate::ecn::Agreed;
use crate::host::HostSettings;
use crate::options::Options;
use crate::segment::{Ecn, Flags, SackBlock, Segment, Timestamps};
use accurate::Counters;
pub(crate) use accurate::PACKETS_BEGIN;
use acknowledge::Acknowledger;
use dragstrip_units::Instant;
use feedback::Feedback;
use reassembly::Reassembly;
use std::mem::offset_of;
use std::sync::Arc;
use unread::Unread;
use window::{WindowOffer, segment_memory};

/// `TCP_SACK_BLOCKS_EXPECTED`: with more blocks than that compressed ACKs would hide some.
const EXPECTED_BLOCKS: usize = 2;

/// Minimum interval between answers to unacceptable segments without data: `tcp_invalid_ratelimit`, 500 ms.
const REFUSALS_APART_MS: u64 = 500;

/// The receiving half of an endpoint. Unless it is told otherwise, the application reads at once whatever is in order.
#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see sockets.rs
pub(crate) struct Receiver {
    /// Next byte expected.
    rcv_nxt: u64,
    /// `rcv_nxt` at the last acknowledgement sent (`rcv_wup`).
    last_acked: u64,
    /// Timestamp to echo, ms (`ts_recent`).
    ts_recent: u32,
    feedback: Feedback,
    timestamps: bool,
    sack: bool,
    /// The next segment may be taken as `next.rs` does: the kernel is one of those that it knows, and no flag echoes marks.
    predicts: bool,
    acks: Acknowledger,
    reassembly: Reassembly,
    /// Data waiting to be read, where the application does not read at once.
    unread: Option<Box<Unread>>,
    /// Counters of accurate ECN, if it was agreed on.
    counters: Option<Box<Counters>>,
    window: WindowOffer,
    /// Time of the last answer to an unacceptable segment without data, ms; 0: never (`last_oow_ack_time`).
    refused_ms: u32,
}

/// The fields that the next segment touches fit four cache lines; the others come after.
const _: () = assert!(offset_of!(Receiver, window) + WindowOffer::HOT_BYTES <= 4 * 64);

/// Outcome of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bytes that are new to this host, in order or not.
    pub new_bytes: u64,
    /// An acknowledgement must go out now.
    pub acknowledge: bool,
}

impl Receiver {
    pub fn new(settings: &Arc<HostSettings>) -> Self {
        Self {
            rcv_nxt: 0,
            reassembly: Reassembly::default(),
            acks: Acknowledger::new(settings),
            window: WindowOffer::new(settings),
            ts_recent: 0,
            last_acked: 0,
            feedback: Feedback::default(),
            timestamps: settings.timestamps,
            sack: settings.sack,
            predicts: false,
            unread: None,
            refused_ms: 0,
            counters: None,
        }
    }

    /// Applies the result of the handshake. `reserved`: one segment as the window counts it; `mss`: one of this host's
    /// own.
    pub fn establish(
        &mut self,
        now: Instant,
        ecn: Agreed,
        options: &Options,
        reserved: u32,
        mss: u32,
    ) {
        self.acks.cap_segment_size(mss);
        self.feedback = Feedback::new(ecn);
        self.predicts = self.acks.is_estimated() && self.window.has_headroom() && !ecn.by_flags();
        self.sack = options.sack;
        self.timestamps = options.timestamps;
        self.window.establish(now, options.scaling, options.timestamps, u64::from(reserved));
    }

    /// Accurate ECN was agreed on; `seen`: how the peer's SYN or SYN-ACK came; `tells_bytes`: its part of the handshake had an
    /// option.
    pub fn count_marks(&mut self, seen: Ecn, client: bool, tells_bytes: bool) {
        let counters = Counters::new(seen, client, tells_bytes);
        self.counters =
            Some(Box::new(counters.overstating(self.acks.host.profile.overstates_pending_marks)));
    }

    /// The AccECN option of a data segment, which is complete but for that.
    #[inline]
    pub fn tell_bytes(&mut self, segment: &mut Segment) {
        if let Some(bytes) = self.counters.as_mut().and_then(|counters| counters.on_data()) {
            segment.set_ecn_bytes(bytes);
        }
    }

    /// A segment that may be looked at has come with this codepoint.
    #[inline]
    pub fn note_codepoint(&mut self, ecn: Ecn, len: u16) {
        if let Some(counters) = &mut self.counters {
            counters.on_packet(ecn, len, &mut self.acks);
        }
    }

    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Window to announce in the handshake, never scaled. `stamped`: timestamps have been agreed on.
    pub fn initial_window(&mut self, stamped: bool) -> u32 {
        self.window.initial(stamped)
    }

    /// Shift of the windows announced after the handshake, if scaling is agreed on.
    pub fn window_scale(&self) -> u8 {
        self.window.scale()
    }

    /// The handshake's last segment is owed: with a window of its own.
    pub fn owe_ack(&mut self) {
        self.acks.acknowledge_now();
    }

    /// A timestamp of the peer, from the handshake.
    pub fn note_timestamp(&mut self, ts_val: u32) {
        self.ts_recent = ts_val;
    }

    /// Returns the timestamp that a SYN-ACK echoes.
    pub fn timestamp_to_echo(&self) -> u32 {
        self.ts_recent
    }

    /// True when an acknowledgement is pending: data sent meanwhile may have carried it.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        self.acks.owes()
    }

    #[inline]
    pub fn deadline(&self) -> Instant {
        self.acks.deadline()
    }

    /// `tcp_replace_ts_recent`: the timestamp to echo is that of the last segment that
    /// began at or before what was last acknowledged (RFC 7323 §4.3), and never goes back.
    #[inline]
    pub fn take_timestamp(&mut self, segment: &Segment) {
        if let Some(Timestamps { val, .. }) = segment.timestamps()
            && segment.seq <= self.last_acked
            && val >= self.ts_recent
        {
            // FLAG_TS_PROGRESS
            if val > self.ts_recent
                && segment.len > 0
                && self.counters.as_ref().is_some_and(|counters| counters.hurries())
            {
                self.acks.acknowledge_now();
            }
            self.ts_recent = val;
        }
    }

    /// CWR counts on whatever acknowledges, data or not (`tcp_ecn_accept_cwr` in `tcp_ack`), unless it is an ACK from the past.
    #[inline]
    pub fn accept_cwr(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::CWR) {
            self.feedback.accept_cwr(segment.len > 0, &mut self.acks);
        }
    }

    /// By how many ms the segment's timestamp is older than the one to echo, where that is more than PAWS allows
    /// (`tcp_paws_check`; RFC 7323 §5.3): then it is not taken. 0: it is.
    #[inline]
    pub fn outdated_by_ms(&self, segment: &Segment) -> u32 {
        let Some(Timestamps { val, .. }) = segment.timestamps() else { return 0 };
        let age_ms = self.ts_recent.saturating_sub(val);
        if age_ms > self.acks.host.paws_window_ms { age_ms } else { 0 }
    }

    /// True when a data segment is acceptable (`tcp_validate_incoming`, `tcp_sequence`): not when it is outdated, nor
    /// when all of it lies below what was acknowledged last.
    #[inline]
    pub fn accepts(&self, segment: &Segment) -> bool {
        self.outdated_by_ms(segment) == 0
            && segment.end_seq() >= self.last_acked
            && segment.seq <= self.rcv_nxt + self.window.remaining(self.rcv_nxt)
    }

    /// The same of a segment without data. A probe of a closed window lies one below what was acknowledged, which may be the
    /// byte before the first.
    #[inline]
    pub fn is_in_window(&self, segment: &Segment) -> bool {
        segment.seq.wrapping_add(1) > self.last_acked
            && segment.seq <= self.rcv_nxt + self.window.remaining(self.rcv_nxt)
    }

    /// True when an unacceptable segment without data is answered (`tcp_oow_rate_limited`).
    pub fn answers_refused(&mut self, now: Instant) -> bool {
        let now_ms = now.as_micros_floor() / 1_000;
        let last_ms = u64::from(self.refused_ms);
        if last_ms != 0 && now_ms.saturating_sub(last_ms) < REFUSALS_APART_MS {
            return false;
        }
        self.refused_ms = u32::try_from(now_ms.max(1)).unwrap_or(u32::MAX);
        true
    }

    /// Memory in use, bytes (`sk_rmem_alloc`).
    #[inline]
    fn memory(&self) -> u64 {
        self.reassembly.memory() + self.unread.as_ref().map_or(0, |unread| unread.memory())
    }

    /// True when there is a window, and memory, for data that begin at the next byte.
    #[inline]
    fn has_room(&mut self) -> bool {
        if self.unread.is_none() {
            return true;
        }
        let memory = self.memory();
        self.window.remaining(self.rcv_nxt) > 0 && self.window.takes(memory)
    }

    /// The application stops reading; what is there and not read stays. It may be called again.
    pub fn stop_reading(&mut self) {
        let rcv_nxt = self.rcv_nxt;
        self.unread.get_or_insert_with(|| Box::new(Unread::from(rcv_nxt)));
    }

    /// The application reads at most `bytes` of what is there (`tcp_recvmsg_locked`); whether the sender must be told of it
    /// (`tcp_cleanup_rbuf`).
    pub fn read(&mut self, mut bytes: u64, now: Instant) -> bool {
        let Some(unread) = &mut self.unread else { return false };
        let mut read = false;
        while bytes > 0 {
            let copied_bytes = unread.copy(bytes);
            if copied_bytes == 0 {
                break;
            }
            bytes -= copied_bytes;
            read = true;
            let beyond = self.reassembly.reach(self.rcv_nxt);
            self.window.adjust_space(now, unread.copied(), beyond);
        }
        if !read {
            return false;
        }
        let situation = self.situation(now, 0, true);
        let sends_update = self.acks.acknowledges_read(&situation);
        if situation.tight {
            self.acks.leave_quick();
        }
        sends_update
    }

    /// From now on the application reads at once; it has read all there was.
    pub fn read_at_once(&mut self) {
        self.unread = None;
    }

    /// Returns the inputs of the decision to acknowledge; `read`: the application has just read, or reads at once.
    #[inline]
    fn situation(&self, now: Instant, srtt_us_x8: u32, read: bool) -> acknowledge::Situation {
        let memory = self.memory();
        let rcv_mss = self.acks.segment_size();
        acknowledge::Situation {
            now,
            unacked: self.rcv_nxt - self.last_acked,
            window_holds: self.window.select(memory, rcv_mss) >= self.window.offered(),
            tight: self.window.is_tight(memory),
            read,
            opened: read && self.window.has_opened(self.rcv_nxt, memory, rcv_mss),
            hole: !self.reassembly.is_empty(),
            sack: self.sack,
            rcv_nxt: self.rcv_nxt,
            rcv_rtt_us: self.window.rtt_us(),
            srtt_us_x8,
        }
    }

    /// Handles an unacceptable segment: an acknowledgement goes out at once, which reports a duplicate if it is one
    /// (`tcp_send_dupack`).
    pub fn refuse(&mut self, segment: &Segment) {
        if segment.seq < self.rcv_nxt {
            self.report_duplicate(segment.seq, segment.end_seq().min(self.rcv_nxt));
        }
        self.acks.acknowledge_now();
    }

    /// Data came twice: reported (RFC 2883 §4), and for a while every segment is acknowledged.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        if self.acks.host.dsack {
            self.reassembly.set_duplicate(start, end);
        }
        self.acks.enter_quick(16, self.window.offered());
    }

    /// True when compressed ACKs must go out before this segment is taken, or blocks would be pushed out of them
    /// unseen (`tcp_sack_compress_send_ack`): it begins a block, or grows one that is not among the two most recent.
    #[inline]
    pub fn flushes(&self, segment: &Segment) -> bool {
        self.acks.is_compressing()
            && segment.seq > self.rcv_nxt
            && self.reassembly.blocks_before(segment.seq, segment.end_seq()) >= EXPECTED_BLOCKS
    }

    /// A data segment has arrived (`tcp_data_queue`, `tcp_ack_snd_check`). `flushed`: an ACK of what came before has just left,
    /// and counts as this segment's too if it is out of order. `srtt_us_x8` and `rto_ticks` are
    /// this host's own estimates, which bound the delay of an ACK.
    #[inline(never)]
    pub fn on_data(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        flushed: bool,
        srtt_us_x8: u32,
        rto_ticks: u64,
    ) -> Received {
        let end = segment.end_seq();
        self.take_timestamp(segment);
        // tcp_data_queue: a duplicate that no ACK has reported yet is forgotten.
        self.reassembly.forget_duplicate();
        let before = self.rcv_nxt;
        let mut new_bytes = 0;
        if segment.seq <= self.rcv_nxt && end > self.rcv_nxt && !self.has_room() {
            self.acks.refuse(self.window.offered());
        } else if segment.seq <= self.rcv_nxt && end > self.rcv_nxt {
            if segment.seq < self.rcv_nxt && self.acks.host.dsack {
                // RFC 2883 §4: the overlap is reported.
                self.reassembly.set_duplicate(segment.seq, self.rcv_nxt);
            }
            new_bytes = end - self.rcv_nxt;
            self.rcv_nxt = end;
            if !self.reassembly.is_empty() {
                let (next, had) = self.reassembly.absorb(end, self.acks.host.dsack);
                self.rcv_nxt = next;
                // What was queued had been counted when it came.
                new_bytes = new_bytes.saturating_sub(had.min(new_bytes));
                if self.reassembly.is_empty() {
                    // RFC 5681 §4.2: a filled gap is acknowledged at once.
                    self.acks.acknowledge_now();
                }
            }
        } else if end <= self.rcv_nxt {
            self.report_duplicate(segment.seq, end);
            self.acks.acknowledge_now();
        } else {
            new_bytes = self.reassembly.insert(segment.seq, end, self.acks.host.dsack);
            // Also when all of it had come before: the duplicate is reported.
            if !flushed {
                self.acks.schedule(self.acks.host.ticks.at(now), rto_ticks);
            }
            self.feedback.on_data(ecn, &mut self.acks, self.window.offered());
        }
        if let Some(unread) = &mut self.unread
            && self.rcv_nxt > before
        {
            unread.push(self.rcv_nxt, u64::from(segment.len), segment_memory);
        }
        if new_bytes > 0 {
            let in_order = self.rcv_nxt > before;
            if in_order {
                self.window.measure_window(now, self.rcv_nxt);
                let (offered, longest) = (self.window.offered(), self.acks.segment_size());
                self.acks.on_data(segment, self.acks.host.ticks.at(now), offered, rto_ticks);
                if self.acks.segment_size() > longest {
                    self.window.measure_share(segment.len);
                }
                self.feedback.on_data(ecn, &mut self.acks, self.window.offered());
            }
            // tcp_data_queue_ofo: without SACK a window that grows would hide a duplicate ACK.
            let memory = self.memory();
            if segment.len >= 128
                && (in_order || self.sack)
                && self.window.grow(u64::from(segment.len), self.acks.segment_size(), memory)
            {
                self.acks.quick_once();
            }
            if !in_order {
                self.window.make_room_beyond(self.reassembly.reach(self.rcv_nxt));
            }
        }
        let now_ms = self.acks.host.ticks.stamp_ms(now);
        self.window.measure_echo(now_ms, self.rcv_nxt, segment, before);
        let reads = self.unread.is_none();
        if reads && self.rcv_nxt > before {
            let beyond = self.reassembly.reach(self.rcv_nxt);
            self.window.adjust_space(now, self.rcv_nxt, beyond);
        }
        let situation = self.situation(now, srtt_us_x8, reads);
        let acknowledge = self.acks.decide(&situation);
        Received { new_bytes, acknowledge }
    }

    /// True when a delayed ACK must leave before this segment is taken in, because it changes the echo.
    #[inline]
    pub fn echo_changes(&self, segment: &Segment, ecn: Ecn) -> bool {
        self.feedback.changes(ecn) && segment.end_seq() > self.rcv_nxt && self.acks.owes()
    }

    /// A timer of the receiver is due; whether an acknowledgement must go out.
    pub fn on_deadline(&mut self, now: Instant, rto_ticks: u64) -> bool {
        self.acks.on_deadline(now, rto_ticks)
    }

    /// A pure acknowledgement.
    #[inline(always)] // the segment is then made in its place
    pub fn acknowledgement(&mut self, now: Instant, seq: u64) -> Segment {
        let mut segment = Segment::new(seq, 0, Flags::ACK);
        if self.counters.is_none() && !self.reassembly.reports() {
            segment.window = if self.is_still() { self.still_offered() } else { self.advertise() };
            self.fill(&mut segment, now);
            return segment;
        }
        self.fill_report(segment, now)
    }

    /// `segment` as an acknowledgement with SACK blocks and counters.
    #[inline(never)]
    fn fill_report(&mut self, mut segment: Segment, now: Instant) -> Segment {
        let mut fields = None;
        if let Some(counters) = &self.counters {
            fields = counters.fit(self.timestamps, &mut 0);
        }
        if self.sack {
            // RFC 2018 §3: four fit, three beside timestamps.
            let mut blocks = [SackBlock::default(); 4];
            let room = if self.timestamps { 3 } else { 4 };
            let mut count = self.reassembly.blocks(self.rcv_nxt, &mut blocks[..room]);
            if let Some(counters) = &self.counters {
                fields = counters.fit(self.timestamps, &mut count);
            }
            if count > 0 {
                segment.set_sack(&blocks[..count]);
            }
        }
        self.fill_header(&mut segment, now);
        if let (Some(counters), Some(fields)) = (&mut self.counters, fields) {
            segment.set_ecn_bytes(counters.option(fields));
        }
        segment
    }

    /// Acknowledgement number, window, timestamps and ECN echo of a segment about to leave: whatever leaves
    /// acknowledges (`tcp_event_ack_sent`).
    #[inline(always)] // the segment is then made in its place
    pub fn fill_header(&mut self, segment: &mut Segment, now: Instant) {
        segment.window = if self.is_still() { self.still_offered() } else { self.advertise_anew() };
        self.fill(segment, now);
    }

    /// Nothing has come in since the last segment left.
    #[inline]
    fn is_still(&self) -> bool {
        self.rcv_nxt == self.last_acked && !self.acks.owes() && self.unread.is_none()
    }

    /// Then the window is what it was, and nothing is acknowledged.
    #[inline]
    fn still_offered(&self) -> u32 {
        debug_assert!(self.acks.is_at_rest());
        self.window.offered() as u32
    }

    /// Fills the header fields that do not depend on arrivals since the last segment.
    #[inline(always)] // as above
    fn fill(&mut self, segment: &mut Segment, now: Instant) {
        segment.ack = self.rcv_nxt;
        if self.timestamps {
            let val = self.acks.host.ticks.stamp_ms(now);
            segment.set_timestamps(Timestamps { val, ecr: self.ts_recent });
            self.window.on_stamp(val);
        }
        segment.flags = match &mut self.counters {
            None => segment.flags.with_if(Flags::ECE, self.feedback.echo),
            Some(counters) => segment.flags.with_ace(counters.ace()),
        };
    }

    /// [`Self::advertise`], out of the way of whoever has nothing to acknowledge.
    #[inline(never)]
    fn advertise_anew(&mut self) -> u32 {
        self.advertise()
    }

    /// The window of a segment about to leave, which acknowledges all there is.
    #[inline(always)] // an acknowledgement is mostly this
    fn advertise(&mut self) -> u32 {
        let (memory, rcv_mss) = (self.memory(), self.acks.segment_size());
        if self.window.is_tight(memory) {
            self.acks.leave_quick();
        }
        self.last_acked = self.rcv_nxt;
        self.acks.on_ack_sent();
        self.window.advertise(self.rcv_nxt, memory, rcv_mss)
    }
}
