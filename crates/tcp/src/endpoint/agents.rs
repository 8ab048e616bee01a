//! An endpoint whose data an agent governs.

use super::{Endpoint, Phase};
use crate::segment::Outbox;
use crate::sender::Io;
use dragstrip_cc::Agent;
use dragstrip_units::Instant;

impl Endpoint {
    /// The agent that governs the data, if the algorithm is one.
    #[must_use]
    pub fn agent(&self) -> Option<&Agent> {
        self.sender.cc().agent()
    }

    /// Ends the agent's step now. Returns its policy's action; None: it comes from outside.
    pub fn end_step(&mut self, now: Instant) -> Option<f64> {
        self.sender.end_step(now)
    }

    /// True when what an ACK has released waits for the agent's action.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.sender.is_held()
    }

    /// Applies the agent's action, none if it leaves everything as it is. What may be sent by it is sent at once; what a held ACK
    /// has released goes then in any case ([`Outbox::holds`]).
    pub fn act<O: Outbox>(&mut self, action: Option<f64>, now: Instant, out: &mut O) {
        if self.phase == Phase::Established {
            self.sender.act(action, now, &mut Io { receiver: &mut self.receiver, out });
        }
    }
}
