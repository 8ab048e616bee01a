//! The Vegas of 1999, a patch for Linux 2.2 ([`VegasRule::Patch`](crate::VegasRule)).

use super::Vegas;
use crate::{View, Window};

/// Additional state of the patch of 1999 from the last round.
#[derive(Clone, Debug, Default)]
pub(super) struct Patch {
    /// Start of the round (`beg_snd_una`).
    pub(super) round_start: u64,
    /// The window then (`beg_snd_cwnd`).
    pub(super) cwnd: u32,
    /// The last RTT sample, µs.
    pub(super) rtt_us: u32,
}

impl Vegas {
    /// An ACK as the patch of 1999 treats it (`vegas_cong_avoid` of 2.6.11).
    pub(super) fn steer_by_patch(&mut self, view: &View, window: &mut Window, acked: u32) {
        if self.rounds.ended(view) {
            let packets_sent = (self.rounds.end - self.patch.round_start) / u64::from(view.mss);
            let before = std::mem::replace(&mut self.patch.cwnd, window.cwnd);
            self.patch.round_start = self.rounds.end;
            self.rounds.end = view.snd_nxt;
            if self.rounds.samples > 2 {
                self.judge_by_patch(packets_sent, before, window);
            } else if !window.in_slow_start() {
                window.cwnd += 1;
            }
            // The sample of this ACK counts for the next round too.
            self.rounds.samples = 1;
            self.rounds.min_rtt_us = self.patch.rtt_us;
        }
        if window.in_slow_start() {
            window.slow_start(acked);
        }
        window.cwnd = window.cwnd.max(2).min(window.clamp);
    }

    /// The once-per-round-trip decision: `sent` packets in the last round, whose window was `before`. Half packets.
    fn judge_by_patch(&mut self, sent: u64, before: u32, window: &mut Window) {
        let target =
            2 * sent * u64::from(self.rounds.base_rtt_us) / u64::from(self.rounds.min_rtt_us);
        let diff = 2 * sent - target;
        self.diff_x2 = Some(diff.min(u64::from(u32::MAX)) as u32);
        let above = |packets: u32| diff > 2 * u64::from(packets);
        if window.cwnd < window.ssthresh {
            if above(self.gamma) {
                window.ssthresh = 2;
                window.cwnd = window.cwnd.min((target / 2) as u32 + 1);
            }
            return;
        }
        let target_cwnd = if above(self.beta) {
            before.saturating_sub(1)
        } else if diff < 2 * u64::from(self.alpha) {
            before + 1
        } else {
            before
        };
        match target_cwnd.cmp(&window.cwnd) {
            std::cmp::Ordering::Greater => window.cwnd += 1,
            std::cmp::Ordering::Less => window.cwnd -= 1,
            std::cmp::Ordering::Equal => {}
        }
    }
}
