//! Additional data for a recording: round trips and states over time, kept only if a recording is requested.

use crate::connection::Connection;
use crate::half::Sample;

/// Time between two states of a flow.
pub const INTERVAL_NS: i64 = 100_000_000;
/// Rows of one kind at most: some hundred megabytes.
pub const ROWS_MAX: usize = 10_000_000;

/// A direction of a connection in one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The connection's number.
    pub number: u32,
    /// The direction.
    pub side: u8,
    /// The capture.
    pub file: u8,
}

/// A round trip.
#[derive(Clone, Copy, Debug)]
pub struct Trip {
    /// Capture point.
    pub place: Place,
    /// End time.
    pub at: i64,
    /// Duration in nanoseconds.
    pub ns: i64,
}

/// A direction's state.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Capture point.
    pub place: Place,
    /// Time.
    pub at: i64,
    /// Bytes sent, neither acknowledged nor SACKed.
    pub in_flight: i64,
    /// Bytes acknowledged.
    pub acked: i64,
    /// Distinct bytes seen.
    pub bytes: u64,
    /// Retransmissions so far.
    pub again: u64,
}

/// All rows, in the order of time.
#[derive(Debug, Default)]
pub struct Rows {
    /// Round trips.
    pub trips: Vec<Trip>,
    /// States.
    pub states: Vec<State>,
    /// Rows that found no room.
    pub left_out: u64,
}

impl Rows {
    /// After a packet of the direction `side`: a sample of the other direction's round trip, and the states of both.
    pub fn note(
        &mut self,
        number: usize,
        file: usize,
        side: usize,
        connection: &mut Connection,
        at: i64,
        sample: Option<Sample>,
    ) {
        let place =
            |side: usize| Place { number: number as u32, side: side as u8, file: file as u8 };
        if let Some(sample) = sample {
            if self.trips.len() < ROWS_MAX {
                self.trips.push(Trip { place: place(1 - side), at, ns: sample.ns });
            } else {
                self.left_out += 1;
            }
        }
        for (side, direction) in connection.sides.iter_mut().enumerate() {
            if direction.half.segments == 0 || at < direction.state_due_ns {
                continue;
            }
            direction.state_due_ns = at - at.rem_euclid(INTERVAL_NS) + INTERVAL_NS;
            if self.states.len() == ROWS_MAX {
                self.left_out += 1;
                continue;
            }
            let half = &direction.half;
            self.states.push(State {
                place: place(side),
                at,
                in_flight: half.in_flight(),
                acked: half.acked,
                bytes: half.bytes,
                again: half.again_total,
            });
        }
    }
}
