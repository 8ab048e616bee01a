//! From an action to a window or a rate: the one place that rounds them.

use serde::Deserialize;

/// Largest window, packets.
const WINDOW_MAX: f64 = (1 << 24) as f64;
/// Slowest and fastest rate, bit/s.
const RATE_MIN: f64 = 1e3;
const RATE_MAX: f64 = 1e12;

/// Meaning of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// The window, in packets.
    Window,
    /// The window is multiplied by 4^a, a from -1 to 1 (Orca's `map_action`; Sage's 2^a with a from -2 to 2).
    WindowFactor,
    /// Choice of a change of the window: none, half, 10 packets less, 10 more, double (MVFST-RL's `cc_env_actions`).
    WindowMenu,
    /// The pacing rate, in bit/s.
    Rate,
    /// The pacing rate is multiplied by 1 + 0.025 a, or divided by 1 - 0.025 a for a below 0 (Aurora's `apply_rate_delta`).
    RateFactor,
}

/// Change of the rate by a whole action (`DELTA_SCALE` of PCC-RL's `network_sim.py`).
pub const DELTA: f64 = 0.025;

impl ActionKind {
    /// Lowest and highest action, and their number if it is a choice.
    #[must_use]
    pub const fn bounds(self) -> (f64, f64, Option<u32>) {
        match self {
            Self::Window => (1.0, WINDOW_MAX, None),
            Self::WindowFactor => (-1.0, 1.0, None),
            Self::WindowMenu => (0.0, 4.0, Some(5)),
            Self::Rate => (RATE_MIN, RATE_MAX, None),
            // Aurora's own actions have no bounds.
            Self::RateFactor => (-1.0, 1.0, None),
        }
    }

    /// True when an action sets the pacing rate.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Rate | Self::RateFactor)
    }

    /// The window after `action`, packets.
    pub(super) fn window(self, action: f64, cwnd: u32) -> u32 {
        let now = f64::from(cwnd);
        match self {
            Self::Window => whole(action),
            Self::WindowFactor if action == 0.0 => cwnd,
            Self::WindowFactor => whole(now * libm::pow(4.0, action)),
            Self::WindowMenu => match action as u32 {
                1 => whole(now / 2.0),
                2 => whole(now - 10.0),
                3 => whole(now + 10.0),
                4 => whole(now * 2.0),
                _ => cwnd,
            },
            Self::Rate | Self::RateFactor => cwnd,
        }
    }

    /// The pacing rate after `action`, bytes per second.
    pub(super) fn rate(self, action: f64, rate: u64, delta: f64) -> u64 {
        let now = rate as f64 * 8.0;
        let bps = match self {
            Self::Rate => action,
            Self::RateFactor if action >= 0.0 => now * (1.0 + delta * action),
            Self::RateFactor => now / (1.0 - delta * action),
            Self::Window | Self::WindowFactor | Self::WindowMenu => now,
        };
        (libm::floor(bps.clamp(RATE_MIN, RATE_MAX) / 8.0 + 0.5)) as u64
    }
}

/// The nearest whole window.
fn whole(packets: f64) -> u32 {
    libm::floor(packets.clamp(1.0, WINDOW_MAX) + 0.5) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_publications() {
        assert_eq!(ActionKind::WindowFactor.window(1.0, 10), 40);
        assert_eq!(ActionKind::WindowFactor.window(-0.5, 10), 5);
        assert_eq!(ActionKind::RateFactor.rate(1.0, 1_000_000, DELTA), 1_025_000);
        assert_eq!(ActionKind::RateFactor.rate(-1.0, 1_025_000, DELTA), 1_000_000);
        let menu = |choice| ActionKind::WindowMenu.window(choice, 30);
        assert_eq!([0.0, 1.0, 2.0, 3.0, 4.0].map(menu), [30, 15, 20, 40, 60]);
    }

    #[test]
    fn a_window_is_whole_and_within_its_bounds() {
        let windows = [0.2, 1.5, 2.49, 1e12].map(|action| ActionKind::Window.window(action, 3));
        assert_eq!(windows, [1, 2, 2, 1 << 24]);
        assert_eq!(ActionKind::Rate.rate(1.0, 5, DELTA), 125);
    }
}
