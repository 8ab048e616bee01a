//! Estimate of a recording's size before the run.

use super::ETHERNET_BYTES;
use crate::applications::Application;
use crate::captures::CAPTURE_BYTES;
use crate::changes::Period;
use crate::routing::Topology;
use crate::types::{NodeSpec, Scenario, Transport};
use dragstrip_units::Problem;
use std::collections::{BTreeMap, BTreeSet};

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
const MTU_BYTES: u32 = 1500;
/// IP and TCP headers with timestamps.
const HEADER_BYTES: u32 = 52;
/// Assumed rate if no link of the path has one.
const RATE_UNKNOWN_BPS: u64 = 10_000_000_000;
/// The receiver acknowledges every second segment.
const PACKETS_PER_ACK: u64 = 2;

/// Approximate size of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingSize {
    /// Bytes of all columns.
    pub bytes: u64,
    /// Rows of the table `samples`, which may have one for every ACK.
    pub sample_rows: u64,
    /// Rows of the table `rtts`, one for every ACK.
    pub rtt_rows: u64,
}

impl Scenario {
    /// About how large the recording will be.
    ///
    /// Tables with a row per interval are counted; those with a row per ACK are estimated from the
    /// rate of each flow's bottleneck, which the flows that share it share.
    #[must_use]
    pub fn recording_size(&self) -> RecordingSize {
        let ticks = self.duration_ns / self.record.interval_ns.max(1) + 1;
        let flows = self.flows.len() as u64;
        let acks = self.packets() / PACKETS_PER_ACK;
        let sample_rows = if self.record.every_ack { acks } else { ticks.saturating_mul(flows) };
        let rtt_rows = if self.record.rtts { acks } else { 0 };
        let captures = u64::from(self.record.captures);
        let captured = if self.record.captures { self.captured_hosts().len() as u64 } else { 0 };
        let probes =
            self.probes.iter().map(|probe| self.duration_ns / probe.interval_ns.max(1) + 1);
        let rows = [
            (sample_rows, SAMPLES_COLUMNS),
            (ticks.saturating_mul(flows), RECEIVED_COLUMNS),
            (rtt_rows, RTTS_COLUMNS),
            (probes.fold(0, u64::saturating_add), PROBES_COLUMNS),
            (ticks.saturating_mul(self.links.len() as u64), QUEUES_COLUMNS),
            (self.frames(), FRAMES_COLUMNS),
            (if self.record.cc_state { sample_rows } else { 0 }, CC_VARIABLES * CC_STATE_COLUMNS),
            (captures * acks, SPP_COLUMNS + (1 + PACKETS_PER_ACK) * MATCHED_COLUMNS),
            (
                captures * flows.saturating_mul(self.duration_ns / 1_000_000_000 + 1),
                TCPSTAT_COLUMNS,
            ),
            (captured, CAPTURE_BYTES / COLUMN_BYTES),
        ];
        let bytes = rows
            .iter()
            .map(|(rows, columns)| rows.saturating_mul(columns * COLUMN_BYTES))
            .fold(0, u64::saturating_add);
        RecordingSize { bytes, sample_rows, rtt_rows }
    }

