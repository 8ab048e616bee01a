//! Analysis of TCP flows in captures: bytes, round trips, retransmissions and their causes, limits of the sender.
//!
//! Scope: following connections through one capture or several ([`Session`]), in memory bounded by the number of
//! flows. Out of scope: the file formats (`dragstrip-capture`), the files themselves (the caller feeds their bytes).

mod board;
mod connection;
mod copies;
mod ends;
mod envelope;
mod feedback;
mod first_packet;
mod full;
mod half;
mod intervals;
mod joint;
mod labels;
mod limits;
mod non_tcp;
mod opening;
mod order;
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

pub use ends::{End, Ends, Trip, Way};
pub use joint::{BetweenDocument, Rtt, Spread, WayDocument};
pub use labels::{Event, Others};
pub use opening::FastOpen;
pub use rest::{Attempts, OtherRow, QuicRow, SpinRtt};
pub use result::{FileDocument, FlowDocument, Inspected, Limited};
pub use series::{FlowSeries, SERIES_MAX};
pub use session::{FILES_MAX, Session};
pub use verdicts::{SegmentVerdict, Tally};
