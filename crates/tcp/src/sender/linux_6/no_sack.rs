//! Recovery without SACK: duplicate ACKs stand for segments that arrived behind a hole (RFC 6582).
//!
//! Kernel: `tcp_is_reno`, `tcp_*_reno_sack*`, `tcp_newreno_mark_lost` (tcp_input.c).

use super::Linux6;
use crate::sender::core::{Ack, Core, Marks};
use dragstrip_cc::CaState;

impl Linux6 {
    /// `tcp_newreno_mark_lost`: without SACK one hole at a time shows.
    pub(super) fn newreno_mark_lost(&mut self, core: &mut Core, advanced: bool) {
        let threshold_reached =
            core.view.state < CaState::Recovery && core.view.sacked_out >= self.linux.reordering;
        if threshold_reached || (core.view.state == CaState::Recovery && advanced) {
            let head = core.board.head();
            if !core.board.marks(head).has(Marks::LOST) {
                self.linux.mark_lost(core, head);
            }
        }
    }

    /// `tcp_add_reno_sack`: a duplicate ACK means that some segment left the network.
    pub(super) fn add_reno_sack(&mut self, core: &mut Core, ack: &mut Ack, duplicate: bool) {
        if !duplicate {
            return;
        }
        let before = core.view.sacked_out;
        core.view.sacked_out += 1;
        self.limit_reno_sacks(core, 0);
        let arrived = core.view.sacked_out.saturating_sub(before);
        ack.sack_delivered += arrived;
        core.view.delivered += u64::from(arrived);
    }

    /// `tcp_check_reno_reordering`: more duplicates than segments behind the hole mean that the network
    /// reorders or copies, so that as many are waited for as were out before the ACK.
    fn limit_reno_sacks(&mut self, core: &mut Core, acked: u32) {
        let out = core.view.packets_out;
        let holes = core.view.lost_out.max(1).min(out);
        if core.view.sacked_out + holes > out {
            core.view.sacked_out = out - holes;
            self.linux.reordering = (out + acked).min(core.settings.max_reordering);
            self.reordering_seen += 1;
        }
    }

    /// `tcp_remove_reno_sacks`: one of the packets was the hole, the others had been counted as SACKed.
    pub(super) fn remove_reno_sacks(&mut self, core: &mut Core, packets: u32) {
        let emulated = core.view.sacked_out;
        core.view.delivered += u64::from(packets.saturating_sub(emulated).max(1));
        core.view.sacked_out = emulated.saturating_sub(packets - 1);
        self.limit_reno_sacks(core, packets);
    }
}
