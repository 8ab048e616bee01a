//! Hosts of a lab: an agent on each (`serve`), which changes it within bounds and rolls that back in every case, and
//! one conductor for all of them (`conduct`), which reaches them by the system's own ssh.
//!
//! Out of scope: how an end of a flow behaves (side/), how a queue is set up (qdisc.rs).

mod change;
mod conduct;
mod findings;
mod frames;
mod host_run;
mod hosts;
mod inventory;
mod journal;
mod line;
mod merge;
mod messages;
mod placement;
mod serve;
mod stage;

pub use conduct::conduct;
pub use journal::guard;
pub use serve::serve;
