//! One ACK, in the kernel's order of steps (`tcp_ack`, `tcp_clean_rtx_queue`, `tcp_cong_control`).

use super::rate::Draft;
use super::recovery::Repair;
use super::scoreboard::Marks;
use super::{Io, Sender};
use crate::profile::{RecoveryStyle, RttSampling};
use crate::segment::{Flags, Outbox, Segment};
use dragstrip_cc::{self as cc, CaState, CongestionControl, RateSample, Response};
use dragstrip_units::{Duration, Instant};

/// What an ACK brought (`FLAG_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News(u32);

impl News {
    /// `snd_una` moved.
    pub const ADVANCED: Self = Self(1);
    /// Data was cumulatively acknowledged.
    pub const DATA_ACKED: Self = Self(2);
    /// New SACKs.
    pub const DATA_SACKED: Self = Self(4);
    /// ECN echo.
    pub const ECE: Self = Self(8);
    /// A duplicate was reported.
    pub const DSACKING_ACK: Self = Self(16);
    /// ... of a tail loss probe.
    pub const DSACK_OF_PROBE: Self = Self(32);
    /// Never-retransmitted data from before `high_seq` was (S)ACKed.
    pub const ORIG_SACK_ACKED: Self = Self(64);
    /// A retransmission was found lost.
    pub const LOST_RETRANS: Self = Self(128);
    /// The timer must be set again.
    pub const SET_TIMER: Self = Self(256);
    /// The head of the queue is SACKed: the receiver reneges.
    pub const RENEGING: Self = Self(512);
    /// Something acknowledged was retransmitted.
    pub const RETRANS_ACKED: Self = Self(1024);
    /// Carries data, moves the window or acknowledges: not a duplicate ACK.
    pub const NOT_DUPLICATE: Self = Self(2048);
    /// The receiver may have sat on this ACK.
    pub const MAYBE_DELAYED: Self = Self(4096);
    /// A retransmitted segment other than the head was acknowledged.
    pub const NONHEAD_RETRANS_ACKED: Self = Self(8192);
    /// A block reaches beyond `high_seq`.
    pub const DATA_LOST: Self = Self(16_384);
    /// A block reaches beyond what F-RTO judges (2.6.27).
    pub const LATER_SACKED: Self = Self(32_768);
    /// New SACKs of data that F-RTO judges and that was never retransmitted (2.6.27).
    pub const FRTO_ORIG_SACKED: Self = Self(65_536);

    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    #[inline]
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// From an ACK's arrival to what it lets go, at least: a tick of the kernel's clock for RTTs.
const ACK_WORK: Duration = Duration::from_micros(1);

/// The state of one ACK's processing.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    pub news: News,
    pub prior_una: u64,
    /// Lowest byte that arrived out of order.
    pub reordered_from: u64,
    /// Send times of the first and last newly SACKed, never retransmitted segments, µs.
    pub first_sacked_us: Option<u64>,
    pub last_sacked_us: Option<u64>,
    /// Segments newly SACKed or reported as duplicates.
    pub sack_delivered: u32,
    pub draft: Draft,
}

impl Ack {
    pub fn new(snd_una: u64, snd_nxt: u64) -> Self {
        Self {
            news: News::default(),
            prior_una: snd_una,
            reordered_from: snd_nxt,
            first_sacked_us: None,
            last_sacked_us: None,
            sack_delivered: 0,
            draft: Draft::default(),
        }
    }
}

