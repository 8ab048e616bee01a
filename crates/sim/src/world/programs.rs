//! Algorithms that are texts: what may go wrong in them while they run.

use super::World;
use crate::observer::Observer;
use dragstrip_cc::program::Fault;

impl<O: Observer> World<O> {
    /// The first fault of a flow's program so far: the flow, and the fault.
    pub fn fault(&self) -> Option<(u32, Fault)> {
        if !self.has_programs {
            return None;
        }
        let of_tcp = self.sockets.iter().filter_map(|end| Some((end.flow, *end.endpoint.fault()?)));
        let of_quic = self.quic.iter().filter_map(|end| Some((end.flow, end.endpoint.fault()?)));
        of_tcp.chain(of_quic).min_by_key(|(flow, fault)| (fault.now, *flow))
    }
}
