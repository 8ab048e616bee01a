//! Live videos over RTP: bit rate, delay of frames, loss, and the circuit breaker of RFC 8083.

use crate::arithmetic::{mean, percentile};
use crate::measure::{Figure, Level, Measure, measure};
use crate::measured::{Measured, MissingColumn, Of, Window};
use dragstrip_recording::{Data, column::frames};
use dragstrip_scenario::Application;
use serde::Serialize;

/// A frame that is complete within these times is in time: ITU-T G.114's limits for conversation are 150 and 400 ms from mouth
/// to ear, of which the network has a part. Both shares are of the frames that the greater limit allows to judge.
const LATE_NS: [i64; 2] = [100_000_000, 200_000_000];
/// Packets of frames that were captured later than this before the stop may still be on their way.
const OPEN_NS: i64 = 1_000_000_000;
/// Reporting interval of RTCP (T_dr of RFC 8083): RFC 3550 §6.2 allows 360/(kbit/s) seconds, 1 s at 360 kbit/s.
const INTERVAL_NS: i64 = 1_000_000_000;

/// A figure of a flow's live video.
macro_rules! of_rtp {
    ($figure:expr) => {
        Figure::WholeFlow(|run, place| {
            let figure: fn(LiveVideo) -> Option<f64> = $figure;
            Ok(run.live_video(place)?.and_then(figure))
        })
    };
}

pub(crate) const TARGET: Measure = measure(
    Level::Flow,
    "rtp_target_bps",
    "bit/s",
    "mean target bit rate of the frames of a live video over RTP",
    of_rtp!(|video| video.target_bps),
);
pub(crate) const RATE: Measure = measure(
    Level::Flow,
    "rtp_bps",
    "bit/s",
    "bits of the complete frames of a live video, over the flow's life",
    of_rtp!(|video| Some(video.bps)),
);
pub(crate) const FRAME: Measure = measure(
    Level::Flow,
    "rtp_frame_ms",
    "ms",
    "time from a frame's capture to the arrival of its last packet, of complete frames",
    Figure::OfFlow(|run, place, window| {
        if run.live_video(place)?.is_none() {
            return Ok(Vec::new());
        }
        run.frame_ms(place, window)
    }),
);
pub(crate) const LATE_100: Measure = measure(
    Level::Flow,
    "rtp_late_100ms",
    "1",
    "share of the frames that are not complete 100 ms after their capture, lost ones included",
    of_rtp!(|video| video.late_100ms),
);
pub(crate) const LATE_200: Measure = measure(
    Level::Flow,
    "rtp_late_200ms",
    "1",
    "the same of 200 ms",
    of_rtp!(|video| video.late_200ms),
);
pub(crate) const LOST: Measure = measure(
    Level::Flow,
    "rtp_lost",
    "1",
    "share of the packets of a live video that are lost, without those of the last second",
    of_rtp!(|video| video.lost),
);
pub(crate) const BREAKER: Measure = measure(
    Level::Flow,
    "rtp_breaker_s",
    "s",
    "time at which the congestion circuit breaker of RFC 8083 (section 4.3) would trip; none if it never does",
    of_rtp!(|video| video.breaker_s),
);

/// A live video over RTP, from the flow's start to its stop.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LiveVideo {
    /// Frames captured.
    pub frames: u64,
    /// Mean target bit rate of the frames; `null` without frames.
    pub target_bps: Option<f64>,
    /// Bits of the complete frames over the flow's life.
    pub bps: f64,
    /// Median time from a frame's capture to its last packet's arrival, of complete frames.
    pub delay_ms_p50: Option<f64>,
    /// 95th percentile of that time.
    pub delay_ms_p95: Option<f64>,
    /// 99th percentile of that time.
    pub delay_ms_p99: Option<f64>,
    /// Share of the frames, from 0 to 1, that are not complete 100 ms after their capture; without those of the last 200 ms.
    pub late_100ms: Option<f64>,
    /// The same of 200 ms.
    pub late_200ms: Option<f64>,
    /// Share of the packets, from 0 to 1, that are lost; without those of the last second.
    pub lost: Option<f64>,
    /// Time at which a circuit breaker of RFC 8083 would trip by loss (section 4.3); `null`: never.
    pub breaker_s: Option<f64>,
}

