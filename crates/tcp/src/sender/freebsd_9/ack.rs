//! One ACK: progress, a duplicate, or part of a recovery (`tcp_do_segment`).

use super::Freebsd9;
use crate::segment::{Outbox, Segment};
use crate::sender::core::{Ack, AckFlags, Core, Io, Stack};
use dragstrip_cc::{CaState, CongestionControl, Event};

/// Duplicate ACKs that begin a recovery (`tcprexmtthresh`).
const DUPLICATES: u32 = 3;

impl Freebsd9 {
    /// The part of `tcp_do_segment` that takes an ACK.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn process_ack<O: Outbox>(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        io: &mut Io<'_, O>,
    ) {
        self.heard_at = core.tick();
        let prior_packets = core.view.packets_out;
        let mut ack = Ack::new(core);
        if segment.ack < ack.prior_una {
            // From the past: it is no duplicate of the last.
            self.duplicates = 0;
            return;
        }
        core.update_window(segment, &mut ack);
        if segment.has_sack() {
            core.sacktag(self, segment, &mut ack);
        }
        let prior_window = std::mem::replace(&mut self.peer_window, u64::from(segment.window));
        let advanced = segment.ack > ack.prior_una;
        let mut acked = 0;
        if prior_packets > 0 && (advanced || ack.flags.has(AckFlags::DATA_SACKED)) {
            let cleaned = core.clean_queue(self, &mut ack);
            self.take_rtts(core, &ack, &cleaned);
            core.report_acked(cleaned.packets, &ack.draft);
            acked = cleaned.packets;
        }
        if advanced {
            self.advance(core, acked, io);
        } else if prior_packets > 0 && segment.len == 0 && self.peer_window == prior_window {
            self.duplicate(core, io);
            return;
        } else {
            self.duplicates = 0;
        }
        self.push_pending(core, io);
    }

    /// New data was acknowledged, `acked` segments of it.
    fn advance<O: Outbox>(&mut self, core: &mut Core, acked: u32, io: &mut Io<'_, O>) {
        self.next = self.next.max(core.board.head());
        self.undo_timeout(core);
        self.timeouts = 0;
        let recovering = core.view.state == CaState::Recovery;
        if !recovering {
            core.view.is_cwnd_limited = window_bytes(core) <= self.peer_window;
            // Neither algorithm asks for a reduction: FreeBSD's delay-based ones make theirs themselves.
            let _ = core.cc.cong_avoid(&core.view, &mut core.window, acked);
        } else if core.view.snd_una < self.recover {
            self.partial_ack(core, acked, io);
        } else {
            self.end_recovery(core);
        }
        self.duplicates = 0;
        if core.view.packets_out == 0 {
            core.timer.clear();
        } else {
            core.set_timer_rto();
        }
    }

    /// `tcp_sack_partialack`, `tcp_newreno_partial_ack`.
    fn partial_ack<O: Outbox>(&mut self, core: &mut Core, acked: u32, io: &mut Io<'_, O>) {
        self.timed = None;
        if core.settings.sack {
            let more = acked.clamp(1, 2);
            let cwnd = core.view.retrans_out + self.new_segments(core) + more;
            core.window.cwnd = cwnd.min(core.window.ssthresh);
        } else {
            if !core.board.is_empty() {
                self.retransmit(core, core.board.head(), io);
            }
            // Partial deflation (RFC 6582 §3.2 step 3).
            core.window.cwnd = core.window.cwnd.saturating_sub(acked) + 1;
        }
    }

    /// `newreno_post_recovery`: no burst if little is in flight.
    fn end_recovery(&mut self, core: &mut Core) {
        core.window.cwnd = core.window.ssthresh.min(core.view.packets_out + 1);
        core.cc.cwnd_event(&core.view, &mut core.window, Event::CompleteCwr);
        core.set_state(CaState::Open);
    }

    /// `CC_RTO_ERR`: the ACK is too early to answer the retransmission.
    fn undo_timeout(&mut self, core: &mut Core) {
        let Some(before) = self.before.take() else { return };
        if core.tick() >= before.until_tick {
            return;
        }
        core.forget_retransmissions();
        self.next = core.board.tail();
        core.window.cwnd = before.cwnd;
        core.window.ssthresh = before.ssthresh;
        self.recover = before.high_seq;
        core.set_state(before.state);
    }

    /// A duplicate ACK.
    fn duplicate<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.duplicates += 1;
        if self.duplicates > DUPLICATES || core.view.state == CaState::Recovery {
            self.inflate(core);
        } else if self.duplicates == DUPLICATES {
            let reduced_for = self.recover;
            if !core.settings.sack && reduced_for > 0 && core.view.snd_una <= reduced_for {
                // The window was reduced for this flight already (RFC 6582 §4).
                self.duplicates = 0;
                return;
            }
            self.enter_recovery(core, io);
        } else if core.settings.bsd.limited_transmit {
            self.limited_transmit(core, io);
            return;
        }
        self.push_pending(core, io);
    }

    /// One more segment has left the network. With SACK the window grows while less than the threshold is in flight.
    fn inflate(&mut self, core: &mut Core) {
        if !(core.settings.sack && core.view.state == CaState::Recovery) {
            core.window.cwnd = core.window.cwnd.saturating_add(1);
            return;
        }
        let beyond = (core.view.snd_nxt - core.highest_sack()) / u64::from(core.view.mss);
        if (beyond as u32).saturating_add(core.view.retrans_out) < core.window.ssthresh {
            core.window.cwnd = (core.window.cwnd + 1).min(core.window.ssthresh);
        }
    }

    /// RFC 3042: a new segment for each of the first two duplicates, beyond the window.
    fn limited_transmit<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        if self.duplicates == 1 {
            self.limited = 0;
        }
        let cwnd = core.window.cwnd;
        let out = core.view.packets_out;
        core.window.cwnd = out + self.duplicates - self.limited.min(self.duplicates);
        self.push_pending(core, io);
        self.limited = (self.limited + core.view.packets_out - out).min(2);
        core.window.cwnd = cwnd;
    }

    /// `CC_NDUPACK`.
    fn enter_recovery<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.forget_retransmissions();
        self.next = core.board.tail();
        self.timed = None;
        self.recover = core.view.snd_nxt;
        self.new_data = core.view.snd_nxt;
        core.view.prior_cwnd = core.window.cwnd;
        core.reduce_threshold();
        core.set_state(CaState::Recovery);
        core.set_timer_rto();
        if core.settings.sack {
            core.window.cwnd = 1;
        } else {
            self.retransmit(core, core.board.head(), io);
            core.window.cwnd = core.window.ssthresh + self.duplicates - self.limited;
        }
    }

    /// Segments sent for the first time in this recovery.
    pub(super) fn new_segments(&self, core: &Core) -> u32 {
        ((core.view.snd_nxt - self.new_data) / u64::from(core.view.mss)) as u32
    }
}

/// The congestion window in bytes.
pub(super) fn window_bytes(core: &Core) -> u64 {
    u64::from(core.window.cwnd) * u64::from(core.view.mss)
}
