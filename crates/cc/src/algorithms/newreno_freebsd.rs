//! NewReno as in FreeBSD 9: Reno's growth, counted in bytes.
//!
//! - **Paper**: RFC 5681 for the window, RFC 3465 (appropriate byte counting) for its growth.
//! - **Equations**: slow start `cwnd += min(bytes acknowledged, L · mss)`, L = 2, and 1 while a timeout is being repaired;
//!   congestion avoidance: one segment per window of acknowledged bytes, of which an ACK counts L segments at most; on congestion
//!   `ssthresh = cwnd / 2`.
//! - **States**: those of Reno:
//!
//! ```text
//!   slow start ──cwnd > ssthresh──▶ congestion avoidance
//!       ▲                                  │ three duplicate ACKs: ssthresh = max(cwnd/2, 2 segments)
//!       └───────── timeout: cwnd = 1 ──────┘
//! ```
//! - **Departs from Linux's Reno**, as FreeBSD does: slow start holds at the threshold; a stretch ACK counts
//!   two segments; the window grows while it does not exceed the window of the receiver, whether it is used or not.
//! - **Departs from FreeBSD 9**: an ECN echo is taken for a loss (`net.inet.tcp.ecn.enable` is 0 there).
//! - **Source of the details**: FreeBSD 9.3 `cc/cc_newreno.c`, `cc_ack_received` in `tcp_input.c`. L is the sysctl
//!   `net.inet.tcp.abc_l_var` of the host; with `net.inet.tcp.rfc3465` = 0 growth is by `mss` per ACK and `mss² / cwnd`.

use crate::algorithms::reject_unknown;
use crate::bytes::ByteWindow;
use crate::{
    About, CaState, CongestionControl, Event, Options, Response, Unit, UnknownAlgorithm, Variable,
    View, Window,
};
use dragstrip_units::Stream;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "newreno-freebsd",
    variables: &[Variable::new(
        "bytes_acked",
        Unit::Bytes,
        "acknowledged towards the next step of congestion avoidance",
    )],
};

/// FreeBSD's NewReno. Its parameters are those of the host.
#[derive(Clone, Debug)]
pub struct NewrenoFreebsd {
    bytes: ByteWindow,
    growth: Growth,
}

impl NewrenoFreebsd {
    /// `stream` is not used.
    ///
    /// # Errors
    /// Any option: there are none.
    pub fn new(options: &Options, _stream: Stream) -> Result<Self, UnknownAlgorithm> {
        reject_unknown("newreno-freebsd", options, &[])?;
        Ok(Self { bytes: ByteWindow::default(), growth: Growth::default() })
    }
}

/// Byte counting, which the endpoint does for every algorithm (`cc_ack_received`), and NewReno's growth by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Bytes acknowledged towards the next step (`t_bytes_acked`).
    acked: u64,
    /// A window's worth was acknowledged (`CCF_ABC_SENTAWND`).
    pub window_done: bool,
}

impl Growth {
    /// Counts `packets` acknowledged.
    pub fn count(&mut self, view: &View, bytes: &ByteWindow, packets: u32) {
        if bytes.in_slow_start() {
            self.window_done = false;
            self.acked = 0;
            return;
        }
        self.acked += u64::from(packets.min(view.abc_limit.max(1))) * u64::from(view.mss);
        if self.acked >= bytes.cwnd {
            self.acked -= bytes.cwnd;
            self.window_done = true;
        }
    }

    /// `newreno_ack_received`: what the window gains by an ACK of `packets`.
    pub fn grow(&mut self, view: &View, bytes: &mut ByteWindow, window: &Window, packets: u32) {
        if !view.is_cwnd_limited {
            return;
        }
        let mss = u64::from(view.mss);
        let counting = view.abc_limit > 0;
        let increase = if bytes.in_slow_start() {
            let most = if view.state == CaState::Loss { 1 } else { view.abc_limit };
            if counting { u64::from(packets.min(most)) * mss } else { mss }
        } else if !counting {
            (mss * mss / bytes.cwnd).max(1)
        } else if self.window_done {
            self.window_done = false;
            mss
        } else {
            0
        };
        bytes.cwnd = (bytes.cwnd + increase).min(u64::from(window.clamp) * mss);
    }

