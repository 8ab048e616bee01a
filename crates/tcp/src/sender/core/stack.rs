//! Interface of a stack: its entry points, and the parts of them that are the same for all.

use super::{Ack, Core, Io, Sent, Wrote};
use crate::metrics::Metrics;
use crate::segment::{Outbox, Segment};
use dragstrip_units::Instant;

/// Why data is pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Push {
    /// Whatever the window allows.
    Pending,
    /// One burst of it (`tcp_push_one`).
    One,
    /// One segment beyond the window: a tail loss probe, or a probe of a window without packets.
    Probe,
}

/// The handshake as the sender sees it.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Handshake {
    /// RTT of the SYN, µs, if it is known.
    pub rtt_us: Option<u32>,
    /// Number of retransmissions of the SYN or SYN-ACK.
    pub syn_retransmits: u32,
    /// The window that its last segment offered, bytes.
    pub window: u32,
}

/// Behaviour of a kernel's TCP on the core that is lent to it.
pub(in crate::sender) trait Stack: Sized {
    /// A segment that the host's own queue refuses stays unsent, and [`Self::on_local_queue_full`] is called.
    const UNSENT_IF_REFUSED: bool;

    /// The connection is open; the algorithm has not begun yet.
    fn on_established(&mut self, core: &mut Core, handshake: Handshake);

    /// An ACK of nothing beyond `snd_nxt` has arrived; whatever it allows is sent.
    fn on_ack<O: Outbox>(&mut self, core: &mut Core, segment: &Segment, io: &mut Io<'_, O>);

    /// True when what an ACK has released waits for an agent's action.
    fn is_holding(&self) -> bool {
        false
    }

    /// Sends what an ACK has released that was held for an agent's action. Returns false if none is held.
    fn release<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        let _ = (core, io);
        false
    }

    /// The timer has gone off.
    fn on_timer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>);

    /// Sends what may go, new data last. Whether any new data was sent.
    fn output<O: Outbox>(&mut self, core: &mut Core, push: Push, io: &mut Io<'_, O>) -> bool;

    /// The host's own queue had no room for a segment, which stays unsent.
    fn on_local_queue_full(&mut self, core: &mut Core);

    /// True when a pure ACK whose timestamp is `age_ms` older than the last one is still accepted.
    fn takes_outdated(&self, core: &Core, segment: &Segment, age_ms: u32) -> bool;

    /// The pacer or the local queue has room again.
    fn on_wakeup<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.push_pending(core, io);
    }

    /// Memory was freed, or something was sent: a writer that waits for room is woken if there is enough.
    #[inline]
    fn check_space(&mut self, core: &mut Core) {
        if core.buffer.blocked {
            core.poll_writer();
        }
    }

    /// True when [`Self::output`] has done so after its last transmission.
    #[inline]
    fn checks_space_when_sending(&self, core: &Core) -> bool {
        let _ = core;
        false
    }

    /// The application begins a write.
    #[inline]
    fn on_write(&mut self, core: &mut Core) {
        let _ = core;
    }

    /// A segment was cumulatively acknowledged that was not SACKed before.
    #[inline]
    fn on_segment_acked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        let _ = (core, sent, ack);
    }

    /// A segment was SACKed.
    #[inline]
    fn on_segment_sacked(&mut self, core: &Core, sent: &Sent, ack: &mut Ack) {
        let _ = (core, sent, ack);
    }

    /// A DSACK says that `segments` retransmissions up to `end_seq` were not needed.
    #[inline]
    fn on_duplicate_reported(&mut self, end_seq: u64, segments: u32) {
        let _ = (end_seq, segments);
    }

    /// A segment waits in the host's own queue, `bytes` of memory, until it leaves.
    #[inline]
    fn on_queued_locally(&mut self, leaves: Instant, bytes: u64) {
        let _ = (leaves, bytes);
    }

    /// Loads the host's metrics of the peer, before the connection is opened.
    fn recall(&mut self, core: &mut Core, metrics: Metrics) {
        let _ = (core, metrics);
    }

    /// Stores the host's metrics of the peer after this connection.
    fn remember(&self, core: &Core, metrics: &mut Metrics) {
        let _ = (core, metrics);
    }

    /// The duplicate-ACK threshold, segments.
    fn reordering(&self, core: &Core) -> u32 {
        core.settings.reordering
    }

    /// The last delivery-rate sample, bit/s.
    fn delivery_bps(&self, core: &Core) -> Option<u64> {
        let _ = core;
        None
    }

    /// `tcp_data_snd_check`: sends what the window allows, then lets a writer that waited for room go on. Returns true
    /// if anything was sent.
    #[inline(always)] // the end of every ACK
    fn push_pending<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        let waited = core.buffer.blocked;
        let any_sent = self.output(core, Push::Pending, io);
        if !any_sent || !self.checks_space_when_sending(core) {
            self.check_space(core);
        }
        if waited && !core.buffer.blocked {
            core.poll_writer();
        }
        any_sent | self.refill(core, io)
    }

    /// The application writes, if it has something and need not wait, and what it writes is sent from. Whether
    /// anything was sent.
    #[inline]
    fn refill<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        !core.buffer.blocked && core.buffer.waiting() > 0 && self.write_on(core, io)
    }

    /// The same where it has something and need not wait.
    fn write_on<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) -> bool {
        let mut any_sent = false;
        loop {
            if core.buffer.begins_write() {
                self.on_write(core);
            }
            let snd_nxt = core.view.snd_nxt;
            match core.write() {
                Wrote::Nothing => return any_sent | self.output(core, Push::Pending, io),
                Wrote::Write => any_sent |= self.output(core, Push::Pending, io),
                Wrote::Buffer if core.buffer.must_push() => {
                    core.buffer.push_tail();
                    any_sent |= self.output(core, Push::Pending, io);
                }
                Wrote::Buffer if core.buffer.tail_is_head(snd_nxt) => {
                    any_sent |= self.output(core, Push::One, io);
                }
                Wrote::Buffer => {}
            }
        }
    }
}
