//! What captures say about TCP flows: bytes, round trips, what was sent again and why, what limited the sender.
//!
//! What lives here: following connections through one capture or several ([`Session`]), in memory bounded by the number of flows. What must not: the
//! forms of files (`dragstrip-capture`), files themselves (whoever calls feeds their bytes).

mod between;
mod board;
mod connection;
mod copies;
mod ends;
mod envelope;
mod feedback;
mod full;
mod half;
mod intervals;
mod labels;
mod limits;
mod lone;
mod opening;
mod order;
mod other;
mod pair;
mod quantiles;
mod quic;
mod recording;
mod rest;
mod result;
mod rows;
mod series;
mod session;
mod state;
mod table;
mod tcptrace;
mod text;
mod twins;
mod verdicts;
mod wireshark;

pub use between::{BetweenSaid, Rtt, Spread, WaySaid};
pub use ends::{End, Ends, Trip, Way};
pub use labels::{Event, Others};
pub use opening::FastOpen;
pub use rest::{Attempts, OtherRow, QuicRow, SpinRtt};
pub use result::{FileSaid, FlowSaid, Inspected, Limited};
pub use series::{FlowSeries, SERIES_MAX};
pub use session::{FILES_MAX, Session};
pub use verdicts::{Said, Tally};
