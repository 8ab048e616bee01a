//! FreeBSD 9: loss detection, recovery and transmission of 4.4BSD's line. RFC 6582 without SACK.
//!
//! | file | does | FreeBSD |
//! |---|---|---|
//! | `ack.rs` | one ACK; recoveries begin and end | `tcp_do_segment` (tcp_input.c), `tcp_sack_partialack` |
//! | `output.rs` | what leaves; the timeout | `tcp_output`, `tcp_sack_output`, `tcp_timer_rexmt` |
//! | `rtt.rs` | RTT estimate and timeout | `tcp_xmit_timer`, `TCPT_RANGESET` |
//!
//! Rules that decide its throughput under loss:
//! - three duplicate ACKs begin a recovery, in which the holes below the highest SACK are retransmitted, and new data, as far as a
//!   window allows that starts at one segment and grows by one per duplicate ACK up to the threshold;
//! - a retransmission that is lost again shows only by the timeout, which forgets all SACKs and sends everything again,
//!   but for what is SACKed anew;
//! - the timeout is 200 ms on top of mean and deviations; one that an ACK within half a round trip proves wrong is taken
//!   back.
//!
//! FreeBSD counts bytes; here segments are counted, which are full as long as there is data.

mod ack;
mod output;
mod rtt;

use super::core::{Core, Handshake, Io, Push, Stack};
use crate::segment::{Outbox, Segment};
use dragstrip_cc::CaState;
use dragstrip_units::Instant;
use rtt::RttEstimator;

/// State to which a first timeout may be undone.
#[derive(Clone, Debug)]
struct Before {
    cwnd: u32,
    ssthresh: u32,
    high_seq: u64,
    state: CaState,
    /// An ACK before this tick answers what was sent before (`t_badrxtwin`).
    until_tick: u64,
}

/// State of this stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Freebsd9 {
    /// Duplicate ACKs in a row (`t_dupacks`).
    duplicates: u32,
    /// New segments sent on the first two of them (`snd_limited`).
    limited: u32,
    /// Timeouts since `snd_una` last moved (`t_rxtshift`).
    timeouts: u32,
    /// The recovery ends when this byte is acknowledged (`snd_recover`).
    recover: u64,
    /// The next segment to be retransmitted after a timeout; all are below once it has reached the tail (`snd_nxt`).
    next: u64,
    /// Data from here on was first sent in this recovery (`sack_newdata`).
    new_data: u64,
    /// The peer's window as last offered, bytes (`snd_wnd`).
    peer_window: u64,
    before: Option<Before>,
    rtt: RttEstimator,
    /// Without timestamps: the byte and the tick whose acknowledgement is waited for (`t_rtseq`, `t_rtttime`).
    timed: Option<(u64, u64)>,
    /// Tick of the last segment received (`t_rcvtime`).
    heard_at: u64,
}

impl Stack for Freebsd9 {
    // ENOBUFS (tcp_output): the window shrinks to one segment.
    const UNSENT_IF_REFUSED: bool = true;

    fn on_established(&mut self, core: &mut Core, handshake: Handshake) {
        self.peer_window = u64::from(handshake.window);
        match handshake.rtt_us {
            Some(rtt_us) => {
                core.last_rtt_us = Some(rtt_us);
                let rtt = Instant::from_nanos(u64::from(rtt_us) * 1_000);
                self.take_rtt(core, core.settings.ticks.at(rtt) + 1);
            }
            None => {
                core.timer.rto_ticks =
                    core.settings.ticks.count_span_ceil(core.settings.rto_initial)
            }
        }
        // RFC 5681 §3.1.
        if handshake.syn_retransmits > 0 {
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
        self.tcp_output(core, io)
    }

    fn on_local_queue_full(&mut self, core: &mut Core) {
        core.window.cwnd = 1;
    }

    fn takes_outdated(&self, _core: &Core, _segment: &Segment, _age_ms: u32) -> bool {
        false
    }
}
