//! The common case of an ACK: in Open it takes segments off the queue that were sent once, and tells nothing else. What the general
//! way (`ack.rs`) does then, as a straight line.
//!
//! Kernel: header prediction (`tcp_rcv_established`), which leaves `tcp_ack` the same to do.

use super::Linux6;
use super::ack::Counts;
use crate::segment::{Flags, Segment};
use crate::sender::core::{AckFlags, Core, Draft, Plain};
use crate::ticks::micros;
use dragstrip_cc::{AckEvent, CongestionControl};

impl Linux6 {
    /// Returns the part that [`Self::progress`] takes off the queue; `None`: the ACK is not so simple.
    #[inline(always)] // of every ACK
    pub(super) fn plain_part(&self, core: &Core, segment: &Segment) -> Option<Plain> {
        let view = &core.view;
        let is_simple = segment.ack > view.snd_una
            && self.sets_timer_when_sending(core)
            && view.sacked_out | view.lost_out | view.retrans_out == 0
            && self.probe.is_none()
            && !segment.flags.has(Flags::ECE)
            && !segment.has_sack()
            && !core.agreed.by_counters();
        if is_simple { core.board.plain_until(view.snd_una, segment.ack) } else { None }
    }

    /// Takes them off.
    #[inline(always)] // of an ACK, this is nearly all
    pub(super) fn progress(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        plain: &Plain,
        predicted: bool,
    ) {
        let prior_una = core.view.snd_una;
        let prior_in_flight = core.in_flight();
        core.take_window(segment);
        core.view.snd_una = segment.ack;
        self.linux.timeouts = 0;
        core.take_off(plain);
        let mut draft = Draft::default();
        self.rack_advance(core, &plain.last);
        core.rate_delivered(&mut draft, &plain.last);
        let maybe_delayed = plain.segments == 1
            && core.view.snd_una - prior_una < u64::from(core.view.mss)
            && draft.prior_delivered() + 1 == core.view.delivered;
        let now_us = core.now_us();
        let rtt_us = micros(now_us - plain.last.sent_us);
        core.last_rtt_us = Some(rtt_us);
        core.new_rtt_us = Some(rtt_us);
        self.window_probes = 0;
        self.linux.take_rtt(core, micros(now_us - plain.first_us), rtt_us, maybe_delayed);
        core.report_acked(plain.segments, &draft);
        self.rack_adapt(core, draft.prior_delivered());
        let event = AckEvent {
            slow_path: !predicted,
            window_update: true,
            ece: false,
            newly_delivered: plain.segments,
            newly_marked: 0,
        };
        core.cc.in_ack_event(&core.view, &mut core.window, &event);
        let counts = Counts { prior_in_flight, acked_sacked: plain.segments, ..Counts::default() };
        let flags = AckFlags::ADVANCED
            .with(AckFlags::DATA_ACKED)
            .with_if(AckFlags::MAYBE_DELAYED, maybe_delayed);
        self.control(core, flags, &counts, &draft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::Agreed;
    use crate::host::HostSettings;
    use crate::options::Options;
    use crate::profile::Settings;
    use crate::receiver::Receiver;
    use crate::segment::{Ecn, Outbox};
    use crate::sender::core::{Handshake, Io, Stack, Supply};
    use crate::sender::linux_6::recovery::Rexmit;
    use dragstrip_cc::{Algorithm, Stamps};
    use dragstrip_units::{Duration, Instant, Stream};
    use std::sync::Arc;

    /// Segments under way, and their arrival times.
    #[derive(Default)]
    struct Wire(Vec<(Instant, Segment)>);

    impl Outbox for Wire {
        fn send(&mut self, segment: &Segment, _ecn: Ecn, now: Instant) -> Option<Instant> {
            self.0.push((now, *segment));
            Some(now + Duration::from_micros(10))
        }
    }

    /// A sender, its host's receiver, and a peer that loses, delays and marks.
    struct Run {
        core: Core,
        stack: Linux6,
        receiver: Receiver,
        peer: Receiver,
        now: Instant,
        /// Data and ACKs under way.
        data: Vec<(Instant, Segment)>,
        acks: Vec<(Instant, Segment)>,
        chance: Stream,
        taken: u32,
    }

    fn receiver(settings: &Arc<HostSettings>) -> Receiver {
        let options = Options::of(settings);
        let mut receiver = Receiver::new(settings);
        receiver.initial_window(options.timestamps);
        receiver.establish(Instant::ZERO, Agreed::Classic, &options, 1_448, settings.mss());
        receiver
    }

    impl Run {
        fn new(settings: Settings, algorithm: &str, seed: u64) -> Self {
            let options = dragstrip_cc::Options::new();
            let rules = &settings.profile.congestion;
            let chance = Stream::named(seed, "progress");
            let cc = Algorithm::new(algorithm, &options, rules, chance.clone()).unwrap();
            let settings = settings.shared();
            let (receiver, peer) = (receiver(&settings), receiver(&settings));
            let agreed = Options::of(&settings);
            let mut core = Core::new(&settings, cc);
            let mut stack = Linux6::new(&settings);
            core.agree(&agreed, Agreed::Classic, false);
            let mut hello = Segment::new(0, 0, Flags::ACK);
            hello.window = 60_000;
            core.open(Instant::from_nanos(20_000_000), &hello);
            let handshake =
                Handshake { rtt_us: Some(20_000), syn_retransmits: 0, window: hello.window };
            stack.on_established(&mut core, handshake);
            core.start_congestion_control();
            core.buffer.supply(Supply::Endless);
            let now = core.view.now;
            let (data, acks) = (Vec::new(), Vec::new());
            Self { core, stack, receiver, peer, now, data, acks, chance, taken: 0 }
        }

        fn one_in(&mut self, many: u64) -> bool {
            self.chance.next_u64().is_multiple_of(many)
        }

        /// Lets the sender do something; what it sends gets on its way.
        fn send(&mut self, what: impl FnOnce(&mut Linux6, &mut Core, &mut Io<'_, Wire>)) {
            let mut wire = Wire::default();
            self.core.view.now = self.now;
            let mut io = Io { receiver: &mut self.receiver, out: &mut wire };
            what(&mut self.stack, &mut self.core, &mut io);
            for (sent, segment) in wire.0 {
                if self.one_in(300) {
                    continue;
                }
                let late = if self.one_in(200) { 3_000 } else { 0 };
                let last = self.data.last().map_or(sent, |last| last.0.max(sent));
                let came = last.max(sent + Duration::from_millis(5)) + Duration::from_micros(100);
                self.data.push((came + Duration::from_micros(late), segment));
            }
        }

        fn take_data(&mut self, segment: &Segment) {
            let ecn = if self.one_in(300) { Ecn::Ce } else { Ecn::Ect0 };
            if !self.peer.accepts(segment) {
                self.peer.refuse(segment);
            } else if !self.peer.on_data(segment, ecn, self.now, false, 0, 50).acknowledge {
                return;
            }
            self.acknowledge();
        }

        fn acknowledge(&mut self) {
            let ack = self.peer.acknowledgement(self.now, 0);
            if !self.one_in(100) {
                self.acks.push((self.now + Duration::from_millis(5), ack));
            }
        }

        /// Takes an ACK; where it is plain progress, on copies both ways before.
        fn take_ack(&mut self, segment: &Segment) {
            self.core.new_rtt_us = None;
            self.core.view.now = self.now;
            self.core.view.stamps =
                segment.timestamps().map(|stamps| Stamps { val: stamps.val, ecr: stamps.ecr });
            if let Some(plain) = self.stack.plain_part(&self.core, segment) {
                self.taken += 1;
                let (mut core, mut stack) = (self.core.clone(), self.stack.clone());
                stack.progress(&mut core, segment, &plain, true);
                let straight = format!("{core:?} {stack:?}");
                let (mut core, mut stack) = (self.core.clone(), self.stack.clone());
                assert_eq!(stack.any_ack(&mut core, segment, true), (Rexmit::None, true));
                assert_eq!(straight, format!("{core:?} {stack:?}"));
            }
            self.send(|stack, core, io| stack.on_ack(core, segment, io));
        }

        /// Runs for `time`; returns the number of ACKs taken in a straight line.
        fn count_straight_acks(mut self, time: Duration) -> u32 {
            let end = self.now + time;
            self.send(|stack, core, io| {
                stack.refill(core, io);
            });
            while self.now < end {
                let first = |queue: &[(Instant, Segment)]| {
                    (0..queue.len()).min_by_key(|at| (queue[*at].0, *at))
                };
                let (data, ack) = (first(&self.data), first(&self.acks));
                let data_at = data.map_or(Instant::NEVER, |at| self.data[at].0);
                let ack_at = ack.map_or(Instant::NEVER, |at| self.acks[at].0);
                let timer = self.core.timer.deadline();
                let wakeup = self.core.timer.wakeup;
                let peer = self.peer.deadline();
                self.now = data_at.min(ack_at).min(timer).min(wakeup).min(peer);
                assert_ne!(self.now, Instant::NEVER, "it hangs");
                if data_at == self.now {
                    let (_, segment) = self.data.remove(data.unwrap_or(0));
                    self.take_data(&segment);
                } else if ack_at == self.now {
                    let (_, segment) = self.acks.remove(ack.unwrap_or(0));
                    self.take_ack(&segment);
                } else if peer == self.now {
                    if self.peer.on_deadline(self.now, 50) {
                        self.acknowledge();
                    }
                } else if wakeup == self.now {
                    self.core.timer.wakeup = Instant::NEVER;
                    self.send(|stack, core, io| stack.on_wakeup(core, io));
                } else {
                    self.send(|stack, core, io| stack.on_timer(core, io));
                }
            }
            self.taken
        }
    }

    #[test]
    fn progress_changes_what_any_other_way_would() {
        for name in ["cubic", "reno", "bbr", "westwood", "vegas"] {
            for seed in 0..4 {
                let settings = Settings { gso: seed % 2 == 0, ..Settings::linux_6() };
                let straight_acks =
                    Run::new(settings, name, seed).count_straight_acks(Duration::from_secs(3));
                assert!(straight_acks > 25, "{name} {seed}: {straight_acks}");
            }
        }
    }

    #[test]
    fn where_flights_are_kept_or_nothing_is_sacked_it_is_never_taken() {
        let flights = Run::new(Settings::linux_6(), "bbr3", 1);
        assert_eq!(flights.count_straight_acks(Duration::from_secs(1)), 0);
        let bare = Settings { sack: false, ..Settings::linux_6() };
        assert_eq!(Run::new(bare, "cubic", 1).count_straight_acks(Duration::from_secs(1)), 0);
    }
}
