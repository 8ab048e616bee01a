//! The receiving half: reassembly, acknowledgements, the window offered.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `acknowledge.rs` | when to acknowledge | `__tcp_ack_snd_check`, `tcp_send_delayed_ack` |
//! | `feedback.rs` | how marks are echoed | `tcp_ecn_check_ce` |
//! | `reassembly.rs` | what arrived out of order, SACK blocks | `tcp_data_queue_ofo`, `tcp_sack_*` |
//! | `window.rs` | window and buffer autotuning | `__tcp_select_window`, `tcp_rcv_space_adjust` |

mod acknowledge;
mod feedback;
mod reassembly;
mod window;

use crate::options::Options;
use crate::profile::Settings;
use crate::segment::{Ecn, Flags, SackBlock, Segment, Timestamps};
use crate::ticks::Ticks;
use acknowledge::Acknowledger;
use dragstrip_cc::EcnMode;
use dragstrip_units::Instant;
use feedback::Feedback;
use reassembly::Reassembly;
use window::WindowOffer;

/// `TCP_SACK_BLOCKS_EXPECTED`: with more blocks than that compressed ACKs would hide some.
const EXPECTED_BLOCKS: usize = 2;

/// The receiving half of an endpoint. The application reads at once whatever is in order.
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
    dsack: bool,
    window: WindowOffer,
    acks: Acknowledger,
    reassembly: Reassembly,
    ticks: Ticks,
    /// How much older than `ts_recent` a timestamp may be, ms.
    paws_window_ms: u32,
}

/// What became of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bytes that are new to this host, in order or not.
    pub new_bytes: u64,
    /// An acknowledgement must go out now.
    pub acknowledge: bool,
}