impl Sender {
    /// An ACK has arrived (`tcp_ack`), and whatever it allows is sent.
    pub fn on_ack<O: Outbox>(&mut self, segment: &Segment, io: &mut Io<'_, O>) {
        self.new_rtt_us = None;
        if segment.ack > self.view.snd_nxt {
            return;
        }
        self.transmission.echoed_ms = segment.timestamps().map(|stamps| stamps.ecr);
        match self.settings.profile.recovery {
            RecoveryStyle::RackPrr => {}
            RecoveryStyle::RateHalving { .. } => return self.on_ack_halving(segment, io),
            RecoveryStyle::Bsd => return self.on_ack_bsd(segment, io),
            RecoveryStyle::Inflation => return self.on_ack_inflating(segment, io),
        }
        let now = self.view.now;
        self.view.now = self.arrival_of_ack(now);
        let prior_una = self.view.snd_una;
        let prior_packets = self.view.packets_out;
        let delivered_before = self.view.delivered;
        let lost_before = self.view.lost;
        let prior_in_flight = self.in_flight();
        let prior_highest = self.highest_sack();
        let mut ack = Ack::new(prior_una, self.view.snd_nxt);
        let repair = if segment.ack < prior_una {
            self.old_ack(segment, &mut ack)
        } else {
            self.take_in(segment, &mut ack);
            if prior_packets == 0 {
                if ack.news.has(News::DSACKING_ACK) {
                    // A reduction of the past may turn out to have been for nothing.
                    self.alert(&mut ack, false);
                }
                self.process_probe_ack(segment.ack, ack.news);
                Repair::None
            } else {
                self.clean_queue(&mut ack, prior_highest);
                self.rack_adapt(ack.draft.prior_delivered());
                self.process_probe_ack(segment.ack, ack.news);
                let repair = if self.is_dubious(ack.news) {
                    let duplicate = !ack
                        .news
                        .any(News::ADVANCED.with(News::NOT_DUPLICATE).with(News::DSACKING_ACK));
                    self.alert(&mut ack, duplicate)
                } else {
                    Repair::None
                };
                if ack.news.has(News::SET_TIMER) && !self.sets_timer_when_sending() {
                    self.set_transmit_timer();
                    ack.news.clear(News::SET_TIMER);
                }
                let sample = RateSample {
                    rtt_us: self.last_rtt_us,
                    losses: (self.view.lost - lost_before) as u32,
                    acked_sacked: (self.view.delivered - delivered_before) as u32,
                    prior_in_flight,
                    is_ack_delayed: ack.news.has(News::MAYBE_DELAYED),
                    ..RateSample::default()
                };
                let sample = self.rate_sample(&ack.draft, sample);
                self.control(ack.news, &sample);
                repair
            }
        };
        self.view.now = now;
        self.repair(repair, io);
        let sent = self.push_pending(io);
        if ack.news.has(News::SET_TIMER) && !sent {
            self.set_transmit_timer();
        }
    }

    /// The clock of an ACK whose segments leave at `now`: the kernel reads it when the ACK comes and again when it sends
    /// (`tcp_mstamp_refresh` in `tcp_rcv_established` and in `tcp_write_xmit`), and has worked in between. How long depends on the
    /// machine; a tick of that clock is the least. Without it every RTT behind a full queue is a whole number of packet times, and
    /// what Vegas divides by one another and compares with a whole number is equal where it is a hair above it in a kernel.
    #[inline]
    fn arrival_of_ack(&self, now: Instant) -> Instant {
        let arrival = Instant::from_nanos(now.as_nanos().saturating_sub(ACK_WORK.as_nanos()));
        arrival.max(self.view.departure).min(now)
    }

    /// Whether whatever is sent next will set the timer anyway: the usual case, in which setting it
    /// for the ACK too would be work for nothing.
    #[inline]
    fn sets_timer_when_sending(&self) -> bool {
        self.view.state == CaState::Open && self.settings.tail_loss_probe && self.settings.sack
    }

    /// An ACK from the past: only its SACK blocks are news.
    fn old_ack(&mut self, segment: &Segment, ack: &mut Ack) -> Repair {
        if !segment.has_sack() || self.view.packets_out == 0 {
            return Repair::None;
        }
        self.sacktag(segment, ack);
        self.view.delivered += u64::from(ack.sack_delivered);
        self.alert(ack, false)
    }

    /// Window, SACK and ECN of the ACK; moves `snd_una`.
    pub(super) fn take_in(&mut self, segment: &Segment, ack: &mut Ack) {
        if segment.ack > self.view.snd_una {
            ack.news.set(News::ADVANCED.with(News::NOT_DUPLICATE));
            self.recovery.timeouts = 0;
        }
        if segment.len > 0 {
            ack.news.set(News::NOT_DUPLICATE);
        }
        let window_end = segment.ack + u64::from(segment.window);
        if ack.news.has(News::ADVANCED) || self.may_update_window(segment) {
            ack.news.set(News::NOT_DUPLICATE);
            self.window_end = window_end;
            self.window_seq = segment.seq + 1;
            self.buffer.max_window = self.buffer.max_window.max(u64::from(segment.window));
        }
        self.view.snd_una = segment.ack;
        if segment.has_sack() {
            // The highest SACK is kept relative to what was outstanding before this ACK.
            self.sacktag(segment, ack);
            self.view.delivered += u64::from(ack.sack_delivered);
        }
        if segment.flags.has(Flags::ECE) && self.ecn() {
            ack.news.set(News::ECE);
        }
    }

