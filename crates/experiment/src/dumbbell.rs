//! The short form of a path as nodes and links.
//!
//! ```text
//! s1 ─┐                                       ┌─ d1
//! s2 ─┼── r ══ bottleneck ══ [impairment] ── w ┼─ d2
//! sN ─┘                                       └─ dM
//! ```
//!
//! A single receiver takes w's place, unless it sends data into a limited return path: from its own interface, TCP
//! small queues would keep them out of that path's queue, which a PC behind a modem fills.

use crate::media::{MediumForm, medium, shared};
use crate::parts::{Transmitter, discipline, emulation, host, wire};
use crate::problem;
use crate::quantity::percent;
use crate::senders::{AccessForm, SendersForm};
use crate::tables::Tagged;
use crate::types::DEFAULT_QUEUE;
use crate::types::{FlowForm, PathForm};
use crate::words::{Holds, queue_words, time_text};
use dragstrip_scenario::{LinkSpec, MediumSpec, NetemSpec, NodeSpec, Problem};
use std::collections::BTreeMap;

pub(crate) fn dumbbell(
    path: &PathForm,
    flows: &[FlowForm],
    media: &BTreeMap<String, Tagged<MediumForm>>,
) -> Result<(Vec<NodeSpec>, Vec<LinkSpec>), Problem> {
    let plain = AccessForm::default();
    let farther = Farther::new(path, flows)?;
    let access: Vec<&AccessForm> = match &path.senders {
        None => (0..farther.senders).map(|_| &plain).collect(),
        Some(SendersForm::Count(count)) => (0..*count).map(|_| &plain).collect(),
        Some(SendersForm::Links(links)) => links.iter().collect(),
    };
    let receivers: Vec<String> = match path.receivers {
        1 => vec!["d".to_owned()],
        count => (1..=count).map(|number| format!("d{number}")).collect(),
    };
    let behind_router = has_modem(path, flows, media)? || receivers.len() > 1;
    let far = if behind_router { "w" } else { "d" };
    let router = |name: &str| NodeSpec::Router { name: name.to_owned() };
    let mut nodes: Vec<NodeSpec> =
        (1..=access.len()).map(|number| host(&format!("s{number}"))).collect();
    nodes.push(router("r"));
    if behind_router {
        nodes.push(router("w"));
    }
    nodes.extend(receivers.iter().map(|name| host(name)));
    let ahead = ahead(path)?;
    let mut links = Vec::with_capacity(2 * (access.len() + receivers.len() + 1));
    for (index, access_link) in access.into_iter().enumerate() {
        let sender = format!("s{}", index + 1);
        let mut uplink = wire(&sender, "r");
        if let Some(words) = &access_link.queue {
            let field = format!("path.senders[{index}].queue");
            let holds =
                Holds { rate_bps: access_link.rate.map(|rate| rate.0), rtt_ns: farther.rtt_ns };
            uplink.qdisc = discipline(&queue_words(words, holds, &field)?, &field)?;
        }
        uplink.netem.clone_from(&ahead);
        for mut link in [uplink, wire("r", &sender)] {
            link.rate_bps = access_link.rate.map(|rate| rate.0);
            link.delay_ns = access_link.delay.0;
            links.push(link);
        }
        if let (Some(back), Some(own_ns)) = (links.last_mut(), farther.delays_ns.get(&index)) {
            back.delay_ns = back.delay_ns.saturating_add(*own_ns);
        }
    }
    links.extend(bottleneck(path, far, media, &farther)?);
    if behind_router {
        for receiver in &receivers {
            links.extend([wire("w", receiver), wire(receiver, "w")]);
        }
    }
    Ok((nodes, links))
}

fn bottleneck(
    path: &PathForm,
    far: &str,
    media: &BTreeMap<String, Tagged<MediumForm>>,
    farther: &Farther,
) -> Result<[LinkSpec; 2], Problem> {
    let carried =
        |name: &Option<String>| name.as_ref().and_then(|name| mean_rate(media.get(name)?));
    let drive =
        |rate| Transmitter { kind: path.link, rate, overhead: path.overhead, atm: path.atm };
    let mut down = wire("r", far);
    down.delay_ns = path.delay.0;
    down.netem = impairment(path)?;
    let rate_bps = path.rate.map(|rate| rate.0).or_else(|| carried(&path.medium));
    let holds = Holds { rate_bps, rtt_ns: farther.rtt_ns };
    let words = queue_words(&path.queue, holds, "path.queue")?;
    match path.rate {
        Some(rate) => drive(rate).drive(&mut down, &words, "path.queue")?,
        None => {
            down.medium.clone_from(&path.medium);
            down.qdisc = discipline(&words, "path.queue")?;
        }
    }
    let mut up = wire(far, "r");
    up.delay_ns = path.rtt.unwrap_or(path.up_delay).0.saturating_sub(farther.nearer_ns);
    up.netem = emulation(path.up_netem.as_deref(), "path.up_netem")?;
    let rate_bps = path.up_rate.map(|rate| rate.0).or_else(|| carried(&path.up_medium));
    let holds = Holds { rate_bps, rtt_ns: farther.rtt_ns };
    let words = path.up_queue.as_deref().map(|words| queue_words(words, holds, "path.up_queue"));
    let words = words.transpose()?;
    let words = words.as_deref();
    if let Some(rate) = path.up_rate {
        drive(rate).drive(&mut up, words.unwrap_or(DEFAULT_QUEUE), "path.up_queue")?;
    } else if let Some(back) = return_medium(path, media) {
        up.medium = Some(back);
        up.qdisc = discipline(words.unwrap_or(DEFAULT_QUEUE), "path.up_queue")?;
    } else if let Some(words) = words {
        up.qdisc = discipline(words, "path.up_queue")?;
    }
    Ok([down, up])
}

