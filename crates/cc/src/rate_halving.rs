//! What an algorithm tells the endpoints of older kernels.

use crate::{Algorithm, Window};

impl Algorithm {
    /// `TCP_CONG_RTT_STAMP`: it is given RTTs in µs where the others have them in jiffies (before 3.15).
    #[must_use]
    pub const fn wants_stamps(&self) -> bool {
        matches!(self, Self::Vegas(_))
    }

    /// `min_cwnd`: how low rate halving may bring the window. Reno's own is half the threshold
    /// (`tcp_reno_min_cwnd`), and those that are Reno but for their thresholds share it; CUBIC has none, so that it
    /// is the threshold.
    #[must_use]
    pub const fn min_cwnd(&self, window: &Window) -> u32 {
        if matches!(self, Self::Reno(_) | Self::Vegas(_) | Self::Exp(_)) {
            window.ssthresh / 2
        } else {
            window.ssthresh
        }
    }
}
