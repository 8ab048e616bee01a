//! BBR version 2: bounds on what is in flight from losses and marks, as testbeds of 2019 to 2023 ran it.
//!
//! - **Paper**: Cardwell et al., "BBRv2: A Model-based Congestion Control", IETF 104 and 106, 2019;
//!   draft-cardwell-iccrg-bbr-congestion-control-02.
//! - **Equations**: those of [`bbr3`](super::bbr3), whose code this is.
//! - **States**:
//!
//! ```text
//!   STARTUP ──bw grew < 25 % in 3 rounds, or 8 losses, > 2 %──▶ DRAIN ──in flight ≤ BDP─┐
//!   gain 2.89                                                   0.35                    ▼
//!      ▲        ┌──▶ UP 1.25 ──1.25 BDP in flight, or loss > 2 %────────────────▶ DOWN 0.91 ◀─┐
//!      │        └─── REFILL 1, one round ◀──2 to 3 s, or 63 rounds── CRUISE 1 ◀──drained──┘   │
//!      └── pipe not full ── PROBE_RTT (BDP/2, 200 ms and a round) ────────────────────────────┘
//! ```
//! - **Other than BBRv3**: in STARTUP window and rate are 2.89 times what the model says, and eight ACKs with losses end it; a
//!   probe ends when 1.25 BDP are in flight, not at a plateau of the bandwidth; after the losses of STARTUP `inflight_hi` is the BDP; what is
//!   acknowledged while the window is not used up does not count for raising `inflight_hi`; a minimum RTT that is met again is
//!   renewed; a tail loss probe tells it nothing.
//! - **ECN**: with `ecn_enable` 1 it hears marks as BBRv3 does with `ecn_low`, on paths of `ecn_max_rtt_us` at most. Half of the
//!   packets are too many, and marks that cease begin no probe.
//! - **Departs from the module**: as `bbr3` does; the pace of ACKs (`fast_ack_mode`) is the host's.
//! - **Source of the details**: `tcp_bbr2.c` of the branch v2alpha of github.com/google/bbr and L4STeam's, which sets `ecn_enable` 1,
//!   `ecn_max_rtt_us` 0 and, with accurate ECN, ECT(1): `ecn_l4s` 1.

use super::bbr::UNIT;
use super::bbr3::{self, MarkRules, Model, Second, Version};
use crate::{About, Parameter, Parameters, Range};

const SOURCE: &str = "module parameter";

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "bbr2",
    file: file!(),
    models: "Google's tcp_bbr2.c, branch v2alpha. No kernel of Debian has it",
    parameters: &[
        Parameter::new(
            "ecn_enable",
            0.0,
            Range::Whole(0, 1),
            "",
            "1: marks are heard, as those of a shallow threshold",
            SOURCE,
        ),
        Parameter::new(
            "ecn_max_rtt_us",
            5_000.0,
            Range::Whole(0, 1 << 30),
            "us",
            "on paths of a longer RTT they are not; 0: on all they are",
            SOURCE,
        ),
        Parameter::new(
            "ecn_l4s",
            0.0,
            Range::Whole(0, 1),
            "",
            "1: with accurate ECN segments are ECT(1)",
            "L4STeam/linux",
        ),
    ],
    ..bbr3::ABOUT
};

/// BBRv2.
pub type Bbr2 = Model<Second>;

impl Version for Second {
    /// 2 / ln 2 (`bbr_high_gain`).
    const STARTUP_GAIN: u16 = (UNIT as u32 * 2_885 / 1_000 + 1) as u16;
    const STARTUP_CWND_GAIN: u16 = Self::STARTUP_GAIN;
    const FULL_LOSS_CNT: u8 = 8;
    const IS_SECOND: bool = true;

    fn mark_rules(parameters: &Parameters<'_>) -> MarkRules {
        let rtt_us_max = match parameters.whole("ecn_max_rtt_us") {
            0 => u32::MAX,
            rtt_us => rtt_us,
        };
        MarkRules {
            low: parameters.whole("ecn_enable") == 1,
            rtt_us_max,
            l4s: parameters.whole("ecn_l4s") == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, view};
    use crate::{CongestionControl, RateSample, View, Window};
    use dragstrip_units::Duration;

    /// A flow of a packet each 100 µs over 20 ms, 200 packets of BDP, of which `in_flight` are out: its phases until `acks` have come.
    fn phases(in_flight: impl Fn(&str, u32) -> u32, acks: u32) -> Vec<(&'static str, u32)> {
        let mut bbr = made!(Bbr2);
        let mut window = Window::new(10);
        let mut view = View { min_rtt_us: 20_000, srtt_us_x8: 160_000, ..view() };
        bbr.init(&view, &mut window);
        let mut phases: Vec<(&'static str, u32)> = Vec::new();
        for number in 0..acks {
            let phase = bbr.phase(&view, &window);
            match phases.last_mut() {
                Some((last, count)) if *last == phase => *count += 1,
                _ => phases.push((phase, 1)),
            }
            let out =
                in_flight(phase, phases.last().map_or(0, |(_, count)| *count)).min(window.cwnd);
            view.now += Duration::from_micros(100);
            (view.departure, view.delivered_at) = (view.now, view.now);
            view.delivered += 1;
            view.packets_out = out;
            let sample = RateSample {
                prior_delivered: view.delivered.saturating_sub(u64::from(out) + 1),
                delivered: Some(1),
                interval_us: 100,
                rtt_us: Some(20_000 + number % 7),
                acked_sacked: 1,
                prior_in_flight: out + 1,
                tx_in_flight: out + 1,
                ..RateSample::default()
            };
            let _ = bbr.cong_control(&view, &mut window, &sample);
        }
        phases
    }

    /// 2.885 times the model in STARTUP, rate and window, /256, as the module computes it.
    #[test]
    fn startup_is_steeper_than_that_of_the_third_version() {
        assert_eq!((Second::STARTUP_GAIN, Second::STARTUP_CWND_GAIN), (739, 739));
        assert_eq!(bbr3::Third::STARTUP_GAIN, 710);
    }

    /// A probe goes on while less than 1.25 BDP (250 packets, and the burst and two packets of a probe) are in flight, however the
    /// bandwidth stays the same; the third version would end it after three rounds.
    #[test]
    fn a_probe_ends_when_its_queue_stands() {
        let up = |most: u32| {
            let phases = phases(
                move |phase, count| match phase {
                    "probe_bw_up" => (200 + count / 4).min(most),
                    _ => 200,
                },
                60_000,
            );
            phases
                .iter()
                .filter(|(phase, _)| *phase == "probe_bw_up")
                .map(|(_, count)| *count)
                .max()
        };
        let short = up(400).expect("a probe");
        assert!((150..300).contains(&short), "{short} ACKs until 250 are out");
        let long = up(220).expect("a probe");
        assert!(long > 5_000, "{long}: never more than 220");
    }
}
