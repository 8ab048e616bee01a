//! Owners of packets, by the target that these go to.

use crate::apps::Flow;
use crate::network::Target;
use crate::observer::Owner;
use crate::sockets::Socket;

/// Owner of the packets for this target; none of packets from outside.
pub(crate) fn owner(target: Target, flows: &[Flow], sockets: &[Socket]) -> Option<Owner> {
    Some(match target {
        Target::Outside => return None,
        Target::Endpoint(endpoint) => {
            let flow = sockets[endpoint as usize].flow;
            Owner::Flow { flow, back: flows[flow as usize].socket(false) == endpoint }
        }
        Target::Datagrams(flow) => Owner::Flow { flow, back: false },
        Target::Answerer(probe) => Owner::Probe { probe, back: false },
        Target::Asker(probe) => Owner::Probe { probe, back: true },
    })
}
