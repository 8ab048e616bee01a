//! Applications: their start, their steps and their end.

use super::World;
use crate::apps::{App, FlowKind, Phase};
use crate::observer::Observer;
use crate::packets::Packet;
use dragstrip_packet::{Body, Datagram, Ecn, TrafficClass};
use dragstrip_units::Instant;

impl<O: Observer> World<O> {
    /// An application's time has come: start, stop, or the next step.
    pub(super) fn on_app(&mut self, index: usize) {
        let (kind, app, stop, phase) = {
            let flow = &self.flows[index];
            (flow.kind, flow.app, flow.stop, flow.phase)
        };
        if self.now >= stop && phase != Phase::Stopped {
            self.stop_flow(index);
            return;
        }
        let next = match (kind, app) {
            (FlowKind::Udp { .. }, App::ConstantRate { .. }) if !self.assignment.sends(index) => {
                self.flows[index].phase = Phase::Busy;
                Instant::NEVER
            }
            (FlowKind::Udp { first_hop }, App::ConstantRate { rate, datagram }) => {
                self.send_datagram(index, first_hop, datagram);
                let flow = &mut self.flows[index];
                let (gap, carry) = rate.time_for_floor(u64::from(datagram), flow.carry);
                flow.carry = carry;
                self.now + gap
            }
            (FlowKind::Rtp { .. }, _) => self.step_rtp(index, phase),
            (FlowKind::Tcp { client, server }, app) => {
                if phase == Phase::Waiting {
                    self.open(server);
                    self.open(client);
                }
                self.step(index, client, app, phase)
            }
            (FlowKind::Quic { client, .. }, app) => {
                self.step_quic(index, client as usize, app, phase)
            }
            (
                FlowKind::Udp { .. },
                App::Bulk { .. }
                | App::OnOff { .. }
                | App::RequestResponse { .. }
                | App::Video { .. }
                | App::Rtp
                | App::Tunnel { .. },
            ) => Instant::NEVER,
        };
        self.set_app(index, next.min(stop));
    }

    /// The next step of a TCP application; when the one after that is due.
    fn step(&mut self, index: usize, client: u32, app: App, phase: Phase) -> Instant {
        let (next_phase, next) = match app {
            App::Bulk { bytes: Some(bytes) } => {
                self.write_until(client, bytes);
                (Phase::Busy, Instant::NEVER)
            }
            App::Bulk { bytes: None } => {
                self.write_endless(client);
                (Phase::Busy, Instant::NEVER)
            }
            App::OnOff { on, off } => {
                if phase == Phase::Busy {
                    self.sockets[client as usize].endpoint.stop_writing();
                    (Phase::Quiet, self.now + off)
                } else {
                    self.write_endless(client);
                    (Phase::Busy, self.now + on)
                }
            }
            App::RequestResponse { request, .. } | App::Video { request } => {
                if let Some(player) = &mut self.flows[index].player {
                    player.ask(self.now.as_nanos());
                }
                self.flows[index].rounds += 1;
                let total = self.flows[index].rounds * request;
                self.flows[index].phase = Phase::Busy;
                self.write_until(client, total);
                (Phase::Busy, Instant::NEVER)
            }
            App::ConstantRate { .. } | App::Rtp | App::Tunnel { .. } => {
                (Phase::Busy, Instant::NEVER)
            }
        };
        self.flows[index].phase = next_phase;
        next
    }

    fn send_datagram(&mut self, index: usize, first_hop: u32, datagram: u32) {
        let flow = &mut self.flows[index];
        flow.phase = Phase::Busy;
        flow.datagrams_sent += 1;
        let body = Body::Udp(Datagram { number: flow.datagrams_sent, len: datagram as u16 });
        let class = TrafficClass::new(flow.dscp, Ecn::NotEct);
        self.network.send(Packet::new(body, class), first_hop, self.now);
    }

    /// The flow's time is over: a TCP connection is reset, as the kernel engines' agent does.
    fn stop_flow(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.phase = Phase::Stopped;
        flow.ended.get_or_insert(self.now);
        if let FlowKind::Tcp { client, server } = flow.kind {
            for socket in [client, server].map(|socket| socket as usize) {
                if self.assignment.has_socket(socket) {
                    self.memory.close(&mut self.sockets[socket]);
                }
            }
        }
        if let FlowKind::Quic { client, server } = flow.kind {
            for socket in [client, server] {
                self.quic[socket as usize].endpoint.close();
            }
        }
        self.set_app(index, Instant::NEVER);
    }
}
