//! Flows of QUIC: datagrams between a stack's endpoints and the network, and their applications.

use super::World;
use crate::apps::{App, FlowKind, Phase};
use crate::calendar::Source;
use crate::network::Network;
use crate::observer::Observer;
use crate::packets::Packet;
use crate::recorder;
use crate::sockets::QuicSocket;
use dragstrip_packet::{Dscp, Ecn, QuicDatagram, TrafficClass};
use dragstrip_quic::{Endpoint, Outbox};
use dragstrip_recording::RttRow;
use dragstrip_units::Instant;

/// The way out of one host for one connection.
struct Out<'a, O> {
    network: &'a mut Network<O>,
    first_hop: u32,
    dscp: Dscp,
    now: Instant,
}

impl<O: Observer> Outbox for Out<'_, O> {
    fn send(&mut self, payload: &[u8]) {
        let body = self.network.packets.quic(payload);
        // The stacks set ECT(0) without a switch: their hosts do not use ECN.
        let class = TrafficClass::new(self.dscp, Ecn::NotEct);
        self.network.send(Packet::new(body, class), self.first_hop, self.now);
    }
}

impl<O: Observer> World<O> {
    /// Lets an endpoint act, and looks after what has come of it.
    fn drive_quic(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Endpoint, &mut dyn Outbox, Instant),
    ) {
        let now = self.now;
        let QuicSocket { first_hop, dscp, endpoint, .. } = &mut self.quic[index];
        let mut out = Out { network: &mut self.network, first_hop: *first_hop, dscp: *dscp, now };
        act(endpoint, &mut out, now);
        let deadline = endpoint.deadline();
        let loss = endpoint.take_loss();
        let socket = &mut self.quic[index];
        if deadline != socket.scheduled {
            socket.scheduled = deadline;
            self.network.calendar.set(self.layout.quic + index as Source, deadline);
        }
        if let Some(reason) = loss {
            let flow = socket.flow as usize;
            self.lose_quic(flow, &reason);
        }
    }

    /// A connection is lost: its flow ends, and the last sample says why.
    fn lose_quic(&mut self, flow_index: usize, reason: &str) {
        let flow = &mut self.flows[flow_index];
        let FlowKind::Quic { client, .. } = flow.kind else { return };
        if flow.ended.is_some() {
            return;
        }
        flow.ended = Some(self.now);
        flow.phase = Phase::Stopped;
        let sender = self.quic[client as usize].endpoint.snapshot();
        let state = format!("lost: {reason}");
        recorder::quic_sample(&mut self.recorder, self.now, flow_index as u32, &sender, &state);
        self.set_app(flow_index, Instant::NEVER);
    }

    #[inline(never)]
    pub(super) fn deliver_quic(&mut self, index: usize, datagram: QuicDatagram, frame: u32) {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        payload.extend_from_slice(self.network.packets.payload_of_removed(datagram));
        let before = self.quic[index].endpoint.bytes_read();
        self.drive_quic(index, |endpoint, out, now| endpoint.on_datagram(&payload, now, out));
        self.payload = payload;
        let socket = &mut self.quic[index];
        let flow = socket.flow as usize;
        if socket.is_client {
            self.after_quic_ack(flow, index);
            return;
        }
        let read = socket.endpoint.bytes_read();
        let arrivals = &mut self.arrivals[flow];
        arrivals.wire_bytes += u64::from(frame);
        arrivals.new_bytes += read - before;
        arrivals.total_new_bytes += read - before;
        let flow = &mut self.flows[flow];
        if let App::Bulk { bytes: Some(bytes) } = flow.app
            && read >= bytes
        {
            flow.ended.get_or_insert(self.now);
        }
    }

    fn after_quic_ack(&mut self, flow: usize, index: usize) {
        if self.record_rtts
            && let Some(rtt_ns) = self.quic[index].endpoint.take_rtt_ns()
        {
            self.recorder.rtts.stage(RttRow {
                time_ns: self.now.as_nanos() as i64,
                flow: flow as u32,
                rtt_ns: rtt_ns as i64,
            });
        }
        if self.every_ack && self.flows[flow].is_running() {
            self.sample_quic(flow, index);
        }
    }

    pub(super) fn sample_quic(&mut self, flow: usize, index: usize) {
        let sender = self.quic[index].endpoint.snapshot();
        let state = match sender.ssthresh_bytes {
            Some(threshold) if sender.cwnd_bytes >= threshold => "avoidance",
            Some(_) | None => "slow_start",
        };
        recorder::quic_sample(&mut self.recorder, self.now, flow as u32, &sender, state);
    }

    pub(super) fn on_quic_timer(&mut self, index: usize) {
        self.quic[index].scheduled = Instant::NEVER;
        self.network.calendar.set(self.layout.quic + index as Source, Instant::NEVER);
        self.drive_quic(index, |endpoint, out, now| {
            if endpoint.deadline() <= now {
                endpoint.on_deadline(now, out);
            }
        });
    }

    /// The next step of an application over QUIC; when the one after that is due.
    pub(super) fn step_quic(
        &mut self,
        index: usize,
        client: usize,
        app: App,
        phase: Phase,
    ) -> Instant {
        if phase == Phase::Waiting {
            self.drive_quic(client, |endpoint, out, now| endpoint.open(now, out));
        }
        let write = |world: &mut Self, total: u64| {
            world.drive_quic(client, |endpoint, out, now| endpoint.write_until(total, now, out));
        };
        let (next_phase, next) = match app {
            App::Bulk { bytes } => {
                write(self, bytes.unwrap_or(u64::MAX));
                (Phase::Busy, Instant::NEVER)
            }
            App::OnOff { off, .. } if phase == Phase::Busy => {
                self.quic[client].endpoint.stop_writing();
                (Phase::Quiet, self.now + off)
            }
            App::OnOff { on, .. } => {
                write(self, u64::MAX);
                (Phase::Busy, self.now + on)
            }
            App::RequestResponse { .. }
            | App::Video { .. }
            | App::ConstantRate { .. }
            | App::Rtp
            | App::Tunnel { .. } => (Phase::Busy, Instant::NEVER),
        };
        self.flows[index].phase = next_phase;
        next
    }
}
