//! The window: what the model wants in flight, and the bounds it must keep.

use super::{
    BW_SCALE, CWND_MIN, GAIN_SCALE, INFINITE, Mode, Model, PROBE_RTT_CWND_GAIN, Phase, UNIT,
    Version, saturate,
};
use crate::{View, Window};

/// The least burst, packets: one ACK's worth (`bbr_min_tso_segs`).
pub(super) const MIN_TSO_SEGS: u32 = 2;
/// A burst is 64 KB longer on the shortest paths (`GSO_LEGACY_MAX_SIZE`), ...
const SHORT_PATH_BYTES: u64 = 65_536;
/// ... half as much for every 2^9 µs of `min_rtt` (`bbr_tso_rtt_shift`).
const SHORT_PATH_SHIFT: u32 = 9;
/// Bursts that the window has room for: in the sender's queue, in its TSO engine and in the receiver's GRO.
const BURSTS: u32 = 3;
/// Even a small BDP must see its in-flight raised by a probe.
const PROBE_PACKETS: u32 = 2;
/// In STARTUP the window grows to as many initial ones, whatever the model says (`bbr_set_cwnd`).
const STARTUP_INITIAL_CWNDS: u32 = 2;

impl<V: Version> Model<V> {
    /// `bbr_bdp`: ⌈bw · min_rtt · gain⌉.
    #[inline]
    pub(super) fn bdp(&self, bw: u32, gain: u16) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return self.initial_cwnd;
        }
        let product = (u64::from(bw) * u64::from(self.min_rtt_us)).saturating_mul(u64::from(gain));
        saturate((product >> GAIN_SCALE).div_ceil(1 << BW_SCALE))
    }

    /// Packets per burst (`bbr_tso_segs_generic`).
    #[inline]
    pub(super) fn tso_segs_goal(&self, view: &View, window: &Window) -> u32 {
        let halvings = self.min_rtt_us >> SHORT_PATH_SHIFT;
        let short = SHORT_PATH_BYTES.checked_shr(halvings).unwrap_or(0);
        let bytes = (window.pacing_rate >> view.pacing_shift) + short;
        let most = u64::from(view.gso_max_bytes);
        ((bytes.min(most) as u32) / view.mss).max(MIN_TSO_SEGS)
    }

    /// `bbr_quantization_budget`: enough for the bursts at both ends and on the way.
    fn with_bursts(&self, view: &View, window: &Window, packets: u32) -> u32 {
        let packets = packets.max(BURSTS * self.tso_segs_goal(view, window)).max(CWND_MIN);
        let more = if self.mode == Mode::ProbeBw(Phase::Up) { PROBE_PACKETS } else { 0 };
        packets.saturating_add(more)
    }

    /// `bbr_inflight`.
    pub(super) fn in_flight(&self, view: &View, window: &Window, bw: u32, gain: u16) -> u32 {
        self.with_bursts(view, window, self.bdp(bw, gain))
    }

    /// `bbr_target_inflight`.
    pub(super) fn target_in_flight(&self, view: &View, window: &Window) -> u32 {
        self.in_flight(view, window, self.bw(), UNIT).min(window.cwnd)
    }

    /// `bbr_probe_rtt_cwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), PROBE_RTT_CWND_GAIN).max(CWND_MIN)
    }

    /// `bbr_packets_in_net_at_edt`: what of `in_flight` will be in the network when the next packet leaves.
    pub(super) fn in_net_at_departure(&self, view: &View, window: &Window, in_flight: u32) -> u32 {
        let wait_us = view.departure.since(view.now).as_micros_floor();
        let delivered = saturate(u64::from(self.bw()).saturating_mul(wait_us) >> BW_SCALE);
        let rising = self.pace.pacing_gain::<V>() > UNIT;
        let more = if rising { self.tso_segs_goal(view, window) } else { 0 };
        in_flight.saturating_add(more).saturating_sub(delivered)
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, view: &View, window: &mut Window, acked: u32) {
        if acked > 0 {
            let (bw, gain) = (self.bw(), self.mode.cwnd_gain::<V>());
            let target = self.bdp(bw, gain).saturating_add(self.aggregation.room(bw));
            let target = self.with_bursts(view, window, target);
            let grown = window.cwnd.saturating_add(acked);
            window.cwnd = if self.full.reached {
                grown.min(target)
            } else if window.cwnd < target
                || window.cwnd < STARTUP_INITIAL_CWNDS * self.initial_cwnd
            {
                grown
            } else {
                window.cwnd
            };
            window.cwnd = window.cwnd.max(CWND_MIN);
        }
        window.cwnd = window.cwnd.min(window.clamp);
        if self.is_probing_rtt() {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    /// `bbr_bound_cwnd_for_inflight_model`.
    pub(super) fn bound_cwnd(&self, window: &mut Window) {
        let cap = match self.mode {
            Mode::Startup | Mode::Drain => INFINITE,
            Mode::ProbeBw(Phase::Cruise) | Mode::ProbeRtt { .. } => self.upper.with_headroom(),
            Mode::ProbeBw(_) => self.upper.inflight_hi,
        };
        window.cwnd = window.cwnd.min(cap.min(self.signals.inflight_lo).max(CWND_MIN));
    }
}
