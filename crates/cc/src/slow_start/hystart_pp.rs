//! HyStart++: leaves slow start in two steps, and goes back if the delay was no queue.
//!
//! - **Source**: RFC 9406.
//! - **Rules**: a round ends when the byte that was next to be sent at its beginning is acknowledged.
//!   1. After 8 samples, a round whose minimum RTT exceeds the last round's by an eighth of it, at least 4 ms and at most 16 ms,
//!      begins *conservative slow start* (CSS): the window grows by a quarter of what it grows by in slow start.
//!   2. CSS ends slow start (`ssthresh = cwnd`) with its fifth round, of which the one that it began in is the first; or a minimum RTT
//!      below that of the round that began it, after 8 samples, takes slow start up again.
//! - **States**: `slow start ⇄ CSS ──five rounds──▶ ended`. Only the first slow start of a connection is watched
//!   (RFC 9406 §4.3); a loss or an ECN echo ends it as ever.
//! - **Growth**: by every packet delivered, by 8 per ACK at most unless the sender is paced (L).

use crate::{PacingStatus, Parameter, Range, View, Window};

/// N_RTT_SAMPLE: samples before a round's minimum is believed.
const SAMPLES: u8 = 8;
/// MIN_RTT_THRESH and MAX_RTT_THRESH, µs: bounds of the increase that counts.
const INCREASE_US: (u32, u32) = (4_000, 16_000);
/// MIN_RTT_DIVISOR: the increase, as a part of the last round's minimum.
const DIVISOR: u32 = 8;
/// CSS_GROWTH_DIVISOR.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// CSS_ROUNDS.
const CSS_ROUNDS: u8 = 5;
/// L, of a sender that is not paced.
const PER_ACK: u32 = 8;
/// No RTT is known.
const UNKNOWN: u32 = u32::MAX;

/// `hystart_pp`.
pub const HYSTART_PP: Parameter = Parameter::new(
    "hystart_pp",
    0.0,
    Range::Switch,
    "",
    "the first slow start is that of HyStart++, in the place of any other",
    "RFC 9406; no kernel has it",
);

/// The first slow start of a connection.
#[derive(Clone, Debug)]
pub struct HyStartPp {
    /// The round ends when this byte is acknowledged (`windowEnd`).
    end_seq: u64,
    /// Minimum RTT of the last round and of this one, µs.
    last_us: u32,
    current_us: u32,
    samples: u8,
    /// Conservative slow start.
    css: Option<Css>,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    /// `cssBaselineMinRtt`, µs.
    baseline_us: u32,
    /// That have ended.
    rounds: u8,
    /// Packets delivered that the window has not grown by yet, below the divisor.
    carried: u8,
}

impl HyStartPp {
    /// At the beginning of the connection.
    #[must_use]
    pub const fn new() -> Self {
        Self { end_seq: 0, last_us: UNKNOWN, current_us: UNKNOWN, samples: 0, css: None }
    }

    /// Looks at an ACK and its RTT; may end slow start by setting `ssthresh`.
    #[inline]
    pub fn acked(&mut self, view: &View, window: &mut Window, rtt_us: Option<u32>) {
        if window.ssthresh < Window::INFINITE {
            return;
        }
        if view.snd_una > self.end_seq {
            self.end_seq = view.snd_nxt;
            self.last_us = self.current_us;
            self.current_us = UNKNOWN;
            self.samples = 0;
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds >= CSS_ROUNDS {
                    window.ssthresh = window.cwnd;
                    return;
                }
            }
        }
        let Some(rtt_us) = rtt_us else { return };
        self.current_us = self.current_us.min(rtt_us);
        self.samples = self.samples.saturating_add(1);
        if self.samples < SAMPLES {
            return;
        }
        match self.css {
            Some(Css { baseline_us, .. }) if self.current_us < baseline_us => self.css = None,
            None if self.last_us < UNKNOWN && self.current_us >= too_long_us(self.last_us) => {
                self.css = Some(Css { baseline_us: self.current_us, rounds: 0, carried: 0 });
            }
            Some(_) | None => {}
        }
    }

    /// Grows the window by what was delivered in slow start; what is beyond the threshold is left over.
    #[inline]
    pub fn grow(&mut self, view: &View, window: &mut Window, acked: u32) -> u32 {
        if window.ssthresh < Window::INFINITE {
            return window.slow_start(acked);
        }
        let paced = view.pacing_status != PacingStatus::None;
        let acked_packets = if paced { acked } else { acked.min(PER_ACK) };
        let grown = match &mut self.css {
            None => acked_packets,
            Some(css) => {
                let all = acked_packets.saturating_add(u32::from(css.carried));
                css.carried = (all % CSS_GROWTH_DIVISOR) as u8;
                all / CSS_GROWTH_DIVISOR
            }
        };
        window.slow_start(grown)
    }
}

