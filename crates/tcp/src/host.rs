//! A host's settings with what follows from them, once for all connections of hosts that are set alike: what no connection changes
//! takes no room in a connection, and stays in the near caches however many there are.

use crate::profile::Settings;
use crate::ticks::Ticks;
use std::ops::Deref;
use std::sync::Arc;

/// The settings of a host as its connections use them.
#[derive(Clone, Debug)]
pub struct HostSettings {
    settings: Settings,
    pub(crate) ticks: Ticks,
    /// Largest age of a timestamp relative to the one to echo, ms.
    pub(crate) paws_window_ms: u32,
    /// `TCP_ATO_MIN`, `TCP_DELACK_MIN`: 40 ms in ticks.
    pub(crate) delack_min_ticks: u32,
    /// `TCP_DELACK_MAX`: 200 ms in ticks.
    pub(crate) delack_max_ticks: u32,
    /// Delay of the first of two segments where every second one is acknowledged, ticks; 0: none.
    pub(crate) pair_ticks: u32,
    /// `TCP_RTO_MAX` in ticks.
    pub(crate) rto_max_ticks: u64,
    /// `TCP_RTO_MIN`, µs.
    pub(crate) rto_min_us: u32,
}

impl HostSettings {
    /// Applies the options that the handshake of a connection has left.
    pub(crate) fn agree(&mut self, sack: bool, timestamps: bool) {
        self.settings.sack = sack;
        self.settings.timestamps = timestamps;
    }
}

impl From<Settings> for HostSettings {
    fn from(settings: Settings) -> Self {
        let ticks = Ticks::new(
            settings.hz,
            settings.profile.timer_wheel,
            settings.profile.ticked_timestamps,
        );
        Self {
            ticks,
            paws_window_ms: settings.profile.paws_window * ticks.stamp_step_ms(),
            delack_min_ticks: settings.hz / 25,
            delack_max_ticks: settings.hz / 5,
            pair_ticks: ticks.count_span_ceil(settings.bsd.delayed_ack) as u32,
            rto_max_ticks: ticks.count_span_ceil(settings.rto_max),
            rto_min_us: settings.rto_min.as_micros_floor() as u32,
            settings,
        }
    }
}

impl Deref for HostSettings {
    type Target = Settings;

    #[inline]
    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Settings {
    /// The settings as connections share them.
    #[must_use]
    pub fn shared(self) -> Arc<HostSettings> {
        Arc::new(self.into())
    }
}