/// Sums over a reporting interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    bytes: f64,
    sent: f64,
    lost: f64,
    rtt_s: f64,
    rtts: f64,
}

impl Measured {
    /// A flow's live video; none of a flow that is not one.
    pub(crate) fn live_video(&self, place: usize) -> Result<Option<LiveVideo>, MissingColumn> {
        let flow = &self.flows()[place];
        let spec = usize::try_from(flow.flow).ok().and_then(|flow| self.scenario.flows.get(flow));
        let Some(Application::Rtp { fps, .. }) = spec.map(|spec| &spec.application) else {
            return Ok(None);
        };
        let rows = self.rows(Of::Frames, place, &Window::default())?;
        let (times, arrived_at) = (self.ints(&frames::time_ns)?, self.ints(&frames::arrived_ns)?);
        let (targets, bytes) = (self.ints(&frames::target_bps)?, self.ints(&frames::bytes)?);
        let (sent, arrived) = (self.ints(&frames::sent)?, self.ints(&frames::arrived)?);
        let complete = || rows.iter().copied().filter(|row| arrived_at[*row] != Data::NULL);
        let is_decided = |row: &usize| times[*row] + LATE_NS[1] <= flow.stop_ns;
        let decided: Vec<usize> = rows.iter().copied().filter(is_decided).collect();
        let late = LATE_NS.map(|limit_ns| {
            let is_late = |row: &usize| {
                arrived_at[*row] == Data::NULL || arrived_at[*row] - times[*row] > limit_ns
            };
            mean(&decided.iter().map(|row| f64::from(u8::from(is_late(row)))).collect::<Vec<_>>())
        });
        let delays = self.frame_ms(place, &Window::default())?;
        let settled = || rows.iter().copied().filter(|row| times[*row] + OPEN_NS <= flow.stop_ns);
        let all_sent = settled().map(|row| sent[row]).sum::<i64>();
        let all_arrived = settled().map(|row| arrived[row]).sum::<i64>();
        let life_s = (flow.stop_ns - flow.start_ns) as f64 / 1e9;
        let bits = 8.0 * complete().map(|row| bytes[row] as f64).sum::<f64>();
        Ok(Some(LiveVideo {
            frames: rows.len() as u64,
            target_bps: mean(&rows.iter().map(|row| targets[*row] as f64).collect::<Vec<_>>()),
            bps: if life_s > 0.0 { bits / life_s } else { 0.0 },
            delay_ms_p50: percentile(delays.clone(), 50.0),
            delay_ms_p95: percentile(delays.clone(), 95.0),
            delay_ms_p99: percentile(delays, 99.0),
            late_100ms: late[0],
            late_200ms: late[1],
            lost: (all_sent > 0).then(|| (all_sent - all_arrived) as f64 / all_sent as f64),
            breaker_s: self.breaker_s(&rows, flow.start_ns, flow.stop_ns, *fps)?,
        }))
    }

