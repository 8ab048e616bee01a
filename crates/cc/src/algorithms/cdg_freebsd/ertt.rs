//! FreeBSD's `h_ertt`: enhanced RTT measurement, as far as CDG and Vegas use it.
//!
//! RTTs are whole milliseconds of a clock that advances once per kernel tick, plus one, so never 0.
//! ACKs that the receiver has probably delayed are not measured. One segment per round trip is
//! *marked*; its acknowledgement ends the round, and the next segment sent is marked. When the marked one
//! is acknowledged together with later ones, the last of them takes its place.
//!
//! Source of the details: Hayes, CAIA technical report 100219A; FreeBSD 9.3 `khelp/h_ertt.c`. Time
//! stamps are not matched, and a SACK beyond the mark does not end the round, as it does there.

use crate::{Ack, Kernel, View};

/// Delayed ACKs that the guess counts up to (`DLYACK_SMOOTH`).
const DELACK_MAX: u8 = 5;

/// The measurement.
#[derive(Clone, Debug)]
pub struct Ertt {
    /// How often the clock advances, ms; 0: with the host's tick.
    tick_ms: u64,
    /// Guess of the receiver's delayed ACKs (`dlyack_rx`).
    delack: u8,
    /// Last RTT measured, ms; 0 before the first (`e_t->rtt`).
    pub rtt_ms: i32,
    /// Least RTT measured, ms; 0 before the first (`minrtt`).
    pub min_rtt_ms: i32,
    /// RTT of the marked segment of the round that ended last, ms (`markedpkt_rtt`).
    pub marked_rtt_ms: i32,
    /// Bytes sent from the marked segment on until it was acknowledged (`bytes_tx_in_marked_rtt`).
    pub marked_bytes: u64,
    /// The first byte of the marked segment.
    marked: u64,
}

impl Ertt {
    /// `tick_ms`: how often the clock advances; 0: with the tick of a FreeBSD host, every ms on others.
    pub fn new(tick_ms: u32) -> Self {
        Self {
            tick_ms: u64::from(tick_ms),
            delack: 0,
            rtt_ms: 0,
            min_rtt_ms: 0,
            marked_rtt_ms: 0,
            marked_bytes: 0,
            marked: 0,
        }
    }

    /// Marks the next segment to be sent.
    pub fn mark(&mut self, view: &View) {
        self.marked = view.snd_nxt;
    }

    /// Takes in an ACK; true when it acknowledges the marked segment.
    pub fn measure(&mut self, view: &View, ack: &Ack) -> bool {
        let multiple = ack.packets > 1;
        let sacked = view.sacked_out > 0;
        if !sacked {
            if multiple {
                self.delack = (self.delack + 1).min(DELACK_MAX);
            } else if ack.packets == 1 {
                self.delack = self.delack.saturating_sub(1);
            }
        }
        let rtt_ms = ack.rtt_us.map(|rtt_us| self.ticked_ms(view, rtt_us));
        if let Some(rtt_ms) = rtt_ms
            && (self.delack == 0 || multiple || sacked)
        {
            self.rtt_ms = rtt_ms;
            if rtt_ms < self.min_rtt_ms || self.min_rtt_ms == 0 {
                self.min_rtt_ms = rtt_ms;
            }
        }
        let round_over = view.snd_una > self.marked;
        if round_over {
            if let Some(rtt_ms) = rtt_ms {
                self.marked_rtt_ms = rtt_ms;
                self.marked_bytes = view.snd_nxt - view.snd_una + u64::from(view.mss);
            }
            self.mark(view);
        }
        round_over
    }

    /// `rtt_us` by a clock that stands still between ticks, and one.
    fn ticked_ms(&self, view: &View, rtt_us: u32) -> i32 {
        let tick_ms = match (self.tick_ms, view.kernel) {
            (0, Kernel::Freebsd9) => u64::from(1_000 / view.hz).max(1),
            (0, _) => 1,
            (tick_ms, _) => tick_ms,
        };
        let clock_ms = |us: u64| us / (tick_ms * 1_000) * tick_ms;
        let now_us = view.now_us();
        let sent_us = now_us.saturating_sub(u64::from(rtt_us));
        (clock_ms(now_us) - clock_ms(sent_us)) as i32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack, at_ms, view};
    use dragstrip_units::Instant;

    #[test]
    fn rtts_are_whole_ticks_and_one() {
        for (tick_ms, now_us, rtt_us, expected) in [
            (1, 10_000_500, 400, 1), // sent in the same millisecond
            (1, 10_000_500, 600, 2), // in the one before
            (1, 10_000_500, 4_000, 5),
            (10, 10_004_000, 3_000, 1), // a 10 ms clock has not moved
            (10, 10_001_000, 3_000, 11),
        ] {
            let (mut ertt, mut view) = (Ertt::new(tick_ms), view());
            view.now = Instant::from_nanos(now_us * 1_000);
            ertt.measure(&view, &ack(2, rtt_us));
            assert_eq!(ertt.rtt_ms, expected, "{now_us} - {rtt_us}");
        }
    }

    #[test]
    fn a_probably_delayed_ack_is_not_measured() {
        let (mut ertt, mut view) = (Ertt::new(1), view());
        view.now = at_ms(1_000);
        for (packets, rtt_us, expected) in
            [(2, 4_000, 5), (2, 4_000, 5), (1, 90_000, 5), (1, 90_000, 91)]
        {
            ertt.measure(&view, &ack(packets, rtt_us));
            assert_eq!(ertt.rtt_ms, expected);
        }
    }

    #[test]
    fn the_host_s_tick_is_the_clock_of_a_freebsd_host() {
        let (mut ertt, mut view) = (Ertt::new(0), view());
        (view.kernel, view.hz) = (Kernel::Freebsd9, 100);
        view.now = Instant::from_nanos(10_001_000_000);
        ertt.measure(&view, &ack(2, 3_000));
        assert_eq!((ertt.rtt_ms, ertt.min_rtt_ms), (11, 11));
    }

    /// A pair acknowledged at once: the second stands for the marked first, and what was sent since the first counts
    /// one segment less.
    #[test]
    fn the_last_acknowledged_stands_for_the_marked() {
        let (mut ertt, mut view) = (Ertt::new(1), view());
        view.now = at_ms(1_000);
        view.snd_nxt = 10 * 1_448;
        view.snd_una = 2 * 1_448;
        assert!(ertt.measure(&view, &ack(2, 20_000)));
        assert_eq!((ertt.marked_rtt_ms, ertt.marked_bytes), (21, 9 * 1_448));
    }

    #[test]
    fn a_round_lasts_until_what_was_sent_after_the_mark_is_acknowledged() {
        let (mut ertt, mut view) = (Ertt::new(1), view());
        view.snd_nxt = 10_000;
        ertt.mark(&view);
        for (snd_una, snd_nxt, over) in [
            (5_000, 15_000, false),
            (10_000, 20_000, false),
            (11_448, 21_448, true),
            (20_000, 30_000, false),
        ] {
            (view.snd_una, view.snd_nxt) = (snd_una, snd_nxt);
            assert_eq!(ertt.measure(&view, &ack(2, 5_000)), over, "{snd_una}");
        }
    }
}
