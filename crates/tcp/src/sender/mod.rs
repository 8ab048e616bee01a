//! The sending half: what was sent, what came back, what may be sent next.
//!
//! | folder | is |
//! |---|---|
//! | `core/` | what every stack needs, once: scoreboard, window, send buffer, timer, the way to the wire |
//! | `linux/` | what the Linuxes since 2.6 share: undo, RTT estimate, `tcp_write_xmit`'s rules |
//! | `linux_6/` | RACK, tail loss probes, proportional rate reduction, pacing, small queues |
//! | `linux_2_6/` | FACK, rate halving, F-RTO before a timeout is believed |
//! | `linux_2_2/` | the window inflated by duplicate ACKs, everything again after a timeout |
//! | `freebsd_9/` | 4.4BSD's line: three duplicate ACKs, NewReno or SACK's holes |
//!
//! The core is lent to the one stack that the connection runs (`core/stack.rs`: its entry points), for the length of a call. A stack
//! is chosen once, when the connection is made, and carries no other's state.

mod core;
mod freebsd_9;
mod linux;
mod linux_2_2;
mod linux_2_6;
mod linux_6;
mod stacks;

pub(crate) use self::core::{Counters, Io, Supply};

use self::core::{Core, Handshake, Stack};
use crate::ecn::{Agreed, Carries};
use crate::host::HostSettings;
use crate::metrics::Metrics;
use crate::segment::{Ecn, Outbox, Segment};
use crate::snapshot::LimitedBy;
use dragstrip_cc::{Algorithm, CongestionControl, Event, Stamps, View, Window};
use dragstrip_units::Instant;
use stacks::{AnyStack, dispatch};
use std::sync::Arc;

/// The sending half of an endpoint.
#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see sockets.rs
pub(crate) struct Sender {
    core: Core,
    stack: AnyStack,
}

impl Sender {
    pub fn new(settings: &Arc<HostSettings>, cc: Algorithm) -> Self {
        Self { core: Core::new(settings, cc), stack: AnyStack::new(settings) }
    }

    /// The handshake is over with `segment`: the peer's window is known, and the RTT of the SYN if it was not
    /// retransmitted (`tcp_init_transfer`).
    pub fn establish(
        &mut self,
        now: Instant,
        segment: &Segment,
        rtt_us: Option<u32>,
        syn_retransmits: u32,
    ) {
        let core = &mut self.core;
        core.open(now, segment);
        let handshake = Handshake { rtt_us, syn_retransmits, window: segment.window };
        dispatch!(&mut self.stack, stack => stack.on_established(core, handshake));
        core.start_congestion_control();
    }

    /// An ACK has arrived, and whatever it allows is sent.
    #[inline]
    pub fn on_ack<O: Outbox>(&mut self, segment: &Segment, io: &mut Io<'_, O>) {
        let core = &mut self.core;
        core.new_rtt_us = None;
        if segment.ack > core.view.snd_nxt {
            return;
        }
        core.view.stamps =
            segment.timestamps().map(|stamps| Stamps { val: stamps.val, ecr: stamps.ecr });
        dispatch!(&mut self.stack, stack => stack.on_ack(core, segment, io));
    }

    /// Ends the agent's step; its policy's action, if it has one.
    pub fn end_step(&mut self, now: Instant) -> Option<f64> {
        let core = &mut self.core;
        core.view.now = now;
        let sent = core.counters.segments_sent;
        core.cc.agent_mut().and_then(|agent| agent.close(&core.view, &core.window, sent))
    }

    /// True when what an ACK has released waits for the agent's action.
    pub fn is_held(&self) -> bool {
        dispatch!(&self.stack, stack => stack.is_holding())
    }

    /// Applies the agent's action, and sends what may go by it now.
    pub fn act<O: Outbox>(&mut self, action: Option<f64>, now: Instant, io: &mut Io<'_, O>) {
        let core = &mut self.core;
        core.view.now = now;
        let changed = match (core.cc.agent_mut(), action) {
            (Some(agent), Some(action)) => agent.act(action, &core.view, &mut core.window),
            (None, _) | (_, None) => false,
        };
        if changed && !core.has_cong_control {
            core.update_pacing_rate();
        }
        dispatch!(&mut self.stack, stack => {
            if !stack.release(core, io) && changed {
                stack.on_wakeup(core, io);
            }
        });
    }

    /// True when a pure ACK whose timestamp is `age_ms` older than the last one is still accepted.
    pub fn takes_outdated(&self, segment: &Segment, age_ms: u32) -> bool {
        dispatch!(&self.stack, stack => stack.takes_outdated(&self.core, segment, age_ms))
    }

