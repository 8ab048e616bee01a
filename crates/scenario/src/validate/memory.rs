//! Estimate of a recording's size before the run.

use crate::applications::Application;
use crate::captures::CAPTURE_BYTES;
use crate::path::FULL_FRAME_BYTES;
use crate::routing::Topology;
use crate::types::{Scenario, Transport};
use dragstrip_units::Problem;
use std::collections::BTreeMap;

/// Columns of 64 bits per row of each table (the recording's reference page lists them).
const SAMPLES_COLUMNS: u64 = 14;
const RECEIVED_COLUMNS: u64 = 4;
const RTTS_COLUMNS: u64 = 3;
const PROBES_COLUMNS: u64 = 5;
const QUEUES_COLUMNS: u64 = 7;
const CC_STATE_COLUMNS: u64 = 4;
const FRAMES_COLUMNS: u64 = 11;
const SPP_COLUMNS: u64 = 4;
const TCPSTAT_COLUMNS: u64 = 3;
/// Columns kept for a packet that both captures contain.
const MATCHED_COLUMNS: u64 = 3;
/// About as many variables has the algorithm with the most.
const CC_VARIABLES: u64 = 10;
const COLUMN_BYTES: u64 = 8;
/// Full frames are counted; smaller ones would be more packets but not more ACKs of a bulk flow.
const FRAME_BITS: u128 = FULL_FRAME_BYTES as u128 * 8;
const SEGMENT_BYTES: u64 = 1448;
/// Assumed rate if no link of the path has one.
const RATE_UNKNOWN_BPS: u64 = 10_000_000_000;
/// The receiver acknowledges every second segment.
const PACKETS_PER_ACK: u64 = 2;

impl Scenario {
    /// About how many bytes the recording's columns will take.
    ///
    /// Tables with a row per interval are counted; those with a row per ACK are estimated from the
    /// rate of each flow's bottleneck, which the flows that share it share.
    #[must_use]
    pub fn recording_bytes(&self) -> u64 {
        let ticks = self.ticks();
        let flows = self.flows.len() as u64;
        let acks = self.packets() / PACKETS_PER_ACK;
        let (samples, rtts) = self.long_tables(acks);
        let captures = u64::from(self.record.captures);
        let captured = if self.record.captures { self.captured_hosts().len() as u64 } else { 0 };
        let probes =
            self.probes.iter().map(|probe| self.duration_ns / probe.interval_ns.max(1) + 1);
        let rows = [
            (samples, SAMPLES_COLUMNS),
            (ticks.saturating_mul(flows), RECEIVED_COLUMNS),
            (rtts, RTTS_COLUMNS),
            (probes.fold(0, u64::saturating_add), PROBES_COLUMNS),
            (ticks.saturating_mul(self.links.len() as u64), QUEUES_COLUMNS),
            (self.frames(), FRAMES_COLUMNS),
            (if self.record.cc_state { samples } else { 0 }, CC_VARIABLES * CC_STATE_COLUMNS),
            (captures * acks, SPP_COLUMNS + (1 + PACKETS_PER_ACK) * MATCHED_COLUMNS),
            (
                captures * flows.saturating_mul(self.duration_ns / 1_000_000_000 + 1),
                TCPSTAT_COLUMNS,
            ),
            (captured, CAPTURE_BYTES / COLUMN_BYTES),
        ];
        rows.iter()
            .map(|(rows, columns)| rows.saturating_mul(columns * COLUMN_BYTES))
            .fold(0, u64::saturating_add)
    }

    /// About how many rows the tables `samples` and `rtts` will have, which may have a row for every ACK.
    #[must_use]
    pub fn rows_per_ack(&self) -> (u64, u64) {
        self.long_tables(self.packets() / PACKETS_PER_ACK)
    }

    fn long_tables(&self, acks: u64) -> (u64, u64) {
        let per_interval = self.ticks().saturating_mul(self.flows.len() as u64);
        let samples = if self.record.every_ack { acks } else { per_interval };
        (samples, if self.record.rtts { acks } else { 0 })
    }

