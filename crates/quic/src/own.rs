//! Dragstrip's congestion controls as controllers of noq.
//!
//! The algorithms expect Linux's `tcp_congestion_ops`; a controller of noq is told of packets sent, acknowledged and lost. This
//! module keeps what Linux would show them: a packet is a datagram, a position in the stream is a sum of bytes sent, a round ends
//! when a packet is acknowledged that was sent after the last round's. What differs from TCP is RFC 9002's: the window falls to
//! the threshold at once when a reduction begins (no PRR), losses follow the growth by the same ACK, and every packet is new.

use crate::clock::{StackInstant, simulated_time};
use crate::watch::Figures;
use dragstrip_cc::{
    Ack, AckEvent, Algorithm, CaState, CongestionControl, Event, LostPacket, PacingStatus,
    RateSample, Response, View, Window,
};
use dragstrip_units::{Duration, Instant};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

/// Ticks of the clock that some algorithms count in, per second (`CONFIG_HZ` of distributions' kernels).
const HZ: u32 = 250;

/// Datagrams of the initial window (RFC 6928), unless a flow has another.
pub(crate) const INITIAL_WINDOW: u32 = 10;

/// Fewest datagrams of a window (RFC 9002, section 7.2).
const WINDOW_MIN: u32 = 2;

/// Beyond eight round trips, the time after which a packet is forgotten whose fate nobody has told.
const DISCARD_GRACE: Duration = Duration::from_millis(100);

/// Makes controllers of one algorithm.
#[derive(Debug)]
pub(crate) struct OwnFactory {
    pub algorithm: Algorithm,
    /// Initial window, datagrams.
    pub initial_window: u32,
    pub figures: Arc<Figures>,
}

impl ControllerFactory for OwnFactory {
    fn build(self: Arc<Self>, now: StackInstant, mtu: u16) -> Box<dyn Controller> {
        let now = simulated_time(now);
        Box::new(Own::new(&self, u32::from(mtu), now))
    }
}

/// A packet in flight, as it was sent.
#[derive(Clone, Copy, Debug)]
struct Flight {
    number: u64,
    /// Bytes sent until its end.
    end: u64,
    sent: Instant,
    /// Packets delivered by then, and the time of the last delivery.
    delivered: u64,
    delivered_at: Instant,
    /// Send time of the packet whose delivery was the last by then.
    first_sent: Instant,
    app_limited: bool,
    /// Packets in flight with it.
    in_flight: u32,
    /// Packets lost by then.
    lost: u64,
    /// It is acknowledged or lost.
    gone: bool,
}

/// News of one ACK so far.
#[derive(Clone, Copy, Debug, Default)]
struct AckDraft {
    packets: u32,
    /// Acknowledged packets that were sent after the current reduction began.
    after_reduction: u32,
    in_flight_before: u32,
    /// The last-sent packet of them.
    latest: Option<Flight>,
}

/// An algorithm, and what it sees.
#[derive(Clone, Debug)]
struct Own {
    algorithm: Algorithm,
    view: View,
    window: Window,
    /// In the order of sending.
    flights: VecDeque<Flight>,
    in_flight: u32,
    draft: AckDraft,
    /// Losses since the last ACK.
    losses: u32,
    /// Send time of the packet whose delivery was the last.
    first_sent: Instant,
    /// Start of the reduction, or of the last.
    reduced_at: Option<Instant>,
    /// Time of the last loss: recovery lasts until what was sent after it arrives, as TCP's does until its holes are filled.
    lost_at: Instant,
    /// Threshold before it.
    prior_ssthresh: u32,
    /// Bytes sent when the use of the window was last judged (`cwnd_usage_seq`).
    judged_at: u64,
    figures: Arc<Figures>,
}

