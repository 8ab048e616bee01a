//! From the changes of a scenario to what happens to which stage, and when.

use crate::network::{Act, Changes};
use dragstrip_qdisc::{Change, Streams};
use dragstrip_scenario::{LinkSpec, Scenario};
use dragstrip_units::{Instant, Rate};

/// True when a link's own queue or line changes, so that its departures cannot be computed ahead.
pub(crate) fn concerns_queue(scenario: &Scenario, link: &LinkSpec) -> bool {
    scenario.changes.iter().any(|change| {
        change.link == link.name
            && (change.rate_bps.is_some()
                || change.limit_bytes.is_some()
                || change.limit_packets.is_some()
                || change.up.is_some())
    })
}

/// The changes of a scenario whose links have these stages.
pub(crate) fn changes(scenario: &Scenario, of_link: &[Vec<u32>]) -> Changes {
    let mut ahead = Vec::new();
    for (link, stages) in scenario.links.iter().zip(of_link) {
        let mine = scenario.changes_of(&link.name);
        if mine.is_empty() {
            continue;
        }
        let (mut now, mut up, mut outages) = (link.clone(), true, 0);
        let own_delay_ns = link.netem.as_ref().map_or(0, |netem| netem.delay_ns);
        for change in mine {
            let at = Instant::from_nanos(change.at_ns);
            let mut act = |stage: u32, act: Act| ahead.push((at, stage, act));
            let queue = stages[0];
            if link.rate_bps.is_some()
                && let Some(rate) = change.rate_bps.and_then(Rate::from_bits_per_second)
            {
                act(queue, Act::Line(rate));
            }
            for setting in change.of_queue(link) {
                act(queue, Act::Queue(setting));
            }
            if let (Some(ns), Some(&netem)) = (change.delay_ns, stages.get(1)) {
                let delay = Change::DelayNs(own_delay_ns.saturating_add(ns));
                act(netem, Act::Queue(delay));
            }
            if let (Some(loss), Some(&netem)) = (change.loss, stages.get(1)) {
                act(netem, Act::Queue(Change::Loss(loss)));
            }
            change.apply(&mut now);
            let new_up = change.up.unwrap_or(up);
            if new_up != up && !new_up {
                outages += 1;
                act(queue, Act::Down);
            } else if new_up != up {
                let name = format!("{}:up{outages}", link.name);
                let fresh = now.qdisc.build(&Streams::of_link(scenario.seed, &name));
                act(queue, Act::Up(Box::new(fresh)));
            }
            up = new_up;
        }
    }
    ahead.sort_by_key(|(at, ..)| *at);
    Changes { ahead: ahead.into(), source: 0 }
}
