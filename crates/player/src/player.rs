//! The player: its buffer, what it fetches and what it plays.

use crate::rules::{RateMap, Throughput};
use dragstrip_recording::VideoRow;
use dragstrip_scenario::{Adaptation, Application};

/// A player while it plays. Times are nanoseconds of one clock that never goes back.
#[derive(Clone, Debug)]
pub struct Player {
    /// Bit rates, ascending.
    ladder: Box<[u64]>,
    segment_ns: u64,
    buffer_ns: u64,
    startup_ns: u64,
    adaptation: Adaptation,
    map: RateMap,
    throughput: Throughput,
    rung: usize,
    asked_at: u64,
    /// Bytes of the segment asked for last, and of all.
    bytes: u64,
    total_bytes: u64,
    /// Unplayed content in the buffer at `now`.
    level_ns: u64,
    now: Option<u64>,
    playing: bool,
    /// Time since the last segment in which nothing was played.
    waited_ns: u64,
}

impl Player {
    /// The player that an application is; none for any other.
    #[must_use]
    pub fn new(application: &Application) -> Option<Self> {
        let Application::Video {
            ladder_bps,
            segment_ns,
            buffer_ns,
            startup_ns,
            adaptation,
            reservoir_ns,
            cushion_ns,
            safety,
            request_bytes: _,
        } = application
        else {
            return None;
        };
        Some(Self {
            ladder: ladder_bps.clone().into(),
            segment_ns: *segment_ns,
            buffer_ns: *buffer_ns,
            startup_ns: *startup_ns,
            adaptation: *adaptation,
            map: RateMap { reservoir_ns: *reservoir_ns, cushion_ns: *cushion_ns },
            throughput: Throughput::new(*safety),
            rung: 0,
            asked_at: 0,
            bytes: 0,
            total_bytes: 0,
            level_ns: 0,
            now: None,
            playing: false,
            waited_ns: 0,
        })
    }

    /// Asks for the next segment; answers with its bytes. The first call begins the flow.
    pub fn ask(&mut self, now: u64) -> u64 {
        self.pass(now);
        self.rung = match self.adaptation {
            Adaptation::Buffer => self.map.next(&self.ladder, self.rung, self.level_ns),
            Adaptation::Throughput => self.throughput.next(&self.ladder),
        };
        let bits = u128::from(self.ladder[self.rung]) * u128::from(self.segment_ns) / 1_000_000_000;
        self.bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1);
        self.total_bytes = self.total_bytes.saturating_add(self.bytes);
        self.asked_at = now;
        self.bytes
    }

    /// Bytes of all segments that were asked for.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The segment that was asked for has come: its row as one of `flow`'s, and when the next is asked for.
    pub fn arrived(&mut self, now: u64, flow: u32) -> (VideoRow, u64) {
        self.pass(now);
        self.throughput.took(self.bytes, now - self.asked_at);
        self.level_ns += self.segment_ns;
        self.playing |= self.level_ns >= self.startup_ns;
        let row = VideoRow {
            time_ns: now as i64,
            flow,
            asked_ns: self.asked_at as i64,
            rate_bps: self.ladder[self.rung] as i64,
            bytes: self.bytes as i64,
            buffer_ns: self.level_ns as i64,
            waited_ns: std::mem::take(&mut self.waited_ns) as i64,
            playing: self.playing,
        };
        // What stands still is below `startup`, which leaves room for a segment.
        let over = (self.level_ns + self.segment_ns).saturating_sub(self.buffer_ns);
        (row, now + over)
    }

    /// Plays, or stands, until `now`.
    fn pass(&mut self, now: u64) {
        let elapsed = now - self.now.replace(now).unwrap_or(now);
        let played = if self.playing { elapsed.min(self.level_ns) } else { 0 };
        self.level_ns -= played;
        self.waited_ns += elapsed - played;
        self.playing &= played == elapsed;
    }
}

#[cfg(test)]
mod tests;