    /// `tcp_may_update_window` (RFC 9293 §3.10.7.4): whatever is newer than the last update may, and shrink it.
    #[inline]
    fn may_update_window(&self, segment: &Segment) -> bool {
        let window_end = segment.ack + u64::from(segment.window);
        segment.seq >= self.window_seq
            || (segment.seq + 1 == self.window_seq && window_end > self.window_end)
    }

    /// `tcp_disordered_ack`: whether a pure ACK whose timestamp is `age_ms` older than the last one is taken all the same, because it
    /// is a duplicate ACK that moves no window and a timeout old at most. FreeBSD takes none, Linux 2.2 all.
    pub fn takes_outdated(&self, segment: &Segment, age_ms: u32) -> bool {
        match self.settings.profile.recovery {
            RecoveryStyle::Bsd => false,
            RecoveryStyle::Inflation => true,
            RecoveryStyle::RackPrr | RecoveryStyle::RateHalving { .. } => {
                let replay_ms = self.ticks.to_micros(self.rto_ticks()) / 1_000 * 1_024 / 1_000;
                segment.ack == self.view.snd_una
                    && !self.may_update_window(segment)
                    && u64::from(age_ms) <= replay_ms
            }
        }
    }

    /// `tcp_ack_is_dubious`.
    #[inline]
    fn is_dubious(&self, news: News) -> bool {
        !news.has(News::NOT_DUPLICATE)
            || news.any(News::DATA_SACKED.with(News::ECE).with(News::DSACKING_ACK))
            || self.view.state != CaState::Open
    }

    /// `tcp_clean_rtx_queue`: drops what is acknowledged, takes RTT samples.
    pub(super) fn clean_queue(&mut self, ack: &mut Ack, prior_highest: u64) {
        let mut first_acked_us = None;
        let mut last_acked_us = None;
        let mut packets = 0;
        let prior_sacked = self.view.sacked_out;
        let mut reordered_from = self.view.snd_nxt;
        while let Some(sent) = self.board.front() {
            if sent.end_seq() > self.view.snd_una {
                break;
            }
            let retransmitted = sent.marks.has(Marks::EVER_RETRANS);
            if retransmitted {
                if sent.marks.has(Marks::RETRANS) {
                    self.view.retrans_out -= 1;
                }
                ack.news.set(News::RETRANS_ACKED);
                if packets > 0 {
                    ack.news.set(News::NONHEAD_RETRANS_ACKED);
                }
            } else if !sent.marks.has(Marks::SACKED) {
                last_acked_us = Some(sent.sent_us);
                first_acked_us.get_or_insert(sent.sent_us);
                reordered_from = reordered_from.min(sent.seq);
                if sent.end_seq() <= self.recovery.high_seq {
                    ack.news.set(News::ORIG_SACK_ACKED);
                }
            }
            if sent.marks.has(Marks::SACKED) {
                self.view.sacked_out -= 1;
            } else {
                if self.settings.sack {
                    self.view.delivered += 1;
                    if !self.answers_original_of(&sent) {
                        self.rack_advance(retransmitted, sent.end_seq(), sent.sent_us);
                    }
                }
                self.rate_delivered(&mut ack.draft, &sent);
            }
            if sent.marks.has(Marks::LOST) {
                self.view.lost_out -= 1;
            }
            self.transmission.bursts_out -= u64::from(sent.marks.has(Marks::BURST_END));
            self.view.packets_out -= 1;
            packets += 1;
            self.board.pop_front();
        }
        if packets > 0 {
            ack.news.set(News::DATA_ACKED);
        }
        if self.board.front().is_some_and(|sent| sent.marks.has(Marks::SACKED)) {
            ack.news.set(News::RENEGING);
        }
        let rtt_taken = self.take_rtts(ack, first_acked_us, last_acked_us, packets, prior_sacked);
        self.settle(ack, packets, rtt_taken, reordered_from.min(prior_highest), prior_highest);
        let in_flight = (self.view.delivered - ack.draft.prior_delivered()) as u32;
        let sample = cc::Ack { packets, rtt_us: self.last_rtt_us, in_flight };
        self.cc.acked(&self.view, &mut self.window, &sample);
    }

