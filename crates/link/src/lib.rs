//! Media: what happens to a packet between leaving a queue and arriving at the next node.
//!
//! What lives here: one file per medium (so far the store-and-forward wire), with its sources. What must not:
//! queueing (`dragstrip-qdisc`), topology (`dragstrip-sim`).

mod wire;

pub use wire::Wire;
