//! Reno: additive increase, multiplicative decrease.
//!
//! - **Paper**: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; RFC 5681 §3.1.
//! - **Equations**: slow start `cwnd += acked`; congestion avoidance `cwnd += acked / cwnd`;
//!   on congestion `ssthresh = cwnd / 2`.
//! - **States**:
//!
//! ```text
//!   slow start ──cwnd ≥ ssthresh──▶ congestion avoidance
//!       ▲                                  │ loss or ECN echo: ssthresh = max(cwnd/2, 2)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from RFC 5681**, as Linux does: growth counts packets delivered (cumulatively
//!   acknowledged or SACKed), not ACKs and not bytes; the reduction takes `cwnd`, not the flight size
//!   (eq. 4); the window is never inflated in recovery, the endpoint's pipe count does that work.
//! - **Source of the details**: Linux 6.1 `tcp_cong.c` (`tcp_reno_*`).

use crate::{CongestionControl, Options, Response, UnknownAlgorithm, View, Window};
use dragstrip_units::Stream;

/// Linux's Reno. It has no parameters.
#[derive(Clone, Debug)]
pub struct Reno;

impl Reno {
    /// `stream` is not used: Reno leaves nothing to chance.
    ///
    /// # Errors
    /// Any option: there are none.
    pub fn new(options: &Options, _stream: Stream) -> Result<Self, UnknownAlgorithm> {
        super::reject_unknown("reno", options, &[])?;
        Ok(Self)
    }
}

/// `tcp_reno_cong_avoid`: the growth that several other algorithms fall back on.
#[inline]
pub fn grow(view: &View, window: &mut Window, acked: u32) {
    if !view.cwnd_limited(window) {
        return;
    }
    let left = if window.in_slow_start() { window.slow_start(acked) } else { acked };
    if left > 0 {
        window.additive_increase(window.cwnd, left);
    }
}

/// `tcp_reno_ssthresh`: half the window, at least two packets.
#[inline]
#[must_use]
pub fn half(window: &Window) -> u32 {
    (window.cwnd >> 1).max(2)
}

impl CongestionControl for Reno {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        half(window)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        grow(view, window, acked);
        Response::None
    }
}
