//! Parts shared by the Linuxes since 2.6: the episode that a reduction is part of and the state needed to undo it, the
//! RTT estimate, the retransmission queue's order, and the rules by which new data leaves.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `output.rs` | burst sizes, Nagle, deferral; a window that is not used decays | `tcp_write_xmit`, `tcp_cwnd_validate` ... |
//! | `rtt.rs` | RTT estimate and windowed minimum | `tcp_rtt_estimator` |
//!
//! Out of scope: loss detection and the reduction of the window (`linux_6/`, `linux_2_6/`).

mod output;
mod rtt;

use super::core::{Core, Marks};
use crate::profile::Settings;
use crate::segment::Segment;
use dragstrip_units::{Duration, Instant};
use output::Usage;
pub(super) use output::{Sendable, max_burst, may_be_short, one_segment, sendable};
use rtt::{RttEstimator, WindowedMin};

/// `TCP_TIMEOUT_FALLBACK`.
const RTO_FALLBACK: Duration = Duration::from_secs(3);

/// A reduction that may still turn out to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// `snd_una` when the episode began (`undo_marker`).
    marker: u64,
    /// Retransmissions of the episode not yet reported as duplicates; `None` before the first (`undo_retrans`).
    retransmissions: Option<u32>,
}

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(super) struct Linux {
    pub rtt: RttEstimator,
    usage: Usage,
    pub min_rtt: WindowedMin,
    /// The episode ends when this byte is acknowledged.
    pub high_seq: u64,
    /// Duplicate-ACK threshold, raised when reordering is seen.
    pub reordering: u32,
    /// Threshold to go back to on undo; 0: none (an ECN echo was seen).
    pub prior_ssthresh: u32,
    /// Timeouts since `snd_una` last moved (`icsk_retransmits`).
    pub timeouts: u32,
    /// No segment below this number waits to be retransmitted (`retransmit_skb_hint`).
    retransmit_hint: u64,
    pub undo: Option<Undo>,
    /// Timestamp (ms) of the episode's first retransmission (`retrans_stamp`).
    pub retrans_stamp: Option<u32>,
}

/// Lost, and not retransmitted yet.
fn waits_for_retransmission(marks: Marks) -> bool {
    marks.has(Marks::LOST) && !marks.any(Marks::SACKED.with(Marks::RETRANS))
}

impl Linux {
    pub fn new(settings: &Settings) -> Self {
        Self {
            high_seq: 0,
            undo: None,
            prior_ssthresh: 0,
            reordering: settings.initial_reordering(),
            retrans_stamp: None,
            timeouts: 0,
            rtt: RttEstimator::default(),
            min_rtt: WindowedMin::new(),
            retransmit_hint: 0,
            usage: Usage::default(),
        }
    }

    /// RFC 5681 §3.1: after a lost SYN the window starts at one segment; Linux asks for two losses.
    pub fn start_window(&mut self, core: &mut Core, syn_retransmits: u32) {
        if syn_retransmits > 1 {
            core.window.cwnd = 1;
        }
        self.note_window_justified(core);
    }

    /// The RTT of the SYN (`tcp_init_metrics`). RFC 6298 §5.7: without one the SYN was lost, so that the network may be slower
    /// than the first timeout assumed.
    pub fn take_first_rtt(&mut self, core: &mut Core, rtt_us: Option<u32>) {
        match rtt_us {
            Some(rtt_us) => self.take_rtt(core, rtt_us, rtt_us, false),
            None => core.timer.rto_ticks = core.settings.ticks.count_span_ceil(RTO_FALLBACK),
        }
    }

    /// Feeds the estimator, the windowed minimum and the timeout.
    pub fn take_rtt(
        &mut self,
        core: &mut Core,
        seq_rtt_us: u32,
        ca_rtt_us: u32,
        maybe_delayed: bool,
    ) {
        if !(maybe_delayed && ca_rtt_us > self.min_rtt.get()) {
            let window = u64::from(core.settings.min_rtt_wlen_s) * u64::from(core.settings.hz);
            self.min_rtt.sample(window, core.tick(), ca_rtt_us.max(1));
            core.view.min_rtt_us = self.min_rtt.get();
        }
        self.rtt.sample(seq_rtt_us, core.view.snd_una, core.view.snd_nxt, core.settings.rto_min_us);
        core.view.srtt_us_x8 = self.rtt.srtt_us_x8;
        self.set_rto(core);
    }

    /// `tcp_set_rto`: from the estimator, dropping any backoff.
    pub fn set_rto(&mut self, core: &mut Core) {
        core.timer.rto_ticks = self.rtt.rto_ticks(core.settings.ticks, core.settings.rto_max_ticks);
    }

