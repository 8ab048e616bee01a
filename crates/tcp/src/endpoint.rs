//! One end of a connection: handshake, then a sender and a receiver side by side.

mod agents;
mod reading;

use crate::ecn::{self, Agreed, Carries, Request};
use crate::host::HostSettings;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::receiver::{PACKETS_BEGIN, Received, Receiver};
use crate::segment::{Ecn, EcnBytes, Flags, Outbox, Segment, SynOptions, Timestamps};
use crate::sender::{Io, Sender, Supply};
use crate::ticks::micros;
use dragstrip_cc::{Algorithm, CongestionControl, EcnMode};
use dragstrip_units::Instant;
use std::mem::offset_of;
use std::sync::Arc;

/// Side that opens the connection, or the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN.
    Client,
    /// Waits for it.
    Server,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing sent yet.
    Closed,
    /// SYN sent or received, not yet confirmed.
    Handshake,
    /// Open.
    Established,
    /// Reset: nothing is sent and nothing is taken any more.
    Reset,
}

/// One end of a TCP connection.
#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see `sockets.rs` in the simulator
pub struct Endpoint {
    phase: Phase,
    role: Role,
    ecn: Agreed,
    /// Codepoint with which the peer's SYN or SYN-ACK came.
    peer_syn: Ecn,
    /// Retransmissions of the SYN or SYN-ACK.
    syn_retransmits: u32,
    sender: Sender,
    /// Times of the SYN's or SYN-ACK's first transmission, and of its next one.
    opened_at: Instant,
    syn_deadline: Instant,
    receiver: Receiver,
    options: Options,
}

impl Endpoint {
    /// Bytes that lie in front of an endpoint in a cache line, where many lie in a row (sockets.rs): sender and receiver then begin
    /// where the fewest lines hold what is used.
    pub const BYTES_BEFORE: usize = 24;
}

/// On 64 bits, as the lines are laid out for; a page has 32.
const _: () = assert!(
    cfg!(target_pointer_width = "32")
        || (Endpoint::BYTES_BEFORE + offset_of!(Endpoint, sender)) % 64 == 32
);
const _: () = assert!(
    cfg!(target_pointer_width = "32")
        || (Endpoint::BYTES_BEFORE + offset_of!(Endpoint, receiver)).is_multiple_of(64)
);

impl Endpoint {
    /// An endpoint whose data, if it sends any, is governed by `cc`.
    #[must_use]
    pub fn new(role: Role, settings: &Arc<HostSettings>, cc: Algorithm) -> Self {
        Self {
            role,
            phase: Phase::Closed,
            sender: Sender::new(settings, cc),
            receiver: Receiver::new(settings),
            options: Options::of(settings),
            ecn: Agreed::None,
            peer_syn: Ecn::NotEct,
            opened_at: Instant::ZERO,
            syn_retransmits: 0,
            syn_deadline: Instant::NEVER,
        }
    }