    /// A recovery or a timeout: what had been counted is void (`t_bytes_acked = 0`).
    pub fn restart(&mut self) {
        self.acked = 0;
    }
}

/// NewReno's threshold: half the window in whole segments, at least 2.
pub(super) fn half(view: &View, bytes: &ByteWindow) -> u64 {
    let mss = u64::from(view.mss);
    (bytes.cwnd / 2 / mss).max(2) * mss
}

impl CongestionControl for NewrenoFreebsd {
    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.bytes.adopt(view, window);
        self.bytes.ssthresh = half(view, &self.bytes);
        self.bytes.ssthresh_in_packets(view)
    }

    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.bytes.adopt(view, window);
        self.growth.count(view, &self.bytes, acked);
        self.growth.grow(view, &mut self.bytes, window, acked);
        self.bytes.export(view, window);
        Response::None
    }

    fn cwnd_event(&mut self, _view: &View, _window: &mut Window, event: Event) {
        match event {
            Event::CompleteCwr | Event::Loss => self.growth.restart(),
            Event::TxStart | Event::CwndRestart => {}
        }
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("bytes_acked", self.growth.acked as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{options, stream, view};

    fn start(cwnd: u32, ssthresh: u32) -> (NewrenoFreebsd, View, Window) {
        let newreno = NewrenoFreebsd::new(&options(&[]), stream()).unwrap();
        let mut window = Window::new(cwnd);
        window.ssthresh = ssthresh;
        (newreno, view(), window)
    }

    /// RFC 3465 §2.2, L = 2.
    #[test]
    fn slow_start_counts_two_segments_of_an_ack_at_most() {
        let (mut newreno, view, mut window) = start(10, Window::INFINITE);
        for (acked, expected) in [(1, 11), (2, 13), (7, 15)] {
            let _ = newreno.cong_avoid(&view, &mut window, acked);
            assert_eq!(window.cwnd, expected);
        }
    }

    /// RFC 3465 §2.3: no more than one segment while a timeout is being repaired.
    #[test]
    fn after_a_timeout_an_ack_counts_once() {
        let (mut newreno, mut view, mut window) = start(1, 10);
        view.state = CaState::Loss;
        let _ = newreno.cong_avoid(&view, &mut window, 2);
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn delayed_acks_do_not_slow_congestion_avoidance() {
        for per_ack in [1, 2] {
            let (mut newreno, view, mut window) = start(20, 10);
            for _ in 0..20 / per_ack {
                assert_eq!(window.cwnd, 20);
                let _ = newreno.cong_avoid(&view, &mut window, per_ack);
            }
            assert_eq!(window.cwnd, 21, "{per_ack} segments per ACK");
        }
    }

    #[test]
    fn without_byte_counting_an_ack_counts_once() {
        let (mut newreno, mut view, mut window) = start(20, 10);
        view.abc_limit = 0;
        for _ in 0..10 {
            let _ = newreno.cong_avoid(&view, &mut window, 2);
        }
        assert_eq!(window.cwnd, 20, "ten of the twenty ACKs or so that a step takes");
        for _ in 0..11 {
            let _ = newreno.cong_avoid(&view, &mut window, 2);
        }
        assert_eq!(window.cwnd, 21);
    }

    #[test]
    fn a_window_beyond_the_receiver_s_does_not_grow() {
        let (mut newreno, mut view, mut window) = start(20, Window::INFINITE);
        view.is_cwnd_limited = false;
        let _ = newreno.cong_avoid(&view, &mut window, 2);
        assert_eq!(window.cwnd, 20);
    }

    #[test]
    fn half_is_given_up_but_two_segments_stay() {
        for (cwnd, ssthresh) in [(100, 50), (7, 3), (3, 2), (1, 2)] {
            let (mut newreno, view, mut window) = start(cwnd, 5);
            assert_eq!(newreno.ssthresh(&view, &mut window), ssthresh);
        }
    }
}
