//! The one timer of a sender, and its retransmission timeout. What the timer is for is the stack's to know.

use super::Core;
use crate::profile::Settings;
use dragstrip_units::Instant;

#[derive(Clone, Debug)]
pub(in crate::sender) struct Timer {
    deadline: Instant,
    /// Retransmission timeout with its backoff, ticks.
    pub rto_ticks: u64,
    pub max_ticks: u64,
    /// `TCP_RTO_MIN`, µs.
    pub min_us: u32,
}

impl Timer {
    pub fn new(settings: &Settings) -> Self {
        let ticks = settings.ticks();
        Self {
            deadline: Instant::NEVER,
            rto_ticks: ticks.count_span_ceil(settings.rto_initial),
            max_ticks: ticks.count_span_ceil(settings.rto_max),
            min_us: settings.rto_min.as_micros_floor() as u32,
        }
    }

    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline
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
        self.timer.deadline = self.ticks.timer(self.jiffy(), delay.min(self.timer.max_ticks));
    }

    /// After the retransmission timeout.
    #[inline]
    pub fn set_timer_rto(&mut self) {
        self.set_timer(self.timer.rto_ticks);
    }

    /// One more timeout in a row: twice as long.
    pub fn back_off(&mut self) {
        self.timer.rto_ticks = (self.timer.rto_ticks << 1).min(self.timer.max_ticks);
    }
}
