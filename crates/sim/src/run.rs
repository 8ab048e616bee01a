//! A run that its caller moves on, as a page does that must not stop answering meanwhile.

use crate::build;
use crate::error::{self, SetupError};
use crate::observer::Observer;
use crate::world::{Stop, World};
use dragstrip_cc::Agent;
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

    /// A copy, which goes on with the same bytes; None for a run with flows of QUIC, whose stacks cannot be copied.
    #[must_use]
    pub fn copy(&self) -> Option<Self>
    where
        O: Clone,
    {
        let Self { scenario, world, done } = self;
        world.quic.is_empty().then(|| Self {
            scenario: scenario.clone(),
            world: world.clone(),
            done: *done,
        })
    }

    /// Lets everything happen that is due until `until_ns`, but no more than `events_max` events; answers with their
    /// number. It is done when nothing is due before the end any more.
    pub fn advance(&mut self, until_ns: u64, events_max: u32) -> u32 {
        let events = self.world.advance(Instant::from_nanos(until_ns), events_max);
        self.world.settle_tables();
        self.done = self.world.pending().is_none() && self.now_ns() >= self.end_ns();
        events
    }

    /// Lets everything happen until `until_ns`, until a step ends whose agent waits for an action, or until an agent's flow has
    /// ended. Returns false if nothing stopped it before `until_ns`.
    pub fn advance_to_step(&mut self, until_ns: u64) -> bool {
        let until = Instant::from_nanos(until_ns).min(self.world.end());
        let (_, stop) = self.world.advance_to_step(until, u32::MAX);
        self.world.settle_tables();
        stop != Stop::Until
    }

    /// Flows whose agents wait for an action, in the order in which their sockets were made.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.world.waiting()
    }

    /// The agent of a flow, if it has one.
    #[must_use]
    pub fn agent(&self, flow: u32) -> Option<&Agent> {
        self.world.agent(flow as usize)
    }

    /// Applies the action of a flow's agent, within the bounds of its kind.
    pub fn act(&mut self, flow: u32, action: f64) {
        self.world.act_on(flow as usize, action);
    }

    /// Agents that wait for an action leave everything as it is.
    pub fn leave_waiting(&mut self) {
        self.world.leave_waiting();
    }

    /// Ends the step of a flow's agent now, whatever its length.
    pub fn end_step(&mut self, flow: u32) {
        self.world.end_step(flow as usize);
    }

    /// True once a flow has ended: all of its bytes have arrived, or its time is over.
    #[must_use]
    pub fn has_ended(&self, flow: u32) -> bool {
        self.world.has_ended(flow as usize)
    }

    /// Bytes that have arrived in order at a flow's receiver.
    #[must_use]
    pub fn bytes_received(&self, flow: u32) -> u64 {
        self.world.bytes_received(flow as usize)
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

    /// Keeps the rows from here on as they are, for who reads [`tables`](Self::tables) while the run goes on.
    pub fn keep_tables_plain(&mut self) {
        self.world.tables_mut().keep_plain();
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
