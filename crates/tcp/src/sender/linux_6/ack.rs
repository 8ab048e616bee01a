//! One ACK, in the kernel's order of steps (`tcp_ack`, `tcp_clean_rtx_queue`, `tcp_cong_control`).

use super::Linux6;
use super::marks::is_predicted;
use super::recovery::{Episode, Rexmit};
use crate::segment::{Outbox, Segment};
use crate::sender::core::{Ack, AckFlags, Cleaned, Core, Draft, Io, Marks, Sent, Stack};
use crate::ticks::micros;
use dragstrip_cc::{CaState, CongestionControl, Response};
use dragstrip_units::{Duration, Instant};

/// Least delay from an ACK to the segments it releases: a tick of the kernel's clock for RTTs.
const ACK_WORK: Duration = Duration::from_micros(1);

/// An ACK that is not plain progress.
const UNUSUAL: AckFlags = AckFlags::DATA_SACKED.with(AckFlags::ECE).with(AckFlags::DSACKING_ACK);

/// Counts of an ACK, packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// In flight before it.
    pub prior_in_flight: u32,
    /// Newly acknowledged or SACKed.
    pub acked_sacked: u32,
    /// Newly delivered packets reported as marked.
    pub newly_marked: u32,
    /// Newly marked lost.
    pub losses: u32,
}

/// The clock of an ACK whose segments leave at `now`: the kernel reads it when the ACK comes and again when it sends
/// (`tcp_mstamp_refresh` in `tcp_rcv_established` and in `tcp_write_xmit`), and has worked in between. How long depends on the
/// machine; a tick of that clock is the least. Without it every RTT behind a full queue is a whole number of packet times, and
/// what Vegas divides by one another and compares with a whole number is equal where it is a hair above it in a kernel.
#[inline]
fn arrival_of_ack(core: &Core, now: Instant) -> Instant {
    let arrival = Instant::from_nanos(now.as_nanos().saturating_sub(ACK_WORK.as_nanos()));
    arrival.max(core.view.departure).min(now)
}

/// `tcp_skb_spurious_retrans`: the ACK answers the original of a retransmitted segment.
#[inline]
fn answers_original_of(core: &Core, sent: &Sent) -> bool {
    sent.marks.has(Marks::EVER_RETRANS)
        && core.view.stamps.is_some_and(|stamps| u64::from(stamps.ecr) < sent.sent_us / 1_000)
}

