//! One ACK: growth, duplicates, fast retransmits (`tcp_ack`, `tcp_fast_retrans`, `should_advance_cwnd`, tcp_input.c of 2.2.13).

use super::Linux22;
use crate::segment::{Outbox, Segment};
use crate::sender::core::{Ack, AckFlags, Core, Io, Marks, Stack};
use dragstrip_cc::{CaState, CongestionControl};

/// Duplicate ACKs that begin a fast retransmit, and segments of which a SACK may lie ahead.
const DUPLICATES: u32 = 3;

impl Linux22 {
    /// `tcp_ack`.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn process_ack<O: Outbox>(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        io: &mut Io<'_, O>,
    ) {
        self.note_blocks(core, segment);
        let mut ack = Ack::new(core);
        let prior_una = ack.prior_una;
        if segment.ack < prior_una {
            return;
        }
        let (prior_packets, prior_retrans) = (core.view.packets_out, core.view.retrans_out);
        // Data and a wider window are no duplicates.
        let widened = segment.ack + u64::from(segment.window) > core.window_end;
        let plain = segment.ack == prior_una && segment.len == 0 && !widened;
        core.update_window(segment, &mut ack);
        if segment.has_sack() {
            core.sacktag(self, segment, &mut ack);
        }
        let mut acked = 0;
        let mut sample = None;
        if prior_packets > 0 {
            let cleaned = core.clean_queue(self, &mut ack);
            sample = self.take_sample(core, &ack, &cleaned);
            core.report_acked(cleaned.packets, &ack.draft);
            acked = cleaned.packets;
        }
        self.facked = self.facked.saturating_sub(acked);
        self.retrans_out = self.retrans_out.saturating_sub(prior_retrans - core.view.retrans_out);
        if acked > 0 {
            // should_advance_cwnd: not for what a fast retransmit without SACK has repaired.
            let repairs = ack.flags.has(AckFlags::RETRANS_ACKED);
            if !repairs || self.facked > 0 || self.timeouts > 0 {
                let _ = core.cc.cong_avoid(&core.view, &mut core.window, 1);
            }
        }
        self.settle_rtt(core, sample);
        if core.view.packets_out == 0 {
            core.timer.clear();
        } else if acked > 0 {
            self.ack_packets_out(core, io);
        }
        self.fast_retrans(core, plain, prior_una, segment, io);
        self.push_pending(core, io);
    }

    /// `tcp_sacktag_write_queue`: how far the blocks reach, and what they say of retransmissions.
    fn note_blocks(&mut self, core: &mut Core, segment: &Segment) {
        for block in segment.sack() {
            let (start, end) = block.range(segment.ack);
            let beyond = core.board.number_at(end);
            for number in core.board.head()..beyond {
                let sent_segment = core.board.get(number);
                if sent_segment.seq < start {
                    continue;
                }
                if sent_segment.marks.has(Marks::RETRANS) {
                    self.retrans_out = self.retrans_out.saturating_sub(1);
                }
                let reach = (number + 1 - core.board.head()) as u32;
                self.facked = self.facked.max(reach);
            }
        }
    }

    /// `tcp_ack_packets_out`: new data was acknowledged and some is still out.
    fn ack_packets_out<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        if self.timeouts > 0 {
            self.retransmit_queue(core, io);
            core.set_timer_rto();
        } else if let Some(head) = core.board.front() {
            // The timeout counts from when the head was sent.
            let waited = core.ticks_since(head.sent_us);
            let remaining_ticks = core.timer.rto_ticks.saturating_sub(waited).max(1);
            core.set_timer(remaining_ticks);
        }
    }

    /// `tcp_fast_retrans`.
    fn fast_retrans<O: Outbox>(
        &mut self,
        core: &mut Core,
        plain: bool,
        prior_una: u64,
        segment: &Segment,
        io: &mut Io<'_, O>,
    ) {
        let duplicate = plain && core.view.packets_out > 0;
        match self.episode_end {
            None if duplicate => {
                self.duplicates += 1;
                if self.facked > DUPLICATES || self.duplicates == DUPLICATES {
                    self.retransmit_fast(core, io);
                }
            }
            None => self.duplicates = 0,
            Some(_) if duplicate => {
                self.duplicates += 1;
                if self.duplicates > DUPLICATES {
                    if self.facked == 0 {
                        core.window.cwnd = (core.window.cwnd + 1).min(core.window.clamp);
                    } else {
                        self.fack_retransmit(core, io);
                    }
                }
            }
            Some(end) if core.view.snd_una >= end || segment.len > 0 => {
                self.clear_fast_retransmit(core);
                if core.view.snd_una >= end {
                    self.episode_end = None;
                    self.facked = 0;
                    core.set_state(CaState::Open);
                }
            }
            Some(_) if self.duplicates >= DUPLICATES => {
                if self.facked > 0 {
                    self.fack_retransmit(core, io);
                } else if segment.ack > prior_una {
                    // The next hole (RFC 2582).
                    self.retransmit(core, core.board.head(), io);
                    core.set_timer_rto();
                }
            }
            Some(_) => {}
        }
    }

    /// The third duplicate ACK, or SACKs of its worth.
    fn retransmit_fast<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.recalc_ssthresh(core);
        core.window.cwnd = (core.window.ssthresh + DUPLICATES).min(core.window.clamp);
        self.episode_end = Some(core.view.snd_nxt);
        core.set_state(CaState::Recovery);
        if self.facked == 0 {
            self.retransmit(core, core.board.head(), io);
        } else {
            self.fack_retransmit(core, io);
        }
        core.set_timer_rto();
    }

    /// `tcp_recalc_ssthresh`: of what the peer's window lets out of the window.
    pub(super) fn recalc_ssthresh(&mut self, core: &mut Core) {
        let peer = core.window_end.saturating_sub(core.view.snd_una) / u64::from(core.view.mss);
        let usable = core.window.cwnd.min(u32::try_from(peer).unwrap_or(u32::MAX));
        let mut usable_window = core.window.clone();
        usable_window.cwnd = usable;
        core.view.prior_cwnd = core.window.cwnd;
        core.window.ssthresh = core.cc.ssthresh(&core.view, &mut usable_window);
        core.counters.reductions += 1;
    }

    /// `clear_fast_retransmit`.
    fn clear_fast_retransmit(&mut self, core: &mut Core) {
        if self.duplicates > DUPLICATES {
            core.window.cwnd = core.window.ssthresh;
        }
        self.duplicates = 0;
    }
}
