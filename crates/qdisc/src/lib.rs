//! Queue disciplines and netem: which packet leaves a link's queue, when, and which never does.
//!
//! What lives here: the contract ([`Qdisc`], [`Sink`]), one discipline per file, and the closed
//! form of a tail-drop FIFO ([`ComputedFifo`]) that needs no event. What must not: the
//! wire behind the queue, topology, packets' contents: a discipline sees an [`Item`].
//!
//! `now` is an argument of enqueue and of dequeue; every drop, mark and copy is reported to the
//! sink, because a discipline may drop another packet than the one in hand (FQ-CoDel) and at another
//! time (CoDel drops at dequeue).

mod computed;
mod contract;
mod fifo;
pub mod htb;
mod line;
pub mod tbf;
mod token_rate;

pub use computed::{ComputedFifo, Server};
pub use contract::{Backlog, Dequeue, DropReason, Ecn, Item, PacketId, Qdisc, Sink};
pub use fifo::{Fifo, Limit};
pub use line::Line;
pub use token_rate::Framing;
