//! A network path for the tests of a transport.
//!
//! A test of a transport often has a network of its own: a delay, a loss, a queue. A [`Strip`] is one with the queue disciplines,
//! media and links of Dragstrip, and with flows of TCP as Linux sends them in the same queue. It has no clock, thread, socket or
//! randomness of its own: time is an argument, and the same calls with the same seed give the same answers.
//!
//! ```
//! use dragstrip_strip::{Datagram, Ecn, End, Strip};
//!
//! // The options of `dragstrip compare`, and two rivals in the same queue.
//! let options = [("rate", "10mbit"), ("rtt", "40ms"), ("queue", "fq_codel")];
//! let mut strip = Strip::new(&options, &["cubic", "bbr"], 1)?;
//! strip.send(End::Server, Datagram { payload: b"hello".to_vec(), ecn: Ecn::NotEct });
//! while let Some(due) = strip.next_event() {
//!     strip.advance(due);
//!     if let Some(arrival) = strip.receive() {
//!         assert_eq!((arrival.to, arrival.datagram.payload.as_slice()), (End::Client, &b"hello"[..]));
//!         assert_eq!(arrival.at.as_millis(), 40);
//!         break;
//!     }
//! }
//! # Ok::<(), dragstrip_strip::Error>(())
//! ```
//!
//! The loop around a transport: hand its datagrams to [`Strip::send`], take the earlier of [`Strip::next_event`] and the transport's
//! own timer, [`advance`](Strip::advance) to it, give the transport what [`receive`](Strip::receive) returns.
//!
//! The client's data passes the bottleneck. As in every race of Dragstrip the round-trip time lies on the way back, from the
//! server to the client: only the sum can be told apart by two ends without a common clock.
//!
//! Scope: the path between two ends that the caller has. Out of scope: what the ends do, files, reports; those are Dragstrip's.

mod datagram;
mod ledger;
mod path;
mod strip;

pub use datagram::{Arrival, Datagram, End, PAYLOAD_MAX, Totals};
pub use dragstrip_packet::Ecn;
pub use path::Error;
pub use strip::{Rival, Strip};
