//! BBR's estimate of ACK aggregation (`extra_acked`): how far ACKs run ahead of the bandwidth.
//!
//! Wi-Fi, DOCSIS and receive offload hand ACKs over in clumps. A window of one BDP would leave the
//! path empty between clumps, so BBR adds the largest excess of the last 5 to 10 rounds.
//!
//! Source of the details: Linux 6.1 `tcp_bbr.c` (`bbr_update_ack_aggregation`,
//! `bbr_ack_aggregation_cwnd`).

use super::{BW_SCALE, saturate};
use crate::View;

/// Rounds per slot of the maximum filter, of which there are two.
pub const SLOT_ROUNDS: u8 = 5;
/// An epoch with as many packets is too old.
const EPOCH_ACKED_RESET: u32 = 1 << 20;
/// ... and no more are counted (20 bits).
const EPOCH_ACKED_MAX: u32 = 0xf_ffff;
/// Aggregation may be worth 100 ms of bandwidth.
const WORTH_US_MAX: u64 = 100_000;

/// The estimate.
#[derive(Clone, Debug, Default)]
pub struct Aggregation {
    /// Start of the epoch, µs, and the packets (S)ACKed since.
    epoch_us: u64,
    epoch_acked: u32,
    extra_acked: [u16; 2],
    slot: u8,
    /// Rounds the slot has been in use.
    rounds: u8,
}

impl Aggregation {
    /// Begins an epoch.
    pub fn restart(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.epoch_acked = 0;
    }

    /// Counts a round; a slot is in use for `slot_rounds` of them.
    #[inline]
    pub fn begin_round(&mut self, slot_rounds: u8) {
        self.rounds += 1;
        if self.rounds >= slot_rounds {
            self.rounds = 0;
            self.slot ^= 1;
            self.extra_acked[usize::from(self.slot)] = 0;
        }
    }

    /// Takes in an ACK of `acked` packets at bandwidth `bw`.
    #[inline]
    pub fn update(&mut self, view: &View, cwnd: u32, bw: u32, acked: u32) {
        let now_us = view.delivered_at.as_micros_floor();
        let age_us = now_us.saturating_sub(self.epoch_us);
        let mut expected = saturate(u64::from(bw).saturating_mul(age_us) >> BW_SCALE);
        // The ACKs are not ahead of the rate, or the epoch is very old: a new one.
        if self.epoch_acked <= expected
            || self.epoch_acked.saturating_add(acked) >= EPOCH_ACKED_RESET
        {
            self.restart(now_us);
            expected = 0;
        }
        self.epoch_acked = self.epoch_acked.saturating_add(acked).min(EPOCH_ACKED_MAX);
        let extra = (self.epoch_acked - expected).min(cwnd);
        let best = &mut self.extra_acked[usize::from(self.slot)];
        if extra > u32::from(*best) {
            *best = extra as u16; // cut to 16 bits, as in the kernel
        }
    }

    /// Packets to add to the window.
    #[inline]
    pub fn room(&self, bw: u32) -> u32 {
        let most = saturate((u64::from(bw) * WORTH_US_MAX) >> BW_SCALE);
        u32::from(self.extra_acked[0].max(self.extra_acked[1])).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, view};

    /// One packet per millisecond.
    const BW: u32 = (1 << 24) / 1_000;

    #[test]
    fn clumps_of_ten_are_worth_ten_packets() {
        let (mut aggregation, mut view) = (Aggregation::default(), view());
        for ms in (0..500).step_by(10) {
            view.delivered_at = at_ms(ms);
            if ms % 50 == 0 {
                aggregation.begin_round(SLOT_ROUNDS);
            }
            aggregation.update(&view, 1_000, BW, 10);
        }
        assert!((10..=11).contains(&aggregation.room(BW)), "{}", aggregation.room(BW));
    }

    #[test]
    fn it_is_worth_the_window_at_most_and_100_ms_at_most() {
        let (mut aggregation, view) = (Aggregation::default(), view());
        aggregation.begin_round(SLOT_ROUNDS);
        aggregation.update(&view, 500, BW, 800);
        assert_eq!(aggregation.extra_acked[0], 500);
        assert_eq!(aggregation.room(BW), 99, "100 ms, cut");
    }

    #[test]
    fn a_clump_is_forgotten_after_ten_rounds() {
        let (mut aggregation, mut view) = (Aggregation::default(), view());
        aggregation.update(&view, 500, BW, 80);
        for round in 1..=10 {
            assert_eq!(aggregation.room(BW), 80, "round {round}");
            view.delivered_at = at_ms(round * 1_000);
            aggregation.begin_round(SLOT_ROUNDS);
            aggregation.update(&view, 500, BW, 1);
        }
        assert_eq!(aggregation.room(BW), 1);
    }
}
