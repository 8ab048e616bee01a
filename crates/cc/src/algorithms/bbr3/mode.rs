//! Modes of the model, which follow each other as its state diagram says, and their gains.

use super::{CWND_GAIN, UNIT, Version};
use crate::algorithms::bbr::DRAIN_GAIN;

/// Puts a quarter of a BDP more in flight every round (`bbr_pacing_gain` of UP).
pub(super) const UP_GAIN: u16 = UNIT * 5 / 4;
/// Drains that within three rounds, and leaves room for others (`bbr_pacing_gain` of DOWN).
pub(super) const DOWN_GAIN: u16 = (UNIT as u32 * 91 / 100) as u16;
/// ... and the quarter that UP adds (`bbr_cwnd_gain` + 1/4).
pub(super) const UP_CWND_GAIN: u16 = UNIT * 9 / 4;

/// Mode of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt {
        /// `None` until little enough is in flight.
        low: Option<LowInFlight>,
    },
}

/// Phase of the PROBE_BW cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Up,
    Down,
    Cruise,
    Refill,
}

impl Mode {
    /// True when the state diagram leads from here to `next`.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Startup, Self::Drain)
            | (
                Self::Drain | Self::ProbeBw(Phase::Up) | Self::ProbeRtt { low: Some(_) },
                Self::ProbeBw(Phase::Down),
            )
            | (Self::ProbeBw(Phase::Down), Self::ProbeBw(Phase::Cruise))
            | (Self::ProbeBw(Phase::Down | Phase::Cruise), Self::ProbeBw(Phase::Refill))
            | (Self::ProbeBw(Phase::Refill), Self::ProbeBw(Phase::Up))
            | (Self::Startup | Self::Drain | Self::ProbeBw(_), Self::ProbeRtt { low: None })
            // The last two: a loss that ended STARTUP was none.
            | (
                Self::ProbeRtt { low: Some(_) } | Self::Drain | Self::ProbeBw(_),
                Self::Startup,
            ) => true,
            (Self::ProbeRtt { low: None }, Self::ProbeRtt { low: Some(low) }) => !low.round_done,
            (Self::ProbeRtt { low: Some(low) }, Self::ProbeRtt { low: Some(next) }) => {
                next == LowInFlight { round_done: true, ..low }
            }
            _ => false,
        }
    }

    /// Pacing rate to bandwidth, /256.
    pub fn pacing_gain<V: Version>(self) -> u16 {
        match self {
            Self::Startup => V::STARTUP_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::ProbeBw(Phase::Up) => UP_GAIN,
            Self::ProbeBw(Phase::Down) => DOWN_GAIN,
            Self::ProbeBw(Phase::Cruise | Phase::Refill) | Self::ProbeRtt { .. } => UNIT,
        }
    }

    /// Window to BDP, /256.
    pub fn cwnd_gain<V: Version>(self) -> u16 {
        match self {
            Self::ProbeBw(Phase::Up) => UP_CWND_GAIN,
            Self::Startup | Self::Drain => V::STARTUP_CWND_GAIN,
            Self::ProbeBw(Phase::Down | Phase::Cruise | Phase::Refill) => CWND_GAIN,
            Self::ProbeRtt { .. } => UNIT,
        }
    }
}

/// The low water of PROBE_RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LowInFlight {
    /// 200 ms after it began, jiffies.
    pub until: u64,
    /// True when a round trip has passed.
    pub round_done: bool,
}
