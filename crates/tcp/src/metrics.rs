//! Metrics that a host caches from a connection for the next one to the same host.
//!
//! Kernel: Linux 2.6's `tcp_update_metrics` at the end, `tcp_init_metrics` at the beginning (tcp_input.c), in the
//! route to the destination. Windows are in packets.

/// The metrics of one destination; 0: nothing known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Slow-start threshold (`RTAX_SSTHRESH`).
    pub ssthresh: u32,
    /// Reordering tolerance, when it was learnt (`RTAX_REORDERING`).
    pub reordering: u32,
    /// Smoothed RTT × 8, µs (`RTAX_RTT`).
    pub srtt_us_x8: u32,
    /// Deviation × 4, µs (`RTAX_RTTVAR`).
    pub rttvar_us_x4: u32,
}

/// The state of a connection that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub cwnd: u32,
    pub ssthresh: u32,
    /// The state is Open.
    pub open: bool,
    /// Timeouts since the last ACK.
    pub backed_off: bool,
    pub reordering: u32,
    pub reordering_setting: u32,
    pub srtt_us_x8: u32,
    pub mdev_us_x4: u32,
}

/// Below this a threshold was set by a reduction.
const FINISHED: u32 = 0xffff;

impl Metrics {
    pub(crate) fn update(&mut self, ending: &Ending) {
        if ending.backed_off || ending.srtt_us_x8 == 0 {
            // It failed to measure the RTT: perhaps what is known is wrong.
            self.srtt_us_x8 = 0;
            return;
        }
        self.update_rtt(ending);
        self.update_threshold(ending);
        if ending.reordering > self.reordering && ending.reordering != ending.reordering_setting {
            self.reordering = ending.reordering;
        }
    }

    /// A longer RTT is believed at once, a shorter one by an eighth; the deviation alike.
    fn update_rtt(&mut self, ending: &Ending) {
        let (known, now) = (i64::from(self.srtt_us_x8), i64::from(ending.srtt_us_x8));
        let fallen = known - now;
        self.srtt_us_x8 = if fallen <= 0 { now } else { known - (fallen >> 3) } as u32;
        let deviation = ((fallen.unsigned_abs() >> 1) as u32).max(ending.mdev_us_x4);
        if deviation >= self.rttvar_us_x4 {
            self.rttvar_us_x4 = deviation;
        } else {
            self.rttvar_us_x4 -= (self.rttvar_us_x4 - deviation) >> 2;
        }
    }

    fn update_threshold(&mut self, ending: &Ending) {
        let half = ending.cwnd >> 1;
        if ending.ssthresh >= FINISHED {
            // Slow start had not ended: what is known can only be too low.
            if self.ssthresh > 0 {
                self.ssthresh = self.ssthresh.max(half);
            }
        } else if ending.cwnd > ending.ssthresh && ending.open {
            self.ssthresh = half.max(ending.ssthresh);
        } else if self.ssthresh > 0 {
            self.ssthresh = self.ssthresh.max(ending.ssthresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Ending = Ending {
        cwnd: 50,
        ssthresh: 20,
        open: true,
        backed_off: false,
        reordering: 3,
        reordering_setting: 3,
        srtt_us_x8: 800_000,
        mdev_us_x4: 40_000,
    };

    fn after(endings: &[Ending]) -> Metrics {
        let mut metrics = Metrics::default();
        for ending in endings {
            metrics.update(ending);
        }
        metrics
    }

    #[test]
    fn the_threshold_is_half_the_window_or_the_threshold_if_that_is_more() {
        assert_eq!(after(&[QUIET]).ssthresh, 25);
        assert_eq!(after(&[Ending { ssthresh: 40, ..QUIET }]).ssthresh, 40);
    }

    #[test]
    fn a_connection_without_a_reduction_only_raises_what_is_known() {
        let first = Ending { ssthresh: 0x7fff_ffff, ..QUIET };
        assert_eq!(after(&[first]).ssthresh, 0);
        assert_eq!(after(&[QUIET, Ending { cwnd: 400, ..first }]).ssthresh, 200);
    }

    #[test]
    fn a_connection_cut_short_in_recovery_does_not_lower_it() {
        let cut = Ending { open: false, ssthresh: 5, ..QUIET };
        assert_eq!(after(&[cut]).ssthresh, 0);
        assert_eq!(after(&[QUIET, cut]).ssthresh, 25);
    }

    #[test]
    fn a_longer_rtt_counts_at_once_a_shorter_one_by_an_eighth() {
        let shorter = Ending { srtt_us_x8: 400_000, ..QUIET };
        assert_eq!(after(&[shorter, QUIET]).srtt_us_x8, 800_000);
        let metrics = after(&[QUIET, shorter]);
        assert_eq!((metrics.srtt_us_x8, metrics.rttvar_us_x4), (750_000, 350_000));
    }

    #[test]
    fn learnt_reordering_is_kept() {
        let learnt = Ending { reordering: 80, ..QUIET };
        assert_eq!(after(&[learnt, QUIET]).reordering, 80);
    }

    #[test]
    fn a_connection_that_ends_in_timeouts_forgets_the_rtt() {
        let metrics = after(&[QUIET, Ending { backed_off: true, ..QUIET }]);
        assert_eq!((metrics.srtt_us_x8, metrics.ssthresh), (0, 25));
    }
}