impl Own {
    fn new(factory: &OwnFactory, mss: u32, now: Instant) -> Self {
        let OwnFactory { algorithm, initial_window, figures } = factory;
        let (mut algorithm, initial_window) = (algorithm.clone(), *initial_window);
        let mut view = View {
            now,
            delivered_at: now,
            last_data_sent: now,
            departure: now,
            pacing_status: PacingStatus::Needed,
            gso_max_bytes: mss,
            ..View::new(HZ, mss, initial_window)
        };
        let mut window = Window::new(initial_window);
        algorithm.init(&view, &mut window);
        view.prior_cwnd = window.cwnd;
        Self {
            algorithm,
            view,
            window,
            flights: VecDeque::new(),
            in_flight: 0,
            draft: AckDraft::default(),
            losses: 0,
            first_sent: now,
            reduced_at: None,
            lost_at: now,
            prior_ssthresh: Window::INFINITE,
            judged_at: 0,
            figures: Arc::clone(figures),
        }
    }

    fn set_time(&mut self, now: StackInstant) {
        self.view.now = simulated_time(now);
    }

    /// Takes a packet out of the network that was sent then: numbers repeat, for each stage of the handshake has its own.
    fn take_sent(&mut self, sent: Instant, number: u64) -> Option<Flight> {
        let first = self.flights.partition_point(|flight| flight.sent < sent);
        let behind = self.flights.range(first..).take_while(|flight| flight.sent == sent);
        let offset = behind.take_while(|flight| flight.number != number || flight.gone).count();
        self.take(first + offset).filter(|flight| flight.number == number)
    }

    /// Takes the oldest packet of this number out of the network.
    fn take_oldest(&mut self, number: u64) -> Option<Flight> {
        let index =
            self.flights.iter().position(|flight| flight.number == number && !flight.gone)?;
        self.take(index)
    }

    fn take(&mut self, index: usize) -> Option<Flight> {
        let flight = self.flights.get_mut(index).filter(|flight| !flight.gone)?;
        flight.gone = true;
        let taken = *flight;
        self.in_flight -= 1;
        self.view.packets_out = self.in_flight;
        while self.flights.front().is_some_and(|first| first.gone) {
            self.flights.pop_front();
        }
        Some(taken)
    }

    /// Forgets packets of the handshake whose keys were discarded: nobody tells that they are no longer expected. A packet of the
    /// connection is acknowledged or lost long before.
    fn forget_discarded(&mut self, latest_sent: Instant) {
        let grace = Duration::from_micros(u64::from(self.view.srtt_us_x8)) + DISCARD_GRACE;
        while self.flights.front().is_some_and(|first| first.sent + grace < latest_sent) {
            if self.take(0).is_none() {
                break;
            }
        }
    }

    /// `tcp_cwnd_validate`: a full window counts until the data then outstanding is acknowledged.
    fn judge_use(&mut self, is_limited: bool) {
        let view = &mut self.view;
        if view.snd_una >= self.judged_at
            || is_limited
            || (!view.is_cwnd_limited && self.in_flight > view.max_packets_out)
        {
            view.is_cwnd_limited = is_limited;
            view.max_packets_out = self.in_flight;
            self.judged_at = view.snd_nxt;
        }
    }

    /// An RTT sample (`tcp_rtt_estimator`).
    fn measure(&mut self, rtt_us: u32) {
        let view = &mut self.view;
        view.min_rtt_us = view.min_rtt_us.min(rtt_us);
        view.srtt_us_x8 = if view.srtt_us_x8 == 0 {
            rtt_us << 3
        } else {
            view.srtt_us_x8 - (view.srtt_us_x8 >> 3) + rtt_us
        };
    }

