//! FreeBSD's byte counting (RFC 3465), which its endpoint does for every algorithm, and NewReno's growth by it.

use super::ByteWindow;
use crate::{CaState, View, Window};

/// Byte counting, which the endpoint does for every algorithm (`cc_ack_received`), and NewReno's growth by it.
#[derive(Clone, Debug, Default)]
pub struct ByteCounting {
    /// Bytes acknowledged towards the next step (`t_bytes_acked`).
    pub acked: u64,
    /// A window's worth was acknowledged (`CCF_ABC_SENTAWND`).
    pub window_done: bool,
}

impl ByteCounting {
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
pub fn half(view: &View, bytes: &ByteWindow) -> u64 {
    let mss = u64::from(view.mss);
    (bytes.cwnd / 2 / mss).max(2) * mss
}
