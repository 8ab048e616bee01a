//! The one timer of a sender, and its retransmission timeout. What the timer is for is the stack's to know.

use super::Core;
use crate::host::HostSettings;
use dragstrip_units::Instant;

#[derive(Clone, Debug)]
#[repr(C)] // as in `Core`
pub(in crate::sender) struct Timer {
    deadline: Instant,
    /// Time at which the pacer or the local queue lets the next segment go.
    pub wakeup: Instant,
    /// Retransmission timeout with its backoff, ticks.
    pub rto_ticks: u64,
}

impl Timer {
    pub fn new(settings: &HostSettings) -> Self {
        Self {
            deadline: Instant::NEVER,
            wakeup: Instant::NEVER,
            rto_ticks: settings.ticks.count_span_ceil(settings.rto_initial),
        }
    }

    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The earlier one of the timer and the pacer.
    #[inline]
    pub fn due(&self) -> Instant {
        self.deadline.min(self.wakeup)
    }

    pub fn is_set(&self) -> bool {
        self.deadline != Instant::NEVER
    }

    pub fn clear(&mut self) {
        self.deadline = Instant::NEVER;
    }
}

impl Core {
    /// In `delay` ticks, as the host's timers go.
    #[inline]
    pub fn set_timer(&mut self, delay: u64) {
        self.timer.deadline =
            self.settings.ticks.timer(self.jiffy(), delay.min(self.settings.rto_max_ticks));
    }

    /// After the retransmission timeout.
    #[inline]
    pub fn set_timer_rto(&mut self) {
        self.set_timer(self.timer.rto_ticks);
    }

    /// One more timeout in a row: twice as long.
    pub fn back_off(&mut self) {
        self.timer.rto_ticks = (self.timer.rto_ticks << 1).min(self.settings.rto_max_ticks);
    }
}
