//! Output: retransmissions, new data; and the timeout (`tcp_snd_test`, tcp.h; `tcp_xmit_retransmit_queue`,
//! `tcp_fack_retransmit`, tcp_output.c of 2.2.10; `tcp_retransmit_timer`, tcp_timer.c).

use super::Linux22;
use crate::segment::Outbox;
use crate::sender::core::{Core, Io, Marks};
use dragstrip_cc::{CaState, CongestionControl, Event};

impl Linux22 {
    /// `tcp_write_xmit`: new data. Whether anything was sent.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn write_xmit<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        let before = core.view.snd_nxt;
        core.transmission.rwnd_limited = false;
        while self.snd_test(core) {
            let burst = core.one_segment();
            core.send_burst(self, burst, io);
        }
        let any_sent = core.view.snd_nxt > before;
        if any_sent && !core.timer.is_set() {
            core.set_timer_rto();
        }
        any_sent
    }

    /// `tcp_snd_test`: nothing new after a timeout; what is shorter than half a segment waits for all that is out.
    fn snd_test(&mut self, core: &mut Core) -> bool {
        if core.unsent() == 0
            || self.timeouts > 0
            || self.packets_in_flight(core) >= core.window.cwnd
        {
            return false;
        }
        let bytes = core.one_segment().bytes;
        if core.view.snd_nxt + bytes > core.window_end {
            core.transmission.rwnd_limited = true;
            return false;
        }
        let short = bytes < u64::from(core.view.mss / 2);
        !short || core.view.packets_out == 0 || core.settings.nodelay
    }

    /// `tcp_retransmit_skb`.
    pub(super) fn retransmit<O: Outbox>(
        &mut self,
        core: &mut Core,
        number: u64,
        io: &mut Io<'_, O>,
    ) {
        core.retransmit(self, number, 1, io);
        core.mark_retransmitted(number, 1);
        self.retrans_out += 1;
    }

    /// `tcp_xmit_retransmit_queue`: what was out at the timeout, as far as the window allows for retransmissions.
    pub(super) fn retransmit_queue<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.next = self.next.max(core.board.head());
        while self.next < core.board.tail() {
            let number = self.next;
            self.next += 1;
            if core.board.marks(number).has(Marks::SACKED) {
                continue;
            }
            self.retransmit(core, number, io);
            if self.retrans_out >= core.window.cwnd {
                break;
            }
        }
    }

    /// `tcp_fack_retransmit`: what is neither SACKed nor retransmitted below the highest SACK; one at least.
    pub(super) fn fack_retransmit<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        let end = core.board.tail().min(core.board.head() + u64::from(self.facked));
        for number in core.board.head()..end {
            if core.board.marks(number).any(Marks::SACKED.with(Marks::RETRANS)) {
                continue;
            }
            self.retransmit(core, number, io);
            if self.packets_in_flight(core) >= core.window.cwnd {
                break;
            }
        }
    }

    /// `tcp_packets_in_flight`.
    fn packets_in_flight(&self, core: &Core) -> u32 {
        core.view.packets_out.saturating_sub(self.facked) + self.retrans_out
    }

    /// `tcp_retransmit_timer`.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn on_timeout<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.timer.clear();
        if core.view.packets_out == 0 {
            return;
        }
        core.counters.rto_count += 1;
        core.forget_sacks();
        core.forget_retransmissions();
        let head = core.board.head();
        self.next = head;
        self.facked = 0;
        self.retrans_out = 0;
        if self.timeouts == 0 {
            self.recalc_ssthresh(core);
            core.window.cwnd_cnt = 0;
            core.window.cwnd = 1;
            core.cc.cwnd_event(&core.view, &mut core.window, Event::Loss);
        }
        self.timeouts += 1;
        self.duplicates = 0;
        self.episode_end = Some(core.view.snd_nxt);
        core.set_state(CaState::Loss);
        self.retransmit(core, head, io);
        self.doublings += 1;
        core.back_off();
        core.set_timer_rto();
    }
}
