//! The summary of a run: what the result document says about it (docs/reference/result-json.md).

use crate::arithmetic::{percentile, percentiles};
use crate::measured::{Measured, MissingColumn, Window};
use crate::transfers::Transfer;
use crate::video::Watched;
use crate::why::{self, Finding};
use dragstrip_recording::column;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run's summary.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    duration_s: f64,
    flows: Vec<FlowSummary>,
    probes: Vec<ProbeSummary>,
    queues: Vec<QueueSummary>,
    competing: Vec<Competing>,
    jain: Option<f64>,
    why: Vec<Finding>,
}

#[derive(Clone, Debug, Serialize)]
struct Competing {
    flows: Vec<i64>,
    jain: Option<f64>,
    /// The max-min fair rates where these differ, of which Jain's index is the ratio's.
    max_min_bps: Option<Vec<f64>>,
    /// The time in which all of them live, where shares and Jain's index are of that time alone.
    from_s: Option<f64>,
    until_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct FlowSummary {
    flow: i64,
    label: String,
    cc: String,
    start_s: f64,
    stop_s: f64,
    bytes_received: i64,
    goodput_bps: f64,
    throughput_bps_p50: Option<f64>,
    rtt_ms: Three,
    retransmits: i64,
    segments_sent: i64,
    share: Option<f64>,
    timeouts: Option<i64>,
    reductions: i64,
    limited_s: BTreeMap<String, f64>,
    state_s: BTreeMap<String, f64>,
    bottleneck: Option<String>,
    queueing_ms: Option<f64>,
    loss_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    video: Option<Watched>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<Transfer>,
}

#[derive(Clone, Debug, Serialize)]
struct ProbeSummary {
    target: String,
    rtt_ms: Three,
    lost: u64,
}

#[derive(Clone, Debug, Serialize)]
struct QueueSummary {
    link: String,
    backlog_bytes: Backlog,
    dropped: i64,
    marked: i64,
    idle_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Three {
    p5: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Backlog {
    p50: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
}

fn three(mut values: Vec<f64>) -> Three {
    let all = percentiles(&mut values, [5.0, 50.0, 95.0]);
    all.map_or_else(Three::default, |[p5, p50, p95]| Three {
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
            rtt_ms: three(run.rtts_ms(place, &everything)?),
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
            transfer: run.transfer(place),
        });
    }
    let probes = run.scenario.probes.iter().map(|probe| {
        let rtt_ms = three(run.probe_ms(&probe.label, false)?);
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
    })
}