    /// `tcp_disordered_ack`: an outdated ACK is taken when it is a duplicate ACK that moves no window and a timeout old at most.
    pub fn takes_outdated(core: &Core, segment: &Segment, age_ms: u32) -> bool {
        let replay_ms = core.settings.ticks.to_micros(core.timer.rto_ticks) / 1_000 * 1_024 / 1_000;
        segment.ack == core.view.snd_una
            && !core.may_update_window(segment)
            && u64::from(age_ms) <= replay_ms
    }

    /// An episode begins that may be undone; `retransmissions` that are still out may come back as duplicates of the one before.
    pub fn arm_undo(&mut self, core: &Core, retransmissions: Option<u32>) {
        self.undo = Some(Undo { marker: core.view.snd_una, retransmissions });
    }

    /// Every retransmission of the episode was reported as a duplicate.
    pub fn all_were_duplicates(&self) -> bool {
        self.undo.is_some_and(|undo| undo.retransmissions == Some(0))
    }

    /// `segments` retransmissions up to `end_seq` were reported as duplicates.
    pub fn note_duplicate(&mut self, end_seq: u64, segments: u32) {
        if let Some(Undo { marker, retransmissions: Some(left) }) = &mut self.undo
            && end_seq > *marker
        {
            *left = left.saturating_sub(segments);
        }
    }

    /// Segments from `number` on were retransmitted (end of `tcp_retransmit_skb`).
    pub fn note_retransmission(&mut self, core: &Core, number: u64, segments: u32) {
        if self.retrans_stamp.is_none() {
            let sent_at = Instant::from_nanos(core.board.get(number).sent_us * 1_000);
            self.retrans_stamp = Some(core.settings.ticks.stamp_ms(sent_at));
        }
        if let Some(undo) = &mut self.undo {
            *undo.retransmissions.get_or_insert(0) += segments;
        }
    }

    /// `tcp_mark_skb_lost`.
    pub fn mark_lost(&mut self, core: &mut Core, number: u64) {
        let marks = core.board.marks_mut(number);
        if marks.has(Marks::SACKED) {
            return;
        }
        if marks.has(Marks::LOST) {
            if marks.has(Marks::RETRANS) {
                // The retransmission is lost too.
                marks.clear(Marks::RETRANS);
                core.view.retrans_out -= 1;
                core.view.lost += 1;
                core.tell_lost(number);
                self.retransmit_from(number);
            }
            return;
        }
        marks.set(Marks::LOST);
        core.view.lost_out += 1;
        core.view.lost += 1;
        core.tell_lost(number);
        self.retransmit_from(number);
    }

    /// Nothing is lost after all.
    pub fn unmark_lost(&mut self, core: &mut Core) {
        for number in core.board.head()..core.board.tail() {
            core.board.marks_mut(number).clear(Marks::LOST);
        }
        core.view.lost_out = 0;
    }

    /// Segment `number` waits to be retransmitted; segments below the hint do not.
    #[inline]
    pub fn retransmit_from(&mut self, number: u64) {
        self.retransmit_hint = self.retransmit_hint.min(number);
    }

    /// `tcp_xmit_retransmit_queue`: what is lost and not yet retransmitted, lowest first, each burst of it as the burst that it
    /// was: its first segment's number, and how many segments it has, at most `max_segments`. `None`: nothing may go.
    pub fn next_lost(&mut self, core: &mut Core, max_segments: u32) -> Option<(u64, u32)> {
        let head = core.board.head();
        self.retransmit_hint = self.retransmit_hint.max(head);
        while self.retransmit_hint < core.board.tail() {
            let number = self.retransmit_hint;
            if core.is_pacing_blocked()
                || core.in_flight() >= core.window.cwnd
                || core.view.retrans_out >= core.view.lost_out
            {
                break;
            }
            let segment = core.board.get(number);
            if !waits_for_retransmission(segment.marks) {
                self.retransmit_hint += 1;
                continue;
            }
            if segment.end_seq() > core.window_end && number != head {
                break;
            }
            let most = (core.window.cwnd - core.in_flight()).min(max_segments);
            let segments = lost_together(core, number, most);
            self.retransmit_hint += u64::from(segments);
            return Some((number, segments));
        }
        None
    }
}

/// Returns the number of segments from `number` on that are one lost skb, at most `most` of them, and within the
/// peer's window.
fn lost_together(core: &Core, number: u64, most: u32) -> u32 {
    let mut segments = 1;
    let mut last = core.board.get(number);
    while segments < most && !last.marks.has(Marks::BURST_END) {
        let next = core.board.get(number + u64::from(segments));
        if !waits_for_retransmission(next.marks) || next.end_seq() > core.window_end {
            break;
        }
        last = next;
        segments += 1;
    }
    segments
}
