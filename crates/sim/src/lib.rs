//! The simulator: event queue, topology, recorder.
//!
//! Scope: the loop that carries packets between endpoints over links, the applications, and the tables it fills. Out
//! of scope: TCP (`dragstrip-tcp`), queueing (`dragstrip-qdisc`), media (`dragstrip-link`), files.

mod algorithms;
mod apps;
#[doc(hidden)]
pub mod audit;
mod build;
mod calendar;
mod capture;
mod changes;
mod error;
mod forwarder;
mod headers;
mod hops;
mod lane;
mod media;
mod neighbours;
mod network;
mod observer;
mod owners;
mod packets;
mod partition;
mod parts;
mod probes;
mod rates;
mod recorder;
mod run;
mod sockets;
mod world;

pub use capture::{Capture, CaptureSettings};
pub use dragstrip_recording::{Column, Data, Recording, Table};
pub use error::SetupError;
pub use forwarder::{Forwarder, Way};
pub use observer::{Event, Kinds, Loss, Observer, Owner, Sighting, Vantage};
pub use parts::{Crossings, Part, Parts, Turns, unite};
pub use run::Run;

use capture::BothEnds;
use dragstrip_scenario::Scenario;
use world::World;

/// Runs `scenario` to its end. `progress` is called with the simulated time in nanoseconds, about every
/// simulated second and within some tenths of a real one; answering `false` ends the run early (its recording is then complete up to there).
///
/// # Errors
/// A scenario that validation would refuse, or a program of it whose arithmetic has failed in the run.
pub fn run(
    scenario: &Scenario,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Recording, SetupError> {
    run_observed(scenario, (), progress)
}

/// The same, and `observer` sees every packet at the edges of nodes and links.
///
/// # Errors
/// A scenario that validation would refuse, or a program of it whose arithmetic has failed in the run.
pub fn run_observed<O: Observer>(
    scenario: &Scenario,
    observer: O,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Recording, SetupError> {
    if !scenario.record.captures {
        return Ok(ran(scenario, observer, progress)?.finish(scenario));
    }
    let captures = BothEnds::new(scenario, observer)?;
    let mut world = ran(scenario, captures, progress)?;
    world.conclude(|captures, end, tables| captures.finish(end, tables));
    Ok(world.finish(scenario))
}

/// A world at the end of its run.
fn ran<O: Observer>(
    scenario: &Scenario,
    observer: O,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<World<O>, SetupError> {
    let mut world = build::build(scenario, observer)?;
    world.run(progress);
    match world.fault() {
        Some((flow, fault)) => Err(error::of_program(scenario, flow, &fault)),
        None => Ok(world),
    }
}
