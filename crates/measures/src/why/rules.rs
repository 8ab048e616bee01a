//! The rules, strongest first: each looks at the facts of a run and finds its cause, or nothing.
//!
//! A threshold says from where on a cause is worth a sentence; the figures of what is said are measures.

use super::facts::{Facts, Flow, Link};
use super::rivals::mechanism;
use super::words::{Buffer, Cause};
use crate::numbers::MATHIS;

/// A rule.
pub type Rule = fn(&Facts) -> Option<Cause>;

/// All rules, in the order in which they explain a run.
pub const RULES: &[Rule] = &[
    unconnected,
    timeouts,
    application,
    send_buffer,
    receive_window,
    small_queue,
    unfair_share,
    random_loss,
    ecn_marks,
    aqm,
    standing_queue,
    slow_start_not_left,
    idle_link,
    slow_start_overshoot,
    pacing,
    filled,
];

/// A limit that holds for so much of a flow's life explains it.
const LIMITED_MIN: f64 = 0.5;
/// A send buffer or receive window explains a flow only where the link has room.
const BUFFER_LIMITED_MIN: f64 = 0.25;
const TIMEOUTS_MIN: i64 = 3;
const LOSS_STATE_MIN: f64 = 0.25;
/// Goodput below this part of the link's rate leaves it underused: headers take 5 %.
const UNDERUSED: f64 = 0.9;
/// An idle part from which on it is worth a sentence.
const IDLE_MIN: f64 = 0.1;
/// Goodputs further apart than this are unequal.
const UNEQUAL_MIN: f64 = 2.0;
/// Retransmissions from which on a share of them says something.
const RETRANSMITS_MIN: f64 = 10.0;
/// An overshoot is most of what was retransmitted, and so much of what was sent.
const OVERSHOOT_MIN: f64 = 0.5;
const OVERSHOOT_SENT_MIN: f64 = 0.005;
const SLOW_START_MIN: f64 = 0.8;
/// Queueing that is worth a sentence: so many ms, and so much of the idle round trip.
const QUEUEING_MS_MIN: f64 = 5.0;
const QUEUEING_PART_MIN: f64 = 0.25;
/// A wait at another link that is worth telling apart, ms.
const ELSEWHERE_MS_MIN: f64 = 1.0;
/// An active queue management that lets more than so many targets stand does not hold.
const AQM_TARGETS_MAX: f64 = 4.0;
/// Within this factor the law holds.
const LAW_FACTOR: f64 = 2.0;

/// The flow for which `figure` is greatest, of those that a rule holds for.
fn worst(
    facts: &Facts,
    holds: impl Fn(&Flow) -> bool,
    figure: impl Fn(&Flow) -> f64,
) -> Option<&Flow> {
    let held = facts.flows.iter().filter(|flow| holds(flow));
    held.max_by(|a, b| figure(a).total_cmp(&figure(b)))
}

fn labels<'a>(flows: impl Iterator<Item = &'a Flow>) -> Vec<String> {
    flows.map(|flow| flow.label.clone()).collect()
}

/// Name of a flow in a sentence: its algorithm, or its label where the algorithm does not tell it apart, or where
/// the label is the algorithm with its options (`cubic:beta=0.8`).
fn name(facts: &Facts, flow: &Flow) -> String {
    let options = flow.label.strip_prefix(&flow.cc).is_some_and(|rest| rest.starts_with(':'));
    let alone = !options && facts.flows.iter().filter(|other| other.cc == flow.cc).count() == 1;
    if alone { flow.cc.clone() } else { flow.label.clone() }
}

/// Name of a link in a sentence: its own where flows queue or lose at several, or at another than the slowest.
fn called(facts: &Facts, link: &Link) -> String {
    if facts.named { format!("the bottleneck {}", link.name) } else { "the bottleneck".to_owned() }
}

fn underused(facts: &Facts, flow: &Flow) -> bool {
    let idle = facts.link_of(flow).and_then(Link::idle);
    let by_goodput = flow.rate_bps.map(|rate| flow.goodput_bps < UNDERUSED * rate);
    idle.map(|idle| idle >= IDLE_MIN).or(by_goodput).unwrap_or(true)
}

