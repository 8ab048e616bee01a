//! One large run in parts that are simulated at the same time.
//!
//! The network is cut at links with delay (conservative parallel simulation with the links' delay as lookahead). A part is a
//! world that has everything and acts on what is its own: what it sends over a cut link lies in that link's lane, and is
//! handed to the part at the far end before it is due. Between two meetings no part needs to know of another, so the
//! bytes are those of one world. Threads are the caller's.

use crate::build;
use crate::error::SetupError;
use crate::partition::{Crossing, CutLinks, FLOWS_MIN, Partition};
use crate::world::World;
use dragstrip_recording::Recording;
use dragstrip_scenario::{Scenario, Topology};
use dragstrip_units::{Duration, Instant};

/// Packets on their way from one part to another.
#[derive(Debug, Default)]
pub struct Crossings(pub(crate) Vec<Crossing>);

/// A run in several parts.
#[derive(Debug)]
pub struct Parts {
    /// The parts.
    pub parts: Vec<Part>,
    /// Schedule of the exchanges.
    pub turns: Turns,
}

/// Schedule at which all parts exchange the packets that cross cuts.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    ahead: Duration,
    end: Instant,
}

impl Turns {
    /// Time in nanoseconds up to which all parts run before exchange number `turn`; the last time it is the end of the
    /// run.
    #[must_use]
    pub fn until_ns(self, turn: u64) -> u64 {
        // A packet sent at the last instant before an exchange arrives after it.
        let until = self.ahead.as_nanos().saturating_mul(turn + 1) - 1;
        until.min(self.end_ns())
    }

    /// The end of the run.
    #[must_use]
    pub const fn end_ns(self) -> u64 {
        self.end.as_nanos()
    }
}

impl Parts {
    /// At most `count` parts of `scenario`; `None` if it is better run in one: it has few flows, it cannot be cut, or one part would have
    /// nearly all of the work.
    ///
    /// # Errors
    /// A scenario that validation would refuse, if it is one to be divided.
    pub fn of(scenario: &Scenario, count: usize) -> Result<Option<Self>, SetupError> {
        Self::of_at_least(scenario, count, FLOWS_MIN)
    }

    /// The same of a scenario with at least `flows_min` flows.
    pub(crate) fn of_at_least(
        scenario: &Scenario,
        count: usize,
        flows_min: usize,
    ) -> Result<Option<Self>, SetupError> {
        if count < 2 || scenario.has_policies() {
            return Ok(None);
        }
        let cut_links = CutLinks::of(scenario, flows_min);
        if !cut_links.any() {
            return Ok(None);
        }
        build::check(scenario)?;
        let topology = Topology::new(scenario);
        let Some(partition) = Partition::new(scenario, &topology, &cut_links, count) else {
            return Ok(None);
        };
        let numbers = 0..partition.part_of.iter().max().map_or(0, |last| last + 1);
        let parts = numbers.map(|number| {
            let part = Some((&partition, number));
            let world = build::build_part(scenario, &topology, &cut_links, part, ())?;
            let cuts = world.cuts(scenario, &topology, &partition, number);
            Ok(Part { world, cuts })
        });
        let parts: Vec<Part> = parts.collect::<Result<_, SetupError>>()?;
        let end = Instant::from_nanos(scenario.duration_ns);
        Ok(Some(Self { parts, turns: Turns { ahead: partition.ahead, end } }))
    }
}

/// A part of a run.
#[derive(Debug)]
pub struct Part {
    pub(crate) world: World<()>,
    /// The lanes of the cut links that begin here, and the part at the far end of each.
    cuts: Vec<(u32, u8)>,
}

impl Part {
    /// Lets everything happen that is due until `until_ns`.
    pub fn advance(&mut self, until_ns: u64) {
        self.world.advance(Instant::from_nanos(until_ns), u32::MAX);
    }

    /// Takes what has been sent to other parts: `to` has a place for each of them.
    pub fn take(&mut self, mut to: impl FnMut(usize, &mut dyn FnMut(&mut Crossings))) {
        for &(lane, part) in &self.cuts {
            if self.world.has_sent(lane) {
                to(usize::from(part), &mut |crossings| {
                    self.world.hand_over(lane, &mut crossings.0)
                });
            }
        }
    }

    /// Takes over what was sent from another part.
    pub fn give(&mut self, crossings: &mut Crossings) {
        self.world.take_over(&mut crossings.0);
    }
}

/// The recording of all parts, all of them at the end of the run or stopped at the same instant.
#[must_use]
pub fn unite(scenario: &Scenario, parts: Vec<Part>) -> Recording {
    World::unite(scenario, parts.into_iter().map(|part| part.world))
}

/// A scenario of any size as one world that could be cut, and in at most `count` parts one after the other; `None` where it cannot.
pub(crate) fn both_ways(
    scenario: &Scenario,
    count: usize,
) -> Result<Option<[Recording; 2]>, SetupError> {
    let Some(mut divided) = Parts::of_at_least(scenario, count, 1)? else { return Ok(None) };
    let topology = Topology::new(scenario);
    let mut whole = build::build_part(scenario, &topology, &CutLinks::of(scenario, 1), None, ())?;
    whole.run(&mut |_| true);
    let mut under_way: Vec<Crossings> =
        divided.parts.iter().map(|_| Crossings::default()).collect();
    for turn in 0.. {
        let until = divided.turns.until_ns(turn);
        for part in &mut divided.parts {
            part.advance(until);
            part.take(|to, hand_over| hand_over(&mut under_way[to]));
        }
        for (part, crossings) in divided.parts.iter_mut().zip(&mut under_way) {
            part.give(crossings);
        }
        if until == divided.turns.end_ns() {
            break;
        }
    }
    Ok(Some([whole.finish(scenario), unite(scenario, divided.parts)]))
}
