//! What is kept of files and flows while captures are read.

use crate::connection::Connection;
use crate::lone::Lone;
use crate::order::Order;
use crate::pair::Pair;
use dragstrip_capture::read::{Counts, Fault, Reader};

/// A capture while it is read.
#[derive(Default)]
pub struct File {
    pub reader: Reader,
    pub order: Order,
    /// The first packet's time, from which its clock is counted.
    pub first_ns: Option<i64>,
    pub last_ns: i64,
    pub duplicates: u64,
    pub ended: bool,
    /// Why it could not be read to its end.
    pub fault: Option<Fault>,
}

impl File {
    pub fn counts(&self) -> &Counts {
        self.reader.counts()
    }
}

/// A flow: its first packet, or what is followed of it in each capture.
#[derive(Debug)]
pub enum Flow {
    Lone(Lone),
    Followed(Box<Followed>),
    /// There were too many.
    Passed,
}

/// A connection in the captures that show it.
#[derive(Debug, Default)]
pub struct Followed {
    /// File and what it shows.
    pub points: Vec<(usize, Connection)>,
    /// The first file beside each other one.
    pub pairs: Vec<Pair>,
}