impl Receiver {
    pub fn new(settings: &Settings) -> Self {
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
            dsack: settings.dsack,
            ticks: settings.ticks(),
            paws_window_ms: settings.profile.paws_window * settings.ticks().stamp_step_ms(),
        }
    }

    /// What both sides agreed on in the handshake. `reserved`: one segment as the window counts it; `mss`: one of this host's own.
    pub fn establish(
        &mut self,
        now: Instant,
        ecn: Option<EcnMode>,
        options: &Options,
        reserved: u32,
        mss: u32,
    ) {
        self.acks.cap_segment_size(mss);
        self.feedback = Feedback::new(ecn);
        self.sack = options.sack;
        self.timestamps = options.timestamps;
        self.window.establish(now, options.scaling, options.timestamps, u64::from(reserved));
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

    /// What a SYN-ACK echoes.
    pub fn timestamp_to_echo(&self) -> u32 {
        self.ts_recent
    }

    /// Whether something waits to be acknowledged: data sent meanwhile may have done it.
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
        if age_ms > self.paws_window_ms { age_ms } else { 0 }
    }

    /// Whether a data segment may be looked at at all (`tcp_validate_incoming`, `tcp_sequence`): not when it is outdated, nor when
    /// all of it lies below what was acknowledged last.
    #[inline]
    pub fn accepts(&self, segment: &Segment) -> bool {
        self.outdated_by_ms(segment) == 0 && segment.end_seq() >= self.last_acked
    }

    /// What becomes of one that may not: an acknowledgement goes out at once, which reports a duplicate if it is one
    /// (`tcp_send_dupack`).
    pub fn refuse(&mut self, segment: &Segment) {
        if segment.seq < self.rcv_nxt {
            self.report_duplicate(segment.seq, segment.end_seq().min(self.rcv_nxt));
        }
        self.acks.acknowledge_now();
    }

    /// Data came twice: reported (RFC 2883 §4), and for a while every segment is acknowledged.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        if self.dsack {
            self.reassembly.set_duplicate(start, end);
        }
        self.acks.enter_quick(16, self.window.offered());
    }

    /// Whether compressed ACKs must go out before this segment is taken, or blocks would be pushed out of them unseen
    /// (`tcp_sack_compress_send_ack`): it begins a block, or grows one that is not among the two most recent.
    #[inline]
    pub fn flushes(&self, segment: &Segment) -> bool {
        self.acks.is_compressing()
            && segment.seq > self.rcv_nxt
            && self.reassembly.blocks_before(segment.seq, segment.end_seq()) >= EXPECTED_BLOCKS
    }

    /// A data segment has arrived (`tcp_data_queue`, `tcp_ack_snd_check`). `flushed`: an ACK of what came before has just left,
    /// and counts as this segment's too if it is out of order. `srtt_us_x8` and `rto_ticks` are
    /// this host's own estimates, which bound the delay of an ACK.
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
        if segment.seq <= self.rcv_nxt && end > self.rcv_nxt {
            if segment.seq < self.rcv_nxt && self.dsack {
                // RFC 2883 §4: the overlap is reported.
                self.reassembly.set_duplicate(segment.seq, self.rcv_nxt);
            }
            new_bytes = end - self.rcv_nxt;
            self.rcv_nxt = end;
            if !self.reassembly.is_empty() {
                let (next, had) = self.reassembly.absorb(end, self.dsack);
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
            new_bytes = self.reassembly.insert(segment.seq, end, self.dsack);
            // Also when all of it had come before: the duplicate is reported.
            if !flushed {
                self.acks.schedule(self.ticks.at(now), rto_ticks);
            }
            self.feedback.on_data(ecn, &mut self.acks, self.window.offered());
        }
        if new_bytes > 0 {
            let in_order = self.rcv_nxt > before;
            if in_order {
                self.window.measure_window(now, self.rcv_nxt);
                let offered = self.window.offered();
                self.acks.on_data(segment, self.ticks.at(now), offered, rto_ticks);
                self.feedback.on_data(ecn, &mut self.acks, self.window.offered());
            }
            // tcp_data_queue_ofo: without SACK a window that grows would hide a duplicate ACK.
            if segment.len >= 128
                && (in_order || self.sack)
                && self.window.grow(
                    u64::from(segment.len),
                    self.acks.segment_size(),
                    self.reassembly.memory(),
                )
            {
                self.acks.quick_once();
            }
        }
        let now_ms = self.ticks.stamp_ms(now);
        self.window.on_read(now, now_ms, self.rcv_nxt, segment, before);
        let acknowledge = self.acks.decide(&acknowledge::Situation {
            now,
            unacked: self.rcv_nxt - self.last_acked,
            window_holds: self.window.select(self.reassembly.memory()) >= self.window.offered(),
            hole: !self.reassembly.is_empty(),
            sack: self.sack,
            rcv_nxt: self.rcv_nxt,
            rcv_rtt_us: self.window.rtt_us(),
            srtt_us_x8,
        });
        Received { new_bytes, acknowledge }
    }

    /// Whether a delayed ACK must leave before this segment is taken in, because it changes the echo.
    #[inline]
    pub fn echo_changes(&self, segment: &Segment, ecn: Ecn) -> bool {
        self.feedback.changes(ecn) && segment.end_seq() > self.rcv_nxt && self.acks.owes()
    }

    /// A timer of the receiver is due; whether an acknowledgement must go out.
    pub fn on_deadline(&mut self, now: Instant, rto_ticks: u64) -> bool {
        self.acks.on_deadline(now, rto_ticks)
    }

    /// A pure acknowledgement.
    pub fn acknowledgement(&mut self, now: Instant, seq: u64) -> Segment {
        let mut segment = Segment::new(seq, 0, Flags::ACK);
        if self.sack {
            // RFC 2018 §3: four fit, three beside timestamps.
            let mut blocks = [SackBlock::default(); 4];
            let room = if self.timestamps { 3 } else { 4 };
            let count = self.reassembly.blocks(self.rcv_nxt, &mut blocks[..room]);
            if count > 0 {
                segment.set_sack(&blocks[..count]);
            }
        }
        self.fill_header(&mut segment, now);
        segment
    }

    /// Acknowledgement number, window, timestamps and ECN echo of a segment about to leave: whatever leaves
    /// acknowledges (`tcp_event_ack_sent`).
    #[inline]
    pub fn fill_header(&mut self, segment: &mut Segment, now: Instant) {
        segment.ack = self.rcv_nxt;
        segment.window = if self.rcv_nxt == self.last_acked && !self.acks.owes() {
            // Nothing has come in since: the window is what it was.
            self.window.offered() as u32
        } else {
            self.window.advertise(self.rcv_nxt, self.reassembly.memory())
        };
        if self.timestamps {
            let val = self.ticks.stamp_ms(now);
            segment.set_timestamps(Timestamps { val, ecr: self.ts_recent });
            self.window.on_stamp(val);
        }
        segment.flags = segment.flags.with_if(Flags::ECE, self.feedback.echo);
        self.last_acked = self.rcv_nxt;
        self.acks.sent();
    }
}
