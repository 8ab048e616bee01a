//! The contract of a medium that several stations share (half duplex: one transmission at a time).
//!
//! A station is a transmitter with a queue discipline in front of it. What the discipline lets go waits in the station's
//! [`Ring`], the driver's transmit ring, from which the medium takes what it sends: an
//! aggregate can be built only from what has left the queue discipline. The protocol:
//!
//! 1. Whoever puts the first frame into an empty ring tells the medium with [`SharedMedium::offered`].
//! 2. At [`SharedMedium::due`] somebody's turn has come, if nobody else was offered anything before:
//!    [`SharedMedium::transmit`] is called with the rings and reports what arrives and what is given up. Afterwards
//!    the rings are filled again, and each station that transmitted and still has frames is offered anew.
//!
//! A frame on the air has left the ring unless it has to be retransmitted. Randomness comes from one named stream per medium.

use dragstrip_qdisc::{Backlog, Item};
use dragstrip_units::Instant;
use std::collections::VecDeque;

/// A frame in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The packet.
    pub item: Item,
    /// Number of failed attempts; where a transmission is judged at its end, the one in progress counts.
    pub(crate) retries: u8,
    /// It has arrived, but waits in the receiver's reorder buffer for one before it.
    pub(crate) received: bool,
    /// Its bytes that have been sent already, where a medium cuts frames into pieces.
    pub(crate) sent_bytes: u32,
}

/// A station's transmit ring.
#[derive(Clone, Debug)]
pub struct Ring {
    pub(crate) frames: VecDeque<Frame>,
    limit: usize,
    bytes: u64,
}

impl Ring {
    /// An empty ring for `limit` frames.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { frames: VecDeque::new(), limit, bytes: 0 }
    }

    /// True when another frame fits.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.frames.len() < self.limit
    }

    /// True when nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Appends a frame.
    pub fn push(&mut self, item: Item) {
        self.bytes += u64::from(item.len);
        self.frames.push_back(Frame { item, retries: 0, received: false, sent_bytes: 0 });
    }

    /// True when the first frame has been begun, in vain or not yet to its end.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.frames.front().is_some_and(|frame| frame.retries > 0)
    }

    /// Returns the backlog.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.frames.len() as u32 }
    }

    /// Takes the first frame out.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let frame = self.frames.pop_front()?;
        self.bytes -= u64::from(frame.item.len);
        Some(frame.item)
    }
}

/// The stations' side of a transmission.
pub trait Air {
    /// Returns the ring from which `station` would send now.
    fn ring(&mut self, station: usize) -> &mut Ring;
    /// `item` has reached the other end at `at`; never decreasing for one station.
    fn delivered(&mut self, station: usize, item: Item, at: Instant);
    /// `station` has given `item` up.
    fn on_lost(&mut self, station: usize, item: Item);
}

/// A medium with several stations.
pub trait SharedMedium {
    /// `station`'s ring has something to send at `now`. A second call changes nothing.
    fn offered(&mut self, station: usize, now: Instant);

    /// Time at which the next transmission begins if nothing else is offered; never, if no station has a frame.
    fn due(&self) -> Instant;

    /// It is `due`: a station has its turn, or several collide. Those that transmitted are to be offered again if their
    /// ring holds anything.
    fn transmit<A: Air>(&mut self, now: Instant, air: &mut A);
}