    /// Times from capture to arrival of a flow's complete frames, ms.
    pub(crate) fn frame_ms(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<Vec<f64>, MissingColumn> {
        let rows = self.rows(Of::Frames, place, window)?;
        let (times, arrived) = (self.ints(&frames::time_ns)?, self.ints(&frames::arrived_ns)?);
        let complete = rows.into_iter().filter(|row| arrived[*row] != Data::NULL);
        Ok(complete.map(|row| (arrived[row] - times[row]) as f64 / 1e6).collect())
    }

    /// Time at which the congestion circuit breaker trips (RFC 8083 §4.3): the sending rate is more than ten times what TCP would get
    /// by its simplified equation, s/(R·sqrt(2p/3)), over `CB_INTERVAL` reports.
    fn breaker_s(
        &self,
        rows: &[usize],
        start_ns: i64,
        stop_ns: i64,
        fps: u32,
    ) -> Result<Option<f64>, MissingColumn> {
        let (times, rtts) = (self.ints(&frames::time_ns)?, self.ints(&frames::srtt_ns)?);
        let (bytes, packets) = (self.ints(&frames::bytes)?, self.ints(&frames::packets)?);
        let (sent, arrived) = (self.ints(&frames::sent)?, self.ints(&frames::arrived)?);
        let count = ((stop_ns - start_ns - OPEN_NS).max(0) / INTERVAL_NS) as usize;
        let mut intervals = vec![Interval::default(); count];
        for &row in rows {
            let number = ((times[row] - start_ns) / INTERVAL_NS) as usize;
            let Some(interval) = intervals.get_mut(number) else { continue };
            interval.sent += sent[row] as f64;
            interval.lost += (sent[row] - arrived[row]) as f64;
            interval.bytes += bytes[row] as f64 * sent[row] as f64 / packets[row].max(1) as f64;
            if rtts[row] != Data::NULL {
                interval.rtt_s += rtts[row] as f64 / 1e9;
                interval.rtts += 1.0;
            }
        }
        let trips = (0..intervals.len()).find(|end| trips(&intervals[..=*end], fps));
        Ok(trips.map(|end| (start_ns + (end as i64 + 1) * INTERVAL_NS) as f64 / 1e9))
    }
}

/// True when the breaker trips at the end of the last of these intervals.
fn trips(intervals: &[Interval], fps: u32) -> bool {
    let rtt_s = |intervals: &[Interval]| {
        let count: f64 = intervals.iter().map(|interval| interval.rtts).sum();
        intervals.iter().map(|interval| interval.rtt_s).sum::<f64>() / count
    };
    let latest = intervals.last().map_or(f64::NAN, |last| rtt_s(std::slice::from_ref(last)));
    // CB_INTERVAL with frame groups of one frame, and T_d = 5 s.
    let count = (10.0 / f64::from(fps)).max(10.0 * latest).clamp(3.0, 15.0).ceil() as usize;
    let Some(first) = intervals.len().checked_sub(count) else { return false };
    let window = &intervals[first..];
    let sum = |of: fn(&Interval) -> f64| window.iter().map(of).sum::<f64>();
    let (bytes, sent, lost) = (sum(|it| it.bytes), sum(|it| it.sent), sum(|it| it.lost));
    // Each report of them has loss.
    if sent == 0.0 || window.iter().any(|interval| interval.lost == 0.0) {
        return false;
    }
    let tcp_bytes_per_s = bytes / sent / (rtt_s(window) * (2.0 * lost / sent / 3.0).sqrt());
    bytes / count as f64 > 10.0 * tcp_bytes_per_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(lost: f64) -> Interval {
        // 1 Mbit/s in packets of 1000 bytes, 100 ms.
        Interval { bytes: 125_000.0, sent: 125.0, lost, rtt_s: 3.0, rtts: 30.0 }
    }

    #[test]
    fn a_breaker_trips_at_ten_times_tcps_rate_in_three_reports() {
        // TCP's rate is 10 kB/s ÷ sqrt(2p/3): a tenth of 125 kB/s at p = 0.96.
        assert!(trips(&[interval(121.0); 3], 30));
        assert!(!trips(&[interval(119.0); 3], 30));
        assert!(!trips(&[interval(121.0); 2], 30), "two reports are too few");
        let gap = [interval(121.0), interval(0.0), interval(125.0)];
        assert!(!trips(&gap, 30), "a report without loss ends it");
    }

    #[test]
    fn slow_round_trips_need_more_reports() {
        let slow = Interval { rtt_s: 15.0, ..interval(60.0) };
        assert!(!trips(&[slow; 4], 30));
        assert!(trips(&[slow; 5], 30));
    }
}
