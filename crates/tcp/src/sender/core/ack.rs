//! Content of an ACK, whatever the stack makes of it: its flags, the peer's window (`tcp_ack_update_window`).

use super::{Core, Draft};
use crate::segment::{Flags, Segment};

dragstrip_units::flags! {
    /// News in an ACK (`FLAG_*`).
    pub(in crate::sender) struct AckFlags: u32 {
        /// `snd_una` moved (`FLAG_SND_UNA_ADVANCED`).
        ADVANCED = 1;
        /// Data was cumulatively acknowledged.
        DATA_ACKED = 2;
        /// New SACKs.
        DATA_SACKED = 4;
        /// ECN echo.
        ECE = 8;
        /// A duplicate was reported.
        DSACKING_ACK = 16;
        /// ... of a tail loss probe.
        DSACK_OF_PROBE = 32;
        /// Never-retransmitted data from before `high_seq`, or from before the timeout that 2.6's F-RTO judges, was (S)ACKed.
        ORIG_SACK_ACKED = 64;
        /// A retransmission was found lost.
        LOST_RETRANS = 128;
        /// The timer must be set again.
        SET_TIMER = 256;
        /// The head of the queue is SACKed: the receiver reneges.
        RENEGING = 512;
        /// Something acknowledged was retransmitted.
        RETRANS_ACKED = 1024;
        /// Carries data, moves the window or acknowledges: not a duplicate ACK.
        NOT_DUPLICATE = 2048;
        /// The receiver may have sat on this ACK.
        MAYBE_DELAYED = 4096;
        /// A retransmitted segment other than the head was acknowledged.
        NONHEAD_RETRANS_ACKED = 8192;
        /// A block reaches beyond `high_seq`.
        DATA_LOST = 16_384;
        /// A block reaches beyond what F-RTO judges (2.6.27).
        BEYOND_FRTO = 32_768;
        /// The receiver's window was taken from it.
        WINDOW_UPDATE = 65_536;
        /// Header prediction takes it.
        PREDICTED = 131_072;
    }
}

/// The state of one ACK's processing.
#[derive(Clone, Debug)]
pub(in crate::sender) struct Ack {
    pub flags: AckFlags,
    pub prior_una: u64,
    /// `highest_sack` before it.
    pub prior_highest: u64,
    /// Lowest byte that arrived out of order.
    pub reordered_from: u64,
    /// Send times of the first and last newly SACKed, never retransmitted segments, µs.
    pub first_sacked_us: Option<u64>,
    pub last_sacked_us: Option<u64>,
    /// Segments newly SACKed or reported as duplicates.
    pub sack_delivered: u32,
    pub draft: Draft,
    /// Packets that it reports as marked by its counters (accurate ECN).
    pub marked: u32,
}

impl Ack {
    pub fn new(core: &Core) -> Self {
        Self {
            flags: AckFlags::default(),
            prior_una: core.view.snd_una,
            prior_highest: core.highest_sack(),
            reordered_from: core.view.snd_nxt,
            first_sacked_us: None,
            last_sacked_us: None,
            sack_delivered: 0,
            draft: Draft::default(),
            marked: 0,
        }
    }
}

impl Core {
    pub fn note_first_window(&mut self, segment: &Segment) {
        self.window_end = u64::from(segment.window);
        self.window_seq = segment.seq + u64::from(!segment.flags.has(Flags::SYN));
        self.buffer.max_window = u64::from(segment.window);
    }

    /// Takes the ACK's window over and moves `snd_una` (`tcp_ack_update_window`).
    #[inline]
    pub fn update_window(&mut self, segment: &Segment, ack: &mut Ack) {
        if segment.ack > self.view.snd_una {
            ack.flags.set(AckFlags::ADVANCED.with(AckFlags::NOT_DUPLICATE));
        }
        if segment.len > 0 {
            ack.flags.set(AckFlags::NOT_DUPLICATE);
        }
        if ack.flags.has(AckFlags::ADVANCED) || self.may_update_window(segment) {
            ack.flags.set(AckFlags::NOT_DUPLICATE.with(AckFlags::WINDOW_UPDATE));
            self.take_window(segment);
        }
        self.view.snd_una = segment.ack;
    }

    /// The window is the one that the segment offers.
    #[inline]
    pub fn take_window(&mut self, segment: &Segment) {
        self.window_end = segment.ack + u64::from(segment.window);
        self.window_seq = segment.seq + 1;
        self.buffer.max_window = self.buffer.max_window.max(u64::from(segment.window));
    }

    /// `tcp_may_update_window` (RFC 9293 §3.10.7.4): whatever is newer than the last update may, and shrink it.
    #[inline]
    pub fn may_update_window(&self, segment: &Segment) -> bool {
        let window_end = segment.ack + u64::from(segment.window);
        segment.seq >= self.window_seq
            || (segment.seq + 1 == self.window_seq && window_end > self.window_end)
    }

    /// `tcp_ecn_rcv_ecn_echo`.
    #[inline]
    pub fn note_ecn_echo(&self, segment: &Segment, ack: &mut Ack) {
        if self.agreed.by_flags() && segment.flags.has(Flags::ECE) {
            ack.flags.set(AckFlags::ECE);
        }
    }
}
