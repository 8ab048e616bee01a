//! Videos over RTP: their packets there, and reports back.

use super::World;
use crate::apps::{FlowKind, Phase};
use crate::network::Network;
use crate::observer::Observer;
use crate::packets::Packet;
use dragstrip_packet::{Body, Datagram, Ecn, TrafficClass};
use dragstrip_recording::{FrameRow, Frames};
use dragstrip_rtp::{Frame, Outlet, Session};
use dragstrip_scenario::RtpEcn;
use dragstrip_units::Instant;

/// The network and the recording, as a flow's session sees them.
struct Exit<'a, O> {
    network: &'a mut Network<O>,
    frames: &'a mut Frames,
    flow: u32,
    ways: (u32, u32),
    class: TrafficClass,
    sent: &'a mut u64,
    now: Instant,
}

impl<O: Observer> Outlet for Exit<'_, O> {
    fn frame(&mut self, frame: &Frame) -> usize {
        let Frame {
            captured_ns,
            bytes,
            packets,
            target_bps,
            window_bytes,
            smoothed_rtt_ns,
            queue_delay_ns,
        } = *frame;
        self.frames.push(FrameRow {
            time_ns: captured_ns as i64,
            flow: self.flow,
            target_bps: target_bps as i64,
            bytes: i64::from(bytes),
            packets: i64::from(packets),
            sent: 0,
            arrived: 0,
            arrived_ns: None,
            window_bytes: window_bytes as i64,
            srtt_ns: smoothed_rtt_ns.map(|ns| ns as i64),
            queue_delay_ns: queue_delay_ns as i64,
        })
    }

    fn packet(&mut self, number: u64, bytes: u16, row: usize) {
        *self.sent += 1;
        let sent = self.frames.sent.values()[row];
        self.frames.sent.set(row, sent + 1);
        let body = Body::Udp(Datagram { number, len: bytes });
        self.network.send(Packet::new(body, self.class), self.ways.0, self.now);
    }

    fn report(&mut self, number: u64, bytes: u16) {
        let class = self.class.with_ecn(Ecn::NotEct);
        let body = Body::Udp(Datagram { number, len: bytes });
        self.network.send(Packet::new(body, class), self.ways.1, self.now);
    }
}

const fn codepoint(ecn: RtpEcn) -> Ecn {
    match ecn {
        RtpEcn::None => Ecn::NotEct,
        RtpEcn::Classic => Ecn::Ect0,
        RtpEcn::L4s => Ecn::Ect1,
    }
}

impl<O: Observer> World<O> {
    /// A step of a video's session is due; when the next one is.
    pub(super) fn step_rtp(&mut self, index: usize, phase: Phase) -> Instant {
        let now_ns = self.now.as_nanos();
        if phase == Phase::Waiting {
            self.flows[index].phase = Phase::Busy;
            if let Some(session) = &mut self.flows[index].session {
                session.begin(now_ns);
            }
        }
        self.drive(index, |session, out| session.on_time(now_ns, out));
        self.next_rtp(index)
    }

    /// A packet of a video has come.
    #[inline(never)]
    pub(super) fn deliver_rtp(&mut self, index: usize, datagram: Datagram, ecn: Ecn, frame: u32) {
        let arrivals = &mut self.arrivals[index];
        arrivals.wire_bytes += u64::from(frame);
        let now_ns = self.now.as_nanos();
        let is_marked = ecn == Ecn::Ce;
        let row = self
            .drive(index, |session, out| session.on_packet(now_ns, datagram.number, is_marked, out))
            .flatten();
        let Some(row) = row else { return };
        self.flows[index].datagrams_received += 1;
        let arrivals = &mut self.arrivals[index];
        arrivals.new_bytes += u64::from(datagram.len);
        arrivals.total_new_bytes += u64::from(datagram.len);
        let frames = &mut self.recorder.frames;
        let arrived = frames.arrived.values()[row] + 1;
        frames.arrived.set(row, arrived);
        if arrived == frames.packets.values()[row] {
            frames.arrived_ns.set(row, Some(now_ns as i64));
        }
        self.reschedule_rtp(index);
    }

    /// A report has come back.
    #[inline(never)]
    pub(super) fn deliver_report(&mut self, index: usize, number: u64) {
        if self.flows[index].phase == Phase::Stopped {
            return;
        }
        let now_ns = self.now.as_nanos();
        self.drive(index, |session, out| session.on_report(now_ns, number, out));
        self.reschedule_rtp(index);
    }

    /// Calls a flow's session with its way out; none of a flow without one.
    fn drive<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Session, &mut Exit<'_, O>) -> T,
    ) -> Option<T> {
        let flow = &mut self.flows[index];
        let (FlowKind::Rtp { there, back }, Some(session)) = (flow.kind, &mut flow.session) else {
            return None;
        };
        let mut out = Exit {
            network: &mut self.network,
            frames: &mut self.recorder.frames,
            flow: index as u32,
            ways: (there, back),
            class: TrafficClass::new(flow.dscp, codepoint(session.ecn())),
            sent: &mut flow.datagrams_sent,
            now: self.now,
        };
        Some(call(session, &mut out))
    }

    /// Time of a session's next step, no earlier than now.
    fn next_rtp(&self, index: usize) -> Instant {
        let session = self.flows[index].session.as_ref();
        let next = session.map_or(Instant::NEVER, |session| {
            Instant::from_nanos(session.deadline_ns()).min(Instant::NEVER)
        });
        next.max(self.now)
    }

    fn reschedule_rtp(&mut self, index: usize) {
        let flow = &self.flows[index];
        if flow.phase != Phase::Stopped {
            let next = self.next_rtp(index).min(flow.stop);
            self.set_app(index, next);
        }
    }
}
