//! The recovery state machine: entering and leaving CWR and Recovery, and the reduction over one round trip.
//!
//! Kernel: `tcp_fastretrans_alert`, `tcp_enter_cwr`, `tcp_enter_recovery`, `tcp_cwnd_reduction` (tcp_input.c). RFC 6937bis (PRR).
//!
//! ```text
//!          SACK or duplicate ACK            something is lost
//!   Open ◀─────────────────────▶ Disorder ───────────────────▶ Recovery
//!     │  ▲                          │                             │ ▲
//!     │  └── high_seq passed ─ CWR ◀┘ ECN echo     high_seq acked │ │ lost again after undo
//!     ▼                                                           ▼ │
//!   timeout from any state ──▶ Loss ── everything acked or spurious ──▶ Open
//! ```

use super::Linux6;
use crate::segment::Outbox;
use crate::sender::core::{Ack, AckFlags, Core, Io, Marks, Push, Stack};
use dragstrip_cc::{CaState, CongestionControl, Event, Window};

/// Memory of the state; `view.state` says more exactly which it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Episode {
    /// Open, Disorder.
    None,
    /// CWR, Recovery.
    Reduction(Prr),
    /// Loss.
    Loss {
        /// F-RTO is judging the timeout.
        frto: bool,
    },
}

impl Episode {
    /// Segments left, new or again.
    pub fn note_sent(&mut self, segments: u32) {
        if let Self::Reduction(prr) = self {
            prr.out += segments;
        }
    }
}

/// Segments since the reduction began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// `prr_delivered`.
    delivered: u32,
    /// `prr_out`.
    out: u32,
}

impl Prr {
    /// `tcp_cwnd_reduction`: proportional rate reduction (RFC 6937bis, Linux 6.1's form).
    pub fn reduce(&mut self, core: &mut Core, delivered: u32, newly_lost: u32, advanced: bool) {
        if delivered == 0 || core.view.prior_cwnd == 0 {
            return;
        }
        self.delivered += delivered;
        let in_flight = i64::from(core.in_flight());
        let room = i64::from(core.window.ssthresh) - in_flight;
        let prr_out = i64::from(self.out);
        let prr_delivered = i64::from(self.delivered);
        let allowed = if room < 0 {
            let prior = i64::from(core.view.prior_cwnd);
            (i64::from(core.window.ssthresh) * prr_delivered + prior - 1) / prior - prr_out
        } else {
            let mut allowed = (prr_delivered - prr_out).max(i64::from(delivered));
            if advanced && newly_lost == 0 {
                allowed += 1;
            }
            allowed.min(room)
        };
        // The first retransmission of an episode goes out whatever the arithmetic says.
        let allowed = allowed.max(i64::from(prr_out == 0));
        core.window.cwnd = (in_flight + allowed).max(1) as u32;
    }
}

/// Transmission after an ACK (`REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rexmit {
    /// Nothing special.
    None,
    /// Lost segments.
    Lost,
    /// New data first: F-RTO wants to see it acknowledged.
    New,
}

