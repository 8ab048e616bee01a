//! A link on a kernel: the discipline at its interface, the stage after it, and what of both a kernel lacks.

use crate::changes::Changing;
use crate::fault::{Fault, refusal};
use crate::kernel::Kernel;
use crate::trees;
use dragstrip_scenario::{HtbSpec, LinkSpec, NetemSpec, NodeSpec, PfifoSpec, QdiscSpec, Scenario};
use serde::Serialize;
use serde_json::Value;

/// A delay up to this is what cables and hosts take themselves; where it is not set, it is measured and not added. All of
/// a path's are below what the check of the round trip allows.
const CABLE_NS: u64 = 250_000;

/// Leaves a link's delay to its cable, if it is as short as a cable's and nothing else needs netem; returns a note
/// about it.
pub fn leave_to_cable(link: &mut LinkSpec, changing: Changing) -> Option<String> {
    let short = link.delay_ns > 0 && link.delay_ns <= CABLE_NS;
    if !short || link.netem.is_some() || changing.delay || changing.loss {
        return None;
    }
    let delay_us = std::mem::take(&mut link.delay_ns) / 1_000;
    Some(format!("link {}: delay of {delay_us} us left to the cable", link.name))
}

/// Packets that a queue without a limit may hold.
const UNLIMITED: u32 = 1_000_000;

/// Disciplines that one link contributes to a chain, each with its name in the table of queues: its queue, and the
/// stage after it at another place.
pub struct Side {
    pub queue: (QdiscSpec, Option<String>),
    pub behind: Option<(Box<NetemSpec>, Option<String>)>,
}

impl Side {
    pub fn new(
        link: &LinkSpec,
        changing: Changing,
        kernel: &Kernel,
        senders: &[&str],
    ) -> Result<Self, Fault> {
        let watched = (link.qdisc != QdiscSpec::NOQUEUE).then(|| link.name.clone());
        let watched_behind = link.netem.is_some().then(|| format!("{}:netem", link.name));
        let queue = egress(link)?;
        // When the link goes down, its packets in flight arrive nevertheless.
        let free = queue == QdiscSpec::NOQUEUE && !changing.up;
        let on_egress = free && !senders.contains(&link.from.as_str());
        Ok(match behind(link, changing, kernel) {
            Some(spec) if on_egress => {
                Self { queue: (QdiscSpec::Netem(spec), watched_behind), behind: None }
            }
            spec => {
                Self { queue: (queue, watched), behind: spec.map(|spec| (spec, watched_behind)) }
            }
        })
    }
}

/// Refuses features that a link needs and the kernel lacks.
pub fn lacking(link: &LinkSpec, kernel: &Kernel) -> Result<(), Fault> {
    let lacks = |kind: &str| kernel.lacks.contains(&kind);
    let queue = egress(link)?;
    let classes = queue.classes();
    let specs = [&queue].into_iter().chain(classes.iter().map(|class| class.child));
    let mut kinds = specs.flat_map(trees::kinds);
    if let Some(kind) = kinds.find(|kind| lacks(kind)) {
        let expected = format!("one that this kernel has: it has no sch_{kind}, the engine vm has");
        return refusal(format!("link {}: queue", link.name), kind, expected);
    }
    if lacks("netem") && (link.delay_ns > 0 || link.netem.is_some()) {
        let delay_ns = link.delay_ns + link.netem.as_ref().map_or(0, |netem| netem.delay_ns);
        // A delay within the cable's own range is not the reason.
        let (item, value) = if delay_ns > CABLE_NS || link.netem.is_none() {
            ("delay", format!("{} ms", delay_ns as f64 / 1e6))
        } else {
            ("netem", "loss, jitter or the like".to_owned())
        };
        let expected = "none: this kernel has no netem (sch_netem), the engine vm has";
        return refusal(format!("link {}: {item}", link.name), value, expected);
    }
    Ok(())
}

/// True when bursts stay one packet at every interface.
pub fn keeps_bursts(scenario: &Scenario) -> bool {
    let mut hosts = scenario.nodes.iter().filter_map(NodeSpec::host);
    hosts.all(|host| host.gso == dragstrip_scenario::GsoMode::Whole)
}

/// The discipline at the interface: the link's own, inside a shaper where it has a transmitter.
fn egress(link: &LinkSpec) -> Result<QdiscSpec, Fault> {
    let Some(rate_bps) = link.rate_bps else { return Ok(link.qdisc.clone()) };
    if trees::shapes_to(&link.qdisc, rate_bps) {
        return Ok(link.qdisc.clone());
    }
    if link.qdisc.facts().shapes && !matches!(link.qdisc, QdiscSpec::Tc(_)) {
        let expected = "a queue that does not shape: the link has a rate of its own";
        return refusal(format!("link {}: queue", link.name), link.qdisc.kind(), expected);
    }
    let leaf = if link.qdisc == QdiscSpec::NOQUEUE {
        QdiscSpec::from(PfifoSpec { limit_packets: UNLIMITED })
    } else {
        link.qdisc.clone()
    };
    Ok(QdiscSpec::from(HtbSpec {
        rate_bps,
        ceil_bps: None,
        burst_bytes: BURST,
        cburst_bytes: BURST,
        overhead_bytes: link.overhead_bytes as i32,
        mpu_bytes: 0,
        linklayer_atm: false,
        leaf: Box::new(leaf),
    }))
}

/// One full frame and a little, what tc(8) would choose at rates below 1 Gbit/s.
const BURST: u64 = 1600;

/// Name of a value, or of its member, in a scenario's file.
pub fn serialized(part: &impl Serialize, member: Option<&str>) -> String {
    let value = serde_json::to_value(part).unwrap_or_default();
    let field = member.map_or(Some(&value), |member| value.get(member));
    field.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The stage after the queue: a delay, impairments, and the serialisation that htb leaves out (it releases a packet at
/// the *start* of its time on the wire). A netem with a rate keeps packets in order, so that one which is to reorder
/// them does without, and they arrive earlier by a frame's time on the wire, as on a kernel without netem.
///
/// Likewise a netem whose delay changes, as packets overtake others there.
fn behind(link: &LinkSpec, changing: Changing, kernel: &Kernel) -> Option<Box<NetemSpec>> {
    let serialised = link.rate_bps.is_some() && !kernel.lacks.contains(&"netem");
    let later = changing.delay || changing.loss;
    if link.delay_ns == 0 && link.netem.is_none() && !serialised && !later {
        return None;
    }
    let plain = || Box::new(NetemSpec { limit_packets: UNLIMITED, ..NetemSpec::default() });
    let mut spec = link.netem.clone().unwrap_or_else(plain);
    spec.delay_ns += link.delay_ns;
    if spec.jitter_ns == 0 && spec.reorder == 0.0 && !changing.delay {
        spec.rate_bps = spec.rate_bps.or(link.rate_bps);
    }
    Some(spec)
}