    /// State of the connection.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Begins the handshake (client) or waits for it (server).
    pub fn open<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        if self.role == Role::Client {
            self.opened_at = now;
            self.phase = Phase::Handshake;
            self.send_syn(now, out);
        }
    }

    /// Loads the host's metrics of this connection's peer (`tcp_init_metrics`), before it is opened.
    pub fn recall(&mut self, metrics: Metrics) {
        self.sender.recall(metrics);
    }

    /// Stores the host's metrics of the peer (`tcp_update_metrics`): `metrics` is the previous entry.
    pub fn remember(&self, metrics: &mut Metrics) {
        if self.phase == Phase::Established {
            self.sender.remember(metrics);
        }
    }

    /// Returns the metrics that the host had of every peer before the run.
    #[must_use]
    pub fn history(&self) -> Metrics {
        self.sender.settings().history
    }

    /// True when this host caches metrics.
    #[must_use]
    pub fn keeps_metrics(&self) -> bool {
        self.sender.settings().metrics_cache
    }

    /// Ends the connection at once: neither side sends or takes anything any more.
    pub fn reset(&mut self) {
        self.phase = Phase::Reset;
        self.syn_deadline = Instant::NEVER;
    }

    /// Lets the application write without end.
    pub fn write_endless<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        self.supply(Supply::Endless, now, out);
    }

    /// The application's stream ends, for now, at byte `total`.
    pub fn write_until<O: Outbox>(&mut self, total: u64, now: Instant, out: &mut O) {
        self.supply(Supply::Until(total), now, out);
    }

    fn supply<O: Outbox>(&mut self, supply: Supply, now: Instant, out: &mut O) {
        self.sender.supply(supply);
        if self.phase == Phase::Established {
            self.sender.push(now, &mut Io { receiver: &mut self.receiver, out });
        }
    }

    /// Bytes written to the socket so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sender.bytes_written()
    }

    /// Stops writing: what the socket holds is still sent.
    pub fn stop_writing(&mut self) {
        let bytes_written = self.sender.bytes_written();
        self.sender.supply(Supply::Until(bytes_written));
    }

    /// From now on the application writes so many bytes at a time.
    pub fn write_by(&mut self, bytes: u64) {
        self.sender.write_by(bytes);
    }

    /// The application reads at most `bytes` of what has arrived in order, and from now on nothing by itself.
    pub fn read<O: Outbox>(&mut self, bytes: u64, now: Instant, out: &mut O) {
        self.receiver.stop_reading();
        if self.receiver.read(bytes, now) {
            self.acknowledge(now, out);
        }
    }

    /// The application reads whatever has arrived, and from now on at once, as it does from the beginning.
    pub fn read_at_once<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        if self.receiver.read(u64::MAX, now) {
            self.acknowledge(now, out);
        }
        self.receiver.read_at_once();
    }

    /// Everything written has been acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.sender.is_drained()
    }

    /// Bytes received in order so far.
    #[must_use]
    pub fn bytes_in_order(&self) -> u64 {
        self.receiver.rcv_nxt()
    }

    /// Returns the time of the next call of [`Self::on_deadline`].
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Established => self.sender.deadline().min(self.receiver.deadline()),
            Phase::Handshake => self.syn_deadline,
            Phase::Closed | Phase::Reset => Instant::NEVER,
        }
    }

    /// Something is due.
    pub fn on_deadline<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        match self.phase {
            Phase::Handshake if self.syn_deadline <= now => {
                self.syn_retransmits += 1;
                self.send_syn(now, out);
            }
            Phase::Established => {
                if self.receiver.deadline() <= now
                    && self.receiver.on_deadline(now, self.sender.rto_ticks())
                {
                    self.acknowledge(now, out);
                }
                if self.sender.deadline() <= now {
                    self.sender.on_deadline(now, &mut Io { receiver: &mut self.receiver, out });
                }
            }
            Phase::Handshake | Phase::Closed | Phase::Reset => {}
        }
    }

    /// A segment has arrived with this codepoint in its IP header; the answer is how many bytes of it are new to this host.
    #[inline]
    pub fn on_segment<O: Outbox>(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        out: &mut O,
    ) -> u64 {
        let open = self.phase == Phase::Established && !segment.flags.has(Flags::SYN);
        if open && (self.options.sack || !segment.has_sack()) {
            return self.on_established(segment, ecn, now, out);
        }
        self.on_unusual(segment, ecn, now, out)
    }

    /// The same of one that belongs to the handshake, or has SACK blocks that were not agreed on.
    #[inline(never)]
    fn on_unusual<O: Outbox>(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        out: &mut O,
    ) -> u64 {
        if segment.has_sack() && !self.options.sack {
            // Blocks that were not agreed on say nothing (tcp_parse_options: sack_ok).
            let mut bare = *segment;
            bare.set_sack(&[]);
            return self.on_segment(&bare, ecn, now, out);
        }
        match (self.phase, segment.flags.has(Flags::SYN)) {
            (Phase::Closed | Phase::Handshake, true) => self.on_syn(segment, ecn, now, out),
            (Phase::Handshake, false) if self.role == Role::Server => {
                let rtt = self.handshake_rtt(segment, now);
                self.establish(now, segment, rtt);
                return self.on_last_of_handshake(segment, ecn, now, out);
            }
            // A SYN again: our answer to it was lost.
            (Phase::Established, true) if self.role == Role::Client => self.acknowledge(now, out),
            (Phase::Established | Phase::Closed | Phase::Handshake | Phase::Reset, _) => {}
        }
        0
    }

    /// Its flags are no counter yet (RFC 9768 §3.2.2.1).
    fn on_last_of_handshake<O: Outbox>(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        out: &mut O,
    ) -> u64 {
        if !self.ecn.by_counters() {
            return self.on_established(segment, ecn, now, out);
        }
        let code = segment.flags.ace();
        if segment.len == 0 {
            let sent_codepoint = ecn::handshake_codepoint(self.ecn_mode());
            if !ecn::is_credible(sent_codepoint, code) {
                self.sender.distrust_path();
            } else if code == ecn::handshake_code(Ecn::Ce) {
                self.sender.note_handshake_mark();
            }
        }
        let delivered_ce = self.sender.view().delivered_ce as u8;
        let mut counter = *segment;
        counter.flags = counter.flags.with_ace(delivered_ce + PACKETS_BEGIN);
        self.on_established(&counter, ecn, now, out)
    }

    #[inline(never)]
    fn on_established<O: Outbox>(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        out: &mut O,
    ) -> u64 {
        if segment.len > 0 {
            let received = if self.receiver.is_next(segment) {
                self.sender.set_now(now);
                self.receiver.note_codepoint(ecn, segment.len);
                let (srtt_us_x8, rto_ticks) = self.sender.estimates();
                self.receiver.take_next(segment, now, srtt_us_x8, rto_ticks)
            } else {
                match self.on_any_data(segment, ecn, now, out) {
                    Some(received) => received,
                    None => return 0,
                }
            };
            if self.sender.has_outstanding() || self.ecn.by_counters() {
                self.sender.on_ack(segment, &mut Io { receiver: &mut self.receiver, out });
            }
            if received.acknowledge && self.receiver.owes_ack() {
                self.acknowledge(now, out);
            }
            return received.new_bytes;
        }
        if !self.receiver.is_in_window(segment) {
            if self.receiver.answers_refused(now) {
                self.acknowledge(now, out);
            }
            return 0;
        }
        let outdated_ms = self.receiver.outdated_by_ms(segment);
        if outdated_ms > 0
            && !(segment.seq == self.receiver.rcv_nxt()
                && self.sender.takes_outdated(segment, outdated_ms))
        {
            return 0;
        }
        self.sender.set_now(now);
        self.receiver.note_codepoint(ecn, 0);
        self.receiver.take_timestamp(segment);
        if segment.ack >= self.sender.view().snd_una {
            self.receiver.accept_cwr(segment);
        }
        self.sender.on_ack(segment, &mut Io { receiver: &mut self.receiver, out });
        0
    }

    /// Data that is not merely the next.
    #[inline(never)]
    fn on_any_data<O: Outbox>(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        now: Instant,
        out: &mut O,
    ) -> Option<Received> {
        if !self.receiver.accepts(segment) {
            self.receiver.refuse(segment);
            self.acknowledge(now, out);
            return None;
        }
        self.sender.set_now(now);
        let flush = self.receiver.flushes(segment);
        if flush || self.receiver.echo_changes(segment, ecn) {
            self.acknowledge(now, out);
        }
        self.tell_mark(ecn);
        self.receiver.note_codepoint(ecn, segment.len);
        if segment.ack >= self.sender.view().snd_una {
            self.receiver.accept_cwr(segment);
        }
        let (srtt_us_x8, rto_ticks) = self.sender.estimates();
        Some(self.receiver.on_data(segment, ecn, now, flush, srtt_us_x8, rto_ticks))
    }

    /// The data's mark, passed to an algorithm that asks for it (`tcp_ca_event` in `tcp_ecn_check_ce`).
    #[inline]
    fn tell_mark(&mut self, ecn: Ecn) {
        if self.ecn == Agreed::Dctcp {
            self.sender.tell_mark(ecn);
        }
    }

    #[inline]
    fn ecn_mode(&self) -> EcnMode {
        self.sender.cc().about().needs.ecn
    }

    /// The agreement, with the echo or the codepoint that the algorithm wants.
    fn as_wanted(&self, agreed: Agreed) -> Agreed {
        match agreed {
            Agreed::Classic if self.sender.cc().wants_exact_echo() => Agreed::Dctcp,
            Agreed::Accurate(_) if self.sender.cc().wants_l4s() => Agreed::Accurate(Ecn::Ect1),
            Agreed::None | Agreed::Classic | Agreed::Dctcp | Agreed::Accurate(_) => agreed,
        }
    }

    fn on_syn<O: Outbox>(&mut self, segment: &Segment, ecn: Ecn, now: Instant, out: &mut O) {
        self.options = self.options.common(segment);
        if let Some(Timestamps { val, .. }) = segment.timestamps() {
            self.receiver.note_timestamp(val);
        }
        match self.role {
            Role::Server => {
                // One that comes again asks for nothing else (`tcp_check_req`).
                if self.phase == Phase::Closed {
                    let settings = self.sender.settings();
                    let agreed = ecn::grants(self.ecn_mode(), settings, segment.flags, ecn);
                    self.ecn = self.as_wanted(agreed);
                    self.peer_syn = ecn;
                    self.opened_at = now;
                    self.phase = Phase::Handshake;
                }
                self.send_syn(now, out);
            }
            Role::Client => {
                let mode = self.ecn_mode();
                let request = ecn::asks(mode, self.sender.settings());
                self.ecn = self.as_wanted(ecn::agrees(mode, request, segment.flags));
                self.peer_syn = ecn;
                let rtt = self.handshake_rtt(segment, now);
                self.establish(now, segment, rtt);
                self.receiver.owe_ack();
                self.end_handshake(segment, now, out);
                self.sender.push(now, &mut Io { receiver: &mut self.receiver, out });
            }
        }
    }

    fn establish(&mut self, now: Instant, segment: &Segment, rtt_us: Option<u32>) {
        self.phase = Phase::Established;
        self.syn_deadline = Instant::NEVER;
        let options = self.options;
        let tells_bytes = self.ecn.by_counters() && segment.ecn_bytes().is_some();
        self.sender.agree(&options, self.ecn, tells_bytes);
        let reserved = self.sender.settings().advmss() - if options.timestamps { 12 } else { 0 };
        let mss = self.sender.view().mss;
        self.receiver.establish(now, self.ecn, &options, reserved, mss);
        if self.ecn.by_counters() {
            self.receiver.count_marks(self.peer_syn, self.role == Role::Client, tells_bytes);
        }
        self.sender.establish(now, segment, rtt_us, self.syn_retransmits);
    }

    /// RTT of the SYN, µs. Of one that was retransmitted only the timestamp tells it (Karn;
    /// `tcp_ack_update_rtt`).
    fn handshake_rtt(&self, segment: &Segment, now: Instant) -> Option<u32> {
        if self.syn_retransmits == 0 {
            return Some(micros(now.since(self.opened_at).as_micros_floor().max(1)));
        }
        let stamps = segment.timestamps().filter(|_| self.options.timestamps)?;
        Some(
            self.sender
                .settings()
                .ticks
                .stamp_ms(now)
                .saturating_sub(stamps.ecr)
                .max(1)
                .saturating_mul(1_000),
        )
    }

    fn send_syn<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        let settings = self.sender.settings();
        let mode = self.ecn_mode();
        let (flags, capable) = match self.role {
            Role::Client => {
                let request = ecn::asks(mode, settings);
                let flags = ecn::syn_flags(request, self.syn_retransmits, settings);
                (flags, request != Request::None)
            }
            Role::Server => (ecn::syn_ack_flags(self.ecn, self.peer_syn), self.ecn != Agreed::None),
        };
        let codepoint = if capable { ecn::handshake_codepoint(mode) } else { Ecn::NotEct };
        let mut segment = Segment::new(0, 0, flags);
        // A client does not know yet (tcp_connect_init).
        let stamped = self.role == Role::Server && self.options.timestamps;
        segment.window = self.receiver.initial_window(stamped);
        let Options { sack, timestamps, scaling, advmss } = self.options;
        segment.set_syn_options(SynOptions {
            mss: advmss.min(u16::MAX.into()) as u16,
            window_scale: scaling.then(|| self.receiver.window_scale()),
            sack_permitted: sack,
        });
        if timestamps {
            let val = self.sender.settings().ticks.stamp_ms(now);
            segment.set_timestamps(Timestamps { val, ecr: self.receiver.timestamp_to_echo() });
        }
        // RFC 9768 §3.2.3.2.1: on a SYN-ACK; not on one sent again, which may have been lost for it.
        if self.role == Role::Server && self.ecn.by_counters() && self.syn_retransmits == 0 {
            segment.set_ecn_bytes(EcnBytes::of_handshake());
        }
        // A client's first timeouts may stay as they are (tcp_retransmit_timer).
        let linear = match self.role {
            Role::Client => settings.syn_linear_timeouts,
            Role::Server => 0,
        };
        let backoff = self.syn_retransmits.saturating_sub(linear).min(6);
        let delay = self.sender.settings().ticks.count_span_ceil(settings.rto_initial) << backoff;
        self.syn_deadline = self.sender.settings().ticks.timer(now, delay);
        out.send(&segment, codepoint, now);
    }

    /// The client's last segment of the handshake: where accurate ECN was agreed on, it says how the SYN-ACK came.
    fn end_handshake<O: Outbox>(&mut self, syn_ack: &Segment, now: Instant, out: &mut O) {
        let mut segment = self.receiver.acknowledgement(now, self.sender.view().snd_nxt);
        if self.ecn.by_counters() {
            segment.flags = segment.flags.with_ace(ecn::handshake_code(self.peer_syn));
        }
        // What the SYN-ACK says of the path counts from the next segment on.
        out.send(&segment, self.sender.codepoint(Carries::Ack), now);
        let sent_codepoint = ecn::handshake_codepoint(self.ecn_mode());
        if self.ecn.by_counters() && !ecn::is_credible(sent_codepoint, syn_ack.flags.ace()) {
            self.sender.distrust_path();
        }
    }

    fn acknowledge<O: Outbox>(&mut self, now: Instant, out: &mut O) {
        let segment = self.receiver.acknowledgement(now, self.sender.view().snd_nxt);
        out.send(&segment, self.sender.codepoint(Carries::Ack), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/explanation/performance.md: what a flow takes when it is idle. It has two endpoints, and each carries one stack's state.
    #[test]
    fn an_endpoint_carries_one_stack_s_state() {
        assert!(size_of::<Endpoint>() <= 1_376, "{}", size_of::<Endpoint>());
    }
}
