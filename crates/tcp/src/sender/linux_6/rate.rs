//! Delivery-rate samples (kernel: `tcp_rate_gen`, tcp_rate.c; draft-cheng-iccrg-delivery-rate-estimation).
//!
//! What was delivered since the segment was sent, over the longer of the time it took to send and the time it took to be
//! acknowledged.

use super::Linux6;
use crate::sender::core::{Core, Draft};
use dragstrip_cc::RateSample;

/// The last good sample, for the recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastRate {
    /// Packets.
    delivered: u32,
    /// 0 before the first sample.
    interval_us: u64,
}

impl LastRate {
    pub fn bps(self, mss: u32) -> Option<u64> {
        let bits = u64::from(self.delivered) * u64::from(mss) * 8_000_000;
        bits.checked_div(self.interval_us)
    }
}

impl Linux6 {
    /// `tcp_rate_gen`: completes the sample at the end of an ACK.
    #[inline]
    pub(super) fn rate_sample(
        &mut self,
        core: &mut Core,
        draft: &Draft,
        mut sample: RateSample,
    ) -> RateSample {
        if core.view.app_limited != 0 && core.view.delivered > core.view.app_limited {
            core.view.app_limited = 0;
        }
        if sample.acked_sacked > 0 {
            core.note_delivery();
        }
        sample.is_app_limited = draft.app_limited;
        sample.is_retrans = draft.retrans;
        sample.prior_delivered = draft.prior_delivered();
        let Some(prior_us) = draft.prior_us else { return sample };
        let delivered = (core.view.delivered - draft.prior_delivered()) as u32;
        if core.board.keeps_flights() {
            sample.tx_in_flight = draft.flight.in_flight;
            sample.lost = (core.view.lost as u32).wrapping_sub(draft.flight.lost);
        }
        let interval_us = draft.send_interval_us.max(core.now_us() - prior_us);
        sample.delivered = Some(delivered);
        sample.delivered_ce = self.marked_since(core, draft.prior_delivered());
        // A sample shorter than the path's RTT can only come from a spurious retransmission.
        let min_rtt_us = self.linux.min_rtt.get();
        if min_rtt_us != u32::MAX && interval_us < u64::from(min_rtt_us) {
            return sample;
        }
        sample.interval_us = interval_us;
        let last = &mut self.last_rate;
        if !draft.app_limited
            || u64::from(delivered) * last.interval_us >= u64::from(last.delivered) * interval_us
        {
            *last = LastRate { delivered, interval_us };
        }
        sample
    }
}
