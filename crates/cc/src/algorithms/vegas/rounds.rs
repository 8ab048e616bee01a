//! RTTs by the round, as Vegas and those who borrow from it keep them (`struct vegas`).

use crate::View;

/// "No sample yet": longer than any RTT, µs (the kernel's 0x7fffffff).
pub const NO_RTT: u32 = 0x7fff_ffff;

/// The least RTTs of the path and of a round.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Minimum RTT since the connection began or was last idle, µs.
    pub base_rtt_us: u32,
    /// Minimum RTT of this round, µs.
    pub min_rtt_us: u32,
    /// RTT samples in this round.
    pub samples: u32,
    /// The round ends when this byte is acknowledged.
    pub end: u64,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { base_rtt_us: NO_RTT, min_rtt_us: NO_RTT, samples: 0, end: 0 }
    }
}

impl Rounds {
    /// A new round from what is sent next (`vegas_enable`).
    pub fn begin(&mut self, view: &View) {
        self.end = view.snd_nxt;
        self.forget_round();
    }

    /// The samples of this round are not used.
    pub fn forget_round(&mut self) {
        self.samples = 0;
        self.min_rtt_us = NO_RTT;
    }

    /// The same for another path (`tcp_vegas_init`).
    pub fn forget_path(&mut self, view: &View) {
        self.base_rtt_us = NO_RTT;
        self.begin(view);
    }

    /// True when this ACK ends the round.
    #[inline]
    #[must_use]
    pub fn ended(&self, view: &View) -> bool {
        view.snd_una > self.end
    }

    /// `tcp_vegas_pkts_acked`: a sample, and `unit` µs. The answer is what counts: never zero, since it is divided by,
    /// and never [`NO_RTT`] or above.
    #[inline]
    pub fn sample(&mut self, rtt_us: u32, unit: u32) -> u32 {
        let rtt_us = rtt_us.min(NO_RTT - 1 - unit) + unit;
        self.base_rtt_us = self.base_rtt_us.min(rtt_us);
        self.min_rtt_us = self.min_rtt_us.min(rtt_us);
        self.samples = self.samples.saturating_add(1);
        rtt_us
    }
}
