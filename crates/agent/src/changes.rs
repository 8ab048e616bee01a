//! Links that change during a run: what is sent to the kernel, and when.

use dragstrip_scenario::{BfifoSpec, QdiscSpec, Scenario};
use serde::{Deserialize, Serialize};

/// A hop's discipline from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub at_ns: u64,
    /// Index of the hop in the plan.
    pub hop: usize,
    pub from: QdiscSpec,
    pub to: QdiscSpec,
    /// The link goes down or comes up: the discipline is another one, and begins empty.
    pub anew: bool,
}

/// Properties of a link that change during a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changing {
    pub delay: bool,
    pub loss: bool,
    pub up: bool,
}

impl Changing {
    pub fn of(scenario: &Scenario, link: &str) -> Self {
        let mut all = Self::default();
        for change in scenario.changes.iter().filter(|change| change.link == link) {
            all.delay |= change.delay_ns.is_some();
            all.loss |= change.loss.is_some();
            all.up |= change.up.is_some();
        }
        all
    }
}

/// In the place of a queue whose link is down: no packet is as short as one byte. (An interface that is down would
/// take its routes and the way back along.)
pub fn down() -> QdiscSpec {
    QdiscSpec::from(BfifoSpec { limit_bytes: 1 })
}

/// Steps of one hop from its disciplines by start time; `up` is the link's state.
pub fn steps(hop: usize, periods: Vec<(u64, QdiscSpec, bool)>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut periods = periods.into_iter().map(|(at_ns, spec, up)| {
        let spec = if up { spec } else { down() };
        (at_ns, spec, up)
    });
    let Some((_, mut now, mut was_up)) = periods.next() else { return steps };
    for (at_ns, to, up) in periods {
        if to != now {
            let from = std::mem::replace(&mut now, to.clone());
            steps.push(Step { at_ns, hop, from, to, anew: up != was_up });
        }
        was_up = up;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_while_a_link_is_down_apply_when_it_comes_up() {
        let fifo = |limit: u32| QdiscSpec::parse(&format!("pfifo limit {limit}")).unwrap();
        let periods = vec![
            (0, fifo(9), true),
            (1, fifo(8), true),
            (2, fifo(8), true),
            (3, fifo(8), false),
            (4, fifo(7), false),
            (5, fifo(7), true),
        ];
        let step = |at_ns, from, to, anew| Step { at_ns, hop: 4, from, to, anew };
        let expected = [
            step(1, fifo(9), fifo(8), false),
            step(3, fifo(8), down(), true),
            step(5, down(), fifo(7), true),
        ];
        assert_eq!(steps(4, periods), expected);
    }
}