impl Linux6 {
    /// `tcp_ack`, and the end of `tcp_rcv_established`: what the ACK lets go. Without a segment it is the end of an ACK that was held for
    /// an agent's action. All calls are in one body, so that what it alone calls is inlined.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn process_ack<O: Outbox>(
        &mut self,
        core: &mut Core,
        segment: Option<&Segment>,
        io: &mut Io<'_, O>,
    ) {
        let (rexmit, sets_timer) = match segment {
            Some(segment) => {
                let released = self.acknowledged(core, segment, io.receiver.rcv_nxt());
                if io.out.holds() {
                    self.held = Some(released);
                    return;
                }
                released
            }
            None => match self.held.take() {
                Some(released) => released,
                None => return,
            },
        };
        if rexmit != Rexmit::None {
            self.xmit_recovery(core, rexmit, io);
        }
        let any_sent = self.push_pending(core, io);
        if sets_timer && !any_sent {
            self.set_transmit_timer(core);
        }
    }

    /// Takes an ACK; returns the data to send after it, and whether the timer is to be set unless something is sent.
    #[inline(always)]
    fn acknowledged(&mut self, core: &mut Core, segment: &Segment, rcv_nxt: u64) -> (Rexmit, bool) {
        let now = core.view.now;
        core.view.now = arrival_of_ack(core, now);
        core.since_arrival_ns = now.since(core.view.now).as_nanos() as u32;
        let predicted = is_predicted(core, segment, rcv_nxt);
        let released = if let Some(plain) = self.plain_part(core, segment) {
            self.progress(core, segment, &plain, predicted);
            (Rexmit::None, true)
        } else {
            self.any_ack(core, segment, predicted)
        };
        core.view.now = now;
        core.since_arrival_ns = 0;
        released
    }

    /// Returns the data to send after an ACK, and whether the timer is to be set unless something is sent.
    #[inline(never)]
    pub(super) fn any_ack(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        predicted: bool,
    ) -> (Rexmit, bool) {
        let mut ack = Ack::new(core);
        if predicted {
            ack.flags.set(AckFlags::PREDICTED);
        }
        let rexmit = if segment.ack < ack.prior_una {
            self.old_ack(core, segment, &mut ack)
        } else {
            self.new_ack(core, segment, &mut ack)
        };
        (rexmit, ack.flags.has(AckFlags::SET_TIMER))
    }

    /// An ACK from the past: only its SACK blocks tell anything; a duplicate among them can undo a reduction even when
    /// nothing is out.
    fn old_ack(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) -> Rexmit {
        if !segment.has_sack() {
            return Rexmit::None;
        }
        self.sacktag(core, segment, ack);
        // What it reports never counts as delivered (tcp_count_delivered is not reached).
        core.view.delivered -= u64::from(ack.sack_delivered);
        self.alert(core, ack, false)
    }

    #[inline]
    fn new_ack(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) -> Rexmit {
        let prior_packets = core.view.packets_out;
        let prior_in_flight = core.in_flight();
        let (prior_delivered, prior_lost) = (core.view.delivered, core.view.lost);
        core.update_window(segment, ack);
        if ack.flags.has(AckFlags::ADVANCED) {
            self.linux.timeouts = 0;
        }
        if segment.has_sack() {
            // The highest SACK is kept relative to what was outstanding before this ACK.
            self.sacktag(core, segment, ack);
        }
        core.note_ecn_echo(segment, ack);
        if prior_packets == 0 {
            self.read_counters(core, segment, ack, prior_delivered);
            self.in_ack_event(core, ack, prior_delivered);
            if ack.flags.has(AckFlags::DSACKING_ACK) {
                // An earlier reduction may turn out to have been spurious.
                self.alert(core, ack, false);
            }
            self.answer_to_probe(core);
            self.process_probe_ack(core, segment.ack, ack.flags);
            return Rexmit::None;
        }
        self.clean_queue(core, ack);
        self.rack_adapt(core, ack.draft.prior_delivered());
        self.read_counters(core, segment, ack, prior_delivered);
        let mut newly_marked = self.in_ack_event(core, ack, prior_delivered);
        let delivered_then = core.view.delivered;
        self.process_probe_ack(core, segment.ack, ack.flags);
        let rexmit = if self.is_dubious(core, ack.flags) {
            let progress = AckFlags::ADVANCED.with(AckFlags::NOT_DUPLICATE);
            let duplicate = !ack.flags.any(progress.with(AckFlags::DSACKING_ACK));
            self.alert(core, ack, duplicate)
        } else {
            Rexmit::None
        };
        if ack.flags.has(AckFlags::SET_TIMER) && !self.sets_timer_when_sending(core) {
            self.set_transmit_timer(core);
            ack.flags.clear(AckFlags::SET_TIMER);
        }
        newly_marked += self.count_marked(core, ack, delivered_then);
        let counts = Counts {
            newly_marked,
            losses: (core.view.lost - prior_lost) as u32,
            acked_sacked: (core.view.delivered - prior_delivered) as u32,
            prior_in_flight,
        };
        self.control(core, ack.flags, &counts, &ack.draft);
        rexmit
    }

    /// `tcp_sacktag_write_queue`.
    fn sacktag(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) {
        let dsack = core.sacktag(self, segment, ack);
        if let Some(dsack) = dsack {
            let of_probe =
                dsack.segments == 1 && self.probe.is_some_and(|probe| probe.end == dsack.end);
            if of_probe {
                ack.flags.set(AckFlags::DSACK_OF_PROBE);
            } else if dsack.believed && self.reordering_seen > 0 {
                self.rack.dsack_seen = true;
            }
        }
        if core.view.state != CaState::Loss || self.linux.undo.is_some() {
            self.check_reordering(core, ack.reordered_from);
        }
    }

    /// `tcp_check_sack_reordering`: data from `low` arrived after data above it.
    pub(super) fn check_reordering(&mut self, core: &Core, low: u64) {
        let highest = core.highest_sack();
        if low >= highest {
            return;
        }
        let distance = (highest - low).div_ceil(u64::from(core.view.mss)) as u32;
        if distance > self.linux.reordering {
            self.linux.reordering = distance.min(core.settings.max_reordering);
        }
        self.reordering_seen += 1;
    }

    /// A segment was SACKed.
    #[inline]
    pub(super) fn note_sacked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        self.rack_advance(core, sent);
        if !sent.marks.has(Marks::EVER_RETRANS) && sent.end_seq() <= self.linux.high_seq {
            ack.flags.set(AckFlags::ORIG_SACK_ACKED);
        }
    }

    /// A segment was cumulatively acknowledged that was not SACKed before.
    #[inline]
    pub(super) fn note_acked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        if !sent.marks.has(Marks::EVER_RETRANS) && sent.end_seq() <= self.linux.high_seq {
            ack.flags.set(AckFlags::ORIG_SACK_ACKED);
        }
        if core.settings.sack && !answers_original_of(core, sent) {
            self.rack_advance(core, sent);
        }
    }

    /// `tcp_ack_is_dubious`.
    #[inline]
    fn is_dubious(&self, core: &Core, flags: AckFlags) -> bool {
        !flags.has(AckFlags::NOT_DUPLICATE)
            || flags.any(UNUSUAL)
            || core.view.state != CaState::Open
    }

    /// `tcp_clean_rtx_queue`: drops what is acknowledged, takes RTT samples.
    #[inline]
    fn clean_queue(&mut self, core: &mut Core, ack: &mut Ack) {
        let cleaned = core.clean_queue(self, ack);
        let rtt_taken = self.take_rtts(core, ack, &cleaned);
        self.settle(core, ack, &cleaned, rtt_taken);
        core.report_acked(cleaned.packets, &ack.draft);
    }

    /// The RTT samples of the ACK: from the first acknowledged segment for the timeout, from the
    /// last for the algorithm (`tcp_ack_update_rtt`). Whether one was taken.
    fn take_rtts(&mut self, core: &mut Core, ack: &mut Ack, cleaned: &Cleaned) -> bool {
        let now_us = core.now_us();
        let mut seq_rtt = None;
        let mut ca_rtt = None;
        if let (Some(first), Some(last)) = (cleaned.first_us, cleaned.last_us)
            && !ack.flags.has(AckFlags::RETRANS_ACKED)
        {
            seq_rtt = Some(now_us - first);
            ca_rtt = Some(now_us - last);
            if cleaned.packets == 1
                && cleaned.prior_sacked == 0
                && core.view.snd_una - ack.prior_una < u64::from(core.view.mss)
                && ack.draft.prior_delivered() + 1 == core.view.delivered
                && !ack.flags.any(UNUSUAL)
            {
                ack.flags.set(AckFlags::MAYBE_DELAYED);
            }
        }
        if let (Some(first), Some(last)) = (ack.first_sacked_us, ack.last_sacked_us) {
            seq_rtt = seq_rtt.or(Some(now_us - first));
            ca_rtt = Some(now_us - last);
        }
        if seq_rtt.is_none()
            && cleaned.packets > 0
            && let Some(echo) = core.view.stamps.map(|stamps| stamps.ecr)
        {
            // Only retransmissions were acknowledged: the timestamp tells which one (RFC 7323 §4.3).
            let delta = ((now_us / 1_000).saturating_sub(u64::from(echo))).max(1) * 1_000;
            seq_rtt = Some(delta);
            ca_rtt = Some(delta);
        }
        core.last_rtt_us = ca_rtt.map(micros);
        let Some(seq_rtt) = seq_rtt else { return false };
        self.window_probes = 0;
        let ca_rtt = ca_rtt.unwrap_or(seq_rtt);
        core.new_rtt_us = Some(micros(ca_rtt));
        let maybe_delayed = ack.flags.has(AckFlags::MAYBE_DELAYED);
        self.linux.take_rtt(core, micros(seq_rtt), micros(ca_rtt), maybe_delayed);
        true
    }

    /// The end of `tcp_clean_rtx_queue`: timer flag, and reordering shown by a hole that filled itself.
    fn settle(&mut self, core: &mut Core, ack: &mut Ack, cleaned: &Cleaned, rtt_taken: bool) {
        if cleaned.packets > 0 {
            ack.flags.set(AckFlags::SET_TIMER);
            if !core.settings.sack {
                self.remove_reno_sacks(core, cleaned.packets);
                if ack.flags.has(AckFlags::RETRANS_ACKED) {
                    ack.flags.clear(AckFlags::ORIG_SACK_ACKED);
                }
            } else if cleaned.first_original < ack.prior_highest {
                self.check_reordering(core, cleaned.first_original);
            }
        } else if rtt_taken
            && let (Some(head), Some(first)) = (core.board.front(), ack.first_sacked_us)
            && first < head.sent_us
        {
            // Only a SACK of data sent before the head's last transmission may push the timeout out.
            ack.flags.set(AckFlags::SET_TIMER);
        }
    }

    /// `tcp_cong_control`: the algorithm, or PRR, moves the window.
    #[inline(always)] // of an ACK that is plain progress, a part
    pub(super) fn control(
        &mut self,
        core: &mut Core,
        flags: AckFlags,
        counts: &Counts,
        draft: &Draft,
    ) {
        let rate = self.measure_rate(core, draft, counts.acked_sacked > 0);
        if core.has_cong_control {
            let sample = self.rate_sample(core, flags, *counts, *draft, rate);
            let response = core.cc.cong_control(&core.view, &mut core.window, &sample);
            self.grant(core, response);
            return;
        }
        if let Episode::Reduction(prr) = &mut self.episode {
            let advanced = flags.has(AckFlags::ADVANCED);
            prr.reduce(core, counts.acked_sacked, counts.losses, advanced);
        } else if self.may_grow(core, flags) {
            let response = core.cc.cong_avoid(&core.view, &mut core.window, counts.acked_sacked);
            // tcp_cong_avoid: as long as ACKs come, a window that is not used does not decay.
            self.linux.note_window_justified(core);
            self.grant(core, response);
        }
        core.update_pacing_rate();
    }

    /// Applies the algorithm's request.
    #[inline]
    fn grant(&mut self, core: &mut Core, response: Response) {
        match response {
            Response::None => {}
            Response::EnterCwr => self.enter_cwr(core),
            Response::MarkAppLimited => {
                let mark = core.view.delivered + u64::from(core.view.in_flight());
                core.view.app_limited = mark.max(1);
            }
        }
    }

    /// `tcp_may_raise_cwnd`.
    #[inline]
    fn may_grow(&self, core: &Core, flags: AckFlags) -> bool {
        if self.linux.reordering > core.settings.reordering {
            flags.any(AckFlags::DATA_ACKED.with(AckFlags::DATA_SACKED))
        } else {
            flags.has(AckFlags::DATA_ACKED)
        }
    }
}
