//! Inputs of a congestion controller, for the recording: the stacks have no getters for them.

use dragstrip_cc::program::Fault;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of a sender. They are atomic because the stacks want their controllers shareable.
#[derive(Debug)]
pub(crate) struct Figures {
    in_flight: AtomicU64,
    acked: AtomicU64,
    reductions: AtomicU64,
    rtt: AtomicU64,
    rtt_min: AtomicU64,
    /// The last sample has not been taken yet.
    rtt_new: AtomicU64,
    /// Fault of a program that controls the congestion.
    fault: OnceLock<Fault>,
}

impl Default for Figures {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            in_flight: zero(),
            acked: zero(),
            reductions: zero(),
            rtt: zero(),
            rtt_min: AtomicU64::new(u64::MAX),
            rtt_new: zero(),
            fault: OnceLock::new(),
        }
    }
}

fn get(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

fn set(value: &AtomicU64, to: u64) {
    value.store(to, Ordering::Relaxed);
}

impl Figures {
    pub fn sent(&self, bytes: u64) {
        set(&self.in_flight, get(&self.in_flight) + bytes);
    }

    pub fn acked(&self, bytes: u64, rtt_ns: u64) {
        set(&self.acked, get(&self.acked) + bytes);
        set(&self.rtt, rtt_ns);
        set(&self.rtt_min, get(&self.rtt_min).min(rtt_ns));
        set(&self.rtt_new, 1);
    }

    pub fn set_in_flight(&self, bytes: u64) {
        set(&self.in_flight, bytes);
    }

    /// The window before and after an event of congestion.
    pub fn congested(&self, before: u64, after: u64) {
        if after < before {
            set(&self.reductions, get(&self.reductions) + 1);
        }
    }

    /// The first fault of a program.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.get()
    }

    pub fn set_fault(&self, fault: &Fault) {
        let _ = self.fault.set(*fault);
    }

    pub fn in_flight(&self) -> u64 {
        get(&self.in_flight)
    }

    pub fn bytes_acked(&self) -> u64 {
        get(&self.acked)
    }

    pub fn reductions(&self) -> u64 {
        get(&self.reductions)
    }

    /// Last and least RTT sample.
    pub fn rtts(&self) -> Option<[u64; 2]> {
        let least = get(&self.rtt_min);
        (least < u64::MAX).then(|| [get(&self.rtt), least])
    }

    pub fn take_rtt(&self) -> Option<u64> {
        let is_new = self.rtt_new.swap(0, Ordering::Relaxed) > 0;
        is_new.then(|| get(&self.rtt))
    }
}
