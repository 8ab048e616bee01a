//! Removal of acknowledged segments from the retransmission queue (`tcp_clean_rtx_queue`).

use super::{Ack, AckFlags, Core, Draft, Marks, Plain, Stack};
use dragstrip_cc::{self as cc, CongestionControl};

/// Segments that a cumulative ACK took off the queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Cleaned {
    pub packets: u32,
    /// Send times of the first and last segments that were neither retransmitted nor SACKed before, µs.
    pub first_us: Option<u64>,
    pub last_us: Option<u64>,
    /// `sacked_out` before.
    pub prior_sacked: u32,
    /// The lowest byte of them; `snd_nxt` without any.
    pub first_original: u64,
}

impl Core {
    /// `tcp_clean_rtx_queue`: drops what is acknowledged.
    #[inline]
    pub fn clean_queue<S: Stack>(&mut self, stack: &mut S, ack: &mut Ack) -> Cleaned {
        let mut cleaned = Cleaned {
            packets: 0,
            first_us: None,
            last_us: None,
            prior_sacked: self.view.sacked_out,
            first_original: self.view.snd_nxt,
        };
        while let Some(sent) = self.board.front() {
            if sent.end_seq() > self.view.snd_una {
                break;
            }
            if sent.marks.has(Marks::EVER_RETRANS) {
                if sent.marks.has(Marks::RETRANS) {
                    self.view.retrans_out -= 1;
                }
                ack.flags.set(AckFlags::RETRANS_ACKED);
                if cleaned.packets > 0 {
                    ack.flags.set(AckFlags::NONHEAD_RETRANS_ACKED);
                }
            } else if !sent.marks.has(Marks::SACKED) {
                cleaned.last_us = Some(sent.sent_us);
                cleaned.first_us.get_or_insert(sent.sent_us);
                cleaned.first_original = cleaned.first_original.min(sent.seq);
            }
            if sent.marks.has(Marks::SACKED) {
                self.view.sacked_out -= 1;
            } else {
                if self.settings.sack {
                    self.view.delivered += 1;
                }
                stack.on_segment_acked(self, &sent, ack);
                self.rate_delivered(&mut ack.draft, &sent);
            }
            if sent.marks.has(Marks::LOST) {
                self.view.lost_out -= 1;
            }
            self.transmission.bursts_out -= u64::from(sent.marks.has(Marks::BURST_END));
            self.view.packets_out -= 1;
            cleaned.packets += 1;
            self.board.pop_front();
        }
        if cleaned.packets > 0 {
            ack.flags.set(AckFlags::DATA_ACKED);
        }
        if self.board.front().is_some_and(|sent| sent.marks.has(Marks::SACKED)) {
            ack.flags.set(AckFlags::RENEGING);
        }
        cleaned
    }

    /// Drops segments that were sent once, and neither SACKed nor lost.
    #[inline]
    pub fn take_off(&mut self, plain: &Plain) {
        self.board.take_off(plain);
        self.view.packets_out -= plain.segments;
        self.view.delivered += u64::from(plain.segments);
        self.transmission.bursts_out -= u64::from(plain.bursts);
    }

    /// `pkts_acked`: passes to the algorithm what the ACK acknowledged.
    #[inline]
    pub fn report_acked(&mut self, packets: u32, draft: &Draft) {
        let in_flight = (self.view.delivered - draft.prior_delivered()) as u32;
        let sample = cc::Ack { packets, rtt_us: self.last_rtt_us, in_flight };
        self.cc.acked(&self.view, &mut self.window, &sample);
    }
}
