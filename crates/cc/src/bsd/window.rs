//! Windows in bytes, as FreeBSD keeps them, beside the packets that the endpoint counts.

use crate::{View, Window};

/// A window and its threshold in bytes, and what was last shown of them in packets, to notice when the
/// endpoint moves them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteWindow {
    pub cwnd: u64,
    pub ssthresh: u64,
    cwnd_packets: u32,
    ssthresh_packets: u32,
}

impl ByteWindow {
    /// Takes over what the endpoint has done to the window since the last hook.
    pub fn adopt(&mut self, view: &View, window: &Window) {
        if window.cwnd != self.cwnd_packets {
            self.cwnd_packets = window.cwnd;
            self.cwnd = u64::from(window.cwnd) * u64::from(view.mss);
        }
        if window.ssthresh != self.ssthresh_packets {
            self.ssthresh_packets = window.ssthresh;
            self.ssthresh = u64::from(window.ssthresh) * u64::from(view.mss);
        }
    }

    /// Shows the window in whole packets: FreeBSD sends no partial segment either.
    pub fn export(&mut self, view: &View, window: &mut Window) {
        self.cwnd_packets = packets(self.cwnd, view.mss, 1).min(window.clamp);
        window.cwnd = self.cwnd_packets;
        window.ssthresh = self.ssthresh_in_packets(view);
    }

    /// The threshold in whole packets, at least 2.
    pub fn ssthresh_in_packets(&mut self, view: &View) -> u32 {
        self.ssthresh_packets = packets(self.ssthresh, view.mss, 2);
        self.ssthresh_packets
    }

    /// A recovery has ended and the endpoint has set the window to the threshold in whole packets: the bytes
    /// beyond them are still ours. Whether it has.
    pub fn keep_threshold(&mut self, window: &Window) -> bool {
        let at_threshold = window.cwnd == self.ssthresh_packets && window.ssthresh == window.cwnd;
        if at_threshold {
            self.cwnd_packets = window.cwnd;
            self.cwnd = self.ssthresh;
        }
        at_threshold
    }

    /// FreeBSD's slow start holds at the threshold too.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd <= self.ssthresh
    }
}

/// `bytes` in whole packets.
fn packets(bytes: u64, mss: u32, floor: u32) -> u32 {
    ((bytes / u64::from(mss)).min(u64::from(Window::INFINITE)) as u32).max(floor)
}
