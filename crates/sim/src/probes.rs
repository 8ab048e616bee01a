//! Pings: a request at regular times, an answer from the target, the time between the two.

use dragstrip_scenario::ProbeSpec;
use dragstrip_units::{Duration, Instant};

/// Ethernet and IP headers of a ping (without FCS): 14 + 20.
const HEADERS: u32 = 34;

/// A ping between two nodes.
#[derive(Debug)]
pub(crate) struct Probe {
    pub label: String,
    pub target: String,
    /// First hops of request and answer.
    pub there: u32,
    pub back: u32,
    pub interval: Duration,
    pub start: Instant,
    pub frame: u16,
    /// Row of each request in the table of probes.
    pub rows: Vec<usize>,
}

impl Probe {
    pub fn new(spec: &ProbeSpec, there: u32, back: u32) -> Self {
        Self {
            label: spec.label.clone(),
            target: spec.target.clone(),
            there,
            back,
            interval: Duration::from_nanos(spec.interval_ns),
            start: Instant::from_nanos(spec.start_ns),
            frame: (spec.size_bytes + HEADERS).min(u32::from(u16::MAX)) as u16,
            rows: Vec::new(),
        }
    }
}
