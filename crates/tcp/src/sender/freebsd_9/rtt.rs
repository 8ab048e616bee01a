//! The RTT estimate of 4.4BSD's line, in ticks (FreeBSD: `tcp_xmit_timer`, `TCP_REXMTVAL`).

use super::Freebsd9;
use crate::sender::core::{Ack, Cleaned, Core};
use crate::ticks::micros;

/// RFC 6298 in ticks as 4.4BSD has kept it (`tcp_xmit_timer`): the mean × 32, the mean deviation × 16.
#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    srtt_x32: i64,
    rttvar_x16: i64,
}

impl RttEstimator {
    /// Takes a sample of `rtt` ticks, of which one is for the clock.
    pub fn sample(&mut self, rtt: u64) {
        let rtt = rtt as i64;
        if self.srtt_x32 == 0 {
            self.srtt_x32 = rtt << 5;
            self.rttvar_x16 = rtt << 3;
            return;
        }
        // Both changes have two fractional bits.
        let error = ((rtt - 1) << 2) - (self.srtt_x32 >> 3);
        self.srtt_x32 = (self.srtt_x32 + error).max(1);
        self.rttvar_x16 = (self.rttvar_x16 + error.abs() - (self.rttvar_x16 >> 2)).max(1);
    }

    /// Mean and four deviations, ticks (`TCP_REXMTVAL`).
    pub fn timeout(&self) -> u64 {
        (((self.srtt_x32 >> 3) + self.rttvar_x16) >> 2) as u64
    }

    /// The smoothed RTT × 32, ticks.
    pub fn srtt_x32(&self) -> u64 {
        self.srtt_x32 as u64
    }
}

/// Doublings of the timeout at most (`tcp_backoff`).
const MAX_SHIFT: u32 = 6;

impl Freebsd9 {
    /// RTT samples: of the last segment (S)ACKed for the algorithm; for the timeout what the timestamp tells.
    pub(super) fn take_rtts(&mut self, core: &mut Core, ack: &Ack, cleaned: &Cleaned) {
        let last_us = cleaned.last_us.or(ack.last_sacked_us);
        core.last_rtt_us = last_us.map(|sent_us| micros(core.now_us() - sent_us));
        if cleaned.packets == 0 {
            return;
        }
        let now = core.tick();
        let rtt = match (core.echo_age_ms(), self.timed) {
            (Some(ms), _) => u64::from(ms) * u64::from(core.settings.hz) / 1_000 + 1,
            (None, Some((seq, at))) if core.view.snd_una > seq => {
                self.timed = None;
                now - at + 1
            }
            (None, _) => return,
        };
        core.new_rtt_us = core.last_rtt_us;
        self.take_rtt(core, rtt);
    }

    /// Feeds the estimator and the timeout with `rtt` ticks, of which one is for the clock.
    pub(super) fn take_rtt(&mut self, core: &mut Core, rtt: u64) {
        self.rtt.sample(rtt);
        // × 8, µs, from × 32, ticks.
        core.view.srtt_us_x8 = micros(core.settings.ticks.to_micros(self.rtt.srtt_x32()) / 4);
        if let Some(us) = core.last_rtt_us {
            core.view.min_rtt_us = core.view.min_rtt_us.min(us.max(1));
        }
        self.timeouts = 0;
        self.set_rto(core);
        core.timer.rto_ticks = core.timer.rto_ticks.max(rtt + 2);
    }

    /// `TCPT_RANGESET` of `TCP_REXMTVAL`, doubled for every timeout in a row.
    pub(super) fn set_rto(&mut self, core: &mut Core) {
        let least = core.settings.ticks.count_span_ceil(core.settings.rto_min);
        let slop = core.settings.ticks.count_span_ceil(core.settings.bsd.rto_slop);
        let timeout = match self.rtt.timeout() {
            0 => core.settings.ticks.count_span_ceil(core.settings.rto_initial),
            ticks => ticks.max(least),
        };
        let backed_off = timeout << self.timeouts.min(MAX_SHIFT);
        core.timer.rto_ticks = (backed_off + slop).min(core.settings.rto_max_ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298 §2.2 and §2.3 with a sample of 100 ticks (101 with the clock's), then a steady 100.
    #[test]
    fn bsd_s_timeout_is_the_mean_and_four_deviations() {
        let mut estimator = RttEstimator::default();
        estimator.sample(100);
        assert_eq!(estimator.timeout(), 300);
        for _ in 0..60 {
            estimator.sample(101);
        }
        // Whole quarters of a tick stop the decay at 3 of them.
        assert!((100..=101).contains(&estimator.timeout()), "{}", estimator.timeout());
        estimator.sample(201);
        // Error 100: the deviation rises by a quarter of it, the mean by an eighth: 112 + 4 · 25.
        assert!((212..=214).contains(&estimator.timeout()), "{}", estimator.timeout());
    }
}
