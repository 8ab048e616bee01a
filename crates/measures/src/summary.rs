//! The summary of a run: what the result document says about it (docs/reference/result-json.md).

use crate::arithmetic::{percentile, percentiles};
use crate::measured::{Measured, MissingColumn, Window};
use crate::recovery::Recovery;
use crate::rtp::LiveVideo;
use crate::transfers::Transfer;
use crate::video::Watched;
use crate::why::{self, Finding};
use dragstrip_recording::column;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run's summary.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Simulated time.
    duration_s: f64,
    /// The flows, in the scenario's order.
    flows: Vec<FlowSummary>,
    /// The probes, in the scenario's order; in `compare`, the first is the receiver's ping to the first sender.
    probes: Vec<ProbeSummary>,
    /// Links that have a rate, a queue or an impairment; the bottleneck first.
    queues: Vec<QueueSummary>,
    /// Sets of flows that [compete](measures.md) with each other.
    competing: Vec<Competing>,
    /// Jain's index of the goodputs of all flows, from 0 to 1; `null` if they do not all compete.
    jain: Option<f64>,
    /// Explanations of the run, strongest cause first ([rules](../how-to/report.md#why)).
    why: Vec<Finding>,
    /// Recovery after each change of the path; only where something changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recoveries: Vec<Recovery>,
}

/// Flows that compete with each other.
#[derive(Clone, Debug, Serialize)]
#[serde(rename = "Competition")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Competing {
    /// The flows' numbers.
    flows: Vec<i64>,
    /// Jain's index of their goodputs, from 0 to 1; of the ratios to the max-min fair rates where these differ.
    jain: Option<f64>,
    /// Max-min fair rate of each flow where these differ, as in a parking lot; else `null`.
    max_min_bps: Option<Vec<f64>>,
    /// Start of the time in which all of them live, to which shares and Jain's index apply. `null` where these
    /// apply to the whole run: the lives differ by less than a tenth, or overlap for less than half of the shortest.
    from_s: Option<f64>,
    /// End of that time.
    until_s: Option<f64>,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
#[serde(rename = "Flow")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlowSummary {
    /// Number, from 0.
    flow: i64,
    /// Name.
    label: String,
    /// Congestion control; `udp` for a UDP flow.
    cc: String,
    /// Start of the flow's life.
    start_s: f64,
    /// End of the flow's life.
    stop_s: f64,
    /// New bytes at the receiver.
    bytes_received: i64,
    /// Rate of new bytes received over the flow's life.
    goodput_bps: f64,
    /// Median over whole seconds of the arrival rate of Ethernet frames, retransmissions included.
    throughput_bps_p50: Option<f64>,
    /// Percentiles of the sender's RTT samples, or, without `record.rtts`, of its latest RTT at each interval in which
    /// something was acknowledged; `null` where there is none.
    rtt_ms: Percentiles,
    /// Segments retransmitted.
    retransmits: i64,
    /// Segments sent.
    segments_sent: i64,
    /// Share, from 0 to 1, of the new bytes of all flows that it [competes](measures.md) with, while all of them live.
    share: Option<f64>,
    /// Expiries of the retransmission timer; `null` if a kernel counts those of several flows together.
    timeouts: Option<i64>,
    /// Number of window reductions.
    reductions: i64,
    /// Time by limit of the sender: `cwnd`, `pacing`, `small_queue`, `rwnd`, `sndbuf`, `app` or `handshake`
    /// ([meanings](recording.md)); empty for UDP.
    limited_s: BTreeMap<String, f64>,
    /// Time by [state](recording.md): `disorder`, `cwr`, `recovery` or `loss`, else the algorithm's phase.
    state_s: BTreeMap<String, f64>,
    /// The link where the flow [waits longest](../how-to/report.md#where-a-flow-queues); without a wait, the link
    /// where it loses packets, else the slowest.
    bottleneck: Option<String>,
    /// Mean queueing delay at that link.
    queueing_ms: Option<f64>,
    /// The link whose queue drops at least nine tenths of its lost packets; `null` where the recording does not tell.
    loss_link: Option<String>,
    /// Quality of experience; only of a [video](../how-to/experiments.md#video).
    #[serde(skip_serializing_if = "Option::is_none")]
    video: Option<Watched>,
    /// A live video; only of a [video over RTP](../how-to/experiments.md#live-video).
    #[serde(skip_serializing_if = "Option::is_none")]
    rtp: Option<LiveVideo>,
    /// Completion; only of a flow with a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<Transfer>,
}

/// A ping.
#[derive(Clone, Debug, Serialize)]
#[serde(rename = "Probe")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProbeSummary {
    /// The node that answers.
    target: String,
    /// Percentiles of answered pings while some flow lives.
    rtt_ms: Percentiles,
    /// Pings without an answer; those in flight at the end are left out.
    lost: u64,
}