fn unconnected(facts: &Facts) -> Option<Cause> {
    let never = |flow: &&Flow| {
        flow.is_tcp && flow.life_s > 0.0 && flow.received == 0 && flow.limited("handshake") > 0.99
    };
    let never: Vec<&Flow> = facts.flows.iter().filter(never).collect();
    let first = never.first()?;
    let (who, flows) = (name(facts, first), labels(never.iter().copied()));
    Some(Cause::Unconnected { who, flows, life_s: first.life_s })
}

fn timeouts(facts: &Facts) -> Option<Cause> {
    let holds = |flow: &Flow| {
        flow.timeouts.is_some_and(|count| count >= TIMEOUTS_MIN)
            && flow.part(flow.loss_s) >= LOSS_STATE_MIN
    };
    let flow = worst(facts, holds, |flow| flow.part(flow.loss_s))?;
    Some(Cause::Timeouts {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        timeouts: flow.timeouts? as f64,
        loss_s: flow.loss_s,
        life_s: flow.life_s,
    })
}

fn application(facts: &Facts) -> Option<Cause> {
    let holds = |flow: &Flow| flow.limited("app") >= LIMITED_MIN;
    let flow = worst(facts, holds, |flow| flow.limited("app"))?;
    Some(Cause::Application {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        app_limited_s: flow.limited_s.get("app").copied()?,
        life_s: flow.life_s,
    })
}

fn buffer(facts: &Facts, limit: &'static str, which: Buffer) -> Option<Cause> {
    let holds = |flow: &Flow| flow.limited(limit) >= BUFFER_LIMITED_MIN && underused(facts, flow);
    let flow = worst(facts, holds, |flow| flow.limited(limit))?;
    Some(Cause::Buffer {
        which,
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        goodput_bps: flow.goodput_bps,
        limited_s: flow.limited_s.get(limit).copied()?,
        life_s: flow.life_s,
        bdp_bytes: flow.bdp_bytes,
        buffers: flow.buffers,
    })
}

fn send_buffer(facts: &Facts) -> Option<Cause> {
    buffer(facts, "sndbuf", Buffer::Send)
}

fn small_queue(facts: &Facts) -> Option<Cause> {
    let holds = |flow: &Flow| flow.limited("small_queue") >= LIMITED_MIN;
    let flow = worst(facts, holds, |flow| flow.limited("small_queue"))?;
    Some(Cause::SmallQueue {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        small_queue_limited_s: flow.limited_s.get("small_queue").copied()?,
        life_s: flow.life_s,
        delay_ms: facts.link_of(flow).and_then(Link::delay_p50_ms),
    })
}

fn receive_window(facts: &Facts) -> Option<Cause> {
    buffer(facts, "rwnd", Buffer::Receive)
}

/// Unfair shares at the link with the largest ratio.
fn unfair_share(facts: &Facts) -> Option<Cause> {
    let ratio = |pair: &(&Flow, &Flow)| part_of_fair(pair.0) / part_of_fair(pair.1);
    let pairs = facts.links.iter().filter_map(|link| unequal(facts, link));
    // The first of equals.
    let (most, least) = pairs.rev().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let names = (name(facts, most), name(facts, least));
    Some(Cause::UnfairShare {
        mechanism: mechanism(facts, most, least, (&names.0, &names.1)),
        most: names.0,
        least: names.1,
        flows: labels([most, least].into_iter()),
        most_bps: most.rival_bps,
        least_bps: least.rival_bps,
        fair_bps: most.fair_bps.zip(least.fair_bps).filter(|(most, least)| most != least),
        together_s: most.together_s,
        jain: facts.jain?,
    })
}

/// A flow's rate as a part of its max-min fair rate; where all have the same, its rate in bit/s.
fn part_of_fair(flow: &Flow) -> f64 {
    flow.rival_bps / flow.fair_bps.unwrap_or(1.0)
}

/// Flows that compete: bulk that queues at one link, half of their lives at the same time.
fn unequal<'a>(facts: &'a Facts, link: &Link) -> Option<(&'a Flow, &'a Flow)> {
    let rivals: Vec<&Flow> = facts
        .flows
        .iter()
        .filter(|flow| flow.is_tcp && flow.link.as_ref() == Some(&link.name) && flow.life_s > 0.0)
        .filter(|flow| flow.limited("app") < LIMITED_MIN)
        .collect();
    let most = *rivals.iter().max_by(|a, b| part_of_fair(a).total_cmp(&part_of_fair(b)))?;
    let least = *rivals.iter().min_by(|a, b| part_of_fair(a).total_cmp(&part_of_fair(b)))?;
    let begins = most.start_s.max(least.start_s);
    let ends = (most.start_s + most.life_s).min(least.start_s + least.life_s);
    let shorter = most.life_s.min(least.life_s);
    if part_of_fair(most) < UNEQUAL_MIN * part_of_fair(least) || ends - begins < 0.5 * shorter {
        return None;
    }
    Some((most, least))
}