impl Linux6 {
    /// `tcp_fastretrans_alert`: called for every ACK that is not plain progress in Open.
    pub(super) fn alert(&mut self, core: &mut Core, ack: &mut Ack, duplicate: bool) -> Rexmit {
        if ack.flags.has(AckFlags::ECE) {
            self.linux.prior_ssthresh = 0;
        }
        if ack.flags.has(AckFlags::RENEGING.with(AckFlags::ADVANCED)) {
            self.suspect_reneging(core);
            ack.flags.clear(AckFlags::SET_TIMER);
            return Rexmit::None;
        }
        if core.view.state == CaState::Open {
            self.linux.retrans_stamp = None;
        } else if core.view.snd_una >= self.linux.high_seq && self.episode_ended(core) {
            return Rexmit::None;
        }
        match core.view.state {
            CaState::Recovery => self.alert_in_recovery(core, ack, duplicate),
            CaState::Loss => self.alert_in_loss(core, ack, duplicate),
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                self.alert_before_recovery(core, ack, duplicate)
            }
        }
    }

    /// Step D: `high_seq` is acknowledged. Whether the ACK needs no more attention.
    fn episode_ended(&mut self, core: &mut Core) -> bool {
        match core.view.state {
            // RFC 3168 wants a full window to pass, hence strictly beyond high_seq.
            CaState::Cwr => {
                if core.view.snd_una != self.linux.high_seq {
                    self.end_reduction(core);
                    self.set_state(core, CaState::Open);
                }
            }
            CaState::Recovery => {
                if !core.settings.sack {
                    core.view.sacked_out = 0;
                }
                if self.try_undo_recovery(core) {
                    return true;
                }
                self.end_reduction(core);
            }
            CaState::Open | CaState::Disorder | CaState::Loss => {}
        }
        false
    }

    fn alert_in_recovery(&mut self, core: &mut Core, ack: &mut Ack, duplicate: bool) -> Rexmit {
        if !ack.flags.has(AckFlags::ADVANCED) {
            if !core.settings.sack {
                self.add_reno_sack(core, ack, duplicate);
            }
        } else if self.try_undo_partial(core, ack) {
            return Rexmit::None;
        }
        if self.try_undo_dsack(core) {
            self.try_to_open(core, ack);
        }
        self.identify_loss(core, ack);
        if core.view.state != CaState::Recovery {
            if core.view.lost_out == 0 {
                return Rexmit::None;
            }
            self.enter_recovery(core, ack.flags.has(AckFlags::ECE));
        }
        Rexmit::Lost
    }

    fn alert_in_loss(&mut self, core: &mut Core, ack: &mut Ack, duplicate: bool) -> Rexmit {
        let rexmit = self.process_loss(core, ack, duplicate);
        self.identify_loss(core, ack);
        if core.view.state != CaState::Open && !ack.flags.has(AckFlags::LOST_RETRANS) {
            return rexmit;
        }
        self.alert_before_recovery(core, ack, duplicate)
    }

    fn alert_before_recovery(&mut self, core: &mut Core, ack: &mut Ack, duplicate: bool) -> Rexmit {
        if !core.settings.sack {
            if ack.flags.has(AckFlags::ADVANCED) {
                core.view.sacked_out = 0;
            }
            self.add_reno_sack(core, ack, duplicate);
        }
        if matches!(core.view.state, CaState::Open | CaState::Disorder) {
            self.try_undo_dsack(core);
        }
        self.identify_loss(core, ack);
        if core.view.lost_out == 0 {
            self.try_to_open(core, ack);
            return Rexmit::None;
        }
        self.enter_recovery(core, ack.flags.has(AckFlags::ECE));
        Rexmit::Lost
    }

    /// `tcp_identify_packet_loss`.
    fn identify_loss(&mut self, core: &mut Core, ack: &mut Ack) {
        if core.board.is_empty() {
            return;
        }
        if !core.settings.sack {
            self.newreno_mark_lost(core, ack.flags.has(AckFlags::ADVANCED));
        } else if core.settings.detects_by_time() {
            let retrans_out = core.view.retrans_out;
            if self.rack_mark_lost(core) {
                ack.flags.clear(AckFlags::SET_TIMER);
            }
            if retrans_out > core.view.retrans_out {
                ack.flags.set(AckFlags::LOST_RETRANS);
            }
        } else if core.view.sacked_out >= self.linux.reordering {
            self.mark_head_lost(core);
        }
    }

    /// RFC 6675 without RACK (`tcp_mark_head_lost`): everything more than `reordering` SACKed segments
    /// below the highest SACK.
    fn mark_head_lost(&mut self, core: &mut Core) {
        let mut above = core.view.sacked_out;
        for number in core.board.head()..core.board.tail() {
            if above < self.linux.reordering {
                break;
            }
            let marks = core.board.marks(number);
            if marks.has(Marks::SACKED) {
                above -= 1;
            } else if !marks.has(Marks::LOST) {
                self.linux.mark_lost(core, number);
            }
        }
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, core: &mut Core, ack: &Ack) {
        self.forget_old_retransmissions(core);
        if ack.flags.has(AckFlags::ECE) {
            self.enter_cwr(core);
        }
        if core.view.state != CaState::Cwr {
            self.try_keep_open(core);
        }
    }

    /// `tcp_try_keep_open`.
    pub(super) fn try_keep_open(&mut self, core: &mut Core) {
        let state =
            if core.view.sacked_out + core.view.lost_out > 0 || self.any_retransmission_out(core) {
                CaState::Disorder
            } else {
                CaState::Open
            };
        if core.view.state != state {
            self.set_state(core, state);
            self.linux.high_seq = core.view.snd_nxt;
        }
    }

    /// `tcp_any_retrans_done`.
    pub(super) fn any_retransmission_out(&self, core: &Core) -> bool {
        core.view.retrans_out > 0
            || core.board.front().is_some_and(|sent| sent.marks.has(Marks::EVER_RETRANS))
    }

    /// `tcp_set_ca_state`.
    pub(super) fn set_state(&mut self, core: &mut Core, state: CaState) {
        core.set_state(state);
        if matches!(state, CaState::Open | CaState::Disorder) {
            self.episode = Episode::None;
        }
    }

    /// `tcp_enter_cwr`: reduce without anything lost (ECN echo, local drop, the algorithm's wish).
    pub(super) fn enter_cwr(&mut self, core: &mut Core) {
        self.linux.prior_ssthresh = 0;
        if matches!(core.view.state, CaState::Open | CaState::Disorder) {
            self.linux.undo = None;
            self.init_reduction(core);
            self.set_state(core, CaState::Cwr);
        }
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, core: &mut Core, ece: bool) {
        if core.settings.profile.undoes_before_retransmitting {
            self.forget_old_retransmissions(core);
        }
        self.linux.prior_ssthresh = 0;
        self.init_undo(core);
        if !core.in_reduction() {
            if !ece {
                self.linux.prior_ssthresh = core.window.current_ssthresh(core.view.state);
            }
            self.init_reduction(core);
        }
        self.set_state(core, CaState::Recovery);
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn init_reduction(&mut self, core: &mut Core) {
        self.linux.high_seq = core.view.snd_nxt;
        self.probe = None;
        core.window.cwnd_cnt = 0;
        core.view.prior_cwnd = core.window.cwnd;
        self.episode = Episode::Reduction(Prr::default());
        core.reduce_threshold();
        core.cwr_pending = core.view.ecn;
    }

    /// `tcp_end_cwnd_reduction`.
    pub(super) fn end_reduction(&mut self, core: &mut Core) {
        if core.has_cong_control {
            return;
        }
        if core.window.ssthresh < Window::INFINITE
            && (core.view.state == CaState::Cwr || self.linux.undo.is_some())
        {
            core.window.cwnd = core.window.ssthresh;
            self.linux.note_window_justified(core);
        }
        core.cc.cwnd_event(&core.view, &mut core.window, Event::CompleteCwr);
    }

    /// `tcp_xmit_recovery`: sends what the state machine decided on.
    pub(super) fn xmit_recovery<O: Outbox>(
        &mut self,
        core: &mut Core,
        rexmit: Rexmit,
        io: &mut Io<'_, O>,
    ) {
        match rexmit {
            Rexmit::None => {}
            Rexmit::New => {
                self.output(core, Push::Pending, io);
                if core.view.snd_nxt <= self.linux.high_seq {
                    self.episode = Episode::Loss { frto: false };
                    self.retransmit(core, io);
                }
            }
            Rexmit::Lost => self.retransmit(core, io),
        }
    }
}
