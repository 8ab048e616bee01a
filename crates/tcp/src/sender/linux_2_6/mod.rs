//! Linux 2.6.27 and 2.6.38, before RACK and PRR: FACK, the rate halved over the ACKs of a round trip, F-RTO in the place of a
//! timeout's first judgement.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `ack.rs` | one ACK, step by step | `tcp_ack` |
//! | `fack.rs` | what is lost | `tcp_update_scoreboard` ... |
//! | `recovery.rs` | states, rate halving | `tcp_fastretrans_alert` ... |
//! | `undo.rs` | taking a reduction back | `tcp_try_undo_*` |
//! | `frto.rs` | a timeout judged, and believed | `tcp_process_frto`, `tcp_enter_loss` |
//! | `timers.rs` | RTO and window probe | `tcp_timer.c` |
//! | `output.rs` | sends and retransmits within the windows | `tcp_output.c` |
//!
//! Rules that decide its throughput under loss:
//! - a lost retransmission shows only when data sent after it was SACKed, and only in Recovery with FACK; otherwise the
//!   timeout must come;
//! - the window never exceeds what is in flight by more than `reordering` packets while anything is dubious
//!   (`tcp_moderate_cwnd`), so undoing a reduction does not give the window back at once;
//! - what is learnt of reordering turns FACK off, and is thrown away at every timeout down to the setting.
//!
//! Not modelled: retransmission of segments not marked lost while nothing new may be sent (forward
//! retransmission).

mod ack;
mod fack;
mod frto;
mod output;
mod recovery;
mod timers;
mod undo;

use super::core::{Ack, AckFlags, Core, Handshake, Io, Marks, Push, Sent, Stack};
use super::linux::Linux;
use crate::metrics::{Ending, Metrics};
use crate::profile::Settings;
use crate::segment::{Outbox, Segment};
use dragstrip_cc::CaState;
use frto::Frto;
use std::collections::VecDeque;
use timers::Pending;

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    /// Number of the segment.
    number: u64,
    /// Time of transmission, to tell it from a later one.
    sent_us: u64,
    /// `snd_nxt` then: data beyond it was sent later.
    snd_nxt: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Linux26 {
    linux: Linux,
    pending: Pending,
    /// Holes below the highest SACK are taken for losses; off once reordering was seen.
    fack: bool,
    frto: Frto,
    /// Data sent before the timeout that F-RTO judges ends here (`frto_highmark`).
    frto_end: Option<u64>,
    /// In the order of their transmission.
    retransmitted: VecDeque<Retransmission>,
    /// The host's earlier metrics of the peer.
    recalled: Metrics,
}

impl Linux26 {
    pub fn new(settings: &Settings, fack: bool) -> Self {
        Self {
            linux: Linux::new(settings),
            pending: Pending::None,
            fack,
            frto: Frto::Off,
            frto_end: None,
            retransmitted: VecDeque::new(),
            recalled: Metrics::default(),
        }
    }

    /// The RTT of the SYN, a small packet on an empty path, may be far too short: what is known of the path counts if it is more.
    fn recall_rtt(&mut self, core: &mut Core) {
        let Metrics { srtt_us_x8, rttvar_us_x4, .. } = self.recalled;
        if srtt_us_x8 > 0 && core.view.srtt_us_x8 > 0 {
            self.linux.rtt.raise(srtt_us_x8, rttvar_us_x4, core.settings.rto_min_us);
            core.view.srtt_us_x8 = self.linux.rtt.srtt_us_x8;
            self.linux.set_rto(core);
        }
    }
}

impl Stack for Linux26 {
    // tcp_transmit_skb: the window is reduced too.
    const UNSENT_IF_REFUSED: bool = true;

    fn on_established(&mut self, core: &mut Core, handshake: Handshake) {
        self.linux.take_first_rtt(core, handshake.rtt_us);
        self.recall_rtt(core);
        self.linux.start_window(core, handshake.syn_retransmits);
    }

    fn on_ack<O: Outbox>(&mut self, core: &mut Core, segment: &Segment, io: &mut Io<'_, O>) {
        self.process_ack(core, segment, io);
    }

    fn on_timer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.on_pending(core, io);
    }

    fn output<O: Outbox>(&mut self, core: &mut Core, push: Push, io: &mut Io<'_, O>) -> bool {
        self.write_xmit(core, push, io)
    }

    fn on_local_queue_full(&mut self, core: &mut Core) {
        self.enter_cwr(core, true);
    }

    fn takes_outdated(&self, core: &Core, segment: &Segment, age_ms: u32) -> bool {
        Linux::takes_outdated(core, segment, age_ms)
    }

    fn on_wakeup<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        if core.view.lost_out > core.view.retrans_out && core.window.cwnd > core.in_flight() {
            self.retransmit(core, io);
        }
        self.push_pending(core, io);
    }

    #[inline]
    fn check_space(&mut self, core: &mut Core) {
        if core.buffer.blocked {
            // What is out counts, SACKed or not.
            self.linux.check_space(core, core.view.packets_out);
        }
    }

    #[inline]
    fn on_segment_sacked(&mut self, _core: &Core, sent: &Sent, ack: &mut Ack) {
        let original = !sent.marks.has(Marks::EVER_RETRANS);
        if original && self.frto_end.is_some_and(|end| sent.end_seq() <= end) {
            ack.flags.set(AckFlags::ORIG_SACK_ACKED);
        }
    }

    #[inline]
    fn on_duplicate_reported(&mut self, end_seq: u64, segments: u32) {
        self.linux.note_duplicate(end_seq, segments);
    }

    /// `tcp_init_metrics`.
    fn recall(&mut self, core: &mut Core, metrics: Metrics) {
        self.recalled = metrics;
        if metrics.reordering > 0 && metrics.reordering != self.linux.reordering {
            self.linux.reordering = metrics.reordering;
            // tcp_disable_fack: holes are no longer taken for losses.
            self.fack = false;
        }
        if metrics.ssthresh > 0 {
            core.window.ssthresh = metrics.ssthresh.min(core.window.clamp);
        }
    }

    /// `tcp_update_metrics`.
    fn remember(&self, core: &Core, metrics: &mut Metrics) {
        metrics.update(&Ending {
            cwnd: core.window.cwnd,
            ssthresh: core.window.ssthresh,
            open: core.view.state == CaState::Open,
            backed_off: self.linux.timeouts > 0,
            reordering: self.linux.reordering,
            reordering_setting: core.settings.reordering,
            srtt_us_x8: core.view.srtt_us_x8,
            mdev_us_x4: self.linux.rtt.mdev_us_x4(),
        });
    }
}
