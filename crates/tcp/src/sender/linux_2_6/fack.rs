//! Loss detection: forward acknowledgement, or as many duplicates as reordering may explain; and lost retransmissions.
//!
//! Kernel: Linux 2.6.27's `tcp_time_to_recover`, `tcp_update_scoreboard`, `tcp_mark_lost_retrans` (tcp_input.c). Mathis and Mahdavi,
//! "Forward Acknowledgement", SIGCOMM 1996.

use super::frto::Frto;
use super::{Linux26, Retransmission};
use crate::sender::core::{Core, Marks};
use dragstrip_cc::CaState;

impl Linux26 {
    /// FACK holds: with SACK, and no reordering seen.
    #[inline]
    pub(super) fn is_fack(&self, core: &Core) -> bool {
        self.fack && core.settings.sack
    }

    /// `tcp_fackets_out`: segments from the head up to the highest one SACKed; without SACK, duplicate ACKs and the
    /// hole.
    pub(super) fn fackets_out(&self, core: &Core) -> u32 {
        if !core.settings.sack {
            return core.view.sacked_out + 1;
        }
        if core.view.sacked_out == 0 {
            return 0;
        }
        (core.board.number_at(core.highest_sack()) - core.board.head()) as u32
    }

    /// `tcp_update_reordering`: reordering of `distance` packets was seen.
    pub(super) fn update_reordering(&mut self, core: &mut Core, distance: u32) {
        if distance > self.linux.reordering {
            // Less than before, when the setting was above the cap.
            self.linux.reordering = distance.min(core.settings.max_reordering);
            self.fack = false;
        }
    }

    /// `tcp_head_timedout`: the head was sent longer ago than the timeout, which is restarted by every ACK.
    pub(super) fn is_head_timed_out(&self, core: &Core) -> bool {
        core.board.front().is_some_and(|sent| self.is_timed_out(core, sent.sent_us))
    }

    fn is_timed_out(&self, core: &Core, sent_us: u64) -> bool {
        core.ticks_since(sent_us) > core.timer.rto_ticks
    }

    /// `tcp_time_to_recover`.
    pub(super) fn time_to_recover(&self, core: &Core) -> bool {
        if self.frto != Frto::Off {
            return false;
        }
        if core.view.lost_out > 0 {
            return true;
        }
        let duplicates =
            if self.is_fack(core) { self.fackets_out(core) } else { core.view.sacked_out + 1 };
        if duplicates > self.linux.reordering
            || (self.is_fack(core) && self.is_head_timed_out(core))
        {
            return true;
        }
        // A short window with nothing more to send gets no further duplicates.
        let packets_out = core.view.packets_out;
        packets_out <= self.linux.reordering
            && core.view.sacked_out >= (packets_out / 2).max(core.settings.reordering)
            && !self.may_send_now(core)
    }

    /// `tcp_may_send_now`.
    pub(super) fn may_send_now(&self, core: &Core) -> bool {
        let unsent = core.unsent();
        let room = core.room();
        unsent > 0
            && core.in_flight() < core.window.cwnd
            && room >= unsent.min(u64::from(core.view.mss))
    }

    /// `tcp_skb_mark_lost`: a segment with a retransmission in flight stays as it is.
    fn mark_lost_once(&mut self, core: &mut Core, number: u64) {
        if !core.board.marks(number).any(Marks::SACKED.with(Marks::LOST)) {
            self.linux.mark_lost(core, number);
        }
    }

    /// `tcp_mark_head_lost`: from the head, as far as `packets` reach, but not beyond the episode. FACK counts every
    /// segment, otherwise those that were SACKed count.
    pub(super) fn mark_head_lost(&mut self, core: &mut Core, packets: u32) {
        let mut count = 0;
        for number in core.board.head()..core.board.tail() {
            let segment = core.board.get(number);
            if segment.end_seq() > self.linux.high_seq {
                break;
            }
            if self.is_fack(core) || !core.settings.sack || segment.marks.has(Marks::SACKED) {
                count += 1;
            }
            if count > packets {
                break;
            }
            self.mark_lost_once(core, number);
        }
    }

    /// `tcp_update_scoreboard`, `tcp_timeout_skbs`.
    pub(super) fn update_scoreboard(&mut self, core: &mut Core, fast_retransmit: bool) {
        if !core.settings.sack {
            self.mark_head_lost(core, 1);
            let most = core.view.packets_out - core.view.lost_out;
            core.view.sacked_out = core.view.sacked_out.min(most);
            return;
        }
        if self.is_fack(core) {
            let beyond = self.fackets_out(core).saturating_sub(self.linux.reordering);
            self.mark_head_lost(core, beyond.max(1));
        } else {
            let beyond = core.view.sacked_out.saturating_sub(self.linux.reordering);
            self.mark_head_lost(core, beyond.max(u32::from(fast_retransmit)));
        }
        if !self.is_fack(core) || !self.is_head_timed_out(core) {
            return;
        }
        for number in core.board.head()..core.board.tail() {
            if !self.is_timed_out(core, core.board.get(number).sent_us) {
                break;
            }
            self.mark_lost_once(core, number);
        }
    }

    /// `tcp_mark_lost_retrans`: a retransmission is lost when data sent after it was SACKed.
    pub(super) fn mark_lost_retrans(&mut self, core: &mut Core) {
        if !self.is_fack(core) || core.view.state != CaState::Recovery {
            return;
        }
        let received = core.highest_sack();
        while let Some(&Retransmission { number, sent_us, snd_nxt }) = self.retransmitted.front() {
            let live = number >= core.board.head() && {
                let segment = core.board.get(number);
                segment.sent_us == sent_us && segment.marks.has(Marks::RETRANS)
            };
            if live {
                if received <= snd_nxt {
                    break;
                }
                let marks = core.board.marks_mut(number);
                marks.clear(Marks::RETRANS);
                core.view.retrans_out -= 1;
                self.mark_lost_once(core, number);
                self.linux.retransmit_from(number);
            }
            self.retransmitted.pop_front();
        }
    }

    /// `tcp_add_reno_sack`.
    pub(super) fn add_reno_sack(&mut self, core: &mut Core) {
        core.view.sacked_out += 1;
        self.check_reno_reordering(core, 0);
    }

    /// `tcp_remove_reno_sacks`: one of the packets was the hole, the others take duplicate ACKs with them.
    pub(super) fn remove_reno_sacks(&mut self, core: &mut Core, acked: u32) {
        core.view.sacked_out = core.view.sacked_out.saturating_sub(acked - 1);
        self.check_reno_reordering(core, acked);
    }

    /// `tcp_check_reno_reordering`: more duplicate ACKs than segments that can have caused them.
    fn check_reno_reordering(&mut self, core: &mut Core, acked: u32) {
        let holes = core.view.lost_out.max(1).min(core.view.packets_out);
        if core.view.sacked_out + holes > core.view.packets_out {
            core.view.sacked_out = core.view.packets_out - holes;
            self.update_reordering(core, core.view.packets_out + acked);
        }
    }
}