/// True when the only receiver's return traffic passes a separate router: it has data to carry, and something limits
/// the return path.
fn has_modem(
    path: &PathForm,
    flows: &[FlowForm],
    media: &BTreeMap<String, Tagged<MediumForm>>,
) -> Result<bool, Problem> {
    if path.receiver_on_line && path.receivers > 1 {
        let expected = "false, or one receiver: several stand behind a router";
        return Err(problem("path.receiver_on_line", "true", expected));
    }
    let limited =
        path.up_rate.is_some() || path.up_queue.is_some() || return_medium(path, media).is_some();
    Ok(limited && !path.receiver_on_line && flows.iter().any(FlowForm::sends_back))
}

/// The medium of the return path: its own, or one that both directions share.
fn return_medium(path: &PathForm, media: &BTreeMap<String, Tagged<MediumForm>>) -> Option<String> {
    let both_ways = || path.medium.clone().filter(|name| media.get(name).is_some_and(shared));
    path.up_medium.clone().or_else(both_ways)
}

/// Senders whose flows have their own RTTs.
struct Farther {
    /// Number of senders, one per flow; flows in the other direction share them.
    senders: u64,
    /// Sender → additional delay of its return path (ns) over the common return path.
    delays_ns: BTreeMap<usize, u64>,
    /// Reduction of the common return path's delay against the path's own delay (ns).
    nearer_ns: u64,
    /// RTT of a path that has no other setting.
    rtt_ns: Option<u64>,
}

impl Farther {
    fn new(path: &PathForm, flows: &[FlowForm]) -> Result<Self, Problem> {
        let forward_ns = path.delay.0;
        let back = path.rtt.unwrap_or(path.up_delay).0;
        let whole = forward_ns.saturating_add(back);
        let senders = [false, true].map(|reverse| {
            flows.iter().filter(|flow| flow.reverse == reverse).map(|flow| flow.count).sum::<u64>()
        });
        let mut farther = Self {
            senders: senders[0].max(senders[1]),
            delays_ns: BTreeMap::new(),
            nearer_ns: 0,
            rtt_ns: Some(whole).filter(|rtt| *rtt > 0),
        };
        if flows.iter().all(|flow| flow.rtt.is_none()) {
            return Ok(farther);
        }
        let mut sender_rtts = BTreeMap::new();
        let mut turns = [0_usize; 2];
        for (index, flow) in flows.iter().enumerate() {
            let rtt = flow.rtt.map_or(whole, |rtt| rtt.0);
            let field = format!("flows[{index}].rtt");
            let wrong = |expected: &str| problem(&field, &time_text(rtt), expected);
            if rtt < forward_ns {
                return Err(wrong(&format!(
                    "at least the path's delay, {}",
                    time_text(forward_ns)
                )));
            }
            for _ in 0..flow.count {
                let turn = &mut turns[usize::from(flow.reverse)];
                if *sender_rtts.entry(*turn).or_insert(rtt) != rtt {
                    return Err(wrong("the same for the two flows of a sender, one each way"));
                }
                *turn += 1;
            }
        }
        let least = sender_rtts.values().copied().min().unwrap_or(whole).min(whole);
        farther.nearer_ns = whole - least;
        farther.delays_ns =
            sender_rtts.into_iter().map(|(sender, rtt)| (sender, rtt - least)).collect();
        Ok(farther)
    }
}

/// The rate of a medium that has one.
fn mean_rate(form: &MediumForm) -> Option<u64> {
    match medium(form).ok()? {
        MediumSpec::Adsl { rate_bps, .. } | MediumSpec::Modem { rate_bps, .. } => Some(rate_bps),
        MediumSpec::Trace { opportunities_ms } => {
            let bits = opportunities_ms.len() as u64 * 1500 * 8;
            Some(bits * 1000 / (*opportunities_ms.last()?).max(1))
        }
        MediumSpec::WifiG { .. }
        | MediumSpec::WifiN { .. }
        | MediumSpec::HomeplugAv { .. }
        | MediumSpec::EthernetHub { .. }
        | MediumSpec::Tunnel { .. } => None,
    }
}

/// Impairments on each sender's own link, ahead of the bottleneck's queue.
fn ahead(path: &PathForm) -> Result<Option<Box<NetemSpec>>, Problem> {
    if path.ahead_loss.0 > 0.0 && path.ahead_netem.is_none() {
        let words = format!("loss {} {UNLIMITED}", percent(path.ahead_loss.0));
        return emulation(Some(&words), "path.ahead_loss");
    }
    emulation(path.ahead_netem.as_deref(), "path.ahead_netem")
}

/// A queue of netem's in which nothing is dropped.
const UNLIMITED: &str = "limit 1000000";

/// netem's own words for loss and jitter; its queue is long enough to never drop a packet.
fn impairment(path: &PathForm) -> Result<Option<Box<NetemSpec>>, Problem> {
    if path.netem.is_some() {
        return emulation(path.netem.as_deref(), "path.netem");
    }
    let mut words = Vec::new();
    if path.jitter.0 > 0 {
        words.push(format!("delay {0}ns {0}ns", path.jitter.0));
    }
    if path.loss.0 > 0.0 {
        words.push(format!("loss {}", percent(path.loss.0)));
    }
    if words.is_empty() {
        return Ok(None);
    }
    words.push(UNLIMITED.to_owned());
    emulation(Some(&words.join(" ")), "path.loss")
}
