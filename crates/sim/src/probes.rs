//! Pings: a request at regular times, an answer from the target, the time between the two.

use dragstrip_scenario::ProbeSpec;
use dragstrip_units::{Duration, Instant};

/// A ping between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub label: String,
    pub target: String,
    /// First hops of request and answer.
    pub there: u32,
    pub back: u32,
    pub interval: Duration,
    pub start: Instant,
    /// ICMP's header and payload.
    pub bytes: u16,
    /// Row of each request in the table of probes.
    pub rows: Vec<usize>,
}

impl Probe {
    pub fn new(spec: &ProbeSpec, forward: u32, back: u32) -> Self {
        Self {
            label: spec.label.clone(),
            target: spec.target.clone(),
            there: forward,
            back,
            interval: Duration::from_nanos(spec.interval_ns),
            start: Instant::from_nanos(spec.start_ns),
            bytes: spec.size_bytes.min(u16::MAX.into()) as u16,
            rows: Vec::new(),
        }
    }
}
