//! State behind delivery-rate samples (kernel: tcp_rate.c; draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each segment remembers how much had been delivered when it was sent. An ACK compares that with now; how, is its stack's to
//! know (`linux_6/rate.rs`).

use super::{Core, Flight, Marks, Sent};
use dragstrip_cc::{CongestionControl, LostPacket};

/// The connection's part.
#[derive(Clone, Debug, Default)]
pub(super) struct RateState {
    /// Send time of the most recently sent segment that was delivered (`first_tx_mstamp`), µs.
    first_tx_us: u64,
    /// Time of the last delivery (`delivered_mstamp`), µs.
    delivered_us: u64,
}

/// The sample under construction while one ACK is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Draft {
    prior_delivered: u64,
    /// Time of the last delivery by then, µs.
    pub prior_us: Option<u64>,
    pub send_interval_us: u64,
    last_end_seq: u64,
    pub app_limited: bool,
    pub retrans: bool,
    pub flight: Flight,
}

impl Draft {
    /// `delivered` when the most recently sent of the delivered segments was sent; 0: none.
    pub fn prior_delivered(&self) -> u64 {
        self.prior_delivered
    }
}

/// `tcp_skb_sent_after`.
#[inline]
pub(in crate::sender) fn sent_after(
    us: u64,
    other_us: u64,
    end_seq: u64,
    other_end_seq: u64,
) -> bool {
    us > other_us || (us == other_us && end_seq > other_end_seq)
}

impl Core {
    /// `tcp_rate_skb_sent`: stamps a segment about to be (re)transmitted.
    #[inline]
    pub fn stamp(&mut self, sent: &mut Sent, sent_us: u64) {
        if self.view.packets_out == 0 {
            self.rate.first_tx_us = sent_us;
            self.rate.delivered_us = sent_us;
        }
        sent.sent_us = sent_us;
        sent.since_first_tx_us = (sent_us - self.rate.first_tx_us).min(u64::from(u32::MAX)) as u32;
        sent.since_delivery_us = (sent_us - self.rate.delivered_us).min(u64::from(u32::MAX)) as u32;
        sent.delivered = self.view.delivered as u32;
        if self.board.keeps_flights() {
            let in_flight = self.view.in_flight() + 1;
            sent.flight = Flight { in_flight, lost: self.view.lost as u32 };
        }
        if self.view.app_limited != 0 {
            sent.marks.set(Marks::APP_LIMITED);
        } else {
            sent.marks.clear(Marks::APP_LIMITED);
        }
    }

    /// `tcp_rate_skb_delivered`: a segment is newly acknowledged or SACKed.
    #[inline]
    pub fn rate_delivered(&mut self, draft: &mut Draft, sent: &Sent) {
        if draft.prior_delivered == 0
            || sent_after(sent.sent_us, self.rate.first_tx_us, sent.end_seq(), draft.last_end_seq)
        {
            let behind = (self.view.delivered as u32).wrapping_sub(sent.delivered);
            draft.prior_delivered = self.view.delivered - u64::from(behind);
            draft.prior_us = Some(sent.sent_us - u64::from(sent.since_delivery_us));
            draft.app_limited = sent.marks.has(Marks::APP_LIMITED);
            draft.retrans = sent.marks.any(Marks::RETRANS.with(Marks::EVER_RETRANS));
            draft.flight = sent.flight;
            draft.last_end_seq = sent.end_seq();
            self.rate.first_tx_us = sent.sent_us;
            draft.send_interval_us = u64::from(sent.since_first_tx_us);
        }
    }

    /// Tells an algorithm that wants flights of a segment that has just been marked lost.
    #[inline]
    pub fn tell_lost(&mut self, number: u64) {
        if !self.board.keeps_flights() {
            return;
        }
        let segment = self.board.get(number);
        let packet = LostPacket {
            tx_in_flight: segment.flight.in_flight,
            lost: (self.view.lost as u32).wrapping_sub(segment.flight.lost),
            is_app_limited: segment.marks.has(Marks::APP_LIMITED),
        };
        self.cc.marked_lost(&self.view, &mut self.window, &packet);
    }

    /// Something was delivered now.
    #[inline]
    pub fn note_delivery(&mut self) {
        self.rate.delivered_us = self.now_us();
        self.view.delivered_at = self.view.now;
    }
}