/// The queue of a link.
#[derive(Clone, Debug, Serialize)]
#[serde(rename = "Queue")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct QueueSummary {
    /// Name of the link.
    link: String,
    /// Backlog, sampled at every recording interval while some flow lives.
    backlog_bytes: Backlog,
    /// Packets dropped in the whole run.
    dropped: i64,
    /// Packets marked with CE in the whole run.
    marked: i64,
    /// Time with nothing to send while some flow lives; `null` if the rate is not constant.
    idle_s: Option<f64>,
}

/// Percentiles of a series; `null` where it is empty.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Percentiles {
    /// 5th percentile.
    p5: Option<f64>,
    /// Median.
    p50: Option<f64>,
    /// 95th percentile.
    p95: Option<f64>,
}

/// Statistics of a backlog; `null` where there is no sample.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Backlog {
    /// Median.
    p50: Option<f64>,
    /// 95th percentile.
    p95: Option<f64>,
    /// Largest sample.
    max: Option<f64>,
}

fn summary_percentiles(mut values: Vec<f64>) -> Percentiles {
    let all = percentiles(&mut values, [5.0, 50.0, 95.0]);
    all.map_or_else(Percentiles::default, |[p5, p50, p95]| Percentiles {
        p5: Some(p5),
        p50: Some(p50),
        p95: Some(p95),
    })
}

fn owned(spent: BTreeMap<&str, f64>) -> BTreeMap<String, f64> {
    spent.into_iter().map(|(name, seconds)| (name.to_owned(), seconds)).collect()
}

/// The summary of a run.
///
/// # Errors
/// A column that is needed is missing.
pub fn summarise(run: &Measured) -> Result<Summary, MissingColumn> {
    let everything = Window::default();
    let mut shares = vec![None; run.flows().len()];
    for set in run.competing() {
        for (place, share) in set.iter().zip(run.shares(set)?.into_iter().flatten()) {
            shares[*place] = Some(share);
        }
    }
    let queueing = run.queueing()?;
    let mut flows = Vec::with_capacity(shares.len());
    for (place, flow) in run.flows().iter().enumerate() {
        flows.push(FlowSummary {
            flow: flow.flow,
            label: flow.label.clone(),
            cc: flow.cc.clone(),
            start_s: flow.start_ns as f64 / 1e9,
            stop_s: flow.stop_ns as f64 / 1e9,
            bytes_received: flow.bytes_received,
            goodput_bps: flow.goodput_bps(),
            throughput_bps_p50: percentile(run.throughput_bps(place, &everything)?, 50.0),
            rtt_ms: summary_percentiles(run.rtts_ms(place, &everything)?),
            retransmits: flow.retransmits,
            segments_sent: flow.segments_sent,
            share: shares[place],
            timeouts: flow.rto_count,
            reductions: flow.reductions,
            limited_s: owned(run.limited_s(place, &everything)?),
            state_s: owned(run.state_s(place, &everything)?),
            bottleneck: queueing[place].bottleneck.clone(),
            queueing_ms: queueing[place].wait_ms(),
            loss_link: queueing[place].loss_link.clone(),
            video: run.watched(place)?,
            rtp: run.live_video(place)?,
            transfer: run.transfer(place),
        });
    }
    let probes = run.scenario.probes.iter().map(|probe| {
        let rtt_ms = summary_percentiles(run.probe_ms(&probe.label, false)?);
        let lost = run.probes_lost(&probe.label)?;
        Ok(ProbeSummary { target: probe.target.clone(), rtt_ms, lost })
    });
    let competing = |set: &Vec<usize>| {
        let together = run.together(set);
        Ok(Competing {
            flows: set.iter().map(|place| run.flows()[*place].flow).collect(),
            jain: run.jain_of(set)?,
            max_min_bps: run.max_min_bps(set),
            from_s: together.map(|(from, _)| from as f64 / 1e9),
            until_s: together.map(|(_, until)| until as f64 / 1e9),
        })
    };
    let queues = run.queued_links().into_iter().map(|link| {
        let mut backlog = run.backlog_bytes(link)?;
        let max = backlog.iter().copied().max_by(f64::total_cmp);
        let [p50, p95] = match percentiles(&mut backlog, [50.0, 95.0]) {
            Some([p50, p95]) => [Some(p50), Some(p95)],
            None => [None, None],
        };
        Ok(QueueSummary {
            link: link.to_owned(),
            backlog_bytes: Backlog { p50, p95, max },
            dropped: run.queue_total(link, &column::queues::dropped)?,
            marked: run.queue_total(link, &column::queues::marked)?,
            idle_s: run.idle_s(link)?,
        })
    });
    Ok(Summary {
        duration_s: run.scenario.duration_ns as f64 / 1e9,
        flows,
        probes: probes.collect::<Result<_, _>>()?,
        queues: queues.collect::<Result<_, _>>()?,
        competing: run.competing().iter().map(competing).collect::<Result<_, _>>()?,
        jain: run.jain()?,
        why: why::explain(run)?,
        recoveries: run.recoveries()?,
    })
}