impl Default for HyStartPp {
    fn default() -> Self {
        Self::new()
    }
}

/// The minimum RTT of a round at which it has grown too much since the last one, whose minimum this was.
fn too_long_us(last_us: u32) -> u32 {
    let (least, most) = INCREASE_US;
    last_us.saturating_add((last_us / DIVISOR).clamp(least, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::view;

    /// A window's worth of packets is sent and acknowledged, each with this RTT.
    fn round(it: &mut HyStartPp, view: &mut View, window: &mut Window, rtt_ms: u32) {
        let flight = window.cwnd;
        view.snd_nxt += u64::from(flight);
        for _ in 0..flight {
            view.snd_una += 1;
            it.acked(view, window, Some(rtt_ms * 1000));
            let _ = it.grow(view, window, 1);
        }
    }

    fn start() -> (HyStartPp, View, Window) {
        let mut view = view();
        view.snd_nxt = 1;
        (HyStartPp::new(), view, Window::new(10))
    }

    #[test]
    fn the_increase_that_counts_is_an_eighth_within_its_bounds() {
        for (last, found) in [(40_000, 45_000), (20_000, 24_000), (200_000, 216_000), (0, 4_000)] {
            assert_eq!(too_long_us(last), found);
        }
    }

    #[test]
    fn css_grows_by_a_quarter_a_round_and_ends_with_the_fifth() {
        let (mut it, mut view, mut window) = start();
        round(&mut it, &mut view, &mut window, 40);
        round(&mut it, &mut view, &mut window, 40);
        assert_eq!(window.cwnd, 40, "twice a round");
        // 45 ms from the first packet on; 8 samples are looked at before it is believed.
        let mut sizes = Vec::new();
        for _ in 0..6 {
            round(&mut it, &mut view, &mut window, 45);
            sizes.push((window.cwnd, window.ssthresh < Window::INFINITE));
        }
        // 7 or 8 grow it by one each, the other packets by a quarter each.
        let first = sizes[0].0;
        assert!((40 + 7 + 32 / 4..=40 + 8 + 33 / 4).contains(&first), "{sizes:?}");
        for pair in sizes[..4].windows(2) {
            assert!(pair[1].0.abs_diff(pair[0].0 * 5 / 4) <= 1, "{sizes:?}");
        }
        let ended = sizes.iter().position(|(_, ended)| *ended);
        assert_eq!(ended, Some(5), "{sizes:?}");
        assert_eq!(window.ssthresh, sizes[4].0, "after five rounds, at the window of then");
    }

    #[test]
    fn a_delay_that_goes_away_takes_slow_start_up_again() {
        let (mut it, mut view, mut window) = start();
        for rtt in [40, 40, 60] {
            round(&mut it, &mut view, &mut window, rtt);
        }
        assert!(it.css.is_some());
        let before = window.cwnd;
        round(&mut it, &mut view, &mut window, 59);
        assert!(it.css.is_none());
        assert!(window.cwnd > before * 3 / 2, "{before} {}", window.cwnd);
        assert_eq!(window.ssthresh, Window::INFINITE);
    }

    #[test]
    fn seven_samples_are_not_enough_and_the_first_round_has_no_other_to_exceed() {
        let (mut it, view, mut window) = start();
        for _ in 0..50 {
            it.acked(&view, &mut window, Some(500_000));
        }
        assert!(it.css.is_none());
        let mut next = View { snd_una: 2, snd_nxt: 99, ..view };
        it.acked(&next, &mut window, Some(900_000));
        next.snd_una = 3;
        for _ in 0..6 {
            it.acked(&next, &mut window, Some(900_000));
        }
        assert!(it.css.is_none(), "seven");
        it.acked(&next, &mut window, Some(900_000));
        assert!(it.css.is_some());
    }

    #[test]
    fn an_ack_counts_for_eight_packets_unless_paced() {
        let (mut it, mut view, mut window) = start();
        assert_eq!((it.grow(&view, &mut window, 20), window.cwnd), (0, 18));
        view.pacing_status = PacingStatus::Fq;
        assert_eq!((it.grow(&view, &mut window, 20), window.cwnd), (0, 38));
    }

    #[test]
    fn only_the_first_slow_start_is_watched() {
        let (mut it, mut view, mut window) = start();
        window.ssthresh = 1000;
        for rtt in [40, 40, 400] {
            round(&mut it, &mut view, &mut window, rtt);
        }
        assert!(it.css.is_none());
        assert_eq!((window.cwnd, window.ssthresh), (80, 1000));
    }
}
