//! Delivery-rate samples (kernel: tcp_rate.c; draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each segment remembers how much had been delivered when it was sent; each ACK compares that with
//! now, over the longer of the time it took to send and the time it took to be acknowledged.

use super::Sender;
use super::scoreboard::{Marks, Sent};
use dragstrip_cc::RateSample;

/// The connection's part.
#[derive(Clone, Debug, Default)]
pub(super) struct RateState {
    /// Send time of the most recently sent segment that was delivered (`first_tx_mstamp`), µs.
    first_tx_us: u64,
    /// When something was last delivered (`delivered_mstamp`), µs.
    delivered_us: u64,
    /// Last good sample, for the recording: packets and µs.
    pub delivered: u32,
    pub interval_us: u64,
    app_limited: bool,
}

/// The sample under construction while one ACK is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft {
    prior_delivered: u64,
    prior_us: Option<u64>,
    send_interval_us: u64,
    last_end_seq: u64,
    app_limited: bool,
    retrans: bool,
}

impl Draft {
    /// `delivered` when the most recently sent of the delivered segments was sent; 0: none.
    pub fn prior_delivered(&self) -> u64 {
        self.prior_delivered
    }
}

/// `tcp_skb_sent_after`.
#[inline]
pub(super) fn sent_after(us: u64, other_us: u64, end_seq: u64, other_end_seq: u64) -> bool {
    us > other_us || (us == other_us && end_seq > other_end_seq)
}

impl Sender {
    /// `tcp_rate_skb_sent`: stamps a segment about to be (re)transmitted.
    #[inline]
    pub(super) fn stamp(&mut self, sent: &mut Sent, sent_us: u64) {
        if self.view.packets_out == 0 {
            self.rate.first_tx_us = sent_us;
            self.rate.delivered_us = sent_us;
        }
        sent.sent_us = sent_us;
        sent.since_first_tx_us = (sent_us - self.rate.first_tx_us).min(u64::from(u32::MAX)) as u32;
        sent.since_delivery_us = (sent_us - self.rate.delivered_us).min(u64::from(u32::MAX)) as u32;
        sent.delivered = self.view.delivered as u32;
        if self.view.app_limited != 0 {
            sent.marks.set(Marks::APP_LIMITED);
        } else {
            sent.marks.clear(Marks::APP_LIMITED);
        }
    }

    /// `tcp_rate_skb_delivered`: a segment is newly acknowledged or SACKed.
    #[inline]
    pub(super) fn rate_delivered(&mut self, draft: &mut Draft, sent: &Sent) {
        if draft.prior_delivered == 0
            || sent_after(sent.sent_us, self.rate.first_tx_us, sent.end_seq(), draft.last_end_seq)
        {
            let behind = (self.view.delivered as u32).wrapping_sub(sent.delivered);
            draft.prior_delivered = self.view.delivered - u64::from(behind);
            draft.prior_us = Some(sent.sent_us - u64::from(sent.since_delivery_us));
            draft.app_limited = sent.marks.has(Marks::APP_LIMITED);
            draft.retrans = sent.marks.any(Marks::RETRANS.with(Marks::EVER_RETRANS));
            draft.last_end_seq = sent.end_seq();
            self.rate.first_tx_us = sent.sent_us;
            draft.send_interval_us = u64::from(sent.since_first_tx_us);
        }
    }

    /// `tcp_rate_gen`: completes the sample at the end of an ACK.
    #[inline]
    pub(super) fn rate_sample(&mut self, draft: &Draft, mut sample: RateSample) -> RateSample {
        if self.view.app_limited != 0 && self.view.delivered > self.view.app_limited {
            self.view.app_limited = 0;
        }
        let now_us = self.now_us();
        if sample.acked_sacked > 0 {
            self.rate.delivered_us = now_us;
            self.view.delivered_at = self.view.now;
        }
        sample.is_app_limited = draft.app_limited;
        sample.is_retrans = draft.retrans;
        sample.prior_delivered = draft.prior_delivered;
        let Some(prior_us) = draft.prior_us else { return sample };
        let delivered = (self.view.delivered - draft.prior_delivered) as u32;
        let interval_us = draft.send_interval_us.max(now_us - prior_us);
        sample.delivered = Some(delivered);
        // A sample shorter than the path's RTT can only come from a spurious retransmission.
        if self.min_rtt.get() != u32::MAX && interval_us < u64::from(self.min_rtt.get()) {
            return sample;
        }
        sample.interval_us = interval_us;
        if !draft.app_limited
            || u64::from(delivered) * self.rate.interval_us
                >= u64::from(self.rate.delivered) * interval_us
        {
            self.rate.delivered = delivered;
            self.rate.interval_us = interval_us;
            self.rate.app_limited = draft.app_limited;
        }
        sample
    }

    /// The last delivery rate in bits per second; `None` before the first sample.
    pub fn delivery_bps(&self) -> Option<u64> {
        if self.rate.interval_us == 0 {
            return None;
        }
        Some(
            u64::from(self.rate.delivered) * u64::from(self.view.mss) * 8_000_000
                / self.rate.interval_us,
        )
    }
}
