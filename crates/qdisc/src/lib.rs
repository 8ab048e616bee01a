//! Queue disciplines and netem: which packet leaves a link's queue, when, and which never does.
//!
//! Scope: the contract ([`Qdisc`], [`Sink`]), one folder per discipline in [`disciplines`] with everything about it
//! (model, facts, and a [`table`] of its fields, from which tc's words, checks and netlink's bytes follow), the
//! registry that gathers them, and the closed form of a tail-drop FIFO ([`ComputedFifo`]) that needs no event. Out of
//! scope: the wire after the queue, topology, packets' contents: a discipline sees an [`Item`]; sockets: netlink is
//! bytes here.
//!
//! `now` is an argument of enqueue and of dequeue; every drop, mark and copy is reported to the
//! sink, because a discipline may drop another packet than the one in hand (FQ-CoDel) and at another
//! time (CoDel drops at dequeue).

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
mod arena;
mod change;
mod classes;
mod computed;
mod contract;
pub mod disciplines;
mod flow_hash;
pub mod import;
mod line;
#[cfg(test)]
mod model;
pub mod netlink;
mod peek;
mod periodic;
pub mod table;
pub mod tc;
#[cfg(test)]
mod testing;
mod token_rate;
mod truesize;

pub use change::purge;
pub use classes::{Classes, Classify, Filter, Filters, Match, OneClass};
pub use computed::{ComputedFifo, Departure, Server};
pub use contract::{
    Backlog, Change, Dequeue, DropReason, Dscp, Ecn, Headers, Hosts, Item, PacketId, Qdisc, Sink,
    Verdict,
};
pub use disciplines::cake::CakeSpec;
pub use disciplines::choke::ChokeSpec;
pub use disciplines::codel::CodelSpec;
pub use disciplines::dualpi2::DualPi2Spec;
pub use disciplines::ets::EtsSpec;
pub use disciplines::fifo::{BfifoSpec, Fifo, Limit, NoqueueSpec, PfifoSpec};
pub use disciplines::fq::FqSpec;
pub use disciplines::fq_codel::FqCodelSpec;
pub use disciplines::fq_pie::FqPieSpec;
pub use disciplines::htb::HtbSpec;
pub use disciplines::netem::{DelayDistribution, LossModel, NetemSpec};
pub use disciplines::pie::PieSpec;
pub use disciplines::police::PoliceSpec;
pub use disciplines::prio::PrioSpec;
pub use disciplines::red::RedSpec;
pub use disciplines::sfb::SfbSpec;
pub use disciplines::sfq::SfqSpec;
pub use disciplines::tbf::TbfSpec;
pub use disciplines::tree::kernel::{Addition, Object, selector};
pub use disciplines::tree::{Key, TreeSpec};
pub use disciplines::{
    Buffer, Class, Configuration, Confirmation, Discipline, Facts, KINDS, Kind, Payment, QdiscSpec,
    Streams,
};
pub use line::Line;
pub use peek::Peekable;
pub use periodic::Periodic;
pub use token_rate::Framing;
