//! A run that its caller moves on, as a page does that must not stop answering meanwhile.

use crate::build;
use crate::error::{self, SetupError};
use crate::observer::Observer;
use crate::world::World;
use dragstrip_recording::{Recording, Writer};
use dragstrip_scenario::Scenario;
use dragstrip_units::Instant;

/// A run in progress. In however many slices, the recording is that of [`run`](crate::run), but for `record.captures`: `spp` and `tcpstat` are
/// empty.
#[derive(Debug)]
pub struct Run<O = ()> {
    scenario: Scenario,
    world: World<O>,
    done: bool,
}

impl<O: Observer> Run<O> {
    /// A run of `scenario` at its beginning.
    ///
    /// # Errors
    /// A scenario that validation would refuse.
    pub fn new(scenario: Scenario, observer: O) -> Result<Self, SetupError> {
        let world = build::build(&scenario, observer)?;
        Ok(Self { scenario, world, done: false })
    }

    /// Lets everything happen that is due until `until_ns`, but no more than `events_max` events; answers with their
    /// number. It is done when nothing is due before the end any more.
    pub fn advance(&mut self, until_ns: u64, events_max: u32) -> u32 {
        let events = self.world.advance(Instant::from_nanos(until_ns), events_max);
        self.done = self.world.pending().is_none() && self.now_ns() >= self.end_ns();
        events
    }

    /// Fault that has stopped a program of the scenario: the run is of no use afterwards.
    #[must_use]
    pub fn fault(&self) -> Option<SetupError> {
        let (flow, fault) = self.world.fault()?;
        Some(error::of_program(&self.scenario, flow, &fault))
    }

    /// Current time in simulated nanoseconds.
    #[must_use]
    pub const fn now_ns(&self) -> u64 {
        self.world.now.as_nanos()
    }

    /// End time in simulated nanoseconds.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        self.world.end().as_nanos()
    }

    /// True when no event is left.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// The scenario.
    #[must_use]
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        self.world.observer()
    }

    /// The same, to change the kinds of events that it observes.
    pub const fn observer_mut(&mut self) -> &mut O {
        self.world.observer_mut()
    }

    /// Tables recorded so far, without rows in `flows`.
    #[must_use]
    pub const fn tables(&self) -> &Writer {
        self.world.tables()
    }

    /// The recording of what has happened so far: when it is done, that of the run.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.world.recording(&self.scenario)
    }

    /// The same, of a run that does not go on.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.world.finish(&self.scenario)
    }
}
