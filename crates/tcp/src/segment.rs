//! Output of segments from an endpoint.

pub use dragstrip_packet::{Ecn, EcnBytes, Flags, SackBlock, Segment, SynOptions, Timestamps};
use dragstrip_units::Instant;

/// Destination of an endpoint's segments.
pub trait Outbox {
    /// True if what an ACK releases waits for an agent's action ([`Endpoint::act`](crate::Endpoint::act)). A question at run time:
    /// a type of its own would be compiled twice, and what has one caller is inlined.
    #[inline]
    fn holds(&self) -> bool {
        false
    }

    /// `segment` leaves the host now, with this codepoint in its IP header. The answer is when it will have left the host's own
    /// interface, for TCP Small Queues; `now` when nothing holds it up; `None`: the host's own queue was full.
    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant>;

    /// The same of a burst of `segments` that stays one packet on its way: `segment` holds all of their payload.
    fn send_whole(
        &mut self,
        segment: &Segment,
        segments: u32,
        ecn: Ecn,
        now: Instant,
    ) -> Option<Instant> {
        let _ = segments;
        self.send(segment, ecn, now)
    }
}
