//! The short form of a path as nodes and links.
//!
//! ```text
//! s1 ─┐                                       ┌─ d1
//! s2 ─┼── r ══ bottleneck ══ [impairment] ── w ┼─ d2      one receiver: d takes w's place
//! sN ─┘                                       └─ dM
//! ```

use crate::media::shared;
use crate::parts::{DEFAULT_QUEUE, Transmitter, discipline, emulation, host, wire};
use crate::quantity::percent;
use crate::types::{AccessForm, PathForm, SendersForm};
use dragstrip_scenario::{LinkSpec, NetemSpec, NodeSpec, Problem};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(crate) fn dumbbell(
    path: &PathForm,
    flow_count: u64,
    media: &BTreeMap<String, Map<String, Value>>,
) -> Result<(Vec<NodeSpec>, Vec<LinkSpec>), Problem> {
    let plain = AccessForm::default();
    let access: Vec<&AccessForm> = match &path.senders {
        None => (0..flow_count).map(|_| &plain).collect(),
        Some(SendersForm::Count(count)) => (0..*count).map(|_| &plain).collect(),
        Some(SendersForm::Links(links)) => links.iter().collect(),
    };
    let receivers: Vec<String> = match path.receivers {
        1 => vec!["d".to_owned()],
        count => (1..=count).map(|number| format!("d{number}")).collect(),
    };
    let far = if receivers.len() == 1 { "d" } else { "w" };
    let router = |name: &str| NodeSpec::Router { name: name.to_owned() };
    let mut nodes: Vec<NodeSpec> =
        (1..=access.len()).map(|number| host(&format!("s{number}"))).collect();
    nodes.push(router("r"));
    if far == "w" {
        nodes.push(router("w"));
    }
    nodes.extend(receivers.iter().map(|name| host(name)));
    let mut links = Vec::with_capacity(2 * (access.len() + receivers.len() + 1));
    for (index, own) in access.into_iter().enumerate() {
        let sender = format!("s{}", index + 1);
        let mut there = wire(&sender, "r");
        if let Some(words) = &own.queue {
            there.qdisc = discipline(words, &format!("path.senders[{index}].queue"))?;
        }
        for mut link in [there, wire("r", &sender)] {
            link.rate_bps = own.rate.map(|rate| rate.0);
            link.delay_ns = own.delay.0;
            links.push(link);
        }
    }
    links.extend(bottleneck(path, far, media)?);
    if far == "w" {
        for receiver in &receivers {
            links.extend([wire("w", receiver), wire(receiver, "w")]);
        }
    }
    Ok((nodes, links))
}

fn bottleneck(
    path: &PathForm,
    far: &str,
    media: &BTreeMap<String, Map<String, Value>>,
) -> Result<[LinkSpec; 2], Problem> {
    let drive =
        |rate| Transmitter { kind: path.link, rate, overhead: path.overhead, atm: path.atm };
    let mut down = wire("r", far);
    down.delay_ns = path.delay.0;
    down.netem = impairment(path)?;
    let words = path.queue.as_deref().unwrap_or(DEFAULT_QUEUE);
    match path.rate {
        Some(rate) => drive(rate).drive(&mut down, words, "path.queue")?,
        None => {
            down.medium.clone_from(&path.medium);
            down.qdisc = discipline(words, "path.queue")?;
        }
    }
    let mut up = wire(far, "r");
    up.delay_ns = path.rtt.unwrap_or(path.up_delay).0;
    up.netem = emulation(path.up_netem.as_deref(), "path.up_netem")?;
    let words = path.up_queue.as_deref();
    let both_ways = || path.medium.clone().filter(|name| media.get(name).is_some_and(shared));
    if let Some(rate) = path.up_rate {
        drive(rate).drive(&mut up, words.unwrap_or(DEFAULT_QUEUE), "path.up_queue")?;
    } else if let Some(back) = path.up_medium.clone().or_else(both_ways) {
        up.medium = Some(back);
        up.qdisc = discipline(words.unwrap_or(DEFAULT_QUEUE), "path.up_queue")?;
    } else if let Some(words) = words {
        up.qdisc = discipline(words, "path.up_queue")?;
    }
    Ok([down, up])
}

/// netem's own words for loss and jitter; its queue is long enough never to drop by itself.
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
    words.push("limit 1000000".to_owned());
    emulation(Some(&words.join(" ")), "path.loss")
}