fn random_loss(facts: &Facts) -> Option<Cause> {
    let outside_queues = (1.0 - facts.queue_drops / facts.retransmits.max(1.0)).max(0.0);
    let lost = |flow: &Flow| flow.retransmits * outside_queues;
    let holds = |flow: &Flow| {
        flow.retransmits >= RETRANSMITS_MIN
            && outside_queues >= 0.5
            && flow.limited("cwnd") >= LIMITED_MIN
            && underused(facts, flow)
    };
    let flow = worst(facts, holds, lost)?;
    let loss = lost(flow) / flow.segments_sent;
    let rtt_ms = flow.rtt_p50_ms?;
    let law_bps = MATHIS * flow.segment_bytes * 8e3 / rtt_ms / loss.sqrt();
    let ratio = flow.goodput_bps / law_bps;
    Some(Cause::RandomLoss {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        loss,
        rtt_ms,
        law_bps: ((1.0 / LAW_FACTOR)..=LAW_FACTOR).contains(&ratio).then_some(law_bps),
        goodput_bps: flow.goodput_bps,
        rate_bps: flow.rate_bps,
    })
}

fn ecn_marks(facts: &Facts) -> Option<Cause> {
    let link = facts.links.iter().max_by(|a, b| a.marked.total_cmp(&b.marked))?;
    let again: f64 = facts.flows.iter().map(|flow| flow.retransmits).sum();
    let few = |count: f64| count <= 0.1 * link.marked;
    (link.marked >= RETRANSMITS_MIN && few(link.dropped) && few(again)).then(|| Cause::EcnMarks {
        link: called(facts, link),
        flows: labels(facts.flows.iter().filter(|flow| flow.is_tcp)),
        marked: link.marked,
        dropped: link.dropped,
        delay_ms: link.delay_p50_ms(),
    })
}

fn aqm(facts: &Facts) -> Option<Cause> {
    facts.links.iter().find_map(|link| {
        let (kind, target_ms) = link.aqm?;
        let delay_ms = link.delay_p50_ms()?;
        let acts = link.dropped + link.marked;
        // An idle queue has no cause to report.
        let fed = delay_ms > 0.0 && link.idle().is_none_or(|idle| idle < IDLE_MIN);
        let holds = fed && delay_ms <= AQM_TARGETS_MAX * target_ms;
        (acts >= RETRANSMITS_MIN && holds).then(|| Cause::Aqm {
            kind,
            link: called(facts, link),
            flows: labels(facts.flows.iter().filter(|flow| flow.crosses.contains(&link.name))),
            delay_ms,
            target_ms,
            dropped: link.dropped,
            marked: link.marked,
        })
    })
}

/// The mean wait of a flow at a link.
fn wait_at(flow: &Flow, link: &str) -> Option<f64> {
    flow.hops.iter().find(|hop| hop.link == link).map(|hop| hop.wait_ms)
}

fn standing_queue(facts: &Facts) -> Option<Cause> {
    // A medium has delays of its own: there the wait in its queue is what is known to be queueing (Little's law).
    let queueing = |flow: &Flow| {
        let rtt_ms = flow.rtt_p50_ms.unwrap_or(0.0);
        match facts.link_of(flow) {
            Some(link) if link.rate_bps.is_none() => {
                wait_at(flow, &link.name).unwrap_or(0.0).min(rtt_ms)
            }
            Some(_) | None => rtt_ms - flow.base_rtt_ms,
        }
    };
    let holds = |flow: &Flow| {
        let enough = QUEUEING_MS_MIN.max(QUEUEING_PART_MIN * flow.base_rtt_ms);
        let link = facts.link_of(flow);
        let queued = link.is_some_and(|link| link.backlog_p50_bytes > 0.0);
        // What a paced sender, or one that small queues hold back, leaves in the queue is in the sentence on that.
        let held = |limit: &str| flow.limited(limit) >= LIMITED_MIN;
        let held = held("pacing") || held("small_queue");
        flow.is_tcp && queued && !held && queueing(flow) >= enough
    };
    let flow = worst(facts, holds, queueing)?;
    let link = facts.link_of(flow)?;
    Some(Cause::StandingQueue {
        who: name(facts, flow),
        shared: facts.flows.len() > 1,
        at: facts.named.then(|| link.name.clone()),
        there_ms: wait_at(flow, &link.name).filter(|_| {
            flow.hops.iter().any(|hop| hop.link != link.name && hop.wait_ms >= ELSEWHERE_MS_MIN)
        }),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        queueing_ms: queueing(flow),
        rtt_ms: flow.rtt_p50_ms?,
        never_empty: link.backlog_p5_bytes > 0.0,
    })
}