    /// `tcp_skb_spurious_retrans`: the ACK answers the original of a retransmitted segment.
    #[inline]
    fn answers_original_of(&self, sent: &super::scoreboard::Sent) -> bool {
        sent.marks.has(Marks::EVER_RETRANS)
            && self
                .transmission
                .echoed_ms
                .is_some_and(|echo| u64::from(echo) < sent.sent_us / 1_000)
    }

    /// The RTT samples of the ACK: from the first acknowledged segment for the timeout, from the
    /// last for the algorithm (`tcp_ack_update_rtt`). Whether one was taken.
    fn take_rtts(
        &mut self,
        ack: &mut Ack,
        first_acked_us: Option<u64>,
        last_acked_us: Option<u64>,
        packets: u32,
        prior_sacked: u32,
    ) -> bool {
        match self.settings.profile.rtt_sampling {
            RttSampling::Microseconds => {}
            RttSampling::Ticks => {
                return self.take_rtts_in_ticks(ack, first_acked_us, last_acked_us, packets);
            }
            RttSampling::BsdTicks => {
                return self.take_rtts_bsd(last_acked_us.or(ack.last_sacked_us), packets);
            }
            RttSampling::LastTicks => {
                self.sample_last(last_acked_us, ack.news.has(News::RETRANS_ACKED), packets);
                return false;
            }
        }
        let now_us = self.now_us();
        let mut seq_rtt = None;
        let mut ca_rtt = None;
        if let (Some(first), Some(last)) = (first_acked_us, last_acked_us)
            && !ack.news.has(News::RETRANS_ACKED)
        {
            seq_rtt = Some(now_us - first);
            ca_rtt = Some(now_us - last);
            if packets == 1
                && prior_sacked == 0
                && self.view.snd_una - ack.prior_una < u64::from(self.view.mss)
                && ack.draft.prior_delivered() + 1 == self.view.delivered
                && !ack.news.any(News::DATA_SACKED.with(News::ECE).with(News::DSACKING_ACK))
            {
                ack.news.set(News::MAYBE_DELAYED);
            }
        }
        if let (Some(first), Some(last)) = (ack.first_sacked_us, ack.last_sacked_us) {
            seq_rtt = seq_rtt.or(Some(now_us - first));
            ca_rtt = Some(now_us - last);
        }
        if seq_rtt.is_none()
            && packets > 0
            && let Some(echo) = self.transmission.echoed_ms
        {
            // Only retransmissions were acknowledged: the timestamp tells which one (RFC 7323 §4.3).
            let delta = ((now_us / 1_000).saturating_sub(u64::from(echo))).max(1) * 1_000;
            seq_rtt = Some(delta);
            ca_rtt = Some(delta);
        }
        self.last_rtt_us = ca_rtt.map(|rtt| rtt as u32);
        let Some(seq_rtt) = seq_rtt else { return false };
        let ca_rtt = ca_rtt.unwrap_or(seq_rtt);
        self.new_rtt_us = Some(ca_rtt as u32);
        self.take_rtt(seq_rtt as u32, ca_rtt as u32, ack.news.has(News::MAYBE_DELAYED));
        true
    }

    /// The same before 3.15: whole ticks, from the timestamp whenever there is one, nothing from SACKs; the
    /// algorithm is given no sample when anything acknowledged was retransmitted.
    fn take_rtts_in_ticks(
        &mut self,
        ack: &Ack,
        first_acked_us: Option<u64>,
        last_acked_us: Option<u64>,
        packets: u32,
    ) -> bool {
        let ambiguous = ack.news.has(News::RETRANS_ACKED);
        let ca_rtt = last_acked_us.filter(|_| !ambiguous).map(|sent_us| self.ticks_since(sent_us));
        let ca_rtt = ca_rtt.filter(|&ticks| ticks > 0);
        self.last_rtt_us = if self.cc.about().needs.rtt_stamps {
            let now_us = self.now_us();
            last_acked_us.filter(|_| !ambiguous).map(|sent_us| (now_us - sent_us) as u32)
        } else {
            ca_rtt.map(|ticks| self.ticks.to_micros(ticks) as u32)
        };
        if packets == 0 {
            return false;
        }
        let seq_rtt_us = match self.transmission.echoed_ms {
            Some(echo) => {
                u64::from(self.ticks.stamp_ms(self.view.now).saturating_sub(echo)) * 1_000
            }
            None if ambiguous => return false,
            None => match first_acked_us {
                Some(sent_us) => self.ticks.to_micros(self.ticks_since(sent_us)),
                None => return false,
            },
        };
        // No time at all counts as one tick.
        let seq_rtt_us = seq_rtt_us.max(self.ticks.to_micros(1)) as u32;
        self.new_rtt_us = Some(seq_rtt_us);
        self.take_rtt(seq_rtt_us, seq_rtt_us, false);
        true
    }

