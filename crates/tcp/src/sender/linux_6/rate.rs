//! Delivery-rate samples (kernel: `tcp_rate_gen`, tcp_rate.c; draft-cheng-iccrg-delivery-rate-estimation).
//!
//! A sample is the data delivered since the segment was sent, over the longer of the time it took to send and the time
//! it took to be acknowledged.

use super::Linux6;
use super::ack::Counts;
use crate::sender::core::{AckFlags, Core, Draft};
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

/// Delivery over an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Packets; `None`: nothing was delivered that tells.
    delivered: Option<u32>,
    /// µs; 0 where it is shorter than the path allows.
    interval_us: u64,
}

impl Linux6 {
    /// `tcp_rate_gen` at the end of an ACK; `delivers`: it has acknowledged or SACKed something.
    #[inline]
    pub(super) fn measure_rate(&mut self, core: &mut Core, draft: &Draft, delivers: bool) -> Rate {
        if core.view.app_limited != 0 && core.view.delivered > core.view.app_limited {
            core.view.app_limited = 0;
        }
        if delivers {
            core.note_delivery();
        }
        let Some(prior_us) = draft.prior_us else {
            return Rate { delivered: None, interval_us: 0 };
        };
        let delivered = (core.view.delivered - draft.prior_delivered()) as u32;
        let interval_us = draft.send_interval_us.max(core.now_us() - prior_us);
        // A sample shorter than the path's RTT can only come from a spurious retransmission.
        let min_rtt_us = self.linux.min_rtt.get();
        if min_rtt_us != u32::MAX && interval_us < u64::from(min_rtt_us) {
            return Rate { delivered: Some(delivered), interval_us: 0 };
        }
        let last = &mut self.last_rate;
        if !draft.app_limited
            || u64::from(delivered) * last.interval_us >= u64::from(last.delivered) * interval_us
        {
            *last = LastRate { delivered, interval_us };
        }
        Rate { delivered: Some(delivered), interval_us }
    }

    /// The sample that an algorithm is given that does everything itself.
    #[inline(never)]
    pub(super) fn rate_sample(
        &self,
        core: &Core,
        flags: AckFlags,
        counts: Counts,
        draft: Draft,
        rate: Rate,
    ) -> RateSample {
        let sample = RateSample {
            prior_delivered: draft.prior_delivered(),
            rtt_us: core.last_rtt_us,
            losses: counts.losses,
            acked_sacked: counts.acked_sacked,
            newly_marked: counts.newly_marked,
            is_ece: flags.has(AckFlags::ECE),
            prior_in_flight: counts.prior_in_flight,
            is_app_limited: draft.app_limited,
            is_retrans: draft.retrans,
            is_ack_delayed: flags.has(AckFlags::MAYBE_DELAYED),
            ..RateSample::default()
        };
        if rate.delivered.is_none() {
            return sample;
        }
        let keeps_flights = core.board.keeps_flights();
        RateSample {
            delivered: rate.delivered,
            interval_us: rate.interval_us,
            delivered_ce: self.marked_since(core, draft.prior_delivered()),
            tx_in_flight: if keeps_flights { draft.flight.in_flight } else { 0 },
            lost: if keeps_flights {
                (core.view.lost as u32).wrapping_sub(draft.flight.lost)
            } else {
                0
            },
            ..sample
        }
    }
}