    /// About how many bytes the recording's columns will take.
    #[must_use]
    pub fn recording_bytes(&self) -> u64 {
        self.recording_size().bytes
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

    /// About how many data packets TCP and QUIC will send: what the slowest link lets pass on the way of each flow's data
    /// while it lives, and what such a link lets pass in all.
    #[must_use]
    pub fn packets(&self) -> u64 {
        let topology = Topology::new(self);
        let mut links = Rates::new(self);
        let mtus = self.nodes.iter().filter_map(NodeSpec::host);
        let mtus: BTreeMap<&str, u32> =
            mtus.map(|host| (host.name.as_str(), host.mtu_bytes)).collect();
        // Per bottleneck: what it can carry, and what its flows want.
        let mut bottlenecks: BTreeMap<Option<usize>, (u64, u64)> = BTreeMap::new();
        for flow in self.flows.iter().filter(|flow| flow.transport != Transport::Udp) {
            let (sender, receiver) = flow.data_ends();
            let ends = (topology.node(sender), topology.node(receiver));
            let (Some(from), Some(to)) = ends else { continue };
            let Ok(path) = topology.path(from, to) else { continue };
            let mtu = |name| mtus.get(name).copied().unwrap_or(MTU_BYTES);
            let mtu_bytes = mtu(sender).min(mtu(receiver));
            let frame_bits = u128::from((u64::from(mtu_bytes) + ETHERNET_BYTES) * 8);
            let segment_bytes = u64::from(mtu_bytes.saturating_sub(HEADER_BYTES).max(1));
            let whole = (0, self.duration_ns);
            let life = (flow.start_ns, flow.stop_ns.unwrap_or(u64::MAX).min(self.duration_ns));
            let slowest = path.into_iter().filter_map(|link| Some((links.bits(link, life)?, link)));
            let (bits, link) = slowest.min().map_or_else(
                || (bits_of(RATE_UNKNOWN_BPS, life), None),
                |(bits, link)| (bits, Some(link)),
            );
            let all_bits = link
                .and_then(|link| links.bits(link, whole))
                .unwrap_or_else(|| bits_of(RATE_UNKNOWN_BPS, whole));
            let packets_in = |bits: u128| u64::try_from(bits / frame_bits).unwrap_or(u64::MAX);
            let packets = match flow.application {
                Application::Bulk { bytes: Some(bytes) } => {
                    bytes.div_ceil(segment_bytes).min(packets_in(bits))
                }
                Application::Bulk { bytes: None }
                | Application::OnOff { .. }
                | Application::RequestResponse { .. }
                | Application::Video { .. }
                | Application::ConstantRate { .. }
                | Application::Rtp { .. }
                | Application::Tunnel { .. }
                | Application::Program { .. } => packets_in(bits),
            };
            let (room, sum) = bottlenecks.entry(link).or_default();
            *room = packets_in(all_bits).max(*room);
            *sum = sum.saturating_add(packets);
        }
        bottlenecks.values().map(|(room, packets)| *room.min(packets)).fold(0, u64::saturating_add)
    }
}

/// The fastest rate of each link by periods, computed when first needed: a network may have a hundred thousand links.
struct Rates<'a> {
    scenario: &'a Scenario,
    changing: BTreeSet<&'a str>,
    of_links: BTreeMap<usize, Vec<(u64, Option<u64>)>>,
}

impl<'a> Rates<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let changing = scenario.changes.iter().map(|change| change.link.as_str()).collect();
        Self { scenario, changing, of_links: BTreeMap::new() }
    }

    /// Bits that a link lets pass in a span of time; none where it has no rate at some time of it.
    fn bits(&mut self, link: usize, (from_ns, to_ns): (u64, u64)) -> Option<u128> {
        let Self { scenario, changing, of_links } = self;
        let periods = of_links.entry(link).or_insert_with(|| {
            let spec = &scenario.links[link];
            if !changing.contains(spec.name.as_str()) {
                return vec![(0, scenario.link_facts(spec).fastest_bps)];
            }
            let rate = |period: &Period| {
                if period.up { scenario.link_facts(&period.link).fastest_bps } else { Some(0) }
            };
            let periods = scenario.periods(spec);
            periods.iter().map(|period| (period.from_ns, rate(period))).collect()
        });
        let ends = periods.iter().skip(1).map(|(from, _)| *from).chain([u64::MAX]);
        let mut bits = 0_u128;
        for ((begin, rate), end) in periods.iter().zip(ends) {
            let span = (from_ns.max(*begin), to_ns.min(end));
            if span.0 < span.1 {
                bits += bits_of((*rate)?, span);
            }
        }
        Some(bits)
    }
}

fn bits_of(rate_bps: u64, (from_ns, to_ns): (u64, u64)) -> u128 {
    u128::from(rate_bps) * u128::from(to_ns.saturating_sub(from_ns)) / 1_000_000_000
}
