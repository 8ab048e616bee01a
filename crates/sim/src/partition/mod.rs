//! Partition of a large network: the cuts, the assignment to parts, and the merge of the parts' tables into those of
//! one run.

mod assignment;
mod cuts;
mod tables;

pub(crate) use assignment::Assignment;
pub(crate) use cuts::{CutLinks, Partition};
pub(crate) use tables::united;

use crate::packets::Packet;
use dragstrip_units::Instant;

/// A smaller scenario is not divided: its parts would meet more than work.
pub(crate) const FLOWS_MIN: usize = 1000;

/// A packet that has been sent over a cut link.
#[derive(Debug)]
pub(crate) struct Crossing {
    pub lane: u32,
    pub at: Instant,
    pub hop: u32,
    pub packet: Packet,
}
