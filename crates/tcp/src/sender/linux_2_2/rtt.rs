//! The RTT estimate of Linux 2.2, in ticks (`tcp_rtt_estimator`, `tcp_set_rto`).

use super::Linux22;
use crate::sender::core::{Ack, AckFlags, Cleaned, Core};
use crate::ticks::micros;

/// Jacobson's estimator in ticks as Linux 2.2 has it (`tcp_rtt_estimator`, `tcp_set_rto`): the mean × 8, the deviation × 4.
#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    srtt_x8: u32,
    mdev_x4: u32,
}

impl RttEstimator {
    /// Takes a sample of `rtt` ticks; none counts as one.
    pub fn sample(&mut self, rtt: u64) {
        let rtt = rtt.clamp(1, 1 << 24) as u32;
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt << 3;
            self.mdev_x4 = rtt << 2;
            return;
        }
        let mean = self.srtt_x8 >> 3;
        self.srtt_x8 = self.srtt_x8 + rtt - mean;
        self.mdev_x4 = self.mdev_x4 + rtt.abs_diff(mean) - (self.mdev_x4 >> 2);
    }

    /// Mean and four deviations, a quarter on top, and as much again for a window of one packet, half for one of two ... The shift
    /// is one of 32 bits, and starts again every 32 packets.
    pub fn timeout(&self, cwnd: u32) -> u64 {
        let timeout = (self.srtt_x8 >> 3) + self.mdev_x4;
        u64::from(timeout)
            + u64::from(timeout >> 2)
            + u64::from(timeout >> (cwnd.wrapping_sub(1) & 31))
    }

    /// The smoothed RTT × 8, ticks.
    pub fn srtt_x8(&self) -> u64 {
        u64::from(self.srtt_x8)
    }
}

impl Linux22 {
    /// RTT of the last segment acknowledged, or what the timestamp tells, ticks.
    fn sample(&self, core: &Core, ack: &Ack, cleaned: &Cleaned) -> Option<u64> {
        let repeated = ack.flags.has(AckFlags::RETRANS_ACKED);
        match (core.echo_age_ms(), cleaned.last_us) {
            _ if cleaned.packets == 0 => None,
            (Some(ms), _) => Some(u64::from(ms) * u64::from(core.settings.hz) / 1_000),
            (None, Some(sent_us)) if !repeated && self.timeouts == 0 => {
                Some(core.ticks_since(sent_us))
            }
            (None, _) => None,
        }
    }

    /// The ACK's RTT sample for the algorithm and the recording; ticks, for the estimator.
    pub(super) fn take_sample(
        &mut self,
        core: &mut Core,
        ack: &Ack,
        cleaned: &Cleaned,
    ) -> Option<u64> {
        let sample = self.sample(core, ack, cleaned);
        core.last_rtt_us = sample.map(|ticks| micros(core.settings.ticks.to_micros(ticks)));
        core.new_rtt_us = core.last_rtt_us;
        sample
    }

    /// `tcp_ack_saw_tstamp`, and the same without timestamps: estimate and timeout.
    pub(super) fn settle_rtt(&mut self, core: &mut Core, sample: Option<u64>) {
        let stamped = core.view.stamps.is_some();
        let all = core.view.packets_out == 0;
        if self.timeouts > 0 && all {
            self.timeouts = 0;
            self.facked = 0;
            self.retrans_out = 0;
        }
        let Some(ticks) = sample else { return };
        self.rtt.sample(ticks);
        core.view.srtt_us_x8 = micros(core.settings.ticks.to_micros(self.rtt.srtt_x8()));
        let us = core.last_rtt_us.unwrap_or(0).max(1);
        core.view.min_rtt_us = core.view.min_rtt_us.min(us);
        if all || !stamped || self.timeouts == 0 {
            self.doublings = 0;
        }
        let least = core.settings.ticks.count_span_ceil(core.settings.rto_min);
        let timeout = self.rtt.timeout(core.window.cwnd) << self.doublings.min(20);
        core.timer.rto_ticks = timeout.clamp(least, core.settings.rto_max_ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first sample of 40 ticks gives 40 + 4 · 40, a quarter more, and a share for the window.
    #[test]
    fn the_timeout_of_2_2_is_longer_for_small_windows_and_for_33_packets() {
        let mut estimator = RttEstimator::default();
        estimator.sample(40);
        for (cwnd, timeout) in
            [(1, 450), (2, 350), (3, 300), (20, 250), (32, 250), (33, 450), (34, 350)]
        {
            assert_eq!(estimator.timeout(cwnd), timeout, "{cwnd}");
        }
        for _ in 0..100 {
            estimator.sample(40);
        }
        assert_eq!(
            estimator.timeout(20),
            40 + 3 + 10,
            "the deviation stops at three quarters of a tick"
        );
    }
}