fn slow_start_not_left(facts: &Facts) -> Option<Cause> {
    let holds = |flow: &Flow| {
        flow.is_tcp
            && flow.part(flow.slow_start_s) >= SLOW_START_MIN
            && flow.limited("cwnd") + flow.limited("pacing") >= LIMITED_MIN
    };
    let flow = worst(facts, holds, |flow| flow.part(flow.slow_start_s))?;
    Some(Cause::SlowStart {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        slow_start_s: flow.slow_start_s,
        life_s: flow.life_s,
        goodput_bps: flow.goodput_bps,
    })
}

fn slow_start_overshoot(facts: &Facts) -> Option<Cause> {
    let early = |flow: &Flow| flow.overshoot.map_or(0.0, |(again, _)| again);
    let holds = |flow: &Flow| {
        early(flow) >= RETRANSMITS_MIN.max(OVERSHOOT_SENT_MIN * flow.segments_sent)
            && early(flow) >= OVERSHOOT_MIN * flow.retransmits
    };
    let flow = worst(facts, holds, early)?;
    let (again, since_s) = flow.overshoot?;
    Some(Cause::Overshoot {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        early: again,
        retransmits: flow.retransmits,
        since_s,
    })
}

fn idle_link(facts: &Facts) -> Option<Cause> {
    let queues =
        |link: &&Link| facts.flows.iter().any(|flow| flow.link.as_ref() == Some(&link.name));
    let mut links = facts.links.iter().filter(queues);
    let link = links.find(|link| link.idle().is_some_and(|idle| idle >= IDLE_MIN))?;
    let most = link.idle_after_s.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let through = || facts.flows.iter().filter(|flow| flow.link.as_ref() == Some(&link.name));
    let bdp = through().filter_map(|flow| flow.bdp_bytes).reduce(f64::max);
    let reduced = most.0.contains("reduction");
    let short = link.buffer_bytes.zip(bdp).filter(|(buffer, bdp)| reduced && buffer < bdp);
    let first = through().next().filter(|_| through().count() == 1);
    Some(Cause::IdleLink {
        who: first.map(|flow| name(facts, flow)),
        link: called(facts, link),
        flows: labels(through()),
        idle_s: link.idle_s?,
        busy_s: link.busy_s,
        after: most.0,
        after_s: *most.1,
        buffer_and_bdp_bytes: short,
    })
}

fn pacing(facts: &Facts) -> Option<Cause> {
    let holds = |flow: &Flow| flow.limited("pacing") >= LIMITED_MIN;
    let flow = worst(facts, holds, |flow| flow.limited("pacing"))?;
    Some(Cause::Pacing {
        who: name(facts, flow),
        flows: labels(facts.flows.iter().filter(|flow| holds(flow))),
        pacing_limited_s: flow.limited_s.get("pacing").copied()?,
        life_s: flow.life_s,
        delay_ms: facts.link_of(flow).and_then(Link::delay_p50_ms),
    })
}

fn filled(facts: &Facts) -> Option<Cause> {
    let link = facts.links.first()?;
    let idle = link.idle().filter(|idle| *idle < IDLE_MIN)?;
    let flow = facts.flows.iter().find(|flow| flow.link.as_ref() == Some(&link.name))?;
    Some(Cause::Filled {
        who: if facts.flows.len() > 1 { None } else { Some(name(facts, flow)) },
        link: called(facts, link),
        flows: labels(facts.flows.iter().filter(|flow| flow.link.as_ref() == Some(&link.name))),
        used: 1.0 - idle,
        delay_ms: link.delay_p50_ms()?,
    })
}
