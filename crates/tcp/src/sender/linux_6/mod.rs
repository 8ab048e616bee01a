//! Linux 4.15 to 6: RACK and tail loss probes find losses, proportional rate reduction shares the reduction out over a round trip,
//! F-RTO and timestamps undo spurious reductions; pacing, small queues and burst sizes say when data leaves.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `accurate.rs` | what accurate ECN's counters tell | `__tcp_accecn_process` |
//! | `ack.rs` | one ACK, step by step | `tcp_ack` |
//! | `progress.rs` | the same where it tells nothing but progress | `tcp_ack` |
//! | `recovery.rs` | states and PRR | `tcp_fastretrans_alert` ... |
//! | `loss.rs` | the timeout, F-RTO, reneging | `tcp_enter_loss`, `tcp_process_loss` |
//! | `undo.rs` | undoing a reduction | `tcp_try_undo_*` |
//! | `rack.rs` | declares losses by time | `tcp_recovery.c` |
//! | `no_sack.rs` | what duplicate ACKs tell without SACK | `tcp_add_reno_sack` ... |
//! | `timers.rs` | RTO, tail loss probe, reordering timer | `tcp_timer.c`, `tcp_send_loss_probe` |
//! | `window_probe.rs` | a window that stays closed | `tcp_send_probe0`, `tcp_ack_probe` |
//! | `marks.rs` | counts ECN marks, tells the algorithm of an ACK | `tcp_count_delivered`, `tcp_in_ack_event` |
//! | `rate.rs` | delivery-rate samples | `tcp_rate_gen` |
//! | `output.rs` | sends and retransmits within window, pacing, TSQ | `tcp_output.c` |
//!
//! The profile says where 4.15 and stable series of 6.1 differ.

mod accurate;
mod ack;
mod loss;
mod marks;
mod no_sack;
mod output;
mod progress;
mod rack;
mod rate;
mod recovery;
mod timers;
mod undo;
mod window_probe;

use super::core::{Ack, Core, Handshake, Io, Push, Sent, Stack};
use super::linux::Linux;
use crate::profile::{SendBuffer, Settings};
use crate::segment::{Outbox, Segment};
use dragstrip_units::Instant;
use marks::MarkHistory;
use output::Device;
use rack::Rack;
use rate::LastRate;
use recovery::{Episode, Rexmit};
use timers::{Pending, Probe};

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(super) struct Linux6 {
    pending: Pending,
    /// Probes of a closed window that doubled the interval (`icsk_backoff`).
    window_probes: u8,
    /// Reordering events seen (`reord_seen`).
    reordering_seen: u32,
    /// End of the round over which `is_cwnd_limited` is remembered (`cwnd_usage_seq`).
    usage_round_ends: u64,
    device: Device,
    last_rate: LastRate,
    linux: Linux,
    rack: Rack,
    probe: Option<Probe>,
    episode: Episode,
    /// Made by the first mark, or with accurate ECN by the first ACK.
    marks: Option<Box<MarkHistory>>,
    /// End of an ACK that waits for an agent's action.
    held: Option<(Rexmit, bool)>,
}

impl Linux6 {
    pub fn new(settings: &Settings) -> Self {
        Self {
            linux: Linux::new(settings),
            rack: Rack::new(),
            pending: Pending::None,
            episode: Episode::None,
            reordering_seen: 0,
            probe: None,
            window_probes: 0,
            usage_round_ends: 0,
            last_rate: LastRate::default(),
            marks: None,
            device: Device::default(),
            held: None,
        }
    }
}

impl Stack for Linux6 {
    // A segment that the local queue drops is as lost as any other.
    const UNSENT_IF_REFUSED: bool = false;

    fn on_established(&mut self, core: &mut Core, handshake: Handshake) {
        // The clock of RTTs stands where it does when an ACK comes (ack.rs); a timestamp's does not.
        let work = u32::from(handshake.syn_retransmits == 0);
        let rtt_us = handshake.rtt_us.map(|us| us.saturating_sub(work).max(1));
        self.linux.take_first_rtt(core, rtt_us);
        self.linux.start_window(core, handshake.syn_retransmits);
    }

    fn on_ack<O: Outbox>(&mut self, core: &mut Core, segment: &Segment, io: &mut Io<'_, O>) {
        self.process_ack(core, Some(segment), io);
    }

    fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    fn release<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        let is_holding = self.is_holding();
        if is_holding {
            self.process_ack(core, None, io);
        }
        is_holding
    }

    fn on_timer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.on_pending(core, io);
    }

    fn output<O: Outbox>(&mut self, core: &mut Core, push: Push, io: &mut Io<'_, O>) -> bool {
        self.write_xmit(core, push, io)
    }

    fn on_local_queue_full(&mut self, _core: &mut Core) {}

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
            self.linux.check_space(core, core.in_flight());
        }
    }

    #[inline]
    fn checks_space_when_sending(&self, core: &Core) -> bool {
        core.settings.profile.send_buffer == SendBuffer::Memory
    }

    #[inline]
    fn on_segment_acked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        self.note_acked(core, sent, ack);
    }

    #[inline]
    fn on_segment_sacked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        self.note_sacked(core, sent, ack);
    }

    #[inline]
    fn on_duplicate_reported(&mut self, end_seq: u64, segments: u32) {
        self.linux.note_duplicate(end_seq, segments);
    }

    #[inline]
    fn on_queued_locally(&mut self, leaves: Instant, bytes: u64) {
        self.device.push(leaves, bytes);
    }

    #[inline]
    fn on_write(&mut self, core: &mut Core) {
        self.check_app_limited(core);
    }

    fn reordering(&self, _core: &Core) -> u32 {
        self.linux.reordering
    }

    fn delivery_bps(&self, core: &Core) -> Option<u64> {
        self.last_rate.bps(core.view.mss)
    }
}
