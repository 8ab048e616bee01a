//! Output: holes, retransmissions after a timeout, new data; and the timeout (`tcp_output`, `tcp_sack_output`,
//! `tcp_timer_rexmt`).

use super::ack::window_bytes;
use super::{Before, Freebsd9};
use crate::segment::Outbox;
use crate::sender::core::{Core, Io, Marks};
use dragstrip_cc::{CaState, CongestionControl, Event};

impl Freebsd9 {
    /// `tcp_output`: holes, what a timeout has to retransmit, new data. Whether anything new was sent.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn tcp_output<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        self.restart_after_idle(core);
        let before = core.view.snd_nxt;
        let repairing = core.settings.sack && core.view.state == CaState::Recovery;
        core.transmission.rwnd_limited = false;
        let mut sent_any = false;
        loop {
            self.skip_sacked(core);
            if repairing
                && core.view.retrans_out < core.window.cwnd
                && let Some(number) = self.next_hole(core)
            {
                self.retransmit(core, number, io);
            } else if self.next < core.board.tail() {
                if self.next - core.board.head() >= u64::from(core.window.cwnd) {
                    break;
                }
                self.retransmit(core, self.next, io);
                self.next += 1;
            } else if self.may_send(core, repairing) {
                self.time_segment(core);
                let burst = core.one_segment();
                if !core.send_burst(self, burst, io) {
                    break;
                }
                self.next = core.board.tail();
            } else {
                break;
            }
            sent_any = true;
        }
        if core.view.state == CaState::Loss && self.next >= core.board.tail() {
            core.set_state(CaState::Open);
        }
        if sent_any && !core.timer.is_set() {
            core.set_timer_rto();
        }
        self.grow_send_buffer(core);
        core.view.snd_nxt > before
    }

    /// Sends segment `number` again, and remembers it as lost and repaired.
    pub(super) fn retransmit<O: Outbox>(
        &mut self,
        core: &mut Core,
        number: u64,
        io: &mut Io<'_, O>,
    ) {
        core.retransmit(self, number, 1, io);
        let marks = core.board.marks_mut(number);
        if !marks.has(Marks::RETRANS) {
            marks.set(Marks::LOST.with(Marks::RETRANS));
            core.view.lost += 1;
            core.view.lost_out += 1;
            core.view.retrans_out += 1;
        }
    }

    /// `tcp_sack_output`: the first segment below the highest SACK, and below the end of the recovery, that was neither
    /// SACKed nor retransmitted in it.
    fn next_hole(&self, core: &Core) -> Option<u64> {
        let end = core.highest_sack().min(self.recover);
        (core.board.head()..core.board.tail())
            .take_while(|&number| core.board.get(number).seq < end)
            .find(|&number| !core.board.marks(number).any(Marks::SACKED.with(Marks::RETRANS)))
    }

    /// `tcp_sack_adjust`: what was SACKed since the timeout is not retransmitted.
    fn skip_sacked(&mut self, core: &mut Core) {
        while self.next < core.board.tail() && core.board.marks(self.next).has(Marks::SACKED) {
            self.next += 1;
        }
    }

    /// True when a new segment may go: congestion window, peer's window, and no short segment while others are out.
    fn may_send(&mut self, core: &mut Core, repairing: bool) -> bool {
        let out = if repairing && core.view.retrans_out > 0 {
            self.new_segments(core) + core.view.retrans_out
        } else {
            core.view.packets_out
        };
        let unsent = core.unsent();
        if unsent == 0 || out >= core.window.cwnd {
            return false;
        }
        let mss = u64::from(core.view.mss);
        let room = core.room();
        if room < mss.min(unsent) {
            core.transmission.rwnd_limited = true;
            return false;
        }
        unsent >= mss || core.view.packets_out == 0 || core.settings.nodelay
    }

    /// Without timestamps one segment at a time is timed.
    fn time_segment(&mut self, core: &mut Core) {
        if !core.settings.timestamps && self.timed.is_none() {
            self.timed = Some((core.view.snd_nxt, core.tick()));
        }
    }

    fn grow_send_buffer(&mut self, core: &mut Core) {
        let (una, nxt) = (core.view.snd_una, core.view.snd_nxt);
        let window = window_bytes(core).min(self.peer_window);
        core.buffer.grow_by_step(self.peer_window, window, una, nxt);
    }

    /// `newreno_after_idle`: after a timeout's length of silence the window is no larger than the initial one.
    fn restart_after_idle(&mut self, core: &mut Core) {
        let silent = core.tick().saturating_sub(self.heard_at);
        if core.view.packets_out == 0 && core.view.snd_nxt > 0 && silent >= core.timer.rto_ticks {
            core.window.cwnd = core.window.cwnd.min(core.settings.initial_cwnd);
            core.cc.cwnd_event(&core.view, &mut core.window, Event::CwndRestart);
        }
    }

    /// `tcp_timer_rexmt`.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn on_timeout<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        core.timer.clear();
        if core.view.packets_out == 0 {
            return;
        }
        core.counters.rto_count += 1;
        self.timeouts += 1;
        let half_rtt = self.rtt.srtt_x32() >> 6;
        self.before = (self.timeouts == 1).then(|| Before {
            cwnd: core.window.cwnd,
            ssthresh: core.window.ssthresh,
            high_seq: self.recover,
            state: core.view.state,
            until_tick: core.tick() + half_rtt,
        });
        core.forget_sacks();
        core.forget_retransmissions();
        self.set_rto(core);
        self.next = core.board.head();
        self.duplicates = 0;
        self.timed = None;
        self.recover = core.view.snd_nxt;
        let usable = core.window.cwnd.min((self.peer_window / u64::from(core.view.mss)) as u32);
        core.view.prior_cwnd = core.window.cwnd;
        core.window.ssthresh = (usable / 2).max(2);
        core.window.cwnd = 1;
        core.counters.reductions += 1;
        core.cc.cwnd_event(&core.view, &mut core.window, Event::Loss);
        core.set_state(CaState::Loss);
        self.tcp_output(core, io);
        core.set_timer_rto();
    }
}
