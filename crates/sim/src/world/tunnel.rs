//! IP over TCP: packets go into a flow's socket and on when the stream has arrived (`network/tunnel.rs` is the link).

use super::World;
use crate::apps::{App, FlowKind};
use crate::observer::Observer;

impl<O: Observer> World<O> {
    /// Something has arrived for an application that waits for it: at a tunnel, packets, or room to write others.
    pub(crate) fn after_arrival(&mut self, flow: usize, endpoint: usize, data: bool) {
        let (FlowKind::Tcp { server, .. }, App::Tunnel { there: forward, back }) =
            (self.flows[flow].kind, self.flows[flow].app)
        else {
            if data {
                self.after_data(flow, endpoint);
            }
            return;
        };
        let (arriving, leaving) =
            if endpoint == server as usize { (forward, back) } else { (back, forward) };
        if let Some(stage) = arriving {
            let arrived = self.sockets[endpoint].endpoint.bytes_in_order();
            self.network.leave_tunnel(stage as usize, arrived, self.now);
        }
        if let Some(stage) = leaving {
            self.feed_tunnel(stage as usize);
        }
    }

    /// Writes packets into a tunnel, one at a time, until its queue is empty or the socket takes no more.
    pub(crate) fn feed_tunnel(&mut self, stage: usize) {
        while let Some(tunnel) = self.network.tunnel(stage) {
            let (socket, position) = (tunnel.socket, tunnel.written);
            let endpoint = &self.sockets[socket as usize].endpoint;
            let open = endpoint.phase() == dragstrip_tcp::Phase::Established;
            if !open || endpoint.bytes_written() < position {
                return;
            }
            let Some(total) = self.network.enter_tunnel(stage, self.now) else { return };
            self.write_until(socket, total);
        }
    }
}