    /// Feeds the estimator, the windowed minimum and the timeout.
    pub(super) fn take_rtt(&mut self, seq_rtt_us: u32, ca_rtt_us: u32, maybe_delayed: bool) {
        if !(maybe_delayed && ca_rtt_us > self.min_rtt.get()) {
            let window = u64::from(self.settings.min_rtt_wlen_s) * u64::from(self.settings.hz);
            self.min_rtt.sample(window, self.ticks.at(self.view.now), ca_rtt_us.max(1));
            self.view.min_rtt_us = self.min_rtt.get();
        }
        let min_us = self.timers.min_us();
        self.rtt.sample(seq_rtt_us, self.view.snd_una, self.view.snd_nxt, min_us);
        self.view.srtt_us_x8 = self.rtt.srtt_us_x8;
        self.set_rto();
    }

    /// The end of `tcp_clean_rtx_queue`: timer flag, and reordering shown by a hole that filled itself.
    fn settle(
        &mut self,
        ack: &mut Ack,
        packets: u32,
        rtt_taken: bool,
        reordered_from: u64,
        prior_highest: u64,
    ) {
        if packets > 0 {
            ack.news.set(News::SET_TIMER);
            if !self.settings.sack {
                match self.settings.profile.recovery {
                    RecoveryStyle::RackPrr => self.remove_reno_sacks(packets),
                    RecoveryStyle::RateHalving { .. } => self.eat_duplicates(packets),
                    RecoveryStyle::Bsd | RecoveryStyle::Inflation => {}
                }
                if ack.news.has(News::RETRANS_ACKED) {
                    ack.news.clear(News::ORIG_SACK_ACKED);
                }
            } else if reordered_from < prior_highest {
                match self.settings.profile.recovery {
                    RecoveryStyle::RackPrr => self.check_reordering(reordered_from),
                    RecoveryStyle::RateHalving { .. } => {
                        let span = prior_highest.max(self.highest_sack()) - reordered_from;
                        self.learn_reordering(span.div_ceil(u64::from(self.view.mss)) as u32);
                    }
                    RecoveryStyle::Bsd | RecoveryStyle::Inflation => {}
                }
            }
        } else if rtt_taken
            && let (Some(head), Some(first)) = (self.board.front(), ack.first_sacked_us)
            && first < head.sent_us
        {
            // Only a SACK of data sent before the head's last transmission may push the timeout out.
            ack.news.set(News::SET_TIMER);
        }
    }

    /// `tcp_cong_control`: the algorithm, or PRR, moves the window.
    fn control(&mut self, news: News, sample: &RateSample) {
        if self.has_cong_control {
            self.cc.cong_control(&self.view, &mut self.window, sample);
            if self.cc.keeps_app_limited() {
                let mark = self.view.delivered + u64::from(self.view.in_flight());
                self.view.app_limited = mark.max(1);
            }
            return;
        }
        if self.in_reduction() {
            self.reduce(sample.acked_sacked, sample.losses, news.has(News::ADVANCED));
        } else if self.may_grow(news) {
            let response = self.cc.cong_avoid(&self.view, &mut self.window, sample.acked_sacked);
            // tcp_cong_avoid: as long as ACKs come, a window that is not used does not decay.
            self.transmission.validated_at = self.view.now;
            if response == Response::EnterCwr {
                self.enter_cwr();
            }
        }
        self.update_pacing_rate();
    }

    /// `tcp_may_raise_cwnd`.
    #[inline]
    fn may_grow(&self, news: News) -> bool {
        if self.recovery.reordering > self.settings.reordering {
            news.any(News::DATA_ACKED.with(News::DATA_SACKED))
        } else {
            news.has(News::DATA_ACKED)
        }
    }
}
