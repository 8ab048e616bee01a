//! BBR's window: how many packets the model wants in flight, and how the window gets there.

use super::mode::{Mode, PROBING};
use super::{BW_SCALE, Bbr, GAIN_SCALE, UNIT, in_recovery, saturate};
use crate::{CaState, RateSample, View, Window};

/// Below this rate bursts are one packet, bytes/s (1.2 Mbit/s).
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
/// ... and from there on at least two, one ACK's worth.
const MIN_TSO_SEGS: u32 = 2;
/// Nor are they longer than as many packets (`bbr_tso_segs_goal`).
const TSO_SEGS_MAX: u32 = 0x7f;
/// Bursts that the window has room for: in the sender's queue, in its TSO engine and in the receiver's GRO.
const BURSTS: u32 = 3;
/// Even a small BDP must see its in-flight raised in the 1.25 phase.
const PROBE_PACKETS: u32 = 2;
/// Largest burst, bytes: `GSO_MAX_SIZE - 1 - MAX_TCP_HEADER`, whatever the device can.
const TSO_BYTES_MAX: u64 = 65_536 - 1 - 320;
/// Keeps ACKs of every other packet flowing.
pub(super) const CWND_MIN_TARGET: u32 = 4;
/// The kernel's `TCP_INIT_CWND`; not the route's.
const INIT_CWND: u32 = 10;

impl Bbr {
    /// `bbr_bdp`: ⌈bw · min_rtt · gain⌉.
    #[inline]
    pub(super) fn bdp(&self, bw: u32, gain: u16) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return INIT_CWND;
        }
        let product = (u64::from(bw) * u64::from(self.min_rtt_us)).saturating_mul(u64::from(gain));
        saturate((product >> GAIN_SCALE).div_ceil(1 << BW_SCALE))
    }

    /// `bbr_quantization_budget`: room for the bursts at both ends and on the way.
    #[inline]
    fn with_bursts(&self, view: &View, window: &Window, packets: u32) -> u32 {
        let packets = packets.saturating_add(BURSTS * tso_segs_goal(view, window));
        // Even, so that delayed ACKs of two packets leave none over.
        let even = packets.saturating_add(1) & !1;
        let probing = self.mode == Mode::ProbeBw { phase: PROBING };
        if probing { even.saturating_add(PROBE_PACKETS) } else { even }
    }

    /// `bbr_inflight`.
    pub(super) fn in_flight(&self, view: &View, window: &Window, bw: u32, gain: u16) -> u32 {
        self.with_bursts(view, window, self.bdp(bw, gain))
    }

    /// `bbr_packets_in_net_at_edt`: what of `in_flight` will be in the network when the next
    /// packet leaves, given the departures already scheduled.
    pub(super) fn in_net_at_departure(&self, view: &View, window: &Window, in_flight: u32) -> u32 {
        let wait_us = view.departure.since(view.now).as_micros_floor();
        let delivered = saturate(u64::from(self.bw()).saturating_mul(wait_us) >> BW_SCALE);
        let rising = self.pace.pacing_gain() > UNIT;
        let in_flight = in_flight + if rising { tso_segs_goal(view, window) } else { 0 };
        in_flight.saturating_sub(delivered)
    }

    /// `bbr_save_cwnd` where recovery or PROBE_RTT may already have cut the window, or is about to.
    pub(super) fn keep_larger_cwnd(&mut self, window: &Window) {
        self.prior_cwnd = self.prior_cwnd.max(window.cwnd);
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, view: &View, window: &mut Window, sample: &RateSample) {
        let acked = sample.acked_sacked;
        if acked > 0 {
            let (cwnd, conserving) = self.recover_or_restore(view, window, sample);
            window.cwnd =
                if conserving { cwnd } else { self.towards_target(view, window, cwnd, acked) };
        }
        window.cwnd = window.cwnd.min(window.clamp);
        if self.is_probing_rtt() {
            window.cwnd = window.cwnd.min(CWND_MIN_TARGET);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`; true while packets are conserved.
    fn recover_or_restore(
        &mut self,
        view: &View,
        window: &Window,
        sample: &RateSample,
    ) -> (u32, bool) {
        // At most two packets leave per packet delivered: what was lost is taken off first.
        let mut cwnd = window.cwnd.saturating_sub(sample.losses).max(1);
        let conserved = view.in_flight() + sample.acked_sacked;
        if view.state == CaState::Recovery && self.prev_state != CaState::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = view.delivered;
            cwnd = conserved;
        } else if in_recovery(self.prev_state) && !in_recovery(view.state) {
            self.packet_conservation = false;
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.prev_state = view.state;
        if self.packet_conservation { (cwnd.max(conserved), true) } else { (cwnd, false) }
    }

    pub(super) fn towards_target(
        &self,
        view: &View,
        window: &Window,
        cwnd: u32,
        acked: u32,
    ) -> u32 {
        let bdp = self.bdp(self.bw(), self.mode.cwnd_gain());
        let target = if self.pipe.is_full() {
            bdp.saturating_add(self.aggregation.room(self.bw()))
        } else {
            bdp
        };
        let target = self.with_bursts(view, window, target);
        let cwnd = if self.pipe.is_full() {
            cwnd.saturating_add(acked).min(target)
        } else if cwnd < target || view.delivered < u64::from(INIT_CWND) {
            cwnd.saturating_add(acked)
        } else {
            cwnd
        };
        cwnd.max(CWND_MIN_TARGET)
    }
}

/// Packets per burst (`bbr_tso_segs_goal`).
#[inline]
pub(super) fn tso_segs_goal(view: &View, window: &Window) -> u32 {
    let bytes = (window.pacing_rate >> view.pacing_shift).min(TSO_BYTES_MAX) as u32;
    (bytes / view.mss).max(min_tso_segs(window)).min(TSO_SEGS_MAX)
}

pub(super) fn min_tso_segs(window: &Window) -> u32 {
    if window.pacing_rate < MIN_TSO_RATE { 1 } else { MIN_TSO_SEGS }
}
