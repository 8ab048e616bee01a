//! SCReAMv2: the reference window, and the target bit rate, pacing rate and send window that follow from it.
//!
//! Source: draft-johansson-ccwg-rfc8298bis-screamv2 (after -07, 2026); section numbers below are its. Names and values
//! of constants are the draft's.
//!
//! ```text
//!   each report:  queue delay ──▶ averages, target       (§4.2.1 Detecting increased queue delay: delay.rs)
//!                 marks, loss, delay ──▶ reference window (§4.2.2 Reference window update: window.rs)
//!                 window ÷ round trip ──▶ target bit rate (§4.4 Media rate control: this file)
//! ```
//!
//! Deviations: a window at the highest bit rate is not cut by a history of flights (the draft refers to the authors'
//! implementation for it). The draft leaves open how often the queue delay enters the history of competing flows, and
//! the weight of the loss event rate: here 50 ms, and 1/100 per round trip.

mod delay;
mod window;

use delay::Delay;
use window::Window;

/// Estimated bytes of a packet's headers (PACKET_OVERHEAD).
const PACKET_OVERHEAD: f64 = 20.0;
/// RATE_ADJUST_GAIN.
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
/// FRAME_SIZE_DEV_ALPHA.
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;
/// RATE_PACE_MIN, bit/s.
const RATE_PACE_MIN: f64 = 50_000.0;
/// PACKET_PACING_HEADROOM.
const PACKET_PACING_HEADROOM: f64 = 1.5;
/// MAX_RELAXED_PACING_FACTOR.
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
/// RELAXED_PACING_LIMIT_LOW: share of the highest bit rate.
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
/// REF_WND_OVERHEAD_MIN and _MAX.
const REF_WND_OVERHEAD_MIN: f64 = 1.5;
const REF_WND_OVERHEAD_MAX: f64 = 3.0;
/// VIRTUAL_RTT, s.
const VIRTUAL_RTT: f64 = 0.025;

/// The settings of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Lowest and highest target, bit/s (TARGET_BITRATE_MIN and _MAX).
    pub min_bps: f64,
    /// The highest.
    pub max_bps: f64,
    /// Largest packet, bytes (MSS).
    pub mss: f64,
    /// Time between two frames, s.
    pub frame_period: f64,
    /// Marks are L4S's (IS_L4S).
    pub is_l4s: bool,
}

/// The sum of a report.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Bytes newly acknowledged, lost ones included, and those with CE among them.
    pub bytes: f64,
    /// The same with CE.
    pub marked_bytes: f64,
    /// Packets delivered.
    pub packets: f64,
    /// Packets delivered with CE.
    pub marked: f64,
    /// Some packet is lost.
    pub lost: bool,
    /// Round trip and one-way delay, s.
    pub rtt: f64,
    /// The latter.
    pub one_way: f64,
}

/// The rate control of a sender. Times are seconds of one clock, sizes are bytes.
#[derive(Clone, Debug)]
pub struct Scream {
    limits: Limits,
    delay: Delay,
    window: Window,
    smoothed_rtt: Option<f64>,
    target_bps: f64,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
}

impl Scream {
    /// A sender that begins at its lowest bit rate.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            delay: Delay::new(),
            window: Window::new(),
            smoothed_rtt: None,
            target_bps: limits.min_bps,
            rate_adjust_factor: 0.0,
            frame_size_dev: 0.0,
        }
    }

    /// Target bit rate, bit/s.
    #[must_use]
    pub const fn target_bps(&self) -> f64 {
        self.target_bps
    }

    /// Reference window, bytes.
    #[must_use]
    pub const fn reference_window(&self) -> f64 {
        self.window.bytes
    }

    /// Number of reductions of the window.
    #[must_use]
    pub const fn reductions(&self) -> u64 {
        self.window.reductions
    }

    /// Smoothed round trip, s; none before the first report.
    #[must_use]
    pub const fn smoothed_rtt(&self) -> Option<f64> {
        self.smoothed_rtt
    }

    /// Latest queue delay, s.
    #[must_use]
    pub const fn queue_delay(&self) -> f64 {
        self.delay.latest
    }

    /// Bytes that may be in flight (§4.3.1).
    #[must_use]
    pub fn send_window(&self) -> f64 {
        let range = REF_WND_OVERHEAD_MAX - REF_WND_OVERHEAD_MIN;
        let overhead = REF_WND_OVERHEAD_MIN + range * self.delay.steadiness().max(0.0);
        self.window.bytes * overhead
    }

    /// Pacing rate, bit/s (§4.3.2): relaxed towards the highest target.
    #[must_use]
    pub fn pacing_bps(&self) -> f64 {
        let nominal = self.target_bps / self.limits.max_bps;
        let relaxed = (nominal - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW);
        let scale = (1.0 - relaxed.min(1.0)).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0);
        self.target_bps.max(RATE_PACE_MIN) * PACKET_PACING_HEADROOM / scale
    }

    /// `in_flight` bytes are in flight after a packet was sent.
    pub fn sent(&mut self, in_flight: f64) {
        self.window.sent(in_flight);
    }

    /// The encoder has made a frame of this size; the oldest packet in the queue has waited for so long (§4.4).
    pub fn frame(&mut self, frame_bytes: f64, waited: f64) {
        let period = self.limits.frame_period;
        let error = (waited - period / 4.0) / period;
        self.rate_adjust_factor =
            (self.rate_adjust_factor + error * RATE_ADJUST_GAIN).clamp(0.0, 0.5);
        let nominal = self.target_bps * period / 8.0;
        let deviation = ((frame_bytes - nominal) / nominal).max(0.0);
        let old = (1.0 - FRAME_SIZE_DEV_ALPHA) * self.frame_size_dev;
        self.frame_size_dev = (old + FRAME_SIZE_DEV_ALPHA * deviation).min(0.2);
    }

    /// A report has come.
    pub fn report(&mut self, now: f64, feedback: &Feedback) {
        // RFC 6298: an eighth.
        let smoothed_rtt =
            self.smoothed_rtt.map_or(feedback.rtt, |old| old + (feedback.rtt - old) / 8.0);
        self.smoothed_rtt = Some(smoothed_rtt);
        let ratio = self.window.ratio(&self.limits);
        self.delay.sample(now, feedback.one_way, smoothed_rtt, ratio, feedback.lost);
        let can_grow = self.target_bps < self.limits.max_bps;
        self.window.report(now, feedback, smoothed_rtt, &self.delay, &self.limits, can_grow);
        self.retarget(now);
    }

    /// No report has come for long: everything in flight counts as lost.
    pub fn silence(&mut self, now: f64) {
        self.window.silence(now);
        self.retarget(now);
    }

    fn retarget(&mut self, now: f64) {
        let Some(smoothed_rtt) = self.smoothed_rtt else { return };
        let Limits { mss, min_bps, max_bps, .. } = self.limits;
        let mut scale = 1.0 - (self.window.ratio(&self.limits) - 0.1).clamp(0.0, 0.2);
        scale *= mss / (mss + PACKET_OVERHEAD);
        scale /= 1.2 + self.rate_adjust_factor + self.frame_size_dev;
        if self.delay.is_reset(now) {
            scale /= 2.0;
        }
        let target_bps = scale * 8.0 * self.window.bytes / smoothed_rtt.max(1e-6);
        self.target_bps = target_bps.clamp(min_bps, max_bps);
    }
}

#[cfg(test)]
mod tests;
