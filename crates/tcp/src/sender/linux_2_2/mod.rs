//! Linux 2.2: the window is inflated by duplicate ACKs, SACKs point at holes, and after a timeout everything is retransmitted before
//! anything new.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `ack.rs` | one ACK; fast retransmits begin and end | `tcp_ack`, `tcp_fast_retrans` |
//! | `output.rs` | what leaves; the timeout | `tcp_snd_test`, `tcp_fack_retransmit`, `tcp_retransmit_timer` |
//! | `rtt.rs` | RTT estimate and timeout | `tcp_rtt_estimator`, `tcp_set_rto` |
//!
//! Rules that decide its throughput under loss:
//! - three duplicate ACKs, or a SACK of the fourth segment or beyond, begin a fast retransmit, once for all that is out: what
//!   is lost twice waits for the timeout;
//! - with SACK what is out is counted up to the highest one SACKed, holes and all, so that much new data leaves at once;
//! - after a timeout nothing new is sent until all is acknowledged, and without timestamps no RTT is taken: the timeout
//!   stays doubled;
//! - the timeout is five quarters of mean and four deviations, doubled for a window of one packet (and of 33: the shift by
//!   `cwnd − 1` is one of 32 bits);
//! - an episode that ends with exactly three duplicate ACKs leaves the window inflated.

mod ack;
mod output;
mod rtt;

use super::core::{Core, Handshake, Io, Push, Stack};
use crate::segment::{Outbox, Segment};
use rtt::RttEstimator;

/// State of this stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Linux22 {
    /// Duplicate ACKs (`dup_acks`).
    duplicates: u32,
    /// End of the data that was out when the episode began (`high_seq`).
    episode_end: Option<u64>,
    /// Segments from the head up to the highest one SACKed (`fackets_out`).
    facked: u32,
    /// Retransmissions since they were last counted down: one that is SACKed again counts again.
    retrans_out: u32,
    /// Timeouts since everything was acknowledged (`retransmits`).
    timeouts: u32,
    /// Number of doublings of the timeout (`backoff`).
    doublings: u32,
    /// The next segment that a timeout has to retransmit (`retrans_head`), all of them having been sent at the tail.
    next: u64,
    rtt: RttEstimator,
}

impl Stack for Linux22 {
    const UNSENT_IF_REFUSED: bool = false;

    fn on_established(&mut self, core: &mut Core, handshake: Handshake) {
        // The handshake gives no RTT. A SYN that was retransmitted: `tcp_retransmit_timer` takes it for any segment.
        if handshake.syn_retransmits > 0 {
            core.window.ssthresh = 2;
            let rto = core.timer.rto_ticks << handshake.syn_retransmits.min(6);
            core.timer.rto_ticks = rto.min(core.settings.rto_max_ticks);
            core.window.cwnd = 1;
        }
    }

    fn on_ack<O: Outbox>(&mut self, core: &mut Core, segment: &Segment, io: &mut Io<'_, O>) {
        self.process_ack(core, segment, io);
    }

    fn on_timer<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        self.on_timeout(core, io);
    }

    fn output<O: Outbox>(&mut self, core: &mut Core, _push: Push, io: &mut Io<'_, O>) -> bool {
        self.write_xmit(core, io)
    }

    fn on_local_queue_full(&mut self, _core: &mut Core) {}

    /// There is no such check (RFC 7323 §5.3 is not followed for ACKs without data).
    fn takes_outdated(&self, _core: &Core, _segment: &Segment, _age_ms: u32) -> bool {
        true
    }
}