    /// A delivery-rate sample over the packet that was sent last among those acknowledged (`tcp_rate_gen`).
    fn rate_sample(&self, latest: &Flight, rtt_us: Option<u32>) -> RateSample {
        let span_us = |from: Instant, to: Instant| to.since(from).as_nanos() / 1_000;
        let interval_us = span_us(latest.first_sent, latest.sent)
            .max(span_us(latest.delivered_at, self.view.now));
        // A sample shorter than the path's RTT comes from a packet that was taken for lost.
        let is_valid = interval_us >= u64::from(self.view.min_rtt_us);
        let delivered = (self.view.delivered - latest.delivered) as u32;
        RateSample {
            prior_delivered: latest.delivered,
            delivered: is_valid.then_some(delivered),
            interval_us: if is_valid { interval_us } else { 0 },
            rtt_us,
            losses: self.losses,
            acked_sacked: self.draft.packets,
            prior_in_flight: self.draft.in_flight_before,
            tx_in_flight: latest.in_flight,
            lost: (self.view.lost - latest.lost) as u32,
            is_app_limited: latest.app_limited,
            ..RateSample::default()
        }
    }

    /// Begins a reduction (`tcp_enter_recovery`); RFC 9002 lets the window fall at once.
    fn reduce(&mut self, state: CaState) {
        self.reduced_at = Some(self.view.now);
        self.lost_at = self.view.now;
        self.prior_ssthresh = self.window.ssthresh;
        self.view.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = self.algorithm.ssthresh(&self.view, &mut self.window);
        if state == CaState::Loss {
            self.algorithm.cwnd_event(&self.view, &mut self.window, Event::Loss);
        }
        self.set_state(state);
        if state == CaState::Loss {
            self.window.cwnd = WINDOW_MIN;
        } else if !self.algorithm.has_cong_control() {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh).max(WINDOW_MIN);
        }
    }

    fn set_state(&mut self, state: CaState) {
        self.algorithm.set_state(&self.view, &mut self.window, state);
        self.view.state = state;
    }

    fn answer(&mut self, response: Response) {
        match response {
            Response::None => {}
            Response::EnterCwr => {
                if self.view.state == CaState::Open {
                    self.reduce(CaState::Cwr);
                }
            }
            Response::MarkAppLimited => self.mark_app_limited(),
        }
    }

    /// Tells of a program's fault.
    fn note_fault(&self) {
        if let Some(fault) = self.algorithm.fault() {
            self.figures.set_fault(fault);
        }
    }

    fn mark_app_limited(&mut self) {
        self.view.app_limited = (self.view.delivered + u64::from(self.in_flight)).max(1);
    }
}

impl Controller for Own {
    fn on_packet_sent(&mut self, now: StackInstant, bytes: u16, number: u64) {
        self.set_time(now);
        let view = &mut self.view;
        if self.in_flight == 0 {
            self.first_sent = view.now;
            view.delivered_at = view.now;
            if view.snd_nxt > 0 {
                self.algorithm.cwnd_event(view, &mut self.window, Event::TxStart);
            }
        }
        self.in_flight += 1;
        view.packets_out = self.in_flight;
        view.snd_nxt += u64::from(bytes);
        view.last_data_sent = view.now;
        view.departure = view.now;
        self.flights.push_back(Flight {
            number,
            end: view.snd_nxt,
            sent: view.now,
            delivered: view.delivered,
            delivered_at: view.delivered_at,
            first_sent: self.first_sent,
            app_limited: view.app_limited != 0,
            in_flight: self.in_flight,
            lost: view.lost,
            gone: false,
        });
        self.judge_use(false);
    }

    fn on_cwnd_limited(&mut self) {
        self.judge_use(true);
    }

    fn on_ack(
        &mut self,
        now: StackInstant,
        sent: StackInstant,
        _bytes: u64,
        number: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.set_time(now);
        if self.draft.packets == 0 {
            self.draft.in_flight_before = self.in_flight;
            self.view.prior_in_flight = self.in_flight;
        }
        let Some(flight) = self.take_sent(simulated_time(sent), number) else { return };
        self.draft.packets += 1;
        self.draft.after_reduction +=
            u32::from(self.reduced_at.is_none_or(|start| flight.sent > start));
        if self.draft.latest.is_none_or(|latest| flight.end > latest.end) {
            self.draft.latest = Some(flight);
        }
        let view = &mut self.view;
        view.delivered += 1;
        view.delivered_at = view.now;
        view.snd_una = view.snd_una.max(flight.end);
        if view.app_limited != 0 && view.delivered > view.app_limited {
            view.app_limited = 0;
        }
    }