    /// The next instant at which [`Self::on_deadline`] has something to do.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.core.timer.due()
    }

    /// The timer or the pacer is due.
    pub fn on_deadline<O: Outbox>(&mut self, now: Instant, io: &mut Io<'_, O>) {
        let core = &mut self.core;
        core.view.now = now;
        if core.timer.wakeup <= now {
            core.timer.wakeup = Instant::NEVER;
            dispatch!(&mut self.stack, stack => stack.on_wakeup(core, io));
        }
        if core.timer.deadline() <= now {
            dispatch!(&mut self.stack, stack => stack.on_timer(core, io));
        }
    }

    /// The application may have more to send.
    pub fn push<O: Outbox>(&mut self, now: Instant, io: &mut Io<'_, O>) {
        let core = &mut self.core;
        core.view.now = now;
        dispatch!(&mut self.stack, stack => stack.refill(core, io));
    }

    /// Sets the amount that the application will write.
    pub fn supply(&mut self, supply: Supply) {
        self.core.buffer.supply(supply);
    }

    /// From now on the application writes so many bytes at a time.
    pub fn write_by(&mut self, bytes: u64) {
        self.core.buffer.write_by(bytes);
    }

    /// The duplicate-ACK threshold.
    pub fn reordering(&self) -> u32 {
        dispatch!(&self.stack, stack => stack.reordering(&self.core))
    }

    /// Loads the cached metrics of the peer as the connection's starting point (`tcp_init_metrics`).
    pub fn recall(&mut self, metrics: Metrics) {
        dispatch!(&mut self.stack, stack => stack.recall(&mut self.core, metrics));
    }

    /// Stores this connection's metrics for the next one (`tcp_update_metrics`).
    pub fn remember(&self, metrics: &mut Metrics) {
        dispatch!(&self.stack, stack => stack.remember(&self.core, metrics));
    }

    /// Applies the result of the handshake; `tells_bytes`: also that segments carry the AccECN option.
    pub fn agree(&mut self, options: &crate::options::Options, ecn: Agreed, tells_bytes: bool) {
        self.core.agree(options, ecn, tells_bytes);
    }

    /// Everything written is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.core.buffer.is_finished(self.core.view.snd_una)
    }

    pub fn rto_ticks(&self) -> u64 {
        self.core.timer.rto_ticks
    }

    /// Smoothed RTT × 8, µs, and retransmission timeout, ticks.
    #[inline]
    pub fn estimates(&self) -> (u32, u64) {
        (self.core.view.srtt_us_x8, self.core.timer.rto_ticks)
    }

    pub fn bytes_written(&self) -> u64 {
        self.core.buffer.written
    }

    /// True when data is outstanding, so that ACKs can tell us anything.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.core.view.snd_nxt > 0
    }

    /// The last delivery-rate sample, bit/s; `None` before the first.
    pub fn delivery_bps(&self) -> Option<u64> {
        dispatch!(&self.stack, stack => stack.delivery_bps(&self.core))
    }

    /// Returns the current limit of the sender.
    pub fn limit(&self) -> LimitedBy {
        self.core.limit()
    }

    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        self.core.view.now = now;
    }

    #[inline]
    pub fn view(&self) -> &View {
        &self.core.view
    }

    pub fn window(&self) -> &Window {
        &self.core.window
    }

    pub fn cc(&self) -> &Algorithm {
        &self.core.cc
    }

    pub fn settings(&self) -> &HostSettings {
        &self.core.settings
    }

    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// The path does with codepoints what it may not: nothing is sent as ECN-capable any more (RFC 9768 §3.2.2.3).
    pub fn distrust_path(&mut self) {
        self.core.agreed = Agreed::Accurate(Ecn::NotEct);
    }

    /// The peer has had a mark of this host's in the handshake, which its counter tells too.
    pub fn note_handshake_mark(&mut self) {
        self.core.view.delivered_ce = 1;
    }

    /// The codepoint of a segment.
    #[inline]
    pub fn codepoint(&self, carries: Carries) -> Ecn {
        self.core.codepoint(carries)
    }

    /// Data has arrived with this codepoint: an event for algorithms that ask for more than classic ECN.
    pub fn tell_mark(&mut self, ecn: Ecn) {
        let event = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 | Ecn::Ect1 => Event::EcnNoCe,
            Ecn::Ce => Event::EcnIsCe,
        };
        let core = &mut self.core;
        core.cc.cwnd_event(&core.view, &mut core.window, event);
    }

    /// The last RTT sample given to the algorithm, µs.
    pub fn last_rtt_us(&self) -> Option<u32> {
        self.core.last_rtt_us
    }

    /// RTT sample of the ACK just processed, µs.
    #[inline]
    pub fn new_rtt_us(&self) -> Option<u32> {
        self.core.new_rtt_us
    }
}
