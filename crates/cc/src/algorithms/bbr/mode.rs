//! BBR's state diagram: which mode follows which, and the gains that follow from the mode.

use super::{Bbr, UNIT};

/// 2/ln 2 in thousandths: the least gain that doubles the rate every round trip.
const DOUBLING_PER_MILLE: u32 = 2_885;
/// That gain, rounded up (`bbr_high_gain`).
pub const HIGH_GAIN: u16 = (UNIT as u32 * DOUBLING_PER_MILLE / 1_000 + 1) as u16;
/// Its inverse: drains in one round what STARTUP has queued (`bbr_drain_gain`).
pub const DRAIN_GAIN: u16 = (UNIT as u32 * 1_000 / DOUBLING_PER_MILLE) as u16;
/// Twice the BDP, to bear delayed and stretched ACKs (`bbr_cwnd_gain`).
const CWND_GAIN: u16 = 2 * UNIT;
/// Probe for more, drain what that queued, cruise (`bbr_pacing_gain`).
pub const CYCLE: [u16; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
pub const CYCLE_LEN: u8 = CYCLE.len() as u8;
/// The phase of [`CYCLE`] that probes for more.
pub const PROBING: u8 = 0;
/// The phase that drains: it follows upon [`PROBING`] alone, and PROBE_BW never begins with it.
const DRAINING: u8 = 1;
/// As many phases may be the first (`bbr_cycle_rand`): all but the one that drains.
pub const CYCLE_RAND: u32 = 7;

/// Mode of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Startup,
    Drain,
    ProbeBw {
        /// Index into [`CYCLE`].
        phase: u8,
    },
    ProbeRtt {
        /// `None` until no more than four packets are in flight.
        low: Option<LowInFlight>,
    },
}

impl Mode {
    /// True when the state diagram leads from here to `next`.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Startup, Self::Drain)
            | (Self::Startup | Self::Drain | Self::ProbeBw { .. }, Self::ProbeRtt { low: None })
            | (Self::ProbeRtt { low: Some(_) }, Self::Startup)
            | (Self::ProbeBw { phase: PROBING }, Self::ProbeBw { phase: DRAINING }) => true,
            // The next phase; any of them after DRAIN and PROBE_RTT, and when a policer is given up.
            (
                Self::Drain | Self::ProbeBw { .. } | Self::ProbeRtt { low: Some(_) },
                Self::ProbeBw { phase },
            ) => phase < CYCLE_LEN && phase != DRAINING,
            (Self::ProbeRtt { low: None }, Self::ProbeRtt { low: Some(low) }) => !low.round_done,
            (Self::ProbeRtt { low: Some(low) }, Self::ProbeRtt { low: Some(next) }) => {
                next == LowInFlight { round_done: true, ..low }
            }
            _ => false,
        }
    }

    /// Pacing rate to bandwidth, where no policer is known, /256.
    pub fn pacing_gain(self) -> u16 {
        match self {
            Self::Startup => HIGH_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::ProbeBw { phase } => CYCLE[usize::from(phase)],
            Self::ProbeRtt { .. } => UNIT,
        }
    }

    /// Window to BDP, /256.
    pub fn cwnd_gain(self) -> u16 {
        match self {
            Self::Startup | Self::Drain => HIGH_GAIN,
            Self::ProbeBw { .. } => CWND_GAIN,
            Self::ProbeRtt { .. } => UNIT,
        }
    }
}

/// The low water of PROBE_RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowInFlight {
    /// 200 ms after it began, jiffies.
    pub until: u64,
    /// True when a round trip has passed.
    pub round_done: bool,
}

/// Mode that paces the packets in flight: the mode as the last ACK left it. A mode that begins within an ACK, or
/// between two, has paced nothing yet; decisions are about what was sent. (Linux writes its gains at the end of
/// `bbr_update_model`.)
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub mode: Mode,
    /// At the policer's rate.
    pub policed: bool,
}

impl Pace {
    pub fn pacing_gain(self) -> u16 {
        if self.policed { UNIT } else { self.mode.pacing_gain() }
    }
}

/// Reports whether the pipe has been filled, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    Filling {
        /// Bandwidth that growth is compared with.
        bw: u32,
        /// Rounds without growth.
        rounds: u8,
    },
    Full,
}

impl Pipe {
    pub const EMPTY: Self = Self::Filling { bw: 0, rounds: 0 };

    pub fn is_full(self) -> bool {
        self == Self::Full
    }
}

impl Bbr {
    /// Every change of mode.
    pub(super) fn enter(&mut self, next: Mode) {
        debug_assert!(
            self.mode.may_become(next),
            "{:?} -> {next:?} is not in the state diagram",
            self.mode
        );
        debug_assert!(
            match next {
                Mode::Startup => !self.pipe.is_full(),
                Mode::Drain | Mode::ProbeBw { .. } => self.pipe.is_full(),
                Mode::ProbeRtt { .. } => true,
            },
            "{next:?} while the pipe is {:?}",
            self.pipe
        );
        self.mode = next;
    }

    pub(super) fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    /// `bbr_update_gains`: from now on packets leave at the mode's pace, or at the policer's.
    pub(super) fn update_pace(&mut self) {
        let policed = matches!(self.mode, Mode::ProbeBw { .. }) && self.policer.rate().is_some();
        self.pace = Pace { mode: self.mode, policed };
    }
}
