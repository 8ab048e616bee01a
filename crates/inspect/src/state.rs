//! State of files and flows while captures are read.

use crate::connection::Connection;
use crate::first_packet::Lone;
use crate::non_tcp::OtherPackets;
use crate::order::Order;
use crate::pair::Pair;
use dragstrip_capture::read::{Counts, Fault, Other, Packet, Reader, Sink};

/// A capture while it is read.
#[derive(Default)]
pub struct File {
    pub reader: Reader,
    pub order: Order,
    /// Traffic other than TCP.
    pub other: OtherPackets,
    /// The first packet's time, from which its clock is counted.
    pub first_ns: Option<i64>,
    pub last_ns: i64,
    pub duplicates: u64,
    pub ended: bool,
    /// Why it could not be read to its end.
    pub fault: Option<Fault>,
}

impl File {
    /// Takes the file's next bytes.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let Self { reader, order, other, .. } = self;
        reader.feed_all(piece, &mut Inlet { order, other })
    }

    pub fn counts(&self) -> &Counts {
        self.reader.counts()
    }
}

/// Destination of a file's packets.
struct Inlet<'a> {
    order: &'a mut Order,
    other: &'a mut OtherPackets,
}

impl Sink for Inlet<'_> {
    fn segment(&mut self, packet: Packet) {
        self.order.push(packet);
    }

    fn non_tcp(&mut self, other: &Other) {
        if !self.order.is_passed(other.time_ns) {
            self.other.take(other);
        }
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
    /// The first file paired with each other one.
    pub pairs: Vec<Pair>,
}
