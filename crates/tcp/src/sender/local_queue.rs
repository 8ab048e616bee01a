//! A full queue of the host's own, as stacks before Linux 3.x and FreeBSD's react to it.
//!
//! Kernel: 2.6.27's `tcp_transmit_skb` (`tcp_enter_cwr`); FreeBSD's `tcp_output` (`ENOBUFS`).

use super::Sender;
use crate::profile::RecoveryStyle;

impl Sender {
    /// The host's own queue had no room for the segment just built. Old stacks notice: it stays unsent, and the
    /// window is reduced. Whether it does; alone it counts as sent, or nothing would ever send it again.
    #[cold]
    pub(super) fn stays_unsent(&mut self) -> bool {
        let reacts = match self.settings.profile.recovery {
            RecoveryStyle::RackPrr | RecoveryStyle::Inflation => false,
            RecoveryStyle::RateHalving { .. } | RecoveryStyle::Bsd => true,
        };
        if !reacts || self.view.packets_out == 0 {
            return false;
        }
        self.board.pop_back();
        self.counters.segments_sent -= 1;
        if self.settings.profile.recovery == RecoveryStyle::Bsd {
            // ENOBUFS: tcp_output.
            self.window.cwnd = 1;
        } else {
            self.enter_cwr_halving(true);
        }
        true
    }
}
