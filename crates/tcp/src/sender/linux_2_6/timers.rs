//! Retransmission timeout and window probe: one timer, two meanings.
//!
//! Kernel: `tcp_retransmit_timer`, `tcp_rearm_rto`, `tcp_check_probe_timer`.

use super::Linux26;
use crate::segment::Outbox;
use crate::sender::core::{Core, Io, Push, Stack};

/// Purpose of the timer (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// Not set.
    None,
    /// Retransmission timeout.
    Retransmit,
    /// Nothing is in flight and nothing may go (`ICSK_TIME_PROBE0`).
    Window,
}

impl Linux26 {
    fn set_timer(&mut self, core: &mut Core, pending: Pending) {
        self.pending = pending;
        core.set_timer_rto();
    }

    fn clear_timer(&mut self, core: &mut Core) {
        self.pending = Pending::None;
        core.timer.clear();
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm_rto(&mut self, core: &mut Core) {
        if core.view.packets_out == 0 {
            self.clear_timer(core);
        } else {
            self.set_timer(core, Pending::Retransmit);
        }
    }

    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn on_pending<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => core.timer.clear(),
            Pending::Retransmit => self.on_timeout(core, io),
            Pending::Window => self.probe_window(core, io),
        }
    }

    /// `tcp_retransmit_timer`.
    fn on_timeout<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.timer.clear();
        if core.view.packets_out == 0 {
            return;
        }
        core.counters.rto_count += 1;
        self.time_out(core);
        self.linux.timeouts += 1;
        self.retransmit_burst(core, core.board.head(), 1, io);
        core.back_off();
        self.set_timer(core, Pending::Retransmit);
    }

    /// `tcp_check_probe_timer`: with nothing in flight no ACK would ever let the next segment go. A window of no packets at all
    /// is what `tcp_moderate_cwnd` leaves where `reordering` is 0.
    #[cold]
    pub(super) fn wait_for_window(&mut self, core: &mut Core) {
        if self.pending == Pending::None {
            self.set_timer(core, Pending::Window);
        }
    }

    /// `tcp_send_probe0`, `tcp_write_wakeup`: one segment, whatever the congestion window says.
    fn probe_window<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.timer.clear();
        if core.view.packets_out == 0 {
            self.output(core, Push::Probe, io);
        }
    }
}
