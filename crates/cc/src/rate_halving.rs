//! What an algorithm contributes to a reduction by rate halving (Linux before 3.2).

use crate::{Algorithm, Window};

impl Algorithm {
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
