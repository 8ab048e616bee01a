//! Queue disciplines and netem: which packet leaves a link's queue, when, and which never does.
//!
//! What lives here: the contract ([`Qdisc`], [`Sink`]), one discipline per file, and the closed
//! form of a tail-drop FIFO ([`ComputedFifo`]) that needs no event. What must not: the
//! wire behind the queue, topology, packets' contents: a discipline sees an [`Item`].
//!
//! `now` is an argument of enqueue and of dequeue; every drop, mark and copy is reported to the
//! sink, because a discipline may drop another packet than the one in hand (FQ-CoDel) and at another
//! time (CoDel drops at dequeue).

mod arena;
pub mod codel;
mod computed;
mod contract;
mod discipline;
mod fifo;
mod flow_hash;
pub mod fq_codel;
pub mod htb;
mod line;
pub mod netem;
pub mod sfq;
pub mod tbf;
#[cfg(test)]
mod testing;
mod token_rate;

pub use computed::{ComputedFifo, Departure, Server};
pub use contract::{Backlog, Dequeue, DropReason, Dscp, Ecn, Item, PacketId, Qdisc, Sink};
pub use discipline::Discipline;
pub use fifo::{Fifo, Limit};
pub use line::Line;
pub use token_rate::Framing;
