//! FreeBSD's `h_ertt`: enhanced RTT measurement, as far as CDG and Vegas use it.
//!
//! RTTs are whole kernel ticks, plus one, so never 0: 1 ms each, or 10 where the kernel finds itself in a virtual machine
//! (`kern.hz`). From FreeBSD 9.1 on they are milliseconds of a clock that still advances once per tick; not here.
//! ACKs that the receiver has probably delayed are not measured. One segment per round trip is
//! *marked*; its acknowledgement ends the round, and the next segment sent is marked. When the marked one
//! is acknowledged together with later ones, the last of them takes its place.
//!
//! Source of the details: Hayes, CAIA technical report 100219A; FreeBSD 9.0 `khelp/h_ertt.c`. Time
//! stamps are not matched, and a SACK beyond the mark does not end the round, as it does there.

use crate::{Ack, BsdHost, View};
use std::num::NonZeroU32;

/// Delayed ACKs that the guess counts up to (`DLYACK_SMOOTH`).
const DELACK_MAX: u8 = 5;

/// The measurement.
#[derive(Clone, Debug)]
pub struct Ertt {
    /// A tick, ms; `None`: the host's.
    tick_ms: Option<NonZeroU32>,
    /// Phase of the ticks: the host's clock at the start of the run, in 2^-32 of a tick.
    phase: u32,
    /// Guess of the receiver's delayed ACKs (`dlyack_rx`).
    delack: u8,
    /// Last RTT measured, ticks; 0 before the first (`e_t->rtt`).
    pub rtt: i32,
    /// Least RTT measured, ticks; 0 before the first (`minrtt`).
    pub min_rtt: i32,
    /// RTT of the marked segment of the round that ended last, ticks (`markedpkt_rtt`).
    pub marked_rtt: i32,
    /// Bytes sent from the marked segment on until it was acknowledged (`bytes_tx_in_marked_rtt`).
    pub marked_bytes: u64,
    /// The first byte of the marked segment.
    marked: u64,
}

impl Ertt {
    /// `tick_ms`: 0 is the tick of a FreeBSD host, 1 on others. `phase`: when ticks fall, in 2^-32 of one.
    pub fn new(tick_ms: u32, host: BsdHost, phase: u32) -> Self {
        let elsewhere = match host {
            BsdHost::Native => None,
            BsdHost::Foreign => NonZeroU32::new(1),
        };
        Self {
            tick_ms: NonZeroU32::new(tick_ms).or(elsewhere),
            phase,
            delack: 0,
            rtt: 0,
            min_rtt: 0,
            marked_rtt: 0,
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
        let rtt = ack.rtt_us.map(|rtt_us| self.ticks(view, rtt_us));
        if let Some(rtt) = rtt
            && (self.delack == 0 || multiple || sacked)
        {
            self.rtt = rtt;
            if rtt < self.min_rtt || self.min_rtt == 0 {
                self.min_rtt = rtt;
            }
        }
        let round_over = view.snd_una > self.marked;
        if round_over {
            if let Some(rtt) = rtt {
                self.marked_rtt = rtt;
                self.marked_bytes = view.snd_nxt - view.snd_una + u64::from(view.mss);
            }
            self.mark(view);
        }
        round_over
    }

    /// A tick, ms.
    fn tick_ms(&self, view: &View) -> u64 {
        u64::from(self.tick_ms.map_or((1_000 / view.hz).max(1), NonZeroU32::get))
    }

    /// A tick, ns.
    pub fn tick_ns(&self, view: &View) -> f64 {
        self.tick_ms(view) as f64 * 1e6
    }

    /// `rtt_us` in whole ticks, and one.
    fn ticks(&self, view: &View, rtt_us: u32) -> i32 {
        let tick_us = self.tick_ms(view) * 1_000;
        let phase_us = (tick_us * u64::from(self.phase)) >> 32;
        let clock = |us: u64| (us + phase_us) / tick_us;
        let now_us = view.now_us();
        let sent_us = now_us.saturating_sub(u64::from(rtt_us));
        (clock(now_us) - clock(sent_us)) as i32 + 1
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
            (10, 10_001_000, 3_000, 2),
            (10, 10_001_000, 43_000, 6),
        ] {
            let (mut ertt, mut view) = (Ertt::new(tick_ms, BsdHost::Foreign, 0), view());
            view.now = Instant::from_nanos(now_us * 1_000);
            ertt.measure(&view, &ack(2, rtt_us));
            assert_eq!(ertt.rtt, expected, "{now_us} - {rtt_us}");
        }
    }

    /// Half a tick further, the second of the two falls before the tick.
    #[test]
    fn ticks_fall_where_the_phase_says() {
        for (phase, expected) in [(0, 2), (1 << 31, 1)] {
            let (mut ertt, mut view) = (Ertt::new(10, BsdHost::Foreign, phase), view());
            view.now = Instant::from_nanos(10_001_000_000);
            ertt.measure(&view, &ack(2, 3_000));
            assert_eq!(ertt.rtt, expected);
        }
    }

    #[test]
    fn a_probably_delayed_ack_is_not_measured() {
        let (mut ertt, mut view) = (Ertt::new(1, BsdHost::Foreign, 0), view());
        view.now = at_ms(1_000);
        for (packets, rtt_us, expected) in
            [(2, 4_000, 5), (2, 4_000, 5), (1, 90_000, 5), (1, 90_000, 91)]
        {
            ertt.measure(&view, &ack(packets, rtt_us));
            assert_eq!(ertt.rtt, expected);
        }
    }

    #[test]
    fn the_host_s_tick_is_the_unit_on_a_freebsd_host() {
        let (mut ertt, mut view) = (Ertt::new(0, BsdHost::Native, 0), view());
        view.hz = 100;
        view.now = Instant::from_nanos(10_001_000_000);
        ertt.measure(&view, &ack(2, 3_000));
        assert_eq!((ertt.rtt, ertt.min_rtt), (2, 2));
    }

    /// A pair acknowledged at once: the second stands for the marked first, and what was sent since the first counts
    /// one segment less.
    #[test]
    fn the_last_acknowledged_stands_for_the_marked() {
        let (mut ertt, mut view) = (Ertt::new(1, BsdHost::Foreign, 0), view());
        view.now = at_ms(1_000);
        view.snd_nxt = 10 * 1_448;
        view.snd_una = 2 * 1_448;
        assert!(ertt.measure(&view, &ack(2, 20_000)));
        assert_eq!((ertt.marked_rtt, ertt.marked_bytes), (21, 9 * 1_448));
    }

    #[test]
    fn a_round_lasts_until_what_was_sent_after_the_mark_is_acknowledged() {
        let (mut ertt, mut view) = (Ertt::new(1, BsdHost::Foreign, 0), view());
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
