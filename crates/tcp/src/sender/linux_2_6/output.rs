//! Output: every segment alone, as far as the windows allow.
//!
//! Kernel: Linux 2.6.27's `tcp_write_xmit`, `tcp_xmit_retransmit_queue`, `tcp_cwnd_validate` (tcp_output.c).

use super::{Linux26, Retransmission};
use crate::segment::Outbox;
use crate::sender::core::{Core, Io, Push};
use crate::sender::linux;

impl Linux26 {
    /// `tcp_write_xmit`: sends new data as far as window and receiver allow. Whether anything was sent.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn write_xmit<O: Outbox>(
        &mut self,
        core: &mut Core,
        push: Push,
        io: &mut Io<'_, O>,
    ) -> bool {
        let prior_packets = core.view.packets_out;
        core.transmission.rwnd_limited = false;
        if prior_packets == 0 {
            self.linux.restart_after_idle(core);
        }
        while core.unsent() > 0 && !core.is_pacing_blocked() {
            let head = linux::sendable(core, push, 1);
            let Some(burst) = head.and_then(|head| linux::one_segment(core, head, push)) else {
                break;
            };
            if !core.send_burst(self, burst, io) || push != Push::Pending {
                break;
            }
        }
        let any_sent = core.view.packets_out > prior_packets;
        if any_sent || core.in_flight() >= core.window.cwnd {
            self.linux.validate_cwnd(core, core.view.packets_out >= core.window.cwnd);
        }
        if any_sent {
            if prior_packets == 0 {
                self.rearm_rto(core);
            }
        } else if core.unsent() > 0 && core.view.packets_out == 0 && core.window.cwnd == 0 {
            self.wait_for_window(core);
        }
        any_sent
    }

    /// `tcp_xmit_retransmit_queue`.
    pub(super) fn retransmit<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        let head = core.board.head();
        let max_segments = linux::max_burst(core);
        let mut rearm = false;
        while let Some((number, segments)) = self.linux.next_lost(core, max_segments) {
            self.retransmit_burst(core, number, segments, io);
            rearm |= number == head;
        }
        if rearm {
            self.rearm_rto(core);
        }
    }

    /// `tcp_retransmit_skb`.
    pub(super) fn retransmit_burst<O: Outbox>(
        &mut self,
        core: &mut Core,
        number: u64,
        segments: u32,
        io: &mut Io<'_, O>,
    ) {
        core.split_after(number + u64::from(segments) - 1);
        core.retransmit(self, number, segments, io);
        core.mark_retransmitted(number, segments);
        self.linux.note_retransmission(core, number, segments);
        let snd_nxt = core.view.snd_nxt;
        for number in number..number + u64::from(segments) {
            let sent_us = core.board.get(number).sent_us;
            self.retransmitted.push_back(Retransmission { number, sent_us, snd_nxt });
        }
    }
}