    fn on_end_acks(
        &mut self,
        now: StackInstant,
        _in_flight: u64,
        app_limited: bool,
        _largest: Option<u64>,
    ) {
        self.set_time(now);
        if app_limited {
            self.mark_app_limited();
        }
        let Some(latest) = self.draft.latest else { return };
        let rtt_us = (self.view.now.since(latest.sent).as_nanos() / 1_000) as u32;
        self.first_sent = latest.sent;
        self.measure(rtt_us);
        let ack = Ack {
            packets: self.draft.packets,
            rtt_us: Some(rtt_us),
            in_flight: (latest.delivered + u64::from(latest.in_flight))
                .saturating_sub(self.view.delivered) as u32,
        };
        self.algorithm.acked(&self.view, &mut self.window, &ack);
        let event = AckEvent { newly_delivered: self.draft.packets, ..AckEvent::default() };
        self.algorithm.in_ack_event(&self.view, &mut self.window, &event);
        if self.view.state != CaState::Open && latest.sent > self.lost_at {
            if self.view.state != CaState::Loss {
                self.algorithm.cwnd_event(&self.view, &mut self.window, Event::CompleteCwr);
            }
            self.set_state(CaState::Open);
        }
        if self.algorithm.has_cong_control() {
            let sample = self.rate_sample(&latest, Some(rtt_us));
            let response = self.algorithm.cong_control(&self.view, &mut self.window, &sample);
            self.answer(response);
        } else if self.draft.after_reduction > 0 {
            let acked = self.draft.after_reduction;
            let response = self.algorithm.cong_avoid(&self.view, &mut self.window, acked);
            self.answer(response);
        }
        self.losses = 0;
        self.draft = AckDraft::default();
        self.forget_discarded(latest.sent);
        self.note_fault();
    }

    fn on_packet_lost(&mut self, _bytes: u16, number: u64, now: StackInstant) {
        self.set_time(now);
        let Some(flight) = self.take_oldest(number) else { return };
        self.view.lost += 1;
        self.losses += 1;
        self.lost_at = self.view.now;
        if self.algorithm.wants_flights() {
            let packet = LostPacket {
                tx_in_flight: flight.in_flight,
                lost: (self.view.lost - flight.lost) as u32,
                is_app_limited: flight.app_limited,
            };
            self.algorithm.marked_lost(&self.view, &mut self.window, &packet);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: StackInstant,
        sent: StackInstant,
        is_persistent: bool,
        _is_ecn: bool,
        _lost_bytes: u64,
        _largest: u64,
    ) {
        self.set_time(now);
        let sent = simulated_time(sent);
        if is_persistent {
            self.reduce(CaState::Loss);
        } else if self.reduced_at.is_none_or(|start| sent > start) {
            self.reduce(CaState::Recovery);
        }
        self.note_fault();
    }

    fn on_spurious_congestion_event(&mut self) {
        if self.reduced_at.is_none() {
            return;
        }
        self.window.cwnd = self.algorithm.undo_cwnd(&self.view, &mut self.window);
        self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
        self.set_state(CaState::Open);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.view.mss = u32::from(mtu);
    }

    fn window(&self) -> u64 {
        u64::from(self.window.cwnd.max(1)) * u64::from(self.view.mss)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mss = u64::from(self.view.mss);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = (self.window.ssthresh < Window::INFINITE)
            .then(|| u64::from(self.window.ssthresh) * mss);
        metrics.pacing_rate = Some(self.window.pacing_rate).filter(|rate| *rate < u64::MAX);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(self.view.initial_cwnd) * u64::from(self.view.mss)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