    /// Ends of recording intervals, the start of the run included.
    fn ticks(&self) -> u64 {
        self.duration_ns / self.record.interval_ns.max(1) + 1
    }

    /// Frames of all videos over RTP.
    fn frames(&self) -> u64 {
        let frames = self.flows.iter().map(|flow| match flow.application {
            Application::Rtp { fps, .. } => {
                let stop_ns = flow.stop_ns.unwrap_or(self.duration_ns).min(self.duration_ns);
                let life_ns = u128::from(stop_ns.saturating_sub(flow.start_ns));
                (life_ns * u128::from(fps) / 1_000_000_000) as u64 + 1
            }
            Application::Bulk { .. }
            | Application::OnOff { .. }
            | Application::RequestResponse { .. }
            | Application::Video { .. }
            | Application::ConstantRate { .. }
            | Application::Tunnel { .. }
            | Application::Program { .. } => 0,
        });
        frames.fold(0, u64::saturating_add)
    }

    /// Checks that the recording will fit into `limit_bytes` of memory.
    ///
    /// # Errors
    /// The field that makes it large: the interval if the rows per interval do, else the duration.
    pub fn validate_memory(&self, limit_bytes: u64) -> Result<(), Problem> {
        let bytes = self.recording_bytes();
        if bytes <= limit_bytes {
            return Ok(());
        }
        let mut coarse = self.clone();
        coarse.record = crate::Record { rtts: false, ..crate::Record::default() };
        let needed = |bytes: u64| format!("a recording of about {} MiB", bytes >> 20);
        let limit = format!("at most {} MiB of memory", limit_bytes >> 20);
        let (field, value, advice) = if coarse.recording_bytes() <= limit_bytes {
            ("record", format!("{} for {:?}", needed(bytes), self.record), "record less often")
        } else {
            ("duration_ns", format!("{} for {} ns", needed(bytes), self.duration_ns), "run shorter")
        };
        Err(Problem::new(field, value, format!("{limit}: {advice}")))
    }

    /// About how many data packets TCP and QUIC will send: what the bottlenecks let pass.
    #[must_use]
    pub fn packets(&self) -> u64 {
        let topology = Topology::new(self);
        // Per bottleneck: what it can carry, and what its flows want.
        let mut bottlenecks: BTreeMap<Option<usize>, (u64, u64)> = BTreeMap::new();
        for flow in self.flows.iter().filter(|flow| flow.transport != Transport::Udp) {
            let ends = (topology.node(&flow.sender), topology.node(&flow.receiver));
            let (Some(from), Some(to)) = ends else { continue };
            let Ok(path) = topology.path(from, to) else { continue };
            let slowest = path
                .into_iter()
                .filter_map(|link| Some((self.link_facts(&self.links[link]).fastest_bps?, link)))
                .min()
                .map_or((RATE_UNKNOWN_BPS, None), |(bps, link)| (bps, Some(link)));
            let bits = u128::from(slowest.0) * u128::from(self.duration_ns) / 1_000_000_000;
            let room = u64::try_from(bits / FRAME_BITS).unwrap_or(u64::MAX);
            let packets = match flow.application {
                Application::Bulk { bytes: Some(bytes) } => bytes.div_ceil(SEGMENT_BYTES),
                Application::Bulk { bytes: None }
                | Application::OnOff { .. }
                | Application::RequestResponse { .. }
                | Application::Video { .. }
                | Application::ConstantRate { .. }
                | Application::Rtp { .. }
                | Application::Tunnel { .. }
                | Application::Program { .. } => room,
            };
            let (_, sum) = bottlenecks.entry(slowest.1).or_insert((room, 0));
            *sum = sum.saturating_add(packets);
        }
        bottlenecks.values().map(|(room, packets)| *room.min(packets)).fold(0, u64::saturating_add)
    }
}
