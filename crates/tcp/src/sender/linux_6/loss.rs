//! The retransmission timeout: what it marks lost, F-RTO's judgement of it, a receiver that reneges.
//!
//! Kernel: `tcp_enter_loss`, `tcp_timeout_mark_lost`, `tcp_process_loss`, `tcp_check_sack_reneging` (tcp_input.c). RFC 5682 (F-RTO).

use super::Linux6;
use super::recovery::{Episode, Rexmit};
use super::timers::Pending;
use crate::sender::core::{Ack, AckFlags, Core, Marks};
use dragstrip_cc::{CaState, CongestionControl, Event};
use dragstrip_units::Duration;

impl Linux6 {
    /// `tcp_enter_loss`: the retransmission timer went off.
    pub(super) fn enter_loss(&mut self, core: &mut Core) {
        let new_recovery = core.view.state < CaState::Recovery;
        self.timeout_mark_lost(core);
        let disordered = matches!(core.view.state, CaState::Open | CaState::Disorder);
        if disordered
            || self.linux.high_seq <= core.view.snd_una
            || (core.view.state == CaState::Loss && self.linux.timeouts == 0)
        {
            self.linux.prior_ssthresh = core.window.current_ssthresh(core.view.state);
            core.view.prior_cwnd = core.window.cwnd;
            core.reduce_threshold();
            core.cc.cwnd_event(&core.view, &mut core.window, Event::Loss);
            self.init_undo(core);
        }
        core.window.cwnd = core.in_flight() + 1;
        core.window.cwnd_cnt = 0;
        self.linux.note_window_justified(core);
        if disordered && core.view.sacked_out >= self.linux.reordering {
            self.linux.reordering = self.linux.reordering.min(core.settings.reordering);
        }
        self.set_state(core, CaState::Loss);
        self.linux.high_seq = core.view.snd_nxt;
        self.probe = None;
        core.cwr_pending = core.view.ecn;
        let frto = core.settings.frto && (new_recovery || self.linux.timeouts > 0);
        self.episode = Episode::Loss { frto };
    }

    /// `tcp_timeout_mark_lost` (RFC 8985 §6.3): the head, and whatever was sent longer ago than the last
    /// RTT; younger segments stay in flight. A head that is SACKed means that the receiver reneged: then
    /// no mark is believed and everything is lost.
    fn timeout_mark_lost(&mut self, core: &mut Core) {
        let reneged = core.board.front().is_some_and(|sent| sent.marks.has(Marks::SACKED));
        if reneged {
            self.renege(core);
        } else if !core.settings.sack {
            core.view.sacked_out = 0;
        }
        let head = core.board.head();
        for number in head..core.board.tail() {
            let by_time = core.settings.detects_by_time() && core.settings.sack;
            let may_be_under_way = !reneged && by_time;
            if may_be_under_way && number != head && !self.rack_expired(core, number) {
                continue;
            }
            self.linux.mark_lost(core, number);
        }
    }

    /// True when segment `number` was sent longer ago than the last RTT.
    fn rack_expired(&self, core: &Core, number: u64) -> bool {
        core.now_us() >= core.board.get(number).sent_us + self.rack.rtt_us()
    }

    /// `tcp_process_loss`, with F-RTO's judgement (RFC 5682 §3.1).
    pub(super) fn process_loss(
        &mut self,
        core: &mut Core,
        ack: &mut Ack,
        duplicate: bool,
    ) -> Rexmit {
        let recovered = core.view.snd_una >= self.linux.high_seq;
        if ack.flags.has(AckFlags::ADVANCED) && self.try_undo_loss(core, false) {
            return Rexmit::None;
        }
        if matches!(self.episode, Episode::Loss { frto: true }) {
            // Step 3.b: data sent before the timeout and never retransmitted arrives: spurious.
            if ack.flags.has(AckFlags::ORIG_SACK_ACKED) && self.try_undo_loss(core, true) {
                return Rexmit::None;
            }
            if core.view.snd_nxt > self.linux.high_seq {
                if ack.flags.has(AckFlags::DATA_SACKED) || duplicate {
                    self.episode = Episode::Loss { frto: false };
                }
            } else if ack.flags.has(AckFlags::ADVANCED) && !recovered {
                self.linux.high_seq = core.view.snd_nxt;
                // Step 2.b: try new data.
                if core.unsent() > 0 && core.window_end > core.view.snd_nxt {
                    return Rexmit::New;
                }
                self.episode = Episode::Loss { frto: false };
            }
        }
        if recovered {
            self.try_undo_recovery(core);
            return Rexmit::None;
        }
        if !core.settings.sack {
            if core.view.snd_nxt > self.linux.high_seq && duplicate {
                self.add_reno_sack(core, ack, duplicate);
            } else if ack.flags.has(AckFlags::ADVANCED) {
                core.view.sacked_out = 0;
            }
        }
        Rexmit::Lost
    }

    /// `tcp_check_sack_reneging`: the ACK stops short of data that was SACKed. The receiver gets half a round
    /// trip, at least 10 ms, to say better; then the timeout comes.
    pub(super) fn suspect_reneging(&mut self, core: &mut Core) {
        let half = core.settings.ticks.count_micros_ceil(u64::from(core.view.srtt_us_x8 >> 4));
        let least = core.settings.ticks.count_span_ceil(Duration::from_millis(10));
        self.set_timer(core, Pending::Retransmit, half.max(least));
    }

    /// The receiver dropped data it had SACKed: all marks go.
    fn renege(&mut self, core: &mut Core) {
        core.forget_sacks();
        self.rack.rescan(core.board.head());
    }
}
