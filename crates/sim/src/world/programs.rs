//! Algorithms that are texts: what may go wrong in them while they run.

use super::World;
use crate::observer::Observer;
use crate::sockets::Socket;
use dragstrip_cc::program::Fault;

impl<O: Observer> World<O> {
    /// The first fault of a flow's program so far: the flow, and the fault.
    pub fn fault(&self) -> Option<(u32, &Fault)> {
        let programs: &[Socket] = if self.has_programs { &self.sockets } else { &[] };
        let faults =
            programs.iter().filter_map(|program| Some((program.flow, program.endpoint.fault()?)));
        faults.min_by_key(|(flow, fault)| (fault.now, *flow))
    }
}
