//! Owners of packets, by the target that these go to.

use crate::apps::Flow;
use crate::network::Target;
use crate::observer::Owner;
use crate::sockets::{QuicSocket, Socket};

/// Owner of the packets for this target; none of packets from outside.
pub(crate) fn owner(
    target: Target,
    flows: &[Flow],
    (sockets, quic_sockets): (&[Socket], &[QuicSocket]),
) -> Option<Owner> {
    Some(match target {
        Target::Outside => return None,
        Target::Quic(endpoint) => {
            let QuicSocket { flow, is_client, .. } = quic_sockets[endpoint as usize];
            Owner::Flow { flow, back: is_client }
        }
        Target::Endpoint(endpoint) | Target::Agent(endpoint) => {
            let flow = sockets[endpoint as usize].flow;
            Owner::Flow { flow, back: flows[flow as usize].socket(false) == endpoint }
        }
        Target::Datagrams(flow) | Target::Rtp(flow) => Owner::Flow { flow, back: false },
        Target::Reports(flow) => Owner::Flow { flow, back: true },
        Target::Answerer(probe) => Owner::Probe { probe, back: false },
        Target::Asker(probe) => Owner::Probe { probe, back: true },
    })
}
