//! A window that stays closed is probed (RFC 9293 §3.8.6.1), at intervals that double.
//!
//! Kernel: `tcp_check_probe_timer`, `tcp_ack_probe`, `tcp_probe_timer`, `tcp_send_probe0`, `tcp_write_wakeup`, `tcp_xmit_probe_skb`.

use super::Linux6;
use super::timers::Pending;
use crate::ecn::Carries;
use crate::segment::Outbox;
use crate::sender::core::{Burst, Core, Io};

/// `ilog2(TCP_RTO_MAX / TCP_RTO_MIN) + 1`: the interval doubles no more often.
const DOUBLINGS_MAX: u8 = 10;

impl Linux6 {
    /// `tcp_probe0_when`, without the doublings: `tcp_probe0_base`. What waits for the pacer needs no probe before it may go
    /// (`tcp_pacing_delay` in `tcp_reset_xmit_timer`).
    fn probe_interval(core: &Core, doublings: u8) -> u64 {
        let least = core.settings.ticks.count_micros_ceil(u64::from(core.settings.rto_min_us));
        let paced = core.settings.ticks.count_span_floor(core.view.departure.since(core.view.now));
        (core.timer.rto_ticks.max(least) << doublings.min(DOUBLINGS_MAX)) + paced
    }

    /// `tcp_check_probe_timer`: data wait, none are out, and so no ACK will come that would let them go.
    #[cold]
    pub(super) fn wait_for_window(&mut self, core: &mut Core) {
        if self.pending != Pending::Window {
            self.set_timer(core, Pending::Window, Self::probe_interval(core, 0));
        }
    }

    /// `tcp_ack_probe`: an ACK came while nothing was out. If the window has opened for the first unsent buffer, nothing is
    /// probed any more; if not, the next probe counts from here.
    pub(super) fn answer_to_probe(&mut self, core: &mut Core) {
        let Some((end, _)) = core.buffer.head(core.view.snd_nxt) else { return };
        if end <= core.window_end {
            self.window_probes = 0;
            if self.pending == Pending::Window {
                self.clear_timer(core);
            }
        } else {
            self.set_timer(core, Pending::Window, Self::probe_interval(core, self.window_probes));
        }
    }

    /// `tcp_probe_timer`, `tcp_send_probe0`.
    pub(super) fn probe_window<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.clear_timer(core);
        if core.view.packets_out > 0 || core.unsent() == 0 {
            self.window_probes = 0;
            return;
        }
        self.wake_peer(core, io);
        if core.view.packets_out > 0 {
            self.window_probes = 0;
            self.rearm_rto(core);
            return;
        }
        self.window_probes = (self.window_probes + 1).min(DOUBLINGS_MAX);
        self.set_timer(core, Pending::Window, Self::probe_interval(core, self.window_probes));
    }

    /// `tcp_write_wakeup`: as much of a segment as there is room for, pushed; or, if there is none, an ACK that the peer
    /// must answer, as it lies before what it expects.
    fn wake_peer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        let room = core.room();
        if room == 0 {
            let seq = core.view.snd_una.wrapping_sub(1);
            let probe = io.receiver.acknowledgement(core.view.now, seq);
            io.out.send(&probe, core.codepoint(Carries::Ack), core.view.now);
            return;
        }
        let bytes = core.one_segment().bytes.min(room);
        core.send_burst(self, Burst { segments: 1, bytes, pushed: true }, io);
    }
}
