//! One ACK, in the order of 2.6.27's `tcp_ack`: growth before loss detection, and only the cumulative ACK makes the window grow.

use super::Linux26;
use super::frto::Frto;
use crate::segment::{Outbox, Segment};
use crate::sender::core::{Ack, AckFlags, Cleaned, Core, Io, Stack};
use crate::ticks::micros;
use dragstrip_cc::{CaState, CongestionControl, Response};

impl Linux26 {
    /// `tcp_ack`.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn process_ack<O: Outbox>(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        io: &mut Io<'_, O>,
    ) {
        core.view.prior_in_flight = core.in_flight();
        core.view.max_burst = self.linux.reordering;
        let mut ack = Ack::new(core);
        let retransmits = if segment.ack < core.view.snd_una {
            self.old_ack(core, segment, &mut ack);
            false
        } else {
            self.new_ack(core, segment, &mut ack)
        };
        if !core.has_cong_control {
            core.update_pacing_rate();
        }
        if retransmits {
            self.retransmit(core, io);
        }
        self.push_pending(core, io);
    }

    /// An ACK from the past: only its SACK blocks tell anything.
    fn old_ack(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) {
        if segment.has_sack() && core.view.packets_out > 0 {
            self.sacktag(core, segment, ack);
            self.mark_lost_retrans(core);
            if core.view.state == CaState::Open {
                self.try_keep_open(core);
            }
        }
    }

    /// An ACK of what is outstanding, or a duplicate. Whether lost segments are to be retransmitted.
    fn new_ack(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) -> bool {
        let prior_packets = core.view.packets_out;
        self.note_blocks(segment, ack);
        core.update_window(segment, ack);
        if ack.flags.has(AckFlags::ADVANCED) {
            self.linux.timeouts = 0;
        }
        if segment.has_sack() {
            self.sacktag(core, segment, ack);
        }
        core.note_ecn_echo(segment, ack);
        if prior_packets == 0 {
            return false;
        }
        if segment.has_sack() {
            self.mark_lost_retrans(core);
        }
        let cleaned = core.clean_queue(self, ack);
        self.take_rtts(core, ack, &cleaned);
        self.settle(core, ack, &cleaned);
        core.report_acked(cleaned.packets, &ack.draft);
        if cleaned.packets > 0 {
            self.rearm_rto(core);
        }
        self.control(core, ack, cleaned.packets)
    }

    /// Notes whether blocks of the ACK reach beyond the episode's end or beyond the data that F-RTO judges.
    fn note_blocks(&self, segment: &Segment, ack: &mut Ack) {
        for block in segment.sack() {
            let (_, end) = block.range(segment.ack);
            if end > self.linux.high_seq {
                ack.flags.set(AckFlags::DATA_LOST);
            }
            if self.frto_end.is_some_and(|mark| end > mark) {
                ack.flags.set(AckFlags::BEYOND_FRTO);
            }
        }
    }

    /// `tcp_sacktag_write_queue`.
    fn sacktag(&mut self, core: &mut Core, segment: &Segment, ack: &mut Ack) {
        core.sacktag(self, segment, ack);
        let judged = self.frto_end.is_some_and(|end| core.view.snd_una <= end);
        let highest = core.highest_sack();
        if (core.view.state != CaState::Loss || self.linux.undo.is_some())
            && !judged
            && ack.reordered_from < highest
        {
            let span = highest - ack.reordered_from;
            self.update_reordering(core, span.div_ceil(u64::from(core.view.mss)) as u32);
        }
    }

    /// The end of `tcp_clean_rtx_queue`: reordering shown by a hole that filled itself.
    fn settle(&mut self, core: &mut Core, ack: &Ack, cleaned: &Cleaned) {
        if cleaned.packets == 0 {
            return;
        }
        let reordered_from = cleaned.first_original;
        if !core.settings.sack {
            self.remove_reno_sacks(core, cleaned.packets);
        } else if reordered_from < ack.prior_highest {
            let span = ack.prior_highest.max(core.highest_sack()) - reordered_from;
            self.update_reordering(core, span.div_ceil(u64::from(core.view.mss)) as u32);
        }
    }

    /// The RTT samples of the ACK, in whole ticks: from the timestamp whenever there is one, nothing from SACKs; the
    /// algorithm is given no sample when anything acknowledged was retransmitted.
    fn take_rtts(&mut self, core: &mut Core, ack: &Ack, cleaned: &Cleaned) {
        let ambiguous = ack.flags.has(AckFlags::RETRANS_ACKED);
        let ca_rtt =
            cleaned.last_us.filter(|_| !ambiguous).map(|sent_us| core.ticks_since(sent_us));
        let ca_rtt = ca_rtt.filter(|&ticks| ticks > 0);
        core.last_rtt_us = if core.cc.about().needs.rtt_stamps {
            let now_us = core.now_us();
            cleaned.last_us.filter(|_| !ambiguous).map(|sent_us| micros(now_us - sent_us))
        } else {
            ca_rtt.map(|ticks| micros(core.settings.ticks.to_micros(ticks)))
        };
        if cleaned.packets == 0 {
            return;
        }
        let seq_rtt_us = match core.echo_age_ms() {
            Some(ms) => u64::from(ms) * 1_000,
            None if ambiguous => return,
            None => match cleaned.first_us {
                Some(sent_us) => core.settings.ticks.to_micros(core.ticks_since(sent_us)),
                None => return,
            },
        };
        // No time at all counts as one tick.
        let seq_rtt_us = micros(seq_rtt_us.max(core.settings.ticks.to_micros(1)));
        core.new_rtt_us = Some(seq_rtt_us);
        self.linux.take_rtt(core, seq_rtt_us, seq_rtt_us, false);
    }

    /// F-RTO, growth, and the state machine if the ACK is dubious. Whether lost segments are to be retransmitted.
    fn control(&mut self, core: &mut Core, ack: &mut Ack, acked: u32) -> bool {
        let flags = ack.flags;
        let judging = self.frto != Frto::Off && self.process_frto(core, flags);
        if self.frto_end.is_some_and(|end| end < core.view.snd_una) {
            self.frto_end = None;
        }
        let dubious = !flags.has(AckFlags::NOT_DUPLICATE)
            || flags.any(AckFlags::DATA_SACKED.with(AckFlags::ECE))
            || core.view.state != CaState::Open;
        let free = !flags.has(AckFlags::ECE) || core.window.cwnd < core.window.ssthresh;
        if flags.has(AckFlags::DATA_ACKED)
            && !judging
            && (!dubious || (free && !core.in_reduction()))
        {
            let response = core.cc.cong_avoid(&core.view, &mut core.window, 1);
            self.linux.note_window_justified(core);
            if response == Response::EnterCwr {
                self.enter_cwr(core, true);
            }
        }
        if dubious { self.alert(core, ack, acked) } else { false }
    }
}
