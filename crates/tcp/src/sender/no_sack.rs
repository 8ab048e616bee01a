//! Recovery without SACK: duplicate ACKs stand for segments that arrived behind a hole (RFC 6582).
//!
//! Kernel: `tcp_is_reno`, `tcp_*_reno_sack*`, `tcp_newreno_mark_lost` (tcp_input.c).

use super::Sender;
use super::ack::Ack;
use super::scoreboard::Marks;
use dragstrip_cc::CaState;

impl Sender {
    /// `tcp_newreno_mark_lost`: without SACK one hole at a time shows.
    pub(super) fn newreno_mark_lost(&mut self, advanced: bool) {
        let threshold_reached =
            self.view.state < CaState::Recovery && self.view.sacked_out >= self.recovery.reordering;
        if threshold_reached || (self.view.state == CaState::Recovery && advanced) {
            let head = self.board.head();
            if !self.board.marks(head).has(Marks::LOST) {
                self.mark_lost(head);
            }
        }
    }

    /// `tcp_add_reno_sack`: a duplicate ACK means that some segment left the network.
    pub(super) fn add_reno_sack(&mut self, ack: &mut Ack, duplicate: bool) {
        if !duplicate {
            return;
        }
        let before = self.view.sacked_out;
        self.view.sacked_out += 1;
        self.limit_reno_sacks(0);
        let arrived = self.view.sacked_out.saturating_sub(before);
        ack.sack_delivered += arrived;
        self.view.delivered += u64::from(arrived);
    }

    /// `tcp_check_reno_reordering`: more duplicates than segments behind the hole mean that the network
    /// reorders or copies, so that as many are waited for as were out before the ACK.
    fn limit_reno_sacks(&mut self, acked: u32) {
        let out = self.view.packets_out;
        let holes = self.view.lost_out.max(1).min(out);
        if self.view.sacked_out + holes > out {
            self.view.sacked_out = out - holes;
            self.recovery.reordering = (out + acked).min(self.settings.max_reordering);
            self.recovery.reordering_seen += 1;
        }
    }

    /// `tcp_remove_reno_sacks`: one of the packets was the hole, the others had been counted as SACKed.
    pub(super) fn remove_reno_sacks(&mut self, packets: u32) {
        let emulated = self.view.sacked_out;
        self.view.delivered += u64::from(packets.saturating_sub(emulated).max(1));
        self.view.sacked_out = emulated.saturating_sub(packets - 1);
        self.limit_reno_sacks(packets);
    }
}
